package openaichat

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
		writePart(reg.View(), w, p, extra.At(""), rep)
	},
}

func TestPartsRoundTrip(t *testing.T) {
	parts.RoundTrip(t,
		`{"type":"text","text":"x"}`, `{"type":"text","text":"x","new":1}`, `{"type":"refusal","refusal":"no","new":1}`,
		`{"type":"image_url","image_url":{"url":"data:image/png;base64,AA==","detail":"high","new":1}}`, `{"type":"image_url","image_url":{"url":"https://x/y"}}`,
		`{"type":"image_url","image_url":"https://x/y"}`, `{"type":"input_audio","input_audio":{"data":"AA==","format":"mp3"}}`, `{"type":"input_audio","input_audio":"AA=="}`,
		`{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,AA=="}}`, `{"type":"file","file":{"file_id":"f"}}`, `{"type":"file","file":{"file_data":"AA=="}}`,
		`{"type":"video_url","video_url":{"url":"https://x/y.mp4"}}`, `{"type":"text","text":"x","cache_control":{"type":"ephemeral","ttl":"1h"}}`,
		`{"type":"unheard_of","a":[1.0]}`, `{"type":"text","text":5}`, `["not a part"]`, `5`,
	)
}

func TestUnsupportedPartsBecomeNotes(t *testing.T) {
	png := &dragoman.Media{Media: codes.MediaImage, MIME: "image/png", Base64: "iVBORw0="}
	parts.Writes(t, []codectest.WrittenPart{
		{Name: "file by URL", Part: &dragoman.Media{Media: codes.MediaFile, URL: "https://x/a.pdf"}, Want: `{"type":"text","text":"[file https://x/a.pdf not shown]"}`, Severity: dragoman.Serious},
		{Name: "image by id", Part: &dragoman.Media{Media: codes.MediaImage, FileID: "f"}, Want: `{"type":"text","text":"[image f not shown]"}`, Severity: dragoman.Serious},
		{Name: "audio by URL", Part: &dragoman.Media{Media: codes.MediaAudio, URL: "https://x/a.wav", Name: "a.wav"}, Want: `{"type":"text","text":"[audio a.wav not shown]"}`, Severity: dragoman.Serious},
		{Name: "text document", Part: &dragoman.Media{Media: codes.MediaFile, Text: "words"}, Want: `{"type":"text","text":"words"}`, Severity: dragoman.Info},
		{Name: "image for a model without vision", Part: png, Caps: targets.Capabilities{NoImages: true}, Want: `{"type":"text","text":"[image not shown]"}`, Severity: dragoman.Serious},
		{Name: "mp3 as audio/mpeg", Part: &dragoman.Media{Media: codes.MediaAudio, MIME: "audio/mpeg", Base64: "AA=="}, Want: `{"type":"input_audio","input_audio":{"data":"AA==","format":"mp3"}}`, Severity: -1},
		{Name: "cache breakpoint", Part: &dragoman.Text{Text: "x", Cache: &dragoman.CacheHint{TTL: "1h"}}, Caps: targets.Capabilities{CacheBreakpoints: true}, Want: `{"type":"text","text":"x","prompt_cache_breakpoint":{"mode":"explicit","ttl":"12h"}}`, Severity: dragoman.Info},
	})
	parts.Drops(t, &dragoman.Opaque{Dialect: dialectname.Anthropic, Type: "search_result", JSON: json.RawMessage(`{"type":"search_result"}`)})
}

func TestPartsReadCacheBreakpoints(t *testing.T) {
	for _, part := range []string{`{"type":"text","text":"x",`, `{"type":"image_url","image_url":{"url":"https://x"},`} {
		parts.ReadsCache(t, part, `"prompt_cache_breakpoint":{"mode":"explicit","ttl":"12h"}`, true, false)
		parts.ReadsCache(t, part, `"cache_control":{"type":"ephemeral","ttl":"12h"}`, true, true) // from a compatible server
	}
}
