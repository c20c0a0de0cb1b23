package sim

import (
	"context"
	"iter"
	"regexp"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
)

// Planner picks tools by what the user said and fills their arguments from it,
// and from their schemas. It is deterministic, and it is no judge of models: it
// is there so that programs can be tried and tested without one.
//
// A tool is called where words of the prompt are words of its name, its
// description or its parameters; each part of the prompt that speaks of another
// tool, and each value of a list ("Oslo, Bergen and Paris"), is a call of its
// own. Arguments are the values in the prompt that fit: what is named ("limit
// 5"), words of an enum, what is in quotes, numbers, addresses, paths, and words
// with capital letters. What must be there and was not said is made up, by what the
// schema says and by what its descriptions tell in its stead ("(format: date)").
// Arguments are always valid against the tool's schema; a tool for which no valid ones are
// found is not called, and the answer says so. The input of a freeform tool is of
// its grammar where an example of that can be found. A deferred tool is called
// like any other, as if a search had found it, but never as a fallback. The tool
// read_tool_output is called only if the conversation mentions it.
//
// Once the calls have their results, failed or not, the planner answers with a
// text that tells them, or with the structured output that was asked for: it
// never asks for the same thing twice. The zero value is ready.
type Planner struct{ Settings }

var _ dragoman.Model = Planner{}

// Generate implements [dragoman.Model].
func (p Planner) Generate(ctx context.Context, req *dragoman.Request) (*dragoman.Response, error) {
	return p.actor().generate(ctx, req)
}

// Stream implements [dragoman.Model].
func (p Planner) Stream(ctx context.Context, req *dragoman.Request) iter.Seq2[dragoman.Event, error] {
	return p.actor().stream(ctx, req)
}

// String returns the model's name, "sim/planner".
func (p Planner) String() string { return p.actor().name }

func (p Planner) actor() actor { return actor{name: "sim/planner", settings: p.Settings, answer: plan} }

// plan makes the answer of a planner.
func plan(req *dragoman.Request, m mint) (answer, error) {
	ex := exchangeOf(req)
	calls, unfilled := wanted(req, ex)
	calls = ex.open(calls)
	if req.ParallelToolCalls != nil && !*req.ParallelToolCalls && len(calls) > 1 {
		calls = calls[:1]
	}
	var a answer
	if thinks(req) {
		a.parts = append(a.parts, mintReasoning(req, m, thought(ex, calls)))
	}
	if len(calls) > 0 {
		for i, c := range calls {
			c.ID = m.id("call", i)
			a.parts = append(a.parts, c)
		}
		a.stop = dragoman.Stop{Reason: dragoman.StopToolCalls}
		return a, nil
	}
	text, err := reply(req, ex, unfilled)
	if err != nil {
		return a, err
	}
	a.parts = append(a.parts, &dragoman.Text{Text: text})
	a.stop = dragoman.Stop{Reason: dragoman.StopEnd}
	return a, nil
}

// thinks reports whether the request asks for reasoning.
func thinks(req *dragoman.Request) bool {
	r := req.Reasoning
	return r != nil && r.Mode != codes.ReasoningOff && r.Effort != "none"
}

// mintReasoning is a thought with the opaque state that replays it: a signature,
// and what only its origin can read where the request asks for that.
func mintReasoning(req *dragoman.Request, m mint, text string) *dragoman.Reasoning {
	r := &dragoman.Reasoning{Text: text, Signature: m.opaque("sig", len(text))}
	if s := req.Reasoning; s != nil && s.Encrypted != nil && *s.Encrypted {
		r.Encrypted = m.opaque("enc", len(text))
	}
	return r
}

func thought(ex exchange, calls []*dragoman.ToolCall) string {
	var names []string
	for _, c := range calls {
		names = append(names, c.QualifiedName())
	}
	switch {
	case len(names) > 0:
		return "The user wants something that tools can do: " + strings.Join(names, ", ") + "."
	case len(ex.results) > 0:
		return "The results are here, so that the answer can be given."
	default:
		return "No tool is needed for this."
	}
}

// exchange is what happened since the user last said something.
type exchange struct {
	prompt  string
	calls   []*dragoman.ToolCall
	results []*dragoman.ToolResult
}

// maxPrompt bounds how much of a prompt is looked at.
const maxPrompt = 8 << 10

// exchangeOf finds the user's last words and what the model made of them so far. What agent
// programs put before them between tags is not what the user said.
// A text beside results is what clients add to them, and no new prompt.
func exchangeOf(req *dragoman.Request) exchange {
	var ex exchange
	for i := range req.Messages {
		m := &req.Messages[i]
		results := resultsOf(m)
		switch {
		case m.Role == dragoman.RoleAssistant:
			ex.calls = append(ex.calls, m.ToolCalls()...)
		case len(results) > 0:
			ex.results = append(ex.results, results...)
		case m.Role == dragoman.RoleUser:
			ex = exchange{prompt: head(spoken(m.Text()), maxPrompt)}
		}
	}
	return ex
}

// contextTag begins what a program adds to the user's words: <system-reminder>,
// <environment_context>. Tags of one word are the user's own.
var contextTag = regexp.MustCompile(`^<([A-Za-z]+(?:[_-][A-Za-z]+)+)>`)

// spoken is what the user said, without what the program has put before it between tags.
func spoken(text string) string {
	rest := strings.TrimSpace(text)
	for {
		m := contextTag.FindStringSubmatch(rest)
		if m == nil {
			break
		}
		_, behind, ok := strings.Cut(rest, "</"+m[1]+">")
		if !ok {
			break
		}
		rest = strings.TrimSpace(behind)
	}
	if len(rest) > 2 && rest[0] == '"' && strings.IndexByte(rest[1:], '"') == len(rest)-2 {
		rest = rest[1 : len(rest)-1] // opencode quotes all of it
	}
	if rest == "" {
		return text
	}
	return rest
}

func resultsOf(m *dragoman.Message) []*dragoman.ToolResult {
	var out []*dragoman.ToolResult
	for _, p := range m.Parts {
		if r, ok := p.(*dragoman.ToolResult); ok && r != nil {
			out = append(out, r)
		}
	}
	return out
}

// maxCalls bounds the calls of one exchange.
const maxCalls = 16

// open are the calls that were not made yet. They are told apart by their tool
// alone: who changed the arguments of a call, or its id, has still answered it.
func (ex exchange) open(calls []*dragoman.ToolCall) []*dragoman.ToolCall {
	made := map[string]int{}
	for _, c := range ex.calls {
		made[c.QualifiedName()]++
	}
	if len(ex.calls) >= maxCalls {
		return nil
	}
	return slices.DeleteFunc(calls, func(c *dragoman.ToolCall) bool {
		made[c.QualifiedName()]--
		return made[c.QualifiedName()] >= 0
	})
}

// nameOf is the tool that a result came from.
func (ex exchange) nameOf(r *dragoman.ToolResult) string {
	for _, c := range ex.calls {
		if c.ID == r.CallID && c.ID != "" {
			return c.QualifiedName()
		}
	}
	if r.Name != "" {
		return r.Name
	}
	return "the tool"
}
