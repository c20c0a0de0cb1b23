package mcp

import (
	"context"
	"encoding/json"
	"time"

	"github.com/dragoman-go/dragoman/mcp/internal/rpc"
)

// Exchange is a message that was exchanged with a server: a request with its response, or a
// notification.
type Exchange struct {
	Server string
	// Received reports that the server sent the message, and not this program.
	Received bool
	Method   string
	Params   json.RawMessage
	// Result and Err are the response to a request that this program sent, and Took is the time
	// until then. An empty method is the start of a connection.
	Result json.RawMessage
	Err    error
	Took   time.Duration
}

// traceDialer reports the messages of the connections of another Dialer.
type traceDialer struct {
	rpc.Dialer
	server string
	trace  func(Exchange)
}

func (d *traceDialer) Dial(ctx context.Context, h rpc.Handler) (rpc.Conn, error) {
	start := time.Now()
	conn, err := d.Dialer.Dial(ctx, &traceHandler{Handler: h, d: d})
	d.trace(Exchange{Server: d.server, Err: err, Took: time.Since(start)})
	if err != nil {
		return nil, err
	}
	return &traceConn{Conn: conn, d: d}, nil
}

type traceConn struct {
	rpc.Conn
	d *traceDialer
}

func (c *traceConn) Call(ctx context.Context, r *rpc.Request) (json.RawMessage, error) {
	start := time.Now()
	result, err := c.Conn.Call(ctx, r)
	c.d.trace(Exchange{Server: c.d.server, Method: r.Method, Params: r.Params, Result: result, Err: err, Took: time.Since(start)})
	return result, err
}

func (c *traceConn) Notify(ctx context.Context, method string, params json.RawMessage) error {
	err := c.Conn.Notify(ctx, method, params)
	c.d.trace(Exchange{Server: c.d.server, Method: method, Params: params, Err: err})
	return err
}

type traceHandler struct {
	rpc.Handler
	d *traceDialer
}

func (h *traceHandler) Notification(in rpc.Incoming) {
	h.d.trace(Exchange{Server: h.d.server, Received: true, Method: in.Method, Params: in.Params})
	h.Handler.Notification(in)
}

func (h *traceHandler) Request(in rpc.Incoming) {
	h.d.trace(Exchange{Server: h.d.server, Received: true, Method: in.Method, Params: in.Params})
	h.Handler.Request(in)
}
