package provider_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/bedrock"
	"github.com/dragoman-go/dragoman/dialect/cohere"
	"github.com/dragoman-go/dragoman/dialect/gemini"
	"github.com/dragoman-go/dragoman/dialect/ollama"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/modelcall"
	"github.com/dragoman-go/dragoman/provider"
)

// scriptedServer records requests and responds with the given handlers in order; the last one
// handles all further requests.
type scriptedServer struct {
	*httptest.Server
	mu  sync.Mutex
	got []received
}

func upstreams(t *testing.T, steps ...http.HandlerFunc) *scriptedServer {
	t.Helper()
	u := &scriptedServer{}
	u.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		u.mu.Lock()
		n := len(u.got)
		u.got = append(u.got, received{header: r.Header.Clone(), path: r.URL.EscapedPath(), query: r.URL.RawQuery, body: body})
		u.mu.Unlock()
		steps[min(n, len(steps)-1)](w, r)
	}))
	t.Cleanup(u.Close)
	return u
}

func (u *scriptedServer) requests() []received {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.got)
}

// client returns a client of the server, with a key and without waits.
func (u *scriptedServer) client(c *provider.Client) *provider.Client {
	c.BaseURL, c.HTTP = u.URL, u.Client()
	if c.Codec == nil {
		c.Codec = openaichat.Codec{}
	}
	if c.Model == "" {
		c.Model = "model-1"
	}
	if c.Auth == nil {
		c.Auth = provider.Bearer(provider.FixedKey("sk-the-key-of-the-gateway"))
	}
	if !c.HasClock() {
		provider.OnClock(eagerClock{newClock()}, c).Timeouts = unboundedPhases
	}
	return c
}

// respondWith returns a handler that responds with a status, a body and headers.
func respondWith(status int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// breakAfter sends the beginning of a response, and closes the connection.
func breakAfter(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusOK)
		_, _ = io.WriteString(w, body)
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
}

func gzipped(s string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = io.WriteString(z, s)
	_ = z.Close()
	return b.String()
}

// passThrough passes a body through and reads the response.
func passThrough(t *testing.T, c *provider.Client, p modelcall.PassRequest) (*modelcall.PassResponse, string) {
	t.Helper()
	got, err := c.Pass(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = got.Body.Close() }()
	body, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	return got, string(body)
}

func TestPassKeepsBytes(t *testing.T) {
	const (
		sent     = "{ \"unknown\" : 1.0 ,\n\t\"nonsense\":[\"\\u00e4\"] }\n"
		answered = "data: {\"x\" : 1.0}\r\n\r\n: nothing\n\ndata: [DONE]"
	)
	paths := map[dragoman.Dialect][2]string{
		dialectname.OpenAIChat:      {"/chat/completions?", "/chat/completions?"},
		dialectname.OpenAIResponses: {"/responses?", "/responses?"},
		dialectname.Anthropic:       {"/v1/messages?", "/v1/messages?"},
		dialectname.Gemini:          {"/v1beta/models/asked%3A1:generateContent?", "/v1beta/models/asked%3A1:streamGenerateContent?alt=sse"},
		dialectname.Ollama:          {"/api/chat?", "/api/chat?"},
		dialectname.Bedrock:         {"/model/asked%3A1/converse?", "/model/asked%3A1/converse-stream?"},
		cohere.Codec{}.Dialect():    {"/v2/chat?", "/v2/chat?"},
	}
	each(t, func(t *testing.T, codec dialect.Codec) {
		for i, stream := range []bool{false, true} {
			u := upstreams(t, respondWith(http.StatusOK, answered, "Content-Type", "text/x-any"))
			c := u.client(&provider.Client{Codec: codec, Model: "asked:1", Header: http.Header{"x-team": {"search"}}})
			got, body := passThrough(t, c, modelcall.PassRequest{Model: "another", Body: []byte(sent), Stream: stream})
			if got.Status != http.StatusOK || got.Err != nil || body != answered || got.Header.Get("Content-Type") != "text/x-any" {
				t.Errorf("%d %v %v %q", got.Status, got.Err, got.Header, body)
			}
			r := u.requests()[0]
			if string(r.body) != sent || r.path+"?"+r.query != paths[codec.Dialect()][i] {
				t.Errorf("sent %q to %s?%s", r.body, r.path, r.query)
			}
			if r.header.Get("Authorization") != "Bearer sk-the-key-of-the-gateway" || r.header.Get("X-Team") != "search" || r.header.Get("Content-Type") != "application/json" {
				t.Errorf("headers %v", r.header)
			}
			if packed := r.header.Get("Accept-Encoding"); stream != (packed == "identity") {
				t.Errorf("stream %v accepts %q", stream, packed)
			}
		}
	})
}

