package openaichat_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
)

// halfCall is a stream with an unfinished call.
var halfCall = sse(deltas(`{"content":"hi"}`, `{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"a\":"}}]}`)...)

// closed feeds a body and returns the events and the errors of Feed and Close.
func closed(t *testing.T, body string) (events []dragoman.Event, feed, end error) {
	t.Helper()
	d := codec.NewStreamDecoder(dialect.DecodeOptions{})
	emit := func(ev dragoman.Event) error {
		if c, ok := ev.(*dragoman.Chunk); ok {
			ev = &dragoman.Chunk{Dialect: c.Dialect, Raw: append([]byte(nil), c.Raw...), Loss: c.Loss}
		}
		events = append(events, ev)
		return nil
	}
	feed = d.Feed([]byte(body), emit)
	end = d.Close(emit)
	checkOrder(t, events)
	return events, feed, end
}

func streamErrors(events []dragoman.Event) (out []*dragoman.APIError) {
	for _, ev := range events {
		if e, ok := ev.(*dragoman.StreamError); ok {
			out = append(out, e.Err)
		}
	}
	return out
}

func TestStream_FailureIsWrittenOnce(t *testing.T) {
	for name, body := range map[string]string{
		"cut between events":            halfCall,
		"cut in the middle of an event": halfCall + `data: {"id":"r","choi`,
		"cut before the blank line":     halfCall + "data: " + deltas(`{"content":"x"}`)[0],
		"cut after a carriage return":   halfCall + "data: " + deltas(`{"content":"x"}`)[0] + "\r",
		"invalid chunk":                 halfCall + "data: {nope\n\n",
		"index out of range":            halfCall + sse(`{"choices":[{"index":1000000000}]}`),
	} {
		t.Run(name, func(t *testing.T) {
			events, _, _ := closed(t, body)
			out, _ := encodeStream(t, dialect.EncodeOptions{}, events)
			if strings.Count(out, "\ndata: {\"error\":") != 1 {
				t.Fatalf("%s", out)
			}
			hasNot(t, out, "[DONE]")
			// The error is a separate event, the last one.
			list := strings.Split(strings.TrimSpace(strings.ReplaceAll(out, "\r", "\n")), "\n\n")
			if last := strings.TrimSpace(list[len(list)-1]); !strings.HasPrefix(last, `data: {"error":`) {
				t.Errorf("the last event is %s", last)
			}
		})
	}
}

func TestStream_StreamErrorIsWrittenOnce(t *testing.T) {
	for name, tail := range map[string]string{
		"OpenAI":         `data: {"error":{"message":"boom","type":"server_error"}}` + "\n\n",
		"in the choice":  `data: {"choices":[{"index":0,"error":{"message":"boom"}}]}` + "\n\n",
		"no envelope":    "event: error\ndata: {\"message\":\"boom\"}\n\n",
		"two data lines": "data: {\"error\":\ndata: \"boom\"}\n\n",
		"no blank line":  `data: {"error":"boom"}`,
	} {
		t.Run(name, func(t *testing.T) {
			events, feed, end := closed(t, halfCall+tail)
			if feed != nil || end != nil || len(streamErrors(events)) != 1 {
				t.Fatalf("%v, %v", feed, end)
			}
			out, _ := encodeStream(t, dialect.EncodeOptions{}, events)
			again, _, _ := closed(t, out)
			if errs := streamErrors(again); len(errs) != 1 || errs[0].Message != streamErrors(events)[0].Message || strings.Count(out, "boom") != 1 {
				t.Errorf("%s", out)
			}
		})
	}
	// The error of another stream is in no chunk of this one.
	events, _, _ := closed(t, halfCall)
	for i, ev := range events {
		if _, ok := ev.(*dragoman.StreamError); ok {
			events[i] = &dragoman.StreamError{Err: codec.DecodeError(503, nil, []byte(`{"error":"boom"}`))}
		}
	}
	out, _ := encodeStream(t, dialect.EncodeOptions{}, events)
	has(t, out, `data: {"error":{"message":"boom"`)
}

