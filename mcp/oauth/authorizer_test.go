package oauth

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestLoginOnceThenStoredToken(t *testing.T) {
	w := newWorld(t)
	store, err := NewFileStore(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	w.o.Store = store
	w.mustCall(w.authorizer())
	w.mustCall(w.authorizer()) // another process would do the same
	if n := w.as.count(&w.as.logins); n != 1 {
		t.Errorf("%d logins, want 1", n)
	}
	other := w.o
	other.Principal = "another user"
	a, err := New(other)
	if err != nil {
		t.Fatal(err)
	}
	a.now = w.as.clock.Now
	if token, err := a.Token(t.Context()); token != "" || err != nil {
		t.Errorf("another principal has the token %q, error %v", token, err)
	}
}

func TestChallengeAndTokenWithoutRoundTripper(t *testing.T) {
	w := newWorld(t)
	a := w.authorizer()
	if token, err := a.Token(t.Context()); token != "" || err != nil {
		t.Fatalf("before the login: token %q, error %v", token, err)
	}
	resp, err := http.Post(w.rs.url, "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if retry, err := a.Challenge(t.Context(), resp); !retry || err != nil {
		t.Fatalf("Challenge returned %v, %v", retry, err)
	}
	token, err := a.Token(t.Context())
	if err != nil || w.as.lookup(token) == nil {
		t.Errorf("after the login: token %q, error %v", token, err)
	}
}

func TestNoBrowserMeansLoginRequired(t *testing.T) {
	w := newWorld(t)
	w.o.Browser = nil
	_, err := call(t, w.authorizer(), w.rs.url)
	if !errors.Is(err, ErrLoginRequired) {
		t.Errorf("error %v", err)
	}
	if w.as.count(&w.as.registrations) != 0 {
		t.Error("registered although no login is possible")
	}
}

func TestRefreshBeforeExpiry(t *testing.T) {
	w := newWorld(t)
	a := w.authorizer()
	w.mustCall(a)
	first, _ := a.Token(t.Context())
	w.as.clock.Move(time.Hour - refreshEarly - time.Second)
	if token, _ := a.Token(t.Context()); token != first {
		t.Error("refreshed too early")
	}
	w.as.clock.Move(2 * time.Second)
	second, err := a.Token(t.Context())
	if err != nil || second == first || w.as.lookup(second) == nil {
		t.Errorf("token %q, error %v", second, err)
	}
	w.mustCall(a)
	if w.as.count(&w.as.logins) != 1 {
		t.Error("logged in again")
	}
}

func TestShortLivedTokenIsNotRefreshedEachTime(t *testing.T) {
	w := newWorld(t)
	w.as.lifetime = 20
	a := w.authorizer()
	w.mustCall(a)
	w.mustCall(a)
	if n := w.as.count(&w.as.refreshes); n != 0 {
		t.Errorf("%d refreshes of a new token", n)
	}
}

func TestValidTokenDoesNotWaitForALogin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, err := New(Options{Server: "https://mcp.example/mcp"})
		if err != nil {
			t.Fatal(err)
		}
		a.keep(&record{Access: "old", Refresh: "r", Issued: time.Now(), Expires: time.Now().Add(time.Minute)})
		time.Sleep(55 * time.Second) // the refresh is due
		leave, err := a.enter(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer leave() // a login that lasts
		begin := time.Now()
		if token, err := a.Token(t.Context()); token != "old" || err != nil {
			t.Errorf("token %q, error %v", token, err)
		}
		if waited := time.Since(begin); waited > refreshWait {
			t.Errorf("waited %s", waited)
		}
	})
}

func TestEndedGrantMeansNewLogin(t *testing.T) {
	w := newWorld(t)
	a := w.authorizer()
	w.mustCall(a)
	w.as.mu.Lock()
	w.as.grants[0].revoked = true
	clear(w.as.grants[0].access)
	w.as.mu.Unlock()
	w.mustCall(a)
	if n := w.as.count(&w.as.logins); n != 2 {
		t.Errorf("%d logins, want 2", n)
	}
}

func TestFailedRefreshKeepsTheTokenWhileItIsValid(t *testing.T) {
	w := newWorld(t)
	a := w.authorizer()
	w.mustCall(a)
	first, _ := a.Token(t.Context())
	w.as.mu.Lock()
	w.as.tokenFail = func(url.Values) (int, string) { return 503, "internal-secret" }
	w.as.mu.Unlock()
	w.as.clock.Move(time.Hour - 10*time.Second)
	if token, err := a.Token(t.Context()); token != first || err != nil {
		t.Errorf("token %q, error %v", token, err)
	}
	w.as.clock.Move(time.Minute)
	_, err := a.Token(t.Context())
	if err == nil || strings.Contains(err.Error(), "internal-secret") || !strings.Contains(err.Error(), "503") {
		t.Errorf("error %v", err)
	}
	w.as.mu.Lock()
	w.as.tokenFail = nil
	w.as.mu.Unlock()
	if token, err := a.Token(t.Context()); w.as.lookup(token) == nil || err != nil {
		t.Errorf("the refresh token is lost: token %q, error %v", token, err)
	}
}

