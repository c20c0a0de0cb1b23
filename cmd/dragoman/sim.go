package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/framing/bodies"
	"github.com/dragoman-go/dragoman/internal/text/words"
	"github.com/dragoman-go/dragoman/sim"
)

func newSim() *cobra.Command {
	var o simFlags
	cmd := &cobra.Command{
		Use:   "sim [--listen ADDRESS]",
		Short: "Serve a model that needs no network, in every wire language",
		Long: `Sim serves the simulator over HTTP until it is interrupted: models that always
answer the same, at the paths that the vendors have, with any credential. Point
the base URL of a client at it. For "dragoman run" and provider.Open, with --model:

  openai/sim/planner      OPENAI_BASE_URL=http://127.0.0.1:8080/v1 OPENAI_API_KEY=any
  anthropic/sim/planner   ANTHROPIC_BASE_URL=http://127.0.0.1:8080 ANTHROPIC_API_KEY=any
  gemini/sim/planner      GEMINI_BASE_URL=http://127.0.0.1:8080 GEMINI_API_KEY=any
  ollama/sim/planner      OLLAMA_HOST=127.0.0.1:8080

The models are

  sim/planner    calls the tools that the prompt speaks of, and tells their results
  sim/echo       says what it heard
  sim/scenario   plays the script that --scenario names, or a demonstration

It stores responses of the OpenAI Responses API in memory, unless "store" is false, so
that clients can retrieve, continue and refer to them.

It says on standard error where it listens. Other machines do not reach it, unless
--allow-remote says that they may: anybody who reaches it may use it.

--fault makes every answer go wrong in one way; a client that wants one itself
writes it behind the model, as in "sim/planner?fault=c2". --faults lists them. What a
script looks like is in the documentation of the package sim.`,
		Example: `  dragoman sim --listen 127.0.0.1:8080
  dragoman sim --scenario coats.scenario --rate 30 --first 200ms
  dragoman sim --faults`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asJSON, err := reportFormat(o.report); err != nil {
				return err
			} else if o.list {
				return listFaults(cmd.OutOrStdout(), asJSON)
			}
			config, err := o.config()
			if err != nil {
				return err
			}
			if err := reachable(o.listen, o.remote); err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return serveSim(ctx, stop, o.listen, sim.Handler(config), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.listen, "listen", "127.0.0.1:8080", "where to listen; port 0 takes a free one")
	f.BoolVar(&o.remote, "allow-remote", false, "listen where other machines can reach it")
	f.StringVar(&o.scenario, "scenario", "", "the script that sim/scenario plays")
	f.StringVar(&o.fault, "fault", "", "what goes wrong in every answer")
	f.StringVar(&o.seed, "seed", "", "goes into all ids")
	f.Float64Var(&o.rate, "rate", 0, "tokens in a second (default: all at once)")
	f.DurationVar(&o.first, "first", 0, "how long the first token takes")
	f.BoolVar(&o.list, "faults", false, "list what can go wrong, and serve nothing")
	f.StringVar(&o.report, "report", "text", "how to list: text or json")
	return cmd
}

type simFlags struct {
	listen, scenario, fault, seed, report string
	remote, list                          bool
	rate                                  float64
	first                                 time.Duration
}

func (o simFlags) config() (sim.Config, error) {
	c := sim.Config{Fault: strings.ToLower(o.fault), Settings: sim.Settings{Seed: o.seed, Pace: sim.Pace{First: o.first, TokensPerSecond: o.rate}}}
	if o.rate < 0 || math.IsNaN(o.rate) || math.IsInf(o.rate, 0) || o.first < 0 {
		return c, misused("--rate and --first cannot be less than 0")
	}
	var faults []string
	for _, f := range sim.Faults() {
		faults = append(faults, f.ID)
	}
	if c.Fault != "" && !slices.Contains(faults, c.Fault) {
		return c, misused("unknown --fault %q: \"dragoman sim --faults\" lists all%s", o.fault, words.Meant(c.Fault, faults))
	}
	if o.scenario == "" {
		return c, nil
	}
	script, err := readScript(o.scenario)
	if err != nil {
		return c, failed("%w", err)
	}
	if c.Scenario, err = sim.ParseScenario(o.scenario, string(script)); err != nil {
		return c, failed("%w", err)
	}
	return c, nil
}

// readScript reads a file that is no longer than a script can be.
func readScript(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was read
	script, err := io.ReadAll(io.LimitReader(f, bodies.DefaultMax+1))
	if err == nil && len(script) > bodies.DefaultMax {
		err = fmt.Errorf("%s: %w: more than %d bytes", name, dragoman.ErrTooLarge, bodies.DefaultMax)
	}
	return script, err
}

// reachable refuses an address that other machines reach, unless they may.
func reachable(address string, remote bool) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return misused("--listen: %w; it is like 127.0.0.1:8080", err)
	}
	ip, err := netip.ParseAddr(host)
	if remote || host == "localhost" || err == nil && ip.IsLoopback() {
		return nil
	}
	return misused("--listen %s: others could reach that, and the simulator asks nobody who they are; give 127.0.0.1, or --allow-remote", address)
}

// drain is how long answers may take that are on their way when the program ends.
const drain = 5 * time.Second

// serveSim serves until ctx ends, and lets answers end that are on their way. From
// then on stop has been called, so that a second signal ends the program at once.
func serveSim(ctx context.Context, stop func(), address string, handler http.Handler, said io.Writer) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return failed("%w", err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute}
	fmt.Fprintf(said, "dragoman: the simulator listens on http://%s\n", listener.Addr())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return failed("%w", err)
	case <-ctx.Done():
	}
	stop()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	if err := server.Shutdown(last); errors.Is(err, context.DeadlineExceeded) {
		err = server.Close() // who is still there is let go
		if err != nil {
			return failed("%w", err)
		}
	} else if err != nil {
		return failed("%w", err)
	}
	return nil
}

// listedFault is a fault as JSON. docs/command.md describes it.
type listedFault struct {
	ID         string             `json:"id"`
	About      string             `json:"about"`
	Dialects   []dragoman.Dialect `json:"dialects"`
	StreamOnly bool               `json:"stream_only"`
	Outcome    string             `json:"outcome"`
}

func listFaults(w io.Writer, asJSON bool) error {
	if asJSON {
		list := struct {
			Faults []listedFault `json:"faults"`
		}{}
		for _, f := range sim.Faults() {
			list.Faults = append(list.Faults, listedFault{f.ID, f.About, f.Dialects, f.StreamOnly, f.Outcome})
		}
		if err := writeJSON(w, list); err != nil {
			return failed("%w", err)
		}
		return nil
	}
	var b strings.Builder
	for _, f := range sim.Faults() {
		where := "all"
		if len(f.Dialects) < len(languages()) {
			var words []string
			for _, d := range f.Dialects {
				words = append(words, languageWord(d))
			}
			where = strings.Join(words, ", ")
		}
		fmt.Fprintf(&b, "%-15s  %-6s  %s (%s)\n", f.ID, f.Outcome, f.About, where)
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return failed("%w", err)
	}
	return nil
}
