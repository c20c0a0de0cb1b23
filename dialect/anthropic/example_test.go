package anthropic_test

import (
	"encoding/json"
	"fmt"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
)

// A client encodes a request and decodes the response with the registry from
// the encoding. The encoder repairs what the API would refuse and reports it.
func Example() {
	codec := anthropic.Codec{}
	enc, err := codec.EncodeRequest(&dragoman.Request{
		Model:    "claude-opus-5-5",
		Messages: []dragoman.Message{dragoman.UserText("Do I need a coat in Oslo?")},
		Tools: []dragoman.ToolSpec{{
			Name:        "weather",
			Description: "Current weather in a city.",
			Parameters:  json.RawMessage(`{"oneOf":[{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}]}`),
		}},
	}, dialect.EncodeOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(enc.Report)

	answer := `{"id":"msg_1","type":"message","role":"assistant","model":"claude-opus-5-5","content":[
		{"type":"text","text":"Let me look."},
		{"type":"tool_use","id":"toolu_1","name":"weather","input":{"city":"Oslo"}}],
		"stop_reason":"tool_use","usage":{"input_tokens":40,"output_tokens":20}}`
	resp, _, err := codec.DecodeResponse([]byte(answer), dialect.DecodeOptions{Registry: enc.Registry})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(resp.Text())
	for _, c := range resp.ToolCalls() {
		fmt.Println(c.ID, c.Name, c.Arguments)
	}
	fmt.Println(resp.Stop.Reason)
	// Output:
	// synthesized (info) /max_output_tokens: the API requires max_tokens; 4096 written
	// lowered (warn) /tools/0/parameters/oneOf: oneOf of 1 object shapes merged into one object
	// Let me look.
	// toolu_1 weather {"city":"Oslo"}
	// tool_calls
}
