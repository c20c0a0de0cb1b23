package openairesponses

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
)

func (e *requestEncoder) reasoningSettings() {
	s := e.req.Reasoning
	if s == nil {
		return
	}
	effort := e.effort(s)
	summary := s.Summary
	if summary == "omitted" {
		e.rep.Add(dragoman.Dropped, dragoman.Info, "/reasoning/summary", "the target returns no summary by default")
		summary = ""
	}
	if effort == "" && summary == "" && s.Extra.For(name) == nil {
		extra.Report(e.rep, s.Extra, name, extra.At("/reasoning"))
		return
	}
	e.w.Key("reasoning")
	e.w.BeginObject()
	var skip []string
	if effort != "" {
		e.w.StringField("effort", effort)
		skip = append(skip, "effort")
	}
	if summary != "" {
		e.w.StringField("summary", summary)
		skip = append(skip, "summary")
	}
	extra.Write(&e.w, withoutFields(s.Extra, skip...), name, "")
	e.w.EndObject()
	extra.Report(e.rep, s.Extra, name, extra.At("/reasoning"))
}

// effort converts the settings to an effort, which is the only reasoning setting of this wire.
// Losses are reported.
func (e *requestEncoder) effort(s *dragoman.ReasoningSettings) string {
	effort, mode, budget := s.Effort, s.Mode, s.BudgetTokens
	if mode == codes.ReasoningDefault && budget != nil {
		mode = codes.ReasoningBudget
	}
	switch mode {
	case codes.ReasoningDefault:
	case codes.ReasoningOff:
		if effort != "" && effort != "none" {
			e.rep.Addf(dragoman.Dropped, dragoman.Warn, "/reasoning/effort", "effort %q contradicts mode off; mode off is used", effort)
		}
		effort = "none"
	case codes.ReasoningBudget:
		if budget == nil {
			e.rep.Add(dragoman.Dropped, dragoman.Warn, "/reasoning/mode", "mode is budget, but no budget is set")
		} else if effort == "" {
			effort = wirekit.EffortOf(*budget)
			e.rep.Addf(dragoman.Lowered, dragoman.Warn, "/reasoning/budget_tokens", "budget of %d tokens is written as effort %s", *budget, effort)
			return effort
		}
	case codes.ReasoningAdaptive:
		if effort == "" {
			e.rep.Add(dragoman.Dropped, dragoman.Info, "/reasoning/mode", "adaptive thinking is the default of the target")
		}
	}
	if budget != nil {
		e.rep.Addf(dragoman.Dropped, dragoman.Warn, "/reasoning/budget_tokens", "budget of %d tokens is dropped: the target only accepts an effort", *budget)
	}
	return effort
}
