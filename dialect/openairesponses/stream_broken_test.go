package openairesponses

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/testkit/codectest"
	"pgregory.net/rapid"
)

// twoCalls returns a stream with text, a call that ended and one that did not.
func twoCalls(tail ...string) []byte {
	return events(append([]string{
		created,
		added(0, `{"type":"message","id":"msg_1","role":"assistant","content":[]}`),
		`{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"hi"}`,
		added(1, callJSON("fc_1", "c1", "", "in_progress")), done(1, callJSON("fc_1", "c1", "{}", "completed")),
		added(2, callJSON("fc_2", "c2", "", "in_progress")), argDelta(2, `{"a"`),
	}, tail...)...)
}

// checkBroken checks the guarantees for a broken stream: every part ends, no call may run, one
// StreamError is last, and the error of Close has the cause.
func checkBroken(t *testing.T, evs []dragoman.Event, closed error) {
	t.Helper()
	if !errors.Is(closed, dragoman.ErrIncompleteStream) {
		t.Errorf("close: %v", closed)
	}
	open, ends := map[int]bool{}, 0
	for i, ev := range evs {
		switch ev := ev.(type) {
		case *dragoman.PartStart:
			open[ev.Index] = true
		case *dragoman.PartEnd:
			delete(open, ev.Index)
			if c, ok := ev.Part.(*dragoman.ToolCall); ok && c.Problem == nil {
				t.Errorf("call %s may run", c.ID)
			}
		case *dragoman.StreamError:
			if ends++; i != len(evs)-1 {
				t.Errorf("event %d of %d is a StreamError", i+1, len(evs))
			}
		case *dragoman.ResponseEnd:
			t.Error("a broken stream has a ResponseEnd")
		}
	}
	if len(open) > 0 || ends != 1 {
		t.Errorf("open parts %v, %d StreamErrors", open, ends)
	}
}

func TestCloseAfterAnErrorEndsTheStream(t *testing.T) {
	for what, broken := range map[string]string{
		"not JSON":                          `{"type":"response.output_text.delta","delta":`,
		"invalid message":                   done(0, `{"type":"message","role":7}`),
		"invalid message in an added event": added(3, `{"type":"message","role":7}`),
		"invalid reasoning item":            done(3, `{"type":"reasoning","id":7}`),
	} {
		t.Run(what, func(t *testing.T) {
			d := Codec{}.NewStreamDecoder(dialect.DecodeOptions{NoNative: true})
			var evs []dragoman.Event
			emit := func(ev dragoman.Event) error { evs = append(evs, ev); return nil }
			fed := d.Feed(twoCalls(broken, argDelta(2, `LATE`), completed), emit)
			var at *dragoman.DecodeError
			if !errors.As(fed, &at) {
				t.Fatalf("feed: %v", fed)
			}
			if again := d.Feed(events(completed), emit); !errors.Is(again, fed) {
				t.Errorf("fed again: %v", again)
			}
			closed := d.Close(emit)
			checkBroken(t, evs, closed)
			if !errors.Is(closed, fed) || strings.Contains(dump(evs), "LATE") {
				t.Errorf("close: %v\n%s", closed, dump(evs))
			}
			if again := d.Close(emit); !errors.Is(again, dragoman.ErrIncompleteStream) {
				t.Errorf("closed again: %v", again)
			}
			checkBroken(t, evs, closed)
			resp, _ := collect(evs)
			for _, c := range resp.ToolCalls() {
				if want := map[string]string{"c1": codes.ProblemStopped, "c2": codes.ProblemTruncated}[c.ID]; c.Problem.Code != want {
					t.Errorf("%s: %+v, want %s", c.ID, c.Problem, want)
				}
			}
		})
	}
}

