package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/textkit"
	"github.com/dragoman-go/dragoman/mcp"
	"github.com/dragoman-go/dragoman/tool"
	"github.com/dragoman-go/dragoman/tool/policy"
)

func newMCPTest() *cobra.Command {
	var files mcpFlags
	var args, report string
	cmd := &cobra.Command{
		Use:   "test SERVER [TOOL]",
		Short: "Connect to a server, and call one of its tools",
		Long: `Test connects to a server and shows its revision, transport, capabilities and tools, and
how long that took. With TOOL it calls an accepted tool with the arguments of --args, with
the checks and limits of "dragoman run". This command line is the approval of the call;
questions of the server during the call are asked at the terminal, and declined without
one. TOOL is the name at the server, or the one that models use.

The exit code is 1 if the server cannot be used or the call fails.`,
		Example: `  dragoman mcp test files
  dragoman mcp test files list_files --args '{"path":"."}'`,
		Args: arguments,
		RunE: func(cmd *cobra.Command, words []string) error {
			asJSON, err := reportFormat(report)
			if err != nil {
				return err
			}
			if len(words) == 1 && cmd.Flags().Changed("args") {
				return usageError("--args needs a TOOL")
			}
			if p := dragoman.CheckArguments(args); p != nil {
				return usageError("--args: %s", p.Message)
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			s, err := files.read()
			if err != nil {
				return err
			}
			run := runFlags{json: asJSON} // for its terminal
			answers, hangUp := run.openTerminal(cmd)
			defer hangUp()
			start := time.Now()
			servers, st, err := s.open(ctx, mcp.Options{}, words[0])
			if err != nil {
				return err
			}
			defer closeServers(servers)
			took := time.Since(start)
			tools, err := servers.Describe(words[0])
			if err != nil {
				return failed("%w", err)
			}
			server, err := s.find(words[0])
			if err != nil {
				return err
			}
			r := testedServer{
				Server: st.Server, Revision: st.Revision, Transport: transportOf(server), Name: st.Name, Version: st.Version,
				Capabilities: st.Capabilities, Milliseconds: took.Milliseconds(), Notes: st.Notes,
			}
			for i := range tools {
				if tools[i].Held() {
					r.Held = append(r.Held, tools[i].Tool)
				} else {
					r.Accepted = append(r.Accepted, tools[i].Tool)
				}
			}
			if !asJSON {
				if _, err := io.WriteString(cmd.OutOrStdout(), r.text(st)); err != nil {
					return err
				}
			}
			if len(words) == 2 {
				var approver tool.Approver = policy.ApproverFunc(approveTyped)
				if answers != nil {
					approver = policy.First(approver, policy.NewPrompt(answers, cmd.ErrOrStderr()))
				}
				if r.Call, err = s.call(ctx, servers, approver, tools, words[0], words[1], args); err != nil {
					return err
				}
			}
			if asJSON {
				if err := writeJSON(cmd.OutOrStdout(), r); err != nil {
					return err
				}
			} else if r.Call != nil {
				fmt.Fprintf(cmd.OutOrStdout(), "%s returned after %d ms:\n%s\n", textkit.Visible(r.Call.Tool), r.Call.Milliseconds, printable(r.Call.Text))
			}
			switch {
			case r.Call == nil || r.Call.OK:
				return nil
			case asJSON:
				return &exitError{code: exitFailed}
			default:
				return failed("the call failed")
			}
		},
	}
	files.add(cmd, serverFile, "the server file")
	cmd.Flags().StringVar(&args, "args", "", "the arguments of the call, a JSON object")
	cmd.Flags().StringVar(&report, "report", "text", "output format: text or json")
	return cmd
}

// approveTyped approves the call of the command line, but answers no question of the server.
func approveTyped(_ context.Context, req *tool.ApprovalRequest) (tool.Answer, error) {
	if req.Wanted != nil {
		return tool.Answer{}, nil
	}
	return tool.Answer{Verdict: tool.Approved}, nil
}

// testedServer is a server in the JSON of test.
type testedServer struct {
	Server       string          `json:"server"`
	Revision     string          `json:"revision"`
	Transport    string          `json:"transport"`
	Name         string          `json:"name,omitempty"`
	Version      string          `json:"version,omitempty"`
	Capabilities json.RawMessage `json:"capabilities,omitempty"`
	// Milliseconds is the time until the tools were listed.
	Milliseconds int64       `json:"milliseconds"`
	Accepted     []string    `json:"accepted,omitempty"`
	Held         []string    `json:"held,omitempty"`
	Notes        []string    `json:"notes,omitempty"`
	Call         *testedCall `json:"call,omitempty"`
}

// testedCall is a call in the JSON of test.
type testedCall struct {
	Tool         string `json:"tool"`
	OK           bool   `json:"ok"`
	Text         string `json:"text"`
	Milliseconds int64  `json:"milliseconds"`
}

func (r *testedServer) text(st mcp.Status) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: ready after %d ms, over %s, revision %s", textkit.Visible(r.Server), r.Milliseconds, r.Transport, textkit.Visible(r.Revision))
	if r.Name != "" {
		fmt.Fprintf(&b, ", calls itself %s", cut(strings.TrimSpace(r.Name+" "+r.Version), 80))
	}
	fmt.Fprintf(&b, "\ncapabilities: %s\n", capabilitiesOf(st))
	names := func(label string, list []string) {
		if len(list) > 0 {
			fmt.Fprintf(&b, "%s: %s\n", label, textkit.Visible(strings.Join(list, ", ")))
		}
	}
	names("accepted tools", r.Accepted)
	names("held tools", r.Held)
	if len(r.Accepted)+len(r.Held) == 0 {
		b.WriteString("no tools\n")
	}
	for _, n := range r.Notes {
		b.WriteString("note: " + textkit.Visible(n) + "\n")
	}
	return b.String()
}

