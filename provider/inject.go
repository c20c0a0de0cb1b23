package provider

import (
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
)

// injected describes the list of tools that an extension wrote into the payload before the
// request was encoded (requirement R6).
type injected struct {
	// any is set if there is a list of tools; none is set if the list is empty.
	any, none bool
}

// injectedTools reports whether an extension wrote a list of tools. The list replaces the
// tools of the request.
func (x *exchange) injectedTools() injected {
	place := "tools"
	if p := nativePlaces[x.limits.Dialect].tools; p != "" {
		place = p
	}
	tools := x.extended.Payload.Get(place)
	return injected{any: tools != nil, none: tools != nil && len(elements(tools)) == 0}
}

// request removes settings that servers refuse without tools if the extension wrote an
// empty list (quirk E3).
func (t injected) request(req *dragoman.Request, rep *dragoman.Report) {
	if !t.none {
		return
	}
	if req.ToolChoice != nil {
		req.ToolChoice = nil
		rep.Add(dragoman.Dropped, dragoman.Warn, "/tool_choice", "an extension sends no tools to choose from")
	}
	if req.ParallelToolCalls != nil {
		req.ParallelToolCalls = nil
		rep.Add(dragoman.Dropped, dragoman.Info, "/parallel_tool_calls", "an extension sends no tools")
	}
}

// losses removes the losses of the request's tools if those tools are not sent.
func (t injected) losses(all []dragoman.Loss) []dragoman.Loss {
	if !t.any {
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
