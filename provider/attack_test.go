package provider_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/bedrock"
	"github.com/dragoman-go/dragoman/dialect/cohere"
	"github.com/dragoman-go/dragoman/dialect/ollama"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/codec/toolformat"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/provider/extension"
)

const farTooMany = 10_000

// slowTransport returns responses whose body begins with head and continues with chunks, each
// after a pause. Without a chunk, the body stalls.
type slowTransport struct {
	clock  *fakeClock
	each   time.Duration
	status int
	head   []byte
	piece  []byte
	// meanwhile, unless it is nil, is called for each response.
	meanwhile func()

	ctx    context.Context
	pieces int
}

func (d *slowTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	d.ctx = r.Context()
	return &http.Response{StatusCode: d.status, Header: http.Header{}, Body: io.NopCloser(d), Request: r}, nil
}

func (d *slowTransport) Read(p []byte) (int, error) {
	if n := copy(p, d.head); n > 0 {
		d.head = d.head[n:]
		return n, nil
	}
	for d.pieces++; d.pieces < farTooMany; d.pieces++ {
		d.clock.advance(d.each)
		if d.meanwhile != nil {
			d.meanwhile()
		}
		if d.ctx.Err() != nil || d.piece != nil {
			return copy(p, d.piece), d.ctx.Err()
		}
	}
	return 0, io.EOF
}

func TestX13_BytesAfterTheEndDoNotBlock(t *testing.T) {
	each(t, func(t *testing.T, codec dialect.Codec) {
		if codec.Dialect() == dialectname.Gemini {
			t.Skip("its streams end with the connection")
		}
		d := &slowTransport{clock: newClock(), each: 100 * time.Millisecond, status: http.StatusOK, piece: []byte("\n")}
		enc := codec.NewStreamEncoder(dialect.EncodeOptions{StreamUsage: true})
		for _, ev := range eventsOf(textResponse("done")) {
			before := len(d.head)
			d.head, _ = enc.Encode(d.head, ev)
			if codec.Dialect() == dialectname.Bedrock && before == 0 {
				d.piece = bytes.Clone(d.head)
			}
		}
		d.head, _ = enc.Close(d.head)
		c := provider.OnClock(d.clock, &provider.Client{Codec: codec, Model: "m", BaseURL: "http://x.test", HTTP: &http.Client{Transport: d}, Timeouts: unboundedPhases})
		resp, err := dragoman.Collect(c.Stream(t.Context(), newRequest()))
		if err != nil || resp.Text() != "done" {
			t.Fatalf("%v, %v", resp, err)
		}
		if d.pieces == farTooMany {
			t.Error("the loop went on for as long as the server")
		}
	})
}

func TestX13_ErrorBodyIsBoundedInTimeAndLength(t *testing.T) {
	d := &slowTransport{clock: newClock(), each: time.Second, status: http.StatusPaymentRequired, piece: []byte(" ")}
	c := provider.OnClock(d.clock, &provider.Client{HTTP: &http.Client{Transport: d}, Timeouts: unboundedPhases, Retry: provider.Retry{Max: -1}})
	_, err := c.Generate(t.Context(), newRequest())
	var api *dragoman.APIError
	if !errors.As(err, &api) || api.Status != http.StatusPaymentRequired {
		t.Errorf("%v, want what the status says", err)
	}
	if d.pieces == farTooMany {
		t.Error("it was waited for as long as the server went on")
	}

	each(t, func(t *testing.T, codec dialect.Codec) {
		long := strings.Repeat("no, ", 50_000)
		e := &dragoman.APIError{Class: dragoman.ErrorBadRequest, Message: long, Type: long, Code: long, Param: long}
		inStream := func(s *server, w http.ResponseWriter, _ *http.Request, got received) {
			s.writeEvents(w, []dragoman.Event{&dragoman.StreamError{Err: e}})
		}
		for name, step := range map[string]step{"a status": respondError(e, "X-Request-Id", long, "Request-Id", long, "X-Amzn-Requestid", long), "a stream": inStream} {
			log, seen := debugLog()
			s := serve(t, codec, step)
			_, err := dragoman.Collect(s.client(&provider.Client{Log: log}).Stream(t.Context(), newRequest()))
			var api *dragoman.APIError
			if !errors.As(err, &api) || len(err.Error()) > 25_000 || len(api.Message)+len(api.Type)+len(api.Code)+len(api.Param)+len(api.RequestID) > 25_000 {
				t.Errorf("%s: an error of %d bytes", name, len(err.Error()))
			}
			if seen.Len() > 80_000 {
				t.Errorf("%s: %d bytes are logged", name, seen.Len())
			}
		}
	})
}

