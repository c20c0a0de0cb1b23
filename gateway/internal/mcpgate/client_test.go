package mcpgate_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-go/dragoman/gateway"
	"github.com/dragoman-go/dragoman/gateway/access"
	"github.com/dragoman-go/dragoman/mcp"
)

type object = map[string]any

// logs collects the log of a gateway.
type logs struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// served is a running gateway.
type served struct {
	t       testing.TB
	url     string
	log     *logs
	gateway *gateway.Gateway
}

// serve serves a config.
func serve(t testing.TB, c *gateway.Config, more ...func(*gateway.Options)) *served {
	t.Helper()
	s := &served{t: t, log: &logs{}}
	o := gateway.Options{Log: slog.New(slog.NewJSONHandler(s.log, nil))}
	for _, m := range more {
		m(&o)
	}
	g, err := gateway.New(c, o)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(g)
	t.Cleanup(func() {
		web.CloseClientConnections()
		_ = g.Close()
		web.Close()
		if t.Failed() {
			t.Log(s.log.String())
		}
	})
	s.url, s.gateway = web.URL, g
	return s
}

// open returns a config without keys.
func open(servers ...mcp.Server) *gateway.Config {
	return &gateway.Config{MCP: &gateway.MCP{Servers: servers}}
}

const secretOfA, secretOfB = "secret-of-key-a-123", "secret-of-key-b-123"

// keyed returns a config with the keys a and b.
func keyed(a, b []string, servers ...mcp.Server) *gateway.Config {
	c := open(servers...)
	c.Keys = []access.Key{{Name: "a", Hash: access.HashOf(secretOfA)}, {Name: "b", Hash: access.HashOf(secretOfB)}}
	c.MCP.Keys = map[string][]string{}
	if a != nil {
		c.MCP.Keys["a"] = a
	}
	if b != nil {
		c.MCP.Keys["b"] = b
	}
	return c
}

// client speaks to a gateway without the SDK and sees every byte.
type client struct {
	t        testing.TB
	url      string
	revision string
	session  string
	key      string
	caps     object
	header   http.Header
	mu       sync.Mutex
	n        int
	// answer answers requests of the server, in older revisions.
	answer func(method string, params json.RawMessage) any
}

// reply is the response to a request.
type reply struct {
	status int
	header http.Header
	raw    string
	result json.RawMessage
	code   int
	text   string
	data   json.RawMessage
	// notes are the notifications before the response, asked the requests.
	notes, asked []json.RawMessage
}

var all = object{"elicitation": object{"form": object{}, "url": object{}}, "sampling": object{}, "roots": object{}}

