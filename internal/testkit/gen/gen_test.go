package gen_test

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/testkit/gen"
	"pgregory.net/rapid"
)

func TestConversationsAreValidTurnByTurn(t *testing.T) {
	for name, o := range map[string]gen.Options{"hostile": {}, "tidy": {Tidy: true}, "plain": {Plain: true}, "tidy and plain": {Tidy: true, Plain: true}} {
		t.Run(name, rapid.MakeCheck(func(t *rapid.T) {
			req := o.Request().Draw(t, "request")
			tools := map[string]bool{}
			for _, s := range req.Tools {
				if tools[s.QualifiedName()] {
					t.Fatalf("duplicate tool name %q", s.QualifiedName())
				}
				tools[s.QualifiedName()] = true
				if o.Plain && (s.Kind == codes.ToolHosted || s.Source != nil || s.Extra != nil) {
					t.Fatalf("%q has native state", s.Name)
				}
			}
			seen := map[string]bool{} // ids of the conversation
			var open []*dragoman.ToolCall
			ids := map[string]bool{} // ids of the turn
			for i := range req.Messages {
				m := &req.Messages[i]
				switch m.Role {
				case dragoman.RoleAssistant:
					for _, c := range m.ToolCalls() {
						if c.ID == "" || ids[c.ID] || o.Tidy && seen[c.ID] {
							t.Fatalf("message %d: id %q is empty or in use", i, c.ID)
						}
						ids[c.ID], seen[c.ID] = true, true
						if o.Tidy && (c.Problem != nil || c.Payload == "" && dragoman.CheckArguments(c.Arguments) != nil) {
							t.Fatalf("message %d: %+v is not tidy", i, c)
						}
						if !c.Hosted {
							open = append(open, c)
						}
					}
				case dragoman.RoleTool:
					if len(m.Parts) != len(open) {
						t.Fatalf("message %d has %d results for %d calls", i, len(m.Parts), len(open))
					}
					for j, p := range m.Parts {
						if p.(*dragoman.ToolResult).CallID != open[j].ID {
							t.Fatalf("message %d has a result of %q, want %q", i, p.(*dragoman.ToolResult).CallID, open[j].ID)
						}
					}
					open = nil
					clear(ids)
				default:
					if len(open) > 0 {
						t.Fatalf("message %d leaves %d calls open", i, len(open))
					}
					clear(ids)
				}
				if o.Plain && (m.Native != nil || m.Extra != nil || m.Origin != nil) {
					t.Fatalf("message %d has native state", i)
				}
				for _, p := range m.Parts {
					if _, ok := p.(*dragoman.Opaque); ok && o.Plain {
						t.Fatalf("message %d has an opaque part", i)
					}
				}
			}
			if len(open) > 0 {
				t.Fatalf("%d calls have no result", len(open))
			}
		}))
	}
}

func TestGeneratedTextIsValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		for name, raw := range map[string]json.RawMessage{"value": gen.JSON().Draw(t, "json"), "object": gen.Object().Draw(t, "object"), "schema": gen.Schema().Draw(t, "schema")} {
			if !json.Valid(raw) || name != "value" && raw[0] != '{' {
				t.Fatalf("%s is %s", name, raw)
			}
		}
		if s := (gen.Options{}).Text().Draw(t, "text"); !utf8.ValidString(s) {
			t.Fatalf("%q is not UTF-8", s)
		}
		if p := dragoman.CheckArguments(gen.Options{Tidy: true}.Arguments().Draw(t, "arguments")); p != nil {
			t.Fatal(p)
		}
	})
}

func TestStreamsAreWellFormed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := gen.Options{}
		evs := o.Stream(t, o.Response().Draw(t, "response"))
		if _, ok := evs[0].(*dragoman.ResponseStart); !ok {
			t.Fatalf("the stream begins with %T", evs[0])
		}
		if _, ok := evs[len(evs)-1].(*dragoman.ResponseEnd); !ok {
			t.Fatalf("the stream ends with %T", evs[len(evs)-1])
		}
		type place struct{ choice, index int }
		open, next := map[place]bool{}, map[int]int{}
		for _, ev := range evs {
			switch ev := ev.(type) {
			case *dragoman.PartStart:
				if ev.Index != next[ev.Choice] {
					t.Fatalf("part %d of choice %d has position %d", ev.Index, ev.Choice, next[ev.Choice])
				}
				next[ev.Choice]++
				open[place{ev.Choice, ev.Index}] = true
			case *dragoman.PartDelta:
				if !open[place{ev.Choice, ev.Index}] || ev.Text == "" {
					t.Fatalf("delta %+v", ev)
				}
			case *dragoman.PartEnd:
				if !open[place{ev.Choice, ev.Index}] {
					t.Fatalf("end %+v", ev)
				}
				delete(open, place{ev.Choice, ev.Index})
			}
		}
		if len(open) > 0 {
			t.Fatalf("parts stay open: %v", open)
		}
	})
}

// Properties only cover what the generator makes: without some stop reasons or usage counts, every
// property of responses would prove less.
func TestResponsesCoverAllStopReasonsAndCounts(t *testing.T) {
	seen := map[string]bool{}
	rapid.Check(t, func(t *rapid.T) {
		for range 20 {
			o := gen.Options{Tidy: true, Plain: true}
			r := o.Response().Draw(t, "response")
			seen["stop "+string(r.Stop.Reason)] = true
			if r.Stop.Sequence != "" && r.Stop.Reason != dragoman.StopSequence {
				t.Fatalf("%+v", r.Stop)
			}
			seen["a known sequence"] = seen["a known sequence"] || r.Stop.Sequence != ""
			seen["an unknown sequence"] = seen["an unknown sequence"] || r.Stop.Reason == dragoman.StopSequence && r.Stop.Sequence == ""
			u := r.Usage
			seen["output only"] = seen["output only"] || u == dragoman.Usage{Output: dragoman.Counted(u.Output.N)}
			seen["nothing"] = seen["nothing"] || u == dragoman.Usage{}
			seen["more reasoning than output"] = seen["more reasoning than output"] || u.Output.Known && u.Reasoning.N > u.Output.N
			if cached := u.CacheRead.N + u.CacheWrite.N; cached > u.Input.N || !u.Input.Known && (u.CacheRead.Known || u.CacheWrite.Known) {
				t.Fatalf("%+v is not tidy", u)
			}
		}
	})
	for _, want := range []string{
		"stop stop", "stop tool_calls", "stop length", "stop stop_sequence", "stop content_filter", "stop refusal", "stop pause", "stop malformed_tool_call", "stop error", "stop cancelled", "stop compaction", "stop unknown",
		"a known sequence", "an unknown sequence", "output only", "nothing", "more reasoning than output",
	} {
		if !seen[want] {
			t.Errorf("%s: never generated", want)
		}
	}
}
