//go:build unix

package agents

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"testing"
)

// The task: the model asks for the weather of one place after the other, and then gives its
// answer.
const (
	turns      = 10
	prompt     = "How is the weather on the way from Bergen to Oslo?"
	conclusion = "Snow all the way, from Bergen to Oslo: take a coat."
	toolName   = "get_weather"
	toolText   = "Weather forecast of a place."
	// place is the prefix of place names. In every API, the last place name in a request
	// shows how far the conversation is.
	place = "stop-"
)

// wire is an API of the model: its paths and its responses.
type wire struct {
	name, model string
	// base is the base path that clients need, path the path of requests.
	base, path string
	// call and answer are the bytes of the model's turns.
	call   func(turn int) string
	answer string
	// calls decodes the minimum that a program needs of a response.
	calls func(body []byte) (name, arguments string, err error)
}

var (
	chat = wire{
		name: "OpenAI Chat", model: "gpt-4.1", base: "/v1", path: "/v1/chat/completions",
		call: func(turn int) string {
			return fmt.Sprintf(chatHead, turn) + fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":"call_%02d","type":"function",`+
				`"function":{"name":%q,"arguments":%q}}],"refusal":null,"annotations":[]},"logprobs":null,"finish_reason":"tool_calls"}]`, turn, toolName, arguments(turn)) + chatTail
		},
		answer: fmt.Sprintf(chatHead, turns) + fmt.Sprintf(`{"role":"assistant","content":%q,"refusal":null,"annotations":[]},"logprobs":null,"finish_reason":"stop"}]`, conclusion) + chatTail,
		calls: func(body []byte) (string, string, error) {
			var in struct {
				Choices []struct {
					Message struct {
						Content   string `json:"content"`
						ToolCalls []struct {
							ID       string `json:"id"`
							Function struct {
								Name      string `json:"name"`
								Arguments string `json:"arguments"`
							} `json:"function"`
						} `json:"tool_calls"`
					} `json:"message"`
				} `json:"choices"`
			}
			if err := json.Unmarshal(body, &in); err != nil || len(in.Choices) == 0 {
				return "", "", fmt.Errorf("not a response: %w", err)
			}
			for _, c := range in.Choices[0].Message.ToolCalls {
				return c.Function.Name, c.Function.Arguments, nil
			}
			return "", in.Choices[0].Message.Content, nil
		},
	}
	responses = wire{
		name: "OpenAI Responses", model: "gpt-4.1", base: "/v1", path: "/v1/responses",
		call: func(turn int) string {
			return fmt.Sprintf(responsesHead, turn) + fmt.Sprintf(`[{"id":"fc_%02d","type":"function_call","status":"completed","arguments":%q,"call_id":"call_%02d","name":%q}]`,
				turn, arguments(turn), turn, toolName) + responsesTail
		},
		answer: fmt.Sprintf(responsesHead, turns) + fmt.Sprintf(`[{"id":"msg_01","type":"message","status":"completed",`+
			`"content":[{"type":"output_text","annotations":[],"logprobs":[],"text":%q}],"role":"assistant"}]`, conclusion) + responsesTail,
		calls: func(body []byte) (string, string, error) {
			var in struct {
				Output []struct {
					CallID    string `json:"call_id"`
					Name      string `json:"name"`
					Arguments string `json:"arguments"`
					Content   []struct {
						Text string `json:"text"`
					} `json:"content"`
				} `json:"output"`
			}
			if err := json.Unmarshal(body, &in); err != nil || len(in.Output) == 0 {
				return "", "", fmt.Errorf("not a response: %w", err)
			}
			for _, c := range in.Output[0].Content {
				return "", c.Text, nil
			}
			return in.Output[0].Name, in.Output[0].Arguments, nil
		},
	}
	gemini = wire{
		name: "Gemini", model: "gemini-2.5-flash", base: "/v1beta", path: "/v1beta/models/gemini-2.5-flash:generateContent",
		call: func(turn int) string {
			return `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"` + toolName + `","args":` + arguments(turn) + `}}],"role":"model"},` + geminiTail
		},
		answer: `{"candidates":[{"content":{"parts":[{"text":"` + conclusion + `"}],"role":"model"},` + geminiTail,
		calls: func(body []byte) (string, string, error) {
			var in struct {
				Candidates []struct {
					Content struct {
						Parts []struct {
							Text         string `json:"text"`
							FunctionCall struct {
								Name string          `json:"name"`
								Args json.RawMessage `json:"args"`
							} `json:"functionCall"`
						} `json:"parts"`
					} `json:"content"`
				} `json:"candidates"`
			}
			if err := json.Unmarshal(body, &in); err != nil || len(in.Candidates) == 0 || len(in.Candidates[0].Content.Parts) == 0 {
				return "", "", fmt.Errorf("not a response: %w", err)
			}
			p := in.Candidates[0].Content.Parts[0]
			return p.FunctionCall.Name, p.Text + string(p.FunctionCall.Args), nil
		},
	}
	wires = []*wire{&chat, &responses, &gemini}
)

