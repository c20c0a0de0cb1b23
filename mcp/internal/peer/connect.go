package peer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/mcp/internal/rpc"
)

// legacy is the era of servers that need a handshake.
const legacy = "legacy"

// modernRevisions and legacyRevisions are those of this client, the newest first.
var (
	modernRevisions = []string{rpc.Revision20260728}
	legacyRevisions = []string{rpc.Revision20251125, rpc.Revision20250618, rpc.Revision20250326, rpc.Revision20241105}
)

// unauthorized reports whether an error is about authorization, which does not depend on the
// revision of a server (pitfall K2).
func unauthorized(err error) bool {
	var e *rpc.HTTPError
	return errors.As(err, &e) && (e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden)
}

// connected returns the current connection, or opens one. All callers share an attempt (quirk
// H5, pitfall K8).
func (p *Peer) connected(ctx context.Context) (*link, error) {
	for {
		l, pause, err := p.share(ctx)
		if pause == 0 {
			return l, err
		}
		if !sleep(ctx, pause) {
			return nil, context.Cause(ctx)
		}
	}
}

// longestWait limits how long a call waits before a server is started again. If it takes
// longer, the call fails.
const longestWait = 5 * time.Second

// share returns the current connection, or waits for the attempt that all callers share. With
// a pause, the caller tries again after it.
func (p *Peer) share(ctx context.Context) (_ *link, pause time.Duration, _ error) {
	p.mu.Lock()
	switch {
	case p.closed:
		p.mu.Unlock()
		return nil, 0, p.errorf("%w", ErrClosed)
	case p.link != nil && !p.link.over():
		l := p.link
		p.mu.Unlock()
		return l, 0, nil
	}
	a := p.attempt
	if a == nil {
		if wait := time.Until(p.notBefore); wait > 0 {
			err, deaths := p.lastErr, p.deaths
			p.mu.Unlock()
			if wait <= longestWait {
				return nil, wait, nil
			}
			return nil, 0, p.errorf("it ended %d times in a row and is not started again for %v: %w", deaths, wait.Round(time.Millisecond), err)
		}
		a = &attempt{done: make(chan struct{})}
		p.attempt = a
		p.work.Add(1)
		go func() {
			defer p.work.Done()
			p.connect(a)
		}()
	}
	p.mu.Unlock()
	select {
	case <-a.done:
		return a.link, 0, a.err
	case <-ctx.Done():
		return nil, 0, context.Cause(ctx)
	}
}

