package gateway_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/sim"
)

const twoKeys = "  keys: {first: {key_env: FIRST_KEY}, second: {key_env: SECOND_KEY}}\n"

// postAs posts to a path with one of two keys.
func postAs(t testing.TB, w *world, method, path, key, body string) (int, string) {
	t.Helper()
	return get(t, method, w.url+path, body, "authorization", "Bearer the-"+key+"-key-of-this-test")
}

func withTwoKeys(t *testing.T) {
	t.Helper()
	t.Setenv("FIRST_KEY", "the-first-key-of-this-test")
	t.Setenv("SECOND_KEY", "the-second-key-of-this-test")
}

// streamedThinks is responsesThinks as a stream.
var streamedThinks = func() string {
	var b strings.Builder
	event := func(typ string, n int, more string) {
		fmt.Fprintf(&b, "event: %s\ndata: {\"type\":%q,\"sequence_number\":%d,%s}\n\n", typ, typ, n, more)
	}
	begun := strings.Replace(strings.Replace(responsesThinks, `"status":"completed","model"`, `"status":"in_progress","model"`, 1), `"completed_at":2`, `"completed_at":null`, 1)
	before, after, _ := strings.Cut(begun, `"output":[`)
	_, after, _ = strings.Cut(after, `],"usage"`)
	begun = before + `"output":[],"usage"` + after
	const reasoning = `"output_index":0,"item":{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"encrypted-thinking"}`
	event("response.created", 0, `"response":`+begun)
	event("response.in_progress", 1, `"response":`+begun)
	event("response.output_item.added", 2, reasoning)
	event("response.output_item.done", 3, reasoning)
	event("response.output_item.added", 4, `"output_index":1,"item":{"type":"function_call","id":"fc_1","call_id":"call_1","name":"get_weather","arguments":"","status":"in_progress"}`)
	event("response.function_call_arguments.delta", 5, `"item_id":"fc_1","output_index":1,"delta":"{\"city\":\"Oslo\"}"`)
	event("response.function_call_arguments.done", 6, `"item_id":"fc_1","output_index":1,"name":"get_weather","arguments":"{\"city\":\"Oslo\"}"`)
	event("response.output_item.done", 7, `"output_index":1,"item":{"type":"function_call","id":"fc_1","call_id":"call_1","name":"get_weather","arguments":"{\"city\":\"Oslo\"}","status":"completed"}`)
	event("response.completed", 8, `"response":`+responsesThinks)
	b.WriteString("data: [DONE]\n\n")
	return b.String()
}()

// Two keys share the account of a Responses upstream, which would resolve the items of
// either.
func TestItemsOfAnotherKeyAreRefused(t *testing.T) {
	withTwoKeys(t)
	for _, tc := range []struct{ about, answer, stream, route string }{
		{"passed through", responsesThinks, "false", "{to: responses/gpt}"},
		{"passed through as a stream", streamedThinks, "true", "{to: responses/gpt}"},
		{"re-encoded", responsesThinks, "false", "{to: responses/gpt, repair: always}"},
		{"re-encoded as a stream", streamedThinks, "true", "{to: responses/gpt, repair: always}"},
	} {
		t.Run(tc.about, func(t *testing.T) {
			model := &scriptedServer{responses: []string{tc.answer}}
			w := newServerWorld(t, "gateway:\n"+twoKeys+"  routes: {m: "+tc.route+"}\n", model.ServeHTTP)
			post := func(key, input string) (int, string) {
				return postAs(t, w, http.MethodPost, "/v1/responses", key, fmt.Sprintf(`{"model":"m",%s,"stream":%s,"input":%s}`, weatherTools, tc.stream, input))
			}
			references := []string{
				`[{"type":"item_reference","id":"fc_1"},{"type":"function_call_output","call_id":"call_1","output":"snow"}]`,
				`[{"id":"rs_1"},{"role":"user","content":"x"}]`,
				`[{"type":"reasoning","id":"rs_1","summary":[]},{"type":"function_call","call_id":"call_1","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"call_1","output":"snow"}]`,
			}
			refused := func(key string) {
				t.Helper()
				requests := len(model.requests)
				for _, input := range references {
					if status, text := post(key, input); status != http.StatusNotFound || !strings.Contains(text, "_1'") || len(model.requests) != requests {
						t.Errorf("%s: %d %s", input, status, text)
					}
				}
			}
			refused("first")
			if status, text := post("first", `"hi"`); status != http.StatusOK {
				t.Fatalf("%d %s", status, text)
			}
			refused("second")
			for _, input := range references {
				requests := len(model.requests)
				if status, text := post("first", input); status != http.StatusOK || len(model.requests) != requests+1 {
					t.Errorf("its own key: %s: %d %s", input, status, text)
				} else if got := model.requests[requests]; !strings.Contains(got, `_1"`) {
					t.Errorf("the reference was not passed through: %s", got)
				}
			}
		})
	}
}

