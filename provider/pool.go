package provider

import (
	"net/http"
	"sync"
)

// idlePerHost and idleConns bound the idle connections of clients without a transport of
// their own. The two per host of net/http would make most concurrent requests open a connection.
const (
	idlePerHost = 64
	idleConns   = 256
)

// connections are shared by all clients of a process that have no transport of their own, as
// those of [http.DefaultTransport] are: a program may open a model for every request.
var connections pool

// pool derives a transport from [http.DefaultTransport].
type pool struct {
	mu            sync.Mutex
	base, derived *http.Transport
}

// transport returns a copy of [http.DefaultTransport] that keeps more idle connections, or
// that itself if the program has replaced it or set how many it keeps.
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
