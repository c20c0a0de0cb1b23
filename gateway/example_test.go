package gateway_test

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/dragoman-go/dragoman/gateway"
	"github.com/dragoman-go/dragoman/gateway/access"
)

// Serve the gateway under a prefix of a program's own server. Configure keys: only Gateway.Serve
// refuses a gateway without keys that other machines can reach.
func ExampleGateway() {
	g, err := gateway.New(&gateway.Config{
		Keys:   []access.Key{{Name: "team-search", Hash: access.HashOf("a key of the team's"), Models: []string{"fast"}}},
		Routes: []gateway.Route{{Pattern: "fast", To: "sim/echo"}},
	}, gateway.Options{})
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/llm/", http.StripPrefix("/llm", g)) // OpenAI clients use the base URL …/llm/v1
	server := httptest.NewServer(mux)
	defer server.Close()

	req, err := http.NewRequest(http.MethodPost, server.URL+"/llm/v1/chat/completions",
		strings.NewReader(`{"model": "fast", "messages": [{"role": "user", "content": "Hello."}]}`))
	if err != nil {
		log.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer a key of the team's")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(resp.Status, strings.Contains(string(body), `"content":"Hello."`))
	// Output: 200 OK true
}
