package gateway

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
)

// errShutdown is why answers are broken off whose time is over.
var errShutdown = errors.New("gateway: it is shutting down")

// defaultDrain is how long answers may take that are on their way when a gateway ends.
const defaultDrain = 30 * time.Second

// Serve serves on a listener until ctx ends. From then on it takes no more requests,
// and lets answers end that are on their way, for as long as drain; zero means
// 30 s. Those that take longer end with an error in their dialect, and Serve
// with a [*CutOffError]. It closes the listener. Without keys it refuses one that other machines reach, with an
// [*OpenRelayError].
func (g *Gateway) Serve(ctx context.Context, l net.Listener, drain time.Duration) error {
	if at := l.Addr().String(); l.Addr().Network() == "tcp" && g.keys.Open() && !loopback(at) {
		return errors.Join(&OpenRelayError{Listen: at}, l.Close())
	}
	base, breakOff := context.WithCancelCause(context.WithoutCancel(ctx))
	defer breakOff(nil)
	defer g.sender.CloseIdleConnections()
	server := &http.Server{
		Handler: g.guarded(), BaseContext: func(net.Listener) context.Context { return base },
		ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: g.headerBytes,
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	wait := orElse(drain, defaultDrain)
	if n := g.metrics.running.Load(); n > 0 && g.opts.Log != nil {
		g.opts.Log.InfoContext(ctx, "shutting down: answers that are on their way may end", "running", n, "drain", wait)
	}
	over := time.AfterFunc(wait, func() { breakOff(errShutdown) })
	defer over.Stop()
	// Who is broken off is told so, which takes a moment.
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), wait+breakTime)
	defer cancel()
	if err := server.Shutdown(last); err != nil { // some do not even take their end
		g.metrics.cut.Add(g.metrics.running.Load())
		_ = server.Close() // which cuts them off
	}
	if n := g.metrics.cut.Load(); n > 0 {
		return &CutOffError{Answers: n, Drain: wait}
	}
	return nil
}

// CutOffError says that a gateway ended before all of its answers did.
type CutOffError struct {
	// Answers is how many were cut off, Drain how long they had.
	Answers int64
	Drain   time.Duration
}

func (e *CutOffError) Error() string {
	what := "1 answer was cut off"
	if e.Answers != 1 {
		what = fmt.Sprintf("%d answers were cut off", e.Answers)
	}
	if e.Drain < time.Millisecond {
		return "gateway: " + what + ": none was waited for"
	}
	return fmt.Sprintf("gateway: %s after %v", what, e.Drain)
}

// breakTime is how long those may take that are told that it is over.
const breakTime = 5 * time.Second

// isShutdown reports whether a context ended because the gateway does.
func isShutdown(ctx context.Context) bool { return errors.Is(context.Cause(ctx), errShutdown) }

// admit takes one more request, if there is room.
func (g *Gateway) admit(most int) error {
	if n := g.metrics.running.Load(); most > 0 && n > int64(most) {
		return &dragoman.APIError{Class: dragoman.ErrorOverloaded, Message: "the gateway answers as many requests as it may; try again soon", RetryAfter: time.Second}
	}
	return nil
}
