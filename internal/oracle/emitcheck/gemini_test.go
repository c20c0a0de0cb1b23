package emitcheck_test

import (
	"testing"

	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
)

const (
	gemHead = `"modelVersion":"m","responseId":"r1"}`
	gemText = `{"candidates":[{"content":{"role":"model","parts":[{"text":"Hi"}]},"index":0}],` + gemHead
	gemCall = `{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"id":"fc-1","name":"f","args":{"a":1}},"thoughtSignature":"c2ln"},{"functionCall":{"id":"fc-2","name":"g"}}]}}],` + gemHead
	gemEnd  = `{"candidates":[{"content":{"role":"model","parts":[{"text":""}]},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":4,"thoughtsTokenCount":2,"totalTokenCount":15},` + gemHead
	gemErr  = `{"error":{"code":503,"message":"Busy.","status":"UNAVAILABLE"}}`
)

// sent writes chunks as events.
func sent(chunks ...string) (out string) {
	for _, c := range chunks {
		out += "data: " + c + "\n\n"
	}
	return out
}

func TestGeminiStreams(t *testing.T) {
	blocked := `{"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":{"promptTokenCount":1,"totalTokenCount":1},` + gemHead
	pieces := sent(`{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"f","willContinue":true}}]}}],`+gemHead,
		`{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"partialArgs":[{"jsonPath":"$.a","stringValue":"x"}],"willContinue":true}}]}}],`+gemHead)
	closed := sent(`{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{}}]}}],` + gemHead)
	streams{dialectname.Gemini, []string{
		sent(gemText, gemEnd), sent(gemText, gemCall, gemEnd), sent(gemText, gemErr), sent(blocked), pieces + closed + sent(gemEnd),
		"[" + gemText + "\n,\n" + gemEnd + "]", "[" + gemText + ",\r\n" + gemEnd + "\n]\n", "[" + gemErr + "]",
	}, []broken{
		{"no end", sent(gemText), "candidate 0 has no finishReason"},
		{"nothing", "", "no candidates and no promptFeedback"},
		{"two ends", sent(gemText, gemEnd, gemEnd), "chunk 2 /candidates/0: candidate 0 continues after its finishReason"},
		{"after error", sent(gemErr, gemText), "chunk 1: after the end, which was an error"},
		{"another role", sent(swap(gemText, `"role":"model"`, `"role":"assistant"`), gemEnd), "chunk 0 /candidates/0/content/role: \"assistant\", want \"model\""},
		{"no role", sent(swap(gemText, `"role":"model",`, ""), gemEnd), "chunk 0 /candidates/0/content/role: missing"},
		{"no parts", sent(swap(gemText, `{"text":"Hi"}`, ""), gemEnd), "chunk 0 /candidates/0/content/parts: empty"},
		{"no content", sent(`{"candidates":[{"index":0}],`+gemHead, gemEnd), "chunk 0 /candidates/0/content: missing"},
		{"no id", sent(swap(gemText, `,"responseId":"r1"`, ""), gemEnd), "chunk 0 /responseId: missing"},
		{"no model", sent(swap(gemText, `"modelVersion":"m",`, ""), gemEnd), "chunk 0 /modelVersion: missing"},
		{"another id", sent(gemText, swap(gemEnd, "r1", "r2")), "chunk 1: responseId or modelVersion differ"},
		{"args is a string", sent(swap(gemCall, `{"a":1}`, `"{}"`), gemEnd), "chunk 0 /candidates/0/content/parts/0/functionCall/args: not an object"},
		{"no name", sent(swap(gemCall, `,"name":"g"`, ""), gemEnd), "/parts/1/functionCall/name: missing"},
		{"duplicate id", sent(swap(gemCall, "fc-2", "fc-1"), gemEnd), "/parts/1/functionCall/id: duplicate \"fc-1\""},
		{"signature is not base64", sent(swap(gemCall, "c2ln", "s!"), gemEnd), "/parts/0/thoughtSignature: not base64"},
		{"two kinds of data in a part", sent(swap(gemText, `"text":"Hi"`, `"text":"Hi","functionCall":{"name":"f"}`), gemEnd), "/parts/0/functionCall: together with text"},
		{"an empty part", sent(swap(gemText, `"text":"Hi"`, `"thought":true`), gemEnd), "/parts/0: a part without data"},
		{"unknown finish", sent(gemText, swap(gemEnd, "STOP", "stop")), "chunk 1 /candidates/0/finishReason: \"stop\""},
		{"no usage", sent(gemText, swap(gemEnd, `"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":4,"thoughtsTokenCount":2,"totalTokenCount":15},`, "")), "usageMetadata: missing at the end"},
		{"wrong usage total", sent(gemText, swap(gemEnd, `"totalTokenCount":15`, `"totalTokenCount":13`)), "chunk 1 /usageMetadata/totalTokenCount: 13, but the sum of the other counts is 15"},
		{"more cached than input", sent(gemText, swap(gemEnd, `"promptTokenCount":9`, `"promptTokenCount":9,"cachedContentTokenCount":10`)), "chunk 1 /usageMetadata/cachedContentTokenCount: more than the 9 prompt tokens"},
		{"a blocked prompt with candidates", sent(swap(gemText, `"modelVersion"`, `"promptFeedback":{"blockReason":"SAFETY"},"modelVersion"`)), "chunk 0 /candidates: together with a blocked prompt"},
		{"a blocked prompt after candidates", sent(gemText, blocked), "chunk 1 /candidates: together with a blocked prompt"},
		{"a missing candidate", sent(swap(gemText, `"index":0`, `"index":1`), swap(gemEnd, `"index":0`, `"index":1`)), "candidate 0 has no finishReason"},
		{"a call without end", pieces + sent(gemEnd), "inside a call with streamed arguments"},
		{"[DONE]", sent(gemText, gemEnd) + "data: [DONE]\n\n", "chunk 2: not JSON"},
		{"an error without status", sent(swap(gemErr, `,"status":"UNAVAILABLE"`, "")), "chunk 0 /error/status: missing"},
		{"an array without end", "[" + gemText + ",\n" + gemEnd, "element 2: not JSON"},
		{"an array without comma", "[" + gemText + "\n" + gemEnd + "]", "element 1: not JSON"},
		{"after array", "[" + gemText + "," + gemEnd + "]{}", "after the array"},
		{"an element after the end", "[" + gemText + "," + gemEnd + "," + gemText + "]", "chunk 2 /candidates/0: candidate 0 continues"},
	}}.run(t)
}

