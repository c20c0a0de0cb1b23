// Command realservers connects to published MCP servers, uses their tools, resources and
// prompts, compares the results with those that are expected, and prints a table. It uses only
// what any program can use, with the steps of package tool on every call.
//
//	realservers -packages node_modules -node node -work dir
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/mcp"
	"github.com/dragoman-go/dragoman/sim"
	"github.com/dragoman-go/dragoman/tool"
	"github.com/dragoman-go/dragoman/tool/policy"
)

// gateway is the transport of servers that are used through the gateway.
const gateway = "gateway"

// published is a server of npm.
type published struct {
	name string
	// file is the program in the folder of packages.
	file string
	args []string
	env  map[string]string
	// http makes the arguments and the environment for a transport over HTTP; nil means that
	// the server speaks only over its standard streams.
	http  func(transport, port string) (args, env []string, path string)
	check func(u *use)
}

func main() {
	packages := flag.String("packages", "node_modules", "the folder of the npm packages")
	node := flag.String("node", "node", "the program that runs them")
	work := flag.String("work", "", "an empty folder for the files of the servers")
	dragoman := flag.String("dragoman", "", "the command, to use the servers through its gateway, too; empty leaves that out")
	verbose := flag.Bool("v", false, "print each result")
	flag.Parse()
	failed, err := run(context.Background(), *packages, *node, *work, *verbose)
	if err == nil && *dragoman != "" {
		var more bool
		more, err = runGateway(context.Background(), *dragoman, *packages, *node, filepath.Join(*work, "gateway"), *verbose)
		failed = failed || more
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "realservers:", err)
	}
	if failed || err != nil {
		os.Exit(1)
	}
}

func run(ctx context.Context, packages, node, work string, verbose bool) (failed bool, err error) {
	if work, err = filepath.Abs(work); err != nil {
		return false, err
	}
	servers, err := catalog(work)
	if err != nil {
		return false, err
	}
	for _, p := range servers {
		transports := []string{"stdio"}
		if p.http != nil {
			transports = append(transports, "streamable HTTP", "SSE")
		}
		for _, transport := range transports {
			u := &use{name: p.name, transport: transport, work: work}
			ok := u.report(verbose, func() error {
				server, stop, err := u.start(ctx, p, packages, node)
				if err != nil {
					return err
				}
				defer stop()
				return u.run(ctx, p, server)
			})
			failed = failed || !ok
		}
	}
	return failed, nil
}

// runGateway uses the servers through the gateway.
func runGateway(ctx context.Context, dragoman, packages, node, work string, verbose bool) (failed bool, err error) {
	if work, err = filepath.Abs(work); err != nil {
		return false, err
	}
	servers, err := catalog(work)
	if err != nil {
		return false, err
	}
	config := map[string]any{}
	for _, p := range servers {
		config[p.name] = map[string]any{
			"command": node, "args": append([]string{filepath.Join(packages, p.file)}, p.args...), "env": p.env,
			"approval": map[string]string{"*": "never"},
		}
	}
	b, err := json.Marshal(map[string]any{"version": 1, "gateway": map[string]any{"mcp": map[string]any{"servers": config}}})
	if err != nil {
		return false, err
	}
	file := filepath.Join(work, "gateway.json")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		return false, err
	}
	port, err := freePort(ctx)
	if err != nil {
		return false, err
	}
	cmd := exec.CommandContext(ctx, dragoman, "serve", "--listen", "127.0.0.1:"+port, "--config", file) //nolint:gosec // it is the command of this module
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return false, err
	}
	defer func() {
		_ = cmd.Process.Signal(os.Interrupt) // it ends its servers
		_ = cmd.Wait()
	}()
	if err := waitFor(ctx, port); err != nil {
		return false, err
	}
	for _, p := range servers {
		u := &use{name: p.name, transport: gateway, work: work}
		ok := u.report(verbose, func() error { return u.run(ctx, p, mcp.HTTP("http://127.0.0.1:"+port+"/mcp/"+p.name)) })
		failed = failed || !ok
	}
	return failed, nil
}

// use is the use of one server over one transport.
type use struct {
	name, transport, work string
	ctx                   context.Context
	servers               *mcp.Servers
	box                   *tool.Box
	runner                *tool.Runner
	revision              string
	// form is the value for the next form.
	form   string
	turn   int
	checks int
	errs   []error
	out    io.Writer
}

// report runs f and prints a line about it.
func (u *use) report(verbose bool, f func() error) bool {
	if verbose {
		u.out = os.Stdout
	}
	began := time.Now()
	if err := f(); err != nil {
		u.errs = append(u.errs, err)
	}
	result := fmt.Sprintf("ok, %d checks, revision %s, %.1fs", u.checks, u.revision, time.Since(began).Seconds())
	if len(u.errs) > 0 {
		result = "FAILED"
	}
	fmt.Printf("%-28s %-16s %s\n", u.name, u.transport, result)
	for _, err := range u.errs {
		fmt.Printf("    %v\n", err)
	}
	return len(u.errs) == 0
}

// start returns the server, which it starts if it speaks HTTP.
func (u *use) start(ctx context.Context, p published, packages, node string) (s mcp.Server, stop func(), err error) {
	program := filepath.Join(packages, p.file)
	if u.transport != "stdio" {
		address, stop, err := listen(ctx, p, u.transport, node, program)
		return mcp.HTTP(address), stop, err
	}
	s = mcp.Stdio(node, append([]string{program}, p.args...)...)
	s.Env = p.env
	return s, func() {}, nil
}

