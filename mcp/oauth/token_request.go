package oauth

import (
	"context"
	"crypto/ecdsa"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Authentication methods of clients at a token endpoint.
const (
	methodNone  = "none"
	methodBasic = "client_secret_basic"
	methodPost  = "client_secret_post"
	methodKey   = "private_key_jwt"
)

// TokenError is a refusal by a token endpoint or a registration endpoint.
type TokenError struct {
	// Endpoint is the address that refused.
	Endpoint string
	// Status is the HTTP status.
	Status int
	// Code is the error code, such as "invalid_grant", or "" if it is missing. The
	// description of the server is left out: it is untrusted text.
	Code string
}

func (e *TokenError) Error() string {
	if e.Code == "" {
		return fmt.Sprintf("%s refused the request with status %d", e.Endpoint, e.Status)
	}
	return fmt.Sprintf("%s refused the request: %s", e.Endpoint, e.Code)
}

// errorCode returns an error code if it looks like one.
func errorCode(s string) string {
	bad := func(r rune) bool { return !(r >= 'a' && r <= 'z' || r == '_' || r >= '0' && r <= '9') }
	if len(s) > 64 || strings.ContainsFunc(s, bad) {
		return ""
	}
	return s
}

// tokenCall is one request to a token endpoint.
type tokenCall struct {
	endpoint string
	issuer   string
	client   identity
	methods  []string // that the endpoint supports; nil if unknown
	proofKey *ecdsa.PrivateKey
	form     url.Values
}

// tokenResponse is a token as received. It is decoded here and not by package oauth2, which
// puts the body of a failed response into its error and cannot add proofs.
type tokenResponse struct {
	access, refresh string
	kind            string // "Bearer", "DPoP", or "N_A" for an exchange
	issuedType      string
	lifetime        time.Duration // 0 if unknown
	scopes          []string      // nil if not sent
}

// requestToken sends a token request. If the endpoint asks for a nonce in the proof, it
// repeats the request once.
func (a *Authorizer) requestToken(ctx context.Context, c tokenCall) (*tokenResponse, error) {
	for attempt := 0; ; attempt++ {
		ans, err := a.postForm(ctx, c)
		if err != nil {
			return nil, fmt.Errorf("token request: %w", err)
		}
		r, err := readToken(c.endpoint, ans)
		if err == nil || attempt > 0 || c.proofKey == nil {
			return r, err
		}
		if te, ok := err.(*TokenError); !ok || te.Code != "use_dpop_nonce" || ans.header.Get("DPoP-Nonce") == "" { //nolint:errorlint // made by readToken
			return nil, err
		}
	}
}

func (a *Authorizer) postForm(ctx context.Context, c tokenCall) (answer, error) {
	u, err := a.guard.check(c.endpoint)
	if err != nil {
		return answer{}, err
	}
	form := url.Values{}
	for k, v := range c.form {
		form[k] = v
	}
	header := http.Header{
		"Accept":       {"application/json"},
		"Content-Type": {"application/x-www-form-urlencoded"},
	}
	if err := a.authenticate(c, form, header); err != nil {
		return answer{}, err
	}
	if c.proofKey != nil {
		p, err := proof(c.proofKey, http.MethodPost, proofURL(u), a.nonce(u), "", a.now())
		if err != nil {
			return answer{}, err
		}
		header.Set("DPoP", p)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.endpoint, strings.NewReader(form.Encode()))
	if err != nil {
		return answer{}, err
	}
	req.Header = header
	ans, err := a.guard.do(req)
	if err == nil {
		a.setNonce(u, ans.header)
	}
	return ans, err
}

// authenticate adds the credentials of the client.
func (a *Authorizer) authenticate(c tokenCall, form url.Values, header http.Header) error {
	switch method := c.client.method(c.methods); method {
	case methodBasic:
		// RFC 6749, section 2.3.1: both parts are form-encoded first.
		req := http.Request{Header: header}
		req.SetBasicAuth(url.QueryEscape(c.client.ID), url.QueryEscape(c.client.Secret))
	case methodPost:
		form.Set("client_id", c.client.ID)
		form.Set("client_secret", c.client.Secret)
	case methodKey:
		assertion, err := clientAssertion(c.client.key, c.client.keyID, c.client.ID, c.issuer, a.now())
		if err != nil {
			return err
		}
		form.Set("client_id", c.client.ID)
		form.Set("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
		form.Set("client_assertion", assertion)
	default:
		if c.client.ID != "" {
			form.Set("client_id", c.client.ID)
		}
	}
	return nil
}

// readToken decodes a response of a token endpoint.
func readToken(endpoint string, ans answer) (*tokenResponse, error) {
	var body struct {
		AccessToken  string         `json:"access_token"`
		RefreshToken string         `json:"refresh_token"`
		TokenType    string         `json:"token_type"`
		IssuedType   string         `json:"issued_token_type"`
		ExpiresIn    jsontext.Value `json:"expires_in"`
		Scope        jsontext.Value `json:"scope"`
		Error        string         `json:"error"`
	}
	err := decode(ans.body, &body)
	if err != nil {
		body.Error = ""
	}
	// Some servers report errors with status 200.
	if ans.status < 200 || ans.status > 299 || body.Error != "" {
		return nil, &TokenError{Endpoint: endpoint, Status: ans.status, Code: errorCode(body.Error)}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: the response is not a JSON object with a token", endpoint)
	}
	r := &tokenResponse{access: body.AccessToken, refresh: body.RefreshToken, issuedType: body.IssuedType}
	if !tokenText(r.access) || r.refresh != "" && !printable(r.refresh) {
		return nil, fmt.Errorf("%s: the response has no usable access_token", endpoint)
	}
	switch strings.ToLower(body.TokenType) {
	case "", "bearer": // some servers leave it out
		r.kind = "Bearer"
	case "dpop":
		r.kind = "DPoP"
	case "n_a":
		r.kind = "N_A"
	default:
		return nil, fmt.Errorf("%s: token type %s is not supported", endpoint, show(body.TokenType))
	}
	r.lifetime = lifetimeOf(body.ExpiresIn)
	var scope string
	if json.Unmarshal(body.Scope, &scope) == nil && scope != "" {
		r.scopes = splitScope(scope)
	}
	return r, nil
}

// tokenText reports whether a token can be sent in a header.
func tokenText(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}

func printable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}

const maxLifetime = 365 * 24 * time.Hour

// lifetimeOf reads expires_in, which some servers send as a text.
func lifetimeOf(v jsontext.Value) time.Duration {
	n, err := strconv.ParseFloat(strings.Trim(string(v), `"`), 64)
	if err != nil || math.IsNaN(n) || n <= 0 {
		return 0
	}
	return time.Duration(min(n, maxLifetime.Seconds()) * float64(time.Second))
}

// identity is the client as which a login runs.
type identity struct {
	ID       string `json:"id"`
	Secret   string `json:"secret,omitzero"`
	Auth     string `json:"auth,omitzero"` // authentication method from the registration
	Origin   string `json:"origin"`        // how we got it
	Redirect string `json:"redirect,omitzero"`
	Expires  int64  `json:"expires,omitzero"` // of the secret, in Unix seconds

	stored bool // found in the store
	key    signer
	keyID  string
}

// method chooses how the client authenticates.
func (i identity) method(supported []string) string {
	switch {
	case i.Auth != "":
		return i.Auth
	case i.key != nil:
		return methodKey
	case i.Secret == "":
		return methodNone
	}
	for _, m := range []string{methodBasic, methodPost, methodNone} {
		if slices.Contains(supported, m) {
			return m
		}
	}
	return methodBasic // the default of RFC 8414
}
