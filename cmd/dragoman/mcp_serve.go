package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/dragoman-go/dragoman/mcp/mcpserver"
	"github.com/dragoman-go/dragoman/skill"
	"github.com/dragoman-go/dragoman/tool"
	"github.com/dragoman-go/dragoman/tool/policy"
	"github.com/dragoman-go/dragoman/tool/workspace"
)

func newMCPServe(sandbox *workspace.Sandbox) *cobra.Command {
	var o mcpServeFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the tools of a folder to MCP clients",
		Long: `Serve offers the tools that "dragoman tools list" shows, and the skills of the folder, to
an MCP client. Without --listen it serves the client that started it, over standard input
and output:

  {"mcpServers": {"folder": {"command": "dragoman", "args": ["mcp", "serve", "--dir", "/path"]}}}

With --listen it serves clients over HTTP at http://ADDRESS/mcp.

Calls take the same checks as in "dragoman run". Reading and searching files runs without
a question. Before a file is written or a command runs, the user of the client is asked
with a form of the protocol; a client that shows no forms gets an error. --allow,
--allow-command and rules of a policy (--policy) permit calls without a question.
--no-client-approvals refuses what they do not permit: use it for clients that you do not
trust, because the answer comes from the client.

Keys. Over HTTP without a key, serve listens only on addresses that other machines cannot
reach, and web pages cannot use it. With keys, clients send one as a bearer token:
--key-env names variables that have the keys, and --key-hash gives the SHA-256 of keys in
hexadecimal.`,
		Example: `  dragoman mcp serve --listen 127.0.0.1:8080
  dragoman mcp serve --listen 127.0.0.1:8080 --dir . --allow write_file`,
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return o.serve(ctx, stop, cmd, sandbox)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.listen, "listen", "", "the address to serve HTTP on, such as 127.0.0.1:8080; port 0 means any free port (default: standard input and output)")
	f.StringVar(&o.dir, "dir", ".", "the folder in which the tools work")
	f.StringSliceVar(&o.allow, "allow", nil, "run the calls of these tools without approval: write_file, apply_patch, shell")
	o.commands.add(f)
	f.StringVar(&o.policy, "policy", "", "a policy file, with rules that decide about calls")
	f.StringArrayVar(&o.skills, "skills", nil, "a skill, or a folder of skills, to use in addition; may be repeated")
	f.BoolVar(&o.bare, "bare", false, "do not use skills of the folder and of your home folder")
	f.StringSliceVar(&o.keyEnv, "key-env", nil, "variables that have the keys of clients over HTTP")
	f.StringSliceVar(&o.keyHash, "key-hash", nil, "SHA-256 of the keys of clients over HTTP, in hexadecimal")
	f.StringArrayVar(&o.hosts, "host", nil, "another host name to accept requests for without keys, such as host.docker.internal; may be repeated")
	f.BoolVar(&o.noApprovals, "no-client-approvals", false, "refuse calls that need approval, and do not ask the user of the client")
	return cmd
}

type mcpServeFlags struct {
	listen, dir, policy            string
	allow, skills, keyEnv, keyHash []string
	hosts                          []string
	commands                       commandFlags
	bare, noApprovals              bool
}

// check refuses flags that contradict each other, and returns the keys.
func (o *mcpServeFlags) check() (keys []mcpserver.Key, err error) {
	if err := o.commands.check(); err != nil {
		return nil, err
	}
	if err := allowed(o.allow, workspaceTools); err != nil {
		return nil, err
	}
	if o.listen == "" && len(o.keyEnv)+len(o.keyHash)+len(o.hosts) > 0 {
		return nil, usageError("--key-env, --key-hash and --host can only be used with --listen")
	}
	const shortest = 16
	for _, name := range o.keyEnv {
		key := os.Getenv(name)
		if len(key) < shortest {
			return nil, usageError("--key-env: the variable %s has no key of at least %d characters", name, shortest)
		}
		keys = append(keys, mcpserver.Key{Name: name, Hash: mcpserver.HashKey(key)})
	}
	for i, text := range o.keyHash {
		b, err := hex.DecodeString(text)
		if err != nil || len(b) != sha256.Size {
			return nil, usageError("--key-hash %q is not the SHA-256 of a key in hexadecimal", text)
		}
		keys = append(keys, mcpserver.Key{Name: fmt.Sprintf("key %d", i+1), Hash: [sha256.Size]byte(b)})
	}
	if o.listen == "" || len(keys) > 0 {
		return keys, nil
	}
	if reachable(o.listen, false) != nil {
		if _, _, err := net.SplitHostPort(o.listen); err != nil {
			return nil, reachable(o.listen, false)
		}
		return nil, usageError("--listen %s: other machines can reach this address: set keys with --key-env or --key-hash, or use 127.0.0.1", o.listen)
	}
	return nil, nil
}

