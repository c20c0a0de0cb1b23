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
	errNoKey  = errors.New("the value is empty")
	errBadKey = errors.New("the value has characters that are not allowed in a header")
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
// [Client].MaxRequestBytes. It wraps [dragoman.ErrTooLarge], like the error for a response that
// is too large.
type RequestTooLargeError struct {
	Bytes, Max int
}

func (e *RequestTooLargeError) Error() string {
	return fmt.Sprintf("provider: the request has %d bytes, and the limit is %d: %v", e.Bytes, e.Max, dragoman.ErrTooLarge)
}

// Unwrap returns [dragoman.ErrTooLarge].
func (e *RequestTooLargeError) Unwrap() error { return dragoman.ErrTooLarge }

// Retryable reports whether the same request may succeed if it is sent again. This is the case
// after
//
//   - a server error that allows it,
//   - a connection that failed or was cut off,
//   - a timeout of a phase,
//   - a stream that ended early,
//   - a chain error, if one of these is the error of one of its models.
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
	case errors.Is(err, dragoman.ErrTooLarge): // a stream that was stopped for its size also ended early
		return false
	case errors.As(err, &api):
		return api.Retryable()
	case errors.As(err, &transport):
		return !errors.As(err, &untrusted) && !errors.Is(err, sim.ErrNotRecorded) // sending it again does not record a response
	default:
		return errors.Is(err, dragoman.ErrIncompleteStream)
	}
}
