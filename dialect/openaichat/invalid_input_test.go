package openaichat_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
)

func TestInvalidRequest_ErrorHasPositionAndPartialResult(t *testing.T) {
	for _, tc := range []struct {
		name, body, pointer string
		at                  string // the text at the error offset; empty if not checked
	}{
		{"nothing", ``, "", ""},
		{"cut off", `{"model":"m","messages":[`, "", ""},
		{"invalid JSON", `{"model":"m",nope}`, "", "ope"},
		{"not an object", `["model"]`, "", ""},
		{"two documents", `{"model":"m"} {}`, "", ""},
		{"number as model", `{"model":5}`, "/model", "5"},
		{"object as messages", `{"model":"m","messages":{}}`, "/messages", "{}"},
		{"string as message", `{"model":"m","messages":["x",5]}`, "/messages/0", `"x"`},
		{"number as message, followed by more", `{"model":"m","messages":[5,6,7],"stream":true}`, "/messages/0", `5`},
		{"list as name", `{"model":"m","messages":[{"role":"user","content":"x"},{"role":"user","name":[1]}]}`, "/messages/1/name", `[1]`},
		{"object as tool_calls", `{"model":"m","messages":[{"role":"assistant","tool_calls":{}}]}`, "/messages/0/tool_calls", "{}"},
		{"object as name of a result", `{"model":"m","messages":[{"role":"tool","tool_call_id":"a","name":{}}]}`, "/messages/0/name", `{}`},
		{"string as tools", `{"model":"m","tools":"x"}`, "/tools", `"x"`},
		{"number as tool", `{"model":"m","tools":[{"type":"function","function":{"name":"f"}},7],"stream":true}`, "/tools/1", "7"},
		{"list as tool name", `{"model":"m","tools":[{"type":"function","function":{"name":["f"]}}]}`, "/tools/0/function/name", `["f"]`},
		{"string as strict flag", `{"model":"m","tools":[{"type":"function","function":{"name":"f","strict":"yes"}}]}`, "/tools/0/function/strict", `"yes"`},
		{"number as name in tool_choice", `{"model":"m","tool_choice":{"type":"function","function":{"name":5}}}`, "/tool_choice/function/name", "5"},
		{"string as stream flag", `{"model":"m","stream":"yes"}`, "/stream", `"yes"`},
		{"word as temperature", `{"model":"m","temperature":"hot"}`, "/temperature", `"hot"`},
		{"number as stop", `{"model":"m","stop":5}`, "/stop", "5"},
		{"number as function", `{"model":"m","functions":[1]}`, "/functions/0", "1"},
		{"list as function name", `{"model":"m","functions":[{"name":["f"]}]}`, "/functions/0/name", `["f"]`},
		{"list as response format", `{"model":"m","response_format":[]}`, "/response_format", "[]"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			req, _, err := codec.DecodeRequest([]byte(tc.body), dialect.DecodeOptions{})
			de := decodeError(t, err)
			if de.Dialect != dialectname.OpenAIChat || de.What != "request" {
				t.Errorf("%+v", de)
			}
			if tc.pointer != "" && de.Pointer != tc.pointer {
				t.Errorf("pointer %q, want %q (%v)", de.Pointer, tc.pointer, err)
			}
			if tc.at != "" && (de.Offset < 0 || !strings.HasPrefix(tc.body[de.Offset:], tc.at)) {
				t.Errorf("byte %d of %s is not %q (%v)", de.Offset, tc.body, tc.at, err)
			}
			if strings.HasPrefix(tc.body, `{"model":"m"`) && req.Model != "m" {
				t.Errorf("the model was lost: %+v", req)
			}
			if strings.Contains(tc.body, `"stream":true`) && !req.Stream {
				t.Error("the fields after the invalid element were lost")
			}
		})
	}
}

