package sim

import (
	"cmp"
	"context"
	"iter"
	"strings"
	"time"
	"unicode/utf8"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/dialects"
	"github.com/dragoman-go/dragoman/internal/serving"
)

// response is the output of a model of this package, before it is split into events.
type response struct {
	parts []dragoman.Part
	stop  dragoman.Stop
	// usage overrides the counted usage, for the counts that it knows.
	usage dragoman.Usage
	// pace overrides the pace of the model, for the fields that it sets.
	pace Pace
	// truncated ends the stream with an error after the parts. Nil means a normal end.
	truncated *dragoman.APIError
}

// actor is one model: its name, and how it makes a response. The parts that all models share
// (limits, ids, usage, events) are in this file.
type actor struct {
	name     string
	settings Settings
	respond  func(*dragoman.Request, idGenerator) (response, error)
}

// generate collects the stream.
func (a actor) generate(ctx context.Context, req *dragoman.Request) (*dragoman.Response, error) {
	return dragoman.Collect(a.stream(ctx, req))
}

// stream makes the response and splits it into events.
func (a actor) stream(ctx context.Context, req *dragoman.Request) iter.Seq2[dragoman.Event, error] {
	return func(yield func(dragoman.Event, error) bool) {
		if err := req.Validate(); err != nil {
			yield(nil, serving.AsRequestError(err))
			return
		}
		m := a.settings.mint(req)
		resp, err := a.respond(req, m)
		if err != nil {
			yield(nil, err)
			return
		}
		bound(&resp, req)
		t := emitter{ctx: ctx, yield: yield, pace: resp.pace.orElse(a.settings.Pace), origin: a.settings.origin}
		t.emitResponse(&resp, dragoman.Response{
			ID: m.id(a.settings.idKind(), 0), Model: cmp.Or(req.Model, a.name), Created: time.Unix(created, 0).UTC(),
			Usage: dragoman.Usage{Input: dragoman.Counted(serving.CountTokens(req))}.Merge(dragoman.Usage{Input: resp.usage.Input, CacheRead: resp.usage.CacheRead, CacheWrite: resp.usage.CacheWrite}),
		}, candidates(req))
	}
}

// created is the creation time of all responses: the first second of 2026. It is constant,
// so that the same request gives the same bytes.
const created = 1_767_225_600

// maxCandidates limits the number of candidates of one request.
const maxCandidates = 8

// candidates returns the number of requested candidates. All of them are the same.
func candidates(req *dragoman.Request) int {
	if n := req.Sampling.Candidates; n != nil {
		return int(max(1, min(*n, maxCandidates)))
	}
	return 1
}

// bound ends a response at a stop sequence of the request, or at its token limit. It marks a
// call that it cuts, because such a call must not run.
func bound(a *response, req *dragoman.Request) {
	for i, p := range a.parts {
		t, ok := p.(*dragoman.Text)
		if !ok {
			continue
		}
		if before, sequence := cutAt(t.Text, req.Sampling.Stop); sequence != "" {
			a.parts = append(a.parts[:i:i], &dragoman.Text{Text: before})
			a.stop = dragoman.Stop{Reason: dragoman.StopSequence, Sequence: sequence}
			break
		}
	}
	if req.MaxOutputTokens == nil || serving.Tokens(serving.SizeOf(a.parts)) <= *req.MaxOutputTokens {
		return
	}
	left := int(max(0, *req.MaxOutputTokens)) * serving.BytesPerToken
	for i, p := range a.parts {
		size := serving.SizeOf([]dragoman.Part{p})
		if size <= left {
			left -= size
			continue
		}
		a.parts = append(a.parts[:i:i], shortened(p, left)...)
		break
	}
	a.stop = dragoman.Stop{Reason: dragoman.StopLength}
}

// cutAt returns the text before the first of the sequences, and that sequence.
func cutAt(text string, sequences []string) (before, sequence string) {
	at := len(text)
	for _, s := range sequences {
		if i := strings.Index(text, s); s != "" && i >= 0 && i < at {
			at, sequence = i, s
		}
	}
	return text[:at], sequence
}

// shortened returns the first size bytes of a part, or nil if nothing is left.
func shortened(p dragoman.Part, size int) []dragoman.Part {
	switch p := p.(type) {
	case *dragoman.Text:
		if s := head(p.Text, size); s != "" {
			return []dragoman.Part{&dragoman.Text{Text: s}}
		}
	case *dragoman.Reasoning:
		if s := head(p.Text, size); s != "" {
			return []dragoman.Part{&dragoman.Reasoning{Text: s}}
		}
	case *dragoman.ToolCall:
		if size <= len(p.Name) {
			return nil
		}
		c := *p
		c.Arguments = head(p.Arguments, size-len(p.Name))
		c.Status = codes.StatusIncomplete
		c.Problem = &dragoman.CallProblem{Code: codes.ProblemTruncated, Message: "the output limit cut the arguments", Offset: -1}
		return []dragoman.Part{&c}
	}
	return nil
}

