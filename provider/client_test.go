package provider_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/cohere"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/provider"
)

// forGenerateAndStream runs a test with Generate and with Stream.
func forGenerateAndStream(t *testing.T, test func(t *testing.T, ask func(dragoman.Model, *dragoman.Request) (*dragoman.Response, error))) {
	t.Helper()
	t.Run("whole", func(t *testing.T) {
		test(t, func(m dragoman.Model, req *dragoman.Request) (*dragoman.Response, error) {
			return m.Generate(t.Context(), req)
		})
	})
	t.Run("stream", func(t *testing.T) {
		test(t, func(m dragoman.Model, req *dragoman.Request) (*dragoman.Response, error) {
			return dragoman.Collect(m.Stream(t.Context(), req))
		})
	})
}

func TestX12_EveryDialectRespondsOverHTTP(t *testing.T) {
	responses := map[string]*dragoman.Response{
		"text":           textResponse("Yes, it is cold."),
		"call":           callResponse(`{"city":"Oslo"}`),
		"parallel calls": callResponse(`{"city":"Oslo"}`, `{"city":"Bergen"}`),
	}
	each(t, func(t *testing.T, codec dialect.Codec) {
		for name, body := range responses {
			t.Run(name, func(t *testing.T) {
				forGenerateAndStream(t, func(t *testing.T, ask func(dragoman.Model, *dragoman.Request) (*dragoman.Response, error)) {
					s := serve(t, codec, respond(body))
					resp, err := ask(s.client(&provider.Client{Name: "here"}), newRequest())
					if err != nil {
						t.Fatal(err)
					}
					if got, want := resp.Text(), body.Text(); got != want {
						t.Errorf("text %q, want %q", got, want)
					}
					if got, want := calls(resp), calls(body); !cmp.Equal(got, want) {
						t.Errorf("calls %q, want %q", got, want)
					}
					if resp.Stop.Reason != body.Stop.Reason || resp.Usage.Output.N != 3 {
						t.Errorf("stop %v, usage %v", resp.Stop, resp.Usage)
					}
					if resp.Origin == nil || resp.Origin.Provider != "here" || resp.Origin.Scope == "" || resp.Origin.Model != "model-1" {
						t.Errorf("origin %+v", resp.Origin)
					}
					got := s.requests()[0]
					if len(got.req.Tools) != 1 || got.req.Messages[len(got.req.Messages)-1].Text() != "Do I need a coat in Oslo?" {
						t.Errorf("the server got %s", got.body)
					}
				})
			})
		}
	})
}

func calls(resp *dragoman.Response) (out []string) {
	for _, c := range resp.ToolCalls() {
		out = append(out, c.Name+c.Arguments)
	}
	return out
}

func TestRequestPaths(t *testing.T) {
	want := map[dragoman.Dialect][2]string{
		dialectname.OpenAIChat:      {"/chat/completions", "/chat/completions"},
		dialectname.OpenAIResponses: {"/responses", "/responses"},
		dialectname.Anthropic:       {"/v1/messages", "/v1/messages"},
		dialectname.Gemini:          {"/v1beta/models/a%2Fb%3Ac:generateContent", "/v1beta/models/a%2Fb%3Ac:streamGenerateContent?alt=sse"},
		dialectname.Ollama:          {"/api/chat", "/api/chat"},
		dialectname.Bedrock:         {"/model/a%2Fb%3Ac/converse", "/model/a%2Fb%3Ac/converse-stream"},
		cohere.Codec{}.Dialect():    {"/v2/chat", "/v2/chat"},
	}
	each(t, func(t *testing.T, codec dialect.Codec) {
		s := serve(t, codec, respond(textResponse("hi")))
		c := s.client(&provider.Client{Model: "a/b:c"})
		for i, ask := range []func() error{
			func() error { _, err := c.Generate(t.Context(), newRequest()); return err },
			func() error { _, err := dragoman.Collect(c.Stream(t.Context(), newRequest())); return err },
		} {
			if err := ask(); err != nil {
				t.Fatal(err)
			}
			got := s.requests()[i]
			at := got.path
			if got.query != "" {
				at += "?" + got.query
			}
			if at != want[codec.Dialect()][i] {
				t.Errorf("sent to %s, want %s", at, want[codec.Dialect()][i])
			}
			if !codec.Limits().ModelInURL && got.req.Model != "a/b:c" {
				t.Errorf("model %q", got.req.Model)
			}
		}
	})
}

