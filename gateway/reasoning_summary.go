package gateway

import (
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/wire"
)

// Responses clients that request reasoning summaries show nothing else: OpenAI models never return
// their thinking itself. For these clients the gateway sends the thinking of other models as the
// requested summary.

// sendsSummaries reports whether thinking is sent as a summary.
func (x *exchange) sendsSummaries() bool {
	if !wire.Of(x.codec).Summaries || x.up.wire().Summaries || x.req.Reasoning == nil {
		return false
	}
	return x.req.Reasoning.Summary != "" && x.req.Reasoning.Summary != "omitted"
}

// withSummaries returns messages whose thinking is replaced with a summary. It does not change the
// given ones.
func withSummaries(messages []dragoman.Message) []dragoman.Message {
	out := slices.Clone(messages)
	for i := range out {
		parts := slices.Clone(out[i].Parts)
		for j := range parts {
			parts[j] = summaryPart(parts[j])
		}
		out[i].Parts = parts
	}
	return out
}

// summaryPart returns a part for the client: thinking becomes the first of its summaries.
func summaryPart(p dragoman.Part) dragoman.Part {
	r, ok := p.(*dragoman.Reasoning)
	if !ok || r.Text == "" {
		return p
	}
	out := *r
	out.Text, out.Summary = "", append([]string{r.Text}, r.Summary...)
	return &out
}

// summaries converts the thinking of a stream to summaries.
type summaries struct {
	on bool
	// thinking reports that the current part had thinking, which is its first summary: the
	// indexes of its own summaries increase by one.
	thinking bool
	// delta is the last delta that was sent. It is reused to avoid allocations.
	delta dragoman.PartDelta
}

func (s *summaries) convert(ev dragoman.Event) dragoman.Event {
	if !s.on {
		return ev
	}
	switch e := ev.(type) {
	case *dragoman.PartStart:
		s.thinking = false
	case *dragoman.PartDelta:
		if e.Kind != codes.KindReasoning {
			return ev
		}
		if s.delta = *e; e.Summary == 0 {
			s.thinking = true
		}
		if s.thinking {
			s.delta.Summary++
		}
		return &s.delta
	case *dragoman.PartEnd:
		out := *e
		out.Part = summaryPart(e.Part)
		return &out
	}
	return ev
}
