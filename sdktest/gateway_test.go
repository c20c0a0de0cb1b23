package sdktest

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/ollama/ollama/api"
	"github.com/openai/openai-go/v3"
	"google.golang.org/genai"

	"github.com/dragoman-go/dragoman/gateway"
	"github.com/dragoman-go/dragoman/internal/oracle/emitcheck"
	"github.com/dragoman-go/dragoman/sim"
)

// upstreams lists the providers of the gateway: the simulator, in every dialect. The provider chat is
// a compatible server.
var upstreams = []string{"chat", "openai", "responses", "anthropic", "gemini", "ollama", "bedrock"}

// newGateway starts a gateway with a simulator as upstream. A checker validates all that the gateway
// sends. The gateway does not retry, so that clients see refusals.
func newGateway(t *testing.T) (url string) {
	t.Helper()
	t.Setenv("SIM_KEY", "any")
	s := httptest.NewServer(sim.Handler(sim.Config{}))
	t.Cleanup(s.Close)
	file := fmt.Sprintf(`version: 1
providers:
  chat: {type: compatible, base_url: "%[1]s/v1", retries: 0}
  openai: {type: openai-chat, base_url: "%[1]s/v1", api_key_env: SIM_KEY, retries: 0}
  responses: {type: openai, base_url: "%[1]s/v1", api_key_env: SIM_KEY, retries: 0}
  anthropic: {base_url: "%[1]s", api_key_env: SIM_KEY, retries: 0}
  gemini: {base_url: "%[1]s", api_key_env: SIM_KEY, retries: 0}
  ollama: {base_url: "%[1]s", retries: 0}
  bedrock: {base_url: "%[1]s", region: eu-central-1, api_key_env: SIM_KEY, retries: 0}
aliases:
`, s.URL)
	for _, up := range upstreams {
		file += fmt.Sprintf("  %[1]s-429: %[1]s/sim/planner?fault=429\n  %[1]s-cut: %[1]s/sim/planner?fault=cut\n", up)
	}
	config, err := gateway.Parse("gateway.yaml", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	g, err := gateway.New(config, gateway.Options{})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(emitcheck.Handler(g, emitcheck.Options{
		Document: emitcheck.OpenResponses(t),
		Report:   func(v *emitcheck.Violation) { t.Errorf("%v\n%s", v, v.Body) },
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// throughGateway runs a test for every client of the gateway, with every upstream, streamed and not.
func throughGateway(t *testing.T, f func(t *testing.T, up string, ask func(task) (content, error))) {
	url := newGateway(t)
	for name, ask := range users() {
		if strings.Contains(name, "Bedrock") {
			continue // only an upstream of the gateway
		}
		for _, up := range upstreams {
			for _, mode := range []string{"whole", "stream"} {
				t.Run(name+" to "+up+"/"+mode, func(t *testing.T) {
					f(t, up, func(w task) (content, error) {
						w.stream = mode == "stream"
						return ask(context.Background(), url, w)
					})
				})
			}
		}
	}
}

func TestG1_OfficialSDKsReachEveryModel(t *testing.T) {
	throughGateway(t, func(t *testing.T, up string, ask func(task) (content, error)) {
		complete(t, func(w task) (content, error) {
			w.model = up + "/sim/planner"
			return ask(w)
		})
	})
}

func TestG2_OfficialSDKsGetTypedErrors(t *testing.T) {
	throughGateway(t, func(t *testing.T, up string, ask func(task) (content, error)) {
		for _, tc := range []struct {
			model  string
			status int
			says   string
		}{
			{up + "/no-such-model", 404, "no-such-model"},
			{"no-such-model", 404, "unknown model"},
			{up + "-429", 429, "the simulator was asked for this error"},
		} {
			_, err := ask(task{model: tc.model, prompt: "Hello!"})
			if status, message := errorOf(err); status != tc.status || !strings.Contains(message, tc.says) {
				t.Errorf("%s: %d %q, %v", tc.model, status, message, err)
			}
		}
	})
}

func TestG2_OfficialSDKsDetectBrokenResponses(t *testing.T) {
	throughGateway(t, func(t *testing.T, up string, ask func(task) (content, error)) {
		_, err := ask(task{model: up + "-cut", prompt: "Hello!"})
		if err == nil {
			t.Fatal("the SDK accepts a broken response")
		}
		const why = "the connection to the upstream broke"
		if _, message := errorOf(err); !strings.Contains(message, why) && !strings.Contains(err.Error(), why) {
			t.Error(err)
		}
	})
}

// errorOf returns the status and the message of an SDK error; the status is 0 if err is not one.
func errorOf(err error) (status int, message string) {
	var (
		ofOpenAI    *openai.Error
		ofAnthropic *anthropic.Error
		ofGoogle    genai.APIError
		ofOllama    api.StatusError
	)
	switch {
	case errors.As(err, &ofOpenAI):
		return ofOpenAI.StatusCode, ofOpenAI.Message
	case errors.As(err, &ofAnthropic):
		return ofAnthropic.StatusCode, ofAnthropic.Error()
	case errors.As(err, &ofGoogle):
		return ofGoogle.Code, ofGoogle.Message
	case errors.As(err, &ofOllama):
		return ofOllama.StatusCode, ofOllama.ErrorMessage
	}
	return 0, ""
}
