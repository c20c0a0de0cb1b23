package gateway_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/gateway"
	"github.com/dragoman-go/dragoman/internal/storage/storekit"
	"github.com/dragoman-go/dragoman/session"
)

// A Responses upstream looks up more than item references: reasoning without content, and
// images that are named by their id. Every spelling of these is checked.
func TestLookupsOfAnotherKeysItemsAreRefused(t *testing.T) {
	withTwoKeys(t)
	model := &scriptedServer{responses: []string{strings.Replace(responsesThinks, `"output":[`, `"output":[{"type":"image_generation_call","id":"ig_1","status":"completed","result":"aGk="},`, 1)}}
	w := newServerWorld(t, "gateway:\n"+twoKeys+"  routes: {m: {to: responses/gpt}}\n", model.ServeHTTP, unjudgedPassThrough("the fake upstream has no state"))
	post := func(key, more string) (int, string) {
		return postAs(t, w, http.MethodPost, "/v1/responses", key, `{"model":"m",`+more+`}`)
	}
	if status, text := post("first", `"input":"hi"`); status != http.StatusOK {
		t.Fatalf("%d %s", status, text)
	}
	for _, item := range []string{
		`{"type":"reasoning","id":"rs_1","summary":[],"content":[ ]}`,
		`{"type":"reasoning","id":"rs_1","summary":[],"content": null }`,
		`{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"x","encrypted_content":null}`,
		`{"type":"reasoning","id":"rs_1","summary":[],"content":[{}],"content":[]}`,
		`{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"x","Encrypted_Content":null}`,
		`{"type":"image_generation_call","id":"ig_1"}`,
		`{"type":"image_generation_call","id":"ig_1","status":"completed","result":null}`,
		`{"type":"image_generation_call","id":"ig_1","content":"x","encrypted_content":"x"}`, // fields of another type
		`{"type":"reasoning","id":"rs_1","summary":[],"result":"x"}`,
	} {
		requests := len(model.requests)
		if status, text := post("second", `"input":[`+item+`,{"role":"user","content":"x"}]`); status/100 != 4 || len(model.requests) != requests {
			t.Errorf("%s: %d %s", item, status, text)
		}
		status, text := postAs(t, w, http.MethodPost, "/v1/conversations", "second", `{"items":[`+item+`]}`)
		if status/100 == 4 {
			continue
		}
		id := decodeJSON(t, strings.NewReader(text))["id"]
		if status, text := post("second", fmt.Sprintf(`"conversation":%q,"input":"x"`, id)); status/100 != 4 || len(model.requests) != requests {
			t.Errorf("%s in a conversation: %d %s", item, status, text)
		}
	}
	for _, more := range []string{
		`"input":[{"type":"image_generation_call","id":"ig_1"},{"role":"user","content":"x"}]`,
		`"input":[{"type":"reasoning","id":"rs_1","summary":[],"content":[ ]},{"role":"user","content":"x"}]`,
	} {
		if status, text := post("first", more); status != http.StatusOK {
			t.Errorf("its own key: %s: %d %s", more, status, text)
		}
	}
}

// An upstream repeats ids that the client sent, in compactions and lists of input items.
// That does not make another key's item the client's own.
func TestRepeatedIDsGrantNothing(t *testing.T) {
	withTwoKeys(t)
	const message = `{"type":"message","id":"fc_1","role":"user","content":[{"type":"input_text","text":"x"}]},{"type":"message","id":"resp_1","role":"user","content":[{"type":"input_text","text":"y"}]}`
	w := newServerWorld(t, "gateway:\n"+twoKeys+"  routes: {m: {to: responses/gpt}}\n", func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		rw.Header().Set("content-type", "application/json")
		switch {
		case strings.HasSuffix(r.URL.Path, "/compact"):
			_, _ = io.WriteString(rw, `{"id":"resp_c","object":"response.compaction","created_at":1,"output":[`+message+`,{"type":"compaction","id":"cmp_1","encrypted_content":"x"}],"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}}`)
		case strings.HasSuffix(r.URL.Path, "/input_items"):
			_, _ = io.WriteString(rw, `{"object":"list","data":[`+message+`],"first_id":"fc_1","last_id":"fc_1","has_more":false}`)
		case strings.Contains(string(body), "second"):
			_, _ = io.WriteString(rw, strings.NewReplacer("resp_1", "resp_2", "fc_1", "fc_2", "rs_1", "rs_2").Replace(responsesThinks))
		default:
			_, _ = io.WriteString(rw, responsesThinks)
		}
	}, unjudgedPassThrough("the fake upstream has no state"))
	reference := `{"model":"m","input":[{"type":"item_reference","id":"fc_1"},{"role":"user","content":"x"}]}`
	refused := func(after string) {
		t.Helper()
		if status, text := postAs(t, w, http.MethodPost, "/v1/responses", "second", reference); status != http.StatusNotFound {
			t.Errorf("after %s: %d %s", after, status, text)
		}
		if status, text := postAs(t, w, http.MethodGet, "/v1/responses/resp_1", "second", ""); status != http.StatusNotFound {
			t.Errorf("the response after %s: %d %s", after, status, text)
		}
	}
	ok := func(key, method, path, body string) {
		t.Helper()
		if status, text := postAs(t, w, method, path, key, body); status != http.StatusOK {
			t.Fatalf("%s %s: %d %s", method, path, status, text)
		}
	}
	ok("first", http.MethodPost, "/v1/responses", `{"model":"m","input":"hi"}`)
	refused("the first key's response")
	ok("second", http.MethodPost, "/v1/responses/compact", `{"model":"m","input":[`+message+`]}`)
	refused("a compaction")
	ok("second", http.MethodPost, "/v1/responses", `{"model":"m","instructions":"second","input":[`+message+`]}`)
	ok("second", http.MethodGet, "/v1/responses/resp_2/input_items", "")
	refused("a list of input items")
	ok("first", http.MethodPost, "/v1/responses", reference)
}

