package provider_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-go/dragoman/dialect/gemini"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/provider"
)

// scribblingAuth changes every request, and first fetches its key with the context of the request.
type scribblingAuth struct {
	t    *testing.T
	from string
	n    int
}

func (s *scribblingAuth) Authorize(_ context.Context, req *http.Request, _ []byte) error {
	ask, err := http.NewRequestWithContext(req.Context(), http.MethodGet, s.from, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(ask)
	if err != nil {
		return err
	}
	s.n++
	q := req.URL.Query()
	q.Add("k", fmt.Sprint("key", s.n))
	req.URL.RawQuery = q.Encode()
	req.Header.Add("X-Key", fmt.Sprint("key", s.n))
	return resp.Body.Close()
}

func TestRequestsShareNothing(t *testing.T) {
	keys := httptest.NewServer(http.NotFoundHandler())
	defer keys.Close()
	s := serve(t, gemini.Codec{}, respond(textResponse("hi")))
	c := s.client(&provider.Client{Auth: &scribblingAuth{t: t, from: keys.URL}})
	c.Model = ""
	ways := []string{"a:generateContent", "a:generateContent", "b:generateContent", "b:streamGenerateContent", "b:streamGenerateContent", "a:streamGenerateContent", "a:generateContent"}
	for i, way := range ways {
		req := newRequest()
		model, what, _ := strings.Cut(way, ":")
		req.Model = model
		var err error
		if what == "generateContent" {
			_, err = c.Generate(t.Context(), req)
		} else {
			for _, err = range c.Stream(t.Context(), req) {
				if err != nil {
					break
				}
			}
		}
		if err != nil {
			t.Fatal(i, way, err)
		}
		key := fmt.Sprint("key", i+1)
		if g := s.requests()[i]; !strings.HasSuffix(g.path, "/"+way) || strings.Count(g.query, "k=") != 1 || !strings.Contains(g.query, "k="+key) ||
			len(g.header["X-Key"]) != 1 || g.header.Get("X-Key") != key {
			t.Errorf("%d, %s: %s?%s, %q", i, way, g.path, g.query, g.header["X-Key"])
		}
	}
}

// oneByteReader reads one byte at a time.
type oneByteReader struct{ io.Reader }

func (s oneByteReader) Read(p []byte) (int, error) { return s.Reader.Read(p[:min(1, len(p))]) }

func (oneByteReader) Close() error { return nil }

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestWrongContentLengthIsIgnored(t *testing.T) {
	text := strings.Repeat("long ", 20_000)
	body := `{"id":"1","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"` + text + `"},"finish_reason":"stop"}]}`
	for _, says := range []int64{-1, 0, 1, 600, int64(len(body)), 1 << 40} {
		c := &provider.Client{Codec: openaichat.Codec{}, BaseURL: "http://model.test", Model: "m", Timeouts: provider.Timeouts{Idle: time.Hour}, HTTP: &http.Client{
			Transport: roundTrip(func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, ContentLength: says, Body: oneByteReader{strings.NewReader(body)}}, nil
			}),
		}}
		resp, err := c.Generate(t.Context(), newRequest())
		if err != nil {
			t.Fatal(says, err)
		}
		if got := resp.Output[0].Text(); got != text {
			t.Errorf("it says %d: %d bytes of %d", says, len(got), len(text))
		}
	}
}

func TestChangedKeyIsAnotherAccount(t *testing.T) {
	s := serve(t, openaichat.Codec{}, respond(textResponse("hi")))
	key := ""
	c := s.client(&provider.Client{Auth: provider.Bearer(func(context.Context) (string, error) { return key, nil })})
	scopes := map[string]string{}
	for _, key = range []string{"sk-one", "sk-one", "sk-two", "sk-one"} {
		resp, err := c.Generate(t.Context(), newRequest())
		if err != nil {
			t.Fatal(err)
		}
		if was := scopes[key]; was != "" && was != resp.Origin.Scope {
			t.Errorf("%s: %s and %s", key, was, resp.Origin.Scope)
		}
		scopes[key] = resp.Origin.Scope
	}
	if scopes["sk-one"] == scopes["sk-two"] {
		t.Error(scopes)
	}
}
