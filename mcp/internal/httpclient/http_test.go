package httpclient_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-go/dragoman/mcp/internal/httpclient"
	"github.com/dragoman-go/dragoman/mcp/internal/rpc"
)

// post returns a server that answers every message with f.
func post(f func(w http.ResponseWriter, r *http.Request, m incoming)) *fake {
	return &fake{noSession: true, post: f}
}

func TestModernHeadersAreEncoded(t *testing.T) {
	got := make(chan http.Header, 1)
	server := serveStrict(t, post(func(w http.ResponseWriter, r *http.Request, m incoming) {
		got <- r.Header
		answer(w, m, `{"resultType":"complete","content":[]}`)
	}))
	c, _ := dial(t, server.URL, func(d *httpclient.Dialer) { d.Headers = map[string]string{"x-api-key": "k"} })
	r := modernCall("größe\nx", "{}")
	r.Headers = map[string]string{"Mcp-Param-Path": "a.txt", "mcp-param-note": " é"}
	if result, err := c.Call(t.Context(), r); err != nil || string(result) != `{"resultType":"complete","content":[]}` {
		t.Fatal(string(result), err)
	}
	h := <-got
	for name, want := range map[string]string{
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "=?base64?Z3LDtsOfZQp4?=",
		"Mcp-Param-Path": "a.txt", "Mcp-Param-Note": "=?base64?IMOp?=", "X-Api-Key": "k",
	} {
		if h.Get(name) != want {
			t.Errorf("%s is %q, want %q", name, h.Get(name), want)
		}
	}
	for _, name := range []string{"Authorization", "Mcp-Method", "Mcp-Param-a b", "X-Other"} {
		r.Headers = map[string]string{name: "x"}
		delivered := true
		r.NotDelivered = func() { delivered = false }
		if _, err := c.Call(t.Context(), r); err == nil || delivered {
			t.Errorf("a request sets %s: %v", name, err)
		}
	}
}

