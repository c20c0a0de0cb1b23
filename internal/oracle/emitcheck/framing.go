package emitcheck

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// lineReader splits bytes into lines that end in LF only: a client that splits at LF must not
// find a CR.
type lineReader struct {
	rest []byte
	// passThrough: the bytes may be from another server, which may end lines in CR LF.
	passThrough bool
}

func (r *lineReader) feed(p []byte, line func([]byte) error) error {
	for {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			r.rest = append(r.rest, p...)
			return nil
		}
		l := p[:i]
		if len(r.rest) > 0 {
			l = append(r.rest, l...) //nolint:gocritic // the rest is the beginning of this line
		}
		if r.passThrough {
			l = bytes.TrimSuffix(l, []byte{'\r'})
		}
		if bytes.IndexByte(l, '\r') >= 0 {
			return fmt.Errorf("a carriage return in a line: %.80q", l)
		}
		if err := line(l); err != nil {
			return err
		}
		r.rest, p = r.rest[:0], p[i+1:]
	}
}

// sseFraming is server-sent events as the dialects use them: an event name if the dialect has
// names, one line of data, a blank line; comments only between events.
type sseFraming struct {
	named   bool
	checker frameChecker

	lines   lineReader
	n       int
	inside  bool // inside an event
	comment bool // a blank line may follow a comment
	name    string
	hasName bool
	data    []byte
	hasData bool
}

func (f *sseFraming) feed(p []byte) error { return f.lines.feed(p, f.line) }

func (f *sseFraming) bad(rule string, args ...any) error {
	return fmt.Errorf("event %d: %s", f.n, fmt.Sprintf(rule, args...))
}

func (f *sseFraming) line(l []byte) error {
	if len(l) == 0 {
		return f.blank()
	}
	field, value, found := bytes.Cut(l, []byte{':'})
	if found && len(field) == 0 {
		if f.inside {
			return f.bad("a comment inside an event")
		}
		f.comment = true
		return nil
	}
	value = bytes.TrimPrefix(value, []byte{' '})
	f.inside = true
	switch string(field) {
	case "event":
		if f.hasName || f.hasData {
			return f.bad("a second event name, or an event name after the data")
		}
		f.name, f.hasName = string(value), true
	case "data":
		if f.hasData {
			return f.bad("more than one line of data")
		}
		f.data, f.hasData = append(f.data[:0], value...), true
	default:
		return f.bad("unknown field %.40q", field)
	}
	return nil
}

func (f *sseFraming) blank() error {
	if !f.inside {
		if !f.comment {
			return f.bad("a blank line without an event")
		}
		f.comment = false
		return nil
	}
	if !f.hasData {
		return f.bad("an event name without data")
	}
	name, n := f.name, f.n
	marker := string(f.data) == "[DONE]"
	switch {
	case f.named && !f.hasName && !marker:
		return f.bad("data without an event name")
	case !f.named && f.hasName, marker && f.hasName:
		return f.bad("event name %q in a dialect without event names", name)
	}
	f.n++
	f.inside, f.comment, f.name, f.hasName, f.hasData = false, false, "", false, false
	return f.checker.next(n, name, f.data)
}

func (f *sseFraming) end() error {
	if len(f.lines.rest) > 0 || f.inside {
		return f.bad("the stream ends inside an event")
	}
	return f.checker.end()
}

// lines is newline-delimited JSON: one object per line, and no blank lines, which clients would
// try to parse.
type lines struct {
	checker frameChecker
	lines   lineReader
	n       int
}

func (f *lines) feed(p []byte) error {
	return f.lines.feed(p, func(l []byte) error {
		n := f.n
		f.n++
		if len(l) == 0 {
			return fmt.Errorf("line %d: a blank line", n)
		}
		return f.checker.next(n, "", l)
	})
}

func (f *lines) end() error {
	if len(f.lines.rest) > 0 {
		return fmt.Errorf("line %d: the stream ends inside a line", f.n)
	}
	return f.checker.end()
}

// array is one JSON array whose elements arrive one by one. Each is checked when it is
// complete.
type array struct {
	checker frameChecker
	n       int
	step    func(*array, byte) error // what may come next; nil at the start

	element         []byte
	depth           int
	quoted, escaped bool
}

func (f *array) feed(p []byte) error {
	if f.step == nil {
		f.step = (*array).begin
	}
	for _, c := range p {
		if err := f.step(f, c); err != nil {
			return err
		}
	}
	return nil
}

func (f *array) end() error {
	switch {
	case f.step == nil:
		return errNoArray
	case f.depth >= 0:
		return f.bad("the array has no end")
	}
	return f.checker.end()
}

var errNoArray = errors.New("the body is not an array")

// bad returns an error about the next element.
func (f *array) bad(rule string) error { return fmt.Errorf("element %d: not JSON: %s", f.n, rule) }

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

func (f *array) begin(c byte) error {
	switch {
	case c == '[':
		f.step = (*array).first
	case !isSpace(c):
		return errNoArray
	}
	return nil
}

// first reads the first element, or the end of an empty array.
func (f *array) first(c byte) error {
	if c == ']' {
		return f.close()
	}
	return f.next(c)
}

func (f *array) next(c byte) error {
	switch {
	case isSpace(c):
		return nil
	case c != '{':
		return f.bad("expected an object")
	}
	f.step = (*array).inElement
	return f.inElement(c)
}

func (f *array) inElement(c byte) error {
	f.element = append(f.element, c)
	switch {
	case f.escaped:
		f.escaped = false
	case f.quoted:
		f.escaped, f.quoted = c == '\\', c != '"'
	case c == '"':
		f.quoted = true
	case c == '{', c == '[':
		f.depth++
	case c == '}', c == ']':
		f.depth--
	}
	if f.depth > 0 {
		return nil
	}
	n, element := f.n, f.element
	f.n, f.element, f.step = n+1, f.element[:0], (*array).afterArray
	return f.checker.next(n, "", element)
}

func (f *array) afterArray(c byte) error {
	switch {
	case c == ',':
		f.step = (*array).next
	case c == ']':
		return f.close()
	case !isSpace(c):
		return f.bad("expected a comma")
	}
	return nil
}

func (f *array) close() error {
	f.step, f.depth = (*array).isComplete, -1
	return nil
}

func (f *array) isComplete(c byte) error {
	if !isSpace(c) {
		return fmt.Errorf("after the array: %.80q", c)
	}
	return nil
}

// base is shared by the judges of all streams: each stream has exactly one end.
type base struct {
	finished string // what ended the stream; empty until then
	// passThrough: the stream may contain values from another server; see [Order].
	passThrough bool
}

func (b *base) setPassThrough()     { b.passThrough = true }
func (b *base) isPassThrough() bool { return b.passThrough }

func (b *base) check(kind string, n int, typ string) *check {
	return &check{where: place(kind, n, typ), passThrough: b.passThrough}
}

func (b *base) open(c *check) {
	if b.finished != "" {
		c.bad("", "after the end, which was %s", b.finished)
	}
}

func (b *base) closed() error {
	if b.finished == "" {
		return errors.New("the stream has no end")
	}
	return nil
}

func place(kind string, n int, typ string) string {
	if typ == "" {
		return fmt.Sprintf("%s %d", kind, n)
	}
	return fmt.Sprintf("%s %d (%s)", kind, n, strings.ToValidUTF8(typ, "?"))
}
