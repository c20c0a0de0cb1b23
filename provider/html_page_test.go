package provider_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/bedrock"
	"github.com/dragoman-go/dragoman/dialect/cohere"
	"github.com/dragoman-go/dragoman/dialect/gemini"
	"github.com/dragoman-go/dragoman/dialect/ollama"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
	"github.com/dragoman-go/dragoman/provider"
)

func TestProxyPageErrorHasStatusAndText(t *testing.T) {
	const secret = "sk-0123456789abcdef"
	page := "\n<!DOCTYPE html>\n<html><head><title>Bad &amp; Gateway</title><style>b{}</style><script>if (a<b) go()</script></head>" +
		"<!-- hidden --><body><h1>No way\n  for " + secret + "</h1>" + strings.Repeat("<p>blah</p>", 5000) + "</body></html>"
	for _, tc := range []struct {
		status      int
		kind, body  string
		want, never string
	}{
		{502, "text/html", page, `an HTML page that says "Bad & Gateway No way for `, "<h1>"},
		{405, "text/html", page, "; check the base URL of the provider", "go()"},
		{501, "text/html", page, "; check the base URL of the provider", "go()"},
		{403, "text/html; charset=utf-8", "<HTML></HTML>", "an HTML page without text", "<"},
		{200, "text/html", page, `(text/html): an HTML page that says "Bad & Gateway No way for `, "go()"},
		{200, "", page, `an HTML page that says "Bad & Gateway No way for `, "hidden"},
		{200, "text/plain", "upstream is away for " + secret, `(text/plain): it begins with "upstream is away for `, "invalid character"},
		{200, "application/xml", "<error>no</error>", `it begins with "<error>no</error>"`, "invalid character"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = []string{tc.kind}
			w.WriteHeader(tc.status)
			_, _ = w.Write([]byte(tc.body))
		}))
		for _, codec := range []dialect.Codec{openaichat.Codec{}, openairesponses.Codec{}, anthropic.Codec{}, gemini.Codec{}, ollama.Codec{}, bedrock.Codec{}, cohere.Codec{}} {
			c := &provider.Client{
				Name: "x", Codec: codec, BaseURL: server.URL, Model: "m", Retry: provider.Retry{Max: -1},
				Auth: provider.Bearer(provider.FixedKey(secret)),
			}
			req := &dragoman.Request{Messages: []dragoman.Message{dragoman.UserText("hi")}}
			_, whole := c.Generate(t.Context(), req)
			var streamed error
			for _, err := range c.Stream(t.Context(), req) {
				streamed = err
			}
			for how, err := range map[string]error{"whole": whole, "stream": streamed} {
				var api *dragoman.APIError
				if !errors.As(err, &api) || api.Status != tc.status {
					t.Errorf("%d %s %s: %v", tc.status, codec.Dialect(), how, err)
					continue
				}
				if text := err.Error(); !strings.Contains(text, tc.want) || strings.Contains(text, tc.never) || strings.Contains(text, secret) || len(text) > 600 {
					t.Errorf("%d %s %s: %s", tc.status, codec.Dialect(), how, text)
				}
				if retry := tc.status != 403 && tc.status != 405; api.Retryable() != retry {
					t.Errorf("%d %s %s: retryable %v", tc.status, codec.Dialect(), how, !retry)
				}
			}
		}
		server.Close()
	}
}

func TestEmptyResponseErrorHasItsStatus(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	c := &provider.Client{BaseURL: server.URL, Model: "m", Retry: provider.Retry{Max: -1}}
	_, err := c.Generate(t.Context(), &dragoman.Request{Messages: []dragoman.Message{dragoman.UserText("hi")}})
	if err == nil || err.Error() != "200 the upstream response is not JSON: it is empty" {
		t.Error(err)
	}
}
