package interop

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/toolwire"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// InspectSchema returns the canonical form of a tool definition: one tool, or all tools of a
// namespace.
func (r *Registry) InspectSchema(obj dragoman.Native) ([]dragoman.ToolSpec, dragoman.Report, error) {
	var rep dragoman.Report
	specs, err := r.readToolAs(obj.Format, obj.JSON, extra.At(""), &rep)
	return specs, rep, err
}

// InspectCall returns the canonical form of a call, with its payload format. If the format is
// empty, it is recognized by the shape of the object: see [Registry.RecognizeCall].
func (r *Registry) InspectCall(obj dragoman.Native) (*dragoman.ToolCall, dragoman.Report, error) {
	var rep dragoman.Report
	format, err := r.callFormat(obj)
	if err != nil {
		return nil, rep, err
	}
	c, err := r.readShapedCall(format, obj.JSON, extra.At(""), &rep)
	if err == nil && c.PayloadFormat == "" {
		c.PayloadFormat = format
	}
	return c, rep, err
}

// errNoAdapter returns the error for a schema, call or result that cannot be written.
func errNoAdapter(kind string, to dragoman.Format) error {
	if to == "" {
		return fmt.Errorf("interop: no target format for the %s; name one", kind)
	}
	return fmt.Errorf("interop: no %s adapter for the format %s: contribute one", kind, to)
}

// errNoAccessor returns the error for a call or result that cannot be read.
func errNoAccessor(kind string, from dragoman.Format) error {
	if from == "" {
		return fmt.Errorf("interop: the %s has no format; set Native.Format", kind)
	}
	return fmt.Errorf("interop: no %s accessor for the format %s: contribute one", kind, from)
}

// callFormat returns the format of a call, recognized by its shape if it is empty.
func (r *Registry) callFormat(obj dragoman.Native) (dragoman.Format, error) {
	if obj.Format != "" {
		return obj.Format, nil
	}
	if f := r.RecognizeCall(obj.JSON); f != "" {
		return f, nil
	}
	return "", errors.New("interop: no known format of calls has this shape; name the format, or contribute a CallAccessor")
}

// InspectResult returns the canonical form of a result. An error that only the text reports is
// not detected: without a flag the outcome is unknown. A part that holds a result
// ("functionResponse"), and the inner object of one ("toolResult"), are read as the result. A
// result whose only content is data of the type "provider_native_tool_result" has its Envelope,
// and the text for other formats as content.
func (r *Registry) InspectResult(obj dragoman.Native) (*dragoman.ToolResult, dragoman.Report, error) {
	var rep dragoman.Report
	res, err := r.readShapedResult(obj.Format, obj.JSON, extra.At(""), &rep)
	if err == nil {
		res = unwrapEnvelope(res)
	}
	return res, rep, err
}

// ConvertSchemas writes tool definitions in the format to, in order. A definition already in
// that format passes through byte for byte. A definition that cannot be converted is dropped
// and reported.
func (r *Registry) ConvertSchemas(objs []dragoman.Native, to dragoman.Format) ([]dragoman.Native, dragoman.Report, error) {
	var rep dragoman.Report
	var out []dragoman.Native
	for i, obj := range objs {
		at := extra.Elem("", i)
		if done, err := r.convertDirectly(codes.SchemaObject, obj, to, &out, at, &rep); err != nil {
			return out, rep, err
		} else if done {
			continue
		}
		specs, err := r.readToolAs(obj.Format, obj.JSON, at, &rep)
		if err != nil {
			rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "%v", err)
			continue
		}
		for j := range specs {
			var w jsonwire.Writer
			ok := false
			switch {
			case specs[j].Kind == codes.ToolHosted && !r.builtIn(obj.Format):
				rep.Add(dragoman.Dropped, dragoman.Serious, at.String(), noAccessor(obj.Format))
			case specs[j].Kind == codes.ToolHosted:
				rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "tool %q (%s) is %s, and cannot be expressed as %s", specs[j].Name, obj.Format, r.notSendable(obj.Format), to)
			case r.isNamespace(to):
				return out, rep, fmt.Errorf("interop: a namespace can be written only as a whole: convert all its tools to %s", r.toolCodec(to).Traits().Function)
			default:
				restore := r.flattenFor(r.toolCodec(to))
				ok, err = r.writeToolAs(&w, to, &specs[j], at, &rep)
				if restore(); err != nil {
					return out, rep, err
				}
			}
			if ok {
				out = append(out, dragoman.Native{Format: to, JSON: w.Buf})
			}
		}
	}
	return out, rep, nil
}