func TestStream_CloseWithoutEndWritesError(t *testing.T) {
	events, _, _ := closed(t, halfCall)
	var chunks []dragoman.Event
	for _, ev := range events {
		if _, ok := ev.(*dragoman.StreamError); !ok {
			chunks = append(chunks, ev)
		}
	}
	out, _ := encodeStream(t, dialect.EncodeOptions{}, chunks)
	if strings.Count(out, "\ndata: {\"error\":") != 1 {
		t.Errorf("%s", out)
	}
}

func TestStreamDecoder_CloseReturnsTheCause(t *testing.T) {
	done := sse(finish(`"stop"`))
	for name, tc := range map[string]struct{ body, cause string }{
		"Feed failed":                              {halfCall + "data: {nope\n\n", "the stream broke: "},
		"Feed failed at the first event":           {"data: {nope\n\n", "the stream broke: "},
		"cut in an event":                          {halfCall + `data: {"id":"r","`, "cut in the middle of an event: "},
		"cut in the first event":                   {`data: {"id":"r`, "cut in the middle of an event: "},
		"cut in an event, after its finish reason": {halfCall + done + `data: {"usage":{"prom`, "cut in the middle of an event: "},
		"cut in the marker":                        {halfCall + done + `data: [DO`, "cut in the middle of an event: "},
		"one choice of two has ended":              {halfCall + done + sse(`{"choices":[{"index":1,"delta":{"content":"x"}}]}`), "before every choice had its finish reason"},
		"no choice has ended":                      {halfCall, "before its finish reason"},
	} {
		t.Run(name, func(t *testing.T) {
			events, feed, end := closed(t, tc.body)
			if !errors.Is(end, dragoman.ErrIncompleteStream) {
				t.Fatalf("Feed: %v, Close: %v", feed, end)
			}
			has(t, end.Error(), tc.cause)
			if strings.Contains(tc.body, done) {
				hasNot(t, end.Error(), "before its finish reason")
			}
			if strings.HasSuffix(tc.cause, ": ") {
				decodeError(t, end)
			}
			if feed != nil && !strings.Contains(end.Error(), feed.Error()) {
				t.Errorf("%v does not contain %v", end, feed)
			}
			if errs := streamErrors(events); len(errs) != 1 || errs[0].Error() != end.Error() || !errs[0].Retryable() {
				t.Errorf("%v", errs)
			}
			for _, ev := range events { // an incomplete event is not emitted
				if c, ok := ev.(*dragoman.Chunk); ok && len(c.Raw) > 0 && strings.Contains(tc.cause, "cut") && !strings.HasSuffix(string(c.Raw), "\n\n") {
					t.Errorf("emitted: %q", c.Raw)
				}
			}
		})
	}
}

