package sim_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/dragoman-go/dragoman/sim"
)

// responsesClient calls the Responses API of a simulator.
type responsesClient struct {
	t   *testing.T
	url string
}

func newResponsesClient(t *testing.T) responsesClient {
	t.Helper()
	return responsesClient{t, serve(t, sim.Config{}).URL + "/v1"}
}

type object = map[string]any

// call sends a request and returns the status and the JSON object of the reply: the whole
// body, or the response of the event that ends a stream.
func (c responsesClient) call(method, path, body string) (int, object) {
	c.t.Helper()
	status, text, err := send(c.t.Context(), method, c.url+path, body)
	if err != nil {
		c.t.Errorf("%s %s: %v", method, path, err)
		return 0, nil
	}
	if _, event, streamed := strings.Cut(text, "event: response.completed\ndata: "); streamed {
		var e struct{ Response object }
		if err := json.Unmarshal([]byte(strings.Split(event, "\n")[0]), &e); err != nil {
			c.t.Errorf("%v: %s", err, event)
		}
		return status, e.Response
	}
	var out object
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		c.t.Errorf("%s %s: %d %s: %v", method, path, status, text, err)
	}
	return status, out
}

// send sends a request and reads the reply.
func send(ctx context.Context, method, url, body string) (int, string, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}

// ok sends a request that must succeed.
func (c responsesClient) ok(method, path, body string) object {
	c.t.Helper()
	status, out := c.call(method, path, body)
	if status != http.StatusOK {
		c.t.Fatalf("%s %s %s: %d %v", method, path, body, status, out)
	}
	return out
}

// refused checks that the reply to a request is an OpenAI error object with this status,
// parameter and code, and that its message contains the id.
func (c responsesClient) refused(method, path, body string, status int, param, code, id string) {
	c.t.Helper()
	got, out := c.call(method, path, body)
	e, _ := out["error"].(object)
	asAny := func(s string) any {
		if s == "" {
			return nil
		}
		return s
	}
	message, _ := e["message"].(string)
	if got != status || e["type"] != "invalid_request_error" || e["param"] != asAny(param) || e["code"] != asAny(code) || !strings.Contains(message, id) {
		c.t.Errorf("%s %s %s: %d %v, want %d with param %q, code %q and the id %q", method, path, body, got, out, status, param, code, id)
	}
}

func elements(list any) (out []object) {
	all, _ := list.([]any)
	for _, e := range all {
		out = append(out, e.(object))
	}
	return out
}

func outputText(response object) string {
	for _, item := range elements(response["output"]) {
		for _, part := range elements(item["content"]) {
			return part["text"].(string)
		}
	}
	return ""
}

const weatherTool = `"tools":[{"type":"function","name":"get_weather","description":"Weather in a city.","parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}]`

