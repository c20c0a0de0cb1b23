package access

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"sync"
	"sync/atomic"
	"time"
)

// Options configure [New]. The zero value is valid.
type Options struct {
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Keys holds the virtual keys of a gateway and their usage. It is safe for concurrent use.
type Keys struct {
	now   func() time.Time
	mu    sync.Mutex // of Replace
	table atomic.Pointer[table]
}

// table is an immutable set of keys, each with its account.
type table struct {
	keys     []Key
	accounts []*account
	secrets  []secret
}

// secret is the hash of a secret, and the index of its key.
type secret struct {
	hash [sha256.Size]byte
	key  int
}

// New returns Keys. Without keys, every client may use everything, under the name "": do not
// serve that beyond loopback. The error is a [*KeyError].
func New(keys []Key, options Options) (*Keys, error) {
	k := &Keys{now: options.Now}
	if k.now == nil {
		k.now = time.Now
	}
	k.table.Store(&table{})
	return k, k.Replace(keys)
}

// Replace replaces the keys. Keys with the same name keep their counts, also if their secret or
// limits change; the counts of other keys are dropped. Requests in progress continue. On an
// error, a [*KeyError], nothing changes.
func (k *Keys) Replace(keys []Key) error {
	if err := check(keys); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	old := map[string]*account{}
	for i, a := range k.table.Load().accounts {
		old[k.table.Load().keys[i].Name] = a
	}
	t, now := &table{}, k.now()
	for _, key := range keys {
		key = clone(&key)
		for _, hash := range hashes(&key) {
			t.secrets = append(t.secrets, secret{hash, len(t.keys)})
		}
		a := old[key.Name]
		if a == nil {
			a = &account{}
		}
		a.set(key, now)
		t.keys, t.accounts = append(t.keys, key), append(t.accounts, a)
	}
	k.table.Store(t)
	return nil
}

// Open reports whether there are no keys, so that every client is admitted.
func (k *Keys) Open() bool { return len(k.table.Load().keys) == 0 }

// Identify returns the key for a secret, for requests that use no model, such as a list of
// models. The error is a [*RefusedError]. Without keys it returns the zero Key.
func (k *Keys) Identify(presented string) (Key, error) {
	t := k.table.Load()
	i, err := t.find(presented)
	if err != nil || i < 0 {
		return Key{}, err
	}
	key := t.keys[i]
	key = clone(&key)
	return key, nil
}

// Enter finds the key of a request and takes one of its Parallel slots, before the body is
// read, so that a client that sends slowly occupies a slot. It counts nothing else; see
// [Lease.Admit]. The error is a [*RefusedError], or the cause of ctx. Enter does not wait.
// The lease must be released.
func (k *Keys) Enter(ctx context.Context, presented string) (*Lease, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	t := k.table.Load()
	i, err := t.find(presented)
	if err != nil {
		return nil, err
	}
	if i < 0 {
		return &Lease{}, nil
	}
	key, a := &t.keys[i], t.accounts[i]
	if refused := a.enter(); refused != nil {
		refused.Key = key.Name
		return nil, refused
	}
	return &Lease{key: key, account: a, now: k.now}, nil
}

// Admit is [Keys.Enter] and [Lease.Admit] in one, for a request whose model is known.
func (k *Keys) Admit(ctx context.Context, presented, model string, estimate int64) (*Lease, error) {
	lease, err := k.Enter(ctx, presented)
	if err != nil {
		return nil, err
	}
	if err := lease.Admit(model, estimate); err != nil {
		lease.Release()
		return nil, err
	}
	return lease, nil
}

// Visit counts a request that uses no tokens but is sent to an upstream. Only the requests per
// minute limit it, so that a key with an exhausted budget, or with all its slots in use, can
// still cancel a response. The error is a [*RefusedError].
func (k *Keys) Visit(presented string) error {
	t := k.table.Load()
	i, err := t.find(presented)
	if err != nil || i < 0 {
		return err
	}
	if refused := t.accounts[i].countRequest(k.now()); refused != nil {
		refused.Key = t.keys[i].Name
		return refused
	}
	return nil
}

// Use admits a call of the key with a name, such as one of an MCP tool: it takes one of the
// Parallel slots, until release is called, and counts one of the requests per minute. Budgets do
// not count, because the call uses no tokens. The error is a [*RefusedError]. Without keys it
// admits everything.
func (k *Keys) Use(name string) (release func(), err error) {
	t := k.table.Load()
	if len(t.keys) == 0 {
		return func() {}, nil
	}
	for i := range t.keys {
		if t.keys[i].Name != name {
			continue
		}
		a := t.accounts[i]
		refused := a.enter()
		if refused == nil {
			if refused = a.countRequest(k.now()); refused == nil {
				return sync.OnceFunc(func() { a.release(0) }), nil
			}
			a.release(0)
		}
		refused.Key = name
		return nil, refused
	}
	return nil, &RefusedError{Reason: UnknownKey}
}

// find returns the index of the key for a secret; -1 if there are no keys.
//
// Its duration reveals nothing about the keys: it compares hashes, which a client cannot choose
// byte by byte, each in constant time, and always all of them. It depends only on the length of
// the secret that the client sent.
func (t *table) find(presented string) (int, error) {
	switch {
	case len(t.keys) == 0:
		return -1, nil
	case presented == "":
		return -1, &RefusedError{Reason: NoKey}
	}
	sum, found := sha256.Sum256([]byte(presented)), -1
	for i := range t.secrets {
		s := &t.secrets[i]
		found = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(sum[:], s.hash[:]), s.key, found)
	}
	if found < 0 {
		return -1, &RefusedError{Reason: UnknownKey}
	}
	return found, nil
}
