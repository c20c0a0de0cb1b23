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

// form is the form that the response to a request must have.
type form int

const (
	// none: no vendor has this path. An error must still be one of the dialect.
	none form = iota
	// own: a path of the server itself, such as /healthz.
	own
	whole
	streamed
	// byBody: streamed or not, depending on the body of the request.
	byBody
	// listed: one object with its own rules.
	listed
)

// expectation describes what a request asks for, according to the wire reference.
type expectation struct {
	dialect dragoman.Dialect
	form    form
	rules   func(object) // rules for form
	array   bool         // a Gemini stream in the form of a JSON array
	model   string
	// usage reports whether a Chat stream must contain usage.
	usage bool
	// legacy: the request has functions and no tools, so its client does not know tools.
	legacy bool
}

// chatPaths lists the paths whose request body determines whether the response is a stream.
var chatPaths = map[string]dragoman.Dialect{
	"/v1/chat/completions": dialectname.OpenAIChat, "/v1/responses": dialectname.OpenAIResponses, "/v1/messages": dialectname.Anthropic, "/api/chat": dialectname.Ollama, "/v2/chat": "cohere.chat",
}

// ownPaths lists the paths of the server itself.
var ownPaths = map[string]bool{"/": true, "/healthz": true, "/metrics": true}

// geminiRoots lists the path prefixes of Gemini and Vertex models.
var geminiRoots = []string{"/v1beta/", "/v1/models/", "/v1/projects/", "/v1beta1/projects/"}

// expect returns what the URL and the headers of a request ask for.
func expect(r *http.Request) expectation {
	path := r.URL.Path
	if r.Method == http.MethodHead || ownPaths[path] {
		return expectation{form: own}
	}
	a := expectation{dialect: vendorOf(r), form: none}
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

// vendorOf returns the dialect of a request to a path that several vendors have, or "".
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

func (a expectation) posted(r *http.Request) expectation {
	path := r.URL.Path
	if d, ok := chatPaths[path]; ok {
		return expectation{dialect: d, form: byBody}
	}
	switch path {
	case "/v1/messages/count_tokens":
		return expectation{dialect: dialectname.Anthropic, form: listed, rules: func(o object) { o.count("input_tokens") }}
	case "/v1/responses/input_tokens":
		return expectation{dialect: dialectname.OpenAIResponses, form: listed, rules: func(o object) {
			o.is("object", "response.input_tokens")
			o.count("input_tokens")
		}}
	case "/api/show":
		return expectation{dialect: dialectname.Ollama, form: listed, rules: ollamaShown}
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

// maxBody limits how much of a request or response body is buffered.
const maxBody = 64 << 20

// requestCopy is a request body that stores a copy of what the server reads.
type requestCopy struct {
	io.ReadCloser
	mu   sync.Mutex // a server may respond while it reads
	body []byte
}

func (h *requestCopy) Read(p []byte) (int, error) {
	n, err := h.ReadCloser.Read(p)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.body = append(h.body, p[:min(n, maxBody-len(h.body))]...)
	return n, err
}

// bytes returns the uncompressed bytes that were read so far.
func (h *requestCopy) bytes(encoding string) []byte {
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
	plain, _ := io.ReadAll(io.LimitReader(z, maxBody)) // a truncated body fails as JSON below
	return plain
}

// take reads the expectations in the body of the request. It reports whether the body is a
// JSON object.
func (a *expectation) take(body []byte) bool {
	var request struct {
		Model, Stream json.RawMessage
		Options       json.RawMessage `json:"stream_options"`
		Functions     json.RawMessage
		Tools         json.RawMessage
	}
	if err := json.Unmarshal(body, &request); err != nil {
		return false
	}
	_ = json.Unmarshal(request.Model, &a.model) // only used in reports
	var options struct {
		Usage json.RawMessage `json:"include_usage"`
	}
	_ = json.Unmarshal(request.Options, &options) // absent or invalid options mean no usage
	a.legacy = a.dialect == dialectname.OpenAIChat && nonEmptyList(request.Functions) && !nonEmptyList(request.Tools)
	a.usage = string(options.Usage) == "true"
	stream := string(request.Stream) == "true"
	if a.dialect == dialectname.Ollama { // Ollama streams by default
		stream = string(request.Stream) != "false"
	}
	if a.form = whole; stream {
		a.form = streamed
	}
	return true
}

// nonEmptyList reports whether a field is a non-empty list.
func nonEmptyList(list json.RawMessage) bool {
	var elements []json.RawMessage
	return json.Unmarshal(list, &elements) == nil && len(elements) > 0
}
