package anthropic

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/blockwire"
	"github.com/dragoman-go/dragoman/internal/extra"
)

// typeDelta is the type of a piece of a stream, which some frameworks leave in
// the content of a message.
const typeDelta = "input_json_delta"

// withoutStrays takes members off a part that no block of a request may have. The
// API answers "Extra inputs are not permitted" to each (quirk D32). What it sends
// itself, as the caller of a call, is none of them and goes back.
func withoutStrays(p dragoman.Part, at extra.Path, rep *dragoman.Report) bool {
	strays := []string{"/index"}
	switch p.(type) {
	case *dragoman.ToolCall:
		strays = []string{"/index", "/signature", "/partial_json"}
	case *dragoman.ToolResult:
		strays = []string{"/index", "/id"}
	}
	return blockwire.WithoutStrays(p, name, strays, at, rep)
}
