package provider_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/provider/extension"
)

// respondUnstreamed sends a complete response after some white space, whatever was requested.
func respondUnstreamed(resp *dragoman.Response, contentType string) step {
	return func(s *server, w http.ResponseWriter, _ *http.Request, _ received) {
		enc, err := s.codec.EncodeResponse(resp, dialect.EncodeOptions{Seed: "s"})
		if err != nil {
			s.t.Errorf("the answer cannot be written: %v", err)
			return
		}
		w.Header().Set("Content-Type", contentType)
		if s.codec.Dialect() != dialectname.Ollama { // whose lines are not blank
			_, _ = io.WriteString(w, " \r\n")
			w.(http.Flusher).Flush()
		}
		_, _ = w.Write(enc.Body)
	}
}

// A complete response to a request for a stream is converted to a stream.
func TestUnstreamedResponseIsStreamed(t *testing.T) {
	responses := map[string]*dragoman.Response{
		"text":           textResponse("Take a coat, and an umbrella: it rains."),
		"parallel calls": callResponse(`{"city":"Oslo"}`, `{"city":"Bergen"}`),
	}
	both := callResponse(`{"city":"Oslo"}`)
	both.Output[0].Parts = slices.Insert(both.Output[0].Parts, 0, dragoman.Part(&dragoman.Text{Text: "Let me look."}))
	responses["text and a call"] = both
	each(t, func(t *testing.T, codec dialect.Codec) {
		for name, want := range responses {
			for _, contentType := range []string{"application/json", "text/event-stream", ""} {
				s := serve(t, codec, respondUnstreamed(want, contentType))
				c := s.client(&provider.Client{})
				whole, err := c.Generate(t.Context(), newRequest())
				if err != nil {
					t.Fatal(err)
				}
				var kinds []string
				var collected dragoman.Collector
				for ev, err := range c.Stream(t.Context(), newRequest()) {
					if err != nil {
						t.Fatalf("%s as %q: %v", name, contentType, err)
					}
					kinds = append(kinds, ev.Type())
					collected.Add(ev)
				}
				streamed, err := collected.Response()
				if err != nil || streamed.Text() != whole.Text() || streamed.Stop.Reason != whole.Stop.Reason || streamed.Usage.Output != whole.Usage.Output || streamed.Model != whole.Model {
					t.Errorf("%s as %q: %v\n%+v\nwant\n%+v", name, contentType, err, streamed, whole)
				}
				a, b := streamed.ToolCalls(), whole.ToolCalls()
				if len(a) != len(b) {
					t.Fatalf("%s as %q: %d calls, want %d", name, contentType, len(a), len(b))
				}
				for i := range a {
					if a[i].Name != b[i].Name || a[i].Arguments != b[i].Arguments || a[i].Problem != nil || a[i].ID == "" {
						t.Errorf("%s as %q: %+v, want %+v", name, contentType, a[i], b[i])
					}
				}
				if kinds[0] != "response_start" || !slices.Contains(kinds, "part_delta") && codec.Dialect() != dialectname.Ollama || kinds[len(kinds)-1] != "response_end" {
					t.Errorf("%s as %q: the events are %q", name, contentType, kinds)
				}
				if !slices.Contains([]dragoman.Dialect{dialectname.Ollama}, codec.Dialect()) && !reflect.DeepEqual(streamed.Output, whole.Output) {
					t.Errorf("%s as %q: collected\n%+v\nwant\n%+v", name, contentType, streamed.Output, whole.Output)
				}
			}
		}
	})
}

