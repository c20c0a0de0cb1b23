package provider_test

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/gemini"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/provider"
)

var (
	overloaded  = &dragoman.APIError{Class: dragoman.ErrorOverloaded, Message: "too many"}
	rateLimited = &dragoman.APIError{Class: dragoman.ErrorRateLimit, Message: "slow down"}
)

// noJitter is a Retry without jitter.
var noJitter = provider.Retry{Jitter: func() float64 { return 0 }}

// noWaitClient returns a client whose waits end at once.
func noWaitClient(s *server, retry provider.Retry) (*provider.Client, eagerClock) {
	clock := eagerClock{newClock()}
	return s.client(provider.OnClock(clock, &provider.Client{Timeouts: unboundedPhases, Retry: retry})), clock
}

func TestX14_TemporaryErrorIsRetried(t *testing.T) {
	each(t, func(t *testing.T, codec dialect.Codec) {
		forGenerateAndStream(t, func(t *testing.T, ask func(dragoman.Model, *dragoman.Request) (*dragoman.Response, error)) {
			s := serve(t, codec, respondError(overloaded), respondError(overloaded), respond(textResponse("at last")))
			c, clock := noWaitClient(s, noJitter)
			resp, err := ask(c, newRequest())
			if err != nil || resp.Text() != "at last" {
				t.Fatalf("%v, %v", resp, err)
			}
			if want := []time.Duration{500 * time.Millisecond, time.Second}; !slices.Equal(clock.waits(), want) {
				t.Errorf("waits %v, want %v", clock.waits(), want)
			}
			got := s.requests()
			if len(got) != 3 || string(got[0].body) != string(got[2].body) {
				t.Error("the requests differ")
			}
		})
	})
}

func TestX14_RetriesEnd(t *testing.T) {
	for _, tc := range []struct{ max, want int }{{0, 3}, {-1, 1}, {5, 6}} {
		s := serve(t, openaichat.Codec{}, respondError(overloaded))
		c, _ := noWaitClient(s, provider.Retry{Max: tc.max})
		if _, err := c.Generate(t.Context(), newRequest()); !provider.Retryable(err) {
			t.Errorf("error %v", err)
		}
		if n := len(s.requests()); n != tc.want {
			t.Errorf("max %d: %d requests, want %d", tc.max, n, tc.want)
		}
	}
}

func TestX14_PermanentErrorIsNotRetried(t *testing.T) {
	for _, class := range []dragoman.ErrorClass{dragoman.ErrorBadRequest, dragoman.ErrorAuth, dragoman.ErrorNotFound, dragoman.ErrorQuota, dragoman.ErrorContextLength} {
		code := map[dragoman.ErrorClass]string{dragoman.ErrorQuota: "insufficient_quota", dragoman.ErrorContextLength: "context_length_exceeded"}[class]
		s := serve(t, openaichat.Codec{}, respondError(&dragoman.APIError{Class: class, Message: "no", Code: code}))
		c, _ := noWaitClient(s, noJitter)
		if _, err := c.Generate(t.Context(), newRequest()); err == nil || len(s.requests()) != 1 {
			t.Errorf("%s: %v after %d requests", class, err, len(s.requests()))
		}
	}
}