func TestStoredResponseIsRetrievedListedAndDeleted(t *testing.T) {
	c := newResponsesClient(t)
	for _, stream := range []string{"false", "true"} {
		made := c.ok("POST", "/responses", `{"model":"echo","input":[{"role":"user","content":"first"},{"role":"user","content":"second"}],"metadata":{"run":"7"},"stream":`+stream+`}`)
		id, _ := made["id"].(string)
		if made["store"] != true || !reflect.DeepEqual(made["metadata"], object{"run": "7"}) {
			t.Fatalf("stream %s: %v", stream, made)
		}
		if got := c.ok("GET", "/responses/"+id, ""); !reflect.DeepEqual(got, made) {
			t.Errorf("stream %s: got\n%v, made\n%v", stream, got, made)
		}
		list := c.ok("GET", "/responses/"+id+"/input_items?order=asc", "")
		items := elements(list["data"])
		if len(items) != 2 || list["object"] != "list" || list["has_more"] != false || list["first_id"] != items[0]["id"] || list["last_id"] != items[1]["id"] {
			t.Fatalf("stream %s: %v", stream, list)
		}
		for i, text := range []string{"first", "second"} {
			want := []any{object{"type": "input_text", "text": text}}
			if items[i]["type"] != "message" || items[i]["id"] == nil || !reflect.DeepEqual(items[i]["content"], want) {
				t.Errorf("stream %s: item %d: %v", stream, i, items[i])
			}
		}
		// The newest item comes first by default.
		page := c.ok("GET", "/responses/"+id+"/input_items?limit=1", "")
		if data := elements(page["data"]); len(data) != 1 || data[0]["id"] != items[1]["id"] || page["has_more"] != true {
			t.Errorf("stream %s: %v", stream, page)
		}
		page = c.ok("GET", fmt.Sprintf("/responses/%s/input_items?limit=1&after=%s", id, items[1]["id"]), "")
		if data := elements(page["data"]); len(data) != 1 || data[0]["id"] != items[0]["id"] || page["has_more"] != false {
			t.Errorf("stream %s: %v", stream, page)
		}
		c.refused("GET", "/responses/"+id+"/input_items?limit=0", "", 400, "limit", "", "limit")
		c.refused("POST", "/responses/"+id+"/cancel", "", 400, "", "", "Cannot cancel a synchronous response")
		c.refused("GET", "/responses/"+id+"?stream=true", "", 400, "stream", "", "background")

		if got := c.ok("DELETE", "/responses/"+id, ""); !reflect.DeepEqual(got, object{"id": id, "object": "response", "deleted": true}) {
			t.Errorf("stream %s: %v", stream, got)
		}
		for _, r := range [][2]string{{"GET", ""}, {"DELETE", ""}, {"GET", "/input_items"}, {"POST", "/cancel"}} {
			c.refused(r[0], "/responses/"+id+r[1], "", 404, "", "", id)
		}
		c.refused("POST", "/responses", `{"model":"echo","input":"go on","previous_response_id":"`+id+`"}`, 400, "previous_response_id", "previous_response_not_found", id)
		c.refused("POST", "/responses", fmt.Sprintf(`{"model":"echo","input":[{"type":"item_reference","id":%q}]}`, items[0]["id"]), 404, "input", "", items[0]["id"].(string))
	}
}

func TestUnstoredResponseIsNotRetrievable(t *testing.T) {
	c := newResponsesClient(t)
	for _, stream := range []string{"false", "true"} {
		c.ok("POST", "/responses", `{"model":"echo","input":"secret"}`) // a stored response to the same input
		made := c.ok("POST", "/responses", `{"model":"echo","input":"secret","store":false,"stream":`+stream+`}`)
		id, item := made["id"].(string), elements(made["output"])[0]["id"].(string)
		if made["store"] != false {
			t.Errorf("%v", made)
		}
		c.refused("GET", "/responses/"+id, "", 404, "", "", id)
		c.refused("POST", "/responses", `{"model":"echo","input":"go on","previous_response_id":"`+id+`"}`, 400, "previous_response_id", "previous_response_not_found", id)
		c.refused("POST", "/responses", `{"model":"echo","input":[{"type":"item_reference","id":"`+item+`"}]}`, 404, "input", "", item)
	}
}

func TestItemReferencesAreResolved(t *testing.T) {
	c := newResponsesClient(t)
	for _, stream := range []string{"false", "true"} {
		first := c.ok("POST", "/responses", `{"model":"planner","input":"What's the weather in Oslo?","stream":`+stream+`,`+weatherTool+`}`)
		call := elements(first["output"])[0]
		output := fmt.Sprintf(`{"type":"function_call_output","call_id":%q,"output":"4 °C"}`, call["call_id"])
		question := elements(c.ok("GET", "/responses/"+first["id"].(string)+"/input_items", "")["data"])[0]["id"]
		for name, input := range map[string]string{
			"by type":        fmt.Sprintf(`[{"role":"user","content":"What's the weather in Oslo?"},{"type":"item_reference","id":%q},%s]`, call["id"], output),
			"without a type": fmt.Sprintf(`[{"role":"user","content":"What's the weather in Oslo?"},{"id":%q},%s]`, call["id"], output),
			"input too":      fmt.Sprintf(`[{"type":"item_reference","id":%q},{"type":"item_reference","id":%q},%s]`, question, call["id"], output),
		} {
			got := c.ok("POST", "/responses", `{"model":"planner","input":`+input+`,"stream":`+stream+`,`+weatherTool+`}`)
			if outputText(got) != "get_weather says: 4 °C" {
				t.Errorf("%s, stream %s: %v", name, stream, got)
			}
			// The list has the items, not the references.
			for _, item := range elements(c.ok("GET", "/responses/"+got["id"].(string)+"/input_items", "")["data"]) {
				if item["type"] == "item_reference" || item["type"] == nil {
					t.Errorf("%s: %v", name, item)
				}
			}
		}
	}
}

