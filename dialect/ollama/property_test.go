package ollama_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/all"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/testkit/codectest"
	"github.com/dragoman-go/dragoman/internal/testkit/gen"
	"github.com/dragoman-go/dragoman/interop"
	"github.com/dragoman-go/dragoman/targets"
	"pgregory.net/rapid"
)

// callsAndResults lists what must survive encoding: the calls with their ids, and their results.
func callsAndResults(req *dragoman.Request) []string {
	var out []string
	for i := range req.Messages {
		for _, p := range req.Messages[i].Parts {
			switch p := p.(type) {
			case *dragoman.ToolCall:
				args, _ := p.Object()
				if p.Payload == codes.PayloadText {
					args = []byte(p.Arguments)
				}
				out = append(out, fmt.Sprintf("call %s %s %s %s", p.ID, p.Namespace, p.Name, args))
			case *dragoman.ToolResult:
				out = append(out, fmt.Sprintf("result %s %s %s", p.CallID, p.Namespace, p.Name))
			}
		}
	}
	return out
}

func TestProperty_CallsAndResultsRoundTrip(t *testing.T) {
	draw := func(t *rapid.T) *dragoman.Request {
		req := gen.Options{Tidy: true, Plain: true}.Request().Draw(t, "request")
		// The encoder removes a code fence around a whole freeform input, so the test avoids it.
		for i := range req.Messages {
			for _, c := range req.Messages[i].ToolCalls() {
				if strings.HasPrefix(strings.TrimSpace(c.Arguments), "```") {
					c.Arguments = "plain"
				}
			}
		}
		return req
	}
	codectest.KeepsMeaning(t, codec, draw, callsAndResults, func(t *rapid.T, req, back *dragoman.Request, enc dialect.Encoded) {
		if back.Stream != req.Stream || back.Model != req.Model {
			t.Fatalf("settings differ\n%s", enc.Body)
		}
		if d := gen.Diff(req.MaxOutputTokens, back.MaxOutputTokens); d != "" {
			t.Fatal(d)
		}
		s := req.Sampling
		s.Candidates = nil
		if d := gen.Diff(s, back.Sampling); d != "" {
			t.Fatal(d)
		}
	})
}

func TestProperty_RebuildGivesTheSameBytes(t *testing.T) {
	codectest.FixedPoint(t, codec, gen.Options{Tidy: true, Plain: true}, gen.Options{}, gen.Options{Dialect: dialectname.Ollama})
}

func TestProperty_EncodingIsDeterministicAndPure(t *testing.T) {
	for _, o := range []gen.Options{{}, {Dialect: dialectname.Ollama}} {
		codectest.Deterministic(t, codec, dialect.EncodeOptions{Rebuild: true}, func(t *rapid.T) *dragoman.Request { return o.Request().Draw(t, "request") })
	}
}

func TestProperty_ConversationGrowsOnlyAtItsEnd(t *testing.T) {
	for _, o := range []gen.Options{{Tidy: true}, {Tidy: true, Dialect: dialectname.Ollama}} {
		draw := func(t *rapid.T) *dragoman.Request {
			req := o.Request().Draw(t, "request")
			req.ToolChoice, req.Output, req.Native = nil, nil, nil
			return req
		}
		codectest.CheckGrowth(t, codec, dialect.EncodeOptions{}, draw, codectest.Growth{List: "messages", Settled: codectest.AfterTurns})
	}
}

// hostileStream has multi-byte text, CRLF, blank lines, a BOM and no final line break, so that a
// cut at any byte hits a special case.
const hostileStream = "\ufeff" + `{"message":{"thinking":"日本","content":"é👩‍👩‍👧"},"model":"m"}` + "\r\n\r\n \n" +
	`{"model":"m","message":{"content":"\ud83d\ude00","tool_calls":[{"function":{"name":"f","arguments":{"ü":1}}},null]},"done":false}` + "\n" +
	`{"model":"m","message":{"role":"assistant","content":null,"tool_calls":[{"id":"a","function":{"name":"g","arguments":"{}"}}]}}` + "\n" +
	` {"model":"m","done":true,"done_reason":"stop","eval_count":3} `

func TestQuirkC16_AnySplitGivesTheSameEvents(t *testing.T) {
	whole := decodeStream(t, dialect.DecodeOptions{}, hostileStream)
	if whole.feed != nil || whole.resp.Text() != "é👩‍👩‍👧😀" || whole.resp.ToolCalls()[0].Arguments != `{"ü":1}` || len(whole.resp.ToolCalls()) != 2 {
		t.Fatalf("%+v, %v", whole.resp, whole.feed)
	}
	codectest.ReChunked(t, codec, []byte(hostileStream))
}

func TestProperty_ReChunkingGivesEqualEvents(t *testing.T) {
	codectest.AnyReChunked(t, codec, func(rt *rapid.T) []byte {
		lines, _ := written(t, dialect.EncodeOptions{Rebuild: true}, gen.Options{Dialect: dialectname.Ollama}.Events().Draw(rt, "events"))
		return []byte(strings.Join(lines, "\n") + "\n")
	})
}

