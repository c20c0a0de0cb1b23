package httpclient_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dragoman-go/dragoman/mcp/internal/httpclient"
	"github.com/dragoman-go/dragoman/mcp/internal/rpc"
)

func sdkServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "sdk", Version: "1"}, nil)
	type input struct {
		Name string `json:"name,omitempty"`
	}
	text := func(s string) *mcp.CallToolResult {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
	}
	mcp.AddTool(s, &mcp.Tool{Name: "greet"}, func(_ context.Context, _ *mcp.CallToolRequest, in input) (*mcp.CallToolResult, any, error) {
		return text("hello " + in.Name), nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "ask"}, func(ctx context.Context, req *mcp.CallToolRequest, _ input) (*mcp.CallToolResult, any, error) {
		got, err := req.Session.Elicit(ctx, &mcp.ElicitParams{Message: "Which?"})
		if err != nil {
			return nil, nil, err
		}
		return text("the user says " + got.Action), nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "progress"}, func(ctx context.Context, req *mcp.CallToolRequest, _ input) (*mcp.CallToolResult, any, error) {
		err := req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: req.Params.GetProgressToken(), Progress: 0.5})
		return text("done"), nil, err
	})
	mcp.AddTool(s, &mcp.Tool{Name: "reconnect"}, func(_ context.Context, req *mcp.CallToolRequest, _ input) (*mcp.CallToolResult, any, error) {
		req.Extra.CloseSSEStream(mcp.CloseSSEStreamArgs{RetryAfter: 60_000_000}) // 60 ms
		return text("after the interruption"), nil, nil
	})
	return s
}

// bothEras serves sessions, and 2026-07-28, of one server at one URL.
func bothEras(s *mcp.Server, options *mcp.StreamableHTTPOptions) http.Handler {
	get := func(*http.Request) *mcp.Server { return s }
	stateful := mcp.NewStreamableHTTPHandler(get, options)
	stateless := mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: options != nil && options.JSONResponse})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if rpc.Modern(r.Header.Get("Mcp-Protocol-Version")) {
			stateless.ServeHTTP(w, r)
			return
		}
		stateful.ServeHTTP(w, r)
	})
}

func TestSDKServersOfBothErasAnswer(t *testing.T) {
	for _, options := range []*mcp.StreamableHTTPOptions{nil, {JSONResponse: true}, {Stateless: true}} {
		t.Run(fmt.Sprintf("%+v", options), func(t *testing.T) {
			server := serveStrict(t, bothEras(sdkServer(), options))
			t.Run("legacy", func(t *testing.T) {
				c, _ := dial(t, server.URL)
				handshake(t, c)
				everyone(t, c, legacyCall)
				var e *rpc.Error
				if _, err := c.Call(t.Context(), legacyCall("none", "{}")); !errors.As(err, &e) || e.Code != rpc.CodeInvalidParams {
					t.Errorf("an unknown tool: %v", err)
				}
				if err := c.Close(); err != nil {
					t.Fatal(err)
				}
				if _, err := c.Call(t.Context(), legacyCall("greet", "{}")); !errors.Is(err, rpc.ErrClosed) {
					t.Errorf("after Close: %v", err)
				}
			})
			t.Run("modern", func(t *testing.T) {
				c, _ := dial(t, server.URL)
				result, err := c.Call(t.Context(), &rpc.Request{Method: "server/discover", Params: json.RawMessage(`{` + modernMeta + `}`)})
				if err != nil || !strings.Contains(string(result), `"2026-07-28"`) {
					t.Fatal(string(result), err)
				}
				c.SetRevision(rpc.Revision20260728)
				everyone(t, c, modernCall)
				var e *rpc.Error
				if _, err := c.Call(t.Context(), &rpc.Request{Method: "no/such", Params: json.RawMessage(`{` + modernMeta + `}`)}); !errors.As(err, &e) {
					t.Errorf("an unknown method: %v", err)
				}
			})
		})
	}
}

