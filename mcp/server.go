package mcp

import (
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"
)

// Server is one MCP server to connect to: a program that is started (Command), or a URL.
// [Stdio] and [HTTP] make one with the defaults; the fields change it.
type Server struct {
	// Name labels the server in tool names, approvals, pins, logs and errors. It never comes
	// from the server itself. Empty means a name derived from the command or the URL.
	Name string

	// Command and Args start the server, which speaks over its standard input and output.
	// Env is added to a minimal environment (PATH, HOME and the like), not to that of this
	// program. Dir is its working folder; empty means the current one.
	Command string
	Args    []string
	Env     map[string]string
	Dir     string

	// URL is the endpoint of a server that speaks HTTP. Headers are sent with every request
	// to it, such as an API key; they are never logged.
	URL     string
	Headers map[string]string

	// Include and Exclude select tools by patterns of their names at the server, in which *
	// matches any text. An empty Include selects all; Exclude wins.
	Include, Exclude []string
	// Prefix names tools mcp_<server>__<tool>. Without it they keep their names, and two
	// servers with the same tool name are an error that names both.
	Prefix bool
	// Namespace groups the tools of the server under this name; empty means none.
	Namespace string
	// Deferred hides the tools until a tool search finds them, for servers with many tools.
	Deferred bool
	// Approval sets, by patterns of tool names, when calls need approval: "always" or
	// "never". The longest matching pattern decides. Other tools need approval unless the
	// server is Trusted and marks them as read-only.
	Approval map[string]string
	// Trusted means that annotations of the server count, such as its mark that a tool only
	// reads. Set it only for servers that you control.
	Trusted bool
	// Retry lists patterns of tools whose calls may be repeated if a connection is lost and
	// it is unknown whether they ran.
	Retry []string

	// ConnectTimeout limits connecting and listing; zero means 30 seconds. CallTimeout
	// limits a call without progress; zero means one minute. Each report of progress starts
	// it again, up to MaxCallTime; zero means 10 minutes.
	ConnectTimeout, CallTimeout, MaxCallTime time.Duration
	// Parallel limits the calls in progress; zero means 16.
	Parallel int
	// Revision fixes the protocol revision, such as "2025-11-25"; empty negotiates the newest.
	Revision string
	// Disabled keeps the server in a configuration without connecting to it.
	Disabled bool

	// source is the command or URL as a file has it, before variables are replaced. It
	// identifies the server in a lock file. Nil means that Command, Args and URL do.
	source *serverSource
}

// Stdio returns a server that is started as a program.
func Stdio(command string, args ...string) Server {
	return Server{Command: command, Args: slices.Clone(args)}
}

// HTTP returns a server at a URL.
func HTTP(endpoint string) Server { return Server{URL: endpoint} }

// As returns the server with another name.
func (s Server) As(name string) Server {
	s.Name = name
	return s
}

// Label returns the name of the server, or the one derived from its command or URL.
func (s Server) Label() string {
	switch {
	case s.Name != "":
		return s.Name
	case s.Command != "":
		return labelOfCommand(s.Command, s.Args)
	default:
		u, err := url.Parse(s.URL)
		if err != nil {
			return ""
		}
		return strings.TrimPrefix(u.Hostname(), "www.")
	}
}

// runners are programs that run a package, which is their first argument that is not a flag.
var runners = []string{"npx", "bunx", "uvx", "pipx", "pnpm", "yarn", "bun", "uv", "docker", "node", "python", "python3", "deno"}

// runnerWords are subcommands of runners that come before the package.
var runnerWords = []string{"run", "dlx", "exec", "x", "tool"}

// valueFlags are flags of runners whose value is the next argument.
var valueFlags = []string{
	"-e", "--env", "--env-file", "-v", "--volume", "--mount", "-p", "--publish", "--name", "--network", "-w", "--workdir", "-u", "--user", "--entrypoint",
	"--platform", "--package", "--from", "--with", "--python", "--directory", "--project", "--registry", "--index-url", "--pull",
}

// labelOfCommand returns the name of the package that a runner such as npx runs, without scope
// and version, or the name of the program.
func labelOfCommand(command string, args []string) string {
	base := strings.TrimSuffix(path.Base(strings.ReplaceAll(command, `\`, "/")), ".exe")
	if !slices.Contains(runners, base) {
		return base
	}
	for i, a := range args {
		if strings.HasPrefix(a, "-") || slices.Contains(runnerWords, a) {
			continue
		}
		// The value of a flag is not the package, and may be a secret: docker run -e KEY=value.
		if i > 0 && slices.Contains(valueFlags, args[i-1]) || strings.Contains(a, "=") {
			continue
		}
		name := path.Base(strings.ReplaceAll(a, `\`, "/"))
		if at := strings.LastIndexByte(name, '@'); at > 0 {
			name = name[:at]
		}
		if tag := strings.IndexByte(name, ':'); tag > 0 { // of an image
			name = name[:tag]
		}
		return strings.TrimSuffix(name, path.Ext(name))
	}
	return base
}

// clone returns a copy that shares nothing with s.
func (s Server) clone() Server {
	s.Args = slices.Clone(s.Args)
	s.Include, s.Exclude, s.Retry = slices.Clone(s.Include), slices.Clone(s.Exclude), slices.Clone(s.Retry)
	s.Env, s.Headers, s.Approval = maps.Clone(s.Env), maps.Clone(s.Headers), maps.Clone(s.Approval)
	return s
}
