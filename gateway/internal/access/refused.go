package access

import (
	"fmt"
	"net/http"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/textkit"
)

// Reason is the reason for a refusal: one of the constants from [NoKey] to [BudgetSpent].
type Reason string

// The reasons.
const (
	// NoKey: the request has no key.
	NoKey Reason = "no_key"
	// UnknownKey: the key of the request is unknown.
	UnknownKey Reason = "unknown_key"
	// ModelNotAllowed: the key may not use this model.
	ModelNotAllowed Reason = "model_not_allowed"
	// TooManyRequests: the limit of requests per minute is reached.
	TooManyRequests Reason = "too_many_requests"
	// TooManyTokens: the limit of tokens per minute is reached.
	TooManyTokens Reason = "too_many_tokens"
	// TooManyAtOnce: the limit of parallel requests is reached.
	TooManyAtOnce Reason = "too_many_at_once"
	// TooManyBytes: the request bodies of the key in progress have reached their limit of buffered
	// bytes.
	TooManyBytes Reason = "too_many_bytes"
	// FieldNotAllowed: a body field chooses models that the key may not use.
	FieldNotAllowed Reason = "field_not_allowed"
	// BudgetReserved: requests under way may use up the rest of the budget.
	BudgetReserved Reason = "budget_reserved"
	// BudgetSpent: the budget of this period is exhausted.
	BudgetSpent Reason = "budget_spent"
)

// RefusedError reports why a request was not admitted. It never contains the secret.
type RefusedError struct {
	Reason Reason
	// Key is the name of the key; empty if none was found.
	Key string
	// Model is the requested model and Allowed lists the models that the key may use, if
	// Reason is ModelNotAllowed.
	Model   string
	Allowed []string
	// Suggestion is a similar name that the key may use; empty if there is none.
	Suggestion string
	// Field is the body field, for FieldNotAllowed.
	Field string
	// Limit is the limit that was reached, if any.
	Limit int64
	// Per is the period of an exhausted budget.
	Per Period
	// RetryAfter is the time until another request can be admitted; for a budget, until the
	// next period. Zero means that waiting does not help.
	RetryAfter time.Duration
}

func (e *RefusedError) Error() string { return "access: " + e.message() }

// message returns the text for the client.
func (e *RefusedError) message() string {
	switch e.Reason {
	case NoKey:
		return "the API key of this gateway is missing: set it as the API key of your client (Authorization: Bearer …, x-api-key, x-goog-api-key, api-key or ?key=…)"
	case UnknownKey:
		return "unknown API key"
	case ModelNotAllowed:
		text := fmt.Sprintf("the key %s may not use the model %.200q: allowed models are %s", e.Key, e.Model, joinSome(e.Allowed))
		if e.Suggestion != "" {
			text += "; did you mean " + e.Suggestion + "?"
		}
		return text
	case TooManyRequests:
		return fmt.Sprintf("the key %s has reached its limit of %s per minute; try again in %v", e.Key, textkit.Count(e.Limit, "request"), e.RetryAfter)
	case TooManyTokens:
		return fmt.Sprintf("the key %s has reached its limit of %s per minute; try again in %v", e.Key, textkit.Count(e.Limit, "token"), e.RetryAfter)
	case TooManyAtOnce:
		return fmt.Sprintf("the key %s has %s running, which is its limit; wait for one to end", e.Key, textkit.Count(e.Limit, "request"))
	case TooManyBytes:
		return fmt.Sprintf("the request bodies of the key %s have reached its limit of %s; wait for a request to end", e.Key, textkit.Count(e.Limit, "buffered byte"))
	case FieldNotAllowed:
		return fmt.Sprintf("%s chooses models or their servers in addition to model, and the key %s may use only %s; remove the field, or ask the operator to list it under fields of the key", e.Field, e.Key, joinSome(e.Allowed))
	case BudgetReserved:
		return fmt.Sprintf("running requests have reserved the rest of the budget of the key %s, %s per %s; wait for one to end", e.Key, textkit.Count(e.Limit, "token"), e.Per)
	default:
		return fmt.Sprintf("the key %s has used its budget of %s per %s; the next period begins in %v", e.Key, textkit.Count(e.Limit, "token"), e.Per, e.RetryAfter)
	}
}

// API returns the error for the client. An exhausted budget is [dragoman.ErrorQuota], not a
// rate limit: dialects have error codes for it that clients do not retry ("insufficient_quota",
// "billing_error").
func (e *RefusedError) API() *dragoman.APIError {
	out := &dragoman.APIError{Message: e.message(), RetryAfter: e.RetryAfter, Err: e}
	switch e.Reason {
	case NoKey, UnknownKey:
		out.Class, out.Status = dragoman.ErrorAuth, http.StatusUnauthorized
	case ModelNotAllowed:
		out.Class, out.Status, out.Param = dragoman.ErrorPermission, http.StatusForbidden, "model"
	case FieldNotAllowed:
		out.Class, out.Status, out.Param = dragoman.ErrorPermission, http.StatusForbidden, e.Field
	case BudgetSpent:
		out.Class, out.Status = dragoman.ErrorQuota, http.StatusTooManyRequests
	default:
		out.Class, out.Status = dragoman.ErrorRateLimit, http.StatusTooManyRequests
	}
	return out
}
