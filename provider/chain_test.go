package provider_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/modelcall"
	"github.com/dragoman-go/dragoman/provider"
)

// scriptedModel returns the given responses in order.
type scriptedModel struct {
	responses []responseOrError
	calls     int
}

type responseOrError struct {
	resp *dragoman.Response
	err  error
}

func respondInOrder(list ...any) *scriptedModel {
	s := &scriptedModel{}
	for _, a := range list {
		switch a := a.(type) {
		case *dragoman.Response:
			s.responses = append(s.responses, responseOrError{resp: a})
		case error:
			s.responses = append(s.responses, responseOrError{err: a})
		}
	}
	return s
}

func (s *scriptedModel) next() responseOrError {
	a := s.responses[min(s.calls, len(s.responses)-1)]
	s.calls++
	return a
}

func (s *scriptedModel) Generate(context.Context, *dragoman.Request) (*dragoman.Response, error) {
	a := s.next()
	return a.resp, a.err
}

func (s *scriptedModel) Stream(context.Context, *dragoman.Request) iter.Seq2[dragoman.Event, error] {
	return func(yield func(dragoman.Event, error) bool) {
		a := s.next()
		if a.resp == nil { // the error comes before any content
			if yield(&dragoman.ResponseStart{}, nil) {
				yield(nil, a.err)
			}
			return
		}
		for _, ev := range eventsOf(a.resp) {
			if !yield(ev, nil) {
				return
			}
		}
	}
}

// chain links models by the names a, b, c.
func chain(clock provider.Clock, models ...dragoman.Model) *provider.Chain {
	c := &provider.Chain{Health: provider.HealthOn(clock, &provider.Health{})}
	for i, m := range models {
		c.Links = append(c.Links, provider.Link{Name: string(rune('a' + i)), Model: m})
	}
	return c
}

func apiErr(class dragoman.ErrorClass) error {
	return &dragoman.APIError{Class: class, Message: "it is " + string(class)}
}

func TestX14_ChainFailsOver(t *testing.T) {
	forGenerateAndStream(t, func(t *testing.T, ask func(dragoman.Model, *dragoman.Request) (*dragoman.Response, error)) {
		for name, err := range map[string]error{
			"server": apiErr(dragoman.ErrorServer), "rate limit": apiErr(dragoman.ErrorRateLimit), "quota": apiErr(dragoman.ErrorQuota),
			"not found": apiErr(dragoman.ErrorNotFound), "context": apiErr(dragoman.ErrorContextLength),
			"transport": &provider.TransportError{Host: "h", Err: errors.New("gone")}, "timeout": &provider.TimeoutError{Phase: "idle"},
			"unsupported": dragoman.ErrUnsupported, "incomplete": dragoman.ErrIncompleteStream, "decoding": &dragoman.DecodeError{Offset: -1},
		} {
			a, b := respondInOrder(err), respondInOrder(textResponse("from b"))
			resp, err := ask(chain(newClock(), a, b), newRequest())
			if err != nil || resp.Text() != "from b" || a.calls != 1 {
				t.Errorf("%s: %v, %v, a was called %d times", name, resp, err, a.calls)
			}
		}
	})
}

func TestX14_RequestErrorsEndAChain(t *testing.T) {
	forGenerateAndStream(t, func(t *testing.T, ask func(dragoman.Model, *dragoman.Request) (*dragoman.Response, error)) {
		for _, own := range []error{
			apiErr(dragoman.ErrorAuth), apiErr(dragoman.ErrorBadRequest), apiErr(dragoman.ErrorPermission), apiErr(dragoman.ErrorPolicy),
			dragoman.ErrInvalid, dragoman.ErrUnsettledCalls,
		} {
			b := respondInOrder(textResponse("from b"))
			c := chain(newClock(), respondInOrder(own), b)
			if _, err := ask(c, newRequest()); !errors.Is(err, own) || b.calls != 0 {
				t.Errorf("%v: %v, b was called %d times", own, err, b.calls)
			}
			c.AlwaysContinue = true
			if resp, err := ask(c, newRequest()); err != nil || resp.Text() != "from b" {
				t.Errorf("%v, anyway: %v, %v", own, resp, err)
			}
		}
	})
}

