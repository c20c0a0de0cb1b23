package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/tool"
)

// recordLines shows records in a comparable form.
func recordLines(records []tool.Record) string {
	var b strings.Builder
	for _, r := range records {
		fmt.Fprintf(&b, "%d %s %s ok=%v pending=%v plain=%q raw=%s kind=%s\n", r.Turn, r.CallID, r.Tool, r.OK, r.Pending, r.Plain, r.Raw, r.ErrorKind)
	}
	return b.String()
}

func TestT10_ResumedRunHasAllRecords(t *testing.T) {
	for _, kept := range []string{"state", "session"} {
		var did counted
		script := []any{
			calls(`a look {"word":"x"}`, "b broken"),
			calls(`a look {"word":"y"}`, `c ask {"word":"z"}`), // the id a again: another call
			calls(`d ask`), textResponse("done"),
		}
		m := model(script...)
		a := agent.Agent{Model: m, Tools: []tool.Tool{did.tool("look"), failing("broken"), did.tool("ask", tool.NeedsApproval())}}
		var opts []agent.Option
		if kept == "session" {
			opts = append(opts, agent.In(must[*session.Session](t)(session.Create(t.Context(), &session.Memory{}, session.Info{ID: "s"}))))
		}
		res, err := a.Run(t.Context(), "go", opts...)
		for errors.Is(err, agent.ErrInterrupted) {
			state := stored(t, res.State)
			if kept == "session" {
				state = nil
			}
			res, err = a.Resume(t.Context(), state, append(opts, agent.Approve(res.Pending[0]))...)
		}
		if err != nil || res.Output != "done" {
			t.Fatal(err, res)
		}
		want := `1 a look ok=true pending=false plain="look did x" raw={"word":"x"} kind=
1 b broken ok=false pending=false plain="broken" raw={} kind=failed
2 a look ok=true pending=false plain="look did y" raw={"word":"y"} kind=
2 c ask ok=true pending=false plain="ask did z" raw={"word":"z"} kind=
3 d ask ok=true pending=false plain="ask did " raw={} kind=
`
		if got := recordLines(res.Records); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", kept, got, want)
		}
		for _, r := range res.Records {
			if r.Started.IsZero() || r.Run == "" || r.Output == "" {
				t.Errorf("%s: incomplete record %+v", kept, r)
			}
		}
		// A run that is over still has them.
		if again, err := a.Resume(t.Context(), stored(t, res.State), opts...); err != nil || recordLines(again.Records) != want {
			t.Errorf("%s: resuming the finished run: %v\n%s", kept, err, recordLines(again.Records))
		}
	}
}

func TestT10_RecordsOfALongRunAreRebuilt(t *testing.T) {
	var did counted
	const turns = 230
	m := model()
	for i := range turns {
		m.script = append(m.script, calls(fmt.Sprintf(`c%d look {"word":"%d"}`, i, i)))
	}
	m.script = append(m.script, calls("last ask"), textResponse("done"))
	a := agent.Agent{Model: m, Tools: []tool.Tool{did.tool("look"), did.tool("ask", tool.NeedsApproval())}, Limits: agent.Limits{Turns: 500}}
	res, err := a.Run(t.Context(), "go")
	if !errors.Is(err, agent.ErrInterrupted) {
		t.Fatal(err)
	}
	res = must[*agent.Result](t)(a.Resume(t.Context(), stored(t, res.State), agent.Approve(res.Pending[0])))
	if len(res.Records) != turns+1 {
		t.Fatalf("%d records", len(res.Records))
	}
	for i, r := range res.Records[:turns] {
		want := fmt.Sprintf("%d c%d look ok=true pending=false plain=%q raw={\"word\":\"%d\"} kind=\n", i+1, i, fmt.Sprintf("look did %d", i), i)
		if got := recordLines([]tool.Record{r}); got != want {
			t.Fatalf("got %s want %s", got, want)
		}
	}
}

func TestDecision137_DegradedRunNamesItsTools(t *testing.T) {
	runs := 0
	flaky := tool.New("flaky", "Fails.", func(context.Context, struct{}) (string, error) { runs++; return "", errors.New("down") },
		tool.Set(func(s *tool.Settings) { s.Failure = codes.FailureDegrade }))
	var did counted
	m := model(calls("a flaky"), calls("b ask"), calls("c flaky"), textResponse("done"))
	a := agent.Agent{Model: m, Tools: []tool.Tool{flaky, did.tool("ask", tool.NeedsApproval())}}
	var notices []string
	var res *agent.Result
	for ev, err := range a.Stream(t.Context(), "go") {
		switch ev := ev.(type) {
		case *agent.Notice:
			notices = append(notices, ev.Code+": "+ev.Text)
		case *agent.RunEnd:
			res = ev.Result
			if b := must[[]byte](t)(agent.MarshalEvent(ev, err)); !strings.Contains(string(b), `"degraded":["flaky"]`) {
				t.Errorf("the event is %s", b)
			}
		}
	}
	if len(notices) != 1 || !strings.HasPrefix(notices[0], "degraded: flaky failed") || fmt.Sprint(res.Degraded) != "[flaky]" {
		t.Errorf("notices %q, degraded %q", notices, res.Degraded)
	}
	// What the run lost stays lost when another process resumes it.
	res = must[*agent.Result](t)(a.Resume(t.Context(), stored(t, res.State), agent.Approve(res.Pending[0])))
	if runs != 1 || fmt.Sprint(res.Degraded) != "[flaky]" || res.Records[2].ErrorKind != tool.ErrorUnavailable {
		t.Errorf("%d runs, degraded %q, records\n%s", runs, res.Degraded, recordLines(res.Records))
	}
	if whole := must[*agent.Result](t)(agent.Agent{Model: model(textResponse("x"))}.Run(t.Context(), "go")); whole.Degraded != nil {
		t.Errorf("a run with all its tools is degraded: %q", whole.Degraded)
	}
}

