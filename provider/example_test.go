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
