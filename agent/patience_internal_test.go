package agent

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestPatienceEndsWithItsTimeAndNotWithTheContextAround(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "v"))
		p := withPatience(ctx, time.Minute)
		defer p.cancel()
		unwatched := withPatience(ctx, time.Minute)
		defer unwatched.cancel()
		inner, done := context.WithCancel(p)
		defer done()
		cancel()
		synctest.Wait()
		if at, ok := p.Deadline(); p.Err() != nil || unwatched.Err() != nil || inner.Err() != nil || !ok || time.Until(at) != time.Minute || p.Value(key{}) != "v" || unwatched.Value(key{}) != "v" {
			t.Error(p.Err(), unwatched.Err(), inner.Err(), at, ok, p.Value(key{}), unwatched.Value(key{}))
		}
		<-inner.Done()
		for _, c := range []context.Context{p, unwatched, inner} {
			if !errors.Is(c.Err(), context.DeadlineExceeded) {
				t.Error(c.Err())
			}
		}
	})
}

func TestPatienceThatIsCancelledIsOver(t *testing.T) {
	for _, waits := range []bool{false, true} {
		p := withPatience(t.Context(), time.Hour)
		if waits {
			p.Done()
		}
		p.cancel()
		if !errors.Is(p.Err(), context.Canceled) {
			t.Error(waits, p.Err())
		}
		<-p.Done()
		if !errors.Is(p.Err(), context.Canceled) {
			t.Error(waits, p.Err())
		}
	}
}
