package extension

import (
	"errors"
	"fmt"
	"strings"
)

// Extension adapts requests or responses. In addition to Info it has any of these methods, the
// hooks:
//
//	Initialize(ctx context.Context, settings json.RawMessage) error
//	Prepare(ctx context.Context, x *Exchange) error
//	Contribute(x *Exchange) []dragoman.Contribution
//	ToNative(messages []dragoman.Message, native []json.RawMessage) []json.RawMessage
//	Decorate(ctx context.Context, x *Exchange) error
//	ReadChunk(ctx context.Context, x *Exchange, chunk json.RawMessage) error
//	FromNative(native []json.RawMessage, messages []dragoman.Message) []dragoman.Message
//	Finish(ctx context.Context, x *Exchange, resp *dragoman.Response) error
//	Tags(env Env) []Tag
//	Idle(settings json.RawMessage) bool
//	ConfigSchema() json.RawMessage
//	Elements(env Env) []Element
//	Actions(env Env) []Action
//
// [NewSet] refuses an extension that has a method of one of these names with other
// parameters or results, or only on its pointer.
//
// An extension is used by many requests at once. It keeps what belongs to one of them in
// the [Exchange].
//
// Initialize is called once, before the first request of a client for which the extension
// is on, with its settings; nil if there are none. If it fails, it is called again for the
// next request.
//
// Prepare is called before the request is encoded, and also when only the target of a model
// is needed, such as for an agent or a session. It may change the capabilities of the
// target and the exchange; it must not change the request itself. Fields that it writes into
// [Exchange.Payload] replace the fields of the provider. An extension that writes the list of
// tools, even an empty one, therefore sends all tools itself (requirement R6).
//
// Contribute adds formats and adapters to the registry of the request, before those of the
// tools and after those of the configuration.
//
// ToNative adds fields to native messages that their server accepts and their dialect does
// not have. It keeps no state. It gets the encoded messages of a request, or a single one,
// with their native forms. If the two lists do not match, it must return native unchanged;
// the function [ToNative] does that. If the dialect has one message for each tool result, so
// has messages. ToNative is not called if the native messages cannot be matched with those of
// the conversation.
//
// Decorate changes the native payload. A setting that only one server knows is added where
// the configuration asks for it, and nowhere else.
//
// ReadChunk sees the native chunks of a response. It may merge what it finds in them into
// [Exchange.Partial], and change the message of the response with [Exchange.Change] or
// [Accumulator].Into. The chunk is valid until the hook returns.
//
// FromNative adds information to messages from native fields that their dialect does not
// have. It keeps no state. It gets the messages of a response with their native forms, before
// Finish. If the two lists do not match, it must return messages unchanged; the function
// [FromNative] does that. The native form of a streamed message is assembled from
//   - the message as its dialect encodes it;
//   - the unknown fields of its chunks, with strings concatenated and lists appended;
//   - the values below "/message" of [Exchange.Partial].
//
// Finish maps what was collected into the complete response. Its changes reach history,
// streamed or not. The events of a stream were sent before: parts that are added after the
// last one are sent as events before the end, and all other changes are in the Output of the
// [dragoman.ResponseEnd], which replaces the output of the events.
//
// Tags returns tags that depend on the settings, the model or the tools of the request. They
// are added to those of [Info].Provides while the extension is on. Tags is called at most
// once for a request, after the tags found so far switch the extension on; tags of other
// extensions may still switch it off.
//
// Idle reports whether the extension, with these settings, changes nothing of a request that
// the model's own API takes, nor of its response. If all extensions are idle, such a request
// can be passed through. An extension without Idle that has another hook of a request is not
// idle.
//
// ConfigSchema returns a JSON Schema of the settings, which are one object. The settings in a
// config file are validated when the file is read, even if the extension is off for every
// request. Elements describes how to display the settings.
//
// Actions returns what the extension can do to a session.
type Extension interface {
	Info() Info
}

// Tag is a word about a request, such as "server:vllm".
type Tag string

// Check returns an error unless the tag is valid: up to 128 letters, digits and the
// characters . _ : / - and @.
func (t Tag) Check() error {
	ok := t != "" && len(t) <= 128
	for i := 0; ok && i < len(t); i++ {
		c := t[i]
		ok = c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("._:/-@", c) >= 0
	}
	if !ok {
		return fmt.Errorf("%.150q is not a tag: use up to 128 letters, digits and the characters . _ : / - @", string(t))
	}
	return nil
}

// Info describes an extension and when it is on.
type Info struct {
	// Name is unique, such as "deepseek.reasoning".
	Name string
	// Version is shown in listings and logs; it may be empty.
	Version string
	// Description is one sentence for display.
	Description string
	// Requires lists tags that must all be present, Forbids tags of which none may be. An
	// extension without either is on for every request.
	Requires, Forbids []Tag
	// Provides lists tags that the extension adds while it is on.
	Provides []Tag
	// OptIn extensions are off unless the configuration turns them on.
	OptIn bool
}

// Error is an error of an extension.
type Error struct {
	// Extension is the name of the extension and Hook the hook that failed, such as "decorate".
	Extension, Hook string
	Err             error
}

func (e *Error) Error() string {
	return "extension " + e.Extension + ": " + e.Hook + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// ErrExtensions is wrapped by every error about a set of extensions that cannot be
// used together.
var ErrExtensions = errors.New("extension: the extensions cannot be used together")
