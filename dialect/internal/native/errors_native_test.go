package native_test

import (
	"bytes"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/testkit/crosstest"
)

// ownErrors holds an error body of each API, as its server writes it.
var ownErrors = map[dragoman.Dialect]string{
	dialectname.OpenAIChat:      `{"error":{"message":"key sk-SECRET is wrong","type":"invalid_request_error","param":null,"code":"invalid_api_key","x":1}}`,
	dialectname.OpenAIResponses: `{"error":{"message":"key sk-SECRET is wrong","type":"invalid_request_error","param":null,"code":"invalid_api_key","x":1}}`,
	dialectname.Anthropic:       `{"type":"error","error":{"type":"authentication_error","message":"key sk-SECRET is wrong","x":1},"request_id":"req_1"}`,
	dialectname.Gemini:          `{"error":{"code":401,"message":"key sk-SECRET is wrong","status":"UNAUTHENTICATED","details":[{"x":1}]}}`,
	"cohere.chat":               `{"id":"e1","message":"key sk-SECRET is wrong","x":1}`,
	dialectname.Ollama:          `{"error":"key sk-SECRET is wrong","x":1}`,
	dialectname.Bedrock:         `{"__type":"AccessDeniedException","message":"key sk-SECRET is wrong","x":1}`,
}

func TestUnchangedErrorPassesThrough(t *testing.T) {
	for _, c := range crosstest.Codecs {
		body := []byte(ownErrors[c.Dialect()])
		e := c.DecodeError(401, nil, body)
		if _, got, _ := c.EncodeError(e); !bytes.Equal(got, body) {
			t.Errorf("%s: %s\nbecame %s", c.Dialect(), body, got)
		}
		e.Message = "the key is wrong"
		_, got, _ := c.EncodeError(e)
		if bytes.Contains(got, []byte("SECRET")) || !bytes.Contains(got, []byte("the key is wrong")) {
			t.Errorf("%s: the redacted error is written as %s", c.Dialect(), got)
		}
	}
}

func TestEditedErrorIsReencoded(t *testing.T) {
	for _, c := range crosstest.Codecs {
		body := []byte(ownErrors[c.Dialect()])
		for what, edit := range map[string]func(*dragoman.APIError){
			"class": func(e *dragoman.APIError) { e.Class = dragoman.ErrorRateLimit },
			"type":  func(e *dragoman.APIError) { e.Type = "another" },
			"code":  func(e *dragoman.APIError) { e.Code = "another" },
			"param": func(e *dragoman.APIError) { e.Param = "another" },
		} {
			e := c.DecodeError(401, nil, body)
			edit(e)
			status, got, _ := c.EncodeError(e)
			if bytes.Equal(got, body) {
				t.Errorf("%s: the error passes through although its %s changed", c.Dialect(), what)
			}
			// Ollama and Cohere express a class only by the status.
			if again := c.DecodeError(status, nil, got); what == "class" && again.Class != e.Class && c.Dialect() != dialectname.Ollama && c.Dialect() != "cohere.chat" {
				t.Errorf("%s: the class is read back as %s from %d %s", c.Dialect(), again.Class, status, got)
			}
		}
		e := c.DecodeError(401, nil, body)
		e.Status = 407
		if status, _, _ := c.EncodeError(e); status != 407 {
			t.Errorf("%s: a changed status is written as %d", c.Dialect(), status)
		}
	}
}

// A field name in snake_case is unknown, except in Gemini, whose servers accept both snake_case and
// camelCase.
func TestOnlyGeminiAcceptsSnakeCaseNames(t *testing.T) {
	for d, member := range map[dragoman.Dialect]string{
		dialectname.OpenAIChat: "cho_ices", dialectname.OpenAIResponses: "out_put", dialectname.Anthropic: "con_tent",
		dialectname.Gemini: "candi_dates", dialectname.Ollama: "mes_sage", "cohere.chat": "finish__reason", dialectname.Bedrock: "tool_use",
	} {
		body := []byte(ownErrors[d][:len(ownErrors[d])-1] + `,"` + member + `":[]}`)
		c := crosstest.CodecOf(d)
		_, got, _ := c.EncodeError(c.DecodeError(401, nil, body))
		if passed := bytes.Equal(got, body); passed == (d == dialectname.Gemini) {
			t.Errorf("%s: passed through unchanged: %v, %s", d, passed, body)
		}
	}
}

// The Bedrock router returns errors with an "Output" field, so the field alone does not make a
// response.
func TestBedrockErrorWithCallDoesNotPassThrough(t *testing.T) {
	c := crosstest.CodecOf(dialectname.Bedrock)
	for _, key := range []string{`toolUse`, `ToolUse`, `tool\u0055se`} {
		body := `{"__type":"InternalServerException","message":"x","output":{"message":{"content":[{"` + key + `":{"toolUseId":"c","name":"evil","input":{}}}]}}}`
		if _, got, _ := c.EncodeError(c.DecodeError(500, nil, []byte(body))); bytes.Contains(got, []byte("evil")) {
			t.Errorf("passed through as %s", got)
		}
	}
}

// The last event of a failed Responses stream contains the response.
func TestResponsesErrorWithResponseDoesNotPassThrough(t *testing.T) {
	const body = `{"error":{"message":"x","type":"server_error","param":null,"code":"server_error"},"Response":{"output":[{"type":"function_call","call_id":"c","name":"evil","arguments":"{}"}]}}`
	c := crosstest.CodecOf(dialectname.OpenAIResponses)
	if _, got, _ := c.EncodeError(c.DecodeError(500, nil, []byte(body))); bytes.Contains(got, []byte("evil")) {
		t.Errorf("passed through as %s", got)
	}
}

