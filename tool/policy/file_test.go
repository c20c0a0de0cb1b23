package policy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/tool"
)

const wholeYAML = `# everything that a file can say
version: 1
default: ask_destructive
cost_limit: 5000
rules:
  - id: all
    effect: allow
    priority: -7
    enabled: true
    subjects: [tool_call, handoff]
    reason: "because"
    when:
      tool: [git.*, "read"]
      namespace: git
      annotations: {read_only: true, destructive: false, idempotent: true, open_world: false}
      tags: [vcs, remote]
      agent: main/*
      metadata:
        tenant: acme
        plan: "1"
      expression: |
        has(args.force) &&
        args.force == true
    edits:
      dry_run: true
      deep: {list: [1, 2.50, null, text], none: {}}
  - {id: ask, effect: input, enabled: false, input: {argument: ticket, prompt: Which one?}}
`

const wholeJSON = `{
 "version": 1, "default": "ask_destructive", "cost_limit": 5000,
 "rules": [
  {"id": "all", "effect": "allow", "priority": -7, "enabled": true, "subjects": ["tool_call", "handoff"], "reason": "because",
   "when": {"tool": ["git.*", "read"], "namespace": "git",
    "annotations": {"read_only": true, "destructive": false, "idempotent": true, "open_world": false},
    "tags": ["vcs", "remote"], "agent": "main/*", "metadata": {"tenant": "acme", "plan": "1"},
    "expression": "has(args.force) &&\nargs.force == true\n"},
   "edits": {"dry_run": true, "deep": {"list": [1, 2.50, null, "text"], "none": {}}}},
  {"id": "ask", "effect": "input", "enabled": false, "input": {"argument": "ticket", "prompt": "Which one?"}}
 ]}`

