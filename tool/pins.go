package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// Pins are the accepted definitions of tools, as a lock file:
//
//	pins := box.Pins()                            // accept the current definitions
//	b, err := json.MarshalIndent(pins, "", "  ")  // commit b
//
//	runner := &tool.Runner{Pins: pins}            // a changed tool needs approval
//	for _, c := range pins.Check(box) { … }       // or fail a test
//
// A [Runner] with Pins asks for approval before it calls a tool that is not pinned or
// whose definition changed, whatever the policy allows: the approver sees which fields
// changed. Accept pins the new definition. Handoffs and the tools that an agent adds by
// itself are not checked.
//
// The JSON depends neither on the order of tools nor on white space in schemas. Pins are
// safe for concurrent use.
type Pins struct {
	mu    sync.RWMutex
	tools map[string]pinned
}

// pinned is a definition by field: each as compact JSON, and only those that are set.
type pinned map[string]json.RawMessage

// The kinds of difference.
const (
	pinNew     = "new"
	pinChanged = "changed"
	pinRemoved = "removed"
)

// PinChange is a tool that differs from its pin, or from the tool that approval was
// requested for.
type PinChange struct {
	// Tool is the approval key of the tool: its qualified name, with a mark before it if
	// the tool is deferred.
	Tool string `json:"tool"`
	// Kind is "new", "changed" or "removed"; "changed_while_pending" is a tool that changed
	// after approval of a call was requested, and Fields lists the differences since then.
	Kind string `json:"kind"`
	// Fields lists the changed fields, sorted by name. It is empty if the tool is new or
	// removed, or if its earlier definition is unknown.
	Fields []FieldChange `json:"fields,omitempty"`
}

// FieldChange is one field of a definition that changed.
type FieldChange struct {
	// Field is "kind", "description", "namespace_description", "parameters", "grammar",
	// "strict", "deferred", "output_schema", "examples", "annotations", "source",
	// "extra" or "namespace_extra".
	Field string `json:"field"`
	// Old and New are the old and the new value as JSON; nil means no value.
	Old json.RawMessage `json:"was,omitempty"`
	New json.RawMessage `json:"is,omitempty"`
}

// String describes the change in one line.
func (c PinChange) String() string {
	switch c.Kind {
	case pinNew:
		return c.Tool + " is not pinned"
	case pinRemoved:
		return c.Tool + " is pinned, but not in the toolbox"
	}
	text := c.Tool + " changed since it was pinned"
	if c.Kind == codes.ChangedWhilePending {
		text = c.Tool + " changed since approval was requested"
	}
	names := make([]string, len(c.Fields))
	for i, f := range c.Fields {
		names[i] = f.Field
	}
	if len(names) > 0 {
		text += ": " + strings.Join(names, ", ")
	}
	return text
}

// pinnable reports whether a tool can be pinned: tools of the program and of servers can,
// tools that an agent makes cannot.
func (e *entry) pinnable() bool {
	return e.settings.Source != codes.FromHandoff && e.settings.Source != codes.FromAgent && !e.settings.ReadsOutput
}

// pin returns the definition of a tool by field.
func (e *entry) pin() pinned {
	e.pinOnce.Do(func() { e.pinned = pinOf(e.spec) })
	return e.pinned
}

func pinOf(s *dragoman.ToolSpec) pinned {
	p := pinned{}
	value := func(field string, v any) {
		b, err := encodeJSON(v)
		if err != nil {
			b, _ = encodeJSON(fmt.Sprint(v))
		}
		p[field] = b
	}
	text := func(field, v string) {
		if v != "" {
			value(field, v)
		}
	}
	raw := func(field string, v json.RawMessage) {
		if len(v) == 0 {
			return
		}
		if b, err := normalJSON(v); err == nil {
			p[field] = b
		} else {
			text(field, string(v))
		}
	}
	text("kind", s.Kind)
	text("description", s.Description)
	text("namespace_description", s.NamespaceDescription)
	raw("parameters", s.Parameters)
	if s.Grammar != nil {
		value("grammar", map[string]string{"syntax": s.Grammar.Syntax, "definition": s.Grammar.Definition})
	}
	text("strict", s.Strict)
	if s.Deferred {
		value("deferred", true)
	}
	raw("output_schema", s.OutputSchema)
	if len(s.Examples) > 0 {
		value("examples", s.Examples)
	}
	if s.Annotations != (dragoman.Annotations{}) {
		value("annotations", annotationsOf(s.Annotations))
	}
	if s.Source != nil {
		value("source", map[string]any{"format": s.Source.Format, "json": s.Source.JSON})
	}
	if s.Extra != nil {
		value("extra", s.Extra)
	}
	if s.NamespaceExtra != nil {
		value("namespace_extra", s.NamespaceExtra)
	}
	for field, v := range p {
		if b, err := normalJSON(v); err == nil {
			p[field] = b
		}
	}
	return p
}

// normalJSON returns a JSON value in one spelling: without white space, and with strings
// escaped as little as JSON allows. Object keys keep their order, numbers their text.
func normalJSON(raw json.RawMessage) (json.RawMessage, error) {
	r := jsonwire.NewReader(raw)
	var w jsonwire.Writer
	normalize(r, &w)
	return w.Buf, errors.Join(r.End(), w.Err())
}

