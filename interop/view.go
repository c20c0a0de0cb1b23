package interop

import (
	"encoding/json"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/toolwire"
	"github.com/dragoman-go/dragoman/schema"
	"github.com/dragoman-go/dragoman/targets"
)

// View returns the part of the registry that the codecs of dialects use.
func (r *Registry) View() toolwire.View { return view{r} }

// view implements [toolwire.View].
type view struct{ r *Registry }

func (v view) Caps() *targets.Capabilities { return &v.r.target.Caps }

func (v view) ForClient() bool { return v.r.forResponse }

func (v view) SetChecked(req *dragoman.Request) { v.r.checked = req }

func (v view) Checked(req *dragoman.Request) bool { return req != nil && v.r.checked == req }

func (v view) KeepsNamespaces() bool { return !v.r.names.flatten }

func (v view) WireName(namespace, name string) string { return v.r.names.wireName(namespace, name) }

func (v view) ArgumentText(c *dragoman.ToolCall, at extra.Path, rep *dragoman.Report) string {
	return v.r.argumentText(c, at, rep)
}

func (v view) ArgumentObject(c *dragoman.ToolCall, at extra.Path, rep *dragoman.Report) json.RawMessage {
	return v.r.argumentObject(c, at, rep)
}

func (v view) ReadTool(format dragoman.Format, obj json.RawMessage, at extra.Path, rep *dragoman.Report) ([]dragoman.ToolSpec, error) {
	return v.r.readToolAs(format, obj, at, rep)
}

func (v view) Expand(tools []dragoman.ToolSpec, rep *dragoman.Report) []dragoman.ToolSpec {
	return v.r.expand(tools, rep)
}

func (v view) Lower(c toolwire.Codec, s *dragoman.ToolSpec, strict string, at extra.Path, rep *dragoman.Report) (toolwire.Lowered, bool) {
	return v.r.lower(c, s, strict, at, rep)
}

func (v view) Adapt(src json.RawMessage, p schema.Profile) (*schema.Lowered, error) {
	return v.r.lowered.adapt(src, p)
}

func (v view) TakeBreakpoint(at extra.Path, rep *dragoman.Report) bool {
	r := v.r
	if r.surplus == 0 {
		return true
	}
	r.surplus--
	rep.Addf(dragoman.Dropped, dragoman.Info, at.String(), "cache breakpoint: the API accepts %d, and later ones cover more", r.breakpoints)
	return false
}
