package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"pgregory.net/rapid"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/bedrock"
	"github.com/dragoman-go/dragoman/dialect/gemini"
	"github.com/dragoman-go/dragoman/dialect/ollama"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
	"github.com/dragoman-go/dragoman/history"
	"github.com/dragoman-go/dragoman/internal/rulecheck"
	"github.com/dragoman-go/dragoman/provider/extension"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/tool"
)

var codecs = []dialect.Codec{openaichat.Codec{}, openairesponses.Codec{}, anthropic.Codec{}, gemini.Codec{}, ollama.Codec{}, bedrock.Codec{}}

// wired is a model behind a wire: what it is asked is encoded for its API and held
// to that API's rules, and what it answers comes back over the wire, with the ids,
// signatures and native forms of its origin.
type wired struct {
	codec  dialect.Codec
	answer func(turn int) *dragoman.Response
	turn   *int
	bad    *error
}

func (m wired) Generate(_ context.Context, req *dragoman.Request) (*dragoman.Response, error) {
	*m.turn++
	resp, err := m.exchange(req)
	if err != nil && *m.bad == nil {
		*m.bad = fmt.Errorf("turn %d, %s: %w", *m.turn, m.codec.Dialect(), err)
	}
	return resp, err
}

func (m wired) exchange(req *dragoman.Request) (*dragoman.Response, error) {
	target := dragoman.Target{Dialect: m.codec.Dialect(), Provider: string(m.codec.Dialect()), Model: "m-" + string(m.codec.Dialect())}
	named := *req
	named.Model = target.Model
	out, _, err := history.Normalize(&named, history.Options{Limits: m.codec.Limits(), Target: target})
	if err != nil {
		return nil, err
	}
	enc, err := m.codec.EncodeRequest(out, dialect.EncodeOptions{Target: target})
	if err != nil {
		return nil, err
	}
	if bad := rulecheck.Request(m.codec.Dialect(), enc.Body, rulecheck.Options{MidSystem: true}); len(bad) > 0 {
		return nil, fmt.Errorf("%v\n%s", bad, enc.Body)
	}
	seed := fmt.Sprint(*m.turn)
	wire, err := m.codec.EncodeResponse(m.answer(*m.turn), dialect.EncodeOptions{Target: target, Model: target.Model, Seed: seed})
	if err != nil {
		return nil, err
	}
	resp, _, err := m.codec.DecodeResponse(wire.Body, dialect.DecodeOptions{Registry: enc.Registry, Origin: target.Origin(), Seed: seed})
	return resp, err
}

func (m wired) Stream(ctx context.Context, req *dragoman.Request) iter.Seq2[dragoman.Event, error] {
	return streamed(ctx, req, m.Generate)
}

// Decision 20 in the loop: stop at any turn of any run, store the state, load it in
// another process, go on with any other provider: every request is valid.
func TestARunMaySwitchItsProviderAtAnyTurnAndEveryRequestIsValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var did counted
		tools := []tool.Tool{did.tool("look"), did.tool("pay", tool.NeedsApproval()), failing("fall"), did.tool("deep_dive", tool.Deferred())}
		turns := rapid.IntRange(1, 5).Draw(t, "turns with calls")
		answer := func(turn int) *dragoman.Response { return drawAnswer(t, turn, turns) }
		turn, bad := 0, error(nil)
		play := func() agent.Agent {
			c := rapid.SampledFrom(codecs).Draw(t, "codec")
			return agent.Agent{
				Model: wired{c, answer, &turn, &bad}, Tools: tools, Search: agent.Search{Ours: true},
				Limits: agent.Limits{Turns: turn + rapid.IntRange(1, 3).Draw(t, "turns of this process"), Repeats: -1, ErrorTurns: -1},
			}
		}
		open := drawStore(t)
		opts := func() []agent.Option {
			if store := open(); store != nil {
				return []agent.Option{agent.In(store)}
			}
			return nil
		}
		res, err := play().Run(context.Background(), "go", opts()...)
		for lives := 0; err != nil; lives++ {
			if bad != nil || lives > 60 {
				t.Fatalf("%v, %v after %d lives", err, bad, lives)
			}
			o := opts()
			switch {
			case errors.Is(err, agent.ErrInterrupted):
				for _, p := range res.Pending {
					switch rapid.IntRange(0, 2).Draw(t, "verdict") {
					case 0:
						o = append(o, agent.Approve(p))
					case 1:
						o = append(o, agent.Reject(p, "no"))
					}
				}
			case errors.Is(err, agent.ErrLimit):
			default:
				t.Fatal(err)
			}
			b, failed := res.State.MarshalJSON()
			if failed != nil {
				t.Fatal(failed)
			}
			state := new(agent.State)
			if failed := state.UnmarshalJSON(b); failed != nil {
				t.Fatal(failed)
			}
			if open() != nil {
				state = nil // the store has it
			}
			res, err = play().Resume(context.Background(), state, o...)
		}
		if res.Output != "done" || bad != nil {
			t.Fatalf("%+v %v", res, bad)
		}
	})
}

