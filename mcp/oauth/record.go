package oauth

import (
	"context"
	"crypto/ecdsa"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
)

// How a token was obtained.
const (
	byLogin   = "login"
	byGrant   = "grant"
	byRefresh = "refresh"
)

// record is a token with everything that its refresh needs.
type record struct {
	Issuer             string    `json:"issuer"`
	Resource           string    `json:"resource,omitzero"`
	Access             string    `json:"access"`
	Refresh            string    `json:"refresh,omitzero"`
	Issued             time.Time `json:"issued"`
	Granted            time.Time `json:"granted"` // of the login or grant
	Expires            time.Time `json:"expires,omitzero"`
	Scopes             []string  `json:"scopes,omitzero"`    // granted
	Requested          []string  `json:"requested,omitzero"` // requested
	How                string    `json:"how"`
	TokenEndpoint      string    `json:"token_endpoint"`
	RevocationEndpoint string    `json:"revocation_endpoint,omitzero"`
	Methods            []string  `json:"methods,omitzero"`
	Client             identity  `json:"client"`
	ProofKey           []byte    `json:"proof_key,omitzero"` // PKCS #8
}

// pointer says which authorization server the tokens of a server come from.
type pointer struct {
	Issuer string `json:"issuer"`
	// Bound is the issuer that a configured client without an issuer was used with.
	Bound string `json:"bound,omitzero"`
}

func (a *Authorizer) serverKey() string {
	return storeKey("server", a.server.String(), a.options.Principal)
}

func (a *Authorizer) tokenKey(issuer string) string {
	return storeKey("token", a.server.String(), issuer, a.options.Principal)
}

func (a *Authorizer) saveJSON(ctx context.Context, key string, v any) error {
	data, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return err
	}
	return a.options.Store.Save(ctx, key, data)
}

func (a *Authorizer) loadPointer(ctx context.Context) (pointer, error) {
	var p pointer
	data, err := a.options.Store.Load(ctx, a.serverKey())
	if err != nil || data == nil {
		return p, err
	}
	if err := json.Unmarshal(data, &p); err != nil {
		return p, errors.New("oauth: the token store has a malformed entry for " + a.server.Host + ": log out and log in again")
	}
	return p, nil
}

// load reads the token from the store. The caller has entered.
func (a *Authorizer) load(ctx context.Context) (*record, error) {
	p, err := a.loadPointer(ctx)
	if err != nil || p.Issuer == "" {
		if err == nil {
			a.keep(nil)
		}
		return nil, err
	}
	data, err := a.options.Store.Load(ctx, a.tokenKey(p.Issuer))
	if err != nil {
		return nil, err
	}
	var rec *record
	if data != nil {
		rec = &record{}
		if json.Unmarshal(data, rec) != nil || rec.Access == "" || rec.Issuer != p.Issuer {
			rec = nil // of another version: as if it were absent
		}
	}
	if rec != nil && a.options.RequireDPoP && rec.ProofKey == nil {
		rec = nil
	}
	a.keep(rec)
	return rec, nil
}

// keep remembers a token in memory.
func (a *Authorizer) keep(rec *record) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.rec, a.loaded = rec, true
}

// save stores a token. The caller has entered.
func (a *Authorizer) save(ctx context.Context, rec *record) error {
	// The authorization server has already spent the code or the old refresh token, so the
	// new one is stored even if the caller is gone.
	ctx = context.WithoutCancel(ctx)
	a.keep(rec)
	if err := a.saveJSON(ctx, a.tokenKey(rec.Issuer), rec); err != nil {
		return err
	}
	p := pointer{Issuer: rec.Issuer}
	if rec.Client.Origin == fromOptions {
		p.Bound = rec.Issuer
	}
	return a.saveJSON(ctx, a.serverKey(), p)
}

// drop deletes a token.
func (a *Authorizer) drop(ctx context.Context, rec *record) error {
	a.keep(nil)
	return a.options.Store.Save(context.WithoutCancel(ctx), a.tokenKey(rec.Issuer), nil)
}

// followIssuer drops the token and the registration of another authorization server than the
// one that the server names now. A configured client is never used with another one.
func (a *Authorizer) followIssuer(ctx context.Context, rec *record, issuer string) (*record, error) {
	p, err := a.loadPointer(ctx)
	if err != nil {
		return nil, err
	}
	if err := a.bindClient(issuer, p.Bound); err != nil {
		return nil, err
	}
	if rec == nil || rec.Issuer == issuer {
		return rec, nil
	}
	if rec.Client.Origin == fromRegistration {
		if err := a.options.Store.Save(ctx, clientKey(rec.Issuer, rec.Client.Redirect), nil); err != nil {
			return nil, err
		}
	}
	return nil, a.drop(ctx, rec)
}

