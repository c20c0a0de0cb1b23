package strictupstream_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/internal/oracle/strictupstream"
	"github.com/dragoman-go/dragoman/sim"
)

// newServer returns a strict server in front of the simulator, and a function that posts to
// it.
func newServer(t *testing.T) func(path, body string) (int, string) {
	t.Helper()
	s := httptest.NewServer(strictupstream.New(sim.Handler(sim.Config{}), strictupstream.Options{Model: "sim/planner"}))
	t.Cleanup(s.Close)
	return func(path, body string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		got, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(got)
	}
}

// response holds the fields of a Responses object that the tests read.
type response struct {
	ID     string `json:"id"`
	Output []struct {
		Type      string `json:"type"`
		ID        string `json:"id"`
		CallID    string `json:"call_id"`
		Encrypted string `json:"encrypted_content"`
		Content   []struct {
			Text string `json:"text"`
		} `json:"content"`
	} `json:"output"`
}

// responseOf reads a response, or the terminal event of a stream.
func responseOf(t *testing.T, body string) (r response) {
	t.Helper()
	for line := range strings.Lines(body) {
		if data, ok := strings.CutPrefix(line, "data: "); ok && strings.Contains(data, `"type":"response.completed"`) {
			body = data
			break
		}
	}
	var e struct {
		response
		Response *response `json:"response"`
	}
	if err := json.NewDecoder(bufio.NewReader(strings.NewReader(body))).Decode(&e); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	if e.Response != nil {
		return *e.Response
	}
	return e.response
}

const weatherTool = `{"type":"function","name":"get_weather","description":"Current weather in a city.","parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}`

func TestItemReferencesAreResolved(t *testing.T) {
	for _, stream := range []bool{false, true} {
		t.Run(fmt.Sprintf("stream %v", stream), func(t *testing.T) {
			post := newServer(t)
			ask := func(input, more string) (int, string) {
				return post("/v1/responses", fmt.Sprintf(`{"model":"gpt-4.1","stream":%v,"tools":[%s],"input":%s%s}`, stream, weatherTool, input, more))
			}
			const user = `{"role":"user","content":"What is the weather in Oslo?"}`
			status, body := ask(`[`+user+`]`, "")
			if status != http.StatusOK {
				t.Fatal(status, body)
			}
			call := responseOf(t, body).Output[0]
			if call.Type != "function_call" {
				t.Fatal(body)
			}
			output := fmt.Sprintf(`{"type":"function_call_output","call_id":%q,"output":"4 °C"}`, call.CallID)
			status, body = ask(fmt.Sprintf(`[%s,{"type":"item_reference","id":%q},%s]`, user, call.ID, output), "")
			if status != http.StatusOK || !strings.Contains(body, "4 °C") {
				t.Errorf("reference: status %d: %s", status, body)
			}
			status, body = ask(fmt.Sprintf(`[%s,{"id":%q}]`, user, call.ID), "")
			if status != http.StatusBadRequest || !strings.Contains(body, "has no output") {
				t.Errorf("a reference without the result of its call: status %d: %s", status, body)
			}
			status, body = ask(fmt.Sprintf(`[%s,{"type":"item_reference","id":"fc_none"},%s]`, user, output), "")
			if status != http.StatusNotFound || !strings.Contains(body, "Item with id 'fc_none' not found.") {
				t.Errorf("unknown reference: status %d: %s", status, body)
			}
		})
	}
}

func TestUnstoredItemsAreNotFound(t *testing.T) {
	post := newServer(t)
	_, body := post("/v1/responses", `{"model":"gpt-4.1","store":false,"input":"Hello"}`)
	r := responseOf(t, body)
	status, body := post("/v1/responses", fmt.Sprintf(`{"model":"gpt-4.1","input":[{"type":"item_reference","id":%q},{"role":"user","content":"Go on."}]}`, r.Output[0].ID))
	if status != http.StatusNotFound {
		t.Errorf("reference: status %d: %s", status, body)
	}
	status, body = post("/v1/responses", fmt.Sprintf(`{"model":"gpt-4.1","previous_response_id":%q,"input":"Go on."}`, r.ID))
	if status != http.StatusBadRequest || !strings.Contains(body, "previous_response_not_found") {
		t.Errorf("previous_response_id: status %d: %s", status, body)
	}
	status, body = post("/v1/responses", `{"model":"gpt-4.1","conversation":{"id":"conv_1"},"input":"Go on."}`)
	if status != http.StatusNotFound || !strings.Contains(body, "conv_1") {
		t.Errorf("conversation: status %d: %s", status, body)
	}
}

