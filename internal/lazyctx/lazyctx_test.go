package lazyctx_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-go/dragoman/internal/lazyctx"
)

func TestEndsAfterItsTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		parent, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "v"))
		watched, stop := lazyctx.WithTimeout(context.WithoutCancel(parent), time.Minute)
		defer stop()
		unwatched, stop := lazyctx.WithTimeout(context.WithoutCancel(parent), time.Minute)
		defer stop()
		inner, done := context.WithCancel(watched)
		defer done()
		cancel()
		synctest.Wait()
		for _, c := range []context.Context{watched, unwatched, inner} {
			if at, ok := c.Deadline(); c.Err() != nil || !ok || time.Until(at) != time.Minute || c.Value(key{}) != "v" {
				t.Error(c.Err(), at, ok, c.Value(key{}))
			}
		}
		<-inner.Done()
		for _, c := range []context.Context{watched, unwatched, inner} {
			if !errors.Is(c.Err(), context.DeadlineExceeded) {
				t.Error(c.Err())
			}
		}
	})
}

func TestEndsWithItsParent(t *testing.T) {
	for _, watched := range []bool{false, true} {
		parent, cancel := context.WithCancelCause(t.Context())
		c, stop := lazyctx.WithTimeout(parent, time.Hour)
		if watched {
			c.Done()
		}
		left := errors.New("left")
		cancel(left)
		if !errors.Is(c.Err(), context.Canceled) || !errors.Is(context.Cause(c), left) {
			t.Error(watched, c.Err(), context.Cause(c))
		}
		<-c.Done()
		stop()
	}
}

func TestKeepsAnEarlierDeadlineOfItsParent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parent, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		c, stop := lazyctx.WithTimeout(parent, time.Hour)
		defer stop()
		if at, _ := c.Deadline(); time.Until(at) != time.Second {
			t.Error(at)
		}
		<-c.Done()
		if !errors.Is(c.Err(), context.DeadlineExceeded) {
			t.Error(c.Err())
		}
	})
}

func TestCancelEnds(t *testing.T) {
	for _, watched := range []bool{false, true} {
		c, stop := lazyctx.WithTimeout(t.Context(), time.Hour)
		if watched {
			c.Done()
		}
		stop()
		if !errors.Is(c.Err(), context.Canceled) {
			t.Error(watched, c.Err())
		}
		<-c.Done()
		if !errors.Is(c.Err(), context.Canceled) {
			t.Error(watched, c.Err())
		}
	}
}

func TestStartsNoTimerUnlessWatched(t *testing.T) {
	parent := t.Context()
	n := testing.AllocsPerRun(100, func() {
		c, stop := lazyctx.WithTimeout(parent, time.Hour)
		defer stop()
		if c.Err() != nil {
			t.Fatal(c.Err())
		}
	})
	if n > 2 { // the context and its cancel function
		t.Errorf("%v allocations", n)
	}
}
