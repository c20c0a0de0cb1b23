package gateway_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
)

// notJSON are the invalid arguments of a call.
const notJSON = `{"city": Oslo}`

// badResponses is a response of a Responses server with such a call, whole or streamed.
func badResponses(stream bool) string {
	const item = `{"type":"function_call","id":"fc_1","call_id":"call_1","name":"get_weather","arguments":"{\"city\": Oslo}","status":"completed"}`
	const whole = `{"id":"resp_1","object":"response","created_at":1,"status":"completed","model":"m","output":[` + item + `],"usage":{"input_tokens":1,"output_tokens":2,"total_tokens":3}}`
	if !stream {
		return whole
	}
	var b strings.Builder
	for _, ev := range []string{
		`{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","created_at":1,"status":"in_progress","model":"m","error":null,"incomplete_details":null,"instructions":null,"metadata":{},"parallel_tool_calls":true,"temperature":1,"tool_choice":"auto","top_p":1,"tools":[],"usage":null,"output":[]}}`,
		`{"type":"response.in_progress","sequence_number":1,"response":{"id":"resp_1","object":"response","created_at":1,"status":"in_progress","model":"m","error":null,"incomplete_details":null,"instructions":null,"metadata":{},"parallel_tool_calls":true,"temperature":1,"tool_choice":"auto","top_p":1,"tools":[],"usage":null,"output":[]}}`,
		`{"type":"response.output_item.added","sequence_number":2,"output_index":0,"item":{"type":"function_call","id":"fc_1","call_id":"call_1","name":"get_weather","arguments":"","status":"in_progress"}}`,
		`{"type":"response.function_call_arguments.delta","sequence_number":3,"output_index":0,"item_id":"fc_1","delta":"{\"city\": Oslo}"}`,
		`{"type":"response.function_call_arguments.done","sequence_number":4,"output_index":0,"item_id":"fc_1","arguments":"{\"city\": Oslo}"}`,
		`{"type":"response.output_item.done","sequence_number":5,"output_index":0,"item":` + item + `}`,
		`{"type":"response.completed","sequence_number":6,"response":` + whole + `}`,
	} {
		name, _, _ := strings.Cut(strings.TrimPrefix(ev, `{"type":"`), `"`)
		b.WriteString("event: " + name + "\ndata: " + ev + "\n\n")
	}
	return b.String()
}

// Clients run the calls of a complete response. A response with invalid arguments ends as
// incomplete in every dialect, and keeps its text.
func TestQuirkB9_InvalidArgumentsDoNotReachAClientAsCompleted(t *testing.T) {
	withRig(t, "gateway: {"+routesWith("repair: always")+"}\n", func(rw http.ResponseWriter, r *http.Request) {
		stream := isStream(r)
		rw.Header().Set("content-type", map[bool]string{false: "application/json", true: "text/event-stream"}[stream])
		if dialectOf(r).Dialect() == dialectname.OpenAIResponses {
			_, _ = io.WriteString(rw, badResponses(stream))
			return
		}
		_, _ = io.WriteString(rw, strings.NewReplacer(`"content":null,`, `"content":null,"refusal":null,`, `"finish_reason":"tool_calls"}]`, `"finish_reason":"tool_calls","logprobs":null}]`).Replace(oddChat(stream, notJSON, "tool_calls")))
	}, func(r *rig) {
		for _, upstream := range []string{"chat", "openai", "responses"} {
			for _, codec := range clientDialects {
				if upstream == "responses" && codec.Dialect() == dialectname.OpenAIResponses {
					continue // the codec's own test has it
				}
				for _, stream := range []bool{false, true} {
					w := pair{codec, upstream}
					a := r.roundTrip(w, stream)
					resp, err := a.decode()
					// Ollama has no stop reason for it, and shows the text as the argument "_raw".
					if err != nil || resp.Stop.Reason.Runs() && codec.Dialect() != dialectname.Ollama || !strings.Contains(string(a.body), "Oslo") {
						r.t.Errorf("%s%s: %v\n%s", w, streamed(stream), err, a.body)
						continue
					}
					for _, word := range map[dragoman.Dialect][]string{
						dialectname.OpenAIChat:      {`"finish_reason":"tool_calls"`, `"finish_reason":"stop"`},
						dialectname.OpenAIResponses: {`"status":"completed"`, `response.completed`},
					}[codec.Dialect()] {
						if strings.Contains(string(a.body), word) {
							r.t.Errorf("%s%s: has %s\n%s", w, streamed(stream), word, a.body)
						}
					}
				}
			}
		}
	})
}