// The owner of the items of a background response is recorded when the response is retrieved.
func TestItemOwnersAreRecordedOnRetrieval(t *testing.T) {
	withTwoKeys(t)
	const queued = `{"id":"resp_9","object":"response","created_at":1,"status":"queued","model":"gpt","output":[],"store":true,"background":true}`
	fetched := strings.Replace(responsesThinks, "resp_1", "resp_9", 1)
	const list = `{"object":"list","data":[{"type":"message","id":"msg_in","role":"user","content":[{"type":"input_text","text":"hi"}]}],"first_id":"msg_in","last_id":"msg_in","has_more":false}`
	streamed := strings.ReplaceAll(strings.ReplaceAll(streamedThinks, "fc_1", "fc_s"), "resp_1", "resp_9")
	model := &scriptedServer{responses: []string{queued, fetched, list, streamed, responsesThinks}}
	w := newServerWorld(t, "gateway:\n"+twoKeys+"  routes: {m: {to: responses/gpt}}\n", model.ServeHTTP, unjudgedPassThrough("the upstream's own words are passed through"))
	if status, text := postAs(t, w, http.MethodPost, "/v1/responses", "first", `{"model":"m","input":"hi","background":true}`); status != http.StatusOK {
		t.Fatalf("%d %s", status, text)
	}
	for _, path := range []string{"/v1/responses/resp_9", "/v1/responses/resp_9/input_items", "/v1/responses/resp_9?stream=true"} {
		if status, text := postAs(t, w, http.MethodGet, path, "first", ""); status != http.StatusOK {
			t.Fatalf("%s: %d %s", path, status, text)
		}
	}
	for _, id := range []string{"fc_1", "msg_in", "fc_s"} {
		body := fmt.Sprintf(`{"model":"m","input":[{"type":"item_reference","id":%q}]}`, id)
		if status, text := postAs(t, w, http.MethodPost, "/v1/responses", "first", body); status != http.StatusOK {
			t.Errorf("%s: %d %s", id, status, text)
		}
		if status, text := postAs(t, w, http.MethodPost, "/v1/responses", "second", body); status != http.StatusNotFound {
			t.Errorf("%s of another key: %d %s", id, status, text)
		}
	}
}

// A key may count tokens only of items that it may refer to.
func TestCountsOfAnotherKeysItemsAreRefused(t *testing.T) {
	withTwoKeys(t)
	model := &scriptedServer{responses: []string{`{"object":"response.input_tokens","input_tokens":9}`}}
	w := newServerWorld(t, "gateway:\n"+twoKeys+"  routes: {m: {to: responses/gpt}}\n", model.ServeHTTP)
	for _, more := range []string{`"input":[{"type":"item_reference","id":"fc_1"}]`, `"input":"x","conversation":"conv_1"`} {
		if status, text := postAs(t, w, http.MethodPost, "/v1/responses/input_tokens", "second", `{"model":"m",`+more+`}`); status != http.StatusNotFound || len(model.requests) > 0 {
			t.Errorf("%s: %d %s", more, status, text)
		}
	}
}

