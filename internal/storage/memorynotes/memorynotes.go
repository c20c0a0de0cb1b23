// Package memorynotes keeps the notes of a gateway that has no database.
package memorynotes

import (
	"container/list"
	"context"
	"fmt"
	"sync"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/storage/storekit"
	"github.com/dragoman-go/dragoman/internal/storage/storelimits"
	"github.com/dragoman-go/dragoman/session"
)

// Notes keeps notes as long as the process lives, and no more than its bounds
// allow: what was not used for the longest time goes first. The zero value is ready. It
// must not be copied, nor its fields changed once it is used.
type Notes struct {
	// MaxBytes bounds the size of all keys and values, with a little for each; zero
	// means 64 MB. MaxEntries bounds their number; zero means 100 000.
	MaxBytes   int64
	MaxEntries int
	// Now is the clock; nil means time.Now.
	Now func() time.Time

	mu    sync.Mutex
	byKey map[string]*list.Element
	used  list.List // of *memoryNote, the last used first
	bytes int64
	puts  int
}

var _ session.Notes = (*Notes)(nil)

// memoryNote is one note.
type memoryNote struct {
	key     string
	value   []byte
	expires time.Time
}

const (
	defaultNoteBytes   = 64_000_000
	defaultNoteEntries = 100_000
	// noteOverhead is about what a note costs beside its key and its value.
	noteOverhead = 256
)

func (n *memoryNote) size() int64 { return int64(len(n.key)+len(n.value)) + noteOverhead }

func (m *Notes) now() time.Time {
	if m.Now != nil {
		return m.Now()
	}
	return time.Now()
}

// Put keeps a value. One that is greater than the bound of all is an error
// ([dragoman.ErrTooLarge]), and the others stay.
func (m *Notes) Put(ctx context.Context, key string, value []byte, expires time.Time) error {
	if err := storekit.CheckNote(key, value, expires); err != nil {
		return err
	}
	note := &memoryNote{key: key, value: copied(value), expires: expires.UTC().Truncate(time.Microsecond)}
	now := m.now()
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	m.remove(m.byKey[key]) // also where the new one is not kept: it is not true any more
	if most := m.maxBytes(); note.size() > most {
		return fmt.Errorf("session: a note of %d bytes exceeds the memory limit of %d bytes: %w", len(value), most, dragoman.ErrTooLarge)
	}
	if m.puts++; m.puts%storelimits.SweepEvery == 0 {
		m.sweep(now, sweepLook)
	}
	if !note.expires.After(now) {
		return nil
	}
	if m.byKey == nil {
		m.byKey = map[string]*list.Element{}
	}
	m.byKey[key] = m.used.PushFront(note)
	m.bytes += note.size()
	for m.over() {
		m.remove(m.used.Back())
	}
	return nil
}

func (m *Notes) maxBytes() int64 {
	if m.MaxBytes <= 0 {
		return defaultNoteBytes
	}
	return m.MaxBytes
}

// over reports whether there is more than the bounds allow.
func (m *Notes) over() bool {
	entries := m.MaxEntries
	if entries <= 0 {
		entries = defaultNoteEntries
	}
	return m.bytes > m.maxBytes() || m.used.Len() > entries
}

// remove forgets a note; the caller holds the lock.
func (m *Notes) remove(e *list.Element) {
	if e == nil {
		return
	}
	n := m.used.Remove(e).(*memoryNote)
	delete(m.byKey, n.key)
	m.bytes -= n.size()
}

// Get returns a value.
func (m *Notes) Get(ctx context.Context, key string) (value []byte, found bool, err error) {
	values, err := m.GetAll(ctx, []string{key})
	if err != nil {
		return nil, false, err
	}
	return values[0], values[0] != nil, nil
}

// GetAll returns values.
func (m *Notes) GetAll(ctx context.Context, keys []string) ([][]byte, error) {
	now := m.now()
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	out := make([][]byte, len(keys))
	for i, k := range keys {
		e := m.byKey[k]
		if e == nil {
			continue
		}
		n := e.Value.(*memoryNote)
		if !n.expires.After(now) {
			m.remove(e)
			continue
		}
		m.used.MoveToFront(e)
		out[i] = copied(n.value)
	}
	return out, nil
}

// copied is a copy that is never nil.
func copied(value []byte) []byte { return append(make([]byte, 0, len(value)), value...) }

// Delete forgets a key.
func (m *Notes) Delete(ctx context.Context, key string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	m.remove(m.byKey[key])
	return nil
}

// Sweep takes out what has expired.
func (m *Notes) Sweep(ctx context.Context, now time.Time) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	return m.sweep(now, m.used.Len()), nil
}

// sweepLook is how many notes a put looks at when it sweeps.
const sweepLook = 2 * storelimits.SweepEvery

// sweep looks at those that were not used for the longest time, which are likely to
// have expired: look of them. A put does not look at all; the bounds hold in any case.
func (m *Notes) sweep(now time.Time, look int) (swept int) {
	e := m.used.Back()
	for ; e != nil && look > 0 && swept < storelimits.SweepMost; look-- {
		before := e.Prev()
		if !e.Value.(*memoryNote).expires.After(now) {
			m.remove(e)
			swept++
		}
		e = before
	}
	return swept
}
