package schema

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// errAmbiguous reports that arguments can be read in two ways, and so must not run.
var errAmbiguous = errors.New("schema: the arguments are ambiguous")

// Lowered is a schema in the form that one target accepts. It translates arguments between the
// author's form and the target's.
type Lowered struct {
	// Schema is the schema to send.
	Schema json.RawMessage
	// Report lists the changes.
	Report dragoman.Report
	// Note is text of the root that the target has no field for. Append it to the tool's own
	// description.
	Note string
	// Aliases maps the property names that are sent to the author's names, if they differ.
	Aliases map[string]string

	root *node
	undo undo
}

// Translates reports whether arguments may have to be translated. If false, FromWire and ToWire
// return their input.
func (l *Lowered) Translates() bool { return l != nil && l.root != nil }

// FromWire translates arguments that the target's model wrote into the author's form: names,
// values that were written as strings, and maps that were written as lists. Everything else
// keeps its bytes and its order. Arguments that need no translation are returned unchanged. So
// is text that is not JSON, which validation rejects.
//
// If a property occurs under both its alias and its name, or a map has a duplicate key, the
// error is an [*Error]: such arguments are ambiguous and must not run.
func (l *Lowered) FromWire(args json.RawMessage) (json.RawMessage, error) {
	return l.translate(args, true)
}

// ToWire translates arguments in the author's form into what the target's model would have
// written, for the history. It is the inverse of [Lowered.FromWire].
func (l *Lowered) ToWire(args json.RawMessage) (json.RawMessage, error) {
	return l.translate(args, false)
}

func (l *Lowered) translate(args json.RawMessage, back bool) (json.RawMessage, error) {
	readable := len(args) > 0 && len(args) <= maxArgumentBytes && jsonwire.Check(args) == nil
	if l.root == nil || !readable {
		return args, nil // validation reports the error
	}
	t := translator{undo: &l.undo, back: back}
	var w jsonwire.Writer
	t.value(jsonwire.NewReader(args), &w, []*node{l.root}, "", 0)
	switch {
	case t.err != nil:
		return nil, t.err
	case !t.changed:
		return args, nil
	default:
		return w.Buf, nil
	}
}

// undo holds what is needed to translate arguments.
type undo struct {
	// names maps aliases to names, and wire names to aliases.
	names, wire map[string]string
	// enums holds the values that strings represent.
	enums map[*node][][]byte
	// maps holds the lists that represent maps.
	maps map[*node]bool
}

func (u *undo) empty() bool { return len(u.names) == 0 && len(u.enums) == 0 && len(u.maps) == 0 }

func (u *undo) alias(name, alias string) {
	if u.names == nil {
		u.names, u.wire = map[string]string{}, map[string]string{}
	}
	u.names[alias], u.wire[name] = name, alias
}

func (u *undo) values(n *node, values [][]byte) {
	if u.enums == nil {
		u.enums = map[*node][][]byte{}
	}
	u.enums[n] = values
}

func (u *undo) entries(n *node) {
	if u.maps == nil {
		u.maps = map[*node]bool{}
	}
	u.maps[n] = true
}

// translator copies arguments, guided by the lowered schema.
type translator struct {
	undo *undo
	// back is set for translation from the target's form to the author's.
	back    bool
	changed bool
	err     error
	// index finds properties of objects with many of them.
	index map[*node]map[string]*node
}

// find returns the schema of a property, in time that does not grow with the number of
// properties.
func (t *translator) find(s *node, key string) *node {
	props := s.get(kwProperties)
	if props == nil || props.kind != isMap {
		return nil
	}
	if len(props.fields) < 16 {
		return props.name(key)
	}
	byName := t.index[props]
	if byName == nil {
		byName = make(map[string]*node, len(props.fields))
		for _, m := range props.fields {
			byName[m.key] = m.val
		}
		if t.index == nil {
			t.index = map[*node]map[string]*node{}
		}
		t.index[props] = byName
	}
	return byName[key]
}

// forPropertySchemas calls f for each schema that may apply to a property.
func (t *translator) forPropertySchemas(s *node, key string, f func(*node)) {
	if p := t.find(s, key); p != nil && p.kind == isSchema {
		f(p)
	}
	for _, m := range s.fields {
		switch {
		case m.kw == kwPatternProperties && m.val.kind == isMap:
			m.val.entries(f)
		case m.kw == kwAdditionalProperties && m.val.kind == isSchema:
			f(m.val)
		}
	}
}

func (t *translator) ambiguous(at, reason string) {
	if t.err == nil {
		t.err = &Error{Pointer: at, Reason: reason, Err: errAmbiguous}
	}
}

// value copies one value to which all of the schemas apply.
func (t *translator) value(r *jsonwire.Reader, w *jsonwire.Writer, schemas []*node, at string, depth int) {
	schemas = applicable(schemas)
	k := r.Kind()
	switch {
	case len(schemas) == 0 || depth > maxArgumentDepth || t.err != nil:
		w.Raw(r.Raw())
	case k == '{':
		t.object(r, w, schemas, at, depth)
	case k == '[':
		t.array(r, w, schemas, at, depth)
	default:
		w.Raw(t.scalar(r.Raw(), schemas))
	}
}

