package gemini

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
)

// records are signatures of calls that a stream told in the reasoning before
// them (quirk B17), by candidate.
type records struct {
	known map[int]*wirekit.Records
	held  []heldRecord
}

// heldRecord is reasoning of which it is not known yet whether its calls come.
type heldRecord struct {
	choice int
	part   *dragoman.Reasoning
	at     extra.Path
}

// hold keeps reasoning whose records are signatures of calls, and reports whether
// it did.
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
	if !known.Tell(p) {
		return false
	}
	r.held = append(r.held, heldRecord{choice, p, at})
	return true
}

// with takes a call that ended and returns what may have its signature.
func (r *records) with(choice int, c *dragoman.ToolCall) *wirekit.Records {
	known := r.known[choice]
	if known != nil {
		known.Call(c)
	}
	return known
}

// report reports, at the end, the records whose calls never came.
func (r *records) report(rep *dragoman.Report) {
	for _, h := range r.held {
		if !r.known[h.choice].Carried(h.part) {
			extra.ReportOpaque(rep, h.at.String())
		}
	}
	r.held = nil
}
