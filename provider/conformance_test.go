package provider_test

import (
	"cmp"
	"errors"
	"slices"
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
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/sim"
	"github.com/dragoman-go/dragoman/sim/conformance"
)

// TestZ4_EveryProviderConforms runs the exported suite over HTTP, against the simulator.
func TestZ4_EveryProviderConforms(t *testing.T) {
	for _, tc := range []struct {
		codec dialect.Codec
		base  string
	}{
		{openaichat.Codec{}, "/v1"},
		{openairesponses.Codec{}, "/v1"},
		{anthropic.Codec{}, ""},
		{gemini.Codec{}, ""},
		{ollama.Codec{}, ""},
		{bedrock.Codec{}, ""},
		{cohere.Codec{}, ""},
	} {
		t.Run(string(tc.codec.Dialect()), conformance.Model{
			Codec: tc.codec,
			Open: func(_ *testing.T, url string) dragoman.Model {
				return &provider.Client{Name: "sim", Codec: tc.codec, BaseURL: url + tc.base, Retry: provider.Retry{Max: -1}}
			},
		}.Run)
	}
}

// builtinNames returns the names of the built-in providers, from the error for an unknown name.
func builtinNames(t *testing.T) []string {
	t.Helper()
	_, err := (&provider.Config{}).Open("nobody/x")
	var spec *provider.SpecError
	if !errors.As(err, &spec) {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(spec.Reason, "known providers are ")
	return slices.DeleteFunc(strings.Split(list, ", "), func(name string) bool { return name == "sim" }) // it has no wire
}

// reasoningField returns the reasoning field of an OpenAI-compatible server.
func reasoningField(name string) string {
	switch name {
	case "groq", "openrouter", "vllm", "cerebras":
		return "reasoning"
	default:
		return "reasoning_content"
	}
}

// TestX12_EveryBuiltInProviderConforms runs the suite on every built-in provider, opened as a
// program opens it: with its credential, its paths and its extensions.
func TestX12_EveryBuiltInProviderConforms(t *testing.T) {
	own := map[string]dialect.Codec{
		"openai": openairesponses.Codec{}, "openai-chat": openaichat.Codec{}, "anthropic": anthropic.Codec{}, "gemini": gemini.Codec{},
		"vertex": gemini.Codec{}, "ollama": ollama.Codec{}, "bedrock": bedrock.Codec{}, "cohere": cohere.Codec{},
	}
	names := builtinNames(t)
	if len(names) < 20 {
		t.Fatalf("there are only %q", names)
	}
	for _, name := range append(names, "compatible", "bedrock, signed", "anthropic, compatible") {
		typ, variant, _ := strings.Cut(name, ", ")
		codec := cmp.Or(own[typ], dialect.Codec(openaichat.Codec{}))
		suite := conformance.Model{Codec: codec}
		base := ""
		switch {
		case typ == "openai-chat":
			base = "/v1"
		case typ == "vertex":
			base = "/v1/projects/p/locations/global/publishers/google"
		case codec.Dialect() == dialectname.OpenAIChat:
			base, suite.ReasoningField = "/v1", reasoningField(typ)
		case typ == "openai":
			base = "/v1"
		}
		suite.Open = func(t *testing.T, url string) dragoman.Model {
			settings := provider.Settings{Type: typ, BaseURL: url + base, Retry: provider.Retry{Max: -1}}
			if typ == "mistral" { // whose unknown models are taken for ones that do not reason
				settings.Capabilities = map[string]string{"no_thinking": "false"}
			}
			env := map[string]string{"AWS_REGION": "eu-north-1"}
			switch variant {
			case "signed":
				env["AWS_ACCESS_KEY_ID"], env["AWS_SECRET_ACCESS_KEY"] = "AKIDEXAMPLE", "a-secret-key"
			case "compatible":
				settings.APIKeyEnv = []string{"MY_KEY"}
			default:
				env["AWS_BEARER_TOKEN_BEDROCK"] = "a-bearer-key"
			}
			c := &provider.Config{Providers: map[string]provider.Settings{"mine": settings}, Getenv: func(name string) string {
				if v, ok := env[name]; ok || strings.HasPrefix(name, "AWS_") || strings.HasSuffix(name, "_URL") || strings.HasSuffix(name, "_HOST") {
					return v
				}
				return "any-credential"
			}}
			m, err := c.Open("mine/any")
			if err != nil {
				t.Fatal(err)
			}
			client := m.(*provider.Client)
			client.Model = "" // the one that each request names
			return client
		}
		t.Run(name, suite.Run)
	}
}

func TestSimulatorOpensByName(t *testing.T) {
	for _, name := range sim.Names() {
		m, err := provider.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Generate(t.Context(), newRequest()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"sim/gpt-5", "sim/echo?fault=nothing"} {
		if _, err := provider.Open(name); !badSpec(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
