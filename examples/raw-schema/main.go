// Raw-schema makes a tool from a JSON schema instead of a Go type, for tools that are defined
// in a file or a database. Arguments are validated, and defaults are filled in, before the
// function runs.
//
//	$ go run ./examples/raw-schema
//	search_orders says: {"customer":"Ada","limit":10}
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"

	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/tool"
)

const schema = `{
  "type": "object",
  "properties": {
    "customer": {"type": "string", "description": "name of the customer"},
    "limit": {"type": "integer", "minimum": 1, "maximum": 50, "default": 10}
  },
  "required": ["customer"],
  "additionalProperties": false
}`

func main() {
	orders := tool.Raw("search_orders", "Searches the orders of a customer.", json.RawMessage(schema),
		func(_ context.Context, args json.RawMessage) (any, error) {
			return args, nil // the arguments as validated; any value that is not a string is sent as JSON
		})
	a := agent.Agent{Model: provider.MustOpen("sim/planner"), Tools: []tool.Tool{orders}}
	res, err := a.Run(context.Background(), "Search the orders of customer Ada.")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Output)
}
