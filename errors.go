package dragoman

import (
	"errors"
	"fmt"
	"time"
)

var (
	// ErrIncompleteStream says that a stream ended without its terminal
	// marker. What had arrived was delivered; a retry may succeed.
	ErrIncompleteStream = errors.New("dragoman: stream ended before its terminal event")
	// ErrTooLarge says that input exceeds a bound.
	ErrTooLarge = errors.New("dragoman: input exceeds a size limit")
	// ErrUnsupported says that the target has no way to express something that
	// must not be dropped.
	ErrUnsupported = errors.New("dragoman: not supported by the target")
	// ErrUnsettledCalls says that a conversation cannot be sent yet: some of its
	// calls wait for an approval, an input or a result.
	ErrUnsettledCalls = errors.New("dragoman: calls without a result")
	// ErrAttachment reports that the content of an attachment was not found, or was not
	// put back before a request was encoded.
	ErrAttachment = errors.New("dragoman: attachment not resolved")
	// ErrVersion says that stored JSON was written by a newer version.
	ErrVersion = errors.New("dragoman: stored by a newer version")
)

// DecodeError says where wire input is wrong.
type DecodeError struct {
	Dialect Dialect
	// What was being decoded: "request", "response", "stream", "error".
	What string
	// Pointer is the JSON pointer of the place, Offset its byte; Offset is -1
	// when unknown.
	Pointer string
	Offset  int64
	Err     error
}

func (e *DecodeError) Error() string {
	if e == nil {
		return "dragoman: no error"
	}
	s := fmt.Sprintf("%s %s: ", e.Dialect, e.What)
	if e.Pointer != "" {
		s += "at " + e.Pointer + ": "
	}
	if e.Err != nil {
		s += e.Err.Error()
	}
	if e.Offset >= 0 {
		s += fmt.Sprintf(" (byte %d)", e.Offset)
	}
	return s
}

func (e *DecodeError) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.Err
}

// ErrorClass says what kind of failure an API error is, in our words: one of
// the constants from [ErrorBadRequest] to [ErrorUnknown].
type ErrorClass string

// The classes of error.
const (
	ErrorBadRequest    ErrorClass = "bad_request"
	ErrorAuth          ErrorClass = "authentication"
	ErrorPermission    ErrorClass = "permission"
	ErrorNotFound      ErrorClass = "not_found"
	ErrorTooLarge      ErrorClass = "too_large"
	ErrorContextLength ErrorClass = "context_length"
	ErrorRateLimit     ErrorClass = "rate_limit"
	ErrorQuota         ErrorClass = "quota"
	ErrorOverloaded    ErrorClass = "overloaded"
	ErrorTimeout       ErrorClass = "timeout"
	ErrorConflict      ErrorClass = "conflict"
	ErrorServer        ErrorClass = "server"
	ErrorPolicy        ErrorClass = "policy"
	ErrorUnknown       ErrorClass = "unknown"
)

// APIError is an error that a model API reported, or that we report in its
// dialect.
//
//stored:value error
type APIError struct {
	Class ErrorClass `json:"class,omitzero"`
	// Status is the HTTP status; 0 inside a stream.
	Status  int    `json:"status,omitzero" hash:"-"`
	Message string `json:"message,omitzero"`
	// Type, Code and Param are the provider's own words.
	Type  string `json:"type,omitzero"`
	Code  string `json:"code,omitzero"`
	Param string `json:"param,omitzero"`
	// RequestID is the provider's id of the request.
	RequestID string `json:"request_id,omitzero" hash:"-"`
	// RetryAfter is the wait the provider asked for; zero means none.
	RetryAfter time.Duration `json:"retry_after,omitzero" hash:"-"`
	// Native is the error object of the server, unchanged.
	Native *Native `json:"native,omitzero"`
	// Err is the cause on the side of the client, if any. Stored JSON has its text and
	// the names of the sentinel errors of this package that it wraps.
	Err error `json:"cause,omitzero" hash:"-"`
}

func (e *APIError) Error() string {
	if e == nil {
		return "dragoman: no error"
	}
	s := e.Message
	if s == "" {
		s = string(e.Class)
	}
	if e.Type != "" {
		s = e.Type + ": " + s
	}
	if e.Status != 0 {
		s = fmt.Sprintf("%d %s", e.Status, s)
	}
	return s
}

func (e *APIError) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.Err
}

// Retryable reports whether the same request may succeed later.
func (e *APIError) Retryable() bool {
	if e == nil {
		return false
	}
	switch e.Class {
	case ErrorRateLimit, ErrorOverloaded, ErrorTimeout, ErrorConflict, ErrorServer:
		return true
	default:
		return errors.Is(e.Err, ErrIncompleteStream)
	}
}
