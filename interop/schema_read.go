package interop

import (
	"encoding/json"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/toolformat"
	"github.com/dragoman-go/dragoman/internal/codec/toolwire"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// ReadTool reads a tool definition of the target's dialect: one tool, or all tools of a
// namespace. A definition of a type that is not built in is the provider's own tool and kept
// unchanged.
func (r *Registry) ReadTool(obj json.RawMessage, at extra.Path, rep *dragoman.Report) ([]dragoman.ToolSpec, error) {
	if r.ownCodec == nil {
		return r.readToolAs(dragoman.Format(string(r.target.Dialect)+"."+toolwire.TypeOf(obj)), obj, at, rep)
	}
	return r.readToolAs(r.ownCodec.ToolFormat(obj), obj, at, rep)
}

func (r *Registry) readToolAs(format dragoman.Format, obj json.RawMessage, at extra.Path, rep *dragoman.Report) ([]dragoman.ToolSpec, error) {
	if a, ok := r.schemas[format]; ok {
		specs, sub, err := a.InspectSchema(obj)
		rep.Merge(at.String(), sub)
		// The source of one tool among several would be all of them.
		if len(specs) == 1 && specs[0].Source == nil {
			s := &specs[0]
			s.Source = &dragoman.ToolSource{Format: format, JSON: obj, Mirror: s.Fingerprint()}
		}
		return specs, err
	}
	if format == toolformat.MCPTool {
		return toolwire.DecodeTool(format, obj, readMCPTool)
	}
	c := r.toolCodec(format)
	if c == nil {
		c = r.hostCodec(format)
	}
	if c == nil {
		return toolwire.DecodeTool(format, obj, toolwire.ReadHosted)
	}
	return c.ReadTool(view{r}, format, obj, at, rep)
}

func readMCPTool(rd *jsonwire.Reader, s *dragoman.ToolSpec) {
	hint := func() *bool {
		if rd.Null() {
			return nil
		}
		v := rd.Bool()
		return &v
	}
	for key := range rd.Object() {
		switch string(key) {
		case "name":
			s.Name = rd.String()
		case "title":
			s.Annotations.Title = rd.String()
		case "description":
			s.Description = rd.String()
		case "inputSchema":
			s.Parameters = toolwire.ReadSchema(rd)
		case "outputSchema":
			s.OutputSchema = toolwire.ReadSchema(rd)
		case "annotations":
			for key := range rd.Object() {
				switch string(key) {
				case "title":
					if t := rd.String(); s.Annotations.Title == "" {
						s.Annotations.Title = t
					}
				case "readOnlyHint":
					s.Annotations.ReadOnly = hint()
				case "destructiveHint":
					s.Annotations.Destructive = hint()
				case "idempotentHint":
					s.Annotations.Idempotent = hint()
				case "openWorldHint":
					s.Annotations.OpenWorld = hint()
				default:
					rd.Skip()
				}
			}
		default:
			rd.Skip() // _meta and similar fields are between client and server (quirk H14)
		}
	}
}
