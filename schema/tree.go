package schema

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

type nodeKind uint8

const (
	// isData holds JSON text that is not walked.
	isData nodeKind = iota
	// isBool is the schema true or false.
	isBool
	// isSchema is an object of keywords.
	isSchema
	// isMap maps names to schemas (properties, $defs).
	isMap
	// isList lists schemas (anyOf, prefixItems).
	isList
)

// node is a part of a schema, in order. Nodes are changed in place, so that a reference keeps
// pointing to its target.
type node struct {
	kind nodeKind
	// bound reports that the references of self are bound.
	bound  bool
	raw    []byte // isData, isBool
	fields []field
	list   []*node
	// ref is the target of $ref, if it can be resolved.
	ref *node
	// parent and token locate the node in the source; copies and wrappers keep the position of
	// their original.
	parent *node
	token  string

	// seen is the last pass that visited self: a copy is another node, which no pass has
	// visited.
	self *node
	seen *pass
}

// bind records that the references of a node are bound; isBound reports whether they are.
func (n *node) bind()         { n.bound, n.self = true, n }
func (n *node) isBound() bool { return n.bound && n.self == n }

// pass is one traversal of the nodes of a document.
type pass struct{ _ byte }

// first reports whether a pass visits a node for the first time.
func (p *pass) first(n *node) bool {
	if n.seen == p && n.self == n {
		return false
	}
	if n.self != n {
		n.self, n.bound = n, false
	}
	n.seen = p
	return true
}

type field struct {
	key string
	kw  keyword
	val *node
}

func data(text string) *node       { return &node{raw: []byte(text)} }
func dataString(s string) *node    { return &node{raw: quoted(s)} }
func quoted(s string) []byte       { b, _ := jsontext.AppendQuote(nil, s); return b }
func (n *node) isTrue() bool       { return n.kind == isBool && n.raw[0] == 't' }
func (n *node) isFalse() bool      { return n.kind == isBool && n.raw[0] == 'f' }
func (n *node) empty() bool        { return n.kind == isSchema && len(n.fields) == 0 }
func (n *node) anything() bool     { return n.isTrue() || n.empty() }
func (n *node) has(k keyword) bool { return n.get(k) != nil }

// at gives a new node the position of the one it replaces.
func (n *node) at(src *node) *node {
	n.parent, n.token = src.parent, src.token
	return n
}

func (n *node) get(k keyword) *node {
	for i := range n.fields {
		if n.fields[i].kw == k {
			return n.fields[i].val
		}
	}
	return nil
}

// set replaces a keyword's value, or appends it.
func (n *node) set(k keyword, v *node) {
	if v.parent == nil {
		v.parent, v.token = n, keywords[k].name
	}
	for i := range n.fields {
		if n.fields[i].kw == k {
			n.fields[i].val = v
			return
		}
	}
	n.fields = append(n.fields, field{keywords[k].name, k, v})
}

func (n *node) setFirst(k keyword, v *node) {
	if n.has(k) {
		n.set(k, v)
		return
	}
	if v.parent == nil {
		v.parent, v.token = n, keywords[k].name
	}
	n.fields = slices.Insert(n.fields, 0, field{keywords[k].name, k, v})
}

// del does not change the old list of fields: a caller may be iterating over it.
func (n *node) del(k keyword) {
	if n.has(k) {
		n.fields = slices.DeleteFunc(slices.Clone(n.fields), func(m field) bool { return m.kw == k })
	}
}

// name finds an entry of a map of schemas.
func (n *node) name(key string) *node {
	for i := range n.fields {
		if n.fields[i].key == key {
			return n.fields[i].val
		}
	}
	return nil
}

// str returns the text of a JSON string.
func (n *node) str() (string, bool) {
	if n == nil || n.kind != isData || len(n.raw) < 2 || n.raw[0] != '"' {
		return "", false
	}
	if inner := n.raw[1 : len(n.raw)-1]; bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner) {
		return string(inner), true
	}
	b, err := jsontext.AppendUnquote(nil, n.raw)
	if err != nil && b == nil {
		return "", false
	}
	return string(b), true
}

// pointer returns the JSON pointer of the node in the source.
func (n *node) pointer() string {
	tokens := make([]string, 0, 24)
	for at := n; at != nil && at.parent != nil && len(tokens) <= 2*maxSchemaDepth; at = at.parent {
		tokens = append(tokens, at.token)
	}
	size := 0
	for _, t := range tokens {
		size += 1 + len(t)
	}
	var b strings.Builder
	b.Grow(size)
	for _, t := range slices.Backward(tokens) {
		b.WriteByte('/')
		b.WriteString(escapeToken(t))
	}
	return b.String()
}

