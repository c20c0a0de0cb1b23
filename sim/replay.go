package sim

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/dragoman-go/dragoman/internal/textkit"
)

// ErrNotRecorded reports that a request is not in the recorded traffic.
var ErrNotRecorded = errors.New("sim: the request is not recorded")

// MismatchError reports that a request is not in the recorded traffic, and which recorded
// request is nearest to it. It wraps [ErrNotRecorded].
type MismatchError struct {
	// Request is the method and URL.
	Request string
	// Nearest is the recorded request that is most similar, or "" if nothing is recorded.
	// Number is its position in the file, from 1.
	Nearest string
	Number  int
	// AlreadyPlayed reports whether the nearest request is equal, but was already played.
	AlreadyPlayed bool
	// Differences describes how the two differ, in order.
	Differences []string
}

func (e *MismatchError) Error() string {
	s := fmt.Sprintf("%v: %s", ErrNotRecorded, e.Request)
	switch {
	case e.Nearest == "":
		return s + "; the recording is empty"
	case e.AlreadyPlayed:
		return s + fmt.Sprintf("; exchange %d is equal, but was already played", e.Number)
	}
	return s + fmt.Sprintf("; the nearest is exchange %d, %s, with these differences:\n  %s", e.Number, e.Nearest, strings.Join(e.Differences, "\n  "))
}

func (e *MismatchError) Unwrap() error { return ErrNotRecorded }

// Replayer is a transport that responds from a file that a [Recorder] wrote, and never uses
// the network. A request that is not recorded fails with a [*MismatchError]. Requests match
// if method, URL and body are equal, apart from credentials; JSON bodies are compared by
// value. Each exchange is played once, in the order of the file. A Replayer is safe for
// concurrent use.
type Replayer struct {
	mu        sync.Mutex
	exchanges []exchangeRecord
	played    []bool
}

// Replay reads a file of recorded traffic.
func Replay(path string) (*Replayer, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	list, err := readTraffic(path, bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	return &Replayer{exchanges: list, played: make([]bool, len(list))}, nil
}

// Unplayed returns the recorded requests that were not made, so that a test can detect a
// missing request.
func (r *Replayer) Unplayed() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for i, x := range r.exchanges {
		if !r.played[i] {
			out = append(out, x.Request.Method+" "+x.Request.URL)
		}
	}
	return out
}

// RoundTrip implements [http.RoundTripper].
func (r *Replayer) RoundTrip(req *http.Request) (*http.Response, error) {
	body, _, err := takeBody(req)
	if err != nil {
		return nil, err
	}
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	sent := secretsOf(req).request(req, body)
	x, err := r.find(sent)
	if err != nil {
		return nil, err
	}
	recorded, err := x.Response.bytes()
	if err != nil {
		return nil, fmt.Errorf("sim: reading a recorded body: %w", err)
	}
	header := http.Header{}
	for name, values := range x.Response.Header {
		if http.CanonicalHeaderKey(name) != "Content-Length" { // redaction may have changed the length
			header[http.CanonicalHeaderKey(name)] = slices.Clone(values)
		}
	}
	var reader io.Reader = bytes.NewReader(recorded)
	if x.Response.Cut {
		reader = io.MultiReader(reader, truncatedBody{})
	}
	return &http.Response{
		Status:     strconv.Itoa(x.Response.Status) + " " + http.StatusText(x.Response.Status),
		StatusCode: x.Response.Status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: io.NopCloser(reader), ContentLength: -1, Request: req,
	}, nil
}

// truncatedBody is the end of a body that was cut off.
type truncatedBody struct{}

func (truncatedBody) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// find returns the first matching exchange that was not played yet.
func (r *Replayer) find(sent requestRecord) (*exchangeRecord, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	miss := &MismatchError{Request: sent.Method + " " + sent.URL}
	nearest := 0
	for i := range r.exchanges {
		x := &r.exchanges[i]
		differ, otherURL := sent.differences(x.Request)
		if len(differ) == 0 && !r.played[i] {
			r.played[i] = true
			return x, nil
		}
		distance := len(differ)
		if otherURL {
			distance += 1 << 20 // a different body is nearer than a different URL
		}
		if r.played[i] && len(differ) > 0 {
			distance += 1 << 10 // an unplayed exchange is nearer than a played one
		}
		if miss.Nearest == "" || distance < nearest {
			nearest = distance
			miss.Nearest, miss.Number, miss.Differences = x.Request.Method+" "+x.Request.URL, i+1, differ
			miss.AlreadyPlayed = len(differ) == 0
		}
	}
	const shown = 10
	if n := len(miss.Differences); n > shown {
		miss.Differences = append(miss.Differences[:shown:shown], fmt.Sprintf("and %d more", n-shown))
	}
	return nil, miss
}

// differences describes how a request differs from a recorded one. otherURL reports whether
// the method or URL differs.
func (sent requestRecord) differences(recorded requestRecord) (out []string, otherURL bool) {
	if sent.Method != recorded.Method || sent.URL != recorded.URL {
		otherURL = true
		out = append(out, fmt.Sprintf("recorded %s %s, sent %s %s", recorded.Method, recorded.URL, sent.Method, sent.URL))
	}
	a, errA := recorded.bytes()
	b, errB := sent.bytes()
	if errA != nil || errB != nil {
		return append(out, "the recorded body cannot be read"), otherURL
	}
	if bytes.Equal(a, b) {
		return out, otherURL
	}
	was, errA := parseTree(a)
	is, errB := parseTree(b)
	if errA != nil || errB != nil {
		return append(out, fmt.Sprintf("the body differs: recorded %s, sent %s", textkit.Count(len(a), "byte"), textkit.Count(len(b), "byte"))), otherURL
	}
	return compareTrees(out, "", was, is), otherURL
}

// compareTrees appends the differences of two JSON values. The order of fields does not
// matter.
func compareTrees(out []string, path string, was, is any) []string {
	differ := func(was, is string) []string {
		return append(out, fmt.Sprintf("at %s: recorded %s, sent %s", pathOr(path), was, is))
	}
	switch a := was.(type) {
	case *object:
		b, ok := is.(*object)
		if !ok {
			return differ("an object", short(is))
		}
		for _, k := range a.keys {
			if !b.has(k) {
				out = append(out, fmt.Sprintf("at %s/%s: recorded %s, sent nothing", path, k, short(a.values[k])))
				continue
			}
			out = compareTrees(out, path+"/"+k, a.values[k], b.values[k])
		}
		for _, k := range b.keys {
			if !a.has(k) {
				out = append(out, fmt.Sprintf("at %s/%s: recorded nothing, sent %s", path, k, short(b.values[k])))
			}
		}
		return out
	case []any:
		b, ok := is.([]any)
		if !ok {
			return differ("a list", short(is))
		}
		if len(a) != len(b) {
			out = differ(strconv.Itoa(len(a))+" elements", strconv.Itoa(len(b)))
		}
		for i := range min(len(a), len(b)) {
			out = compareTrees(out, path+"/"+strconv.Itoa(i), a[i], b[i])
		}
		return out
	default:
		if short(was) != short(is) || string(appendTree(nil, was)) != string(appendTree(nil, is)) {
			return differ(short(was), short(is))
		}
		return out
	}
}

func pathOr(path string) string {
	if path == "" {
		return "/"
	}
	return path
}

// short returns a short form of a value.
func short(v any) string {
	text := string(appendTree(nil, v))
	if s := head(text, 80); s != text {
		return s + "…"
	}
	return text
}
