package policy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/testkit/toolopt"
	"github.com/dragoman-go/dragoman/tool"
)

// about returns a question about a bare tool with arguments.
func about(name, args string) *tool.Question {
	spec := &dragoman.ToolSpec{Name: name}
	return &tool.Question{
		Subject: codes.SubjectToolCall, Key: tool.KeyOf(spec), Spec: spec, Settings: &tool.Settings{},
		Input: tool.Input{Arguments: json.RawMessage(args)}, Run: "run", Turn: 1, CallID: "call",
	}
}

// with returns a changed copy of a question.
func with(q *tool.Question, change func(*tool.Question)) *tool.Question {
	change(q)
	return q
}

func spaced(namespace, name string) *tool.Question {
	return with(about(name, `{}`), func(q *tool.Question) {
		q.Spec.Namespace = namespace
		q.Key = tool.KeyOf(q.Spec)
	})
}

func TestP1_Conditions(t *testing.T) {
	hinted := func(readOnly, destructive *bool) *tool.Question {
		return with(about("t", `{}`), func(q *tool.Question) {
			q.Spec.Annotations.ReadOnly, q.Spec.Annotations.Destructive = readOnly, destructive
		})
	}
	tagged := with(about("t", `{}`), func(q *tool.Question) { q.Settings.Tags = []string{"net", "slow"} })
	agents := func(path ...string) *tool.Question {
		return with(about("t", `{}`), func(q *tool.Question) { q.Agent = path })
	}
	tenant := func(m map[string]string) *tool.Question {
		return with(about("t", `{}`), func(q *tool.Question) { q.Metadata = m })
	}
	for _, tc := range []struct {
		name string
		when When
		q    *tool.Question
		want bool
	}{
		{"no condition", When{}, about("t", `{}`), true},
		{"the tool's name", When{Tools: []string{"t"}}, about("t", `{}`), true},
		{"another name", When{Tools: []string{"t"}}, about("tt", `{}`), false},
		{"one of several names", When{Tools: []string{"x", "t*"}}, about("tt", `{}`), true},
		{"a bare name does not name a tool in a namespace", When{Tools: []string{"delete"}}, spaced("git", "delete"), false},
		{"a glob over a namespace", When{Tools: []string{"git.*"}}, spaced("git", "delete"), true},
		{"a glob at the front", When{Tools: []string{"*.delete"}}, spaced("git", "delete"), true},
		{"a glob of one character", When{Tools: []string{"git.r?n"}}, spaced("git", "run"), true},
		{"a glob of one character more", When{Tools: []string{"git.run?"}}, spaced("git", "run"), false},
		{"a deferred tool by its name", When{Tools: []string{"t"}}, with(about("t", `{}`), func(q *tool.Question) { q.Key = toolopt.Deferred("t") }), true},
		{"no tool at all", When{Tools: []string{"*"}}, &tool.Question{Subject: codes.SubjectModelCall}, false},
		{"a namespace", When{Namespaces: []string{"git"}}, spaced("git", "x"), true},
		{"another namespace", When{Namespaces: []string{"git"}}, spaced("gitx", "x"), false},
		{"no namespace", When{Namespaces: []string{"git"}}, about("git", `{}`), false},
		{"a hint that is as wanted", When{ReadOnly: new(true)}, hinted(new(true), nil), true},
		{"a hint that is not", When{ReadOnly: new(true)}, hinted(new(false), nil), false},
		{"an unknown hint is not true", When{ReadOnly: new(true)}, hinted(nil, nil), false},
		{"an unknown hint is not false", When{ReadOnly: new(false)}, hinted(nil, nil), false},
		{"a hint that repeating it is safe", When{Idempotent: new(true)}, with(about("t", `{}`), func(q *tool.Question) { q.Spec.Annotations.Idempotent = new(true) }), true},
		{"no such hint", When{Idempotent: new(true)}, hinted(new(true), nil), false},
		{"a hint that it stays inside", When{OpenWorld: new(false)}, with(about("t", `{}`), func(q *tool.Question) { q.Spec.Annotations.OpenWorld = new(false) }), true},
		{"a hint that it does not", When{OpenWorld: new(false)}, with(about("t", `{}`), func(q *tool.Question) { q.Spec.Annotations.OpenWorld = new(true) }), false},
		{"both hints must fit", When{ReadOnly: new(true), Destructive: new(false)}, hinted(new(true), nil), false},
		{"one of the tags", When{Tags: []string{"x", "slow"}}, tagged, true},
		{"none of the tags", When{Tags: []string{"x"}}, tagged, false},
		{"the agent that calls", When{Agents: []string{"helper"}}, agents("main", "helper"), true},
		{"not the agent above", When{Agents: []string{"main"}}, agents("main", "helper"), false},
		{"the path of agents", When{Agents: []string{"main/*"}}, agents("main", "helper"), true},
		{"a slash in a name is not a path", When{Agents: []string{"main/helper"}}, agents("main/helper"), false},
		{"no agent", When{Agents: []string{"*"}}, agents(), false},
		{"metadata", When{Metadata: map[string]string{"a": "1"}}, tenant(map[string]string{"a": "1", "b": "2"}), true},
		{"other metadata", When{Metadata: map[string]string{"a": "1"}}, tenant(map[string]string{"a": "2"}), false},
		{"missing metadata is not empty", When{Metadata: map[string]string{"a": ""}}, tenant(nil), false},
		{"the context", When{Expression: `run == "run" && turn == 1`}, about("t", `{}`), true},
		{"another context", When{Expression: `run == "other"`}, about("t", `{}`), false},
		{"an expression", When{Expression: `args.n > 3`}, about("t", `{"n":4}`), true},
		{"a false expression", When{Expression: `args.n > 3`}, about("t", `{"n":3}`), false},
		{"name and expression", When{Tools: []string{"u"}, Expression: `true`}, about("t", `{}`), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := mustNew(t, Config{Rules: []Rule{{ID: "r", Effect: tool.Deny, When: tc.when}}})
			d, err := p.Decide(context.Background(), tc.q)
			if err != nil || (d.Rule == "r") != tc.want {
				t.Errorf("decided %+v, %v; want a match: %t", d, err, tc.want)
			}
		})
	}
}