func TestRevokedAccessTokenIsRefreshed(t *testing.T) {
	w := newWorld(t)
	a := w.authorizer()
	w.mustCall(a)
	w.as.revokeAccess()
	w.mustCall(a)
	if l, r := w.as.count(&w.as.logins), w.as.count(&w.as.refreshes); l != 1 || r != 1 {
		t.Errorf("%d logins and %d refreshes, want 1 and 1", l, r)
	}
}

func TestRejectedNewTokenEndsWithAnError(t *testing.T) {
	w := newWorld(t)
	w.rs.rejectAll = true
	_, err := call(t, w.authorizer(), w.rs.url)
	if !errors.Is(err, ErrRejected) {
		t.Errorf("error %v", err)
	}
	if n := w.as.count(&w.as.logins); n != 1 {
		t.Errorf("%d logins, want 1", n)
	}
}

func TestPitfallK23_ResourceIdentifier(t *testing.T) {
	for _, tc := range []struct {
		name, configured, document string // after the origin
		ok                         bool
	}{
		{"equal", "/mcp", "/mcp", true},
		{"slash in the document", "/mcp", "/mcp/", true},
		{"slash in the URL", "/mcp/", "/mcp", true},
		{"origin", "/mcp", "", true},
		{"origin with slash", "/mcp", "/", true},
		{"prefix", "/mcp/v1/endpoint", "/mcp/v1", true},
		{"part of a segment", "/mcpx", "/mcp", false},
		{"longer path", "/mcp", "/mcp/admin", false},
		{"sibling", "/mcp", "/mcp2", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t)
			w.rs.resource = w.rs.srv.URL + tc.document
			w.as.resources = []string{w.rs.resource}
			w.o.Server = w.rs.srv.URL + tc.configured
			status, err := call(t, w.authorizer(), w.o.Server)
			if tc.ok {
				// The authorization server accepts only the string of the document.
				if err != nil || status != 200 {
					t.Errorf("status %d, error %v", status, err)
				}
				return
			}
			if !errors.Is(err, ErrResourceMismatch) || !strings.Contains(err.Error(), w.rs.resource) || !strings.Contains(err.Error(), w.o.Server) {
				t.Errorf("the error must name both strings: %v", err)
			}
			if w.as.count(&w.as.logins) != 0 {
				t.Error("logged in for another resource")
			}
		})
	}
}

func TestMetadataForAnotherHostIsRefused(t *testing.T) {
	for _, resource := range []string{
		"https://evil.example/mcp", "http://127.0.0.1:1/mcp", "mcp", "http://user@127.0.0.1/mcp", "",
	} {
		w := newWorld(t)
		w.rs.resource = resource
		if _, err := call(t, w.authorizer(), w.rs.url); err == nil || w.as.count(&w.as.logins) != 0 {
			t.Errorf("resource %q: error %v", resource, err)
		}
	}
}

