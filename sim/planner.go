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

// Planner is a deterministic model that picks tools by the words of the prompt and fills in
// their arguments. It is for trying out and testing programs without a real model.
//
// The planner calls a tool if words of the prompt occur in the tool's name, description or
// parameters. Each part of the prompt that mentions another tool, and each value of a list
// ("Oslo, Bergen and Paris"), is a separate call. Tools that require the same parameter share
// its value ("the weather and the time in Oslo").
//
// Arguments are the values in the prompt that fit: named values ("limit 5"), words of an
// enum, quoted text, numbers, addresses, paths, and capitalized words. The planner makes up
// required values that the prompt does not have, from the schema and from notes in its
// descriptions ("(format: date)"). Arguments are always valid for the tool's schema. If the
// planner finds no valid arguments, it does not call the tool, and the response says so. The
// input of a freeform tool matches its grammar if an example of the grammar can be found.
//
// A deferred tool is called like any other, as if a search had found it, but never as a
// fallback. The tool read_tool_output is called only if the conversation mentions it.
//
// Once the calls have results, successful or not, the planner responds with a text that
// reports them, or with the requested structured output. It never makes the same call twice.
// The zero value is ready to use.
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

func (p Planner) actor() actor {
	return actor{name: "sim/planner", settings: p.Settings, respond: plan}
}

// plan makes the response of a planner.
func plan(req *dragoman.Request, m idGenerator) (response, error) {
	turn := userTurnOf(req)
	calls, unfilled := wanted(req, turn)
	calls = turn.open(calls)
	if req.ParallelToolCalls != nil && !*req.ParallelToolCalls && len(calls) > 1 {
		calls = calls[:1]
	}
	var a response
	if thinks(req) {
		a.parts = append(a.parts, mintReasoning(req, m, thought(turn, calls)))
	}
	if len(calls) > 0 {
		for i, c := range calls {
			c.ID = m.id("call", i)
			a.parts = append(a.parts, c)
		}
		a.stop = dragoman.Stop{Reason: dragoman.StopToolCalls}
		return a, nil
	}
	text, err := reply(req, turn, unfilled)
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

// mintReasoning returns reasoning with the opaque state to replay it: a signature, and
// encrypted content if the request asks for it.
func mintReasoning(req *dragoman.Request, m idGenerator, text string) *dragoman.Reasoning {
	r := &dragoman.Reasoning{Text: text, Signature: m.opaque("sig", len(text))}
	if s := req.Reasoning; s != nil && s.Encrypted != nil && *s.Encrypted {
		r.Encrypted = m.opaque("enc", len(text))
	}
	return r
}

func thought(turn userTurn, calls []*dragoman.ToolCall) string {
	var names []string
	for _, c := range calls {
		names = append(names, c.QualifiedName())
	}
	switch {
	case len(names) > 0:
		return "The user wants something that tools can do: " + strings.Join(names, ", ") + "."
	case len(turn.results) > 0:
		return "The results are here, so that the answer can be given."
	default:
		return "No tool is needed for this."
	}
}

// userTurn holds what happened since the last user message.
type userTurn struct {
	prompt  string
	calls   []*dragoman.ToolCall
	results []*dragoman.ToolResult
}

// maxPrompt limits how many bytes of a prompt are analyzed.
const maxPrompt = 8 << 10

// userTurnOf finds the last user message and the calls and results after it. Text in a
// message with tool results is an addition of the client, not a new prompt.
func userTurnOf(req *dragoman.Request) userTurn {
	var turn userTurn
	for i := range req.Messages {
		m := &req.Messages[i]
		results := resultsOf(m)
		switch {
		case m.Role == dragoman.RoleAssistant:
			turn.calls = append(turn.calls, m.ToolCalls()...)
		case len(results) > 0:
			turn.results = append(turn.results, results...)
		case m.Role == dragoman.RoleUser:
			turn = userTurn{prompt: head(userText(m.Text()), maxPrompt)}
		}
	}
	return turn
}

// contextTag matches the start of context that an agent program puts before the user's text:
// <system-reminder>, <environment_context>. Tags of one word belong to the user's text.
var contextTag = regexp.MustCompile(`^<([A-Za-z]+(?:[_-][A-Za-z]+)+)>`)

// userText returns the user's own text, without the tagged context before it.
func userText(text string) string {
	rest := strings.TrimSpace(text)
	for {
		m := contextTag.FindStringSubmatch(rest)
		if m == nil {
			break
		}
		_, after, ok := strings.Cut(rest, "</"+m[1]+">")
		if !ok {
			break
		}
		rest = strings.TrimSpace(after)
	}
	if len(rest) > 2 && rest[0] == '"' && strings.IndexByte(rest[1:], '"') == len(rest)-2 {
		rest = rest[1 : len(rest)-1] // opencode puts quotes around the whole prompt
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

// maxCalls limits the calls of one user turn.
const maxCalls = 16

// open returns the calls that were not made yet. It compares only tool names: a client may
// have changed the arguments or the id of a call that it answered.
func (turn userTurn) open(calls []*dragoman.ToolCall) []*dragoman.ToolCall {
	made := map[string]int{}
	for _, c := range turn.calls {
		made[c.QualifiedName()]++
	}
	if len(turn.calls) >= maxCalls {
		return nil
	}
	return slices.DeleteFunc(calls, func(c *dragoman.ToolCall) bool {
		made[c.QualifiedName()]--
		return made[c.QualifiedName()] >= 0
	})
}

// nameOf returns the name of the tool that a result is from.
func (turn userTurn) nameOf(r *dragoman.ToolResult) string {
	for _, c := range turn.calls {
		if c.ID == r.CallID && c.ID != "" {
			return c.QualifiedName()
		}
	}
	if r.Name != "" {
		return r.Name
	}
	return "the tool"
}
