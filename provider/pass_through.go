package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/modelcall"
)

// Pass sends a request in the client's dialect unchanged and returns the response unchanged.
// Nothing is repaired, converted or checked, and no extensions run (see [Client.Transparent]).
// Address, credential, headers, timeouts, log and the request size limit are those of Generate
// and Stream. So are retries, until the first content of a successful response arrives.
//
// If the server refuses the request, Pass returns its response with Err set. Pass returns an
// error if there is no response to pass through. A redirect is such an error, because it is
// addressed to us. So is a web page, whatever its status: the base URL may be wrong.
func (c *Client) Pass(ctx context.Context, p modelcall.PassRequest) (*modelcall.PassResponse, error) {
	x := newExchange(c, nil, p.Stream)
	if x.model == "" {
		x.model = p.Model
	}
	x.clientHeader, x.clientQuery, x.storedPath, x.method = p.Header, p.Query, p.StoredPath, p.Method
	if p.Count {
		if x.countPath = x.wire.Endpoint.Count; x.countPath == "" {
			return nil, fmt.Errorf("provider: %s does not support counting tokens: %w", c.Dialect(), dragoman.ErrUnsupported)
		}
	}
	if !plainPath(p.StoredPath) {
		return nil, fmt.Errorf("provider: %.80q is not a valid path of a stored object: %w", p.StoredPath, dragoman.ErrInvalid)
	}
	if err := x.setPayload(p.Body); err != nil {
		return nil, err
	}
	ctx, done := x.startTimeout(ctx)
	for {
		passed, err := x.passOnce(ctx, done)
		if err == nil {
			return passed, nil
		}
		if !x.waitToRetry(ctx, err) {
			done()
			if passed != nil {
				return passed, nil
			}
			return nil, x.redactError(err)
		}
	}
}

// plainPath reports whether a text, which may be empty, has only letters, digits, "-", "_" and
// "/", so that it cannot lead to another path.
func plainPath(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool {
		return r != '/' && r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
}

// applyPath changes a request to one that calls no model: one about stored objects, or for a token
// count.
func (x *exchange) applyPath(req *http.Request) {
	if x.method != "" {
		req.Method = x.method
	}
	leads := func(path string) string {
		switch {
		case strings.HasPrefix(x.countPath, ":"):
			path, _, _ = cutLast(path, ":")
			return path + x.countPath
		case x.countPath != "":
			return strings.TrimSuffix(path, "/") + x.countPath
		case x.storedPath != "":
			return strings.TrimSuffix(path, "/") + "/" + x.storedPath
		default:
			return path
		}
	}
	if req.URL.Path = leads(req.URL.Path); req.URL.RawPath != "" {
		req.URL.RawPath = leads(req.URL.RawPath)
	}
}

// cutLast is [strings.Cut] at the last sep.
func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// passOnce makes one attempt. If the server refuses the request, pass returns both its response and
// an error.
func (x *exchange) passOnce(ctx context.Context, done func()) (*modelcall.PassResponse, error) {
	a, err := x.attempt(ctx)
	if err != nil {
		return nil, err
	}
	if !a.isSuccess() {
		defer a.Close()
		return a.passError()
	}
	if a.readStart(); a.headErr != nil && !errors.Is(a.headErr, io.EOF) && !a.hasContent {
		defer a.Close()
		return nil, a.headErr
	}
	if bytes.HasPrefix(bytes.TrimLeft(a.head, " \t\r\n\ufeff"), []byte("<")) { // no dialect responds with markup
		defer a.Close()
		return nil, a.pageError()
	}
	return &modelcall.PassResponse{Status: a.StatusCode, Header: x.passedHeaders(a.Header), Body: &passedBody{a: a, done: done}, Redactor: x.secrets.bytes}, nil
}

// firstBytes is the size of the first reads of a response; maxFirstBytes bounds the bytes
// before its content.
const (
	firstBytes    = 4 << 10
	maxFirstBytes = 4 << 20
)

// readStart waits for the first content of the body, and buffers what comes before it: until
// then the request can be retried. Some servers repeat the whole request before content, so
// the buffer is bounded.
func (a *attemptResponse) readStart() {
	head := make([]byte, 0, firstBytes)
	for !a.hasContent && a.headErr == nil && len(head) < maxFirstBytes {
		if len(head) == cap(head) {
			head = slices.Grow(head, cap(head))
		}
		n, err := a.read(head[len(head):cap(head)])
		head, a.headErr = head[:len(head)+n], err
	}
	a.head = head
}

// passError returns the response for an error status.
func (a *attemptResponse) passError() (*modelcall.PassResponse, error) {
	x := a.x
	body, err := a.readError()
	var e *dragoman.APIError
	if !errors.As(err, &e) || a.StatusCode < 400 {
		return nil, err
	}
	p := &modelcall.PassResponse{Status: a.StatusCode, Header: x.passedHeaders(a.Header), Err: e}
	clean := x.secrets.bytes(body)
	complete := body != nil && a.Header.Get("Content-Encoding") == ""
	if !complete || json.Valid(body) && !json.Valid(clean) { // a key like "null" occurs everywhere
		_, clean, _ = x.codec.EncodeError(e)
		p.Header.Set("Content-Type", "application/json")
		p.Header.Del("Content-Encoding")
	}
	p.Body = io.NopCloser(bytes.NewReader(clean))
	return p, e
}

// passedBody is the body of a successful response that is passed through.
type passedBody struct {
	a    *attemptResponse
	done func()
}

// Read implements io.Reader.
func (b *passedBody) Read(p []byte) (int, error) {
	n, err := b.a.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = b.a.x.redactError(brokenStreamError(err, nil))
	}
	return n, err
}

// Close ends the exchange. It disconnects a server that is still sending.
func (b *passedBody) Close() error {
	if b.done == nil {
		return nil
	}
	b.a.x.logPassed(b.a)
	b.a.Close()
	b.done()
	b.done = nil
	return nil
}
