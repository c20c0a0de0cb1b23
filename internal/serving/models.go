package serving

import (
	"encoding/json"
	"errors"
	"fmt"
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

// Model is a model as servers list it.
type Model struct {
	Name string
	// Owner is who serves it.
	Owner string
	// Created is when, and Context how many tokens it takes; 0: not known.
	Created time.Time
	Context int64
	// NoTools, NoThinking and NoVision say that the model is known not to call tools, to
	// think, or to take images.
	NoTools, NoThinking, NoVision bool
}

// OllamaVersion is the version of Ollama whose API is served. Its clients compare it: an
// editor may ask for 0.6.4 or newer, and takes anything but three numbers for too old.
const OllamaVersion = "0.34.4"

// Models are those that a server has.
type Models struct {
	// List are the models that a client may see; Find is one of them by any of its
	// names, or an error.
	List func(*http.Request) ([]Model, error)
	Find func(r *http.Request, name string) (Model, error)
	// Allow refuses who may not ask at all, before anything is read; nil: everybody may.
	Allow func(*http.Request) error
	// MaxBytes bounds the bodies of requests; 0 means 64 MiB.
	MaxBytes int
}

// Handle serves what clients ask before they ask a model:
//
//	GET  /v1/models, /v1/models/{model}          OpenAI and Anthropic
//	GET  /v1beta/models, /v1beta/models/{model}  Gemini
//	GET  /api/tags, POST /api/show, GET /api/ps, GET /api/version
func (m Models) Handle(mux *http.ServeMux) {
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, r *http.Request) {
		if isAnthropic(r) {
			m.list(w, r, anthropic.Codec{}, anthropicList)
		} else {
			m.list(w, r, openaichat.Codec{}, openaiList)
		}
	})
	mux.HandleFunc("GET /v1/models/{name...}", func(w http.ResponseWriter, r *http.Request) {
		if isAnthropic(r) {
			m.one(w, r, anthropic.Codec{}, r.PathValue("name"), func(model Model) any { return newAnthropicModel(model) })
		} else {
			m.one(w, r, openaichat.Codec{}, r.PathValue("name"), func(model Model) any { return newOpenAIModel(model) })
		}
	})
	mux.HandleFunc("GET /v1beta/models", func(w http.ResponseWriter, r *http.Request) {
		m.list(w, r, gemini.Codec{}, geminiList)
	})
	mux.HandleFunc("GET /v1beta/models/{name...}", func(w http.ResponseWriter, r *http.Request) {
		m.one(w, r, gemini.Codec{}, r.PathValue("name"), func(model Model) any { return newGeminiModel(model) })
	})
	mux.HandleFunc("GET /api/tags", func(w http.ResponseWriter, r *http.Request) {
		m.list(w, r, ollama.Codec{}, ollamaList)
	})
	mux.HandleFunc("GET /api/version", func(w http.ResponseWriter, _ *http.Request) {
		WriteJSON(w, struct {
			Version string `json:"version"`
		}{OllamaVersion})
	})
	mux.HandleFunc("GET /api/ps", func(w http.ResponseWriter, r *http.Request) {
		// No model is loaded here: upstreams have theirs ready. Only who may list models is
		// told so.
		m.list(w, r, ollama.Codec{}, func([]Model) any { return ollamaList(nil) })
	})
	mux.HandleFunc("POST /api/show", m.show)
}

// WriteJSON answers with a value.
func WriteJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	b, err := json.Marshal(v)
	if err != nil {
		WriteError(w, openaichat.Codec{}, err)
		return
	}
	_, _ = w.Write(b) // who has gone away is told nothing
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

// each makes a list, which is never null.
func each[T any](all []Model, of func(Model) T) []T {
	out := make([]T, len(all))
	for i := range all {
		out[i] = of(all[i])
	}
	return out
}

type openaiModel struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

func newOpenAIModel(m Model) openaiModel {
	created := int64(0)
	if !m.Created.IsZero() {
		created = m.Created.Unix()
	}
	return openaiModel{ID: m.Name, Object: "model", Created: created, OwnedBy: m.Owner}
}

func openaiList(all []Model) any {
	return struct {
		Object string        `json:"object"`
		Data   []openaiModel `json:"data"`
	}{"list", each(all, newOpenAIModel)}
}

type anthropicModel struct {
	Type           string `json:"type"`
	ID             string `json:"id"`
	DisplayName    string `json:"display_name"`
	CreatedAt      string `json:"created_at"`
	MaxInputTokens int64  `json:"max_input_tokens,omitempty"`
}

func newAnthropicModel(m Model) anthropicModel {
	return anthropicModel{Type: "model", ID: m.Name, DisplayName: m.Name, CreatedAt: m.date(), MaxInputTokens: m.Context}
}

func (m Model) date() string {
	if m.Created.IsZero() {
		m.Created = time.Unix(0, 0) // as Anthropic says that it does not know
	}
	return m.Created.UTC().Format(time.RFC3339)
}

func anthropicList(all []Model) any {
	list := struct {
		Data    []anthropicModel `json:"data"`
		HasMore bool             `json:"has_more"`
		First   *string          `json:"first_id"`
		Last    *string          `json:"last_id"`
	}{Data: each(all, newAnthropicModel)}
	if len(all) > 0 {
		list.First, list.Last = &all[0].Name, &all[len(all)-1].Name
	}
	return list
}

