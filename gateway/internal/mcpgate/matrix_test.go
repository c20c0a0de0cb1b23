package mcpgate_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the table of docs/gateway.md")

// cell is one pair of revisions over one transport.
type cell struct {
	t          testing.TB
	client     string
	server     string
	transport  string
	s          *served
	f          *fake // nil over stdio
	c          *client
	withoutCap *client
}

func (x *cell) modernClient() bool { return x.client >= r2607 }
func (x *cell) modernServer() bool { return x.server >= r2607 }

// want fails unless a condition holds.
func (x *cell) want(ok bool, format string, args ...any) {
	x.t.Helper()
	if !ok {
		x.t.Errorf(format, args...)
	}
}

const prefix = "mcp_fake__"

// feature is a row of the table: what the pair of revisions makes of it. The function checks that
// it is so.
type feature struct {
	name string
	run  func(x *cell) string
}

const crosses = "crosses"

// asked lets a tool ask the client, and returns the final reply and the question.
func (x *cell) ask(tool string, answer any) (*reply, json.RawMessage) {
	x.t.Helper()
	var question json.RawMessage
	x.c.answer = func(_ string, params json.RawMessage) any {
		question = params
		return answer
	}
	r := x.c.call(prefix+tool, nil)
	if x.modernClient() {
		x.want(field[string](r.result, "resultType") == "input_required", "%s is not asked: %v", tool, r)
		for _, q := range field[map[string]json.RawMessage](r.result, "inputRequests") {
			question = field[json.RawMessage](q, "params")
		}
		r = x.c.finish(r, prefix+tool, nil, answer)
	}
	return r, question
}

// moved is the outcome of a question between eras.
func (x *cell) moved() string {
	switch {
	case x.modernClient() == x.modernServer():
		return crosses
	case x.modernClient():
		return "crosses: the call waits in the gateway, the question is in the result (moved)"
	default:
		return "crosses: the question is a request to the client (moved)"
	}
}

