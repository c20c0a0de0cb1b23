package schema_test

import (
	"encoding/json"
	"fmt"

	"github.com/dragoman-go/dragoman/dialect/all"
	"github.com/dragoman-go/dragoman/schema"
)

type Forecast struct {
	City string `json:"city" doc:"the city's name, in English"`
	Days int    `json:"days,omitempty" jsonschema:"minimum=1,maximum=14"`
}

func ExampleFor() {
	params, err := schema.For[Forecast]()
	fmt.Println(string(params), err)
	// Output: {"type":"object","properties":{"city":{"type":"string","description":"the city's name, in English"},"days":{"type":"integer","maximum":14,"minimum":1}},"required":["city"],"additionalProperties":false} <nil>
}

func ExampleLower() {
	params, _ := schema.For[Forecast]()
	profile, _ := all.Profile("anthropic.strict")
	low, err := schema.Lower(params, profile)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(low.Schema))
	fmt.Println(low.Report)
	// Output:
	// {"type":"object","properties":{"city":{"type":"string","description":"the city's name, in English"},"days":{"type":"integer","description":"(maximum: 14) (minimum: 1)"}},"required":["city"],"additionalProperties":false}
	// moved (warn) /properties/days/maximum: maximum: not supported by this target; moved to the description
	// moved (warn) /properties/days/minimum: minimum: not supported by this target; moved to the description
}

func ExampleValidator_Validate() {
	params, _ := schema.For[Forecast]()
	v, err := schema.Compile(params)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(v.Validate([]byte(`{"days":30,"town":"Oslo"}`)))
	// Output:
	// (root): unknown property "town"
	// (root): missing property "city"
	// /days: must be at most 14, is 30
}

func ExampleLowered_FromWire() {
	params := json.RawMessage(`{"type":"object","properties":{"$top":{"type":"integer","enum":[10,50]}},"required":["$top"]}`)
	profile, _ := all.Profile("gemini.parameters")
	low, err := schema.Lower(params, profile)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(low.Schema))
	args, err := low.FromWire(json.RawMessage(`{"top_81bf98e4":"50"}`))
	fmt.Println(string(args), err)
	// Output:
	// {"type":"object","properties":{"top_81bf98e4":{"type":"string","enum":["10","50"]}},"required":["top_81bf98e4"]}
	// {"$top":50} <nil>
}
