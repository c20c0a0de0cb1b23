package emitcheck

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"

	dragoman "github.com/dragoman-go/dragoman"
)

// Options are what [Handler] is given beside the server that it judges.
type Options struct {
	// Report is told of every answer that breaks a rule, once, when it has ended. It is
	// called by the goroutine of the request.
	Report func(*Violation)
	// Document judges the objects of Responses, too; nil: it does not.
	Document *Document
}

// Violation is an answer that breaks a rule.
type Violation struct {
	Method, Path string
	Dialect      dragoman.Dialect
	Model        string
	Status       int
	Header       http.Header
	Err          error
	// Body is where the rule is broken: the last of what had been written by then.
	Body []byte
}

func (v *Violation) Error() string {
	return fmt.Sprintf("%s %s, %s, model %.80q, status %d: %v", v.Method, v.Path, v.Dialect, v.Model, v.Status, v.Err)
}

func (v *Violation) Unwrap() error { return v.Err }

// Handler is a server that is judged: every answer to a request of a dialect is held
// against the rules for what was asked for, as it is written and without a change to when. What no vendor has at a path is not
// judged unless it is an error. Of an answer whose client has gone, what it was sent
// must be in order; anybody else must have heard the end.
func Handler(next http.Handler, o Options) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t := &tee{ResponseWriter: w}
		t.trial, r = newTrial(r, o)
		aborted := true
		defer func() { // also where it panics, which goes on
			gone := t.gone || left(r.Context())
			if !gone && !aborted { // it may have said nothing
				t.begin(http.StatusOK, w.Header())
			}
			t.end(gone, aborted)
		}()
		next.ServeHTTP(t, r)
		aborted = false
	})
}

// Proxy is a [Handler] before a server that is reached by a URL.
func Proxy(to *url.URL, o Options) http.Handler {
	transport, ok := http.DefaultTransport.(*http.Transport)
	if ok {
		transport = transport.Clone()
		transport.Proxy, transport.DisableCompression = nil, true
	}
	proxy := &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Host = r.In.Host
		},
	}
	return Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Else the first byte of an answer closes the body, and who still looks for its end
		// takes that for a failure of the request.
		_ = http.NewResponseController(w).EnableFullDuplex() // HTTP/2 has it
		proxy.ServeHTTP(w, r)
	}), o)
}

// left reports whether the client of a request has gone. A server that ends says so itself,
// as the cause, and to its clients.
func left(ctx context.Context) bool {
	cause := context.Cause(ctx)
	return errors.Is(cause, context.Canceled) || errors.Is(cause, context.DeadlineExceeded)
}

// tee is where a server writes an answer: to its client, and to who judges it.
type tee struct {
	http.ResponseWriter
	*trial
	gone bool // a write failed
}

// Unwrap is for [http.ResponseController].
func (t *tee) Unwrap() http.ResponseWriter { return t.ResponseWriter }

// WriteHeader implements [http.ResponseWriter].
func (t *tee) WriteHeader(status int) {
	t.ResponseWriter.WriteHeader(status)
	if status >= http.StatusOK {
		t.begin(status, t.Header())
	}
}

// Write implements [http.ResponseWriter].
func (t *tee) Write(p []byte) (int, error) {
	n, err := t.ResponseWriter.Write(p)
	t.begin(http.StatusOK, t.Header())
	t.gone = t.gone || err != nil
	t.take(p[:n])
	return n, err
}

// FlushError sends what was written, and with it the status.
func (t *tee) FlushError() error {
	err := http.NewResponseController(t.ResponseWriter).Flush()
	if !errors.Is(err, errors.ErrUnsupported) {
		t.begin(http.StatusOK, t.Header())
		t.gone = t.gone || err != nil
	}
	return err
}

// Flush implements [http.Flusher].
func (t *tee) Flush() { _ = t.FlushError() }
