package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// writer is the one place from which a session is appended to. Who comes while
// nobody writes appends at once; who comes while somebody does waits, and all who
// wait are then written by one append.
type writer struct {
	mu      sync.Mutex
	head    int64
	rewinds []rewind
	lost    error // the conflict after which nothing is done any more
	writing bool
	queue   []*pending
}

// pending are the entries of a caller who waits.
type pending struct {
	entries []Entry
	group   *group // that it is written with; nil: not yet on its way
	done    chan struct{}
	err     error // once done is closed
}

// group is what one append writes of those who waited. It is given up when all of
// them are gone.
type group struct {
	members []*pending
	left    int
	cancel  context.CancelFunc
}

// The bounds of what is written together, unless one caller has more.
const (
	maxGroupEntries = 1024
	maxGroupBytes   = 8 << 20
)

// write appends entries, alone or together with what others write at the same
// time. Where ctx ends before they are on their way, they are not written; where
// it ends later nobody knows, and the next write finds out: the store refuses it
// if the log has grown.
func (s *Session) write(ctx context.Context, entries []Entry) error {
	if err := s.stamp(entries); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	switch {
	case s.lost != nil || len(entries) == 0:
		defer s.mu.Unlock()
		return s.lost
	case s.writing:
		p := &pending{entries: entries, done: make(chan struct{})}
		s.queue = append(s.queue, p)
		s.mu.Unlock()
		return s.wait(ctx, p)
	default:
		s.writing = true
		s.mu.Unlock()
		err := s.commit(ctx, entries)
		s.handOver()
		return err
	}
}

// stamp gives entries their time and checks them, so that what one caller got
// wrong spoils nothing that is written with it.
func (s *Session) stamp(entries []Entry) error {
	now := time.Now
	if s.Now != nil {
		now = s.Now
	}
	at := micro(now())
	for i := range entries {
		e := &entries[i]
		if e.Time.IsZero() {
			e.Time = at
		}
		check := e.Check
		switch e.Kind {
		case kindMessage, kindNative, kindIntent, kindResult, kindRewind, kindOutput, kindAttachment, kindRecords: // just written
			check = e.checkFrame
		}
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// commit appends entries. Only one goroutine at a time is here.
func (s *Session) commit(ctx context.Context, entries []Entry) error {
	head := s.Head()
	err := s.append(ctx, head, entries)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		for i := range entries {
			if entries[i].Kind == kindRewind {
				r, _ := readRewind(&Entry{Seq: head + int64(i) + 1, Body: entries[i].Body})
				s.rewinds = append(s.rewinds, r)
			}
		}
		s.head = head + int64(len(entries))
	case errors.Is(err, ErrConflict):
		s.lost = err
	}
	return err
}

// append is the store's. A panic of it must not leave others waiting.
func (s *Session) append(ctx context.Context, head int64, entries []Entry) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("session: the store panicked: %v", v)
		}
	}()
	if m, ok := s.store.(*Memory); ok { // what we made need not be copied
		return m.adopt(ctx, s.ID(), head, entries)
	}
	return s.store.Append(ctx, s.ID(), head, entries)
}

// handOver lets those write who came meanwhile.
func (s *Session) handOver() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writing = len(s.queue) > 0
	if s.writing {
		go s.drain()
	}
}

// drain writes for those who wait until there are none.
func (s *Session) drain() {
	for {
		ctx, g := s.take()
		if g == nil {
			return
		}
		var entries []Entry
		for _, p := range g.members {
			entries = append(entries, p.entries...)
		}
		err := s.commit(ctx, entries)
		g.cancel()
		for _, p := range g.members {
			p.err = err
			close(p.done)
		}
	}
}

// take returns the next group of those who wait; nil where nobody does.
func (s *Session) take() (context.Context, *group) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost != nil {
		for _, p := range s.queue {
			p.err = s.lost
			close(p.done)
		}
		s.queue = nil
	}
	if len(s.queue) == 0 {
		s.writing = false
		return nil, nil
	}
	n, count, size := 0, 0, 0
	for _, p := range s.queue {
		count += len(p.entries)
		for i := range p.entries {
			size += len(p.entries[i].Body)
		}
		if n > 0 && (count > maxGroupEntries || size > maxGroupBytes) {
			break
		}
		n++
	}
	ctx, cancel := context.WithCancel(context.Background())
	g := &group{members: slices.Clone(s.queue[:n]), left: n, cancel: cancel}
	s.queue = slices.Delete(s.queue, 0, n)
	for _, p := range g.members {
		p.group = g
	}
	return ctx, g
}

// wait returns when the entries are written, or ctx ends.
func (s *Session) wait(ctx context.Context, p *pending) error {
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-p.done:
		return p.err
	default:
	}
	if p.group == nil {
		s.queue = slices.DeleteFunc(s.queue, func(q *pending) bool { return q == p })
		return ctx.Err()
	}
	if p.group.left--; p.group.left == 0 {
		p.group.cancel()
	}
	return fmt.Errorf("session: nobody waited until %d entries were written, and they may be: %w", len(p.entries), ctx.Err())
}
