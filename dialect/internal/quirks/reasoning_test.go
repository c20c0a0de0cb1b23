package quirks_test

import (
	"bytes"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/testkit/crosstest"
	"github.com/dragoman-go/dragoman/targets"
)

// reasoningResponses have opaque reasoning state, which is always "c2VjcmV0".
var reasoningResponses = map[dragoman.Dialect]string{
	dialectname.OpenAIResponses: `{"id":"r","object":"response","status":"completed","model":"one","output":[{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"seen"}],"encrypted_content":"c2VjcmV0"},{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"so","annotations":[]}]}]}`,
	dialectname.Anthropic:       `{"id":"m","type":"message","role":"assistant","model":"one","content":[{"type":"thinking","thinking":"seen","signature":"c2VjcmV0"},{"type":"redacted_thinking","data":"c2VjcmV0"},{"type":"text","text":"so"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`,
	dialectname.Gemini:          `{"candidates":[{"content":{"role":"model","parts":[{"text":"seen","thought":true},{"text":"so","thoughtSignature":"c2VjcmV0"}]},"finishReason":"STOP","index":0}],"modelVersion":"one"}`,
	dialectname.Bedrock:         `{"output":{"message":{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"seen","signature":"c2VjcmV0"}}},{"reasoningContent":{"redactedContent":"c2VjcmV0"}},{"text":"so"}]}},"stopReason":"end_turn","usage":{"inputTokens":1,"outputTokens":1,"totalTokens":2}}`,
}

// continuation returns a request that continues after one of reasoningResponses.
func continuation(t *testing.T, d dragoman.Dialect, origin dragoman.Origin) *dragoman.Request {
	t.Helper()
	resp, _, err := crosstest.CodecOf(d).DecodeResponse([]byte(reasoningResponses[d]), dialect.DecodeOptions{Origin: origin})
	if err != nil {
		t.Fatal(err)
	}
	return &dragoman.Request{Model: "one", Messages: append(append([]dragoman.Message{dragoman.UserText("q")}, resp.Output...), dragoman.UserText("more"))}
}

func TestQuirkD26_OpaqueReasoningIsDroppedWhenTheModelChanges(t *testing.T) {
	for from := range reasoningResponses {
		for _, c := range crosstest.Codecs {
			for _, model := range []string{"one", "another"} {
				// Only Responses models can read each other's reasoning.
				same := c.Dialect() == from && (model == "one" || from == dialectname.OpenAIResponses)
				for _, rebuild := range []bool{false, true} {
					req := continuation(t, from, dragoman.Origin{Model: "one"})
					req.Model = model
					enc, err := c.EncodeRequest(req, dialect.EncodeOptions{Rebuild: rebuild})
					if err != nil {
						t.Fatal(err)
					}
					if got := bytes.Contains(enc.Body, []byte("c2VjcmV0")); got != same {
						t.Errorf("%s to %s of %s: kept %v\n%s", from, model, c.Dialect(), got, enc.Body)
					}
					if !bytes.Contains(enc.Body, []byte(`"so"`)) || bytes.Contains(enc.Body, []byte("<think")) {
						t.Errorf("%s to %s of %s: %s", from, model, c.Dialect(), enc.Body)
					}
					if !same && enc.Report.Err(dragoman.Warn) == nil {
						t.Errorf("%s to %s of %s: not reported\n%s", from, model, c.Dialect(), enc.Report)
					}
				}
			}
		}
	}
}

func TestQuirkD24_RedactedThinkingReturnsUnchanged(t *testing.T) {
	for d, want := range map[dragoman.Dialect]string{
		dialectname.Anthropic: `"signature":"c2VjcmV0"},{"type":"redacted_thinking","data":"c2VjcmV0"},{"type":"text","text":"so"}`,
		dialectname.Bedrock:   `{"reasoningContent":{"redactedContent":"c2VjcmV0"}},{"text":"so"}`,
	} {
		for _, rebuild := range []bool{false, true} {
			for origin, kept := range map[dragoman.Origin]bool{
				{Model: "one"}:                      true,
				{Model: "one", Provider: "another"}: false,
			} {
				enc, err := crosstest.CodecOf(d).EncodeRequest(continuation(t, d, origin), dialect.EncodeOptions{Rebuild: rebuild, Target: targets.Target{Provider: "here"}})
				if err != nil {
					t.Fatal(err)
				}
				if strings.Contains(string(enc.Body), want) != kept || !kept && bytes.Contains(enc.Body, []byte("c2VjcmV0")) {
					t.Errorf("%s, of %+v: %s", d, origin, enc.Body)
				}
			}
		}
	}
}