func TestP1_ExpressionVariables(t *testing.T) {
	q := spaced("git", "push")
	q.Settings.Tags, q.Settings.Source = []string{"vcs"}, codes.FromMCP
	q.Agent, q.Metadata, q.Run, q.Turn = []string{"main", "coder"}, map[string]string{"tenant": "acme"}, "run-7", 3
	q.Input = tool.Input{Arguments: json.RawMessage(`{"a":{"b":[1,2.5,"x",null,true]},"big":18446744073709551615}`), Text: "free"}
	for _, source := range []string{
		`tool == "git.push" && ns == "git" && subject == "tool_call" && source == "mcp"`,
		`tags == ["vcs"] && agent == "coder" && agents == ["main", "coder"] && run == "run-7" && turn == 3`,
		`metadata.tenant == "acme" && !has(metadata.other) && text == "free"`,
		`args.a.b == [1, 2.5, "x", null, true]`,
		`args.a.b[0] == 1 && args.a.b[1] > 2 && size(args.a.b) == 5`,
		`args.big == 18446744073709551615u && args.big > 9223372036854775807`,
		`!has(args.x) && !has(args.a.c) && args.?x.orValue("none") == "none"`,
		`args.a.b.exists(v, v == "x") && args.map(k, k).size() == 2`,
		`"A,B".lowerAscii().split(",") == ["a", "b"] && sets.contains([1, 2], [2])`,
		`cel.bind(n, args.a.b[0], n + n == 2)`,
		`"a" in args && !("x" in args) && args["a"].b[0] == 1 && size(args) == 2`,
		`args == {"a": {"b": [1, 2.5, "x", null, true]}, "big": 18446744073709551615u} && {"a": 1} != args`,
		`type(args) == map && args.all(k, k in ["a", "big"]) && dyn(args) != [1]`,
	} {
		p := mustNew(t, Config{Rules: []Rule{{ID: "r", Effect: tool.Deny, When: When{Expression: source}}}})
		if d, err := p.Decide(context.Background(), q); err != nil || d.Rule != "r" {
			t.Errorf("%s: %+v, %v", source, d, err)
		}
	}
}

// Rounded, 2^53+1 would be 2^53: the rule would decide on a different call from the one that
// runs.
func TestP1_NumbersInExpressionsAreExactOrRefused(t *testing.T) {
	for _, tc := range []struct{ args, source, fails string }{
		{`{"n":9007199254740993}`, `args.n == 9007199254740993 && args.n != 9007199254740992`, ""},
		{`{"n":-9223372036854775808}`, `args.n == -9223372036854775808`, ""},
		{`{"n":9223372036854775808}`, `args.n == 9223372036854775808u`, ""},
		{`{"n":1e3}`, `args.n == 1000`, ""},
		{`{"n":0.1}`, `args.n == 0.1`, ""},
		{`{"n":1e22}`, `args.n == 1e22`, ""},
		{`{"n":1e16}`, `args.n == 10000000000000000 && args.n != 10000000000000001 && args.n < 10000000000000001`, ""},
		{`{"n":1.8e19}`, `args.n == 18000000000000000000u && args.n != 18000000000000000001u`, ""},
		{`{"n":9007199254740993,"m":9007199254740992.0}`, `args.n != args.m && args.n > args.m`, ""},
		{`{"n":-9223372036854775808.0}`, `args.n == -9223372036854775808`, ""},
		{`{"n":9223372036854775807,"m":9223372036854775808.0}`, `args.n < args.m`, ""},
		{`{"n":18446744073709551615}`, `args.n < 1e22 && args.n > 4503599627370495.5`, ""},
		{`{"n":18446744073709551616.0}`, `args.n > 0`, "more than 64 bits"},
		{`{"n":1` + strings.Repeat("0", 300) + strings.Repeat("0", 200) + `e-300}`, `args.n > 0`, "no exact double"},
		{`{"n":18446744073709551616}`, `args.n > 0`, "more than 64 bits"},
		{`{"n":-9223372036854775809}`, `args.n < 0`, "more than 64 bits"},
		{`{"n":9007199254740993.0}`, `args.n > 0`, "no exact double"},
		{`{"n":1e400}`, `args.n > 0`, "too large for a double"},
		{`{"n":1e-400}`, `args.n > 0`, "too small"},
		{`{"n":1,"deep":[{"m":1e999}]}`, `args.n > 0 && size(args) == 2`, ""}, // short-circuit: it does not read the number
		{`{"n":1,"deep":[{"m":1e999}]}`, `args.deep.size() == 1`, "too large for a double"},
		{`{"n":1,"deep":[{"m":1e999}]}`, `args["deep"] != null`, "too large for a double"},
		{`{"n":1,"deep":[{"m":1e999}]}`, `args.exists(k, k == "n")`, "too large for a double"},
		{`{"n":1,"deep":[{"m":1e999}]}`, `args != {}`, "too large for a double"},
		{`{"n":1e400}`, `args.n > 0 || true`, "too large for a double"}, // CEL alone would return true
		{`{"n":1,"n":2}`, `args.n > 0`, "duplicate field"},
		{"{\"n\":\"\xff\"}", `args.n == ""`, "UTF-8"},
		{`{"n":1e400}`, `tool == "t"`, ""}, // it reads no arguments
	} {
		p := mustNew(t, Config{Rules: []Rule{{ID: "r", Effect: tool.Allow, When: When{Expression: tc.source}}}})
		d, err := p.Decide(context.Background(), about("t", tc.args))
		switch {
		case tc.fails == "" && (err != nil || d.Rule != "r"):
			t.Errorf("%s on %s: %+v, %v", tc.source, tc.args, d, err)
		case tc.fails != "" && (err == nil || !strings.Contains(err.Error(), tc.fails)):
			t.Errorf("%s on %s: %+v, %v; want an error about %q", tc.source, tc.args, d, err, tc.fails)
		}
	}
}

