package mcpserver_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/dragoman-go/dragoman/mcp/mcpserver"
	"github.com/dragoman-go/dragoman/schema"
	"github.com/dragoman-go/dragoman/tool"
)

const (
	modern = "2026-07-28"
	legacy = "2025-11-25"
)

// oracle validates messages against the official schemas, which are not part of the module.
type oracle struct {
	mu       sync.Mutex
	compiled map[string]*schema.Validator
}

var official = &oracle{compiled: map[string]*schema.Validator{}}

func (o *oracle) check(t testing.TB, revision, def string, message json.RawMessage) {
	t.Helper()
	if def == "" {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	key := revision + " " + def
	v, ok := o.compiled[key]
	if !ok {
		doc, err := os.ReadFile("../../../shared/specs/mcp-" + revision + ".schema.json")
		if errors.Is(err, fs.ErrNotExist) {
			t.Logf("the official schema of %s is absent: messages are not validated", revision)
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(doc, &fields); err != nil {
			t.Fatal(err)
		}
		fields["$ref"] = json.RawMessage(`"#/$defs/` + def + `"`)
		whole, err := json.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		if v, err = schema.Compile(whole); err != nil {
			t.Fatalf("%s of %s: %v", def, revision, err)
		}
		o.compiled[key] = v
	}
	if err := v.Validate(message); err != nil {
		t.Errorf("%s breaks %s of revision %s: %v", message, def, revision, err)
	}
}

var resultTypes = map[string]string{
	"server/discover": "DiscoverResult", "initialize": "InitializeResult", "tools/list": "ListToolsResult", "tools/call": "CallToolResult",
	"resources/list": "ListResourcesResult", "resources/templates/list": "ListResourceTemplatesResult", "resources/read": "ReadResourceResult",
	"prompts/list": "ListPromptsResult", "prompts/get": "GetPromptResult", "completion/complete": "CompleteResult",
}

// client speaks to a server without the SDK, and validates every message that it gets.
type client struct {
	t        testing.TB
	url      string
	revision string
	session  string
	header   http.Header
	caps     map[string]any
	n        int
	// answer answers requests of the server, in older revisions.
	answer func(method string, params json.RawMessage) any
	// note gets the notifications.
	note func(json.RawMessage)
}

// reply is the response to a request.
type reply struct {
	status int
	header http.Header
	raw    string
	result json.RawMessage
	code   int
	text   string
	// others are the messages before the response.
	others []json.RawMessage
}

type object = map[string]any

func (c *client) meta() object {
	return object{
		"io.modelcontextprotocol/protocolVersion": c.revision, "io.modelcontextprotocol/clientInfo": object{"name": "test", "version": "1"},
		"io.modelcontextprotocol/clientCapabilities": orEmpty(c.caps),
	}
}

func orEmpty(m map[string]any) map[string]any {
	if m == nil {
		return object{}
	}
	return m
}

// request returns a request as the revision of the client demands.
func (c *client) request(ctx context.Context, method string, params object) *http.Request {
	c.t.Helper()
	c.n++
	params = maps.Clone(orEmpty(params))
	if c.revision >= modern {
		meta := c.meta()
		if given, ok := params["_meta"].(object); ok {
			maps.Copy(meta, given)
		}
		params["_meta"] = meta
	}
	r := c.post(ctx, encoded(c.t, object{"jsonrpc": "2.0", "id": c.n, "method": method, "params": params}))
	if c.revision >= modern {
		r.Header.Set("Mcp-Method", method)
		for _, name := range []string{"name", "uri", "taskId"} {
			if v, ok := params[name].(string); ok && (name == "name" || method == "resources/read" || strings.HasPrefix(method, "tasks/")) {
				r.Header.Set("Mcp-Name", v)
			}
		}
	}
	return r
}

func (c *client) post(ctx context.Context, body []byte) *http.Request {
	c.t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header = c.header.Clone()
	if r.Header == nil {
		r.Header = http.Header{}
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if c.session != "" {
		r.Header.Set("Mcp-Session-Id", c.session)
	}
	if c.revision >= modern || c.session != "" {
		r.Header.Set("MCP-Protocol-Version", c.revision)
	}
	return r
}

func (c *client) do(method string, params object) *reply {
	c.t.Helper()
	return c.send(c.request(c.t.Context(), method, params), method)
}

func (c *client) send(r *http.Request, method string) *reply {
	c.t.Helper()
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	out := &reply{status: res.StatusCode, header: res.Header}
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		in := bufio.NewReader(res.Body)
		for {
			line, err := in.ReadString('\n')
			if data, ok := strings.CutPrefix(line, "data: "); ok && strings.TrimSpace(data) != "" {
				c.take(out, method, json.RawMessage(strings.TrimSpace(data)))
			}
			if err != nil {
				break
			}
		}
		return out
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	if out.raw = string(body); strings.HasPrefix(res.Header.Get("Content-Type"), "application/json") {
		c.take(out, method, body)
	}
	return out
}

func (c *client) take(out *reply, method string, raw json.RawMessage) {
	c.t.Helper()
	var m struct {
		ID     json.RawMessage
		Method string
		Params json.RawMessage
		Result json.RawMessage
		Error  *struct {
			Code    int
			Message string
			Data    json.RawMessage
		}
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		c.t.Fatalf("%s: %v", raw, err)
	}
	rev := c.revision
	if rev < legacy {
		rev = legacy
	}
	if m.Error == nil || string(m.ID) != "null" { // an error about an unreadable request has no id
		official.check(c.t, rev, "JSONRPCMessage", raw)
	}
	switch {
	case m.Method != "" && m.ID != nil:
		official.check(c.t, rev, "ServerRequest", raw)
		out.others = append(out.others, raw)
		if c.answer == nil {
			c.t.Fatalf("the server asks %s", raw)
		}
		back := c.send(c.post(c.t.Context(), encoded(c.t, object{"jsonrpc": "2.0", "id": m.ID, "result": c.answer(m.Method, m.Params)})), "")
		if back.status != http.StatusAccepted {
			c.t.Errorf("the answer got status %d", back.status)
		}
	case m.Method != "":
		official.check(c.t, rev, "ServerNotification", raw)
		out.others = append(out.others, raw)
		if c.note != nil {
			c.note(raw)
		}
	case m.Error != nil:
		out.code, out.text, out.result = m.Error.Code, m.Error.Message, m.Error.Data
	default:
		def := resultTypes[method]
		switch kind := at[string](m.Result, "resultType"); kind {
		case "input_required":
			def = "InputRequiredResult"
		case "task":
			def = ""
		}
		official.check(c.t, rev, def, m.Result)
		out.result = m.Result
	}
}

// open begins a session.
func (c *client) open() *client {
	c.t.Helper()
	r := c.do("initialize", object{"protocolVersion": c.revision, "capabilities": orEmpty(c.caps), "clientInfo": object{"name": "test", "version": "1"}})
	if r.status != 200 || r.result == nil {
		c.t.Fatalf("initialize: %d %s %s", r.status, r.raw, r.text)
	}
	c.session = r.header.Get("Mcp-Session-Id")
	if r := c.send(c.post(c.t.Context(), []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)), ""); r.status != http.StatusAccepted {
		c.t.Fatalf("initialized: %d %s", r.status, r.raw)
	}
	return c
}

func (c *client) call(name string, args object, more ...object) *reply {
	c.t.Helper()
	params := object{"name": name, "arguments": orEmpty(args)}
	for _, m := range more {
		maps.Copy(params, m)
	}
	return c.do("tools/call", params)
}

// texts returns the text of a result.
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

func (r *reply) isError() bool { return at[bool](r.result, "isError") }

func (r *reply) state() string { return at[string](r.result, "requestState") }

// at returns a field of JSON.
func at[T any](raw json.RawMessage, path ...string) (v T) {
	for _, name := range path {
		var m map[string]json.RawMessage
		if json.Unmarshal(raw, &m) != nil {
			return v
		}
		raw = m[name]
	}
	_ = json.Unmarshal(raw, &v)
	return v
}

func encoded(t testing.TB, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

var forms = object{"elicitation": object{}}

func yes(key string) object {
	return object{key: object{"action": "accept", "content": object{"approve": true}}}
}

func no(key, why string) object {
	return object{key: object{"action": "accept", "content": object{"approve": false, "message": why}}}
}

func retry(r *reply, responses object) object {
	return object{"inputResponses": responses, "requestState": r.state()}
}

// serve starts a server over HTTP.
func serve(t testing.TB, o mcpserver.Options) (*mcpserver.Server, string) {
	t.Helper()
	if o.Name == "" {
		o.Name = "test server"
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s, err := mcpserver.New(o)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(s.Handler())
	t.Cleanup(func() {
		_ = s.Close()
		web.CloseClientConnections()
		web.Close()
	})
	return s, web.URL + "/mcp"
}

func newClient(t testing.TB, url, revision string, caps object) *client {
	c := &client{t: t, url: url, revision: revision, caps: caps}
	if revision < modern {
		c.open()
	}
	return c
}

// counter is a tool with an effect.
type counter struct {
	mu   sync.Mutex
	args []string
}

func (c *counter) add(s string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.args = append(c.args, s)
}

func (c *counter) ran() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.args...)
}

type transfer struct {
	To     string `json:"to"`
	Amount int    `json:"amount" jsonschema:"minimum=1"`
}

func (c *counter) tool(opts ...tool.Option) tool.Tool {
	return tool.New("pay", "Pays a person.", func(_ context.Context, in transfer) (string, error) {
		c.add(fmt.Sprintf("%s %d", in.To, in.Amount))
		return "paid", nil
	}, opts...)
}

func plain(s *tool.Settings) { s.Trusted = true }

// judge is a policy.
type judge struct {
	mu      sync.Mutex
	version string
	decide  func(*tool.Question) tool.Decision
}

func (j *judge) Decide(_ context.Context, q *tool.Question) (tool.Decision, error) {
	return j.decide(q), nil
}

func (j *judge) Version() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.version
}

func (j *judge) set(version string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.version = version
}

func bearer(key string) http.Header { return http.Header{"Authorization": {"Bearer " + key}} }
