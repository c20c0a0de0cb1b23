// Mcp-server serves a tool to MCP clients. Its calls need approval: the user of the client gets a
// form, and the call runs only with the arguments that the form shows.
//
//	$ go run ./examples/mcp-server
//	MCP server "shop" (tool order): shop: allow the tool order to run?
//	Reason: required by the tool
//	Arguments:
//	{"number":40,"item":"apples"}
//	Call call_1.
//	order says: ordered 40 apples
//
// Without arguments the program is its own client, over HTTP. With the argument "stdio" it serves
// a client that starts it, such as: claude mcp add shop -- /path/to/mcp-server stdio
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http/httptest"
	"os"

	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/mcp"
	"github.com/dragoman-go/dragoman/mcp/mcpserver"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/tool"
	"github.com/dragoman-go/dragoman/tool/policy"
)

type Order struct {
	Number int    `json:"number" jsonschema:"minimum=1"`
	Item   string `json:"item"`
}

func order(_ context.Context, in Order) (string, error) {
	return fmt.Sprintf("ordered %d %s", in.Number, in.Item), nil
}

// client runs an agent with the tools of a server. Its user approves what the server asks.
func client(ctx context.Context, url string) error {
	server := mcp.HTTP(url).As("shop")
	server.Approval = map[string]string{"*": "never"} // the server asks for the calls that need it
	servers, err := mcp.Connect(ctx, mcp.Options{}, server)
	if err != nil {
		return err
	}
	defer servers.Close()
	answer := func(_ context.Context, r *tool.ApprovalRequest) (tool.Answer, error) {
		fmt.Printf("%s: %s\n", r.Wanted.From, r.Wanted.Prompt)
		return tool.Answer{Verdict: tool.Approved, Value: json.RawMessage(`{"approve":true}`)}, nil
	}
	a := agent.Agent{Model: provider.MustOpen("sim/planner"), Tools: servers.Tools(), Runner: &tool.Runner{Approver: policy.ApproverFunc(answer)}}
	res, err := a.Run(ctx, `Order number 40, item "apples".`)
	if err == nil {
		fmt.Println(res.Output)
	}
	return err
}

func main() {
	tools := []tool.Tool{tool.New("order", "Orders items.", order, tool.NeedsApproval())}
	s, err := mcpserver.New(mcpserver.Options{Name: "shop", Version: "1.0", Tools: tools, Unfenced: true})
	switch {
	case err != nil:
	case len(os.Args) > 1: // stdio
		err = s.ServeStdio(context.Background())
	default:
		web := httptest.NewServer(s.Handler())
		defer web.Close()
		err = client(context.Background(), web.URL)
	}
	if err != nil {
		log.Fatal(err)
	}
}