// JSON has one kind of number, CEL has three. A rule must match a call even if its author
// wrote 1 and the model 1.0.
func TestP1_NumbersCompareByValue(t *testing.T) {
	forms := []string{"2", "2.0", "2e0", "20e-1", "0.2e1"}
	for _, n := range forms {
		for _, source := range []string{
			`args.n == 2`, `args.n == 2.0`, `args.n == 2u`, `2 == args.n`, `2.0 == args.n`, `!(args.n != 2)`, `!(args.n != 2.0)`,
			`args.n > 1`, `args.n > 1.5`, `args.n > 1u`, `args.n >= 2`, `args.n >= 2.0`, `args.n < 2.5`, `args.n < 3`, `args.n <= 2u`, `1.5 < args.n`, `3 > args.n`,
			`args.n in [1, 2]`, `args.n in [1.0, 2.0]`, `args.n in {2: "x"}`, `{2: true}[args.n]`, `[false, false, true][args.n]`,
			`args.l == [1, 2, 3]`, `args.l == [1.0, 2.0, 3.0]`, `args.l.exists(v, v == 2)`, `args.l.exists(v, v > 1.5 && v < 2.5)`, `2 in args.l`, `2.0 in args.l`,
			`sets.contains(args.l, [2])`, `sets.contains([2.0, 4], [args.n])`, `sets.intersects(args.l, [2u])`,
			`args.o == {"n": 2}`, `args.o == {"n": 2.0}`, `args.o.n == args.n && args.o.n == args.l[1]`,
			`args == {"n": 2, "l": [1, 2, 3], "o": {"n": 2}}`, `args.?n.orValue(0) == 2`, `int(args.n) + 1 == 3`, `double(args.n) / 4.0 == 0.5`,
			`args.n == 2 ? true : false`, `!(args.n < 2) && !(args.n > 2.0)`, `dyn(2.0) == args.n`, `args.n > turn`, `turn > 0.5 && turn < 1.5 && args.n > turn`, `args.n != "2"`,
		} {
			p := mustNew(t, Config{Rules: []Rule{{ID: "r", Effect: tool.Deny, When: When{Expression: source}}}})
			q := about("t", fmt.Sprintf(`{"n":%s,"l":[1,%s,3.0],"o":{"n":%s}}`, n, n, n))
			if d, err := p.Decide(context.Background(), q); err != nil || d.Rule != "r" {
				t.Errorf("%s where n is %s: %+v, %v", source, n, d, err)
			}
		}
	}
}

func TestP2_HighestPriorityThenFirstIDDecides(t *testing.T) {
	p := mustNew(t, Config{Rules: []Rule{
		{ID: "low", Effect: tool.Deny, Priority: -1},
		{ID: "b", Effect: tool.Deny, Priority: 5},
		{ID: "off", Effect: tool.Deny, Priority: 100, Disabled: true},
		{ID: "elsewhere", Effect: tool.Deny, Priority: 50, When: When{Tools: []string{"x"}}},
		{ID: "a", Effect: tool.Ask, Priority: 5, Reason: "why"},
	}})
	d, err := p.Decide(context.Background(), about("t", `{}`))
	want := tool.Decision{Effect: tool.Ask, Rule: "a", Reason: "why", Matches: []string{"a", "b", "low"}}
	if err != nil || !reflect.DeepEqual(d, want) {
		t.Errorf("%+v, %v; want %+v", d, err, want)
	}
}

// A rule that is indexed in several places is one rule.
func TestP2_MatchIsReportedOnce(t *testing.T) {
	q := spaced("git", "push")
	q.Settings.Tags = []string{"net", "slow", "net"}
	p := mustNew(t, Config{Rules: []Rule{
		{ID: "tags", Effect: tool.Deny, When: When{Tags: []string{"net", "slow"}}},
		{ID: "names", Effect: tool.Deny, When: When{Tools: []string{"git.push", "git.push"}}},
		{ID: "spaces", Effect: tool.Deny, When: When{Namespaces: []string{"git", "git"}}},
	}})
	if d, err := p.Decide(context.Background(), q); err != nil || fmt.Sprint(d.Matches) != "[names spaces tags]" {
		t.Errorf("%v, %v", d.Matches, err)
	}
}

