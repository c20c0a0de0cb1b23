package bedrock_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/framing/eventstream"
	"github.com/dragoman-go/dragoman/internal/testkit/codectest"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func textLine(index int, text string) string {
	return fmt.Sprintf(`{"contentBlockDelta":{"contentBlockIndex":%d,"delta":{"text":%q}}}`, index, text) + "\n"
}

func stopLine(index int) string {
	return fmt.Sprintf(`{"contentBlockStop":{"contentBlockIndex":%d}}`, index) + "\n"
}

func callLine(index int, id, name string) string {
	return fmt.Sprintf(`{"contentBlockStart":{"contentBlockIndex":%d,"start":{"toolUse":{"toolUseId":%q,"name":%q}}}}`, index, id, name) + "\n"
}

func inputLine(index int, text string) string {
	return fmt.Sprintf(`{"contentBlockDelta":{"contentBlockIndex":%d,"delta":{"toolUse":{"input":%q}}}}`, index, text) + "\n"
}

// partsOf formats the parts of a response.
func partsOf(resp *dragoman.Response) string {
	var out []string
	for _, m := range resp.Output {
		for _, p := range m.Parts {
			switch p := p.(type) {
			case *dragoman.Text:
				out = append(out, "text "+p.Text)
			case *dragoman.Reasoning:
				out = append(out, "thought "+p.Text+p.Signature+p.Encrypted)
			case *dragoman.ToolCall:
				s := "call " + p.Name + p.Arguments
				if p.Problem != nil {
					s += " " + p.Problem.Code
				}
				out = append(out, s)
			default:
				out = append(out, p.Kind())
			}
		}
	}
	return strings.Join(out, "|")
}

