// Package recall stores state that clients drop, so that a gateway can restore it in later
// requests to the provider.
//
//	r, err := recall.New(recall.Options{Notes: store.Notes()}) // or &storekit.Notes{}
//	report, err := r.Restore(ctx, recall.Scope{Key: "team", Route: "fast"}, req)
//	// … the request is sent, the answer passed on …
//	err = r.Keep(ctx, scope, req, resp)
//
// # Reasoning
//
// Providers sign and encrypt the reasoning of their models and require it back, on the part it
// came with; most clients drop what they do not know (quirk B17). [Recall.StoreState] stores the
// opaque parts of an answer, and [Recall.RestoreState] puts them back into the history that a client
// sends, unchanged and with their origin. Package history decides what may be sent to which
// target.
//
// An answer is found by its owner (the virtual key, the route), by the conversation before it,
// and by what the client saw of it: the text, and the calls with their ids, or by position,
// tool and arguments if the client's dialect has no ids. Nothing is guessed: an answer that the
// client changed is not restored, and neither is anything after it, because that is another
// conversation. If an answer to this conversation is known to have had state, its loss is
// reported. State that the client did return is not changed: no signature is sent twice.
//
// Two conversations are the same if their participants said the same: ids, cache markers,
// instructions, reasoning and the splitting of texts do not count, nor does white space in
// texts of the assistant, which dialects join in different ways.
//
// # Responses
//
// [Recall.SaveResponse], [Recall.LoadResponse] and [Recall.DeleteResponse] store the conversations that OpenAI
// Responses clients continue by previous_response_id, if the provider stores none (requirement
// G7).
//
// All state expires, is bounded, and may be shared by several gateways, as the underlying notes
// are.
package recall