// An approval covers one version of a policy, so every change that can change a decision
// changes the version.
func TestP2_VersionDependsOnEveryField(t *testing.T) {
	base := Rule{ID: "r", Effect: tool.AskInput, Input: &tool.InputRequest{Argument: "x"}}
	versions := map[string]string{mustNew(t, Config{Rules: []Rule{base}}).Version(): "the rule itself"}
	see := func(name string, c Config) {
		v := mustNew(t, c).Version()
		if before, twice := versions[v]; twice {
			t.Errorf("%s has the version of %s", name, before)
		}
		versions[v] = name
	}
	for name, change := range map[string]func(*Rule){
		"another id": func(r *Rule) { r.ID = "s" }, "another effect": func(r *Rule) { r.Effect, r.Input = tool.Ask, nil },
		"a priority": func(r *Rule) { r.Priority = 1 }, "disabled": func(r *Rule) { r.Disabled = true },
		"a subject": func(r *Rule) { r.Subjects = []string{codes.SubjectToolCall, codes.SubjectHandoff} }, "a reason": func(r *Rule) { r.Reason = "x" },
		"a tool": func(r *Rule) { r.When.Tools = []string{"x"} }, "a namespace": func(r *Rule) { r.When.Namespaces = []string{"x"} },
		"a tag": func(r *Rule) { r.When.Tags = []string{"x"} }, "an agent": func(r *Rule) { r.When.Agents = []string{"x"} },
		"two tools": func(r *Rule) { r.When.Tools = []string{"x", "y"} },
		"read only": func(r *Rule) { r.When.ReadOnly = new(true) }, "not read only": func(r *Rule) { r.When.ReadOnly = new(false) },
		"destructive": func(r *Rule) { r.When.Destructive = new(true) }, "idempotent": func(r *Rule) { r.When.Idempotent = new(true) },
		"open world": func(r *Rule) { r.When.OpenWorld = new(true) }, "metadata": func(r *Rule) { r.When.Metadata = map[string]string{"x": "y"} },
		"other metadata": func(r *Rule) { r.When.Metadata = map[string]string{"x": "z"} }, "an expression": func(r *Rule) { r.When.Expression = "true" },
		"an edit": func(r *Rule) { r.Edits = []tool.Edit{{Argument: "x", Value: []byte("1")}} }, "another edit": func(r *Rule) { r.Edits = []tool.Edit{{Argument: "x", Value: []byte("2")}} },
		"another input": func(r *Rule) { r.Input = &tool.InputRequest{Argument: "y"} }, "a prompt": func(r *Rule) { r.Input = &tool.InputRequest{Argument: "x", Prompt: "y"} },
	} {
		r := base
		change(&r)
		see(name, Config{Rules: []Rule{r}})
	}
	see("another default", Config{Rules: []Rule{base}, Default: defaultDeny})
	see("another limit", Config{Rules: []Rule{base}, CostLimit: 7})
	see("another rule", Config{Rules: []Rule{base, {ID: "s", Effect: tool.Allow}}})
}

func TestP2_DefaultDecidesWithoutAMatch(t *testing.T) {
	hinted := func(source string, readOnly, destructive *bool) *tool.Question {
		return with(about("t", `{}`), func(q *tool.Question) {
			q.Settings.Source = source
			q.Spec.Annotations.ReadOnly, q.Spec.Annotations.Destructive = readOnly, destructive
		})
	}
	for _, tc := range []struct {
		fallback string
		q        *tool.Question
		want     tool.Effect
	}{
		{defaultAllow, about("t", `{}`), tool.Allow},
		{defaultDeny, about("t", `{}`), tool.Deny},
		{defaultAsk, about("t", `{}`), tool.Ask},
		{defaultAskDestructive, hinted("", nil, nil), tool.Ask}, // not known to be harmless
		{defaultAskDestructive, hinted("", new(false), nil), tool.Ask},
		{defaultAskDestructive, hinted("", new(true), nil), tool.Allow},
		{defaultAskDestructive, hinted("", nil, new(false)), tool.Allow},
		{defaultAskDestructive, hinted("", new(true), new(true)), tool.Ask},
		{defaultAskDestructive, hinted(codes.FromMCP, new(true), new(false)), tool.Ask}, // only its own claim
		{defaultAskDestructive, &tool.Question{Subject: codes.SubjectModelCall}, tool.Allow},
	} {
		d, err := mustNew(t, Config{Default: tc.fallback}).Decide(context.Background(), tc.q)
		if err != nil || d.Effect != tc.want || d.Rule != "" {
			t.Errorf("%s: %+v, %v; want %s", tc.fallback, d, err, tc.want)
		}
	}
}

func TestP1_RulesApplyToTheirSubjects(t *testing.T) {
	p := mustNew(t, Config{Rules: []Rule{
		{ID: "calls", Effect: tool.Deny, Subjects: []string{codes.SubjectToolCall}},
		{ID: "models", Effect: tool.Deny, Subjects: []string{codes.SubjectModelCall, codes.SubjectHandoff}},
		{ID: "any", Effect: tool.Deny, Subjects: []string{anySubject}},
		{ID: "plain", Effect: tool.Deny},
	}})
	for subject, want := range map[string]string{
		codes.SubjectToolCall: "[any calls plain]", codes.SubjectModelCall: "[any models plain]", codes.SubjectHandoff: "[any models plain]",
	} {
		d, err := p.Decide(context.Background(), &tool.Question{Subject: subject})
		if err != nil || fmt.Sprint(d.Matches) != want {
			t.Errorf("%s: %v, %v; want %s", subject, d.Matches, err, want)
		}
	}
}

