package anthropic_test

import (
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
)

// Clients that use the index and clients that use the event name must see the
// same calls.
func TestAmbiguousEventIsReencoded(t *testing.T) {
	const (
		start = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"x\",\"content\":[],\"stop_reason\":null,\"usage\":{\"input_tokens\":1,\"output_tokens\":1}}}\n\n" +
			"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"rm\",\"input\":{}}}\n\n"
		stop  = "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n"
		delta = "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"path\\\":\\\"/\\\"}\"}}\n\n"
		end   = "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"},\"usage\":{\"output_tokens\":1}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
	)
	for name, stream := range map[string]string{
		"fragment after the end of its block": start + stop + "event: content_block_delta\n" + delta + end,
		"event with another name":             start + "event: ping\n" + delta + stop + end,
	} {
		t.Run(name, func(t *testing.T) {
			evs, err := drain(dialect.DecodeOptions{}, []byte(stream))
			if err != nil {
				t.Fatal(err)
			}
			out, _ := encodeEvents(t, dialect.EncodeOptions{}, evs...)
			if strings.Contains(out, "event: ping\ndata: {\"type\":\"content_block_delta\"") || strings.Index(out, "partial_json") > strings.Index(out, "content_block_stop") {
				t.Errorf("%s", out)
			}
		})
	}
}

// If an event has a duplicate field of a call, in any letter case, two readers
// could see different calls. The call must not run.
func TestDuplicateEventFieldBlocksCall(t *testing.T) {
	opening := `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"rm","input":{}}}`
	delta := `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{}"}}`
	stop := `{"type":"content_block_stop","index":0}`
	for name, lines := range map[string][]string{
		"Content_block": {strings.Replace(opening, `"content_block"`, `"Content_block":{"type":"text","text":""},"content_block"`, 1), delta, stop},
		"Delta":         {opening, strings.Replace(delta, `"delta"`, `"Delta":{},"delta"`, 1), stop},
		"Partial_json":  {opening, strings.Replace(delta, `"partial_json"`, `"Partial_json":"{\"path\":1}","partial_json"`, 1), stop},
		"text as well":  {opening, strings.Replace(delta, `"partial_json"`, `"text":"x","partial_json"`, 1), stop},
		"type of delta": {opening, strings.Replace(delta, `"delta":{`, `"delta":{"Type":"text_delta",`, 1), stop},
		"Index of stop": {opening, delta, strings.Replace(stop, `"index"`, `"Index":1,"index"`, 1)},
	} {
		resp := collect(t, sseStream(startLine+"\n"+strings.Join(lines, "\n")+"\n"+endLines("tool_use")))
		if calls := resp.ToolCalls(); len(calls) != 1 || calls[0].Problem == nil || calls[0].Problem.Code != codes.ProblemDuplicateKey {
			t.Errorf("%s: %+v", name, resp.ToolCalls())
		}
	}
}

// The kind of a delta decides which field has its text, regardless of the order
// of the fields.
func TestDeltaTextIsFieldOfItsKind(t *testing.T) {
	for _, delta := range []string{
		`{"type":"text_delta","text":"hi","partial_json":"no"}`,
		`{"text":"hi","partial_json":"no","type":"text_delta"}`,
		`{"partial_json":"no","text":"hi","type":"text_delta"}`,
	} {
		resp := collect(t, sseStream(`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`+"\n"+
			`{"type":"content_block_delta","index":0,"delta":`+delta+"}\n"+`{"type":"content_block_stop","index":0}`+"\n"+endLines("end_turn")))
		if resp.Text() != "hi" {
			t.Errorf("%s decoded as %q", delta, resp.Text())
		}
	}
}
