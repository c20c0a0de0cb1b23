package provider

import (
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
)

// injected describes the tools that an extension wrote into the payload itself, before the
// request was encoded (requirement R6).
type injected struct {
	// any says that there is a list of tools, which may be empty; none says that it is empty.
	any, none bool
}

// injectedTools looks for tools that an extension wrote. They replace those of the request.
func (x *exchange) injectedTools() injected {
	place := "tools"
	if p := nativePlaces[x.limits.Dialect].tools; p != "" {
		place = p
	}
	tools := x.extended.Payload.Get(place)
	return injected{any: tools != nil, none: tools != nil && len(elements(tools)) == 0}
}

// request removes what may not be sent without tools if an extension sends none (quirk E3).
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

// losses removes those of the request's tools if they are not sent.
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
