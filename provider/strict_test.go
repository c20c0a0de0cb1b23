package provider_test

import (
	"errors"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/provider"
)

// lossyRequest returns a request whose output format Anthropic does not support: a serious loss.
func lossyRequest() *dragoman.Request {
	return &dragoman.Request{Messages: []dragoman.Message{dragoman.UserText("hi")}, Output: &dragoman.OutputFormat{Kind: codes.OutputJSON}}
}

func TestR11_StrictClientSendsNothingThatLoses(t *testing.T) {
	for _, tc := range []struct {
		strict *dragoman.Severity
		sent   bool
	}{
		{nil, true},
		{new(dragoman.Serious), false},
		{new(dragoman.Warn), false},
	} {
		s := serve(t, anthropic.Codec{}, respond(textResponse("Yes.")))
		c := &provider.Client{Name: "anthropic", Codec: anthropic.Codec{}, BaseURL: s.URL, Model: "claude-opus-4-1", Strict: tc.strict, Auth: provider.Bearer(provider.FixedKey("k"))}
		_, whole := c.Generate(t.Context(), lossyRequest())
		var streamed error
		for _, err := range c.Stream(t.Context(), lossyRequest()) {
			streamed = err
		}
		for how, err := range map[string]error{"whole": whole, "streamed": streamed} {
			var loss *dragoman.LossError
			if refused := errors.Is(err, dragoman.ErrUnsupported) && errors.As(err, &loss) && strings.Contains(err.Error(), "/output"); refused == tc.sent || tc.sent && err != nil {
				t.Errorf("%v, %s: %v", tc.strict, how, err)
			}
		}
		if got := len(s.got) == 2; got != tc.sent || !tc.sent && len(s.got) > 0 {
			t.Errorf("%v: %d requests were sent", tc.strict, len(s.got))
		}
		c.Strict = new(dragoman.Serious)
		if _, err := c.Generate(t.Context(), &dragoman.Request{Messages: []dragoman.Message{dragoman.UserText("hi")}}); err != nil {
			t.Errorf("a request that loses nothing: %v", err)
		}
	}
}

func TestR11_StrictModelOfAChainLeavesTheRequestToTheNext(t *testing.T) {
	first, second := serve(t, anthropic.Codec{}, respond(textResponse("No."))), serve(t, openaichat.Codec{}, respond(textResponse("Yes.")))
	config, err := provider.Parse("f", []byte(`
version: 1
providers:
  first: {type: anthropic, base_url: "`+first.URL+`", api_key_env: KEY, strict: serious}
  second: {type: openai-chat, base_url: "`+second.URL+`", api_key_env: KEY}
`))
	if err != nil {
		t.Fatal(err)
	}
	config.Getenv = func(string) string { return "k" }
	m, err := config.Open("first/claude-opus-4-1,second/gpt-4.1")
	if err != nil {
		t.Fatal(err)
	}
	resp, err := m.Generate(t.Context(), lossyRequest())
	if err != nil || resp.Text() != "Yes." || len(first.got) > 0 || resp.Failover.Model != "second/gpt-4.1" {
		t.Errorf("%v, %d requests to the strict model, %+v", err, len(first.got), resp)
	}
	if _, err := provider.Parse("f", []byte("version: 1\nproviders:\n  openai: {strict: much}\n")); err == nil || !strings.Contains(err.Error(), "info, warn or serious") || !strings.Contains(err.Error(), "3") {
		t.Errorf("%v", err)
	}
}
