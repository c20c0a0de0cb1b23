package quirks_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/testkit/crosstest"
)

// anthropicEvents frames event data as server-sent events.
func anthropicEvents(data ...string) []byte {
	var b strings.Builder
	for _, d := range data {
		var ev struct{ Type string }
		_ = json.Unmarshal([]byte(d), &ev)
		fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", ev.Type, d)
	}
	return []byte(b.String())
}

// anthropicCallOf returns a stream of one call with the given deltas.
func anthropicCallOf(deltas ...string) []byte {
	data := []string{
		`{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"x","content":[],"usage":{"input_tokens":1,"output_tokens":1}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"f","input":{}}}`,
	}
	for _, d := range deltas {
		data = append(data, `{"type":"content_block_delta","index":0,"delta":`+d+`}`)
	}
	return anthropicEvents(append(data, `{"type":"content_block_stop","index":0}`,
		`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":2}}`, `{"type":"message_stop"}`)...)
}

// bedrockCallOf returns a stream of one call with the given inputs.
func bedrockCallOf(t *testing.T, inputs ...string) []byte {
	t.Helper()
	out := crosstest.EventStreamFrame(t, "messageStart", map[string]any{"role": "assistant"})
	out = append(out, crosstest.EventStreamFrame(t, "contentBlockStart", map[string]any{"contentBlockIndex": 0, "start": map[string]any{"toolUse": map[string]any{"toolUseId": "t", "name": "f"}}})...)
	for _, in := range inputs {
		out = append(out, crosstest.EventStreamFrame(t, "contentBlockDelta", map[string]any{"contentBlockIndex": 0, "delta": map[string]any{"toolUse": json.RawMessage(in)}})...)
	}
	out = append(out, crosstest.EventStreamFrame(t, "contentBlockStop", map[string]any{"contentBlockIndex": 0})...)
	out = append(out, crosstest.EventStreamFrame(t, "messageStop", map[string]any{"stopReason": "tool_use"})...)
	return append(out, crosstest.EventStreamFrame(t, "metadata", map[string]any{"usage": map[string]any{"inputTokens": 1, "outputTokens": 2, "totalTokens": 3}})...)
}

// converted converts a stream to another dialect. It returns the decoded response, the written
// stream and all losses.
func converted(t *testing.T, from, to dialect.Codec, body []byte) (resp *dragoman.Response, out []byte, rep dragoman.Report) {
	t.Helper()
	dec, enc := from.NewStreamDecoder(dialect.DecodeOptions{}), to.NewStreamEncoder(dialect.EncodeOptions{Seed: "s"})
	var col dragoman.Collector
	emit := func(ev dragoman.Event) (err error) {
		col.Add(ev)
		out, err = enc.Encode(out, ev)
		return err
	}
	if err := dec.Feed(body, emit); err != nil {
		t.Fatal(err)
	}
	if err := dec.Close(emit); err != nil {
		t.Fatal(err)
	}
	out, err := enc.Close(out)
	if err != nil {
		t.Fatal(err)
	}
	rep.Merge("", dec.Report())
	rep.Merge("", enc.Report())
	resp, err = col.Response()
	if err != nil {
		t.Fatal(err)
	}
	return resp, out, rep
}

