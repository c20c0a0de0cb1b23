package oauth

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"net/http"
	"strings"
)

// Names of the steps of [Diagnose], in their order.
const (
	StepRequest   = "request"           // a request without a token
	StepChallenge = "challenge"         // what the server asks for
	StepResource  = "resource metadata" // one address where the document may be
	StepMatch     = "resource"          // whether the document is for this server
	StepServer    = "authorization server"
	StepMetadata  = "server metadata" // one address where the document may be
	StepPKCE      = "pkce"
	StepClient    = "client"
	StepScopes    = "scopes"
	StepToken     = "token"  // a login, a grant or a stored token
	StepAccess    = "access" // a request with the token
)

// Step is one step of [Diagnose].
type Step struct {
	// Name is one of the constants of this package that begin with Step. Some occur more
	// than once.
	Name string
	// Sent is the request, such as "GET https://…", or "" for a check without one.
	Sent string
	// Got describes the response, without secrets and without its body.
	Got string
	// OK reports whether the step succeeded. A document that is missing where it may be
	// missing is no failure.
	OK bool
	// Meaning explains the result.
	Meaning string
	// Advice says what to do about a failure.
	Advice string
}

// reporter receives steps; nil ignores them.
type reporter func(Step)

func (r reporter) step(s Step) {
	if r != nil {
		r(s)
	}
}

// Diagnose goes through the authorization of a server and reports each step, until one makes
// the next impossible. It asks the user to log in only if o.Browser is set; with neither a
// browser nor a grant it uses a stored token, or ends before the login. It registers no
// client unless it logs in.
func Diagnose(ctx context.Context, server string, o Options) iter.Seq[Step] {
	return func(yield func(Step) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		stopped := false
		report := func(s Step) {
			if !stopped && !yield(s) {
				stopped = true
				cancel()
			}
		}
		o.Server = server
		a, err := New(o)
		if err != nil {
			report(Step{Name: StepRequest, Meaning: err.Error(), Advice: "correct the configuration"})
			return
		}
		a.diagnose(ctx, report)
	}
}

func (a *Authorizer) diagnose(ctx context.Context, report reporter) {
	c, status, err := a.ask(ctx, nil, report)
	if err != nil || status != http.StatusUnauthorized {
		return
	}
	d, err := a.discover(ctx, c, report)
	if err != nil {
		return // reported
	}
	d.dpopRequired = d.dpopRequired || c.scheme == "dpop"
	if !a.diagnoseClient(ctx, d, report) {
		return
	}
	scopes := a.scopes(c, d, nil)
	report.step(Step{
		Name: StepScopes, OK: true,
		Got:     fmt.Sprintf("challenge: %s; resource metadata: %s; authorization server: %s", quoteList(c.scope), quoteList(d.scopes), quoteList(d.server.ScopesSupported)),
		Meaning: "requested: " + quoteList(scopes),
	})
	rec, ok := a.diagnoseToken(ctx, d, scopes, report)
	if !ok {
		return
	}
	_, _, _ = a.ask(ctx, rec, report)
}

// ask sends a request to the server, without a token or with one, and reads its challenge.
// The request lists tools, because some servers let everybody open a session.
func (a *Authorizer) ask(ctx context.Context, rec *record, report reporter) (challenge, int, error) {
	s := Step{Name: StepRequest, Sent: "POST " + a.server.Redacted() + " without a token"}
	if rec != nil {
		s.Name, s.Sent = StepAccess, "POST "+a.server.Redacted()+" with the token"
	}
	fail := func(err error) (challenge, int, error) {
		s.Meaning = err.Error()
		s.Advice = "check the URL, the name, the certificate and the network"
		report.step(s)
		return challenge{}, 0, fmt.Errorf("oauth: %s: %w", a.server.Host, err)
	}
	code, header, err := a.listTools(ctx, rec)
	if err != nil {
		return fail(err)
	}
	c := readChallenge(header)
	if rec != nil && c.code == "use_dpop_nonce" {
		a.setNonce(a.server, header)
		if code, header, err = a.listTools(ctx, rec); err != nil {
			return fail(err)
		}
		c = readChallenge(header)
	}
	s.Got = statusText(code)
	if a.server.Scheme == "http" && !loopbackHost(a.server.Hostname()) {
		s.Got += " over a connection without encryption: others on the way can read tokens"
	}
	switch {
	case code == http.StatusUnauthorized && rec != nil:
		s.Meaning = "the server rejects the token that its authorization server issued"
		s.Advice = "the operator must check the audience and the issuer that the server accepts"
	case code == http.StatusUnauthorized:
		s.OK, s.Meaning = true, "the server requires authorization"
	case code == http.StatusForbidden && c.code == "insufficient_scope":
		s.Meaning = "the token lacks scopes: " + quoteList(c.scope)
		s.Advice = "log in again with these scopes"
	case code == http.StatusForbidden:
		s.Meaning = "a policy of the server refuses the request; another token would not help"
		s.Advice = "ask the operator for access"
	case code == http.StatusNotFound || code == http.StatusMethodNotAllowed:
		s.Meaning = "there is no MCP endpoint with streamable HTTP at this URL"
		s.Advice = "check the path of the URL; the server may only have the older transport with events"
	case code >= 500:
		s.Meaning, s.Advice = "the server failed", "try again later, or report it to the operator"
	case rec != nil:
		s.OK, s.Meaning = true, "the server accepts the token"
	default:
		s.OK, s.Meaning = true, "the server answers without authorization"
	}
	report.step(s)
	if code == http.StatusUnauthorized && rec == nil {
		s = Step{Name: StepChallenge, OK: c.scheme != "", Got: "WWW-Authenticate: " + quoteList(header.Values("WWW-Authenticate"))}
		switch {
		case c.scheme == "":
			s.OK = len(c.schemes) == 0
			s.Meaning = "the server sends no challenge for OAuth; the well-known addresses are tried"
			s.Advice = "a server should name its metadata: WWW-Authenticate: Bearer resource_metadata=…"
			if len(c.schemes) > 0 {
				s.Meaning = "the server asks for " + strings.Join(c.schemes, ", ") + ", not for OAuth"
				s.Advice = "configure the credentials as a header of the server"
			}
		case c.metadata == "":
			s.Meaning = "the challenge does not name the metadata; the well-known addresses are tried"
		default:
			s.Meaning = "the server names its metadata: " + show(c.metadata)
		}
		report.step(s)
	}
	return c, code, nil
}

