// Package dragoman defines the canonical model: vendor-neutral Go types for messages, tools,
// calls, results, responses and stream events.
//
// The other packages of the module convert between wire formats and these types. A request that
// is decoded from one dialect and encoded in another keeps its meaning. Every conversion
// returns a [Report] of its losses.
//
//	req := &dragoman.Request{
//		Model:    "claude-opus-5-5",
//		Messages: []dragoman.Message{dragoman.UserText("Do I need a coat in Oslo?")},
//	}
//	enc, err := anthropic.Codec{}.EncodeRequest(req, dialect.EncodeOptions{})
//	// send enc.Body; enc.Report lists the losses
//
// The package does no I/O, starts no goroutines and has no global state. Values are plain data:
// safe to copy, safe for concurrent reading.
//
// # Stored JSON
//
// Sessions and logs store canonical values as JSON. Every struct of this package implements
// json.Marshaler and json.Unmarshaler, except [Collector], [Contribution], [AdapterInput], and
// the errors and reports for callers of a model ([Failover], [FailedModel], [DecodeError],
// [LossError]). Use [MarshalPart], [UnmarshalPart], [MarshalEvent] and [UnmarshalEvent] for the
// interfaces [Part] and [Event]. These rules hold for every type and every version:
//
//   - A value that is stored by itself (a message, a request, a response, a tool, an event, a
//     report) has the field "v", the version of its format. Reading a higher version fails with
//     [ErrVersion]; reading a value without a version fails. Values inside others have no
//     version.
//   - Fields are written in the order of the struct, under the names in their json tags. Zero
//     values are omitted, except in a [Loss]. An empty list that is not nil is written: in a
//     tool choice, an empty list allows no tool, and a nil list allows all of them.
//   - Native JSON (arguments, sidecars, extras, schemas) is stored as a string, which preserves
//     its bytes: encoding/json would compact and escape them. Native bytes that are not UTF-8
//     are stored as {"base64": "…"}. In other strings, invalid UTF-8 becomes U+FFFD (quirk
//     C17).
//   - Reading ignores unknown fields, so that a newer writer of the same version may add some.
//     An unknown type of part or event is an error that names the type. Reading replaces the
//     whole value; if it fails, the value is unchanged.
package dragoman
