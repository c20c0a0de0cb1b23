package native_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/testkit/crosstest"
)

// anthropicCall returns a stream of one call with the given deltas.
func anthropicCall(deltas ...string) []byte {
	var b strings.Builder
	add := func(typ, data string) { b.WriteString("event: " + typ + "\ndata: " + data + "\n\n") }
	add("message_start", `{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"x","content":[],"usage":{"input_tokens":1,"output_tokens":1}}}`)
	add("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"c","name":"f","input":{}}}`)
	for _, d := range deltas {
		add("content_block_delta", `{"type":"content_block_delta","index":0,"delta":`+d+`}`)
	}
	add("content_block_stop", `{"type":"content_block_stop","index":0}`)
	add("message_delta", `{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":1}}`)
	add("message_stop", `{"type":"message_stop"}`)
	return []byte(b.String())
}

func TestUnknownFieldsInDeltaKeepItsText(t *testing.T) {
	c := crosstest.CodecOf(dialectname.Anthropic)
	for name, deltas := range map[string][]string{
		"before the type": {`{"type":"input_json_delta","partial_json":"{\"n\":1"}`, `{"x":0,"type":"input_json_delta","partial_json":"000"}`, `{"type":"input_json_delta","partial_json":"}"}`},
		"null":            {`{"citations":null,"type":"input_json_delta","partial_json":"{\"n\":1000}"}`},
		"the type last":   {`{"x":0,"partial_json":"{\"n\":1000}","y":"z","type":"input_json_delta"}`},
		"around it":       {`{"x":"a","type":"input_json_delta","y":"b","partial_json":"{\"n\":1000}","z":"c"}`},
	} {
		call := crosstest.Collect(t, c, anthropicCall(deltas...), nil).ToolCalls()[0]
		if call.Arguments != `{"n":1000}` || call.Problem != nil {
			t.Errorf("%s: %+v", name, call)
		}
	}
}

func TestQuirkC7_StreamedLegacyCallWithObjectArguments(t *testing.T) {
	c := crosstest.CodecOf(dialectname.OpenAIChat)
	wire := "data: {\"id\":\"r\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"function_call\":{\"name\":\"f\",\"arguments\":{\"x\":1}}},\"finish_reason\":null}]}\n\n" +
		"data: {\"id\":\"r\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"function_call\"}]}\n\ndata: [DONE]\n\n"
	if call := crosstest.Collect(t, c, []byte(wire), nil).ToolCalls()[0]; call.Arguments != `{"x":1}` {
		t.Errorf("%+v", call)
	}
}

func TestQuirkB37_ToolsDeclaredOutsideTheListAreAllowed(t *testing.T) {
	for d, body := range map[dragoman.Dialect][]string{
		dialectname.OpenAIResponses: {
			`{"model":"m","input":[{"type":"additional_tools","tools":[{"type":"function","name":"rm","parameters":{}}]},{"role":"user","content":"q"}]}`,
			`{"model":"m","input":"q","prompt":{"id":"p"}}`,
			`{"model":"m","input":"q","previous_response_id":"resp_1"}`,
			`{"model":"m","input":"q","conversation":"conv_1"}`,
		},
		dialectname.Gemini:  {`{"contents":[{"role":"user","parts":[{"text":"q"}]}],"cachedContent":"c"}`},
		dialectname.Bedrock: {`{"messages":[{"role":"user","content":[{"text":"q"}]}],"additionalModelRequestFields":{"tools":[{"type":"bash"}]}}`},
	} {
		c := crosstest.CodecOf(d)
		response, err := c.EncodeResponse(&dragoman.Response{
			Output: []dragoman.Message{{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{&dragoman.ToolCall{ID: "c", Name: "rm", Arguments: "{}"}}}},
			Stop:   dragoman.Stop{Reason: dragoman.StopToolCalls},
		}, dialect.EncodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range body {
			req, _, err := c.DecodeRequest([]byte(b), dialect.DecodeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			asked, err := c.EncodeRequest(req, dialect.EncodeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			got, _, err := c.DecodeResponse(response.Body, dialect.DecodeOptions{Registry: asked.Registry})
			if err != nil || got.ToolCalls()[0].Problem != nil {
				t.Errorf("%s: %v %+v", b, err, got.ToolCalls()[0].Problem)
			}
		}
	}
}

// A Responses item or a Chat call with a field of the wrong type does not pass through, because
// clients disagree on how to read it.
func TestMistypedStreamedCallDoesNotPassThrough(t *testing.T) {
	responses := "event: response.output_item.added\ndata: {\"type\":\"response.output_item.added\",\"output_index\":0,\"item\":{\"type\":\"function_call\",\"id\":\"fc\",\"call_id\":\"c\",\"name\":\"f\",\"arguments\":\"\"}}\n\n" +
		"event: response.output_item.done\ndata: {\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{\"type\":\"function_call\",\"id\":\"fc\",\"call_id\":\"c\",\"namespace\":10,\"name\":\"f\",\"arguments\":\"{}\"}}\n\n" +
		"event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"id\":\"r\",\"status\":\"completed\",\"output\":[{\"type\":\"function_call\",\"id\":\"fc\",\"call_id\":\"c\",\"name\":\"f\",\"arguments\":\"{}\"}]}}\n\n"
	chat := "data: {\"id\":\"r\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c\",\"type\":0,\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]},\"finish_reason\":null}]}\n\n" +
		"data: {\"id\":\"r\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n"
	for d, wire := range map[dragoman.Dialect]string{dialectname.OpenAIResponses: responses, dialectname.OpenAIChat: chat} {
		if out := relay(t, crosstest.CodecOf(d), []byte(wire), dialect.DecodeOptions{}); bytes.Contains(out, []byte(`"type":"response.completed"`)) || bytes.Contains(out, []byte(`"type":0`)) {
			t.Errorf("%s: passed through as\n%s", d, out)
		}
	}
}

// Arguments are checked once, not again with every following event.
func TestEventsAfterLongArgumentsAreCheap(t *testing.T) {
	c := crosstest.CodecOf(dialectname.Anthropic)
	wire := func(events int) []byte {
		long := anthropicCall(`{"type":"input_json_delta","partial_json":"{\"a\":\"` + strings.Repeat("x", 200<<10) + `\"}"}`)
		head, tail, _ := bytes.Cut(long, []byte("event: message_delta"))
		return bytes.Join([][]byte{head, bytes.Repeat([]byte("event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{}}\n\n"), events), []byte("event: message_delta"), tail}, nil)
	}
	took := func(events int) time.Duration {
		in, least := wire(events), time.Hour
		for range 3 {
			start := time.Now()
			crosstest.Collect(t, c, in, nil)
			least = min(least, time.Since(start))
		}
		return least
	}
	if few, many := took(10), took(1000); many > 30*few+200*time.Millisecond {
		t.Errorf("10 events take %v, 1000 take %v", few, many)
	}
}

func TestQuirkC8_NullFieldsInBedrockCallAreIgnored(t *testing.T) {
	body := `{"output":{"message":{"role":"assistant","content":[{"text":null,"toolUse":{"toolUseId":"c","name":"f","input":{"a":1}}}]}},"stopReason":"tool_use"}`
	resp, _, err := crosstest.CodecOf(dialectname.Bedrock).DecodeResponse([]byte(body), dialect.DecodeOptions{})
	if err != nil || len(resp.ToolCalls()) != 1 || resp.ToolCalls()[0].Problem != nil || resp.ToolCalls()[0].Arguments != `{"a":1}` {
		t.Errorf("%v %+v", err, resp.ToolCalls())
	}
}
