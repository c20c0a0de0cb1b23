package gemini

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/stream"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// Limits for arguments that arrive as partialArgs (quirk C28). The paths of a
// hostile stream must not decide how much memory is used or how deep the
// arguments nest.
const (
	maxArgDepth = 64
	maxArgIndex = 4096
	maxArgNodes = 1 << 16
)

// partialArgs builds the arguments of a call from values and their paths. The
// zero value is ready to use and limits only the shape of the arguments.
type partialArgs struct {
	root  *argNode
	nodes int
	// bound is charged before a value is stored; drop releases the charge.
	bound *stream.Bound
	kept  int
	size  int // approximate size of the JSON text
	// last is the string that the next value may continue.
	last *argNode
	// unfinished counts the strings that are not finished, holes the list elements
	// without a value.
	unfinished, holes int
	hasUnknown        bool // the latest fragment has unknown fields
	// spare holds preallocated nodes.
	spare []argNode
}

// argNode is one value of the arguments.
type argNode struct {
	kind byte // '{', '[', '"', 'v' for another value, 0 if not set
	open bool // a string that continues
	// names holds the field names of an object, in the order of their values in
	// items. index is set as well if there are many. In a list, skipped items
	// are nil.
	names []string
	index map[string]int
	items []*argNode
	text  []byte
}

// fewNames is the number of names up to which a linear search is used.
const fewNames = 8

// named returns the position of a field, or -1.
func (n *argNode) named(name string) int {
	if n.index == nil {
		return slices.Index(n.names, name)
	}
	if i, ok := n.index[name]; ok {
		return i
	}
	return -1
}

// add appends a field without a value.
func (n *argNode) add(name string) {
	n.names, n.items = append(n.names, name), append(n.items, nil)
	if n.index == nil && len(n.names) > fewNames {
		n.index = make(map[string]int, 2*fewNames)
		for i, name := range n.names {
			n.index[name] = i
		}
	} else if n.index != nil {
		n.index[name] = len(n.names) - 1
	}
}

var (
	errArgPath      = errors.New("the path is not a singular JSONPath")
	errArgDeep      = fmt.Errorf("the path is deeper than %d", maxArgDepth)
	errArgIndex     = fmt.Errorf("the list index is beyond %d", maxArgIndex)
	errArgMany      = fmt.Errorf("more than %d values", maxArgNodes)
	errArgSize      = errors.New("the arguments exceed the size limit")
	errArgList      = errors.New("partialArgs is not a list")
	errArgDuplicate = errors.New("a value is set twice")
	errArgValue     = errors.New("the value is of an unknown kind")
	errArgHole      = errors.New("a list element is missing")
	errArgKind      = errors.New("the path leads through a value that is not an object or list")
)

// fragmentFields lists the known fields of a fragment.
var fragmentFields = []string{"jsonPath", "stringValue", "numberValue", "boolValue", "nullValue", "willContinue"}

// argFragment is one fragment: {"jsonPath":…, "stringValue":…, "willContinue":…}.
type argFragment struct {
	path, text string
	value      []byte
	str        bool
	continues  bool
	values     int
	hasUnknown bool // it has unknown fields
}

// add applies one fragment. It returns an error for a fragment that two readers
// could read differently and for a value of an unknown kind.
func (a *partialArgs) add(r *jsonwire.Reader) error {
	p, err := readFragment(r)
	a.hasUnknown = p.hasUnknown
	if err != nil {
		return err
	}
	n, err := a.at(p.path)
	if err != nil {
		return err
	}
	return a.set(n, p.str || p.values == 0, p.text, p.value, p.continues)
}

// readFragment reads a fragment to its end even if it is invalid.
func readFragment(r *jsonwire.Reader) (p argFragment, wrong error) {
	var seen seenFields
	null, unknown := false, false
	for key := range r.Object() {
		camel := jsonwire.Camel(key)
		if seen.duplicate(fragmentFields, camel) {
			wrong = errArgDuplicate
		}
		switch field := string(camel); {
		case r.Kind() == 'n' && field != "nullValue" && strings.HasSuffix(field, "Value"):
			null = true // some readers treat null as absent
			r.Skip()
		case field == "jsonPath":
			p.path = r.String()
		case field == "stringValue":
			p.text, p.str = r.String(), true
			p.values++
		case field == "numberValue":
			p.value = []byte(r.Number())
			p.values++
		case field == "boolValue":
			p.value = strconv.AppendBool(nil, r.Bool())
			p.values++
		case field == "nullValue":
			p.value = []byte("null")
			p.values++
			if raw := string(r.Raw()); raw != "null" && raw != `"NULL_VALUE"` && raw != "0" {
				wrong = errArgValue
			}
		case field == "willContinue":
			p.continues = r.Bool()
		default:
			p.hasUnknown = true
			unknown = unknown || strings.HasSuffix(field, "Value")
			r.Skip()
		}
	}
	switch {
	case r.Err() != nil:
		return p, r.Err()
	case wrong != nil:
	case p.values > 1:
		wrong = errArgDuplicate
	case unknown, null && p.values == 0:
		wrong = errArgValue
	}
	return p, wrong
}

