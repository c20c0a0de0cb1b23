package wirekit

import (
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/targets"
)

// Fit returns the request to write for a model that does not take all of its
// settings: they are replaced or dropped, and reported. A request that needs no
// change is returned as it is.
func Fit(req *dragoman.Request, caps targets.Capabilities, rep *dragoman.Report) *dragoman.Request {
	req = fitReasoning(req, &caps, rep)
	req = OutputInWords(req, caps, rep)
	return fitSettings(req, &caps, rep)
}

// fitReasoning fits the reasoning settings.
func fitReasoning(req *dragoman.Request, caps *targets.Capabilities, rep *dragoman.Report) *dragoman.Request {
	unstreamed := caps.NoThinkingUnstreamed && !req.Stream && caps.ReasoningOff != "" && Reasons(req, caps)
	if req.Reasoning == nil && !caps.NoReasoningWithTools && !unstreamed {
		return req
	}
	var s dragoman.ReasoningSettings
	if req.Reasoning != nil {
		s = *req.Reasoning
	}
	before := s
	fitted := *req
	fitted.Reasoning = &s
	if unstreamed {
		s = dragoman.ReasoningSettings{Mode: codes.ReasoningOff}
		rep.Add(dragoman.Lowered, dragoman.Warn, "/reasoning", "the model reasons only in streams; reasoning is switched off")
		return &fitted
	}
	if caps.NoThinking {
		if dropReasoning(&s, caps, rep) {
			fitted.Reasoning = nil
		}
		return &fitted
	}
	if caps.NoThinkingBudgets && s.BudgetTokens != nil && s.Mode != codes.ReasoningOff {
		if s.Effort == "" {
			s.Effort = EffortOf(*s.BudgetTokens)
		}
		s.Mode, s.BudgetTokens = codes.ReasoningAdaptive, nil
		rep.Addf(dragoman.Lowered, dragoman.Info, "/reasoning/budget_tokens", "the model takes no budget; effort %s is sent", s.Effort)
	}
	if caps.NoReasoningWithTools && len(req.Tools) > 0 && !off(&s) {
		s = dragoman.ReasoningSettings{Mode: codes.ReasoningOff}
		if req.Reasoning != nil {
			rep.Add(dragoman.Dropped, dragoman.Warn, "/reasoning", "the model calls no tools while it reasons; reasoning is switched off")
		} else {
			rep.Add(dragoman.Synthesized, dragoman.Info, "/reasoning", "the model calls no tools while it reasons; reasoning is switched off")
		}
	}
	if off(&s) && listed(caps.Refuses, effortNone) && caps.ReasoningOff == "" {
		if !caps.ThinkingBudgets || caps.MinThinkingBudget <= 0 {
			rep.Add(dragoman.Dropped, dragoman.Warn, "/reasoning", "the model may not take the effort none; whether it reasons is left to it")
			fitted.Reasoning = nil
			return &fitted
		}
		least := caps.MinThinkingBudget
		s.Mode, s.Effort, s.BudgetTokens = codes.ReasoningBudget, "", &least
		rep.Addf(dragoman.Lowered, dragoman.Warn, "/reasoning", "reasoning cannot be switched off; the least budget, %d, is sent", least)
	}
	if s.Mode == codes.ReasoningOff && (s.Effort == "xhigh" || s.Effort == "max") && listed(caps.Refuses, effortOff) {
		rep.Addf(dragoman.Lowered, dragoman.Warn, "/reasoning/effort", "the model takes no effort %s while reasoning is off; high is sent", s.Effort)
		s.Effort = "high"
	}
	fitBudget(&s, caps, rep)
	if caps.Efforts != "" && (!off(&s) || caps.ReasoningOff == "") {
		fitEffort(&s, strings.Fields(caps.Efforts), rep)
	}
	if s == before {
		return req
	}
	return &fitted
}

// dropReasoning reports the settings that a model takes none of. It returns false
// where they switch reasoning off in a way of the server's.
func dropReasoning(s *dragoman.ReasoningSettings, caps *targets.Capabilities, rep *dragoman.Report) bool {
	why := "the model does not reason"
	if caps.ThinksByDefault {
		why = "the model takes no reasoning settings"
	}
	if off(s) {
		if caps.ReasoningOff != "" {
			*s = dragoman.ReasoningSettings{Mode: codes.ReasoningOff}
			return false
		}
		if !caps.ThinksByDefault {
			rep.Add(dragoman.Dropped, dragoman.Info, "/reasoning", "reasoning off: "+why)
			return true
		}
	}
	rep.Add(dragoman.Dropped, dragoman.Warn, "/reasoning", why)
	return true
}

// fitBudget moves a thinking budget into the bounds of the model. Zero and -1 are
// not amounts.
func fitBudget(s *dragoman.ReasoningSettings, caps *targets.Capabilities, rep *dragoman.Report) {
	least, most := caps.MinThinkingBudget, caps.MaxThinkingBudget
	always := listed(caps.Refuses, effortNone)
	if s.BudgetTokens == nil {
		if caps.ThinkingBudgets && always && (s.Effort == "minimal" || s.Effort == "none") { // both are a budget of 0
			rep.Addf(dragoman.Lowered, dragoman.Info, "/reasoning/effort", "effort %s written as low: the model always reasons", s.Effort)
			s.Effort = "low"
		}
		return
	}
	if off(s) {
		return
	}
	n := *s.BudgetTokens
	switch {
	case n > 0 && n < least || n == 0 && always && least > 0:
		n = least
	case most > 0 && n > most:
		n = most
	default:
		return
	}
	rep.Addf(dragoman.Lowered, dragoman.Info, "/reasoning/budget_tokens", "a budget of %d written as %d, the nearest that the model takes", *s.BudgetTokens, n)
	s.BudgetTokens = &n
}

// off reports whether reasoning is switched off.
func off(s *dragoman.ReasoningSettings) bool {
	return s.Mode == codes.ReasoningOff || s.Mode == codes.ReasoningDefault && s.Effort == "none"
}

// efforts are all that there are, the least first.
var efforts = [...]string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}

// Efforts lists the words of [targets.Capabilities.Efforts].
func Efforts() []string { return append(efforts[:], "default") }

// fitEffort puts the nearest of the efforts that a model takes in the place of one
// that it does not; of two the greater one (quirk G10). An unknown effort is
// dropped. A model whose only efforts are none and default takes default for any.
func fitEffort(s *dragoman.ReasoningSettings, takes []string, rep *dragoman.Report) {
	asked := s.Effort
	if off(s) {
		asked = "none"
	}
	if asked == "" || slices.Contains(takes, asked) {
		return
	}
	at := slices.Index(efforts[:], asked)
	if at < 0 {
		s.Effort = ""
		rep.Addf(dragoman.Dropped, dragoman.Warn, "/reasoning/effort", "the model takes no effort %.40q", asked)
		return
	}
	nearest, distance := "", len(efforts)
	if asked != "none" && slices.Contains(takes, "default") {
		nearest, takes = "default", nil
	}
	for i, e := range efforts {
		if d := max(i-at, at-i); slices.Contains(takes, e) && d <= distance {
			nearest, distance = e, d
		}
	}
	if nearest == "" {
		return
	}
	if off(s) {
		s.Mode = codes.ReasoningDefault
	}
	s.Effort = nearest
	rep.Addf(dragoman.Lowered, dragoman.Warn, "/reasoning/effort", "the model takes no effort %s; %s is sent", asked, nearest)
}
