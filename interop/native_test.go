package interop_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/extra"
	"github.com/dragoman-go/dragoman/interop"
)

// ownForm writes a tool in each dialect's own form.
var ownForm = map[dragoman.Dialect]string{
	dragoman.OpenAIChat:      `{"type":"function","function":{"name":%q,"parameters":%s}}`,
	dragoman.OpenAIResponses: `{"type":"function","name":%q,"parameters":%s,"strict":false}`,
	dragoman.Anthropic:       `{"name":%q,"input_schema":%s}`,
	dragoman.Gemini:          `{"name":%q,"description":"d","parametersJsonSchema":%s}`,
	dragoman.Bedrock:         `{"toolSpec":{"name":%q,"inputSchema":{"json":%s}}}`,
}

// rewritten reads a tool of a dialect's own form and writes it again for it.
func rewritten(t *testing.T, d dragoman.Dialect, objs []string, edit ...func(*interop.Options)) (string, dragoman.Report) {
	t.Helper()
	var tools []dragoman.ToolSpec
	for _, obj := range objs {
		if d == dragoman.Gemini {
			obj = `{"functionDeclarations":[` + obj + `]}`
		}
		var rep dragoman.Report
		specs, err := registry(d, nil).ReadTool(json.RawMessage(obj), extra.At(""), &rep)
		if err != nil {
			t.Fatal(err)
		}
		tools = append(tools, specs...)
	}
	edit = append(edit, func(o *interop.Options) { o.Limits.SchemaFormats = []dragoman.Format{tools[0].Source.Format} })
	return writeTools(t, registry(d, tools, edit...), tools)
}

func TestQuirkA45_ABrokenSchemaInTheTargetsOwnFormIsLoweredLikeAnyOther(t *testing.T) {
	for d, form := range ownForm {
		good := fmt.Sprintf(form, "good", `{ "type":"object", "properties":{} }`)
		for _, bad := range []struct{ schema, not string }{
			{`{"anyOf":[{"type":"object","properties":{"a":{"type":"string"}}}]}`, `anyOf`}, // quirk A5
			{`{"type":"array","items":{}}`, `"bad"`},
			{`{"type":"objekt","properties":{}}`, `objekt`},
			{`{"type":"object","properties":{"a":{"$ref":"#/$defs/x"}}}`, `"$ref"`},
			{`{"type":"object","properties":{"a":{"$ref":"https://example.com/x"}}}`, `"$ref"`},
		} {
			t.Run(string(d)+" "+bad.schema, func(t *testing.T) {
				got, rep := rewritten(t, d, []string{fmt.Sprintf(form, "bad", bad.schema), good})
				if strings.Contains(got, bad.not) {
					t.Errorf("%s is still in %s", bad.not, got)
				}
				if rep.Err(dragoman.Warn) == nil {
					t.Error("nothing was reported")
				}
				if !strings.Contains(got, good) {
					t.Errorf("the good tool is not as it was in %s", got)
				}
			})
		}
	}
}

func TestQuirkA45_ASchemaInTheTargetsOwnFormIsNotTouchedForItsSpelling(t *testing.T) {
	for d, form := range ownForm {
		for _, s := range []string{
			`{ "type":"object" }`,
			`{"type":"object","properties":{"a":{"type":"string","nullable":true}}}`,
			`{"x-order":[2,1],"type":"object","properties":{}}`,
		} {
			obj := fmt.Sprintf(form, "f", s)
			got, rep := rewritten(t, d, []string{obj})
			if !strings.Contains(got, obj) || len(rep.Losses) > 0 {
				t.Errorf("%s: %s became %s\n%s", d, obj, got, rep)
			}
		}
	}
}

func TestQuirkA2_AFunctionInTheFormThatASurfaceLacksIsWrittenInTheOther(t *testing.T) {
	const obj = `{"name":"f","description":"d","parametersJsonSchema":{"type":"object","properties":{"a":{"type":"string"}}}}`
	got, _ := rewritten(t, dragoman.Gemini, []string{obj}, withCaps(dragoman.Capabilities{ClosedSchemas: true}))
	if !strings.Contains(got, `"parameters":{`) {
		t.Errorf("written as %s", got)
	}
	const unknown = `{"name":"f","description":"d","parameters":{"type":"OBJECT","properties":{"a":{"type":"STRING","$comment":"c"}}}}`
	if got, _ = rewritten(t, dragoman.Gemini, []string{unknown}); strings.Contains(got, "$comment\"") && strings.Contains(got, `"parameters"`) {
		t.Errorf("a keyword that quirk A1 forbids passed: %s", got)
	}
	const fine = `{"name":"f","description":"d","parameters":{"type":"OBJECT","properties":{"a":{"type":"STRING","nullable":true}}}}`
	if got, _ = rewritten(t, dragoman.Gemini, []string{fine}); !strings.Contains(got, fine) {
		t.Errorf("the API's own notation was changed to %s", got)
	}
}
