package httpclient

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/dragoman-go/dragoman/internal/framing/sse"
	"github.com/dragoman-go/dragoman/mcp/internal/rpc"
)

// maxErrorBody limits the bytes that are read of the body of an error, and maxErrorText those
// that are kept.
const (
	maxErrorBody = 64 << 10
	maxErrorText = 2 << 10
)

// errRedirect marks a redirect that is not followed.
var errRedirect = errors.New("a redirect that is not followed")

// undelivered marks an error of a request that the server has not processed.
type undelivered struct{ err error }

func (u *undelivered) Error() string { return u.err.Error() }
func (u *undelivered) Unwrap() error { return u.err }

var errAnswerTimeout = errors.New("the server sent no response headers in time")

// exchange is a request to send.
type exchange struct {
	method string
	to     *url.URL
	body   []byte
	header http.Header
	// limit is the time until the headers of the response; 0 means that of the context.
	limit time.Duration
	// quiet requests are not worth a challenge: the user did not ask for them.
	quiet bool
	// detached requests go on after the connection was closed.
	detached bool
}

// do sends a request, follows redirects within the origin, and answers challenges. The response
// has any status but a redirect. The caller closes its body.
func (c *Conn) do(ctx context.Context, x exchange) (*http.Response, error) {
	challenged := challenges{}
	redirects := 0
	for {
		round := c.dialer.auth.round()
		resp, err := c.once(ctx, x)
		if err != nil {
			return nil, err
		}
		switch status := resp.StatusCode; status {
		case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
			_ = resp.Body.Close()
			to, err := c.redirect(x, resp)
			if err != nil {
				return nil, &undelivered{c.at(x, fmt.Errorf("%w: %w", errRedirect, err))}
			}
			if redirects++; redirects > maxRedirects {
				return nil, &undelivered{c.at(x, fmt.Errorf("%w: more than %d redirects", errRedirect, maxRedirects))}
			}
			if x.to == c.endpoint.Load() {
				c.endpoint.Store(to)
			}
			x.to = to
		case http.StatusUnauthorized, http.StatusForbidden:
			if c.dialer.Authorizer == nil || x.quiet || !challenged.next(c.dialer.Authorizer, status) {
				return resp, nil
			}
			text := readError(resp)
			resp.Body = io.NopCloser(bytes.NewReader(text))
			retry, err := c.dialer.auth.challenge(ctx, round, func() (bool, error) {
				given := *resp
				given.Body = io.NopCloser(bytes.NewReader(text))
				return c.dialer.Authorizer.Challenge(ctx, &given)
			})
			if err != nil {
				return nil, &undelivered{c.at(x, fmt.Errorf("%w: authorization: %w", httpError(resp, text), err))}
			}
			if !retry {
				return resp, nil
			}
		default:
			return resp, nil
		}
	}
}

// redirect returns where a response redirects to.
func (c *Conn) redirect(x exchange, resp *http.Response) (*url.URL, error) {
	to, err := x.to.Parse(resp.Header.Get("Location"))
	switch {
	case err != nil || resp.Header.Get("Location") == "":
		return nil, fmt.Errorf("HTTP %d without a valid location", resp.StatusCode)
	case originOf(to) != c.origin:
		return nil, fmt.Errorf("it leads to another origin, %s://%s: if you trust it, set it as the URL", to.Scheme, to.Host)
	case resp.StatusCode == http.StatusSeeOther && x.method == http.MethodPost:
		return nil, errors.New("HTTP 303 would turn the message into a GET")
	}
	to.User, to.Fragment, to.RawFragment = x.to.User, "", ""
	return to, nil
}

// once sends a request once.
func (c *Conn) once(ctx context.Context, x exchange) (*http.Response, error) {
	caller := ctx
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	// The end of a response may be read after its call, so that the connection is used again.
	detach := context.AfterFunc(caller, func() { cancel(context.Cause(caller)) })
	unlink := func() bool { return true }
	if !x.detached {
		unlink = context.AfterFunc(c.life, func() { cancel(context.Cause(c.life)) })
	}
	end := func() {
		detach()
		unlink()
		cancel(nil)
	}
	var timer *time.Timer
	if x.limit > 0 {
		timer = time.AfterFunc(x.limit, func() { cancel(errAnswerTimeout) })
	}
	var wrote atomic.Bool
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { wrote.Store(true) }})
	var body io.Reader
	if x.body != nil {
		body = bytes.NewReader(x.body)
	}
	req, err := http.NewRequestWithContext(traced, x.method, x.to.String(), body)
	if err != nil {
		end()
		return nil, &undelivered{c.at(x, errors.New("the request cannot be made"))}
	}
	for _, headers := range []http.Header{c.headers, x.header} {
		for name, values := range headers {
			req.Header[name] = values
		}
	}
	if err := c.dialer.authorize(req); err != nil {
		end()
		return nil, &undelivered{c.at(x, fmt.Errorf("authorization: %w", err))}
	}
	resp, err := c.client.Do(req)
	if timer != nil {
		timer.Stop()
	}
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		end()
		var outer *url.Error // its text has the URL, which may have secrets
		if errors.As(err, &outer) {
			err = outer.Err
		}
		if !wrote.Load() {
			return nil, &undelivered{c.at(x, err)}
		}
		return nil, c.at(x, fmt.Errorf("%w: %w", rpc.ErrLost, err))
	}
	resp.Body = &cancelBody{resp.Body, ctx, detach, end}
	return resp, nil
}

