package session_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/session"
)

// gappy is a store that omits an entry.
type gappy struct {
	session.Memory
	without int64
}

func (g *gappy) Read(ctx context.Context, id string, q session.Query) iter.Seq2[session.Entry, error] {
	return func(yield func(session.Entry, error) bool) {
		for e, err := range g.Memory.Read(ctx, id, q) {
			if e.Seq != g.without && !yield(e, err) {
				return
			}
		}
	}
}

// A session that is deleted or damaged while it is copied is not copied partially.
func TestS3_LogWithGapsIsNotCopied(t *testing.T) {
	store := &gappy{}
	s := created(t, store)
	save(t, s, dragoman.UserText("a"), dragoman.UserText("b"), dragoman.UserText("c"))
	for _, store.without = range []int64{1, 2, 3} {
		to := &session.Memory{}
		_, err := s.Branch(t.Context(), 3, session.Info{ID: "branch"})
		for what, err := range map[string]error{
			"branch": err, "copy": session.Copy(t.Context(), store, s.ID(), to), "export": session.Export(t.Context(), store, s.ID(), io.Discard),
		} {
			if !errors.Is(err, session.ErrCorrupt) {
				t.Errorf("%s without entry %d: %v", what, store.without, err)
			}
		}
		if _, err := store.Info(t.Context(), "branch"); !errors.Is(err, session.ErrNotFound) {
			t.Error(err)
		}
		for info := range to.List(t.Context()) {
			t.Errorf("%s was made", info.ID)
		}
	}
}
