package httpclient

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/dragoman-go/dragoman/mcp/internal/rpc"
)

// maxSessionID limits the id of a session.
const maxSessionID = 1 << 10

// begin sets the session of a successful handshake, the only place where an id counts (pitfall
// K7). An empty id means that the server has no sessions.
func (c *Conn) begin(id string) error {
	for i := range len(id) {
		if id[i] < '!' || id[i] > '~' {
			return errors.New("the server sent a session id that is not visible ASCII")
		}
	}
	if len(id) > maxSessionID {
		return fmt.Errorf("the server sent a session id of more than %d bytes", maxSessionID)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.session = id
	return nil
}

// endSession deletes the session. Servers may refuse that.
func (c *Conn) endSession(header http.Header) {
	ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	header.Del("Content-Type")
	header.Del("Accept")
	resp, err := c.once(ctx, exchange{method: http.MethodDelete, to: c.endpoint.Load(), header: header, detached: true})
	if err != nil {
		c.log.Debug("the session was not ended at the server", "error", err)
		return
	}
	_ = readError(resp)
}

// get opens a stream, after the event with an id if it is not empty.
func (c *Conn) get(ctx context.Context, lastID string, quiet bool) (*http.Response, error) {
	c.mu.Lock()
	header := c.legacyHeaders("")
	c.mu.Unlock()
	header.Del("Content-Type")
	header.Set("Accept", typeStream)
	if lastID != "" {
		header.Set("Last-Event-Id", lastID)
	}
	return c.do(ctx, exchange{method: http.MethodGet, to: c.endpoint.Load(), header: header, limit: c.answerTimeout, quiet: quiet})
}

// resume continues the stream of a call that ended early.
func (c *Conn) resume(ctx context.Context, s *stream, sent state) (*http.Response, error) {
	x := exchange{method: http.MethodGet}
	var last error
	for {
		delay, ok := s.again(random)
		if !ok {
			err := fmt.Errorf("%w: the response stream ended and could not be continued", rpc.ErrLost)
			if last != nil {
				err = fmt.Errorf("%w: %w", err, last)
			}
			return nil, c.at(x, err)
		}
		if err := c.pause(ctx, delay); err != nil {
			return nil, err
		}
		resp, err := c.get(ctx, s.lastID, false)
		switch {
		case err == nil && resp.StatusCode == http.StatusOK && mediaType(resp) == typeStream:
			return resp, nil
		case err == nil:
			text := readError(resp)
			e := httpError(resp, text)
			if c.sessionLost(e, string(text), sent) {
				// The request itself was delivered.
				return nil, c.at(x, fmt.Errorf("%w: %w", rpc.ErrSessionLost, e))
			}
			if e.Status < 500 && e.Status != http.StatusTooManyRequests {
				return nil, c.at(x, fmt.Errorf("%w: the server does not continue the response stream: %w", rpc.ErrLost, e))
			}
			last = e
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case c.life.Err() != nil:
			return nil, context.Cause(c.life)
		default:
			// It is about the request for the rest of the response, not about the call.
			_, last = strip(err)
		}
	}
}

// pause waits.
func (c *Conn) pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-c.life.Done():
		return context.Cause(c.life)
	}
}

// listenWait limits how long a handshake waits for the stream of the server's own messages. Some
// servers send no headers before the first message.
const listenWait = 2 * time.Second

// listen opens the stream of messages that belong to no call, once. Servers need not have it:
// anything but a stream means that there is none (pitfall K11). It waits for the first response:
// many servers send questions during a call on this stream, and lose those that they send before
// it is open.
func (c *Conn) listen(ctx context.Context) {
	c.mu.Lock()
	again := c.listening
	c.listening = true
	sent := state{session: c.session}
	c.mu.Unlock()
	if again {
		return
	}
	answered := make(chan struct{})
	c.background(func(ctx context.Context) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		go func() { // a lost session ends the stream
			select {
			case <-c.done:
				cancel()
			case <-ctx.Done():
			}
		}()
		c.listenUntil(ctx, sent, sync.OnceFunc(func() { close(answered) }))
	})
	t := time.NewTimer(listenWait)
	defer t.Stop()
	select {
	case <-answered:
	case <-t.C:
		c.log.Debug("the stream of the server's own messages did not open in time", "limit", listenWait)
	case <-ctx.Done():
	case <-c.life.Done():
	}
}

// steady is the time after which the end of a stream is not a failed attempt: proxies end
// streams without traffic.
const steady = 30 * time.Second

// listenUntil keeps the stream open until ctx ends. It calls answered after each attempt.
func (c *Conn) listenUntil(ctx context.Context, sent state, answered func()) {
	s := newStream()
	for opened := false; ; {
		resp, err := c.get(ctx, s.lastID, true)
		answered()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				_ = resp.Body.Close()
			}
			return
		case err == nil && resp.StatusCode == http.StatusOK && mediaType(resp) == typeStream:
			opened = true
			began := time.Now()
			err = s.read(resp.Body, c.max, func(name, data []byte) error {
				if len(name) == 0 || string(name) == "message" {
					c.unrelated(data)
				}
				return nil
			})
			_ = resp.Body.Close()
			if time.Since(began) >= steady {
				s.progress++
			}
			if errors.Is(err, rpc.ErrTooLarge) {
				c.log.Warn("the stream of the server's own messages ended", "error", err)
				return
			}
		case errors.Is(err, errRedirect):
			return
		case err == nil:
			text := readError(resp)
			if !opened {
				return // there is none
			}
			e := httpError(resp, text)
			// Another token may come with the next call.
			again := e.Status >= 500 || e.Status == http.StatusTooManyRequests || e.Status == http.StatusUnauthorized
			if c.sessionLost(e, string(text), sent) || !again {
				return
			}
		}
		delay, ok := s.again(random)
		if !ok {
			c.log.Warn("the stream of the server's own messages ended and could not be continued", "error", err)
			return
		}
		if c.pause(ctx, delay) != nil {
			return
		}
	}
}

// unrelated handles messages that belong to no call.
func (c *Conn) unrelated(data []byte) {
	messages, err := rpc.Decode(data)
	if err != nil {
		c.log.Warn("the server sent an event that is not a message", "error", err)
		return
	}
	for i := range messages {
		switch m := &messages[i]; {
		case m.IsResponse():
			c.pending.Deliver(m) // some servers send responses here
		case m.IsRequest():
			c.handler.Request(rpc.Incoming{ID: m.ID, Method: m.Method, Params: m.Params})
		default:
			c.handler.Notification(rpc.Incoming{Method: m.Method, Params: m.Params})
		}
	}
}
