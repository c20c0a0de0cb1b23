package postgres

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/dragoman-go/dragoman/internal/storage"
	"github.com/dragoman-go/dragoman/internal/storage/storekit"
	"github.com/dragoman-go/dragoman/tool"
	"github.com/jackc/pgx/v5"
)

// Tickets returns the tickets of background tools. Every program that uses the database can
// list and settle them. Delivered tickets are deleted 30 days after they expire.
func (s *Store) Tickets() tool.TicketStore { return tickets{s} }

type tickets struct{ store *Store }

// maxTicketTries bounds how often Update starts again after a conflict with another writer.
const maxTicketTries = 100

// Update changes one ticket.
func (t tickets) Update(ctx context.Context, id string, change func(*tool.StoredTicket) error) error {
	if err := storekit.CheckTicketID(id); err != nil {
		return err
	}
	for range maxTicketTries {
		var refused error // the error of change, as opposed to database errors
		err := pgx.BeginFunc(ctx, t.store.pool, func(tx pgx.Tx) error {
			refused = nil
			return t.update(ctx, tx, id, change, &refused)
		})
		switch {
		case refused != nil:
			return refused
		case failedWith(err, uniqueViolation), failedWith(err, serializationFailure):
			continue // another process opened the same ticket, or changed it
		default:
			return t.store.wrapErr(err)
		}
	}
	return t.store.wrapErr(errors.New("too many concurrent changes to ticket " + id + "; try again"))
}

func (t tickets) update(ctx context.Context, tx pgx.Tx, id string, change func(*tool.StoredTicket) error, refused *error) error {
	var body string
	err := tx.QueryRow(ctx, `SELECT body FROM dragoman_tickets WHERE id = $1 FOR UPDATE`, id).Scan(&body)
	known := err == nil
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	after, raw, err := storekit.ChangeTicket(id, body, change)
	if err != nil || raw == nil {
		*refused = err
		return err
	}
	if known {
		_, err = tx.Exec(ctx, `UPDATE dragoman_tickets SET run = $2, delivered = $3, expires = $4, body = $5 WHERE id = $1`, id, after.Ticket.Run, after.Delivered, after.Ticket.Expires.UTC(), string(raw))
		return err
	}
	if _, err = tx.Exec(ctx, `INSERT INTO dragoman_tickets (id, run, delivered, expires, body) VALUES ($1, $2, $3, $4, $5)`, id, after.Ticket.Run, after.Delivered, after.Ticket.Expires.UTC(), string(raw)); err == nil {
		_, err = tx.Exec(ctx, `DELETE FROM dragoman_tickets WHERE delivered AND expires < $1`, t.store.notes.clock().Add(-storage.TicketRetention))
	}
	return err
}

// List returns the tickets of a run that were not delivered.
func (t tickets) List(ctx context.Context, run string) ([]tool.StoredTicket, error) {
	rows, err := t.store.pool.Query(ctx, `SELECT id, body FROM dragoman_tickets WHERE run = $1 AND NOT delivered ORDER BY no`, run)
	if err != nil {
		return nil, t.store.wrapErr(err)
	}
	var out []tool.StoredTicket
	var id, body string
	var corrupt error
	_, err = pgx.ForEachRow(rows, []any{&id, &body}, func() error {
		var s tool.StoredTicket
		if err := json.Unmarshal([]byte(body), &s); err != nil {
			corrupt = storekit.CorruptTicket(id, err)
			return corrupt
		}
		out = append(out, s)
		return nil
	})
	if corrupt != nil {
		return nil, corrupt
	}
	return out, t.store.wrapErr(err)
}
