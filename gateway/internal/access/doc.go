// Package access decides which clients may use a gateway, with which models, and how much:
// virtual keys (requirement G3).
//
//	keys, err := access.New([]access.Key{{Name: "search", Hash: access.HashOf(secret), RequestsPerMinute: 60}}, access.Options{})
//
//	lease, err := keys.Enter(ctx, access.FromRequest(r)) // before the body is read; or a *RefusedError
//	defer lease.Release()
//	err = lease.Admit(model, estimate) // or a *RefusedError
//	lease.Spend(usage)                 // once it is known, and again when there is more
//
// It uses HTTP only to read keys from requests, and opens no models.
//
// # What is counted
//
// Parallel counts requests from the moment their headers are read until they end.
//
// Requests per minute are a bucket that holds a minute's worth and fills evenly: a key that
// was idle may send all of it at once. Tokens per minute are such a bucket as well, from which
// the tokens of a response are taken when it ends: it may be in debt afterwards, and nothing
// is admitted until the debt is paid.
//
// A budget is reserved: a request is admitted while some of the budget is neither spent nor
// reserved by requests under way, and reserves its estimate until it ends. Concurrent
// requests exceed a budget by less than one request's estimate, if no request uses more
// than its estimate.
//
// Budgets are for calendar hours, days and months in UTC. All counts are in memory: they
// start at zero with the process, and each gateway counts for itself, so that N replicas
// admit up to N times the budget.
package access
