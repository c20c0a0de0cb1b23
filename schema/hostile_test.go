package schema_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-go/dragoman/schema"
)

// joinN joins the results of f for 0 to n-1.
func joinN(n int, f func(i int) string) string {
	out := make([]string, n)
	for i := range out {
		out[i] = f(i)
	}
	return strings.Join(out, ",")
}

// everyProfile returns the profiles whose lowering takes different paths.
func everyProfile() []schema.Profile {
	return []schema.Profile{
		schema.OpenAITool(), schema.OpenAIStrict(), schema.AnthropicTool(), schema.AnthropicStrict(), schema.GeminiParameters(),
		schema.GeminiJSONSchema(), schema.OllamaTool(), schema.LlamaCPPTool(), schema.MoonshotTool(), schema.CompatTool(),
	}
}

func TestCheckingManyNamesTakesLinearTime(t *testing.T) {
	names := joinN(100_000, func(i int) string { return fmt.Sprintf(`"p%d"`, i) }) // quadratic time would be ten seconds
	for what, src := range map[string]string{
		"required":   `{"type":"object","properties":{},"required":[` + names + `]}`,
		"properties": `{"type":"object","additionalProperties":false,"properties":{` + joinN(20_000, func(i int) string { return fmt.Sprintf(`"p%d":{"type":"null"}`, i) }) + `},"required":[` + joinN(20_000, func(i int) string { return fmt.Sprintf(`"p%d"`, i) }) + `]}`,
		"types":      `{"type":[` + names + `]}`,
	} {
		for _, p := range everyProfile() {
			start := time.Now()
			schema.Check(json.RawMessage(src), p)
			if took := time.Since(start); took > 20*time.Second {
				t.Errorf("%s of %s: %v", what, p.Name(), took)
			}
		}
	}
	v := schema.Check(json.RawMessage(`{"type":"object","properties":{"a":{}},"required":["a","a"]}`), schema.OpenAITool())
	if len(v) != 1 || v[0].Rule != "required" {
		t.Errorf("a name twice: %v", v)
	}
}

func TestMergingManyBranchesTakesLinearTimeAndMemory(t *testing.T) {
	branch := func(format string) func(int) string {
		return func(i int) string { return fmt.Sprintf(format, i, i) }
	}
	for what, src := range map[string]string{
		"properties and required": `{"allOf":[` + joinN(3000, branch(`{"type":"object","properties":{"p%d":{"type":"string"}},"required":["p%d"]}`)) + `]}`,
		"one property":            `{"allOf":[` + joinN(3000, branch(`{"properties":{"p":{"type":"string","x%d":%d}}}`)) + `]}`,
		"enums":                   `{"type":"object","properties":{"e":{"allOf":[` + joinN(300, func(int) string { return `{"enum":[` + joinN(100, func(i int) string { return fmt.Sprint(i) }) + `]}` }) + `]}}}`,
		"a long enum twice":       `{"type":"object","properties":{"e":{"allOf":[{"enum":[` + joinN(30_000, func(i int) string { return fmt.Sprint(i) }) + `]},{"enum":[` + joinN(30_000, func(i int) string { return fmt.Sprint(i + 1) }) + `]}]}}}`,
		"unknown keywords":        `{"allOf":[` + joinN(3000, branch(`{"x%d":%d}`)) + `]}`,
		"required at the root":    `{"type":"object","properties":{},"required":[` + joinN(40_000, func(i int) string { return fmt.Sprintf(`"p%d"`, i) }) + `]}`,
		"choices":                 `{"type":"object","anyOf":[` + joinN(3000, branch(`{"properties":{"p%d":{"type":"string"}},"required":["p%d"]}`)) + `]}`,
		"two long lists":          `{"allOf":[{` + joinN(35_000, func(i int) string { return fmt.Sprintf(`"x%d":1`, i) }) + `},{` + joinN(35_000, func(i int) string { return fmt.Sprintf(`"y%d":1`, i) }) + `}]}`,
		"next to a reference":     `{"type":"object","properties":{"p":{"$ref":"#/$defs/d",` + joinN(60_000, func(i int) string { return fmt.Sprintf(`"x%d":1`, i) }) + `}},"$defs":{"d":{"type":"string"}}}`,
		"very many branches":      `{"allOf":[` + joinN(9000, branch(`{"properties":{"p%d":{"type":"string"}},"required":["p%d"]}`)) + `]}`,
		"a tuple":                 `{"type":"object","properties":{"t":{"type":"array","prefixItems":[` + joinN(15_000, func(i int) string { return fmt.Sprintf(`{"type":"string","title":"%d"}`, i) }) + `]}}}`,
		"forms of one property":   `{"anyOf":[` + joinN(3000, branch(`{"type":"object","properties":{"p":{"title":"%d%d"}}}`)) + `]}`,
		"conditions":              `{"type":"object","dependentSchemas":{` + joinN(3000, branch(`"d%d":{"properties":{"p%d":{"type":"string"}}}`)) + `}}`,
	} {
		for _, p := range everyProfile() {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			_, err := schema.Lower(json.RawMessage(src), p)
			took := time.Since(start)
			runtime.ReadMemStats(&after)
			mb := (after.TotalAlloc - before.TotalAlloc) >> 20
			t.Logf("%-25s %-18s %8v %4d MB %v", what, p.Name(), took.Round(time.Millisecond), mb, err)
			if took > 20*time.Second || mb > 100 { // a hundred times the usual time, for the race detector on a busy machine
				t.Errorf("%s for %s: %v and %d MB", what, p.Name(), took, mb)
			}
		}
	}
}

func TestTranslatingManyArgumentsTakesLinearTime(t *testing.T) {
	src := `{"type":"object","properties":{"m":{"type":"object","additionalProperties":{"enum":[1,2]}},` + joinN(9000, func(i int) string { return fmt.Sprintf(`"$p%d":{"type":"integer","enum":[%d]}`, i, i) }) + `}}`
	low, err := schema.Lower(json.RawMessage(src), schema.GeminiParameters().WithBudget(0))
	if err != nil {
		t.Fatal(err)
	}
	args := `{"m":{` + joinN(100_000, func(i int) string { return fmt.Sprintf(`"k%d":1`, i) }) + `},` + joinN(9000, func(i int) string { return fmt.Sprintf(`"$p%d":%d`, i, i) }) + `,` + joinN(100_000, func(i int) string { return fmt.Sprintf(`"x%d":0`, i) }) + `}`
	start := time.Now()
	wire, err := low.ToWire(json.RawMessage(args))
	if err != nil {
		t.Fatal(err)
	}
	back, err := low.FromWire(wire)
	if err != nil || string(back) != args || len(wire) <= len(args) {
		t.Errorf("%d bytes became %d and then %d: %v", len(args), len(wire), len(back), err)
	}
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("%v", took)
	}
}
