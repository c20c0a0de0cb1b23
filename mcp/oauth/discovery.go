package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
)

// ErrResourceMismatch means that the metadata of a server names another server.
var ErrResourceMismatch = errors.New("metadata is for another resource")

// ErrIssuerMismatch means that a response names another authorization server than the one it
// was expected from.
var ErrIssuerMismatch = errors.New("issuer does not match")

// ErrIssuerChanged means that a server names another authorization server than the one that
// the configured client belongs to.
var ErrIssuerChanged = errors.New("authorization server has changed")

// The documents are decoded here and not by oauthex for these reasons: its functions
// compare the resource as an exact string (pitfall K23), accept an issuer that differs in a
// trailing slash, accept PKCE without S256, insist on a media type, and fail on a wrong type
// in fields that are not needed. Its types have no field for DPoP.

// resourceMetadata holds the fields of protected resource metadata (RFC 9728) that are used.
type resourceMetadata struct {
	Resource             string   `json:"resource"`
	AuthorizationServers []string `json:"authorization_servers"`
	ScopesSupported      []string `json:"scopes_supported"`
	DPoPRequired         bool     `json:"dpop_bound_access_tokens_required"`
}

// serverMetadata holds the fields of authorization server metadata (RFC 8414) that are used.
type serverMetadata struct {
	Issuer                string   `json:"issuer"`
	AuthorizationEndpoint string   `json:"authorization_endpoint"`
	TokenEndpoint         string   `json:"token_endpoint"`
	RegistrationEndpoint  string   `json:"registration_endpoint"`
	RevocationEndpoint    string   `json:"revocation_endpoint"`
	ScopesSupported       []string `json:"scopes_supported"`
	AuthMethods           []string `json:"token_endpoint_auth_methods_supported"`
	PKCEMethods           []string `json:"code_challenge_methods_supported"`
	DPoPAlgorithms        []string `json:"dpop_signing_alg_values_supported"`
	MetadataDocuments     bool     `json:"client_id_metadata_document_supported"`
	SendsIssuer           bool     `json:"authorization_response_iss_parameter_supported"`
}

// discovery holds the facts from the documents of a server.
type discovery struct {
	resource     string // identifier to request tokens for, as in the document; "" if there is none
	scopes       []string
	dpopRequired bool
	issuer       string
	server       serverMetadata
	legacy       bool // no resource metadata: revision 2025-03-26
	guessed      bool // no server metadata either: default endpoints
}

// discover finds the authorization server. It reports each step.
func (a *Authorizer) discover(ctx context.Context, c challenge, report reporter) (*discovery, error) {
	d := &discovery{}
	doc, err := a.findResource(ctx, c, report)
	switch {
	case err != nil:
		return nil, err
	case doc == nil:
		d.legacy = true
		d.issuer = a.server.Scheme + "://" + a.server.Host
		if a.options.Issuer != "" {
			d.issuer = a.options.Issuer
		}
		report.step(Step{
			Name: StepServer, OK: true, Got: "no resource metadata",
			Meaning: "the server follows the revision 2025-03-26 or does not publish its authorization server; its own origin is taken for it: " + d.issuer,
		})
	default:
		d.resource, d.scopes, d.dpopRequired = doc.Resource, cleanScopes(doc.ScopesSupported), doc.DPoPRequired
		if d.issuer, err = a.chooseServer(doc.AuthorizationServers); err != nil {
			report.step(Step{
				Name: StepServer, Got: "authorization_servers: " + quoteList(doc.AuthorizationServers), Meaning: err.Error(),
				Advice: "check the pinned issuer of your configuration against the list",
			})
			return nil, err
		}
		report.step(Step{
			Name: StepServer, OK: true, Got: "authorization_servers: " + quoteList(doc.AuthorizationServers),
			Meaning: "tokens come from " + show(d.issuer),
		})
	}
	if err := a.findServer(ctx, d, report); err != nil {
		return nil, err
	}
	return d, nil
}

