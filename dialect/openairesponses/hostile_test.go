package openairesponses

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/codec/stream"
	"github.com/dragoman-go/dragoman/internal/codec/toolformat"
	"github.com/dragoman-go/dragoman/interop"
	"github.com/dragoman-go/dragoman/targets"
)

// The tests in this file cover hostile or broken servers and careless callers. Most important:
// one reader must never run a call that another reader sees as a different call, or as one that
// must not run.

func stoppedCalls(t *testing.T, resp *dragoman.Response) {
	t.Helper()
	calls := resp.ToolCalls()
	if len(calls) == 0 {
		t.Error("no call")
	}
	for _, c := range calls {
		if c.Problem == nil || c.Problem.Code != codes.ProblemStopped {
			t.Errorf("%s %s(%s): %+v", c.ID, c.Name, c.Arguments, c.Problem)
		}
	}
}

func TestErrorWithOutputBlocksCalls(t *testing.T) {
	call := callJSON("fc_1", "c1", "{}", "completed")
	for _, status := range []string{`"status":"completed",`, "", `"status":null,`, `"status":"in_progress",`} {
		object := `{"id":"resp_1","model":"m",` + status + `"error":{"code":"server_error","message":"x"},"output":[` + call + `]}`
		resp, _ := decodeResponse(t, object)
		stoppedCalls(t, resp)
		if resp.Stop.Reason != dragoman.StopError {
			t.Errorf("%s %+v", status, resp.Stop)
		}
		if v, _ := encodeResponse(t, resp, dialect.EncodeOptions{Rebuild: true}); v["status"] == "completed" {
			t.Errorf("%s is encoded as completed", status)
		}
		evs, _, err := decodeStream(events(created, done(0, call), `{"type":"response.completed","response":`+object+`}`), 7, dialect.DecodeOptions{NoNative: true})
		if err != nil {
			t.Fatal(err)
		}
		streamed, _ := collect(evs)
		stoppedCalls(t, streamed)
	}
}

func TestForbiddingStopIsNeverCompleted(t *testing.T) {
	for reason, want := range map[dragoman.StopReason][2]string{
		dragoman.StopLength: {"incomplete", "max_output_tokens"}, dragoman.StopRefusal: {"incomplete", "content_filter"},
		dragoman.StopContentFilter: {"incomplete", "content_filter"}, dragoman.StopSequence: {"incomplete", "content_filter"},
		dragoman.StopCompaction: {"incomplete", "content_filter"}, dragoman.StopUnknown: {"incomplete", "content_filter"},
		dragoman.StopError: {"failed", ""}, dragoman.StopMalformedCall: {"failed", ""}, dragoman.StopCanceled: {"cancelled", ""},
		"a_future_reason":  {"incomplete", "content_filter"},
		dragoman.StopPause: {"completed", ""}, dragoman.StopToolCalls: {"completed", ""}, dragoman.StopNone: {"completed", ""},
	} {
		for _, origin := range []*dragoman.Origin{nil, {Dialect: name}, {Dialect: dialectname.Anthropic}} {
			call := &dragoman.ToolCall{ID: "c1", Name: "rm", Arguments: "{}"}
			resp := &dragoman.Response{ID: "resp_r", Model: "m", Origin: origin, Stop: dragoman.Stop{Reason: reason}, Output: []dragoman.Message{{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{call}}}}
			v, rep := encodeResponse(t, resp, dialect.EncodeOptions{})
			if got, _ := at(v, "incomplete_details", "reason").(string); v["status"] != want[0] || got != want[1] {
				t.Errorf("%s: %v %q, want %v", reason, v["status"], got, want)
			}
			if reason == dragoman.StopRefusal && !reported(rep, dragoman.Lowered, "/stop") {
				t.Errorf("%s: %v", reason, rep)
			}
			out, _ := encodeStream(t, []dragoman.Event{
				&dragoman.ResponseStart{Response: dragoman.Response{ID: "resp_r", Model: "m", Origin: origin}},
				&dragoman.PartStart{Part: &dragoman.ToolCall{ID: "c1", Name: "rm"}}, &dragoman.PartEnd{Part: call},
				&dragoman.ResponseEnd{Stop: dragoman.Stop{Reason: reason}},
			}, dialect.EncodeOptions{})
			if got := bytes.Contains(out, []byte(`"type":"response.completed"`)); got != (want[0] == "completed") {
				t.Errorf("%s: streamed as %s", reason, out)
			}
			if err := checkOrder(out, true); err != nil {
				t.Errorf("%s: %v", reason, err)
			}
			if want[0] != "completed" {
				evs, _, _ := decodeStream(out, len(out), dialect.DecodeOptions{NoNative: true})
				back, _ := collect(evs)
				if c := back.ToolCalls()[0]; c.Problem == nil {
					t.Errorf("%s: a client would run the call\n%s", reason, out)
				}
			}
		}
	}
}

