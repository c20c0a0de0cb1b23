package oauth

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// A token is refreshed this long before it expires.
	refreshEarly = time.Minute
	// refreshWait limits how long a token that has not expired waits for its refresh to begin.
	refreshWait = 5 * time.Second
	// If a server rejects a token of this age or younger, another login would not help.
	freshToken = time.Minute

	// Limits of what a server can cause by its challenges.
	loginWindow = 10 * time.Minute
	maxStepUps  = 2 // for more scopes, per operation
	maxRelogins = 4 // for a new token
	maxLogins   = 7 // of all kinds
)

// ErrRejected means that a server rejects a token that was just issued for it.
var ErrRejected = errors.New("server rejects a new token")

// ErrScope means that a server keeps asking for more scopes.
var ErrScope = errors.New("insufficient scope")

// An Authorizer gets tokens for one server and one principal. It is safe for concurrent use;
// at most one login or refresh runs at a time, also across processes that share the store.
type Authorizer struct {
	options Options
	server  *url.URL
	guard   *guard
	now     func() time.Time
	turn    chan struct{} // held by the goroutine that changes the token

	mu      sync.Mutex
	loaded  bool // whether rec is what the store had
	rec     *record
	nonces  map[string]string // DPoP nonces by origin
	logins  []attempt
	refused string // fingerprint of an assertion that was refused
	refusal error
}

// attempt is a login that a challenge caused.
type attempt struct {
	operation string
	at        time.Time
}

// Token returns the access token to send to the server, or "" if there is none yet; the
// server then answers with a challenge, see [Authorizer.Challenge]. It refreshes a token that
// expires within a minute. A token that is bound to a key of this program cannot be sent
// alone: use [Authorizer.Authorize] then.
func (a *Authorizer) Token(ctx context.Context) (string, error) {
	rec, err := a.current(ctx)
	if err != nil || rec == nil {
		return "", err
	}
	if rec.ProofKey != nil {
		return "", errors.New("oauth: the token needs a DPoP proof in each request: use Authorize or RoundTripper")
	}
	return rec.Access, nil
}

// Authorize adds the token to a request, with a proof if the token needs one. Requests to
// another origin than that of the server get nothing.
func (a *Authorizer) Authorize(req *http.Request) error {
	if originOf(req.URL) != originOf(a.server) {
		return nil
	}
	rec, err := a.current(req.Context())
	if err != nil || rec == nil {
		return err
	}
	return a.setToken(req, rec)
}

func (a *Authorizer) setToken(req *http.Request, rec *record) error {
	if rec.ProofKey == nil {
		req.Header.Set("Authorization", "Bearer "+rec.Access)
		return nil
	}
	key, err := rec.proofKey()
	if err != nil {
		return err
	}
	p, err := proof(key, req.Method, proofURL(req.URL), a.nonce(req.URL), rec.Access, a.now())
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "DPoP "+rec.Access)
	req.Header.Set("DPoP", p)
	return nil
}

