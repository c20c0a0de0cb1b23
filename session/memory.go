package session

import (
	"bytes"
	"cmp"
	"context"
	"iter"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/dragoman-go/dragoman/internal/storage"
	"github.com/dragoman-go/dragoman/tool"
)

// Memory stores sessions in memory for the lifetime of the process. The zero value is ready
// to use. It must not be copied.
type Memory struct {
	mu     sync.RWMutex
	logs   map[string]*memoryLog
	closed bool

	tickets tool.MemoryTickets
}

// memoryLog is one session. Its entries are append-only.
type memoryLog struct {
	info    Info
	entries entryList
	byKey   map[string][]int64 // the Seq of entries with a key
}

var (
	_ Store        = (*Memory)(nil)
	_ ticketKeeper = (*Memory)(nil)
)

// entryList is an append-only list. Its chunks do not move, so a goroutine may read a copy
// of the list while another appends to the original.
type entryList struct {
	chunks []*[chunkEntries]Entry
	n      int
}

// chunkEntries is the number of entries in a chunk, enough for a few turns.
const chunkEntries = 32

func (l *entryList) at(i int) *Entry { return &l.chunks[i/chunkEntries][i%chunkEntries] }

func (l *entryList) add(e Entry) {
	if l.n == len(l.chunks)*chunkEntries {
		l.chunks = append(l.chunks, new([chunkEntries]Entry))
	}
	l.n++
	*l.at(l.n - 1) = e
}

func (l *memoryLog) add(e Entry) {
	l.info.Head++
	e.Seq = l.info.Head
	l.info.Updated = e.Time
	l.entries.add(e)
	if e.Key != "" {
		if l.byKey == nil {
			l.byKey = map[string][]int64{}
		}
		l.byKey[e.Key] = append(l.byKey[e.Key], e.Seq)
	}
}

// Create creates a session.
func (m *Memory) Create(ctx context.Context, info Info, entries iter.Seq2[Entry, error]) error {
	if err := info.Check(); err != nil {
		return err
	}
	info.Created = toMicroseconds(info.Created)
	info.Updated, info.Head = info.Created, 0
	log := &memoryLog{info: info}
	if entries != nil {
		for e, err := range entries {
			if err == nil {
				err = cmp.Or(ctx.Err(), e.Check())
			}
			if err != nil {
				return err
			}
			log.add(copied(e))
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case m.closed:
		return ErrClosed
	case m.logs[info.ID] != nil:
		return ErrExists
	case m.logs == nil:
		m.logs = map[string]*memoryLog{}
	}
	m.logs[info.ID] = log
	return nil
}

// find returns a session's log; the caller holds the lock.
func (m *Memory) find(ctx context.Context, id string) (*memoryLog, error) {
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case m.closed:
		return nil, ErrClosed
	case m.logs[id] == nil:
		return nil, ErrNotFound
	default:
		return m.logs[id], nil
	}
}

// Info returns the metadata of a session.
func (m *Memory) Info(ctx context.Context, id string) (Info, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	log, err := m.find(ctx, id)
	if err != nil {
		return Info{}, err
	}
	return log.info, nil
}

// List yields the sessions as of the start of the loop.
func (m *Memory) List(ctx context.Context) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		all, err := m.infos(ctx)
		if err != nil {
			yield(Info{}, err)
			return
		}
		for _, info := range all {
			if !yield(info, nil) {
				return
			}
		}
	}
}

func (m *Memory) infos(ctx context.Context) ([]Info, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.closed {
		return nil, ErrClosed
	}
	all := make([]Info, 0, len(m.logs))
	for _, log := range m.logs {
		all = append(all, log.info)
	}
	slices.SortFunc(all, func(a, b Info) int { return cmp.Or(b.Updated.Compare(a.Updated), cmp.Compare(a.ID, b.ID)) })
	return all, ctx.Err()
}

// Append adds entries.
func (m *Memory) Append(ctx context.Context, id string, head int64, entries []Entry) error {
	for i := range entries {
		if err := entries[i].Check(); err != nil {
			return err
		}
	}
	return m.append(ctx, id, head, entries, copied)
}

// adopt is Append for entries of a [Session], which are already checked and whose bodies are
// not shared, so that they need not be copied.
func (m *Memory) adopt(ctx context.Context, id string, head int64, entries []Entry) error {
	return m.append(ctx, id, head, entries, func(e Entry) Entry {
		e.Time = toMicroseconds(e.Time)
		return e
	})
}

func (m *Memory) append(ctx context.Context, id string, head int64, entries []Entry, keep func(Entry) Entry) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	log, err := m.find(ctx, id)
	if err != nil {
		return err
	}
	if log.info.Head != head {
		return &storage.Conflict{ID: id, Head: head, Actual: log.info.Head}
	}
	for _, e := range entries {
		log.add(keep(e))
	}
	return nil
}

// Read yields entries.
func (m *Memory) Read(ctx context.Context, id string, q Query) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		m.mu.RLock()
		log, err := m.find(ctx, id)
		var entries entryList
		var places []int64
		if err == nil {
			// Entries beyond the current length are not read, so that the log may
			// grow.
			entries, places = log.entries, log.byKey[q.Key]
		}
		m.mu.RUnlock()
		if err != nil {
			yield(Entry{}, err)
			return
		}
		for e := range q.of(&entries, places) {
			if err := ctx.Err(); err != nil {
				yield(Entry{}, err)
				return
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

// of yields the entries of a log that the query selects; places are the positions for its
// key.
func (q *Query) of(entries *entryList, places []int64) iter.Seq[Entry] {
	// n candidates, of which at(i) is one.
	n, at := entries.n, entries.at
	if q.Key != "" {
		n, at = len(places), func(i int) *Entry { return entries.at(int(places[i] - 1)) }
	}
	from := sort.Search(n, func(i int) bool { return at(i).Seq > q.After })
	to := n
	if q.Until > 0 {
		to = sort.Search(n, func(i int) bool { return at(i).Seq > q.Until })
	}
	if q.Last > 0 {
		left := q.Last
		start := to
		for ; start > from && left > 0; start-- {
			if q.Has(at(start - 1)) {
				left--
			}
		}
		from = start
	}
	return func(yield func(Entry) bool) {
		for i := from; i < to; i++ {
			if e := at(i); q.Has(e) && !yield(*e) {
				return
			}
		}
	}
}

// Delete deletes a session.
func (m *Memory) Delete(ctx context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, err := m.find(ctx, id); err != nil {
		return err
	}
	delete(m.logs, id)
	return nil
}

// Close deletes all sessions.
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.logs, m.closed = nil, true
	return nil
}

// toMicroseconds returns a time with the precision of stores.
func toMicroseconds(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

// copied returns a copy of an entry that does not share its body with the caller.
func copied(e Entry) Entry {
	e.Time, e.Body = toMicroseconds(e.Time), bytes.Clone(e.Body)
	return e
}
