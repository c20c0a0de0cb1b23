package gemini_test

import (
	"encoding/json"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/interop"
)

func TestQuirkA9_AReferenceThatMayBeNullStaysSo(t *testing.T) {
	got := interop.FromGeminiSchema(json.RawMessage(`{"$ref":"#/$defs/A","nullable":true,"description":"d"}`), "", nil)
	if want := `{"anyOf":[{"$ref":"#/$defs/A"},{"type":"null"}],"description":"d"}`; string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
	var rep dragoman.Report
	interop.FromGeminiSchema(json.RawMessage(`{"$ref":"#/$defs/A","nullable":true,"anyOf":[{"type":"STRING"}]}`), "/x", &rep)
	if !strings.Contains(rep.String(), "/x: null beside") {
		t.Errorf("lost in silence: %s", rep)
	}
}
