package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/cohere"
	"github.com/dragoman-go/dragoman/dialect/gemini"
	"github.com/dragoman-go/dragoman/dialect/ollama"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/provider/extension"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/tool"
)

// moodExtension is a mapper for servers whose messages have a "mood" and "sources" that no
// dialect knows. It has no hook for streams.
type moodExtension struct{}

func (moodExtension) Info() extension.Info { return extension.Info{Name: "moods"} }

func (moodExtension) ToNative(_ []dragoman.Message, native []json.RawMessage) []json.RawMessage {
	return native
}

func (moodExtension) FromNative(native []json.RawMessage, messages []dragoman.Message) []dragoman.Message {
	return extension.FromNative(native, messages, func(o *extension.Object, m *dragoman.Message) error {
		var mood string
		if found, err := o.Read("mood", &mood); !found || err != nil {
			return err
		}
		// The part before the others can no longer be streamed.
		m.Parts = append([]dragoman.Part{&dragoman.Reasoning{Text: mood}}, m.Parts...)
		m.Name = fmt.Sprintf("%t", strings.Contains(string(o.JSON()), "Oslo"))
		if raw := o.Get("sources"); raw != nil {
			m.Parts = append(m.Parts, &dragoman.Text{Text: " " + string(raw)})
		}
		return nil
	})
}

// finishExtension rewrites texts that were already streamed.
type finishExtension struct{}

func (finishExtension) Info() extension.Info { return extension.Info{Name: "finishing"} }

func (finishExtension) Finish(_ context.Context, _ *extension.Exchange, resp *dragoman.Response) error {
	for i := range resp.Output {
		for _, p := range resp.Output[i].Parts {
			if t, ok := p.(*dragoman.Text); ok {
				t.Text = strings.ReplaceAll(t.Text, "Oslo", "OSLO")
			}
		}
	}
	return nil
}

// readingExtension is a chunk reader that changes the message by the values that it collects.
type readingExtension struct {
	*extension.Accumulator[extension.Text]
}

func newReading() readingExtension {
	return readingExtension{&extension.Accumulator[extension.Text]{
		Path: "/message/weather", Fold: extension.Append, Fragments: true,
		Extract: func(chunk json.RawMessage) (piece extension.Text, found bool, err error) {
			o, err := extension.NewObject(chunk)
			for _, place := range []string{"/choices/0/delta/weather", "/choices/0/message/weather"} {
				if err == nil && !found {
					found, err = o.Read(place, &piece)
				}
			}
			return piece, found, err
		},
		Into: func(m *dragoman.Message, sum extension.Text) error {
			m.Phase = string(sum)
			return nil
		},
	}}
}

func (readingExtension) Info() extension.Info { return extension.Info{Name: "reading"} }

// exchangeServer answers each request with the next pair, whole or as a stream.
func exchangeServer(t *testing.T, pairs ...[2]string) *httptest.Server {
	t.Helper()
	next := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var req struct{ Stream *bool }
		if err := json.Unmarshal(body, &req); err != nil || r.Method != http.MethodPost || next == len(pairs) {
			http.Error(w, `{"error":{"message":"unexpected request"}}`, http.StatusBadRequest)
			return
		}
		streamed := strings.Contains(r.URL.Path, "stream") || req.Stream != nil && *req.Stream
		answer := pairs[next][0]
		w.Header().Set("Content-Type", "application/json")
		if streamed {
			answer = pairs[next][1]
			w.Header().Set("Content-Type", "text/event-stream")
		}
		next++
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(server.Close)
	return server
}

// storedHistory runs an agent in a session, and returns the stored messages. It omits what a
// dialect itself stores with a message: its sidecar, which only a whole response has, and
// unknown fields.
func storedHistory(t *testing.T, streamed bool, a agent.Agent) (out []string, events []agent.Event) {
	t.Helper()
	s := must[*session.Session](t)(session.Create(t.Context(), &session.Memory{}, session.Info{ID: "s"}))
	if streamed {
		for ev, err := range a.Stream(t.Context(), "Do I need a coat in Oslo?", agent.In(s), agent.ID("r")) {
			if err != nil {
				t.Fatal(err)
			}
			events = append(events, ev)
		}
	} else {
		must[*agent.Result](t)(a.Run(t.Context(), "Do I need a coat in Oslo?", agent.In(s), agent.ID("r")))
	}
	messages, _, err := s.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range messages {
		m := messages[i]
		m.Native, m.Extra, m.Origin = nil, nil, nil
		for _, p := range m.Parts {
			if r, ok := p.(*dragoman.ToolResult); ok {
				r.Content = nil // the fence is random
			}
		}
		out = append(out, string(must[[]byte](t)(m.MarshalJSON())))
	}
	return out, events
}

