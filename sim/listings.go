package sim

import (
	"net/http"
	"strings"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/gemini"
	"github.com/dragoman-go/dragoman/dialect/ollama"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
)

// contextLength is how many tokens the models say they take. None is refused.
const contextLength = 1 << 20

// listings serves what clients ask before they ask a model.
func (s *server) listings(mux *http.ServeMux) {
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("content-type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte("The simulator is running.\n"))
	})
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, r *http.Request) {
		of := openaiModel
		if isAnthropic(r) {
			of = anthropicModel
		}
		list := eachModel(of)
		out := newObject("object", "list", "data", list)
		if isAnthropic(r) {
			out = newObject("data", list, "has_more", false, "first_id", at(list, 0, "id"), "last_id", at(list, len(list)-1, "id"))
		}
		writeJSON(w, out)
	})
	mux.HandleFunc("GET /v1/models/{name...}", func(w http.ResponseWriter, r *http.Request) {
		of, codec := openaiModel, dialect.Codec(openaichat.Codec{})
		if isAnthropic(r) {
			of, codec = anthropicModel, anthropic.Codec{}
		}
		writeModel(w, codec, r.PathValue("name"), of)
	})
	mux.HandleFunc("GET /v1beta/models", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, newObject("models", eachModel(geminiModel)))
	})
	mux.HandleFunc("GET /v1beta/models/{name...}", func(w http.ResponseWriter, r *http.Request) {
		writeModel(w, gemini.Codec{}, r.PathValue("name"), geminiModel)
	})
	mux.HandleFunc("GET /api/tags", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, newObject("models", eachModel(ollamaModel)))
	})
	mux.HandleFunc("GET /api/version", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, newObject("version", "0.0.0-sim"))
	})
	mux.HandleFunc("POST /api/show", s.show)
}

// isAnthropic reports whether a client of a path that two vendors have speaks
// Anthropic's dialect: its clients always name the version.
func isAnthropic(r *http.Request) bool { return r.Header.Get("anthropic-version") != "" }

func eachModel(of func(name string) *object) []any {
	var out []any
	for _, name := range Names() {
		out = append(out, of(name))
	}
	return out
}

// writeModel tells about one model.
func writeModel(w http.ResponseWriter, codec dialect.Codec, name string, of func(string) *object) {
	if _, err := parseName(name); err != nil {
		writeError(w, codec, err)
		return
	}
	writeJSON(w, of(name))
}

func openaiModel(name string) *object {
	return newObject("id", name, "object", "model", "created", created, "owned_by", "dragoman")
}

func anthropicModel(name string) *object {
	return newObject("type", "model", "id", name, "display_name", name, "created_at", createdAt(), "max_input_tokens", contextLength)
}

func geminiModel(name string) *object {
	return newObject("name", "models/"+name, "displayName", name, "inputTokenLimit", contextLength,
		"supportedGenerationMethods", []any{"generateContent", "streamGenerateContent", "countTokens"})
}

func ollamaModel(name string) *object {
	return newObject("name", name, "model", name, "modified_at", createdAt(), "size", 0, "digest", strings.Repeat("0", 64),
		"details", ollamaDetails(), "capabilities", capabilities())
}

func ollamaDetails() *object {
	return newObject("parent_model", "", "format", "sim", "family", "sim", "families", []any{"sim"}, "parameter_size", "0B", "quantization_level", "none")
}

func capabilities() []any { return []any{"completion", "tools", "thinking", "vision"} }

func createdAt() string { return time.Unix(created, 0).UTC().Format(time.RFC3339) }

// show tells about a model as Ollama does.
func (s *server) show(w http.ResponseWriter, r *http.Request) {
	body, err := s.body(w, r)
	if err != nil {
		writeError(w, ollama.Codec{}, err)
		return
	}
	asked, err := parseTree(body)
	if err != nil {
		writeError(w, ollama.Codec{}, refuse(err))
		return
	}
	name, _ := at(asked, "model").(string)
	if name == "" {
		name, _ = at(asked, "name").(string) // as older clients say
	}
	writeModel(w, ollama.Codec{}, name, func(string) *object {
		return newObject("modified_at", createdAt(), "details", ollamaDetails(), "capabilities", capabilities(),
			"model_info", newObject("general.architecture", "sim", "sim.context_length", contextLength))
	})
}

// countMessages counts the tokens of a request to Anthropic (quirk J5).
func (s *server) countMessages(w http.ResponseWriter, r *http.Request) {
	req, err := s.read(w, r, anthropic.Codec{})
	if err == nil {
		_, err = parseName(req.Model)
	}
	if err != nil {
		writeError(w, anthropic.Codec{}, err)
		return
	}
	writeJSON(w, newObject("input_tokens", CountTokens(req)))
}

// countContents counts the tokens of a request to Gemini, which stands in the body
// or in a member of it.
func (s *server) countContents(w http.ResponseWriter, r *http.Request, model string) {
	body, err := s.body(w, r)
	if err == nil {
		_, err = parseName(model)
	}
	var req *dragoman.Request
	if err == nil {
		if tree, parseErr := parseTree(body); parseErr == nil {
			if inner := objectAt(tree, "generateContentRequest"); inner != nil {
				body = appendTree(nil, inner)
			}
		}
		req, _, err = gemini.Codec{}.DecodeRequest(body, dialect.DecodeOptions{MaxBytes: s.maxBytes()})
		if err != nil {
			err = refuse(err)
		}
	}
	if err != nil {
		writeError(w, gemini.Codec{}, err)
		return
	}
	writeJSON(w, newObject("totalTokens", CountTokens(req)))
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("content-type", "application/json")
	_, _ = w.Write(appendTree(nil, v))
}