func TestX14_EmptyResponseIsAFailure(t *testing.T) {
	forGenerateAndStream(t, func(t *testing.T, ask func(dragoman.Model, *dragoman.Request) (*dragoman.Response, error)) {
		empty := textResponse("")
		resp, err := ask(chain(newClock(), respondInOrder(empty), respondInOrder(textResponse("from b"))), newRequest())
		if err != nil || resp.Text() != "from b" {
			t.Errorf("%v, %v", resp, err)
		}
		if _, err := ask(chain(newClock(), respondInOrder(empty)), newRequest()); !errors.Is(err, provider.ErrEmpty) {
			t.Errorf("alone: %v", err)
		}
		filtered := textResponse("")
		filtered.Stop.Reason = dragoman.StopContentFilter
		if resp, err := ask(chain(newClock(), respondInOrder(filtered), respondInOrder(textResponse("from b"))), newRequest()); err != nil || resp.Stop.Reason != dragoman.StopContentFilter {
			t.Errorf("a filter is an answer: %v, %v", resp, err)
		}
		called := callResponse(`{"city":"Oslo"}`)
		if resp, err := ask(chain(newClock(), respondInOrder(called), respondInOrder(textResponse("from b"))), newRequest()); err != nil || len(resp.ToolCalls()) != 1 {
			t.Errorf("a call is an answer: %v, %v", resp, err)
		}
	})
}

func TestX14_ChainErrorHasEveryAttempt(t *testing.T) {
	forGenerateAndStream(t, func(t *testing.T, ask func(dragoman.Model, *dragoman.Request) (*dragoman.Response, error)) {
		clock := newClock()
		c := chain(clock, respondInOrder(apiErr(dragoman.ErrorServer)), respondInOrder(apiErr(dragoman.ErrorNotFound)), respondInOrder(&provider.TimeoutError{Phase: "idle"}))
		for range 3 { // until a and c are skipped
			_, err := ask(c, newRequest())
			var all *provider.ChainError
			var api *dragoman.APIError
			var timeout *provider.TimeoutError
			if !errors.As(err, &all) || len(all.Attempts) != 3 || !errors.As(err, &api) || !errors.As(err, &timeout) || !provider.Retryable(err) {
				t.Fatalf("error %v", err)
			}
			for i, name := range []string{"a", "b", "c"} {
				if all.Attempts[i].Link != name || all.Attempts[i].Err == nil {
					t.Errorf("attempt %d is %+v", i, all.Attempts[i])
				}
			}
		}
		_, err := ask(c, newRequest())
		var all *provider.ChainError
		if !errors.As(err, &all) || len(all.Attempts) != 3 {
			t.Fatalf("error %v", err)
		}
		if a := all.Attempts[0]; a.Link != "a" || a.Err != nil || !a.SkippedUntil.Equal(clock.Now().Add(30*time.Second)) {
			t.Errorf("a: %+v", a)
		}
		if b := all.Attempts[1]; b.Link != "b" || b.Err == nil {
			t.Errorf("b: %+v", b)
		}
		if !strings.Contains(err.Error(), "a: skipped until") || !strings.Contains(err.Error(), "b: it is not_found") {
			t.Errorf("it says %v", err)
		}
	})
	if _, err := (&provider.Chain{}).Generate(t.Context(), newRequest()); err == nil {
		t.Error("a chain of nothing answers")
	}
}

