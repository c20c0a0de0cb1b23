package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/dragoman-go/dragoman/internal/textkit"
	"github.com/dragoman-go/dragoman/mcp"
)

func newMCPShow() *cobra.Command {
	var files mcpFlags
	var report string
	cmd := &cobra.Command{
		Use:   "show SERVER",
		Short: "Connect to a server, and show its tools in full",
		Long: `Show connects to a server and shows its tools: whether they are accepted or held and why,
their annotations, whether calls need approval, suspicious texts, and all of their texts
and schemas as the server sent them. Invisible characters are escaped. Annotations are
claims of the server; they only count if the server file sets "trusted".`,
		Example: `  dragoman mcp show files`,
		Args:    arguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			asJSON, err := reportFormat(report)
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			s, err := files.read()
			if err != nil {
				return err
			}
			servers, st, err := s.open(ctx, mcp.Options{}, args[0])
			if err != nil {
				return err
			}
			defer closeServers(servers)
			tools, err := servers.Describe(args[0])
			if err != nil {
				return failed("%w", err)
			}
			if asJSON {
				return writeJSON(cmd.OutOrStdout(), shownServer{
					Server: st.Server, State: st.State, Revision: st.Revision, Name: st.Name, Version: st.Version, Instructions: st.Instructions,
					Notes: st.Notes, Tools: tools,
				})
			}
			_, err = io.WriteString(cmd.OutOrStdout(), showServer(st, tools)+s.nextStep(st.Server, tools))
			return err
		},
	}
	files.add(cmd, serverFile, "the server file")
	cmd.Flags().StringVar(&report, "report", "text", "output format: text or json")
	return cmd
}

// shownServer is a server in the JSON of show. Its texts are those of the server.
type shownServer struct {
	Server       string         `json:"server"`
	State        string         `json:"state"`
	Revision     string         `json:"revision,omitempty"`
	Name         string         `json:"name,omitempty"`
	Version      string         `json:"version,omitempty"`
	Instructions string         `json:"instructions,omitempty"`
	Notes        []string       `json:"notes,omitempty"`
	Tools        []mcp.ToolInfo `json:"tools"`
}

// open connects to one server of the file. A server that is not ready is an error.
func (s *mcpServers) open(ctx context.Context, o mcp.Options, name string) (*mcp.Servers, mcp.Status, error) {
	server, err := s.find(name)
	if err != nil {
		return nil, mcp.Status{}, err
	}
	if server.Disabled {
		return nil, mcp.Status{}, failed("server %q is disabled in %s", name, s.flags.file)
	}
	servers, err := s.connect(ctx, o, s.onlyWith(server)...)
	if err != nil {
		return nil, mcp.Status{}, err
	}
	for _, st := range servers.Status() {
		if st.Server == name && st.State == mcp.StateReady {
			return servers, st, nil
		} else if st.Server == name {
			closeServers(servers)
			return nil, st, failed("%s", s.serverProblem(st))
		}
	}
	closeServers(servers)
	return nil, mcp.Status{}, failed("server %q is missing", name)
}

// onlyWith returns all servers, with those disabled that are not named: the accepted tools of
// the others count in the search for imitations.
func (s *mcpServers) onlyWith(servers ...mcp.Server) []mcp.Server {
	list := slices.Clone(s.list)
	for i := range list {
		list[i].Disabled = !slices.ContainsFunc(servers, func(o mcp.Server) bool { return o.Name == list[i].Name }) || list[i].Disabled
	}
	return list
}

// showServer describes a server in full.
func showServer(st mcp.Status, tools []mcp.ToolInfo) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s, revision %s", textkit.Visible(st.Server), st.State, textkit.Visible(st.Revision))
	if st.Name != "" {
		fmt.Fprintf(&b, ", calls itself %s", cut(strings.TrimSpace(st.Name+" "+st.Version), 80))
	}
	b.WriteByte('\n')
	if st.Instructions != "" {
		b.WriteString("instructions of the server, which models do not get:\n" + visibleText("    | ", st.Instructions))
	}
	for _, n := range st.Notes {
		b.WriteString("note: " + textkit.Visible(n) + "\n")
	}
	for i := range tools {
		b.WriteString("\n" + showTool(&tools[i]))
	}
	return b.String()
}

// showTool describes a tool in full: the status, then what the server sent.
func showTool(t *mcp.ToolInfo) string {
	var b strings.Builder
	status := t.ToolStatus
	status.Description = "" // follows with the other texts
	head, rest, _ := strings.Cut(status.Text(), "\n")
	b.WriteString(head + "\n")
	if t.Name != t.Tool {
		fmt.Fprintf(&b, "    models call it %s\n", textkit.Visible(t.Name))
	}
	var words []string
	for _, a := range []struct {
		set  *bool
		word string
	}{
		{t.Spec.Annotations.ReadOnly, "read-only"},
		{t.Spec.Annotations.Destructive, "destructive"},
		{t.Spec.Annotations.Idempotent, "idempotent"},
		{t.Spec.Annotations.OpenWorld, "open world"},
	} {
		if a.set != nil {
			words = append(words, fmt.Sprintf("%s: %s", a.word, map[bool]string{true: "yes", false: "no"}[*a.set]))
		}
	}
	if len(words) > 0 {
		fmt.Fprintf(&b, "    annotations: %s\n", strings.Join(words, ", "))
	}
	switch {
	case t.Hidden:
		b.WriteString("    models do not get it: it is for the user interface of the server\n")
	case t.Approval:
		b.WriteString("    calls need approval\n")
	default:
		b.WriteString("    calls run without approval\n")
	}
	b.WriteString(rest)
	if t.Spec.Source != nil {
		var text bytes.Buffer
		if json.Indent(&text, t.Spec.Source.JSON, "", "  ") == nil {
			b.WriteString("    definition:\n" + visibleText("    | ", text.String()))
		}
	}
	return b.String()
}

