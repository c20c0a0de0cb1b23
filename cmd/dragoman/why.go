package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/textkit"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/schema"
	"github.com/dragoman-go/dragoman/tool"
	"github.com/dragoman-go/dragoman/tool/policy"
)

// agentName is the name of the agent of dragoman run, for policies.
const agentName = "dragoman"

// whyFlags holds the call to explain and the policy.
type whyFlags struct {
	toolsFlags
	commands               commandFlags
	policy, args, agent    string
	subject, model, target string
	metadata               map[string]string
}

func newToolsWhy() *cobra.Command {
	var o whyFlags
	cmd := &cobra.Command{
		Use:   "why TOOL [--args JSON] [--policy FILE]",
		Short: "Explain whether a call would run, and which policy rule decides",
		Long: `Why explains whether a call would run, need approval or be denied, which rule of the
policy decides that, and why the other rules do not match. It does not run the call. TOOL
is the name of a tool; if the tool has a namespace, write NAMESPACE.NAME. --args is a
JSON object, or plain text for a tool that takes text. Why checks it against the tool's
schema first, as "dragoman run" does.

The first line of the output shows what "dragoman run" does with the call, given the same
--policy, --allow and --allow-command:

  run    the call runs without a question
  ask    you are asked first; without a terminal the call is refused
  deny   the call does not run

Rules are tried by priority, highest first, then by id. The first rule that matches
decides, so give rules that must win a higher priority. A rule that asks does so even
with --allow. A rule that allows runs the call even if the tool itself needs approval. If
no rule matches, the policy's default decides. If the default allows the call, a tool
that writes files or runs commands still asks, unless --allow or --allow-command permits
the call. An approval for the rest of a run answers later questions; it never overrides a
denial.

Without --policy, calls that may destroy something need approval. An example of a
policy file:

  version: 1
  default: allow
  rules:
    - id: no-force-push
      effect: deny                     # or allow, ask, input
      reason: Do not rewrite history.
      when:
        tool: shell                    # a name, a glob, or a list of them
        expression: args.command.contains("--force")
    - id: one-provider
      effect: deny
      subjects: [model_call]           # or tool_call, handoff, any
      when:
        model: "openai/*"

A rule that can never apply is an error, such as a rule for a tool that does not exist.
The documentation of package tool/policy describes every field.

To explain a model call, use --subject model_call --model PROVIDER/MODEL. To explain a
handoff, use --subject handoff --target AGENT. These take no TOOL. "dragoman run" has no
handoffs: the explanation is for an agent in a program.`,
		Example: `  dragoman tools why write_file --args '{"path":"a.txt","content":"x"}'
  dragoman tools why shell --policy policy.yaml --args '{"command":"rm -r build"}'
  dragoman tools why pay --tools tools.json --policy policy.yaml --args '{"amount":70}' --agent shop
  dragoman tools why --subject model_call --model openai/gpt-5 --policy policy.yaml`,
		Args: atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			asJSON, err := reportFormat(o.report)
			if err != nil {
				return err
			}
			answer, err := o.explainCall(cmd, args)
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(cmd.OutOrStdout(), answer)
			}
			_, err = io.WriteString(cmd.OutOrStdout(), answer.String())
			return err
		},
	}
	o.add(cmd)
	f := cmd.Flags()
	f.StringVar(&o.policy, "policy", "", "the policy file, in YAML or JSON")
	f.StringVar(&o.args, "args", "", "the arguments of the call: a JSON object, or text for a tool that takes text")
	f.StringVar(&o.agent, "agent", agentName, "the agent that makes the call; for nested agents the path, such as shop/checkout")
	f.StringToStringVar(&o.metadata, "metadata", nil, "metadata of the run, as name=value")
	f.StringSliceVar(&o.allow, "allow", nil, `names of tools whose calls need no approval, as for "dragoman run"`)
	o.commands.add(f)
	f.StringVar(&o.subject, "subject", codes.SubjectToolCall, "the subject to explain: tool_call, model_call or handoff")
	f.StringVar(&o.model, "model", "", "the model of a model call, as provider/model")
	f.StringVar(&o.target, "target", "", "the agent that receives a handoff")
	return cmd
}

// whyResult holds the outcome of a call and the decision of the policy.
type whyResult struct {
	// Outcome is run, ask or deny. Because explains it if the policy's decision does not.
	Outcome string `json:"outcome"`
	Because string `json:"because,omitempty"`
	policy.Explanation
	// Notes are hints, such as a rule that denies the call but does not decide.
	Notes []string `json:"notes,omitempty"`
}

func (a whyResult) String() string {
	head := "outcome: " + a.Outcome
	if a.Because != "" {
		head += ": " + a.Because
	}
	text := head + "\n" + a.Explanation.String()
	for _, note := range a.Notes {
		text += "note: " + note + "\n"
	}
	return text
}

