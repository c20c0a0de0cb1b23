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

// MaxUnwritten limits the kinds of losses that are reported for one stream.
const MaxUnwritten = 64

// maxTyp is the length of a type name that distinguishes it from others.
const maxTyp = 256

// andMore is the detail of the loss for everything beyond the limit.
const andMore = "and more losses of this kind, not listed"

// Unknown makes the losses for events that a decoder does not know, one for each type.
// The zero value is ready to use.
type Unknown struct {
	losses map[string]*dragoman.Loss
	fields map[string]*dragoman.Loss // for deltas, by field name
	more   *dragoman.Loss            // for every type beyond the limit
}

// Of returns the loss for an event of type typ whose bytes are not passed through. It
// returns nil for a keep-alive event, and one shared loss for all types beyond the
// limit.
func (u *Unknown) Of(typ []byte) *dragoman.Loss {
	if isKeepAlive(typ) {
		return nil
	}
	typ = typ[:min(len(typ), maxTyp)] // bounds the memory
	if l := u.losses[string(typ)]; l != nil {
		return l
	}
	return u.add(string(typ), dragoman.Warn, fmt.Sprintf("events of type %.60q have no canonical form", typ))
}

// Fields returns the loss for an event of type typ that has the unknown fields s and
// whose bytes are not passed through: one loss for each type and set of fields. It
// returns nil if there are no unknown fields.
func (u *Unknown) Fields(typ []byte, s *UnknownKeys) *dragoman.Loss {
	if len(s.names) == 0 {
		return nil
	}
	s.names = append(append(s.names, '\x00'), typ[:min(len(typ), maxTyp)]...) // no event type contains a zero byte
	if l := u.losses[string(s.names)]; l != nil {
		return l
	}
	names, of, _ := strings.Cut(string(s.names), "\x00")
	return u.add(string(s.names), dragoman.Info, fmt.Sprintf("fields of %.60s without a canonical form: %s", of, names))
}

// add makes the loss for a new kind.
func (u *Unknown) add(key string, sev dragoman.Severity, detail string) *dragoman.Loss {
	if len(u.losses) >= MaxUnwritten {
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

// Field is like Of, for an unknown field key of a delta. before is the loss for
// another field of the same delta, or nil; the result then covers both.
func (u *Unknown) Field(before *dragoman.Loss, key []byte) *dragoman.Loss {
	if before != nil {
		key = append([]byte(strings.TrimPrefix(before.Detail, deltaField)+", "), key...)
	}
	key = key[:min(len(key), maxTyp)]
	if l := u.fields[string(key)]; l != nil {
		return l
	}
	if len(u.fields) >= MaxUnwritten {
		key = []byte("…")
	}
	l := &dragoman.Loss{
		Kind: dragoman.Dropped, Severity: dragoman.Warn,
		Detail: deltaField + strings.ToValidUTF8(string(key), ""),
	}
	if u.fields == nil {
		u.fields = make(map[string]*dragoman.Loss)
	}
	u.fields[string(key)] = l
	return l
}

// deltaField is the beginning of the detail, before the field names.
const deltaField = "delta fields that are not collected: "

// UnknownKeys collects the names of unknown fields in one event. The zero value is ready to
// use; it allocates only for an event that has unknown fields.
type UnknownKeys struct{ names []byte }

// Reset removes the names, for the next event.
func (s *UnknownKeys) Reset() { s.names = s.names[:0] }

// Add adds an unknown field at a path in the event; the path is empty for the event
// itself. Only the first of many or long names are kept.
func (s *UnknownKeys) Add(place string, key []byte) {
	if len(s.names) >= maxTyp {
		return
	}
	if len(s.names) > 0 {
		s.names = append(s.names, ", "...)
	}
	s.names = append(s.names, place...)
	s.names = strconv.AppendQuote(s.names, string(key[:min(len(key), maxUnknownFields)]))
}

// maxUnknownFields is the maximum length of a reported field name.
const maxUnknownFields = 60

// isKeepAlive reports whether events of a type only keep the connection alive.
func isKeepAlive(typ []byte) bool {
	switch string(typ) {
	case "ping", "keepalive", "heartbeat":
		return true
	default:
		return false
	}
}

// Late reports, once, that data arrived after the end of a stream (quirk C12). The zero
// value is ready to use.
type Late struct{ reported bool }

// Event handles an event after the end. It ignores keep-alive events.
func (l *Late) Event(ev sse.Event, rep *dragoman.Report) {
	if l.reported || IsKeepAlive(ev) || isKeepAlive(ev.Name) || isKeepAlive([]byte(EventType(ev.Data))) {
		return
	}
	l.Bytes(rep)
}

// Bytes handles any other data after the end.
func (l *Late) Bytes(rep *dragoman.Report) {
	if !l.reported {
		l.reported = true
		rep.Add(dragoman.Dropped, dragoman.Info, "", "data after the end of the stream")
	}
}

// EventType returns the type field of an event, or "".
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

// UnwrittenChunks reports, once each, the losses of chunks that an encoder does not write. The
// zero value is ready to use.
type UnwrittenChunks struct{ reported map[dragoman.Loss]bool }

// Drop reports a loss; nil is ignored. All losses beyond the limit share one line.
func (u *UnwrittenChunks) Drop(l *dragoman.Loss, rep *dragoman.Report) {
	if l == nil || u.reported[*l] || len(u.reported) > MaxUnwritten {
		return
	}
	if len(u.reported) == MaxUnwritten {
		l = &dragoman.Loss{Kind: dragoman.Dropped, Severity: max(l.Severity, dragoman.Warn), Detail: andMore}
	}
	if u.reported == nil {
		u.reported = make(map[dragoman.Loss]bool)
	}
	u.reported[*l] = true
	rep.Losses = append(rep.Losses, *l)
}

// Chunk returns the bytes that an encoder of dialect d writes for a chunk: those of an
// opaque event of its own dialect. Otherwise it returns nil and reports what another
// dialect loses.
func (u *UnwrittenChunks) Chunk(c *dragoman.Chunk, d dragoman.Dialect, o dialect.EncodeOptions, rep *dragoman.Report) []byte {
	switch {
	case c.Opaque && c.Dialect == d && !o.Rebuild:
		return c.Raw
	case c.Opaque || c.Dialect != d:
		u.Drop(c.Loss, rep)
	}
	return nil
}

// Addf is like [dragoman.Report.Addf], but reports the same line only once per stream.
func (u *UnwrittenChunks) Addf(rep *dragoman.Report, kind dragoman.LossKind, sev dragoman.Severity, path, format string, args ...any) {
	u.Drop(&dragoman.Loss{Kind: kind, Severity: sev, Path: path, Detail: fmt.Sprintf(format, args...)}, rep)
}
