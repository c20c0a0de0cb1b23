package losses_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/testkit/crosstest"
)

// These tests cover losses that once went unreported.

// A tool choice with a reference to one tool selects that tool, even if the reference has more or
// fewer fields than the API asks for.
func TestR11_ToolReferenceWithUnknownFieldsSelectsItsTool(t *testing.T) {
	const (
		responses = `{"model":"m","input":"q","tools":[{"type":"function","name":"f","parameters":{"type":"object"}},{"type":"function","name":"g","parameters":{"type":"object"}}],
			"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[REF]}}`
		chat = `{"model":"m","messages":[{"role":"user","content":"q"}],"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}},{"type":"function","function":{"name":"g","parameters":{"type":"object"}}}],
			"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[REF]}}}`
		forced = `{"model":"m","messages":[{"role":"user","content":"q"}],"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}],"tool_choice":REF}`
	)
	for _, c := range []struct {
		from      dragoman.Dialect
		body, ref string
		lost      string // pointer, relative to the reference
	}{
		{dialectname.OpenAIResponses, responses, `{"type":"function","name":"f","zz":1}`, "/zz"},
		{dialectname.OpenAIResponses, responses, `{"name":"f"}`, ""},
		{dialectname.OpenAIChat, chat, `{"type":"function","function":{"name":"f"},"zz":1}`, "/zz"},
		{dialectname.OpenAIChat, chat, `{"type":"function","function":{"name":"f","zz":1}}`, "/function/zz"},
		{dialectname.OpenAIChat, forced, `{"type":"function","function":{"name":"f","zz":1}}`, "/function/zz"},
	} {
		req, _, err := crosstest.CodecOf(c.from).DecodeRequest([]byte(strings.Replace(c.body, "REF", c.ref, 1)), dialect.DecodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, to := range crosstest.Codecs {
			enc, err := to.EncodeRequest(req, dialect.EncodeOptions{Rebuild: true})
			if err != nil {
				t.Errorf("%s to %s: %v", c.ref, to.Dialect(), err)
				continue
			}
			own := to.Dialect() == c.from
			if own && !strings.Contains(string(enc.Body), `"zz":1`) && c.lost != "" {
				t.Errorf("%s to its own dialect: %s", c.ref, enc.Body)
			}
			if lines := crosstest.LossesAt(enc.Report, "/tool_choice/tools/0"+c.lost); !own && c.lost != "" && len(lines) != 1 || own && len(lines) > 0 {
				t.Errorf("%s to %s: %v", c.ref, to.Dialect(), enc.Report)
			}
			again, _, err := to.DecodeRequest(enc.Body, dialect.DecodeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			named := again.ToolChoice != nil && len(again.ToolChoice.Tools) == 1 && again.ToolChoice.Tools[0].Name == "f"
			alone := len(again.Tools) == 1 && again.Tools[0].Name == "f"
			if !named && !alone {
				t.Errorf("%s to %s: %s", c.ref, to.Dialect(), enc.Body)
			}
		}
	}
}

// wordyError has every field of a Chat error, and fields that some servers add.
const wordyError = `{"error":{"message":"filtered","type":"vendor_type","param":"prompt","code":"vendor_code","status":418,"innererror":{"code":"R"}},"trace":"t"}`

// Every field of an error is written or reported: in an error response, in the body of a response
// and in a stream.
func TestR11_ErrorFieldsAreWrittenOrReported(t *testing.T) {
	chat := crosstest.CodecOf(dialectname.OpenAIChat)
	e := chat.DecodeError(400, nil, []byte(wordyError))
	e.RequestID, e.RetryAfter = "req-1", 1500*time.Millisecond
	check := func(t *testing.T, what, body string, rep dragoman.Report, at string) {
		t.Helper()
		for member, word := range map[string]string{
			"/type": `"vendor_type"`, "/code": `"vendor_code"`, "/param": `"prompt"`, "/status": "418", "/innererror": "innererror", "/trace": "trace",
			"/request_id": "req-1", "/retry_after": "1.5s",
		} {
			if lines := crosstest.LossesAt(rep, at+member); (len(lines) == 1) == strings.Contains(body, word) {
				t.Errorf("%s: %s: %v\n%s", what, member, rep, body)
			}
		}
	}
	for _, to := range crosstest.Codecs {
		if to.Dialect() == dialectname.OpenAIChat {
			continue
		}
		_, body, rep := to.EncodeError(e)
		check(t, string(to.Dialect())+" alone", string(body), rep, "")

		resp := &dragoman.Response{Error: e, Stop: dragoman.Stop{Reason: dragoman.StopError}}
		enc, err := to.EncodeResponse(resp, dialect.EncodeOptions{Seed: "s"})
		if err != nil {
			t.Fatal(err)
		}
		check(t, string(to.Dialect())+" whole", string(enc.Body), enc.Report, "/error")

		out, rep, err := crosstest.Streamed(to, []dragoman.Event{&dragoman.ResponseStart{Response: *crosstest.FullResponse()}, &dragoman.StreamError{Err: e}}, dialect.EncodeOptions{Seed: "s"})
		if err != nil {
			t.Fatal(err)
		}
		check(t, string(to.Dialect())+" streamed", string(out), rep, "/error")
	}
	if _, body, rep := chat.EncodeError(e); string(body) != wordyError || len(rep.Losses) > 0 {
		t.Errorf("to its own dialect: %s\n%v", body, rep)
	}
}

// Each field of a message other than its content is written or reported once, whatever the content.
func TestR11_MessageWithoutTextReportsItsFields(t *testing.T) {
	for what, parts := range map[string][]dragoman.Part{
		"calls":     {&dragoman.ToolCall{ID: "a", Name: "f", Arguments: "{}"}},
		"reasoning": {&dragoman.Reasoning{Text: "hm"}},
		"text":      {&dragoman.Text{Text: "hi"}},
		"media":     {&dragoman.Media{Media: codes.MediaImage, URL: "https://example.com/a.png"}},
	} {
		for _, c := range crosstest.Codecs {
			resp := crosstest.FullResponse()
			resp.Output[0] = dragoman.Message{
				Role: dragoman.RoleAssistant, Name: "Ada-the-speaker", Phase: "commentary", Parts: parts,
				Extra: &dragoman.Extra{Dialect: "nobody", Fields: []dragoman.Field{{Path: "/vendor", Value: []byte("1")}}},
			}
			bothWays(t, c, resp, func(t *testing.T, body string, rep dragoman.Report) {
				for member, word := range map[string]string{"/name": "Ada-the-speaker", "/phase": "commentary", "/vendor": "vendor"} {
					if n := len(crosstest.LossesAt(rep, "/output/0"+member)); n > 1 || (n == 1) == strings.Contains(body, word) {
						t.Errorf("%s: %s has %d lines: %v\n%s", what, member, n, rep, body)
					}
				}
			})
		}
	}
}

// A reasoning mode that the target does not have is reported.
func TestR11_ReasoningModeIsWrittenOrReported(t *testing.T) {
	for _, mode := range []string{codes.ReasoningAdaptive, "vendor-mode"} {
		for _, c := range crosstest.Codecs {
			req := &dragoman.Request{Model: "m", Messages: []dragoman.Message{dragoman.UserText("q")}, Reasoning: &dragoman.ReasoningSettings{Mode: mode}}
			enc, err := c.EncodeRequest(req, dialect.EncodeOptions{})
			if err != nil {
				continue // an error, which is stronger than a loss
			}
			written := strings.Contains(string(enc.Body), "adaptive") || strings.Contains(strings.ToLower(string(enc.Body)), "think")
			if len(crosstest.LossesAt(enc.Report, "/reasoning")) == 0 && !written {
				t.Errorf("%s to %s: %v\n%s", mode, c.Dialect(), enc.Report, enc.Body)
			}
		}
	}
}

// If a server sends very many unknown types of events, the first ones are reported one by one and
// the rest together.
func TestR11_UnknownEventsAboveTheLimitAreReportedTogether(t *testing.T) {
	events := crosstest.OneCallStreams[dialectname.OpenAIResponses]
	var strange []string
	for i := range 70 {
		strange = append(strange, fmt.Sprintf(`{"type":"response.vendor_%d"}`, i))
	}
	wire := crosstest.OnWire(t, dialectname.OpenAIResponses, slices.Insert(slices.Clone(events), 1, strange...))
	for _, to := range crosstest.Codecs {
		for _, o := range []dialect.DecodeOptions{{}, {NoNative: true}} {
			if to.Dialect() == dialectname.OpenAIResponses && !o.NoNative {
				continue
			}
			var w bytes.Buffer
			dec, enc := crosstest.CodecOf(dialectname.OpenAIResponses).NewStreamDecoder(o), to.NewStreamEncoder(dialect.EncodeOptions{})
			if err := dialect.Translate(&w, enc, dec, bytes.NewReader(wire)); err != nil {
				t.Fatal(err)
			}
			each, more := 0, 0
			for _, l := range append(dec.Report().Losses, enc.Report().Losses...) {
				if strings.Contains(l.Detail, "vendor_") {
					each++
				}
				if strings.Contains(l.Detail, "and more") && l.Severity == dragoman.Warn {
					more++
				}
			}
			if each != 64 || more != 1 {
				t.Errorf("%s, %+v: %d lines, and more: %d", to.Dialect(), o, each, more)
			}
		}
	}
}

// A mistyped text in a request is an error, because only one server could be sent such a value. In
// a response it is kept as it is.
func TestMistypedTextIsErrorInRequestAndKeptInResponse(t *testing.T) {
	for _, c := range []struct {
		in         dragoman.Dialect
		body, want string
	}{
		{dialectname.OpenAIChat, `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":5}]}]}`, "/messages/0/content/1/text"},
		{dialectname.OpenAIChat, `{"model":"m","messages":[{"role":"tool","tool_call_id":"a","content":[{"type":"text","text":5}]}]}`, "/messages/0/content/0/text"},
		{dialectname.OpenAIResponses, `{"model":"m","input":[{"role":"user","content":[{"type":"input_text","text":{}}]}]}`, "/input/0/content/0/text"},
		{dialectname.OpenAIResponses, `{"model":"m","input":[{"type":"function_call_output","call_id":"a","output":[{"type":"input_text","text":5}]}]}`, "/input/0/output/0/text"},
		{dialectname.OpenAIResponses, `{"model":"m","input":[{"type":"function_call","call_id":7,"name":"f","arguments":"{}"}]}`, "/input/0/call_id"},
		{dialectname.OpenAIResponses, `{"model":"m","input":[{"type":"function_call","call_id":"a","name":5,"arguments":"{}"}]}`, "/input/0/name"},
		{dialectname.OpenAIResponses, `{"model":"m","input":[{"type":"function_call_output","call_id":7,"output":"x"}]}`, "/input/0/call_id"},
		{dialectname.Anthropic, `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"text","text":5}]}]}`, "/messages/0/content/0/text"},
		{dialectname.Anthropic, `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":5}]}]}]}`, "/messages/0/content/0/content/0/text"},
	} {
		_, _, err := crosstest.CodecOf(c.in).DecodeRequest([]byte(c.body), dialect.DecodeOptions{})
		var at *dragoman.DecodeError
		if !errors.As(err, &at) || at.Pointer != c.want || at.Offset < 20 || at.Offset > int64(len(c.body)) {
			t.Errorf("%s: %v", c.body, err)
		}
	}
	for in, body := range map[dragoman.Dialect]string{
		dialectname.OpenAIChat:      `{"choices":[{"index":0,"message":{"role":"assistant","content":[{"type":"text","text":5}]},"finish_reason":"stop"}]}`,
		dialectname.OpenAIResponses: `{"id":"r","status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":5}]}]}`,
		dialectname.Anthropic:       `{"type":"message","role":"assistant","content":[{"type":"text","text":5}],"stop_reason":"end_turn"}`,
	} {
		resp, _, err := crosstest.CodecOf(in).DecodeResponse([]byte(body), dialect.DecodeOptions{})
		if err != nil || len(resp.Output) != 1 || resp.Output[0].Parts[0].Kind() != codes.KindOpaque {
			t.Errorf("%s: %v %v", body, resp, err)
		}
	}
}

func TestR11_BodyOfAnotherAPIReportsItsMessages(t *testing.T) {
	bodies := map[string]string{
		"/messages": `{"model":"m","messages":[{"role":"user","content":"q"}]}`,
		"/input":    `{"model":"m","input":[{"role":"user","content":"q"}]}`,
		"/contents": `{"model":"m","contents":[{"role":"user","parts":[{"text":"q"}]}]}`,
	}
	for _, c := range crosstest.Codecs {
		for member, body := range bodies {
			req, rep, err := c.DecodeRequest([]byte(body), dialect.DecodeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if lines := crosstest.LossesAt(rep, member); (len(req.Messages) > 0) == (len(lines) > 0) {
				t.Errorf("%s in %s: %d messages, %v", member, c.Dialect(), len(req.Messages), lines)
			}
		}
	}
}