// Challenge handles a response with status 401 or 403 to a request with the token. It
// refreshes the token, logs in, or asks for more scopes, and reports whether the request
// should be sent again. It returns false without an error if authorization cannot help. It
// reads only the header of the response.
func (a *Authorizer) Challenge(ctx context.Context, resp *http.Response) (retry bool, err error) {
	if resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusForbidden {
		return false, nil
	}
	if resp.Request != nil && resp.Request.URL != nil && originOf(resp.Request.URL) != originOf(a.server) {
		return false, nil // the challenge of another server
	}
	c := readChallenge(resp.Header)
	a.setNonce(a.server, resp.Header)
	if c.code == "use_dpop_nonce" {
		nonce := resp.Header.Get("DPoP-Nonce")
		return nonce != "" && nonce != usedNonce(resp.Request), nil
	}
	if resp.StatusCode == http.StatusForbidden && c.code != "insufficient_scope" {
		return false, nil // a policy of the server; another token would not help
	}
	leave, err := a.enter(ctx)
	if err != nil {
		return false, err
	}
	defer leave()
	rec, err := a.load(ctx)
	if err != nil {
		return false, err
	}
	used := usedToken(resp.Request)
	if rec != nil && rec.Access != used && a.valid(rec) && covers(rec, c, resp.StatusCode) {
		return true, nil // another goroutine or process was faster
	}
	d, err := a.discover(ctx, c, nil)
	if err != nil {
		return false, err
	}
	d.dpopRequired = d.dpopRequired || c.dpop && c.scheme == "dpop"
	if rec, err = a.followIssuer(ctx, rec, d.issuer); err != nil {
		return false, err
	}
	scopes := a.scopes(c, d, rec)
	if resp.StatusCode == http.StatusForbidden {
		if err := a.countStepUp(resp.Request, c); err != nil {
			return false, err
		}
		return true, a.obtain(ctx, d, scopes)
	}
	if rec != nil && rec.Refresh != "" && !(rec.How == byRefresh && a.isNew(rec)) {
		next, err := a.refresh(ctx, rec)
		if err != nil {
			return false, err
		}
		if next != nil {
			return true, nil
		}
		rec = nil // the grant is gone
	}
	if rec != nil && rec.Access == used && a.now().Sub(rec.Granted) < freshToken {
		return false, fmt.Errorf("oauth: %w: %s answers 401 to a token that %s issued for the resource %s: the operator must check the audience and the issuer that the server accepts",
			ErrRejected, a.server.Host, show(d.issuer), show(d.resource))
	}
	if a.options.Grant == nil && !a.count(renewal, maxRelogins) {
		return false, fmt.Errorf("oauth: %w: %s asked for a new token %d times within %s; log in again yourself, or report it to the operator",
			ErrRejected, a.server.Host, maxRelogins, loginWindow)
	}
	return true, a.obtain(ctx, d, scopes)
}

// Login gets a new token now, without waiting for a challenge of the server.
func (a *Authorizer) Login(ctx context.Context) error {
	leave, err := a.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	c, _, err := a.ask(ctx, nil, nil)
	if err != nil {
		return err
	}
	d, err := a.discover(ctx, c, nil)
	if err != nil {
		return err
	}
	d.dpopRequired = d.dpopRequired || c.scheme == "dpop"
	rec, err := a.load(ctx)
	if err != nil {
		return err
	}
	if rec, err = a.followIssuer(ctx, rec, d.issuer); err != nil {
		return err
	}
	return a.obtain(ctx, d, a.scopes(c, d, rec))
}

// Logout deletes the token of the principal. If the authorization server supports it, the
// token is revoked first; the result of that is returned after the token is deleted.
func (a *Authorizer) Logout(ctx context.Context) error {
	leave, err := a.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	rec, err := a.load(ctx)
	if err != nil || rec == nil {
		return err
	}
	var revoked error
	if rec.RevocationEndpoint != "" {
		revoked = a.revoke(ctx, rec)
	}
	return errors.Join(a.drop(ctx, rec), revoked)
}

// RoundTripper returns a transport that authorizes requests to the server and answers its
// challenges; nil means http.DefaultTransport. Requests to other origins are passed through.
// A request is sent again only if its body can be read again, at most four times.
func (a *Authorizer) RoundTripper(base http.RoundTripper) http.RoundTripper {
	if base == nil {
		base = http.DefaultTransport
	}
	return &transport{a: a, base: base}
}

type transport struct {
	a    *Authorizer
	base http.RoundTripper
}

const maxRetries = 4

