package anthropic

import (
	"reflect"
	"strings"
	"testing"
)

// bothWays reads an event quickly, if it can be, and slowly.
func bothWays(data string) (quick, slow *wireEvent, isQuick bool, err error) {
	quick, slow = &wireEvent{}, &wireEvent{}
	// What was read before must not be seen again.
	before := []byte(`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1},"odd":1}`)
	_ = quick.readAny(before, nil)
	_ = slow.readAny(before, nil)
	isQuick = quick.quickDelta([]byte(data))
	err = slow.readAny([]byte(data), []byte("content_block_delta"))
	return quick, slow, isQuick, err
}

// sameEvent reports whether two readers understood the same.
func sameEvent(a, b *wireEvent) bool {
	return string(a.typ) == string(b.typ) && a.index == b.index && string(a.kind) == string(b.kind) &&
		a.hasDelta == b.hasDelta && a.failure == b.failure && a.twice == b.twice && a.noBlock == b.noBlock &&
		string(a.message)+string(a.opening)+string(a.change)+string(a.usage) == string(b.message)+string(b.opening)+string(b.change)+string(b.usage) &&
		len(a.rest) == len(b.rest) && reflect.DeepEqual(a.strays, b.strays) && len(a.delta.members) == len(b.delta.members) &&
		a.delta.text == b.delta.text && a.delta.exact == b.delta.exact && a.delta.whole == b.delta.whole &&
		a.delta.mistyped == b.delta.mistyped && a.delta.member == b.delta.member && string(a.delta.citation) == string(b.delta.citation)
}

// fragments are deltas as servers write them, and as they do not; quick says which are
// read quickly.
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

func TestAFragmentIsReadQuicklyAsItIsReadSlowly(t *testing.T) {
	for _, f := range fragments {
		quick, slow, isQuick, err := bothWays(f.data)
		if isQuick != f.quick {
			t.Errorf("%s: read quickly: %v", f.data, isQuick)
		}
		if isQuick && (err != nil || !sameEvent(quick, slow)) {
			t.Errorf("%s: quickly %+v, slowly %+v, %v", f.data, quick, slow, err)
		}
	}
}

func FuzzAFragmentIsReadQuicklyAsItIsReadSlowly(f *testing.F) {
	for _, s := range fragments {
		text := strings.TrimPrefix(s.data, `{"type":"content_block_delta","index":`)
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		data := strings.TrimSpace(`{"type":"content_block_delta","index":` + text)
		if quick, slow, isQuick, err := bothWays(data); isQuick && (err != nil || !sameEvent(quick, slow)) {
			t.Errorf("%s: quickly %+v, slowly %+v, %v", data, quick, slow, err)
		}
	})
}
