package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/lazyctx"
)

// loop alternates model calls and tool calls until the run is over.
func (r *run) loop(ctx context.Context) error {
	if err := r.state.failure(); err != nil { // the run has already ended with an error
		return err
	}
	for r.state.Phase != finished {
		if r.state.Phase == calling {
			if err := r.call(ctx); err != nil {
				return err
			}
			r.turnOver = true
			continue
		}
		if err := r.beforeModelCall(ctx); err != nil {
			return err
		}
		resp, err := r.ask(ctx)
		if err != nil {
			return err
		}
		if err := r.storeResponse(ctx, resp); err != nil {
			return err
		}
		r.turnOver = true
	}
	return nil
}

// beforeModelCall runs before each model call: it checks for stop requests, cancellation and limits,
// delivers outcomes of background work, and calls Steer.
func (r *run) beforeModelCall(ctx context.Context) error {
	if r.turnOver {
		select {
		case <-r.stop:
			return ErrStopped
		default:
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := r.checkLimits(); err != nil {
		return err
	}
	if r.state.Paused { // nothing comes between a paused response and its continuation
		if r.active.sourced {
			return nil
		}
		return r.refreshTools(ctx)
	}
	if err := r.refreshTools(ctx); err != nil {
		return err
	}
	if err := r.deliver(ctx); err != nil {
		return errorf("delivering results of background work: %w", err)
	}
	if stopped := r.guarded.err(); stopped != nil { // by an outcome that the conversation has
		return errors.Join(r.fail(stopped), r.save(ctx))
	}
	if r.active.Steer == nil {
		return nil
	}
	var added []dragoman.Message
	err := callback("Steer", func() (err error) { added, err = r.active.Steer(ctx, r.turn()); return err })
	if err != nil {
		return err
	}
	return r.addMessages(ctx, added)
}

// addMessages adds messages to the conversation.
func (r *run) addMessages(ctx context.Context, added []dragoman.Message) error {
	if len(added) == 0 {
		return nil
	}
	r.messages = append(r.messages, added...)
	if err := r.save(ctx); err != nil {
		return err
	}
	for _, m := range added {
		r.emit(&MessageAdded{r.state.Turn, m})
	}
	return nil
}

// deliver adds the outcomes of background work that has ended, in this run and in earlier
// runs of the conversation, whichever agent's tool began it. An outcome counts as delivered
// once it is stored; if the process is killed before that, the next one delivers it.
func (r *run) deliver(ctx context.Context) error {
	var out []dragoman.Message
	var taken []func(context.Context) error
	open := map[string]bool{}
	for _, p := range r.ticketHolders() {
		for _, id := range r.state.Waiting {
			left, err := p.tickets.Store.List(ctx, id)
			if err != nil {
				return err
			}
			if len(left) == 0 {
				continue
			}
			open[id] = true
			ms, done, err := r.outcomes(ctx, p, id)
			if err != nil {
				return err
			}
			out, taken = append(out, ms...), append(taken, done)
		}
		ms, done, err := r.outcomes(ctx, p, r.state.Run)
		if err != nil {
			return err
		}
		out, taken = append(out, ms...), append(taken, done)
	}
	if len(taken) == 0 {
		return nil
	}
	r.guarded.abandon(ctx.Err() == nil)
	r.collect()
	if stopped := (*GuardrailError)(nil); errors.As(r.guarded.err(), &stopped) {
		r.state.Stopped = stopped.stored() // stored with the messages
	}
	r.state.Waiting = slices.DeleteFunc(slices.Clone(r.state.Waiting), func(id string) bool { return !open[id] })
	if len(out) == 0 {
		return nil
	}
	var added []dragoman.Message
	for _, m := range out {
		if !r.delivered(m) && !slices.ContainsFunc(added, func(a dragoman.Message) bool { return heading(&a) == heading(&m) }) {
			added = append(added, m)
		}
	}
	if err := r.addMessages(ctx, added); err != nil {
		return err
	}
	ctx, cancel := lazyctx.WithTimeout(context.WithoutCancel(ctx), saveTimeout)
	defer cancel()
	for _, done := range taken {
		if err := done(ctx); err != nil {
			return err
		}
	}
	return nil
}

// ticketHolders returns one agent for each ticket store, the current agent first.
func (r *run) ticketHolders() (out []*preparedAgent) {
	add := func(p *preparedAgent) {
		same := func(o *preparedAgent) bool { return o.tickets == p.tickets || o.storeTickets && p.storeTickets }
		if p.background() && !slices.ContainsFunc(out, same) {
			out = append(out, p)
		}
	}
	add(r.active)
	for _, name := range r.agents.agentNames() {
		add(r.agents.byName[name])
	}
	return out
}

// outcomes returns the outcomes of a run's background work, as messages bounded by the
// agent's toolbox.
func (r *run) outcomes(ctx context.Context, p *preparedAgent, id string) ([]dragoman.Message, func(context.Context) error, error) {
	ctx = r.withRun(ctx)
	if p == r.active && id == r.state.Run {
		return r.runner().Outcomes(ctx, p.box)
	}
	base := p.base()
	t := base.Start(id)
	r.hideSecrets(t)
	return t.Outcomes(ctx, p.box)
}

// delivered reports whether the conversation already has an outcome, which was stored but not
// marked as delivered.
func (r *run) delivered(m dragoman.Message) bool {
	words := heading(&m)
	return words != "" && slices.ContainsFunc(r.messages, func(m dragoman.Message) bool { return heading(&m) == words })
}

// heading returns the first text of a user message. In an outcome, it names the work.
func heading(m *dragoman.Message) string {
	if len(m.Parts) == 0 || m.Role != dragoman.RoleUser {
		return ""
	}
	t, _ := m.Parts[0].(*dragoman.Text)
	if t == nil {
		return ""
	}
	return t.Text
}

// responseKind is the next step that a response requires.
type responseKind int

const (
	// final: the run is over.
	final responseKind = iota
	// callsTools: the response has calls to run.
	callsTools
	// cutOff: the response has calls that must not run; the model reads why, and may try
	// again (quirk I4).
	cutOff
	// pause: the provider expects the same conversation again, to continue the response.
	pause
	// hostedWork: the provider's own tools ran and the response has no text; the model
	// continues.
	hostedWork
)

// kindOf returns the next step that a response requires.
func kindOf(resp *dragoman.Response) responseKind {
	calls := len(clientCalls(resp)) > 0
	switch reason := resp.Stop.Reason; {
	case calls && waitingItems(resp) != nil:
		return final // the provider refuses a request that does not answer the item
	case calls && reason.Runs():
		return callsTools
	case calls && (reason == dragoman.StopLength || reason == dragoman.StopMalformedCall):
		return cutOff
	case reason == dragoman.StopPause:
		return pause
	case !calls && reason != dragoman.StopRefusal && unusable(resp) == nil && hostedOnly(resp):
		return hostedWork
	default:
		return final
	}
}

// storeResponse stores a response and decides the next step.
func (r *run) storeResponse(ctx context.Context, resp *dragoman.Response) error {
	r.result.Stop = resp.Stop
	kind := kindOf(resp)
	r.state.Paused = kind == pause
	if kind != pause {
		r.pauses = 0
	}
	output := resp.Output
	if kind == final {
		var err error
		if output, err = r.guardOutput(ctx, output); err != nil {
			if errors.Is(err, ErrGuardrail) {
				err = r.fail(err) // the blocked output is not part of the conversation
			}
			return errors.Join(err, r.save(ctx))
		}
	}
	r.messages = append(r.messages, output...)
	taken := len(r.messages)
	correction, err := r.react(kind, resp, output)
	if saved := r.save(ctx); saved != nil {
		return errors.Join(saved, err)
	}
	r.emitResponse(output, r.messages[taken:], correction, kind == callsTools)
	return err
}

// emitResponse emits the events of a response that was stored, and of the replies of the loop
// itself. Each call has a ToolCalled event, also a call that must not run, and each result a
// ToolReturned event.
func (r *run) emitResponse(output, replies []dragoman.Message, correction string, goesOn bool) {
	if r.noReader() {
		return
	}
	for i := range output {
		r.emit(&MessageAdded{r.state.Turn, output[i]})
	}
	for _, c := range openCalls(output) {
		r.emit(&ToolCalled{r.state.Turn, c})
	}
	for i := range replies {
		for _, p := range replies[i].Parts {
			if res, ok := p.(*dragoman.ToolResult); ok {
				r.emit(&ToolReturned{r.state.Turn, res})
			}
		}
	}
	if correction != "" {
		r.emit(&Notice{r.state.Turn, "correction", correction})
	}
	if !goesOn {
		r.emit(&TurnEnd{r.state.Turn, r.state.Usage})
	}
}

// react decides the next step after a response. correction is the message to the model if it
// must answer again.
func (r *run) react(kind responseKind, resp *dragoman.Response, output []dragoman.Message) (correction string, err error) {
	switch kind {
	case callsTools:
		r.state.Phase = calling
	case cutOff:
		r.answerOpen(resp, output)
		return "", r.failedTurn()
	case pause:
		r.pauses++
		if most := orDefault(r.agents.first.Limits.Pauses, defaultPauses); r.pauses > most {
			return "", &LimitError{"turns", fmt.Sprintf("the model paused more than %d times in a row", most)}
		}
	case hostedWork:
		if forced(r.active.Settings.ToolChoice) {
			r.state.Chosen = true // a hosted tool satisfied it (requirement L4)
		}
	case final:
		return r.finalAnswer(resp, output)
	}
	return "", nil
}

// finalAnswer ends the run with a final answer, or asks for a correction.
func (r *run) finalAnswer(resp *dragoman.Response, output []dragoman.Message) (correction string, err error) {
	text := textOf(output)
	r.result.Output = text
	r.state.Phase = finished
	r.answerOpen(resp, output)
	if err := unusable(resp); err != nil {
		return "", r.fail(err)
	}
	if types := waitingItems(resp); types != nil {
		return "", r.fail(&PendingItemError{types})
	}
	if r.check == nil {
		return "", nil
	}
	if strings.TrimSpace(text) == "" {
		text = reasoningText(output)
	}
	wrong := r.check(text)
	switch refusal, refused := refusalOf(resp, output); {
	case refused && (wrong != "" || resp.Stop.Reason == dragoman.StopRefusal):
		return "", r.fail(fmt.Errorf("%w: the model refused: %s", ErrResponse, refusal))
	case wrong == "":
		return "", nil
	case r.state.Corrected >= orDefault(r.agents.first.Limits.Corrections, defaultCorrections):
		return "", r.fail(&OutputError{Output: text, Problem: wrong})
	}
	r.state.Phase = asking
	r.state.Corrected++
	r.messages = append(r.messages, dragoman.UserText(wrong))
	return wrong, nil
}

// refusalOf reports whether a response is a refusal, and returns its text.
func refusalOf(resp *dragoman.Response, output []dragoman.Message) (text string, refused bool) {
	var texts []string
	for i := range output {
		for _, p := range output[i].Parts {
			if p, ok := p.(*dragoman.Refusal); ok {
				texts = append(texts, p.Text)
			}
		}
	}
	if len(texts) == 0 && resp.Stop.Reason == dragoman.StopRefusal {
		return cmp.Or(textOf(output), "it gave no reason"), true
	}
	return strings.Join(texts, "\n"), len(texts) > 0
}

// answerOpen adds error results for the calls of a response that must not run, so that the
// conversation can continue; output holds the messages of the response that are stored.
func (r *run) answerOpen(resp *dragoman.Response, output []dragoman.Message) {
	var results []*dragoman.ToolResult
	why := fmt.Sprintf("the response ended with %q", resp.Stop.Reason)
	if types := waitingItems(resp); types != nil {
		why = "the response also waits for the client to answer " + strings.Join(types, ", ")
	}
	for _, c := range openCalls(output) {
		results = append(results, c.Fail(fmt.Sprintf("%s did not run: %s.", c.QualifiedName(), why)))
	}
	if results != nil {
		r.messages = append(r.messages, dragoman.ToolResults(results...))
	}
}

// unusable returns an error if a response cannot be used as the final answer.
func unusable(resp *dragoman.Response) error {
	switch resp.Stop.Reason {
	case dragoman.StopEnd, dragoman.StopSequence, dragoman.StopToolCalls, dragoman.StopNone, dragoman.StopRefusal, dragoman.StopCompaction:
		return nil
	case dragoman.StopLength:
		return fmt.Errorf("%w: it was cut off at the output limit: raise Settings.MaxOutputTokens", ErrResponse)
	default:
		word := string(resp.Stop.Reason)
		if resp.Stop.Native != "" {
			word += " (" + resp.Stop.Native + ")"
		}
		return fmt.Errorf("%w: the model stopped with %s", ErrResponse, word)
	}
}

// clientCalls returns the calls that the agent must run.
func clientCalls(resp *dragoman.Response) []*dragoman.ToolCall {
	return slices.DeleteFunc(resp.ToolCalls(), func(c *dragoman.ToolCall) bool { return c.Hosted })
}

// waitingItems returns the native types of the items of a response that wait for the
// client: calls that have no result and that the provider does not run.
func waitingItems(resp *dragoman.Response) (types []string) {
	var partsOf map[string]int
	for p := range opaqueParts(resp) {
		if partsOf == nil {
			partsOf = map[string]int{}
		}
		partsOf[p.CallID]++
	}
	for p := range opaqueParts(resp) {
		if p.CallID != "" && !p.Hosted && partsOf[p.CallID] == 1 {
			types = append(types, p.Type)
		}
	}
	return types
}

// opaqueParts iterates over the opaque parts of a response.
func opaqueParts(resp *dragoman.Response) iter.Seq[*dragoman.Opaque] {
	return func(yield func(*dragoman.Opaque) bool) {
		for i := range resp.Output {
			for _, p := range resp.Output[i].Parts {
				if o, ok := p.(*dragoman.Opaque); ok && !yield(o) {
					return
				}
			}
		}
	}
}

// hostedOnly reports whether a response has nothing but calls and results of the provider's
// own tools. A call with a result in the same response is one of these.
func hostedOnly(resp *dragoman.Response) bool {
	hosted := false
	for i := range resp.Output {
		for _, p := range resp.Output[i].Parts {
			switch p := p.(type) {
			case *dragoman.Text:
				if strings.TrimSpace(p.Text) != "" {
					return false
				}
			case *dragoman.Refusal, *dragoman.Media:
				return false
			case *dragoman.ToolCall:
				hosted = hosted || p.Hosted
			case *dragoman.Opaque:
				hosted = hosted || p.Hosted || p.CallID != ""
			}
		}
	}
	return hosted && waitingItems(resp) == nil
}

// blank reports whether a response has no content at all (quirk I14).
func blank(resp *dragoman.Response) bool {
	for i := range resp.Output {
		m := &resp.Output[i]
		for _, p := range m.Parts {
			if t, ok := p.(*dragoman.Text); !ok || strings.TrimSpace(t.Text) != "" {
				return false
			}
		}
	}
	switch resp.Stop.Reason {
	case dragoman.StopEnd, dragoman.StopNone, dragoman.StopToolCalls, dragoman.StopMalformedCall:
		return true
	default:
		return false // the model or the provider ended it on purpose
	}
}

// textOf returns the text of messages.
func textOf(ms []dragoman.Message) string {
	var texts []string
	for i := range ms {
		if t := ms[i].Text(); t != "" {
			texts = append(texts, t)
		}
	}
	return strings.Join(texts, "\n")
}

// quoted returns names in quotes, for an error.
func quoted(names []string) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = fmt.Sprintf("%q", n)
	}
	return strings.Join(out, ", ")
}
