package openairesponses_test

import (
	"encoding/json"
	"fmt"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
)

// A client encodes a request and decodes the response with the registry that the encoder
// returned. Names that the wire does not allow are aliased in the request and restored in the
// response. The report lists the losses.
func Example() {
	codec := openairesponses.Codec{}
	enc, err := codec.EncodeRequest(&dragoman.Request{
		Model:    "gpt-5.1",
		Messages: []dragoman.Message{dragoman.UserText("Do I need a coat in Oslo?")},
		Tools: []dragoman.ToolSpec{{
			Name:        "weather.now",
			Description: "Current weather in a city.",
			Parameters:  json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`),
		}},
	}, dialect.EncodeOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(enc.Report)

	answer := `{"id":"resp_1","model":"gpt-5.1","status":"completed","output":[{"type":"function_call","id":"fc_1",
		"call_id":"call_1","name":"weather_now_07bafeeb","arguments":"{\"city\":\"Oslo\"}","status":"completed"}]}`
	resp, _, err := codec.DecodeResponse([]byte(answer), dialect.DecodeOptions{Registry: enc.Registry})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range resp.ToolCalls() {
		fmt.Println(c.ID, c.Name, c.Arguments)
	}
	fmt.Println(resp.Stop.Reason) // the server sent "completed"
	// Output:
	// renamed (info) /tools/0: tool "weather.now" written as "weather_now_07bafeeb"
	// synthesized (info) /store: false is sent explicitly, because Responses stores by default
	// call_1 weather.now {"city":"Oslo"}
	// tool_calls
}

// Bytes may be fed in chunks of any size. Text can be shown while it grows; a call is complete
// when its PartEnd arrives.
func ExampleCodec_NewStreamDecoder() {
	chunks := []string{
		"data: {\"type\":\"response.created\",\"response\":{\"id\":\"resp_1\",\"model\":\"gpt-5.1\"}}\n\n",
		"data: {\"type\":\"response.output_text.delta\",\"output_index\":0,\"content_index\":0,\"delta\":\"Let me \"}\n\ndata: {\"type\":\"respo",
		"nse.output_text.delta\",\"output_index\":0,\"content_index\":0,\"delta\":\"see.\"}\n\n",
		"data: {\"type\":\"response.output_item.done\",\"output_index\":1,\"item\":{\"type\":\"function_call\",\"call_id\":\"c1\",\"name\":\"ping\",\"arguments\":\"{}\"}}\n\n",
		"data: {\"type\":\"response.completed\",\"response\":{\"id\":\"resp_1\",\"status\":\"completed\",\"output\":[]}}\n\n",
	}
	show := func(ev dragoman.Event) error {
		switch ev := ev.(type) {
		case *dragoman.PartDelta:
			fmt.Printf("part %d: %q\n", ev.Index, ev.Text)
		case *dragoman.PartEnd:
			if c, ok := ev.Part.(*dragoman.ToolCall); ok && c.Problem == nil {
				fmt.Println("run", c.Name, c.Arguments)
			}
		case *dragoman.ResponseEnd:
			fmt.Println("stop:", ev.Stop.Reason)
		}
		return nil
	}
	d := openairesponses.Codec{}.NewStreamDecoder(dialect.DecodeOptions{NoNative: true})
	for _, p := range chunks {
		if err := d.Feed([]byte(p), show); err != nil {
			fmt.Println(err)
			return
		}
	}
	if err := d.Close(show); err != nil {
		fmt.Println(err)
	}
	// Output:
	// part 0: "Let me "
	// part 0: "see."
	// part 1: "{}"
	// run ping {}
	// stop: tool_calls
}
