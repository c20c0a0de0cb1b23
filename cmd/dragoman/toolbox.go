package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/schema"
	"github.com/dragoman-go/dragoman/tool"
	"github.com/dragoman-go/dragoman/tool/policy"
	"github.com/dragoman-go/dragoman/tool/shell"
	"github.com/dragoman-go/dragoman/tool/workspace"
)

func newTools() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tools",
		Short: "List tools, and explain what a policy decides about a call",
		Long: `Tools are those that come with dragoman, for the files of one folder and for
commands in it, or those of a file in any wire language (--tools).`,
		Args: noSuchCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newToolsList(), newToolsWhy())
	return cmd
}

// toolsFlags say which tools are meant.
type toolsFlags struct {
	file, from, report string
}

func (o *toolsFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.file, "tools", "", "a file of tools, or a request that has some; without it the tools that come with dragoman")
	f.StringVar(&o.from, "from", "", "the wire language of that file, where it cannot be told")
	f.StringVar(&o.report, "report", "text", "text or json")
}

func newToolsList() *cobra.Command {
	var o toolsFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List tools with their annotations and what they need",
		Example: `  dragoman tools list
  dragoman tools list --tools tools.json --report json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			asJSON, err := reportFormat(o.report)
			if err != nil {
				return err
			}
			box, done, err := o.box()
			if err != nil {
				return err
			}
			defer done()
			if asJSON {
				return writeJSON(cmd.OutOrStdout(), box.List())
			}
			return writeListing(cmd.OutOrStdout(), box.List())
		},
	}
	o.add(cmd)
	return cmd
}

// writeListing shows one tool a line.
func writeListing(w io.Writer, tools []tool.Listing) error {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, l := range tools {
		description, _, _ := strings.Cut(l.Description, "\n")
		fmt.Fprintf(tab, "%s\t%s\t%.80s\n", l.Name, strings.Join(marks(l), ", "), description)
	}
	return tab.Flush()
}

// marks are what is known of a tool, in words.
func marks(l tool.Listing) []string {
	var out []string
	for _, m := range []struct {
		set  *bool
		word string
	}{
		{l.Annotations.ReadOnly, "read-only"},
		{l.Annotations.Destructive, "destructive"},
		{l.Annotations.Idempotent, "idempotent"},
		{l.Annotations.OpenWorld, "open world"},
	} {
		if m.set != nil && *m.set {
			out = append(out, m.word)
		}
	}
	if l.Deferred {
		out = append(out, "deferred")
	}
	if l.Approval != "" {
		out = append(out, "approval "+l.Approval)
	}
	return out
}

// box are the tools that the flags mean.
func (o *toolsFlags) box() (box *tool.Box, done func(), err error) {
	if o.file == "" {
		ws, err := workspace.Open(".", workspace.Options{Shell: &workspace.Shell{Allow: shell.Any}})
		if err != nil {
			return nil, nil, failed("%w", err)
		}
		box, err := tool.NewBox(ws.Tools()...)
		if err != nil {
			return nil, nil, failed("%w", errors.Join(err, ws.Close()))
		}
		return box, func() { _ = ws.Close() }, nil
	}
	data, err := os.ReadFile(o.file)
	if err != nil {
		return nil, nil, failed("%w", err)
	}
	from, err := sourceNamed(o.from, convertibleNamed)
	if err != nil {
		return nil, nil, err
	}
	specs, _, err := lintInput(data, from)
	if err != nil {
		return nil, nil, err
	}
	var tools []tool.Tool
	for _, s := range specs {
		if s.Kind != dragoman.ToolHosted { // the provider runs it, without a policy of ours
			tools = append(tools, tool.Remote(s, func(context.Context, tool.Input) (tool.Output, error) {
				return tool.Output{}, errors.New("nothing runs here")
			}))
		}
	}
	if box, err = tool.NewBox(tools...); err != nil {
		return nil, nil, failed("%w", err)
	}
	return box, func() {}, nil
}

// whyFlags are the call and the policy.
type whyFlags struct {
	toolsFlags
	policy, args, agent string
	metadata            map[string]string
}

func newToolsWhy() *cobra.Command {
	var o whyFlags
	cmd := &cobra.Command{
		Use:   "why TOOL [--args JSON] [--policy FILE]",
		Short: "Explain what a policy decides about a call",
		Long: `Why says what a policy decides about a call, by which rule, and why the others did
not match. TOOL is the name of a tool, with its namespace before a dot if it has
one. Arguments are a JSON object, or for a tool that takes text that text; they are
checked against the tool's schema first, as they would be before the call runs.

Without --policy it is the command line's own: what may destroy something is asked
about. A policy file is like

  version: 1
  default: allow
  rules:
    - id: no-force-push
      effect: deny                     # or allow, ask, input
      reason: Do not rewrite history.
      when:
        tool: shell                    # a name, a glob, or a list of them
        expression: args.command.contains("--force")

The documentation of the package tool/policy has all of it.`,
		Example: `  dragoman tools why write_file --args '{"path":"a.txt","content":"x"}'
  dragoman tools why shell --policy policy.yaml --args '{"command":"rm -r build"}'
  dragoman tools why pay --tools tools.json --policy policy.yaml --args '{"amount":70}' --agent shop`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			asJSON, err := reportFormat(o.report)
			if err != nil {
				return err
			}
			p, err := o.rules()
			if err != nil {
				return err
			}
			box, done, err := o.box()
			if err != nil {
				return err
			}
			defer done()
			q, err := o.question(box, args[0])
			if err != nil {
				return err
			}
			e := p.Explain(cmd.Context(), q)
			if asJSON {
				return writeJSON(cmd.OutOrStdout(), e)
			}
			_, err = io.WriteString(cmd.OutOrStdout(), e.String())
			return err
		},
	}
	o.add(cmd)
	f := cmd.Flags()
	f.StringVar(&o.policy, "policy", "", "a file of rules, in YAML or JSON")
	f.StringVar(&o.args, "args", "", "the arguments of the call")
	f.StringVar(&o.agent, "agent", "", "the agents that lead to the call, with slashes between them")
	f.StringToStringVar(&o.metadata, "metadata", nil, "what the host says of the run, as name=value")
	return cmd
}

// rules are the policy that is meant.
func (o *whyFlags) rules() (p *policy.Policy, err error) {
	if o.policy == "" {
		p, err = policy.New(policy.Config{Default: policy.DefaultAskDestructive})
	} else {
		p, err = policy.Load(o.policy)
	}
	if err != nil {
		return nil, failed("%w", err)
	}
	return p, nil
}

// question is what the policy would be asked about the call.
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
			Subject: tool.SubjectToolCall, Key: tool.KeyOf(spec), Spec: spec, Settings: &tool.Settings{}, Input: in,
			Metadata: o.metadata,
		}
		if s, ok := t.(interface{ Settings() tool.Settings }); ok {
			settings := s.Settings()
			q.Settings = &settings
		}
		if o.agent != "" {
			q.Agent = strings.Split(o.agent, "/")
		}
		return q, nil
	}
	return nil, failed("there is no tool %q; there are %s", name, strings.Join(names, ", "))
}

// input is the input of the call, checked as it would be.
func (o *whyFlags) input(spec *dragoman.ToolSpec) (tool.Input, error) {
	if spec.Kind == dragoman.ToolFreeform {
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
		return tool.Input{}, failed("the arguments do not fit %s, so that no policy would be asked:\n%w", spec.QualifiedName(), err)
	}
	return tool.Input{Arguments: raw}, nil
}
