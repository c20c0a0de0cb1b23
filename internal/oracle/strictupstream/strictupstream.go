// Package strictupstream is a model server that refuses what the vendors refuse.
//
//	server := httptest.NewServer(strictupstream.New(sim.Handler(sim.Config{}), strictupstream.Options{Model: "sim/planner"}))
//
// It reads each request, decides by its own tables whether the vendor of the named model
// would accept it, and responds with the vendor's status and error body if not. The requests
// that it accepts go to the next handler under another model name. It shares no code with
// the encoders that it judges.
//
// It refuses:
//
//   - unknown fields, and unknown types of blocks, items and parts, where the vendor's schema
//     is closed;
//   - parameters that the named model does not accept: reasoning settings, sampling, bounds,
//     forced tool choice, prefill;
//   - schemas outside of the vendor's subset, and values beyond its limits: ranges, metadata,
//     stop sequences, cache breakpoints;
//   - media that the named model cannot read;
//   - broken conversations, by the rules of package rulecheck;
//   - forced calls while DeepSeek and Kimi think, their calls without reasoning_content, and
//     tools that are not functions with an object as parameters;
//   - reasoning without a signature, and signatures, encrypted reasoning, items, responses
//     and conversations that this server did not issue.
//
// A model that is in no table gets the rules of its dialect only.
package strictupstream

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	dragoman "github.com/dragoman-go/dragoman"
)

// Options configure a [Server].
type Options struct {
	// Model is the name that the next handler knows its model by. It replaces the name in
	// the request, up to a question mark: with "sim/planner", "gpt-4.1?fault=429" becomes
	// "sim/planner?fault=429". The response has the requested name, because clients compare
	// the two. Empty keeps the name.
	Model string
	// Models are the names that are replaced; nil replaces all. Requests for other models
	// keep their name, so that the next handler can report an unknown model.
	Models []string
	// Record keeps the bodies of accepted requests for [Server.Seen].
	Record bool
	// Refused is called for each refusal, before the client gets it. It may be called
	// concurrently. Nil ignores them.
	Refused func(*Refusal)
}

// Server is the handler that [New] returns.
type Server struct {
	next http.Handler
	o    Options
	state
	record record
}

// New returns a server that refuses requests as the vendors do and passes the others to
// next. It stores the items, signatures and encrypted reasoning of the responses that pass
// through it, without a bound: it is for tests.
func New(next http.Handler, o Options) *Server {
	return &Server{next: next, o: o}
}

var _ http.Handler = (*Server)(nil)

// maxBody bounds a request body.
const maxBody = 64 << 20

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	call, ok := callOf(r)
	if !ok {
		s.next.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if call.model == "" {
		call.model = modelIn(body)
	}
	if call.count {
		s.next.ServeHTTP(w, call.renamed(r, body, s.o))
		return
	}
	var refusal *Refusal
	if !call.compact {
		refusal = Judge(call.dialect, call.model, r.Header, body)
		if refusal == nil {
			body, refusal = s.resolve(call, body)
		}
	}
	if refusal != nil {
		if s.o.Refused != nil {
			s.o.Refused(refusal)
		}
		refusal.write(w, call.array)
		return
	}
	if s.o.Record {
		s.record.add(body)
	}
	out := s.watch(w, call, body)
	defer out.end()
	s.next.ServeHTTP(out, call.renamed(r, body, s.o))
}

// record holds the bodies of accepted requests.
type record struct {
	mu     sync.Mutex
	bodies []string
}

func (r *record) add(body []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bodies = append(r.bodies, string(body))
}

// Seen returns the bodies of the accepted requests that contain a text, in the order of
// their arrival. Item references in them are replaced by their items. It needs
// [Options].Record.
func (s *Server) Seen(text string) []string {
	s.record.mu.Lock()
	defer s.record.mu.Unlock()
	var out []string
	for _, body := range s.record.bodies {
		if strings.Contains(body, text) {
			out = append(out, body)
		}
	}
	return out
}

// call holds what the URL of a request names.
type call struct {
	dialect dragoman.Dialect
	model   string
	// inPath is set if the path contains the model, between before and after.
	inPath        bool
	before, after string
	// array is set if a stream is a JSON array.
	array bool
	// count is set for requests that only count tokens, which are always accepted.
	count bool
	// compact is set for requests that compact a conversation, which are always accepted. The
	// ids and items of the response are stored.
	compact bool
}

// callOf returns the call of a request to a model, and false for any other request.
func callOf(r *http.Request) (call, bool) {
	if r.Method != http.MethodPost {
		return call{}, false
	}
	for _, v := range vendors() {
		if c, ok := v.call(r); ok {
			c.dialect = v.dialect()
			return c, true
		}
	}
	return call{}, false
}

func modelIn(body []byte) string {
	var m struct {
		Model string `json:"model"`
	}
	_ = json.Unmarshal(body, &m) // Judge reports a body that is not JSON
	return m.Model
}

// renamed returns the request for the next handler.
func (c call) renamed(r *http.Request, body []byte, o Options) *http.Request {
	again := r.Clone(r.Context())
	if model := c.replaced(o); model != c.model {
		if c.inPath {
			again.URL.Path = c.before + model + c.after
			again.URL.RawPath = c.before + url.PathEscape(model) + c.after
		} else {
			body = withField(body, "model", model)
		}
	}
	again.Body = io.NopCloser(bytes.NewReader(body))
	again.ContentLength = int64(len(body))
	again.Header.Del("Content-Length")
	return again
}

// replaced returns the model name that the next handler uses for the call.
func (c call) replaced(o Options) string {
	name, query, has := strings.Cut(c.model, "?")
	switch {
	case o.Model == "" || o.Models != nil && !slices.Contains(o.Models, name):
		return c.model
	case has:
		return o.Model + "?" + query
	default:
		return o.Model
	}
}

// withField returns a JSON object with one field replaced. Numbers keep their spelling.
func withField(body []byte, key string, value any) []byte {
	var m map[string]json.RawMessage
	if err := json.Unmarshal(body, &m); err != nil {
		return body
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return body
	}
	m[key] = raw
	out, err := json.Marshal(m)
	if err != nil {
		return body
	}
	return out
}

// object reads a JSON object; numbers keep their spelling.
func object(body []byte) (map[string]any, error) {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, fmt.Errorf("the body is not valid JSON: %w", err)
	}
	if dec.More() {
		return nil, errors.New("the body has more than one JSON value")
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New("the body is not a JSON object")
	}
	return m, nil
}