// findResource fetches the metadata of the server. It returns nil if there is no document.
func (a *Authorizer) findResource(ctx context.Context, c challenge, report reporter) (*resourceMetadata, error) {
	var failed error
	for _, address := range a.resourceAddresses(c, report) {
		s := Step{Name: StepResource, Sent: "GET " + address}
		ans, err := a.guard.get(ctx, address)
		if err != nil {
			s.Meaning = err.Error()
			s.Advice = "check the name, the certificate and the network; an address that is blocked must be allowed in the configuration"
			report.step(s)
			failed = errors.Join(failed, fmt.Errorf("resource metadata %s: %w", address, err))
			continue
		}
		s.Got = statusText(ans.status)
		if ans.status >= 500 {
			s.Meaning = "the server failed"
			s.Advice = "try again later, or report it to the operator of the server"
			report.step(s)
			failed = errors.Join(failed, fmt.Errorf("resource metadata %s: status %d", address, ans.status))
			continue
		}
		var doc resourceMetadata
		if ans.status != http.StatusOK || decode(ans.body, &doc) != nil || len(doc.AuthorizationServers) == 0 || doc.Resource == "" {
			s.OK = ans.status != http.StatusOK // a missing document is not a failure
			s.Meaning = "no resource metadata at this address"
			if ans.status == http.StatusOK {
				s.Meaning = "the response is not resource metadata: it must be JSON with resource and authorization_servers"
				s.Advice = "report it to the operator of the server"
			}
			report.step(s)
			continue
		}
		s.OK, s.Got = true, s.Got+", resource "+show(doc.Resource)
		s.Meaning = "the server publishes its metadata"
		report.step(s)
		if err := matchResource(a.server, doc.Resource); err != nil {
			report.step(Step{
				Name: StepMatch, Got: fmt.Sprintf("resource %s, configured URL %s", show(doc.Resource), show(a.options.Server)), Meaning: err.Error(),
				Advice: "configure the URL that the document names, or ask the operator to correct the document",
			})
			return nil, err
		}
		report.step(Step{
			Name: StepMatch, OK: true, Got: fmt.Sprintf("resource %s, configured URL %s", show(doc.Resource), show(a.options.Server)),
			Meaning: "the metadata is for this server; tokens are requested for the resource exactly as written in the document",
		})
		return &doc, nil
	}
	switch {
	case failed != nil:
		return nil, fmt.Errorf("oauth: %w", failed)
	case c.metadata != "":
		// A server that names a metadata document does not follow the revision of 2025-03-26.
		return nil, fmt.Errorf("oauth: %s names the resource metadata %s, and neither it nor a well-known address has a usable document", a.server.Host, show(c.metadata))
	}
	return nil, nil
}

// resourceAddresses returns where resource metadata may be, the most specific first.
func (a *Authorizer) resourceAddresses(c challenge, report reporter) []string {
	var all []string
	add := func(s string) {
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	if c.metadata != "" {
		u, err := url.Parse(c.metadata)
		if err == nil && originOf(u) == originOf(a.server) && u.User == nil {
			add(c.metadata)
		} else {
			// The document decides where the user logs in, so another host may not supply it.
			report.step(Step{
				Name: StepResource, Got: "resource_metadata " + show(c.metadata),
				Meaning: "the address is not on the origin of the server, so it is not used",
				Advice:  "ask the operator to serve the document on the origin of the server",
			})
		}
	}
	origin := a.server.Scheme + "://" + a.server.Host
	const wellKnown = "/.well-known/oauth-protected-resource"
	if p := a.server.EscapedPath(); p != "" && p != "/" {
		add(origin + wellKnown + p)
		add(origin + wellKnown + strings.TrimRight(p, "/"))
	}
	add(origin + wellKnown)
	return all
}

// matchResource checks that a resource identifier names a server: it has the same
// origin, and equal to its URL or a prefix of whole path segments. One trailing slash does
// not count (pitfall K23).
func matchResource(server *url.URL, resource string) error {
	u, err := url.Parse(resource)
	mismatch := fmt.Errorf("oauth: %w: the document says %s, the configured URL is %s", ErrResourceMismatch, show(resource), show(server.String()))
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" || originOf(u) != originOf(server) {
		return mismatch
	}
	if u.RawQuery != "" && u.RawQuery != server.RawQuery {
		return mismatch
	}
	want, got := strings.TrimSuffix(server.EscapedPath(), "/"), strings.TrimSuffix(u.EscapedPath(), "/")
	if got == want || strings.HasPrefix(want, got+"/") {
		return nil
	}
	return mismatch
}

// chooseServer returns the issuer to use: the first of the document, or the pinned one if the
// document has it. A pinned issuer may differ from the entry by a trailing slash, because many
// documents are wrong in it; the metadata of the issuer must still match exactly.
func (a *Authorizer) chooseServer(servers []string) (string, error) {
	pinned := a.options.Issuer
	if pinned == "" {
		return servers[0], nil
	}
	if slices.ContainsFunc(servers, func(s string) bool {
		return strings.TrimSuffix(s, "/") == strings.TrimSuffix(pinned, "/")
	}) {
		return pinned, nil
	}
	return "", fmt.Errorf("oauth: %w: the server names %s, the configuration pins %q", ErrIssuerChanged, quoteList(servers), pinned)
}

// issuerAddresses returns where the metadata of an issuer may be.
func issuerAddresses(issuer *url.URL) []string {
	origin, path := issuer.Scheme+"://"+issuer.Host, strings.TrimSuffix(issuer.EscapedPath(), "/")
	const oauth, openid = "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"
	if path == "" {
		return []string{origin + oauth, origin + openid}
	}
	return []string{origin + oauth + path, origin + openid + path, origin + path + openid}
}

