package gateway

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/serving"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/tool"
)

// apiError converts an error for the client: it keeps the class and removes internal details
// (quirk J3).
func apiError(err error) *dragoman.APIError {
	var api *dragoman.APIError
	var chain *provider.ChainError
	var timeout *provider.TimeoutError
	var transport *provider.TransportError
	var setting *provider.SettingError
	var missing *provider.MissingKeyError
	var large *provider.RequestTooLargeError
	var own *ownError
	var unknown *provider.SpecError
	var unread *dragoman.DecodeError
	switch {
	case errors.As(err, &own):
		return own.err
	case errors.As(err, &missing), errors.As(err, &setting):
		// The gateway lacks the credentials, not the client.
		return &dragoman.APIError{Class: dragoman.ErrorServer, Status: http.StatusBadGateway, Message: "the gateway has no working configuration for this model; see the log of the gateway", Err: err}
	case errors.As(err, &chain):
		return chainError(chain, err)
	case errors.As(err, &api) && api.Status >= http.StatusOK && api.Status < http.StatusMultipleChoices && api.Message != "":
		return upstreamError(api) // such as a web page instead of a stream
	case errors.Is(err, dragoman.ErrIncompleteStream):
		return &dragoman.APIError{Class: dragoman.ErrorServer, Status: http.StatusBadGateway, Message: "the connection to the upstream broke", Err: err}
	case errors.As(err, &api):
		return upstreamError(api)
	case errors.As(err, &unread): // an invalid client request is refused earlier
		return &dragoman.APIError{Class: dragoman.ErrorServer, Status: http.StatusBadGateway, Message: "the upstream sent a response that cannot be decoded", Err: err}
	case errors.As(err, &timeout):
		return &dragoman.APIError{Class: dragoman.ErrorTimeout, Status: http.StatusGatewayTimeout, Message: "the upstream timed out (" + timeout.Phase + " timeout)", Err: err}
	case errors.As(err, &transport):
		message := "the connection to the upstream broke"
		if dial := new(net.OpError); errors.As(err, &dial) && dial.Op == "dial" {
			message = "the upstream cannot be reached"
		}
		return &dragoman.APIError{Class: dragoman.ErrorServer, Status: http.StatusBadGateway, Message: message, Err: err}
	case errors.Is(err, provider.ErrEmpty):
		return &dragoman.APIError{Class: dragoman.ErrorServer, Status: http.StatusBadGateway, Message: "the upstream sent an empty response", Err: err}
	case errors.As(err, &unknown):
		return &dragoman.APIError{Class: dragoman.ErrorNotFound, Message: err.Error(), Err: err}
	case errors.As(err, &large):
		return &dragoman.APIError{Class: dragoman.ErrorTooLarge, Message: err.Error(), Err: err}
	case errors.Is(err, dragoman.ErrTooLarge): // the client's own request is refused before it is sent
		return &dragoman.APIError{Class: dragoman.ErrorServer, Status: http.StatusBadGateway, Message: "the upstream response is too large: " + err.Error(), Err: err}
	case errors.Is(err, dragoman.ErrInvalid), errors.Is(err, dragoman.ErrUnsettledCalls), errors.Is(err, dragoman.ErrUnsupported):
		e := serving.AsRequestError(err)
		e.Message = withoutSentinels(e.Message)
		return e
	case errors.Is(err, context.DeadlineExceeded):
		return &dragoman.APIError{Class: dragoman.ErrorTimeout, Status: http.StatusGatewayTimeout, Message: "the upstream timed out", Err: err}
	default:
		return &dragoman.APIError{Class: dragoman.ErrorServer, Message: "internal error of the gateway; see its log", Err: err}
	}
}

// withoutSentinels removes the texts of sentinel errors from a message: they help programs,
// not clients.
func withoutSentinels(message string) string {
	for _, err := range []error{dragoman.ErrInvalid, dragoman.ErrUnsettledCalls, dragoman.ErrUnsupported} {
		message = strings.ReplaceAll(message, ": "+err.Error(), "")
		message = strings.ReplaceAll(message, err.Error()+": ", "")
	}
	return message
}

// ownError marks an error as made by the gateway, not by an upstream.
type ownError struct{ err *dragoman.APIError }

func (e *ownError) Error() string { return e.err.Message } // its status is that of the client's dialect
func (e *ownError) Unwrap() error { return e.err }

// markOwn marks an API error as made by the gateway. Other errors are returned unchanged.
func markOwn(err error) error {
	var api *dragoman.APIError
	var already *ownError
	if errors.As(err, &already) || !errors.As(err, &api) {
		return err
	}
	return &ownError{api}
}

// chainError returns the error for a list of models that all failed: the error of the last one
// that was called.
func chainError(chain *provider.ChainError, err error) *dragoman.APIError {
	last := lastAttempt(chain)
	if last == nil {
		return &dragoman.APIError{Class: dragoman.ErrorOverloaded, Message: "no model of this route is available at the moment; try again later; try again later", Err: err}
	}
	e := *apiError(last)
	e.Err = err
	return &e
}

// lastAttemptError returns the error of the last called model of a chain, and any other error
// unchanged.
func lastAttemptError(err error) error {
	var chain *provider.ChainError
	if errors.As(err, &chain) {
		if last := lastAttempt(chain); last != nil {
			return last
		}
	}
	return err
}

// lastAttempt returns the error of the link that was called last. If none was called, it returns
// the error of the last link that a policy denied, or nil.
func lastAttempt(chain *provider.ChainError) (denied error) {
	for _, a := range slices.Backward(chain.Attempts) {
		var d *tool.DeniedError
		switch {
		case a.Err == nil:
		case !errors.As(a.Err, &d):
			return a.Err
		case denied == nil:
			denied = a.Err
		}
	}
	return denied
}

// upstreamError converts an error of an upstream:
//
//   - If the upstream refuses the gateway's credential, the client gets a 502: its own key
//     is fine.
//   - If the upstream refuses a model or region to that credential, the client gets a 403 with
//     the reason. A 5xx would make clients retry.
func upstreamError(e *dragoman.APIError) *dragoman.APIError {
	if e.Status >= http.StatusMultipleChoices && e.Status < http.StatusBadRequest {
		// The message names a host and a setting of the gateway. Both are for its operator.
		return &dragoman.APIError{Class: dragoman.ErrorServer, Status: http.StatusBadGateway, Message: "the upstream redirects, and the gateway does not follow redirects; see its log", Err: e}
	}
	switch e.Class {
	case dragoman.ErrorAuth:
		return &dragoman.APIError{Class: dragoman.ErrorServer, Status: http.StatusBadGateway, Message: "the upstream rejected the gateway's own credential; ask the operator to check it", Err: e}
	case dragoman.ErrorPermission:
		message := "the upstream denied the gateway permission"
		if why := e.Message; why != "" && !revealsAccount(why) {
			message += ": " + why
		}
		return &dragoman.APIError{Class: dragoman.ErrorPermission, Status: http.StatusForbidden, Message: message, Err: e}
	case dragoman.ErrorServer:
		if e.Status >= http.StatusBadRequest || e.Status == 0 {
			return e
		}
		out := *e // a success status with a body that is not a response, such as a web page
		out.Status = http.StatusBadGateway
		return &out
	default:
		return e
	}
}

// revealsAccount reports whether an error text reveals the gateway's account with the upstream: it
// quotes a credential, which was redacted, or names the account as AWS does.
func revealsAccount(text string) bool {
	return strings.Contains(text, "[redacted]") || strings.Contains(text, "arn:aws")
}
