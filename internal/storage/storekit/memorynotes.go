package storekit

import (
	"container/list"
	"context"
	"fmt"
	"sync"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/storage"
	"github.com/dragoman-go/dragoman/session"
)

// Notes stores notes in memory, within its limits: it evicts the least recently used notes first.
// The zero value is ready to use. It is safe for concurrent use. It must not be copied, nor its
// fields changed once it is in use.
type Notes struct {
	// MaxBytes limits the size of all keys and values, with an overhead for each note; zero means
	// 64 MB. MaxEntries limits their number; zero means 100 000.
	MaxBytes   int64
	MaxEntries int
	// Now is the clock; nil means time.Now.
	Now func() time.Time

	mu    sync.Mutex
	byKey map[string]*list.Element
	used  list.List // of *memoryNote, the most recently used first
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
	// noteOverhead is the approximate size of a note without its key and value.
	noteOverhead = 256
)

func (n *memoryNote) size() int64 { return int64(len(n.key)+len(n.value)) + noteOverhead }

func (m *Notes) now() time.Time {
	if m.Now != nil {
		return m.Now()
	}
	return time.Now()
}

// Put stores a value. A note that is larger than MaxBytes is an error ([dragoman.ErrTooLarge]);
// other notes are not evicted for it.
func (m *Notes) Put(ctx context.Context, key string, value []byte, expires time.Time) error {
	_, err := m.put(ctx, key, value, expires, false)
	return err
}

// PutNew stores a value unless its key has one. The key of an evicted note has none.
func (m *Notes) PutNew(ctx context.Context, key string, value []byte, expires time.Time) (stored bool, err error) {
	return m.put(ctx, key, value, expires, true)
}

// put stores a value; onlyNew keeps a previous value that has not expired.
func (m *Notes) put(ctx context.Context, key string, value []byte, expires time.Time, onlyNew bool) (stored bool, err error) {
	if err := CheckNote(key, value, expires); err != nil {
		return false, err
	}
	note := &memoryNote{key: key, value: nonNilClone(value), expires: expires.UTC().Truncate(time.Microsecond)}
	now := m.now()
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return false, err
	}
	if previous := m.byKey[key]; onlyNew && previous != nil && previous.Value.(*memoryNote).expires.After(now) {
		return false, nil
	}
	m.remove(m.byKey[key]) // even if the new value is not stored: the old one is outdated
	if most := m.maxBytes(); note.size() > most {
		return false, fmt.Errorf("session: a note of %d bytes exceeds the memory limit of %d bytes: %w", len(value), most, dragoman.ErrTooLarge)
	}
	if m.puts++; m.puts%storage.SweepEvery == 0 {
		m.sweep(now, sweepBatch)
	}
	if !note.expires.After(now) {
		return false, nil
	}
	if m.byKey == nil {
		m.byKey = map[string]*list.Element{}
	}
	m.byKey[key] = m.used.PushFront(note)
	m.bytes += note.size()
	for m.isOverLimit() {
		m.remove(m.used.Back())
	}
	return true, nil
}

func (m *Notes) maxBytes() int64 {
	if m.MaxBytes <= 0 {
		return defaultNoteBytes
	}
	return m.MaxBytes
}

// isOverLimit reports whether a limit is exceeded.
func (m *Notes) isOverLimit() bool {
	entries := m.MaxEntries
	if entries <= 0 {
		entries = defaultNoteEntries
	}
	return m.bytes > m.maxBytes() || m.used.Len() > entries
}

// remove removes a note; the caller holds the lock.
func (m *Notes) remove(e *list.Element) {
	if e == nil {
		return
	}
	n := m.used.Remove(e).(*memoryNote)
	delete(m.byKey, n.key)
	m.bytes -= n.size()
}

// Get returns the value of a key, and marks it as used.
func (m *Notes) Get(ctx context.Context, key string) (value []byte, found bool, err error) {
	values, err := m.GetAll(ctx, []string{key})
	if err != nil {
		return nil, false, err
	}
	return values[0], values[0] != nil, nil
}

// GetAll returns the values of keys in their order; nil for a missing one.
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
		out[i] = nonNilClone(n.value)
	}
	return out, nil
}

// nonNilClone returns a copy that is never nil.
func nonNilClone(value []byte) []byte { return append(make([]byte, 0, len(value)), value...) }

// Delete removes a key. A missing key is not an error.
func (m *Notes) Delete(ctx context.Context, key string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	m.remove(m.byKey[key])
	return nil
}

// Sweep removes all expired notes and returns their number.
func (m *Notes) Sweep(ctx context.Context, now time.Time) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	return m.sweep(now, m.used.Len()), nil
}

// sweepBatch is the number of notes that a put checks when it sweeps.
const sweepBatch = 2 * storage.SweepEvery

// sweep removes the expired ones among the least recently used notes; look is the number of notes
// to check. A put does not check all, because the limits hold in any case.
func (m *Notes) sweep(now time.Time, look int) (swept int) {
	e := m.used.Back()
	for ; e != nil && look > 0 && swept < storage.SweepMost; look-- {
		before := e.Prev()
		if !e.Value.(*memoryNote).expires.After(now) {
			m.remove(e)
			swept++
		}
		e = before
	}
	return swept
}
