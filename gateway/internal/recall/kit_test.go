package recall_test

import (
	"context"
	"time"

	"github.com/dragoman-go/dragoman/session"
)

// counting counts what is done with notes, or fails.
type counting struct {
	session.Notes
	err          error
	reads, bytes int
}

func (c *counting) Put(ctx context.Context, key string, value []byte, expires time.Time) error {
	if c.err != nil {
		return c.err
	}
	c.bytes += len(key) + len(value)
	return c.Notes.Put(ctx, key, value, expires)
}

func (c *counting) Get(ctx context.Context, key string) ([]byte, bool, error) {
	c.reads++
	if c.err != nil {
		return nil, false, c.err
	}
	return c.Notes.Get(ctx, key)
}

func (c *counting) GetAll(ctx context.Context, keys []string) ([][]byte, error) {
	c.reads++
	if c.err != nil {
		return nil, c.err
	}
	return c.Notes.GetAll(ctx, keys)
}
