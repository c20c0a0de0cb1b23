package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
)

// post sends a body of the test.
func (r *rig) post(w pair, path, body string) *reply {
	r.t.Helper()
	hr := r.request(r.t.Context(), w, false)
	hr.URL.Path, hr.URL.RawQuery = path, ""
	hr.Body, hr.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
	return r.read(r.send(hr), w.client, false) //nolint:bodyclose // read does
}

func TestContextLengthErrorsOfCompatibleServersKeepTheirClass(t *testing.T) {
	for about, body := range map[string]string{
		"DeepSeek":   `{"error":{"message":"This model's maximum context length is 131072 tokens. However, you requested 141980 tokens.","type":"invalid_request_error","param":null,"code":"invalid_request_error"}}`,
		"Perplexity": `{"error":{"message":"Requested 115120 to generate tokens, following a prompt of length 40055, which exceeds the max limit of 128000 tokens.","type":"requested_too_many_tokens","code":400}}`,
	} {
		withRig(t, "", func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("content-type", "application/json")
			rw.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(rw, body)
		}, func(r *rig) {
			for _, codec := range clientDialects {
				if codec.Dialect() == dialectname.OpenAIChat {
					continue // the same dialect passes through
				}
				for _, stream := range []bool{false, true} {
					a := r.roundTrip(pair{codec, "chat"}, stream)
					if code := `"code":"context_length_exceeded"`; codec.Dialect() == dialectname.OpenAIResponses && !strings.Contains(string(a.body), code) {
						r.t.Errorf("%s: %s%s: no %s in %s", about, codec.Dialect(), streamed(stream), code, a.body)
					}
					if e := a.apiError(r.t); e.Class != dragoman.ErrorContextLength || a.status != http.StatusBadRequest {
						r.t.Errorf("%s: %s%s: %s, %d %s", about, codec.Dialect(), streamed(stream), e.Class, a.status, a.body)
					}
				}
			}
		})
	}
}

// xAI refuses a bad key with a 400. The key is the gateway's, not the client's.
func TestXAIBadKeyIsNotTheClientsFault(t *testing.T) {
	withRig(t, "", func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("content-type", "application/json")
		rw.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(rw, `{"code":"invalid-argument","error":"Incorrect API key provided. You can obtain an API key from https://console.x.ai."}`)
	}, func(r *rig) {
		for _, upstream := range []string{"chat", "openai", "responses"} {
			for _, codec := range clientDialects {
				w := pair{codec, upstream}
				if a := r.roundTrip(w, false); !isStatus(a.status, http.StatusBadGateway) || strings.Contains(string(a.body), "console.x.ai") {
					r.t.Errorf("%s: %d %s", w, a.status, a.body)
				}
			}
		}
	})
}

// A response above the bound is the upstream's fault, not that of the client's request.
func TestUpstreamResponseAboveTheBoundIs502(t *testing.T) {
	const bounded = "  bounded: {type: openai-chat, base_url: \"http://127.0.0.1:1/v1\", api_key_env: SIM_KEY, retries: 0, max_response_bytes: 1000}\n"
	withRig(t, bounded, func(rw http.ResponseWriter, r *http.Request) {
		writeResponse(rw, r, isStream(r), strings.Replace(oddChat(isStream(r), "", "stop"), `"Hi"`, `"`+strings.Repeat("long ", 1000)+`"`, 1))
	}, func(r *rig) {
		for _, codec := range clientDialects {
			w := pair{codec, "bounded"}
			if a := r.roundTrip(w, false); !isStatus(a.status, http.StatusBadGateway) { // on the transparent route too
				r.t.Errorf("%s: %d %.200s", w, a.status, a.body)
			}
		}
	})
}

// Gemini reads a single value as a list of one.
func TestGeminiRequestWithObjectsInsteadOfLists(t *testing.T) {
	var sent string
	withRig(t, "", func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		sent = string(body)
		writeResponse(rw, r, false, textResponse(dialectOf(r), "hello"))
	}, func(r *rig) {
		for _, codec := range clientDialects {
			if codec.Dialect() != dialectname.Gemini {
				continue
			}
			a := r.post(pair{codec, "openai"}, "/v1beta/models/openai/m:generateContent", `{"contents":{"parts":{"text":"hi"}},"systemInstruction":{"parts":{"text":"Be brief."}},"tools":{"functionDeclarations":[{"name":"get_weather","description":"Weather.","parameters":{"type":"OBJECT","properties":{"city":{"type":"STRING"}}}}]}}`)
			for _, part := range []string{"Be brief.", "get_weather", `"hi"`} {
				if a.status != http.StatusOK || !strings.Contains(sent, part) {
					r.t.Errorf("%s is not sent: %d %s\n%s", part, a.status, a.body, sent)
				}
			}
		}
	})
}

