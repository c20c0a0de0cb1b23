package bench

import (
	"flag"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/testkit/benchdata"
)

var (
	update = flag.Bool("update", false, "write ../docs/benchmarks.md")
	date   = flag.String("date", time.Now().UTC().Format(time.DateOnly), "the date for the document")
)

// The promises (min, max) and the limits of the test (fail). Allocation counts are exact. Times are
// measured on shared machines, so the limits leave room for noise: the test should fail only if the
// code is slow.
const (
	minSpeedup, failSpeedup = 3.0, 2.5  // streams, relative to the peer
	maxAllocs               = 1.0 / 3   // streams, relative to the peer
	maxBytes                = 2.1       // growth of allocated bytes, for twice the arguments
	maxTime, failTime       = 2.5, 3.0  // growth of time, for twice the arguments
	maxEncode, failEncode   = 3.0, 3.75 // encoding a request, relative to json.Compact
	rounds                  = 5         // rounds of each side; the best one counts
	roundTime               = "150ms"   // duration of one round
	repeats                 = 10        // runs of each size, for the median
	docPath                 = "../docs/benchmarks.md"
	command                 = "cd bench && go test . -run TestRatios -update"
)

// sample is the cost of one operation.
type sample struct {
	time   float64 // on the clock of the promise
	wall   float64
	allocs float64
	bytes  float64
}

// race runs operations alternately, so that other load affects all of them, and returns the best
// result of each: other load can only add.
func race(tb testing.TB, ops ...func(*testing.B)) []sample {
	tb.Helper()
	if err := flag.Set("test.benchtime", roundTime); err != nil {
		tb.Fatal(err)
	}
	best := make([]sample, len(ops))
	for round := range rounds {
		for i, op := range ops {
			runtime.GC()
			r := testing.Benchmark(op)
			if r.N == 0 {
				tb.Fatal("a benchmark failed")
			}
			s := sample{r.Extra[cpuMetric], float64(r.NsPerOp()), float64(r.AllocsPerOp()), float64(r.AllocedBytesPerOp())}
			if round == 0 {
				best[i] = s
			}
			best[i].time, best[i].wall = min(best[i].time, s.time), min(best[i].wall, s.wall)
			if s.allocs < best[i].allocs {
				best[i].allocs, best[i].bytes = s.allocs, s.bytes
			}
		}
	}
	return best
}