// drawStore is where a run is kept, as each process opens it: nowhere, in a store, or
// in a session, which comes back from its entries.
func drawStore(t *rapid.T) (open func() agent.Store) {
	switch rapid.IntRange(0, 2).Draw(t, "kept in") {
	case 0:
		return func() agent.Store { return nil }
	case 1:
		store := &memory{}
		return func() agent.Store { return store }
	}
	var store session.Memory
	if _, err := session.Create(context.Background(), &store, session.Info{ID: "s"}); err != nil {
		t.Fatal(err)
	}
	return func() agent.Store {
		s, err := session.Open(context.Background(), &store, "s")
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
}

// drawAnswer is an answer of a model: some calls, words and thoughts, and after
// some turns the last word.
func drawAnswer(t *rapid.T, turn, turns int) *dragoman.Response {
	if turn > turns {
		return says("done")
	}
	resp := calls()
	m := &resp.Output[0]
	if rapid.Bool().Draw(t, "thinks") {
		m.Parts = append(m.Parts, &dragoman.Reasoning{Text: "hm", Signature: "c2ln"})
	}
	if rapid.Bool().Draw(t, "speaks") {
		m.Parts = append(m.Parts, &dragoman.Text{Text: "let me see"})
	}
	names := []string{"look", "pay", "fall", "nothing", "tool_search", "deep_dive"}
	for i := range rapid.IntRange(1, 4).Draw(t, "calls") {
		name := rapid.SampledFrom(names).Draw(t, "tool")
		args := fmt.Sprintf(`{"word":"w%d"}`, i)
		if name == "tool_search" {
			args = `{"query":"deep dive"}`
		}
		m.Parts = append(m.Parts, &dragoman.ToolCall{ID: fmt.Sprintf("call_%d_%d", turn, i), Name: name, Arguments: args})
	}
	return resp
}

// A native history that an action has replaced reaches the loop through Compact: it
// serves its origin, and who switches sees the whole conversation.
func TestS5_ANativeHistoryOfASessionIsSentByTheLoopToItsOriginAlone(t *testing.T) {
	ctx := t.Context()
	s := must[*session.Session](t)(session.Create(ctx, &session.Memory{}, session.Info{}))
	at := func(c dialect.Codec) session.Wire {
		set := must[*extension.Set](t)(extension.NewSet(extension.Compact{}))
		on := must[*extension.Resolution](t)(set.Resolve(nil, extension.Switches{}))
		return session.Wire{Codec: c, Target: dragoman.Target{Dialect: c.Dialect(), Provider: "p", Model: "m"}, Extensions: on}
	}
	ask := func(w session.Wire, prompt string) string {
		m := model(says("answer to " + prompt))
		must[*agent.Result](t)(agent.Agent{Model: m, Compact: func(ctx context.Context, _ []dragoman.Message) ([]dragoman.Message, error) {
			return s.For(ctx, w.Target.Origin(), w.Codec.Limits().Replay.Messages)
		}}.Run(ctx, prompt, agent.In(s)))
		return script(m.asked[0].Messages)
	}
	one, other := at(anthropic.Codec{}), at(openairesponses.Codec{})
	ask(one, "q1")
	ask(one, "q2")
	if err := s.Act(ctx, one, session.Action{Extension: "dragoman.compact", ID: extension.CompactID, Params: json.RawMessage(`{"keep":1}`)}); err != nil {
		t.Fatal(err)
	}
	if got := ask(other, "q3"); !strings.Contains(got, "q1") || !strings.Contains(got, `user: "q3"`) {
		t.Errorf("another origin sees\n%s", got)
	}
	if got := ask(one, "q4"); strings.Contains(got, "q1") || !strings.Contains(got, "answer to q3") || !strings.Contains(got, `user: "q4"`) {
		t.Errorf("back at the first, it sees\n%s", got)
	}
}
