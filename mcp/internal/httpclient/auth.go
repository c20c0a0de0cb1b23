package httpclient

import (
	"context"
	"errors"
	"net/http"
	"sync"
)

// Authorizer gets access tokens for a server.
type Authorizer interface {
	// Token returns the access token to send, or "" for none.
	Token(ctx context.Context) (string, error)
	// Challenge handles a response with status 401 or 403: it gets another token, if it can.
	// With retry, the request is sent once more. Calls do not overlap. The beginning of the
	// body can be read; the body is closed by the caller.
	Challenge(ctx context.Context, resp *http.Response) (retry bool, err error)
}

// flights make concurrent requests share one challenge. The zero value is ready to use.
type flights struct {
	mu      sync.Mutex
	rounds  int // successful challenges
	current *flight
}

type flight struct {
	done  chan struct{}
	retry bool
	err   error
}

// round counts the successful challenges. A request reads it before its token.
func (f *flights) round() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.rounds
}

// challenge handles the challenge of a request that was sent in a round.
func (f *flights) challenge(ctx context.Context, round int, run func() (bool, error)) (retry bool, err error) {
	for {
		f.mu.Lock()
		if f.rounds != round {
			f.mu.Unlock()
			return true, nil // another request already got a token
		}
		running := f.current
		first := running == nil
		if first {
			running = &flight{done: make(chan struct{})}
			f.current = running
			go func() { // ctx ends even if the authorizer does not
				running.retry, running.err = run()
				f.land(running)
			}()
		}
		f.mu.Unlock()
		select {
		case <-running.done:
			// A request that was canceled ended its challenge. That is no answer for others.
			if first || !errors.Is(running.err, context.Canceled) && !errors.Is(running.err, context.DeadlineExceeded) {
				return running.retry, running.err
			}
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}

func (f *flights) land(done *flight) {
	f.mu.Lock()
	f.current = nil
	if done.retry && done.err == nil {
		f.rounds++
	}
	f.mu.Unlock()
	close(done.done)
}
