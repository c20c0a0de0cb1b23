package history

import (
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
)

// stubDescription is what a model reads of a tool that is declared only because
// the conversation has calls of it.
const stubDescription = "Used earlier in this conversation. Not available now."

// unknownTool is the tool of a call that names none.
const unknownTool = "unknown_tool"

// declare returns the tools that the conversation's calls demand where the
// request declares none that reaches the target, in the order of their first use, and the choice that
// keeps the model from calling them (quirk D21). Nil means that none are needed.
func (n *normaliser) declare() ([]dragoman.ToolSpec, *dragoman.ToolChoice) {
	if !n.limits.ToolsForHistory || n.target.Caps.NoTools {
		return nil, nil
	}
	if slices.ContainsFunc(n.req.Tools, n.reaches) {
		return n.allowNone()
	}
	var tools []dragoman.ToolSpec
	known := map[toolName]bool{}
	for i := range n.ms {
		for _, p := range n.ms[i].Parts {
			c, ok := p.(*dragoman.ToolCall)
			if !ok || c.Hosted || known[toolName{c.Namespace, c.Name}] {
				continue
			}
			known[toolName{c.Namespace, c.Name}] = true
			s := dragoman.ToolSpec{Name: c.Name, Namespace: c.Namespace, Description: stubDescription}
			if c.Payload == codes.PayloadText {
				s.Kind = codes.ToolFreeform
			} else {
				s.Parameters = []byte(`{"type":"object"}`)
			}
			tools = append(tools, s)
		}
	}
	if tools == nil {
		return nil, nil
	}
	n.rep.Addf(dragoman.Synthesized, dragoman.Warn, "/tools", "%d tool(s) of earlier calls declared, because the API requires it; the model may not call them", len(tools))
	return slices.Concat(n.req.Tools, tools), &dragoman.ToolChoice{Mode: dragoman.ChoiceNone}
}

// allowNone keeps the tools of a conversation with calls where the choice allows
// none of those that reach the target: an encoder that can only leave tools out
// would leave out all. Nil means that the choice allows some, or that no calls
// are there.
func (n *normaliser) allowNone() ([]dragoman.ToolSpec, *dragoman.ToolChoice) {
	c := n.req.ToolChoice
	if c == nil || c.Tools == nil || c.Mode != dragoman.ChoiceAuto && c.Mode != dragoman.ChoiceRequired {
		return nil, nil
	}
	called := slices.ContainsFunc(n.ms, func(d draft) bool { return len(d.clientCalls()) > 0 })
	if !called || slices.ContainsFunc(n.req.Tools, func(s dragoman.ToolSpec) bool { return n.reaches(s) && allows(c, &s) }) {
		return nil, nil
	}
	severity := dragoman.Info
	if c.Mode == dragoman.ChoiceRequired {
		severity = dragoman.Serious
	}
	n.rep.Addf(dragoman.Lowered, severity, "/tool_choice", "%s of tools that are not there written as none", c.Mode)
	return n.req.Tools, &dragoman.ToolChoice{Mode: dragoman.ChoiceNone}
}

// allows reports whether a choice among some tools names one.
func allows(c *dragoman.ToolChoice, s *dragoman.ToolSpec) bool {
	return slices.ContainsFunc(c.Tools, func(r dragoman.ToolRef) bool {
		return r.Native == nil && r.Name == s.Name && r.Namespace == s.Namespace
	})
}

// reaches reports whether a tool has a form for the target: one that another
// provider runs has none, nor has one without a name.
func (n *normaliser) reaches(s dragoman.ToolSpec) bool {
	return s.Kind != codes.ToolHosted && s.Name != "" || s.Kind == codes.ToolHosted && s.Source != nil &&
		strings.HasPrefix(string(s.Source.Format), string(n.limits.Dialect)+".")
}

// flatten tells the tool history of a conversation in words, for a model that
// has no tools at all.
func (n *normaliser) flatten() {
	if !n.target.Caps.NoTools {
		return
	}
	for i := range n.ms {
		d := &n.ms[i]
		results := d.hasResults()
		var media []dragoman.Part
		d.edit(func(j int, p dragoman.Part) dragoman.Part {
			switch p := p.(type) {
			case *dragoman.ToolCall:
				if p.Hosted {
					return p
				}
				n.rep.Add(dragoman.Lowered, dragoman.Warn, d.part(j), "the model has no tools; the call is told in words")
				return &dragoman.Text{Text: "[called " + p.QualifiedName() + ": " + p.Arguments + "]"}
			case *dragoman.ToolResult:
				n.rep.Add(dragoman.Lowered, dragoman.Warn, d.part(j), "the model has no tools; the result is told in words")
				for _, c := range p.Content {
					if isMedia(c) {
						media = append(media, c)
					}
				}
				return &dragoman.Text{Text: toldResult(p)}
			default:
				return p
			}
		})
		if results {
			d.Role = dragoman.RoleUser
			if n.limits.NoBlankText {
				n.unblank(d) // the words of a user are held to more than those beside results
			}
		}
		for _, m := range media {
			d.append(m)
		}
	}
}

// toldResult is a result in words.
func toldResult(res *dragoman.ToolResult) string {
	what := "result"
	if res.Outcome == codes.OutcomeError {
		what = "error"
	}
	name := res.Name
	if name != "" && res.Namespace != "" {
		name = res.Namespace + "." + name
	}
	if name != "" {
		what += " of " + name
	}
	return strings.TrimSpace("["+what+": "+res.Text()) + "]"
}
