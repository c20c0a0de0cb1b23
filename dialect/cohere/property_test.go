package cohere_test

import (
	"encoding/json"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/testkit/codectest"
	"github.com/dragoman-go/dragoman/internal/testkit/gen"
	"pgregory.net/rapid"
)

func TestProperty_RebuildKeepsBytes(t *testing.T) {
	codectest.FixedPoint(t, codec, gen.Options{Tidy: true, Plain: true}, gen.Options{}, gen.Options{Dialect: codec.Dialect()})
}

func TestProperty_EncodingIsDeterministicAndPure(t *testing.T) {
	for _, o := range []gen.Options{{}, {Dialect: codec.Dialect()}} {
		codectest.Deterministic(t, codec, dialect.EncodeOptions{Rebuild: true}, func(t *rapid.T) *dragoman.Request { return o.Request().Draw(t, "request") })
	}
}

func TestProperty_ConversationGrowsAtItsEnd(t *testing.T) {
	for _, o := range []gen.Options{{Tidy: true}, {Tidy: true, Dialect: codec.Dialect()}} {
		draw := func(t *rapid.T) *dragoman.Request {
			req := o.Request().Draw(t, "request")
			req.ToolChoice, req.Output, req.Native = nil, nil, nil
			return req
		}
		codectest.CheckGrowth(t, codec, dialect.EncodeOptions{}, draw, codectest.Growth{List: "messages", Settled: codectest.AfterTurns})
	}
}

func TestQuirkC16_StreamChunkingDoesNotMatter(t *testing.T) {
	codectest.ReChunked(t, codec, []byte("\ufeff"+wholeStream+": comment\r\n\r\n"))
	codectest.ReChunked(t, codec, []byte("event: content-delta\r\ndata: {\"type\":\"content-delta\",\"index\":0,\r\ndata: \"delta\":{\"message\":{\"content\":{\"text\":\"é👩‍👩‍👧\\ud83d\\ude00\"}}}}\r\n\r\n"+
		event(`{"type":"message-end","delta":{"finish_reason":"COMPLETE"}}`)))
}

func TestProperty_RechunkingKeepsEvents(t *testing.T) {
	codectest.AnyReChunked(t, codec, func(rt *rapid.T) []byte {
		out, _ := codectest.EncodeStream(t, codec, dialect.EncodeOptions{Rebuild: true}, gen.Options{Dialect: codec.Dialect()}.Events().Draw(rt, "events"))
		return out
	})
}

func TestProperty_AnyEventsGiveValidStream(t *testing.T) {
	codectest.WritesAnyEvents(t, codec, codectest.Draw{
		Own: &dragoman.Origin{Dialect: codec.Dialect()}, Foreign: &dragoman.Origin{Dialect: dialectname.Anthropic}, Done: codes.OutcomeOK,
		Native: []*dragoman.Opaque{{Dialect: codec.Dialect(), Type: "odd", JSON: json.RawMessage(`{"type":"odd","x":1}`)}},
	}, checkStream)
}

// words returns the text, the reasoning and the calls of a response.
func words(resp *dragoman.Response) (text, reasoning, calls string) {
	for i := range resp.Output {
		for _, p := range resp.Output[i].Parts {
			switch p := p.(type) {
			case *dragoman.Text:
				text += p.Text
			case *dragoman.Refusal:
				text += p.Text
			case *dragoman.Reasoning:
				reasoning += strings.ReplaceAll(p.Text+strings.Join(p.Summary, ""), "\n\n", "") // which the encoder writes between them
			case *dragoman.ToolCall:
				args, _ := p.Object()
				calls += p.ID + " " + string(args) + "\n"
			}
		}
	}
	return text, reasoning, calls
}

func TestProperty_ResponseRoundTripsOrLossIsReported(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		o := gen.Options{Tidy: true, Plain: true}
		resp := o.Response().Draw(rt, "response")
		text, reasoning, calls := words(resp)
		same := func(back *dragoman.Response, rep dragoman.Report, body []byte) {
			gotText, gotReasoning, gotCalls := words(back)
			if gotText != text && rep.Err(dragoman.Warn) == nil || gotReasoning != reasoning && rep.Err(dragoman.Info) == nil || gotCalls != calls && rep.Err(dragoman.Serious) == nil {
				rt.Fatalf("text %q, reasoning %q, calls %q\nbecame %q, %q, %q\n%s\n%s", text, reasoning, calls, gotText, gotReasoning, gotCalls, body, rep)
			}
			if back.Stop.Reason != resp.Stop.Reason && rep.Err(dragoman.Info) == nil {
				rt.Fatalf("stopped with %q, want %q\n%s", back.Stop.Reason, resp.Stop.Reason, body)
			}
		}
		enc, err := codec.EncodeResponse(resp, dialect.EncodeOptions{})
		if err != nil {
			rt.Fatal(err)
		}
		back, _, err := codec.DecodeResponse(enc.Body, dialect.DecodeOptions{})
		if err != nil {
			rt.Fatalf("%v\n%s", err, enc.Body)
		}
		same(back, enc.Report, enc.Body)

		out, rep := codectest.EncodeStream(t, codec, dialect.EncodeOptions{}, o.Stream(rt, resp))
		if err := checkStream(out); err != nil {
			rt.Fatalf("%v\n%s", err, out)
		}
		same(collect(t, dialect.DecodeOptions{}, string(out)), rep, out)
	})
}
