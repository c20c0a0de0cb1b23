package mcp_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/mcp"
	"github.com/dragoman-go/dragoman/sim"
)

func ExampleConnect() {
	server := sdk.NewServer(&sdk.Implementation{Name: "weather", Version: "1"}, nil)
	type place struct {
		City string `json:"city"`
	}
	sdk.AddTool(server, &sdk.Tool{Name: "get_weather", Description: "Current weather in a city."}, func(_ context.Context, _ *sdk.CallToolRequest, in place) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "4 °C in " + in.City}}}, nil, nil
	})
	web := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, &sdk.StreamableHTTPOptions{Stateless: true}))
	defer web.Close()

	weather := mcp.HTTP(web.URL).As("weather")
	weather.Approval = map[string]string{"get_*": "never"}
	servers, err := mcp.Connect(context.Background(), mcp.Options{}, weather)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = servers.Close() }()
	a := agent.Agent{Model: sim.Planner{}, ToolSource: servers.Source}
	res, err := a.Run(context.Background(), "What's the weather in Oslo?")
	fmt.Println(res.Output, err)
	// Output: get_weather says: 4 °C in Oslo <nil>
}