// connect runs a connection attempt. It does not end with the caller that began it, because
// others may wait for it.
func (p *Peer) connect(a *attempt) {
	ctx, cancel := context.WithTimeoutCause(p.ctx, p.cfg.ConnectTimeout, fmt.Errorf("it was not ready within %v: %w", p.cfg.ConnectTimeout, ErrTimeout))
	defer cancel()
	p.mu.Lock()
	era, old := p.era, p.link
	p.link = nil
	p.mu.Unlock()
	if old != nil {
		old.drain()
	}
	l, err := p.dial(ctx, era)
	if err == nil {
		err = p.afterConnect(ctx, l)
		if err != nil {
			_ = l.end()
		}
	}
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		err = p.errorf("%w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.attempt = nil
	if err == nil && p.closed {
		err = p.errorf("%w", ErrClosed)
		p.work.Add(1)
		go func() { defer p.work.Done(); _ = l.end() }()
	}
	if err != nil {
		a.err = err
		p.died(err)
	} else {
		a.link, p.link = l, l
		l.began = time.Now()
		if p.era = legacy; rpc.Modern(l.info.Revision) {
			p.era = l.info.Revision
		}
		p.work.Add(1)
		go func() { defer p.work.Done(); p.watch(l) }()
	}
	close(a.done)
}

// soon is the age below which the end of a connection counts as a crash in a row.
const soon = 10 * time.Second

// died records a connection that ended or did not begin. One may be opened again at once, more
// only after a pause. The caller holds p.mu.
func (p *Peer) died(err error) {
	p.lastErr = err
	p.deaths++
	if p.deaths > 1 {
		p.notBefore = time.Now().Add(min(time.Minute, p.cfg.Backoff<<min(p.deaths-2, 6)))
	}
}

// watch waits for the end of a connection.
func (p *Peer) watch(l *link) {
	select {
	case <-l.conn.Done():
	case <-p.ctx.Done():
		return
	}
	p.dropLink(l, l.conn.Err())
}

// dropLink forgets a connection that has ended. The next call opens another one.
func (p *Peer) dropLink(l *link, err error) {
	if err == nil {
		err = errors.New("the connection has ended")
	}
	p.mu.Lock()
	current := p.link == l
	if current {
		p.link = nil
		if time.Since(l.began) < soon {
			p.died(err)
		} else {
			p.deaths, p.lastErr, p.notBefore = 0, err, time.Time{}
		}
		for _, s := range p.lists {
			s.stale = true
		}
	}
	p.mu.Unlock()
	if !current {
		return
	}
	l.drain()
	if p.cfg.Lost != nil && p.ctx.Err() == nil {
		p.cfg.Lost(err)
	}
}

// dial finds the era of the server, unless it is known, and opens a connection (section 3.1 of
// the protocol notes, pitfalls K1 to K3).
func (p *Peer) dial(ctx context.Context, era string) (*link, error) {
	switch fixed := p.cfg.Revision; {
	case fixed != "" && rpc.Modern(fixed):
		return p.discover(ctx, fixed, true)
	case fixed != "" && !slices.Contains(legacyRevisions, fixed):
		return nil, fmt.Errorf("unknown revision %q: known revisions are %s", fixed, strings.Join(slices.Concat(modernRevisions, legacyRevisions), ", "))
	case fixed != "":
		return p.initialize(ctx, fixed)
	case era == legacy:
		return p.initialize(ctx, legacyRevisions[0])
	}
	l, err := p.discover(ctx, modernRevisions[0], false)
	var old *legacyServer
	if !errors.As(err, &old) {
		return l, err
	}
	l, err = p.initialize(ctx, legacyRevisions[0])
	if err != nil && old.cause != nil && ctx.Err() == nil && !unauthorized(err) {
		err = fmt.Errorf("%w (before that, server/discover failed: %w)", err, old.cause)
	}
	if err == nil {
		l.info.Stalled = old.stalled
	}
	return l, err
}

// legacyServer is the error of a probe that shows that the server does not speak a modern
// revision.
type legacyServer struct {
	cause   error
	stalled bool
}

func (e *legacyServer) Error() string {
	return fmt.Sprintf("the server speaks no modern revision: %v", e.cause)
}

// newLink opens a connection of the transport.
func (p *Peer) newLink(ctx context.Context) (*link, error) {
	l := &link{peer: p, calls: map[string]*call{}, serving: make(chan struct{}, maxServing), ready: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancelCause(p.ctx)
	conn, err := p.cfg.Dialer.Dial(ctx, l)
	if err != nil {
		l.cancel(err)
		return nil, err
	}
	l.conn = conn
	close(l.ready)
	return l, nil
}

// probe limits a request of the search for the era.
func (p *Peer) probe(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, p.cfg.ProbeTimeout, errProbe)
}

var errProbe = errors.New("no answer within the limit of the probe")

// discover opens a connection with server/discover and the first page of tools/list, which
// count as one probe: some servers answer only the first (pitfall K3). Unless the revision is
// fixed, the error is a *legacyServer if the server is to be tried with a handshake, over a
// fresh connection.
func (p *Peer) discover(ctx context.Context, revision string, fixed bool) (_ *link, err error) {
	l, err := p.newLink(ctx)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = l.end()
		}
	}()
	for tries := 0; ; tries++ {
		limit, cancel := p.probe(ctx)
		l.info.Revision = revision
		raw, err := l.conn.Call(limit, &rpc.Request{Method: "server/discover", Params: l.params(nil, "", nil)})
		stalled := limit.Err() != nil
		cancel()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		var coded *rpc.Error
		switch {
		case err == nil:
			next, ok := l.discovered(raw)
			if !ok && fixed {
				return nil, fmt.Errorf("the revision %s is required, but the answer to server/discover does not offer it", revision)
			}
			if !ok {
				return nil, &legacyServer{cause: errors.New("it supports only revisions with a handshake")}
			}
			l.info.Revision = next
			return l, p.firstList(ctx, l, fixed)
		case unauthorized(err):
			return nil, err
		case errors.As(err, &coded) && coded.Code == rpc.CodeUnsupportedRevision && tries == 0:
			supported := stringsIn(coded.Data, "supported")
			next := common(modernRevisions, supported)
			switch {
			case fixed || next == "" && common(legacyRevisions, supported) == "":
				return nil, fmt.Errorf("it supports the revisions %s, this client %s: %w", list(supported), list(slices.Concat(modernRevisions, legacyRevisions)), err)
			case next == "":
				return nil, &legacyServer{cause: err}
			}
			revision = next
		case errors.As(err, &coded) && (coded.Code == rpc.CodeHeaderMismatch || coded.Code == rpc.CodeMissingCapability || coded.Code == rpc.CodeUnsupportedRevision):
			return nil, fmt.Errorf("server/discover: %w", err)
		case fixed:
			return nil, fmt.Errorf("server/discover: %w", err)
		default:
			if stalled {
				err = errProbe
			}
			return nil, &legacyServer{cause: err}
		}
	}
}

