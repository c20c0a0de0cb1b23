package oauth

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Limits of requests for documents and tokens.
const (
	requestTimeout  = 10 * time.Second
	dialTimeout     = 3 * time.Second
	maxResponse     = 1 << 20
	maxHeader       = 64 << 10
	maxRedirects    = 3
	maxDialAttempts = 4
)

// ErrBlocked means that an address is not allowed, see [Network].
var ErrBlocked = errors.New("address is blocked")

// Network limits the addresses that this package contacts. The servers choose most of them: a
// challenge names a metadata document, the document names an authorization server, and so on.
//
// An address must use https, and its host must resolve to public addresses only. The
// connection goes to the address that was checked, so a host that later resolves to another
// address gains nothing. Redirects are checked in the same way and limited to three; token
// requests follow none. A request takes at most 10 seconds, a response at most 1 MiB. Cookies
// and proxies of the environment are not used.
//
// Origins that the user named are less restricted: the origin of the server itself, those in
// AllowOrigins, and those of configured issuers and token endpoints. They may have private addresses, and may use plain http if they were named
// with http. If the server is given by a host name, the kind of its addresses, public or
// private, is fixed by the first lookup. Link-local addresses, where clouds serve
// credentials, are always blocked.
type Network struct {
	// AllowOrigins lists origins that the user trusts, such as an authorization server of a
	// company on a private address: "https://login.corp.example".
	AllowOrigins []string
	// AllowLoopback allows localhost and loopback addresses, also with http, for development.
	// It is implied if the server itself is on such an address.
	AllowLoopback bool
	// TLS configures connections, such as additional root certificates.
	TLS *tls.Config
	// Resolve looks up a host name; nil means the resolver of the system.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
}

// addressKind says how far an address is from the public internet.
type addressKind int

const (
	publicAddress addressKind = iota
	privateAddress
	loopbackAddress
	reservedAddress
)

func (k addressKind) String() string {
	return [...]string{"public", "private", "loopback", "link-local or reserved"}[k]
}

// blocks lists ranges that package netip does not classify. Ranges that embed an IPv4 address
// are blocked as a whole, because a translator could make them private.
func blocks() []struct {
	prefix netip.Prefix
	kind   addressKind
} {
	type block = struct {
		prefix netip.Prefix
		kind   addressKind
	}
	return []block{
		{netip.MustParsePrefix("100.64.0.0/10"), privateAddress}, // carrier-grade NAT
		{netip.MustParsePrefix("0.0.0.0/8"), reservedAddress},
		{netip.MustParsePrefix("192.0.0.0/24"), reservedAddress},
		{netip.MustParsePrefix("192.0.2.0/24"), reservedAddress},
		{netip.MustParsePrefix("198.18.0.0/15"), reservedAddress},
		{netip.MustParsePrefix("198.51.100.0/24"), reservedAddress},
		{netip.MustParsePrefix("203.0.113.0/24"), reservedAddress},
		{netip.MustParsePrefix("240.0.0.0/4"), reservedAddress},
		{netip.MustParsePrefix("::/96"), reservedAddress},
		{netip.MustParsePrefix("64:ff9b::/96"), reservedAddress},
		{netip.MustParsePrefix("64:ff9b:1::/48"), reservedAddress},
		{netip.MustParsePrefix("100::/64"), reservedAddress},
		{netip.MustParsePrefix("2001::/23"), reservedAddress},
		{netip.MustParsePrefix("2001:db8::/32"), reservedAddress},
		{netip.MustParsePrefix("2002::/16"), reservedAddress},
		{netip.MustParsePrefix("fec0::/10"), reservedAddress},
	}
}

func kindOf(a netip.Addr) addressKind {
	a = a.Unmap()
	switch {
	case !a.IsValid() || a.Zone() != "":
		return reservedAddress
	case a.IsLoopback():
		return loopbackAddress
	case a.IsPrivate():
		return privateAddress
	}
	for _, b := range blocks() {
		if b.prefix.Contains(a) {
			return b.kind
		}
	}
	if !a.IsGlobalUnicast() {
		return reservedAddress // link-local, multicast, broadcast, unspecified
	}
	return publicAddress
}

