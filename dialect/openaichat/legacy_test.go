package openaichat_test

import (
	"encoding/json"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
)

var asFunctions = dialect.EncodeOptions{LegacyFunctions: true, Seed: "s"}

func TestLegacy_RequestWithOnlyFunctionsIsDetected(t *testing.T) {
	const function, tool = `[{"name":"f"}]`, `[{"type":"function","function":{"name":"g"}}]`
	for _, tc := range []struct {
		fields string
		want   bool
	}{
		{`"functions":` + function, true},
		{`"tools":null,"functions":` + function, true},
		{`"functions":` + function + `,"tools":` + tool, false},
		{`"tools":` + tool + `,"functions":` + function, false},
		{`"tools":` + tool + `,"functions":null`, false},
		{`"tools":` + tool, false},
		{`"functions":null`, false},
		{`"x":1`, false},
	} {
		req, _ := decodeRequest(t, `{"model":"m","messages":[{"role":"user","content":"x"}],`+tc.fields+`}`)
		if got := openaichat.LegacyFunctions(req); got != tc.want {
			t.Errorf("%s: %v", tc.fields, got)
		}
		if m, _ := encodeRequest(t, req, dialect.EncodeOptions{Rebuild: true}); tc.want && m["functions"] != nil {
			t.Errorf("%s: functions in addition to tools: %s", tc.fields, m["functions"])
		}
		enc, err := anthropic.Codec{}.EncodeRequest(req, dialect.EncodeOptions{})
		if err != nil || strings.Contains(enc.Report.String(), "/functions") {
			t.Errorf("%s: %v, unexpected loss at /functions: %s", tc.fields, err, enc.Report)
		}
	}
	if openaichat.LegacyFunctions(nil) {
		t.Error("a nil request does not use functions")
	}
}

// legacyView holds the fields that an older client reads from a whole response, or from the
// joined fragments of a stream.
type legacyView struct {
	Content  string
	Function struct{ Name, Arguments string }
	Calls    []json.RawMessage
	Finish   string
}

func (a *legacyView) add(t testing.TB, body string) {
	t.Helper()
	type message struct {
		Content   string
		ToolCalls []json.RawMessage                `json:"tool_calls"`
		Function  struct{ Name, Arguments string } `json:"function_call"`
	}
	var chunk struct {
		Choices []struct {
			Message, Delta message
			Finish         string `json:"finish_reason"`
		}
	}
	if err := json.Unmarshal([]byte(body), &chunk); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	for _, c := range chunk.Choices {
		for _, s := range []message{c.Message, c.Delta} {
			a.Content += s.Content
			a.Function.Name += s.Function.Name
			a.Function.Arguments += s.Function.Arguments
			a.Calls = append(a.Calls, s.ToolCalls...)
		}
		a.Finish += c.Finish
	}
}

