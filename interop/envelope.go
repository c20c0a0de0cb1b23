package interop

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/toolwire"
)

// unwrapEnvelope unwraps a result whose only content is an explicit envelope. It returns any
// other result unchanged.
func unwrapEnvelope(res *dragoman.ToolResult) *dragoman.ToolResult {
	if res.Envelope != nil || len(res.Content) != 1 {
		return res
	}
	data, ok := res.Content[0].(*dragoman.Data)
	if !ok {
		return res
	}
	e, ok, err := toolwire.ReadEnvelope(data.JSON)
	if !ok || err != nil {
		return res
	}
	out := *res
	out.Envelope = &e.Native
	out.Content = []dragoman.Part{&dragoman.Text{Text: e.Text}}
	return &out
}