// listTools sends the request of ask. Only the header of the response counts: its body may be
// a stream without end, so it is closed.
func (a *Authorizer) listTools(ctx context.Context, rec *record) (int, http.Header, error) {
	body := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.server.String(), bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if rec != nil {
		if err := a.setToken(req, rec); err != nil {
			return 0, nil, err
		}
	}
	resp, err := a.guard.client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	return resp.StatusCode, resp.Header, resp.Body.Close()
}

// diagnoseClient reports as which client this program would act.
func (a *Authorizer) diagnoseClient(ctx context.Context, d *discovery, report reporter) bool {
	s := Step{Name: StepClient, OK: true}
	o := &a.options
	switch p, err := a.loadPointer(ctx); {
	case err != nil:
		s.OK, s.Meaning, s.Advice = false, err.Error(), "check the token store"
	case a.bindClient(d.issuer, p.Bound) != nil:
		s.OK, s.Meaning = false, a.bindClient(d.issuer, p.Bound).Error()
		s.Advice = "credentials are never sent to another authorization server than their own"
	case o.Client.ID != "":
		s.Meaning = "the configured client " + show(o.Client.ID) + ", authentication " + a.staticIdentity().method(d.server.AuthMethods)
	case o.Grant != nil:
		s.Meaning = "no client id; the grant identifies the program"
	case o.ClientDocument != "" && d.server.MetadataDocuments:
		s.Got = "client_id_metadata_document_supported: true"
		s.Meaning = "the client id is the metadata document " + show(o.ClientDocument)
		s.Sent = "GET " + o.ClientDocument
		if err := a.checkDocument(ctx); err != nil {
			s.OK, s.Meaning, s.Advice = false, err.Error(), "publish the document at its own address, with the same client_id, a client_name and redirect_uris"
		}
	case d.server.RegistrationEndpoint != "" && !o.NoRegistration:
		s.Got = "registration_endpoint: " + show(d.server.RegistrationEndpoint)
		s.Meaning = "this program registers itself at the first login"
	default:
		s.OK, s.Got = false, "no registration_endpoint"
		s.Meaning = "the authorization server lets no unknown program register"
		s.Advice = "register a client there and configure its id"
	}
	report.step(s)
	return s.OK
}

// checkDocument fetches the client id metadata document as an authorization server does.
func (a *Authorizer) checkDocument(ctx context.Context) error {
	address := a.options.ClientDocument
	ans, err := a.guard.get(ctx, address)
	if err != nil {
		return fmt.Errorf("oauth: client document: %w", err)
	}
	var doc struct {
		ID        string   `json:"client_id"`
		Name      string   `json:"client_name"`
		Redirects []string `json:"redirect_uris"`
	}
	if ans.status != http.StatusOK || decode(ans.body, &doc) != nil {
		return fmt.Errorf("oauth: client document %s: status %d without a JSON object", address, ans.status)
	}
	if doc.ID != address || doc.Name == "" || len(doc.Redirects) == 0 {
		return fmt.Errorf("oauth: client document %s: client_id is %s, client_name %s, %d redirect_uris", address, show(doc.ID), show(doc.Name), len(doc.Redirects))
	}
	return nil
}

// diagnoseToken gets a token and reports how.
func (a *Authorizer) diagnoseToken(ctx context.Context, d *discovery, scopes []string, report reporter) (*record, bool) {
	rec, err := a.current(ctx)
	how := "stored"
	if err == nil && (rec == nil || rec.Issuer != d.issuer) {
		if a.options.Browser == nil && a.options.Grant == nil {
			report.step(Step{
				Name: StepToken, OK: true, Sent: "", Got: "no stored token",
				Meaning: "everything is ready for a login at " + show(d.server.AuthorizationEndpoint),
				Advice:  "log in",
			})
			return nil, false
		}
		how = "new"
		var leave func()
		if leave, err = a.enter(ctx); err == nil {
			if rec, err = a.load(ctx); err == nil {
				if _, err = a.followIssuer(ctx, rec, d.issuer); err == nil {
					err = a.obtain(ctx, d, scopes)
				}
			}
			leave()
		}
		rec, _ = a.usable()
	}
	s := Step{Name: StepToken, Sent: "POST " + d.server.TokenEndpoint}
	if how == "stored" {
		s.Sent = ""
	}
	if err != nil || rec == nil {
		s.Got, s.Meaning = "no token", "the token request failed"
		if err != nil {
			s.Meaning = err.Error()
		}
		s.Advice = "see the error; log in again if the user refused or was too slow"
		report.step(s)
		return nil, false
	}
	s.OK, s.Got = true, how+" token"
	if !rec.Expires.IsZero() {
		s.Got += ", expires " + rec.Expires.UTC().Format("2006-01-02 15:04 MST")
	}
	s.Meaning = "scopes: " + quoteList(rec.Scopes)
	if rec.Refresh == "" {
		s.Meaning += "; without a refresh token, so a login is necessary after it expires"
	} else {
		s.Meaning += "; it is refreshed without a login"
	}
	report.step(s)
	return rec, true
}
