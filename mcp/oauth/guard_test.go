package oauth

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
)

// publicServer returns the guard for a server on the internet.
func publicServer(t *testing.T, n Network) *guard {
	t.Helper()
	u, _ := url.Parse("https://mcp.example/mcp")
	g, err := newGuard(u, n)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func addresses(s ...string) []netip.Addr {
	var all []netip.Addr
	for _, a := range s {
		all = append(all, netip.MustParseAddr(a))
	}
	return all
}

// dns answers each lookup of a name with the next list of addresses, the last one forever.
type dns map[string][][]netip.Addr

func (d dns) resolve(_ context.Context, host string) ([]netip.Addr, error) {
	list := d[host]
	if len(list) == 0 {
		return nil, errors.New("no such host")
	}
	if len(list) > 1 {
		d[host] = list[1:]
	}
	return list[0], nil
}

func TestGuardBlocksAddresses(t *testing.T) {
	names := dns{
		"loop.example":      {addresses("127.0.0.1")},
		"private.example":   {addresses("10.1.2.3")},
		"mixed.example":     {addresses("93.184.216.34", "192.168.0.1")},
		"metadata.example":  {addresses("169.254.169.254")},
		"mapped.example":    {addresses("::ffff:127.0.0.1")},
		"nat64.example":     {addresses("64:ff9b::7f00:1")},
		"cgnat.example":     {addresses("100.64.1.1")},
		"localhost.example": {addresses("::1")},
		"2130706433":        {addresses("127.0.0.1")},
	}
	g := publicServer(t, Network{Resolve: names.resolve})
	for _, address := range []string{
		"https://127.0.0.1/", "https://127.1.2.3/", "https://[::1]/", "https://localhost/", "https://x.localhost/",
		"https://10.0.0.1/", "https://172.16.0.1/", "https://192.168.1.1/", "https://100.100.1.1/", "https://[fd00::1]/",
		"https://169.254.169.254/latest/meta-data/", "https://[fe80::1]/", "https://[fe80::1%25eth0]/", "https://0.0.0.0/", "https://[::]/",
		"https://224.0.0.1/", "https://[ff02::1]/", "https://255.255.255.255/", "https://240.0.0.1/", "https://198.18.0.1/",
		"https://[::ffff:127.0.0.1]/", "https://[::ffff:10.0.0.1]/", "https://[::ffff:169.254.169.254]/", "https://[::ffff:100.64.1.1]/", "https://[::ffff:198.18.0.1]/", "https://[::127.0.0.1]/",
		"https://[64:ff9b::a9fe:a9fe]/", "https://[2002:7f00:1::]/", "https://[fec0::1]/",
		"https://2130706433/", "https://0x7f000001/", "https://0x7f.1/", "https://127.1/", "https://0177.0.0.1/", "https://127.0.0.1./",
		"https://loop.example/", "https://private.example/", "https://mixed.example/", "https://metadata.example/",
		"https://mapped.example/", "https://nat64.example/", "https://cgnat.example/", "https://localhost.example/",
		"http://93.184.216.34/", "ftp://93.184.216.34/", "file:///etc/passwd", "javascript:alert(1)", "https://",
		"https://user:password@93.184.216.34/", "https://93.184.216.34:0/", "https://93.184.216.34:99999/", "//93.184.216.34/",
	} {
		if _, err := g.get(t.Context(), address); !errors.Is(err, ErrBlocked) && (err == nil || !strings.Contains(err.Error(), "look up")) {
			t.Errorf("%s: %v", address, err)
		} else if strings.Contains(err.Error(), "password") {
			t.Errorf("the error has the password: %v", err)
		}
	}
}

func TestGuardAllowsWhatTheUserNamed(t *testing.T) {
	names := dns{"login.corp.example": {addresses("10.1.2.3")}, "metadata.corp.example": {addresses("169.254.169.254")}}
	g := publicServer(t, Network{Resolve: names.resolve, AllowOrigins: []string{"https://login.corp.example", "https://metadata.corp.example", "http://10.0.0.9:8080"}})
	for _, tc := range []struct {
		host, port string
		ok         bool
	}{
		{"login.corp.example", "443", true},
		{"LOGIN.corp.example", "443", false}, // resolve is exact in this test; the origin is not the point
		{"login.corp.example", "8443", false},
		{"metadata.corp.example", "443", false}, // never link-local
		{"10.0.0.9", "8080", true},
		{"10.0.0.9", "80", false},
	} {
		if tc.host == "LOGIN.corp.example" {
			names[tc.host], tc.ok = names["login.corp.example"], true
		}
		if _, err := g.lookup(t.Context(), tc.host, tc.port); (err == nil) != tc.ok {
			t.Errorf("%s:%s: %v", tc.host, tc.port, err)
		}
	}
	if _, err := g.check("http://10.0.0.9:8080/x"); err != nil {
		t.Error(err)
	}
	if _, err := g.check("http://login.corp.example/x"); !errors.Is(err, ErrBlocked) {
		t.Errorf("http although https is allowed: %v", err)
	}
}

func TestOwnOriginMayBePrivateButNotBecomeSo(t *testing.T) {
	names := dns{"mcp.example": {addresses("10.0.0.5")}}
	g := publicServer(t, Network{Resolve: names.resolve})
	if _, err := g.lookup(t.Context(), "mcp.example", "443"); err != nil {
		t.Errorf("a private server that the user configured: %v", err)
	}
	names = dns{"mcp.example": {addresses("93.184.216.34"), addresses("127.0.0.1")}}
	g = publicServer(t, Network{Resolve: names.resolve})
	if _, err := g.lookup(t.Context(), "mcp.example", "443"); err != nil {
		t.Fatal(err)
	}
	if _, err := g.lookup(t.Context(), "mcp.example", "443"); !errors.Is(err, ErrBlocked) {
		t.Errorf("rebinding of the server's own name: %v", err)
	}
}

func TestConnectionGoesToTheCheckedAddress(t *testing.T) {
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(r.Host))
	}))
	t.Cleanup(srv.Close)
	_, port, _ := net.SplitHostPort(srv.Listener.Addr().String())
	roots := x509.NewCertPool()
	roots.AddCert(srv.Certificate())
	// The name resolves once to the server, and to nothing afterwards: a second lookup fails.
	names := dns{"example.com": {addresses("127.0.0.1"), nil}}
	g := publicServer(t, Network{
		Resolve: names.resolve, TLS: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		AllowOrigins: []string{"https://example.com:" + port},
	})
	ans, err := g.get(t.Context(), "https://example.com:"+port+"/")
	if err != nil || string(ans.body) != "example.com:"+port {
		t.Errorf("%q, %v", ans.body, err)
	}
}