func TestEditedStopIsEncoded(t *testing.T) {
	call := callJSON("fc_1", "c1", "{}", "completed")
	for _, body := range []string{
		`{"id":"r","status":"completed","output":[` + call + `]}`,
		`{"id":"r","status":"incomplete","incomplete_details":{"reason":"max_output_tokens","x":1},"output":[` + call + `]}`,
		`{"id":"r","status":"queued","output":[` + call + `]}`,
	} {
		resp, _ := decodeResponse(t, body)
		resp.Stop.Reason = dragoman.StopContentFilter
		v, _ := encodeResponse(t, resp, dialect.EncodeOptions{})
		if v["status"] != "incomplete" || at(v, "incomplete_details", "reason") != "content_filter" {
			t.Errorf("%s: %v %v", body, v["status"], v["incomplete_details"])
		}
	}
}

func freeformRegistry(t *testing.T) *interop.Registry {
	t.Helper()
	req := &dragoman.Request{Model: "m", Messages: []dragoman.Message{user("x")}, Tools: []dragoman.ToolSpec{{Kind: codes.ToolFreeform, Name: "f"}}}
	enc, err := Codec{}.EncodeRequest(req, dialect.EncodeOptions{Target: targets.Target{Caps: targets.Capabilities{NoCustomTools: true}}})
	if err != nil {
		t.Fatal(err)
	}
	return enc.Registry
}

func TestStreamedInputOfLoweredToolIsUnwrapped(t *testing.T) {
	for _, c := range []struct{ deltas, want string }{
		{`{"input":"ls"}`, "ls"},
		{`{"input":""}`, ""},
		{`{"input":"rm -rf /tmp`, "!"},
		{`{"input":"a","input":"b"}`, "!"},
	} {
		for _, final := range []string{`""`, `null`, `"{}"`, "none", "no done"} {
			for _, begin := range []string{added(0, `{"type":"function_call","id":"f","call_id":"c","name":"f","arguments":""}`), added(0, `{"type":"function_call","id":"f","call_id":"c","name":"f"}`), `{"type":"keepalive"}`} {
				list := []string{created, begin, argDelta(0, c.deltas)}
				switch final {
				case "no done":
					if begin == `{"type":"keepalive"}` {
						continue // it has no name
					}
				case "none":
					list = append(list, done(0, `{"type":"function_call","id":"f","call_id":"c","name":"f","status":"completed"}`))
				default:
					list = append(list, done(0, `{"type":"function_call","id":"f","call_id":"c","name":"f","arguments":`+final+`,"status":"completed"}`))
				}
				evs, _, err := decodeStream(events(append(list, completed)...), 9, dialect.DecodeOptions{NoNative: true, Registry: freeformRegistry(t)})
				if err != nil {
					t.Fatal(err)
				}
				resp, _ := collect(evs)
				call := resp.ToolCalls()[0]
				if c.want == "!" && call.Problem == nil || c.want != "!" && (call.Problem != nil || call.Payload != codes.PayloadText || call.Arguments != c.want) {
					t.Errorf("%s, then %s: %+v %+v", c.deltas, final, call, call.Problem)
				}
				for _, ev := range evs {
					if d, ok := ev.(*dragoman.PartDelta); ok && c.want != "!" && strings.Contains(d.Text, "input") {
						t.Errorf("JSON emitted as input: %q", d.Text)
					}
				}
			}
		}
	}
}

