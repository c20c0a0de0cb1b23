package mcp_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/mcp"
	"github.com/dragoman-go/dragoman/tool"
)

// builder is a server whose tool "build" is a task. next is the state of the task that it
// answers with, after "status".
type builder struct {
	mu       sync.Mutex
	next     string
	polls    int
	answers  string
	canceled chan struct{}
	polled   chan struct{}
	drop     int // requests about the task to drop
}

const taskFields = `"taskId":"tk1","createdAt":"x","lastUpdatedAt":"x","ttlMs":600000,"pollIntervalMs":10`

func (b *builder) set(next string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.next = next
}

func (b *builder) answer(_ http.ResponseWriter, _ *http.Request, method string, params map[string]json.RawMessage) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch method {
	case "tools/list":
		return rawTools(rawTool("build", ""))
	case "tools/call":
		return `{"resultType":"task","status":"working",` + taskFields + `}`
	case "tasks/get":
		b.polls++
		if b.drop > 0 {
			b.drop--
			panic(http.ErrAbortHandler)
		}
		select {
		case b.polled <- struct{}{}:
		default:
		}
		return `{"resultType":"complete",` + taskFields + `,"status":` + b.next + `}`
	case "tasks/update":
		b.answers += string(params["inputResponses"])
		b.next = `"completed","result":{"content":[{"type":"text","text":"built"}]}`
		return `{"resultType":"complete"}`
	case "tasks/cancel":
		close(b.canceled)
		return `{"resultType":"complete"}`
	}
	return rawDiscover
}

func newBuilder(t *testing.T) (*builder, mcp.Server) {
	b := &builder{next: `"working"`, polled: make(chan struct{}, 1), canceled: make(chan struct{})}
	s := rawServer(t, b.answer)
	s.Approval = map[string]string{"*": "never"}
	return b, s
}

// begin calls the tool, whose task gets a ticket.
func begin(t *testing.T, servers *mcp.Servers, r *tool.Runner) (*tool.Run, *tool.Box) {
	t.Helper()
	box, err := tool.NewBox(servers.Tools()...)
	if err != nil {
		t.Fatal(err)
	}
	run := r.Start("r")
	b, err := run.Do(t.Context(), box, tool.Turn{Number: 1, Calls: []*dragoman.ToolCall{{ID: "c", Name: "build", Arguments: "{}"}}})
	if err != nil || !b.Records[0].OK {
		t.Fatalf("%+v, %v", b.Results[0], err)
	}
	return run, box
}

func TestTaskIsContinuedByTheNextProcess(t *testing.T) {
	b, s := newBuilder(t)
	store := &notifying{settled: make(chan struct{})}
	runner := &tool.Runner{Tickets: &tool.Tickets{Store: store}}
	first := connect(t, mcp.Options{}, s)
	begin(t, first, runner)
	<-b.polled
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	left, err := store.List(t.Context(), "r")
	if err != nil || len(left) != 1 || left[0].State != "open" {
		t.Fatalf("after the end of the process: %+v, %v", left, err)
	}
	b.mu.Lock()
	before := b.polls
	b.drop = 3 // the server is away for a while
	b.mu.Unlock()

	second := connect(t, mcp.Options{}, s)
	box, err := tool.NewBox(second.Tools()...)
	if err != nil {
		t.Fatal(err)
	}
	run := (&tool.Runner{Tickets: &tool.Tickets{Store: store}}).Start("r")
	for range 3 { // each turn asks for outcomes
		if ms, err := run.Deliver(t.Context(), box); err != nil || len(ms) != 0 {
			t.Fatalf("%+v, %v", ms, err)
		}
	}
	b.set(`"completed","result":{"content":[{"type":"text","text":"built"}]}`)
	<-store.settled
	ms, err := run.Deliver(t.Context(), box)
	if err != nil || len(ms) != 1 || !strings.Contains(ms[0].Text(), "built") || !strings.Contains(ms[0].Text(), "resolved") {
		t.Errorf("%+v, %v", ms, err)
	}
	if b.polls == before {
		t.Error("the second process did not ask for the task")
	}
	select {
	case <-b.canceled:
		t.Error("the task was canceled")
	default:
	}
}