// everyone calls a tool from many goroutines.
func everyone(t *testing.T, c rpc.Conn, request func(name, arguments string) *rpc.Request) {
	t.Helper()
	var all sync.WaitGroup
	for i := range 10 {
		all.Go(func() {
			name := fmt.Sprintf("n%d ü", i)
			result, err := c.Call(t.Context(), request("greet", `{"name":"`+name+`"}`))
			if err != nil || !strings.Contains(string(result), `"hello `+name+`"`) {
				t.Error(name, string(result), err)
			}
		})
	}
	all.Wait()
}

func TestServerRequestsAndProgressBelongToTheirCall(t *testing.T) {
	server := serveStrict(t, bothEras(sdkServer(), nil))
	c, h := dial(t, server.URL)
	handshake(t, c)
	ask := legacyCall("ask", "{}")
	go func() {
		in := <-h.requests
		if in.Method != "elicitation/create" || in.During != ask {
			t.Errorf("the server asks %+v", in)
		}
		if err := c.Respond(t.Context(), in.ID, json.RawMessage(`{"action":"decline"}`), nil); err != nil {
			t.Error(err)
		}
	}()
	if result, err := c.Call(t.Context(), ask); err != nil || !strings.Contains(string(result), "the user says decline") {
		t.Error(string(result), err)
	}
	r := legacyCall("progress", `{},"_meta":{"progressToken":"p1"}`)
	if _, err := c.Call(t.Context(), r); err != nil {
		t.Error(err)
	}
	if in := <-h.notifications; in.Method != "notifications/progress" || in.During != r || !strings.Contains(string(in.Params), `"p1"`) {
		t.Errorf("progress %+v", in)
	}
}

func TestUnrelatedNotificationsArrive(t *testing.T) {
	s := sdkServer()
	opened := make(chan struct{}, 10)
	handler := bothEras(s, nil)
	server := serveStrict(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w = &flushWatcher{w, opened}
		}
		handler.ServeHTTP(w, r)
	}))
	c, h := dial(t, server.URL)
	handshake(t, c)
	<-opened
	s.AddTool(&mcp.Tool{Name: "new", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, nil
	})
	if in := <-h.notifications; in.Method != "notifications/tools/list_changed" || in.During != nil {
		t.Errorf("%+v", in)
	}
}

// flushWatcher reports the first bytes of a stream.
type flushWatcher struct {
	http.ResponseWriter
	flushed chan struct{}
}

func (w *flushWatcher) Flush() {
	w.ResponseWriter.(http.Flusher).Flush()
	w.flushed <- struct{}{}
}

func (w *flushWatcher) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func TestModernListenReceivesNotifications(t *testing.T) {
	s := sdkServer()
	server := serveStrict(t, bothEras(s, nil))
	c, h := dial(t, server.URL)
	c.SetRevision(rpc.Revision20260728)
	ctx, cancel := context.WithCancelCause(t.Context())
	listen := &rpc.Request{Method: rpc.MethodListen, Params: json.RawMessage(`{"notifications":{"toolsListChanged":true},` + modernMeta + `}`)}
	ended := make(chan error, 1)
	go func() {
		_, err := c.Call(ctx, listen)
		ended <- err
	}()
	if in := <-h.notifications; in.Method != "notifications/subscriptions/acknowledged" || in.During != listen {
		t.Errorf("%+v", in)
	}
	s.AddTool(&mcp.Tool{Name: "new", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, nil
	})
	if in := <-h.notifications; in.Method != "notifications/tools/list_changed" || in.During != listen {
		t.Errorf("%+v", in)
	}
	cause := errors.New("enough")
	cancel(cause)
	if err := <-ended; !errors.Is(err, cause) {
		t.Error(err)
	}
}

func TestAStreamThatTheServerInterruptsIsContinued(t *testing.T) {
	server := serveStrict(t, bothEras(sdkServer(), &mcp.StreamableHTTPOptions{EventStore: mcp.NewMemoryEventStore(nil)}))
	c, _ := dial(t, server.URL)
	handshake(t, c)
	if result, err := c.Call(t.Context(), legacyCall("reconnect", "{}")); err != nil || !strings.Contains(string(result), "after the interruption") {
		t.Error(string(result), err)
	}
}

