package wirekit

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/targets"
	"github.com/go-json-experiment/json/jsontext"
)

// Setting is a line in the table of a dialect's request fields. D decodes requests, E encodes
// them. A line is one of:
//   - a plain field: Field and Canonical
//   - a field that the API lacks: Canonical and Lost
//   - an object of settings: Field and Fields
//   - a field that its API treats in its own way: with Decode, Encode or both
type Setting[D, E any] struct {
	// Field is the name on the wire. A line without one only encodes or reports a loss.
	Field string
	// Canonical is the field of the request. If a line concerns several fields, it is
	// the first of them.
	Canonical *Canonical
	// Lost is reported if the request sets a field that the API lacks.
	Lost Lost
	// Fields are the fields of an object. An object without a field to write is left out.
	Fields []Setting[D, E]
	// Known are the fields of the value that Decode reads.
	Known jsonwire.Known
	// Null means that Decode reads null. Otherwise null is kept like an unknown field.
	Null bool
	// Loose means that a value of another type is kept like an unknown field. Otherwise
	// it is an error.
	Loose bool
	// Decode reads the value; nil reads Canonical.
	Decode func(d D)
	// Encode writes the field, or nothing; nil writes Canonical if it is set.
	Encode func(e E)
	// EncodeOrFail is Encode for a field that can make a request impossible to encode.
	EncodeOrFail func(e E) error
	// Superseded reports whether a stored value is left out when encoding. If nil, the
	// value is left out if this line wrote the field.
	Superseded func(e E, kept []byte) bool
}

// Lost describes the loss of a field that an API lacks.
type Lost struct {
	severity dragoman.Severity
	detail   string
}

// LostInfo describes a loss that changes no response.
func LostInfo(detail string) Lost { return Lost{dragoman.Info, detail} }

// LostWarn describes a loss that may change the response.
func LostWarn(detail string) Lost { return Lost{dragoman.Warn, detail} }

// Settings is the table of request fields of a dialect. The order of its lines is the
// order on the wire and in the report. It is immutable.
type Settings[D, E any] struct {
	of    SettingsOf
	top   *settingsLevel[D, E]
	known jsonwire.Known
	size  int
}

// SettingsOf configures a table.
type SettingsOf struct {
	Dialect dragoman.Dialect
	// Same returns the spelling that the table uses for a name. If nil, names have one
	// spelling.
	Same func(name []byte) []byte
	// KeepUnset means that a stored value is written only if its canonical field is not
	// set, even if no line wrote the field.
	KeepUnset bool
}

// settingsLevel are the lines of one object on the wire.
type settingsLevel[D, E any] struct {
	prefix string // JSON pointer of the object
	lines  []settingsLine[D, E]
	byName map[string]*settingsLine[D, E]
	// quick finds most lines without the map: it has the first line of each slot.
	quick [64]*settingsLine[D, E]
}

// slot returns the index of a name in quick.
func slot(name []byte) int {
	n := len(name)
	return (n*5 + int(name[0])*3 + int(name[n-1])*7) & 63
}

type settingsLine[D, E any] struct {
	Setting[D, E]
	id    int
	kind  jsontext.Kind        // kind of the value, for Loose
	below *settingsLevel[D, E] // level of Fields
}

// NewSettings returns the table with these lines.
func NewSettings[D, E any](of SettingsOf, lines []Setting[D, E]) *Settings[D, E] {
	t := &Settings[D, E]{of: of}
	t.top, t.known = t.level("", lines)
	if t.size > maxSettings {
		panic("wirekit: more settings than maxSettings")
	}
	return t
}

func (t *Settings[D, E]) level(prefix string, lines []Setting[D, E]) (*settingsLevel[D, E], jsonwire.Known) {
	l := &settingsLevel[D, E]{
		prefix: prefix, lines: make([]settingsLine[D, E], len(lines)),
		byName: make(map[string]*settingsLine[D, E], len(lines)),
	}
	known := make(jsonwire.Known, len(lines))
	for i, s := range lines {
		line := &l.lines[i]
		line.Setting, line.id, line.kind = s, t.size, '{'
		if s.Canonical != nil && s.Canonical.kind != 0 {
			line.kind = s.Canonical.kind
		}
		t.size++
		if s.Fields != nil {
			below, fields := t.level(prefix+"/"+s.Field, s.Fields)
			line.below, line.Known = below, fields
		}
		if s.Field != "" {
			l.byName[s.Field] = line
			if at := slot([]byte(s.Field)); l.quick[at] == nil {
				l.quick[at] = line
			}
			known[s.Field] = line.Known
		}
	}
	return l, known
}

// Known returns the fields of a request that are read.
func (t *Settings[D, E]) Known() jsonwire.Known { return t.known }

// Decode reads the value of the request field key. A null and an unknown field are
// stored in the extras of the request.
func (t *Settings[D, E]) Decode(d D, r *jsonwire.Reader, req *dragoman.Request, key []byte) {
	t.decode(t.top, d, r, req, key)
}

