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
	"github.com/dragoman-go/dragoman/internal/codec/stopreason"
)

// ErrNoTurn says that no turn of a scenario answers a request.
var ErrNoTurn = errors.New("sim: no turn of the scenario answers")

// Scenario answers as a script says. Make one with [ParseScenario]; the package
// comment describes the script. It keeps no state: which turn answers follows
// from the request alone, so that one scenario serves any number of
// conversations at once.
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
	return actor{name: "sim/scenario", settings: s.Settings, answer: s.play}
}

// turn is one answer of a script, and when it is given.
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
	// text has to be contained, in letters of any case; nil pattern.
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

// play finds the turn that answers, and gives its answer.
func (s *Scenario) play(req *dragoman.Request, m mint) (answer, error) {
	n := turnOf(req)
	for i := range s.turns {
		if t := &s.turns[i]; t.answers(req, i, n) {
			return t.answer(req, m)
		}
	}
	return answer{}, &dragoman.APIError{
		Class: dragoman.ErrorBadRequest, Err: ErrNoTurn,
		Message: fmt.Sprintf("no turn of %s answers: it is turn %d of the conversation, and what was heard last is %.80q; there are %s",
			s.name, n, lastHeard(req), s.titles()),
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

// turnOf says which turn of the model's a request asks for, from 1.
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

// answers reports whether a turn, the i-th of its script, answers a request that
// asks for turn n.
func (t *turn) answers(req *dragoman.Request, i, n int) bool {
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
		return m.finds(exchangeOf(req).prompt)
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

// lastResults are the results at the end of a conversation. Some dialects have a message
// for each.
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

// systemText is what the system said, wherever it did.
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

// answer is a turn's, with the ids that its calls get.
func (t *turn) answer(req *dragoman.Request, m mint) (answer, error) {
	if t.err != nil && len(t.parts) == 0 {
		e := *t.err
		return answer{}, &e
	}
	a := answer{usage: t.usage, pace: t.pace, broken: t.err, stop: dragoman.Stop{Reason: t.stop}}
	calls := 0
	for _, p := range t.parts {
		switch p := p.(type) {
		case *dragoman.ToolCall:
			c := *p
			c.ID = m.id("call", calls)
			calls++
			speakTo(req, &c)
			a.parts = append(a.parts, &c)
		case *dragoman.Reasoning:
			a.parts = append(a.parts, mintReasoning(req, m, p.Text))
		default:
			a.parts = append(a.parts, p)
		}
	}
	if a.stop.Reason == dragoman.StopNone {
		a.stop.Reason = stopreason.Derive(dragoman.StopEnd, calls, true)
	}
	if !a.stop.Reason.Runs() {
		forbid(a.parts, a.stop.Reason)
	}
	return a, nil
}

// forbid marks the calls of an answer after whose end nothing runs.
func forbid(parts []dragoman.Part, why dragoman.StopReason) {
	for i, p := range parts {
		if c, ok := p.(*dragoman.ToolCall); ok {
			barred := *c
			barred.Problem = &dragoman.CallProblem{Code: codes.ProblemStopped, Message: "the answer ended with " + string(why), Offset: -1}
			if why == dragoman.StopLength {
				barred.Problem.Code = codes.ProblemTruncated
			}
			parts[i] = &barred
		}
	}
}

// speakTo addresses a call to the tool of a request that the script names: by its
// qualified name, or, where the dialect has no namespaces, by that with two underscores.
// The input of a freeform tool is the only text of a function where the dialect has
// functions alone. One script so serves clients of every dialect.
func speakTo(req *dragoman.Request, c *dragoman.ToolCall) {
	flat := strings.Replace(c.Name, ".", "__", 1)
	for _, name := range []string{c.Name, flat} {
		for i := range req.Tools {
			t := &req.Tools[i]
			if t.QualifiedName() != name {
				continue
			}
			c.Namespace, c.Name = t.Namespace, t.Name
			if member := onlyText(t); c.Payload == codes.PayloadText && member != "" {
				b, _ := json.Marshal(map[string]string{member: c.Arguments}) // strings cannot fail
				c.Arguments, c.Payload = string(b), codes.PayloadObject
			}
			return
		}
	}
}

// onlyText is the name of the member of a function that has one, which is a text.
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