// contentOf returns the content of a response: text, thinking, and the calls that a client gets.
func contentOf(ms []dragoman.Message) (text, thinking string, calls []string) {
	reg := all.Registry(interop.Options{Target: targets.Target{Dialect: dialectname.Ollama}, Limits: codec.Limits()})
	for i := range ms {
		for _, p := range ms[i].Parts {
			switch p := p.(type) {
			case *dragoman.Text:
				text += p.Text
			case *dragoman.Refusal:
				text += p.Text
			case *dragoman.Reasoning:
				thinking += p.Text + strings.Join(p.Summary, "")
			case *dragoman.ToolCall:
				if p.Hosted {
					continue
				}
				args, _ := p.Object()
				args = bytes.ReplaceAll(args, []byte("\n"), []byte(" ")) // a line contains no line breaks
				calls = append(calls, p.ID+" "+reg.WireName(p.Namespace, p.Name)+" "+string(args))
			}
		}
	}
	lineBreaks := strings.NewReplacer("\n", "")
	return lineBreaks.Replace(text), lineBreaks.Replace(thinking), calls
}

func sameContent(rt *rapid.T, want, got []dragoman.Message, body string, rep dragoman.Report) {
	wt, wh, wc := contentOf(want)
	gt, gh, gc := contentOf(got)
	if gt != wt || gh != wh && rep.Err(dragoman.Warn) == nil {
		rt.Fatalf("got %q (%q), want %q (%q)\n%s", gt, gh, wt, wh, body)
	}
	// Calls that must not run are not sent, because clients run every call.
	if !slices.Equal(wc, gc) && rep.Err(dragoman.Serious) == nil {
		rt.Fatalf("calls %q, want %q\n%s", gc, wc, body)
	}
}

// A response that is encoded and decoded again has the same content, both whole and streamed, or
// the report lists the difference.
func TestProperty_ResponseRoundTripsOrReportsLosses(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		o := gen.Options{Tidy: true, Plain: true}
		resp := o.Response().Draw(rt, "response")
		enc, err := codec.EncodeResponse(resp, dialect.EncodeOptions{})
		if err != nil {
			rt.Fatal(err)
		}
		object(t, enc.Body)
		back, _, err := codec.DecodeResponse(enc.Body, dialect.DecodeOptions{})
		if err != nil {
			rt.Fatalf("%v\n%s", err, enc.Body)
		}
		sameContent(rt, resp.Output, back.Output, string(enc.Body), enc.Report)
		if back.Stop.Reason != resp.Stop.Reason && enc.Report.Err(dragoman.Warn) == nil {
			rt.Fatalf("stopped with %q, want %q\n%s", back.Stop.Reason, resp.Stop.Reason, enc.Body)
		}
		again, err := codec.EncodeResponse(back, dialect.EncodeOptions{Rebuild: true})
		if err != nil || string(again.Body) != string(enc.Body) {
			rt.Fatalf("%v\nfirst  %s\nsecond %s", err, enc.Body, again.Body)
		}

		lines, rep := written(t, dialect.EncodeOptions{}, o.Stream(rt, resp))
		body := strings.Join(lines, "\n")
		d := decodeStream(t, dialect.DecodeOptions{}, body)
		if d.feed != nil || d.err != nil {
			rt.Fatalf("%v, %v\n%s", d.feed, d.err, body)
		}
		sameContent(rt, resp.Output, d.resp.Output, body, rep)
		if d.resp.Stop.Reason != resp.Stop.Reason && rep.Err(dragoman.Warn) == nil {
			rt.Fatalf("stopped with %q, want %q\n%s", d.resp.Stop.Reason, resp.Stop.Reason, body)
		}
		want := resp.Usage
		if want.Input.Known { // it includes the tokens read from a cache
			want.CacheRead.N = min(want.CacheRead.N, want.Input.N)
		}
		for _, r := range []*dragoman.Response{back, d.resp} {
			if r.Usage.Input != want.Input || r.Usage.Output != want.Output || r.Usage.CacheRead != want.CacheRead {
				rt.Fatalf("usage %+v, want %+v\n%s", r.Usage, want, body)
			}
		}
	})
}

// A stream stays valid, and keeps its content, if a chunk in the middle is replaced.
func TestProperty_StreamStaysValidWithoutAChunk(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		o := gen.Options{Tidy: true}
		lines, _ := written(t, dialect.EncodeOptions{Rebuild: true}, o.Stream(rt, o.Response().Draw(rt, "response")))
		body := strings.Join(lines, "\n") + "\n"
		d := decodeStream(t, dialect.DecodeOptions{}, body)
		want, thinking, calls := contentOf(d.resp.Output)
		chunk := rapid.IntRange(0, len(lines)-1).Draw(rt, "emptied")
		for i, ev := range d.events {
			if ev.Type() == "chunk" {
				if chunk--; chunk < 0 {
					d.events[i] = &dragoman.Chunk{}
					break
				}
			}
		}
		again, _ := written(t, dialect.EncodeOptions{}, d.events)
		back := decodeStream(t, dialect.DecodeOptions{}, strings.Join(again, "\n"))
		got, gh, gc := contentOf(back.resp.Output)
		if got != want || gh != thinking || !slices.Equal(gc, calls) && d.resp.Stop.Reason.Runs() || back.resp.Stop != d.resp.Stop {
			rt.Fatalf("got %q (%q) %q %v, want %q (%q) %q %v\n%s\n%s", got, gh, gc, back.resp.Stop, want, thinking, calls, d.resp.Stop, body, strings.Join(again, "\n"))
		}
	})
}