// connect returns a client of a revision at a path.
func (s *served) connect(path, revision string, caps object, key ...string) *client {
	s.t.Helper()
	c := &client{t: s.t, url: s.url + path, revision: revision, caps: caps}
	if len(key) > 0 {
		c.key = key[0]
	}
	if c.caps == nil {
		c.caps = object{}
	}
	if revision < r2607 {
		r := c.do("initialize", object{"protocolVersion": revision, "capabilities": c.caps, "clientInfo": object{"name": "test", "version": "1"}})
		if c.session = r.header.Get("Mcp-Session-Id"); c.session == "" {
			s.t.Fatalf("initialize: %d %s %s", r.status, r.raw, r.text)
		}
		if r := c.send(c.post(s.t.Context(), []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`))); r.status != http.StatusAccepted {
			s.t.Fatalf("initialized: %d %s", r.status, r.raw)
		}
	}
	return c
}

func (c *client) post(ctx context.Context, body []byte) *http.Request {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	if c.header != nil {
		r.Header = c.header.Clone()
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if c.key != "" {
		r.Header.Set("Authorization", "Bearer "+c.key)
	}
	if c.session != "" {
		r.Header.Set("Mcp-Session-Id", c.session)
	}
	if c.revision >= r2607 || c.session != "" {
		r.Header.Set("MCP-Protocol-Version", c.revision)
	}
	return r
}

func (c *client) request(ctx context.Context, method string, params object) *http.Request {
	c.mu.Lock()
	c.n++
	id := c.n
	c.mu.Unlock()
	params = maps.Clone(params)
	if params == nil {
		params = object{}
	}
	meta, _ := params["_meta"].(object)
	if c.revision >= r2607 {
		meta = maps.Clone(meta)
		if meta == nil {
			meta = object{}
		}
		meta[metaPrefix+"protocolVersion"], meta[metaPrefix+"clientInfo"], meta[metaPrefix+"clientCapabilities"] = c.revision, object{"name": "test", "version": "1"}, c.caps
		params["_meta"] = meta
	}
	body, err := json.Marshal(object{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
	if err != nil {
		c.t.Fatal(err)
	}
	r := c.post(ctx, body)
	if c.revision >= r2607 {
		r.Header.Set("Mcp-Method", method)
		for _, name := range []string{"name", "uri", "taskId"} {
			if v, ok := params[name].(string); ok {
				r.Header.Set("Mcp-Name", v)
			}
		}
	}
	return r
}

func (c *client) do(method string, params object) *reply {
	c.t.Helper()
	return c.send(c.request(c.t.Context(), method, params))
}

func (c *client) call(name string, args object, more ...object) *reply {
	c.t.Helper()
	if args == nil {
		args = object{}
	}
	params := object{"name": name, "arguments": args}
	for _, m := range more {
		maps.Copy(params, m)
	}
	return c.do("tools/call", params)
}

func (c *client) send(r *http.Request) *reply {
	c.t.Helper()
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return &reply{text: err.Error()}
	}
	defer func() { _ = res.Body.Close() }()
	out := &reply{status: res.StatusCode, header: res.Header}
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		in := bufio.NewReader(res.Body)
		for {
			line, err := in.ReadString('\n')
			if data, ok := strings.CutPrefix(line, "data: "); ok && strings.TrimSpace(data) != "" {
				c.take(out, json.RawMessage(strings.TrimSpace(data)))
			}
			if err != nil {
				return out
			}
		}
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	if out.raw = string(body); strings.HasPrefix(res.Header.Get("Content-Type"), "application/json") {
		c.take(out, body)
	}
	return out
}

func (c *client) take(out *reply, raw json.RawMessage) {
	c.t.Helper()
	var m message
	if err := json.Unmarshal(raw, &m); err != nil {
		c.t.Fatalf("%s: %v", raw, err)
	}
	switch {
	case m.Method != "" && m.ID != nil:
		out.asked = append(out.asked, raw)
		answer := any(object{"action": "cancel"})
		if c.answer != nil {
			answer = c.answer(m.Method, m.Params)
		}
		back, _ := json.Marshal(object{"jsonrpc": "2.0", "id": m.ID, "result": answer})
		if r := c.send(c.post(c.t.Context(), back)); r.status != http.StatusAccepted {
			c.t.Errorf("the answer got status %d", r.status)
		}
	case m.Method != "":
		out.notes = append(out.notes, raw)
	case m.Error != nil:
		out.code, out.text, out.data = field[int](m.Error, "code"), field[string](m.Error, "message"), field[json.RawMessage](m.Error, "data")
	default:
		out.result = m.Result
	}
}

// finish answers the questions of a reply, of a modern client.
func (c *client) finish(r *reply, name string, args object, answer any) *reply {
	c.t.Helper()
	for range 5 {
		if field[string](r.result, "resultType") != "input_required" {
			return r
		}
		responses := object{}
		for key := range field[map[string]json.RawMessage](r.result, "inputRequests") {
			responses[key] = answer
		}
		r = c.call(name, args, object{"inputResponses": responses, "requestState": field[string](r.result, "requestState")})
	}
	return r
}

// listen opens a stream of notifications and returns them.
func (c *client) listen(params object) (<-chan json.RawMessage, func()) {
	c.t.Helper()
	ctx, cancel := context.WithCancel(c.t.Context())
	var r *http.Request
	if c.revision >= r2607 {
		r = c.request(ctx, "subscriptions/listen", params)
	} else {
		r = c.post(ctx, nil)
		r.Method, r.Body, r.ContentLength = http.MethodGet, nil, 0
	}
	res, err := http.DefaultClient.Do(r) //nolint:bodyclose // the goroutine below closes it
	if err != nil || res.StatusCode != http.StatusOK {
		c.t.Fatalf("listening: %v %v", res, err)
	}
	out := make(chan json.RawMessage, 100)
	go func() {
		defer func() { _ = res.Body.Close() }()
		in := bufio.NewReader(res.Body)
		for {
			line, err := in.ReadString('\n')
			if data, ok := strings.CutPrefix(line, "data: "); ok && strings.TrimSpace(data) != "" {
				out <- json.RawMessage(strings.TrimSpace(data))
			}
			if err != nil {
				close(out)
				return
			}
		}
	}()
	if c.revision >= r2607 {
		await(c.t, out, "acknowledged")
	}
	return out, cancel
}

// await waits for a notification.
func await(t testing.TB, c <-chan json.RawMessage, method string) json.RawMessage {
	t.Helper()
	limit := time.After(waitTime)
	for {
		select {
		case m, ok := <-c:
			if !ok {
				t.Fatalf("the stream ended before %s", method)
			}
			if strings.Contains(field[string](m, "method"), method) {
				return m
			}
		case <-limit:
			t.Fatalf("no notification %s", method)
		}
	}
}

func (r *reply) texts() string {
	var v struct {
		Content []struct{ Text string }
	}
	_ = json.Unmarshal(r.result, &v)
	var out []string
	for _, b := range v.Content {
		out = append(out, b.Text)
	}
	return strings.Join(out, "\n")
}

func (r *reply) failed() bool { return field[bool](r.result, "isError") }

func (r *reply) String() string {
	return fmt.Sprintf("%d %s %s %d %s", r.status, r.raw, r.result, r.code, r.text)
}

// toolNames returns the names of a list.
func (r *reply) toolNames(list ...string) []string {
	var v []struct{ Name, URI, URITemplate string }
	name := "tools"
	if len(list) > 0 {
		name = list[0]
	}
	_ = json.Unmarshal(field[json.RawMessage](r.result, name), &v)
	out := []string{}
	for _, t := range v {
		switch {
		case strings.HasPrefix(name, "resources"):
			out = append(out, t.URI)
		case name == "resourceTemplates":
			out = append(out, t.URITemplate)
		default:
			out = append(out, t.Name)
		}
	}
	return out
}
