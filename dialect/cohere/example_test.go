package cohere_test

import (
	"encoding/json"
	"fmt"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/cohere"
)

// Cohere cannot force one of several tools. The encoder sends only that tool,
// requires a call, and reports the change. The plan before a call is decoded as
// reasoning.
func Example() {
	codec := cohere.Codec{}
	city := json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`)
	req := &dragoman.Request{
		Model:      "command-a-03-2025",
		Messages:   []dragoman.Message{dragoman.UserText("Do I need a coat in Oslo?")},
		Tools:      []dragoman.ToolSpec{{Name: "get_weather", Parameters: city}, {Name: "get_time", Parameters: city}},
		ToolChoice: &dragoman.ToolChoice{Mode: dragoman.ChoiceTool, Tools: []dragoman.ToolRef{{Name: "get_weather"}}},
	}
	enc, err := codec.EncodeRequest(req, dialect.EncodeOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(enc.Body))
	fmt.Println(enc.Report)

	body := `{"id":"r1","finish_reason":"TOOL_CALL","message":{"role":"assistant","tool_plan":"I will look.","tool_calls":[{"id":"c1","type":"function","function":{"name":"get_weather","arguments":"{\"city\":\"Oslo\"}"}}]}}`
	resp, _, err := codec.DecodeResponse([]byte(body), dialect.DecodeOptions{Registry: enc.Registry})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range resp.Output[0].Parts {
		switch p := p.(type) {
		case *dragoman.Reasoning:
			fmt.Println("plan:", p.Text)
		case *dragoman.ToolCall:
			fmt.Println("call:", p.Name, p.Arguments)
		}
	}
	// Output:
	// {"model":"command-a-03-2025","messages":[{"role":"user","content":"Do I need a coat in Oslo?"}],"tools":[{"type":"function","function":{"name":"get_weather","parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}}],"tool_choice":"REQUIRED"}
	// lowered (info) /tool_choice: Cohere cannot force one tool; only this one is sent, and a call is required
	// plan: I will look.
	// call: get_weather {"city":"Oslo"}
}
