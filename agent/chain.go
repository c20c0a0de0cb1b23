package agent

import (
	"context"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/modelcall"
	"github.com/dragoman-go/dragoman/provider"
)

func isChain(m dragoman.Model) bool {
	_, ok := m.(*provider.Chain)
	return ok
}

// perLink returns a context in which each model of a chain gets its own version of req,
// with the native history that the store has for its origin and with an output format that
// it accepts. For other models it returns ctx.
func (r *run) perLink(ctx context.Context, req *dragoman.Request) context.Context {
	if !isChain(r.active.Model) {
		return ctx
	}
	l := linkRequests{run: r, base: req, native: map[dragoman.Origin][]dragoman.Message{}}
	return modelcall.WithLinkRequest(ctx, req, l.build)
}

// linkRequests builds the requests of one turn for the models of a chain. It compacts and
// expands each history once, even if a model is called again.
type linkRequests struct {
	run  *run
	base *dragoman.Request
	// whole is the conversation as the agent sees it, and native the history that replaces
	// it, by origin. Both are ready to send.
	whole  []dragoman.Message
	native map[dragoman.Origin][]dragoman.Message
}

// build implements [contexts.LinkRequest].
func (l *linkRequests) build(ctx context.Context, m dragoman.Model) (*dragoman.Request, error) {
	if isChain(m) {
		return l.base, nil // a nested chain builds the requests for its own models
	}
	req := *l.base
	var err error
	if req.Messages, err = l.messages(ctx, m); err != nil {
		return nil, err
	}
	if l.run.output != nil {
		l.run.output.addFormat(ctx, m, &req)
	}
	return &req, nil
}

func (l *linkRequests) messages(ctx context.Context, m dragoman.Model) ([]dragoman.Message, error) {
	r := l.run
	if w, known := m.(wire); known && r.hasNative() {
		if target, _, err := w.Target(ctx, l.base.Model); err == nil { // otherwise the model call fails with err
			origin := target.Origin()
			if ready := l.native[origin]; ready != nil {
				return ready, nil
			}
			sent, err := r.replacement(ctx, origin, w)
			if err != nil {
				return nil, err
			}
			if !sameList(sent, r.messages) {
				l.native[origin], err = r.readyToSend(ctx, sent)
				return l.native[origin], err
			}
		}
	}
	if l.whole == nil {
		var err error
		if l.whole, err = r.readyToSend(ctx, r.visible()); err != nil {
			return nil, err
		}
	}
	return l.whole, nil
}

// sameList reports whether two slices share their elements.
func sameList(a, b []dragoman.Message) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