func TestInvalidResponse_ErrorHasPositionAndPartialResult(t *testing.T) {
	for _, tc := range []struct{ name, body, pointer, at string }{
		{"nothing", ``, "", ""},
		{"cut off", `{"id":"r","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usa`, "", ""},
		{"a list", `[]`, "", ""},
		{"HTML", `<html>`, "", "<"},
		{"string as choices", `{"id":"r","choices":"x"}`, "/choices", `"x"`},
		{"number as second choice", `{"id":"r","choices":[{"index":0,"message":{"role":"assistant","content":"hi"}},5,6],"model":"m"}`, "/choices/1", "5"},
		{"string as message", `{"id":"r","choices":[{"message":"hi"}]}`, "/choices/0/message", `"hi"`},
		{"object as name", `{"id":"r","choices":[{"message":{"role":"assistant","name":{}}}]}`, "/choices/0/message/name", `{}`},
		{"list as index", `{"id":"r","choices":[{"index":[]}]}`, "/choices/0/index", `[]`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			resp, _, err := codec.DecodeResponse([]byte(tc.body), dialect.DecodeOptions{})
			de := decodeError(t, err)
			if tc.pointer != "" && de.Pointer != tc.pointer {
				t.Errorf("pointer %q, want %q", de.Pointer, tc.pointer)
			}
			if tc.at != "" && (de.Offset < 0 || !strings.HasPrefix(tc.body[de.Offset:], tc.at)) {
				t.Errorf("byte %d of %s is not %q", de.Offset, tc.body, tc.at)
			}
			if strings.Contains(tc.body, `"id":"r"`) && resp.ID != "r" {
				t.Error("the id was lost")
			}
			if strings.Contains(tc.body, `"content":"hi"`) && resp.Text() != "hi" {
				t.Error("the text was lost")
			}
		})
	}
}

func TestInvalidStream_KeepsContentAndBlocksCalls(t *testing.T) {
	good := sse(deltas(`{"content":"hi","tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}`)...)
	for name, bad := range map[string]string{
		"invalid JSON":         "data: {nope\n\n",
		"string":               "data: \"x\"\n\n",
		"string as choices":    sse(`{"choices":"x"}`),
		"string as choice":     sse(`{"choices":["x"]}`),
		"huge choice index":    sse(`{"choices":[{"index":1000000000,"delta":{"content":"x"}}]}`),
		"string as delta":      sse(`{"choices":[{"index":0,"delta":"x"}]}`),
		"string as tool_calls": sse(deltas(`{"tool_calls":"x"}`)...),
		"number as name":       sse(deltas(`{"tool_calls":[{"index":0,"function":{"name":5}}]}`)...),
		"deferred, invalid":    sse(deltas(`{"tool_calls":[{"index":0,"function":{"name":5}}],"content":"x"}`)...),
		"two documents":        sse(`{} {}`),
	} {
		t.Run(name, func(t *testing.T) {
			for _, chunks := range [][]string{{good + bad + stream(`"stop"`)}, {good, bad, stream(`"stop"`)}} {
				d := decodeStream(t, dialect.DecodeOptions{}, chunks...)
				de := decodeError(t, d.feed)
				if de.What != "stream" {
					t.Errorf("%+v", de)
				}
				if d.resp.Text() != "hi" && !strings.HasPrefix(name, "deferred") {
					t.Errorf("%+v", d.resp)
				}
				if !errors.Is(d.err, dragoman.ErrIncompleteStream) {
					t.Errorf("collected: %v", d.err)
				}
				for _, c := range d.resp.ToolCalls() {
					if c.Problem == nil {
						t.Error("a call of a broken stream may run")
					}
				}
			}
		})
	}
}