func TestLegacy_CallIsWrittenAsFunctionCall(t *testing.T) {
	call := func(id, name, args string) *dragoman.ToolCall {
		return &dragoman.ToolCall{ID: id, Name: name, Payload: codes.PayloadObject, Arguments: args}
	}
	member := call("c1", "f", `{"a":1}`)
	member.Extra = &dragoman.Extra{Dialect: dialectname.OpenAIChat, Fields: []dragoman.Field{{Path: "/extra_content", Value: []byte(`{"s":1}`)}}}
	for _, tc := range []struct {
		about      string
		parts      []dragoman.Part
		stop       dragoman.StopReason
		name, args string
		finish     string
		losses     []string // in addition to the id
	}{
		{"one call", []dragoman.Part{call("c1", "f", `{"a":1}`)}, dragoman.StopToolCalls, "f", `{"a":1}`, "function_call", nil},
		{"text before it", []dragoman.Part{&dragoman.Text{Text: "look"}, call("c1", "f", `{"a":1}`)}, dragoman.StopToolCalls, "f", `{"a":1}`, "function_call", nil},
		{"no arguments", []dragoman.Part{call("c1", "f", ``)}, dragoman.StopToolCalls, "f", `{}`, "function_call", nil},
		{"two calls", []dragoman.Part{call("c1", "f", `{"a":1}`), call("c2", "g", `{"b":2}`)}, dragoman.StopToolCalls, "f", `{"a":1}`, "function_call", []string{`serious`, `call of "g"`}},
		{"truncated call", []dragoman.Part{call("c1", "f", `{"a":`)}, dragoman.StopLength, "f", ``, "length", nil},
		{"unknown field of a call", []dragoman.Part{member}, dragoman.StopToolCalls, "f", `{"a":1}`, "function_call", []string{"/extra_content"}},
		{"no call", []dragoman.Part{&dragoman.Text{Text: "look"}}, dragoman.StopEnd, "", "", "stop", nil},
	} {
		t.Run(tc.about, func(t *testing.T) {
			resp := &dragoman.Response{ID: "r", Model: "m", Output: []dragoman.Message{{Role: dragoman.RoleAssistant, Parts: tc.parts}}, Stop: dragoman.Stop{Reason: tc.stop}}
			enc, err := codec.EncodeResponse(resp, asFunctions)
			if err != nil {
				t.Fatal(err)
			}
			events := []dragoman.Event{&dragoman.ResponseStart{Response: dragoman.Response{ID: "r", Model: "m"}}}
			for i, p := range tc.parts {
				var begun dragoman.Part = &dragoman.Text{}
				if c, ok := p.(*dragoman.ToolCall); ok {
					begun = &dragoman.ToolCall{ID: c.ID, Name: c.Name, Payload: c.Payload}
				}
				events = append(events, &dragoman.PartStart{Index: i, Part: begun})
				if c, ok := p.(*dragoman.ToolCall); ok && len(c.Arguments) > 2 {
					events = append(events, &dragoman.PartDelta{Index: i, Text: c.Arguments[:2]}, &dragoman.PartDelta{Index: i, Text: c.Arguments[2:]})
				}
				events = append(events, &dragoman.PartEnd{Index: i, Part: p})
			}
			streamed, rep := encodeStream(t, asFunctions, append(events, &dragoman.ResponseEnd{Stop: resp.Stop}))
			var whole, joined legacyView
			whole.add(t, string(enc.Body))
			for _, chunk := range chunksOf(t, streamed) {
				if chunk != "[DONE]" {
					joined.add(t, chunk)
				}
			}
			for how, a := range map[string]legacyView{"whole": whole, "streamed": joined} {
				if a.Function.Name != tc.name || tc.args != "" && a.Function.Arguments != tc.args || a.Finish != tc.finish || a.Calls != nil {
					t.Errorf("%s: %+v\n%s\n%s", how, a, enc.Body, streamed)
				}
			}
			for how, r := range map[string]dragoman.Report{"whole": enc.Report, "streamed": rep} {
				for _, want := range tc.losses {
					if !strings.Contains(r.String(), want) {
						t.Errorf("%s: %q is not in\n%s", how, want, r)
					}
				}
				if err := r.Err(dragoman.Warn); tc.losses == nil && err != nil && tc.stop == dragoman.StopToolCalls {
					t.Errorf("%s: %v", how, err)
				}
			}
		})
	}
}

func TestLegacy_StreamedNameIsSentOnceAndFirst(t *testing.T) {
	call := &dragoman.ToolCall{ID: "c1", Name: "f", Payload: codes.PayloadObject, Arguments: `{"a":1}`}
	out, _ := encodeStream(t, asFunctions, []dragoman.Event{
		&dragoman.ResponseStart{Response: dragoman.Response{ID: "r", Model: "m"}},
		&dragoman.PartStart{Part: &dragoman.ToolCall{ID: "c1", Name: "f", Payload: codes.PayloadObject}},
		&dragoman.PartDelta{Text: `{"a"`}, &dragoman.PartDelta{Text: `:1}`}, &dragoman.PartEnd{Part: call},
		&dragoman.ResponseEnd{Stop: dragoman.Stop{Reason: dragoman.StopToolCalls}},
	})
	var deltas []string
	for _, chunk := range chunksOf(t, out) {
		if _, rest, ok := strings.Cut(chunk, `"delta":`); ok {
			deltas = append(deltas, strings.TrimSuffix(rest, "}]}"))
		}
	}
	want := []string{
		`{"role":"assistant","function_call":{"name":"f","arguments":""}},"finish_reason":null`,
		`{"function_call":{"arguments":"{\"a\""}},"finish_reason":null`,
		`{"function_call":{"arguments":":1}"}},"finish_reason":null`,
		`{},"finish_reason":"function_call"`,
	}
	if strings.Join(deltas, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s", strings.Join(deltas, "\n"))
	}
}

