package bedrock_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/testkit"
	"github.com/dragoman-go/dragoman/internal/testkit/codectest"
	"github.com/google/go-cmp/cmp"
)

// The package dialect tests that recorded traffic keeps its meaning in all
// dialects. This file tests what only this dialect promises.

func TestRecordedResponseReencodesToValidForm(t *testing.T) {
	whole, streams := 0, 0
	for _, x := range testkit.Recordings(t, "bedrock_converse") {
		body, err := x.Response()
		if err != nil {
			t.Fatalf("%s: %v", x.ID(), err)
		}
		switch {
		case x.Status != 200:
		case bytes.HasPrefix(body, []byte{0}):
			streams++
			rebuiltStream(t, &x, body)
		case bytes.Contains(body, []byte(`"stopReason"`)) && json.Valid(body):
			whole++
			rebuiltResponse(t, &x, body)
		}
	}
	t.Logf("%d responses, %d streams", whole, streams)
	if whole < 28 || streams < 15 {
		t.Errorf("only %d responses, %d streams", whole, streams)
	}
}

// rebuiltResponse checks that every field of a response is rebuilt.
func rebuiltResponse(t *testing.T, x *testkit.Exchange, body []byte) {
	t.Helper()
	resp, _, err := codec.DecodeResponse(body, dialect.DecodeOptions{})
	if err != nil {
		t.Errorf("%s: %v", x.ID(), err)
		return
	}
	again, err := codec.EncodeResponse(resp, dialect.EncodeOptions{Rebuild: true})
	if err != nil {
		t.Errorf("%s: %v", x.ID(), err)
		return
	}
	want := codectest.JSON[map[string]any](t, body)
	if want["metrics"] == nil { // hand-made fixtures lack a field that the API always sends
		want["metrics"] = map[string]any{"latencyMs": json.Number("0")}
	}
	if diff := cmp.Diff(any(want), codectest.JSON[any](t, again.Body)); diff != "" {
		t.Errorf("%s: rebuilt differs (-recorded +rebuilt):\n%s", x.ID(), diff)
	}
}

func rebuiltStream(t *testing.T, x *testkit.Exchange, body []byte) {
	t.Helper()
	evs, rep, err := codectest.DecodeStream(codec, dialect.DecodeOptions{}, codectest.Pieces(body, 100)...)
	if err != nil || len(rep.Losses) > 0 {
		t.Errorf("%s: %v %s", x.ID(), err, rep)
		return
	}
	again, _ := encodeEvents(t, dialect.EncodeOptions{Rebuild: true}, evs...)
	if err := checkWire(again); err != nil {
		t.Errorf("%s: %v", x.ID(), err)
	}
}