// newRecord makes a record of a token response.
func (a *Authorizer) newRecord(d *discovery, id identity, tr *tokenResponse, requested []string, key *ecdsa.PrivateKey) (*record, error) {
	rec := &record{
		Issuer: d.issuer, Resource: d.resource, Requested: requested, How: byLogin,
		TokenEndpoint: d.server.TokenEndpoint, RevocationEndpoint: d.server.RevocationEndpoint,
		Methods: d.server.AuthMethods, Client: id,
	}
	if a.options.Grant != nil {
		rec.How = byGrant
	}
	if id.Origin == fromOptions {
		rec.Client.Secret = "" // stays in the configuration
	}
	switch {
	case tr.kind == "DPoP" && key == nil, tr.kind == "N_A":
		return nil, fmt.Errorf("oauth: %s issued a token of the type %s, which was not requested", show(d.issuer), tr.kind)
	case tr.kind != "DPoP" && a.options.RequireDPoP:
		return nil, fmt.Errorf("oauth: %s issued a token that is not bound to a key (DPoP), and the configuration requires it", show(d.issuer))
	case tr.kind == "DPoP":
		der, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			return nil, err
		}
		rec.ProofKey = der
	}
	rec.take(tr, a.now())
	rec.Granted = rec.Issued
	if tr.scopes == nil {
		rec.Scopes = slices.Clone(requested) // RFC 6749: no scope means as requested
	}
	return rec, nil
}

// take puts a token into the record.
func (r *record) take(tr *tokenResponse, now time.Time) {
	r.Access, r.Issued, r.Expires = tr.access, now, time.Time{}
	if tr.refresh != "" {
		r.Refresh = tr.refresh
	}
	if tr.lifetime > 0 {
		r.Expires = now.Add(tr.lifetime)
	}
	if tr.scopes != nil {
		r.Scopes = tr.scopes
	}
}

func (r *record) proofKey() (*ecdsa.PrivateKey, error) {
	if r.ProofKey == nil {
		return nil, nil
	}
	key, err := x509.ParsePKCS8PrivateKey(r.ProofKey)
	ec, ok := key.(*ecdsa.PrivateKey)
	if err != nil || !ok {
		return nil, errors.New("oauth: the stored proof key is malformed: log in again")
	}
	return ec, nil
}

// proofKeyFor makes a key if tokens of an authorization server must be bound to one.
func (a *Authorizer) proofKeyFor(d *discovery) (*ecdsa.PrivateKey, error) {
	if !a.options.RequireDPoP && !d.dpopRequired {
		return nil, nil
	}
	if !slices.Contains(d.server.DPoPAlgorithms, "ES256") {
		return nil, fmt.Errorf("oauth: tokens must be bound to a key (DPoP), and %s does not announce it with ES256", show(d.issuer))
	}
	return newProofKey()
}

// clientOf returns the identity of a record, with secrets from the configuration.
func (a *Authorizer) clientOf(rec *record) (identity, bool) {
	if rec.Client.Origin != fromOptions {
		return rec.Client, true
	}
	id := a.staticIdentity()
	if id.ID != rec.Client.ID || a.bindClient(rec.Issuer, "") != nil {
		return identity{}, false // the configuration has changed
	}
	return id, true
}

// refresh gets a new access token. It returns nil if the grant has ended, so that a login is
// necessary. The caller has entered, and rec is what the store has.
func (a *Authorizer) refresh(ctx context.Context, rec *record) (*record, error) {
	id, ok := a.clientOf(rec)
	if !ok {
		return nil, a.drop(ctx, rec)
	}
	key, err := rec.proofKey()
	if err != nil {
		return nil, err
	}
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {rec.Refresh}}
	if rec.Resource != "" {
		form.Set("resource", rec.Resource)
	}
	// Once the request is sent, the old refresh token may be spent, so a caller that goes
	// away does not end it. The client has its own time limit.
	tr, err := a.requestToken(context.WithoutCancel(ctx), tokenCall{
		endpoint: rec.TokenEndpoint, issuer: rec.Issuer, client: id, methods: rec.Methods, proofKey: key, form: form,
	})
	if te := (*TokenError)(nil); errors.As(err, &te) {
		switch te.Code {
		case "invalid_grant":
			return nil, a.drop(ctx, rec)
		case "invalid_client", "unauthorized_client":
			if rec.Client.Origin == fromRegistration { // forgotten: the next login registers again
				return nil, errors.Join(
					a.options.Store.Save(context.WithoutCancel(ctx), clientKey(rec.Issuer, rec.Client.Redirect), nil),
					a.drop(ctx, rec))
			}
		}
	}
	if err != nil {
		return nil, fmt.Errorf("oauth: refresh the token for %s: %w", a.server.Host, err)
	}
	if tr.kind == "N_A" || (tr.kind == "DPoP") != (key != nil) {
		return nil, fmt.Errorf("oauth: refresh the token for %s: the new token has the type %s", a.server.Host, tr.kind)
	}
	next := *rec
	next.How = byRefresh
	next.take(tr, a.now())
	return &next, a.save(ctx, &next)
}

// revoke ends a grant at the authorization server (RFC 7009).
func (a *Authorizer) revoke(ctx context.Context, rec *record) error {
	id, ok := a.clientOf(rec)
	if !ok {
		return nil
	}
	form := url.Values{"token": {rec.Access}, "token_type_hint": {"access_token"}}
	if rec.Refresh != "" {
		form = url.Values{"token": {rec.Refresh}, "token_type_hint": {"refresh_token"}}
	}
	ans, err := a.postForm(ctx, tokenCall{
		endpoint: rec.RevocationEndpoint, issuer: rec.Issuer, client: id, methods: rec.Methods, form: form,
	})
	if err == nil && ans.status >= 300 {
		err = &TokenError{Endpoint: rec.RevocationEndpoint, Status: ans.status}
	}
	if err != nil {
		return fmt.Errorf("oauth: revoke the token for %s: %w", a.server.Host, err)
	}
	return nil
}
