package interop

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"sync"

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
	entries map[schemaKey]cachedSchema
	size    int
}

type schemaKey struct {
	profile string
	source  [sha256.Size]byte
}

type cachedSchema struct {
	low *schema.Lowered
	err error
}

// maxCachedBytes bounds what a cache holds. One that is full starts over: tools
// that are still in use come back with the next request.
const maxCachedBytes = 16 << 20

// adapt is schema.Lower. Nobody may change what it returns.
func (c *SchemaCache) adapt(src json.RawMessage, p schema.Profile) (*schema.Lowered, error) {
	if c == nil {
		return schema.Lower(src, p)
	}
	key := schemaKey{p.Name(), sha256.Sum256(src)}
	c.mu.Lock()
	kept, ok := c.entries[key]
	c.mu.Unlock()
	if ok {
		return kept.low, kept.err
	}
	// Never the caller's memory, which the caller may use again.
	kept.low, kept.err = schema.Lower(bytes.Clone(src), p)
	cost := costOf(kept.low, len(src))
	if cost > maxCachedBytes {
		return kept.low, kept.err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.size+cost > maxCachedBytes || c.entries == nil {
		c.entries, c.size = make(map[schemaKey]cachedSchema), 0
	}
	if _, ok := c.entries[key]; !ok {
		c.entries[key] = kept
		c.size += cost
	}
	return kept.low, kept.err
}

// costOf estimates the memory that a lowered schema holds. What it takes to
// translate arguments is a tree over the source.
func costOf(low *schema.Lowered, source int) int {
	cost := len(low.Schema) + len(low.Note) + 256
	if low.Translates() {
		cost += 16 * source
	}
	for i := range low.Report.Losses {
		cost += 64 + len(low.Report.Losses[i].Path) + len(low.Report.Losses[i].Detail)
	}
	return cost
}
