package codectest

import (
	"encoding/json"
	"fmt"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"pgregory.net/rapid"
)

// Draw draws small conversations and streams that are dense in features that matter to a
// wire: several calls per turn, split and partial results, multi-byte text.
type Draw struct {
	// Own is the origin of the dialect's own messages, Foreign that of messages
	// from another dialect.
	Own, Foreign *dragoman.Origin
	// Done is the outcome of a successful result.
	Done string
	// Synthetic allows own calls without an id.
	Synthetic bool
	// Native lists parts that only the dialect has.
	Native []*dragoman.Opaque
}

func drawWords(t *rapid.T, label string) string {
	return rapid.SampledFrom([]string{"a", "hello world", "<é>", "日本\n", "🙂", `q"\`, "x y z"}).Draw(t, label)
}

func toolNames() []string { return []string{"f", "get_weather", "a.b", "näme"} }

func drawCall(t *rapid.T, id string) *dragoman.ToolCall {
	return &dragoman.ToolCall{
		ID: id, Name: rapid.SampledFrom(toolNames()).Draw(t, "name"),
		Arguments: rapid.SampledFrom([]string{"{}", `{"a":1}`, `{"s":"<é>\n","n":9007199254740993}`, `{"nested":{"x":[1,2,{}]}}`}).Draw(t, "args"),
	}
}

func (d Draw) origin(t *rapid.T) *dragoman.Origin {
	return rapid.SampledFrom([]*dragoman.Origin{nil, d.Own, d.Foreign}).Draw(t, "origin")
}

// Request draws a settled conversation and adds it to a request with the called tools.
func (d Draw) Request(t *rapid.T, around dragoman.Request) *dragoman.Request {
	if rapid.Bool().Draw(t, "system") {
		around.Messages = append(around.Messages, dragoman.SystemText(drawWords(t, "rule")))
	}
	for turn := range rapid.IntRange(1, 4).Draw(t, "turns") {
		around.Messages = append(around.Messages, dragoman.UserText(drawWords(t, "question")))
		around.Messages = append(around.Messages, d.turn(t, turn)...)
	}
	for _, n := range toolNames() {
		around.Tools = append(around.Tools, dragoman.ToolSpec{Name: n, Parameters: json.RawMessage(`{"type":"object","properties":{"q":{"type":"string"}}}`)})
	}
	return &around
}

// turn draws an assistant turn as any number of items, as in some dialects, and the
// results of its calls in any number of messages.
func (d Draw) turn(t *rapid.T, turn int) (ms []dragoman.Message) {
	origin := d.origin(t)
	var parts []dragoman.Part
	if rapid.Bool().Draw(t, "thinks") {
		parts = append(parts, &dragoman.Reasoning{Text: drawWords(t, "thought"), Signature: "sig"})
	}
	if rapid.Bool().Draw(t, "speaks") {
		parts = append(parts, &dragoman.Text{Text: drawWords(t, "answer")})
	}
	var results []*dragoman.ToolResult
	for n := range rapid.IntRange(0, 3).Draw(t, "calls") {
		c := drawCall(t, fmt.Sprintf("call_%d.%d", turn, n)) // a dot is illegal in some dialects
		c.Synthetic = d.Synthetic && origin == d.Own && rapid.Bool().Draw(t, "synthetic")
		parts = append(parts, c)
		res := &dragoman.ToolResult{CallID: c.ID, Content: []dragoman.Part{&dragoman.Text{Text: drawWords(t, "result")}}, Outcome: d.Done}
		if rapid.Bool().Draw(t, "failed") {
			res.Outcome = codes.OutcomeError
		}
		results = append(results, res)
	}
	if len(parts) == 0 {
		parts = append(parts, &dragoman.Text{Text: "ok"})
	}
	for len(parts) > 0 {
		n := rapid.IntRange(1, len(parts)).Draw(t, "item")
		ms = append(ms, dragoman.Message{Role: dragoman.RoleAssistant, Parts: parts[:n], Origin: origin})
		parts = parts[n:]
	}
	for len(results) > 0 {
		n := rapid.IntRange(1, len(results)).Draw(t, "batch")
		ms = append(ms, dragoman.ToolResults(results[:n]...))
		results = results[n:]
	}
	return ms
}

// Events draws a stream as a decoder of any dialect may emit it: parts of all kinds that
// start, grow and end in overlapping order.
func (d Draw) Events(t *rapid.T) []dragoman.Event {
	type live struct {
		index int
		final dragoman.Part
		rest  string
	}
	evs := []dragoman.Event{&dragoman.ResponseStart{Response: dragoman.Response{ID: "m", Model: "x", Origin: d.origin(t)}}}
	var open []*live
	next := 0
	for range rapid.IntRange(0, 25).Draw(t, "steps") {
		switch step := rapid.IntRange(0, 2).Draw(t, "step"); {
		case step == 0:
			p, text := d.part(t, next)
			evs = append(evs, &dragoman.PartStart{Index: next, Part: Skeleton(p)})
			open = append(open, &live{index: next, final: p, rest: text})
			next++
		case len(open) == 0:
		case step == 1:
			l := open[rapid.IntRange(0, len(open)-1).Draw(t, "which")]
			runes := []rune(l.rest)
			if n := rapid.IntRange(0, len(runes)).Draw(t, "fragment"); n > 0 {
				sum := 0
				if r, ok := l.final.(*dragoman.Reasoning); ok && r.Summary != nil {
					sum = 1
				}
				evs = append(evs, &dragoman.PartDelta{Index: l.index, Text: string(runes[:n]), Summary: sum})
				l.rest = string(runes[n:])
			}
		default:
			i := rapid.IntRange(0, len(open)-1).Draw(t, "which")
			evs = append(evs, &dragoman.PartEnd{Index: open[i].index, Part: open[i].final})
			open = append(open[:i:i], open[i+1:]...)
		}
	}
	switch rapid.IntRange(0, 5).Draw(t, "end") {
	case 0: // no end: the source broke off
		return evs
	case 1:
		return append(evs, &dragoman.StreamError{Err: &dragoman.APIError{Class: dragoman.ErrorOverloaded, Message: "busy"}})
	case 2: // parts that never end
	default:
		for _, l := range open {
			evs = append(evs, &dragoman.PartEnd{Index: l.index, Part: l.final})
		}
	}
	return append(evs, &dragoman.ResponseEnd{Stop: dragoman.Stop{Reason: rapid.SampledFrom([]dragoman.StopReason{dragoman.StopEnd, dragoman.StopToolCalls, dragoman.StopLength, dragoman.StopUnknown}).Draw(t, "stop")}})
}

// part draws a part and the text of its deltas.
func (d Draw) part(t *rapid.T, n int) (p dragoman.Part, text string) {
	text = drawWords(t, "text")
	id := fmt.Sprintf("c%d", n)
	switch rapid.IntRange(0, 10).Draw(t, "kind") {
	case 0, 1:
		return &dragoman.Text{Text: text}, text
	case 2:
		return &dragoman.Refusal{Text: text}, text
	case 3:
		return &dragoman.Reasoning{Text: text, Signature: rapid.SampledFrom([]string{"", "sig"}).Draw(t, "signature")}, text
	case 4:
		return &dragoman.Reasoning{Summary: []string{text}, Encrypted: "e"}, text
	case 5:
		return &dragoman.Reasoning{Redacted: true, Encrypted: "e"}, ""
	case 6, 7:
		c := drawCall(t, id)
		if rapid.Bool().Draw(t, "cut") {
			c.Problem = &dragoman.CallProblem{Code: codes.ProblemTruncated}
		}
		return c, c.Arguments
	case 8:
		return &dragoman.ToolCall{ID: id, Name: "patch", Payload: codes.PayloadText, Arguments: text}, text
	case 9:
		return rapid.SampledFrom(d.Native).Draw(t, "native"), ""
	default:
		return rapid.SampledFrom([]dragoman.Part{
			&dragoman.Opaque{Dialect: dialectname.OpenAIResponses, Type: "web_search_call", JSON: json.RawMessage(`{}`)},
			&dragoman.Media{Media: codes.MediaImage, MIME: "image/png", Base64: "AA=="},
			&dragoman.Data{JSON: json.RawMessage(`{"a":1}`)},
			&dragoman.ToolCall{ID: id, Name: "hosted", Hosted: true},
		}).Draw(t, "other"), ""
	}
}
