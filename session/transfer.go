package session

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/dragoman-go/dragoman/tool"
)

// Branch creates a session with the entries of s up to entry at, including its journal, and
// opens it. The two sessions are independent from then on, except for background work that
// both wait for: its outcome is delivered once, to the session that runs first.
func (s *Session) Branch(ctx context.Context, at int64, to Info) (*Session, error) {
	head, err := s.known()
	if err != nil {
		return nil, err
	}
	if at < 0 || at > head {
		return nil, invalidf("session %s has no entry %d to branch at: its entries are 1 to %d", s.ID(), at, head)
	}
	to.Parent, to.ParentSeq = s.ID(), at
	if to.Title == "" {
		to.Title = s.created.Title
	}
	to = withDefaults(to)
	if err := s.store.Create(ctx, to, upTo(ctx, s.store, s.ID(), at)); err != nil {
		return nil, wrapErr("branching", s.ID(), err)
	}
	return Open(ctx, s.store, to.ID)
}

// upTo yields the entries from 1 to at, and fails if one is missing.
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
			yield(Entry{}, fmt.Errorf("%w: the log ends with entry %d, before entry %d", ErrCorrupt, last, at))
		}
	}
}

// Copy copies a session from one store to another, which may be of another kind, with the
// undelivered tickets of its runs. If there are such tickets and the target stores
// none, the error wraps [ErrInvalid]. Entries that are written meanwhile are not
// copied.
func Copy(ctx context.Context, from Store, id string, to Store) error {
	info, err := from.Info(ctx, id)
	if err != nil {
		return wrapErr("copying", id, err)
	}
	// Copy tickets first: if the session cannot be copied, they have no effect.
	if err := copyTickets(ctx, from, info, to); err != nil {
		return wrapErr("copying", id, err)
	}
	if err := to.Create(ctx, info, upTo(ctx, from, id, info.Head)); err != nil {
		return wrapErr("copying", id, err)
	}
	return nil
}

// copyTickets copies the tickets of the runs of a session. It skips tickets that the target
// already has.
func copyTickets(ctx context.Context, from Store, info Info, to Store) error {
	keeper, ok := from.(ticketKeeper)
	if !ok {
		return nil
	}
	runs, err := runsOf(ctx, from, info)
	if err != nil {
		return err
	}
	for _, run := range runs {
		tickets, err := keeper.Tickets().List(ctx, run)
		if err != nil {
			return err
		}
		for _, t := range tickets {
			other, ok := to.(ticketKeeper)
			if !ok {
				return invalidf("ticket %s waits for its outcome, but %T stores no tickets", t.Ticket.ID, to)
			}
			err := other.Tickets().Update(ctx, t.Ticket.ID, func(s *tool.StoredTicket) error {
				if s.State == "" {
					*s = t
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// runsOf returns the runs that began calls in a session, in the order of their first call.
func runsOf(ctx context.Context, store Store, info Info) ([]string, error) {
	if info.Head == 0 {
		return nil, nil
	}
	var runs []string
	seen := map[string]bool{}
	for e, err := range store.Read(ctx, info.ID, Query{Until: info.Head, Kinds: []string{kindIntent}}) {
		if err != nil {
			return nil, err
		}
		var intent struct {
			Run string `json:"run"`
		}
		if err := json.Unmarshal(e.Body, &intent); err != nil {
			return nil, fmt.Errorf("%w: entry %d: %w", ErrCorrupt, e.Seq, err)
		}
		if !seen[intent.Run] {
			seen[intent.Run] = true
			runs = append(runs, intent.Run)
		}
	}
	return runs, nil
}
