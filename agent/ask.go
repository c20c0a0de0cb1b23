package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/modelcall"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/provider/extension"
	"github.com/dragoman-go/dragoman/targets"
)

// ask runs the model call of a turn. It repeats the call after empty responses, up to
// Limits.EmptyResponses times.
func (r *run) ask(ctx context.Context) (*dragoman.Response, error) {
	req, err := r.request(ctx)
	if err != nil {
		return nil, err
	}
	r.state.Turn++
	r.emit(&TurnStart{r.state.Turn, r.active.name()})
	ctx = r.gated(r.perLink(ctx, req))
	for left := orDefault(r.agents.first.Limits.EmptyResponses, defaultBlanks); ; left-- {
		resp, err := r.permitted(ctx, req)
		if resp != nil {
			if failed := r.account(resp); failed != nil {
				return nil, r.endPartialTurn(ctx, resp, errors.Join(failed, err))
			}
		}
		empty := errors.Is(err, provider.ErrEmpty) || err == nil && resp.Error == nil && blank(resp)
		switch {
		case empty && left > 0:
			r.emit(&Notice{r.state.Turn, "blank", "the response of the model was empty; the model is called again"})
		case err != nil:
			return nil, r.endPartialTurn(ctx, resp, err)
		case resp.Error != nil:
			return nil, r.endPartialTurn(ctx, resp, resp.Error)
		default:
			r.state.Partial = ""
			return resp, nil
		}
	}
}

// endPartialTurn ends a turn whose response failed or was canceled. The turn does not
// count: resuming the run calls the model again. The text that arrived is
// stored, so that it survives the process.
func (r *run) endPartialTurn(ctx context.Context, resp *dragoman.Response, err error) error {
	r.result.Partial = resp
	r.state.Turn--
	err = r.failed(err)
	if resp == nil || len(r.active.Guardrails.Output) > 0 { // no guardrail has checked the text
		return err
	}
	text := resp.Text()
	if text == "" || text == r.state.Partial {
		return err
	}
	r.state.Partial = text
	if failed := r.save(ctx); failed != nil {
		return errors.Join(err, failed)
	}
	return err
}

// failed adds the turn to the error of a model call, and the agent if it has a name.
func (r *run) failed(err error) error {
	if r.active.Name == "" {
		return errorf("turn %d: %w", r.state.Turn+1, err)
	}
	return errorf("%s: turn %d: %w", r.active.Name, r.state.Turn+1, err)
}

// account adds the usage, the cost and the losses of a response. It returns the error of
// [Agent.Price].
func (r *run) account(resp *dragoman.Response) error {
	if name := modelName(resp); name != "" {
		r.result.Model = name
	}
	if resp.Failover != nil {
		for _, f := range resp.Failover.Failed {
			r.result.Failovers = append(r.result.Failovers, FailedModel{Turn: r.state.Turn, Model: f.Model, Err: f.Err})
		}
	}
	r.result.Losses.Losses = append(r.result.Losses.Losses, resp.Losses.Losses...)
	return r.charge(resp.Usage)
}

// charge adds usage and its price to the run.
func (r *run) charge(u dragoman.Usage) error {
	r.state.Usage = addUsage(r.state.Usage, u)
	price := r.agents.first.Price
	if price == nil {
		return nil
	}
	return callback("Price", func() error { r.state.Cost += price(u); return nil })
}

// answer calls the model once: with Stream if a caller reads events, otherwise with Generate.
func (r *run) answer(ctx context.Context, req *dragoman.Request) (*dragoman.Response, error) {
	if r.yield == nil {
		return r.active.Model.Generate(ctx, req)
	}
	announced := false
	var c dragoman.Collector
	var failed error
	var patches patchQueue
	ctx = modelcall.WithPosition(ctx, extension.Position{Run: r.state.Run, Turn: r.state.Turn, Message: len(r.messages)})
	ctx = modelcall.WithPatches(ctx, patches.add)
	if r.chunks {
		ctx = wirekit.WithChunks(ctx)
	}
	for ev, err := range r.active.Model.Stream(ctx, req) {
		for _, p := range patches.take() {
			r.emit(&Patched{r.state.Turn, p})
		}
		if err != nil {
			failed = err
			break
		}
		c.Add(ev)
		if start, ok := ev.(*dragoman.ResponseStart); ok && !announced {
			announced = true
			r.announceFailover(start.Response.Failover)
		}
		if chunk, ok := ev.(*dragoman.Chunk); !ok || r.chunks && len(chunk.Raw) > 0 {
			r.emit(&ModelEvent{r.state.Turn, ev})
		}
		if r.callerLeft {
			failed = errLeft
			break
		}
	}
	resp, err := c.Response()
	if failed != nil {
		err = failed
	}
	return resp, err
}

// patchQueue holds patches until the run takes the next event: a model may report them on
// another goroutine than the one that ranges over its events.
type patchQueue struct {
	mu      sync.Mutex
	patches []extension.Patch
}

func (q *patchQueue) add(p extension.Patch) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.patches = append(q.patches, p)
}

