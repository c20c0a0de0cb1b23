package sim_test

import (
	"context"
	"encoding/json"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/schema"
	"github.com/dragoman-go/dragoman/sim"
)

// For any schema and prompt, the arguments of a call are valid.
func FuzzArgumentsAreValid(f *testing.F) {
	f.Add(`{"type":"object","properties":{"a":{"type":"string","pattern":"^[a-z]+$"},"b":{"type":"array","items":{"type":"integer"},"minItems":2}},"required":["a","b"]}`, `use it with "x" and 3, 4`)
	f.Add(`{"$defs":{"n":{"anyOf":[{"$ref":"#/$defs/n"},{"type":"null"}]}},"type":"object","properties":{"n":{"$ref":"#/$defs/n"}},"required":["n"]}`, "Oslo, Bergen and Rome")
	f.Add(`{"type":"object","minProperties":3,"propertyNames":{"pattern":"^k"},"additionalProperties":{"type":"number","exclusiveMinimum":0,"multipleOf":0.5}}`, "limit 5")
	f.Add(`{"allOf":[{"type":"object","properties":{"a":{"enum":["x","y"]}}},{"required":["a"]}],"oneOf":[{"properties":{"a":{"const":"y"}}}]}`, "a is y")
	f.Fuzz(func(t *testing.T, parameters, prompt string) {
		v, err := schema.Compile(json.RawMessage(parameters))
		req := ask(prompt, function("use_it", "Uses it.", parameters))
		req.ToolChoice = &dragoman.ToolChoice{Mode: dragoman.ChoiceRequired}
		resp, failed := sim.Planner{}.Generate(context.Background(), req)
		if failed != nil {
			t.Fatal(failed)
		}
		for _, c := range resp.ToolCalls() {
			if err != nil {
				t.Fatalf("called with an invalid schema: %v", err)
			}
			if bad := v.Validate(json.RawMessage(c.Arguments)); bad != nil || c.Arguments[0] != '{' {
				t.Fatalf("%s: %v", c.Arguments, bad)
			}
		}
	})
}