// findServer fetches the metadata of the authorization server.
func (a *Authorizer) findServer(ctx context.Context, d *discovery, report reporter) error {
	issuer, err := a.guard.check(d.issuer)
	if err == nil && (issuer.RawQuery != "" || issuer.Fragment != "") {
		err = fmt.Errorf("%w: an issuer has no query and no fragment", ErrBlocked)
	}
	if err != nil {
		report.step(Step{Name: StepMetadata, Got: "issuer " + show(d.issuer), Meaning: err.Error(), Advice: "report it to the operator of the server, or allow the origin in your configuration if you trust it"})
		return fmt.Errorf("oauth: authorization server: %w", err)
	}
	var failed error
	for _, address := range issuerAddresses(issuer) {
		s := Step{Name: StepMetadata, Sent: "GET " + address}
		ans, err := a.guard.get(ctx, address)
		switch {
		case err != nil:
			err = fmt.Errorf("authorization server metadata %s: %w", address, err)
		case ans.status >= 500:
			s.Got = statusText(ans.status)
			err = fmt.Errorf("authorization server metadata %s: status %d", address, ans.status)
		case ans.status != http.StatusOK:
			s.OK, s.Got, s.Meaning = true, statusText(ans.status), "no metadata at this address"
			report.step(s)
			continue
		default:
			s.Got = statusText(ans.status)
			d.server = serverMetadata{}
			if decode(ans.body, &d.server) != nil || d.server.Issuer == "" {
				// A web application may answer every path with its start page.
				s.Meaning = "the response is not metadata: it must be a JSON object with an issuer"
				report.step(s)
				continue
			}
			s.Got += ", issuer " + show(d.server.Issuer)
			if d.server.Issuer != d.issuer {
				err = fmt.Errorf("%w: the document at %s says %s, the server names %s", ErrIssuerMismatch, address, show(d.server.Issuer), show(d.issuer))
				s.Advice = "the two strings must be equal, also in a trailing slash; if you trust the document, pin its issuer in your configuration, otherwise report it to the operator"
			}
		}
		if err != nil {
			s.Meaning = err.Error()
			if s.Advice == "" {
				s.Advice = "check the name, the certificate and the network, or report it to the operator"
			}
			report.step(s)
			failed = errors.Join(failed, err)
			continue
		}
		s.OK, s.Meaning = true, "the authorization server describes itself, and its issuer matches"
		report.step(s)
		return a.checkServer(d, report)
	}
	d.server = serverMetadata{}
	if failed != nil {
		return fmt.Errorf("oauth: %w", failed)
	}
	if !d.legacy {
		// Default endpoints are for servers without any metadata. With resource metadata the
		// specification requires the second document.
		return fmt.Errorf("oauth: authorization server %s publishes no metadata", show(d.issuer))
	}
	d.guessed = true
	origin := issuer.Scheme + "://" + issuer.Host
	d.server = serverMetadata{
		Issuer: d.issuer, AuthorizationEndpoint: origin + "/authorize", TokenEndpoint: origin + "/token",
		RegistrationEndpoint: origin + "/register",
	}
	report.step(Step{
		Name: StepMetadata, OK: true, Got: "no metadata",
		Meaning: "the default endpoints of the revision 2025-03-26 are used: /authorize, /token and /register at " + origin,
	})
	return nil
}

// checkServer checks the endpoints and PKCE.
func (a *Authorizer) checkServer(d *discovery, report reporter) error {
	m := &d.server
	for _, e := range []struct {
		name, address string
		required      bool
	}{
		{"authorization_endpoint", m.AuthorizationEndpoint, a.options.Grant == nil},
		{"token_endpoint", m.TokenEndpoint, true},
		{"registration_endpoint", m.RegistrationEndpoint, false},
		{"revocation_endpoint", m.RevocationEndpoint, false},
	} {
		err := error(nil)
		if e.address == "" && e.required {
			err = errors.New("missing")
		} else if e.address != "" {
			_, err = a.guard.check(e.address)
		}
		if err != nil {
			err = fmt.Errorf("oauth: metadata of %s: %s: %w", show(d.issuer), e.name, err)
			report.step(Step{Name: StepMetadata, Meaning: err.Error(), Advice: "report it to the operator of the authorization server"})
			return err
		}
	}
	if a.options.Grant != nil {
		return nil // no authorization code, so nothing to protect
	}
	s := Step{Name: StepPKCE, Got: "code_challenge_methods_supported: " + quoteList(m.PKCEMethods)}
	if !slices.Contains(m.PKCEMethods, "S256") {
		err := fmt.Errorf("oauth: authorization server %s does not announce PKCE with S256", show(d.issuer))
		s.Meaning, s.Advice = err.Error(), "without PKCE another program could use the code of your login; ask the operator to enable S256"
		report.step(s)
		return err
	}
	s.OK, s.Meaning = true, "codes are bound to this program (PKCE)"
	report.step(s)
	return nil
}

// decode reads an object. Duplicate fields, other letter case and invalid UTF-8 are not
// accepted, so that two readers of a document see the same.
func decode(data []byte, into any) error { return json.Unmarshal(data, into) }

// splitScope splits a scope parameter.
func splitScope(s string) []string { return cleanScopes(strings.Fields(s)) }

const maxScopes = 200

// cleanScopes removes duplicates and what is not a scope (RFC 6749, section 3.3).
func cleanScopes(scopes []string) []string {
	var all []string
	for _, s := range scopes {
		bad := s == "" || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' })
		if !bad && len(all) < maxScopes && !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}
