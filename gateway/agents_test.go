package gateway_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
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
	"github.com/dragoman-go/dragoman/dialect/gemini"
	"github.com/dragoman-go/dragoman/dialect/ollama"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
	"github.com/dragoman-go/dragoman/gateway"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/storage/storekit"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/sim"
)

// Requests and streams as agent programs send them; .ci/agents/run uses the real programs.

// readUntilEvent reads a stream up to an event, and disconnects.
func readUntilEvent(t *testing.T, c *client, body, event string) {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	lines := bufio.NewScanner(c.postBody(ctx, "", true, []byte(body)).Body) //nolint:bodyclose // the test's end does
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "data: ") && strings.Contains(lines.Text(), event) {
			return
		}
	}
	t.Fatalf("no %s came: %v", event, lines.Err())
}

func TestG6_DisconnectAfterTheLastEventIsNotClientLeft(t *testing.T) {
	for name, c := range map[string]*client{"passed on": {codec: anthropic.Codec{}}, "translated": {codec: openairesponses.Codec{}}} {
		t.Run(name, func(t *testing.T) {
			w := newServerWorld(t, "", func(rw http.ResponseWriter, r *http.Request) {
				rw.Header().Set("content-type", "text/event-stream")
				_, _ = io.WriteString(rw, anthropicAnswer)
				_ = http.NewResponseController(rw).Flush()
				<-r.Context().Done() // the connection ends much later
			})
			c.t, c.url = t, w.url
			if _, ok := c.codec.(anthropic.Codec); ok {
				readUntilEvent(t, c, anthropicRequest, `"message_stop"`)
			} else {
				readUntilEvent(t, c, `{"model":"anthropic/m","stream":true,"input":"hi"}`, `"response.completed"`)
			}
			w.wantLog(t, `"msg":"request"`)
			if log := w.logged(); strings.Contains(log, "client_left") || strings.Contains(log, `"error"`) || strings.Contains(log, "WARN") {
				t.Errorf("%s", log)
			}
		})
	}
}

// recordingNotes records which bytes of the response were written when a note was put.
type recordingNotes struct {
	session.Notes
	written func() string
	seen    []string
}

func (n *recordingNotes) Put(ctx context.Context, key string, value []byte, expires time.Time) error {
	n.seen = append(n.seen, n.written())
	if err := ctx.Err(); err != nil {
		return err
	}
	return n.Notes.Put(ctx, key, value, expires)
}

func TestQuirkB17_StateIsStoredBeforeTheEndIsSent(t *testing.T) {
	for _, tc := range []struct{ path, body, end string }{
		{"/v1/responses", `{"model":"sim/planner","stream":true,"input":"hi"}`, "response.completed"},
		{"/v1/chat/completions", `{"model":"sim/planner","stream":true,"reasoning_effort":"high","messages":[{"role":"user","content":"What is the weather in Oslo?"}],"tools":[{"type":"function","function":{"name":"get_weather","parameters":{"type":"object","properties":{"city":{"type":"string"}}}}}]}`, `"finish_reason":"tool_calls"`},
	} {
		t.Run(tc.path, func(t *testing.T) {
			rec := httptest.NewRecorder()
			notes := &recordingNotes{Notes: &storekit.Notes{}, written: func() string { return rec.Body.String() }}
			g, err := gateway.New(nil, gateway.Options{Notes: notes})
			if err != nil {
				t.Fatal(err)
			}
			withJudge(t, g).ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodPost, tc.path, strings.NewReader(tc.body)))
			if len(notes.seen) == 0 || !strings.Contains(rec.Body.String(), tc.end) {
				t.Fatalf("%d notes: %s", len(notes.seen), rec.Body)
			}
			for _, written := range notes.seen {
				if strings.Contains(written, tc.end) {
					t.Errorf("it had received the end: %s", written)
				}
			}
		})
	}
}

