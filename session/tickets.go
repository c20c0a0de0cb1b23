package session

import (
	"github.com/dragoman-go/dragoman/tool"
)

// ticketKeeper is a [Store] that also stores the tickets of background tools.
type ticketKeeper interface {
	Tickets() tool.TicketStore
}

// Tickets stores the tickets of background tools. It is nil if the session's store cannot
// store tickets. A run that is stored in the session (agent.In) uses it unless its Runner
// has Tickets of its own. Another process settles a ticket through the store:
//
//	tickets := &tool.Tickets{Store: store.Tickets()}
//	err := tickets.Resolve(ctx, id, tool.Output{…})
func (s *Session) Tickets() tool.TicketStore {
	if k, ok := s.store.(ticketKeeper); ok {
		return k.Tickets()
	}
	return nil
}

// Tickets returns the tickets of all sessions of the store.
func (m *Memory) Tickets() tool.TicketStore { return &m.tickets }
