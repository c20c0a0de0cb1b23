package dialect_test

import (
	"bytes"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
)

// Arguments of a tool are translated back, an answer is not: who asked for a
// property gets it under its own name.
func TestTheSchemaOfAnAnswerKeepsTheNamesOfItsProperties(t *testing.T) {
	req := &dragoman.Request{
		Model: "m", Messages: []dragoman.Message{dragoman.UserText("q")},
		Output: &dragoman.OutputFormat{Kind: dragoman.OutputSchema, Name: "o", Schema: []byte(`{"type":"object","properties":{"größe in m":{"type":"number"},"a":{"type":"string"}},"required":["größe in m","a"],"additionalProperties":false}`)},
	}
	for _, c := range codecs {
		enc, err := c.EncodeRequest(req, dialect.EncodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(enc.Body, []byte("größe in m")); n > 0 && n < 2 || n == 0 && len(enc.Report.Losses) == 0 {
			t.Errorf("%s: %s\n%s", c.Dialect(), enc.Body, enc.Report.String())
		}
	}
}
