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
	"github.com/dragoman-go/dragoman/internal/serving/passthrough"
)

// Pass sends a request that is in the client's dialect as it is, and gives the
// answer as it comes: nothing is repaired, adapted or checked on either way, and
// extensions have no part in it (see [Client.Transparent]). Address, credential,
// headers, timeouts, log and the bound of the request are those of Generate and
// Stream, and so is asking again, until the first content of a good answer is there.
//
// A server that refuses has answered: its words are in the response, with its Err.
// An error says that there is no answer to pass on. A redirect is one: it is meant
// for us, and so is a web page, whatever its status: the base URL may be wrong.
func (c *Client) Pass(ctx context.Context, p passthrough.Request) (*passthrough.Response, error) {
	x := newExchange(c, nil, p.Stream)
	if x.model == "" {
		x.model = p.Model
	}
	x.passed, x.query, x.kept, x.method = p.Header, p.Query, p.Kept, p.Method
	if p.Count {
		if x.count = x.wire.Endpoint.Count; x.count == "" {
			return nil, fmt.Errorf("provider: %s counts no tokens: %w", c.Dialect(), dragoman.ErrUnsupported)
		}
	}
	if !plainPath(p.Kept) {
		return nil, fmt.Errorf("provider: %.80q names nothing that is kept: %w", p.Kept, dragoman.ErrInvalid)
	}
	if err := x.load(p.Body); err != nil {
		return nil, err
	}
	ctx, done := x.begin(ctx)
	for {
		passed, err := x.pass(ctx, done)
		if err == nil {
			return passed, nil
		}
		if !x.again(ctx, err) {
			done()
			if passed != nil {
				return passed, nil
			}
			return nil, x.told(err)
		}
	}
}

// plainPath reports whether a text, which may be empty, is a path that leads nowhere else.
func plainPath(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool {
		return r != '/' && r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
}

// about makes a request one that asks no model: about what the server keeps, or for a count.
func (x *exchange) about(req *http.Request) {
	if x.method != "" {
		req.Method = x.method
	}
	leads := func(path string) string {
		switch {
		case strings.HasPrefix(x.count, ":"):
			path, _, _ = cutLast(path, ":")
			return path + x.count
		case x.count != "":
			return strings.TrimSuffix(path, "/") + x.count
		case x.kept != "":
			return strings.TrimSuffix(path, "/") + "/" + x.kept
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

// pass makes one attempt. An answer that is a refusal is returned with its error.
func (x *exchange) pass(ctx context.Context, done func()) (*passthrough.Response, error) {
	a, err := x.attempt(ctx)
	if err != nil {
		return nil, err
	}
	if !a.good() {
		defer a.Close()
		return a.refused()
	}
	if a.first(); a.after != nil && !errors.Is(a.after, io.EOF) && !a.begun {
		defer a.Close()
		return nil, a.after
	}
	if bytes.HasPrefix(bytes.TrimLeft(a.head, " \t\r\n\ufeff"), []byte("<")) { // no dialect responds with markup
		defer a.Close()
		return nil, a.page()
	}
	return &passthrough.Response{Status: a.StatusCode, Header: x.shown(a.Header), Body: &passedBody{a: a, done: done}, Redactor: x.secrets.bytes}, nil
}

// firstBytes is the size of the first reads of a response; maxFirstBytes bounds the bytes
// before its content.
const (
	firstBytes    = 4 << 10
	maxFirstBytes = 4 << 20
)

// first waits for the first content of the body, and buffers what comes before it: until
// then the request can be retried. Some servers repeat the whole request before content, so
// the buffer is bounded.
func (a *answer) first() {
	head := make([]byte, 0, firstBytes)
	for !a.begun && a.after == nil && len(head) < maxFirstBytes {
		if len(head) == cap(head) {
			head = slices.Grow(head, cap(head))
		}
		n, err := a.read(head[len(head):cap(head)])
		head, a.after = head[:len(head)+n], err
	}
	a.head = head
}

// refused is an answer whose status is not a good one.
func (a *answer) refused() (*passthrough.Response, error) {
	x := a.x
	body, err := a.refusal()
	var e *dragoman.APIError
	if !errors.As(err, &e) || a.StatusCode < 400 {
		return nil, err
	}
	p := &passthrough.Response{Status: a.StatusCode, Header: x.shown(a.Header), Err: e}
	clean := x.secrets.bytes(body)
	whole := body != nil && a.Header.Get("Content-Encoding") == ""
	if !whole || json.Valid(body) && !json.Valid(clean) { // a key like "null" stands everywhere
		_, clean, _ = x.codec.EncodeError(e)
		p.Header.Set("Content-Type", "application/json")
		p.Header.Del("Content-Encoding")
	}
	p.Body = io.NopCloser(bytes.NewReader(clean))
	return p, e
}

// passedBody is a good answer while it is passed on.
type passedBody struct {
	a    *answer
	done func()
}

// Read implements io.Reader.
func (b *passedBody) Read(p []byte) (int, error) {
	n, err := b.a.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = b.a.x.told(broken(err, nil))
	}
	return n, err
}

// Close ends the exchange. A server that is still sending is cut off.
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
