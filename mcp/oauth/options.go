package oauth

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// Options configure an [Authorizer]. Only Server is required.
type Options struct {
	// Server is the URL of the MCP endpoint.
	Server string
	// Principal separates the tokens of several users of one program; it is empty for a
	// program with one user.
	Principal string
	// Store keeps tokens and registrations; nil keeps them in memory.
	Store Store
	// Network limits the addresses that may be contacted.
	Network Network

	// Issuer pins the authorization server. Empty means the first one that the server names.
	Issuer string
	// Scopes are requested in addition to those that the server asks for. If the server asks
	// for none in its challenge, they replace the scopes of its metadata.
	Scopes []string
	// NoRefresh leaves out the scope offline_access, which is otherwise requested if the
	// authorization server offers it.
	NoRefresh bool

	// Client is a client that was registered in advance.
	Client Client
	// ClientDocument is the https URL of a client id metadata document, which serves as the
	// client id where the authorization server supports it. The document must list the
	// redirect URIs of this program.
	ClientDocument string
	// ClientName is shown to the user by authorization servers where this program registers
	// itself; empty means "Dragoman".
	ClientName string
	// NoRegistration forbids dynamic registration.
	NoRegistration bool

	// Grant gets tokens without a browser: [ClientCredentials], [TokenExchange],
	// [Enterprise] or [Workload]. Nil means a login in a browser.
	Grant Grant

	// Browser shows a page to the user, for example with [OpenBrowser]. It returns without
	// waiting for the user. The address is always an http or https URL. Nil means that no
	// login is possible; what needs one fails with [ErrLoginRequired].
	Browser func(ctx context.Context, address string) error
	// Confirm is called before Browser, to show where the login goes; an error refuses it.
	Confirm func(ctx context.Context, login Login) error
	// Redirect receives the response of a login; nil means [Loopback] with its defaults.
	Redirect func(ctx context.Context) (Receiver, error)
	// LoginTimeout limits a login; zero means five minutes.
	LoginTimeout time.Duration

	// RequireDPoP accepts only tokens that are bound to a key of this program (RFC 9449).
	// Without it, DPoP is used if the server asks for it.
	RequireDPoP bool
}

// Client is an OAuth client that was registered with an authorization server in advance.
type Client struct {
	ID, Secret string
	// Key signs assertions in place of a secret (private_key_jwt): an RSA key (RS256), or an
	// ECDSA key on the curve P-256 (ES256). See [ParseKey].
	Key crypto.Signer
	// KeyID is sent with assertions; it may be empty.
	KeyID string
	// AuthMethod is client_secret_basic, client_secret_post, private_key_jwt or none. Empty
	// chooses one that the authorization server supports.
	AuthMethod string
	// Issuer is the authorization server that the client is registered with. The client is
	// never used with another one. Empty binds it to the first that the server names, which
	// then receives the secret: set it if the server is not trusted.
	Issuer string
}

// Login describes a login before it starts.
type Login struct {
	Server   string   // the MCP server that asks for it
	Issuer   string   // the authorization server
	Host     string   // of the page that opens
	URL      string   // the page
	ClientID string   // as which this program acts
	Scopes   []string // that are requested
}

const (
	defaultLoginTimeout = 5 * time.Minute
	defaultClientName   = "Dragoman"
)

// New returns an authorizer for one server and one principal. It contacts nothing.
func New(o Options) (*Authorizer, error) {
	u, err := url.Parse(o.Server)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" {
		return nil, fmt.Errorf("oauth: server %q: use a URL that begins with https://", o.Server)
	}
	if u.User != nil {
		return nil, fmt.Errorf("oauth: server %s: a URL with a user name is not supported", u.Host)
	}
	u.Fragment, u.RawFragment = "", ""
	if o.ClientDocument != "" {
		if err := checkClientDocument(o.ClientDocument); err != nil {
			return nil, err
		}
	}
	if err := o.Client.validate(); err != nil {
		return nil, err
	}
	if o.Client.Issuer != "" && o.Issuer != "" && o.Client.Issuer != o.Issuer {
		return nil, fmt.Errorf("oauth: the client is registered with %q, the pinned issuer is %q", o.Client.Issuer, o.Issuer)
	}
	if o.Grant != nil {
		if err := o.Grant.validate(&o); err != nil {
			return nil, err
		}
	}
	named := []string{o.Issuer, o.Client.Issuer}
	if o.Grant != nil {
		named = append(named, o.Grant.endpoint())
	}
	g, err := newGuard(u, o.Network, named...)
	if err != nil {
		return nil, err
	}
	if o.Store == nil {
		o.Store = MemoryStore()
	}
	if o.LoginTimeout <= 0 {
		o.LoginTimeout = defaultLoginTimeout
	}
	if o.ClientName == "" {
		o.ClientName = defaultClientName
	}
	if o.Redirect == nil {
		o.Redirect = Loopback{}.Listen
	}
	o.Scopes = cleanScopes(o.Scopes)
	return &Authorizer{
		options: o, server: u, guard: g, now: time.Now,
		turn: make(chan struct{}, 1), nonces: map[string]string{},
	}, nil
}

// checkClientDocument checks the form of a client id metadata document's URL.
func checkClientDocument(s string) error {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.Fragment != "" || strings.Trim(u.Path, "/") == "" {
		return fmt.Errorf("oauth: client document %q: use an https URL with a path", s)
	}
	return nil
}

func (c Client) validate() error {
	switch {
	case c.ID == "" && (c.Secret != "" || c.Key != nil || c.AuthMethod != ""):
		return errors.New("oauth: the client has credentials and no ID")
	case c.Secret != "" && c.Key != nil:
		return errors.New("oauth: the client has a secret and a key: use one of them")
	}
	if c.Key != nil {
		if _, err := signingAlgorithm(c.Key); err != nil {
			return err
		}
	}
	switch c.AuthMethod {
	case "", methodNone:
	case methodBasic, methodPost:
		if c.Secret == "" {
			return fmt.Errorf("oauth: %s needs a client secret", c.AuthMethod)
		}
	case methodKey:
		if c.Key == nil {
			return fmt.Errorf("oauth: %s needs a key", c.AuthMethod)
		}
	default:
		return fmt.Errorf("oauth: unknown authentication method %q of the client", c.AuthMethod)
	}
	return nil
}
