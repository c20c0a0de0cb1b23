package codectest

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
)

// DecodeStream feeds a stream in chunks, closes the decoder and returns its events, and the
// first error of either. It overwrites each chunk after feeding it and copies native
// chunks: neither side may keep memory of the other.
func DecodeStream(c dialect.Codec, o dialect.DecodeOptions, pieces ...[]byte) ([]dragoman.Event, dragoman.Report, error) {
	d := c.NewStreamDecoder(o)
	var evs []dragoman.Event
	emit := func(ev dragoman.Event) error {
		if c, ok := ev.(*dragoman.Chunk); ok {
			ev = &dragoman.Chunk{Dialect: c.Dialect, Raw: bytes.Clone(c.Raw), Opaque: c.Opaque, Loss: c.Loss}
		}
		evs = append(evs, ev)
		return nil
	}
	var failed error
	for _, p := range pieces {
		fed := bytes.Clone(p)
		if failed = d.Feed(fed, emit); failed != nil {
			break
		}
		for i := range fed {
			fed[i] = 'x'
		}
	}
	if err := d.Close(emit); failed == nil {
		failed = err
	}
	return evs, d.Report(), failed
}

// Pieces splits a stream into chunks of n bytes.
func Pieces(stream []byte, n int) [][]byte {
	return slices.Collect(slices.Chunk(stream, max(n, 1)))
}

// Cut splits a stream into chunks of the given sizes and the rest.
func Cut(stream []byte, sizes ...int) [][]byte {
	var pieces [][]byte
	for _, n := range append(slices.Clone(sizes), len(stream)) {
		n = min(n, len(stream))
		pieces = append(pieces, stream[:n])
		stream = stream[n:]
	}
	return pieces
}

// Bare returns the events without native chunks, as for a stream of another dialect.
func Bare(evs []dragoman.Event) []dragoman.Event {
	return slices.DeleteFunc(slices.Clone(evs), func(ev dragoman.Event) bool { return ev.Type() == "chunk" })
}

// EventsOf returns the events of a stream for a whole response.
func EventsOf(resp *dragoman.Response) []dragoman.Event {
	evs := []dragoman.Event{&dragoman.ResponseStart{Response: *resp}}
	n := 0
	for i := range resp.Output {
		for _, p := range resp.Output[i].Parts {
			evs = append(evs, &dragoman.PartStart{Index: n, Part: Skeleton(p)}, &dragoman.PartEnd{Index: n, Part: p})
			n++
		}
	}
	return append(evs, &dragoman.ResponseEnd{Stop: resp.Stop, Usage: resp.Usage})
}

// Skeleton returns the part that a decoder emits at the start of p.
func Skeleton(p dragoman.Part) dragoman.Part {
	switch p := p.(type) {
	case *dragoman.Text:
		return &dragoman.Text{}
	case *dragoman.Refusal:
		return &dragoman.Refusal{}
	case *dragoman.Reasoning:
		return &dragoman.Reasoning{Redacted: p.Redacted}
	case *dragoman.ToolCall:
		return &dragoman.ToolCall{ID: p.ID, Name: p.Name, Namespace: p.Namespace, Payload: p.Payload, Hosted: p.Hosted}
	default:
		return p
	}
}

// broken reports whether an error means that the stream broke off, which its events show
// too.
func broken(err error) bool { return errors.Is(err, dragoman.ErrIncompleteStream) }

// EncodeStream encodes events and closes the stream.
func EncodeStream(t testing.TB, c dialect.Codec, o dialect.EncodeOptions, evs []dragoman.Event) ([]byte, dragoman.Report) {
	t.Helper()
	e := c.NewStreamEncoder(o)
	var out []byte
	var err error
	for _, ev := range evs {
		if out, err = e.Encode(out, ev); err != nil {
			t.Fatalf("encode %s: %v", ev.Type(), err)
		}
	}
	if out, err = e.Close(out); err != nil {
		t.Fatalf("close: %v", err)
	}
	return out, e.Report()
}

// Collect collects events into a response.
func Collect(evs []dragoman.Event) (*dragoman.Response, error) {
	var c dragoman.Collector
	for _, ev := range evs {
		c.Add(ev)
	}
	return c.Response()
}

// Changed returns the events with one delta changed, and the end of its part accordingly. It
// returns nil if the event is not a delta, or if change has no effect.
func Changed(evs []dragoman.Event, at int, change func(string) string) []dragoman.Event {
	d, ok := evs[at].(*dragoman.PartDelta)
	if !ok || change(d.Text) == d.Text {
		return nil
	}
	out := slices.Clone(evs)
	changed := *d
	changed.Text, out[at] = change(d.Text), &changed
	whole := ""
	for i, ev := range out {
		switch ev := ev.(type) {
		case *dragoman.PartDelta:
			if ev.Index == d.Index {
				whole += ev.Text
			}
		case *dragoman.PartEnd:
			if ev.Index == d.Index {
				end := *ev
				end.Part, out[i] = withText(ev.Part, whole), &end
			}
		}
	}
	return out
}

// withText returns a part with another content.
func withText(p dragoman.Part, content string) dragoman.Part {
	switch p := p.(type) {
	case *dragoman.Text:
		q := *p
		q.Text = content
		return &q
	case *dragoman.Reasoning:
		q := *p
		q.Text = content
		return &q
	case *dragoman.ToolCall:
		q := *p
		q.Arguments = content
		return &q
	default:
		return p
	}
}
