package quirks_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/testkit/crosstest"
	"github.com/dragoman-go/dragoman/schema"
	"github.com/dragoman-go/dragoman/targets"
)

// Tool arguments are translated back, but structured output is not, so its properties must keep
// their own names.
func TestOutputSchemaKeepsPropertyNames(t *testing.T) {
	req := &dragoman.Request{
		Model: "m", Messages: []dragoman.Message{dragoman.UserText("q")},
		Output: &dragoman.OutputFormat{Kind: codes.OutputSchema, Name: "o", Schema: []byte(`{"type":"object","properties":{"größe in m":{"type":"number"},"a":{"type":"string"}},"required":["größe in m","a"],"additionalProperties":false}`)},
	}
	for _, c := range crosstest.Codecs {
		enc, err := c.EncodeRequest(req, dialect.EncodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(enc.Body, []byte("größe in m")); n > 0 && n < 2 || n == 0 && len(enc.Report.Losses) == 0 {
			t.Errorf("%s: %s\n%s", c.Dialect(), enc.Body, enc.Report.String())
		}
	}
}

// A model that is set after decoding is written, even if the request had none.
func TestModelIsAddedToRequestWithoutOne(t *testing.T) {
	for d, body := range map[dragoman.Dialect]string{
		dialectname.OpenAIChat:      `{"messages":[{"role":"user","content":"hi"}]}`,
		dialectname.OpenAIResponses: `{"model":null,"input":"hi"}`,
		dialectname.Anthropic:       `{"max_tokens":1,"messages":[{"role":"user","content":"hi"}]}`,
		"cohere.chat":               `{"messages":[{"role":"user","content":"hi"}]}`,
		dialectname.Ollama:          `{"messages":[{"role":"user","content":"hi"}]}`,
	} {
		c := crosstest.CodecOf(d)
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

func TestQuirkF6_NonObjectOutputRootIsWrapped(t *testing.T) {
	wants := map[dragoman.Dialect]bool{dialectname.OpenAIChat: true, dialectname.OpenAIResponses: true, dialectname.Anthropic: true, dialectname.Bedrock: true, "cohere.chat": true}
	for what, src := range map[string]string{
		"a list":    `{"type":"array","items":{"type":"string","format":"idn-email"}}`,
		"an enum":   `{"type":"string","enum":["a","b"]}`,
		"a union":   `{"anyOf":[{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false},{"type":"integer"}]}`,
		"an object": `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`,
	} {
		for _, strict := range []string{codes.StrictUnset, codes.StrictOn, codes.StrictAuto} {
			req := &dragoman.Request{
				Model: "m", Messages: []dragoman.Message{dragoman.UserText("q")},
				Output: &dragoman.OutputFormat{Kind: codes.OutputSchema, Name: "o", Strict: strict, Schema: []byte(src)},
			}
			for _, c := range crosstest.Codecs {
				enc, err := c.EncodeRequest(req, dialect.EncodeOptions{})
				if err != nil {
					t.Fatal(err)
				}
				wrap := wants[c.Dialect()] && what != "an object"
				body := bytes.ReplaceAll(enc.Body, []byte(`\"`), []byte(`"`)) // Bedrock has it in a string
				if got := bytes.Contains(body, []byte(`{"type":"object","properties":{"value":{`)); got != wrap || enc.Registry.OutputWrapped() != wrap {
					t.Errorf("%s: %s, strict %q: wrapped %v, AnswerWrapped %v\n%s", c.Dialect(), what, strict, got, enc.Registry.OutputWrapped(), enc.Body)
				}
				reported := false
				for _, l := range enc.Report.Losses {
					reported = reported || l.Kind == dragoman.Lowered && l.Path == "/output/schema"
					if strings.Contains(l.Path, "/value") || strings.Contains(l.Detail, "argument") || l.Severity == dragoman.Serious {
						t.Errorf("%s: %s, strict %q: %s", c.Dialect(), what, strict, l)
					}
				}
				if wrap && !reported {
					t.Errorf("%s: %s: not reported\n%s", c.Dialect(), what, enc.Report)
				}
			}
		}
	}
}

func TestQuirkF9_SchemaIsAPromptIfToolsExcludeIt(t *testing.T) {
	for _, c := range crosstest.Codecs {
		req := &dragoman.Request{
			Model: "m", Messages: []dragoman.Message{dragoman.UserText("q")}, Tools: []dragoman.ToolSpec{{Name: "f"}},
			Output: &dragoman.OutputFormat{Kind: codes.OutputSchema, Name: "o", Schema: []byte(`{"type":"object","properties":{"zz":{"type":"string"}},"required":["zz"],"additionalProperties":false}`)},
		}
		bare := *req
		bare.Output = nil
		bare.Instructions = []dragoman.Part{&dragoman.Text{Text: "words"}}
		without, err := c.EncodeRequest(&bare, dialect.EncodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		enc, err := c.EncodeRequest(req, dialect.EncodeOptions{Target: targets.Target{Caps: targets.Capabilities{NoOutputWithTools: true}}})
		if err != nil {
			t.Fatal(err)
		}
		var members, plain map[string]json.RawMessage
		if json.Unmarshal(enc.Body, &members) != nil || json.Unmarshal(without.Body, &plain) != nil {
			t.Fatalf("%s", enc.Body)
		}
		if !slices.Equal(slices.Sorted(maps.Keys(members)), slices.Sorted(maps.Keys(plain))) || !bytes.Contains(enc.Body, []byte(`{\"zz\":`)) {
			t.Errorf("%s: %s", c.Dialect(), enc.Body)
		}
		if !reported(enc.Report, dragoman.Lowered, "/output") {
			t.Errorf("%s: %s", c.Dialect(), enc.Report)
		}
		if c.Dialect() == dialectname.Ollama {
			if enc, err = c.EncodeRequest(req, dialect.EncodeOptions{}); err != nil || !reported(enc.Report, dragoman.Lowered, "/output") {
				t.Errorf("Ollama applies the format to every response, which is not reported: %s", enc.Report)
			}
		}
	}
}

// JSON without a schema is better than nothing: DeepSeek supports no more (requirement X7).
func TestX7_SchemaIsAPromptIfTheServerTakesOnlyJSON(t *testing.T) {
	for _, c := range crosstest.Codecs {
		ask := func(schema string) *dragoman.Request {
			return &dragoman.Request{
				Model: "m", Messages: []dragoman.Message{dragoman.UserText("q")},
				Output: &dragoman.OutputFormat{Kind: codes.OutputSchema, Name: "o", Schema: []byte(schema)},
			}
		}
		bare := ask("{}")
		bare.Output = &dragoman.OutputFormat{Kind: codes.OutputJSON}
		target := targets.Target{Caps: targets.Capabilities{NoOutputSchema: true}}
		for _, tc := range []struct {
			schema string
			mode   bool // JSON is also set as the format
		}{
			{`{"type":"object","properties":{"zz":{"type":"string"}},"required":["zz"]}`, true},
			{`{"type":"array","items":{"enum":["zz"]}}`, false},
		} {
			enc, err := c.EncodeRequest(ask(tc.schema), dialect.EncodeOptions{Target: target})
			if err != nil {
				t.Fatal(err)
			}
			want := *bare
			want.Instructions = []dragoman.Part{&dragoman.Text{Text: "words"}}
			if !tc.mode {
				want.Output = nil
			}
			plain, err := c.EncodeRequest(&want, dialect.EncodeOptions{Target: target})
			if err != nil {
				t.Fatal(err)
			}
			var got, expected map[string]json.RawMessage
			if json.Unmarshal(enc.Body, &got) != nil || json.Unmarshal(plain.Body, &expected) != nil {
				t.Fatalf("%s", enc.Body)
			}
			if !slices.Equal(slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(expected))) || !bytes.Contains(enc.Body, []byte(`\"zz\"`)) || bytes.Contains(enc.Body, []byte(`"zz"`)) {
				t.Errorf("%s: %s", c.Dialect(), enc.Body)
			}
			if !reported(enc.Report, dragoman.Lowered, "/output/schema") {
				t.Errorf("%s: %s", c.Dialect(), enc.Report)
			}
		}
		// Without a schema, nothing is lost.
		if enc, err := c.EncodeRequest(bare, dialect.EncodeOptions{Target: target}); err != nil || reported(enc.Report, dragoman.Lowered, "/output/schema") {
			t.Errorf("%s: %v %s", c.Dialect(), err, enc.Report)
		}
	}
}

// Output is checked against the author's schema; the wire got a lowered one.
func TestQuirkF4_OutputIsCheckedAgainstTheAuthorsSchema(t *testing.T) {
	const src = `{"type":"object","properties":{"n":{"type":"integer","minimum":1}},"required":["n"],"additionalProperties":false}`
	const output = `{"n":0}`
	req := &dragoman.Request{
		Model: "m", Messages: []dragoman.Message{dragoman.UserText("q")},
		Output: &dragoman.OutputFormat{Kind: codes.OutputSchema, Name: "o", Schema: []byte(src)},
	}
	enc, err := crosstest.CodecOf(dialectname.Anthropic).EncodeRequest(req, dialect.EncodeOptions{})
	if err != nil || bytes.Contains(enc.Body, []byte(`"minimum"`)) {
		t.Fatalf("%s %v", enc.Body, err)
	}
	low, err := schema.Lower([]byte(src), crosstest.Profile(t, "anthropic.strict"))
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		schema []byte
		valid  bool
	}{"lowered schema": {low.Schema, true}, "author's schema": {req.Output.Schema, false}} {
		v, err := schema.Compile(c.schema)
		if err != nil {
			t.Fatal(err)
		}
		if err := v.Validate([]byte(output)); (err == nil) != c.valid {
			t.Errorf("%s: %v", what, err)
		}
	}
	if string(req.Output.Schema) != src {
		t.Errorf("encoding changed the author's schema: %s", req.Output.Schema)
	}
}

// reported reports whether rep has a loss of this kind at path.
func reported(rep dragoman.Report, kind dragoman.LossKind, path string) bool {
	return slices.ContainsFunc(rep.Losses, func(l dragoman.Loss) bool { return l.Kind == kind && l.Path == path })
}
