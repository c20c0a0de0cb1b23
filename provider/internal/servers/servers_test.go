package servers_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/ollama"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/history"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	facts "github.com/dragoman-go/dragoman/models"
	"github.com/dragoman-go/dragoman/provider/extension"
	"github.com/dragoman-go/dragoman/provider/internal/servers"
	"github.com/dragoman-go/dragoman/schema"
	"github.com/dragoman-go/dragoman/targets"
)

var update = flag.Bool("update", false, "write the golden files")

// conversation returns a request with everything that servers handle differently.
func conversation(server string) *dragoman.Request {
	own := &dragoman.Origin{Dialect: dialectname.OpenAIChat, Provider: server}
	foreign := &dragoman.Origin{Dialect: dialectname.Anthropic, Provider: "anthropic"}
	call := &dragoman.ToolCall{ID: "call_from_elsewhere_1", Name: "find", Arguments: `{"q":"coat"}`}
	return &dragoman.Request{
		Messages: []dragoman.Message{
			{Role: dragoman.RoleDeveloper, Parts: []dragoman.Part{&dragoman.Text{Text: "Be brief."}}},
			dragoman.UserText("Do I need a coat?"),
			{Role: dragoman.RoleAssistant, Origin: own, Parts: []dragoman.Part{&dragoman.Reasoning{Text: "Where?"}, &dragoman.Text{Text: "Where are you?"}}},
			dragoman.UserText("In Oslo."),
			{Role: dragoman.RoleAssistant, Origin: foreign, Parts: []dragoman.Part{call}},
			dragoman.ToolResults(call.Result(&dragoman.Text{Text: "yes"})),
		},
		Tools: []dragoman.ToolSpec{
			{Name: "find", Strict: codes.StrictOn, Parameters: json.RawMessage(`{"type":"object","properties":{"q":{"$ref":"#/$defs/q"}},"required":["q"],"additionalProperties":false,"$defs":{"q":{"type":"string"}}}`)},
			{Name: "other"},
		},
		ToolChoice:      &dragoman.ToolChoice{Mode: dragoman.ChoiceTool, Tools: []dragoman.ToolRef{{Name: "find"}}},
		MaxOutputTokens: new(int64(100)),
		Sampling:        dragoman.Sampling{Seed: new(int64(7)), Temperature: dragoman.Num(0.5)},
		Reasoning:       &dragoman.ReasoningSettings{Effort: "high"},
		Stream:          true, StreamUsage: true,
	}
}

// sent returns the body that a server gets.
func sent(t testing.TB, c dialect.Codec, server, model string, config map[string]json.RawMessage, req *dragoman.Request) (string, error) {
	t.Helper()
	set, err := extension.NewSet(servers.All()...)
	if err != nil {
		t.Fatal(err)
	}
	r, err := set.Resolve(servers.Tags(c.Dialect(), server, model), extension.Switches{})
	if err != nil {
		t.Fatal(err)
	}
	req.Model = model
	known, _ := facts.Default().Lookup(server, model)
	x := extension.NewExchange(extension.Options{
		Request: req, Resolution: r, Config: config, Stream: true,
		Target: targets.Target{Dialect: c.Dialect(), Provider: server, Model: model, Caps: known.Capabilities(c.Dialect())},
	})
	if err := x.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	req, _, err = history.Normalize(req, history.Options{Target: x.Target, Limits: c.Limits()})
	if err != nil {
		t.Fatal(err)
	}
	enc, err := c.EncodeRequest(req, dialect.EncodeOptions{Target: x.Target})
	if err != nil {
		t.Fatal(err)
	}
	body, err := x.Decorate(t.Context(), enc.Body)
	return string(body), err
}

// models has one model of each server.
var models = []struct{ server, model string }{
	{"openai", "gpt-5.5"},
	{"unknown", "some-model"},
	{"deepseek", "deepseek-chat"},
	{"deepseek", "deepseek-reasoner"},
	{"deepseek", "deepseek-r1"},
	{"mistral", "mistral-large-latest"},
	{"moonshot", "kimi-k2"},
	{"vllm", "moonshotai/Kimi-K2-Instruct"},
	{"qwen", "qwen3-max"},
	{"openrouter", "anthropic/claude-opus-5-5"},
	{"groq", "openai/gpt-oss-120b"},
	{"vllm", "Qwen/Qwen3-8B"},
	{"llamacpp", "local"},
	{"lmstudio", "local"},
	{"zai", "glm-5.2"},
	{"xai", "grok-5"},
	{"fireworks", "accounts/fireworks/models/glm-5"},
	{"cerebras", "gpt-oss-120b"},
}

