package agent_test

import (
	"bytes"
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
	"github.com/dragoman-go/dragoman/dialect/cohere"
	"github.com/dragoman-go/dragoman/dialect/gemini"
	"github.com/dragoman-go/dragoman/dialect/ollama"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
	"github.com/dragoman-go/dragoman/history"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/modelcall"
	"github.com/dragoman-go/dragoman/internal/oracle/rulecheck"
	"github.com/dragoman-go/dragoman/interop"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/provider/extension"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/targets"
	"github.com/dragoman-go/dragoman/tool"
)

var codecs = []dialect.Codec{openaichat.Codec{}, openairesponses.Codec{}, anthropic.Codec{}, gemini.Codec{}, ollama.Codec{}, bedrock.Codec{}, cohere.Codec{}}

// wireModel is a model behind a wire: its requests are encoded for its API and checked against
// the rules of that API, and its responses come back over the wire, with the ids, signatures
// and native forms of their origin.
type wireModel struct {
	codec  dialect.Codec
	answer func(turn int, req *dragoman.Request) *dragoman.Response
	// searches holds the results of the API's own search in whole responses.
	searches bool
	turn     *int
	bad      *error
}

func (m wireModel) target() targets.Target {
	return targets.Target{Dialect: m.codec.Dialect(), Provider: string(m.codec.Dialect()), Model: "m-" + string(m.codec.Dialect())}
}

// Target lets the loop use the search of the API.
func (m wireModel) Target(context.Context, string) (targets.Target, *extension.Resolution, error) {
	return m.target(), nil, nil
}

// Limits lets the loop send the native history that a session has for the API.
func (m wireModel) Limits() targets.Limits { return m.codec.Limits() }

// ask encodes a request; answer decodes the response.
func (m wireModel) ask(req *dragoman.Request, answer func(o dialect.DecodeOptions, enc dialect.EncodeOptions, resp *dragoman.Response) error) error {
	*m.turn++
	reg, err := m.check(req)
	if err == nil {
		o := dialect.DecodeOptions{Registry: reg, Origin: m.target().Origin(), Seed: fmt.Sprint(*m.turn)}
		err = answer(o, dialect.EncodeOptions{Target: m.target(), Model: m.target().Model, Seed: o.Seed, StreamUsage: true}, m.answer(*m.turn, req))
	}
	if err != nil && *m.bad == nil {
		*m.bad = fmt.Errorf("turn %d, %s: %w", *m.turn, m.codec.Dialect(), err)
	}
	return err
}

// check checks a request against the rules of the API.
func (m wireModel) check(req *dragoman.Request) (*interop.Registry, error) {
	named := *req
	named.Model = m.target().Model
	out, _, err := history.Normalize(&named, history.Options{Limits: m.codec.Limits(), Target: m.target()})
	if err != nil {
		return nil, err
	}
	enc, err := m.codec.EncodeRequest(out, dialect.EncodeOptions{Target: m.target()})
	if err != nil {
		return nil, err
	}
	if bad := rulecheck.Request(m.codec.Dialect(), enc.Body, rulecheck.Options{MidSystem: true}); len(bad) > 0 {
		return nil, fmt.Errorf("%v\n%s", bad, enc.Body)
	}
	return enc.Registry, nil
}

func (m wireModel) Generate(_ context.Context, req *dragoman.Request) (resp *dragoman.Response, err error) {
	err = m.ask(req, func(o dialect.DecodeOptions, enc dialect.EncodeOptions, said *dragoman.Response) error {
		wire, err := m.codec.EncodeResponse(said, enc)
		if err != nil {
			return err
		}
		body := wire.Body
		if m.searches {
			body = searched(m.codec.Dialect(), body, *m.turn)
		}
		resp, _, err = m.codec.DecodeResponse(body, o)
		return err
	})
	return resp, err
}

