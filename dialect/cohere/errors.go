package cohere

import (
	"cmp"
	"net/http"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// DecodeError implements [dialect.Codec]. An error is an object with a message;
// newer servers add an id.
func (Codec) DecodeError(status int, header http.Header, body []byte) *dragoman.APIError {
	e := wirekit.ErrorResponse{Status: status, Header: header, Body: body}.Decode("x-request-id", formatError, readError)
	e.Class = classOf(e)
	return e
}

func readError(r *jsonwire.Reader, e *dragoman.APIError) {
	if r.Kind() != '{' {
		return
	}
	for key := range r.Object() {
		switch string(key) {
		case "message":
			e.Message = wirekit.Text(r, "")
		case "id":
			if id := wirekit.Text(r, ""); e.RequestID == "" {
				e.RequestID = id
			}
		default:
			r.Skip()
		}
	}
}

// Statuses that only Cohere uses.
const (
	statusBlocked  = 498 // a request or response with a blocked token
	statusCanceled = 499
)

// classOf classifies an error. Cohere has no error codes, so it uses the status
// and the message.
func classOf(e *dragoman.APIError) dragoman.ErrorClass {
	switch {
	case wirekit.IsContextLength(e), e.Status != http.StatusTooManyRequests && wirekit.MessageHas(e, "too many tokens"):
		return dragoman.ErrorContextLength
	case e.Status == http.StatusTooManyRequests && wirekit.MessageHas(e, "/ month"): // a trial key
		return dragoman.ErrorQuota
	case e.Status == statusBlocked:
		return dragoman.ErrorPolicy
	case e.Status == statusCanceled:
		return dragoman.ErrorTimeout
	case e.Status != 0:
		return wirekit.ClassOfStatus(e.Status)
	default:
		return dragoman.ErrorServer
	}
}

// EncodeError implements [dialect.Codec].
func (Codec) EncodeError(e *dragoman.APIError) (int, []byte, dragoman.Report) {
	if e == nil {
		e = &dragoman.APIError{Class: dragoman.ErrorServer}
	}
	status := wirekit.Statuses{
		Own: formatError, Has: []int{400, 401, 402, 403, 404, 405, 413, 415, 422, 429, statusBlocked, statusCanceled, 500, 501, 503, 504},
	}.Of(e)
	if raw := ownError(e); raw != nil {
		return status, raw, dragoman.Report{}
	}
	var w jsonwire.Writer
	w.BeginObject()
	w.StringFieldIf("id", e.RequestID)
	w.StringField("message", messageOf(e))
	w.EndObject()
	var rep dragoman.Report
	wirekit.ReportError(&rep, e, wirekit.WrittenError{Status: status, RequestID: e.RequestID}, "")
	return status, w.Buf, rep
}

func messageOf(e *dragoman.APIError) string {
	return cmp.Or(e.Message, string(e.Class), "unknown error")
}

// ownError returns the original body of an unchanged error of this dialect; nil
// for others.
func ownError(e *dragoman.APIError) []byte {
	own := wirekit.OwnError{Format: formatError, Decode: Codec{}.DecodeError, ResponseFields: []string{"finish_reason"}}
	return own.JSON(e)
}
