package gen

import (
	"bytes"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
)

// WithoutRepeatedKeys replaces arguments with duplicate keys in an encoded request with {}.
// Such arguments return unchanged to the server that made them (requirement R7).
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