func TestQuirkC33_MissingStartsAndStops(t *testing.T) {
	for name, tc := range map[string]struct{ lines, want string }{
		"text without a start":               {startLine + textLine(0, "a") + textLine(0, "b") + stopLine(0) + endLines("end_turn"), "text ab"},
		"text with an empty start":           {startLine + `{"contentBlockStart":{"contentBlockIndex":0,"start":{}}}` + "\n" + textLine(0, "a") + stopLine(0) + endLines("end_turn"), "text a"},
		"no stops at all":                    {startLine + textLine(0, "a") + callLine(1, "t", "f") + inputLine(1, "{}") + endLines("tool_use"), "text a|call f{}"},
		"no start of the message":            {textLine(0, "a") + endLines("end_turn"), "text a"},
		"text blocks one after the other":    {startLine + textLine(0, "a") + textLine(1, "b") + endLines("end_turn"), "text a|text b"},
		"empty fragments between blocks":     {startLine + textLine(0, "") + textLine(1, "b") + textLine(1, "") + stopLine(1) + stopLine(0) + endLines("end_turn"), "text b"},
		"thinking that turns into text":      {startLine + `{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"reasoningContent":{"text":"hm"}}}}` + "\n" + textLine(0, "a") + endLines("end_turn"), "thought hm|text a"},
		"signature in two fragments":         {startLine + `{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"reasoningContent":{"signature":"ab"}}}}` + "\n" + `{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"reasoningContent":{"signature":"cd"}}}}` + "\n" + endLines("end_turn"), "thought abcd"},
		"redacted thinking in two fragments": {startLine + `{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"reasoningContent":{"redactedContent":"AA=="}}}}` + "\n" + `{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"reasoningContent":{"redactedContent":"AQI="}}}}` + "\n" + endLines("end_turn"), "thought AAEC"},
		"deltas without an index":            {startLine + `{"contentBlockDelta":{"delta":{"text":"a"}}}` + "\n" + `{"contentBlockDelta":{"delta":{"text":"b"}}}` + "\n" + endLines("end_turn"), "text ab"},
		"block that starts twice":            {startLine + callLine(0, "t", "f") + callLine(0, "u", "g") + inputLine(0, `{"a":1}`) + endLines("tool_use"), `call f|call g{"a":1}`},
		"overlapping calls":                  {startLine + callLine(0, "t", "f") + callLine(1, "u", "g") + inputLine(1, "{") + inputLine(0, "{") + inputLine(1, "}") + inputLine(0, "}") + endLines("tool_use"), "call f{}|call g{}"},
		"large index":                        {startLine + textLine(1000000000, "a") + endLines("end_turn"), "text a"},
		"fragment of a call without a start": {startLine + inputLine(0, `{"a":1}`) + stopLine(0) + endLines("tool_use"), `call {"a":1} no_name`},
		"metadata before the end":            {startLine + textLine(0, "a") + `{"metadata":{"usage":{"inputTokens":9,"outputTokens":20}}}` + "\n" + `{"messageStop":{"stopReason":"end_turn"}}`, "text a"},
		"no metadata":                        {startLine + textLine(0, "a") + `{"messageStop":{"stopReason":"end_turn"}}`, "text a"},
		"content after the end":              {startLine + textLine(0, "a") + `{"messageStop":{"stopReason":"end_turn"}}` + "\n" + callLine(1, "t", "f"), "text a"},
		"frames after the metadata":          {startLine + textLine(0, "a") + endLines("end_turn") + textLine(0, "b") + `{"throttlingException":{"message":"m"}}`, "text a"},
		"unknown events and fields":          {startLine + `{"heartbeat":{}}` + "\n" + `{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"hologram":{}}}}` + "\n" + textLine(0, "a") + endLines("end_turn"), "text a"},
		"C19: placeholder before the input":  {startLine + `{"contentBlockStart":{"contentBlockIndex":0,"start":{"toolUse":{"toolUseId":"t","name":"f","input":{}}}}}` + "\n" + inputLine(0, "") + inputLine(0, `{"a":1}`) + endLines("tool_use"), `call f{"a":1}`},
		"C19: input in the start":            {startLine + `{"contentBlockStart":{"contentBlockIndex":0,"start":{"toolUse":{"toolUseId":"t","name":"f","input":{"a":1}}}}}` + "\n" + stopLine(0) + endLines("tool_use"), `call f{"a":1}`},
		"C7: input is an object":             {startLine + callLine(0, "t", "f") + `{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"toolUse":{"input":{"a":1}}}}}` + "\n" + endLines("tool_use"), `call f{"a":1}`},
	} {
		t.Run(name, func(t *testing.T) {
			resp := collect(t, binary(tc.lines))
			if got := partsOf(resp); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
			// The re-encoded stream has the form of the API and the same
			// meaning.
			evs, _ := drain(dialect.DecodeOptions{}, binary(tc.lines))
			again, _ := encodeEvents(t, dialect.EncodeOptions{Rebuild: true}, evs...)
			if err := checkWire(again); err != nil && name != "fragment of a call without a start" && name != "unknown events and fields" {
				t.Errorf("%v\n%s", err, lines(t, again))
			}
			same, _ := encodeEvents(t, dialect.EncodeOptions{}, evs...)
			if got := partsOf(collect(t, same)); strings.ReplaceAll(got, "call f{}|", "call f|") != strings.ReplaceAll(tc.want, "call f{}|", "call f|") && name != "fragment of a call without a start" {
				t.Errorf("re-encoded %s, want %s\n%s", got, tc.want, lines(t, same))
			}
			if name == "unknown events and fields" && (!strings.Contains(lines(t, same), `{"heartbeat":{}}`) || !strings.Contains(lines(t, same), `"hologram":{}`)) {
				t.Errorf("%s", lines(t, same))
			}
		})
	}
}

// twoParts is a stream to damage: a text, a call, the end.
var twoParts = startLine + textLine(0, "a") + stopLine(0) + callLine(1, "t", "f") + inputLine(1, `{"a":1}`) + stopLine(1) + endLines("tool_use")

