package openaichat_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/all"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/codec/toolwire"
	"github.com/dragoman-go/dragoman/internal/testkit/codectest"
	"github.com/dragoman-go/dragoman/internal/testkit/gen"
	"github.com/dragoman-go/dragoman/interop"
	"github.com/dragoman-go/dragoman/targets"
	"pgregory.net/rapid"
)

// drawn encodes a random request, and skips one that this wire must refuse.
func drawn(t *rapid.T, o gen.Options, eo dialect.EncodeOptions) (*dragoman.Request, dialect.Encoded) {
	req := o.Request().Draw(t, "request")
	enc, err := codec.EncodeRequest(req, eo)
	if err != nil {
		if req.ToolChoice == nil {
			t.Fatalf("EncodeRequest: %v", err)
		}
		t.Skip("the tool choice names a tool that cannot be sent")
	}
	return req, enc
}

// meaning lists the content of a conversation, in the order and grouping of Chat.
func meaning(req *dragoman.Request, reg *interop.Registry) []string {
	var out []string
	var turn []string // texts of an assistant run
	var calls []string
	flush := func() {
		if len(turn)+len(calls) > 0 {
			out = append(out, "assistant: "+strings.Join(turn, "\n\n"))
			out = append(out, calls...)
		}
		turn, calls = nil, nil
	}
	ms := req.Messages
	if len(req.Instructions) > 0 {
		ms = append([]dragoman.Message{{Role: dragoman.RoleSystem, Parts: req.Instructions}}, ms...)
	}
	for i := range ms {
		m := &ms[i]
		if m.Role != dragoman.RoleAssistant {
			flush()
		}
		texts := ""
		for _, p := range m.Parts {
			switch p := p.(type) {
			case *dragoman.Text:
				texts += p.Text
			case *dragoman.ToolCall:
				calls = append(calls, fmt.Sprintf("call %s %s %s %s", reg.WireID(p.ID), reg.WireName(p.Namespace, p.Name), p.Payload, p.Arguments))
			case *dragoman.ToolResult:
				text := p.Text()
				if p.Outcome == codes.OutcomeError && !strings.HasPrefix(text, toolwire.ErrorPrefix) {
					text = toolwire.ErrorPrefix + text
				}
				media := slices.ContainsFunc(p.Content, func(p dragoman.Part) bool { return p.Kind() == codes.KindMedia })
				if media {
					text += "*"
				}
				out = append(out, fmt.Sprintf("result %s %s", reg.WireID(p.CallID), text))
			}
		}
		switch {
		case m.Role == dragoman.RoleAssistant:
			if slices.ContainsFunc(m.Parts, func(p dragoman.Part) bool { return p.Kind() == codes.KindText }) {
				turn = append(turn, texts)
			}
		case m.Role == dragoman.RoleTool || len(m.Parts) == 0 || strings.HasPrefix(texts, "Attached to the result of call"):
		case slices.ContainsFunc(m.Parts, func(p dragoman.Part) bool { return p.Kind() == codes.KindMedia }):
			out = append(out, string(m.Role)+": *") // some media become text
		default:
			out = append(out, string(m.Role)+": "+texts)
		}
	}
	flush()
	return out
}

func TestProperty_EncodingKeepsTheMeaning(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		req, enc := drawn(t, gen.Options{Tidy: true, Plain: true}, dialect.EncodeOptions{})
		back, _, err := codec.DecodeRequest(enc.Body, dialect.DecodeOptions{Registry: enc.Registry})
		if err != nil {
			t.Fatalf("%v\n%s", err, enc.Body)
		}
		want, got := meaning(req, enc.Registry), meaning(back, enc.Registry)
		// A result with media keeps its text. The media moves to a user message, which is
		// reported.
		j := 0
		for _, w := range want {
			if rest, moved := strings.CutSuffix(w, "*"); moved && strings.HasPrefix(w, "result ") {
				if j >= len(got) || !strings.HasPrefix(got[j], rest) {
					t.Fatalf("want %q…, got %q\n%s", rest, got[min(j, len(got)-1)], enc.Body)
				}
				j++
				continue
			}
			if rest, open := strings.CutSuffix(w, ": *"); open && j < len(got) && strings.HasPrefix(got[j], rest+": ") {
				j++
				continue
			}
			if j >= len(got) || got[j] != w {
				t.Fatalf("want %q\ngot %q\nof %q\n%s", w, got[j:], want, enc.Body)
			}
			j++
		}
		if back.Stream != req.Stream || back.User != req.User || back.ServiceTier != req.ServiceTier || back.Verbosity != req.Verbosity || back.CacheKey != req.CacheKey {
			t.Fatalf("settings differ\n%s", enc.Body)
		}
		if d := gen.Diff(req.MaxOutputTokens, back.MaxOutputTokens); d != "" {
			t.Fatal(d)
		}
		if d := gen.Diff(req.Metadata, back.Metadata); d != "" {
			t.Fatal(d)
		}
	})
}

