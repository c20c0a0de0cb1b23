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

// clientStream writes the events of a response in the client's dialect.
//
// It holds no events back to see whether the response begins: the provider does. The bytes
// of events that come together wait in buf, and are sent together.
type clientStream struct {
	*exchange
	enc dialect.StreamEncoder
	// sum collects the response if it is stored; nil means that it is not.
	sum       *dragoman.Collector
	summaries summaries
	buf       []byte
	// watch collects the items of a Responses stream, if watches is set. learned says that
	// they were stored.
	watch            itemWatch
	watches, learned bool
	// joins says that events which come together are sent together: the model calls waiting
	// before it waits.
	joins bool
	// begun says that an event of the response has come, headed that the status and headers
	// were sent, ended that the last event has come.
	begun, headed, ended bool
	// calls counts the complete calls; cut says that one is incomplete. open are the ends of
	// calls that are complete or not depending on how the stream ends.
	calls int
	cut   bool
	open  []*dragoman.PartEnd
	// searching are the parts that are calls of the client's search for tools.
	searching []place
}

func (x *exchange) newClientStream() *clientStream {
	return &clientStream{exchange: x, enc: x.codec.NewStreamEncoder(x.encoding()), watches: x.stateful()}
}

// add writes an event of the model, unless it is the end of a call that depends on how the
// stream ends.
func (s *clientStream) add(ctx context.Context, ev dragoman.Event) error {
	switch e := ev.(type) {
	case *dragoman.StreamError:
		return s.failed(ctx, e)
	case *dragoman.PartEnd:
		if s.isDoubtful(e) {
			s.open = append(s.open, e)
			return nil
		}
	}
	if len(s.open) > 0 {
		if err := s.writeOpen(ctx); err != nil {
			return err
		}
	}
	return s.write(ctx, ev)
}

// write notes usage, losses and calls, encodes the event, and sends it unless more may come
// with it.
func (s *clientStream) write(ctx context.Context, ev dragoman.Event) (err error) {
	if s.sum != nil {
		s.sum.Add(ev)
	}
	switch e := ev.(type) {
	case *dragoman.Chunk: // an unknown event may come before the response
	case *dragoman.ResponseStart:
		s.begun = true
		s.own(ctx, e.Response.ID)
		s.entry.losses = append(s.entry.losses, e.Response.Losses.Losses...)
		s.entry.usage = s.entry.usage.Merge(e.Response.Usage)
		ev = &dragoman.ResponseStart{Response: s.told(e.Response, false)}
	case *dragoman.PartDelta:
		s.begun = true
		if e.Text != "" {
			s.entry.pieces++
		}
	case *dragoman.PartEnd:
		s.begun = true
		if call, ok := e.Part.(*dragoman.ToolCall); ok {
			s.calls++
			s.cut = s.cut || call.Problem != nil
		}
	case *dragoman.ResponseEnd:
		s.begun, s.ended = true, true
		end := *e
		end.Response = s.told(e.Response, true)
		s.entry.usage = s.entry.usage.Merge(e.Usage)
		s.entry.losses = newLosses(s.entry.losses, e.Response.Losses.Losses)
		ev = &end
	default:
		s.begun = true
	}
	if s.searches {
		if ev = s.tellSearch(ev); ev == nil {
			return nil
		}
	}
	if s.summaries.on {
		ev = s.summaries.tell(ev)
	}
	start := len(s.buf)
	if s.buf, err = s.enc.Encode(s.buf, ev); err != nil {
		return err
	}
	if s.watches {
		s.watch.see(s.buf[start:])
	}
	if s.ended {
		s.store(ctx, start)
	}
	if s.watch.final != nil && !s.learned {
		s.learned = true
		s.learnItems(ctx, &s.watch)
	}
	if !s.begun || s.joins && len(s.buf) < maxTogether {
		return nil
	}
	return s.flush()
}

// store stores the response before its end is sent, as the client will see it: clients may
// continue with it at once, and some disconnect. start is where the end is in the buffer.
func (s *clientStream) store(ctx context.Context, start int) {
	if s.sum != nil {
		if resp, err := s.sum.Response(); err == nil {
			s.keep(ctx, resp, s.watch.final)
		} else if s.stores() {
			s.unstored(err)
		}
		s.sum = nil
	}
	if s.unkept { // the response says so
		s.buf = append(s.buf[:start:start], notStored(s.buf[start:])...)
	}
}

// maxTogether bounds what is sent together, with the event that reaches it.
const maxTogether = 16 << 10

// waiting sends the buffer: the next event may take long.
func (s *clientStream) waiting() {
	if s.begun {
		_ = s.flush() // the sink keeps the error, and returns it with the next event
	}
}

// sendHeader sends the status and the headers, once.
func (s *clientStream) sendHeader() {
	if s.headed {
		return
	}
	s.begun, s.headed = true, true
	heading := s.heading()
	s.out.begin(http.StatusOK, func(h http.Header) {
		heading(h)
		s.upstreamHeader(h, "")
	})
}

