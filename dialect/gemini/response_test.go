package gemini_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/testkit/codectest"
	"github.com/google/go-cmp/cmp"
)

func TestQuirkB18_StopWithCallsMeansToolCalls(t *testing.T) {
	for _, c := range []struct {
		finish string
		want   dragoman.StopReason
		runs   bool
	}{
		{"STOP", dragoman.StopToolCalls, true},
		{"", dragoman.StopToolCalls, true},
		{"MAX_TOKENS", dragoman.StopLength, false},
		{"CONTINUATION", dragoman.StopLength, false},
		{"SAFETY", dragoman.StopContentFilter, false},
		{"IMAGE_SAFETY", dragoman.StopContentFilter, false},
		// Quirk B21 and similar.
		{"MALFORMED_FUNCTION_CALL", dragoman.StopMalformedCall, false},
		{"UNEXPECTED_TOOL_CALL", dragoman.StopMalformedCall, false},
		{"TOO_MANY_TOOL_CALLS", dragoman.StopMalformedCall, false},
		{"OTHER", dragoman.StopError, false},
		{"MISSING_THOUGHT_SIGNATURE", dragoman.StopError, false},
		// Quirk B20.
		{"FINISH_REASON_UNSPECIFIED", dragoman.StopUnknown, false},
		{"TELEPATHY", dragoman.StopUnknown, false},
	} {
		body := responseBody(c.finish, `{"functionCall":{"name":"f","args":{}}}`)
		for kind, resp := range map[string]*dragoman.Response{"whole": decodeResponse(t, body)} {
			got := resp.ToolCalls()
			if resp.Stop.Reason != c.want || resp.Stop.Native != c.finish || len(got) != 1 || (got[0].Problem == nil) != c.runs {
				t.Errorf("%s %q: stop %+v, call %+v", kind, c.finish, resp.Stop, got[0])
			}
			// The re-encoded response must keep clients from running the call.
			enc, err := codec.EncodeResponse(resp, dialect.EncodeOptions{Rebuild: true})
			again := decodeResponse(t, string(enc.Body))
			if err != nil || again.Stop.Reason != c.want {
				t.Errorf("%q: rebuilt as %+v, %v", c.finish, again.Stop, err)
			}
		}
		if c.finish == "" {
			continue // a stream needs a finish reason
		}
		resp := collect(t, sseStream(body))
		if got := resp.ToolCalls(); resp.Stop.Reason != c.want || (got[0].Problem == nil) != c.runs {
			t.Errorf("stream %q: stop %+v, call %+v", c.finish, resp.Stop, got[0])
		}
	}
}

func TestNumericFinishReasons(t *testing.T) {
	body := `{"candidates":[{"content":{"parts":[{"text":"4"}],"role":"model"},"finishReason":1,"safetyRatings":[{"category":8,"probability":1}]}],"modelVersion":"m","responseId":"r"}`
	resp := decodeResponse(t, body)
	if resp.Stop.Reason != dragoman.StopEnd || resp.Stop.Native != "1" {
		t.Errorf("%+v", resp.Stop)
	}
	enc, err := codec.EncodeResponse(resp, dialect.EncodeOptions{Rebuild: true})
	if err != nil || !strings.Contains(string(enc.Body), `"finishReason":1,`) || !strings.Contains(string(enc.Body), `"safetyRatings":[{"category":8,"probability":1}]`) {
		t.Errorf("%s, %v", enc.Body, err)
	}
	// The two servers number the other reasons differently.
	if resp := decodeResponse(t, strings.Replace(body, `"finishReason":1`, `"finishReason":9`, 1)); resp.Stop.Reason != dragoman.StopUnknown {
		t.Errorf("%+v", resp.Stop)
	}
}

func TestBlockedPromptIsContentFilter(t *testing.T) {
	const body = `{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT","safetyRatings":[]},"usageMetadata":{"promptTokenCount":5,"totalTokenCount":5},"modelVersion":"m","responseId":"r"}`
	whole := decodeResponse(t, body)
	streamed := collect(t, sseStream(body))
	for kind, resp := range map[string]*dragoman.Response{"whole": whole, "stream": streamed} {
		if resp.Stop.Reason != dragoman.StopContentFilter || resp.Stop.Native != "PROHIBITED_CONTENT" || len(resp.Output) != 0 {
			t.Errorf("%s: %+v", kind, resp.Stop)
		}
		enc, err := codec.EncodeResponse(resp, dialect.EncodeOptions{Rebuild: true})
		if err != nil || strings.Contains(string(enc.Body), "candidates\"") || !strings.Contains(string(enc.Body), `"blockReason":"PROHIBITED_CONTENT"`) {
			t.Errorf("%s: %s, %v", kind, enc.Body, err)
		}
	}
}

