package gateway

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/wire"
	"github.com/dragoman-go/dragoman/provider"
)

// clientStream writes the events of a response in the client's dialect. It holds back no events to
// wait for content, because the provider does. Events that arrive together are collected in buf
// and sent together.
type clientStream struct {
	*exchange
	enc dialect.StreamEncoder
	// collector collects the response if it is stored; nil means that it is not.
	collector *dragoman.Collector
	summaries summaries
	buf       []byte
	// items collects the items of a Responses stream, if watchesItems is set. itemsRecorded
	// reports that their owner is recorded.
	items                       itemCollector
	watchesItems, itemsRecorded bool
	// batches reports that events which arrive together are sent together: the model calls
	// flushBeforeWait before it waits.
	batches bool
	// started reports that an event of the response has arrived, headerSent that the status and
	// headers were sent, and ended that the last event has arrived.
	started, headerSent, ended bool
	// callCount counts the calls, and hasCutCall reports that one of them is incomplete. heldEnds
	// are the ends of calls that are complete or not depending on how the stream ends.
	callCount  int
	hasCutCall bool
	heldEnds   []*dragoman.PartEnd
	// searchParts are the parts that are calls of the client's tool search.
	searchParts []partPosition
}

func (x *exchange) newClientStream() *clientStream {
	return &clientStream{exchange: x, enc: x.codec.NewStreamEncoder(x.encodeOptions()), watchesItems: x.stateful()}
}

// add writes an event of the model, unless it is the end of a call that depends on how the
// stream ends.
func (s *clientStream) add(ctx context.Context, ev dragoman.Event) error {
	switch e := ev.(type) {
	case *dragoman.StreamError:
		return s.handleUpstreamError(ctx, e)
	case *dragoman.PartEnd:
		if s.dependsOnEnd(e) {
			s.heldEnds = append(s.heldEnds, e)
			return nil
		}
	}
	if len(s.heldEnds) > 0 {
		if err := s.writeHeldEnds(ctx); err != nil {
			return err
		}
	}
	return s.write(ctx, ev)
}

// write records usage, losses and calls, encodes the event, and sends it unless more events may
// arrive with it.
func (s *clientStream) write(ctx context.Context, ev dragoman.Event) (err error) {
	if s.collector != nil {
		s.collector.Add(ev)
	}
	switch e := ev.(type) {
	case *dragoman.Chunk: // an unknown event may come before the response
	case *dragoman.ResponseStart:
		s.started = true
		s.recordResponseOwner(ctx, e.Response.ID)
		s.entry.losses = append(s.entry.losses, e.Response.Losses.Losses...)
		s.entry.usage = s.entry.usage.Merge(e.Response.Usage)
		ev = &dragoman.ResponseStart{Response: s.clientResponse(e.Response, false)}
	case *dragoman.PartDelta:
		s.started = true
		if e.Text != "" {
			s.entry.events++
		}
	case *dragoman.PartEnd:
		s.started = true
		if call, ok := e.Part.(*dragoman.ToolCall); ok {
			s.callCount++
			s.hasCutCall = s.hasCutCall || call.Problem != nil
		}
	case *dragoman.ResponseEnd:
		s.started, s.ended = true, true
		end := *e
		end.Response = s.clientResponse(e.Response, true)
		s.entry.usage = s.entry.usage.Merge(e.Usage)
		s.entry.losses = appendNewLosses(s.entry.losses, e.Response.Losses.Losses)
		ev = &end
	default:
		s.started = true
	}
	if s.hasToolSearch {
		if ev = s.restoreSearch(ev); ev == nil {
			return nil
		}
	}
	if s.summaries.on {
		ev = s.summaries.convert(ev)
	}
	start := len(s.buf)
	if s.buf, err = s.enc.Encode(s.buf, ev); err != nil {
		return err
	}
	if s.watchesItems {
		s.items.read(s.buf[start:])
	}
	if s.ended {
		s.store(ctx, start)
	}
	if s.items.final != nil && !s.itemsRecorded {
		s.itemsRecorded = true
		s.recordItemOwners(ctx, &s.items)
	}
	if !s.started || s.batches && len(s.buf) < maxBatch {
		return nil
	}
	return s.flush()
}

// store stores the response before its end is sent, as the client will see it: clients may
// continue with it at once, and some disconnect. start is where the end is in the buffer.
func (s *clientStream) store(ctx context.Context, start int) {
	if s.collector != nil {
		if resp, err := s.collector.Response(); err == nil {
			s.storeState(ctx, resp, s.items.final)
		} else if s.storesResponse() {
			s.noteNotStored(err)
		}
		s.collector = nil
	}
	if s.notStored { // the end reports it
		s.buf = append(s.buf[:start:start], markNotStored(s.buf[start:])...)
	}
}

// maxBatch is the number of buffered bytes after which they are sent.
const maxBatch = 16 << 10

// flushBeforeWait sends the buffer: the next event may take long.
func (s *clientStream) flushBeforeWait() {
	if s.started {
		_ = s.flush() // the clientWriter keeps the error, and returns it with the next event
	}
}

// sendHeader sends the status and the headers, once.
func (s *clientStream) sendHeader() {
	if s.headerSent {
		return
	}
	s.started, s.headerSent = true, true
	heading := s.streamHeader()
	s.out.begin(http.StatusOK, func(h http.Header) {
		heading(h)
		s.setUpstreamHeader(h, "")
	})
}

