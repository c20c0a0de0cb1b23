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

// A model that is named after decoding is written, also where the request had
// none.
func TestAModelIsWrittenWhereTheRequestHadNone(t *testing.T) {
	for d, body := range map[dragoman.Dialect]string{
		dragoman.OpenAIChat:      `{"messages":[{"role":"user","content":"hi"}]}`,
		dragoman.OpenAIResponses: `{"model":null,"input":"hi"}`,
		dragoman.Anthropic:       `{"max_tokens":1,"messages":[{"role":"user","content":"hi"}]}`,
		dragoman.Ollama:          `{"messages":[{"role":"user","content":"hi"}]}`,
	} {
		c := codecOf(d)
		req, _, err := c.DecodeRequest([]byte(body), dialect.DecodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		req.Model = "new"
		enc, err := c.EncodeRequest(req, dialect.EncodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(enc.Body, []byte(`"model":"new"`)) {
			t.Errorf("%s: %s", d, enc.Body)
		}
	}
}
