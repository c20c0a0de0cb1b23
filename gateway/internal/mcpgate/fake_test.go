package mcpgate_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-go/dragoman/mcp"
)

// The revisions.
const (
	r2411, r2503, r2506, r2511, r2607 = "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"
)

const metaPrefix = "io.modelcontextprotocol/"

// fake is a strict server of one revision: it refuses what a server of that revision does not
// have.
type fake struct {
	revision, name string
	// tools and results replace those of the fake: raw objects, and raw results by tool.
	tools   []string
	results map[string]string
	// paid is the effect of the tool pay.
	paid func(to string)
	// capabilities replaces the declared ones.
	capabilities string
	// status, if not zero, is the answer to every HTTP request, with header.
	status int
	header http.Header

	mu       sync.Mutex
	sessions int
	open     map[string]bool
	asked    map[string]chan json.RawMessage
	nextAsk  int
	streams  map[string]func(string) // GET streams and listens, by session or id
	listens  map[string]json.RawMessage
	watched  map[string]bool
	extra    bool // a tool was added
	canceled chan string
	got      []string      // methods
	headers  []http.Header // of HTTP requests
	params   []json.RawMessage
	running  map[string]context.CancelFunc
	tasks    map[string]string
}

func (f *fake) modern() bool { return f.revision >= r2607 }

func newFake(revision string) *fake {
	return &fake{revision: revision, name: "fake", open: map[string]bool{}, asked: map[string]chan json.RawMessage{}, streams: map[string]func(string){}, listens: map[string]json.RawMessage{}, watched: map[string]bool{}, canceled: make(chan string, 100), running: map[string]context.CancelFunc{}, tasks: map[string]string{}}
}

type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

func field[T any](raw json.RawMessage, path ...string) (v T) {
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

type failure struct {
	code int
	text string
	data string
}

func (e *failure) Error() string { return e.text }

func fail(code int, text string) error { return &failure{code: code, text: text} }

// handle answers a message. send writes a message to the stream of the request.
func (f *fake) handle(ctx context.Context, m *message, send func(string)) {
	if m.Method == "" {
		f.mu.Lock()
		c := f.asked[string(m.ID)]
		f.mu.Unlock()
		if c != nil {
			if m.Error != nil {
				c <- json.RawMessage(`{"error":` + string(m.Error) + `}`)
			} else {
				c <- m.Result
			}
		}
		return
	}
	f.mu.Lock()
	f.got = append(f.got, m.Method)
	f.params = append(f.params, m.Params)
	f.mu.Unlock()
	if m.ID == nil {
		if m.Method == "notifications/cancelled" {
			id := field[json.RawMessage](m.Params, "requestId")
			f.mu.Lock()
			stop := f.running[string(id)]
			f.mu.Unlock()
			if stop != nil {
				stop()
			}
		}
		return
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	f.mu.Lock()
	f.running[string(m.ID)] = stop
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		delete(f.running, string(m.ID))
		f.mu.Unlock()
	}()
	result, err := f.answer(ctx, m, send)
	if err != nil {
		var e *failure
		if !errors.As(err, &e) {
			e = &failure{code: -32603, text: err.Error()}
		}
		data := ""
		if e.data != "" {
			data = `,"data":` + e.data
		}
		send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q%s}}`, m.ID, e.code, e.text, data))
		return
	}
	if f.modern() && !strings.Contains(result, `"resultType"`) {
		extra := `"resultType":"complete"`
		switch m.Method {
		case "server/discover", "tools/list", "resources/list", "resources/templates/list", "prompts/list", "resources/read":
			extra += `,"ttlMs":0,"cacheScope":"private"`
		}
		if result != "{}" {
			extra += ","
		}
		result = "{" + extra + result[1:]
	}
	send(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":` + result + `}`)
}

