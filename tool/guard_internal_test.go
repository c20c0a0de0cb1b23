package tool

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// appendName is a task that appends its name to the value.
func appendName(ctx context.Context, name string, limit time.Duration, does func(context.Context)) task[[]string] {
	return task[[]string]{ctx: ctx, limit: limit, f: func(ctx context.Context, names *[]string) error {
		if does != nil {
			does(ctx)
		}
		*names = append(slices.Clip(*names), name)
		return nil
	}}
}

func TestT6_EveryTaskHasItsOwnTimeLimit(t *testing.T) {
	const limit = time.Second
	within := func(context.Context) { time.Sleep(limit * 9 / 10) }
	synctest.Test(t, func(t *testing.T) {
		tasks := []task[[]string]{appendName(t.Context(), "a", limit, within), appendName(t.Context(), "b", limit, within), appendName(t.Context(), "c", limit, within)}
		got, _, err := guardAll(nil, []string{"before"}, tasks)
		if err != nil || !slices.Equal(got, []string{"before", "a", "b", "c"}) {
			t.Errorf("%v, %v", got, err)
		}
	})
	for which := range 3 {
		synctest.Test(t, func(t *testing.T) {
			returned := make(chan struct{})
			tasks := []task[[]string]{appendName(t.Context(), "a", limit, within), appendName(t.Context(), "b", limit, within), appendName(t.Context(), "c", limit, within)}
			tasks[which] = appendName(t.Context(), "slow", limit, func(context.Context) { time.Sleep(limit + 1) })
			tasks[which].late = func() { close(returned) }
			begun := time.Now()
			got, at, err := guardAll(nil, nil, tasks)
			if !errors.Is(err, errTimeout) || at != which || got != nil {
				t.Errorf("%v, task %d: %v", got, at, err)
			}
			if took, want := time.Since(begun), time.Duration(which)*limit*9/10+limit; took != want {
				t.Errorf("it took %v, want %v", took, want)
			}
			<-returned // the first task saw its context end, and the next tasks did not run
		})
	}
}

func TestT7_ErrorNamesTheTaskThatPanicked(t *testing.T) {
	for which := range 3 {
		for how, does := range map[string]func(context.Context){
			"panics": func(context.Context) { panic("no") },
			"ends":   func(context.Context) { runtime.Goexit() },
		} {
			tasks := make([]task[[]string], 3)
			for i := range tasks {
				tasks[i] = appendName(t.Context(), "x", time.Minute, nil)
			}
			tasks[which] = appendName(t.Context(), "x", time.Minute, does)
			var panicked *PanicError
			got, at, err := guardAll(nil, nil, tasks)
			if at != which || got != nil || how == "panics" && !errors.As(err, &panicked) || how == "ends" && !errors.Is(err, errEnded) {
				t.Errorf("task %d %s: %v, task %d: %v", which, how, got, at, err)
			}
		}
	}
}

func TestT6_CancelEndsTheRunningTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		stuck := make(chan struct{})
		defer close(stuck)
		got, at, err := guardAll(nil, nil, []task[[]string]{
			appendName(ctx, "a", time.Minute, nil),
			appendName(ctx, "b", time.Minute, func(context.Context) { cancel(); <-stuck }),
		})
		if !errors.Is(err, context.Canceled) || at != 1 || got != nil {
			t.Errorf("%v, task %d: %v", got, at, err)
		}
	})
	// Canceled by the previous task, the next one does not begin.
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		_, at, err := guardAll(nil, nil, []task[[]string]{
			appendName(ctx, "a", time.Minute, func(context.Context) { cancel() }),
			appendName(ctx, "b", time.Minute, func(context.Context) { t.Error("it ran") }),
		})
		if !errors.Is(err, context.Canceled) || at > 1 {
			t.Errorf("task %d: %v", at, err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		got, _, err := guardAll(nil, nil, []task[[]string]{
			appendName(ctx, "a", time.Minute, nil),
			appendName(context.WithoutCancel(ctx), "b", time.Minute, func(ctx context.Context) {
				cancel()
				time.Sleep(time.Second)
				if ctx.Err() != nil {
					t.Error("its context ended", ctx.Err())
				}
			}),
		})
		if err != nil || !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("%v: %v", got, err)
		}
	})
}