// Close returns the error of emit.
func TestStreamDecoder_CloseReturnsTheErrorOfEmit(t *testing.T) {
	enough := errors.New("enough")
	d := codec.NewStreamDecoder(dialect.DecodeOptions{})
	if err := d.Feed([]byte("data: "+finish(`"stop"`)), func(dragoman.Event) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(func(dragoman.Event) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("%v", err)
	}
}

func TestStream_InvalidContentTypeIsReported(t *testing.T) {
	for name, delta := range map[string]string{
		"number":                 `{"content":7}`,
		"deferred by reasoning":  `{"content":7,"reasoning":"t"}`,
		"object":                 `{"content":{"text":"hi"}}`,
		"number among the parts": `{"content":[7]}`,
		"number as refusal":      `{"refusal":7}`,
		"bool as reasoning":      `{"reasoning":true}`,
	} {
		t.Run(name, func(t *testing.T) {
			d := decodeStream(t, dialect.DecodeOptions{}, stream(`"stop"`, delta, delta, `{"content":"hi"}`))
			if d.feed != nil || d.resp.Text() != "hi" {
				t.Fatalf("%v %+v", d.feed, d.resp)
			}
			if l := lost(t, d.rep, dragoman.Dropped, "neither text nor parts"); l.Severity != dragoman.Serious || len(d.rep.Losses) != 1 {
				t.Errorf("%s", d.rep)
			}
		})
	}
	d := decodeStream(t, dialect.DecodeOptions{}, stream(`"stop"`, `{"content":null,"refusal":null,"reasoning":null}`))
	lossless(t, d.rep)
}

func TestStream_BodyThatIsNotAStream(t *testing.T) {
	for name, tc := range map[string]struct {
		body, message string
		class         dragoman.ErrorClass
		retry         bool
	}{
		"JSON error":       {`{"error":{"message":"bad key","type":"invalid_request_error","code":"invalid_api_key"}}`, "bad key", dragoman.ErrorAuth, false},
		"on several lines": {"{\n  \"error\": {\n\n    \"message\": \"slow\",\n    \"code\": 429\n  }\n}\n", "slow", dragoman.ErrorRateLimit, true},
		"HTML":             {"<!DOCTYPE html>\n<html>gateway</html>\n", `no event in the stream; it begins with "<!DOCTYPE html>\n<html>gateway</html>"`, dragoman.ErrorServer, true},
		"whole response":   {`{"id":"r","choices":[]}`, `no event in the stream; it begins with "{\"id\":\"r\",\"choices\":[]}"`, dragoman.ErrorServer, true},
		"endless HTML":     {"<html>" + strings.Repeat("x", 100_000), `no event in the stream; it begins with "<html>` + strings.Repeat("x", 194) + `…"`, dragoman.ErrorServer, true},
		"only comments":    {": ping\n\n", "the stream ended before its finish reason", dragoman.ErrorServer, true},
	} {
		t.Run(name, func(t *testing.T) {
			events, feed, end := closed(t, tc.body)
			if feed != nil || !errors.Is(end, dragoman.ErrIncompleteStream) {
				t.Fatalf("Feed: %v, Close: %v", feed, end)
			}
			var api *dragoman.APIError
			if !errors.As(end, &api) || api.Message != tc.message || api.Class != tc.class || api.Retryable() != tc.retry {
				t.Errorf("%+v", api)
			}
			if errs := streamErrors(events); len(errs) != 1 || errs[0] != api {
				t.Errorf("%v", errs)
			}
			out, _ := encodeStream(t, dialect.EncodeOptions{}, events)
			if strings.Count(out, `data: {"error":`) != 1 {
				t.Errorf("%s", out)
			}
		})
	}
}

func TestErrors_InvalidStatusIsReplaced(t *testing.T) {
	for _, status := range []int{-1, 0, 200, 399, 600, 1000} {
		if got, _, _ := codec.EncodeError(&dragoman.APIError{Class: dragoman.ErrorRateLimit, Status: status}); got != 429 {
			t.Errorf("status %d is written as %d", status, got)
		}
	}
	for _, status := range []int{400, 418, 599} { // a native error keeps its status
		own := &dragoman.Native{Format: dragoman.Format(codec.Dialect()), JSON: []byte(`{"error":{"message":"slow","code":"rate_limit_exceeded"}}`)}
		if got, _, _ := codec.EncodeError(&dragoman.APIError{Class: dragoman.ErrorRateLimit, Status: status, Native: own}); got != status {
			t.Errorf("status %d is written as %d", status, got)
		}
	}
}

func TestErrors_InvalidNativeBodyIsNotWritten(t *testing.T) {
	for _, native := range []string{"", "<html>", `{"error":{"message":"boom"}`, `{"error":"boom"} <!-- x -->`} {
		e := &dragoman.APIError{Class: dragoman.ErrorServer, Message: "boom", Native: &dragoman.Native{Format: dragoman.Format(codec.Dialect()), JSON: []byte(native)}}
		_, body, _ := codec.EncodeError(e)
		sameJSON(t, string(body), `{"error":{"message":"boom","type":"server_error","param":null,"code":null}}`)
	}
	e := codec.DecodeError(500, nil, []byte(`{"error":"boom"} <!-- x -->`))
	if e.Message != "boom" || e.Native != nil {
		t.Errorf("%+v", e)
	}
}

func TestResponse_BodyWithoutChoicesIsAnError(t *testing.T) {
	for name, body := range map[string]string{
		"empty object":       `{}`,
		"null error":         `{"error":null}`,
		"Anthropic response": `{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn"}`,
		"OpenAI Responses":   `{"id":"resp_1","object":"response","output":[]}`,
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := codec.DecodeResponse([]byte(body), dialect.DecodeOptions{})
			if de := decodeError(t, err); de.What != "response" {
				t.Errorf("%+v", de)
			}
			has(t, fmt.Sprint(err), "no choices: check that this is a Chat Completions response")
		})
	}
	for _, body := range []string{`{"choices":[]}`, `{"choices":null}`} {
		if _, _, err := codec.DecodeResponse([]byte(body), dialect.DecodeOptions{}); err != nil {
			t.Errorf("%s: %v", body, err)
		}
	}
	resp, _ := decodeResponse(t, `{"object":"error","message":"boom","type":"rate_limit_error","code":429}`)
	if resp.Error == nil || resp.Error.Message != "boom" || resp.Error.Class != dragoman.ErrorRateLimit || resp.Stop.Reason != dragoman.StopError {
		t.Errorf("%+v", resp)
	}
}

