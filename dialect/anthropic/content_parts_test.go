package anthropic

import (
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
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
		switch p := p.(type) {
		case *dragoman.Text:
			writeText(w, p, extra.At(""), rep)
		case *dragoman.Media:
			writeMedia(reg.View(), w, p, extra.At(""), rep)
		case *dragoman.Opaque:
			w.Raw(p.JSON)
		}
	},
}

func TestPartsRoundTrip(t *testing.T) {
	parts.RoundTrip(t,
		`{"type":"text","text":"x","cache_control":{"type":"ephemeral","ttl":"1h"},"citations":[{"type":"char_location"}]}`,
		`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}}`, `{"type":"image","source":{"type":"url","url":"https://x/y"}}`,
		`{"type":"document","source":{"type":"text","media_type":"text/plain","data":"x"},"title":"t"}`, `{"type":"document","source":{"type":"file","file_id":"f"},"context":"c"}`,
		`{"type":"document","source":{"type":"content","content":[]}}`, `{"type":"search_result","title":"x"}`,
	)
}

func TestUnsupportedPartsBecomeNotes(t *testing.T) {
	parts.Writes(t, []codectest.WrittenPart{
		{Name: "video", Part: &dragoman.Media{Media: codes.MediaVideo, URL: "https://x/a.mp4"}, Want: `{"type":"text","text":"[video https://x/a.mp4 not shown]"}`, Severity: dragoman.Serious},
	})
}

func TestPartsReadCacheBreakpoints(t *testing.T) {
	for _, part := range []string{`{"type":"text","text":"x",`, `{"type":"image","source":{"type":"url","url":"https://x"},`} {
		parts.ReadsCache(t, part, `"prompt_cache_breakpoint":{"mode":"explicit","ttl":"12h"}`, false, true)
		parts.ReadsCache(t, part, `"cache_control":{"type":"ephemeral","ttl":"12h"}`, true, false)
	}
}

func TestUnknownCacheLifetimeIsOmitted(t *testing.T) {
	var w jsonwire.Writer
	var rep dragoman.Report
	w.BeginObject()
	writeCacheControl(&w, &dragoman.CacheHint{TTL: "x"}, extra.At(""), &rep)
	w.EndObject()
	if len(rep.Losses) != 1 || rep.Losses[0].Kind != dragoman.Lowered || !strings.Contains(rep.Losses[0].Detail, `cache lifetime "x" is unknown; left to the provider`) {
		t.Errorf("%s", rep)
	}
}