func TestPitfallK24_ForgottenRegistration(t *testing.T) {
	t.Run("stored per issuer and redirect URI", func(t *testing.T) {
		w := newWorld(t)
		w.mustCall(w.authorizer())
		w.o.Principal = "second"
		w.mustCall(w.authorizer())
		if n := w.as.count(&w.as.registrations); n != 1 {
			t.Errorf("%d registrations for one redirect URI", n)
		}
		w.o.Principal, w.o.Redirect = "third", Loopback{Ports: []int{freePort(t)}}.Listen
		w.mustCall(w.authorizer())
		if n := w.as.count(&w.as.registrations); n != 2 {
			t.Errorf("%d registrations for two redirect URIs", n)
		}
	})
	t.Run("error page and no redirect", func(t *testing.T) {
		w := newWorld(t)
		w.mustCall(w.authorizer())
		w.as.forgetClients()
		w.o.Principal = "second"
		a := w.authorizer()
		ctx, cancel := context.WithCancelCause(t.Context())
		a.options.Browser = func(ctx context.Context, address string) error {
			req, _ := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
			resp, err := http.DefaultClient.Do(req)
			if err != nil || resp.StatusCode != http.StatusBadRequest {
				t.Errorf("the authorization server knows the client: %v", err)
			}
			if err == nil {
				resp.Body.Close()
			}
			cancel(ErrLoginTimeout) // the user waits until the end
			return nil
		}
		if err := a.Login(ctx); !errors.Is(err, ErrLoginTimeout) {
			t.Fatalf("error %v", err)
		}
		a.options.Browser = browser
		if err := a.Login(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := w.as.count(&w.as.registrations); n != 2 {
			t.Errorf("%d registrations, want 2", n)
		}
	})
	t.Run("invalid_client at the token endpoint", func(t *testing.T) {
		w := newWorld(t)
		w.mustCall(w.authorizer())
		w.as.mu.Lock()
		w.as.callback = func(url.Values) { clear(w.as.clients); w.as.callback = nil }
		w.as.mu.Unlock()
		w.o.Principal = "second"
		w.mustCall(w.authorizer()) // registers again within one login
		if r, l := w.as.count(&w.as.registrations), w.as.count(&w.as.logins); r != 2 || l != 3 {
			t.Errorf("%d registrations and %d logins", r, l)
		}
	})
	t.Run("a new registration is not repeated", func(t *testing.T) {
		w := newWorld(t)
		w.as.mu.Lock()
		w.as.callback = func(url.Values) { clear(w.as.clients) }
		w.as.mu.Unlock()
		if _, err := call(t, w.authorizer(), w.rs.url); err == nil {
			t.Error("no error")
		}
		if n := w.as.count(&w.as.registrations); n != 1 {
			t.Errorf("%d registrations, want 1", n)
		}
	})
	t.Run("refresh", func(t *testing.T) {
		w := newWorld(t)
		a := w.authorizer()
		w.mustCall(a)
		w.as.forgetClients()
		w.as.clock.Move(2 * time.Hour)
		if token, err := a.Token(t.Context()); token != "" || err != nil {
			t.Errorf("token %q, error %v", token, err)
		}
		w.mustCall(a)
		if n := w.as.count(&w.as.registrations); n != 2 {
			t.Errorf("%d registrations, want 2", n)
		}
	})
	t.Run("all ports in use", func(t *testing.T) {
		w := newWorld(t)
		port := freePort(t)
		hold, err := Loopback{Ports: []int{port}}.Listen(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer hold.Close()
		w.o.Redirect = Loopback{Ports: []int{port}}.Listen
		w.mustCall(w.authorizer())
		w.o.Principal = "second"
		w.mustCall(w.authorizer())
		if n := w.as.count(&w.as.registrations); n != 2 {
			t.Errorf("%d registrations: one for an ephemeral port must not be used again", n)
		}
	})
}

func TestPitfallK25_OneRefreshInOneProcess(t *testing.T) {
	w := newWorld(t)
	w.mustCall(w.authorizer())
	w.as.clock.Move(2 * time.Hour)
	var group sync.WaitGroup
	var failed atomic.Int32
	all := []*Authorizer{w.authorizer(), w.authorizer(), w.authorizer()} // share the store
	for i := range 30 {
		group.Go(func() {
			token, err := all[i%len(all)].Token(t.Context())
			if err != nil || w.as.lookup(token) == nil {
				failed.Add(1)
			}
		})
	}
	group.Wait()
	if n := w.as.count(&w.as.refreshes); n != 1 || failed.Load() > 0 {
		t.Errorf("%d refreshes, %d failed calls", n, failed.Load())
	}
}

func TestPitfallK25_OneChallengeInOneProcess(t *testing.T) {
	w := newWorld(t)
	a := w.authorizer()
	w.mustCall(a)
	w.as.revokeAccess()
	var group sync.WaitGroup
	for range 10 {
		group.Go(func() {
			if status, err := call(t, a, w.rs.url); err != nil || status != 200 {
				t.Errorf("status %d, error %v", status, err)
			}
		})
	}
	group.Wait()
	if l, r := w.as.count(&w.as.logins), w.as.count(&w.as.refreshes); l != 1 || r != 1 {
		t.Errorf("%d logins and %d refreshes, want 1 and 1", l, r)
	}
}

func TestPitfallK25_TokenIsReadAgainBeforeRefresh(t *testing.T) {
	w := newWorld(t)
	one, two := w.authorizer(), w.authorizer()
	w.mustCall(one)
	w.mustCall(two) // both have the same refresh token in memory
	for _, a := range []*Authorizer{one, two, one} {
		w.as.clock.Move(2 * time.Hour)
		for _, user := range []*Authorizer{a, one, two} {
			if token, err := user.Token(t.Context()); err != nil || w.as.lookup(token) == nil {
				t.Errorf("token %q, error %v", token, err)
			}
		}
	}
	if r, l := w.as.count(&w.as.refreshes), w.as.count(&w.as.logins); r != 3 || l != 1 {
		t.Errorf("%d refreshes and %d logins, want 3 and 1", r, l)
	}
}

const refreshChild = "DRAGOMAN_TEST_REFRESH"

func TestPitfallK25_OneRefreshAmongProcesses(t *testing.T) {
	if server := os.Getenv(refreshChild); server != "" {
		store, err := NewFileStore(os.Getenv(refreshChild+"_DIR"), nil)
		if err != nil {
			t.Fatal(err)
		}
		a, err := New(Options{Server: server, Store: store})
		if err != nil {
			t.Fatal(err)
		}
		if token, err := a.Token(t.Context()); token == "" || err != nil {
			t.Fatalf("token %q, error %v", token, err)
		}
		return
	}
	dir := t.TempDir()
	w := newWorld(t)
	store, err := NewFileStore(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.o.Store = store
	w.mustCall(w.authorizer()) // the stopped clock is in the past: expired for the children
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestPitfallK25_OneRefreshAmongProcesses$")
			cmd.Env = append(os.Environ(), refreshChild+"="+w.o.Server, refreshChild+"_DIR="+dir)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	group.Wait()
	if n := w.as.count(&w.as.refreshes); n != 1 {
		t.Errorf("%d refreshes by 4 processes, want 1", n)
	}
}

func TestPitfallK26_NoChallengeOrAForeignOne(t *testing.T) {
	foreign := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("metadata was requested from another origin")
	}))
	t.Cleanup(foreign.Close)
	for _, tc := range []struct{ name, challenge, document string }{
		{"no challenge, path", "", "/.well-known/oauth-protected-resource/mcp"},
		{"no challenge, root", "", "/.well-known/oauth-protected-resource"},
		{"no metadata in the challenge", "Bearer", "/.well-known/oauth-protected-resource"},
		{"foreign origin", `Bearer resource_metadata="` + foreign.URL + `/x"`, "/.well-known/oauth-protected-resource"},
		{"missing document", `Bearer resource_metadata="ORIGIN/gone"`, "/.well-known/oauth-protected-resource/mcp"},
		{"among others", `Negotiate a/b+c==, Basic realm="a, b", Bearer resource_metadata="ORIGIN/here"`, "/here"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t)
			w.rs.challenge = func(int, string, []string) string {
				return strings.ReplaceAll(tc.challenge, "ORIGIN", w.rs.srv.URL)
			}
			w.rs.documents = map[string]string{
				tc.document: `{"resource":"` + w.rs.url + `","authorization_servers":["` + w.as.issuer + `"]}`,
			}
			w.mustCall(w.authorizer())
		})
	}
	t.Run("foreign response", func(t *testing.T) {
		w := newWorld(t)
		a := w.authorizer()
		req := httptest.NewRequest(http.MethodPost, "https://elsewhere.example/mcp", nil)
		resp := &http.Response{StatusCode: http.StatusUnauthorized, Header: http.Header{}, Request: req}
		if retry, err := a.Challenge(t.Context(), resp); retry || err != nil {
			t.Errorf("retry %v, error %v", retry, err)
		}
	})
}

