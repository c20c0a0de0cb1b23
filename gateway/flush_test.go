package gateway_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
)

// wordStream returns an Anthropic stream in parts: the events before the words, one event per
// word, and the events after them.
func wordStream(all ...string) (begin string, deltas []string, end string) {
	head, tail, _ := strings.Cut(anthropicAnswer, "event: content_block_delta")
	_, end, _ = strings.Cut(tail, "event: content_block_stop")
	for _, word := range all {
		deltas = append(deltas, "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\""+word+"\"}}\n\n")
	}
	return head, deltas, "event: content_block_stop" + end
}

func TestG5_EventIsSentAtOnce(t *testing.T) {
	for _, codec := range []dialect.Codec{anthropic.Codec{}, openaichat.Codec{}} { // passed on, and translated
		begin, deltas, end := wordStream("<one>", "<two>", "<three>")
		seen := make(chan struct{})
		w := newServerWorld(t, "", func(rw http.ResponseWriter, r *http.Request) {
			out := http.NewResponseController(rw)
			rw.Header().Set("content-type", "text/event-stream")
			_, _ = io.WriteString(rw, begin)
			for _, d := range deltas {
				_, _ = io.WriteString(rw, d)
				_ = out.Flush()
				select { // the upstream waits until the client has it
				case <-seen:
				case <-r.Context().Done():
					return
				}
			}
			_, _ = io.WriteString(rw, end)
		})
		c := &client{t: t, codec: codec, url: w.url}
		resp := c.post(t.Context(), &dragoman.Request{Model: "anthropic/m", Stream: true, MaxOutputTokens: new(int64(5)), Messages: []dragoman.Message{userSays("hi")}}) //nolint:bodyclose // the test's end does
		n := 0
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			if n < 3 && strings.Contains(lines.Text(), []string{"<one>", "<two>", "<three>"}[n]) {
				n++
				seen <- struct{}{}
			}
		}
		if n != 3 {
			t.Errorf("%s: %d words came", codec.Dialect(), n)
		}
	}
}

// flushes counts the flushes of a response.
type flushes struct {
	*httptest.ResponseRecorder
	n atomic.Int32
}

func (f *flushes) FlushError() error {
	f.n.Add(1)
	return nil
}

func TestG5_EventsThatArriveTogetherAreSentTogether(t *testing.T) {
	for _, codec := range []dialect.Codec{anthropic.Codec{}, openaichat.Codec{}} { // passed on, and translated
		var all []string
		for range 10 {
			all = append(all, "word")
		}
		begin, deltas, end := wordStream(all...)
		w := newServerWorld(t, "", func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("content-type", "text/event-stream")
			_, _ = io.WriteString(rw, begin+strings.Join(deltas, "")+end)
		})
		req := &dragoman.Request{Model: "anthropic/m", Stream: true, MaxOutputTokens: new(int64(5)), Messages: []dragoman.Message{userSays("hi")}}
		enc, err := codec.EncodeRequest(req, dialect.EncodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		out := &flushes{ResponseRecorder: httptest.NewRecorder()}
		withJudge(t, w.gateway).ServeHTTP(out, httptest.NewRequestWithContext(t.Context(), http.MethodPost, path(codec, req.Model, true), strings.NewReader(string(enc.Body))))
		if got := strings.Count(out.Body.String(), "word"); got != 10 || out.n.Load() > 4 {
			t.Errorf("%s: %d words, flushed %d times", codec.Dialect(), got, out.n.Load())
		}
	}
}

func TestUpstreamConnectionsAreReused(t *testing.T) {
	const clients, turns = 20, 5
	var conns atomic.Int32
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("content-type", "text/event-stream")
		_, _ = io.WriteString(rw, anthropicAnswer)
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			conns.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	t.Setenv("SIM_KEY", "upstream-secret")
	w := newWorldOf(t, s, configOf(s.URL))
	for range turns {
		var wg sync.WaitGroup
		for range clients {
			wg.Go(func() {
				c := &client{t: t, codec: anthropic.Codec{}, url: w.url}
				_, _ = io.Copy(io.Discard, c.postBody(t.Context(), "", true, []byte(anthropicRequest)).Body) //nolint:bodyclose // the test's end does
			})
		}
		wg.Wait()
	}
	if n := conns.Load(); n > 2*clients {
		t.Errorf("%d requests at once took %d connections", clients, n)
	}
}