func TestErrorOfEmitIsSticky(t *testing.T) {
	stop := errors.New("enough")
	d := Codec{}.NewStreamDecoder(dialect.DecodeOptions{NoNative: true})
	var evs []dragoman.Event
	err := d.Feed(twoCalls(completed), func(ev dragoman.Event) error {
		evs = append(evs, ev)
		if _, ok := ev.(*dragoman.PartDelta); ok {
			return stop
		}
		return nil
	})
	if !errors.Is(err, stop) {
		t.Fatal(err)
	}
	closed := d.Close(func(ev dragoman.Event) error { evs = append(evs, ev); return nil })
	checkBroken(t, evs, closed)
	if !errors.Is(closed, stop) {
		t.Errorf("close: %v", closed)
	}
}

func TestCutStreamEndsItsParts(t *testing.T) {
	body := twoCalls(completed)
	for n := bytes.Index(body, []byte("c1")); n < bytes.Index(body, []byte(`{"type":"response.completed"`)); n++ {
		d := Codec{}.NewStreamDecoder(dialect.DecodeOptions{})
		var evs []dragoman.Event
		emit := func(ev dragoman.Event) error {
			if c, ok := ev.(*dragoman.Chunk); ok {
				ev = &dragoman.Chunk{Dialect: c.Dialect, Raw: bytes.Clone(c.Raw), Loss: c.Loss}
			}
			evs = append(evs, ev)
			return nil
		}
		if err := d.Feed(body[:n], emit); err != nil {
			t.Fatal(err)
		}
		checkBroken(t, evs, d.Close(emit))
		// The re-encoded stream ends in a way that a client can parse.
		out, _ := encodeStream(t, evs, dialect.EncodeOptions{})
		back, _, err := decodeStream(out, len(out), dialect.DecodeOptions{NoNative: true})
		if err != nil {
			t.Fatalf("cut at %d: %v\n%s", n, err, out)
		}
		if last, ok := back[len(back)-1].(*dragoman.StreamError); !ok || last.Err.Native == nil {
			t.Fatalf("cut at %d: re-encoded without an error\n%s", n, out)
		}
	}
}

func TestBrokenStreamGivesTheSameEventsForAnySplit(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		body, _ := encodeStream(t, eventGen(rt), dialect.EncodeOptions{})
		at := rapid.IntRange(0, len(body)).Draw(rt, "place")
		switch rapid.IntRange(0, 2).Draw(rt, "how") {
		case 0:
			body = body[:at]
		case 1:
			garbage := rapid.SampledFrom([]string{"x", "\n", "\n\n", "\r", "}", "\"", "data: {\n\n", "data: {}\n\n", "data: 7\n\n", "<html>\n\n", "event: error\n"}).Draw(rt, "garbage")
			body = append(append(bytes.Clone(body[:at]), garbage...), body[at:]...)
		default:
			to := rapid.IntRange(at, len(body)).Draw(rt, "to")
			body = append(bytes.Clone(body[:at]), body[to:]...)
		}
		o := dialect.DecodeOptions{Seed: "s", MaxBytes: rapid.SampledFrom([]int{0, 100, 1000}).Draw(rt, "max")}
		want, _, wantErr := decodeStream(body, len(body), o)
		for _, n := range []int{1, rapid.IntRange(2, 40).Draw(rt, "size")} {
			got, _, gotErr := decodeStream(body, n, o)
			if (wantErr == nil) != (gotErr == nil) || wantErr != nil && wantErr.Error() != gotErr.Error() {
				rt.Fatalf("%v, split %v", wantErr, gotErr)
			}
			if diff := codectest.DiffEvents(t, want, got); diff != "" {
				rt.Fatal(diff)
			}
		}
		last := want[len(want)-1].Type()
		for i := len(want) - 1; last == "chunk"; i-- { // a [DONE] after the end
			last = want[i].Type()
		}
		if last != "response_end" && last != "stream_error" {
			rt.Fatalf("the last event is a %s", last)
		}
	})
}