func TestLegacyServerIsItsOwnAuthorizationServer(t *testing.T) {
	w := newWorld(t)
	// A server of 2025-03-26 has everything on one origin and no resource parameter.
	mux := http.NewServeMux()
	mux.Handle("/mcp", w.rs)
	mux.HandleFunc("GET /authorize", w.as.authorize)
	mux.HandleFunc("POST /token", w.as.token)
	mux.HandleFunc("POST /register", w.as.register)
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	w.as.issuer, w.as.resources = srv.URL, []string{""}
	w.rs.resource = ""
	w.rs.challenge = func(int, string, []string) string { return "Bearer" }
	w.o.Server = srv.URL + "/mcp"
	w.mustCall(w.authorizer())
}

func TestBrokenMetadataDoesNotFallBack(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(w *world)
		want   string
	}{
		{"metadata server fails", func(w *world) {
			w.as.srv.Config.Handler = http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
				http.Error(rw, "internal-secret", http.StatusInternalServerError)
			})
		}, "500"},
		{"web application", func(w *world) {
			w.as.srv.Config.Handler = http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { _, _ = rw.Write([]byte("<html>internal-secret")) })
		}, "publishes no metadata"},
		{"other issuer", func(w *world) { w.as.set("issuer", w.as.issuer+"/") }, "issuer does not match"},
		{"no PKCE", func(w *world) { w.as.set("code_challenge_methods_supported", nil) }, "PKCE"},
		{"plain PKCE only", func(w *world) { w.as.set("code_challenge_methods_supported", []string{"plain"}) }, "PKCE"},
		{"no token endpoint", func(w *world) { w.as.set("token_endpoint", nil) }, "token_endpoint"},
		{"script as endpoint", func(w *world) { w.as.set("authorization_endpoint", "javascript:alert(1)") }, "authorization_endpoint"},
		{"file as endpoint", func(w *world) { w.as.set("token_endpoint", "file:///etc/passwd") }, "token_endpoint"},
		{"http endpoint", func(w *world) { w.as.set("token_endpoint", "http://public.example/token") }, "https"},
		{"letter case", func(w *world) {
			w.as.set("Token_Endpoint", "http://127.0.0.1:1/")
			w.as.set("token_endpoint", nil)
		}, "token_endpoint"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t)
			tc.change(w)
			_, err := call(t, w.authorizer(), w.rs.url)
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "internal-secret") {
				t.Errorf("error %v, want %q", err, tc.want)
			}
			if w.as.count(&w.as.logins)+w.as.count(&w.as.registrations) > 0 {
				t.Error("went on")
			}
		})
	}
}

