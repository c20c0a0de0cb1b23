package peer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/mcp/internal/rpc"
)

// List is a list of the server: the method that reads it.
type List string

// The lists.
const (
	Tools             List = "tools/list"
	Resources         List = "resources/list"
	ResourceTemplates List = "resources/templates/list"
	Prompts           List = "prompts/list"
	// Skills are those of the skills extension. Servers do not announce changes of them.
	Skills List = "skills/list"
)

var allLists = []List{Tools, Resources, ResourceTemplates, Prompts, Skills}

// field returns the name of the list in results.
func (l List) field() string {
	switch l {
	case Tools:
		return "tools"
	case Resources:
		return "resources"
	case ResourceTemplates:
		return "resourceTemplates"
	case Skills:
		return "skills"
	default:
		return "prompts"
	}
}

// Limits on lists (quirk H3, pitfall K12).
const (
	maxPages  = 100
	maxItems  = 5000
	maxCursor = 64 << 10
	maxItem   = 1 << 20
	maxBytes  = 32 << 20
	listTime  = 30 * time.Second
	maxTTL    = time.Hour
)

// Listing is a list of the server: copies that the caller may change (quirk H17).
type Listing struct {
	// Items are raw objects, in the order of the server.
	Items []json.RawMessage
	// Dropped describes items that were left out.
	Dropped []Dropped
	// Truncated says why the list is not complete; empty if it is.
	Truncated string
	// Failed is the error of the last attempt to read the list again; Items are then those of
	// the attempt before.
	Failed error
}

// Dropped is an item that was left out of a list.
type Dropped struct{ Name, Reason string }

// listing is the stored list.
type listing struct {
	Listing
	read, stale bool
	// until is the time to which the server promised the list, pushed says that it announces
	// changes.
	until  time.Time
	pushed bool
	// busy is locked while the list is read.
	busy chan struct{}
	// timer waits for further notifications of a change; first is the time of the first one.
	timer *time.Timer
	first time.Time
}

// copied returns a deep copy.
func (l Listing) copied() Listing {
	items := make([]json.RawMessage, len(l.Items))
	for i := range l.Items {
		items[i] = slices.Clone(l.Items[i])
	}
	l.Items, l.Dropped = items, slices.Clone(l.Dropped)
	return l
}

// fresh reports whether a stored list need not be read again. The caller holds p.mu.
func (s *listing) fresh() bool {
	return s.read && !s.stale && (s.pushed || time.Now().Before(s.until))
}

// List returns a list of the server. It is read again if it is no longer valid (pitfall K34);
// if that fails, the earlier list is returned.
func (p *Peer) List(ctx context.Context, which List) (Listing, error) {
	p.mu.Lock()
	s, alive := p.lists[which], p.link != nil && !p.link.over()
	if s.fresh() && alive {
		out := s.Listing.copied()
		p.mu.Unlock()
		return out, nil
	}
	p.mu.Unlock()
	l, err := p.connected(ctx)
	if err == nil {
		err = p.supports(l, string(which))
	}
	if err == nil {
		p.mu.Lock()
		if s.fresh() { // the connection attempt has read it
			out := s.Listing.copied()
			p.mu.Unlock()
			return out, nil
		}
		p.mu.Unlock()
		_, err = p.refresh(ctx, l, which)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil && !s.read {
		return Listing{}, err
	}
	out := s.Listing.copied()
	out.Failed = err
	return out, nil
}

// refresh reads a list and stores it. Refreshes of a list are sequential.
func (p *Peer) refresh(ctx context.Context, l *link, which List) (changed bool, err error) {
	p.mu.Lock()
	s := p.lists[which]
	if s.busy == nil {
		s.busy = make(chan struct{}, 1)
	}
	busy := s.busy
	p.mu.Unlock()
	select {
	case busy <- struct{}{}:
		defer func() { <-busy }()
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
	p.mu.Lock()
	s.stale = false // a notification that arrives from now on makes it stale again
	p.mu.Unlock()
	out, ttl, err := p.pages(ctx, l, which)
	if err != nil {
		p.mu.Lock()
		s.stale = true
		p.mu.Unlock()
		return false, err
	}
	if which == Tools {
		p.setHeaders(l, &out)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	changed = !s.read || !slices.EqualFunc(s.Items, out.Items, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) })
	s.Listing, s.read = out, true
	s.until, s.pushed = time.Now().Add(ttl), false
	if !l.modern() {
		s.pushed = which != Skills // until the server says otherwise, or a new session
	} else {
		s.pushed = l.listensTo(which)
	}
	return changed, nil
}

// pages reads all pages of a list.
func (p *Peer) pages(ctx context.Context, l *link, which List) (out Listing, ttl time.Duration, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, listTime, fmt.Errorf("%s took longer than %v: %w", which, listTime, ErrTimeout))
	defer cancel()
	seen := map[string]bool{}
	var params json.RawMessage
	ttl, size := maxTTL, 0
	for page := 0; ; page++ {
		raw, err := p.page(ctx, l, which, params)
		if err != nil {
			return out, 0, err
		}
		m := fields(raw)
		items := m[which.field()]
		if len(items) == 0 || items[0] != '[' {
			return out, 0, p.errorf("%s: %w: it has no list %q", which, ErrResult, which.field())
		}
		r := jsonwire.NewReader(items)
		for range r.Array() {
			item := r.Raw()
			switch {
			case out.Truncated != "":
			case !isObject(item):
				out.Dropped = append(out.Dropped, Dropped{Reason: "it is not an object"})
			case len(item) > maxItem:
				out.Dropped = append(out.Dropped, Dropped{nameOf(item), fmt.Sprintf("it is larger than %d bytes", maxItem)})
			case len(out.Items) == maxItems:
				out.Truncated = fmt.Sprintf("the server has more than %d items", maxItems)
			case size+len(item) > maxBytes:
				out.Truncated = fmt.Sprintf("the list is larger than %d bytes", maxBytes)
			default:
				out.Items = append(out.Items, slices.Clone(json.RawMessage(item)))
				size += len(item)
			}
		}
		out.Dropped = out.Dropped[:min(len(out.Dropped), maxRequests)]
		if r.Err() != nil {
			return out, 0, p.errorf("%s: %w", which, ErrResult)
		}
		ttl = min(ttl, ttlOf(m["ttlMs"]))
		cursor := m["nextCursor"]
		switch {
		case out.Truncated != "" || len(cursor) == 0 || string(cursor) == "null":
			return out, ttl, nil
		case len(cursor) > maxCursor:
			out.Truncated = fmt.Sprintf("the server sent a cursor larger than %d bytes", maxCursor)
			return out, ttl, nil
		case seen[string(cursor)]:
			if string(cursor) != `""` { // some servers end their lists with it
				out.Truncated = "the server repeated a cursor"
			}
			return out, ttl, nil
		case page+1 == maxPages:
			out.Truncated = fmt.Sprintf("the server has more than %d pages", maxPages)
			return out, ttl, nil
		}
		seen[string(cursor)] = true
		params = jsonwire.With([]byte("{}"), "cursor", cursor)
	}
}

