package quirks_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/gemini"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/testkit/crosstest"
)

// countedResponses have a placeholder for the input token count, whole and streamed.
var countedResponses = map[dragoman.Dialect]struct {
	member, whole string
	stream        []string
}{
	dialectname.OpenAIChat: {
		"prompt_tokens",
		`{"choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":%[1]s,"completion_tokens":2}}`,
		[]string{
			`{"choices":[{"index":0,"delta":{"content":"hi"}}],"usage":{"prompt_tokens":%[1]s,"completion_tokens":2}}`,
			`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":%[1]s,"completion_tokens":2}}`,
		},
	},
	dialectname.OpenAIResponses: {
		"input_tokens",
		`{"id":"r","status":"completed","output":[{"type":"message","role":"assistant","content":"hi"}],"usage":{"input_tokens":%[1]s,"output_tokens":2}}`,
		[]string{`{"type":"response.completed","response":{"id":"r","status":"completed","output":[{"type":"message","role":"assistant","content":"hi"}],"usage":{"input_tokens":%[1]s,"output_tokens":2}}}`},
	},
	dialectname.Anthropic: {
		"input_tokens",
		`{"id":"m","type":"message","role":"assistant","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn","usage":{"input_tokens":%[1]s,"output_tokens":2}}`,
		[]string{
			`{"type":"message_start","message":{"id":"m","role":"assistant","content":[{"type":"text","text":"hi"}],"usage":{"input_tokens":%[1]s}}}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":%[1]s,"output_tokens":2}}`,
			`{"type":"message_stop"}`,
		},
	},
	dialectname.Gemini: {
		"promptTokenCount",
		`{"candidates":[{"content":{"role":"model","parts":[{"text":"hi"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":%[1]s,"candidatesTokenCount":2}}`,
		[]string{`{"candidates":[{"content":{"role":"model","parts":[{"text":"hi"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":%[1]s,"candidatesTokenCount":2}}`},
	},
	"cohere.chat": {
		"input_tokens",
		`{"id":"x","message":{"role":"assistant","content":[{"type":"text","text":"hi"}]},"finish_reason":"COMPLETE","usage":{"tokens":{"input_tokens":%[1]s,"output_tokens":2}}}`,
		[]string{
			`{"type":"content-delta","index":0,"delta":{"message":{"content":{"text":"hi"}}}}`,
			`{"type":"message-end","delta":{"finish_reason":"COMPLETE","usage":{"tokens":{"input_tokens":%[1]s,"output_tokens":2}}}}`,
		},
	},
	dialectname.Ollama: {
		"prompt_eval_count",
		`{"model":"m","message":{"role":"assistant","content":"hi"},"done":true,"done_reason":"stop","prompt_eval_count":%[1]s,"eval_count":2}`,
		[]string{`{"model":"m","message":{"role":"assistant","content":"hi"},"done":true,"done_reason":"stop","prompt_eval_count":%[1]s,"eval_count":2}`},
	},
	dialectname.Bedrock: {
		"inputTokens",
		`{"output":{"message":{"role":"assistant","content":[{"text":"hi"}]}},"stopReason":"end_turn","usage":{"inputTokens":%[1]s,"outputTokens":2,"totalTokens":2}}`,
		[]string{
			`messageStart {"role":"assistant"}`, `contentBlockDelta {"contentBlockIndex":0,"delta":{"text":"hi"}}`, `contentBlockStop {"contentBlockIndex":0}`,
			`messageStop {"stopReason":"end_turn"}`, `metadata {"usage":{"inputTokens":%[1]s,"outputTokens":2,"totalTokens":2}}`,
		},
	},
}

