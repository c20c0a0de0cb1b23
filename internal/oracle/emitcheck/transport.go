package emitcheck

import (
	"errors"
	"io"
	"net/http"
	"sync"
)

// Transport is a client transport that checks responses like [Handler], by what the client
// reads. If the client closes a response before its end, the bytes read so far must be valid.
func Transport(next http.RoundTripper, o Options) http.RoundTripper {
	return &transport{next, o}
}

type transport struct {
	next    http.RoundTripper
	options Options
}

// RoundTrip implements [http.RoundTripper].
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	trial, sent := newTrial(r, t.options)
	resp, err := t.next.RoundTrip(sent)
	if err != nil {
		return nil, err
	}
	trial.begin(resp.StatusCode, resp.Header)
	resp.Body = &judgedBody{ReadCloser: resp.Body, trial: trial}
	return resp, nil
}

// CloseIdleConnections implements the method that [http.Client.CloseIdleConnections] calls.
func (t *transport) CloseIdleConnections() {
	if c, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// judgedBody is a response body that is checked while it is read.
type judgedBody struct {
	io.ReadCloser
	mu    sync.Mutex // may be closed while it is read
	trial *trial
	over  bool
}

func (b *judgedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over {
		return n, err
	}
	b.trial.take(p[:n])
	if err != nil {
		b.end(left(b.trial.r.Context()), !errors.Is(err, io.EOF))
	}
	return n, err
}

func (b *judgedBody) Close() error {
	err := b.ReadCloser.Close()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.end(true, false)
	return err
}

func (b *judgedBody) end(left, aborted bool) {
	if !b.over {
		b.over = true
		b.trial.end(left, aborted)
	}
}
