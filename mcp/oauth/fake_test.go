package oauth

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-go/dragoman/internal/testkit"
)

// fakeAS is an authorization server that refuses what strict real ones refuse.
type fakeAS struct {
	t      *testing.T
	srv    *httptest.Server
	clock  *testkit.Clock
	issuer string // default: the server's URL

	mu        sync.Mutex
	change    func(metadata map[string]any)
	resources []string // that tokens may be for
	clients   map[string]*fakeClient
	codes     map[string]*fakeGrant
	grants    []*fakeGrant
	lifetime  int // expires_in
	noRefresh bool
	dpopNonce string
	tokenFail func(form url.Values) (status int, body string) // status 0: go on
	callback  func(q url.Values)                              // changes the redirect
	keys      map[string]crypto.PublicKey                     // of clients with assertions

	logins, registrations, refreshes, tokenRequests int
	seenSecrets                                     []string
}

type fakeClient struct {
	id, secret, method string
	redirects          []string
}

type fakeGrant struct {
	client, redirect, challenge, resource string
	scopes                                []string
	used, revoked                         bool
	access                                map[string]time.Time // token to expiry
	refresh                               string
	spent                                 []string // older refresh tokens
	jkt                                   string
}

func newAS(t *testing.T) *fakeAS {
	as := &fakeAS{
		t: t, clock: testkit.NewClock(), clients: map[string]*fakeClient{}, codes: map[string]*fakeGrant{},
		keys: map[string]crypto.PublicKey{}, lifetime: 3600,
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", as.metadata)
	mux.HandleFunc("GET /authorize", as.authorize)
	mux.HandleFunc("POST /token", as.token)
	mux.HandleFunc("POST /register", as.register)
	mux.HandleFunc("POST /revoke", as.revoke)
	as.srv = httptest.NewServer(mux)
	t.Cleanup(as.srv.Close)
	as.issuer = as.srv.URL
	return as
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func oauthError(w http.ResponseWriter, status int, code string) {
	writeJSON(w, status, map[string]string{"error": code, "error_description": "secret-detail of " + code})
}

func (as *fakeAS) metadata(w http.ResponseWriter, _ *http.Request) {
	m := map[string]any{
		"issuer": as.issuer, "authorization_endpoint": as.srv.URL + "/authorize", "token_endpoint": as.srv.URL + "/token",
		"registration_endpoint": as.srv.URL + "/register", "revocation_endpoint": as.srv.URL + "/revoke",
		"code_challenge_methods_supported":               []string{"S256"},
		"token_endpoint_auth_methods_supported":          []string{"none"},
		"authorization_response_iss_parameter_supported": true,
	}
	as.mu.Lock()
	defer as.mu.Unlock()
	if as.change != nil {
		as.change(m)
	}
	writeJSON(w, 200, m)
}

// set changes the metadata document.
func (as *fakeAS) set(name string, value any) {
	as.mu.Lock()
	defer as.mu.Unlock()
	before := as.change
	as.change = func(m map[string]any) {
		if before != nil {
			before(m)
		}
		if value == nil {
			delete(m, name)
		} else {
			m[name] = value
		}
	}
}

func (as *fakeAS) register(w http.ResponseWriter, r *http.Request) {
	as.mu.Lock()
	defer as.mu.Unlock()
	var m struct {
		RedirectURIs    []string `json:"redirect_uris"`
		Method          string   `json:"token_endpoint_auth_method"`
		GrantTypes      []string `json:"grant_types"`
		ApplicationType string   `json:"application_type"`
	}
	if json.NewDecoder(r.Body).Decode(&m) != nil || len(m.RedirectURIs) == 0 || m.ApplicationType != "native" ||
		!slices.Contains(m.GrantTypes, "refresh_token") {
		oauthError(w, 400, "invalid_client_metadata")
		return
	}
	as.registrations++
	c := &fakeClient{id: fmt.Sprintf("dyn-%d", as.registrations), method: m.Method, redirects: m.RedirectURIs}
	body := map[string]any{"client_id": c.id, "redirect_uris": c.redirects, "token_endpoint_auth_method": c.method}
	if m.Method != "none" {
		c.secret = "dynsecret-" + c.id
		body["client_secret"] = c.secret
		body["client_secret_expires_at"] = 0
	}
	as.clients[c.id] = c
	writeJSON(w, 201, body)
}

func (as *fakeAS) forgetClients() {
	as.mu.Lock()
	defer as.mu.Unlock()
	clear(as.clients)
}

func (as *fakeAS) authorize(w http.ResponseWriter, r *http.Request) {
	as.mu.Lock()
	defer as.mu.Unlock()
	q := r.URL.Query()
	as.logins++
	c := as.clients[q.Get("client_id")]
	if c == nil || !slices.Contains(c.redirects, q.Get("redirect_uri")) {
		http.Error(w, "invalid redirect_uri", http.StatusBadRequest) // a page, no redirect
		return
	}
	to, _ := url.Parse(q.Get("redirect_uri"))
	back := url.Values{"state": {q.Get("state")}, "iss": {as.issuer}}
	switch {
	case q.Get("response_type") != "code", q.Get("state") == "":
		back.Set("error", "invalid_request")
	case q.Get("code_challenge_method") != "S256", len(q.Get("code_challenge")) != 43: // also plain PKCE
		back.Set("error", "invalid_request")
	case !slices.Contains(as.resources, q.Get("resource")):
		back.Set("error", "invalid_target")
	default:
		code := randomText()
		as.codes[code] = &fakeGrant{
			client: c.id, redirect: q.Get("redirect_uri"), challenge: q.Get("code_challenge"),
			resource: q.Get("resource"), scopes: strings.Fields(q.Get("scope")), access: map[string]time.Time{},
		}
		back.Set("code", code)
	}
	if as.callback != nil {
		as.callback(back)
	}
	to.RawQuery = back.Encode()
	http.Redirect(w, r, to.String(), http.StatusFound)
}

// authenticated returns the client of a token request.
func (as *fakeAS) authenticated(r *http.Request) (string, bool) {
	if id, secret, ok := r.BasicAuth(); ok {
		id, _ = url.QueryUnescape(id)
		secret, _ = url.QueryUnescape(secret)
		as.seenSecrets = append(as.seenSecrets, secret)
		c := as.clients[id]
		return id, c != nil && c.method == "client_secret_basic" && c.secret == secret
	}
	id := r.PostForm.Get("client_id")
	c := as.clients[id]
	if jwt := r.PostForm.Get("client_assertion"); jwt != "" {
		claims, err := verifyJWT(jwt, as.keys[id])
		return id, err == nil && claims["iss"] == id && claims["sub"] == id && claims["aud"] == as.issuer && claims["jti"] != ""
	}
	if secret := r.PostForm.Get("client_secret"); secret != "" {
		as.seenSecrets = append(as.seenSecrets, secret)
		return id, c != nil && c.method == "client_secret_post" && c.secret == secret
	}
	return id, c != nil && c.method == "none"
}

func (as *fakeAS) token(w http.ResponseWriter, r *http.Request) {
	as.mu.Lock()
	defer as.mu.Unlock()
	as.tokenRequests++
	_ = r.ParseForm()
	if as.tokenFail != nil {
		if status, body := as.tokenFail(r.PostForm); status != 0 {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
			return
		}
	}
	jkt := ""
	if p := r.Header.Get("DPoP"); p != "" {
		var claims map[string]any
		var err error
		if claims, jkt, err = verifyProof(p, "POST", as.srv.URL+"/token"); err != nil {
			oauthError(w, 400, "invalid_dpop_proof")
			return
		}
		if as.dpopNonce != "" && claims["nonce"] != as.dpopNonce {
			w.Header().Set("DPoP-Nonce", as.dpopNonce)
			oauthError(w, 400, "use_dpop_nonce")
			return
		}
	}
	f := r.PostForm
	client, ok := as.authenticated(r)
	if !ok && f.Get("grant_type") != grantJWTBearer {
		oauthError(w, 401, "invalid_client")
		return
	}
	switch f.Get("grant_type") {
	case "authorization_code":
		g := as.codes[f.Get("code")]
		if g != nil && g.used {
			g.revoked = true // a reused code revokes the grant
		}
		sum := sha256.Sum256([]byte(f.Get("code_verifier")))
		switch {
		case g == nil || g.used || g.client != client || g.redirect != f.Get("redirect_uri"),
			g.challenge != base64.RawURLEncoding.EncodeToString(sum[:]):
			oauthError(w, 400, "invalid_grant")
			return
		case g.resource != f.Get("resource"):
			oauthError(w, 400, "invalid_target")
			return
		}
		g.used, g.jkt = true, jkt
		as.grants = append(as.grants, g)
		as.issue(w, g)
	case "refresh_token":
		for _, g := range as.grants {
			if slices.Contains(g.spent, f.Get("refresh_token")) {
				g.revoked = true // a reused refresh token revokes the grant
				clear(g.access)
			}
			if g.refresh != f.Get("refresh_token") || g.refresh == "" || g.revoked || g.client != client || g.jkt != jkt {
				continue
			}
			if g.resource != f.Get("resource") {
				oauthError(w, 400, "invalid_target")
				return
			}
			as.refreshes++
			as.issue(w, g)
			return
		}
		oauthError(w, 400, "invalid_grant")
	case "client_credentials", "urn:ietf:params:oauth:grant-type:token-exchange", grantJWTBearer:
		if !slices.Contains(as.resources, f.Get("resource")) {
			oauthError(w, 400, "invalid_target")
			return
		}
		g := &fakeGrant{client: client, resource: f.Get("resource"), scopes: strings.Fields(f.Get("scope")), access: map[string]time.Time{}, jkt: jkt}
		as.grants = append(as.grants, g)
		as.issueOnly(w, g)
	default:
		oauthError(w, 400, "unsupported_grant_type")
	}
}

func (as *fakeAS) issue(w http.ResponseWriter, g *fakeGrant) {
	if !as.noRefresh {
		if g.refresh != "" {
			g.spent = append(g.spent, g.refresh)
		}
		g.refresh = "refresh-" + randomText()
	}
	as.issueOnly(w, g)
}

func (as *fakeAS) issueOnly(w http.ResponseWriter, g *fakeGrant) {
	token := "access-" + randomText()
	g.access[token] = as.clock.Now().Add(time.Duration(as.lifetime) * time.Second)
	kind := "Bearer"
	if g.jkt != "" {
		kind = "DPoP"
	}
	body := map[string]any{"access_token": token, "token_type": kind, "expires_in": as.lifetime}
	if g.refresh != "" {
		body["refresh_token"] = g.refresh
	}
	if len(g.scopes) > 0 {
		body["scope"] = strings.Join(g.scopes, " ")
	}
	writeJSON(w, 200, body)
}

func (as *fakeAS) revoke(w http.ResponseWriter, r *http.Request) {
	as.mu.Lock()
	defer as.mu.Unlock()
	_ = r.ParseForm()
	for _, g := range as.grants {
		if g.refresh == r.PostForm.Get("token") {
			g.revoked = true
			clear(g.access)
		}
	}
	w.WriteHeader(http.StatusOK)
}

// lookup returns the grant of an access token that is valid.
func (as *fakeAS) lookup(token string) *fakeGrant {
	as.mu.Lock()
	defer as.mu.Unlock()
	for _, g := range as.grants {
		if exp, ok := g.access[token]; ok && as.clock.Now().Before(exp) {
			return g
		}
	}
	return nil
}

// revokeAccess invalidates all access tokens, as a server that restarts does.
func (as *fakeAS) revokeAccess() {
	as.mu.Lock()
	defer as.mu.Unlock()
	for _, g := range as.grants {
		clear(g.access)
	}
}

func (as *fakeAS) count(n *int) int {
	as.mu.Lock()
	defer as.mu.Unlock()
	return *n
}

// fakeRS is an MCP server that checks tokens.
type fakeRS struct {
	t   *testing.T
	srv *httptest.Server
	url string // the endpoint

	mu         sync.Mutex
	as         *fakeAS
	resource   string            // of the document, and the audience of tokens
	documents  map[string]string // path to body; replaces the standard one
	challenge  func(status int, code string, scopes []string) string
	scopesOf   func(r *http.Request) []string
	rejectAll  bool
	needProof  bool
	nonce      string
	seen       []string // Authorization headers
	seenProofs map[string]bool
}

func newRS(t *testing.T, as *fakeAS) *fakeRS {
	rs := &fakeRS{t: t, as: as, seenProofs: map[string]bool{}}
	rs.srv = httptest.NewServer(rs)
	t.Cleanup(rs.srv.Close)
	rs.url = rs.srv.URL + "/mcp"
	rs.resource = rs.url
	as.resources = append(as.resources, rs.resource)
	rs.challenge = func(_ int, code string, scopes []string) string {
		c := `Bearer resource_metadata="` + rs.srv.URL + `/.well-known/oauth-protected-resource/mcp"`
		if code != "" {
			c += `, error="` + code + `"`
		}
		if len(scopes) > 0 {
			c += `, scope="` + strings.Join(scopes, " ") + `"`
		}
		return c
	}
	return rs
}

func (rs *fakeRS) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.documents != nil {
		if body, ok := rs.documents[r.URL.Path]; ok {
			_, _ = io.WriteString(w, body)
			return
		}
	}
	switch {
	case r.URL.Path == "/.well-known/oauth-protected-resource/mcp" && rs.documents == nil:
		writeJSON(w, 200, map[string]any{"resource": rs.resource, "authorization_servers": []string{rs.as.issuer}})
		return
	case !strings.HasPrefix(r.URL.Path, "/mcp"):
		http.NotFound(w, r)
		return
	}
	if h := r.Header.Get("Authorization"); h != "" {
		rs.seen = append(rs.seen, h)
	}
	var need []string
	if rs.scopesOf != nil {
		need = rs.scopesOf(r)
	}
	refuse := func(status int, code string) {
		if c := rs.challenge(status, code, need); c != "" {
			w.Header().Set("WWW-Authenticate", c)
		}
		w.WriteHeader(status)
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if token == "" {
		refuse(401, "")
		return
	}
	g := rs.as.lookup(token)
	switch {
	case g == nil || g.resource != rs.resource || rs.rejectAll: // unknown, expired, or for another audience
		refuse(401, "invalid_token")
		return
	case (scheme == "DPoP") != rs.needProof:
		refuse(401, "invalid_token")
		return
	}
	if rs.needProof {
		claims, jkt, err := verifyProof(r.Header.Get("DPoP"), r.Method, rs.url)
		sum := sha256.Sum256([]byte(token))
		jti, _ := claims["jti"].(string)
		if err != nil || jkt != g.jkt || claims["ath"] != base64.RawURLEncoding.EncodeToString(sum[:]) || rs.seenProofs[jti] {
			refuse(401, "invalid_dpop_proof")
			return
		}
		rs.seenProofs[jti] = true
		if rs.nonce != "" && claims["nonce"] != rs.nonce {
			w.Header().Set("DPoP-Nonce", rs.nonce)
			refuse(401, "use_dpop_nonce")
			return
		}
	}
	for _, s := range need {
		if !slices.Contains(g.scopes, s) {
			refuse(403, "insufficient_scope")
			return
		}
	}
	_, _ = io.Copy(w, r.Body)
}

// browser follows the redirects as a user who agrees at once.
func browser(ctx context.Context, address string) error {
	go func() {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
		if err != nil {
			return
		}
		if resp, err := http.DefaultClient.Do(req); err == nil {
			_ = resp.Body.Close()
		}
	}()
	return nil
}

// world is an MCP server, its authorization server, and options to use them.
type world struct {
	t  *testing.T
	as *fakeAS
	rs *fakeRS
	o  Options
}

func newWorld(t *testing.T) *world {
	as := newAS(t)
	rs := newRS(t, as)
	return &world{t: t, as: as, rs: rs, o: Options{
		Server: rs.url, Store: MemoryStore(), Browser: browser, LoginTimeout: 10 * time.Second,
		Redirect: Loopback{Ports: []int{freePort(t)}}.Listen,
	}}
}

// freePort returns a port that was free a moment ago.
func freePort(t *testing.T) int {
	r, err := Loopback{Ports: []int{0}}.Listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	u, _ := url.Parse(r.RedirectURI())
	var p int
	_, _ = fmt.Sscan(u.Port(), &p)
	_ = r.Close()
	return p
}

func (w *world) authorizer() *Authorizer {
	w.t.Helper()
	a, err := New(w.o)
	if err != nil {
		w.t.Fatal(err)
	}
	a.now = w.as.clock.Now
	return a
}

// call sends a request through the round tripper and returns the status.
func call(t *testing.T, a *Authorizer, address string, header ...string) (int, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(`{"n":1}`))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := (&http.Client{Transport: a.RoundTripper(nil)}).Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	if resp.StatusCode == http.StatusOK && string(body) != `{"n":1}` {
		t.Errorf("the body arrived as %q", body)
	}
	return resp.StatusCode, nil
}

func (w *world) mustCall(a *Authorizer) {
	w.t.Helper()
	if status, err := call(w.t, a, w.o.Server); err != nil || status != 200 {
		w.t.Fatalf("call: status %d, error %v", status, err)
	}
}

// verifyJWT checks a signature independently of the code under test.
func verifyJWT(jwt string, key crypto.PublicKey) (map[string]any, error) {
	parts := strings.Split(jwt, ".")
	if len(parts) != 3 {
		return nil, errors.New("not three parts")
	}
	var header, claims map[string]any
	for i, v := range []*map[string]any{&header, &claims} {
		b, err := base64.RawURLEncoding.DecodeString(parts[i])
		if err == nil {
			err = json.Unmarshal(b, v)
		}
		if err != nil {
			return nil, err
		}
	}
	sig, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	switch k := key.(type) {
	case *rsa.PublicKey:
		if header["alg"] != "RS256" {
			return nil, errors.New("alg")
		}
		err = rsa.VerifyPKCS1v15(k, crypto.SHA256, sum[:], sig)
	case *ecdsa.PublicKey:
		if header["alg"] != "ES256" || len(sig) != 64 ||
			!ecdsa.Verify(k, sum[:], new(big.Int).SetBytes(sig[:32]), new(big.Int).SetBytes(sig[32:])) {
			err = errors.New("bad ES256 signature")
		}
	default:
		err = errors.New("no key")
	}
	return claims, err
}

// verifyProof checks a DPoP proof and returns the thumbprint of its key.
func verifyProof(p, method, address string) (claims map[string]any, jkt string, err error) {
	head, _, _ := strings.Cut(p, ".")
	b, err := base64.RawURLEncoding.DecodeString(head)
	if err != nil {
		return nil, "", err
	}
	var header struct {
		Typ string            `json:"typ"`
		JWK map[string]string `json:"jwk"`
	}
	if err := json.Unmarshal(b, &header); err != nil || header.Typ != "dpop+jwt" || header.JWK["d"] != "" {
		return nil, "", errors.New("bad header of the proof")
	}
	x, _ := base64.RawURLEncoding.DecodeString(header.JWK["x"])
	y, _ := base64.RawURLEncoding.DecodeString(header.JWK["y"])
	key, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), append(append([]byte{4}, x...), y...))
	if err != nil {
		return nil, "", err
	}
	if claims, err = verifyJWT(p, key); err != nil {
		return nil, "", err
	}
	if claims["htm"] != method || claims["htu"] != address {
		return nil, "", fmt.Errorf("the proof is for %v %v", claims["htm"], claims["htu"])
	}
	sum := sha256.Sum256(fmt.Appendf(nil, `{"crv":"P-256","kty":"EC","x":%q,"y":%q}`, header.JWK["x"], header.JWK["y"]))
	return claims, base64.RawURLEncoding.EncodeToString(sum[:]), nil
}
