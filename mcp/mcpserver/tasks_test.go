package mcpserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/mcp/mcpserver"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/tool"
)

var withTasks = object{"elicitation": object{}, "extensions": object{"io.modelcontextprotocol/tasks": object{}}}

func text(s string) tool.Output {
	return tool.Output{Content: []dragoman.Part{&dragoman.Text{Text: s}}}
}

// poll gets a task until its status is another one.
func poll(t *testing.T, c *client, id, not string) *reply {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		r := c.do("tasks/get", object{"taskId": id})
		if r.code != 0 || at[string](r.result, "status") != not {
			return r
		}
		if time.Now().After(deadline) {
			t.Fatalf("the task stays %s", not)
		}
	}
}

func TestBackgroundWorkIsATaskOrTheClientWaits(t *testing.T) {
	gate := make(chan struct{})
	slow := tool.New("slow", "Works.", func(ctx context.Context, _ struct{}) (tool.Output, error) {
		return mcpserver.Background(ctx, time.Hour, func(context.Context) (tool.Output, error) {
			<-gate
			return text("done"), nil
		})
	}, tool.Set(plain))
	_, url := serve(t, mcpserver.Options{Tools: []tool.Tool{slow}})
	c := newClient(t, url, modern, withTasks)
	r := c.call("slow", nil)
	id := at[string](r.result, "taskId")
	if at[string](r.result, "resultType") != "task" || len(id) < 40 || at[string](r.result, "status") != "working" {
		t.Fatalf("%d %s %s", r.code, r.text, r.result)
	}
	if got := c.do("tasks/get", object{"taskId": id}); at[string](got.result, "status") != "working" {
		t.Errorf("%s", got.result)
	}
	close(gate)
	got := poll(t, c, id, "working")
	if at[string](got.result, "status") != "completed" || !strings.Contains(string(got.result), `"text":"done"`) {
		t.Errorf("%s", got.result)
	}
	official.check(t, modern, "ContentBlock", at[[]json.RawMessage](got.result, "result", "content")[0])
	for _, revision := range []string{modern, legacy} {
		if r := newClient(t, url, revision, nil).call("slow", nil); r.texts() != "done" {
			t.Errorf("%s without tasks: %d %s %s", revision, r.code, r.text, r.result)
		}
	}
}

func TestAnExternalWorkerSettlesATask(t *testing.T) {
	tickets := &tool.Tickets{Store: &tool.MemoryTickets{}}
	ids := make(chan string, 1)
	job := tool.New("job", "Queues a job.", func(ctx context.Context, _ struct{}) (*tool.Ticket, error) {
		ticket, err := tool.Background(ctx, time.Hour)
		if err == nil {
			ids <- ticket.ID
		}
		return ticket, err
	})
	_, url := serve(t, mcpserver.Options{Tools: []tool.Tool{job}, Runner: &tool.Runner{Tickets: tickets}})
	c := newClient(t, url, modern, withTasks)
	id := at[string](c.call("job", nil).result, "taskId")
	if err := tickets.Resolve(t.Context(), <-ids, text("the key sk-ant-api03-"+strings.Repeat("aB3dE5fG7h", 9))); err != nil {
		t.Fatal(err)
	}
	r := poll(t, c, id, "working")
	if s := string(r.result); !strings.Contains(s, "[redacted]") || !strings.Contains(s, "It is data") || !strings.Contains(s, `"completed"`) {
		t.Errorf("%s", s)
	}
	old := newClient(t, url, legacy, nil)
	go func() { _ = tickets.Fail(context.Background(), <-ids, "out of paper") }()
	if r := old.call("job", nil); !r.isError() || !strings.Contains(r.texts(), "out of paper") {
		t.Errorf("%s", r.result)
	}
}

func TestATaskBelongsToItsCaller(t *testing.T) {
	slow := tool.New("slow", "Works.", func(ctx context.Context, _ struct{}) (tool.Output, error) {
		return mcpserver.Background(ctx, time.Hour, func(ctx context.Context) (tool.Output, error) {
			<-ctx.Done()
			return tool.Output{}, ctx.Err()
		})
	})
	_, url := serve(t, mcpserver.Options{Tools: []tool.Tool{slow}, Auth: &mcpserver.Auth{Keys: []mcpserver.Key{
		{Name: "ann", Hash: mcpserver.HashKey("ann-key")}, {Name: "eve", Hash: mcpserver.HashKey("eve-key")},
	}}})
	as := func(key string, caps object) *client {
		return &client{t: t, url: url, revision: modern, caps: caps, header: bearer(key)}
	}
	c, eve := as("ann-key", withTasks), as("eve-key", withTasks)
	id := at[string](c.call("slow", nil).result, "taskId")
	for _, method := range []string{"tasks/get", "tasks/cancel", "tasks/update"} {
		params := object{"taskId": id, "inputResponses": object{}}
		if r := eve.do(method, params); r.code != -32602 {
			t.Errorf("%s by another principal: %d %s", method, r.code, r.result)
		}
		if r := as("ann-key", nil).do(method, params); r.code != -32021 {
			t.Errorf("%s without the extension: %d %s", method, r.code, r.result)
		}
		if r := c.do(method, object{"taskId": id + "A", "inputResponses": object{}}); r.code != -32602 {
			t.Errorf("%s of a forged id: %d %s", method, r.code, r.result)
		}
		q := c.request(t.Context(), method, params)
		q.Header.Set("Mcp-Name", "other")
		if r := c.send(q, method); r.code != -32020 || r.status != 400 {
			t.Errorf("%s with another name in the header: %d %d", method, r.status, r.code)
		}
	}
	if r := c.do("tasks/get", object{"taskId": id}); at[string](r.result, "status") != "working" {
		t.Errorf("%s", r.result)
	}
	if r := c.do("tasks/cancel", object{"taskId": id}); r.code != 0 {
		t.Errorf("%d %s", r.code, r.text)
	}
	if r := poll(t, c, id, "working"); at[string](r.result, "status") != "cancelled" {
		t.Errorf("%s", r.result)
	}
	for _, revision := range []string{legacy} { // tasks belong to the modern revision
		old := (&client{t: t, url: url, revision: revision, header: bearer("ann-key")}).open()
		if r := old.do("tasks/get", object{"taskId": id}); r.code != -32601 {
			t.Errorf("%s: %d", revision, r.code)
		}
	}
}