func TestQuirkC33C13_TruncatedStreamIsIncomplete(t *testing.T) {
	whole := binary(twoParts)
	stop := bytes.LastIndex(whole, []byte("messageStop")) // only the usage may be missing
	for cut := range whole {
		evs, err := drain(dialect.DecodeOptions{NoNative: true}, whole[:cut])
		last := evs[len(evs)-1]
		complete := cut > stop && err == nil // exactly between messageStop and metadata
		if complete {
			if _, ok := last.(*dragoman.ResponseEnd); !ok {
				t.Fatalf("cut at %d: %T", cut, last)
			}
			continue
		}
		failed, ok := last.(*dragoman.StreamError)
		if !errors.Is(err, dragoman.ErrIncompleteStream) || !ok || !errors.Is(failed.Err, dragoman.ErrIncompleteStream) {
			t.Fatalf("cut at %d: %v %T", cut, err, last)
		}
		for _, ev := range evs {
			if end, ok := ev.(*dragoman.PartEnd); ok {
				if c, ok := end.Part.(*dragoman.ToolCall); ok && c.Problem == nil {
					t.Fatalf("cut at %d: the call may run", cut)
				}
			}
		}
	}
}

func TestQuirkC33_DamagedByteIsError(t *testing.T) {
	whole := binary(twoParts)
	for at := range whole {
		if at == 0 {
			continue // the first byte identifies an event stream
		}
		damaged := bytes.Clone(whole)
		damaged[at] ^= 0x10
		evs, err := drain(dialect.DecodeOptions{NoNative: true}, damaged)
		var place *dragoman.DecodeError
		if !errors.As(err, &place) || place.Offset < 0 || place.Offset > int64(at) {
			t.Fatalf("byte %d: %v", at, err)
		}
		if _, ok := evs[len(evs)-1].(*dragoman.StreamError); !ok {
			t.Fatalf("byte %d: the damaged stream ends normally", at)
		}
	}
}

func TestQuirkC14_Exceptions(t *testing.T) {
	for typ, class := range map[string]dragoman.ErrorClass{
		"internalServerException": dragoman.ErrorServer, "modelStreamErrorException": dragoman.ErrorServer, "serviceUnavailableException": dragoman.ErrorOverloaded,
		"throttlingException": dragoman.ErrorRateLimit, "validationException": dragoman.ErrorBadRequest, "unheardOfException": dragoman.ErrorUnknown,
	} {
		for _, before := range []string{"", startLine + callLine(0, "t", "f") + inputLine(0, `{"a":1}`) + stopLine(0), startLine + callLine(0, "t", "f") + `{"messageStop":{"stopReason":"tool_use"}}` + "\n"} {
			body := binary(before + `{"` + typ + `":{"message":"m","originalStatusCode":529}}`)
			evs, err := drain(dialect.DecodeOptions{}, body)
			failed, ok := evs[len(evs)-1].(*dragoman.StreamError)
			if err != nil || !ok || failed.Err.Class != class || failed.Err.Type != typ || failed.Err.Message != "m" {
				t.Fatalf("%s: %v %+v", typ, err, evs[len(evs)-1])
			}
			for _, ev := range evs {
				if end, ok := ev.(*dragoman.PartEnd); ok && end.Part.(*dragoman.ToolCall).Problem == nil {
					t.Errorf("%s: the call may run", typ)
				}
			}
			if typ == "unheardOfException" {
				continue
			}
			again, _ := encodeEvents(t, dialect.EncodeOptions{Rebuild: true}, evs...)
			if got := lines(t, again); !strings.HasSuffix(got, `{"`+typ+`":{"message":"m","originalStatusCode":529}}`+"\n") {
				t.Errorf("%s decoded as %s", typ, got)
			}
		}
	}
}

