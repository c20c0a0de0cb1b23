package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/session/sqlite"
	"github.com/dragoman-go/dragoman/tool"
)

// The child of the crash test: a process that starts or resumes one run in a store, reports
// every step on standard output, and may be killed at any of them.
const (
	crashStore   = "DRAGOMAN_TEST_CRASH_STORE"   // where the session is
	crashSession = "DRAGOMAN_TEST_CRASH_SESSION" // its id
	crashEffects = "DRAGOMAN_TEST_CRASH_EFFECTS" // the file of effects; the tickets are in the same directory
	crashSeed    = "DRAGOMAN_TEST_CRASH_SEED"    // the seed of the plan
	crashHuman   = "DRAGOMAN_TEST_CRASH_HUMAN"   // how the human of this process decides
)

// crashPlan returns the calls of each turn of the run, each as "id name arguments". Every id
// is unique and identifies its effect.
func crashPlan(seed uint64) [][]string {
	draw := rand.New(rand.NewPCG(seed, 0))
	turns := make([][]string, 4)
	handoff := draw.IntN(2 * len(turns)) // half of the runs have one
	for i := range turns {
		for j := range 2 + draw.IntN(2) {
			id := fmt.Sprintf("t%d.%d", i, j)
			name := []string{"once", "once", "again", "pay", "clerk", "job"}[draw.IntN(6)]
			argument := "word"
			if name == "clerk" {
				argument = "task"
			}
			turns[i] = append(turns[i], fmt.Sprintf(`%s %s {%q:%q}`, id, name, argument, id))
		}
		if i == handoff {
			turns[i] = append(turns[i], fmt.Sprintf("t%d.h transfer_to_second {}", i))
		}
	}
	return turns
}

// clerkPlan returns the plan of the agent that is a tool.
func clerkPlan(task string) [][]string {
	call := func(id, name string) string { return fmt.Sprintf(`%s %s {"word":"%s/%s"}`, id, name, task, id) }
	return [][]string{{call("a", "once"), call("b", "again")}, {call("c", "pay"), call("d", "once")}}
}

// plannedModel is a model that depends only on its plan and the conversation. Its final answer
// lists the outcomes of the calls.
type plannedModel struct {
	plan func(first string) [][]string
	tell bool
}

func (m plannedModel) Generate(_ context.Context, req *dragoman.Request) (*dragoman.Response, error) {
	turn, told := 0, []string{}
	for i := range req.Messages {
		if len(req.Messages[i].ToolCalls()) > 0 {
			turn++
		}
		for _, p := range req.Messages[i].Parts {
			if res, ok := p.(*dragoman.ToolResult); ok {
				told = append(told, fmt.Sprintf("[%s %s]", res.CallID, outcomeOf(res)))
			}
		}
	}
	plan := m.plan(req.Messages[0].Text())
	switch {
	case turn < len(plan):
		return calls(plan[turn]...), nil
	case m.tell:
		return textResponse(strings.Join(told, "")), nil
	default:
		return textResponse("done"), nil
	}
}

func (m plannedModel) Stream(ctx context.Context, req *dragoman.Request) iter.Seq2[dragoman.Event, error] {
	return streamed(ctx, req, m.Generate)
}

// Outcomes of calls, as a model reads them.
const (
	succeeded = "worked"
	rejected  = "rejected"
	uncertain = "uncertain"
)

// outcomeOf returns the outcome of a call, according to its result.
func outcomeOf(res *dragoman.ToolResult) string {
	switch text := res.Text(); {
	case res.Outcome != codes.OutcomeError:
		return succeeded
	case strings.Contains(text, "did not run: the user rejected it"):
		return rejected
	case strings.Contains(text, "unknown whether"):
		return uncertain
	default:
		return text
	}
}

// crashTools returns tools that write a line to a file each time they run.
func crashTools(file string, tickets *tool.Tickets) []tool.Tool {
	effect := func(word string) error {
		f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		defer f.Close()
		fmt.Println("effect", word)
		if _, err := f.WriteString(word + "\n"); err != nil {
			return err
		}
		fmt.Println("effected", word)
		return nil
	}
	do := func(_ context.Context, w word) (string, error) { return "did " + w.Word, effect(w.Word) }
	job := tool.Remote(dragoman.ToolSpec{Name: "job", Description: "Goes on in the background.", Parameters: json.RawMessage(`{"type":"object","properties":{"word":{"type":"string"}}}`)},
		func(ctx context.Context, in tool.Input) (tool.Output, error) {
			var w word
			if err := json.Unmarshal(in.Arguments, &w); err != nil {
				return tool.Output{}, err
			}
			ticket, err := tool.Background(ctx, time.Hour)
			if err != nil {
				return tool.Output{}, err
			}
			if err := effect(w.Word); err != nil {
				return tool.Output{}, err
			}
			if randomly(w.Word, 2) == 0 { // the others finish when the next process looks
				err = tickets.Resolve(ctx, ticket.ID, tool.Output{Content: []dragoman.Part{&dragoman.Text{Text: "built"}}})
			}
			return tool.Output{Ticket: ticket}, err
		})
	return []tool.Tool{
		tool.New("once", "Has an effect.", do), tool.New("again", "May be repeated.", do, tool.Idempotent()),
		tool.New("pay", "Needs approval.", do, tool.NeedsApproval()), job,
	}
}

// randomly returns a number below n that depends on a word and on the seed of the process.
func randomly(word string, n uint64) uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, os.Getenv(crashHuman), word)
	return h.Sum64() / 7 % n
}

