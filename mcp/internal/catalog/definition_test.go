package catalog

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

var update = flag.Bool("update", false, "write the golden files again")

const whole = `{"name":"read_file","title":"Read","description":"Reads.","inputSchema":{"type":"object","properties":{"path":{"type":"string"}}},"outputSchema":{"type":"object"},` +
	`"annotations":{"readOnlyHint":true,"title":"R"},"icons":[],"_meta":{"ui":{"resourceUri":"ui://a"},"other":1},"execution":{"taskSupport":"optional"},"vendor":{"x":1}}`

func definitionOf(t *testing.T, label, object string) json.RawMessage {
	t.Helper()
	fields, ok := fieldsOf(json.RawMessage(object))
	if !ok {
		t.Fatal("not an object")
	}
	def, err := define(label, fields)
	if err != nil {
		t.Fatal(err)
	}
	return def
}

// pin_change_each_field: the definition changes if and only if a pinned field changes.
func TestPinChangeEachField(t *testing.T) {
	base := definitionOf(t, "files", whole)
	set := func(name, value string) string { return string(jsonwire.With([]byte(whole), name, []byte(value))) }
	for what, changed := range map[string]string{
		"name":                  set("name", `"read_files"`),
		"title":                 set("title", `"Read a file"`),
		"title removed":         string(jsonwire.Without([]byte(whole), "title")),
		"description":           set("description", `"Reads. "`),
		"description null":      set("description", `null`),
		"input type":            set("inputSchema", `{"type":"object","properties":{"path":{"type":"array"}}}`),
		"input description":     set("inputSchema", `{"type":"object","properties":{"path":{"type":"string","description":"x"}}}`),
		"input vendor keyword":  set("inputSchema", `{"type":"object","properties":{"path":{"type":"string","x-foo":1}}}`),
		"output":                set("outputSchema", `{"type":"object","required":["a"]}`),
		"output removed":        string(jsonwire.Without([]byte(whole), "outputSchema")),
		"read-only hint":        set("annotations", `{"readOnlyHint":false,"title":"R"}`),
		"hint removed":          set("annotations", `{"title":"R"}`),
		"hint added":            set("annotations", `{"readOnlyHint":true,"title":"R","destructiveHint":false}`),
		"annotation title":      set("annotations", `{"readOnlyHint":true,"title":"S"}`),
		"unknown annotation":    set("annotations", `{"readOnlyHint":true,"title":"R","x":1}`),
		"annotations removed":   string(jsonwire.Without([]byte(whole), "annotations")),
		"app":                   set("_meta", `{"ui":{"resourceUri":"ui://b"},"other":1}`),
		"app visibility":        set("_meta", `{"ui":{"resourceUri":"ui://a","visibility":["app"]},"other":1}`),
		"app resource, old key": set("_meta", `{"ui":{"resourceUri":"ui://a"},"ui/resourceUri":"ui://c","other":1}`),
		"execution":             set("execution", `{"taskSupport":"required"}`),
		"large number":          set("inputSchema", `{"type":"object","properties":{"path":{"type":"string","maxLength":9007199254740993}}}`),
	} {
		def := definitionOf(t, "files", changed)
		if Fingerprint(def) == Fingerprint(base) {
			t.Errorf("%s: the fingerprint is the same", what)
		}
		if changes := Diff(base, def); len(changes) == 0 || changes[0].Text == "" || strings.HasPrefix(changes[0].Text, "the definition changed") {
			t.Errorf("%s: the difference has no words: %+v", what, changes)
		}
	}
	if Fingerprint(definitionOf(t, "other", whole)) == Fingerprint(base) {
		t.Error("the label is not pinned")
	}
	for what, changed := range map[string]string{
		"icons":           set("icons", `[{"src":"x"}]`),
		"other meta":      set("_meta", `{"ui":{"resourceUri":"ui://a"},"other":2}`),
		"vendor field":    set("vendor", `2`),
		"order and space": `{"vendor":1, "description" : "Re\u0061ds.", "execution":{"taskSupport":"optional"},"_meta":{"ui":{"resourceUri":"ui://a"}},"annotations":{"title":"R","readOnlyHint":true},"outputSchema":{"type":"object"},"inputSchema":{"properties":{"path":{"type":"string"}},"type":"object"},"title":"Read","name":"read_file"}`,
	} {
		if def := definitionOf(t, "files", changed); Fingerprint(def) != Fingerprint(base) {
			t.Errorf("%s: the fingerprint changed: %s", what, def)
		}
	}
}

func TestFingerprintIsStable(t *testing.T) {
	const want = `{"annotations":{"readOnlyHint":true,"title":"R"},"description":"Reads.","execution":{"taskSupport":"optional"},"inputSchema":{"properties":{"path":{"type":"string"}},"type":"object"},"label":"files","name":"read_file","outputSchema":{"type":"object"},"title":"Read","ui":{"resourceUri":"ui://a"}}`
	if got := string(definitionOf(t, "files", whole)); got != want {
		t.Errorf("%s", got)
	}
}

func TestCanonicalNumbers(t *testing.T) {
	for in, want := range map[string]string{
		"1": "1", "1.0": "1", "1e0": "1", "10e-1": "1", "-0": "0", "0.0": "0", "1e3": "1000", "1.50": "1.5", "-2.50e1": "-25", "0.001": "0.001", "1E-3": "0.001",
		"9007199254740993": "9007199254740993", "9007199254740992": "9007199254740992", "1e400": "1e400", "1e-400": "1e-400", "1e99999999999999": "1e99999999999999", "123456789e20": "12345678900000000000000000000",
	} {
		got, err := Canonical(json.RawMessage(in))
		if err != nil || string(got) != want {
			t.Errorf("%s: %s, %v; want %s", in, got, err, want)
		}
	}
}

func TestRenamesAreTraced(t *testing.T) {
	a, b := definitionOf(t, "files", whole), definitionOf(t, "files", string(jsonwire.With([]byte(whole), "name", []byte(`"open_file"`))))
	c := definitionOf(t, "files", string(jsonwire.With([]byte(whole), "description", []byte(`"x"`))))
	if !SameExceptName(a, b) || SameExceptName(a, c) {
		t.Error("renames are not recognized")
	}
}

// The golden files have two definitions and their difference.
func TestDiffIsInWords(t *testing.T) {
	files, err := filepath.Glob("testdata/diff/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no golden files", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			part := func(name string) *txtar.File {
				for i := range ar.Files {
					if ar.Files[i].Name == name {
						return &ar.Files[i]
					}
				}
				ar.Files = append(ar.Files, txtar.File{Name: name})
				return &ar.Files[len(ar.Files)-1]
			}
			before, after := definitionOf(t, "srv", string(part("before").Data)), definitionOf(t, "srv", string(part("after").Data))
			var b strings.Builder
			for _, c := range Diff(before, after) {
				b.WriteString(c.Field + " | " + c.Text + "\n")
				for _, line := range c.Lines {
					b.WriteString("    " + line + "\n")
				}
			}
			if want := part("diff"); string(want.Data) != b.String() {
				if *update {
					want.Data = []byte(b.String())
					if err := os.WriteFile(file, txtar.Format(ar), 0o600); err != nil {
						t.Fatal(err)
					}
					return
				}
				t.Errorf("got:\n%s\nwant:\n%s", b.String(), want.Data)
			}
		})
	}
}