func (r *Registry) isNamespace(f dragoman.Format) bool {
	c := r.toolCodec(f)
	return c != nil && f == c.Traits().Namespace
}

// ConvertCalls writes calls in the format to, in order. A call already in that format passes
// through byte for byte. A part that holds a call ("functionCall") is written as the call
// alone. The inner object of a call ("function" or "toolUse") is written as the whole call. An
// empty format is recognized by the shape of the object: see [Registry.RecognizeCall].
func (r *Registry) ConvertCalls(objs []dragoman.Native, to dragoman.Format) ([]dragoman.Native, dragoman.Report, error) {
	objs = slices.Clone(objs)
	for i := range objs {
		format, err := r.callFormat(objs[i])
		if err != nil {
			return nil, dragoman.Report{}, fmt.Errorf("element %d: %w", i, err)
		}
		objs[i].Format = format
	}
	return r.convert(codes.CallObject, objs, to, func(w *jsonwire.Writer, obj dragoman.Native, at extra.Path, rep *dragoman.Report) error {
		c, err := r.readShapedCall(obj.Format, obj.JSON, at, rep)
		if err != nil {
			return err
		}
		if c.ID == "" {
			reportNoID(r.callCodec(to), to, at, rep)
		}
		defer r.flattenFor(r.callCodec(to))()
		return r.writeCallAs(w, to, c, at, rep)
	})
}

// reportNoID reports that a call or result without an id is written in a format that requires
// one. No id can be generated for it, because a single object has no conversation in which to
// pair it.
func reportNoID(codec toolwire.Codec, to dragoman.Format, at extra.Path, rep *dragoman.Report) {
	if codec != nil && codec.Traits().RequiresIDs {
		rep.Addf(dragoman.Lowered, dragoman.Warn, at.String(), "there is no call id, which %s requires; convert the whole conversation instead", to)
	}
}

// ConvertResults writes results in the format to, in order. A result without a call id is
// reported if the format requires one. Media that the format cannot carry is reported as
// dropped. A part that holds a result ("functionResponse") is written as the result alone,
// and the inner object of one ("toolResult") as the whole block.
func (r *Registry) ConvertResults(objs []dragoman.Native, to dragoman.Format) ([]dragoman.Native, dragoman.Report, error) {
	return r.convert(codes.ResultObject, objs, to, func(w *jsonwire.Writer, obj dragoman.Native, at extra.Path, rep *dragoman.Report) error {
		res, err := r.readShapedResult(obj.Format, obj.JSON, at, rep)
		if err != nil {
			return err
		}
		if res.CallID == "" {
			reportNoID(r.resultCodec(to), to, at, rep)
		}
		defer r.flattenFor(r.resultCodec(to))()
		spill, err := r.writeResultAs(w, to, res, at, rep)
		for _, p := range spill {
			rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "%s in a result cannot be expressed as %s", p.Kind(), to)
		}
		return err
	})
}

func (r *Registry) convert(kind string, objs []dragoman.Native, to dragoman.Format,
	one func(*jsonwire.Writer, dragoman.Native, extra.Path, *dragoman.Report) error,
) ([]dragoman.Native, dragoman.Report, error) {
	var rep dragoman.Report
	out := make([]dragoman.Native, 0, len(objs))
	for i, obj := range objs {
		at := extra.Elem("", i)
		if done, err := r.convertDirectly(kind, obj, to, &out, at, &rep); err != nil {
			return out, rep, err
		} else if done {
			continue
		}
		var w jsonwire.Writer
		if err := one(&w, obj, at, &rep); err != nil {
			return out, rep, fmt.Errorf("element %d: %w", i, err)
		}
		out = append(out, dragoman.Native{Format: to, JSON: w.Buf})
	}
	return out, rep, nil
}

