package wirekit

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/interop"
)

// NamedTools returns the tools that refs name, and their indexes among all tools, for wire
// formats that cannot restrict which tools may be called (quirks E2, E9).
func NamedTools(tools []dragoman.ToolSpec, refs []dragoman.ToolRef) (some []dragoman.ToolSpec, places []int) {
	allowed := make(map[[2]string]bool, len(refs))
	for _, ref := range refs {
		if ref.Native == nil {
			allowed[[2]string{ref.Namespace, ref.Name}] = true
		}
	}
	for i := range tools {
		if allowed[[2]string{tools[i].Namespace, tools[i].Name}] {
			some, places = append(some, tools[i]), append(places, i)
		}
	}
	return some, places
}

// CheckAllowedTools returns an error if a choice requires a call but none of its allowed tools
// is sent, as for a forced tool that was dropped (quirk E5). sent reports whether a
// tool is sent; api is the prefix of the error. A request without tools has no choice
// to write (quirk E3).
func CheckAllowedTools(api string, req *dragoman.Request, sent func(dragoman.ToolRef) bool) error {
	c := req.ToolChoice
	if c == nil || c.Mode != dragoman.ChoiceRequired || c.Tools == nil || len(req.Tools) == 0 || slices.ContainsFunc(c.Tools, sent) {
		return nil
	}
	return fmt.Errorf("%s: a call is required, but none of the allowed tools is sent: %w", api, dragoman.ErrUnsupported)
}

// CheckChosenTools returns an error if the choice of a request requires a call, but none
// of its tools was written (quirk E5). It is for dialects that send only the chosen
// tools. tools is the body field with their definitions. api is the prefix of the
// error.
func CheckChosenTools(api string, req *dragoman.Request, reg *interop.Registry, tools []byte) error {
	c := req.ToolChoice
	if c == nil || c.Tools == nil || c.Mode != dragoman.ChoiceTool && c.Mode != dragoman.ChoiceRequired || len(req.Tools) == 0 {
		return nil
	}
	names := functionNames(tools[bytes.IndexByte(tools, '['):])
	sent := func(ref dragoman.ToolRef) bool {
		return ref.Native == nil && names[reg.WireName(ref.Namespace, ref.Name)]
	}
	if c.Mode == dragoman.ChoiceTool && !sent(c.Tools[0]) {
		return fmt.Errorf("%s: tool choice %q names a tool that is not sent: %w", api, c.Tools[0].Name, dragoman.ErrUnsupported)
	}
	return CheckAllowedTools(api, req, sent)
}

// functionNames returns the names of function tools in a list of tools.
func functionNames(list []byte) map[string]bool {
	names := map[string]bool{}
	r := jsonwire.NewReader(list)
	for range r.Array() {
		for key := range r.Object() {
			if string(key) != "function" || r.Kind() != '{' {
				r.Skip()
				continue
			}
			for key := range r.Object() {
				if string(key) == "name" && r.Kind() == '"' {
					names[r.String()] = true
				} else {
					r.Skip()
				}
			}
		}
	}
	return names
}

// CheckForcedChoice returns an error if the choice of a request forces a tool, but all its tools were
// dropped (quirk E5). Encoders call it if they send no tools. A request that declares no
// tools needs no choice (quirk E3). api is the prefix of the error.
func CheckForcedChoice(api string, req *dragoman.Request) error {
	c := req.ToolChoice
	if c == nil || c.Mode != dragoman.ChoiceTool || len(req.Tools) == 0 {
		return nil
	}
	if len(c.Tools) != 1 {
		return fmt.Errorf("%s: a forced tool choice names %d tools, want one: %w", api, len(c.Tools), dragoman.ErrUnsupported)
	}
	return fmt.Errorf("%s: tool choice %q names a tool that is not sent: %w", api, c.Tools[0].Name, dragoman.ErrUnsupported)
}

// ReportChoice reports the fields of a tool choice, and of its tool references, that
// only their own dialect knows.
func ReportChoice(rep *dragoman.Report, c *dragoman.ToolChoice, d dragoman.Dialect) {
	extra.Report(rep, c.Extra, d, extra.At("/tool_choice"))
	for i := range c.Tools {
		extra.Report(rep, c.Tools[i].Extra, d, extra.Elem("/tool_choice/tools", i))
	}
}

// LostTools returns the indexes of the tools that are reported as not written.
func LostTools(losses []dragoman.Loss) (lost []int) {
	for i := range losses {
		l := &losses[i]
		if at, rest, ok := toolAt(l); ok && rest == "" && l.Kind == dragoman.Dropped && l.Severity == dragoman.Serious {
			lost = append(lost, at)
		}
	}
	return lost
}

// toolAt returns the tool index in the path of a loss and the rest of the path. ok is
// false for any other loss.
func toolAt(l *dragoman.Loss) (at int, rest string, ok bool) {
	number, below := strings.CutPrefix(l.Path, "/tools/")
	number, rest, _ = strings.Cut(number, "/")
	at, err := strconv.Atoi(number)
	return at, rest, below && err == nil
}

// PlaceTools makes the paths of losses in a narrowed list of tools refer to the whole
// list.
func PlaceTools(losses []dragoman.Loss, places []int) {
	for i := range losses {
		if at, rest, ok := toolAt(&losses[i]); ok && at < len(places) {
			losses[i].Path = strings.TrimSuffix("/tools/"+strconv.Itoa(places[at])+"/"+rest, "/")
		}
	}
}
