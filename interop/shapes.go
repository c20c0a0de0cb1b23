package interop

import (
	"encoding/json"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/toolwire"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// Programs store calls and results as the object of their dialect, but also with the object
// around it, such as a part with a "functionCall", or without the outer object, such as the
// "function" of a call. Decoders do not need these shapes: they know where the call is.

// partPrefix is the path under which calls and results store the fields of the
// object around them.
const partPrefix = "/part"

// shapeOf returns the shape of a call in a format. It returns an object unchanged
// if it has the form of its format or an unknown shape.
func (r *Registry) shapeOf(format dragoman.Format, obj json.RawMessage) toolwire.CallShape {
	if s, ok := r.callCodec(format).(toolwire.Shaper); ok {
		return s.CallObject(format, obj)
	}
	return toolwire.CallShape{Object: obj}
}

// resultShape returns a result in the form of its format, and the other fields of
// the object that holds it.
func (r *Registry) resultShape(format dragoman.Format, obj json.RawMessage) (object json.RawMessage, around []dragoman.Field) {
	c := r.resultCodec(format)
	if s, ok := c.(toolwire.Shaper); ok {
		object, rest := s.ResultObject(obj)
		return object, rest.For(c.Traits().Dialect)
	}
	return obj, nil
}

// readShapedCall reads a call whose shape may differ from that of its format.
func (r *Registry) readShapedCall(format dragoman.Format, obj json.RawMessage, at extra.Path, rep *dragoman.Report) (*dragoman.ToolCall, error) {
	if _, contributed := r.calls[format]; contributed {
		return r.readCallAs(format, jsonwire.Value{Raw: obj}, at, rep)
	}
	shape := r.shapeOf(format, obj)
	c, err := r.readCallAs(format, jsonwire.Value{Raw: shape.Object}, at, rep)
	if err != nil {
		return c, err
	}
	if shape.Signature != "" {
		c.Signature = shape.Signature
	}
	if shape.Around != nil {
		d := r.callCodec(format).Traits().Dialect
		for _, f := range shape.Around.For(d) {
			extra.Add(&c.Extra, d, partPrefix, extra.Name(f.Path), f.Value)
		}
	}
	return c, nil
}

// readShapedResult does the same for a result.
func (r *Registry) readShapedResult(format dragoman.Format, obj json.RawMessage, at extra.Path, rep *dragoman.Report) (*dragoman.ToolResult, error) {
	if _, contributed := r.results[format]; contributed {
		return r.readResultAs(format, obj, false, at, rep)
	}
	object, around := r.resultShape(format, obj)
	res, err := r.readResultAs(format, object, false, at, rep)
	if err == nil && around != nil {
		d := r.resultCodec(format).Traits().Dialect
		for _, f := range around {
			extra.Add(&res.Extra, d, partPrefix, extra.Name(f.Path), f.Value)
		}
	}
	return res, err
}
