package emitcheck

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
)

// trial is one answer that is being judged.
type trial struct {
	r        *http.Request
	asked    asked
	heard    *heard
	document *Document
	report   func(*Violation)

	status int
	header http.Header
	answer answer
	err    error
	seen   []byte
}

// answer judges the bytes of an answer, and its end.
type answer interface {
	add(p []byte) error
	end() error
}

// newTrial is that of the answer to a request, which is to be sent on as the second result.
func newTrial(r *http.Request, o Options) (*trial, *http.Request) {
	t := &trial{r: r, asked: whatIsAsked(r), document: o.Document, report: o.Report}
	if t.asked.form == byBody && r.Body != nil {
		t.heard = &heard{ReadCloser: r.Body}
		again := *r
		again.Body = t.heard
		r = &again
	}
	return t, r
}

// begin finds out who judges the answer, when its status is there.
func (t *trial) begin(status int, h http.Header) {
	if t.status != 0 {
		return
	}
	t.status, t.header = status, h.Clone()
	t.answer, t.err = t.judge()
}

func (t *trial) judge() (answer, error) {
	if how := t.header.Get("Content-Encoding"); how != "" {
		return unjudged{}, fmt.Errorf("it is packed with %q, which nobody has asked for", how)
	}
	a := &t.asked
	switch {
	case a.form == own, t.status >= 300 && t.status < 400:
		return unjudged{}, nil
	case t.status >= 400:
		return t.inOne(t.failure), nil
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

// failure judges an error. One of Gemini's has the form of what was asked for: it is an
// array where the stream is one.
func (t *trial) failure(body []byte) error {
	if err := Error(t.asked.dialect, t.status, t.header, body); err != nil {
		return err
	}
	if inArray := bytes.HasPrefix(bytes.TrimSpace(body), []byte{'['}); inArray != t.asked.array {
		return fmt.Errorf("an error in an array: %v, and what was asked for is one: %v", inArray, t.asked.array)
	}
	return nil
}

func (t *trial) whole(body []byte) error {
	err := Whole(t.asked.dialect, t.status, t.header, body)
	if err == nil && t.asked.legacy {
		err = untold(body)
	}
	if err == nil && t.asked.dialect == dialectname.OpenAIResponses && t.document != nil {
		err = t.document.Whole(body)
	}
	return err
}

func (t *trial) listed(body []byte) error {
	if t.status != http.StatusOK {
		return fmt.Errorf("status %d: an answer has status 200", t.status)
	}
	if err := headers(t.asked.dialect, t.header, "application/json"); err != nil {
		return err
	}
	c := &check{}
	t.asked.rules(c.root(body))
	return c.err
}

func (t *trial) stream() (answer, error) {
	if t.status != http.StatusOK {
		return unjudged{}, fmt.Errorf("status %d: a stream has status 200", t.status)
	}
	j, err := judgeOf(t.asked.dialect)
	if err != nil {
		return unjudged{}, err
	}
	if c, ok := j.(*chatStream); ok {
		c.unasked, c.untold = !t.asked.usage, t.asked.legacy
	}
	if t.asked.dialect == dialectname.Gemini { // the request says which form it has
		want := "text/event-stream"
		if t.asked.array {
			want = "application/json"
		}
		if err := contentType(t.header, want); err != nil {
			return unjudged{}, err
		}
	}
	if r, ok := j.(*responsesStream); ok {
		r.document = t.document
	}
	return &streaming{Checker: newChecker(t.asked.dialect, t.header, j), judge: j, document: t.document}, nil
}

func (t *trial) take(p []byte) {
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

// end judges the end of an answer, if somebody is there to hear it, and reports what was
// wrong with all of it.
func (t *trial) end(left, aborted bool) {
	switch {
	case t.err != nil, t.asked.form == own, left:
	case aborted:
		t.err = errors.New("it is broken off without a word")
	default:
		t.err = t.answer.end()
	}
	if t.err != nil {
		t.report(t.violation())
	}
}

func (t *trial) violation() *Violation {
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

func (t *trial) inOne(by func([]byte) error) answer { return &inOne{by: by} }

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
