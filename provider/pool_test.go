package provider_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/internal/modelcall"
	"github.com/dragoman-go/dragoman/provider"
)

func TestX13_ConcurrentRequestsReuseTheirConnections(t *testing.T) {
	const workers, rounds = 16, 5
	var mu sync.Mutex
	conns := map[string]bool{}
	var round sync.WaitGroup // all requests of a round are open at once
	s := serve(t, openaichat.Codec{}, func(s *server, w http.ResponseWriter, r *http.Request, got received) {
		mu.Lock()
		conns[r.RemoteAddr] = true
		mu.Unlock()
		round.Done()
		round.Wait()
		respond(textResponse("hi"))(s, w, r, got)
	})
	c := &provider.Client{Codec: openaichat.Codec{}, Model: "m", BaseURL: s.URL}
	for range rounds {
		round.Add(workers)
		var done sync.WaitGroup
		for range workers {
			done.Go(func() {
				if _, err := c.Generate(t.Context(), newRequest()); err != nil {
					t.Error(err)
				}
			})
		}
		done.Wait()
	}
	// A connection may be returned to the pool just after the next request looked for one.
	if len(conns) > 2*workers {
		t.Errorf("%d connections for %d requests, %d at once", len(conns), workers*rounds, workers)
	}
}

func TestX13_ReplacedDefaultTransportIsUsed(t *testing.T) {
	before := http.DefaultTransport
	t.Cleanup(func() { http.DefaultTransport = before })
	used := errors.New("the transport of the program")
	http.DefaultTransport = roundTrip(func(*http.Request) (*http.Response, error) { return nil, used })
	_, err := (&provider.Client{Model: "m", Retry: provider.Retry{Max: -1}}).Generate(t.Context(), newRequest())
	if !errors.Is(err, used) {
		t.Error(err)
	}
}

// ignoringBody is a body that ignores the context of its request: a read ends only when the body
// is closed.
type ignoringBody struct {
	head    io.Reader
	stalled func()
	once    sync.Once
	closed  chan struct{}
	ends    error // of a read after Close
	left    bool  // a read was not ended
}

func (b *ignoringBody) Read(p []byte) (int, error) {
	if n, _ := b.head.Read(p); n > 0 {
		return n, nil
	}
	b.stalled()
	select {
	case <-b.closed:
		return 0, b.ends
	case <-time.After(2 * time.Second):
		b.left = true
		return 0, errors.New("the body was not closed")
	}
}

func (b *ignoringBody) Close() error {
	b.once.Do(func() { close(b.closed) })
	return nil
}

func TestX13_CancellationClosesTheBody(t *testing.T) {
	const first = `data: {"id":"1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":"x"}}]}` + "\n\n"
	generate := func(ctx context.Context, c *provider.Client) error {
		_, err := c.Generate(ctx, newRequest())
		return err
	}
	stream := func(ctx context.Context, c *provider.Client) error {
		_, err := dragoman.Collect(c.Stream(ctx, newRequest()))
		return err
	}
	pass := func(ctx context.Context, c *provider.Client) error {
		p, err := c.Pass(ctx, modelcall.PassRequest{Body: []byte(`{}`), Stream: true})
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, p.Body)
		return errors.Join(err, p.Body.Close())
	}
	for _, tc := range []struct {
		name    string
		status  int
		ask     func(context.Context, *provider.Client) error
		timeout string
	}{
		{"generate", http.StatusOK, generate, ""},
		{"stream", http.StatusOK, stream, ""},
		{"pass", http.StatusOK, pass, ""},
		{"error response", http.StatusBadRequest, generate, ""},
		{"idle", http.StatusOK, stream, "idle"},
		{"total", http.StatusOK, stream, "total"},
	} {
		test := func(t *testing.T, ends error) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			clock := newClock()
			body := &ignoringBody{head: strings.NewReader(first), closed: make(chan struct{}), stalled: cancel, ends: ends}
			timeouts := unboundedPhases
			switch tc.timeout {
			case "idle":
				timeouts.Idle = time.Minute
			case "total":
				timeouts.Total = time.Minute
			}
			if tc.timeout != "" {
				body.stalled = func() { clock.advance(2 * time.Minute) }
			}
			c := provider.OnClock(clock, &provider.Client{Model: "m", BaseURL: "http://x.test", Timeouts: timeouts, Retry: provider.Retry{Max: -1}})
			c.HTTP = &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: tc.status, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: body, Request: r}, nil
			})}
			err := tc.ask(ctx, c)
			var slow *provider.TimeoutError
			switch {
			case body.left:
				t.Error("the body was not closed")
			case tc.timeout == "" && !errors.Is(err, context.Canceled):
				t.Errorf("error %v", err)
			case tc.timeout != "" && (!errors.As(err, &slow) || slow.Phase != tc.timeout):
				t.Errorf("error %v", err)
			}
		}
		t.Run(tc.name, func(t *testing.T) { test(t, errors.New("read of a closed body")) })
		t.Run(tc.name+", and the body then ends with EOF", func(t *testing.T) { test(t, io.EOF) })
	}
}
