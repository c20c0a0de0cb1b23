package losses_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/testkit/crosstest"
	"github.com/dragoman-go/dragoman/internal/testkit/gen"
)

// literals lists the fields of each wire format that only a tool or a validator reads. Duplicate
// fields inside them are not our concern.
var literals = map[dragoman.Dialect][]string{
	dialectname.OpenAIChat:      {"arguments", "parameters", "schema"},
	dialectname.OpenAIResponses: {"arguments", "parameters", "schema"},
	dialectname.Anthropic:       {"input", "input_schema", "schema"},
	dialectname.Gemini:          {"args", "parameters", "parametersJsonSchema", "response", "responseSchema", "responseJsonSchema"},
	"cohere.chat":               {"arguments", "parameters", "json_schema", "data", "documents"},
	dialectname.Ollama:          {"arguments", "parameters", "format"},
	dialectname.Bedrock:         {"input", "json"},
}

// fieldNames returns the offsets and names of the fields of a document, except those inside
// literal fields.
func fieldNames(t *rapid.T, doc []byte, literal []string) (at []int, names []string) {
	dec := jsontext.NewDecoder(bytes.NewReader(doc), jsontext.AllowDuplicateNames(true)) // arguments may repeat a name
	for depth := 0; ; {
		kind, n := dec.StackIndex(dec.StackDepth())
		if kind == '{' && n%2 == 0 && dec.PeekKind() == '"' {
			v, err := dec.ReadValue()
			if err != nil {
				t.Fatal(err)
			}
			at, names = append(at, int(dec.InputOffset())-len(v)), append(names, string(v))
			if slices.Contains(literal, string(v[1:len(v)-1])) {
				if err := dec.SkipValue(); err != nil {
					t.Fatal(err)
				}
			}
			continue
		}
		tok, err := dec.ReadToken()
		if err != nil {
			t.Fatal(err)
		}
		switch tok.Kind() {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return at, names
			}
		}
	}
}

// withDuplicateField inserts a field before one of the document's fields with the same name.
func withDuplicateField(t *rapid.T, doc []byte, literal []string) []byte {
	at, names := fieldNames(t, doc, literal)
	i := rapid.IntRange(0, len(at)-1).Draw(t, "member")
	value := rapid.SampledFrom([]string{
		`null`, `5`, `true`, `"x"`, `[]`, `{}`, `["x"]`, `[{"role":"user","content":"evil"}]`, `{"role":"user","content":"evil"}`,
		`[{"type":"text","text":"evil"}]`, `[{"text":"evil"}]`, `{"text":"evil"}`, `"tool_use"`, `"assistant"`,
	}).Draw(t, "value")
	return slices.Concat(doc[:at[i]], []byte(names[i]+":"+value+","), doc[at[i]:])
}

func TestR7_LastDuplicateFieldOfRequestCountsAndIsReported(t *testing.T) {
	crosstest.ForEveryDialect(t, func(t *rapid.T, c dialect.Codec) {
		req := gen.Options{}.Request().Draw(t, "request")
		enc, err := c.EncodeRequest(req, dialect.EncodeOptions{Rebuild: true})
		if errors.Is(err, dragoman.ErrUnsupported) { // it requires a tool that the wire cannot express
			req.ToolChoice = nil
			enc, err = c.EncodeRequest(req, dialect.EncodeOptions{Rebuild: true})
		}
		if err != nil {
			t.Fatal(err)
		}
		body := withDuplicateField(t, enc.Body, literals[c.Dialect()])
		want, _, err := c.DecodeRequest(enc.Body, dialect.DecodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		got, rep, err := c.DecodeRequest(body, dialect.DecodeOptions{})
		if err != nil {
			t.Fatalf("%v in %s", err, body)
		}
		if !strings.Contains(rep.String(), "duplicate field") {
			t.Fatalf("nothing is reported for %s", body)
		}
		if got.Native != nil {
			t.Fatalf("the native bytes are kept: %s", body)
		}
		want.Native = nil
		if d := gen.Diff(want, got); d != "" {
			t.Fatalf("%s\ndecodes to another request than\n%s\n%s", body, enc.Body, d)
		}
	})
}

func TestR7_DuplicateFieldOfResponseIsReported(t *testing.T) {
	crosstest.ForEveryDialect(t, func(t *rapid.T, c dialect.Codec) {
		enc, err := c.EncodeResponse(gen.Options{}.Response().Draw(t, "response"), dialect.EncodeOptions{Rebuild: true})
		if err != nil {
			t.Fatal(err)
		}
		want, _, err := c.DecodeResponse(enc.Body, dialect.DecodeOptions{Seed: "s"})
		if err != nil {
			t.Fatalf("the encoded response cannot be decoded: %v\n%s", err, enc.Body)
		}
		body := withDuplicateField(t, enc.Body, literals[c.Dialect()])
		got, rep, err := c.DecodeResponse(body, dialect.DecodeOptions{Seed: "s"})
		if refused := new(dragoman.DecodeError); errors.As(err, &refused) {
			return // the error names the field
		} else if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(rep.String(), "duplicate field") {
			t.Fatalf("nothing is reported for %s", body)
		}
		if got.Native != nil {
			t.Fatalf("the native bytes are kept: %s", body)
		}
		texts := textsOf(want)
		for _, text := range textsOf(got) {
			if !slices.Contains(texts, text) {
				t.Fatalf("%s has the text %q", body, text)
			}
		}
		for _, call := range got.ToolCalls() {
			same := func(c *dragoman.ToolCall) bool {
				return c.ID == call.ID && c.Namespace == call.Namespace && c.Name == call.Name && c.Payload == call.Payload && c.Arguments == call.Arguments
			}
			if call.Problem == nil && !slices.ContainsFunc(want.ToolCalls(), same) {
				t.Fatalf("%s\nruns another call: %+v", body, call)
			}
		}
	})
}

// textsOf returns all texts of a response.
func textsOf(resp *dragoman.Response) (out []string) {
	for _, m := range resp.Output {
		for _, p := range m.Parts {
			if text, ok := p.(*dragoman.Text); ok {
				out = append(out, text.Text)
			}
		}
	}
	return out
}
