package anthropic_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/internal/testkit/codectest"
)

// A stream has no length: whatever of it stays in memory is counted, and what
// does not stay is not.
func TestWhatAStreamLeavesBehindIsCountedAndNothingElse(t *testing.T) {
	start := func(block string) string {
		return `{"type":"content_block_start","index":0,"content_block":` + block + "}\n"
	}
	delta := func(members string) string {
		return `{"type":"content_block_delta","index":0,"delta":{` + members + `}}`
	}
	text := start(`{"type":"text","text":""}`)
	thinking := start(`{"type":"thinking","thinking":"","signature":""}`)
	call := start(`{"type":"tool_use","id":"c","name":"f","input":{}}`)
	hosted := start(`{"type":"server_tool_use","id":"c","name":"f","input":{}}`)
	poem := start(`{"type":"poem","verse":""}`)
	for what, c := range map[string]struct {
		opening, event string // # in an event is its number
		leaves         bool
	}{
		"text":                              {text, delta(`"type":"text_delta","text":"x"`), true},
		"citations":                         {text, delta(`"type":"citations_delta","citation":{}`), true},
		"thinking":                          {thinking, delta(`"type":"thinking_delta","thinking":"x"`), true},
		"the last signature":                {thinking, delta(`"type":"signature_delta","signature":"s#"`), false},
		"arguments":                         {call, delta(`"type":"input_json_delta","partial_json":"x"`), true},
		"arguments of a provider's tool":    {hosted, delta(`"type":"input_json_delta","partial_json":"x"`), true},
		"members of a text":                 {text, delta(`"type":"d","k#":1`), true},
		"one member of a text":              {text, delta(`"type":"d","k":#`), false},
		"one member of a call":              {call, delta(`"type":"d","k":#`), false},
		"long members of a call":            {call, delta(`"type":"d","` + strings.Repeat("k", 5000) + `#":1`), true},
		"a string of an unknown block":      {poem, delta(`"type":"d","verse":"x"`), true},
		"a text of an unknown block":        {poem, delta(`"type":"text_delta","text":"x"`), false},
		"a text of a block that has one":    {start(`{"type":"poem","text":""}`), delta(`"type":"text_delta","text":"x"`), true},
		"the signature of an unknown block": {poem, delta(`"type":"signature_delta","signature":"s#"`), false},
		"deltas that do not fit":            {thinking, delta(`"type":"text_delta","text":"x"`), false},
		"deltas that set what is modelled":  {text, delta(`"type":"d#","id":"x"`), false},
		"deltas of no block":                {text, `{"type":"content_block_delta","index":1#,"delta":{"type":"signature_delta","signature":"x"}}`, false},
		"starts of no block":                {text, `{"type":"content_block_start","index":1#,"content_block":1}`, false},
		"calls":                             {"", `{"type":"content_block_start","index":#,"content_block":{"type":"tool_use","id":"` + strings.Repeat("c", 100) + `#","name":"f","input":{}}}`, true},
		"unknown events":                    {text, `{"type":"` + strings.Repeat("x", 1000) + `#"}`, false},
		"stop reasons that contradict":      {text, `{"type":"message_delta","delta":{"stop_reason":"w#"}}`, false},
		"details that are said again":       {text, `{"type":"message_delta","delta":{"stop_details":{"x":#}}}`, false},
		"details of null":                   {text, `{"type":"message_delta","delta":{"stop_details":null}}`, false},
		"a member that is said again":       {text, `{"type":"message_delta","delta":{"x":#},"y":#}`, false},
		"members":                           {text, `{"type":"message_delta","delta":{"x#":1}}`, true},
		"a counter that is said again":      {text, `{"type":"message_delta","delta":{},"usage":{"output_tokens":1,"x":#,"output_tokens_details":{"y":#}}}`, false},
		"counters":                          {text, `{"type":"message_delta","delta":{},"usage":{"x#":1}}`, true},
		"the message again":                 {text, startLine, false},
	} {
		t.Run(what, func(t *testing.T) {
			codectest.Bounded(t, codec, []byte(sseStream(startLine+"\n"+c.opening)), func(i int) []byte {
				return []byte(sseStream(strings.ReplaceAll(c.event, "#", fmt.Sprint(i))))
			}, c.leaves)
		})
	}
}

// Who says the message again may say it wrongly.
func TestAStutterOfTheMessageIsLookedAtAndNotReported(t *testing.T) {
	again := strings.Replace(startLine, `"content":[]`, `"content":[],"Content":[],"stop_reason":"end_turn","stop_reason":"refusal"`, 1)
	resp := collect(t, sseStream(startLine+"\n"+again+"\n"+endLines("end_turn")))
	if resp.ID != "msg_1" || resp.Stop.Native != "end_turn" {
		t.Errorf("%+v", resp)
	}
}
