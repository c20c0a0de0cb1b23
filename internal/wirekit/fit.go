package wirekit

import (
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
)

// Fit returns the request to write for a model that does not take all of its
// settings: what it does not take is said in another way, and reported. A request
// that needs no change is returned as it is.
func Fit(req *dragoman.Request, caps dragoman.Capabilities, rep *dragoman.Report) *dragoman.Request {
	return fitReasoning(OutputInWords(req, caps, rep), caps, rep)
}

// fitReasoning fits the settings of reasoning.
func fitReasoning(req *dragoman.Request, caps dragoman.Capabilities, rep *dragoman.Report) *dragoman.Request {
	if !caps.NoThinkingBudgets && !caps.NoReasoningWithTools && caps.Efforts == "" {
		return req
	}
	var s dragoman.ReasoningSettings
	if req.Reasoning != nil {
		s = *req.Reasoning
	}
	before := s
	if caps.NoThinkingBudgets && s.BudgetTokens != nil && s.Mode != dragoman.ReasoningOff {
		if s.Effort == "" {
			s.Effort = EffortOf(*s.BudgetTokens)
		}
		s.Mode, s.BudgetTokens = dragoman.ReasoningAdaptive, nil
		rep.Addf(dragoman.Lowered, dragoman.Info, "/reasoning/budget_tokens", "the model takes no budget; it was asked for the effort %s", s.Effort)
	}
	if caps.NoReasoningWithTools && len(req.Tools) > 0 && !off(&s) {
		s = dragoman.ReasoningSettings{Mode: dragoman.ReasoningOff}
		if req.Reasoning != nil {
			rep.Add(dragoman.Dropped, dragoman.Warn, "/reasoning", "the model calls no tools while it reasons; reasoning is switched off")
		} else {
			rep.Add(dragoman.Synthesised, dragoman.Info, "/reasoning", "the model calls no tools while it reasons; reasoning is switched off")
		}
	}
	if caps.Efforts != "" {
		fitEffort(&s, strings.Fields(caps.Efforts), rep)
	}
	if s == before {
		return req
	}
	fitted := *req
	fitted.Reasoning = &s
	return &fitted
}

// off reports whether reasoning is switched off.
func off(s *dragoman.ReasoningSettings) bool {
	return s.Mode == dragoman.ReasoningOff || s.Mode == dragoman.ReasoningDefault && s.Effort == "none"
}

// efforts are all that there are, the least first.
var efforts = [...]string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}

// fitEffort puts the nearest of the efforts that a model takes in the place of one
// that it does not; of two the greater one (quirk G10). One that nobody knows is
// left to the encoder.
func fitEffort(s *dragoman.ReasoningSettings, takes []string, rep *dragoman.Report) {
	asked := s.Effort
	if off(s) {
		asked = "none"
	}
	at := slices.Index(efforts[:], asked)
	if at < 0 || slices.Contains(takes, asked) {
		return
	}
	nearest, distance := "", len(efforts)
	for i, e := range efforts {
		if d := max(i-at, at-i); slices.Contains(takes, e) && d <= distance {
			nearest, distance = e, d
		}
	}
	if nearest == "" {
		return
	}
	if off(s) {
		s.Mode = dragoman.ReasoningDefault
	}
	s.Effort = nearest
	rep.Addf(dragoman.Lowered, dragoman.Warn, "/reasoning/effort", "the model takes no effort %s; it was asked for %s", asked, nearest)
}