func TestPitfallK8_ARestartedServerIsALostSession(t *testing.T) {
	s := sdkServer()
	var mu sync.Mutex
	handler := bothEras(s, nil)
	server := serveStrict(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		now := handler
		mu.Unlock()
		now.ServeHTTP(w, r)
	}))
	c, _ := dial(t, server.URL)
	handshake(t, c)
	mu.Lock()
	handler = bothEras(s, nil)
	mu.Unlock()
	delivered := true
	r := legacyCall("greet", `{"name":"x"}`)
	r.NotDelivered = func() { delivered = false }
	if _, err := c.Call(t.Context(), r); !errors.Is(err, rpc.ErrSessionLost) || delivered {
		t.Errorf("%v, delivered: %v", err, delivered)
	}
	<-c.Done()
	if !errors.Is(c.Err(), rpc.ErrSessionLost) {
		t.Error(c.Err())
	}
	c, _ = dial(t, server.URL)
	handshake(t, c)
	if _, err := c.Call(t.Context(), r); err != nil {
		t.Error(err)
	}
}

func TestServersOf20241105AreFound(t *testing.T) {
	s := sdkServer()
	server := httptest.NewServer(mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return s }, nil))
	defer server.Close()
	c, h := dial(t, server.URL+"/sse")
	defer c.Close()
	// The probe for a modern server is refused.
	if _, err := c.Call(t.Context(), &rpc.Request{Method: "server/discover", Params: json.RawMessage(`{` + modernMeta + `}`)}); err == nil {
		t.Fatal("the probe succeeds")
	}
	handshake(t, c)
	c.SetRevision(rpc.Revision20241105)
	everyone(t, c, legacyCall)
	ask := legacyCall("ask", "{}")
	go func() {
		in := <-h.requests
		if in.Method != "elicitation/create" {
			t.Errorf("the server asks %+v", in)
		}
		if err := c.Respond(t.Context(), in.ID, json.RawMessage(`{"action":"accept","content":{}}`), nil); err != nil {
			t.Error(err)
		}
	}()
	if result, err := c.Call(t.Context(), ask); err != nil || !strings.Contains(string(result), "the user says accept") {
		t.Error(string(result), err)
	}
	server.CloseClientConnections()
	<-c.Done()
	if !errors.Is(c.Err(), rpc.ErrLost) {
		t.Error(c.Err())
	}
}

func TestCallsShareConnections(t *testing.T) {
	for _, options := range []*mcp.StreamableHTTPOptions{nil, {JSONResponse: true}} {
		server := httptest.NewUnstartedServer(bothEras(sdkServer(), options))
		var opened atomic.Int32
		server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				opened.Add(1)
			}
		}
		server.Start()
		c, _ := dial(t, server.URL)
		for range 40 {
			ctx, cancel := context.WithCancel(t.Context())
			if _, err := c.Call(ctx, modernCall("greet", "{}")); err != nil {
				t.Error(err)
			}
			cancel() // as callers do that have a deadline
		}
		// The end of a stream may be read after the next call began.
		if n := opened.Load(); n > 10 {
			t.Errorf("%+v: %d connections", options, n)
		}
		_ = c.Close()
		server.Close()
	}
}

func BenchmarkCall(b *testing.B) {
	for name, options := range map[string]*mcp.StreamableHTTPOptions{"stream": nil, "JSON": {JSONResponse: true}} {
		b.Run(name, func(b *testing.B) {
			server := httptest.NewServer(bothEras(sdkServer(), options))
			defer server.Close()
			c, err := (&httpclient.Dialer{URL: server.URL}).Dial(b.Context(), newRecorder())
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			for b.Loop() {
				if _, err := c.Call(b.Context(), modernCall("greet", "{}")); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+" with the SDK", func(b *testing.B) {
			server := httptest.NewServer(bothEras(sdkServer(), options))
			defer server.Close()
			client := mcp.NewClient(&mcp.Implementation{Name: "a", Version: "1"}, nil)
			session, err := client.Connect(b.Context(), &mcp.StreamableClientTransport{Endpoint: server.URL}, nil)
			if err != nil {
				b.Fatal(err)
			}
			defer session.Close()
			for b.Loop() {
				if _, err := session.CallTool(b.Context(), &mcp.CallToolParams{Name: "greet"}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
