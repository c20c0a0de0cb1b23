package openairesponses

import (
	"encoding/json"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/testkit/codectest"
	"github.com/dragoman-go/dragoman/interop"
	"github.com/dragoman-go/dragoman/targets"
)

var parts = codectest.PartCodec{
	Read: readPart,
	Write: func(w *jsonwire.Writer, p dragoman.Part, caps targets.Capabilities, rep *dragoman.Report) {
		reg := interop.New(interop.Options{Codecs: toolCodecs, Target: targets.Target{Dialect: name, Caps: caps}, Limits: Codec{}.Limits()})
		writePart(reg.View(), w, p, false, extra.At(""), rep)
	},
}

func TestPartsRoundTrip(t *testing.T) {
	parts.RoundTrip(t,
		`{"type":"input_text","text":"x"}`, `{"type":"text","text":"x"}`, `{"type":"refusal","refusal":"no"}`,
		`{"type":"input_image","image_url":"data:image/png;base64,AA==","detail":"low"}`, `{"type":"input_image","file_id":"f","detail":"auto"}`,
		`{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,AA=="}`, `{"type":"input_file","file_url":"https://x/a.pdf"}`,
		`{"type":"input_file","filename":"a","file_data":"AA=="}`, `{"type":"computer_screenshot","image_url":"x"}`, `null`,
	)
}

func TestUnsupportedPartsBecomeNotes(t *testing.T) {
	parts.Writes(t, []codectest.WrittenPart{
		{Name: "text document", Part: &dragoman.Media{Media: codes.MediaFile, Text: "words"}, Want: `{"type":"input_text","text":"words"}`, Severity: dragoman.Info},
		{Name: "audio", Part: &dragoman.Media{Media: codes.MediaAudio, MIME: "audio/wav", Base64: "AA=="}, Want: `{"type":"input_text","text":"[audio not shown]"}`, Severity: dragoman.Serious},
		{Name: "file without a name", Part: &dragoman.Media{Media: codes.MediaFile, MIME: "application/pdf", Base64: "AA=="}, Want: `{"type":"input_file","filename":"file","file_data":"data:application/pdf;base64,AA=="}`, Severity: dragoman.Info},
	})
	parts.Drops(t, &dragoman.Opaque{Dialect: dialectname.Anthropic, Type: "search_result", JSON: json.RawMessage(`{"type":"search_result"}`)})
}

func TestPartsReadCacheBreakpoints(t *testing.T) {
	for _, part := range []string{`{"type":"input_text","text":"x",`, `{"type":"input_image","image_url":"https://x",`} {
		parts.ReadsCache(t, part, `"prompt_cache_breakpoint":{"mode":"explicit","ttl":"12h"}`, true, false)
		parts.ReadsCache(t, part, `"cache_control":{"type":"ephemeral","ttl":"12h"}`, false, true)
	}
}