func TestT9_PlainTextOfAResultHasNoFence(t *testing.T) {
	var did counted
	a := agent.Agent{Model: model(calls(`a look {"word":"x"}`), textResponse("done")), Tools: []tool.Tool{did.tool("look")}}
	res := must[*agent.Result](t)(a.Run(t.Context(), "go"))
	r := res.Messages[2].Parts[0].(*dragoman.ToolResult)
	if r.PlainText() != "look did x" || r.Text() == r.PlainText() {
		t.Errorf("plain %q, text %q", r.PlainText(), r.Text())
	}
}

// Every turn writes the state. If it held the records, the log of a long run would grow
// with the square of its turns.
func TestT10_SessionStoresEachRecordOnce(t *testing.T) {
	var did counted
	const turns = 230
	m := model()
	for i := range turns {
		m.script = append(m.script, calls(fmt.Sprintf(`c%d look {"word":"%d"}`, i, i)))
	}
	m.script = append(m.script, calls("last ask"), textResponse("done"))
	a := agent.Agent{Model: m, Tools: []tool.Tool{did.tool("look"), did.tool("ask", tool.NeedsApproval())}, Limits: agent.Limits{Turns: 500}}
	var store session.Memory
	s := must[*session.Session](t)(session.Create(t.Context(), &store, session.Info{ID: "s"}))
	res, err := a.Run(t.Context(), "go", agent.In(s), agent.ID("r"))
	if !errors.Is(err, agent.ErrInterrupted) {
		t.Fatal(err)
	}
	for e, err := range s.Entries(t.Context(), session.Query{Kinds: []string{"state"}}) {
		if err != nil || len(e.Body) > 4000 {
			t.Fatalf("the state in entry %d has %d bytes: %v", e.Seq, len(e.Body), err)
		}
	}
	if kept := must[[]tool.Record](t)(s.Records(t.Context(), "r")); len(kept) != turns || kept[7].CallID != "c7" || kept[7].Started.IsZero() {
		t.Fatalf("%d records, one is %+v", len(kept), kept[7])
	}
	s = must[*session.Session](t)(session.Open(t.Context(), &store, "s"))
	res = must[*agent.Result](t)(a.Resume(t.Context(), nil, agent.In(s), agent.Approve(res.Pending[0])))
	if len(res.Records) != turns+1 {
		t.Fatalf("%d records", len(res.Records))
	}
	for i, r := range res.Records[:turns] {
		want := fmt.Sprintf("%d c%d look ok=true pending=false plain=%q raw={\"word\":\"%d\"} kind=\n", i+1, i, fmt.Sprintf("look did %d", i), i)
		if got := recordLines([]tool.Record{r}); got != want || r.Started.IsZero() || r.Run != "r" {
			t.Fatalf("got %s want %s", got, want)
		}
	}
}

// A replayed result has the fence of the first attempt. Plain and Error of its record have no
// fence.
func TestT10_RecordOfAReplayedCallHasPlainOutput(t *testing.T) {
	for name, f := range map[string]func(context.Context, word) (string, error){
		"output": func(context.Context, word) (string, error) { return "seen", nil },
		"error":  func(context.Context, word) (string, error) { return "", errors.New("seen") },
	} {
		store, crashed := &session.Memory{}, &session.Memory{}
		s := must[*session.Session](t)(session.Create(t.Context(), store, session.Info{ID: "s"}))
		a := agent.Agent{Model: model(calls("a look")), Tools: []tool.Tool{tool.New("look", "Looks.", f)}, Runner: &tool.Runner{Observe: func(ev tool.Event) {
			if _, ok := ev.(tool.CallEnded); ok { // the journal has the result, the conversation does not
				if _, err := crashed.Info(t.Context(), "s"); err != nil {
					if err := session.Copy(t.Context(), store, "s", crashed); err != nil {
						t.Error(err)
					}
				}
			}
		}}}
		must[*agent.Result](t)(a.Run(t.Context(), "go", agent.In(s)))
		s = must[*session.Session](t)(session.Open(t.Context(), crashed, "s"))
		a.Model = model()
		res := must[*agent.Result](t)(a.Resume(t.Context(), nil, agent.In(s)))
		if r := res.Records[0]; !r.Replayed || r.Plain != "seen" || r.Output == r.Plain || name == "error" && r.Error != "seen" {
			t.Errorf("%s: replayed %v, plain %q, error %q", name, r.Replayed, r.Plain, r.Error)
		}
	}
}
