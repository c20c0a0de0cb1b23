// Convert shows one exchange between two wire formats, without a network: a
// client sends an Anthropic Messages request, a server that implements OpenAI
// Chat Completions responds with a streamed tool call, and the client gets an
// Anthropic stream. After each step it prints the losses.
//
//	go run ./examples/convert
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
)

// The request of the client: one tool, a call of it that failed, and two settings that
// only Anthropic has.
const request = `{
  "model": "claude-opus-5-5",
  "max_tokens": 1024,
  "top_k": 40,
  "system": "Answer in one sentence.",
  "tools": [{
    "name": "get_weather",
    "description": "Current weather in a city.",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    "cache_control": {"type": "ephemeral"}
  }],
  "messages": [
    {"role": "user", "content": "Do I need a coat in Oslo?"},
    {"role": "assistant", "content": [
      {"type": "text", "text": "Let me look."},
      {"type": "tool_use", "id": "toolu_01", "name": "get_weather", "input": {"city": "Olso"}}
    ]},
    {"role": "user", "content": [
      {"type": "tool_result", "tool_use_id": "toolu_01", "is_error": true, "content": "no such city: Olso"}
    ]}
  ]
}`

// The stream of the server: arguments in fragments, an empty finish reason in between,
// usage after the end.
const response = `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1790000000,"model":"gpt-5.5","choices":[{"index":0,"delta":{"role":"assistant","tool_calls":[{"index":0,"id":"call_7Kd2","type":"function","function":{"name":"get_weather","arguments":""}}]},"finish_reason":""}]}

data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1790000000,"model":"gpt-5.5","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"city\":"}}]},"finish_reason":null}]}

data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1790000000,"model":"gpt-5.5","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"Oslo\"}"}}]},"finish_reason":null}]}

data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1790000000,"model":"gpt-5.5","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}

data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1790000000,"model":"gpt-5.5","choices":[],"usage":{"prompt_tokens":91,"completion_tokens":17,"total_tokens":108}}

data: [DONE]

`

func main() {
	if err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "convert:", err)
		os.Exit(1)
	}
}

func run(w io.Writer) error {
	// Any two of these could be swapped: all implement the same interface.
	var client, server, other dialect.Codec = anthropic.Codec{}, openaichat.Codec{}, openairesponses.Codec{}

	req, report, err := client.DecodeRequest([]byte(request), dialect.DecodeOptions{})
	if err != nil {
		return err
	}
	show(w, "The request, as "+string(client.Dialect()), []byte(request), report)

	req.Model = "gpt-5.5"
	sent, err := server.EncodeRequest(req, dialect.EncodeOptions{})
	if err != nil {
		return err
	}
	show(w, "The same request, as "+string(server.Dialect()), sent.Body, sent.Report)

	again, err := other.EncodeRequest(req, dialect.EncodeOptions{})
	if err != nil {
		return err
	}
	show(w, "And as "+string(other.Dialect()), again.Body, again.Report)

	// The registry that encoded the request reverses its aliases in the response.
	in := server.NewStreamDecoder(dialect.DecodeOptions{Registry: sent.Registry})
	out := client.NewStreamEncoder(dialect.EncodeOptions{Model: "claude-opus-5-5", Seed: "example"})
	var stream []byte
	var whole dragoman.Collector
	forward := func(ev dragoman.Event) (err error) {
		whole.Add(ev)
		stream, err = out.Encode(stream, ev)
		return err
	}
	// Seven bytes at a time: it does not matter where the network splits a stream.
	for rest := []byte(response); len(rest) > 0; {
		n := min(7, len(rest))
		if err := in.Feed(rest[:n], forward); err != nil {
			return err
		}
		rest = rest[n:]
	}
	if err := in.Close(forward); err != nil {
		return err
	}
	if stream, err = out.Close(stream); err != nil {
		return err
	}
	lost := in.Report()
	lost.Merge("", out.Report())
	show(w, "The response, streamed as "+string(client.Dialect()), stream, lost)

	// Collect the same events into one response.
	resp, err := whole.Response()
	if err != nil {
		return err
	}
	for _, call := range resp.ToolCalls() {
		fmt.Fprintf(w, "Ready to run: %s(%s), call %s, stop reason %s.\n", call.Name, call.Arguments, call.ID, resp.Stop.Reason)
	}
	return nil
}

// show prints a body and the losses of making it.
func show(w io.Writer, title string, body []byte, report dragoman.Report) {
	fmt.Fprintf(w, "--- %s\n\n", title)
	var pretty bytes.Buffer
	if json.Indent(&pretty, body, "", "  ") == nil {
		body = pretty.Bytes()
	}
	fmt.Fprintf(w, "%s\n\n", bytes.TrimSpace(body))
	if len(report.Losses) == 0 {
		fmt.Fprint(w, "Nothing was lost.\n\n")
		return
	}
	for _, loss := range report.Losses {
		fmt.Fprintln(w, loss)
	}
	fmt.Fprintln(w)
}
