package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"iter"
	"strings"
	"time"

	"github.com/dragoman-go/dragoman/internal/storage/storekit"
	"github.com/dragoman-go/dragoman/session"
)

const infoColumns = `id, title, created, parent, at, updated, head`

func scanInfo(scan func(...any) error) (i session.Info, err error) {
	var created, updated int64
	err = scan(&i.ID, &i.Title, &created, &i.Parent, &i.ParentSeq, &updated, &i.Head)
	i.Created, i.Updated = time.UnixMicro(created).UTC(), time.UnixMicro(updated).UTC()
	return i, err
}

// Info returns the metadata of a session.
func (s *Store) Info(ctx context.Context, id string) (session.Info, error) {
	i, err := scanInfo(s.read.QueryRowContext(ctx, `SELECT `+infoColumns+` FROM sessions WHERE id = ?`, id).Scan)
	if errors.Is(err, sql.ErrNoRows) {
		return session.Info{}, session.ErrNotFound
	}
	return i, s.wrapErr(err)
}

// List yields the sessions as of the start of the loop.
func (s *Store) List(ctx context.Context) iter.Seq2[session.Info, error] {
	return func(yield func(session.Info, error) bool) {
		all, err := s.infos(ctx)
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

func (s *Store) infos(ctx context.Context) (all []session.Info, err error) {
	rows, err := s.read.QueryContext(ctx, `SELECT `+infoColumns+` FROM sessions ORDER BY updated DESC, id`)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // rows.Err has the error
	for rows.Next() {
		i, err := scanInfo(rows.Scan)
		if err != nil {
			return nil, err
		}
		all = append(all, i)
	}
	return all, rows.Err()
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

// settle finds a session and replaces Last and an open end with positions.
func (s *Store) settle(ctx context.Context, id string, q session.Query) (no int64, settled session.Query, err error) {
	var head int64
	err = s.read.QueryRowContext(ctx, `SELECT no, head FROM sessions WHERE id = ?`, id).Scan(&no, &head)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, q, session.ErrNotFound
	}
	if err != nil {
		return 0, q, s.wrapErr(err)
	}
	if q.Until <= 0 || q.Until > head {
		q.Until = head
	}
	if q.Last > 0 {
		where, args := whereClause(no, q)
		var first int64
		err := s.read.QueryRowContext(ctx, `SELECT seq FROM entries WHERE `+where+` ORDER BY seq DESC LIMIT 1 OFFSET ?`, append(args, q.Last-1)...).Scan(&first)
		switch {
		case err == nil:
			q.After = first - 1
		case !errors.Is(err, sql.ErrNoRows):
			return 0, q, s.wrapErr(err)
		}
	}
	return no, q, nil
}

func whereClause(no int64, q session.Query) (where string, args []any) {
	where, args = `session = ? AND seq > ? AND seq <= ?`, []any{no, q.After, q.Until}
	if q.Key != "" {
		where += ` AND key = ? AND key <> ''` // the index has no empty keys
		args = append(args, q.Key)
	}
	if len(q.Kinds) > 0 {
		where += ` AND kind IN (?` + strings.Repeat(", ?", len(q.Kinds)-1) + `)`
		for _, k := range q.Kinds {
			args = append(args, k)
		}
	}
	return where, args
}

func (s *Store) page(ctx context.Context, no int64, q session.Query) (page []session.Entry, more bool, err error) {
	where, args := whereClause(no, q)
	rows, err := s.read.QueryContext(ctx, `SELECT seq, time, kind, key, body FROM entries WHERE `+where+` ORDER BY seq LIMIT ?`, append(args, pageEntries)...)
	if err != nil {
		return nil, false, err
	}
	defer rows.Close() //nolint:errcheck // rows.Err has the error
	size := 0
	for rows.Next() {
		var e session.Entry
		var at int64
		if err := rows.Scan(&e.Seq, &at, &e.Kind, &e.Key, (*[]byte)(&e.Body)); err != nil {
			return nil, false, err
		}
		e.Time = time.UnixMicro(at).UTC()
		page = append(page, e)
		if size += len(e.Body); size >= pageBytes {
			return page, true, nil
		}
	}
	return page, len(page) == pageEntries, rows.Err()
}