func TestP6_YAMLAndJSONAreEquivalent(t *testing.T) {
	want := Config{Default: defaultAskDestructive, CostLimit: 5000, Rules: []Rule{
		{
			ID: "all", Effect: tool.Allow, Priority: -7, Subjects: []string{codes.SubjectToolCall, codes.SubjectHandoff}, Reason: "because",
			When: When{
				Tools: []string{"git.*", "read"}, Namespaces: []string{"git"}, ReadOnly: new(true), Destructive: new(false),
				Idempotent: new(true), OpenWorld: new(false), Tags: []string{"vcs", "remote"}, Agents: []string{"main/*"},
				Metadata: map[string]string{"tenant": "acme", "plan": "1"}, Expression: "has(args.force) &&\nargs.force == true\n",
			},
			Edits: []tool.Edit{
				{Argument: "dry_run", Value: json.RawMessage("true")},
				{Argument: "deep", Value: json.RawMessage(`{"list":[1,2.50,null,"text"],"none":{}}`)},
			},
		},
		{ID: "ask", Effect: tool.AskInput, Disabled: true, Input: &tool.InputRequest{Argument: "ticket", Prompt: "Which one?"}},
	}}
	version := mustNew(t, want).Version()
	for name, text := range map[string]string{"p.yaml": wholeYAML, "p.json": wholeJSON} {
		p, err := Load(writeFile(t, text))
		if err != nil {
			t.Fatal(err)
		}
		if p.Version() != version {
			t.Errorf("%s is another policy than the same in Go", name)
		}
		c, err := Parse(name, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		for i := range c.Rules { // the version does not depend on disabled rules
			c.Rules[i].at, want.Rules[i].Disabled, c.Rules[i].Disabled = nil, false, false
		}
		if mustNew(t, c).Version() != mustNew(t, want).Version() {
			t.Errorf("%s: %+v", name, c)
		}
		want.Rules[1].Disabled = true
	}
}

func TestP6_FileErrorsHaveLineAndColumn(t *testing.T) {
	const head = "version: 1\nrules:\n"
	for _, tc := range []struct{ name, text, want string }{
		{"nothing", "", "f:1:1: the file is empty"},
		{"a comment only", "# hello\n", "f:1:1: the file is empty"},
		{"no version", "rules: []\n", "f:1:1: policy: the field version is missing"},
		{"a newer version", "version: 2\n", "f:1:10: version: this program supports only version 1"},
		{"an unknown field", "version: 1\nrule: []\n", `f:2:1: policy: unknown field "rule"`},
		{"no list of rules", "version: 1\nrules: {}\n", "f:2:8: rules: want a list, have a mapping"},
		{"an unknown default", "version: 1\ndefault: maybe\n", `f:2:10: default: unknown default "maybe"`},
		{"an unknown field of a rule", head + "  - id: a\n    effect: deny\n    prioriti: 1\n", `f:5:5: rule: unknown field "prioriti"`},
		{"an unknown condition", head + "  - id: a\n    effect: deny\n    when: {tols: x}\n", `f:5:12: when: unknown field "tols"`},
		{"an unknown annotation", head + "  - id: a\n    effect: deny\n    when:\n      annotations:\n        readonly: true\n", `f:7:9: annotations: unknown field "readonly"`},
		{"a text for a number", head + "  - id: a\n    effect: deny\n    priority: high\n", "f:5:15: priority: want a number, have a text"},
		{"a number with a fraction", head + "  - id: a\n    effect: deny\n    priority: 1.5\n", "f:5:15: priority: want a whole number"},
		{"a number for a text", head + "  - id: 7\n    effect: deny\n", "f:3:9: id: want a text, have a number"},
		{"a text for a yes or no", head + "  - id: a\n    effect: deny\n    enabled: no\n", "f:5:14: enabled: want true or false, have a text"},
		{"an empty list", head + "  - id: a\n    effect: deny\n    when: {tool: []}\n", "f:5:18: tool: the list is empty"},
		{"no conditions", head + "  - id: a\n    effect: deny\n    when: {}\n", "f:5:11: when: the mapping is empty"},
		{"no metadata", head + "  - id: a\n    effect: allow\n    when: {metadata: {}}\n", "f:5:22: metadata: the mapping is empty"},
		{"no annotations", head + "  - id: a\n    effect: allow\n    when:\n      annotations: {}\n", "f:6:20: annotations: the mapping is empty"},
		{"an empty expression", head + "  - id: a\n    effect: deny\n    when: {expression: ''}\n", "expression: the expression is empty"},
		{"a key twice", head + "  - id: a\n    id: b\n", `f:4:5: mapping key "id" already defined`},
		{"an anchor", head + "  - &x {id: a, effect: deny}\n", "f:3:5: anchors, aliases"},
		{"an alias", "version: 1\nrules: *x\n", "f:2:8: "},
		{"a merge", head + "  - <<: {id: a}\n    effect: deny\n", "f:3:5: anchors, aliases, tags and merge keys"},
		{"a tag", head + "  - id: !!str a\n", "f:3:9: anchors, aliases, tags"},
		{"two documents", "version: 1\n---\nversion: 1\n", "f:2:1: a second document"},
		{"wrong indentation", "version: 1\nrules:\n  - id: a\n   effect: deny\n", "f:4:"},
		{"a hexadecimal number", head + "  - id: a\n    effect: allow\n    edits: {x: 0x10}\n", "f:5:16: write the number 0x10 as in JSON"},
		{"an infinity", head + "  - id: a\n    effect: allow\n    edits: {x: .inf}\n", "f:5:16: "},
		{"a number for a name", head + "  - id: a\n    effect: allow\n    edits: {1: x}\n", "f:5:13: a field name must be a text"},
		{"not UTF-8", "version: 1\n# \xff\n", "f:2:3: the text is not UTF-8"},
		{"much nesting", "version: 1\nrules: " + strings.Repeat("[", 100_000), "nested more than"},
		{"much nesting of mappings, by lines", staircase("a:", 1000), "nested more than"},
		{"much nesting of lists, by lines", staircase("-", 1000), "nested more than"},
		{"much nesting of entries", strings.Repeat("- ", 100_000), "nested more than"},
		{"JSON that is cut", "{\"version\": 1,\n \"rules\": [", "f:2:12: "},
		{"JSON with more", "{\"version\": 1}\n {}", "f:2:2: "},
		{"JSON with an unknown field", "{\"version\": 1,\n  \"rulez\": []}", `f:2:3: policy: unknown field "rulez"`},
		{"JSON with a key twice", "{\"version\": 1,\n  \"version\": 1}", `f:2:3: policy: duplicate field "version"`},
		{"JSON with much nesting", `{"version":1,"rules":` + strings.Repeat("[", 9000), "nested more than"},

		// Errors of rules have positions too.
		{"an unknown effect", head + "  - id: a\n    effect: maybe\n", `f:4:13: rule "a": effect: unknown effect "maybe"`},
		{"no effect", head + "  - id: a\n", `f:3:5: rule "a": effect: the effect is missing`},
		{"a glob", head + "  - id: a\n    effect: deny\n    when:\n      tool: [a, 'b[']\n", `f:6:13: rule "a": when.tool: glob "b["`},
		{"an expression", head + "  - id: a\n    effect: deny\n    when:\n      expression: argz.x == 1\n", `f:6:19: rule "a": when.expression: 1:1: undeclared reference to 'argz'`},
		{"an expression in a block", head + "  - id: a\n    effect: deny\n    when:\n      expression: |\n        true &&\n        argz.x == 1\n", `rule "a": when.expression: 2:1: undeclared reference`},
		{"an expression of JSON", "{\"version\": 1, \"rules\": [\n {\"id\": \"a\", \"effect\": \"deny\", \"when\": {\"expression\": \"size(text)\"}}]}", `f:2:55: rule "a": when.expression: the expression has the type int`},
		{"an id twice", head + "  - {id: a, effect: deny}\n  - {id: a, effect: deny}\n", `f:4:10: rule "a": id: rule 1 already has this id`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, err := Parse("f", []byte(tc.text))
			if err == nil {
				_, err = New(c)
			}
			if err == nil || !errors.Is(err, ErrRule) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v; want %s", err, tc.want)
			}
		})
	}
	if _, err := Load(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
	if _, err := Parse("f", bytes.Repeat([]byte("#"), maxFile+1)); err == nil {
		t.Error("a file has no bound")
	}
}