func escapeToken(t string) string {
	if !strings.ContainsAny(t, "~/") {
		return t
	}
	return strings.ReplaceAll(strings.ReplaceAll(t, "~", "~0"), "/", "~1")
}

// parser reads a schema into nodes.
type parser struct {
	max   int
	nodes int
	// slab holds preallocated nodes: a schema has very many of them.
	slab []node
	// repeats reports that a name occurs twice in an object.
	repeats bool
	// repeated lists fields that occurred more than once; the last one counts.
	repeated []*node
}

var errTooDeep = errors.New("nested too deeply")

// parse reads src. The error is an [*Error].
func parse(src []byte, maxNodes int) (*node, *parser, error) {
	return parseAs(src, maxNodes, false)
}

// parseAs is parse; sound reports that src is known to be valid.
func parseAs(src []byte, maxNodes int, sound bool) (*node, *parser, error) {
	if len(src) > maxSchemaBytes {
		return nil, nil, &Error{Reason: "the schema has " + strconv.Itoa(len(src)) + " bytes, more than " + strconv.Itoa(maxSchemaBytes), Err: dragoman.ErrTooLarge}
	}
	p := &parser{max: maxNodes, repeats: !sound && jsonwire.Check(src) != nil}
	p.slab = make([]node, min(bytes.Count(src, []byte{':'})*9/8+4, 256)) // roughly one node per field, plus some
	r := jsonwire.NewReader(src)
	n := p.schema(r, nil, "", 0)
	err := r.End()
	if err == nil {
		return n, p, nil
	}
	e := &Error{Reason: err.Error(), Err: ErrInvalid}
	var we *jsonwire.Error
	if errors.As(err, &we) {
		e.Pointer, e.Reason = we.Pointer, we.Err.Error()+" (byte "+strconv.FormatInt(we.Offset, 10)+")"
	}
	if errors.Is(err, errTooDeep) || errors.Is(err, dragoman.ErrTooLarge) {
		e.Reason, e.Err = "the schema has too many or too deeply nested parts", dragoman.ErrTooLarge
	}
	return nil, nil, e
}

func (p *parser) node(kind nodeKind, parent *node, token string) *node {
	p.nodes++
	return p.make(node{kind: kind, parent: parent, token: token})
}

// make returns a node from the slab.
func (p *parser) make(n node) *node {
	if len(p.slab) == 0 {
		p.slab = make([]node, 32)
	}
	at := &p.slab[0]
	p.slab = p.slab[1:]
	*at = n
	return at
}

func (p *parser) bounded(r *jsonwire.Reader, depth int) bool {
	switch {
	case depth > maxSchemaDepth:
		r.Fail(errTooDeep)
		return false
	case p.nodes > p.max:
		r.Fail(dragoman.ErrTooLarge)
		return false
	}
	return true
}

func (p *parser) raw(r *jsonwire.Reader, parent *node, token string) *node {
	n := p.make(node{raw: r.Raw(), parent: parent, token: token})
	if p.repeats && len(n.raw) > 0 && jsonwire.Check(n.raw) != nil {
		var w jsonwire.Writer
		if !dedup(jsonwire.NewReader(n.raw), &w, 0) {
			r.Fail(errTooDeep)
			return n
		}
		n.raw = w.Buf
		p.repeated = append(p.repeated, n)
	}
	return n
}

// dedup copies a value with only the last field of a repeated name. It gives up on deep values,
// because it reads each level again.
func dedup(r *jsonwire.Reader, w *jsonwire.Writer, depth int) bool {
	if depth > 64 {
		return false
	}
	ok := true
	switch r.Kind() {
	case '{':
		var names []string
		values := map[string][]byte{}
		for key := range r.Object() {
			name := string(key)
			if _, ok := values[name]; !ok {
				names = append(names, name)
			}
			values[name] = r.Raw()
		}
		w.BeginObject()
		for _, name := range names {
			w.QuotedKey(name)
			ok = ok && dedup(jsonwire.NewReader(values[name]), w, depth+1)
		}
		w.EndObject()
	case '[':
		w.BeginArray()
		for range r.Array() {
			ok = dedup(r, w, depth+1) && ok
			if !ok {
				return false
			}
		}
		w.EndArray()
	default:
		w.Raw(r.Raw())
	}
	return ok
}

func (p *parser) schema(r *jsonwire.Reader, parent *node, token string, depth int) *node {
	if !p.bounded(r, depth) {
		return &node{}
	}
	switch r.Kind() {
	case 't', 'f':
		n := p.node(isBool, parent, token)
		n.raw = r.Raw()
		return n
	case '{':
	default:
		return p.raw(r, parent, token)
	}
	n := p.node(isSchema, parent, token)
	var seen map[string]int
	for key := range r.Object() {
		kw := lookup(key)
		name := keywords[kw].name
		if kw == kwOther {
			name = string(key)
		}
		p.add(n, &seen, field{name, kw, p.value(r, kw, n, name, depth+1)})
	}
	return n
}

