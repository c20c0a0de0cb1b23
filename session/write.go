package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// writer serializes the appends to a session. If no append is running, a write appends at
// once; otherwise it joins the next batch, which is written with one append.
type writer struct {
	mu      sync.Mutex
	head    int64
	rewinds []rewind
	lost    error // the conflict after which every call fails
	writing bool
	queue   []*pending
}

// pending holds the entries of a waiting caller.
type pending struct {
	entries []Entry
	group   *group // the batch that it is written with; nil while it is queued
	done    chan struct{}
	err     error // once done is closed
}

// group is a batch of waiting callers that one append writes. It is canceled when the
// contexts of all of them have ended.
type group struct {
	members []*pending
	left    int
	cancel  context.CancelFunc
}

// The limits of a batch, unless a single caller exceeds them.
const (
	maxGroupEntries = 1024
	maxGroupBytes   = 8 << 20
)

// write appends entries, alone or in a batch with concurrent writes. If ctx ends before the
// append starts, they are not written. If it ends later, the outcome is unknown, and the
// next write finds out: the store refuses it if the log has grown.
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

// stamp sets the time of entries and checks them, so that an invalid entry does not fail the
// whole batch.
func (s *Session) stamp(entries []Entry) error {
	now := time.Now
	if s.Now != nil {
		now = s.Now
	}
	at := toMicroseconds(now())
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

// commit appends entries. Only one goroutine at a time calls it.
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

// append calls the store. It recovers from panics, so that other callers do not wait forever.
func (s *Session) append(ctx context.Context, head int64, entries []Entry) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("session: the store panicked: %v", v)
		}
	}()
	if m, ok := s.store.(*Memory); ok { // our own entries need no copy
		return m.adopt(ctx, s.ID(), head, entries)
	}
	return s.store.Append(ctx, s.ID(), head, entries)
}

// handOver starts writing the entries that were queued meanwhile.
func (s *Session) handOver() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writing = len(s.queue) > 0
	if s.writing {
		go s.drain()
	}
}

// drain writes batches until the queue is empty.
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

// take returns the next batch, or nil if the queue is empty.
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
	return fmt.Errorf("session: the context ended while %d entries were being written; they may be stored: %w", len(p.entries), ctx.Err())
}
