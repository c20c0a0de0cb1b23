package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
)

// chatChoices is a Chat response, whole or streamed. Each choice is the message of a
// choice, or its deltas.
func chatChoices(stream bool, message string, finish string, deltas ...string) string {
	const head = `{"id":"chatcmpl-1","object":"chat.completion`
	const usage = `"usage":{"prompt_tokens":9,"completion_tokens":4,"total_tokens":13}`
	if !stream {
		return head + `","created":1,"model":"m","choices":[{"index":0,"message":` + message + `,"finish_reason":"` + finish + `","logprobs":null}],` + usage + `}`
	}
	var b strings.Builder
	chunk := func(delta, finish string) {
		b.WriteString(`data: ` + head + `.chunk","created":1,"model":"m","choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + finish + "}]}\n\n")
	}
	chunk(`{"role":"assistant","content":null}`, "null")
	for _, d := range deltas {
		chunk(d, "null")
	}
	chunk("{}", strconv.Quote(finish))
	b.WriteString(`data: ` + head + `.chunk","created":1,"model":"m","choices":[],` + usage + "}\n\ndata: [DONE]\n\n")
	return b.String()
}

// chatCall is a Chat response with one call of a function.
func chatCall(arguments string) func(stream bool) string {
	return func(stream bool) string {
		half := len(arguments) / 2
		return chatChoices(stream, `{"role":"assistant","content":null,"refusal":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"get_weather","arguments":`+strconv.Quote(arguments)+`}}]}`, "tool_calls",
			`{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"get_weather","arguments":""}}]}`,
			`{"tool_calls":[{"index":0,"function":{"arguments":`+strconv.Quote(arguments[:half])+`}}]}`,
			`{"tool_calls":[{"index":0,"function":{"arguments":`+strconv.Quote(arguments[half:])+`}}]}`)
	}
}

// responsesItem is a Responses response with one item. Deltas are the events between its
// first and its last.
func responsesItem(item string, deltas ...string) func(stream bool) string {
	object := func(status, completedAt, output, usage string) string {
		return `{"id":"resp_1","object":"response","created_at":1,"completed_at":` + completedAt + `,"status":"` + status + `","model":"m","error":null,"incomplete_details":null,"output":[` + output + `],"usage":` + usage + `,` +
			`"instructions":null,"metadata":{},"parallel_tool_calls":true,"temperature":1,"tool_choice":"auto","top_p":1,"tools":[],"previous_response_id":null,"truncation":"disabled","text":{"format":{"type":"text"}},` +
			`"presence_penalty":0,"frequency_penalty":0,"top_logprobs":0,"reasoning":null,"max_output_tokens":null,"max_tool_calls":null,"store":true,"background":false,"service_tier":"default","safety_identifier":null,"prompt_cache_key":null}`
	}
	whole := object("completed", "2", item, `{"input_tokens":1,"output_tokens":2,"total_tokens":3,"input_tokens_details":{"cached_tokens":0},"output_tokens_details":{"reasoning_tokens":0}}`)
	return func(stream bool) string {
		if !stream {
			return whole
		}
		var events []string
		add := func(data string) {
			name, _, _ := strings.Cut(strings.TrimPrefix(data, `{"type":"`), `"`)
			events = append(events, fmt.Sprintf("event: %s\ndata: %s\n\n", name, strings.Replace(data, `"sequence_number":0`, `"sequence_number":`+strconv.Itoa(len(events)), 1)))
		}
		add(`{"type":"response.created","sequence_number":0,"response":` + object("in_progress", "null", "", "null") + `}`)
		add(`{"type":"response.in_progress","sequence_number":0,"response":` + object("in_progress", "null", "", "null") + `}`)
		typ := strings.SplitN(item, `"`, 5)[3]
		payload := map[string]string{"function_call": "arguments", "custom_tool_call": "input"}[typ]
		add(`{"type":"response.output_item.added","sequence_number":0,"output_index":0,"item":{"type":"` + typ + `","id":"fc_1","call_id":"call_1","name":"get_weather","` + payload + `":"","status":"in_progress"}}`)
		for _, d := range deltas {
			add(d)
		}
		add(`{"type":"response.output_item.done","sequence_number":0,"output_index":0,"item":` + item + `}`)
		add(`{"type":"response.completed","sequence_number":0,"response":` + whole + `}`)
		return strings.Join(events, "") + "data: [DONE]\n\n"
	}
}

// responsesCall is a Responses response with one call of a function.
func responsesCall(arguments string) func(stream bool) string {
	text := strconv.Quote(arguments)
	return responsesItem(`{"type":"function_call","id":"fc_1","call_id":"call_1","name":"get_weather","arguments":`+text+`,"status":"completed"}`,
		`{"type":"response.function_call_arguments.delta","sequence_number":0,"output_index":0,"item_id":"fc_1","delta":`+text+`}`,
		`{"type":"response.function_call_arguments.done","sequence_number":0,"output_index":0,"item_id":"fc_1","name":"get_weather","arguments":`+text+`}`)
}

// A call whose arguments are not valid JSON does not reach a client as completed, also
// where responses are passed through. Every other response stays the same, byte for byte.
func TestQuirkB9_InvalidArgumentsEndAPassedResponseAsIncomplete(t *testing.T) {
	legacy := func(arguments string) func(bool) string {
		return func(stream bool) string {
			return chatChoices(stream, `{"role":"assistant","content":null,"refusal":null,"function_call":{"name":"get_weather","arguments":`+strconv.Quote(arguments)+`}}`, "function_call",
				`{"function_call":{"name":"get_weather","arguments":""}}`, `{"function_call":{"arguments":`+strconv.Quote(arguments)+`}}`)
		}
	}
	const valid = `{"city": "Oslo"}`
	for _, tc := range []struct {
		name    string
		codec   dialect.Codec
		body    func(stream bool) string
		blocked bool
	}{
		{"Chat: valid", openaichat.Codec{}, chatCall(valid), false},
		{"Chat: not JSON", openaichat.Codec{}, chatCall(notJSON), true},
		{"Chat: cut off", openaichat.Codec{}, chatCall(`{"city": "Oslo"`), true},
		{"Chat: two values", openaichat.Codec{}, chatCall(valid + valid), true},
		{"Chat: no arguments", openaichat.Codec{}, chatCall(""), false},
		{"Chat: finish reason stop", openaichat.Codec{}, func(stream bool) string {
			return strings.Replace(chatCall(notJSON)(stream), `"finish_reason":"tool_calls"`, `"finish_reason":"stop"`, 1)
		}, true},
		{"Chat: function_call, valid", openaichat.Codec{}, legacy(valid), false},
		{"Chat: function_call, not JSON", openaichat.Codec{}, legacy(notJSON), true},
		{"Chat: custom tool", openaichat.Codec{}, func(stream bool) string {
			const call = `{"id":"call_1","type":"custom","custom":{"name":"get_weather","input":"in Oslo {"}}`
			return chatChoices(stream, `{"role":"assistant","content":null,"refusal":null,"tool_calls":[`+call+`]}`, "tool_calls", `{"tool_calls":[`+strings.Replace(call, `{`, `{"index":0,`, 1)+`]}`)
		}, false},
		{"Responses: valid", openairesponses.Codec{}, responsesCall(valid), false},
		{"Responses: not JSON", openairesponses.Codec{}, responsesCall(notJSON), true},
		{"Responses: no arguments", openairesponses.Codec{}, responsesCall(""), false},
		{"Responses: custom tool", openairesponses.Codec{}, responsesItem(
			`{"type":"custom_tool_call","id":"fc_1","call_id":"call_1","name":"get_weather","input":"in Oslo {","status":"completed"}`,
			`{"type":"response.custom_tool_call_input.delta","sequence_number":0,"output_index":0,"item_id":"fc_1","delta":"in Oslo {"}`,
			`{"type":"response.custom_tool_call_input.done","sequence_number":0,"output_index":0,"item_id":"fc_1","input":"in Oslo {"}`), false},
	} {
		for _, stream := range []bool{false, true} {
			t.Run(tc.name+streamed(stream), func(t *testing.T) {
				sent := tc.body(stream)
				withRig(t, "", func(rw http.ResponseWriter, _ *http.Request) {
					rw.Header().Set("content-type", map[bool]string{false: "application/json", true: "text/event-stream"}[stream])
					_, _ = io.WriteString(rw, sent)
				}, func(r *rig) {
					w := pair{tc.codec, providerOf(tc.codec.Dialect())}
					a := r.roundTrip(w, stream)
					if passed := strings.Contains(r.logLines(), `"transparent":true`); passed == tc.blocked {
						r.t.Errorf("transparent: %v\n%s", passed, r.logLines())
					}
					if !tc.blocked {
						if string(a.body) != sent {
							r.t.Errorf("changed:\n%s\nwant\n%s", a.body, sent)
						}
						return
					}
					resp, err := a.decode()
					if err != nil || resp.Stop.Reason.Runs() || len(resp.ToolCalls()) != 1 || resp.ToolCalls()[0].Problem == nil || !strings.Contains(string(a.body), "Oslo") || !resp.Usage.Input.Known {
						r.t.Fatalf("%v %+v\n%s", err, resp, a.body)
					}
					for _, word := range map[dragoman.Dialect][]string{
						dialectname.OpenAIChat:      {`"finish_reason":"tool_calls"`, `"finish_reason":"stop"`, `"finish_reason":"function_call"`},
						dialectname.OpenAIResponses: {`"status":"completed"`, `response.completed`},
					}[tc.codec.Dialect()] {
						if strings.Contains(string(a.body), word) {
							r.t.Errorf("the response has %s\n%s", word, a.body)
						}
					}
				})
			})
		}
	}
}

// A stored response that its upstream returns again is guarded, too: the clients of
// background responses get them only that way.
func TestQuirkB9_InvalidArgumentsEndAStoredResponseAsIncomplete(t *testing.T) {
	const valid = `{"city": "Oslo"}`
	for _, stream := range []bool{false, true} {
		for _, arguments := range []string{valid, notJSON} {
			withRig(t, "", func(rw http.ResponseWriter, r *http.Request) {
				body := responsesCall(valid)(false)
				if r.Method == http.MethodGet {
					body = responsesCall(arguments)(stream)
				}
				rw.Header().Set("content-type", map[bool]string{false: "application/json", true: "text/event-stream"}[body[0] != '{'])
				_, _ = io.WriteString(rw, body)
			}, func(r *rig) {
				ask := func(method, path, body string, stream bool) *reply {
					req, err := http.NewRequestWithContext(r.t.Context(), method, "http://localhost/v1/responses"+path, strings.NewReader(body))
					if err != nil {
						r.t.Fatal(err)
					}
					return r.read(r.send(req), openairesponses.Codec{}, stream) //nolint:bodyclose // read does
				}
				ask(http.MethodPost, "", `{"model":"responses/m","input":"hi"}`, false)
				a := ask(http.MethodGet, fmt.Sprintf("/resp_1?stream=%v", stream), "", stream)
				if arguments == valid {
					if string(a.body) != responsesCall(arguments)(stream) {
						r.t.Errorf("changed%s:\n%s", streamed(stream), a.body)
					}
					return
				}
				if body := string(a.body); !strings.Contains(body, "Oslo") || strings.Contains(body, `"status":"completed"`) || strings.Contains(body, "response.completed") {
					r.t.Errorf("completed%s:\n%s", streamed(stream), body)
				}
			})
		}
	}
}
