package storage

import (
	"fmt"
	"time"
	"unicode/utf8"
)

const (
	// MaxBody is the maximum size of an entry's body.
	MaxBody = 64 << 20
	// MaxNote is the maximum size of a note's value.
	MaxNote = 16 << 20
	// MaxOutput is the maximum size of one tool output.
	MaxOutput = 64 << 20
	// MaxKey is the maximum length of the key of an entry or a note, and of the id of a
	// ticket, in bytes.
	MaxKey = 256
	// SweepMost is the maximum number of notes that one sweep deletes.
	SweepMost = 1000
	// SweepEvery is the number of puts between two sweeps of the notes.
	SweepEvery = 256
	// TicketRetention is the time from the expiry of a delivered ticket until a store
	// deletes it.
	TicketRetention = 30 * 24 * time.Hour
)

// Plain reports whether a text is UTF-8 without control characters.
func Plain(s string) bool {
	for _, r := range s {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return false
		}
	}
	return utf8.ValidString(s)
}

// Storable reports whether every store can hold a time.
func Storable(t time.Time) bool { return t.Year() >= 1900 && t.Year() <= 9999 }

// CheckNote returns what is wrong with a note, or "".
func CheckNote(key string, value []byte, expires time.Time) string {
	switch {
	case key == "" || len(key) > MaxKey || !Plain(key):
		return fmt.Sprintf("note key %.80q: want up to %d bytes of text without control characters", key, MaxKey)
	case len(value) > MaxNote:
		return fmt.Sprintf("note of %d bytes exceeds the limit of %d", len(value), MaxNote)
	case !Storable(expires):
		return fmt.Sprintf("cannot store expiry time %v of a note", expires)
	default:
		return ""
	}
}
