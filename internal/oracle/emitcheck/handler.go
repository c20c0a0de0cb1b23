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

// Options are the options of [Handler].
type Options struct {
	// Report is called for every response that breaks a rule, once, when the response has
	// ended. The goroutine of the request calls it.
	Report func(*Violation)
	// Document also checks Responses objects. Nil means no check.
	Document *Document
}

// Violation is a response that breaks a rule.
type Violation struct {
	Method, Path string
	Dialect      dragoman.Dialect
	Model        string
	Status       int
	Header       http.Header
	Err          error
	// Body holds the last bytes written when the rule was broken.
	Body []byte
}

func (v *Violation) Error() string {
	return fmt.Sprintf("%s %s, %s, model %.80q, status %d: %v", v.Method, v.Path, v.Dialect, v.Model, v.Status, v.Err)
}

func (v *Violation) Unwrap() error { return v.Err }

// Handler wraps a server and checks every response to a request of a dialect while it is
// written, without changing its timing. It does not check responses at paths that no vendor
// has, except errors. If the client disconnects, the bytes sent so far must be valid;
// otherwise the response must have an end.
func Handler(next http.Handler, o Options) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t := &tee{ResponseWriter: w}
		t.trial, r = newTrial(r, o)
		aborted := true
		defer func() { // also runs on a panic, which continues
			gone := t.clientGone || left(r.Context())
			if !gone && !aborted { // a handler may write nothing
				t.begin(http.StatusOK, w.Header())
			}
			t.end(gone, aborted)
		}()
		next.ServeHTTP(t, r)
		aborted = false
	})
}

// Proxy is a [Handler] for a server at a URL.
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
		// Otherwise the first byte of a response closes the request body, and a reader that
		// still waits for its end sees a failed request.
		_ = http.NewResponseController(w).EnableFullDuplex() // HTTP/2 always has it
		proxy.ServeHTTP(w, r)
	}), o)
}

// left reports whether the client of a request disconnected. If the server is shutting down, the
// cause is set, and the server ends its responses itself.
func left(ctx context.Context) bool {
	cause := context.Cause(ctx)
	return errors.Is(cause, context.Canceled) || errors.Is(cause, context.DeadlineExceeded)
}

// tee is a response writer that also passes the response to a trial.
type tee struct {
	http.ResponseWriter
	*trial
	clientGone bool // a write failed
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
	t.clientGone = t.clientGone || err != nil
	t.take(p[:n])
	return n, err
}

// FlushError sends what was written, and with it the status.
func (t *tee) FlushError() error {
	err := http.NewResponseController(t.ResponseWriter).Flush()
	if !errors.Is(err, errors.ErrUnsupported) {
		t.begin(http.StatusOK, t.Header())
		t.clientGone = t.clientGone || err != nil
	}
	return err
}

// Flush implements [http.Flusher].
func (t *tee) Flush() { _ = t.FlushError() }
