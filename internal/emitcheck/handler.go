package emitcheck

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"

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

// Handler is a server that is judged: every answer to a request of the five dialects
// that clients speak, and Bedrock's, is held against the rules for what was asked for,
// as it is written and without a change to when. What no vendor has at a path is not
// judged unless it is an error. Of an answer whose client has gone, what it was sent
// must be in order; anybody else must have heard the end.
func Handler(next http.Handler, o Options) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t := &tee{ResponseWriter: w, r: r, asked: whatIsAsked(r), document: o.Document}
		if t.asked.form == byBody && r.Body != nil {
			t.heard = &heard{ReadCloser: r.Body}
			again := *r
			again.Body = t.heard
			r = &again
		}
		aborted := true
		defer func() { // also where it panics, which goes on
			if t.end(aborted); t.err != nil {
				o.Report(t.violation())
			}
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

// tee is where a server writes an answer: to its client, and to who judges it.
type tee struct {
	http.ResponseWriter
	r        *http.Request
	asked    asked
	heard    *heard
	document *Document

	status int
	header http.Header
	answer answer
	gone   bool // a write failed
	err    error
	seen   []byte
}

// answer judges the bytes of an answer, and its end.
type answer interface {
	add(p []byte) error
	end() error
}

// Unwrap is for [http.ResponseController].
func (t *tee) Unwrap() http.ResponseWriter { return t.ResponseWriter }

// WriteHeader implements [http.ResponseWriter].
func (t *tee) WriteHeader(status int) {
	t.ResponseWriter.WriteHeader(status)
	if status >= http.StatusOK {
		t.begin(status)
	}
}

// Write implements [http.ResponseWriter].
func (t *tee) Write(p []byte) (int, error) {
	n, err := t.ResponseWriter.Write(p)
	t.begin(http.StatusOK)
	t.gone = t.gone || err != nil
	t.take(p[:n])
	return n, err
}

// FlushError sends what was written, and with it the status.
func (t *tee) FlushError() error {
	err := http.NewResponseController(t.ResponseWriter).Flush()
	if !errors.Is(err, errors.ErrUnsupported) {
		t.begin(http.StatusOK)
		t.gone = t.gone || err != nil
	}
	return err
}

// Flush implements [http.Flusher].
func (t *tee) Flush() { _ = t.FlushError() }

// begin finds out who judges the answer, when its status is there.
func (t *tee) begin(status int) {
	if t.status != 0 {
		return
	}
	t.status, t.header = status, t.ResponseWriter.Header().Clone()
	t.answer, t.err = t.judge()
}

func (t *tee) judge() (answer, error) {
	if how := t.header.Get("Content-Encoding"); how != "" {
		return unjudged{}, fmt.Errorf("it is packed with %q, which nobody has asked for", how)
	}
	a := &t.asked
	switch {
	case a.form == own, t.status >= 300 && t.status < 400:
		return unjudged{}, nil
	case t.status >= 400:
		return t.inOne(func(body []byte) error { return Error(a.dialect, t.status, t.header, body) }), nil
	case t.heard != nil && !a.take(t.heard.bytes(t.r.Header.Get("Content-Encoding"))):
		return unjudged{}, errors.New("it is no error, and the request is no JSON object, or too long to be told")
	}
	switch a.form {
	case whole:
		return t.inOne(t.whole), nil
	case streamed:
		return t.stream()
	case listed:
		return t.inOne(t.listed), nil
	default:
		return unjudged{}, nil
	}
}

func (t *tee) whole(body []byte) error {
	err := Whole(t.asked.dialect, t.status, t.header, body)
	if err == nil && t.asked.dialect == dragoman.OpenAIResponses && t.document != nil {
		err = t.document.Whole(body)
	}
	return err
}

func (t *tee) listed(body []byte) error {
	if t.status != http.StatusOK {
		return fmt.Errorf("status %d: an answer has status 200", t.status)
	}
	if err := contentType(t.header, "application/json"); err != nil {
		return err
	}
	c := &check{}
	t.asked.rules(c.root(body))
	return c.err
}

func (t *tee) stream() (answer, error) {
	if t.status != http.StatusOK {
		return unjudged{}, fmt.Errorf("status %d: a stream has status 200", t.status)
	}
	j, err := judgeOf(t.asked.dialect)
	if err != nil {
		return unjudged{}, err
	}
	if c, ok := j.(*chatStream); ok {
		c.unasked = !t.asked.usage
	}
	if t.asked.dialect == dragoman.Gemini { // the request says which form it has
		want := "text/event-stream"
		if t.asked.array {
			want = "application/json"
		}
		if err := contentType(t.header, want); err != nil {
			return unjudged{}, err
		}
	}
	return &streaming{Checker: newChecker(t.asked.dialect, t.header, j), judge: j, document: t.document}, nil
}

func (t *tee) take(p []byte) {
	if t.err != nil {
		return
	}
	if t.seen = append(t.seen, p...); len(t.seen) > 2*maxSeen {
		t.seen = append(t.seen[:0], t.seen[len(t.seen)-maxSeen:]...)
	}
	t.err = t.answer.add(p)
}

// maxSeen is how much of an answer a violation shows.
const maxSeen = 4 << 10

// end judges the end of an answer, if somebody is there to hear it.
func (t *tee) end(aborted bool) {
	switch {
	case t.err != nil, t.asked.form == own, t.left():
		return
	case aborted:
		t.err = errors.New("it is broken off without a word")
		return
	}
	t.begin(http.StatusOK)
	if t.err == nil {
		t.err = t.answer.end()
	}
}

// left reports whether the client has gone. A server that ends says so itself, as the
// cause, and to its clients.
func (t *tee) left() bool {
	cause := context.Cause(t.r.Context())
	return t.gone || errors.Is(cause, context.Canceled) || errors.Is(cause, context.DeadlineExceeded)
}

func (t *tee) violation() *Violation {
	return &Violation{
		Method: t.r.Method, Path: t.r.URL.Path, Dialect: t.asked.dialect, Model: t.asked.model,
		Status: t.status, Header: t.header, Err: t.err, Body: t.seen[max(0, len(t.seen)-maxSeen):],
	}
}

// unjudged is an answer that has no rules.
type unjudged struct{}

func (unjudged) add([]byte) error { return nil }
func (unjudged) end() error       { return nil }

// inOne is an answer that is judged when all of it is there.
type inOne struct {
	body []byte
	by   func(body []byte) error
}

func (t *tee) inOne(by func([]byte) error) answer { return &inOne{by: by} }

func (a *inOne) add(p []byte) error {
	if len(a.body)+len(p) > maxBody {
		return fmt.Errorf("more than %d bytes, which is too long to be judged", maxBody)
	}
	a.body = append(a.body, p...)
	return nil
}

func (a *inOne) end() error { return a.by(a.body) }

// streaming is an answer that is judged as it comes.
type streaming struct {
	*Checker
	judge    judge
	document *Document
}

func (a *streaming) add(p []byte) error {
	_, err := a.Write(p)
	return err
}

func (a *streaming) end() error {
	err := a.Close()
	if r, ok := a.judge.(*responsesStream); ok && err == nil && a.document != nil {
		err = a.document.end(r.last)
	}
	return err
}

// Line is a violation as one line of a log.
func (v *Violation) Line() string {
	return strings.ReplaceAll(v.Error(), "\n", " ") + fmt.Sprintf(": …%q", v.Body[max(0, len(v.Body)-500):])
}