func TestBaseURLWithAndWithoutVersion(t *testing.T) {
	for _, tc := range []struct{ base, path, want string }{
		{"", "", "/v1/messages"},
		{"/", "", "/v1/messages"},
		{"/v1", "", "/v1/messages"},
		{"/v1/", "", "/v1/messages"},
		{"/anthropic", "", "/anthropic/v1/messages"},
		{"/x?api-version=7", "/m/{model}?a=b", "/x/m/model-1?a=b&api-version=7"},
	} {
		s := serve(t, anthropic.Codec{}, respond(textResponse("hi")))
		c := s.client(&provider.Client{Path: tc.path})
		c.BaseURL += tc.base
		if _, err := c.Generate(t.Context(), newRequest()); err != nil {
			t.Fatal(err)
		}
		got := s.requests()[0]
		if at := strings.TrimSuffix(got.path+"?"+got.query, "?"); at != tc.want {
			t.Errorf("%s and %s: sent to %s, want %s", tc.base, tc.path, at, tc.want)
		}
	}
}

func TestX14_ErrorClasses(t *testing.T) {
	classes := []dragoman.ErrorClass{
		dragoman.ErrorBadRequest, dragoman.ErrorAuth, dragoman.ErrorPermission, dragoman.ErrorNotFound,
		dragoman.ErrorRateLimit, dragoman.ErrorOverloaded, dragoman.ErrorServer,
	}
	each(t, func(t *testing.T, codec dialect.Codec) {
		for _, class := range classes {
			t.Run(string(class), func(t *testing.T) {
				forGenerateAndStream(t, func(t *testing.T, ask func(dragoman.Model, *dragoman.Request) (*dragoman.Response, error)) {
					s := serve(t, codec, respondError(&dragoman.APIError{Class: class, Message: "no, thank you"}, "Retry-After", "7"))
					_, err := ask(s.client(&provider.Client{Retry: provider.Retry{Max: -1}}), newRequest())
					var api *dragoman.APIError
					if !errors.As(err, &api) || api.Class != class || !strings.Contains(api.Message, "no, thank you") || api.Status < 400 {
						t.Fatalf("error %#v", err)
					}
					if api.RetryAfter != 7*time.Second {
						t.Errorf("wait %v", api.RetryAfter)
					}
				})
			})
		}
	})
}

func TestStreamErrorIsTheLastPair(t *testing.T) {
	each(t, func(t *testing.T, codec dialect.Codec) {
		events := eventsOf(textResponse("half of it"))
		s := serve(t, codec, func(s *server, w http.ResponseWriter, _ *http.Request, _ received) {
			broken := append(events[:3:3], &dragoman.StreamError{Err: &dragoman.APIError{Class: dragoman.ErrorOverloaded, Message: "too many"}})
			s.writeEvents(w, broken)
		})
		var last error
		text, ends := "", 0
		for ev, err := range s.client(&provider.Client{}).Stream(t.Context(), newRequest()) {
			if err != nil {
				last = err
				break
			}
			switch ev := ev.(type) {
			case *dragoman.PartDelta:
				text += ev.Text
			case *dragoman.ResponseEnd:
				ends++
			}
		}
		var api *dragoman.APIError
		if text != "hal" || ends != 0 || !errors.As(last, &api) || !strings.Contains(last.Error(), "too many") {
			t.Errorf("text %q, %d ends, error %v", text, ends, last)
		}
		if n := len(s.requests()); n != 1 {
			t.Errorf("%d requests: a stream whose content was seen is never asked for again", n)
		}
	})
}

