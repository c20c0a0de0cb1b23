package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// maxSampleTokens limits what a server may ask the model for.
const maxSampleTokens = 16_384

// sample sends a request of a server to the model of the options and returns the result for
// the server. The server chooses neither the model nor tools.
func (s *server) sample(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	m := fieldsOf(params)
	req := &dragoman.Request{}
	if text := jsonwire.Unquote(m["systemPrompt"]); text != "" {
		req.Instructions = []dragoman.Part{&dragoman.Text{Text: text}}
	}
	if n, err := strconv.ParseFloat(string(m["maxTokens"]), 64); err == nil && n >= 1 {
		req.MaxOutputTokens = new(int64(math.Min(n, maxSampleTokens)))
	}
	if len(m["messages"]) == 0 || m["messages"][0] != '[' {
		return nil, errors.New("it has no messages")
	}
	r := jsonwire.NewReader(m["messages"])
	for range r.Array() {
		one := fieldsOf(r.Raw())
		msg := dragoman.Message{Role: dragoman.RoleUser}
		if jsonwire.Unquote(one["role"]) == "assistant" {
			msg.Role = dragoman.RoleAssistant
		}
		content := one["content"]
		if len(content) > 0 && content[0] == '{' {
			content = append(append([]byte("["), content...), ']')
		}
		parts, _, err := contentParts(content)
		if err != nil {
			return nil, err
		}
		msg.Parts = parts
		req.Messages = append(req.Messages, msg)
	}
	resp, err := s.all.opts.Sampling.Generate(ctx, req)
	if err != nil {
		return nil, fmt.Errorf("the model: %w", err)
	}
	stop := "endTurn"
	switch resp.Stop.Reason {
	case dragoman.StopLength:
		stop = "maxTokens"
	case dragoman.StopSequence:
		stop = "stopSequence"
	}
	out := jsonwire.With([]byte(`{"role":"assistant"}`), "model", jsonwire.Quote(resp.Model))
	out = jsonwire.With(out, "stopReason", jsonwire.Quote(stop))
	return jsonwire.With(out, "content", jsonwire.With([]byte(`{"type":"text"}`), "text", jsonwire.Quote(resp.Text()))), nil
}