// Hugging Face clients name a tool without the type of the choice.
func TestToolChoiceWithoutTypeReachesTheUpstream(t *testing.T) {
	var sent string
	withRig(t, "", func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		sent = string(body)
		writeResponse(rw, r, false, textResponse(dialectOf(r), "hello"))
	}, func(r *rig) {
		for upstream, want := range map[string]string{
			"chat": `"tool_choice":{"type":"function","function":{"name":"get_weather"}}`, "anthropic": `"tool_choice":{"type":"tool","name":"get_weather"`, "gemini": `"allowedFunctionNames":["get_weather"]`,
		} {
			body := fmt.Sprintf(`{"model":"%s/m","messages":[{"role":"user","content":"hi"}],"max_tokens":50,"tools":[{"type":"function","function":{"name":"get_weather","description":"d","parameters":{"type":"object","properties":{}}}}],"tool_choice":{"function":{"name":"get_weather"}}}`, upstream)
			a := r.post(pair{clientDialects[0], upstream}, "/v1/chat/completions", body)
			if a.status != http.StatusOK || !strings.Contains(sent, want) || a.header.Get("X-Dragoman-Losses") != "" {
				r.t.Errorf("%s: %d %s %v\n%s", upstream, a.status, a.body, a.header, sent)
			}
		}
	})
}

// A conversation without anything to send is refused, in the client's dialect.
func TestRequestWithNothingToSendIsRefused(t *testing.T) {
	withRig(t, "", func(http.ResponseWriter, *http.Request) {}, func(r *rig) {
		for _, upstream := range []string{"chat", "responses", "anthropic", "gemini", "ollama"} {
			for about, messages := range map[string]string{"no message": "", "a result without its call": `{"role":"tool","tool_call_id":"call_1","content":"4 C"}`} {
				a := r.post(pair{clientDialects[0], upstream}, "/v1/chat/completions", fmt.Sprintf(`{"model":"%s/m","max_tokens":50,"messages":[%s]}`, upstream, messages))
				if e := a.apiError(r.t); a.status != http.StatusBadRequest || e.Class != dragoman.ErrorBadRequest || r.requests.Load() != 0 {
					r.t.Errorf("%s: %s: %d %s", upstream, about, a.status, a.body)
				}
			}
		}
	})
}

// Snowflake Cortex writes the zero value of every field.
func TestCortexZeroValuesAreNotCalls(t *testing.T) {
	const message = `{"role":"assistant","content":"Hi","refusal":"","function_call":{"name":"","arguments":""}}`
	withRig(t, "", func(rw http.ResponseWriter, r *http.Request) {
		usage := `"usage":{"prompt_tokens":9,"completion_tokens":4,"total_tokens":13}`
		if !isStream(r) {
			writeResponse(rw, r, false, `{"id":"c1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":`+message+`,"finish_reason":"stop"}],`+usage+`}`)
			return
		}
		writeResponse(rw, r, true, `data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":`+message+`,"finish_reason":null}]}`+"\n\n",
			`data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],`+usage+"}\n\ndata: [DONE]\n\n")
	}, func(r *rig) {
		for _, codec := range clientDialects {
			if codec.Dialect() == dialectname.OpenAIChat {
				continue
			}
			for _, stream := range []bool{false, true} {
				a := r.roundTrip(pair{codec, "chat"}, stream)
				resp, err := a.decode()
				if err != nil || textOf(resp) != "Hi" || len(resp.ToolCalls()) != 0 || resp.Stop.Reason != dragoman.StopEnd {
					r.t.Errorf("%s%s: %v\n%s", codec.Dialect(), streamed(stream), err, a.body)
				}
			}
		}
	})
}

