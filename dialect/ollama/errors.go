package ollama

import (
	"cmp"
	"net/http"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// DecodeError implements [dialect.Codec]. The error is a string; proxies in front of Ollama may
// send an object.
func (Codec) DecodeError(status int, header http.Header, body []byte) *dragoman.APIError {
	e := wirekit.ErrorResponse{Status: status, Header: header, Body: body}.Decode("x-request-id", formatError, readErrorBody)
	e.Class = classOf(e)
	return e
}

func readErrorBody(r *jsonwire.Reader, e *dragoman.APIError) {
	if r.Kind() != '{' {
		return
	}
	for key := range r.Object() {
		if string(key) == "error" {
			readError(r, e)
		} else {
			r.Skip()
		}
	}
}

// readError reads the value of an error field.
func readError(r *jsonwire.Reader, e *dragoman.APIError) {
	if r.Kind() != '{' {
		e.Message = wirekit.Text(r, "")
		return
	}
	for key := range r.Object() {
		switch string(key) {
		case "message":
			e.Message = wirekit.Text(r, "")
		case "type":
			e.Type = wirekit.Text(r, "")
		case "code":
			e.Code = wirekit.Text(r, "")
		default:
			r.Skip()
		}
	}
}

// classOf classifies an error. The wire has no error codes: if the status is too general, the
// message decides.
func classOf(e *dragoman.APIError) dragoman.ErrorClass {
	message := strings.ToLower(e.Message)
	has := func(words ...string) bool {
		for _, w := range words {
			if !strings.Contains(message, w) {
				return false
			}
		}
		return true
	}
	switch {
	case wirekit.IsContextLength(e), has("exceed", "context"), has("context length"), has("context window"):
		return dragoman.ErrorContextLength
	case e.Status == 499:
		return dragoman.ErrorTimeout
	case e.Status != 0:
		return wirekit.ClassOfStatus(e.Status)
	case has("model", "not found"):
		return dragoman.ErrorNotFound
	case has("does not support"):
		return dragoman.ErrorBadRequest
	case has("server busy"), has("maximum pending requests"):
		return dragoman.ErrorOverloaded
	default: // the model runner failed
		return dragoman.ErrorServer
	}
}

// EncodeError implements [dialect.Codec].
func (Codec) EncodeError(e *dragoman.APIError) (int, []byte, dragoman.Report) {
	if e == nil {
		e = &dragoman.APIError{Class: dragoman.ErrorServer}
	}
	status := wirekit.Statuses{Own: formatError, Has: []int{400, 401, 403, 404, 405, 413, 415, 429, 500, 502, 503}}.Of(e)
	if raw := ownError(e); raw != nil {
		return status, raw, dragoman.Report{}
	}
	var w jsonwire.Writer
	writeError(&w, e)
	var rep dragoman.Report
	wirekit.ReportError(&rep, e, wirekit.WrittenError{Status: status}, "")
	return status, w.Buf, rep
}

func writeError(w *jsonwire.Writer, e *dragoman.APIError) {
	w.BeginObject()
	w.StringField("error", cmp.Or(e.Message, string(e.Class), "unknown error"))
	w.EndObject()
}

// ownError returns an error that came from this dialect as its original bytes; nil for other
// errors.
func ownError(e *dragoman.APIError) []byte {
	own := wirekit.OwnError{Format: formatError, Decode: Codec{}.DecodeError, ResponseFields: []string{"message"}}
	return own.JSON(e)
}
