package bedrock_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/internal/testkit/codectest"
)

// A stream has no length. Everything the decoder stores counts against the
// limit, and nothing else does.
func TestStoredStreamDataIsBounded(t *testing.T) {
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
		opening, event string // # in an event is replaced by its number
		leaves         bool
	}{
		"text":              {text, delta(`{"text":"x"}`), true},
		"citations":         {text, delta(`{"citation":{}}`), true},
		"null citations":    {text, delta(`{"citation":null}`), false},
		"signatures":        {text, `{"contentBlockDelta":{"contentBlockIndex":1,"delta":{"reasoningContent":{"signature":"x"}}}}`, true},
		"redacted thinking": {text, `{"contentBlockDelta":{"contentBlockIndex":1,"delta":{"reasoningContent":{"redactedContent":"eA=="}}}}`, true},
		"empty redacted thinking": {
			`{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"reasoningContent":{"redactedContent":"eA=="}}}}`,
			delta(`{"reasoningContent":{"redactedContent":""}}`), false,
		},
		"arguments":                      {start(toolUse), delta(`{"toolUse":{"input":"x"}}`), true},
		"arguments of a hosted tool":     {start(hosted), delta(`{"toolUse":{"input":"x"}}`), true},
		"result blocks":                  {start(result), delta(`{"toolResult":[{}]}`), true},
		"empty result blocks":            {start(result), delta(`{"toolResult":[]}`), false},
		"blocks of a missing result":     {text, `{"contentBlockDelta":{"contentBlockIndex":#,"delta":{"toolResult":[{"text":"x"}]}}}`, false},
		"image fragments":                {start(`{"image":{"format":"png"}}`), image(`{"bytes":"eA=="}`), true},
		"empty image fragments":          {start(`{"image":{"format":"png"}}`), image(`{"bytes":""}`), false},
		"image location":                 {start(`{"image":{"format":"png"}}`), image(`{"s3Location":{"uri":"s3://b/#"}}`), false},
		"calls":                          {"", `{"contentBlockStart":{"contentBlockIndex":#,"start":{"toolUse":{"toolUseId":"` + strings.Repeat("c", 100) + `#","name":"f"}}}}`, true},
		"unknown deltas":                 {text, delta(`{"x#":"y"}`), false},
		"unknown deltas with long names": {text, delta(`{"` + strings.Repeat("x", 1000) + `#":"y"}`), false},
		"unknown events":                 {text, `{"` + strings.Repeat("x", 1000) + `#":{}}`, false},
		"conflicting stop reasons":       {text, `{"messageStop":{"stopReason":"w#"}}`, false},
		"content after the end":          {text + `{"messageStop":{"stopReason":"end_turn"}}` + "\n", delta(`{"text":"x"}`), false},
		"repeated field":                 {"", `{"messageStart":{"role":"assistant","x":#}}`, false},
		"repeated counter":               {text, `{"metadata":{"usage":{"inputTokens":1,"outputTokens":1,"totalTokens":#,"x":#}}}`, false},
		"many fields":                    {"", `{"messageStart":{"role":"assistant","x#":1}}`, false},
		"long field names":               {"", `{"messageStart":{"role":"assistant","` + strings.Repeat("x", 5000) + `#":1}}`, true},
		"counters":                       {text, `{"metadata":{"usage":{"inputTokens":1,"outputTokens":1,"x#":1}}}`, true},
	} {
		t.Run(what, func(t *testing.T) {
			codectest.CheckBounded(t, codec, binary(startLine+c.opening), func(i int) []byte {
				return binary(strings.ReplaceAll(c.event, "#", fmt.Sprint(i)))
			}, c.leaves)
		})
	}
}
