package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
)

// oddChat returns a Chat response, complete or streamed, with a call if arguments is not empty,
// and the given finish reason.
func oddChat(stream bool, arguments, finish string) string {
	usage := `"usage":{"prompt_tokens":9,"completion_tokens":4,"total_tokens":13}`
	if !stream {
		message := `{"role":"assistant","content":"Hi","refusal":null}`
		if arguments != "" {
			message = `{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"get_weather","arguments":` + strconv.Quote(arguments) + `}}]}`
		}
		return `{"id":"c1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":` + message + `,"finish_reason":"` + finish + `"}],` + usage + `}`
	}
	chunk := func(delta, finish string) string {
		return `data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + finish + "}]}\n\n"
	}
	out := chunk(`{"role":"assistant","content":""}`, "null")
	if arguments == "" {
		out += chunk(`{"content":"Hi"}`, "null")
	} else {
		out += chunk(`{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"get_weather","arguments":""}}]}`, "null")
		for _, piece := range []string{arguments[:len(arguments)/2], arguments[len(arguments)/2:]} {
			out += chunk(`{"tool_calls":[{"index":0,"function":{"arguments":`+strconv.Quote(piece)+`}}]}`, "null")
		}
	}
	return out + chunk("{}", strconv.Quote(finish)) + `data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[],` + usage + "}\n\ndata: [DONE]\n\n"
}

// Unusual responses are converted to valid ones of the client's dialect; the judge checks every
// response.
func TestG1_OddResponsesAreConverted(t *testing.T) {
	var arguments, finish string
	w := newServerWorld(t, "", func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		stream := strings.Contains(string(body), `"stream":true`)
		rw.Header().Set("content-type", map[bool]string{false: "application/json", true: "text/event-stream"}[stream])
		_, _ = io.WriteString(rw, oddChat(stream, arguments, finish))
	})
	for _, tc := range []struct {
		arguments, finish string
		runs              string // the arguments that the client runs the call with; empty if it must not run
	}{
		{"null", "tool_calls", "{}"},
		{`""`, "tool_calls", "{}"},
		{"  ", "tool_calls", "{}"},
		{`{"city":"Oslo"}`, "tool_calls", `{"city":"Oslo"}`},
		{`"{\"city\":\"Oslo\"}"`, "tool_calls", `{"city":"Oslo"}`},
		{`{"city":"Os`, "length", ""},
		{`{"city":"Oslo"}`, "length", ""},
		{`{"city":"Oslo"}`, "weird", ""},
		{"", "weird", ""},
		{"", "stop_sequence", ""},
		{"", "refusal", ""},
		{"", "content_filter", ""},
		{"", "error", ""},
	} {
		arguments, finish = tc.arguments, tc.finish
		for _, codec := range clientDialects {
			if codec == (openaichat.Codec{}) {
				continue // the server's own
			}
			for _, stream := range []bool{false, true} {
				c := &client{t: t, codec: codec, url: w.url}
				resp, err := c.generate(&dragoman.Request{Model: "chat/m", Stream: stream, MaxOutputTokens: new(int64(100)), Tools: []dragoman.ToolSpec{weatherTool()}, Messages: []dragoman.Message{userSays("hi")}})
				got := ""
				if err == nil && resp.Stop.Reason.Runs() {
					for _, call := range resp.ToolCalls() {
						if call.Problem == nil {
							got += call.Arguments
						}
					}
				}
				if got != tc.runs {
					t.Errorf("%s%s: %q with %s runs %q, want %q (%v)", codec.Dialect(), streamed(stream), tc.arguments, tc.finish, got, tc.runs, err)
				}
			}
		}
	}
}

func TestG7_StoredResponseHasNoTermsOfAnotherVendor(t *testing.T) {
	w := newServerWorld(t, "", func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("content-type", "application/json")
		_, _ = io.WriteString(rw, `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"Hi"}],"stop_reason":"weird","stop_sequence":null,"usage":{"input_tokens":9,"output_tokens":4,"service_tier":"batch"}}`)
	})
	for _, store := range []bool{true, false} {
		status, text := get(t, http.MethodPost, w.url+"/v1/responses", fmt.Sprintf(`{"model":"anthropic/m","input":"hi","store":%v}`, store))
		if status != http.StatusOK || !strings.Contains(text, `"status":"incomplete"`) || !strings.Contains(text, `"reason":"content_filter"`) || strings.Contains(text, "weird") || strings.Contains(text, "batch") || !strings.Contains(text, `"id":"resp_`) {
			t.Errorf("stored %v: %d %s", store, status, text)
		}
	}
}
