package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/internal/testkit"
)

func TestGeneratedFileIsUpToDate(t *testing.T) {
	root, err := testkit.RepoRoot()
	if err != nil {
		t.Fatal(err)
	}
	want, err := generate(root)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(root, output))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not up to date; run\n\n\tgo generate .", output)
	}
}

// frame is a minimal package for the generator. Its tags are in single quotes.
const frame = `package dragoman

type Part interface { Kind() PartKind; sealedPart() }
type PartKind string
const ( KindNote PartKind = "note"; KindMark PartKind = "mark" )

func (*Note) Kind() PartKind { return KindNote }
func (*Mark) Kind() PartKind { return KindMark }
func (*Note) sealedPart() {}
func (*Mark) sealedPart() {}
func (t *Thing) Fingerprint() Fingerprint { return Fingerprint{} }
func (t *Thing) heavy() bool { return true }

type Note struct { NOTE }
type Mark struct { Text string 'json:"text,omitzero"' }

//stored:top thing
type Thing struct { THING }

//stored:value box
type Box struct { Lid []string 'json:"lid,omitzero"' }

type Plain struct { A int }
`

// generated returns the code that is generated for the frame with these fields.
func generated(t *testing.T, note, thing string) (string, error) {
	t.Helper()
	dir := t.TempDir()
	src := strings.NewReplacer("NOTE", note, "THING", thing).Replace(frame)
	src = strings.ReplaceAll(src, "'", "`")
	if err := os.WriteFile(filepath.Join(dir, "types.go"), []byte(src), 0o644); err != nil {
		t.Fatal(err)
	}
	code, err := generate(dir)
	return string(code), err
}

// One line in a struct is enough to store, load and fingerprint a field.
func TestFieldNeedsOneLine(t *testing.T) {
	for _, tc := range []struct {
		note, thing string
		want        []string
	}{
		{
			thing: `Name string 'json:"name,omitzero"'`,
			want:  []string{`out.str("name", t.Name)`, "case \"name\":\n\t\t\tv.Name = r.String()", `h.str(t.Name)`},
		},
		{
			thing: `Size *int64 'json:"size,omitzero" hash:"-"'`,
			want:  []string{"if t.Size != nil {\n\t\tout.w.Key(\"size\")\n\t\tout.w.Int(*t.Size)", `v.Size = loadOpt(r, (*jsonwire.Reader).Int)`, "hash(h *hasher) {\n}"},
		},
		{
			thing: `Mood string 'json:"mood,omitzero" hash:"ifset"'`,
			want:  []string{"if t.Mood != \"\" {\n\t\th.str(\"mood\")\n\t\th.str(t.Mood)\n\t}"},
		},
		{
			thing: "A string 'json:\"a\" hash:\"after=B\"'\nB bool 'json:\"b\"'",
			want:  []string{"out.w.Key(\"a\")\n\tout.w.String(t.A)\n\tout.w.Key(\"b\")\n\tout.w.Bool(t.B)", "h.bool(t.B)\n\th.str(t.A)"},
		},
		{
			thing: `Box Box 'json:"box,omitzero"'`,
			want:  []string{"t.Box.store(out)\n\tout.dropEmpty(\"box\")", "v.Box = loadBox(r)", "t.Box.hash(h)"},
		},
		{
			thing: "Boxes []Box 'json:\"boxes,omitzero\" hash:\"nil\"'\nKey string 'json:\"key\" stored:\"if=heavy\" hash:\"if=heavy\"'",
			want:  []string{"h.bool(t.Boxes != nil)", "t.Boxes[i].store(out)", "if t.heavy() {\n\t\tout.w.Key(\"key\")", "if h.present(t.heavy()) {\n\t\th.str(t.Key)\n\t}"},
		},
		{
			note:  "Text string 'json:\"text,omitzero\"'\nParts []Part 'json:\"parts,omitzero\"'",
			thing: `Parts []Part 'json:"parts,omitzero"'`,
			want:  []string{"v.parts = loadList(r, loadPart)", "return &Note{\n\t\t\tText:  v.text,\n\t\t\tParts: v.parts,\n\t\t}", "h.part(n.Parts[i])"},
		},
	} {
		code, err := generated(t, tc.note, tc.thing)
		if err != nil {
			t.Errorf("%s: %v", tc.thing, err)
			continue
		}
		for _, want := range tc.want {
			if !strings.Contains(code, want) {
				t.Errorf("%s %s: the code lacks\n%s\nin\n%s", tc.note, tc.thing, want, code)
			}
		}
	}
}

// A mistake in a tag is an error with its position.
func TestTagMistakesAreErrors(t *testing.T) {
	for _, tc := range []struct{ note, thing, want string }{
		{thing: `Name string`, want: "Thing.Name: the json tag has no name"},
		{thing: `Name string 'json:"Name"'`, want: "snake_case"},
		{thing: `Name string 'json:"name,omitempty"'`, want: `json: unknown option "omitempty"`},
		{thing: `Name string 'json:"v"'`, want: `another field has the name "v"`},
		{thing: "A string 'json:\"a\"'\nB string 'json:\"a\"'", want: `types.go:`},
		{thing: `A, B string 'json:"a"'`, want: "on its own line"},
		{thing: `Name string 'json:"name" hash:"later"'`, want: `hash: unknown option "later"`},
		{thing: `Name string 'json:"name" hash:"-,ifset"'`, want: "excludes other options"},
		{thing: `Name string 'json:"-" hash:"ifset"'`, want: "excludes other options"},
		{thing: `Name string 'json:"name" hash:"after=Age"'`, want: `hash:"after=Age"`},
		{thing: `Name string 'json:"name" hash:"nil"'`, want: "only to lists"},
		{thing: `Name string 'json:"name" hash:"if=light"'`, want: "Thing has no method light"},
		{thing: `Name string 'json:"name" stored:"never"'`, want: `stored: unknown option "never"`},
		{thing: `Name string 'json:"name,omitzero" stored:"if=heavy"'`, want: "exclude each other"},
		{thing: `Plain *Plain 'json:"plain,omitzero"'`, want: "a Plain cannot be stored"},
		{thing: `Size []int 'json:"size,omitzero"'`, want: "a []int cannot be stored"},
		{thing: `Map map[string]string 'json:"map,omitzero"'`, want: "cannot be stored"},
		{thing: `Wait time.Duration 'json:"wait"'`, want: "must have omitzero"},
		{thing: `Wait time.Duration 'json:"wait,omitzero"'`, want: `a time.Duration cannot be fingerprinted: add hash:"-"`},
		{thing: `Box Box 'json:"box,omitzero" hash:"ifset"'`, want: "not supported"},
		{note: `Text bool 'json:"text,omitzero"'`, want: `the field "text" has type`},
		{note: `Type string 'json:"type,omitzero"'`, want: `another field has the name "type"`},
		{note: `At time.Time 'json:"at,omitzero"'`, want: "cannot store a time"},
	} {
		if _, err := generated(t, tc.note, tc.thing); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s%s: %v, want an error with %q", tc.note, tc.thing, err, tc.want)
		}
	}
}
