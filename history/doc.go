// Package history makes any conversation valid for any target. Senders of requests call it once
// before every encode:
//
//	out, report, err := history.Normalize(req, history.Options{
//		Target: target, Limits: codec.Limits(),
//	})
//	if err != nil {
//		return err // for example, names the calls without a result
//	}
//	enc, err := codec.EncodeRequest(out, dialect.EncodeOptions{Target: target})
//
// A conversation may have been written by several models, or canceled, trimmed or edited.
// [targets.Limits] and [targets.Capabilities] describe what a target refuses. Normalize fixes it:
//   - Every call has exactly one result, at a place that the target accepts.
//   - State of another provider is dropped.
//   - Roles and contents fit the target.
//   - No thinking budget is requested if the reasoning that it continues is missing.
//
// The encoder, not this package, decides how that is written: it merges blocks into messages,
// aliases ids and names, and lowers schemas.
//
// # Guarantees
//
//   - Normalize does not change its input, and its result depends only on its input: it uses no
//     clock and no randomness.
//   - A conversation that needs no change is returned as the same pointer. A message that needs no
//     change keeps its parts and its native form, so it is replayed byte for byte.
//   - Normalize is idempotent.
//   - The report lists every change, with its place in the original request.
//   - When a settled conversation grows, the normalized form of its beginning stays the same.
//
// The exceptions to the last guarantee are:
//   - a late result, which replaces an earlier result or placeholder of the same call
//   - reasoning that a target forbids in older turns ([targets.Capabilities].NoOldReasoning)
//   - the text added at the end for a target that refuses a final assistant message
//     ([targets.Capabilities].NoPrefill), and the text added at the start of a conversation without a
//     user message
//
// # Calls without a result
//
// A call is settled, pending or abandoned. A pending call causes an [*UnsettledError], because
// sending a guess would settle it permanently. A call that can never run is abandoned
// automatically: its arguments are broken, or its response failed or was canceled. For other calls
// the caller decides with [Options].Abandon. An abandoned call gets the result [Abandoned]. Callers
// that keep a log should store that result, so that it never changes.
package history
