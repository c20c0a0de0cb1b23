package httpclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dragoman-go/dragoman/internal/textkit"
	"github.com/dragoman-go/dragoman/mcp/internal/rpc"
)

// Conn is a connection to an endpoint: requests that share a session, if the server has
// sessions.
type Conn struct {
	dialer        *Dialer
	handler       rpc.Handler
	client        *http.Client
	release       func() // nil for a transport of the caller
	headers       http.Header
	origin        string
	max           int
	answerTimeout time.Duration
	log           *slog.Logger
	endpoint      atomic.Pointer[url.URL] // changes with redirects

	pending rpc.Pending
	life    context.Context // of the requests that outlive their calls
	stop    context.CancelCauseFunc
	done    chan struct{}

	mu        sync.Mutex
	revision  string
	session   string
	old       *oldStream // set if the server speaks HTTP+SSE
	listening bool       // the stream of unrelated messages was opened
	reason    error      // set when done is closed
	closed    bool
	running   sync.WaitGroup
}

// SetRevision implements [rpc.Conn].
func (c *Conn) SetRevision(revision string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.revision = revision
}

// Done implements [rpc.Conn].
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err implements [rpc.Conn].
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reason
}

// lose ends the connection for new calls. Calls that wait for a response go on.
func (c *Conn) lose(reason error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reason == nil {
		c.reason = reason
		close(c.done)
	}
}

// background runs f in a goroutine for which Close waits. The context of f ends with the
// connection. It returns false, and does nothing, after Close.
func (c *Conn) background(f func(ctx context.Context)) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.running.Go(func() { f(c.life) })
	return true
}

// Close implements [rpc.Conn]. It ends the session.
func (c *Conn) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	// A session that was lost, or belongs to another origin, needs no end.
	session, lost := c.session, c.reason != nil
	header := c.legacyHeaders("")
	c.mu.Unlock()

	c.lose(rpc.ErrClosed)
	c.pending.Fail(rpc.ErrClosed)
	c.stop(rpc.ErrClosed)
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		if session != "" && !lost {
			c.endSession(header)
		}
		c.running.Wait()
		if c.release != nil {
			c.release()
		}
	}()
	t := time.NewTimer(closeTimeout)
	defer t.Stop()
	select {
	case <-finished:
	case <-t.C: // the rest ends on its own: it has limits
	}
	return nil
}

// Call implements [rpc.Conn].
func (c *Conn) Call(ctx context.Context, r *rpc.Request) (json.RawMessage, error) {
	result, err := c.call(ctx, r)
	wasDelivered, err := strip(err)
	if !wasDelivered && r.NotDelivered != nil {
		r.NotDelivered()
	}
	if err != nil && ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		err = context.Cause(ctx)
	}
	return result, err
}

func (c *Conn) call(ctx context.Context, r *rpc.Request) (json.RawMessage, error) {
	if ctx.Err() != nil {
		return nil, &undelivered{context.Cause(ctx)}
	}
	if err := c.Err(); err != nil {
		return nil, &undelivered{err}
	}
	call, err := c.pending.Add(r)
	if err != nil {
		return nil, &undelivered{err}
	}
	defer c.pending.Drop(call)
	body, err := rpc.AppendRequest(nil, call.ID, r.Method, r.Params)
	if err != nil {
		return nil, &undelivered{err}
	}
	header, sent, err := c.header(r.Method, r.Params, r.Name, r.Headers)
	if err != nil {
		return nil, &undelivered{err}
	}
	if sent.old != nil {
		return c.callOld(ctx, sent.old, call, body)
	}
	result, err := c.callHTTP(ctx, call, body, header, sent)
	if wasDelivered, _ := strip(err); err != nil && wasDelivered && ctx.Err() != nil && !sent.modern && r.Method != rpc.MethodInitialize {
		c.cancel(call.ID)
	}
	if r.Method == rpc.MethodInitialize && !sent.modern && ctx.Err() == nil && speaksOld(err) {
		// A server of 2024-11-05 refuses the message, and offers a stream instead.
		if old, failed := c.openOld(ctx); failed == nil {
			return c.callOld(ctx, old, call, body)
		}
	}
	return result, err
}