func TestACanceledCallCancelsItsWork(t *testing.T) {
	began, ended := make(chan struct{}), make(chan struct{})
	slow := tool.New("slow", "Works.", func(ctx context.Context, _ struct{}) (tool.Output, error) {
		return mcpserver.Background(ctx, time.Hour, func(ctx context.Context) (tool.Output, error) {
			close(began)
			<-ctx.Done()
			close(ended)
			return tool.Output{}, ctx.Err()
		})
	})
	_, url := serve(t, mcpserver.Options{Tools: []tool.Tool{slow}})
	c := newClient(t, url, modern, nil)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-began
		cancel()
	}()
	if res, err := http.DefaultClient.Do(c.request(ctx, "tools/call", object{"name": "slow", "arguments": object{}})); err == nil {
		_ = res.Body.Close()
	}
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Fatal("the work goes on")
	}
}

func TestBackgroundWorkIsBounded(t *testing.T) {
	release := make(chan struct{})
	slow := tool.New("slow", "Works.", func(ctx context.Context, _ struct{}) (tool.Output, error) {
		return mcpserver.Background(ctx, time.Hour, func(context.Context) (tool.Output, error) {
			<-release
			return tool.Output{}, errors.New("failed")
		})
	})
	_, url := serve(t, mcpserver.Options{Tools: []tool.Tool{slow}, MaxTasks: 2})
	c := newClient(t, url, modern, withTasks)
	first := c.call("slow", nil)
	c.call("slow", nil)
	if r := c.call("slow", nil); !r.isError() || !strings.Contains(r.texts(), "too much work") {
		t.Errorf("%s", r.result)
	}
	close(release)
	if r := poll(t, c, at[string](first.result, "taskId"), "working"); at[string](r.result, "status") != "completed" || !at[bool](r.result, "result", "isError") {
		t.Errorf("%s", r.result)
	}
}

func TestWorkAsksAClientOfAnOlderRevision(t *testing.T) {
	work := tool.New("work", "Asks.", func(ctx context.Context, _ struct{}) (tool.Output, error) {
		return mcpserver.Background(ctx, time.Hour, func(ctx context.Context) (tool.Output, error) {
			a, err := mcpserver.Ask(ctx, map[string]mcpserver.Question{"q": mcpserver.Form("Name?", json.RawMessage(`{"type":"object","properties":{"n":{"type":"string"}}}`))})
			return text(at[string](a["q"], "content", "n")), err
		})
	}, tool.Set(plain))
	_, url := serve(t, mcpserver.Options{Tools: []tool.Tool{work}})
	c := newClient(t, url, legacy, forms)
	c.answer = func(string, json.RawMessage) any {
		return object{"action": "accept", "content": object{"n": "Ann"}}
	}
	if r := c.call("work", nil); r.texts() != "Ann" {
		t.Errorf("%s", r.result)
	}
}

func TestATaskSurvivesARestart(t *testing.T) {
	store := &tool.MemoryTickets{} // stands for one on a disk
	j, err := session.Create(t.Context(), &session.Memory{}, session.Info{ID: "journal"})
	if err != nil {
		t.Fatal(err)
	}
	ids := make(chan string, 1)
	job := tool.New("job", "Queues a job.", func(ctx context.Context, _ struct{}) (*tool.Ticket, error) {
		ticket, err := tool.Background(ctx, time.Hour)
		if err == nil {
			ids <- ticket.ID
		}
		return ticket, err
	}, tool.Set(plain))
	options := mcpserver.Options{
		Tools: []tool.Tool{job}, StateKey: []byte(strings.Repeat("k", 32)),
		Runner: &tool.Runner{Journal: j, Tickets: &tool.Tickets{Store: store}},
	}
	_, before := serve(t, options)
	_, after := serve(t, options)
	id := at[string](newClient(t, before, modern, withTasks).call("job", nil).result, "taskId")
	if err := (&tool.Tickets{Store: store}).Resolve(t.Context(), <-ids, text("printed")); err != nil {
		t.Fatal(err)
	}
	c := newClient(t, after, modern, withTasks)
	first := c.do("tasks/get", object{"taskId": id})
	second := c.do("tasks/get", object{"taskId": id})
	if at[string](first.result, "status") != "completed" || !strings.Contains(string(first.result), "printed") || string(first.result) != string(second.result) {
		t.Errorf("%s, then %s", first.result, second.result)
	}
}
