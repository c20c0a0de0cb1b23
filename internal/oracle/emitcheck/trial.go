package emitcheck

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
)

// trial is one response that is being checked.
type trial struct {
	r        *http.Request
	expected expectation
	body     *requestCopy
	document *Document
	report   func(*Violation)

	status int
	header http.Header
	check  responseCheck
	err    error
	seen   []byte
}

// responseCheck checks the bytes of a response, and its end.
type responseCheck interface {
	add(p []byte) error
	end() error
}

// newTrial returns the trial of the response to a request, and the request to pass on.
func newTrial(r *http.Request, o Options) (*trial, *http.Request) {
	t := &trial{r: r, expected: expect(r), document: o.Document, report: o.Report}
	if t.expected.form == byBody && r.Body != nil {
		t.body = &requestCopy{ReadCloser: r.Body}
		forwarded := *r
		forwarded.Body = t.body
		r = &forwarded
	}
	return t, r
}

// begin chooses the checks when the status is known.
func (t *trial) begin(status int, h http.Header) {
	if t.status != 0 {
		return
	}
	t.status, t.header = status, h.Clone()
	t.check, t.err = t.judge()
}

func (t *trial) judge() (responseCheck, error) {
	if how := t.header.Get("Content-Encoding"); how != "" {
		return unchecked{}, fmt.Errorf("content encoding %q, which the request did not ask for", how)
	}
	a := &t.expected
	switch {
	case a.form == own, t.status >= 300 && t.status < 400:
		return unchecked{}, nil
	case t.status >= 400:
		return t.inOne(t.failure), nil
	case t.body != nil && !a.take(t.body.bytes(t.r.Header.Get("Content-Encoding"))):
		return unchecked{}, errors.New("a successful response to a request that is not a JSON object, or too long to parse")
	}
	switch a.form {
	case whole:
		return t.inOne(t.checkBody), nil
	case streamed:
		return t.stream()
	case listed:
		return t.inOne(t.listed), nil
	default:
		return unchecked{}, nil
	}
}

// failure checks an error. A Gemini error has the form that the request asked for: it is in an
// array if the stream would be one.
func (t *trial) failure(body []byte) error {
	if err := Error(t.expected.dialect, t.status, t.header, body); err != nil {
		return err
	}
	if inArray := bytes.HasPrefix(bytes.TrimSpace(body), []byte{'['}); inArray != t.expected.array {
		return fmt.Errorf("the error is in an array: %v; want %v, as in the stream of the request", inArray, t.expected.array)
	}
	return nil
}

func (t *trial) checkBody(body []byte) error {
	err := Whole(t.expected.dialect, t.status, t.header, body)
	if err == nil && t.expected.legacy {
		err = legacyClient(body)
	}
	if err == nil && t.expected.dialect == dialectname.OpenAIResponses && t.document != nil {
		err = t.document.Whole(body)
	}
	return err
}

func (t *trial) listed(body []byte) error {
	if t.status != http.StatusOK {
		return fmt.Errorf("status %d, want 200", t.status)
	}
	if err := headers(t.expected.dialect, t.header, "application/json"); err != nil {
		return err
	}
	c := &check{}
	t.expected.rules(c.root(body))
	return c.err
}

func (t *trial) stream() (responseCheck, error) {
	if t.status != http.StatusOK {
		return unchecked{}, fmt.Errorf("status %d, want 200 for a stream", t.status)
	}
	j, err := newFrameChecker(t.expected.dialect)
	if err != nil {
		return unchecked{}, err
	}
	if c, ok := j.(*chatStream); ok {
		c.unrequested, c.legacy = !t.expected.usage, t.expected.legacy
	}
	if t.expected.dialect == dialectname.Gemini { // the request determines the form
		want := "text/event-stream"
		if t.expected.array {
			want = "application/json"
		}
		if err := contentType(t.header, want); err != nil {
			return unchecked{}, err
		}
	}
	if r, ok := j.(*responsesStream); ok {
		r.document = t.document
	}
	return &streaming{Checker: newChecker(t.expected.dialect, t.header, j), judge: j, document: t.document}, nil
}

func (t *trial) take(p []byte) {
	if t.err != nil {
		return
	}
	if t.seen = append(t.seen, p...); len(t.seen) > 2*maxSeen {
		t.seen = append(t.seen[:0], t.seen[len(t.seen)-maxSeen:]...)
	}
	t.err = t.check.add(p)
}

// maxSeen limits the bytes of a response in a violation.
const maxSeen = 4 << 10

// end checks the end of a response, unless the client disconnected, and reports the first
// violation.
func (t *trial) end(left, aborted bool) {
	switch {
	case t.err != nil, t.expected.form == own, left:
	case aborted:
		t.err = errors.New("the response was aborted without an error")
	default:
		t.err = t.check.end()
	}
	if t.err != nil {
		t.report(t.violation())
	}
}

func (t *trial) violation() *Violation {
	return &Violation{
		Method: t.r.Method, Path: t.r.URL.Path, Dialect: t.expected.dialect, Model: t.expected.model,
		Status: t.status, Header: t.header, Err: t.err, Body: t.seen[max(0, len(t.seen)-maxSeen):],
	}
}

// unchecked is a response without rules.
type unchecked struct{}

func (unchecked) add([]byte) error { return nil }
func (unchecked) end() error       { return nil }

// bodyCheck is a response that is checked when it is complete.
type bodyCheck struct {
	body []byte
	by   func(body []byte) error
}

func (t *trial) inOne(by func([]byte) error) responseCheck { return &bodyCheck{by: by} }

func (a *bodyCheck) add(p []byte) error {
	if len(a.body)+len(p) > maxBody {
		return fmt.Errorf("more than %d bytes, too long to check", maxBody)
	}
	a.body = append(a.body, p...)
	return nil
}

func (a *bodyCheck) end() error { return a.by(a.body) }

// streaming is a response that is checked while it arrives.
type streaming struct {
	*Checker
	judge    frameChecker
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

// Line returns a violation as one line of a log.
func (v *Violation) Line() string {
	return strings.ReplaceAll(v.Error(), "\n", " ") + fmt.Sprintf(": …%q", v.Body[max(0, len(v.Body)-500):])
}
