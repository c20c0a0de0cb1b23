package sim

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"sync"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/framing"
)

// Recorder is a transport that records the traffic through it, for a [Replayer] to replay. It
// leaves out credentials: headers and parameters that hold them, and their values in any
// other place. It passes a body through unchanged, and records it when it ends or when its
// reader closes it.
//
//	rec, err := sim.Record("testdata/openai.traffic", nil)
//	client := &http.Client{Transport: rec}
//	…
//	err = rec.Close()
type Recorder struct {
	next http.RoundTripper

	mu   sync.Mutex
	file io.WriteCloser
	err  error
}

// Record returns a recorder that writes to a file, which only its owner can read. It
// overwrites an existing file. Requests go on to next; nil means [http.DefaultTransport].
func Record(path string, next http.RoundTripper) (*Recorder, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() { // an existing file may be readable for others
		if err := f.Chmod(0o600); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	if next == nil {
		next = http.DefaultTransport
	}
	return &Recorder{next: next, file: f}, nil
}

// Close ends the recording and returns the first write error. Responses that are still being
// read are not recorded.
func (r *Recorder) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.file == nil {
		return r.err
	}
	err := r.file.Close()
	r.file = nil
	return errors.Join(r.err, err)
}

// RoundTrip implements [http.RoundTripper].
func (r *Recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	body, again, err := takeBody(req)
	if err != nil {
		return nil, err
	}
	hidden := secretsOf(req)
	resp, err := r.next.RoundTrip(again)
	if err != nil {
		return nil, err // nothing to replay
	}
	x := exchangeRecord{V: trafficVersion, Request: hidden.request(req, body)}
	x.Response = responseRecord{Status: resp.StatusCode, Header: hidden.header(resp.Header, isSecret)}
	resp.Body = &recordedBody{ReadCloser: resp.Body, whole: func(b []byte, cut bool) {
		x.Response.bodyRecord, x.Response.Cut = recordBody(hidden.bytes(b)), cut
		r.write(x)
	}, tooLarge: func() { r.fail(dragoman.ErrTooLarge) }}
	return resp, nil
}

func (r *Recorder) write(x exchangeRecord) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(x)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil && r.file != nil {
		_, err = r.file.Write(b.Bytes())
	}
	if r.err == nil {
		r.err = err
	}
}

func (r *Recorder) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = err
	}
}

// recordedBody passes a body through and stores a copy. It calls whole once. It may be closed
// while it is read.
type recordedBody struct {
	io.ReadCloser
	mu       sync.Mutex
	copied   []byte
	done     bool
	whole    func(b []byte, cut bool)
	tooLarge func()
}

func (b *recordedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.record(p[:n])
	if err != nil {
		b.finish(!errors.Is(err, io.EOF))
	}
	return n, err
}

// record adds to the copy. It drops the copy once that is too large.
func (b *recordedBody) record(p []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.done {
		return
	}
	if b.copied = append(b.copied, p...); len(b.copied) > framing.DefaultMaxBody {
		b.done, b.copied = true, nil
		b.tooLarge()
	}
}

func (b *recordedBody) Close() error {
	b.finish(true)
	return b.ReadCloser.Close()
}

func (b *recordedBody) finish(cut bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.done {
		b.done = true
		b.whole(b.copied, cut)
	}
}