// An invalid count is unknown, not zero, and does not fail the response.
func TestInvalidCountIsUnknownAndReported(t *testing.T) {
	for _, c := range crosstest.Codecs {
		a := countedResponses[c.Dialect()]
		for wire, want := range map[string]dragoman.Count{
			`"many"`: {}, `-5`: {}, `1.5`: {}, `{}`: {}, `[7]`: {}, `true`: {}, `1e40`: {}, `"-5"`: {}, `"1.5"`: {},
			`null`: {}, `0`: dragoman.Counted(0), `7`: dragoman.Counted(7), `7.0`: dragoman.Counted(7), `"7"`: dragoman.Counted(7),
		} {
			check := func(how string, resp *dragoman.Response, rep dragoman.Report, err error) {
				t.Helper()
				if err != nil || resp.Text() != "hi" || resp.Stop.Reason != dragoman.StopEnd {
					t.Errorf("%s, %s, %s: %v %+v", c.Dialect(), how, wire, err, resp)
					return
				}
				if resp.Usage.Input != want || resp.Usage.Output != dragoman.Counted(2) {
					t.Errorf("%s, %s, %s: %+v", c.Dialect(), how, wire, resp.Usage)
				}
				lines := 0
				for _, l := range rep.Losses {
					if strings.Contains(l.Detail, a.member+" is not a token count") && l.Kind == dragoman.Dropped && l.Severity == dragoman.Warn {
						lines++
					}
				}
				if valid := wire == "null" || want.Known; valid != (lines == 0) || lines > 1 {
					t.Errorf("%s, %s, %s: %d losses: %v", c.Dialect(), how, wire, lines, rep.Losses)
				}
			}
			resp, rep, err := c.DecodeResponse(fmt.Appendf(nil, a.whole, wire), dialect.DecodeOptions{})
			check("whole", resp, rep, err)

			var events []string
			for _, ev := range a.stream {
				events = append(events, strings.ReplaceAll(ev, "%[1]s", wire))
			}
			dec := c.NewStreamDecoder(dialect.DecodeOptions{NoNative: true})
			var collector dragoman.Collector
			emit := func(ev dragoman.Event) error { collector.Add(ev); return nil }
			if err := errors.Join(dec.Feed(crosstest.OnWire(t, c.Dialect(), events), emit), dec.Close(emit)); err != nil {
				t.Errorf("%s, stream, %s: %v", c.Dialect(), wire, err)
				continue
			}
			resp, err = collector.Response()
			check("stream", resp, dec.Report(), err)
		}
	}
}

func TestMistypedUsageIsReported(t *testing.T) {
	for _, c := range crosstest.Codecs {
		if c.Dialect() == dialectname.Ollama { // Ollama has no usage object
			continue
		}
		whole := countedResponses[c.Dialect()].whole
		at := strings.Index(whole, `"usage`)
		colon := at + strings.Index(whole[at:], ":") + 1
		resp, rep, err := c.DecodeResponse([]byte(whole[:colon]+`"much"}`), dialect.DecodeOptions{})
		if err != nil || resp.Text() != "hi" || resp.Usage.Input.Known || len(rep.Losses) != 1 || !strings.Contains(rep.Losses[0].Detail, "is not an object") {
			t.Errorf("%s: %v %+v %v", c.Dialect(), err, resp.Usage, rep.Losses)
		}
	}
}

