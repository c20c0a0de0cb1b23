package provider_test

import (
	"errors"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/bedrock"
	"github.com/dragoman-go/dragoman/dialect/gemini"
	"github.com/dragoman-go/dragoman/dialect/ollama"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/sim"
	"github.com/dragoman-go/dragoman/sim/conformance"
)

// TestZ4_EveryProviderConforms runs the suite that anybody can run, over real
// HTTP, against the simulator.
func TestZ4_EveryProviderConforms(t *testing.T) {
	for _, tc := range []struct {
		codec   dialect.Codec
		base    string
		without map[string]string
	}{
		{openaichat.Codec{}, "/v1", map[string]string{
			"reasoning": "OpenAI's own API tells none", "reasoning replay": "OpenAI's own API tells none",
		}},
		{openairesponses.Codec{}, "/v1", nil},
		{anthropic.Codec{}, "", nil},
		{gemini.Codec{}, "", nil},
		{ollama.Codec{}, "", nil},
		{bedrock.Codec{}, "", nil},
	} {
		t.Run(string(tc.codec.Dialect()), conformance.Model{
			Codec: tc.codec, Without: tc.without,
			Open: func(_ *testing.T, url string) dragoman.Model {
				return &provider.Client{Name: "sim", Codec: tc.codec, BaseURL: url + tc.base, Retry: provider.Retry{Max: -1}}
			},
		}.Run)
	}
}

func TestTheSimulatorIsOpenedByNameInProcess(t *testing.T) {
	for _, name := range sim.Names() {
		m, err := provider.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Generate(t.Context(), question()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"sim/gpt-5", "sim/echo?fault=nothing"} {
		if _, err := provider.Open(name); !errors.Is(err, provider.ErrSpec) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