// ask asks the client: with a request in older revisions, and with a result in modern ones.
func (f *fake) ask(ctx context.Context, m *message, send func(string), method, params string) (answer json.RawMessage, result string, err error) {
	if f.modern() {
		need := map[string]string{"elicitation/create": "elicitation", "sampling/createMessage": "sampling", "roots/list": "roots"}[method]
		caps := field[map[string]json.RawMessage](m.Params, "_meta", metaPrefix+"clientCapabilities")
		if caps[need] == nil || need == "elicitation" && strings.Contains(params, `"url"`) && field[json.RawMessage](caps[need], "url") == nil {
			return nil, "", &failure{-32021, "the client lacks " + need, `{"requiredCapabilities":{"` + need + `":{}}}`}
		}
		if a := field[json.RawMessage](m.Params, "inputResponses", "q"); a != nil {
			if field[string](m.Params, "requestState") != "state <&>" {
				return nil, "", fail(-32602, "the state is wrong")
			}
			return a, "", nil
		}
		return nil, `{"resultType":"input_required","inputRequests":{"q":{"method":"` + method + `","params":` + params + `}},"requestState":"state <&>"}`, nil
	}
	f.mu.Lock()
	f.nextAsk++
	id := fmt.Sprintf(`"ask-%d"`, f.nextAsk)
	c := make(chan json.RawMessage, 1)
	f.asked[id] = c
	f.mu.Unlock()
	send(`{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":` + params + `}`)
	select {
	case a := <-c:
		return a, "", nil
	case <-ctx.Done():
		f.canceled <- "ask"
		return nil, "", ctx.Err()
	}
}

func text(s string) string {
	b, _ := json.Marshal(s)
	return `{"content":[{"type":"text","text":` + string(b) + `}]}`
}

const form = `{"mode":"form","message":"Which branch?","requestedSchema":{"type":"object","properties":{"b":{"type":"string"}},"required":["b"]}}`

func (f *fake) list() []string {
	if f.tools != nil {
		return f.tools
	}
	var out []string
	for _, name := range []string{"echo", "fail", "boom", "progress", "slow", "ask", "open", "sample", "roots", "list", "touch", "change", "log", "task"} {
		if name == "task" && !f.modern() && f.revision != r2511 {
			continue
		}
		extra := ""
		if name == "task" && f.revision == r2511 {
			extra = `,"execution":{"taskSupport":"required"}`
		}
		if name == "list" && f.modern() {
			extra = `,"outputSchema":{"type":"array"}`
		}
		out = append(out, `{"name":"`+name+`","description":"Does `+name+`.","inputSchema":{"type":"object","properties":{"text":{"type":"string"}}}`+extra+`}`)
	}
	if f.extra {
		out = append(out, `{"name":"added","inputSchema":{"type":"object"}}`)
	}
	return out
}