func normalize(r *jsonwire.Reader, w *jsonwire.Writer) {
	switch r.Kind() {
	case '{':
		w.BeginObject()
		for key := range r.Object() {
			w.QuotedKey(string(key))
			normalize(r, w)
		}
		w.EndObject()
	case '[':
		w.BeginArray()
		for range r.Array() {
			normalize(r, w)
		}
		w.EndArray()
	case '"':
		w.String(r.String())
	default:
		w.Raw(r.Raw())
	}
}

// annotationsOf are the hints that are set.
func annotationsOf(a dragoman.Annotations) map[string]any {
	out := map[string]any{}
	if a.Title != "" {
		out["title"] = a.Title
	}
	for name, hint := range map[string]*bool{"read_only": a.ReadOnly, "destructive": a.Destructive, "idempotent": a.Idempotent, "open_world": a.OpenWorld} {
		if hint != nil {
			out[name] = *hint
		}
	}
	return out
}

// Pins returns the current definitions of all tools of the toolbox.
func (b *Box) Pins() *Pins {
	p := &Pins{}
	_ = p.Accept(b) // it fails on names only
	return p
}

// Accept pins the current definitions of the tools with these approval keys, or without
// keys, of all tools of the toolbox. If the toolbox lacks one of the keys, Accept returns
// an error and pins nothing.
func (p *Pins) Accept(b *Box, tools ...string) error {
	accepted := map[string]pinned{}
	if b != nil {
		for _, e := range b.entries {
			key := e.key.ApprovalKey()
			if e.pinnable() && (len(tools) == 0 || slices.Contains(tools, key)) {
				accepted[key] = e.pin()
			}
		}
	}
	for _, key := range tools {
		if accepted[key] == nil {
			return fmt.Errorf("tool: pins: the toolbox has no tool %q to pin", key)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tools == nil {
		p.tools = map[string]pinned{}
	}
	maps.Copy(p.tools, accepted)
	return nil
}

// Check compares a toolbox with the pins: the tools that are new or changed, in the
// order of the toolbox, then those that were removed, by name. Nil means that nothing
// changed.
func (p *Pins) Check(b *Box) []PinChange {
	var out []PinChange
	seen := map[string]bool{}
	if b != nil {
		for _, e := range b.entries {
			seen[e.key.ApprovalKey()] = true
			if c := p.check(e); c != nil {
				out = append(out, *c)
			}
		}
	}
	p.mu.RLock()
	defer p.mu.RUnlock()
	for _, key := range slices.Sorted(maps.Keys(p.tools)) {
		if !seen[key] {
			out = append(out, PinChange{Tool: key, Kind: pinRemoved})
		}
	}
	return out
}

// check compares a tool with its pin; nil means that it did not change.
func (p *Pins) check(e *entry) *PinChange {
	if !e.pinnable() {
		return nil
	}
	key, is := e.key.ApprovalKey(), e.pin()
	p.mu.RLock()
	was, ok := p.tools[key]
	p.mu.RUnlock()
	if !ok {
		return &PinChange{Tool: key, Kind: pinNew}
	}
	if fields := difference(was, is); fields != nil {
		return &PinChange{Tool: key, Kind: pinChanged, Fields: fields}
	}
	return nil
}

// difference returns the fields in which two definitions differ, sorted by name.
func difference(was, is pinned) (out []FieldChange) {
	fields := maps.Clone(was)
	maps.Copy(fields, is)
	for _, f := range slices.Sorted(maps.Keys(fields)) {
		if !bytes.Equal(was[f], is[f]) {
			out = append(out, FieldChange{Field: f, Old: was[f], New: is[f]})
		}
	}
	return out
}

// pinsVersion is the version of the JSON format.
const pinsVersion = 1

type pinsJSON struct {
	Version int       `json:"version"`
	Tools   []pinJSON `json:"tools"`
}

type pinJSON struct {
	Tool       string `json:"tool"`
	Definition pinned `json:"definition"`
}

// MarshalJSON writes the pins, sorted by tool and field.
func (p *Pins) MarshalJSON() ([]byte, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	out := pinsJSON{Version: pinsVersion, Tools: []pinJSON{}}
	for _, key := range slices.Sorted(maps.Keys(p.tools)) {
		out.Tools = append(out.Tools, pinJSON{key, p.tools[key]})
	}
	return encodeJSON(out)
}

// UnmarshalJSON reads what MarshalJSON wrote. Unknown fields, a newer version and a tool
// that is pinned twice are errors: a pin that is not read would not be checked.
func (p *Pins) UnmarshalJSON(b []byte) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	var in pinsJSON
	if err := d.Decode(&in); err != nil {
		return fmt.Errorf("tool: pins: %w", err)
	}
	if in.Version != pinsVersion {
		return fmt.Errorf("tool: pins: unknown version %d: this program reads version %d; update it, or make the file again with Box.Pins", in.Version, pinsVersion)
	}
	tools := map[string]pinned{}
	for i, t := range in.Tools {
		switch {
		case t.Tool == "":
			return fmt.Errorf("tool: pins: tools[%d].tool is missing", i)
		case tools[t.Tool] != nil:
			return fmt.Errorf("tool: pins: %q is pinned twice", t.Tool)
		case t.Definition == nil:
			return fmt.Errorf("tool: pins: the definition of %q is missing", t.Tool)
		}
		for f, v := range t.Definition {
			b, err := normalJSON(v)
			if err != nil {
				return fmt.Errorf("tool: pins: %q: %s: %w", t.Tool, f, err)
			}
			t.Definition[f] = b
		}
		tools[t.Tool] = t.Definition
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tools = tools
	return nil
}