// speaksOld reports whether an error can be that of a server of 2024-11-05, which accepts no
// messages at the URL of its stream.
func speaksOld(err error) bool {
	var e *statusError
	return errors.As(err, &e) && (e.status == http.StatusBadRequest || e.status == http.StatusNotFound || e.status == http.StatusMethodNotAllowed)
}

// state describes how a request was sent.
type state struct {
	modern  bool
	session string
	old     *oldStream
}

// header returns the headers of a message. Name and more are those of a request.
func (c *Conn) header(method string, params json.RawMessage, name string, more map[string]string) (http.Header, state, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	version := rpc.MetaString(params, rpc.MetaRevision)
	if version == "" {
		version = c.revision
	}
	s := state{modern: rpc.Modern(version), old: c.old}
	if !s.modern {
		if method != rpc.MethodInitialize {
			s.session = c.session
		}
		return c.legacyHeaders(method), s, nil
	}
	h := http.Header{}
	setMessage(h)
	if !isHeaderValue(version) {
		return nil, s, fmt.Errorf("revision %q: not the value of a header", version)
	}
	h.Set("Mcp-Protocol-Version", version)
	h.Set("Mcp-Method", rpc.EncodeHeader(method))
	if name != "" {
		h.Set("Mcp-Name", rpc.EncodeHeader(name))
	}
	for key, value := range more {
		canonical := http.CanonicalHeaderKey(key)
		if !isToken(key) || !strings.HasPrefix(canonical, "Mcp-Param-") {
			return nil, s, fmt.Errorf("header %q: want Mcp-Param- and a name", key)
		}
		h.Set(canonical, rpc.EncodeHeader(value))
	}
	return h, s, nil
}

func setMessage(h http.Header) {
	h.Set("Content-Type", typeJSON)
	h.Set("Accept", typeJSON+", "+typeStream)
}

// legacyHeaders returns the headers of a message before 2026-07-28. The caller holds c.mu.
func (c *Conn) legacyHeaders(method string) http.Header {
	h := http.Header{}
	setMessage(h)
	if method == rpc.MethodInitialize {
		return h // it begins a session, and negotiates the revision
	}
	if c.revision >= rpc.Revision20250618 && !rpc.Modern(c.revision) {
		h.Set("Mcp-Protocol-Version", c.revision)
	}
	if c.session != "" {
		h.Set("Mcp-Session-Id", c.session)
	}
	return h
}

// statusError is an error with the status of its response.
type statusError struct {
	status int
	err    error
}

func (e *statusError) Error() string { return e.err.Error() }
func (e *statusError) Unwrap() error { return e.err }

// callHTTP sends a request and reads its response.
func (c *Conn) callHTTP(ctx context.Context, call *rpc.PendingCall, body []byte, header http.Header, sent state) (json.RawMessage, error) {
	x := exchange{method: http.MethodPost, to: c.endpoint.Load(), body: body, header: header}
	if call.Request.Method == rpc.MethodListen {
		x.limit = c.answerTimeout
	}
	resp, err := c.do(ctx, x)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return nil, c.refused(resp, sent)
	}
	var result json.RawMessage
	switch {
	case mediaType(resp) == typeStream:
		result, err = c.follow(ctx, call, resp, sent)
	default:
		result, err = c.readJSON(call, resp, sent)
	}
	if err == nil && call.Request.Method == rpc.MethodInitialize && !sent.modern {
		err = c.begin(resp.Header.Get("Mcp-Session-Id"))
	}
	return result, err
}

