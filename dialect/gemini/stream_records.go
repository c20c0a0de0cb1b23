package gemini

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
)

// records holds the signatures of calls that arrived in the reasoning before
// them (quirk B17), by candidate.
type records struct {
	known map[int]*wirekit.Records
	held  []heldRecord
}

// heldRecord is reasoning whose calls may still arrive.
type heldRecord struct {
	choice int
	part   *dragoman.Reasoning
	at     extra.Path
}

// hold stores reasoning whose details are signatures of calls. It reports
// whether it did.
func (r *records) hold(choice int, p *dragoman.Reasoning, at extra.Path) bool {
	if len(p.Details) == 0 {
		return false
	}
	known := r.known[choice]
	if known == nil {
		known = new(wirekit.Records)
		if r.known == nil {
			r.known = map[int]*wirekit.Records{}
		}
		r.known[choice] = known
	}
	if !known.AddReasoning(p) {
		return false
	}
	r.held = append(r.held, heldRecord{choice, p, at})
	return true
}

// recordCall records a finished call and returns the records that may contain its
// signature.
func (r *records) recordCall(choice int, c *dragoman.ToolCall) *wirekit.Records {
	known := r.known[choice]
	if known != nil {
		known.AddCall(c)
	}
	return known
}

// report reports the records whose calls did not arrive. It is called at the
// end of the stream.
func (r *records) report(rep *dragoman.Report) {
	for _, h := range r.held {
		if !r.known[h.choice].InCalls(h.part) {
			extra.ReportOpaque(rep, h.at.String())
		}
	}
	r.held = nil
}
