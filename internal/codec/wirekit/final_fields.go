package wirekit

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
)

// FinalFields reports unknown fields that only the ends of parts carry, for an encoder that
// cannot write them in a stream. The encoder itself reports fields that the starts carry.
// The zero value is ready to use.
type FinalFields struct {
	messages map[[2]int]int // by choice and index of open parts, if not 0
	seen     map[messageField]bool
}

type messageField struct {
	choice, message int
	path            string
}

// Start records the start of a part.
func (f *FinalFields) Start(ev *dragoman.PartStart) {
	if ev.Message != 0 {
		if f.messages == nil {
			f.messages = map[[2]int]int{}
		}
		f.messages[[2]int{ev.Choice, ev.Index}] = ev.Message
	}
	if ev.Header != nil && ev.Header.Extra != nil {
		for _, field := range ev.Header.Extra.Fields {
			f.first(messageField{ev.Choice, ev.Message, field.Path})
		}
	}
}

// End records the end of a part. It reports each field once per message, for an encoder of
// dialect d.
func (f *FinalFields) End(rep *dragoman.Report, d dragoman.Dialect, ev *dragoman.PartEnd) {
	fields, at := f.Own(rep, d, ev)
	for _, field := range fields {
		rep.Add(dragoman.Dropped, dragoman.Info, at.String()+field.Path, "a stream cannot carry this field of a message")
	}
}

// Own is like End, for an encoder that writes the fields of its own dialect. It returns
// the fields that it has not returned before, and the path of their message.
func (f *FinalFields) Own(rep *dragoman.Report, d dragoman.Dialect, ev *dragoman.PartEnd) ([]dragoman.Field, extra.Path) {
	part := [2]int{ev.Choice, ev.Index}
	message := f.messages[part]
	delete(f.messages, part)
	at := extra.Elem(extra.Choice(ev.Choice)+"/output", message)
	if ev.Header == nil || ev.Header.Extra == nil {
		return nil, at
	}
	fresh := dragoman.Extra{Dialect: ev.Header.Extra.Dialect}
	for _, field := range ev.Header.Extra.Fields {
		if f.first(messageField{ev.Choice, message, field.Path}) {
			fresh.Fields = append(fresh.Fields, field)
		}
	}
	extra.Report(rep, &fresh, d, at)
	return fresh.For(d), at
}

// first reports whether a field is seen for the first time.
func (f *FinalFields) first(field messageField) bool {
	if f.seen[field] {
		return false
	}
	if f.seen == nil {
		f.seen = map[messageField]bool{}
	}
	f.seen[field] = true
	return true
}
