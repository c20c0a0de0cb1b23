package provider_test

import (
	"slices"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/gemini"
	"github.com/dragoman-go/dragoman/dialect/ollama"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
	"github.com/dragoman-go/dragoman/provider"
)

// requestWithSettings returns a request with settings that a server may refuse.
func requestWithSettings() *dragoman.Request {
	req := newRequest()
	req.Reasoning = &dragoman.ReasoningSettings{Effort: "high"}
	req.Sampling.Temperature, req.Sampling.TopP = dragoman.Num(0.5), dragoman.Num(0.9)
	req.Sampling.PresencePenalty = dragoman.Num(0.1)
	req.MaxOutputTokens = new(int64(9000))
	return req
}

func TestX14_RefusedSettingIsDroppedOnce(t *testing.T) {
	for _, tc := range []struct {
		codec   dialect.Codec
		err     dragoman.APIError
		carried string // by the first request only
		path    string
	}{
		{openaichat.Codec{}, dragoman.APIError{Code: "unsupported_parameter", Param: "reasoning_effort", Message: "Unsupported parameter: 'reasoning_effort' is not supported with this model."}, "reasoning_effort", "/reasoning"},
		{openaichat.Codec{}, dragoman.APIError{Message: "Unrecognized request argument supplied: reasoning_effort"}, "reasoning_effort", "/reasoning"},
		{openaichat.Codec{}, dragoman.APIError{Code: "unsupported_value", Param: "temperature", Message: "Unsupported value: 'temperature' does not support 0.5 with this model. Only the default (1) value is supported."}, `"temperature"`, "/sampling/temperature"},
		{openaichat.Codec{}, dragoman.APIError{Message: "Model grok-x does not support parameter presencePenalty."}, "presence_penalty", "/sampling/presence_penalty"},
		{openairesponses.Codec{}, dragoman.APIError{Code: "unsupported_parameter", Param: "reasoning.effort", Message: "Unsupported parameter: 'reasoning.effort' is not supported with this model."}, `"effort"`, "/reasoning"},
		{ollama.Codec{}, dragoman.APIError{Message: `"m" does not support thinking`}, `"think"`, "/reasoning"},
		{anthropic.Codec{}, dragoman.APIError{Message: "`temperature` is deprecated for this model."}, `"temperature"`, "/sampling/temperature"},
		{anthropic.Codec{}, dragoman.APIError{Message: "This model does not support the effort parameter."}, `"effort"`, "/reasoning"},
		{gemini.Codec{}, dragoman.APIError{Message: "Penalty is not enabled for this model"}, "presencePenalty", "/sampling"},
		{gemini.Codec{}, dragoman.APIError{Message: "Thinking level is not supported for this model."}, "thinkingConfig", "/reasoning"},
	} {
		t.Run(tc.err.Message, func(t *testing.T) {
			tc.err.Class = dragoman.ErrorBadRequest
			s := serve(t, tc.codec, respondError(&tc.err), respond(textResponse("fine")))
			c, clock := noWaitClient(s, provider.Retry{Max: -1})
			req := requestWithSettings()
			resp, err := c.Generate(t.Context(), req)
			if err != nil || resp.Text() != "fine" {
				t.Fatalf("%v, %v", resp, err)
			}
			got := s.requests()
			if len(got) != 2 || !strings.Contains(string(got[0].body), tc.carried) || strings.Contains(string(got[1].body), tc.carried) {
				t.Errorf("%d requests, first %s\nthen %s", len(got), got[0].body, got[len(got)-1].body)
			}
			if len(clock.waits()) != 0 {
				t.Errorf("waits %v", clock.waits())
			}
			if !slices.ContainsFunc(resp.Losses.Losses, func(l dragoman.Loss) bool { return l.Path == tc.path && l.Kind == dragoman.Dropped }) {
				t.Errorf("losses %v", resp.Losses.Losses)
			}
			if req.Reasoning == nil || req.Sampling.Temperature == nil {
				t.Error("the caller's request was changed")
			}
		})
	}
}

func TestX14_OtherRefusalsAreReturned(t *testing.T) {
	for _, message := range []string{
		"Invalid value for temperature: must be between 0 and 2",
		"This model does not support image input.",
		"messages.3: temperature reading is not valid JSON",
		"Unsupported parameter: 'web_search_options'",
		"model does not support tools",
	} {
		s := serve(t, openaichat.Codec{}, respondError(&dragoman.APIError{Class: dragoman.ErrorBadRequest, Message: message}), respond(textResponse("fine")))
		c, _ := noWaitClient(s, provider.Retry{Max: -1})
		if _, err := c.Generate(t.Context(), requestWithSettings()); err == nil || len(s.requests()) != 1 {
			t.Errorf("%s: error %v after %d requests", message, err, len(s.requests()))
		}
	}
}

// Vendor rules depend on the server, not on the name of the provider.
func TestA3_ProviderNameEnablesNothing(t *testing.T) {
	for name, typ := range map[string]string{"deepseek": "openai-chat", "openai": "deepseek", "work": "openai-chat", "mistral": "vllm"} {
		plain, err := (&provider.Config{Getenv: env(), Providers: map[string]provider.Settings{"other": {Type: typ, BaseURL: "http://127.0.0.1:9/v1"}}}).Open("other/m")
		if err != nil {
			t.Fatal(err)
		}
		named, err := (&provider.Config{Getenv: env(), Providers: map[string]provider.Settings{name: {Type: typ, BaseURL: "http://127.0.0.1:9/v1"}}}).Open(name + "/m")
		if err != nil {
			t.Fatal(err)
		}
		want, _, err := plain.(*provider.Client).Target(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := named.(*provider.Client).Target(t.Context(), "")
		got.Caps.ID, want.Caps.ID = nil, nil // pointers
		if err != nil || got.Caps != want.Caps {
			t.Errorf("%s of type %s: %+v\nwant %+v, %v", name, typ, got.Caps, want.Caps, err)
		}
	}
}
