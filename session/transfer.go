package session

import (
	"context"
	"fmt"
	"iter"
)

// Branch makes a session that begins as another one was when entry at was its last
// one, with all that came before, its journal too, and opens it. The two go
// separate ways from there.
func (s *Session) Branch(ctx context.Context, at int64, to Info) (*Session, error) {
	head, err := s.known()
	if err != nil {
		return nil, err
	}
	if at < 0 || at > head {
		return nil, invalidf("session %s has entries 1 to %d, and no entry %d to branch at", s.ID(), head, at)
	}
	to.Parent, to.At = s.ID(), at
	if to.Title == "" {
		to.Title = s.created.Title
	}
	to = begun(to)
	if err := s.store.Create(ctx, to, upTo(ctx, s.store, s.ID(), at)); err != nil {
		return nil, about("branching", s.ID(), err)
	}
	return Open(ctx, s.store, to.ID)
}

// upTo yields the entries from 1 to at, and fails where one is missing.
func upTo(ctx context.Context, store Store, id string, at int64) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		last := int64(0)
		if at > 0 {
			for e, err := range store.Read(ctx, id, Query{Until: at}) {
				if err == nil && e.Seq != last+1 {
					err = fmt.Errorf("%w: entry %d follows entry %d", ErrCorrupt, e.Seq, last)
				}
				if !yield(e, err) || err != nil {
					return
				}
				last = e.Seq
			}
		}
		if last != at {
			yield(Entry{}, fmt.Errorf("%w: it ends with entry %d, before entry %d", ErrCorrupt, last, at))
		}
	}
}

// Copy copies a session from one store to another, which may be of another kind.
// What is written to it meanwhile is not copied.
func Copy(ctx context.Context, from Store, id string, to Store) error {
	info, err := from.Info(ctx, id)
	if err != nil {
		return about("copying", id, err)
	}
	if err := to.Create(ctx, info, upTo(ctx, from, id, info.Head)); err != nil {
		return about("copying", id, err)
	}
	return nil
}
