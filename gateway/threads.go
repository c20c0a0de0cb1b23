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

// storesThread reports whether the gateway must store the thread of the request.
func (x *exchange) storesThread() bool {
	return x.head.thread.Requested && x.up.wire().State.Threads == nil
}

// adoptThread removes the thread from a request if the gateway stores it. It refuses a thread that
// continues from an unknown message.
func (x *exchange) adoptThread() error {
	if !x.storesThread() {
		return nil
	}
	if x.head.thread.Previous != "" && x.history == nil {
		return &ownError{wire.Of(x.codec).State.Threads.Unknown(x.head.thread.Previous)}
	}
	removeThread(x.req, wire.Of(x.codec).State.Threads.Field)
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
	b, found, err := x.opts.Notes.Get(ctx, threadKey(x.entry.key, x.head.previous))
	if err != nil || !found {
		x.history = nil
		return err
	}
	x.threadSetting = new(dragoman.Request)
	if err := json.Unmarshal(b, x.threadSetting); err != nil {
		return fmt.Errorf("gateway: the stored thread of %.80q is damaged: %w", x.head.previous, err)
	}
	return nil
}

// removeThread removes the thread from a request: the upstream that gets it has no threads.
func removeThread(req *dragoman.Request, field string) {
	if req.Extra == nil {
		return
	}
	extra := *req.Extra
	extra.Fields = slices.DeleteFunc(slices.Clone(extra.Fields), func(f dragoman.Field) bool { return f.Path == "/"+field })
	req.Extra = &extra
}