func TestX14_CooldownsDouble(t *testing.T) {
	clock := newClock()
	a, b := respondInOrder(apiErr(dragoman.ErrorServer)), respondInOrder(textResponse("from b"))
	c := chain(clock, a, b)
	ask := func() {
		t.Helper()
		if resp, err := c.Generate(t.Context(), newRequest()); err != nil || resp.Text() != "from b" {
			t.Fatalf("%v, %v", resp, err)
		}
	}
	for range 5 {
		ask()
	}
	if a.calls != 3 {
		t.Errorf("a was called %d times before it was skipped", a.calls)
	}
	var benches []time.Duration
	for range 8 {
		until, skipped := c.Health.SkippedUntil("a")
		if !skipped {
			t.Fatal("it is not skipped")
		}
		d := until.Sub(clock.Now())
		benches = append(benches, d)
		clock.advance(d - time.Second)
		before := a.calls
		if ask(); a.calls != before {
			t.Error("it was asked while skipped")
		}
		clock.advance(time.Second)
		if ask(); a.calls != before+1 {
			t.Error("it was not asked afterwards")
		}
	}
	want := []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 10 * time.Minute, 10 * time.Minute, 10 * time.Minute}
	if !slices.Equal(benches, want) {
		t.Errorf("benches %v, want %v", benches, want)
	}
	// A success resets all failures.
	clock.advance(time.Hour)
	a.responses = []responseOrError{{resp: textResponse("from b")}}
	ask()
	a.responses = []responseOrError{{err: apiErr(dragoman.ErrorServer)}}
	before := a.calls
	for range 5 {
		ask()
	}
	if a.calls != before+3 {
		t.Errorf("after a success it was called %d times", a.calls-before)
	}
}

func TestX14_UnknownModelHasNoCooldown(t *testing.T) {
	a := respondInOrder(apiErr(dragoman.ErrorNotFound))
	c := chain(newClock(), a, respondInOrder(textResponse("from b")))
	for range 10 {
		if _, err := c.Generate(t.Context(), newRequest()); err != nil {
			t.Fatal(err)
		}
	}
	if a.calls != 10 {
		t.Errorf("a was called %d times", a.calls)
	}
}

func TestX14_RetryAfterSetsTheCooldown(t *testing.T) {
	clock := newClock()
	a := respondInOrder(&dragoman.APIError{Class: dragoman.ErrorRateLimit, RetryAfter: 45 * time.Second})
	c := chain(clock, a, respondInOrder(textResponse("from b")))
	for range 3 {
		if _, err := c.Generate(t.Context(), newRequest()); err != nil {
			t.Fatal(err)
		}
	}
	if until, skipped := c.Health.SkippedUntil("a"); a.calls != 1 || !skipped || until.Sub(clock.Now()) != 45*time.Second {
		t.Errorf("%d upstream requests, skipped until %v", a.calls, until)
	}
}

func TestX14_RetryAfterIsCapped(t *testing.T) {
	clock := newClock()
	h := provider.HealthOn(clock, &provider.Health{MaxCooldown: time.Minute})
	h.Failed("a", &dragoman.APIError{Class: dragoman.ErrorRateLimit, RetryAfter: 24 * time.Hour})
	if until, skipped := h.SkippedUntil("a"); !skipped || until.Sub(clock.Now()) != time.Minute {
		t.Errorf("%v until %v", skipped, until)
	}
}

func TestX14_AllCoolingDownCallsTheFirstToReturn(t *testing.T) {
	clock := newClock()
	a, b := respondInOrder(apiErr(dragoman.ErrorServer)), respondInOrder(apiErr(dragoman.ErrorServer))
	c := chain(clock, a, b)
	for range 3 {
		_, _ = c.Generate(t.Context(), newRequest())
	}
	clock.advance(30 * time.Second)
	_, _ = c.Generate(t.Context(), newRequest()) // both fail again
	b.responses = []responseOrError{{resp: textResponse("from b")}}
	c.Health.Failed("a", nil) // a is skipped for longer
	resp, err := c.Generate(t.Context(), newRequest())
	if err != nil || resp.Text() != "from b" {
		t.Errorf("%v, %v", resp, err)
	}
}

