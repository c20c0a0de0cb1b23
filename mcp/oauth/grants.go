package oauth

import (
	"context"
	"crypto/ecdsa"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// A Grant gets tokens without a browser.
type Grant interface {
	validate(o *Options) error
	// endpoint returns the configured address that the grant contacts, or "".
	endpoint() string
	// prepare returns the fields of the token request. once is a secret that must not be
	// sent again if it is refused.
	prepare(ctx context.Context, a *Authorizer, d *discovery, scopes []string) (form url.Values, once string, err error)
}

// ErrRefused means that an authorization server refused an assertion, and that the same
// assertion is not sent to it again.
var ErrRefused = errors.New("assertion was refused")

const (
	grantJWTBearer = "urn:ietf:params:oauth:grant-type:jwt-bearer"

	typeAccessToken = "urn:ietf:params:oauth:token-type:access_token"
)

// runGrant gets a token by the configured grant.
func (a *Authorizer) runGrant(ctx context.Context, d *discovery, scopes []string) (*record, error) {
	key, err := a.proofKeyFor(d)
	if err != nil {
		return nil, err
	}
	form, once, err := a.options.Grant.prepare(ctx, a, d, scopes)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(d.issuer + "\x00" + once))
	print := hex.EncodeToString(sum[:])
	a.mu.Lock()
	refused, refusal := a.refused, a.refusal
	a.mu.Unlock()
	if once != "" && refused == print {
		return nil, refusal
	}
	tr, id, err := a.grantToken(ctx, d, form, scopes, key)
	if err != nil {
		err = fmt.Errorf("oauth: token for %s: %w", a.server.Host, err)
		if te := (*TokenError)(nil); once != "" && errors.As(err, &te) && te.Status < 500 {
			err = fmt.Errorf("%w: %w", err, ErrRefused)
			a.mu.Lock()
			a.refused, a.refusal = print, err
			a.mu.Unlock()
		}
		return nil, err
	}
	return a.newRecord(d, id, tr, scopes, key)
}

func (a *Authorizer) grantToken(ctx context.Context, d *discovery, form url.Values, scopes []string, key *ecdsa.PrivateKey) (*tokenResponse, identity, error) {
	id := a.staticIdentity()
	if d.resource != "" {
		form.Set("resource", d.resource)
	}
	if len(scopes) > 0 {
		form.Set("scope", strings.Join(scopes, " "))
	}
	tr, err := a.requestToken(ctx, tokenCall{
		endpoint: d.server.TokenEndpoint, issuer: d.issuer, client: id, methods: d.server.AuthMethods, proofKey: key, form: form,
	})
	return tr, id, err
}

// ClientCredentials gets tokens for the program itself, with the secret or the key of
// Options.Client.
type ClientCredentials struct{}

func (ClientCredentials) validate(o *Options) error {
	if o.Client.ID == "" || o.Client.Secret == "" && o.Client.Key == nil {
		return errors.New("oauth: client credentials need Options.Client with an ID and a secret or a key")
	}
	return nil
}

func (ClientCredentials) endpoint() string { return "" }

func (ClientCredentials) prepare(context.Context, *Authorizer, *discovery, []string) (url.Values, string, error) {
	return url.Values{"grant_type": {"client_credentials"}}, "", nil
}

// TokenExchange exchanges a token of the user for one for the server (RFC 8693). The token of
// the user is sent only to the pinned authorization server, and never to the MCP server.
type TokenExchange struct {
	// Subject returns the token of the user and its type; an empty type means an access
	// token.
	Subject func(ctx context.Context) (token, tokenType string, err error)
	// Audience names the server at the authorization server, if that needs more than the
	// resource.
	Audience string
}

func (g TokenExchange) validate(o *Options) error {
	switch {
	case g.Subject == nil:
		return errors.New("oauth: a token exchange needs Subject")
	case o.Issuer == "":
		return errors.New("oauth: a token exchange needs Options.Issuer: otherwise the server could choose who receives the token of the user")
	}
	return nil
}

func (TokenExchange) endpoint() string { return "" }