func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	for attempt := 0; ; attempt++ {
		r := req.Clone(req.Context())
		if attempt > 0 && req.Body != nil && req.Body != http.NoBody {
			body, err := req.GetBody()
			if err != nil {
				return nil, err
			}
			r.Body = body
		}
		if err := t.a.Authorize(r); err != nil {
			if r.Body != nil {
				_ = r.Body.Close()
			}
			return nil, err
		}
		resp, err := t.base.RoundTrip(r)
		if err != nil || originOf(req.URL) != originOf(t.a.server) {
			return resp, err
		}
		t.a.setNonce(req.URL, resp.Header)
		if resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusForbidden || attempt == maxRetries {
			return resp, nil
		}
		resp.Request = r
		retry, err := t.a.Challenge(req.Context(), resp)
		if err == nil && (!retry || req.Body != nil && req.Body != http.NoBody && req.GetBody == nil) {
			return resp, nil
		}
		_, _ = io.CopyN(io.Discard, resp.Body, 64<<10)
		_ = resp.Body.Close()
		if err != nil {
			return nil, err
		}
	}
}

// current returns a token that can be used now, or nil.
func (a *Authorizer) current(ctx context.Context) (*record, error) {
	if rec, done := a.usable(); done {
		return rec, nil
	}
	good := a.stillGood()
	wait, cancel := ctx, func() {}
	if good != nil {
		// A token that is only about to expire does not wait for a login elsewhere.
		wait, cancel = context.WithTimeout(ctx, refreshWait)
	}
	leave, err := a.enter(wait)
	cancel()
	if err != nil {
		if good != nil && ctx.Err() == nil {
			return good, nil
		}
		return nil, err
	}
	defer leave()
	if rec, done := a.usable(); done {
		return rec, nil
	}
	rec, err := a.load(ctx) // another process may have refreshed it
	if err != nil || rec == nil {
		return nil, err
	}
	if !a.expiring(rec) {
		return rec, nil
	}
	if rec.Refresh == "" {
		if a.valid(rec) {
			return rec, nil
		}
		a.keep(nil) // the server will send a challenge
		return nil, nil
	}
	next, err := a.refresh(ctx, rec)
	if err != nil && a.valid(rec) {
		return rec, nil // a failure of the moment; the token is still good
	}
	return next, err
}

// usable returns the token in memory if it needs no refresh. done is also true if there is
// known to be none.
func (a *Authorizer) usable() (rec *record, done bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.loaded {
		return nil, false
	}
	if a.rec == nil || !a.expiring(a.rec) {
		return a.rec, true
	}
	return nil, false
}

// stillGood returns the token in memory if it has not expired.
func (a *Authorizer) stillGood() *record {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.rec != nil && a.valid(a.rec) {
		return a.rec
	}
	return nil
}

// expiring reports whether a token should be refreshed. A token with a short life is not
// refreshed for each request.
func (a *Authorizer) expiring(r *record) bool {
	if r.Expires.IsZero() {
		return false
	}
	early := min(refreshEarly, r.Expires.Sub(r.Issued)/4)
	return !a.now().Before(r.Expires.Add(-early))
}

func (a *Authorizer) valid(r *record) bool { return r.Expires.IsZero() || a.now().Before(r.Expires) }

func (a *Authorizer) isNew(r *record) bool { return a.now().Sub(r.Issued) < freshToken }

