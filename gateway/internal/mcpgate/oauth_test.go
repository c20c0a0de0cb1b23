package mcpgate_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dragoman-go/dragoman/mcp"
	"github.com/dragoman-go/dragoman/mcp/oauth"
)

// The gateway gets its own token for a server. Neither the key of the client nor the challenge of
// the server crosses the gateway.
func TestTheGatewayGetsItsOwnTokensForAServer(t *testing.T) {
	f := newFake(r2511)
	var tokens, refused atomic.Int32
	var as, web *httptest.Server
	as = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case strings.HasPrefix(r.URL.Path, "/.well-known/oauth-authorization-server"):
			_ = json.NewEncoder(w).Encode(object{"issuer": as.URL, "token_endpoint": as.URL + "/token", "authorization_endpoint": as.URL + "/authorize", "response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"}, "token_endpoint_auth_methods_supported": []string{"client_secret_basic"}, "grant_types_supported": []string{"client_credentials"}})
		case r.URL.Path == "/token":
			id, secret, ok := r.BasicAuth()
			if !ok || id != "gw" || secret != "s3cret" || r.FormValue("grant_type") != "client_credentials" {
				w.WriteHeader(http.StatusUnauthorized)
				_ = json.NewEncoder(w).Encode(object{"error": "invalid_client"})
				return
			}
			tokens.Add(1)
			_ = json.NewEncoder(w).Encode(object{"access_token": "upstream-token", "token_type": "Bearer", "expires_in": 3600})
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer as.Close()
	web = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, "/.well-known/oauth-protected-resource"):
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(object{"resource": web.URL + "/mcp", "authorization_servers": []string{as.URL}})
		case r.Header.Get("Authorization") != "Bearer upstream-token":
			refused.Add(1)
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+web.URL+`/.well-known/oauth-protected-resource/mcp"`)
			w.WriteHeader(http.StatusUnauthorized)
		default:
			f.ServeHTTP(w, r)
		}
	}))
	defer web.Close()
	defer web.CloseClientConnections()
	srv := mcp.HTTP(web.URL + "/mcp").As("fake")
	srv.Approval = map[string]string{"*": "never"}
	c := keyed([]string{"*"}, nil, srv)
	c.MCP.Authorize = func(s mcp.Server) (mcp.Authorizer, error) {
		return oauth.New(oauth.Options{Server: s.URL, Client: oauth.Client{ID: "gw", Secret: "s3cret", Issuer: as.URL}, Grant: oauth.ClientCredentials{}, Network: oauth.Network{AllowLoopback: true}})
	}
	s := serve(t, c)
	x := s.connect("/mcp", r2607, nil, secretOfA)
	if r := x.call("mcp_fake__echo", object{"text": "x"}); r.texts() != "said x" {
		t.Errorf("%v\n%s", r, s.log)
	}
	if tokens.Load() == 0 || refused.Load() == 0 {
		t.Errorf("%d tokens, %d challenges", tokens.Load(), refused.Load())
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, h := range f.headers {
		if h.Get("Authorization") != "Bearer upstream-token" {
			t.Errorf("%v", h)
		}
	}
}
