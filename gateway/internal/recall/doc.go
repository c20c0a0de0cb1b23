// Package recall remembers what clients forget, so that a gateway can put it back
// before it asks the provider again.
//
//	r, err := recall.New(recall.Options{Notes: store.Notes()}) // or &memorynotes.Notes{}
//	report, err := r.Restore(ctx, recall.Scope{Key: "team", Route: "fast"}, req)
//	// … the request is sent, the answer passed on …
//	err = r.Keep(ctx, scope, req, resp)
//
// # Reasoning
//
// Providers sign and encrypt what their models think and want it back, on the very
// part it came with; most clients drop what they do not know (quirk B17). [Recall.Keep]
// takes the opaque things of an answer aside, and [Recall.Restore] puts them back into
// the history that a client sends, as the provider minted them and with their origin:
// what then may go to which target is the business of package history.
//
// An answer is found by whose it is (the virtual key, the route), by the conversation
// before it, and by what the client saw of it: the words, and the calls with their
// ids, or by place, tool and arguments where the client's dialect has no ids. Nothing
// is guessed: an answer that the client changed has nothing put back, and neither has
// what follows it, as that is another conversation from there on. Where it is known
// that an answer to this conversation had something, its loss is reported. What the
// client did return stays as it is: no signature is sent twice.
//
// What makes two conversations the same is what their participants said: ids, cache
// markers, instructions, reasoning and how texts are split do not count, nor white
// space in the words of the assistant, which dialects join in different ways.
//
// # Responses
//
// [Recall.Save], [Recall.Load] and [Recall.Delete] keep the conversations that clients
// of OpenAI's Responses continue by previous_response_id, where the provider keeps none
// (requirement G7).
//
// All of it expires, is bounded, and may be shared by several gateways, as the notes it
// is kept in are.
package recall
