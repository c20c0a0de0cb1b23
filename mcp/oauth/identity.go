package oauth

import (
	"bytes"
	"context"
	"crypto"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

type signer = crypto.Signer

// Where the identity of the client comes from.
const (
	fromOptions      = "configured"
	fromDocument     = "document"
	fromRegistration = "registered"
)

// ErrNoClient means that there is no way to become a client of an authorization server
// without help of the user.
var ErrNoClient = errors.New("no client id")

// staticIdentity returns the configured client.
func (a *Authorizer) staticIdentity() identity {
	c := a.options.Client
	return identity{ID: c.ID, Secret: c.Secret, Auth: c.AuthMethod, Origin: fromOptions, key: c.Key, keyID: c.KeyID}
}

// bindClient makes sure that the configured client is used with its own authorization server
// only. bound is the issuer that it was used with before.
func (a *Authorizer) bindClient(issuer, bound string) error {
	c := a.options.Client
	if c.Issuer != "" {
		bound = c.Issuer
	}
	if c.ID == "" || bound == "" || bound == issuer {
		return nil
	}
	return fmt.Errorf("oauth: %w: the client %q belongs to %s, the server now names %s: configure a client of the new one, or report it to the operator",
		ErrIssuerChanged, c.ID, show(bound), show(issuer))
}

func clientKey(issuer, redirect string) string { return storeKey("client", issuer, redirect) }

// identify decides as which client to log in: a configured client, a client id metadata
// document, or a registration, which is stored per issuer and redirect URI.
func (a *Authorizer) identify(ctx context.Context, d *discovery, redirect string, keep bool) (identity, error) {
	if a.options.Client.ID != "" {
		return a.staticIdentity(), nil
	}
	if a.options.ClientDocument != "" && d.server.MetadataDocuments {
		return identity{ID: a.options.ClientDocument, Auth: methodNone, Origin: fromDocument}, nil
	}
	if a.options.NoRegistration || d.server.RegistrationEndpoint == "" {
		return identity{}, fmt.Errorf("oauth: %w for %s: it offers no dynamic registration that may be used; register a client there with the redirect URI %s and configure its id",
			ErrNoClient, show(d.issuer), redirect)
	}
	data, err := a.options.Store.Load(ctx, clientKey(d.issuer, redirect))
	if err != nil {
		return identity{}, err
	}
	var id identity
	if data != nil && json.Unmarshal(data, &id) == nil && id.ID != "" && (id.Expires == 0 || a.now().Unix() < id.Expires) {
		id.stored = true
		return id, nil
	}
	if id, err = a.register(ctx, d, redirect); err != nil {
		return identity{}, err
	}
	if keep {
		err = a.saveJSON(ctx, clientKey(d.issuer, redirect), id)
	}
	return id, err
}

// register registers this program (RFC 7591). The request type comes from oauthex, but its
// RegisterClient puts the response body into errors and fails on expiry times that are not
// integers, so the request is sent here.
func (a *Authorizer) register(ctx context.Context, d *discovery, redirect string) (identity, error) {
	method := methodNone
	if m := d.server.AuthMethods; len(m) > 0 && !slices.Contains(m, methodNone) {
		for _, want := range []string{methodBasic, methodPost} {
			if slices.Contains(m, want) {
				method = want
				break
			}
		}
	}
	kind := "web"
	if strings.HasPrefix(redirect, "http://") {
		kind = "native"
	}
	body, err := json.Marshal(oauthex.ClientRegistrationMetadata{
		RedirectURIs:            []string{redirect},
		TokenEndpointAuthMethod: method,
		GrantTypes:              []string{"authorization_code", "refresh_token"},
		ResponseTypes:           []string{"code"},
		ClientName:              a.options.ClientName,
		ApplicationType:         kind,
	})
	if err != nil {
		return identity{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.server.RegistrationEndpoint, bytes.NewReader(body))
	if err != nil {
		return identity{}, err
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Content-Type", "application/json")
	ans, err := a.guard.do(req)
	if err != nil {
		return identity{}, fmt.Errorf("oauth: register with %s: %w", show(d.issuer), err)
	}
	var got struct {
		ClientID string  `json:"client_id"`
		Secret   string  `json:"client_secret"`
		Expires  float64 `json:"client_secret_expires_at"`
		Method   string  `json:"token_endpoint_auth_method"`
		Error    string  `json:"error"`
	}
	err = decode(ans.body, &got)
	if ans.status != http.StatusCreated && ans.status != http.StatusOK {
		if err != nil {
			got.Error = ""
		}
		refused := &TokenError{Endpoint: d.server.RegistrationEndpoint, Status: ans.status, Code: errorCode(got.Error)}
		return identity{}, fmt.Errorf("oauth: register with %s: %w; if it does not allow registration, register a client there with the redirect URI %s and configure its id", show(d.issuer), refused, redirect)
	}
	if err != nil || got.ClientID == "" || !printable(got.ClientID) || !printable(got.Secret) {
		return identity{}, fmt.Errorf("oauth: register with %s: the response has no usable client_id", show(d.issuer))
	}
	id := identity{ID: got.ClientID, Secret: got.Secret, Origin: fromRegistration, Redirect: redirect, Expires: int64(got.Expires)}
	switch got.Method {
	case methodBasic, methodPost:
		if id.Secret != "" {
			id.Auth = got.Method
		}
	case methodNone:
		id.Auth = methodNone
	}
	return id, nil
}
