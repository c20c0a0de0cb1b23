package interop

import (
	"encoding/json"
	"errors"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/toolwire"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// ReadCall reads a call object of the target's dialect. A call with a duplicate field, or with
// a field of the wrong type, is returned with its Problem. Only input that is not an object, or
// a format without a reader, is an error.
func (r *Registry) ReadCall(obj json.RawMessage, at extra.Path, rep *dragoman.Report) (*dragoman.ToolCall, error) {
	return r.ReadCallValue(jsonwire.Value{Raw: obj}, at, rep)
}

// ReadCallValue is ReadCall for an object that was partly checked before.
func (r *Registry) ReadCallValue(obj jsonwire.Value, at extra.Path, rep *dragoman.Report) (*dragoman.ToolCall, error) {
	if r.ownCodec == nil {
		return r.readCallAs(dragoman.Format(string(r.target.Dialect)+"."+toolwire.TypeOfValue(obj)), obj, at, rep)
	}
	return r.readCallAs(r.ownCodec.CallFormat(obj), obj, at, rep)
}

func (r *Registry) readCallAs(format dragoman.Format, obj jsonwire.Value, at extra.Path, rep *dragoman.Report) (*dragoman.ToolCall, error) {
	if a, ok := r.calls[format]; ok {
		c, sub, err := a.InspectCall(obj.Raw)
		rep.Merge(at.String(), sub)
		if err != nil {
			return c, err
		}
		if c == nil {
			return nil, toolwire.Fail(format, errEmptyResult)
		}
		r.ResolveCall(c, at, rep)
		return c, nil
	}
	c, read, err := r.readCall(format, obj)
	if err != nil {
		return nil, err
	}
	if read.Trimmed {
		r.rewritten++
	}
	r.settleCall(c, read.Sound, at, rep)
	return c, nil
}

// errEmptyResult reports that an accessor returned neither a value nor an error.
var errEmptyResult = errors.New("the accessor found nothing")

// readCall reads a call of a built-in format from its wire object.
func (r *Registry) readCall(format dragoman.Format, obj jsonwire.Value) (c *dragoman.ToolCall, read toolwire.CallReading, err error) {
	codec := r.callCodec(format)
	if codec == nil {
		return nil, read, errNoAccessor("call", format)
	}
	c = &dragoman.ToolCall{}
	rd := obj.Reader()
	defer rd.Return()
	read = codec.ReadCall(rd, c)
	if err := rd.End(); err != nil {
		return nil, read, toolwire.Fail(format, err)
	}
	return c, read, nil
}
