package gateway_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/gateway"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/session/postgres"
	"github.com/dragoman-go/dragoman/session/sqlite"
)

// sharedNotes returns stores that two gateways can share, by name.
func sharedNotes(t *testing.T) map[string]func(t *testing.T) session.Notes {
	all := map[string]func(t *testing.T) session.Notes{}
	file := filepath.Join(t.TempDir(), "state.db")
	all["SQLite"] = func(t *testing.T) session.Notes {
		store, err := sqlite.Open(t.Context(), file, sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		return store.Notes()
	}
	if url := os.Getenv("DRAGOMAN_POSTGRES"); url != "" {
		all["PostgreSQL"] = func(t *testing.T) session.Notes {
			store, err := postgres.Open(t.Context(), url, postgres.Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = store.Close() })
			return store.Notes()
		}
	} else {
		t.Log("not on PostgreSQL: DRAGOMAN_POSTGRES names no server")
	}
	return all
}

func TestG7_GatewaysShareStoredState(t *testing.T) {
	t.Setenv("SIM_KEY", "upstream-secret")
	for name, open := range sharedNotes(t) {
		t.Run(name, func(t *testing.T) {
			model := &scriptedServer{responses: []string{geminiThinks}}
			upstream := httptest.NewServer(model)
			defer upstream.Close()
			start := func() *world {
				config, err := gateway.Parse("gateway.yaml", []byte(configOf(upstream.URL)+"gateway:\n  routes: {m: {to: gemini/gemini-3}, echo: {to: sim/echo}}\n"))
				if err != nil {
					t.Fatal(err)
				}
				g, err := gateway.New(config, gateway.Options{Notes: open(t)})
				if err != nil {
					t.Fatal(err)
				}
				server := httptest.NewServer(withJudge(t, g))
				t.Cleanup(server.Close)
				return &world{gateway: g, url: server.URL}
			}
			one, other := start(), start()

			first := postResponses(t, one, `{"model":"echo","input":"Hello."}`)
			second := postResponses(t, other, fmt.Sprintf(`{"model":"echo","input":"Again.","previous_response_id":%q}`, first["id"]))
			if second["error"] != nil {
				t.Errorf("the other does not know the response: %v", second["error"])
			}
			third := postResponses(t, other, fmt.Sprintf(`{"model":"echo","input":[{"type":"item_reference","id":%q},{"role":"user","content":"And?"}]}`, idsOf(first, "message")[0]))
			if third["error"] != nil {
				t.Errorf("the other does not know the item: %v", third["error"])
			}
			_, text := get(t, http.MethodPost, one.url+"/v1/conversations", `{"items":[{"role":"user","content":"Hello."}]}`)
			fourth := postResponses(t, other, fmt.Sprintf(`{"model":"echo","input":"Again.","conversation":%q}`, decodeJSON(t, strings.NewReader(text))["id"]))
			if fourth["error"] != nil {
				t.Errorf("the other does not know the conversation: %v", fourth["error"])
			}
			_, text = get(t, http.MethodPost, one.url+"/v1/responses/compact", `{"model":"echo","input":"A long story."}`)
			_, items, _ := strings.Cut(text, `"output":`)
			items, _, _ = strings.Cut(items, `,"usage":`)
			if fifth := postResponses(t, other, fmt.Sprintf(`{"model":"echo","input":%s}`, items)); fifth["error"] != nil {
				t.Errorf("the other cannot read the compaction item: %v", fifth["error"])
			}

			c := &client{t: t, codec: openaichat.Codec{}, url: one.url}
			req := &dragoman.Request{Model: "m", Tools: []dragoman.ToolSpec{weatherTool()}, Messages: []dragoman.Message{userSays("The weather in Oslo, " + t.Name() + "?")}}
			resp, err := c.generate(req)
			if err != nil || len(callsOf(resp)) != 1 {
				t.Fatalf("%v %v", resp, err)
			}
			req.Messages = append(req.Messages, withoutState(resp), dragoman.Message{Role: dragoman.RoleTool, Parts: []dragoman.Part{callsOf(resp)[0].ResultText("snow")}})
			c.url = other.url
			if _, err := c.generate(req); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(model.requests[1], "c2lnbmF0dXJlLW9mLXRoZS1jYWxs") {
				t.Errorf("the other does not know the signature: %s", model.requests[1])
			}
		})
	}
}