// A short request may refer to many long items. What that makes of it is bounded before it
// is built. One item that is referred to many times is refused.
func TestReferencesAreBoundedBeforeExpansion(t *testing.T) {
	withTwoKeys(t)
	model := &strictUpstream{}
	w := newServerWorld(t, "gateway:\n"+twoKeys+"  limits: {body_bytes: 1048576, buffered_bytes: 8388608, buffered_bytes_per_key: 4194304}\n  routes: {m: {to: anthropic/m}}\n", model.ServeHTTP)
	var references []string
	for i := range 5 {
		_, text := postAs(t, w, http.MethodPost, "/v1/conversations", "first", fmt.Sprintf(`{"items":[{"role":"user","content":"%d%s"}]}`, i, strings.Repeat("x", 500<<10)))
		at := fmt.Sprintf("/v1/conversations/%v/items", decodeJSON(t, strings.NewReader(text))["id"])
		_, text = postAs(t, w, http.MethodGet, at, "first", "")
		references = append(references, fmt.Sprintf(`{"type":"item_reference","id":%q}`, decodeJSON(t, strings.NewReader(text))["first_id"]))
	}
	for _, path := range []string{"/v1/responses", "/v1/responses/input_tokens"} {
		for want, input := range map[int]string{
			http.StatusTooManyRequests: strings.Join(references, ","),
			http.StatusBadRequest:      strings.Repeat(references[0]+",", 400) + references[0],
		} {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			status, text := postAs(t, w, http.MethodPost, path, "first", `{"model":"m","input":[`+input+`]}`)
			runtime.ReadMemStats(&after)
			if used := after.TotalAlloc - before.TotalAlloc; status != want || used > 64<<20 || len(model.saw) > 0 {
				t.Errorf("%s: %d %.200s, %d bytes allocated", path, status, text, used)
			}
		}
	}
	if status, text := postAs(t, w, http.MethodPost, "/v1/responses", "first", `{"model":"m","input":[`+references[0]+`]}`); status != http.StatusOK {
		t.Errorf("one reference: %d %.200s", status, text)
	}
}

// watchedNotes calls a function before each value that is read.
type watchedNotes struct {
	session.Notes
	read func()
}

func (n *watchedNotes) Get(ctx context.Context, key string) ([]byte, bool, error) {
	n.read()
	return n.Notes.Get(ctx, key)
}

// conversationWith creates a conversation with a message of some bytes and a short one, and
// returns a reference to the short one.
func conversationWith(t *testing.T, url string, size int) (reference string) {
	t.Helper()
	_, text := get(t, http.MethodPost, url+"/v1/conversations", `{"items":[{"role":"user","content":"`+strings.Repeat("x", size)+`"},{"role":"user","content":"short"}]}`, "authorization", "Bearer "+teamKey)
	at := fmt.Sprintf("%s/v1/conversations/%v/items?order=desc&limit=1", url, decodeJSON(t, strings.NewReader(text))["id"])
	_, text = get(t, http.MethodGet, at, "", "authorization", "Bearer "+teamKey)
	return fmt.Sprintf(`{"type":"item_reference","id":%q}`, decodeJSON(t, strings.NewReader(text))["first_id"])
}

