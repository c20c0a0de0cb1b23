package mcp_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/mcp"
	"github.com/dragoman-go/dragoman/mcp/mcpserver"
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

// A resource becomes an attachment, and a prompt of the server the question about it.
func ExampleServers_ReadResource() {
	docs, err := mcpserver.New(mcpserver.Options{
		Name: "docs", Version: "1",
		Resources: []mcpserver.Resource{{URI: "file:///manual.md", Name: "manual", MIME: "text/markdown", Read: func(_ context.Context, uri string) ([]mcpserver.Content, error) {
			return []mcpserver.Content{{Text: "Press the red button."}}, nil
		}}},
		Prompts: []mcpserver.Prompt{{Name: "review", Arguments: []mcpserver.PromptArgument{{Name: "language"}}, Get: func(_ context.Context, arguments map[string]string) ([]mcpserver.PromptMessage, error) {
			return []mcpserver.PromptMessage{{Text: "Review the text. Language: " + arguments["language"]}}, nil
		}}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	web := httptest.NewServer(docs.Handler())
	defer web.Close()
	run := func(ctx context.Context, a agent.Agent, servers *mcp.Servers) (*agent.Result, error) {
		parts, err := servers.ReadResource(ctx, "docs", "file:///manual.md")
		if err != nil {
			return nil, err
		}
		messages, err := servers.GetPrompt(ctx, "docs", "review", map[string]string{"language": "English"})
		if err != nil {
			return nil, err
		}
		attached := dragoman.Message{Role: dragoman.RoleUser, Parts: parts}
		return a.Run(ctx, "", agent.Messages(append([]dragoman.Message{attached}, messages...)...))
	}

	servers, err := mcp.Connect(context.Background(), mcp.Options{}, mcp.HTTP(web.URL).As("docs"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = servers.Close() }()
	res, err := run(context.Background(), agent.Agent{Model: sim.Planner{}}, servers)
	fmt.Println(res.Output, err)
	// Output: You said: Review the text. Language: English <nil>
}
