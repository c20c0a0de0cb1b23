package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

const longTalk = `[{"role":"user","content":"Is there snowfall in Oslo?"},
	{"type":"function_call","call_id":"call_oslo0001","name":"get_weather","arguments":"{\"city\":\"Oslo\"}"},
	{"type":"function_call_output","call_id":"call_oslo0001","output":"snowfall, 3 cm"},
	{"role":"assistant","content":"Yes, 3 cm."}]`

func TestCompactionOnEveryUpstream(t *testing.T) {
	withTwoKeys(t)
	for _, up := range everyUpstream {
		t.Run(up, func(t *testing.T) {
			model := &strictUpstream{}
			w := newServerWorld(t, fmt.Sprintf("gateway:\n%s  routes: {m: {to: %q}}\n", twoKeys, up+"/m"), model.ServeHTTP, unjudgedPassThrough("the fake upstream has no state"))
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+"/v1/responses/compact", strings.NewReader(`{"model":"m","instructions":"Be brief.","input":`+longTalk+`}`))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("authorization", "Bearer the-first-key-of-this-test")
			hr, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer hr.Body.Close()
			raw, _ := io.ReadAll(hr.Body)
			if losses := hr.Header.Get("X-Dragoman-Losses"); hr.StatusCode != http.StatusOK || losses != "1; lowered /input" {
				t.Fatalf("%d, losses %q: %s", hr.StatusCode, losses, raw)
			}
			if err := openResponses(t).Whole(raw); err != nil {
				t.Errorf("%v\n%s", err, raw)
			}
			wantInOrder(t, model.last(), "Be brief.", "Is there snowfall in Oslo?", "get_weather", "3 cm")
			got := decodeJSON(t, strings.NewReader(string(raw)))
			output := got["output"].([]any)
			last := output[len(output)-1].(map[string]any)
			sealed, _ := last["encrypted_content"].(string)
			if got["object"] != "response.compaction" || len(output) != 2 || last["type"] != "compaction" || sealed == "" || strings.Contains(string(raw), "Spoken words") {
				t.Fatalf("%s", raw)
			}
			if usage, _ := got["usage"].(map[string]any); usage["input_tokens"] == nil {
				t.Errorf("no usage: %s", raw)
			}
			_, items, _ := strings.Cut(string(raw), `"output":`)
			items, _, _ = strings.Cut(items, `,"usage":`)
			next := fmt.Sprintf(`{"model":"m","input":[%s,{"role":"user","content":"Do I need boots?"}]}`, strings.TrimSuffix(strings.TrimPrefix(items, "["), "]"))
			status, text := postAs(t, w, http.MethodPost, "/v1/responses", "first", next)
			if status != http.StatusOK {
				t.Fatalf("%d %s", status, text)
			}
			wantInOrder(t, model.last(), "Is there snowfall in Oslo?", "Spoken words number 1.", "Do I need boots?")
			// A compacted conversation can be compacted again.
			if status, text := postAs(t, w, http.MethodPost, "/v1/responses/compact", "first", next); status != http.StatusOK || strings.Count(text, `"type":"compaction"`) != 1 {
				t.Errorf("%d %s", status, text)
			}
			requests := len(model.saw)
			changed := strings.Replace(next, sealed, sealed[:len(sealed)-4]+"AAAA", 1)
			for about, tc := range map[string][2]string{"another key": {"second", next}, "changed": {"first", changed}} {
				status, text := postAs(t, w, http.MethodPost, "/v1/responses", tc[0], tc[1])
				if status != http.StatusBadRequest || !strings.Contains(text, fmt.Sprint(last["id"])) || len(model.saw) != requests {
					t.Errorf("%s: %d %s", about, status, text)
				}
			}
		})
	}
}

func TestCompactionContinuesAStoredResponse(t *testing.T) {
	model := &strictUpstream{}
	w := newServerWorld(t, "gateway:\n  routes: {m: {to: anthropic/m}}\n", model.ServeHTTP)
	first := postResponses(t, w, `{"model":"m","input":"Is there snowfall?"}`)
	status, text := get(t, http.MethodPost, w.url+"/v1/responses/compact", fmt.Sprintf(`{"model":"m","previous_response_id":%q}`, first["id"]))
	if status != http.StatusOK || !strings.Contains(text, `"compaction"`) {
		t.Fatalf("%d %s", status, text)
	}
	wantInOrder(t, model.last(), "Is there snowfall?", "Spoken words number 1.")
	for body, want := range map[string]string{
		`{"model":"m","previous_response_id":"resp_never"}`: "resp_never",
		`{"model":"m","input":[]}`:                          "input",
		`{"model":"m","input":[{"type":"compaction","id":"cmp_x","encrypted_content":"gAAAA"},{"role":"user","content":"x"}]}`: "compaction item 'cmp_x': this compaction item was changed",
		`{"model":"m","input":[{"role":"user","content":"x"},{"type":"compaction","encrypted_content":"gAAAA"}]}`:              "input[1]: this compaction item was changed",
	} {
		if status, text := get(t, http.MethodPost, w.url+"/v1/responses/compact", body); status != http.StatusBadRequest || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s", body, status, text)
		}
	}
}

