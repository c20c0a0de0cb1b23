package history

import (
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/targets"
)

// fixRoles gives every message a role that the target accepts at its position.
func (n *normalizer) fixRoles() {
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
			if !n.fromTargetDialect(d) {
				n.rep.Addf(dragoman.Lowered, dragoman.Warn, d.path(), "role %.40q written as user", d.Role)
				d.touch()
				d.Role = dragoman.RoleUser
			}
		}
		leading = false
	}
}

// prune drops or lowers the parts that the target never accepts, or not from
// this origin.
func (n *normalizer) prune() {
	for i := range n.ms {
		d := &n.ms[i]
		n.fields(d)
		records := n.records(d)
		d.edit(func(j int, p dragoman.Part) dragoman.Part {
			switch p := p.(type) {
			case *dragoman.Reasoning:
				if wirekit.VisibleReasoning(p) == "" && records.InCalls(p) {
					return nil
				}
				return n.reasoning(d, j, p)
			case *dragoman.Text:
				if n.foreign(d, p.Signature) || n.unsigned(p) {
					n.rep.Add(dragoman.Dropped, dragoman.Warn, d.part(j)+"/signature", "reasoning state of another provider")
					if p.Text == "" {
						return nil // it only carried the signature (quirk B16)
					}
					bare := *p
					bare.Signature = ""
					return &bare
				}
			case *dragoman.ToolCall:
				return n.call(d, j, records.WithSignature(p))
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
					n.rep.Addf(dragoman.Dropped, dragoman.Serious, d.part(j), "%s of %s is not supported by the target", extra.WithArticle(p.Type), p.Dialect)
					return nil
				case p.Type == "item_reference": // the encoder refuses a reference that the server has not stored
				case !wirekit.MayReplayOpaque(&d.Message, p, &n.limits, &n.target):
					n.rep.Addf(dragoman.Dropped, dragoman.Serious, d.part(j), "%s of another provider", extra.WithArticle(p.Type))
					return nil
				}
			}
			return p
		})
	}
}

// fields drops unknown fields that came from another provider of the same dialect,
// because most servers refuse fields that they do not know. Empty values carry no
// content and stay.
func (n *normalizer) fields(d *draft) {
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

// records returns the call signatures that a router put in its reasoning details (quirk
// B17), if the target accepts signatures. The calls take over the signatures,
// because the reasoning belongs to another origin.
func (n *normalizer) records(d *draft) *wirekit.Records {
	if n.limits.DummySignature == "" || n.target.Caps.NoReasoning || n.fromTargetDialect(d) {
		return nil
	}
	return wirekit.RecordsOf(d.Parts)
}

// foreign reports whether a signature is state that the target did not write.
func (n *normalizer) foreign(d *draft, signature string) bool {
	return signature != "" && (n.limits.DummySignature == "" || signature != n.limits.DummySignature) &&
		!wirekit.MayReplayReasoning(&d.Message, nil, &n.limits, &n.target)
}

// unsigned reports whether a text is blank except for a signature, on a wire without
// text signatures.
func (n *normalizer) unsigned(t *dragoman.Text) bool {
	return t.Signature != "" && n.limits.DummySignature == "" && strings.TrimSpace(t.Text) == ""
}

// call keeps a client's call and drops the state of another provider. A hosted call
// returns only to the provider that ran it (quirk B26).
func (n *normalizer) call(d *draft, j int, c *dragoman.ToolCall) dragoman.Part {
	switch {
	case !d.assistant():
		n.rep.Addf(dragoman.Dropped, dragoman.Serious, d.part(j), "a call of %.80q outside an assistant message", c.Name)
		return nil
	case c.Hosted && !n.fromTargetDialect(d):
		n.rep.Addf(dragoman.Dropped, dragoman.Serious, d.part(j), "call of %.80q was run by its provider", c.Name)
		return nil
	}
	signature, name := c.Signature, c.Name
	if n.foreign(d, signature) {
		n.rep.Add(dragoman.Dropped, dragoman.Warn, d.part(j)+"/signature", "reasoning state of another provider")
		signature = ""
	}
	if name == "" && !c.Hosted { // quirk D15: definition, call and result share a name
		n.rep.Addf(dragoman.Synthesized, dragoman.Warn, d.part(j)+"/name", "a call without a name gets the name %q", unknownTool)
		name = unknownTool
	}
	if signature == c.Signature && name == c.Name {
		return c
	}
	out := *c
	out.Signature, out.Name = signature, name
	return &out
}

// reasoning keeps reasoning only for its origin (quirks D23, D26, D30), and only if
// that accepts it (quirk G9).
func (n *normalizer) reasoning(d *draft, j int, r *dragoman.Reasoning) dragoman.Part {
	caps := n.target.Caps
	seen := wirekit.VisibleReasoning(r)
	why := ""
	switch {
	case !d.assistant():
		why = "reasoning outside an assistant message"
	case caps.NoReasoning:
		why = "the server does not accept reasoning in the history"
	case r.Status != codes.StatusComplete:
		why = "truncated reasoning" // quirk D9
	case caps.ReasoningField != "" && strings.TrimSpace(seen) != "":
		return r // the dialect has a field for its text
	case !wirekit.MayReplayReasoning(&d.Message, r, &n.limits, &n.target):
		why = "reasoning of another origin"
		if n.asText && strings.TrimSpace(seen) != "" {
			n.rep.Add(dragoman.Lowered, dragoman.Warn, d.part(j), "reasoning of another origin written as text")
			return &dragoman.Text{Text: seen}
		}
	case n.limits.SignedReasoning && !signed(r):
		why = "reasoning without a signature"
	default:
		return r
	}
	n.rep.Add(dragoman.Dropped, dragoman.Warn, d.part(j), why)
	return nil
}

// signed reports whether reasoning can prove its origin: by a signature, or as data
// that only its origin can read (quirks D24, G12).
func signed(r *dragoman.Reasoning) bool {
	if r.Redacted {
		return r.Encrypted != ""
	}
	return r.Signature != ""
}

// extractResults moves results out of assistant and system messages, which cannot hold
// them, to a message after them.
func (n *normalizer) extractResults() {
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
		n.rep.Addf(dragoman.Moved, dragoman.Info, d.part(results[0]), "a result moved out of a message with role %s", d.Role)
		if len(rest) > 0 {
			out = append(out, d.take(d.Role, rest))
		}
		extracted := d.take(dragoman.RoleTool, results)
		extracted.clearFields()
		out = append(out, extracted)
	}
	n.ms, n.moved = out, true
}
