package extension

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
)

// Extension is anything that adapts requests or answers. What it does beside
// telling who it is are the hooks that it has: see the package comment. An
// extension is used by many requests at once; what belongs to one of them it keeps
// in the [Exchange].
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

// Info says who an extension is and when it is on.
type Info struct {
	// Name is unique, such as "deepseek.reasoning".
	Name string
	// Version is told in listings and logs; empty is none.
	Version string
	// Description is one sentence for people.
	Description string
	// Requires are tags that must all be there, Forbids tags of which none may
	// be. An extension without either is on for every request: a feature.
	Requires, Forbids []Tag
	// Provides are tags that are there where the extension is on.
	Provides []Tag
	// OptIn extensions are off until they are named.
	OptIn bool
}

// Initializer is called once, before the first request of a client for which the
// extension is on, with its settings; nil where there are none. One that fails is
// called again for the next.
type Initializer interface {
	Initialize(ctx context.Context, settings json.RawMessage) error
}

// Preparer is called before the request is encoded. It may change the target's
// capabilities and what it finds in the exchange; the request itself is not its
// to change. Fields that it writes into [Exchange.Payload] replace the fields of the
// provider. An extension that writes the list of tools, even an empty one, therefore sends
// all tools itself (requirement R6).
type Preparer interface {
	Prepare(ctx context.Context, x *Exchange) error
}

// Contributor adds formats and adapters to the request's registry, before those
// of the tools and behind those of the configuration.
type Contributor interface {
	Contribute(x *Exchange) []dragoman.Contribution
}

// Decorator changes the native payload. A knob that only one server knows is added
// where the configuration asks for it, and nowhere else.
type Decorator interface {
	Decorate(ctx context.Context, x *Exchange) error
}

// ChunkReader sees the native chunks of a response. It may merge what it finds in them
// into the exchange's Partial, and change the message of the response with
// [Exchange.Change] or [Accumulator].Into. The chunk is valid until the hook returns.
type ChunkReader interface {
	ReadChunk(ctx context.Context, x *Exchange, chunk json.RawMessage) error
}

// Finisher maps what was collected into the complete response. Its changes reach history,
// streamed or not. The events of a stream were sent before: parts that are added after the
// last one are sent as events before the end, and all other changes are in the Output of
// the [dragoman.ResponseEnd], which replaces the output of the events.
type Finisher interface {
	Finish(ctx context.Context, x *Exchange, resp *dragoman.Response) error
}

// NativeWriter adds fields to native messages that their server accepts and their dialect
// does not have. It keeps no state.
//
// ToNative gets the encoded messages of a request, or a single one, with their native forms.
// If the two lists do not match, it must return native unchanged; the function [ToNative]
// does that. If the dialect has one message for each tool result, so has messages. ToNative
// is not called if the native messages cannot be matched with those of the conversation.
type NativeWriter interface {
	ToNative(messages []dragoman.Message, native []json.RawMessage) []json.RawMessage
}

// NativeReader adds information to messages from native fields that their dialect does not
// have. It keeps no state.
//
// FromNative gets the messages of a response with their native forms, before a [Finisher]
// runs. If the two lists do not match, it must return messages unchanged; the function
// [FromNative] does that. The native form of a streamed message is assembled from
//   - the message as its dialect encodes it;
//   - the unknown fields of its chunks, with strings concatenated and lists appended;
//   - the values below "/message" of [Exchange.Partial].
type NativeReader interface {
	FromNative(native []json.RawMessage, messages []dragoman.Message) []dragoman.Message
}

// Idler says that with its settings, which are nil where there are none, it changes
// nothing of a request that the model's own API takes, nor of its answer. Where all
// extensions are idle, such a request can be passed on as it is. One that does not
// say it, and has a hook, is not idle.
type Idler interface {
	Idle(settings json.RawMessage) bool
}

// Configurable describes the settings of an extension with a JSON Schema of one object. The
// settings in a config file are validated when the file is read, even if the extension is
// off for every request.
type Configurable interface {
	ConfigSchema() json.RawMessage
}

// Presenter describes how to display the settings of an extension, given their values, the
// model and the tools.
type Presenter interface {
	Elements(env Env) []Element
}

// Actor has actions on sessions, given its settings and the model.
type Actor interface {
	Actions(env Env) []Action
}

// Error is what an extension failed with.
type Error struct {
	// Extension is its name and Hook what it was called for, such as "decorate".
	Extension, Hook string
	Err             error
}

func (e *Error) Error() string {
	return "extension " + e.Extension + ": " + e.Hook + ": " + e.Err.Error()
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// ErrExtensions is wrapped by every error about a set of extensions that cannot be
// used together.
var ErrExtensions = errors.New("extension: not usable together")
