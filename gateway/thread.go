package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/wire"
)

// Anthropic's threads are conversations that its server keeps (G7): a request says that
// one begins, or goes on with a message by its id, and then has neither instructions
// nor tools, which are those of the beginning. Other servers have no such thing, so the
// gateway keeps them.

// threads reports whether the client wants its conversation kept, and it is the
// gateway that must.
func (x *exchange) threads() bool {
	return x.asked.thread.Asked && x.up.wire().State.Threads == nil
}

// takeThread makes the thread of a request the gateway's, where it must. It refuses one
// that goes on with a message that nobody knows.
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

// threadKey is where the setting of a thread is kept, as of one of its messages.
func threadKey(key, id string) string { return "thread " + bodyKey(key, id) }

// saveThread remembers what the next request of a thread will not say again.
func (x *exchange) saveThread(ctx context.Context) error {
	setting, err := json.Marshal(&dragoman.Request{Instructions: x.req.Instructions, Tools: x.req.Tools})
	if err != nil {
		return err
	}
	return x.opts.Notes.Put(ctx, threadKey(x.entry.key, x.responseID()), setting, x.opts.Now().Add(x.ttl))
}

// loadThread finds the setting of a thread that goes on. A conversation without it is
// as good as none.
func (x *exchange) loadThread(ctx context.Context) error {
	b, found, err := x.opts.Notes.Get(ctx, threadKey(x.entry.key, x.asked.previous))
	if err != nil || !found {
		x.before = nil
		return err
	}
	x.setting = new(dragoman.Request)
	if err := json.Unmarshal(b, x.setting); err != nil {
		return fmt.Errorf("gateway: the thread of %.80q cannot be read: %w", x.asked.previous, err)
	}
	return nil
}

// withoutThread takes the thread out of a request: the server that gets it knows of none.
func withoutThread(req *dragoman.Request, field string) {
	if req.Extra == nil {
		return
	}
	extra := *req.Extra
	extra.Fields = slices.DeleteFunc(slices.Clone(extra.Fields), func(f dragoman.Field) bool { return f.Path == "/"+field })
	req.Extra = &extra
}