// A client that joins text deltas would get no text, and would run the call with {}.
func TestQuirkB1C7_MistypedStreamedArgumentsAreReadOrBlocked(t *testing.T) {
	anthropic := func(values ...string) []byte {
		var deltas []string
		for _, v := range values {
			deltas = append(deltas, `{"type":"input_json_delta","partial_json":`+v+`}`)
		}
		return anthropicCallOf(deltas...)
	}
	bedrock := func(values ...string) []byte {
		var inputs []string
		for _, v := range values {
			inputs = append(inputs, `{"input":`+v+`}`)
		}
		return bedrockCallOf(t, inputs...)
	}
	for d, stream := range map[dragoman.Dialect]func(...string) []byte{dialectname.Anthropic: anthropic, dialectname.Bedrock: bedrock} {
		for _, tc := range []struct {
			pieces []string
			args   string
			runs   bool
		}{
			{[]string{`{"path":"/tmp/x"}`}, `{"path":"/tmp/x"}`, true},
			{[]string{`""`, `{"path":"/tmp/x"}`, `""`, `null`}, `{"path":"/tmp/x"}`, true},
			{[]string{`5`}, `5`, false},
			{[]string{`true`}, `true`, false},
			{[]string{`["a"]`}, `["a"]`, false},
			{[]string{`"{\"a\":1"`, `2`, `"}"`}, `{"a":12}`, false}, // ambiguous: 12 or 1
			{[]string{`{"a":1}`, `"{\"a\":1}"`}, ``, false},
			{[]string{`{"a":1}`, `{"a":1}`}, ``, false},
		} {
			name := fmt.Sprintf("%s %q", d, tc.pieces)
			body := stream(tc.pieces...)
			resp, out, rep := converted(t, crosstest.CodecOf(d), crosstest.CodecOf(dialectname.OpenAIChat), body)
			calls := resp.ToolCalls()
			if len(calls) != 1 || (calls[0].Problem == nil) != tc.runs || tc.args != "" && calls[0].Arguments != tc.args {
				t.Errorf("%s: %+v", name, calls[0])
				continue
			}
			if !strings.Contains(rep.String(), "arguments came as a JSON value") {
				t.Errorf("%s: nothing is reported:\n%s", name, rep)
			}
			// A client detects by itself that a number is not an object.
			if tc.runs && !strings.Contains(string(out), `/tmp/x`) || !tc.runs && len(tc.pieces) > 1 && strings.Contains(string(out), `"finish_reason":"tool_calls"`) {
				t.Errorf("%s: %s", name, out)
			}
			// A client of the same dialect gets the call that we decode.
			_, same, _ := converted(t, crosstest.CodecOf(d), crosstest.CodecOf(d), body)
			again := crosstest.Collect(t, crosstest.CodecOf(d), same, nil).ToolCalls()
			if len(again) != 1 || tc.runs && again[0].Arguments != tc.args || (again[0].Problem == nil) != tc.runs {
				t.Errorf("%s: a client reads %+v from %s", name, again[0], same)
			}
		}
	}
}

// The type may follow the arguments, or be absent.
func TestQuirkC7_AnthropicArgumentValueIsFoundAnywhere(t *testing.T) {
	for _, delta := range []string{
		`{"partial_json":{"a":1},"type":"input_json_delta"}`,
		`{"partial_json":{"a":1}}`,
	} {
		resp, _, _ := converted(t, crosstest.CodecOf(dialectname.Anthropic), crosstest.CodecOf(dialectname.OpenAIChat), anthropicCallOf(delta))
		if c := resp.ToolCalls()[0]; c.Problem != nil || c.Arguments != `{"a":1}` {
			t.Errorf("%s: %+v", delta, c)
		}
	}
}

func TestQuirkC7_BedrockCallOfWrongTypeIsADecodeError(t *testing.T) {
	for _, v := range []string{`5`, `"{\"a\":1}"`, `[]`} {
		dec := crosstest.CodecOf(dialectname.Bedrock).NewStreamDecoder(dialect.DecodeOptions{})
		err := dec.Feed(bedrockCallOf(t, v), func(dragoman.Event) error { return nil })
		if err == nil || !strings.Contains(err.Error(), "/delta/toolUse") {
			t.Errorf("%s: %v", v, err)
		}
	}
}

func TestQuirkC28_UnreadablePartialArgumentsBlockTheCall(t *testing.T) {
	for _, pieces := range []string{
		`{"jsonPath":"$.x","stringValue":"a"}`, `5`, `"a"`, `true`,
		`[{"jsonPath":"$.x","structValue":{"a":1}}]`, `[{"jsonPath":"$.x","stringValue":5}]`, `[5]`,
	} {
		body := `data: {"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"f","partialArgs":` + pieces + `}}]},"finishReason":"STOP"}]}` + "\n\n"
		resp, _, _ := converted(t, crosstest.CodecOf(dialectname.Gemini), crosstest.CodecOf(dialectname.OpenAIChat), []byte(body))
		if calls := resp.ToolCalls(); len(calls) != 1 || calls[0].Problem == nil {
			t.Errorf("%s: %+v", pieces, calls[0])
		}
	}
}