// TestRatios measures every promise about speed and prints the table.
func TestRatios(t *testing.T) {
	if testing.Short() {
		t.Skip("measuring takes minutes")
	}
	var doc strings.Builder
	fmt.Fprintf(&doc, "# Benchmarks\n\n"+
		"How fast Dragoman is, which promises about speed it keeps, and which it misses.\n\n"+
		"| section | Dragoman is compared with |\n|---|---|\n"+
		"| Codecs | the SDKs of the vendors; `encoding/json` |\n"+
		"| [Gateway](#gateway) | httputil.ReverseProxy, Portkey's gateway, bifrost |\n"+
		"| [Agents](#agents) | eino, Genkit, adk-go, fantasy, langchaingo |\n\n"+
		"In the tables, \"ours\" is Dragoman. The machine is shared, so only ratios are given: absolute times would depend more on other load than on the code.\n\n"+
		"## Codecs\n\n"+
		"Written by `%s` on %s. Machine class: %d cores, %s/%s, %s.\n\n"+
		"The two sides of each line ran alternately, in one process, on the same bytes. Time is the %s, the best of %d rounds of %s each "+
		"(the median in the table about growth). The wall clock is shown for comparison: under load it can be wrong several times over, in both directions. "+
		"Allocation counts are exact.\n",
		command, *date, runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version(), clock, rounds, roundTime)
	streams(t, &doc)
	requests(t, &doc)
	scaling(t, &doc)
	fmt.Fprintf(&doc, "\n`go test .` in `bench/` fails if an allocation count breaks its promise, or if a time breaks it by more than the noise of a shared machine: "+
		"below %.1f times as fast for streams, above %.2f times `json.Compact` for encoding, above %.1f times the time for twice the arguments. "+
		"Lowering without a cache, which misses the promise, is reported but not tested. `TestBytesGrowLinearly` checks the growth of bytes at sizes that are not powers of two.\n",
		failSpeedup, failEncode, failTime)
	t.Log("\n" + doc.String())
	if *update {
		doc.WriteString(others(t))
		if err := os.WriteFile(docPath, []byte(doc.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// others returns the sections of the document that modules bench/gateway and bench/agents write.
// They follow the sections of this module.
func others(t *testing.T) string {
	t.Helper()
	was, err := os.ReadFile(docPath)
	if err != nil {
		t.Fatal(err)
	}
	for _, title := range []string{"\n## Gateway\n", "\n## Agents\n"} {
		if _, section, found := strings.Cut(string(was), title); found {
			return title + section
		}
	}
	return ""
}

// verdict returns the words of the table for a promise.
func verdict(kept bool) string {
	if kept {
		return "kept"
	}
	return "**missed**"
}

func streams(t *testing.T, doc *strings.Builder) {
	fmt.Fprintf(doc, "\n### Decode and accumulate a stream of %d argument deltas\n\n"+
		"Promise: at least %.0f times as fast as the vendor's SDK, with at most a third of its allocations. "+
		"\"With chunks\" also returns the original JSON of every event, which a gateway needs; the option NoNative leaves it out. "+
		"If a dialect does not stream arguments, the deltas are text, with calls between them.\n\n"+
		"| stream | ours | against | times as fast | by the wall clock | their allocations : ours | their bytes : ours | promise |\n|---|---|---|---|---|---|---|---|\n",
		benchdata.StreamChunks, minSpeedup)
	for _, c := range contests {
		body := benchdata.ToolStream(c.codec.Dialect())
		s := race(t, streamPeer(c, body), streamOurs(c, body, lean), streamOurs(c, body, dialect.DecodeOptions{}))
		for i, what := range []string{"NoNative", "with chunks"} {
			peer, own := s[0], s[i+1]
			speed, allocs := peer.time/own.time, own.allocs/peer.allocs
			if c.otherThread {
				speed = peer.wall / own.wall
			}
			fmt.Fprintf(doc, "| %s | %s | %s | %.1f | %.1f | %.0f : 1 | %.0f : 1 | %s |\n", c.name, what, c.peer, speed, peer.wall/own.wall, 1/allocs, peer.bytes/own.bytes,
				verdict(speed >= minSpeedup && allocs <= maxAllocs))
			if speed < failSpeedup && !c.otherThread {
				t.Errorf("%s, %s: %.2f times as fast as %s, want %.1f", c.name, what, speed, c.peer, minSpeedup)
			}
			if allocs > maxAllocs {
				t.Errorf("%s, %s: %.0f allocations, %s makes %.0f", c.name, what, own.allocs, c.peer, peer.allocs)
			}
		}
	}
}

func requests(t *testing.T, doc *strings.Builder) {
	fmt.Fprintf(doc, "\n### A request of 100 tools and 200 messages\n\n"+
		"Cost as a multiple of `json.Compact` of the written bytes (into a reused buffer). Promise: encoding from the canonical form costs at most %.0f. In parentheses: by the wall clock.\n\n"+
		"The cost depends on the tools. \"Plain\" schemas are accepted unchanged by most targets; for targets that lower them too, the cell is empty. \"Lowered\" schemas are like those of generators and MCP servers, "+
		"with references, unions and a choice at the root: all 100 must be rewritten, in several passes each. That happens once per tool and target if the caller has an "+
		"`interop.SchemaCache`, and otherwise with every request.\n\n"+
		"| dialect | kB | plain | promise | lowered, without a cache | promise | lowered, with a cache | promise |\n|---|---|---|---|---|---|---|---|\n", maxEncode)
	var rest strings.Builder
	for _, c := range contests {
		r := newRequestBench(t, c.codec)
		if r.losses < 100 {
			t.Errorf("%s: only %d losses: the tools should need lowering", c.name, r.losses)
		}
		s := race(t, r.compact, r.encode, r.decode, r.replay, r.compactLow, r.lowered, r.cached)
		ratio := func(i, base int) float64 { return s[i].time / s[base].time }
		wall := func(i, base int) float64 { return s[i].wall / s[base].wall }
		asIs, lowered, cached := ratio(1, 0), ratio(5, 4), ratio(6, 4)
		plain := "| | |"
		if r.asIs {
			plain = fmt.Sprintf("| %.2f (%.2f) | %s |", asIs, wall(1, 0), verdict(asIs <= maxEncode))
		}
		fmt.Fprintf(doc, "| %s | %d %s %.2f (%.2f) | %s | %.2f (%.2f) | %s |\n", c.name, len(r.body)/1000,
			plain, lowered, wall(5, 4), verdict(lowered <= maxEncode), cached, wall(6, 4), verdict(cached <= maxEncode))
		fmt.Fprintf(&rest, "| %s | %.2f | %.2f |\n", c.name, ratio(2, 0), ratio(3, 0))
		// Lowering without a cache is known to cost more, and the table shows it.
		for what, got := range map[string]float64{"plain": asIs, "lowered, with a cache": cached} {
			if got > failEncode && (r.asIs || what != "plain") {
				t.Errorf("%s: encoding tools %s costs %.2f times json.Compact, want at most %.1f", c.name, what, got, maxEncode)
			}
		}
	}
	fmt.Fprintf(doc, "\nDecoding, and same-dialect replay of an unchanged request, byte for byte (no promise):\n\n| dialect | decode | replay |\n|---|---|---|\n%s", rest.String())
}

func scaling(t *testing.T, doc *strings.Builder) {
	sizes := []int{1 << 20, 2 << 20, 4 << 20}
	fmt.Fprintf(doc, "\n### 1, 2, 4 MB of arguments in 8-byte fragments\n\n"+
		"How memory and time grow if the arguments of a streamed call double. Promise: allocated bytes at most %.1f times, the median time of %d at most %.1f times.\n\n"+
		"| dialect | bytes 1→2 | bytes 2→4 | time 1→2 | time 2→4 | promise |\n|---|---|---|---|---|---|\n", maxBytes, repeats, maxTime)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for _, c := range contests {
		bodies := make([][]byte, len(sizes))
		for i, size := range sizes {
			bodies[i] = benchdata.Stream(c.codec.Dialect(), []string{benchdata.Arguments(size)}, 8)
		}
		times, bytes := make([][]time.Duration, len(sizes)), make([]float64, len(sizes))
		for repeat := range repeats {
			for i, body := range bodies {
				run := measureGrowth(t, c.codec, body)
				if len(run.calls) != 1 || len(fmt.Sprint(run.calls[0].arguments)) != sizes[i] {
					t.Fatalf("%s: %d calls, want one with %d bytes of arguments", c.name, len(run.calls), sizes[i])
				}
				times[i] = append(times[i], run.time)
				// The minimum of all repeats: other work of the process can only add.
				if repeat == 0 || run.bytes < bytes[i] {
					bytes[i] = run.bytes
				}
			}
		}
		growth := func(i int) (b, d float64) {
			return bytes[i] / bytes[i-1], float64(median(times[i])) / float64(median(times[i-1]))
		}
		b1, d1 := growth(1)
		b2, d2 := growth(2)
		fmt.Fprintf(doc, "| %s | %.2f | %.2f | %.2f | %.2f | %s |\n", c.name, b1, b2, d1, d2,
			verdict(math.Max(b1, b2) <= maxBytes && math.Max(d1, d2) <= maxTime))
		if math.Max(b1, b2) > maxBytes {
			t.Errorf("%s: allocated bytes grow %.2f and %.2f times for twice the arguments, want at most %.1f", c.name, b1, b2, maxBytes)
		}
		if math.Max(d1, d2) > failTime {
			t.Errorf("%s: time grows %.2f and %.2f times for twice the arguments, want at most %.1f", c.name, d1, d2, maxTime)
		}
	}
}

func median(d []time.Duration) time.Duration {
	d = slices.Sorted(slices.Values(d))
	return d[len(d)/2]
}
