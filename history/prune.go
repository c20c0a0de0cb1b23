package history

import (
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/targets"
)

// roles gives every message a role that the target knows at its place.
func (n *normaliser) roles() {
	leading := true
	for i := range n.ms {
		d := &n.ms[i]
		switch d.Role {
		case dragoman.RoleSystem, dragoman.RoleDeveloper:
			if !leading && n.limits.NoMidSystem && !n.target.Caps.MidSystem {
				n.rep.Addf(dragoman.Lowered, dragoman.Warn, d.path(), "a %s message inside the conversation written as user text", d.Role)
				d.touch()
				d.Role = dragoman.RoleUser
			}
			continue
		case dragoman.RoleUser, dragoman.RoleAssistant, dragoman.RoleTool:
		default:
			if !n.own(d) {
				n.rep.Addf(dragoman.Lowered, dragoman.Warn, d.path(), "role %.40q written as user", d.Role)
				d.touch()
				d.Role = dragoman.RoleUser
			}
		}
		leading = false
	}
}

// prune leaves out, or lowers, the parts that this target takes from nobody or
// not from this origin.
func (n *normaliser) prune() {
	for i := range n.ms {
		d := &n.ms[i]
		n.fields(d)
		records := n.records(d)
		d.edit(func(j int, p dragoman.Part) dragoman.Part {
			switch p := p.(type) {
			case *dragoman.Reasoning:
				if visible(p) == "" && records.Carried(p) {
					return nil
				}
				return n.reasoning(d, j, p)
			case *dragoman.Text:
				if n.foreign(d, p.Signature) || n.unsigned(p) {
					n.rep.Add(dragoman.Dropped, dragoman.Warn, d.part(j)+"/signature", "state of another provider's reasoning")
					if p.Text == "" {
						return nil // it was there to carry the signature (quirk B16)
					}
					bare := *p
					bare.Signature = ""
					return &bare
				}
			case *dragoman.ToolCall:
				return n.call(d, j, records.Carry(p))
			case *dragoman.ToolResult:
				return n.resultMedia(d, j, p)
			case *dragoman.Media:
				return n.media(d, j, p)
			case *dragoman.Refusal:
				if !d.assistant() {
					n.rep.Addf(dragoman.Lowered, dragoman.Info, d.part(j), "a refusal in a message of role %s written as text", d.Role)
					return &dragoman.Text{Text: p.Text}
				}
			case *dragoman.Opaque:
				switch {
				case p.Dialect != n.limits.Dialect:
					n.rep.Addf(dragoman.Dropped, dragoman.Serious, d.part(j), "%s of %s has no place here", extra.A(p.Type), p.Dialect)
					return nil
				case p.Type == "item_reference": // the encoder refuses one that the server has not stored
				case !wirekit.MayReplayOpaque(&d.Message, p, &n.limits, &n.target):
					n.rep.Addf(dragoman.Dropped, dragoman.Serious, d.part(j), "%s of another provider", extra.A(p.Type))
					return nil
				}
			}
			return p
		})
	}
}

// fields drops unknown fields that came from another provider of the same dialect. Most
// servers refuse fields that they do not know. Empty values carry no content and stay.
func (n *normaliser) fields(d *draft) {
	if d.Origin == nil || d.Extra.For(n.limits.Dialect) == nil || targets.MatchProvider.Allows(d.Origin, n.target.Origin()) {
		return
	}
	var kept []dragoman.Field
	for _, f := range d.Extra.Fields {
		switch string(f.Value) {
		case "null", `""`, "[]", "{}":
			kept = append(kept, f)
		default:
			n.rep.Add(dragoman.Dropped, dragoman.Info, d.path()+f.Path, "a field of another provider's message")
		}
	}
	if len(kept) == len(d.Extra.Fields) {
		return
	}
	d.touch()
	if d.Extra = nil; kept != nil {
		d.Extra = &dragoman.Extra{Dialect: n.limits.Dialect, Fields: kept}
	}
}

// records are the signatures that reasoning of a router has of the calls of a
// message (quirk B17), where the target takes such. The calls carry them on: the
// reasoning is another origin's.
func (n *normaliser) records(d *draft) *wirekit.Records {
	if n.limits.DummySignature == "" || n.target.Caps.NoReasoning || n.own(d) {
		return nil
	}
	return wirekit.RecordsOf(d.Parts)
}