func TestPinnedIssuerWinsOverATrailingSlash(t *testing.T) {
	w := newWorld(t)
	w.as.issuer += "/"
	w.rs.documents = map[string]string{
		"/.well-known/oauth-protected-resource/mcp": `{"resource":"` + w.rs.url + `","authorization_servers":["` + w.as.srv.URL + `"]}`,
	}
	if _, err := call(t, w.authorizer(), w.rs.url); !errors.Is(err, ErrIssuerMismatch) {
		t.Errorf("error %v", err)
	}
	w.o.Issuer = w.as.issuer
	w.mustCall(w.authorizer())
	w.o.Issuer = "https://other.example"
	w.o.Store = MemoryStore()
	if _, err := call(t, w.authorizer(), w.rs.url); !errors.Is(err, ErrIssuerChanged) {
		t.Errorf("error %v", err)
	}
}

func TestIssuerOfTheCallback(t *testing.T) {
	for _, tc := range []struct {
		name       string
		advertised bool
		change     func(q url.Values, issuer string)
		ok         bool
	}{
		{"advertised and sent", true, func(url.Values, string) {}, true},
		{"advertised and missing", true, func(q url.Values, _ string) { q.Del("iss") }, false},
		{"not advertised and missing", false, func(q url.Values, _ string) { q.Del("iss") }, true},
		{"not advertised and right", false, func(url.Values, string) {}, true},
		{"not advertised and wrong", false, func(q url.Values, _ string) { q.Set("iss", "https://evil.example") }, false},
		{"normalized", true, func(q url.Values, is string) { q.Set("iss", is+"/") }, false},
		{"twice", true, func(q url.Values, is string) { q["iss"] = []string{is, is} }, false},
		{"error of another server", true, func(q url.Values, _ string) {
			q.Del("code")
			q.Set("iss", "https://evil.example")
			q.Set("error", "call_this_number")
		}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t)
			w.as.set("authorization_response_iss_parameter_supported", tc.advertised)
			w.as.mu.Lock()
			w.as.callback = func(q url.Values) { tc.change(q, w.as.issuer) }
			w.as.mu.Unlock()
			_, err := call(t, w.authorizer(), w.rs.url)
			if (err == nil) != tc.ok || err != nil && strings.Contains(err.Error(), "call_this_number") {
				t.Errorf("error %v", err)
			}
			if !tc.ok && w.as.count(&w.as.tokenRequests) > 0 {
				t.Error("the code was sent")
			}
		})
	}
}

func TestRefusedLogin(t *testing.T) {
	w := newWorld(t)
	w.as.mu.Lock()
	w.as.callback = func(q url.Values) { q.Del("code"); q.Set("error", "access_denied") }
	w.as.mu.Unlock()
	if _, err := call(t, w.authorizer(), w.rs.url); !errors.Is(err, ErrDenied) {
		t.Errorf("error %v", err)
	}
	w.o.Confirm = func(_ context.Context, l Login) error {
		if l.Host == "" || !strings.HasPrefix(l.URL, w.as.srv.URL) || l.Server != w.o.Server {
			t.Errorf("login %+v", l)
		}
		return errors.New("no")
	}
	before := w.as.count(&w.as.logins)
	if _, err := call(t, w.authorizer(), w.rs.url); !errors.Is(err, ErrDenied) || w.as.count(&w.as.logins) != before {
		t.Errorf("error %v", err)
	}
}

