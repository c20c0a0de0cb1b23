package bedrock

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/blockwire"
	"github.com/dragoman-go/dragoman/internal/extra"
)

// withoutStrays takes members off a part that no block of a request may have: the
// number of the block in a stream, on the block or in what it holds, and what
// belongs to blocks of Anthropic's own API (quirk D32).
func withoutStrays(p dragoman.Part, at extra.Path, rep *dragoman.Report) bool {
	strays := []string{"/index", "/contentBlockIndex"}
	switch p.(type) {
	case *dragoman.Reasoning:
		strays = []string{"/index", "/contentBlockIndex", inReasoning + "/index", inReasoning + "/contentBlockIndex", inText + "/index"}
	case *dragoman.ToolCall:
		strays = []string{
			"/index", "/contentBlockIndex", "/toolUse/index", "/toolUse/contentBlockIndex",
			"/toolUse/signature", "/toolUse/partial_json", "/toolUse/caller",
		}
	case *dragoman.ToolResult:
		strays = []string{"/index", "/contentBlockIndex", "/toolResult/index", "/toolResult/contentBlockIndex", "/toolResult/id"}
	}
	return blockwire.WithoutStrays(p, name, strays, at, rep)
}

// settleStrays is withoutStrays for the parts of a message whose content stands
// at a place.
func settleStrays(parts []dragoman.Part, content string, rep *dragoman.Report) (found bool) {
	for i, p := range parts {
		found = withoutStrays(p, extra.Elem(content, i), rep) || found
	}
	return found
}