func TestX14_TooLargeResponseIsNotRetried(t *testing.T) {
	each(t, func(t *testing.T, codec dialect.Codec) {
		s := serve(t, codec, func(_ *server, w http.ResponseWriter, _ *http.Request, _ received) {
			_, _ = io.Copy(w, io.MultiReader(strings.NewReader("data: "), bytes.NewReader(bytes.Repeat([]byte("a"), 1<<20))))
		})
		c, _ := noWaitClient(s, noJitter)
		c.MaxResponseBytes = 1 << 16
		_, err := dragoman.Collect(c.Stream(t.Context(), newRequest()))
		if codec.Dialect() != dialectname.Bedrock && !errors.Is(err, dragoman.ErrTooLarge) { // whose frames say how long they are
			t.Errorf("%v", err)
		}
		if n := len(s.requests()); n != 1 && codec.Dialect() != dialectname.Bedrock || provider.Retryable(err) && errors.Is(err, dragoman.ErrTooLarge) {
			t.Errorf("%d upstream requests: %v", n, err)
		}
	})
}

func TestX13_CredentialIsRedactedInEverySpelling(t *testing.T) {
	const key = `sk-Zm9v+YmFy/"quoted"&more==`
	const setting = "sk-Zm9v+Ym" // which the key begins with
	inner, _ := json.Marshal(key)
	spelt := string(inner[1 : len(inner)-1])
	for name, repeated := range map[string]string{
		"as it is":        key,
		"JSON":            spelt,
		"PHP's JSON":      strings.ReplaceAll(spelt, "/", `\/`),
		".NET's JSON":     strings.ReplaceAll(spelt, "+", `\u002B`),
		"JSON, escaped":   strings.ReplaceAll(strings.ReplaceAll(spelt, "/", `\/`), "+", `\u002b`),
		"a query":         url.QueryEscape(key),
		"a path":          url.PathEscape(key),
		"base64":          base64.StdEncoding.EncodeToString([]byte(key)),
		"base64, no pad":  base64.RawStdEncoding.EncodeToString([]byte(key)),
		"base64 of URLs":  base64.URLEncoding.EncodeToString([]byte(key)),
		"base64, escaped": strings.ReplaceAll(base64.StdEncoding.EncodeToString([]byte(key)), "/", `\/`),
		"Basic":           "Basic " + base64.StdEncoding.EncodeToString([]byte("me:"+key)),
		"base64 within":   base64.RawURLEncoding.EncodeToString([]byte("key=" + key + ";")),
		"cut off by us":   strings.Repeat("x", 470) + key + strings.Repeat("x", 100),
		"in a Location's": "Location",
	} {
		t.Run(name, func(t *testing.T) {
			for _, codec := range []dialect.Codec{openaichat.Codec{}, bedrock.Codec{}, ollama.Codec{}} {
				for _, status := range []int{http.StatusOK, http.StatusUnauthorized} {
					log, seen := debugLog()
					s := serve(t, codec, func(_ *server, w http.ResponseWriter, _ *http.Request, _ received) {
						if repeated == "Location" {
							w.Header().Set("Location", "http://[bad?"+key)
							status = http.StatusFound
						}
						w.WriteHeader(status)
						_, _ = fmt.Fprintf(w, `{"error":{"message":"%s","type":"t"},"other":"%s"}`, repeated, repeated)
					})
					c := s.client(&provider.Client{
						Log: log, Retry: provider.Retry{Max: -1}, Auth: provider.HeaderKey("X-Key", provider.FixedKey(key)),
						Header: http.Header{"X-Team": {setting}},
					})
					resp, err := c.Generate(t.Context(), newRequest())
					out := fmt.Sprintf("%v %#v %s", err, err, seen)
					var api *dragoman.APIError
					if errors.As(err, &api) && api.Native != nil {
						out += string(api.Native.JSON)
					}
					if resp != nil {
						out += fmt.Sprint(resp.Losses)
					}
					for _, secret := range []string{"sk-Zm9v", "YmFy", `quoted\"&more`, "&more==", "Wm05ditZ", "1abTl2K1", "LVptOXYr"} {
						if strings.Contains(out, secret) {
							t.Errorf("%s %d: %s is told: %.2000s", codec.Dialect(), status, secret, out)
						}
					}
				}
			}
		})
	}
}