// guard is the only way from this package to the network.
type guard struct {
	resolve  func(ctx context.Context, host string) ([]netip.Addr, error)
	loopback bool
	server   string            // host:port of the server
	schemes  map[string]string // origins that the user named: host:port to scheme
	client   *http.Client

	mu     sync.Mutex
	pinned addressKind // of the server's host name
	seen   bool        // whether pinned is set
}

// newGuard returns the guard for a server. The named addresses come from the user; empty ones
// are ignored.
func newGuard(server *url.URL, n Network, named ...string) (*guard, error) {
	g := &guard{resolve: n.Resolve, server: hostPort(server), schemes: map[string]string{}}
	if g.resolve == nil {
		g.resolve = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	g.loopback = n.AllowLoopback || loopbackHost(server.Hostname())
	for _, o := range n.AllowOrigins {
		u, err := url.Parse(o)
		if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || strings.Trim(u.Path, "/") != "" {
			return nil, fmt.Errorf("oauth: allowed origin %q: use the form https://host or https://host:port", o)
		}
		g.schemes[hostPort(u)] = u.Scheme
	}
	for _, address := range named {
		if u, err := url.Parse(address); err == nil && u.Host != "" {
			g.schemes[hostPort(u)] = u.Scheme
		}
	}
	g.schemes[g.server] = server.Scheme
	transport := &http.Transport{
		DialContext:            g.dial,
		ForceAttemptHTTP2:      true,
		TLSHandshakeTimeout:    requestTimeout,
		ResponseHeaderTimeout:  requestTimeout,
		IdleConnTimeout:        30 * time.Second,
		MaxResponseHeaderBytes: maxHeader,
		MaxIdleConns:           8,
	}
	if n.TLS != nil {
		transport.TLSClientConfig = n.TLS.Clone()
	}
	g.client = &http.Client{Transport: transport, Timeout: requestTimeout, CheckRedirect: g.checkRedirect}
	return g, nil
}

// hostPort returns the host in lower case, with the port.
func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = "443"
		if u.Scheme == "http" {
			port = "80"
		}
	}
	return net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// originOf returns scheme, host and port in a form that can be compared.
func originOf(u *url.URL) string { return strings.ToLower(u.Scheme) + "://" + hostPort(u) }

func loopbackHost(host string) bool {
	if host = strings.ToLower(strings.TrimSuffix(host, ".")); host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && kindOf(a) == loopbackAddress
}

// check refuses an address by its text; dial refuses it by what its host resolves to.
func (g *guard) check(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %q is not a URL", ErrBlocked, raw)
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, fmt.Errorf("%w: %q must begin with https://", ErrBlocked, raw)
	case u.Hostname() == "":
		return nil, fmt.Errorf("%w: %q has no host", ErrBlocked, raw)
	case u.User != nil:
		return nil, fmt.Errorf("%w: a URL of %s contains a user name", ErrBlocked, u.Host)
	case u.Scheme == "http" && g.schemes[hostPort(u)] != "http" && !(g.loopback && loopbackHost(u.Hostname())):
		return nil, fmt.Errorf("%w: %q does not use https", ErrBlocked, raw)
	case numericHost(u.Hostname()):
		return nil, fmt.Errorf("%w: the host of %q is a number, not a name or an IP address", ErrBlocked, raw)
	}
	if p := u.Port(); p != "" {
		if n, err := strconv.ParseUint(p, 10, 16); err != nil || n == 0 {
			return nil, fmt.Errorf("%w: %q has a bad port", ErrBlocked, raw)
		}
	}
	return u, nil
}