func TestPassUsesItsOwnModelName(t *testing.T) {
	u := upstreams(t, respondWith(http.StatusOK, "{}"))
	c := u.client(&provider.Client{Codec: gemini.Codec{}})
	c.Model = ""
	passThrough(t, c, modelcall.PassRequest{Model: "models/g-1", Body: []byte("{}")})
	if got := u.requests()[0].path; got != "/v1beta/models/g-1:generateContent" {
		t.Errorf("sent to %s", got)
	}
}

func TestJ16_PassedRequestIsSigned(t *testing.T) {
	host := ""
	u := upstreams(t, func(_ http.ResponseWriter, r *http.Request) { host = r.Host })
	keys := func(context.Context) (provider.AWSKeys, error) {
		return provider.AWSKeys{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "wJalrXUtnFEMI/K7MDENG"}, nil
	}
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	c := u.client(&provider.Client{Codec: bedrock.Codec{}, Auth: provider.SigV4{Region: "eu-north-1", Keys: keys, Now: func() time.Time { return now }}})
	passThrough(t, c, modelcall.PassRequest{Body: []byte(`{ "messages" : [] }`), Stream: true, Header: http.Header{"Traceparent": {"00-1"}, "Authorization": {"AWS4-HMAC-SHA256 theirs"}, "X-Amz-Date": {"theirs"}}})
	got := u.requests()[0]
	if have, want := got.header.Get("Authorization"), awsSignature(got, host, "wJalrXUtnFEMI/K7MDENG"); !strings.HasSuffix(have, "Signature="+want) {
		t.Errorf("sent %s, want the signature %s", have, want)
	}
}

func TestJ16_OnlyDialectHeadersAreForwarded(t *testing.T) {
	called := http.Header{}
	for _, name := range []string{
		"Authorization", "Proxy-Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key", "X-Goog-Iam-Authorization-Token", "X-Amz-Security-Token", "Cookie",
		"Connection", "Keep-Alive", "Te", "Upgrade", "X-Forwarded-For", "Forwarded", "Via", "Baggage", "User-Agent", "Accept-Encoding", "Content-Encoding", "Content-Length", "Host",
		"Anthropic-Beta", "Anthropic-Version", "Openai-Beta", "Openai-Organization", "Openai-Project", "X-Goog-Api-Client", "X-Goog-User-Project",
		"Idempotency-Key", "X-Idempotency-Key", "Traceparent", "Tracestate", "X-Stainless-Lang",
	} {
		called.Set(name, "theirs")
	}
	every := []string{"Idempotency-Key", "Traceparent", "Tracestate", "X-Idempotency-Key"}
	for _, tc := range []struct {
		codec dialect.Codec
		want  []string
	}{
		{anthropic.Codec{}, []string{"Anthropic-Beta", "Anthropic-Version"}},
		{openaichat.Codec{}, []string{"Openai-Beta", "Openai-Organization", "Openai-Project"}},
		{openairesponses.Codec{}, []string{"Openai-Beta", "Openai-Organization", "Openai-Project"}},
		{gemini.Codec{}, []string{"X-Goog-Api-Client", "X-Goog-User-Project"}},
		{ollama.Codec{}, nil},
		{bedrock.Codec{}, nil},
	} {
		u := upstreams(t, respondWith(http.StatusOK, "{}"))
		passThrough(t, u.client(&provider.Client{Codec: tc.codec}), modelcall.PassRequest{Body: []byte("{}"), Stream: true, Header: called})
		var got []string
		for name, values := range u.requests()[0].header {
			if slices.Equal(values, []string{"theirs"}) {
				got = append(got, name)
			}
		}
		slices.Sort(got)
		want := slices.Concat(every, tc.want)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: sent on %v, want %v", tc.codec.Dialect(), got, want)
		}
	}
}