func TestForeignCallbackDoesNotEndTheLogin(t *testing.T) {
	w := newWorld(t)
	w.o.Browser = func(ctx context.Context, address string) error {
		u, _ := url.Parse(address)
		redirect := u.Query().Get("redirect_uri")
		go func() {
			for _, tc := range []struct{ query, host string }{
				{"?state=guess&code=evil", ""},
				{"?error=access_denied", ""},
				{"?%zz", ""},
				{"?code=x&state=" + url.QueryEscape(u.Query().Get("state")), "rebound.example"},
			} {
				req, _ := http.NewRequestWithContext(ctx, http.MethodGet, redirect+tc.query, http.NoBody)
				req.Host = tc.host
				resp, err := http.DefaultClient.Do(req)
				if err != nil || resp.StatusCode < 400 {
					t.Errorf("%s: %v %v", tc.query, resp, err)
				}
				if err == nil {
					resp.Body.Close()
				}
			}
			_ = browser(ctx, address)
		}()
		return nil
	}
	w.mustCall(w.authorizer())
}

func TestServerThatEndsEachGrantCannotAskForLoginsForever(t *testing.T) {
	w := newWorld(t)
	w.as.noRefresh = true
	a := w.authorizer()
	var failed error
	for range 20 {
		w.as.revokeAccess()
		w.as.clock.Move(freshToken + time.Second - 30*time.Second)
		if _, err := call(t, a, w.rs.url); err != nil {
			failed = err
		}
	}
	if n := w.as.count(&w.as.logins); n > 10 || !errors.Is(failed, ErrRejected) {
		t.Errorf("%d logins in ten minutes, error %v", n, failed)
	}
}

func TestStepUpAsksForTheUnion(t *testing.T) {
	w := newWorld(t)
	w.rs.scopesOf = func(r *http.Request) []string {
		if r.Header.Get("Mcp-Method") == "tools/call" {
			return []string{"write"}
		}
		return []string{"read"}
	}
	a := w.authorizer()
	w.mustCall(a)
	if status, err := call(t, a, w.rs.url, "Mcp-Method", "tools/call"); status != 200 || err != nil {
		t.Fatalf("status %d, error %v", status, err)
	}
	w.mustCall(a) // read is not lost
	w.as.mu.Lock()
	defer w.as.mu.Unlock()
	if got := w.as.grants[1].scopes; w.as.logins != 2 || !slices.Equal(got, []string{"write", "read"}) {
		t.Errorf("%d logins, scopes %q", w.as.logins, got)
	}
}

func TestStepUpIsLimited(t *testing.T) {
	w := newWorld(t)
	var n atomic.Int32
	// The server asks for another scope each time, to get around a limit per scope.
	w.rs.challenge = func(status int, code string, _ []string) string {
		return `Bearer error="` + code + `", scope="s` + strings.Repeat("x", int(n.Add(1))) + `"`
	}
	w.rs.scopesOf = func(*http.Request) []string { return []string{"never granted"} }
	a := w.authorizer()
	for _, operation := range []string{"a", "a", "b", "c", "d", "e", "f"} {
		_, err := call(t, a, w.rs.url, "Mcp-Method", "tools/call", "Mcp-Name", operation)
		if !errors.Is(err, ErrScope) {
			t.Errorf("error %v", err)
		}
	}
	if got := w.as.count(&w.as.logins); got != maxLogins {
		t.Errorf("%d logins, want %d", got, maxLogins)
	}
}

func TestForbiddenWithoutScopesIsAPolicy(t *testing.T) {
	w := newWorld(t)
	a := w.authorizer()
	for _, challenge := range []string{"", `Bearer error="invalid_token"`, `Basic realm="x"`} {
		resp := &http.Response{StatusCode: http.StatusForbidden, Header: http.Header{"Www-Authenticate": {challenge}}}
		if retry, err := a.Challenge(t.Context(), resp); retry || err != nil {
			t.Errorf("%q: retry %v, error %v", challenge, retry, err)
		}
	}
}

