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

	"github.com/dragoman-go/dragoman/internal/text/words"
)

// ErrNotRecorded says that a request is not in the traffic that is played.
var ErrNotRecorded = errors.New("sim: the request is not recorded")

// MismatchError says that a request is not in the traffic that is played, and what
// is nearest to it. It wraps [ErrNotRecorded].
type MismatchError struct {
	// Request is its method and URL.
	Request string
	// Nearest is the recorded request that is most like it; empty where there is
	// none. Number is its place in the file, from 1.
	Nearest string
	Number  int
	// Played says that the nearest is the same, and was played already.
	Played bool
	// Differences are where the two differ, the first ones first.
	Differences []string
}

func (e *MismatchError) Error() string {
	s := fmt.Sprintf("%v: %s", ErrNotRecorded, e.Request)
	switch {
	case e.Nearest == "":
		return s + "; nothing is recorded"
	case e.Played:
		return s + fmt.Sprintf("; exchange %d is the same, and was played already", e.Number)
	}
	return s + fmt.Sprintf("; the nearest is exchange %d, %s, which differs:\n  %s", e.Number, e.Nearest, strings.Join(e.Differences, "\n  "))
}

func (e *MismatchError) Unwrap() error { return ErrNotRecorded }

// Replayer is a transport that answers from a file that a [Recorder] wrote, and
// never from the network: a request that is not in it is a [*MismatchError]. A
// request is in it where method, URL and body are the same, credentials aside;
// bodies of JSON are compared by what they say. Each exchange is played once, in the
// order of the file. It is safe for concurrent use.
type Replayer struct {
	mu        sync.Mutex
	exchanges []exchangeRecord
	played    []bool
}

// Replay reads a file of traffic.
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

// Unplayed lists the requests that nobody made, for a test to find that one is
// missing.
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
	asked := secretsOf(req).request(req, body)
	x, err := r.find(asked)
	if err != nil {
		return nil, err
	}
	answer, err := x.Response.bytes()
	if err != nil {
		return nil, fmt.Errorf("sim: a recorded body: %w", err)
	}
	header := http.Header{}
	for name, values := range x.Response.Header {
		if http.CanonicalHeaderKey(name) != "Content-Length" { // what was left out of it may have changed it
			header[http.CanonicalHeaderKey(name)] = slices.Clone(values)
		}
	}
	var reader io.Reader = bytes.NewReader(answer)
	if x.Response.Cut {
		reader = io.MultiReader(reader, brokenOff{})
	}
	return &http.Response{
		Status:     strconv.Itoa(x.Response.Status) + " " + http.StatusText(x.Response.Status),
		StatusCode: x.Response.Status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: io.NopCloser(reader), ContentLength: -1, Request: req,
	}, nil
}

// brokenOff is the end of a body that did not come to its end.
type brokenOff struct{}

func (brokenOff) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// find takes the first exchange of a request that was not played yet.
func (r *Replayer) find(asked requestRecord) (*exchangeRecord, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	miss := &MismatchError{Request: asked.Method + " " + asked.URL}
	nearest := 0
	for i := range r.exchanges {
		x := &r.exchanges[i]
		differ, elsewhere := asked.differences(x.Request)
		if len(differ) == 0 && !r.played[i] {
			r.played[i] = true
			return x, nil
		}
		distance := len(differ)
		if elsewhere {
			distance += 1 << 20 // another body is nearer than another place
		}
		if r.played[i] && len(differ) > 0 {
			distance += 1 << 10 // and what comes next than what is over
		}
		if miss.Nearest == "" || distance < nearest {
			nearest = distance
			miss.Nearest, miss.Number, miss.Differences = x.Request.Method+" "+x.Request.URL, i+1, differ
			miss.Played = len(differ) == 0
		}
	}
	const shown = 10
	if n := len(miss.Differences); n > shown {
		miss.Differences = append(miss.Differences[:shown:shown], fmt.Sprintf("and %d more", n-shown))
	}
	return nil, miss
}

// differences tell in what a request differs from a recorded one; elsewhere: it
// goes to another place.
func (asked requestRecord) differences(recorded requestRecord) (out []string, elsewhere bool) {
	if asked.Method != recorded.Method || asked.URL != recorded.URL {
		elsewhere = true
		out = append(out, fmt.Sprintf("recorded %s %s, sent %s %s", recorded.Method, recorded.URL, asked.Method, asked.URL))
	}
	a, errA := recorded.bytes()
	b, errB := asked.bytes()
	if errA != nil || errB != nil {
		return append(out, "the recorded body cannot be read"), elsewhere
	}
	if bytes.Equal(a, b) {
		return out, elsewhere
	}
	was, errA := parseTree(a)
	is, errB := parseTree(b)
	if errA != nil || errB != nil {
		return append(out, fmt.Sprintf("the body differs: recorded %s, sent %s", words.Count(len(a), "byte"), words.Count(len(b), "byte"))), elsewhere
	}
	return compareTrees(out, "", was, is), elsewhere
}

// compareTrees adds where two JSON values differ. The order of members means
// nothing.
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

// short is a value in a few words.
func short(v any) string {
	text := string(appendTree(nil, v))
	if s := head(text, 80); s != text {
		return s + "…"
	}
	return text
}