// sse writes events of a stream.
func sse(data ...string) string { return "data: " + strings.Join(data, "\n\ndata: ") + "\n\n" }

// Two turns: a call, and a final answer. Both have fields that only extensions know.
func TestX6_StreamedAndWholeResponsesAreStoredAlike(t *testing.T) {
	for name, c := range map[string]struct {
		codec dialect.Codec
		pairs [][2]string
		want  []string // in the last message
	}{
		"openai chat": {openaichat.Codec{}, [][2]string{
			{
				`{"choices":[{"index":0,"message":{"role":"assistant","content":null,"mood":"curious","tool_calls":[{"id":"c1","type":"function","function":{"name":"look","arguments":"{\"word\":\"Oslo\"}"}}]},"finish_reason":"tool_calls"}]}`,
				sse(`{"choices":[{"index":0,"delta":{"role":"assistant","content":null,"mood":"cur"}}]}`, `{"choices":[{"index":0,"delta":{"mood":"ious","tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"look","arguments":"{\"word\":"}}]}}]}`,
					`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"Oslo\"}"}}]}}]}`, `{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`, `[DONE]`),
			},
			{
				`{"choices":[{"index":0,"message":{"role":"assistant","content":"Oslo: yes.","mood":"sure","weather":"cold and wet","sources":[{"index":0,"url":"a/b"},{"index":1,"url":"c"}]},"finish_reason":"stop"}]}`,
				sse(`{"choices":[{"index":0,"delta":{"role":"assistant","content":"Os","weather":"cold ","sources":[{"index":0,"url":"a"}]}}]}`, `{"choices":[{"index":0,"delta":{"content":"lo: yes.","mood":"su","sources":[{"index":0,"url":"/b"},{"index":1,"url":"c"}]}}]}`,
					`{"choices":[{"index":0,"delta":{"mood":"re","weather":"and wet"},"finish_reason":"stop"}]}`, `[DONE]`),
			},
		}, []string{`"sure"`, `"OSLO: yes."`, `"true"`, `"cold and wet"`, `c\"}]`}},
		"ollama": {ollama.Codec{}, [][2]string{{
			`{"model":"m","message":{"role":"assistant","content":"Oslo: yes.","mood":"sure","sources":["a","b"]},"done":true,"done_reason":"stop"}`,
			`{"model":"m","message":{"role":"assistant","content":"Os","mood":"su","sources":["a"]},"done":false}` + "\n" + `{"model":"m","message":{"role":"assistant","content":"lo: yes.","mood":"re","sources":["b"]},"done":true,"done_reason":"stop"}` + "\n",
		}}, []string{`"sure"`, `"OSLO: yes."`, `"true"`, `[\"a\",\"b\"]`}},
		"gemini": {gemini.Codec{}, [][2]string{{
			`{"candidates":[{"index":0,"content":{"role":"model","mood":"sure","parts":[{"text":"Oslo: yes."}]},"finishReason":"STOP"}]}`,
			sse(`{"candidates":[{"index":0,"content":{"role":"model","mood":"su","parts":[{"text":"Os"}]}}]}`, `{"candidates":[{"index":0,"content":{"role":"model","mood":"re","parts":[{"text":"lo: yes."}]},"finishReason":"STOP"}]}`),
		}}, []string{`"sure"`, `"OSLO: yes."`, `"true"`}},
		"anthropic": {anthropic.Codec{}, [][2]string{{
			`{"id":"m","type":"message","role":"assistant","model":"c","content":[{"type":"text","text":"Oslo: yes."}],"mood":"sure","stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":2}}`,
			sse(`{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"c","content":[],"mood":"sure","stop_reason":null,"usage":{"input_tokens":1,"output_tokens":1}}}`,
				`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Os"}}`,
				`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"lo: yes."}}`, `{"type":"content_block_stop","index":0}`,
				`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}`, `{"type":"message_stop"}`),
		}}, []string{`"sure"`, `"OSLO: yes."`, `"true"`}},
		"cohere": {cohere.Codec{}, [][2]string{{
			`{"id":"1","finish_reason":"COMPLETE","message":{"role":"assistant","mood":"sure","content":[{"type":"text","text":"Oslo: yes."}],"citations":[{"start":0,"end":4,"text":"Oslo","sources":[]}]}}`,
			sse(`{"type":"message-start","id":"1","delta":{"message":{"role":"assistant","mood":"sure","content":[],"tool_plan":"","tool_calls":[],"citations":[]}}}`,
				`{"type":"content-start","index":0,"delta":{"message":{"content":{"type":"text","text":""}}}}`, `{"type":"content-delta","index":0,"delta":{"message":{"content":{"text":"Oslo: yes."}}}}`,
				`{"type":"citation-start","index":0,"delta":{"message":{"citations":{"start":0,"end":4,"text":"Oslo","sources":[]}}}}`, `{"type":"citation-end","index":0}`,
				`{"type":"content-end","index":0}`, `{"type":"message-end","delta":{"finish_reason":"COMPLETE","usage":{"tokens":{"input_tokens":1,"output_tokens":1}}}}`),
		}}, []string{`"sure"`, `"OSLO: yes."`, `"true"`}},
	} {
		t.Run(name, func(t *testing.T) {
			set := must[*extension.Set](t)(extension.NewSet(moodExtension{}, newReading(), finishExtension{}))
			var did counted
			history := func(streamed bool) []string {
				server := exchangeServer(t, c.pairs...)
				m := &provider.Client{Name: "acme", Codec: c.codec, BaseURL: server.URL, Model: "m", Extensions: provider.Extensions{Set: set}}
				out, _ := storedHistory(t, streamed, agent.Agent{Model: m, Tools: []tool.Tool{did.tool("look")}})
				return out
			}
			whole, streamed := history(false), history(true)
			if len(whole) != len(streamed) {
				t.Fatalf("%d messages are stored of whole responses, %d of streams", len(whole), len(streamed))
			}
			for i := range whole {
				if whole[i] != streamed[i] {
					t.Errorf("message %d\nwhole    %s\nstreamed %s", i, whole[i], streamed[i])
				}
			}
			for _, want := range c.want {
				if last := whole[len(whole)-1]; !strings.Contains(last, want) {
					t.Errorf("no %s in %s", want, last)
				}
			}
		})
	}
}