// outrankedDenials returns a note for each rule that denies the call but does not
// decide, because another rule of the same priority is tried first.
func outrankedDenials(e *policy.Explanation) (notes []string) {
	if e.Failed != "" || e.Decision.Effect == tool.Deny {
		return nil
	}
	for _, decided := range e.Rules {
		if !decided.Decided {
			continue
		}
		for _, r := range e.Rules {
			if r.Matched && r.Effect == tool.Deny && r.Priority == decided.Priority {
				notes = append(notes, fmt.Sprintf("rule %s denies this call too; give it a higher priority to make it win", r.Rule))
			}
		}
	}
	return notes
}

// explainCall explains the call that the flags and arguments describe.
func (o *whyFlags) explainCall(cmd *cobra.Command, args []string) (*whyResult, error) {
	if err := o.check(cmd, args); err != nil {
		return nil, err
	}
	o.forRun = true
	reached := false
	o.config.Hooks.Use = []tool.Middleware{func(tool.Handler) tool.Handler {
		return func(context.Context, tool.Input) (tool.Output, error) {
			reached = true
			return tool.Output{}, nil // replaces the tool, which must not run
		}
	}}
	box, done, err := o.box()
	if err != nil {
		return nil, err
	}
	defer done()
	p, err := o.rules(box)
	if err != nil {
		return nil, err
	}
	if o.subject != codes.SubjectToolCall {
		q := &tool.Question{Subject: o.subject, Agent: o.agents(), Metadata: o.metadata, Model: o.model, Target: o.target}
		e := p.Explain(cmd.Context(), q)
		answer := &whyResult{Outcome: outcomeOf(e.Decision.Effect), Explanation: e, Notes: outrankedDenials(&e)}
		if q.Subject == codes.SubjectHandoff {
			answer.Notes = append(answer.Notes, "dragoman run has no handoffs; this result is for an agent in a program")
		}
		return answer, nil
	}
	q, err := o.question(box, args[0])
	if err != nil {
		return nil, err
	}
	answer := &whyResult{Explanation: p.Explain(cmd.Context(), q)}
	answer.Notes = outrankedDenials(&answer.Explanation)
	runner := &tool.Runner{Policy: p, Approver: policy.ApproverFunc(o.commands.approve)}
	if o.policy == "" && o.file == "" {
		runner.Policy = nil // dragoman run has no policy by default
	}
	run := runner.Start("why")
	run.Agent, run.Metadata = q.Agent, q.Metadata
	batch, err := run.Do(cmd.Context(), box, tool.Turn{Number: 1, Calls: []*dragoman.ToolCall{callOf(q)}})
	switch {
	case err != nil:
		return nil, failed("%w", err)
	case len(batch.Pending) > 0:
		answer.Outcome = "ask"
		if answer.Decision.Reason != batch.Pending[0].Reason {
			answer.Because = batch.Pending[0].Reason
		}
	case reached:
		answer.Outcome = "run"
		switch {
		case answer.Decision.Rule != "":
		case slices.Contains(o.allow, args[0]):
			answer.Because = "--allow names the tool"
		case batch.Records[0].Verdict == tool.Approved:
			answer.Because = "--allow-command matches the command"
		}
	default:
		answer.Outcome, answer.Because = "deny", batch.Records[0].Error
	}
	return answer, nil
}

// outcomeOf returns run, ask or deny for the effect of a decision.
func outcomeOf(e tool.Effect) string {
	switch e {
	case tool.Allow:
		return "run"
	case tool.Ask, tool.AskInput:
		return "ask"
	default:
		return "deny"
	}
}

// check refuses flags that cannot be used together.
func (o *whyFlags) check(cmd *cobra.Command, args []string) error {
	known := []string{codes.SubjectToolCall, codes.SubjectModelCall, codes.SubjectHandoff}
	isTool := o.subject == known[0]
	switch {
	case !slices.Contains(known, o.subject):
		return usageError("unknown --subject %q: known subjects are %s", o.subject, strings.Join(known, ", "))
	case isTool && len(args) == 0:
		return usageError("missing TOOL, the name of a tool: dragoman tools why shell --args '{\"command\":\"ls\"}'")
	case !isTool && len(args) > 0:
		return usageError("--subject %s takes no TOOL", o.subject)
	case o.model != "" && o.subject != known[1]:
		return usageError("--model can only be used with --subject model_call")
	case o.target != "" && o.subject != known[2]:
		return usageError("--target can only be used with --subject handoff")
	case !isTool && cmd.Flags().Changed("args"):
		return usageError("--args can only be used with a tool")
	case o.subject == known[1] && o.model == "":
		return usageError("--subject model_call needs --model PROVIDER/MODEL, such as openai/gpt-5")
	case o.subject == known[2] && o.target == "":
		return usageError("--subject handoff needs --target AGENT, the agent that takes over")
	case o.subject == known[1]:
		if err := o.resolveModel(); err != nil {
			return err
		}
	}
	if err := o.commands.check(); err != nil {
		return err
	}
	return allowed(o.allow)
}

