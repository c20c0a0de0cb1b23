package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/turnrules"
)

// ErrNoTurn reports that no turn of a scenario matches a request.
var ErrNoTurn = errors.New("sim: no turn of the scenario matches")

// Scenario is a model that plays a script. Create one with [ParseScenario]; the package
// comment describes the script. A Scenario has no state: the request alone determines the
// turn, so one scenario serves any number of conversations concurrently.
type Scenario struct {
	Settings
	name  string
	turns []turn
}

var _ dragoman.Model = (*Scenario)(nil)

// Generate implements [dragoman.Model].
func (s *Scenario) Generate(ctx context.Context, req *dragoman.Request) (*dragoman.Response, error) {
	return s.actor().generate(ctx, req)
}

// Stream implements [dragoman.Model].
func (s *Scenario) Stream(ctx context.Context, req *dragoman.Request) iter.Seq2[dragoman.Event, error] {
	return s.actor().stream(ctx, req)
}

// String returns the model's name, "sim/scenario".
func (s *Scenario) String() string { return s.actor().name }

func (s *Scenario) actor() actor {
	return actor{name: "sim/scenario", settings: s.Settings, respond: s.play}
}

// turn is one response of a script, with its conditions.
type turn struct {
	title   string
	matches []matcher
	parts   []dragoman.Part
	stop    dragoman.StopReason
	usage   dragoman.Usage
	pace    Pace
	err     *dragoman.APIError
}

// matcher is a condition on a request.
type matcher struct {
	what matchKind
	// text must be contained, ignoring case, if pattern is nil.
	text    string
	pattern *regexp.Regexp
	number  int
}

type matchKind string

const (
	matchAny    matchKind = "any"
	matchUser   matchKind = "user"
	matchSystem matchKind = "system"
	matchResult matchKind = "result"
	matchTool   matchKind = "tool"
	matchModel  matchKind = "model"
	matchTurn   matchKind = "turn"
)

// play finds the first turn that matches, and returns its response.
func (s *Scenario) play(req *dragoman.Request, m idGenerator) (response, error) {
	n := turnOf(req)
	for i := range s.turns {
		if t := &s.turns[i]; t.applies(req, i, n) {
			return t.respond(req, m)
		}
	}
	return response{}, &dragoman.APIError{
		Class: dragoman.ErrorBadRequest, Err: ErrNoTurn,
		Message: fmt.Sprintf("no turn of %s matches: this is turn %d of the conversation, and the last message is %.80q; the script has %s",
			s.name, n, lastInput(req), s.titles()),
	}
}