// page reads one page. The probe may have read the first one.
func (p *Peer) page(ctx context.Context, l *link, which List, params json.RawMessage) (json.RawMessage, error) {
	if which == Tools && params == nil && l.firstPage != nil {
		raw := l.firstPage
		l.firstPage = nil
		return raw, nil
	}
	var raw json.RawMessage
	var err error
	var coded *rpc.Error
	for try := 0; try < 2; try++ {
		delivered := true
		r := l.request(string(which), params, "", nil)
		r.NotDelivered = func() { delivered = false }
		if raw, err = l.conn.Call(ctx, r); err == nil || errors.As(err, &coded) || delivered || l.over() {
			break
		}
	}
	if coded != nil {
		return nil, p.callError(string(which), err)
	}
	if err != nil {
		return nil, p.errorf("%s: %w", which, err)
	}
	return raw, nil
}

// nameOf returns the name of an item.
func nameOf(item json.RawMessage) string {
	m := fields(item)
	name := jsonwire.Unquote(m["name"])
	return name[:min(len(name), 200)]
}

// ttlOf reads the time for which a list is valid. Values that make no sense count as zero.
func ttlOf(raw json.RawMessage) time.Duration {
	ms, err := strconv.ParseFloat(strings.TrimSpace(string(raw)), 64)
	if err != nil || !(ms > 0) {
		return 0
	}
	return min(maxTTL, time.Duration(min(ms, 1e9))*time.Millisecond)
}

// changed notes that a list has changed. It is read again after a pause, because such
// notifications come in bursts (quirk H4).
func (p *Peer) changed(l *link, which List) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.lists[which]
	s.stale = true
	if p.closed {
		return
	}
	if s.timer != nil {
		if time.Since(s.first) < 10*p.cfg.Debounce {
			s.timer.Reset(p.cfg.Debounce)
		}
		return
	}
	s.first = time.Now()
	s.timer = time.AfterFunc(p.cfg.Debounce, func() {
		p.start(func() { p.reread(l, which) })
	})
}

// reread reads a changed list again and reports it. If that fails, the earlier list stays.
func (p *Peer) reread(l *link, which List) {
	p.mu.Lock()
	s := p.lists[which]
	s.timer = nil
	read := s.read
	p.mu.Unlock()
	changed := true
	if read {
		ctx, cancel := context.WithTimeoutCause(l.ctx, p.cfg.ConnectTimeout, ErrTimeout)
		defer cancel()
		var err error
		if changed, err = p.refresh(ctx, l, which); err != nil {
			return
		}
	}
	if changed && p.cfg.ListChanged != nil && p.ctx.Err() == nil {
		p.cfg.ListChanged(which)
	}
}

// Changed reports whether the next [Peer.List] reads the list again.
func (p *Peer) Changed(which List) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.lists[which].fresh()
}

// Announced reports whether the server said that a list changed, and it was not read since.
func (p *Peer) Announced(which List) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.lists[which]
	return s.read && s.stale
}

// Stored returns the list that was read last; ok is false if none was. It never waits.
func (p *Peer) Stored(which List) (list Listing, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.lists[which]
	return s.Listing.copied(), s.read
}
