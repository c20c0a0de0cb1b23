package gateway

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"time"

	"github.com/dragoman-go/dragoman/gateway/internal/access"
	"github.com/dragoman-go/dragoman/internal/serving"
)

// auxResponse is the response to an auxiliary request: one that calls no model, such as a request
// for a list, for a stored response or for an unknown path. Like others, it is logged and counted
// (requirement G6).
type auxResponse struct {
	http.ResponseWriter
	entry entry
}

// auxResponseKey is the context key of an auxResponse.
type auxResponseKey struct{}

// auxiliary returns a handler that serves auxiliary requests with h and logs each of them. They do
// not count as requests in progress, because they are short.
func (g *Gateway) auxiliary(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		codec := serving.CodecOf(r)
		a := &auxResponse{ResponseWriter: w, entry: entry{started: time.Now(), created: g.opts.Now(), id: g.newRequestID(), dialect: codec.Dialect(), path: r.URL.Path}}
		defer func() {
			a.entry.took = time.Since(a.entry.started)
			a.entry.clientLeft = r.Context().Err() != nil
			g.metrics.add(&a.entry)
			a.entry.log(r.Context(), g.opts.Log)
		}()
		w.Header().Set(serving.RequestIDHeader(codec), a.entry.id)
		r = r.WithContext(context.WithValue(r.Context(), auxResponseKey{}, a))
		free, err := g.bufferAuxBody(a, r)
		defer free()
		if err != nil {
			serving.WriteError(a, codec, apiError(a.entry.fail(err)))
			return
		}
		h.ServeHTTP(a, r)
	})
}

// maxAuxBody bounds the body of an auxiliary request, in bytes.
const maxAuxBody = 1 << 20

// bufferAuxBody reads the body of an auxiliary request into memory, within the key's limit of
// buffered bytes. It takes no slot of the key. It does not read the body of a request without a
// valid key, which its handler refuses. The caller must call free.
func (g *Gateway) bufferAuxBody(w http.ResponseWriter, r *http.Request) (free func(), err error) {
	key, bad := g.keys.Identify(access.FromRequest(r))
	if bad != nil || r.Method != http.MethodPost || r.ContentLength == 0 {
		return func() {}, nil //nolint:nilerr // the handler refuses the key
	}
	mem := &auxBuffer{Gateway: g, setup: g.current.Load(), key: key.Name}
	body, err := serving.ReadBody(w, r, serving.BodyLimits{Bytes: maxAuxBody, Time: mem.setup.bodyTime, Hold: mem.hold})
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.Header = r.Header.Clone()
	r.Header.Del("Content-Encoding") // body is already decompressed
	r.ContentLength = int64(len(body))
	return mem.free, err
}

// auxEntry returns the log entry of an auxiliary request. It is never nil.
func auxEntry(r *http.Request) *entry {
	if a, ok := r.Context().Value(auxResponseKey{}).(*auxResponse); ok {
		return &a.entry
	}
	return new(entry) // discarded
}

// identify returns the key of an auxiliary request.
func (g *Gateway) identify(r *http.Request) (access.Key, error) {
	note := auxEntry(r)
	key, err := g.keys.Identify(access.FromRequest(r))
	if err != nil {
		note.key = "?"
		return key, note.fail(refusal(err))
	}
	note.key = key.Name
	return key, nil
}

// fail records an error and returns it.
func (e *entry) fail(err error) error {
	e.err = err
	return err
}

// WriteHeader implements [http.ResponseWriter].
func (a *auxResponse) WriteHeader(status int) {
	a.begin(status)
	a.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (a *auxResponse) Write(p []byte) (int, error) {
	a.begin(http.StatusOK)
	n, err := a.ResponseWriter.Write(p)
	a.entry.bytes += int64(n)
	return n, err
}

func (a *auxResponse) begin(status int) {
	if a.entry.status == 0 {
		a.entry.status, a.entry.first = status, time.Since(a.entry.started)
	}
}

// Unwrap supports [http.ResponseController].
func (a *auxResponse) Unwrap() http.ResponseWriter { return a.ResponseWriter }
