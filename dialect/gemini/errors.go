package gemini

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// DecodeError implements [dialect.Codec]. A JSON array stream reports its error
// inside a list; some servers use the envelope of another API, or none.
func (Codec) DecodeError(status int, header http.Header, body []byte) *dragoman.APIError {
	wait := time.Duration(0)
	e := wirekit.ErrorResponse{Status: status, Header: header, Body: body}.Decode("x-request-id", formatError,
		func(r *jsonwire.Reader, e *dragoman.APIError) { wait = readError(r, e) })
	if e.RetryAfter == 0 {
		e.RetryAfter = wait
	}
	e.Class = classOf(e)
	return e
}

// readError reads {"error":{…}}, alone or in a list, and skips anything else.
// It returns the retry delay that the error asks for.
func readError(r *jsonwire.Reader, e *dragoman.APIError) (wait time.Duration) {
	switch r.Kind() {
	case '[':
		for range r.Array() {
			if w := readError(r, e); w > 0 {
				wait = w
			}
		}
	case '{':
		for key := range r.Object() {
			switch {
			case string(key) == "error" && r.Kind() == '{':
				wait = readErrorObject(r, e)
			case string(key) == "error":
				e.Message = wirekit.Text(r, "")
			case string(key) == "message", string(key) == "detail":
				if s := wirekit.Text(r, ""); e.Message == "" {
					e.Message = s
				}
			default:
				r.Skip()
			}
		}
	default:
		r.Skip()
	}
	return wait
}

func readErrorObject(r *jsonwire.Reader, e *dragoman.APIError) (wait time.Duration) {
	for key := range r.Object() {
		switch string(key) {
		case "code":
			e.Code = wirekit.Text(r, "")
		case "message":
			e.Message = wirekit.Text(r, "")
		case "status":
			e.Type = wirekit.Text(r, "")
		case "details":
			if r.Kind() != '[' {
				r.Skip()
				continue
			}
			for range r.Array() {
				if w := readDetail(r, e); w > 0 {
					wait = w
				}
			}
		default:
			r.Skip()
		}
	}
	if e.Message == "" {
		e.Message = e.Type
	}
	return wait
}

// readDetail reads one element of the error details: the reason, or the retry
// delay.
func readDetail(r *jsonwire.Reader, e *dragoman.APIError) (wait time.Duration) {
	if r.Kind() != '{' {
		r.Skip()
		return 0
	}
	for key := range r.Object() {
		switch {
		case string(key) == "reason" && r.Kind() == '"':
			e.Param = r.String()
		case string(jsonwire.Camel(key)) == "retryDelay" && r.Kind() == '"':
			wait = delay(r.String())
		default:
			r.Skip()
		}
	}
	return wait
}

// delay parses a duration such as "34.4s". It caps the result at one year.
func delay(s string) time.Duration {
	seconds, err := strconv.ParseFloat(strings.TrimSuffix(s, "s"), 64)
	if err != nil || !(seconds > 0) {
		return 0
	}
	const year = 365 * 24 * time.Hour
	if seconds >= year.Seconds() {
		return year
	}
	return time.Duration(seconds * float64(time.Second))
}

// status returns the HTTP status of an error. An error inside a stream has its
// status in the code field. It returns 0 if neither is an error status.
func status(e *dragoman.APIError) int {
	if e.Status >= 400 && e.Status <= 599 {
		return e.Status
	}
	if n, err := strconv.Atoi(e.Code); err == nil && n >= 400 && n <= 599 {
		return n
	}
	return 0
}

func classOf(e *dragoman.APIError) dragoman.ErrorClass {
	switch e.Type {
	case "INVALID_ARGUMENT", "FAILED_PRECONDITION", "OUT_OF_RANGE":
		switch {
		case e.Param == "API_KEY_INVALID", strings.Contains(e.Message, "API key not valid"):
			return dragoman.ErrorAuth
		case wirekit.IsContextLength(e):
			return dragoman.ErrorContextLength
		case e.Status == http.StatusRequestEntityTooLarge:
			return dragoman.ErrorTooLarge
		}
		return dragoman.ErrorBadRequest
	case "UNAUTHENTICATED":
		return dragoman.ErrorAuth
	case "PERMISSION_DENIED":
		return dragoman.ErrorPermission
	case "NOT_FOUND":
		return dragoman.ErrorNotFound
	case "ALREADY_EXISTS", "ABORTED":
		return dragoman.ErrorConflict
	case "RESOURCE_EXHAUSTED":
		return dragoman.ErrorRateLimit
	case "UNAVAILABLE":
		return dragoman.ErrorOverloaded
	case "DEADLINE_EXCEEDED":
		return dragoman.ErrorTimeout
	case "UNIMPLEMENTED":
		return dragoman.ErrorBadRequest
	case "INTERNAL", "UNKNOWN", "DATA_LOSS":
		return dragoman.ErrorServer
	}
	if n := status(e); n != 0 {
		return wirekit.ClassOfStatus(n)
	}
	return dragoman.ErrorUnknown
}

