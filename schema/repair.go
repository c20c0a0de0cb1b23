package schema

import (
	"slices"
	"strconv"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// repair makes n and everything below it valid JSON Schema 2020-12, whatever
// the target: values of the wrong shape, type names of other languages,
// spellings of older drafts and of OpenAPI.
func (l *lowerer) repair(n *node) {
	if n.kind != isSchema {
		return
	}
	l.repairBounds(n)
	// Iterate over a copy, because repairs add and remove fields.
	for _, m := range slices.Clone(n.fields) {
		l.repairField(n, m)
	}
	l.repairTuple(n)
	if v := n.get(kwNullable); v != nil {
		l.repairNullable(n, v)
	}
	l.liftRequired(n)
	n.children(l.repair)
}

func (l *lowerer) repairField(n *node, m field) {
	v := m.val
	switch keywords[m.kw].shape {
	case shapeString:
		if _, ok := v.str(); !ok {
			l.dropMalformed(n, m, "a string")
		}
	case shapeBool:
		switch s, _ := v.str(); {
		case v.kind == isData && (string(v.raw) == "true" || string(v.raw) == "false"):
		case s == "true", s == "false":
			l.addLossf(dragoman.Lowered, dragoman.Info, v, "%s was a string; converted", m.key)
			n.set(m.kw, data(s).at(v))
		default:
			l.dropMalformed(n, m, "a boolean")
		}
	case shapeNumber, shapeCount:
		l.repairNumber(n, m)
	case shapeType:
		l.repairType(n, v)
	case shapeEnum:
		l.repairEnum(n, v)
	case shapeStrings:
		l.repairRequired(n, m)
	case shapeValues:
		switch v.raw[0] {
		case '[':
		case 'n':
			l.dropMalformed(n, m, "a list of values")
		default:
			l.addLossf(dragoman.Lowered, dragoman.Info, v, "%s was a single value; it is now a list", m.key)
			n.set(m.kw, arrayOf([][]byte{v.raw}).at(v))
		}
	case shapeNames:
		l.repairNames(n, m)
	case shapeObject:
		if v.raw[0] != '{' {
			l.dropMalformed(n, m, "an object")
		}
	case shapeSchema:
		l.repairSchema(n, m)
	case shapeItems:
		if v.kind != isList {
			l.repairSchema(n, m)
		}
	case shapeList:
		l.repairList(n, m)
	case shapeMap, shapeDeps:
		l.repairMap(n, m)
	}
}

func (l *lowerer) dropMalformed(n *node, m field, want string) {
	sev := dragoman.Warn
	if string(m.val.raw) == "null" {
		sev = dragoman.Info
	}
	l.addLossf(dragoman.Dropped, sev, m.val, "%s must be %s", m.key, want)
	n.del(m.kw)
}

// repairNumber converts a number in a string to a number (quirk A21).
func (l *lowerer) repairNumber(n *node, m field) {
	count := keywords[m.kw].shape == shapeCount
	raw := m.val.raw
	if s, ok := m.val.str(); ok {
		if s = strings.TrimSpace(s); isNumber(s) {
			raw = []byte(s)
		}
	}
	switch {
	case !isNumber(string(raw)), count && !isCount(raw), m.kw == kwMultipleOf && !isPositive(raw):
		want := "a number"
		if count {
			want = "a non-negative integer"
		}
		l.dropMalformed(n, m, want)
	case &raw[0] != &m.val.raw[0]:
		l.addLossf(dragoman.Lowered, dragoman.Info, m.val, "%s was a string; converted", m.key)
		n.set(m.kw, (&node{raw: raw}).at(m.val))
	}
}

func isNumber(s string) bool {
	return s != "" && (s[0] == '-' || s[0] >= '0' && s[0] <= '9') && jsonwire.CheckText(s) == nil && strings.TrimSpace(s) == s
}

// isCount reports whether raw is a whole number that is not negative.
func isCount(raw []byte) bool {
	if raw[0] == '-' {
		return string(raw) == "-0"
	}
	for i, c := range raw {
		if c == '.' {
			return strings.Trim(string(raw[i+1:]), "0") == ""
		}
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

func isPositive(raw []byte) bool {
	return raw[0] != '-' && strings.ContainsAny(strings.SplitN(strings.ToLower(string(raw)), "e", 2)[0], "123456789")
}

// repairBounds writes draft-04's boolean exclusive bounds as the numbers they
// became.
func (l *lowerer) repairBounds(n *node) {
	for _, pair := range [...][2]keyword{{kwExclusiveMinimum, kwMinimum}, {kwExclusiveMaximum, kwMaximum}} {
		v, bound := n.get(pair[0]), n.get(pair[1])
		if v == nil || v.kind != isData {
			continue
		}
		switch string(v.raw) {
		case "true":
			if bound == nil {
				l.addLossf(dragoman.Dropped, dragoman.Warn, v, "%s without %s", keywords[pair[0]].name, keywords[pair[1]].name)
				n.del(pair[0])
				continue
			}
			l.addLossf(dragoman.Lowered, dragoman.Info, v, "%s is a number since draft-06", keywords[pair[0]].name)
			n.set(pair[0], bound)
			n.del(pair[1])
		case "false":
			l.addLossf(dragoman.Dropped, dragoman.Info, v, "%s is a number since draft-06", keywords[pair[0]].name)
			n.del(pair[0])
		}
	}
}

func (l *lowerer) repairEnum(n *node, v *node) {
	switch v.raw[0] {
	case '[':
	case '{', 'n':
		l.dropMalformed(n, field{"enum", kwEnum, v}, "a list of values")
		return
	default:
		l.addLoss(dragoman.Lowered, dragoman.Info, v, "enum was a single value; it is now a list")
		n.set(kwEnum, arrayOf([][]byte{v.raw}).at(v))
		return
	}
	values := elements(v)
	kept := unique(values)
	switch {
	case len(kept) == 0:
		l.addLoss(dragoman.Dropped, dragoman.Warn, v, "enum is empty")
		n.del(kwEnum)
	case len(kept) < len(values):
		l.addLoss(dragoman.Lowered, dragoman.Info, v, "enum listed a value twice")
		n.set(kwEnum, arrayOf(kept).at(v))
	}
}

// unique removes duplicates of the same text, keeping the first.
func unique(values [][]byte) [][]byte {
	if len(values) <= fewTexts && distinct(values) {
		return values
	}
	seen := make(map[string]bool, len(values))
	var out [][]byte
	for _, v := range values {
		if !seen[string(v)] {
			seen[string(v)] = true
			out = append(out, v)
		}
	}
	return out
}

// repairRequired makes required, and propertyOrdering, a list of names.
func (l *lowerer) repairRequired(n *node, m field) {
	v := m.val
	if s, ok := v.str(); ok {
		l.addLossf(dragoman.Lowered, dragoman.Info, v, "%s was a single name; it is now a list", m.key)
		n.set(m.kw, stringsOf([]string{s}).at(v))
		return
	}
	if v.raw[0] != '[' {
		flag := m.kw == kwRequired && (v.raw[0] == 't' || v.raw[0] == 'f') // liftRequired reads those
		if !flag {
			l.dropMalformed(n, m, "a list of names")
		}
		return
	}
	values := elements(v)
	names := slices.DeleteFunc(slices.Clone(values), func(e []byte) bool { return e[0] != '"' })
	kept := unique(names)
	if len(kept) < len(values) {
		l.addLossf(dragoman.Lowered, dragoman.Info, v, "%s must be a list of distinct names; other values are removed", m.key)
		n.set(m.kw, arrayOf(kept).at(v))
	}
}

// repairNames keeps the entries of dependentRequired that are lists of names.
func (l *lowerer) repairNames(n *node, m field) {
	if m.val.raw[0] != '{' {
		l.dropMalformed(n, m, "an object of lists of names")
		return
	}
	var w jsonwire.Writer
	bad := false
	r := jsonwire.NewReader(m.val.raw)
	w.BeginObject()
	for key := range r.Object() {
		name := string(key)
		raw := r.Raw()
		if !isNames(raw) {
			bad = true
			continue
		}
		w.QuotedKey(name)
		w.Raw(raw)
	}
	w.EndObject()
	if bad {
		l.addLossf(dragoman.Lowered, dragoman.Warn, m.val, "%s must contain lists of names; other values are removed", m.key)
		n.set(m.kw, (&node{raw: w.Buf}).at(m.val))
	}
}

// isNames reports whether raw is a list of distinct strings.
func isNames(raw []byte) bool {
	if raw[0] != '[' {
		return false
	}
	values := elements(&node{raw: raw})
	return len(unique(values)) == len(values) && !slices.ContainsFunc(values, func(v []byte) bool { return v[0] != '"' })
}

// liftRequired moves draft-03's "required": true from a property to the list
// of its object.
func (l *lowerer) liftRequired(n *node) {
	props := n.get(kwProperties)
	if props != nil && props.kind == isMap {
		for _, p := range props.fields {
			v := p.val.get(kwRequired)
			if v == nil || v.kind != isData || string(v.raw) != "true" {
				continue
			}
			l.addLoss(dragoman.Moved, dragoman.Info, v, "required: true moved to the object's list of required names")
			p.val.del(kwRequired)
			names := n.required()
			if !slices.Contains(names, p.key) {
				names = append(names, p.key)
			}
			if r := n.get(kwRequired); r == nil || len(r.raw) > 0 && r.raw[0] == '[' {
				n.set(kwRequired, stringsOf(names))
			}
		}
	}
	if v := n.get(kwRequired); v != nil && v.raw[0] != '[' {
		// A property's flag is lifted by its object before it comes here.
		l.dropMalformed(n, field{"required", kwRequired, v}, "a list of names")
	}
}

// required returns the names a schema requires.
func (n *node) required() []string {
	v := n.get(kwRequired)
	if v == nil || len(v.raw) == 0 || v.raw[0] != '[' {
		return nil
	}
	var out []string
	for _, e := range elements(v) {
		if s, ok := (&node{raw: e}).str(); ok {
			out = append(out, s)
		}
	}
	return out
}

// asSchema reads a value in the position of a schema. The name of a type alone is a common
// shorthand.
func (l *lowerer) asSchema(v *node) (*node, bool) {
	if v.kind != isData {
		return v, true
	}
	n := (&node{kind: isSchema}).at(v)
	if s, ok := v.str(); ok {
		if t, known := typeWord(s); known && t != "" {
			l.addLossf(dragoman.Lowered, dragoman.Info, v, "%.60q is read as a schema of that type", s)
			n.set(kwType, dataString(t))
			return n, true
		}
	}
	return n, false
}

func (l *lowerer) repairSchema(n *node, m field) {
	s, ok := l.asSchema(m.val)
	if !ok {
		l.dropMalformed(n, m, "a schema")
		return
	}
	n.set(m.kw, s)
}

func (l *lowerer) repairList(n *node, m field) {
	v := m.val
	if v.kind != isList {
		if v.raw[0] != '{' {
			l.dropMalformed(n, m, "a list of schemas")
			return
		}
		sub, _, err := parse(v.raw, maxSchemaNodes)
		if err != nil {
			l.dropMalformed(n, m, "a list of schemas")
			return
		}
		l.addLossf(dragoman.Lowered, dragoman.Info, v, "%s was a single schema; it is now a list", m.key)
		v = (&node{kind: isList, list: []*node{sub.at(v)}}).at(v)
		n.set(m.kw, v)
	}
	var keep []*node
	for _, e := range v.list {
		if s, ok := l.asSchema(e); ok {
			keep = append(keep, s)
		} else {
			l.addLossf(dragoman.Dropped, dragoman.Warn, e, "%s contains a value that is not a schema", m.key)
		}
	}
	v.list = keep
	if len(keep) == 0 {
		l.dropMalformed(n, m, "a non-empty list of schemas")
	}
}

func (l *lowerer) repairMap(n *node, m field) {
	v := m.val
	if v.kind != isMap {
		// PHP servers write an empty object as [], others as null.
		if text := string(v.raw); m.kw == kwProperties && (text == "null" || text == "[]") {
			l.addLossf(dragoman.Lowered, dragoman.Info, v, "properties was %s; it is now an object", text)
			n.set(kwProperties, (&node{kind: isMap}).at(v))
			return
		}
		l.dropMalformed(n, m, "an object of schemas")
		return
	}
	keep := v.fields[:0]
	for _, e := range v.fields {
		if m.kw == kwDependencies && e.val.kind == isData && isNames(e.val.raw) {
			keep = append(keep, e)
			continue
		}
		s, ok := l.asSchema(e.val)
		if !ok {
			l.addLossf(dragoman.Lowered, dragoman.Warn, e.val, "%.60q is not a schema; any value is accepted", e.key)
		}
		e.val = s
		keep = append(keep, e)
	}
	v.fields = keep
}

// repairTuple renames a list in items to prefixItems, its name in draft 2020-12 (quirk A15).
func (l *lowerer) repairTuple(n *node) {
	v := n.get(kwItems)
	if v == nil || v.kind != isList {
		return
	}
	l.addLoss(dragoman.Renamed, dragoman.Info, v, "a list of items is prefixItems in draft 2020-12")
	n.del(kwItems)
	if s := l.root.get(kwSchema); s != nil {
		l.addLoss(dragoman.Dropped, dragoman.Info, s, "the schema no longer follows the draft it named")
		l.root.del(kwSchema)
	}
	list := v.list[:0]
	for _, e := range v.list {
		s, _ := l.asSchema(e)
		list = append(list, s)
	}
	v.list = list
	if len(v.list) > 0 && !n.has(kwPrefixItems) {
		n.set(kwPrefixItems, v)
	}
	if rest := n.get(kwAdditionalItems); rest != nil {
		n.del(kwAdditionalItems)
		n.set(kwItems, rest)
	}
}

// repairNullable converts OpenAPI's nullable to JSON Schema (quirk A9).
func (l *lowerer) repairNullable(n *node, v *node) {
	if l.p.nullableFlag {
		return // the target's own spelling
	}
	n.del(kwNullable)
	if string(v.raw) != "true" {
		l.addLoss(dragoman.Dropped, dragoman.Info, v, "nullable: false has no effect in JSON Schema")
		return
	}
	l.addLoss(dragoman.Lowered, dragoman.Info, v, "nullable becomes the type null")
	// References are not bound yet, so null is added next to one.
	if n.has(kwRef) {
		l.wrapAnyOf(n)
		u := n.get(kwAnyOf)
		u.list = append(u.list, nullSchema(n))
		return
	}
	l.admitNull(n)
}

func itoa(i int) string { return strconv.Itoa(i) }
