package agent_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/ollama"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/internal/oracle/strictupstream"
	"github.com/dragoman-go/dragoman/provider"
)

// respondsWith starts a server with the same response to each request, whole or streamed.
func respondsWith(t *testing.T, c dialect.Codec, name, whole, streamed string) (client *provider.Client, bodies *[]string) {
	t.Helper()
	bodies = new([]string)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if refused := strictupstream.Judge(c.Dialect(), "", r.Header, body); refused != nil {
			t.Errorf("%s refuses %s: %+v", name, body, refused)
		}
		*bodies = append(*bodies, string(body))
		out, kind := whole, "application/json"
		if strings.Contains(string(body), `"stream":true`) {
			out, kind = streamed, "text/event-stream"
			if c.Dialect() == (ollama.Codec{}).Dialect() {
				kind = "application/x-ndjson"
			}
		}
		w.Header().Set("Content-Type", kind)
		_, _ = io.WriteString(w, out)
	}))
	t.Cleanup(server.Close)
	return &provider.Client{Name: name, Codec: c, BaseURL: server.URL, Model: "m"}, bodies
}

// lastAssistant returns the assistant message of the second request.
func lastAssistant(t *testing.T, bodies []string) string {
	t.Helper()
	_, message, found := strings.Cut(bodies[len(bodies)-1], `{"role":"assistant"`)
	if !found {
		t.Fatalf("no assistant message in %s", bodies)
	}
	message, _, _ = strings.Cut(message, `{"role":"user"`)
	return message
}

func TestDecision92_StreamedUnknownFieldsReturnToTheirOrigin(t *testing.T) {
	for _, tc := range []struct {
		codec           dialect.Codec
		whole, streamed string
	}{
		{
			openaichat.Codec{},
			`{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Hello","annotations":[{"type":"url_citation","url_citation":{"url":"https://a"}},{"type":"url_citation","url_citation":{"url":"https://b"}}],"provider_metadata":{"a":1}},"finish_reason":"stop"}]}`,
			`data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"Hel","annotations":[{"type":"url_citation","url_citation":{"url":"https://a"}}]}}]}` + "\n\n" +
				`data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"lo","annotations":[{"type":"url_citation","url_citation":{"url":"https://b"}}]}}]}` + "\n\n" +
				`data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"provider_metadata":{"a":1}},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n",
		},
		{
			ollama.Codec{},
			`{"model":"m","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":"Hello","annotations":[1,2],"provider_metadata":{"a":1}},"done":true,"done_reason":"stop"}`,
			`{"model":"m","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":"Hel","annotations":[1]},"done":false}` + "\n" +
				`{"model":"m","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":"lo","annotations":[2],"provider_metadata":{"a":1}},"done":false}` + "\n" +
				`{"model":"m","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop"}` + "\n",
		},
	} {
		t.Run(string(tc.codec.Dialect()), func(t *testing.T) {
			replayed := map[bool]string{}
			for _, streams := range []bool{false, true} {
				first, sent := respondsWith(t, tc.codec, "first", tc.whole, tc.streamed)
				same, toSame := respondsWith(t, tc.codec, "second", tc.whole, tc.streamed)
				other, toOther := respondsWith(t, anthropic.Codec{}, "third", `{"id":"m","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"Hi"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`, "")
				s := newSession(t)
				for i := range 2 {
					res := must[*agent.Result](t)(prompt(t.Context(), agent.Agent{Model: first}, fmt.Sprint("q", i), streams, agent.In(s)))
					if len(res.Losses.Losses) > 0 {
						t.Errorf("streams=%t: %s", streams, res.Losses)
					}
				}
				replayed[streams] = lastAssistant(t, *sent)
				for _, field := range []string{`"annotations":[`, `"provider_metadata":{"a":1}`} {
					if !strings.Contains(replayed[streams], field) {
						t.Errorf("streams=%t: no %s in %s", streams, field, replayed[streams])
					}
				}
				for _, to := range []struct {
					model  *provider.Client
					bodies *[]string
				}{{same, toSame}, {other, toOther}} {
					res := must[*agent.Result](t)(prompt(t.Context(), agent.Agent{Model: to.model}, "more", false, agent.In(s)))
					if body := (*to.bodies)[0]; strings.Contains(body, "annotations") || strings.Contains(body, "provider_metadata") {
						t.Errorf("streams=%t: %s has the fields of another origin: %s", streams, to.model.Name, body)
					}
					if rep := res.Losses.String(); strings.Count(rep, "/annotations") == 0 || strings.Count(rep, "/provider_metadata") == 0 {
						t.Errorf("streams=%t: %s: the loss is not reported: %s", streams, to.model.Name, rep)
					}
				}
			}
			if replayed[true] != replayed[false] {
				t.Errorf("streamed %s\nwhole %s", replayed[true], replayed[false])
			}
		})
	}
}
