package gen

import (
	"errors"
	"fmt"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/turnrules"
	"pgregory.net/rapid"
)

// Usage generates counters, some of them unknown. Reasoning may exceed the output, because some
// servers count it separately. Unless the options are tidy, cached tokens may exceed the input.
func (o Options) Usage() *rapid.Generator[dragoman.Usage] {
	return rapid.Custom(func(t *rapid.T) dragoman.Usage {
		count := func(label string) dragoman.Count {
			if rapid.IntRange(0, 2).Draw(t, label+" unknown") == 0 {
				return dragoman.Count{}
			}
			return dragoman.Counted(rapid.Int64Range(0, 1<<40).Draw(t, label))
		}
		u := dragoman.Usage{Input: count("input"), CacheRead: count("read"), CacheWrite: count("write"), Output: count("output"), Reasoning: count("reasoning"), Extra: o.extra(t)}
		switch rapid.IntRange(0, 7).Draw(t, "shape") {
		case 6:
			return dragoman.Usage{Output: dragoman.Counted(u.Output.N)}
		case 7:
			u.Reasoning = dragoman.Counted(u.Output.N + 1)
		}
		if o.Tidy {
			u.CacheRead, u.CacheWrite = atMost(u.CacheRead, u.Input.N), atMost(u.CacheWrite, u.Input.N-u.CacheRead.N)
			u.Input.Known = u.Input.Known || u.CacheRead.Known || u.CacheWrite.Known
		}
		return u
	})
}

// atMost limits a count to at most n; an unknown count stays unknown.
func atMost(c dragoman.Count, n int64) dragoman.Count {
	c.N = min(c.N, max(n, 0))
	return c
}

// APIError generates a provider's error.
func (o Options) APIError() *rapid.Generator[*dragoman.APIError] {
	return rapid.Custom(func(t *rapid.T) *dragoman.APIError {
		e := &dragoman.APIError{
			Class:   rapid.SampledFrom([]dragoman.ErrorClass{dragoman.ErrorRateLimit, dragoman.ErrorServer, dragoman.ErrorBadRequest, dragoman.ErrorUnknown}).Draw(t, "class"),
			Status:  rapid.SampledFrom([]int{0, 400, 429, 500}).Draw(t, "status"),
			Message: text(t, o, "message"), Type: optional(t, "type", "overloaded_error"), Code: optional(t, "code", "slow_down"),
			Param: optional(t, "param", "messages[0]"), RequestID: optional(t, "request id", "req_1"), Native: o.nativeObject(t),
			RetryAfter: rapid.SampledFrom([]time.Duration{0, 0, time.Second, 1500 * time.Millisecond, 1}).Draw(t, "retry after"),
		}
		switch rapid.IntRange(0, 4).Draw(t, "cause") {
		case 0:
			e.Err = errors.New("connection reset")
		case 1:
			e.Err = fmt.Errorf("reading: %w", dragoman.ErrIncompleteStream)
		}
		return e
	})
}

func (o Options) stop(t *rapid.T, output []dragoman.Message) dragoman.Stop {
	calls := 0
	for i := range output {
		for _, c := range output[i].ToolCalls() {
			if !c.Hosted && c.Problem == nil {
				calls++
			}
		}
	}
	word := rapid.SampledFrom(stopReasons).Draw(t, "word")
	s := dragoman.Stop{Reason: turnrules.StopReason(word, calls, true), Native: optional(t, "native word", "end_turn"), Details: o.nativeObject(t)}
	// Some servers report a stop sequence without naming it.
	if s.Reason == dragoman.StopSequence && rapid.IntRange(0, 2).Draw(t, "sequence unknown") > 0 {
		s.Sequence = o.words().Draw(t, "sequence")
	}
	return s
}

// stopReasons lists all stop reasons.
var stopReasons = []dragoman.StopReason{
	dragoman.StopNone, dragoman.StopEnd, dragoman.StopToolCalls, dragoman.StopLength, dragoman.StopSequence, dragoman.StopContentFilter, dragoman.StopRefusal,
	dragoman.StopPause, dragoman.StopMalformedCall, dragoman.StopError, dragoman.StopCanceled, dragoman.StopCompaction, dragoman.StopUnknown,
}

// Response generates a response.
func (o Options) Response() *rapid.Generator[*dragoman.Response] {
	return rapid.Custom(func(t *rapid.T) *dragoman.Response {
		tools := o.Tools().Draw(t, "tools")
		output := func() []dragoman.Message {
			ms, _ := o.turn(t, tools, map[string]bool{})
			return ms
		}
		r := &dragoman.Response{
			ID: "resp_1", Model: rapid.SampledFrom([]string{"", "m-1"}).Draw(t, "model"), Output: output(),
			Usage: o.Usage().Draw(t, "usage"), ServiceTier: optional(t, "tier", "default"), Origin: o.origin(t), Extra: o.extra(t),
		}
		r.Stop = o.stop(t, r.Output)
		if rapid.Bool().Draw(t, "dated") {
			sec := rapid.Int64Range(0, 4e9).Draw(t, "seconds")
			if !o.Tidy {
				sec = rapid.OneOf(rapid.Just(sec), rapid.SampledFrom([]int64{-1, 1 << 40, 1<<63 - 1})).Draw(t, "odd seconds")
			}
			r.Created = time.Unix(sec, 0).UTC()
		}
		for i := range rapid.SampledFrom([]int{0, 0, 0, 1, 2}).Draw(t, "alternatives") {
			out := output()
			r.Alternatives = append(r.Alternatives, dragoman.Candidate{Index: i + 1, Output: out, Stop: o.stop(t, out), Extra: o.extra(t)})
		}
		if !o.Tidy && seldom(t, "failed") {
			r.Error = o.APIError().Draw(t, "error")
		}
		r.Native = o.sidecar(t, r.Fingerprint)
		return r
	})
}