// Native responses contain tool_calls, which the client does not know.
func TestLegacy_NativeResponsesAreReencoded(t *testing.T) {
	const function = `{"name":"f","arguments":"{\"a\":1}"}`
	for name, members := range map[string]string{
		"tools": `"tool_calls":[{"id":"c1","type":"function","function":` + function + `}]`, "tools, and null function_call": `"function_call":null,"tool_calls":[{"id":"c1","type":"function","function":` + function + `}]`,
		"function": `"function_call":` + function,
	} {
		for _, word := range []string{`"tool_calls"`, `"function_call"`, `"stop"`} {
			resp, _ := message(t, `{"role":"assistant","content":null,`+members+`}`, word)
			enc, err := codec.EncodeResponse(resp, asFunctions)
			if err != nil {
				t.Fatal(err)
			}
			object(t, enc.Body) // checks for duplicate fields
			var whole legacyView
			whole.add(t, string(enc.Body))
			if whole.Function.Name != "f" || whole.Function.Arguments != `{"a":1}` || whole.Calls != nil || word != `"stop"` && whole.Finish != "function_call" {
				t.Errorf("%s, %s: %s", name, word, enc.Body)
			}
		}
	}
	in := stream(`"tool_calls"`, toolDeltas(`{"index":0,"id":"c1","type":"function","function":{"name":"f","arguments":""}}`, `{"index":0,"function":{"arguments":"{\"a\":1}"}}`)...)
	var events []dragoman.Event
	d := codec.NewStreamDecoder(dialect.DecodeOptions{})
	keep := func(ev dragoman.Event) error { events = append(events, ev); return nil }
	if err := d.Feed([]byte(in), keep); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(keep); err != nil {
		t.Fatal(err)
	}
	out, _ := encodeStream(t, asFunctions, events)
	var joined legacyView
	for _, chunk := range chunksOf(t, out) {
		if chunk != "[DONE]" {
			joined.add(t, chunk)
		}
	}
	if joined.Function.Name != "f" || joined.Function.Arguments != `{"a":1}` || joined.Calls != nil || joined.Finish != "function_call" {
		t.Errorf("%+v\n%s", joined, out)
	}
}

// The next request has no ids: the result is matched by name.
func TestLegacy_ResultMatchesFunctionCall(t *testing.T) {
	resp := &dragoman.Response{ID: "r", Model: "m", Output: []dragoman.Message{{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{
		&dragoman.ToolCall{ID: "toolu_1", Name: "f", Payload: codes.PayloadObject, Arguments: `{"a":1}`},
	}}}, Stop: dragoman.Stop{Reason: dragoman.StopToolCalls}}
	enc, err := codec.EncodeResponse(resp, asFunctions)
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Choices []struct{ Message json.RawMessage }
	}
	if err := json.Unmarshal(enc.Body, &answer); err != nil {
		t.Fatal(err)
	}
	req, _ := decodeRequest(t, `{"model":"m","functions":[{"name":"f","parameters":{"type":"object"}}],"messages":[{"role":"user","content":"x"},`+
		string(answer.Choices[0].Message)+`,{"role":"function","name":"f","content":"one"}]}`)
	call, ok := req.Messages[1].Parts[0].(*dragoman.ToolCall)
	if !ok || call.Name != "f" || call.Arguments != `{"a":1}` {
		t.Fatalf("%+v", req.Messages[1])
	}
	if res := req.Messages[2].Parts[0].(*dragoman.ToolResult); res.CallID != call.ID || res.Name != "f" {
		t.Errorf("%+v does not match %+v", res, call)
	}
}
