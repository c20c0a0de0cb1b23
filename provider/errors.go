package provider

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/provider/extension"
	"github.com/dragoman-go/dragoman/sim"
)

var (
	errNoKey  = errors.New("it is empty")
	errBadKey = errors.New("it has characters that no header can carry")
)

func isAPIError(err error) bool {
	var api *dragoman.APIError
	return errors.As(err, &api)
}

// isExtensionError reports whether an extension failed, and not the server.
func isExtensionError(err error) bool {
	var e *extension.Error
	return errors.As(err, &e)
}

// RequestTooLargeError reports that a request was not sent because it has more bytes than
// [Client].MaxRequestBytes. It wraps [dragoman.ErrTooLarge], as the error for a response
// above its bound does.
type RequestTooLargeError struct {
	Bytes, Max int
}

func (e *RequestTooLargeError) Error() string {
	return fmt.Sprintf("provider: the request has %d bytes, and at most %d are sent: %v", e.Bytes, e.Max, dragoman.ErrTooLarge)
}

// Unwrap returns [dragoman.ErrTooLarge].
func (e *RequestTooLargeError) Unwrap() error { return dragoman.ErrTooLarge }

// Retryable reports whether asking the same again may succeed: after an error of
// the server's that says so, a connection that could not be made or broke, a
// phase that took too long, and a stream that ended early; of a chain, where
// that holds for one of its models.
func Retryable(err error) bool {
	var (
		api       *dragoman.APIError
		timeout   *TimeoutError
		transport *TransportError
		untrusted *tls.CertificateVerificationError
		chain     *ChainError
	)
	switch {
	case err == nil:
		return false
	case errors.As(err, &chain):
		return slices.ContainsFunc(chain.Attempts, func(a Attempt) bool { return a.Err == nil || Retryable(a.Err) })
	case errors.As(err, &timeout):
		return timeout.Phase != phaseTotal
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return false
	case errors.Is(err, dragoman.ErrTooLarge): // and a stream that was given up for it ended early, too
		return false
	case errors.As(err, &api):
		return api.Retryable()
	case errors.As(err, &transport):
		return !errors.As(err, &untrusted) && !errors.Is(err, sim.ErrNotRecorded) // asking again records nothing
	default:
		return errors.Is(err, dragoman.ErrIncompleteStream)
	}
}
