// Loss-report converts an Anthropic request for other APIs, and a stream of OpenAI Chat for the
// Anthropic client. Each conversion reports what it dropped or changed.
//
//	$ go run ./examples/loss-report
//	…
//	the request for OpenAI Chat: 620 bytes, losses: 3
//	…
//	   dropped (warn) /sampling/top_k: Chat has no top_k
//	…
//	the stream for the client: 960 bytes, losses: 1
//	   dropped (info) /created: the API does not report a creation time
package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"log"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/gemini"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
)

//go:embed request.json
var request []byte

//go:embed response.sse
var response []byte

func run() error {
	var client, upstream dialect.Codec = anthropic.Codec{}, openaichat.Codec{}
	req, report, err := client.DecodeRequest(request, dialect.DecodeOptions{})
	if err != nil {
		return err
	}
	show("the request of the client", request, report)

	req.Model = "gpt-5.5"
	encoded, err := upstream.EncodeRequest(req, dialect.EncodeOptions{})
	if err != nil {
		return err
	}
	show("the request for OpenAI Chat", encoded.Body, encoded.Report)

	other, err := gemini.Codec{}.EncodeRequest(req, dialect.EncodeOptions{})
	if err != nil {
		return err
	}
	show("the request for Gemini", other.Body, other.Report)

	// The registry of the request restores names and ids that were changed for the upstream.
	from := upstream.NewStreamDecoder(dialect.DecodeOptions{Registry: encoded.Registry})
	to := client.NewStreamEncoder(dialect.EncodeOptions{Model: "claude-opus-5-5"})
	var stream bytes.Buffer
	if err := dialect.Translate(&stream, to, from, bytes.NewReader(response)); err != nil {
		return err
	}
	report = from.Report()
	report.Merge("", to.Report())
	show("the stream for the client", stream.Bytes(), report)
	return nil
}

// show prints the size of a body and what its conversion lost.
func show(title string, body []byte, report dragoman.Report) {
	fmt.Printf("%s: %d bytes, losses: %d\n", title, len(body), len(report.Losses))
	for _, loss := range report.Losses {
		fmt.Println("  ", loss)
	}
}

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}
