package access

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"sync"
	"sync/atomic"
	"time"
)

// Options are those of [New]. The zero value is useful.
type Options struct {
	// Now tells the time; nil means time.Now.
	Now func() time.Time
}

// Keys are the virtual keys of a gateway, with what each has used. It is safe for
// concurrent use.
type Keys struct {
	now   func() time.Time
	mu    sync.Mutex // of Replace
	table atomic.Pointer[table]
}

// table is the keys at one time, each with its account.
type table struct {
	keys     []Key
	accounts []*account
	secrets  []secret
}

// secret is the hash of one, and the place of its key.
type secret struct {
	hash [sha256.Size]byte
	key  int
}

// New makes Keys. Without any, everybody is admitted to everything, under the name
// "": who serves beyond loopback must not do that. The error is a [*KeyError].
func New(keys []Key, options Options) (*Keys, error) {
	k := &Keys{now: options.Now}
	if k.now == nil {
		k.now = time.Now
	}
	k.table.Store(&table{})
	return k, k.Replace(keys)
}

// Replace changes the keys. Those that are there under the same name keep what was
// counted, also where their secret or their bounds change; what was counted of others
// is forgotten. Requests under way go on. With an error, a [*KeyError], nothing has
// changed.
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

// Open reports whether there are no keys, and so everybody is admitted.
func (k *Keys) Open() bool { return len(k.table.Load().keys) == 0 }

// Identify is the key that was presented, for what uses no model, such as a list of
// them. The error is a [*RefusedError]. Without any keys it is the zero Key.
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

// Visit counts a request that uses no tokens, but is sent to a model's server: the requests
// per minute are its only bound, so that a key whose budget is spent, or whose answers are
// all under way, can still cancel one. The error is a [*RefusedError].
func (k *Keys) Visit(presented string) error {
	t := k.table.Load()
	i, err := t.find(presented)
	if err != nil || i < 0 {
		return err
	}
	if refused := t.accounts[i].visit(k.now()); refused != nil {
		refused.Key = t.keys[i].Name
		return refused
	}
	return nil
}

// find is the place of the key that was presented; -1 where there are no keys.
//
// How long it takes tells nothing about the keys: what is compared are hashes, which
// who presents a key cannot choose byte by byte, each in constant time, and always
// all of them, whether or where one fits. It does tell how long the presented text
// is, which its sender knows.
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