func (o *mcpServeFlags) serve(ctx context.Context, stop func(), cmd *cobra.Command, sandbox *workspace.Sandbox) error {
	keys, err := o.check()
	if err != nil {
		return err
	}
	server, done, err := o.server(cmd, sandbox, keys)
	if err != nil {
		return err
	}
	defer done()
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	if o.listen == "" {
		err := server.Serve(ctx, cmd.InOrStdin(), cmd.OutOrStdout(), mcpserver.Principal{})
		if err != nil && ctx.Err() == nil {
			return failed("%w", err)
		}
		return nil
	}
	listener, err := listen(ctx, o.listen)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", server.Handler())
	web := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute}
	fmt.Fprintf(cmd.ErrOrStderr(), "dragoman: the MCP server listens on http://%s/mcp\n", listener.Addr())
	ended := make(chan error, 1)
	go func() { ended <- web.Serve(listener) }()
	select {
	case err := <-ended:
		return failed("%w", err)
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	if err := errors.Join(server.Close(), web.Shutdown(last)); errors.Is(err, context.DeadlineExceeded) {
		_ = web.Close() // nothing left to do about open requests
	}
	return nil
}

// server returns the server with the tools of the folder. The caller must call done.
func (o *mcpServeFlags) server(cmd *cobra.Command, sandbox *workspace.Sandbox, keys []mcpserver.Key) (s *mcpserver.Server, done func(), err error) {
	if _, err := os.Stat(o.dir); err != nil {
		return nil, nil, failed("%w", nameSource("--dir", err))
	}
	own, notices, err := readGuidance(o.dir, o.bare, o.skills)
	if err != nil {
		return nil, nil, failed("%w", nameSource("--skills", err))
	}
	for _, n := range notices {
		fmt.Fprintf(cmd.ErrOrStderr(), "dragoman: %s\n", printable(n))
	}
	ws, err := workspace.Open(o.dir, workspace.Options{NoApproval: o.allow, Shell: &workspace.Shell{AllowAny: true, Scripts: true, Sandbox: sandbox, ReadPaths: own.readPaths()}})
	if err != nil {
		return nil, nil, failed("%w", nameSource("--dir", err))
	}
	tools := append(ws.Tools(), own.skills.Tools()...)
	log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
	runner := &tool.Runner{Approver: policy.ApproverFunc(o.commands.approve), Spill: tool.NoSpill, Log: log}
	if len(keys) < 2 { // stored outputs are not separated by client
		spill := &tool.MemorySpill{}
		runner.Spill, tools = spill, append(tools, tool.ReadOutput(spill))
	}
	if o.policy != "" {
		if runner.Policy, err = loadPolicy(o.policy, tools); err != nil {
			_ = ws.Close() // unused so far
			return nil, nil, err
		}
	}
	options := mcpserver.Options{
		Name: "dragoman", Version: version(), Title: "Dragoman: tools of a folder", Tools: tools, Runner: runner,
		Instructions: strings.TrimSpace(own.skills.Instructions()), NoClientApprovals: o.noApprovals, Log: log,
		Hosts: o.loopbackHosts(keys),
	}
	if len(own.skills.Skills()) > 0 {
		options.Skills = newServedSkills(own.skills)
	}
	if len(keys) > 0 {
		options.Auth = &mcpserver.Auth{Keys: keys}
	}
	if s, err = mcpserver.New(options); err != nil {
		_ = ws.Close() // unused so far
		return nil, nil, failed("%w", err)
	}
	return s, func() { _, _ = s.Close(), ws.Close() }, nil
}

// loopbackHosts returns the names of hosts that requests may have; without keys only those of
// this machine, so that a web page cannot use the server through a name that it controls.
func (o *mcpServeFlags) loopbackHosts(keys []mcpserver.Key) []string {
	if len(keys) > 0 || len(o.hosts) == 0 {
		return nil // a server on a loopback address accepts only loopback names
	}
	return append([]string{"localhost", "127.0.0.1", "[::1]", "::1"}, o.hosts...)
}

// servedSkills serves skills to MCP clients.
type servedSkills struct {
	list  []mcpserver.Skill
	files map[string]servedFile
}

type servedFile struct {
	skill *skill.Skill
	path  string
}

// maxSkillBytes limits the files of a skill that is served.
const maxSkillBytes = 16 << 20

func newServedSkills(set *skill.Set) *servedSkills {
	s := &servedSkills{files: map[string]servedFile{}}
	for _, k := range set.Skills() {
		content := map[string][]byte{}
		total := 0
		for _, f := range k.Files {
			data, err := k.Read(f.Path)
			if total += len(data); err != nil || total > maxSkillBytes {
				content = nil
				break
			}
			content[f.Path] = data
		}
		if content == nil || k.Hidden {
			continue
		}
		served := mcpserver.NewSkill(k.Name, k.FrontMatter, content)
		s.list = append(s.list, served)
		base, _ := strings.CutSuffix(served.URI, skill.FileName)
		for path := range content {
			i := slices.IndexFunc(served.Files, func(f mcpserver.SkillFile) bool { return f.URI == base+path })
			if i >= 0 {
				s.files[served.Files[i].URI] = servedFile{k, path}
			}
		}
	}
	return s
}

func (s *servedSkills) List(context.Context) ([]mcpserver.Skill, error) { return s.list, nil }

func (s *servedSkills) Read(_ context.Context, uri string) (mcpserver.Content, error) {
	f, ok := s.files[uri]
	if !ok {
		return mcpserver.Content{}, mcpserver.ErrNoResource
	}
	data, err := f.skill.Read(f.path)
	if err != nil {
		return mcpserver.Content{}, err
	}
	if !utf8.Valid(data) {
		return mcpserver.Content{URI: uri, Blob: data}, nil
	}
	return mcpserver.Content{URI: uri, Text: string(data)}, nil
}
