package emitcheck_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-go/dragoman/internal/oracle/emitcheck"
)

// emitted is a request and its response.
type emitted struct {
	request string // method, path and body, separated by spaces
	header  string // a request header: name and value
	status  int
	typ     string
	body    string
	rule    string // the broken rule; empty means none
}

// of sets the headers of a response of a content type, for all vendors.
func of(h http.Header, typ string) http.Header {
	for name, value := range map[string]string{"Content-Type": typ, "Cache-Control": "no-cache", "X-Request-Id": "req_1", "Request-Id": "req_1"} {
		h.Set(name, value)
	}
	return h
}

// judged serves a request and returns the violations that the handler and the client transport
// report.
func judged(e emitted, d *emitcheck.Document) (found, atClient []*emitcheck.Violation) {
	server := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		of(w.Header(), e.typ)
		w.WriteHeader(e.status)
		_, _ = io.WriteString(w, e.body)
	})
	method, rest, _ := strings.Cut(e.request, " ")
	path, body, _ := strings.Cut(rest, " ")
	request := func() *http.Request {
		r := httptest.NewRequestWithContext(context.Background(), method, path, strings.NewReader(body))
		if name, value, ok := strings.Cut(e.header, " "); ok {
			r.Header.Set(name, value)
		}
		return r
	}
	h := emitcheck.Handler(server, emitcheck.Options{Document: d, Report: func(v *emitcheck.Violation) { found = append(found, v) }})
	h.ServeHTTP(httptest.NewRecorder(), request())
	return found, seenByClient(server, request(), d)
}

const (
	askChat      = `POST /v1/chat/completions {"model":"m"`
	askResponses = `POST /v1/responses {"model":"m"`
	askAnthropic = `POST /v1/messages {"model":"m"`
	askOllama    = `POST /api/chat {"model":"m"`
	askGemini    = `POST /v1beta/models/m:`

	ofJSON   = "application/json"
	ofEvents = "text/event-stream"
	ofLines  = "application/x-ndjson"

	openaiErr = `{"error":{"message":"No.","type":"invalid_request_error","param":null,"code":null}}`
	chatBody  = `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Hi","refusal":null},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":1,"total_tokens":10}}`
	anthBody  = `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"Hi"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":9,"output_tokens":4}}`
)

