package recall

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/dragoman-go/dragoman/internal/storage/storelimits"
	"github.com/dragoman-go/dragoman/session"
)

// Options say where and how long to remember. Notes are needed.
type Options struct {
	Notes session.Notes
	// TTL is how long something is remembered that nobody asks for; zero means 24
	// hours.
	TTL time.Duration
	// MaxState is the greatest size, in bytes, of what is kept of one answer; zero
	// means 2 MiB.
	MaxState int
	// MaxSaved is the greatest size, in bytes, of what one response adds to a
	// conversation that is kept for previous_response_id; zero means 4 MiB. A whole
	// conversation may have eight times as much.
	MaxSaved int
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

const (
	defaultTTL      = 24 * time.Hour
	defaultMaxState = 2 << 20
	defaultMaxSaved = 4 << 20
	// wholes is how many times MaxSaved a conversation may have.
	wholes = 8
)

// Recall remembers. It is safe for concurrent use, if its notes are.
type Recall struct{ o Options }

// New returns a Recall.
func New(o Options) (*Recall, error) {
	if o.Notes == nil {
		return nil, errors.New("recall: no notes to keep anything in")
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
	o.MaxState, o.MaxSaved = min(o.MaxState, storelimits.MaxNote), min(o.MaxSaved, storelimits.MaxNote/2)
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Recall{o: o}, nil
}

// Scope is whose conversation something is of. Nothing of one scope is ever found in
// another.
type Scope struct {
	// Key is the name of the virtual key, Route that of the route.
	Key, Route string
}

// ErrNotFound says that there is no such response: it was never stored, has expired,
// was deleted, or is another key's.
var ErrNotFound = errors.New("recall: there is no such response")

// ErrTooLarge says that something is more than is remembered: see [TooLargeError].
var ErrTooLarge = errors.New("recall: too large to remember")

// TooLargeError is the error, for which [ErrTooLarge] stands, of what is more than is
// remembered. Nothing was kept.
type TooLargeError struct {
	// What is too large, its size in bytes and how much it may have. A size of 0 is
	// unknown.
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
	return fmt.Sprintf("recall: %s%s is more than the %d that are kept: %s", e.What, size, e.Max, e.Advice)
}

// Is reports whether target is [ErrTooLarge].
func (e *TooLargeError) Is(target error) bool { return target == ErrTooLarge }

// noteKey is the key of a note: what it is, and a hash of what tells it from others, so
// that no two lists of parts give one key.
func noteKey(what string, parts ...string) string {
	h := sha256.New()
	var n [binary.MaxVarintLen64]byte
	for _, p := range parts {
		h.Write(n[:binary.PutUvarint(n[:], uint64(len(p)))])
		h.Write([]byte(p))
	}
	return what + ":" + base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}
