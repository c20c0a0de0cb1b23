package httpclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/dragoman-go/dragoman/mcp/internal/rpc"
)

// oldStream is a connection of HTTP+SSE: all messages of the server come on one stream, which
// names the URL for those of the client.
type oldStream struct{ messages *url.URL }

// openOld opens the stream and waits for the URL.
func (c *Conn) openOld(ctx context.Context) (*oldStream, error) {
	x := exchange{method: http.MethodGet, to: c.endpoint.Load(), header: http.Header{"Accept": {typeStream}}, limit: c.answerTimeout}
	resp, err := c.do(ctx, x)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK || mediaType(resp) != typeStream {
		return nil, c.at(x, httpError(resp, readError(resp)))
	}
	type opened struct {
		old *oldStream
		err error
	}
	first := make(chan opened, 1)
	read := func(context.Context) {
		var old *oldStream
		err := newStream().read(resp.Body, c.max, func(name, data []byte) error {
			switch {
			case old == nil && string(name) == "endpoint":
				to, err := c.endpointOf(string(data))
				if err != nil {
					return err
				}
				old = &oldStream{to}
				first <- opened{old: old}
			case old != nil && (len(name) == 0 || string(name) == "message"):
				c.unrelated(data)
			}
			return nil
		})
		_ = resp.Body.Close()
		if err == nil {
			err = errors.New("the stream of the server ended")
		}
		if old == nil {
			first <- opened{err: c.at(x, err)}
			return
		}
		err = c.at(x, lost(err))
		c.lose(err)
		c.pending.Fail(err)
	}
	if !c.background(read) {
		_ = resp.Body.Close()
		return nil, rpc.ErrClosed
	}
	t := time.NewTimer(c.answerTimeout)
	defer t.Stop()
	var got opened
	select {
	case got = <-first:
	case <-ctx.Done():
		got.err = context.Cause(ctx)
	case <-t.C:
		got.err = c.at(x, errors.New("the stream of the server did not begin with the event endpoint in time"))
	}
	if got.err != nil {
		_ = resp.Body.Close()
		return nil, got.err
	}
	detach(resp.Body)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.old = got.old
	return got.old, nil
}

// endpointOf returns the URL for messages. It must have the origin of the stream.
func (c *Conn) endpointOf(text string) (*url.URL, error) {
	base := c.endpoint.Load()
	to, err := base.Parse(strings.TrimSpace(text))
	switch {
	case err != nil:
		return nil, errors.New("the server names no valid URL for messages")
	case originOf(to) != c.origin:
		return nil, fmt.Errorf("the server names a URL for messages of another origin, %s://%s", to.Scheme, to.Host)
	}
	to.User, to.Fragment, to.RawFragment = base.User, "", ""
	return to, nil
}

// callOld sends a request whose response comes on the stream of the connection.
func (c *Conn) callOld(ctx context.Context, old *oldStream, call *rpc.PendingCall, body []byte) (json.RawMessage, error) {
	c.mu.Lock()
	header := c.legacyHeaders(call.Request.Method)
	c.mu.Unlock()
	// The response may come before the server has answered the message.
	if !c.background(func(context.Context) {
		if err := c.post(ctx, body, header, state{old: old}); err != nil {
			c.pending.DeliverError(call.ID, err)
		}
	}) {
		return nil, &undelivered{rpc.ErrClosed}
	}
	result, answered, err := call.Wait(ctx)
	if !answered && !c.pending.Drop(call) {
		result, answered, err = call.Wait(context.WithoutCancel(ctx)) // it just arrived
	}
	if !answered && call.Request.Method != rpc.MethodInitialize {
		c.cancel(call.ID)
	}
	return result, err
}
