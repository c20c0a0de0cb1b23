package models

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/textkit"
	"github.com/dragoman-go/dragoman/targets"
)

func TestDataEntriesPassTheirChecks(t *testing.T) {
	c := Default()
	if len(c.Entries()) < 400 || c.AsOf() == "" || c.PricesOn() == "" || c.rules.Version != 1 || c.rules.Unit != "USD per million tokens" {
		t.Fatalf("%d entries as of %q, prices on %q, version %d, %q", len(c.Entries()), c.AsOf(), c.PricesOn(), c.rules.Version, c.rules.Unit)
	}
	for _, e := range c.Entries() {
		if err := e.check(); err != nil {
			t.Errorf("%s: %v", e.ID, err)
		}
		if !strings.HasPrefix(e.ID, e.Provider+"/") {
			t.Errorf("%s is served by %s", e.ID, e.Provider)
		}
		if len(e.Sources) == 0 || e.Vendor == "" || e.Reasoning == nil {
			t.Errorf("%s lacks its sources, its vendor or reasoning", e.ID)
		}
		if p := e.Price; p != nil && p.CacheWrite != nil && *p.In > 0 && e.Provider != "minimax" {
			if f := *p.CacheWrite / *p.In; f < 0.9 || f > 2.1 {
				t.Errorf("%s: cache_write is %v of in", e.ID, f)
			}
		}
	}
}

func TestDataHasNoUnknownFields(t *testing.T) {
	files, err := data.ReadDir("data")
	if err != nil || len(files) != 1+len(Default().Providers()) {
		t.Fatalf("%d files: %v", len(files), err)
	}
	for _, f := range files {
		var to any = new([]*Entry)
		if f.Name() == "rules.json" {
			to = new(rules)
		}
		text, err := data.ReadFile("data/" + f.Name())
		if err != nil {
			t.Fatal(err)
		}
		d := json.NewDecoder(strings.NewReader(string(text)))
		d.DisallowUnknownFields()
		if err := d.Decode(to); err != nil {
			t.Errorf("%s: %v", f.Name(), err)
		}
	}
	for _, fam := range Default().rules.Families {
		if Default().Entry(fam.Like) == nil {
			t.Errorf("the family %v refers to %q, which does not exist", fam.Match, fam.Like)
		}
	}
}

// Each name of an entry is looked up to that entry, and no two patterns of equal weight match one
// name.
func TestDataNamesResolveToTheirEntries(t *testing.T) {
	c := Default()
	for _, e := range c.Entries() {
		for _, name := range slices.Concat(e.Match, e.Aliases) {
			sample := strings.ReplaceAll(strings.Replace(name, "*.", "us.", 1), "*", "0101")
			if m, _ := c.Lookup(e.Provider, sample); m.ID != e.ID {
				t.Errorf("%s of %s resolves to %q", sample, e.ID, m.ID)
			}
			for _, p := range c.providers[e.Provider]().patterns {
				if p.entry != e && p.weight() == (pattern{text: name}).weight() && textkit.MatchStars(p.text, strings.ToLower(sample)) {
					t.Errorf("%s of %s matches %s of %s as well", sample, e.ID, p.text, p.entry.ID)
				}
			}
		}
	}
}