func TestQuirkD30_EncryptedContentOfAnotherAccountIsNotReplayed(t *testing.T) {
	for scope, kept := range map[string]bool{"account-a": true, "account-b": false} {
		for _, rebuild := range []bool{false, true} {
			req := continuation(t, dialectname.OpenAIResponses, dragoman.Origin{Provider: "openai", Scope: "account-a", Model: "one"})
			enc, err := crosstest.CodecOf(dialectname.OpenAIResponses).EncodeRequest(req, dialect.EncodeOptions{Rebuild: rebuild, Target: targets.Target{Provider: "openai", Scope: scope}})
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(enc.Body, []byte("c2VjcmV0")) != kept || bytes.Contains(enc.Body, []byte("rs_1")) && !kept {
				t.Errorf("to %s: %s", scope, enc.Body)
			}
			if !kept && enc.Report.Err(dragoman.Warn) == nil {
				t.Errorf("not reported: %s", enc.Report)
			}
		}
	}
}

func TestQuirkG12_EmptyThinkingBlockKeepsItsSignature(t *testing.T) {
	for d, body := range map[dragoman.Dialect]string{
		dialectname.Anthropic: `{"id":"m","type":"message","role":"assistant","model":"one","content":[{"type":"thinking","thinking":"","signature":"c2VjcmV0"},{"type":"text","text":"so"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`,
		dialectname.Bedrock:   `{"output":{"message":{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"","signature":"c2VjcmV0"}}},{"text":"so"}]}},"stopReason":"end_turn","usage":{"inputTokens":1,"outputTokens":1,"totalTokens":2}}`,
	} {
		c := crosstest.CodecOf(d)
		resp, _, err := c.DecodeResponse([]byte(body), dialect.DecodeOptions{Origin: dragoman.Origin{Model: "one"}})
		if err != nil {
			t.Fatal(err)
		}
		if r, ok := resp.Output[0].Parts[0].(*dragoman.Reasoning); !ok || r.Text != "" || r.Signature != "c2VjcmV0" {
			t.Errorf("%s: %+v", d, resp.Output[0].Parts[0])
		}
		for _, rebuild := range []bool{false, true} {
			req := &dragoman.Request{Model: "one", Messages: append(append([]dragoman.Message{dragoman.UserText("q")}, resp.Output...), dragoman.UserText("more"))}
			enc, err := c.EncodeRequest(req, dialect.EncodeOptions{Rebuild: rebuild})
			if err != nil || !bytes.Contains(enc.Body, []byte(`"signature":"c2VjcmV0"`)) || len(enc.Report.Losses) > 1 {
				t.Errorf("%s: %s %v\n%s", d, enc.Body, err, enc.Report)
			}
		}
	}
}

// No option asks for a splitter yet, so tags are plain text.
func TestQuirkG7_ThinkTagsStayInTheText(t *testing.T) {
	const text = `<think>hm</think> so`
	for d, body := range map[dragoman.Dialect]string{
		dialectname.OpenAIChat: `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"` + text + `"},"finish_reason":"stop"}]}`,
		dialectname.Ollama:     `{"model":"m","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":"` + text + `"},"done":true,"done_reason":"stop"}`,
	} {
		resp, _, err := crosstest.CodecOf(d).DecodeResponse([]byte(body), dialect.DecodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var c dragoman.Collector
		dec := crosstest.CodecOf(d).NewStreamDecoder(dialect.DecodeOptions{})
		emit := func(ev dragoman.Event) error { c.Add(ev); return nil }
		stream := body + "\n"
		if d == dialectname.OpenAIChat {
			stream = `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"<thi"}}]}` + "\n\n" +
				`data: {"id":"c","choices":[{"index":0,"delta":{"content":"nk>hm</think> so"},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"
		}
		if err := dec.Feed([]byte(stream), emit); err != nil {
			t.Fatal(err)
		}
		if err := dec.Close(emit); err != nil {
			t.Fatal(err)
		}
		streamed, err := c.Response()
		if err != nil {
			t.Fatal(err)
		}
		for how, r := range map[string]*dragoman.Response{"whole": resp, "streamed": streamed} {
			if got := r.Text(); got != text || len(r.Output[0].Parts) != 1 {
				t.Errorf("%s, %s: %q in %d parts", d, how, got, len(r.Output[0].Parts))
			}
		}
	}
}
