package gemini

import (
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
)

// thinking writes the thinking config: a level or a budget, never both.
func (e *requestEncoder) thinking() {
	s, w := e.req.Reasoning, &e.w
	if s == nil {
		return
	}
	extra.Report(e.rep, s.Extra, name, extra.At("/reasoning"))
	budget, level := e.effort(s)
	if budget == nil && level == "" && s.Summary == "" && s.Extra.For(name) == nil {
		return
	}
	w.Key("thinkingConfig")
	w.BeginObject()
	switch {
	case budget != nil:
		w.IntField("thinkingBudget", *budget)
	case level != "":
		w.StringField("thinkingLevel", strings.ToUpper(level))
	}
	switch s.Summary {
	case "":
	case "omitted":
		w.BoolField("includeThoughts", false)
	default:
		if s.Summary != "auto" {
			e.rep.Addf(dragoman.Lowered, dragoman.Info, "/reasoning/summary", "summary %q written as includeThoughts", s.Summary)
		}
		w.BoolField("includeThoughts", true)
	}
	extra.WriteBut(w, s.Extra, name, "", func(f dragoman.Field) bool {
		return strings.EqualFold(f.Path, "/thinkingLevel") && (level != "" || budget != nil)
	})
	w.EndObject()
}

// effort returns the amount of thinking in the form of the target. Models
// before Gemini 3 accept a budget, later ones a level. The newest cannot
// disable thinking (quirk G10).
func (e *requestEncoder) effort(s *dragoman.ReasoningSettings) (budget *int64, level string) {
	number := func(n int64) *int64 { return &n }
	lower := func(path, format string, args ...any) {
		e.rep.Addf(dragoman.Lowered, dragoman.Info, path, format, args...)
	}
	off := s.Mode == codes.ReasoningOff || s.Mode == codes.ReasoningDefault && s.Effort == "none"
	budgets := e.target.Caps.ThinkingBudgets
	switch {
	case off && (budgets || e.fromOwnDialect()):
		return number(0), ""
	case off:
		lower("/reasoning", "disabled thinking written as the minimal level")
		return nil, "minimal"
	case s.BudgetTokens != nil && (s.Effort == "" || budgets):
		return number(*s.BudgetTokens), ""
	case s.BudgetTokens != nil:
		lower("/reasoning/budget_tokens", "budget dropped in favor of effort %q; the API accepts only one", s.Effort)
	case s.Mode == codes.ReasoningBudget && s.Effort == "":
		lower("/reasoning/mode", "a budget without a number is left to the model")
		return number(-1), ""
	}
	switch s.Effort {
	case "":
		if s.Mode == codes.ReasoningAdaptive {
			return number(-1), ""
		}
		return nil, ""
	case "minimal", "low", "medium", "high":
		level = s.Effort
	case "xhigh", "max":
		lower("/reasoning/effort", "effort %s written as high", s.Effort)
		level = "high"
	case "none":
		level = "minimal"
	default:
		e.rep.Addf(dragoman.Dropped, dragoman.Warn, "/reasoning/effort", "the API has no effort level %.40q", s.Effort)
		return nil, ""
	}
	if !budgets {
		return nil, level
	}
	lower("/reasoning/effort", "effort %s written as a budget", level)
	n, _ := wirekit.EffortBudget(level)
	return number(n), ""
}
