package gemini

import (
	"encoding/json"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
)

func TestQuirkA9_NullableReference(t *testing.T) {
	got := fromClosedSchema(json.RawMessage(`{"$ref":"#/$defs/A","nullable":true,"description":"d"}`), "", nil)
	if want := `{"anyOf":[{"$ref":"#/$defs/A"},{"type":"null"}],"description":"d"}`; string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
	var rep dragoman.Report
	fromClosedSchema(json.RawMessage(`{"$ref":"#/$defs/A","nullable":true,"anyOf":[{"type":"STRING"}]}`), "/x", &rep)
	if !strings.Contains(rep.String(), "/x: null next to") {
		t.Errorf("the loss is not reported: %s", rep)
	}
}

func TestQuirkA21_JSONSchemaIsUnchanged(t *testing.T) {
	plain := json.RawMessage(`{"type": "object",  "properties": {}}`)
	if got := fromClosedSchema(plain, "", nil); string(got) != string(plain) {
		t.Errorf("JSON Schema was changed to %s", got)
	}
}

// Protobuf JSON may use the number of an enum value instead of its name.
func TestQuirkA21_NumericTypes(t *testing.T) {
	var rep dragoman.Report
	got := fromClosedSchema(json.RawMessage(`{"type":6,"properties":{"s":{"type":1,"nullable":true},"n":{"type":2},"i":{"type":3,"enum":["1"]},
		"b":{"type":4},"l":{"type":5,"items":{"type":0}},"z":{"type":7}}}`), "/x", &rep)
	want := `{"type":"object","properties":{"s":{"type":["string","null"]},"n":{"type":"number"},"i":{"type":"integer","enum":[1]},` +
		`"b":{"type":"boolean"},"l":{"type":"array","items":{}},"z":{"type":"null"}}}`
	if string(got) != want || len(rep.Losses) > 0 {
		t.Errorf("%s\n%s", got, rep)
	}
	got = fromClosedSchema(json.RawMessage(`{"anyOf":[{"type":8},{"type":-1},{"type":1e3},{"type":1.5}]}`), "/x", &rep)
	if string(got) != `{"anyOf":[{},{},{},{}]}` || len(rep.Losses) != 1 {
		t.Errorf("%s\n%s", got, rep)
	}
	if l := rep.Losses[0]; l.Kind != dragoman.Dropped || l.Path != "/x" {
		t.Errorf("%v", l)
	}
}
