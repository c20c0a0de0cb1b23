package bedrock

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// The values of [targets.Capabilities.EffortField].
const (
	fieldEffort = "reasoning_effort" // OpenAI models: a string
	fieldConfig = "reasoningConfig"  // Amazon Nova: an object
)

// modelEffort is an effort in a field of additionalModelRequestFields. The zero value
// writes nothing.
type modelEffort struct{ field, value string }

// off switches reasoning off in the Amazon Nova object.
const off = "disabled"

// takeEffort moves the reasoning settings out of the request if the model has
// its own field for effort. It reports settings that the field cannot express.
func (e *requestEncoder) takeEffort() {
	field, s := e.Target.Caps.EffortField, e.Req.Reasoning
	if field == "" || s == nil {
		return
	}
	req := *e.Req
	req.Reasoning = nil
	e.Req = &req
	extra.Report(e.Rep, s.Extra, name, extra.At("/reasoning"))
	for _, f := range s.Extra.For(name) {
		e.Rep.Addf(dragoman.Dropped, dragoman.Info, "/reasoning", "%s cannot be expressed in %s", f.Path, field)
	}
	if s.Summary != "" {
		e.Rep.Addf(dragoman.Dropped, dragoman.Info, "/reasoning/summary", "%s cannot set how reasoning is shown", field)
	}
	effort := s.Effort
	switch {
	case s.Mode == codes.ReasoningOff || s.Mode == codes.ReasoningDefault && effort == "none":
		if field != fieldConfig {
			e.Rep.Addf(dragoman.Dropped, dragoman.Warn, "/reasoning", "%s cannot switch reasoning off", field)
			return
		}
		effort = off
	case effort == "" && s.BudgetTokens != nil:
		effort = wirekit.EffortOf(*s.BudgetTokens)
		e.Rep.Addf(dragoman.Lowered, dragoman.Info, "/reasoning/budget_tokens", "the model does not accept a budget; effort %s is sent", effort)
	case effort == "" && s.Mode != codes.ReasoningDefault && field == fieldConfig:
		effort = "medium" // the object requires an effort
		e.Rep.Addf(dragoman.Lowered, dragoman.Info, "/reasoning/mode", "the model does not choose its effort; %s is sent", effort)
	case effort == "none":
		effort = ""
	}
	if field == fieldConfig && effort == "high" {
		effort = e.highEffort()
	}
	if effort != "" {
		e.effort = modelEffort{field, effort}
	}
}

// highEffort returns the effort to send for high. Amazon Nova refuses maxTokens,
// temperature and topP with high. A request with maxTokens gets a lower effort; temperature
// and topP are dropped.
func (e *requestEncoder) highEffort() string {
	if e.Req.MaxOutputTokens != nil {
		e.Rep.Add(dragoman.Lowered, dragoman.Warn, "/reasoning/effort", "the model does not accept maxTokens with effort high; medium is sent")
		return "medium"
	}
	s := &e.Req.Sampling // takeEffort made a copy of the request
	for _, knob := range []struct {
		key string
		at  **dragoman.Number
	}{{"temperature", &s.Temperature}, {"top_p", &s.TopP}} {
		if *knob.at != nil {
			*knob.at = nil
			e.Rep.Add(dragoman.Dropped, dragoman.Warn, "/sampling/"+knob.key, "not accepted with effort high")
		}
	}
	return "high"
}

// write writes the field.
func (m modelEffort) write(w *jsonwire.Writer) {
	switch {
	case m.field == "":
	case m.field != fieldConfig:
		w.StringField(m.field, m.value)
	default:
		w.Key(m.field)
		w.BeginObject()
		if m.value == off {
			w.StringField("type", off)
		} else {
			w.StringField("type", "enabled")
			w.StringField("maxReasoningEffort", m.value)
		}
		w.EndObject()
	}
}
