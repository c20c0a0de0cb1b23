package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/dragoman-go/dragoman/gateway"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/session/postgres"
	"github.com/dragoman-go/dragoman/session/sqlite"
)

func newServe() *cobra.Command {
	var o serveFlags
	cmd := &cobra.Command{
		Use:   "serve [--listen ADDRESS] [--config FILE]",
		Short: "Serve every wire language over any model",
		Long: `Serve is a gateway: clients that speak OpenAI Chat, OpenAI Responses, Anthropic,
Gemini or Ollama reach any model through it, tools, reasoning and streams intact.
Point the base URL of a client at it:

  OpenAI      http://127.0.0.1:8088/v1
  Anthropic   http://127.0.0.1:8088
  Gemini      http://127.0.0.1:8088
  Ollama      http://127.0.0.1:8088

Without a config it serves the simulator's models, sim/planner, sim/echo and
sim/scenario. With one, which --config or the variable DRAGOMAN_CONFIG names, it
serves the routes of its section "gateway"; docs/gateway.md has all of it. The file
is read again when it changes, and at once after a SIGHUP; one that cannot be used is
told, and changes nothing.

It refuses to listen where other machines reach it unless the config has keys. The
log, a line for each request, goes to standard error. After an interrupt it takes no
more requests, and lets answers end that are on their way; a second one ends it at
once.

  GET /healthz, GET /metrics`,
		Example: `  dragoman serve
  dragoman serve --config gateway.yaml --log json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return o.serve(ctx, stop, cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.listen, "listen", "", "where to listen, instead of what the config says; port 0 takes a free one (default "+gateway.DefaultListen+")")
	f.StringVar(&o.config, "config", "", "the config file")
	f.StringVar(&o.log, "log", "text", "how to log: text, json or off")
	f.DurationVar(&o.drain, "drain", gateway.DefaultDrain, "how long answers may take that are on their way at the end")
	return cmd
}

type serveFlags struct {
	listen, config, log string
	drain               time.Duration
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
		return nil, misused("--log %q is none of text, json, off", o.log)
	}
}

// serve serves until ctx ends.
func (o serveFlags) serve(ctx context.Context, stop func(), said io.Writer) error {
	log, err := o.logger(said)
	if err != nil {
		return err
	}
	watcher := &gateway.Watcher{File: o.config, Failed: func(err error) {
		fmt.Fprintf(said, "dragoman: the config is not taken over: %v\n", err)
	}}
	if watcher.File == "" {
		watcher.File = os.Getenv("DRAGOMAN_CONFIG")
	}
	config := &gateway.Config{}
	if watcher.File != "" {
		if config, err = watcher.Load(); err != nil {
			return failed("%w", err)
		}
	}
	if o.listen != "" {
		config.Listen = o.listen
	}
	if err := config.Check(); err != nil {
		return failed("%w", err)
	}
	notes, closeNotes, err := openNotes(ctx, config.State)
	if err != nil {
		return failed("the state of the gateway: %w", err)
	}
	defer closeNotes()
	g, err := gateway.New(config, gateway.Options{Log: log, Notes: notes, Version: version()})
	if err != nil {
		return failed("%w", err)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", config.Address())
	if err != nil {
		return failed("%w", err)
	}
	if watcher.File == "" {
		fmt.Fprintln(said, "dragoman: there is no config, so the simulator answers: sim/planner, sim/echo, sim/scenario")
	} else {
		watcher.Change = func(changed *gateway.Config) error { return o.takeOver(g, config, changed, said) }
		go watch(ctx, watcher)
	}
	fmt.Fprintf(said, "dragoman: the gateway listens on http://%s\n", listener.Addr())
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	if err := g.Serve(ctx, listener, o.drain); err != nil {
		return failed("%w", err)
	}
	return nil
}

// takeOver puts a config in the place of the one that was there. What takes another
// start is told.
func (o serveFlags) takeOver(g *gateway.Gateway, began, changed *gateway.Config, said io.Writer) error {
	if o.listen != "" {
		changed.Listen = o.listen
	}
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
	fmt.Fprintln(said, "dragoman: the config was read again")
	if changed.Address() != began.Address() || changed.State != began.State || changed.Limits.HeaderBytes != began.Limits.HeaderBytes {
		fmt.Fprintln(said, "dragoman: listen, state and header_bytes change with the next start")
	}
	return nil
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
