package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/textkit"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/provider/extension"
	"github.com/dragoman-go/dragoman/session"
)

// actionFlags are the flags of sessions actions and sessions run-action.
type actionFlags struct {
	sessionsFlags
	model string
}

func (o *actionFlags) add(cmd *cobra.Command) {
	o.sessionsFlags.add(cmd, true)
	cmd.Flags().StringVar(&o.model, "model", "", `the model whose extensions to use, as "provider/model" or an alias; of a comma-separated list, the one that responded last is used (default: the session's last model)`)
}

// open opens the model whose extensions act on a session. Of a list of models, it opens the
// one that gave the last response.
func (o *actionFlags) open(ctx context.Context, s *session.Session) (dragoman.Model, error) {
	spec := o.model
	if spec == "" {
		meta, err := readRunMeta(ctx, s)
		if err != nil {
			return nil, err
		}
		if spec, err = lastModel(ctx, s, meta); err != nil {
			return nil, err
		}
	}
	spec, _, err := pickModel(spec, os.Getenv)
	if err != nil {
		return nil, err
	}
	config, err := provider.Default()
	if err != nil {
		return nil, err
	}
	m, err := config.Open(spec)
	if err != nil {
		return nil, err
	}
	m, err = s.ActionModel(ctx, m, "")
	if errors.Is(err, session.ErrNoWire) {
		return nil, fmt.Errorf("model %s has no extensions and so no actions: use --model to name another model, such as anthropic/claude-opus-5-5", spec)
	}
	return m, err
}

// actionReport is an action as JSON. docs/command.md describes it.
type actionReport struct {
	Extension   string          `json:"extension"`
	ID          string          `json:"id"`
	Label       string          `json:"label"`
	Description string          `json:"description,omitempty"`
	Inputs      json.RawMessage `json:"inputs,omitempty"`
	Triggers    []string        `json:"triggers,omitempty"`
}

func newSessionsActions() *cobra.Command {
	var o actionFlags
	cmd := &cobra.Command{
		Use:   "actions SESSION",
		Short: "List the actions that can run on a session",
		Long: `Actions lists the actions that a model's extensions offer for a session, such as
compacting the history that is sent to the model. "dragoman sessions run-action" runs an
action. Actions with a trigger also run automatically, for example before each save.

For a list of models, such as openai/gpt-5.1,anthropic/claude-opus-5-5, the extensions of
the model that gave the last response are used.`,
		Example: `  dragoman sessions actions trip --model anthropic/claude-opus-5-5
  dragoman sessions actions trip --model openai/gpt-5.1 --json`,
		Args: arguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.withSession(cmd, args[0], func(ctx context.Context, _ session.Store, s *session.Session) error {
				model, err := o.open(ctx, s)
				if err != nil {
					return err
				}
				actions, err := s.Actions(ctx, model, "")
				if err != nil {
					return err
				}
				if o.json {
					list := []actionReport{}
					for _, a := range actions {
						list = append(list, actionReport{a.Extension, a.ID, a.Label, a.Description, a.Inputs, a.Triggers})
					}
					return writeJSON(cmd.OutOrStdout(), list)
				}
				tab := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
				fmt.Fprintln(tab, "ACTION\tEXTENSION\tRUNS AT\tPARAMETERS\tDESCRIPTION")
				for _, a := range actions {
					fmt.Fprintf(tab, "%s\t%s\t%s\t%s\t%s\n", a.ID, a.Extension, orDash(strings.Join(a.Triggers, ", ")), orDash(strings.Join(inputNames(a.Inputs), ", ")), cut(a.Description, 80))
				}
				return tab.Flush()
			})
		},
	}
	o.add(cmd)
	return cmd
}

// inputNames returns the names of an action's parameters, in the order of its schema.
func inputNames(schema json.RawMessage) (names []string) {
	o, err := extension.NewObject(schema)
	if err != nil {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(o.Get("properties")))
	if _, err := dec.Token(); err != nil {
		return nil
	}
	for dec.More() {
		name, err := dec.Token()
		var value json.RawMessage
		if err != nil || dec.Decode(&value) != nil {
			return names
		}
		names = append(names, fmt.Sprint(name))
	}
	return names
}

// actionRunReport reports the effect of an action as JSON. docs/command.md describes it.
type actionRunReport struct {
	Session   string `json:"session"`
	Extension string `json:"extension"`
	Action    string `json:"action"`
	Model     string `json:"model"`
	// Before and After are the numbers of messages sent to the model.
	Before   int                        `json:"before"`
	After    int                        `json:"after"`
	Metadata map[string]json.RawMessage `json:"metadata"`
}