func TestX14_ServerRetryHeadersTakePrecedence(t *testing.T) {
	now := created
	for _, tc := range []struct {
		name   string
		err    *dragoman.APIError
		header []string
		want   time.Duration // -1: not asked again
	}{
		{"milliseconds", overloaded, []string{"retry-after-ms", "1500", "retry-after", "9"}, 1500 * time.Millisecond},
		{"seconds", overloaded, []string{"retry-after", "9"}, 9 * time.Second},
		{"a date", overloaded, []string{"retry-after", now.Add(20 * time.Second).Format(http.TimeFormat)}, 20 * time.Second},
		{"a date that is over", overloaded, []string{"retry-after", now.Add(-time.Hour).Format(http.TimeFormat)}, 500 * time.Millisecond},
		{"longer than anybody waits", overloaded, []string{"retry-after", "61"}, -1},
		{"no", overloaded, []string{"x-should-retry", "false"}, -1},
		{"yes", &dragoman.APIError{Class: dragoman.ErrorBadRequest, Message: "no"}, []string{"x-should-retry", "true"}, 500 * time.Millisecond},
		{"a limit that is used up", rateLimited, []string{"x-ratelimit-remaining-requests", "0", "x-ratelimit-reset-requests", "6s", "x-ratelimit-remaining-tokens", "10", "x-ratelimit-reset-tokens", "59s"}, 6 * time.Second},
		{"Anthropic's limits", rateLimited, []string{"anthropic-ratelimit-input-tokens-remaining", "0", "anthropic-ratelimit-input-tokens-reset", now.Add(12 * time.Second).Format(time.RFC3339)}, 12 * time.Second},
		{"a limit in milliseconds since 1970", rateLimited, []string{"x-ratelimit-remaining", "0", "x-ratelimit-reset", strconv.FormatInt(now.Add(5*time.Second).UnixMilli(), 10)}, 5 * time.Second},
		{"a limit in seconds since 1970", rateLimited, []string{"x-ratelimit-remaining", "0", "x-ratelimit-reset", strconv.FormatInt(now.Add(5*time.Second).Unix(), 10)}, 5 * time.Second},
		{"a limit in seconds", rateLimited, []string{"ratelimit-remaining", "0", "ratelimit-reset", "4"}, 4 * time.Second},
		{"nonsense", rateLimited, []string{"ratelimit-remaining", "0", "ratelimit-reset", "soon", "retry-after", "later"}, 500 * time.Millisecond},
		{"limits of another error", overloaded, []string{"ratelimit-remaining", "0", "ratelimit-reset", "4"}, 500 * time.Millisecond},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := serve(t, openaichat.Codec{}, respondError(tc.err, tc.header...), respond(textResponse("hi")))
			c, clock := noWaitClient(s, noJitter)
			_, err := c.Generate(t.Context(), newRequest())
			if tc.want < 0 {
				if err == nil || len(clock.waits()) != 0 {
					t.Errorf("error %v, waits %v", err, clock.waits())
				}
				return
			}
			if err != nil || !slices.Equal(clock.waits(), []time.Duration{tc.want}) {
				t.Errorf("error %v, waits %v, want %v", err, clock.waits(), tc.want)
			}
		})
	}
}

func TestX14_RetryAfterInAStreamIsFollowed(t *testing.T) {
	const refusal = "data: " + `{"error":{"code":429,"message":"slow down","status":"RESOURCE_EXHAUSTED",` +
		`"details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"11s"}]}}` + "\n\n"
	limited := func(_ *server, w http.ResponseWriter, _ *http.Request, _ received) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte(refusal))
	}
	s := serve(t, gemini.Codec{}, limited, respond(textResponse("at last")))
	c, clock := noWaitClient(s, noJitter)
	if resp, err := dragoman.Collect(c.Stream(t.Context(), newRequest())); err != nil || resp.Text() != "at last" {
		t.Fatalf("%v, %v", resp, err)
	}
	if want := []time.Duration{11 * time.Second}; !slices.Equal(clock.waits(), want) {
		t.Errorf("waits %v, want %v", clock.waits(), want)
	}

	s = serve(t, gemini.Codec{}, limited)
	c, _ = noWaitClient(s, provider.Retry{MaxRetryAfter: 10 * time.Second})
	if _, err := dragoman.Collect(c.Stream(t.Context(), newRequest())); err == nil || len(s.requests()) != 1 {
		t.Errorf("a wait above the longest: %d requests, %v", len(s.requests()), err)
	}
}

func TestX14_BackoffDoublesWithJitterUpToACap(t *testing.T) {
	s := serve(t, openaichat.Codec{}, respondError(overloaded))
	c, clock := noWaitClient(s, provider.Retry{Max: 4, Base: time.Second, Cap: 3 * time.Second, Jitter: func() float64 { return 1 }})
	if _, err := c.Generate(t.Context(), newRequest()); err == nil {
		t.Fatal("no error")
	}
	want := []time.Duration{500 * time.Millisecond, time.Second, 1500 * time.Millisecond, 1500 * time.Millisecond}
	if !slices.Equal(clock.waits(), want) {
		t.Errorf("waits %v, want %v", clock.waits(), want)
	}
}

