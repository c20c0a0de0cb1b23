package gateway_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/sim"
)

// The gateway has no keys, so it passes references through to its Responses upstream. The
// simulator resolves those that it issued, and refuses the others.
func TestSimulatorResolvesReferencesThatTheGatewayPassesThrough(t *testing.T) {
	w, requests := recordingWorld(t, sim.Config{}, "")
	post := func(fields string) (int, map[string]any) {
		t.Helper()
		return callJSON(t, http.MethodPost, w.url+"/v1/responses", `{"model":"responses/sim/echo",`+fields+`}`)
	}
	status, first := post(`"input":"first"`)
	if status != http.StatusOK {
		t.Fatalf("%d %v", status, first)
	}
	item := first["output"].([]any)[0].(map[string]any)["id"]
	for _, fields := range []string{
		fmt.Sprintf(`"input":[{"type":"item_reference","id":%q},{"role":"user","content":"second"}]`, item),
		fmt.Sprintf(`"input":"second","previous_response_id":%q`, first["id"]),
	} {
		if status, got := post(fields); status != http.StatusOK || !strings.Contains(fmt.Sprint(got["output"]), "second") {
			t.Errorf("%s: %d %v", fields, status, got)
		}
	}
	for _, below := range []string{"", "/input_items"} {
		if status, got := callJSON(t, http.MethodGet, fmt.Sprintf("%s/v1/responses/%s%s", w.url, first["id"], below), ""); status != http.StatusOK {
			t.Errorf("GET %s: %d %v", below, status, got)
		}
	}
	before := len(requests())
	for fields, want := range map[string]int{
		`"input":[{"type":"item_reference","id":"msg_none"},{"role":"user","content":"q"}]`: http.StatusNotFound,
		`"input":[{"id":"msg_none"}]`: http.StatusNotFound,
		`"input":[{"type":"reasoning","id":"rs_none","summary":[]},{"role":"user","content":"q"}]`: http.StatusNotFound,
		`"input":"q","conversation":"conv_none"`:                                                   http.StatusNotFound,
		`"input":"q","previous_response_id":"resp_none"`:                                           http.StatusBadRequest,
	} {
		if status, got := post(fields); status != want || !strings.Contains(fmt.Sprint(got["error"]), "_none") {
			t.Errorf("%s: %d %v, want %d", fields, status, got, want)
		}
	}
	if n := len(requests()) - before; n != 5 {
		t.Errorf("the simulator got %d of 5 requests: the gateway refused the others itself", n)
	}
}

// callJSON sends a request and returns the status and the JSON object of the reply.
func callJSON(t *testing.T, method, url, body string) (int, map[string]any) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	return resp.StatusCode, decodeJSON(t, resp.Body)
}