func TestBodyThatIsNotAStream(t *testing.T) {
	for _, c := range []struct {
		what, body string
		class      dragoman.ErrorClass
		message    string
		retry      bool
	}{
		{"error body", `{"error":{"message":"no key","type":"invalid_request_error","code":"invalid_api_key"}}`, dragoman.ErrorAuth, "no key", false},
		{"indented error body", "{\n  \"error\": {\n    \"message\": \"slow\",\n    \"code\": \"rate_limit_exceeded\"\n  }\n}\n\n", dragoman.ErrorRateLimit, "slow", true},
		{"HTML", "<html>\n\n<body>busy</body></html>", dragoman.ErrorServer, `no event in the stream; it begins with "<html>\n\n<body>busy</body></html>"`, true},
		{"whole response", `{"id":"resp_1","output":[]}`, dragoman.ErrorServer, `no event in the stream; it begins with "{\"id\":\"resp_1\",\"output\":[]}"`, true},
		{"empty", "", dragoman.ErrorServer, "the stream ended before response.completed, response.incomplete or response.failed", true},
		{"keep-alives", ": ping\n\n", dragoman.ErrorServer, "the stream ended before response.completed, response.incomplete or response.failed", true},
	} {
		t.Run(c.what, func(t *testing.T) {
			d := Codec{}.NewStreamDecoder(dialect.DecodeOptions{})
			var evs []dragoman.Event
			emit := func(ev dragoman.Event) error { evs = append(evs, ev); return nil }
			for i := range len(c.body) {
				if err := d.Feed([]byte(c.body[i:i+1]), emit); err != nil {
					t.Fatal(err)
				}
			}
			closed := d.Close(emit)
			checkBroken(t, evs, closed)
			err := evs[len(evs)-1].(*dragoman.StreamError).Err
			if err.Class != c.class || err.Message != c.message || err.Retryable() != c.retry {
				t.Errorf("%+v", err)
			}
			out, _ := encodeStream(t, evs, dialect.EncodeOptions{})
			if !bytes.Contains(out, []byte(`"type":"response.failed"`)) {
				t.Errorf("re-encoded without an error: %s", out)
			}
		})
	}
	d := Codec{}.NewStreamDecoder(dialect.DecodeOptions{})
	var last dragoman.Event
	emit := func(ev dragoman.Event) error { last = ev; return nil }
	if err := d.Feed(bytes.Repeat([]byte("x"), 1<<20), emit); err != nil {
		t.Fatal(err)
	}
	_ = d.Close(emit)
	if err := last.(*dragoman.StreamError).Err; len(err.Message) > 1000 {
		t.Errorf("message of %d bytes", len(err.Message))
	}
}

