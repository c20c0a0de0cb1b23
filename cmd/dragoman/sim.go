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
	"github.com/dragoman-go/dragoman/internal/framing"
	"github.com/dragoman-go/dragoman/internal/textkit"
	"github.com/dragoman-go/dragoman/sim"
)

func newSim() *cobra.Command {
	var o simFlags
	cmd := &cobra.Command{
		Use:   "sim [--listen ADDRESS]",
		Short: "Serve simulated models, for tests without a network or API key",
		Long: `Sim serves simulated models over HTTP until you interrupt it. The models are
deterministic: the same request always gets the same response. Sim serves the paths of
the vendors' APIs in every dialect and accepts any API key.

To use it, set the base URL of a client. For "dragoman run --model" and provider.Open:

  openai/sim/planner      OPENAI_BASE_URL=http://127.0.0.1:8080/v1 OPENAI_API_KEY=any
  anthropic/sim/planner   ANTHROPIC_BASE_URL=http://127.0.0.1:8080 ANTHROPIC_API_KEY=any
  gemini/sim/planner      GEMINI_BASE_URL=http://127.0.0.1:8080 GEMINI_API_KEY=any
  ollama/sim/planner      OLLAMA_HOST=127.0.0.1:8080

Models:

  sim/planner    calls the tools that the prompt mentions and reports their results
  sim/echo       repeats the prompt
  sim/scenario   plays the script that --scenario names, or a demonstration

Sim stores responses of the OpenAI Responses API in memory, unless "store" is false, so
that clients can retrieve them, continue them and refer to them.

Sim prints its address to standard error. By default it listens only on addresses that
other machines cannot reach, because it accepts requests from everyone. --allow-remote
permits other addresses.

--fault breaks every response in one way. To break a single response, a client appends
the fault to the model name, as in "sim/planner?fault=c2". --faults lists all faults. The
documentation of package sim describes the script format.`,
		Example: `  dragoman sim --listen 127.0.0.1:8080
  dragoman sim --scenario coats.scenario --rate 30 --first 200ms
  dragoman sim --faults`,
		Args: atMost(0),
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
	f.StringVar(&o.listen, "listen", "127.0.0.1:8080", "the address to listen on; port 0 means any free port")
	f.BoolVar(&o.remote, "allow-remote", false, "permit an address that other machines can reach")
	f.StringVar(&o.scenario, "scenario", "", "the script that sim/scenario plays")
	f.StringVar(&o.fault, "fault", "", "break every response with this fault")
	f.StringVar(&o.seed, "seed", "", "a text that changes all generated ids")
	f.Float64Var(&o.rate, "rate", 0, "tokens per second in streams (default: no limit)")
	f.DurationVar(&o.first, "first", 0, "the delay before the first token")
	f.BoolVar(&o.list, "faults", false, "list the faults and exit")
	f.StringVar(&o.report, "report", "text", "output format of --faults: text or json")
	return cmd
}

type simFlags struct {
	listen, scenario, fault, seed, report string
	remote, list                          bool
	rate                                  float64
	first                                 time.Duration
}

func (o simFlags) config() (sim.Config, error) {
	c := sim.Config{Fault: strings.ToLower(o.fault), Settings: sim.Settings{Seed: o.seed, Pace: sim.Pace{FirstToken: o.first, TokensPerSecond: o.rate}}}
	if o.rate < 0 || math.IsNaN(o.rate) || math.IsInf(o.rate, 0) || o.first < 0 {
		return c, usageError("--rate and --first must not be negative")
	}
	var faults []string
	for _, f := range sim.Faults() {
		faults = append(faults, f.ID)
	}
	if c.Fault != "" && !slices.Contains(faults, c.Fault) {
		return c, usageError("unknown --fault %q: \"dragoman sim --faults\" lists all%s", o.fault, textkit.Suggest(c.Fault, faults))
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

// readScript reads a scenario file. It refuses files that are too large.
func readScript(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	script, err := io.ReadAll(io.LimitReader(f, framing.DefaultMaxBody+1))
	if err == nil && len(script) > framing.DefaultMaxBody {
		err = fmt.Errorf("%s: %w: more than %d bytes", name, dragoman.ErrTooLarge, framing.DefaultMaxBody)
	}
	return script, err
}

// reachable returns an error if other machines can reach the address, unless remote is set.
func reachable(address string, remote bool) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return usageError("--listen: %w; use HOST:PORT, such as 127.0.0.1:8080", err)
	}
	ip, err := netip.ParseAddr(host)
	if remote || host == "localhost" || err == nil && ip.IsLoopback() {
		return nil
	}
	return usageError("--listen %s: other machines can reach this address, and the simulator has no authentication; use 127.0.0.1, or permit it with --allow-remote", address)
}

// listen listens on an address. The error says what to do.
func listen(ctx context.Context, address string) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, failed("%w; stop the program that uses the address, or choose another one with --listen", err)
	}
	return l, nil
}

// drain limits how long open requests may take to finish after an interrupt.
const drain = 5 * time.Second

// serveSim serves until ctx ends, then waits for open requests to finish. It calls stop
// when ctx ends, so that a second signal ends the program at once.
func serveSim(ctx context.Context, stop func(), address string, handler http.Handler, stderr io.Writer) error {
	listener, err := listen(ctx, address)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute}
	fmt.Fprintf(stderr, "dragoman: the simulator listens on http://%s\n", listener.Addr())
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
		err = server.Close() // close connections that did not finish in time
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
	ID          string             `json:"id"`
	Description string             `json:"description"`
	Dialects    []dragoman.Dialect `json:"dialects"`
	StreamOnly  bool               `json:"stream_only"`
	Outcome     string             `json:"outcome"`
}

func listFaults(w io.Writer, asJSON bool) error {
	if asJSON {
		list := struct {
			Faults []listedFault `json:"faults"`
		}{}
		for _, f := range sim.Faults() {
			list.Faults = append(list.Faults, listedFault{f.ID, f.Description, f.Dialects, f.StreamOnly, f.Outcome})
		}
		if err := writeJSON(w, list); err != nil {
			return failed("%w", err)
		}
		return nil
	}
	var b strings.Builder
	for _, f := range sim.Faults() {
		where := "all"
		if len(f.Dialects) < len(allDialects()) {
			var words []string
			for _, d := range f.Dialects {
				words = append(words, dialectWord(d))
			}
			where = strings.Join(words, ", ")
		}
		fmt.Fprintf(&b, "%-15s  %-7s  %s (%s)\n", f.ID, f.Outcome, f.Description, where)
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return failed("%w", err)
	}
	return nil
}
