package extension

import (
	"encoding/json"
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
)

// ToNative lets f add to the native form of every message what the message says,
// and is what a [NativeWriter] calls. Where there are not as many native messages as
// messages, or f fails, native is returned as it was: a mapping that is not sure
// which belongs to which does nothing.
func ToNative(messages []dragoman.Message, native []json.RawMessage, f func(m *dragoman.Message, native *Object) error) []json.RawMessage {
	if len(messages) != len(native) {
		return native
	}
	out := slices.Clone(native)
	for i := range messages {
		o, err := NewObject(native[i])
		if err != nil || f(&messages[i], &o) != nil {
			return native
		}
		out[i] = o.JSON()
	}
	return out
}

// FromNative lets f add to every message what its native form says. The messages
// that are given are not changed. Where the lists do not line up, or f fails, they
// are returned as they were.
func FromNative(native []json.RawMessage, messages []dragoman.Message, f func(native *Object, m *dragoman.Message) error) []dragoman.Message {
	if len(messages) != len(native) {
		return messages
	}
	out := slices.Clone(messages)
	for i := range out {
		out[i].Parts = slices.Clone(out[i].Parts)
		o, err := NewObject(native[i])
		if err != nil || f(&o, &out[i]) != nil {
			return messages
		}
	}
	return out
}