func (u *use) run(ctx context.Context, p published, server mcp.Server) error {
	var cancel context.CancelFunc
	u.ctx, cancel = context.WithTimeout(ctx, 60*time.Second)
	defer cancel()
	approver := policy.ApproverFunc(func(_ context.Context, req *tool.ApprovalRequest) (tool.Answer, error) {
		a := tool.Answer{Verdict: tool.Approved}
		if req.Wanted != nil && req.Wanted.Schema != nil {
			a.Value = []byte(u.form)
		}
		return a, nil
	})
	model, err := sim.Open("sim/echo")
	if err != nil {
		return err
	}
	u.servers, err = mcp.Connect(u.ctx, mcp.Options{
		Approver: approver, Roots: []string{u.work}, Sampling: model,
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}, server.As("it"))
	if err != nil {
		return err
	}
	defer func() { _ = u.servers.Close() }()
	status := u.servers.Status()[0]
	if status.State != mcp.StateReady {
		return fmt.Errorf("the server is %s: %w", status.State, status.Err)
	}
	for _, note := range status.Notes {
		u.errorf("note: %s", note)
	}
	u.revision = status.Revision
	if u.box, err = (tool.Config{}).Box(u.servers.Tools()...); err != nil {
		return err
	}
	u.runner = &tool.Runner{Approver: approver}
	p.check(u)
	return nil
}

// listen starts a server that speaks HTTP on a free port.
func listen(ctx context.Context, p published, transport, node, program string) (address string, stop func(), err error) {
	port, err := freePort(ctx)
	if err != nil {
		return "", nil, err
	}
	args, env, path := p.http(transport, port)
	cmd := exec.CommandContext(ctx, node, append([]string{program}, args...)...) //nolint:gosec // the packages are pinned
	cmd.Env = append(os.Environ(), env...)
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	stop = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	if err := waitFor(ctx, port); err != nil {
		stop()
		return "", nil, err
	}
	return "http://localhost:" + port + path, stop, nil
}

func freePort(ctx context.Context) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, errors.Join(err, l.Close())
}

// waitFor waits until a program listens on a port.
func waitFor(ctx context.Context, port string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		// Servers of Node listen on "localhost", which may be the address of either version.
		for _, host := range []string{"127.0.0.1", "[::1]"} {
			c, err := (&net.Dialer{}).DialContext(ctx, "tcp", host+":"+port)
			if err == nil {
				return c.Close()
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("nothing listens on port %s", port)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (u *use) errorf(format string, args ...any) {
	u.errs = append(u.errs, fmt.Errorf(format, args...))
}

// equal compares a result. In want, … stands for any text.
func (u *use) equal(what, got, want string) {
	u.checks++
	if u.out != nil {
		_, _ = fmt.Fprintf(u.out, "%s %s %s: %q\n", u.name, u.transport, what, got)
	}
	pattern := strings.ReplaceAll(regexp.QuoteMeta(want), "…", ".*")
	if regexp.MustCompile(`(?s)^` + pattern + `$`).MatchString(got) {
		return
	}
	u.errorf("%s: %.1000q, want %.1000q", what, got, want)
}

// call makes a call of a tool and compares its outcome and its content.
func (u *use) call(name, args, want string) {
	u.equal("call of "+name+" "+args, u.result(name, args), want)
}

// result returns the outcome and the content of a call.
func (u *use) result(name, args string) string {
	u.turn++
	b, err := u.runner.Start("run").Do(u.ctx, u.box, tool.Turn{Number: u.turn, Calls: []*dragoman.ToolCall{{ID: fmt.Sprint("c", u.turn), Name: name, Arguments: args}}})
	switch {
	case err != nil:
		return "error: " + err.Error()
	case len(b.Pending) > 0:
		return "pending"
	}
	r := b.Results[0]
	out := cmp.Or(r.Outcome, "unknown")
	return out + parts(r.Content)
}

// fence matches the lines around the output of an untrusted tool.
var fence = regexp.MustCompile(`(?s)^Output of the tool [^\n]*\n<<< ([0-9a-f]+)\n(.*)\n>>> ([0-9a-f]+)$`)

// parts describes content.
func parts(list []dragoman.Part) string {
	var texts []string
	var rest strings.Builder
	for _, p := range list {
		switch p := p.(type) {
		case *dragoman.Text:
			text := p.Text
			if m := fence.FindStringSubmatch(text); m != nil && m[1] == m[3] {
				text = m[2]
			}
			texts = append(texts, text)
		case *dragoman.Data:
			fmt.Fprintf(&rest, " [data %s]", p.JSON)
		case *dragoman.Media:
			if p.Base64 == "" {
				fmt.Fprintf(&rest, " [%s %s %q]", p.Media, p.MIME, p.Text)
				continue
			}
			fmt.Fprintf(&rest, " [%s %s %s]", p.Media, p.MIME, p.Base64[:min(len(p.Base64), 12)])
		default:
			fmt.Fprintf(&rest, " [%s]", p.Kind())
		}
	}
	return ": " + strings.Join(texts, "\n") + rest.String()
}

// names returns the names of the tools.
func (u *use) names() string {
	var names []string
	for _, s := range u.box.Specs() {
		names = append(names, s.Name)
	}
	return strings.Join(names, " ")
}