// recordingWorld is a world that records the requests of its simulator.
func recordingWorld(t *testing.T, config sim.Config, more string) (w *world, requests func() []string) {
	t.Helper()
	t.Setenv("SIM_KEY", "upstream-secret")
	var mu sync.Mutex
	var bodies []string
	handler := sim.Handler(config)
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		bodies = append(bodies, string(body))
		mu.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(body))
		handler.ServeHTTP(rw, r)
	}))
	t.Cleanup(s.Close)
	return newWorldOf(t, s, configOf(s.URL)+more), func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(bodies)
	}
}

func TestQuirkB17_EncryptedReasoningIsRequestedAndStored(t *testing.T) {
	for _, codec := range []dialect.Codec{openaichat.Codec{}, anthropic.Codec{}, gemini.Codec{}, ollama.Codec{}} {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s streamed %v", codec.Dialect(), stream), func(t *testing.T) {
				w, requests := recordingWorld(t, sim.Config{}, "")
				c := &client{t: t, codec: codec, url: w.url}
				req := &dragoman.Request{
					Model: "responses/sim/planner", Stream: stream, MaxOutputTokens: new(int64(5000)), Tools: []dragoman.ToolSpec{weatherTool()},
					Reasoning: &dragoman.ReasoningSettings{Effort: "high"},
					Messages:  []dragoman.Message{userSays("What is the weather in Oslo?")},
				}
				if codec.Dialect() == dialectname.Anthropic {
					req.Reasoning = &dragoman.ReasoningSettings{Mode: codes.ReasoningBudget, BudgetTokens: new(int64(2000))}
				}
				resp, err := c.generate(req)
				if err != nil {
					t.Fatal(err)
				}
				call := callsOf(resp)[0]
				req.Messages = append(req.Messages, dragoman.Message{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{call}}, // and nothing else
					dragoman.Message{Role: dragoman.RoleTool, Parts: []dragoman.Part{call.Result(&dragoman.Text{Text: "snow"})}})
				if _, err := c.generate(req); err != nil {
					t.Fatal(err)
				}
				bodies := requests()
				if len(bodies) != 2 || !strings.Contains(bodies[0], `"include":["reasoning.encrypted_content"]`) || !strings.Contains(bodies[1], `"encrypted_content":"`) {
					t.Errorf("%q", bodies)
				}
			})
		}
	}
	t.Run("not where nothing is kept", func(t *testing.T) {
		w, requests := recordingWorld(t, sim.Config{}, "gateway:\n  routes:\n    m: {to: responses/sim/planner, store_reasoning: false}\n")
		c := &client{t: t, codec: openaichat.Codec{}, url: w.url}
		if _, err := c.generate(&dragoman.Request{Model: "m", Reasoning: &dragoman.ReasoningSettings{Effort: "high"}, Messages: []dragoman.Message{userSays("hi")}}); err != nil {
			t.Fatal(err)
		}
		if body := requests()[0]; strings.Contains(body, "include") {
			t.Error(body)
		}
	})
}

// searchScript searches for a tool, and calls it when it is there.
const searchScript = `
turn the search
  match turn 1
  think There may be a tool.
  call tool_search {"query": "orders"}

turn found
  match turn 2
  match result /crm\.list_orders: Lists orders/
  match tool /^crm(\.|__)list_orders$/
  call crm.list_orders {"cust": 3}

turn done
  match result seven
  say Seven.
`

// codexSearch is the search tool of Codex, and codexFound its output.
const (
	codexSearch = `{"type":"tool_search","execution":"client","description":"Finds tools.","parameters":{"type":"object","properties":{"query":{"type":"string"}},"required":["query"],"additionalProperties":false}}`
	codexFound  = `[{"type":"namespace","name":"crm","description":"Customers.","tools":[{"type":"function","name":"list_orders","description":"Lists orders.","strict":false,"defer_loading":true,"parameters":{"type":"object","properties":{"cust":{"type":"integer"}},"required":["cust"]}}]}]`
)