// All errors are reported at once, so that a file can be fixed in one pass: syntax errors,
// invalid rules and invalid expressions.
// staircase returns n lines, each indented further than the one before.
func staircase(text string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%*s%s\n", i, "", text)
	}
	return b.String()
}

// names returns n lines of a mapping at an indentation.
func names(n, indent int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%*sk%d: v\n", indent, "", i)
	}
	return b.String()
}

// Parsing YAML takes four times as long for twice as many names in a mapping, and a stack
// frame for each.
func TestP6_HugeMappingIsRefusedBeforeParsing(t *testing.T) {
	const most = 2000
	const rule = "- id: r%d\n  effect: deny\n  when:\n    metadata:\n"
	file := func(rules, members int) string {
		var b strings.Builder
		b.WriteString("version: 1\nrules:\n")
		for i := range rules {
			fmt.Fprintf(&b, rule, i)
			b.WriteString(names(members, 6))
		}
		return b.String()
	}
	if c, err := Parse("p.yaml", []byte(file(2, most))); err != nil || len(c.Rules[1].When.Metadata) != most {
		t.Errorf("as many as may be, twice: %v", err)
	}
	if c, err := Parse("p.yaml", []byte(file(most+1, 1))); err != nil || len(c.Rules) != most+1 {
		t.Errorf("many mappings of few names: %v", err)
	}
	_, err := Parse("p.yaml", []byte(file(1, most+1)))
	if err == nil || err.Error() != fmt.Sprintf("p.yaml:%d:7: a mapping has more than 2000 fields: write the file as JSON", 6+most+1) {
		t.Errorf("one too many: %v", err)
	}
	began := time.Now()
	if _, err = Parse("p.yaml", []byte("version: 1\n"+names(maxFile/12, 0))); err == nil || time.Since(began) > 5*time.Minute {
		t.Errorf("as many as a file can hold, after %v: %v", time.Since(began), err)
	}
	flow := "version: 1\nrules: [{id: a, effect: deny, when: {metadata: {" + strings.ReplaceAll(names(most+1, 0), "\n", ", ") + "}}}]\n"
	if c, err := Parse("p.yaml", []byte(flow)); err != nil || len(c.Rules[0].When.Metadata) != most+1 {
		t.Errorf("in braces, which are read in a row: %v", err)
	}
}