// flush sends the buffer.
func (s *clientStream) flush() error {
	if len(s.buf) > 0 {
		s.sendHeader()
	}
	if s.ended { // no heartbeat follows it
		s.out.stopHeartbeat()
	}
	if s.addsConversation() { // the events lack the conversation
		s.buf = s.eventsWithConversation(s.buf)
	}
	err := s.out.send(s.buf)
	s.buf = s.buf[:0]
	s.entry.complete = s.entry.complete || s.ended && err == nil
	return err
}

// dependsOnEnd reports whether a call is complete if the end of the stream counts as an end of the
// response, which the route decides.
func (s *clientStream) dependsOnEnd(e *dragoman.PartEnd) bool {
	c, ok := e.Part.(*dragoman.ToolCall)
	return ok && s.route.Unfinished == unfinishedEnd && c.Problem != nil && (c.Problem.Code == codes.ProblemTruncated || c.Problem.Code == codes.ProblemStopped)
}

// writeHeldEnds writes the held ends of calls.
func (s *clientStream) writeHeldEnds(ctx context.Context) error {
	open := s.heldEnds
	s.heldEnds = nil
	for _, e := range open {
		if err := s.write(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// hasTruncatedCall reports whether one of the held calls is incomplete.
func (s *clientStream) hasTruncatedCall() bool {
	return slices.ContainsFunc(s.heldEnds, func(e *dragoman.PartEnd) bool {
		c, _ := e.Part.(*dragoman.ToolCall)
		return isTruncated(c) && (!strings.HasPrefix(c.Arguments, "{") || dragoman.CheckArguments(c.Arguments) != nil)
	})
}

// isTruncated reports whether the stream does not show that a call is complete.
func isTruncated(c *dragoman.ToolCall) bool { return c.Problem.Code == codes.ProblemTruncated }

// completeHeldEnds writes the held calls as complete ones.
func (s *clientStream) completeHeldEnds(ctx context.Context) (err error) {
	open := s.heldEnds
	s.heldEnds = nil
	for _, e := range open {
		c, _ := e.Part.(*dragoman.ToolCall)
		call, end := *c, *e
		call.Problem, end.Part = nil, &call
		err = errors.Join(err, s.write(ctx, &end))
	}
	return err
}

// handleBreak ends a stream that broke after its first event: with an error, or with an end if
// only that is missing.
func (s *clientStream) handleBreak(ctx context.Context, err error) error {
	if s.lacksOnlyEnd(err) && !s.hasTruncatedCall() {
		return s.finish(ctx)
	}
	if !s.entry.errorSent {
		err = errors.Join(err, s.writeError(ctx, err, s.entry.usage))
	}
	return errors.Join(err, s.end())
}

// handleUpstreamError writes the error of the upstream, unless the response has not begun. If the
// upstream gives no reason, the error of the stream follows.
func (s *clientStream) handleUpstreamError(ctx context.Context, e *dragoman.StreamError) error {
	if !s.started {
		return nil
	}
	s.entry.usage = s.entry.usage.Merge(e.Usage)
	if e.Err == nil || errors.Is(e.Err, dragoman.ErrIncompleteStream) {
		return nil
	}
	return s.writeError(ctx, e.Err, e.Usage)
}

// writeError writes the held calls and an error event.
func (s *clientStream) writeError(ctx context.Context, err error, usage dragoman.Usage) error {
	s.entry.errorSent = true
	open := s.writeHeldEnds(ctx)
	s.collector = nil // a response with an error is not stored
	return errors.Join(open, s.write(ctx, &dragoman.StreamError{Err: s.apiError(err), Usage: usage}))
}

// lacksOnlyEnd reports whether a stream lacks only its end and the route completes such streams
// (quirks C13, J11). A stream whose connection broke, or with a truncated call, lacks more.
func (s *clientStream) lacksOnlyEnd(err error) bool {
	var transport *provider.TransportError
	return s.route.Unfinished == unfinishedEnd && !s.hasCutCall && errors.Is(err, dragoman.ErrIncompleteStream) && !errors.As(err, &transport)
}

// finish writes the end that a stream lacks.
func (s *clientStream) finish(ctx context.Context) error {
	s.entry.losses = append(s.entry.losses, dragoman.Loss{
		Kind: dragoman.Synthesized, Severity: dragoman.Warn, Path: "/stop", Detail: "the stream ended before its final event",
	})
	err := s.completeHeldEnds(ctx)
	stop := dragoman.Stop{Reason: dragoman.StopEnd}
	if s.callCount > 0 {
		stop.Reason = dragoman.StopToolCalls
	}
	stop.Native = wire.Of(s.codec).StopWords[stop.Reason]
	return errors.Join(err, s.write(ctx, &dragoman.ResponseEnd{Stop: stop, Usage: s.entry.usage}), s.end())
}

// end writes what the dialect demands at the end of a stream.
func (s *clientStream) end() (err error) {
	s.buf, err = s.enc.Close(s.buf)
	s.entry.losses = append(s.entry.losses, s.realLosses(s.enc.Report().Losses)...)
	if err != nil {
		return err
	}
	s.sendHeader()
	s.out.stopHeartbeat()
	if err := s.flush(); !s.entry.complete {
		return err
	}
	return nil // some clients disconnect after the end
}
