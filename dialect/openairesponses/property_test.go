package openairesponses

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/testkit/codectest"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var (
	textGen = rapid.SampledFrom([]string{"", "a", "hello <b>&", "π\u2028\n", "\"q\"\\", strings.Repeat("x", 300)})
	argsGen = rapid.SampledFrom([]string{"", "{}", `{"a":1}`, `{"n":9007199254740993,"s":"ü"}`, `{"a":`, ` {} `})
)

// partGen draws parts of an assistant turn, including those of other dialects.
func partGen(t *rapid.T, id int) dragoman.Part {
	switch rapid.IntRange(0, 6).Draw(t, "kind") {
	case 0:
		return &dragoman.Text{Text: textGen.Draw(t, "text")}
	case 1:
		return &dragoman.Refusal{Text: textGen.Draw(t, "refusal")}
	case 2:
		return &dragoman.Reasoning{Text: textGen.Draw(t, "thinking"), Summary: rapid.SliceOfN(rapid.SampledFrom([]string{"one", "two"}), 0, 3).Draw(t, "summary")}
	case 3:
		return &dragoman.ToolCall{ID: fmt.Sprintf("call_%d", id), Name: "f", Arguments: argsGen.Draw(t, "args")}
	case 4:
		return &dragoman.ToolCall{ID: fmt.Sprintf("call_%d", id), Name: "sql", Payload: codes.PayloadText, Arguments: textGen.Draw(t, "input")}
	case 5:
		return &dragoman.ToolCall{ID: fmt.Sprintf("call_%d", id), Namespace: "crm", Name: "g", Arguments: argsGen.Draw(t, "args")}
	default:
		return &dragoman.Opaque{Dialect: name, Type: "web_search_call", JSON: json.RawMessage(fmt.Sprintf(`{"type":"web_search_call","id":"ws_%d"}`, id))}
	}
}

// skeletonPart returns the first form of a part that a decoder emits.
func skeletonPart(p dragoman.Part) dragoman.Part {
	switch p := p.(type) {
	case *dragoman.ToolCall:
		return &dragoman.ToolCall{ID: p.ID, Name: p.Name, Namespace: p.Namespace, Payload: p.Payload}
	case *dragoman.Reasoning:
		return &dragoman.Reasoning{}
	case *dragoman.Opaque:
		return &dragoman.Opaque{Dialect: p.Dialect, Type: p.Type}
	default:
		return emptyOf(p)
	}
}

// deltasOf splits the text of a part into fragments.
func deltasOf(t *rapid.T, index int, p dragoman.Part) (out []*dragoman.PartDelta) {
	cut := func(text string, summary int) {
		for len(text) > 0 {
			n := rapid.IntRange(1, len(text)).Draw(t, "cut")
			for n < len(text) && text[n]&0xC0 == 0x80 {
				n++
			}
			out = append(out, &dragoman.PartDelta{Index: index, Text: text[:n], Summary: summary})
			text = text[n:]
		}
	}
	if rapid.IntRange(0, 3).Draw(t, "silent") == 0 {
		return nil
	}
	switch p := p.(type) {
	case *dragoman.Text:
		cut(p.Text, 0)
	case *dragoman.Refusal:
		cut(p.Text, 0)
	case *dragoman.ToolCall:
		cut(p.Arguments, 0)
	case *dragoman.Reasoning:
		for i, s := range p.Summary {
			cut(s, i+1)
		}
		cut(p.Text, 0)
	}
	return out
}

// eventGen draws a stream of canonical events. Parts may overlap in any way that the contract of
// events allows, and the stream may be incomplete.
func eventGen(t *rapid.T) []dragoman.Event {
	evs := []dragoman.Event{&dragoman.ResponseStart{Response: dragoman.Response{ID: "chatcmpl-1", Model: "m", Origin: &dragoman.Origin{Dialect: dialectname.OpenAIChat}}}}
	type open struct {
		part   dragoman.Part
		index  int
		deltas []*dragoman.PartDelta
	}
	var opened []*open
	n := rapid.IntRange(0, 6).Draw(t, "parts")
	message, next := 0, 0
	for next < n || len(opened) > 0 {
		if next < n && (len(opened) == 0 || rapid.Bool().Draw(t, "start")) {
			if rapid.IntRange(0, 3).Draw(t, "message") == 0 {
				message++
			}
			p := partGen(t, next)
			o := &open{part: p, index: next, deltas: deltasOf(t, next, p)}
			evs = append(evs, &dragoman.PartStart{Index: next, Message: message, Part: skeletonPart(p)})
			opened = append(opened, o)
			next++
			continue
		}
		i := rapid.IntRange(0, len(opened)-1).Draw(t, "which")
		o := opened[i]
		if len(o.deltas) > 0 {
			evs = append(evs, o.deltas[0])
			o.deltas = o.deltas[1:]
			continue
		}
		evs = append(evs, &dragoman.PartEnd{Index: o.index, Part: o.part})
		opened = append(opened[:i], opened[i+1:]...)
	}
	switch rapid.IntRange(0, 5).Draw(t, "end") {
	case 0:
		return append(evs, &dragoman.StreamError{Err: &dragoman.APIError{Class: dragoman.ErrorRateLimit, Message: "slow"}})
	case 1:
		return evs[:rapid.IntRange(0, len(evs)).Draw(t, "broken")]
	default:
		stop := rapid.SampledFrom([]dragoman.StopReason{dragoman.StopEnd, dragoman.StopToolCalls, dragoman.StopLength, dragoman.StopContentFilter, dragoman.StopUnknown, dragoman.StopCanceled, dragoman.StopSequence}).Draw(t, "stop")
		return append(evs, &dragoman.ResponseEnd{Stop: dragoman.Stop{Reason: stop}, Usage: dragoman.Usage{Input: dragoman.Counted(1), Output: dragoman.Counted(2)}})
	}
}