// Events generates the events of one stream, in the order that decoders guarantee. Now and
// then the stream breaks off, with or without an error.
func (o Options) Events() *rapid.Generator[[]dragoman.Event] {
	return rapid.Custom(func(t *rapid.T) []dragoman.Event {
		evs := o.Stream(t, o.Response().Draw(t, "response"))
		if o.Tidy || !seldom(t, "breaks") {
			return evs
		}
		evs = evs[:rapid.IntRange(1, len(evs)-1).Draw(t, "breaks at")]
		if rapid.Bool().Draw(t, "with an error") {
			evs = append(evs, &dragoman.StreamError{Err: o.APIError().Draw(t, "error")})
		}
		return evs
	})
}

// Stream generates events that collect to a response. Choices are interleaved, and text
// comes in fragments. The events do not contain the error and native form of the
// response, or the extras of its candidates.
func (o Options) Stream(t *rapid.T, resp *dragoman.Response) []dragoman.Event {
	first := dragoman.Response{ID: resp.ID, Model: resp.Model, Created: resp.Created, Origin: resp.Origin}
	events := []dragoman.Event{&dragoman.ResponseStart{Response: first}}
	choices := [][]dragoman.Event{o.choice(t, 0, resp.Output)}
	end := &dragoman.ResponseEnd{Stop: resp.Stop, Usage: resp.Usage, Response: dragoman.Response{ServiceTier: resp.ServiceTier, Extra: resp.Extra}}
	for _, c := range resp.Alternatives {
		choices = append(choices, o.choice(t, c.Index, c.Output))
		end.Stops = append(end.Stops, c.Stop)
	}
	for len(choices) > 0 {
		i := rapid.IntRange(0, len(choices)-1).Draw(t, "next choice")
		if len(choices[i]) == 0 {
			choices = append(choices[:i], choices[i+1:]...)
			continue
		}
		if !o.Plain && seldom(t, "chunk") {
			c := &dragoman.Chunk{Dialect: o.dialect(t), Raw: []byte("data: {}\n\n")}
			if seldom(t, "loss") {
				c.Loss = &dragoman.Loss{Kind: dragoman.Dropped, Severity: dragoman.Warn, Detail: "an event"}
			}
			events = append(events, c)
		}
		events = append(events, choices[i][0])
		choices[i] = choices[i][1:]
	}
	return append(events, end)
}

func (o Options) choice(t *rapid.T, choice int, output []dragoman.Message) []dragoman.Event {
	var events []dragoman.Event
	index := 0
	for mi, m := range output {
		for pi, p := range m.Parts {
			start := &dragoman.PartStart{Choice: choice, Index: index, Message: mi, Part: skeleton(p)}
			if pi == 0 {
				header := m
				header.Parts = nil
				start.Header = &header
			}
			events = append(events, start)
			streamed := []rune(grown(p))
			for len(streamed) > 0 && rapid.Bool().Draw(t, "more") {
				n := rapid.IntRange(1, len(streamed)).Draw(t, "fragment")
				events = append(events, &dragoman.PartDelta{Choice: choice, Index: index, Kind: p.Kind(), Text: string(streamed[:n])})
				streamed = streamed[n:]
			}
			if len(streamed) > 0 {
				events = append(events, &dragoman.PartDelta{Choice: choice, Index: index, Kind: p.Kind(), Text: string(streamed)})
			}
			if r, ok := p.(*dragoman.Reasoning); ok {
				for i, s := range r.Summary {
					if s != "" {
						events = append(events, &dragoman.PartDelta{Choice: choice, Index: index, Kind: p.Kind(), Text: s, Summary: i + 1})
					}
				}
			}
			events = append(events, &dragoman.PartEnd{Choice: choice, Index: index, Part: p})
			index++
		}
	}
	return events
}

// skeleton returns the part that a PartStart carries.
func skeleton(p dragoman.Part) dragoman.Part {
	switch p := p.(type) {
	case *dragoman.Text:
		return &dragoman.Text{}
	case *dragoman.Reasoning:
		return &dragoman.Reasoning{ID: p.ID}
	case *dragoman.ToolCall:
		return &dragoman.ToolCall{ID: p.ID, Synthetic: p.Synthetic, ItemID: p.ItemID, Name: p.Name, Namespace: p.Namespace, Payload: p.Payload, Hosted: p.Hosted}
	case *dragoman.Refusal:
		return &dragoman.Refusal{}
	default:
		return p
	}
}

// grown returns the text that the deltas carry.
func grown(p dragoman.Part) string {
	switch p := p.(type) {
	case *dragoman.Text:
		return p.Text
	case *dragoman.Reasoning:
		return p.Text
	case *dragoman.ToolCall:
		return p.Arguments
	case *dragoman.Refusal:
		return p.Text
	default:
		return ""
	}
}