// refused returns the error for a response whose status is not a success.
func (c *Conn) refused(resp *http.Response, sent state) error {
	text := readError(resp)
	e := httpError(resp, text)
	if c.sessionLost(e, string(text), sent) {
		err := c.at(exchange{method: http.MethodPost}, fmt.Errorf("%w: %w", rpc.ErrSessionLost, e))
		if e.Status == http.StatusServiceUnavailable {
			return err // a proxy may have sent it after the server got the request
		}
		return &undelivered{err}
	}
	err := c.at(exchange{method: http.MethodPost}, e)
	forbidden := e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden
	if e.RPC != nil && !forbidden {
		err = e.RPC
	}
	err = &statusError{e.Status, err}
	switch e.Status {
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed,
		http.StatusNotAcceptable, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType:
		err = &undelivered{err}
	}
	return err
}

// sessionLost reports whether an error means that the session is unknown (pitfall K8), and
// ends the connection if it does.
func (c *Conn) sessionLost(e *rpc.HTTPError, text string, sent state) bool {
	if sent.session == "" && sent.old == nil {
		return false
	}
	if e.RPC != nil && (e.RPC.Code == rpc.CodeMethodNotFound || e.RPC.Code == rpc.CodeInvalidParams) {
		return false // the server knows the session, but not the method
	}
	switch e.Status {
	case http.StatusNotFound:
	case http.StatusBadRequest, http.StatusServiceUnavailable:
		text = strings.ToLower(text)
		if !strings.Contains(text, "session") && !strings.Contains(text, "not initialized") {
			return false
		}
	default:
		return false
	}
	c.mu.Lock()
	current := c.session == sent.session && c.old == sent.old
	c.mu.Unlock()
	if current { // not one that a new handshake has replaced (pitfall K7)
		c.lose(rpc.ErrSessionLost)
	}
	return true
}

// readJSON reads the response to a call from a body that is not a stream.
func (c *Conn) readJSON(call *rpc.PendingCall, resp *http.Response, sent state) (json.RawMessage, error) {
	var buf bytes.Buffer
	if n := resp.ContentLength; n > 0 && n <= int64(c.max) {
		buf.Grow(int(min(n, 1<<20)) + bytes.MinRead)
	}
	n, err := buf.ReadFrom(io.LimitReader(resp.Body, int64(c.max)+1))
	_ = resp.Body.Close()
	x := exchange{method: http.MethodPost}
	switch {
	case n > int64(c.max):
		return nil, c.at(x, fmt.Errorf("%w of %s", rpc.ErrTooLarge, textkit.Count(c.max, "byte")))
	case err != nil:
		return nil, c.at(x, fmt.Errorf("%w: %w", rpc.ErrLost, err))
	}
	text := bytes.TrimSpace(buf.Bytes())
	if mediaType(resp) != typeJSON && (len(text) == 0 || text[0] != '{' && text[0] != '[') || len(text) == 0 {
		return nil, &statusError{resp.StatusCode, c.at(x, httpError(resp, text[:min(len(text), maxErrorBody)]))}
	}
	messages, err := rpc.Decode(text)
	if err != nil {
		return nil, c.at(x, fmt.Errorf("the response is not a JSON-RPC message: %w", err))
	}
	for i := range messages {
		if err := c.receive(&messages[i], call, sent); err != nil {
			return nil, c.at(x, err)
		}
	}
	result, answered, err := call.Poll()
	if !answered {
		return nil, c.at(x, errors.New("the response does not have the id of the request"))
	}
	return result, err
}

// receive handles a message on the stream of a call. The response reaches call.
func (c *Conn) receive(m *rpc.Message, call *rpc.PendingCall, sent state) error {
	switch {
	case m.IsResponse():
		if m.ID == "" {
			m.ID = call.ID // an error of a server that could not read the request
		}
		if sent.modern && m.ID != call.ID {
			return nil // it belongs to nothing
		}
		c.pending.Deliver(m)
	case m.IsRequest() && sent.modern:
		return fmt.Errorf("the server sent the request %q, which its revision does not allow", textkit.Visible(m.Method))
	case m.IsRequest():
		c.handler.Request(rpc.Incoming{ID: m.ID, Method: m.Method, Params: m.Params, During: call.Request})
	default:
		c.handler.Notification(rpc.Incoming{Method: m.Method, Params: m.Params, During: call.Request})
	}
	return nil
}

