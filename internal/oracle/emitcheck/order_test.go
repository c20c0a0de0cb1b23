package emitcheck_test

import (
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/oracle/emitcheck"
)

// Values that a codec passes through from another server may contain invalid UTF-8. The
// server's own output must not.
func TestInvalidUTF8IsAllowedOnlyInOrder(t *testing.T) {
	stream := strings.Join([]string{
		"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"m\",\"content\":[],\"stop_reason\":null,\"stop_sequence\":null,\"odd\":\"\xf5\",\"usage\":{\"input_tokens\":1,\"output_tokens\":0}}}",
		"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}",
		"event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}",
		"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\",\"stop_sequence\":null},\"usage\":{\"output_tokens\":1}}",
		"event: message_stop\ndata: {\"type\":\"message_stop\"}", "",
	}, "\n\n")
	if err := emitcheck.Order(dialectname.Anthropic, []byte(stream)); err != nil {
		t.Errorf("Order: %v", err)
	}
	if err := emitcheck.Stream(dialectname.Anthropic, nil, []byte(stream)); err == nil || !strings.Contains(err.Error(), "UTF-8") {
		t.Errorf("Stream: %v", err)
	}
}
