package emitcheck_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/oracle/emitcheck"
)

// broken is a body that breaks one rule.
type broken struct{ name, body, rule string }

func swap(s, from, to string) string { return strings.ReplaceAll(s, from, to) }

// streams holds valid and broken streams of a dialect.
type streams struct {
	dialect dragoman.Dialect
	sound   []string
	broken  []broken
}

func (s streams) run(t *testing.T) {
	t.Helper()
	for _, body := range s.sound {
		if err := emitcheck.Stream(s.dialect, nil, []byte(body)); err != nil {
			t.Errorf("%v\n%s", err, body)
		}
		if err := bytewise(s.dialect, body); err != nil {
			t.Errorf("byte by byte: %v\n%s", err, body)
		}
		if err := emitcheck.Order(s.dialect, []byte(body)); err != nil {
			t.Errorf("kept: %v\n%s", err, body)
		}
	}
	for _, b := range s.broken {
		expect(t, b, emitcheck.Stream(s.dialect, nil, []byte(b.body)))
		expect(t, b, bytewise(s.dialect, b.body))
	}
}

// bytewise checks a stream that arrives byte by byte.
func bytewise(d dragoman.Dialect, body string) error {
	c := emitcheck.NewStream(d, nil)
	for i := range len(body) {
		if _, err := c.Write([]byte{body[i]}); err != nil {
			return err
		}
	}
	return c.Close()
}

func expect(t *testing.T, b broken, err error) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), b.rule) {
		t.Errorf("%s: %v, want %q\n%s", b.name, err, b.rule, b.body)
	}
}

// wholes holds responses that are not streamed.
type wholes struct {
	dialect dragoman.Dialect
	sound   []string
	broken  []broken
}

func (w wholes) run(t *testing.T) {
	t.Helper()
	for _, body := range w.sound {
		if err := emitcheck.Whole(w.dialect, 200, nil, []byte(body)); err != nil {
			t.Errorf("%v\n%s", err, body)
		}
	}
	for _, b := range w.broken {
		expect(t, b, emitcheck.Whole(w.dialect, 200, nil, []byte(b.body)))
	}
}

// failures holds errors before the first byte.
type failures struct {
	dialect dragoman.Dialect
	status  int
	sound   []string
	broken  []broken
}

func (f failures) run(t *testing.T) {
	t.Helper()
	for _, body := range f.sound {
		if err := emitcheck.Error(f.dialect, f.status, nil, []byte(body)); err != nil {
			t.Errorf("%v\n%s", err, body)
		}
	}
	for _, b := range f.broken {
		expect(t, b, emitcheck.Error(f.dialect, f.status, nil, []byte(b.body)))
	}
}

func TestHeadersAndStatuses(t *testing.T) {
	for typ, sound := range map[string]bool{
		"text/event-stream": true, "text/event-stream; charset=utf-8": true, "text/plain": false, "text/event-stream; charset=latin1": false, "": false,
	} {
		err := emitcheck.Stream(dialectname.OpenAIChat, of(http.Header{}, typ), []byte(chatErr))
		if (err == nil) != sound {
			t.Errorf("%q: %v", typ, err)
		}
	}
	if err := emitcheck.Stream(dialectname.Ollama, of(http.Header{}, "application/json"), nil); err == nil || !strings.Contains(err.Error(), "application/x-ndjson") {
		t.Error(err)
	}
	if err := emitcheck.Whole(dialectname.Ollama, 201, nil, nil); err == nil || !strings.Contains(err.Error(), "status 201") {
		t.Error(err)
	}
	if err := emitcheck.Error(dialectname.Ollama, 200, nil, []byte(`{"error":"x"}`)); err == nil || !strings.Contains(err.Error(), "status 200") {
		t.Error(err)
	}
	if err := emitcheck.Error(dialectname.Ollama, 500, of(http.Header{}, "text/html"), []byte(`{"error":"x"}`)); err == nil || !strings.Contains(err.Error(), "text/html") {
		t.Error(err)
	}
	for _, err := range []error{emitcheck.Whole("x", 200, nil, nil), emitcheck.Stream("x", nil, nil), emitcheck.Error("x", 400, nil, nil), emitcheck.Order("x", nil)} {
		if err == nil {
			t.Error("a dialect without rules passes")
		}
	}
}

// A response without these headers cannot be reported to the vendor, or is buffered by a proxy
// (quirk J2).
func TestVendorHeadersAreRequired(t *testing.T) {
	hello := chatRole + chatText + chatStop + chatDone
	anthropicText := msgStart + textStart + textDelta + stop0 + msgDelta + msgStop
	for _, e := range []struct {
		request, body, typ string
		status             int
		without            string // a header
		rule               string
	}{
		{askChat + `,"stream":true}`, hello, ofEvents, 200, "X-Request-Id", "missing header X-Request-Id"},
		{askChat + `,"stream":true}`, hello, ofEvents, 200, "Request-Id", ""},
		{askChat + `}`, chatBody, ofJSON, 200, "X-Request-Id", "missing header X-Request-Id"},
		{askChat + `}`, openaiErr, ofJSON, 400, "X-Request-Id", "missing header X-Request-Id"},
		{askChat + `}`, chatBody, ofJSON, 200, "Cache-Control", ""},
		{askChat + `,"stream":true}`, hello, ofEvents, 200, "Cache-Control", "want no-cache for a stream"},
		{askOllama + `}`, olText + olEnd, ofLines, 200, "Cache-Control", "want no-cache for a stream"},
		{askGemini + "streamGenerateContent {}", "[" + gemEnd + "]", ofJSON, 200, "Cache-Control", "want no-cache for a stream"},
		{askResponses + `}`, response("completed", msgItem), ofJSON, 200, "X-Request-Id", "missing header X-Request-Id"},
		{askAnthropic + `,"stream":true}`, anthropicText, ofEvents, 200, "Request-Id", "missing header Request-Id"},
		{askAnthropic + `,"stream":true}`, anthropicText, ofEvents, 200, "X-Request-Id", ""},
		{"GET /v1/models", `{"object":"list","data":[]}`, ofJSON, 200, "X-Request-Id", "missing header X-Request-Id"},
		{"GET /nowhere", openaiErr, ofJSON, 404, "X-Request-Id", "missing header X-Request-Id"},
		{askGemini + "generateContent {}", gemEnd, ofJSON, 200, "X-Request-Id", ""},
	} {
		server := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			of(w.Header(), e.typ).Del(e.without)
			w.WriteHeader(e.status)
			_, _ = io.WriteString(w, e.body)
		})
		method, rest, _ := strings.Cut(e.request, " ")
		path, body, _ := strings.Cut(rest, " ")
		found := seenByClient(server, httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body)), nil)
		switch {
		case e.rule == "" && len(found) > 0, e.rule != "" && (len(found) != 1 || !strings.Contains(found[0].Error(), e.rule)):
			t.Errorf("%s without %s: %v, want %q", e.request, e.without, found, e.rule)
		}
	}
}

func TestNothingFollowsTheEnd(t *testing.T) {
	c := emitcheck.NewStream(dialectname.OpenAIChat, nil)
	if _, err := c.Write([]byte(chatErr)); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil || c.Close() != nil {
		t.Error(err)
	}
	if _, err := c.Write([]byte("\n")); err == nil {
		t.Error("bytes after the end are accepted")
	}
}