func (q *patchQueue) take() []extension.Patch {
	q.mu.Lock()
	defer q.mu.Unlock()
	out := q.patches
	q.patches = nil
	return out
}

// modelName returns the name of the model that gave a response, or "" if the response does
// not name it.
func modelName(resp *dragoman.Response) string {
	switch {
	case resp.Failover != nil:
		return resp.Failover.Model
	case resp.Origin != nil && resp.Origin.Provider != "" && resp.Origin.Model != "":
		return resp.Origin.Provider + "/" + resp.Origin.Model
	default:
		return resp.Model
	}
}

func (r *run) announceFailover(f *dragoman.Failover) {
	if f == nil {
		return
	}
	for _, failed := range f.Failed {
		r.emit(&Notice{r.state.Turn, "failover", fmt.Sprintf("%s failed (%v); %s responded", failed.Model, failed.Err, f.Model)})
	}
}

// request returns the request of the next turn. For a chain, it leaves messages and output
// format to perLink, which sets them for each model.
func (r *run) request(ctx context.Context) (*dragoman.Request, error) {
	p := r.active
	req := p.Settings
	req.Instructions, req.Messages, req.Tools = nil, nil, nil
	text := p.Instructions
	if p.Instruct != nil {
		err := callback("Instruct", func() (err error) { text, err = p.Instruct(ctx, r.turn()); return err })
		if err != nil {
			return nil, err
		}
	}
	if text != "" {
		req.Instructions = []dragoman.Part{&dragoman.Text{Text: text}}
	}
	r.loadChosen()
	req.Tools = r.specs()
	req.Contributions = slices.Concat(p.Settings.Contributions, p.contributions)
	req.StreamUsage = true
	if forced(req.ToolChoice) && r.state.Chosen && !p.KeepToolChoice {
		req.ToolChoice = nil // a model that must call a tool never gives a final answer (requirement L4)
	}
	if isChain(p.Model) {
		return &req, nil
	}
	sent, err := r.native(ctx)
	if err != nil {
		return nil, err
	}
	if req.Messages, err = r.readyToSend(ctx, sent); err != nil {
		return nil, err
	}
	if r.output != nil {
		r.output.addFormat(ctx, p.Model, &req)
	}
	return &req, nil
}

// readyToSend calls the agent's Compact and replaces references to stored media with their
// content.
func (r *run) readyToSend(ctx context.Context, messages []dragoman.Message) (out []dragoman.Message, err error) {
	out = slices.Clip(messages)
	if r.active.Compact != nil {
		err = callback("Compact", func() (err error) { out, err = r.active.Compact(ctx, copied(out)); return err })
		if err != nil {
			return nil, err
		}
		out = paired(out)
	}
	if s, ok := r.store.(expander); ok {
		if out, err = s.Expand(ctx, out); err != nil {
			return nil, errorf("building the request: %w", err)
		}
	}
	return out, nil
}

// wire is a model that knows its target and its limits, which select native histories.
type wire interface {
	targeter
	Limits() targets.Limits
}

// native returns the messages that the current agent sends: the native history that the
// store has for the origin of its model, or else the conversation as the agent sees it
// (requirement S5).
func (r *run) native(ctx context.Context) ([]dragoman.Message, error) {
	m, known := r.active.Model.(wire)
	if !known || !r.hasNative() {
		return r.visible(), nil
	}
	p := r.active
	if p.target == nil {
		if target, _, err := m.Target(ctx, p.Settings.Model); err == nil { // otherwise the model call fails with err
			p.target = &target
		}
	}
	if p.target == nil {
		return r.visible(), nil
	}
	return r.replacement(ctx, p.target.Origin(), m)
}

// hasNative reports whether the store may have native histories of the conversation. There
// is no native history for a conversation that a handoff filtered.
func (r *run) hasNative() bool {
	_, kept := r.store.(historyStore)
	return kept && r.state.Offset == 0
}

// replacement returns the messages that the store has in place of the conversation for an
// origin.
func (r *run) replacement(ctx context.Context, origin dragoman.Origin, m wire) ([]dragoman.Message, error) {
	out, err := r.store.(historyStore).MessagesInPlaceOf(ctx, r.messages, origin, m.Limits().Replay.Messages)
	if err != nil {
		return nil, errorf("loading the native history: %w", err)
	}
	return out, nil
}

// visible returns the conversation as the current agent sees it.
func (r *run) visible() []dragoman.Message {
	if r.state.Offset == 0 {
		return r.messages
	}
	return append(slices.Clone(r.state.Seen), r.messages[min(r.state.Offset, len(r.messages)):]...)
}

// forced reports whether a tool choice forces the model to call a tool.
func forced(c *dragoman.ToolChoice) bool {
	return c != nil && (c.Mode == dragoman.ChoiceRequired || c.Mode == dragoman.ChoiceTool)
}

// agentNames returns the names of the agents, sorted.
func (c *agentSet) agentNames() []string {
	var out []string
	for n := range c.byName {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}
