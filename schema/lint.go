package schema

import (
	"encoding/json"

	dragoman "github.com/dragoman-go/dragoman"
)

// Status is the outcome of linting one tool.
type Status string

// The outcomes of linting.
const (
	// OK: the tool is sent as its author wrote it.
	OK Status = "ok"
	// Repaired: the tool is sent, changed as the report says.
	Repaired Status = "repaired"
	// Dropped: the tool cannot be sent to this surface.
	Dropped Status = "dropped"
)

// Verdict says what becomes of one tool at one surface.
type Verdict struct {
	Status Status
	// Schema is what is sent; nil for a tool that is dropped or has none.
	Schema json.RawMessage
	// Report lists the changes.
	Report dragoman.Report
	// Err says why the tool is dropped; nil unless it is.
	Err error
}

func (v Verdict) String() string {
	if v.Err != nil {
		return string(v.Status) + ": " + v.Err.Error()
	}
	return string(v.Status)
}

// Lint judges one tool's schema for p. It looks at nothing but this tool, so
// that a broken one never touches its neighbours (quirk A45). Freeform and
// hosted tools have no schema and are OK.
func Lint(spec dragoman.ToolSpec, p Profile) Verdict {
	if spec.Kind != dragoman.ToolFunction {
		return Verdict{Status: OK}
	}
	out, report, err := Lower(spec.Parameters, p)
	switch {
	case err != nil:
		return Verdict{Status: Dropped, Report: report, Err: err}
	case len(report.Losses) > 0:
		return Verdict{Status: Repaired, Schema: out, Report: report}
	default:
		return Verdict{Status: OK, Schema: out}
	}
}