func TestLookup(t *testing.T) {
	c := Default()
	for _, tc := range []struct {
		provider, name, id string
		how                string
	}{
		{"openai", "gpt-4.1", "openai/gpt-4.1", codes.FoundByName},
		{"openai", "GPT-4.1", "openai/gpt-4.1", codes.FoundByName},
		{"openai", "gpt-4.1-2025-04-14", "openai/gpt-4.1", codes.FoundByPattern},
		{"openai", "gpt-4.1-mini-2025-04-14", "openai/gpt-4.1-mini", codes.FoundByPattern},
		{"openai", "ft:gpt-4.1-2025-04-14:acme::x1", "openai/gpt-4.1", codes.FoundByPattern},
		{"openai", "openai/gpt-4.1", "openai/gpt-4.1", codes.FoundByName},
		{"openai", "gpt-5.10", "", codes.FoundByFamily},
		{"openai", "gpt-6-next", "", codes.FoundByFamily},
		{"openai", "o9", "", codes.NotFound},
		{"openai", "my-deployment", "", codes.NotFound},
		{"anthropic", "claude-opus-5", "anthropic/claude-opus-5", codes.FoundByName},
		{"anthropic", "claude-opus-5-5", "anthropic/claude-opus-5-5", codes.FoundByName},
		{"anthropic", "claude-opus-5-20260101", "anthropic/claude-opus-5", codes.FoundByPattern},
		{"anthropic", "claude-opus-5-7", "", codes.FoundByFamily},
		{"anthropic", "claude-opus-4-0", "anthropic/claude-opus-4", codes.FoundByName},
		{"anthropic", "claude-4-opus-20250514", "anthropic/claude-opus-4", codes.FoundByName},
		{"anthropic", "claude-2.1", "", codes.FoundByFamily},
		{"anthropic", "glm-5", "", codes.NotFound},
		{"bedrock", "anthropic.claude-opus-4-1-20250805-v1:0", "bedrock/anthropic.claude-opus-4-1", codes.FoundByPattern},
		{"bedrock", "us.anthropic.claude-opus-4-1-20250805-v1:0", "bedrock/anthropic.claude-opus-4-1", codes.FoundByPattern},
		{"bedrock", "us-gov.anthropic.claude-haiku-4-5", "bedrock/anthropic.claude-haiku-4-5", codes.FoundByName},
		{"bedrock", "arn:aws:bedrock:eu-central-1:123456789012:inference-profile/eu.anthropic.claude-haiku-4-5-v1:0", "bedrock/anthropic.claude-haiku-4-5", codes.FoundByPattern},
		{"bedrock", "global.anthropic.claude-opus-9-v1:0", "", codes.FoundByFamily},
		{"bedrock", "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abc123", "", codes.NotFound},
		{"bedrock", "arn:aws:bedrock:us-east-1:123456789012:custom-model/amazon.nova-lite-v1:0:300k/abc123", "", codes.FoundByFamily},
		{"bedrock", "arn:aws:bedrock:us-east-1:123456789012:custom-model/anthropic.claude-3-haiku-20240307-v1:0:200k/abc123", "bedrock/anthropic.claude-3-haiku", codes.FoundByPattern},
		{"bedrock", "us.amazon.nova-pro-v9:0", "", codes.FoundByFamily},
		{"gemini", "gemini-1.5-pro-002", "", codes.FoundByFamily},
		{"gemini", "gemini-pro", "", codes.FoundByFamily},
		{"gemini", "models/gemini-2.5-flash", "gemini/gemini-2.5-flash", codes.FoundByName},
		{"gemini", "gemini-4-pro", "", codes.FoundByFamily},
		{"vertex", "publishers/google/models/gemini-2.5-flash", "gemini/gemini-2.5-flash", codes.FoundByName},
		{"vertex", "gemini-2.5-pro", "gemini/gemini-2.5-pro", codes.FoundByName},
		{"vertex", "claude-opus-4-5@20251101", "vertex/claude-opus-4-5", codes.FoundByPattern},
		{"ollama", "qwen3:8b", "ollama/qwen3", codes.FoundByPattern},
		{"ollama", "qwen3-coder:30b", "ollama/qwen3-coder", codes.FoundByPattern},
		{"ollama", "my-own", "", codes.NotFound},
		{"openrouter", "anthropic/claude-opus-4.8", "anthropic/claude-opus-4-8", codes.FoundByName},
		{"openrouter", "openai/gpt-4.1:free", "openai/gpt-4.1", codes.FoundByName},
		{"openrouter", "google/gemini-2.5-flash", "gemini/gemini-2.5-flash", codes.FoundByName},
		{"compatible", "gpt-4.1", "openai/gpt-4.1", codes.FoundByName},
		{"compatible", "qwen3-32b", "", codes.NotFound},
		{"vllm", "Qwen/Qwen3-8B", "qwen/qwen3-8b", codes.FoundByName},
		{"mistral", "anything", "", codes.FoundByFamily},
		{"", "", "", codes.NotFound},
	} {
		m, ok := c.Lookup(tc.provider, tc.name)
		if m.ID != tc.id || m.How != tc.how || ok != (tc.how != codes.NotFound) {
			t.Errorf("%s %q: %q by %q, %v; want %q by %q", tc.provider, tc.name, m.ID, m.How, ok, tc.id, tc.how)
		}
		if (m.How == codes.FoundByFamily || m.Resold || strings.HasPrefix(tc.name, "ft:") || strings.Contains(tc.name, ":custom-model/")) && m.Price != nil {
			t.Errorf("%s %q has the price of another model", tc.provider, tc.name)
		}
		if m.How == codes.FoundByFamily && (m.Context != 0 || m.Output != 0 || m.Input != 0) {
			t.Errorf("%s %q has the limits of another model", tc.provider, tc.name)
		}
	}
}