// flush sends the buffer.
func (s *clientStream) flush() error {
	if len(s.buf) > 0 {
		s.sendHeader()
	}
	if s.ended { // no heartbeat follows it
		s.out.hush()
	}
	if s.namesConversation() { // the events lack the conversation
		s.buf = s.eventsInConversation(s.buf)
	}
	err := s.out.send(s.buf)
	s.buf = s.buf[:0]
	s.entry.whole = s.entry.whole || s.ended && err == nil
	return err
}

// isDoubtful reports whether a call would be complete if its stream had not just ended, on a
// route where that may be as good as an end.
func (s *clientStream) isDoubtful(e *dragoman.PartEnd) bool {
	c, ok := e.Part.(*dragoman.ToolCall)
	return ok && s.route.Unfinished == unfinishedEnd && c.Problem != nil && (c.Problem.Code == codes.ProblemTruncated || c.Problem.Code == codes.ProblemStopped)
}

// writeOpen writes the ends of calls that were held back.
func (s *clientStream) writeOpen(ctx context.Context) error {
	open := s.open
	s.open = nil
	for _, e := range open {
		if err := s.write(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// cutOff reports whether one of the calls that were held back is not complete.
func (s *clientStream) cutOff() bool {
	return slices.ContainsFunc(s.open, func(e *dragoman.PartEnd) bool {
		c, _ := e.Part.(*dragoman.ToolCall)
		return isTruncated(c) && (!strings.HasPrefix(c.Arguments, "{") || dragoman.CheckArguments(c.Arguments) != nil)
	})
}

// isTruncated reports whether nothing says that a call is complete.
func isTruncated(c *dragoman.ToolCall) bool { return c.Problem.Code == codes.ProblemTruncated }

// completeOpen writes the calls that were held back as complete ones.
func (s *clientStream) completeOpen(ctx context.Context) (err error) {
	open := s.open
	s.open = nil
	for _, e := range open {
		c, _ := e.Part.(*dragoman.ToolCall)
		call, end := *c, *e
		call.Problem, end.Part = nil, &call
		err = errors.Join(err, s.write(ctx, &end))
	}
	return err
}

// broken ends a stream that broke after its first event.
func (s *clientStream) broken(ctx context.Context, err error) error {
	if s.isUnfinished(err) && !s.cutOff() {
		return s.finish(ctx)
	}
	if !s.entry.told {
		err = errors.Join(err, s.writeError(ctx, err, s.entry.usage))
	}
	return errors.Join(err, s.end())
}

// failed writes the error of the upstream, unless the response has not begun. If the
// upstream gives no reason, the error of the stream follows.
func (s *clientStream) failed(ctx context.Context, e *dragoman.StreamError) error {
	if !s.begun {
		return nil
	}
	s.entry.usage = s.entry.usage.Merge(e.Usage)
	if e.Err == nil || errors.Is(e.Err, dragoman.ErrIncompleteStream) {
		return nil
	}
	return s.writeError(ctx, e.Err, e.Usage)
}

// writeError writes an error event after the calls that were held back.
func (s *clientStream) writeError(ctx context.Context, err error, usage dragoman.Usage) error {
	s.entry.told = true
	open := s.writeOpen(ctx)
	s.sum = nil // a response with an error is not stored
	return errors.Join(open, s.write(ctx, &dragoman.StreamError{Err: s.apiError(err), Usage: usage}))
}

// isUnfinished reports whether a stream only lacks its end, and gets one because the route
// says so (quirks C13, J11). One whose connection broke lacks more, as does one with a call
// that is cut off.
func (s *clientStream) isUnfinished(err error) bool {
	var transport *provider.TransportError
	return s.route.Unfinished == unfinishedEnd && !s.cut && errors.Is(err, dragoman.ErrIncompleteStream) && !errors.As(err, &transport)
}

// finish writes the end that a stream lacks.
func (s *clientStream) finish(ctx context.Context) error {
	s.entry.losses = append(s.entry.losses, dragoman.Loss{
		Kind: dragoman.Synthesized, Severity: dragoman.Warn, Path: "/stop", Detail: "the stream ended before its final event",
	})
	err := s.completeOpen(ctx)
	stop := dragoman.Stop{Reason: dragoman.StopEnd}
	if s.calls > 0 {
		stop.Reason = dragoman.StopToolCalls
	}
	stop.Native = wire.Of(s.codec).StopWords[stop.Reason]
	return errors.Join(err, s.write(ctx, &dragoman.ResponseEnd{Stop: stop, Usage: s.entry.usage}), s.end())
}

// end writes what the dialect demands at the end of a stream.
func (s *clientStream) end() (err error) {
	s.buf, err = s.enc.Close(s.buf)
	s.entry.losses = append(s.entry.losses, s.lost(s.enc.Report().Losses)...)
	if err != nil {
		return err
	}
	s.sendHeader()
	s.out.hush()
	if err := s.flush(); !s.entry.whole {
		return err
	}
	return nil // some clients disconnect after the end
}
