package peer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/dragoman-go/dragoman/mcp/internal/rpc"
)

// server is a scripted server. handle answers a request; its error may be an *rpc.Error.
type server struct {
	t      testing.TB
	handle func(ctx context.Context, c *conn, r *rpc.Request) (string, error)

	mu    sync.Mutex
	conns []*conn
	seen  []string // methods in order
}

func (s *server) Dial(_ context.Context, h rpc.Handler) (rpc.Conn, error) {
	c := &conn{server: s, handler: h, done: make(chan struct{}), answers: make(chan answer, 16)}
	s.mu.Lock()
	defer s.mu.Unlock()
	c.number = len(s.conns) + 1
	s.conns = append(s.conns, c)
	return c, nil
}

func (s *server) dials() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

func (s *server) count(method string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.seen {
		if m == method {
			n++
		}
	}
	return n
}

// answer is a response of the client to a request of the server.
type answer struct {
	id      rpc.ID
	result  string
	failure *rpc.Error
}

// conn is a connection to a scripted server. It refuses requests that a strict server refuses.
type conn struct {
	server  *server
	handler rpc.Handler
	number  int
	answers chan answer

	mu       sync.Mutex
	revision string
	ended    bool
	err      error
	done     chan struct{}
}

func (c *conn) Call(ctx context.Context, r *rpc.Request) (json.RawMessage, error) {
	s := c.server
	s.mu.Lock()
	s.seen = append(s.seen, r.Method)
	s.mu.Unlock()
	if c.isOver() {
		if r.NotDelivered != nil {
			r.NotDelivered()
		}
		return nil, rpc.ErrLost
	}
	c.validate(r)
	type outcome struct {
		raw string
		err error
	}
	out := make(chan outcome, 1)
	go func() {
		raw, err := s.handle(ctx, c, r)
		out <- outcome{raw, err}
	}()
	select {
	case o := <-out:
		if o.err != nil {
			return nil, o.err
		}
		return json.RawMessage(o.raw), nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-c.done:
		select {
		case o := <-out:
			return json.RawMessage(o.raw), o.err
		case <-time.After(20 * time.Millisecond): // the script may say more precisely what happened
		}
		return nil, rpc.ErrLost
	}
}

func (c *conn) Notify(_ context.Context, method string, params json.RawMessage) error {
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	c.server.seen = append(c.server.seen, method)
	return nil
}

func (c *conn) Respond(_ context.Context, id rpc.ID, result json.RawMessage, failure *rpc.Error) error {
	c.answers <- answer{id, string(result), failure}
	return nil
}

func (c *conn) SetRevision(r string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.revision = r
}
func (c *conn) Done() <-chan struct{} { return c.done }
func (c *conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}
func (c *conn) Close() error { c.kill(rpc.ErrClosed); return nil }

// kill ends the connection.
func (c *conn) kill(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended {
		c.ended, c.err = true, err
		close(c.done)
	}
}

func (c *conn) isOver() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended
}

// notify sends a notification to the client.
func (c *conn) notify(method, params string, during *rpc.Request) {
	c.handler.Notification(rpc.Incoming{Method: method, Params: json.RawMessage(params), During: during})
}

// ask sends a request to the client and waits for the answer.
func (c *conn) ask(method, params string, during *rpc.Request) answer {
	c.handler.Request(rpc.Incoming{ID: `"s1"`, Method: method, Params: json.RawMessage(params), During: during})
	return <-c.answers
}

// validate checks a request against the schema of its revision.
func (c *conn) validate(r *rpc.Request) {
	revision := rpc.Revision20251125
	if rpc.MetaString(r.Params, rpc.MetaRevision) != "" {
		revision = rpc.Revision20260728
	}
	name := map[string]string{
		"server/discover": "DiscoverRequest", "initialize": "InitializeRequest", "tools/list": "ListToolsRequest", "tools/call": "CallToolRequest",
		"prompts/get": "GetPromptRequest", "resources/read": "ReadResourceRequest", "resources/list": "ListResourcesRequest", "prompts/list": "ListPromptsRequest",
		"subscriptions/listen": "SubscriptionsListenRequest", "resources/subscribe": "SubscribeRequest", "completion/complete": "CompleteRequest",
	}[r.Method]
	if name == "" {
		return
	}
	params := r.Params
	if params == nil {
		params = json.RawMessage("{}")
	}
	message := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, r.Method, params)
	if r.Method == "subscriptions/listen" && schemaOf(revision, name) == nil {
		return
	}
	if err := checkSchema(revision, name, message); err != nil {
		c.server.t.Errorf("%s is not valid in %s: %v\n%s", r.Method, revision, err, message)
	}
}

var (
	schemasOnce sync.Mutex
	schemas     = map[string]*jsonschema.Schema{}
)