func TestX5_PatchEventsHaveTurnAndMessage(t *testing.T) {
	set := must[*extension.Set](t)(extension.NewSet(newReading()))
	server := exchangeServer(t,
		[2]string{"", sse(`{"choices":[{"index":0,"delta":{"role":"assistant","tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"look","arguments":"{}"}}]}}]}`, `{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`, `[DONE]`)},
		[2]string{"", sse(`{"choices":[{"index":0,"delta":{"role":"assistant","weather":"cold "}}]}`, `{"choices":[{"index":0,"delta":{"content":"Yes.","weather":"and wet"},"finish_reason":"stop"}]}`, `[DONE]`)},
	)
	m := &provider.Client{Name: "acme", BaseURL: server.URL, Model: "m", Extensions: provider.Extensions{Set: set}}
	var did counted
	_, events := storedHistory(t, true, agent.Agent{Model: m, Tools: []tool.Tool{did.tool("look")}})
	var got []string
	for i, ev := range events {
		if p, ok := ev.(*agent.Patched); ok {
			got = append(got, string(must[[]byte](t)(agent.MarshalEvent(p, nil))))
			if i+1 == len(events) || p.Patch.Run != "r" {
				t.Errorf("%+v", p)
			}
		}
	}
	want := []string{
		`{"v":2,"type":"patch","run":"r","turn":2,"patch":{"extension":"reading","message":3,"path":"/message/weather","value":"cold ","fragment":true}}`,
		`{"v":2,"type":"patch","run":"r","turn":2,"patch":{"extension":"reading","message":3,"path":"/message/weather","value":"and wet","fragment":true}}`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A first attempt that fails before any content was sent leaves no patches.
func TestX5_PatchesOfAFailedAttemptAreNotSent(t *testing.T) {
	set := must[*extension.Set](t)(extension.NewSet(newReading()))
	tries := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if tries++; tries == 1 {
			_, _ = io.WriteString(w, sse(`{"choices":[{"index":0,"delta":{"role":"assistant","weather":"stale"}}]}`, `{"error":{"message":"overloaded","type":"server_error","code":503}}`))
			return
		}
		_, _ = io.WriteString(w, sse(`{"choices":[{"index":0,"delta":{"role":"assistant","content":"Yes.","weather":"fresh"},"finish_reason":"stop"}]}`, `[DONE]`))
	}))
	defer server.Close()
	m := &provider.Client{BaseURL: server.URL, Model: "m", Retry: provider.Retry{Base: 1}, Extensions: provider.Extensions{Set: set}}
	_, events := storedHistory(t, true, agent.Agent{Model: m})
	var got []string
	for _, ev := range events {
		if p, ok := ev.(*agent.Patched); ok {
			got = append(got, string(p.Patch.Value))
		}
	}
	if tries != 2 || strings.Join(got, " ") != `"fresh"` {
		t.Errorf("%q after %d attempts", got, tries)
	}
}

