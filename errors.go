package dragoman

import (
	"errors"
	"fmt"
	"time"
)

var (
	// ErrIncompleteStream reports that a stream ended without its terminal event. The events
	// that had arrived were delivered. A retry may succeed.
	ErrIncompleteStream = errors.New("dragoman: stream ended before its terminal event")
	// ErrTooLarge reports that input exceeds a size limit.
	ErrTooLarge = errors.New("dragoman: input exceeds a size limit")
	// ErrUnsupported reports that the target cannot express something that must not be dropped.
	ErrUnsupported = errors.New("dragoman: not supported by the target")
	// ErrUnsettledCalls reports that a conversation cannot be sent yet: some of its calls wait
	// for an approval, an input or a result.
	ErrUnsettledCalls = errors.New("dragoman: calls without a result")
	// ErrAttachment reports that the content of an attachment was not found, or was not
	// restored before the request was encoded.
	ErrAttachment = errors.New("dragoman: attachment not resolved")
	// ErrVersion reports that stored JSON was written by a newer version.
	ErrVersion = errors.New("dragoman: stored by a newer version")
)

// DecodeError reports invalid wire input and its position.
type DecodeError struct {
	Dialect Dialect
	// What names the decoded value: "request", "response", "stream" or "error".
	What string
	// Pointer is the JSON pointer of the position and Offset its byte offset, or -1 if unknown.
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

// ErrorClass is the vendor-neutral class of an API error: one of the constants from
// [ErrorBadRequest] to [ErrorUnknown].
type ErrorClass string

// The error classes.
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

// APIError is an error that a model API returned, or that we return in the API's dialect.
//
//stored:value error
type APIError struct {
	Class ErrorClass `json:"class,omitzero"`
	// Status is the HTTP status; 0 for an error inside a stream.
	Status  int    `json:"status,omitzero" hash:"-"`
	Message string `json:"message,omitzero"`
	// Type, Code and Param are the provider's own values.
	Type  string `json:"type,omitzero"`
	Code  string `json:"code,omitzero"`
	Param string `json:"param,omitzero"`
	// RequestID is the provider's id of the request.
	RequestID string `json:"request_id,omitzero" hash:"-"`
	// RetryAfter is the delay that the provider asked for; zero means none.
	RetryAfter time.Duration `json:"retry_after,omitzero" hash:"-"`
	// Native is the error object of the server, unchanged.
	Native *Native `json:"native,omitzero"`
	// Err is the client-side cause, if any. Stored JSON keeps its text and the names of this
	// package's sentinel errors that it wraps.
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
