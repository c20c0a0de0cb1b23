package provider

import (
	"bytes"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/provider/extension"
)

// injected describes the list of tools that an extension wrote into the payload before the
// request was encoded (requirement R6).
type injected struct {
	// hasList is set if there is a list of tools; none is set if the list is empty.
	hasList, isEmpty bool
}

// injectedTools reports whether an extension wrote a list of tools. The list replaces the
// tools of the request.
func (x *exchange) injectedTools() injected {
	tools := x.extended.Payload.Get(x.wire.Body.Tools)
	return injected{hasList: tools != nil, isEmpty: tools != nil && len(elements(tools)) == 0}
}

// adaptRequest removes the settings that servers refuse without tools if the extension wrote an
// empty list (quirk E3). If the list is not empty, the settings stay: request declares the
// tools that they name, and the list of the extension replaces these declarations later.
func (t injected) adaptRequest(req *dragoman.Request, rep *dragoman.Report) {
	if t.hasList && !t.isEmpty {
		req.Tools = withChosenTools(req.Tools, req.ToolChoice)
	}
	if !t.isEmpty {
		return
	}
	if req.ToolChoice != nil {
		req.ToolChoice = nil
		rep.Add(dragoman.Dropped, dragoman.Warn, "/tool_choice", "the extension sends no tools to choose from")
	}
	if req.ParallelToolCalls != nil {
		req.ParallelToolCalls = nil
		rep.Add(dragoman.Dropped, dragoman.Info, "/parallel_tool_calls", "the extension sends no tools")
	}
}

// withChosenTools returns the tools of a request and those that only its choice names. The result
// is never empty.
func withChosenTools(tools []dragoman.ToolSpec, c *dragoman.ToolChoice) []dragoman.ToolSpec {
	out := slices.Clone(tools)
	declare := func(s dragoman.ToolSpec) {
		if !slices.ContainsFunc(out, func(o dragoman.ToolSpec) bool { return o.Name == s.Name && o.Namespace == s.Namespace }) {
			out = append(out, s)
		}
	}
	if c != nil {
		for _, ref := range c.Tools {
			if ref.Native == nil && ref.Name != "" && ref.Kind != codes.ToolHosted {
				declare(dragoman.ToolSpec{Name: ref.Name, Namespace: ref.Namespace, Kind: ref.Kind})
			}
		}
	}
	if len(out) == 0 {
		declare(dragoman.ToolSpec{Name: "tool"})
	}
	return out
}

// dropToolSettings removes the settings that servers refuse without tools if an
// Decorate hook emptied or deleted the list of tools in the payload (quirk E3). If it
// deleted the list, settings that it wrote itself stay: its server may have another place
// for tools.
func (x *exchange) dropToolSettings(before, payload []byte) ([]byte, error) {
	if bytes.Equal(before, payload) {
		return payload, nil
	}
	o, err := extension.NewObject(payload)
	if err != nil {
		return nil, err
	}
	had, err := extension.NewObject(before)
	if err != nil {
		return nil, err
	}
	tools := o.Get(x.wire.Body.Tools)
	if tools == nil && had.Get(x.wire.Body.Tools) == nil || len(elements(tools)) > 0 {
		return payload, nil
	}
	for _, setting := range x.wire.Body.ToolSettings {
		value := o.Get(setting)
		if value == nil || tools == nil && !bytes.Equal(value, had.Get(setting)) {
			continue
		}
		if setting == "parallel_tool_calls" {
			x.extended.Report.Add(dragoman.Dropped, dragoman.Info, "/parallel_tool_calls", "the extension sends no tools")
		} else {
			x.extended.Report.Add(dragoman.Dropped, dragoman.Warn, "/tool_choice", "the extension sends no tools to choose from")
		}
		if err := o.Delete(setting); err != nil {
			return nil, err
		}
	}
	return o.JSON(), nil
}

// filterLosses removes the losses of the request's tools if those tools are not sent.
func (t injected) filterLosses(all []dragoman.Loss) []dragoman.Loss {
	if !t.hasList {
		return all
	}
	var out []dragoman.Loss
	for _, l := range all {
		if l.Path != "/tools" && !strings.HasPrefix(l.Path, "/tools/") {
			out = append(out, l)
		}
	}
	return out
}