func TestConversationsAreStoredForEveryUpstream(t *testing.T) {
	withTwoKeys(t)
	for _, up := range everyUpstream {
		for _, stream := range []string{"false", "true"} {
			t.Run(up+" stream "+stream, func(t *testing.T) {
				model := &strictUpstream{}
				w := newServerWorld(t, fmt.Sprintf("gateway:\n%s  routes: {m: {to: %q}}\n", twoKeys, up+"/m"), model.ServeHTTP, unjudgedPassThrough("the fake upstream has no state"))
				status, text := postAs(t, w, http.MethodPost, "/v1/conversations", "first", `{"metadata":{"a":"b"},"items":[{"role":"user","content":"My name is Ada."}]}`)
				made := decodeJSON(t, strings.NewReader(text))
				id, _ := made["id"].(string)
				if status != http.StatusOK || made["object"] != "conversation" || !strings.HasPrefix(id, "conv_") || made["metadata"].(map[string]any)["a"] != "b" {
					t.Fatalf("%d %s", status, text)
				}
				post := func(key, more string) (int, string) {
					return postAs(t, w, http.MethodPost, "/v1/responses", key, fmt.Sprintf(`{"model":"m",%s,"stream":%s,%s}`, weatherTools, stream, more))
				}
				if status, text := post("first", fmt.Sprintf(`"conversation":%q,"input":"Oslo, please."`, id)); status != http.StatusOK {
					t.Fatalf("%d %s", status, text)
				}
				wantInOrder(t, model.last(), "My name is Ada.", "Oslo, please.")
				if status, text := post("first", fmt.Sprintf(`"conversation":{"id":%q},"input":[{"type":"function_call_output","call_id":"call_oslo0001","output":"snowfall"}]`, id)); status != http.StatusOK {
					t.Fatalf("%d %s", status, text)
				}
				wantInOrder(t, model.last(), "My name is Ada.", "Oslo, please.", "Spoken words number 1.", "get_weather", "snowfall")
				_, text = postAs(t, w, http.MethodGet, "/v1/conversations/"+id+"/items?order=asc", "first", "")
				wantInOrder(t, text, "My name is Ada.", "Oslo, please.", "Spoken words number 1.", "get_weather", "snowfall", "Spoken words number 2.")
				requests := len(model.saw)
				for _, path := range []string{"", "/items"} {
					if status, text := postAs(t, w, http.MethodGet, "/v1/conversations/"+id+path, "second", ""); status != http.StatusNotFound || !strings.Contains(text, id) {
						t.Errorf("another key: %d %s", status, text)
					}
				}
				if status, text := post("second", fmt.Sprintf(`"conversation":%q,"input":"x"`, id)); status != http.StatusNotFound || !strings.Contains(text, id) {
					t.Errorf("another key: %d %s", status, text)
				}
				if status, text := post("first", fmt.Sprintf(`"conversation":%q,"previous_response_id":"resp_1","input":"x"`, id)); status != http.StatusBadRequest {
					t.Errorf("with a previous response: %d %s", status, text)
				}
				if len(model.saw) != requests {
					t.Errorf("the upstream was called: %s", model.last())
				}
				if status, text := postAs(t, w, http.MethodDelete, "/v1/conversations/"+id, "first", ""); status != http.StatusOK || !strings.Contains(text, `"conversation.deleted"`) {
					t.Errorf("%d %s", status, text)
				}
				if status, _ := post("first", fmt.Sprintf(`"conversation":%q,"input":"x"`, id)); status != http.StatusNotFound {
					t.Errorf("a deleted one: %d", status)
				}
			})
		}
	}
}

