package gateway_test

import (
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
	"github.com/dragoman-go/dragoman/dialect/bedrock"
	"github.com/dragoman-go/dragoman/gateway"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/codec/stream"
	"github.com/dragoman-go/dragoman/internal/serving"
)

// strictUpstream is a model server of any dialect. It keeps no state, refuses a tool result
// without its call, and calls a tool until it has a result.
type strictUpstream struct {
	mu   sync.Mutex
	saw  []string // the bodies of accepted requests
	says int      // texts so far
}

func (s *strictUpstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	codec := dialectOf(r)
	if strings.HasSuffix(r.URL.Path, "/responses/compact") {
		w.Header().Set("content-type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"error":{"message":"Invalid URL (POST /v1/responses/compact)","type":"invalid_request_error","param":null,"code":null}}`)
		return
	}
	if strings.HasPrefix(r.URL.Path, "/model/") {
		codec = bedrock.Codec{}
	}
	raw, _ := io.ReadAll(r.Body)
	var body any
	if err := json.Unmarshal(raw, &body); err != nil {
		s.refuse(w, codec, "invalid JSON")
		return
	}
	if why := orphanedResults(codec.Dialect(), body.(map[string]any)); why != "" {
		s.refuse(w, codec, why)
		return
	}
	s.mu.Lock()
	s.saw = append(s.saw, string(raw))
	s.says++
	resp := &dragoman.Response{ID: fmt.Sprintf("up_%d", s.says), Model: "m", Stop: dragoman.Stop{Reason: dragoman.StopEnd}, Usage: dragoman.Usage{Input: dragoman.Counted(1), Output: dragoman.Counted(1)}}
	text := fmt.Sprintf("Spoken words number %d.", s.says)
	s.mu.Unlock()
	out := dragoman.Message{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{&dragoman.Text{Text: text}}}
	if !strings.Contains(string(raw), "snowfall") {
		call := &dragoman.ToolCall{ID: "call_oslo0001", Name: "get_weather", Arguments: `{"city":"Oslo"}`}
		if codec.Dialect() == dialectname.Gemini {
			call.Signature = "c2lnbmF0dXJl"
		}
		out.Parts = append(out.Parts, call)
		resp.Stop.Reason = dragoman.StopToolCalls
	}
	resp.Output = []dragoman.Message{out}
	streams := strings.Contains(r.URL.Path, "tream") || strings.Contains(string(raw), `"stream":true`) ||
		codec.Dialect() == dialectname.Ollama && !strings.Contains(string(raw), `"stream":false`)
	if !streams {
		enc, err := codec.EncodeResponse(resp, dialect.EncodeOptions{Model: "m", Seed: text})
		if err != nil {
			s.refuse(w, codec, err.Error())
			return
		}
		w.Header().Set("content-type", "application/json")
		_, _ = w.Write(enc.Body)
		return
	}
	w.Header().Set("content-type", serving.StreamType(codec))
	enc := codec.NewStreamEncoder(dialect.EncodeOptions{Seed: text, Model: "m", StreamUsage: true})
	var events []byte
	for ev := range stream.EventsOf(resp, dragoman.Report{}) {
		events, _ = enc.Encode(events, ev)
	}
	events, _ = enc.Close(events)
	_, _ = w.Write(events)
}

func (s *strictUpstream) refuse(w http.ResponseWriter, codec dialect.Codec, why string) {
	status, body, _ := codec.EncodeError(&dragoman.APIError{Class: dragoman.ErrorBadRequest, Message: why})
	w.Header().Set("content-type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

func (s *strictUpstream) last() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.saw[len(s.saw)-1]
}

// orphanedResults describes tool results without a call in a request. It reads the wire itself,
// not with the codecs.
func orphanedResults(d dragoman.Dialect, body map[string]any) string {
	list := func(v any) []any { l, _ := v.([]any); return l }
	object := func(v any) map[string]any { m, _ := v.(map[string]any); return m }
	calls := map[string]bool{}
	call := func(id any) { calls[fmt.Sprint(id)] = true }
	result := func(id any) string {
		if !calls[fmt.Sprint(id)] {
			return fmt.Sprintf("no tool call found for the result of %v", id)
		}
		return ""
	}
	var why []string
	switch d {
	case dialectname.OpenAIResponses:
		if body["previous_response_id"] != nil || body["conversation"] != nil {
			return "this server keeps no state"
		}
		for _, v := range list(body["input"]) {
			switch item := object(v); item["type"] {
			case "function_call":
				call(item["call_id"])
			case "function_call_output":
				why = append(why, result(item["call_id"]))
			case "item_reference":
				return fmt.Sprintf("Item with id '%v' not found.", item["id"])
			}
		}
	case dialectname.Gemini:
		for _, v := range list(body["contents"]) {
			for _, p := range list(object(v)["parts"]) {
				if c := object(object(p)["functionCall"]); c != nil {
					call(c["name"])
				}
				if res := object(object(p)["functionResponse"]); res != nil {
					why = append(why, result(res["name"]))
				}
			}
		}
	default:
		for _, v := range list(body["messages"]) {
			m := object(v)
			for _, c := range list(m["tool_calls"]) {
				call(object(c)["id"])
				call(object(object(c)["function"])["name"]) // Ollama pairs by name
			}
			if m["role"] == "tool" {
				id := m["tool_call_id"]
				if d == dialectname.Ollama {
					id = m["tool_name"]
				}
				why = append(why, result(id))
			}
			for _, p := range list(m["content"]) {
				b := object(p)
				switch {
				case b["type"] == "tool_use":
					call(b["id"])
				case b["type"] == "tool_result":
					why = append(why, result(b["tool_use_id"]))
				case object(b["toolUse"]) != nil:
					call(object(b["toolUse"])["toolUseId"])
				case object(b["toolResult"]) != nil:
					why = append(why, result(object(b["toolResult"])["toolUseId"]))
				}
			}
		}
	}
	why = slices.DeleteFunc(why, func(w string) bool { return w == "" })
	return strings.Join(why, "; ")
}

// idsOf returns the ids of the output items of one type.
func idsOf(resp map[string]any, typ string) (ids []string) {
	output, _ := resp["output"].([]any)
	for _, v := range output {
		if item, _ := v.(map[string]any); item["type"] == typ {
			ids = append(ids, fmt.Sprint(item["id"]))
		}
	}
	return ids
}

// everyUpstream lists providers of every dialect; none of them stores state.
var everyUpstream = []string{"chat", "openai", "responses", "anthropic", "gemini", "ollama", "bedrock"}

const weatherTools = `"tools":[{"type":"function","name":"get_weather","parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}]`

// What the AI SDK sends by default.
func TestItemReferencesReachEveryUpstream(t *testing.T) {
	for _, up := range everyUpstream {
		for _, streams := range []bool{false, true} {
			t.Run(up+streamed(streams), func(t *testing.T) {
				model := &strictUpstream{}
				w := newServerWorld(t, fmt.Sprintf("gateway:\n  routes: {m: {to: %q}}\n", up+"/m"), model.ServeHTTP, unjudgedPassThrough("the fake upstream has no state"))
				ask := func(input string) map[string]any {
					t.Helper()
					body := fmt.Sprintf(`{"model":"m",%s,"stream":%v,"input":%s}`, weatherTools, streams, input)
					hr, err := http.Post(w.url+"/v1/responses", "application/json", strings.NewReader(body))
					if err != nil {
						t.Fatal(err)
					}
					defer hr.Body.Close()
					if losses := hr.Header.Get("X-Dragoman-Losses"); hr.StatusCode != http.StatusOK || losses != "" {
						text, _ := io.ReadAll(hr.Body)
						t.Fatalf("%d, losses %q: %s", hr.StatusCode, losses, text)
					}
					if streams {
						return finalResponse(t, hr.Body)
					}
					return decodeJSON(t, hr.Body)
				}
				const question = `{"role":"user","content":[{"type":"input_text","text":"Oslo, please."}]}`
				first := ask(`[` + question + `]`)
				message, call := idsOf(first, "message"), idsOf(first, "function_call")
				if len(message) != 1 || len(call) != 1 {
					t.Fatalf("output: %v", first["output"])
				}
				turn := fmt.Sprintf(`%s,{"type":"item_reference","id":%q},{"id":%q},{"type":"function_call_output","call_id":"call_oslo0001","output":"snowfall"}`, question, message[0], call[0])
				second := ask(`[` + turn + `]`)
				wantInOrder(t, model.last(), "Oslo, please.", "Spoken words number 1.", "get_weather", "snowfall")

				third := idsOf(second, "message")
				if len(third) != 1 {
					t.Fatalf("output: %v", second["output"])
				}
				ask(fmt.Sprintf(`[%s,{"type":null,"id":%q},{"role":"user","content":"Thanks."}]`, turn, third[0]))
				wantInOrder(t, model.last(), "Oslo, please.", "Spoken words number 1.", "get_weather", "snowfall", "Spoken words number 2.", "Thanks.")
			})
		}
	}
}

// finalResponse returns the response object of the event that ends a stream.
func finalResponse(t testing.TB, r io.Reader) map[string]any {
	t.Helper()
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	_, last, ok := strings.Cut(string(text), "event: response.completed\ndata: ")
	if !ok {
		t.Fatalf("the stream has no end: %s", text)
	}
	last, _, _ = strings.Cut(last, "\n")
	return decodeJSON(t, strings.NewReader(last))["response"].(map[string]any)
}

func wantInOrder(t testing.TB, text string, words ...string) {
	t.Helper()
	rest := text
	for _, word := range words {
		_, after, ok := strings.Cut(rest, word)
		if !ok {
			t.Errorf("the model did not see %q at its place: %s", word, text)
			return
		}
		rest = after
	}
}

func TestUnknownReferencesAreErrorsThatNameThem(t *testing.T) {
	t.Setenv("FIRST_KEY", "the-first-key-of-this-test")
	t.Setenv("SECOND_KEY", "the-second-key-of-this-test")
	const keys = "  keys: {first: {key_env: FIRST_KEY}, second: {key_env: SECOND_KEY}}\n"
	for _, up := range everyUpstream {
		t.Run(up, func(t *testing.T) {
			model := &strictUpstream{}
			w := newServerWorld(t, fmt.Sprintf("gateway:\n%s  routes: {m: {to: %q}}\n", keys, up+"/m"), model.ServeHTTP, unjudgedPassThrough("the fake upstream has no state"))
			post := func(key, body string) (int, string) {
				return get(t, http.MethodPost, w.url+"/v1/responses", body, "authorization", "Bearer the-"+key+"-key-of-this-test")
			}
			status, text := post("first", `{"model":"m","input":"Oslo"}`)
			if status != http.StatusOK {
				t.Fatalf("%d %s", status, text)
			}
			theirs := idsOf(decodeJSON(t, strings.NewReader(text)), "message")[0]
			_, text = post("second", `{"model":"m","input":"Oslo","store":false}`)
			unstored := idsOf(decodeJSON(t, strings.NewReader(text)), "message")[0]
			requests := len(model.saw)
			for _, tc := range []struct{ about, more, want string }{
				{"an item that never was", `"input":[{"type":"item_reference","id":"msg_never"},{"role":"user","content":"x"}]`, "msg_never"},
				{"an item that never was, without a type", `"input":[{"id":"fc_never"}]`, "fc_never"},
				{"another key's item", fmt.Sprintf(`"input":[{"type":"item_reference","id":%q}]`, theirs), theirs},
				{"an item that was not stored", fmt.Sprintf(`"input":[{"type":"item_reference","id":%q}]`, unstored), unstored},
				{"a reference without an id", `"input":[{"type":"item_reference"}]`, "item_reference"},
				{"a reference that reads in two ways", fmt.Sprintf(`"input":[{"type":"item_reference","id":%q,"Id":%q}]`, "msg_a", theirs), "duplicate field"},
				{"a field that is there twice", fmt.Sprintf(`"input":[],"Input":[{"type":"item_reference","id":%q}]`, theirs), "Input"},
				{"an unknown conversation", `"input":"x","conversation":"conv_never"`, "conv_never"},
				{"an unknown conversation, as an object", `"input":"x","conversation":{"id":"conv_never"}`, "conv_never"},
				{"a response that never was", `"input":"x","previous_response_id":"resp_never"`, "resp_never"},
			} {
				for _, stream := range []string{"false", "true"} {
					status, text := post("second", fmt.Sprintf(`{"model":"m","stream":%s,%s}`, stream, tc.more))
					if status != http.StatusNotFound && status != http.StatusBadRequest || !strings.Contains(text, tc.want) {
						t.Errorf("%s, stream %s: %d %s", tc.about, stream, status, text)
					}
				}
			}
			if len(model.saw) != requests {
				t.Errorf("the upstream was called: %s", model.last())
			}
			if status, text := post("first", fmt.Sprintf(`{"model":"m","input":[{"type":"item_reference","id":%q},{"type":"function_call_output","call_id":"x","output":"snowfall"}]}`, theirs)); status == http.StatusNotFound {
				t.Errorf("the key's own item: %d %s", status, text)
			}
		})
	}
}

// A call that the model sees twice has only one result: the other one would be made up.
func TestG7_ReferenceToAnItemInContextIsRefused(t *testing.T) {
	for _, up := range everyUpstream {
		t.Run(up, func(t *testing.T) {
			model := &strictUpstream{}
			w := newServerWorld(t, fmt.Sprintf("gateway:\n  routes: {m: {to: %q}}\n", up+"/m"), model.ServeHTTP, unjudgedPassThrough("the fake upstream has no state"))
			post := func(path, body string) (int, string) { return get(t, http.MethodPost, w.url+path, body) }
			ask := func(more string) map[string]any {
				t.Helper()
				status, text := post("/v1/responses", fmt.Sprintf(`{"model":"m",%s,%s}`, weatherTools, more))
				if status != http.StatusOK {
					t.Fatalf("%d %s", status, text)
				}
				return decodeJSON(t, strings.NewReader(text))
			}
			_, text := post("/v1/conversations", `{}`)
			conversation := decodeJSON(t, strings.NewReader(text))["id"]
			first := ask(`"input":"Oslo"`)
			told := ask(fmt.Sprintf(`"conversation":%q,"input":"Oslo"`, conversation))
			const result = `{"type":"function_call_output","call_id":"call_oslo0001","output":"snowfall"}`
			second := ask(fmt.Sprintf(`"previous_response_id":%q,"input":[%s]`, first["id"], result))
			call := idsOf(first, "function_call")[0]
			requests := len(model.saw)
			for about, more := range map[string]string{
				"of the response before":   fmt.Sprintf(`"previous_response_id":%q,"input":[{"type":"item_reference","id":%q},%s]`, first["id"], call, result),
				"of a response before it":  fmt.Sprintf(`"previous_response_id":%q,"input":[{"type":"item_reference","id":%q},%s]`, second["id"], call, result),
				"of the conversation":      fmt.Sprintf(`"conversation":%q,"input":[{"type":"item_reference","id":%q},%s]`, conversation, idsOf(told, "function_call")[0], result),
				"that is referred to, too": fmt.Sprintf(`"input":[{"type":"item_reference","id":%[1]q},{"id":%[1]q},%[2]s]`, call, result),
				"that is there itself":     fmt.Sprintf(`"input":[{"type":"function_call","id":%[1]q,"call_id":"call_oslo0001","name":"get_weather","arguments":"{}"},{"id":%[1]q},%[2]s]`, call, result),
			} {
				if status, text := post("/v1/responses", fmt.Sprintf(`{"model":"m",%s,%s}`, weatherTools, more)); status != http.StatusBadRequest || !strings.Contains(text, "Duplicate item found with id") {
					t.Errorf("an item %s: %d %s", about, status, text)
				}
			}
			if len(model.saw) != requests {
				t.Errorf("the upstream was called: %s", model.last())
			}
		})
	}
}

func TestInputItemsOfStoredResponses(t *testing.T) {
	w := newWorld(t, "")
	first := postResponses(t, w, `{"model":"anthropic/sim/echo","input":"One."}`)
	second := postResponses(t, w, fmt.Sprintf(`{"model":"anthropic/sim/echo","input":[{"role":"user","content":"Two."},{"role":"user","content":[{"type":"input_text","text":"Three."}]}],"previous_response_id":%q}`, first["id"]))
	list := func(query string) (status int, page map[string]any, texts []string) {
		t.Helper()
		status, text := get(t, http.MethodGet, fmt.Sprintf("%s/v1/responses/%v/input_items%s", w.url, second["id"], query), "")
		page = decodeJSON(t, strings.NewReader(text))
		data, _ := page["data"].([]any)
		for _, v := range data {
			item := v.(map[string]any)
			part := item["content"].([]any)[0].(map[string]any)
			if item["id"] == nil || item["type"] != "message" || item["status"] != "completed" {
				t.Errorf("item: %v", item)
			}
			texts = append(texts, fmt.Sprint(part["text"]))
		}
		return status, page, texts
	}
	said := first["output"].([]any)[0].(map[string]any)["content"].([]any)[0].(map[string]any)["text"].(string)
	all := []string{"One.", said, "Two.", "Three."}
	status, page, texts := list("?order=asc")
	if status != http.StatusOK || page["object"] != "list" || page["has_more"] != false || !slices.Equal(texts, all) {
		t.Errorf("%d %v: %q, want %q", status, page, texts, all)
	}
	if _, page, texts := list("?order=asc&limit=2"); page["has_more"] != true || !slices.Equal(texts, all[:2]) {
		t.Errorf("the first page: %v", page)
	} else if _, page, texts := list(fmt.Sprintf("?order=asc&limit=2&after=%v", page["last_id"])); page["has_more"] != false || !slices.Equal(texts, all[2:]) {
		t.Errorf("the second page: %v", page)
	}
	slices.Reverse(all)
	if _, _, texts := list(""); !slices.Equal(texts, all) {
		t.Errorf("newest first: %q", texts)
	}
	for _, query := range []string{"?limit=0", "?limit=101", "?limit=x", "?order=up", "?after=msg_never"} {
		if status, page, _ := list(query); status != http.StatusBadRequest {
			t.Errorf("%s: %d %v", query, status, page)
		}
	}
	// Items that are listed can be referred to.
	_, page, _ = list("?order=asc&limit=1")
	again := postResponses(t, w, fmt.Sprintf(`{"model":"anthropic/sim/echo","input":[{"type":"item_reference","id":%q}]}`, page["first_id"]))
	if again["error"] != nil || again["status"] != "completed" {
		t.Errorf("%v", again)
	}
	if status, text := get(t, http.MethodGet, w.url+"/v1/responses/resp_never/input_items", ""); status != http.StatusNotFound {
		t.Errorf("%d %s", status, text)
	}
}

func TestStoredResponseEqualsTheStreamedOne(t *testing.T) {
	w := newWorld(t, "")
	streamed := postResponses(t, w, `{"model":"anthropic/sim/echo","input":"Hello.","stream":true}`)
	_, text := get(t, http.MethodGet, fmt.Sprintf("%s/v1/responses/%v", w.url, streamed["id"]), "")
	want, _ := json.Marshal(streamed)
	got, _ := json.Marshal(decodeJSON(t, strings.NewReader(text)))
	if string(got) != string(want) {
		t.Errorf("stored   %s\nstreamed %s", got, want)
	}
}

func TestStoredItemsExpireUnlessTheyAreUsed(t *testing.T) {
	now := time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)
	g, err := gateway.New(nil, gateway.Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(withJudge(t, g))
	defer server.Close()
	w := &world{gateway: g, url: server.URL}
	id := idsOf(postResponses(t, w, `{"model":"sim/echo","input":"Hello."}`), "message")[0]
	refer := func() any {
		return postResponses(t, w, fmt.Sprintf(`{"model":"sim/echo","input":[{"type":"item_reference","id":%q},{"role":"user","content":"And?"}]}`, id))["error"]
	}
	for range 3 { // each use gives it another day
		now = now.Add(24 * time.Hour * 3 / 4)
		if err := refer(); err != nil {
			t.Fatalf("after %v: %v", now, err)
		}
	}
	now = now.Add(24*time.Hour + time.Second)
	if e, _ := refer().(map[string]any); !strings.Contains(fmt.Sprint(e["message"]), id) {
		t.Errorf("an expired item: %v", e)
	}
}

// A reference to reasoning restores what its model requires.
func TestReasoningReferencesKeepTheSignature(t *testing.T) {
	for _, streams := range []bool{false, true} {
		model := &scriptedServer{responses: []string{anthropicThinks}}
		if streams {
			model.responses = []string{asStream(t, anthropic.Codec{}, anthropicThinks)}
		}
		w := newServerWorld(t, "gateway:\n  routes: {m: {to: anthropic/claude}}\n", model.ServeHTTP)
		ask := func(input string) map[string]any {
			return postResponses(t, w, fmt.Sprintf(`{"model":"m",%s,"stream":%v,"input":%s}`, weatherTools, streams, input))
		}
		first := ask(`[{"role":"user","content":"The weather in Oslo?"}]`)
		thinking, call := idsOf(first, "reasoning"), idsOf(first, "function_call")
		if len(thinking) != 1 || len(call) != 1 {
			t.Fatalf("output: %v", first["output"])
		}
		for _, refs := range []string{
			fmt.Sprintf(`{"type":"item_reference","id":%q},{"type":"item_reference","id":%q}`, thinking[0], call[0]),
			fmt.Sprintf(`{"type":"item_reference","id":%q}`, call[0]), // a client that leaves reasoning out
		} {
			ask(`[{"role":"user","content":"The weather in Oslo?"},` + refs + `,{"type":"function_call_output","call_id":"toolu_1","output":"snow"}]`)
			sent := model.requests[len(model.requests)-1]
			wantInOrder(t, sent, "The weather in Oslo?", "The user wants the weather.", "toolu_1", "snow")
			if n := strings.Count(sent, "signature-of-the-thinking"); n != 1 {
				t.Errorf("stream %v: the signature is there %d times: %s", streams, n, sent)
			}
		}
	}
}

// asStream returns a complete response as a stream of its dialect.
func asStream(t testing.TB, codec dialect.Codec, body string) string {
	t.Helper()
	resp, _, err := codec.DecodeResponse([]byte(body), dialect.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	enc := codec.NewStreamEncoder(dialect.EncodeOptions{Seed: "s"})
	var out []byte
	for ev := range stream.EventsOf(resp, dragoman.Report{}) {
		out, _ = enc.Encode(out, ev)
	}
	out, _ = enc.Close(out)
	return string(out)
}

// Items of one upstream may be referred to on another: without their ids, which are unknown there,
// and without reasoning of another model.
func TestItemsMoveToAResponsesUpstreamWithoutTheirIDs(t *testing.T) {
	model := &scriptedServer{responses: []string{anthropicThinks, responsesThinks}}
	w := newServerWorld(t, "gateway:\n  routes: {m: {to: anthropic/claude}, n: {to: responses/gpt}}\n", model.ServeHTTP)
	first := postResponses(t, w, `{"model":"m",`+weatherTools+`,"input":"The weather in Oslo?"}`)
	thinking, call := idsOf(first, "reasoning")[0], idsOf(first, "function_call")[0]
	body := fmt.Sprintf(`{"model":"n",%s,"input":[{"role":"user","content":"The weather in Oslo?"},{"type":"item_reference","id":%q},{"id":%q},{"type":"function_call_output","call_id":"toolu_1","output":"snow"}]}`, weatherTools, thinking, call)
	resp, err := http.Post(w.url+"/v1/responses", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if losses := resp.Header.Get("X-Dragoman-Losses"); resp.StatusCode != http.StatusOK || losses != "1; dropped /input/1" {
		text, _ := io.ReadAll(resp.Body)
		t.Errorf("%d, losses %q: %s", resp.StatusCode, losses, text)
	}
	sent := model.requests[len(model.requests)-1]
	wantInOrder(t, sent, "The weather in Oslo?", `"function_call"`, "toolu_1", "snow")
	for _, leak := range []string{thinking, call, "The user wants", "item_reference"} {
		if strings.Contains(sent, leak) {
			t.Errorf("%q was sent: %s", leak, sent)
		}
	}
}
