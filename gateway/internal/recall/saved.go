package recall

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
)

// saved is a response that clients may continue: what was said since its parent. A
// chain of them is a conversation, so that a long one is not stored once for every
// response; short ones are taken into the next, so that there are not many to read.
type saved struct {
	V int `json:"v"`
	// Until is when it is forgotten, unless somebody continues it.
	Until  time.Time `json:"until"`
	Parent string    `json:"parent,omitempty"`
	// Depth is how many stand above it, Bytes how large it is with all of them.
	Depth    int               `json:"depth,omitempty"`
	Bytes    int               `json:"bytes"`
	Messages []json.RawMessage `json:"messages"`
}

const (
	// smallChain is up to which size a response takes in what is above it.
	smallChain = 64 << 10
	// mostDepth is how many responses a chain has at most.
	mostDepth = 1000
)

const sendWhole = "send the whole conversation as input, without previous_response_id"

func savedKey(key, id string) string { return noteKey("response", key, id) }

// Save remembers a conversation that ends with a response, for clients of a virtual key
// that continue it by its id. parent is the id that the request named as
// previous_response_id, empty for none, and messages are what was said since: the
// messages of that request and the output of the response. Instructions and tools do not
// belong to it: a client sends them each time.
//
// The error is a [*TooLargeError] where it is more than is kept, and wraps [ErrNotFound]
// where there is no such parent (any more).
func (r *Recall) Save(ctx context.Context, key, id, parent string, messages []dragoman.Message) error {
	s := saved{V: version, Parent: parent, Until: r.o.Now().Add(r.o.TTL)}
	for i := range messages {
		m := messages[i]
		m.Native = nil // its dialect's words for what is there already
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
		above, err := r.saved(ctx, key, parent)
		if err != nil {
			return err
		}
		s.follow(above)
	}
	if s.Bytes > wholes*r.o.MaxSaved || s.Depth > mostDepth {
		return &TooLargeError{What: "the conversation of a response", Size: s.Bytes, Max: wholes * r.o.MaxSaved, Advice: sendWhole}
	}
	return r.put(ctx, savedKey(key, id), &s)
}

// follow puts a response behind another, or in its place where both are small.
func (s *saved) follow(above *saved) {
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

func (r *Recall) put(ctx context.Context, note string, s *saved) error {
	raw, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("recall: saving a response: %w", err)
	}
	return r.o.Notes.Put(ctx, note, raw, s.Until)
}

// saved reads one response, and keeps it from being forgotten where half of its time is
// over.
func (r *Recall) saved(ctx context.Context, key, id string) (*saved, error) {
	note := savedKey(key, id)
	raw, found, err := r.o.Notes.Get(ctx, note)
	if err != nil {
		return nil, err
	}
	s := new(saved)
	if !found || json.Unmarshal(raw, s) != nil || s.V != version {
		return nil, fmt.Errorf("%w: %.80q", ErrNotFound, id)
	}
	if now := r.o.Now(); s.Until.Sub(now) <= r.o.TTL/2 {
		s.Until = now.Add(r.o.TTL)
		_ = r.put(ctx, note, s) // else it is forgotten when its time is over
	}
	return s, nil
}

// Load returns the conversation that ends with a response. The error wraps
// [ErrNotFound] where there is none of that id, or not all of it any more.
func (r *Recall) Load(ctx context.Context, key, id string) ([]dragoman.Message, error) {
	var chain []*saved
	for at := id; at != ""; {
		if len(chain) > mostDepth {
			return nil, fmt.Errorf("%w: %.80q has no beginning", ErrNotFound, id)
		}
		s, err := r.saved(ctx, key, at)
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

// Delete forgets a response. One that continues it may not be loaded any more. The error
// wraps [ErrNotFound] where there is none.
func (r *Recall) Delete(ctx context.Context, key, id string) error {
	if _, err := r.saved(ctx, key, id); err != nil {
		return err
	}
	return r.o.Notes.Delete(ctx, savedKey(key, id))
}
