package blockwire_test

import (
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/blockwire"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
)

func TestWhatAPartBecomesDependsOnWhoSaysIt(t *testing.T) {
	image := &dragoman.Media{Media: codes.MediaImage, MIME: "image/png", Base64: "AA=="}
	hosted := call("1")
	hosted.Hosted = true
	for _, tc := range []struct {
		name string
		part dragoman.Part
		role string
		want string // kind of the block; empty for none
		lost dragoman.LossKind
	}{
		{"a text is a text", text("a"), blockwire.User, "text", ""},
		{"a system prompt has no blank one", text(" "), blockwire.System, "", dragoman.Dropped},
		{"a refusal is a text", &dragoman.Refusal{Text: "no"}, "model", "text", dragoman.Lowered},
		{"data is its JSON", &dragoman.Data{JSON: []byte("{}")}, blockwire.User, "text", ""},
		{"the user shows pictures", image, blockwire.User, "media", ""},
		{"of the model's a note stays", image, "model", "text", dragoman.Dropped},
		{"the system shows none", image, blockwire.System, "", dragoman.Dropped},
		{"the model calls", call("1"), "model", "tool_call", ""},
		{"nobody else does", call("1"), blockwire.User, "", dragoman.Dropped},
		{"a call that its provider ran is none to run", hosted, "model", "", dragoman.Dropped},
		{"the user answers", result("1"), blockwire.User, "tool_result", ""},
		{"nobody else does", result("1"), "model", "", dragoman.Dropped},
		{"the model thinks", thinking(), "model", "reasoning", ""},
		{"nobody else does", thinking(), blockwire.User, "", dragoman.Dropped},
		{"what is opaque goes home", &dragoman.Opaque{Dialect: toyDialect, Type: "x", JSON: []byte("{}")}, "model", "opaque", ""},
		{"and nowhere else", &dragoman.Opaque{Dialect: "other", Type: "x", JSON: []byte("{}")}, "model", "", dragoman.Dropped},
	} {
		t.Run(tc.name+" as "+tc.role, func(t *testing.T) {
			p := &blockwire.Plan{Rules: blockwire.Rules{Dialect: toyDialect, Assistant: "model"}}
			rep := new(dragoman.Report)
			b, ok := p.Usual(&dragoman.Message{}, tc.part, extra.At("/x"), tc.role, rep, func(*dragoman.Message, *dragoman.Reasoning) bool { return true })
			if ok != (tc.want != "") || ok && b.Part.Kind() != tc.want {
				t.Errorf("got %+v, %v", b.Part, ok)
			}
			if reported := len(rep.Losses) > 0; reported != (tc.lost != "") || reported && (rep.Losses[0].Kind != tc.lost || rep.Losses[0].Path != "/x") {
				t.Errorf("reported %s", rep)
			}
		})
	}
}

func TestAnAnswersThinkingIsShownWithTheSignatureOfItsOwnDialectOnly(t *testing.T) {
	own, other := &dragoman.Origin{Dialect: toyDialect}, &dragoman.Origin{Dialect: "other"}
	for _, tc := range []struct {
		name      string
		part      dragoman.Reasoning
		origin    *dragoman.Origin
		signature string
		shows     bool
		lost      int
	}{
		{"its own", dragoman.Reasoning{Text: "hm", Signature: "s"}, own, "s", true, 0},
		{"authored here", dragoman.Reasoning{Text: "hm", Signature: "s"}, nil, "s", true, 0},
		{"another's", dragoman.Reasoning{Text: "hm", Signature: "s"}, other, "", true, 1},
		{"another's, by the origin of the part", dragoman.Reasoning{Text: "hm", Signature: "s", Origin: other}, own, "", true, 1},
		{"another's, with the identity of an item", dragoman.Reasoning{ID: "rs_1", Text: "hm"}, other, "", true, 1},
		{"its own without words, which the signature is for", dragoman.Reasoning{Signature: "s"}, own, "s", true, 0},
		{"another's without words", dragoman.Reasoning{Signature: "s"}, other, "", false, 1},
		{"its own, withheld", dragoman.Reasoning{Redacted: true, Encrypted: "e"}, own, "", true, 0},
		{"another's, withheld", dragoman.Reasoning{Redacted: true, Encrypted: "e"}, other, "", false, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			rep := new(dragoman.Report)
			signature := blockwire.Signature(&tc.part, tc.origin, toyDialect, extra.At("/x"), rep)
			if shows := blockwire.Shows(&tc.part, tc.origin, toyDialect); signature != tc.signature || shows != tc.shows || len(rep.Losses) != tc.lost {
				t.Errorf("signature %q, shown %v\n%s", signature, shows, rep)
			}
		})
	}
}
