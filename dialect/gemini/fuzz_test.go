package gemini_test

import (
	"testing"

	"github.com/dragoman-go/dragoman/internal/testkit/codectest"
)

func FuzzDecodeRequest(f *testing.F) {
	for _, seed := range []string{
		`{}`, `[]`, snakeRequest, `{"contents":{"parts":[{"functionResponse":{}}]}}`, `{"contents":{"parts":{"text":"hi"}}}`,
		`{"contents":[{"role":"model","parts":[{"functionCall":{"name":"f","args":{"a":1,"a":2}}},{"text":"","thoughtSignature":"s"},{"thought":true,"text":"t"}]},{"role":"function","parts":[{"functionResponse":{"name":"f","response":{"error":[1]},"parts":[{"inlineData":{"mimeType":"image/png","data":"AA"}},7]}}]}]}`,
		`{"tools":[{"functionDeclarations":[{"name":"f","parameters":{"type":"OBJECT","properties":{"a":{"type":"STRING","nullable":true}}}}],"googleSearch":{},"codeExecution":null}],"toolConfig":{"functionCallingConfig":{"mode":2,"allowedFunctionNames":["f"]}}}`,
		`{"generationConfig":{"thinkingConfig":{"thinkingLevel":"HIGH","thinkingBudget":-1},"responseMimeType":"application/json","responseSchema":{"type":"STRING"},"stopSequences":[null],"topK":1e99,"seed":"7"},"cachedContent":"c","model":"models/m","systemInstruction":{"role":"x","parts":[]}}`,
		`{"contents":[{"role":"martian","parts":[{},{"novelty":1},{"text":"a","inlineData":{}},{"FunctionCall":{}},{"functionCall":{"willContinue":true}}]},{"parts":null}],"store":false}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) { codectest.AnyRequest(t, codec, body) })
}

func FuzzDecodeResponse(f *testing.F) {
	for _, seed := range []string{
		`{}`, responseBody("STOP", `{"text":"x"}`), responseBody("STOP", `{"functionCall":{"id":5,"name":null,"args":"{\"a\":1}"}},{"functionCall":{"args":[]}}`),
		responseBody("MAX_TOKENS", `{"functionCall":{"name":"f","args":{"a":1,"a":2}},"text":"x"},{"thoughtSignature":"s"}`), responseBody("", ``), responseBody("007", `{"text":"x"}`), responseBody("", `{"functionCall":{"x":0,"name":[]}}`),
		`{"error":{"code":500,"message":"x"}}`, `{"promptFeedback":{"blockReason":"SAFETY"}}`, `{"candidates":[],"usageMetadata":{"promptTokenCount":-5,"thoughtsTokenCount":1e30}}`,
		`{"candidates":[{"finishReason":1},{"content":{"parts":[{"codeExecutionResult":{"id":"a"}}]},"index":7}],"createTime":"2026-01-01T00:00:00.5Z"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		// Every decodable response can be written as a valid stream.
		if resp, _ := codectest.AnyResponse(t, codec, body); resp != nil {
			codectest.Written(t, codec, codectest.EventsOf(resp), checkWire)
		}
	})
}

func FuzzStreamDecoder(f *testing.F) {
	f.Add(richStream, uint16(7))
	f.Add(asArray(richStream), uint16(50))
	f.Add([]byte("[1,\"a\",{\"error\":{}}]"), uint16(2))
	f.Add([]byte(sseStream(chunk("", `{"functionCall":{"name":"f","partialArgs":[{"jsonPath":"$['a'][0].b","boolValue":true}],"willContinue":true}}`), chunk("TELEPATHY", `{"functionCall":{"name":"g"}},{"functionCall":{}}`))), uint16(1))
	f.Add([]byte("data: {\"promptFeedback\":{\"blockReason\":\"OTHER\"}}\n\ndata: [DONE]\n\n"), uint16(3))
	f.Add([]byte(sseStream(chunk("SAFETY", `{"text":"a","text":"b"}`), chunk("STOP", `{"functionCall":{"id":"1","name":"f","args":{}}},{"functionCall":{"id":"1","name":"f","args":{}}}`))), uint16(9))
	f.Add([]byte(",\n\r\ndata: {\"candidates\":[{\"finishReason\":0}]}"), uint16(0))
	f.Fuzz(func(t *testing.T, stream []byte, cut uint16) {
		evs, _ := codectest.AnyStream(t, codec, stream, cut)
		codectest.Written(t, codec, codectest.Bare(evs), checkWire)
	})
}

func FuzzDecodeError(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `7`, `{"error":{"code":429,"message":"busy","status":"RESOURCE_EXHAUSTED","details":[{"retryDelay":"1e400s"},{"retryDelay":"3s"},7]}}`,
		`[{"error":{"message":"x"}}]`, `{"error":"x"} trailing`, `{"error":{"message":`, "<html>\xff", `{"message":"a","error":null}`, `[[[{"detail":"d"}]]]`,
		`{"error":{"message":"a","message":"b"}}`, `{"error":{"message":"a"},"Candidates":[]}`,
	} {
		f.Add(503, []byte(seed))
		f.Add(338, []byte(seed))
	}
	f.Fuzz(func(t *testing.T, status int, body []byte) { codectest.AnyError(t, codec, status, body, "candidates") })
}
