package agent_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/tool"
	"github.com/dragoman-go/dragoman/tool/policy"
)

// rules makes a policy of the text of a file.
func rules(t *testing.T, text string) *policy.Policy {
	t.Helper()
	config, err := policy.Parse("policy.yaml", []byte("version: 1\n"+text))
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// namedModel is a model with a name.
type namedModel struct {
	*scripted
	name string
}

func (n namedModel) String() string { return n.name }

// decisions runs an agent as a stream, and returns every decision of its policy.
func decisions(t *testing.T, a *agent.Agent, opts ...agent.Option) (out []string, res *agent.Result, err error) {
	t.Helper()
	for ev, failed := range a.Stream(t.Context(), "go", opts...) {
		switch ev := ev.(type) {
		case *agent.ToolEvent:
			if d, ok := ev.Event.(tool.PolicyDecided); ok {
				out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s%s%s %s %s", d.Subject, d.Key.QualifiedName(), d.Model, d.Target, d.Decision.Effect, d.Decision.Rule)))
			}
		case *agent.RunEnd:
			res, err = ev.Result, failed
		}
	}
	return out, res, err
}

func TestP1_ModelCallRulesAreEvaluated(t *testing.T) {
	for _, tc := range []struct {
		name, policy, model string
		denied              string // by this rule; empty: the model is called
	}{
		{"by provider and model", `rules: [{id: no, effect: deny, subjects: model_call, when: {model: "openai/*"}}]`, "openai/gpt-5", "no"},
		{"another provider", `rules: [{id: no, effect: deny, subjects: model_call, when: {model: "openai/*"}}]`, "anthropic/claude", ""},
		{"by model alone", `rules: [{id: no, effect: deny, subjects: model_call, when: {model: "gpt-*"}}]`, "openai/gpt-5", "no"},
		{"by agent", `rules: [{id: no, effect: deny, subjects: model_call, when: {agent: desk}}]`, "a/b", "no"},
		{"by another agent", `rules: [{id: no, effect: deny, subjects: model_call, when: {agent: other}}]`, "a/b", ""},
		{"by metadata", `rules: [{id: no, effect: deny, subjects: model_call, when: {metadata: {tenant: acme}}}]`, "a/b", "no"},
		{"by other metadata", `rules: [{id: no, effect: deny, subjects: model_call, when: {metadata: {tenant: other}}}]`, "a/b", ""},
		{"by expression", `rules: [{id: no, effect: deny, subjects: model_call, when: {expression: 'model.startsWith("a/") && turn == 1'}}]`, "a/b", "no"},
		{"without subjects", `rules: [{id: no, effect: deny, when: {metadata: {tenant: acme}}}]`, "a/b", "no"},
		{"an allow goes first", `rules: [{id: no, effect: deny, subjects: model_call}, {id: yes, effect: allow, priority: 1, subjects: model_call}]`, "a/b", ""},
		{"the default, where a rule names model calls", "default: deny\nrules: [{id: yes, effect: allow, subjects: model_call, when: {model: x}}]", "a/b", "default"},
		{"the default, where none does", "default: deny\nrules: [{id: yes, effect: allow, when: {tool: look}}]", "a/b", ""},
		{"an ask covers no model call", `rules: [{id: ask, effect: ask}]`, "a/b", ""},
		{"neither does a tool's rule", `rules: [{id: no, effect: deny, when: {expression: args.x == 1}}]`, "a/b", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := namedModel{model(), tc.model}
			a := &agent.Agent{Name: "desk", Model: m, Runner: &tool.Runner{Policy: rules(t, tc.policy)}}
			for _, streamed := range []bool{false, true} {
				m.asked, m.script = nil, nil
				var err error
				var told []string
				var res *agent.Result
				if streamed {
					told, res, err = decisions(t, a, agent.Metadata(map[string]string{"tenant": "acme"}))
				} else {
					res, err = a.Run(t.Context(), "go", agent.Metadata(map[string]string{"tenant": "acme"}))
				}
				var denied *tool.DeniedError
				if tc.denied == "" {
					if err != nil || len(m.asked) != 1 || res.Output != "done" {
						t.Fatalf("streamed %t: %v, asked %d times, %q", streamed, err, len(m.asked), res.Output)
					}
				} else if !errors.As(err, &denied) || len(m.asked) != 0 || denied.Model != tc.model {
					t.Fatalf("streamed %t: %v, asked %d times", streamed, err, len(m.asked))
				} else if rule := denied.Decision.Rule; rule != tc.denied && tc.denied != "default" || tc.denied == "default" && rule != "" {
					t.Errorf("rule %q denied, want %q", rule, tc.denied)
				}
				if streamed && (len(told) != 1 || !strings.HasPrefix(told[0], "model_call "+tc.model)) { // requirement P3, allow included
					t.Errorf("reported decisions: %q", told)
				}
			}
		})
	}
}