// scalar converts a value to the string that represents it, or back.
func (t *translator) scalar(raw []byte, schemas []*node) []byte {
	for _, s := range schemas {
		for _, v := range t.undo.enums[s] {
			switch {
			case isText(v):
			case t.back && string(quoted(string(v))) == string(raw) && !t.acceptsAsString(raw, schemas):
				t.changed = true
				return v
			case !t.back && string(v) == string(raw):
				t.changed = true
				return quoted(string(v))
			}
		}
	}
	return raw
}

func (t *translator) acceptsAsString(raw []byte, schemas []*node) bool {
	return slices.ContainsFunc(schemas, func(s *node) bool {
		if !s.hasType("string") || t.undo.enums[s] != nil {
			return false
		}
		e := s.get(kwEnum)
		return e == nil || slices.ContainsFunc(elements(e), func(v []byte) bool { return string(v) == string(raw) })
	})
}

// property returns the name to write for a field, and its name on the wire.
func (t *translator) property(key string, schemas []*node) (write, wire string) {
	if t.back {
		if name, ok := t.undo.names[key]; ok && t.declares(schemas, key) {
			return name, key
		}
	} else if alias, ok := t.undo.wire[key]; ok && t.declares(schemas, alias) {
		return alias, alias
	}
	return key, key
}

func (t *translator) declares(schemas []*node, key string) bool {
	return slices.ContainsFunc(schemas, func(s *node) bool { return t.find(s, key) != nil })
}

func (t *translator) object(r *jsonwire.Reader, w *jsonwire.Writer, schemas []*node, at string, depth int) {
	if m := t.mapOf(schemas); m != nil && !t.back && !slices.ContainsFunc(schemas, func(s *node) bool { return s.hasType("object") }) {
		t.toEntries(r, w, m, at, depth)
		return
	}
	written := map[string]bool{}
	w.BeginObject()
	for key := range r.Object() {
		name := string(key)
		write, wire := t.property(name, schemas)
		if written[write] {
			t.ambiguous(at, "the property "+strconv.Quote(cut(write, 80))+" occurs here under two names")
		}
		written[write] = true
		t.changed = t.changed || write != name
		var below []*node
		for _, s := range schemas {
			t.forPropertySchemas(s, wire, func(n *node) { below = append(below, n) })
		}
		w.QuotedKey(write)
		t.value(r, w, below, at+"/"+escapeToken(name), depth+1)
	}
	w.EndObject()
}

func (t *translator) array(r *jsonwire.Reader, w *jsonwire.Writer, schemas []*node, at string, depth int) {
	if m := t.mapOf(schemas); m != nil && t.back {
		raw := r.Raw()
		if list, ok := readEntries(raw); ok {
			t.fromEntries(list, w, m, at, depth)
			return
		}
		r = jsonwire.NewReader(raw)
	}
	var below []*node
	for _, s := range schemas {
		s.forItem(func(n *node) { below = append(below, n) })
	}
	i := 0
	w.BeginArray()
	for range r.Array() {
		t.value(r, w, below, at+"/"+strconv.Itoa(i), depth+1)
		i++
	}
	w.EndArray()
}

// mapOf returns the schema of a list that represents a map.
func (t *translator) mapOf(schemas []*node) *node {
	for _, s := range schemas {
		if t.undo.maps[s] {
			return s
		}
	}
	return nil
}

// entryValues returns the schemas of the values of a map.
func entryValues(m *node) []*node {
	if items := m.get(kwItems); items != nil {
		if props := items.get(kwProperties); props != nil && props.kind == isMap {
			if v := props.name(entryValue); v != nil && v.kind == isSchema {
				return []*node{v}
			}
		}
	}
	return nil
}

func (t *translator) toEntries(r *jsonwire.Reader, w *jsonwire.Writer, m *node, at string, depth int) {
	t.changed = true
	values := entryValues(m)
	w.BeginArray()
	for key := range r.Object() {
		name := string(key)
		w.BeginObject()
		w.StringField(entryKey, name)
		w.Key(entryValue)
		t.value(r, w, values, at+"/"+escapeToken(name), depth+1)
		w.EndObject()
	}
	w.EndArray()
}

// entry is one entry of a map that was written as a list.
type entry struct {
	key   string
	value []byte
}

// readEntries reads a list of entries; false if it is not one.
func readEntries(raw []byte) ([]entry, bool) {
	var out []entry
	ok := true
	r := jsonwire.NewReader(raw)
	for range r.Array() {
		if r.Kind() != '{' {
			return nil, false
		}
		var e entry
		keys := 0
		for key := range r.Object() {
			switch name := string(key); {
			case name == entryKey && r.Kind() == '"':
				e.key = r.String()
				keys++
			case name == entryValue:
				e.value = r.Raw()
			default:
				r.Skip()
				ok = false
			}
		}
		ok = ok && keys == 1 && e.value != nil
		out = append(out, e)
	}
	return out, ok && r.End() == nil
}

func (t *translator) fromEntries(list []entry, w *jsonwire.Writer, m *node, at string, depth int) {
	t.changed = true
	values := entryValues(m)
	written := map[string]bool{}
	w.BeginObject()
	for _, e := range list {
		if written[e.key] {
			t.ambiguous(at, "the map has the key "+strconv.Quote(cut(e.key, 80))+" twice")
		}
		written[e.key] = true
		w.QuotedKey(e.key)
		t.value(jsonwire.NewReader(e.value), w, values, at+"/"+escapeToken(e.key), depth+1)
	}
	w.EndObject()
}