func (t *Settings[D, E]) decode(l *settingsLevel[D, E], d D, r *jsonwire.Reader, req *dragoman.Request, key []byte) {
	s := t.find(l, key)
	switch {
	case s == nil, r.Kind() == 'n' && !s.Null, s.Loose && r.Kind() != s.kind:
		extra.Add(&req.Extra, t.of.Dialect, l.prefix, key, r.Raw())
	case s.Decode != nil:
		s.Decode(d)
	case s.below != nil:
		empty := true
		for key := range r.Object() {
			empty = false
			t.decode(s.below, d, r, req, key)
		}
		if empty && r.Err() == nil {
			extra.Add(&req.Extra, t.of.Dialect, l.prefix, []byte(s.Field), []byte("{}"))
		}
	default:
		if keep := s.Canonical.read(r, req); keep != nil {
			extra.Add(&req.Extra, t.of.Dialect, l.prefix, []byte(s.Field), keep)
		}
	}
}

func (t *Settings[D, E]) find(l *settingsLevel[D, E], name []byte) *settingsLine[D, E] {
	if t.of.Same != nil {
		name = t.of.Same(name)
	}
	if len(name) == 0 {
		return nil
	}
	if s := l.quick[slot(name)]; s == nil || s.Field == string(name) {
		return s
	}
	return l.byName[string(name)]
}

// RequestWriter holds the request and the destination that the lines of a table write
// to.
type RequestWriter struct {
	W    *jsonwire.Writer
	Req  *dragoman.Request
	Rep  *dragoman.Report
	Caps *targets.Capabilities
	// written records which lines wrote a field.
	written [maxSettings]bool
}

// maxSettings limits the number of lines in a table.
const maxSettings = 64

// Write writes the request: its fields, then those that are stored for the dialect, unless a
// line supersedes them. It reports the losses of fields that the API lacks. foreign writes or
// reports the fields that are stored for other dialects; nil reports them all.
func (t *Settings[D, E]) Write(e E, to *RequestWriter, foreign func()) error {
	to.W.BeginObject()
	if err := t.encode(t.top, e, to); err != nil {
		return err
	}
	t.writeStored(t.top, e, to)
	if foreign != nil {
		foreign()
	} else {
		extra.Report(to.Rep, to.Req.Extra, t.of.Dialect, extra.At(""))
	}
	to.W.EndObject()
	return nil
}

func (t *Settings[D, E]) encode(l *settingsLevel[D, E], e E, to *RequestWriter) error {
	for i := range l.lines {
		s := &l.lines[i]
		start := len(to.W.Buf)
		switch {
		case s.EncodeOrFail != nil:
			if err := s.EncodeOrFail(e); err != nil {
				return err
			}
		case s.Encode != nil:
			s.Encode(e)
		case s.below != nil:
			if err := t.object(s, e, to); err != nil {
				return err
			}
		case s.Canonical != nil:
			s.plain(to)
		}
		to.written[s.id] = len(to.W.Buf) != start
	}
	return nil
}

// object writes an object of settings. One without a field is left out.
func (t *Settings[D, E]) object(s *settingsLine[D, E], e E, to *RequestWriter) error {
	w := to.W
	mark := len(w.Buf)
	w.Key(s.Field)
	w.BeginObject()
	start := len(w.Buf)
	if err := t.encode(s.below, e, to); err != nil {
		return err
	}
	t.writeStored(s.below, e, to)
	if len(w.Buf) == start {
		w.Buf = w.Buf[:mark]
		return nil
	}
	w.EndObject()
	return nil
}

// plain writes a canonical field that needs no function of its dialect.
func (s *settingsLine[D, E]) plain(to *RequestWriter) {
	c := s.Canonical
	switch {
	case s.Field == "":
		asks := c.asks
		if asks == nil {
			asks = c.set
		}
		if asks(to.Req) {
			to.Rep.Add(dragoman.Dropped, s.Lost.severity, c.path, s.Lost.detail)
		}
	case c.write != nil && c.set(to.Req) && !(c.sampler && refusesSampler(to.Caps, c.path, to.Rep)):
		to.W.Key(s.Field)
		c.write(to.W, to.Req, to.Rep)
	}
}

// writeStored writes the fields of the request that are stored for the dialect, unless a
// line supersedes them.
func (t *Settings[D, E]) writeStored(l *settingsLevel[D, E], e E, to *RequestWriter) {
	extra.WriteBut(to.W, to.Req.Extra, t.of.Dialect, l.prefix, func(f dragoman.Field) bool {
		s := t.find(l, []byte(f.Path[len(l.prefix)+1:]))
		switch {
		case s == nil:
			return false
		case s.Superseded != nil:
			return s.Superseded(e, f.Value)
		default:
			return to.written[s.id] || t.of.KeepUnset && s.Canonical != nil && s.Canonical.set(to.Req)
		}
	})
}
