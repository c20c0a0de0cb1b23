package wirekit

import (
	"errors"
	"fmt"

	dragoman "github.com/dragoman-go/dragoman"
)

// FieldError reports the field of a request that makes it impossible to send. A server that
// translates requests reports it under the name of the field in the client's dialect.
type FieldError struct {
	// By is the package or dialect that refuses the request.
	By string
	// Field is "messages" or "tools".
	Field string
	// Detail says what is wrong.
	Detail string
	// Dropped says what was dropped from a conversation of which nothing is left. It is empty if
	// nothing was dropped.
	Dropped string
	// Err is the sentinel of the error.
	Err error
}

func (e *FieldError) Error() string {
	return fmt.Sprintf("%s: %s: %s", e.By, withDropped(e.Detail, e.Dropped), e.Err)
}
func (e *FieldError) Unwrap() error { return e.Err }

// The fields of a [FieldError].
const (
	FieldMessages = "messages"
	FieldTools    = "tools"
)

// NoMessage returns the detail for an empty list of messages; field is the name of the list
// in a dialect.
func NoMessage(field string) string { return field + ": at least one message is required" }

// withDropped adds to a detail what was dropped.
func withDropped(detail, dropped string) string {
	if dropped == "" {
		return detail
	}
	return detail + "; dropped: " + dropped
}

// NameDropped adds to a [FieldError] for a conversation without messages the first serious
// loss of the report, which says why no message is left. It returns other errors unchanged.
func NameDropped(err error, rep dragoman.Report) error {
	e, ok := err.(*FieldError) //nolint:errorlint // an error of the codec, not a cause
	if !ok || e.Field != FieldMessages {
		return err
	}
	for _, l := range rep.Losses {
		if l.Kind == dragoman.Dropped && l.Severity == dragoman.Serious {
			out := *e
			out.Dropped = l.Detail
			return &out
		}
	}
	return err
}

// NoTools returns the detail for a model that does not take tools.
func NoTools(model string) string {
	if model == "" {
		return "the model does not take tools"
	}
	return fmt.Sprintf("the model %q does not take tools", model)
}

// ClientError returns the [FieldError] in err as an error for a client that requested
// model and whose dialect has its conversation in the field messages. It returns nil if
// err does not wrap a FieldError.
func ClientError(err error, messages, model string) *dragoman.APIError {
	var e *FieldError
	if !errors.As(err, &e) {
		return nil
	}
	out := &dragoman.APIError{Class: dragoman.ErrorBadRequest, Param: e.Field, Err: err}
	if e.Field == FieldMessages {
		out.Param = messages
		out.Message = withDropped(NoMessage(out.Param), e.Dropped)
	} else {
		out.Message = NoTools(model)
	}
	return out
}
