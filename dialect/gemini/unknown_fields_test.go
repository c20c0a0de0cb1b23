package gemini_test

import (
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/gemini"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
)

func extraFields(p dragoman.Part) string {
	var e *dragoman.Extra
	switch p := p.(type) {
	case *dragoman.Text:
		e = p.Extra
	case *dragoman.Reasoning:
		e = p.Extra
	case *dragoman.ToolCall:
		e = p.Extra
	}
	var out []string
	for _, f := range e.For(dialectname.Gemini) {
		out = append(out, f.Path+"="+string(f.Value))
	}
	return strings.Join(out, " ")
}

func TestR11_UnknownPartFieldIsKept(t *testing.T) {
	const text, call = `{"text":"hello","vendorNote":7}`, `{"functionCall":{"name":"f","args":{},"c/d":2},"vendorNote":8,"a/b":1}`
	for what, resp := range map[string]*dragoman.Response{
		"whole":    decodeResponse(t, responseBody("STOP", text+","+call)),
		"streamed": collect(t, sseStream(chunk("", text), chunk("STOP", call))),
	} {
		parts := resp.Output[0].Parts
		if len(parts) != 2 {
			t.Fatalf("%s: %d parts", what, len(parts))
		}
		if text, ok := parts[0].(*dragoman.Text); !ok || text.Text != "hello" || extraFields(parts[0]) != "/vendorNote=7" {
			t.Errorf("%s: text %+v, fields %s", what, parts[0], extraFields(parts[0]))
		}
		c, ok := parts[1].(*dragoman.ToolCall)
		if !ok || c.Problem != nil || resp.Stop.Reason != dragoman.StopToolCalls {
			t.Fatalf("%s: call %+v, stop %s", what, parts[1], resp.Stop.Reason)
		}
		for _, want := range []string{"/part/vendorNote=8", "/part/a~1b=1", "/c~1d=2"} {
			if !strings.Contains(" "+extraFields(c)+" ", " "+want+" ") {
				t.Errorf("%s: call lacks field %s: %s", what, want, extraFields(c))
			}
		}
	}
}

func TestR11_UnknownPartIsKept(t *testing.T) {
	p, ok := decodeResponse(t, responseBody("STOP", `{"newThing":{"a":1},"thoughtSignature":"s"}`)).Output[0].Parts[0].(*dragoman.Opaque)
	if !ok || p.Type != "newThing" {
		t.Errorf("%+v", p)
	}
}

func TestR11_FieldsOfLaterTextChunkAreKept(t *testing.T) {
	stream := sseStream(chunk("", `{"text":"a"}`), chunk("", `{"text":"b","partMetadata":{"y":2}}`), chunk("STOP", `{"text":"","speechMetadata":{"z":3}}`))
	resp := collect(t, stream)
	const want = `/partMetadata={"y":2} /speechMetadata={"z":3}`
	if p := resp.Output[0].Parts; len(p) != 1 || p[0].(*dragoman.Text).Text != "ab" || extraFields(p[0]) != want {
		t.Errorf("%+v: %s", p[0], extraFields(p[0]))
	}
	evs, err := drain(dialect.DecodeOptions{NoNative: true}, []byte(stream))
	if err != nil {
		t.Fatal(err)
	}
	out, _ := encodeEvents(t, dialect.EncodeOptions{}, evs...)
	if p := collect(t, out).Output[0].Parts; len(p) != 1 || p[0].(*dragoman.Text).Text != "ab" || extraFields(p[0]) != want {
		t.Errorf("re-encoded: %s", out)
	}

	alone := collect(t, sseStream(chunk("", `{"text":"","partMetadata":{"y":3}}`), chunk("STOP", `{"text":""}`)))
	if p := alone.Output[0].Parts; len(p) != 1 || extraFields(p[0]) != `/partMetadata={"y":3}` {
		t.Errorf("fields of an empty text: %v", p)
	}
	whole := decodeResponse(t, responseBody("STOP", `{"text":"","partMetadata":{"y":3}}`))
	if len(whole.Output) != 1 || extraFields(whole.Output[0].Parts[0]) != `/partMetadata={"y":3}` {
		t.Errorf("fields of an empty text in a response: %+v", whole.Output)
	}

	d := gemini.Codec{}.NewStreamDecoder(dialect.DecodeOptions{})
	none := func(dragoman.Event) error { return nil }
	_ = d.Feed([]byte(sseStream(chunk("", `{"text":"a","partMetadata":1}`), chunk("STOP", `{"text":"b","partMetadata":2}`))), none)
	_ = d.Close(none)
	has(t, d.Report(), dragoman.Dropped, "/candidates/0")
}

func TestQuirkC28_PartialArgsInResponseAreKeptAndReported(t *testing.T) {
	resp, rep, err := gemini.Codec{}.DecodeResponse([]byte(responseBody("STOP", `{"functionCall":{"name":"f","partialArgs":[{"jsonPath":"$.a","numberValue":1}]}}`)), dialect.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if c := resp.ToolCalls()[0]; c.Problem == nil || c.Problem.Code != codes.ProblemTruncated || extraFields(c) != `/partialArgs=[{"jsonPath":"$.a","numberValue":1}]` {
		t.Errorf("%+v: %s", c, extraFields(c))
	}
	has(t, rep, dragoman.Lowered, "/candidates/0/content/parts/0")
}

func TestR11_UnknownFieldInPartialArgsIsReported(t *testing.T) {
	d := gemini.Codec{}.NewStreamDecoder(dialect.DecodeOptions{})
	var col dragoman.Collector
	add := func(ev dragoman.Event) error { col.Add(ev); return nil }
	_ = d.Feed([]byte(sseStream(chunk("STOP", `{"functionCall":{"name":"f","partialArgs":[{"jsonPath":"$.a","numberValue":1,"vendorNote":2}]}}`))), add)
	_ = d.Close(add)
	resp, err := col.Response()
	if err != nil || resp.ToolCalls()[0].Problem != nil {
		t.Errorf("%v, %+v", err, resp)
	}
	has(t, d.Report(), dragoman.Dropped, "/candidates/0")
}
