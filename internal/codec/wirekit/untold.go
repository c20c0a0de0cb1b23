package wirekit

import (
	"fmt"
	"strconv"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/framing/sse"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// MaxUntold bounds the kinds of things that are reported of one stream.
const MaxUntold = 64

// maxTyp is how much of a type tells it from others.
const maxTyp = 256

// andMore is the detail of the line for all that is beyond the bound.
const andMore = "and more of this kind, which are not told one by one"

// Unknown makes the losses of events that a decoder does not know, one for each
// type. The zero value is ready.
type Unknown struct {
	losses  map[string]*dragoman.Loss
	members map[string]*dragoman.Loss // of deltas, by their names
	more    *dragoman.Loss            // of every type beyond the bound
}

// Of is what is lost with an event of the type typ where its bytes are not
// passed on. It is nil for one that says nothing, and the same for all beyond the
// bound.
func (u *Unknown) Of(typ []byte) *dragoman.Loss {
	if keepsAlive(typ) {
		return nil
	}
	typ = typ[:min(len(typ), maxTyp)] // what is kept of it does not grow with it
	if l := u.losses[string(typ)]; l != nil {
		return l
	}
	return u.add(string(typ), dragoman.Warn, fmt.Sprintf("events of type %.60q, which have no canonical form", typ))
}

// Members is what is lost with an event of the type typ that has members which a
// decoder does not know, where its bytes are not passed on: one loss for each type
// and what it has. It is nil where there are none.
func (u *Unknown) Members(typ []byte, s *Strays) *dragoman.Loss {
	if len(s.names) == 0 {
		return nil
	}
	s.names = append(append(s.names, '\x00'), typ[:min(len(typ), maxTyp)]...) // no type of an event is written so
	if l := u.losses[string(s.names)]; l != nil {
		return l
	}
	names, of, _ := strings.Cut(string(s.names), "\x00")
	return u.add(string(s.names), dragoman.Info, fmt.Sprintf("members of %.60s that have no canonical form: %s", of, names))
}

// add makes the loss of a kind that is new.
func (u *Unknown) add(key string, sev dragoman.Severity, detail string) *dragoman.Loss {
	if len(u.losses) >= MaxUntold {
		if u.more == nil {
			u.more = &dragoman.Loss{Kind: dragoman.Dropped, Severity: dragoman.Warn, Detail: andMore}
		}
		return u.more
	}
	if u.losses == nil {
		u.losses = make(map[string]*dragoman.Loss)
	}
	l := &dragoman.Loss{Kind: dragoman.Dropped, Severity: sev, Detail: detail}
	u.losses[key] = l
	return l
}

// Member is what is lost with the member key of a delta that a decoder does not
// know, as Of is for events. before is what is lost with another member of the
// same delta, or nil: then they are told together.
func (u *Unknown) Member(before *dragoman.Loss, key []byte) *dragoman.Loss {
	if before != nil {
		key = append([]byte(strings.TrimPrefix(before.Detail, memberOfDeltas)+", "), key...)
	}
	key = key[:min(len(key), maxTyp)]
	if l := u.members[string(key)]; l != nil {
		return l
	}
	if len(u.members) >= MaxUntold {
		key = []byte("…")
	}
	l := &dragoman.Loss{
		Kind: dragoman.Dropped, Severity: dragoman.Warn,
		Detail: memberOfDeltas + strings.ToValidUTF8(string(key), ""),
	}
	if u.members == nil {
		u.members = make(map[string]*dragoman.Loss)
	}
	u.members[string(key)] = l
	return l
}

// memberOfDeltas begins the detail of members, before their names.
const memberOfDeltas = "members of deltas that are not collected: "

// Strays are the members of one event that its decoder does not know. The zero
// value is ready; it takes memory for an event that has some only.
type Strays struct{ names []byte }

// Reset forgets the members, for the next event.
func (s *Strays) Reset() { s.names = s.names[:0] }

// Add takes a member that stands at a place of the event, which is empty for the
// event itself. Of very many, or long ones, the first are told.
func (s *Strays) Add(place string, key []byte) {
	if len(s.names) >= maxTyp {
		return
	}
	if len(s.names) > 0 {
		s.names = append(s.names, ", "...)
	}
	s.names = append(s.names, place...)
	s.names = strconv.AppendQuote(s.names, string(key[:min(len(key), maxStray)]))
}

// maxStray is how much of the name of a member is told.
const maxStray = 60

// keepsAlive reports whether events of a type say nothing.
func keepsAlive(typ []byte) bool {
	switch string(typ) {
	case "ping", "keepalive", "heartbeat":
		return true
	default:
		return false
	}
}

// Late reports, once, that something came behind the end of a stream, which is
// nobody's (quirk C12). The zero value is ready.
type Late struct{ told bool }

// Event takes an event behind the end. One that keeps the connection alive says
// nothing.
func (l *Late) Event(ev sse.Event, rep *dragoman.Report) {
	if l.told || SaysNothing(ev) || keepsAlive(ev.Name) || keepsAlive([]byte(EventType(ev.Data))) {
		return
	}
	l.Bytes(rep)
}

// Bytes takes anything else behind the end.
func (l *Late) Bytes(rep *dragoman.Report) {
	if !l.told {
		l.told = true
		rep.Add(dragoman.Dropped, dragoman.Info, "", "what came behind the end of the stream")
	}
}

// EventType is the type that an event gives itself; empty if it gives none.
func EventType(data []byte) (typ string) {
	r := jsonwire.NewReader(data)
	if r.Kind() != '{' {
		return ""
	}
	for key := range r.Object() {
		if string(key) == "type" && r.Kind() == '"' {
			typ = r.String()
		} else {
			r.Skip()
		}
	}
	return typ
}

// Untold reports what is lost with the chunks of a stream that are not written,
// each thing once. The zero value is ready.
type Untold struct{ reported map[dragoman.Loss]bool }

// Lose takes a loss; nil is none. Those beyond the bound have one line in common.
func (u *Untold) Lose(l *dragoman.Loss, rep *dragoman.Report) {
	if l == nil || u.reported[*l] || len(u.reported) > MaxUntold {
		return
	}
	if len(u.reported) == MaxUntold {
		l = &dragoman.Loss{Kind: dragoman.Dropped, Severity: max(l.Severity, dragoman.Warn), Detail: andMore}
	}
	if u.reported == nil {
		u.reported = make(map[dragoman.Loss]bool)
	}
	u.reported[*l] = true
	rep.Losses = append(rep.Losses, *l)
}

// Chunk returns the bytes that an encoder of dialect d writes for a chunk: those
// of an opaque event of its own dialect. Otherwise it returns nil, and reports
// what another dialect loses.
func (u *Untold) Chunk(c *dragoman.Chunk, d dragoman.Dialect, o dialect.EncodeOptions, rep *dragoman.Report) []byte {
	switch {
	case c.Opaque && c.Dialect == d && !o.Rebuild:
		return c.Raw
	case c.Opaque || c.Dialect != d:
		u.Lose(c.Loss, rep)
	}
	return nil
}

// Addf is [dragoman.Report.Addf] for what a stream could say any number of
// times: the same line is told once.
func (u *Untold) Addf(rep *dragoman.Report, kind dragoman.LossKind, sev dragoman.Severity, path, format string, args ...any) {
	u.Lose(&dragoman.Loss{Kind: kind, Severity: sev, Path: path, Detail: fmt.Sprintf(format, args...)}, rep)
}