func TestCompactionIsLeftToAnUpstreamThatHasIt(t *testing.T) {
	const compacted = `{"id":"resp_c","object":"response.compaction","created_at":1,"output":[{"type":"compaction","id":"cmp_1","encrypted_content":"gAAAA"}],"usage":{"input_tokens":5,"input_tokens_details":{"cached_tokens":0},"output_tokens":2,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":7}}`
	var requests []string
	respBody, code := compacted, http.StatusOK
	w := newServerWorld(t, "gateway:\n  routes: {m: {to: responses/gpt}}\n", func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		requests = append(requests, r.Method+" "+r.URL.Path+" "+string(body))
		rw.Header().Set("content-type", "application/json")
		rw.WriteHeader(code)
		_, _ = io.WriteString(rw, respBody)
	})
	status, text := get(t, http.MethodPost, w.url+"/v1/responses/compact", `{"model":"m","input":"hi"}`)
	if status != http.StatusOK || text != compacted || len(requests) != 1 || requests[0] != `POST /v1/responses/compact {"model":"gpt","input":"hi"}` {
		t.Errorf("%d %s\nrequests %q", status, text, requests)
	}
	w.wantLog(t, `"input_tokens":5`)
	// A refusal is the upstream's, not a reason to summarize.
	respBody, code = `{"error":{"message":"The model 'gpt' does not exist","type":"invalid_request_error","param":null,"code":"model_not_found"}}`, http.StatusNotFound
	if status, text := get(t, http.MethodPost, w.url+"/v1/responses/compact", `{"model":"m","input":"hi"}`); status != http.StatusNotFound || text != respBody {
		t.Errorf("%d %s", status, text)
	}
}

func TestG4_CompactionFollowsTheSettingsOfItsRoute(t *testing.T) {
	for up, want := range map[string]string{
		"anthropic": `"max_tokens":77,`,
		"responses": `"max_output_tokens":77,`,
		"ollama":    `"num_predict":77,`,
	} {
		model := &strictUpstream{}
		w := newServerWorld(t, fmt.Sprintf("gateway:\n  routes: {m: {to: %s/m, set: {temperature: 0.3, max_tokens: 77, parallel_tool_calls: false}}}\n", up), model.ServeHTTP)
		status, text := get(t, http.MethodPost, w.url+"/v1/responses/compact", `{"model":"m","input":`+longTalk+`}`)
		if status != http.StatusOK {
			t.Fatalf("%s: %d %s", up, status, text)
		}
		sent := strings.NewReplacer("}", ",", " ", "").Replace(model.last())
		if !strings.Contains(sent, want) || !strings.Contains(sent, `"temperature":0.3,`) || strings.Contains(sent, "parallel") {
			t.Errorf("%s is sent %s", up, sent)
		}
	}
}

func TestG4_CompactionReportsASettingOfItsRouteThatTheModelLacks(t *testing.T) {
	model := &strictUpstream{}
	w := newServerWorld(t, "gateway:\n  routes: {m: {to: responses/m, set: {top_k: 3}}}\n", model.ServeHTTP)
	if status, text := get(t, http.MethodPost, w.url+"/v1/responses/compact", `{"model":"m","input":`+longTalk+`}`); status != http.StatusOK {
		t.Fatalf("%d %s", status, text)
	}
	w.wantLog(t, `/sampling/top_k`)
}

// Half a summary, or a refusal, must not replace a conversation. The next model of the route
// writes the summary, and the response names the model that failed.
func TestCompactionRefusesAnUnfinishedSummary(t *testing.T) {
	for reason, text := range map[string]string{"max_tokens": "The user asked wheth", "refusal": "I cannot do that."} {
		handler := func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("content-type", "application/json")
			if strings.HasPrefix(r.URL.Path, "/v1/messages") {
				_, _ = fmt.Fprintf(rw, `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":%q}],"stop_reason":%q,"stop_sequence":null,"usage":{"input_tokens":7,"output_tokens":3}}`, text, reason)
				return
			}
			_, _ = io.WriteString(rw, `{"model":"m","created_at":"2026-01-02T03:04:05Z","message":{"role":"assistant","content":"All of it."},"done":true,"done_reason":"stop"}`)
		}
		w := newServerWorld(t, "gateway:\n  routes: {one: {to: anthropic/m}, two: {to: \"anthropic/m, ollama/m\"}}\n", handler)
		if status, got := get(t, http.MethodPost, w.url+"/v1/responses/compact", `{"model":"one","input":`+longTalk+`}`); status != http.StatusBadGateway || !strings.Contains(got, "did not finish the summary") {
			t.Errorf("%s: %d %s", reason, status, got)
		}
		resp, err := http.Post(w.url+"/v1/responses/compact", "application/json", strings.NewReader(`{"model":"two","input":`+longTalk+`}`))
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if h := resp.Header; resp.StatusCode != http.StatusOK || h.Get("X-Dragoman-Upstream") != "ollama/m" || h.Get("X-Dragoman-Failed-Over") != "anthropic/m" {
			t.Errorf("%s: %d %v", reason, resp.StatusCode, h)
		}
	}
}