func TestResponsesAreCheckedAgainstRequests(t *testing.T) {
	hello := chatRole + chatText + chatStop + chatDone
	anthropicText := msgStart + textStart + textDelta + stop0 + msgDelta + msgStop
	responsesText := framed(begun(), msgEvents, one(completed(msgItem))) + doneMarker
	calls := chatRole + chatCall + chatArgs + chatTool + chatDone
	called := swap(swap(chatBody, `"refusal":null`, `"refusal":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"f","arguments":"{}"}}]`), `"stop"`, `"tool_calls"`)
	claude := "Anthropic-Version 2023-06-01"
	for _, e := range []emitted{
		{askChat + "}", "", 200, ofJSON, chatBody, ""},
		{askChat + `,"stream":true}`, "", 200, ofEvents, hello, ""},
		{askChat + `,"stream":true,"stream_options":{"include_usage":true}}`, "", 200, ofEvents, chatRole + chatText + chatStop + chatUses + chatDone, ""},
		{askChat + `,"stream":true,"stream_options":null}`, "", 200, ofEvents, chatRole + chatText + chatStop + chatUses + chatDone, "did not ask for it"},
		{askChat + `,"stream":true}`, "", 200, ofJSON, chatBody, "content type"},
		{askChat + `,"stream":null}`, "", 200, ofEvents, hello, "content type"},
		{askChat + `,"stream":true}`, "", 200, ofEvents, chatRole + chatText, "no end"},
		{askChat + `,"stream":true}`, "", 200, ofEvents, chatText + chatRole + chatStop + chatDone, "delta/role"},
		{askChat + `,"functions":[{"name":"f"}],"stream":true}`, "", 200, ofEvents, calls, "event 1 /choices/0/delta/tool_calls: for a client that sent functions"},
		{askChat + `,"functions":[{"name":"f"}],"tools":[{}],"stream":true}`, "", 200, ofEvents, calls, ""},
		{askChat + `,"functions":[],"tools":null,"stream":true}`, "", 200, ofEvents, calls, ""},
		{askChat + `,"functions":[{"name":"f"}],"tools":[]}`, "", 200, ofJSON, called, "/choices/0/message/tool_calls: for a client that sent functions"},
		{askChat + `,"functions":{}}`, "", 200, ofJSON, called, ""},
		{askChat + "}", "", 201, ofJSON, chatBody, "status 201"},
		{askChat + "}", "", 200, ofJSON, "", "not JSON"},
		{askChat + "}", "", 200, "", chatBody, "content type"},
		{askChat, "", 200, ofJSON, chatBody, "a request that is not a JSON object"},
		{askChat, "", 400, ofJSON, openaiErr, ""},
		{askChat + "}", "", 400, ofJSON, `{"type":"error","error":{"type":"e","message":"No."}}`, "/error/param: missing"},
		{askChat + "}", "", 502, "text/html", openaiErr, "content type"},
		{askResponses + "}", "", 200, ofJSON, response("completed", msgItem), ""},
		{askResponses + "}", "", 200, ofJSON, swap(response("completed", msgItem), `"metadata":{},`, ""), "/metadata: missing"},
		{askResponses + `,"stream":true}`, "", 200, ofEvents, responsesText, ""},
		{askResponses + `,"stream":true}`, "", 200, ofEvents, strings.TrimSuffix(responsesText, doneMarker), "[DONE]"},
		{askAnthropic + "}", "", 200, ofJSON, anthBody, ""},
		{askAnthropic + `,"stream":true}`, "", 200, ofEvents, anthropicText, ""},
		{askAnthropic + `,"stream":true}`, "", 200, ofEvents, msgStart + textDelta, "is not open"},
		{askAnthropic + `,"stream":true}`, "", 200, ofEvents, msgStart + textStart + msgError, ""},
		{askAnthropic + "}", "", 429, ofJSON, openaiErr, "/type: missing"},
		{askOllama + `,"stream":false}`, "", 200, ofJSON, olEnd, ""},
		{askOllama + "}", "", 200, ofLines, olText + olEnd, ""},
		{askOllama + "}", "", 200, ofJSON, olEnd, "content type"},
		{askOllama + "}", "", 404, ofJSON, `{"error":"no"}`, ""},
		{askOllama + "}", "", 404, ofJSON, openaiErr, "/error"},
		{askGemini + "generateContent {}", "", 200, ofJSON, gemEnd, ""},
		{askGemini + "streamGenerateContent?alt=sse {}", "", 200, ofEvents, sent(gemText, gemEnd), ""},
		{askGemini + "streamGenerateContent {}", "", 200, ofJSON, "[" + gemText + "," + gemEnd + "]", ""},
		{askGemini + "streamGenerateContent?alt=sse {}", "", 200, ofJSON, "[" + gemText + "," + gemEnd + "]", "content type"},
		{askGemini + "streamGenerateContent {}", "", 200, ofEvents, sent(gemText, gemEnd), "content type"},
		{askGemini + "generateContent {}", "", 503, ofJSON, gemErr, ""},
		{askGemini + "generateContent {}", "", 500, ofJSON, gemErr, "/error/code"},
		{askGemini + "generateContent {}", "", 503, ofJSON, "[" + gemErr + "]", "the error is in an array: true"},
		{askGemini + "streamGenerateContent?alt=sse {}", "", 503, ofJSON, gemErr, ""},
		{askGemini + "streamGenerateContent?alt=sse {}", "", 503, ofJSON, "[" + gemErr + "]", "the error is in an array: true"},
		{askGemini + "streamGenerateContent {}", "", 503, ofJSON, " [" + gemErr + "]", ""},
		{askGemini + "streamGenerateContent {}", "", 503, ofJSON, gemErr, "the error is in an array: false"},
		{"POST /v1/projects/p/locations/l/publishers/google/models/m:generateContent {}", "", 200, ofJSON, gemText, "finishReason"},
		{"POST /v1beta/tunedModels/m:streamGenerateContent?alt=sse {}", "", 200, ofEvents, sent(gemText), "finishReason"},
		{"POST /model/m/converse {}", "", 200, ofJSON, "{}", "/output: missing"},
		{"POST /model/m/converse-stream {}", "", 200, "application/vnd.amazon.eventstream", string(bedrockFrames(bedStart, bedText, bedStop0, bedStop, bedMeta)), ""},
		{"POST /v1/messages/count_tokens {}", "", 200, ofJSON, `{"input_tokens":7}`, ""},
		{"POST /v1/messages/count_tokens {}", "", 200, ofJSON, `{"totalTokens":7}`, "/input_tokens: missing"},
		{askGemini + "countTokens {}", "", 200, ofJSON, `{"totalTokens":7}`, ""},
		{askGemini + "countTokens {}", "", 200, ofJSON, `{"totalTokens":"7"}`, "/totalTokens"},
		{"GET /v1/models", "", 200, ofJSON, `{"object":"list","data":[{"id":"m","object":"model","created":0,"owned_by":"o"}]}`, ""},
		{"GET /v1/models", "", 200, ofJSON, `{"object":"list","data":[{"id":"m","object":"model","owned_by":"o"}]}`, "/data/0/created: missing"},
		{"GET /v1/models", claude, 200, ofJSON, `{"object":"list","data":[]}`, "/has_more: missing"},
		{"GET /v1/models", claude, 200, ofJSON, `{"data":[{"type":"model","id":"m","display_name":"M","created_at":"2026-09-01T00:00:00Z"}],"has_more":false,"first_id":"m","last_id":"m"}`, ""},
		{"GET /v1/models", claude, 200, ofJSON, `{"data":[{"type":"model","id":"m","display_name":"M","created_at":"2026-09-01T00:00:00Z"}],"has_more":false,"first_id":"m","last_id":null}`, "/last_id"},
		{"GET /v1/models/m", claude, 200, ofJSON, `{"type":"model","id":"m","display_name":"M","created_at":"yesterday"}`, "RFC 3339"},
		{"GET /v1/models/m", "", 404, ofJSON, openaiErr, ""},
		{"GET /v1beta/models", "", 200, ofJSON, `{"models":[{"name":"models/m","supportedGenerationMethods":[]}]}`, ""},
		{"GET /v1beta/models/m", "", 200, ofJSON, `{"name":"m","supportedGenerationMethods":[]}`, "does not begin with models/"},
		{"GET /api/tags", "", 200, ofJSON, `{"models":[{"name":"m","model":"m","modified_at":"2026-09-01T00:00:00Z","size":1,"digest":"d","details":{}}]}`, ""},
		{"GET /api/tags", "", 200, ofJSON, `{"models":null}`, "/models: not an array"},
		{"POST /api/show {}", "", 200, ofJSON, `{"details":{},"model_info":{}}`, "/capabilities: missing"},
		{"GET /api/version", "", 200, ofJSON, `{"version":"1"}`, ""},
		{"GET /api/version", "", 202, ofJSON, `{"version":"1"}`, "status 202"},
		{"GET /v1/responses/resp_1", "", 200, ofJSON, response("completed", msgItem), ""},
		{"GET /v1/responses/resp_1", "", 200, ofJSON, "{}", "/id: missing"},
		{"DELETE /v1/responses/resp_1", "", 200, ofJSON, `{"id":"resp_1","object":"response","deleted":true}`, ""},
		{"DELETE /v1/responses/resp_1", "", 200, ofJSON, `{"id":"resp_1","object":"response","deleted":false}`, "/deleted"},
		{"GET /nowhere", "", 404, ofJSON, openaiErr, ""},
		{"GET /v1/projects/p/locations/l/publishers/google/models/m", "", 503, ofJSON, gemErr, ""},
		{"GET /v1/projects/p/locations/l/publishers/google/models/m", "", 404, ofJSON, openaiErr, "/error/code: <nil> is not"},
		{"GET /v1beta1/projects/p/locations/l/publishers/google/models/m", "", 404, ofJSON, openaiErr, "/error/code: <nil> is not"},
		{"GET /nowhere", claude, 404, ofJSON, openaiErr, "/type: missing"},
		{"POST /nowhere {}", "", 404, "text/plain", "404 page not found", "content type"},
		{"GET /healthz", "", 503, ofJSON, `{"status":"down"}`, ""},
		{"HEAD /", "", 200, "text/plain", "", ""},
		{"GET /v1//models", "", 301, "text/html", "<a>", ""},
	} {
		before, at := judged(e, nil)
		for _, got := range [][]*emitcheck.Violation{before, at} {
			switch {
			case e.rule == "" && len(got) > 0:
				t.Errorf("%s: %v", e.request, got[0])
			case e.rule != "" && (len(got) != 1 || !strings.Contains(got[0].Error(), e.rule)):
				t.Errorf("%s with %.80s: %v, want %q", e.request, e.body, got, e.rule)
			}
		}
	}
}

