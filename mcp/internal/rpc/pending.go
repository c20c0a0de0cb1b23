package rpc

import (
	"context"
	"encoding/json"
	"strconv"
	"sync"
)

// Pending are the requests that wait for their responses. It gives out their ids: 1, 2, 3 and
// so on, none of them twice, so that a late response never reaches another call (pitfall K39).
// The zero value is ready to use.
type Pending struct {
	mu    sync.Mutex
	last  int64
	calls map[int64]*PendingCall
	err   error
}

// PendingCall is one of them.
type PendingCall struct {
	ID      ID
	Request *Request

	n     int64
	reply chan reply // has room for the only reply
}

type reply struct {
	result json.RawMessage
	err    error
}

// Delivery says where a response went.
type Delivery int

// Deliveries.
const (
	Delivered Delivery = iota
	// Late is a response to a request that was canceled or already answered.
	Late
	// Unknown is a response to a request that was never sent.
	Unknown
)

// Add gives a request its id. It fails after [Pending.Fail].
func (p *Pending) Add(r *Request) (*PendingCall, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return nil, p.err
	}
	if p.calls == nil {
		p.calls = map[int64]*PendingCall{}
	}
	p.last++
	c := &PendingCall{ID: ID(strconv.FormatInt(p.last, 10)), Request: r, n: p.last, reply: make(chan reply, 1)}
	p.calls[c.n] = c
	return c, nil
}

// Drop stops waiting for a response. It reports whether the call was still waiting.
func (p *Pending) Drop(c *PendingCall) bool { return p.take(c.n) != nil }

func (p *Pending) take(n int64) *PendingCall {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.calls[n]
	delete(p.calls, n)
	return c
}

// Deliver gives a response to the call that waits for it. An error without an id, which answers
// a request that the server could not read, goes to the only request that was ever sent.
func (p *Pending) Deliver(m *Message) Delivery {
	r := reply{result: m.Result, err: m.Invalid}
	if m.Error != nil {
		r.err = m.Error
	}
	id := m.ID
	if id == "" && m.Error != nil {
		id = "1"
		p.mu.Lock()
		first := p.last == 1
		p.mu.Unlock()
		if !first {
			return Unknown
		}
	}
	return p.deliver(id, r)
}

// DeliverError makes the call with this id fail.
func (p *Pending) DeliverError(id ID, err error) Delivery { return p.deliver(id, reply{err: err}) }

func (p *Pending) deliver(id ID, r reply) Delivery {
	n, err := strconv.ParseInt(string(id), 10, 64)
	if err != nil {
		return Unknown
	}
	if c := p.take(n); c != nil {
		c.reply <- r
		return Delivered
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if n > 0 && n <= p.last {
		return Late
	}
	return Unknown
}

// Find returns the request with this id, if it is waiting.
func (p *Pending) Find(id ID) *Request {
	n, err := strconv.ParseInt(string(id), 10, 64)
	if err != nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.calls[n]; c != nil {
		return c.Request
	}
	return nil
}

// Only returns the id of the waiting call, if there is exactly one.
func (p *Pending) Only() (ID, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.calls) != 1 {
		return "", false
	}
	for _, c := range p.calls {
		return c.ID, true
	}
	return "", false
}

// Fail makes all waiting calls fail, and all later ones.
func (p *Pending) Fail(err error) {
	p.mu.Lock()
	calls := p.calls
	p.calls = nil
	if p.err == nil {
		p.err = err
	}
	p.mu.Unlock()
	for _, c := range calls {
		c.reply <- reply{err: err}
	}
}

// Answered reports whether the response arrived and was not yet taken.
func (c *PendingCall) Answered() bool { return len(c.reply) > 0 }

// Poll takes the response, if it arrived.
func (c *PendingCall) Poll() (result json.RawMessage, answered bool, err error) {
	select {
	case r := <-c.reply:
		return r.result, true, r.err
	default:
		return nil, false, nil
	}
}

// Wait waits for the response. If ctx ends first, it returns the cause of ctx, and the call
// still waits: see [Pending.Drop].
func (c *PendingCall) Wait(ctx context.Context) (result json.RawMessage, answered bool, err error) {
	if result, answered, err = c.Poll(); answered {
		return result, true, err
	}
	select {
	case r := <-c.reply:
		return r.result, true, r.err
	case <-ctx.Done():
		return nil, false, context.Cause(ctx)
	}
}