func TestConversationItems(t *testing.T) {
	w := newWorld(t, "")
	_, text := get(t, http.MethodPost, w.url+"/v1/conversations", "")
	id := decodeJSON(t, strings.NewReader(text))["id"].(string)
	at := w.url + "/v1/conversations/" + id
	status, text := get(t, http.MethodPost, at+"/items", `{"items":[{"role":"user","content":"One."},{"type":"message","role":"assistant","content":"Two."}]}`)
	added := decodeJSON(t, strings.NewReader(text))
	data, _ := added["data"].([]any)
	if status != http.StatusOK || added["object"] != "list" || len(data) != 2 {
		t.Fatalf("%d %s", status, text)
	}
	first := data[0].(map[string]any)["id"].(string)
	if status, text := get(t, http.MethodGet, at+"/items/"+first, ""); status != http.StatusOK || !strings.Contains(text, "One.") {
		t.Errorf("%d %s", status, text)
	}
	if status, text := get(t, http.MethodPost, at, `{"metadata":{"k":"v"}}`); status != http.StatusOK || !strings.Contains(text, `"k":"v"`) {
		t.Errorf("%d %s", status, text)
	}
	if status, text := get(t, http.MethodDelete, at+"/items/"+first, ""); status != http.StatusOK || !strings.Contains(text, id) {
		t.Errorf("%d %s", status, text)
	}
	if status, text := get(t, http.MethodGet, at+"/items/"+first, ""); status != http.StatusNotFound || !strings.Contains(text, first) {
		t.Errorf("%d %s", status, text)
	}
	for body, want := range map[string]int{
		`{"items":[]}`: 400, `{"items":{}}`: 400, `{"items":[{"type":"item_reference","id":"msg_x"}]}`: 404,
		`{"items":[` + strings.Repeat(`{"role":"user","content":"x"},`, 20) + `{"role":"user","content":"x"}]}`: 400,
	} {
		if status, text := get(t, http.MethodPost, at+"/items", body); status != want {
			t.Errorf("%.60s: %d %s", body, status, text)
		}
	}
}

func TestCountsResolveReferences(t *testing.T) {
	w := newWorld(t, "")
	stored := postResponses(t, w, `{"model":"anthropic/sim/echo","input":"A rather long text that is worth a number of tokens."}`)
	count := func(input string) float64 {
		t.Helper()
		status, text := get(t, http.MethodPost, w.url+"/v1/responses/input_tokens", `{"model":"anthropic/sim/echo","input":[`+input+`{"role":"user","content":"q"}]}`)
		if status != http.StatusOK {
			t.Fatalf("%d %s", status, text)
		}
		return decodeJSON(t, strings.NewReader(text))["input_tokens"].(float64)
	}
	if with, without := count(fmt.Sprintf(`{"type":"item_reference","id":%q},`, idsOf(stored, "message")[0])), count(``); with < without+5 {
		t.Errorf("%v tokens with the item, %v without", with, without)
	}
}

// Without keys the upstream's account has one user, who may refer to all of it.
func TestWithoutKeysTheUpstreamResolvesUnknownReferences(t *testing.T) {
	model := &scriptedServer{responses: []string{responsesThinks}}
	w := newServerWorld(t, "gateway:\n  routes: {m: {to: responses/gpt}, other: {to: anthropic/claude}}\n", model.ServeHTTP)
	for _, more := range []string{`"conversation":"conv_up","input":"x"`, `"conversation":{"id":"conv_up"},"input":"x"`, `"input":[{"type":"item_reference","id":"msg_up"}]`} {
		requests := len(model.requests)
		status, text := get(t, http.MethodPost, w.url+"/v1/responses", `{"model":"m",`+more+`}`)
		if status != http.StatusOK || len(model.requests) != requests+1 || model.requests[requests] != `{"model":"gpt",`+more+`}` {
			t.Errorf("%s: %d %s\nrequests %q", more, status, text, model.requests[requests:])
		}
		status, text = get(t, http.MethodPost, w.url+"/v1/responses", `{"model":"other",`+more+`}`)
		if status != http.StatusNotFound || !strings.Contains(text, "_up") || len(model.requests) != requests+1 {
			t.Errorf("%s on a translated route: %d %s", more, status, text)
		}
	}
}

// The last model of a list may be unable to resolve what the first one could. It is not called,
// and the client gets the error of the first one.
func TestReferencesFailWithTheirOwnUpstream(t *testing.T) {
	requests := 0
	w := newServerWorld(t, "gateway:\n  routes: {m: {to: 'responses/gpt,anthropic/claude'}}\n", func(rw http.ResponseWriter, r *http.Request) {
		requests++
		if strings.HasSuffix(r.URL.Path, "/messages") {
			t.Errorf("the other model was called without the item")
		}
		rw.Header().Set("content-type", "application/json")
		rw.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(rw, `{"error":{"message":"not now","type":"server_error","param":null,"code":null}}`)
	})
	for _, body := range []string{
		`{"model":"m","input":[{"type":"item_reference","id":"msg_up"},{"role":"user","content":"x"}]}`,
		`{"model":"m","input":"x","conversation":"conv_up"}`,
		`{"model":"m","input":"x","conversation":{"id":"conv_up"}}`,
	} {
		requests = 0
		status, text := get(t, http.MethodPost, w.url+"/v1/responses", body)
		if status != http.StatusServiceUnavailable || !strings.Contains(text, "not now") || requests != 1 {
			t.Errorf("%s: %d %s, %d upstream requests", body, status, text, requests)
		}
	}
}

