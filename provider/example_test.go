package provider_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/provider"
)

// fixedServer always sends the same body.
func fixedServer(body string) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }))
}

// A Client calls one server in one dialect. Without BaseURL it calls the server of the vendor.
func ExampleClient() {
	server := fixedServer(`{"type":"message","role":"assistant","content":[{"type":"text","text":"Yes."}],"stop_reason":"end_turn","usage":{"output_tokens":2}}`)
	defer server.Close()

	model := &provider.Client{
		Name:    "work",
		Codec:   anthropic.Codec{},
		BaseURL: server.URL,
		Model:   "claude-opus-5-5",
		Auth:    provider.HeaderKey("x-api-key", provider.FixedKey("key")), // or provider.EnvKey("WORK_API_KEY")
	}
	resp, err := model.Generate(context.Background(), &dragoman.Request{
		Messages: []dragoman.Message{dragoman.UserText("Do I need a coat in Oslo?")},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(resp.Text(), resp.Usage.Output, resp.Stop.Reason)
	// Output: Yes. 2 stop
}

// A stream is a loop. Breaking out of it cancels the request.
func ExampleClient_Stream() {
	server := fixedServer("event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"role\":\"assistant\"}}\n\n" +
		"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n" +
		"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Yes.\"}}\n\n" +
		"event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n" +
		"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n" +
		"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n")
	defer server.Close()

	model := &provider.Client{Codec: anthropic.Codec{}, BaseURL: server.URL, Model: "claude-opus-5-5"}
	req := &dragoman.Request{Messages: []dragoman.Message{dragoman.UserText("Coat?")}}
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

// A config file defines providers, and aliases for their models.
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
	config.Getenv = func(string) string { return "" } // nil means os.Getenv
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

// A Chain calls its models in order until one responds.
func ExampleChain() {
	busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	defer busy.Close()
	idle := fixedServer(`{"choices":[{"message":{"role":"assistant","content":"Yes."},"finish_reason":"stop"}]}`)
	defer idle.Close()

	model := &provider.Chain{Links: []provider.Link{
		{Name: "first", Model: &provider.Client{BaseURL: busy.URL, Model: "m", Retry: provider.Retry{Max: -1}}},
		{Name: "second", Model: &provider.Client{BaseURL: idle.URL, Model: "m"}},
	}}
	resp, err := model.Generate(context.Background(), &dragoman.Request{
		Messages: []dragoman.Message{dragoman.UserText("Coat?")},
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
	server := fixedServer(`{"model":"m","message":{"role":"assistant","content":"Yes."},"done":true,"done_reason":"stop"}`)
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

func ExampleMustOpen() {
	model := provider.MustOpen("sim/echo") // or anthropic/…, openai/…, gemini/…, ollama/…
	resp, err := model.Generate(context.Background(), &dragoman.Request{
		Messages: []dragoman.Message{{Role: dragoman.RoleUser, Parts: []dragoman.Part{&dragoman.Text{Text: "Hello"}}}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(resp.Text())
	// Output: Hello
}

// A key that is not in the environment is an option.
func ExampleWithKey() {
	secret := "a key from a secret store"
	model, err := provider.Open("anthropic/claude-opus-5-5", provider.WithKey(provider.FixedKey(secret)))
	if err != nil {
		log.Fatal(err)
	}
	_ = model
}

func ExampleConfig_log() {
	config, err := provider.Default() // as provider.Open: the environment, and the file that DRAGOMAN_CONFIG names
	if err != nil {
		log.Fatal(err)
	}
	config.Log = slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	model, err := config.Open("anthropic/claude-opus-5-5")
	if err != nil {
		log.Fatal(err)
	}
	_ = model
}