func TestConnectionErrorIsReported(t *testing.T) {
	frame, err := eventstream.Append(nil, []eventstream.Header{
		{Name: ":message-type", Value: eventstream.Text("error")}, {Name: ":error-code", Value: eventstream.Text("InternalFailure")}, {Name: ":error-message", Value: eventstream.Text("gone")},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	evs, err := drain(dialect.DecodeOptions{NoNative: true}, frame)
	if failed, ok := evs[len(evs)-1].(*dragoman.StreamError); err != nil || !ok || failed.Err.Type != "InternalFailure" || failed.Err.Message != "gone" || failed.Err.Class != dragoman.ErrorServer {
		t.Errorf("%v %+v", err, evs)
	}
}

func TestInputThatIsNotAStreamIsReported(t *testing.T) {
	for body, class := range map[string]dragoman.ErrorClass{
		`{"__type":"ThrottlingException","message":"slow"}`: dragoman.ErrorRateLimit,
		" \n<html>down</html>":                              dragoman.ErrorServer,
		"plain words":                                       dragoman.ErrorServer,
	} {
		for _, size := range []int{1, 5, 1000} {
			evs, _, err := codectest.DecodeStream(codec, dialect.DecodeOptions{}, codectest.Pieces([]byte(body), size)...)
			failed, ok := evs[len(evs)-1].(*dragoman.StreamError)
			if !errors.Is(err, dragoman.ErrIncompleteStream) || !ok || failed.Err.Class != class {
				t.Errorf("%q in chunks of %d: %v %+v", body, size, err, failed)
			}
		}
	}
	if evs, err := drain(dialect.DecodeOptions{}, nil); !errors.Is(err, dragoman.ErrIncompleteStream) || len(evs) != 2 {
		t.Errorf("empty input: %v %v", err, evs)
	}
}

func TestQuirkC37_SplicedResponsesAreError(t *testing.T) {
	_, err := drain(dialect.DecodeOptions{}, binary(startLine+textLine(0, "a")+startLine+textLine(0, "b")+endLines("end_turn")))
	if err == nil || !strings.Contains(err.Error(), "spliced") {
		t.Error(err)
	}
	if resp := collect(t, binary(startLine+startLine+textLine(0, "a")+endLines("end_turn"))); resp.Text() != "a" {
		t.Error("a repeated messageStart must be accepted")
	}
}

func TestInvalidPayloadErrorHasPointer(t *testing.T) {
	good := binary(startLine)
	for payload, pointer := range map[string]string{
		`{"contentBlockDelta":{"contentBlockIndex":"x"}}`:          "/contentBlockIndex",
		`{"contentBlockDelta":{"delta":{"text":1}}}`:               "/delta/text",
		`{"contentBlockDelta":{"delta":{}}`:                        "",
		`{"messageStop":{"stopReason":[]}}`:                        "/stopReason",
		`{"messageStart":[]}`:                                      "",
		`{"contentBlockDelta":}`:                                   "",
		`{"contentBlockDelta":{"delta":{"toolUse":{"input":"a}}}}`: "",
	} {
		evs, err := drain(dialect.DecodeOptions{}, slices.Concat(good, binary(payload)))
		var at *dragoman.DecodeError
		if !errors.As(err, &at) || !strings.HasPrefix(at.Pointer, pointer) || at.Offset < int64(len(good)) || !strings.Contains(err.Error(), "event 2") {
			t.Errorf("%s: %v", payload, err)
		}
		if _, ok := evs[len(evs)-1].(*dragoman.StreamError); !ok {
			t.Errorf("%s: ends with %T", payload, evs[len(evs)-1])
		}
	}
	bare, err := eventstream.Append(nil, nil, []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := drain(dialect.DecodeOptions{}, bare); err == nil || !strings.Contains(err.Error(), ":event-type") {
		t.Errorf("frame without a type: %v", err)
	}
}

// A response and its stream decode to the same result.
func TestStreamCollectsToResponse(t *testing.T) {
	whole := decodeResponse(t, responseBody("tool_use", `[{"reasoningContent":{"reasoningText":{"text":"日本 🙂","signature":"c2ln"}}},{"reasoningContent":{"redactedContent":"AAEC"}},
		{"citationsContent":{"content":[{"text":"é\n"}],"citations":[{"title":"c"}]}},
		{"toolUse":{"toolUseId":"s1","name":"nova_grounding","type":"server_tool_use","input":{"q":"🙂"}}},
		{"toolResult":{"toolUseId":"s1","type":"nova_grounding_result","content":[{"text":"found"}]}},
		{"image":{"format":"png","source":{"bytes":"AAEC"}}},
		{"toolUse":{"toolUseId":"tooluse_1","name":"f","input":{"a":"日"}}}]`))
	streamed := collect(t, richStream)
	opts := []cmp.Option{ignoreSidecars, cmpopts.EquateEmpty()}
	if diff := cmp.Diff(whole, streamed, opts...); diff != "" {
		t.Error(diff)
	}
}

func TestQuirkB11_DuplicateIDsInStream(t *testing.T) {
	resp := collect(t, binary(startLine+callLine(0, "t", "f")+inputLine(0, `{"a":1}`)+stopLine(0)+callLine(1, "t", "f")+inputLine(1, `{"a":1}`)+stopLine(1)+callLine(2, "t", "g")+stopLine(2)+endLines("tool_use")))
	calls := resp.ToolCalls()
	if len(calls) != 2 || calls[0].ID != "t" || calls[1].Name != "g" || calls[1].ID == "t" {
		t.Errorf("%+v", calls)
	}
}

func TestQuirkC34_BadStopBlocksCalls(t *testing.T) {
	for _, word := range []string{"max_tokens", "guardrail_intervened", "content_filtered", "malformed_tool_use", "malformed_model_output", "model_context_window_exceeded", "unheard_of"} {
		evs, err := drain(dialect.DecodeOptions{}, binary(strings.Replace(twoParts, `"tool_use"`, `"`+word+`"`, 1)))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := codectest.Collect(evs)
		if err != nil || resp.Stop.Reason.Runs() || resp.ToolCalls()[0].Problem == nil {
			t.Errorf("%s: %v %+v", word, err, resp.Stop)
		}
	}
	// A second stop reason does not unblock the calls, and its frame is not
	// passed through.
	conflicting := startLine + callLine(0, "t", "f") + stopLine(0) + `{"messageStop":{"stopReason":"max_tokens"}}` + "\n" + endLines("tool_use")
	evs, err := drain(dialect.DecodeOptions{}, binary(conflicting))
	if err != nil {
		t.Fatal(err)
	}
	if out, _ := encodeEvents(t, dialect.EncodeOptions{}, evs...); strings.Contains(lines(t, out), `"tool_use"`) {
		t.Errorf("%s", lines(t, out))
	}
}

func TestAmbiguousEventBlocksCall(t *testing.T) {
	for name, bad := range map[string]string{
		"duplicate input":         `{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"toolUse":{"input":"{\"a\":1}","input":"{}"}}}}`,
		"input in another case":   `{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"toolUse":{"input":"{\"a\":1}","INPUT":"{}"}}}}`,
		"duplicate delta":         `{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"text":"x"},"delta":{"toolUse":{"input":"{\"a\":1}"}}}}`,
		"two fields in one delta": `{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"toolUse":{"input":"{\"a\":1}"},"text":"x"}}}`,
		"duplicate index":         `{"contentBlockDelta":{"contentBlockIndex":1,"contentBlockIndex":0,"delta":{"toolUse":{"input":"{\"a\":1}"}}}}`,
		"duplicate name in start": `{"contentBlockStart":{"contentBlockIndex":0,"start":{"toolUse":{"toolUseId":"u","name":"g","name":"h"}}}}`,
		"start in another case":   `{"contentBlockStart":{"contentBlockIndex":0,"start":{"TOOLUSE":{"toolUseId":"u","name":"g"}}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			evs, err := drain(dialect.DecodeOptions{}, binary(startLine+callLine(0, "t", "f")+bad+"\n"+stopLine(0)+endLines("tool_use")))
			if err != nil {
				t.Fatal(err)
			}
			resp, err := codectest.Collect(evs)
			if err != nil {
				t.Fatal(err)
			}
			calls := resp.ToolCalls()
			if calls[len(calls)-1].Problem == nil {
				t.Errorf("%+v may run", calls[len(calls)-1])
			}
			if out, _ := encodeEvents(t, dialect.EncodeOptions{}, evs...); bytes.Contains(out, []byte(bad[strings.Index(bad, `":`)+2:len(bad)-1])) {
				t.Errorf("the event is passed through: %s", lines(t, out))
			}
			codectest.Reencoded(t, codec, evs)
		})
	}
}

