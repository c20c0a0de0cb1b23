package oauth

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

func names(steps []Step) []string {
	var all []string
	for _, s := range steps {
		all = append(all, s.Name)
	}
	return all
}

func (w *world) diagnose() []Step {
	return slices.Collect(Diagnose(w.t.Context(), w.o.Server, w.o))
}

func TestDiagnoseHealthyServer(t *testing.T) {
	w := newWorld(t)
	all := w.diagnose()
	want := []string{
		StepRequest, StepChallenge, StepResource, StepMatch, StepServer, StepMetadata, StepPKCE, StepClient,
		StepScopes, StepToken, StepAccess,
	}
	if got := names(all); !slices.Equal(got, want) {
		t.Errorf("steps %q", got)
	}
	for _, s := range all {
		if !s.OK || s.Meaning == "" {
			t.Errorf("step %+v", s)
		}
		for _, secret := range []string{"access-", "refresh-"} {
			if strings.Contains(s.Sent+s.Got+s.Meaning+s.Advice, secret) {
				t.Errorf("step %s shows a token", s.Name)
			}
		}
	}
	if all[2].Sent != "GET "+w.rs.srv.URL+"/.well-known/oauth-protected-resource/mcp" {
		t.Errorf("sent %q", all[2].Sent)
	}
}

func TestDiagnoseWithoutBrowserChangesNothing(t *testing.T) {
	w := newWorld(t)
	w.o.Browser = nil
	all := w.diagnose()
	last := all[len(all)-1]
	if last.Name != StepToken || last.Advice != "log in" {
		t.Errorf("last step %+v", last)
	}
	if w.as.count(&w.as.registrations)+w.as.count(&w.as.logins)+w.as.count(&w.as.tokenRequests) > 0 {
		t.Error("registered or logged in")
	}
}

func TestDiagnoseNamesTheFailure(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(w *world)
		step   string
		text   []string
	}{
		{"resource mismatch", func(w *world) { w.rs.resource = "https://mcp.example/mcp/" }, StepMatch, []string{"https://mcp.example/mcp/", "URL that the document names"}},
		{"other issuer", func(w *world) { w.as.set("issuer", "https://x.example") }, StepMetadata, []string{"https://x.example", "pin"}},
		{"no PKCE", func(w *world) { w.as.set("code_challenge_methods_supported", nil) }, StepPKCE, []string{"S256"}},
		{"no client", func(w *world) { w.as.set("registration_endpoint", nil) }, StepClient, []string{"register a client"}},
		{"private authorization server", func(w *world) { w.as.issuer = "https://10.0.0.1" }, StepMetadata, []string{"private"}},
		{"wrong audience", func(w *world) { w.rs.rejectAll = true }, StepAccess, []string{"audience"}},
		{"token endpoint fails", func(w *world) { w.as.set("token_endpoint", w.as.srv.URL+"/gone") }, StepToken, []string{"404"}},
		{"another scheme", func(w *world) {
			w.rs.challenge = func(int, string, []string) string { return `Basic realm="x"` }
			w.rs.documents = map[string]string{}
		}, StepChallenge, []string{"basic", "header"}},
		{"no endpoint", func(w *world) { w.o.Server = w.rs.srv.URL + "/wrong" }, StepRequest, []string{"404", "path"}},
		{"redirect", func(w *world) {
			w.rs.srv.Config.Handler = http.RedirectHandler("https://elsewhere.example/", http.StatusTemporaryRedirect)
		}, StepRequest, []string{"redirect"}},
		{"nothing listens", func(w *world) { w.rs.srv.Close() }, StepRequest, []string{"refused"}},
		{"bad URL", func(w *world) { w.o.Server = "mcp.example" }, StepRequest, []string{"https://"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t)
			tc.change(w)
			all := w.diagnose()
			i := slices.IndexFunc(all, func(s Step) bool { return !s.OK })
			if i < 0 {
				t.Fatalf("all steps succeeded: %q", names(all))
			}
			s := all[i]
			if s.Name != tc.step || s.Advice == "" {
				t.Errorf("first failure: %+v", s)
			}
			for _, text := range tc.text {
				if !strings.Contains(s.Got+s.Meaning+s.Advice, text) {
					t.Errorf("step %+v does not mention %q", s, text)
				}
			}
		})
	}
}

func TestDiagnoseServerWithoutAuthorization(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(srv.Close)
	all := slices.Collect(Diagnose(t.Context(), srv.URL, Options{}))
	if len(all) != 1 || !all[0].OK || !strings.Contains(all[0].Meaning, "without authorization") {
		t.Errorf("steps %+v", all)
	}
}

func TestDiagnoseStopsWhenItsReaderStops(t *testing.T) {
	w := newWorld(t)
	for s := range Diagnose(t.Context(), w.o.Server, w.o) {
		if s.Name == StepResource {
			break
		}
	}
	if w.as.count(&w.as.logins) != 0 {
		t.Error("went on to the login")
	}
}

func TestDiagnoseUsesTheStoredToken(t *testing.T) {
	w := newWorld(t)
	a := w.authorizer()
	a.now = time.Now
	w.mustCall(a)
	w.o.Browser = func(context.Context, string) error { return errors.New("a login was not necessary") }
	all := w.diagnose()
	if last := all[len(all)-1]; last.Name != StepAccess || !last.OK {
		t.Errorf("steps %q, last %+v", names(all), last)
	}
}

func TestDiagnoseChecksTheClientDocument(t *testing.T) {
	for _, good := range []bool{true, false} {
		w := newWorld(t)
		var address string
		srv := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
			id := address
			if !good {
				id = "https://other.example/x"
			}
			writeJSON(rw, http.StatusOK, map[string]any{"client_id": id, "client_name": "n", "redirect_uris": []string{"http://127.0.0.1/callback"}})
		}))
		t.Cleanup(srv.Close)
		address = srv.URL + "/client.json"
		roots := x509.NewCertPool()
		roots.AddCert(srv.Certificate())
		w.o.Browser, w.o.ClientDocument = nil, address
		w.o.Network.TLS = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
		w.as.set("client_id_metadata_document_supported", true)
		for _, s := range w.diagnose() {
			if s.Name == StepClient && (s.OK != good || s.Sent != "GET "+address) {
				t.Errorf("good %v: %+v", good, s)
			}
		}
	}
}