// A request reserves budget for its stored conversation: a second request is not admitted while
// the first one may use all of it.
func TestBudgetsReserveStoredConversation(t *testing.T) {
	t.Setenv("FIRST_KEY", "the-first-key-of-this-test")
	for _, how := range []string{"conversation", "item_reference"} {
		t.Run(how, func(t *testing.T) {
			model := &strictUpstream{}
			entered, release := make(chan bool, 2), make(chan bool)
			w := newServerWorld(t, "gateway:\n  keys: {first: {key_env: FIRST_KEY, budget: {tokens: 4000, per: day}}}\n  routes: {m: {to: anthropic/m}}\n", func(rw http.ResponseWriter, r *http.Request) {
				entered <- true
				<-release
				model.ServeHTTP(rw, r)
			})
			_, text := postAs(t, w, http.MethodPost, "/v1/conversations", "first", fmt.Sprintf(`{"items":[{"role":"user","content":%q}]}`, strings.Repeat("snowfall in a row ", 1000)))
			conversation := decodeJSON(t, strings.NewReader(text))["id"]
			_, text = postAs(t, w, http.MethodGet, fmt.Sprintf("/v1/conversations/%v/items", conversation), "first", "")
			more := map[string]string{
				"conversation":   fmt.Sprintf(`"conversation":%q,"input":"x"`, conversation),
				"item_reference": fmt.Sprintf(`"input":[{"type":"item_reference","id":%q}]`, decodeJSON(t, strings.NewReader(text))["first_id"]),
			}[how]
			ask := func() (int, string) {
				return postAs(t, w, http.MethodPost, "/v1/responses", "first", `{"model":"m","max_output_tokens":16,`+more+`}`)
			}
			first := make(chan int, 1)
			go func() {
				status, _ := ask()
				first <- status
			}()
			<-entered
			second := make(chan string, 1)
			go func() {
				status, text := ask()
				second <- fmt.Sprintf("%d %s", status, text)
			}()
			select {
			case got := <-second:
				if !strings.HasPrefix(got, "429 ") {
					t.Error(got)
				}
			case <-entered:
				t.Error("the second request was admitted")
			}
			close(release)
			if status := <-first; status != http.StatusOK {
				t.Errorf("the first request: %d", status)
			}
		})
	}
}

// The input is a text or a list of items. Anything else could hold a reference that the
// gateway does not check, so every route refuses it.
func TestB4_InputIsATextOrAList(t *testing.T) {
	withTwoKeys(t)
	for _, up := range []string{"responses/gpt", "anthropic/claude"} {
		model := &scriptedServer{responses: []string{responsesThinks}}
		w := newServerWorld(t, fmt.Sprintf("gateway:\n%s  routes: {m: {to: %q}}\n", twoKeys, up), model.ServeHTTP)
		for input, want := range map[string]string{
			`{"type":"item_reference","id":"fc_1"}`: "input: want a string or a list of items, got an object",
			`{"id":"fc_1"}`:                         "input: want a string or a list of items, got an object",
			`{"role":"user","content":"hi"}`:        "input: want a string or a list of items, got an object",
			`7`:                                     "input: want a string or a list of items, got a number",
			`true`:                                  "input: want a string or a list of items, got a boolean",
			`[[{"type":"item_reference","id":"fc_1"}]]`: "input[0]: want an object, got a list",
			`["fc_1"]`: "input[0]: want an object, got a string",
		} {
			for _, path := range []string{"/v1/responses", "/v1/responses/input_tokens", "/v1/responses/compact"} {
				status, text := postAs(t, w, http.MethodPost, path, "second", `{"model":"m","input":`+input+`}`)
				if status != http.StatusBadRequest || !strings.Contains(text, want) || !strings.Contains(text, `"param":"input"`) || len(model.requests) > 0 {
					t.Errorf("%s %s %s: %d %s\nrequests %q", up, path, input, status, text, model.requests)
					model.requests = nil
				}
			}
		}
	}
}

