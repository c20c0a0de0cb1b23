package peer

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-go/dragoman/mcp/internal/rpc"
)

const taskState = `"taskId":"tk1","createdAt":"2026-11-16T09:00:00Z","lastUpdatedAt":"2026-11-16T09:00:00Z","ttlMs":60000,"pollIntervalMs":1`

func TestTaskIsPolledAnsweredAndCompleted(t *testing.T) {
	polls := 0
	var update string
	s := &server{}
	s.handle = modern(func(_ context.Context, _ *conn, r *rpc.Request) (string, error) {
		if strings.HasPrefix(r.Method, "tasks/") && r.Name != "tk1" {
			t.Errorf("%s has Mcp-Name %q", r.Method, r.Name)
		}
		switch r.Method {
		case "tools/call":
			return `{"resultType":"task","status":"working",` + taskState + `}`, nil
		case "tasks/get":
			switch polls++; {
			case polls == 1:
				return `{"resultType":"complete","status":"working",` + taskState + `}`, nil
			case polls < 4: // the question is repeated until the answer arrives
				return `{"resultType":"complete","status":"input_required",` + taskState + `,"inputRequests":{"k1":{"method":"elicitation/create","params":{"mode":"form","message":"m","requestedSchema":{"type":"object","properties":{}}}}}}`, nil
			default:
				return `{"resultType":"complete","status":"completed",` + taskState + `,"result":{"content":[],"isError":false}}`, nil
			}
		case "tasks/update":
			update += string(fields(r.Params)["inputResponses"])
			return `{"resultType":"complete"}`, nil
		}
		return "", &rpc.Error{Code: rpc.CodeMethodNotFound}
	})
	raw, err := callTool(t, connect(t, s), Options{Input: accept})
	if err != nil || raw != `{"content":[],"isError":false}` {
		t.Fatal(raw, err)
	}
	if update != `{"k1":{"action":"accept","content":{"b":"main"}}}` {
		t.Errorf("the question was answered with %s", update)
	}
}

func TestTaskEndsWithItsFailure(t *testing.T) {
	for status, want := range map[string]string{
		`"failed","error":{"code":-32000,"message":"disk full"}`: "disk full",
		`"cancelled"`: "canceled", `"paused"`: "paused",
	} {
		s := &server{handle: modern(func(_ context.Context, _ *conn, r *rpc.Request) (string, error) {
			if r.Method == "tools/call" {
				return `{"resultType":"task","status":"working",` + taskState + `}`, nil
			}
			return `{"resultType":"complete","status":` + status + `,` + taskState + `}`, nil
		})}
		if _, err := callTool(t, connect(t, s), Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", status, err)
		}
	}
}

func TestDetachedTaskIsAwaitedLaterAndCanceledWithItsContext(t *testing.T) {
	canceled := make(chan struct{})
	s := &server{handle: modern(func(_ context.Context, _ *conn, r *rpc.Request) (string, error) {
		switch r.Method {
		case "tools/call":
			return `{"resultType":"task","status":"working",` + taskState + `}`, nil
		case "tasks/cancel":
			close(canceled)
			return `{"resultType":"complete"}`, nil
		}
		return `{"resultType":"complete","status":"working",` + taskState + `}`, nil
	})}
	p := connect(t, s)
	_, err := callTool(t, p, Options{Detach: true})
	var started *TaskStarted
	if !errors.As(err, &started) || started.Task.TTL != time.Minute {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if _, err := p.Await(ctx, started.Task, Options{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	<-canceled
}

func TestTaskOfRevision20251125(t *testing.T) {
	polls := 0
	s := &server{}
	s.handle = older(func(_ context.Context, c *conn, r *rpc.Request) (string, error) {
		switch r.Method {
		case "tools/call":
			if string(fields(r.Params)["task"]) != `{}` {
				t.Errorf("params %s", r.Params)
			}
			return `{"task":{"taskId":"tk1","status":"working","createdAt":"x","ttl":60000,"pollInterval":1}}`, nil
		case "tasks/get":
			if polls++; polls == 1 {
				return `{"taskId":"tk1","status":"working","ttl":60000,"pollInterval":1}`, nil
			}
			return `{"taskId":"tk1","status":"input_required","ttl":60000,"pollInterval":1}`, nil
		case "tasks/result":
			a := c.ask("elicitation/create", `{"message":"m","requestedSchema":{"type":"object","properties":{}},"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"tk1"}}}`, nil)
			if !strings.Contains(a.result, "accept") {
				t.Errorf("answer %+v", a)
			}
			return `{"content":[],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"tk1"}}}`, nil
		}
		return "", &rpc.Error{Code: rpc.CodeMethodNotFound}
	})
	raw, err := callTool(t, connect(t, s), Options{TaskRequired: true, Input: accept})
	if err != nil || string(fields(json.RawMessage(raw))["content"]) != `[]` {
		t.Error(raw, err)
	}
}

func TestTaskThatWasNotOfferedIsAnError(t *testing.T) {
	s := &server{handle: modern(func(context.Context, *conn, *rpc.Request) (string, error) {
		return `{"resultType":"task","status":"working",` + taskState + `}`, nil
	})}
	if _, err := callTool(t, connect(t, s, func(c *Config) { c.Tasks = false }), Options{}); !errors.Is(err, ErrResult) {
		t.Error(err)
	}
}

func TestTaskOfAHostileServerIsBounded(t *testing.T) {
	s := &server{handle: modern(func(context.Context, *conn, *rpc.Request) (string, error) {
		return `{"resultType":"task","status":"working","taskId":"` + strings.Repeat("x", 1<<20) + `"}`, nil
	})}
	if _, err := callTool(t, connect(t, s), Options{Detach: true}); !errors.Is(err, ErrResult) || len(err.Error()) > 1000 {
		t.Errorf("%.300v", err)
	}
	s = &server{handle: modern(func(_ context.Context, _ *conn, r *rpc.Request) (string, error) {
		if r.Method == "tools/call" {
			return `{"resultType":"task","status":"working","statusMessage":"` + strings.Repeat("x", 1<<20) + `",` + taskState + `}`, nil
		}
		return `{"resultType":"complete","status":"working",` + taskState + `}`, nil
	})}
	p := connect(t, s)
	_, err := callTool(t, p, Options{Detach: true})
	var started *TaskStarted
	if !errors.As(err, &started) || len(started.Task.Message) > 3000 {
		t.Fatalf("%.300v", err)
	}
	// It wants to be asked each millisecond, without an end.
	if _, err := p.Await(t.Context(), started.Task, Options{MaxTime: 2500 * time.Millisecond}); !errors.Is(err, ErrTimeout) {
		t.Error(err)
	}
	if n := s.count("tasks/get"); n > 105 {
		t.Errorf("%d requests", n)
	}
}