// cancelBody is a response body that ends the context of its request.
type cancelBody struct {
	io.ReadCloser
	ctx context.Context // of the request, as in http.Request
	// detach makes the body outlive the context of the caller.
	detach func() bool
	end    func()
}

func (b *cancelBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) && b.ctx.Err() != nil {
		err = context.Cause(b.ctx)
	}
	return n, err
}

func (b *cancelBody) Close() error {
	err := b.ReadCloser.Close()
	b.end()
	return err
}

// strip removes the marks of this package from an error.
func strip(err error) (wasDelivered bool, inner error) {
	wasDelivered = true
	for {
		switch e := err.(type) { //nolint:errorlint // only the outer marks are removed
		case *undelivered:
			err, wasDelivered = e.err, false
		case *statusError:
			err = e.err
		default:
			return wasDelivered, err
		}
	}
}

// at says where an error happened. Only the origin of the URL is named: the rest may be secret.
func (c *Conn) at(x exchange, err error) error {
	return fmt.Errorf("%s %s: %w", x.method, c.place(), err)
}

func (c *Conn) place() string {
	u := c.endpoint.Load()
	return u.Scheme + "://" + u.Host
}

// finish lets a connection be used again, if the server ends the response soon, and closes the
// body.
func (c *Conn) finish(body io.ReadCloser) {
	detach(body)
	if !c.background(func(context.Context) {
		t := time.AfterFunc(time.Second, func() { _ = body.Close() })
		defer t.Stop()
		_, _ = io.CopyN(io.Discard, body, 64<<10)
		_ = body.Close()
	}) {
		_ = body.Close()
	}
}

// detach makes a body outlive the context of the caller.
func detach(body io.ReadCloser) {
	if b, ok := body.(*cancelBody); ok {
		b.detach()
	}
}

// readError reads the beginning of the body of an error, and closes it.
func readError(resp *http.Response) []byte {
	t := time.AfterFunc(endTimeout, func() { _ = resp.Body.Close() })
	defer t.Stop()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // what arrived is enough
	_ = resp.Body.Close()
	return text
}

// httpError describes a response that is not one of MCP.
func httpError(resp *http.Response, text []byte) *rpc.HTTPError {
	e := &rpc.HTTPError{Status: resp.StatusCode, ContentType: mediaType(resp)}
	bodies := [][]byte{text}
	if e.ContentType == typeStream {
		bodies = nil
		for _, ev := range sse.Events(text) {
			bodies = append(bodies, ev.Data)
		}
	}
	for _, b := range bodies {
		if e.RPC = rpcError(b); e.RPC != nil {
			break
		}
	}
	e.Body = strings.ToValidUTF8(string(text[:min(len(text), maxErrorText)]), "\ufffd")
	after := resp.Header.Get("Retry-After")
	if seconds, err := strconv.Atoi(after); err == nil && seconds > 0 {
		e.RetryAfter = time.Duration(min(seconds, 24*60*60)) * time.Second
	} else if at, err := http.ParseTime(after); err == nil {
		e.RetryAfter = min(max(0, time.Until(at)), 24*time.Hour)
	}
	return e
}

// rpcError returns the JSON-RPC error that is the body of a response, or nil.
func rpcError(text []byte) *rpc.Error {
	messages, _ := rpc.Decode(bytes.TrimSpace(text)) // most bodies are something else
	for i := range messages {
		if messages[i].Error != nil {
			return messages[i].Error
		}
	}
	return nil
}

func mediaType(resp *http.Response) string {
	value := resp.Header.Get("Content-Type")
	if t, _, err := mime.ParseMediaType(value); err == nil {
		return t
	}
	return value
}

const (
	typeJSON   = "application/json"
	typeStream = "text/event-stream"
)
