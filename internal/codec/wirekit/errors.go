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

// ErrorAnswer is an answer that a server sent instead of a response.
type ErrorAnswer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Decode reads the answer. requestID is the header that names the request;
// read fills in what the body says, where it is JSON that it knows, and leaves
// the message empty where it is not: then the message is how the body begins.
// The body is kept in format where it was understood and nothing stands behind
// it. The class is left to the dialect.
func (a ErrorAnswer) Decode(requestID string, format dragoman.Format, read func(*jsonwire.Reader, *dragoman.APIError)) *dragoman.APIError {
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

// Text reads a string or the text of a number, as servers write codes in both;
// anything else is passed over and gives other.
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

// Statuses are the HTTP statuses of errors that a dialect's servers answer with, by which
// its clients know what to do.
type Statuses struct {
	// Own is the format of the dialect's own errors, which keep the status they came with.
	Own dragoman.Format
	Has []int
}

// OpenAIStatuses are those of OpenAI's dialects. Those of HTTP itself, of a request that
// no API has looked at, are among them.
func OpenAIStatuses(own dragoman.Format) Statuses {
	return Statuses{own, []int{400, 401, 403, 404, 405, 409, 413, 415, 422, 429, 500, 502, 503, 504}}
}

// Of is the status to answer with: the one the error came with, if the dialect has it and
// it says the same as the error's class, else that of the class. Anthropic's 529 is nobody
// else's, and it has a 400 for an account without money, which OpenAI's clients would take
// for a request that is wrong. A class that the dialect has no status for may be better
// later.
func (s Statuses) Of(e *dragoman.APIError) int {
	class, came := e.Class, e.Status >= 400 && e.Status <= 599
	if came && (class == "" || class == dragoman.ErrorUnknown) {
		class = ClassOfStatus(e.Status)
	}
	own := e.Native != nil && e.Native.Format == s.Own
	if came && (own || slices.Contains(s.Has, e.Status) && ClassOfStatus(e.Status) == class) {
		return e.Status
	}
	if status := StatusOfClass(class); slices.Contains(s.Has, status) {
		return status
	}
	return http.StatusServiceUnavailable
}

// ClassOfStatus classifies an HTTP status when the body says no more.
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

// StatusOfClass is the HTTP status a server answers with for a class.
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

// RetryAfter reads the wait a server asks for: retry-after-ms, then
// retry-after in seconds. A date is left to who has a clock.
func RetryAfter(h http.Header) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("retry-after-ms"), 64); err == nil && ms > 0 {
		return wait(ms / 1000)
	}
	if s, err := strconv.ParseFloat(h.Get("retry-after"), 64); err == nil && s > 0 {
		return wait(s)
	}
	return 0
}

// wait is a number of seconds, of which no server means more than a year.
func wait(seconds float64) time.Duration {
	const year = 365 * 24 * time.Hour
	if seconds >= year.Seconds() {
		return year
	}
	return time.Duration(seconds * float64(time.Second))
}

// PlainMessage is what to say of an error body that is no JSON of ours.
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

// ErrorSaid is what an error says in the form that it is written in, beside its
// message.
type ErrorSaid struct {
	// Status is that of the answer; 0 where there is none, as inside a stream.
	Status                       int
	Type, Code, Param, RequestID string
	// Wait says that the form tells how long to wait.
	Wait bool
}

// ReportError reports what an error says at the pointer at and the form that it
// is written in does not: words of its provider, and members that only the
// provider knows.
func ReportError(rep *dragoman.Report, e *dragoman.APIError, said ErrorSaid, at string) {
	word := func(member, was, is string, sev dragoman.Severity) {
		switch {
		case was == "" || was == is:
		case is != "":
			rep.Addf(dragoman.Lowered, dragoman.Info, at+member, "%.80q written as %.80q, the API's word for such an error", was, is)
		default:
			rep.Addf(dragoman.Dropped, sev, at+member, "%.80q: such an error has no such member", was)
		}
	}
	if said.Status != 0 && e.Status != 0 && e.Status != said.Status {
		rep.Addf(dragoman.Lowered, dragoman.Info, at+"/status", "%d written as %d, the API's status for such an error", e.Status, said.Status)
	}
	word("/type", e.Type, said.Type, dragoman.Info) // the class of the error is told
	if e.Status == 0 || e.Code != strconv.Itoa(e.Status) {
		word("/code", e.Code, said.Code, dragoman.Warn)
	}
	word("/param", e.Param, said.Param, dragoman.Warn)
	word("/request_id", e.RequestID, said.RequestID, dragoman.Info)
	if e.RetryAfter > 0 && !said.Wait {
		rep.Add(dragoman.Dropped, dragoman.Warn, at+"/retry_after", "the wait stands in a header of an answer, and not in an error")
	}
	reportErrorMembers(rep, e, at)
}

// reportErrorMembers reports the members of an error's native form that are told
// by none of its words, of the error object and of the envelope around it.
func reportErrorMembers(rep *dragoman.Report, e *dragoman.APIError, at string) {
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
			case chunk && envelope: // of the response
				r.Skip()
			case !errorSays(e, k, r):
				rep.Add(dragoman.Dropped, dragoman.Warn, at+"/"+extra.Escape(k), "a member that only the error's own API knows")
			}
		}
	}
	r := jsonwire.NewReader(e.Native.JSON)
	switch r.Kind() {
	case '{':
		walk(r, true)
	case '[': // a list of one
		for range r.Array() {
			if r.Kind() == '{' {
				walk(r, true)
			} else {
				r.Skip()
			}
		}
	}
}

// isChunk reports whether an error stands in a piece of an answer.
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

// errorSays reads a member of an error and reports whether the error says it as
// well, or it says nothing.
func errorSays(e *dragoman.APIError, key string, r *jsonwire.Reader) bool {
	switch r.Kind() {
	case '"', '0':
		switch s := Text(r, ""); {
		case s == "", s == e.Message, s == e.Type, s == e.Code, s == e.Param, s == e.RequestID:
			return true
		case key == "type" && s == "error", key == "sequence_number": // of an event
			return true
		case key == "__type": // may hold a namespace before the word
			return e.Type != "" && strings.Contains(s, e.Type)
		default:
			return e.Status != 0 && s == strconv.Itoa(e.Status)
		}
	default:
		switch raw := r.Raw(); string(raw) {
		case "null", "[]", "{}":
			return true
		default: // of Gemini's records, the wait is told
			return key == "details" && e.RetryAfter > 0 && bytes.Count(raw, []byte(`"@type"`)) == 1
		}
	}
}

// MessageHas reports whether the message of an error contains all words, ignoring case. The
// words must be lower case.
func MessageHas(e *dragoman.APIError, words ...string) bool {
	message := strings.ToLower(e.Message)
	return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(message, w) })
}