func TestJ16_QueryIsForwardedWithoutCredentials(t *testing.T) {
	for _, tc := range []struct {
		codec            dialect.Codec
		base, asks, want string
	}{
		{anthropic.Codec{}, "", "beta=true", "beta=true"},
		{anthropic.Codec{}, "", "beta=true&key=k&api_key=k&API-Key=k&access_token=k&x-goog-api-key=k&%61pi_key=k&a;key=k&%zz=1&=2&b=%20x&b=2", "beta=true&b=%20x&b=2"},
		{gemini.Codec{}, "", "alt=json&%24alt=proto&key=k&callback=f&quotaUser=u", "alt=sse&quotaUser=u"},
		{openaichat.Codec{}, "?api-version=1&tenant=ours-and-long-enough", "api-version=2&tenant=theirs&x=1", "api-version=1&tenant=ours-and-long-enough&x=1"},
		{openaichat.Codec{}, "", "", ""},
	} {
		u := upstreams(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":{"message":"true is no value, nor is a-long-value-of-theirs"}}`)
		})
		c := &provider.Client{Codec: tc.codec, BaseURL: u.URL + tc.base, Model: "m"}
		passed, err := c.Pass(t.Context(), modelcall.PassRequest{Body: []byte("{}"), Stream: true, Query: tc.asks + "&more=a-long-value-of-theirs"})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := u.requests()[0].query, strings.TrimPrefix(tc.want+"&more=a-long-value-of-theirs", "&"); got != want {
			t.Errorf("%q is sent of %q, want %q", got, tc.asks, want)
		}
		if body, _ := io.ReadAll(passed.Body); !strings.Contains(string(body), "a-long-value-of-theirs") {
			t.Errorf("what they say themselves is taken for a secret of ours: %s", body)
		}
	}
}