func TestX14_NoFailoverAfterContent(t *testing.T) {
	each(t, func(t *testing.T, codec dialect.Codec) {
		s := serve(t, codec, func(s *server, w http.ResponseWriter, _ *http.Request, _ received) {
			s.part(w, s.codec.NewStreamEncoder(dialect.EncodeOptions{}), eventsOf(textResponse("half of it"))[:4], false)
		})
		b := respondInOrder(textResponse("from b"))
		resp, err := dragoman.Collect(chain(newClock(), s.client(&provider.Client{}), b).Stream(t.Context(), newRequest()))
		if !errors.Is(err, dragoman.ErrIncompleteStream) || b.calls != 0 || strings.Contains(resp.Text(), "from b") {
			t.Errorf("%q, %v, b was called %d times", resp.Text(), err, b.calls)
		}
	})
}

func TestX14_StreamFailsOverBeforeContent(t *testing.T) {
	a, b := respondInOrder(apiErr(dragoman.ErrorOverloaded)), respondInOrder(textResponse("from b"))
	starts := 0
	for ev, err := range chain(newClock(), a, b).Stream(t.Context(), newRequest()) {
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := ev.(*dragoman.ResponseStart); ok {
			starts++
		}
	}
	if starts != 1 {
		t.Errorf("%d starts", starts)
	}
}

func TestX14_HeldEventsAreBounded(t *testing.T) {
	endless := streamFunc(func(yield func(dragoman.Event, error) bool) {
		for range 10_000 {
			if !yield(&dragoman.PartDelta{Kind: codes.KindText}, nil) {
				return
			}
		}
		yield(nil, apiErr(dragoman.ErrorServer))
	})
	b := respondInOrder(textResponse("from b"))
	seen := 0
	for range chain(newClock(), endless, b).Stream(t.Context(), newRequest()) {
		seen++
	}
	if seen != 10_001 || b.calls != 0 {
		t.Errorf("%d pairs were seen, and b %d upstream requests", seen, b.calls)
	}
}

type streamFunc func(func(dragoman.Event, error) bool)

func (f streamFunc) Generate(context.Context, *dragoman.Request) (*dragoman.Response, error) {
	return dragoman.Collect(f)
}

func (f streamFunc) Stream(context.Context, *dragoman.Request) iter.Seq2[dragoman.Event, error] {
	return iter.Seq2[dragoman.Event, error](f)
}

