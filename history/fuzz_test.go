package history_test

import (
	"errors"
	"runtime"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/history"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/targets"
)

// FuzzNormalize feeds stored requests. For any input, Normalize does not panic, returns
// only its documented errors, and is idempotent.
func FuzzNormalize(f *testing.F) {
	for _, ms := range [][]dragoman.Message{
		{user("q"), calls("a", "b"), results(result("a", "1")), user("r"), results(result("b", "2"), result("b", "3"))},
		{calls("", "a"), calls("a"), results(result("", "1")), message("critic", &dragoman.Reasoning{Text: "t"}, text(" "))},
		{from(dragoman.Origin{Dialect: "test"}, message(dragoman.RoleAssistant, &dragoman.Reasoning{Signature: "s"}, call("a")))},
	} {
		b, err := (&dragoman.Request{Model: "m", Messages: ms}).MarshalJSON()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, uint16(0), true)
		f.Add(b, uint16(0xffff), false)
	}
	f.Fuzz(func(t *testing.T, stored []byte, bits uint16, hard bool) {
		req := new(dragoman.Request)
		if req.UnmarshalJSON(stored) != nil {
			return
		}
		bit := func(i int) bool { return bits&(1<<i) != 0 }
		o := history.Options{Limits: strictest(), Abandon: codes.AbandonAll, ReasoningAsText: bit(0)}
		if !hard {
			o.Limits = codecs[int(bits)%len(codecs)].Limits()
		}
		o.Target.Caps = targets.Capabilities{
			NoTools: bit(1), NoImages: bit(2), MidSystem: bit(3), NoReasoning: bit(4), NoOldReasoning: bit(5), NoPrefill: bit(6),
			Alternate: bit(7), SplitCalls: bit(8), AssistantAfterTools: bit(9), NoDummySignature: bit(10),
		}
		out, _, err := history.Normalize(req, o)
		if err != nil {
			if !errors.Is(err, dragoman.ErrInvalid) {
				t.Fatal(err)
			}
			return
		}
		if again, rep, err := history.Normalize(out, o); err != nil || again != out {
			t.Fatalf("not idempotent: %v\n%s", err, rep)
		}
	})
}

// A conversation that is built to be expensive takes space, and so time, in proportion to
// its length.
func TestHostileConversationsTakeLinearSpace(t *testing.T) {
	shapes := map[string]func(n int) []dragoman.Message{
		"one id for all calls of a turn": func(n int) []dragoman.Message {
			m, r := message(dragoman.RoleAssistant), message(dragoman.RoleTool)
			for i := range n {
				c := call("a")
				c.Arguments = string(rune('a' + i%26))
				m.Parts, r.Parts = append(m.Parts, c), append(r.Parts, result("a", "1"))
			}
			return []dragoman.Message{m, r}
		},
		"no ids at all": func(n int) []dragoman.Message {
			m, r := message(dragoman.RoleAssistant), message(dragoman.RoleTool)
			for range n {
				m.Parts, r.Parts = append(m.Parts, call("")), append(r.Parts, result("", "1"))
			}
			return []dragoman.Message{m, r}
		},
		"one id for all turns": func(n int) (ms []dragoman.Message) {
			for range n {
				ms = append(ms, calls("a"))
				ms = append(ms, results(result("a", "1")))
			}
			return ms
		},
		"all roles in every message": func(n int) (ms []dragoman.Message) {
			for i := range n {
				ms = append(ms, from(dragoman.Origin{Dialect: "strict.test", Model: string(rune('a' + i%2))}, user("q")))
			}
			return ms
		},
		"all results at the end, backwards": func(n int) (ms []dragoman.Message) {
			for i := range n {
				ms = append(ms, calls(string(rune(0x4e00+i))), user("q"))
			}
			for i := range n {
				ms = append(ms, results(result(string(rune(0x4e00+n-1-i)), "1")))
			}
			return ms
		},
	}
	for name, shape := range shapes {
		t.Run(name, func(t *testing.T) {
			cost := func(n int) (bytes uint64, spent time.Duration) {
				req := &dragoman.Request{Messages: shape(n)}
				o := history.Options{Limits: strictest(), Abandon: codes.AbandonAll}
				o.Target.Caps = targets.Capabilities{SplitCalls: true, AssistantAfterTools: true, Alternate: true}
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				start := time.Now()
				if _, _, err := history.Normalize(req, o); err != nil {
					t.Fatal(err)
				}
				spent = time.Since(start)
				runtime.ReadMemStats(&after)
				return after.TotalAlloc - before.TotalAlloc, spent
			}
			small, _ := cost(1000)
			large, spent := cost(20000)
			// Twenty times the length: quadratic code would take 400 times as much. The
			// time limit is generous, because the machine may be busy.
			if large > 60*small || spent > 30*time.Second {
				t.Errorf("1000 took %d bytes, 20000 took %d bytes and %v", small, large, spent)
			}
		})
	}
}
