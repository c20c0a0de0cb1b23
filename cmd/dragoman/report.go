package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/serving/sniff"
)

// failOn holds the losses that --fail-on forbids: kinds, and a minimum severity.
type failOn struct {
	kinds    []dragoman.LossKind
	severity dragoman.Severity
	any      bool // whether severity is set
}

var lossKinds = []dragoman.LossKind{dragoman.Dropped, dragoman.Lowered, dragoman.Renamed, dragoman.Synthesized, dragoman.Moved}

func parseFailOn(words []string) (failOn, error) {
	var f failOn
	for _, w := range words {
		var s dragoman.Severity
		switch {
		case slices.Contains(lossKinds, dragoman.LossKind(w)):
			f.kinds = append(f.kinds, dragoman.LossKind(w))
		case s.UnmarshalText([]byte(w)) == nil:
			if !f.any || s < f.severity {
				f.severity = s
			}
			f.any = true
		default:
			return f, unknownValue("--fail-on", w, "dropped", "lowered", "renamed", "synthesized", "moved", "info", "warn", "serious")
		}
	}
	return f, nil
}

// check returns an error if there are losses that --fail-on forbids.
func (f failOn) check(losses []dragoman.Loss) error {
	n := 0
	for _, l := range losses {
		if slices.Contains(f.kinds, l.Kind) || f.any && l.Severity >= f.severity {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	return &exitError{exitLossy, fmt.Errorf("%s forbidden by --fail-on", plural(n, "loss", "losses"))}
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// step is a step of a conversion. It determines which document the paths of its losses
// point into.
type step string

const (
	reading     step = "reading"     // paths point into the input
	normalizing step = "normalising" // paths point into the canonical form after reading
	writing     step = "writing"     // paths point into the canonical form after normalizing
)

// steps lists all steps in order, each with the heading of its losses.
var steps = [...]struct {
	step  step
	title string
}{
	{reading, "Lost while reading (paths are in the input):\n"},
	{normalizing, "Lost while normalizing (paths are in the canonical form):\n"},
	{writing, "Lost while writing (paths are in the canonical form):\n"},
}

// loss is a loss and the step in which it occurred.
type loss struct {
	Step     step              `json:"step"`
	Kind     dragoman.LossKind `json:"kind"`
	Severity dragoman.Severity `json:"severity"`
	Path     string            `json:"path"`
	Detail   string            `json:"detail"`
	From     string            `json:"from,omitempty"`
	To       string            `json:"to,omitempty"`
}

// converted is the report of a conversion as JSON. docs/command.md describes it.
type converted struct {
	From    dragoman.Dialect   `json:"from"`
	To      dragoman.Dialect   `json:"to"`
	Kind    sniff.Kind         `json:"kind"`
	Because string             `json:"because"`
	Or      []dragoman.Dialect `json:"or,omitempty"`
	Losses  []loss             `json:"losses"`
	Error   string             `json:"error,omitempty"`
}

func (c converted) writeJSON(w io.Writer) error {
	if c.Losses == nil {
		c.Losses = []loss{} // scripts expect a list, not null
	}
	return writeJSON(w, c)
}

// writeJSON writes v as one JSON document on one line.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// finish writes the report of a conversion to w and returns the error to exit with. With
// JSON reports, err is part of the report, so that standard error holds one JSON document.
func (c converted) finish(w io.Writer, asJSON bool, err error) error {
	if err != nil {
		c.Error = message(err)
	}
	var werr error
	switch {
	case asJSON:
		werr = c.writeJSON(w)
	case c.From != "":
		werr = c.writeText(w)
	}
	var coded *exitError
	switch {
	case err == nil && werr != nil:
		return failed("%w", werr)
	case asJSON && errors.As(err, &coded):
		return &exitError{code: coded.code}
	default:
		return err
	}
}

func (c converted) writeText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Read as %s, %s: %s.\n", c.From, c.Kind, c.Because)
	if len(c.Or) > 0 {
		fmt.Fprintf(&b, "It could also be %s; use --from to choose.\n", list(c.Or, "or"))
	}
	for _, s := range steps {
		if lines := c.linesOf(s.step); len(lines) > 0 {
			b.WriteString(s.title)
			writeLosses(&b, lines, "  ")
		}
	}
	if len(c.Losses) == 0 && c.Error == "" {
		b.WriteString("Nothing was lost.\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// linesOf returns the losses of one step.
func (c converted) linesOf(s step) (out []dragoman.Loss) {
	for _, l := range c.Losses {
		if l.Step == s {
			out = append(out, dragoman.Loss{Kind: l.Kind, Severity: l.Severity, Path: l.Path, Detail: l.Detail})
		}
	}
	return out
}

// aboveInfo returns the losses above severity info, which change the meaning.
func (c converted) aboveInfo() (out []loss) {
	for _, l := range c.Losses {
		if l.Severity > dragoman.Info {
			out = append(out, l)
		}
	}
	return out
}

// lines returns the losses of all steps.
func (c converted) lines() (out []dragoman.Loss) {
	for _, s := range steps {
		out = append(out, c.linesOf(s.step)...)
	}
	return out
}

// writeLosses writes one line per loss.
func writeLosses(b *strings.Builder, losses []dragoman.Loss, indent string) {
	for _, l := range losses {
		at := l.Path
		if at == "" {
			at = "(whole)"
		}
		fmt.Fprintf(b, "%s%-7s %-11s %s: %s\n", indent, l.Severity, l.Kind, at, l.Detail)
	}
}

func list[T ~string](words []T, last string) string {
	var b strings.Builder
	for i, w := range words {
		switch {
		case i > 0 && i == len(words)-1:
			b.WriteString(" " + last + " ")
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(string(w))
	}
	return b.String()
}

// reportFormat parses the value of --report.
func reportFormat(word string) (asJSON bool, err error) {
	switch word {
	case "text":
		return false, nil
	case "json":
		return true, nil
	default:
		return false, unknownValue("--report", word, "text", "json")
	}
}