func TestPassForwardsOnlyStoredResponsePaths(t *testing.T) {
	u := upstreams(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") })
	c := &provider.Client{Codec: openairesponses.Codec{}, BaseURL: u.URL + "/v1?api-version=1", Model: "m"}
	if _, err := c.Pass(t.Context(), modelcall.PassRequest{StoredPath: "resp_1/input_items", Method: http.MethodGet}); err != nil {
		t.Fatal(err)
	}
	if got := u.requests()[0]; got.path != "/v1/responses/resp_1/input_items" || got.query != "api-version=1" || len(got.body) != 0 || got.header.Get("Content-Type") != "" {
		t.Errorf("%+v", got)
	}
	for _, stored := range []string{"../files", "a?b", "a%2fb", "a b"} {
		if _, err := c.Pass(t.Context(), modelcall.PassRequest{StoredPath: stored, Method: http.MethodGet}); !errors.Is(err, dragoman.ErrInvalid) {
			t.Errorf("%q: %v", stored, err)
		}
	}
}

func TestJ16_ClientHeadersStayAndBetasAreJoined(t *testing.T) {
	u := upstreams(t, respondWith(http.StatusOK, "{}"))
	for _, tc := range []struct {
		codec        dialect.Codec
		own, asked   http.Header
		name, expect string
	}{
		{anthropic.Codec{}, nil, nil, "Anthropic-Version", "2023-06-01"},
		{anthropic.Codec{}, nil, http.Header{"Anthropic-Version": {"2027-01-01"}}, "Anthropic-Version", "2027-01-01"},
		{anthropic.Codec{}, http.Header{"anthropic-version": {"mine"}}, http.Header{"Anthropic-Version": {"2027-01-01"}}, "Anthropic-Version", "mine"},
		{anthropic.Codec{}, http.Header{"anthropic-beta": {"a"}}, http.Header{"Anthropic-Beta": {"b,c", "d"}}, "Anthropic-Beta", "a,b,c,d"},
		{openaichat.Codec{}, http.Header{"OpenAI-Organization": {"org-mine"}}, http.Header{"Openai-Organization": {"org-theirs"}}, "Openai-Organization", "org-mine"},
		{openaichat.Codec{}, nil, http.Header{"Openai-Organization": {"two\nlines"}}, "Openai-Organization", ""},
	} {
		before := len(u.requests())
		passThrough(t, u.client(&provider.Client{Codec: tc.codec, Header: tc.own}), modelcall.PassRequest{Body: []byte("{}"), Header: tc.asked})
		if got := strings.Join(u.requests()[before].header.Values(tc.name), " | "); got != tc.expect {
			t.Errorf("%v and %v: %q, want %q", tc.own, tc.asked, got, tc.expect)
		}
	}
}

func TestJ16_OnlyUsefulResponseHeadersAreReturned(t *testing.T) {
	given := []string{
		"Content-Type", "text/event-stream", "Retry-After", "7", "Retry-After-Ms", "7000", "X-Should-Retry", "false", "Request-Id", "r1", "X-Request-Id", "r2", "X-Amzn-Requestid", "r3",
		"Anthropic-Ratelimit-Tokens-Remaining", "5", "X-Ratelimit-Limit-Requests", "9", "Openai-Processing-Ms", "3", "Openai-Version", "2020", "X-Amzn-Errortype", "Any",
		"Set-Cookie", "a=b", "Openai-Organization", "org-mine", "Anthropic-Organization-Id", "mine", "Server", "any", "Cf-Ray", "any", "Www-Authenticate", "any", "Location", "/", "Connection", "close",
		"X-Ratelimit-Owner", "it is sk-the-key-of-the-gateway",
	}
	want := "Anthropic-Ratelimit-Tokens-Remaining Content-Type Openai-Processing-Ms Openai-Version Request-Id Retry-After Retry-After-Ms X-Amzn-Errortype X-Amzn-Requestid X-Ratelimit-Limit-Requests X-Request-Id X-Should-Retry"
	for _, status := range []int{http.StatusOK, http.StatusBadRequest} {
		u := upstreams(t, respondWith(status, "{}", given...))
		got, _ := passThrough(t, u.client(&provider.Client{}), modelcall.PassRequest{Body: []byte("{}")})
		var names []string
		for name := range got.Header {
			names = append(names, name)
		}
		slices.Sort(names)
		if have := strings.Join(names, " "); have != want {
			t.Errorf("%d: came back %s\nwant %s", status, have, want)
		}
	}
}

func TestPassRetriesUntilTheFirstByte(t *testing.T) {
	body := modelcall.PassRequest{Body: []byte(`{"a":1}`), Stream: true}
	for name, tc := range map[string]struct {
		first http.HandlerFunc
		wait  time.Duration
	}{
		"a server that is overloaded":      {respondWith(http.StatusServiceUnavailable, "{}"), 250 * time.Millisecond},
		"a server that asks for a wait":    {respondWith(http.StatusTooManyRequests, "{}", "Retry-After", "7"), 7 * time.Second},
		"a refusal that may be repeated":   {respondWith(http.StatusBadRequest, "{}", "X-Should-Retry", "true"), 250 * time.Millisecond},
		"a connection that breaks at once": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 250 * time.Millisecond},
		"one that breaks behind the head":  {breakAfter(""), 250 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			u := upstreams(t, tc.first, respondWith(http.StatusOK, "data: fine\n\n"))
			clock := eagerClock{newClock()}
			c := u.client(provider.OnClock(clock, &provider.Client{Timeouts: unboundedPhases, Retry: provider.Retry{Jitter: func() float64 { return 1 }}}))
			if got, answer := passThrough(t, c, body); got.Status != http.StatusOK || answer != "data: fine\n\n" {
				t.Errorf("%d %q", got.Status, answer)
			}
			if waits := clock.waits(); !slices.Equal(waits, []time.Duration{tc.wait}) {
				t.Errorf("waited %v", waits)
			}
			if got := u.requests(); len(got) != 2 || string(got[1].body) != `{"a":1}` {
				t.Errorf("%d upstream requests", len(got))
			}
		})
	}
}

