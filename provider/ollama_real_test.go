package provider_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/provider"
)

// TestRealOllamaResponds calls a running Ollama, in its own dialect and in OpenAI Chat: .ci/ollama
// starts one with a tiny model. It prints a table.
func TestRealOllamaResponds(t *testing.T) {
	host, name := os.Getenv("DRAGOMAN_OLLAMA_HOST"), os.Getenv("DRAGOMAN_OLLAMA_MODEL")
	if host == "" || name == "" {
		t.Skip("DRAGOMAN_OLLAMA_HOST and DRAGOMAN_OLLAMA_MODEL name no Ollama; .ci/ollama starts one")
	}
	c := &provider.Config{Getenv: os.Getenv, Providers: map[string]provider.Settings{
		"native":     {Type: "ollama", BaseURL: host},
		"compatible": {Type: "compatible", BaseURL: host + "/v1"},
	}}
	var table strings.Builder
	for _, server := range []string{"native", "compatible"} {
		for _, tc := range realCases {
			t.Run(server+"/"+tc.name, func(t *testing.T) {
				model := name
				if tc.model != "" {
					model = tc.model
				}
				m, err := c.Open(server + "/" + model)
				if err != nil {
					t.Fatal(err)
				}
				text, err := tc.ask(t, m)
				word := "ok"
				if err != nil {
					word = "FAILED"
					t.Error(err)
				}
				fmt.Fprintf(&table, "%-11s %-18s %-7s %.60q\n", server, tc.name, word, text)
			})
		}
	}
	t.Logf("\n%s", table.String())
}

var realCases = []struct {
	name, model string
	ask         func(t *testing.T, m dragoman.Model) (string, error)
}{
	{name: "text", ask: func(t *testing.T, m dragoman.Model) (string, error) {
		resp, err := m.Generate(t.Context(), shortRequest("Once upon a time"))
		return textOf(resp, err)
	}},
	{name: "stream", ask: func(t *testing.T, m dragoman.Model) (string, error) {
		deltas := 0
		var whole dragoman.Collector
		for ev, err := range m.Stream(t.Context(), shortRequest("Once upon a time")) {
			if err != nil {
				return "", err
			}
			if _, ok := ev.(*dragoman.PartDelta); ok {
				deltas++
			}
			whole.Add(ev)
		}
		if deltas < 2 {
			return "", fmt.Errorf("the answer came in %d pieces", deltas)
		}
		return textOf(whole.Response())
	}},
	{name: "structured output", ask: func(t *testing.T, m dragoman.Model) (string, error) {
		req := shortRequest("Tell me of Tom")
		req.Output = &dragoman.OutputFormat{Kind: codes.OutputSchema, Name: "answer", Schema: json.RawMessage(`{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"],"additionalProperties":false}`)}
		text, err := textOf(m.Generate(t.Context(), req))
		var v struct{ OK *bool }
		if err == nil && (json.Unmarshal([]byte(text), &v) != nil || v.OK == nil) {
			err = fmt.Errorf("%q is not of the schema", text)
		}
		return text, err
	}},
	{name: "tool call", ask: func(t *testing.T, m dragoman.Model) (string, error) {
		// The model is too small to choose a tool: an output format with the form of a call forces
		// one.
		req := shortRequest("Tell me of Tom")
		req.MaxOutputTokens = new(int64(400)) // it likes white space
		req.Tools = []dragoman.ToolSpec{{Name: "look", Description: "Looks.", Parameters: json.RawMessage(`{"type":"object","properties":{"deep":{"type":"boolean"}},"required":["deep"]}`)}}
		req.Output = &dragoman.OutputFormat{Kind: codes.OutputSchema, Name: "call", Schema: json.RawMessage(`{"type":"object","properties":{"name":{"enum":["look"]},"arguments":{"type":"object","properties":{"deep":{"type":"boolean"}},"required":["deep"],"additionalProperties":false}},"required":["name","arguments"],"additionalProperties":false}`)}
		resp, err := m.Generate(t.Context(), req)
		if err != nil {
			return "", err
		}
		calls := resp.ToolCalls()
		if len(calls) != 1 || calls[0].Name != "look" || calls[0].Problem != nil || resp.Stop.Reason != dragoman.StopToolCalls {
			return resp.Text(), fmt.Errorf("%d calls, stop %s", len(calls), resp.Stop.Reason)
		}
		return calls[0].Name + calls[0].Arguments, nil
	}},
	{name: "error", model: "no-such-model", ask: func(t *testing.T, m dragoman.Model) (string, error) {
		_, err := m.Generate(t.Context(), shortRequest("hi"))
		var api *dragoman.APIError
		if !errors.As(err, &api) || api.Class != dragoman.ErrorNotFound {
			return "", fmt.Errorf("want that the model is not found, have %w", err)
		}
		return api.Message, nil
	}},
}

// shortRequest returns a request with a short response.
func shortRequest(prompt string) *dragoman.Request {
	return &dragoman.Request{Messages: []dragoman.Message{dragoman.UserText(prompt)}, MaxOutputTokens: new(int64(40))}
}

func textOf(resp *dragoman.Response, err error) (string, error) {
	if err != nil {
		return "", err
	}
	if strings.TrimSpace(resp.Text()) == "" {
		return "", errors.New("an answer without a word")
	}
	return resp.Text(), nil
}