func TestP6_AllErrorsOfAFileAreReported(t *testing.T) {
	const text = `version: 3
default: x
rules:
  - id: 1
    foo: 2
  - id: expression
    effect: deny
    when:
      expression: argz.x == 1
  - id: expression
    effect: perhaps
    priority: high
    when: {tool: 'a[', tags: &anchor [x]}
  - id: edits
    effect: allow
    edits: {x: 0x10, 1: y}
  - effect: deny
    when:
      expression: size(text)
`
	want := []string{
		"f:1:10: version: this program supports only version 1",
		`f:2:10: default: unknown default "x"`,
		"f:4:5: rule 1: effect: the effect is missing",
		"f:4:9: id: want a text, have a number",
		`f:5:5: rule: unknown field "foo"`,
		`f:9:19: rule "expression": when.expression: 1:1: undeclared reference to 'argz'`,
		`f:10:9: rule "expression": id: rule 2 already has this id`,
		`f:11:13: rule "expression": effect: unknown effect "perhaps"`,
		"f:12:15: priority: want a number, have a text",
		`f:13:18: rule "expression": when.tool: glob "a["`,
		"f:13:30: anchors, aliases, tags and merge keys",
		"f:16:16: write the number 0x10 as in JSON",
		"f:16:22: a field name must be a text",
		"f:17:5: rule 5: id: the id is missing",
		"f:19:19: rule 5: when.expression: the expression has the type int, want bool",
	}
	file := writeFile(t, text)
	_, loaded := Load(file)
	_, parsed := Parse("f", []byte(text))
	for how, err := range map[string]error{"Load": loaded, "Parse": parsed} {
		if err == nil || !errors.Is(err, ErrRule) {
			t.Fatalf("%s: %v", how, err)
		}
		lines := strings.Split(strings.ReplaceAll(err.Error(), file, "f"), "\n")
		if len(lines) != len(want) {
			t.Errorf("%s says %d things, want %d:\n%v", how, len(lines), len(want), err)
			continue
		}
		for i := range want {
			if !strings.HasPrefix(lines[i], want[i]) {
				t.Errorf("%s says %s\nwant %s", how, lines[i], want[i])
			}
		}
	}
	// If the whole file can be read, the errors of rules are reported together too.
	_, err := Load(writeFile(t, "version: 1\nrules:\n  - {id: a, effect: x}\n  - {id: b, effect: deny, when: {expression: size(text)}}\n"))
	for _, want := range []string{":3:21: ", ":4:"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nwant %s too", err, want)
		}
	}
}

func writeFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "policy")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestP6_ExplanationCoversEveryRule(t *testing.T) {
	c, err := Parse("f", []byte(`version: 1
default: deny
rules:
  - {id: off, effect: deny, priority: 9, enabled: false}
  - {id: models, effect: deny, priority: 8, subjects: [model_call]}
  - {id: other, effect: deny, priority: 7, when: {tool: [x, y.*]}}
  - {id: spaced, effect: deny, priority: 7, when: {namespace: git}}
  - {id: hinted, effect: deny, priority: 6, when: {annotations: {destructive: true}}}
  - {id: tagged, effect: deny, priority: 6, when: {tags: [net]}}
  - {id: agent, effect: deny, priority: 5, when: {agent: boss}}
  - {id: tenant, effect: deny, priority: 5, when: {metadata: {tenant: acme}}}
  - {id: small, effect: deny, priority: 4, when: {expression: args.n > 3}}
  - {id: yes, effect: ask, priority: 3, reason: look at it}
  - {id: also, effect: deny, priority: 2}
  - {id: broken, effect: deny, priority: 1, when: {expression: args.m > 3}}
`))
	if err != nil {
		t.Fatal(err)
	}
	p := mustNew(t, c)
	e := p.Explain(context.Background(), about("t", `{"n":1}`))
	want := `t: ask, by rule yes: look at it
       9  off                      deny   no: enabled: the rule is turned off
       8  models                   deny   no: subjects: the rule does not cover a tool_call
       7  other                    deny   no: when.tool: "t" is not "x" or "y.*"
       7  spaced                   deny   no: when.namespace: "" is not "git"
       6  hinted                   deny   no: when.annotations: the tool does not say whether it is destructive
       6  tagged                   deny   no: when.tags: the tool is not tagged "net"
       5  agent                    deny   no: when.agent: the agent is ""
       5  tenant                   deny   no: when.metadata: there is no "tenant"
       4  small                    deny   no: when.expression: it is false
       3  yes                      ask    matched, and decided
       2  also                     deny   matched
       1  broken                   deny   no: when.expression: it failed: no such key: m
  default deny, policy ` + p.Version() + "\n"
	if got := e.String(); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	b, err := json.Marshal(e)
	if err != nil || !strings.Contains(string(b), `{"rule":"yes","effect":"ask","priority":3,"matched":true,"decided":true}`) {
		t.Errorf("%s, %v", b, err)
	}
	// Explain reports a failing policy as a denial.
	p = mustNew(t, Config{Rules: []Rule{{ID: "x", Effect: tool.Allow, When: When{Expression: `args.m > 3`}}}})
	e = p.Explain(context.Background(), about("t", `{}`))
	if e.Decision.Effect != tool.Deny || !strings.Contains(e.Failed, "no such key") {
		t.Errorf("%+v", e)
	}
	// Without a match, the default decides.
	e = mustNew(t, Config{}).Explain(context.Background(), about("t", `{}`))
	if !strings.HasPrefix(e.String(), "t: allow, by the default (allow)\n") {
		t.Errorf("%s", e)
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		wholeYAML, wholeJSON, "version: 1\nrules:\n  - id: a\n    effect: deny\n", "{\"version\":1}", "- - - a", "a: &x [*x]", "? [a]: b", "<<: {a: b}",
		"version: 1\nrules: [{id: a, effect: allow, edits: {x: {y: [1, 'z', ~]}}}]", "%YAML 1.2\n---\nversion: 1\n...", "a: |\n  b\n c: d", "\ufeffversion: 1", "\t- a", "{a: [}", "\"\\", "version: 1 # x",
	} {
		f.Add([]byte(seed))
	}
	_, editors := fileSchema(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse("f", data)
		if err != nil {
			if !errors.Is(err, ErrRule) || !strings.HasPrefix(err.Error(), "f:") {
				t.Fatalf("an error without its place: %v", err)
			}
			return
		}
		p, err := New(c)
		if err != nil {
			return
		}
		// A file that can be parsed matches the schema.
		if err := editors.Validate(asJSON(t, string(data))); err != nil {
			t.Fatalf("the schema refuses what the program takes: %v", err)
		}
		// A parsed policy can be queried, and the order of its rules does not matter.
		for i, j := 0, len(c.Rules)-1; i < j; i, j = i+1, j-1 {
			c.Rules[i], c.Rules[j] = c.Rules[j], c.Rules[i]
		}
		q := mustNew(t, c)
		if p.Version() != q.Version() {
			t.Fatal("the order of rules changes the version")
		}
		for _, r := range c.Rules {
			for _, e := range r.Edits {
				if !json.Valid(e.Value) {
					t.Fatalf("an edit with %q", e.Value)
				}
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*1e9)
		defer cancel()
		_, _ = p.Decide(ctx, about("t", `{"n":1}`))
	})
}
