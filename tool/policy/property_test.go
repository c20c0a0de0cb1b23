package policy

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/testkit/toolopt"
	"github.com/dragoman-go/dragoman/tool"
)

var (
	drawnNames      = []string{"read", "write", "delete", "run"}
	drawnSpaces     = []string{"", "files", "git"}
	drawnTags       = []string{"fs", "net", "slow"}
	drawnAgents     = []string{"main", "helper"}
	drawnGlobs      = []string{"*", "read", "files.*", "*.delete", "git.r??", "w*", "nothing", "files.read"}
	drawnConditions = []string{"", "", "", `has(args.n) && args.n > 3`, `tool == "files.read"`, `args.n > 3`, `metadata["tenant"] == "acme"`}
)

func drawHint(t *rapid.T, label string) *bool {
	switch rapid.IntRange(0, 5).Draw(t, label) {
	case 0:
		return new(true)
	case 1:
		return new(false)
	default:
		return nil
	}
}

// drawSome draws a short list, which is empty most of the time.
func drawSome(t *rapid.T, from []string, label string) []string {
	if rapid.IntRange(0, 2).Draw(t, label+" any") > 0 {
		return nil
	}
	return rapid.SliceOfN(rapid.SampledFrom(from), 1, 2).Draw(t, label)
}

func drawRule(t *rapid.T, id string) Rule {
	r := Rule{
		ID: id, Effect: rapid.SampledFrom([]tool.Effect{tool.Allow, tool.Deny, tool.Ask}).Draw(t, "effect"),
		Priority: rapid.IntRange(-2, 2).Draw(t, "priority"),
		Reason:   rapid.SampledFrom([]string{"", "because"}).Draw(t, "reason"),
		When: When{
			Tools: drawSome(t, drawnGlobs, "tools"), Namespaces: drawSome(t, drawnSpaces[1:], "namespaces"),
			Tags: drawSome(t, drawnTags, "tags"), Agents: drawSome(t, append(drawnAgents, "main/*"), "agents"),
			ReadOnly: drawHint(t, "read only"), Destructive: drawHint(t, "destructive"),
			Expression: rapid.SampledFrom(drawnConditions).Draw(t, "expression"),
		},
	}
	if rapid.IntRange(0, 4).Draw(t, "subjects") == 0 {
		r.Subjects = []string{codes.SubjectHandoff, codes.SubjectToolCall}[rapid.IntRange(0, 1).Draw(t, "subject"):]
	}
	if rapid.IntRange(0, 4).Draw(t, "metadata") == 0 {
		r.When.Metadata = map[string]string{"tenant": "acme"}
	}
	return r
}

func drawRules(t *rapid.T) []Rule {
	rules := make([]Rule, rapid.IntRange(0, 8).Draw(t, "rules"))
	for i := range rules {
		rules[i] = drawRule(t, fmt.Sprintf("r%d", i))
	}
	return rules
}

func drawDefault(t *rapid.T) string {
	return rapid.SampledFrom([]string{defaultAllow, defaultDeny, defaultAsk, defaultAskDestructive}).Draw(t, "default")
}

func drawQuestion(t *rapid.T) *tool.Question {
	spec := &dragoman.ToolSpec{
		Name: rapid.SampledFrom(drawnNames).Draw(t, "name"), Namespace: rapid.SampledFrom(drawnSpaces).Draw(t, "namespace"),
	}
	spec.Annotations.ReadOnly, spec.Annotations.Destructive = drawHint(t, "is read only"), drawHint(t, "is destructive")
	q := &tool.Question{
		Subject: rapid.SampledFrom([]string{codes.SubjectToolCall, codes.SubjectHandoff}).Draw(t, "about"),
		Key:     tool.KeyOf(spec), Spec: spec, Settings: &tool.Settings{Tags: drawSome(t, drawnTags, "has tags")},
		Run: "r", Turn: 1, CallID: "c", Agent: drawSome(t, drawnAgents, "agent"),
		Input: tool.Input{Arguments: json.RawMessage(rapid.SampledFrom([]string{`{}`, `{"n":3}`, `{"n":4}`}).Draw(t, "arguments"))},
	}
	q.Metadata = rapid.SampledFrom([]map[string]string{nil, {"tenant": "acme"}, {"tenant": "other"}}).Draw(t, "metadata")
	return q
}

// outcome is the result of a policy, including failures.
type outcome struct {
	Decision tool.Decision
	Failed   string
}

func ask(p *Policy, q *tool.Question) outcome {
	d, err := p.Decide(context.Background(), q)
	if err != nil {
		return outcome{Failed: err.Error()}
	}
	return outcome{Decision: d}
}

func drawnPolicy(t *rapid.T, c Config) *Policy {
	p, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestP2_OrderOfRulesDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Config{Rules: drawRules(t), Default: drawDefault(t)}
		other := Config{Rules: rapid.Permutation(c.Rules).Draw(t, "order"), Default: c.Default}
		a, b, q := drawnPolicy(t, c), drawnPolicy(t, other), drawQuestion(t)
		if x, y := ask(a, q), ask(b, q); !reflect.DeepEqual(x, y) {
			t.Fatalf("%+v, in another order %+v", x, y)
		}
		if a.Version() != b.Version() {
			t.Fatal("the order changes the version")
		}
	})
}

func TestP1_DisabledRulesHaveNoEffect(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Config{Rules: drawRules(t), Default: drawDefault(t)}
		off := drawRule(t, "off")
		off.Disabled = true
		a, b := drawnPolicy(t, c), drawnPolicy(t, Config{Rules: append(slices.Clone(c.Rules), off), Default: c.Default})
		q := drawQuestion(t)
		if x, y := ask(a, q), ask(b, q); !reflect.DeepEqual(x, y) || a.Version() != b.Version() {
			t.Fatalf("%+v, with a disabled rule %+v", x, y)
		}
	})
}

