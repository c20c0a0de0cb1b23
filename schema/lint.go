package schema

import (
	"encoding/json"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
)

// Verdict says what becomes of one tool at one surface.
type Verdict struct {
	// Status is "ok" if the tool is sent as its author wrote it, "repaired" if it is sent,
	// changed as Report says, and "dropped" if it cannot be sent to this surface.
	Status string
	// Schema is what is sent; nil for a tool that is dropped or has none.
	Schema json.RawMessage
	// Report lists the changes.
	Report dragoman.Report
	// Err says why the tool is dropped; nil unless it is.
	Err error
}

func (v Verdict) String() string {
	if v.Err != nil {
		return v.Status + ": " + v.Err.Error()
	}
	return v.Status
}

// Lint judges one tool's schema for p. It looks at nothing but this tool, so
// that a broken one never touches its neighbours (quirk A45). Freeform and
// hosted tools have no schema and are OK.
func Lint(spec dragoman.ToolSpec, p Profile) Verdict {
	if spec.Kind != codes.ToolFunction {
		return Verdict{Status: codes.LintOK}
	}
	out, report, err := Lower(spec.Parameters, p)
	switch {
	case err != nil:
		return Verdict{Status: codes.LintDropped, Report: report, Err: err}
	case len(report.Losses) > 0:
		return Verdict{Status: codes.LintRepaired, Schema: out, Report: report}
	default:
		return Verdict{Status: codes.LintOK, Schema: out}
	}
}
