package extension

import (
	"encoding/json"
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
)

// ToNative calls f for every message with its native form, which f may change. A
// ToNative hook can use it. If the lists differ in length, or f fails, it returns native
// unchanged.
func ToNative(messages []dragoman.Message, native []json.RawMessage, f func(m *dragoman.Message, native *Object) error) []json.RawMessage {
	if len(messages) != len(native) {
		return native
	}
	out := slices.Clone(native)
	for i := range messages {
		o, err := NewObject(native[i])
		m := copied(&messages[i])
		if err != nil || f(&m, &o) != nil {
			return native
		}
		out[i] = o.JSON()
	}
	return out
}

// FromNative calls f for a copy of every message with its native form; f may add to the copy. A
// FromNative hook can use it. If the lists differ in length, or f fails, it returns messages
// unchanged.
func FromNative(native []json.RawMessage, messages []dragoman.Message, f func(native *Object, m *dragoman.Message) error) []dragoman.Message {
	if len(messages) != len(native) {
		return messages
	}
	out := make([]dragoman.Message, len(messages))
	for i := range out {
		out[i] = copied(&messages[i])
		o, err := NewObject(native[i])
		if err != nil || f(&o, &out[i]) != nil {
			return messages
		}
	}
	return out
}

// copied returns a deep copy of a message.
func copied(m *dragoman.Message) dragoman.Message {
	out := *m
	out.Parts = copiedParts(m.Parts)
	out.Cache, out.Origin, out.Native = pointer(m.Cache), pointer(m.Origin), pointer(m.Native)
	out.Extra = copiedExtra(m.Extra)
	return out
}

func copiedParts(parts []dragoman.Part) []dragoman.Part {
	out := slices.Clone(parts)
	for i, p := range out {
		switch p := p.(type) {
		case *dragoman.Text:
			if c := pointer(p); c != nil {
				c.Cache, c.Extra = pointer(c.Cache), copiedExtra(c.Extra)
				out[i] = c
			}
		case *dragoman.Reasoning:
			if c := pointer(p); c != nil {
				c.Summary, c.Details = slices.Clone(c.Summary), slices.Clone(c.Details)
				c.Origin, c.Extra = pointer(c.Origin), copiedExtra(c.Extra)
				out[i] = c
			}
		case *dragoman.Media:
			if c := pointer(p); c != nil {
				c.Cache, c.Extra = pointer(c.Cache), copiedExtra(c.Extra)
				out[i] = c
			}
		case *dragoman.ToolCall:
			if c := pointer(p); c != nil {
				c.Problem, c.Cache, c.Extra = pointer(c.Problem), pointer(c.Cache), copiedExtra(c.Extra)
				out[i] = c
			}
		case *dragoman.ToolResult:
			if c := pointer(p); c != nil {
				c.Content = copiedParts(c.Content)
				c.Envelope, c.Cache, c.Extra = pointer(c.Envelope), pointer(c.Cache), copiedExtra(c.Extra)
				out[i] = c
			}
		case *dragoman.Refusal:
			if c := pointer(p); c != nil {
				c.Extra = copiedExtra(c.Extra)
				out[i] = c
			}
		case *dragoman.Data:
			if c := pointer(p); c != nil {
				out[i] = c
			}
		case *dragoman.Opaque:
			if c := pointer(p); c != nil {
				out[i] = c
			}
		}
	}
	return out
}

func copiedExtra(e *dragoman.Extra) *dragoman.Extra {
	c := pointer(e)
	if c != nil {
		c.Fields = slices.Clone(c.Fields)
	}
	return c
}

// pointer returns a pointer to a copy; nil for nil.
func pointer[T any](p *T) *T {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}