var features = []feature{
	{"Tools: list, call, error result", func(x *cell) string {
		x.want(slices.Contains(x.c.do("tools/list", nil).toolNames(), prefix+"echo"), "no echo")
		r := x.c.call(prefix+"echo", object{"text": "<b> & ü"})
		x.want(r.texts() == "said <b> & ü" && !r.failed(), "echo: %v", r)
		r = x.c.call(prefix+"fail", nil)
		x.want(r.failed() && r.texts() == "no such file", "fail: %v", r)
		return crosses
	}},
	{"Error of the protocol: code, message, data", func(x *cell) string {
		r := x.c.call(prefix+"boom", nil)
		x.want(r.code == -32602 && r.text == "bad arguments" && string(r.data) == `{"hint":9007199254740993}`, "boom: %v %s", r, r.data)
		return crosses
	}},
	{"Unknown tool", func(x *cell) string {
		r := x.c.call(prefix+"nothing", nil)
		x.want(r.code == -32602, "%v", r)
		return "error -32602"
	}},
	{"Progress", func(x *cell) string {
		r := x.c.call(prefix+"progress", nil, object{"_meta": object{"progressToken": "p-1"}})
		x.want(r.texts() == "done" && len(r.notes) > 0, "%v", r)
		last := r.notes[len(r.notes)-1]
		x.want(field[string](last, "params", "progressToken") == "p-1" && field[float64](last, "params", "progress") == 3 && field[float64](last, "params", "total") == 3, "%s", last)
		return crosses
	}},
	{"Cancellation", func(x *cell) string {
		ctx, cancel := context.WithCancel(x.t.Context())
		defer cancel()
		r := x.c.request(ctx, "tools/call", object{"name": prefix + "slow", "arguments": object{}})
		id := x.c.n
		done := make(chan struct{})
		go func() {
			defer close(done)
			res, err := http.DefaultClient.Do(r)
			if err == nil {
				_ = res.Body.Close()
			}
		}()
		if x.f != nil {
			waitFor(x.t, func() bool { x.f.mu.Lock(); defer x.f.mu.Unlock(); return slices.Contains(x.f.got, "tools/call") })
		} else {
			time.Sleep(50 * time.Millisecond) // the server is another process
		}
		if x.modernClient() {
			cancel()
		} else {
			body, _ := json.Marshal(object{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": object{"requestId": id}})
			x.c.send(x.c.post(x.t.Context(), body))
			defer cancel()
		}
		if x.f != nil {
			select {
			case <-x.f.canceled:
			case <-time.After(waitTime):
				x.t.Error("the call was not canceled at the server")
			}
		}
		cancel()
		<-done
		return crosses
	}},
	{"Question: form", func(x *cell) string {
		r, q := x.ask("ask", object{"action": "accept", "content": object{"b": "main"}})
		x.want(strings.Contains(r.texts(), `"main"`) && strings.Contains(r.texts(), `"accept"`), "%v", r)
		x.want(strings.Contains(field[string](q, "message"), `MCP server "fake"`) && strings.Contains(string(q), `"required":["b"]`), "question %s", q)
		r, _ = x.ask("ask", object{"action": "decline"})
		x.want(strings.Contains(r.texts(), `"decline"`), "%v", r)
		return x.moved()
	}},
	{"Question: open a page", func(x *cell) string {
		if x.client == r2506 {
			r := x.c.call(prefix+"open", nil)
			x.want(r.failed() && strings.Contains(r.texts(), "https://login.example/x?y=1"), "%v", r)
			return "lowered: an error result with the page"
		}
		r, q := x.ask("open", object{"action": "accept"})
		x.want(strings.Contains(r.texts(), `"accept"`) && field[string](q, "url") == "https://login.example/x?y=1", "%v %s", r, q)
		return x.moved()
	}},
	{"Question for the model of the client (sampling)", func(x *cell) string {
		r, q := x.ask("sample", object{"role": "assistant", "model": "m", "content": object{"type": "text", "text": "hello"}})
		x.want(strings.Contains(r.texts(), "hello") && field[int](q, "maxTokens") == 9, "%v %s", r, q)
		return x.moved()
	}},
	{"Question for folders (roots)", func(x *cell) string {
		r, _ := x.ask("roots", object{"roots": []object{{"uri": "file:///srv"}}})
		x.want(strings.Contains(r.texts(), "file:///srv"), "%v", r)
		return x.moved()
	}},
	{"Question to a client that did not declare it", func(x *cell) string {
		r := x.withoutCap.call(prefix+"ask", nil)
		if x.modernClient() {
			x.want(r.code == -32021 && strings.Contains(string(r.data), "elicitation"), "%v %s", r, r.data)
			return "error -32021"
		}
		x.want(r.failed() && strings.Contains(r.texts(), "elicitation"), "%v", r)
		return "error result that names the capability"
	}},
	{"Structured value that is no object", func(x *cell) string {
		list := x.c.do("tools/list", nil)
		r := x.c.call(prefix+"list", nil)
		x.want(strings.Contains(r.texts(), "[1]"), "%v", r)
		if x.modernClient() {
			x.want(string(field[json.RawMessage](r.result, "structuredContent")) == "[1]", "%v", r)
			return crosses
		}
		x.want(field[json.RawMessage](r.result, "structuredContent") == nil && !strings.Contains(string(list.result), "outputSchema"), "%v", r)
		waitFor(x.t, func() bool { return strings.Contains(x.s.log.String(), "structuredContent") })
		return "lowered: text only; the output schema is dropped"
	}},
	{"Resources: list, templates, read", func(x *cell) string {
		x.want(slices.Contains(x.c.do("resources/list", nil).toolNames("resources"), "fake+file:///a.txt"), "list")
		x.want(slices.Contains(x.c.do("resources/templates/list", nil).toolNames("resourceTemplates"), "fake+file:///{path}"), "templates")
		r := x.c.do("resources/read", object{"uri": "fake+file:///a.txt"})
		x.want(strings.Contains(string(r.result), `"x-vendor":9007199254740993`) && strings.Contains(string(r.result), `"uri":"fake+file:///a.txt"`), "%v", r)
		return crosses
	}},
	{"Unknown resource", func(x *cell) string {
		r := x.c.do("resources/read", object{"uri": "fake+file:///none"})
		if x.modernClient() {
			x.want(r.code == -32602, "%v", r)
			return "error -32602"
		}
		x.want(r.code == -32002, "%v", r)
		return "error -32002"
	}},
	{"Prompts and completion", func(x *cell) string {
		x.want(slices.Contains(x.c.do("prompts/list", nil).toolNames("prompts"), prefix+"review"), "list")
		r := x.c.do("prompts/get", object{"name": prefix + "review", "arguments": object{"lang": "Go"}})
		x.want(strings.Contains(string(r.result), "Review Go") && strings.Contains(string(r.result), `"uri":"fake+file:///a.txt"`), "%v", r)
		ref := object{"ref": object{"type": "ref/prompt", "name": prefix + "review"}, "argument": object{"name": "lang", "value": "G"}}
		r = x.c.do("completion/complete", ref)
		if x.server < r2503 {
			x.want(r.result != nil, "%v", r)
			return "crosses, completions are empty before 2025-03-26"
		}
		x.want(strings.Contains(string(r.result), `"G!"`), "%v", r)
		return crosses
	}},
	{"Changed list of tools", func(x *cell) string {
		notes, stop := x.c.listen(object{"notifications": object{"toolsListChanged": true}})
		defer stop()
		x.awaitListen("toolsListChanged")
		x.want(x.c.call(prefix+"change", nil).texts() == "changed", "change")
		await(x.t, notes, "tools/list_changed")
		waitFor(x.t, func() bool { return slices.Contains(x.c.do("tools/list", nil).toolNames(), prefix+"added") })
		return x.listening()
	}},
	{"Subscription to a resource", func(x *cell) string {
		var notes <-chan json.RawMessage
		var stop func()
		if x.modernClient() {
			notes, stop = x.c.listen(object{"notifications": object{"resourceSubscriptions": []string{"fake+file:///a.txt"}}})
		} else {
			notes, stop = x.c.listen(nil)
			r := x.c.do("resources/subscribe", object{"uri": "fake+file:///a.txt"})
			x.want(r.result != nil, "subscribe: %v", r)
		}
		defer stop()
		x.awaitListen("file:///a.txt")
		x.c.call(prefix+"touch", nil)
		n := await(x.t, notes, "resources/updated")
		x.want(field[string](n, "params", "uri") == "fake+file:///a.txt", "%s", n)
		return x.listening()
	}},
	{"ping", func(x *cell) string {
		r := x.c.do("ping", nil)
		if x.modernClient() {
			x.want(r.code == -32601, "%v", r)
			return "error -32601: this revision has none"
		}
		x.want(r.result != nil && r.code == 0, "%v", r)
		return "answered by the gateway (synthesized)"
	}},
	{"Log messages", func(x *cell) string {
		r := x.c.call(prefix+"log", nil)
		x.want(r.texts() == "logged" && len(r.notes) == 0, "%v", r)
		if x.modernServer() {
			return "dropped: not asked for"
		}
		waitFor(x.t, func() bool { return strings.Contains(x.s.log.String(), "log messages of servers") })
		return "dropped: in the log of the gateway"
	}},
	{"Tasks", func(x *cell) string {
		if !x.modernServer() && x.server != r2511 {
			return "the server has none"
		}
		r := x.c.call(prefix+"task", nil)
		x.want(strings.Contains(r.texts(), "task done"), "%v", r)
		if !x.modernClient() {
			return "lowered: the call waits for the task"
		}
		c := x.s.connect("/mcp", x.client, object{"extensions": object{"io.modelcontextprotocol/tasks": object{}}})
		r = c.call(prefix+"task", nil)
		id := field[string](r.result, "taskId")
		x.want(field[string](r.result, "resultType") == "task" && id != "", "%v", r)
		waitFor(x.t, func() bool {
			r = c.do("tasks/get", object{"taskId": id})
			return field[string](r.result, "status") != "working"
		})
		x.want(strings.Contains(string(r.result), "task done"), "%v", r)
		if x.modernServer() {
			x.want(strings.Contains(string(r.result), `"structuredContent":{"n":9007199254740993}`), "%v", r)
		}
		return "crosses with the extension; without it the call waits"
	}},
}

// awaitListen waits until the server has the subscription of the gateway, or its stream.
func (x *cell) awaitListen(text string) {
	if x.f == nil {
		return
	}
	waitFor(x.t, func() bool {
		x.f.mu.Lock()
		defer x.f.mu.Unlock()
		if !x.modernServer() {
			return len(x.f.streams) > 0
		}
		for _, l := range x.f.listens {
			if strings.Contains(string(l), text) {
				return true
			}
		}
		return false
	})
}

func (x *cell) listening() string {
	if x.modernClient() == x.modernServer() {
		return crosses
	}
	if x.modernClient() {
		return "crosses: on subscriptions/listen"
	}
	return "crosses: on the stream of the session"
}

func waitFor(t testing.TB, f func() bool) {
	t.Helper()
	limit := time.Now().Add(waitTime)
	for !f() {
		if time.Now().After(limit) {
			t.Fatal("it did not happen")
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// Every revision of a client is bridged to every revision of a server, over both transports. The
// table in docs/gateway.md says what crosses; it is written by this test.
func TestClientsOfAllRevisionsUseServersOfAllRevisions(t *testing.T) {
	type pair struct{ client, server string }
	outcomes := map[string]map[pair]string{}
	clients, servers := []string{r2506, r2511, r2607}, []string{r2411, r2503, r2506, r2511, r2607}
	for _, server := range servers {
		for _, client := range clients {
			for _, transport := range []string{"http", "stdio"} {
				t.Run(fmt.Sprintf("client %s, server %s over %s", client, server, transport), func(t *testing.T) {
					if testing.Short() && transport == "stdio" {
						t.Skip("it starts a process for each feature")
					}
					for _, ft := range features {
						t.Run(ft.name, func(t *testing.T) {
							f := newFake(server)
							x := &cell{t: t, client: client, server: server, transport: transport, s: serve(t, open(over(t, transport, f)))}
							if transport == "http" {
								x.f = f
							}
							caps := all
							if client == r2506 {
								caps = object{"elicitation": object{}, "sampling": object{}, "roots": object{}}
							}
							x.c, x.withoutCap = x.s.connect("/mcp", client, caps), x.s.connect("/mcp", client, nil)
							x.c.do("tools/list", nil) // the server is ready
							got := ft.run(x)
							if outcomes[ft.name] == nil {
								outcomes[ft.name] = map[pair]string{}
							}
							p := pair{client, server}
							if before, ok := outcomes[ft.name][p]; ok && before != got {
								t.Errorf("%q over %s, %q over http", got, transport, before)
							}
							outcomes[ft.name][p] = got
						})
					}
				})
			}
		}
	}
	if t.Failed() {
		return
	}
	var b strings.Builder
	b.WriteString("| Feature | Client | Server | What happens |\n|---|---|---|---|\n")
	for _, ft := range features {
		var done []string
		for _, client := range clients {
			same := []string{}
			for _, other := range clients {
				if !slices.ContainsFunc(servers, func(server string) bool {
					return outcomes[ft.name][pair{client, server}] != outcomes[ft.name][pair{other, server}]
				}) {
					same = append(same, other)
				}
			}
			if slices.Contains(done, client) {
				continue
			}
			done = append(done, same...)
			var told []string
			for _, server := range servers {
				outcome := outcomes[ft.name][pair{client, server}]
				if slices.Contains(told, outcome) {
					continue
				}
				told = append(told, outcome)
				var with []string
				for _, other := range servers {
					if outcomes[ft.name][pair{client, other}] == outcome {
						with = append(with, other)
					}
				}
				fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", ft.name, spanned(same, clients), spanned(with, servers), outcome)
			}
		}
	}
	if testing.Short() {
		return
	}
	golden(t, b.String())
}

func spanned(some, whole []string) string {
	switch {
	case len(some) == len(whole):
		return "all"
	case len(some) > 1 && slices.Index(whole, some[len(some)-1])-slices.Index(whole, some[0]) == len(some)-1:
		return some[0] + " to " + some[len(some)-1]
	}
	return strings.Join(some, ", ")
}

// golden compares the table with the one in docs/gateway.md.
func golden(t *testing.T, table string) {
	t.Helper()
	const begin, end = "<!-- mcp bridge: begin -->\n", "<!-- mcp bridge: end -->"
	file := filepath.Join("..", "..", "..", "docs", "gateway.md")
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), begin)
	old, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the table", file)
	}
	if *update {
		if err := os.WriteFile(file, []byte(before+begin+table+end+after), 0o644); err != nil { //nolint:gosec // a page
			t.Fatal(err)
		}
		return
	}
	if old != table {
		t.Errorf("the table of %s differs; run the test with -update:\n%s", file, table)
	}
}