func TestX14_StreamIsRetriedBeforeContent(t *testing.T) {
	each(t, func(t *testing.T, codec dialect.Codec) {
		start := eventsOf(textResponse("x"))[:1]
		early := func(s *server, w http.ResponseWriter, _ *http.Request, _ received) {
			s.writeEvents(w, append(start[:1:1], &dragoman.StreamError{Err: overloaded}))
		}
		s := serve(t, codec, early, respond(textResponse("at last")))
		c, _ := noWaitClient(s, noJitter)
		starts, text := 0, ""
		for ev, err := range c.Stream(t.Context(), newRequest()) {
			if err != nil {
				t.Fatal(err)
			}
			switch ev := ev.(type) {
			case *dragoman.ResponseStart:
				starts++
			case *dragoman.PartDelta:
				text += ev.Text
			case *dragoman.StreamError:
				t.Errorf("the caller saw %v", ev.Err)
			}
		}
		if starts != 1 || text != "at last" || len(s.requests()) != 2 {
			t.Errorf("%d starts, text %q, %d requests", starts, text, len(s.requests()))
		}
	})
}

func TestX14_CanceledWaitReturnsTheServerError(t *testing.T) {
	s := serve(t, openaichat.Codec{}, respondError(overloaded))
	clock := newClock()
	c := s.client(provider.OnClock(clock, &provider.Client{Timeouts: unboundedPhases, Retry: noJitter}))
	done := make(chan error)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		_, err := c.Generate(ctx, newRequest())
		done <- err
	}()
	for {
		select {
		case err := <-done:
			var api *dragoman.APIError
			if !errors.As(err, &api) {
				t.Errorf("error %v: want what the server said", err)
			}
			return
		default:
			if clock.hasWait(500 * time.Millisecond) { // it waits
				cancel()
			}
			runtime.Gosched()
		}
	}
}

// reasoningConversation returns a conversation with reasoning in an earlier turn.
func reasoningConversation(codec dialect.Codec) *dragoman.Request {
	origin := &dragoman.Origin{Dialect: codec.Dialect()}
	req := newRequest()
	req.Messages = append(req.Messages,
		dragoman.Message{Role: dragoman.RoleAssistant, Origin: origin, Parts: []dragoman.Part{
			&dragoman.Reasoning{Text: "Hm.", Signature: "c2ln", Encrypted: "ZW5j", Origin: origin},
			&dragoman.Text{Text: "Let me look.", Signature: "c2ln"},
			&dragoman.ToolCall{ID: "call_a", Name: "get_weather", Payload: codes.PayloadObject, Arguments: `{"city":"Oslo"}`, Signature: "c2ln"},
		}},
		dragoman.Message{Role: dragoman.RoleTool, Parts: []dragoman.Part{
			&dragoman.ToolResult{CallID: "call_a", Name: "get_weather", Content: []dragoman.Part{&dragoman.Text{Text: "-3"}}},
		}},
	)
	return req
}

func TestX14_RefusedReasoningIsDroppedOnce(t *testing.T) {
	for _, tc := range []struct {
		codec   dialect.Codec
		err     dragoman.APIError
		carried string
	}{
		{anthropic.Codec{}, dragoman.APIError{Message: "messages.1.content.0: Invalid `signature` in `thinking` block"}, "c2ln"},
		{gemini.Codec{}, dragoman.APIError{Message: "Corrupted thought signature."}, "c2ln"},
		{gemini.Codec{}, dragoman.APIError{Message: "Unable to submit request because Thought signature is not valid"}, "c2ln"},
		{openairesponses.Codec{}, dragoman.APIError{Code: "invalid_encrypted_content", Message: "The encrypted content could not be verified."}, "ZW5j"},
		{codecs[5], dragoman.APIError{Message: "messages.1.content.0: Invalid `signature` in `thinking` block"}, "c2ln"},
	} {
		t.Run(string(tc.codec.Dialect()), func(t *testing.T) {
			forGenerateAndStream(t, func(t *testing.T, ask func(dragoman.Model, *dragoman.Request) (*dragoman.Response, error)) {
				tc.err.Class = dragoman.ErrorBadRequest
				s := serve(t, tc.codec, respondError(&tc.err), respondError(overloaded), respond(textResponse("fine")))
				c, clock := noWaitClient(s, provider.Retry{Max: 1, Jitter: noJitter.Jitter})
				req := reasoningConversation(tc.codec)
				resp, err := ask(c, req)
				if err != nil || resp.Text() != "fine" {
					t.Fatalf("%v, %v", resp, err)
				}
				got := s.requests()
				if !strings.Contains(string(got[0].body), tc.carried) || strings.Contains(string(got[1].body), tc.carried) {
					t.Errorf("first %s\nthen %s", got[0].body, got[1].body)
				}
				if len(clock.waits()) != 1 {
					t.Errorf("waits %v: the cure takes none, and is not a retry", clock.waits())
				}
				out := false
				for _, l := range resp.Losses.Losses {
					out = out || strings.HasPrefix(l.Path, "/messages/1/parts/") && l.Kind == dragoman.Dropped
				}
				if !out {
					t.Errorf("losses %v", resp.Losses.Losses)
				}
				if len(req.Messages[1].Parts) != 3 {
					t.Error("the caller's request was changed")
				}
			})
		})
	}
}