// follow reads the response stream of a call. Before 2026-07-28 it continues a stream that
// ended early.
func (c *Conn) follow(ctx context.Context, call *rpc.PendingCall, resp *http.Response, sent state) (json.RawMessage, error) {
	s := newStream()
	x := exchange{method: http.MethodPost}
	for {
		ended := s.read(resp.Body, c.max, func(name, data []byte) error {
			if len(name) > 0 && string(name) != "message" {
				return nil
			}
			messages, err := rpc.Decode(data)
			if err != nil {
				c.log.Warn("the server sent an event that is not a message", "error", err)
				return nil
			}
			for i := range messages {
				if err := c.receive(&messages[i], call, sent); err != nil {
					return err
				}
			}
			if call.Answered() {
				return errStop
			}
			return nil
		})
		if result, answered, err := call.Poll(); answered {
			c.finish(resp.Body)
			return result, err
		}
		_ = resp.Body.Close()
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case errors.Is(ended, rpc.ErrTooLarge) || ended != nil && sent.modern:
			return nil, c.at(x, lost(ended))
		case sent.modern || s.lastID == "":
			return nil, c.at(x, lost(errors.New("the response stream ended")))
		}
		var err error
		if resp, err = c.resume(ctx, s, sent); err != nil {
			return nil, err
		}
	}
}

// lost marks an error after which the outcome of the call is unknown, unless it has a reason of
// its own.
func lost(err error) error {
	if errors.Is(err, rpc.ErrTooLarge) || errors.Is(err, rpc.ErrClosed) || errors.Is(err, rpc.ErrLost) {
		return err
	}
	return fmt.Errorf("%w: %w", rpc.ErrLost, err)
}

// cancel announces to a legacy server that the client no longer waits.
func (c *Conn) cancel(id rpc.ID) {
	params := json.RawMessage(`{"requestId":` + string(id) + `,"reason":"the client no longer waits"}`)
	c.background(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, endTimeout)
		defer cancel()
		if err := c.Notify(ctx, rpc.MethodCancelled, params); err != nil {
			c.log.Debug("a call was not canceled at the server", "error", err)
		}
	})
}

// Notify implements [rpc.Conn].
func (c *Conn) Notify(ctx context.Context, method string, params json.RawMessage) error {
	text, err := rpc.AppendNotification(nil, method, params)
	if err != nil {
		return err
	}
	header, sent, err := c.header(method, params, "", nil)
	if err != nil {
		return err
	}
	if err := c.post(ctx, text, header, sent); err != nil {
		_, err = strip(err)
		return err
	}
	if method == rpc.MethodInitialized && !sent.modern && sent.old == nil {
		c.listen(ctx)
	}
	return nil
}

// Respond implements [rpc.Conn].
func (c *Conn) Respond(ctx context.Context, id rpc.ID, result json.RawMessage, failure *rpc.Error) error {
	header, sent, err := c.header("", nil, "", nil)
	if err != nil {
		return err
	}
	if sent.modern {
		return errors.New("servers of this revision send no requests, so there is nothing to answer")
	}
	var text []byte
	if failure != nil {
		text, err = rpc.AppendError(nil, id, failure)
	} else {
		text, err = rpc.AppendResult(nil, id, result)
	}
	if err != nil {
		return err
	}
	_, err = strip(c.post(ctx, text, header, sent))
	return err
}

// post sends a message whose response, if it has one, comes on another stream.
func (c *Conn) post(ctx context.Context, text []byte, header http.Header, sent state) error {
	if err := c.Err(); err != nil {
		return err
	}
	x := exchange{method: http.MethodPost, to: c.endpoint.Load(), body: text, header: header, limit: c.answerTimeout}
	if sent.old != nil {
		x.to = sent.old.messages
	}
	resp, err := c.do(ctx, x) //nolint:bodyclose // by refused or finish
	switch {
	case err != nil:
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		err = c.refused(resp, sent)
	default:
		c.finish(resp.Body)
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// random returns a random duration below limit.
func random(limit time.Duration) time.Duration {
	if limit <= 0 {
		return 0
	}
	return rand.N(limit)
}
