package tooltest_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/dragoman-go/dragoman/tool"
	"github.com/dragoman-go/dragoman/tool/tooltest"
)

type city struct {
	Name string `json:"name"`
}

// In a test, call Run with the same suite: every rule is a subtest.
func ExampleCheck() {
	asked := 0
	weather := tool.New("get_weather", "Looks up the weather in a city.", func(_ context.Context, c city) (string, error) {
		if c.Name == "" {
			return "", errors.New("name the city")
		}
		asked++
		return fmt.Sprintf("%d degrees in %s", asked, c.Name), nil
	}, tool.ReadOnly(), tool.Idempotent(), tool.Set(func(s *tool.Settings) { s.Exclusive = true }))

	for _, f := range tooltest.Check(context.Background(), tooltest.Suite{Tool: weather, Cases: []tooltest.Case{
		{Arguments: `{"name":"Oslo"}`, Want: "degrees"},
		{Name: "no name", Arguments: `{"name":""}`, Fails: true},
	}}) {
		fmt.Println(f.Rule, "is broken by", f.Case)
	}
	// Output:
	// idempotent is broken by {"name":"Oslo"}
}
