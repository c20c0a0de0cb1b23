// Mcp-client gives an agent the tools of an MCP server. A tool is held until its definition is
// accepted, and each call needs approval.
//
//	$ go run ./examples/mcp-client
//	held: count: new
//	accepted: count
//	approve? count {"item":"apples"}
//	count says: 12 apples
//
// The server is this program with the argument "serve". In place of it, use the command of any
// server: mcp.Stdio("npx", "-y", "@modelcontextprotocol/server-memory").
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/mcp"
	"github.com/dragoman-go/dragoman/mcp/mcpserver"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/tool"
	"github.com/dragoman-go/dragoman/tool/policy"
)

type Item struct {
	Item string `json:"item"`
}

func count(_ context.Context, in Item) (string, error) { return "12 " + in.Item, nil }

func serve(ctx context.Context) error {
	tools := []tool.Tool{tool.New("count", "Counts the items in stock.", count, tool.ReadOnly())}
	s, err := mcpserver.New(mcpserver.Options{Name: "stock", Version: "1.0", Tools: tools, Unfenced: true})
	if err != nil {
		return err
	}
	return s.ServeStdio(ctx)
}

func run(ctx context.Context) error {
	var lock mcp.Lock // mcp.OpenLock reads it from a file
	servers, err := mcp.Connect(ctx, mcp.Options{Lock: &lock}, mcp.Stdio(os.Args[0], "serve").As("stock"))
	if err != nil {
		return err
	}
	defer servers.Close()
	for _, held := range servers.Status()[0].Held {
		fmt.Println("held:", held)
	}
	if err := servers.Accept("stock"); err != nil {
		return err
	}
	fmt.Println("accepted:", lock.Tools("stock")[0])
	ask := func(_ context.Context, r *tool.ApprovalRequest) (tool.Answer, error) {
		fmt.Println("approve?", r.Spec.Name, string(r.Input.Arguments))
		return tool.Answer{Verdict: tool.Approved}, nil
	}
	a := agent.Agent{Model: provider.MustOpen("sim/planner"), ToolSource: servers.Source, Runner: &tool.Runner{Approver: policy.ApproverFunc(ask)}}
	res, err := a.Run(ctx, `Count "apples".`)
	if err == nil {
		fmt.Println(res.Output)
	}
	return err
}

func main() {
	f := run
	if len(os.Args) > 1 { // serve
		f = serve
	}
	if err := f(context.Background()); err != nil {
		log.Fatal(err)
	}
}
