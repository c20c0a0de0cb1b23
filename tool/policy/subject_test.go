package policy

import (
	"context"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/tool"
)

func TestP1_RuleThatNeverAppliesIsAnError(t *testing.T) {
	for _, tc := range []struct{ name, rule, want string }{
		{"an unknown subject", "effect: deny\n    subjects: [model]", "f:5:15: rule \"a\": subjects: unknown subject \"model\""},
		{"a model call with a tool", "effect: deny\n    subjects: [model_call]\n    when: {tool: x}", "f:6:18: rule \"a\": when.tool: a model_call has no tool"},
		{"one of two subjects has no tool", "effect: deny\n    subjects: [tool_call, model_call]\n    when: {tool: x}", "f:6:18: rule \"a\": when.tool: a model_call has no tool"},
		{"a model call with a namespace", "effect: deny\n    subjects: [model_call]\n    when: {namespace: x}", "when.namespace: a model_call has no tool"},
		{"a model call with tags", "effect: deny\n    subjects: [model_call]\n    when: {tags: x}", "when.tags: a model_call has no tool"},
		{"a model call with annotations", "effect: deny\n    subjects: [model_call]\n    when: {annotations: {read_only: true}}", "when.annotations: a model_call has no tool"},
		{"a model call with arguments", "effect: deny\n    subjects: [model_call]\n    when: {expression: args.x == 1}", "f:6:24: rule \"a\": when.expression: a model_call has no args"},
		{"a model call with a target", "effect: deny\n    subjects: [model_call]\n    when: {target: x}", "when.target: a model_call has no target"},
		{"a model call that is asked about", "effect: ask\n    subjects: [model_call]", "f:4:13: rule \"a\": effect: a model_call cannot wait for a human"},
		{"a model call that is edited", "effect: allow\n    subjects: [model_call]\n    edits: {x: 1}", "edits: a model_call has no arguments"},
		{"a model call with input", "effect: input\n    subjects: [model_call]\n    input: {argument: x}", "effect: a model_call cannot wait for a human"},
		{"a tool call with a model", "effect: deny\n    subjects: [tool_call]\n    when: {model: x}", "when.model: a tool_call has no model"},
		{"a tool call with a target", "effect: deny\n    subjects: [tool_call]\n    when: {expression: target == 'x'}", "when.expression: a tool_call has no target"},
		{"a handoff with arguments", "effect: deny\n    subjects: [handoff]\n    when: {expression: args.x == 1}", "when.expression: a handoff has no args"},
		{"a handoff with tags", "effect: deny\n    subjects: [handoff]\n    when: {tags: x}", "when.tags: a handoff has no tags"},
		{"a handoff with input", "effect: input\n    subjects: [handoff]\n    input: {argument: x}", "effect: a handoff has no arguments"},
		{"a tool and a model", "effect: deny\n    when: {tool: x, model: y}", "can never apply: no subject has everything"},
		{"a model and a target", "effect: deny\n    when: {model: x, target: y}", "can never apply: no subject has everything"},
		{"a question about a model", "effect: ask\n    when: {model: x}", "can never apply: no subject has everything"},
		{"an expression that is false", "effect: deny\n    when: {expression: 'false'}", "f:5:24: rule \"a\": when.expression: the expression is never true"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := parsed("version: 1\nrules:\n  - id: a\n    " + tc.rule + "\n")
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v\nwant %s", err, tc.want)
			}
		})
	}
}

// parsed parses the text of a policy file named "f".
func parsed(text string) (*Policy, error) {
	config, err := Parse("f", []byte(text))
	if err != nil {
		return nil, err
	}
	return New(config)
}

func TestP1_DefaultSubjectsOfARule(t *testing.T) {
	all := []string{codes.SubjectToolCall, codes.SubjectHandoff, codes.SubjectModelCall}
	for _, tc := range []struct {
		name string
		rule Rule
		want string
	}{
		{"no condition", Rule{Effect: tool.Deny}, "tool_call handoff model_call"},
		{"any", Rule{Effect: tool.Allow, Subjects: []string{anySubject}}, "tool_call handoff model_call"},
		{"ask", Rule{Effect: tool.Ask}, "tool_call handoff"},
		{"input", Rule{Effect: tool.AskInput, Input: &tool.InputRequest{Argument: "x"}}, "tool_call handoff"},
		{"a tool", Rule{Effect: tool.Deny, When: When{Tools: []string{"x"}}}, "tool_call handoff"},
		{"a model", Rule{Effect: tool.Deny, When: When{Models: []string{"x"}}}, "model_call"},
		{"a target", Rule{Effect: tool.Deny, When: When{Targets: []string{"x"}}}, "handoff"},
		{"arguments", Rule{Effect: tool.Deny, When: When{Expression: "has(args.x)"}}, "tool_call handoff"},
		{"the model in an expression", Rule{Effect: tool.Deny, When: When{Expression: `model != "x"`}}, "model_call"},
		{"an expression that tells subjects apart", Rule{Effect: tool.Deny, When: When{Expression: `subject == "model_call" || tool == "x"`}}, "tool_call handoff model_call"},
	} {
		tc.rule.ID = "r"
		p := mustNew(t, Config{Rules: []Rule{tc.rule}})
		var got []string
		for _, s := range all {
			if p.rules[0].covered.has(s) {
				got = append(got, s)
			}
		}
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%s covers %v, want %s", tc.name, got, tc.want)
		}
	}
}

