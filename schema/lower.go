package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// Lower returns src in the form that p accepts, with a report of every change.
//
//   - It never changes src, never panics, and returns the same bytes for the same input.
//   - The result is src itself if and only if the report is empty.
//   - It keeps key order, and the text of the author's numbers, strings and data.
//   - Lowering a result again changes nothing.
//
// A nil src (or null) means no arguments. The error is an [*Error]: see [ErrInvalid] for its
// kinds. With an error, the result has only the report so far.
//
// If a target cannot express something in the author's form, such as the name of a property,
// the result also translates arguments. It is safe for concurrent use.
func Lower(src json.RawMessage, p Profile) (*Lowered, error) {
	ok := readsOneWay(src)
	if ok && fits(src, &p) {
		return &Lowered{Schema: src}, nil
	}
	l := newLowerer(&p)
	l.valid = ok
	out, err := l.run(src)
	if err != nil {
		return &Lowered{Report: l.report}, err
	}
	if len(l.report.Losses) == 0 {
		out = src
	}
	low := &Lowered{Schema: out, Report: l.report, Note: l.rootNote}
	if !l.undo.empty() {
		low.root, low.undo = l.root, l.undo
		low.Aliases = l.undo.names
	}
	return low, nil
}

// Fits reports whether a schema satisfies p without changes, so that the strict flag of p does
// not change the meaning of the schema (quirk A25).
func (p Profile) Fits(src json.RawMessage) bool {
	ok := readsOneWay(src)
	if ok && fits(src, &p) {
		return true
	}
	l := newLowerer(&p)
	l.valid = ok
	_, err := l.run(src)
	return err == nil && len(l.report.Losses) == 0
}

// lowerer performs one lowering. It keeps the first error; later steps then have no effect.
type lowerer struct {
	p      *Profile
	root   *node
	res    *resolver
	report dragoman.Report
	// copies counts what expanding references adds; maxCopies is its limit.
	copies, maxCopies int
	// work counts what merging examines; maxMergeWork is its limit.
	work int
	err  error
	// valid reports that the source was checked and is valid.
	valid bool
	// expanding holds the targets of references that are being expanded.
	expanding map[*node]bool
	// rebased reports that references must be written from the root.
	rebased bool
	// flattening reports that the root is being made a plain object, which temporarily may have
	// allOf.
	flattening bool
	// hoisted reports that the root absorbed the target of its reference.
	hoisted bool
	// optional lists properties that became required and must accept null.
	optional []*node
	// rootNote is text of the root that the target has no field for.
	rootNote string
	// undo holds what is needed to translate arguments.
	undo undo
}

func newLowerer(p *Profile) *lowerer {
	return &lowerer{p: p, maxCopies: maxExpansion, expanding: map[*node]bool{}}
}

func (l *lowerer) run(src []byte) ([]byte, error) {
	src = l.readable(src)
	root, ps, err := parseAs(src, maxSchemaNodes, l.valid)
	if err != nil {
		return nil, err
	}
	l.maxCopies += 2 * ps.nodes
	for _, n := range ps.repeated {
		l.addLoss(dragoman.Dropped, dragoman.Warn, n, "duplicate field; the last one is used")
	}
	if root = l.rootSchema(root); l.err != nil {
		return nil, l.err
	}
	l.root = root
	l.repair(root)
	l.bind()
	if l.p.rootObject {
		l.flattening = true
		l.flattenRoot()
		l.flattening = false
		l.cutLoops() // merging may have created a reference to itself
	}
	if l.p.inlineRefs {
		l.inlineAll()
	} else {
		l.placeDefs()
	}
	if l.err == nil && l.p.noRecursion {
		if n := recursiveSchema(l.root); n != nil {
			l.refuse(n, "the schema contains itself, which this target cannot express")
		}
	}
	if l.err == nil {
		l.lower(l.root)
		l.cutLoops()
	}
	for _, n := range l.optional {
		if l.err == nil {
			l.admitNull(n)
		}
	}
	l.finish()
	if l.p.rootDefs || l.hoisted {
		l.pruneDefs() // the expanded schema may have been the only user of a definition
	}
	if len(l.report.Losses) > 0 || l.p.rootDefs {
		l.finishRefs()
	}
	if l.err == nil {
		l.checkLimits()
	}
	if l.err != nil {
		return nil, l.err
	}
	return l.written(len(src))
}

