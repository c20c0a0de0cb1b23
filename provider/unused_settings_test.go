package provider_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/provider/extension"
)

// namedExtension is an extension with only a name and tags.
type namedExtension extension.Info

func (n namedExtension) Info() extension.Info { return extension.Info(n) }

func TestX11_UnusableSettingsAreRefused(t *testing.T) {
	open := func(file, spec string, own ...extension.Extension) error {
		t.Helper()
		c, err := provider.Parse("c.yaml", []byte("version: 1\nproviders:\n  "+file), own...)
		if err != nil {
			t.Fatal(err)
		}
		c.Getenv = env()
		_, err = c.Open(spec)
		return err
	}
	optIn := namedExtension{Name: "mine", OptIn: true}
	family := namedExtension{Name: "mine", Requires: []extension.Tag{"family:claude"}}
	with := namedExtension{Name: "mine", Requires: []extension.Tag{"server:acme"}}
	acme := namedExtension{Name: "acme", Requires: []extension.Tag{"tools"}, Provides: []extension.Tag{"server:acme"}}
	for _, tc := range []struct {
		file, want string
		own        []extension.Extension
	}{
		{`work: {type: compatible, base_url: "http://127.0.0.1:9", extensions: {vllm: {enable_thinking: false}}}`, "the settings of vllm have no effect, because it is off for this provider (lacks server:vllm)", nil},
		{`work: {type: anthropic, base_url: "http://127.0.0.1:9", extensions: {ollama: {think: true}}}`, "lacks dialect:ollama.chat", nil},
		{`work: {type: vllm, extensions: {vllm: {enable_thinking: false}}}`, "", nil},
		{`work: {type: vllm, extensions: {mine: {a: 1}}}`, "", []extension.Extension{optIn}},
		{`work: {type: vllm, extensions: {mine: {a: 1}}}`, "", []extension.Extension{family}}, // other models may have it
		{`work: {type: vllm, extensions: {mine: {a: 1}}}`, "", []extension.Extension{with, acme}},
		{`work: {type: vllm, extensions: {mine: {a: 1}}}`, "lacks server:acme", []extension.Extension{with}},
	} {
		err := open(tc.file, "work/m", tc.own...)
		var bad *provider.SettingError
		if tc.want == "" && err != nil || tc.want != "" && (!errors.As(err, &bad) || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %v, want %q", tc.file, err, tc.want)
		}
	}
	settings := provider.Settings{Type: "vllm", Extensions: map[string]json.RawMessage{"ollama": json.RawMessage(`{}`)}}
	settings.Switches.Off = []string{"ollama"}
	if _, err := (&provider.Config{Getenv: env(), Providers: map[string]provider.Settings{"work": settings}}).Open("work/m"); err != nil {
		t.Errorf("who switched it off knows: %v", err)
	}
}

func TestX11_UnusedSettingsAreReported(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"id":"c","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}`)
	}))
	defer server.Close()
	set, err := extension.NewSet(namedExtension{Name: "mine", Requires: []extension.Tag{"tools"}}, namedExtension{Name: "other"})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(e provider.Extensions, tools ...dragoman.ToolSpec) (string, error) {
		e.Set = set
		c := &provider.Client{BaseURL: server.URL, Model: "m", Extensions: e}
		resp, err := c.Generate(t.Context(), &dragoman.Request{Messages: []dragoman.Message{dragoman.UserText("hi")}, Tools: tools})
		if err != nil {
			return "", err
		}
		return fmt.Sprint(resp.Losses.Losses), nil
	}
	config := map[string]json.RawMessage{"mine": json.RawMessage(`{}`), "other": json.RawMessage(`{}`)}
	const want = "the settings of the extension mine have no effect, because it is off for this request: lacks tools"
	if got, err := ask(provider.Extensions{Config: config}); err != nil || strings.Count(got, "have no effect") != 1 || !strings.Contains(got, want) {
		t.Errorf("%s %v", got, err)
	}
	for name, e := range map[string]provider.Extensions{
		"switched off": {Config: config, Switches: extension.Switches{Off: []string{"mine"}}},
		"no settings":  {},
	} {
		if got, err := ask(e); err != nil || strings.Contains(got, "have no effect") {
			t.Errorf("%s: %s %v", name, got, err)
		}
	}
	if got, err := ask(provider.Extensions{Config: config}, dragoman.ToolSpec{Name: "f"}); err != nil || strings.Contains(got, "have no effect") {
		t.Errorf("it is on: %s %v", got, err)
	}
	if _, err := ask(provider.Extensions{Config: map[string]json.RawMessage{"none such": nil}}); err == nil || !strings.Contains(err.Error(), "none such") {
		t.Errorf("%v", err)
	}
}
