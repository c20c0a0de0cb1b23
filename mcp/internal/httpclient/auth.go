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

// RequestAuthorizer is an Authorizer that sets the headers of each request itself, such as for
// tokens that need a proof for each request. Its Token is not used.
type RequestAuthorizer interface {
	Authorizer
	// Authorize adds the access token to a request.
	Authorize(req *http.Request) error
}

// authorize adds the access token to a request.
func (d *Dialer) authorize(req *http.Request) error {
	if a, ok := d.Authorizer.(RequestAuthorizer); ok {
		return a.Authorize(req)
	}
	if d.Authorizer == nil {
		return nil
	}
	token, err := d.Authorizer.Token(req.Context())
	if err != nil || token == "" {
		return err
	}
	if !isHeaderValue(token) {
		return errors.New("the access token has a control character")
	}
	req.Header.Set("Authorization", "Bearer "+token)
	return nil
}

// maxChallenges limits the challenges that a RequestAuthorizer answers for one request: a login,
// a nonce, and more scopes.
const maxChallenges = 4

// challenges counts the challenges of a request, by status.
type challenges map[int]int

// next reports whether one more challenge may be answered. A plain Authorizer gets one for each
// status.
func (c challenges) next(a Authorizer, status int) bool {
	c[status]++
	if _, ok := a.(RequestAuthorizer); ok {
		return c[http.StatusUnauthorized]+c[http.StatusForbidden] <= maxChallenges
	}
	return c[status] == 1
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
