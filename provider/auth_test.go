package provider_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect/bedrock"
	"github.com/dragoman-go/dragoman/dialect/gemini"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
	"github.com/dragoman-go/dragoman/provider"
)

// authorizedHeaders sends a request and returns the headers that the server received.
func authorizedHeaders(t *testing.T, auth provider.Auth) http.Header {
	t.Helper()
	s := serve(t, openairesponses.Codec{}, respond(textResponse("hi")))
	if _, err := s.client(&provider.Client{Auth: auth}).Generate(t.Context(), newRequest()); err != nil {
		t.Fatal(err)
	}
	return s.requests()[0].header
}

func TestX12_CredentialsAreInTheirHeaders(t *testing.T) {
	t.Setenv("THE_KEY", " from-the-environment\n")
	for _, tc := range []struct {
		auth         provider.Auth
		header, want string
	}{
		{provider.Bearer(provider.FixedKey("k1")), "Authorization", "Bearer k1"},
		{provider.Token(provider.FixedKey("k2")), "Authorization", "Bearer k2"},
		{provider.HeaderKey("x-api-key", provider.FixedKey("k3")), "X-Api-Key", "k3"},
		{provider.HeaderKey("x-goog-api-key", provider.EnvKey("NOT_SET_AT_ALL", "THE_KEY")), "X-Goog-Api-Key", "from-the-environment"},
		{nil, "Authorization", ""},
	} {
		if got := authorizedHeaders(t, tc.auth).Get(tc.header); got != tc.want {
			t.Errorf("%s is %q, want %q", tc.header, got, tc.want)
		}
	}
}

func TestX12_MissingCredentialNamesItsVariables(t *testing.T) {
	for _, v := range []string{"AWS_BEARER_TOKEN_BEDROCK", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} {
		t.Setenv(v, "")
	}
	for _, tc := range []struct {
		auth provider.Auth
		want []string
	}{
		{provider.Bearer(provider.EnvKey("ONE_KEY", "OTHER_KEY")), []string{"ONE_KEY", "OTHER_KEY"}},
		{provider.HeaderKey("x-api-key", provider.EnvKey("ONE_KEY")), []string{"ONE_KEY"}},
		{provider.Bedrock(provider.SigV4{Region: "us-east-1"}), []string{"AWS_BEARER_TOKEN_BEDROCK", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}},
	} {
		forGenerateAndStream(t, func(t *testing.T, ask func(dragoman.Model, *dragoman.Request) (*dragoman.Response, error)) {
			s := serve(t, openairesponses.Codec{}, respond(textResponse("hi")))
			_, err := ask(s.client(&provider.Client{Auth: tc.auth}), newRequest())
			var api *dragoman.APIError
			var key *provider.MissingKeyError
			if !errors.As(err, &api) || api.Class != dragoman.ErrorAuth || !errors.As(err, &key) {
				t.Fatalf("error %v", err)
			}
			for _, v := range tc.want {
				if !strings.Contains(err.Error(), v) {
					t.Errorf("%v does not name %s", err, v)
				}
			}
			if len(s.requests()) != 0 {
				t.Error("a request was sent")
			}
		})
	}
}

func TestUnavailableCredentialIsAnAuthError(t *testing.T) {
	refused := errors.New("the vault is closed")
	fail := func(context.Context) (string, error) { return "", refused }
	for name, auth := range map[string]provider.Auth{
		"a source that fails": provider.Token(fail),
		"an empty key":        provider.Bearer(provider.FixedKey("")),
		"a key of two lines":  provider.Bearer(provider.FixedKey("one\ntwo")),
		"no source":           provider.Bearer(nil),
		"keys that fail":      provider.SigV4{Region: "r", Keys: func(context.Context) (provider.AWSKeys, error) { return provider.AWSKeys{}, refused }},
		"half of the keys":    provider.SigV4{Region: "r", Keys: func(context.Context) (provider.AWSKeys, error) { return provider.AWSKeys{AccessKeyID: "x"}, nil }},
	} {
		s := serve(t, openairesponses.Codec{}, respond(textResponse("hi")))
		_, err := s.client(&provider.Client{Auth: auth}).Generate(t.Context(), newRequest())
		var api *dragoman.APIError
		if !errors.As(err, &api) || api.Class != dragoman.ErrorAuth || strings.Contains(err.Error(), "two") {
			t.Errorf("%s: %v", name, err)
		}
		if strings.Contains(name, "fail") && !errors.Is(err, refused) {
			t.Errorf("%s: the cause is gone from %v", name, err)
		}
	}
}

