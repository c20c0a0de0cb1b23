package sim_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/sim"
)

// members returns the schema of an object with n required properties of a schema.
func members(n int, schema string) string {
	properties, required := make([]string, n), make([]string, n)
	for i := range n {
		properties[i], required[i] = fmt.Sprintf(`"p%d":%s`, i, schema), fmt.Sprintf(`"p%d"`, i)
	}
	return `{"type":"object","properties":{` + strings.Join(properties, ",") + `},"required":[` + strings.Join(required, ",") + `]}`
}

func TestZ1_PlannerLimitsCostOfHostileRequests(t *testing.T) {
	words := make([]string, 100_000)
	for i := range words {
		words[i] = fmt.Sprintf("word%d", i)
	}
	var many []dragoman.ToolSpec
	for i := range 2_000 {
		many = append(many, function(fmt.Sprintf("tool_%d", i), fmt.Sprintf("Tells the weather of %d.", i), cityOnly))
	}
	for name, req := range map[string]*dragoman.Request{
		"description with many words": ask("use it", function("use_it", strings.Join(words, " "), cityOnly)),
		"many tools and requests":     ask(strings.Repeat("Tell the weather. ", 400), many...),
		"many properties":             ask("use it", function("use_it", "Uses it.", members(20_000, `{"type":"string"}`))),
		"long texts":                  ask("use it", function("use_it", "Uses it.", members(1_900, `{"type":"string","minLength":1048576}`))),
		"lists of long texts":         ask("use it", function("use_it", "Uses it.", members(30, `{"type":"array","minItems":60,"items":{"type":"string","minLength":1000000}}`))),
		"long constant many times":    ask("use it", function("use_it", "Uses it.", `{"$defs":{"c":{"const":"`+strings.Repeat("c", 1<<20)+`"}},`+members(1_900, `{"$ref":"#/$defs/c"}`)[1:])),
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			generate(t, sim.Planner{}, req)
			runtime.ReadMemStats(&after)
			if took := time.Since(start); took > 15*time.Second {
				t.Errorf("it took %v", took)
			}
			if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 1_000 {
				t.Errorf("it took %d MB", took)
			}
		})
	}
}

// answering is a transport that returns a fixed response.
type answering func(r *http.Request) (status int, header http.Header, body io.Reader)

func (f answering) RoundTrip(r *http.Request) (*http.Response, error) {
	status, header, body := f(r)
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(body), Request: r}, nil
}