// call calls a tool with the pipeline of a run.
func (s *mcpServers) call(ctx context.Context, servers *mcp.Servers, approver tool.Approver, tools []mcp.ToolInfo, server, name, args string) (*testedCall, error) {
	var names []string
	var info *mcp.ToolInfo
	for i := range tools {
		names = append(names, tools[i].Tool)
		if tools[i].Tool == name || info == nil && tools[i].Name == name {
			info = &tools[i]
		}
	}
	switch {
	case info == nil:
		return nil, failed("server %q has no tool %q%s", server, name, textkit.Suggest(name, names))
	case info.Held():
		return nil, failed("%s of server %q is held; accept it with: dragoman mcp accept %s %s%s", name, server, quoteArg(server), quoteArg(name), s.flags.given())
	}
	box, err := tool.NewBox(servers.Tools()...)
	if err != nil {
		return nil, failed("%w", err)
	}
	runner := &tool.Runner{Approver: approver, Spill: &tool.MemorySpill{}}
	c := &dragoman.ToolCall{ID: "test", Name: info.Spec.Name, Namespace: info.Spec.Namespace, Arguments: args}
	start := time.Now()
	batch, err := runner.Start("test").Do(ctx, box, tool.Turn{Number: 1, Calls: []*dragoman.ToolCall{c}})
	if err != nil {
		return nil, failed("%w", err)
	}
	out := &testedCall{Tool: info.Tool, Milliseconds: time.Since(start).Milliseconds()}
	if i := slices.IndexFunc(batch.Pending, func(p tool.Pending) bool { return p.Binding.CallID == c.ID }); i >= 0 || len(batch.Records) == 0 {
		out.Text = "The server asks a question, and there is no terminal to answer it."
		return out, nil
	}
	rec := &batch.Records[0]
	out.OK, out.Text = rec.OK, rec.Plain
	if !rec.OK {
		out.Text = rec.Error
	}
	return out, nil
}
