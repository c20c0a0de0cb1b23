package blockwire

import (
	"fmt"
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/interop"
)

// Toolbox holds the tools that a request offers to the model.
type Toolbox struct {
	// API names the target in errors.
	API   string
	Specs []dragoman.ToolSpec
	// Index holds the index of each tool in the request, if the list was narrowed;
	// otherwise nil.
	Index []int
	// Written is the number of tools that were written; lost are the positions of those
	// that could not be.
	Written int
	lost    []int
}

// Keep narrows the list to the given tools, which are at these positions of it.
func (t *Toolbox) Keep(specs []dragoman.ToolSpec, places []int) {
	if t.Index != nil {
		for i, at := range places {
			places[i] = t.Index[at]
		}
	}
	t.Specs, t.Index = specs, places
}

// Allow narrows the list to the tools that a choice allows, for a wire that cannot
// express such a choice (quirk E9).
func (t *Toolbox) Allow(refs []dragoman.ToolRef, of int, rep *dragoman.Report) {
	t.Keep(wirekit.NamedTools(t.Specs, refs))
	rep.Addf(dragoman.Lowered, dragoman.Warn, "/tool_choice", "the API cannot restrict a choice to some tools; %d of %d tools are sent", len(t.Specs), of)
}

// Write writes the tools as elements of a list, without cache breakpoints that exceed
// the limit, and records the tools that could not be written.
func (t *Toolbox) Write(w *jsonwire.Writer, reg *interop.Registry, cache *Breakpoints, rep *dragoman.Report) error {
	first := len(rep.Losses)
	n, err := reg.WriteTools(w, cache.Tools(t.Specs, rep), rep)
	if err != nil {
		return fmt.Errorf("%s: tools: %w", t.API, err)
	}
	t.Written, t.lost = n, wirekit.LostTools(rep.Losses[first:])
	wirekit.PlaceTools(rep.Losses[first:], t.Index)
	return nil
}

// Holds reports whether a chosen tool was written.
func (t *Toolbox) Holds(ref dragoman.ToolRef) bool {
	if ref.Native != nil {
		return false
	}
	for i := range t.Specs {
		if s := &t.Specs[i]; ref.Name == s.Name && ref.Namespace == s.Namespace && !slices.Contains(t.lost, i) {
			return true
		}
	}
	return false
}

// Check refuses a choice that cannot be encoded. A named tool that is not sent is an
// error; it never silently becomes auto (quirk E5). A request that declares no tools
// needs no choice (quirk E3).
func (t *Toolbox) Check(c *dragoman.ToolChoice) error {
	switch {
	case c == nil:
		return nil
	case !wirekit.KnownChoice(c.Mode):
		return fmt.Errorf("%s: %w: /tool_choice: unknown mode %.40q", t.API, dragoman.ErrInvalid, c.Mode)
	case c.Mode != dragoman.ChoiceTool, len(t.Specs) == 0:
		return nil
	case len(c.Tools) != 1:
		return fmt.Errorf("%s: a forced tool choice names %d tools, want one: %w", t.API, len(c.Tools), dragoman.ErrUnsupported)
	case !t.Holds(c.Tools[0]):
		return fmt.Errorf("%s: tool choice %q names a tool that is not sent: %w", t.API, c.Tools[0].Name, dragoman.ErrUnsupported)
	default:
		return nil
	}
}