func TestP1_DeniedModelOfChainIsSkipped(t *testing.T) {
	first, second := model(), model(textResponse("second"))
	chain := &provider.Chain{Links: []provider.Link{{Name: "openai/gpt-5", Model: first}, {Name: "anthropic/claude", Model: second}}}
	a := &agent.Agent{Model: chain, Runner: &tool.Runner{Policy: rules(t, `rules: [{id: no, effect: deny, subjects: model_call, when: {model: "openai/*"}}]`)}}
	told, res, err := decisions(t, a)
	if err != nil || res.Output != "second" || len(first.asked) != 0 {
		t.Fatalf("%v, %+v", err, res)
	}
	if want := []string{"model_call openai/gpt-5 deny no", "model_call anthropic/claude allow"}; !slices.Equal(told, want) {
		t.Errorf("%q", told)
	}
	a.Runner = &tool.Runner{Policy: rules(t, `rules: [{id: no, effect: deny, subjects: model_call}]`)}
	asked := len(second.asked)
	_, err = a.Run(t.Context(), "go")
	if denied := new(tool.DeniedError); !errors.As(err, &denied) || len(second.asked) != asked {
		t.Fatalf("%v", err)
	}
}

func TestP1_EveryTurnIsAModelCall(t *testing.T) {
	var did counted
	m := namedModel{model(calls("1 look"), textResponse("never")), "a/b"}
	a := &agent.Agent{
		Model: m, Tools: []tool.Tool{did.tool("look")},
		Runner: &tool.Runner{Policy: rules(t, `rules: [{id: once, effect: deny, subjects: model_call, reason: One turn., when: {expression: turn > 1}}]`)},
	}
	res, err := a.Run(t.Context(), "go")
	if denied := new(tool.DeniedError); !errors.As(err, &denied) || denied.Decision.Reason != "One turn." || did.String() != "look:" || len(m.asked) != 1 {
		t.Fatalf("%v, %q", err, did.String())
	}
	a.Runner.Policy = nil // the run can go on once the policy allows it
	if res, err = a.Resume(t.Context(), res.State); err != nil || res.Output != "never" {
		t.Fatalf("%v, %+v", err, res)
	}
}

func TestP1_FailedPolicyDeniesModelCalls(t *testing.T) {
	m := namedModel{model(), "a/b"}
	a := &agent.Agent{Model: m, Runner: &tool.Runner{Policy: rules(t, `rules: [{id: broken, effect: allow, subjects: model_call, when: {expression: 'metadata.tenant == "acme"'}}]`)}}
	_, err := a.Run(t.Context(), "go")
	if denied := new(tool.DeniedError); !errors.As(err, &denied) || len(m.asked) != 0 {
		t.Fatalf("%v", err)
	}
}

func TestP1_HandoffRulesAreEvaluated(t *testing.T) {
	for _, tc := range []struct {
		name, policy string
		want         string // the agent that answers; pending: the run waits for a human
		approval     bool   // the handoff needs one by itself
	}{
		{"by target", `rules: [{id: no, effect: deny, subjects: handoff, when: {target: art}}]`, "desk", false},
		{"another target", `rules: [{id: no, effect: deny, subjects: handoff, when: {target: math}}]`, "art", false},
		{"by agent", `rules: [{id: no, effect: deny, subjects: handoff, when: {agent: desk}}]`, "desk", false},
		{"by metadata", `rules: [{id: no, effect: deny, subjects: handoff, when: {metadata: {tenant: acme}}}]`, "desk", false},
		{"by tool", `rules: [{id: no, effect: deny, subjects: handoff, when: {tool: "transfer_to_*"}}]`, "desk", false},
		{"by expression", `rules: [{id: no, effect: deny, subjects: handoff, when: {expression: 'target == "art"'}}]`, "desk", false},
		{"without subjects", `rules: [{id: no, effect: deny, when: {tool: "*art"}}]`, "desk", false},
		{"a rule on tool calls", `rules: [{id: no, effect: deny, subjects: tool_call}]`, "art", false},
		{"a rule that asks", `rules: [{id: ask, effect: ask, subjects: handoff}]`, "pending", false},
		{"a rule that allows what needs approval", `rules: [{id: yes, effect: allow, subjects: handoff}]`, "art", true},
		{"no rule, and it needs approval", `rules: []`, "pending", true},
		{"the default", "default: deny", "desk", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			art, math := agent.Agent{Name: "art", Model: model()}, agent.Agent{Name: "math", Model: model()}
			desk := &agent.Agent{
				Name: "desk", Model: model(calls("a transfer_to_art")), Handoffs: []agent.Handoff{{To: &art, NeedsApproval: tc.approval}, {To: &math}},
				Runner: &tool.Runner{Policy: rules(t, tc.policy)},
			}
			told, res, err := decisions(t, desk, agent.Metadata(map[string]string{"tenant": "acme"}))
			got := res.Agent
			if errors.Is(err, agent.ErrInterrupted) {
				got = "pending"
			} else if err != nil {
				t.Fatal(err)
			}
			if got != tc.want {
				t.Errorf("%s answers, want %s\n%s", got, tc.want, script(res.Messages))
			}
			if !slices.ContainsFunc(told, func(s string) bool { return strings.HasPrefix(s, "handoff transfer_to_art"+"art ") }) {
				t.Errorf("reported decisions: %q", told)
			}
		})
	}
}

