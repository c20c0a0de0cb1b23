package blockwire_test

import (
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/blockwire"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
)

func TestUsualBlockByRole(t *testing.T) {
	image := &dragoman.Media{Media: codes.MediaImage, MIME: "image/png", Base64: "AA=="}
	hosted := call("1")
	hosted.Hosted = true
	for _, tc := range []struct {
		name string
		part dragoman.Part
		role string
		want string // kind of the block; empty for no block
		lost dragoman.LossKind
	}{
		{"text", text("a"), blockwire.User, "text", ""},
		{"blank text", text(" "), blockwire.System, "", dragoman.Dropped},
		{"refusal becomes text", &dragoman.Refusal{Text: "no"}, "model", "text", dragoman.Lowered},
		{"data becomes text", &dragoman.Data{JSON: []byte("{}")}, blockwire.User, "text", ""},
		{"image", image, blockwire.User, "media", ""},
		{"image becomes a note", image, "model", "text", dragoman.Dropped},
		{"image is dropped", image, blockwire.System, "", dragoman.Dropped},
		{"call", call("1"), "model", "tool_call", ""},
		{"call is dropped", call("1"), blockwire.User, "", dragoman.Dropped},
		{"hosted call is dropped", hosted, "model", "", dragoman.Dropped},
		{"result", result("1"), blockwire.User, "tool_result", ""},
		{"result is dropped", result("1"), "model", "", dragoman.Dropped},
		{"thinking", thinking(), "model", "reasoning", ""},
		{"thinking is dropped", thinking(), blockwire.User, "", dragoman.Dropped},
		{"opaque of the same dialect", &dragoman.Opaque{Dialect: toyDialect, Type: "x", JSON: []byte("{}")}, "model", "opaque", ""},
		{"opaque of another dialect is dropped", &dragoman.Opaque{Dialect: "other", Type: "x", JSON: []byte("{}")}, "model", "", dragoman.Dropped},
	} {
		t.Run(tc.name+" as "+tc.role, func(t *testing.T) {
			p := &blockwire.Plan{Rules: blockwire.Rules{Dialect: toyDialect, Assistant: "model"}}
			rep := new(dragoman.Report)
			b, ok := p.BlockFor(&dragoman.Message{}, tc.part, extra.At("/x"), tc.role, rep, func(*dragoman.Message, *dragoman.Reasoning) bool { return true })
			if ok != (tc.want != "") || ok && b.Part.Kind() != tc.want {
				t.Errorf("got %+v, %v", b.Part, ok)
			}
			if reported := len(rep.Losses) > 0; reported != (tc.lost != "") || reported && (rep.Losses[0].Kind != tc.lost || rep.Losses[0].Path != "/x") {
				t.Errorf("reported %s", rep)
			}
		})
	}
}

func TestSignatureOnlyForItsOwnDialect(t *testing.T) {
	own, other := &dragoman.Origin{Dialect: toyDialect}, &dragoman.Origin{Dialect: "other"}
	for _, tc := range []struct {
		name      string
		part      dragoman.Reasoning
		origin    *dragoman.Origin
		signature string
		shows     bool
		lost      int
	}{
		{"same dialect", dragoman.Reasoning{Text: "hm", Signature: "s"}, own, "s", true, 0},
		{"no origin", dragoman.Reasoning{Text: "hm", Signature: "s"}, nil, "s", true, 0},
		{"another's", dragoman.Reasoning{Text: "hm", Signature: "s"}, other, "", true, 1},
		{"another dialect, by the origin of the part", dragoman.Reasoning{Text: "hm", Signature: "s", Origin: other}, own, "", true, 1},
		{"another dialect, with an item id", dragoman.Reasoning{ID: "rs_1", Text: "hm"}, other, "", true, 1},
		{"same dialect, signature without text", dragoman.Reasoning{Signature: "s"}, own, "s", true, 0},
		{"another dialect, signature without text", dragoman.Reasoning{Signature: "s"}, other, "", false, 1},
		{"same dialect, redacted", dragoman.Reasoning{Redacted: true, Encrypted: "e"}, own, "", true, 0},
		{"another's, withheld", dragoman.Reasoning{Redacted: true, Encrypted: "e"}, other, "", false, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			rep := new(dragoman.Report)
			signature := blockwire.Signature(&tc.part, tc.origin, toyDialect, extra.At("/x"), rep)
			if shows := blockwire.IsShown(&tc.part, tc.origin, toyDialect); signature != tc.signature || shows != tc.shows || len(rep.Losses) != tc.lost {
				t.Errorf("signature %q, shown %v\n%s", signature, shows, rep)
			}
		})
	}
}