func newSessionsRunAction() *cobra.Command {
	var o actionFlags
	var params []string
	var whole string
	cmd := &cobra.Command{
		Use:   "run-action SESSION ACTION",
		Short: "Run an action of an extension on a session",
		Long: `Run-action runs one of the actions that "dragoman sessions actions" lists. An action
changes the history that is sent to the model. It does not change the stored
conversation: "dragoman sessions show" still shows all of it. For a list of models, it
changes the history of the model that gave the last response; --model selects another.

A parameter has the form NAME=VALUE. VALUE is JSON; if it is not valid JSON, it is taken
as a string. --params sets all parameters with one JSON object. If several extensions
have an action of the same name, write EXTENSION/ACTION.

If you set the parameter instructions, the action compact_native_history asks the model
to summarize the messages that it removes: --param instructions="Keep the prices."`,
		Example: `  dragoman sessions run-action trip compact_native_history --param keep=10 --model openai/gpt-5.1 --json
  dragoman sessions run-action trip dragoman.compact/compact_native_history --params '{"keep":4}' --model anthropic/claude-opus-5-5 --json`,
		Args: arguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			object, err := actionParams(params, whole)
			if err != nil {
				return err
			}
			return o.withSession(cmd, args[0], func(ctx context.Context, _ session.Store, s *session.Session) error {
				return o.runAction(ctx, cmd, s, args[1], object)
			})
		},
	}
	o.add(cmd)
	cmd.Flags().StringArrayVar(&params, "param", nil, "a parameter, as NAME=VALUE; may be repeated")
	cmd.Flags().StringVar(&whole, "params", "", "all parameters, as one JSON object")
	return cmd
}

func (o *actionFlags) runAction(ctx context.Context, cmd *cobra.Command, s *session.Session, name string, params json.RawMessage) error {
	model, err := o.open(ctx, s)
	if err != nil {
		return err
	}
	sent := func() (int, error) {
		ms, err := s.MessagesForModel(ctx, model, "")
		return len(ms), err
	}
	a := session.Action{ID: name, Params: params}
	if owner, id, named := strings.Cut(name, "/"); named {
		a.Extension, a.ID = owner, id
	}
	s.ActionContext = session.ActionContext{
		App: json.RawMessage(`{"name":"dragoman","command":"sessions run-action"}`),
		Log: slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil)),
	}
	before, err := sent()
	if err != nil {
		return err
	}
	if err := s.Act(ctx, model, a); err != nil {
		if errors.Is(err, extension.ErrNoAction) {
			return noSuchAction(ctx, s, model, a.ID, err)
		}
		return err
	}
	r := actionRunReport{Session: s.ID(), Extension: a.Extension, Action: a.ID, Model: fmt.Sprint(model), Before: before}
	if r.After, err = sent(); err != nil {
		return err
	}
	if r.Metadata, err = s.Metadata(ctx); err != nil {
		return err
	}
	if r.Extension == "" {
		actions, err := s.Actions(ctx, model, "")
		if err != nil {
			return err
		}
		for _, known := range actions {
			if known.ID == a.ID {
				r.Extension = known.Extension
			}
		}
	}
	if o.json {
		return writeJSON(cmd.OutOrStdout(), r)
	}
	_, err = fmt.Fprintf(cmd.ErrOrStderr(), "Ran %s on session %s: %s now gets %d messages, before it was %d.\n", r.Action, r.Session, printable(r.Model), r.After, r.Before)
	return err
}

// noSuchAction returns the error for an unknown action, with a suggestion.
func noSuchAction(ctx context.Context, s *session.Session, model dragoman.Model, id string, err error) error {
	actions, listed := s.Actions(ctx, model, "")
	if listed != nil {
		return err
	}
	var ids []string
	for _, a := range actions {
		ids = append(ids, a.ID)
	}
	hint := textkit.Suggest(id, ids)
	if hint == "" {
		hint = fmt.Sprintf(`: "dragoman sessions actions %s" lists the known actions`, s.ID())
	}
	return failed("unknown action %q%s", id, hint)
}

// actionParams returns the parameters as one JSON object, or nil if none were given.
func actionParams(params []string, whole string) (json.RawMessage, error) {
	if whole == "" && len(params) == 0 {
		return nil, nil
	}
	var o extension.Object
	if whole != "" {
		var err error
		if o, err = extension.NewObject(json.RawMessage(whole)); err != nil {
			return nil, usageError(`--params is not a JSON object: %v; write --params '{"keep":10}'`, err)
		}
	}
	for _, p := range params {
		name, value, ok := strings.Cut(p, "=")
		if !ok || name == "" {
			return nil, usageError("--param %q is not NAME=VALUE, such as keep=10", p)
		}
		raw := json.RawMessage(value)
		if !json.Valid(raw) {
			raw, _ = json.Marshal(value) // marshaling a string cannot fail
		}
		if err := o.Set("/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(name), raw); err != nil {
			return nil, usageError("--param %q: %v", p, err)
		}
	}
	return o.JSON(), nil
}
