package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/dragoman-go/dragoman/internal/textkit"
	"github.com/dragoman-go/dragoman/mcp"
)

func newMCPAdd() *cobra.Command {
	var files mcpFlags
	var headers, env map[string]string
	cmd := &cobra.Command{
		Use:   "add NAME URL | add NAME -- COMMAND [ARGS...]",
		Short: "Add a server to the server file",
		Long: `Add adds a server to the server file, and leaves the rest of the file unchanged. A missing
file is created. Add starts nothing, and contacts nothing.

Keep secrets out of the file: write them as variables of the environment, such as
--header 'Authorization=Bearer ${TOKEN}' or --env 'API_KEY=${API_KEY}'. A server that
uses OAuth needs neither: see "dragoman mcp login".

A program gets a small environment: PATH, HOME and the like, and the variables of --env.`,
		Example: `  dragoman mcp add folder -- dragoman mcp serve
  dragoman mcp add docs https://mcp.example.com/mcp --header 'Authorization=Bearer ${DOCS_TOKEN}'`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			server, err := serverOf(args, cmd.ArgsLenAtDash())
			if err != nil {
				return err
			}
			server.Headers, server.Env = headers, env
			switch {
			case server.URL == "" && len(headers) > 0:
				return usageError("--header can only be used with a URL")
			case server.URL != "" && len(env) > 0:
				return usageError("--env can only be used with a command")
			}
			if err := mcp.AddToConfig(files.file, server); err != nil {
				return failed("%w", err)
			}
			name := textkit.Visible(server.Name)
			fmt.Fprintf(cmd.OutOrStdout(), "Added server %s to %s.\nAccept its tools with: dragoman mcp accept %s%s\n", name, printable(files.file), quoteArg(name), files.given())
			return nil
		},
	}
	files.add(cmd, serverFile, "the server file")
	f := cmd.Flags()
	f.StringToStringVar(&headers, "header", nil, "a header of every request to the URL, as name=value; may be repeated")
	f.StringToStringVar(&env, "env", nil, "a variable of the environment of the command, as name=value; may be repeated")
	return cmd
}

// serverOf returns the server that the arguments of add describe. dash is the number of
// arguments before "--", or -1.
func serverOf(args []string, dash int) (mcp.Server, error) {
	const usage = "dragoman mcp add NAME URL, or dragoman mcp add NAME -- COMMAND [ARGS...]"
	switch {
	case len(args) == 0 || dash == 0:
		return mcp.Server{}, usageError("NAME is missing: %s", usage)
	case dash > 1:
		return mcp.Server{}, usageError("unexpected argument %q: %s", args[1], usage)
	case dash == 1 && len(args) == 1:
		return mcp.Server{}, usageError("COMMAND is missing: %s", usage)
	case dash == 1:
		return mcp.Stdio(args[1], args[2:]...).As(args[0]), nil
	case len(args) == 1:
		return mcp.Server{}, usageError("URL is missing: %s", usage)
	case !isURL(args[1]):
		return mcp.Server{}, usageError("%q is not a URL of http or https; for a command, write -- before it: dragoman mcp add %s -- %s", args[1], quoteArg(args[0]), strings.Join(args[1:], " "))
	case len(args) > 2:
		return mcp.Server{}, usageError("unexpected argument %q: %s", args[2], usage)
	}
	return mcp.HTTP(args[1]).As(args[0]), nil
}

// isURL reports whether an argument is a URL and not the name of a server.
func isURL(s string) bool {
	return strings.HasPrefix(s, "https://") || strings.HasPrefix(s, "http://")
}

func newMCPRemove() *cobra.Command {
	var files mcpFlags
	cmd := &cobra.Command{
		Use:     "remove SERVER",
		Short:   "Remove a server from the server file, and its tools from the lock file",
		Example: `  dragoman mcp remove folder`,
		Args:    arguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			name := args[0]
			lock, err := mcp.OpenLock(files.lockPath())
			if err != nil {
				return failed("%w", err)
			}
			if err := mcp.RemoveFromConfig(files.file, name); err != nil {
				return failed("%w", err)
			}
			what := "Removed server %s from %s.\n"
			if slices.Contains(lock.Servers(), name) {
				lock.Remove(name)
				if err := lock.Save(); err != nil {
					return failed("the server was removed from %s, but its tools are still accepted: %w", files.file, err)
				}
				what = "Removed server %s from %s, and its accepted tools.\n"
			}
			fmt.Fprintf(cmd.OutOrStdout(), what, textkit.Visible(name), printable(files.file))
			return nil
		},
	}
	files.add(cmd, serverFile, "the server file")
	return cmd
}

func newMCPList() *cobra.Command {
	var files mcpFlags
	var connect bool
	var report string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the servers of the server file",
		Long: `List shows the servers of the server file and how many of their tools are accepted. It
starts nothing, and contacts nothing. With --connect it connects to all servers, and also
shows their state and the tools that are held.`,
		Example: `  dragoman mcp list
  dragoman mcp list --connect --report json`,
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
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
			rows, err := s.rows(ctx, connect)
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(cmd.OutOrStdout(), rows)
			}
			for _, n := range s.notes {
				fmt.Fprintf(cmd.ErrOrStderr(), "%s\n", printable(n))
			}
			if len(rows) == 0 {
				fmt.Fprintf(cmd.OutOrStdout(), "%s has no servers: add one with \"dragoman mcp add\".\n", printable(files.file))
				return nil
			}
			return writeServers(cmd.OutOrStdout(), rows)
		},
	}
	files.add(cmd, serverFile, "the server file")
	cmd.Flags().BoolVar(&connect, "connect", false, "connect to the servers")
	cmd.Flags().StringVar(&report, "report", "text", "output format: text or json")
	return cmd
}

