package interop

import (
	"fmt"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
)

// AllowOnly restricts which tools the response to the request may call, for dialects that
// cannot express the restriction. Nil means all of them; an empty list means none. The decoder
// of the response calls [Registry.Forbid].
func (r *Registry) AllowOnly(tools []dragoman.ToolRef) {
	r.allowed = nil
	if tools == nil {
		return
	}
	r.allowed = make(map[toolID]bool, len(tools))
	for _, t := range tools {
		r.allowed[toolID{t.Namespace, t.Name}] = true
	}
}

// Forbids reports whether the request does not allow calls of a tool.
func (r *Registry) Forbids(namespace, name string) bool {
	return r.allowed != nil && !r.allowed[toolID{namespace, name}]
}

// Forbid marks a settled call of a response that the request did not allow: it must not run
// (quirks B37, E2). It reports whether the call is forbidden. A call that has a problem keeps
// it.
func (r *Registry) Forbid(c *dragoman.ToolCall) bool {
	if c.Hosted || !r.Forbids(c.Namespace, c.Name) {
		return false
	}
	if c.Problem == nil {
		why := "the request allowed no calls; answer without one"
		if len(r.allowed) > 0 {
			why = fmt.Sprintf("the request did not allow a call of %.80q; use one of the tools that were offered", c.Name)
		}
		c.Problem = &dragoman.CallProblem{Code: codes.ProblemStopped, Message: why, Offset: -1}
		r.rewritten++ // a client that gets the original bytes would not see the problem
	}
	return true
}