func TestQuirkC13_TruncatedStreamIsIncomplete(t *testing.T) {
	each(t, func(t *testing.T, codec dialect.Codec) {
		s := serve(t, codec, func(s *server, w http.ResponseWriter, _ *http.Request, _ received) {
			s.part(w, s.codec.NewStreamEncoder(dialect.EncodeOptions{}), eventsOf(textResponse("half of it"))[:4], false)
		})
		resp, err := dragoman.Collect(s.client(&provider.Client{}).Stream(t.Context(), newRequest()))
		if !errors.Is(err, dragoman.ErrIncompleteStream) || !provider.Retryable(err) {
			t.Errorf("error %v", err)
		}
		if resp.Stop.Reason.Runs() {
			t.Errorf("stop %v", resp.Stop)
		}
	})
}

func TestBrokenConnectionIsATransportError(t *testing.T) {
	each(t, func(t *testing.T, codec dialect.Codec) {
		s := serve(t, codec, func(s *server, w http.ResponseWriter, _ *http.Request, _ received) {
			s.part(w, s.codec.NewStreamEncoder(dialect.EncodeOptions{}), eventsOf(textResponse("half of it"))[:4], false)
			panic(http.ErrAbortHandler)
		})
		_, err := dragoman.Collect(s.client(&provider.Client{}).Stream(t.Context(), newRequest()))
		var gone *provider.TransportError
		if !errors.As(err, &gone) || !errors.Is(err, dragoman.ErrIncompleteStream) || !errors.Is(err, io.ErrUnexpectedEOF) || strings.Contains(err.Error(), "\n") {
			t.Errorf("error %v", err)
		}
	})
}

func TestResponseEndHasAllLosses(t *testing.T) {
	forGenerateAndStream(t, func(t *testing.T, ask func(dragoman.Model, *dragoman.Request) (*dragoman.Response, error)) {
		s := serve(t, anthropic.Codec{}, respond(textResponse("hi")))
		req := newRequest()
		req.Sampling.Seed = new(int64(7)) // Messages has no seed
		resp, err := ask(s.client(&provider.Client{}), req)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, l := range resp.Losses.Losses {
			found = found || strings.Contains(l.Path, "seed")
		}
		if !found {
			t.Errorf("losses %v", resp.Losses.Losses)
		}
	})
}

func TestFieldInTheURLIsNotALoss(t *testing.T) {
	each(t, func(t *testing.T, codec dialect.Codec) {
		forGenerateAndStream(t, func(t *testing.T, ask func(dragoman.Model, *dragoman.Request) (*dragoman.Response, error)) {
			s := serve(t, codec, respond(textResponse("hi")))
			resp, err := ask(s.client(&provider.Client{}), newRequest())
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range resp.Losses.Losses {
				if l.Path == "/model" || l.Path == "/stream" {
					t.Errorf("lost: %v", l)
				}
			}
		})
	})
}

func TestQuirkF6_WrappedOutputIsUnwrapped(t *testing.T) {
	forGenerateAndStream(t, func(t *testing.T, ask func(dragoman.Model, *dragoman.Request) (*dragoman.Response, error)) {
		s := serve(t, openairesponses.Codec{}, respond(textResponse(`{"value":["a","b"]}`)))
		req := newRequest()
		req.Output = &dragoman.OutputFormat{Kind: codes.OutputSchema, Schema: []byte(`{"type":"array","items":{"type":"string"}}`)}
		resp, err := ask(s.client(&provider.Client{}), req)
		if err != nil {
			t.Fatal(err)
		}
		if got := resp.Text(); got != `["a","b"]` {
			t.Errorf("text %s", got)
		}
	})
	t.Run("deltas", func(t *testing.T) {
		s := serve(t, openairesponses.Codec{}, respond(textResponse(`{"value":["a","b"]}`)))
		req := newRequest()
		req.Output = &dragoman.OutputFormat{Kind: codes.OutputSchema, Schema: []byte(`{"type":"array","items":{"type":"string"}}`)}
		shown := ""
		for ev, err := range s.client(&provider.Client{}).Stream(t.Context(), req) {
			if err != nil {
				t.Fatal(err)
			}
			if d, ok := ev.(*dragoman.PartDelta); ok {
				shown += d.Text
			}
		}
		if shown != `["a","b"]` {
			t.Errorf("shown %s", shown)
		}
	})
}