func (f *fake) answer(ctx context.Context, m *message, send func(string)) (string, error) {
	if f.modern() {
		if field[string](m.Params, "_meta", metaPrefix+"protocolVersion") != f.revision {
			return "", &failure{-32022, "unsupported revision", `{"supported":["` + f.revision + `"],"requested":"?"}`}
		}
		if field[json.RawMessage](m.Params, "_meta", metaPrefix+"clientCapabilities") == nil {
			return "", fail(-32602, "no clientCapabilities")
		}
	}
	caps := f.capabilities
	if caps == "" {
		caps = `{"tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"prompts":{"listChanged":true},"completions":{},"logging":{}}`
		if f.revision == r2511 {
			caps = caps[:len(caps)-1] + `,"tasks":{"requests":{"tools":{"call":{}}}}}`
		}
		if f.modern() {
			caps = caps[:len(caps)-1] + `,"extensions":{"io.modelcontextprotocol/tasks":{}}}`
		}
	}
	legacyOnly := func() error {
		if f.modern() {
			return fail(-32601, "method not found: "+m.Method)
		}
		return nil
	}
	switch m.Method {
	case "initialize":
		if err := legacyOnly(); err != nil {
			return "", err
		}
		return `{"protocolVersion":"` + f.revision + `","capabilities":` + caps + `,"serverInfo":{"name":"` + f.name + `","version":"1"}}`, nil
	case "ping":
		return "{}", legacyOnly()
	case "server/discover":
		if !f.modern() {
			return "", fail(-32601, "method not found")
		}
		return `{"supportedVersions":["` + f.revision + `"],"capabilities":` + caps + `}`, nil
	case "tools/list":
		f.mu.Lock()
		defer f.mu.Unlock()
		return `{"tools":[` + strings.Join(f.list(), ",") + `]}`, nil
	case "resources/list":
		return `{"resources":[{"uri":"file:///a.txt","name":"a","x-vendor":1}]}`, nil
	case "resources/templates/list":
		return `{"resourceTemplates":[{"uriTemplate":"file:///{path}","name":"files"}]}`, nil
	case "resources/read":
		uri := field[string](m.Params, "uri")
		if uri != "file:///a.txt" {
			if f.modern() {
				return "", &failure{-32602, "resource not found", `{"uri":"` + uri + `"}`}
			}
			return "", fail(-32002, "resource not found")
		}
		return `{"contents":[{"uri":"file:///a.txt","mimeType":"text/plain","text":"content","x-vendor":9007199254740993}]}`, nil
	case "resources/subscribe", "resources/unsubscribe":
		if err := legacyOnly(); err != nil {
			return "", err
		}
		f.mu.Lock()
		f.watched[field[string](m.Params, "uri")] = m.Method == "resources/subscribe"
		f.mu.Unlock()
		return "{}", nil
	case "prompts/list":
		return `{"prompts":[{"name":"review","arguments":[{"name":"lang","required":true}]}]}`, nil
	case "prompts/get":
		if field[string](m.Params, "name") != "review" {
			return "", fail(-32602, "unknown prompt")
		}
		return `{"messages":[{"role":"user","content":{"type":"text","text":"Review ` + field[string](m.Params, "arguments", "lang") + `"}},{"role":"user","content":{"type":"resource_link","uri":"file:///a.txt","name":"a"}}]}`, nil
	case "completion/complete":
		return `{"completion":{"values":["` + field[string](m.Params, "argument", "value") + `!"],"total":1,"hasMore":false}}`, nil
	case "logging/setLevel":
		return "{}", legacyOnly()
	case "subscriptions/listen":
		if !f.modern() {
			return "", fail(-32601, "method not found")
		}
		f.mu.Lock()
		f.streams[string(m.ID)], f.listens[string(m.ID)] = send, field[json.RawMessage](m.Params, "notifications")
		f.mu.Unlock()
		send(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":` + string(field[json.RawMessage](m.Params, "notifications")) + `,"_meta":{"` + metaPrefix + `subscriptionId":` + string(m.ID) + `}}}`)
		<-ctx.Done()
		f.mu.Lock()
		delete(f.streams, string(m.ID))
		delete(f.listens, string(m.ID))
		f.mu.Unlock()
		return "", ctx.Err()
	case "tasks/get", "tasks/result", "tasks/cancel", "tasks/update":
		return f.task(m)
	case "tools/call":
		return f.call(ctx, m, send)
	}
	return "", fail(-32601, "method not found: "+m.Method)
}

func (f *fake) task(m *message) (string, error) {
	id := field[string](m.Params, "taskId")
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.tasks[id] == "" {
		return "", fail(-32602, "unknown task")
	}
	const times = `"createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z",`
	switch {
	case m.Method == "tasks/result":
		return text("task done"), nil
	case f.modern():
		return `{"resultType":"complete","taskId":"` + id + `","status":"completed",` + times + `"ttlMs":60000,"result":{"content":[{"type":"text","text":"task done"}],"structuredContent":{"n":9007199254740993}}}`, nil
	default:
		return `{"taskId":"` + id + `","status":"completed",` + times + `"ttl":60000,"pollInterval":10}`, nil
	}
}

// notify sends a notification to the streams that asked for it.
func (f *fake) notify(kind, method, params string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, send := range f.streams {
		p := params
		if f.modern() {
			if !strings.Contains(string(f.listens[id]), kind) {
				continue
			}
			meta := `"_meta":{"` + metaPrefix + `subscriptionId":` + id + `}`
			if p == "" {
				p = "{" + meta + "}"
			} else {
				p = p[:len(p)-1] + "," + meta + "}"
			}
		}
		if p == "" {
			p = "{}"
		}
		send(`{"jsonrpc":"2.0","method":"` + method + `","params":` + p + `}`)
	}
}

func (f *fake) call(ctx context.Context, m *message, send func(string)) (string, error) {
	name := field[string](m.Params, "name")
	if r, ok := f.results[name]; ok {
		return r, nil
	}
	if name == "pay" && f.paid != nil {
		f.paid(field[string](m.Params, "arguments", "to"))
		return text("paid"), nil
	}
	token := field[json.RawMessage](m.Params, "_meta", "progressToken")
	switch name {
	case "echo":
		return text("said " + field[string](m.Params, "arguments", "text")), nil
	case "fail":
		return `{"content":[{"type":"text","text":"no such file"}],"isError":true}`, nil
	case "boom":
		return "", &failure{-32602, "bad arguments", `{"hint":9007199254740993}`}
	case "progress":
		for i := range 3 {
			send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d,"total":3}}`, token, i+1))
		}
		return text("done"), nil
	case "slow":
		<-ctx.Done()
		f.canceled <- "slow"
		return "", ctx.Err()
	case "ask":
		a, r, err := f.ask(ctx, m, send, "elicitation/create", form)
		if err != nil || r != "" {
			return r, err
		}
		return text("ask " + string(a)), nil
	case "open":
		a, r, err := f.ask(ctx, m, send, "elicitation/create", `{"mode":"url","message":"Log in.","url":"https://login.example/x?y=1","elicitationId":"e1"}`)
		if err != nil || r != "" {
			return r, err
		}
		return text("open " + string(a)), nil
	case "sample":
		a, r, err := f.ask(ctx, m, send, "sampling/createMessage", `{"messages":[{"role":"user","content":{"type":"text","text":"hi"}}],"maxTokens":9}`)
		if err != nil || r != "" {
			return r, err
		}
		return text("sample " + string(a)), nil
	case "roots":
		a, r, err := f.ask(ctx, m, send, "roots/list", `{}`)
		if err != nil || r != "" {
			return r, err
		}
		return text("roots " + string(a)), nil
	case "list":
		return `{"content":[{"type":"text","text":"[1]"}],"structuredContent":[1]}`, nil
	case "touch":
		f.notify("resourceSubscriptions", "notifications/resources/updated", `{"uri":"file:///a.txt"}`)
		return text("touched"), nil
	case "change":
		f.mu.Lock()
		f.extra = true
		f.mu.Unlock()
		f.notify("toolsListChanged", "notifications/tools/list_changed", "")
		return text("changed"), nil
	case "log":
		if !f.modern() {
			send(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"a log"}}`)
		}
		return text("logged"), nil
	case "task":
		f.mu.Lock()
		f.tasks["t1"] = "working"
		f.mu.Unlock()
		const state = `"taskId":"t1","status":"working","createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z",`
		if f.modern() {
			if !strings.Contains(string(m.Params), "io.modelcontextprotocol/tasks") {
				return text("no task"), nil
			}
			return `{"resultType":"task",` + state + `"ttlMs":60000,"pollIntervalMs":10}`, nil
		}
		if field[json.RawMessage](m.Params, "task") == nil {
			return "", fail(-32601, "this tool needs a task")
		}
		return `{"task":{` + state + `"ttl":60000,"pollInterval":10}}`, nil
	}
	return "", fail(-32602, "unknown tool: "+name)
}

