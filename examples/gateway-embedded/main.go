// Gateway-embedded serves the gateway under a prefix of a Go program's own HTTP server. OpenAI
// and Anthropic clients call the same model, which is a simulator that repeats the prompt.
//
//	$ go run ./examples/gateway-embedded
//	POST /llm/v1/chat/completions 200 OK sim/echo
//	POST /llm/v1/messages 200 OK sim/echo
//	POST /llm/v1/messages 401 Unauthorized
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/dragoman-go/dragoman/gateway"
	"github.com/dragoman-go/dragoman/gateway/access"
)

// newHandler returns the handler of the program. Clients have the base URL …/llm, or …/llm/v1
// for OpenAI clients.
func newHandler() (http.Handler, error) {
	g, err := gateway.New(&gateway.Config{ // or gateway.Load("gateway.yaml")
		Keys:   []access.Key{{Name: "search-team", Hash: access.HashOf("sk-search-0123456789")}},
		Routes: []gateway.Route{{Pattern: "fast", To: "sim/echo"}}, // or "anthropic/…", "openai/…"
	}, gateway.Options{})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/llm/", http.StripPrefix("/llm", g))
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	return mux, nil
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	handler, err := newHandler()
	if err != nil {
		return err
	}
	// Usually: http.ListenAndServe("127.0.0.1:8080", handler). This server ends with the program.
	server := httptest.NewServer(handler)
	defer server.Close()
	const body = `{"model": "fast", "max_tokens": 100, "messages": [{"role": "user", "content": "Hello."}]}`
	for _, c := range []struct{ path, key string }{
		{"/llm/v1/chat/completions", "sk-search-0123456789"},
		{"/llm/v1/messages", "sk-search-0123456789"},
		{"/llm/v1/messages", "sk-unknown"},
	} {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+c.path, strings.NewReader(body))
		if err != nil {
			return err
		}
		req.Header.Set("Authorization", "Bearer "+c.key)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		resp.Body.Close()
		fmt.Println("POST", c.path, resp.Status, resp.Header.Get("X-Dragoman-Upstream"))
	}
	return nil
}