// numericHost reports whether a host is an IPv4 address in a form that some resolvers accept,
// such as 2130706433, 0x7f.1 or 127.1.
func numericHost(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return false
	}
	host = strings.TrimSuffix(host, ".")
	last := strings.ToLower(host[strings.LastIndexByte(host, '.')+1:])
	if last == "" {
		return true
	}
	if hex, ok := strings.CutPrefix(last, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return strings.Trim(last, "0123456789") == ""
}

func (g *guard) checkRedirect(req *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return fmt.Errorf("%w: more than %d redirects", ErrBlocked, maxRedirects)
	}
	if first := via[0]; first.Method != http.MethodGet {
		return fmt.Errorf("%w: %s redirects a request that may contain credentials", ErrBlocked, first.URL.Host)
	}
	if via[len(via)-1].URL.Scheme == "https" && req.URL.Scheme != "https" {
		return fmt.Errorf("%w: redirect from https to http", ErrBlocked)
	}
	_, err := g.check(req.URL.String())
	return err
}

// lookup resolves a host and refuses it if one of its addresses is not allowed.
func (g *guard) lookup(ctx context.Context, host, port string) ([]netip.Addr, error) {
	addrs := []netip.Addr{}
	literal := false
	if a, err := netip.ParseAddr(host); err == nil {
		addrs, literal = append(addrs, a), true
	} else if addrs, err = g.resolve(ctx, host); err != nil {
		return nil, fmt.Errorf("look up %s: %w", host, err)
	}
	if len(addrs) == 0 {
		return nil, fmt.Errorf("look up %s: no addresses", host)
	}
	name := net.JoinHostPort(strings.ToLower(host), port)
	widest := publicAddress
	for _, a := range addrs {
		widest = max(widest, kindOf(a))
	}
	_, named := g.schemes[name]
	switch {
	case widest == publicAddress:
	case widest == reservedAddress:
		return nil, fmt.Errorf("%w: %s has a %s address", ErrBlocked, host, widest)
	case widest == loopbackAddress && g.loopback && loopbackHost(host):
	case !named:
		return nil, fmt.Errorf("%w: %s has a %s address; if you trust it, add its origin to the allowed origins", ErrBlocked, host, widest)
	}
	if name == g.server && !literal {
		g.mu.Lock()
		defer g.mu.Unlock()
		if !g.seen {
			g.pinned, g.seen = widest, true
		}
		if g.pinned == publicAddress && widest != publicAddress {
			return nil, fmt.Errorf("%w: %s had a public address and now has a %s one", ErrBlocked, host, widest)
		}
	}
	return addrs, nil
}

func (g *guard) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	addrs, err := g.lookup(ctx, host, port)
	if err != nil {
		return nil, err
	}
	var failed error
	for i, a := range addrs {
		if i == maxDialAttempts {
			break
		}
		d := net.Dialer{Timeout: dialTimeout}
		conn, err := d.DialContext(ctx, network, net.JoinHostPort(a.Unmap().String(), port))
		if err == nil {
			return conn, nil
		}
		failed = err
	}
	return nil, failed
}

// answer is a response, read completely.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// get requests a document.
func (g *guard) get(ctx context.Context, address string) (answer, error) {
	if _, err := g.check(address); err != nil {
		return answer{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Accept", "application/json")
	return g.do(req)
}

// do sends a request. Errors never contain the body of a response: it could come from a
// server that the user cannot reach otherwise.
func (g *guard) do(req *http.Request) (answer, error) {
	if _, err := g.check(req.URL.String()); err != nil {
		return answer{}, err
	}
	resp, err := g.client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxResponse+1))
	if err != nil {
		return answer{}, fmt.Errorf("read the response of %s: %w", req.URL.Host, err)
	}
	if len(body) > maxResponse {
		return answer{}, fmt.Errorf("the response of %s is larger than 1 MiB", req.URL.Host)
	}
	return answer{status: resp.StatusCode, header: resp.Header, body: body}, nil
}
