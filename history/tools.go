package history

import (
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/textkit"
)

// stubDescription describes a tool that is declared only because the conversation has
// calls of it.
const stubDescription = "Used earlier in this conversation. Not available now."

// unknownTool is the name given to a call without one.
const unknownTool = "unknown_tool"

// declareTools returns declarations for the tools of earlier calls, in order of first use,
// and a choice that forbids them, if the target requires declarations and the
// request declares no tool that the target can get (quirk D21). Otherwise it returns
// nil.
func (n *normalizer) declareTools() ([]dragoman.ToolSpec, *dragoman.ToolChoice) {
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
	n.rep.Addf(dragoman.Synthesized, dragoman.Warn, "/tools", "%s of earlier calls declared, because the API requires it; the model may not call them", textkit.Count(len(tools), "tool"))
	return slices.Concat(n.req.Tools, tools), &dragoman.ToolChoice{Mode: dragoman.ChoiceNone}
}

// allowNone keeps the declared tools of a conversation with calls if the tool choice
// allows none of the tools that the target can get: an encoder that can only omit tools
// would omit all of them. Nil means that the choice allows some, or that there are no
// calls.
func (n *normalizer) allowNone() ([]dragoman.ToolSpec, *dragoman.ToolChoice) {
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
	n.rep.Addf(dragoman.Lowered, severity, "/tool_choice", "%s of tools that are not sent written as none", c.Mode)
	return n.req.Tools, &dragoman.ToolChoice{Mode: dragoman.ChoiceNone}
}

// allows reports whether a choice names the tool.
func allows(c *dragoman.ToolChoice, s *dragoman.ToolSpec) bool {
	return slices.ContainsFunc(c.Tools, func(r dragoman.ToolRef) bool {
		return r.Native == nil && r.Name == s.Name && r.Namespace == s.Namespace
	})
}

// reaches reports whether the target can get a tool. It cannot get a tool that another
// provider runs, or one without a name.
func (n *normalizer) reaches(s dragoman.ToolSpec) bool {
	return s.Kind != codes.ToolHosted && s.Name != "" || s.Kind == codes.ToolHosted && s.Source != nil &&
		strings.HasPrefix(string(s.Source.Format), string(n.limits.Dialect)+".")
}

// flattenTools writes the calls and results of a conversation as text, for a model
// without tool support.
func (n *normalizer) flattenTools() {
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
				n.rep.Add(dragoman.Lowered, dragoman.Warn, d.part(j), "the model does not support tools; the call is written as text")
				return &dragoman.Text{Text: "[called " + p.QualifiedName() + ": " + p.Arguments + "]"}
			case *dragoman.ToolResult:
				n.rep.Add(dragoman.Lowered, dragoman.Warn, d.part(j), "the model does not support tools; the result is written as text")
				for _, c := range p.Content {
					if isMedia(c) {
						media = append(media, c)
					}
				}
				return &dragoman.Text{Text: resultAsText(p)}
			default:
				return p
			}
		})
		if results {
			d.Role = dragoman.RoleUser
			if n.limits.NoBlankText {
				n.dropBlankText(d) // blank text is refused in user messages, not next to results
			}
		}
		for _, m := range media {
			d.append(m)
		}
	}
}

// resultAsText returns a result as text.
func resultAsText(res *dragoman.ToolResult) string {
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
