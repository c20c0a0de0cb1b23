package dragoman

import (
	"bytes"
	"errors"
	"time"

	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// Types with hand-written code. The table of specials in internal/repo/storedgen
// lists them.

// MarshalJSON writes a known count as a number and an unknown one as null.
func (c Count) MarshalJSON() ([]byte, error) {
	out := newStorer(0)
	if c.Known {
		out.w.Int(c.N)
	} else {
		out.w.Null()
	}
	return out.done("count")
}

// UnmarshalJSON reads a number, or null as unknown.
func (c *Count) UnmarshalJSON(b []byte) error {
	if string(bytes.TrimSpace(b)) == "null" {
		*c = Count{}
		return nil
	}
	return load(b, "count", false, c, loadCount)
}

// count writes a count if it is known.
func (s *storer) count(name string, c Count) {
	if c.Known {
		s.w.IntField(name, c.N)
	}
}

func loadCount(r *jsonwire.Reader) Count {
	if r.Null() {
		return Count{}
	}
	return Counted(r.Int())
}

func (s *storer) fingerprint(name string, f Fingerprint) {
	if f != (Fingerprint{}) {
		s.w.StringField(name, f.String())
	}
}

func loadFingerprint(r *jsonwire.Reader) Fingerprint {
	var f Fingerprint
	if text := r.String(); text != "" {
		if err := f.UnmarshalText([]byte(text)); err != nil {
			r.Fail(err)
		}
	}
	return f
}

// severity writes a severity even if it is zero, so that readers need not know
// that a missing severity means info.
func (s *storer) severity(name string, v Severity) {
	text, err := v.MarshalText()
	if err != nil {
		s.fail(err)
	}
	s.w.StringField(name, string(text))
}

func loadSeverity(r *jsonwire.Reader) (v Severity) {
	if err := v.UnmarshalText([]byte(r.String())); err != nil {
		r.Fail(err)
	}
	return v
}

// lossKind writes the kind of a loss even if it is empty.
func (s *storer) lossKind(name string, v LossKind) { s.w.StringField(name, string(v)) }

// loadLossKind also reads the spelling of the first version.
func loadLossKind(r *jsonwire.Reader) LossKind {
	if kind := LossKind(r.String()); kind != "synthesised" {
		return kind
	}
	return Synthesized
}

func (s *storer) duration(name string, d time.Duration) {
	if d != 0 {
		s.w.StringField(name, d.String())
	}
}

func loadDuration(r *jsonwire.Reader) time.Duration {
	text := r.String()
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		r.Fail(err)
	}
	return d
}

// time writes Unix seconds, which can represent every date that a server may send, and a second
// field for the nanoseconds.
func (s *storer) time(name string, t time.Time) {
	if !t.IsZero() {
		s.w.IntField(name, t.Unix())
		s.num(name+"_nanos", int64(t.Nanosecond()))
	}
}

// storedTime holds the two fields of a time.
type storedTime struct {
	seconds *int64
	nanos   int64
}

func (t storedTime) time() time.Time {
	if t.seconds == nil {
		return time.Time{}
	}
	return time.Unix(*t.seconds, t.nanos).UTC()
}

// storedCause is an error that was loaded: its text, and the names of the
// sentinels of this package that the original wrapped.
type storedCause struct {
	text string
	is   []string
}

// sentinels are the errors that errors.Is still finds after loading, because
// callers act on them.
var sentinels = []struct {
	name string
	err  error
}{
	{"incomplete_stream", ErrIncompleteStream},
	{"invalid", ErrInvalid},
	{"too_large", ErrTooLarge},
	{"unsupported", ErrUnsupported},
	{"version", ErrVersion},
}

func (c *storedCause) Error() string { return c.text }

func (c *storedCause) Is(target error) bool {
	for _, s := range sentinels {
		if target == s.err {
			for _, name := range c.is {
				if name == s.name {
					return true
				}
			}
		}
	}
	return false
}

// cause writes the text of an error and the sentinels it wraps.
func (s *storer) cause(name string, err error) {
	if err == nil {
		return
	}
	s.w.Key(name)
	s.w.BeginObject()
	s.str("text", err.Error())
	open := false
	for _, sentinel := range sentinels {
		if errors.Is(err, sentinel.err) {
			if !open {
				s.w.Key("is")
				s.w.BeginArray()
				open = true
			}
			s.w.String(sentinel.name)
		}
	}
	if open {
		s.w.EndArray()
	}
	s.w.EndObject()
}

func loadCause(r *jsonwire.Reader) error {
	if r.Null() {
		return nil
	}
	c := new(storedCause)
	for key := range r.Object() {
		switch string(key) {
		case "text":
			c.text = r.String()
		case "is":
			c.is = loadList(r, loadWord[string])
		default:
			r.Skip()
		}
	}
	return c
}