func TestStreamIsRebuiltOnRequest(t *testing.T) {
	body := events(`{"type":"response.created","sequence_number":40,"response":{"id":"resp_1","model":"up"}}`,
		`{"type":"vendor.note","x":1}`,
		`{"type":"response.output_text.delta","sequence_number":41,"output_index":0,"content_index":0,"delta":"hi"}`, completed)
	evs, _, err := decodeStream(body, len(body), dialect.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out, _ := encodeStream(t, evs, dialect.EncodeOptions{Rebuild: true})
	if err := checkOrder(out, false); err != nil || bytes.Contains(out, []byte("vendor.note")) {
		t.Errorf("%v\n%s", err, out)
	}
	if resp, _, _ := run(t, out); resp.Text() != "hi" {
		t.Errorf("%s", out)
	}
}

func TestModelOverrideInAStream(t *testing.T) {
	body := events(`{"type":"response.created","model":"router","response":{"id":"resp_1","model":"up","tools":[{"model":"up"}]}}`,
		`{"type":"vendor.note","model":"up"}`, `{"type":"vendor.more","response":"none","model":"up"}`, completed)
	evs, _, err := decodeStream(body, len(body), dialect.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out, _ := encodeStream(t, evs, dialect.EncodeOptions{Model: "alias"})
	for _, want := range []string{`"model":"router"`, `{"type":"vendor.note","model":"up"}`, `{"type":"vendor.more","response":"none","model":"up"}`} {
		if !bytes.Contains(out, []byte(want)) {
			t.Errorf("no %s in %s", want, out)
		}
	}
	if bytes.Contains(out, []byte(`"model":"m"`)) || bytes.Count(out, []byte(`"model":"alias"`)) != 3 {
		t.Errorf("%s", out)
	}
}

func TestStreamErrorHasEventAndPosition(t *testing.T) {
	good := string(events(created, added(0, `{"type":"message","id":"msg_1","role":"assistant","content":[]}`))) + ": keep-alive\n\n"
	for _, tc := range []struct{ what, event, pointer, at string }{
		{"cut off", `data: {"type":"response.completed","response":{`, "/response", "\n\n"},
		{"string", `data: "x"`, "", `"x"`},
		{"string as index", `data: {"type":"x","content_index":"x"}`, "/content_index", `"x"`},
		{"number as role", "data: " + done(0, `{"type":"message","id":"msg_1","role":5}`), "/item/role", "5}"},
		{"added item", "data: " + added(1, `{"type":"message","id":"msg_2","phase":5}`), "/item/phase", "5}"},
		{"item of the output", `data: {"type":"response.completed","response":{"output":[{"type":"reasoning"},{"type":"message","role":5}]}}`, "/response/output/1/role", "5}"},
		{"number as status", `data: {"type":"response.completed","response":{"status":7}}`, "/response/status", "7}"},
		{"two documents", `data: {"type":"x"} {}`, "", " {}"},
	} {
		t.Run(tc.what, func(t *testing.T) {
			body := good + tc.event + "\n\n"
			for _, n := range []int{1, len(body)} {
				_, _, err := decodeStream([]byte(body), n, dialect.DecodeOptions{})
				var de *dragoman.DecodeError
				if !errors.As(err, &de) || de.Pointer != tc.pointer || !strings.Contains(de.Error(), "event 3: ") {
					t.Fatalf("%v", err)
				}
				if de.Offset < 0 || !strings.HasPrefix(body[de.Offset:], tc.at) {
					t.Errorf("byte %d of %q is not %q", de.Offset, body, tc.at)
				}
			}
		})
	}
	_, _, err := decodeStream([]byte(good+"data: "+strings.Repeat("x", 200)+"\n\n"), 7, dialect.DecodeOptions{MaxBytes: 180})
	var de *dragoman.DecodeError
	if !errors.As(err, &de) || de.Offset != int64(len(good)) || !strings.Contains(de.Error(), "event 3: ") || !errors.Is(err, dragoman.ErrTooLarge) {
		t.Errorf("%v", err)
	}
}

func TestFailedStreamKeepsUsageAndStop(t *testing.T) {
	failed := `{"type":"response.failed","response":{"id":"resp_1","status":"failed","error":{"code":"server_error","message":"boom"},"output":[],"usage":{"input_tokens":7,"output_tokens":3,"total_tokens":10}}}`
	flat := `{"type":"error","code":"server_error","message":"boom"}`
	for what, tail := range map[string][]string{"response.failed": {failed}, "error, then response.failed": {flat, failed}} {
		t.Run(what, func(t *testing.T) {
			evs, _, err := decodeStream(twoCalls(tail...), 5, dialect.DecodeOptions{NoNative: true})
			if err != nil {
				t.Fatal(err)
			}
			resp, err := collect(evs)
			if err == nil || resp.Error == nil || resp.Error.Message != "boom" {
				t.Errorf("%v %+v", err, resp.Error)
			}
			if resp.Usage.Input.N != 7 || resp.Usage.Output.N != 3 || resp.Stop.Reason != dragoman.StopError || resp.Text() != "hi" {
				t.Errorf("%+v %+v %q", resp.Usage, resp.Stop, resp.Text())
			}
			// A client of the re-encoded response gets the same, streamed or whole.
			out, _ := encodeStream(t, evs, dialect.EncodeOptions{})
			back, _, _ := decodeStream(out, len(out), dialect.DecodeOptions{NoNative: true})
			if again, _ := collect(back); again.Usage.Input.N != 7 || again.Stop.Reason != dragoman.StopError {
				t.Errorf("%+v\n%s", again.Usage, out)
			}
			if v, _ := encodeResponse(t, resp, dialect.EncodeOptions{}); v["status"] != "failed" || at(v, "usage", "input_tokens") != float64(7) {
				t.Errorf("%v", v)
			}
		})
	}
}

func TestQuirkC37_TwoResponsesInOneStreamAreRefused(t *testing.T) {
	text := `{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"first "}`
	message := added(0, `{"type":"message","id":"msg_1","role":"assistant","content":[]}`)
	snapshot := func(typ, id string) string {
		return `{"type":"response.` + typ + `","response":{"id":"` + id + `","status":"in_progress"}}`
	}
	second := []string{
		added(1, callJSON("fc_2", "c2", "", "in_progress")), done(1, callJSON("fc_2", "c2", "{}", "completed")),
		`{"type":"response.completed","response":{"id":"other","status":"completed"}}`,
	}
	for what, first := range map[string][]string{
		"another is created":                     {snapshot("created", "resp"), message, text, snapshot("created", "other")},
		"another is created before any item":     {snapshot("created", "resp"), snapshot("created", "other")},
		"another continues":                      {snapshot("created", "resp"), message, text, snapshot("in_progress", "other")},
		"another is queued":                      {snapshot("created", "resp"), message, text, snapshot("queued", "other")},
		"another continues after the id changed": {snapshot("created", "resp"), snapshot("in_progress", "rotated"), message, text, snapshot("in_progress", "other")},
	} {
		t.Run(what, func(t *testing.T) {
			d := Codec{}.NewStreamDecoder(dialect.DecodeOptions{NoNative: true})
			var evs []dragoman.Event
			emit := func(ev dragoman.Event) error { evs = append(evs, ev); return nil }
			if err := d.Feed(events(append(first, second...)...), emit); !errors.Is(err, errSpliced) {
				t.Errorf("%v", err)
			}
			closed := d.Close(emit)
			for _, ev := range evs {
				if end, ok := ev.(*dragoman.PartEnd); ok && end.Part.Kind() == codes.KindToolCall {
					t.Errorf("a call of the second response was emitted: %+v", end.Part)
				}
			}
			checkBroken(t, evs, closed)
		})
	}
	end := `{"type":"response.completed","response":{"id":"last","status":"completed"}}`
	for what, body := range map[string][]string{
		"the same again":                 {snapshot("created", "resp"), message, text, snapshot("created", "resp"), snapshot("in_progress", "resp"), end},
		"id that changes before items":   {snapshot("created", "resp"), snapshot("in_progress", "rotated"), message, text, snapshot("in_progress", "resp"), snapshot("in_progress", "rotated"), end},
		"start without an id":            {snapshot("created", "resp"), message, text, snapshot("created", ""), `{"type":"response.created"}`, end},
		"start after an item":            {message, text, snapshot("created", "resp"), end},
		"end with another id":            {snapshot("created", "resp"), message, text, end},
		"snapshot that is not an object": {snapshot("created", "resp"), message, text, `{"type":"response.in_progress","response":5}`, end},
	} {
		t.Run(what, func(t *testing.T) {
			if resp, _, _ := run(t, events(body...)); resp.Text() != "first " {
				t.Errorf("%q", resp.Text())
			}
		})
	}
}

// A call that the stream ended inside keeps the fragments that were sent. It never becomes a
// call with empty arguments, which a client would run.
func TestQuirkB9_CallWithoutEndKeepsItsFragments(t *testing.T) {
	for _, sent := range []string{"", " ", "\n", `{"a":`} {
		t.Run(strconv.Quote(sent), func(t *testing.T) {
			evs := []dragoman.Event{
				&dragoman.ResponseStart{Response: dragoman.Response{ID: "r", Model: "m"}},
				&dragoman.PartStart{Part: &dragoman.ToolCall{ID: "c", Name: "f"}},
			}
			if sent != "" {
				evs = append(evs, &dragoman.PartDelta{Text: sent})
			}
			out, _ := encodeStream(t, evs, dialect.EncodeOptions{Seed: "s", Model: "m"})
			want := `"arguments":` + strconv.Quote(sent) + `,"status":"incomplete"`
			if strings.Contains(string(out), `"arguments":"{}"`) || !strings.Contains(string(out), want) {
				t.Errorf("no %s in\n%s", want, out)
			}
		})
	}
}
