package gateway

import (
	"context"
	"errors"
	"fmt"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/gateway/recall"
)

// stores reports whether clients can go on with the response by its id, and the
// gateway must remember for that: the model's server does not.
func (x *exchange) stores() bool {
	return x.codec.Dialect() == dragoman.OpenAIResponses && x.up.dialect != dragoman.OpenAIResponses && (x.req.Store == nil || *x.req.Store)
}

// keeps reports whether anything of the answer is remembered.
func (x *exchange) keeps() bool { return !x.route.NoRecall || x.stores() }

// responseID is the id that a response is told under: ours, where the client can go
// on with it.
func (x *exchange) responseID(id string) string {
	if !x.stores() {
		return id
	}
	return "resp_" + strings.TrimPrefix(x.id, "req_")
}

// keep remembers what the client may forget: the opaque parts of an answer, and the
// conversation that it belongs to.
func (x *exchange) keep(ctx context.Context, resp *dragoman.Response) {
	if !x.route.NoRecall {
		if err := x.recall.Keep(ctx, x.scope(), x.req, resp); err != nil {
			x.warn(ctx, "reasoning could not be kept", err)
		}
	}
	if x.stores() {
		if err := x.recall.Save(ctx, x.entry.key, resp.ID, x.asked.previous, x.req, resp); err != nil {
			x.warn(ctx, "a response could not be kept", err)
		}
	}
}

// recallConversation puts the conversation that a request goes on with before what it
// says itself, where the gateway has it.
func (x *exchange) recallConversation(ctx context.Context, req *dragoman.Request) error {
	id := req.PreviousResponseID
	if id == "" {
		return nil
	}
	before, err := x.recall.Load(ctx, x.entry.key, id)
	switch {
	case errors.Is(err, recall.ErrUnknown):
		return nil // the model's server may know it
	case err != nil:
		return err
	}
	req.Messages = append(before, req.Messages...)
	req.PreviousResponseID = ""
	req.Native = nil
	return nil
}

// unknownResponse says that nobody knows the response that a request goes on with.
func unknownResponse(id string) error {
	return &dragoman.APIError{
		Class: dragoman.ErrorBadRequest, Param: "previous_response_id", Code: "previous_response_not_found",
		Message: fmt.Sprintf("Previous response with id %.80q not found: it has expired, or was not stored; send the whole conversation.", id),
	}
}