func TestScopeDependsOnAccountAndEndpoint(t *testing.T) {
	s := serve(t, openairesponses.Codec{}, respond(textResponse("hi")))
	scope := func(auth provider.Auth, path string) string {
		c := s.client(&provider.Client{Auth: auth})
		c.BaseURL += path
		resp, err := c.Generate(t.Context(), newRequest())
		if err != nil {
			t.Fatal(err)
		}
		return resp.Origin.Scope
	}
	one, two := provider.FixedKey("sk-one"), provider.FixedKey("sk-two")
	seen := []string{scope(provider.Bearer(one), ""), scope(provider.Bearer(two), ""), scope(provider.Bearer(one), "/v2"), scope(nil, "")}
	for i, a := range seen {
		if a == "" || slices.Contains(seen[:i], a) || strings.Contains(a, "sk-") {
			t.Errorf("scope %d of %q", i, seen)
		}
	}
	if scope(provider.Bearer(one), "") != seen[0] {
		t.Error("a scope changed")
	}
	if scope(provider.Token(one), "") != scope(provider.Token(two), "") {
		t.Error("a renewed token is another account")
	}
}

func TestVertexNeedsBaseURLAndToken(t *testing.T) {
	s := serve(t, gemini.Codec{}, respond(textResponse("hi")))
	c := s.client(&provider.Client{
		Model: "gemini-3-pro", Auth: provider.Token(provider.FixedKey("ya29")),
		Path: "/models/{model}:generateContent", StreamPath: "/models/{model}:streamGenerateContent?alt=sse",
	})
	c.BaseURL += "/v1/projects/p/locations/l/publishers/google"
	if _, err := dragoman.Collect(c.Stream(t.Context(), newRequest())); err != nil {
		t.Fatal(err)
	}
	got := s.requests()[0]
	if got.path != "/v1/projects/p/locations/l/publishers/google/models/gemini-3-pro:streamGenerateContent" || got.query != "alt=sse" {
		t.Errorf("sent to %s?%s", got.path, got.query)
	}
}

func TestBedrockPrefersItsOwnKey(t *testing.T) {
	t.Setenv("AWS_BEARER_TOKEN_BEDROCK", "bedrock-key")
	if got := authorizedHeaders(t, provider.Bedrock(provider.SigV4{})).Get("Authorization"); got != "Bearer bedrock-key" {
		t.Errorf("sent %q", got)
	}
}

func TestMissingRegionIsNamed(t *testing.T) {
	t.Setenv("AWS_REGION", "")
	t.Setenv("AWS_DEFAULT_REGION", "")
	s := serve(t, bedrock.Codec{}, respond(textResponse("hi")))
	keys := func(context.Context) (provider.AWSKeys, error) {
		return provider.AWSKeys{AccessKeyID: "id", SecretAccessKey: "secret"}, nil
	}
	_, err := s.client(&provider.Client{Auth: provider.SigV4{Keys: keys}}).Generate(t.Context(), newRequest())
	if err == nil || !strings.Contains(err.Error(), "AWS_REGION") {
		t.Errorf("error %v", err)
	}
}

func TestAWSKeysDoNotPrint(t *testing.T) {
	k := provider.AWSKeys{AccessKeyID: "AKID", SecretAccessKey: "hush", SessionToken: "hush-too"}
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		if s := fmt.Sprintf(format, k); strings.Contains(s, "hush") {
			t.Errorf("%s prints %s", format, s)
		}
	}
}

