package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"
	"github.com/ollama/ollama/api"
	"google.golang.org/genai"
)

// The peers in this file decode inside their clients. Each client is created once and uses a
// transport that responds with the body in the context: there is no network and nothing but
// decoding, except for one request per stream.

type bodyKey struct{}

func withBody(body []byte) context.Context {
	return context.WithValue(context.Background(), bodyKey{}, body)
}

type canned string // the content type

func (c canned) RoundTrip(r *http.Request) (*http.Response, error) {
	body, ok := r.Context().Value(bodyKey{}).([]byte)
	if !ok {
		return nil, fmt.Errorf("no body for %s", r.URL)
	}
	return &http.Response{
		StatusCode: http.StatusOK, Status: "200 OK", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {string(c)}},
		Body:   io.NopCloser(bytes.NewReader(body)),
	}, nil
}

func (c canned) client() *http.Client { return &http.Client{Transport: c} }

var geminiClient = sync.OnceValues(func() (*genai.Client, error) {
	return genai.NewClient(context.Background(), &genai.ClientConfig{
		APIKey: "none", Backend: genai.BackendGeminiAPI, HTTPClient: canned("text/event-stream").client(),
	})
})

// geminiContent joins the texts and collects the calls, because the SDK has no accumulator.
func geminiContent(body []byte) (result, error) {
	c, err := geminiClient()
	if err != nil {
		return result{}, err
	}
	var text strings.Builder
	var s result
	for r, err := range c.Models.GenerateContentStream(withBody(body), "m", genai.Text("hi"), nil) {
		if err != nil {
			return result{}, err
		}
		for _, p := range r.Candidates[0].Content.Parts {
			if f := p.FunctionCall; f != nil {
				s.calls = append(s.calls, call{f.ID, f.Name, f.Args})
			}
			text.WriteString(p.Text)
		}
	}
	s.text = text.String()
	return s, nil
}

var ollamaClient = sync.OnceValue(func() *api.Client {
	return api.NewClient(&url.URL{Scheme: "http", Host: "none"}, canned("application/x-ndjson").client())
})

func ollamaChat(body []byte) (result, error) {
	var text strings.Builder
	var s result
	err := ollamaClient().Chat(withBody(body), &api.ChatRequest{Model: "m"}, func(r api.ChatResponse) error {
		for _, k := range r.Message.ToolCalls {
			s.calls = append(s.calls, call{k.ID, k.Function.Name, k.Function.Arguments.ToMap()})
		}
		text.WriteString(r.Message.Content)
		return nil
	})
	s.text = text.String()
	return s, err
}

var bedrockClient = sync.OnceValue(func() *bedrockruntime.Client {
	credentials := aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: "none", SecretAccessKey: "none"}, nil
	})
	return bedrockruntime.New(bedrockruntime.Options{
		Region: "none", BaseEndpoint: aws.String("http://none"), Credentials: credentials,
		HTTPClient: canned("application/vnd.amazon.eventstream").client(), Retryer: aws.NopRetryer{},
	})
})

func bedrockConverse(body []byte) (result, error) {
	out, err := bedrockClient().ConverseStream(withBody(body), &bedrockruntime.ConverseStreamInput{ModelId: aws.String("m")})
	if err != nil {
		return result{}, err
	}
	stream := out.GetStream()
	defer stream.Close()
	var s result
	var arguments strings.Builder
	for ev := range stream.Events() {
		switch ev := ev.(type) {
		case *types.ConverseStreamOutputMemberContentBlockStart:
			if u, ok := ev.Value.Start.(*types.ContentBlockStartMemberToolUse); ok {
				s.calls = append(s.calls, call{id: aws.ToString(u.Value.ToolUseId), name: aws.ToString(u.Value.Name)})
				arguments.Reset()
			}
		case *types.ConverseStreamOutputMemberContentBlockDelta:
			if u, ok := ev.Value.Delta.(*types.ContentBlockDeltaMemberToolUse); ok {
				arguments.WriteString(aws.ToString(u.Value.Input))
			}
		case *types.ConverseStreamOutputMemberContentBlockStop:
			s.calls[len(s.calls)-1].arguments = arguments.String()
		}
	}
	return s, stream.Err()
}
