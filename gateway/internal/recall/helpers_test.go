package recall_test

import (
	"context"
	"time"

	"github.com/dragoman-go/dragoman/session"
)

// countingNotes counts the calls of notes, or fails.
type countingNotes struct {
	session.Notes
	err          error
	reads, bytes int
}

func (c *countingNotes) Put(ctx context.Context, key string, value []byte, expires time.Time) error {
	if c.err != nil {
		return c.err
	}
	c.bytes += len(key) + len(value)
	return c.Notes.Put(ctx, key, value, expires)
}

func (c *countingNotes) Get(ctx context.Context, key string) ([]byte, bool, error) {
	c.reads++
	if c.err != nil {
		return nil, false, c.err
	}
	return c.Notes.Get(ctx, key)
}

func (c *countingNotes) GetAll(ctx context.Context, keys []string) ([][]byte, error) {
	c.reads++
	if c.err != nil {
		return nil, c.err
	}
	return c.Notes.GetAll(ctx, keys)
}
