package serving

import dragoman "github.com/dragoman-go/dragoman"

// BytesPerToken is the size of a token. It is fixed, so that usage is exact and the same
// request always has the same usage.
const BytesPerToken = 4

// Tokens returns the number of tokens in a number of bytes.
func Tokens(bytes int) int64 { return int64((bytes + BytesPerToken - 1) / BytesPerToken) }

// CountTokens returns the number of input tokens of a request: the bytes of its instructions,
// messages and tools, divided by four. Media counts by the size of its reference or content.
func CountTokens(req *dragoman.Request) int64 {
	if req == nil {
		return 0
	}
	n := SizeOf(req.Instructions)
	for i := range req.Messages {
		n += SizeOf(req.Messages[i].Parts)
	}
	for i := range req.Tools {
		t := &req.Tools[i]
		n += len(t.Name) + len(t.Namespace) + len(t.Description) + len(t.Parameters)
		if t.Grammar != nil {
			n += len(t.Grammar.Definition)
		}
	}
	return Tokens(n)
}

// SizeOf returns the number of bytes in parts that a model would read or write.
func SizeOf(parts []dragoman.Part) int {
	n := 0
	for _, p := range parts {
		switch p := p.(type) {
		case *dragoman.Text:
			n += len(p.Text)
		case *dragoman.Reasoning:
			n += sizeOfReasoning(p)
		case *dragoman.Refusal:
			n += len(p.Text)
		case *dragoman.Media:
			n += len(p.Base64) + len(p.Text) + len(p.URL) + len(p.FileID)
		case *dragoman.Data:
			n += len(p.JSON)
		case *dragoman.Opaque:
			n += len(p.JSON)
		case *dragoman.ToolCall:
			n += len(p.Name) + len(p.Arguments)
		case *dragoman.ToolResult:
			n += SizeOf(p.Content)
		}
	}
	return n
}

func sizeOfReasoning(r *dragoman.Reasoning) int {
	n := len(r.Text)
	for _, s := range r.Summary {
		n += len(s)
	}
	return n
}