func crashAgent(seed uint64, file string) (agent.Agent, *tool.Tickets) {
	tickets := &tool.Tickets{Store: &fileTickets{name: file + ".tickets"}}
	tools := crashTools(file, tickets)
	clerk := agent.Agent{Name: "clerk", Model: plannedModel{clerkPlan, true}, Tools: tools[:3]}
	tools = append(tools, clerk.AsTool())
	m := plannedModel{plan: func(string) [][]string { return crashPlan(seed) }}
	second := agent.Agent{Name: "second", Model: m, Tools: tools, Runner: &tool.Runner{Tickets: tickets}}
	return agent.Agent{
		Model: m, Tools: tools, Runner: &tool.Runner{Tickets: tickets},
		Handoffs: []agent.Handoff{{To: &second, Filter: func(ms []dragoman.Message) []dragoman.Message { return ms }}},
	}, tickets
}

// fileTickets stores tickets in a file that is replaced atomically.
type fileTickets struct {
	mu   sync.Mutex
	name string
}

func (f *fileTickets) read() (all []tool.StoredTicket, err error) {
	b, err := os.ReadFile(f.name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return all, json.Unmarshal(b, &all)
}

func (f *fileTickets) Update(_ context.Context, id string, change func(*tool.StoredTicket) error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	all, err := f.read()
	if err != nil {
		return err
	}
	at := 0
	for at < len(all) && all[at].Ticket.ID != id {
		at++
	}
	if at == len(all) {
		all = append(all, tool.StoredTicket{})
	}
	if err := change(&all[at]); err != nil {
		return err
	}
	b, err := json.Marshal(all)
	if err != nil {
		return err
	}
	if err := os.WriteFile(f.name+".new", b, 0o600); err != nil {
		return err
	}
	return os.Rename(f.name+".new", f.name)
}

func (f *fileTickets) List(_ context.Context, run string) (out []tool.StoredTicket, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	all, err := f.read()
	for _, s := range all {
		if s.Ticket.Run == run && !s.Delivered {
			out = append(out, s)
		}
	}
	return out, err
}

func openCrashStore(ctx context.Context, at string) (session.Store, error) {
	kind, where, _ := strings.Cut(at, ":")
	if kind == "sqlite" {
		return sqlite.Open(ctx, where, sqlite.Options{})
	}
	return openPostgres(ctx, where)
}

// crashChild runs the child: it starts or resumes the run, and reports every acknowledged
// step.
func crashChild(ctx context.Context) error {
	store, err := openCrashStore(ctx, os.Getenv(crashStore))
	if err != nil {
		return err
	}
	id := os.Getenv(crashSession)
	s, err := session.Open(ctx, store, id)
	if errors.Is(err, session.ErrNotFound) {
		s, err = session.Create(ctx, store, session.Info{ID: id})
	}
	if err != nil {
		return err
	}
	seed, err := strconv.ParseUint(os.Getenv(crashSeed), 10, 64)
	if err != nil {
		return err
	}
	a, tickets := crashAgent(seed, filepath.Clean(os.Getenv(crashEffects)))
	if err := settleBackground(ctx, tickets, "run-"+id); err != nil {
		return err
	}
	state, err := agent.LoadState(ctx, s)
	if err != nil {
		return err
	}
	stream := a.Stream(ctx, "go", agent.In(s), agent.ID("run-"+id))
	if state != nil {
		stream = a.ResumeStream(ctx, nil, append(decided(state), agent.In(s))...)
	}
	fmt.Println("ready")
	end, err := reportStored(stream)
	switch {
	case errors.Is(err, agent.ErrInterrupted):
		for _, p := range end.Pending {
			fmt.Println("stored pending", p.Binding.Run, p.Binding.CallID)
		}
		fmt.Println("waits")
		return nil
	case err != nil:
		return err
	}
	fmt.Println("finished")
	return store.Close()
}

// reportStored reads a stream and reports what is stored.
func reportStored(stream agent.Stream) (*agent.Result, error) {
	for ev, err := range stream {
		switch ev := ev.(type) {
		case *agent.MessageAdded:
			fmt.Println("stored message", named(&ev.Message))
		case *agent.ToolReturned:
			fmt.Println("stored result", ev.Result.CallID)
		case *agent.HandedOff:
			fmt.Println("handed over")
		case *agent.RunEnd:
			return ev.Result, err
		}
	}
	return nil, errors.New("the stream has no end")
}

// settleBackground settles the background work that other processes have started.
func settleBackground(ctx context.Context, tickets *tool.Tickets, run string) error {
	open, err := tickets.Store.List(ctx, run)
	if err != nil {
		return err
	}
	for _, s := range open {
		if s.State != "open" {
			continue
		}
		if err := tickets.Fail(ctx, s.Ticket.ID, "could not be built"); err != nil {
			return err
		}
	}
	return nil
}

// decided returns the decisions of this process's human on the pending calls. Some differ
// from the decisions in the process that was killed before.
func decided(s *agent.State) (opts []agent.Option) {
	for _, p := range s.Pending() {
		switch randomly(p.Binding.Run+p.Binding.CallID, 6) {
		case 0:
			opts = append(opts, agent.Reject(p, "no"))
		case 1:
			opts = append(opts, agent.Edit(p, tool.Input{Arguments: json.RawMessage(strings.Replace(string(p.Input.Arguments), `"}`, `!"}`, 1))}))
		case 2: // later
		case 3:
			opts = append(opts, agent.Always(p))
		default:
			opts = append(opts, agent.Approve(p))
		}
	}
	return opts
}

// named identifies a message by its first call, result or text: the child's models repeat
// nothing, unless an earlier message was lost.
func named(m *dragoman.Message) string {
	if len(m.Parts) == 0 {
		return ""
	}
	switch p := m.Parts[0].(type) {
	case *dragoman.ToolCall:
		return p.ID
	case *dragoman.ToolResult:
		return "result " + p.CallID
	case *dragoman.Text:
		return p.Text
	default:
		return p.Kind()
	}
}
