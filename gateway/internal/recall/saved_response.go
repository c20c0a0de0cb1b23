package recall

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
)

// savedResponse is a response that clients may continue, with the messages since its parent. A chain of
// them is a conversation, so that a long one is not stored once for every response. Short ones
// are merged into the next, so that there are few to read.
type savedResponse struct {
	V int `json:"v"`
	// Until is when it expires, unless it is continued.
	Until  time.Time `json:"until"`
	Parent string    `json:"parent,omitempty"`
	// Depth is the number of ancestors, Bytes the size with all of them.
	Depth    int               `json:"depth,omitempty"`
	Bytes    int               `json:"bytes"`
	Messages []json.RawMessage `json:"messages"`
}

const (
	// smallChain is the size up to which a response includes its ancestors.
	smallChain = 64 << 10
	// maxDepth is the maximum length of a chain.
	maxDepth = 1000
)

const sendWhole = "send the whole conversation as input, without previous_response_id"

func savedKey(key, id string) string { return noteKey("response", key, id) }

// SaveResponse stores a conversation that ends with a response, for clients of a virtual key that
// continue it by its id. parent is the previous_response_id of the request, or empty, and
// messages are those since then: the messages of that request and the output of the response.
// Instructions and tools are not stored: a client sends them each time.
//
// The error is a [*TooLargeError] if the conversation is too large, and wraps [ErrNotFound] if
// the parent does not exist (any more).
func (r *Recall) SaveResponse(ctx context.Context, key, id, parent string, messages []dragoman.Message) error {
	s := savedResponse{V: version, Parent: parent, Until: r.o.Now().Add(r.o.TTL)}
	for i := range messages {
		m := messages[i]
		m.Native = nil // duplicates the parts in its dialect
		raw, err := json.Marshal(m)
		if err != nil {
			return fmt.Errorf("recall: saving response %.80q: %w", id, err)
		}
		s.Messages = append(s.Messages, raw)
		s.Bytes += len(raw)
	}
	if s.Bytes > r.o.MaxSaved {
		return &TooLargeError{What: "a response with the messages before it", Size: s.Bytes, Max: r.o.MaxSaved, Advice: sendWhole}
	}
	if parent != "" {
		above, err := r.loadSaved(ctx, key, parent)
		if err != nil {
			return err
		}
		s.continueFrom(above)
	}
	if s.Bytes > maxConversationFactor*r.o.MaxSaved || s.Depth > maxDepth {
		return &TooLargeError{What: "the conversation of a response", Size: s.Bytes, Max: maxConversationFactor * r.o.MaxSaved, Advice: sendWhole}
	}
	return r.put(ctx, savedKey(key, id), &s)
}

// continueFrom appends a response to another, or merges both if they are small.
func (s *savedResponse) continueFrom(above *savedResponse) {
	own := s.Bytes
	s.Bytes += above.Bytes
	if own+sizeOf(above.Messages) > smallChain {
		s.Depth = above.Depth + 1
		return
	}
	s.Parent, s.Depth = above.Parent, above.Depth
	s.Messages = append(slices.Clip(above.Messages), s.Messages...)
}

func sizeOf(messages []json.RawMessage) (n int) {
	for _, m := range messages {
		n += len(m)
	}
	return n
}

func (r *Recall) put(ctx context.Context, note string, s *savedResponse) error {
	raw, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("recall: saving a response: %w", err)
	}
	return r.o.Notes.Put(ctx, note, raw, s.Until)
}

// loadSaved reads one response, and extends its lifetime if half of it is over.
func (r *Recall) loadSaved(ctx context.Context, key, id string) (*savedResponse, error) {
	note := savedKey(key, id)
	raw, found, err := r.o.Notes.Get(ctx, note)
	if err != nil {
		return nil, err
	}
	s := new(savedResponse)
	if !found || json.Unmarshal(raw, s) != nil || s.V != version {
		return nil, fmt.Errorf("%w: %.80q", ErrNotFound, id)
	}
	if now := r.o.Now(); s.Until.Sub(now) <= r.o.TTL/2 {
		s.Until = now.Add(r.o.TTL)
		_ = r.put(ctx, note, s) // if this fails, it expires
	}
	return s, nil
}

// LoadResponse returns the conversation that ends with a response. The error wraps [ErrNotFound] if the
// id is unknown, or a part of the conversation has expired.
func (r *Recall) LoadResponse(ctx context.Context, key, id string) ([]dragoman.Message, error) {
	var chain []*savedResponse
	for at := id; at != ""; {
		if len(chain) > maxDepth {
			return nil, fmt.Errorf("%w: the start of %.80q is missing", ErrNotFound, id)
		}
		s, err := r.loadSaved(ctx, key, at)
		if err != nil {
			return nil, err
		}
		chain = append(chain, s)
		at = s.Parent
	}
	var out []dragoman.Message
	for _, s := range slices.Backward(chain) {
		for _, raw := range s.Messages {
			var m dragoman.Message
			if err := json.Unmarshal(raw, &m); err != nil {
				return nil, fmt.Errorf("recall: loading response %.80q: %w", id, err)
			}
			out = append(out, m)
		}
	}
	return out, nil
}

// DeleteResponse deletes a response. Responses that continue it may no longer be loadable. The error
// wraps [ErrNotFound] if the id is unknown.
func (r *Recall) DeleteResponse(ctx context.Context, key, id string) error {
	if _, err := r.loadSaved(ctx, key, id); err != nil {
		return err
	}
	return r.o.Notes.Delete(ctx, savedKey(key, id))
}