// Some servers count reasoning separately from the output, or cached tokens separately from the
// input. No wire format does, and clients do arithmetic with the counts.
func TestQuirkJ12_PartialCountNeverExceedsItsTotal(t *testing.T) {
	count := dragoman.Counted
	for _, tc := range []struct {
		about string
		usage dragoman.Usage
		want  map[dragoman.Dialect]string // usage on the wire, in whole responses and in streams
	}{
		{
			"reasoning counted separately",
			dragoman.Usage{Input: count(4865), Output: count(16), Reasoning: count(19)},
			map[dragoman.Dialect]string{
				dialectname.OpenAIChat:      `"prompt_tokens":4865,"completion_tokens":16,"total_tokens":4881,"completion_tokens_details":{"reasoning_tokens":16}`,
				dialectname.OpenAIResponses: `"output_tokens":16,"output_tokens_details":{"reasoning_tokens":16},"total_tokens":4881`,
				dialectname.Anthropic:       `"input_tokens":4865,"output_tokens":16,"output_tokens_details":{"thinking_tokens":16}`,
				dialectname.Gemini:          `{"promptTokenCount":4865,"thoughtsTokenCount":16,"totalTokenCount":4881}`,
				"cohere.chat":               `{"tokens":{"input_tokens":4865,"output_tokens":16}}`,
				dialectname.Ollama:          `"prompt_eval_count":4865,"eval_count":16`,
				dialectname.Bedrock:         `{"inputTokens":4865,"outputTokens":16,"totalTokens":4881}`,
			},
		},
		{
			"more cached than input tokens",
			dragoman.Usage{Input: count(10), CacheRead: count(8), CacheWrite: count(5), Output: count(1)},
			map[dragoman.Dialect]string{
				dialectname.OpenAIChat:      `"prompt_tokens":10,"completion_tokens":1,"total_tokens":11,"prompt_tokens_details":{"cached_tokens":8,"cache_write_tokens":2}`,
				dialectname.OpenAIResponses: `"input_tokens":10,"input_tokens_details":{"cached_tokens":8,"cache_write_tokens":2}`,
				dialectname.Anthropic:       `"input_tokens":0,"cache_creation_input_tokens":2,"cache_read_input_tokens":8,"output_tokens":1`,
				dialectname.Gemini:          `{"promptTokenCount":10,"cachedContentTokenCount":8,"candidatesTokenCount":1,"totalTokenCount":11}`,
				"cohere.chat":               `{"tokens":{"input_tokens":10,"output_tokens":1},"cached_tokens":8}`,
				dialectname.Ollama:          `"prompt_eval_count":10,"prompt_eval_cached_count":8,"eval_count":1`,
				dialectname.Bedrock:         `{"inputTokens":0,"outputTokens":1,"totalTokens":11,"cacheReadInputTokens":8,"cacheWriteInputTokens":2}`,
			},
		},
		{
			"parts of unknown totals",
			dragoman.Usage{CacheRead: count(7), Reasoning: count(3), Output: count(4)},
			map[dragoman.Dialect]string{
				dialectname.OpenAIChat:      `"prompt_tokens":7,"completion_tokens":4,"total_tokens":11`,
				dialectname.OpenAIResponses: `"input_tokens":7,"input_tokens_details":{"cached_tokens":7},"output_tokens":4`,
				dialectname.Anthropic:       `"input_tokens":0,"cache_read_input_tokens":7,"output_tokens":4`,
				dialectname.Gemini:          `{"promptTokenCount":7,"cachedContentTokenCount":7,"candidatesTokenCount":1,"thoughtsTokenCount":3,"totalTokenCount":11}`,
				"cohere.chat":               `{"tokens":{"output_tokens":4},"cached_tokens":7}`,
				dialectname.Ollama:          `"prompt_eval_cached_count":7,"eval_count":4`,
				dialectname.Bedrock:         `{"inputTokens":0,"outputTokens":4,"totalTokens":11,"cacheReadInputTokens":7}`,
			},
		},
		{
			"reasoning only",
			dragoman.Usage{Input: count(2), Reasoning: count(3)},
			map[dragoman.Dialect]string{
				dialectname.OpenAIChat:      `"prompt_tokens":2,"completion_tokens":3,"total_tokens":5`,
				dialectname.OpenAIResponses: `"output_tokens":3,"output_tokens_details":{"reasoning_tokens":3},"total_tokens":5`,
				dialectname.Anthropic:       `"input_tokens":2,"output_tokens":3,"output_tokens_details":{"thinking_tokens":3}`,
				dialectname.Gemini:          `{"promptTokenCount":2,"thoughtsTokenCount":3,"totalTokenCount":5}`,
				"cohere.chat":               `{"tokens":{"input_tokens":2}}`,
				dialectname.Ollama:          `"prompt_eval_count":2`,
				dialectname.Bedrock:         `{"inputTokens":2,"outputTokens":3,"totalTokens":5}`,
			},
		},
	} {
		for _, c := range crosstest.Codecs {
			resp := &dragoman.Response{ID: "r", Model: "m", Output: []dragoman.Message{dragoman.AssistantText("hi")}, Usage: tc.usage, Stop: dragoman.Stop{Reason: dragoman.StopEnd}}
			whole, err := c.EncodeResponse(resp, dialect.EncodeOptions{})
			stream, rep, err2 := crosstest.Streamed(c, []dragoman.Event{
				&dragoman.ResponseStart{Response: dragoman.Response{ID: "r", Model: "m"}}, &dragoman.PartStart{Part: &dragoman.Text{}}, &dragoman.PartEnd{Part: &dragoman.Text{Text: "hi"}},
				&dragoman.ResponseEnd{Usage: tc.usage, Stop: resp.Stop},
			}, dialect.EncodeOptions{StreamUsage: true})
			if err = errors.Join(err, err2); err != nil {
				t.Fatal(c.Dialect(), err)
			}
			for how, body := range map[string]string{"whole": string(whole.Body), "streamed": string(stream)} {
				if !strings.Contains(body, tc.want[c.Dialect()]) {
					t.Errorf("%s, %s, %s: %s\nwant %s", tc.about, c.Dialect(), how, body, tc.want[c.Dialect()])
				}
			}
			reported := func(rep dragoman.Report) bool { return strings.Contains(fmt.Sprint(rep), "/usage/") }
			if !reported(whole.Report) && c.Dialect() != dialectname.Ollama || !reported(rep) && c.Dialect() != dialectname.Ollama {
				t.Errorf("%s, %s: %v %v", tc.about, c.Dialect(), whole.Report, rep)
			}
		}
	}
}

