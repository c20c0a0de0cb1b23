package provider_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/provider"
)

// pretend is a server that says one thing.
func pretend(body string) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }))
}

// A Client is any server of any dialect. Zero values are those of the vendor.
func ExampleClient() {
	server := pretend(`{"type":"message","role":"assistant","content":[{"type":"text","text":"Yes."}],"stop_reason":"end_turn","usage":{"output_tokens":2}}`)
	defer server.Close()

	model := &provider.Client{
		Name:    "work",
		Codec:   anthropic.Codec{},
		BaseURL: server.URL,
		Model:   "claude-opus-5-5",
		Auth:    provider.HeaderKey("x-api-key", provider.FixedKey("key")), // or provider.EnvKey("WORK_API_KEY")
	}
	resp, err := model.Generate(context.Background(), &dragoman.Request{
		Messages: []dragoman.Message{{Role: dragoman.RoleUser, Parts: []dragoman.Part{&dragoman.Text{Text: "Do I need a coat in Oslo?"}}}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(resp.Text(), resp.Usage.Output, resp.Stop.Reason)
	// Output: Yes. 2 stop
}

// A stream is a loop. Leaving it cancels the request.
func ExampleClient_Stream() {
	server := pretend("event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"role\":\"assistant\"}}\n\n" +
		"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n" +
		"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Yes.\"}}\n\n" +
		"event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n" +
		"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n" +
		"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n")
	defer server.Close()

	model := &provider.Client{Codec: anthropic.Codec{}, BaseURL: server.URL, Model: "claude-opus-5-5"}
	req := &dragoman.Request{Messages: []dragoman.Message{{Role: dragoman.RoleUser, Parts: []dragoman.Part{&dragoman.Text{Text: "Coat?"}}}}}
	for ev, err := range model.Stream(context.Background(), req) {
		if err != nil {
			fmt.Println(err)
			return
		}
		if d, ok := ev.(*dragoman.PartDelta); ok {
			fmt.Println(d.Text)
		}
	}
	// Output: Yes.
}

// One file has the providers of a team, and names for their models.
func ExampleParse() {
	config, err := provider.Parse("models.yaml", []byte(`
version: 1
providers:
  work: {type: compatible, base_url: "https://llm.example.com/v1", api_key_env: WORK_API_KEY}
aliases:
  fast: work/llama-9b
  best: anthropic/claude-opus-5-5, openai/gpt-5, fast
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	config.Getenv = func(string) string { return "" } // os.Getenv, where nothing is said
	model, err := config.Open("best")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, link := range model.(*provider.Chain).Links {
		fmt.Println(link.Name)
	}
	fast, err := config.Open("fast")
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = fast.Generate(context.Background(), &dragoman.Request{Messages: []dragoman.Message{dragoman.UserText("hi")}})
	fmt.Println(err)
	// Output:
	// anthropic/claude-opus-5-5
	// openai/gpt-5
	// work/llama-9b
	// provider: the API key is missing: set WORK_API_KEY
}

// Models that stand in for each other: what one server cannot answer, the next
// one does.
func ExampleChain() {
	busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	defer busy.Close()
	idle := pretend(`{"choices":[{"message":{"role":"assistant","content":"Yes."},"finish_reason":"stop"}]}`)
	defer idle.Close()

	model := &provider.Chain{Links: []provider.Link{
		{Name: "first", Model: &provider.Client{BaseURL: busy.URL, Model: "m", Retry: provider.Retry{Max: -1}}},
		{Name: "second", Model: &provider.Client{BaseURL: idle.URL, Model: "m"}},
	}}
	resp, err := model.Generate(context.Background(), &dragoman.Request{
		Messages: []dragoman.Message{{Role: dragoman.RoleUser, Parts: []dragoman.Part{&dragoman.Text{Text: "Coat?"}}}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(resp.Text())
	// Output: Yes.
}

// WithBaseURL points one model at a proxy or a server of your own. The URL has the form
// that the vendor's own client takes: with /v1 for OpenAI, without for Anthropic.
func ExampleWithBaseURL() {
	server := pretend(`{"model":"m","message":{"role":"assistant","content":"Yes."},"done":true,"done_reason":"stop"}`)
	defer server.Close()

	model, err := provider.Open("ollama/m", provider.WithBaseURL(server.URL))
	if err != nil {
		fmt.Println(err)
		return
	}
	resp, err := model.Generate(context.Background(), &dragoman.Request{Messages: []dragoman.Message{dragoman.UserText("Coat?")}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(resp.Text())
	// Output: Yes.
}
