package mcp

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/dragoman-go/dragoman/mcp/internal/rpc"
)

// Revisions remembers which revision of the protocol each server speaks. Without it, every
// [Connect] asks each server for the newest one first, and some older servers do not answer
// that: connecting to them then takes five seconds, or ten over HTTP. The zero value is ready
// to use. Its JSON can be stored. It is safe for concurrent use.
//
// After a week, and when a server refuses the revision, it is asked again.
type Revisions struct {
	mu      sync.Mutex
	servers map[string]knownRevision
}

type knownRevision struct {
	Revision string    `json:"revision"`
	Seen     time.Time `json:"seen"`
}

const (
	revisionTime = 7 * 24 * time.Hour
	maxRevisions = 1000
)

// known returns the revision of a server; empty if it is unknown.
func (r *Revisions) known(identity string) string {
	if r == nil {
		return ""
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	k := r.servers[identity]
	if time.Since(k.Seen) > revisionTime {
		return ""
	}
	return k.Revision
}

// saw notes the revision of a server. The time counts from when the server was asked.
func (r *Revisions) saw(identity, revision string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if k := r.servers[identity]; k.Revision == revision && time.Since(k.Seen) <= revisionTime {
		return
	}
	if r.servers == nil {
		r.servers = map[string]knownRevision{}
	}
	for old, k := range r.servers {
		if time.Since(k.Seen) > revisionTime {
			delete(r.servers, old)
		}
	}
	if len(r.servers) < maxRevisions {
		r.servers[identity] = knownRevision{revision, time.Now().UTC().Truncate(time.Second)}
	}
}

// MarshalJSON writes the revisions by server.
func (r *Revisions) MarshalJSON() ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.servers == nil {
		return []byte("{}"), nil
	}
	return json.Marshal(r.servers)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (r *Revisions) UnmarshalJSON(b []byte) error {
	var servers map[string]knownRevision
	if err := json.Unmarshal(b, &servers); err != nil {
		return fmt.Errorf("mcp: stored revisions: %w", err)
	}
	for identity, k := range servers {
		switch k.Revision {
		case rpc.Revision20241105, rpc.Revision20250326, rpc.Revision20250618, rpc.Revision20251125, rpc.Revision20260728:
		default: // of another version of this module
			delete(servers, identity)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.servers = servers
	return nil
}