// searched returns a response in which the model used the API's own search.
func searched(d dragoman.Dialect, body []byte, turn int) []byte {
	switch d {
	case dialectname.OpenAIResponses:
		return bytes.Replace(body, []byte(`"output":[`), fmt.Appendf(nil, `"output":[{"type":"tool_search_call","id":"tsc_%[1]d","call_id":null,"execution":"server","status":"completed","arguments":{"paths":["deep_dive"]}},`+
			`{"type":"tool_search_output","id":"tso_%[1]d","call_id":null,"execution":"server","status":"completed","tools":[{"type":"function","name":"deep_dive","description":"Does deep_dive.","parameters":{"type":"object","properties":{}},"strict":false,"defer_loading":true}]},`, turn), 1)
	case dialectname.Anthropic:
		return bytes.Replace(body, []byte(`"content":[`), fmt.Appendf(nil, `"content":[{"type":"server_tool_use","id":"srvtoolu_%[1]d","name":"tool_search_tool_bm25","input":{"query":"dive"}},`+
			`{"type":"tool_search_tool_result","tool_use_id":"srvtoolu_%[1]d","content":{"type":"tool_search_tool_search_result","tool_references":[{"type":"tool_reference","tool_name":"deep_dive"}]}},`, turn), 1)
	default:
		return body
	}
}

func (m wireModel) Stream(_ context.Context, req *dragoman.Request) iter.Seq2[dragoman.Event, error] {
	return func(yield func(dragoman.Event, error) bool) {
		var body []byte
		var dec dialect.StreamDecoder
		err := m.ask(req, func(o dialect.DecodeOptions, how dialect.EncodeOptions, said *dragoman.Response) (err error) {
			enc := m.codec.NewStreamEncoder(how)
			for _, ev := range eventsOf(said) {
				if body, err = enc.Encode(body, ev); err != nil {
					return err
				}
			}
			dec = m.codec.NewStreamDecoder(o)
			body, err = enc.Close(body)
			return err
		})
		if err != nil {
			yield(nil, err)
			return
		}
		dialect.Events(dec, bytes.NewReader(body))(yield)
	}
}

// Decision 134 in the loop: stop at any turn of any run, store the state, load it in another
// process, and continue with any other provider: every request is valid.
func TestProviderSwitchAtAnyTurnKeepsRequestsValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPlay(t)
		open := drawStore(t)
		opts := func() []agent.Option {
			if store := open(); store != nil {
				return []agent.Option{agent.In(store)}
			}
			return nil
		}
		streams := rapid.Bool()
		var res *agent.Result
		var err error
		if a := p.agent(t); streams.Draw(t, "streams") {
			res, err = a.Stream(context.Background(), "go", opts()...).Collect()
		} else {
			res, err = a.Run(context.Background(), "go", opts()...)
		}
		for lives := 0; err != nil; lives++ {
			if p.bad != nil || lives > 60 {
				t.Fatalf("%v, %v after %d lives", err, p.bad, lives)
			}
			drawCompacted(t, open())
			o := opts()
			switch {
			case errors.Is(err, agent.ErrInterrupted):
				o = append(o, drawDecisions(t, res.Pending)...)
			case is[*agent.LimitError](err):
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
			if a := p.agent(t); streams.Draw(t, "streams") {
				res, err = a.ResumeStream(context.Background(), state, o...).Collect()
			} else {
				res, err = a.Resume(context.Background(), state, o...)
			}
		}
		if res.Output != "done" || p.bad != nil {
			t.Fatalf("%+v %v", res, p.bad)
		}
	})
}

// drawCompacted may compact the native histories of a session, unless calls wait for
// their results.
func drawCompacted(t *rapid.T, store agent.Store) {
	s, ok := store.(*session.Session)
	if !ok || !rapid.Bool().Draw(t, "compacts its native histories") {
		return
	}
	for _, c := range codecs {
		var unsettled *history.UnsettledError
		if err := compact(context.Background(), s, c, wireModel{codec: c}.target()); err != nil && !errors.As(err, &unsettled) {
			t.Fatal(err)
		}
	}
}

// drawDecisions returns decisions on the pending calls.
func drawDecisions(t *rapid.T, pending []tool.Pending) (opts []agent.Option) {
	for _, p := range pending {
		switch rapid.IntRange(0, 4).Draw(t, "verdict") {
		case 0:
			opts = append(opts, agent.Approve(p))
		case 1:
			opts = append(opts, agent.Reject(p, "no"))
		case 2:
			opts = append(opts, agent.Edit(p, tool.Input{Arguments: json.RawMessage(`{"word":"edited"}`)}))
		case 3:
			opts = append(opts, agent.Always(p))
		}
	}
	return opts
}