func (g TokenExchange) prepare(ctx context.Context, _ *Authorizer, _ *discovery, _ []string) (url.Values, string, error) {
	token, kind, err := g.Subject(ctx)
	if err != nil {
		return nil, "", fmt.Errorf("oauth: token of the user: %w", err)
	}
	if token == "" {
		return nil, "", errors.New("oauth: there is no token of the user to exchange")
	}
	if kind == "" {
		kind = typeAccessToken
	}
	form := url.Values{
		"grant_type": {oauthex.GrantTypeTokenExchange}, "subject_token": {token}, "subject_token_type": {kind},
		"requested_token_type": {typeAccessToken},
	}
	if g.Audience != "" {
		form.Set("audience", g.Audience)
	}
	return form, token, nil
}

// Enterprise gets tokens through the identity provider of a company: it exchanges the login
// of the user there for an assertion about the server (ID-JAG), and that for a token.
// Options.Client is the client at the authorization server of the MCP server.
//
// The exchange does not use oauthex.ExchangeToken, which cannot go through the guarded
// client with its limits, and the SDK handler requires PKCE of an identity provider that
// runs no authorization code flow here.
type Enterprise struct {
	// TokenEndpoint of the identity provider. It is configured, not discovered.
	TokenEndpoint string
	// Client of this program at the identity provider.
	Client Client
	// Identity returns the proof of the login of the user, and its type; an empty type means
	// an ID token.
	Identity func(ctx context.Context) (token, tokenType string, err error)
}

func (g Enterprise) validate(*Options) error {
	if g.Identity == nil || g.TokenEndpoint == "" || g.Client.ID == "" {
		return errors.New("oauth: the enterprise grant needs Identity, TokenEndpoint and Client.ID")
	}
	return g.Client.validate()
}

func (g Enterprise) endpoint() string { return g.TokenEndpoint }

func (g Enterprise) prepare(ctx context.Context, a *Authorizer, d *discovery, scopes []string) (url.Values, string, error) {
	if d.resource == "" {
		return nil, "", fmt.Errorf("oauth: %s has no resource metadata, so an identity provider cannot vouch for it", a.server.Host)
	}
	token, kind, err := g.Identity(ctx)
	if err != nil {
		return nil, "", fmt.Errorf("oauth: login of the user: %w", err)
	}
	if kind == "" {
		kind = oauthex.TokenTypeIDToken
	}
	form := url.Values{
		"grant_type": {oauthex.GrantTypeTokenExchange}, "requested_token_type": {oauthex.TokenTypeIDJAG},
		"subject_token": {token}, "subject_token_type": {kind},
		"audience": {d.issuer}, "resource": {d.resource},
	}
	if len(scopes) > 0 {
		form.Set("scope", strings.Join(scopes, " "))
	}
	id := identity{ID: g.Client.ID, Secret: g.Client.Secret, Auth: g.Client.AuthMethod, key: g.Client.Key, keyID: g.Client.KeyID}
	issuer := g.Client.Issuer
	if issuer == "" {
		issuer = g.TokenEndpoint
	}
	tr, err := a.requestToken(ctx, tokenCall{endpoint: g.TokenEndpoint, issuer: issuer, client: id, form: form})
	if err != nil {
		return nil, "", fmt.Errorf("oauth: exchange the login at the identity provider: %w", err)
	}
	if tr.issuedType != oauthex.TokenTypeIDJAG {
		return nil, "", fmt.Errorf("oauth: the identity provider issued %s, expected an assertion of the type id-jag", show(tr.issuedType))
	}
	return url.Values{"grant_type": {grantJWTBearer}, "assertion": {tr.access}}, tr.access, nil
}

// Workload gets tokens with an assertion that the platform of the program issued, such as a
// token of a service account.
type Workload struct {
	// Assertion returns a JWT for an audience, which is the issuer of the authorization
	// server. An assertion that was refused is not sent again.
	Assertion func(ctx context.Context, audience string) (string, error)
}

func (g Workload) validate(*Options) error {
	if g.Assertion == nil {
		return errors.New("oauth: workload identity needs Assertion")
	}
	return nil
}

func (Workload) endpoint() string { return "" }

func (g Workload) prepare(ctx context.Context, _ *Authorizer, d *discovery, _ []string) (url.Values, string, error) {
	jwt, err := g.Assertion(ctx, d.issuer)
	if err != nil {
		return nil, "", fmt.Errorf("oauth: workload assertion: %w", err)
	}
	if jwt == "" {
		return nil, "", errors.New("oauth: there is no workload assertion")
	}
	return url.Values{"grant_type": {grantJWTBearer}, "assertion": {jwt}}, jwt, nil
}