// hit counts the connections to a server that must not be contacted.
func hit(t *testing.T) (*httptest.Server, *atomic.Int32) {
	n := new(atomic.Int32)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n.Add(1)
		_, _ = w.Write([]byte(`{"issuer":"internal-secret"}`))
	}))
	t.Cleanup(srv.Close)
	return srv, n
}

func TestDiscoveryCannotReachOtherAddresses(t *testing.T) {
	inner, n := hit(t)
	host := strings.TrimPrefix(inner.URL, "http://")
	_, port, _ := net.SplitHostPort(host)
	for _, tc := range []struct{ name, issuer string }{
		{"metadata service", "http://169.254.169.254"},
		{"private https", "https://10.0.0.1"},
		{"loopback", inner.URL},
		{"name of a loopback address", "https://rebind.example:" + port},
		{"mapped", "https://[::ffff:127.0.0.1]:" + port},
		{"decimal", "https://2130706433:" + port},
		{"userinfo", "https://mcp.example@127.0.0.1:" + port},
	} {
		t.Run(tc.name, func(t *testing.T) {
			mcp := http.NewServeMux()
			mcp.HandleFunc("/mcp", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
			srv := httptest.NewServer(mcp)
			t.Cleanup(srv.Close)
			_, own, _ := net.SplitHostPort(srv.Listener.Addr().String())
			server := "http://mcp.example:" + own + "/mcp"
			mcp.HandleFunc("/.well-known/oauth-protected-resource/mcp", func(w http.ResponseWriter, _ *http.Request) {
				writeJSON(w, 200, map[string]any{"resource": server, "authorization_servers": []string{tc.issuer}})
			})
			names := dns{"mcp.example": {addresses("127.0.0.1")}, "rebind.example": {addresses("127.0.0.1")}, "2130706433": {addresses("127.0.0.1")}}
			a, err := New(Options{Server: server, Browser: browser, Network: Network{Resolve: names.resolve}})
			if err != nil {
				t.Fatal(err)
			}
			err = a.Login(t.Context())
			if !errors.Is(err, ErrBlocked) || strings.Contains(err.Error(), "internal-secret") {
				t.Errorf("error %v", err)
			}
		})
	}
	if n.Load() != 0 {
		t.Errorf("%d requests reached another server", n.Load())
	}
}

func TestRedirects(t *testing.T) {
	inner, n := hit(t)
	innerPort := inner.URL[strings.LastIndexByte(inner.URL, ':'):]
	var srv *httptest.Server
	mux := http.NewServeMux()
	to := func(target string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, target, http.StatusTemporaryRedirect)
		}
	}
	mux.HandleFunc("/metadata-service", to("http://169.254.169.254/latest/meta-data/"))
	mux.HandleFunc("/inner", to(inner.URL))
	mux.HandleFunc("/inner-name", to("http://loop.example"+innerPort))
	mux.HandleFunc("/downgrade", to("http://93.184.216.34/"))
	mux.HandleFunc("/1", to("/2"))
	mux.HandleFunc("/2", to("/3"))
	mux.HandleFunc("/3", to("/end"))
	mux.HandleFunc("/0", to("/1"))
	mux.HandleFunc("/end", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) })
	srv = httptest.NewTLSServer(mux)
	t.Cleanup(srv.Close)
	_, port, _ := net.SplitHostPort(srv.Listener.Addr().String())
	roots := x509.NewCertPool()
	roots.AddCert(srv.Certificate())
	origin := "https://example.com:" + port
	names := dns{"example.com": {addresses("127.0.0.1")}, "loop.example": {addresses("127.0.0.1")}}
	g := publicServer(t, Network{Resolve: names.resolve, AllowOrigins: []string{origin}, TLS: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}})
	if ans, err := g.get(t.Context(), origin+"/1"); err != nil || string(ans.body) != "ok" {
		t.Errorf("three redirects: %v", err)
	}
	for _, path := range []string{"/0", "/metadata-service", "/inner", "/inner-name", "/downgrade"} {
		if _, err := g.get(t.Context(), origin+path); !errors.Is(err, ErrBlocked) {
			t.Errorf("%s: %v", path, err)
		}
	}
	plain := httptest.NewServer(to("http://93.184.216.34/"))
	t.Cleanup(plain.Close)
	u, _ := url.Parse(plain.URL)
	if local, err := newGuard(u, Network{}); err != nil {
		t.Error(err)
	} else if _, err := local.get(t.Context(), plain.URL); !errors.Is(err, ErrBlocked) {
		t.Errorf("from http to http: %v", err)
	}
	// A redirected POST would hand credentials to another server.
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, origin+"/3", strings.NewReader("client_secret=x"))
	if _, err := g.do(req); !errors.Is(err, ErrBlocked) {
		t.Errorf("POST: %v", err)
	}
	if n.Load() != 0 {
		t.Errorf("%d requests reached another server", n.Load())
	}
}