func TestX14_RequestFixIsTriedOnce(t *testing.T) {
	refusal := respondError(&dragoman.APIError{Class: dragoman.ErrorBadRequest, Message: "Invalid `signature` in `thinking` block"})
	s := serve(t, anthropic.Codec{}, refusal)
	c, _ := noWaitClient(s, noJitter)
	if _, err := c.Generate(t.Context(), reasoningConversation(anthropic.Codec{})); err == nil || len(s.requests()) != 2 {
		t.Errorf("error %v after %d requests", err, len(s.requests()))
	}
	s = serve(t, anthropic.Codec{}, refusal)
	c, _ = noWaitClient(s, noJitter)
	if _, err := c.Generate(t.Context(), newRequest()); err == nil || len(s.requests()) != 1 {
		t.Errorf("nothing to leave out: error %v after %d requests", err, len(s.requests()))
	}
}

// In Responses, reasoning is an item of its own: without it, no empty message remains.
func TestX14_RequestFixLeavesNoEmptyMessage(t *testing.T) {
	thinks := func(_ *server, w http.ResponseWriter, _ *http.Request, _ received) {
		_, _ = w.Write([]byte(`{"id":"resp_1","object":"response","created_at":1,"model":"model-1","status":"completed","output":[
			{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"ZW5j"},
			{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Yes.","annotations":[]}]}]}`))
	}
	refused := respondError(&dragoman.APIError{Class: dragoman.ErrorBadRequest, Code: "invalid_encrypted_content", Message: "The encrypted content could not be verified."})
	forGenerateAndStream(t, func(t *testing.T, ask func(dragoman.Model, *dragoman.Request) (*dragoman.Response, error)) {
		s := serve(t, openairesponses.Codec{}, thinks, refused, respond(textResponse("fine")))
		c, _ := noWaitClient(s, noJitter)
		req := newRequest()
		first, err := c.Generate(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		req.Messages = append(append(req.Messages, first.Output...), dragoman.UserText("Why?"))
		if resp, err := ask(c, req); err != nil || resp.Text() != "fine" {
			t.Fatalf("%v, %v", resp, err)
		}
		got := s.requests()
		if !strings.Contains(string(got[1].body), "ZW5j") || strings.Contains(string(got[2].body), "ZW5j") {
			t.Errorf("first %s\nthen %s", got[1].body, got[2].body)
		}
		if strings.Contains(string(got[2].body), `"content":[]`) || len(got[2].req.Messages) != 3 {
			t.Errorf("an empty message was sent: %s", got[2].body)
		}
		if len(req.Messages) != 4 || len(req.Messages[1].Parts) != 1 {
			t.Error("the caller's request was changed")
		}
	})
}

// ownDialect is a codec of a user that knows how its server refuses foreign reasoning.
type ownDialect struct{ anthropic.Codec }

func (ownDialect) ForeignReasoning(e *dragoman.APIError) bool { return e.Message == "alien thoughts" }

func TestX14_CodecRecognizesRefusedReasoning(t *testing.T) {
	refused := respondError(&dragoman.APIError{Class: dragoman.ErrorBadRequest, Message: "alien thoughts"})
	for codec, want := range map[dialect.Codec]int{ownDialect{}: 2, anthropic.Codec{}: 1} {
		s := serve(t, codec, refused, respond(textResponse("fine")))
		c, _ := noWaitClient(s, noJitter)
		if _, err := c.Generate(t.Context(), reasoningConversation(anthropic.Codec{})); len(s.requests()) != want || (err == nil) != (want == 2) {
			t.Errorf("%T: %d requests, %v", codec, len(s.requests()), err)
		}
	}
}
