package stdio

import (
	"context"
	"io"
	"log/slog"
	"time"

	"github.com/dragoman-go/dragoman/mcp/internal/rpc"
)

// Pipes connects to a server over streams that Open returns: a server in this process, or one
// behind a connection of the network. The connection closes them.
type Pipes struct {
	// Open returns the output of a server, which is read, and its input.
	Open func(ctx context.Context) (io.ReadCloser, io.WriteCloser, error)
	// MaxMessage, Grace and Log are as in [Dialer].
	MaxMessage int
	Grace      time.Duration
	Log        *slog.Logger
}

// Dial implements [rpc.Dialer]. The connection is a *[Conn].
func (p *Pipes) Dial(ctx context.Context, h rpc.Handler) (rpc.Conn, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	in, out, err := p.Open(ctx)
	if err != nil {
		return nil, err
	}
	return newConn(in, out, h, nil, p.MaxMessage, p.Grace, p.Log), nil
}
