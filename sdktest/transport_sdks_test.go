package sdktest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/document"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"
	"github.com/ollama/ollama/api"
	"google.golang.org/genai"
)

// The SDKs in this file decode inside their clients, so the tests run the clients over a transport
// that responds with the given bytes.

// fixedResponse responds to every request with one body.
type fixedResponse struct {
	contentType string
	body        []byte
}

func (c fixedResponse) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Status: "200 OK", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {c.contentType}},
		Body:   io.NopCloser(bytes.NewReader(c.body)),
	}, nil
}

func (c fixedResponse) client() *http.Client { return &http.Client{Transport: c} }

// Gemini: google.golang.org/genai.

func geminiClient(c fixedResponse) (*genai.Client, error) {
	return genai.NewClient(context.Background(), &genai.ClientConfig{
		APIKey: "none", Backend: genai.BackendGeminiAPI, HTTPClient: c.client(),
	})
}

func geminiWhole(body []byte) (content, error) {
	c, err := geminiClient(fixedResponse{"application/json", body})
	if err != nil {
		return content{}, err
	}
	r, err := c.Models.GenerateContent(context.Background(), "m", genai.Text("hi"), nil)
	if err != nil {
		return content{}, err
	}
	var s content
	return s, s.gemini(r)
}

func geminiStream(body []byte) (content, error) {
	c, err := geminiClient(fixedResponse{"text/event-stream", asEvents(body)})
	if err != nil {
		return content{}, err
	}
	var s content
	for r, err := range c.Models.GenerateContentStream(context.Background(), "m", genai.Text("hi"), nil) {
		if err == nil {
			err = s.gemini(r)
		}
		if err != nil {
			return content{}, err
		}
	}
	return s, nil
}

// gemini adds a response, or the next chunk of one.
func (s *content) gemini(r *genai.GenerateContentResponse) error {
	if u := r.UsageMetadata; u != nil {
		s.usage = &usage{int64(u.PromptTokenCount) + int64(u.ToolUsePromptTokenCount), int64(u.CandidatesTokenCount) + int64(u.ThoughtsTokenCount)}
	}
	if len(r.Candidates) == 0 || r.Candidates[0].Content == nil {
		return nil
	}
	for _, p := range r.Candidates[0].Content.Parts {
		switch {
		case p == nil:
		case p.FunctionCall != nil:
			args, err := json.Marshal(p.FunctionCall.Args)
			if err != nil {
				return err
			}
			s.calls = append(s.calls, call{p.FunctionCall.ID, p.FunctionCall.Name, string(args)})
		case p.Thought:
			s.reasoning += p.Text
		default:
			s.text += p.Text
		}
	}
	return nil
}

// asEvents frames the elements of an array as events. Without alt=sse the API streams an array, which
// this SDK never requests.
func asEvents(body []byte) []byte {
	var elements []json.RawMessage
	if !bytes.HasPrefix(bytes.TrimSpace(body), []byte("[")) || json.Unmarshal(body, &elements) != nil {
		return body
	}
	var out bytes.Buffer
	for _, el := range elements {
		var line bytes.Buffer
		if json.Compact(&line, el) == nil {
			fmt.Fprintf(&out, "data: %s\n\n", line.Bytes())
		}
	}
	return out.Bytes()
}

// Ollama: github.com/ollama/ollama/api. Its client reads a response that is not streamed as a stream
// of one line.

func ollamaRead(body []byte) (content, error) {
	if json.Valid(body) { // one value, possibly on several lines
		var line bytes.Buffer
		if err := json.Compact(&line, body); err != nil {
			return content{}, err
		}
		body = line.Bytes()
	}
	c := api.NewClient(&url.URL{Scheme: "http", Host: "none"}, fixedResponse{"application/x-ndjson", body}.client())
	var s content
	err := c.Chat(context.Background(), &api.ChatRequest{Model: "m"}, s.ollama)
	return s, err
}

// ollama adds a response, or the next line of one.
func (s *content) ollama(r api.ChatResponse) error {
	s.text += r.Message.Content
	s.reasoning += r.Message.Thinking
	for _, k := range r.Message.ToolCalls {
		s.calls = append(s.calls, call{k.ID, k.Function.Name, k.Function.Arguments.String()})
	}
	if r.Done {
		s.usage = &usage{int64(r.PromptEvalCount), int64(r.EvalCount)}
	}
	return nil
}