const (
	chatHead = `{"id":"chatcmpl-%02d","object":"chat.completion","created":1763000000,"model":"gpt-4.1-2025-04-14","choices":[{"index":0,"message":`
	chatTail = `,"usage":{"prompt_tokens":82,"completion_tokens":17,"total_tokens":99,"prompt_tokens_details":{"cached_tokens":0,"audio_tokens":0},` +
		`"completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}},"service_tier":"default","system_fingerprint":"fp_1"}`
	responsesHead = `{"id":"resp_%02d","object":"response","created_at":1763000000,"status":"completed","background":false,"error":null,"incomplete_details":null,"instructions":null,` +
		`"max_output_tokens":null,"model":"gpt-4.1-2025-04-14","output":`
	responsesTail = `,"parallel_tool_calls":true,"previous_response_id":null,"reasoning":{"effort":null,"summary":null},"store":false,"temperature":1.0,"text":{"format":{"type":"text"}},` +
		`"tool_choice":"auto","tools":[],"top_p":1.0,"truncation":"disabled","usage":{"input_tokens":82,"input_tokens_details":{"cached_tokens":0},"output_tokens":17,` +
		`"output_tokens_details":{"reasoning_tokens":0},"total_tokens":99},"user":null,"metadata":{}}`
	geminiTail = `"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":82,"candidatesTokenCount":17,"totalTokenCount":99,` +
		`"promptTokensDetails":[{"modality":"TEXT","tokenCount":82}]},"modelVersion":"gemini-2.5-flash","responseId":"resp-01"}`
)

// arguments returns the arguments of the call in a turn. They differ in every turn, because
// some frameworks stop loops that repeat a call.
func arguments(turn int) string { return fmt.Sprintf(`{"place":"%s%02d","days":3}`, place, turn) }

// next returns the turn that a request asks for.
func next(body []byte) int {
	at := bytes.LastIndex(body, []byte(place))
	if at < 0 {
		return 0
	}
	n, _ := strconv.Atoi(string(body[at+len(place) : at+len(place)+2]))
	return n + 1
}

// modelServer is the variable that turns a test binary into the model server. A separate
// process keeps the CPU time of the server out of the client's.
const modelServer = "DRAGOMAN_TEST_MODEL"

func TestMain(m *testing.M) {
	if os.Getenv(modelServer) != "" {
		serve()
		return
	}
	os.Exit(m.Run())
}

// serve serves all APIs until its standard input ends.
func serve() {
	answers := map[string][][]byte{}
	for _, w := range wires {
		for turn := range turns {
			answers[w.path] = append(answers[w.path], []byte(w.call(turn)))
		}
		answers[w.path] = append(answers[w.path], []byte(w.answer))
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	fmt.Println(l.Addr())
	err = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { //nolint:gosec // for a test, no timeouts needed
		body, err := io.ReadAll(r.Body)
		turn, known := next(body), answers[r.URL.Path]
		if err != nil || turn >= len(known) {
			http.Error(w, fmt.Sprintf(`{"error":{"message":"%s: turn %d"}}`, r.URL.Path, turn), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(known[turn])
	}))
	fmt.Fprintln(os.Stderr, err)
}

// raw is the minimum cost for all: the requests of our agent, responses that are read completely
// and decoded once, and nothing else.
func raw(tb testing.TB, w *wire, url string) func() (string, error) {
	tb.Helper()
	bodies := recorded(tb, w)
	return func() (last string, err error) {
		for _, body := range bodies {
			resp, err := http.Post(url+w.path, "application/json", bytes.NewReader(body))
			if err != nil {
				return "", err
			}
			b, err := io.ReadAll(resp.Body)
			if err := errorOf(err, resp.Body.Close()); err != nil {
				return "", err
			}
			if _, last, err = w.calls(b); err != nil {
				return "", err
			}
		}
		return last, nil
	}
}

func errorOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
