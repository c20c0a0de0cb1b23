package gateway_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
	"github.com/dragoman-go/dragoman/gateway"
	"github.com/dragoman-go/dragoman/session"
)

// What agent programs do that other clients do not: .ci/agents/run has real ones do it.

// heardLast hears a stream up to an event, and hangs up.
func heardLast(t *testing.T, c *client, body, event string) {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	lines := bufio.NewScanner(c.postBody(ctx, "", true, []byte(body)).Body) //nolint:bodyclose // the test's end does
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "data: ") && strings.Contains(lines.Text(), event) {
			return
		}
	}
	t.Fatalf("no %s came: %v", event, lines.Err())
}

func TestG6_WhoHangsUpAfterTheLastEventHasNotLeft(t *testing.T) {
	for name, c := range map[string]*client{"passed on": {codec: anthropic.Codec{}}, "translated": {codec: openairesponses.Codec{}}} {
		t.Run(name, func(t *testing.T) {
			w := worldOf(t, "", func(rw http.ResponseWriter, r *http.Request) {
				rw.Header().Set("content-type", "text/event-stream")
				_, _ = io.WriteString(rw, anthropicAnswer)
				_ = http.NewResponseController(rw).Flush()
				<-r.Context().Done() // the end of the connection is long in coming
			})
			c.t, c.url = t, w.url
			if _, ok := c.codec.(anthropic.Codec); ok {
				heardLast(t, c, anthropicRequest, `"message_stop"`)
			} else {
				heardLast(t, c, `{"model":"anthropic/m","stream":true,"input":"hi"}`, `"response.completed"`)
			}
			w.wantLog(t, `"msg":"request"`)
			if log := w.logged(); strings.Contains(log, "client_left") || strings.Contains(log, `"error"`) || strings.Contains(log, "WARN") {
				t.Errorf("%s", log)
			}
		})
	}
}

// seenNotes are notes that say what was written when they were put.
type seenNotes struct {
	session.Notes
	written func() string
	seen    []string
}

func (n *seenNotes) Put(ctx context.Context, key string, value []byte, expires time.Time) error {
	n.seen = append(n.seen, n.written())
	if err := ctx.Err(); err != nil {
		return err
	}
	return n.Notes.Put(ctx, key, value, expires)
}

func TestQuirkB17_WhatAClientMayForgetIsKeptBeforeItHearsTheEnd(t *testing.T) {
	for _, tc := range []struct{ path, body, end string }{
		{"/v1/responses", `{"model":"sim/planner","stream":true,"input":"hi"}`, "response.completed"},
		{"/v1/chat/completions", `{"model":"sim/planner","stream":true,"reasoning_effort":"high","messages":[{"role":"user","content":"What is the weather in Oslo?"}],"tools":[{"type":"function","function":{"name":"get_weather","parameters":{"type":"object","properties":{"city":{"type":"string"}}}}}]}`, `"finish_reason":"tool_calls"`},
	} {
		t.Run(tc.path, func(t *testing.T) {
			rec := httptest.NewRecorder()
			notes := &seenNotes{Notes: &session.MemoryNotes{}, written: func() string { return rec.Body.String() }}
			g, err := gateway.New(nil, gateway.Options{Notes: notes})
			if err != nil {
				t.Fatal(err)
			}
			g.ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodPost, tc.path, strings.NewReader(tc.body)))
			if len(notes.seen) == 0 || !strings.Contains(rec.Body.String(), tc.end) {
				t.Fatalf("%d notes: %s", len(notes.seen), rec.Body)
			}
			for _, written := range notes.seen {
				if strings.Contains(written, tc.end) {
					t.Errorf("it had heard the end: %s", written)
				}
			}
		})
	}
}

// logged is what was logged so far.
func (w *world) logged() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.String()
}