// head returns the first bytes of a text, without splitting a character.
func head(s string, size int) string {
	if size >= len(s) {
		return s
	}
	for size > 0 && !utf8.RuneStart(s[size]) {
		size--
	}
	return s[:max(0, size)]
}

// emitter yields the events of a response.
type emitter struct {
	ctx     context.Context
	yield   func(dragoman.Event, error) bool
	pace    Pace
	origin  *dragoman.Origin
	stopped bool // the consumer stopped, or an error ended the stream
}

func (t *emitter) emit(ev dragoman.Event) {
	if t.stopped {
		return
	}
	if err := t.ctx.Err(); err != nil {
		t.fail(err)
		return
	}
	t.stopped = !t.yield(ev, nil)
}

func (t *emitter) fail(err error) {
	if !t.stopped {
		t.stopped = true
		t.yield(nil, err)
	}
}

func (t *emitter) emitResponse(a *response, head dragoman.Response, n int) {
	if err := t.pace.begin(t.ctx); err != nil {
		t.fail(err)
		return
	}
	head.Origin = t.origin
	t.emit(&dragoman.ResponseStart{Response: head})
	for choice := range n {
		for i, p := range a.parts {
			t.part(choice, i, p)
		}
	}
	usage := head.Usage.Merge(counted(a.parts, n)).Merge(a.usage)
	if a.truncated != nil {
		t.emit(&dragoman.StreamError{Err: a.truncated, Usage: usage})
		t.fail(a.truncated)
		return
	}
	stop := t.withNativeReason(a.stop)
	end := &dragoman.ResponseEnd{Stop: stop, Usage: usage}
	for range n - 1 {
		end.Stops = append(end.Stops, stop)
	}
	t.emit(end)
}

// withNativeReason returns a stop with its native reason, in a dialect whose older servers
// give none.
func (t *emitter) withNativeReason(stop dragoman.Stop) dragoman.Stop {
	if t.origin != nil && stop.Native == "" {
		stop.Native = dialects.WireOf(t.origin.Dialect).StopWords[stop.Reason]
	}
	return stop
}

// counted returns the usage of the parts.
func counted(parts []dragoman.Part, n int) dragoman.Usage {
	u := dragoman.Usage{Output: dragoman.Counted(serving.Tokens(serving.SizeOf(parts)) * int64(n))}
	for _, p := range parts {
		if r, ok := p.(*dragoman.Reasoning); ok {
			u.Reasoning = dragoman.Counted(u.Reasoning.Or(0) + serving.Tokens(serving.SizeOf([]dragoman.Part{r}))*int64(n))
		}
	}
	return u
}

// part emits one part: its start without text, its text in deltas, and the whole part.
func (t *emitter) part(choice, index int, p dragoman.Part) {
	start := &dragoman.PartStart{Choice: choice, Index: index, Part: skeleton(p)}
	if index == 0 {
		start.Header = &dragoman.Message{Role: dragoman.RoleAssistant, Origin: t.origin}
	}
	t.emit(start)
	delta := func(text string, summary int) {
		for piece := range fragments(text) {
			if err := t.pace.next(t.ctx); err != nil {
				t.fail(err)
				return
			}
			t.emit(&dragoman.PartDelta{Choice: choice, Index: index, Kind: p.Kind(), Text: piece, Summary: summary})
			if t.stopped {
				return
			}
		}
	}
	switch p := p.(type) {
	case *dragoman.Text:
		delta(p.Text, 0)
	case *dragoman.Refusal:
		delta(p.Text, 0)
	case *dragoman.ToolCall:
		delta(p.Arguments, 0)
	case *dragoman.Reasoning:
		delta(p.Text, 0)
		for i, s := range p.Summary {
			delta(s, i+1)
		}
	}
	t.emit(&dragoman.PartEnd{Choice: choice, Index: index, Part: p})
}

// skeleton returns a part without the text that its deltas hold.
func skeleton(p dragoman.Part) dragoman.Part {
	switch p := p.(type) {
	case *dragoman.Text:
		return &dragoman.Text{}
	case *dragoman.Refusal:
		return &dragoman.Refusal{}
	case *dragoman.Reasoning:
		return &dragoman.Reasoning{ID: p.ID}
	case *dragoman.ToolCall:
		return &dragoman.ToolCall{ID: p.ID, Name: p.Name, Namespace: p.Namespace, Payload: p.Payload}
	default:
		return p
	}
}

// fragments splits a text into tokens of four bytes, or a few more to keep characters whole.
func fragments(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for text != "" {
			n := min(serving.BytesPerToken, len(text))
			for n < len(text) && !utf8.RuneStart(text[n]) {
				n++
			}
			if !yield(text[:n]) {
				return
			}
			text = text[n:]
		}
	}
}
