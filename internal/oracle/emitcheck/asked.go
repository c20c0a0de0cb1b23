package emitcheck

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
)

// form is what an answer to a request must be.
type form int

const (
	// none: no vendor has this path. An error is one of the dialect all the same.
	none form = iota
	// own: the server's own matter.
	own
	whole
	streamed
	// byBody: whole or streamed, as the body of the request says.
	byBody
	// listed: one object with rules of its own.
	listed
)

// asked is what a request asks for, as the wire reference has it.
type asked struct {
	dialect dragoman.Dialect
	form    form
	rules   func(object) // of what is listed
	array   bool         // a stream of Gemini's that is one array
	model   string
	// usage says that a stream of Chat was to tell it.
	usage bool
	// legacy: the request has functions, and no tools, which its client knows nothing of.
	legacy bool
}

// chatPaths are those of requests whose body says whether the answer is streamed.
var chatPaths = map[string]dragoman.Dialect{
	"/v1/chat/completions": dialectname.OpenAIChat, "/v1/responses": dialectname.OpenAIResponses, "/v1/messages": dialectname.Anthropic, "/api/chat": dialectname.Ollama, "/v2/chat": "cohere.chat",
}

// ownPaths are of no vendor's.
var ownPaths = map[string]bool{"/": true, "/healthz": true, "/metrics": true}

// geminiRoots are below which Gemini and Vertex have their models.
var geminiRoots = []string{"/v1beta/", "/v1/models/", "/v1/projects/", "/v1beta1/projects/"}

// whatIsAsked is what the line and the headers of a request say.
func whatIsAsked(r *http.Request) asked {
	path := r.URL.Path
	if r.Method == http.MethodHead || ownPaths[path] {
		return asked{form: own}
	}
	a := asked{dialect: vendorOf(r), form: none}
	if r.Method == http.MethodPost {
		return a.posted(r)
	}
	if strings.HasPrefix(path, "/v1/responses/") {
		a.dialect = dialectname.OpenAIResponses
	}
	switch {
	case r.Method == http.MethodDelete && a.dialect == dialectname.OpenAIResponses:
		a.form, a.rules = listed, deletedResponse
	case r.Method != http.MethodGet:
	case a.dialect == dialectname.OpenAIResponses && strings.HasSuffix(path, "/input_items"):
		a.form, a.rules = listed, responsesItems
	case a.dialect == dialectname.OpenAIResponses && r.URL.Query().Get("stream") == "true":
		a.form = streamed
	case a.dialect == dialectname.OpenAIResponses:
		a.form = whole
	case path == "/api/version":
		a.form, a.rules = listed, ollamaVersion
	case path == "/v1/models", path == "/v1beta/models", path == "/api/tags":
		a.form, a.rules = listed, lists[a.dialect]
	case strings.HasPrefix(path, "/v1/models/"), strings.HasPrefix(path, "/v1beta/models/"):
		a.form, a.rules = listed, models[a.dialect]
	}
	return a
}

// vendorOf is whose client a request is of, at a path that several vendors have, or
// none.
func vendorOf(r *http.Request) dragoman.Dialect {
	if r.Header.Get("Anthropic-Version") != "" {
		return dialectname.Anthropic
	}
	for _, root := range roots {
		if strings.HasPrefix(r.URL.Path, root.path) {
			return root.dialect
		}
	}
	return dialectname.OpenAIChat
}

func (a asked) posted(r *http.Request) asked {
	path := r.URL.Path
	if d, ok := chatPaths[path]; ok {
		return asked{dialect: d, form: byBody}
	}
	switch path {
	case "/v1/messages/count_tokens":
		return asked{dialect: dialectname.Anthropic, form: listed, rules: func(o object) { o.count("input_tokens") }}
	case "/v1/responses/input_tokens":
		return asked{dialect: dialectname.OpenAIResponses, form: listed, rules: func(o object) {
			o.is("object", "response.input_tokens")
			o.count("input_tokens")
		}}
	case "/api/show":
		return asked{dialect: dialectname.Ollama, form: listed, rules: ollamaShown}
	}
	if rest, ok := strings.CutPrefix(path, "/model/"); ok {
		return converseCall(rest)
	}
	for _, root := range geminiRoots {
		if rest, ok := strings.CutPrefix(path, root); ok {
			return geminiCall(rest, r.URL.Query().Get("alt") != "sse")
		}
	}
	return a
}

// maxBody bounds what is remembered of the body of a request, and of an answer.
const maxBody = 64 << 20

// heard is the body of a request, which is remembered while its server reads it.
type heard struct {
	io.ReadCloser
	mu   sync.Mutex // a server may answer while it reads
	body []byte
}

func (h *heard) Read(p []byte) (int, error) {
	n, err := h.ReadCloser.Read(p)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.body = append(h.body, p[:min(n, maxBody-len(h.body))]...)
	return n, err
}

// bytes is what was read so far, unpacked.
func (h *heard) bytes(encoding string) []byte {
	h.mu.Lock()
	body := bytes.Clone(h.body)
	h.mu.Unlock()
	if !strings.EqualFold(encoding, "gzip") {
		return body
	}
	z, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil
	}
	plain, _ := io.ReadAll(io.LimitReader(z, maxBody)) // what is not whole is no JSON below
	return plain
}

// take reads of the body what the line did not say. It reports whether there is anything
// to read.
func (a *asked) take(body []byte) bool {
	var said struct {
		Model, Stream json.RawMessage
		Options       json.RawMessage `json:"stream_options"`
		Functions     json.RawMessage
		Tools         json.RawMessage
	}
	if err := json.Unmarshal(body, &said); err != nil {
		return false
	}
	_ = json.Unmarshal(said.Model, &a.model) // it only says which request it was
	var options struct {
		Usage json.RawMessage `json:"include_usage"`
	}
	_ = json.Unmarshal(said.Options, &options) // none
	a.legacy = a.dialect == dialectname.OpenAIChat && filled(said.Functions) && !filled(said.Tools)
	a.usage = string(options.Usage) == "true"
	stream := string(said.Stream) == "true"
	if a.dialect == dialectname.Ollama { // which streams unless it is told not to
		stream = string(said.Stream) != "false"
	}
	if a.form = whole; stream {
		a.form = streamed
	}
	return true
}

// filled reports whether a member is a list with anything in it.
func filled(list json.RawMessage) bool {
	var elements []json.RawMessage
	return json.Unmarshal(list, &elements) == nil && len(elements) > 0
}