func TestX14_CancellationIsNotAModelFailure(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	a, b := respondInOrder(context.Canceled), respondInOrder(textResponse("from b"))
	c := chain(newClock(), a, b)
	for range 5 {
		if _, err := c.Generate(ctx, newRequest()); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	if _, skipped := c.Health.SkippedUntil("a"); skipped || b.calls != 0 {
		t.Errorf("skipped %v, b was called %d times", skipped, b.calls)
	}
}

func TestBreakingOutOfAChainStreamEndsIt(t *testing.T) {
	b := respondInOrder(textResponse("from b"))
	for range chain(newClock(), respondInOrder(textResponse("from a")), b).Stream(t.Context(), newRequest()) {
		break
	}
	if b.calls != 0 {
		t.Error("b was asked")
	}
}

func TestX14_WalkCallsTheGivenFunction(t *testing.T) {
	server, bad := apiErr(dragoman.ErrorServer), apiErr(dragoman.ErrorBadRequest)
	begun := fmt.Errorf("%w: %w", provider.ErrStreamStarted, server)
	badBegun := fmt.Errorf("%w: %w", provider.ErrStreamStarted, bad)
	for _, tc := range []struct {
		name    string
		results []error // of a, b and c
		asked   string
		err     func(error) bool
		skipped string
	}{
		{"the first answers", []error{nil}, "a", func(err error) bool { return err == nil }, ""},
		{"the second answers", []error{server, nil}, "ab", func(err error) bool { return err == nil }, "a"},
		{"the request is wrong", []error{server, bad}, "ab", func(err error) bool { return errors.Is(err, bad) }, "a"},
		{"no model responds", []error{server, dragoman.ErrUnsupported, server}, "abc", func(err error) bool {
			var all *provider.ChainError
			return errors.As(err, &all) && len(all.Attempts) == 3
		}, "ac"},
		{"the request is wrong at once", []error{bad}, "a", func(err error) bool { return err == bad }, ""},                                          //nolint:errorlint // itself
		{"an answer that has begun breaks", []error{server, begun}, "ab", func(err error) bool { return err == begun }, "ab"},                        //nolint:errorlint // itself
		{"it is refused within", []error{badBegun}, "a", func(err error) bool { return err == badBegun }, ""},                                        //nolint:errorlint // itself
		{"the caller left", []error{server, provider.ErrStreamStarted}, "ab", func(err error) bool { return err == provider.ErrStreamStarted }, "a"}, //nolint:errorlint // itself
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := chain(newClock(), nil, nil, nil)
			c.Health.After = 1
			called := ""
			err := c.Walk(t.Context(), func(_ context.Context, l provider.Link) error {
				called += l.Name
				return tc.results[len(called)-1]
			})
			if !tc.err(err) || called != tc.asked {
				t.Errorf("%v, asked %s", err, called)
			}
			skipped := ""
			for _, l := range c.Links {
				if _, is := c.Health.SkippedUntil(l.Name); is {
					skipped += l.Name
				}
			}
			if skipped != tc.skipped {
				t.Errorf("skipped %q, want %q", skipped, tc.skipped)
			}
		})
	}
}

func TestX14_SuccessfulWalkResetsHealth(t *testing.T) {
	c := chain(newClock(), nil)
	c.Health.After = 2
	for _, result := range []error{apiErr(dragoman.ErrorServer), nil, apiErr(dragoman.ErrorServer)} {
		if err := c.Walk(t.Context(), func(context.Context, provider.Link) error { return result }); !errors.Is(err, result) {
			t.Errorf("%v, want %v", err, result)
		}
	}
	if until, skipped := c.Health.SkippedUntil("a"); skipped {
		t.Errorf("skipped until %v", until)
	}
}

func TestX14_BrokenResponseIsTheLastLoggedAttempt(t *testing.T) {
	log, lines := debugLog()
	c := chain(newClock(), nil, nil)
	c.Log = log
	_ = c.Walk(t.Context(), func(context.Context, provider.Link) error {
		return fmt.Errorf("%w: %w", provider.ErrStreamStarted, apiErr(dragoman.ErrorServer))
	})
	if got := lines.lines(t, "model failed"); len(got) != 1 || got[0]["next"] != false {
		t.Errorf("logged %v", got)
	}
}

func TestX14_PassFailsOver(t *testing.T) {
	down := upstreams(t, respondWith(http.StatusServiceUnavailable, "{}")).client(&provider.Client{Retry: provider.Retry{Max: -1}})
	up := upstreams(t, respondWith(http.StatusOK, "data: 1\n\n")).client(&provider.Client{})
	c := chain(newClock(), down, up)
	var got string
	err := c.Walk(t.Context(), func(ctx context.Context, l provider.Link) error {
		p, err := l.Model.(*provider.Client).Pass(ctx, modelcall.PassRequest{Body: []byte("{}"), Stream: true})
		if err != nil {
			return err
		}
		defer func() { _ = p.Body.Close() }()
		if p.Err != nil {
			return p.Err
		}
		b, err := io.ReadAll(p.Body)
		got = string(b)
		return err
	})
	if err != nil || got != "data: 1\n\n" {
		t.Errorf("%q, %v", got, err)
	}
}
