package stream

import (
	"bytes"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
)

// Held collects the events of one wire event until it is completely read, and the
// unknown fields of the wire event, which are emitted with these events. The zero value
// is ready to use.
type Held struct {
	// Dialect is the dialect of the fields.
	Dialect dragoman.Dialect
	// NoFields drops unknown fields.
	NoFields bool
	// Rep receives the loss of fields that cannot be emitted.
	Rep *dragoman.Report

	// Wait means that the fields of the current wire event belong to its end: they wait
	// for the next event. Release resets it.
	Wait bool

	events []dragoman.Event
	fields *dragoman.Extra // of the current wire event
	// waiting holds the fields of earlier wire events without an event, in order.
	// Neighbors differ in the value of a field with the same name.
	waiting []*dragoman.Extra
	lost    bool // the loss was reported
}

// Hold adds an event. It always returns nil.
func (h *Held) Hold(ev dragoman.Event) error {
	h.events = append(h.events, ev)
	return nil
}

// Field stores a copy of an unknown field of the wire event: name below prefix, which
// is a JSON pointer or empty.
func (h *Held) Field(prefix string, name, value []byte) {
	if h.NoFields || len(value) == 0 {
		return
	}
	extra.Add(&h.fields, h.Dialect, prefix, name, bytes.Clone(value))
}

// TakeFields returns and removes the fields of the current wire event.
func (h *Held) TakeFields() *dragoman.Extra {
	fields := h.fields
	h.fields = nil
	return fields
}

// Release emits chunk, unless it is nil, and the events, in order, until emit returns
// an error. The first event that can carry the unknown fields gets them. If there is no
// such event, carrier may return one; if carrier is nil or returns nil, the fields wait
// for the next wire event. Nothing else is held afterwards.
func (h *Held) Release(chunk *dragoman.Chunk, carrier func() *dragoman.PartDelta, emit func(dragoman.Event) error) error {
	if h.fields != nil || len(h.waiting) > 0 && len(h.events) > 0 {
		h.attach(carrier)
	}
	h.Wait = false
	var err error
	if chunk != nil {
		err = emit(chunk)
	}
	for i, ev := range h.events {
		if err != nil {
			break
		}
		h.events[i] = nil // release memory early: all calls of a stream may end in one event
		err = emit(ev)
	}
	clear(h.events)
	h.events = h.events[:0]
	return err
}

// attach assigns the fields to events.
func (h *Held) attach(carrier func() *dragoman.PartDelta) {
	alone := len(h.events) == 0
	h.queue()
	for len(h.waiting) > 1 && h.carry(carrier) { // otherwise later fields would be delayed even further
	}
	last := false
	for _, ev := range h.events {
		if slot := fieldsOf(ev); slot != nil && *slot == nil && len(h.waiting) > 0 {
			*slot, h.waiting = h.waiting[0], h.waiting[1:]
		}
		if _, ok := ev.(*dragoman.ResponseEnd); ok {
			last = true
		}
	}
	if last && len(h.waiting) > 0 { // no event follows
		h.waiting = nil
		h.lose()
	}
	if alone && !h.Wait && len(h.waiting) > 0 {
		h.carry(carrier)
	}
	h.limit()
}

// queue adds the fields of the current wire event to the waiting ones. It merges them
// with the last ones unless a field has a different value.
func (h *Held) queue() {
	fields := h.TakeFields()
	if fields == nil {
		return
	}
	if n := len(h.waiting); n > 0 && !h.replaces(h.waiting[n-1], fields) {
		for _, f := range fields.Fields {
			extra.Add(&h.waiting[n-1], h.Dialect, f.Path[:strings.LastIndexByte(f.Path, '/')], extra.Name(f.Path), f.Value)
		}
		return
	}
	h.waiting = append(h.waiting, fields)
}

// replaces reports whether later has a field of earlier with a different value.
func (h *Held) replaces(earlier, later *dragoman.Extra) bool {
	for _, f := range later.Fields {
		if value, ok := extra.Get(earlier, h.Dialect, f.Path); ok && !bytes.Equal(value, f.Value) {
			return true
		}
	}
	return false
}

// maxWaitingBytes limits the fields that wait for an event.
const maxWaitingBytes = 32 << 10

// limit drops waiting fields that exceed the limits.
func (h *Held) limit() {
	n, size := 0, 0
	for i, fields := range h.waiting {
		for _, f := range fields.Fields {
			n, size = n+1, size+len(f.Path)+len(f.Value)
		}
		if n <= MaxFields && size <= maxWaitingBytes {
			continue
		}
		h.waiting = h.waiting[:i:i]
		h.lose()
		return
	}
}

// lose reports, once, that fields are lost.
func (h *Held) lose() {
	if !h.lost && h.Rep != nil {
		h.lost = true
		h.Rep.Add(dragoman.Dropped, dragoman.Info, "", "some unknown fields of events without content are not kept")
	}
}

// carry inserts an event for the first waiting fields, before the events with content.
func (h *Held) carry(carrier func() *dragoman.PartDelta) bool {
	if carrier == nil {
		return false
	}
	ev := carrier()
	if ev == nil || slices.ContainsFunc(h.events, func(other dragoman.Event) bool { return starts(other, ev) }) {
		return false
	}
	at := slices.IndexFunc(h.events, func(other dragoman.Event) bool { return !carries(other) })
	if at < 0 {
		at = len(h.events)
	}
	ev.Extra, h.waiting = h.waiting[0], h.waiting[1:]
	h.events = slices.Insert(h.events, at, dragoman.Event(ev))
	return true
}

// carries reports whether an event only carries fields.
func carries(ev dragoman.Event) bool {
	d, ok := ev.(*dragoman.PartDelta)
	return ok && d.Text == ""
}

// starts reports whether an event starts the part of a delta.
func starts(ev dragoman.Event, delta *dragoman.PartDelta) bool {
	start, ok := ev.(*dragoman.PartStart)
	return ok && start.Choice == delta.Choice && start.Index == delta.Index
}

// fieldsOf returns the unknown fields of an event, or nil if it cannot carry any.
func fieldsOf(ev dragoman.Event) **dragoman.Extra {
	switch ev := ev.(type) {
	case *dragoman.ResponseStart:
		return &ev.Extra
	case *dragoman.PartStart:
		return &ev.Extra
	case *dragoman.PartDelta:
		return &ev.Extra
	case *dragoman.PartEnd:
		return &ev.Extra
	case *dragoman.ResponseEnd:
		return &ev.Extra
	default:
		return nil
	}
}
