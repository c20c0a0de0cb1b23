package dragoman

import (
	"errors"
	"fmt"

	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// Stored JSON of the interfaces Part and Event. The field "type" selects the
// Go type.

// MarshalPart writes a part as stored JSON; its "type" is the part's kind.
func MarshalPart(p Part) ([]byte, error) {
	out := newStorer(storedSize(p))
	storePart(p, &out)
	return out.done("part")
}

// UnmarshalPart reads a stored part.
func UnmarshalPart(data []byte) (Part, error) {
	var p Part
	if err := load(data, "part", false, &p, loadPart); err != nil {
		return nil, err
	}
	if p == nil {
		return nil, errors.New("dragoman: stored part is null")
	}
	return p, nil
}

func storePart(p Part, out *storer) {
	if isNilPart(p) {
		out.fail(errors.New("a part is nil"))
		out.w.Null()
		return
	}
	out.w.BeginObject()
	out.w.StringField("type", p.Kind())
	storePartMembers(p, out)
	out.w.EndObject()
}

func loadPart(r *jsonwire.Reader) Part {
	if r.Kind() == 'n' {
		r.Skip()
		r.Fail(errors.New("a part is null"))
		return nil
	}
	var a anyPart
	a.load(r)
	if r.Err() != nil {
		return nil
	}
	p := a.part()
	if p == nil {
		r.Fail(unknownType("a part", a.typeName))
	}
	return p
}

// loadOptPart reads a part that may be absent.
func loadOptPart(r *jsonwire.Reader) Part {
	if r.Null() {
		return nil
	}
	return loadPart(r)
}

func unknownType(what, name string) error {
	if name == "" {
		return fmt.Errorf(`%s has no "type"`, what)
	}
	return fmt.Errorf("%s has the unknown type %.80q", what, name)
}

// loadPartInto reads a stored part of one known kind.
func loadPartInto[T any, P interface {
	*T
	Part
}](data []byte, dst P) error {
	return load(data, dst.Kind(), false, (*T)(dst), func(r *jsonwire.Reader) (v T) {
		switch p := loadPart(r).(type) {
		case P:
			v = *p
		case nil:
		default:
			r.Fail(fmt.Errorf("type is %q, want %q", p.Kind(), dst.Kind()))
		}
		return v
	})
}

// MarshalEvent writes an event as stored JSON, with its version and "type".
func MarshalEvent(ev Event) ([]byte, error) {
	out := newStorer(160)
	if isNilEvent(ev) {
		out.fail(errors.New("the event is nil"))
	} else {
		out.top("event")
		out.w.StringField("type", ev.Type())
		storeEventMembers(ev, &out)
		out.w.EndObject()
	}
	return out.done("event")
}

// UnmarshalEvent reads a stored event.
func UnmarshalEvent(data []byte) (Event, error) {
	var ev Event
	if err := load(data, "event", true, &ev, loadEvent); err != nil {
		return nil, err
	}
	if ev == nil {
		return nil, errors.New("dragoman: stored event is null")
	}
	return ev, nil
}

func loadEvent(r *jsonwire.Reader) Event {
	var a anyEvent
	a.load(r)
	if r.Err() != nil {
		return nil
	}
	ev := a.event()
	if ev == nil {
		r.Fail(unknownType("the event", a.typeName))
	}
	return ev
}

// loadEventInto reads a stored event of one known type.
func loadEventInto[T any, P interface {
	*T
	Event
}](data []byte, dst P) error {
	return load(data, dst.Type(), true, (*T)(dst), func(r *jsonwire.Reader) (v T) {
		switch ev := loadEvent(r).(type) {
		case P:
			v = *ev
		case nil:
		default:
			r.Fail(fmt.Errorf("type is %q, want %q", ev.Type(), dst.Type()))
		}
		return v
	})
}

// The sizes below are estimates, slightly larger than most values, so that
// buffers seldom grow.

func (m *Message) storedSize() int {
	size := 40
	for _, p := range m.Parts {
		size += storedSize(p)
	}
	if o := m.Origin; o != nil {
		size += 64 + len(o.Dialect) + len(o.Provider) + len(o.Scope) + len(o.Model)
	}
	if m.Native != nil {
		size += 128 + quotedSize(len(m.Native.Raw))
	}
	if m.Extra != nil {
		size += 48
		for _, f := range m.Extra.Fields {
			size += 24 + len(f.Path) + quotedSize(len(f.Value))
		}
	}
	return size
}

func (r *Request) storedSize() int {
	size := 256 + 256*len(r.Tools) + messagesSize(r.Messages)
	for i := range r.Tools {
		size += len(r.Tools[i].Description) + quotedSize(len(r.Tools[i].Parameters))
	}
	if r.Native != nil {
		size += quotedSize(len(r.Native.Raw))
	}
	return size
}

func (r *Response) storedSize() int {
	size := 256 + messagesSize(r.Output)
	if r.Native != nil {
		size += quotedSize(len(r.Native.Raw))
	}
	return size
}

func (u *Usage) storedSize() int { return 128 }

func messagesSize(list []Message) int {
	size := 0
	for i := range list {
		size += list[i].storedSize()
	}
	return size
}

func storedSize(p Part) int {
	const frame = 48
	if isNilPart(p) {
		return frame
	}
	switch p := p.(type) {
	case *Text:
		return frame + len(p.Text) + len(p.Text)/8
	case *Reasoning:
		return frame + len(p.Text) + len(p.Text)/8 + len(p.Encrypted) + len(p.Signature)
	case *Media:
		return 2*frame + len(p.Base64) + len(p.Text) + len(p.URL)
	case *ToolCall:
		return 2*frame + len(p.ID) + len(p.Name) + quotedSize(len(p.Arguments))
	case *ToolResult:
		size := 2*frame + len(p.CallID) + len(p.Name)
		for _, inner := range p.Content {
			size += storedSize(inner)
		}
		return size
	case *Data:
		return frame + quotedSize(len(p.JSON))
	case *Opaque:
		return 2*frame + quotedSize(len(p.JSON))
	default:
		return frame
	}
}

// quotedSize estimates the size of n bytes of JSON as a JSON string.
func quotedSize(n int) int { return n + n/4 }