func namedCall(name, args string) string {
	return `{"type":"function_call","id":"fc_1","call_id":"c1","name":"` + name + `","arguments":` + strconv.Quote(args) + `,"status":"completed"}`
}

func TestCallThatDiffersFromItsStreamDoesNotRun(t *testing.T) {
	output := func(item string) string {
		return `{"type":"response.completed","response":{"id":"r","status":"completed","output":[` + item + `]}}`
	}
	argsDone := func(args string) string {
		return `{"type":"response.function_call_arguments.done","output_index":0,"arguments":` + strconv.Quote(args) + `}`
	}
	for _, c := range []struct {
		what string
		runs bool
		list []string
	}{
		{"another name and arguments", false, []string{added(0, namedCall("rm", "")), argDelta(0, `{"a":1}`), done(0, namedCall("ls", `{"b":2}`)), completed}},
		{"another name", false, []string{added(0, namedCall("rm", "")), argDelta(0, `{"a":1}`), done(0, namedCall("ls", `{"a":1}`)), completed}},
		{"other arguments", false, []string{added(0, namedCall("rm", "")), argDelta(0, `{"a":1}`), done(0, namedCall("rm", `{"b":2}`)), completed}},
		{"fewer arguments", false, []string{added(0, namedCall("rm", "")), argDelta(0, `{"a":1}`), done(0, namedCall("rm", `{}`)), completed}},
		{"blank arguments", false, []string{added(0, namedCall("rm", "")), argDelta(0, `{"a":1}`), done(0, namedCall("rm", ` `)), completed}},
		{"another type", false, []string{added(0, namedCall("rm", "")), done(0, `{"type":"custom_tool_call","id":"fc_1","call_id":"c1","name":"rm","input":"x"}`), completed}},
		{"other arguments, never added", false, []string{argDelta(0, `{"a":1}`), done(0, namedCall("rm", `{"b":2}`)), completed}},
		{"other arguments.done", false, []string{added(0, namedCall("rm", "")), argDelta(0, `{"a":1}`), argsDone(`{"b":2}`), done(0, namedCall("rm", `{"a":1}`)), completed}},
		{"other arguments.done, no item done", false, []string{added(0, namedCall("rm", "")), argDelta(0, `{"a":1}`), argsDone(`{"b":2}`), completed}},
		{"other arguments in the output", false, []string{added(0, namedCall("rm", "")), done(0, namedCall("rm", `{"a":1}`)), output(namedCall("rm", `{"b":2}`))}},
		{"another name in the output", false, []string{added(0, namedCall("rm", "")), done(0, namedCall("rm", `{"a":1}`)), output(namedCall("ls", `{"a":1}`))}},
		{"the same", true, []string{added(0, namedCall("rm", "")), argDelta(0, `{"a":1}`), argsDone(`{"a":1}`), done(0, namedCall("rm", `{"a":1}`)), output(namedCall("rm", `{"a":1}`))}},
		{"the same, other spaces", true, []string{added(0, namedCall("rm", "")), argDelta(0, `{"a": 1}`), done(0, namedCall("rm", `{"a":1}`)), completed}},
		{"longer", true, []string{added(0, namedCall("rm", "")), argDelta(0, `{"a"`), done(0, namedCall("rm", `{"a":1}`)), completed}},
		{"no deltas", true, []string{added(0, namedCall("rm", "")), done(0, namedCall("rm", `{"a":1}`)), completed}},
		{"blank deltas", true, []string{added(0, namedCall("rm", "")), argDelta(0, ` `), done(0, namedCall("rm", `{"a":1}`)), completed}},
		{"empty final arguments", true, []string{added(0, namedCall("rm", "")), argDelta(0, `{"a":1}`), done(0, namedCall("rm", ``)), completed}},
	} {
		t.Run(c.what, func(t *testing.T) {
			resp, evs, _ := run(t, events(append([]string{created}, c.list...)...))
			call := resp.ToolCalls()[0]
			if runs := call.Problem == nil; runs != c.runs || !runs && call.Problem.Code != codes.ProblemStopped {
				t.Errorf("%+v %+v", call, call.Problem)
			}
			// A client of the re-encoded stream does not run it either.
			out, _ := encodeStream(t, evs, dialect.EncodeOptions{})
			if bytes.Contains(out, []byte(`"type":"response.completed"`)) != c.runs {
				t.Errorf("%s", out)
			}
			if v, _ := encodeResponse(t, resp, dialect.EncodeOptions{}); (v["status"] == "completed") != c.runs {
				t.Errorf("whole: %v", v["status"])
			}
		})
	}
}