// Bedrock: aws-sdk-go-v2/service/bedrockruntime.

func bedrockClient(c fixedResponse) *bedrockruntime.Client {
	credentials := aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: "none", SecretAccessKey: "none"}, nil
	})
	return bedrockruntime.New(bedrockruntime.Options{
		Region: "none", BaseEndpoint: aws.String("http://none"),
		Credentials: credentials, HTTPClient: c.client(), Retryer: aws.NopRetryer{},
	})
}

func bedrockWhole(body []byte) (content, error) {
	out, err := bedrockClient(fixedResponse{"application/json", body}).Converse(context.Background(), &bedrockruntime.ConverseInput{ModelId: aws.String("m")})
	if err != nil {
		return content{}, err
	}
	return bedrockContent(out)
}

func bedrockContent(out *bedrockruntime.ConverseOutput) (content, error) {
	var s content
	s.bedrockUsage(out.Usage)
	m, ok := out.Output.(*types.ConverseOutputMemberMessage)
	if !ok {
		return s, nil
	}
	for _, b := range m.Value.Content {
		if err := s.bedrockBlock(b); err != nil {
			return content{}, err
		}
	}
	return s, nil
}

func (s *content) bedrockUsage(u *types.TokenUsage) {
	if u != nil {
		s.usage = &usage{
			int64(aws.ToInt32(u.InputTokens)) + int64(aws.ToInt32(u.CacheReadInputTokens)) + int64(aws.ToInt32(u.CacheWriteInputTokens)),
			int64(aws.ToInt32(u.OutputTokens)),
		}
	}
}

func (s *content) bedrockBlock(b types.ContentBlock) error {
	switch b := b.(type) {
	case *types.ContentBlockMemberText:
		s.text += b.Value
	case *types.ContentBlockMemberReasoningContent:
		if t, ok := b.Value.(*types.ReasoningContentBlockMemberReasoningText); ok {
			s.reasoning += aws.ToString(t.Value.Text)
		}
	case *types.ContentBlockMemberToolUse:
		args, err := documentText(b.Value.Input)
		if err != nil {
			return err
		}
		s.calls = append(s.calls, call{aws.ToString(b.Value.ToolUseId), aws.ToString(b.Value.Name), args})
	}
	return nil
}

func documentText(d document.Interface) (string, error) {
	if d == nil {
		return "", nil
	}
	b, err := d.MarshalSmithyDocument()
	return string(b), err
}

func bedrockStream(body []byte) (content, error) {
	out, err := bedrockClient(fixedResponse{"application/vnd.amazon.eventstream", body}).ConverseStream(context.Background(), &bedrockruntime.ConverseStreamInput{ModelId: aws.String("m")})
	if err != nil {
		return content{}, err
	}
	return bedrockFold(out.GetStream())
}

func bedrockFold(stream *bedrockruntime.ConverseStreamEventStream) (content, error) {
	defer stream.Close()
	var s content
	at := map[int32]int{} // from block to call
	for ev := range stream.Events() {
		switch ev := ev.(type) {
		case *types.ConverseStreamOutputMemberContentBlockStart:
			if u, ok := ev.Value.Start.(*types.ContentBlockStartMemberToolUse); ok {
				at[aws.ToInt32(ev.Value.ContentBlockIndex)] = len(s.calls)
				s.calls = append(s.calls, call{aws.ToString(u.Value.ToolUseId), aws.ToString(u.Value.Name), ""})
			}
		case *types.ConverseStreamOutputMemberContentBlockDelta:
			switch d := ev.Value.Delta.(type) {
			case *types.ContentBlockDeltaMemberText:
				s.text += d.Value
			case *types.ContentBlockDeltaMemberReasoningContent:
				if t, ok := d.Value.(*types.ReasoningContentBlockDeltaMemberText); ok {
					s.reasoning += t.Value
				}
			case *types.ContentBlockDeltaMemberToolUse:
				i, ok := at[aws.ToInt32(ev.Value.ContentBlockIndex)]
				if !ok {
					return content{}, errNoSuchBlock
				}
				s.calls[i].arguments += aws.ToString(d.Value.Input)
			}
		case *types.ConverseStreamOutputMemberMetadata:
			s.bedrockUsage(ev.Value.Usage)
		}
	}
	return s, stream.Err()
}

var errNoSuchBlock = errors.New("a fragment of arguments for a block that did not start")