// A body that is not a response is an error: a server error with its class, or an incomplete
// stream.
func TestInvalidUnstreamedBodyIsAStreamError(t *testing.T) {
	each(t, func(t *testing.T, codec dialect.Codec) {
		status, failure, _ := codec.EncodeError(&dragoman.APIError{Class: dragoman.ErrorRateLimit, Message: "slow down, please"})
		if status == 0 {
			t.Fatal("no status")
		}
		enc, err := codec.EncodeResponse(callResponse(`{"city":"Oslo"}`), dialect.EncodeOptions{Seed: "s"})
		if err != nil {
			t.Fatal(err)
		}
		for name, body := range map[string][]byte{"an error": failure, "half an answer": enc.Body[:len(enc.Body)*2/3], "another object": []byte(`{"hello":"world"}`)} {
			s := serve(t, codec, func(_ *server, w http.ResponseWriter, _ *http.Request, _ received) { _, _ = w.Write(body) })
			resp, err := dragoman.Collect(s.client(&provider.Client{Retry: provider.Retry{Max: -1}}).Stream(t.Context(), newRequest()))
			if err == nil && (name != "another object" || resp.Stop.Reason == dragoman.StopEnd) {
				t.Errorf("%s: %+v", name, resp)
			}
			for _, call := range resp.ToolCalls() {
				if call.Problem == nil {
					t.Errorf("%s: %s%s would run", name, call.Name, call.Arguments)
				}
			}
			var api *dragoman.APIError
			if name == "an error" && (!errors.As(err, &api) || !strings.Contains(api.Message, "slow down")) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// The losses are in the end of the response, as for any stream.
func TestUnstreamedLossesAreInResponseEnd(t *testing.T) {
	s := serve(t, openaichat.Codec{}, respondUnstreamed(textResponse("Yes."), "application/json"))
	req := newRequest()
	req.Sampling.TopK = new(int64(7))
	resp, err := dragoman.Collect(s.client(&provider.Client{}).Stream(t.Context(), req))
	if err != nil || !slices.ContainsFunc(resp.Losses.Losses, func(l dragoman.Loss) bool { return l.Path == "/sampling/top_k" }) {
		t.Errorf("%v %v", err, resp.Losses)
	}
}

// Extensions get the response as one chunk, and their additions are emitted.
func TestX3_ExtensionsFinishUnstreamedResponses(t *testing.T) {
	s := serve(t, openaichat.Codec{}, respondUnstreamed(textResponse("Yes."), "application/json"))
	watch := &chunkWatcher{}
	c := s.client(&provider.Client{Extensions: provider.Extensions{Set: mustSet(t, watch)}})
	resp, err := dragoman.Collect(c.Stream(t.Context(), newRequest()))
	if err != nil || watch.chunks != 1 || !bytes.Contains(watch.last, []byte("Yes.")) || resp.Text() != "Yes. Really." {
		t.Errorf("%v: %d chunks, the last %s: %q", err, watch.chunks, watch.last, resp.Text())
	}
}

type chunkWatcher struct {
	chunks int
	last   []byte
}

func (*chunkWatcher) Info() extension.Info { return extension.Info{Name: "watch"} }

func (w *chunkWatcher) ReadChunk(_ context.Context, _ *extension.Exchange, chunk json.RawMessage) error {
	w.chunks++
	w.last = bytes.Clone(chunk)
	return nil
}

func (*chunkWatcher) Finish(_ context.Context, _ *extension.Exchange, resp *dragoman.Response) error {
	resp.Output[0].Parts = append(resp.Output[0].Parts, &dragoman.Text{Text: " Really."})
	return nil
}

func mustSet(t *testing.T, extensions ...extension.Extension) *extension.Set {
	t.Helper()
	set, err := extension.NewSet(extensions...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// The events of an unstreamed response are held back, and the caller may leave, as with a stream.
func TestBreakEndsAnUnstreamedResponse(t *testing.T) {
	s := serve(t, openaichat.Codec{}, respondUnstreamed(textResponse("Yes."), "application/json"))
	n := 0
	for range s.client(&provider.Client{}).Stream(t.Context(), newRequest()) {
		n++
		break
	}
	if n != 1 {
		t.Errorf("%d events", n)
	}
}
