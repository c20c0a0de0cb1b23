package session_test

import (
	"strings"
	"testing"
	"time"

	"github.com/dragoman-go/dragoman/internal/storage/storekit"
	"github.com/dragoman-go/dragoman/session"
)

func TestA4_NoncesAreUsedOnceAndOutliveTheirTokens(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	nonces := session.Nonces{Notes: &storekit.Notes{Now: func() time.Time { return now }}}
	expires := now.Add(time.Minute)
	use := func(nonce byte, want bool) {
		t.Helper()
		if fresh, err := nonces.Use(t.Context(), [16]byte{15: nonce}, expires); err != nil || fresh != want {
			t.Errorf("nonce %d: fresh %v, %v, want %v", nonce, fresh, err, want)
		}
	}
	use(1, true)
	use(2, true)
	use(1, false)
	now = expires.Add(30 * time.Minute) // by the clock of the process that signs, the token has not expired
	use(1, false)
	use(3, true)
}

func TestNoncesWithoutNotesReturnAnError(t *testing.T) {
	if fresh, err := (session.Nonces{}).Use(t.Context(), [16]byte{}, time.Now()); fresh || err == nil || !strings.Contains(err.Error(), "no Notes") {
		t.Error(fresh, err)
	}
}
