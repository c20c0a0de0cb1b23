package agent_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/provider"
)

// silentModel is a model that never answers.
type silentModel struct{}

func (silentModel) Generate(ctx context.Context, _ *dragoman.Request) (*dragoman.Response, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (silentModel) Stream(ctx context.Context, _ *dragoman.Request) iter.Seq2[dragoman.Event, error] {
	return func(yield func(dragoman.Event, error) bool) {
		<-ctx.Done()
		yield(nil, ctx.Err())
	}
}

func TestDefaultTimeLimit(t *testing.T) {
	for limit, want := range map[time.Duration]time.Duration{0: 6 * time.Hour, time.Minute: time.Minute, -1: 48 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 48*time.Hour)
			defer cancel()
			began := time.Now()
			_, err := agent.Agent{Model: silentModel{}, Limits: agent.Limits{Time: limit}}.Run(ctx, "hi")
			var over *agent.LimitError
			if took := time.Since(began); took != want || errors.As(err, &over) != (limit >= 0) {
				t.Errorf("limit %v: %v after %v", limit, err, took)
			}
		})
	}
}

// heartbeatTransport is a server that sends only heartbeats for the model "dead".
type heartbeatTransport struct{}

func (heartbeatTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	body, _ := io.ReadAll(r.Body)
	resp := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Request: r}
	stream := strings.Contains(string(body), `"stream":true`)
	switch {
	case !strings.Contains(string(body), `"dead"`) && stream:
		resp.Body = io.NopCloser(strings.NewReader("data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"hello\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"))
		return resp, nil
	case !strings.Contains(string(body), `"dead"`):
		resp.Body = io.NopCloser(strings.NewReader(`{"id":"c","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"hello"},"finish_reason":"stop"}]}`))
		return resp, nil
	}
	beat := "\n"
	if stream {
		beat = ": ping\n\n"
	}
	r1, w := io.Pipe()
	resp.Body = r1
	go func() {
		for {
			select {
			case <-r.Context().Done():
				_ = w.CloseWithError(r.Context().Err())
				return
			case <-time.After(time.Second):
				_, _ = io.WriteString(w, beat)
			}
		}
	}()
	return resp, nil
}

func TestModelThatOnlySendsHeartbeatsTimesOut(t *testing.T) {
	open := func(name string) *provider.Client {
		return &provider.Client{BaseURL: "http://model.test", Model: name, HTTP: &http.Client{Transport: heartbeatTransport{}}, Retry: provider.Retry{Max: -1}}
	}
	for _, stream := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			chain := &provider.Chain{Links: []provider.Link{{Name: "dead", Model: open("dead")}, {Name: "alive", Model: open("alive")}}}
			ask := func(m dragoman.Model) (*agent.Result, error) {
				a := agent.Agent{Model: m}
				if !stream {
					return a.Run(t.Context(), "hi")
				}
				return a.Stream(t.Context(), "hi").Collect()
			}
			began := time.Now()
			if res, err := ask(chain); err != nil || res.Output != "hello" || time.Since(began) > 11*time.Minute {
				t.Errorf("%v after %v", err, time.Since(began))
			}
			began = time.Now()
			var timeout *provider.TimeoutError
			if _, err := ask(open("dead")); !errors.As(err, &timeout) || timeout.Phase != "first byte" || time.Since(began) > 11*time.Minute {
				t.Errorf("alone: %v after %v", err, time.Since(began))
			}
			synctest.Wait()
		})
	}
}