// enter waits until this goroutine may change the token: alone in this process and among
// the processes that share the store.
func (a *Authorizer) enter(ctx context.Context) (func(), error) {
	select {
	case a.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	unlock, err := a.options.Store.Lock(ctx, a.serverKey())
	if err != nil {
		<-a.turn
		return nil, err
	}
	return func() {
		unlock()
		<-a.turn
	}, nil
}

// usedToken returns the token of a request.
func usedToken(req *http.Request) string {
	if req == nil {
		return ""
	}
	_, token, _ := strings.Cut(req.Header.Get("Authorization"), " ")
	return token
}

// usedNonce returns the nonce in the proof of a request. Another goroutine may have stored the
// new one already, so the request itself is compared.
func usedNonce(req *http.Request) string {
	if req == nil {
		return ""
	}
	parts := strings.Split(req.Header.Get("DPoP"), ".")
	if len(parts) != 3 {
		return ""
	}
	data, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct {
		Nonce string `json:"nonce"`
	}
	if err != nil || decode(data, &claims) != nil {
		return ""
	}
	return claims.Nonce
}

// covers reports whether a token has the scopes that a server asks for. It is only a reason
// to try the token again, so an unknown set of scopes counts as too small.
func covers(r *record, c challenge, status int) bool {
	if status != http.StatusForbidden {
		return true
	}
	return len(c.scope) > 0 && !slices.ContainsFunc(c.scope, func(s string) bool { return !slices.Contains(r.Scopes, s) })
}

// scopes returns what to request: the scopes of the challenge, else those of the metadata,
// and those that an earlier token had, so that operations do not take turns in losing them.
func (a *Authorizer) scopes(c challenge, d *discovery, rec *record) []string {
	all := slices.Clone(c.scope)
	if len(all) == 0 && len(a.options.Scopes) == 0 {
		all = slices.Clone(d.scopes)
	}
	all = append(all, a.options.Scopes...)
	if rec != nil {
		all = append(all, rec.Requested...)
		all = append(all, rec.Scopes...)
	}
	// offline_access alone would replace the default scopes of the server, so it is only
	// added to others.
	const offline = "offline_access"
	if len(all) > 0 && !a.options.NoRefresh && a.options.Grant == nil && slices.Contains(d.server.ScopesSupported, offline) {
		all = append(all, offline)
	}
	return cleanScopes(all)
}

// countStepUp limits logins for more scopes. The operation is named by headers of our own
// request, so that a server cannot avoid the limit by asking for other scopes each time.
func (a *Authorizer) countStepUp(req *http.Request, c challenge) error {
	operation := strings.Join(c.scope, " ")
	if req != nil && req.Header.Get("Mcp-Method") != "" {
		operation = req.Header.Get("Mcp-Method") + " " + req.Header.Get("Mcp-Name")
	}
	if a.count("for "+operation, maxStepUps) {
		return nil
	}
	return fmt.Errorf("oauth: %w: %s still asks for the scopes %s after a login with them: the account may not have them",
		ErrScope, a.server.Host, quoteList(c.scope))
}

const renewal = "renewal"

// count reports whether a challenge may cause another login, and counts it.
func (a *Authorizer) count(operation string, limit int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	a.logins = slices.DeleteFunc(a.logins, func(l attempt) bool { return now.Sub(l.at) > loginWindow })
	same := 0
	for _, l := range a.logins {
		if l.operation == operation {
			same++
		}
	}
	if same >= limit || len(a.logins) >= maxLogins {
		return false
	}
	a.logins = append(a.logins, attempt{operation, now})
	return true
}

// obtain gets a new token by a grant or a login, and stores it.
func (a *Authorizer) obtain(ctx context.Context, d *discovery, scopes []string) error {
	var rec *record
	var err error
	if a.options.Grant != nil {
		rec, err = a.runGrant(ctx, d, scopes)
	} else {
		rec, err = a.login(ctx, d, scopes)
	}
	if err != nil {
		return err
	}
	return a.save(ctx, rec)
}

// proofURL is a request address as a proof names it: without query and fragment.
func proofURL(u *url.URL) string {
	short := *u
	short.RawQuery, short.Fragment, short.RawFragment, short.ForceQuery = "", "", "", false
	return short.String()
}

func (a *Authorizer) nonce(u *url.URL) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.nonces[originOf(u)]
}

const (
	maxNonces   = 32
	maxNonceLen = 1024
)

// setNonce keeps the nonce that a server wants in the next proof.
func (a *Authorizer) setNonce(u *url.URL, h http.Header) {
	n := h.Get("DPoP-Nonce")
	if n == "" || len(n) > maxNonceLen || !printable(n) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.nonces) >= maxNonces {
		clear(a.nonces)
	}
	a.nonces[originOf(u)] = n
}
