// Package history makes any conversation valid for any target: it is called
// once before every encode, by whoever sends requests.
//
//	out, report, err := history.Normalize(req, history.Options{
//		Target: target, Limits: codec.Limits(),
//	})
//	if err != nil {
//		return err // calls that still wait for a result, by name
//	}
//	enc, err := codec.EncodeRequest(out, dialect.EncodeOptions{Target: target})
//
// A conversation may have been written by several models, cancelled, trimmed,
// edited or sent by a client with ideas of its own. What a target refuses in it
// is known as data, [targets.Limits] and [targets.Capabilities], and is put
// right here: every call gets exactly one result at a place the target accepts,
// state of another provider is left out, roles and contents fit, and no thinking
// budget is asked for where the thinking it continues is missing. How that is
// written (blocks merged into messages, ids and names aliased, schemas lowered)
// is the encoder's matter and is not done here.
//
// # What is promised
//
// Normalising changes nothing it is given, and is a function of it: no clock,
// no randomness. A conversation that needs nothing comes back as the same
// pointer; a message that needs nothing comes back with the same parts and the
// same sidecar, so that it is replayed byte for byte. Doing it twice is doing it
// once. Everything that was done is in the report, at its place in the request
// that was given.
//
// A settled conversation that grows stays as it was: what was made of its
// beginning is what is made of the beginning of the longer one. The exceptions
// are a late result, which replaces an earlier one of the same call or what
// stood in for it; reasoning that a target forbids in older turns
// ([targets.Capabilities].NoOldReasoning); and the words that stand at the
// very end while a target refuses to end with the assistant's
// ([targets.Capabilities].NoPrefill), or that open a conversation without any.
//
// # Calls without a result
//
// A call is settled, pending or abandoned. A pending one makes an
// [*UnsettledError], because sending a guess would settle it for good. A call
// that can never run (its arguments are broken, the response around it failed
// or was cancelled) is abandoned by itself; for others the caller decides with
// [Options].Abandon. An abandoned call is answered by [Abandoned]; who keeps a
// log stores that result, so that it never changes.
package history
