package stream

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
)

// HasContent reports whether an event carries content of the response. Before the first
// such event, a failed stream may be replaced by the response of another model.
func HasContent(ev dragoman.Event) bool {
	switch ev := ev.(type) {
	case *dragoman.PartStart:
		return ev.Part != nil && ev.Part.Kind() != codes.KindText && ev.Part.Kind() != codes.KindReasoning && ev.Part.Kind() != codes.KindRefusal
	case *dragoman.PartDelta:
		return ev.Text != ""
	case *dragoman.PartEnd:
		return PartHasContent(ev.Part)
	default:
		return false
	}
}

// PartHasContent reports whether a part has any content.
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

// Empty reports whether a response has no content and no explanation for it. A list of
// models then continues with the next one.
func Empty(resp *dragoman.Response) bool {
	if resp == nil {
		return true
	}
	for i := range resp.Output {
		for _, p := range resp.Output[i].Parts {
			if PartHasContent(p) {
				return false
			}
		}
	}
	return len(resp.Alternatives) == 0 && Unexplained(resp.Stop.Reason)
}

// Unexplained reports whether a stop reason does not explain why a response has no
// content, as a filter or the output limit would.
func Unexplained(r dragoman.StopReason) bool {
	switch r {
	case dragoman.StopNone, dragoman.StopEnd, dragoman.StopToolCalls, dragoman.StopError, dragoman.StopUnknown:
		return true
	default:
		return false
	}
}
