package provider

import (
	"encoding/json"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/interop"
	"github.com/dragoman-go/dragoman/schema"
)

// unwrapped takes the value out of an answer whose schema had to be wrapped in
// an object for the API (quirk F6). A text that is no such object, as of an
// answer that was cut off, stays as it is.
func unwrapped(p dragoman.Part) dragoman.Part {
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

// unwrapResponse does it for a whole answer.
func unwrapResponse(reg *interop.Registry, resp *dragoman.Response) {
	if !reg.AnswerWrapped() {
		return
	}
	for i := range resp.Output {
		m := &resp.Output[i]
		for j, p := range m.Parts {
			m.Parts[j] = unwrapped(p)
		}
	}
}

// unwrapper does it for a stream: the text of an answer is held until it is
// whole.
type unwrapper struct{ on bool }

func newUnwrapper(reg *interop.Registry) unwrapper { return unwrapper{on: reg.AnswerWrapped()} }

// pass hands an event on.
func (u unwrapper) pass(ev dragoman.Event, yield func(dragoman.Event) bool) bool {
	if !u.on {
		return yield(ev)
	}
	switch e := ev.(type) {
	case *dragoman.PartDelta:
		if e.Kind == dragoman.KindText {
			fields := *e
			fields.Text = ""
			return e.Extra == nil || yield(&fields)
		}
	case *dragoman.PartEnd:
		t, ok := unwrapped(e.Part).(*dragoman.Text)
		if !ok {
			break
		}
		end := *e
		end.Part = t
		return yield(&dragoman.PartDelta{Choice: e.Choice, Index: e.Index, Kind: dragoman.KindText, Text: t.Text}) && yield(&end)
	}
	return yield(ev)
}