func TestPassDoesNotRetryAfterContent(t *testing.T) {
	const said = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"}}]}\n\ndata: half"
	u := upstreams(t, breakAfter(said))
	got, err := u.client(&provider.Client{}).Pass(t.Context(), modelcall.PassRequest{Body: []byte("{}"), Stream: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = got.Body.Close() }()
	body, err := io.ReadAll(got.Body)
	var transport *provider.TransportError
	if string(body) != said || !errors.As(err, &transport) || !errors.Is(err, dragoman.ErrIncompleteStream) || len(u.requests()) != 1 {
		t.Errorf("%q, %v, %d upstream requests", body, err, len(u.requests()))
	}
}

func TestErrorIsPassedThroughUnchanged(t *testing.T) {
	const own = "{\"error\" : {\"message\":\"so \\u0041\", \"type\":\"any\", \"more\":[1.0]}}\n"
	for _, tc := range []struct {
		status int
		class  dragoman.ErrorClass
		asked  int
	}{
		{http.StatusBadRequest, dragoman.ErrorBadRequest, 1},
		{http.StatusUnauthorized, dragoman.ErrorAuth, 1},
		{http.StatusNotFound, dragoman.ErrorNotFound, 1},
		{http.StatusTooManyRequests, dragoman.ErrorRateLimit, 3},
		{http.StatusInternalServerError, dragoman.ErrorServer, 3},
	} {
		u := upstreams(t, respondWith(tc.status, own))
		got, body := passThrough(t, u.client(&provider.Client{}), modelcall.PassRequest{Body: []byte("{}"), Stream: true})
		if got.Status != tc.status || body != own || got.Err == nil || got.Err.Class != tc.class || got.Err.Message != "so A" || len(u.requests()) != tc.asked {
			t.Errorf("%d: %d, %q, %v, %d upstream requests", tc.status, got.Status, body, got.Err, len(u.requests()))
		}
	}
}

func TestQuirkD23_PassedRequestsAreNotRepaired(t *testing.T) {
	u := upstreams(t, respondWith(http.StatusBadRequest, `{"type":"error","error":{"type":"invalid_request_error","message":"Invalid signature in thinking block"}}`))
	got, _ := passThrough(t, u.client(&provider.Client{Codec: anthropic.Codec{}}), modelcall.PassRequest{Body: []byte("{}")})
	if got.Status != http.StatusBadRequest || len(u.requests()) != 1 {
		t.Errorf("%d, %d upstream requests", got.Status, len(u.requests()))
	}
}

func TestX13_PassedErrorIsRedacted(t *testing.T) {
	for _, tc := range []struct{ key, body, want string }{
		{"sk-a/secret+key", `{"error":{"message":"no such key sk-a\/secret+key"}}`, `{"error":{"message":"no such key [redacted]"}}`},
		{"sk-a/secret+key", "<p>no such key: sk-a/secret+key</p>", "<p>no such key: [redacted]</p>"},
	} {
		u := upstreams(t, respondWith(http.StatusUnauthorized, tc.body))
		got, body := passThrough(t, u.client(&provider.Client{Auth: provider.Bearer(provider.FixedKey(tc.key))}), modelcall.PassRequest{Body: []byte("{}")})
		if body != tc.want || strings.Contains(got.Err.Error(), tc.key) {
			t.Errorf("%q, %v", body, got.Err)
		}
	}
	t.Run("re-encoded if redacting would break its JSON", func(t *testing.T) {
		u := upstreams(t, respondWith(http.StatusUnauthorized, `{"error":{"message":"who are you?","code":null}}`))
		_, body := passThrough(t, u.client(&provider.Client{Auth: provider.Bearer(provider.FixedKey("null"))}), modelcall.PassRequest{Body: []byte("{}")})
		if !json.Valid([]byte(body)) || !strings.Contains(body, "who are you?") {
			t.Errorf("%q", body)
		}
	})
}

func TestJ16_UnrequestedCompressionIsRemoved(t *testing.T) {
	const stream, refusal = "data: {}\n\ndata: [DONE]\n\n", `{"error":{"message":"so"}}`
	for _, tc := range []struct {
		name               string
		status             int
		body, encoding     string
		want, wantEncoding string
	}{
		{"a stream", http.StatusOK, gzipped(stream), "gzip", stream, ""},
		{"a refusal", http.StatusBadRequest, gzipped(refusal), "GZIP", refusal, ""},
		{"a stream in what we do not know is said to be", http.StatusOK, "\x01\x02", "br", "\x01\x02", "br"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			u := upstreams(t, respondWith(tc.status, tc.body, "Content-Encoding", tc.encoding))
			got, body := passThrough(t, u.client(&provider.Client{}), modelcall.PassRequest{Body: []byte("{}"), Stream: true})
			if body != tc.want || got.Header.Get("Content-Encoding") != tc.wantEncoding {
				t.Errorf("%q, %v", body, got.Header)
			}
		})
	}
	t.Run("as are those of Stream", func(t *testing.T) {
		u := upstreams(t, respondWith(http.StatusOK, gzipped("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"), "Content-Encoding", "gzip"))
		resp, err := dragoman.Collect(u.client(&provider.Client{}).Stream(t.Context(), newRequest()))
		if err != nil || resp.Text() != "hi" {
			t.Errorf("%v, %v", resp, err)
		}
	})
}

