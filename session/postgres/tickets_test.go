package postgres_test

import (
	"testing"

	"github.com/dragoman-go/dragoman/session/postgres"
	"github.com/dragoman-go/dragoman/session/sessiontest"
	"github.com/dragoman-go/dragoman/tool"
)

func TestT13_PostgresTicketsConform(t *testing.T) {
	sessiontest.RunTickets(t, func(t *testing.T) func(t *testing.T) tool.TicketStore {
		url := schema(t)
		return func(t *testing.T) tool.TicketStore { return open(t, url, postgres.Options{MaxConns: 2}).Tickets() }
	})
}
