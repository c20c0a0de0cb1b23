package provider

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/framing"
	"github.com/dragoman-go/dragoman/internal/modelcall"
)

// maxErrorBytes limits the body of an error, errorWait the time to read it. maxErrorText limits
// the text that is returned, maxErrorWord each of its fields.
const (
	maxErrorBytes = 1 << 20
	errorWait     = 10 * time.Second
	maxErrorText  = 16 << 10
	maxErrorWord  = 1 << 10
)

// TransportError reports that no response arrived: the connection failed or was cut off. A
// retry may help.
type TransportError struct {
	// Host is the host of the server. The rest of the URL is omitted because it may be secret.
	Host string
	Err  error
}

func (e *TransportError) Error() string {
	if dial := new(net.OpError); errors.As(e.Err, &dial) && dial.Op == "dial" {
		return fmt.Sprintf("provider: cannot connect to %s: %v; check the base URL of the provider, and that the server runs", e.Host, e.Err)
	}
	if errors.Is(e.Err, http.ErrSchemeMismatch) {
		return fmt.Sprintf("provider: %s: %v; write http:// in the base URL of the provider", e.Host, e.Err)
	}
	return fmt.Sprintf("provider: %s: %v", e.Host, e.Err)
}

func (e *TransportError) Unwrap() error { return e.Err }

// attemptResponse is the response to one attempt while it is read. It is not safe for concurrent
// use and must be closed.
type attemptResponse struct {
	*http.Response
	x          *exchange
	ctx        context.Context
	cancel     context.CancelCauseFunc
	watch      *watch
	hasContent bool // some content has arrived
	// detector looks for content; sinceContent is the time of the waits since the last content.
	detector     contentDetector
	sinceContent time.Duration
	// drainLimit, if set, limits the time of all further reads, whatever arrives.
	drainLimit time.Duration
	draining   bool    // drainLimit is running
	sample     *sample // the body for the log; nil if it is not logged
	// beforeRead is called before each read of the body; nil means no call.
	beforeRead func()
	// head holds bytes that were read to detect the type of the body and must be read again;
	// headErr is the error that followed them.
	head    []byte
	headErr error
	// stopClosing keeps cancellation from closing the body.
	stopClosing func() bool
}

// send makes one attempt: it sends the payload and returns the response if it is successful.
// The caller must close the response.
func (x *exchange) send(ctx context.Context) (*attemptResponse, error) {
	if err := x.prepare(ctx); err != nil {
		return nil, err
	}
	a, err := x.attempt(ctx)
	if err != nil || a.isSuccess() {
		return a, err
	}
	defer a.Close()
	_, err = a.readError()
	return nil, err
}

// attempt sends the payload and returns the response, whatever its status. The caller must
// close it.
func (x *exchange) attempt(ctx context.Context) (*attemptResponse, error) {
	x.attempts++
	x.retryAdvice = retryAdvice{}
	ctx, cancel := context.WithCancelCause(ctx)
	a := &attemptResponse{x: x, ctx: ctx, cancel: cancel, watch: newWatch(x.clock, x.client.Timeouts, cancel), detector: newContentDetector(x)}
	req, err := x.request(ctx, a.watch.trace(ctx))
	if err != nil {
		cancel(nil)
		return nil, err
	}
	a.watch.begin()
	x.logRequest(ctx, req)
	modelcall.Called(ctx)
	a.Response, err = x.client.http().Do(req) //nolint:bodyclose // answer.Close closes it
	if err != nil {
		err = a.transportError(err)
		a.Close()
		return nil, err
	}
	// The caller's transport may return a body that ignores the context of its request.
	body := a.Body
	a.stopClosing = context.AfterFunc(ctx, func() { _ = body.Close() })
	a.unpack()
	a.startSample()
	return a, nil
}

// isSuccess reports whether the status is successful.
func (a *attemptResponse) isSuccess() bool { return a.StatusCode >= 200 && a.StatusCode <= 299 }

// unpack decompresses a response whose server sent gzip without being asked, because streams do
// not ask for it (quirk J16). net/http itself decompresses responses for which it requested
// compression.
func (a *attemptResponse) unpack() {
	if strings.EqualFold(strings.TrimSpace(a.Header.Get("Content-Encoding")), "gzip") {
		a.Header.Del("Content-Encoding")
		a.Body = &gunzip{packed: a.Body}
	}
}

