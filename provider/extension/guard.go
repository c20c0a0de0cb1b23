package extension

import (
	"encoding/json"
	"fmt"

	dragoman "github.com/dragoman-go/dragoman"
)

// guarded returns a contribution whose panics become errors, because it is called during
// encoding and decoding, outside of hooks. Nil elements panic here.
func guarded(c dragoman.Contribution) dragoman.Contribution {
	out := dragoman.Contribution{Source: c.Source, Accepts: c.Accepts}
	for _, a := range c.Schemas {
		out.Schemas = append(out.Schemas, schemaGuard{guard{c.Source, a.Format()}, a})
	}
	for _, a := range c.Calls {
		g := callGuard{guard{c.Source, a.Format()}, a}
		if rec, ok := a.(recognizer); ok {
			out.Calls = append(out.Calls, recognizingGuard{g, rec})
			continue
		}
		out.Calls = append(out.Calls, g)
	}
	for _, a := range c.Results {
		out.Results = append(out.Results, resultGuard{guard{c.Source, a.Format()}, a})
	}
	for _, a := range c.Adapters {
		out.Adapters = append(out.Adapters, adapterGuard{guard: guard{c.Source, a.From()}, kind: a.Kind(), to: a.To(), adapter: a})
	}
	return out
}

// guard holds the contributor and the format of an accessor or adapter.
type guard struct {
	source string
	format dragoman.Format
}

// Format returns the format at the time of the contribution.
func (g guard) Format() dragoman.Format { return g.format }

// catch converts a panic to an error.
func (g guard) catch(hook string, err *error) {
	if v := recover(); v != nil {
		*err = &Error{Extension: g.source, Hook: hook, Err: fmt.Errorf("panicked: %v", v)}
	}
}

type schemaGuard struct {
	guard
	accessor dragoman.SchemaAccessor
}

// InspectSchema implements [dragoman.SchemaAccessor].
func (g schemaGuard) InspectSchema(obj json.RawMessage) (_ []dragoman.ToolSpec, _ dragoman.Report, err error) {
	defer g.catch("inspect schema", &err)
	return g.accessor.InspectSchema(obj)
}

type callGuard struct {
	guard
	accessor dragoman.CallAccessor
}

// InspectCall implements [dragoman.CallAccessor].
func (g callGuard) InspectCall(obj json.RawMessage) (_ *dragoman.ToolCall, _ dragoman.Report, err error) {
	defer g.catch("inspect call", &err)
	return g.accessor.InspectCall(obj)
}

// recognizer is the optional part of a [dragoman.CallAccessor].
type recognizer interface {
	Recognizes(obj json.RawMessage) bool
}

// recognizingGuard is a [callGuard] whose accessor is a recognizer.
type recognizingGuard struct {
	callGuard
	recognizer
}

type resultGuard struct {
	guard
	accessor dragoman.ResultAccessor
}

// InspectResult implements [dragoman.ResultAccessor].
func (g resultGuard) InspectResult(obj json.RawMessage) (_ *dragoman.ToolResult, _ dragoman.Report, err error) {
	defer g.catch("inspect result", &err)
	return g.accessor.InspectResult(obj)
}

type adapterGuard struct {
	guard
	kind    string
	to      dragoman.Format
	adapter dragoman.Adapter
}

// Kind implements [dragoman.Adapter], like the other methods.
func (g adapterGuard) Kind() string          { return g.kind }
func (g adapterGuard) From() dragoman.Format { return g.format }
func (g adapterGuard) To() dragoman.Format   { return g.to }

func (g adapterGuard) Adapt(in dragoman.AdapterInput) (_ json.RawMessage, _ dragoman.Report, err error) {
	defer g.catch("adapt", &err)
	return g.adapter.Adapt(in)
}