func TestX13_URLUserIsRedacted(t *testing.T) {
	log, seen := debugLog()
	s := serve(t, openaichat.Codec{}, func(_ *server, w http.ResponseWriter, r *http.Request, _ received) {
		user, _, _ := r.BasicAuth()
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = fmt.Fprintf(w, `{"error":{"message":"who is %s? %s"}}`, user, r.Header.Get("Authorization"))
	})
	c := s.client(&provider.Client{Log: log})
	c.BaseURL = strings.Replace(c.BaseURL, "://", "://key-in-the-user@", 1)
	_, err := c.Generate(t.Context(), newRequest())
	for _, secret := range []string{"key-in-the-user", "a2V5LWlu"} {
		if out := fmt.Sprint(err, seen); strings.Contains(out, secret) {
			t.Errorf("%s is told: %s", secret, out)
		}
	}
}

func TestX13_InvalidBaseURLIsNotQuoted(t *testing.T) {
	for _, base := range []string{"https://user:hunter2/x@host", "https://user:hun%zzter2@host", "https://user:hunter2 x@host\x7f", "http://user:hunter2@[::1"} {
		c := &provider.Client{BaseURL: base}
		_, err := c.Generate(t.Context(), newRequest())
		var setting *provider.SettingError
		if !errors.As(err, &setting) || strings.Contains(err.Error(), "hun") || strings.Contains(err.Error(), "ter2") || strings.Contains(err.Error(), "zz") {
			t.Errorf("%q: %v", base, err)
		}
	}
}

