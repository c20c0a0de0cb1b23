package anthropic

import (
	"cmp"
	"net/http"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/blockwire"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// DecodeError implements [dialect.Codec]. Compatible servers also use the
// envelope of another API, or none.
func (Codec) DecodeError(status int, header http.Header, body []byte) *dragoman.APIError {
	e := wirekit.ErrorResponse{Status: status, Header: header, Body: body}.Decode("request-id", formatError, readError)
	e.Class = classOf(e)
	return e
}

// readError reads {"type":"error","error":{…},"request_id":…} and the variants
// of some servers. It ignores anything but an object.
func readError(r *jsonwire.Reader, e *dragoman.APIError) {
	if r.Kind() != '{' {
		return
	}
	for key := range r.Object() {
		switch string(key) {
		case "error":
			switch r.Kind() {
			case '"':
				e.Message = r.String()
			case '{':
				readErrorObject(r, e)
			default:
				r.Skip()
			}
		case "request_id":
			if id := wirekit.Text(r, ""); id != "" {
				e.RequestID = id
			}
		case "message", "detail":
			if s := wirekit.Text(r, ""); e.Message == "" {
				e.Message = s
			}
		default:
			r.Skip()
		}
	}
}

func readErrorObject(r *jsonwire.Reader, e *dragoman.APIError) {
	for key := range r.Object() {
		switch string(key) {
		case "type":
			e.Type = wirekit.Text(r, "")
		case "message":
			e.Message = wirekit.Text(r, "")
		case "code":
			if s := wirekit.Text(r, ""); e.Code == "" {
				e.Code = s
			}
		case "param":
			e.Param = wirekit.Text(r, "")
		case "details":
			if r.Kind() != '{' {
				r.Skip()
				continue
			}
			for key := range r.Object() {
				if string(key) == "error_code" {
					e.Code = wirekit.Text(r, "")
				} else {
					r.Skip()
				}
			}
		default:
			r.Skip()
		}
	}
}

func classOf(e *dragoman.APIError) dragoman.ErrorClass {
	switch e.Type {
	case "invalid_request_error":
		// The API has no code for these two, only a message.
		switch {
		case wirekit.IsContextLength(e):
			return dragoman.ErrorContextLength
		case strings.Contains(e.Message, "credit balance is too low"):
			return dragoman.ErrorQuota
		case e.Status == http.StatusRequestEntityTooLarge:
			return dragoman.ErrorTooLarge
		}
		return dragoman.ErrorBadRequest
	case "authentication_error":
		return dragoman.ErrorAuth
	case "billing_error":
		return dragoman.ErrorQuota
	case "permission_error":
		return dragoman.ErrorPermission
	case "not_found_error":
		return dragoman.ErrorNotFound
	case "conflict_error":
		return dragoman.ErrorConflict
	case "request_too_large":
		return dragoman.ErrorTooLarge
	case "rate_limit_error":
		return dragoman.ErrorRateLimit
	case "api_error":
		if e.Status == 0 || e.Status >= 500 {
			return dragoman.ErrorServer
		}
	case "timeout_error":
		return dragoman.ErrorTimeout
	case "overloaded_error":
		return dragoman.ErrorOverloaded
	}
	if e.Status != 0 {
		return wirekit.ClassOfStatus(e.Status)
	}
	return dragoman.ErrorUnknown
}

// EncodeError implements [dialect.Codec]. An unchanged error of this dialect
// keeps its body, if that is a JSON object, and its status, if that is an error
// status. A nil error is written as a server error.
func (Codec) EncodeError(e *dragoman.APIError) (int, []byte, dragoman.Report) {
	return blockwire.ErrorEncoder{Own: formatError, Words: errorTypeOf, Native: nativeError, Write: writeError}.Encode(e)
}

// nativeError returns the original body of an error of this dialect. It returns
// nil if the error is of another dialect, was changed, or could be mistaken for
// a response.
func nativeError(e *dragoman.APIError) []byte {
	return wirekit.OwnError{Format: formatError, Decode: Codec{}.DecodeError, ResponseFields: []string{"content"}}.JSON(e)
}

// writeError writes the error envelope, which is the same in a body and in a
// stream.
func writeError(w *jsonwire.Writer, e *dragoman.APIError, typ string) wirekit.WrittenError {
	w.BeginObject()
	w.StringField("type", "error")
	w.Key("error")
	w.BeginObject()
	w.StringField("type", typ)
	w.StringField("message", cmp.Or(e.Message, string(e.Class)))
	w.EndObject()
	w.StringFieldIf("request_id", e.RequestID)
	w.EndObject()
	return wirekit.WrittenError{Type: typ, RequestID: e.RequestID}
}

// errorTypeOf returns the error type and status for an error of this dialect. Types
// of other APIs are never written (quirk J3).
func errorTypeOf(e *dragoman.APIError) (typ string, status int) {
	switch e.Class {
	case dragoman.ErrorBadRequest, dragoman.ErrorContextLength, dragoman.ErrorPolicy:
		return "invalid_request_error", 400
	case dragoman.ErrorAuth:
		return "authentication_error", 401
	case dragoman.ErrorQuota:
		return "billing_error", 402
	case dragoman.ErrorPermission:
		return "permission_error", 403
	case dragoman.ErrorNotFound:
		return "not_found_error", 404
	case dragoman.ErrorConflict:
		return "conflict_error", 409
	case dragoman.ErrorTooLarge:
		return "request_too_large", 413
	case dragoman.ErrorRateLimit:
		return "rate_limit_error", 429
	case dragoman.ErrorTimeout:
		return "timeout_error", 504
	case dragoman.ErrorOverloaded:
		return "overloaded_error", 529
	default:
		return "api_error", 500
	}
}

// ForeignReasoning reports whether the server refused reasoning in earlier turns that it
// did not make, such as a signature of another model or account (quirk D23). The client can
// retry the request without that reasoning.
func (Codec) ForeignReasoning(e *dragoman.APIError) bool {
	return blockwire.RefusedThinking(e)
}