func TestViolationIdentifiesResponse(t *testing.T) {
	got, _ := judged(emitted{`POST /v1/messages {"model":"claude","stream":true}`, "", 200, ofEvents, msgStart + textDelta + msgStop, ""}, nil)
	if len(got) != 1 || got[0].Model != "claude" || got[0].Status != 200 || got[0].Header.Get("Content-Type") != ofEvents || !strings.Contains(string(got[0].Body), "Hi") {
		t.Fatalf("%+v", got)
	}
	if line := got[0].Line(); strings.Contains(line, "\n") || !strings.Contains(line, "is not open") || errors.Unwrap(got[0]) == nil {
		t.Error(line)
	}
}

func TestResponsesAreCheckedAgainstDocument(t *testing.T) {
	d := emitcheck.OpenResponses(t)
	if d.Absent() {
		t.Skip("the Open Responses document is absent; the line above has its path")
	}
	// These objects lack fields that only the document requires, such as "truncation".
	for _, e := range []emitted{
		{askResponses + "}", "", 200, ofJSON, response("completed", msgItem), ""},
		{askResponses + `,"stream":true}`, "", 200, ofEvents, framed(begun(), msgEvents, one(completed(msgItem))) + doneMarker, ""},
	} {
		if got, at := judged(e, d); len(got) != 1 || !strings.Contains(got[0].Error(), "truncation") || len(at) != 1 {
			t.Errorf("%s: %v", e.request, got)
		}
	}
}

