package gen

import (
	"bytes"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
)

// WithoutRepeatedKeys replaces the arguments in an encoded request that repeat a key by {}.
// They go back to the server that made them as received (requirement R7).
func WithoutRepeatedKeys(req *dragoman.Request, body []byte) []byte {
	for _, m := range req.Messages {
		for _, p := range m.Parts {
			if c, ok := p.(*dragoman.ToolCall); ok && c.Problem != nil && c.Problem.Code == codes.ProblemDuplicateKey && c.Arguments != "" {
				body = bytes.ReplaceAll(body, []byte(c.Arguments), []byte("{}"))
			}
		}
	}
	return body
}