// A context that is created on demand behaves like one of the standard library.
func TestT6_LazyTaskContextBehavesLikeAStandardContext(t *testing.T) {
	type key struct{}
	synctest.Test(t, func(t *testing.T) {
		var kept, derived context.Context
		_, err := guard(context.WithValue(t.Context(), key{}, "value"), nil, time.Second, nil, func(ctx context.Context) (int, error) {
			var cancel context.CancelFunc
			derived, cancel = context.WithTimeout(ctx, time.Hour)
			_ = context.AfterFunc(derived, cancel)
			deadline, ok := derived.Deadline()
			if kept = ctx; !ok || time.Until(deadline) != time.Second || ctx.Value(key{}) != "value" || ctx.Err() != nil || derived.Err() != nil {
				t.Errorf("%v, %v", deadline, ctx)
			}
			return 0, nil
		})
		if err != nil || !errors.Is(kept.Err(), context.Canceled) || !errors.Is(derived.Err(), context.Canceled) {
			t.Errorf("after it returned: %v, %v, %v", err, kept.Err(), derived.Err())
		}
	})
	synctest.Test(t, func(t *testing.T) { // not used before the deadline
		var kept context.Context
		_, err := guard(context.WithValue(t.Context(), key{}, "value"), nil, time.Second, nil, func(ctx context.Context) (int, error) { kept = ctx; return 0, nil })
		if <-kept.Done(); err != nil || !errors.Is(kept.Err(), context.Canceled) || kept.Value(key{}) != "value" {
			t.Errorf("%v, %v", err, kept.Err())
		}
	})
	synctest.Test(t, func(t *testing.T) { // the end is visible both before and after the deadline
		for _, early := range []bool{true, false} {
			var kept, derived context.Context
			var wg sync.WaitGroup
			wg.Add(1)
			_, err := guard(context.WithValue(t.Context(), key{}, "value"), nil, time.Second, wg.Done, func(ctx context.Context) (int, error) {
				if kept = ctx; early {
					var cancel context.CancelFunc
					derived, cancel = context.WithCancel(ctx)
					defer cancel()
					<-derived.Done()
				}
				time.Sleep(time.Second * 2)
				return 0, nil
			})
			wg.Wait()
			if !errors.Is(err, errTimeout) || !errors.Is(kept.Err(), context.DeadlineExceeded) || !errors.Is(context.Cause(kept), errTimeout) {
				t.Errorf("early %v: %v, %v, %v", early, err, kept.Err(), context.Cause(kept))
			}
			if early && (!errors.Is(derived.Err(), context.DeadlineExceeded) || !errors.Is(context.Cause(derived), errTimeout)) {
				t.Errorf("derived: %v, %v", derived.Err(), context.Cause(derived))
			}
		}
	})
	synctest.Test(t, func(t *testing.T) { // the parent has ended
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("why")
		var kept context.Context
		_, err := guard(ctx, nil, time.Second, nil, func(ctx context.Context) (int, error) { kept = ctx; cancel(why); <-ctx.Done(); return 0, ctx.Err() })
		if !errors.Is(err, why) && !errors.Is(err, context.Canceled) || !errors.Is(context.Cause(kept), why) {
			t.Errorf("%v, %v", err, context.Cause(kept))
		}
	})
}

func TestT6_LateTimerDoesNotEndTheNextTask(t *testing.T) {
	s := &series[int]{tasks: []task[int]{{ctx: t.Context(), limit: time.Hour}, {ctx: t.Context(), limit: time.Hour}}, done: make(chan struct{}, 1)}
	s.watch(0).settle(finished)
	next := s.watch(1)
	defer s.timer.Stop()
	s.expire() // the timer of the first task, fired when that task had finished
	if next.state.Load() != running || len(s.done) != 0 {
		t.Error("it ended the next")
	}
}
