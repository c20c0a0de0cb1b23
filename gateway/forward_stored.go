package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/gateway/internal/access"
	"github.com/dragoman-go/dragoman/internal/dialects"
	"github.com/dragoman-go/dragoman/internal/modelcall"
	"github.com/dragoman-go/dragoman/internal/serving"
	"github.com/dragoman-go/dragoman/provider"
)

// Requests for responses that an upstream stores are forwarded to it, for the key that owns
// them: the gateway stores where each response came from.

// responseSource is the requested model of a response, and the model of its route that responded.
type responseSource struct {
	Model string `json:"model"`
	Link  string `json:"link"`
}

// ownerKey returns the key of the note that a virtual key owns a response that the upstream
// stores.
func ownerKey(key, id string) string { return "owner " + bodyKey(key, id) }

// recordsOwner reports whether the gateway must record which upstream stores a response, and which
// key owns it.
func (x *exchange) recordsOwner() bool {
	if x.stateful() {
		return !x.keys.Open() || !x.head.unstored
	}
	return x.checksOwner()
}

// recordResponseOwner stores the owner and the upstream of a response before the client gets its id.
func (x *exchange) recordResponseOwner(ctx context.Context, id string) {
	if id == "" || !x.recordsOwner() || x.up != nil && x.up.dialect != x.codec.Dialect() { // otherwise the gateway stores it itself
		return
	}
	from, err := json.Marshal(responseSource{Model: x.head.model, Link: x.entry.upstream})
	until := x.opts.Now().Add(max(x.ttl, upstreamTTL))
	if err == nil {
		err = x.opts.Notes.Put(ctx, ownerKey(x.entry.key, id), from, until)
	}
	if err == nil && !x.keys.Open() {
		err = x.opts.Notes.Put(ctx, firstOwnerKey(id), []byte(x.entry.key), until)
	}
	if err != nil {
		x.warn(ctx, "the owner of a response could not be stored", err)
	}
}

// forwardStored forwards a request for a response, or for a subresource, to the upstream that
// stores it. found is false if no upstream does, and then nothing was written.
func (g *Gateway) forwardStored(w http.ResponseWriter, r *http.Request, key *access.Key, below string) (found bool, err error) {
	id := r.PathValue("id")
	b, found, err := g.opts.Notes.Get(r.Context(), ownerKey(key.Name, id))
	var from responseSource
	if err != nil || !found || json.Unmarshal(b, &from) != nil || !key.Allows(from.Model) {
		return false, err
	}
	note := auxEntry(r)
	way, err := g.current.Load().find(from.Model, key.Allows)
	if err != nil { // the config has changed
		return false, nil
	}
	up := way.upstreams[from.Link]
	if up == nil || up.client == nil || !up.stateful() {
		return false, nil
	}
	note.model, note.route, note.upstream, note.series, note.transparent = from.Model, way.Pattern, from.Link, way.metricName(from.Link), true
	isStream := r.URL.Query().Get("stream") == "true"
	passed, err := up.client.Pass(r.Context(), modelcall.PassRequest{
		Model: from.Model, StoredPath: id + below, Method: r.Method, Header: r.Header, Query: r.URL.RawQuery, Stream: isStream,
	})
	if errors.Is(err, dragoman.ErrInvalid) { // no server would store it under such a name
		return false, nil
	}
	if err != nil {
		return true, err
	}
	defer func() { _ = passed.Body.Close() }() // only read: a close error loses nothing
	if passed.Err != nil && upstreamError(passed.Err) != passed.Err {
		return true, passed.Err
	}
	copyHeader(w.Header(), passed.Header)
	if isStream && passed.Err == nil {
		w.Header().Set("X-Accel-Buffering", "no") // quirk J2
		w.Header().Set("Cache-Control", "no-cache")
	}
	if !key.HideUpstream {
		w.Header().Set(upstreamHeader, headerName(from.Link))
	}
	w.WriteHeader(passed.Status)
	var body io.Reader = passed.Body
	if below == "" && passed.Err == nil && r.Method == http.MethodGet {
		guarded := newGuardedBody(up, passed.Body)
		defer func() { note.transparent = !guarded.guard.Blocked() }()
		body = guarded
	}
	if g.keys.Open() || passed.Err != nil || r.Method != http.MethodGet {
		return true, copyFlushing(w, body, nil)
	}
	learn := newItemScanner(func(ids []string) error { return g.recordOwnerIfUnclaimed(r.Context(), key.Name, from, ids...) })
	return true, copyFlushing(w, body, learn)
}

// copyFlushing copies a response and flushes every chunk. learn, unless it is nil, gets every
// chunk before it is sent.
func copyFlushing(w http.ResponseWriter, from io.Reader, learn *itemScanner) error {
	out, buf := http.NewResponseController(w), make([]byte, readBufferSize)
	for {
		n, err := from.Read(buf)
		if learn != nil {
			if err := learn.read(buf[:n], err != nil); err != nil {
				return markStarted(err) // the status was sent
			}
		}
		if n > 0 {
			if _, err := w.Write(buf[:n]); err != nil {
				return nil //nolint:nilerr // the client disconnected; nothing left to send
			}
			_ = out.Flush() // unflushed bytes are sent at the end
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return markStarted(err)
		}
	}
}

// admitStateRequest returns the key of a request for stored state, and counts the request.
func (g *Gateway) admitStateRequest(r *http.Request) (access.Key, error) {
	key, err := g.identify(r)
	if err != nil {
		return key, err
	}
	if err := g.keys.Visit(access.FromRequest(r)); err != nil {
		return key, refusal(err)
	}
	return key, nil
}

// subresource returns a handler for a subresource of a response that an upstream stores.
func (g *Gateway) subresource(below string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		key, err := g.admitStateRequest(r)
		if err != nil {
			writeAuxError(w, r, err)
			return
		}
		g.serveSubresource(w, r, &key, below)
	}
}

// serveSubresource serves a subresource for a request that is already counted.
func (g *Gateway) serveSubresource(w http.ResponseWriter, r *http.Request, key *access.Key, below string) {
	found, err := g.forwardStored(w, r, key, below)
	if err == nil && !found {
		err = noResponse(r.PathValue("id"))
		if _, stored, _ := g.opts.Notes.Get(r.Context(), bodyKey(key.Name, r.PathValue("id"))); stored {
			err = &ownError{serving.AsRequestError(errors.New("the gateway stores this response itself and has no " + strings.TrimPrefix(below, "/") + " for it"))}
		}
	}
	if err != nil {
		writeAuxError(w, r, err)
	}
}

// writeAuxError records and writes the error of an auxiliary request. After the first byte it
// closes the connection, so that the client does not treat the response as complete.
func writeAuxError(w http.ResponseWriter, r *http.Request, err error) {
	if err = auxEntry(r).fail(err); errors.Is(err, provider.ErrStreamStarted) {
		panic(http.ErrAbortHandler)
	}
	serving.WriteError(w, dialects.Stateful(), apiError(err))
}