func TestCompressedRequestIsRead(t *testing.T) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = io.WriteString(z, `{"model":"m","stream":true}`)
	_ = z.Close()
	if got, _ := judged(emitted{"POST /v1/messages " + b.String(), "Content-Encoding gzip", 200, ofJSON, anthBody, ""}, nil); len(got) != 1 || !strings.Contains(got[0].Error(), ofEvents) {
		t.Error(got)
	}
}

// reports collects the violations of a server, for concurrent use.
type reports struct {
	mu    sync.Mutex
	found []string
}

func (r *reports) add(v *emitcheck.Violation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.found = append(r.found, v.Error())
}

// served starts a checked server and returns a function that requests it over HTTP. The response
// body is closed when the test ends.
func served(t *testing.T, h http.HandlerFunc) (ask func(context.Context) io.Reader, end func() []string) {
	t.Helper()
	var r reports
	s := httptest.NewServer(emitcheck.Handler(h, emitcheck.Options{Report: r.add}))
	t.Cleanup(s.Close)
	ask = func(ctx context.Context) io.Reader {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/v1/chat/completions", strings.NewReader(`{"stream":true}`))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = resp.Body.Close() })
		return resp.Body
	}
	return ask, func() []string {
		s.Close() // waits for all requests
		return r.found
	}
}

func TestStreamIsNotBuffered(t *testing.T) {
	received := make(chan struct{})
	ask, end := served(t, func(w http.ResponseWriter, r *http.Request) {
		c := http.NewResponseController(w)
		if err := errors.Join(c.SetWriteDeadline(time.Now().Add(time.Hour)), c.SetReadDeadline(time.Now().Add(time.Hour)), c.EnableFullDuplex()); err != nil {
			t.Error(err)
		}
		if _, ok := w.(http.Flusher); !ok {
			t.Error("the writer is not an http.Flusher")
		}
		_, _ = io.Copy(io.Discard, r.Body)
		of(w.Header(), ofEvents)
		_ = c.Flush() // flushes only the status
		for _, piece := range []string{chatRole[:9], chatRole[9:], chatText, chatStop + chatDone} {
			<-received
			_, _ = io.WriteString(w, piece)
			_ = c.Flush()
		}
	})
	body := ask(t.Context())
	for _, piece := range []string{chatRole[:9], chatRole[9:], chatText, chatStop + chatDone} {
		received <- struct{}{}
		got := make([]byte, len(piece))
		if _, err := io.ReadFull(body, got); err != nil || string(got) != piece {
			t.Fatalf("%v: %s", err, got)
		}
	}
	if got := end(); len(got) > 0 {
		t.Error(got)
	}
}

func TestDisconnectedClientIsCheckedUpToThere(t *testing.T) {
	for _, tc := range []struct{ sent, rule string }{
		{chatRole + chatText, ""},
		{chatRole + chatText + `data: {"id`, ""},
		{chatText + chatText, "/choices/0/delta/role: missing"},
	} {
		ask, end := served(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			of(w.Header(), ofEvents)
			_, _ = io.WriteString(w, tc.sent)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		})
		ctx, leave := context.WithCancel(t.Context())
		if _, err := io.ReadFull(ask(ctx), make([]byte, len(tc.sent))); err != nil {
			t.Fatal(err)
		}
		leave()
		if got := strings.Join(end(), "\n"); (got == "") != (tc.rule == "") || !strings.Contains(got, tc.rule) {
			t.Errorf("%q: %q, want %q", tc.sent, got, tc.rule)
		}
	}
}

