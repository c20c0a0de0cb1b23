package ollama_test

import (
	"encoding/json"
	"fmt"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/ollama"
)

// Ollama has no tool choice. A forced call is left to the model, which is reported as a loss. A
// call that the request did not allow is decoded with a Problem.
func Example() {
	codec := ollama.Codec{}
	req := &dragoman.Request{
		Model:      "qwen3:8b",
		Messages:   []dragoman.Message{dragoman.UserText("Do I need a coat in Oslo?")},
		Tools:      []dragoman.ToolSpec{{Name: "get_weather", Parameters: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}}}`)}},
		ToolChoice: &dragoman.ToolChoice{Mode: dragoman.ChoiceRequired},
	}
	enc, err := codec.EncodeRequest(req, dialect.EncodeOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(enc.Report)

	req.ToolChoice.Mode = dragoman.ChoiceNone
	if enc, err = codec.EncodeRequest(req, dialect.EncodeOptions{}); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(enc.Body))
	body := `{"model":"qwen3:8b","message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"get_weather","arguments":{"city":"Oslo"}}}]},"done":true,"done_reason":"stop"}`
	resp, _, err := codec.DecodeResponse([]byte(body), dialect.DecodeOptions{Registry: enc.Registry})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(resp.ToolCalls()[0].Problem)
	// Output:
	// lowered (warn) /tool_choice: Ollama cannot force a call; the model may answer without calling a tool
	// {"model":"qwen3:8b","messages":[{"role":"user","content":"Do I need a coat in Oslo?"}],"stream":false}
	// stopped: the request allowed no calls; answer without one
}
