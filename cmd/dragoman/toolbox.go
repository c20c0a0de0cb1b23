package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/tool"
	"github.com/dragoman-go/dragoman/tool/workspace"
)

func newTools() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tools",
		Short: "List tools, and explain what a policy decides about a call",
		Long: `Tools lists tool definitions and explains policy decisions. It works with the tools
that come with dragoman, which read and write files in one folder and run commands in
it, or with the tools in a file of any dialect (--tools). With --mcp, it adds the accepted
tools of MCP servers from the lock file, and starts no server.`,
		Args: noSuchCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newToolsList(), newToolsWhy())
	return cmd
}

// toolsFlags holds the flags that select tools.
type toolsFlags struct {
	file, from, report string
	// mcp names the servers whose accepted tools are added.
	mcp mcpFlags
	// forRun adds the tools that "dragoman run" has in addition to those of the folder.
	forRun bool
	// allow names tools that need no approval.
	allow []string
	// config configures the toolbox.
	config tool.Config
}

func (o *toolsFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.file, "tools", "", "a file with tools, or with a request that contains tools (default: the tools that come with dragoman)")
	f.StringVar(&o.from, "from", "", "the dialect of the --tools file (default: detected)")
	o.mcp.add(cmd, "", "a file of MCP servers whose accepted tools are added, as for \"dragoman run\"")
	f.StringVar(&o.report, "report", "text", "output format: text or json")
}

// servers reads the file of MCP servers; nil without one. It starts no server.
func (o *toolsFlags) servers() (*mcpServers, error) {
	switch {
	case o.mcp.file == "" && o.mcp.lock != "":
		return nil, usageError("--lock needs --mcp")
	case o.mcp.file == "":
		return nil, nil //nolint:nilnil // no servers
	case o.file != "":
		return nil, usageError("--tools and --mcp cannot be used together")
	}
	return o.mcp.read()
}

func newToolsList() *cobra.Command {
	var o toolsFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List tools with their annotations and whether they need approval",
		Example: `  dragoman tools list
  dragoman tools list --tools tools.json --report json`,
		Args: atMost(0),
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

// writeListing prints one tool per line.
func writeListing(w io.Writer, tools []tool.Listing) error {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, l := range tools {
		description, _, _ := strings.Cut(l.Description, "\n")
		fmt.Fprintf(tab, "%s\t%s\t%s\n", l.Name, strings.Join(marks(l), ", "), cut(description, 80))
	}
	return tab.Flush()
}

// marks returns the annotations and requirements of a tool in words.
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

// box returns the tools that the flags select. The caller must call done.
func (o *toolsFlags) box() (box *tool.Box, done func(), err error) {
	servers, err := o.servers()
	if err != nil {
		return nil, nil, err
	}
	if o.file == "" {
		ws, err := workspace.Open(".", workspace.Options{NoApproval: inWorkspace(o.allow), Shell: &workspace.Shell{AllowAny: true, Scripts: true}})
		if err != nil {
			return nil, nil, failed("%w", err)
		}
		tools := ws.Tools()
		if o.forRun {
			own, _, err := readGuidance(".", false, nil)
			if err != nil {
				return nil, nil, failed("%w", errors.Join(err, ws.Close()))
			}
			tools = append(append(tools, own.skills.Tools()...), tool.ReadOutput(&tool.MemorySpill{}))
		}
		box, err := o.config.Box(append(tools, servers.tools()...)...)
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
		if s.Kind != codes.ToolHosted { // the provider runs it, so no policy applies
			tools = append(tools, tool.Remote(s, func(context.Context, tool.Input) (tool.Output, error) {
				return tool.Output{}, errors.New("this tool is only a definition and cannot run")
			}))
		}
	}
	if box, err = o.config.Box(tools...); err != nil {
		return nil, nil, failed("%w", err)
	}
	return box, func() {}, nil
}
