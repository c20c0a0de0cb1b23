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
	"github.com/dragoman-go/dragoman/internal/serving"
	"github.com/dragoman-go/dragoman/internal/serving/passthrough"
	"github.com/dragoman-go/dragoman/provider"
)

// Requests for responses that an upstream stores are forwarded to it, for the key that owns
// them: the gateway stores where each response came from.

// origin is the origin of a response: the requested model, and the model of its route that
// responded.
type origin struct {
	Model string `json:"model"`
	Link  string `json:"link"`
}

// ownerKey returns the key of the note that a virtual key owns a response that the upstream
// stores.
func ownerKey(key, id string) string { return "owner " + bodyKey(key, id) }

// keptElsewhere reports whether the gateway must store which upstream has a response, and which
// key owns it.
func (x *exchange) keptElsewhere() bool {
	if x.stateful() {
		return !x.keys.Open() || !x.asked.unstored
	}
	return x.owned()
}

// own stores the owner and the upstream of a response before the client gets its id.
func (x *exchange) own(ctx context.Context, id string) {
	if id == "" || !x.keptElsewhere() || x.up != nil && x.up.dialect != x.codec.Dialect() { // or the gateway keeps it itself
		return
	}
	from, err := json.Marshal(origin{Model: x.asked.model, Link: x.entry.upstream})
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

// elsewhere forwards a request for a response, or for a subresource, to the upstream that
// stores it. It reports whether there is one.
func (g *Gateway) elsewhere(w http.ResponseWriter, r *http.Request, key *access.Key, below string) (found bool, err error) {
	id := r.PathValue("id")
	b, found, err := g.opts.Notes.Get(r.Context(), ownerKey(key.Name, id))
	var from origin
	if err != nil || !found || json.Unmarshal(b, &from) != nil || !key.Allows(from.Model) {
		return false, err
	}
	note := noteOf(r)
	way, err := g.current.Load().find(from.Model, key.Allows)
	if err != nil { // the config has changed
		return false, nil
	}
	up := way.upstreams[from.Link]
	if up == nil || up.client == nil || !up.stateful() {
		return false, nil
	}
	note.model, note.route, note.upstream, note.series, note.transparent = from.Model, way.Pattern, from.Link, way.series(from.Link), true
	isStream := r.URL.Query().Get("stream") == "true"
	passed, err := up.client.Pass(r.Context(), passthrough.Request{
		Model: from.Model, Kept: id + below, Method: r.Method, Header: r.Header, Query: r.URL.RawQuery, Stream: isStream,
	})
	if errors.Is(err, dragoman.ErrInvalid) { // no server would store it under such a name
		return false, nil
	}
	if err != nil {
		return true, err
	}
	defer func() { _ = passed.Body.Close() }() // as much as needed was read
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
		return true, flushing(w, body, nil)
	}
	learn := newLearner(func(ids []string) error { return g.noteRepeated(r.Context(), key.Name, from, ids...) })
	return true, flushing(w, body, learn)
}

// flushing copies a response as it arrives. learn, unless it is nil, gets every chunk
// before it is sent.
func flushing(w http.ResponseWriter, from io.Reader, learn *learner) error {
	out, buf := http.NewResponseController(w), make([]byte, room)
	for {
		n, err := from.Read(buf)
		if learn != nil {
			if err := learn.see(buf[:n], err != nil); err != nil {
				return begun(err) // the status was sent
			}
		}
		if n > 0 {
			if _, err := w.Write(buf[:n]); err != nil {
				return nil //nolint:nilerr // the client disconnected; nothing left to send
			}
			_ = out.Flush() // what cannot be flushed is sent at the end
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return begun(err)
		}
	}
}

// visitor returns the key of a request for stored state, and counts the request.
func (g *Gateway) visitor(r *http.Request) (access.Key, error) {
	key, err := g.who(r)
	if err != nil {
		return key, err
	}
	if err := g.keys.Visit(access.FromRequest(r)); err != nil {
		return key, refusal(err)
	}
	return key, nil
}

// about serves a subresource of a response that its upstream stores.
func (g *Gateway) about(below string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		key, err := g.visitor(r)
		if err != nil {
			refuse(w, r, err)
			return
		}
		g.serveBelow(w, r, &key, below)
	}
}

// serveBelow does the work of about after the request is counted.
func (g *Gateway) serveBelow(w http.ResponseWriter, r *http.Request, key *access.Key, below string) {
	found, err := g.elsewhere(w, r, key, below)
	if err == nil && !found {
		err = noResponse(r.PathValue("id"))
		if _, kept, _ := g.opts.Notes.Get(r.Context(), bodyKey(key.Name, r.PathValue("id"))); kept {
			err = &ownError{serving.AsRequestError(errors.New("the gateway stores this response itself and has no " + strings.TrimPrefix(below, "/") + " for it"))}
		}
	}
	if err != nil {
		refuse(w, r, err)
	}
}

// refuse writes the error. After the first byte it closes the connection, so that the client
// does not take the response for complete.
func refuse(w http.ResponseWriter, r *http.Request, err error) {
	if err = noteOf(r).failed(err); errors.Is(err, provider.ErrStreamStarted) {
		panic(http.ErrAbortHandler)
	}
	serving.WriteError(w, dialects.Stateful(), apiError(err))
}