// switchPlan is a run that continues from process to process: each has the same agents, but other
// models.
type switchPlan struct {
	did     counted
	tools   []tool.Tool
	turns   int
	asks    bool // a human is asked before a handoff
	filters int
	turn    int // of the agents
	clerks  int // turns of the agent that is a tool
	bad     error
}

func drawPlay(t *rapid.T) *switchPlan {
	p := &switchPlan{
		turns: rapid.IntRange(1, 6).Draw(t, "turns with calls"), asks: rapid.Bool().Draw(t, "handoffs need approval"),
		filters: rapid.IntRange(0, 2).Draw(t, "filter"),
	}
	p.tools = []tool.Tool{p.did.tool("look"), p.did.tool("pay", tool.NeedsApproval()), failing("fall"), p.did.tool("deep_dive", tool.Deferred())}
	return p
}

// agent returns the agents of a process: a desk, two agents that it may hand over to, and a
// clerk that is a tool of each but the last.
func (p *switchPlan) agent(t *rapid.T) agent.Agent {
	codec := func() dialect.Codec { return rapid.SampledFrom(codecs).Draw(t, "codec") }
	model := func() wireModel {
		return wireModel{codec(), func(turn int, _ *dragoman.Request) *dragoman.Response { return drawAnswer(t, turn, p.turns) }, rapid.Bool().Draw(t, "searches"), &p.turn, &p.bad}
	}
	search := func() agent.Search { return agent.Search{LocalOnly: rapid.Bool().Draw(t, "our search")} }
	compact := drawCompact(t)
	clerk := agent.Agent{Name: "clerk", Model: wireModel{codec(), clerkAnswer, false, &p.clerks, &p.bad}, Tools: p.tools, Search: agent.Search{LocalOnly: true}, Limits: agent.Limits{Repeats: -1}}
	ask := clerk.AsTool(tool.Set(func(s *tool.Settings) { s.Exclusive = true })) // one after the other, so that runs are reproducible
	third := agent.Agent{Name: "third", Model: model(), Tools: p.tools[:1], Compact: compact}
	second := agent.Agent{
		Name: "second", Model: model(), Tools: append(p.tools[1:len(p.tools):len(p.tools)], ask), Search: search(), Compact: compact,
		Handoffs: []agent.Handoff{{To: &third, Filter: p.filter()}},
	}
	return agent.Agent{
		Model: model(), Tools: append(p.tools[:len(p.tools):len(p.tools)], ask), Search: search(), Compact: compact,
		Handoffs: []agent.Handoff{{To: &second, NeedsApproval: p.asks, Filter: p.filter()}},
		Limits:   agent.Limits{Turns: p.turn + rapid.IntRange(1, 3).Draw(t, "turns of this process"), Repeats: -1, ErrorTurns: -1},
	}
}

// filter returns what the agent sees after a handoff: everything, the end, or a summary.
func (p *switchPlan) filter() func([]dragoman.Message) []dragoman.Message {
	switch p.filters {
	case 0:
		return nil
	case 1:
		return tail
	default:
		return func([]dragoman.Message) []dragoman.Message { return []dragoman.Message{dragoman.UserText("in short")} }
	}
}

// tail returns the last messages, wherever they begin.
func tail(ms []dragoman.Message) []dragoman.Message { return ms[max(0, len(ms)-3):] }

// drawCompact returns a Compact function: it sends everything, or the end with or without a
// summary of the rest.
func drawCompact(t *rapid.T) func(context.Context, []dragoman.Message) ([]dragoman.Message, error) {
	summary := []dragoman.Message{dragoman.UserText("what was said before")}
	switch rapid.IntRange(0, 3).Draw(t, "compaction") {
	case 0:
		return func(_ context.Context, ms []dragoman.Message) ([]dragoman.Message, error) {
			return append(summary, tail(ms)...), nil
		}
	case 1:
		return func(_ context.Context, ms []dragoman.Message) ([]dragoman.Message, error) {
			cuts := history.CutPoints(ms) // other cuts may leave only a few results
			return ms[cuts[max(0, len(cuts)-2)]:], nil
		}
	default:
		return nil
	}
}