// listedServer is a server in the JSON of list.
type listedServer struct {
	Server    string `json:"server"`
	Transport string `json:"transport,omitempty"`
	// Address is the command or the URL as the file has it, without the values of variables.
	Address string `json:"address,omitempty"`
	// State is the state of the connection, or "disabled", "invalid" or "changed"; empty if the server
	// was not connected.
	State    string   `json:"state,omitempty"`
	Accepted int      `json:"accepted"`
	Held     []string `json:"held,omitempty"`
	Revision string   `json:"revision,omitempty"`
	Error    string   `json:"error,omitempty"`
}

// The states of servers in lists, besides those of connections.
const (
	stateInvalid = "invalid"
	stateChanged = "changed"
)

// writeServers prints one server per line, and its error below it.
func writeServers(w io.Writer, rows []listedServer) error {
	var table strings.Builder
	tab := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		fmt.Fprintf(tab, "%s\t%s\t%s\t%s\n", textkit.Visible(r.Server), r.Transport, textkit.Visible(r.words()), cut(r.Address, 80))
	}
	if err := tab.Flush(); err != nil {
		return err
	}
	i := 0
	for line := range strings.Lines(table.String()) {
		if i < len(rows) && rows[i].Error != "" {
			line += "    " + strings.ReplaceAll(printable(rows[i].Error), "\n", "\n    ") + "\n"
		}
		if _, err := io.WriteString(w, line); err != nil {
			return err
		}
		i++
	}
	return nil
}

func (r *listedServer) words() string {
	accepted := "no tool accepted"
	if r.Accepted > 0 {
		accepted = plural(r.Accepted, "tool", "tools") + " accepted"
	}
	switch {
	case r.State == stateChanged:
		return "changed its command or URL, so its tools are held"
	case r.State == mcp.StateReady:
		text := "ready (" + r.Revision + "), " + accepted
		if len(r.Held) > 0 {
			text += fmt.Sprintf(", %d held", len(r.Held))
		}
		return text
	case r.State == stateInvalid:
		return r.State
	case r.State != "":
		return r.State + ", " + accepted
	}
	return accepted
}

// rows describes the servers.
func (s *mcpServers) rows(ctx context.Context, connect bool) ([]listedServer, error) {
	rows := []listedServer{} // scripts expect a list
	addresses := s.addresses()
	for _, server := range s.list {
		r := listedServer{Server: server.Name, Transport: transportOf(server), Address: addresses[server.Name], Accepted: len(s.accepted(server))}
		switch {
		case server.Disabled:
			r.State = mcp.StateDisabled
		case s.moved(server):
			r.State = stateChanged
		}
		rows = append(rows, r)
	}
	for _, b := range s.broken {
		if !slices.ContainsFunc(rows, func(r listedServer) bool { return r.Server == b.Server }) {
			rows = append(rows, listedServer{Server: b.Server, State: stateInvalid, Error: fmt.Sprintf("line %d: %s", b.Line, b.Reason)})
		}
	}
	if !connect {
		return rows, nil
	}
	servers, err := s.connect(ctx, mcp.Options{}, s.list...)
	if err != nil {
		return nil, err
	}
	defer closeServers(servers)
	for i, st := range servers.Status() {
		r := &rows[i]
		r.State, r.Revision = st.State, st.Revision
		if st.State == mcp.StateReady {
			r.Accepted = len(st.Tools)
			for _, h := range st.Held {
				r.Held = append(r.Held, h.Tool)
			}
		} else if st.State != mcp.StateDisabled {
			r.Error = s.serverProblem(st)
		}
	}
	return rows, nil
}

// addresses returns the commands and URLs of the servers as the file has them: the values of
// variables may be secrets.
func (s *mcpServers) addresses() map[string]string {
	out := map[string]string{}
	data, err := os.ReadFile(s.flags.file)
	if err != nil {
		return out
	}
	list, _, _ := mcp.ParseConfig(s.flags.file, data, func(name string) (string, bool) { return "${" + name + "}", true })
	for _, server := range list {
		if out[server.Name] = server.URL; server.URL == "" {
			words := []string{quoteShown(server.Command)}
			for _, a := range server.Args {
				words = append(words, quoteShown(a))
			}
			out[server.Name] = strings.Join(words, " ")
		}
	}
	return out
}

// quoteShown quotes an argument for display. Variables stay readable.
func quoteShown(s string) string {
	if strings.ContainsAny(s, " \t\n'\"") || s == "" {
		return quoteArg(s)
	}
	return s
}

// closeServers ends the connections. Nothing is left to do about an error.
func closeServers(s *mcp.Servers) { _ = s.Close() }
