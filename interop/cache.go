package interop

import (
	"crypto/sha256"
	"encoding/json"
	"sync"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/schema"
)

// SchemaCache remembers how schemas were lowered, so that a conversation which
// sends the same tools with every turn lowers them once. It belongs to whoever
// sends those turns. The zero value is ready; it is safe for concurrent use,
// and a nil cache remembers nothing.
//
// What comes out is the same with and without one, losses included.
type SchemaCache struct {
	mu      sync.Mutex
	entries map[schemaKey]loweredSchema
	size    int
}

type schemaKey struct {
	profile string
	source  [sha256.Size]byte
}

type loweredSchema struct {
	out json.RawMessage
	rep dragoman.Report
	err error
}

// maxCachedBytes bounds what a cache holds. One that is full starts over: tools
// that are still in use come back with the next request.
const maxCachedBytes = 16 << 20

func (c *SchemaCache) lower(src json.RawMessage, p schema.Profile) (json.RawMessage, dragoman.Report, error) {
	if c == nil {
		return schema.Lower(src, p)
	}
	key := schemaKey{p.Name(), sha256.Sum256(src)}
	c.mu.Lock()
	low, ok := c.entries[key]
	c.mu.Unlock()
	if ok {
		return low.out, low.rep, low.err
	}
	low.out, low.rep, low.err = schema.Lower(src, p)
	// Never the caller's memory, which the caller may use again.
	kept := low
	kept.out = append(json.RawMessage(nil), low.out...)
	cost := len(kept.out) + 256
	for i := range kept.rep.Losses {
		cost += 64 + len(kept.rep.Losses[i].Path) + len(kept.rep.Losses[i].Detail)
	}
	if cost > maxCachedBytes {
		return low.out, low.rep, low.err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.size+cost > maxCachedBytes || c.entries == nil {
		c.entries, c.size = make(map[schemaKey]loweredSchema), 0
	}
	if _, ok := c.entries[key]; !ok {
		c.entries[key] = kept
		c.size += cost
	}
	return low.out, low.rep, low.err
}