func TestP1_ToolRuleOnHandoffIsAnError(t *testing.T) {
	art := agent.Agent{Name: "art", Model: model()}
	desk := agent.Agent{
		Model: model(), Handoffs: []agent.Handoff{{To: &art}},
		Runner: &tool.Runner{Policy: rules(t, "rules:\n  - id: no\n    effect: deny\n    subjects: [tool_call]\n    when: {tool: transfer_to_art}\n")},
	}
	if err := desk.Check(); err == nil || !errors.Is(err, agent.ErrAgent) || !strings.Contains(err.Error(), "policy.yaml:5:15: rule \"no\": subjects: the rule can never apply") {
		t.Errorf("%v", err)
	}
}

func TestPolicyRuleOnUnknownHandoffTargetIsAnError(t *testing.T) {
	const wrongTarget = "rules:\n  - {id: no, effect: deny, subjects: handoff, when: {target: billling}}"
	for _, tc := range []struct{ name, policy, want string }{
		{"a misspelled target", wrongTarget, `policy.yaml:3:62: rule "no": when.target: the rule can never apply: "billling" matches no handoff target of the agent desk; the targets are art, billing`},
		{"a target without subjects", "rules:\n  - {id: no, effect: deny, when: {target: billling}}", "when.target: the rule can never apply"},
		{"an unknown handoff tool", "rules:\n  - {id: no, effect: deny, subjects: handoff, when: {tool: transfer_to_billling}}", `when.tool: the rule can never apply: "transfer_to_billling" matches no handoff of the agent desk; the handoffs are transfer_to_art, transfer_to_billing`},
		{"a target", "rules:\n  - {id: no, effect: deny, when: {target: billing}}", ""},
		{"a target of the next agent", "rules:\n  - {id: no, effect: deny, when: {target: archive}}", ""},
		{"a glob", "rules:\n  - {id: no, effect: deny, when: {target: 'bill*'}}", ""},
		{"one of two", "rules:\n  - {id: no, effect: deny, when: {target: [other, art]}}", ""},
		{"a disabled rule", "rules:\n  - {id: no, effect: deny, enabled: false, when: {target: billling}}", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			runner := &tool.Runner{Policy: rules(t, tc.policy)}
			archive := agent.Agent{Name: "archive", Model: model(), Runner: runner}
			art := agent.Agent{Name: "art", Model: model()}
			billing := agent.Agent{Name: "billing", Model: model(), Runner: runner}
			if strings.Contains(tc.policy, "archive") {
				billing.Handoffs = []agent.Handoff{{To: &archive}}
			}
			desk := agent.Agent{Name: "desk", Model: model(textResponse("done")), Handoffs: []agent.Handoff{{To: &art}, {To: &billing}}, Runner: runner}
			_, err := desk.Run(t.Context(), "hello")
			if tc.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !errors.Is(err, agent.ErrAgent) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %s", err, tc.want)
			}
		})
	}
	alone := agent.Agent{Name: "alone", Model: model(textResponse("done")), Runner: &tool.Runner{Policy: rules(t, wrongTarget)}}
	if err := alone.Check(); err == nil || !strings.Contains(err.Error(), "when.target: the rule can never apply: the agent alone has no handoffs") {
		t.Errorf("an agent without handoffs: %v", err)
	}
}

// An agent that runs as a tool may share the policy of the agent that calls it.
func TestNestedAgentSharesPolicyWithHandoffTarget(t *testing.T) {
	runner := &tool.Runner{Policy: rules(t, "rules:\n  - {id: no, effect: deny, when: {target: art}}")}
	art := agent.Agent{Name: "art", Model: model()}
	inner := agent.Agent{Name: "inner", Model: model(textResponse("found")), Runner: runner}
	desk := agent.Agent{
		Name: "desk", Model: model(calls(`a inner {"task":"look"}`), textResponse("done")), Handoffs: []agent.Handoff{{To: &art}},
		Tools: []tool.Tool{inner.AsTool()}, Runner: runner,
	}
	res, err := desk.Run(t.Context(), "hello")
	if err != nil || len(res.Records) != 1 || res.Records[0].Error != "" {
		t.Fatalf("%v\n%s", err, script(res.Messages))
	}
}
