package gateway

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/serving"
)

// guarded serves a listener. Without keys it is for this machine, and a page of anybody's
// that is open in a browser there is not: it could send requests that somebody pays for,
// and read the answers where its name leads to this machine.
func (g *Gateway) guarded() http.Handler {
	refuse := g.noted(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		serving.WriteError(w, serving.CodecOf(r), noteOf(r).failed(&dragoman.APIError{
			Class: dragoman.ErrorPermission, Status: http.StatusForbidden,
			Message: "without keys the gateway is for this machine: ask for it by its address or as localhost, not from a page of another site; give it keys to serve others",
		}))
	}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g.keys.Open() && foreign(r) {
			refuse.ServeHTTP(w, r)
			return
		}
		g.ServeHTTP(w, r)
	})
}

// foreign reports whether a request was made by a page of another site, or for a name that
// anybody on the internet may have given to this machine. Programs with pages of their
// own (app://, vscode-webview://) are none.
func foreign(r *http.Request) bool {
	if !near(r.Host) {
		return true
	}
	origin := r.Header.Get("Origin")
	u, err := url.Parse(origin)
	switch {
	case origin == "":
		return false
	case err != nil, origin == "null":
		return true
	default:
		return (u.Scheme == "http" || u.Scheme == "https") && u.Host != r.Host && !loopback(withPort(u.Host))
	}
}

// near reports whether a host is an address, or a name that nobody can register.
func near(host string) bool {
	name, _, err := net.SplitHostPort(withPort(host))
	if err != nil {
		return false
	}
	if _, err := netip.ParseAddr(name); err == nil || !strings.Contains(strings.TrimSuffix(name, "."), ".") {
		return true
	}
	for _, top := range []string{".localhost", ".local", ".internal"} {
		if strings.HasSuffix(strings.ToLower(strings.TrimSuffix(name, ".")), top) {
			return true
		}
	}
	return false
}

// withPort is a host with a port.
func withPort(host string) string {
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), "80")
}
