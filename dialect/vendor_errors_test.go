package dialect_test

import (
	"net/http"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/bedrock"
	"github.com/dragoman-go/dragoman/dialect/ollama"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
)

// Compatible servers return errors whose codes are too general, so the messages decide.
func TestErrorsAreClassifiedByMessage(t *testing.T) {
	const tooLong = dragoman.ErrorContextLength
	for _, tc := range []struct {
		about  string
		codec  dialect.Codec
		status int
		body   string
		want   dragoman.ErrorClass
	}{
		{"DeepSeek", openaichat.Codec{}, 400, `{"error":{"message":"This model's maximum context length is 131072 tokens. However, you requested 141980 tokens (133980 in the messages, 8000 in the completion). Please reduce the length of the messages or completion.","type":"invalid_request_error","param":null,"code":"invalid_request_error"}}`, tooLong},
		{"OpenRouter", openaichat.Codec{}, 400, `{"error":{"message":"This endpoint's maximum context length is 163840 tokens. However, you requested about 243013 tokens (238917 of text input, 4096 in the output).","code":400},"user_id":"user_1"}`, tooLong},
		{"OpenRouter, inside a stream", openaichat.Codec{}, 0, `{"error":{"message":"This endpoint's maximum context length is 163840 tokens.","code":400}}`, tooLong},
		{"OpenRouter, upstream error", openaichat.Codec{}, 400, `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"Requested 115120 to generate tokens, following a prompt of length 40055, which exceeds the max limit of 128000 tokens.\",\"type\":\"requested_too_many_tokens\",\"code\":400}}","provider_name":"Perplexity"}}}`, tooLong},
		{"OpenRouter, other upstream error", openaichat.Codec{}, 400, `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"temperature must be at most 2\"}}","provider_name":"Perplexity"}}}`, dragoman.ErrorBadRequest},
		{"Perplexity", openaichat.Codec{}, 400, `{"error":{"message":"Requested 115120 to generate tokens, following a prompt of length 40055, which exceeds the max limit of 128000 tokens.","type":"requested_too_many_tokens","code":400}}`, tooLong},
		{"Perplexity, bad parameter", openaichat.Codec{}, 400, `{"error":{"message":"max_tokens must be at least 16 for sonar.","type":"invalid_parameter","code":400}}`, dragoman.ErrorBadRequest},
		{"xAI", openairesponses.Codec{}, 400, `{"code":"invalid-argument","error":"This model's maximum prompt length is 500000 but the request contains 637815 tokens."}`, tooLong},
		{"Ollama Cloud", ollama.Codec{}, 400, `{"error":"prompt too long; exceeded max context length by 540451 tokens (ref: 00ad71bb)"}`, tooLong},
		{"Ollama Cloud, Chat API", openaichat.Codec{}, 400, `{"error":{"message":"prompt too long; exceeded max context length by 17 tokens (ref: 00ad71bb)","type":"invalid_request_error","param":null,"code":null}}`, tooLong},
		{"Bedrock", bedrock.Codec{}, 400, `{"message":"Input is too long for requested model."}`, tooLong},
		{"Bedrock, a Nova model", bedrock.Codec{}, 400, `{"message":"The model returned the following errors: Input Tokens Exceeded: Number of input tokens exceeds maximum length. Please update the input to try again."}`, tooLong},
		{"Bedrock, a Claude model", bedrock.Codec{}, 400, `{"message":"The model returned the following errors: prompt is too long: 200049 tokens > 200000 maximum"}`, tooLong},
		{"Bedrock, the model's own error", bedrock.Codec{}, 424, `{"__type":"ModelErrorException","message":"The model returned the following errors: Input is too long for requested model."}`, tooLong},
		{"DeepSeek's Anthropic API", anthropic.Codec{}, 400, `{"type":"error","error":{"type":"invalid_request_error","message":"This model's maximum context length is 131072 tokens."}}`, tooLong},

		{"xAI, a bad key", openairesponses.Codec{}, 400, `{"code":"invalid-argument","error":"Incorrect API key provided. You can obtain an API key from https://console.x.ai."}`, dragoman.ErrorAuth},
		{"xAI, a bad key, Chat API", openaichat.Codec{}, 400, `{"code":"Client specified an invalid argument","error":"Incorrect API key provided: xa***ey. You can obtain an API key from https://console.x.ai."}`, dragoman.ErrorAuth},
		{"xAI, an unknown model", openairesponses.Codec{}, 400, `{"code":"invalid-argument","error":"Model not found: grok-9"}`, dragoman.ErrorNotFound},
		{"Mistral, an unknown model", openaichat.Codec{}, 400, `{"code":"1500","message":"Invalid model: m","object":"error","type":"invalid_model"}`, dragoman.ErrorNotFound},
		{"Groq, a decommissioned model", openaichat.Codec{}, 400, `{"error":{"message":"The model m has been decommissioned and is no longer supported.","type":"invalid_request_error","code":"model_decommissioned"}}`, dragoman.ErrorNotFound},
		{"llama.cpp, an unknown model", openaichat.Codec{}, 400, `{"error":{"code":400,"message":"model not found","type":"invalid_request_error"}}`, dragoman.ErrorNotFound},
		{"LiteLLM, an unknown model", openaichat.Codec{}, 400, "{\"error\":{\"message\":\"/chat/completions: Invalid model name passed in model=m. Call `/v1/models` to view available models for your key.\",\"type\":\"invalid_request_error\",\"param\":\"model\",\"code\":\"400\"}}", dragoman.ErrorNotFound},
		{"DeepSeek, an unknown model", openaichat.Codec{}, 400, `{"error":{"message":"Model Not Exist","type":"invalid_request_error","param":null,"code":"invalid_request_error"}}`, dragoman.ErrorNotFound},
		{"Bedrock, an unknown model", bedrock.Codec{}, 400, `{"__type":"ValidationException","message":"The provided model identifier is invalid."}`, dragoman.ErrorNotFound},
		{"Bedrock, an unknown model without a type", bedrock.Codec{}, 400, `{"message":"The provided model identifier is invalid."}`, dragoman.ErrorNotFound},
		{"OpenRouter, an unknown model", openaichat.Codec{}, 400, `{"error":{"code":400,"message":"openai/gpt-0 is not a valid model ID"}}`, dragoman.ErrorNotFound},

		{"rate limit per minute", openaichat.Codec{}, 429, `{"error":{"message":"Please reduce the length of the messages: tokens per minute","type":"tokens","code":null}}`, dragoman.ErrorRateLimit},
		{"output limit", openaichat.Codec{}, 400, `{"error":{"message":"max_tokens is too large: 500000. This model supports at most 128000 completion tokens.","type":"invalid_request_error","param":"max_tokens","code":"invalid_value"}}`, dragoman.ErrorBadRequest},
	} {
		if e := tc.codec.DecodeError(tc.status, http.Header{}, []byte(tc.body)); e.Class != tc.want {
			t.Errorf("%s: %s, want %s", tc.about, e.Class, tc.want)
		}
	}
}
