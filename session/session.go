package session

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/storage"
	"github.com/dragoman-go/dragoman/tool"
)

// Session is a session with this value as its only writer. It is safe for concurrent use:
// concurrent writes are committed together.
//
// Once another writer has appended to the session, every call of this one fails with
// [ErrConflict], including [Session.Begin]: a process that was believed dead runs no more
// tools.
type Session struct {
	// Now is the clock; nil means time.Now. Set it before the first write.
	Now func() time.Time
	// ActionContext is passed to actions of extensions with the session; the zero value
	// adds nothing. Set it before the first action.
	ActionContext ActionContext

	store   Store
	created Info // state when the session was opened; writer has the current Head
	writer
	begins keyed
	held   atomic.Bool
	// native caches whether the log has native histories, because a run asks in every turn.
	native atomic.Int32

	// link is the model that the session is connected to, and prepared the save that
	// actions ran for last.
	linkMu   sync.Mutex
	link     dragoman.Model
	prepared preparedSave
	// attached are attachments that the log is known to have.
	attached map[string]bool
}

var _ tool.Journal = (*Session)(nil)

// Create creates a session in a store and opens it.
func Create(ctx context.Context, store Store, info Info) (*Session, error) {
	info = withDefaults(info)
	if err := store.Create(ctx, info, nil); err != nil {
		return nil, wrapErr("creating", info.ID, err)
	}
	return Open(ctx, store, info.ID)
}

// withDefaults sets the ID and the Created time of a new session if they are empty.
func withDefaults(info Info) Info {
	if info.ID == "" {
		info.ID = strings.ToLower(rand.Text())
	}
	if info.Created.IsZero() {
		info.Created = time.Now()
	}
	return info
}

// Open opens a session. The error is [ErrNotFound] if it does not exist.
func Open(ctx context.Context, store Store, id string) (*Session, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	info, err := store.Info(ctx, id)
	if err != nil {
		return nil, wrapErr("opening", id, err)
	}
	s := &Session{store: store, created: info}
	s.writer.head = info.Head
	for e, err := range s.Entries(ctx, Query{Key: rewindKey, Kinds: []string{kindRewind}}) {
		if err != nil {
			return nil, wrapErr("opening", id, err)
		}
		r, err := readRewind(&e)
		if err != nil {
			return nil, wrapErr("opening", id, err)
		}
		s.writer.rewinds = append(s.writer.rewinds, r)
	}
	return s, nil
}

// OpenOrCreate opens a session, or creates it if no session has this id. Concurrent callers
// get the same session.
func OpenOrCreate(ctx context.Context, store Store, id string) (*Session, error) {
	s, err := Open(ctx, store, id)
	if !errors.Is(err, ErrNotFound) {
		return s, err
	}
	s, err = Create(ctx, store, Info{ID: id})
	if errors.Is(err, ErrExists) {
		return Open(ctx, store, id)
	}
	return s, err
}

// wrapErr adds the operation and the session to an error, except to conflicts, which name the
// session.
func wrapErr(doing, id string, err error) error {
	var conflict *storage.Conflict
	if errors.As(err, &conflict) {
		return err
	}
	return fmt.Errorf("%s session %s: %w", doing, id, err)
}

// Lock reserves the session for one run, until leave is called. The error wraps
// [ErrConflict] if another run of this process holds it: both would share this writer, so
// the store could not detect the conflict.
func (s *Session) Lock() (leave func(), err error) {
	if !s.held.CompareAndSwap(false, true) {
		return nil, fmt.Errorf("%w: another run uses session %s", ErrConflict, s.ID())
	}
	return sync.OnceFunc(func() { s.held.Store(false) }), nil
}

// ID returns the id of the session.
func (s *Session) ID() string { return s.created.ID }

// Head returns the Seq of the last entry that this writer knows, or 0 if there is none. Pass
// it to [Session.Rewind] or [Session.Branch] to return to this point.
func (s *Session) Head() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.head
}

// Load returns the conversation, including the effect of rewinds, and the last saved state,
// or nil if there is none. Large media are references: [Session.Expand] restores their
// content for a request.
func (s *Session) Load(ctx context.Context) ([]dragoman.Message, []byte, error) {
	v, err := s.view()
	if err != nil {
		return nil, nil, err
	}
	messages, err := v.messages(ctx)
	if err != nil {
		return nil, nil, wrapErr("loading", s.ID(), err)
	}
	last, err := v.last(ctx, Query{Kinds: []string{kindState}, Last: 1})
	if err != nil {
		return nil, nil, wrapErr("loading", s.ID(), err)
	}
	if len(last) == 0 {
		return messages, nil, nil
	}
	return messages, last[0].Body, nil
}

// wrapIf is wrapErr, but returns nil for a nil error.
func wrapIf(doing, id string, err error) error {
	if err == nil {
		return nil
	}
	return wrapErr(doing, id, err)
}

