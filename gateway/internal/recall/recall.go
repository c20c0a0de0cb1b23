package recall

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/dragoman-go/dragoman/internal/storage"
	"github.com/dragoman-go/dragoman/session"
)

// Options configure where and how long to store state. Notes is required.
type Options struct {
	Notes session.Notes
	// TTL is the lifetime of unused state; zero means 24 hours.
	TTL time.Duration
	// MaxState is the maximum size, in bytes, of the state of one response; zero means 2 MiB.
	MaxState int
	// MaxSaved is the maximum size, in bytes, that one response adds to a conversation stored
	// for previous_response_id; zero means 4 MiB. A whole conversation may have eight times as
	// much.
	MaxSaved int
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

const (
	defaultTTL      = 24 * time.Hour
	defaultMaxState = 2 << 20
	defaultMaxSaved = 4 << 20
	// maxConversationFactor is the maximum size of a conversation in multiples of MaxSaved.
	maxConversationFactor = 8
)

// Recall stores and restores state. It is safe for concurrent use if its notes are.
type Recall struct{ o Options }

// New returns a Recall.
func New(o Options) (*Recall, error) {
	if o.Notes == nil {
		return nil, errors.New("recall: Options.Notes is nil")
	}
	if o.TTL <= 0 {
		o.TTL = defaultTTL
	}
	if o.MaxState <= 0 {
		o.MaxState = defaultMaxState
	}
	if o.MaxSaved <= 0 {
		o.MaxSaved = defaultMaxSaved
	}
	o.MaxState, o.MaxSaved = min(o.MaxState, storage.MaxNote), min(o.MaxSaved, storage.MaxNote/2)
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Recall{o: o}, nil
}

// Scope is the owner of a conversation. State of one scope is never found in another.
type Scope struct {
	// Key is the name of the virtual key, Route the name of the route.
	Key, Route string
}

// ErrNotFound reports an unknown response: it was never stored, has expired, was deleted, or
// belongs to another key.
var ErrNotFound = errors.New("recall: unknown response")

// ErrTooLarge reports state that is too large to store: see [TooLargeError].
var ErrTooLarge = errors.New("recall: too large to store")

// TooLargeError reports state that is too large. It matches [ErrTooLarge]. Nothing was stored.
type TooLargeError struct {
	// What is too large, its size in bytes and the maximum. A size of 0 is unknown.
	What      string
	Size, Max int
	// Advice says what to do instead.
	Advice string
}

func (e *TooLargeError) Error() string {
	size := ""
	if e.Size > 0 {
		size = fmt.Sprintf(" has %d bytes, which", e.Size)
	}
	return fmt.Sprintf("recall: %s%s is more than the limit of %d: %s", e.What, size, e.Max, e.Advice)
}

// Is reports whether target is [ErrTooLarge].
func (e *TooLargeError) Is(target error) bool { return target == ErrTooLarge }

// noteKey returns the key of a note: its kind, and a hash of its parts, so that different lists
// of parts have different keys.
func noteKey(what string, parts ...string) string {
	h := sha256.New()
	var n [binary.MaxVarintLen64]byte
	for _, p := range parts {
		h.Write(n[:binary.PutUvarint(n[:], uint64(len(p)))])
		h.Write([]byte(p))
	}
	return what + ":" + base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}
