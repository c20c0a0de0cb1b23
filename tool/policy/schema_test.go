package policy

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/internal/configfile"
	"github.com/dragoman-go/dragoman/internal/testkit"
	"github.com/dragoman-go/dragoman/schema"
)

// fileSchema is docs/policy.schema.json, which editors use.
func fileSchema(t testing.TB) ([]byte, *schema.Validator) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(moduleRoot(t), "docs", "policy.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	v, err := schema.Compile(raw)
	if err != nil {
		t.Fatal(err)
	}
	return raw, v
}

func moduleRoot(t testing.TB) string {
	t.Helper()
	root, err := testkit.RepoRoot()
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// asJSON returns a policy file as the JSON value that an editor validates.
func asJSON(t testing.TB, text string) json.RawMessage {
	t.Helper()
	root, errs := configfile.Read([]byte(text))
	for _, err := range errs {
		t.Fatal(err)
	}
	return (&configfile.Reader{}).JSON(root, "file")
}

// All policies that this module documents match the schema and can be loaded.
func TestP6_EveryDocumentedPolicyFitsTheSchema(t *testing.T) {
	_, v := fileSchema(t)
	root := moduleRoot(t)
	shown := map[string]string{"the whole in YAML": wholeYAML, "the whole in JSON": wholeJSON}
	packages, err := testkit.RepoPackages(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range packages {
		for _, name := range slices.Concat(p.Files, p.Tests) {
			if strings.HasSuffix(name, "example_test.go") {
				addPolicies(t, shown, filepath.Join(root, filepath.FromSlash(p.Path), name))
			}
		}
	}
	shown["the package comment"] = documented(t)
	if len(shown) < 5 { // examples of this package and of tool/workspace
		t.Errorf("only %q were found", slices.Sorted(maps.Keys(shown)))
	}
	for where, text := range shown {
		c, err := Parse(where, []byte(text))
		if err == nil {
			_, err = New(c)
		}
		if err != nil {
			t.Errorf("%s: %v", where, err)
			continue
		}
		if err := v.Validate(asJSON(t, text)); err != nil {
			t.Errorf("%s: %v", where, err)
		}
	}
}

// addPolicies adds the string literals of a Go file that are policies.
func addPolicies(t *testing.T, shown map[string]string, file string) {
	t.Helper()
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if text, err := strconv.Unquote(lit.Value); err == nil && strings.HasPrefix(strings.TrimSpace(text), "version: 1\n") && strings.Contains(text, "\nrules:") {
				shown[fset.Position(lit.Pos()).String()] = text
			}
		}
		return true
	})
}

// documented returns the policy in the package comment.
func documented(t *testing.T) string {
	t.Helper()
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile(`(?m)^//\tversion: 1 .*\n(?://\t.*\n)+`).FindString(string(doc))
	if block == "" {
		t.Fatal("the package comment shows no policy")
	}
	return strings.ReplaceAll(block, "//\t", "")
}

// The reader and the schema know the same fields.
func TestP6_SchemaHasEveryField(t *testing.T) {
	raw, _ := fileSchema(t)
	type object struct {
		Properties map[string]json.RawMessage
	}
	var s struct {
		object
		Defs map[string]object `json:"$defs"`
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		t.Fatal(err)
	}
	// The error for an unknown field lists the known fields.
	const unknown = "nobody_has_this_field"
	const nothing = unknown + ": 1"
	_, err := Parse("f", []byte("version: 1\n"+nothing+"\nrules:\n  - {"+nothing+", when: {"+nothing+", annotations: {"+nothing+"}}, input: {"+nothing+"}}\n"))
	if err == nil {
		t.Fatal("an unknown field was taken")
	}
	listed := regexp.MustCompile(`: (\w+): unknown field "`+unknown+`": known fields are (.*)`).FindAllStringSubmatch(err.Error(), -1)
	known := map[string]string{}
	for _, m := range listed {
		known[m[1]] = m[2]
	}
	for what, o := range map[string]object{
		"policy": s.object, "rule": s.Defs["rule"], "when": s.Defs["when"], "annotations": s.Defs["annotations"], "input": s.Defs["input"],
	} {
		if got := strings.Join(slices.Sorted(maps.Keys(o.Properties)), ", "); got == "" || got != known[what] {
			t.Errorf("%s: the schema has %s, the reader %s", what, got, known[what])
		}
	}
	if len(known) != 5 {
		t.Errorf("the errors list %d fields", len(known))
	}
}

// Files that the schema refuses are refused by the reader too.
func TestP6_SchemaRefusesInvalidFiles(t *testing.T) {
	_, v := fileSchema(t)
	rule := func(more string) string { return "version: 1\nrules:\n  - {id: a, " + more + "}\n" }
	for _, text := range []string{
		"rules: []\n", "version: 2\n", "version: '1'\n", "version: 1\nrule: []\n", "version: 1\nrules: {}\n", "version: 1\ndefault: maybe\n",
		"version: 1\ncost_limit: 0\n", "version: 1\ncost_limit: 1.5\n", "version: 1\nrules: [{effect: deny}]\n", "version: 1\nrules: [{id: '', effect: deny}]\n",
		rule("x: 1"), rule("effect: maybe"), rule("effect: deny, prioriti: 1"), rule("effect: deny, priority: high"), rule("effect: deny, priority: 3000000000"),
		rule("effect: deny, enabled: 'no'"), rule("effect: deny, subjects: [tool]"), rule("effect: deny, subjects: []"), rule("effect: deny, reason: 1"),
		rule("effect: deny, edits: {x: 1}"), rule("effect: allow, edits: {'': 1}"), rule("effect: allow, edits: [1]"),
		rule("effect: input"), rule("effect: input, input: {}"), rule("effect: input, input: {argument: ''}"), rule("effect: ask, input: {argument: x}"),
		rule("effect: input, input: {argument: x, promt: y}"),
		rule("effect: deny, when: {tols: x}"), rule("effect: deny, when: {tool: []}"), rule("effect: deny, when: {tool: ''}"), rule("effect: deny, when: {tool: 'a['}"),
		rule("effect: deny, when: {agent: [a, '{b}']}"), rule("effect: deny, when: {namespace: ['']}"), rule("effect: deny, when: {tags: 1}"),
		rule("effect: deny, when: {annotations: {readonly: true}}"), rule("effect: deny, when: {annotations: {read_only: 'yes'}}"),
		rule("effect: deny, when: {metadata: {a: 1}}"), rule("effect: deny, when: {expression: ' '}"), rule("effect: deny, when: {expression: true}"), rule("effect: deny, when: [tool]"),
		rule("effect: ask, subjects: model_call"), rule("effect: ask, subjects: [tool_call, model_call]"), rule("effect: allow, subjects: model_call, edits: {x: 1}"),
		rule("effect: deny, subjects: [model_call], when: {tool: x}"), rule("effect: deny, subjects: model_call, when: {target: x}"), rule("effect: deny, when: {model: []}"),
	} {
		c, err := Parse("f", []byte(text))
		if err == nil {
			_, err = New(c)
		}
		if err == nil {
			t.Errorf("%s: the program takes it", text)
		}
		if v.Validate(asJSON(t, text)) == nil {
			t.Errorf("%s: the schema takes it", text)
		}
	}
}
