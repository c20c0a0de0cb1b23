package sim_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/sim"
)

// members is a schema of an object that must have many members of a schema.
func members(n int, schema string) string {
	properties, required := make([]string, n), make([]string, n)
	for i := range n {
		properties[i], required[i] = fmt.Sprintf(`"p%d":%s`, i, schema), fmt.Sprintf(`"p%d"`, i)
	}
	return `{"type":"object","properties":{` + strings.Join(properties, ",") + `},"required":[` + strings.Join(required, ",") + `]}`
}

func TestZ1_HostileRequestsCostThePlannerLittle(t *testing.T) {
	words := make([]string, 100_000)
	for i := range words {
		words[i] = fmt.Sprintf("word%d", i)
	}
	var many []dragoman.ToolSpec
	for i := range 2_000 {
		many = append(many, function(fmt.Sprintf("tool_%d", i), fmt.Sprintf("Tells the weather of %d.", i), cityOnly))
	}
	for name, req := range map[string]*dragoman.Request{
		"a description of many words": ask("use it", function("use_it", strings.Join(words, " "), cityOnly)),
		"many tools and wishes":       ask(strings.Repeat("Tell the weather. ", 400), many...),
		"many members":                ask("use it", function("use_it", "Uses it.", members(20_000, `{"type":"string"}`))),
		"long texts":                  ask("use it", function("use_it", "Uses it.", members(1_900, `{"type":"string","minLength":1048576}`))),
		"lists of long texts":         ask("use it", function("use_it", "Uses it.", members(30, `{"type":"array","minItems":60,"items":{"type":"string","minLength":1000000}}`))),
		"a long constant many times":  ask("use it", function("use_it", "Uses it.", `{"$defs":{"c":{"const":"`+strings.Repeat("c", 1<<20)+`"}},`+members(1_900, `{"$ref":"#/$defs/c"}`)[1:])),
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			generate(t, sim.Planner{}, req)
			runtime.ReadMemStats(&after)
			if took := time.Since(start); took > 15*time.Second {
				t.Errorf("it took %v", took)
			}
			if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 1_000 {
				t.Errorf("it took %d MB", took)
			}
		})
	}
}
