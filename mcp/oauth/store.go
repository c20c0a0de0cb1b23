package oauth

import (
	"context"
	"net/url"
	"sync"
)

// Store keeps tokens and client registrations between logins. A store is safe for use by
// several goroutines, and if its data is shared by several processes, also by those.
//
// Values contain secrets. A store that writes them anywhere must encrypt them, as
// [FileStore] does.
type Store interface {
	// Load returns the value of a key, or nil if there is none.
	Load(ctx context.Context, key string) ([]byte, error)
	// Save stores a value completely or not at all. An empty value deletes the key.
	Save(ctx context.Context, key string, value []byte) error
	// Lock waits until no other user of the data, in this process or another one, holds the
	// lock of the key, and takes it. It fails if ctx ends first. Refresh tokens can often be
	// used only once, so a refresh holds this lock (pitfall K25).
	Lock(ctx context.Context, key string) (unlock func(), err error)
}

// storeKey joins the parts of a key without ambiguity.
func storeKey(kind string, parts ...string) string {
	for _, p := range parts {
		kind += "/" + url.QueryEscape(p)
	}
	return kind
}

// memoryStore keeps everything in memory.
type memoryStore struct {
	mu     sync.Mutex
	values map[string][]byte
	locks  map[string]chan struct{}
}

// MemoryStore returns a store that ends with the process. Several Authorizers may share it.
func MemoryStore() Store {
	return &memoryStore{values: map[string][]byte{}, locks: map[string]chan struct{}{}}
}

func (m *memoryStore) Load(_ context.Context, key string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.values[key], nil
}

func (m *memoryStore) Save(_ context.Context, key string, value []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(value) == 0 {
		delete(m.values, key)
		return nil
	}
	m.values[key] = append([]byte(nil), value...)
	return nil
}

func (m *memoryStore) Lock(ctx context.Context, key string) (func(), error) {
	m.mu.Lock()
	l := m.locks[key]
	if l == nil {
		l = make(chan struct{}, 1)
		m.locks[key] = l
	}
	m.mu.Unlock()
	select {
	case l <- struct{}{}:
		return func() { <-l }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
