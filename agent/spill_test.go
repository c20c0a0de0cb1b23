package agent_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/internal/text/toolname"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/session/sqlite"
	"github.com/dragoman-go/dragoman/tool"
)

func toolNames(req *dragoman.Request) (out []string) {
	for i := range req.Tools {
		out = append(out, req.Tools[i].Name)
	}
	return out
}

// openFile opens a store of sessions in a file, and the session "s" of it.
func openFile(t *testing.T, path string) (*sqlite.Store, *session.Session) {
	t.Helper()
	store := must[*sqlite.Store](t)(sqlite.Open(t.Context(), path, sqlite.Options{Relaxed: true}))
	s, err := session.Open(t.Context(), store, "s")
	if err != nil {
		s = must[*session.Session](t)(session.Create(t.Context(), store, session.Info{ID: "s"}))
	}
	return store, s
}

// long is a tool whose output is far longer than its limit.
func long() tool.Tool {
	return tool.New("long", "Says much.", func(context.Context, word) (string, error) {
		var b strings.Builder
		for i := range 100_000 {
			fmt.Fprintf(&b, "line %d é\n", i)
		}
		return b.String(), nil
	}, tool.Set(func(s *tool.Settings) { s.Limits.Chars = 200 }))
}

// spilledName returns the name of the stored output in the text that the model reads.
func spilledName(t *testing.T, ms []dragoman.Message) string {
	t.Helper()
	for i := range ms {
		for _, p := range ms[i].Parts {
			if r, ok := p.(*dragoman.ToolResult); ok {
				if m := regexp.MustCompile(`name "(out_[0-9a-f]+)"`).FindStringSubmatch(r.Text()); m != nil {
					return m[1]
				}
			}
		}
	}
	t.Fatal("no output was cut and stored")
	return ""
}

func TestT8_FirstRequestHasReadToolOutput(t *testing.T) {
	_, s := openFile(t, filepath.Join(t.TempDir(), "s.db"))
	m := model(calls("a long"))
	res := must[*agent.Result](t)(agent.Agent{Model: m, Tools: []tool.Tool{long()}}.Run(t.Context(), "go", agent.In(s)))
	for i, req := range m.asked {
		if got := toolNames(req); !slices.Equal(got, []string{"long", toolname.ReadOutput}) {
			t.Errorf("request %d has the tools %q", i, got)
		}
	}
	spilledName(t, res.Messages)
}

func TestT8_RunsThatCannotSpillHaveNoReadToolOutput(t *testing.T) {
	_, s := openFile(t, filepath.Join(t.TempDir(), "s.db"))
	unbounded := tool.New("all", "Says all.", func(context.Context, word) (string, error) { return "", nil },
		tool.Set(func(s *tool.Settings) { s.Limits.Chars, s.Limits.Items = -1, -1 }))
	for name, c := range map[string]struct {
		tools []tool.Tool
		opts  []agent.Option
	}{
		"no tools":            {nil, []agent.Option{agent.In(s)}},
		"no bound on output":  {[]tool.Tool{unbounded}, []agent.Option{agent.In(s)}},
		"unbounded, no store": {[]tool.Tool{unbounded}, nil},
	} {
		m := model()
		must[*agent.Result](t)(agent.Agent{Model: m, Tools: c.tools}.Run(t.Context(), "go", c.opts...))
		if slices.Contains(toolNames(m.asked[0]), toolname.ReadOutput) {
			t.Errorf("%s: %q", name, toolNames(m.asked[0]))
		}
	}
}

func TestT8_OwnReadToolOutputIsKept(t *testing.T) {
	_, s := openFile(t, filepath.Join(t.TempDir(), "s.db"))
	m := model()
	must[*agent.Result](t)(agent.Agent{Model: m, Tools: []tool.Tool{long(), tool.ReadOutput(s.Spill())}}.Run(t.Context(), "go", agent.In(s)))
	if got := toolNames(m.asked[0]); !slices.Equal(got, []string{"long", toolname.ReadOutput}) {
		t.Errorf("%q", got)
	}
}

