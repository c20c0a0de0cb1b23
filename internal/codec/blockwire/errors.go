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
	// Words returns the dialect's type and status for an error.
	Words func(e *dragoman.APIError) (typ string, status int)
	// Native returns the native form of an error, or nil.
	Native func(e *dragoman.APIError) []byte
	// Write writes an error with the given type, and returns the fields that it wrote.
	Write func(w *jsonwire.Writer, e *dragoman.APIError, typ string) wirekit.WrittenError
}

// Encode encodes an error; nil means an unknown server error. An error of the dialect
// keeps its status, if that is an error status, and its bytes, if they can be passed
// through.
func (x ErrorEncoder) Encode(e *dragoman.APIError) (int, []byte, dragoman.Report) {
	if e == nil {
		e = &dragoman.APIError{Class: dragoman.ErrorServer, Message: "unknown error"}
	}
	typ, status := x.Words(e)
	if e.Native != nil && e.Native.Format == x.Own && e.Status >= 400 && e.Status <= 599 {
		status = e.Status
	}
	if raw := x.Native(e); raw != nil {
		return status, raw, dragoman.Report{}
	}
	var w jsonwire.Writer
	written := x.Write(&w, e, typ)
	written.Status = status
	var rep dragoman.Report
	wirekit.ReportError(&rep, e, written, "")
	return status, w.Buf, rep
}

// RefusedThinking reports whether a server refused thinking in earlier turns that it
// did not produce, for example a signature of another model or account (quirk D23).
func RefusedThinking(e *dragoman.APIError) bool {
	return wirekit.MessageHas(e, "invalid", "signature", "thinking") || wirekit.MessageHas(e, "invalid", "data", "redacted_thinking")
}