func TestProperty_RebuildGivesTheSameBytes(t *testing.T) {
	codectest.FixedPoint(t, codec, gen.Options{Tidy: true, Plain: true}, gen.Options{})
}

func TestProperty_EncodingIsDeterministicAndPure(t *testing.T) {
	codectest.Deterministic(t, codec, dialect.EncodeOptions{}, func(t *rapid.T) *dragoman.Request { return gen.Options{}.Request().Draw(t, "request") })
}

func TestProperty_ConversationGrowsOnlyAtItsEnd(t *testing.T) {
	for name, target := range map[string]targets.Target{
		"openai": {}, "a compatible server": caps(targets.Capabilities{NoDeveloperRole: true, ToolResultName: true, NoCustomTools: true, ReasoningField: "reasoning", ReasoningFieldAlways: true}),
	} {
		t.Run(name, func(t *testing.T) {
			draw := func(t *rapid.T) *dragoman.Request {
				req := gen.Options{Tidy: true}.Request().Draw(t, "request")
				req.ToolChoice, req.Output, req.Native = nil, nil, nil
				return req
			}
			codectest.CheckGrowth(t, codec, dialect.EncodeOptions{Target: target}, draw, codectest.Growth{List: "messages", Settled: codectest.AfterTurns})
		})
	}
}

// hostileStream has multi-byte text, CRLF, comments, unusual chunks and a late index, so that a
// cut at any byte hits a special case.
const hostileStream = "\ufeff: c\r\n\r\ndata: {\"id\":\"r\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"é👩‍👩‍👧\"}}]}\r\n\r\n" +
	"data:{\"choices\":[{\"delta\":{\"content\":\"\\ud83d\\ude00\",\"reasoning\":\"日本\"},\"index\":0}]}\n\n" +
	"event: x\ndata: {\"choices\":\ndata: [{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"ü\\\"\"}}]}}]}\n\n" +
	"data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\":1}\"}}]},\"finish_reason\":\"tool_calls\"}]}\r\r: p\n\ndata: [DONE]\n\n"

func TestQuirkC16_AnySplitGivesTheSameEvents(t *testing.T) {
	whole := decodeStream(t, dialect.DecodeOptions{}, hostileStream)
	if whole.feed != nil || whole.resp.Text() != "é👩‍👩‍👧😀" || whole.resp.ToolCalls()[0].Arguments != `{"ü":1}` {
		t.Fatalf("%+v, %v", whole.resp, whole.feed)
	}
	codectest.ReChunked(t, codec, []byte(hostileStream))
}

func TestProperty_ReChunkingGivesEqualEvents(t *testing.T) {
	codectest.AnyReChunked(t, codec, func(rt *rapid.T) []byte {
		body, _ := encodeStream(t, dialect.EncodeOptions{Rebuild: true, StreamUsage: true}, gen.Options{Dialect: dialectname.OpenAIChat}.Events().Draw(rt, "events"))
		return []byte(body)
	})
}