func TestStreamEncoderDoesNotCompleteSplicedCall(t *testing.T) {
	for what, end := range map[string]*dragoman.ToolCall{
		"arguments": {ID: "c1", Name: "rm", Arguments: `{"b":2}`},
		"name":      {ID: "c1", Name: "ls", Arguments: `{"a":1}`},
	} {
		out, rep := encodeStream(t, []dragoman.Event{
			&dragoman.ResponseStart{Response: dragoman.Response{ID: "r", Model: "m"}},
			&dragoman.PartStart{Part: &dragoman.ToolCall{ID: "c1", Name: "rm"}},
			&dragoman.PartDelta{Kind: codes.KindToolCall, Text: `{"a":1}`},
			&dragoman.PartEnd{Part: end},
			&dragoman.ResponseEnd{Stop: dragoman.Stop{Reason: dragoman.StopToolCalls}},
		}, dialect.EncodeOptions{})
		q, _ := json.Marshal(end.Arguments)
		if !bytes.Contains(out, append([]byte(`"arguments":`), q...)) || bytes.Contains(out, []byte(`"type":"response.completed"`)) {
			t.Errorf("%s: %s", what, out)
		}
		if err := checkOrder(out, false); err != nil { // the contradiction remains
			t.Errorf("%s: %v", what, err)
		}
		serious := false
		for _, l := range rep.Losses {
			serious = serious || l.Severity == dragoman.Serious
		}
		if !serious {
			t.Errorf("%s: %v", what, rep)
		}
	}
}

func TestEventTypeIsUnescaped(t *testing.T) {
	resp, _, _ := run(t, events(created, strings.Replace(done(0, namedCall("rm", "{}")), "item.done", `item\u002edone`, 1), completed))
	if len(resp.ToolCalls()) != 1 {
		t.Errorf("the call is hidden: %+v", resp.Output)
	}
}

