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

// The bounds of arguments that come in pieces (quirk C28): a path of a hostile
// stream must not decide how much memory we take, nor how deep we go.
const (
	maxArgDepth = 64
	maxArgIndex = 4096
	maxArgNodes = 1 << 16
)

// partialArgs builds the arguments of a call from values and the paths they
// belong to. The zero value is ready, and bounds nothing but their shape.
type partialArgs struct {
	root  *argNode
	nodes int
	// bound is asked before anything is kept, until drop gives back what was.
	bound *stream.Bound
	kept  int
	size  int // about that of the text
	// last is the string that goes on with the next value.
	last *argNode
	// begun are the strings whose end did not come, holes the elements that have
	// no value yet.
	begun, holes int
	strange      bool // the latest piece has members that we do not know
	// spare are values that were made together, for those to come.
	spare []argNode
}

// argNode is one value of the arguments.
type argNode struct {
	kind byte // '{', '[', '"', 'v' for a value of its own, 0 for none yet
	open bool // a string that goes on
	// names are those of an object's members, by the places of their values in
	// items; index has them too where there are many. Of a list, items are nil that
	// were passed over.
	names []string
	index map[string]int
	items []*argNode
	text  []byte
}

// fewNames is how many names are searched one by one.
const fewNames = 8

// named returns the place of a member, or -1.
func (n *argNode) named(name string) int {
	if n.index == nil {
		return slices.Index(n.names, name)
	}
	if i, ok := n.index[name]; ok {
		return i
	}
	return -1
}

// add makes room for a member.
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
	errArgPath  = errors.New("a path that is none")
	errArgDeep  = fmt.Errorf("a path deeper than %d", maxArgDepth)
	errArgIndex = fmt.Errorf("an index beyond %d", maxArgIndex)
	errArgMany  = fmt.Errorf("more than %d values", maxArgNodes)
	errArgMuch  = errors.New("more bytes than may be kept")
	errArgList  = errors.New("pieces that are no list")
	errArgTwice = errors.New("a value that is there already")
	errArgValue = errors.New("a value of no kind that is known")
	errArgHole  = errors.New("an element of a list is missing")
	errArgKind  = errors.New("a path through a value that has no members")
)

// pieceMembers are those of a piece that say what it is and where it belongs.
var pieceMembers = []string{"jsonPath", "stringValue", "numberValue", "boolValue", "nullValue", "willContinue"}

// piece is one of {"jsonPath":…, "stringValue":…, "willContinue":…}.
type piece struct {
	path, text string
	value      []byte
	str        bool
	goesOn     bool
	values     int
	strange    bool // it has members that we do not know
}

// add takes one piece. One that two readers could take for two, or that has a
// value of a kind we do not know, is none.
func (a *partialArgs) add(r *jsonwire.Reader) error {
	p, err := readPiece(r)
	a.strange = p.strange
	if err != nil {
		return err
	}
	n, err := a.at(p.path)
	if err != nil {
		return err
	}
	return a.set(n, p.str || p.values == 0, p.text, p.value, p.goesOn)
}

// readPiece reads a piece to its end, whatever is wrong with it.
func readPiece(r *jsonwire.Reader) (p piece, wrong error) {
	var seen members
	null, unknown := false, false
	for key := range r.Object() {
		camel := jsonwire.Camel(key)
		if seen.twice(pieceMembers, camel) {
			wrong = errArgTwice
		}
		switch member := string(camel); {
		case r.Kind() == 'n' && member != "nullValue" && strings.HasSuffix(member, "Value"):
			null = true // a member that is not there, to some
			r.Skip()
		case member == "jsonPath":
			p.path = r.String()
		case member == "stringValue":
			p.text, p.str = r.String(), true
			p.values++
		case member == "numberValue":
			p.value = []byte(r.Number())
			p.values++
		case member == "boolValue":
			p.value = strconv.AppendBool(nil, r.Bool())
			p.values++
		case member == "nullValue":
			p.value = []byte("null")
			p.values++
			if raw := string(r.Raw()); raw != "null" && raw != `"NULL_VALUE"` && raw != "0" {
				wrong = errArgValue
			}
		case member == "willContinue":
			p.goesOn = r.Bool()
		default:
			p.strange = true
			unknown = unknown || strings.HasSuffix(member, "Value")
			r.Skip()
		}
	}
	switch {
	case r.Err() != nil:
		return p, r.Err()
	case wrong != nil:
	case p.values > 1:
		wrong = errArgTwice
	case unknown, null && p.values == 0:
		wrong = errArgValue
	}
	return p, wrong
}

func (a *partialArgs) set(n *argNode, str bool, text string, value []byte, goesOn bool) error {
	if a.last != nil && a.last != n {
		a.last.open = false
	}
	a.last = n
	switch {
	case str && (n.kind == 0 || n.kind == '"' && n.open):
		if n.open {
			a.begun--
		}
		if n.kind, n.open = '"', goesOn; goesOn {
			a.begun++
		}
		if !a.take(len(text)) {
			return errArgMuch
		}
		a.size += len(text)
		n.text = stream.Grow(n.text, text)
		return nil
	case !str && n.kind == 0:
		if !a.take(len(value)) {
			return errArgMuch
		}
		a.size += len(value)
		n.kind, n.text = 'v', value
		return nil
	default:
		return errArgTwice
	}
}

// wanting is what the arguments lack at the end of their call: the rest of a
// string, or an element that a list has no value for.
func (a *partialArgs) wanting() *dragoman.CallProblem {
	switch {
	case a.begun > 0:
		return half()
	case a.holes > 0:
		return badPiece(errArgHole)
	default:
		return nil
	}
}

// at finds the place of a path, and makes what leads to it.
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

// argStep is one segment of a path: a member's name or an element's index.
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

// argNodeBytes is about what a value takes beside its name and its text, and
// argPlaceBytes what its place among others does.
const (
	argNodeBytes  = 120
	argPlaceBytes = 8
)

// grow counts more values, which take so many bytes.
func (a *partialArgs) grow(values, size int) error {
	if a.nodes += values; a.nodes > maxArgNodes {
		return errArgMany
	}
	a.size += 8 * values // commas, quotes, nulls
	if !a.take(size) {
		return errArgMuch
	}
	return nil
}

// node makes a value. The more there are already, the more are made at once.
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

// drop forgets the values.
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

// quotedStep reads a name in brackets and quotes.
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

// escaped reads what stands behind a backslash, and how long it is.
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

// codePoint reads the four digits behind \u, or the eight of a surrogate pair.
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
		return 0, 0 // half of a pair
	}
	return r, 11
}

// unit reads a u and four digits.
func unit(s string) (r rune, ok bool) {
	if len(s) < 5 || s[0] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(s[1:5], 16, 32)
	return rune(n), err == nil
}

// text is the JSON of the arguments; empty where there were none.
func (a *partialArgs) text() string {
	if a.root == nil {
		return ""
	}
	var w jsonwire.Writer
	w.Buf = make([]byte, 0, 8+a.size+a.size/16) // escapes
	a.root.write(&w)
	return string(w.Buf)
}

func (n *argNode) write(w *jsonwire.Writer) {
	if n == nil { // an element that was passed over
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
	default: // a path that failed led to it
		w.Null()
	}
}

// badPiece is the problem of a call of which a piece has no place.
func badPiece(err error) *dragoman.CallProblem {
	return &dragoman.CallProblem{
		Code: codes.ProblemInvalidJSON, Offset: -1,
		Message: "the arguments came in pieces that do not fit together: " + err.Error() + "; make the call again",
	}
}