func TestMistralGetsNoOpenAIOnlyFields(t *testing.T) {
	req := conversation("mistral")
	req.Store, req.ServiceTier = new(true), "priority"
	body, err := sent(t, openaichat.Codec{}, "mistral", "mistral-large-latest", nil, req)
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{`"store"`, `"service_tier"`} {
		if strings.Contains(body, field) {
			t.Errorf("%s is in %s", field, body)
		}
	}
}

func TestX7_EveryServerGetsItsFields(t *testing.T) {
	const golden = "testdata/requests.txtar"
	var got txtar.Archive
	got.Comment = []byte("One conversation as each server gets it. Written by go test -update.\n")
	for _, m := range models {
		body, err := sent(t, openaichat.Codec{}, m.server, m.model, nil, conversation(m.server))
		if err != nil {
			t.Fatal(m, err)
		}
		var pretty bytes.Buffer
		if err := json.Indent(&pretty, []byte(body), "", "  "); err != nil {
			t.Fatal(m, err)
		}
		got.Files = append(got.Files, txtar.File{Name: m.server + " " + m.model, Data: append(pretty.Bytes(), '\n')})
	}
	if *update {
		if err := os.WriteFile(golden, txtar.Format(&got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := txtar.ParseFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if len(want.Files) != len(got.Files) {
		t.Fatalf("%d servers, %d of them in %s", len(got.Files), len(want.Files), golden)
	}
	for i, f := range got.Files {
		if w := want.Files[i]; w.Name != f.Name || !bytes.Equal(w.Data, f.Data) {
			t.Errorf("%s:\n%s\nwant\n%s", f.Name, f.Data, w.Data)
		}
	}
}

func TestX7_ServersAreEnabledByTags(t *testing.T) {
	set, err := extension.NewSet(servers.All()...)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		d             dragoman.Dialect
		server, model string
		want          string
	}{
		{dialectname.OpenAIChat, "openai", "gpt-5.5", "openai"},
		{dialectname.OpenAIResponses, "openai", "o4-mini", ""},
		{dialectname.OpenAIChat, "openrouter", "openai/gpt-5.5", "openai.compatible openrouter"},
		{dialectname.Anthropic, "anthropic", "claude-opus-5-5", ""},
		{dialectname.Bedrock, "bedrock", "eu.anthropic.claude-opus-5-5-v1:0", ""},
		{dialectname.OpenAIChat, "openrouter", "anthropic/claude-opus-5-5", "openai.compatible openrouter"},
		{dialectname.Bedrock, "bedrock", "amazon.nova-pro-v1:0", ""},
		{dialectname.OpenAIChat, "azure", "gpt-5.5", ""},
		{dialectname.OpenAIChat, "", "", "openai.compatible"},
		{dialectname.OpenAIChat, "deepseek", "deepseek-chat", "openai.compatible deepseek"},
		{dialectname.OpenAIChat, "vllm", "moonshotai/Kimi-K2", "openai.compatible kimi.ids vllm"},
		{dialectname.OpenAIResponses, "xai", "grok-5", ""},
		{dialectname.Ollama, "ollama", "qwen3", "ollama"},
		{dialectname.Anthropic, "deepseek", "deepseek-chat", ""},
		{dialectname.Gemini, "gemini", "gemini-3", ""},
	} {
		r, err := set.Resolve(servers.Tags(tc.d, tc.server, tc.model), extension.Switches{})
		if err != nil {
			t.Fatal(err)
		}
		var on []string
		for _, e := range r.On {
			on = append(on, e.Info().Name)
		}
		if got := strings.Join(on, " "); got != tc.want {
			t.Errorf("%s %s %s: %q, want %q", tc.d, tc.server, tc.model, got, tc.want)
		}
	}
}

func TestX8_ConfiguredSettingIsInThePayload(t *testing.T) {
	for _, tc := range []struct {
		c                     dialect.Codec
		server, model, config string
		place, want           string
	}{
		{openaichat.Codec{}, "deepseek", "deepseek-chat", `{"deepseek":{"thinking":"disabled"}}`, "thinking", `{"type":"disabled"}`},
		{openaichat.Codec{}, "vllm", "Qwen/Qwen3-8B", `{"vllm":{"enable_thinking":false}}`, "chat_template_kwargs", `{"enable_thinking":false}`},
		{openaichat.Codec{}, "openrouter", "x/y", `{"openrouter":{"provider":{"order":["a"]}}}`, "provider", `{"order":["a"]}`},
		{openaichat.Codec{}, "zai", "glm-5", `{"glm":{"thinking":"enabled","clear_thinking":false}}`, "thinking", `{"type":"enabled","clear_thinking":false}`},
		{ollama.Codec{}, "ollama", "qwen3", `{"ollama":{"num_ctx":8192}}`, "/options/num_ctx", `8192`},
		{ollama.Codec{}, "ollama", "gpt-oss", `{"ollama":{"think_level":"low"}}`, "think", `"low"`},
	} {
		var config map[string]json.RawMessage
		if err := json.Unmarshal([]byte(tc.config), &config); err != nil {
			t.Fatal(err)
		}
		req := &dragoman.Request{Messages: []dragoman.Message{dragoman.UserText("hi")}}
		without, err := sent(t, tc.c, tc.server, tc.model, nil, req)
		if err != nil {
			t.Fatal(err)
		}
		with, err := sent(t, tc.c, tc.server, tc.model, config, req)
		if err != nil {
			t.Fatal(err)
		}
		before, _ := extension.NewObject(json.RawMessage(without))
		after, _ := extension.NewObject(json.RawMessage(with))
		if before.Get(tc.place) != nil || string(after.Get(tc.place)) != tc.want {
			t.Errorf("%s: %s\nand with %s\n%s", tc.server, without, tc.config, with)
		}
	}
}

func TestX11_SettingsMatchTheirSchema(t *testing.T) {
	for _, e := range servers.All() {
		s, ok := e.(servers.Server)
		if !ok {
			continue // models have no settings
		}
		v, err := schema.Compile(s.ConfigSchema())
		if err != nil {
			t.Fatal(s.Name, err)
		}
		elements := s.Elements(extension.Env{})
		if len(elements) != len(s.Knobs) {
			t.Errorf("%s: %d elements for %d settings", s.Name, len(elements), len(s.Knobs))
		}
		if err := v.Validate(json.RawMessage(`{"no such setting":1}`)); err == nil {
			t.Errorf("%s takes any setting", s.Name)
		}
		for i, k := range s.Knobs {
			if elements[i].Setting != k.Setting || elements[i].Label == "" {
				t.Errorf("%s: %+v for %+v", s.Name, elements[i], k)
			}
			for _, value := range []string{`true`, `7`, `"low"`, `"enabled"`, `"none such"`, `{}`, `1.5`, `null`} {
				config := json.RawMessage(`{"` + k.Setting + `":` + value + `}`)
				x := extension.NewExchange(extension.Options{
					Resolution: &extension.Resolution{On: []extension.Extension{s}}, Config: map[string]json.RawMessage{s.Name: config},
				})
				_, err := x.Decorate(t.Context(), json.RawMessage(`{}`))
				if described := v.Validate(config) == nil; described != (err == nil) {
					t.Errorf("%s: the schema takes %s: %v, the extension says %v", s.Name, config, described, err)
				}
			}
		}
	}
	one := servers.Server{Name: "s", Knobs: []servers.Knob{{Setting: "a", Path: "a", Type: "boolean"}}}
	x := extension.NewExchange(extension.Options{
		Resolution: &extension.Resolution{On: []extension.Extension{one}}, Config: map[string]json.RawMessage{"s": json.RawMessage(`{"b":1,"a":2}`)},
	})
	if _, err := x.Decorate(t.Context(), json.RawMessage(`{}`)); err == nil || !strings.Contains(err.Error(), `"b"`) || !strings.Contains(err.Error(), "a: want boolean") {
		t.Errorf("%v", err)
	}
}

func TestEveryServerHasAGoldenRequest(t *testing.T) {
	for _, e := range servers.All() {
		for _, tag := range e.Info().Requires {
			name, ok := strings.CutPrefix(string(tag), "server:")
			if ok && !slices.ContainsFunc(models, func(m struct{ server, model string }) bool { return m.server == name }) {
				t.Errorf("%s has none", name)
			}
		}
	}
}