func TestReasoningIsLookedUpByItsID(t *testing.T) {
	c := newResponsesClient(t)
	first := c.ok("POST", "/responses", `{"model":"planner","input":"Hello","reasoning":{"effort":"low","summary":"auto"}}`)
	reasoning := elements(first["output"])[0]
	if reasoning["type"] != "reasoning" {
		t.Fatalf("%v", first)
	}
	c.ok("POST", "/responses", fmt.Sprintf(`{"model":"planner","input":[{"type":"reasoning","id":%q,"summary":[]},{"role":"user","content":"Thanks"}]}`, reasoning["id"]))
	c.refused("POST", "/responses", `{"model":"planner","input":[{"type":"reasoning","id":"rs_none","summary":[]},{"role":"user","content":"Thanks"}]}`, 404, "input", "", "rs_none")
}

func TestUnknownReferencesAreErrorsThatNameThem(t *testing.T) {
	c := newResponsesClient(t)
	for _, stream := range []string{"false", "true"} {
		for _, path := range []string{"/responses", "/responses/input_tokens", "/responses/compact"} {
			c.refused("POST", path, `{"model":"echo","stream":`+stream+`,"input":[{"role":"user","content":"q"},{"type":"item_reference","id":"fc_none"}]}`, 404, "input", "", "fc_none")
			c.refused("POST", path, `{"model":"echo","stream":`+stream+`,"input":[{"id":"msg_none"}]}`, 404, "input", "", "msg_none")
			c.refused("POST", path, `{"model":"echo","stream":`+stream+`,"input":"q","previous_response_id":"resp_none"}`, 400, "previous_response_id", "previous_response_not_found", "resp_none")
			c.refused("POST", path, `{"model":"echo","stream":`+stream+`,"input":"q","conversation":"conv_none"}`, 404, "conversation", "", "conv_none")
			c.refused("POST", path, `{"model":"echo","stream":`+stream+`,"input":"q","conversation":{"id":"conv_none"}}`, 404, "conversation", "", "conv_none")
			c.refused("POST", path, `{"model":"echo","stream":`+stream+`,"input":"q","prompt":{"id":"pmpt_none"}}`, 404, "prompt", "", "pmpt_none")
		}
	}
	c.refused("GET", "/responses/resp_none", "", 404, "", "", "resp_none")
	c.refused("GET", "/conversations/conv_none", "", 404, "conversation", "", "conv_none")
	c.refused("POST", "/responses", `{"model":"echo","input":[{"type":"item_reference"}]}`, 400, "input", "", "needs an id")
}

