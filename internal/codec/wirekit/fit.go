package wirekit

import (
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/targets"
)

// FitSettings returns the request to write for a model that does not accept all of its
// settings. It replaces or drops those settings and reports each change. A request that
// needs no change is returned unchanged.
func FitSettings(req *dragoman.Request, caps targets.Capabilities, rep *dragoman.Report) *dragoman.Request {
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
		rep.Add(dragoman.Lowered, dragoman.Warn, "/reasoning", "the model reasons only when streaming; reasoning is switched off")
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
		rep.Addf(dragoman.Lowered, dragoman.Info, "/reasoning/budget_tokens", "the model accepts no budget; effort %s is sent", s.Effort)
	}
	if caps.NoReasoningWithTools && len(req.Tools) > 0 && !reasoningOff(&s) {
		s = dragoman.ReasoningSettings{Mode: codes.ReasoningOff}
		if req.Reasoning != nil {
			rep.Add(dragoman.Dropped, dragoman.Warn, "/reasoning", "the model cannot call tools while it reasons; reasoning is switched off")
		} else {
			rep.Add(dragoman.Synthesized, dragoman.Info, "/reasoning", "the model cannot call tools while it reasons; reasoning is switched off")
		}
	}
	if reasoningOff(&s) && listed(caps.Refuses, effortNone) && caps.ReasoningOff == "" {
		if !caps.ThinkingBudgets || caps.MinThinkingBudget <= 0 {
			rep.Add(dragoman.Dropped, dragoman.Warn, "/reasoning", "the model does not accept effort none; the model decides whether to reason")
			fitted.Reasoning = nil
			return &fitted
		}
		least := caps.MinThinkingBudget
		s.Mode, s.Effort, s.BudgetTokens = codes.ReasoningBudget, "", &least
		rep.Addf(dragoman.Lowered, dragoman.Warn, "/reasoning", "reasoning cannot be switched off; the least budget, %d, is sent", least)
	}
	if s.Mode == codes.ReasoningOff && (s.Effort == "xhigh" || s.Effort == "max") && listed(caps.Refuses, effortOff) {
		rep.Addf(dragoman.Lowered, dragoman.Warn, "/reasoning/effort", "the model does not accept effort %s while reasoning is off; high is sent", s.Effort)
		s.Effort = "high"
	}
	fitBudget(&s, caps, rep)
	if caps.Efforts != "" && (!reasoningOff(&s) || caps.ReasoningOff == "") {
		fitEffort(&s, strings.Fields(caps.Efforts), rep)
	}
	if s == before {
		return req
	}
	return &fitted
}

// dropReasoning reports reasoning settings that the model does not accept, and returns
// true to drop them. It returns false if they switch reasoning off and the server has a
// way to do so.
func dropReasoning(s *dragoman.ReasoningSettings, caps *targets.Capabilities, rep *dragoman.Report) bool {
	why := "the model does not reason"
	if caps.ThinksByDefault {
		why = "the model accepts no reasoning settings"
	}
	if reasoningOff(s) {
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

// fitBudget moves a thinking budget into the range of the model. Zero and -1 are not
// amounts.
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
	if reasoningOff(s) {
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
	rep.Addf(dragoman.Lowered, dragoman.Info, "/reasoning/budget_tokens", "a budget of %d written as %d, the nearest value that the model accepts", *s.BudgetTokens, n)
	s.BudgetTokens = &n
}

// reasoningOff reports whether reasoning is switched off.
func reasoningOff(s *dragoman.ReasoningSettings) bool {
	return s.Mode == codes.ReasoningOff || s.Mode == codes.ReasoningDefault && s.Effort == "none"
}

// efforts are all reasoning efforts, the lowest first.
var efforts = [...]string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}

// Efforts returns the values that [targets.Capabilities.Efforts] may contain.
func Efforts() []string { return append(efforts[:], "default") }

// fitEffort replaces an effort that the model does not accept by the nearest one that
// it accepts; of two equally near efforts it takes the higher one (quirk G10). It drops
// an unknown effort. A model that accepts only none and default gets default for every
// other effort.
func fitEffort(s *dragoman.ReasoningSettings, takes []string, rep *dragoman.Report) {
	want := s.Effort
	if reasoningOff(s) {
		want = "none"
	}
	if want == "" || slices.Contains(takes, want) {
		return
	}
	at := slices.Index(efforts[:], want)
	if at < 0 {
		s.Effort = ""
		rep.Addf(dragoman.Dropped, dragoman.Warn, "/reasoning/effort", "the model does not accept effort %.40q", want)
		return
	}
	nearest, distance := "", len(efforts)
	if want != "none" && slices.Contains(takes, "default") {
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
	if reasoningOff(s) {
		s.Mode = codes.ReasoningDefault
	}
	s.Effort = nearest
	rep.Addf(dragoman.Lowered, dragoman.Warn, "/reasoning/effort", "the model does not accept effort %s; %s is sent", want, nearest)
}