// finish makes the changes that affect arguments, once the structure of the schema is final.
func (l *lowerer) finish() {
	if l.err != nil {
		return
	}
	l.lowerEnums()
	l.makeCyclesOptional()
	l.aliasNames()
	l.liftNote()
}

// written returns the text of the root, compacted if it is too long.
func (l *lowerer) written(size int) ([]byte, error) {
	w := jsonwire.Writer{Buf: make([]byte, 0, size+size/4)}
	l.root.write(&w)
	if l.p.maxBytes > 0 && len(w.Buf) > l.p.maxBytes {
		if w.Buf = l.compact(); l.err != nil {
			return nil, l.err
		}
	}
	if len(w.Buf) > maxSchemaBytes {
		return nil, &Error{Reason: fmt.Sprintf("lowered, the schema has %d bytes, more than %d", len(w.Buf), maxSchemaBytes), Err: dragoman.ErrTooLarge}
	}
	return w.Buf, nil
}

// readable replaces text that is not valid Unicode, which a provider would refuse or read
// differently (quirk C17), and treats an empty source as no arguments.
func (l *lowerer) readable(src []byte) []byte {
	if text := bytes.TrimSpace(src); len(text) == 0 || string(text) == "null" {
		l.valid = false
		return l.noArguments()
	}
	if l.valid || len(src) > maxSchemaBytes || (utf8.Valid(src) && jsonwire.Check(src) == nil) {
		return src
	}
	clean, err := jsontext.AppendFormat(nil, src, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true), jsontext.PreserveRawStrings(true))
	if err != nil || jsontext.Value(clean).IsValid(jsontext.AllowDuplicateNames(true)) {
		return src // not JSON at all, or only repeated names: the parser reports it
	}
	clean, err = jsontext.AppendFormat(nil, src, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	if err != nil {
		return src
	}
	l.addLoss(dragoman.Lowered, dragoman.Info, nil, "invalid Unicode replaced by U+FFFD")
	return clean
}

// noArguments returns the schema of a tool without arguments (quirk A20).
func (l *lowerer) noArguments() []byte {
	l.addLoss(dragoman.Synthesized, dragoman.Info, nil, "the tool has no schema; an object without properties is written")
	if l.p.closed {
		return []byte(`{"type":"object","properties":{},"additionalProperties":false}`)
	}
	return []byte(`{"type":"object","properties":{}}`)
}

// rootSchema makes the root an object of keywords, or fails.
func (l *lowerer) rootSchema(root *node) *node {
	empty := &node{kind: isSchema}
	switch {
	case root.kind == isSchema:
		return root
	case root.isTrue():
		if !l.p.rootObject && !l.p.noBooleans {
			return root
		}
		l.addLoss(dragoman.Lowered, dragoman.Info, nil, "true becomes an empty schema")
		return empty
	case root.isFalse() && !l.p.rootObject && !l.p.noBooleans:
		return root
	default:
		l.fail(root, ErrInvalid, "the root must be a JSON object with keywords")
		return root
	}
}

func (l *lowerer) addLoss(kind dragoman.LossKind, sev dragoman.Severity, at *node, detail string) {
	switch n := len(l.report.Losses); {
	case n < maxLosses:
		path := ""
		if at != nil {
			path = at.pointer()
		}
		l.report.Add(kind, sev, path, detail)
	case n == maxLosses:
		l.report.Add(dragoman.Lowered, dragoman.Serious, "", "too many changes; the others are not listed")
	}
}

func (l *lowerer) addLossf(kind dragoman.LossKind, sev dragoman.Severity, at *node, format string, args ...any) {
	if len(l.report.Losses) > maxLosses {
		return
	}
	l.addLoss(kind, sev, at, fmt.Sprintf(format, args...))
}

func (l *lowerer) fail(at *node, kind error, reason string) {
	if l.err == nil {
		l.err = &Error{Pointer: at.pointer(), Reason: reason, Err: kind}
	}
}

// refuse reports that a strict subset cannot express what the author wrote, and that changing
// it would change what the tool receives.
func (l *lowerer) refuse(at *node, reason string) { l.fail(at, dragoman.ErrUnsupported, reason) }