// value reads the value of a keyword in the shape of the keyword. A value of another shape is
// kept as data for repair.
func (p *parser) value(r *jsonwire.Reader, kw keyword, parent *node, token string, depth int) *node {
	k := r.Kind()
	switch sh := keywords[kw].shape; {
	case sh == shapeSchema, sh == shapeItems && k != '[':
		return p.schema(r, parent, token, depth)
	case k == '[' && (sh == shapeList || sh == shapeItems):
		n := p.node(isList, parent, token)
		if !p.bounded(r, depth) {
			return n
		}
		for i := range r.Array() {
			n.list = append(n.list, p.schema(r, n, strconv.Itoa(i), depth+1))
		}
		return n
	case k == '{' && (sh == shapeMap || sh == shapeDeps):
		n := p.node(isMap, parent, token)
		if !p.bounded(r, depth) {
			return n
		}
		var seen map[string]int
		for key := range r.Object() {
			name := string(key)
			p.add(n, &seen, field{name, kwOther, p.schema(r, n, name, depth+1)})
		}
		return n
	default:
		return p.raw(r, parent, token)
	}
}

// add appends a field. Of a repeated one the last counts, as for every provider that does not
// refuse it.
func (p *parser) add(n *node, seen *map[string]int, m field) {
	at := -1
	if len(n.fields) < 16 {
		at = slices.IndexFunc(n.fields, func(o field) bool { return o.key == m.key })
	} else {
		if *seen == nil {
			*seen = make(map[string]int, 64)
			for i, o := range n.fields {
				(*seen)[o.key] = i
			}
		}
		if i, ok := (*seen)[m.key]; ok {
			at = i
		}
		(*seen)[m.key] = len(n.fields)
	}
	if at < 0 {
		if n.fields == nil {
			n.fields = make([]field, 0, 4)
		}
		n.fields = append(n.fields, m)
		return
	}
	if *seen != nil {
		(*seen)[m.key] = at
	}
	n.fields[at] = m
	p.repeated = append(p.repeated, m.val)
}

// write appends the schema, compact, with the author's data unchanged.
func (n *node) write(w *jsonwire.Writer) {
	switch n.kind {
	case isData, isBool:
		if len(n.raw) == 0 {
			w.Null()
			return
		}
		w.Known(n.raw) // it was read or generated as valid JSON
	case isList:
		w.BeginArray()
		for _, e := range n.list {
			e.write(w)
		}
		w.EndArray()
	default:
		w.BeginObject()
		for _, m := range n.fields {
			w.QuotedKey(m.key)
			m.val.write(w)
		}
		w.EndObject()
	}
}

func (n *node) text() []byte {
	var w jsonwire.Writer
	n.write(&w)
	return w.Buf
}

// sameText reports whether two schemas have the same text.
func sameText(a, b *node) bool {
	if object := a.kind == isSchema || a.kind == isMap; a.kind != b.kind && !(object && (b.kind == isSchema || b.kind == isMap)) {
		return bytes.Equal(a.text(), b.text())
	}
	if len(a.fields) != len(b.fields) || len(a.list) != len(b.list) || !bytes.Equal(a.raw, b.raw) {
		return false
	}
	for i, m := range a.fields {
		if m.key != b.fields[i].key || !sameText(m.val, b.fields[i].val) {
			return false
		}
	}
	for i, e := range a.list {
		if !sameText(e, b.list[i]) {
			return false
		}
	}
	return true
}

// children calls f for each schema directly below n that is itself a schema
// position, in order.
func (n *node) children(f func(*node)) {
	for _, m := range n.fields {
		switch m.val.kind {
		case isSchema, isBool:
			if n.kind == isMap || schemaShaped(m.kw) {
				f(m.val)
			}
		case isMap, isList:
			m.val.entries(f)
		}
	}
}

func schemaShaped(k keyword) bool {
	sh := keywords[k].shape
	return sh == shapeSchema || sh == shapeItems
}

// entries calls f for each schema of a map or list.
func (n *node) entries(f func(*node)) {
	for _, m := range n.fields {
		if m.val.kind == isSchema || m.val.kind == isBool {
			f(m.val)
		}
	}
	for _, e := range n.list {
		if e.kind == isSchema || e.kind == isBool {
			f(e)
		}
	}
}

// walk calls f for n and every schema below it, parents first. References
// are not followed.
func (n *node) walk(f func(*node)) {
	f(n)
	n.children(func(c *node) { c.walk(f) })
}