func TestUsageCounts(t *testing.T) {
	body := strings.Replace(responseBody("STOP", `{"text":"x"}`), `"modelVersion"`,
		`"usageMetadata":{"promptTokenCount":100,"toolUsePromptTokenCount":7,"cachedContentTokenCount":40,"candidatesTokenCount":10,"thoughtsTokenCount":5,"totalTokenCount":122,"trafficType":"ON_DEMAND","serviceTier":"flex"},"modelVersion"`, 1)
	resp := decodeResponse(t, body)
	want := dragoman.Usage{Input: dragoman.Counted(107), CacheRead: dragoman.Counted(40), Output: dragoman.Counted(15), Reasoning: dragoman.Counted(5)}
	got := resp.Usage
	got.Extra = nil
	if got != want || resp.ServiceTier != "flex" {
		t.Errorf("got %+v, tier %q", got, resp.ServiceTier)
	}
	enc, err := codec.EncodeResponse(resp, dialect.EncodeOptions{Rebuild: true})
	if err != nil {
		t.Fatal(err)
	}
	if again := decodeResponse(t, string(enc.Body)); !cmp.Equal(again.Usage, resp.Usage, ignoreSidecars) {
		t.Errorf("rebuilt: %s", enc.Body)
	}
	if u := decodeResponse(t, responseBody("STOP", `{"text":"x"}`)).Usage; u.Input.Known || u.Output.Known {
		t.Errorf("unknown became %+v", u)
	}
}

func TestQuirkC31_OmittedUsageIsKept(t *testing.T) {
	with := func(usage, c string) string {
		return strings.Replace(c, `"modelVersion"`, `"usageMetadata":`+usage+`,"modelVersion"`, 1)
	}
	resp := collect(t, sseStream(
		with(`{"promptTokenCount":20,"thoughtsTokenCount":9,"cachedContentTokenCount":4}`, chunk("", `{"text":"a"}`)),
		with(`{"promptTokenCount":20,"candidatesTokenCount":3}`, chunk("", `{"text":"b"}`)),
		with(`{"promptTokenCount":0,"candidatesTokenCount":6,"totalTokenCount":35}`, chunk("STOP", `{"text":""}`))))
	got := resp.Usage
	got.Extra = nil
	if want := (dragoman.Usage{Input: dragoman.Counted(20), CacheRead: dragoman.Counted(4), Output: dragoman.Counted(15), Reasoning: dragoman.Counted(9)}); got != want {
		t.Errorf("got %+v", got)
	}
}

func TestQuirkC31_LastUsageReplacesEarlierCounts(t *testing.T) {
	with := func(usage, c string) string {
		return strings.Replace(c, `"modelVersion"`, `"usageMetadata":`+usage+`,"modelVersion"`, 1)
	}
	for about, tc := range map[string]struct {
		earlier, last string
		want          dragoman.Usage
	}{
		"fewer": {
			`{"promptTokenCount":20,"candidatesTokenCount":30,"thoughtsTokenCount":40,"totalTokenCount":90}`,
			`{"promptTokenCount":20,"candidatesTokenCount":12,"thoughtsTokenCount":8,"totalTokenCount":40}`,
			dragoman.Usage{Input: dragoman.Counted(20), Output: dragoman.Counted(20), Reasoning: dragoman.Counted(8)},
		},
		"without thoughts, adds up": {
			`{"promptTokenCount":20,"candidatesTokenCount":30,"thoughtsTokenCount":40,"totalTokenCount":90}`,
			`{"promptTokenCount":20,"candidatesTokenCount":30,"totalTokenCount":50}`,
			dragoman.Usage{Input: dragoman.Counted(20), Output: dragoman.Counted(30)},
		},
		"without tool use, adds up": {
			`{"promptTokenCount":20,"toolUsePromptTokenCount":100,"candidatesTokenCount":1,"totalTokenCount":121}`,
			`{"promptTokenCount":20,"candidatesTokenCount":5,"totalTokenCount":25}`,
			dragoman.Usage{Input: dragoman.Counted(20), Output: dragoman.Counted(5)},
		},
		"without the cached part of the prompt": {
			`{"promptTokenCount":20,"cachedContentTokenCount":4,"totalTokenCount":20}`,
			`{"promptTokenCount":20,"candidatesTokenCount":5,"totalTokenCount":25}`,
			dragoman.Usage{Input: dragoman.Counted(20), CacheRead: dragoman.Counted(4), Output: dragoman.Counted(5)},
		},
		"without an output": {
			`{"promptTokenCount":20,"candidatesTokenCount":5,"totalTokenCount":25}`,
			`{"promptTokenCount":20,"totalTokenCount":20}`,
			dragoman.Usage{Input: dragoman.Counted(20), Output: dragoman.Counted(5)},
		},
	} {
		resp := collect(t, sseStream(with(tc.earlier, chunk("", `{"text":"a"}`)), with(tc.last, chunk("STOP", `{"text":"b"}`))))
		got := resp.Usage
		got.Extra = nil
		if got != tc.want {
			t.Errorf("%s: got %+v, want %+v", about, got, tc.want)
		}
	}
}