func TestChunksAreEmittedOnRequest(t *testing.T) {
	for _, want := range []bool{false, true} {
		s := serve(t, openaichat.Codec{}, respond(textResponse("hello there")))
		chunks := 0
		var last dragoman.Event
		for ev, err := range s.client(&provider.Client{Chunks: want}).Stream(t.Context(), newRequest()) {
			if err != nil {
				t.Fatal(err)
			}
			if c, ok := ev.(*dragoman.Chunk); ok {
				if len(c.Raw) == 0 {
					t.Error("an empty chunk")
				}
				chunks++
				continue
			}
			last = ev
		}
		if _, ok := last.(*dragoman.ResponseEnd); !ok || chunks > 0 != want {
			t.Errorf("chunks wanted %v: %d, and %T last", want, chunks, last)
		}
	}
}

func TestStreamIsUsedOnce(t *testing.T) {
	s := serve(t, openaichat.Codec{}, respond(textResponse("hi")))
	events := s.client(&provider.Client{}).Stream(t.Context(), newRequest())
	if _, err := dragoman.Collect(events); err != nil {
		t.Fatal(err)
	}
	if _, err := dragoman.Collect(events); err == nil || len(s.requests()) != 1 {
		t.Errorf("error %v after %d requests", err, len(s.requests()))
	}
}

func TestX13_RequestsAndResponsesAreBounded(t *testing.T) {
	forGenerateAndStream(t, func(t *testing.T, ask func(dragoman.Model, *dragoman.Request) (*dragoman.Response, error)) {
		s := serve(t, openaichat.Codec{}, respond(textResponse(strings.Repeat("x", 100_000))))
		if _, err := ask(s.client(&provider.Client{MaxResponseBytes: 50_000}), newRequest()); !errors.Is(err, dragoman.ErrTooLarge) {
			t.Errorf("a long answer: %v", err)
		}
		if _, err := ask(s.client(&provider.Client{MaxRequestBytes: 100}), newRequest()); !errors.Is(err, dragoman.ErrTooLarge) {
			t.Errorf("a long request: %v", err)
		}
		if n := len(s.requests()); n != 1 {
			t.Errorf("%d requests were sent", n)
		}
	})
}

func TestX13_RedirectsAreNotFollowed(t *testing.T) {
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the credential went elsewhere: %v", r.Header)
	}))
	defer thief.Close()
	s := serve(t, anthropic.Codec{}, func(_ *server, w http.ResponseWriter, r *http.Request, _ received) {
		http.Redirect(w, r, thief.URL, http.StatusTemporaryRedirect)
	})
	_, err := s.client(&provider.Client{Auth: provider.HeaderKey("x-api-key", provider.FixedKey("secret-key"))}).Generate(t.Context(), newRequest())
	var api *dragoman.APIError
	if !errors.As(err, &api) || !strings.Contains(api.Message, strings.TrimPrefix(thief.URL, "http://")) {
		t.Errorf("error %v", err)
	}
}

func TestRefusedConnectionIsATransportError(t *testing.T) {
	s := serve(t, openaichat.Codec{}, respond(textResponse("hi")))
	c := s.client(&provider.Client{Retry: provider.Retry{Max: -1}})
	s.Close()
	_, err := c.Generate(t.Context(), newRequest())
	var gone *provider.TransportError
	if !errors.As(err, &gone) || gone.Host == "" || !provider.Retryable(err) {
		t.Errorf("error %v", err)
	}
}

