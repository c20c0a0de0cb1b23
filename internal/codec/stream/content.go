package stream

import dragoman "github.com/dragoman-go/dragoman"

// HasContent reports whether an event carries something of the response. Before such an
// event the response has not begun: if the stream fails, another model may answer.
func HasContent(ev dragoman.Event) bool {
	switch ev := ev.(type) {
	case *dragoman.PartStart:
		return ev.Part != nil && ev.Part.Kind() != dragoman.KindText && ev.Part.Kind() != dragoman.KindReasoning && ev.Part.Kind() != dragoman.KindRefusal
	case *dragoman.PartDelta:
		return ev.Text != ""
	case *dragoman.PartEnd:
		return PartHasContent(ev.Part)
	default:
		return false
	}
}

// PartHasContent reports whether a part is more than an empty one.
func PartHasContent(p dragoman.Part) bool {
	switch p := p.(type) {
	case nil:
		return false
	case *dragoman.Text:
		return p.Text != ""
	case *dragoman.Refusal:
		return p.Text != ""
	case *dragoman.Reasoning:
		return p.Text != "" || len(p.Summary) > 0 || p.Encrypted != "" || p.Signature != "" || len(p.Details) > 0
	default:
		return true
	}
}
