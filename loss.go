package dragoman

import (
	"fmt"
	"strings"
)

// LossKind says what a conversion did to something: [Lowered], [Dropped],
// [Renamed], [Synthesized] or [Moved].
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

// Severity says how much a loss matters: [Info], [Warn] or [Serious].
type Severity int

// The severities, in growing order.
const (
	// Info: the meaning is the same; only the form changed.
	Info Severity = iota
	// Warn: something weaker than asked for, or advice lost.
	Warn
	// Serious: content or a constraint the model would have seen is gone.
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

// MarshalText writes the severity as its name. A severity without a name is
// an error, because nobody could read it back.
func (s Severity) MarshalText() ([]byte, error) {
	if s < Info || s > Serious {
		return nil, fmt.Errorf("dragoman: %v has no name (want info, warn or serious)", s)
	}
	return []byte(s.String()), nil
}

// UnmarshalText reads a severity's name.
func (s *Severity) UnmarshalText(b []byte) error {
	for _, v := range []Severity{Info, Warn, Serious} {
		if v.String() == string(b) {
			*s = v
			return nil
		}
	}
	return fmt.Errorf("dragoman: unknown severity %q (want info, warn or serious)", b)
}

// Loss is one line of a conversion report.
//
//stored:value loss
type Loss struct {
	Kind     LossKind `json:"kind"`
	Severity Severity `json:"severity"`
	// Path is a JSON pointer. For a decoder, it points into the wire body; for an
	// encoder, into the stored JSON of the canonical value, which for a stream is
	// the collected response. An unknown field has its native name, and a
	// synthesized value has the place where it would be. The pointer continues
	// inside native JSON, although that is stored as a string.
	Path string `json:"path"`
	// Detail says what happened, in a few words.
	Detail string `json:"detail"`
	// From and To are the names before and after a rename (see [Report.AddRename]);
	// empty for other losses.
	From string `json:"from" stored:"if=renamed"`
	To   string `json:"to" stored:"if=renamed"`
}

// renamed reports whether From or To is set.
func (l *Loss) renamed() bool { return l.From != "" || l.To != "" }

func (l Loss) String() string {
	return fmt.Sprintf("%s (%s) %s: %s", l.Kind, l.Severity, l.Path, l.Detail)
}

// Report lists what a conversion could not keep as it was. The zero value is
// an empty report: nothing was lost.
//
//stored:top report
type Report struct {
	Losses []Loss `json:"losses,omitzero"`
}

// Add appends a loss. A nil report takes none.
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

// AddRename appends a loss of the kind [Renamed]: what is the thing, in a word or
// two, whose name from is written as to.
func (r *Report) AddRename(sev Severity, path, what, from, to string) {
	if r == nil {
		return
	}
	r.Losses = append(r.Losses, Loss{
		Kind: Renamed, Severity: sev, Path: path, From: from, To: to,
		Detail: fmt.Sprintf("%s %.80q written as %q", what, from, to),
	})
}

// Merge appends the losses of another report, their paths below prefix.
func (r *Report) Merge(prefix string, o Report) {
	if r == nil {
		return
	}
	for _, l := range o.Losses {
		l.Path = prefix + l.Path
		r.Losses = append(r.Losses, l)
	}
}

// Err returns a [*LossError] when a loss is at least as severe as limit.
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

// LossError says that a conversion lost more than its caller allows.
type LossError struct {
	Losses []Loss `json:"losses,omitzero"`
}

func (e *LossError) Error() string {
	if e == nil || len(e.Losses) == 0 {
		return "dragoman: conversion lost nothing"
	}
	return fmt.Sprintf("dragoman: conversion lost %d thing(s) that must be kept; first: %s", len(e.Losses), e.Losses[0])
}
