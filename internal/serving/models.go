package serving

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/wire"
	"github.com/dragoman-go/dragoman/internal/dialects"
)

// Model is a model as servers list it.
type Model = wire.Model

// Models serves the models of a server.
type Models struct {
	// List returns the models that a client may see. Find returns one of them by any of
	// its names, or an error.
	List func(*http.Request) ([]Model, error)
	Find func(r *http.Request, name string) (Model, error)
	// Allow refuses clients without access before anything is read; nil allows every
	// client.
	Allow func(*http.Request) error
	// MaxBytes limits the bodies of requests; 0 means 64 MiB.
	MaxBytes int
}

// Handle serves the lists of models at the paths of the vendors. If several vendors
// share a path, the API version header identifies the client.
func (m Models) Handle(mux *http.ServeMux) {
	paths := map[string][]dialect.Codec{}
	for _, codec := range dialects.All() {
		if lists := wire.Of(codec).Serving.Models; lists != nil {
			paths[lists.Path] = append(paths[lists.Path], codec)
			m.handle(mux, codec, lists)
		}
	}
	for path, codecs := range paths {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
			codec := clientAt(r, codecs)
			m.list(w, r, codec, wire.Of(codec).Serving.Models.List)
		})
		if !wire.Of(codecs[0]).Serving.Models.One {
			continue
		}
		mux.HandleFunc("GET "+path+"/{name...}", func(w http.ResponseWriter, r *http.Request) {
			codec := clientAt(r, codecs)
			m.one(w, r, codec, r.PathValue("name"), wire.Of(codec).Serving.Models.Show)
		})
	}
}

// clientAt returns the dialect of a client at a path that all of codecs have.
func clientAt(r *http.Request, codecs []dialect.Codec) dialect.Codec {
	for _, codec := range codecs {
		if isClient(r, codec) {
			return codec
		}
	}
	return codecs[0]
}

// handle serves the paths that only one vendor has.
func (m Models) handle(mux *http.ServeMux, codec dialect.Codec, lists *wire.Models) {
	if lists.VersionPath != "" {
		mux.HandleFunc("GET "+lists.VersionPath, func(w http.ResponseWriter, _ *http.Request) { WriteJSON(w, lists.Version) })
	}
	if lists.Running != "" {
		mux.HandleFunc("GET "+lists.Running, func(w http.ResponseWriter, r *http.Request) {
			// No model is loaded here: upstreams have theirs ready. Only clients that
			// may list models get this response.
			m.list(w, r, codec, func([]Model) any { return lists.List(nil) })
		})
	}
	if lists.ShowPath != "" {
		mux.HandleFunc("POST "+lists.ShowPath, func(w http.ResponseWriter, r *http.Request) { m.show(w, r, codec, lists.Details) })
	}
}

// WriteJSON writes a value as a JSON response.
func WriteJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	b, err := json.Marshal(v)
	if err != nil {
		WriteError(w, dialects.Default(), err)
		return
	}
	_, _ = w.Write(b) // the client may be gone
}

func (m Models) list(w http.ResponseWriter, r *http.Request, codec dialect.Codec, of func([]Model) any) {
	all, err := m.List(r)
	if err != nil {
		WriteError(w, codec, err)
		return
	}
	WriteJSON(w, of(all))
}

func (m Models) one(w http.ResponseWriter, r *http.Request, codec dialect.Codec, name string, of func(Model) any) {
	model, err := m.Find(r, name)
	if err != nil {
		WriteError(w, codec, err)
		return
	}
	model.Name = name
	WriteJSON(w, of(model))
}

// show returns a model whose name is in the body of the request.
func (m Models) show(w http.ResponseWriter, r *http.Request, codec dialect.Codec, details func(Model) any) {
	if m.Allow != nil {
		if err := m.Allow(r); err != nil {
			WriteError(w, codec, err)
			return
		}
	}
	body, err := Body(w, r, dialect.DecodeOptions{MaxBytes: m.MaxBytes}.Limit())
	if err != nil {
		WriteError(w, codec, err)
		return
	}
	var query struct{ Model, Name string }
	if err := json.Unmarshal(body, &query); err != nil {
		WriteError(w, codec, AsRequestError(err))
		return
	}
	if query.Model == "" {
		query.Model = query.Name // older clients use this field
	}
	if query.Model == "" {
		WriteError(w, codec, AsRequestError(errors.New("the field model is missing")))
		return
	}
	m.one(w, r, codec, query.Model, details)
}

// CountBody returns the body of a count of tokens (quirk J5).
func CountBody(codec dialect.Codec, n int64) []byte {
	return fmt.Appendf(nil, wire.Of(codec).Endpoint.CountBody, n)
}