func TestPitfallK9_ResultsStayRaw(t *testing.T) {
	const result = `{"z":9007199254740993, "structuredContent":null,"a":[1.0,"é"]}`
	for name, write := range map[string]func(w http.ResponseWriter, m incoming){
		"JSON": func(w http.ResponseWriter, m incoming) { answer(w, m, result) },
		"batch": func(w http.ResponseWriter, m incoming) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `[{"jsonrpc":"2.0","id":99,"result":{}},{"jsonrpc":"2.0","id":%s,"result":%s}]`, m.ID, result)
		},
		"JSON without a type": func(w http.ResponseWriter, m incoming) {
			w.Header()["Content-Type"] = nil
			fmt.Fprintf(w, ` {"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
		},
		"stream": func(w http.ResponseWriter, m incoming) {
			write := events(w)
			write(": hello\n\nevent: other\ndata: no\n\nevent: message\ndata: not JSON\n\nid: 1\ndata:\n\n")
			write("data: {\"jsonrpc\":\"2.0\",\ndata: \"id\":%s,\"result\":%s}\n\n", m.ID, result)
		},
		"stream that ends early": func(w http.ResponseWriter, m incoming) {
			events(w)("data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}", m.ID, result)
		},
	} {
		server := serveStrict(t, post(func(w http.ResponseWriter, _ *http.Request, m incoming) { write(w, m) }))
		c, _ := dial(t, server.URL)
		if got, err := c.Call(t.Context(), legacyCall("a", "{}")); err != nil || string(got) != result {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
}

func TestErrorsHaveTheirStatusOrCode(t *testing.T) {
	for _, test := range []struct {
		name        string
		status      int
		contentType string
		body        string
		code        int64 // of an *rpc.Error
		http        int   // status of an *rpc.HTTPError
		delivered   bool
	}{
		{"error in a success", 200, "application/json", `{"jsonrpc":"2.0","id":ID,"error":{"code":-32601,"message":"no"}}`, -32601, 0, true},
		{"error without an id", 200, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}`, -32700, 0, true},
		{"unsupported revision", 400, "application/json", `{"jsonrpc":"2.0","id":ID,"error":{"code":-32022,"message":"no","data":{"supported":["2025-11-25"]}}}`, -32022, 0, false},
		{"error in a stream", 400, "text/event-stream", "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":ID,\"error\":{\"code\":-32020,\"message\":\"no\"}}\n\n", -32020, 0, false},
		{"unknown method", 404, "application/json", `{"jsonrpc":"2.0","id":ID,"error":{"code":-32601,"message":"no"}}`, -32601, 0, false},
		{"error of the server", 500, "application/json", `{"jsonrpc":"2.0","id":ID,"error":{"code":-32603,"message":"no"}}`, -32603, 0, true},
		{"not found", 404, "text/html", `<html>`, 0, 404, false},
		{"bad request", 400, "text/plain", `session?`, 0, 400, false},
		{"overloaded", 503, "text/plain", `later`, 0, 503, true},
		{"page", 200, "text/html", `<html>`, 0, 200, true},
		{"nothing", 202, "", ``, 0, 202, true},
		{"unauthorized", 401, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"no"}}`, -32001, 401, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			server := serveStrict(t, post(func(w http.ResponseWriter, _ *http.Request, m incoming) {
				w.Header().Set("Content-Type", test.contentType)
				w.Header().Set("Retry-After", "7")
				w.WriteHeader(test.status)
				_, _ = io.WriteString(w, strings.ReplaceAll(test.body, "ID", string(m.ID)))
			}))
			c, _ := dial(t, server.URL)
			delivered := true
			r := legacyCall("a", "{}")
			r.NotDelivered = func() { delivered = false }
			_, err := c.Call(t.Context(), r)
			var e *rpc.Error
			if errors.As(err, &e); e != nil != (test.code != 0) || e != nil && e.Code != test.code {
				t.Errorf("error %v, want code %d", err, test.code)
			}
			var h *rpc.HTTPError
			if errors.As(err, &h); h != nil != (test.http != 0) || h != nil && (h.Status != test.http || h.RetryAfter != 7*time.Second) {
				t.Errorf("error %v, want status %d", err, test.http)
			}
			if test.http == 0 {
				if _, plain := err.(*rpc.Error); !plain { //nolint:errorlint // the contract of Call
					t.Errorf("the error is a %T", err)
				}
			}
			if delivered != test.delivered {
				t.Errorf("delivered: %v, want %v", delivered, test.delivered)
			}
			if c.Err() != nil {
				t.Errorf("the connection ended: %v", c.Err())
			}
		})
	}
}

func TestAWrongIDIsNotTheResponse(t *testing.T) {
	server := serveStrict(t, post(func(w http.ResponseWriter, _ *http.Request, m incoming) {
		m.ID = json.RawMessage(`"` + string(m.ID) + `"`)
		answer(w, m, `{}`)
	}))
	c, _ := dial(t, server.URL)
	if result, err := c.Call(t.Context(), modernCall("a", "{}")); err == nil || !strings.Contains(err.Error(), "does not have the id") {
		t.Errorf("%s, %v", result, err)
	}
}

func TestModernCallsAreCanceledByClosingTheStream(t *testing.T) {
	began, left := make(chan struct{}), make(chan struct{})
	server := serveStrict(t, post(func(w http.ResponseWriter, r *http.Request, m incoming) {
		if m.Method != "tools/call" {
			t.Errorf("the client sends %s", m.Method)
		}
		events(w)(": begin\n\n")
		close(began)
		<-r.Context().Done()
		close(left)
	}))
	c, _ := dial(t, server.URL)
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("enough")
	go func() {
		<-began
		cancel(cause)
	}()
	if _, err := c.Call(ctx, modernCall("slow", "{}")); err != cause { //nolint:errorlint // the contract of Call
		t.Errorf("%v", err)
	}
	<-left
	_ = c.Close()
}

func TestLegacyCallsAreCanceledByANotification(t *testing.T) {
	began, canceled := make(chan struct{}), make(chan incoming, 1)
	server := serveStrict(t, &fake{post: func(w http.ResponseWriter, r *http.Request, m incoming) {
		if m.Method == "tools/call" {
			events(w)(": begin\n\n")
			close(began)
			<-r.Context().Done()
			return
		}
		if r.Header.Get("Mcp-Session-Id") != "session-1" || r.Header.Get("Mcp-Protocol-Version") != "2025-11-25" {
			t.Errorf("headers %v", r.Header)
		}
		canceled <- m
		w.WriteHeader(http.StatusAccepted)
	}})
	c, _ := dial(t, server.URL)
	handshake(t, c)
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("enough")
	go func() {
		<-began
		cancel(cause)
	}()
	if _, err := c.Call(ctx, legacyCall("slow", "{}")); err != cause { //nolint:errorlint // the contract of Call
		t.Errorf("%v", err)
	}
	if m := <-canceled; m.Method != "notifications/cancelled" || rpc.FieldID(m.Params, "requestId") != "2" {
		t.Errorf("the server gets %+v", m)
	}
}

func TestModernServersSendNoRequests(t *testing.T) {
	server := serveStrict(t, post(func(w http.ResponseWriter, _ *http.Request, m incoming) {
		write := events(w)
		write("data: {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"sampling/createMessage\",\"params\":{}}\n\n")
		write("data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{}}\n\n", m.ID)
	}))
	c, h := dial(t, server.URL)
	if _, err := c.Call(t.Context(), modernCall("a", "{}")); err == nil || !strings.Contains(err.Error(), `"sampling/createMessage"`) {
		t.Errorf("%v", err)
	}
	if len(h.requests) > 0 {
		t.Error("the request is handled")
	}
	c.SetRevision(rpc.Revision20260728)
	if err := c.Respond(t.Context(), "1", nil, nil); err == nil {
		t.Error("a response is sent")
	}
}

func TestABrokenStreamIsALostCall(t *testing.T) {
	for _, request := range []*rpc.Request{modernCall("a", "{}"), legacyCall("a", "{}")} {
		server := serveStrict(t, post(func(w http.ResponseWriter, _ *http.Request, _ incoming) {
			events(w)("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":1}}\n\n")
		}))
		c, h := dial(t, server.URL)
		delivered := true
		request.NotDelivered = func() { delivered = false }
		if _, err := c.Call(t.Context(), request); !errors.Is(err, rpc.ErrLost) || !delivered {
			t.Errorf("%v, delivered: %v", err, delivered)
		}
		if in := <-h.notifications; in.During != request {
			t.Errorf("%+v", in)
		}
	}
}

func TestPitfallK7_OnlyASuccessfulHandshakeHasASession(t *testing.T) {
	var handshakes atomic.Int32
	seen := make(chan string, 10)
	server := serveStrict(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r.Method + " " + r.Header.Get("Mcp-Session-Id")
		body, _ := io.ReadAll(r.Body)
		var m incoming
		_ = json.Unmarshal(body, &m)
		w.Header().Set("Mcp-Session-Id", "wrong")
		switch {
		case r.Method != http.MethodPost:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case m.Method == "initialize" && handshakes.Add(1) == 1:
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"not yet"}}`, m.ID)
		case m.Method == "initialize":
			w.Header().Set("Mcp-Session-Id", "right")
			answer(w, m, `{}`)
		case m.Method == "ping":
			w.WriteHeader(http.StatusInternalServerError)
		default:
			answer(w, m, `{}`)
		}
	}))
	c, _ := dial(t, server.URL)
	_, _ = c.Call(t.Context(), &rpc.Request{Method: "server/discover", Params: json.RawMessage(`{` + modernMeta + `}`)})
	_, err := c.Call(t.Context(), &rpc.Request{Method: "initialize", Params: json.RawMessage(initializeParams)})
	if err == nil {
		t.Error("the first handshake succeeds")
	}
	_, _ = c.Call(t.Context(), &rpc.Request{Method: "ping"})
	_, _ = c.Call(t.Context(), &rpc.Request{Method: "initialize", Params: json.RawMessage(initializeParams)})
	_, _ = c.Call(t.Context(), &rpc.Request{Method: "ping"})
	_, _ = c.Call(t.Context(), &rpc.Request{Method: "ping"})
	_ = c.Close()
	for i, want := range []string{"POST ", "POST ", "POST ", "POST ", "POST right", "POST right", "DELETE right"} {
		if got := <-seen; got != want {
			t.Errorf("request %d is %q, want %q", i+1, got, want)
		}
	}
}