func TestUnpassableErrorIsReencoded(t *testing.T) {
	for name, step := range map[string]http.HandlerFunc{
		"it is packed in what we do not know": respondWith(http.StatusBadRequest, "\x01\x02", "Content-Encoding", "br", "Content-Type", "text/html"),
		"it is too long":                      respondWith(http.StatusBadRequest, strings.Repeat("long ", 1<<18), "Content-Type", "text/html"),
		"it breaks": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":`)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, body := passThrough(t, upstreams(t, step).client(&provider.Client{}), modelcall.PassRequest{Body: []byte("{}"), Stream: true})
			var e struct{ Error struct{ Message *string } }
			if err := json.Unmarshal([]byte(body), &e); err != nil || e.Error.Message == nil || len(body) > 64<<10 {
				t.Errorf("%.80q: %v", body, err)
			}
			if got.Status != http.StatusBadRequest || got.Err == nil || got.Header.Get("Content-Type") != "application/json" || got.Header.Get("Content-Encoding") != "" {
				t.Errorf("%d %v %v", got.Status, got.Err, got.Header)
			}
		})
	}
}

func TestPassReportsInvalidResponses(t *testing.T) {
	u := upstreams(t, respondWith(http.StatusTemporaryRedirect, "", "Location", "http://elsewhere.invalid/"))
	nobody := httptest.NewServer(nil)
	nobody.Close()
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	var api *dragoman.APIError
	for name, tc := range map[string]struct {
		ctx    context.Context
		client *provider.Client
		is     func(error) bool
		asked  int
	}{
		"a redirect":               {t.Context(), u.client(&provider.Client{}), func(err error) bool { return errors.As(err, &api) && api.Status == 307 }, 1},
		"a key that is missing":    {t.Context(), u.client(&provider.Client{Auth: provider.Bearer(provider.FixedKey(""))}), func(err error) bool { return errors.As(err, &api) && api.Class == dragoman.ErrorAuth }, 0},
		"a body that is too large": {t.Context(), u.client(&provider.Client{MaxRequestBytes: 1}), func(err error) bool { return errors.Is(err, dragoman.ErrTooLarge) }, 0},
		"a caller who is gone":     {cancelled, u.client(&provider.Client{}), func(err error) bool { return errors.Is(err, context.Canceled) }, 0},
		"nobody": {t.Context(), &provider.Client{BaseURL: nobody.URL, Retry: provider.Retry{Max: -1}}, func(err error) bool {
			var transport *provider.TransportError
			return errors.As(err, &transport)
		}, 0},
	} {
		before := len(u.requests())
		got, err := tc.client.Pass(tc.ctx, modelcall.PassRequest{Body: []byte("{}")})
		if got != nil || !tc.is(err) || len(u.requests())-before != tc.asked {
			t.Errorf("%s: %v, %v, %d upstream requests", name, got, err, len(u.requests())-before)
		}
	}
}

