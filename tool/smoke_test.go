package tool_test

import (
	"context"
	"fmt"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/tool"
)

type city struct {
	Name string `json:"name" doc:"the city's name, in English"`
}

func TestSmoke(t *testing.T) {
	w := tool.New("get_weather", "Current weather in a city.", func(ctx context.Context, c city) (string, error) { return "rain in " + c.Name, nil })
	box, err := tool.NewBox(w)
	if err != nil {
		t.Fatal(err)
	}
	run := (&tool.Runner{}).Start("r")
	for i, args := range []string{`{"name":"Oslo"}`, `{"nam":"Oslo"}`, `{"name":"Oslo",}`, `{"name":"Os`} {
		b, err := run.Do(context.Background(), box, tool.Turn{Number: i, Calls: []*dragoman.ToolCall{{ID: "c", Name: "get_weather", Arguments: args}}})
		fmt.Println(err, b.Results[0].Text(), b.Records[0].Steps)
	}
}
