package ollama_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/testkit"
)

// Recorded traffic of all dialects is tested in dialect/internal/recorded. This test covers what
// only this dialect guarantees: whole responses are rebuilt with all their fields.
func TestRecordedResponseIsRebuiltWithAllFields(t *testing.T) {
	n := 0
	for _, x := range testkit.Recordings(t, "ollama_chat") {
		body, err := x.Response()
		if err != nil {
			t.Fatal(err)
		}
		if x.Status >= 400 || !json.Valid(body) || !bytes.Contains(body, []byte(`"done"`)) {
			continue // a stream has many values
		}
		n++
		resp, rep, err := codec.DecodeResponse(body, dialect.DecodeOptions{})
		if err != nil || len(rep.Losses) > 0 {
			t.Errorf("%s: %v\n%s", x.ID(), err, rep)
			continue
		}
		enc, err := codec.EncodeResponse(resp, dialect.EncodeOptions{Rebuild: true})
		if err != nil || len(enc.Report.Losses) > 0 {
			t.Errorf("%s: %v\n%s", x.ID(), err, enc.Report)
		}
		sameJSON(t, string(enc.Body), string(body))
	}
	t.Logf("%d responses", n)
	if n < 25 {
		t.Errorf("only %d responses", n)
	}
}
