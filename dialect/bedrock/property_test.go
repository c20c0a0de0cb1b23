package bedrock_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codectest"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var (
	words    = rapid.SampledFrom([]string{"a", "hello world", "<é>", "日本\n", "🙂", `q"\`, "x y z"})
	toolName = rapid.SampledFrom([]string{"f", "get_weather", "a.b", "näme"})
	argText  = rapid.SampledFrom([]string{"{}", `{"a":1}`, `{"s":"<é>\n","n":9007199254740993}`, `{"nested":{"x":[1,2,{}]}}`})
)

// drawConversation draws a settled conversation: every call answered, the
// answers in any order and cut into any number of messages.
func drawConversation(t *rapid.T) []dragoman.Message {
	var ms []dragoman.Message
	if rapid.Bool().Draw(t, "system") {
		ms = append(ms, dragoman.SystemText(words.Draw(t, "rule")))
	}
	ids := 0
	for turn := range rapid.IntRange(1, 4).Draw(t, "turns") {
		ms = append(ms, dragoman.UserText(words.Draw(t, "question")))
		origin := rapid.SampledFrom([]*dragoman.Origin{nil, own, foreign}).Draw(t, "origin")
		var parts []dragoman.Part
		if rapid.Bool().Draw(t, "thinks") {
			parts = append(parts, &dragoman.Reasoning{Text: words.Draw(t, "thought"), Signature: "sig"})
		}
		if rapid.Bool().Draw(t, "speaks") {
			parts = append(parts, &dragoman.Text{Text: words.Draw(t, "answer")})
		}
		var results []*dragoman.ToolResult
		for range rapid.IntRange(0, 3).Draw(t, "calls") {
			ids++
			id := fmt.Sprintf("call_%d.%d", turn, ids) // a dot is illegal here
			parts = append(parts, call(id, toolName.Draw(t, "name"), argText.Draw(t, "args")))
			res := result(id, words.Draw(t, "result"))
			if rapid.Bool().Draw(t, "failed") {
				res.Outcome = dragoman.OutcomeError
			}
			results = append(results, res)
		}
		if len(parts) == 0 {
			parts = append(parts, &dragoman.Text{Text: "ok"})
		}
		// Some dialects write one turn as several items.
		for len(parts) > 0 {
			n := rapid.IntRange(1, len(parts)).Draw(t, "item")
			m := said(dragoman.RoleAssistant, parts[:n]...)
			m.Origin = origin
			ms = append(ms, m)
			parts = parts[n:]
		}
		for len(results) > 0 {
			n := rapid.IntRange(1, len(results)).Draw(t, "batch")
			ms = append(ms, dragoman.ToolResults(results[:n]...))
			results = results[n:]
		}
	}
	return ms
}

func drawRequest(t *rapid.T) *dragoman.Request {
	req := ask(drawConversation(t)...)
	for _, n := range []string{"f", "get_weather", "a.b", "näme"} {
		req.Tools = append(req.Tools, tool(n))
	}
	if rapid.Bool().Draw(t, "thinking") {
		req.Reasoning = &dragoman.ReasoningSettings{Mode: dragoman.ReasoningAdaptive, Effort: "high"}
	}
	return req
}

func TestEncodingIsDeterministic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		req := drawRequest(t)
		a, err := codec.EncodeRequest(req, dialect.EncodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		b, _ := codec.EncodeRequest(req, dialect.EncodeOptions{})
		if string(a.Body) != string(b.Body) || a.Report.String() != b.Report.String() {
			t.Fatalf("%s\n%s", a.Body, b.Body)
		}
	})
}

func rapidMessages(t *rapid.T, req *dragoman.Request) []string {
	enc, err := codec.EncodeRequest(req, dialect.EncodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var v struct{ Messages []json.RawMessage }
	if err := json.Unmarshal(enc.Body, &v); err != nil {
		t.Fatal(err)
	}
	out := make([]string, len(v.Messages))
	for i, m := range v.Messages {
		out[i] = string(m)
	}
	return out
}

// Prompt caches live on it: what was sent once is sent again byte for byte.
func TestAppendingToAConversationLeavesItsElementsAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		req := drawRequest(t)
		whole := rapidMessages(t, req)
		for n := 1; n < len(req.Messages); n++ {
			// A conversation is settled where the next message is not of the
			// same turn.
			if a, b := req.Messages[n-1].Role, req.Messages[n].Role; b == dragoman.RoleTool || a == dragoman.RoleAssistant && b == dragoman.RoleAssistant || a == dragoman.RoleSystem {
				continue
			}
			part := *req
			part.Messages = req.Messages[:n]
			got := rapidMessages(t, &part)
			for i, m := range got {
				if i < len(got)-1 && m != whole[i] {
					t.Fatalf("%d messages: element %d changed\n%s\n%s", n, i, m, whole[i])
				}
				if i == len(got)-1 && part.Messages[n-1].Role != dragoman.RoleAssistant && !strings.HasPrefix(whole[i], strings.TrimSuffix(m, "]}")) {
					t.Fatalf("%d messages: the last element did more than grow\n%s\n%s", n, m, whole[i])
				}
			}
		}
	})
}

// meaning is what a conversation says, without how it is cut into messages.
func meaning(ms []dragoman.Message) []string {
	var out []string
	for i := range ms {
		role := ms[i].Role
		if role == dragoman.RoleTool {
			role = dragoman.RoleUser
		}
		for _, p := range ms[i].Parts {
			switch p := p.(type) {
			case *dragoman.Text:
				out = append(out, fmt.Sprint(role, " text ", strings.TrimRight(p.Text, " \n")))
			case *dragoman.ToolCall:
				out = append(out, fmt.Sprint(role, " call ", p.ID, p.Name, p.Arguments))
			case *dragoman.ToolResult:
				out = append(out, fmt.Sprint(role, " result ", p.CallID, p.Text(), p.Outcome == dragoman.OutcomeError))
			}
		}
	}
	return out
}

func TestWhatIsEncodedDecodesToTheSameMeaning(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		req := drawRequest(t)
		enc, err := codec.EncodeRequest(req, dialect.EncodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		back, _, err := codec.DecodeRequest(enc.Body, dialect.DecodeOptions{Registry: enc.Registry})
		if err != nil {
			t.Fatalf("%v\n%s", err, enc.Body)
		}
		want := req.Messages
		if want[0].Role == dragoman.RoleSystem {
			want = want[1:]
		}
		if diff := cmp.Diff(meaning(want), meaning(back.Messages)); diff != "" {
			t.Fatalf("%s\n%s", diff, enc.Body)
		}
		again, err := codec.EncodeRequest(back, dialect.EncodeOptions{})
		if err != nil || string(again.Body) != string(enc.Body) {
			t.Fatalf("decoding and encoding again changed bytes (%v)\n%s\n%s", err, enc.Body, again.Body)
		}
		checkConversation(t, enc.Body)
	})
}

// checkConversation holds a request against the API's own rules, written from
// the wire reference: user first, roles alternate, each call answered in the
// next message, results first, no blank text, objects for arguments, tools
// declared, legal names and ids.
func checkConversation(t *rapid.T, body []byte) {
	var v struct {
		Messages []struct {
			Role    string
			Content []map[string]any
		}
		ToolConfig struct {
			Tools []struct{ ToolSpec struct{ Name string } }
		}
	}
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatalf("content must always be a list of blocks: %v", err)
	}
	legalName := regexp.MustCompile("^[a-zA-Z][a-zA-Z0-9_-]{0,63}$")
	legalID := regexp.MustCompile("^[a-zA-Z0-9_.:-]{1,64}$") // an id that the API minted itself may hold dots
	var open []string
	for i, m := range v.Messages {
		if i == 0 && m.Role != "user" || i > 0 && m.Role == v.Messages[i-1].Role || len(m.Content) == 0 {
			t.Fatalf("message %d: role %s\n%s", i, m.Role, body)
		}
		var results, calls []string
		other := false
		for _, b := range m.Content {
			if len(b) != 1 {
				t.Fatalf("message %d: a block of %d things", i, len(b))
			}
			for kind, value := range b {
				switch kind {
				case "toolResult":
					if other {
						t.Fatalf("message %d: a result after another block", i)
					}
					res := value.(map[string]any)
					results = append(results, res["toolUseId"].(string))
					if len(res["content"].([]any)) == 0 {
						t.Fatalf("message %d: a result without content", i)
					}
				case "toolUse":
					use := value.(map[string]any)
					calls = append(calls, use["toolUseId"].(string))
					if _, ok := use["input"].(map[string]any); !ok || !legalName.MatchString(use["name"].(string)) || !legalID.MatchString(use["toolUseId"].(string)) {
						t.Fatalf("message %d: %v", i, use)
					}
					if len(v.ToolConfig.Tools) == 0 {
						t.Fatalf("message %d: calls without tools", i)
					}
				case "text":
					if strings.TrimSpace(value.(string)) == "" {
						t.Fatalf("message %d: blank text", i)
					}
					other = true
					if len(calls) > 0 {
						t.Fatalf("message %d: text after a call", i)
					}
				default:
					other = true
				}
			}
		}
		if m.Role == "user" && fmt.Sprint(results) != fmt.Sprint(open) {
			t.Fatalf("message %d answers %v, called were %v", i, results, open)
		}
		open = calls
	}
	for _, tool := range v.ToolConfig.Tools {
		if !legalName.MatchString(tool.ToolSpec.Name) {
			t.Fatalf("tool %q", tool.ToolSpec.Name)
		}
	}
}

// drawEvents draws a stream as a decoder of any dialect may send it: parts of
// all kinds that start, grow and end in overlapping order.
func drawEvents(t *rapid.T) []dragoman.Event {
	type live struct {
		index int
		final dragoman.Part
		rest  string
	}
	origin := rapid.SampledFrom([]*dragoman.Origin{nil, own, foreign}).Draw(t, "origin")
	evs := []dragoman.Event{&dragoman.ResponseStart{Response: dragoman.Response{ID: "m", Model: "x", Origin: origin}}}
	var open []*live
	next := 0
	for range rapid.IntRange(0, 25).Draw(t, "steps") {
		switch step := rapid.IntRange(0, 2).Draw(t, "step"); {
		case step == 0:
			p, text := drawPart(t, next)
			evs = append(evs, &dragoman.PartStart{Index: next, Part: skeletonOf(p)})
			open = append(open, &live{index: next, final: p, rest: text})
			next++
		case len(open) == 0:
		case step == 1:
			l := open[rapid.IntRange(0, len(open)-1).Draw(t, "which")]
			runes := []rune(l.rest)
			n := rapid.IntRange(0, len(runes)).Draw(t, "fragment")
			if n > 0 {
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
	case 0: // nothing: the source broke off
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

func drawPart(t *rapid.T, n int) (p dragoman.Part, text string) {
	text = words.Draw(t, "text")
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
		args := argText.Draw(t, "args")
		c := call(id, toolName.Draw(t, "name"), args)
		if rapid.Bool().Draw(t, "cut") {
			c.Problem = &dragoman.CallProblem{Code: dragoman.ProblemTruncated}
		}
		return c, args
	case 8:
		return &dragoman.ToolCall{ID: id, Name: "patch", Payload: dragoman.PayloadText, Arguments: text}, text
	case 9:
		return rapid.SampledFrom([]*dragoman.Opaque{
			{Dialect: dragoman.Bedrock, Type: "toolUse", JSON: json.RawMessage(`{"toolUse":{"toolUseId":"s","name":"nova_grounding","type":"server_tool_use","input":{"q":1}}}`)},
			{Dialect: dragoman.Bedrock, Type: "toolResult", JSON: json.RawMessage(`{"toolResult":{"toolUseId":"s","type":"x","content":[{"text":"found"}]}}`)},
			{Dialect: dragoman.Bedrock, Type: "guardContent", JSON: json.RawMessage(`{"guardContent":{}}`)},
		}).Draw(t, "native"), ""
	default:
		return rapid.SampledFrom([]dragoman.Part{
			&dragoman.Opaque{Dialect: dragoman.OpenAIResponses, Type: "web_search_call", JSON: json.RawMessage(`{}`)},
			&dragoman.Media{Media: dragoman.MediaImage, MIME: "image/png", Base64: "AA=="},
			&dragoman.Data{JSON: json.RawMessage(`{"a":1}`)},
			&dragoman.ToolCall{ID: id, Name: "hosted", Hosted: true},
		}).Draw(t, "other"), ""
	}
}

func skeletonOf(p dragoman.Part) dragoman.Part {
	switch p := p.(type) {
	case *dragoman.Text:
		return &dragoman.Text{}
	case *dragoman.Refusal:
		return &dragoman.Refusal{}
	case *dragoman.Reasoning:
		return &dragoman.Reasoning{Redacted: p.Redacted}
	case *dragoman.ToolCall:
		return &dragoman.ToolCall{ID: p.ID, Name: p.Name, Payload: p.Payload, Hosted: p.Hosted}
	default:
		return p
	}
}

func TestQuirkC33_WhateverTheEventsTheStreamIsValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		evs := drawEvents(t)
		e := codec.NewStreamEncoder(dialect.EncodeOptions{})
		var out []byte
		var err error
		for _, ev := range evs {
			if out, err = e.Encode(out, ev); err != nil {
				t.Fatal(err)
			}
		}
		if out, err = e.Close(out); err != nil {
			t.Fatal(err)
		}
		if err := checkWire(out); err != nil {
			t.Fatalf("%v\n%q", err, out)
		}
		back, err := drain(dialect.DecodeOptions{NoNative: true}, out)
		if err != nil {
			t.Fatalf("%v\n%q", err, out)
		}
		if _, whole := evs[len(evs)-1].(*dragoman.ResponseEnd); !whole {
			return
		}
		// Every part that ended comes back with its text, in order of start.
		var want, got []string
		ends := map[int]dragoman.Part{}
		for _, ev := range evs {
			if end, ok := ev.(*dragoman.PartEnd); ok {
				ends[end.Index] = end.Part
			}
		}
		unended := false
		for _, ev := range evs {
			if start, ok := ev.(*dragoman.PartStart); ok {
				switch p := ends[start.Index].(type) {
				case nil:
					unended = true
				case *dragoman.Text:
					want = append(want, p.Text)
				case *dragoman.Refusal:
					want = append(want, p.Text)
				case *dragoman.ToolCall:
					if !p.Hosted {
						obj, _ := p.Object()
						want = append(want, p.ID+string(obj))
					}
				}
			}
		}
		clear(ends)
		for _, ev := range back {
			if end, ok := ev.(*dragoman.PartEnd); ok {
				ends[end.Index] = end.Part
			}
		}
		for _, ev := range back {
			if start, ok := ev.(*dragoman.PartStart); ok {
				switch p := ends[start.Index].(type) {
				case *dragoman.Text:
					got = append(got, p.Text)
				case *dragoman.ToolCall:
					got = append(got, p.ID+p.Arguments)
				}
			}
		}
		if unended {
			return
		}
		for i, j := 0, 0; i < len(want); j++ { // notes stand in for media, data and empty answers
			if j == len(got) {
				t.Fatalf("%q is lost\nwant %q\ngot %q", want[i], want, got)
			}
			if want[i] == got[j] {
				i++
			}
		}
	})
}

// A stream with everything in it, to be cut anywhere.
var richStream = binary(startLine + `
	{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"reasoningContent":{"text":"日本 🙂"}}}}
	{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"reasoningContent":{"signature":"c2ln"}}}}
	{"contentBlockStop":{"contentBlockIndex":0,"p":"abc"}}
	{"contentBlockDelta":{"contentBlockIndex":1,"delta":{"reasoningContent":{"redactedContent":"AAEC"}}}}
	{"contentBlockStop":{"contentBlockIndex":1}}
	{"unheardOf":{"x":1}}
	{"contentBlockDelta":{"contentBlockIndex":2,"delta":{"text":"é\n"}}}
	{"contentBlockDelta":{"contentBlockIndex":2,"delta":{"citation":{"title":"c"}}}}
	{"contentBlockStop":{"contentBlockIndex":2}}
	{"contentBlockStart":{"contentBlockIndex":3,"start":{"toolUse":{"toolUseId":"s1","name":"nova_grounding","type":"server_tool_use"}}}}
	{"contentBlockDelta":{"contentBlockIndex":3,"delta":{"toolUse":{"input":"{\"q\":\"🙂\"}"}}}}
	{"contentBlockStop":{"contentBlockIndex":3}}
	{"contentBlockStart":{"contentBlockIndex":4,"start":{"toolResult":{"toolUseId":"s1","type":"nova_grounding_result"}}}}
	{"contentBlockDelta":{"contentBlockIndex":4,"delta":{"toolResult":[{"text":"found"}]}}}
	{"contentBlockStop":{"contentBlockIndex":4}}
	{"contentBlockStart":{"contentBlockIndex":5,"start":{"image":{"format":"png"}}}}
	{"contentBlockDelta":{"contentBlockIndex":5,"delta":{"image":{"source":{"bytes":"AAEC"}}}}}
	{"contentBlockStop":{"contentBlockIndex":5}}
	{"contentBlockStart":{"contentBlockIndex":6,"start":{"toolUse":{"toolUseId":"tooluse_1","name":"f"}}}}
	{"contentBlockDelta":{"contentBlockIndex":6,"delta":{"toolUse":{"input":"{\"a\":"}}}}
	{"contentBlockDelta":{"contentBlockIndex":6,"delta":{"toolUse":{"input":"\"日\"}"}}}}
	{"contentBlockStop":{"contentBlockIndex":6}}
	` + endLines("tool_use"))

func TestQuirkC16_EveryReChunkingGivesTheSameEvents(t *testing.T) {
	told := func(sizes ...int) string {
		evs, err := drain(dialect.DecodeOptions{}, richStream, sizes...)
		if err != nil {
			t.Fatal(err)
		}
		return codectest.EventLines(t, evs)
	}
	want := told()
	for cut := range richStream { // at every byte
		if got := told(cut); got != want {
			t.Fatalf("cut at byte %d: %s", cut, cmp.Diff(want, got))
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfN(rapid.IntRange(0, 40), 0, 100).Draw(t, "sizes")
		if got := told(sizes...); got != want {
			t.Fatal(cmp.Diff(want, got))
		}
	})
}