func TestX13_EachPhaseOfPassHasItsTimeout(t *testing.T) {
	const said = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"}}]}\n\ndata: half"
	for _, tc := range []struct {
		phase    string
		timeouts provider.Timeouts
		begun    string
	}{
		{"first byte", provider.Timeouts{FirstByte: time.Minute, Idle: -1, Total: -1}, ""},
		{"idle", provider.Timeouts{FirstByte: -1, Idle: time.Minute, Total: -1}, said},
		{"total", provider.Timeouts{FirstByte: -1, Idle: -1, Total: time.Minute}, said},
	} {
		t.Run(tc.phase, func(t *testing.T) {
			clock, passed := newClock(), make(chan struct{})
			u := upstreams(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.WriteString(w, tc.begun)
				w.(http.Flusher).Flush()
				if tc.begun != "" { // it is there before time goes on
					<-passed
				}
				for r.Context().Err() == nil {
					clock.advance(time.Second)
				}
			})
			got, err := u.client(provider.OnClock(clock, &provider.Client{Timeouts: tc.timeouts, Retry: provider.Retry{Max: -1}})).Pass(t.Context(), modelcall.PassRequest{Body: []byte("{}"), Stream: true})
			close(passed)
			if err == nil {
				defer func() { _ = got.Body.Close() }()
				_, err = io.Copy(io.Discard, got.Body)
			}
			var timeout *provider.TimeoutError
			if !errors.As(err, &timeout) || timeout.Phase != tc.phase || (got == nil) != (tc.begun == "") {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
}

func TestJ9_ClosingThePassedBodyCancelsTheRequest(t *testing.T) {
	gone := make(chan struct{})
	u := upstreams(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "data: 1\n\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		close(gone)
	})
	clock := newClock()
	got, err := u.client(provider.OnClock(clock, &provider.Client{Timeouts: provider.Timeouts{Total: time.Hour}})).Pass(t.Context(), modelcall.PassRequest{Body: []byte("{}"), Stream: true})
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 100)
	if n, err := got.Body.Read(b); string(b[:n]) != "data: 1\n\n" || err != nil {
		t.Fatalf("%q %v", b[:n], err)
	}
	for range 2 { // twice is once
		if err := got.Body.Close(); err != nil {
			t.Error(err)
		}
	}
	<-gone
	for _, timer := range clock.timers {
		if timer.live {
			t.Errorf("a timer goes on until %v", timer.at)
		}
	}
}

func TestX13_PassedConnectionsAreReused(t *testing.T) {
	var conns sync.Map
	u := upstreams(t, func(w http.ResponseWriter, r *http.Request) {
		conns.Store(r.RemoteAddr, true)
		_, _ = io.WriteString(w, "data: 1\n\n")
	})
	c := u.client(&provider.Client{})
	for range 5 {
		passThrough(t, c, modelcall.PassRequest{Body: []byte("{}"), Stream: true})
	}
	n := 0
	conns.Range(func(any, any) bool { n++; return true })
	if n != 1 {
		t.Errorf("%d connections", n)
	}
}

func TestO2_PassedRequestIsLoggedWithoutCredentials(t *testing.T) {
	u := upstreams(t, respondWith(http.StatusOK, "data: sk-the-key-of-the-gateway and more\n\n"))
	log, lines := debugLog()
	called := modelcall.PassRequest{Body: []byte(`{"words":"of the user, sk-the-key-of-the-gateway"}`), Stream: true, Header: http.Header{"Idempotency-Key": {"their-own-key"}}}
	got, _ := passThrough(t, u.client(&provider.Client{Log: log}), called)
	if err := got.Body.Close(); err != nil { // again, which says nothing
		t.Error(err)
	}
	request, body := lines.lines(t, "model request"), lines.lines(t, "model response passed through")
	if len(request) != 1 || request[0]["after"] != `{"words":"of the user, [redacted]"}` || request[0]["before"] != nil {
		t.Errorf("request %v", request)
	}
	if len(body) != 1 || body[0]["body"] != "data: [redacted] and more\n\n" || fmt.Sprint(body[0]["bytes"]) != "42" {
		t.Errorf("answer %v", body)
	}
	if strings.Contains(lines.String(), "their-own-key") {
		t.Error("a header of who asked is in the log")
	}

	var quiet logBuffer
	passThrough(t, u.client(&provider.Client{Log: slog.New(slog.NewJSONHandler(&quiet, nil))}), called)
	if body := quiet.lines(t, "model response passed through"); len(body) != 1 || body[0]["body"] != nil || strings.Contains(quiet.String(), "words") {
		t.Errorf("without debug: %s", quiet.String())
	}
}
