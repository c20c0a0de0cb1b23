package codectest

import (
	"encoding/json"
	"reflect"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/targets"
)

// PartCodec reads and writes single content parts of a dialect.
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

// RoundTrip checks that parts come back to their own dialect without a loss.
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

// WrittenPart is a part and the object that is written for it.
type WrittenPart struct {
	Name string
	Part dragoman.Part
	Caps targets.Capabilities
	Want string
	// Severity of the worst loss; negative for none.
	Severity dragoman.Severity
}

// Writes checks what is written for parts, and how bad the losses are.
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
				t.Errorf("want a loss that is %v:\n%s", tc.Severity, rep)
			}
		})
	}
}

// Drops checks that nothing is written for a part, with a serious loss.
func (c PartCodec) Drops(t *testing.T, p dragoman.Part) {
	t.Helper()
	out, rep := c.write(p, targets.Capabilities{})
	if out != "" || rep.Err(dragoman.Serious) == nil {
		t.Errorf("wrote %q, and reported\n%s", out, rep)
	}
}

// ReadsCache checks how the field of a cache breakpoint with the lifetime 12h is
// read in a part that is given without its last brace: whether it is understood,
// and whether its spelling is kept.
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
		t.Errorf("%s%s}: hint %+v, kept %+v", part, field, hint, extra)
	}
}

func sameJSON(t *testing.T, got, want string) {
	t.Helper()
	var g, w any
	if err := json.Unmarshal([]byte(got), &g); err != nil {
		t.Fatalf("got no JSON: %v\n%s", err, got)
	}
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		t.Fatalf("want no JSON: %v\n%s", err, want)
	}
	if !reflect.DeepEqual(g, w) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
