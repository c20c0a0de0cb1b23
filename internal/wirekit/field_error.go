package wirekit

import (
	"errors"
	"fmt"

	dragoman "github.com/dragoman-go/dragoman"
)

// FieldError says which field of a request makes it impossible to send. A server that
// translates reports it under the name that the field has for its client.
type FieldError struct {
	// Package or dialect that refuses the request.
	By string
	// Field is "messages" or "tools".
	Field string
	// Detail says what is wrong.
	Detail string
	// Err is the sentinel of the error.
	Err error
}

func (e *FieldError) Error() string { return fmt.Sprintf("%s: %s: %s", e.By, e.Detail, e.Err) }
func (e *FieldError) Unwrap() error { return e.Err }

// The fields of a [FieldError].
const (
	FieldMessages = "messages"
	FieldTools    = "tools"
)

// NoMessage says that a list of messages is empty. field is its name in a dialect.
func NoMessage(field string) string { return field + ": at least one message is required" }

// NoTools says that a model does not take tools.
func NoTools(model string) string {
	if model == "" {
		return "the model does not take tools"
	}
	return fmt.Sprintf("the model %q does not take tools", model)
}

// MessagesField returns the name of the field that holds the messages of a request.
func MessagesField(d dragoman.Dialect) string {
	switch d {
	case dragoman.OpenAIResponses:
		return "input"
	case dragoman.Gemini:
		return "contents"
	default:
		return "messages"
	}
}

// ClientError returns the [FieldError] in err in the words of a client of the dialect that
// asked for model; nil if err has none.
func ClientError(err error, d dragoman.Dialect, model string) *dragoman.APIError {
	var e *FieldError
	if !errors.As(err, &e) {
		return nil
	}
	out := &dragoman.APIError{Class: dragoman.ErrorBadRequest, Param: e.Field, Err: err}
	if e.Field == FieldMessages {
		out.Param = MessagesField(d)
		out.Message = NoMessage(out.Param)
	} else {
		out.Message = NoTools(model)
	}
	return out
}
