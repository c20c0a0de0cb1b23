package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"

	"github.com/dragoman-go/dragoman/internal/storage"
	"github.com/dragoman-go/dragoman/internal/storage/storekit"
	"github.com/dragoman-go/dragoman/tool"
)

// Tickets returns the tickets of background tools. Every process that has the file open can
// list and settle them. Delivered tickets are deleted 30 days after they expire.
func (s *Store) Tickets() tool.TicketStore { return tickets{s} }

type tickets struct{ store *Store }

// Update changes one ticket.
func (t tickets) Update(ctx context.Context, id string, change func(*tool.StoredTicket) error) error {
	if err := storekit.CheckTicketID(id); err != nil {
		return err
	}
	return t.store.change(ctx, func(tx *sql.Tx) error {
		var body string
		err := tx.QueryRowContext(ctx, `SELECT body FROM tickets WHERE id = ?`, id).Scan(&body)
		known := err == nil
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return t.store.wrapErr(err)
		}
		after, raw, err := storekit.ChangeTicket(id, body, change)
		if err != nil || raw == nil {
			return err
		}
		expires := after.Ticket.Expires.UnixMicro()
		if known {
			_, err = tx.ExecContext(ctx, `UPDATE tickets SET run = ?, delivered = ?, expires = ?, body = ? WHERE id = ?`, after.Ticket.Run, after.Delivered, expires, string(raw), id)
			return t.store.wrapErr(err)
		}
		if _, err = tx.ExecContext(ctx, `INSERT INTO tickets (id, run, delivered, expires, body) VALUES (?, ?, ?, ?, ?)`, id, after.Ticket.Run, after.Delivered, expires, string(raw)); err == nil {
			_, err = tx.ExecContext(ctx, `DELETE FROM tickets WHERE delivered = 1 AND expires < ?`, t.store.notes.clock()-storage.TicketRetention.Microseconds())
		}
		return t.store.wrapErr(err)
	})
}

// List returns the tickets of a run that were not delivered.
func (t tickets) List(ctx context.Context, run string) ([]tool.StoredTicket, error) {
	rows, err := t.store.read.QueryContext(ctx, `SELECT id, body FROM tickets WHERE run = ? AND delivered = 0 ORDER BY no`, run)
	if err != nil {
		return nil, t.store.wrapErr(err)
	}
	defer rows.Close() //nolint:errcheck // rows.Err has the error
	var out []tool.StoredTicket
	for rows.Next() {
		var id, body string
		if err := rows.Scan(&id, &body); err != nil {
			return nil, t.store.wrapErr(err)
		}
		var s tool.StoredTicket
		if err := json.Unmarshal([]byte(body), &s); err != nil {
			return nil, storekit.CorruptTicket(id, err)
		}
		out = append(out, s)
	}
	return out, t.store.wrapErr(rows.Err())
}
