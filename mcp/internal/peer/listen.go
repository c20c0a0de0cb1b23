package peer

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/mcp/internal/rpc"
)

// listener is the subscription of a modern connection.
type listener struct {
	// again ends the current subscription, to open one for other resources.
	again context.CancelCauseFunc
	// running says that the loop runs. agreed are the notifications that the server agreed
	// to; nil until it has.
	running bool
	agreed  map[string]json.RawMessage
}

// longestBackoff limits the pause before a subscription is opened again.
const longestBackoff = time.Minute

var errListenAgain = errors.New("the subscription is opened again for other resources")

// changeFields are the lists that a server can announce changes of, as the subscription names
// them.
var changeFields = []struct{ field, capability string }{
	{"toolsListChanged", "tools"}, {"promptsListChanged", "prompts"}, {"resourcesListChanged", "resources"},
}

// listensTo reports whether the server announces changes of a list on the open subscription.
// The caller may hold p.mu.
func (l *link) listensTo(which List) bool {
	name := map[List]string{Tools: "toolsListChanged", Prompts: "promptsListChanged", Resources: "resourcesListChanged", ResourceTemplates: "resourcesListChanged"}[which]
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.listen.agreed[name]) == "true"
}

// acknowledged stores what the server agreed to.
func (l *link) acknowledged(params json.RawMessage) {
	agreed := fields(fields(params)["notifications"])
	if agreed == nil {
		agreed = map[string]json.RawMessage{}
	}
	l.mu.Lock()
	l.listen.agreed = agreed
	l.mu.Unlock()
	p := l.peer
	var missed []List
	p.mu.Lock()
	for _, which := range allLists {
		if s := p.lists[which]; s.read {
			s.pushed = l.listensTo(which)
			if s.pushed && !time.Now().Before(s.until) { // it may have changed before
				missed = append(missed, which)
			}
		}
	}
	p.mu.Unlock()
	for _, which := range missed {
		p.changed(l, which)
	}
}

// listenParams returns the parameters of a subscription, or nil if there is nothing to
// subscribe to.
func (p *Peer) listenParams(l *link) json.RawMessage {
	p.mu.Lock()
	uris := p.watchedURIs()
	p.mu.Unlock()
	set := []byte("{}")
	for _, c := range changeFields {
		if l.declares(c.capability, "listChanged") {
			set = jsonwire.With(set, c.field, []byte("true"))
		}
	}
	if len(uris) > 0 {
		list, err := json.Marshal(uris)
		if err == nil {
			set = jsonwire.With(set, "resourceSubscriptions", list)
		}
	}
	if string(set) == "{}" {
		return nil
	}
	return jsonwire.With([]byte("{}"), "notifications", set)
}

// watchedURIs returns the subscribed resources, sorted. The caller holds p.mu.
func (p *Peer) watchedURIs() []string { return slices.Sorted(maps.Keys(p.watched)) }

// startListening starts the loop that keeps a subscription open.
func (p *Peer) startListening(l *link) {
	l.mu.Lock()
	running := l.listen.running
	l.listen.running = true
	again := l.listen.again
	l.mu.Unlock()
	switch {
	case running && again != nil:
		again(errListenAgain)
	case !running:
		p.start(func() { p.listenLoop(l) })
	}
}

// listenLoop keeps a subscription open until the connection ends. After a drop it reads the
// lists again, because it may have missed changes.
func (p *Peer) listenLoop(l *link) {
	defer func() {
		l.mu.Lock()
		l.listen.running, l.listen.again, l.listen.agreed = false, nil, nil
		l.mu.Unlock()
	}()
	pause := p.cfg.Backoff
	for dropped := false; l.ctx.Err() == nil && !l.over(); {
		params := p.listenParams(l)
		if params == nil || p.isUnsupported(rpc.MethodListen) {
			return
		}
		ctx, cancel := context.WithCancelCause(l.ctx)
		l.mu.Lock()
		l.listen.again, l.listen.agreed = cancel, nil
		l.mu.Unlock()
		if dropped {
			p.missed(l)
		}
		began := time.Now()
		_, err := l.conn.Call(ctx, l.request(rpc.MethodListen, params, "", nil))
		again := errors.Is(context.Cause(ctx), errListenAgain)
		cancel(nil)
		l.mu.Lock()
		agreed := l.listen.agreed
		l.listen.agreed = nil
		l.mu.Unlock()
		p.notPushed()
		var coded *rpc.Error
		switch {
		case again:
			continue
		case errors.As(err, &coded) && coded.Code == rpc.CodeMethodNotFound:
			p.mu.Lock()
			p.unsupported[rpc.MethodListen] = true
			p.mu.Unlock()
			return
		case (err == nil || errors.Is(err, rpc.ErrEnded)) && len(agreed) == 0: // nothing to listen to (pitfall K19)
			return
		}
		if time.Since(began) > longestBackoff/2 {
			pause = p.cfg.Backoff
		}
		if !sleep(l.ctx, pause/2+rand.N(pause)) { //nolint:gosec // jitter
			return
		}
		pause = min(2*pause, longestBackoff)
		dropped = true
	}
}

// notPushed notes that no server announces changes at the moment.
func (p *Peer) notPushed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.lists {
		s.pushed = false
	}
}

// missed reads the lists again that may have changed while no subscription was open.
func (p *Peer) missed(l *link) {
	p.mu.Lock()
	var read []List
	for _, which := range allLists {
		if p.lists[which].read && which != Skills {
			read = append(read, which)
		}
	}
	p.mu.Unlock()
	for _, which := range read {
		p.changed(l, which)
	}
}

func (p *Peer) isUnsupported(method string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.unsupported[method]
}

// Subscribe asks for notifications about changes of a resource, which [Config.Updated]
// receives. Each call needs one call of [Peer.Unsubscribe].
func (p *Peer) Subscribe(ctx context.Context, uri string) error {
	l, err := p.connected(ctx)
	if err != nil {
		return err
	}
	if !l.declares("resources", "subscribe") {
		return p.errorf("resources/subscribe: %w", ErrUnsupported)
	}
	p.mu.Lock()
	p.watched[uri]++
	first := p.watched[uri] == 1
	p.mu.Unlock()
	if !first {
		return nil
	}
	if l.modern() {
		p.startListening(l)
		return nil
	}
	if _, err = p.Call(ctx, "resources/subscribe", jsonwire.With([]byte("{}"), "uri", jsonwire.Quote(uri)), Options{Safe: true}); err != nil {
		p.unwatch(uri)
	}
	return err
}

// Unsubscribe ends a subscription.
func (p *Peer) Unsubscribe(ctx context.Context, uri string) error {
	if !p.unwatch(uri) {
		return nil
	}
	l, err := p.connected(ctx)
	if err != nil {
		return err
	}
	if l.modern() {
		p.startListening(l)
		return nil
	}
	_, err = p.Call(ctx, "resources/unsubscribe", jsonwire.With([]byte("{}"), "uri", jsonwire.Quote(uri)), Options{Safe: true})
	return err
}

// unwatch takes back a subscription, and reports whether it was the last one of the resource.
func (p *Peer) unwatch(uri string) (last bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch p.watched[uri] {
	case 0:
		return false
	case 1:
		delete(p.watched, uri)
		return true
	default:
		p.watched[uri]--
		return false
	}
}
