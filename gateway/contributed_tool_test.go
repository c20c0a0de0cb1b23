package gateway_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/gateway"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/provider/extension"
)

// widgets is an extension that reads tools of a type that no API has.
type widgets struct{ format dragoman.Format }

func (widgets) Info() extension.Info      { return extension.Info{Name: "widgets"} }
func (w widgets) Format() dragoman.Format { return w.format }

func (w widgets) Contribute(*extension.Exchange) []dragoman.Contribution {
	return []dragoman.Contribution{{Schemas: []dragoman.SchemaAccessor{w}}}
}

func (widgets) InspectSchema(obj json.RawMessage) ([]dragoman.ToolSpec, dragoman.Report, error) {
	var t struct{ Widget struct{ Name, About string } }
	err := json.Unmarshal(obj, &t)
	return []dragoman.ToolSpec{{Name: t.Widget.Name, Description: t.Widget.About, Parameters: json.RawMessage(`{"type":"object","properties":{"w":{"type":"string"}}}`)}}, dragoman.Report{}, err
}

// A client's tool of a contributed format reaches every other API as a function, and its own
// API unchanged.
func TestR10_ContributedFormatsAreReadFromClients(t *testing.T) {
	var sent string
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		sent = string(b)
		http.Error(w, "seen", http.StatusBadRequest)
	}))
	defer upstream.Close()
	const tools = `"tools":[{"type":"widget","widget":{"name":"spin","about":"Spins it."}}]`
	for own, client := range map[string]struct{ format, path, body string }{
		"openai-chat": {"openai.chat_completions.widget", "/v1/chat/completions", `{"model":"%s/m","messages":[{"role":"user","content":"hi"}],`},
		"openai":      {"openai.responses.widget", "/v1/responses", `{"model":"%s/m","input":"hi",`},
		"anthropic":   {"anthropic.messages.widget", "/v1/messages", `{"model":"%s/m","max_tokens":9,"messages":[{"role":"user","content":"hi"}],`},
	} {
		config := &provider.Config{
			Getenv: func(string) string { return "k" }, Providers: map[string]provider.Settings{},
			Extensions: []extension.Extension{widgets{dragoman.Format(client.format)}},
		}
		apis := map[string]string{"openai-chat": "/v1", "openai": "/v1", "anthropic": "", "gemini": "", "ollama": "", "cohere": ""}
		for name, base := range apis {
			config.Providers[name] = provider.Settings{Type: name, BaseURL: upstream.URL + base, Retry: provider.Retry{Max: -1}}
		}
		g, err := gateway.New(&gateway.Config{Models: config}, gateway.Options{})
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer(g)
		for name := range apis {
			sent = ""
			resp, err := http.Post(server.URL+client.path, "application/json", strings.NewReader(fmt.Sprintf(client.body, name)+tools+"}"))
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if native := strings.Contains(sent, `"widget":{`); native != (name == own) || !strings.Contains(sent, `"spin"`) || !native && !strings.Contains(sent, `"w"`) {
				t.Errorf("%s to %s: %s", own, name, sent)
			}
		}
		server.Close()
	}
}