// clerkAnswer returns the response of the agent that is a tool. It is not random, because the
// agent runs on another goroutine.
func clerkAnswer(_ int, req *dragoman.Request) *dragoman.Response {
	spoke := 0
	for i := range req.Messages {
		if len(req.Messages[i].ToolCalls()) > 0 {
			spoke++
		}
	}
	switch {
	case spoke == 0:
		return calls(`c1 look {"word":"in"}`, `c2 pay {"word":"in"}`)
	case spoke == 1 && strings.HasSuffix(req.Messages[0].Text(), "1"):
		return calls(`c3 pay {"word":"more"}`, `c4 fall`)
	default:
		return textResponse("done")
	}
}

// drawStore returns the store of a run, as each process opens it: none, a simple store, or a
// session that is read from its entries.
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

// drawAnswer returns a response: some calls, text and reasoning, and after some turns the
// final answer.
func drawAnswer(t *rapid.T, turn, turns int) *dragoman.Response {
	if turn > turns {
		return textResponse("done")
	}
	resp := calls()
	m := &resp.Output[0]
	if rapid.Bool().Draw(t, "thinks") {
		m.Parts = append(m.Parts, &dragoman.Reasoning{Text: "hm", Signature: "c2ln"})
	}
	if rapid.Bool().Draw(t, "speaks") {
		m.Parts = append(m.Parts, &dragoman.Text{Text: "let me see"})
	}
	names := []string{"look", "pay", "fall", "nothing", "tool_search", "deep_dive", "clerk", "transfer_to_second", "transfer_to_third"}
	for i := range rapid.IntRange(1, 4).Draw(t, "calls") {
		name := rapid.SampledFrom(names).Draw(t, "tool")
		args := fmt.Sprintf(`{"word":"w%d"}`, i)
		switch name {
		case "tool_search":
			args = `{"query":"deep dive"}`
		case "clerk":
			args = fmt.Sprintf(`{"task":"t%d"}`, i)
		case "transfer_to_second", "transfer_to_third":
			args = "{}"
		}
		m.Parts = append(m.Parts, &dragoman.ToolCall{ID: fmt.Sprintf("call_%d_%d", turn, i), Name: name, Arguments: args})
	}
	return resp
}

// compact cuts the native history that a session has for a target to the messages that must
// stay together with the last one.
func compact(ctx context.Context, s *session.Session, c dialect.Codec, target targets.Target) error {
	set, err := extension.NewSet(extension.Compact{})
	if err != nil {
		return err
	}
	on, err := set.Resolve(nil, extension.Switches{})
	if err != nil {
		return err
	}
	return s.Act(ctx, wireOnly{modelcall.Wire{Codec: c, Target: target, Extensions: on}},
		session.Action{Extension: "dragoman.compact", ID: extension.CompactID, Params: json.RawMessage(`{"keep":1}`)})
}

// wireOnly is a model of which only the wire is used.
type wireOnly struct{ w modelcall.Wire }

func (m wireOnly) Wire(context.Context, string) (modelcall.Wire, error) { return m.w, nil }

func (wireOnly) Generate(context.Context, *dragoman.Request) (*dragoman.Response, error) {
	return nil, errors.New("not asked")
}

func (wireOnly) Stream(context.Context, *dragoman.Request) iter.Seq2[dragoman.Event, error] {
	return nil
}

// client is a provider's model that returns scripted responses and records its requests.
type client struct {
	*provider.Client
	*scripted
}

func (m client) Generate(ctx context.Context, req *dragoman.Request) (*dragoman.Response, error) {
	return m.scripted.Generate(ctx, req)
}

func (m client) Stream(ctx context.Context, req *dragoman.Request) iter.Seq2[dragoman.Event, error] {
	return m.scripted.Stream(ctx, req)
}

func (m client) String() string { return m.Client.String() }

