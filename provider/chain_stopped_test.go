package provider_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/provider"
)

func TestStoppedChainNamesUncalledModels(t *testing.T) {
	for _, v := range []string{"OPENAI_API_KEY", "DRAGOMAN_CONFIG"} {
		t.Setenv(v, "")
	}
	m, err := provider.Open("openai/gpt-5,sim/echo,sim/planner")
	if err != nil {
		t.Fatal(err)
	}
	const want = "openai/gpt-5: provider: the API key is missing: set OPENAI_API_KEY; not called: sim/echo, sim/planner, because an error of class authentication ends a list of models (set failover.always_continue to call the next model after any error)"
	check := func(err error) {
		t.Helper()
		var missing *provider.MissingKeyError
		var api *dragoman.APIError
		if err == nil || !strings.HasPrefix(err.Error(), want) || !errors.As(err, &missing) || !errors.As(err, &api) {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
	req := &dragoman.Request{Messages: []dragoman.Message{dragoman.UserText("hi")}}
	_, err = m.Generate(context.Background(), req)
	check(err)
	for _, err = range m.Stream(context.Background(), req) {
	}
	check(err)
	config, err := provider.Parse("models.yaml", []byte("version: 1\nfailover: {always_continue: true}\n")) // as the error says
	if err != nil {
		t.Fatal(err)
	}
	if m, err = config.Open("openai/gpt-5,sim/echo"); err != nil {
		t.Fatal(err)
	}
	if resp, err := m.Generate(context.Background(), req); err != nil || resp.Text() != "hi" {
		t.Errorf("%v, %v", resp, err)
	}

	// A list with the same model twice opens one model.
	if m, err = provider.Open("openai/gpt-5,openai/gpt-5"); err != nil {
		t.Fatal(err)
	}
	if _, err = m.Generate(context.Background(), req); err == nil || strings.Contains(err.Error(), "not called") {
		t.Errorf("%v", err)
	}
}
