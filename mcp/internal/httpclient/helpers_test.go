package httpclient_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/dragoman-go/dragoman/internal/oracle/mcpcheck"
	"github.com/dragoman-go/dragoman/mcp/internal/httpclient"
	"github.com/dragoman-go/dragoman/mcp/internal/rpc"
)

// recorder is a handler that passes messages to channels.
type recorder struct{ notifications, requests chan rpc.Incoming }

func newRecorder() *recorder {
	return &recorder{make(chan rpc.Incoming, 100), make(chan rpc.Incoming, 100)}
}

func (r *recorder) Notification(in rpc.Incoming) { r.notifications <- in }
func (r *recorder) Request(in rpc.Incoming)      { r.requests <- in }

// strict refuses what a real server refuses: messages that do not match the official schema, and
// headers that do not match the message.
type strict struct {
	t        *testing.T
	old, new *mcpcheck.Checker
	next     http.Handler
}

func newStrict(t *testing.T, next http.Handler) *strict {
	return &strict{t, mcpcheck.New(t, rpc.Revision20251125), mcpcheck.New(t, rpc.Revision20260728), next}
}

func (s *strict) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client left
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if err := s.check(r, body); err != nil {
			s.t.Errorf("the client sends %s with %v: %v", body, r.Header, err)
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	}
	if r.Header.Get("Cookie") != "" {
		s.t.Error("the client sends a cookie")
	}
	s.next.ServeHTTP(w, r)
}

func (s *strict) check(r *http.Request, body []byte) error {
	if got := r.Header.Get("Content-Type"); got != "application/json" {
		return fmt.Errorf("content type %q", got)
	}
	if got := r.Header.Get("Accept"); got != "application/json, text/event-stream" {
		return fmt.Errorf("accepts %q", got)
	}
	var m struct {
		ID     json.RawMessage
		Method string
		Params json.RawMessage
	}
	if err := json.Unmarshal(body, &m); err != nil {
		return err
	}
	version := r.Header.Get("Mcp-Protocol-Version")
	if !rpc.Modern(version) {
		for name := range r.Header {
			if name == "Mcp-Method" || name == "Mcp-Name" || strings.HasPrefix(name, "Mcp-Param-") {
				return fmt.Errorf("a legacy message with the header %s", name)
			}
		}
		if m.Method == "initialize" && (version != "" || r.Header.Get("Mcp-Session-Id") != "") {
			return fmt.Errorf("initialize with version %q and session %q", version, r.Header.Get("Mcp-Session-Id"))
		}
		return s.old.Message(body, "no/such")
	}
	if inBody := rpc.MetaString(m.Params, rpc.MetaRevision); len(m.ID) > 0 && inBody != version {
		return fmt.Errorf("version %q in the header and %q in the body", version, inBody)
	}
	if method, err := rpc.DecodeHeader(r.Header.Get("Mcp-Method")); err != nil || method != m.Method {
		return fmt.Errorf("the header Mcp-Method is %q: %v", method, err)
	}
	if r.Header.Get("Mcp-Session-Id") != "" {
		return fmt.Errorf("a modern message with a session")
	}
	var named struct{ Name, URI string }
	_ = json.Unmarshal(m.Params, &named)
	if m.Method == "tools/call" {
		if name, err := rpc.DecodeHeader(r.Header.Get("Mcp-Name")); err != nil || name != named.Name {
			return fmt.Errorf("the header Mcp-Name is %q, want %q: %v", name, named.Name, err)
		}
	}
	return s.new.Message(body, "no/such")
}

// serveStrict starts a server behind [strict].
func serveStrict(t *testing.T, h http.Handler) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(newStrict(t, h))
	t.Cleanup(s.Close)
	return s
}

func dial(t *testing.T, url string, change ...func(*httpclient.Dialer)) (*httpclient.Conn, *recorder) {
	t.Helper()
	d := &httpclient.Dialer{URL: url}
	for _, f := range change {
		f(d)
	}
	h := newRecorder()
	c, err := d.Dial(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c.(*httpclient.Conn), h
}

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}},"io.modelcontextprotocol/clientInfo":{"name":"a","version":"1"}}`

func modernCall(name, arguments string) *rpc.Request {
	return &rpc.Request{Method: "tools/call", Name: name, Params: json.RawMessage(fmt.Sprintf(`{"name":%q,"arguments":%s,%s}`, name, arguments, modernMeta))}
}

func legacyCall(name, arguments string) *rpc.Request {
	return &rpc.Request{Method: "tools/call", Name: name, Params: json.RawMessage(fmt.Sprintf(`{"name":%q,"arguments":%s}`, name, arguments))}
}

const initializeParams = `{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"a","version":"1"}}`

// handshake does the legacy handshake.
func handshake(t *testing.T, c rpc.Conn) {
	t.Helper()
	if _, err := c.Call(t.Context(), &rpc.Request{Method: "initialize", Params: json.RawMessage(initializeParams)}); err != nil {
		t.Fatal(err)
	}
	c.SetRevision(rpc.Revision20251125)
	if err := c.Notify(t.Context(), "notifications/initialized", nil); err != nil {
		t.Fatal(err)
	}
}

// fake is a server that a test writes. It answers the handshake itself, with a session.
type fake struct {
	mu       sync.Mutex
	sessions int
	// noSession leaves the session out.
	noSession bool
	// post handles other messages, get the stream; nil means 405.
	post func(w http.ResponseWriter, r *http.Request, m incoming)
	get  http.HandlerFunc
	// deleted gets the ids of deleted sessions.
	deleted chan string
}

type incoming struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodGet:
		if f.get != nil {
			f.get(w, r)
			return
		}
		w.WriteHeader(http.StatusMethodNotAllowed)
	case http.MethodDelete:
		if f.deleted != nil {
			f.deleted <- r.Header.Get("Mcp-Session-Id")
		}
		w.WriteHeader(http.StatusNoContent)
	default:
		body, _ := io.ReadAll(r.Body)
		var m incoming
		_ = json.Unmarshal(body, &m)
		switch m.Method {
		case "initialize":
			f.mu.Lock()
			f.sessions++
			if !f.noSession {
				w.Header().Set("Mcp-Session-Id", fmt.Sprintf("session-%d", f.sessions))
			}
			f.mu.Unlock()
			answer(w, m, `{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"fake","version":"1"}}`)
		case "notifications/initialized":
			w.WriteHeader(http.StatusAccepted)
		default:
			f.post(w, r, m)
		}
	}
}

// answer writes a JSON response.
func answer(w http.ResponseWriter, m incoming, result string) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

// events begins a stream and returns a function that writes a part of it.
func events(w http.ResponseWriter) func(format string, args ...any) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	return func(format string, args ...any) {
		fmt.Fprintf(w, format, args...)
		w.(http.Flusher).Flush()
	}
}

type authorizer struct {
	token     func(ctx context.Context) (string, error)
	challenge func(ctx context.Context, resp *http.Response) (bool, error)
}

func (a *authorizer) Token(ctx context.Context) (string, error) { return a.token(ctx) }

func (a *authorizer) Challenge(ctx context.Context, resp *http.Response) (bool, error) {
	return a.challenge(ctx, resp)
}

// signer is an authorizer that sets the headers of requests itself.
type signer struct {
	authorizer
	sign func(req *http.Request) error
}

func (s *signer) Authorize(req *http.Request) error { return s.sign(req) }
