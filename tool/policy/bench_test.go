package policy

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/tool"
)

// selecting makes n rules that select by tool, glob, namespace, annotation and tag, and do not
// match the tool of benchQuestion.
func selecting(n int) []Rule {
	rules := make([]Rule, n)
	for i := range rules {
		r := Rule{ID: fmt.Sprintf("rule-%d", i), Effect: tool.Deny, Priority: i % 7}
		switch i % 6 {
		case 0:
			r.When.Tools = []string{fmt.Sprintf("tool_%d", i)}
		case 1:
			r.When.Tools = []string{fmt.Sprintf("other_%d_*", i)}
		case 2:
			r.When.Namespaces = []string{fmt.Sprintf("space_%d", i)}
		case 3:
			r.When.Destructive = new(true)
		case 4:
			r.When.Tags = []string{fmt.Sprintf("tag_%d", i)}
		case 5: // a name that fits, and an annotation that does not
			r.When.Tools, r.When.OpenWorld = []string{"files.*"}, new(true)
		}
		rules[i] = r
	}
	return rules
}

func benchQuestion() *tool.Question {
	spec := &dragoman.ToolSpec{Name: "read", Namespace: "files"}
	spec.Annotations.ReadOnly, spec.Annotations.Destructive = new(true), new(false)
	return &tool.Question{
		Subject: codes.SubjectToolCall, Key: tool.KeyOf(spec), Spec: spec, Settings: &tool.Settings{Tags: []string{"fs"}},
		Input: tool.Input{Arguments: []byte(`{"path":"src/main.go","from":1,"to":200,"options":{"numbers":true,"encoding":"utf-8"},"tags":["a","b"]}`)},
		Run:   "run-1", Turn: 3, CallID: "call_1", Agent: []string{"main"}, Metadata: map[string]string{"tenant": "acme"},
	}
}

func mustNew(tb testing.TB, c Config) *Policy {
	tb.Helper()
	p, err := New(c)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// With 5,000 instead of 50 rules that do not match, a decision takes less than 20 % longer.
func BenchmarkDecideNonMatching(b *testing.B) {
	for _, n := range []int{0, 50, 500, 5000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			p, q, ctx := mustNew(b, Config{Rules: selecting(n)}), benchQuestion(), context.Background()
			b.ReportAllocs()
			for b.Loop() {
				if d, err := p.Decide(ctx, q); err != nil || d.Effect != tool.Allow || d.Rule != "" {
					b.Fatal(d, err)
				}
			}
		})
	}
}

