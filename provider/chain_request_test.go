package provider_test

import (
	"context"
	"errors"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/modelcall"
	"github.com/dragoman-go/dragoman/provider"
)

// If the request for a link cannot be built, no other link is called, and the link is not
// held responsible.
func TestChainEndsIfARequestCannotBeBuilt(t *testing.T) {
	noRoom := errors.New("no room")
	for _, anyway := range []bool{false, true} {
		first, second := respondInOrder(errors.New("not called")), respondInOrder(errors.New("not called"))
		c := chain(nil, first, second)
		c.AlwaysContinue, c.Health.After = anyway, 1
		req := &dragoman.Request{Messages: []dragoman.Message{dragoman.UserText("q")}}
		ctx := modelcall.WithLinkRequest(t.Context(), req, func(context.Context, dragoman.Model) (*dragoman.Request, error) { return nil, noRoom })
		if _, err := c.Generate(ctx, req); err != noRoom { //nolint:errorlint // not wrapped
			t.Errorf("Generate: %v", err)
		}
		_, err := dragoman.Collect(c.Stream(ctx, req))
		if !errors.Is(err, noRoom) {
			t.Errorf("Stream: %v", err)
		}
		if _, skipped := c.Health.SkippedUntil("a"); skipped || first.calls+second.calls > 0 {
			t.Errorf("anyway %t: skipped %t, %d calls", anyway, skipped, first.calls+second.calls)
		}
		var chained *provider.ChainError
		if _, err := c.Generate(ctx, &dragoman.Request{}); !errors.As(err, &chained) || first.calls != 1 || second.calls != 1 {
			t.Errorf("another request with the same context: %v", err)
		}
	}
}