func TestT8_NextAgentReadsSpilledOutput(t *testing.T) {
	_, s := openFile(t, filepath.Join(t.TempDir(), "s.db"))
	second := &agent.Agent{Name: "second", Model: model()}
	first := agent.Agent{Name: "first", Model: model(calls("a long"), calls("b transfer_to_second")), Tools: []tool.Tool{long()}, Handoffs: []agent.Handoff{{To: second}}}
	must[*agent.Result](t)(first.Run(t.Context(), "go", agent.In(s)))
	asked := second.Model.(*scripted).asked
	if len(asked) != 1 || !slices.Contains(toolNames(asked[0]), toolname.ReadOutput) {
		t.Errorf("%d requests", len(asked))
	}
}

// After a restart another process has only the file, and the conversation names the
// output. A resumed run and a new run of the session both read it.
func TestT8_SpilledOutputIsReadAfterARestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	store, s := openFile(t, path)
	stop := make(chan struct{})
	close(stop) // after the turn that spills
	a := agent.Agent{Model: model(calls("a long")), Tools: []tool.Tool{long()}}
	a.Run(t.Context(), "go", agent.In(s), agent.StopAfterTurn(stop))
	loaded, _, err := s.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	name := spilledName(t, loaded)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}

	for _, way := range []string{"resumed", "new run"} {
		store, s := openFile(t, path)
		read := fmt.Sprintf(`r read_tool_output {"name":%q,"offset":1200000,"bytes":30}`, name)
		if way == "new run" {
			read = fmt.Sprintf(`n read_tool_output {"name":%q,"offset":1200000,"bytes":30}`, name)
		}
		a := agent.Agent{Model: model(calls(read)), Tools: []tool.Tool{long()}}
		var res *agent.Result
		if way == "resumed" {
			res = must[*agent.Result](t)(a.Resume(t.Context(), nil, agent.In(s)))
		} else {
			res = must[*agent.Result](t)(a.Run(t.Context(), "again", agent.In(s)))
		}
		last := res.Records[len(res.Records)-1]
		// The offset is inside a character, which begins one byte before it.
		if !last.OK || !strings.Contains(last.Plain, "[bytes 1199999 to ") || !strings.Contains(last.Plain, "line 8") {
			t.Errorf("%s: %+v", way, last)
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// The work outlives the process. Another one settles its ticket through the file, and
// the next run of the session delivers the outcome.
func TestT13_SessionTicketsSurviveRestart(t *testing.T) {
	for state, settle := range map[string]func(*tool.Tickets, string) error{
		"resolved": func(k *tool.Tickets, id string) error {
			return k.Resolve(context.Background(), id, tool.Output{Content: []dragoman.Part{&dragoman.Text{Text: "the outcome"}}})
		},
		"failed": func(k *tool.Tickets, id string) error { return k.Fail(context.Background(), id, "the outcome") },
	} {
		path := filepath.Join(t.TempDir(), "s.db")
		store, s := openFile(t, path)
		var id string
		build := tool.New("build", "Builds.", func(ctx context.Context, _ word) (*tool.Ticket, error) {
			ticket, err := tool.Background(ctx, time.Hour)
			if err == nil {
				id = ticket.ID
			}
			return ticket, err
		})
		must[*agent.Result](t)(agent.Agent{Model: model(calls("a build")), Tools: []tool.Tool{build}}.Run(t.Context(), "go", agent.In(s)))
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}

		outside, _ := openFile(t, path)
		if err := settle(&tool.Tickets{Store: outside.Tickets()}, id); err != nil {
			t.Fatalf("%s: %v", state, err)
		}
		if err := outside.Close(); err != nil {
			t.Fatal(err)
		}

		store, s = openFile(t, path)
		m := model()
		must[*agent.Result](t)(agent.Agent{Model: m, Tools: []tool.Tool{build}}.Run(t.Context(), "and now?", agent.In(s)))
		if got := script(m.asked[0].Messages); strings.Count(got, "is "+state+".") != 1 || !strings.Contains(got, "the outcome") {
			t.Errorf("%s: the model reads\n%s", state, got)
		}
		must[*agent.Result](t)(agent.Agent{Model: m, Tools: []tool.Tool{build}}.Run(t.Context(), "once more", agent.In(s)))
		if got := script(m.asked[1].Messages); strings.Count(got, "is "+state+".") != 1 {
			t.Errorf("%s: delivered twice:\n%s", state, got)
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Background work is delivered to the copy of the session.
func TestS3_CopiedSessionKeepsItsTickets(t *testing.T) {
	for _, settledBefore := range []bool{true, false} {
		from := new(session.Memory)
		s, err := session.Create(t.Context(), from, session.Info{ID: "s"})
		if err != nil {
			t.Fatal(err)
		}
		var id string
		build := tool.New("build", "Builds.", func(ctx context.Context, _ word) (*tool.Ticket, error) {
			ticket, err := tool.Background(ctx, time.Hour)
			if err == nil {
				id = ticket.ID
			}
			return ticket, err
		})
		must[*agent.Result](t)(agent.Agent{Model: model(calls("a build")), Tools: []tool.Tool{build}}.Run(t.Context(), "go", agent.In(s)))
		resolve := func(store tool.TicketStore) {
			t.Helper()
			if err := (&tool.Tickets{Store: store}).Resolve(t.Context(), id, tool.Output{Content: []dragoman.Part{&dragoman.Text{Text: "the outcome"}}}); err != nil {
				t.Fatal(err)
			}
		}
		if settledBefore {
			resolve(from.Tickets())
		}
		if err := session.Copy(t.Context(), from, "s", noTickets{new(session.Memory)}); !errors.Is(err, session.ErrInvalid) || !strings.Contains(err.Error(), id) {
			t.Errorf("copied to a store without tickets: %v", err)
		}
		to, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "s.db"), sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := session.Copy(t.Context(), from, "s", to); err != nil {
			t.Fatal(err)
		}
		if !settledBefore {
			resolve(to.Tickets())
		}
		if s, err = session.Open(t.Context(), to, "s"); err != nil {
			t.Fatal(err)
		}
		m := model()
		must[*agent.Result](t)(agent.Agent{Model: m, Tools: []tool.Tool{build}}.Run(t.Context(), "and now?", agent.In(s)))
		if got := script(m.asked[0].Messages); strings.Count(got, "is resolved.") != 1 || !strings.Contains(got, "the outcome") {
			t.Errorf("the model reads\n%s", got)
		}
		if err := to.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// noTickets is a store without tickets.
type noTickets struct{ session.Store }

// pageOf returns a response that calls for a page of the last shortened output.
func pageOf(t *testing.T, req *dragoman.Request) *dragoman.Response {
	t.Helper()
	return calls(fmt.Sprintf(`p read_tool_output {"name":%q,"offset":1000000}`, spilledName(t, req.Messages)))
}

// lastResult returns the text of the last tool result that the model got.
func lastResult(t *testing.T, m *scripted) string {
	t.Helper()
	req := m.asked[len(m.asked)-1]
	res, ok := req.Messages[len(req.Messages)-1].Parts[0].(*dragoman.ToolResult)
	if !ok {
		t.Fatalf("the last message is %+v", req.Messages[len(req.Messages)-1])
	}
	return res.Text()
}

func TestT8_RunsWithoutAStoreSpillInMemory(t *testing.T) {
	m := model(calls("a long"), func(req *dragoman.Request) *dragoman.Response { return pageOf(t, req) }, textResponse("done"))
	res := must[*agent.Result](t)(agent.Agent{Model: m, Tools: []tool.Tool{long()}}.Run(t.Context(), "go"))
	for i, req := range m.asked {
		if got := toolNames(req); !slices.Equal(got, []string{"long", toolname.ReadOutput}) {
			t.Errorf("request %d has the tools %q", i, got)
		}
	}
	if got := lastResult(t, m); !strings.Contains(got, "[bytes 1000000 to ") || !strings.Contains(got, "line 72223") {
		t.Errorf("the page is %.300s", got)
	}
	if res.Losses.Losses != nil {
		t.Errorf("losses %v", res.Losses)
	}
}

// A state that is resumed in the same process still has the outputs. In another process they
// are gone, and the tool reports this to the model.
func TestT8_OutputsInMemoryAfterAResumption(t *testing.T) {
	for _, another := range []bool{false, true} {
		var did counted
		m := model(calls("a long"), calls("b ask"), func(req *dragoman.Request) *dragoman.Response { return pageOf(t, req) }, textResponse("done"))
		a := agent.Agent{Model: m, Tools: []tool.Tool{long(), did.tool("ask", tool.NeedsApproval())}}
		res, err := a.Run(t.Context(), "go")
		if !errors.Is(err, agent.ErrInterrupted) {
			t.Fatal(err)
		}
		state := res.State
		if another {
			state = stored(t, state)
		}
		must[*agent.Result](t)(a.Resume(t.Context(), state, agent.Approve(res.Pending[0])))
		got := lastResult(t, m)
		if another {
			if !strings.Contains(got, "is not in memory any more") || !strings.Contains(got, "call the tool again") {
				t.Errorf("another process: %s", got)
			}
		} else if !strings.Contains(got, "[bytes 1000000 to ") {
			t.Errorf("the same process: %.300s", got)
		}
		for i, req := range m.asked {
			if names := toolNames(req); !slices.Equal(names, []string{"long", "ask", toolname.ReadOutput}) {
				t.Errorf("request %d has the tools %q", i, names)
			}
		}
	}
}

func TestT8_OutputsBeyondTheBoundOfMemoryAreReported(t *testing.T) {
	sizes := []int{12 << 20, 12 << 20, 20 << 20}
	huge := tool.New("huge", "Says much.", func(context.Context, word) (string, error) {
		n := sizes[0]
		sizes = sizes[1:]
		return strings.Repeat("x", n), nil
	}, tool.Set(func(s *tool.Settings) { s.Limits.Chars = 200 }))
	m := model(
		calls("a huge"), calls("b huge"), calls("c huge"),
		func(req *dragoman.Request) *dragoman.Response { return pageOf(t, req) }, // of the first output, which the second has displaced
		textResponse("done"))
	must[*agent.Result](t)(agent.Agent{Model: m, Tools: []tool.Tool{huge}}.Run(t.Context(), "go"))
	last := m.asked[len(m.asked)-1].Messages
	if got := last[6].Parts[0].(*dragoman.ToolResult).Text(); !strings.Contains(got, "too long to be stored") {
		t.Errorf("the third output: %.600s", got)
	}
	if got := lastResult(t, m); !strings.Contains(got, "is not in memory any more") {
		t.Errorf("the first output: %.300s", got)
	}
}

func TestT8_NoSpillSwitchesItOff(t *testing.T) {
	_, s := openFile(t, filepath.Join(t.TempDir(), "s.db"))
	for name, opts := range map[string][]agent.Option{"alone": nil, "in a session": {agent.In(s)}} {
		m := model(calls("a long"))
		a := agent.Agent{Model: m, Tools: []tool.Tool{long()}, Runner: &tool.Runner{Spill: tool.NoSpill}}
		must[*agent.Result](t)(a.Run(t.Context(), "go", opts...))
		if got := toolNames(m.asked[0]); !slices.Equal(got, []string{"long"}) {
			t.Errorf("%s: the tools are %q", name, got)
		}
		if got := lastResult(t, m); !strings.Contains(got, "characters cut here; the rest was not stored") {
			t.Errorf("%s: %s", name, got)
		}
	}
}