func TestGeminiWholeResponsesAndErrors(t *testing.T) {
	wholes{dialectname.Gemini, []string{gemEnd, swap(gemEnd, "STOP", "FINISH_REASON_UNSPECIFIED")}, []broken{
		{"no finish", gemText, "candidate 0 has no finishReason"},
		{"no candidates", `{` + gemHead, "/candidates: missing"},
		{"no role", swap(gemEnd, `"role":"model",`, ""), "/candidates/0/content/role: missing"},
		{"no usage", swap(gemEnd, `"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":4,"thoughtsTokenCount":2,"totalTokenCount":15},`, ""), "usageMetadata: missing"},
		{"no model", swap(gemEnd, `"modelVersion":"m",`, ""), "/modelVersion: missing"},
		{"a partial call", swap(gemEnd, `"text":""`, `"functionCall":{"name":"f","willContinue":true}`), "/functionCall/willContinue: in a response that is not streamed"},
		{"an array", "[" + gemEnd + "]", "not an object"},
		{"two values", gemEnd + gemEnd, "more data after the value"},
	}}.run(t)
	failures{dialectname.Gemini, 503, []string{gemErr, "[" + gemErr + "]"}, []broken{
		{"another code", swap(gemErr, "503", "500"), "/error/code: 500, but the HTTP status is 503"},
		{"no message", swap(gemErr, "Busy.", ""), "/error/message: empty"},
		{"no status", swap(gemErr, `,"status":"UNAVAILABLE"`, ""), "/error/status: missing"},
		{"an unknown status", swap(gemErr, "UNAVAILABLE", "unavailable"), "/error/status: \"unavailable\""},
		{"details without a type", swap(gemErr, `"UNAVAILABLE"`, `"UNAVAILABLE","details":[{}]`), "/error/details/0/@type: missing"},
		{"two errors", "[" + gemErr + "," + gemErr + "]", "must have one element"},
	}}.run(t)
}
