package schema

import (
	"bytes"
	"sync"

	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// readsOneWay reports whether src is unambiguous JSON within the size limit.
func readsOneWay(src []byte) bool {
	return len(src) > 0 && len(src) <= maxSchemaBytes && jsonwire.Check(src) == nil
}

// fits reports whether src, which is valid JSON, satisfies p without changes, in one pass and
// without building a tree. It returns false if it is not certain: the lowering then decides,
// and changes nothing if nothing is wrong.
func fits(src []byte, p *Profile) bool {
	if p.maxBytes > 0 && len(src) > p.maxBytes {
		return false
	}
	s := scanners.Get().(*scanner)
	defer scanners.Put(s)
	s.r = cursor{b: src}
	s.p, s.names, s.seen = p, s.names[:0], limits{}
	ok := s.r.kind() == '{' && s.schema(0, 0)
	if lim := p.limits; lim != (limits{}) && ok {
		ok = atMost(s.seen.properties, lim.properties) && atMost(s.seen.levels, lim.levels) &&
			atMost(s.seen.enumValues, lim.enumValues) && atMost(s.seen.optional, lim.optional) &&
			atMost(s.seen.unions, lim.unions) && atMost(len(src), lim.nameChars)
	}
	s.p, s.r = nil, cursor{}
	if cap(s.names) > 1024 {
		s.names = nil
	}
	clear(s.names[:cap(s.names)]) // keep no reference to the source
	return ok
}

// atMost reports whether a count is within its limit, if there is one.
func atMost(have, max int) bool { return max == 0 || have <= max }

// scanners pools buffers; results never leave a scan.
var scanners = sync.Pool{New: func() any { return new(scanner) }}

// scanner reads a schema once.
type scanner struct {
	r    cursor
	p    *Profile
	seen limits
	// names is a stack of property names and list elements of open schemas.
	names [][]byte
}

// facts holds the data that the end of a schema object needs to judge it.
type facts struct {
	keys          keywordSet
	types         typeBits
	union, beside bool
	enum          bool
	// alone: a union of several has no other keywords next to it.
	alone           bool
	props, required [2]int // spans of names
}

func (s *scanner) schema(depth, level int) bool {
	r, p := &s.r, s.p
	if depth > maxSchemaDepth {
		return false
	}
	switch r.kind() {
	case 't', 'f':
		r.raw()
		return !p.typed && !p.noBooleans
	case '{':
	default:
		return false
	}
	s.seen.levels = max(s.seen.levels, level)
	base := len(s.names)
	var f facts
	ok := true
	for r.open(); r.next(); {
		key := r.key()
		kw := lookup(key)
		// An escaped name may be a keyword.
		if bytes.IndexByte(key, '\\') >= 0 || !p.acceptsAt(kw, depth == 0) || !s.keywordValue(kw, &f, depth, level) {
			ok = false
			break
		}
		f.keys.add(kw)
	}
	ok = ok && s.judge(&f, depth)
	s.names = s.names[:base]
	return ok
}

// keywordValue checks the value of one keyword. It returns false if it is not certain.
func (s *scanner) keywordValue(kw keyword, f *facts, depth, level int) bool {
	r, p := &s.r, s.p
	root := depth == 0
	if !annotation(kw) && kw != kwAnyOf {
		f.beside = true
	}
	sh := keywords[kw].shape
	if sh <= shapeType {
		// Most values are small and read at once.
		return s.leaf(kw, sh, r.raw(), f, root)
	}
	k := r.kind()
	switch sh {
	case shapeEnum:
		if k != '[' || root && p.rootObject {
			return false
		}
		at := len(s.names)
		for r.open(); r.next(); {
			if v := r.raw(); p.enums == anyEnum || v[0] == '"' && len(v) > 2 {
				s.names = append(s.names, v)
			} else {
				return false
			}
		}
		f.enum = true
		n := len(s.names) - at
		s.seen.enumValues += n
		ok := n > 0 && distinct(s.names[at:])
		s.names = s.names[:at]
		return ok
	case shapeStrings:
		if k != '[' || kw != kwRequired {
			return false
		}
		f.required[0] = len(s.names)
		for r.open(); r.next(); {
			if r.kind() != '"' {
				return false
			}
			s.names = append(s.names, r.raw())
		}
		f.required[1] = len(s.names)
		return distinct(s.names[f.required[0]:f.required[1]])
	case shapeObject:
		r.raw()
		return k == '{'
	case shapeValues:
		r.raw()
		return k == '['
	case shapeSchema, shapeItems:
		switch {
		case k == '[', root && p.rootObject && kw == kwNot:
			return false
		case kw == kwAdditionalProperties && p.closed:
			r.raw()
			return k == 'f'
		case kw == kwAdditionalProperties && k != '{':
			r.raw()
			return k == 't' || k == 'f'
		}
		return s.schema(depth+1, level)
	case shapeList:
		if k != '[' || root && p.rootObject && (kw == kwAnyOf || kw == kwOneOf || kw == kwAllOf) {
			return false
		}
		f.union = f.union || kw == kwAnyOf
		n := 0
		for r.open(); r.next(); {
			if n++; !s.schema(depth+2, level) {
				return false
			}
		}
		f.alone = n > 1 || !p.nullableFlag
		return n > 0
	case shapeMap:
		return s.schemas(kw, f, depth, level)
	default:
		return false
	}
}

// leaf checks a value that contains no schema.
func (s *scanner) leaf(kw keyword, sh shape, raw []byte, f *facts, root bool) bool {
	p := s.p
	if len(raw) == 0 {
		return false
	}
	k := raw[0]
	switch sh {
	case shapeString:
		if k != '"' {
			return false
		}
		switch kw {
		case kwRef, kwDynamicRef, kwRecursiveRef:
			return false
		case kwFormat:
			if p.formats != nil {
				text, ok := (&node{raw: raw}).str()
				return ok && p.acceptsFormat(text, nil)
			}
		case kwPattern:
			if p.regexps != anyRegexp {
				text, ok := (&node{raw: raw}).str()
				return ok && p.acceptsRegexp(text)
			}
		}
		return true
	case shapeBool:
		return (kw != kwNullable || p.nullableFlag) && (k == 't' || k == 'f')
	case shapeNumber:
		return (k == '-' || k >= '0' && k <= '9') && (kw != kwMultipleOf || isPositive(raw))
	case shapeCount:
		return (k == '-' || k >= '0' && k <= '9') && isCount(raw) && (kw != kwMinItems || p.minItemsMax == 0 || smallCount(raw, p.minItemsMax))
	case shapeType:
		return s.types(raw, f, root)
	default:
		return kw != kwConst || !root || !p.rootObject
	}
}

func (s *scanner) schemas(kw keyword, f *facts, depth, level int) bool {
	r := &s.r
	if r.kind() != '{' || kw == kwDefinitions && s.p.modernDefs || (kw == kwDefs || kw == kwDefinitions) && (s.p.rootDefs || s.p.inlineRefs) {
		return false
	}
	if kw != kwProperties {
		for r.open(); r.next(); {
			r.key()
			if !s.schema(depth+2, level) {
				return false
			}
		}
		return true
	}
	f.props[0] = len(s.names)
	n := 0
	for r.open(); r.next(); {
		n++
		key := r.key()
		if !s.p.names.allows(string(key)) {
			return false
		}
		if s.p.closed || s.p.knownRequired {
			s.names = append(s.names, key) // needed at the end of the object
		}
		if !s.schema(depth+2, level+1) {
			return false
		}
	}
	f.props[1] = len(s.names)
	s.seen.properties += n
	return n > 0 || !s.p.noEmptyProps
}

// types reads a type or a list of types.
func (s *scanner) types(raw []byte, f *facts, root bool) bool {
	if raw[0] != '[' {
		f.types = bitOf(raw)
		return f.types != 0
	}
	if root && s.p.rootObject || s.p.oneType {
		return false
	}
	s.seen.unions++
	list := cursor{b: raw}
	for list.open(); list.next(); {
		bit := bitOf(list.raw())
		if bit == 0 || f.types&bit != 0 {
			return false
		}
		f.types |= bit
	}
	return f.types != 0
}

// judge applies the rules for the object as a whole.
func (s *scanner) judge(f *facts, depth int) bool {
	p := s.p
	if depth == 0 && p.rootObject && (f.types != typeObject || !f.keys.has(kwProperties) && !p.noEmptyProps) {
		return false
	}
	if f.types&typeArray != 0 && p.arrayItems && !f.keys.has(kwItems) || f.types&typeNull != 0 && p.nullableFlag {
		return false
	}
	if f.enum && p.enums > scalarEnums && f.types != typeString {
		return false
	}
	if p.anyOfOnly && f.keys.has(kwRequired) && !f.keys.has(kwProperties) {
		return false // possibly a branch that only requires names
	}
	if f.union {
		s.seen.unions++
	}
	if f.union && p.anyOfOnly {
		lone := f.keys == setOf(kwAnyOf)
		return !f.beside && f.alone && (lone || !p.loneAnyOf)
	}
	if p.typed || p.inferred {
		if !f.keys.has(kwType) || s.foreign(f) {
			return f.keys.has(kwAnyOf) && !p.typed && !p.anyOfOnly && !f.keys.has(kwType)
		}
	}
	return s.judgeObject(f)
}

// judgeObject applies the rules for the names of an object.
func (s *scanner) judgeObject(f *facts) bool {
	p := s.p
	if !p.closed && !p.knownRequired {
		return true
	}
	props, required := s.names[f.props[0]:f.props[1]], s.names[f.required[0]:f.required[1]]
	if !p.closed {
		// The lowering knows more about schemas that are not objects.
		return len(required) == 0 || f.types&typeObject != 0 && subset(required, props)
	}
	if f.types&typeObject == 0 {
		return true
	}
	if !f.keys.has(kwAdditionalProperties) || !f.keys.has(kwProperties) {
		return false
	}
	s.seen.optional += len(props) - len(required)
	if p.allRequired && len(props) != len(required) {
		return false
	}
	return subset(required, props)
}

// foreign reports whether there are keywords for other types than the declared ones.
func (s *scanner) foreign(f *facts) bool {
	for k := range kwCount {
		if !f.keys.has(k) {
			continue
		}
		about := typeBits(0)
		switch keywordType(k) {
		case "object":
			about = typeObject
		case "array":
			about = typeArray
		case "string":
			about = typeString
		case "number":
			about = typeNumber | typeInteger
		default:
			continue
		}
		if f.types&about == 0 {
			return true
		}
	}
	return false
}

// typeBits is a set of JSON types.
type typeBits uint8

const (
	typeObject typeBits = 1 << iota
	typeArray
	typeString
	typeNumber
	typeInteger
	typeBoolean
	typeNull
)

// bitOf reads a quoted type name; zero if it is unknown.
func bitOf(quoted []byte) typeBits {
	switch string(quoted) {
	case `"object"`:
		return typeObject
	case `"array"`:
		return typeArray
	case `"string"`:
		return typeString
	case `"number"`:
		return typeNumber
	case `"integer"`:
		return typeInteger
	case `"boolean"`:
		return typeBoolean
	case `"null"`:
		return typeNull
	default:
		return 0
	}
}

// fewTexts is the number of texts up to which pairs are compared.
const fewTexts = 32

// distinct reports whether no text occurs twice.
func distinct(list [][]byte) bool {
	if len(list) > fewTexts {
		return len(unique(list)) == len(list)
	}
	for i, v := range list {
		for _, o := range list[:i] {
			if bytes.Equal(v, o) {
				return false
			}
		}
	}
	return true
}

// subset reports whether every quoted name is among the names, which are distinct. Both are
// still escaped, so an escape means uncertain. Both are usually in the same order.
func subset(quoted, names [][]byte) bool {
	at := 0
	steps := 0
	for _, q := range quoted {
		q = q[1 : len(q)-1]
		if bytes.IndexByte(q, '\\') >= 0 {
			return false // not certain
		}
		found := false
		for range names {
			if steps++; steps > 100_000 {
				return false // not certain
			}
			if at == len(names) {
				at = 0
			}
			at++
			if bytes.Equal(names[at-1], q) {
				found = true
				break
			}
		}
		if !found {
			return false
		}
	}
	return true
}