func (s *Scenario) titles() string {
	const most = 20
	var out []string
	for i, t := range s.turns[:min(len(s.turns), most)] {
		out = append(out, strings.TrimSpace(fmt.Sprintf("turn %d %.80s", i+1, t.title)))
	}
	if more := len(s.turns) - most; more > 0 {
		out = append(out, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(out, ", ")
}

// turnOf returns the number of the model's turn that a request asks for, from 1.
func turnOf(req *dragoman.Request) int {
	n, speaking := 1, false
	for i := range req.Messages {
		assistant := req.Messages[i].Role == dragoman.RoleAssistant
		if assistant && !speaking {
			n++
		}
		speaking = assistant
	}
	return n
}

// applies reports whether a turn, the i-th of its script, matches a request for turn n.
func (t *turn) applies(req *dragoman.Request, i, n int) bool {
	if len(t.matches) == 0 {
		return n == i+1
	}
	return !slices.ContainsFunc(t.matches, func(m matcher) bool { return !m.holds(req, n) })
}

func (m matcher) holds(req *dragoman.Request, n int) bool {
	switch m.what {
	case matchAny:
		return true
	case matchTurn:
		return n == m.number
	case matchUser:
		return m.finds(userTurnOf(req).prompt)
	case matchModel:
		return m.finds(req.Model)
	case matchSystem:
		return m.finds(systemText(req))
	case matchTool:
		return slices.ContainsFunc(req.Tools, func(t dragoman.ToolSpec) bool { return m.finds(t.QualifiedName()) })
	case matchResult:
		return slices.ContainsFunc(lastResults(req), func(r *dragoman.ToolResult) bool { return m.finds(r.Text()) })
	default:
		return false
	}
}

// lastResults returns the results at the end of a conversation. Some dialects have a message
// for each result.
func lastResults(req *dragoman.Request) (out []*dragoman.ToolResult) {
	for _, m := range slices.Backward(req.Messages) {
		results := resultsOf(&m)
		if len(results) == 0 {
			break
		}
		out = append(out, results...)
	}
	return out
}

func (m matcher) finds(text string) bool {
	if m.pattern != nil {
		return m.pattern.MatchString(text)
	}
	return strings.Contains(strings.ToLower(text), strings.ToLower(m.text))
}

// systemText returns all system text of a request.
func systemText(req *dragoman.Request) string {
	var b strings.Builder
	instructions := dragoman.Message{Parts: req.Instructions}
	b.WriteString(instructions.Text())
	for i := range req.Messages {
		if m := &req.Messages[i]; m.Role == dragoman.RoleSystem || m.Role == dragoman.RoleDeveloper {
			b.WriteString("\n" + m.Text())
		}
	}
	return b.String()
}

// respond returns the response of a turn, with ids for its calls.
func (t *turn) respond(req *dragoman.Request, m idGenerator) (response, error) {
	if t.err != nil && len(t.parts) == 0 {
		e := *t.err
		return response{}, &e
	}
	a := response{usage: t.usage, pace: t.pace, truncated: t.err, stop: dragoman.Stop{Reason: t.stop}}
	calls := 0
	for _, p := range t.parts {
		switch p := p.(type) {
		case *dragoman.ToolCall:
			c := *p
			c.ID = m.id("call", calls)
			calls++
			resolveCall(req, &c)
			a.parts = append(a.parts, &c)
		case *dragoman.Reasoning:
			a.parts = append(a.parts, mintReasoning(req, m, p.Text))
		default:
			a.parts = append(a.parts, p)
		}
	}
	if a.stop.Reason == dragoman.StopNone {
		a.stop.Reason = turnrules.StopReason(dragoman.StopEnd, calls, true)
	}
	if !a.stop.Reason.Runs() {
		blockCalls(a.parts, a.stop.Reason)
	}
	return a, nil
}

// blockCalls marks the calls of a response whose stop reason forbids running them.
func blockCalls(parts []dragoman.Part, why dragoman.StopReason) {
	for i, p := range parts {
		if c, ok := p.(*dragoman.ToolCall); ok {
			blockedCall := *c
			blockedCall.Problem = &dragoman.CallProblem{Code: codes.ProblemStopped, Message: "the response ended with " + string(why), Offset: -1}
			if why == dragoman.StopLength {
				blockedCall.Problem.Code = codes.ProblemTruncated
			}
			parts[i] = &blockedCall
		}
	}
}

// resolveCall directs a call to the tool of a request that the script names: by its qualified
// name or, in a dialect without namespaces, by the name with two underscores. In a dialect
// without freeform tools, the input becomes the only text parameter of a function. So one
// script works for clients of every dialect.
func resolveCall(req *dragoman.Request, c *dragoman.ToolCall) {
	flat := strings.Replace(c.Name, ".", "__", 1)
	for _, name := range []string{c.Name, flat} {
		for i := range req.Tools {
			t := &req.Tools[i]
			if t.QualifiedName() != name {
				continue
			}
			c.Namespace, c.Name = t.Namespace, t.Name
			if field := onlyText(t); c.Payload == codes.PayloadText && field != "" {
				b, _ := json.Marshal(map[string]string{field: c.Arguments}) // marshaling strings cannot fail
				c.Arguments, c.Payload = string(b), codes.PayloadObject
			}
			return
		}
	}
}

// onlyText returns the name of the only parameter of a function, if it is a text.
func onlyText(t *dragoman.ToolSpec) string {
	if t.Kind != codes.ToolFunction {
		return ""
	}
	root, err := parseTree(t.Parameters)
	if err != nil {
		return ""
	}
	properties := objectAt(flattener{root: root}.flat(root), "properties")
	if properties == nil || len(properties.keys) != 1 || at(properties.get(properties.keys[0]), "type") != any("string") {
		return ""
	}
	return properties.keys[0]
}
