package toolwire

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// FunctionTool reads and writes a tool in the form
// {"type":"function","function":{"name":…,"description":…,"parameters":…}}, for dialects
// that have no further fields.
type FunctionTool struct{ Dialect dragoman.Dialect }

// Read reads a tool. Unknown fields go to its Extra.
func (f FunctionTool) Read(rd *jsonwire.Reader, s *dragoman.ToolSpec) {
	for key := range rd.Object() {
		switch {
		case string(key) == "type":
			rd.Skip()
		case string(key) == "function" && rd.Kind() == '{':
			f.readFunction(rd, s)
		default:
			extra.Add(&s.Extra, f.Dialect, "", key, rd.Raw())
		}
	}
}

func (f FunctionTool) readFunction(rd *jsonwire.Reader, s *dragoman.ToolSpec) {
	for key := range rd.Object() {
		switch string(key) {
		case "name":
			s.Name = rd.String()
		case "description":
			s.Description = rd.String()
		case "parameters":
			s.Parameters = ReadSchema(rd)
		default:
			extra.Add(&s.Extra, f.Dialect, "/function", key, rd.Raw())
		}
	}
}

// Write writes a tool. It reports false if the codec cannot lower its schema.
func (f FunctionTool) Write(v View, codec Codec, w *jsonwire.Writer, s *dragoman.ToolSpec, wireName string, at extra.Path, rep *dragoman.Report) bool {
	low, ok := v.Lower(codec, s, codes.StrictOff, at, rep)
	if !ok {
		return false
	}
	ReportMissing(s, ToolFields{}, at, rep)
	w.BeginObject()
	w.StringField("type", "function")
	w.Key("function")
	w.BeginObject()
	w.StringField("name", wireName)
	w.StringFieldIf("description", low.Description)
	w.RawField("parameters", low.Schema)
	extra.Write(w, s.Extra, f.Dialect, "/function")
	w.EndObject()
	extra.End(w, s.Extra, f.Dialect, at, rep)
	return true
}