// An event stream that is encoded and decoded again gives the same response, or the report lists
// the difference.
func TestProperty_EventStreamRoundTripsOrReportsLosses(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		o := gen.Options{Tidy: true, Plain: true}
		resp := o.Response().Draw(rt, "response")
		body, rep := encodeStream(t, dialect.EncodeOptions{StreamUsage: true}, o.Stream(rt, resp))
		for _, c := range chunksOf(t, body) {
			if c != "[DONE]" {
				object(t, []byte(c))
			}
		}
		d := decodeStream(t, dialect.DecodeOptions{}, body)
		if d.feed != nil || d.err != nil {
			rt.Fatalf("%v, %v\n%s", d.feed, d.err, body)
		}
		check := func(label string, want, got []dragoman.Message, ws, gs dragoman.Stop) {
			texts, refusals := textOf(want)
			gt, gr := textOf(got)
			if gt != texts || gr != refusals {
				rt.Fatalf("%s is %q (%q), want %q (%q)\n%s", label, gt, gr, texts, refusals, body)
			}
			wc, gc := clientCalls(want), clientCalls(got)
			if len(wc) != len(gc) {
				rt.Fatalf("%s has %d calls, want %d\n%s", label, len(gc), len(wc), body)
			}
			for i := range wc {
				reg := all.Registry(interop.Options{Target: targets.Target{Dialect: dialectname.OpenAIChat}, Limits: codec.Limits()})
				w, g := wc[i], gc[i]
				args, _ := w.Object()
				if w.Payload == codes.PayloadText {
					args = []byte(w.Arguments)
				}
				if g.ID != w.ID || g.Name != reg.WireName(w.Namespace, w.Name) || g.Payload != w.Payload || g.Arguments != string(args) {
					rt.Fatalf("%s: call %d is %+v, want %+v\n%s", label, i, g, w, body)
				}
			}
			if gs.Reason != ws.Reason && rep.Err(dragoman.Warn) == nil {
				rt.Fatalf("%s stopped with %q, want %q\n%s", label, gs.Reason, ws.Reason, body)
			}
		}
		check("the response", resp.Output, d.resp.Output, resp.Stop, d.resp.Stop)
		for i, a := range resp.Alternatives {
			var out []dragoman.Message
			var stop dragoman.Stop
			if i < len(d.resp.Alternatives) {
				out, stop = d.resp.Alternatives[i].Output, d.resp.Alternatives[i].Stop
			}
			check(fmt.Sprint("alternative ", i), a.Output, out, a.Stop, stop)
		}
		if resp.Usage.Input.Known && resp.Usage.Output.Known && (d.resp.Usage.Input != resp.Usage.Input || d.resp.Usage.Output != resp.Usage.Output) {
			rt.Fatalf("usage %+v, want %+v\n%s", d.resp.Usage, resp.Usage, body)
		}
		reasons := false
		for _, m := range resp.Output {
			reasons = reasons || slices.ContainsFunc(m.Parts, func(p dragoman.Part) bool { return p.Kind() == codes.KindReasoning })
		}
		if reasons && rep.Err(dragoman.Warn) == nil && !strings.Contains(body, "reasoning") {
			rt.Fatalf("the loss of reasoning was not reported\n%s", body)
		}
	})
}

// textOf joins the texts of an output like this wire does.
func textOf(ms []dragoman.Message) (text, refusal string) {
	any := false
	for mi := range ms {
		first := true
		for _, p := range ms[mi].Parts {
			switch p := p.(type) {
			case *dragoman.Text:
				if any && first && mi > 0 && p.Text != "" {
					text += "\x00"
				}
				if p.Text != "" {
					any, first = true, false
				}
				text += p.Text
			case *dragoman.Refusal:
				refusal += p.Text
			}
		}
	}
	return strings.ReplaceAll(strings.ReplaceAll(text, "\x00", ""), "\n\n", ""), refusal
}

func clientCalls(ms []dragoman.Message) []*dragoman.ToolCall {
	var out []*dragoman.ToolCall
	for i := range ms {
		for _, c := range ms[i].ToolCalls() {
			if !c.Hosted {
				out = append(out, c)
			}
		}
	}
	return out
}

// A whole response keeps its content, like a streamed one.
func TestProperty_ResponseRoundTrips(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		resp := gen.Options{Tidy: true, Plain: true}.Response().Draw(rt, "response")
		enc, err := codec.EncodeResponse(resp, dialect.EncodeOptions{})
		if err != nil {
			rt.Fatal(err)
		}
		object(t, enc.Body)
		back, _, err := codec.DecodeResponse(enc.Body, dialect.DecodeOptions{})
		if err != nil {
			rt.Fatalf("%v\n%s", err, enc.Body)
		}
		wt, wr := textOf(resp.Output)
		gt, gr := textOf(back.Output)
		if wt != gt || strings.ReplaceAll(wr, "\n\n", "") != strings.ReplaceAll(gr, "\n\n", "") {
			rt.Fatalf("%q (%q), want %q (%q)\n%s", gt, gr, wt, wr, enc.Body)
		}
		if len(clientCalls(back.Output)) != len(clientCalls(resp.Output)) {
			rt.Fatalf("%s", enc.Body)
		}
		if back.ID != resp.ID || back.Model != resp.Model || !back.Created.Equal(resp.Created) && resp.Created.Unix() != 0 {
			rt.Fatalf("%s", enc.Body)
		}
		again, err := codec.EncodeResponse(back, dialect.EncodeOptions{Rebuild: true})
		if err != nil || string(again.Body) != string(enc.Body) {
			rt.Fatalf("%v\nfirst  %s\nsecond %s", err, enc.Body, again.Body)
		}
	})
}