func TestQuirkB29_ClientToolSearchReachesEveryModel(t *testing.T) {
	script, err := sim.ParseScenario("search", searchScript)
	if err != nil {
		t.Fatal(err)
	}
	for _, up := range []string{"chat", "anthropic", "gemini", "ollama", "bedrock"} { // Responses upstreams support it
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s streamed %v", up, stream), func(t *testing.T) {
				w, requests := recordingWorld(t, sim.Config{Scenario: script}, "")
				c := &client{t: t, codec: openairesponses.Codec{}, url: w.url}
				input := []string{`{"type":"message","role":"user","content":[{"type":"input_text","text":"How many orders?"}]}`}
				// turn sends the whole conversation and appends the response.
				turn := func() string {
					hr := c.postBody(t.Context(), "", stream, fmt.Appendf(nil, `{"model":"%s/sim/scenario","stream":%v,"store":false,"reasoning":{"effort":"high"},"include":["reasoning.encrypted_content"],"tools":[%s],"input":[%s]}`,
						up, stream, codexSearch, strings.Join(input, ",")))
					defer func() { _ = hr.Body.Close() }()
					body, err := io.ReadAll(hr.Body)
					if err != nil {
						t.Fatal(err)
					}
					if stream {
						body = body[bytes.Index(body, []byte("event: response.completed")):]
						body = body[bytes.Index(body, []byte(`{`)):]
						body, _, _ = bytes.Cut(body, []byte("\n"))
						var last struct{ Response json.RawMessage }
						if err := json.Unmarshal(body, &last); err != nil {
							t.Fatal(err)
						}
						body = last.Response
					}
					var resp struct{ Output []json.RawMessage }
					if err := json.Unmarshal(body, &resp); err != nil {
						t.Fatalf("%v: %s", err, body)
					}
					for _, item := range resp.Output {
						input = append(input, string(item))
					}
					return input[len(input)-1]
				}
				var item struct {
					Type, Execution, Status, Namespace, Name string
					Call                                     string `json:"call_id"`
					Arguments                                json.RawMessage
				}
				call := turn()
				if err := json.Unmarshal([]byte(call), &item); err != nil || item.Type != "tool_search_call" || item.Call == "" || item.Execution != "client" || item.Status != "completed" {
					t.Fatalf("%v: %s", err, call)
				}
				var args struct{ Query string }
				if err := json.Unmarshal(item.Arguments, &args); err != nil || args.Query != "orders" {
					t.Errorf("%v: %s", err, item.Arguments)
				}
				input = append(input, `{"type":"tool_search_output","call_id":"`+item.Call+`","execution":"client","status":"completed","tools":`+codexFound+`}`)
				call = turn()
				if err := json.Unmarshal([]byte(call), &item); err != nil || item.Type != "function_call" || item.Namespace != "crm" || item.Name != "list_orders" {
					t.Fatalf("%v: %s", err, call)
				}
				input = append(input, `{"type":"function_call_output","call_id":"`+item.Call+`","output":"seven"}`)
				if text := turn(); !strings.Contains(text, "Seven.") {
					t.Error(text)
				}
				if strings.Contains(w.logged(), "dropped /tools/0") {
					t.Error(w.logged())
				}
				if last := requests()[2]; up == "anthropic" && !strings.Contains(last, `"signature":"`) {
					t.Errorf("the reasoning before the search is gone: %s", last)
				}
			})
		}
	}
}

func TestQuirkB29_UnreadableSearchResultsAreReported(t *testing.T) {
	w, _ := recordingWorld(t, sim.Config{}, "")
	body := `{"model":"anthropic/sim/planner","max_output_tokens":100,"tools":[` + codexSearch + `],"input":[{"type":"message","role":"user","content":"hi"},
		{"type":"tool_search_call","call_id":"call_1","execution":"client","status":"completed","arguments":{"query":"orders"}},
		{"type":"tool_search_output","call_id":"call_1","execution":"client","status":"completed","tools":{"no":"list"}}]}`
	c := &client{t: t, codec: openairesponses.Codec{}, url: w.url}
	resp := c.postBody(t.Context(), "", false, []byte(body)) //nolint:bodyclose // the test's end does
	if losses := resp.Header.Get("X-Dragoman-Losses"); resp.StatusCode != http.StatusOK || !strings.Contains(losses, "dropped /messages/2/tools") {
		t.Errorf("%d, losses %q", resp.StatusCode, losses)
	}
}
