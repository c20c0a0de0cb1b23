package interop

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"sync"

	"github.com/dragoman-go/dragoman/schema"
)

// SchemaCache caches lowered schemas, so that a conversation that sends the same tools in every
// turn lowers them once. It belongs to the sender of the turns. The zero value is ready to use.
// It is safe for concurrent use. A nil cache stores nothing.
//
// The results, including losses, are the same with and without a cache.
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

// maxCachedBytes limits the size of a cache. A full cache is emptied: tools that are still in
// use come back with the next request.
const maxCachedBytes = 16 << 20

// adapt is schema.Lower with the cache. The result must not be changed.
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
	// Clone src, because the caller may reuse its memory.
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

// costOf estimates the memory of a lowered schema. Translating arguments needs a tree of the
// source.
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
