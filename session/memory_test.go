package session_test

import (
	"testing"

	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/session/sessiontest"
)

func TestS2_MemoryKeepsWhatAStorePromises(t *testing.T) {
	sessiontest.Run(t, func(*testing.T) session.Store { return &session.Memory{} })
}
