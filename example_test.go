package dragoman_test

import (
	"encoding/json"
	"fmt"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/schema"
)

// City is the input of the tool.
type City struct {
	Name string `json:"name" doc:"the city's name, in English"`
}

// One turn of a tool loop, without a network: the request is encoded in one dialect, the response
// is decoded and its call runs, and the next request is encoded in another dialect.
func Example() {
	params, err := schema.For[City]()
	if err != nil {
		fmt.Println(err)
		return
	}
	valid, err := schema.Compile(params)
	if err != nil {
		fmt.Println(err)
		return
	}
	req := &dragoman.Request{
		Model:    "claude-opus-5-5",
		Messages: []dragoman.Message{dragoman.UserText("Do I need a coat in Oslo?")},
		Tools:    []dragoman.ToolSpec{{Name: "get_weather", Description: "Current weather in a city.", Parameters: params}},
	}
	out, err := anthropic.Codec{}.EncodeRequest(req, dialect.EncodeOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	// out.Body is ready to send. This is the response:
	answer := []byte(`{"id":"msg_1","type":"message","role":"assistant","model":"claude-opus-5-5",
		"content":[{"type":"tool_use","id":"toolu_1","name":"get_weather","input":{"name":"Oslo"}}],
		"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":40,"output_tokens":12}}`)
	resp, _, err := anthropic.Codec{}.DecodeResponse(answer, dialect.DecodeOptions{Registry: out.Registry})
	if err != nil {
		fmt.Println(err)
		return
	}

	req.Messages = append(req.Messages, resp.Output...)
	var results []*dragoman.ToolResult
	for _, call := range resp.ToolCalls() {
		args, _ := call.Object()
		switch err := valid.Validate(args); {
		case call.Problem != nil:
			results = append(results, call.Fail(call.Problem.Message))
		case err != nil:
			results = append(results, call.Fail(err.Error()))
		default:
			var city City
			_ = json.Unmarshal(args, &city)
			results = append(results, call.ResultText("4 C and rain in "+city.Name))
		}
	}
	req.Messages = append(req.Messages, dragoman.ToolResults(results...))

	req.Model = "gpt-5.6-sol"
	next, err := openaichat.Codec{}.EncodeRequest(req, dialect.EncodeOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	var body struct{ Messages []json.RawMessage }
	_ = json.Unmarshal(next.Body, &body)
	for _, m := range body.Messages {
		fmt.Printf("%s\n", m)
	}
	fmt.Println("lost:", next.Report.Err(dragoman.Warn))
	// Output:
	// {"role":"user","content":"Do I need a coat in Oslo?"}
	// {"role":"assistant","content":null,"tool_calls":[{"id":"toolu_1","type":"function","function":{"name":"get_weather","arguments":"{\"name\":\"Oslo\"}"}}]}
	// {"role":"tool","tool_call_id":"toolu_1","content":"4 C and rain in Oslo"}
	// lost: <nil>
}

// A conversation is stored as JSON and loaded again. The native form of each message keeps its
// bytes, for replay to the same provider.
func ExampleMessage_stored() {
	m := dragoman.UserText("hello")
	stored, err := json.Marshal(m)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(stored))
	var back dragoman.Message
	fmt.Println(json.Unmarshal(stored, &back), back.Text())
	fmt.Println(json.Unmarshal([]byte(`{"v":99,"role":"user"}`), &back))
	// Output:
	// {"v":1,"role":"user","parts":[{"type":"text","text":"hello"}]}
	// <nil> hello
	// dragoman: stored message: dragoman: stored by a newer version: version 99, but this build reads only up to version 1
}