// stallAfter sends some events, and waits until the client has disconnected.
func stallAfter(events int, meanwhile func()) step {
	return func(s *server, w http.ResponseWriter, r *http.Request, _ received) {
		if events > 0 {
			s.part(w, s.codec.NewStreamEncoder(dialect.EncodeOptions{}), eventsOf(textResponse("half of it"))[:events], false)
		}
		for r.Context().Err() == nil {
			if meanwhile == nil {
				<-r.Context().Done()
				return
			}
			meanwhile()
			runtime.Gosched()
		}
	}
}

func TestX13_EachPhaseHasItsTimeout(t *testing.T) {
	for _, tc := range []struct {
		phase    string
		timeouts provider.Timeouts
		events   int
	}{
		{"first byte", provider.Timeouts{FirstByte: time.Minute, Total: -1}, 0},
		{"idle", provider.Timeouts{FirstByte: -1, Idle: time.Minute, Total: -1}, 3},
		{"total", provider.Timeouts{FirstByte: -1, Total: time.Minute}, 3},
	} {
		t.Run(tc.phase, func(t *testing.T) {
			clock := newClock()
			s := serve(t, anthropic.Codec{}, stallAfter(tc.events, func() { clock.advance(time.Second) }))
			c := s.client(provider.OnClock(clock, &provider.Client{Timeouts: tc.timeouts, Retry: provider.Retry{Max: -1}}))
			_, err := dragoman.Collect(c.Stream(t.Context(), newRequest()))
			var timeout *provider.TimeoutError
			if !errors.As(err, &timeout) || timeout.Phase != tc.phase || timeout.After != time.Minute {
				t.Fatalf("error %v", err)
			}
			if provider.Retryable(err) == (tc.phase == "total") {
				t.Errorf("retryable %v", provider.Retryable(err))
			}
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Error("it is not a deadline")
			}
		})
	}
	t.Run("connect", func(t *testing.T) {
		clock := newClock()
		dials := &http.Transport{DialContext: dialNever(func() { clock.advance(time.Second) })}
		c := provider.OnClock(clock, &provider.Client{BaseURL: "http://nowhere.invalid", HTTP: &http.Client{Transport: dials}, Timeouts: provider.Timeouts{Connect: time.Minute, Total: -1}, Retry: provider.Retry{Max: -1}})
		_, err := c.Generate(t.Context(), newRequest())
		var timeout *provider.TimeoutError
		if !errors.As(err, &timeout) || timeout.Phase != "connect" {
			t.Fatalf("error %v", err)
		}
	})
}

func TestX13_SlowCallerIsNotAnIdleServer(t *testing.T) {
	clock := newClock()
	more := make(chan struct{})
	s := serve(t, anthropic.Codec{}, func(s *server, w http.ResponseWriter, _ *http.Request, _ received) {
		enc, events := s.codec.NewStreamEncoder(dialect.EncodeOptions{}), eventsOf(textResponse("in two pieces"))
		s.part(w, enc, events[:4], false)
		<-more
		s.part(w, enc, events[4:], true)
	})
	c := s.client(provider.OnClock(clock, &provider.Client{Timeouts: provider.Timeouts{FirstByte: -1, Idle: time.Minute, Total: -1}}))
	text, slow := "", false
	for ev, err := range c.Stream(t.Context(), newRequest()) {
		if err != nil {
			t.Fatal(err)
		}
		if d, ok := ev.(*dragoman.PartDelta); ok {
			text += d.Text
		}
		if text == "in two" && !slow { // all that has come so far
			slow = true
			clock.advance(time.Hour)
			close(more)
		}
	}
	if text != "in two pieces" {
		t.Errorf("text %q", text)
	}
}

func TestX13_CancelEndsAStream(t *testing.T) {
	each(t, func(t *testing.T, codec dialect.Codec) {
		s := serve(t, codec, stallAfter(3, nil))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var last error
		for _, err := range s.client(&provider.Client{}).Stream(ctx, newRequest()) {
			cancel()
			last = err
		}
		if !errors.Is(last, context.Canceled) || provider.Retryable(last) {
			t.Errorf("error %v", last)
		}
	})
}

