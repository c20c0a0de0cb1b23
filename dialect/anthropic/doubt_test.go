package anthropic_test

import (
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
)

// What a client that goes by the index, or by the name of the event, would read
// as another call is not passed on as it came.
func TestAnEventThatClientsWouldReadDifferentlyIsWrittenAnew(t *testing.T) {
	const (
		start = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"x\",\"content\":[],\"stop_reason\":null,\"usage\":{\"input_tokens\":1,\"output_tokens\":1}}}\n\n" +
			"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"rm\",\"input\":{}}}\n\n"
		stop  = "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n"
		delta = "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"path\\\":\\\"/\\\"}\"}}\n\n"
		end   = "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"},\"usage\":{\"output_tokens\":1}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
	)
	for name, stream := range map[string]string{
		"a fragment behind the end of its block": start + stop + "event: content_block_delta\n" + delta + end,
		"an event that is called otherwise":      start + "event: ping\n" + delta + stop + end,
	} {
		t.Run(name, func(t *testing.T) {
			evs, err := drain(dialect.DecodeOptions{}, []byte(stream))
			if err != nil {
				t.Fatal(err)
			}
			blank := false
			for _, ev := range evs {
				if c, ok := ev.(*dragoman.Chunk); ok && len(c.Raw) == 0 {
					blank = true
				}
			}
			if !blank {
				t.Error("every event is passed on as it came")
			}
			out, _ := play(t, dialect.EncodeOptions{}, evs...)
			if strings.Contains(out, "event: ping\ndata: {\"type\":\"content_block_delta\"") || strings.Index(out, "partial_json") > strings.Index(out, "content_block_stop") {
				t.Errorf("%s", out)
			}
		})
	}
}