// A server may send unknown fields next to a fragment. They are passed through,
// or reported if that is not possible. Null does not count (quirk C8).
func TestUnknownFieldInDeltaDoesNotBlockCall(t *testing.T) {
	for name, tc := range map[string]struct{ delta, unknown string }{
		"before the fragment": {`{"later":{"x":1},"toolUse":{"input":"{\"a\":1}"}}`, "later"},
		"after the fragment":  {`{"toolUse":{"input":"{\"a\":1}"},"later":[]}`, "later"},
		"inside the fragment": {`{"toolUse":{"input":"{\"a\":1}","later":1}}`, "later"},
		"null fields":         {`{"text":null,"toolUse":{"input":"{\"a\":1}"},"image":null}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			wire := binary(startLine + callLine(0, "t", "f") + `{"contentBlockDelta":{"contentBlockIndex":0,"delta":` + tc.delta + "}}\n" + stopLine(0) + endLines("tool_use"))
			evs, rep, err := codectest.DecodeStream(codec, dialect.DecodeOptions{}, wire)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := codectest.Collect(evs)
			if err != nil {
				t.Fatal(err)
			}
			if c := resp.ToolCalls()[0]; c.Problem != nil || c.Arguments != `{"a":1}` || !resp.Stop.Reason.Runs() {
				t.Errorf("%+v %+v, %+v", c, c.Problem, resp.Stop)
			}
			if reported := strings.Contains(rep.String(), tc.unknown); !reported || tc.unknown == "" && len(rep.Losses) > 0 {
				t.Errorf("report: %s", rep)
			}
			if out, _ := encodeEvents(t, dialect.EncodeOptions{}, evs...); partsOf(collect(t, out)) != `call f{"a":1}` || tc.unknown != "" && !strings.Contains(lines(t, out), `"later":`) {
				t.Errorf("re-encoded:\n%s", lines(t, out))
			}
		})
	}
}

// A caller that changes an event clears its chunk. The stream then continues
// from events, in the middle of what was begun, and stays valid.
func TestChangedStreamIsReencoded(t *testing.T) {
	evs, err := drain(dialect.DecodeOptions{}, richStream)
	if err != nil {
		t.Fatal(err)
	}
	known := slices.DeleteFunc(slices.Clone(evs), func(ev dragoman.Event) bool { // the checker refuses unknown events
		c, ok := ev.(*dragoman.Chunk)
		return ok && bytes.Contains(c.Raw, []byte("unheardOf"))
	})
	want, err := codectest.Collect(evs)
	if err != nil {
		t.Fatal(err)
	}
	out, _ := encodeEvents(t, dialect.EncodeOptions{}, known...)
	if err := checkWire(out); err != nil {
		t.Errorf("%v\n%s", err, lines(t, out))
	}
	if got := collect(t, out); partsOf(got) != partsOf(want) || got.Stop.Reason != want.Stop.Reason || got.Usage.Input != want.Usage.Input {
		t.Errorf("%s\nwant %s", partsOf(got), partsOf(want))
	}
	for at := range known {
		changed := codectest.Changed(known, at, strings.ToUpper)
		if changed == nil {
			continue
		}
		want, _ := codectest.Collect(changed)
		out, _ := encodeEvents(t, dialect.EncodeOptions{}, changed...)
		evs, _ := drain(dialect.DecodeOptions{NoNative: true}, out)
		got, err := codectest.Collect(evs)
		if err == nil && partsOf(got) != partsOf(want) || err != nil && len(want.ToolCalls()) == 0 {
			t.Errorf("changed at %d: %v %s\nwant %s", at, err, partsOf(got), partsOf(want))
		}
	}
}

func TestQuirkC21_OverlappingPartsAreSerialized(t *testing.T) {
	out, _ := encodeEvents(t, dialect.EncodeOptions{},
		&dragoman.ResponseStart{},
		&dragoman.PartStart{Index: 0, Part: call("1", "f", "")}, &dragoman.PartStart{Index: 1, Part: call("2", "g", "")},
		&dragoman.PartDelta{Index: 1, Text: `{"b":`}, &dragoman.PartDelta{Index: 0, Text: `{"a":1}`}, &dragoman.PartDelta{Index: 1, Text: `2}`},
		&dragoman.PartEnd{Index: 1, Part: call("2", "g", `{"b":2}`)}, &dragoman.PartEnd{Index: 0, Part: call("1", "f", `{"a":1}`)},
		&dragoman.ResponseEnd{Stop: dragoman.Stop{Reason: dragoman.StopToolCalls}})
	if err := checkWire(out); err != nil {
		t.Errorf("%v\n%s", err, lines(t, out))
	}
	if got := partsOf(collect(t, out)); got != `call f{"a":1}|call g{"b":2}` {
		t.Error(got)
	}
}

func TestUnfinishedStreamEndsWithException(t *testing.T) {
	out, _ := encodeEvents(t, dialect.EncodeOptions{}, &dragoman.ResponseStart{}, &dragoman.PartStart{Part: &dragoman.Text{}}, &dragoman.PartDelta{Text: "a"})
	if got := lines(t, out); !strings.Contains(got, `{"internalServerException":{"message":`) {
		t.Error(got)
	}
	if err := checkWire(out); err != nil {
		t.Error(err)
	}
	for class, word := range map[dragoman.ErrorClass]string{
		dragoman.ErrorRateLimit: "throttlingException", dragoman.ErrorOverloaded: "serviceUnavailableException", dragoman.ErrorTimeout: "serviceUnavailableException",
		dragoman.ErrorContextLength: "validationException", dragoman.ErrorAuth: "validationException", dragoman.ErrorServer: "internalServerException",
	} {
		out, _ := encodeEvents(t, dialect.EncodeOptions{}, &dragoman.StreamError{Err: &dragoman.APIError{Class: class, Type: "x", Message: "m"}})
		if got := lines(t, out); got != `{"`+word+`":{"message":"m"}}`+"\n" {
			t.Errorf("%s: %s", class, got)
		}
	}
}

func TestCallEndContradictingFragmentsIsError(t *testing.T) {
	out, rep := encodeEvents(t, dialect.EncodeOptions{}, &dragoman.ResponseStart{}, &dragoman.PartStart{Part: call("1", "f", "")}, &dragoman.PartDelta{Text: `{"a":1}`},
		&dragoman.PartEnd{Part: call("1", "f", `{"a":2}`)}, &dragoman.ResponseEnd{Stop: dragoman.Stop{Reason: dragoman.StopToolCalls}})
	if got := lines(t, out); strings.Contains(got, "contentBlockStop") || !strings.Contains(got, "Exception") || len(rep.Losses) == 0 {
		t.Error(got)
	}
}
