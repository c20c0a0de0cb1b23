package gateway_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// idleConn opens a connection without sending a request.
func (r *rig) idleConn() (conn net.Conn, ask func(hr *http.Request) (*http.Response, error)) {
	r.t.Helper()
	conn, err := r.front.dial(r.t.Context(), "", "")
	if err != nil {
		r.t.Fatal(err)
	}
	return conn, func(hr *http.Request) (*http.Response, error) {
		go func() { _ = hr.Write(conn) }()
		return http.ReadResponse(bufio.NewReader(conn), hr)
	}
}

func TestG5_ShutdownDrainsStreams(t *testing.T) {
	for _, inTime := range []bool{true, false} {
		withRig(t, "", func(rw http.ResponseWriter, r *http.Request) {
			all := encodeEvents(dialectOf(r), simulatedEvents("one two three"))
			writeResponse(rw, r, true, all[:4]...)
			wait := 500 * time.Millisecond // of the second that a rig drains
			if !inTime {
				wait = time.Hour
			}
			select {
			case <-time.After(wait):
				writeResponse(rw, r, true, all[4:]...)
			case <-r.Context().Done():
			}
		}, func(r *rig) {
			t := r.t
			conn, ask := r.idleConn() //nolint:bodyclose // there is none
			defer conn.Close()
			replies := r.openStreams()
			begun := time.Now()
			r.shutdown()
			synctest.Wait()
			if _, err := r.clients.Do(r.request(t.Context(), pairs()[0], true)); err == nil { //nolint:bodyclose // there is none
				t.Error("a new connection is taken")
			}
			if _, err := ask(r.request(t.Context(), pairs()[0], true)); !errors.Is(err, io.ErrUnexpectedEOF) { //nolint:bodyclose // there is none
				t.Errorf("a new request is taken: %v", err)
			}
			for _, w := range pairs() {
				a := replies(w)
				got, err := a.decode()
				switch {
				case inTime && (err != nil || textOf(got) != "one two three"):
					t.Errorf("%s: %v: %s", w, err, a.body)
				case !inTime && (err == nil || !strings.Contains(a.apiError(t).Message, "shutting down") || !strings.Contains(string(a.body), "one")):
					t.Errorf("%s: %v: %s", w, err, a.body)
				}
				if err := a.check(); err != nil {
					t.Errorf("%s: %v: %s", w, err, a.body)
				}
			}
			r.ended <- <-r.ended
			if took := time.Since(begun); took > 6*time.Second {
				t.Errorf("it took %v to end", took)
			}
			if n := strings.Count(r.logLines(), `"error":"`); inTime && n != 0 || !inTime && n < len(pairs()) {
				t.Errorf("%d errors: %s", n, r.logged())
			}
		})
	}
}

func TestG5_ShutdownEndsUnstreamedResponses(t *testing.T) {
	for _, w := range pairs() {
		withRig(t, "", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, func(r *rig) {
			got := make(chan *reply, 1)
			go func() { got <- r.roundTrip(w, false) }()
			synctest.Wait()
			r.shutdown()
			a := <-got
			if e := a.apiError(r.t); a.status < 500 || a.status > 529 || !strings.Contains(e.Message, "shutting down") || a.check() != nil {
				r.t.Errorf("%s: %d %s, %v", w, a.status, a.body, a.check())
			}
		})
	}
}

func TestG5_SlowClientDoesNotBlockShutdown(t *testing.T) {
	withRig(t, "gateway: {heartbeat: none}\n", func(rw http.ResponseWriter, r *http.Request) {
		writeResponse(rw, r, true, encodeEvents(dialectOf(r), simulatedEvents(strings.Repeat("many words ", 10_000)))...)
	}, func(r *rig) {
		for _, w := range pairs() {
			resp := r.send(r.request(r.t.Context(), w, true))
			defer resp.Body.Close()
		}
		synctest.Wait()
		begun := time.Now()
		r.shutdown()
		r.ended <- <-r.ended
		if took := time.Since(begun); took > 7*time.Second {
			r.t.Errorf("it took %v", took)
		}
	})
}

func TestG3_HeadersAndBodiesAreBounded(t *testing.T) {
	withRig(t, "gateway: {limits: {header_bytes: 10000, body_bytes: 2000}}\n", func(rw http.ResponseWriter, r *http.Request) {
		writeResponse(rw, r, false, textResponse(dialectOf(r), "hello"))
	}, func(r *rig) {
		t := r.t
		for _, w := range pairs() {
			before := r.requests.Load()
			for _, tc := range []struct {
				header, body int
				status       int
			}{{100, 100, 200}, {9000, 1000, 200}, {20_000, 100, 431}, {100, 3000, 413}} {
				hr := r.request(t.Context(), w, false)
				hr.Header.Set("X-Long", strings.Repeat("x", tc.header))
				hr.Body = io.NopCloser(io.MultiReader(hr.Body, strings.NewReader(strings.Repeat(" ", tc.body))))
				hr.ContentLength = -1
				resp, err := r.clients.Do(hr) //nolint:bodyclose // read does
				var cut *net.OpError
				if tc.status == 431 && (errors.As(err, &cut) || errors.Is(err, io.ErrClosedPipe)) {
					continue // nobody reads the rest of it
				}
				if err != nil {
					t.Fatal(err)
				}
				if a := r.read(resp, w.client, false); a.status != tc.status || tc.status == 413 && a.check() != nil {
					t.Errorf("%s %d %d: %d %s", w, tc.header, tc.body, a.status, a.body)
				}
			}
			if n := r.requests.Load() - before; n != 2 {
				t.Errorf("%s: %d upstream requests", w, n)
			}
		}
	})
}

func TestG5_SlowHeadersTimeOut(t *testing.T) {
	withRig(t, "", func(http.ResponseWriter, *http.Request) {}, func(r *rig) {
		conn, _ := r.idleConn() //nolint:bodyclose // there is none
		defer conn.Close()
		begun := time.Now()
		go func() { _, _ = io.WriteString(conn, "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\n") }()
		_, _ = io.ReadAll(conn)
		if took := time.Since(begun); took < 5*time.Second || took > 20*time.Second {
			r.t.Errorf("after %v", took)
		}
	})
}
