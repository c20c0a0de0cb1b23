package session

import (
	"context"
	"encoding/hex"
	"errors"
	"time"
)

// Nonces store in Notes which approval tokens were used, so that no token can be used again
// after a restart or in another process. They are a store for the field Nonces of a
// [github.com/dragoman-go/dragoman/tool/policy.Signer]:
//
//	signer.Nonces = session.Nonces{Notes: store.Notes()}
type Nonces struct {
	// Notes stores the nonces. Notes that evict values before they expire are not suitable;
	// those of session/sqlite and session/postgres are.
	Notes Notes
}

// nonceMargin is how much longer than its token a nonce is stored, because the clocks of the
// processes that share the store differ.
const nonceMargin = time.Hour

// Use stores a nonce and reports whether it is used for the first time.
func (n Nonces) Use(ctx context.Context, nonce [16]byte, expires time.Time) (fresh bool, err error) {
	if n.Notes == nil {
		return false, errors.New("session: Nonces has no Notes: set them, for example to those of a store in a file")
	}
	return n.Notes.PutNew(ctx, "approval token "+hex.EncodeToString(nonce[:]), nil, expires.Add(nonceMargin))
}