// impossible reports that no value can satisfy a schema.
func (l *lowerer) impossible(at *node, reason string) {
	if l.p.closed {
		l.refuse(at, reason)
	} else {
		l.fail(at, ErrInvalid, reason)
	}
}

// isName reports whether a keyword gives a schema a name.
func isName(k keyword) bool {
	return k == kwID || k == kwAnchor || k == kwDynamicAnchor || k == kwRecursiveAnchor
}

// part copies a schema that becomes part of another one, without its definitions.
func (l *lowerer) part(n *node) *node {
	c := l.copy(n)
	c.del(kwDefs)
	c.del(kwDefinitions)
	c.del(kwSchema)
	return c
}

// copy copies a schema within the node budget. References in the copy keep their targets. A
// name is not copied, because it must identify one schema.
func (l *lowerer) copy(n *node) *node {
	if l.copies++; l.copies > l.maxCopies {
		l.fail(n, dragoman.ErrTooLarge, "expanding its references makes the schema too large")
	}
	if l.err != nil {
		return &node{kind: isSchema}
	}
	c := *n
	c.fields = make([]field, 0, len(n.fields))
	for _, m := range n.fields {
		if n.kind == isSchema && isName(m.kw) {
			continue
		}
		if m.val.kind != isData {
			m.val = l.copy(m.val)
		}
		c.fields = append(c.fields, m)
	}
	if n.list != nil {
		c.list = make([]*node, len(n.list))
		for i, e := range n.list {
			c.list[i] = l.copy(e)
		}
	}
	return &c
}

// bind resolves every reference, and drops those that cannot be resolved.
func (l *lowerer) bind() {
	l.res = newResolver(l.root)
	l.bindBelow(l.root)
	l.dropBases()
	l.cutLoops()
}

// cutLoops drops references that lead back to themselves.
func (l *lowerer) cutLoops() {
	for range 100 {
		n := referenceLoop(l.root)
		if n == nil {
			return
		}
		l.addLoss(dragoman.Dropped, dragoman.Serious, n.get(kwRef), "the reference is circular and has no meaning")
		n.ref = nil
		n.del(kwRef)
	}
	l.fail(l.root, dragoman.ErrTooLarge, "too many circular references")
}

// dropBases drops $id below the root if there are references: it would change their base, which
// not every API supports. References are then written from the root.
func (l *lowerer) dropBases() {
	if len(l.targets(true)) == 0 {
		return
	}
	l.root.walk(func(n *node) {
		id := n.get(kwID)
		if text, _ := id.str(); n == l.root || text == "" || text[0] == '#' {
			return
		}
		l.addLoss(dragoman.Dropped, dragoman.Info, id, "$id below the root; references are rewritten relative to the root")
		n.del(kwID)
		l.rebased = true
	})
}

// bindBelow binds the references in from, and in their targets, which may be positions that
// were not read as schemas so far.
func (l *lowerer) bindBelow(from *node) {
	var leads []*node
	from.walk(func(n *node) {
		n.bind()
		if n.kind != isSchema {
			return
		}
		if (l.p.whitelist || l.p.inlineRefs) && !n.has(kwRef) {
			l.plainRef(n)
		}
		ref := n.get(kwRef)
		if ref == nil || n.ref != nil {
			return
		}
		text, _ := ref.str()
		if n.ref = l.res.resolve(n, text); n.ref != nil {
			leads = append(leads, n.ref)
			return
		}
		l.addLossf(dragoman.Dropped, dragoman.Serious, ref, "the reference %.100q does not point into this schema", text)
		n.del(kwRef)
		if text != "" {
			l.note(n, "see "+text)
		}
	})
	for _, n := range leads {
		if !n.isBound() {
			l.repair(n)
			l.bindBelow(n)
		}
	}
}

// plainRef writes the two dynamic kinds of reference as a plain $ref, which is equivalent
// because no other document extends this one.
func (l *lowerer) plainRef(n *node) {
	for _, k := range [...]keyword{kwDynamicRef, kwRecursiveRef} {
		if v := n.get(k); v != nil {
			l.addLossf(dragoman.Renamed, dragoman.Info, v, "%s becomes $ref", keywords[k].name)
			n.del(k)
			n.set(kwRef, v)
			return
		}
	}
}