// The server sends a chunk that only the extension understands, and then waits until the run
// has reported its patch.
func TestX5_PatchesAreSentWhileTheServerWaits(t *testing.T) {
	set := must[*extension.Set](t)(extension.NewSet(newReading()))
	for name, model := range map[string]func(*provider.Client) dragoman.Model{
		"client": func(c *provider.Client) dragoman.Model { return c },
		"chain": func(c *provider.Client) dragoman.Model {
			return &provider.Chain{Links: []provider.Link{{Name: "a", Model: c}, {Name: "b", Model: c}}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			shown := make(chan struct{})
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, sse(`{"choices":[{"index":0,"delta":{"role":"assistant","content":"Yes"}}]}`, `{"choices":[{"index":0,"delta":{"weather":"wet"}}]}`))
				w.(http.Flusher).Flush()
				select {
				case <-shown:
				case <-time.After(2 * time.Second):
					t.Error("no patch while the server waits")
				}
				_, _ = io.WriteString(w, sse(`{"choices":[{"index":0,"delta":{"content":"."},"finish_reason":"stop"}]}`, `[DONE]`))
			}))
			defer server.Close()
			var direct []string // the patches without an agent
			c := &provider.Client{BaseURL: server.URL, Model: "m", Extensions: provider.Extensions{
				Set: set, Patches: func(p extension.Patch) { direct = append(direct, string(p.Value)) },
			}}
			text, patched := "", false
			for ev, err := range (agent.Agent{Model: model(c)}).Stream(t.Context(), "Do I need a coat in Oslo?", agent.Chunks()) {
				if err != nil {
					t.Fatal(err)
				}
				switch ev := ev.(type) {
				case *agent.Patched:
					if patched || text != "Yes" || string(ev.Patch.Value) != `"wet"` {
						t.Errorf("the patch %s after the text %q", ev.Patch.Value, text)
					}
					patched = true
					close(shown)
				case *agent.ModelEvent:
					if d, ok := ev.Event.(*dragoman.PartDelta); ok {
						text += d.Text
					}
					if c, ok := ev.Event.(*dragoman.Chunk); ok && len(c.Raw) == 0 {
						t.Error("a chunk without bytes became an event")
					}
				}
			}
			if !patched || text != "Yes." || strings.Join(direct, " ") != `"wet"` {
				t.Errorf("patched %v, text %q, %q", patched, text, direct)
			}
		})
	}
}

func TestX6_CollectedFieldIsSentBackWhole(t *testing.T) {
	for _, streamed := range []bool{false, true} {
		reader := newReading()
		reader.Into = nil
		var last string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			last = string(body)
			answer := `{"choices":[{"index":0,"message":{"role":"assistant","content":"Yes."},"finish_reason":"stop"}]}`
			switch called := strings.Contains(last, `"tool_call_id"`); {
			case called && streamed:
				answer = sse(`{"choices":[{"index":0,"delta":{"role":"assistant","content":"Yes."},"finish_reason":"stop"}]}`, `[DONE]`)
			case called:
			case streamed:
				answer = sse(`{"choices":[{"index":0,"delta":{"role":"assistant","weather":"cold "}}]}`,
					`{"choices":[{"index":0,"delta":{"weather":"and wet","tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"look","arguments":"{\"word\":\"Oslo\"}"}}]},"finish_reason":"tool_calls"}]}`, `[DONE]`)
			default:
				answer = `{"choices":[{"index":0,"message":{"role":"assistant","content":null,"weather":"cold and wet","tool_calls":[{"id":"c1","type":"function","function":{"name":"look","arguments":"{\"word\":\"Oslo\"}"}}]},"finish_reason":"tool_calls"}]}`
			}
			if streamed {
				w.Header().Set("Content-Type", "text/event-stream")
			}
			_, _ = io.WriteString(w, answer)
		}))
		defer server.Close()
		set := must[*extension.Set](t)(extension.NewSet(reader))
		m := &provider.Client{Name: "acme", Codec: openaichat.Codec{}, BaseURL: server.URL, Model: "m", Extensions: provider.Extensions{Set: set}}
		var did counted
		storedHistory(t, streamed, agent.Agent{Model: m, Tools: []tool.Tool{did.tool("look")}})
		if !strings.Contains(last, `"weather":"cold and wet"`) {
			t.Errorf("streamed %t: the next request is %s", streamed, last)
		}
	}
}