// Ollama omits the count of a prompt that it has cached.
func TestQuirkJ12_GeminiTotalIsTheSumOfWrittenCounts(t *testing.T) {
	count := dragoman.Counted
	for _, tc := range []struct {
		about string
		usage dragoman.Usage
		want  string
	}{
		{"nothing is known", dragoman.Usage{}, `{}`},
		{"output only", dragoman.Usage{Output: count(5)}, `{"candidatesTokenCount":5,"totalTokenCount":5}`},
		{"prompt only", dragoman.Usage{Input: count(5)}, `{"promptTokenCount":5,"totalTokenCount":5}`},
		{"output with reasoning", dragoman.Usage{Output: count(5), Reasoning: count(2)}, `{"candidatesTokenCount":3,"thoughtsTokenCount":2,"totalTokenCount":5}`},
		{"reasoning only", dragoman.Usage{Reasoning: count(2)}, `{"thoughtsTokenCount":2,"totalTokenCount":2}`},
		{"an empty cache", dragoman.Usage{CacheRead: count(0)}, `{"cachedContentTokenCount":0,"totalTokenCount":0}`},
		{
			"input of tools",
			dragoman.Usage{Input: count(9), Output: count(1), Extra: &dragoman.Extra{Dialect: dialectname.Gemini, Fields: []dragoman.Field{{Path: "/toolUsePromptTokenCount", Value: []byte("4")}}}},
			`{"promptTokenCount":5,"candidatesTokenCount":1,"totalTokenCount":10,"toolUsePromptTokenCount":4}`,
		},
		{"a sum that overflows", dragoman.Usage{Input: count(1 << 62), Output: count(1 << 62)}, `{"promptTokenCount":4611686018427387904,"candidatesTokenCount":4611686018427387904,"totalTokenCount":9223372036854775807}`},
	} {
		enc, err := gemini.Codec{}.EncodeResponse(&dragoman.Response{ID: "r", Output: []dragoman.Message{dragoman.AssistantText("hi")}, Usage: tc.usage, Stop: dragoman.Stop{Reason: dragoman.StopEnd}}, dialect.EncodeOptions{})
		if err != nil || !strings.Contains(string(enc.Body), `"usageMetadata":`+tc.want) {
			t.Errorf("%s: %v %s\nwant %s", tc.about, err, enc.Body, tc.want)
		}
	}
}
