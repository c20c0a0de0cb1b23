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

// errShutdown is the cause of canceled responses after the drain time.
var errShutdown = errors.New("gateway: shutting down")

// defaultDrain is the time that responses in progress have to end after shutdown begins.
const defaultDrain = 30 * time.Second

// Serve serves requests on l until ctx ends, and closes l. It then refuses new requests and
// waits for responses in progress, at most for drain; zero means 30 s. Responses that take
// longer end with an error in their dialect, and Serve returns a [*DrainError]. Without keys,
// Serve refuses a listener that other machines can reach, with an [*OpenRelayError].
func (g *Gateway) Serve(ctx context.Context, l net.Listener, drain time.Duration) error {
	if at := l.Addr().String(); l.Addr().Network() == "tcp" && g.keys.Open() && !loopback(at) {
		return errors.Join(&OpenRelayError{Listen: at}, l.Close())
	}
	base, breakOff := context.WithCancelCause(context.WithoutCancel(ctx))
	defer breakOff(nil)
	defer g.httpClient.CloseIdleConnections()
	server := &http.Server{
		Handler: g.browserGuard(), BaseContext: func(net.Listener) context.Context { return base },
		ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: g.headerBytes,
	}
	g.startMCP()
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	wait := orElse(drain, defaultDrain)
	if n := g.metrics.running.Load(); n > 0 && g.opts.Log != nil {
		g.opts.Log.InfoContext(ctx, "shutting down: waiting for running requests", "running", n, "drain", wait)
	}
	g.endMCPStreams()
	over := time.AfterFunc(wait, func() { breakOff(errShutdown) })
	defer over.Stop()
	// Canceled responses still write their error, which takes a moment.
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), wait+errorWriteTime)
	defer cancel()
	if err := server.Shutdown(last); err != nil { // some clients do not read the error
		g.metrics.cutOff.Add(g.metrics.running.Load())
		_ = server.Close() // which cuts them off
	}
	if n := g.metrics.cutOff.Load(); n > 0 {
		return &DrainError{Responses: n, Drain: wait}
	}
	return nil
}

// DrainError reports that a gateway stopped before all responses ended.
type DrainError struct {
	// Responses is the number of responses that were cut off, Drain how long they had.
	Responses int64
	Drain     time.Duration
}

func (e *DrainError) Error() string {
	what := "1 response was cut off"
	if e.Responses != 1 {
		what = fmt.Sprintf("%d responses were cut off", e.Responses)
	}
	if e.Drain < time.Millisecond {
		return "gateway: " + what + ": no time to wait (drain is 0)"
	}
	return fmt.Sprintf("gateway: %s after %v", what, e.Drain)
}

// errorWriteTime is the time that canceled responses have to write their error.
const errorWriteTime = 5 * time.Second

// isShutdown reports whether a context ended because the gateway is shutting down.
func isShutdown(ctx context.Context) bool { return errors.Is(context.Cause(ctx), errShutdown) }

// checkCapacity returns an error if more than most requests are in progress; zero means no limit.
func (g *Gateway) checkCapacity(most int) error {
	if n := g.metrics.running.Load(); most > 0 && n > int64(most) {
		return &dragoman.APIError{Class: dragoman.ErrorOverloaded, Message: "the gateway has reached its limit of concurrent requests; try again soon", RetryAfter: time.Second}
	}
	return nil
}
