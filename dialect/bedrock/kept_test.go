package bedrock_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/internal/testkit/codectest"
)

// A stream has no length: whatever of it stays in memory is counted, and what
// does not stay is not.
func TestWhatAStreamLeavesBehindIsCountedAndNothingElse(t *testing.T) {
	const text = `{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"text":"x"}}}` + "\n"
	start := func(block string) string {
		return `{"contentBlockStart":{"contentBlockIndex":0,"start":` + block + "}}\n"
	}
	delta := func(d string) string { return `{"contentBlockDelta":{"contentBlockIndex":0,"delta":` + d + `}}` }
	const toolUse = `{"toolUse":{"toolUseId":"c","name":"f"}}`
	const hosted = `{"toolUse":{"toolUseId":"c","name":"f","type":"server_tool_use"}}`
	const result = `{"toolResult":{"toolUseId":"c","type":"x"}}`
	image := func(source string) string { return delta(`{"image":{"source":` + source + `}}`) }
	for what, c := range map[string]struct {
		opening, event string // # in an event is its number
		leaves         bool
	}{
		"text":                   {text, delta(`{"text":"x"}`), true},
		"citations":              {text, delta(`{"citation":{}}`), true},
		"citations that are not": {text, delta(`{"citation":null}`), false},
		"signatures":             {text, `{"contentBlockDelta":{"contentBlockIndex":1,"delta":{"reasoningContent":{"signature":"x"}}}}`, true},
		"withheld thinking":      {text, `{"contentBlockDelta":{"contentBlockIndex":1,"delta":{"reasoningContent":{"redactedContent":"eA=="}}}}`, true},
		"withheld thinking of nothing": {
			`{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"reasoningContent":{"redactedContent":"eA=="}}}}`,
			delta(`{"reasoningContent":{"redactedContent":""}}`), false,
		},
		"arguments":                       {start(toolUse), delta(`{"toolUse":{"input":"x"}}`), true},
		"arguments of a provider's tool":  {start(hosted), delta(`{"toolUse":{"input":"x"}}`), true},
		"blocks of a result":              {start(result), delta(`{"toolResult":[{}]}`), true},
		"no blocks of a result":           {start(result), delta(`{"toolResult":[]}`), false},
		"blocks of a result that is none": {text, `{"contentBlockDelta":{"contentBlockIndex":#,"delta":{"toolResult":[{"text":"x"}]}}}`, false},
		"pieces of an image":              {start(`{"image":{"format":"png"}}`), image(`{"bytes":"eA=="}`), true},
		"empty pieces of an image":        {start(`{"image":{"format":"png"}}`), image(`{"bytes":""}`), false},
		"one source of an image":          {start(`{"image":{"format":"png"}}`), image(`{"s3Location":{"uri":"s3://b/#"}}`), false},
		"calls":                           {"", `{"contentBlockStart":{"contentBlockIndex":#,"start":{"toolUse":{"toolUseId":"` + strings.Repeat("c", 100) + `#","name":"f"}}}}`, true},
		"unknown deltas":                  {text, delta(`{"x#":"y"}`), false},
		"unknown deltas with long names":  {text, delta(`{"` + strings.Repeat("x", 1000) + `#":"y"}`), false},
		"unknown events":                  {text, `{"` + strings.Repeat("x", 1000) + `#":{}}`, false},
		"stop reasons that contradict":    {text, `{"messageStop":{"stopReason":"w#"}}`, false},
		"content behind the end":          {text + `{"messageStop":{"stopReason":"end_turn"}}` + "\n", delta(`{"text":"x"}`), false},
		"a member that is said again":     {"", `{"messageStart":{"role":"assistant","x":#}}`, false},
		"a counter that is said again":    {text, `{"metadata":{"usage":{"inputTokens":1,"outputTokens":1,"totalTokens":#,"x":#}}}`, false},
		"many members":                    {"", `{"messageStart":{"role":"assistant","x#":1}}`, false},
		"long members":                    {"", `{"messageStart":{"role":"assistant","` + strings.Repeat("x", 5000) + `#":1}}`, true},
		"counters":                        {text, `{"metadata":{"usage":{"inputTokens":1,"outputTokens":1,"x#":1}}}`, true},
	} {
		t.Run(what, func(t *testing.T) {
			codectest.Bounded(t, codec, binary(startLine+c.opening), func(i int) []byte {
				return binary(strings.ReplaceAll(c.event, "#", fmt.Sprint(i)))
			}, c.leaves)
		})
	}
}
