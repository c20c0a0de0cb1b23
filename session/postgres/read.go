package postgres

import (
	"context"
	"errors"
	"iter"
	"strconv"

	"github.com/dragoman-go/dragoman/internal/storage/storekit"
	"github.com/dragoman-go/dragoman/session"
	"github.com/jackc/pgx/v5"
)

const infoColumns = `id, title, created, parent, at, updated, head`

func scanInfo(row pgx.CollectableRow) (i session.Info, err error) {
	err = row.Scan(&i.ID, &i.Title, &i.Created, &i.Parent, &i.ParentSeq, &i.Updated, &i.Head)
	i.Created, i.Updated = i.Created.UTC(), i.Updated.UTC()
	return i, err
}

// Info returns the metadata of a session.
func (s *Store) Info(ctx context.Context, id string) (session.Info, error) {
	rows, err := s.pool.Query(ctx, `SELECT `+infoColumns+` FROM dragoman_sessions WHERE id = $1`, id)
	if err != nil {
		return session.Info{}, s.wrapErr(err)
	}
	i, err := pgx.CollectExactlyOneRow(rows, scanInfo)
	if errors.Is(err, pgx.ErrNoRows) {
		return session.Info{}, session.ErrNotFound
	}
	return i, s.wrapErr(err)
}

// List yields the sessions as of the start of the loop.
func (s *Store) List(ctx context.Context) iter.Seq2[session.Info, error] {
	return func(yield func(session.Info, error) bool) {
		// Compare ids byte by byte, regardless of the collation of the database.
		rows, err := s.pool.Query(ctx, `SELECT `+infoColumns+` FROM dragoman_sessions ORDER BY updated DESC, id COLLATE "C"`)
		var all []session.Info
		if err == nil {
			all, err = pgx.CollectRows(rows, scanInfo)
		}
		if err != nil {
			yield(session.Info{}, s.wrapErr(err))
			return
		}
		for _, i := range all {
			if !yield(i, nil) {
				return
			}
		}
	}
}

// The limits of one page of entries.
const (
	pageEntries = 256
	pageBytes   = 4 << 20
)

// Read yields entries.
func (s *Store) Read(ctx context.Context, id string, q session.Query) iter.Seq2[session.Entry, error] {
	return func(yield func(session.Entry, error) bool) {
		no, q, err := s.settle(ctx, id, q)
		if err != nil {
			yield(session.Entry{}, err)
			return
		}
		storekit.Pages(ctx, q, func(ctx context.Context, q session.Query) ([]session.Entry, bool, error) {
			page, more, err := s.page(ctx, no, q)
			return page, more, s.wrapErr(err)
		})(yield)
	}
}

// whereClause returns the condition for the entries that a query selects.
func whereClause(no int64, q session.Query) (condition string, args []any) {
	kinds := append([]string(nil), q.Kinds...) // nil means NULL: all kinds
	condition = ` session = $1 AND seq > $2 AND seq <= $3 AND ($4::text[] IS NULL OR kind = ANY ($4)) `
	args = []any{no, q.After, q.Until, kinds}
	if q.Key != "" {
		condition += `AND key = $5 AND key <> '' ` // the index has no empty keys
		args = append(args, q.Key)
	}
	return condition, args
}

// settle finds a session and replaces Last and an open end with positions.
func (s *Store) settle(ctx context.Context, id string, q session.Query) (no int64, settled session.Query, err error) {
	var head int64
	err = s.pool.QueryRow(ctx, `SELECT no, head FROM dragoman_sessions WHERE id = $1`, id).Scan(&no, &head)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, q, session.ErrNotFound
	}
	if err != nil {
		return 0, q, s.wrapErr(err)
	}
	if q.Until <= 0 || q.Until > head {
		q.Until = head
	}
	if q.Last > 0 {
		condition, args := whereClause(no, q)
		var first int64
		err := s.pool.QueryRow(ctx, `SELECT seq FROM dragoman_entries WHERE`+condition+`ORDER BY seq DESC LIMIT 1 OFFSET `+strconv.Itoa(q.Last-1), args...).Scan(&first)
		switch {
		case err == nil:
			q.After = first - 1
		case !errors.Is(err, pgx.ErrNoRows):
			return 0, q, s.wrapErr(err)
		}
	}
	return no, q, nil
}

func (s *Store) page(ctx context.Context, no int64, q session.Query) (page []session.Entry, more bool, err error) {
	condition, args := whereClause(no, q)
	rows, err := s.pool.Query(ctx, `SELECT seq, time, kind, key, body FROM dragoman_entries WHERE`+condition+`ORDER BY seq LIMIT `+strconv.Itoa(pageEntries), args...)
	if err != nil {
		return nil, false, err
	}
	defer rows.Close()
	size := 0
	for rows.Next() {
		var e session.Entry
		if err := rows.Scan(&e.Seq, &e.Time, &e.Kind, &e.Key, (*[]byte)(&e.Body)); err != nil {
			return nil, false, err
		}
		e.Time = e.Time.UTC()
		page = append(page, e)
		if size += len(e.Body); size >= pageBytes {
			return page, true, nil
		}
	}
	return page, len(page) == pageEntries, rows.Err()
}