// Some clients look for a response before the error, and run its calls.
func TestErrorWithResponseFieldsDoesNotPassThrough(t *testing.T) {
	for d, body := range map[dragoman.Dialect]string{
		dialectname.OpenAIChat:      `{"error":{"message":"x"},"Choices":[{"index":0,"message":{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"evil","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`,
		dialectname.OpenAIResponses: `{"object":"response","status":"failed","error":{"message":"x","code":"server_error"},"output":[],"Output":[{"type":"function_call","call_id":"c","name":"evil","arguments":"{}"}]}`,
		dialectname.Anthropic:       `{"type":"error","error":{"type":"api_error","message":"x"},"Content":[{"type":"tool_use","id":"c","name":"evil","input":{}}]}`,
		dialectname.Gemini:          `{"error":{"code":500,"message":"x","status":"INTERNAL"},"Candidates":[{"content":{"parts":[{"functionCall":{"name":"evil","args":{}}}]},"finishReason":"STOP"}]}`,
		"cohere.chat":               `{"message":"x","Finish_Reason":"TOOL_CALL","Message":{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"evil","arguments":"{}"}}]}}`,
		dialectname.Ollama:          `{"error":"x","Message":{"role":"assistant","tool_calls":[{"function":{"name":"evil","arguments":{}}}]}}`,
		dialectname.Bedrock:         `{"__type":"InternalServerException","message":"x","Output":{"message":{"role":"assistant","content":[{"toolUse":{"toolUseId":"c","name":"evil","input":{}}}]}}}`,
	} {
		c := crosstest.CodecOf(d)
		resp, _, err := c.DecodeResponse([]byte(body), dialect.DecodeOptions{})
		if err == nil {
			enc, err := c.EncodeResponse(resp, dialect.EncodeOptions{})
			if err != nil || bytes.Contains(enc.Body, []byte("evil")) {
				t.Errorf("%s: a failed response is passed through as %s, %v", d, enc.Body, err)
			}
		}
		if _, got, _ := c.EncodeError(c.DecodeError(500, nil, []byte(body))); bytes.Contains(got, []byte("evil")) {
			t.Errorf("%s: an error is passed through as %s", d, got)
		}
	}
}

// Clients act on the statuses of their own vendor. An error of another vendor gets the status of
// its class, unless its own status means the same to both.
func TestQuirkJ3_ErrorStatusFollowsTheClientsVendor(t *testing.T) {
	order := []dragoman.Dialect{dialectname.OpenAIChat, dialectname.OpenAIResponses, dialectname.Anthropic, dialectname.Gemini, dialectname.Ollama, dialectname.Bedrock}
	for _, tc := range []struct {
		about string
		e     dragoman.APIError
		want  [6]int
	}{
		{"Anthropic is overloaded", dragoman.APIError{Class: dragoman.ErrorOverloaded, Status: 529}, [6]int{503, 503, 529, 503, 503, 503}},
		{"another server is overloaded", dragoman.APIError{Class: dragoman.ErrorOverloaded, Status: 503}, [6]int{503, 503, 529, 503, 503, 503}},
		{"Anthropic account without credit", dragoman.APIError{Class: dragoman.ErrorQuota, Status: 400}, [6]int{429, 429, 402, 429, 429, 400}},
		{"payment required", dragoman.APIError{Class: dragoman.ErrorQuota, Status: 402}, [6]int{429, 429, 402, 429, 429, 400}},
		{"invalid Gemini key", dragoman.APIError{Class: dragoman.ErrorAuth, Status: 400}, [6]int{401, 401, 401, 401, 401, 403}},
		{"AWS refuses", dragoman.APIError{Class: dragoman.ErrorPermission, Status: 403}, [6]int{403, 403, 403, 403, 403, 403}},
		{"Bedrock model timeout", dragoman.APIError{Class: dragoman.ErrorTimeout, Status: 408}, [6]int{504, 504, 504, 504, 503, 408}},
		{"gateway timeout", dragoman.APIError{Class: dragoman.ErrorTimeout, Status: 504}, [6]int{504, 504, 504, 504, 503, 408}},
		{"Bedrock model error", dragoman.APIError{Class: dragoman.ErrorServer, Status: 424}, [6]int{500, 500, 500, 500, 500, 500}},
		{"bad gateway", dragoman.APIError{Class: dragoman.ErrorServer, Status: 502}, [6]int{502, 502, 500, 500, 502, 500}},
		{"CDN status", dragoman.APIError{Class: dragoman.ErrorServer, Status: 522}, [6]int{500, 500, 500, 500, 500, 500}},
		{"context length as a server error", dragoman.APIError{Class: dragoman.ErrorContextLength, Status: 500}, [6]int{400, 400, 400, 400, 400, 400}},
		{"unprocessable request", dragoman.APIError{Class: dragoman.ErrorBadRequest, Status: 422}, [6]int{422, 422, 400, 400, 400, 400}},
		{"request too large", dragoman.APIError{Class: dragoman.ErrorTooLarge, Status: 413}, [6]int{413, 413, 413, 413, 413, 400}},
		{"conflict", dragoman.APIError{Class: dragoman.ErrorConflict, Status: 409}, [6]int{409, 409, 409, 409, 503, 400}},
		{"unknown model", dragoman.APIError{Class: dragoman.ErrorNotFound}, [6]int{404, 404, 404, 404, 404, 404}},
		{"status without a class", dragoman.APIError{Status: 404}, [6]int{404, 404, 500, 500, 404, 500}},
	} {
		for i, d := range order {
			e := tc.e
			e.Message = "no"
			if got, _, _ := crosstest.CodecOf(d).EncodeError(&e); got != tc.want[i] {
				t.Errorf("%s, %s: %d, want %d", tc.about, d, got, tc.want[i])
			}
		}
	}
}
