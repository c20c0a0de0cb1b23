package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/dragoman-go/dragoman/gateway"
	"github.com/dragoman-go/dragoman/internal/storage/memorynotes"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/session/postgres"
	"github.com/dragoman-go/dragoman/session/sqlite"
	"github.com/dragoman-go/dragoman/sim"
)

func newServe() *cobra.Command {
	var o serveFlags
	cmd := &cobra.Command{
		Use:   "serve [--listen ADDRESS] [--host NAME] [--config FILE] [--check]",
		Short: "Serve every wire language over any model",
		Long: `Serve is a gateway: clients that speak OpenAI Chat, OpenAI Responses, Anthropic,
Gemini or Ollama reach any model through it, tools, reasoning and streams intact.
Point the base URL of a client at it:

  OpenAI      http://127.0.0.1:8088/v1
  Anthropic   http://127.0.0.1:8088
  Gemini      http://127.0.0.1:8088
  Ollama      http://127.0.0.1:8088

What is served, the config says, which --config or the variable DRAGOMAN_CONFIG
names; docs/gateway.md has all of it:

  - the routes of its section "gateway", and nothing else; or
  - where it has no routes, each alias by its name and each provider of the file as
    NAME/*; or
  - where it has none of these either, or there is no config, the simulator's models:
    sim/planner, sim/echo and sim/scenario, also without "sim/".

--check reads the config, says what would be served, and ends: with exit code 1 where
something is wrong. The file is read again when it changes, and at once after a
SIGHUP; one that cannot be used is told, and changes nothing.

Without keys in the config it listens only on addresses that other machines cannot
reach, and accepts only requests for localhost, *.localhost, loopback addresses, and
the host names listed under "hosts" in the config or with --host. This keeps web pages
from using it through a host name that they control.

The log, a line for each request, goes to standard error. After an interrupt it takes
no more requests, and lets those end that are being answered; a second one ends it at
once.

  GET /healthz, GET /metrics`,
		Example: `  dragoman serve
  dragoman serve --config gateway.yaml --check
  dragoman serve --config gateway.yaml --log json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			if o.check {
				return o.checked(cmd.OutOrStdout(), cmd.ErrOrStderr())
			}
			return o.serve(ctx, stop, cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.listen, "listen", "", "where to listen, instead of what the config says; port 0 takes a free one (default "+new(gateway.Config).Address()+")")
	f.StringArrayVar(&o.hosts, "host", nil, "a further host name to accept without keys, such as host.docker.internal; may be repeated")
	f.StringVar(&o.config, "config", "", "the config file")
	f.StringVar(&o.log, "log", "text", "how to log: text, json or off")
	f.DurationVar(&o.drain, "drain", 30*time.Second, "how long to wait at the end for answers to finish; 0s cuts them off at once")
	f.BoolVar(&o.check, "check", false, "say what the config would serve, or what is wrong with it, and end")
	return cmd
}

type serveFlags struct {
	listen, config, log string
	hosts               []string
	drain               time.Duration
	check               bool
}

// read is the config that these flags name, which may be served, and the watcher that
// read it; one without a file where there is none.
func (o serveFlags) read() (*gateway.Config, *gateway.Watcher, error) {
	if o.drain < 0 {
		return nil, nil, misused("--drain %v is below zero", o.drain)
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

// checked says what a config would serve, or what is wrong with it. It does not listen,
// and opens no database.
func (o serveFlags) checked(out, said io.Writer) error {
	if _, err := o.logger(io.Discard); err != nil {
		return err
	}
	config, watcher, err := o.read()
	if err != nil {
		return err
	}
	notes := &memorynotes.Notes{} // in the place of the database that the config may name
	if _, err := gateway.New(config, gateway.Options{Notes: notes}); err != nil {
		return failed("%w", err)
	}
	warn(said, config)
	to := "everybody on this machine"
	if n := len(config.Keys); n > 0 {
		to = counted(n, "key")
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s\n", summary(config, watcher.File != ""))
	for _, r := range config.Served() {
		to := r.To
		if len(config.Routes) == 0 && config.Models != nil && config.Models.Aliases[to] != "" {
			to = config.Models.Aliases[to] // the alias itself says nothing
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

// summary says in a line what is served, and why.
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
		return "there is no config, so the simulator answers: " + strings.Join(sim.Names(), ", ")
	case len(c.Routes) > 0:
		return counted(len(c.Routes), "route") + ": " + list
	case len(c.Models.Aliases) > 0 || len(c.Models.Providers) > 0:
		return "there are no routes, so the aliases and providers of the config are served: " + list
	default:
		return "the config has no routes, aliases or providers, so the simulator answers: " + strings.Join(sim.Names(), ", ")
	}
}

// counted is a number of things.
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// warn says what of a config is most likely not meant.
func warn(said io.Writer, c *gateway.Config) {
	for _, w := range c.Warnings {
		fmt.Fprintf(said, "dragoman: warning: %v\n", w)
	}
}

// logger is what the gateway logs to.
func (o serveFlags) logger(w io.Writer) (*slog.Logger, error) {
	switch o.log {
	case "text":
		return slog.New(slog.NewTextHandler(w, nil)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, nil)), nil
	case "off":
		return nil, nil //nolint:nilnil // nobody is told
	default:
		return nil, unknownValue("--log", o.log, "text", "json", "off")
	}
}

// serve serves until ctx ends.
func (o serveFlags) serve(ctx context.Context, stop func(), said io.Writer) error {
	log, err := o.logger(said)
	if err != nil {
		return err
	}
	config, watcher, err := o.read()
	if err != nil {
		return err
	}
	notes, closeNotes, err := openNotes(ctx, config.State)
	if err != nil {
		return failed("the state of the gateway: %w", err)
	}
	defer closeNotes()
	g, err := gateway.New(config, gateway.Options{Log: log, Notes: notes})
	if err != nil {
		return failed("%w", err)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", config.Address())
	if err != nil {
		return failed("%w", err)
	}
	warn(said, config)
	fmt.Fprintln(said, "dragoman: "+summary(config, watcher.File != ""))
	if watcher.File != "" {
		before := config
		watcher.Change = func(changed *gateway.Config) error {
			err := o.takeOver(g, config, before, changed, said)
			if err == nil {
				before = changed
			}
			return err
		}
		watcher.Failed = func(err error) { fmt.Fprintf(said, "dragoman: the config is not taken over: %v\n", err) }
		go watch(ctx, watcher)
	}
	fmt.Fprintf(said, "dragoman: the gateway listens on http://%s\n", listener.Addr())
	context.AfterFunc(ctx, stop)                                    // a second signal ends the program at once
	if err := g.Serve(ctx, listener, max(o.drain, 1)); err != nil { // zero would mean the default
		return failed("%w", err)
	}
	return nil
}

// takeOver puts a config in the place of the one before. What takes another start than
// the one it began with is told.
func (o serveFlags) takeOver(g *gateway.Gateway, began, before, changed *gateway.Config, said io.Writer) error {
	o.override(changed)
	if err := changed.Check(); err != nil {
		return err
	}
	now := *changed // which is listened on where it began, whatever the file says by now
	now.Listen = began.Listen
	if err := now.Check(); err != nil {
		return err
	}
	if err := g.Reload(changed); err != nil {
		return err
	}
	fmt.Fprintln(said, "dragoman: the config was read again: "+summary(changed, true))
	warn(said, changed)
	if len(before.Keys) > 0 && len(changed.Keys) == 0 {
		fmt.Fprintln(said, "dragoman: warning: the config has no keys any more: everybody on this machine may use all of its models")
	}
	if settings := restarts(began, changed); len(settings) > 0 {
		fmt.Fprintf(said, "dragoman: warning: of the config, %s changed: that takes another start\n", strings.Join(settings, " and "))
	}
	return nil
}

// restarts are the settings that differ and that nothing but another start takes over.
func restarts(began, changed *gateway.Config) (out []string) {
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

// watch reads the config again when it changes, and after a SIGHUP.
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
			w.Look()
		}
	}
}

// openNotes opens where the gateway remembers; nil means in memory.
func openNotes(ctx context.Context, s gateway.State) (notes session.Notes, closeNotes func(), err error) {
	switch {
	case s.SQLite != "":
		store, err := sqlite.Open(ctx, s.SQLite, sqlite.Options{})
		if err != nil {
			return nil, nil, err
		}
		return store.Notes(), func() { _ = store.Close() }, nil // it was used
	case s.PostgresEnv != "":
		store, err := postgres.Open(ctx, os.Getenv(s.PostgresEnv), postgres.Options{})
		if err != nil {
			return nil, nil, err
		}
		return store.Notes(), func() { _ = store.Close() }, nil
	default:
		return nil, func() {}, nil
	}
}
