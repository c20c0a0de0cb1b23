package mcpserver_test

import (
	"context"
	"fmt"
	"net/http"

	"github.com/dragoman-go/dragoman/mcp/mcpserver"
	"github.com/dragoman-go/dragoman/tool"
)

func Example() {
	type City struct {
		Name string `json:"name"`
	}
	weather := tool.New("get_weather", "Current weather in a city.", func(_ context.Context, c City) (string, error) {
		return "sunny in " + c.Name, nil
	})

	s, err := mcpserver.New(mcpserver.Options{Name: "weather", Version: "1.0", Tools: []tool.Tool{weather}})
	if err != nil {
		fmt.Println(err)
		return
	}
	http.Handle("/mcp", s.Handler()) // or s.ServeStdio(ctx)
}
