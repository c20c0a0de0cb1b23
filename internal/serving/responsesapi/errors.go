package responsesapi

import (
	"fmt"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
	"github.com/dragoman-go/dragoman/internal/serving"
)

// maxID is the maximum length of an id in an error, in bytes; longer ids are truncated.
const maxID = 200

func bounded(id string) string {
	if len(id) > maxID {
		return id[:maxID] + "…"
	}
	return id
}

// withAdvice appends advice to the message of an error.
func withAdvice(message, advice string) string {
	if advice == "" {
		return message
	}
	return message + " " + advice
}

// notFound returns a 404 without a code, because the code of its class means an unknown
// model.
func notFound(param, message string) *dragoman.APIError {
	return serving.WithOpenAICode(openairesponses.Codec{}, "", &dragoman.APIError{Class: dragoman.ErrorNotFound, Param: param, Message: message})
}

// UnknownResponse returns the error for a request about a response that is not stored.
func UnknownResponse(id string) *dragoman.APIError {
	return notFound("", fmt.Sprintf("Response with id '%s' not found.", bounded(id)))
}

// UnknownPrevious returns the error for an unknown previous_response_id. Clients
// recognize its code and retry with the whole conversation.
func UnknownPrevious(id, advice string) *dragoman.APIError {
	return serving.WithOpenAICode(openairesponses.Codec{}, "previous_response_not_found", &dragoman.APIError{
		Class: dragoman.ErrorBadRequest, Param: "previous_response_id",
		Message: withAdvice(fmt.Sprintf("Previous response with id '%s' not found.", bounded(id)), advice),
	})
}

// UnknownItem returns the error for a reference to an item that is not stored.
func UnknownItem(id, advice string) *dragoman.APIError {
	return notFound("input", withAdvice(fmt.Sprintf("Item with id '%s' not found.", bounded(id)), advice))
}

// UnknownConversation returns the error for a conversation that is not stored.
func UnknownConversation(id, advice string) *dragoman.APIError {
	return notFound("conversation", withAdvice(fmt.Sprintf("Conversation with id '%s' not found.", bounded(id)), advice))
}

// UnknownPrompt returns the error for a prompt that is not stored.
func UnknownPrompt(id, advice string) *dragoman.APIError {
	return notFound("prompt", withAdvice(fmt.Sprintf("Prompt with id '%s' not found.", bounded(id)), advice))
}

// DuplicateItem returns the error for an item that occurs twice in the input.
func DuplicateItem(id string) *dragoman.APIError {
	return &dragoman.APIError{
		Class: dragoman.ErrorBadRequest, Param: "input",
		Message: fmt.Sprintf("Duplicate item found with id %s. Remove duplicate items from your input and try again.", bounded(id)),
	}
}

// PreviousAndConversation returns the error for a request that names both.
func PreviousAndConversation() *dragoman.APIError {
	return &dragoman.APIError{
		Class: dragoman.ErrorBadRequest, Param: "conversation", Message: "conversation and previous_response_id cannot be used together; send one of them",
	}
}

// BadInput returns the error for an input that cannot be read.
func BadInput(err error) *dragoman.APIError {
	refusal := serving.AsRequestError(err)
	refusal.Param = "input"
	return refusal
}

// FullConversation returns the error for a conversation that would exceed [MaxConversation].
func FullConversation() *dragoman.APIError {
	return &dragoman.APIError{
		Class: dragoman.ErrorBadRequest, Param: "conversation",
		Message: fmt.Sprintf("the conversation would have more than %d bytes of items and metadata; start a new one", MaxConversation),
	}
}