// resolveModel replaces --model with provider/model, the form that rules match. For the
// agent of dragoman run, it refuses models that dragoman run refuses; other agents may have
// other providers.
func (o *whyFlags) resolveModel() error {
	config, err := provider.Default()
	if err != nil {
		return failed("%w", err)
	}
	specs, err := config.Resolve(o.model)
	switch {
	case err != nil:
		return usageError("--model: %w", err)
	case len(specs) > 1:
		return usageError("--model: %q names several models: explain one at a time: %s", o.model, strings.Join(specs, ", "))
	}
	if o.agent == agentName {
		if _, err := config.Open(specs[0]); err != nil {
			return usageError("--model: %w", err)
		}
	}
	if !strings.Contains(specs[0], "/") {
		return usageError("--model: %q has no provider: write PROVIDER/MODEL, such as openai/gpt-5", o.model)
	}
	o.model = specs[0]
	return nil
}

// rules returns the policy of --policy, or the default one, for the tools of a box.
func (o *whyFlags) rules(box *tool.Box) (*policy.Policy, error) {
	if o.policy == "" {
		p, err := policy.New(policy.Config{Default: "ask_destructive"})
		if err != nil {
			return nil, failed("%w", err)
		}
		return p, nil
	}
	if o.file == "" && o.agent == agentName && o.subject != codes.SubjectHandoff {
		return loadPolicy(o.policy, box.Tools())
	}
	p, err := policy.Load(o.policy)
	if err != nil {
		return nil, failed("%w", nameSource("--policy", err))
	}
	return p, nil
}

// loadPolicy reads a policy for dragoman run with these tools. A rule that can never
// apply there is an error.
func loadPolicy(file string, tools []tool.Tool) (*policy.Policy, error) {
	p, err := policy.Load(file)
	if err != nil {
		return nil, failed("%w", nameSource("--policy", err))
	}
	host := policy.Host{
		Name: "dragoman run", Subjects: []string{codes.SubjectToolCall, codes.SubjectModelCall}, Agents: []string{agentName},
		Namespaces: []string{}, Tags: []string{},
	}
	for _, t := range tools {
		spec := t.Spec()
		host.Tools = append(host.Tools, spec.QualifiedName())
		host.Namespaces = append(host.Namespaces, spec.Namespace)
		if s, ok := t.(interface{ Settings() tool.Settings }); ok {
			host.Tags = append(host.Tags, s.Settings().Tags...)
		}
	}
	if p, err = p.For(host); err != nil {
		return nil, failed("%w", err)
	}
	return p, nil
}

func (o *whyFlags) agents() []string {
	if o.agent == "" {
		return nil
	}
	return strings.Split(o.agent, "/")
}

// callOf returns the tool call in a question.
func callOf(q *tool.Question) *dragoman.ToolCall {
	c := &dragoman.ToolCall{ID: "why", Name: q.Spec.Name, Namespace: q.Spec.Namespace, Arguments: string(q.Input.Arguments)}
	if q.Spec.Kind == codes.ToolFreeform {
		c.Payload, c.Arguments = codes.PayloadText, q.Input.Text
	}
	return c
}

// question returns the question that the policy is asked about the call.
func (o *whyFlags) question(box *tool.Box, name string) (*tool.Question, error) {
	var names []string
	for _, t := range box.Tools() {
		spec := t.Spec()
		names = append(names, spec.QualifiedName())
		if spec.QualifiedName() != name {
			continue
		}
		in, err := o.input(spec)
		if err != nil {
			return nil, err
		}
		q := &tool.Question{
			Subject: codes.SubjectToolCall, Key: tool.KeyOf(spec), Spec: spec, Settings: &tool.Settings{}, Input: in,
			Metadata: o.metadata,
		}
		if s, ok := t.(interface{ Settings() tool.Settings }); ok {
			settings := s.Settings()
			q.Settings = &settings
		}
		q.Agent = o.agents()
		return q, nil
	}
	return nil, failed("unknown tool %q: known tools are %s%s", name, strings.Join(names, ", "), textkit.Suggest(name, names))
}

// input returns the input of the call, validated as it would be before the call runs.
func (o *whyFlags) input(spec *dragoman.ToolSpec) (tool.Input, error) {
	if spec.Kind == codes.ToolFreeform {
		return tool.Input{Text: o.args}, nil
	}
	if p := dragoman.CheckArguments(o.args); p != nil {
		return tool.Input{}, failed("--args: %s", p.Message)
	}
	v, err := schema.Compile(spec.Parameters)
	if err != nil {
		return tool.Input{}, failed("the schema of %s: %w", spec.QualifiedName(), err)
	}
	raw := json.RawMessage(strings.TrimSpace(o.args))
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	raw, _ = v.Complete(raw, false)
	if err := v.Validate(raw); err != nil {
		return tool.Input{}, failed("the arguments do not match the schema of %s, so the call fails before any policy is asked:\n%w", spec.QualifiedName(), err)
	}
	return tool.Input{Arguments: raw}, nil
}
