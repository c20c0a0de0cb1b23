package schema

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
)

// toolzoo is a directory of real tool definitions, next to the project.
const toolzoo = "../../shared/toolzoo"

// zooSchemas reads every schema of the directory. The files have different shapes, but all use
// the same field for the schema.
func zooSchemas(t testing.TB) map[string]json.RawMessage {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(toolzoo, "*.json"))
	if len(files) == 0 {
		t.Skipf("no real tool schemas at %s", toolzoo)
	}
	out := map[string]json.RawMessage{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		base := filepath.Base(file)
		if strings.HasPrefix(base, "answer_") {
			continue
		}
		if !strings.HasPrefix(base, "BFCL") {
			collect(t, out, base, text)
			continue
		}
		lines := bufio.NewScanner(bytes.NewReader(text))
		lines.Buffer(nil, 1<<24)
		for i := 0; lines.Scan(); i++ {
			collect(t, out, base+":"+itoa(i+1), lines.Bytes())
		}
	}
	return out
}

func collect(t testing.TB, out map[string]json.RawMessage, at string, text []byte) {
	t.Helper()
	text = bytes.TrimSpace(text)
	switch {
	case len(text) == 0:
	case text[0] == '[':
		var list []json.RawMessage
		if err := json.Unmarshal(text, &list); err != nil {
			t.Fatalf("%s: %v", at, err)
		}
		for i, e := range list {
			collect(t, out, at+"/"+itoa(i), e)
		}
	case text[0] == '{':
		var m map[string]json.RawMessage
		if err := json.Unmarshal(text, &m); err != nil {
			t.Fatalf("%s: %v", at, err)
		}
		for name, v := range m {
			switch name {
			case "inputSchema", "input_schema", "parameters":
				out[at+"/"+name] = bytes.Clone(v)
			case "outputSchema", "question":
			default:
				collect(t, out, at+"/"+name, v)
			}
		}
	}
}

func TestRealToolSchemasLowerForEveryProfile(t *testing.T) {
	schemas := zooSchemas(t)
	if len(schemas) < 1000 {
		t.Errorf("only %d schemas found", len(schemas))
	}
	for _, p := range Profiles() {
		ok, repaired, refused := 0, 0, 0
		for at, src := range schemas {
			before := string(src)
			out, report, err := lowered(src, p)
			if string(src) != before {
				t.Fatalf("%s: the source was changed", at)
			}
			if err != nil {
				refused++
				if !p.Strict() || !errors.Is(err, dragoman.ErrUnsupported) {
					t.Errorf("%s: %s: %v\n%s", p.Name(), at, err, src)
				}
				continue
			}
			if len(report.Losses) == 0 {
				ok++
			} else {
				repaired++
			}
			checkLowered(t, string(src), out, p, report)
			if _, err := Compile(out); err != nil {
				t.Errorf("%s: %s: lowered, it does not compile: %v\n%s", p.Name(), at, err, out)
			}
		}
		t.Logf("%-28s %4d as written, %4d repaired, %4d not expressible", p.Name(), ok, repaired, refused)
	}
}