// schemaOf returns the compiled schema of a message, or nil if the file with it is absent.
func schemaOf(revision, name string) *jsonschema.Schema {
	schemasOnce.Lock()
	defer schemasOnce.Unlock()
	key := revision + " " + name
	if s, ok := schemas[key]; ok {
		return s
	}
	schemas[key] = nil
	b, err := os.ReadFile("../../../../shared/specs/mcp-" + revision + ".schema.json")
	if err != nil {
		return nil
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		panic(err)
	}
	at := "#/$defs/" + name
	if !strings.Contains(string(b), `"$defs"`) {
		at = "#/definitions/" + name
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("mcp.json", doc); err != nil {
		panic(err)
	}
	s, err := compiler.Compile("mcp.json" + at)
	if err != nil {
		return nil
	}
	schemas[key] = s
	return s
}

func checkSchema(revision, name, message string) error {
	s := schemaOf(revision, name)
	if s == nil {
		return nil
	}
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(message))
	if err != nil {
		return err
	}
	return s.Validate(v)
}

func TestSchemasOfTheOracleArePresent(t *testing.T) {
	if _, err := os.Stat("../../../../shared/specs"); err != nil {
		t.Skip("the published schemas are not here: messages are not checked against them")
	}
	for revision, names := range map[string][]string{
		rpc.Revision20251125: {"InitializeRequest", "CallToolRequest", "ListToolsRequest"},
		rpc.Revision20260728: {"DiscoverRequest", "CallToolRequest", "ListToolsRequest", "SubscriptionsListenRequest"},
	} {
		for _, name := range names {
			if schemaOf(revision, name) == nil {
				t.Errorf("%s of %s cannot be compiled", name, revision)
			}
		}
	}
}

const (
	allCapabilities = `{"tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"prompts":{},"completions":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}`
	discovered      = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":` + allCapabilities + `,"ttlMs":0,"cacheScope":"private"}`
	initialized     = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true},"prompts":{},"tasks":{"requests":{"tools":{"call":{}}}}},"serverInfo":{"name":"s","version":"1"}}`
	oneTool         = `{"resultType":"complete","tools":[{"name":"t","inputSchema":{"type":"object"}}],"ttlMs":60000,"cacheScope":"private"}`
	done            = `{"resultType":"complete","content":[{"type":"text","text":"done"}]}`
)

// modern answers the requests that every modern server has, and passes others to next.
func modern(next func(ctx context.Context, c *conn, r *rpc.Request) (string, error)) func(context.Context, *conn, *rpc.Request) (string, error) {
	return func(ctx context.Context, c *conn, r *rpc.Request) (string, error) {
		if rpc.MetaString(r.Params, rpc.MetaRevision) != rpc.Revision20260728 {
			return "", &rpc.Error{Code: rpc.CodeInvalidParams, Message: "missing _meta"}
		}
		switch r.Method {
		case "server/discover":
			return discovered, nil
		case "tools/list":
			return oneTool, nil
		case "subscriptions/listen":
			c.notify("notifications/subscriptions/acknowledged", `{"notifications":`+string(fields(r.Params)["notifications"])+`}`, r)
			<-ctx.Done()
			return "", context.Cause(ctx)
		default:
			return next(ctx, c, r)
		}
	}
}

// older answers the requests that every server with a handshake has.
func older(next func(ctx context.Context, c *conn, r *rpc.Request) (string, error)) func(context.Context, *conn, *rpc.Request) (string, error) {
	return func(ctx context.Context, c *conn, r *rpc.Request) (string, error) {
		switch r.Method {
		case "server/discover":
			return "", &rpc.Error{Code: rpc.CodeMethodNotFound, Message: "method not found"}
		case "initialize":
			return initialized, nil
		case "tools/list":
			return `{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}`, nil
		default:
			return next(ctx, c, r)
		}
	}
}

// connect returns a peer with short times.
func connect(t testing.TB, s *server, change ...func(*Config)) *Peer {
	t.Helper()
	s.t = t
	cfg := Config{
		Label: "srv", Dialer: s, Elicitation: true, Tasks: true, Debounce: time.Millisecond, Backoff: time.Millisecond,
		ProbeTimeout: 3 * time.Second, ConnectTimeout: 5 * time.Second, CallTimeout: 5 * time.Second,
	}
	for _, f := range change {
		f(&cfg)
	}
	p := New(cfg)
	t.Cleanup(func() { _ = p.Close() })
	return p
}

func callTool(t testing.TB, p *Peer, o Options) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	raw, err := p.Call(ctx, "tools/call", json.RawMessage(`{"name":"t","arguments":{}}`), o)
	return string(raw), err
}

func code(err error) int64 {
	var e *rpc.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return 0
}