func TestPitfallK8_LostSessionsAreRecognized(t *testing.T) {
	for _, test := range []struct {
		status          int
		body            string
		lost, delivered bool
	}{
		{404, `{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":null}`, true, false},
		{404, `not here`, true, false},
		{400, `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}`, true, false},
		{400, `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: Server not initialized"},"id":null}`, true, false},
		{503, `No such SESSION on this node`, true, true},
		{400, `bad JSON`, false, false},
		{503, `overloaded`, false, true},
		{500, `session store on fire`, false, true},
		{404, `{"jsonrpc":"2.0","error":{"code":-32601,"message":"Method not found"},"id":2}`, false, false},
		{400, `{"jsonrpc":"2.0","error":{"code":-32602,"message":"no such session parameter"},"id":2}`, false, false},
	} {
		f := &fake{deleted: make(chan string, 1), post: func(w http.ResponseWriter, _ *http.Request, _ incoming) {
			w.WriteHeader(test.status)
			_, _ = io.WriteString(w, test.body)
		}}
		server := serveStrict(t, f)
		c, _ := dial(t, server.URL)
		handshake(t, c)
		delivered := true
		r := legacyCall("a", "{}")
		r.NotDelivered = func() { delivered = false }
		_, err := c.Call(t.Context(), r)
		if errors.Is(err, rpc.ErrSessionLost) != test.lost || delivered != test.delivered {
			t.Errorf("%d %s: %v, delivered: %v", test.status, test.body, err, delivered)
		}
		_, err = c.Call(t.Context(), r)
		if test.lost && (!errors.Is(err, rpc.ErrSessionLost) || delivered) {
			t.Errorf("%d %s: the next call: %v", test.status, test.body, err)
		}
		_ = c.Close()
		if ended := len(f.deleted) > 0; ended == test.lost {
			t.Errorf("%d %s: the session is deleted: %v", test.status, test.body, ended)
		}
	}
}