// ServeHTTP serves the fake over HTTP, as its revision demands.
func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.headers = append(f.headers, r.Header.Clone())
	status := f.status
	f.mu.Unlock()
	if status != 0 {
		for k, v := range f.header {
			w.Header()[k] = v
		}
		w.WriteHeader(status)
		return
	}
	switch {
	case f.revision == r2411:
		f.serveSSE(w, r)
	case f.modern():
		f.serveModern(w, r)
	default:
		f.serveSessions(w, r)
	}
}

type stream struct {
	mu   sync.Mutex
	w    http.ResponseWriter
	over bool
}

func (s *stream) event(name, data string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	_, _ = io.WriteString(s.w, "event: "+name+"\ndata: "+data+"\n\n")
	_ = http.NewResponseController(s.w).Flush()
}

func (s *stream) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
}

func startStream(w http.ResponseWriter) *stream {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush()
	return &stream{w: w}
}

func (f *fake) serveSSE(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		s := startStream(w)
		defer s.end()
		send := func(m string) { s.event("message", m) }
		f.mu.Lock()
		f.sessions++
		id := fmt.Sprintf("sse%d", f.sessions)
		f.streams[id] = send
		f.mu.Unlock()
		s.event("endpoint", r.URL.Path+"?session="+id)
		<-r.Context().Done()
		f.mu.Lock()
		delete(f.streams, id)
		f.mu.Unlock()
		return
	}
	id := r.URL.Query().Get("session")
	if id == "" { // the URL of the stream
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	var m message
	if json.NewDecoder(r.Body).Decode(&m) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	f.mu.Lock()
	send := f.streams[id]
	f.mu.Unlock()
	if send == nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	go f.handle(context.Background(), &m, send)
	w.WriteHeader(http.StatusAccepted)
}