func clientOf(c dialect.Codec, script ...any) client {
	return client{&provider.Client{Name: "p", Codec: c, Model: "m"}, model(script...)}
}

// compacted compacts the native history that a session has for a model.
func compacted(t *testing.T, s *session.Session, m client) {
	t.Helper()
	target, _, err := m.Target(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if err := compact(t.Context(), s, m.Codec, target); err != nil {
		t.Fatal(err)
	}
}

// The loop sends a native history that an action replaced to its origin in every turn. After
// a switch, the other model gets the whole conversation; after a switch back, the origin gets
// what is still valid.
func TestS5_NativeHistoryIsSentOnlyToItsOrigin(t *testing.T) {
	ctx := t.Context()
	s := newSession(t)
	var did counted
	ask := func(c dialect.Codec, prompt string) (first, last string) {
		m := clientOf(c, calls("call_"+prompt+" look"), textResponse("answer to "+prompt))
		must[*agent.Result](t)(agent.Agent{Model: m, Tools: []tool.Tool{did.tool("look")}}.Run(ctx, prompt, agent.In(s)))
		return script(m.asked[0].Messages), script(m.asked[1].Messages)
	}
	ask(anthropic.Codec{}, "q1")
	ask(anthropic.Codec{}, "q2")
	before := s.Head()
	compacted(t, s, clientOf(anthropic.Codec{}))
	if got, _ := ask(openairesponses.Codec{}, "q3"); !strings.Contains(got, "q1") || !strings.Contains(got, `user: "q3"`) {
		t.Errorf("another origin gets\n%s", got)
	}
	first, last := ask(anthropic.Codec{}, "q4")
	for _, got := range []string{first, last} {
		if strings.Contains(got, "q1") || !strings.Contains(got, "answer to q3") || !strings.Contains(got, `user: "q4"`) {
			t.Errorf("after the switch back, it gets\n%s", got)
		}
	}
	if !strings.Contains(last, "result call_q4 ok") {
		t.Errorf("the current turn is missing\n%s", last)
	}
	if ms, _, err := s.Load(ctx); err != nil || !strings.Contains(script(ms), "q1") {
		t.Errorf("the stored conversation changed: %v", err)
	}
	if err := s.Rewind(ctx, before); err != nil {
		t.Fatal(err)
	}
	if got, _ := ask(anthropic.Codec{}, "q5"); !strings.Contains(got, "q1") {
		t.Errorf("after a rewind to before the compaction, it gets\n%s", got)
	}
}

// Compact gets the messages that would be sent otherwise, and its result is sent. After a
// handoff that filters, the visible messages are not the conversation that was compacted.
func TestS5_CompactGetsNativeHistoryUnlessFiltered(t *testing.T) {
	ctx := t.Context()
	s := newSession(t)
	for _, prompt := range []string{"q1", "q2"} {
		must[*agent.Result](t)(agent.Agent{Model: clientOf(anthropic.Codec{})}.Run(ctx, prompt, agent.In(s)))
	}
	compacted(t, s, clientOf(anthropic.Codec{}))
	got, m := "", clientOf(anthropic.Codec{}, calls("a transfer_to_next"))
	next := agent.Agent{Name: "next", Model: clientOf(anthropic.Codec{})}
	a := agent.Agent{
		Model: m, Handoffs: []agent.Handoff{{To: &next, Filter: func(ms []dragoman.Message) []dragoman.Message { return ms[:1] }}},
		Compact: func(_ context.Context, ms []dragoman.Message) ([]dragoman.Message, error) {
			got = script(ms)
			return append(ms, dragoman.UserText("shortly")), nil
		},
	}
	must[*agent.Result](t)(a.Run(ctx, "q3", agent.In(s)))
	if strings.Contains(got, "q1") || !strings.Contains(got, "q2") || !strings.HasSuffix(script(m.asked[0].Messages), "user: \"shortly\"\n") {
		t.Errorf("Compact gets\n%s", got)
	}
	if seen := script(next.Model.(client).asked[0].Messages); seen != "user: \"q1\"\n" {
		t.Errorf("after the filter, the agent sees\n%s", seen)
	}
}
