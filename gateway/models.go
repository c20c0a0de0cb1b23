package gateway

import (
	"context"
	"errors"
	"net/http"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/gateway/internal/access"
	"github.com/dragoman-go/dragoman/gateway/internal/recall"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/serving"
	"github.com/dragoman-go/dragoman/internal/serving/responsesapi"
	"github.com/dragoman-go/dragoman/models"
)

// listModels returns the models that the client may request by exact names. The names that a pattern
// matches are unbounded and not listed.
func (g *Gateway) listModels(r *http.Request) ([]serving.Model, error) {
	key, err := g.identify(r)
	if err != nil {
		return nil, err
	}
	var out []serving.Model
	s := g.current.Load()
	for _, name := range s.routes.Names() {
		if !key.Allows(name) {
			continue
		}
		model := serving.Model{Name: name, Owner: "dragoman"}
		if route, err := s.find(name, key.Allows); err == nil {
			model = route.describe(r.Context(), name)
		}
		out = append(out, model)
	}
	return out, nil
}

// findModel returns a model that the client may request.
func (g *Gateway) findModel(r *http.Request, name string) (serving.Model, error) {
	key, err := g.identify(r)
	if err != nil {
		return serving.Model{}, err
	}
	note := auxEntry(r)
	current := g.current.Load()
	name = current.routes.withoutDefaultTag(name, serving.CodecOf(r))
	note.model = name
	if !key.Allows(name) {
		return serving.Model{}, note.fail(current.notAllowed(&key, name))
	}
	route, err := current.find(name, key.Allows)
	if err != nil {
		return serving.Model{}, note.fail(err)
	}
	note.route = route.Pattern
	return route.describe(r.Context(), name), nil
}

// describe returns the facts about the first model of a route, from the type of its
// provider, the model file and the capabilities of the config.
func (r *route) describe(ctx context.Context, name string) serving.Model {
	out := serving.Model{Name: name, Owner: "dragoman"}
	links := r.chain.Links
	if len(links) == 0 {
		return out
	}
	client := r.upstreams[links[0].Name].client
	if client == nil {
		return out
	}
	m, _ := client.Fact("")
	out.Context, out.NoTools = m.Context, m.Tools == models.No
	if target, _, err := client.Target(ctx, ""); err == nil {
		out.NoThinking = target.Caps.NoThinking
		out.NoTools = out.NoTools || target.Caps.NoTools
		out.NoVision = !target.Caps.AcceptsMedia(codes.MediaImage)
	}
	return out
}

// notAllowed returns the error for a model that a key may not use.
func (s *setup) notAllowed(k *access.Key, model string) error {
	return refusal(&access.RefusedError{
		Reason: access.ModelNotAllowed, Key: k.Name, Model: model, Allowed: k.Models, Suggestion: s.suggest(model, k.Allows),
	})
}

// serveHealth reports that the gateway is running. It reveals nothing else. During shutdown the
// gateway no longer listens, so there is no unhealthy response.
func (g *Gateway) serveHealth(w http.ResponseWriter, _ *http.Request) {
	serving.WriteJSON(w, struct {
		Status string `json:"status"`
	}{"ok"})
}

// requireKey returns an error for a client without a valid key, if there are keys.
func (g *Gateway) requireKey(r *http.Request) error {
	_, err := g.identify(r)
	return err
}

// getResponse returns a response that the gateway or its upstream stores.
func (g *Gateway) getResponse(w http.ResponseWriter, r *http.Request) {
	g.withStoredResponse(w, r, func(_ *access.Key, body []byte) error {
		if r.URL.Query().Get("stream") == "true" { // the client expects events
			return &ownError{&dragoman.APIError{Class: dragoman.ErrorBadRequest, Param: "stream", Message: "the gateway stores this response itself and cannot stream it again; leave out stream"}}
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body) // the client may have disconnected
		return nil
	})
}

// withStoredResponse calls deal with the key and a response that the gateway stores, and forwards
// requests for other responses to the upstream that stores them.
func (g *Gateway) withStoredResponse(w http.ResponseWriter, r *http.Request, deal func(*access.Key, []byte) error) {
	key, err := g.admitStateRequest(r)
	if err != nil {
		writeAuxError(w, r, err)
		return
	}
	stored, err := g.storedResponse(r.Context(), key.Name, r.PathValue("id"))
	found := stored != nil
	switch {
	case err != nil:
	case found:
		err = deal(&key, stored.Body)
	default:
		if found, err = g.forwardStored(w, r, &key, ""); err == nil && !found {
			err = noResponse(r.PathValue("id"))
		}
	}
	if err != nil {
		writeAuxError(w, r, err)
	}
}

// deleteResponse deletes a response that the gateway or its upstream stores.
func (g *Gateway) deleteResponse(w http.ResponseWriter, r *http.Request) {
	g.withStoredResponse(w, r, func(key *access.Key, _ []byte) error {
		id := r.PathValue("id")
		err := errors.Join(g.opts.Notes.Delete(r.Context(), bodyKey(key.Name, id)), g.recall.DeleteResponse(r.Context(), key.Name, id))
		if err != nil && !errors.Is(err, recall.ErrNotFound) {
			return err
		}
		responsesapi.WriteDeleted(w, id, "response")
		return nil
	})
}

func noResponse(id string) error { return &ownError{responsesapi.UnknownResponse(id)} }