type geminiModel struct {
	Name        string   `json:"name"`
	DisplayName string   `json:"displayName"`
	InputLimit  int64    `json:"inputTokenLimit,omitempty"`
	Methods     []string `json:"supportedGenerationMethods"`
}

func newGeminiModel(m Model) geminiModel {
	return geminiModel{
		Name: "models/" + m.Name, DisplayName: m.Name, InputLimit: m.Context,
		Methods: []string{"generateContent", "streamGenerateContent", "countTokens"},
	}
}

func geminiList(all []Model) any {
	return struct {
		Models []geminiModel `json:"models"`
	}{each(all, newGeminiModel)}
}

type ollamaDetails struct {
	Parent       string   `json:"parent_model"`
	Format       string   `json:"format"`
	Family       string   `json:"family"`
	Families     []string `json:"families"`
	Size         string   `json:"parameter_size"`
	Quantization string   `json:"quantization_level"`
}

type ollamaModel struct {
	Name         string        `json:"name"`
	Model        string        `json:"model"`
	Modified     string        `json:"modified_at"`
	Size         int64         `json:"size"`
	Digest       string        `json:"digest"`
	Details      ollamaDetails `json:"details"`
	Capabilities []string      `json:"capabilities"`
}

func newOllamaModel(m Model) ollamaModel {
	return ollamaModel{
		Name: m.Name, Model: m.Name, Modified: m.date(), Digest: strings.Repeat("0", 64),
		Details: m.details(), Capabilities: m.capabilities(),
	}
}

func (m Model) details() ollamaDetails {
	return ollamaDetails{Format: m.Owner, Family: m.Owner, Families: []string{m.Owner}, Size: "0B", Quantization: "none"}
}

// capabilities returns the capabilities of a model in Ollama's words. An unknown model has
// all of them, because clients hide what is not listed.
func (m Model) capabilities() []string {
	out := []string{"completion"}
	for _, c := range []struct {
		name string
		not  bool
	}{{"tools", m.NoTools}, {"thinking", m.NoThinking}, {"vision", m.NoVision}} {
		if !c.not {
			out = append(out, c.name)
		}
	}
	return out
}

func ollamaList(all []Model) any {
	return struct {
		Models []ollamaModel `json:"models"`
	}{each(all, newOllamaModel)}
}

// show tells about a model as Ollama does.
func (m Models) show(w http.ResponseWriter, r *http.Request) {
	if m.Allow != nil {
		if err := m.Allow(r); err != nil {
			WriteError(w, ollama.Codec{}, err)
			return
		}
	}
	body, err := Body(w, r, dialect.DecodeOptions{MaxBytes: m.MaxBytes}.Limit())
	if err != nil {
		WriteError(w, ollama.Codec{}, err)
		return
	}
	var asked struct{ Model, Name string }
	if err := json.Unmarshal(body, &asked); err != nil {
		WriteError(w, ollama.Codec{}, Refuse(err))
		return
	}
	if asked.Model == "" {
		asked.Model = asked.Name // as older clients say
	}
	if asked.Model == "" {
		WriteError(w, ollama.Codec{}, Refuse(errors.New("the field model is missing")))
		return
	}
	m.one(w, r, ollama.Codec{}, asked.Model, func(model Model) any {
		return struct {
			License      string         `json:"license"`
			Modelfile    string         `json:"modelfile"`
			Parameters   string         `json:"parameters"`
			Template     string         `json:"template"`
			Details      ollamaDetails  `json:"details"`
			Info         map[string]any `json:"model_info"`
			Capabilities []string       `json:"capabilities"`
			Modified     string         `json:"modified_at"`
		}{
			Modelfile: "FROM " + model.Name + "\n", Template: "{{ .Prompt }}",
			Details: model.details(), Info: model.info(), Capabilities: model.capabilities(), Modified: model.date(),
		}
	})
}

// info returns the counts of a model. The ollama command expects each of them to be a
// number, so an unknown count is 0.
func (m Model) info() map[string]any {
	return map[string]any{
		"general.architecture":        m.Owner,
		"general.basename":            m.Name,
		"general.parameter_count":     0,
		m.Owner + ".context_length":   m.Context,
		m.Owner + ".embedding_length": 0,
	}
}

// innerRequest is the request whose tokens Gemini is asked to count, which stands in
// the body or in a member of it.
func innerRequest(body []byte) []byte {
	var outer struct {
		Request json.RawMessage `json:"generateContentRequest"`
	}
	if json.Unmarshal(body, &outer) == nil && len(outer.Request) > 0 && outer.Request[0] == '{' {
		return outer.Request
	}
	return body
}

// CountBody tells how many tokens a request has (quirk J5).
func CountBody(d dragoman.Dialect, n int64) []byte {
	switch d {
	case dragoman.Gemini:
		return fmt.Appendf(nil, `{"totalTokens":%d}`, n)
	case dragoman.OpenAIResponses:
		return fmt.Appendf(nil, `{"object":"response.input_tokens","input_tokens":%d}`, n)
	default:
		return fmt.Appendf(nil, `{"input_tokens":%d}`, n)
	}
}
