package anthropic

import (
	"reflect"
	"strings"
	"testing"
)

// bothWays reads an event with the fast path, if possible, and with the general
// reader.
func bothWays(data string) (quick, slow *wireEvent, isQuick bool, err error) {
	quick, slow = &wireEvent{}, &wireEvent{}
	// State of the previous event must not remain.
	before := []byte(`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1},"odd":1}`)
	_ = quick.readAny(before, nil)
	_ = slow.readAny(before, nil)
	isQuick = quick.quickDelta([]byte(data))
	err = slow.readAny([]byte(data), []byte("content_block_delta"))
	return quick, slow, isQuick, err
}

// sameEvent reports whether both readers gave the same result.
func sameEvent(a, b *wireEvent) bool {
	return string(a.typ) == string(b.typ) && a.index == b.index && string(a.kind) == string(b.kind) &&
		a.hasDelta == b.hasDelta && a.failure == b.failure && a.duplicate == b.duplicate && a.badStart == b.badStart &&
		string(a.message)+string(a.opening)+string(a.change)+string(a.usage) == string(b.message)+string(b.opening)+string(b.change)+string(b.usage) &&
		len(a.otherFields) == len(b.otherFields) && reflect.DeepEqual(a.unknownFields, b.unknownFields) && len(a.delta.fields) == len(b.delta.fields) &&
		a.delta.text == b.delta.text && a.delta.exact == b.delta.exact && a.delta.whole == b.delta.whole &&
		a.delta.mistyped == b.delta.mistyped && a.delta.textField == b.delta.textField && string(a.delta.citation) == string(b.delta.citation)
}

// fragments are deltas in the form of servers and in other forms. quick reports
// which ones the fast path must read.
var fragments = []struct {
	data  string
	quick bool
}{
	{`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello"}}`, true},
	{`{"type":"content_block_delta","index":12,"delta":{"type":"input_json_delta","partial_json":"{\"a\\b\":\"\n\t\r\b\f\/"}      }`, true},
	{`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"größer 🙂"}}`, true},
	{`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"abc=="}}`, true},
	{`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":""}}`, true},
	{`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"caf\u00e9"}}`, false},
	{`{"type":"content_block_delta","index":01,"delta":{"type":"text_delta","text":"x"}}`, false},
	{`{"type":"content_block_delta","index":,"delta":{"type":"text_delta","text":"x"}}`, false},
	{`{"type":"content_block_delta","index":99999999999999999999,"delta":{"type":"text_delta","text":"x"}}`, false},
	{`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x","text":"y"}}`, false},
	{`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x"},"Index":1}`, false},
	{`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x"}}}`, false},
	{`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x"}} 1`, false},
	{`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x"}`, false},
	{`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x`, false},
	{`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x\`, false},
	{`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x\y"}}`, false},
	{"{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"x\ny\"}}", false},
	{"{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"\xff\"}}", false},
	{`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","partial_json":"x"}}`, false},
	{`{"index":0,"type":"content_block_delta","delta":{"type":"text_delta","text":"x"}}`, false},
}

func TestQuickDeltaEqualsGeneralReader(t *testing.T) {
	for _, f := range fragments {
		quick, slow, isQuick, err := bothWays(f.data)
		if isQuick != f.quick {
			t.Errorf("%s: fast path: %v", f.data, isQuick)
		}
		if isQuick && (err != nil || !sameEvent(quick, slow)) {
			t.Errorf("%s: fast path %+v, general reader %+v, %v", f.data, quick, slow, err)
		}
	}
}

func FuzzQuickDeltaEqualsGeneralReader(f *testing.F) {
	for _, s := range fragments {
		text := strings.TrimPrefix(s.data, `{"type":"content_block_delta","index":`)
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		data := strings.TrimSpace(`{"type":"content_block_delta","index":` + text)
		if quick, slow, isQuick, err := bothWays(data); isQuick && (err != nil || !sameEvent(quick, slow)) {
			t.Errorf("%s: fast path %+v, general reader %+v, %v", data, quick, slow, err)
		}
	})
}
