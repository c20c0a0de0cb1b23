package history_test

import (
	"errors"
	"fmt"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/history"
)

// Make a conversation valid for another provider. One of its calls has no result, because the user
// wrote a new message first.
func ExampleNormalize() {
	codec := anthropic.Codec{}
	req := &dragoman.Request{
		Model: "claude-opus-5-5",
		Messages: []dragoman.Message{
			dragoman.UserText("Do I need a coat in Oslo?"),
			{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{&dragoman.ToolCall{ID: "call_1", Name: "get_weather", Arguments: `{"city":"Oslo"}`}}},
			dragoman.UserText("Never mind. And in Rome?"),
		},
		Tools: []dragoman.ToolSpec{{Name: "get_weather"}},
	}
	o := history.Options{Limits: codec.Limits()}
	_, _, err := history.Normalize(req, o)
	fmt.Println(errors.Is(err, dragoman.ErrUnsettledCalls))

	o.Abandon = "passed"
	out, report, err := history.Normalize(req, o)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(report)
	enc, err := codec.EncodeRequest(out, dialect.EncodeOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(enc.Body) > 0)
	// Output:
	// true
	// synthesized (warn) /messages/1/parts/0: call "call_1" has no result; an error is sent as its result
	// true
}

func ExampleCutPoints() {
	messages := []dragoman.Message{
		dragoman.UserText("Do I need a coat in Oslo?"),
		{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{&dragoman.ToolCall{ID: "call_1", Name: "get_weather"}}},
		dragoman.ToolResults(&dragoman.ToolResult{CallID: "call_1"}),
		dragoman.AssistantText("Yes."),
		dragoman.UserText("Thanks."),
	}
	fmt.Println(history.CutPoints(messages))
	// Output: [0 1 3 4]
}