func TestP1_InvalidRulesAreRefusedByNew(t *testing.T) {
	for _, tc := range []struct {
		name string
		rule Rule
		want string
	}{
		{"no id", Rule{Effect: tool.Deny}, "rule 1: id: the id is missing"},
		{"an id that forges a line", Rule{ID: "a\nb", Effect: tool.Deny}, "printable"},
		{"no effect", Rule{ID: "a"}, "effect: the effect is missing"},
		{"an unknown effect", Rule{ID: "a", Effect: "maybe"}, `unknown effect "maybe"`},
		{"an unknown subject", Rule{ID: "a", Effect: tool.Deny, Subjects: []string{"x"}}, `unknown subject "x"`},
		{"an invalid glob", Rule{ID: "a", Effect: tool.Deny, When: When{Tools: []string{"a[b"}}}, "when.tool: glob"},
		{"an empty glob", Rule{ID: "a", Effect: tool.Deny, When: When{Agents: []string{""}}}, "when.agent: the pattern is empty"},
		{"an empty namespace", Rule{ID: "a", Effect: tool.Deny, When: When{Namespaces: []string{""}}}, "when.namespace"},
		{"an invalid expression", Rule{ID: "a", Effect: tool.Deny, When: When{Expression: "args.x +"}}, "when.expression: 1:9: Syntax error"},
		{"an unknown variable", Rule{ID: "a", Effect: tool.Deny, When: When{Expression: "arg.x == 1"}}, "1:1: undeclared reference to 'arg'"},
		{"no yes or no", Rule{ID: "a", Effect: tool.Deny, When: When{Expression: "size(args)"}}, "the expression has the type int, want bool"},
		{"perhaps a yes or no", Rule{ID: "a", Effect: tool.Deny, When: When{Expression: "args.force"}}, "args.force == true"},
		{"a field that a command has not", Rule{ID: "a", Effect: tool.Deny, When: When{Expression: `"rm" in shell(text).porgrams`}}, "undefined field 'porgrams'"},
		{"a number that rounds others", Rule{ID: "a", Effect: tool.Deny, When: When{Expression: `args.n > 0 &&
args.n < -1e16`}}, "2:10: -1e+16 is beyond the integers that a double holds exactly; write it without a point and an exponent, as -10000000000000000"},
		{"a long expression", Rule{ID: "a", Effect: tool.Deny, When: When{Expression: strings.Repeat("true || ", 5000) + "true"}}, "longer than"},
		{"edits of a denied call", Rule{ID: "a", Effect: tool.Deny, Edits: []tool.Edit{{Argument: "x", Value: []byte("1")}}}, "edits"},
		{"an edit that is not JSON", Rule{ID: "a", Effect: tool.Allow, Edits: []tool.Edit{{Argument: "x", Value: []byte("{")}}}, "not JSON"},
		{"an edit twice", Rule{ID: "a", Effect: tool.Allow, Edits: []tool.Edit{{Argument: "x", Value: []byte("1")}, {Argument: "x", Value: []byte("2")}}}, "two edits"},
		{"input for no argument", Rule{ID: "a", Effect: tool.AskInput}, "input: the effect input needs"},
		{"input without asking", Rule{ID: "a", Effect: tool.Ask, Input: &tool.InputRequest{Argument: "x"}}, "only the effect input"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := New(Config{Rules: []Rule{tc.rule}})
			var at *RuleError
			if !errors.As(err, &at) || !errors.Is(err, ErrRule) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v; want a RuleError with %q", err, tc.want)
			}
		})
	}
	_, err := New(Config{Default: "maybe", Rules: []Rule{{ID: "a", Effect: tool.Deny}, {ID: "a", Effect: "x"}}})
	for _, want := range []string{`unknown default "maybe"`, "rule 1 already has this id", `unknown effect "x"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want all that is wrong, with %q", err, want)
		}
	}
}

func TestP2_ConcurrentDecisionsOfManyToolsAgree(t *testing.T) {
	p := mustNew(t, Config{Rules: append(selecting(60), Rule{ID: "odd", Effect: tool.Deny, When: When{Tags: []string{"odd"}}})})
	done := make(chan error)
	for range 4 {
		go func() {
			for i := range 2 * maxCachedTools {
				q := about(fmt.Sprint("t", i), `{}`)
				if i%2 == 1 {
					q.Settings.Tags = []string{"odd"}
				}
				if d, err := p.Decide(context.Background(), q); err != nil || (d.Rule == "odd") != (i%2 == 1) {
					done <- fmt.Errorf("%d: %+v, %v", i, d, err)
					return
				}
			}
			done <- nil
		}()
	}
	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if len(p.index.cache) > maxCachedTools {
		t.Errorf("%d tools are kept", len(p.index.cache))
	}
}

// A tool whose hints change under the same name is a different tool.
func TestP1_ChangedToolIsJudgedAgain(t *testing.T) {
	p := mustNew(t, Config{Rules: []Rule{{ID: "r", Effect: tool.Deny, When: When{Destructive: new(true)}}}})
	q := about("t", `{}`)
	for _, hint := range []*bool{nil, new(true), new(false), new(true)} {
		q.Spec.Annotations.Destructive = hint
		d, err := p.Decide(context.Background(), q)
		if err != nil || (d.Effect == tool.Deny) != (hint != nil && *hint) {
			t.Errorf("%+v, %v", d, err)
		}
	}
}

func TestP5_FailingExpressionFailsTheDecision(t *testing.T) {
	missing := Rule{ID: "x", Effect: tool.Allow, When: When{Expression: `args.path == "a"`}}
	var failed *expressionError
	d, err := mustNew(t, Config{Rules: []Rule{missing}}).Decide(context.Background(), about("t", `{}`))
	if !errors.As(err, &failed) || failed.Rule != "x" || d.Effect != "" {
		t.Errorf("%+v, %v", d, err)
	}
	// A value of another type is not false.
	if _, err := mustNew(t, Config{Rules: []Rule{missing}}).Decide(context.Background(), about("t", `{"path":1}`)); err != nil {
		t.Errorf("values of two types are unequal, not an error: %v", err)
	}
	greater := Rule{ID: "x", Effect: tool.Deny, When: When{Expression: `args.path > 3`}}
	if _, err := mustNew(t, Config{Rules: []Rule{greater}}).Decide(context.Background(), about("t", `{"path":"a"}`)); err == nil {
		t.Error("texts and numbers do not compare")
	}
	// A rule that decided before the failing one wins.
	above := Rule{ID: "above", Effect: tool.Ask, Priority: 1}
	d, err = mustNew(t, Config{Rules: []Rule{missing, above}}).Decide(context.Background(), about("t", `{}`))
	if err != nil || d.Rule != "above" || len(d.Matches) != 1 {
		t.Errorf("%+v, %v", d, err)
	}
}

// expensive is an expression whose cost grows with the cube of a list.
const expensive = `args.l.all(a, args.l.all(b, args.l.all(c, a + b + c >= 0)))`

func numbers(n int) string {
	return `{"l":[` + strings.TrimSuffix(strings.Repeat("1,", n), ",") + `]}`
}

func TestP5_ExpressionCostIsLimited(t *testing.T) {
	p := mustNew(t, Config{Rules: []Rule{{ID: "x", Effect: tool.Allow, When: When{Expression: expensive}}}})
	if d, err := p.Decide(context.Background(), about("t", numbers(10))); err != nil || d.Rule != "x" {
		t.Errorf("%+v, %v", d, err)
	}
	if _, err := p.Decide(context.Background(), about("t", numbers(1000))); err == nil || !strings.Contains(err.Error(), "cost limit") {
		t.Errorf("%v; want the limit", err)
	}
	shells := Rule{ID: "x", Effect: tool.Allow, When: When{Expression: `args.l.all(n, shell(args.c).simple)`}}
	p = mustNew(t, Config{Rules: []Rule{shells}})
	args := fmt.Sprintf(`{"c":"echo %s","l":[%s1]}`, strings.Repeat("x", 60_000), strings.Repeat("1,", 10_000))
	if _, err := p.Decide(context.Background(), about("t", args)); err == nil || !strings.Contains(err.Error(), "cost limit") {
		t.Errorf("parsing commands costs nothing: %v", err)
	}
}

func TestP5_ExpressionStopsWithItsContext(t *testing.T) {
	p := mustNew(t, Config{CostLimit: 1 << 60, Rules: []Rule{{ID: "x", Effect: tool.Allow, When: When{Expression: expensive}}}})
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	begun := time.Now()
	if _, err := p.Decide(ctx, about("t", numbers(4000))); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("it went on for %v", took)
	}
}

// If an expression fails, the result of its rule is unknown: a rule that denies must not be
// skipped, and one that allows must not allow.
func TestP5_FailingRuleNeverAllowsACall(t *testing.T) {
	failures := map[string]struct{ source, args string }{
		"a missing argument":         {`args.none > 1`, `{"path":"a"}`},
		"a missing member":           {`args.path.none == 1`, `{"path":"a"}`},
		"texts with numbers":         {`args.path > 1.5`, `{"path":"a"}`},
		"nothing with numbers":       {`args.path == "a" ? dyn(null) > 1 : true`, `{"path":"a"}`},
		"an integer and a double":    {`size(args.path) + dyn(1.5) > 2`, `{"path":"a"}`},
		"a division by zero":         {`1 / (size(args.path) - 1) > 1`, `{"path":"a"}`},
		"an overflow":                {`9223372036854775807 + size(args.path) > 1`, `{"path":"a"}`},
		"an invalid pattern":         {`"x".matches(args.path)`, `{"path":"("}`},
		"a list that ends":           {`[1][size(args.path)] == 1`, `{"path":"a"}`},
		"a conversion":               {`int(args.path) == 1`, `{"path":"a"}`},
		"an error in an all":         {`[1].all(x, args.none == x)`, `{"path":"a"}`},
		"an error in an exists":      {`[1].exists(x, args.none == x)`, `{"path":"a"}`},
		"an error or false":          {`args.none == 1 || false`, `{"path":"a"}`},
		"true and an error":          {`true && args.none == 1`, `{"path":"a"}`},
		"a cost above the limit":     {`[1,2,3,4,5,6,7,8,9].all(a, [1,2,3,4,5,6,7,8,9].all(b, [1,2,3,4,5,6,7,8,9].all(c, a + b + c > 0)))`, `{"path":"a"}`},
		"an empty optional":          {`args.?none.value() == 1`, `{"path":"a"}`},
		"a duplicate of an argument": {`args.path == "a"`, `{"path":"a","path":"b"}`},
	}
	for name, f := range failures {
		for _, effect := range []tool.Effect{tool.Allow, tool.Deny, tool.Ask, tool.AskInput} {
			for _, fallback := range []string{defaultAllow, defaultAsk, defaultDeny, defaultAskDestructive} {
				r := Rule{ID: "fails", Effect: effect, When: When{Expression: f.source}}
				if effect == tool.AskInput {
					r.Input = &tool.InputRequest{Argument: "ticket"}
				}
				below := Rule{ID: "below", Effect: tool.Allow, Priority: -1}
				p := mustNew(t, Config{CostLimit: 2000, Default: fallback, Rules: []Rule{r, below}})
				d, err := p.Decide(context.Background(), about("t", f.args))
				var failed *expressionError
				if !errors.As(err, &failed) || failed.Rule != "fails" || d.Effect != "" {
					t.Errorf("%s, %s, default %s: %+v, %v", name, effect, fallback, d, err)
				}
				if e := p.Explain(context.Background(), about("t", f.args)); e.Decision.Effect != tool.Deny || e.Failed == "" {
					t.Errorf("%s, %s: explained as %+v", name, effect, e.Decision)
				}
			}
		}
	}
	for _, effect := range []tool.Effect{tool.Allow, tool.Deny, tool.Ask} {
		w := newFixture(t, mustNew(t, Config{Rules: []Rule{{ID: "r", Effect: effect, When: When{Expression: `args.path > 1.5`}}}}))
		if r := w.do(`{"path":"a"}`); w.ran != 0 || r.ErrorKind != tool.ErrorDenied || r.Executed {
			t.Errorf("%s: ran %d times, %+v", effect, w.ran, r)
		}
	}
}

// policyFunc is a policy that misbehaves.
type policyFunc func(ctx context.Context, q *tool.Question) (tool.Decision, error)

func (f policyFunc) Decide(ctx context.Context, q *tool.Question) (tool.Decision, error) {
	return f(ctx, q)
}
func (policyFunc) Version() string { return "1" }

func TestP5_MisbehavingPolicyDenies(t *testing.T) {
	for name, f := range map[string]policyFunc{
		"fails": func(context.Context, *tool.Question) (tool.Decision, error) {
			return tool.Decision{Effect: tool.Allow}, errors.New("no")
		},
		"panics":         func(context.Context, *tool.Question) (tool.Decision, error) { panic("no") },
		"hangs":          func(context.Context, *tool.Question) (tool.Decision, error) { select {} },
		"no decision":    func(context.Context, *tool.Question) (tool.Decision, error) { return tool.Decision{}, nil },
		"says otherwise": func(context.Context, *tool.Question) (tool.Decision, error) { return tool.Decision{Effect: "yes"}, nil },
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, f)
			w.runner.PolicyTimeout = 10 * time.Millisecond
			r := w.do(`{"path":"a"}`)
			if w.ran != 0 || r.ErrorKind != tool.ErrorDenied {
				t.Errorf("ran %d times, %q", w.ran, r.ErrorKind)
			}
		})
	}
}

func TestP5_FailingExpressionDeniesTheCall(t *testing.T) {
	w := newFixture(t, mustNew(t, Config{Rules: []Rule{{ID: "x", Effect: tool.Allow, When: When{Expression: `args.owner == "me"`}}}}))
	if r := w.do(`{"path":"a"}`); w.ran != 0 || r.ErrorKind != tool.ErrorDenied {
		t.Errorf("ran %d times, %+v", w.ran, r)
	}
}

// fixture is a toolbox with one tool, and a runner.
type fixture struct {
	t      *testing.T
	runner *tool.Runner
	box    *tool.Box
	run    *tool.Run
	events []tool.Event
	ran    int
	with   []string // the paths that the tool was called with
	turn   int
	batch  *tool.Batch
}

type fileArgs struct {
	Path   string `json:"path"`
	DryRun bool   `json:"dry_run,omitempty"`
	Ticket string `json:"ticket,omitempty"`
}

func newFixture(t *testing.T, p tool.Policy, opts ...tool.Option) *fixture {
	w := &fixture{t: t}
	w.runner = &tool.Runner{Policy: p, Observe: func(ev tool.Event) { w.events = append(w.events, ev) }}
	w.box = w.boxOf("Deletes a file.", opts...)
	w.run = w.runner.Start("run")
	return w
}

// boxOf returns a toolbox whose tool has the description: another description makes it another
// tool.
func (w *fixture) boxOf(description string, opts ...tool.Option) *tool.Box {
	box, err := tool.NewBox(tool.New("delete", description, func(_ context.Context, a fileArgs) (string, error) {
		w.ran++
		w.with = append(w.with, fmt.Sprint(a.Path, a.DryRun, a.Ticket))
		return "deleted " + a.Path, nil
	}, opts...))
	if err != nil {
		w.t.Fatal(err)
	}
	return box
}

// do runs one call in a new turn.
func (w *fixture) do(args string) tool.Record {
	w.t.Helper()
	w.turn++
	return w.again(args)
}

// again repeats the turn of the call with the pending calls.
func (w *fixture) again(args string) tool.Record {
	w.t.Helper()
	turn := tool.Turn{Number: w.turn, Calls: []*dragoman.ToolCall{{ID: "c", Name: "delete", Arguments: args}}}
	if w.batch != nil && len(w.batch.Pending) > 0 && w.batch.Pending[0].Binding.Turn == w.turn {
		turn.Resume = w.batch.Pending
	}
	b, err := w.run.Do(context.Background(), w.box, turn)
	if err != nil {
		w.t.Fatal(err)
	}
	w.batch = b
	return b.Records[0]
}

func TestP3_DenialEventsHaveTheReason(t *testing.T) {
	for _, tc := range []struct {
		effect tool.Effect
		ran    int
		kind   tool.ErrorKind
	}{
		{tool.Allow, 1, ""},
		{tool.Deny, 0, tool.ErrorDenied},
		{tool.Ask, 0, ""},
	} {
		w := newFixture(t, mustNew(t, Config{Rules: []Rule{{ID: "r", Effect: tc.effect, Reason: "the moon is full"}}}))
		r := w.do(`{"path":"a"}`)
		if w.ran != tc.ran || r.ErrorKind != tc.kind || r.Executed != (tc.ran > 0) {
			t.Errorf("%s: ran %d times, %+v", tc.effect, w.ran, r)
		}
		decided, ok := w.events[0].(tool.PolicyDecided)
		if !ok || decided.Decision.Effect != tc.effect || decided.Decision.Rule != "r" {
			t.Errorf("%s: the first event is %+v", tc.effect, w.events[0])
		}
		if tc.effect == tool.Deny && !strings.Contains(w.batch.Results[0].Text(), "the moon is full") {
			t.Errorf("the model got %q", w.batch.Results[0].Text())
		}
		if tc.effect == tool.Ask && (len(w.batch.Pending) != 1 || w.batch.Pending[0].Reason != "the moon is full") {
			t.Errorf("pending: %+v", w.batch.Pending)
		}
	}
}

// Whether the policy or the human refuses, the model gets an error result with the reason, and
// the call does not count as executed.
func TestP3_DeniedAndRejectedCallsAreErrorResults(t *testing.T) {
	for name, tc := range map[string]struct {
		rule Rule
		kind tool.ErrorKind
		want string
	}{
		"deny":            {Rule{ID: "r", Effect: tool.Deny, Reason: "the moon is full"}, tool.ErrorDenied, "the moon is full"},
		"a refused ask":   {Rule{ID: "r", Effect: tool.Ask}, tool.ErrorRejected, "not today"},
		"a refused input": {Rule{ID: "r", Effect: tool.AskInput, Input: &tool.InputRequest{Argument: "ticket"}}, tool.ErrorRejected, "not today"},
	} {
		w := newFixture(t, mustNew(t, Config{Rules: []Rule{tc.rule}}))
		w.runner.Approver = ApproverFunc(func(context.Context, *tool.ApprovalRequest) (tool.Answer, error) {
			return tool.Answer{Verdict: tool.Rejected, Message: "not today"}, nil
		})
		r := w.do(`{"path":"a"}`)
		if w.ran != 0 || r.OK || r.Executed || r.ErrorKind != tc.kind {
			t.Errorf("%s: ran %d times, %+v", name, w.ran, r)
		}
		if res := w.batch.Results[0]; res.Outcome != codes.OutcomeError || !strings.Contains(res.Text(), tc.want) {
			t.Errorf("%s: the model got %q", name, res.Text())
		}
		decided, ok := w.events[0].(tool.PolicyDecided)
		if !ok || decided.Decision.Effect != tc.rule.Effect {
			t.Errorf("%s: the first event is %+v", name, w.events[0])
		}
		for _, ev := range w.events {
			if started, ok := ev.(tool.CallStarted); ok {
				t.Errorf("%s: %+v", name, started)
			}
		}
	}
}

func TestP3_EditedArgumentsAreValidated(t *testing.T) {
	edit := func(value string) *fixture {
		return newFixture(t, mustNew(t, Config{Rules: []Rule{{
			ID: "r", Effect: tool.Allow, Edits: []tool.Edit{{Argument: "dry_run", Value: json.RawMessage(value)}},
		}}}))
	}
	w := edit("true")
	w.do(`{"path":"a","dry_run":false}`)
	if fmt.Sprint(w.with) != "[atrue]" {
		t.Errorf("it ran with %v", w.with)
	}
	w = edit(`"perhaps"`)
	if r := w.do(`{"path":"a"}`); w.ran != 0 || r.OK {
		t.Errorf("an edit that does not validate ran: %+v", r)
	}
}

func TestP4_HumanValueIsSetAndValidated(t *testing.T) {
	policy := mustNew(t, Config{Rules: []Rule{{
		ID: "r", Effect: tool.AskInput, Input: &tool.InputRequest{Argument: "ticket", Prompt: "Which ticket?"},
	}}})
	answer := func(value string) *fixture {
		w := newFixture(t, policy)
		w.runner.Approver = ApproverFunc(func(_ context.Context, req *tool.ApprovalRequest) (tool.Answer, error) {
			if req.Wanted == nil || req.Wanted.Argument != "ticket" {
				t.Errorf("asked for %+v", req.Wanted)
			}
			return tool.Answer{Verdict: tool.Approved, Value: json.RawMessage(value)}, nil
		})
		return w
	}
	w := answer(`"T-1"`)
	w.do(`{"path":"a"}`)
	if fmt.Sprint(w.with) != "[afalseT-1]" {
		t.Errorf("it ran with %v", w.with)
	}
	if w = answer(`{"not":"text"}`); !w.do(`{"path":"a"}`).Pending || w.ran != 0 || !strings.Contains(w.batch.Pending[0].Problem, "/ticket: must be string") {
		t.Errorf("a value that does not validate: %+v", w.batch)
	}
	if w = answer(``); !w.do(`{"path":"a"}`).Pending || w.ran != 0 || !strings.Contains(w.batch.Pending[0].Problem, "ticket is missing") {
		t.Errorf("no value: %+v", w.batch)
	}
}
