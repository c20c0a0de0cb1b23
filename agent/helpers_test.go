package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/tool"
)

// scripted is a model that returns the responses of a script, and records its requests.
// After the end of the script it answers "done".
type scripted struct {
	mu     sync.Mutex
	script []any // *dragoman.Response, error, or func(*dragoman.Request) *dragoman.Response
	asked  []*dragoman.Request
}

func model(script ...any) *scripted { return &scripted{script: script} }

func (m *scripted) Generate(ctx context.Context, req *dragoman.Request) (*dragoman.Response, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	copied := *req
	copied.Messages = append([]dragoman.Message(nil), req.Messages...)
	m.asked = append(m.asked, &copied)
	if len(m.script) == 0 {
		return textResponse("done"), nil
	}
	next := m.script[0]
	m.script = m.script[1:]
	switch next := next.(type) {
	case error:
		return nil, next
	case func(*dragoman.Request) *dragoman.Response:
		return next(req), nil
	default:
		return next.(*dragoman.Response), nil
	}
}

func (m *scripted) Stream(ctx context.Context, req *dragoman.Request) iter.Seq2[dragoman.Event, error] {
	return streamed(ctx, req, m.Generate)
}

// streamed calls generate and returns its response as a stream.
func streamed(ctx context.Context, req *dragoman.Request, generate func(context.Context, *dragoman.Request) (*dragoman.Response, error)) iter.Seq2[dragoman.Event, error] {
	return func(yield func(dragoman.Event, error) bool) {
		resp, err := generate(ctx, req)
		if err != nil {
			yield(nil, err)
			return
		}
		for _, ev := range eventsOf(resp) {
			if !yield(ev, nil) {
				return
			}
		}
	}
}

func eventsOf(resp *dragoman.Response) []dragoman.Event {
	out := []dragoman.Event{&dragoman.ResponseStart{}}
	index := 0
	for i := range resp.Output {
		m := &resp.Output[i]
		for j, p := range m.Parts {
			start := &dragoman.PartStart{Index: index, Message: i, Part: p}
			if j == 0 {
				start.Header = &dragoman.Message{Role: m.Role}
			}
			out = append(out, start)
			if t, ok := p.(*dragoman.Text); ok {
				start.Part = &dragoman.Text{}
				out = append(out, &dragoman.PartDelta{Index: index, Kind: codes.KindText, Text: t.Text})
			}
			out = append(out, &dragoman.PartEnd{Index: index, Part: p})
			index++
		}
	}
	return append(out, &dragoman.ResponseEnd{Stop: resp.Stop, Usage: resp.Usage})
}

func textResponse(text string) *dragoman.Response {
	return &dragoman.Response{
		Output: []dragoman.Message{dragoman.AssistantText(text)}, Stop: dragoman.Stop{Reason: dragoman.StopEnd},
		Usage: dragoman.Usage{Input: dragoman.Counted(10), Output: dragoman.Counted(5)},
	}
}

// calls returns a response with calls, each given as "id name arguments".
func calls(specs ...string) *dragoman.Response {
	m := dragoman.Message{Role: dragoman.RoleAssistant}
	for _, s := range specs {
		id, rest, _ := strings.Cut(s, " ")
		name, args, ok := strings.Cut(rest, " ")
		if !ok {
			args = "{}"
		}
		m.Parts = append(m.Parts, &dragoman.ToolCall{ID: id, Name: name, Arguments: args})
	}
	return &dragoman.Response{
		Output: []dragoman.Message{m}, Stop: dragoman.Stop{Reason: dragoman.StopToolCalls},
		Usage: dragoman.Usage{Input: dragoman.Counted(10), Output: dragoman.Counted(5)},
	}
}

// word is the argument of the tools of these tests.
type word struct {
	Word string `json:"word,omitempty"`
}

// counted makes tools that answer with their name and word, and counts their runs.
type counted struct {
	mu   sync.Mutex
	runs []string
}

func (c *counted) tool(name string, opts ...tool.Option) tool.Tool {
	return tool.New(name, "Does "+name+".", func(_ context.Context, w word) (string, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.runs = append(c.runs, name+":"+w.Word)
		return name + " did " + w.Word, nil
	}, opts...)
}

func (c *counted) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.runs, " ")
}

func failing(name string) tool.Tool {
	return tool.New(name, "Fails.", func(context.Context, word) (string, error) { return "", errors.New("broken") })
}

// is reports whether an error has a type.
func is[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}

// must fails the test on an error.
func must[T any](t *testing.T) func(v T, err error) T {
	t.Helper()
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// script formats a conversation, one message per line.
func script(ms []dragoman.Message) string {
	var b strings.Builder
	for i := range ms {
		fmt.Fprintf(&b, "%s:", ms[i].Role)
		for _, p := range ms[i].Parts {
			switch p := p.(type) {
			case *dragoman.Text:
				fmt.Fprintf(&b, " %q", p.Text)
			case *dragoman.ToolCall:
				fmt.Fprintf(&b, " call %s %s", p.ID, p.Name)
			case *dragoman.ToolResult:
				state := "ok"
				if p.Outcome == codes.OutcomeError {
					state = "error"
				}
				fmt.Fprintf(&b, " result %s %s", p.CallID, state)
			default:
				fmt.Fprintf(&b, " %s", p.Kind())
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// memory is a store in memory.
type memory struct {
	mu       sync.Mutex
	messages []dragoman.Message
	state    []byte
	begun    map[tool.CallRef]*tool.Prior
	saves    int
	fail     error
}

func (m *memory) Load(context.Context) ([]dragoman.Message, []byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]dragoman.Message(nil), m.messages...), m.state, nil
}

func (m *memory) Save(ctx context.Context, ms []dragoman.Message, state []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		return m.fail
	}
	for i := range ms { // encode and decode, as a real store does
		b, err := json.Marshal(ms[i])
		if err != nil {
			return err
		}
		var back dragoman.Message
		if err := json.Unmarshal(b, &back); err != nil {
			return err
		}
		m.messages = append(m.messages, back)
	}
	m.state = state
	m.saves++
	return nil
}

func (m *memory) Begin(_ context.Context, in tool.Intent) (tool.Prior, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.begun == nil {
		m.begun = map[tool.CallRef]*tool.Prior{}
	}
	p := m.begun[in.CallRef]
	if p == nil {
		m.begun[in.CallRef] = &tool.Prior{Attempts: 1, Arguments: in.Arguments}
		return tool.Prior{}, nil
	}
	before := *p
	p.Attempts++
	return before, nil
}

func (m *memory) End(_ context.Context, in tool.Intent, res *dragoman.ToolResult) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.begun[in.CallRef].Result = res
	return nil
}

// stored returns a state that was encoded and decoded, as for another process.
func stored(t *testing.T, s *agent.State) *agent.State {
	t.Helper()
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var out agent.State
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	return &out
}
