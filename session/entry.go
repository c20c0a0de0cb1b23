package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/storage/storelimits"
)

// The kinds that this module writes. Others are kept, and nobody here reads them.
const (
	// kindMessage is a message of the conversation.
	kindMessage = "message"
	// kindNative is a native history that an action replaced.
	kindNative = "native"
	// kindDecision is what a human, or a rule in their place, decided on a call that
	// needed approval: see [Entry.Decision].
	kindDecision = "decision"
	// kindIntent says that a tool is about to run, KindResult what it came to.
	kindIntent = "intent"
	kindResult = "result"
	// kindState is the state of a run.
	kindState = "state"
	// kindMeta is a change of the session's metadata.
	kindMeta = "meta"
	// kindRewind takes the conversation back to how it was at an earlier entry.
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

// Entry is one line of a session's log. Nobody changes it once it is written.
type Entry struct {
	// Seq is its place in the log, from 1 and without gaps; stores set it.
	Seq int64
	// Time is when it was written, to the microsecond.
	Time time.Time
	// Kind says what the entry is. This module writes "message", "native", "decision",
	// "intent", "result", "state", "meta", "rewind", "output", "attachment" and "records";
	// an application may write kinds of its own.
	Kind string
	// Key finds it again, see [Query]; empty: nobody looks for it by one.
	Key string
	// Body is JSON, of a form that belongs to the kind. It must not be changed.
	Body json.RawMessage
}

// The bounds of what a session holds. A store refuses more, with an error that
// wraps [ErrInvalid].
const (
	maxBody = storelimits.MaxBody
	maxKey  = storelimits.MaxKey
	maxKind = 64
	maxID   = 128
	maxText = 1024
	maxSeq  = 1 << 53 // numbers of JSON are exact up to here
)

// ErrInvalid says that an id, an entry or a query is not what it must be; nothing
// was written.
var ErrInvalid = errors.New("session: invalid")

func invalidf(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...)
}

// Check says whether an entry can be stored. Stores call it on every entry before
// they write any.
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
		return invalidf("the kind %.80q of an entry: want a word of up to %d lower-case letters, digits, dots and underscores", e.Kind, maxKind)
	case len(e.Key) > maxKey || !plain(e.Key):
		return invalidf("the key %.80q of an entry: want up to %d bytes of text without control characters", e.Key, maxKey)
	case len(e.Body) > maxBody:
		return invalidf("an entry of kind %s has %d bytes, and no more than %d are kept: store large content elsewhere and refer to it", e.Kind, len(e.Body), maxBody)
	case !aTime(e.Time):
		return invalidf("the time of an entry of kind %s: %v", e.Kind, e.Time)
	default:
		return nil
	}
}

// aTime reports whether every store can keep a time.
func aTime(t time.Time) bool { return storelimits.Storable(t) }

// checkID says whether a text can be a session's id: up to 128 letters, digits,
// dots, underscores, colons and hyphens, the first a letter or a digit.
func checkID(id string) error {
	ok := id != "" && len(id) <= maxID && alnum(id[0])
	for i := 0; ok && i < len(id); i++ {
		c := id[i]
		ok = alnum(c) || c == '.' || c == '_' || c == ':' || c == '-'
	}
	if !ok {
		return invalidf("the session id %.150q: want up to %d letters, digits, dots, underscores, colons and hyphens, beginning with a letter or a digit", id, maxID)
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

func plain(s string) bool { return storelimits.Plain(s) }

// Info is what a store knows of a session without reading its log.
type Info struct {
	// ID names the session within its store; [Create] makes one where it is empty.
	ID string
	// Title is what a list shows; empty where nobody gave one.
	Title string
	// Created is when it began; [Create] sets it where it is zero.
	Created time.Time
	// Parent is the session that this one is a branch of, and At the entry at
	// which it left it; empty and 0 where it is none.
	Parent string
	At     int64
	// Updated is the time of its last entry, or Created. Stores set it.
	Updated time.Time
	// Head is the Seq of its last entry, 0 for none. Stores set it.
	Head int64
}

// Check says whether a session can be created so. Stores call it.
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
		return invalidf("the title %.80q of session %s: want up to %d bytes in one line", i.Title, i.ID, maxText)
	case !aTime(i.Created):
		return invalidf("the time %v at which session %s was created", i.Created, i.ID)
	case i.At < 0 || i.At > maxSeq || i.Parent == "" && i.At != 0:
		return invalidf("session %s leaves %q at %d", i.ID, i.Parent, i.At)
	default:
		return nil
	}
}

// Query says which entries to read. The zero value reads all.
type Query struct {
	// After and Until bound the place: After < Seq <= Until. An Until of 0 or less
	// means the end of the log as it is when reading begins.
	After, Until int64
	// Kinds are those that are read; none means all.
	Kinds []string
	// Key is that of all entries that are read; empty means any. Reading by key
	// costs no more than what is found.
	Key string
	// Last reads the last so many of what would be read, still in order; 0 or less
	// reads all.
	Last int
}

// Has reports whether the query reads an entry, but for Last.
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
