package interop

import (
	"encoding/json"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/toolwire"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/schema"
)

// translations holds how the arguments of each written tool are translated; nil if they are the same
// on the wire.
type translations map[toolID]*schema.Lowered

func (r *Registry) storeLowered(s *dragoman.ToolSpec, low *schema.Lowered) {
	if !low.Translates() {
		low = nil
	}
	if r.translations == nil {
		r.translations = make(translations, len(r.names.tools))
	}
	r.translations[toolID{s.Namespace, s.Name}] = low
}

// Translates reports whether the arguments of a function call differ between the wire and the
// tool, which is given by its public name. They do for a freeform tool that was sent as a
// function, and for a tool whose schema the target could not accept in the author's form
// (quirks A10, A23, A42). Streamed fragments of such arguments are not what the tool will get.
func (r *Registry) Translates(namespace, name string) bool {
	spec := r.names.spec(toolID{namespace, name})
	return spec != nil && (spec.Kind == codes.ToolFreeform || r.translation(spec) != nil)
}

// translation returns how the arguments of a tool are translated; nil means unchanged. Some wires have
// their messages before their tools. For a tool that was not written yet, form writes it to a
// scratch buffer, and the lowered schema serves both.
func (r *Registry) translation(s *dragoman.ToolSpec) *schema.Lowered {
	id := toolID{s.Namespace, s.Name}
	low, known := r.translations[id]
	if known {
		return low
	}
	if t, err := r.wire(); err == nil && s.Kind == codes.ToolFunction {
		if r.lowered == nil {
			r.lowered = new(SchemaCache)
		}
		_, _ = r.writeTool(r.scratch.writer(), t, s, extra.At(""), r.scratch.report())
	}
	return r.translations[id]
}

// scratch is a buffer for output that is discarded.
type scratch struct {
	w   *jsonwire.Writer
	rep *dragoman.Report
}

func (s *scratch) writer() *jsonwire.Writer {
	if s.w == nil {
		s.w = new(jsonwire.Writer)
	}
	*s.w = jsonwire.Writer{Buf: s.w.Buf[:0]}
	return s.w
}

func (s *scratch) report() *dragoman.Report {
	if s.rep == nil {
		s.rep = new(dragoman.Report)
	}
	s.rep.Losses = s.rep.Losses[:0]
	return s.rep
}

// fromWire translates arguments that the model wrote into the form of the tool's author.
// Ambiguous arguments must not run.
func (r *Registry) fromWire(c *dragoman.ToolCall, s *dragoman.ToolSpec) {
	low := r.translation(s)
	if low == nil {
		return
	}
	args, err := low.FromWire(json.RawMessage(c.Arguments))
	if err != nil {
		c.Problem = &dragoman.CallProblem{
			Code: codes.ProblemDuplicateKey, Offset: -1,
			Message: "the arguments are ambiguous: " + err.Error(),
		}
		return
	}
	c.Arguments = string(args)
}

// toWire returns a call of the history as the target's model would have written it. Calls in a
// response are unchanged, because the client has its own tools.
func (r *Registry) toWire(c *dragoman.ToolCall, codec toolwire.Codec, at extra.Path, rep *dragoman.Report) *dragoman.ToolCall {
	if r.forResponse || c.Payload == codes.PayloadText || codec != r.ownCodec {
		return c
	}
	spec := r.names.spec(toolID{c.Namespace, c.Name})
	if spec == nil {
		return c
	}
	low := r.translation(spec)
	if low == nil {
		return c
	}
	args, err := low.ToWire(json.RawMessage(c.Arguments))
	switch {
	case err != nil:
		rep.Addf(dragoman.Lowered, dragoman.Warn, at.String()+"/arguments", "arguments written unchanged, not in the form of the lowered schema: %v", err)
		return c
	case string(args) == c.Arguments:
		return c
	}
	rep.Add(dragoman.Renamed, dragoman.Info, at.String()+"/arguments", "arguments written in the form of the lowered schema")
	out := *c
	out.Arguments = string(args)
	return &out
}