// The signature must match the sent bytes: the server computes it from the received request, as
// Amazon documents it, without the AWS library.
func TestX12_SigV4SignsWhatTheServerReceives(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG")
	t.Setenv("AWS_SESSION_TOKEN", "a-session")
	t.Setenv("AWS_REGION", "eu-north-1")
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	forGenerateAndStream(t, func(t *testing.T, ask func(dragoman.Model, *dragoman.Request) (*dragoman.Response, error)) {
		host := ""
		s := serve(t, bedrock.Codec{}, func(s *server, w http.ResponseWriter, r *http.Request, got received) {
			host = r.Host
			respond(textResponse("hi"))(s, w, r, got)
		})
		c := s.client(&provider.Client{
			Model: "arn:aws:bedrock:eu-north-1:1:inference-profile/eu.anthropic.claude-opus-5-5-v1:0",
			Auth:  provider.SigV4{Now: func() time.Time { return now }},
		})
		if _, err := ask(c, newRequest()); err != nil {
			t.Fatal(err)
		}
		got := s.requests()[0]
		if got.header.Get("X-Amz-Security-Token") != "a-session" || got.header.Get("X-Amz-Date") != "20261115T120000Z" {
			t.Errorf("headers %v", got.header)
		}
		if have, want := got.header.Get("Authorization"), awsSignature(got, host, "wJalrXUtnFEMI/K7MDENG"); !strings.HasSuffix(have, "Signature="+want) {
			t.Errorf("sent %s, want the signature %s", have, want)
		}
	})
}

func TestX13_AccessKeyIsRedactedFromSignatureErrors(t *testing.T) {
	keys := func(context.Context) (provider.AWSKeys, error) {
		return provider.AWSKeys{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "wJalrXUtnFEMI/K7MDENG", SessionToken: "a-session"}, nil
	}
	forGenerateAndStream(t, func(t *testing.T, ask func(dragoman.Model, *dragoman.Request) (*dragoman.Response, error)) {
		s := serve(t, bedrock.Codec{}, func(_ *server, w http.ResponseWriter, _ *http.Request, got received) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = fmt.Fprintf(w, `{"message":%q}`, "the key AKIDEXAMPLE may not: "+got.header.Get("Authorization"))
		})
		var log bytes.Buffer
		_, err := ask(s.client(&provider.Client{
			Model: "m", Auth: provider.SigV4{Region: "eu-north-1", Keys: keys},
			Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		}), newRequest())
		if err == nil || strings.Contains(err.Error(), "AKIDEXAMPLE") || !strings.Contains(err.Error(), "the key [redacted] may not") {
			t.Errorf("error %v", err)
		}
		if strings.Contains(log.String(), "AKIDEXAMPLE") {
			t.Errorf("log %s", log.String())
		}
	})
}

// awsSignature computes the signature of a request as Amazon documents it.
func awsSignature(got received, host, secret string) string {
	_, rest, _ := strings.Cut(got.header.Get("Authorization"), "SignedHeaders=")
	names, _, _ := strings.Cut(rest, ",")
	var headers strings.Builder
	for name := range strings.SplitSeq(names, ";") {
		value := got.header.Get(name)
		switch name {
		case "host":
			value = host
		case "content-length":
			value = fmt.Sprint(len(got.body))
		}
		headers.WriteString(name + ":" + value + "\n")
	}
	hash := func(b []byte) string { s := sha256.Sum256(b); return hex.EncodeToString(s[:]) }
	mac := func(key []byte, s string) []byte {
		h := hmac.New(sha256.New, key)
		h.Write([]byte(s))
		return h.Sum(nil)
	}
	var path []string // escaped once more
	for segment := range strings.SplitSeq(got.path, "/") {
		path = append(path, strings.ReplaceAll(url.QueryEscape(segment), "+", "%20"))
	}
	canonical := strings.Join([]string{"POST", strings.Join(path, "/"), got.query, headers.String(), names, hash(got.body)}, "\n")
	scope := "20261115/eu-north-1/bedrock/aws4_request"
	key := []byte("AWS4" + secret)
	for part := range strings.SplitSeq(scope, "/") {
		key = mac(key, part)
	}
	return hex.EncodeToString(mac(key, "AWS4-HMAC-SHA256\n20261115T120000Z\n"+scope+"\n"+hash([]byte(canonical))))
}
