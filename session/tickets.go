package session

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/dragoman-go/dragoman/tool"
)

// TicketRetention is the time from the expiry of a delivered ticket until a store deletes
// it: an attempt that is repeated within that time finds the same ticket.
const TicketRetention = 30 * 24 * time.Hour

// TicketKeeper is a [Store] that also stores the tickets of background tools, so that
// any process can settle them: [Memory], and the stores of session/sqlite and
// session/postgres.
type TicketKeeper interface {
	Tickets() tool.TicketStore
}

// Tickets stores the tickets of background tools. It is nil if the session's store cannot
// store tickets. A run that is stored in the session (agent.In) uses it unless its Runner
// has Tickets of its own. Another process settles a ticket through the store:
//
//	tickets := &tool.Tickets{Store: store.Tickets()}
//	err := tickets.Resolve(ctx, id, tool.Output{…})
func (s *Session) Tickets() tool.TicketStore {
	if k, ok := s.store.(TicketKeeper); ok {
		return k.Tickets()
	}
	return nil
}

// Tickets returns the tickets of all sessions of the store.
func (m *Memory) Tickets() tool.TicketStore { return &m.tickets }

// CheckTicketID reports whether a text can be the id of a stored ticket: up to 256
// bytes without control characters.
func CheckTicketID(id string) error {
	if id == "" || len(id) > maxKey || !plain(id) {
		return invalidf("the id %.80q of a ticket: want up to %d bytes of text without control characters", id, maxKey)
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
	if !aTime(s.Ticket.Expires) {
		return s, nil, invalidf("the time %v at which ticket %s expires", s.Ticket.Expires, id)
	}
	raw, err = json.Marshal(s)
	return s, raw, err
}

// CorruptTicket returns the error for a stored ticket that cannot be read. It wraps
// [ErrCorrupt].
func CorruptTicket(id string, err error) error {
	return fmt.Errorf("%w: ticket %s: %w", ErrCorrupt, id, err)
}