func TestAmbiguousCallIsNotReplayed(t *testing.T) {
	for what, item := range map[string]string{
		"duplicate argument":  namedCall("rm", `{"a":1,"a":2}`),
		"duplicate name":      `{"type":"function_call","id":"fc_1","call_id":"c1","name":"ls","name":"rm","arguments":"{}"}`,
		"duplicate arguments": `{"type":"function_call","id":"fc_1","call_id":"c1","name":"ls","arguments":"{\"a\":1}","arguments":"{}"}`,
		"duplicate input":     `{"type":"custom_tool_call","id":"ctc_1","call_id":"c1","name":"ls","input":"a","input":"b"}`,
	} {
		t.Run(what, func(t *testing.T) {
			resp, _ := decodeResponse(t, `{"id":"r","status":"completed","output":[`+item+`]}`)
			if resp.Native != nil || resp.Output[0].Native != nil {
				t.Error("the native form was kept")
			}
			enc, err := Codec{}.EncodeResponse(resp, dialect.EncodeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			back, _ := decodeResponse(t, string(enc.Body))
			if c := back.ToolCalls()[0]; c.Problem != nil && c.Problem.Code == codes.ProblemDuplicateKey || c.Payload == codes.PayloadText {
				t.Errorf("forwarded: %s", enc.Body)
			}
			streamed, _, err := decodeStream(events(created, done(0, item), completed), 50, dialect.DecodeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if whole, _ := collect(streamed); whole.Output[0].Native != nil {
				t.Error("the native form was kept in the stream")
			}
		})
	}
}

func TestAmbiguousMessageIsNotReplayed(t *testing.T) {
	for what, item := range map[string]string{
		"duplicate content": `{"type":"message","id":"m","role":"assistant","content":[{"type":"output_text","text":"FIRST"}],"content":[{"type":"output_text","text":"b"}]}`,
		"duplicate text":    `{"type":"message","id":"m","role":"assistant","content":[{"type":"output_text","text":"FIRST","te\u0078t":"b"}]}`,
	} {
		resp, _ := decodeResponse(t, `{"id":"r","status":"completed","output":[`+item+`]}`)
		enc, err := Codec{}.EncodeResponse(resp, dialect.EncodeOptions{})
		if err != nil || resp.Text() != "b" || bytes.Contains(enc.Body, []byte("FIRST")) {
			t.Errorf("%s: %v %s", what, err, enc.Body)
		}
	}
}

type failingCalls struct{}

func (failingCalls) Format() dragoman.Format { return toolformat.ResponsesFunctionCall }
func (failingCalls) InspectCall(json.RawMessage) (*dragoman.ToolCall, dragoman.Report, error) {
	return nil, dragoman.Report{}, errors.New("unreadable")
}

func TestMalformedCallEndsTheStreamOnce(t *testing.T) {
	reg := interop.New(interop.Options{Codecs: toolCodecs, Target: targets.Target{Dialect: name}, Limits: Codec{}.Limits(), Contributions: []dragoman.Contribution{{Calls: []dragoman.CallAccessor{failingCalls{}}}}})
	for _, list := range [][]string{
		{created, added(0, namedCall("rm", "")), argDelta(0, "{}")},
		{created, argDelta(0, "{}"), done(0, namedCall("rm", "{}"))},
		{created, argDelta(0, "{}"), completed},
		{created, argDelta(0, "{}")},
	} {
		d := Codec{}.NewStreamDecoder(dialect.DecodeOptions{NoNative: true, Registry: reg})
		var evs []dragoman.Event
		emit := func(ev dragoman.Event) error { evs = append(evs, ev); return nil }
		_ = d.Feed(events(list...), emit)
		closed := d.Close(emit)
		checkBroken(t, evs, closed)
		resp, _ := collect(evs)
		if calls := resp.ToolCalls(); len(calls) != 1 || calls[0].ID == "" {
			t.Errorf("%v: %+v", list, calls)
		}
	}
	for _, item := range []string{`{"type":"function_call","call_id":"c1","name":5,"arguments":"{}"}`, `{"type":"function_call","call_id":"c1","name":{},"namespace":[],"arguments":7}`} {
		for _, list := range [][]string{{added(0, item), argDelta(0, "{}")}, {done(0, item)}, {added(0, item)}, {added(0, item), completed}, {done(0, item), completed}} {
			d := Codec{}.NewStreamDecoder(dialect.DecodeOptions{})
			terminals := 0
			var last dragoman.Event
			emit := func(ev dragoman.Event) error {
				last = ev
				switch ev := ev.(type) {
				case *dragoman.ResponseEnd, *dragoman.StreamError:
					terminals++
				case *dragoman.PartEnd:
					if c, ok := ev.Part.(*dragoman.ToolCall); !ok || c.Problem == nil {
						t.Errorf("%s: %+v", item, ev.Part)
					}
				}
				return nil
			}
			_ = d.Feed(events(list...), emit)
			_ = d.Close(emit)
			if _, part := last.(*dragoman.PartEnd); terminals != 1 || part {
				t.Errorf("%s: %d terminals, last %T", item, terminals, last)
			}
		}
	}
}

func TestInvalidErrorsDoNotPanic(t *testing.T) {
	if status, body, _ := (Codec{}).EncodeError(nil); status < 400 || !json.Valid(body) {
		t.Errorf("%d %s", status, body)
	}
	if _, err := (Codec{}).EncodeResponse(nil, dialect.EncodeOptions{}); err == nil {
		t.Error("a nil response was accepted")
	}
	if _, err := (Codec{}).EncodeRequest(nil, dialect.EncodeOptions{}); err == nil {
		t.Error("a nil request was accepted")
	}
	for _, raw := range []string{"", " ", "7", `"x"`, "{", "null"} {
		native := &dragoman.Native{Format: dragoman.Format(name), JSON: json.RawMessage(raw)}
		apiErr := &dragoman.APIError{Native: native}
		if status, body, _ := (Codec{}).EncodeError(apiErr); status < 400 || !json.Valid(body) {
			t.Errorf("%q: %d %s", raw, status, body)
		}
		resp := &dragoman.Response{Error: apiErr, Stop: dragoman.Stop{Reason: dragoman.StopLength, Native: "max_output_tokens", Details: native}}
		encodeResponse(t, resp, dialect.EncodeOptions{})
		for _, evs := range [][]dragoman.Event{
			{&dragoman.StreamError{Err: apiErr}}, {&dragoman.StreamError{}}, {&dragoman.ResponseEnd{Stop: resp.Stop, Response: *resp}},
		} {
			out, _ := encodeStream(t, evs, dialect.EncodeOptions{})
			for _, line := range strings.Split(string(out), "\n") {
				if data, ok := strings.CutPrefix(line, "data: "); ok && data != "[DONE]" && !json.Valid([]byte(data)) {
					t.Errorf("%q: %s", raw, line)
				}
			}
		}
	}
}

func TestManyAllowedToolsAreFoundInLinearTime(t *testing.T) {
	const n = 40000
	req := &dragoman.Request{Model: "m", Messages: []dragoman.Message{user("x")}, ToolChoice: &dragoman.ToolChoice{Mode: dragoman.ChoiceAuto}}
	for i := range n {
		req.Tools = append(req.Tools, dragoman.ToolSpec{Name: fmt.Sprintf("tool_%d", i)})
		req.ToolChoice.Tools = append(req.ToolChoice.Tools, dragoman.ToolRef{Name: fmt.Sprintf("tool_%d", n-1-i)})
	}
	for _, target := range []targets.Target{{}, {Caps: targets.Capabilities{NoAllowedTools: true}}} {
		start := time.Now()
		if _, err := (Codec{}).EncodeRequest(req, dialect.EncodeOptions{Target: target}); err != nil {
			t.Fatal(err)
		}
		// Quadratic time took many times that.
		if took := time.Since(start); took > 30*time.Second {
			t.Errorf("took %v", took)
		}
	}
}

func TestNoContentAfterTerminalEvent(t *testing.T) {
	failed := `{"type":"response.failed","response":{"id":"r","status":"failed","error":{"code":"x","message":"m"}}}`
	flat := `{"type":"error","code":"rate_limit_exceeded","message":"m"}`
	silent := "data: [DONE]\n\n: bye\n\n"
	tail := silent + string(events(done(0, namedCall("rm", "{}")), completed))
	for _, list := range [][]string{{created, completed}, {created, failed}, {created, flat, failed}, {created, flat}} {
		body := string(events(list...))
		evs, _, err := decodeStream([]byte(body+tail), 3, dialect.DecodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if last := evs[len(evs)-3].Type(); last != "response_end" && last != "stream_error" {
			t.Errorf("%v: the last event before [DONE] and a keep-alive is a %s", list, last)
		}
		// Data after the end is not written.
		if out, _ := encodeStream(t, evs, dialect.EncodeOptions{}); bytes.Contains(out, []byte(`"rm"`)) || bytes.Count(out, []byte("[DONE]")) != 1 {
			t.Errorf("re-encoded as %s", out)
		}
	}
}

// The parts of a whole item have the same bound as streamed parts.
func TestItemWithTooManyPartsIsRefused(t *testing.T) {
	body := `data: {"type":"response.output_item.done","output_index":0,"item":{"type":"message","id":"m","content":[` +
		strings.Repeat("{},", stream.MaxParts) + `{}]}}` + "\n\n"
	err := Codec{}.NewStreamDecoder(dialect.DecodeOptions{}).Feed([]byte(body), func(dragoman.Event) error { return nil })
	if !errors.Is(err, dragoman.ErrTooLarge) {
		t.Errorf("got %v", err)
	}
}