// The rules for models that an earlier version recognized by name.
func TestCapabilitiesOfGeminiAndBedrockModels(t *testing.T) {
	c := Default()
	for model, old := range map[string]bool{
		"gemini-2.5-flash": true, "models/gemini-2.5-pro": true, "gemini-1.5-pro-002": true, "gemini-pro": true, "gemini-pro-vision-001": true, "GEMINI-2.0-flash": true,
		"publishers/google/models/gemini-2.0-flash-001": true, "gemini-2.9-flash-new": true,
		"gemini-3-pro-preview": false, "gemini-3.8-flash": false, "gemini-10-flash": false, "gemini-pro-latest": false, "gemini-flash-latest": false, "gemma-3-27b": false, "": false,
	} {
		for _, provider := range []string{"gemini", "vertex"} {
			m, _ := c.Lookup(provider, model)
			caps := m.Capabilities(dialectname.Gemini)
			for name, got := range map[string]bool{
				"NoMixedTools": caps.NoMixedTools, "NoOutputWithTools": caps.NoOutputWithTools, "NoCallIDs": caps.NoCallIDs,
				"NoResultMedia": caps.NoResultMedia, "NoDummySignature": caps.NoDummySignature, "a budget or no thinking": caps.ThinkingBudgets || caps.NoThinking && m.Provider == "gemini" && old,
			} {
				if got != old {
					t.Errorf("%s %q: %s is %v", provider, model, name, got)
				}
			}
		}
	}
	if m, _ := c.Lookup("unknown", "google/gemini-2.5-flash"); !m.Resold || !m.Capabilities(dialectname.Gemini).NoCallIDs || m.Capabilities(dialectname.OpenAIChat).NoCallIDs {
		t.Error("the rules of the Gemini API must apply only in its own dialect")
	}
	for model, want := range map[string]targets.Capabilities{
		"us.amazon.nova-pro-v1:0":        {ClosedSchemas: true},
		"eu.amazon.nova-ultra-v3:0":      {ClosedSchemas: true},
		"us.amazon.nova-2-lite-v1:0":     {ClosedSchemas: true, EffortField: "reasoningConfig"},
		"openai.gpt-oss-20b-1:0":         {EffortField: "reasoning_effort"},
		"anthropic.claude-opus-4-7":      {NoOutputWithTools: true},
		"us.anthropic.claude-opus-4-8":   {NoOutputWithTools: true},
		"us.anthropic.claude-sonnet-5-5": {},
	} {
		m, _ := c.Lookup("bedrock", model)
		all := m.Capabilities(dialectname.Bedrock)
		if got := (targets.Capabilities{ClosedSchemas: all.ClosedSchemas, NoOutputWithTools: all.NoOutputWithTools, EffortField: all.EffortField}); got != want {
			t.Errorf("%s: %+v", model, got)
		}
	}
}