// nextStep names the command that accepts what is held; "" if nothing is.
func (s *mcpServers) nextStep(server string, tools []mcp.ToolInfo) string {
	var blocked []string
	held := 0
	for i := range tools {
		if !tools[i].Held() {
			continue
		}
		held++
		if tools[i].Blocked() {
			blocked = append(blocked, quoteArg(textkit.Visible(tools[i].Tool)))
		}
	}
	if held == 0 {
		return ""
	}
	text := fmt.Sprintf("\n%s held. Accept with: dragoman mcp accept %s%s\n", plural(held, "tool", "tools"), quoteArg(textkit.Visible(server)), s.flags.given())
	if len(blocked) > 0 {
		text += fmt.Sprintf("%s must be accepted by name, because of what was found: dragoman mcp accept %s %s%s\n",
			plural(len(blocked), "of them", "of them"), quoteArg(textkit.Visible(server)), strings.Join(blocked, " "), s.flags.given())
	}
	return text
}

func newMCPAccept() *cobra.Command {
	var files mcpFlags
	var all, dryRun bool
	var report string
	cmd := &cobra.Command{
		Use:   "accept SERVER [TOOL...] | accept --all",
		Short: "Accept the tools of a server, so that models may use them",
		Long: `Accept connects to a server, shows the tools that are new or changed with all differences,
and accepts their definitions in the lock file. It asks nothing: to only see what would be
accepted, use --dry-run, and "dragoman mcp show" for the full texts.

Without TOOL, accept accepts all tools of the server, except those with a text that looks
like an attack: name such a tool to accept it. Tools that the server no longer lists are
removed from the lock file. --all accepts the tools of all servers of the file.

Accepting a tool lets models see and call it. Calls still need the approval that "dragoman
run" asks for.

The exit code is 4 if tools are still held, and 1 if a server could not be connected.`,
		Example: `  dragoman mcp accept files
  dragoman mcp accept files read_file
  dragoman mcp accept --all`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case all && len(args) > 0:
				return usageError("--all and SERVER cannot be used together")
			case !all && len(args) == 0:
				return usageError("SERVER is missing: dragoman mcp accept SERVER [TOOL...], or dragoman mcp accept --all")
			}
			asJSON, err := reportFormat(report)
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			s, err := files.read()
			if err != nil {
				return err
			}
			a := acceptance{mcpServers: s, dryRun: dryRun}
			if all {
				err = a.acceptAll(ctx)
			} else {
				err = a.acceptOne(ctx, args[0], args[1:])
			}
			if err != nil {
				return err
			}
			if asJSON {
				if err := writeJSON(cmd.OutOrStdout(), a.results); err != nil {
					return err
				}
			} else {
				for i := range a.results {
					if _, err := io.WriteString(cmd.OutOrStdout(), a.text(&a.results[i])); err != nil {
						return err
					}
				}
			}
			return a.ended(asJSON)
		},
	}
	files.add(cmd, serverFile, "the server file")
	f := cmd.Flags()
	f.BoolVar(&all, "all", false, "accept the tools of all servers")
	f.BoolVar(&dryRun, "dry-run", false, "show what would be accepted, and accept nothing")
	f.StringVar(&report, "report", "text", "output format: text or json")
	return cmd
}

// acceptance is a run of accept.
type acceptance struct {
	*mcpServers
	dryRun  bool
	results []acceptedServer
}

// acceptedServer is a server in the JSON of accept.
type acceptedServer struct {
	Server string `json:"server"`
	// Accepted are the tools that were accepted now, with what changed, Held those that are
	// still held, and Removed those that the server no longer lists.
	Accepted []mcp.ToolStatus `json:"accepted"`
	Held     []mcp.ToolStatus `json:"held,omitempty"`
	Removed  []string         `json:"removed,omitempty"`
	// Unchanged is the number of tools that were accepted before.
	Unchanged int    `json:"unchanged"`
	Error     string `json:"error,omitempty"`
}

func (a *acceptance) acceptOne(ctx context.Context, name string, tools []string) error {
	servers, _, err := a.open(ctx, mcp.Options{}, name)
	if err != nil {
		return err
	}
	defer closeServers(servers)
	if err := a.take(servers, name, tools); err != nil {
		return err
	}
	return a.save()
}

