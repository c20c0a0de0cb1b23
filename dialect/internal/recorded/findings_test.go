package recorded_test

import (
	"fmt"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/testkit/traffic"
)

// The tests below reduce findings from recorded traffic to small cases that need no recordings.

func chatEvents(t *testing.T, chunks ...string) []dragoman.Event {
	t.Helper()
	body := "data: " + strings.Join(append(chunks, "[DONE]"), "\n\ndata: ") + "\n\n"
	evs, err := decodedEvents(api{Source: traffic.Source{Codec: openaichat.Codec{}}}, body, dialect.DecodeOptions{NoNative: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return evs
}

func TestStreamWithSortedKeysKeepsChoicesApart(t *testing.T) {
	evs := chatEvents(t,
		`{"choices":[{"delta":{"content":"one"},"finish_reason":null,"index":0}],"created":7,"id":"c","model":"m"}`,
		`{"choices":[{"delta":{"content":"two"},"finish_reason":null,"index":1}],"created":7,"id":"c","model":"m"}`,
		`{"choices":[{"delta":{},"finish_reason":"stop","index":0}],"created":7,"id":"c","model":"m"}`,
		`{"choices":[{"delta":{},"finish_reason":"length","index":1}],"created":7,"id":"c","model":"m"}`,
	)
	start, ok := evs[0].(*dragoman.ResponseStart)
	if !ok || start.Response.ID != "c" || start.Response.Model != "m" || start.Response.Created.Unix() != 7 {
		t.Errorf("ResponseStart lacks the fields that follow the choices: %+v", evs[0])
	}
	r := collectEvents(evs)
	if r.Text() != "one" || len(r.Alternatives) != 1 || r.Alternatives[0].Output[0].Text() != "two" || r.Alternatives[0].Stop.Reason != dragoman.StopLength {
		t.Errorf("got %q and %+v", r.Text(), r.Alternatives)
	}
}

func TestFullMessageNextToDeltaIsNotAdded(t *testing.T) {
	for _, order := range []string{
		`{"index":0,"delta":{"content":%q},"message":{"role":"assistant","content":%q},"finish_reason":null}`,
		`{"index":0,"message":{"role":"assistant","content":%[2]q},"delta":{"content":%[1]q},"finish_reason":null}`,
	} {
		r := collectEvents(chatEvents(t,
			`{"id":"c","choices":[`+fmt.Sprintf(order, "one", "one")+`]}`,
			`{"id":"c","choices":[`+fmt.Sprintf(order, " two", "one two")+`]}`,
			`{"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`,
		))
		if r.Text() != "one two" {
			t.Errorf("got %q", r.Text())
		}
	}
	r := collectEvents(chatEvents(t, `{"id":"c","choices":[{"index":0,"message":{"role":"assistant","content":"whole"},"finish_reason":"stop"}]}`))
	if r.Text() != "whole" {
		t.Errorf("a message without a delta must be read as the delta; got %q", r.Text())
	}
}

func TestFirstStreamIDWins(t *testing.T) {
	r := collectEvents(chatEvents(t,
		`{"id":"","choices":[]}`,
		`{"id":"first","choices":[{"index":0,"delta":{"content":"x"}}]}`,
		`{"id":"second","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`,
	))
	if r.ID != "first" {
		t.Errorf("got %q", r.ID)
	}
}

// A client runs the calls it gets. Replacing broken arguments with valid ones, or a call id with an
// alias that cannot be reversed, would add a fault of our own.
func TestQuirkB7_ResponseKeepsBrokenArguments(t *testing.T) {
	resp := &dragoman.Response{ID: "r", Model: "m", Stop: dragoman.Stop{Reason: dragoman.StopLength}, Output: []dragoman.Message{{
		Role: dragoman.RoleAssistant,
		Parts: []dragoman.Part{&dragoman.ToolCall{
			ID: "call_1", Name: "f", Arguments: `{"x":17`,
			Problem: &dragoman.CallProblem{Code: codes.ProblemTruncated, Offset: -1},
		}},
	}}}
	for _, codec := range []dialect.Codec{openaichat.Codec{}, openairesponses.Codec{}} {
		enc, err := codec.EncodeResponse(resp, dialect.EncodeOptions{})
		if err != nil || !strings.Contains(string(enc.Body), `"{\"x\":17"`) {
			t.Errorf("%s: %v\n%s", codec.Dialect(), err, enc.Body)
		}
	}
	// Anthropic arguments are an object; the stop reason keeps the call from running.
	enc, err := anthropic.Codec{}.EncodeResponse(resp, dialect.EncodeOptions{})
	if err != nil || !strings.Contains(string(enc.Body), `"max_tokens"`) {
		t.Errorf("anthropic: %v\n%s", err, enc.Body)
	}
	// History must be valid JSON.
	for _, codec := range []dialect.Codec{openaichat.Codec{}, openairesponses.Codec{}, anthropic.Codec{}} {
		req := &dragoman.Request{Model: "m", Messages: append(append([]dragoman.Message{dragoman.UserText("x")}, resp.Output...),
			dragoman.ToolResults(&dragoman.ToolResult{CallID: "call_1", Content: []dragoman.Part{&dragoman.Text{Text: "cut off"}}}))}
		enc, err := codec.EncodeRequest(req, dialect.EncodeOptions{})
		if err != nil || strings.Contains(string(enc.Body), `17`) {
			t.Errorf("%s: the history has the broken arguments (%v)\n%s", codec.Dialect(), err, enc.Body)
		}
	}
}

func TestQuirkB13_ResponseNeverAliasesCallID(t *testing.T) {
	const long = "functions.f:0|0123456789012345678901234567890123456789012345678901234567890123456789"
	resp := &dragoman.Response{ID: "r", Model: "m", Stop: dragoman.Stop{Reason: dragoman.StopToolCalls}, Output: []dragoman.Message{{
		Role: dragoman.RoleAssistant, Parts: []dragoman.Part{&dragoman.ToolCall{ID: long, Name: "f", Arguments: "{}"}},
	}}}
	for _, a := range apis() {
		again, err := rebuild(a, resp, dialect.EncodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if calls := again.ToolCalls(); len(calls) != 1 || calls[0].ID != long {
			t.Errorf("%s: got %+v", a.File, calls)
		}
		evs := []dragoman.Event{
			&dragoman.ResponseStart{Response: dragoman.Response{ID: "r", Model: "m"}},
			&dragoman.PartStart{Header: &dragoman.Message{Role: dragoman.RoleAssistant}, Part: &dragoman.ToolCall{ID: long, Name: "f"}},
			&dragoman.PartEnd{Part: resp.Output[0].Parts[0]},
			&dragoman.ResponseEnd{Stop: resp.Stop},
		}
		if again, err = reencode(a, evs); err != nil {
			t.Fatal(err)
		}
		if calls := again.ToolCalls(); len(calls) != 1 || calls[0].ID != long {
			t.Errorf("%s: streamed, got %+v", a.File, calls)
		}
	}
}

func TestQuirkG5_StreamFromEventsKeepsReasoningRecords(t *testing.T) {
	evs := chatEvents(t,
		`{"id":"c","choices":[{"index":0,"delta":{"reasoning":"Think","reasoning_details":[{"type":"reasoning.text","index":0,"text":"Think"}]}}]}`,
		`{"id":"c","choices":[{"index":0,"delta":{"reasoning_details":[{"type":"reasoning.text","index":0,"signature":"sig"}]}}]}`,
		`{"id":"c","choices":[{"index":0,"delta":{"content":"4"},"finish_reason":"stop"}]}`,
	)
	want := canonicalReading(collectEvents(evs))
	again, err := reencode(api{Source: traffic.Source{Codec: openaichat.Codec{}}}, evs)
	if err != nil {
		t.Fatal(err)
	}
	if c := want.Choices[0]; c.Reasoning != "Think" || strings.Join(c.Opaque, "") != "sig" {
		t.Errorf("decoded %+v", c)
	}
	for _, d := range want.differences(canonicalReading(again)) {
		t.Error(d)
	}
}

func TestQuirkC9_UnknownUsageIsNotStreamedAsZero(t *testing.T) {
	evs := chatEvents(t, `{"id":"c","choices":[{"index":0,"delta":{"content":"4"},"finish_reason":"stop"}]}`)
	again, err := reencode(api{Source: traffic.Source{Codec: openaichat.Codec{}}}, evs)
	if err != nil {
		t.Fatal(err)
	}
	if again.Usage.Input.Known || again.Usage.Output.Known {
		t.Errorf("got %+v", again.Usage)
	}
}

func TestUnknownServiceTierReturnsToItsDialectOnly(t *testing.T) {
	body := `{"model":"m","messages":[{"role":"user","content":"x"}],"service_tier":"on_demand"}`
	req, _, err := openaichat.Codec{}.DecodeRequest([]byte(body), dialect.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range apis() {
		enc, err := a.Codec.EncodeRequest(req, dialect.EncodeOptions{Rebuild: true})
		if err != nil {
			t.Fatal(err)
		}
		if has := strings.Contains(string(enc.Body), "on_demand"); has != (a.File == "openai_chat") {
			t.Errorf("%s: %s", a.File, enc.Body)
		}
		if a.File != "openai_chat" && !strings.Contains(enc.Report.String(), "service_tier") {
			t.Errorf("%s: no loss is reported: %s", a.File, enc.Report)
		}
	}
}

func TestOutputSchemaReturnsToItsDialectUnchanged(t *testing.T) {
	schema := `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"n":{"type":"integer","minimum":1}}}`
	for _, c := range []struct {
		codec dialect.Codec
		body  string
	}{
		{openaichat.Codec{}, `{"model":"m","messages":[{"role":"user","content":"x"}],"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":` + schema + `}}}`},
		{openairesponses.Codec{}, `{"model":"m","input":"x","text":{"format":{"type":"json_schema","name":"n","schema":` + schema + `}}}`},
		{anthropic.Codec{}, `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"x"}],"output_config":{"format":{"type":"json_schema","schema":` + schema + `}}}`},
	} {
		req, _, err := c.codec.DecodeRequest([]byte(c.body), dialect.DecodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		enc, err := c.codec.EncodeRequest(req, dialect.EncodeOptions{Rebuild: true})
		if err != nil || !strings.Contains(string(enc.Body), schema) {
			t.Errorf("%s: %v\n%s", c.codec.Dialect(), err, enc.Body)
		}
	}
}