func TestX15_AliasesAreFollowedOnce(t *testing.T) {
	var text strings.Builder
	text.WriteString("version: 1\naliases:\n")
	for i := range 60 {
		fmt.Fprintf(&text, "  a%d: [a%d, a%d, a%d]\n", i, i+1, i+1, i+1)
	}
	text.WriteString("  a60: [openai/x, openai/y]\n")
	c, err := provider.Parse("c.yaml", []byte(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	m, err := c.Open("a0")
	if chain, ok := m.(*provider.Chain); err != nil || !ok || len(chain.Links) != 2 {
		t.Errorf("%v, %v", m, err)
	}
}

func TestX15_ManyAliasesAreReadInLinearTime(t *testing.T) {
	const n = 20_000
	for name, line := range map[string]func(i int) string{
		"a long way":         func(i int) string { return fmt.Sprintf(`"a%d":"a%d"`, i, i+1) },
		"all to one list":    func(int) string { return "" },
		"all to nowhere":     func(i int) string { return fmt.Sprintf(`"a%d":"nowhere"`, i) },
		"all to no provider": func(i int) string { return fmt.Sprintf(`"a%d":"nowhere/x"`, i) },
	} {
		lines := make([]string, n)
		for i := range lines {
			if lines[i] = line(i); lines[i] == "" {
				lines[i] = fmt.Sprintf(`"a%d":"list"`, i)
			}
		}
		list := strings.TrimSuffix(strings.Repeat("openai/x,", 1000), ",")
		_, err := provider.Parse("c.json", []byte(`{"version":1,"aliases":{`+strings.Join(lines, ",")+`,"list":"`+list+`"}}`))
		if (err == nil) != (name == "all to one list") {
			t.Errorf("%s: %.200s", name, fmt.Sprint(err))
		}
		if text := fmt.Sprint(err); len(text) > 1<<20 {
			t.Errorf("%s: an error of %d bytes", name, len(text))
		}
	}
}

func TestX15_LongListsAreOpened(t *testing.T) {
	var list []string
	for i := range 5_000 {
		list = append(list, fmt.Sprintf("sim/echo?seed=%d", i))
	}
	m, err := (&provider.Config{}).Open(strings.Join(list, ","))
	if chain, ok := m.(*provider.Chain); err != nil || !ok || len(chain.Links) != len(list) {
		t.Fatal(err)
	}
	if resp, err := m.Generate(t.Context(), newRequest()); err != nil || resp.Text() == "" {
		t.Error(err)
	}
}

func TestX15_EndlessFileIsBounded(t *testing.T) {
	if _, err := os.Stat("/dev/zero"); err != nil {
		t.Skip("there is no such file")
	}
	_, err := provider.Load("/dev/zero")
	var bad *provider.FileError
	if !errors.As(err, &bad) || !strings.Contains(err.Error(), "longer") {
		t.Error(err)
	}
}

func TestX15_InvalidHeadersAreConfigErrors(t *testing.T) {
	for _, text := range []string{
		`{"version":1,"providers":{"openai":{"headers":{"x-team":"a\r\nx-admin: yes"}}}}`,
		`{"version":1,"providers":{"openai":{"headers":{"x-team: a\r\nx-admin":"yes"}}}}`,
		`{"version":1,"providers":{"openai":{"headers":{"":"yes"}}}}`,
		`{"version":1,"providers":{"openai":{"key_header":"x key"}}}`,
	} {
		var bad *provider.FileError
		if _, err := provider.Parse("c.json", []byte(text)); !errors.As(err, &bad) || !strings.Contains(err.Error(), "header") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestX13_InvalidHeadersAreNotSent(t *testing.T) {
	s := serve(t, openaichat.Codec{}, respond(textResponse("hello")))
	signed := func(context.Context) (provider.AWSKeys, error) {
		return provider.AWSKeys{AccessKeyID: "AKIA\r\nX-Admin: yes", SecretAccessKey: "hush"}, nil
	}
	for name, c := range map[string]*provider.Client{
		"a value":     {Header: http.Header{"X-Team": {"a\r\nX-Admin: yes"}}},
		"a name":      {Header: http.Header{"X-Team: a\r\nX-Admin": {"yes"}}},
		"a key":       {Auth: provider.Bearer(provider.FixedKey("sk\r\nX-Admin: yes"))},
		"a signature": {Auth: provider.SigV4{Region: "r", Keys: signed}},
		"a header":    {Auth: provider.HeaderKey("X Key", provider.FixedKey("sk-hush"))},
	} {
		_, err := s.client(c).Generate(t.Context(), newRequest())
		if err == nil || provider.Retryable(err) || strings.Contains(err.Error(), "sk-hush") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := len(s.requests()); n > 0 {
		t.Errorf("%d requests were sent", n)
	}
}

// appendingAuth appends its credential to the value of a header.
type appendingAuth struct{}

func (appendingAuth) Authorize(_ context.Context, r *http.Request, _ []byte) error {
	r.Header.Add("X-Beta", "mine")
	return nil
}

func TestConcurrentRequestsShareNoHeaders(t *testing.T) {
	s := serve(t, openaichat.Codec{}, respond(textResponse("hello")))
	values := append(make([]string, 0, 8), "one", "two")
	c := s.client(&provider.Client{Header: http.Header{"X-Beta": values}, Auth: appendingAuth{}})
	if _, err := c.Generate(t.Context(), newRequest()); err != nil {
		t.Fatal(err)
	}
	if spare := values[:3][2]; spare != "" {
		t.Errorf("%q was written into the settings of the client", spare)
	}
}

func TestX15_LargeYAMLIsRefused(t *testing.T) {
	const n = 50_000
	var yaml, inner strings.Builder
	for i := range n {
		fmt.Fprintf(&yaml, "  a%d: openai/x\n", i)
		fmt.Fprintf(&inner, `,"a%d":"openai/x"`, i)
	}
	_, err := provider.Parse("c.yaml", []byte("version: 1\naliases:\n"+yaml.String()))
	var bad *provider.FileError
	if !errors.As(err, &bad) || !strings.Contains(err.Error(), "JSON") {
		t.Errorf("%v", err)
	}
	if _, err := provider.Parse("c.json", []byte(`{"version":1,"aliases":{`+inner.String()[1:]+`}}`)); err != nil {
		t.Error(err)
	}
}

// setBackClock is a clock whose time is changed while its timers continue.
type setBackClock struct {
	*fakeClock
	by atomic.Int64
}

func (c *setBackClock) Now() time.Time { return c.fakeClock.Now().Add(time.Duration(c.by.Load())) }

func TestX13_ClockSetBackDoesNotStopTimeouts(t *testing.T) {
	clock := &setBackClock{fakeClock: newClock()}
	d := &slowTransport{clock: clock.fakeClock, each: time.Second, status: http.StatusOK, head: []byte(": hello\n")}
	d.meanwhile = func() {
		if d.pieces == 10 {
			clock.by.Store(-int64(24 * time.Hour))
		}
	}
	c := provider.OnClock(clock, &provider.Client{HTTP: &http.Client{Transport: d}, Retry: provider.Retry{Max: -1}, Timeouts: provider.Timeouts{FirstByte: -1, Idle: time.Minute, Total: -1}})
	_, err := dragoman.Collect(c.Stream(t.Context(), newRequest()))
	var timeout *provider.TimeoutError
	if !errors.As(err, &timeout) || timeout.Phase != "idle" || d.pieces > 300 {
		t.Errorf("after %d seconds: %v", d.pieces, err)
	}
}

func TestModelNamesAreEscapedInURLs(t *testing.T) {
	each(t, func(t *testing.T, codec dialect.Codec) {
		for _, model := range []string{
			"../../admin", "..%2f..", "a?b=c", "a#b", "a%00b", "a\x00b\r\nX-Admin: yes", "//evil.test/x", "http://evil.test/", "a b", "ä/ö:ü",
			"arn:aws:bedrock:us-east-1:1:inference-profile/us.x-v1:0", "tunedModels/..", "models/models/x", "{model}", strings.Repeat("x", 2000),
		} {
			s := serve(t, codec, respond(textResponse("hi")))
			c := s.client(&provider.Client{Model: model, Retry: provider.Retry{Max: -1}})
			_, err := c.Generate(t.Context(), newRequest())
			if dots := model == "../../admin" || model == "tunedModels/.."; dots && codec.Limits().ModelInURL {
				if !errors.Is(err, dragoman.ErrInvalid) || len(s.requests()) > 0 {
					t.Errorf("%.80q: %v after %d requests", model, err, len(s.requests()))
				}
				continue
			}
			if err != nil {
				t.Errorf("%.80q: %v", model, err)
				continue
			}
			got := s.requests()[0]
			depth := strings.Count(endpointPath(codec.Dialect()), "/")
			if strings.Count(got.path, "/") != depth || got.query != "" || got.header.Get("X-Admin") != "" {
				t.Errorf("%.80q is sent to %s?%s", model, got.path, got.query)
			}
		}
	})
}

func endpointPath(d dragoman.Dialect) string {
	return map[dragoman.Dialect]string{
		dialectname.OpenAIChat: "/chat/completions", dialectname.OpenAIResponses: "/responses", dialectname.Anthropic: "/v1/messages",
		dialectname.Gemini: "/v1beta/models/x", dialectname.Ollama: "/api/chat", dialectname.Bedrock: "/model/x/converse",
		cohere.Codec{}.Dialect(): "/v2/chat",
	}[d]
}

func TestBaseURLWithTwoSlashesKeepsItsPath(t *testing.T) {
	s := serve(t, openaichat.Codec{}, respond(textResponse("hi")))
	c := s.client(&provider.Client{})
	c.BaseURL += "//proxy/v1/"
	if _, err := c.Generate(t.Context(), newRequest()); err != nil {
		t.Fatal(err)
	}
	if at := s.requests()[0].path; at != "//proxy/v1/chat/completions" {
		t.Errorf("sent to %s", at)
	}
}

func TestX14_ClockSetBackDoesNotProlongCooldown(t *testing.T) {
	clock := newClock()
	h := provider.HealthOn(clock, &provider.Health{After: 1})
	h.Failed("a", overloaded)
	if _, skipped := h.SkippedUntil("a"); !skipped {
		t.Fatal("it is not skipped")
	}
	clock.advance(-24 * time.Hour)
	if until, skipped := h.SkippedUntil("a"); skipped {
		t.Errorf("it is skipped until %v, for a day", until)
	}
}

// clearingExtension removes the resolution from the exchange.
type clearingExtension struct{}

func (clearingExtension) Info() extension.Info { return extension.Info{Name: "forgetful"} }

func (clearingExtension) Prepare(_ context.Context, x *extension.Exchange) error {
	x.Resolution = nil
	return nil
}

func (clearingExtension) ReadChunk(_ context.Context, x *extension.Exchange, _ json.RawMessage) error {
	x.Resolution = nil
	return nil
}

func TestX3_ExtensionMayClearOtherValues(t *testing.T) {
	set, err := extension.NewSet(clearingExtension{})
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, openaichat.Codec{}, respond(textResponse("hello")))
	c := s.client(&provider.Client{Extensions: provider.Extensions{Set: set}})
	if _, err := c.Generate(t.Context(), newRequest()); err != nil {
		t.Error(err)
	}
	if resp, err := dragoman.Collect(c.Stream(t.Context(), newRequest())); err != nil || resp.Text() != "hello" {
		t.Error(err)
	}
}

func TestX14_NoWaitBeyondTheDeadline(t *testing.T) {
	forGenerateAndStream(t, func(t *testing.T, ask func(dragoman.Model, *dragoman.Request) (*dragoman.Response, error)) {
		s := serve(t, openaichat.Codec{}, respondError(rateLimited, "Retry-After", "50"))
		clock := newClock() // never advanced
		timeouts := unboundedPhases
		timeouts.Total = 50 * time.Second
		_, err := ask(s.client(provider.OnClock(clock, &provider.Client{Timeouts: timeouts})), newRequest())
		var api *dragoman.APIError
		if !errors.As(err, &api) || api.Class != dragoman.ErrorRateLimit || len(s.requests()) != 1 {
			t.Errorf("%v", err)
		}
	})
	busy, idle := serve(t, openaichat.Codec{}, respondError(rateLimited, "Retry-After", "50")), serve(t, openaichat.Codec{}, respond(textResponse("hello")))
	chain := &provider.Chain{Links: []provider.Link{
		{Name: "busy", Model: busy.client(&provider.Client{})}, {Name: "idle", Model: idle.client(&provider.Client{})},
	}}
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
	defer cancel()
	resp, err := chain.Generate(ctx, newRequest())
	if err != nil || resp.Text() != "hello" {
		t.Errorf("%v, %v", resp, err)
	}
}

// panickingExtension has a format and an adapter that panic.
type panickingExtension struct{ broken any }

func (panickingExtension) Info() extension.Info { return extension.Info{Name: "fragile"} }

func (f panickingExtension) Contribute(*extension.Exchange) []dragoman.Contribution {
	if f.broken == nil {
		return []dragoman.Contribution{{Adapters: []dragoman.Adapter{nil}}}
	}
	return []dragoman.Contribution{{Schemas: []dragoman.SchemaAccessor{f}, Adapters: []dragoman.Adapter{f}}}
}

func (panickingExtension) Format() dragoman.Format { return "fragile" }
func (panickingExtension) Kind() string            { return codes.SchemaObject }
func (panickingExtension) From() dragoman.Format   { return "fragile" }
func (panickingExtension) To() dragoman.Format     { return toolformat.ChatFunction }

func (f panickingExtension) InspectSchema(json.RawMessage) ([]dragoman.ToolSpec, dragoman.Report, error) {
	panic(f.broken)
}

func (f panickingExtension) Adapt(dragoman.AdapterInput) (json.RawMessage, dragoman.Report, error) {
	panic(f.broken)
}

func TestX3_PanicInAContributionIsAnError(t *testing.T) {
	for _, broken := range []any{"it broke", nil} {
		set, err := extension.NewSet(panickingExtension{broken})
		if err != nil {
			t.Fatal(err)
		}
		s := serve(t, openaichat.Codec{}, respond(textResponse("hello")))
		c := s.client(&provider.Client{Extensions: provider.Extensions{Set: set}})
		req := newRequest()
		req.Tools = []dragoman.ToolSpec{{Source: &dragoman.ToolSource{Format: "fragile", JSON: json.RawMessage(`{}`)}}}
		resp, err := c.Generate(t.Context(), req)
		out := fmt.Sprint(err)
		if resp != nil {
			out += fmt.Sprint(resp.Losses)
		}
		if !strings.Contains(out, "fragile") || !strings.Contains(out, "panicked") {
			t.Errorf("%v: %s", broken, out)
		}
	}
}

func TestX14_HealthIsBounded(t *testing.T) {
	h := provider.HealthOn(newClock(), &provider.Health{})
	for range 3 {
		h.Failed("skipped", overloaded)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range 300_000 {
		h.Failed(fmt.Sprintf("openai/%d", i), overloaded)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if stored := (int64(after.HeapAlloc) - int64(before.HeapAlloc)) >> 20; stored > 8 {
		t.Errorf("%d MB are kept", stored)
	}
	if _, skipped := h.SkippedUntil("skipped"); !skipped {
		t.Error("it forgets who is skipped")
	}
}

func TestX13_ProxyCredentialIsRedacted(t *testing.T) {
	t.Run("one that is not a URL", func(t *testing.T) {
		log, seen := debugLog()
		proxy := func(*http.Request) (*url.URL, error) {
			return nil, fmt.Errorf("invalid proxy address %q", "http://user:hunter2/x@proxy.test:%zz")
		}
		c := provider.OnClock(eagerClock{newClock()}, &provider.Client{HTTP: &http.Client{Transport: &http.Transport{Proxy: proxy}}, Log: log, Timeouts: unboundedPhases})
		_, err := c.Generate(t.Context(), newRequest())
		if out := fmt.Sprint(err, seen); err == nil || strings.Contains(out, "hunter2") || !strings.Contains(out, "proxy.test") {
			t.Error(out)
		}
	})
	t.Run("one that refuses", func(t *testing.T) {
		proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, "no: "+r.Header.Get("Proxy-Authorization"), http.StatusProxyAuthRequired)
		}))
		defer proxy.Close()
		at, _ := url.Parse(strings.Replace(proxy.URL, "://", "://user:hunter2@", 1))
		c := &provider.Client{HTTP: &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(at)}}, Retry: provider.Retry{Max: -1}}
		_, err := c.Generate(t.Context(), newRequest())
		if err == nil || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "dXNlcjpodW50ZXIy") {
			t.Error(err)
		}
	})
}
