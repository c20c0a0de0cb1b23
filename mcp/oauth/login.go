package oauth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// ErrLoginRequired means that the user must log in, and that no browser is configured.
var ErrLoginRequired = errors.New("login required")

// ErrDenied means that the user or the authorization server refused the login.
var ErrDenied = errors.New("login was refused")

// ErrLoginTimeout means that the browser did not come back in time.
var ErrLoginTimeout = errors.New("login timed out")

// authorizationError is an error that an authorization server sent to the redirect URI.
type authorizationError struct{ code string }

func (e *authorizationError) Error() string {
	if e.code == "" {
		return "the authorization server reported an error"
	}
	return "the authorization server reported " + e.code
}

// login gets a code in the browser and exchanges it. If a stored registration seems to be
// forgotten by the authorization server, it registers again, once (pitfall K24).
func (a *Authorizer) login(ctx context.Context, d *discovery, scopes []string) (*record, error) {
	if a.options.Browser == nil {
		return nil, fmt.Errorf("oauth: %w for %s at %s: log in with a program that can open a browser and shares the token store, or configure a grant without a browser",
			ErrLoginRequired, a.server.Host, show(d.issuer))
	}
	ctx, cancel := context.WithTimeoutCause(ctx, a.options.LoginTimeout, ErrLoginTimeout)
	defer cancel()
	for attempt := 0; ; attempt++ {
		rec, id, err := a.loginOnce(ctx, d, scopes)
		if err == nil || id.Origin != fromRegistration || !id.stored || attempt > 0 {
			return rec, err
		}
		forgotten, timeout := clientForgotten(err), errors.Is(err, ErrLoginTimeout)
		if forgotten || timeout {
			// A server that does not know the client or its redirect URI shows an error page
			// and sends nothing, so a timeout may have the same cause.
			if err := a.options.Store.Save(context.WithoutCancel(ctx), clientKey(d.issuer, id.Redirect), nil); err != nil {
				return nil, err
			}
		}
		if !forgotten {
			if timeout {
				err = fmt.Errorf("%w; if the browser showed an error about the client or the redirect URI, log in again: this program then registers itself again", err)
			}
			return nil, err
		}
	}
}

// clientForgotten reports whether an error says that the client is unknown.
func clientForgotten(err error) bool {
	code := ""
	if te := (*TokenError)(nil); errors.As(err, &te) {
		code = te.Code
	}
	if ae := (*authorizationError)(nil); errors.As(err, &ae) {
		code = ae.code
	}
	return code == "invalid_client" || code == "unauthorized_client" || code == "invalid_redirect_uri"
}

func (a *Authorizer) loginOnce(ctx context.Context, d *discovery, scopes []string) (*record, identity, error) {
	receiver, err := a.options.Redirect(ctx)
	if err != nil {
		return nil, identity{}, fmt.Errorf("oauth: wait for the browser: %w", err)
	}
	defer func() { _ = receiver.Close() }()
	redirect := receiver.RedirectURI()
	id, err := a.identify(ctx, d, redirect, !receiver.Ephemeral())
	if err != nil {
		return nil, id, err
	}
	key, err := a.proofKeyFor(d)
	if err != nil {
		return nil, id, err
	}

	state, verifier := randomText(), randomText()
	sum := sha256.Sum256([]byte(verifier))
	page, err := a.guard.check(d.server.AuthorizationEndpoint)
	if err != nil {
		return nil, id, err
	}
	q := page.Query()
	set := func(name, value string) {
		if value != "" {
			q.Set(name, value)
		}
	}
	set("response_type", "code")
	set("client_id", id.ID)
	set("redirect_uri", redirect)
	set("state", state)
	set("code_challenge", encode64(sum[:]))
	set("code_challenge_method", "S256")
	set("resource", d.resource)
	set("scope", strings.Join(scopes, " "))
	page.RawQuery = q.Encode()
	page.Fragment, page.RawFragment = "", ""

	if a.options.Confirm != nil {
		login := Login{Server: a.options.Server, Issuer: d.issuer, Host: page.Host, URL: page.String(), ClientID: id.ID, Scopes: scopes}
		if err := a.options.Confirm(ctx, login); err != nil {
			return nil, id, fmt.Errorf("oauth: %w: %w", ErrDenied, err)
		}
	}
	if err := a.options.Browser(ctx, page.String()); err != nil {
		return nil, id, fmt.Errorf("oauth: open the browser at %s: %w", page.Host, err)
	}
	values, err := receiver.Receive(ctx, state)
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, id, fmt.Errorf("oauth: login at %s: %w", page.Host, err)
	}
	code, err := checkCallback(d, state, values)
	if err != nil {
		return nil, id, fmt.Errorf("oauth: login at %s: %w", page.Host, err)
	}

	form := url.Values{
		"grant_type": {"authorization_code"}, "code": {code},
		"redirect_uri": {redirect}, "code_verifier": {verifier},
	}
	if d.resource != "" {
		form.Set("resource", d.resource)
	}
	tr, err := a.requestToken(ctx, tokenCall{
		endpoint: d.server.TokenEndpoint, issuer: d.issuer, client: id, methods: d.server.AuthMethods,
		proofKey: key, form: form,
	})
	if err != nil {
		return nil, id, fmt.Errorf("oauth: login at %s: %w", page.Host, err)
	}
	rec, err := a.newRecord(d, id, tr, scopes, key)
	return rec, id, err
}

// checkCallback checks the response to an authorization request: state, then issuer
// (RFC 9207), and only then the code or the error. A parameter must not occur twice.
func checkCallback(d *discovery, state string, v url.Values) (string, error) {
	for _, name := range []string{"state", "iss", "code", "error"} {
		if len(v[name]) > 1 {
			return "", fmt.Errorf("the response has two values for %s", name)
		}
	}
	if subtle.ConstantTimeCompare([]byte(v.Get("state")), []byte(state)) != 1 {
		return "", errors.New("the response has another state: it belongs to another login")
	}
	switch iss := v.Get("iss"); {
	case iss == "" && d.server.SendsIssuer:
		return "", fmt.Errorf("%w: the authorization server announces that it sends its issuer, and the response has none", ErrIssuerMismatch)
	case iss != "" && iss != d.issuer:
		// The text of an unknown server is not shown, also not its error.
		return "", fmt.Errorf("%w: the response is from %s, expected %s", ErrIssuerMismatch, show(iss), show(d.issuer))
	}
	if v.Has("error") {
		code := errorCode(v.Get("error"))
		if code == "access_denied" {
			return "", fmt.Errorf("%w: access_denied", ErrDenied)
		}
		return "", &authorizationError{code}
	}
	if v.Get("code") == "" {
		return "", errors.New("the response has no code")
	}
	return v.Get("code"), nil
}
