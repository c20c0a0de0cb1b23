package main

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dragoman-go/dragoman/internal/text/toolname"
	"github.com/dragoman-go/dragoman/internal/textkit"
	"github.com/dragoman-go/dragoman/mcp"
	"github.com/dragoman-go/dragoman/skill"
	"github.com/dragoman-go/dragoman/tool"
	"github.com/dragoman-go/dragoman/tool/workspace"
)

func newMCP(sandbox *workspace.Sandbox) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Manage the MCP servers whose tools models may use, and serve tools to MCP clients",
		Long: `Mcp manages MCP servers: programs and URLs that offer tools. Their tools become tools of
"dragoman run" in three steps:

  dragoman mcp add files -- npx -y @modelcontextprotocol/server-filesystem .
  dragoman mcp accept files
  dragoman run --mcp .mcp.json "Which files are here?"

The server file lists the servers. Without --mcp it is .mcp.json in the current folder.
Files of Claude Desktop, Claude Code, Cursor and VS Code work, too, and so does YAML with
"mcp_servers".

The lock file has the definitions of tools that you accepted: dragoman.lock beside the
server file, or the file of --lock. Commit it to share it. A model sees and calls only
accepted tools. A tool is held, and must be accepted again, if its server changes its
description, its schema or its annotations, or if the command or the URL of the server
changes.

Servers are programs that you run and services that you send data to: add only those that
you trust. No command starts a server that you did not name with --mcp or by its file.`,
		Args: noSuchCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newMCPAdd(), newMCPList(), newMCPShow(), newMCPAccept(), newMCPRemove(), newMCPTest(), newMCPDoctor(),
		newMCPLogin(), newMCPLogout(), newMCPServe(sandbox))
	return cmd
}

// serverFile is the server file of the commands of mcp.
const serverFile = ".mcp.json"

// mcpFlags names the files of MCP servers.
type mcpFlags struct {
	file, lock string
}

// add adds the flags with the default file.
func (o *mcpFlags) add(cmd *cobra.Command, file, usage string) {
	f := cmd.Flags()
	f.StringVar(&o.file, "mcp", file, usage)
	f.StringVar(&o.lock, "lock", "", "the file with the accepted definitions of tools (default: dragoman.lock beside the server file)")
}

// lockPath returns the path of the lock file.
func (o *mcpFlags) lockPath() string {
	if o.lock != "" {
		return o.lock
	}
	return filepath.Join(filepath.Dir(o.file), mcp.LockFile)
}

// given returns the flags that another command of mcp needs for the same files, quoted for a
// shell.
func (o *mcpFlags) given() string {
	text := ""
	if o.file != serverFile {
		text = " --mcp " + quoteArg(printable(o.file))
	}
	return text + o.givenLock()
}

func (o *mcpFlags) givenLock() string {
	if o.lock == "" {
		return ""
	}
	return " --lock " + quoteArg(printable(o.lock))
}

// forRun returns the flags for "dragoman run".
func (o *mcpFlags) forRun() string {
	if o.file == "" {
		return ""
	}
	return " --mcp " + quoteArg(printable(o.file)) + o.givenLock()
}

// mcpServers are the servers of a file, with the lock.
type mcpServers struct {
	flags *mcpFlags
	lock  *mcp.Lock
	list  []mcp.Server
	// notes are the parts of the file that have no effect, and the servers that are invalid.
	notes  []string
	broken []*mcp.ConfigError
}

// read reads the server file and the lock file. It starts nothing.
func (o *mcpFlags) read() (*mcpServers, error) {
	s := &mcpServers{flags: o}
	list, warnings, err := mcp.ReadConfig(o.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, failed("no server file %s: add a server with \"dragoman mcp add\", or name another file with --mcp", o.file)
	}
	for _, e := range configErrors(err) {
		var bad *mcp.ConfigError
		if !errors.As(e, &bad) || bad.Server == "" {
			return nil, failed("%w", err)
		}
		s.broken = append(s.broken, bad)
		s.notes = append(s.notes, message(bad))
	}
	for _, w := range warnings {
		s.notes = append(s.notes, w.String())
	}
	s.list = list
	if s.lock, err = mcp.OpenLock(o.lockPath()); err != nil {
		return nil, failed("%w", err)
	}
	s.distinguish()
	return s, nil
}

