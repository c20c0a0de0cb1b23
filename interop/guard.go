package interop

import (
	"encoding/json"
	"fmt"
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// guard makes the accessors and adapters of a contributor safe to call. A panic in one of them
// becomes an error. They get copies, so that they cannot change the request or the definition
// of a tool (requirement R5).
type guard struct {
	source string
	format dragoman.Format
}

// Format implements the accessors.
func (g guard) Format() dragoman.Format { return g.format }

// catch converts a panic to an error.
func (g guard) catch(hook string, err *error) {
	if v := recover(); v != nil {
		*err = fmt.Errorf("interop: %s of %q for %s panicked: %v", hook, g.source, g.format, v)
	}
}

type schemaGuard struct {
	guard
	accessor dragoman.SchemaAccessor
}

func (g schemaGuard) InspectSchema(obj json.RawMessage) (specs []dragoman.ToolSpec, rep dragoman.Report, err error) {
	defer g.catch("the schema accessor", &err)
	return g.accessor.InspectSchema(slices.Clone(obj))
}

type callGuard struct {
	guard
	accessor dragoman.CallAccessor
}

func (g callGuard) InspectCall(obj json.RawMessage) (c *dragoman.ToolCall, rep dragoman.Report, err error) {
	defer g.catch("the call accessor", &err)
	return g.accessor.InspectCall(slices.Clone(obj))
}

// recognizes calls the accessor's method Recognizes; known is false without that method. If the
// method panics, the object is not recognized.
func (g callGuard) recognizes(obj json.RawMessage) (yes, known bool) {
	rec, known := g.accessor.(interface{ Recognizes(json.RawMessage) bool })
	if !known {
		return false, false
	}
	defer func() {
		if recover() != nil {
			yes = false
		}
	}()
	return rec.Recognizes(slices.Clone(obj)), true
}

type resultGuard struct {
	guard
	accessor dragoman.ResultAccessor
}

func (g resultGuard) InspectResult(obj json.RawMessage) (res *dragoman.ToolResult, rep dragoman.Report, err error) {
	defer g.catch("the result accessor", &err)
	return g.accessor.InspectResult(slices.Clone(obj))
}

// adapterGuard also rejects output that is not JSON, which would make the whole request
// invalid.
type adapterGuard struct {
	guard
	kind    string
	to      dragoman.Format
	adapter dragoman.Adapter
}

func (g adapterGuard) Kind() string          { return g.kind }
func (g adapterGuard) From() dragoman.Format { return g.format }
func (g adapterGuard) To() dragoman.Format   { return g.to }

func (g adapterGuard) Adapt(in dragoman.AdapterInput) (obj json.RawMessage, rep dragoman.Report, err error) {
	defer guard{g.source, g.to}.catch("the "+g.kind+" adapter", &err)
	in.Native = slices.Clone(in.Native)
	if in.Schema != nil {
		s := *in.Schema
		s.Parameters, s.OutputSchema = slices.Clone(s.Parameters), slices.Clone(s.OutputSchema)
		if s.Source != nil {
			source := *s.Source
			source.JSON = slices.Clone(source.JSON)
			s.Source = &source
		}
		in.Schema = &s
	}
	if in.Call != nil {
		c := *in.Call
		in.Call = &c
	}
	if in.Result != nil {
		res := *in.Result
		res.Content = slices.Clone(res.Content)
		in.Result = &res
	}
	obj, rep, err = g.adapter.Adapt(in)
	if err == nil {
		if bad := jsonwire.Check(obj); bad != nil {
			err = fmt.Errorf("interop: the %s adapter of %q wrote invalid JSON for %s: %w", g.kind, g.source, g.to, bad)
		}
	}
	return obj, rep, err
}
