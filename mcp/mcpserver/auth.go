package mcpserver

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Principal is the authorized user or program behind a request.
type Principal struct {
	// ID identifies the principal. Sessions, tasks and open questions belong to it.
	ID     string
	Scopes []string
	// Audience lists the resources that the token was issued for. It must contain
	// [Auth.Resource].
	Audience []string
	// Expires is the end of the token; zero means unknown.
	Expires time.Time
	// Metadata is passed to policies and handlers with each call.
	Metadata map[string]string
}

// Auth makes the server a protected resource of OAuth: every request over HTTP needs a bearer
// token or a key.
type Auth struct {
	// Resource is the public URL of the endpoint, such as "https://tools.example.com/mcp".
	// Tokens must be issued for it.
	Resource string
	// AuthorizationServers are the issuers that give tokens to clients.
	AuthorizationServers []string
	// Verify returns the principal of a token. An error that wraps [ErrToken] refuses the
	// token; other errors are failures of the server.
	Verify func(ctx context.Context, token string) (Principal, error)
	// Keys are fixed keys, for clients without OAuth.
	Keys []Key
	// Scopes are needed for every request, and ToolScopes, by tool name, in addition for calls
	// of a tool.
	Scopes     []string
	ToolScopes map[string][]string
}

// Key is a fixed key. Clients send it as a bearer token.
type Key struct {
	// Name becomes the id of the principal.
	Name string
	// Hash is the SHA-256 of the key; see [HashKey]. The key must be random.
	Hash   [sha256.Size]byte
	Scopes []string
}

// HashKey returns the hash of a key, for [Key].
func HashKey(key string) [sha256.Size]byte { return sha256.Sum256([]byte(key)) }

// ErrToken reports that a token is not valid.
var ErrToken = errors.New("the token is not valid")

func (a *Auth) check() error {
	var wrong []error
	if a.Verify == nil && len(a.Keys) == 0 {
		wrong = append(wrong, errors.New("mcpserver: Options.Auth has neither Verify nor Keys: no request could be authorized"))
	}
	u, err := url.Parse(a.Resource)
	if a.Verify != nil || a.Resource != "" {
		if err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") || u.Fragment != "" {
			wrong = append(wrong, fmt.Errorf("mcpserver: Auth.Resource %q is not the URL of an endpoint", a.Resource))
		}
	}
	if a.Verify != nil && len(a.AuthorizationServers) == 0 {
		wrong = append(wrong, errors.New("mcpserver: Auth.AuthorizationServers is empty: clients could not get a token"))
	}
	for _, k := range a.Keys {
		if k.Name == "" || k.Hash == [sha256.Size]byte{} || k.Hash == HashKey("") {
			wrong = append(wrong, fmt.Errorf("mcpserver: the key %q needs a name and the hash of a key", k.Name))
		}
	}
	return errors.Join(wrong...)
}

// authorize returns the principal of a request. If it is not authorized, authorize writes the
// response.
func (s *Server) authorize(w http.ResponseWriter, r *http.Request) (Principal, bool) {
	a := s.o.Auth
	if a == nil {
		if s.o.Identify != nil {
			return s.o.Identify(r), true
		}
		return Principal{}, true
	}
	if r.URL.Query().Has("access_token") {
		http.Error(w, "send the token in the header Authorization, not in the URL", http.StatusBadRequest)
		return Principal{}, false
	}
	values := r.Header.Values("Authorization")
	if len(values) == 0 {
		s.challenge(w, http.StatusUnauthorized, "", a.Scopes)
		return Principal{}, false
	}
	scheme, token, ok := strings.Cut(values[0], " ")
	token = strings.TrimSpace(token)
	if len(values) > 1 || !ok || !strings.EqualFold(scheme, "Bearer") || token == "" {
		s.challenge(w, http.StatusUnauthorized, "invalid_token", a.Scopes)
		return Principal{}, false
	}
	p, err := s.principal(r.Context(), token)
	switch {
	case errors.Is(err, ErrToken):
		s.challenge(w, http.StatusUnauthorized, "invalid_token", a.Scopes)
		return p, false
	case err != nil:
		s.log.Error("mcpserver: a token could not be verified", "error", err)
		http.Error(w, "the token could not be verified", http.StatusInternalServerError)
		return p, false
	}
	return p, s.scoped(w, p, a.Scopes)
}

