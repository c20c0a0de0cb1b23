// Package examples_test holds the example that the README shows.
package examples_test

import (
	"fmt"
	"log"

	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
)

func Example() {
	body := []byte(`{"model": "claude-opus-5-5", "max_tokens": 1024, "top_k": 40,
		"messages": [{"role": "user", "content": "Do I need a coat in Oslo?"}]}`)

	req, _, err := anthropic.Codec{}.DecodeRequest(body, dialect.DecodeOptions{})
	if err != nil {
		log.Fatal(err)
	}
	req.Model = "gpt-5.5"
	out, err := openaichat.Codec{}.EncodeRequest(req, dialect.EncodeOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(out.Body)) // ready to send
	for _, loss := range out.Report.Losses {
		fmt.Println(loss.Kind, loss.Path) // and what the conversion lost
	}

	// Output:
	// {"model":"gpt-5.5","messages":[{"role":"user","content":"Do I need a coat in Oslo?"}],"max_completion_tokens":1024}
	// dropped /sampling/top_k
}