func TestPitfallK11_TheStreamOfTheServerIsOptional(t *testing.T) {
	for name, get := range map[string]http.HandlerFunc{
		"405":      func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusMethodNotAllowed) },
		"404":      func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) },
		"400":      func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no session", http.StatusBadRequest) },
		"500":      func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"200 JSON": func(w http.ResponseWriter, _ *http.Request) { answer(w, incoming{ID: json.RawMessage("1")}, "{}") },
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://login.example/", http.StatusFound)
		},
	} {
		t.Run(name, func(t *testing.T) {
			gets := make(chan struct{}, 100)
			server := serveStrict(t, &fake{
				get: func(w http.ResponseWriter, r *http.Request) {
					get(w, r)
					gets <- struct{}{}
				},
				post: func(w http.ResponseWriter, _ *http.Request, m incoming) { answer(w, m, "{}") },
			})
			c, _ := dial(t, server.URL)
			handshake(t, c)
			<-gets
			if _, err := c.Call(t.Context(), legacyCall("a", "{}")); err != nil {
				t.Error(err)
			}
			_ = c.Close()
			if len(gets) > 0 || !errors.Is(c.Err(), rpc.ErrClosed) {
				t.Errorf("%d more attempts, %v", len(gets), c.Err())
			}
		})
	}
}

// roundTrip is a transport without a network, for tests with a clock of their own.
type roundTrip func(r *http.Request) *http.Response

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r), nil }

func response(status int, contentType, body string) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {contentType}}, Body: io.NopCloser(strings.NewReader(body))}
}

func TestPitfallK13_AServerThatAcceptsAndDropsIsGivenUp(t *testing.T) {
	for name, stream := range map[string]string{
		"the same event":          "id: e1\ndata:\n\n",
		"the same event, at once": "id: e1\nretry: 0\ndata:\n\n",
		"ever new events":         "id: %d\nretry: 0\ndata:\n\n",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				gets := 0
				d := &httpclient.Dialer{URL: "http://x", Transport: roundTrip(func(r *http.Request) *http.Response {
					if r.Method == http.MethodGet {
						gets++
					}
					return response(200, "text/event-stream", strings.Replace(stream, "%d", fmt.Sprint(gets), 1))
				})}
				c, err := d.Dial(t.Context(), newRecorder())
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				began := time.Now()
				delivered := true
				r := legacyCall("a", "{}")
				r.NotDelivered = func() { delivered = false }
				if _, err := c.Call(t.Context(), r); !errors.Is(err, rpc.ErrLost) || !delivered {
					t.Errorf("%v, delivered: %v", err, delivered)
				}
				want := 5
				if strings.Contains(stream, "%d") {
					want = 1000
				}
				if took := time.Since(began); gets != want || took < time.Second {
					t.Errorf("%d attempts within %v, want %d", gets, took, want)
				}
			})
		})
	}
}

func TestTheServerSetsThePauseBeforeItsStreamContinues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended time.Time
		d := &httpclient.Dialer{URL: "http://x", Transport: roundTrip(func(r *http.Request) *http.Response {
			if r.Method == http.MethodPost {
				ended = time.Now()
				return response(200, "text/event-stream", "id: e1\nretry: 3000\ndata:\n\n")
			}
			if pause := time.Since(ended); pause != 3*time.Second {
				t.Errorf("the client waits %v", pause)
			}
			return response(200, "text/event-stream", "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n")
		})}
		c, err := d.Dial(t.Context(), newRecorder())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Call(t.Context(), legacyCall("a", "{}")); err != nil {
			t.Error(err)
		}
	})
}

func TestTheStreamOfTheServerIsOpenedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var gets []string
		lasting := true
		d := &httpclient.Dialer{URL: "http://x", Transport: roundTrip(func(r *http.Request) *http.Response {
			if r.Method == http.MethodPost {
				return response(202, "", "")
			}
			gets = append(gets, r.Header.Get("Last-Event-Id"))
			resp := response(200, "text/event-stream", fmt.Sprintf("id: e%d\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n", len(gets)))
			switch {
			case len(gets) > 20:
				resp = response(200, "text/event-stream", "")
			case lasting: // until a proxy ends it
				resp.Body = io.NopCloser(io.MultiReader(resp.Body, pause(time.Minute)))
			}
			return resp
		})}
		h := newRecorder()
		c, err := d.Dial(t.Context(), h)
		if err != nil {
			t.Fatal(err)
		}
		c.SetRevision(rpc.Revision20251125)
		if err := c.Notify(t.Context(), "notifications/initialized", nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		_ = c.Close()
		if len(gets) != 25 || gets[0] != "" || gets[1] != "e1" || len(h.notifications) != 20 {
			t.Errorf("%d notifications, streams after %q", len(h.notifications), gets)
		}
	})
}

// pause is a body that ends after some time.
type pause time.Duration

func (p pause) Read([]byte) (int, error) {
	time.Sleep(time.Duration(p))
	return 0, io.EOF
}

