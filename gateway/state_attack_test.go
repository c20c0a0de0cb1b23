package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
)

// A Responses upstream looks up more than item references: reasoning without content, and
// images that are named by their id. Every spelling of these is checked.
func TestLookupsOfAnotherKeysItemsAreRefused(t *testing.T) {
	withTwoKeys(t)
	model := &scripted{answers: []string{strings.Replace(responsesThinks, `"output":[`, `"output":[{"type":"image_generation_call","id":"ig_1","status":"completed","result":"aGk="},`, 1)}}
	w := worldOf(t, "gateway:\n"+twoKeys+"  routes: {m: {to: responses/gpt}}\n", model.ServeHTTP, passesOn("the fake upstream has no state"))
	post := func(key, more string) (int, string) {
		return keyed(t, w, http.MethodPost, "/v1/responses", key, `{"model":"m",`+more+`}`)
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
	} {
		asked := len(model.asked)
		if status, text := post("second", `"input":[`+item+`,{"role":"user","content":"x"}]`); status/100 != 4 || len(model.asked) != asked {
			t.Errorf("%s: %d %s", item, status, text)
		}
		status, text := keyed(t, w, http.MethodPost, "/v1/conversations", "second", `{"items":[`+item+`]}`)
		if status/100 == 4 {
			continue
		}
		id := decodeJSON(t, strings.NewReader(text))["id"]
		if status, text := post("second", fmt.Sprintf(`"conversation":%q,"input":"x"`, id)); status/100 != 4 || len(model.asked) != asked {
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
	w := worldOf(t, "gateway:\n"+twoKeys+"  routes: {m: {to: responses/gpt}}\n", func(rw http.ResponseWriter, r *http.Request) {
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
	}, passesOn("the fake upstream has no state"))
	reference := `{"model":"m","input":[{"type":"item_reference","id":"fc_1"},{"role":"user","content":"x"}]}`
	refused := func(after string) {
		t.Helper()
		if status, text := keyed(t, w, http.MethodPost, "/v1/responses", "second", reference); status != http.StatusNotFound {
			t.Errorf("after %s: %d %s", after, status, text)
		}
		if status, text := keyed(t, w, http.MethodGet, "/v1/responses/resp_1", "second", ""); status != http.StatusNotFound {
			t.Errorf("the response after %s: %d %s", after, status, text)
		}
	}
	ok := func(key, method, path, body string) {
		t.Helper()
		if status, text := keyed(t, w, method, path, key, body); status != http.StatusOK {
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

// A request may refer to one stored item many times. What that makes of it is bounded
// before it is built.
func TestRepeatedReferencesAreBoundedBeforeTheyAreExpanded(t *testing.T) {
	withTwoKeys(t)
	model := &strictUpstream{}
	w := worldOf(t, "gateway:\n"+twoKeys+"  limits: {body_bytes: 1048576, buffered_bytes: 8388608, buffered_bytes_per_key: 4194304}\n  routes: {m: {to: anthropic/m}}\n", model.ServeHTTP)
	_, text := keyed(t, w, http.MethodPost, "/v1/conversations", "first", `{"items":[{"role":"user","content":"`+strings.Repeat("x", 500<<10)+`"}]}`)
	at := fmt.Sprintf("/v1/conversations/%v/items", decodeJSON(t, strings.NewReader(text))["id"])
	_, text = keyed(t, w, http.MethodGet, at, "first", "")
	reference := fmt.Sprintf(`{"type":"item_reference","id":%q}`, decodeJSON(t, strings.NewReader(text))["first_id"])
	for _, path := range []string{"/v1/responses", "/v1/responses/input_tokens"} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		status, text := keyed(t, w, http.MethodPost, path, "first", `{"model":"m","input":[`+strings.Repeat(reference+",", 400)+reference+`]}`)
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; status != http.StatusTooManyRequests || used > 64<<20 || len(model.saw) > 0 {
			t.Errorf("%s: %d %.200s, %d bytes allocated", path, status, text, used)
		}
	}
	if status, text := keyed(t, w, http.MethodPost, "/v1/responses", "first", `{"model":"m","input":[`+reference+`]}`); status != http.StatusOK {
		t.Errorf("one reference: %d %.200s", status, text)
	}
}

// Items of an input may bring tools, and those may name models.
func TestG3_ToolsWithinAnInputNameNoOtherModel(t *testing.T) {
	asked := 0
	w := restricted(t, "", func(rw http.ResponseWriter, r *http.Request) {
		asked++
		hello(rw, r)
	})
	for item, want := range map[string]int{
		`{"type":"additional_tools","role":"developer","tools":[{"type":"image_generation","model":"dear"}]}`:                                                             403,
		`{"type":"additional_tools","role":"developer","t\u006fols":[{"type":"namespace","tools":[{"model":"dear"}]}]}`:                                                   403,
		`{"type":"additional_tools","role":"developer","tools":[{"type":"function","name":"f","parameters":{"type":"object","properties":{"model":{"type":"string"}}}}]}`: 200,
		`{"role":"user","content":"{\"tools\":[{\"model\":\"dear\"}]}"}`:                                                                                                  200,
	} {
		before := asked
		status, text := get(t, http.MethodPost, w.url+"/v1/responses", `{"model":"responses","input":[`+item+`,{"role":"user","content":"hi"}]}`, "authorization", "Bearer "+teamKey)
		if status != want || want == http.StatusForbidden && (asked != before || !strings.Contains(text, "input.tools")) {
			t.Errorf("%s: %d %s", item, status, text)
		}
		status, text = get(t, http.MethodPost, w.url+"/v1/conversations", `{"items":[`+item+`]}`, "authorization", "Bearer "+teamKey)
		if status != want {
			t.Errorf("%s in a conversation: %d %s", item, status, text)
		}
	}
}
