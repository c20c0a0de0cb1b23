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

// maxHostileEvents bounds the answers that faults are put into: they are held whole,
// and taken apart.
const maxHostileEvents = 1 << 15

// hostileScript is the answer of a model, encoded, with a fault in it. The error
// is the model's own, or says that the answer is too long for a fault.
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
				Message: fmt.Sprintf("the answer is too long for a fault: it has more than %d events", maxHostileEvents),
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

// hostileChunks are the events of a stream, encoded, with a fault in them.
func hostileChunks(codec dialect.Codec, o dialect.EncodeOptions, events []dragoman.Event, f *Fault) ([][]byte, error) {
	if f.events != nil {
		events = f.events(events)
	}
	s, err := takeApart(codec, o, events)
	if err != nil {
		return nil, err
	}
	if f.frames != nil && len(s.frames) > 0 {
		f.frames(s)
	}
	return s.chunks(), nil
}

// hostile is a model in process whose answers cross a wire on which a fault waits.
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
		return nil, err // what was read before the mistake is not an answer
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
			yield(nil, serving.Refuse(err))
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

// exchange is what a client gets: a body to read, or the error that it decodes.
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

// played reads a script as a connection would.
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