func TestResponsesAreBoundedAndCookiesIgnored(t *testing.T) {
	cookies := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		cookies += len(r.Cookies())
		http.SetCookie(w, &http.Cookie{Name: "a", Value: "b"})
		if r.URL.Path == "/large" {
			_, _ = w.Write(make([]byte, maxResponse+1))
		}
	}))
	t.Cleanup(srv.Close)
	u, _ := url.Parse(srv.URL)
	g, err := newGuard(u, Network{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.get(t.Context(), srv.URL+"/large"); err == nil || !strings.Contains(err.Error(), "1 MiB") {
		t.Errorf("error %v", err)
	}
	for range 2 {
		if _, err := g.get(t.Context(), srv.URL+"/"); err != nil {
			t.Error(err)
		}
	}
	if cookies != 0 {
		t.Error("cookies were sent")
	}
}

func TestProxyOfTheEnvironmentIsNotUsed(t *testing.T) {
	g := publicServer(t, Network{})
	if g.client.Transport.(*http.Transport).Proxy != nil {
		t.Error("a proxy would make the check of addresses useless")
	}
}

func TestConfiguredIssuerMayBePrivate(t *testing.T) {
	names := dns{"login.corp.example": {addresses("10.1.2.3")}, "idp.corp.example": {addresses("10.1.2.4")}}
	grant := Enterprise{
		TokenEndpoint: "https://idp.corp.example/token", Client: Client{ID: "x"},
		Identity: func(context.Context) (string, string, error) { return "", "", nil },
	}
	a, err := New(Options{
		Server: "https://mcp.example/mcp", Issuer: "https://login.corp.example/realm", Grant: grant,
		Network: Network{Resolve: names.resolve},
	})
	if err != nil {
		t.Fatal(err)
	}
	for host := range names {
		if _, err := a.guard.lookup(t.Context(), host, "443"); err != nil {
			t.Error(err)
		}
	}
	a, err = New(Options{Server: "https://mcp.example/mcp", Network: Network{Resolve: names.resolve}})
	if err != nil {
		t.Fatal(err)
	}
	for host := range names {
		if _, err := a.guard.lookup(t.Context(), host, "443"); !errors.Is(err, ErrBlocked) {
			t.Errorf("%s was not configured: %v", host, err)
		}
	}
}

func TestLoopbackServerDoesNotOpenLoopbackToNames(t *testing.T) {
	u, _ := url.Parse("http://127.0.0.1:3000/mcp")
	names := dns{"rebind.example": {addresses("127.0.0.1")}, "localhost": {addresses("127.0.0.1")}, "moved.localhost": {addresses("10.0.0.1")}}
	g, err := newGuard(u, Network{Resolve: names.resolve})
	if err != nil {
		t.Fatal(err)
	}
	for host, ok := range map[string]bool{"rebind.example": false, "localhost": true, "moved.localhost": false, "127.0.0.1": true, "10.0.0.1": false} {
		if _, err := g.lookup(t.Context(), host, "443"); (err == nil) != ok {
			t.Errorf("%s: %v", host, err)
		}
	}
}
