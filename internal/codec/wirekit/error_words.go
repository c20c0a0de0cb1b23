package wirekit

import (
	"net/http"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
)

// tooLongWords are lower-case phrases of error messages for a prompt that exceeds the
// context of the model. The codes of these errors are generic.
var tooLongWords = []string{
	"maximum context length",                        // OpenAI, DeepSeek, OpenRouter, vLLM, Mistral
	"context length exceeded",                       // several compatible servers
	"exceeds the context window",                    // OpenAI Responses
	"exceeded max context length",                   // Ollama Cloud
	"exceed context limit",                          // Anthropic
	"prompt is too long",                            // Claude models
	"input is too long",                             // Converse
	"too many input tokens",                         // Amazon Titan models
	"number of input tokens exceeds maximum length", // Amazon Nova models
	"maximum prompt length is",                      // xAI
	"exceeds the maximum number of tokens",          // Gemini
	"exceeds the available context size",            // llama.cpp
	"reduce the length of the messages",             // Groq
	"following a prompt of length",                  // Perplexity
	"longer than the model's context length",        // Together
}

// IsContextLength reports whether an error means that the prompt exceeds the context of the
// model. A rate limit, a missing model or a bad key never does, whatever its message.
func IsContextLength(e *dragoman.APIError) bool {
	switch e.Status {
	case http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden, http.StatusNotFound, http.StatusRequestTimeout, http.StatusTooManyRequests:
		return false
	}
	return mentions(e, tooLongWords)
}

// OpenAIWordsClass classifies an error of an OpenAI dialect by its message, for
// compatible servers whose codes are generic. It is empty for other errors.
func OpenAIWordsClass(e *dragoman.APIError) dragoman.ErrorClass {
	switch {
	case e.Type == "requested_too_many_tokens", IsContextLength(e): // Perplexity uses this type
		return dragoman.ErrorContextLength
	case e.Status != 0 && e.Status != http.StatusBadRequest:
		return ""
	case strings.HasPrefix(e.Message, "Incorrect API key provided"): // xAI, with status 400
		return dragoman.ErrorAuth
	case isUnknownModel(e):
		return dragoman.ErrorNotFound
	default:
		return ""
	}
}

// isUnknownModel reports whether an error with status 400 means that the server does not
// have the model.
func isUnknownModel(e *dragoman.APIError) bool {
	switch {
	case e.Type == "invalid_model", // Mistral
		e.Code == "model_decommissioned",                                   // Groq
		e.Message == "Model Not Exist",                                     // DeepSeek
		e.Message == "model not found",                                     // llama.cpp router
		strings.HasPrefix(e.Message, "Model not found:"),                   // xAI
		strings.HasSuffix(e.Message, "is not a valid model ID"),            // OpenRouter
		strings.Contains(e.Message, "Invalid model name passed in model="): // LiteLLM proxy
		return true
	default:
		return false
	}
}

// mentions reports whether an error contains one of the phrases. The message of an
// OpenRouter error may be generic; the metadata then holds the upstream error.
func mentions(e *dragoman.APIError, words []string) bool {
	text := e.Message
	if e.Native != nil && strings.HasPrefix(text, "Provider returned error") {
		text = string(e.Native.JSON)
	}
	text = strings.ToLower(text)
	for _, w := range words {
		if strings.Contains(text, w) {
			return true
		}
	}
	return false
}
