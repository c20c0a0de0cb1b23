package toolwire

import (
	"encoding/json"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// DecodeTool returns the definition that read reads from an object, with its source.
func DecodeTool(format dragoman.Format, obj json.RawMessage, read func(rd *jsonwire.Reader, s *dragoman.ToolSpec)) ([]dragoman.ToolSpec, error) {
	rd := jsonwire.NewReader(obj)
	specs := []dragoman.ToolSpec{{Source: &dragoman.ToolSource{Format: format, JSON: obj}}}
	s := &specs[0]
	read(rd, s)
	if err := rd.End(); err != nil {
		return nil, Fail(format, err)
	}
	s.Source.Mirror = s.Fingerprint()
	return specs, nil
}

// ReadHosted reads a tool that its provider defines.
func ReadHosted(rd *jsonwire.Reader, s *dragoman.ToolSpec) {
	s.Kind = codes.ToolHosted
	s.Name = HostedName(rd)
}

// HostedName returns the name that a provider gives its own tool.
func HostedName(rd *jsonwire.Reader) string {
	name, typ := "", ""
	for key := range rd.Object() {
		switch {
		case string(key) == "name" && rd.Kind() == '"':
			name = rd.String()
		case string(key) == "type" && rd.Kind() == '"':
			typ = rd.String()
		default:
			rd.Skip()
		}
	}
	if name == "" {
		return typ
	}
	return name
}

// ReadSchema reads a schema; null is the same as no schema.
func ReadSchema(rd *jsonwire.Reader) json.RawMessage {
	if rd.Null() {
		return nil
	}
	return rd.Raw()
}

// ReadStrict reads a strict flag; null leaves it unset.
func ReadStrict(rd *jsonwire.Reader, s *dragoman.ToolSpec) {
	switch {
	case rd.Null():
	case rd.Bool():
		s.Strict = codes.StrictOn
	default:
		s.Strict = codes.StrictOff
	}
}

// TypeOf returns the field "type" of an object, or "".
func TypeOf(obj []byte) string { return TypeOfValue(jsonwire.Value{Raw: obj}) }

// TypeOfValue is like TypeOf, for an object that was already scanned.
func TypeOfValue(obj jsonwire.Value) string {
	r := obj.Reader()
	defer r.Return()
	typ := ""
	if r.Kind() != '{' {
		return ""
	}
	for key := range r.Object() {
		if string(key) == "type" && r.Kind() == '"' {
			typ = r.StringOneOf("function", "tool_use", "custom", "function_call")
		} else {
			r.Skip()
		}
	}
	return typ
}

// ToolFields lists the optional properties of a tool that a format has a field for.
type ToolFields struct{ Deferred, Examples, Annotations, OutputSchema, Cache bool }

// ReportMissing reports the properties of a tool that a format has no field for.
func ReportMissing(s *dragoman.ToolSpec, says ToolFields, at extra.Path, rep *dragoman.Report) {
	if s.Deferred && !says.Deferred {
		rep.Add(dragoman.Lowered, dragoman.Warn, at.String(), "deferred tool sent from the start")
	}
	if len(s.Examples) > 0 && !says.Examples {
		rep.Add(dragoman.Dropped, dragoman.Info, at.String(), "input examples")
	}
	if s.Annotations != (dragoman.Annotations{}) && !says.Annotations {
		rep.Add(dragoman.Dropped, dragoman.Info, at.String(), "annotations: they are hints for the client that runs the tool")
	}
	if s.OutputSchema != nil && !says.OutputSchema {
		rep.Add(dragoman.Dropped, dragoman.Info, at.String(), "output schema")
	}
	if s.Cache != nil && !says.Cache {
		rep.Add(dragoman.Dropped, dragoman.Info, at.String(), "cache breakpoint after a tool: the target caches automatically")
	}
}

// WriteDeferred writes the flag of a tool that is loaded later, if the target accepts
// one.
func WriteDeferred(v View, w *jsonwire.Writer, s *dragoman.ToolSpec, at extra.Path, rep *dragoman.Report) {
	switch {
	case !s.Deferred:
	case v.Caps().NoDeferred:
		rep.Add(dragoman.Lowered, dragoman.Warn, at.String(), "deferred tool sent from the start")
	default:
		w.BoolField("defer_loading", true)
	}
}

// RefusesCache reports whether the target accepts no cache breakpoint. If so, it
// reports the dropped one (quirk D31).
func RefusesCache(v View, at extra.Path, rep *dragoman.Report) bool {
	refuses := v.Caps().NoCacheBreakpoints
	if refuses {
		rep.Add(dragoman.Dropped, dragoman.Info, at.String(), "cache breakpoint: the target accepts none")
	}
	return refuses
}

// ReadCacheHint reads the value of a cache breakpoint; it returns nil for null.
func ReadCacheHint(r *jsonwire.Reader) *dragoman.CacheHint {
	hint := &dragoman.CacheHint{}
	if r.Null() {
		return nil
	}
	for key := range r.Object() {
		if string(key) == "ttl" {
			hint.TTL = r.String()
		} else {
			r.Skip()
		}
	}
	return hint
}

// CacheReader reads a field that marks a cache breakpoint. It returns false, and reads
// nothing, for any other field.
type CacheReader func(rd *jsonwire.Reader, key []byte, hint **dragoman.CacheHint, e **dragoman.Extra) bool

// ReadText reads a text part with the fields "type" and "text". Dialects differ
// in the field that marks a cache breakpoint.
func ReadText(rd *jsonwire.Reader, d dragoman.Dialect, readCache CacheReader) *dragoman.Text {
	t := &dragoman.Text{}
	for key := range rd.Object() {
		switch string(key) {
		case "type":
			rd.Skip()
		case "text":
			t.Text = rd.String()
		default:
			if !readCache(rd, key, &t.Cache, &t.Extra) {
				extra.Add(&t.Extra, d, "", key, rd.Raw())
			}
		}
	}
	return t
}

// HasField reports whether a field of dialect d is stored at path.
func HasField(e *dragoman.Extra, d dragoman.Dialect, path string) bool {
	_, ok := extra.Get(e, d, path)
	return ok
}

// ObjectHas reports whether an object has a field.
func ObjectHas(obj json.RawMessage, field string) bool {
	rd := jsonwire.NewReader(obj)
	found := false
	for key := range rd.Object() {
		found = found || string(key) == field
		rd.Skip()
	}
	return found
}

// Quote returns a string as JSON.
func Quote(s string) []byte {
	var w jsonwire.Writer
	w.String(s)
	return w.Buf
}
