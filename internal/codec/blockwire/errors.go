package blockwire

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// ErrorEncoder encodes the errors of a dialect.
type ErrorEncoder struct {
	// Own is the format of the dialect's own errors.
	Own dragoman.Format
	// Words returns the type and the status that the dialect has for an error.
	Words func(e *dragoman.APIError) (typ string, status int)
	// Native returns an error in the form it came in, or nil.
	Native func(e *dragoman.APIError) []byte
	// Write writes an error of a type, and returns what the JSON says of it.
	Write func(w *jsonwire.Writer, e *dragoman.APIError, typ string) wirekit.ErrorSaid
}

// Encode encodes an error; nil is an error of the server. An error of the dialect
// keeps its status, if it is that of an error, and its bytes, if they can be passed
// through.
func (x ErrorEncoder) Encode(e *dragoman.APIError) (int, []byte, dragoman.Report) {
	if e == nil {
		e = &dragoman.APIError{Class: dragoman.ErrorServer, Message: "an error that nothing is known of"}
	}
	typ, status := x.Words(e)
	if e.Native != nil && e.Native.Format == x.Own && e.Status >= 400 && e.Status <= 599 {
		status = e.Status
	}
	if raw := x.Native(e); raw != nil {
		return status, raw, dragoman.Report{}
	}
	var w jsonwire.Writer
	said := x.Write(&w, e, typ)
	said.Status = status
	var rep dragoman.Report
	wirekit.ReportError(&rep, e, said, "")
	return status, w.Buf, rep
}

// RefusedThinking reports whether a server refused thinking in earlier turns that it
// did not make, such as a signature of another model or account (quirk D23).
func RefusedThinking(e *dragoman.APIError) bool {
	return wirekit.MessageHas(e, "invalid", "signature", "thinking") || wirekit.MessageHas(e, "invalid", "data", "redacted_thinking")
}
