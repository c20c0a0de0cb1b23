package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/dragoman-go/dragoman/gateway"
	"github.com/dragoman-go/dragoman/internal/storage/storekit"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/session/postgres"
	"github.com/dragoman-go/dragoman/session/sqlite"
	"github.com/dragoman-go/dragoman/sim"
	"github.com/dragoman-go/dragoman/tool"
)

func newServe() *cobra.Command {
	var o serveFlags
	cmd := &cobra.Command{
		Use:   "serve [--listen ADDRESS] [--host NAME] [--config FILE] [--check]",
		Short: "Serve any model to clients of any dialect (gateway)",
		Long: `Serve runs a gateway. Clients of OpenAI Chat, OpenAI Responses, Anthropic, Gemini or
Ollama can use any model through it, with tools, reasoning and streaming. Set the base
URL of the client:

  OpenAI      http://127.0.0.1:8088/v1
  Anthropic   http://127.0.0.1:8088
  Gemini      http://127.0.0.1:8088
  Ollama      http://127.0.0.1:8088

The config file determines which models are served. --config or the variable
DRAGOMAN_CONFIG names it; docs/gateway.md describes it. The gateway serves the first of
these that the config has:

  - the routes in the section "gateway", and nothing else
  - each alias by its name, and each provider of the file as NAME/*
  - without a config, or with none of the above: the simulated models sim/planner,
    sim/echo and sim/scenario, also without the prefix "sim/"

--check reads the config, prints what would be served, and exits; the exit code is 1 if
the config has an error. A running gateway reads the file again when it changes or on
SIGHUP. If the new config has an error, the gateway logs it and keeps the old config.

If the config has no keys, the gateway listens only on addresses that other machines
cannot reach. It then accepts only requests for localhost, *.localhost, loopback
addresses, and the host names listed under "hosts" in the config or with --host. This
keeps web pages from using it through a host name that they control.

The gateway logs one line per request to standard error. On an interrupt it accepts no
more requests and waits for open requests to finish; a second interrupt ends it at once.

Further endpoints: GET /healthz, GET /metrics`,
		Example: `  dragoman serve
  dragoman serve --config gateway.yaml --check
  dragoman serve --config gateway.yaml --log json`,
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			if o.check {
				return o.printCheck(cmd.OutOrStdout(), cmd.ErrOrStderr())
			}
			return o.serve(ctx, stop, cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.listen, "listen", "", "the address to listen on, overrides the config; port 0 means any free port (default "+new(gateway.Config).Address()+")")
	f.StringArrayVar(&o.hosts, "host", nil, "another host name to accept requests for if the config has no keys, such as host.docker.internal; may be repeated")
	f.StringVar(&o.config, "config", "", "the config file (default: the variable DRAGOMAN_CONFIG)")
	f.StringVar(&o.log, "log", "text", "log format: text, json or off")
	f.DurationVar(&o.drain, "drain", 30*time.Second, "how long to wait for open requests after an interrupt; 0s ends them at once")
	f.BoolVar(&o.check, "check", false, "check the config, print what it would serve, and exit")
	return cmd
}

type serveFlags struct {
	listen, config, log string
	hosts               []string
	drain               time.Duration
	check               bool
}

// read returns the config that the flags name, validated and with the flags applied, and
// the watcher that read it. If the flags name no file, the watcher has no file either.
func (o serveFlags) read() (*gateway.Config, *gateway.Watcher, error) {
	if o.drain < 0 {
		return nil, nil, usageError("--drain %v must not be negative", o.drain)
	}
	watcher := &gateway.Watcher{File: o.config}
	if watcher.File == "" {
		watcher.File = os.Getenv("DRAGOMAN_CONFIG")
	}
	config := &gateway.Config{}
	if watcher.File != "" {
		var err error
		if config, err = watcher.Load(); err != nil {
			return nil, nil, failed("%w", err)
		}
	}
	o.override(config)
	if err := config.Check(); err != nil {
		return nil, nil, failed("%w", err)
	}
	return config, watcher, nil
}

// override sets the values of the flags in a config.
func (o serveFlags) override(c *gateway.Config) {
	if o.listen != "" {
		c.Listen = o.listen
	}
	c.Hosts = append(slices.Clip(c.Hosts), o.hosts...)
}

// printCheck prints what a config would serve, or returns its error. It does not listen and
// opens no database.
func (o serveFlags) printCheck(out, stderr io.Writer) error {
	if _, err := o.logger(io.Discard); err != nil {
		return err
	}
	config, watcher, err := o.read()
	if err != nil {
		return err
	}
	notes := &storekit.Notes{} // instead of the database that the config may name
	if _, err := gateway.New(config, gateway.Options{Notes: notes}); err != nil {
		return failed("%w", err)
	}
	warn(stderr, config)
	to := "everyone on this machine"
	if n := len(config.Keys); n > 0 {
		to = counted(n, "key")
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s\n", summary(config, watcher.File != ""))
	for _, r := range config.Served() {
		to := r.To
		if len(config.Routes) == 0 && config.Models != nil && config.Models.Aliases[to] != "" {
			to = config.Models.Aliases[to] // show the model, not the name of the alias again
		}
		fmt.Fprintf(w, "  %s\t→ %s\n", r.Pattern, to)
	}
	fmt.Fprintf(w, "It would listen on %s, for %s.\n", config.Address(), to)
	fmt.Fprintf(w, "state: %s\n", stateOf(config))
	fmt.Fprintf(w, "policies: %s\n", policiesOf(config))
	return w.Flush()
}

// stateOf describes where a gateway stores its state.
func stateOf(c *gateway.Config) string {
	switch {
	case c.State.SQLite != "":
		return "SQLite, " + c.State.SQLite
	case c.State.PostgresEnv != "":
		return "PostgreSQL, named by " + c.State.PostgresEnv
	default:
		return "in memory, lost when the gateway stops"
	}
}

// policiesOf lists what the policies of a config apply to.
func policiesOf(c *gateway.Config) string {
	var out []string
	if c.Policy != nil {
		out = append(out, "all requests")
	}
	for _, name := range slices.Sorted(maps.Keys(c.KeyPolicies)) {
		if c.KeyPolicies[name] != nil {
			out = append(out, "key "+name)
		}
	}
	for _, r := range c.Routes {
		if r.Policy != nil {
			out = append(out, "route "+r.Pattern)
		}
	}
	if out == nil {
		return "none"
	}
	return strings.Join(out, ", ")
}

// summary describes in one line what is served, and why.
func summary(c *gateway.Config, file bool) string {
	var names []string
	for _, r := range c.Served() {
		names = append(names, r.Pattern)
	}
	const most = 10
	if n := len(names); n > most {
		names = append(names[:most:most], fmt.Sprintf("and %d more", n-most))
	}
	switch list := strings.Join(names, ", "); {
	case !file:
		return "no config, so the simulator is served: " + strings.Join(sim.Names(), ", ")
	case len(c.Routes) > 0:
		return counted(len(c.Routes), "route") + ": " + list
	case len(c.Models.Aliases) > 0 || len(c.Models.Providers) > 0:
		return "no routes in the config, so its aliases and providers are served: " + list
	default:
		return "no routes, aliases or providers in the config, so the simulator is served: " + strings.Join(sim.Names(), ", ")
	}
}

// counted returns a number with a noun, in the plural if needed.
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// warn prints the warnings about a config.
func warn(stderr io.Writer, c *gateway.Config) {
	for _, w := range c.Warnings {
		fmt.Fprintf(stderr, "dragoman: warning: %v\n", w)
	}
}

// logger returns the logger of the gateway, or nil for --log off.
func (o serveFlags) logger(w io.Writer) (*slog.Logger, error) {
	switch o.log {
	case "text":
		return slog.New(slog.NewTextHandler(w, nil)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, nil)), nil
	case "off":
		return nil, nil //nolint:nilnil // a nil logger logs nothing
	default:
		return nil, unknownValue("--log", o.log, "text", "json", "off")
	}
}

// serve serves until ctx ends.
func (o serveFlags) serve(ctx context.Context, stop func(), stderr io.Writer) error {
	log, err := o.logger(stderr)
	if err != nil {
		return err
	}
	config, watcher, err := o.read()
	if err != nil {
		return err
	}
	notes, journal, closeNotes, err := openNotes(ctx, config)
	if err != nil {
		return failed("opening the state of the gateway: %w", err)
	}
	defer closeNotes()
	g, err := gateway.New(config, gateway.Options{Log: log, Notes: notes, Journal: journal})
	if err != nil {
		return failed("%w", err)
	}
	defer func() { _ = g.Close() }() // nothing left to do about an error
	listener, err := listen(ctx, config.Address())
	if err != nil {
		return err
	}
	warn(stderr, config)
	fmt.Fprintln(stderr, "dragoman: "+summary(config, watcher.File != ""))
	if watcher.File != "" {
		before := config
		watcher.OnChange = func(changed *gateway.Config) error {
			err := o.reload(g, config, before, changed, stderr)
			if err == nil {
				before = changed
			}
			return err
		}
		watcher.OnError = func(err error) {
			fmt.Fprintf(stderr, "dragoman: the new config has an error, the old one stays in use: %v\n", err)
		}
		go watch(ctx, watcher)
	}
	fmt.Fprintf(stderr, "dragoman: the gateway listens on http://%s\n", listener.Addr())
	context.AfterFunc(ctx, stop)                                    // a second signal ends the program at once
	if err := g.Serve(ctx, listener, max(o.drain, 1)); err != nil { // zero would mean the default
		return failed("%w", err)
	}
	return nil
}

// reload replaces the running config. It prints a warning for changed settings that need
// a restart.
func (o serveFlags) reload(g *gateway.Gateway, began, before, changed *gateway.Config, stderr io.Writer) error {
	o.override(changed)
	if err := changed.Check(); err != nil {
		return err
	}
	now := *changed // the listener keeps its address until a restart
	now.Listen = began.Listen
	if err := now.Check(); err != nil {
		return err
	}
	if err := g.Reload(changed); err != nil {
		return err
	}
	fmt.Fprintln(stderr, "dragoman: reloaded the config: "+summary(changed, true))
	warn(stderr, changed)
	if len(before.Keys) > 0 && len(changed.Keys) == 0 {
		fmt.Fprintln(stderr, "dragoman: warning: the config no longer has keys: everyone on this machine can use all of its models")
	}
	if settings := needRestart(began, changed); len(settings) > 0 {
		fmt.Fprintf(stderr, "dragoman: warning: %s changed in the config: restart the gateway to apply it\n", strings.Join(settings, " and "))
	}
	return nil
}

// needRestart returns the changed settings that take effect only after a restart.
func needRestart(began, changed *gateway.Config) (out []string) {
	if changed.Address() != began.Address() {
		out = append(out, "listen")
	}
	if changed.State != began.State {
		out = append(out, "state")
	}
	if changed.Limits.HeaderBytes != began.Limits.HeaderBytes {
		out = append(out, "limits.header_bytes")
	}
	return out
}

// watch reloads the config when the file changes, and on SIGHUP.
func watch(ctx context.Context, w *gateway.Watcher) {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	go func() { _ = w.Run(ctx) }() // it ends with ctx
	for {
		select {
		case <-ctx.Done():
			return
		case <-hup:
			w.Poll()
		}
	}
}

// openNotes opens the store of the gateway's state. It returns nil for state in memory.
func openNotes(ctx context.Context, c *gateway.Config) (notes session.Notes, journal tool.Journal, closeNotes func(), err error) {
	var store interface {
		session.Store
		Notes() session.Notes
		Close() error
	}
	switch s := c.State; {
	case s.SQLite != "":
		store, err = sqlite.Open(ctx, s.SQLite, sqlite.Options{})
	case s.PostgresEnv != "":
		store, err = postgres.Open(ctx, os.Getenv(s.PostgresEnv), postgres.Options{})
	default:
		return nil, nil, func() {}, nil
	}
	if err != nil {
		return nil, nil, nil, err
	}
	if c.MCP != nil {
		j, err := session.OpenOrCreate(ctx, store, mcpJournal)
		if err != nil {
			_ = store.Close()
			return nil, nil, nil, err
		}
		journal = j
	}
	return store.Notes(), journal, func() { _ = store.Close() }, nil // nothing left to do about an error
}

// mcpJournal is the session with the journal of MCP calls.
const mcpJournal = "dragoman-gateway-mcp"