func (f *fake) serveSessions(w http.ResponseWriter, r *http.Request) {
	session := r.Header.Get("Mcp-Session-Id")
	f.mu.Lock()
	known := f.open[session]
	f.mu.Unlock()
	if r.Method == http.MethodDelete {
		w.WriteHeader(http.StatusOK)
		return
	}
	if r.Method == http.MethodGet {
		if !known {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		s := startStream(w)
		defer s.end()
		f.mu.Lock()
		f.streams[session] = func(m string) { s.event("message", m) }
		f.mu.Unlock()
		<-r.Context().Done()
		f.mu.Lock()
		delete(f.streams, session)
		f.mu.Unlock()
		return
	}
	var m message
	if json.NewDecoder(r.Body).Decode(&m) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	switch {
	case m.Method == "initialize":
		f.mu.Lock()
		f.sessions++
		id := fmt.Sprintf("s%d", f.sessions)
		f.open[id] = true
		f.mu.Unlock()
		w.Header().Set("Mcp-Session-Id", id)
	case session == "":
		w.WriteHeader(http.StatusBadRequest)
		return
	case !known:
		w.WriteHeader(http.StatusNotFound)
		return
	}
	if m.ID == nil || m.Method == "" {
		f.handle(r.Context(), &m, func(string) {})
		w.WriteHeader(http.StatusAccepted)
		return
	}
	s := startStream(w)
	defer s.end()
	f.handle(context.WithoutCancel(r.Context()), &m, func(m string) { s.event("message", m) }) // a disconnect is no cancellation
}

func (f *fake) serveModern(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", "POST")
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	var m message
	if json.NewDecoder(r.Body).Decode(&m) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	bad := func(code int, text string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q,"data":{"supported":[%q],"requested":"?"}}}`, m.ID, code, text, f.revision)
	}
	if m.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	name := field[string](m.Params, "name")
	if m.Method == "resources/read" {
		name = field[string](m.Params, "uri")
	}
	switch {
	case r.Header.Get("MCP-Protocol-Version") != f.revision:
		bad(-32022, "unsupported revision")
		return
	case r.Header.Get("Mcp-Method") != m.Method:
		bad(-32020, "Mcp-Method is wrong")
		return
	case (m.Method == "tools/call" || m.Method == "prompts/get" || m.Method == "resources/read") && r.Header.Get("Mcp-Name") != name:
		bad(-32020, "Mcp-Name is wrong: "+r.Header.Get("Mcp-Name"))
		return
	}
	s := startStream(w)
	defer s.end()
	f.handle(r.Context(), &m, func(m string) { s.event("message", m) })
}

// serveStdio serves a fake over standard input and output.
func serveStdio(f *fake) {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 16<<20)
	var mu sync.Mutex
	send := func(m string) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Println(m)
	}
	if !f.modern() {
		f.streams["stdio"] = send
	}
	for in.Scan() {
		var m message
		if json.Unmarshal(in.Bytes(), &m) != nil {
			continue
		}
		go f.handle(context.Background(), &m, send)
	}
}

const fakeEnv = "DRAGOMAN_FAKE_MCP"

// over returns the settings for a fake over a transport. The fake runs in this process if that is
// http.
func over(t testing.TB, transport string, f *fake) mcp.Server {
	t.Helper()
	if transport == "stdio" {
		s := mcp.Stdio(os.Args[0]).As("fake")
		s.Env = map[string]string{fakeEnv: f.revision, "GORACE": "atexit_sleep_ms=0"} // the race detector would wait a second at each end
		s.Approval = map[string]string{"*": "never"}
		return s
	}
	web := httptest.NewServer(f)
	t.Cleanup(func() {
		f.mu.Lock()
		for _, stop := range f.running {
			stop()
		}
		f.mu.Unlock()
		web.CloseClientConnections()
		web.Close()
	})
	s := mcp.HTTP(web.URL).As("fake")
	s.Approval = map[string]string{"*": "never"}
	return s
}

func TestMain(m *testing.M) {
	if revision := os.Getenv(fakeEnv); revision != "" {
		serveStdio(newFake(revision))
		os.Exit(0)
	}
	if os.Getenv(childEnv) != "" {
		if err := child(os.Getenv(childEnv)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const waitTime = 10 * time.Second
