package gateway

import (
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/wire"
)

// A client of Responses that asks for summaries of reasoning shows nothing else: OpenAI's
// models never tell their thinking itself, and its clients do not look where a server
// would. What other models think aloud is told as the summary that was asked for.

// summarises reports whether thinking is told as its summary.
func (x *exchange) summarises() bool {
	if !wire.Of(x.codec).Summaries || x.up.wire().Summaries || x.req.Reasoning == nil {
		return false
	}
	return x.req.Reasoning.Summary != "" && x.req.Reasoning.Summary != "omitted"
}

// summarised are messages whose thinking is told as its summary. Those that came are
// left as they are.
func summarised(messages []dragoman.Message) []dragoman.Message {
	out := slices.Clone(messages)
	for i := range out {
		parts := slices.Clone(out[i].Parts)
		for j := range parts {
			parts[j] = summary(parts[j])
		}
		out[i].Parts = parts
	}
	return out
}

// summary is a part as it is told: thinking is the first of its summaries.
func summary(p dragoman.Part) dragoman.Part {
	r, ok := p.(*dragoman.Reasoning)
	if !ok || r.Text == "" {
		return p
	}
	told := *r
	told.Text, told.Summary = "", append([]string{r.Text}, r.Summary...)
	return &told
}

// summaries tells the thinking of a stream as its summary.
type summaries struct {
	on bool
	// thinking says that the part that grows has had thinking, which is its first
	// summary: those that it has beside that move up.
	thinking bool
	// delta is the last one that was told, so that each needs no memory of its own.
	delta dragoman.PartDelta
}

func (s *summaries) tell(ev dragoman.Event) dragoman.Event {
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
		told := *e
		told.Part = summary(e.Part)
		return &told
	}
	return ev
}
