package provider

import (
	"net/http"
	"sync"
)

// idlePerHost and idleConns limit the idle connections of clients without a transport of
// their own. With the limit of net/http, two per host, most concurrent requests would open a
// new connection.
const (
	idlePerHost = 64
	idleConns   = 256
)

// connections is shared by all clients of a process that have no transport of their own,
// because a program may open a model for every request.
var connections pool

// pool derives a transport from [http.DefaultTransport].
type pool struct {
	mu            sync.Mutex
	base, derived *http.Transport
}

// transport returns a copy of [http.DefaultTransport] that keeps more idle connections. If
// the program replaced the default transport with another type, or set its
// MaxIdleConnsPerHost, it returns the default transport itself.
func (p *pool) transport() http.RoundTripper {
	base, ok := http.DefaultTransport.(*http.Transport)
	if !ok || base.MaxIdleConnsPerHost != 0 {
		return http.DefaultTransport
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.base != base {
		p.base, p.derived = base, base.Clone()
		p.derived.MaxIdleConnsPerHost, p.derived.MaxIdleConns = idlePerHost, idleConns
	}
	return p.derived
}