// foreign reports whether a signature is state that this target did not write.
func (n *normaliser) foreign(d *draft, signature string) bool {
	return signature != "" && (n.limits.DummySignature == "" || signature != n.limits.DummySignature) &&
		!wirekit.MayReplayReasoning(&d.Message, nil, &n.limits, &n.target)
}

// unsigned reports whether a text says nothing but for a signature, of which the
// wire has none on texts.
func (n *normaliser) unsigned(t *dragoman.Text) bool {
	return t.Signature != "" && n.limits.DummySignature == "" && strings.TrimSpace(t.Text) == ""
}

// call lets a client's call pass, without the state of another provider; one
// that a provider ran goes back to that provider only (quirk B26).
func (n *normaliser) call(d *draft, j int, c *dragoman.ToolCall) dragoman.Part {
	switch {
	case !d.assistant():
		n.rep.Addf(dragoman.Dropped, dragoman.Serious, d.part(j), "a call of %.80q outside an assistant message", c.Name)
		return nil
	case c.Hosted && !n.own(d):
		n.rep.Addf(dragoman.Dropped, dragoman.Serious, d.part(j), "call of %.80q was run by its provider", c.Name)
		return nil
	}
	signature, name := c.Signature, c.Name
	if n.foreign(d, signature) {
		n.rep.Add(dragoman.Dropped, dragoman.Warn, d.part(j)+"/signature", "state of another provider's reasoning")
		signature = ""
	}
	if name == "" && !c.Hosted { // quirk D15: definition, call and result have one name
		n.rep.Addf(dragoman.Synthesized, dragoman.Warn, d.part(j)+"/name", "a call without a name; %q written", unknownTool)
		name = unknownTool
	}
	if signature == c.Signature && name == c.Name {
		return c
	}
	out := *c
	out.Signature, out.Name = signature, name
	return &out
}

// reasoning lets a model's thinking back to its origin only (quirks D23, D26,
// D30), and only where it takes any (quirk G9).
func (n *normaliser) reasoning(d *draft, j int, r *dragoman.Reasoning) dragoman.Part {
	caps := n.target.Caps
	seen := visible(r)
	why := ""
	switch {
	case !d.assistant():
		why = "reasoning outside an assistant message"
	case caps.NoReasoning:
		why = "the server takes no reasoning back"
	case r.Status != codes.StatusComplete:
		why = "reasoning that was cut off" // quirk D9
	case caps.ReasoningField != "" && strings.TrimSpace(seen) != "":
		return r // its text has a place
	case !wirekit.MayReplayReasoning(&d.Message, r, &n.limits, &n.target):
		why = "reasoning of another origin"
		if n.asText && strings.TrimSpace(seen) != "" {
			n.rep.Add(dragoman.Lowered, dragoman.Warn, d.part(j), "reasoning of another origin written as text")
			return &dragoman.Text{Text: seen}
		}
	case n.limits.SignedReasoning && !signed(r):
		why = "reasoning without its signature"
	default:
		return r
	}
	n.rep.Add(dragoman.Dropped, dragoman.Warn, d.part(j), why)
	return nil
}

// signed reports whether reasoning can prove where it is from: by signature,
// or as something only its origin can read (quirks D24, G12).
func signed(r *dragoman.Reasoning) bool {
	if r.Redacted {
		return r.Encrypted != ""
	}
	return r.Signature != ""
}

func visible(r *dragoman.Reasoning) string {
	if r.Text != "" {
		return r.Text
	}
	return strings.Join(r.Summary, "\n\n")
}

// unmix takes results out of messages that cannot hold any, those of the
// assistant and of the system, and puts them behind.
func (n *normaliser) unmix() {
	misplaced := func(d *draft) bool { return (d.assistant() || d.system()) && d.hasResults() }
	found := false
	for i := range n.ms {
		found = found || misplaced(&n.ms[i])
	}
	if !found {
		return
	}
	var out []draft
	for i := range n.ms {
		d := n.ms[i]
		if !misplaced(&d) {
			out = append(out, d)
			continue
		}
		results, rest := d.results()
		n.rep.Addf(dragoman.Moved, dragoman.Info, d.part(results[0]), "a result taken out of a message of role %s", d.Role)
		if len(rest) > 0 {
			out = append(out, d.take(d.Role, rest))
		}
		answers := d.take(dragoman.RoleTool, results)
		answers.bare()
		out = append(out, answers)
	}
	n.ms, n.moved = out, true
}
