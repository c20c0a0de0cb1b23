package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/gateway"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/models"
	"github.com/dragoman-go/dragoman/provider"
)

// captured is a transport that stores the last request body and refuses the request.
type captured struct{ body []byte }

func (c *captured) RoundTrip(r *http.Request) (*http.Response, error) {
	var err error
	if c.body, err = io.ReadAll(r.Body); err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: http.StatusForbidden, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(`{}`)), Request: r}, nil
}

// settingsOf returns the fields of a body that depend on the facts about its model.
func settingsOf(t *testing.T, body []byte) map[string]any {
	t.Helper()
	var out map[string]any
	if err := json.Unmarshal(body, &out); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	for _, key := range []string{"model", "stream", "store", "include"} { // these depend on the route, not on the model
		delete(out, key)
	}
	return out
}

// claudeRequests are requests with settings that not all models accept.
var claudeRequests = []string{
	`"thinking":{"type":"adaptive"},"output_config":{"effort":"xhigh"},"temperature":0.5,"top_p":0.9,"top_k":40`,
	`"thinking":{"type":"enabled","budget_tokens":2000},"stop_sequences":["x"]`,
	`"thinking":{"type":"disabled"},"tools":[{"name":"f","input_schema":{"type":"object"}}],"tool_choice":{"type":"any"}`,
}

// For every known model, convert, a provider client and the gateway send the same request.
func TestConvertProviderAndGatewaySendSameRequest(t *testing.T) {
	wires := map[string][]string{"openai": {"openai-chat", "openai"}, "anthropic": {"anthropic"}, "gemini": {"gemini"}, "ollama": {"ollama"}, "bedrock": {"bedrock"}}
	env := func(name string) string {
		if strings.HasSuffix(name, "_KEY") || name == "AWS_BEARER_TOKEN_BEDROCK" || name == "AWS_REGION" {
			return "eu-north-1"
		}
		return ""
	}
	wire := &captured{}
	config := &provider.Config{Getenv: env, HTTP: &http.Client{Transport: wire}}
	routes := []gateway.Route{}
	for _, name := range []string{"openai-chat", "openai", "anthropic", "gemini", "ollama", "bedrock"} {
		routes = append(routes, gateway.Route{Pattern: name + "/*", To: name + "/*", Repair: "always"})
	}
	g, err := gateway.New(&gateway.Config{Routes: routes, Models: config}, gateway.Options{})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, e := range models.Default().Entries() {
		for _, spec := range wires[e.Provider] {
			for i, l := range allDialects() {
				if l.provider != spec {
					continue
				}
				name := strings.ReplaceAll(e.Match[0], "*", "0101")
				request := fmt.Sprintf(`{"model":%q,"max_tokens":30000,"messages":[{"role":"user","content":"hi"}],%s}`, name, claudeRequests[(n+i)%len(claudeRequests)])
				n++
				agree(t, g, config, wire, l, name, request)
			}
		}
	}
	if n < 250 {
		t.Errorf("only %d models were tried", n)
	}
}

// agree compares the request that convert, the client and the gateway send.
func agree(t *testing.T, g http.Handler, config *provider.Config, wire *captured, l namedDialect, name, request string) {
	t.Helper()
	var converted, stderr bytes.Buffer
	cmd := newRoot(nil)
	cmd.SetArgs([]string{"convert", "--from", "anthropic", "--to", string(l.Dialect())})
	cmd.SetIn(strings.NewReader(request))
	cmd.SetOut(&converted)
	cmd.SetErr(&stderr)
	convertErr := cmd.Execute()

	req, _, err := anthropic.Codec{}.DecodeRequest([]byte(request), dialect.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	model, err := config.Open(l.provider + "/" + name)
	if err != nil {
		t.Fatal(err)
	}
	client, ok := model.(*provider.Client)
	if !ok {
		t.Fatalf("%s is not a client", name)
	}
	client.Abandon = codes.AbandonPassed
	wire.body = nil
	_, _ = client.Generate(t.Context(), req)
	direct := wire.body

	wire.body = nil
	through := httptest.NewRequest(http.MethodPost, "/v1/messages", strings.NewReader(strings.Replace(request, `"model":"`, `"model":"`+l.provider+"/", 1)))
	through.Host = "127.0.0.1"
	g.ServeHTTP(httptest.NewRecorder(), through)

	if convertErr != nil { // a model without tools refuses them in all three ways
		if direct != nil || wire.body != nil {
			t.Errorf("%s/%s: convert fails with %v, others send %s %s", l.provider, name, convertErr, direct, wire.body)
		}
		return
	}
	want := settingsOf(t, converted.Bytes())
	for way, body := range map[string][]byte{"the client": direct, "the gateway": wire.body} {
		if got := settingsOf(t, body); !reflect.DeepEqual(got, want) {
			t.Errorf("%s/%s in %s: %s sends\n%s\nconvert writes\n%s\nkeys %v", l.provider, name, l.Dialect(), way, body, &converted, slices.Sorted(maps.Keys(got)))
		}
	}
}

func TestConvertDropsEffortForModelsWithoutReasoning(t *testing.T) {
	const request = `{"model":"x","max_tokens":9000,"thinking":{"type":"adaptive"},"output_config":{"effort":"high"},"messages":[{"role":"user","content":"hi"}]}`
	file := filepath.Join(t.TempDir(), "models.yaml")
	if err := os.WriteFile(file, []byte("version: 1\nmodels:\n  - id: openai/gpt-4.1\n    reasoning: {supported: true, efforts: [low, high]}\n    refuses: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		to, model, file string
		want, not       string
	}{
		{"chat", "gpt-4.1", "", `"gpt-4.1"`, "reasoning_effort"},
		{"responses", "gpt-4o", "", `"gpt-4o"`, `"reasoning"`},
		{"ollama", "llama3.1:8b", "", `"llama3.1:8b"`, "think"},
		{"ollama", "qwen3:8b", "", `"think":true`, "high"},
		{"anthropic", "claude-opus-4-1", "", `"budget_tokens"`, "effort"},
		{"chat", "gpt-4.1", file, `"reasoning_effort":"high"`, ""},
	} {
		args := []string{"convert", "--from", "anthropic", "--to", tc.to, "--model", tc.model}
		if tc.file != "" {
			args = append(args, "--model-file", tc.file)
		}
		var out, stderr bytes.Buffer
		cmd := newRoot(nil)
		cmd.SetArgs(args)
		cmd.SetIn(strings.NewReader(request))
		cmd.SetOut(&out)
		cmd.SetErr(&stderr)
		if err := cmd.Execute(); err != nil {
			t.Fatal(err, stderr.String())
		}
		if !strings.Contains(out.String(), tc.want) || tc.not != "" && strings.Contains(out.String(), tc.not) {
			t.Errorf("%s for %s: %s", tc.to, tc.model, &out)
		}
		if tc.not != "" && !strings.Contains(stderr.String(), "/reasoning") {
			t.Errorf("%s for %s: the loss is not reported: %s", tc.to, tc.model, &stderr)
		}
	}
}