func TestBounds(t *testing.T) {
	deep := strings.Repeat("[", 100_000)
	for name, body := range map[string]string{
		"nesting in a field":     `{"model":"m","x":` + deep,
		"nesting in a schema":    `{"model":"m","tools":[{"type":"function","function":{"name":"f","parameters":` + deep,
		"closed nesting":         `{"model":"m","x":` + deep + strings.Repeat("]", 100_000) + `}`,
		"nesting in content":     `{"model":"m","messages":[{"role":"user","content":` + deep + strings.Repeat("]", 100_000) + `}]}`,
		"nesting in reasoning":   `{"choices":[{"message":{"role":"assistant","reasoning":` + strings.Repeat(`{"text":`, 100_000) + `"x"` + strings.Repeat("}", 100_000) + `}}]}`,
		"nesting in arguments":   `{"choices":[{"message":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":` + strings.Repeat(`{"a":`, 100_000) + `1` + strings.Repeat("}", 100_000) + `}}]}}]}`,
		"nesting in a tool call": `{"choices":[{"message":{"tool_calls":` + deep + strings.Repeat("]", 100_000) + `}}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err1 := codec.DecodeRequest([]byte(body), dialect.DecodeOptions{})
			_, _, err2 := codec.DecodeResponse([]byte(body), dialect.DecodeOptions{})
			d := decodeStream(t, dialect.DecodeOptions{}, "data: "+body+"\n\n")
			for _, err := range []error{err1, err2, d.feed} {
				if err != nil && len(err.Error()) > 2000 {
					t.Errorf("error text of %d bytes", len(err.Error()))
				}
			}
			if err1 == nil && err2 == nil {
				t.Error("no bound")
			}
		})
	}
	t.Run("deep arguments in a string are a call problem", func(t *testing.T) {
		resp, _ := message(t, `{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f","arguments":"`+strings.Repeat("[", 50_000)+`"}}]}`, `"tool_calls"`)
		problem(t, calls(resp)[0], codes.ProblemInvalidJSON)
	})
	t.Run("body over its limit", func(t *testing.T) {
		o := dialect.DecodeOptions{MaxBytes: 20}
		body := []byte(`{"model":"m","messages":[]}`)
		if _, _, err := codec.DecodeRequest(body, o); !errors.Is(err, dragoman.ErrTooLarge) {
			t.Errorf("%v", err)
		}
		if _, _, err := codec.DecodeResponse(body, o); !errors.Is(err, dragoman.ErrTooLarge) {
			t.Errorf("%v", err)
		}
		d := codec.NewStreamDecoder(o)
		if err := d.Feed([]byte("data: "+string(body)), func(dragoman.Event) error { return nil }); !errors.Is(err, dragoman.ErrTooLarge) {
			t.Errorf("%v", err)
		}
	})
	t.Run("huge choice index in a whole response", func(t *testing.T) {
		resp, rep := decodeResponse(t, `{"choices":[{"index":1000000000,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"},{"index":-5,"message":{"role":"assistant","content":"ho"},"finish_reason":"stop"}]}`)
		if resp.Text() != "hi" || len(resp.Alternatives) != 1 {
			t.Errorf("%+v", resp)
		}
		lost(t, rep, dragoman.Renamed, "index 1000000000")
	})
	t.Run("many unknown fields", func(t *testing.T) {
		var b strings.Builder
		b.WriteString(`{"model":"m","messages":[{"role":"user","content":"x"}]`)
		for i := range 20_000 {
			fmt.Fprintf(&b, `,"k%d":%d`, i, i)
		}
		b.WriteString("}")
		req, _ := decodeRequest(t, b.String())
		m, _ := encodeRequest(t, req, dialect.EncodeOptions{Rebuild: true})
		if len(m) < 20_000 {
			t.Errorf("%d fields left", len(m))
		}
	})
}

func TestMalformedCallsAreKept(t *testing.T) {
	resp, rep := message(t, `{"role":"assistant","content":"x","tool_calls":[null,5,{"id":"a","type":"function","function":{"name":["f"]}},{"id":"b","type":"function","function":{"name":"g","arguments":"{}"}}]}`, `"tool_calls"`)
	cs := calls(resp)
	sameCalls(t, cs, call("a", "", ""), call("b", "g", "{}"))
	if cs[0].Problem == nil || cs[1].Problem != nil {
		t.Errorf("%+v", cs)
	}
	if len(rep.Losses) == 0 { // the number
		t.Errorf("%s", rep)
	}
	enc, err := codec.EncodeResponse(resp, dialect.EncodeOptions{Rebuild: true})
	if err != nil {
		t.Fatal(err)
	}
	has(t, string(enc.Body), `"name":["f"]`)
}

// Feed returns the error of emit.
func TestEmit_ErrorEndsTheStream(t *testing.T) {
	stop := errors.New("enough")
	body := []byte(stream(`"stop"`, `{"content":"a"}`, `{"content":"b"}`, `{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}`))
	total := 0
	d := codec.NewStreamDecoder(dialect.DecodeOptions{})
	count := func(dragoman.Event) error { total++; return nil }
	if err := d.Feed(body, count); err != nil {
		t.Fatal(err)
	}
	for n := range total {
		d := codec.NewStreamDecoder(dialect.DecodeOptions{})
		seen := 0
		err := d.Feed(body, func(dragoman.Event) error {
			if seen == n {
				return stop
			}
			seen++
			return nil
		})
		if !errors.Is(err, stop) {
			t.Errorf("stopped at event %d: %v", n, err)
		}
	}
}