// gunzip decompresses a body. It reads nothing before the first Read.
type gunzip struct {
	packed io.ReadCloser
	r      *gzip.Reader
}

func (g *gunzip) Read(p []byte) (int, error) {
	if g.r == nil {
		r, err := gzip.NewReader(g.packed)
		if err != nil {
			return 0, err
		}
		g.r = r
	}
	return g.r.Read(p)
}

func (g *gunzip) Close() error { return g.packed.Close() }

// request returns the payload with its address, headers and credential. It is sent with the
// context sending; ctx is used to build it.
func (x *exchange) request(ctx, sending context.Context) (*http.Request, error) {
	req, err := x.client.newRequest(sending, x.model, x.stream)
	if err != nil {
		return nil, err
	}
	x.applyPath(req)
	if len(x.payload) > 0 {
		req.ContentLength = int64(len(x.payload))
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(x.payload)), nil }
		req.Body, _ = req.GetBody()
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("User-Agent", "dragoman")
	if x.stream {
		req.Header.Set("Accept", x.wire.Stream.Framing.ContentType())
		// Compression would delay chunks.
		req.Header.Set("Accept-Encoding", "identity")
	} else {
		req.Header.Set("Accept", "application/json")
	}
	for name, values := range x.client.Header { // each request has its own, to which an Auth may add
		req.Header[http.CanonicalHeaderKey(name)] = slices.Clone(values)
	}
	x.forwardHeaders(req.Header)
	if version := x.wire.Headers.Version; version != "" {
		if _, set := req.Header[version]; !set {
			req.Header.Set(version, x.wire.Headers.VersionValue)
		}
	}
	if name := unsendable(req.Header); name != "" {
		return nil, badHeader(name)
	}
	x.forwardQuery(req.URL)
	x.secrets.url(req.URL, x.clientParams)
	x.secrets.headers(x.client.Header, nil, minSetting)
	if x.client.Auth != nil {
		before := req.Header.Clone()
		if err := x.client.Auth.Authorize(ctx, req, x.payload); err != nil {
			return nil, err
		}
		x.secrets.headers(req.Header, before, minSecret)
		x.secrets.url(req.URL, x.clientParams)
		if unsendable(req.Header) != "" {
			return nil, unusableKeyError(errBadKey)
		}
	}
	return req, nil
}

// unsendable returns the name of the first header that cannot be sent; empty if all can be. The
// transport would find it too, but its error would look like a connection failure.
func unsendable(h http.Header) string {
	first, found := "", false
	for name, values := range h {
		if (!found || name < first) && (!isToken(name) || slices.ContainsFunc(values, hasControlChars)) {
			first, found = name, true
		}
	}
	return first
}

func badHeader(name string) error {
	return &SettingError{Setting: "headers", Reason: fmt.Sprintf("%.80q is not a valid header name, or its value has characters that are not allowed in a header", name)}
}

// isToken reports whether a text can be the name of a header.
func isToken(s string) bool {
	other := func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("!#$%&'*+-.^_`|~", r))
	}
	return s != "" && !strings.ContainsFunc(s, other)
}

// hasControlChars reports whether a text has characters that are not allowed in a header.
func hasControlChars(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}

// http returns the HTTP client for requests. It follows no redirects.
func (c *Client) http() *http.Client {
	var h http.Client
	if c.HTTP != nil {
		h = *c.HTTP
	}
	if h.Transport == nil {
		h.Transport = connections.transport()
	}
	h.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &h
}

// Read reads the body. The timeout of the current phase applies.
func (a *attemptResponse) Read(p []byte) (int, error) {
	if len(a.head) > 0 {
		n := copy(p, a.head)
		if a.head = a.head[n:]; len(a.head) == 0 {
			a.head = nil // a stream may wait for long
		}
		return n, nil
	}
	if a.headErr != nil {
		return 0, a.headErr
	}
	return a.read(p)
}

// read reads the bytes that have not been read yet.
func (a *attemptResponse) read(p []byte) (int, error) {
	if a.drainLimit > 0 {
		return a.readRest(p)
	}
	if a.beforeRead != nil {
		a.beforeRead()
	}
	a.watch.beginWait()
	n, err := a.Body.Read(p)
	a.noteArrival(p[:n], a.watch.endWait())
	return a.afterRead(p, n, err)
}