func (a *partialArgs) set(n *argNode, str bool, text string, value []byte, continues bool) error {
	if a.last != nil && a.last != n {
		a.last.open = false
	}
	a.last = n
	switch {
	case str && (n.kind == 0 || n.kind == '"' && n.open):
		if n.open {
			a.unfinished--
		}
		if n.kind, n.open = '"', continues; continues {
			a.unfinished++
		}
		if !a.take(len(text)) {
			return errArgSize
		}
		a.size += len(text)
		n.text = stream.Grow(n.text, text)
		return nil
	case !str && n.kind == 0:
		if !a.take(len(value)) {
			return errArgSize
		}
		a.size += len(value)
		n.kind, n.text = 'v', value
		return nil
	default:
		return errArgDuplicate
	}
}

// problem returns the problem of arguments that are incomplete at the end of
// their call: an unfinished string or a list element without a value. It
// returns nil if they are complete.
func (a *partialArgs) problem() *dragoman.CallProblem {
	switch {
	case a.unfinished > 0:
		return truncatedCall()
	case a.holes > 0:
		return badFragment(errArgHole)
	default:
		return nil
	}
}

// at returns the node at a path and creates the nodes that lead to it.
func (a *partialArgs) at(path string) (*argNode, error) {
	rest, ok := strings.CutPrefix(path, "$")
	if !ok || rest == "" {
		return nil, errArgPath
	}
	if a.root == nil {
		a.root = a.node()
		a.root.kind = '{'
	}
	n := a.root
	for depth := 0; rest != ""; depth++ {
		if depth == maxArgDepth {
			return nil, errArgDeep
		}
		step, next, err := nextStep(rest)
		if err != nil {
			return nil, err
		}
		rest = next
		if n, err = a.child(n, step); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// argStep is one segment of a path: a field name or a list index.
type argStep struct {
	name  string
	index int
	named bool
}

func (a *partialArgs) child(n *argNode, s argStep) (*argNode, error) {
	kind := byte('[')
	if s.named {
		kind = '{'
	}
	if n.kind == 0 {
		n.kind = kind
	}
	if n.kind != kind {
		return nil, errArgKind
	}
	i := s.index
	if s.named {
		if i = n.named(s.name); i < 0 {
			if err := a.grow(1, argPlaceBytes+len(s.name)); err != nil {
				return nil, err
			}
			a.size += len(s.name)
			i = len(n.names)
			n.add(s.name)
		}
	} else if gap := i + 1 - len(n.items); gap > 0 {
		if err := a.grow(gap, gap*argPlaceBytes); err != nil {
			return nil, err
		}
		n.items = append(n.items, make([]*argNode, gap)...)
		a.holes += gap
	}
	if n.items[i] == nil {
		if !s.named {
			a.holes--
		}
		if err := a.grow(0, argNodeBytes); err != nil {
			return nil, err
		}
		n.items[i] = a.node()
	}
	return n.items[i], nil
}

// argNodeBytes estimates the memory of a node without its name and text,
// argPlaceBytes that of its slot in the parent.
const (
	argNodeBytes  = 120
	argPlaceBytes = 8
)

// grow counts more values of the given total size.
func (a *partialArgs) grow(values, size int) error {
	if a.nodes += values; a.nodes > maxArgNodes {
		return errArgMany
	}
	a.size += 8 * values // commas, quotes, nulls
	if !a.take(size) {
		return errArgSize
	}
	return nil
}

// node allocates a node. The batch size grows with the number of nodes.
func (a *partialArgs) node() *argNode {
	if len(a.spare) == 0 {
		a.spare = make([]argNode, min(max(a.nodes, 1), 64))
	}
	n := &a.spare[0]
	a.spare = a.spare[1:]
	return n
}

func (a *partialArgs) take(n int) bool {
	a.kept += n
	return a.bound.Take(n)
}

// drop releases the values.
func (a *partialArgs) drop() {
	a.bound.Take(-a.kept)
	*a = partialArgs{bound: a.bound}
}

// nextStep reads one segment of a singular query of RFC 9535: .name, ['name'],
// ["name"] or [0].
func nextStep(path string) (s argStep, rest string, err error) {
	switch {
	case strings.HasPrefix(path, ".") && !strings.HasPrefix(path, ".."):
		path = path[1:]
		end := strings.IndexAny(path, ".[")
		if end < 0 {
			end = len(path)
		}
		if end == 0 || path[:end] == "*" {
			return s, "", errArgPath
		}
		return argStep{name: path[:end], named: true}, path[end:], nil
	case strings.HasPrefix(path, "['"), strings.HasPrefix(path, `["`):
		return quotedStep(path)
	case strings.HasPrefix(path, "["):
		num, rest, ok := strings.Cut(path[1:], "]")
		n, err := strconv.Atoi(num)
		switch {
		case !ok || err != nil || n < 0 || num != strconv.Itoa(n):
			return s, "", errArgPath
		case n > maxArgIndex:
			return s, "", errArgIndex
		}
		return argStep{index: n}, rest, nil
	default:
		return s, "", errArgPath
	}
}

// quotedStep reads a quoted name in brackets.
func quotedStep(path string) (s argStep, rest string, err error) {
	q := path[1]
	var name []byte
	for i := 2; i < len(path); i++ {
		switch c := path[i]; c {
		case q:
			if i+1 >= len(path) || path[i+1] != ']' {
				return s, "", errArgPath
			}
			return argStep{name: string(name), named: true}, path[i+2:], nil
		case '\\':
			r, size := escaped(path[i+1:])
			if size == 0 {
				return s, "", errArgPath
			}
			name = utf8.AppendRune(name, r)
			i += size
		default:
			name = append(name, c)
		}
	}
	return s, "", errArgPath
}

// escaped reads the characters after a backslash and returns their length.
func escaped(s string) (r rune, size int) {
	if s == "" {
		return 0, 0
	}
	switch s[0] {
	case 'b':
		return '\b', 1
	case 'f':
		return '\f', 1
	case 'n':
		return '\n', 1
	case 'r':
		return '\r', 1
	case 't':
		return '\t', 1
	case '\\', '/', '\'', '"':
		return rune(s[0]), 1
	case 'u':
		return codePoint(s)
	default:
		return 0, 0
	}
}

// codePoint reads the four digits after \u, or both halves of a surrogate pair.
func codePoint(s string) (r rune, size int) {
	r, ok := unit(s)
	switch {
	case !ok:
		return 0, 0
	case !utf16.IsSurrogate(r):
		return r, 5
	}
	if len(s) < 6 || s[5] != '\\' {
		return 0, 0
	}
	low, _ := unit(s[6:])
	if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
		return 0, 0 // not a surrogate pair
	}
	return r, 11
}

// unit reads a u and four hex digits.
func unit(s string) (r rune, ok bool) {
	if len(s) < 5 || s[0] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(s[1:5], 16, 32)
	return rune(n), err == nil
}

// text returns the JSON of the arguments; empty if there were none.
func (a *partialArgs) text() string {
	if a.root == nil {
		return ""
	}
	var w jsonwire.Writer
	w.Buf = make([]byte, 0, 8+a.size+a.size/16) // a guess for escapes
	a.root.write(&w)
	return string(w.Buf)
}

func (n *argNode) write(w *jsonwire.Writer) {
	if n == nil { // an element that was skipped
		w.Null()
		return
	}
	switch n.kind {
	case '{':
		w.BeginObject()
		for i, name := range n.names {
			w.QuotedKey(name)
			n.items[i].write(w)
		}
		w.EndObject()
	case '[':
		w.BeginArray()
		for _, item := range n.items {
			item.write(w)
		}
		w.EndArray()
	case '"':
		w.String(string(n.text))
	case 'v':
		w.Raw(n.text)
	default: // a path that failed later created it
		w.Null()
	}
}

// badFragment returns the problem of a call with an invalid fragment.
func badFragment(err error) *dragoman.CallProblem {
	return &dragoman.CallProblem{
		Code: codes.ProblemInvalidJSON, Offset: -1,
		Message: "the streamed argument fragments do not fit together: " + err.Error() + "; make the call again",
	}
}