// Some servers number the content of a message from 1. Each client gets the text once.
func TestContentIndexFromOneDoesNotDoubleTheText(t *testing.T) {
	const (
		message = `{"id":"msg_1","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Hello there","annotations":[],"logprobs":[]}]}`
		head    = `{"id":"resp_1","object":"response","created_at":1,"model":"m",`
	)
	var stream strings.Builder
	for i, event := range []string{
		`"type":"response.created","response":` + head + `"status":"in_progress","output":[]}`,
		`"type":"response.output_item.added","output_index":0,"item":{"id":"msg_1","type":"message","role":"assistant","status":"in_progress","content":[]}`,
		`"type":"response.content_part.added","item_id":"msg_1","output_index":0,"content_index":1,"part":{"type":"output_text","text":"","annotations":[]}`,
		`"type":"response.output_text.delta","item_id":"msg_1","output_index":0,"content_index":1,"delta":"Hello "`,
		`"type":"response.output_text.delta","item_id":"msg_1","output_index":0,"content_index":1,"delta":"there"`,
		`"type":"response.output_text.done","item_id":"msg_1","output_index":0,"content_index":1,"text":"Hello there"`,
		`"type":"response.content_part.done","item_id":"msg_1","output_index":0,"content_index":1,"part":{"type":"output_text","text":"Hello there","annotations":[]}`,
		`"type":"response.output_item.done","output_index":0,"item":` + message,
		`"type":"response.completed","response":` + head + `"status":"completed","output":[` + message + `],"usage":{"input_tokens":1,"output_tokens":2,"total_tokens":3}}`,
	} {
		fmt.Fprintf(&stream, "data: {\"sequence_number\":%d,%s}\n\n", i, event)
	}
	withRig(t, "", func(rw http.ResponseWriter, r *http.Request) { writeResponse(rw, r, true, stream.String()) }, func(r *rig) {
		for _, codec := range clientDialects {
			if codec.Dialect() == dialectname.OpenAIResponses {
				continue // the same dialect passes through
			}
			a := r.roundTrip(pair{codec, "responses"}, true)
			resp, err := a.decode()
			if err != nil || textOf(resp) != "Hello there" {
				r.t.Errorf("%s: %q, %v\n%s", codec.Dialect(), textOf(resp), err, a.body)
			}
		}
	})
}

// Gemini repeats its counts in each chunk, and may lower them.
func TestLastGeminiUsageReachesEveryClient(t *testing.T) {
	chunk := func(text, more, usage string) string {
		return `data: {"candidates":[{"index":0,"content":{"role":"model","parts":[{"text":"` + text + `"}]}` + more + `}],"usageMetadata":` + usage + `,"modelVersion":"m","responseId":"r"}` + "\r\n\r\n"
	}
	withRig(t, "", func(rw http.ResponseWriter, r *http.Request) {
		writeResponse(rw, r, true, chunk("Hel", "", `{"promptTokenCount":20,"candidatesTokenCount":30,"thoughtsTokenCount":40,"totalTokenCount":90}`),
			chunk("lo", `,"finishReason":"STOP"`, `{"promptTokenCount":20,"candidatesTokenCount":12,"thoughtsTokenCount":8,"totalTokenCount":40}`))
	}, func(r *rig) {
		for _, codec := range clientDialects {
			if codec.Dialect() == dialectname.Gemini {
				continue // the same dialect passes through
			}
			a := r.roundTrip(pair{codec, "gemini"}, true)
			resp, err := a.decode()
			if err != nil || resp.Usage.Output != dragoman.Counted(20) {
				r.t.Errorf("%s: output %+v, %v\n%s", codec.Dialect(), resp.Usage.Output, err, a.body)
			}
		}
	})
}

// Clients of Ollama read a response line by line.
func TestOllamaResponseWithMultilineArgumentsIsOneLine(t *testing.T) {
	withRig(t, "", func(rw http.ResponseWriter, r *http.Request) {
		writeResponse(rw, r, false, "{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"m\",\"content\":[{\"type\":\"tool_use\",\"id\":\"toolu_1\",\"name\":\"get_weather\",\"input\":{\n  \"city\": \"Oslo\",\r\n  \"days\": [1,\n 2]\n}}],"+
			"\"stop_reason\":\"tool_use\",\"stop_sequence\":null,\"usage\":{\"input_tokens\":7,\"output_tokens\":3}}")
	}, func(r *rig) {
		tools := `"tools":[{"type":"function","function":{"name":"get_weather","description":"d","parameters":{"type":"object","properties":{"city":{"type":"string"}}}}}]`
		for _, codec := range clientDialects {
			if codec.Dialect() != dialectname.Ollama {
				continue
			}
			a := r.post(pair{codec, "anthropic"}, "/api/chat", `{"model":"anthropic/m","stream":false,"messages":[{"role":"user","content":"hi"}],`+tools+`}`)
			body := strings.TrimSuffix(string(a.body), "\n")
			if a.status != http.StatusOK || strings.ContainsAny(body, "\r\n") || !strings.Contains(body, "Oslo") {
				r.t.Errorf("%d %q", a.status, a.body)
			}
		}
	})
}
