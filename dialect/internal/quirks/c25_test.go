package quirks_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
)

// Calls of a Responses stream have any output index, because reasoning and text come before them.
// Chat clients merge calls by tool index, which counts from 0.
func TestQuirkC25_ToolIndexCountsFunctionItemsInOrder(t *testing.T) {
	item := func(i int, args string) string {
		return fmt.Sprintf(`{"type":"function_call","id":"fc_%d","call_id":"call_%d","name":"f%d","arguments":%q}`, i, i, i, args)
	}
	delta := func(i int, text string) string {
		return fmt.Sprintf(`{"type":"response.function_call_arguments.delta","output_index":%d,"item_id":"fc_%d","delta":%q}`, i, i, text)
	}
	added := func(i int, item string) string {
		return fmt.Sprintf(`{"type":"response.output_item.added","output_index":%d,"item":%s}`, i, item)
	}
	done := func(i int, item string) string {
		return fmt.Sprintf(`{"type":"response.output_item.done","output_index":%d,"item":%s}`, i, item)
	}
	var body strings.Builder
	for _, data := range []string{
		`{"type":"response.created","response":{"id":"resp_1","model":"m"}}`,
		done(0, `{"type":"reasoning","id":"rs_1","summary":[]}`),
		done(1, `{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"hi"}]}`),
		added(5, item(5, "")), added(2, item(2, "")), // the higher index appears first
		delta(5, `{"a":`), delta(2, `{"b":`), delta(5, `1}`), delta(2, `2}`),
		done(2, item(2, `{"b":2}`)), done(5, item(5, `{"a":1}`)),
		`{"type":"response.completed","response":{"id":"resp_1","status":"completed","output":[]}}`,
	} {
		body.WriteString("data: " + data + "\n\n")
	}

	enc := openaichat.Codec{}.NewStreamEncoder(dialect.EncodeOptions{})
	dec := openairesponses.Codec{}.NewStreamDecoder(dialect.DecodeOptions{})
	var out []byte
	emit := func(ev dragoman.Event) (err error) { out, err = enc.Encode(out, ev); return err }
	if err := dec.Feed([]byte(body.String()), emit); err != nil {
		t.Fatal(err)
	}
	if err := dec.Close(emit); err != nil {
		t.Fatal(err)
	}

	type call struct{ id, name, args string }
	got := map[int]call{}
	for line := range strings.Lines(string(out)) {
		data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: ")
		if !ok || data == "[DONE]" {
			continue
		}
		var chunk struct {
			Choices []struct {
				Delta struct {
					ToolCalls []struct {
						Index    int
						ID       string
						Function struct{ Name, Arguments string }
					} `json:"tool_calls"`
				}
			}
		}
		if err := json.Unmarshal([]byte(data), &chunk); err != nil {
			t.Fatal(err)
		}
		for _, c := range chunk.Choices {
			for _, tc := range c.Delta.ToolCalls {
				was := got[tc.Index]
				got[tc.Index] = call{was.id + tc.ID, was.name + tc.Function.Name, was.args + tc.Function.Arguments}
			}
		}
	}
	want := map[int]call{0: {"call_5", "f5", `{"a":1}`}, 1: {"call_2", "f2", `{"b":2}`}}
	if len(got) != len(want) || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("got %v, want %v\n%s", got, want, out)
	}
}