// The same for a tool that is seen for the first time.
func BenchmarkDecideNewTool(b *testing.B) {
	for _, n := range []int{50, 5000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			p, q, ctx := mustNew(b, Config{Rules: selecting(n)}), benchQuestion(), context.Background()
			b.ReportAllocs()
			for b.Loop() {
				clear(p.index.cache)
				if _, err := p.Decide(ctx, q); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

var benchExpressions = []struct{ name, source string }{
	{"small", `has(args.path) && args.path.startsWith("/etc")`},
	{"usual", `has(args.path) && (args.path.contains("..") || args.path.startsWith("/")) || args.to - args.from > 5000 || "root" in tags`},
	{"list", `args.tags.exists(t, t == "secret") || metadata["tenant"] != "acme" || args.options.encoding.matches("^utf-(16|32)$")`},
	{"shell", `has(args.command) && !shell(args.command).simple || shell("git log --oneline -n 5").programs.exists(p, p == "rm")`},
}

// bench is one of several measurements that take turns, so that other load on the machine
// affects all of them.
type bench struct {
	run   func()
	times []time.Duration
}

// median returns the median time of one operation.
func (m *bench) median(runs int) float64 {
	slices.Sort(m.times)
	return float64(m.times[len(m.times)/2]) / float64(runs)
}

// inTurn runs the measurements in turn, n operations at a time, until b has enough.
func inTurn(b *testing.B, runs int, all ...*bench) {
	for b.Loop() {
		for _, m := range all {
			begun := time.Now()
			for range runs {
				m.run()
			}
			m.times = append(m.times, time.Since(begun))
		}
	}
}

func deciding(b *testing.B, rules []Rule) *bench {
	p, q := mustNew(b, Config{Rules: rules}), benchQuestion()
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour) // with a deadline, as in a runner
	b.Cleanup(cancel)
	return &bench{run: func() {
		if d, err := p.Decide(ctx, q); err != nil || d.Rule != "" {
			b.Fatal(d, err)
		}
	}}
}

// With 5,000 instead of 50 rules that do not match, a decision takes less than 1.2 times as
// long.
func BenchmarkGrowth(b *testing.B) {
	few, many := deciding(b, selecting(50)), deciding(b, selecting(5000))
	const runs = 100
	inTurn(b, runs, few, many)
	b.ReportMetric(few.median(runs), "ns/50-rules")
	b.ReportMetric(many.median(runs), "ns/5000-rules")
	b.ReportMetric(many.median(runs)/few.median(runs), "times")
}

// Each expression adds at most 1.2 times its own cost with the same limits. The arguments are
// read once for all expressions: the metric first/times is the cost of the first one without
// that.
func BenchmarkExpressions(b *testing.B) {
	for _, e := range benchExpressions {
		b.Run(e.name, func(b *testing.B) {
			x, err := newExpressions(defaultCostLimit)
			if err != nil {
				b.Fatal(err)
			}
			p, err := x.compile(e.source)
			if err != nil {
				b.Fatal(err)
			}
			f := &facts{q: benchQuestion()}
			f.arguments()
			bare := &bench{run: func() {
				if _, _, err := p.Eval(f); err != nil { // the time in the CEL engine
					b.Fatal(err)
				}
			}}
			with := func(n int) *bench {
				rules := selecting(45)
				for i := range n {
					rules = append(rules, Rule{ID: fmt.Sprintf("x-%d", i), Effect: tool.Deny, When: When{Expression: e.source}})
				}
				return deciding(b, rules)
			}
			none, one, eleven := with(0), with(1), with(11)
			inTurn(b, 1, bare, none, one, eleven)
			adds := (eleven.median(1) - one.median(1)) / 10
			b.ReportMetric(bare.median(1), "ns/bare")
			b.ReportMetric(adds, "ns/added")
			b.ReportMetric(adds/bare.median(1), "times")
			b.ReportMetric(one.median(1)-none.median(1), "ns/first")
		})
	}
}

// A policy must not allocate for a decision that no rule matches.
func TestP2_DecisionWithoutMatchDoesNotAllocate(t *testing.T) {
	p, q, ctx := mustNew(t, Config{Rules: selecting(500)}), benchQuestion(), context.Background()
	if n := testing.AllocsPerRun(100, func() { p.Decide(ctx, q) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// A scan of the rules would show in the number of evaluations, not only in the time.
func TestP2_ToolConditionsAreCached(t *testing.T) {
	p, q := mustNew(t, Config{Rules: selecting(5000)}), benchQuestion()
	if got := p.index.candidates(q); len(got) != 0 {
		t.Fatalf("%d rules are asked about a call that none of them can match", len(got))
	}
	// Rules that are indexed by name, namespace or tag are not evaluated even the first time.
	var exact []Rule
	for _, r := range selecting(5000) {
		if w := r.When; len(w.Namespaces)+len(w.Tags) > 0 || len(w.Tools) == 1 && isExact(w.Tools[0]) {
			exact = append(exact, r)
		}
	}
	if x := mustNew(t, Config{Rules: exact}).index; len(x.unindexed) != 0 || len(exact) < 2000 {
		t.Errorf("%d of %d rules are asked about every new tool", len(x.unindexed), len(exact))
	}
}
