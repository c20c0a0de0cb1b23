// Package storelimits has the bounds that package session and its stores share.
package storelimits

import (
	"fmt"
	"time"
	"unicode/utf8"
)

const (
	// MaxBody is the greatest size of an entry's body.
	MaxBody = 64 << 20
	// MaxNote is the greatest size of a note's value.
	MaxNote = 16 << 20
	// MaxOutput is the greatest size of one tool output.
	MaxOutput = 64 << 20
	// MaxKey is the greatest length of the key of an entry or a note, and of the id of a
	// ticket, in bytes.
	MaxKey = 256
	// SweepMost is the greatest number of notes that one sweep deletes.
	SweepMost = 1000
	// SweepEvery is the number of puts from one sweep of the notes to the next.
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
		return fmt.Sprintf("the key %.80q of a note: want up to %d bytes of text without control characters", key, MaxKey)
	case len(value) > MaxNote:
		return fmt.Sprintf("a note of %d bytes, and no more than %d are kept", len(value), MaxNote)
	case !Storable(expires):
		return fmt.Sprintf("the time %v at which a note expires", expires)
	default:
		return ""
	}
}
