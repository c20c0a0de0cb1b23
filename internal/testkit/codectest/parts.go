package codectest

import (
	"encoding/json"
	"reflect"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/targets"
)

// PartCodec decodes and encodes single content parts of a dialect.
type PartCodec struct {
	Read  func(obj json.RawMessage) dragoman.Part
	Write func(w *jsonwire.Writer, p dragoman.Part, caps targets.Capabilities, rep *dragoman.Report)
}

func (c PartCodec) write(p dragoman.Part, caps targets.Capabilities) (string, dragoman.Report) {
	var w jsonwire.Writer
	var rep dragoman.Report
	c.Write(&w, p, caps, &rep)
	return string(w.Buf), rep
}

// RoundTrip checks that parts round-trip in their own dialect without a loss.
func (c PartCodec) RoundTrip(t *testing.T, objs ...string) {
	t.Helper()
	for _, obj := range objs {
		t.Run(obj, func(t *testing.T) {
			out, rep := c.write(c.Read(json.RawMessage(obj)), targets.Capabilities{})
			sameJSON(t, out, obj)
			if len(rep.Losses) > 0 {
				t.Errorf("unexpected losses:\n%s", rep)
			}
		})
	}
}

// WrittenPart is a part and its expected encoding.
type WrittenPart struct {
	Name string
	Part dragoman.Part
	Caps targets.Capabilities
	Want string
	// Severity is the severity of the worst loss; negative if there is no loss.
	Severity dragoman.Severity
}

// Writes checks the encoding of parts and the severity of their losses.
func (c PartCodec) Writes(t *testing.T, parts []WrittenPart) {
	t.Helper()
	for _, tc := range parts {
		t.Run(tc.Name, func(t *testing.T) {
			out, rep := c.write(tc.Part, tc.Caps)
			sameJSON(t, out, tc.Want)
			if tc.Severity < 0 {
				if len(rep.Losses) > 0 {
					t.Errorf("unexpected losses:\n%s", rep)
				}
				return
			}
			if rep.Err(tc.Severity) == nil || rep.Err(tc.Severity+1) != nil {
				t.Errorf("want a loss with severity %v:\n%s", tc.Severity, rep)
			}
		})
	}
}

// Drops checks that a part is dropped with a serious loss.
func (c PartCodec) Drops(t *testing.T, p dragoman.Part) {
	t.Helper()
	out, rep := c.write(p, targets.Capabilities{})
	if out != "" || rep.Err(dragoman.Serious) == nil {
		t.Errorf("wrote %q and reported\n%s", out, rep)
	}
}

// ReadsCache checks how the field of a cache breakpoint with lifetime 12h is decoded in a
// part, given without its closing brace: whether the hint is understood, and whether
// its spelling is kept.
func (c PartCodec) ReadsCache(t *testing.T, part, field string, understood, kept bool) {
	t.Helper()
	var hint *dragoman.CacheHint
	var extra *dragoman.Extra
	switch p := c.Read(json.RawMessage(part + field + "}")).(type) {
	case *dragoman.Text:
		hint, extra = p.Cache, p.Extra
	case *dragoman.Media:
		hint, extra = p.Cache, p.Extra
	default:
		t.Errorf("%s: read as %T", part, p)
	}
	if got := hint != nil && hint.TTL == "12h"; got != understood || (extra != nil) != kept {
		t.Errorf("%s%s}: hint %+v, extra %+v", part, field, hint, extra)
	}
}

func sameJSON(t *testing.T, got, want string) {
	t.Helper()
	var g, w any
	if err := json.Unmarshal([]byte(got), &g); err != nil {
		t.Fatalf("got is not valid JSON: %v\n%s", err, got)
	}
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		t.Fatalf("want is not valid JSON: %v\n%s", err, want)
	}
	if !reflect.DeepEqual(g, w) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
