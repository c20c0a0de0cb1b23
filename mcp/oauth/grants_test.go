package oauth

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

func keyPEM(t *testing.T, kind string, der []byte, err error) []byte {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func TestClientCredentials(t *testing.T) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	ecKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	rsaPEM := keyPEM(t, "RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(rsaKey), nil)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(rsaKey)
	rsa8 := keyPEM(t, "PRIVATE KEY", pkcs8, err)
	sec1, err := x509.MarshalECPrivateKey(ecKey)
	ecPEM := keyPEM(t, "EC PRIVATE KEY", sec1, err)
	for _, tc := range []struct {
		method string
		key    []byte
		public crypto.PublicKey
	}{
		{"client_secret_basic", nil, nil},
		{"client_secret_post", nil, nil},
		{"private_key_jwt", rsaPEM, &rsaKey.PublicKey},
		{"private_key_jwt", rsa8, &rsaKey.PublicKey},
		{"private_key_jwt", ecPEM, &ecKey.PublicKey},
	} {
		w := newWorld(t)
		w.o.Browser = func(context.Context, string) error { t.Error("a browser was opened"); return nil }
		w.o.Grant, w.o.Scopes = ClientCredentials{}, []string{"read"}
		w.o.Client = Client{ID: "machine", KeyID: "k1"}
		w.as.set("token_endpoint_auth_methods_supported", []string{tc.method})
		w.as.set("code_challenge_methods_supported", nil) // irrelevant without codes
		w.as.set("authorization_endpoint", nil)
		if tc.key == nil {
			w.o.Client.Secret = "sec:ret/+ ü"
			w.as.clients["machine"] = &fakeClient{id: "machine", secret: w.o.Client.Secret, method: tc.method}
		} else {
			if w.o.Client.Key, err = ParseKey(tc.key); err != nil {
				t.Fatal(err)
			}
			w.as.keys["machine"] = tc.public
		}
		a := w.authorizer()
		w.mustCall(a)
		first, _ := a.Token(t.Context())
		for range 20 { // a token of a grant may be renewed as often as it expires
			w.as.clock.Move(2 * 3600e9)
			w.mustCall(a)
		}
		if second, _ := a.Token(t.Context()); second == first || w.as.lookup(second) == nil {
			t.Errorf("%s: the token was not renewed", tc.method)
		}
		if g := w.as.grants[0]; g.resource != w.rs.resource || strings.Join(g.scopes, " ") != "read" {
			t.Errorf("%s: resource %q, scopes %q", tc.method, g.resource, g.scopes)
		}
	}
}

func TestParseKeyRefusesOtherKeys(t *testing.T) {
	small, err := rsa.GenerateKey(rand.Reader, 1024) //nolint:gosec // too small on purpose
	if err != nil {
		t.Skip("this Go version makes no small keys")
	}
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(p384)
	for name, data := range map[string][]byte{
		"no PEM":      []byte("secret"),
		"certificate": keyPEM(t, "CERTIFICATE", []byte{1}, nil),
		"damaged":     keyPEM(t, "PRIVATE KEY", []byte{1}, nil),
		"small RSA":   keyPEM(t, "RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(small), nil),
		"P-384":       keyPEM(t, "EC PRIVATE KEY", der, err),
	} {
		if key, err := ParseKey(data); err == nil {
			t.Errorf("%s: %T", name, key)
		}
	}
}

func TestTokenExchangeKeepsTheTokenOfTheUser(t *testing.T) {
	w := newWorld(t)
	w.o.Issuer = w.as.issuer
	w.o.Client = Client{ID: "gateway", Secret: "gateway-secret", Issuer: w.as.issuer}
	w.as.clients["gateway"] = &fakeClient{id: "gateway", secret: "gateway-secret", method: "client_secret_basic"}
	w.as.set("token_endpoint_auth_methods_supported", []string{"client_secret_basic"})
	var form url.Values
	w.as.tokenFail = func(f url.Values) (int, string) { form = f; return 0, "" }
	w.o.Grant = TokenExchange{Audience: "tools", Subject: func(context.Context) (string, string, error) {
		return "downstream-token", "", nil
	}}
	w.mustCall(w.authorizer())
	for k, want := range map[string]string{
		"subject_token": "downstream-token", "subject_token_type": typeAccessToken, "audience": "tools", "resource": w.rs.resource,
		"requested_token_type": typeAccessToken,
	} {
		if form.Get(k) != want {
			t.Errorf("%s is %q, want %q", k, form.Get(k), want)
		}
	}
	for _, h := range w.rs.seen {
		if strings.Contains(h, "downstream-token") {
			t.Error("the token of the user was passed through to the MCP server")
		}
	}
	// A server that names another authorization server gets nothing.
	evil := newAS(t)
	w.rs.mu.Lock()
	w.rs.as = evil
	w.rs.mu.Unlock()
	w.o.Store = MemoryStore()
	if _, err := call(t, w.authorizer(), w.rs.url); !errors.Is(err, ErrIssuerChanged) {
		t.Errorf("error %v", err)
	}
	if evil.count(&evil.tokenRequests) > 0 {
		t.Error("the other authorization server got the token of the user")
	}
}

func TestEnterprise(t *testing.T) {
	w := newWorld(t)
	var exchange url.Values
	issued := "urn:ietf:params:oauth:token-type:id-jag"
	idp := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		exchange = r.PostForm
		writeJSON(rw, 200, map[string]string{"access_token": "jag-1", "token_type": "N_A", "issued_token_type": issued})
	}))
	t.Cleanup(idp.Close)
	w.o.Client = Client{ID: "app", Secret: "app-secret", Issuer: w.as.issuer}
	w.as.clients["app"] = &fakeClient{id: "app", secret: "app-secret", method: "client_secret_basic"}
	w.as.set("token_endpoint_auth_methods_supported", []string{"client_secret_basic"})
	var form url.Values
	w.as.tokenFail = func(f url.Values) (int, string) { form = f; return 0, "" }
	w.o.Grant = Enterprise{
		TokenEndpoint: idp.URL + "/token", Client: Client{ID: "at-idp"},
		Identity: func(context.Context) (string, string, error) { return "id-token", "", nil },
	}
	w.mustCall(w.authorizer())
	for k, want := range map[string]string{
		"audience": w.as.issuer, "resource": w.rs.resource, "subject_token": "id-token", "client_id": "at-idp",
		"requested_token_type": issued, "subject_token_type": "urn:ietf:params:oauth:token-type:id_token",
	} {
		if exchange.Get(k) != want {
			t.Errorf("exchange: %s is %q, want %q", k, exchange.Get(k), want)
		}
	}
	if form.Get("assertion") != "jag-1" || form.Get("grant_type") != grantJWTBearer {
		t.Errorf("form %v", form)
	}
	issued = "urn:ietf:params:oauth:token-type:access_token"
	w.o.Store = MemoryStore()
	if _, err := call(t, w.authorizer(), w.rs.url); err == nil || !strings.Contains(err.Error(), "id-jag") {
		t.Errorf("another kind of token was sent on: %v", err)
	}
}