// Explain does not use the index. If it agrees with Decide, the index finds the same rules as
// a scan.
func TestP6_ExplainAgreesWithDecide(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawnPolicy(t, Config{Rules: drawRules(t), Default: drawDefault(t)})
		for range 3 { // one policy sees several tools
			q := drawQuestion(t)
			got, e := ask(p, q), p.Explain(context.Background(), q)
			if got.Failed != e.Failed {
				t.Fatalf("failed with %q, explained as %q", got.Failed, e.Failed)
			}
			if got.Failed == "" && !reflect.DeepEqual(got.Decision, e.Decision) {
				t.Fatalf("decided %+v, explained %+v", got.Decision, e.Decision)
			}
		}
	})
}

func drawBinding(t *rapid.T) tool.Binding {
	b := tool.Binding{
		Run:    rapid.SampledFrom([]string{"r1", "r2", "r1/nested"}).Draw(t, "run"),
		Turn:   rapid.IntRange(1, 2).Draw(t, "turn"),
		CallID: rapid.SampledFrom([]string{"c1", "c2"}).Draw(t, "call"),
		Key: rapid.SampledFrom([]tool.Key{
			toolopt.Bare("a"), toolopt.Namespaced("ns", "a"), toolopt.Deferred("a"), toolopt.Bare("b"),
		}).Draw(t, "key"),
		Policy: rapid.SampledFrom([]string{"p1", "p2"}).Draw(t, "policy"),
	}
	b.Tool[0] = byte(rapid.IntRange(0, 1).Draw(t, "definition"))
	b.Arguments[0] = byte(rapid.IntRange(0, 1).Draw(t, "arguments"))
	return b
}

// The ledger must agree with the simplest correct model: the list of all decisions, searched
// from its end.
func TestA5_LedgerAgreesWithItsModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type said struct {
			binding tool.Binding
			sticky  bool
			answer  tool.Answer
		}
		var all []said
		l := &Ledger{}
		for i := range rapid.IntRange(0, 6).Draw(t, "decisions") {
			s := said{binding: drawBinding(t), sticky: rapid.Bool().Draw(t, "sticky"), answer: tool.Answer{Verdict: tool.Approved}}
			if rapid.Bool().Draw(t, "no") {
				s.answer = tool.Answer{Verdict: tool.Rejected, Message: fmt.Sprint("no ", i)}
			}
			switch {
			case !s.sticky:
				if err := l.Decide(s.binding, s.answer); err != nil {
					t.Fatal(err)
				}
			case rapid.Bool().Draw(t, "with the answer"):
				sticky := s.answer
				sticky.Sticky = true
				if err := l.Decide(s.binding, sticky); err != nil {
					t.Fatal(err)
				}
				all = append(all, said{binding: s.binding, answer: s.answer})
			case s.answer.Verdict == tool.Approved:
				l.Always(s.binding)
			default:
				l.Never(s.binding, s.answer.Message)
			}
			all = append(all, s)
		}
		if rapid.Bool().Draw(t, "stored") { // and resumed in another process
			stored, err := json.Marshal(l)
			if err != nil {
				t.Fatal(err)
			}
			l = &Ledger{}
			if err := json.Unmarshal(stored, l); err != nil {
				t.Fatal(err)
			}
		}
		b := drawBinding(t)
		var want tool.Answer
		for _, s := range all { // a sticky one covers run, key, definition and policy
			o := s.binding
			if s.sticky && o.Run == b.Run && o.Key == b.Key && o.Tool == b.Tool && o.Policy == b.Policy {
				want = s.answer
			}
		}
		for _, s := range all {
			if !s.sticky && s.binding == b {
				want = s.answer
			}
		}
		got, err := l.Approve(context.Background(), &tool.ApprovalRequest{Binding: b})
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v, %v; want %+v", got, err, want)
		}
	})
}

// Different token bodies have different bytes: moving bytes from one field to the next changes
// the encoding (quirk I9).
func TestQuirkI9_TokenEncodingIsInjective(t *testing.T) {
	text := rapid.StringOfN(rapid.RuneFrom([]rune("ab\x00\x02.")), 0, 3, -1)
	draw := func(t *rapid.T) tokenBody {
		var b tokenBody
		b.Binding = tool.Binding{Run: text.Draw(t, "run"), Turn: rapid.IntRange(-1, 70).Draw(t, "turn"), CallID: text.Draw(t, "call"), Policy: text.Draw(t, "policy")}
		b.Binding.Key = tool.Key{Kind: "namespaced", Namespace: text.Draw(t, "namespace"), Name: text.Draw(t, "name")}
		b.Answer = tool.Answer{Verdict: tool.Approved, Message: text.Draw(t, "message")}
		if rapid.Bool().Draw(t, "edited") {
			b.edited = &tool.Hash{1}
		}
		b.Sticky = rapid.Bool().Draw(t, "sticky")
		b.expires = rapid.Int64Range(0, 3).Draw(t, "expires")
		return b
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := draw(t), draw(t)
		if same := string(a.encode("k")) == string(b.encode("k")); same != reflect.DeepEqual(a, b) {
			t.Fatalf("same bytes: %t\n%+v\n%+v", same, a, b)
		}
		d := decoder{b: a.encode("k")}
		var back tokenBody
		if d.str() != "k" || !back.decode(&d) || !reflect.DeepEqual(back, a) {
			t.Fatalf("%+v came back as %+v", a, back)
		}
	})
}