func TestX13_BreakCancelsTheRequest(t *testing.T) {
	gone := make(chan struct{})
	s := serve(t, anthropic.Codec{}, func(s *server, w http.ResponseWriter, r *http.Request, got received) {
		defer close(gone)
		stallAfter(3, nil)(s, w, r, got)
	})
	for _, err := range s.client(&provider.Client{}).Stream(t.Context(), newRequest()) {
		if err != nil {
			t.Fatal(err)
		}
		break
	}
	<-gone
}

// leaveStream ends a stream after its first event: by leaving the loop, or by canceling the
// context.
func leaveStream(t *testing.T, c *provider.Client, loop bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range c.Stream(ctx, newRequest()) {
		if loop {
			return
		}
		cancel()
	}
}

func TestX13_ThousandCanceledStreamsLeakNothing(t *testing.T) {
	s := serve(t, openaichat.Codec{}, stallAfter(3, nil))
	transport := &http.Transport{}
	c := s.client(&provider.Client{HTTP: &http.Client{Transport: transport}})
	before := runtime.NumGoroutine()
	for i := range 1000 {
		leaveStream(t, c, i%2 == 0)
	}
	transport.CloseIdleConnections()
	s.Close() // waits for its handlers
	for range 1_000_000 {
		if runtime.NumGoroutine() <= before {
			return
		}
		runtime.Gosched()
	}
	buf := make([]byte, 1<<20)
	t.Errorf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
}

func TestX13_ConnectionsAreReused(t *testing.T) {
	each(t, func(t *testing.T, codec dialect.Codec) {
		conns := map[string]bool{}
		s := serve(t, codec, func(s *server, w http.ResponseWriter, r *http.Request, got received) {
			conns[r.RemoteAddr] = true
			respond(textResponse("hi"))(s, w, r, got)
		})
		c := s.client(&provider.Client{})
		for range 5 {
			if _, err := dragoman.Collect(c.Stream(t.Context(), newRequest())); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Generate(t.Context(), newRequest()); err != nil {
				t.Fatal(err)
			}
		}
		if len(conns) != 1 {
			t.Errorf("%d connections", len(conns))
		}
	})
}

func TestInvalidSettingsAreErrors(t *testing.T) {
	for name, c := range map[string]*provider.Client{
		"no region":   {Codec: codecs[5], Model: "m"},
		"no scheme":   {BaseURL: "api.example.com/v1", Model: "m"},
		"no host":     {BaseURL: "https://", Model: "m"},
		"a fragment":  {BaseURL: "https://a.example/#x", Model: "m"},
		"not a URL":   {BaseURL: "https://user:hunter22@[::1", Model: "m"},
		"bad escapes": {BaseURL: "https://a.example", Path: "/%zz", Model: "m"},
	} {
		_, err := c.Generate(t.Context(), newRequest())
		var setting *provider.SettingError
		if !errors.As(err, &setting) || strings.Contains(err.Error(), "hunter22") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, model := range []string{"", ".", "..", "a/../b", "../b", "b/.", `a\..\b`} {
		_, err := (&provider.Client{Codec: codecs[5], BaseURL: "https://a.example", Model: model}).Generate(t.Context(), newRequest())
		if !errors.Is(err, dragoman.ErrInvalid) {
			t.Errorf("model %q: %v", model, err)
		}
	}
}

func TestANilRequestIsInvalid(t *testing.T) {
	c := &provider.Client{BaseURL: "http://127.0.0.1:1"}
	if _, err := c.Generate(t.Context(), nil); !errors.Is(err, dragoman.ErrInvalid) {
		t.Error(err)
	}
	if _, err := dragoman.Collect(c.Stream(t.Context(), nil)); !errors.Is(err, dragoman.ErrInvalid) {
		t.Error(err)
	}
}