// malformed reports whether a call has invalid arguments, which are forwarded.
func malformed(evs []dragoman.Event) bool {
	return slices.ContainsFunc(evs, func(ev dragoman.Event) bool {
		end, ok := ev.(*dragoman.PartEnd)
		if !ok {
			return false
		}
		c, ok := end.Part.(*dragoman.ToolCall)
		return ok && c.Payload != codes.PayloadText && dragoman.CheckArguments(c.Arguments) != nil
	})
}

func TestQuirkC23_StreamOrderIsValid(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		evs := eventGen(rt)
		out, _ := encodeStream(t, evs, dialect.EncodeOptions{Seed: "s", Model: "m"})
		if err := checkOrder(out, !malformed(evs)); err != nil {
			rt.Fatalf("%v\n%s", err, out)
		}
		again, _ := encodeStream(t, evs, dialect.EncodeOptions{Seed: "s", Model: "m"})
		if !bytes.Equal(out, again) {
			rt.Fatal("the same events gave different bytes")
		}
		// Parts that ended are decoded with the same content.
		want := map[string]int{}
		ended := false
		for _, ev := range evs {
			switch ev := ev.(type) {
			case *dragoman.PartEnd:
				want[contentOf(ev.Part)]++
			case *dragoman.ResponseEnd:
				ended = true
			}
		}
		if !ended {
			return
		}
		back, _, err := decodeStream(out, len(out), dialect.DecodeOptions{NoNative: true})
		if err != nil {
			rt.Fatal(err)
		}
		resp, err := collect(back)
		if err != nil {
			rt.Fatal(err)
		}
		got := map[string]int{}
		for _, m := range resp.Output {
			for _, p := range m.Parts {
				got[contentOf(p)]++
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Fatalf("%s\n%s", diff, out)
		}
	})
}

func contentOf(p dragoman.Part) string {
	switch p := p.(type) {
	case *dragoman.ToolCall:
		return fmt.Sprintf("call %s %s %s %s %q", p.ID, p.Namespace, p.Name, p.Payload, payloadOf(p, p.Payload == codes.PayloadText).text)
	case *dragoman.Reasoning:
		return fmt.Sprintf("thinking %q %q", p.Text, p.Summary)
	case *dragoman.Opaque:
		return string(p.JSON)
	default:
		return fmt.Sprintf("%s %q", p.Kind(), textOf(p))
	}
}

func TestAnySplitGivesTheSameEvents(t *testing.T) {
	codectest.AnyReChunked(t, Codec{}, func(rt *rapid.T) []byte {
		body, _ := encodeStream(t, eventGen(rt), dialect.EncodeOptions{})
		if rapid.Bool().Draw(rt, "cut short") {
			body = body[:rapid.IntRange(0, len(body)).Draw(rt, "length")]
		}
		return body
	})
}

// conversationGen draws a conversation in which every call has a result.
func conversationGen(t *rapid.T) []dragoman.Message {
	var ms []dragoman.Message
	for turn := range rapid.IntRange(1, 4).Draw(t, "turns") {
		ms = append(ms, dragoman.UserText(textGen.Draw(t, "user")))
		m := dragoman.Message{Role: dragoman.RoleAssistant}
		results := dragoman.Message{Role: dragoman.RoleTool}
		for i := range rapid.IntRange(0, 4).Draw(t, "parts") {
			p := partGen(t, turn*100+i)
			m.Parts = append(m.Parts, p)
			if c, ok := p.(*dragoman.ToolCall); ok {
				results.Parts = append(results.Parts, &dragoman.ToolResult{CallID: c.ID, Content: []dragoman.Part{&dragoman.Text{Text: textGen.Draw(t, "result")}}})
			}
		}
		ms = append(ms, m)
		if len(results.Parts) > 0 {
			ms = append(ms, results)
		}
	}
	return ms
}

func TestConversationGrowsOnlyAtItsEnd(t *testing.T) {
	draw := func(t *rapid.T) *dragoman.Request {
		return &dragoman.Request{Model: "m", Messages: conversationGen(t)}
	}
	anywhere := func(before, _ dragoman.Role) bool { return before != "" }
	codectest.CheckGrowth(t, Codec{}, dialect.EncodeOptions{}, draw, codectest.Growth{List: "input", Settled: anywhere})
}

func TestEncodingKeepsTheMeaning(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		req := &dragoman.Request{Model: "m", Messages: conversationGen(rt), Instructions: []dragoman.Part{&dragoman.Text{Text: "i"}}}
		enc, err := Codec{}.EncodeRequest(req, dialect.EncodeOptions{})
		if err != nil {
			rt.Fatal(err)
		}
		again, _ := Codec{}.EncodeRequest(req, dialect.EncodeOptions{})
		if !bytes.Equal(enc.Body, again.Body) {
			rt.Fatal("encoding is not deterministic")
		}
		back, _, err := Codec{}.DecodeRequest(enc.Body, dialect.DecodeOptions{})
		if err != nil {
			rt.Fatal(err)
		}
		re, err := Codec{}.EncodeRequest(back, dialect.EncodeOptions{Rebuild: true})
		if err != nil {
			rt.Fatal(err)
		}
		if diff := cmp.Diff(string(enc.Body), string(re.Body)); diff != "" {
			rt.Fatal(diff)
		}
	})
}