// under returns a chunk with the given id.
func under(id, choice string) string {
	return `{"choices":[` + choice + `],"id":"` + id + `","model":"m"}`
}

func TestQuirkC37_SplicedResponsesAreRefused(t *testing.T) {
	content := func(delta string) string { return `{"index":0,"delta":` + delta + `}` }
	const half = `{"tool_calls":[{"index":0,"id":"x","function":{"name":"rm","arguments":"{\"p\":"}}]}`
	const rest = `"tool_calls":[{"index":0,"function":{"arguments":"\"/\"}"}}]`
	for what, body := range map[string][]string{
		"call completed by the second response": {under("A", content(half)), under("B", content(`{"role":"assistant",`+rest+`}`))},
		"in the chunk that finishes it":         {under("A", content(half)), under("B", `{"finish_reason":"tool_calls","index":0,"delta":{"role":"assistant",`+rest+`}}`)},
		"role alone": {
			under("A", content(`{"role":"assistant","content":""}`)), under("A", content(`{"content":"first "}`)),
			under("B", content(`{"role":"assistant","content":""}`)), under("B", content(half)), under("B", content(`{`+rest+`}`)),
		},
		"after a start with another id": {
			under("gateway", content(`{"role":"assistant"}`)), under("A", content(half)), under("B", content(`{"role":"assistant",`+rest+`}`)),
		},
	} {
		t.Run(what, func(t *testing.T) {
			events, feed, end := closed(t, sse(append(body, under("B", `{"index":0,"delta":{},"finish_reason":"tool_calls"}`), "[DONE]")...))
			if at := decodeError(t, feed); !strings.Contains(at.Error(), "spliced") || end == nil {
				t.Errorf("%v; %v", feed, end)
			}
			for _, ev := range events {
				if e, ok := ev.(*dragoman.PartEnd); ok {
					if c, ok := e.Part.(*dragoman.ToolCall); ok && c.Problem == nil {
						t.Errorf("%q may run", c.Name)
					}
				}
			}
		})
	}
	first := under("A", content(`{"role":"assistant","content":"a"}`))
	for what, body := range map[string][]string{
		"new id and role in every chunk": {first, under("B", content(`{"role":"assistant","content":"b"}`)), under("C", content(`{"role":"assistant","content":"c"}`))},
		"new id in every chunk":          {first, under("B", content(`{"content":"b"}`)), under("C", content(`{"role":"assistant","content":"c"}`))},
		"role repeated with the same id": {first, under("A", content(`{"content":"b"}`)), under("A", content(`{"role":"assistant","content":"c"}`))},
		"chunk without an id":            {first, under("A", content(`{"content":"b"}`)), under("", content(`{"role":"assistant","content":"c"}`))},
		"only the finish has both":       {first, under("A", content(`{"content":"bc"}`)), under("B", `{"index":0,"finish_reason":"stop","delta":{"role":"assistant","content":""}}`)},
		"another choice starts":          {first, under("A", content(`{"content":"bc"}`)), under("B", `{"index":1,"delta":{"role":"assistant","content":"x"},"finish_reason":"stop"}`)},
	} {
		t.Run(what, func(t *testing.T) {
			got := streamed(t, sse(append(body, under("B", `{"index":0,"delta":{},"finish_reason":"stop"}`), "[DONE]")...))
			if got.Output[0].Text() != "abc" {
				t.Errorf("%q", got.Output[0].Text())
			}
		})
	}
}