func TestLongPromptHasTierPrice(t *testing.T) {
	p := Default().Entry("gemini/gemini-2.5-pro").Price
	if in := *p.For(200_000).In; in != 1.25 {
		t.Errorf("in %v", in)
	}
	if long := p.For(200_001); *long.In != 2.5 || *long.Out != 15 || long.CacheWrite != nil {
		t.Errorf("%v %v %v", *long.In, *long.Out, long.CacheWrite)
	}
	if (*Price)(nil).For(5) != nil {
		t.Error("an unknown price became known")
	}
}

func TestOverrideFileAddsAndChangesEntries(t *testing.T) {
	base := Default()
	c, err := base.With("models.yaml", []byte(`
version: 1
models:
  - id: openai/gpt-4.1
    reasoning: {supported: true, efforts: [low, high]}
    refuses: [top_k]
    price: null
  - id: vllm/our-model
    like: openai/gpt-4o
    match: [our-model, our-model-*]
    context: 32768
  - id: ollama/ours
`))
	if err != nil {
		t.Fatal(err)
	}
	changed, _ := c.Lookup("openai", "gpt-4.1-2025-04-14")
	if !changed.Reasoning.Supported || changed.Price != nil || changed.Context != 1047576 || fmt.Sprint(changed.Refuses) != "[top_k]" {
		t.Errorf("%+v", changed)
	}
	added, _ := c.Lookup("vllm", "our-model-2")
	if added.ID != "vllm/our-model" || added.Reasoning.Supported || added.Context != 32768 || added.Price != nil || added.Tools != Yes {
		t.Errorf("%+v", added)
	}
	if bare, ok := c.Lookup("ollama", "ours"); !ok || bare.Tools != Unknown {
		t.Errorf("%+v", bare)
	}
	if was, _ := base.Lookup("openai", "gpt-4.1"); was.Reasoning.Supported || was.Price == nil || len(was.Refuses) != 2 || was.Refuses[0] != "reasoning_effort" {
		t.Errorf("the embedded table changed: %+v", was)
	}
}

func TestOverrideFileErrorsNameLineAndReason(t *testing.T) {
	for file, want := range map[string]string{
		"models: []":                                                                               "m.yaml:1:1: model facts: the field version is missing",
		"version: 1\nmodels:\n  - id: gpt-4.1":                                                     `m.yaml:3:9: id: "gpt-4.1" is not provider/name`,
		"version: 1\nmodels:\n  - context: 5":                                                      "m.yaml:3:5: models: the field id is missing",
		"version: 1\nmodels:\n  - id: openai/x\n    contxt: 5":                                     `; did you mean context?`,
		"version: 1\nmodels:\n  - id: openai/x\n    refuses: [temprature]":                         `refuses: unknown value "temprature": known values are `,
		"version: 1\nmodels:\n  - id: openai/x\n    context: 5":                                    "context: 5 is not between",
		"version: 1\nmodels:\n  - id: openai/x\n    tools: maybe":                                  "tools: ",
		"version: 1\nmodels:\n  - id: openai/x\n    like: openai/y":                                `unknown entry "openai/y"`,
		"version: 1\nmodels:\n  - id: openai/x\n  - id: openai/x":                                  "duplicate entry",
		"version: 1\nmodels:\n  - id: openai/x\n    match: [gpt-4.1]":                              `"gpt-4.1" names both openai/gpt-4.1 and openai/x`,
		"version: 1\nmodels:\n  - id: openai/x\n    price: {in: -1, out: 2}":                       "price: in: -1 is not a price",
		"version: 1\nmodels:\n  - id: openai/x\n    price: {in: 1}":                                "in and out are both needed",
		"version: 1\nmodels:\n  - id: openai/x\n    reasoning: {supported: false, efforts: [low]}": "supported is false, so the other fields must be empty",
		"version: 2": "this program supports only version 1",
		"[":          "m.yaml:1:",
	} {
		_, err := Default().With("m.yaml", []byte(file))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", file, err, want)
		}
	}
}

func BenchmarkParseOneProvider(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		var entries []*Entry
		read("openai", &entries)
		if _, err := newProvider(entries); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLookup(b *testing.B) {
	c := Default()
	b.ReportAllocs()
	for b.Loop() {
		c.Lookup("openai", "gpt-4.1-2025-04-14")
	}
}
