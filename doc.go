// Package dragoman is the canonical model: messages, tools, calls, results,
// responses and stream events in Go types that belong to no vendor.
//
// Everything else in the module turns some wire language into these types or
// these types into some wire language. A request decoded from one dialect and
// encoded in another keeps its meaning, and every conversion returns a
// [Report] that names what it could not keep.
//
//	req := &dragoman.Request{
//		Model:    "claude-opus-5-5",
//		Messages: []dragoman.Message{dragoman.UserText("Do I need a coat in Oslo?")},
//	}
//	enc, err := anthropic.Codec{}.EncodeRequest(req, dialect.EncodeOptions{})
//	// send enc.Body; enc.Report says what could not be kept
//
// The package does no I/O, starts nothing, and holds no global state. Values
// are plain data: safe to copy, safe for concurrent reading.
//
// # Stored JSON
//
// Sessions and logs keep canonical values as JSON. Every struct of this package
// implements json.Marshaler and json.Unmarshaler, but for three groups that
// are not stored: settings ([Target], [Limits] and the [Capabilities], [NameRule],
// [IDRule] and [ReplayRules] in them), machinery ([Collector], [Contribution],
// [AdapterInput]), and what only the caller of a model sees ([Failover],
// [FailedModel], [DecodeError], [LossError]). [MarshalPart], [UnmarshalPart], [MarshalEvent] and
// [UnmarshalEvent] serve the two interfaces. The rules, which hold for every
// type and every version:
//
//   - A value that is stored by itself (a message, a request, a response, a
//     tool, an event, a report) carries "v", the version it was written in. A
//     higher one is refused with [ErrVersion], a missing one is an error. Values
//     inside others have no version of their own.
//   - Members stand in the order of the fields, under the names in their json
//     tags. Zero members are left out, but for those of a [Loss]; a list that
//     is empty but not nil is written, because for a tool choice the one means
//     no tool and the other all of them.
//   - Native JSON (arguments, sidecars, extras, schemas) stands in a string:
//     encoding/json would compact and escape it otherwise, and its bytes must
//     survive. Native bytes that are not UTF-8 stand in {"base64": "…"}, and
//     survive too. Go strings are text: what is not UTF-8 in one becomes
//     U+FFFD (quirk C17).
//   - Reading ignores members it does not know, so that a newer writer of the
//     same version may add some, and refuses a type of part or event it does
//     not know, by name. Reading replaces the whole value, or leaves it
//     unchanged when it fails.
package dragoman