func TestRefusedAssertionIsNotSentAgain(t *testing.T) {
	w := newWorld(t)
	w.as.tokenFail = func(url.Values) (int, string) { return 400, `{"error":"invalid_grant"}` }
	jwt := "jwt-1"
	w.o.Grant = Workload{Assertion: func(_ context.Context, audience string) (string, error) {
		if audience != w.as.issuer {
			t.Errorf("audience %q", audience)
		}
		return jwt, nil
	}}
	a := w.authorizer()
	for range 3 {
		if _, err := call(t, a, w.rs.url); !errors.Is(err, ErrRefused) {
			t.Errorf("error %v", err)
		}
	}
	if n := w.as.count(&w.as.tokenRequests); n != 1 {
		t.Errorf("%d token requests, want 1", n)
	}
	w.as.mu.Lock()
	w.as.tokenFail = nil
	w.as.mu.Unlock()
	jwt = "jwt-2" // the platform issued another one
	w.mustCall(a)
}

func TestDPoP(t *testing.T) {
	for _, nonces := range []bool{false, true} {
		w := newWorld(t)
		w.as.set("dpop_signing_alg_values_supported", []string{"RS256", "ES256"})
		w.rs.needProof = true
		if nonces {
			w.as.dpopNonce, w.rs.nonce = "as-nonce", "rs-nonce"
		}
		w.rs.challenge = func(_ int, code string, _ []string) string {
			return `DPoP error="` + code + `", resource_metadata="` + w.rs.srv.URL + `/.well-known/oauth-protected-resource/mcp"`
		}
		a := w.authorizer()
		w.mustCall(a)
		w.mustCall(a) // a fresh proof: the server refuses one that it has seen
		if _, err := a.Token(t.Context()); err == nil {
			t.Error("Token returned a token that is useless without a proof")
		}
		w.as.clock.Move(2 * 3600e9)
		w.mustCall(w.authorizer()) // the stored key signs, also the refresh
		if l, r := w.as.count(&w.as.logins), w.as.count(&w.as.refreshes); l != 1 || r != 1 {
			t.Errorf("%d logins and %d refreshes", l, r)
		}
		w.rs.mu.Lock()
		for _, h := range w.rs.seen {
			if !strings.HasPrefix(h, "DPoP ") {
				t.Errorf("Authorization: %s", h)
			}
		}
		w.rs.mu.Unlock()
		if nonces { // a server may change its nonce at any time
			w.rs.mu.Lock()
			w.rs.nonce = "next"
			w.rs.mu.Unlock()
			w.mustCall(w.authorizer())
		}
	}
}

func TestRequiredDPoP(t *testing.T) {
	w := newWorld(t)
	w.o.RequireDPoP = true
	if _, err := call(t, w.authorizer(), w.rs.url); err == nil || !strings.Contains(err.Error(), "DPoP") {
		t.Errorf("error %v", err)
	}
	if w.as.count(&w.as.logins) != 0 {
		t.Error("logged in")
	}
}