func (a *acceptance) acceptAll(ctx context.Context) error {
	if len(a.list) == 0 && len(a.broken) == 0 {
		return failed("%s has no servers: add one with \"dragoman mcp add\"", a.flags.file)
	}
	for _, b := range a.broken {
		a.results = append(a.results, acceptedServer{Server: b.Server, Accepted: []mcp.ToolStatus{}, Error: message(b)})
	}
	servers, err := a.connect(ctx, mcp.Options{}, a.list...)
	if err != nil {
		return err
	}
	defer closeServers(servers)
	for _, st := range servers.Status() {
		switch st.State {
		case mcp.StateDisabled:
		case mcp.StateReady:
			if err := a.take(servers, st.Server, nil); err != nil {
				return err
			}
		default:
			a.results = append(a.results, acceptedServer{Server: st.Server, Accepted: []mcp.ToolStatus{}, Error: a.serverProblem(st)})
		}
	}
	return a.save()
}

// take accepts tools of a connected server in memory: those named, or all that are not blocked.
func (a *acceptance) take(servers *mcp.Servers, name string, named []string) error {
	tools, err := servers.Describe(name)
	if err != nil {
		return failed("%w", err)
	}
	var names []string
	for i := range tools {
		names = append(names, tools[i].Tool)
	}
	for _, n := range named {
		if !slices.Contains(names, n) {
			return failed("server %q lists no tool %q%s", name, n, textkit.Suggest(n, names))
		}
	}
	r := acceptedServer{Server: name, Accepted: []mcp.ToolStatus{}}
	var take []string
	for i := range tools {
		t := &tools[i]
		switch {
		case !t.Held():
			r.Unchanged++
		case len(named) > 0 && slices.Contains(named, t.Tool), len(named) == 0 && !t.Blocked():
			r.Accepted, take = append(r.Accepted, t.ToolStatus), append(take, t.Tool)
		default:
			r.Held = append(r.Held, t.ToolStatus)
		}
	}
	for _, st := range a.lock.Status(name) {
		if st.State == mcp.ToolMissing && len(named) == 0 {
			r.Removed = append(r.Removed, st.Tool)
		}
	}
	a.results = append(a.results, r)
	if a.dryRun {
		return nil
	}
	if len(take) > 0 {
		if err := a.lock.Accept(name, take...); err != nil {
			return failed("%w", err)
		}
	}
	if len(r.Removed) > 0 {
		a.lock.Remove(name, r.Removed...)
	}
	return nil
}

func (a *acceptance) save() error {
	if a.dryRun {
		return nil
	}
	if err := a.lock.Save(); err != nil {
		return failed("%w", err)
	}
	return nil
}

// text describes what was accepted from a server.
func (a *acceptance) text(r *acceptedServer) string {
	var b strings.Builder
	server := textkit.Visible(r.Server)
	if r.Error != "" {
		return fmt.Sprintf("%s: not connected: %s\n", server, printable(r.Error))
	}
	for i := range r.Accepted {
		b.WriteString(r.Accepted[i].Text())
	}
	for _, name := range r.Removed {
		b.WriteString(textkit.Visible(name) + ": no longer listed by the server\n")
	}
	verb := "accepted in " + printable(a.flags.lockPath())
	if a.dryRun {
		verb = "would be accepted"
	}
	fmt.Fprintf(&b, "%s: %s %s", server, plural(len(r.Accepted), "tool", "tools"), verb)
	if r.Unchanged > 0 {
		fmt.Fprintf(&b, ", %d accepted before", r.Unchanged)
	}
	if len(r.Removed) > 0 {
		fmt.Fprintf(&b, ", %d removed", len(r.Removed))
	}
	b.WriteString(".\n")
	if len(r.Held) > 0 {
		b.WriteString("Held:\n")
		var names []string
		for i := range r.Held {
			b.WriteString(visibleHeld(&r.Held[i]))
			names = append(names, quoteArg(textkit.Visible(r.Held[i].Tool)))
		}
		fmt.Fprintf(&b, "Accept them by name with: dragoman mcp accept %s %s%s\n", quoteArg(server), strings.Join(names, " "), a.flags.given())
	}
	return b.String()
}

// visibleHeld describes a held tool, indented: in full if a finding holds it.
func visibleHeld(t *mcp.ToolStatus) string {
	var b strings.Builder
	if !t.Blocked() {
		return "  " + t.String() + "\n"
	}
	for line := range strings.Lines(t.Text()) {
		b.WriteString("  " + line)
	}
	return b.String()
}

// ended returns the error for the exit code.
func (a *acceptance) ended(reported bool) error {
	held, failures := 0, 0
	for _, r := range a.results {
		held += len(r.Held)
		if r.Error != "" {
			failures++
		}
	}
	var err *exitError
	switch {
	case failures > 0:
		err = &exitError{exitFailed, fmt.Errorf("%s could not be connected", plural(failures, "server", "servers"))}
	case held > 0:
		err = &exitError{exitUnattended, fmt.Errorf("%s still held", plural(held, "tool is", "tools are"))}
	default:
		return nil
	}
	if reported {
		err.err = nil
	}
	return err
}