func TestReferencesNeedTheirReasoning(t *testing.T) {
	post := newServer(t)
	const user = `{"role":"user","content":"Hello"}`
	_, body := post("/v1/responses", `{"model":"gpt-5","reasoning":{"effort":"low"},"input":[`+user+`]}`)
	out := responseOf(t, body).Output
	if len(out) != 2 || out[0].Type != "reasoning" {
		t.Fatal(body)
	}
	status, body := post("/v1/responses", fmt.Sprintf(`{"model":"gpt-5","input":[%s,{"type":"item_reference","id":%q},{"role":"user","content":"Go on."}]}`, user, out[1].ID))
	if status != http.StatusBadRequest || !strings.Contains(body, "without its required 'reasoning' item") {
		t.Errorf("without: status %d: %s", status, body)
	}
	status, body = post("/v1/responses", fmt.Sprintf(`{"model":"gpt-5","input":[%s,{"type":"item_reference","id":%q},{"type":"item_reference","id":%q},{"role":"user","content":"Go on."}]}`, user, out[0].ID, out[1].ID))
	if status != http.StatusOK {
		t.Errorf("with: status %d: %s", status, body)
	}
}

func TestForeignReasoningIsRefused(t *testing.T) {
	post := newServer(t)
	for _, tc := range []struct{ name, path, body, want string }{
		{"encrypted_content", "/v1/responses", `{"model":"gpt-5","input":[{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"x"},{"role":"assistant","content":"a"},{"role":"user","content":"q"}]}`, "could not be verified"},
		{"reasoning id", "/v1/responses", `{"model":"gpt-5","input":[{"type":"reasoning","id":"rs_1","summary":[]},{"role":"assistant","content":"a"},{"role":"user","content":"q"}]}`, "Item with id 'rs_1' not found"},
		{"thinking", "/v1/messages", `{"model":"claude-sonnet-4-5","max_tokens":9,"messages":[{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"x"},{"type":"text","text":"a"}]},{"role":"user","content":"q"}]}`, "Invalid `signature`"},
		{"redacted thinking", "/v1/messages", `{"model":"claude-sonnet-4-5","max_tokens":9,"messages":[{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"redacted_thinking","data":"x"},{"type":"text","text":"a"}]},{"role":"user","content":"q"}]}`, "Invalid `data`"},
		{"Bedrock", "/model/anthropic.claude-sonnet-4-5/converse", `{"messages":[{"role":"user","content":[{"text":"q"}]},{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"t","signature":"x"}}},{"text":"a"}]},{"role":"user","content":[{"text":"q"}]}]}`, "Invalid `signature`"},
		{"Gemini", "/v1beta/models/gemini-3.5-flash:generateContent", `{"contents":[{"role":"user","parts":[{"text":"q"}]},{"role":"model","parts":[{"text":"a","thoughtSignature":"eA=="}]},{"role":"user","parts":[{"text":"q"}]}]}`, "Corrupted thought signature"},
	} {
		if status, body := post(tc.path, tc.body); status < 400 || !strings.Contains(body, tc.want) {
			t.Errorf("%s: status %d: %s", tc.name, status, body)
		}
	}
}

func TestOwnThinkingIsAccepted(t *testing.T) {
	post := newServer(t)
	for _, stream := range []bool{false, true} {
		status, body := post("/v1/messages", fmt.Sprintf(`{"model":"claude-sonnet-4-5","max_tokens":4096,"stream":%v,"thinking":{"type":"enabled","budget_tokens":1024},"messages":[{"role":"user","content":"Hello %v"}]}`, stream, stream))
		m := regexp.MustCompile(`"signature":"([^"]+)"`).FindStringSubmatch(body)
		if status != http.StatusOK || m == nil {
			t.Fatal(status, body)
		}
		status, body = post("/v1/messages", fmt.Sprintf(`{"model":"claude-sonnet-4-5","max_tokens":4096,"messages":[{"role":"user","content":"Hello"},{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":%q},{"type":"text","text":"a"}]},{"role":"user","content":"q"}]}`, m[1]))
		if status != http.StatusOK {
			t.Errorf("stream %v: status %d: %s", stream, status, body)
		}
	}
}