func TestTaskThatCannotBeContinuedFailsWithAReason(t *testing.T) {
	b, s := newBuilder(t)
	for name, tc := range map[string]struct {
		other mcp.Server // configured in the next process
		want  string
	}{
		"the server is not configured": {mcp.HTTP(s.URL).As("another"), `"hostile"`},
		"the server is another one":    {mcp.HTTP(s.URL + "/elsewhere").As("hostile"), "another one"},
	} {
		store := &tool.MemoryTickets{}
		first := connect(t, mcp.Options{}, s)
		runner := &tool.Runner{Tickets: &tool.Tickets{Store: store}}
		run, _ := begin(t, first, runner)
		_ = first.Close()
		next := connect(t, mcp.Options{}, tc.other)
		if err := next.Continue(t.Context(), "r", runner.Tickets); err != nil {
			t.Fatal(err)
		}
		ms, err := run.Deliver(t.Context(), nil)
		if err != nil || len(ms) != 1 || !strings.Contains(ms[0].Text(), tc.want) || !strings.Contains(ms[0].Text(), "not continued") {
			t.Errorf("%s: %+v, %v", name, ms, err)
		}
	}
	b.set(`"failed","error":{"code":-32602,"message":"unknown task"}`)
	store := &notifying{settled: make(chan struct{})}
	servers := connect(t, mcp.Options{}, s)
	run, box := begin(t, servers, &tool.Runner{Tickets: &tool.Tickets{Store: store}})
	<-store.settled
	if ms, err := run.Deliver(t.Context(), box); err != nil || len(ms) != 1 || !strings.Contains(ms[0].Text(), "unknown task") || !strings.Contains(ms[0].Text(), "failed") {
		t.Errorf("%+v, %v", ms, err)
	}
}

const taskQuestion = `"input_required","inputRequests":{"k1":{"method":"elicitation/create","params":{"mode":"form","message":"Which branch?","requestedSchema":{"type":"object","properties":{"b":{"type":"string"}},"required":["b"]}}}}`

func TestQuestionsOfTasksReachTheApproverOfTheRunOrOfTheOptions(t *testing.T) {
	for name, restart := range map[string]bool{"the run lives": false, "the run has ended": true} {
		b, s := newBuilder(t)
		var ofRun, ofOptions []*tool.ApprovalRequest
		store := &notifying{settled: make(chan struct{})}
		o := mcp.Options{Approver: approver(`{"b":"options"}`, &ofOptions)}
		runner := &tool.Runner{Tickets: &tool.Tickets{Store: store}, Approver: approver(`{"b":"run"}`, &ofRun)}
		servers := connect(t, o, s)
		begin(t, servers, runner)
		want := "run"
		if restart {
			<-b.polled
			_ = servers.Close()
			servers = connect(t, o, s)
			if err := servers.Continue(t.Context(), "r", runner.Tickets); err != nil {
				t.Fatal(err)
			}
			want = "options"
		}
		b.set(taskQuestion)
		<-store.settled
		if b.answers != `{"k1":{"action":"accept","content":{"b":"`+want+`"}}}` {
			t.Errorf("%s: answers %s", name, b.answers)
		}
		asked := append(ofRun, ofOptions...)
		if len(asked) != 1 || !strings.Contains(asked[0].Wanted.From, `"hostile"`) || !strings.Contains(asked[0].Wanted.From, "build") {
			t.Errorf("%s: asked %+v", name, asked)
		}
	}
}

func TestQuestionsOfAwaitedTasksReachTheApproverOfTheCall(t *testing.T) {
	b, s := newBuilder(t)
	b.set(taskQuestion)
	var seen []*tool.ApprovalRequest
	servers := connect(t, mcp.Options{}, s)
	if _, got := run(t, &tool.Runner{Approver: approver(`{"b":"main"}`, &seen)}, servers.Tools(), "build", "{}"); !strings.Contains(got, "built") {
		t.Errorf("%q", got)
	}
	if len(seen) != 1 || b.answers != `{"k1":{"action":"accept","content":{"b":"main"}}}` {
		t.Errorf("asked %d times, answers %s", len(seen), b.answers)
	}
}

func TestTaskIsCanceledBeforeItsTicketExpires(t *testing.T) {
	b, s := newBuilder(t)
	store := &notifying{settled: make(chan struct{})}
	// The clock of the tickets is behind, so that this one ends within seconds.
	tickets := &tool.Tickets{Store: store, Now: func() time.Time { return time.Now().Add(-10*time.Minute + 5500*time.Millisecond) }}
	servers := connect(t, mcp.Options{}, s)
	run, box := begin(t, servers, &tool.Runner{Tickets: tickets})
	<-store.settled
	<-b.canceled
	ms, err := run.Deliver(context.Background(), box)
	if err != nil || len(ms) != 1 || !strings.Contains(ms[0].Text(), "did not end the task in time") {
		t.Errorf("%+v, %v", ms, err)
	}
}
