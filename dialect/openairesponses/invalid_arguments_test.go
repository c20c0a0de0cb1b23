package openairesponses

import (
	"bytes"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/dialect"
)

// A call whose arguments are not JSON does not end as completed, even if the earlier events of
// the server are passed through.
func TestQuirkB9_InvalidArgumentsEndAsIncomplete(t *testing.T) {
	const args = `"{\"city\": Oslo}"`
	item := `{"type":"function_call","id":"fc_1","call_id":"call_1","name":"get_weather","arguments":` + args + `,"status":"completed"}`
	body := events(created, added(0, callJSON("fc_1", "call_1", "", "in_progress")), argDelta(0, `{"city": Oslo}`),
		`{"type":"response.function_call_arguments.done","output_index":0,"item_id":"fc_1","arguments":`+args+`}`, done(0, item),
		strings.Replace(completed, `"output":[]`, `"output":[`+item+`]`, 1))
	enc := Codec{}.NewStreamEncoder(dialect.EncodeOptions{Seed: "s"})
	var out []byte
	for ev, err := range dialect.Events(Codec{}.NewStreamDecoder(dialect.DecodeOptions{}), bytes.NewReader(body)) {
		if err != nil {
			t.Fatal(err)
		}
		if out, err = enc.Encode(out, ev); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := enc.Close(out); err != nil || strings.Contains(string(out), `"status":"completed"`) || strings.Contains(string(out), "response.completed") || !strings.Contains(string(out), "Oslo") {
		t.Errorf("%v\n%s", err, out)
	}
	whole := `{"id":"resp_1","object":"response","created_at":1,"status":"completed","model":"m","output":[` + item + `]}`
	resp, _, err := Codec{}.DecodeResponse([]byte(whole), dialect.DecodeOptions{})
	if err != nil || resp.ToolCalls()[0].Problem == nil {
		t.Fatal(err)
	}
	written, err := Codec{}.EncodeResponse(resp, dialect.EncodeOptions{})
	if err != nil || strings.Contains(string(written.Body), `"status":"completed"`) || !strings.Contains(string(written.Body), "Oslo") {
		t.Errorf("%v\n%s", err, written.Body)
	}
}
