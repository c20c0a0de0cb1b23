package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"sync"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
	"github.com/dragoman-go/dragoman/internal/serving"
)

// maxKept and maxKeptBytes bound the conversations that a server remembers for
// those who go on with a response by its id. The oldest is forgotten first.
const (
	maxKept      = 256
	maxKeptBytes = 32 << 20
)

// memory are the conversations that end with the responses of a server. The zero
// value is ready.
type memory struct {
	mu    sync.Mutex
	kept  []conversation // the oldest first
	bytes int
}

// conversation is what was said up to a response, and the response.
type conversation struct {
	id       string
	messages []dragoman.Message
	size     int
}

// keep remembers a conversation.
func (m *memory) keep(req *dragoman.Request, resp *dragoman.Response) {
	c := conversation{id: resp.ID, messages: slices.Concat(req.Messages, resp.Output)}
	for i := range c.messages {
		c.size += sizeOf(c.messages[i].Parts)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kept = slices.DeleteFunc(m.kept, func(old conversation) bool {
		if old.id == c.id {
			m.bytes -= old.size
		}
		return old.id == c.id
	})
	m.kept = append(m.kept, c)
	for m.bytes += c.size; len(m.kept) > maxKept || m.bytes > maxKeptBytes; m.kept = m.kept[1:] {
		m.bytes -= m.kept[0].size
	}
}

// recall puts what was said up to the response that a request goes on with before
// what it says itself.
//
// The simulator stores responses, but not single items or conversations: it refuses a
// request that refers to one.
func (m *memory) recall(req *dragoman.Request) error {
	if err := refuseReferences(req); err != nil {
		return err
	}
	id := req.PreviousResponseID
	if id == "" {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	i := slices.IndexFunc(m.kept, func(c conversation) bool { return c.id == id })
	if i < 0 {
		return &dragoman.APIError{
			Class: dragoman.ErrorBadRequest, Param: "previous_response_id",
			Message: fmt.Sprintf("there is no response %.80q: the simulator keeps the last %d that were not asked for with \"store\": false, until it ends; send the whole conversation", id, maxKept),
		}
	}
	req.Messages = slices.Concat(m.kept[i].messages, req.Messages)
	req.PreviousResponseID = ""
	return nil
}

// refuseReferences refuses references to stored items and conversations.
func refuseReferences(req *dragoman.Request) error {
	for _, f := range req.Extra.For(dragoman.OpenAIResponses) {
		if f.Path == "/conversation" && string(f.Value) != "null" {
			return notStored("conversation", fmt.Sprintf("Conversation with id %.80s not found: the simulator stores no conversations", f.Value))
		}
	}
	for i := range req.Messages {
		for _, p := range req.Messages[i].Parts {
			if o, ok := p.(*dragoman.Opaque); ok && o.Dialect == dragoman.OpenAIResponses && o.Type == "item_reference" {
				return notStored("input", fmt.Sprintf("Item not found: the simulator stores no items: %.120s", o.JSON))
			}
		}
	}
	return nil
}

// notStored returns the error for a reference to something that the simulator does not
// store. It has no code, because the code of its class means an unknown model.
func notStored(param, message string) error {
	return serving.OpenAIs(openairesponses.Codec{}, "", &dragoman.APIError{Class: dragoman.ErrorNotFound, Param: param, Message: message})
}

// remembered is a model whose answers a server keeps.
type remembered struct {
	dragoman.Model
	memory *memory
}

// Generate implements [dragoman.Model].
func (r remembered) Generate(ctx context.Context, req *dragoman.Request) (*dragoman.Response, error) {
	resp, err := r.Model.Generate(ctx, req)
	if err == nil {
		r.memory.keep(req, resp)
		stored(resp)
	}
	return resp, err
}

// Stream implements [dragoman.Model].
func (r remembered) Stream(ctx context.Context, req *dragoman.Request) iter.Seq2[dragoman.Event, error] {
	return func(yield func(dragoman.Event, error) bool) {
		var c dragoman.Collector
		for ev, err := range r.Model.Stream(ctx, req) {
			c.Add(ev)
			if _, ended := ev.(*dragoman.ResponseEnd); ended {
				if resp, err := c.Response(); err == nil {
					r.memory.keep(req, resp)
				}
			}
			if start, begins := ev.(*dragoman.ResponseStart); begins {
				stored(&start.Response)
			}
			if !yield(ev, err) {
				return
			}
		}
	}
}

// stored has a response say that it is kept.
func stored(resp *dragoman.Response) {
	resp.Extra = &dragoman.Extra{Dialect: dragoman.OpenAIResponses, Fields: []dragoman.Field{{Path: "/store", Value: json.RawMessage("true")}}}
}
