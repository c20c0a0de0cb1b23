package anthropic_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/internal/testkit/codectest"
)

// A stream has no length. Everything the decoder stores counts against the
// limit, and nothing else does.
func TestStoredStreamDataIsBounded(t *testing.T) {
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
		opening, event string // # in an event is replaced by its number
		leaves         bool
	}{
		"text":                               {text, delta(`"type":"text_delta","text":"x"`), true},
		"citations":                          {text, delta(`"type":"citations_delta","citation":{}`), true},
		"thinking":                           {thinking, delta(`"type":"thinking_delta","thinking":"x"`), true},
		"replaced signature":                 {thinking, delta(`"type":"signature_delta","signature":"s#"`), false},
		"arguments":                          {call, delta(`"type":"input_json_delta","partial_json":"x"`), true},
		"arguments of a hosted tool":         {hosted, delta(`"type":"input_json_delta","partial_json":"x"`), true},
		"text fields":                        {text, delta(`"type":"d","k#":1`), true},
		"one text field":                     {text, delta(`"type":"d","k":#`), false},
		"one call field":                     {call, delta(`"type":"d","k":#`), false},
		"long call fields":                   {call, delta(`"type":"d","` + strings.Repeat("k", 5000) + `#":1`), true},
		"string of an unknown block":         {poem, delta(`"type":"d","verse":"x"`), true},
		"text of an unknown block":           {poem, delta(`"type":"text_delta","text":"x"`), false},
		"text of an unknown block with text": {start(`{"type":"poem","text":""}`), delta(`"type":"text_delta","text":"x"`), true},
		"signature of an unknown block":      {poem, delta(`"type":"signature_delta","signature":"s#"`), false},
		"mismatched deltas":                  {thinking, delta(`"type":"text_delta","text":"x"`), false},
		"deltas for protected fields":        {text, delta(`"type":"d#","id":"x"`), false},
		"deltas without a block":             {text, `{"type":"content_block_delta","index":1#,"delta":{"type":"signature_delta","signature":"x"}}`, false},
		"invalid starts":                     {text, `{"type":"content_block_start","index":1#,"content_block":1}`, false},
		"calls":                              {"", `{"type":"content_block_start","index":#,"content_block":{"type":"tool_use","id":"` + strings.Repeat("c", 100) + `#","name":"f","input":{}}}`, true},
		"unknown events":                     {text, `{"type":"` + strings.Repeat("x", 1000) + `#"}`, false},
		"conflicting stop reasons":           {text, `{"type":"message_delta","delta":{"stop_reason":"w#"}}`, false},
		"repeated stop details":              {text, `{"type":"message_delta","delta":{"stop_details":{"x":#}}}`, false},
		"null stop details":                  {text, `{"type":"message_delta","delta":{"stop_details":null}}`, false},
		"repeated field":                     {text, `{"type":"message_delta","delta":{"x":#},"y":#}`, false},
		"members":                            {text, `{"type":"message_delta","delta":{"x#":1}}`, true},
		"repeated counter":                   {text, `{"type":"message_delta","delta":{},"usage":{"output_tokens":1,"x":#,"output_tokens_details":{"y":#}}}`, false},
		"counters":                           {text, `{"type":"message_delta","delta":{},"usage":{"x#":1}}`, true},
		"repeated message":                   {text, startLine, false},
	} {
		t.Run(what, func(t *testing.T) {
			codectest.CheckBounded(t, codec, []byte(sseStream(startLine+"\n"+c.opening)), func(i int) []byte {
				return []byte(sseStream(strings.ReplaceAll(c.event, "#", fmt.Sprint(i))))
			}, c.leaves)
		})
	}
}

// A repeated message_start may contain other or duplicate fields.
func TestRepeatedMessageStartIsNotReported(t *testing.T) {
	again := strings.Replace(startLine, `"content":[]`, `"content":[],"Content":[],"stop_reason":"end_turn","stop_reason":"refusal"`, 1)
	resp := collect(t, sseStream(startLine+"\n"+again+"\n"+endLines("end_turn")))
	if resp.ID != "msg_1" || resp.Stop.Native != "end_turn" {
		t.Errorf("%+v", resp)
	}
}
