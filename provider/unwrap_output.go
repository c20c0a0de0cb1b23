package provider

import (
	"encoding/json"
	"iter"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/interop"
	"github.com/dragoman-go/dragoman/schema"
)

// unwrapPart returns the value in a response whose schema had to be wrapped in an object for the
// API (quirk F6). A text that is not such an object, for example because it was cut off, is
// unchanged.
func unwrapPart(p dragoman.Part) dragoman.Part {
	t, ok := p.(*dragoman.Text)
	if !ok || strings.TrimSpace(t.Text) == "" {
		return p
	}
	value, err := schema.Unwrap(json.RawMessage(t.Text))
	if err != nil {
		return p
	}
	out := *t
	out.Text = string(value)
	return &out
}

// unwrapResponse unwraps a complete response.
func unwrapResponse(reg *interop.Registry, resp *dragoman.Response) {
	if !reg.OutputWrapped() {
		return
	}
	for i := range resp.Output {
		m := &resp.Output[i]
		for j, p := range m.Parts {
			m.Parts[j] = unwrapPart(p)
		}
	}
}

// unwrapEvents unwraps a stream: the text of the response is held until it is complete. A
// stream that needs no change is returned unchanged.
func unwrapEvents(reg *interop.Registry, events iter.Seq2[dragoman.Event, error]) iter.Seq2[dragoman.Event, error] {
	if !reg.OutputWrapped() {
		return events
	}
	return func(yield func(dragoman.Event, error) bool) {
		for ev, err := range events {
			switch e := ev.(type) {
			case *dragoman.PartDelta:
				if e.Kind != codes.KindText {
					break
				}
				if e.Extra == nil {
					continue
				}
				fields := *e
				fields.Text = ""
				ev = &fields
			case *dragoman.PartEnd:
				t, ok := unwrapPart(e.Part).(*dragoman.Text)
				if !ok {
					break
				}
				if !yield(&dragoman.PartDelta{Choice: e.Choice, Index: e.Index, Kind: codes.KindText, Text: t.Text}, nil) {
					return
				}
				end := *e
				end.Part = t
				ev = &end
			}
			if !yield(ev, err) {
				return
			}
		}
	}
}
