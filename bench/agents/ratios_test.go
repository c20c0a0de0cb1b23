//go:build unix

package agents

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

var (
	update = flag.Bool("update", false, "write the section into ../../docs/benchmarks.md")
	date   = flag.String("date", time.Now().UTC().Format(time.DateOnly), "the date to write into it")
)

const (
	rounds  = 15 // of each side in turn; the best one counts
	runs    = 12 // of the task in a round
	docPath = "../../docs/benchmarks.md"
	title   = "## Agents"
	command = "cd bench/agents && go test . -run TestAgents -update"
)

// TestSameTask: what is compared must be the same work with the same result.
func TestSameTask(t *testing.T) {
	url := startModel(t)
	for _, k := range contenders {
		t.Run(k.wire.name+"/"+k.name, func(t *testing.T) {
			task := k.task(t, url)
			for range 2 {
				if err := task(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for _, w := range wires {
		got, err := raw(t, w, url)()
		if err != nil || got != conclusion {
			t.Error(w.name, got, err)
		}
	}
}

// BenchmarkTask is a whole run of each: ten turns with a call, and the answer.
func BenchmarkTask(b *testing.B) {
	url := startModel(b)
	for _, k := range contenders {
		b.Run(k.wire.name+"/"+k.name, func(b *testing.B) {
			task := k.task(b, url)
			b.ReportAllocs()
			start := cpu(b)
			for b.Loop() {
				if err := task(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(cpu(b)-start)/float64(b.N), "cpu-ns/op")
		})
	}
}

// cpu is the time that this process has computed, on all threads: that of the
// garbage collector is the framework's too.
func cpu(tb testing.TB) time.Duration {
	tb.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// cost of a task.
type cost struct{ cpu, bytes, allocs float64 }

// beyond is what a turn costs more than the raw exchange.
func (c cost) beyond(raw cost) cost {
	return cost{(c.cpu - raw.cpu) / turns, (c.bytes - raw.bytes) / turns, (c.allocs - raw.allocs) / turns}
}

// measure runs tasks in turn, so that a disturbance hits all of them, and returns
// the best of each: what disturbs only ever adds.
func measure(tb testing.TB, tasks []func(context.Context) error) []cost {
	tb.Helper()
	best := make([]cost, len(tasks))
	for round := range rounds {
		for i, task := range tasks {
			c := once(tb, task)
			if round == 0 {
				best[i] = c
			}
			best[i] = cost{min(best[i].cpu, c.cpu), min(best[i].bytes, c.bytes), min(best[i].allocs, c.allocs)}
		}
	}
	return best
}

// once is what one of several runs costs.
func once(tb testing.TB, task func(context.Context) error) cost {
	tb.Helper()
	run := func() {
		if err := task(tb.Context()); err != nil {
			tb.Fatal(err)
		}
	}
	run() // the connection is there
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := cpu(tb)
	for range runs {
		run()
	}
	took := cpu(tb) - start
	runtime.ReadMemStats(&after)
	return cost{float64(took) / runs, float64(after.TotalAlloc-before.TotalAlloc) / runs, float64(after.Mallocs-before.Mallocs) / runs}
}

// TestAgents measures what a turn with a call costs beyond the raw exchange, and
// prints the table.
func TestAgents(t *testing.T) {
	if testing.Short() {
		t.Skip("it measures")
	}
	url := startModel(t)
	var doc strings.Builder
	for _, w := range wires {
		table(t, &doc, w, url)
	}
	t.Log("\n" + doc.String())
	_ = os.Stdout
}

func table(t *testing.T, doc *strings.Builder, w *wire, url string) {
	t.Helper()
	exchange := raw(t, w, url)
	tasks := []func(context.Context) error{func(context.Context) error { _, err := exchange(); return err }}
	var who []contender
	for _, k := range contenders {
		if k.wire == w {
			who = append(who, k)
			tasks = append(tasks, k.task(t, url))
		}
	}
	costs := measure(t, tasks)
	base := costs[0]
	fmt.Fprintf(doc, "%s raw: %.1f us %.1f kB %.0f allocs per exchange\n", w.name, base.cpu/(turns+1)/1e3, base.bytes/(turns+1)/1e3, base.allocs/(turns+1))
	for i, k := range who {
		c := costs[i+1].beyond(base)
		fmt.Fprintf(doc, "| %s | %s | %.1f us | %.1f kB | %.0f |\n", k.name, k.validates, c.cpu/1e3, c.bytes/1e3, c.allocs)
	}
}
