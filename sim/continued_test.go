package sim_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/dialect/openairesponses"
	"github.com/dragoman-go/dragoman/sim"
)

// A client continues a response by its id, streamed or not.
func TestResponseIsContinuedByID(t *testing.T) {
	url := serve(t, sim.Config{}).URL + "/v1/responses"
	post := func(body string) (int, string) {
		t.Helper()
		resp, err := http.Post(url, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		reply, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(reply)
	}
	const tools = `,"tools":[{"type":"function","name":"get_weather","description":"Weather in a city.","parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}]`
	type answer struct {
		ID     string
		Output []struct {
			Type   string
			CallID string `json:"call_id"`
		}
	}
	read := func(text string) (a answer) {
		t.Helper()
		if _, tail, streamed := strings.Cut(text, "event: response.completed\ndata: "); streamed {
			var ev struct{ Response answer }
			if err := json.Unmarshal([]byte(strings.Split(tail, "\n")[0]), &ev); err != nil {
				t.Fatal(err)
			}
			return ev.Response
		}
		if err := json.Unmarshal([]byte(text), &a); err != nil {
			t.Fatal(err)
		}
		return a
	}
	for _, stream := range []string{"false", "true"} {
		_, reply := post(`{"model":"planner","input":"What's the weather in Oslo?","stream":` + stream + tools + `}`)
		first := read(reply)
		if first.ID == "" || len(first.Output) != 1 || first.Output[0].Type != "function_call" {
			t.Fatalf("%s", reply)
		}
		result := fmt.Sprintf(`[{"type":"function_call_output","call_id":%q,"output":"4 °C"}]`, first.Output[0].CallID)
		code, reply := post(fmt.Sprintf(`{"model":"planner","previous_response_id":%q,"input":%s,"stream":%s%s}`, first.ID, result, stream, tools))
		if code != 200 || !strings.Contains(reply, "get_weather says: 4 °C") {
			t.Errorf("stream %s: %d %s", stream, code, reply)
		}
		// Continue that response, too.
		code, reply = post(fmt.Sprintf(`{"model":"echo","previous_response_id":%q,"input":"Thanks"}`, read(reply).ID))
		if code != 200 || !strings.Contains(reply, `"text":"Thanks"`) {
			t.Errorf("stream %s: %d %s", stream, code, reply)
		}
	}
	_, reply := post(`{"model":"echo","input":"a secret","store":false}`)
	code, reply := post(fmt.Sprintf(`{"model":"echo","input":"go on","previous_response_id":%q}`, read(reply).ID))
	if code != 400 || !strings.Contains(reply, `"param":"previous_response_id"`) {
		t.Errorf("a response with store: false was continued: %d %s", code, reply)
	}
	// The number of stored responses is limited.
	_, reply = post(`{"model":"echo","input":"the first"}`)
	oldest := read(reply).ID
	for i := range 256 {
		post(fmt.Sprintf(`{"model":"echo","input":"number %d"}`, i))
	}
	if code, reply = post(fmt.Sprintf(`{"model":"echo","input":"go on","previous_response_id":%q}`, oldest)); code != 400 {
		t.Errorf("the oldest response is still stored: %d %s", code, reply)
	}
	// Their size is limited, too. Input and output count, and echo repeats its input.
	large := func(c string) string {
		t.Helper()
		_, reply := post(`{"model":"echo","input":"` + strings.Repeat(c, 9<<20) + `"}`)
		return read(reply).ID
	}
	first, again := large("a"), large("b")
	second := large("b")
	if again != second {
		t.Errorf("equal requests have the ids %s and %s", again, second)
	}
	for id, want := range map[string]int{first: 400, second: 200} {
		if code, _ := post(fmt.Sprintf(`{"model":"echo","input":"go on","previous_response_id":%q}`, id)); code != want {
			t.Errorf("%s: %d, want %d", id, code, want)
		}
	}
}

// A response has the "store" value of its request.
func TestResponseRepeatsStore(t *testing.T) {
	server := serve(t, sim.Config{})
	c := client{openairesponses.Codec{}, fixed("/v1/responses")}
	for _, stream := range []bool{false, true} {
		for _, store := range []bool{true, false} {
			req := ask("hi")
			req.Stream, req.Store = stream, &store
			_, _, body := c.emitted(t, server.URL, req)
			want := strconv.FormatBool(store)
			if n := strings.Count(string(body), `"store":`); n == 0 || strings.Count(string(body), `"store":`+want) != n {
				t.Errorf("want %s: %s", want, body)
			}
		}
	}
}
