// Package dragoman is the canonical model: messages, tools, calls, results,
// responses and stream events in Go types that belong to no vendor.
//
// Everything else in the module turns some wire language into these types or
// these types into some wire language. A request decoded from one dialect and
// encoded in another keeps its meaning, and every conversion returns a
// [Report] that names what it could not keep.
//
//	req := &dragoman.Request{
//		Model:    "claude-opus-5-5",
//		Messages: []dragoman.Message{dragoman.UserText("Do I need a coat in Oslo?")},
//	}
//	body, err := anthropic.Codec{}.EncodeRequest(req, dialect.EncodeOptions{})
//
// The package does no I/O, starts nothing, and holds no global state. Values
// are plain data: safe to copy, safe for concurrent reading.
package dragoman