func TestQuirkJ7_MistypedAnthropicTextsAreReported(t *testing.T) {
	for block, delta := range map[string]string{
		`{"type":"text","text":""}`:                         `{"type":"text_delta","text":5}`,
		`{"type":"thinking","thinking":"","signature":""}`:  `{"type":"thinking_delta","thinking":{"a":1}}`,
		`{"type":"thinking","thinking":"","signature":"" }`: `{"type":"signature_delta","signature":["s"]}`,
	} {
		body := anthropicEvents(
			`{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"x","content":[],"usage":{"input_tokens":1,"output_tokens":1}}}`,
			`{"type":"content_block_start","index":0,"content_block":`+block+`}`,
			`{"type":"content_block_delta","index":0,"delta":`+delta+`}`, `{"type":"content_block_delta","index":0,"delta":`+delta+`}`,
			`{"type":"content_block_stop","index":0}`, `{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`, `{"type":"message_stop"}`)
		_, _, rep := converted(t, crosstest.CodecOf(dialectname.Anthropic), crosstest.CodecOf(dialectname.OpenAIChat), body)
		if n := strings.Count(rep.String(), "/content/0: "); n != 1 || !strings.Contains(rep.String(), "is not a string") {
			t.Errorf("%s: %d losses\n%s", delta, n, rep)
		}
	}
}

// Unknown fields of a known event pass through within the dialect. Other dialects drop them and
// report each kind once.
func TestQuirkJ7_UnknownFieldsOfKnownEventsAreReported(t *testing.T) {
	text := `{"type":"content_block_delta","index":0,"zork2":2,"delta":{"type":"text_delta","text":"b","zork3":3}}`
	anthropic := anthropicEvents(
		`{"type":"message_start","zork0":0,"message":{"id":"m","type":"message","role":"assistant","model":"x","content":[],"usage":{"input_tokens":1,"output_tokens":1}}}`,
		`{"type":"content_block_start","index":0,"zork1":1,"content_block":{"type":"text","text":"a"}}`, text, text, text,
		`{"type":"content_block_delta","index":0,"delta":{"text":"b","zork4":3,"type":"text_delta"}}`,
		`{"type":"content_block_stop","index":0,"zork5":4}`,
		`{"type":"message_delta","delta":{"stop_reason":"end_turn","zork6":5},"zork7":6,"usage":{"output_tokens":5}}`,
		`{"type":"message_stop","zork8":8}`)
	gemini := []byte(`data: {"candidates":[{"content":{"role":"model","parts":[{"text":"a"}],"zork0":1}}]}` + "\n\n" +
		`data: {"candidates":[{"content":{"role":"model","parts":[{"text":"b","partMetadata":{"k":1}}],"zork0":1}}]}` + "\n\n" +
		`data: {"candidates":[{"content":{"role":"model","parts":[{"text":"c","partMetadata":{"k":1}}],"zork1":1},"finishReason":"STOP"}]}` + "\n\n")
	bedrock := crosstest.EventStreamFrame(t, "messageStart", map[string]any{"role": "assistant"})
	for range 3 {
		bedrock = append(bedrock, crosstest.EventStreamFrame(t, "contentBlockDelta", map[string]any{"contentBlockIndex": 0, "delta": map[string]any{"text": "a"}, "zork0": 1})...)
	}
	bedrock = append(bedrock, crosstest.EventStreamFrame(t, "contentBlockStop", map[string]any{"contentBlockIndex": 0, "zork1": 1})...)
	bedrock = append(bedrock, crosstest.EventStreamFrame(t, "messageStop", map[string]any{"stopReason": "end_turn"})...)
	bedrock = append(bedrock, crosstest.EventStreamFrame(t, "metadata", map[string]any{"usage": map[string]any{"inputTokens": 1, "outputTokens": 2, "totalTokens": 3}})...)
	for d, tc := range map[dragoman.Dialect]struct {
		body []byte
		want []string
	}{
		dialectname.Anthropic: {anthropic, []string{"zork0", "zork1", "zork2", "zork3", "zork4", "zork5", "zork6", "zork7", "zork8"}},
		dialectname.Gemini:    {gemini, []string{"zork0", "zork1", "partMetadata"}},
		dialectname.Bedrock:   {bedrock, []string{"zork0", "zork1"}},
	} {
		_, _, rep := converted(t, crosstest.CodecOf(d), crosstest.CodecOf(dialectname.OpenAIChat), tc.body)
		for _, w := range tc.want {
			if n := strings.Count(rep.String(), w); n == 0 || n > 2 {
				t.Errorf("%s: %d losses for %q:\n%s", d, n, w, rep)
			}
		}
		_, same, rep := converted(t, crosstest.CodecOf(d), crosstest.CodecOf(d), tc.body)
		if strings.Contains(rep.String(), "zork") {
			t.Errorf("%s: losses within the dialect:\n%s\n%s", d, same, rep)
		}
		for _, w := range tc.want {
			if strings.Count(string(same), `"`+w+`":`) == 0 {
				t.Errorf("%s: %s is lost within the dialect:\n%s", d, w, same)
			}
		}
	}
}