// configErrors returns the errors that ReadConfig joined.
func configErrors(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	if err == nil {
		return nil
	}
	return []error{err}
}

// ownTools are the names of tools of "dragoman run" that no server may take.
func ownTools() []string {
	return append(slices.Clone(workspaceTools), toolname.ReadOutput, skill.LoadName, skill.ReadName)
}

// distinguish sets the prefix of servers that have an accepted tool with the name of another
// one. It depends only on the files, so all commands use the same names.
func (s *mcpServers) distinguish() {
	owners := map[string][]int{}
	for i := range s.list {
		for _, t := range s.accepted(s.list[i]) {
			name := t.Spec().QualifiedName()
			owners[name] = append(owners[name], i)
		}
	}
	own := ownTools()
	for name, list := range owners {
		if len(list) == 1 && !slices.Contains(own, name) {
			continue
		}
		for _, i := range list {
			s.list[i].Prefix = s.list[i].Prefix || s.list[i].Namespace == ""
		}
	}
}

// accepted returns the accepted tools of a server.
func (s *mcpServers) accepted(server mcp.Server) []tool.Tool {
	tools, err := s.lock.AcceptedTools(server)
	if err != nil {
		return nil // connecting reports it
	}
	return tools
}

// tools returns the accepted tools of all servers, as models get them.
func (s *mcpServers) tools() (out []tool.Tool) {
	if s == nil {
		return nil
	}
	for _, server := range s.list {
		if !server.Disabled {
			out = append(out, s.accepted(server)...)
		}
	}
	return out
}

// find returns the server with a name.
func (s *mcpServers) find(name string) (mcp.Server, error) {
	var names []string
	for _, server := range s.list {
		if server.Name == name {
			return server, nil
		}
		names = append(names, server.Name)
	}
	for _, b := range s.broken {
		if b.Server == name {
			return mcp.Server{}, failed("%w", b)
		}
	}
	return mcp.Server{}, failed("%s has no server %q%s", s.flags.file, name, textkit.Suggest(name, names))
}

// moved reports whether the tools with this name were accepted from another command or URL.
func (s *mcpServers) moved(server mcp.Server) bool {
	_, err := s.lock.AcceptedTools(server)
	return errors.Is(err, mcp.ErrHeld)
}

// connect connects to servers. By default it says that questions can be answered, as a run at a
// terminal does: some servers offer other tools without that. It reports only errors of the configuration: see the status of
// the servers for the others.
func (s *mcpServers) connect(ctx context.Context, o mcp.Options, servers ...mcp.Server) (*mcp.Servers, error) {
	o.Lock, o.Name, o.Version, o.Authorize = s.lock, "dragoman", version(), authorizeServer
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	connected, err := mcp.Connect(ctx, o, servers...)
	if err != nil {
		return nil, failed("%w", err)
	}
	return connected, nil
}

// transportOf names the transport of a server.
func transportOf(s mcp.Server) string {
	if s.URL != "" {
		return "HTTP"
	}
	return "stdio"
}

// serverProblem describes why a server does not work, and what to do.
func (s *mcpServers) serverProblem(st mcp.Status) string {
	text := "the connection failed"
	if st.Err != nil {
		text = message(st.Err)
	}
	switch {
	case st.State == mcp.StateConnecting:
		return "it is not ready yet"
	case needsLogin(st.Err):
		return text + "; log in with: dragoman mcp login " + quoteArg(st.Server) + s.flags.given()
	default:
		return text + "; see: dragoman mcp doctor " + quoteArg(st.Server) + s.flags.given()
	}
}

// visibleText escapes a text of a server for a terminal and marks each of its lines.
func visibleText(mark, text string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		b.WriteString(mark + textkit.Visible(strings.TrimSuffix(line, "\r")) + "\n")
	}
	return b.String()
}