func TestAbortedResponseIsViolation(t *testing.T) {
	ask, end := served(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		of(w.Header(), ofEvents)
		_, _ = io.WriteString(w, chatRole)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	_, _ = io.Copy(io.Discard, ask(t.Context()))
	if got := end(); len(got) != 1 || !strings.Contains(got[0], "aborted without an error") {
		t.Error(got)
	}
}

// A server that shuts down cancels the contexts of its requests, but their clients are still
// connected.
func TestShutdownMustEndResponses(t *testing.T) {
	for _, cause := range []error{errors.New("shutting down"), nil} {
		var r reports
		ctx, stop := context.WithCancelCause(t.Context())
		h := emitcheck.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			of(w.Header(), ofEvents)
			_, _ = io.WriteString(w, chatRole)
			stop(cause)
		}), emitcheck.Options{Report: r.add})
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodPost, "/v1/chat/completions", strings.NewReader(`{"stream":true}`)))
		if got := r.found; (len(got) == 1) != (cause != nil) {
			t.Errorf("%v: %v", cause, got)
		}
	}
}

func TestProxyChecksLikeHandler(t *testing.T) {
	for _, tc := range []struct{ body, rule string }{{chatRole + chatText + chatStop + chatDone, ""}, {chatRole + chatText, "no end"}} {
		received := make(chan struct{})
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Host != "the.client.said" {
				t.Error(r.Host)
			}
			of(w.Header(), ofEvents)
			_, _ = io.WriteString(w, tc.body[:len(chatRole)])
			_ = http.NewResponseController(w).Flush()
			<-received
			_, _ = io.WriteString(w, tc.body[len(chatRole):])
		}))
		to, err := url.Parse(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		var found reports
		proxy := httptest.NewServer(emitcheck.Proxy(to, emitcheck.Options{Report: found.add}))
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, proxy.URL+"/v1/chat/completions", strings.NewReader(`{"stream":true}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Host = "the.client.said"
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		first := make([]byte, len(chatRole))
		if _, err := io.ReadFull(resp.Body, first); err != nil {
			t.Fatal(err)
		}
		close(received)
		rest, err := io.ReadAll(resp.Body)
		if err != nil || string(first)+string(rest) != tc.body {
			t.Errorf("%v: %s%s", err, first, rest)
		}
		_ = resp.Body.Close()
		proxy.Close()
		server.Close()
		if got := strings.Join(found.found, "\n"); (got == "") != (tc.rule == "") || !strings.Contains(got, tc.rule) {
			t.Errorf("%q, want %q", got, tc.rule)
		}
	}
}

func TestProxyRespondsWhileRequestIsSent(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := http.NewResponseController(w)
		_ = c.EnableFullDuplex()
		if _, err := io.ReadFull(r.Body, make([]byte, len(`{"stream":true}`))); err != nil {
			t.Error(err)
		}
		of(w.Header(), ofEvents)
		_, _ = io.WriteString(w, chatRole)
		_ = c.Flush()
		if rest, err := io.ReadAll(r.Body); err != nil || len(rest) != 1 {
			t.Errorf("%v: %q", err, rest)
		}
		_, _ = io.WriteString(w, chatStop+chatDone)
	}))
	defer server.Close()
	to, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	var found reports
	proxy := httptest.NewServer(emitcheck.Proxy(to, emitcheck.Options{Report: found.add}))
	body, rest := io.Pipe()
	go func() { _, _ = io.WriteString(rest, `{"stream":true}`) }()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, proxy.URL+"/v1/chat/completions", body)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(rest, " ")
	_ = rest.Close()
	if all, err := io.ReadAll(resp.Body); err != nil || string(all) != chatRole+chatStop+chatDone {
		t.Errorf("%v: %s", err, all)
	}
	_ = resp.Body.Close()
	proxy.Close()
	if len(found.found) > 0 {
		t.Error(found.found)
	}
}

func TestHeaderAfterStatusIsIgnored(t *testing.T) {
	ask, end := served(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_ = http.NewResponseController(w).Flush()
		of(w.Header(), ofEvents)
		_, _ = io.WriteString(w, chatRole+chatText+chatStop+chatDone)
	})
	_, _ = io.Copy(io.Discard, ask(t.Context()))
	if got := end(); len(got) != 1 || !strings.Contains(got[0], "content type") {
		t.Error(got)
	}
}