// A response that is part of a conversation names it and the model that the client asked
// for, also if the upstream speaks the Responses API.
func TestConversationIsPartOfEveryResponse(t *testing.T) {
	w := newWorld(t, `gateway: {routes: {assistant: {to: "responses/sim/echo"}, other: {to: "chat/sim/echo"}}}`+"\n")
	_, text := get(t, http.MethodPost, w.url+"/v1/conversations", "")
	id := fmt.Sprint(decodeJSON(t, strings.NewReader(text))["id"])
	for _, model := range []string{"assistant", "other"} {
		check := func(response map[string]any, where string) {
			conversation, _ := response["conversation"].(map[string]any)
			if conversation["id"] != id || response["model"] != model {
				t.Errorf("%s, %s: conversation %v, model %v", model, where, response["conversation"], response["model"])
			}
		}
		body := fmt.Sprintf(`{"model":%q,"input":"Hello.","conversation":%q`, model, id)
		status, text := get(t, http.MethodPost, w.url+"/v1/responses", body+"}")
		if status != http.StatusOK {
			t.Fatalf("%s: %d %s", model, status, text)
		}
		check(decodeJSON(t, strings.NewReader(text)), "whole")
		status, text = get(t, http.MethodPost, w.url+"/v1/responses", body+`,"stream":true}`)
		if status != http.StatusOK {
			t.Fatalf("%s: %d %s", model, status, text)
		}
		seen := 0
		for line := range strings.Lines(text) {
			data, ok := strings.CutPrefix(line, "data: {")
			if !ok {
				continue
			}
			event := decodeJSON(t, strings.NewReader("{"+data))
			if response, ok := event["response"].(map[string]any); ok {
				seen++
				check(response, fmt.Sprint(event["type"]))
			}
		}
		if seen < 2 || !strings.Contains(text, "response.completed") {
			t.Errorf("%s: %d events with the response:\n%s", model, seen, text)
		}
	}
	_, text = get(t, http.MethodGet, w.url+"/v1/conversations/"+id+"/items?order=asc&limit=100", "")
	if items := decodeJSON(t, strings.NewReader(text))["data"].([]any); len(items) != 8 {
		t.Errorf("%d items: %s", len(items), text)
	}
}

// The bytes after the last event of an upstream do not add the turn to the conversation again.
func TestConversationIsExtendedOncePerResponse(t *testing.T) {
	t.Setenv("SIM_KEY", "upstream-secret")
	ended := make(chan struct{})
	upstream := sim.Handler(sim.Config{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		whole := httptest.NewRecorder()
		upstream.ServeHTTP(whole, r)
		w.Header().Set("Content-Type", whole.Header().Get("Content-Type"))
		w.WriteHeader(whole.Code)
		_, _ = w.Write(whole.Body.Bytes())
		w.(http.Flusher).Flush()
		<-ended // the client has the end
		_, _ = io.WriteString(w, ": bye\n\n")
	}))
	t.Cleanup(s.Close)
	w := newWorldOf(t, s, configOf(s.URL)+`gateway: {routes: {assistant: {to: "responses/sim/echo"}}}`+"\n")
	_, text := get(t, http.MethodPost, w.url+"/v1/conversations", "")
	id := fmt.Sprint(decodeJSON(t, strings.NewReader(text))["id"])
	body := fmt.Sprintf(`{"model":"assistant","input":"Hello.","stream":true,"conversation":%q}`, id)
	resp, err := http.Post(w.url+"/v1/responses", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), `data: {"type":"response.completed"`) || strings.Contains(lines.Text(), "event: response.completed") {
			break
		}
	}
	close(ended)
	for lines.Scan() { // to the end
	}
	_, text = get(t, http.MethodGet, w.url+"/v1/conversations/"+id+"/items?order=asc&limit=100", "")
	if items := decodeJSON(t, strings.NewReader(text))["data"].([]any); len(items) != 2 {
		t.Errorf("%d items: %s", len(items), text)
	}
}