// readRest reads and discards the rest of the body. One timeout applies to all of it, so that
// a server that keeps sending does not delay the caller.
func (a *attemptResponse) readRest(p []byte) (int, error) {
	if !a.draining {
		a.draining = true
		a.watch.enterWithLimit(phaseIdle, a.drainLimit)
	}
	if a.beforeRead != nil {
		a.beforeRead()
	}
	n, err := a.Body.Read(p)
	return a.afterRead(p, n, err)
}

func (a *attemptResponse) afterRead(p []byte, n int, err error) (int, error) {
	if a.sample != nil {
		a.sample.add(p[:n])
	}
	// A body that was closed on cancellation may look complete.
	if err != nil && (!errors.Is(err, io.EOF) || a.ctx.Err() != nil) {
		err = a.transportError(err)
	}
	return n, err
}

// Close ends the attempt. If the body was not read to its end, the connection is closed.
func (a *attemptResponse) Close() {
	a.watch.stop()
	if a.stopClosing != nil {
		a.stopClosing()
	}
	if a.Response != nil {
		_ = a.Body.Close() // only read: a close error loses nothing
	}
	a.cancel(nil)
}

// transportError returns why the transport failed: a timeout, cancellation by the caller, or an error
// of the transport itself. The error has no URL, which may hold a secret.
func (a *attemptResponse) transportError(err error) error {
	if a.ctx.Err() != nil {
		return context.Cause(a.ctx)
	}
	var of *url.Error
	if errors.As(err, &of) {
		err = of.Err
	}
	u, bad := parseBase(a.x.client.base())
	if bad != nil {
		return bad
	}
	return &TransportError{Host: u.Host, Err: err}
}

// hasNoCredential reports whether a request was sent without a credential.
func hasNoCredential(r *http.Request) bool {
	for name := range r.Header {
		if !isPublic(name) {
			return false
		}
	}
	return r.URL.User == nil && r.URL.RawQuery == ""
}

// readBody reads the whole body.
func (a *attemptResponse) readBody(most int) ([]byte, error) {
	b, err := framing.ReadAll(io.LimitReader(a, int64(most)+1), a.ContentLength)
	if err == nil && len(b) > most {
		err = fmt.Errorf("provider: the response is larger than %d bytes: %w", most, dragoman.ErrTooLarge)
	}
	return b, err
}

// noAPI reports whether a web server responds with the status if a path does not exist or does
// not accept POST.
func noAPI(status int) bool {
	return status == http.StatusNotFound || status == http.StatusMethodNotAllowed || status == http.StatusNotImplemented
}

// readError reads an error response. It returns the body, or nil if the body is incomplete, and
// the decoded error, or why it cannot be decoded. The status is usually enough, so refusal does
// not wait long for the end of the body.
func (a *attemptResponse) readError() ([]byte, error) {
	a.drainLimit = errorWait
	if idle := a.x.client.Timeouts.of(phaseIdle); idle > 0 {
		a.drainLimit = min(a.drainLimit, idle)
	}
	body, err := io.ReadAll(io.LimitReader(a, maxErrorBytes))
	var slow *TimeoutError
	if err != nil && a.ctx.Err() != nil && (!errors.As(err, &slow) || slow.Phase == phaseTotal) {
		return nil, err
	}
	e := a.x.codec.DecodeError(a.StatusCode, a.Header, body)
	if isPage(e.Message) {
		e.Message = excerpt(a.x.secrets.text(string(body)))
	}
	if noAPI(a.StatusCode) && !isJSON(body) {
		e.Message = strings.TrimRight(e.Message, ". \n") + "; check the base URL of the provider"
	}
	if to := a.Header.Get("Location"); to != "" && a.StatusCode < 400 {
		e.Message = "the server redirects, and redirects are not followed: set the base URL to the new address"
		if u, err := url.Parse(to); err == nil && u.Host != "" {
			e.Message = "the server redirects to " + u.Host + ", and redirects are not followed: set the base URL to the new address"
		}
	}
	if e.Class == dragoman.ErrorAuth && a.x.client.keyAdvice != "" && hasNoCredential(a.Request) {
		e.Message = strings.TrimRight(e.Message, ". \n") + "; the request had no API key: " + a.x.client.keyAdvice
	}
	a.x.retryAdvice = a.x.readRetryAdvice(a.Header, e)
	e = a.x.secrets.apiError(e)
	a.x.logError(a, e)
	if err != nil || len(body) == maxErrorBytes {
		body = nil
	}
	return body, e
}