func TestScopes(t *testing.T) {
	for _, tc := range []struct {
		name                           string
		challenge, metadata, as, extra string
		noRefresh                      bool
		want                           string
	}{
		{name: "challenge first", challenge: "a", metadata: "b c", want: "a"},
		{name: "metadata", metadata: "b c", want: "b c"},
		{name: "none"},
		{name: "offline access", metadata: "b", as: "b offline_access", want: "b offline_access"},
		{name: "offline access not wanted", metadata: "b", as: "b offline_access", noRefresh: true, want: "b"},
		{name: "offline access of the resource only", metadata: "b", as: "b", want: "b"},
		{name: "offline access never alone", as: "offline_access"},
		{name: "configured", challenge: "a", metadata: "b", extra: "c", want: "a c"},
		{name: "configured replaces metadata", metadata: "b", extra: "c", want: "c"},
		{name: "duplicates", challenge: "a a b", extra: "b", want: "a b"},
	} {
		a, err := New(Options{Server: "https://mcp.example/mcp", Scopes: strings.Fields(tc.extra), NoRefresh: tc.noRefresh})
		if err != nil {
			t.Fatal(err)
		}
		d := &discovery{scopes: strings.Fields(tc.metadata), server: serverMetadata{ScopesSupported: strings.Fields(tc.as)}}
		if got := strings.Join(a.scopes(challenge{scope: strings.Fields(tc.challenge)}, d, nil), " "); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

func TestChangedIssuerDropsRegistrationAndToken(t *testing.T) {
	w := newWorld(t)
	a := w.authorizer()
	w.mustCall(a)
	old := w.as
	next := newAS(t)
	next.clock = old.clock
	next.resources = []string{w.rs.resource}
	w.rs.mu.Lock()
	w.rs.as = next
	w.rs.mu.Unlock()
	w.mustCall(a)
	if next.count(&next.registrations) != 1 || next.count(&next.logins) != 1 {
		t.Error("no registration at the new authorization server")
	}
	if old.count(&old.refreshes) != 0 {
		t.Error("refreshed at the old authorization server")
	}
	m := w.o.Store.(*memoryStore)
	for key := range m.values {
		if strings.Contains(key, url.QueryEscape(old.issuer)) {
			t.Errorf("the store still has %s", key)
		}
	}
}

func TestConfiguredClientStaysWithItsIssuer(t *testing.T) {
	for _, bound := range []bool{true, false} {
		w := newWorld(t)
		w.o.Client = Client{ID: "pre", Secret: "pre-secret"}
		if bound {
			w.o.Client.Issuer = w.as.issuer
		}
		w.as.clients["pre"] = &fakeClient{id: "pre", secret: "pre-secret", method: "client_secret_basic"}
		w.as.set("token_endpoint_auth_methods_supported", []string{"client_secret_basic"})
		r, err := w.o.Redirect, error(nil)
		w.o.Redirect = func(ctx context.Context) (Receiver, error) {
			receiver, err := r(ctx)
			if err == nil {
				w.as.mu.Lock()
				w.as.clients["pre"].redirects = []string{receiver.RedirectURI()}
				w.as.mu.Unlock()
			}
			return receiver, err
		}
		w.mustCall(w.authorizer())
		if w.as.count(&w.as.registrations) != 0 {
			t.Error("registered although a client is configured")
		}
		evil := newAS(t)
		evil.clock = w.as.clock
		w.rs.mu.Lock()
		w.rs.as = evil
		w.rs.mu.Unlock()
		if _, err = call(t, w.authorizer(), w.rs.url); !errors.Is(err, ErrIssuerChanged) {
			t.Errorf("bound %v: error %v", bound, err)
		}
		if evil.count(&evil.tokenRequests)+evil.count(&evil.logins) > 0 || len(evil.seenSecrets) > 0 {
			t.Error("the other authorization server was contacted with the client")
		}
	}
}

func TestConfiguredSecretIsNotStored(t *testing.T) {
	w := newWorld(t)
	w.o.Client, w.o.Grant = Client{ID: "cc", Secret: "cc-secret-value"}, ClientCredentials{}
	w.as.clients["cc"] = &fakeClient{id: "cc", secret: "cc-secret-value", method: "client_secret_basic"}
	w.as.set("token_endpoint_auth_methods_supported", []string{"client_secret_basic"})
	w.mustCall(w.authorizer())
	for key, value := range w.o.Store.(*memoryStore).values {
		if strings.Contains(string(value), "cc-secret-value") {
			t.Errorf("%s has the secret", key)
		}
	}
}

func TestClientOrder(t *testing.T) {
	document := "https://client.example/metadata.json"
	for _, tc := range []struct {
		name   string
		change func(w *world)
		want   string
	}{
		{"configured before the document", func(w *world) {
			w.o.Client, w.o.ClientDocument = Client{ID: "pre"}, document
			w.as.set("client_id_metadata_document_supported", true)
		}, "pre"},
		{"document before registration", func(w *world) {
			w.o.ClientDocument = document
			w.as.set("client_id_metadata_document_supported", true)
		}, document},
		{"document not supported", func(w *world) { w.o.ClientDocument = document }, "dyn-1"},
		{"registration", func(*world) {}, "dyn-1"},
		{"registration forbidden", func(w *world) { w.o.NoRegistration = true }, ""},
		{"registration not offered", func(w *world) { w.as.set("registration_endpoint", nil) }, ""},
	} {
		w := newWorld(t)
		tc.change(w)
		got := ""
		w.o.Confirm = func(_ context.Context, l Login) error {
			got = l.ClientID
			return errors.New("enough")
		}
		_, err := call(t, w.authorizer(), w.rs.url)
		if got != tc.want || errors.Is(err, ErrNoClient) != (tc.want == "") {
			t.Errorf("%s: client %q, error %v", tc.name, got, err)
		}
	}
}

func TestTokenEndpointAuthentication(t *testing.T) {
	for _, method := range []string{"client_secret_basic", "client_secret_post", "none"} {
		w := newWorld(t)
		w.as.set("token_endpoint_auth_methods_supported", []string{method})
		a := w.authorizer()
		w.mustCall(a)
		w.as.clock.Move(2 * time.Hour)
		w.mustCall(a) // the refresh authenticates in the same way
		if n := w.as.count(&w.as.refreshes); n != 1 {
			t.Errorf("%s: %d refreshes", method, n)
		}
	}
}

func TestTokenStaysOnTheOrigin(t *testing.T) {
	w := newWorld(t)
	a := w.authorizer()
	w.mustCall(a)
	var leaked atomic.Bool
	other := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(rw, r.Body)
		leaked.Store(r.Header.Get("Authorization") != "" || leaked.Load())
	}))
	t.Cleanup(other.Close)
	if status, err := call(t, a, other.URL); status != 200 || err != nil {
		t.Errorf("status %d, error %v", status, err)
	}
	w.rs.srv.Config.Handler = http.RedirectHandler(other.URL+"/mcp", http.StatusTemporaryRedirect)
	if status, err := call(t, a, w.rs.url); status != 200 || err != nil {
		t.Errorf("status %d, error %v", status, err)
	}
	if leaked.Load() {
		t.Error("the token was sent to another origin")
	}
}

