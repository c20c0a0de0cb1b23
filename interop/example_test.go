package interop_test

import (
	"encoding/json"
	"fmt"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect/all"
	"github.com/dragoman-go/dragoman/interop"
	"github.com/dragoman-go/dragoman/targets"
)

// Convert a tool definition to another wire format. The report lists the losses.
func ExampleRegistry_ConvertSchemas() {
	tools := []dragoman.Native{{Format: "openai.responses.custom", JSON: json.RawMessage(
		`{"type":"custom","name":"run_sql","description":"Run a query.","format":{"type":"grammar","syntax":"regex","definition":"SELECT .*"}}`)}}
	out, report, err := all.Registry(interop.Options{}).ConvertSchemas(tools, "anthropic.messages.tool")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(out[0].JSON))
	fmt.Println(report)
	// Output:
	// {"name":"run_sql","description":"Run a query.","input_schema":{"type":"object","properties":{"input":{"type":"string","description":"The whole input of the tool, as plain text. It must match this regex grammar:\nSELECT .*"}},"required":["input"],"additionalProperties":false}}
	// lowered (warn) /0: freeform tool written as a function with one string argument "input"; its grammar is moved to the description and not enforced
}

// Report.Err turns losses into an error.
func ExampleRegistry_ConvertCalls() {
	calls := []dragoman.Native{{Format: "openai.chat_completions.function_call", JSON: json.RawMessage(
		`{"id":"call_1","type":"function","function":{"name":"f","arguments":"{\"path\":\"/tmp\",\"path\":\"/\"}"}}`)}}
	out, report, err := all.Registry(interop.Options{}).ConvertCalls(calls, "anthropic.messages.tool_use")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(out[0].JSON))
	fmt.Println(report.Err(dragoman.Warn) != nil)
	// Output:
	// {"type":"tool_use","id":"call_1","name":"f","input":{}}
	// true
}

// Read a call in a wire format: its alias is reversed, and its arguments keep their bytes.
func ExampleRegistry_InspectCall() {
	reg := all.Registry(interop.Options{
		Target: targets.Target{Dialect: "openai.chat_completions"},
		Limits: targets.Limits{Name: targets.NameRule{Rest: "a-zA-Z0-9_-", Max: 64}},
		Tools:  []dragoman.ToolSpec{{Namespace: "crm", Name: "list"}},
	})
	c, _, err := reg.InspectCall(dragoman.Native{Format: "openai.chat_completions.function_call", JSON: json.RawMessage(
		`{"id":"call_1","type":"function","function":{"name":"crm__list","arguments":"{ \"n\": 9007199254740993 }"}}`)})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c.QualifiedName(), c.Arguments)
	// Output:
	// crm.list { "n": 9007199254740993 }
}

// A plugin can add a format. Listing shows the formats and their adapters.
func ExampleRegistry_Listing() {
	reg := all.Registry(interop.Options{Contributions: []dragoman.Contribution{
		{Source: "config", Schemas: []dragoman.SchemaAccessor{acmeAccessor{}}},
		{Source: "acme plugin", Schemas: []dragoman.SchemaAccessor{acmeAccessor{}}},
	}})
	for _, e := range reg.Listing()[:2] {
		fmt.Println(e)
	}
	// Output:
	// config: schema acme.tool
	// acme plugin: schema acme.tool (shadowed by config)
}