// Save adds messages to the conversation and sets the state, atomically. When it returns
// nil, both are durable. If the error wraps [ErrInvalid] or [ErrConflict], neither was
// stored. The state is JSON, which the caller must not change afterwards; nil keeps the
// current state.
//
// The content of large media is stored once, as an attachment that the messages refer to:
// see [Session.Expand].
//
// In a session that is connected to a model, actions with the trigger
// [extension.BeforeSave] run first: see [Session.Connect]. A failure is logged, and the
// messages are saved anyway.
func (s *Session) Save(ctx context.Context, messages []dragoman.Message, state []byte) error {
	return s.save(ctx, messages, state)
}

// save does what Save does and writes more entries with the messages.
func (s *Session) save(ctx context.Context, messages []dragoman.Message, state []byte, more ...Entry) error {
	s.prepareSave(ctx, messages)
	entries := make([]Entry, 0, len(messages)+len(more)+1)
	var d detached
	messages = d.messages(messages)
	for i := range messages {
		body, err := messages[i].MarshalJSON()
		if err != nil {
			return fmt.Errorf("%w: message %d to save in session %s: %w", ErrInvalid, i, s.ID(), err)
		}
		entries = append(entries, Entry{Kind: kindMessage, Body: body})
	}
	entries = append(entries, more...)
	if state != nil {
		entries = append(entries, Entry{Kind: kindState, Body: state})
	}
	return wrapIf("saving", s.ID(), s.writeWith(ctx, &d, entries))
}

// Stored is a message with its position in the log.
type Stored struct {
	Seq     int64
	Time    time.Time
	Message dragoman.Message
}

// Last returns the last n messages of the conversation, in order, or all if n is 0 or less.
// It reads only these messages and the entries between them.
func (s *Session) Last(ctx context.Context, n int) ([]Stored, error) {
	v, err := s.view()
	if err != nil {
		return nil, err
	}
	entries, err := v.last(ctx, Query{Kinds: []string{kindMessage}, Last: n})
	if err != nil {
		return nil, wrapErr("reading", s.ID(), err)
	}
	out := make([]Stored, len(entries))
	for i := range entries {
		e := &entries[i]
		m, err := readMessage(e)
		if err != nil {
			return nil, wrapErr("reading", s.ID(), err)
		}
		out[i] = Stored{Seq: e.Seq, Time: e.Time, Message: m}
	}
	return out, nil
}

func readMessage(e *Entry) (m dragoman.Message, err error) {
	if err := m.UnmarshalJSON(e.Body); err != nil {
		return m, unreadable(e, err)
	}
	return m, nil
}

// Append adds entries of the application's own kinds, all or nothing. It refuses kinds that
// this package writes.
func (s *Session) Append(ctx context.Context, entries ...Entry) error {
	entries = slices.Clone(entries)
	for i := range entries {
		e := &entries[i]
		switch e.Kind {
		case kindMessage, kindNative, kindDecision, kindIntent, kindResult, kindState, kindMeta, kindRewind, kindOutput, kindAttachment, kindRecords:
			return invalidf("entries of kind %s can be written only by the methods of a session", e.Kind)
		}
		e.Body = slices.Clone(e.Body)
	}
	return wrapIf("appending to", s.ID(), s.write(ctx, entries))
}

// Entries yields the entries of the log up to the last one that this writer knows,
// including those that a rewind removed from the conversation.
func (s *Session) Entries(ctx context.Context, q Query) iter.Seq2[Entry, error] {
	head, err := s.known()
	if err != nil {
		return fail[Entry](err)
	}
	if q.Until <= 0 || q.Until > head {
		q.Until = head
	}
	if q.Until == 0 { // the log is empty; zero would also read what others have written since
		return func(func(Entry, error) bool) {}
	}
	return s.store.Read(ctx, s.ID(), q)
}

// Metadata returns the metadata of the session by name. Rewinding does not change it.
func (s *Session) Metadata(ctx context.Context) (map[string]json.RawMessage, error) {
	out := map[string]json.RawMessage{}
	for e, err := range s.Entries(ctx, Query{Key: metaKey, Kinds: []string{kindMeta}}) {
		if err != nil {
			return nil, wrapErr("reading", s.ID(), err)
		}
		if err := patchMetadata(out, e.Body); err != nil {
			return nil, wrapErr("reading", s.ID(), fmt.Errorf("%w: entry %d: %w", ErrCorrupt, e.Seq, err))
		}
	}
	return out, nil
}

// patchMetadata merges the fields of a JSON object; a null removes a field.
func patchMetadata(into map[string]json.RawMessage, patch json.RawMessage) error {
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal(patch, &members); err != nil {
		return err
	}
	for name, value := range members {
		if string(value) == "null" {
			delete(into, name)
		} else {
			into[name] = value
		}
	}
	return nil
}

const metaKey = "meta"

// SetMetadata merges the fields of a JSON object into the metadata; null removes a field.
func (s *Session) SetMetadata(ctx context.Context, patch json.RawMessage) error {
	e, err := metaEntry(patch)
	if err != nil {
		return err
	}
	return wrapIf("changing the metadata of", s.ID(), s.write(ctx, []Entry{e}))
}

func metaEntry(patch json.RawMessage) (Entry, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(patch, &members); err != nil || members == nil {
		return Entry{}, invalidf("metadata must be a JSON object, got %.80s", patch)
	}
	return Entry{Kind: kindMeta, Key: metaKey, Body: slices.Clone(patch)}, nil
}
