package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/wire"
)

// Anthropic threads are conversations that the Anthropic server stores (G7). A request begins
// one, or continues from a message by its id; it then has neither instructions nor tools, which
// are those of the first request. Other servers have no threads, so the gateway stores them.

// threads reports whether the client wants its conversation stored, and the gateway must do it.
func (x *exchange) threads() bool {
	return x.asked.thread.Asked && x.up.wire().State.Threads == nil
}

// takeThread makes the gateway responsible for the thread of a request, if it must be. It
// refuses one that continues from an unknown message.
func (x *exchange) takeThread() error {
	if !x.threads() {
		return nil
	}
	if x.asked.thread.Previous != "" && x.before == nil {
		return &ownError{wire.Of(x.codec).State.Threads.Unknown(x.asked.thread.Previous)}
	}
	withoutThread(x.req, wire.Of(x.codec).State.Threads.Field)
	return nil
}

// threadKey returns the key of the stored setting of a thread, by one of its messages.
func threadKey(key, id string) string { return "thread " + bodyKey(key, id) }

// saveThread stores the setting that the next request of a thread will not repeat.
func (x *exchange) saveThread(ctx context.Context) error {
	setting, err := json.Marshal(&dragoman.Request{Instructions: x.req.Instructions, Tools: x.req.Tools})
	if err != nil {
		return err
	}
	return x.opts.Notes.Put(ctx, threadKey(x.entry.key, x.responseID()), setting, x.opts.Now().Add(x.ttl))
}

// loadThread loads the setting of a continued thread. A conversation without it counts as
// unknown.
func (x *exchange) loadThread(ctx context.Context) error {
	b, found, err := x.opts.Notes.Get(ctx, threadKey(x.entry.key, x.asked.previous))
	if err != nil || !found {
		x.before = nil
		return err
	}
	x.setting = new(dragoman.Request)
	if err := json.Unmarshal(b, x.setting); err != nil {
		return fmt.Errorf("gateway: the stored thread of %.80q is damaged: %w", x.asked.previous, err)
	}
	return nil
}

// withoutThread removes the thread from a request: the upstream that gets it has no threads.
func withoutThread(req *dragoman.Request, field string) {
	if req.Extra == nil {
		return
	}
	extra := *req.Extra
	extra.Fields = slices.DeleteFunc(slices.Clone(extra.Fields), func(f dragoman.Field) bool { return f.Path == "/"+field })
	req.Extra = &extra
}