// taped sends a request through a recorder and returns the recorded file.
func taped(t *testing.T, next http.RoundTripper, r *http.Request) string {
	t.Helper()
	rec, path := record(t, next)
	resp, err := rec.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	if err := rec.Close(); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestZ3_NoCredentialIsRecorded(t *testing.T) {
	const key = `Zm9v+YmFy/"quoted"&0123456789==`
	request := func(change func(r *http.Request)) *http.Request {
		r, err := http.NewRequest(http.MethodPost, "http://llm.test/v1/chat", strings.NewReader(`{"model":"m"}`))
		if err != nil {
			t.Fatal(err)
		}
		change(r)
		return r
	}
	header := func(name string) *http.Request {
		return request(func(r *http.Request) { r.Header.Set(name, key) })
	}
	quoted, _ := json.Marshal(key)
	inner := string(quoted[1 : len(quoted)-1])
	echo := answering(func(*http.Request) (int, http.Header, io.Reader) {
		return http.StatusUnauthorized, http.Header{"X-Seen": {key}, "X-Session-Token": {"minted-by-the-server"}}, strings.NewReader(strings.Join([]string{
			key, inner, strings.ReplaceAll(inner, "/", `\/`), strings.ReplaceAll(inner, "+", `\u002B`), url.QueryEscape(key),
		}, "\n"))
	})
	for name, r := range map[string]*http.Request{
		"a vendor header":     header("Ocp-Apim-Subscription-Key"),
		"an unknown header":   header("X-Company-Pass"),
		"a token":             header("X-Auth-Token"),
		"basic":               request(func(r *http.Request) { r.SetBasicAuth("me", key) }),
		"the user in the URL": request(func(r *http.Request) { r.URL.User = url.User(key) }),
		"a parameter":         request(func(r *http.Request) { r.URL.RawQuery = "subscription-key=" + url.QueryEscape(key) }),
		"a secret parameter":  request(func(r *http.Request) { r.URL.RawQuery = "client_secret=" + url.QueryEscape(key) }),
	} {
		tape := taped(t, echo, r)
		for _, secret := range []string{"Zm9v", "YmFy", "quoted", "0123456789", "minted-by-the-server"} {
			if strings.Contains(tape, secret) {
				t.Errorf("%s: %s is in the recording:\n%s", name, secret, tape)
			}
		}
	}
}

func TestZ3_SignedURLsAreNotRecorded(t *testing.T) {
	const body = `{"url":"https://b.s3.test/cat.png?X-Amz-Credential=AKIA0123456789&X-Amz-Signature=0123abcd0123abcd","b":"https://x.test/a?sv=1\u0026sig=0123abcd0123abcd"}`
	r, _ := http.NewRequest(http.MethodPost, "http://llm.test/v1/chat", strings.NewReader(body))
	tape := taped(t, answering(func(*http.Request) (int, http.Header, io.Reader) {
		return http.StatusOK, http.Header{"Location": {"https://x.test/?X-Goog-Signature=0123abcd0123abcd"}}, strings.NewReader(body)
	}), r)
	if strings.Contains(tape, "0123abcd") || strings.Contains(tape, "AKIA") || !strings.Contains(tape, "cat.png") {
		t.Error(tape)
	}
}

func TestZ3_RecordRestrictsFileMode(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.traffic")
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	rec, err := sim.Record(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// endless is a body with left more bytes.
type endless struct{ left int }

func (e *endless) Read(p []byte) (int, error) {
	if e.left <= 0 {
		return 0, io.EOF
	}
	n := min(len(p), e.left)
	e.left -= n
	return n, nil
}

func TestZ3_TooLargeResponseIsNotBuffered(t *testing.T) {
	rec, _ := record(t, answering(func(*http.Request) (int, http.Header, io.Reader) {
		return http.StatusOK, http.Header{}, &endless{left: 1 << 30}
	}))
	r, _ := http.NewRequest(http.MethodGet, "http://llm.test/", nil)
	resp, err := rec.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	_, _ = io.CopyBuffer(io.Discard, io.LimitReader(resp.Body, 128<<20), make([]byte, 1<<20))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _ = io.CopyBuffer(io.Discard, resp.Body, make([]byte, 1<<20))
	runtime.ReadMemStats(&after)
	if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 64 {
		t.Errorf("%d MB of a too large response were buffered", took)
	}
	if err := rec.Close(); !errors.Is(err, dragoman.ErrTooLarge) {
		t.Errorf("%v", err)
	}
}

// timed is a response writer whose connection supports deadlines.
type timed struct {
	*httptest.ResponseRecorder
	deadlines []time.Time
}

func (w *timed) SetReadDeadline(at time.Time) error {
	w.deadlines = append(w.deadlines, at)
	return nil
}

func TestZ1_RequestBodyHasDeadline(t *testing.T) {
	w := &timed{ResponseRecorder: httptest.NewRecorder()}
	r := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(`{"model":"sim/echo","messages":[{"role":"user","content":"hello"}]}`))
	sim.Handler(sim.Config{}).ServeHTTP(w, r)
	if w.Code != http.StatusOK || len(w.deadlines) != 2 || w.deadlines[0].IsZero() || !w.deadlines[1].IsZero() {
		t.Errorf("%d: want a deadline for the body, and none after it: %v", w.Code, w.deadlines)
	}
}

func TestZ1_InvalidPaceIsRefused(t *testing.T) {
	for _, rate := range []string{"NaN", "Inf", "-Inf", "-1"} {
		if _, err := sim.Open("sim/echo?rate=" + rate); err == nil {
			t.Errorf("rate=%s is accepted", rate)
		}
		if _, err := sim.ParseScenario("s", "turn\npace rate="+rate+"\nsay hello\n"); err == nil {
			t.Errorf("pace rate=%s is accepted", rate)
		}
	}
	var longest time.Duration
	pace := sim.Pace{TokensPerSecond: 1e-300, Wait: func(_ context.Context, d time.Duration) error {
		longest = max(longest, d)
		return nil
	}}
	generate(t, sim.Echo{Settings: sim.Settings{Pace: pace}}, ask("hello"))
	if longest <= 0 || longest > time.Hour {
		t.Errorf("waits %v for a token", longest)
	}
}

func TestZ1_NameErrorIsDeterministic(t *testing.T) {
	_, first := sim.Open("sim/echo?z=1&a=1&m=1&b=1&y=1&rate=x&first=y")
	for range 50 {
		if _, err := sim.Open("sim/echo?z=1&a=1&m=1&b=1&y=1&rate=x&first=y"); err == nil || err.Error() != first.Error() {
			t.Fatalf("%v, and once %v", err, first)
		}
	}
}

func TestZ1_LongScriptsAreParsedFast(t *testing.T) {
	const lines = 300_000
	start := time.Now()
	s, err := sim.ParseScenario("s", "turn\n"+strings.Repeat("say hello\n", lines))
	if err != nil {
		t.Fatal(err)
	}
	if text := generate(t, s, ask("x")).Text(); strings.Count(text, "hello") != lines || strings.Count(text, "\n") != lines-1 {
		t.Errorf("%d bytes", len(text))
	}
	s, err = sim.ParseScenario("s", strings.Repeat("turn another\nmatch user nobody says this\nsay hello\n", lines/3))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Generate(t.Context(), ask("x")); !errors.Is(err, sim.ErrNoTurn) || len(err.Error()) > 4_000 {
		t.Errorf("%d bytes: %.200v", len(err.Error()), err)
	}
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestZ2_FaultInTooLongResponseIsRefused(t *testing.T) {
	model, err := sim.Open("sim/echo?fault=c2")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := model.Generate(t.Context(), ask(strings.Repeat("long ", 100_000))); !errors.Is(err, dragoman.ErrTooLarge) {
		t.Error(err)
	}
	if _, err := model.Generate(t.Context(), ask(strings.Repeat("long ", 10_000))); err != nil {
		t.Error(err)
	}
}
