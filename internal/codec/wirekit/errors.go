package wirekit

import (
	"bytes"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// ErrorResponse is an HTTP error response.
type ErrorResponse struct {
	Status int
	Header http.Header
	Body   []byte
}

// Decode decodes the error response:
//
//   - requestID is the header that holds the request id.
//   - read fills in the error from a JSON body that it knows, and otherwise leaves the
//     message empty. The message is then the beginning of the body.
//   - The body is kept as the native form, in format, if read understood it and nothing
//     follows it.
//   - The caller sets the class.
func (a ErrorResponse) Decode(requestID string, format dragoman.Format, read func(*jsonwire.Reader, *dragoman.APIError)) *dragoman.APIError {
	e := &dragoman.APIError{Status: a.Status, RequestID: a.Header.Get(requestID), RetryAfter: RetryAfter(a.Header)}
	r := jsonwire.NewReader(a.Body)
	read(r, e)
	switch {
	case r.Err() != nil || e.Message == "":
		e.Message = PlainMessage(a.Status, a.Body)
	case r.End() == nil:
		e.Native = &dragoman.Native{Format: format, JSON: a.Body}
	}
	return e
}

// Text reads a string, or the text of a number, because servers write codes as either.
// It skips any other value and returns other.
func Text(r *jsonwire.Reader, other string) string {
	switch r.Kind() {
	case '"':
		return r.String()
	case '0':
		return string(r.Raw())
	default:
		r.Skip()
		return other
	}
}

// Statuses are the HTTP statuses that a dialect uses for errors, and that its clients
// understand.
type Statuses struct {
	// Own is the format of the dialect's own errors, which keep their original status.
	Own dragoman.Format
	Has []int
}

// OpenAIStatuses returns the statuses of the OpenAI dialects, including those for
// requests that fail at the HTTP level before an API sees them.
func OpenAIStatuses(own dragoman.Format) Statuses {
	return Statuses{own, []int{400, 401, 403, 404, 405, 409, 413, 415, 422, 429, 500, 502, 503, 504}}
}

// Of returns the status to send. It is the original status of the error if the dialect
// has that status and its meaning matches the error's class, otherwise the status of
// the class. For example, 529 exists only at Anthropic, which also uses 400 for an
// account without credit; OpenAI clients would read that as an invalid request. For a
// class without a status in the dialect it returns 503, which clients may retry.
func (s Statuses) Of(e *dragoman.APIError) int {
	class, hasStatus := e.Class, e.Status >= 400 && e.Status <= 599
	if hasStatus && (class == "" || class == dragoman.ErrorUnknown) {
		class = ClassOfStatus(e.Status)
	}
	own := e.Native != nil && e.Native.Format == s.Own
	if hasStatus && (own || slices.Contains(s.Has, e.Status) && ClassOfStatus(e.Status) == class) {
		return e.Status
	}
	if status := StatusOfClass(class); slices.Contains(s.Has, status) {
		return status
	}
	return http.StatusServiceUnavailable
}

// ClassOfStatus classifies an HTTP status for an error whose body has no class.
func ClassOfStatus(status int) dragoman.ErrorClass {
	switch status {
	case 400, 422:
		return dragoman.ErrorBadRequest
	case 401:
		return dragoman.ErrorAuth
	case 402:
		return dragoman.ErrorQuota
	case 403:
		return dragoman.ErrorPermission
	case 404:
		return dragoman.ErrorNotFound
	case 408, 504:
		return dragoman.ErrorTimeout
	case 409:
		return dragoman.ErrorConflict
	case 413:
		return dragoman.ErrorTooLarge
	case 429:
		return dragoman.ErrorRateLimit
	case 503, 529:
		return dragoman.ErrorOverloaded
	}
	switch {
	case status >= 500:
		return dragoman.ErrorServer
	case status >= 400:
		return dragoman.ErrorBadRequest
	default:
		return dragoman.ErrorUnknown
	}
}

// StatusOfClass returns the HTTP status for a class.
func StatusOfClass(c dragoman.ErrorClass) int {
	switch c {
	case dragoman.ErrorBadRequest, dragoman.ErrorContextLength, dragoman.ErrorPolicy:
		return 400
	case dragoman.ErrorAuth:
		return 401
	case dragoman.ErrorPermission:
		return 403
	case dragoman.ErrorNotFound:
		return 404
	case dragoman.ErrorConflict:
		return 409
	case dragoman.ErrorTooLarge:
		return 413
	case dragoman.ErrorRateLimit, dragoman.ErrorQuota:
		return 429
	case dragoman.ErrorOverloaded:
		return 503
	case dragoman.ErrorTimeout:
		return 504
	default:
		return 500
	}
}

// RetryAfter reads the wait that a server requests: retry-after-ms, then retry-after in
// seconds. It ignores dates, because it has no clock.
func RetryAfter(h http.Header) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("retry-after-ms"), 64); err == nil && ms > 0 {
		return wait(ms / 1000)
	}
	if s, err := strconv.ParseFloat(h.Get("retry-after"), 64); err == nil && s > 0 {
		return wait(s)
	}
	return 0
}