// A request may refer to short items of many long responses. It holds one of these at a
// time.
func TestReferencedResponsesAreLoadedOneAtATime(t *testing.T) {
	const size, responses = 900 << 10, 30
	notes := &watchedNotes{Notes: &storekit.Notes{}, read: func() {}}
	g, err := gateway.New(nil, gateway.Options{Notes: notes})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(g)
	t.Cleanup(server.Close)
	references := make([]string, responses)
	for i := range references {
		references[i] = conversationWith(t, server.URL, size)
	}
	heap := func() int {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	before, most := heap(), 0
	notes.read = func() { most = max(most, heap()-before) }
	status, text := get(t, http.MethodPost, server.URL+"/v1/responses", `{"model":"sim/echo","store":false,"input":[`+strings.Join(references, ",")+`]}`)
	if status != http.StatusOK || most > 8*size {
		t.Errorf("%d %.200s, at most %d bytes held", status, text, most)
	}
}

func TestReferencedResponsesCountTowardTheBufferedBytes(t *testing.T) {
	t.Setenv("TEAM_KEY", teamKey)
	model := &strictUpstream{}
	w := newServerWorld(t, "gateway:\n  keys: {team: {key_env: TEAM_KEY}}\n  limits: {body_bytes: 1000000, buffered_bytes: 8388608, buffered_bytes_per_key: 1100000}\n  routes: {m: {to: anthropic/m}}\n", model.ServeHTTP)
	reference := conversationWith(t, w.url, 900_000)
	for more, want := range map[int]int{0: http.StatusOK, 250_000: http.StatusTooManyRequests} {
		body := `{"model":"m","input":[` + reference + `],"metadata":{"x":"` + strings.Repeat("y", more) + `"}}`
		if status, text := get(t, http.MethodPost, w.url+"/v1/responses", body, "authorization", "Bearer "+teamKey); status != want {
			t.Errorf("%d bytes more: %d %.200s", more, status, text)
		}
	}
	if len(model.saw) != 1 {
		t.Errorf("the upstream got %d requests", len(model.saw))
	}
}

// Stored responses are read from a database. Looking them up counts toward the rate of
// the key, in whatever way.
func TestG3_StoredRetrievalCountsAsARequest(t *testing.T) {
	t.Setenv("TEAM_KEY", teamKey)
	for _, call := range []string{"GET /v1/responses/%s", "GET /v1/responses/%s/input_items", "GET /v1/responses/resp_unknown", "GET /v1/responses/resp_unknown/input_items", "POST /v1/responses/%s/cancel"} {
		w := newServerWorld(t, "gateway:\n  keys: {team: {key_env: TEAM_KEY, requests_per_minute: 3}}\n  routes: {m: {to: anthropic/m}}\n", (&strictUpstream{}).ServeHTTP)
		ask := func(method, path, body string) (int, string) {
			return get(t, method, w.url+path, body, "authorization", "Bearer "+teamKey)
		}
		status, text := ask(http.MethodPost, "/v1/responses", `{"model":"m","input":"hi"}`)
		if status != http.StatusOK {
			t.Fatalf("%d %s", status, text)
		}
		method, path, _ := strings.Cut(call, " ")
		path = strings.Replace(path, "%s", fmt.Sprint(decodeJSON(t, strings.NewReader(text))["id"]), 1)
		for i := range 3 {
			if status, text := ask(method, path, ""); (status == http.StatusTooManyRequests) != (i == 2) {
				t.Errorf("%s, request %d: %d %s", call, i+1, status, text)
			}
		}
	}
}

// Items of an input may bring tools, and those may name models.
func TestG3_InputToolsCannotReachAnotherModel(t *testing.T) {
	requests := 0
	w := restricted(t, "", func(rw http.ResponseWriter, r *http.Request) {
		requests++
		hello(rw, r)
	})
	for item, want := range map[string]int{
		`{"type":"additional_tools","role":"developer","tools":[{"type":"image_generation","model":"dear"}]}`:                                                             403,
		`{"type":"additional_tools","role":"developer","t\u006fols":[{"type":"namespace","tools":[{"model":"dear"}]}]}`:                                                   403,
		`{"type":"additional_tools","role":"developer","tools":[{"type":"function","name":"f","parameters":{"type":"object","properties":{"model":{"type":"string"}}}}]}`: 200,
		`{"role":"user","content":"{\"tools\":[{\"model\":\"dear\"}]}"}`:                                                                                                  200,
	} {
		before := requests
		status, text := get(t, http.MethodPost, w.url+"/v1/responses", `{"model":"responses","input":[`+item+`,{"role":"user","content":"hi"}]}`, "authorization", "Bearer "+teamKey)
		if status != want || want == http.StatusForbidden && (requests != before || !strings.Contains(text, "input.tools")) {
			t.Errorf("%s: %d %s", item, status, text)
		}
		status, text = get(t, http.MethodPost, w.url+"/v1/conversations", `{"items":[`+item+`]}`, "authorization", "Bearer "+teamKey)
		if status != want {
			t.Errorf("%s in a conversation: %d %s", item, status, text)
		}
	}
}
