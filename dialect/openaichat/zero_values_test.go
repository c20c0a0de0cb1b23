package openaichat_test

import (
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
)

// Snowflake Cortex sends every field of its structs: an empty function_call, an empty refusal,
// and an empty custom in addition to the function of a call.
const cortexMessage = `{"role":"assistant","content":"Hi","refusal":"","function_call":{"name":"","arguments":""}}`

const cortexCall = `{"role":"assistant","content":"","refusal":"","function_call":{"name":"","arguments":""},"tool_calls":[{"id":"call_1","type":"function","function":{"name":"get_weather","arguments":"{\"city\":\"Oslo\"}"},"custom":{"name":"","input":""}}]}`

func wholeResponse(message, finish string) []byte {
	return []byte(`{"id":"c1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":` + message + `,"finish_reason":"` + finish + `"}]}`)
}

func streamedResponse(t *testing.T, finish string, deltas ...string) *dragoman.Response {
	t.Helper()
	var b strings.Builder
	for _, delta := range deltas {
		b.WriteString(`data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":` + delta + `,"finish_reason":null}]}` + "\n\n")
	}
	b.WriteString(`data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"` + finish + `"}]}` + "\n\ndata: [DONE]\n\n")
	resp, err := dragoman.Collect(dialect.Events(openaichat.Codec{}.NewStreamDecoder(dialect.DecodeOptions{}), strings.NewReader(b.String())))
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

func decodeWhole(t *testing.T, body []byte) *dragoman.Response {
	t.Helper()
	resp, _, err := openaichat.Codec{}.DecodeResponse(body, dialect.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

func TestZeroValuesInTextAreIgnored(t *testing.T) {
	for about, resp := range map[string]*dragoman.Response{
		"whole": decodeWhole(t, wholeResponse(cortexMessage, "stop")),
		"streamed": streamedResponse(t, "stop",
			`{"role":"assistant","content":"H","refusal":"","function_call":{"name":"","arguments":""}}`,
			`{"role":"assistant","content":"i","refusal":"","function_call":{"name":"","arguments":""}}`),
	} {
		if len(resp.Output) != 1 || len(resp.Output[0].Parts) != 1 || resp.Text() != "Hi" || resp.Stop.Reason != dragoman.StopEnd {
			t.Errorf("%s: %+v ends with %s", about, resp.Output, resp.Stop.Reason)
		}
	}
}

func TestZeroValuesInCallsAreIgnored(t *testing.T) {
	custom := strings.NewReplacer(`"custom":{"name":"","input":""}`, `"custom":{"name":"sh","input":"ls"}`,
		`"function":{"name":"get_weather","arguments":"{\"city\":\"Oslo\"}"}`, `"function":{"name":"","arguments":""}`, `"type":"function"`, `"type":"custom"`).Replace(cortexCall)
	customFirst := strings.Replace(cortexCall, `"function":{"name":"get_weather","arguments":"{\"city\":\"Oslo\"}"},"custom":{"name":"","input":""}`,
		`"custom":{"name":"","input":""},"function":{"name":"get_weather","arguments":"{\"city\":\"Oslo\"}"}`, 1)
	for about, tc := range map[string]struct {
		resp *dragoman.Response
		want dragoman.ToolCall
	}{
		"function":              {decodeWhole(t, wholeResponse(cortexCall, "tool_calls")), dragoman.ToolCall{Name: "get_weather", Arguments: `{"city":"Oslo"}`}},
		"function after custom": {decodeWhole(t, wholeResponse(customFirst, "tool_calls")), dragoman.ToolCall{Name: "get_weather", Arguments: `{"city":"Oslo"}`}},
		"custom tool":           {decodeWhole(t, wholeResponse(custom, "tool_calls")), dragoman.ToolCall{Name: "sh", Arguments: "ls", Payload: codes.PayloadText}},
		"streamed function": {
			streamedResponse(t, "tool_calls",
				`{"role":"assistant","content":"","tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"get_weather","arguments":""},"custom":{"name":"","input":""}}]}`,
				`{"content":"","tool_calls":[{"index":0,"id":"","type":"function","function":{"name":"","arguments":"{\"city\":\"Oslo\"}"},"custom":{"name":"","input":""}}]}`),
			dragoman.ToolCall{Name: "get_weather", Arguments: `{"city":"Oslo"}`},
		},
	} {
		calls := tc.resp.ToolCalls()
		if len(calls) != 1 || len(tc.resp.Output[0].Parts) != 1 {
			t.Errorf("%s: parts %+v", about, tc.resp.Output)
			continue
		}
		got := calls[0]
		if got.ID != "call_1" || got.Name != tc.want.Name || got.Arguments != tc.want.Arguments || got.Payload != tc.want.Payload || got.Problem != nil || tc.resp.Stop.Reason != dragoman.StopToolCalls {
			t.Errorf("%s: %+v (problem %v) ends with %s", about, got, got.Problem, tc.resp.Stop.Reason)
		}
	}
}

// A client that stores the message sends the zero values back. Only Cortex accepts them.
func TestZeroValuesInHistoryAreNotSent(t *testing.T) {
	body := []byte(`{"model":"m","messages":[{"role":"user","content":"hi"},` + cortexCall + `,{"role":"tool","tool_call_id":"call_1","content":"4 C"},` + cortexMessage + `,{"role":"user","content":"more"}]}`)
	req, _, err := openaichat.Codec{}.DecodeRequest(body, dialect.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	enc, err := openaichat.Codec{}.EncodeRequest(req, dialect.EncodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"function_call", "custom"} {
		if strings.Contains(string(enc.Body), `"`+field+`"`) {
			t.Errorf("%s is sent: %s", field, enc.Body)
		}
	}
}

func TestToolChoiceWithoutType(t *testing.T) {
	for choice, want := range map[string]dragoman.ToolRef{
		`{"function":{"name":"get_weather"}}`: {Name: "get_weather"}, // Hugging Face
		`{"custom":{"name":"sh"}}`:            {Name: "sh", Kind: codes.ToolFreeform},
		`{"name":"get_weather"}`:              {Name: "get_weather"},
	} {
		body := `{"model":"m","messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"get_weather"}},{"type":"custom","custom":{"name":"sh"}}],"tool_choice":` + choice + `}`
		req, _, err := openaichat.Codec{}.DecodeRequest([]byte(body), dialect.DecodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if c := req.ToolChoice; c == nil || c.Mode != dragoman.ChoiceTool || len(c.Tools) != 1 || c.Tools[0].Name != want.Name || c.Tools[0].Kind != want.Kind {
			t.Errorf("%s is read as %+v", choice, c)
		}
		enc, err := openaichat.Codec{}.EncodeRequest(req, dialect.EncodeOptions{})
		if err != nil || !strings.Contains(string(enc.Body), `"tool_choice":{"type":"`) {
			t.Errorf("%s is written without a type: %s %v", choice, enc.Body, err)
		}
	}
}
