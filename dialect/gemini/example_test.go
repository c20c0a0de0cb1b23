package gemini_test

import (
	"encoding/json"
	"fmt"
	"log"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/gemini"
)

// One turn of a tool loop. The URL names the model and selects streaming, and
// the call comes back with a signature that must stay on its part.
func Example() {
	codec := gemini.Codec{}
	req := &dragoman.Request{
		Model:    "gemini-3.8-flash",
		Messages: []dragoman.Message{dragoman.UserText("Do I need a coat in Oslo?")},
		Tools: []dragoman.ToolSpec{{
			Name: "get_weather", Description: "Current weather in a city.",
			Parameters: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`),
		}},
	}
	enc, err := codec.EncodeRequest(req, dialect.EncodeOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("POST …/models/%s:generateContent\n%s\n", req.Model, enc.Body)

	raw := []byte(`{"candidates":[{"content":{"role":"model","parts":[
		{"functionCall":{"id":"fc-1","name":"get_weather","args":{"city":"Oslo"}},"thoughtSignature":"EpEg"}]},"finishReason":"STOP"}]}`)
	resp, _, err := codec.DecodeResponse(raw, dialect.DecodeOptions{Registry: enc.Registry})
	if err != nil {
		log.Fatal(err)
	}
	call := resp.ToolCalls()[0]
	fmt.Println(resp.Stop.Reason, call.Name, call.Arguments)

	req.Messages = append(append(req.Messages, resp.Output...), dragoman.ToolResults(call.ResultText("4 degrees, rain")))
	enc, err = codec.EncodeRequest(req, dialect.EncodeOptions{})
	if err != nil {
		log.Fatal(err)
	}
	var body struct{ Contents []json.RawMessage }
	if err := json.Unmarshal(enc.Body, &body); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", body.Contents[2])
	// Output:
	// POST …/models/gemini-3.8-flash:generateContent
	// {"contents":[{"role":"user","parts":[{"text":"Do I need a coat in Oslo?"}]}],"tools":[{"functionDeclarations":[{"name":"get_weather","description":"Current weather in a city.","parametersJsonSchema":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}]}]}
	// tool_calls get_weather {"city":"Oslo"}
	// {"role":"user","parts":[{"functionResponse":{"id":"fc-1","name":"get_weather","response":{"output":"4 degrees, rain"}}}]}
}
