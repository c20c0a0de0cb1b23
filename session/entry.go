package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/storage"
)

// The kinds that this module writes. Entries of other kinds are stored but not interpreted.
const (
	// kindMessage is a message of the conversation.
	kindMessage = "message"
	// kindNative is a native history that an action replaced.
	kindNative = "native"
	// kindDecision is the decision of a human, or of a rule in their place, on a call
	// that needed approval: see [Entry.Decision].
	kindDecision = "decision"
	// kindIntent is a tool call that is about to run, and kindResult its result.
	kindIntent = "intent"
	kindResult = "result"
	// kindState is the state of a run.
	kindState = "state"
	// kindMeta is a change of the session's metadata.
	kindMeta = "meta"
	// kindRewind resets the conversation to an earlier entry.
	kindRewind = "rewind"
	// kindOutput is a tool output that was too long for the model, or a chunk of one:
	// see [Session.Spill].
	kindOutput = "output"
	// kindAttachment is the content of media that messages refer to: see
	// [Session.Expand].
	kindAttachment = "attachment"
	// kindRecords are records of tool calls: see [Session.Records].
	kindRecords = "records"
)

// Entry is one record of a session's log. It is immutable once written.
type Entry struct {
	// Seq is the position in the log, from 1 and without gaps; stores set it.
	Seq int64
	// Time is when the entry was written, with microsecond precision.
	Time time.Time
	// Kind is the type of the entry. This module writes "message", "native", "decision",
	// "intent", "result", "state", "meta", "rewind", "output", "attachment" and "records";
	// an application may write its own kinds.
	Kind string
	// Key finds the entry in a [Query]; empty means that it has no key.
	Key string
	// Body is JSON, in a format that depends on the kind. It must not be changed.
	Body json.RawMessage
}

// The limits of a session. A store refuses larger values with an error that wraps
// [ErrInvalid].
const (
	maxBody = storage.MaxBody
	maxKey  = storage.MaxKey
	maxKind = 64
	maxID   = 128
	maxText = 1024
	maxSeq  = 1 << 53 // JSON numbers are exact up to here
)

// ErrInvalid means that an id, an entry or a query is not valid. Nothing was written.
var ErrInvalid = errors.New("session: invalid input")

func invalidf(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...)
}

// Check reports whether an entry can be stored. Stores call it on every entry before they
// write any.
func (e *Entry) Check() error {
	if err := e.checkFrame(); err != nil {
		return err
	}
	if err := jsonwire.Check(e.Body); err != nil {
		return invalidf("the body of an entry of kind %s: %v", e.Kind, err)
	}
	return nil
}

// checkFrame is Check for a body that is known to be JSON.
func (e *Entry) checkFrame() error {
	switch {
	case !isKind(e.Kind):
		return invalidf("the kind %.80q of an entry: use up to %d lower-case letters, digits, dots and underscores", e.Kind, maxKind)
	case len(e.Key) > maxKey || !plain(e.Key):
		return invalidf("the key %.80q of an entry: use up to %d bytes of text without control characters", e.Key, maxKey)
	case len(e.Body) > maxBody:
		return invalidf("an entry of kind %s has %d bytes, more than the maximum of %d: store large content separately and refer to it", e.Kind, len(e.Body), maxBody)
	case !storableTime(e.Time):
		return invalidf("an entry of kind %s has the time %v, which cannot be stored", e.Kind, e.Time)
	default:
		return nil
	}
}

// storableTime reports whether every store can store a time.
func storableTime(t time.Time) bool { return storage.Storable(t) }

// checkID reports whether id is a valid session id: up to 128 letters, digits, dots,
// underscores, colons and hyphens, the first a letter or a digit.
func checkID(id string) error {
	ok := id != "" && len(id) <= maxID && alnum(id[0])
	for i := 0; ok && i < len(id); i++ {
		c := id[i]
		ok = alnum(c) || c == '.' || c == '_' || c == ':' || c == '-'
	}
	if !ok {
		return invalidf("the session id %.150q: use up to %d letters, digits, dots, underscores, colons and hyphens, beginning with a letter or a digit", id, maxID)
	}
	return nil
}

func alnum(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

func isKind(k string) bool {
	for i := range len(k) {
		c := k[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' && c != '.' {
			return false
		}
	}
	return k != "" && len(k) <= maxKind
}

func plain(s string) bool { return storage.Plain(s) }

// Info describes a session without its log.
type Info struct {
	// ID identifies the session within its store; [Create] makes one if it is empty.
	ID string
	// Title is shown in lists; it may be empty.
	Title string
	// Created is when the session was created; [Create] sets it if it is zero.
	Created time.Time
	// Parent is the session that this one was branched from, and ParentSeq the last entry that
	// they share; empty and 0 if it is not a branch.
	Parent    string
	ParentSeq int64
	// Updated is the time of the last entry, or Created. Stores set it.
	Updated time.Time
	// Head is the Seq of the last entry, 0 if there is none. Stores set it.
	Head int64
}

// Check reports whether a session can be created with this Info. Stores call it.
func (i *Info) Check() error {
	if err := checkID(i.ID); err != nil {
		return err
	}
	if i.Parent != "" {
		if err := checkID(i.Parent); err != nil {
			return fmt.Errorf("%w (as the parent of %s)", err, i.ID)
		}
	}
	switch {
	case len(i.Title) > maxText || !plain(i.Title):
		return invalidf("the title %.80q of session %s: use up to %d bytes in one line", i.Title, i.ID, maxText)
	case !storableTime(i.Created):
		return invalidf("session %s has the creation time %v, which cannot be stored", i.ID, i.Created)
	case i.ParentSeq < 0 || i.ParentSeq > maxSeq || i.Parent == "" && i.ParentSeq != 0:
		return invalidf("session %s cannot be a branch of %q at entry %d", i.ID, i.Parent, i.ParentSeq)
	default:
		return nil
	}
}

// Query selects entries to read. The zero value selects all.
type Query struct {
	// After and Until bound the position: After < Seq <= Until. An Until of 0 or less
	// means the end of the log when reading begins.
	After, Until int64
	// Kinds are the kinds to read; none means all.
	Kinds []string
	// Key is the key of the entries to read; empty means any. The cost of reading by key
	// is proportional to the result.
	Key string
	// Last limits the result to the last entries, still in order; 0 or less means no
	// limit.
	Last int
}

// Has reports whether the query selects an entry, ignoring Last.
func (q *Query) Has(e *Entry) bool {
	if e.Seq <= q.After || q.Until > 0 && e.Seq > q.Until || q.Key != "" && q.Key != e.Key {
		return false
	}
	for _, k := range q.Kinds {
		if k == e.Kind {
			return true
		}
	}
	return len(q.Kinds) == 0
}