// convertDirectly handles the two direct cases: an object that is already in the format, and a
// contributed adapter for both formats.
func (r *Registry) convertDirectly(kind string, obj dragoman.Native, to dragoman.Format, out *[]dragoman.Native, at extra.Path, rep *dragoman.Report) (bool, error) {
	if obj.Format == to {
		if _, contributed := r.calls[to]; kind == codes.CallObject && !contributed {
			if shape := r.shapeOf(to, obj.JSON); len(shape.Object) != len(obj.JSON) {
				obj.JSON = shape.Object
				if shape.Signature != "" {
					rep.Add(dragoman.Dropped, dragoman.Warn, at.String()+"/thoughtSignature", "the signature belongs to the part around the call")
				}
			}
		}
		if _, contributed := r.results[to]; kind == codes.ResultObject && !contributed {
			var around []dragoman.Field
			obj.JSON, around = r.resultShape(to, obj.JSON)
			for _, f := range around {
				rep.Add(dragoman.Dropped, dragoman.Warn, at.String()+f.Path, "the field belongs to the part around the result")
			}
		}
		*out = append(*out, obj)
		return true, nil
	}
	raw, done, err := r.adaptDirectly(kind, obj.Format, []dragoman.Format{to}, obj.JSON, at, rep)
	if done && err == nil {
		*out = append(*out, dragoman.Native{Format: to, JSON: raw})
	}
	return done, err
}

func (r *Registry) adaptDirectly(kind string, from dragoman.Format, to []dragoman.Format, obj json.RawMessage, at extra.Path, rep *dragoman.Report) (json.RawMessage, bool, error) {
	for _, t := range to {
		if a, ok := r.adapters[adapterKey{kind, from, t}]; ok {
			raw, sub, err := a.Adapt(dragoman.AdapterInput{Native: obj})
			rep.Merge(at.String(), sub)
			return raw, true, err
		}
	}
	return nil, false, nil
}

// SanitizeCall returns a copy of a call that is safe to keep in a history.
//
//   - Arguments that are not JSON become {}. Valid JSON of any type is unchanged. So are
//     arguments that repeat a key, because the copy goes back to where the call came from.
//   - Text payloads and unknown shapes are unchanged.
//   - If the format is empty, it is recognized by the shape of the object and set in the copy.
//   - A call of a contributed format is rewritten by its adapter. If there is none, the report
//     says that the call is unchanged.
//
// The input is never changed.
func (r *Registry) SanitizeCall(obj dragoman.Native) (dragoman.Native, dragoman.Report) {
	out := dragoman.Native{Format: obj.Format, JSON: slices.Clone(obj.JSON)}
	var rep dragoman.Report
	if obj.Format == "" {
		obj.Format = r.RecognizeCall(obj.JSON)
		out.Format = obj.Format
	}
	if a, ok := r.calls[obj.Format]; ok {
		r.sanitizeContributed(a, &out, &rep)
		return out, rep
	}
	codec := r.callCodec(obj.Format)
	if codec == nil || obj.Format != codec.Traits().Call || codec.Traits().ArgumentsPath == nil {
		return out, rep
	}
	path := codec.Traits().ArgumentsPath
	shape := r.shapeOf(obj.Format, obj.JSON)
	if shape.Inner {
		path = path[len(path)-1:]
	}
	// Check the wire object itself, not what the registry would make of it.
	c, _, err := r.readCall(obj.Format, jsonwire.Value{Raw: shape.Object})
	if err != nil || c.Payload == codes.PayloadText || c.Problem != nil && c.Problem.Code == codes.ProblemUnreadable {
		return out, rep
	}
	why := "the arguments are blank"
	if strings.TrimSpace(c.Arguments) != "" {
		p := dragoman.CheckArguments(c.Arguments)
		if p == nil || p.Code != codes.ProblemInvalidJSON {
			return out, rep
		}
		why = p.Message
	}
	clean, err := jsonwire.ReplaceString(obj.JSON, "{}", path)
	if err != nil || bytes.Equal(clean, obj.JSON) {
		return out, rep
	}
	rep.Addf(dragoman.Lowered, dragoman.Warn, "/"+strings.Join(path, "/"), "arguments written as {}: %s", why)
	out.JSON = clean
	return out, rep
}