func TestItemsInContextAreDuplicates(t *testing.T) {
	c := newResponsesClient(t)
	first := c.ok("POST", "/responses", `{"model":"echo","input":"hi"}`)
	item := elements(first["output"])[0]["id"].(string)
	reference := `{"type":"item_reference","id":"` + item + `"}`
	full, err := json.Marshal(elements(first["output"])[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, fields := range []string{
		`"input":[` + reference + `,` + reference + `]`,
		`"input":[` + string(full) + `,` + reference + `]`,
		fmt.Sprintf(`"previous_response_id":%q,"input":[%s]`, first["id"], reference),
		fmt.Sprintf(`"previous_response_id":%q,"input":[%s]`, first["id"], full),
	} {
		c.refused("POST", "/responses", `{"model":"echo",`+fields+`}`, 400, "input", "", "Duplicate item found with id "+item)
	}
}

func TestResponseInAChainListsAllInput(t *testing.T) {
	c := newResponsesClient(t)
	first := c.ok("POST", "/responses", `{"model":"echo","input":"one"}`)
	second := c.ok("POST", "/responses", fmt.Sprintf(`{"model":"echo","input":"two","previous_response_id":%q}`, first["id"]))
	if second["previous_response_id"] != first["id"] {
		t.Errorf("%v", second)
	}
	var roles []string
	for _, item := range elements(c.ok("GET", "/responses/"+second["id"].(string)+"/input_items?order=asc", "")["data"]) {
		roles = append(roles, item["role"].(string))
	}
	if want := []string{"user", "assistant", "user"}; !reflect.DeepEqual(roles, want) {
		t.Errorf("%v, want %v", roles, want)
	}
	// The tokens of the context count.
	alone := c.ok("POST", "/responses/input_tokens", `{"model":"echo","input":"two"}`)["input_tokens"].(float64)
	chained := c.ok("POST", "/responses/input_tokens", fmt.Sprintf(`{"model":"echo","input":"two","previous_response_id":%q}`, first["id"]))["input_tokens"].(float64)
	if chained <= alone {
		t.Errorf("%v tokens alone, %v with the context", alone, chained)
	}
}

func TestConversationIsExtendedByItsResponses(t *testing.T) {
	c := newResponsesClient(t)
	made := c.ok("POST", "/conversations", `{"metadata":{"a":"b"},"items":[{"role":"user","content":"What's the weather in Oslo?"}]}`)
	id := made["id"].(string)
	if made["object"] != "conversation" || !strings.HasPrefix(id, "conv_") || !reflect.DeepEqual(made["metadata"], object{"a": "b"}) {
		t.Fatalf("%v", made)
	}
	for _, conversation := range []string{`"` + id + `"`, `{"id":"` + id + `"}`} {
		first := c.ok("POST", "/responses", `{"model":"planner","input":[],"conversation":`+conversation+`,`+weatherTool+`}`)
		if !reflect.DeepEqual(first["conversation"], object{"id": id}) {
			t.Errorf("%v", first)
		}
		call := elements(first["output"])[0]
		if call["type"] != "function_call" {
			t.Fatalf("%v", first)
		}
		second := c.ok("POST", "/responses", fmt.Sprintf(`{"model":"planner","conversation":%s,"input":[{"type":"function_call_output","call_id":%q,"output":"4 °C"}],%s}`, conversation, call["call_id"], weatherTool))
		if outputText(second) != "get_weather says: 4 °C" {
			t.Errorf("%v", second)
		}
		c.ok("POST", "/conversations/"+id+"/items", `{"items":[{"role":"user","content":"What's the weather in Oslo?"}]}`)
	}
	var types []string
	items := elements(c.ok("GET", "/conversations/"+id+"/items?order=asc", "")["data"])
	for _, item := range items {
		types = append(types, item["type"].(string))
	}
	want := []string{"message", "function_call", "function_call_output", "message", "message", "function_call", "function_call_output", "message", "message"}
	if !reflect.DeepEqual(types, want) {
		t.Errorf("%v, want %v", types, want)
	}
	item := "/conversations/" + id + "/items/" + items[0]["id"].(string)
	if got := c.ok("GET", item, ""); !reflect.DeepEqual(got, items[0]) {
		t.Errorf("%v", got)
	}
	c.ok("DELETE", item, "")
	c.refused("GET", item, "", 404, "input", "", items[0]["id"].(string))
	c.refused("POST", "/responses", `{"model":"echo","input":"q","conversation":"`+id+`","previous_response_id":"resp_1"}`, 400, "conversation", "", "previous_response_id")
	if got := c.ok("POST", "/conversations/"+id, `{"metadata":{"c":"d"}}`); !reflect.DeepEqual(got["metadata"], object{"c": "d"}) {
		t.Errorf("%v", got)
	}
	c.ok("DELETE", "/conversations/"+id, "")
	c.refused("GET", "/conversations/"+id, "", 404, "conversation", "", id)
	c.refused("POST", "/responses", `{"model":"echo","input":"q","conversation":"`+id+`"}`, 404, "conversation", "", id)
}

func TestCompactedConversationContinues(t *testing.T) {
	c := newResponsesClient(t)
	first := c.ok("POST", "/responses", `{"model":"echo","input":"my name is Ada"}`)
	var outputs []string
	for _, fields := range []string{
		`"input":[{"role":"user","content":"my name is Ada"},{"role":"assistant","content":"Hello Ada"}]`,
		fmt.Sprintf(`"previous_response_id":%q`, first["id"]),
	} {
		compacted := c.ok("POST", "/responses/compact", `{"model":"echo",`+fields+`}`)
		usage, _ := compacted["usage"].(object)
		items := elements(compacted["output"])
		if compacted["object"] != "response.compaction" || len(items) != 2 || items[0]["role"] != "user" || items[1]["type"] != "compaction" || usage["input_tokens"] == 0.0 {
			t.Fatalf("%v", compacted)
		}
		id := compacted["id"].(string)
		c.refused("GET", "/responses/"+id, "", 404, "", "", id)
		c.refused("POST", "/responses", `{"model":"echo","input":"q","previous_response_id":"`+id+`"}`, 400, "previous_response_id", "previous_response_not_found", id)
		output, err := json.Marshal(append(items, object{"role": "user", "content": "and then?"}))
		if err != nil {
			t.Fatal(err)
		}
		outputs = append(outputs, string(output))
		got := c.ok("POST", "/responses", `{"model":"echo","input":`+string(output)+`}`)
		if outputText(got) != "and then?" {
			t.Errorf("%v", got)
		}
	}
	// The model gets the summary: its tokens count, and compacting again keeps it.
	with := c.ok("POST", "/responses/input_tokens", `{"model":"echo","input":`+outputs[0]+`}`)["input_tokens"].(float64)
	without := c.ok("POST", "/responses/input_tokens", `{"model":"echo","input":[{"role":"user","content":"my name is Ada"},{"role":"user","content":"and then?"}]}`)["input_tokens"].(float64)
	if with <= without {
		t.Errorf("%v tokens with the summary, %v without", with, without)
	}
	tampered := `[{"type":"compaction","id":"cmp_1","encrypted_content":"gAAAA"},{"role":"user","content":"q"}]`
	c.refused("POST", "/responses", `{"model":"echo","input":`+tampered+`}`, 400, "input", "invalid_encrypted_content", "cmp_1")
	c.refused("POST", "/responses/compact", `{"model":"echo","input":[]}`, 400, "input", "", "input")
}

func TestDifferentResponsesHaveDifferentIDs(t *testing.T) {
	c := newResponsesClient(t)
	echo := c.ok("POST", "/responses", `{"model":"echo","input":"hi"}`)
	planner := c.ok("POST", "/responses", `{"model":"planner","input":"hi"}`)
	other := c.ok("POST", "/responses", `{"model":"echo","input":"hi","instructions":"Be brief."}`)
	for _, made := range []object{echo, planner, other} {
		if got := c.ok("GET", "/responses/"+made["id"].(string), ""); !reflect.DeepEqual(got, made) {
			t.Errorf("got\n%v, made\n%v", got, made)
		}
	}
}

func TestStoredIDsAreDeterministic(t *testing.T) {
	ids := func() (out []any) {
		c := newResponsesClient(t)
		made := c.ok("POST", "/conversations", `{"items":[{"role":"user","content":"hi"}]}`)
		first := c.ok("POST", "/responses", fmt.Sprintf(`{"model":"echo","input":"there","conversation":%q}`, made["id"]))
		second := c.ok("POST", "/responses", fmt.Sprintf(`{"model":"echo","input":"again","previous_response_id":%q}`, first["id"]))
		compacted := c.ok("POST", "/responses/compact", fmt.Sprintf(`{"model":"echo","previous_response_id":%q}`, second["id"]))
		out = append(out, made, first, second, compacted)
		return append(out, c.ok("GET", "/conversations/"+made["id"].(string)+"/items", ""), c.ok("GET", "/responses/"+second["id"].(string)+"/input_items", ""))
	}
	if a, b := ids(), ids(); !reflect.DeepEqual(a, b) {
		t.Errorf("\n%v\n%v", a, b)
	}
}

func TestNewestResponseIsStoredWhateverItsSize(t *testing.T) {
	c := newResponsesClient(t)
	made := c.ok("POST", "/responses", `{"model":"planner","input":"`+strings.Repeat("a", 33<<20)+`"}`)
	c.ok("GET", "/responses/"+made["id"].(string), "")
	small := c.ok("POST", "/responses", `{"model":"echo","input":"small"}`)
	c.ok("GET", "/responses/"+small["id"].(string), "")
	c.refused("GET", "/responses/"+made["id"].(string), "", 404, "", "", made["id"].(string))
}

func TestResponseIsStoredBeforeTheClientHasIt(t *testing.T) {
	server := httptest.NewServer(sim.Handler(sim.Config{}))
	defer server.Close()
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			c := responsesClient{t, server.URL + "/v1"}
			made := c.mustCall("POST", "/responses", fmt.Sprintf(`{"model":"echo","input":"number %d","stream":%t}`, i, i%2 == 0))
			next := c.mustCall("POST", "/responses", fmt.Sprintf(`{"model":"echo","input":"next","previous_response_id":%q}`, made["id"]))
			c.mustCall("GET", "/responses/"+next["id"].(string)+"/input_items", "")
			c.mustCall("DELETE", "/responses/"+made["id"].(string), "")
			c.mustCall("GET", "/responses/"+next["id"].(string), "")
		})
	}
	wg.Wait()
}