func TestABrokenStreamIsContinuedAfterItsLastEvent(t *testing.T) {
	server := serveStrict(t, &fake{
		get: func(w http.ResponseWriter, r *http.Request) {
			write := events(w)
			switch r.Header.Get("Last-Event-Id") {
			case "": // of the stream that the server opens
				<-r.Context().Done()
			case "e1":
				write("id: e2\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":2}}\n\n")
			case "e2":
				if r.Header.Get("Mcp-Session-Id") != "session-1" || r.Header.Get("Accept") != "text/event-stream" {
					t.Errorf("headers %v", r.Header)
				}
				write("id: e3\ndata: {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"ok\":true}}\n\n")
			default:
				t.Errorf("the stream continues after %q", r.Header.Get("Last-Event-Id"))
			}
		},
		post: func(w http.ResponseWriter, _ *http.Request, _ incoming) {
			events(w)("id: e1\nretry: 10\ndata:\n\n")
			panic(http.ErrAbortHandler)
		},
	})
	c, h := dial(t, server.URL)
	handshake(t, c)
	r := legacyCall("a", "{}")
	if result, err := c.Call(t.Context(), r); err != nil || string(result) != `{"ok":true}` {
		t.Errorf("%s, %v", result, err)
	}
	if in := <-h.notifications; in.During != r {
		t.Errorf("%+v", in)
	}
}

func TestPitfallK18_ASilentHostHoldsNoCaller(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // connects, and answers nothing
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, _ := dial(t, "http://"+l.Addr().String())
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("deadline")
	go func() {
		accepted, err := l.Accept()
		if err == nil {
			defer accepted.Close()
		}
		cancel(cause)
		<-t.Context().Done()
	}()
	if _, err := c.Call(ctx, modernCall("a", "{}")); err != cause { //nolint:errorlint // the contract of Call
		t.Errorf("%v", err)
	}
	began := time.Now()
	_ = c.Close()
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("Close took %v", took)
	}
}

func TestAnUnreachableServerDidNotGetTheRequest(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	c, _ := dial(t, "http://user:pass@"+l.Addr().String()+"/secret-path?key=secret-query")
	delivered := true
	r := modernCall("a", "{}")
	r.NotDelivered = func() { delivered = false }
	_, err = c.Call(t.Context(), r)
	if err == nil || delivered {
		t.Fatalf("%v, delivered: %v", err, delivered)
	}
	if strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "pass") {
		t.Errorf("the error has a secret: %v", err)
	}
}

func TestAServerThatDropsTheConnectionLosesTheCall(t *testing.T) {
	server := serveStrict(t, post(func(http.ResponseWriter, *http.Request, incoming) { panic(http.ErrAbortHandler) }))
	c, _ := dial(t, server.URL)
	delivered := true
	r := modernCall("a", "{}")
	r.NotDelivered = func() { delivered = false }
	if _, err := c.Call(t.Context(), r); !errors.Is(err, rpc.ErrLost) || !delivered {
		t.Errorf("%v, delivered: %v", err, delivered)
	}
}

func TestHeadersOfImmediateAnswersHaveALimit(t *testing.T) {
	release := make(chan struct{})
	server := serveStrict(t, post(func(_ http.ResponseWriter, r *http.Request, _ incoming) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	defer close(release)
	c, _ := dial(t, server.URL, func(d *httpclient.Dialer) { d.AnswerTimeout = 20 * time.Millisecond })
	if err := c.Notify(t.Context(), "notifications/roots/list_changed", nil); err == nil || !strings.Contains(err.Error(), "headers in time") {
		t.Error(err)
	}
	listen := &rpc.Request{Method: rpc.MethodListen, Params: json.RawMessage(`{"notifications":{},` + modernMeta + `}`)}
	if _, err := c.Call(t.Context(), listen); err == nil || !strings.Contains(err.Error(), "headers in time") {
		t.Error(err)
	}
}

func TestPitfallK35_LargeResponsesFailTheirCall(t *testing.T) {
	for name, write := range map[string]func(w http.ResponseWriter, m incoming){
		"JSON": func(w http.ResponseWriter, m incoming) {
			answer(w, m, `{"text":"`+strings.Repeat("x", 200_000)+`"}`)
		},
		"event": func(w http.ResponseWriter, m incoming) {
			events(w)("data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"text\":%q}}\n\n", m.ID, strings.Repeat("x", 200_000))
		},
		"endless": func(w http.ResponseWriter, _ incoming) {
			write := events(w)
			write("id: 1\n\ndata: ")
			for {
				if _, err := io.WriteString(w, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"); err != nil {
					return
				}
			}
		},
	} {
		for _, request := range []*rpc.Request{modernCall("a", "{}"), legacyCall("a", "{}")} {
			server := serveStrict(t, post(func(w http.ResponseWriter, _ *http.Request, m incoming) { write(w, m) }))
			c, _ := dial(t, server.URL, func(d *httpclient.Dialer) { d.MaxMessage = 100_000 })
			if _, err := c.Call(t.Context(), request); !errors.Is(err, rpc.ErrTooLarge) || !strings.Contains(err.Error(), "100000 bytes") {
				t.Errorf("%s: %v", name, err)
			}
			_ = c.Close()
		}
	}
}

func TestRedirectsStayAtTheOrigin(t *testing.T) {
	var other atomic.Int32
	foreign := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { other.Add(1) }))
	defer foreign.Close()
	paths := make(chan string, 20)
	answering := newStrict(t, post(func(w http.ResponseWriter, r *http.Request, m incoming) {
		if r.Header.Get("Authorization") != "Bearer token" {
			t.Errorf("authorization %q", r.Header.Get("Authorization"))
		}
		answer(w, m, "{}")
	}))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		paths <- r.URL.Path
		switch r.URL.Path {
		case "/mcp":
			http.Redirect(w, r, "/mcp/", http.StatusTemporaryRedirect)
		case "/found":
			http.Redirect(w, r, "/mcp", http.StatusFound)
		case "/foreign":
			http.Redirect(w, r, foreign.URL+"/mcp?token=secret", http.StatusPermanentRedirect)
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusTemporaryRedirect)
		case "/see":
			http.Redirect(w, r, "/mcp/", http.StatusSeeOther)
		default:
			answering.ServeHTTP(w, r)
		}
	}))
	defer server.Close()
	withToken := func(d *httpclient.Dialer) { d.Headers = map[string]string{"Authorization": "Bearer token"} }
	c, _ := dial(t, server.URL+"/found", withToken)
	for range 2 { // the second call goes straight to the place
		if _, err := c.Call(t.Context(), legacyCall("a", "{}")); err != nil {
			t.Error(err)
		}
	}
	for _, want := range []string{"/found", "/mcp", "/mcp/", "/mcp/"} {
		if got := <-paths; got != want {
			t.Errorf("a request to %s, want %s", got, want)
		}
	}
	for path, want := range map[string]string{"/foreign": "another origin, " + foreign.URL + ":", "/loop": "more than 3 redirects", "/see": "303"} {
		c, _ := dial(t, server.URL+path, withToken)
		delivered := true
		r := legacyCall("a", "{}")
		r.NotDelivered = func() { delivered = false }
		if _, err := c.Call(t.Context(), r); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") || delivered {
			t.Errorf("%s: %v, delivered: %v", path, err, delivered)
		}
	}
	if other.Load() > 0 {
		t.Error("the other origin got a request")
	}
}

