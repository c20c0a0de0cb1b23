// Package storekit has code that the session stores of this module share.
package storekit

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"time"

	"github.com/dragoman-go/dragoman/internal/storage"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/tool"
)

// Pages implements [session.Store.Read] for a store that reads a page at a time and
// holds no resources while the loop's body runs. It calls next with the query, and
// advances After, until there are no more pages.
func Pages(ctx context.Context, q session.Query, next func(context.Context, session.Query) (page []session.Entry, more bool, err error)) iter.Seq2[session.Entry, error] {
	return func(yield func(session.Entry, error) bool) {
		for more := true; more; {
			var page []session.Entry
			var err error
			page, more, err = next(ctx, q)
			if err != nil {
				yield(session.Entry{}, err)
				return
			}
			for _, e := range page {
				if !yield(e, nil) {
					return
				}
				q.After = e.Seq
			}
		}
	}
}

// InOrder returns the values of keys in their order, with nil for a missing value, as
// [session.Notes.GetAll] does. It is for stores that find values in any order.
func InOrder(keys []string, found map[string][]byte) [][]byte {
	out := make([][]byte, len(keys))
	for i, k := range keys {
		out[i] = found[k]
	}
	return out
}

// CheckNote returns an error that wraps [session.ErrInvalid] if a note cannot be
// stored: it needs a key of up to 256 bytes of text, a value of up to 16 MiB, and a
// time that every store can hold.
func CheckNote(key string, value []byte, expires time.Time) error {
	if bad := storage.CheckNote(key, value, expires); bad != "" {
		return fmt.Errorf("%w: %s", session.ErrInvalid, bad)
	}
	return nil
}

// CheckTicketID returns an error if a text cannot be the id of a stored ticket: up to
// 256 bytes without control characters.
func CheckTicketID(id string) error {
	if id == "" || len(id) > storage.MaxKey || !storage.Plain(id) {
		return fmt.Errorf("%w: ticket id %.80q: want up to %d bytes of text without control characters", session.ErrInvalid, id, storage.MaxKey)
	}
	return nil
}

// ChangeTicket applies a change to the stored JSON of a ticket, for implementations of
// stores. Empty JSON means a new ticket. It returns the ticket and its new JSON, or nil
// JSON if nothing is to be stored.
func ChangeTicket(id, body string, change func(*tool.StoredTicket) error) (s tool.StoredTicket, raw []byte, err error) {
	if body != "" {
		if err := json.Unmarshal([]byte(body), &s); err != nil {
			return s, nil, CorruptTicket(id, err)
		}
	}
	if err := change(&s); err != nil || s.State == "" {
		return s, nil, err
	}
	if !storage.Storable(s.Ticket.Expires) {
		return s, nil, fmt.Errorf("%w: ticket %s: cannot store expiry time %v", session.ErrInvalid, id, s.Ticket.Expires)
	}
	raw, err = json.Marshal(s)
	return s, raw, err
}

// CorruptTicket returns the error for a stored ticket that cannot be read. It wraps
// [session.ErrCorrupt].
func CorruptTicket(id string, err error) error {
	return fmt.Errorf("%w: ticket %s: %w", session.ErrCorrupt, id, err)
}
