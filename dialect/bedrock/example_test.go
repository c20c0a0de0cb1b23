package bedrock_test

import (
	"fmt"
	"log"
	"net/url"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/bedrock"
)

// The URL names the model and selects streaming; the body does neither.
func Example() {
	req := &dragoman.Request{
		Model:    "us.anthropic.claude-opus-5-5-v1:0",
		Stream:   true,
		Messages: []dragoman.Message{dragoman.UserText("Do I need a coat in Oslo?")},
	}
	enc, err := bedrock.Codec{}.EncodeRequest(req, dialect.EncodeOptions{})
	if err != nil {
		log.Fatal(err)
	}
	operation := "converse"
	if req.Stream {
		operation = "converse-stream"
	}
	fmt.Printf("POST /model/%s/%s\n%s\n", url.PathEscape(req.Model), operation, enc.Body)
	// Output:
	// POST /model/us.anthropic.claude-opus-5-5-v1:0/converse-stream
	// {"messages":[{"role":"user","content":[{"text":"Do I need a coat in Oslo?"}]}]}
}
