package sim

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/serving"
)

// maxHostileEvents limits the length of responses with faults, because they are buffered.
const maxHostileEvents = 1 << 15

// hostileScript returns the encoded response of a model with a fault in it. The error is the
// error of the model, or reports that the response is too long for a fault.
func hostileScript(ctx context.Context, codec dialect.Codec, o dialect.EncodeOptions, model dragoman.Model, req *dragoman.Request, f *Fault) (script, error) {
	var events []dragoman.Event
	var c dragoman.Collector
	for ev, err := range model.Stream(ctx, req) {
		if err != nil {
			return script{}, err
		}
		if len(events) == maxHostileEvents {
			return script{}, &dragoman.APIError{
				Class: dragoman.ErrorTooLarge, Err: dragoman.ErrTooLarge,
				Message: fmt.Sprintf("the response is too long for a fault: it has more than %d events", maxHostileEvents),
			}
		}
		events = append(events, ev)
		c.Add(ev)
	}
	resp, err := c.Response()
	if err != nil {
		return script{}, err
	}
	s := script{status: http.StatusOK, header: http.Header{}}
	if req.Stream {
		serving.SetHeader(s.header, codec, serving.StreamType(codec), requestID(resp.ID))
		s.chunks, err = hostileChunks(codec, o, events, f)
	} else {
		var enc dialect.Encoded
		serving.SetHeader(s.header, codec, "application/json", requestID(resp.ID))
		enc, err = codec.EncodeResponse(resp, o)
		s.chunks = [][]byte{enc.Body}
	}
	if err == nil && f.script != nil {
		f.script(&s, codec)
	}
	return s, err
}

// hostileChunks encodes the events of a stream with a fault in them.
func hostileChunks(codec dialect.Codec, o dialect.EncodeOptions, events []dragoman.Event, f *Fault) ([][]byte, error) {
	if f.events != nil {
		events = f.events(events)
	}
	s, err := splitStream(codec, o, events)
	if err != nil {
		return nil, err
	}
	if f.frames != nil && len(s.frames) > 0 {
		f.frames(s)
	}
	return s.chunks(), nil
}

// hostile is a model in process whose responses are encoded with a fault and decoded again.
type hostile struct {
	Config
	dragoman.Model
	spec  modelSpec
	fault *Fault
	codec dialect.Codec
}

// String returns the model's name, without its settings.
func (h hostile) String() string { return prefix + h.spec.base }

// Generate implements [dragoman.Model].
func (h hostile) Generate(ctx context.Context, req *dragoman.Request) (*dragoman.Response, error) {
	if h.fault.StreamOnly || req == nil {
		return dragoman.Collect(h.Stream(ctx, req))
	}
	whole := *req
	whole.Stream = false
	body, err := h.exchange(ctx, &whole)
	if err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(body)
	if err != nil {
		return nil, err
	}
	resp, _, err := h.codec.DecodeResponse(raw, dialect.DecodeOptions{})
	if err != nil {
		return nil, err // a response with an error is not a response
	}
	if resp.Error != nil {
		return resp, resp.Error
	}
	return resp, nil
}

// Stream implements [dragoman.Model].
func (h hostile) Stream(ctx context.Context, req *dragoman.Request) iter.Seq2[dragoman.Event, error] {
	return func(yield func(dragoman.Event, error) bool) {
		if err := req.Validate(); err != nil {
			yield(nil, serving.AsRequestError(err))
			return
		}
		streamed := *req
		streamed.Stream, streamed.StreamUsage = true, true
		body, err := h.exchange(ctx, &streamed)
		if err != nil {
			yield(nil, err)
			return
		}
		for ev, err := range dialect.Events(h.codec.NewStreamDecoder(dialect.DecodeOptions{}), body) {
			if !yield(ev, err) {
				return
			}
		}
	}
}

// exchange returns what a client gets: a body to read, or the error that it decodes.
func (h hostile) exchange(ctx context.Context, req *dragoman.Request) (io.Reader, error) {
	s, err := hostileScript(ctx, h.codec, h.options(h.codec, req, h.spec), h.Model, req, h.fault)
	if err != nil {
		return nil, err
	}
	if err := h.Pace.wait(ctx, s.first); err != nil {
		return nil, err
	}
	if s.status != http.StatusOK {
		return nil, h.codec.DecodeError(s.status, s.header, bytes.Join(s.chunks, nil))
	}
	return &played{ctx: ctx, script: s, pace: h.Pace}, nil
}

// played is a reader of a script that behaves like a connection.
type played struct {
	ctx    context.Context
	script script
	pace   Pace
}

func (p *played) Read(b []byte) (int, error) {
	if err := p.ctx.Err(); err != nil {
		return 0, err
	}
	if len(p.script.chunks) > 0 {
		n := copy(b, p.script.chunks[0])
		if p.script.chunks[0] = p.script.chunks[0][n:]; len(p.script.chunks[0]) == 0 {
			p.script.chunks = p.script.chunks[1:]
		}
		return n, nil
	}
	if p.script.end == endStall {
		if err := p.pace.wait(p.ctx, stallTime); err != nil {
			return 0, err
		}
	}
	if p.script.end != endWell {
		return 0, io.ErrUnexpectedEOF
	}
	return 0, io.EOF
}
