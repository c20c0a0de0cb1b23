package openaichat_test

import (
	"encoding/json"
	"fmt"
	"os"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
)

// A client encodes a request and decodes the response with the registry that the encoder
// returned. Names that the wire does not allow are aliased in the request and restored in the
// response.
func Example() {
	codec := openaichat.Codec{}
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

	answer := `{"choices":[{"message":{"role":"assistant","tool_calls":[{"id":"call_1","type":"function",
		"function":{"name":"weather_now_07bafeeb","arguments":"{\"city\":\"Oslo\"}"}}]},"finish_reason":"stop"}]}`
	resp, _, err := codec.DecodeResponse([]byte(answer), dialect.DecodeOptions{Registry: enc.Registry})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range resp.ToolCalls() {
		fmt.Println(c.ID, c.Name, c.Arguments)
	}
	fmt.Println(resp.Stop.Reason) // the server sent "stop"
	// Output:
	// renamed (info) /tools/0: tool "weather.now" written as "weather_now_07bafeeb"
	// call_1 weather.now {"city":"Oslo"}
	// tool_calls
}

// A server does the reverse: it decodes a request, and encodes the response of a model of any
// provider.
func ExampleCodec_EncodeResponse() {
	codec := openaichat.Codec{}
	req, _, err := codec.DecodeRequest([]byte(`{"model":"fast","messages":[{"role":"user","content":"hi"}]}`), dialect.DecodeOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	enc, err := codec.EncodeResponse(&dragoman.Response{
		ID: "r1", Model: "some-upstream",
		Output: []dragoman.Message{dragoman.AssistantText("hello")},
		Stop:   dragoman.Stop{Reason: dragoman.StopEnd},
	}, dialect.EncodeOptions{Model: req.Model})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(enc.Body))
	// Output:
	// {"id":"r1","object":"chat.completion","created":0,"model":"fast","choices":[{"index":0,"message":{"role":"assistant","content":"hello","refusal":null},"finish_reason":"stop","logprobs":null}]}
}

// Bytes may be fed in chunks of any size. A call is complete when its PartEnd arrives.
func ExampleCodec_NewStreamDecoder() {
	chunks := []string{
		"data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c1\",\"function\":{\"name\":\"ping\",\"argu",
		"ments\":\"{}\"}}]}}]}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_re",
		"ason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n",
	}
	show := func(ev dragoman.Event) error {
		switch ev := ev.(type) {
		case *dragoman.PartEnd:
			c := ev.Part.(*dragoman.ToolCall)
			fmt.Println("run", c.Name, c.Arguments)
		case *dragoman.ResponseEnd:
			fmt.Println("stop:", ev.Stop.Reason)
		}
		return nil
	}
	d := openaichat.Codec{}.NewStreamDecoder(dialect.DecodeOptions{NoNative: true})
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
	// run ping {}
	// stop: tool_calls
}

// Events of any dialect become a stream for Chat clients.
func ExampleCodec_NewStreamEncoder() {
	e := openaichat.Codec{}.NewStreamEncoder(dialect.EncodeOptions{Model: "fast", Seed: "turn-1"})
	var out []byte
	for _, ev := range []dragoman.Event{
		&dragoman.ResponseStart{Response: dragoman.Response{ID: "r1"}},
		&dragoman.PartStart{Part: &dragoman.Text{}},
		&dragoman.PartDelta{Text: "hello"},
		&dragoman.PartEnd{Part: &dragoman.Text{Text: "hello"}},
		&dragoman.ResponseEnd{Stop: dragoman.Stop{Reason: dragoman.StopEnd}},
	} {
		var err error
		if out, err = e.Encode(out, ev); err != nil {
			fmt.Println(err)
			return
		}
	}
	os.Stdout.Write(out)
	// Output:
	// data: {"id":"r1","object":"chat.completion.chunk","created":0,"model":"fast","choices":[{"index":0,"delta":{"role":"assistant","content":"hello"},"finish_reason":null}]}
	//
	// data: {"id":"r1","object":"chat.completion.chunk","created":0,"model":"fast","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}
	//
	// data: [DONE]
}
