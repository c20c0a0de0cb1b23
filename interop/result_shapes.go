package interop

import (
	"encoding/json"
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// readShapedResult reads a result whose shape may differ from that of its format: see
// [callShape].
func (r *Registry) readShapedResult(format dragoman.Format, obj json.RawMessage, at extra.Path, rep *dragoman.Report) (*dragoman.ToolResult, error) {
	if _, contributed := r.results[format]; contributed {
		return r.readResultAs(format, obj, false, at, rep)
	}
	object, part := resultShape(format, obj)
	res, err := r.readResultAs(format, object, false, at, rep)
	if err == nil {
		for _, f := range part.For(dragoman.Gemini) {
			extra.Add(&res.Extra, dragoman.Gemini, partPrefix, extra.Name(f.Path), f.Value)
		}
	}
	return res, err
}

// resultShape returns a result in the form of its format, and the other fields of the Gemini
// part that holds it. It returns an object unchanged if it has the form of its format or an
// unknown shape.
func resultShape(format dragoman.Format, obj json.RawMessage) (object json.RawMessage, part *dragoman.Extra) {
	switch format {
	case dragoman.FormatGeminiResult:
		if inner, rest, ok := geminiResultPart(obj); ok {
			return inner, rest
		}
	case dragoman.FormatBedrockResult:
		if hasField(obj, "toolUseId") && !hasField(obj, "toolResult") {
			return slices.Concat([]byte(`{"toolResult":`), obj, []byte("}")), nil
		}
	}
	return obj, nil
}

// geminiResultPart reads a part that holds a result. ok is false for any other object, and
// for one that repeats the field.
func geminiResultPart(obj json.RawMessage) (inner json.RawMessage, rest *dragoman.Extra, ok bool) {
	rd := jsonwire.NewReader(obj)
	if rd.Kind() != '{' {
		return nil, nil, false
	}
	for key := range rd.Object() {
		name := string(jsonwire.Camel(key))
		switch {
		case name == "functionResponse" && rd.Kind() == '{' && inner == nil:
			inner = rd.Raw()
		case name == "functionResponse", name == "response": // not a part that holds one result
			return nil, nil, false
		default:
			extra.Add(&rest, dragoman.Gemini, "", key, rd.Raw())
		}
	}
	return inner, rest, rd.End() == nil && inner != nil
}