func TestP2_DefaultCoversModelCallsIfARuleNamesThem(t *testing.T) {
	model := &tool.Question{Subject: codes.SubjectModelCall, Model: "a/b"}
	rule := Rule{ID: "r", Effect: tool.Allow, Subjects: []string{codes.SubjectModelCall}, When: When{Models: []string{"x"}}}
	off := rule
	off.Disabled = true
	for _, tc := range []struct {
		name   string
		config Config
		host   Host
		want   tool.Effect
	}{
		{"deny, and no rule on models", Config{Default: defaultDeny}, Host{}, tool.Allow},
		{"deny, and a rule that is off", Config{Default: defaultDeny, Rules: []Rule{off}}, Host{}, tool.Allow},
		{"deny, and a rule on models", Config{Default: defaultDeny, Rules: []Rule{rule}}, Host{}, tool.Deny},
		{"deny, in a gateway", Config{Default: defaultDeny}, Host{Subjects: []string{codes.SubjectModelCall}}, tool.Deny},
		{"ask", Config{Default: defaultAsk, Rules: []Rule{rule}}, Host{}, tool.Allow},
	} {
		p, err := mustNew(t, tc.config).For(tc.host)
		if err != nil {
			t.Fatal(err)
		}
		d, err := p.Decide(context.Background(), model)
		if err != nil || d.Effect != tc.want {
			t.Errorf("%s: %v, %v; want %s", tc.name, d.Effect, err, tc.want)
		}
		if e := p.Explain(context.Background(), model); e.Decision.Effect != tc.want {
			t.Errorf("%s: explained as %v", tc.name, e.Decision.Effect)
		}
	}
}

func TestP1_HostRefusesRulesThatCannotApply(t *testing.T) {
	models := Host{Name: "the gateway", Subjects: []string{codes.SubjectModelCall}, Agents: []string{}, Unattended: true}
	command := Host{Name: "the command", Subjects: []string{codes.SubjectToolCall, codes.SubjectModelCall}, Tools: []string{"shell", "fs.read"}, Namespaces: []string{"", "fs"}, Tags: []string{"files"}, Agents: []string{"main"}}
	for _, tc := range []struct {
		name, text string
		host       Host
		want       string // empty if the rule can apply
	}{
		{"a tool rule in a gateway", "rules:\n  - {id: a, effect: deny, when: {tool: x}}", models, `f:3:6: rule "a": subjects: the rule can never apply: the gateway decides on model_call only`},
		{"a question in a gateway", "rules:\n  - {id: a, effect: ask}", models, "the gateway decides on model_call only"},
		{"a default that asks in a gateway", "default: ask", models, "f:2:10: default: ask asks a human, and the gateway cannot"},
		{"an agent in a gateway", "rules:\n  - {id: a, effect: deny, when: {agent: x}}", models, "when.agent: the rule can never apply: the gateway has no agents"},
		{"an agent in an expression in a gateway", "rules:\n  - {id: a, effect: deny, when: {expression: agent == 'x'}}", models, "when.expression: the rule can never apply: the gateway has no agents"},
		{"a model in a gateway", "default: deny\nrules:\n  - {id: a, effect: allow, when: {model: x, metadata: {key: k}}}", models, ""},
		{"a tool that is not there", "rules:\n  - {id: a, effect: deny, when: {tool: shel}}", command, `when.tool: the rule can never apply: "shel" matches no tool of the command; the tools are shell, fs.read`},
		{"a tool that is there", "rules:\n  - {id: a, effect: deny, when: {tool: [shel, 'fs.*']}}", command, ""},
		{"an agent that is not there", "rules:\n  - {id: a, effect: deny, when: {agent: other}}", command, `when.agent: the rule can never apply: "other" matches no agent`},
		{"an agent that is there", "rules:\n  - {id: a, effect: ask, when: {agent: 'ma*'}}", command, ""},
		{"a handoff", "rules:\n  - {id: a, effect: deny, subjects: handoff}", command, "the command decides on tool_call and model_call only"},
		{"a namespace that is not there", "rules:\n  - {id: a, effect: deny, when: {namespace: net}}", command, `when.namespace: the rule can never apply: no tool of the command is in the namespace "net"`},
		{"a namespace that is there", "rules:\n  - {id: a, effect: deny, when: {namespace: [net, fs]}}", command, ""},
		{"a tag that no tool has", "rules:\n  - {id: a, effect: deny, when: {tool: shell, tags: [secret]}}", command, `when.tags: the rule can never apply: no tool of the command is tagged "secret"`},
		{"a tag that a tool has", "rules:\n  - {id: a, effect: deny, when: {tags: [files, secret]}}", command, ""},
		{"a namespace where they are not known", "rules:\n  - {id: a, effect: deny, when: {namespace: net, tags: [secret]}}", Host{Tools: []string{"shell"}}, ""},
		{"a rule that is off", "rules:\n  - {id: a, effect: deny, enabled: false, when: {tool: shel}}", command, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, err := parsed("version: 1\n" + tc.text + "\n")
			if err != nil {
				t.Fatal(err)
			}
			_, err = p.For(tc.host)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("%v\nwant %q", err, tc.want)
			}
		})
	}
}
