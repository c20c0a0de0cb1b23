// Package access decides who may ask a gateway for what: virtual keys, the models
// that each may name, and how much of them (requirement G3).
//
//	keys, err := access.New([]access.Key{{Name: "search", Hash: access.HashOf(secret), RequestsPerMinute: 60}}, access.Options{})
//
//	lease, err := keys.Admit(ctx, access.FromRequest(r), model) // or a *RefusedError
//	defer lease.Release()
//	lease.Spend(usage) // once it is known, and again when more is
//
// It knows no HTTP beyond where clients put their keys, and opens no models.
//
// # What is counted
//
// Requests per minute are a bucket that holds a minute's worth and fills evenly: who
// was quiet may ask for all of it at once. Tokens are known when an answer ends, so
// they are taken afterwards: an answer may leave the bucket, or the budget, in debt,
// and until that is paid nothing more is admitted. What is under way at the same time
// is not known yet; Parallel bounds how much that can be.
//
// Budgets are of calendar hours, days and months in UTC. All counts are in memory:
// they begin anew with the process, and several gateways count each for itself.
package access
