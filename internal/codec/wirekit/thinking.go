package wirekit

import (
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
)

// Thinking budgets for the reasoning efforts, for models that accept a budget only.
const (
	budgetLow    = 1024
	budgetMedium = 8192
	budgetHigh   = 24576
)

// EffortBudget returns the thinking budget for an effort. known is false for an unknown
// effort.
func EffortBudget(effort string) (tokens int64, known bool) {
	switch effort {
	case "none", "minimal":
		return 0, true
	case "low":
		return budgetLow, true
	case "medium":
		return budgetMedium, true
	case "high", "xhigh", "max":
		return budgetHigh, true
	default:
		return 0, false
	}
}

// Claude returns the reasoning settings of a request for Claude, where a number without
// a mode is a budget. budgets means that the model accepts a budget but no effort, and
// cannot choose itself how long it thinks (Capabilities.ThinkingBudgets).
func Claude(s *dragoman.ReasoningSettings, budgets bool) *dragoman.ReasoningSettings {
	if s == nil || !budgets && (s.Mode != codes.ReasoningDefault || s.BudgetTokens == nil || s.Effort == "none") {
		return s
	}
	set := *s
	switch n, known := EffortBudget(s.Effort); {
	case !budgets:
		set.Mode = codes.ReasoningBudget
	case s.Mode == codes.ReasoningOff:
		set.Effort = ""
	case s.Mode == codes.ReasoningDefault && s.Effort == "none":
	case s.BudgetTokens != nil:
		set.Mode, set.Effort = codes.ReasoningBudget, ""
	case known && s.Effort != "none":
		set.Mode, set.BudgetTokens, set.Effort = codes.ReasoningBudget, &n, ""
	case s.Mode == codes.ReasoningAdaptive, s.Mode == codes.ReasoningBudget:
		n = budgetMedium
		set.Mode, set.BudgetTokens, set.Effort = codes.ReasoningBudget, &n, ""
	default:
		set.Effort = ""
	}
	return &set
}

// ClaudeThinks returns Claude's thinking type, or "" for none. room reports whether a
// budget fits below the output limit.
func ClaudeThinks(s *dragoman.ReasoningSettings, room bool) string {
	switch {
	case s == nil:
		return ""
	case s.Mode == codes.ReasoningOff:
		return "disabled"
	case s.Mode == codes.ReasoningAdaptive, s.Mode == codes.ReasoningBudget && s.BudgetTokens == nil:
		return "adaptive"
	case s.Mode == codes.ReasoningBudget && room:
		return "enabled"
	case s.Mode != codes.ReasoningBudget && s.Effort == "none":
		return "disabled"
	default:
		return ""
	}
}

// ReportBudget reports which reasoning settings are written as a budget, for a model
// that accepts no effort.
func ReportBudget(rep *dragoman.Report, s *dragoman.ReasoningSettings) {
	_, known := EffortBudget(s.Effort)
	switch {
	case s.Effort == "none":
	case s.Effort != "" && s.Mode == codes.ReasoningOff:
		rep.Addf(dragoman.Dropped, dragoman.Info, "/reasoning/effort", "effort %.40s has no effect while thinking is off", s.Effort)
	case s.Effort != "" && !known:
		rep.Addf(dragoman.Dropped, dragoman.Warn, "/reasoning/effort", "the API has no effort %.40q", s.Effort)
	case s.Effort != "" && s.BudgetTokens != nil:
		rep.Addf(dragoman.Dropped, dragoman.Info, "/reasoning/effort", "effort %s dropped: the model accepts either an effort or a budget", s.Effort)
	case s.Effort != "":
		rep.Addf(dragoman.Lowered, dragoman.Info, "/reasoning/effort", "effort %s written as a budget", s.Effort)
	}
	if s.BudgetTokens == nil && (s.Effort == "" || s.Effort == "none" || !known) && (s.Mode == codes.ReasoningAdaptive || s.Mode == codes.ReasoningBudget) {
		rep.Addf(dragoman.Lowered, dragoman.Info, "/reasoning/mode", "the model cannot choose how long it thinks; a budget of %d written", int64(budgetMedium))
	}
}

// VisibleReasoning returns the readable text of reasoning: its text, then its summary.
func VisibleReasoning(p *dragoman.Reasoning) string {
	if len(p.Summary) == 0 {
		return p.Text
	}
	all := p.Summary
	if p.Text != "" {
		all = append([]string{p.Text}, p.Summary...)
	}
	return strings.Join(all, "\n\n")
}

// ReportReasoning reports what is lost of reasoning if only its visible text is written.
func ReportReasoning(rep *dragoman.Report, d dragoman.Dialect, p *dragoman.Reasoning, at extra.Path) {
	extra.ReportItem(rep, p.ID, at, "/id")
	extra.Report(rep, p.Extra, d, at)
	if p.Signature != "" || p.Encrypted != "" || len(p.Details) > 0 {
		extra.ReportOpaque(rep, at.String())
	}
}