// firstList reads the first page of the tools as part of the probe.
func (p *Peer) firstList(ctx context.Context, l *link, fixed bool) error {
	l.conn.SetRevision(l.info.Revision)
	if !l.has("tools") {
		return nil
	}
	limit, cancel := p.probe(ctx)
	defer cancel()
	raw, err := l.conn.Call(limit, &rpc.Request{Method: string(Tools), Params: l.params(nil, "", nil)})
	switch {
	case err == nil:
		l.firstPage = raw
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case limit.Err() != nil && !fixed:
		return &legacyServer{cause: fmt.Errorf("tools/list: %w", errProbe), stalled: true}
	case unauthorized(err):
		return err
	}
	return nil // another error: the list reports it when it is read
}

// discovered reads the result of server/discover and returns the newest common modern
// revision.
func (l *link) discovered(raw json.RawMessage) (revision string, ok bool) {
	supported := stringsIn(raw, "supportedVersions")
	l.readInfo(raw)
	l.info.Server = fields(fields(raw)["_meta"])[rpc.MetaServerInfo]
	revision = common(modernRevisions, supported)
	return revision, revision != ""
}

// readInfo reads the fields that the answers of both eras share.
func (l *link) readInfo(raw json.RawMessage) {
	m := fields(raw)
	l.info.Capabilities, l.info.Instructions = m["capabilities"], jsonwire.Unquote(m["instructions"])
	l.capabilities = fields(m["capabilities"])
}

// initialize opens a connection with the handshake of older revisions.
func (p *Peer) initialize(ctx context.Context, revision string) (_ *link, err error) {
	l, err := p.newLink(ctx)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = l.end()
		}
	}()
	params := jsonwire.With([]byte("{}"), "protocolVersion", jsonwire.Quote(revision))
	params = jsonwire.With(params, "capabilities", p.clientCapabilities(false, nil))
	params = jsonwire.With(params, "clientInfo", p.cfg.ClientInfo)
	raw, err := l.conn.Call(ctx, &rpc.Request{Method: rpc.MethodInitialize, Params: params})
	if err != nil {
		return nil, fmt.Errorf("initialize: %w", err)
	}
	m := fields(raw)
	got := jsonwire.Unquote(m["protocolVersion"])
	switch {
	case got == "":
		return nil, errors.New("the result of initialize has no protocolVersion")
	case !slices.Contains(legacyRevisions, got):
		return nil, fmt.Errorf("the server answered initialize with the revision %.40q; this client supports %s", got, list(legacyRevisions))
	case p.cfg.Revision != "" && got != p.cfg.Revision:
		return nil, fmt.Errorf("the revision %s is required, but the server answered initialize with %s", p.cfg.Revision, got)
	}
	l.readInfo(raw)
	l.info.Revision, l.info.Server = got, m["serverInfo"]
	l.conn.SetRevision(got)
	if err := l.conn.Notify(ctx, rpc.MethodInitialized, nil); err != nil {
		return nil, fmt.Errorf("initialized: %w", err)
	}
	return l, nil
}

// afterConnect restores what belongs to a connection: the log level, the lists and the
// subscriptions.
func (p *Peer) afterConnect(ctx context.Context, l *link) error {
	if p.cfg.LogLevel != "" && !l.modern() && l.has("logging") {
		params := jsonwire.With([]byte("{}"), "level", jsonwire.Quote(p.cfg.LogLevel))
		_, _ = l.conn.Call(ctx, &rpc.Request{Method: "logging/setLevel", Params: params})
	}
	p.mu.Lock()
	again := p.lists[Tools].read
	uris := p.watchedURIs()
	p.mu.Unlock()
	if again { // a new session may have other tools: compare before any call is repeated
		_, _ = p.refresh(ctx, l, Tools)
	} else if l.firstPage != nil {
		p.mu.Lock()
		p.lists[Tools].stale = true
		p.mu.Unlock()
	}
	if !l.modern() {
		for _, uri := range uris {
			_, _ = l.conn.Call(ctx, &rpc.Request{Method: "resources/subscribe", Params: jsonwire.With([]byte("{}"), "uri", jsonwire.Quote(uri))})
		}
	} else {
		p.startListening(l)
	}
	if p.cfg.Connected != nil {
		return p.cfg.Connected(ctx, l.info)
	}
	return nil
}

// common returns the first element of ours that theirs contains.
func common(ours, theirs []string) string {
	for _, v := range ours {
		if slices.Contains(theirs, v) {
			return v
		}
	}
	return ""
}

// list returns revisions for an error.
func list(revisions []string) string {
	if len(revisions) == 0 {
		return "none"
	}
	out := slices.Clone(revisions[:min(len(revisions), 8)])
	for i := range out {
		out[i] = fmt.Sprintf("%.20q", out[i])
	}
	return strings.Join(out, ", ")
}