func TestURLsAndHeadersAreChecked(t *testing.T) {
	for url, want := range map[string]string{
		"": "begins with https", "ftp://x/secret": "begins with https", "https://": "has a host", "http://x/%zz-secret": "not valid", "/mcp": "begins with",
	} {
		if _, err := (&httpclient.Dialer{URL: url}).Dial(t.Context(), newRecorder()); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", url, err)
		}
	}
	for name, value := range map[string]string{"mcp-session-id": "1", "MCP-Param-X": "1", "Host": "x", "a b": "1", "": "1", "X-Key": "secret\r\nX: 1"} {
		_, err := (&httpclient.Dialer{URL: "https://x", Headers: map[string]string{name: value}}).Dial(t.Context(), newRecorder())
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("header %q: %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (&httpclient.Dialer{URL: "https://x"}).Dial(ctx, newRecorder()); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// guarded is a server that wants a token.
func guarded(t *testing.T, want *atomic.Value, requests *atomic.Int32, counted ...func()) *httptest.Server {
	var mu sync.Mutex
	return serveStrict(t, post(func(w http.ResponseWriter, r *http.Request, m incoming) {
		mu.Lock()
		requests.Add(1)
		for _, f := range counted {
			f()
		}
		mu.Unlock()
		if r.Header.Get("Authorization") != "Bearer "+want.Load().(string) {
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="https://x/"`)
			http.Error(w, "no token", http.StatusUnauthorized)
			return
		}
		answer(w, m, "{}")
	}))
}

func TestConcurrentRequestsShareAChallenge(t *testing.T) {
	var want atomic.Value
	want.Store("t2")
	var requests, challenges atomic.Int32
	refused := make(chan struct{})
	server := guarded(t, &want, &requests, func() {
		if requests.Load() == 8 {
			close(refused)
		}
	})
	var token atomic.Value
	token.Store("t1")
	c, _ := dial(t, server.URL, func(d *httpclient.Dialer) {
		d.Authorizer = &authorizer{
			token: func(context.Context) (string, error) { return token.Load().(string), nil },
			challenge: func(_ context.Context, resp *http.Response) (bool, error) {
				body, _ := io.ReadAll(resp.Body)
				if resp.StatusCode != http.StatusUnauthorized || !strings.Contains(resp.Header.Get("WWW-Authenticate"), "resource_metadata") || string(body) != "no token\n" {
					t.Errorf("challenge %v %v %s", resp.Status, resp.Header, body)
				}
				challenges.Add(1)
				<-refused // all of them
				token.Store("t2")
				return true, nil
			},
		}
	})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, err := c.Call(t.Context(), legacyCall("a", "{}")); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if challenges.Load() != 1 || requests.Load() != 16 {
		t.Errorf("%d challenges, %d requests", challenges.Load(), requests.Load())
	}
}

func TestARequestIsRepeatedOnceAfterAChallenge(t *testing.T) {
	var want atomic.Value
	want.Store("never")
	var requests, challenges atomic.Int32
	server := guarded(t, &want, &requests)
	a := &authorizer{
		token: func(context.Context) (string, error) { return "t", nil },
		challenge: func(context.Context, *http.Response) (bool, error) {
			challenges.Add(1)
			return true, nil
		},
	}
	c, _ := dial(t, server.URL, func(d *httpclient.Dialer) { d.Authorizer = a })
	delivered := true
	r := legacyCall("a", "{}")
	r.NotDelivered = func() { delivered = false }
	var h *rpc.HTTPError
	if _, err := c.Call(t.Context(), r); !errors.As(err, &h) || h.Status != 401 || delivered {
		t.Errorf("%v, delivered: %v", err, delivered)
	}
	if challenges.Load() != 1 || requests.Load() != 2 {
		t.Errorf("%d challenges, %d requests", challenges.Load(), requests.Load())
	}
	refusal := errors.New("the user declined")
	a.challenge = func(context.Context, *http.Response) (bool, error) { return false, refusal }
	if _, err := c.Call(t.Context(), r); !errors.Is(err, refusal) || !errors.As(err, &h) {
		t.Error(err)
	}
	a.challenge = func(context.Context, *http.Response) (bool, error) { return false, nil }
	if _, err := c.Call(t.Context(), r); !errors.As(err, &h) || h.Status != 401 {
		t.Error(err)
	}
	a.token = func(context.Context) (string, error) { return "", refusal }
	if _, err := c.Call(t.Context(), r); !errors.Is(err, refusal) {
		t.Error(err)
	}
	a.token = func(context.Context) (string, error) { return "secret\nX: 1", nil }
	if _, err := c.Call(t.Context(), r); err == nil || strings.Contains(err.Error(), "secret") {
		t.Error(err)
	}
}

func TestTheHandshakeWaitsForTheStreamOfTheServer(t *testing.T) {
	var open atomic.Bool
	f := &fake{get: func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(50 * time.Millisecond) // a busy server
		open.Store(true)
		events(w)(": open\n\n")
		<-r.Context().Done()
	}}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	c, _ := dial(t, server.URL)
	handshake(t, c)
	if !open.Load() {
		t.Error("the handshake ended before the stream was open: the server would lose its questions")
	}
}

func TestAnAuthorizerThatSignsRequestsAnswersALoginAndANonce(t *testing.T) {
	var requests atomic.Int32
	server := serveStrict(t, post(func(w http.ResponseWriter, r *http.Request, m incoming) {
		requests.Add(1)
		switch r.Header.Get("DPoP") {
		case "":
			w.Header().Set("WWW-Authenticate", "DPoP")
		case "proof without a nonce":
			w.Header().Set("WWW-Authenticate", `DPoP error="use_dpop_nonce"`)
		case "proof with a nonce":
			answer(w, m, "{}")
			return
		}
		http.Error(w, "no", http.StatusUnauthorized)
	}))
	proofs := []string{"", "proof without a nonce", "proof with a nonce"}
	a := &signer{}
	a.token = func(context.Context) (string, error) { return "", errors.New("the token cannot be sent alone") }
	a.challenge = func(context.Context, *http.Response) (bool, error) { proofs = proofs[1:]; return true, nil }
	a.sign = func(req *http.Request) error {
		if proofs[0] != "" {
			req.Header.Set("DPoP", proofs[0])
		}
		return nil
	}
	c, _ := dial(t, server.URL, func(d *httpclient.Dialer) { d.Authorizer = a })
	if _, err := c.Call(t.Context(), legacyCall("a", "{}")); err != nil || requests.Load() != 3 {
		t.Errorf("%v after %d requests", err, requests.Load())
	}
	proofs = slices.Repeat([]string{""}, 20)
	requests.Store(0)
	var h *rpc.HTTPError
	if _, err := c.Call(t.Context(), legacyCall("a", "{}")); !errors.As(err, &h) || h.Status != 401 || requests.Load() != 5 {
		t.Errorf("%v after %d requests", err, requests.Load())
	}
	refusal := errors.New("no key")
	a.sign = func(*http.Request) error { return refusal }
	if _, err := c.Call(t.Context(), legacyCall("a", "{}")); !errors.Is(err, refusal) {
		t.Error(err)
	}
}

func TestACanceledChallengeIsNotTheAnswerForOthers(t *testing.T) {
	var want atomic.Value
	want.Store("t2")
	var requests atomic.Int32
	server := guarded(t, &want, &requests)
	var token atomic.Value
	token.Store("t1")
	first := true
	running := make(chan struct{})
	c, _ := dial(t, server.URL, func(d *httpclient.Dialer) {
		d.Authorizer = &authorizer{
			token: func(context.Context) (string, error) { return token.Load().(string), nil },
			challenge: func(ctx context.Context, _ *http.Response) (bool, error) {
				if first { // challenges do not overlap
					first = false
					close(running)
					<-ctx.Done()
					return false, ctx.Err()
				}
				token.Store("t2")
				return true, nil
			},
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		_, err := c.Call(ctx, legacyCall("a", "{}"))
		left <- err
	}()
	<-running
	stays := make(chan error, 1)
	go func() {
		_, err := c.Call(t.Context(), legacyCall("a", "{}"))
		stays <- err
	}()
	cancel()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := <-stays; err != nil {
		t.Error(err)
	}
}

func TestAnAuthorizerThatHangsHoldsNoCaller(t *testing.T) {
	var want atomic.Value
	want.Store("t2")
	var requests atomic.Int32
	server := guarded(t, &want, &requests)
	running, release := make(chan struct{}), make(chan struct{})
	defer close(release)
	c, _ := dial(t, server.URL, func(d *httpclient.Dialer) {
		d.Authorizer = &authorizer{
			token: func(context.Context) (string, error) { return "t1", nil },
			challenge: func(context.Context, *http.Response) (bool, error) {
				close(running)
				<-release
				return false, nil
			},
		}
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("deadline")
	go func() {
		<-running
		cancel(cause)
	}()
	if _, err := c.Call(ctx, legacyCall("a", "{}")); err != cause { //nolint:errorlint // the contract of Call
		t.Error(err)
	}
}

func TestTheStreamOfTheServerIsNoReasonForAChallenge(t *testing.T) {
	gets := make(chan struct{}, 10)
	server := serveStrict(t, &fake{get: func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		gets <- struct{}{}
	}})
	c, _ := dial(t, server.URL, func(d *httpclient.Dialer) {
		d.Authorizer = &authorizer{
			token: func(context.Context) (string, error) { return "t1", nil },
			challenge: func(context.Context, *http.Response) (bool, error) {
				t.Error("a challenge")
				return false, nil
			},
		}
	})
	handshake(t, c)
	<-gets
	_ = c.Close()
}

func TestHeaderValuesAreNotLogged(t *testing.T) {
	var log bytes.Buffer
	server := serveStrict(t, &fake{post: func(w http.ResponseWriter, _ *http.Request, m incoming) {
		if m.Method == "broken" {
			panic(http.ErrAbortHandler)
		}
		write := events(w)
		write("data: nonsense\n\n")
	}})
	c, _ := dial(t, server.URL+"/?key=secret", func(d *httpclient.Dialer) {
		d.Headers = map[string]string{"Authorization": "Bearer secret"}
		d.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	handshake(t, c)
	for _, method := range []string{"tools/list", "no/such"} {
		if _, err := c.Call(t.Context(), &rpc.Request{Method: method}); err == nil || strings.Contains(err.Error(), "secret") {
			t.Error(err)
		}
	}
	_ = c.Close()
	if log.Len() == 0 || strings.Contains(log.String(), "secret") {
		t.Errorf("logged %q", &log)
	}
}

func TestTheOldStreamNamesAnEndpointOfItsOrigin(t *testing.T) {
	for stream, want := range map[string]string{
		"event: endpoint\ndata: https://elsewhere.example/messages?secret\n\n": "405",
		"event: endpoint\ndata: http://[bad\n\n":                               "405",
		"data: {}\n\n":                                                         "405",
		"":                                                                     "405",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodGet {
				w.WriteHeader(http.StatusMethodNotAllowed)
				return
			}
			events(w)("%s", stream)
		}))
		c, _ := dial(t, server.URL, func(d *httpclient.Dialer) { d.AnswerTimeout = time.Second })
		_, err := c.Call(t.Context(), &rpc.Request{Method: "initialize", Params: json.RawMessage(initializeParams)})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", stream, err)
		}
		_ = c.Close()
		server.Close()
	}
}

func TestARestartedOldServerIsALostSession(t *testing.T) {
	messages := make(chan incoming, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodGet:
			stream := events(w)
			stream("event: endpoint\ndata: messages?session=1\n\n")
			stream("event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{}}\n\n", (<-messages).ID)
			<-r.Context().Done()
		case r.URL.Path == "/messages" && r.URL.RawQuery == "session=1":
			body, _ := io.ReadAll(r.Body)
			var m incoming
			_ = json.Unmarshal(body, &m)
			if m.Method != "initialize" {
				http.Error(w, "Could not find session", http.StatusNotFound)
				return
			}
			messages <- m
			w.WriteHeader(http.StatusAccepted)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer server.Close()
	c, _ := dial(t, server.URL+"/sse")
	defer c.Close()
	if _, err := c.Call(t.Context(), &rpc.Request{Method: "initialize", Params: json.RawMessage(initializeParams)}); err != nil {
		t.Fatal(err)
	}
	delivered := true
	r := legacyCall("a", "{}")
	r.NotDelivered = func() { delivered = false }
	if _, err := c.Call(t.Context(), r); !errors.Is(err, rpc.ErrSessionLost) || delivered {
		t.Errorf("%v, delivered: %v", err, delivered)
	}
	<-c.Done()
}