// EncodeError implements [dialect.Codec]. An unchanged error of this dialect
// keeps its body, if that is JSON, and its status, if that is an error status.
// A nil error is written as a server error.
func (Codec) EncodeError(e *dragoman.APIError) (int, []byte, dragoman.Report) {
	if e == nil {
		e = &dragoman.APIError{Class: dragoman.ErrorServer, Message: "unknown error"}
	}
	typ, code := statusOf(e)
	if raw := nativeError(e); raw != nil {
		if n := status(e); n != 0 {
			code = n
		}
		return code, raw, dragoman.Report{}
	}
	var w jsonwire.Writer
	writeError(&w, e, typ, code)
	written := writtenError(typ, code)
	written.Status = code
	var rep dragoman.Report
	wirekit.ReportError(&rep, e, written, "")
	return code, w.Buf, rep
}

// nativeError returns the original body of an error of this dialect. It returns
// nil if the error is of another dialect, was changed, or could be mistaken for
// a response.
func nativeError(e *dragoman.APIError) []byte {
	return wirekit.OwnError{Format: formatError, Decode: Codec{}.DecodeError, ResponseFields: []string{"candidates"}, Snake: true}.JSON(e)
}

// writtenError describes the fields that writeError writes, so that the rest can
// be reported.
func writtenError(typ string, code int) wirekit.WrittenError {
	return wirekit.WrittenError{Type: typ, Code: strconv.Itoa(code), Wait: true}
}

// writeError writes the error envelope, which is the same in a body and in a
// stream.
func writeError(w *jsonwire.Writer, e *dragoman.APIError, typ string, code int) {
	w.BeginObject()
	w.Key("error")
	w.BeginObject()
	w.IntField("code", int64(code))
	w.StringField("message", cmp.Or(e.Message, string(e.Class)))
	w.StringField("status", typ)
	if e.RetryAfter > 0 {
		w.Key("details")
		w.BeginArray()
		w.BeginObject()
		w.StringField("@type", "type.googleapis.com/google.rpc.RetryInfo")
		w.StringField("retryDelay", strconv.FormatFloat(e.RetryAfter.Seconds(), 'f', -1, 64)+"s")
		w.EndObject()
		w.EndArray()
	}
	w.EndObject()
	w.EndObject()
}

// statusOf returns the status name and number for an error of this dialect.
// Names of other APIs are never written (quirk J3).
func statusOf(e *dragoman.APIError) (typ string, code int) {
	switch e.Class {
	case dragoman.ErrorBadRequest, dragoman.ErrorContextLength, dragoman.ErrorPolicy:
		return "INVALID_ARGUMENT", 400
	case dragoman.ErrorTooLarge:
		return "INVALID_ARGUMENT", 413
	case dragoman.ErrorAuth:
		return "UNAUTHENTICATED", 401
	case dragoman.ErrorPermission:
		return "PERMISSION_DENIED", 403
	case dragoman.ErrorNotFound:
		return "NOT_FOUND", 404
	case dragoman.ErrorConflict:
		return "ABORTED", 409
	case dragoman.ErrorRateLimit, dragoman.ErrorQuota:
		return "RESOURCE_EXHAUSTED", 429
	case dragoman.ErrorOverloaded:
		return "UNAVAILABLE", 503
	case dragoman.ErrorTimeout:
		return "DEADLINE_EXCEEDED", 504
	default:
		return "INTERNAL", 500
	}
}

// ForeignReasoning reports whether the server refused reasoning in earlier turns that it
// did not make, such as a thought signature of another model or account (quirk D23). The
// client can retry the request without that reasoning.
func (Codec) ForeignReasoning(e *dragoman.APIError) bool {
	return wirekit.MessageHas(e, "thought signature", "corrupted") ||
		wirekit.MessageHas(e, "thought signature", "valid") // "is not valid", "invalid"
}