func TestInvalidStream_ErrorHasEventAndPosition(t *testing.T) {
	good := sse(deltas(`{"content":"a"}`, `{"content":"b"}`)...) + ": keep-alive\n\n"
	call := func(name string) string { return `{"tool_calls":[{"index":0,"function":{"name":` + name + `}}]` }
	for _, tc := range []struct{ name, event, pointer, at string }{
		{"cut off", `data: {"choices":[{"index":0,"delta":{"content":"x"`, "/choices/0/delta", "\n\n"},
		{"string", `data: "x"`, "", `"x"`},
		{"after other fields", "id: 7\r\nevent: x\r\ndata:  7\r\n", "", "7\r\n"},
		{"string as choices", `data: {"choices":"x"}`, "/choices", `"x"`},
		{"string as delta", `data: {"choices":[{"index":0,"delta":"x"}]}`, "/choices/0/delta", `"x"`},
		{"number as name", "data: " + deltas(call("5") + "}")[0], "/choices/0/delta/tool_calls/0/function/name", "5}"},
		{"deferred, invalid", "data: " + deltas(call("5") + `,"content":"x"}`)[0], "/choices/0/delta/tool_calls/0/function/name", "5}"},
		{"two documents", `data: {"id":"r"} {}`, "", " {}"},
		{"over two lines", "data: {\"choices\":\ndata: 5}", "/choices", "data: {"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			body := good + tc.event + "\n\n"
			for _, chunks := range [][]string{{body}, strings.SplitAfter(body, "")} {
				d := decodeStream(t, dialect.DecodeOptions{}, chunks...)
				de := decodeError(t, d.feed)
				if de.Pointer != tc.pointer || !strings.Contains(de.Error(), "event 3: ") {
					t.Errorf("%v", de)
				}
				if de.Offset < 0 || !strings.HasPrefix(body[de.Offset:], tc.at) {
					t.Errorf("byte %d of %q is not %q", de.Offset, body, tc.at)
				}
			}
		})
	}
	d := decodeStream(t, dialect.DecodeOptions{MaxBytes: 100}, good, "data: "+strings.Repeat("x", 200)+"\n\n")
	if de := decodeError(t, d.feed); de.Offset != int64(len(good)) || !strings.Contains(de.Error(), "event 3: ") || !errors.Is(de, dragoman.ErrTooLarge) {
		t.Errorf("%v", de)
	}
}

func TestRequestMessageNeedsRole(t *testing.T) {
	for role, want := range map[string]struct{ pointer, text string }{
		``:                     {"/messages/1", "has no role"},
		`"role":null,`:         {"/messages/1", "has no role"},
		`"role":"",`:           {"/messages/1", "has no role"},
		`"role":5,`:            {"/messages/1/role", "want a string"},
		`"role":{"a":"user"},`: {"/messages/1/role", "want a string"},
	} {
		body := `{"model":"m","messages":[{"role":"user","content":"a"},{` + role + `"content":"b"}]}`
		req, _, err := codec.DecodeRequest([]byte(body), dialect.DecodeOptions{})
		if at := decodeError(t, err); at.Pointer != want.pointer || !strings.Contains(at.Error(), want.text) || len(req.Messages) != 1 {
			t.Errorf("%s: %v at %q", role, err, at.Pointer)
		}
	}
	// Responses may omit the role, because their messages are always from the assistant.
	if resp, _ := message(t, `{"content":"b"}`, `"stop"`); resp.Text() != "b" {
		t.Errorf("%q", resp.Text())
	}
}

func TestI8_NonStringCallIDOfResultNeedsItsCall(t *testing.T) {
	const result = `{"role":"tool","tool_call_id":5,"content":"x"}`
	_, _, err := codec.DecodeRequest([]byte(`{"model":"m","messages":[`+result+`]}`), dialect.DecodeOptions{})
	if at := decodeError(t, err); at.Pointer != "/messages/0/tool_call_id" {
		t.Errorf("%v", err)
	}
	req, rep := decodeRequest(t, `{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":5,"type":"function","function":{"name":"f","arguments":"{}"}}]},`+result+`]}`)
	lost(t, rep, dragoman.Synthesized, "call id")
	if id := req.Messages[1].Parts[0].(*dragoman.ToolResult).CallID; id == "" || id != req.Messages[0].ToolCalls()[0].ID {
		t.Errorf("%q", id)
	}
}

func TestQuirkB20_NonStringFinishReasonIsAnError(t *testing.T) {
	const tool = `{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}`
	for _, finish := range []string{`5`, `true`, `["tool_calls"]`, `{"reason":"tool_calls"}`} {
		resp, _, err := codec.DecodeResponse([]byte(`{"choices":[{"index":0,"message":`+tool+`,"finish_reason":`+finish+`}]}`), dialect.DecodeOptions{})
		if at := decodeError(t, err); at.Pointer != "/choices/0/finish_reason" || len(resp.ToolCalls()) != 0 {
			t.Errorf("%s: %v at %q", finish, err, at.Pointer)
		}
		events, feed, _ := closed(t, stream(finish, tool))
		if at := decodeError(t, feed); at.Pointer != "/choices/0/finish_reason" {
			t.Errorf("%s: %v at %q", finish, feed, at.Pointer)
		}
		for _, ev := range events {
			if e, ok := ev.(*dragoman.PartEnd); ok && e.Part.(*dragoman.ToolCall).Problem == nil {
				t.Errorf("%s: the call may run", finish)
			}
		}
	}
	if resp, _ := message(t, tool, `null`); resp.Stop.Reason != dragoman.StopToolCalls {
		t.Errorf("null means no finish reason: %+v", resp.Stop)
	}
}
