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

// adding is a task that adds its name to those before.
func adding(ctx context.Context, name string, limit time.Duration, does func(context.Context)) task[[]string] {
	return task[[]string]{ctx: ctx, limit: limit, f: func(ctx context.Context, names *[]string) error {
		if does != nil {
			does(ctx)
		}
		*names = append(slices.Clip(*names), name)
		return nil
	}}
}

func TestT6_EveryTaskOfASeriesHasItsOwnTime(t *testing.T) {
	const limit = time.Second
	within := func(context.Context) { time.Sleep(limit * 9 / 10) }
	synctest.Test(t, func(t *testing.T) {
		tasks := []task[[]string]{adding(t.Context(), "a", limit, within), adding(t.Context(), "b", limit, within), adding(t.Context(), "c", limit, within)}
		got, _, err := guardAll(nil, []string{"before"}, tasks)
		if err != nil || !slices.Equal(got, []string{"before", "a", "b", "c"}) {
			t.Errorf("%v, %v", got, err)
		}
	})
	for which := range 3 {
		synctest.Test(t, func(t *testing.T) {
			returned := make(chan struct{})
			tasks := []task[[]string]{adding(t.Context(), "a", limit, within), adding(t.Context(), "b", limit, within), adding(t.Context(), "c", limit, within)}
			tasks[which] = adding(t.Context(), "slow", limit, func(context.Context) { time.Sleep(limit + 1) })
			tasks[which].late = func() { close(returned) }
			begun := time.Now()
			got, at, err := guardAll(nil, nil, tasks)
			if !errors.Is(err, errTimeout) || at != which || got != nil {
				t.Errorf("%v, task %d: %v", got, at, err)
			}
			if took, want := time.Since(begun), time.Duration(which)*limit*9/10+limit; took != want {
				t.Errorf("it took %v, want %v", took, want)
			}
			<-returned // it was told, and the tasks behind it did not run
		})
	}
}

func TestT7_TheTaskThatPanicsOrEndsIsTheOneThatIsNamed(t *testing.T) {
	for which := range 3 {
		for how, does := range map[string]func(context.Context){
			"panics": func(context.Context) { panic("no") },
			"ends":   func(context.Context) { runtime.Goexit() },
		} {
			tasks := make([]task[[]string], 3)
			for i := range tasks {
				tasks[i] = adding(t.Context(), "x", time.Minute, nil)
			}
			tasks[which] = adding(t.Context(), "x", time.Minute, does)
			var panicked *PanicError
			got, at, err := guardAll(nil, nil, tasks)
			if at != which || got != nil || how == "panics" && !errors.As(err, &panicked) || how == "ends" && !errors.Is(err, errEnded) {
				t.Errorf("task %d %s: %v, task %d: %v", which, how, got, at, err)
			}
		}
	}
}

func TestT6_ACancelEndsTheTaskThatRunsUnlessThatOutlastsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		stuck := make(chan struct{})
		defer close(stuck)
		got, at, err := guardAll(nil, nil, []task[[]string]{
			adding(ctx, "a", time.Minute, nil),
			adding(ctx, "b", time.Minute, func(context.Context) { cancel(); <-stuck }),
		})
		if !errors.Is(err, context.Canceled) || at != 1 || got != nil {
			t.Errorf("%v, task %d: %v", got, at, err)
		}
	})
	// Cancelled by the task before: the next does not begin.
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		_, at, err := guardAll(nil, nil, []task[[]string]{
			adding(ctx, "a", time.Minute, func(context.Context) { cancel() }),
			adding(ctx, "b", time.Minute, func(context.Context) { t.Error("it ran") }),
		})
		if !errors.Is(err, context.Canceled) || at > 1 {
			t.Errorf("task %d: %v", at, err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		got, _, err := guardAll(nil, nil, []task[[]string]{
			adding(ctx, "a", time.Minute, nil),
			adding(context.WithoutCancel(ctx), "b", time.Minute, func(ctx context.Context) {
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

// A context that is made when somebody asks is what one of the standard library is.
func TestT6_TheContextOfATaskIsAsIfItHadAlwaysBeenThere(t *testing.T) {
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
	synctest.Test(t, func(t *testing.T) { // nobody asked before it was over
		var kept context.Context
		_, err := guard(context.WithValue(t.Context(), key{}, "value"), nil, time.Second, nil, func(ctx context.Context) (int, error) { kept = ctx; return 0, nil })
		if <-kept.Done(); err != nil || !errors.Is(kept.Err(), context.Canceled) || kept.Value(key{}) != "value" {
			t.Errorf("%v, %v", err, kept.Err())
		}
	})
	synctest.Test(t, func(t *testing.T) { // who asks in time learns of the end of the time, and so does who asks later
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
	synctest.Test(t, func(t *testing.T) { // the parent's end
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("why")
		var kept context.Context
		_, err := guard(ctx, nil, time.Second, nil, func(ctx context.Context) (int, error) { kept = ctx; cancel(why); <-ctx.Done(); return 0, ctx.Err() })
		if !errors.Is(err, why) && !errors.Is(err, context.Canceled) || !errors.Is(context.Cause(kept), why) {
			t.Errorf("%v, %v", err, context.Cause(kept))
		}
	})
}

func TestT6_ATimerThatComesLateDoesNotEndTheNextTask(t *testing.T) {
	s := &series[int]{tasks: []task[int]{{ctx: t.Context(), limit: time.Hour}, {ctx: t.Context(), limit: time.Hour}}, done: make(chan struct{}, 1)}
	s.watch(0).settle(finished)
	next := s.watch(1)
	defer s.timer.Stop()
	s.expire() // of the first, on its way when that was finished
	if next.state.Load() != running || len(s.done) != 0 {
		t.Error("it ended the next")
	}
}