// wait converts seconds to a duration of at most one year.
func wait(seconds float64) time.Duration {
	const year = 365 * 24 * time.Hour
	if seconds >= year.Seconds() {
		return year
	}
	return time.Duration(seconds * float64(time.Second))
}

// PlainMessage returns the message for an error body that is not JSON, or not in a
// known form: the beginning of the body, or the text of the status if the body is
// empty.
func PlainMessage(status int, body []byte) string {
	s := strings.TrimSpace(string(body))
	if len(s) > 500 {
		s = strings.ToValidUTF8(s[:500], "") + "…"
	}
	if s == "" {
		s = http.StatusText(status)
	}
	return s
}

// WrittenError holds the fields, besides the message, of an error in the form in which it
// is written.
type WrittenError struct {
	// Status is the HTTP status of the response; 0 inside a stream.
	Status                       int
	Type, Code, Param, RequestID string
	// Wait reports whether the written form includes how long to wait.
	Wait bool
}

// ReportError reports what the error e, at the pointer at, loses in its written form:
// codes of its provider, and fields that only its provider knows.
func ReportError(rep *dragoman.Report, e *dragoman.APIError, written WrittenError, at string) {
	word := func(field, was, is string, sev dragoman.Severity) {
		switch {
		case was == "" || was == is:
		case is != "":
			rep.Addf(dragoman.Lowered, dragoman.Info, at+field, "%.80q written as %.80q, the API's value for this kind of error", was, is)
		default:
			rep.Addf(dragoman.Dropped, sev, at+field, "%.80q: the API's errors have no such field", was)
		}
	}
	if written.Status != 0 && e.Status != 0 && e.Status != written.Status {
		rep.Addf(dragoman.Lowered, dragoman.Info, at+"/status", "%d written as %d, the API's status for this kind of error", e.Status, written.Status)
	}
	word("/type", e.Type, written.Type, dragoman.Info) // only Info: the class of the error is written
	if e.Status == 0 || e.Code != strconv.Itoa(e.Status) {
		word("/code", e.Code, written.Code, dragoman.Warn)
	}
	word("/param", e.Param, written.Param, dragoman.Warn)
	word("/request_id", e.RequestID, written.RequestID, dragoman.Info)
	if e.RetryAfter > 0 && !written.Wait {
		rep.Add(dragoman.Dropped, dragoman.Warn, at+"/retry_after", "the wait belongs in a response header, not in an error")
	}
	reportErrorFields(rep, e, at)
}

// reportErrorFields reports the fields of an error's native form that the error itself
// does not carry, both in the error object and in the envelope around it.
func reportErrorFields(rep *dragoman.Report, e *dragoman.APIError, at string) {
	if e.Native == nil {
		return
	}
	chunk := isChunk(e.Native.JSON)
	var walk func(r *jsonwire.Reader, envelope bool)
	walk = func(r *jsonwire.Reader, envelope bool) {
		for key := range r.Object() {
			switch k := string(key); {
			case k == "error" && r.Kind() == '{':
				walk(r, false)
			case chunk && envelope: // a field of the response, not of the error
				r.Skip()
			case !errorHas(e, k, r):
				rep.Add(dragoman.Dropped, dragoman.Warn, at+"/"+extra.Escape(k), "only the API of this error has this field")
			}
		}
	}
	r := jsonwire.NewReader(e.Native.JSON)
	switch r.Kind() {
	case '{':
		walk(r, true)
	case '[': // a list with one error
		for range r.Array() {
			if r.Kind() == '{' {
				walk(r, true)
			} else {
				r.Skip()
			}
		}
	}
}

// isChunk reports whether an error is inside a chunk of a response.
func isChunk(raw []byte) (chunk bool) {
	r := jsonwire.NewReader(raw)
	if r.Kind() != '{' {
		return false
	}
	for key := range r.Object() {
		chunk = chunk || string(key) == "choices" || string(key) == "candidates"
		r.Skip()
	}
	return chunk
}

// errorHas consumes a field of an error. It reports whether e carries the same value,
// or the value is empty.
func errorHas(e *dragoman.APIError, key string, r *jsonwire.Reader) bool {
	switch r.Kind() {
	case '"', '0':
		switch s := Text(r, ""); {
		case s == "", s == e.Message, s == e.Type, s == e.Code, s == e.Param, s == e.RequestID:
			return true
		case key == "type" && s == "error", key == "sequence_number": // fields of an event
			return true
		case key == "__type": // may have a namespace before the type
			return e.Type != "" && strings.Contains(s, e.Type)
		default:
			return e.Status != 0 && s == strconv.Itoa(e.Status)
		}
	default:
		switch raw := r.Raw(); string(raw) {
		case "null", "[]", "{}":
			return true
		default: // of the Gemini records, the wait is written
			return key == "details" && e.RetryAfter > 0 && bytes.Count(raw, []byte(`"@type"`)) == 1
		}
	}
}

// MessageHas reports whether the message of an error contains all words, ignoring case.
// The words must be lower case.
func MessageHas(e *dragoman.APIError, words ...string) bool {
	message := strings.ToLower(e.Message)
	return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(message, w) })
}
