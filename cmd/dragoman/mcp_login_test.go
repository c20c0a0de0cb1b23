package main

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// protectedServer serves an MCP server that needs a token of the authorization server at the same
// address. It refuses logins without PKCE, unknown clients and used codes.
func protectedServer(t *testing.T) (endpoint string) {
	t.Helper()
	var mu sync.Mutex
	clients, codes, tokens := map[string]string{}, map[string]url.Values{}, map[string]bool{}
	mux := http.NewServeMux()
	web := httptest.NewServer(mux)
	t.Cleanup(web.Close)
	t.Cleanup(web.CloseClientConnections)
	answer := func(w http.ResponseWriter, status int, v any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v)
	}
	metadata := func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, map[string]any{"resource": web.URL + "/mcp", "authorization_servers": []string{web.URL}})
	}
	mux.HandleFunc("/.well-known/oauth-protected-resource", metadata)
	mux.HandleFunc("/.well-known/oauth-protected-resource/mcp", metadata)
	mux.HandleFunc("/.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, map[string]any{
			"issuer": web.URL, "authorization_endpoint": web.URL + "/authorize", "token_endpoint": web.URL + "/token", "registration_endpoint": web.URL + "/register",
			"revocation_endpoint": web.URL + "/revoke", "response_types_supported": []string{"code"}, "grant_types_supported": []string{"authorization_code"},
			"code_challenge_methods_supported": []string{"S256"}, "token_endpoint_auth_methods_supported": []string{"none"}, "authorization_response_iss_parameter_supported": true,
		})
	})
	mux.HandleFunc("POST /register", func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Redirects []string `json:"redirect_uris"`
		}
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || len(in.Redirects) != 1 {
			answer(w, http.StatusBadRequest, map[string]string{"error": "invalid_client_metadata"})
			return
		}
		mu.Lock()
		defer mu.Unlock()
		id := rand.Text()
		clients[id] = in.Redirects[0]
		answer(w, http.StatusCreated, map[string]any{"client_id": id, "redirect_uris": in.Redirects, "token_endpoint_auth_method": "none"})
	})
	mux.HandleFunc("GET /authorize", func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		q := r.URL.Query()
		if clients[q.Get("client_id")] == "" || clients[q.Get("client_id")] != q.Get("redirect_uri") || q.Get("code_challenge_method") != "S256" || q.Get("resource") != web.URL+"/mcp" {
			answer(w, http.StatusBadRequest, map[string]string{"error": "invalid_request"})
			return
		}
		code := rand.Text()
		codes[code] = q
		http.Redirect(w, r, q.Get("redirect_uri")+"?"+url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {web.URL}}.Encode(), http.StatusFound)
	})
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		q := codes[r.FormValue("code")]
		delete(codes, r.FormValue("code"))
		sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
		if q == nil || q.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(sum[:]) || q.Get("client_id") != r.FormValue("client_id") {
			answer(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant"})
			return
		}
		token := "token-" + rand.Text()
		tokens[token] = true
		answer(w, http.StatusOK, map[string]any{"access_token": token, "token_type": "Bearer", "expires_in": 3600})
	})
	mux.HandleFunc("POST /revoke", func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		delete(tokens, r.FormValue("token"))
	})
	s := sdkTestServer("weather")
	inner := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, &sdk.StreamableHTTPOptions{Stateless: true})
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		ok := tokens[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
		mu.Unlock()
		if !ok {
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+web.URL+`/.well-known/oauth-protected-resource/mcp"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(w, r)
	})
	return web.URL + "/mcp"
}

func TestM8_LoginStoresATokenThatOtherCommandsUse(t *testing.T) {
	_, do := mcpFolder(t)
	endpoint := protectedServer(t)
	if r := do("mcp", "add", "weather", endpoint); r.code != exitOK {
		t.Fatalf("%+v", r)
	}
	r := do("mcp", "accept", "weather")
	if r.code != exitFailed || !strings.Contains(r.err, "dragoman mcp login weather") {
		t.Errorf("%+v", r)
	}
	r = do("mcp", "doctor", "weather")
	if r.code != exitFailed {
		t.Errorf("%+v", r)
	}
	has(t, r.out, "the server requires authorization", "ok    pkce", "this program registers itself", "do:     log in with: dragoman mcp login weather")

	login(t, "mcp", "login", "weather", "--no-browser")

	if r = do("mcp", "accept", "weather"); r.code != exitOK {
		t.Fatalf("%+v", r)
	}
	r = do("run", "--no-session", "--mcp", ".mcp.json", "--allow", "get_weather", `Call get_weather with city "Oslo"`)
	has(t, r.out, "rain in Oslo")
	r = do("mcp", "doctor", "weather")
	if r.code != exitOK {
		t.Errorf("%+v", r)
	}
	has(t, r.out, "the server accepts the token", "1 tool: 1 accepted, 0 held")
	if strings.Contains(r.out, "token-") {
		t.Errorf("a token is shown: %s", r.out)
	}
	config, err := os.UserConfigDir()
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(config, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte("token-")) {
			t.Errorf("%s has a token in plain text", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}

	if r = do("mcp", "logout", "weather"); r.code != exitOK {
		t.Errorf("%+v", r)
	}
	if r = do("mcp", "test", "weather"); r.code != exitFailed || !strings.Contains(r.err, "dragoman mcp login weather") {
		t.Errorf("%+v", r)
	}
}

// login runs a command line, and opens the page that it prints.
func login(t *testing.T, args ...string) {
	t.Helper()
	screen, stderr := io.Pipe()
	var out bytes.Buffer
	done := make(chan int, 1)
	go func() {
		code := run(args, strings.NewReader(""), &out, stderr)
		_ = stderr.Close()
		done <- code
	}()
	var seen strings.Builder
	lines := bufio.NewScanner(screen)
	for lines.Scan() {
		seen.WriteString(lines.Text() + "\n")
		page, ok := strings.CutPrefix(lines.Text(), "  http")
		if !ok {
			continue
		}
		resp, err := http.Get("http" + page)
		if err != nil {
			t.Error(err)
			continue
		}
		_ = resp.Body.Close()
	}
	if code := <-done; code != exitOK || !strings.Contains(out.String(), "Logged in") {
		t.Fatalf("%d\n%s%s", code, seen.String(), out.String())
	}
}