// mustCall is like ok, but may be called by any goroutine.
func (c responsesClient) mustCall(method, path, body string) object {
	status, out := c.call(method, path, body)
	if status != http.StatusOK {
		c.t.Errorf("%s %s %s: %d %v", method, path, body, status, out)
		return object{"id": "none"}
	}
	return out
}

// Conversations, metadata and the items of evicted responses stay within the limits of the
// store.
func TestStoredResponsesStayWithinTheirBounds(t *testing.T) {
	big := strings.Repeat("x", 5<<20)
	t.Run("items of a conversation", func(t *testing.T) {
		c := newResponsesClient(t)
		_, conv := c.call("POST", "/conversations", "")
		path, item := fmt.Sprint("/conversations/", conv["id"]), `{"role":"user","content":"`+big+`"}`
		if status, out := c.call("POST", path+"/items", `{"items":[`+item+`]}`); status != http.StatusOK {
			t.Fatalf("the first item: %d %v", status, out)
		}
		if status, out := c.call("POST", path+"/items", `{"items":[`+item+`]}`); status != http.StatusBadRequest || !strings.Contains(fmt.Sprint(out), "start a new one") {
			t.Errorf("an item beyond the bound: %d", status)
		}
		if status, out := c.call("POST", "/responses", fmt.Sprintf(`{"model":"echo","store":false,"conversation":%q,"input":[%s]}`, conv["id"], item)); status != http.StatusBadRequest || !strings.Contains(fmt.Sprint(out), "start a new one") {
			t.Errorf("a request beyond the bound: %d", status)
		}
		if _, list := c.call("GET", path+"/items", ""); len(list["data"].([]any)) != 1 {
			t.Errorf("a refused item was stored")
		}
	})
	t.Run("metadata", func(t *testing.T) {
		c := newResponsesClient(t)
		if status, _ := c.call("POST", "/conversations", `{"metadata":{"a":"`+big+big+`"}}`); status != http.StatusBadRequest {
			t.Errorf("metadata beyond the bound: %d", status)
		}
		_, first := c.call("POST", "/conversations", "")
		for i := range 8 {
			c.call("POST", "/conversations", fmt.Sprintf(`{"metadata":{"a":"%s%d"}}`, big, i))
		}
		if status, _ := c.call("GET", fmt.Sprint("/conversations/", first["id"]), ""); status != http.StatusNotFound {
			t.Errorf("40 MB of metadata evicted nothing: %d", status)
		}
	})
	t.Run("items of evicted conversations", func(t *testing.T) {
		c := newResponsesClient(t)
		const named = `{"type":"message","role":"user","id":"msg_named","content":%q}`
		c.call("POST", "/conversations", `{"items":[`+fmt.Sprintf(named, "large "+big)+`]}`)
		for i := range 6 {
			c.call("POST", "/conversations", fmt.Sprintf(`{"metadata":{"a":"%s%d"}}`, big, i))
			c.call("POST", "/responses", fmt.Sprintf(`{"model":"echo","input":[%s,{"role":"user","content":"%d"}]}`, fmt.Sprintf(named, "small"), i))
		}
		_, out := c.call("POST", "/responses", `{"model":"echo","input":[{"type":"item_reference","id":"msg_named"}]}`)
		if text := fmt.Sprint(out["output"]); !strings.Contains(text, "small") {
			t.Errorf("the item of an evicted conversation is still in memory: %.100s", text)
		}
	})
}

func TestConversationItemsAreObjects(t *testing.T) {
	c := newResponsesClient(t)
	_, conv := c.call("POST", "/conversations", "")
	for _, item := range []string{`"x"`, `5`, `null`, `[]`, `true`} {
		for _, path := range []string{"/conversations", fmt.Sprint("/conversations/", conv["id"], "/items")} {
			if status, out := c.call("POST", path, `{"items":[`+item+`]}`); status != http.StatusBadRequest || !strings.Contains(fmt.Sprint(out), "items[0]: want an object") {
				t.Errorf("%s %s: %d %v", path, item, status, out)
			}
		}
	}
}