func TestLogoutRevokesAndDeletes(t *testing.T) {
	w := newWorld(t)
	a := w.authorizer()
	w.mustCall(a)
	token, _ := a.Token(t.Context())
	if err := a.Logout(t.Context()); err != nil {
		t.Fatal(err)
	}
	if w.as.lookup(token) != nil {
		t.Error("the token is still valid")
	}
	if token, err := w.authorizer().Token(t.Context()); token != "" || err != nil {
		t.Errorf("token %q, error %v", token, err)
	}
}

func TestErrorsDoNotRepeatBodies(t *testing.T) {
	for _, body := range []string{
		`{"error":"invalid_grant","error_description":"internal-secret"}`, `{"error":"internal-secret !"}`, "internal-secret",
		`{"access_token":"internal secret with spaces internal-secret"}`, `{"access_token":"x","token_type":"mac"}`,
	} {
		for _, status := range []int{200, 400, 500} {
			w := newWorld(t)
			w.as.tokenFail = func(url.Values) (int, string) { return status, body }
			_, err := call(t, w.authorizer(), w.rs.url)
			if err == nil || strings.Contains(err.Error(), "internal-secret") {
				t.Errorf("%d %s: error %v", status, body, err)
			}
		}
	}
}

func TestOptionsAreChecked(t *testing.T) {
	subject := func(context.Context) (string, string, error) { return "t", "", nil }
	for name, o := range map[string]Options{
		"no server":                     {},
		"file":                          {Server: "file:///x"},
		"user in the URL":               {Server: "https://u:p@host/mcp"},
		"exchange without issuer":       {Server: "https://h/mcp", Grant: TokenExchange{Subject: subject}},
		"credentials without a secret":  {Server: "https://h/mcp", Client: Client{ID: "x"}, Grant: ClientCredentials{}},
		"document without a path":       {Server: "https://h/mcp", ClientDocument: "https://h"},
		"document over http":            {Server: "https://h/mcp", ClientDocument: "http://h/x"},
		"secret and issuer differ":      {Server: "https://h/mcp", Issuer: "https://a", Client: Client{ID: "x", Issuer: "https://b"}},
		"origin with a path":            {Server: "https://h/mcp", Network: Network{AllowOrigins: []string{"https://a/b"}}},
		"secret without an id":          {Server: "https://h/mcp", Client: Client{Secret: "x"}},
		"unknown authentication method": {Server: "https://h/mcp", Client: Client{ID: "x", AuthMethod: "magic"}},
	} {
		if _, err := New(o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestOpenBrowserOpensWebAddressesOnly(t *testing.T) {
	t.Setenv("PATH", t.TempDir()) // nothing to start
	for _, address := range []string{"file:///etc/passwd", "javascript:alert(1)", "--help", "https://", "http://u@h/", "calc.exe"} {
		if err := OpenBrowser(t.Context(), address); err == nil || !strings.Contains(err.Error(), "only http") {
			t.Errorf("%q: %v", address, err)
		}
	}
}