func TestGemini3SignsItsCalls(t *testing.T) {
	for method, signatures := range map[string]int{"generateContent": 1, "streamGenerateContent?alt=sse": 2} {
		post := newServer(t)
		const declaration = `"tools":[{"functionDeclarations":[{"name":"get_weather","description":"Current weather in a city.","parametersJsonSchema":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}]}]`
		const user = `{"role":"user","parts":[{"text":"What is the weather in Oslo and in Rome?"}]}`
		path := "/v1beta/models/gemini-3.5-flash:" + method
		status, body := post(path, `{"contents":[`+user+`],`+declaration+`}`)
		if status != http.StatusOK || strings.Count(body, `"thoughtSignature"`) != signatures {
			t.Fatalf("%s: status %d: %s", method, status, body)
		}
		signature := regexp.MustCompile(`"thoughtSignature":"([^"]+)"`).FindStringSubmatch(body)[1]
		status, body = post(path, fmt.Sprintf(`{"contents":[%s,{"role":"model","parts":[{"functionCall":{"name":"get_weather","args":{"city":"Oslo"}},"thoughtSignature":%q}]},
			{"role":"user","parts":[{"functionResponse":{"name":"get_weather","response":{"output":"4 °C"}}}]}],%s}`, user, signature, declaration))
		if status != http.StatusOK {
			t.Errorf("%s: status %d: %s", method, status, body)
		}
	}
}

func TestEveryDialectReachesTheNextHandler(t *testing.T) {
	post := newServer(t)
	for path, body := range map[string]string{
		"/v1/chat/completions":                      `{"model":"gpt-4.1","messages":[{"role":"user","content":"Hello"}]}`,
		"/v1/responses":                             `{"model":"gpt-4.1","input":"Hello"}`,
		"/v1/messages":                              `{"model":"claude-sonnet-4-5","max_tokens":9,"messages":[{"role":"user","content":"Hello"}]}`,
		"/api/chat":                                 `{"model":"llama3.2","stream":false,"messages":[{"role":"user","content":"Hello"}]}`,
		"/v1beta/models/m:generateContent":          `{"contents":[{"role":"user","parts":[{"text":"Hello"}]}]}`,
		"/model/anthropic.claude-opus-5-5/converse": `{"messages":[{"role":"user","content":[{"text":"Hello"}]}]}`,
	} {
		if status, got := post(path, body); status != http.StatusOK || !strings.Contains(got, "You said: Hello") {
			t.Errorf("%s: status %d: %s", path, status, got)
		}
	}
	if status, body := post("/v1/messages/count_tokens", `{"model":"claude-sonnet-4-5","messages":[{"role":"user","content":"Hello"}]}`); status != http.StatusOK {
		t.Errorf("count_tokens: status %d: %s", status, body)
	}
	if status, body := post("/v1/chat/completions", `{"model":"gpt-4.1?fault=429","messages":[{"role":"user","content":"Hello"}]}`); status != http.StatusTooManyRequests {
		t.Errorf("fault: status %d: %s", status, body)
	}
}

func TestErrorsOfArrayStreamsAreArrays(t *testing.T) {
	post := newServer(t)
	status, body := post("/v1beta/models/gemini-3.5-flash:streamGenerateContent", `{"contents":[],"unknown":1}`)
	if status != http.StatusBadRequest || !bytes.HasPrefix([]byte(body), []byte(`[{"error"`)) {
		t.Errorf("status %d: %s", status, body)
	}
}

func TestRefusalsAreReported(t *testing.T) {
	var refused []*strictupstream.Refusal
	s := strictupstream.New(sim.Handler(sim.Config{}), strictupstream.Options{Refused: func(r *strictupstream.Refusal) { refused = append(refused, r) }})
	rec := httptest.NewRecorder()
	s.ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/chat/completions", strings.NewReader(`{"model":"gpt-4.1","messages":[{"role":"user","content":"Hello"}],"top_k":1}`)))
	if rec.Code != http.StatusBadRequest || len(refused) != 1 || refused[0].Model != "gpt-4.1" {
		t.Errorf("status %d, %v", rec.Code, refused)
	}
}

func TestCompactedConversationsAreAccepted(t *testing.T) {
	post := newServer(t)
	status, body := post("/v1/responses/compact", `{"model":"gpt-5","input":[{"role":"user","content":"My code is 17."},{"role":"assistant","content":"I see."}]}`)
	if status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	compacted := responseOf(t, body)
	if len(compacted.Output) == 0 {
		t.Fatalf("no items: %s", body)
	}
	var items struct {
		Output []json.RawMessage `json:"output"`
	}
	if err := json.Unmarshal([]byte(body), &items); err != nil {
		t.Fatal(err)
	}
	next, err := json.Marshal(map[string]any{"model": "gpt-5", "input": append(items.Output, json.RawMessage(`{"role":"user","content":"Goodbye!"}`))})
	if err != nil {
		t.Fatal(err)
	}
	if status, body = post("/v1/responses", string(next)); status != http.StatusOK {
		t.Errorf("%d %s", status, body)
	}
}