func TestOtherCandidatesAreAlternatives(t *testing.T) {
	body := `{"candidates":[{"content":{"parts":[{"text":"a"}],"role":"model"},"finishReason":"STOP"},{"content":{"parts":[{"functionCall":{"name":"f","args":{}}}],"role":"model"},"finishReason":"STOP","index":1,"tokenCount":4}],"modelVersion":"m","responseId":"r"}`
	whole := decodeResponse(t, body)
	if whole.Text() != "a" || len(whole.Alternatives) != 1 || whole.Alternatives[0].Stop.Reason != dragoman.StopToolCalls {
		t.Errorf("%+v", whole)
	}
	if diff := cmp.Diff(whole, collect(t, sseStream(body)), ignoreSidecars); diff != "" {
		t.Error(diff)
	}
	enc, err := codec.EncodeResponse(whole, dialect.EncodeOptions{Rebuild: true})
	if diff := cmp.Diff(whole, decodeResponse(t, string(enc.Body)), ignoreSidecars); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

func TestQuirkG8_ThoughtFlag(t *testing.T) {
	resp := decodeResponse(t, responseBody("STOP", `{"text":"hm","thought":true},{"text":"said","thoughtSignature":"s1"},{"functionCall":{"name":"f","args":{}},"thoughtSignature":"s2"},{"text":"","thoughtSignature":"s3"},{"text":""}`))
	p := resp.Output[0].Parts
	if len(p) != 4 {
		t.Fatalf("%d parts", len(p))
	}
	if r, ok := p[0].(*dragoman.Reasoning); !ok || r.Text != "hm" {
		t.Errorf("%+v", p[0])
	}
	if x, ok := p[1].(*dragoman.Text); !ok || x.Signature != "s1" {
		t.Errorf("%+v", p[1])
	}
	if c, ok := p[2].(*dragoman.ToolCall); !ok || c.Signature != "s2" {
		t.Errorf("%+v", p[2])
	}
	if x, ok := p[3].(*dragoman.Text); !ok || x.Text != "" || x.Signature != "s3" { // quirk C30
		t.Errorf("%+v", p[3])
	}
}

func TestQuirkB11_CallsThatShareAnID(t *testing.T) {
	same := `{"functionCall":{"id":"1","name":"f","args":{"a":1}}}`
	other := `{"functionCall":{"id":"1","name":"f","args":{"a":2}}}`
	for kind, resp := range map[string]*dragoman.Response{
		"whole":  decodeResponse(t, responseBody("STOP", same+`,`+same+`,`+other)),
		"stream": collect(t, sseStream(chunk("", same), chunk("", same), chunk("STOP", other))),
	} {
		calls := resp.ToolCalls()
		if len(calls) != 2 || calls[0].ID != "1" || calls[1].ID == "1" || !calls[1].Synthetic {
			t.Errorf("%s: %+v", kind, calls)
		}
	}
}

func TestAmbiguousCallIsBlocked(t *testing.T) {
	for name, part := range map[string]string{
		"two calls":               `{"functionCall":{"name":"f","args":{}},"functionCall":{"name":"g","args":{}}}`,
		"two spellings":           `{"functionCall":{"name":"f","args":{}},"function_call":{"name":"g","args":{}}}`,
		"other letter case":       `{"functionCall":{"name":"f","args":{}},"FunctionCall":{"name":"g","args":{}}}`,
		"lower case":              `{"functioncall":{"name":"f","args":{}}}`,
		"two names":               `{"functionCall":{"name":"f","name":"g","args":{}}}`,
		"a name in another case":  `{"functionCall":{"name":"f","Name":"g","args":{}}}`,
		"two arguments":           `{"functionCall":{"name":"f","args":{"a":1},"args":{"a":2}}}`,
		"duplicate argument":      `{"functionCall":{"name":"f","args":{"a":1,"a":2}}}`,
		"text in the same part":   `{"text":"hi","functionCall":{"name":"f","args":{}}}`,
		"result in the same part": `{"functionResponse":{"name":"f","response":{}},"functionCall":{"name":"f","args":{}}}`,
		"fragment":                `{"functionCall":{"name":"f","willContinue":true}}`,
		"not an object":           `{"functionCall":"f"}`,
	} {
		t.Run(name, func(t *testing.T) {
			body := responseBody("STOP", part)
			resp := decodeResponse(t, body)
			calls := resp.ToolCalls()
			if len(calls) != 1 || calls[0].Problem == nil {
				t.Fatalf("%+v", calls)
			}
			streamed := collect(t, sseStream(body)).ToolCalls()
			if len(streamed) != 1 || streamed[0].Problem == nil {
				t.Fatalf("stream: %+v", streamed)
			}
			if name == "fragment" {
				return // no client runs it
			}
			evs, err := drain(dialect.DecodeOptions{}, []byte(sseStream(body)))
			if err != nil {
				t.Fatal(err)
			}
			codectest.Reencoded(t, codec, evs)
			if name == "duplicate argument" {
				return // the problem is in the arguments only
			}
			if resp.Native != nil || resp.Output[0].Native != nil {
				t.Error("the ambiguous response is passed through")
			}
		})
	}
}

func TestInvalidResponseIsError(t *testing.T) {
	for _, body := range []string{`{}`, `[]`, `{"usageMetadata":{}}`, `{"candidates":7}`, `{"candidates":[7]}`, `{"candidates":[{"content":{"parts":[{"text":7}]}}]}`, `{"candidates":[{"content":[]}]}`, `{"candidates":`} {
		_, _, err := codec.DecodeResponse([]byte(body), dialect.DecodeOptions{})
		var at *dragoman.DecodeError
		if !errors.As(err, &at) {
			t.Errorf("%s: %v", body, err)
		}
	}
	_, _, err := codec.DecodeResponse([]byte(`{"candidates":[{"content":{"parts":[{"text":7}]}}]}`), dialect.DecodeOptions{})
	var at *dragoman.DecodeError
	if !errors.As(err, &at) || at.Pointer != "/candidates/0/content/parts/0/text" || at.Offset != 44 {
		t.Errorf("%+v", at)
	}
}

func TestErrorsRoundTrip(t *testing.T) {
	const body = `{"error":{"code":429,"message":"Quota exceeded.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.5s"}]}}`
	e := codec.DecodeError(429, http.Header{}, []byte(body))
	if e.Class != dragoman.ErrorRateLimit || e.Type != "RESOURCE_EXHAUSTED" || e.Code != "429" || e.RetryAfter != 34500*time.Millisecond {
		t.Errorf("%+v", e)
	}
	if status, out, _ := codec.EncodeError(e); status != 429 || string(out) != body {
		t.Errorf("%d %s", status, out)
	}
	for _, c := range []struct {
		status int
		body   string
		want   dragoman.ErrorClass
	}{
		{0, `[{"error":{"code":503,"message":"busy","status":"UNAVAILABLE"}}]`, dragoman.ErrorOverloaded},
		{400, `{"error":{"code":400,"message":"API key not valid.","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}`, dragoman.ErrorAuth},
		{400, `{"error":{"code":400,"message":"The input token count (5) exceeds the maximum number of tokens allowed (4).","status":"INVALID_ARGUMENT"}}`, dragoman.ErrorContextLength},
		{0, `{"error":{"code":500,"message":"x"}}`, dragoman.ErrorServer},
		{404, `{"error":{"code":404,"message":"x","status":"NOT_FOUND"}}`, dragoman.ErrorNotFound},
		{403, `nonsense`, dragoman.ErrorPermission},
		{504, ``, dragoman.ErrorTimeout},
	} {
		e := codec.DecodeError(c.status, nil, []byte(c.body))
		if e.Class != c.want || e.Message == "" {
			t.Errorf("%s: %+v", c.body, e)
		}
	}
	for _, class := range []dragoman.ErrorClass{dragoman.ErrorAuth, dragoman.ErrorPermission, dragoman.ErrorNotFound, dragoman.ErrorConflict, dragoman.ErrorRateLimit, dragoman.ErrorOverloaded, dragoman.ErrorTimeout, dragoman.ErrorServer, dragoman.ErrorBadRequest} {
		status, out, _ := codec.EncodeError(&dragoman.APIError{Class: class, Message: "m", RetryAfter: 2 * time.Second})
		if again := codec.DecodeError(status, nil, out); again.Class != class || again.Message != "m" || again.RetryAfter != 2*time.Second {
			t.Errorf("%s decoded as %+v", class, again)
		}
	}
	if status, out, _ := codec.EncodeError(nil); status != 500 || len(out) == 0 {
		t.Errorf("%d %s", status, out)
	}
}

func TestErrorInResponseBlocksCalls(t *testing.T) {
	resp := decodeResponse(t, `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{}}}],"role":"model"},"finishReason":"STOP"}],"error":{"code":500,"message":"x","status":"INTERNAL"}}`)
	if resp.Error == nil || resp.Stop.Reason != dragoman.StopError || resp.ToolCalls()[0].Problem == nil || resp.Native != nil {
		t.Errorf("%+v", resp)
	}
}

func TestForeignResponseIsStrictlyValid(t *testing.T) {
	resp := &dragoman.Response{
		ID: "msg_1", Model: "claude", Origin: foreignOrigin, Stop: dragoman.Stop{Reason: dragoman.StopToolCalls, Native: "tool_use"},
		Usage: dragoman.Usage{Input: dragoman.Counted(3), Output: dragoman.Counted(4)},
		Output: []dragoman.Message{
			newMessage(dragoman.RoleAssistant, &dragoman.Reasoning{Text: "hm", Signature: "secret"}, &dragoman.Text{Text: "a"}),
			newMessage(dragoman.RoleAssistant, call("toolu_1", "f", `{"a": 1}`)),
		},
	}
	enc, err := codec.EncodeResponse(resp, dialect.EncodeOptions{})
	want := `{"candidates":[{"content":{"parts":[{"text":"hm","thought":true},{"text":"a"},{"functionCall":{"id":"toolu_1","name":"f","args":{"a": 1}}}],"role":"model"},"finishReason":"STOP","index":0}],` +
		`"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":4,"totalTokenCount":7},"modelVersion":"claude","responseId":"msg_1"}`
	if err != nil || string(enc.Body) != want {
		t.Errorf("%v\ngot  %s\nwant %s", err, enc.Body, want)
	}
	has(t, enc.Report, dragoman.Dropped, "/output/0/parts/0/signature")
	empty, err := codec.EncodeResponse(&dragoman.Response{ID: "x", Stop: dragoman.Stop{Reason: dragoman.StopRefusal}}, dialect.EncodeOptions{Model: "m"})
	if err != nil || !strings.Contains(string(empty.Body), `"parts":[{"text":""}],"role":"model"},"finishReason":"SAFETY"`) || !strings.Contains(string(empty.Body), `"modelVersion":"m"`) {
		t.Errorf("%s, %v", empty.Body, err)
	}
}

func TestQuirkB21_MalformedCallAffectsOnlyItsCandidate(t *testing.T) {
	for _, word := range []string{"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS"} {
		resp := decodeResponse(t, `{"candidates":[{"finishReason":"`+word+`","finishMessage":"print(f("},{"content":{"parts":[{"functionCall":{"name":"f","args":{}}}],"role":"model"},"finishReason":"STOP","index":1}]}`)
		if resp.Stop.Reason != dragoman.StopMalformedCall || resp.Stop.Native != word || len(resp.Output) != 0 {
			t.Errorf("%s: %+v", word, resp.Stop)
		}
		if c := resp.Alternatives[0].Output[0].ToolCalls()[0]; c.Problem != nil {
			t.Errorf("%s: the other candidate's call has %v", word, c.Problem)
		}
	}
}
