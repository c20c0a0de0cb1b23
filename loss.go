package dragoman

import (
	"fmt"
	"strings"
)

// LossKind is the kind of a loss: [Lowered], [Dropped], [Renamed], [Synthesized] or [Moved].
type LossKind string

// The kinds of loss.
const (
	// Lowered: written in a weaker form.
	Lowered LossKind = "lowered"
	// Dropped: not written at all.
	Dropped LossKind = "dropped"
	// Renamed: written under another name, reversibly.
	Renamed LossKind = "renamed"
	// Synthesized: added, because the target requires it.
	Synthesized LossKind = "synthesized"
	// Moved: written in another place.
	Moved LossKind = "moved"
)

// Severity is the severity of a loss: [Info], [Warn] or [Serious].
type Severity int

// The severities, in increasing order.
const (
	// Info: only the form changed; the meaning is the same.
	Info Severity = iota
	// Warn: the result is weaker than requested, or a hint was lost.
	Warn
	// Serious: content or a constraint is missing that the model would have seen.
	Serious
)

func (s Severity) String() string {
	switch s {
	case Info:
		return "info"
	case Warn:
		return "warn"
	case Serious:
		return "serious"
	default:
		return fmt.Sprintf("severity(%d)", int(s))
	}
}

// MarshalText returns the name of the severity. It fails for a severity without a name, because
// UnmarshalText could not read it.
func (s Severity) MarshalText() ([]byte, error) {
	if s < Info || s > Serious {
		return nil, fmt.Errorf("dragoman: %v has no name (want info, warn or serious)", s)
	}
	return []byte(s.String()), nil
}

// UnmarshalText reads the name of a severity.
func (s *Severity) UnmarshalText(b []byte) error {
	for _, v := range []Severity{Info, Warn, Serious} {
		if v.String() == string(b) {
			*s = v
			return nil
		}
	}
	return fmt.Errorf("dragoman: unknown severity %q (want info, warn or serious)", b)
}

// Loss is one entry of a conversion report.
//
//stored:value loss
type Loss struct {
	Kind     LossKind `json:"kind"`
	Severity Severity `json:"severity"`
	// Path is a JSON pointer. For a decoder, it points into the wire body; for an encoder, into
	// the stored JSON of the canonical value (for a stream, of the collected response). The
	// path of an unknown field ends in its native name. The path of a synthesized value is
	// where the value would be. The pointer continues inside native JSON, although that is
	// stored as a string.
	Path string `json:"path"`
	// Detail describes the loss in a few words.
	Detail string `json:"detail"`
	// From and To are the names before and after a rename (see [Report.AddRename]). They are
	// empty for other losses.
	From string `json:"from" stored:"if=renamed"`
	To   string `json:"to" stored:"if=renamed"`
}

// renamed reports whether From or To is set.
func (l *Loss) renamed() bool { return l.From != "" || l.To != "" }

func (l Loss) String() string {
	return fmt.Sprintf("%s (%s) %s: %s", l.Kind, l.Severity, l.Path, l.Detail)
}

// Report lists the losses of a conversion. The zero value is an empty report: nothing was lost.
//
//stored:top report
type Report struct {
	Losses []Loss `json:"losses,omitzero"`
}

// Add appends a loss. It does nothing if r is nil.
func (r *Report) Add(kind LossKind, sev Severity, path, detail string) {
	if r == nil {
		return
	}
	r.Losses = append(r.Losses, Loss{Kind: kind, Severity: sev, Path: path, Detail: detail})
}

// Addf appends a loss with a formatted detail.
func (r *Report) Addf(kind LossKind, sev Severity, path, format string, args ...any) {
	r.Add(kind, sev, path, fmt.Sprintf(format, args...))
}

// AddRename appends a loss of kind [Renamed]. The argument what names the renamed thing in a
// word or two.
func (r *Report) AddRename(sev Severity, path, what, from, to string) {
	if r == nil {
		return
	}
	r.Losses = append(r.Losses, Loss{
		Kind: Renamed, Severity: sev, Path: path, From: from, To: to,
		Detail: fmt.Sprintf("%s %.80q written as %q", what, from, to),
	})
}

// Merge appends the losses of another report, with prefix in front of their paths.
func (r *Report) Merge(prefix string, o Report) {
	if r == nil {
		return
	}
	for _, l := range o.Losses {
		l.Path = prefix + l.Path
		r.Losses = append(r.Losses, l)
	}
}

// Err returns a [*LossError] if a loss is at least as severe as limit.
func (r Report) Err(limit Severity) error {
	var bad []Loss
	for _, l := range r.Losses {
		if l.Severity >= limit {
			bad = append(bad, l)
		}
	}
	if bad == nil {
		return nil
	}
	return &LossError{Losses: bad}
}

func (r Report) String() string {
	lines := make([]string, len(r.Losses))
	for i, l := range r.Losses {
		lines[i] = l.String()
	}
	return strings.Join(lines, "\n")
}

// LossError reports that a conversion lost more than the caller allows.
type LossError struct {
	Losses []Loss `json:"losses,omitzero"`
}

func (e *LossError) Error() string {
	if e == nil || len(e.Losses) == 0 {
		return "dragoman: conversion lost nothing"
	}
	return fmt.Sprintf("dragoman: conversion has %d loss(es) above the allowed severity; first: %s", len(e.Losses), e.Losses[0])
}