// principal verifies a token.
func (s *Server) principal(ctx context.Context, token string) (Principal, error) {
	a := s.o.Auth
	hash := HashKey(token)
	found := -1
	for i := range a.Keys { // all of them, so that the time does not tell
		if subtle.ConstantTimeCompare(hash[:], a.Keys[i].Hash[:]) == 1 {
			found = i
		}
	}
	if found >= 0 {
		return Principal{ID: a.Keys[found].Name, Scopes: a.Keys[found].Scopes}, nil
	}
	if a.Verify == nil {
		return Principal{}, ErrToken
	}
	p, err := a.Verify(ctx, token)
	switch {
	case err != nil:
		return Principal{}, err
	case p.ID == "":
		return Principal{}, fmt.Errorf("%w: it names no principal", ErrToken)
	case !slices.ContainsFunc(p.Audience, func(aud string) bool { return sameResource(aud, a.Resource) }):
		return Principal{}, fmt.Errorf("%w: it was issued for another resource", ErrToken)
	case !p.Expires.IsZero() && s.now().After(p.Expires):
		return Principal{}, fmt.Errorf("%w: it has expired", ErrToken)
	}
	return p, nil
}

// sameResource compares identifiers of a resource. One slash at the end does not count.
func sameResource(a, b string) bool {
	return strings.TrimSuffix(a, "/") == strings.TrimSuffix(b, "/")
}

// scoped checks that a principal has scopes. If not, it writes the response, which names all of
// them.
func (s *Server) scoped(w http.ResponseWriter, p Principal, need []string) bool {
	for _, scope := range need {
		if !slices.Contains(p.Scopes, scope) {
			s.challenge(w, http.StatusForbidden, "insufficient_scope", need)
			return false
		}
	}
	return true
}

func (s *Server) challenge(w http.ResponseWriter, status int, code string, scopes []string) {
	var params []string
	if code != "" {
		params = append(params, fmt.Sprintf("error=%q", code))
	}
	if u := s.metadataURL(); u != "" {
		params = append(params, fmt.Sprintf("resource_metadata=%q", u))
	}
	if len(scopes) > 0 {
		params = append(params, fmt.Sprintf("scope=%q", strings.Join(scopes, " ")))
	}
	value := "Bearer"
	if len(params) > 0 {
		value += " " + strings.Join(params, ", ")
	}
	w.Header().Set("WWW-Authenticate", value)
	http.Error(w, http.StatusText(status), status)
}

const wellKnown = "/.well-known/oauth-protected-resource"

// metadataURL returns the URL of the metadata of the protected resource.
func (s *Server) metadataURL() string {
	a := s.o.Auth
	if a == nil || a.Resource == "" {
		return ""
	}
	u, err := url.Parse(a.Resource)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host + wellKnown + strings.TrimSuffix(u.EscapedPath(), "/")
}

// Metadata returns a handler for the metadata of the protected resource (RFC 9728). Mount it at
// "/.well-known/oauth-protected-resource" and below. The handler of [Server.Handler] serves it,
// too, if it is mounted at "/".
func (s *Server) Metadata() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", "*")
		a := s.o.Auth
		if a == nil || a.Resource == "" {
			http.NotFound(w, r)
			return
		}
		u, err := url.Parse(a.Resource)
		if path := strings.TrimSuffix(r.URL.Path, "/"); err != nil || path != wellKnown && path != wellKnown+strings.TrimSuffix(u.Path, "/") {
			http.NotFound(w, r)
			return
		}
		switch r.Method {
		case http.MethodGet, http.MethodHead:
		case http.MethodOptions:
			w.Header().Set("Access-Control-Allow-Methods", "GET")
			w.WriteHeader(http.StatusNoContent)
			return
		default:
			w.Header().Set("Allow", "GET, HEAD, OPTIONS")
			http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
			return
		}
		scopes := slices.Clone(a.Scopes)
		for _, more := range a.ToolScopes {
			scopes = append(scopes, more...)
		}
		slices.Sort(scopes)
		doc := map[string]any{
			"resource": a.Resource, "resource_name": s.o.Name,
			"bearer_methods_supported": []string{"header"},
		}
		if len(a.AuthorizationServers) > 0 {
			doc["authorization_servers"] = a.AuthorizationServers
		}
		if scopes = slices.Compact(scopes); len(scopes) > 0 {
			doc["scopes_supported"] = scopes
		}
		b, err := json.Marshal(doc)
		if err != nil {
			http.Error(w, "internal error", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(b)
	})
}
