package provider_test

import (
	"net/http"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/internal/modelcall"
	"github.com/dragoman-go/dragoman/provider"
)

// startOnly sends the start of a stream and an error.
func startOnly(s *server, w http.ResponseWriter, _ *http.Request, _ received) {
	s.writeEvents(w, []dragoman.Event{eventsOf(textResponse("x"))[0], &dragoman.StreamError{Err: overloaded}})
}

func TestEmptyStreamHasEventsUnlessRelayed(t *testing.T) {
	for _, relayed := range []bool{false, true} {
		s := serve(t, anthropic.Codec{}, startOnly)
		ctx := t.Context()
		if relayed {
			ctx = modelcall.WithRelay(ctx, &modelcall.Relay{})
		}
		events, failures := 0, 0
		client, _ := noWaitClient(s, noJitter)
		for _, err := range client.Stream(ctx, newRequest()) {
			if err == nil {
				events++
			} else {
				failures++
			}
		}
		if failures != 1 || relayed != (events == 0) {
			t.Errorf("relayed %v: %d events, %d errors", relayed, events, failures)
		}
	}
}

// A chain and its clients share the buffer: the events of an attempt before its content are
// dropped with the attempt, and others are sent once.
func TestChainDropsTheEventsOfFailedAttempts(t *testing.T) {
	retried := serve(t, anthropic.Codec{}, startOnly)
	answered := serve(t, anthropic.Codec{}, startOnly, respond(textResponse("hello")))
	first, _ := noWaitClient(retried, noJitter)
	second, _ := noWaitClient(answered, noJitter)
	chain := &provider.Chain{Links: []provider.Link{{Name: "a", Model: first}, {Name: "b", Model: second}}}
	var starts []*dragoman.ResponseStart
	text := ""
	for ev, err := range chain.Stream(t.Context(), newRequest()) {
		if err != nil {
			t.Fatal(err)
		}
		switch ev := ev.(type) {
		case *dragoman.ResponseStart:
			starts = append(starts, ev)
		case *dragoman.PartDelta:
			text += ev.Text
		}
	}
	if len(starts) != 1 || starts[0].Response.Failover.Model != "b" || text != "hello" {
		t.Errorf("%d starts, %q", len(starts), text)
	}
	if a, b := len(retried.requests()), len(answered.requests()); a != 3 || b != 2 {
		t.Errorf("%d and %d requests", a, b)
	}
}
