package provider_test

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/provider/extension"
	"github.com/dragoman-go/dragoman/targets"
)

// noHooks has no hook at all.
type noHooks struct{}

func (noHooks) Info() extension.Info { return extension.Info{Name: "bystander"} }

func TestClientWithoutChangesIsTransparent(t *testing.T) {
	settings := func(s provider.Settings) *provider.Config {
		return &provider.Config{Providers: map[string]provider.Settings{"mine": s}}
	}
	for _, tc := range []struct {
		name   string
		config *provider.Config
		spec   string
		want   bool
	}{
		{"a vendor's own API", &provider.Config{}, "openai/gpt-5", true},
		{"the older one", &provider.Config{}, "openai-chat/gpt-5", true},
		{"a model with known limits", &provider.Config{}, "anthropic/claude-opus-5-5", true},
		{"Gemini", &provider.Config{}, "gemini/gemini-3-pro", true},
		{"a server without settings", &provider.Config{}, "ollama/qwen3", true},
		{"one with a setting", settings(provider.Settings{Type: "ollama", Extensions: map[string]json.RawMessage{"ollama": json.RawMessage(`{"think":true}`)}}), "mine/qwen3", false},
		{"a server that differs", &provider.Config{}, "groq/llama", false},
		{"any compatible server", settings(provider.Settings{Type: "compatible", BaseURL: "http://127.0.0.1"}), "mine/m", false},
		{
			"one whose difference is switched off",
			settings(provider.Settings{Type: "compatible", BaseURL: "http://127.0.0.1", Switches: extension.Switches{Off: []string{"openai.compatible"}}}), "mine/m", true,
		},
		{"a capability that is set", settings(provider.Settings{Type: "anthropic", Capabilities: map[string]string{"no_images": "true"}}), "mine/m", false},
		{"a capability of another model", settings(provider.Settings{Type: "anthropic", Models: map[string]provider.ModelSettings{"x": {Capabilities: map[string]string{"no_images": "true"}}}}), "mine/m", true},
		{"tags of thinking", settings(provider.Settings{Type: "anthropic", ThinkTags: "marked"}), "mine/m", false},
		{"an extension that finishes answers", &provider.Config{Extensions: []extension.Extension{partAdder{}}}, "anthropic/m", false},
		{"one without a hook", &provider.Config{Extensions: []extension.Extension{noHooks{}}}, "anthropic/m", true},
		{"one that a tool switches on", &provider.Config{Extensions: []extension.Extension{marker{"tooled", []extension.Tag{"tools"}}}}, "anthropic/m", false},
		{"one that a format switches on", &provider.Config{Extensions: []extension.Extension{marker{"acme", []extension.Tag{"format:acme.tool"}}}}, "anthropic/m", false},
		{"one that is off", &provider.Config{Extensions: []extension.Extension{marker{"other", []extension.Tag{"server:other"}}}}, "anthropic/m", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.config.Getenv = env()
			m, err := tc.config.Open(tc.spec)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if got := m.(*provider.Client).Transparent(t.Context(), ""); got != tc.want {
					t.Errorf("transparent: %v", got)
				}
			}
		})
	}
}

func TestZeroClientIsTransparent(t *testing.T) {
	same := func(string) targets.Capabilities { return targets.Capabilities{} }
	other := func(m string) targets.Capabilities { return targets.Capabilities{NoImages: m == "blind"} }
	for _, tc := range []struct {
		name   string
		client *provider.Client
		model  string
		want   bool
	}{
		{"zero", &provider.Client{}, "m", true},
		{"contributions", &provider.Client{Contributions: make([]dragoman.Contribution, 1)}, "m", false},
		{"capabilities without effect", &provider.Client{Codec: anthropic.Codec{}, Capabilities: same}, "m", true},
		{"capabilities of the model", &provider.Client{Codec: anthropic.Codec{}, Capabilities: other}, "blind", false},
		{"capabilities of another", &provider.Client{Codec: anthropic.Codec{}, Capabilities: other}, "m", true},
		{"capabilities of the client's model", &provider.Client{Codec: anthropic.Codec{}, Capabilities: other, Model: "blind"}, "m", false},
		{"a switch for an unknown extension", &provider.Client{Extensions: provider.Extensions{Switches: extension.Switches{On: []string{"none"}}}}, "m", false},
		{"an extension for the model", &provider.Client{Extensions: extensions(t, marker{"claude", []extension.Tag{"family:claude"}})}, "claude-x", false},
		{"an extension for another", &provider.Client{Extensions: extensions(t, marker{"claude", []extension.Tag{"family:claude"}})}, "gpt-x", true},
	} {
		if got := tc.client.Transparent(t.Context(), tc.model); got != tc.want {
			t.Errorf("%s: transparent: %v", tc.name, got)
		}
	}
}

func TestClientDialectIsTheCodecs(t *testing.T) {
	if got := (&provider.Client{}).Dialect(); got != dialectname.OpenAIChat {
		t.Errorf("of none: %s", got)
	}
	if got := (&provider.Client{Codec: anthropic.Codec{}}).Dialect(); got != dialectname.Anthropic {
		t.Errorf("of Anthropic's: %s", got)
	}
}

func TestOpenedClientsCanBeConfigured(t *testing.T) {
	var seen []string
	c := &provider.Config{Getenv: env(), Client: func(c *provider.Client) {
		seen = append(seen, c.String())
		c.Chunks = true
	}}
	m, err := c.Open("openai/a, sim/planner, ollama/b")
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range m.(*provider.Chain).Links {
		if client, ok := l.Model.(*provider.Client); ok != (l.Name != "sim/planner") || ok && !client.Chunks {
			t.Errorf("%s is a %T", l.Name, l.Model)
		}
	}
	if !slices.Equal(seen, []string{"openai/a", "ollama/b"}) {
		t.Errorf("saw %v", seen)
	}
}

func TestConfigFileMayHaveAGatewaySection(t *testing.T) {
	c, err := provider.Parse("f.yaml", []byte("version: 1\naliases: {fast: openai/a}\ngateway:\n  listen: 127.0.0.1:8088\n  anything: [1, {a: b}]\n"))
	if err != nil || c.Aliases["fast"] != "openai/a" {
		t.Errorf("%v, %v", c, err)
	}
}

func TestResponseStartHasRequestLosses(t *testing.T) {
	unstreamed := func(s *server, w http.ResponseWriter, r *http.Request, got received) {
		got.stream = false
		respond(textResponse("hi"))(s, w, r, got)
	}
	for name, step := range map[string]step{"a stream": respond(textResponse("hi")), "an answer that came at once": unstreamed} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, anthropic.Codec{}, step)
			req := newRequest()
			req.MaxOutputTokens, req.Sampling.Seed = new(int64(100)), new(int64(7)) // Messages has no seed
			var whole dragoman.Collector
			var start, end []dragoman.Loss
			for ev, err := range s.client(&provider.Client{}).Stream(context.Background(), req) {
				if err != nil {
					t.Fatal(err)
				}
				switch ev := ev.(type) {
				case *dragoman.ResponseStart:
					start = ev.Response.Losses.Losses
				case *dragoman.ResponseEnd:
					end = ev.Response.Losses.Losses
				}
				whole.Add(ev)
			}
			resp, err := whole.Response()
			if err != nil {
				t.Fatal(err)
			}
			if len(start) != 1 || start[0].Path != "/sampling/seed" {
				t.Errorf("at the start %v", start)
			}
			if !slices.Equal(end, start) || !slices.Equal(resp.Losses.Losses, end) {
				t.Errorf("at the end %v, collected %v", end, resp.Losses.Losses)
			}
		})
	}
}
