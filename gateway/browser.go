package gateway

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/serving"
)

// browserGuard is the handler of [Gateway.Serve]. Without keys it refuses requests that a web
// page of another site may have sent: those with a foreign Origin, and those whose Host is
// a name that DNS could point at this machine (DNS rebinding).
func (g *Gateway) browserGuard() http.Handler {
	refuse := g.auxiliary(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		serving.WriteError(w, serving.CodecOf(r), auxEntry(r).fail(&dragoman.APIError{
			Class: dragoman.ErrorPermission, Status: http.StatusForbidden,
			Message: "without keys the gateway accepts only requests for localhost, *.localhost and loopback addresses, and none from web pages of other sites; " +
				"add the host name under gateway.hosts of the config file or with --host, or configure keys",
		}))
	}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g.keys.Open() && isForeign(r, g.current.Load().hosts) {
			refuse.ServeHTTP(w, r)
			return
		}
		g.ServeHTTP(w, r)
	})
}

// isForeign reports whether a request names a host that is neither loopback nor one of hosts,
// or comes from a web page of another site. Programs with pages of their own (app://,
// vscode-webview://) are not foreign.
func isForeign(r *http.Request, hosts []string) bool {
	if !isLocalHost(r.Host, hosts) {
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
		return (u.Scheme == "http" || u.Scheme == "https") && u.Host != r.Host && !isLocalHost(u.Host, hosts)
	}
}

// isLocalHost reports whether a Host, with or without a port, is localhost, a name below
// .localhost, a loopback address, or one of hosts.
func isLocalHost(host string, hosts []string) bool {
	name, _, err := net.SplitHostPort(withPort(host))
	if err != nil {
		return false
	}
	if ip, err := netip.ParseAddr(name); err == nil && ip.IsLoopback() {
		return true
	}
	name = normalizeHost(name)
	return name == "localhost" || strings.HasSuffix(name, ".localhost") || slices.Contains(hosts, name)
}

// normalizeHost is a host name in the form in which names are compared.
func normalizeHost(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

// badHost returns why name cannot be an entry of Config.Hosts, or "" if it can.
func badHost(name string) string {
	switch {
	case name == "":
		return "the host name is empty"
	case strings.Contains(name, "*"):
		return "patterns are not supported, because any name that matches could be pointed at this machine; list each name"
	case strings.Contains(name, "://"), strings.Contains(name, "/"):
		return "want a host name such as host.docker.internal, without a scheme or a path"
	}
	if _, err := netip.ParseAddr(name); err == nil {
		return ""
	}
	if strings.Contains(name, ":") {
		return "want a host name without a port; it is compared without one"
	}
	if strings.ContainsFunc(name, func(c rune) bool { return c <= ' ' || c > '~' || strings.ContainsRune(`\@?#"[]`, c) }) {
		return "not a valid host name"
	}
	return ""
}

// withPort is a host with a port.
func withPort(host string) string {
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), "80")
}
