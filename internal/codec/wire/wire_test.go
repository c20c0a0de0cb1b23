package wire_test

import (
	"testing"

	"github.com/dragoman-go/dragoman/internal/codec/wire"
	"github.com/dragoman-go/dragoman/internal/framing"
)

func TestFieldIsSet(t *testing.T) {
	field := wire.NewField("finish_reason")
	for data, want := range map[string]bool{
		`{"finish_reason":"stop"}`:                     true,
		`{"finish_reason": "stop"}`:                    true,
		`{"finish_reason":null}`:                       false,
		`{"finish_reason":""}`:                         false,
		`{"finish_reason":false}`:                      false,
		`{"text":"\"finish_reason\":\"stop\""}`:        false,
		`{"my_finish_reason":"stop"}`:                  false,
		`{"finish_reason":null,"finish_reason":"end"}`: true,
		`{}`: false,
	} {
		if got := field.IsSet([]byte(data)); got != want {
			t.Errorf("%s: %v", data, got)
		}
	}
	if field.Name() != "finish_reason" {
		t.Error(field.Name())
	}
}

func TestEndByName(t *testing.T) {
	end := wire.End{Names: []string{"delta", "stop"}, Last: []string{"stop"}}
	for _, tc := range []struct {
		name, data string
		may, is    bool
	}{
		{"delta", `{}`, true, false},
		{"stop", `{}`, true, true},
		{"other", `{"type":"stop"}`, false, false},
		{"", ` {"type":"stop"}`, true, true},
		{"message", `{"type": "delta"}`, true, false},
		{"", `{"a":1,"type":"stop"}`, true, true},
		{"", `{"a":"stop"}`, false, false},
	} {
		if may, is := end.May([]byte(tc.name), []byte(tc.data)), end.Is([]byte(tc.name), []byte(tc.data)); may != tc.may || is != tc.is {
			t.Errorf("%q %s: may %v, is %v", tc.name, tc.data, may, is)
		}
	}
}

func TestEndByFieldAndMark(t *testing.T) {
	marked := wire.End{Field: wire.NewField("reason"), Mark: "[DONE]"}
	if data := []byte(`{"reason":"x"}`); !marked.May(nil, data) || marked.Is(nil, data) {
		t.Error("a reason may end a response, and the mark follows")
	}
	if data := []byte(" [DONE]\n\n"); !marked.May(nil, data) || !marked.Is(nil, data) {
		t.Error("the mark must be last")
	}
	last := wire.End{Field: wire.NewField("done"), FieldIsLast: true}
	if data := []byte(`{"done":true}`); !last.May(nil, data) || !last.Is(nil, data) {
		t.Error("the field must be last")
	}
}

func TestCodecWithoutDescriptor(t *testing.T) {
	w := wire.Of(nil)
	if w.Stream.Framing != framing.Framing(framing.SSE) || w.Endpoint.Path != "" || w.State.Responses {
		t.Errorf("%+v", w)
	}
}
