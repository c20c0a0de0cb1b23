package dialect_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
)

// countedAnswers are answers with a place for the count of what was read, whole
// and streamed.
var countedAnswers = map[dragoman.Dialect]struct {
	member, whole string
	stream        []string
}{
	dragoman.OpenAIChat: {
		"prompt_tokens",
		`{"choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":%[1]s,"completion_tokens":2}}`,
		[]string{
			`{"choices":[{"index":0,"delta":{"content":"hi"}}],"usage":{"prompt_tokens":%[1]s,"completion_tokens":2}}`,
			`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":%[1]s,"completion_tokens":2}}`,
		},
	},
	dragoman.OpenAIResponses: {
		"input_tokens",
		`{"id":"r","status":"completed","output":[{"type":"message","role":"assistant","content":"hi"}],"usage":{"input_tokens":%[1]s,"output_tokens":2}}`,
		[]string{`{"type":"response.completed","response":{"id":"r","status":"completed","output":[{"type":"message","role":"assistant","content":"hi"}],"usage":{"input_tokens":%[1]s,"output_tokens":2}}}`},
	},
	dragoman.Anthropic: {
		"input_tokens",
		`{"id":"m","type":"message","role":"assistant","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn","usage":{"input_tokens":%[1]s,"output_tokens":2}}`,
		[]string{
			`{"type":"message_start","message":{"id":"m","role":"assistant","content":[{"type":"text","text":"hi"}],"usage":{"input_tokens":%[1]s}}}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":%[1]s,"output_tokens":2}}`,
			`{"type":"message_stop"}`,
		},
	},
	dragoman.Gemini: {
		"promptTokenCount",
		`{"candidates":[{"content":{"role":"model","parts":[{"text":"hi"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":%[1]s,"candidatesTokenCount":2}}`,
		[]string{`{"candidates":[{"content":{"role":"model","parts":[{"text":"hi"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":%[1]s,"candidatesTokenCount":2}}`},
	},
	dragoman.Ollama: {
		"prompt_eval_count",
		`{"model":"m","message":{"role":"assistant","content":"hi"},"done":true,"done_reason":"stop","prompt_eval_count":%[1]s,"eval_count":2}`,
		[]string{`{"model":"m","message":{"role":"assistant","content":"hi"},"done":true,"done_reason":"stop","prompt_eval_count":%[1]s,"eval_count":2}`},
	},
	dragoman.Bedrock: {
		"inputTokens",
		`{"output":{"message":{"role":"assistant","content":[{"text":"hi"}]}},"stopReason":"end_turn","usage":{"inputTokens":%[1]s,"outputTokens":2,"totalTokens":2}}`,
		[]string{
			`messageStart {"role":"assistant"}`, `contentBlockDelta {"contentBlockIndex":0,"delta":{"text":"hi"}}`, `contentBlockStop {"contentBlockIndex":0}`,
			`messageStop {"stopReason":"end_turn"}`, `metadata {"usage":{"inputTokens":%[1]s,"outputTokens":2,"totalTokens":2}}`,
		},
	},
}

// What is no count is not zero, and no reason to lose an answer.
func TestACountThatIsNoneIsUnknownAndReportedAndTheAnswerStands(t *testing.T) {
	for _, c := range codecs {
		a := countedAnswers[c.Dialect()]
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
					if strings.Contains(l.Detail, a.member+" is no number of tokens") && l.Kind == dragoman.Dropped && l.Severity == dragoman.Warn {
						lines++
					}
				}
				if told := wire == "null" || want.Known; told != (lines == 0) || lines > 1 {
					t.Errorf("%s, %s, %s: %d lines: %v", c.Dialect(), how, wire, lines, rep.Losses)
				}
			}
			resp, rep, err := c.DecodeResponse(fmt.Appendf(nil, a.whole, wire), dialect.DecodeOptions{})
			check("whole", resp, rep, err)

			var events []string
			for _, ev := range a.stream {
				events = append(events, strings.ReplaceAll(ev, "%[1]s", wire))
			}
			dec := c.NewStreamDecoder(dialect.DecodeOptions{NoNative: true})
			var answer dragoman.Collector
			emit := func(ev dragoman.Event) error { answer.Add(ev); return nil }
			if err := errors.Join(dec.Feed(onWire(t, c.Dialect(), events), emit), dec.Close(emit)); err != nil {
				t.Errorf("%s, stream, %s: %v", c.Dialect(), wire, err)
				continue
			}
			resp, err = answer.Response()
			check("stream", resp, dec.Report(), err)
		}
	}
}

func TestUsageThatIsNoObjectIsReportedAndTheAnswerStands(t *testing.T) {
	for _, c := range codecs {
		if c.Dialect() == dragoman.Ollama { // which has none
			continue
		}
		whole := countedAnswers[c.Dialect()].whole
		at := strings.Index(whole, `"usage`)
		colon := at + strings.Index(whole[at:], ":") + 1
		resp, rep, err := c.DecodeResponse([]byte(whole[:colon]+`"much"}`), dialect.DecodeOptions{})
		if err != nil || resp.Text() != "hi" || resp.Usage.Input.Known || len(rep.Losses) != 1 || !strings.Contains(rep.Losses[0].Detail, "is no object") {
			t.Errorf("%s: %v %+v %v", c.Dialect(), err, resp.Usage, rep.Losses)
		}
	}
}
