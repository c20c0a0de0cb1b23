package gemini_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/gemini"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/testkit/codectest"
	"github.com/dragoman-go/dragoman/interop"
	"github.com/google/go-cmp/cmp"
)

// richStream has a part of every kind.
var richStream = []byte(sseStream(
	chunk("", `{"text":"Let me","thought":true}`), chunk("", `{"text":" look.","thought":true}`),
	chunk("", `{"text":"Hel"}`), chunk("", `{"text":"lo"}`), chunk("", `{"text":"","thoughtSignature":"c0"}`),
	chunk("", `{"functionCall":{"id":"fc-1","name":"get_weather","args":{"city":"Oslo"}},"thoughtSignature":"c1"},{"functionCall":{"id":"fc-2","name":"get_time","args":{}}}`),
	chunk("", `{"executableCode":{"language":"PYTHON","code":"1"}}`),
	chunk("", `{"inlineData":{"mimeType":"image/png","data":"AAAA"}}`),
	chunk("", `{"functionCall":{"name":"slow","willContinue":true}}`),
	chunk("", `{"functionCall":{"partialArgs":[{"jsonPath":"$.city","stringValue":"Os","willContinue":true}],"willContinue":true}}`),
	chunk("", `{"functionCall":{"partialArgs":[{"jsonPath":"$.city","stringValue":"lo"}],"willContinue":true}}`),
	chunk("", `{"functionCall":{}}`),
	`{"candidates":[{"content":{"parts":[{"text":""}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":29,"candidatesTokenCount":15,"thoughtsTokenCount":40,"totalTokenCount":84},"modelVersion":"gemini-3.8-flash","responseId":"r1"}`))

// asArray returns a stream of events in the API's array framing.
func asArray(stream []byte) []byte {
	var docs []string
	for line := range strings.Lines(string(stream)) {
		if data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: "); ok {
			docs = append(docs, data)
		}
	}
	return []byte("[" + strings.Join(docs, "\n,\r\n") + "\n]\n")
}

func TestQuirkC29_ArrayStream(t *testing.T) {
	array := asArray(richStream)
	want := collect(t, string(richStream))
	if diff := cmp.Diff(want, collect(t, string(array)), ignoreSidecars); diff != "" {
		t.Error(diff)
	}
	evs, err := drain(dialect.DecodeOptions{}, array)
	if err != nil {
		t.Fatal(err)
	}
	for size := 1; size < 40; size++ {
		var got []dragoman.Event
		got, _, err := codectest.DecodeStream(codec, dialect.DecodeOptions{}, codectest.Pieces(array, size)...)
		if diff := cmp.Diff(evs, got, ignoreSidecars); diff != "" || err != nil {
			t.Fatalf("chunks of %d: %v %s", size, err, diff)
		}
	}
	list := gemini.Codec{Array: true}
	events, err := drain(dialect.DecodeOptions{}, richStream)
	if err != nil {
		t.Fatal(err)
	}
	out, _ := codectest.EncodeStream(t, list, dialect.EncodeOptions{}, events)
	if err := checkWire(out); err != nil || out[0] != '[' {
		t.Errorf("%v\n%s", err, out)
	}
	for _, c := range want.ToolCalls() {
		if c.Name == "slow" {
			c.Arguments = `{"city":"Oslo"}`
		}
	}
	if diff := cmp.Diff(texts(want), texts(collect(t, string(out)))); diff != "" {
		t.Error(diff)
	}
}

// texts returns the text, the stop reason and the sorted calls of a response.
func texts(r *dragoman.Response) []string {
	out := []string{r.Text(), string(r.Stop.Reason)}
	for _, c := range r.ToolCalls() {
		out = append(out, c.Name+c.Arguments+c.Signature)
	}
	slices.Sort(out[2:])
	return out
}

func TestTruncatedArrayStreamIsIncomplete(t *testing.T) {
	whole := string(asArray([]byte(sseStream(chunk("", `{"text":"a"}`), chunk("STOP", `{"text":"b"}`)))))
	for cut := range len(whole) {
		evs, err := drain(dialect.DecodeOptions{}, []byte(whole[:cut]))
		complete := strings.Contains(whole[:cut], `"STOP"`) && strings.HasSuffix(strings.TrimRight(whole[:cut], "] \r\n"), "}") && strings.Count(whole[:cut], "{") == strings.Count(whole[:cut], "}")
		if complete != (err == nil) {
			t.Fatalf("cut at %d: %v\n%s", cut, err, whole[:cut])
		}
		if err != nil && !errors.Is(err, dragoman.ErrIncompleteStream) {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		if _, failed := evs[len(evs)-1].(*dragoman.StreamError); failed == complete {
			t.Fatalf("cut at %d: the last event is %+v", cut, evs[len(evs)-1])
		}
	}
}

func TestQuirkC27_CallsWithoutID(t *testing.T) {
	f := func(n int) string { return fmt.Sprintf(`{"functionCall":{"name":"f","args":{"n":%d}}}`, n) }
	resp := collect(t, sseStream(chunk("", f(1)), chunk("", f(2)), chunk("STOP", f(3)+","+f(1))))
	var got []string
	ids := map[string]bool{}
	for _, c := range resp.ToolCalls() {
		got, ids[c.ID] = append(got, c.Arguments), true
	}
	if want := []string{`{"n":1}`, `{"n":2}`, `{"n":3}`, `{"n":1}`}; !slices.Equal(got, want) || len(ids) != 4 {
		t.Errorf("got %v, ids %v", got, ids)
	}
	again := sseStream(chunk("", f(1)), chunk("STOP", f(1)+","+f(2)))
	resp = collect(t, again)
	if calls := resp.ToolCalls(); len(calls) != 2 {
		t.Errorf("%d calls", len(calls))
	}
	evs, err := drain(dialect.DecodeOptions{}, []byte(again))
	if err != nil {
		t.Fatal(err)
	}
	out, _ := encodeEvents(t, dialect.EncodeOptions{}, evs...)
	if n := strings.Count(out, `"functionCall"`); n != 2 {
		t.Errorf("a client sees %d calls: %s", n, out)
	}
}

func TestQuirkC28_PartialArgs(t *testing.T) {
	piece := func(continues bool, pieces string) string {
		return chunk("", fmt.Sprintf(`{"functionCall":{"partialArgs":[%s],"willContinue":%v}}`, pieces, continues))
	}
	begin, end, stop := chunk("", `{"functionCall":{"name":"f","willContinue":true},"thoughtSignature":"s"}`), chunk("", `{"functionCall":{}}`), chunk("STOP", `{"text":""}`)
	for _, c := range []struct {
		name   string
		chunks []string
		want   string
		code   string
	}{
		{"none", []string{begin, end}, ``, ""},
		{"string in fragments", []string{begin, piece(true, `{"jsonPath":"$.a","stringValue":"x","willContinue":true}`), piece(true, `{"jsonPath":"$.a","stringValue":"y"}`), end}, `{"a":"xy"}`, ""},
		{"ends with a value", []string{begin, piece(false, `{"jsonPath":"$.a","numberValue":3}`)}, `{"a":3}`, ""},
		{"all value kinds", []string{begin, piece(true, `{"jsonPath":"$.n","numberValue":1.50},{"jsonPath":"$.b","boolValue":false},{"jsonPath":"$.z","nullValue":"NULL_VALUE"},{"jsonPath":"$.s","stringValue":""}`), end}, `{"n":1.50,"b":false,"z":null,"s":""}`, ""},
		{"nested", []string{begin, piece(true, `{"jsonPath":"$.o['a.b'].l[1][\"q\"]","stringValue":"v"},{"jsonPath":"$.o['it\\'s']","boolValue":true},{"jsonPath":"$.o['a.b'].l[0]","nullValue":null}`), end}, `{"o":{"a.b":{"l":[null,{"q":"v"}]},"it's":true}}`, ""},
		{"surrogate pair", []string{begin, piece(true, `{"jsonPath":"$['\\ud83d\\ude00\\u0021']","stringValue":"x"}`), end}, `{"😀!":"x"}`, ""},
		{"high surrogate only", []string{begin, piece(true, `{"jsonPath":"$['\\ud83dx']","stringValue":"x"}`), end}, `{}`, codes.ProblemInvalidJSON},
		{"low surrogate first", []string{begin, piece(true, `{"jsonPath":"$['\\ude00\\ud83d']","stringValue":"x"}`), end}, `{}`, codes.ProblemInvalidJSON},
		{"missing list element", []string{begin, piece(true, `{"jsonPath":"$.b[2]","numberValue":1},{"jsonPath":"$.b[0]","numberValue":1}`), end}, `{"b":[1,null,1]}`, codes.ProblemInvalidJSON},
		{"unfinished string", []string{begin, piece(true, `{"jsonPath":"$.p","stringValue":"/home/me/tm","willContinue":true}`), end}, `{"p":"/home/me/tm"}`, codes.ProblemTruncated},
		{"unfinished string before another value", []string{begin, piece(true, `{"jsonPath":"$.p","stringValue":"/ho","willContinue":true},{"jsonPath":"$.q","boolValue":true}`), end}, `{"p":"/ho","q":true}`, codes.ProblemTruncated},
		{"duplicate path", []string{begin, piece(true, `{"jsonPath":"$.a","jsonPath":"$.b","stringValue":"x"}`), end}, ``, codes.ProblemInvalidJSON},
		{"path in another letter case", []string{begin, piece(true, `{"jsonPath":"$.a","JSONPath":"$.b","stringValue":"x"}`), end}, ``, codes.ProblemInvalidJSON},
		{"unknown value kind", []string{begin, piece(true, `{"jsonPath":"$.a","structValue":{"b":1}}`), end}, ``, codes.ProblemInvalidJSON},
		{"null string", []string{begin, piece(true, `{"jsonPath":"$.a","stringValue":null}`), end}, ``, codes.ProblemInvalidJSON},
		{"null number", []string{begin, piece(true, `{"jsonPath":"$.a","numberValue":null}`), end}, ``, codes.ProblemInvalidJSON},
		{"null string and a number", []string{begin, piece(true, `{"jsonPath":"$.a","stringValue":null,"numberValue":7}`), end}, `{"a":7}`, ""},
		{"invalid null", []string{begin, piece(true, `{"jsonPath":"$.a","nullValue":"x"}`), end}, ``, codes.ProblemInvalidJSON},
		{"not a list", []string{begin, chunk("", `{"functionCall":{"partialArgs":{"jsonPath":"$.a","stringValue":"x"}}}`)}, ``, codes.ProblemUnreadable},
		{"snake case", []string{begin, chunk("", `{"function_call":{"partial_args":[{"json_path":"$.a","string_value":"x"}]}}`)}, `{"a":"x"}`, ""},
		{"value set twice", []string{begin, piece(true, `{"jsonPath":"$.a","numberValue":1},{"jsonPath":"$.a","numberValue":2}`), end}, `{"a":1}`, codes.ProblemInvalidJSON},
		{"finished string continued", []string{begin, piece(true, `{"jsonPath":"$.a","stringValue":"x"},{"jsonPath":"$.a","stringValue":"y"}`), end}, `{"a":"x"}`, codes.ProblemInvalidJSON},
		{"path through a string", []string{begin, piece(true, `{"jsonPath":"$.a","stringValue":"x"},{"jsonPath":"$.a.b","stringValue":"y"}`), end}, `{"a":"x"}`, codes.ProblemInvalidJSON},
		{"index too large", []string{begin, piece(true, `{"jsonPath":"$.a[1000000000]","stringValue":"x"}`), end}, `{"a":null}`, codes.ProblemInvalidJSON},
		{"invalid path", []string{begin, piece(true, `{"jsonPath":"a","stringValue":"x"}`), end}, ``, codes.ProblemInvalidJSON},
		{"path with several values", []string{begin, piece(true, `{"jsonPath":"$..a","stringValue":"x"}`), end}, `{}`, codes.ProblemInvalidJSON},
		{"no end", []string{begin, piece(true, `{"jsonPath":"$.a","stringValue":"x"}`)}, `{"a":"x"}`, codes.ProblemTruncated},
		{"no end before the next call", []string{begin, chunk("", `{"functionCall":{"name":"g","args":{}}}`)}, ``, codes.ProblemTruncated},
	} {
		t.Run(c.name, func(t *testing.T) {
			resp := collect(t, sseStream(append(c.chunks, stop)...))
			k := resp.ToolCalls()[0]
			code := ""
			if k.Problem != nil {
				code = k.Problem.Code
			}
			if k.Arguments != c.want || code != c.code || k.Signature != "s" || k.Name != "f" {
				t.Errorf("got %s, problem %v, signature %q", k.Arguments, k.Problem, k.Signature)
			}
			if code == "" {
				return
			}
			evs, _ := drain(dialect.DecodeOptions{}, []byte(sseStream(append(c.chunks, stop)...)))
			if out, _ := encodeEvents(t, dialect.EncodeOptions{}, evs...); !strings.HasSuffix(finishes(out), "OTHER") && !strings.HasSuffix(finishes(out), "MAX_TOKENS") {
				t.Errorf("a client would run it: %s", out)
			}
		})
	}
}

// finishes lists the finish reasons of a stream.
func finishes(stream string) string {
	var out []string
	for _, m := range regexp.MustCompile(`"finishReason":"(\w+)"`).FindAllStringSubmatch(stream, -1) {
		out = append(out, m[1])
	}
	return strings.Join(out, " ")
}

func TestQuirkC28_PartialArgsMemoryIsBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"functionCall":{"name":"f","partialArgs":[`)
	for i := range 40 {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"jsonPath":"$.a%d[4096]","stringValue":"x"}`, i)
	}
	b.WriteString(`,{"jsonPath":"$` + strings.Repeat(".a", 10_000) + `","stringValue":"x"}]}}`)
	k := collect(t, sseStream(chunk("STOP", b.String()))).ToolCalls()[0]
	if k.Problem == nil || len(k.Arguments) > 1<<20 {
		t.Errorf("%v, %d bytes", k.Problem, len(k.Arguments))
	}
}

func TestQuirkC22_SignedEndOfThought(t *testing.T) {
	for name, tc := range map[string]struct {
		chunks []string
		want   []string // text and signature of each thought
	}{
		"only the signature":      {[]string{`{"text":"Let me","thought":true}`, `{"text":" look.","thought":true}`, `{"text":"","thought":true,"thoughtSignature":"s"}`}, []string{"Let me look.", "s"}},
		"with text":               {[]string{`{"text":"Let me","thought":true}`, `{"text":" look.","thought":true,"thoughtSignature":"s"}`}, []string{"Let me look.", "s"}},
		"another thought follows": {[]string{`{"text":"a","thought":true}`, `{"text":"","thought":true,"thoughtSignature":"s"}`, `{"text":"b","thought":true}`}, []string{"a", "s", "b", ""}},
		"in one chunk":            {[]string{`{"text":"a","thought":true},{"text":"b","thought":true,"thoughtSignature":"s"}`}, []string{"a", "", "b", "s"}},
		"of a text":               {[]string{`{"text":"a","thought":true}`, `{"text":"","thoughtSignature":"s"}`}, []string{"a", ""}},
	} {
		var chunks []string
		for _, parts := range tc.chunks {
			chunks = append(chunks, chunk("", parts))
		}
		evs, _ := drain(dialect.DecodeOptions{NoNative: true}, []byte(sseStream(append(chunks, chunk("STOP", `{"text":"Hello"}`))...)))
		var got []string
		for _, ev := range evs {
			if end, ok := ev.(*dragoman.PartEnd); ok {
				if r, ok := end.Part.(*dragoman.Reasoning); ok {
					got = append(got, r.Text, r.Signature)
				}
			}
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

func TestQuirkC30_SignatureStaysOnItsPart(t *testing.T) {
	resp := collect(t, string(richStream))
	var got []string
	for _, p := range resp.Output[0].Parts {
		switch p := p.(type) {
		case *dragoman.Reasoning:
			got = append(got, "thought "+p.Text)
		case *dragoman.Text:
			got = append(got, "text "+p.Text+p.Signature)
		case *dragoman.ToolCall:
			got = append(got, "call "+p.Name+p.Signature)
		default:
			got = append(got, p.Kind())
		}
	}
	want := []string{"thought Let me look.", "text Hello", "text c0", "call get_weatherc1", "call get_time", "opaque", "media", "call slow"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	evs, _ := drain(dialect.DecodeOptions{NoNative: true}, []byte(sseStream(chunk("", `{"text":"a"}`), chunk("", `{"text":"b","thoughtSignature":"s"}`), chunk("STOP", `{"text":"c"}`))))
	out, _ := encodeEvents(t, dialect.EncodeOptions{}, evs...)
	if !strings.Contains(out, `{"text":"b","thoughtSignature":"s"}`) {
		t.Error(out)
	}
}

func TestQuirkC13_NoFinishReasonIsIncomplete(t *testing.T) {
	evs, err := drain(dialect.DecodeOptions{}, []byte(sseStream(chunk("", `{"functionCall":{"name":"f","args":{}}}`))))
	if !errors.Is(err, dragoman.ErrIncompleteStream) {
		t.Fatal(err)
	}
	resp, _ := codectest.Collect(evs)
	if c := resp.ToolCalls(); len(c) != 1 || c[0].Problem == nil || c[0].Problem.Code != codes.ProblemTruncated {
		t.Errorf("%+v", c)
	}
}

func TestEarlyFinishReasonIsNotTheEnd(t *testing.T) {
	resp := collect(t, sseStream(chunk("STOP", `{"text":"a"}`), chunk("", `{"text":"b"}`), chunk("STOP", `{"functionCall":{"name":"f","args":{}}}`)))
	if resp.Text() != "ab" || resp.Stop.Reason != dragoman.StopToolCalls {
		t.Errorf("%q, %+v", resp.Text(), resp.Stop)
	}
	// But a finish reason that blocks calls is never replaced.
	stream := sseStream(chunk("SAFETY", `{"functionCall":{"name":"f","args":{}}}`), chunk("STOP", `{"text":""}`))
	resp = collect(t, stream)
	if resp.Stop.Reason != dragoman.StopContentFilter || resp.ToolCalls()[0].Problem == nil {
		t.Errorf("%+v", resp.Stop)
	}
	evs, _ := drain(dialect.DecodeOptions{}, []byte(stream))
	if out, _ := encodeEvents(t, dialect.EncodeOptions{}, evs...); strings.Contains(out, "STOP") {
		t.Errorf("a client would run the call: %s", out)
	}
}

func TestQuirkC14_ErrorEndsStream(t *testing.T) {
	failure := `{"error":{"code":503,"message":"busy","status":"UNAVAILABLE"}}`
	for _, stream := range []string{
		sseStream(chunk("", `{"text":"a"}`), failure),
		string(asArray([]byte(sseStream(chunk("", `{"text":"a"}`), failure)))),
		"[" + failure + "]", failure, sseStream(failure),
	} {
		evs, err := drain(dialect.DecodeOptions{}, []byte(stream))
		last, ok := evs[len(evs)-1].(*dragoman.StreamError)
		for i := len(evs) - 1; !ok && i > 0; i-- {
			last, ok = evs[i].(*dragoman.StreamError)
		}
		if !ok || last.Err.Class != dragoman.ErrorOverloaded || !last.Err.Retryable() {
			t.Errorf("%s: %+v, %v", stream, evs[len(evs)-1], err)
			continue
		}
		out, _ := encodeEvents(t, dialect.EncodeOptions{}, evs...)
		if strings.Count(out, `"error"`) != 1 {
			t.Errorf("%q written as %q", stream, out)
		}
	}
}

func TestStreamCutsGiveSameEvents(t *testing.T) {
	want, err := drain(dialect.DecodeOptions{}, richStream)
	if err != nil {
		t.Fatal(err)
	}
	for cut := range len(richStream) {
		got, err := drain(dialect.DecodeOptions{}, richStream, cut)
		if diff := cmp.Diff(want, got, ignoreSidecars); diff != "" || err != nil {
			t.Fatalf("cut at %d: %v %s", cut, err, diff)
		}
	}
}

func TestStreamReencode(t *testing.T) {
	evs, err := drain(dialect.DecodeOptions{}, richStream)
	if err != nil {
		t.Fatal(err)
	}
	out, _ := encodeEvents(t, dialect.EncodeOptions{Model: "other"}, evs...)
	if err := checkWire([]byte(out)); err != nil || strings.Contains(out, `"modelVersion":"gemini-3.8-flash"`) {
		t.Fatalf("%v\n%s", err, out)
	}
	want, again := collect(t, string(richStream)), collect(t, out)
	if diff := cmp.Diff(texts(want), texts(again)); diff != "" || again.Stop.Reason != dragoman.StopToolCalls {
		t.Fatalf("%s\n%s", diff, out)
	}
}

func TestUnknownFieldsAreReencoded(t *testing.T) {
	doc := func(n, parts, more string) string {
		return `{"candidates":[{"content":{"parts":[` + parts + `],"role":"model","in_content":` + n + `},"index":0,"in_candidate":` + n + more + `}],"modelVersion":"m","responseId":"r1","at_top":` + n + `}`
	}
	evs, err := drain(dialect.DecodeOptions{}, []byte(sseStream(doc("1", `{"text":"a"}`, ""), doc("2", "", ""), doc("3", `{"text":"b"}`, ""), doc("4", `{"functionCall":{"name":"f","args":{}}}`, ""), doc("5", `{"text":""}`, `,"finishReason":"STOP"`))))
	if err != nil {
		t.Fatal(err)
	}
	out, _ := encodeEvents(t, dialect.EncodeOptions{}, evs...)
	for _, n := range []string{"1", "2", "3", "4", "5"} {
		for _, field := range []string{"in_content", "in_candidate", "at_top"} {
			if strings.Count(out, `"`+field+`":`+n) != 1 {
				t.Errorf("%s %s\n%s", field, n, out)
			}
		}
	}
}

func TestFreeformToolStreamsAsText(t *testing.T) {
	req := requestOf(dragoman.UserText("go"))
	req.Tools = []dragoman.ToolSpec{{Kind: codes.ToolFreeform, Name: "patch"}}
	enc, err := codec.EncodeRequest(req, dialect.EncodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	resp := collectWith(t, enc.Registry, sseStream(chunk("STOP", `{"functionCall":{"name":"patch","args":{"input":"*** x"}}}`)))
	if c := resp.ToolCalls()[0]; c.Payload != codes.PayloadText || c.Arguments != "*** x" {
		t.Errorf("%+v", c)
	}
}

func collectWith(t *testing.T, reg *interop.Registry, stream string) *dragoman.Response {
	t.Helper()
	evs, err := drain(dialect.DecodeOptions{Registry: reg, NoNative: true}, []byte(stream))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := codectest.Collect(evs)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

func TestForeignStreamIsStrictlyValid(t *testing.T) {
	k := call("toolu_1", "f", `{"a":1}`)
	evs := []dragoman.Event{
		&dragoman.ResponseStart{Response: dragoman.Response{ID: "msg_1", Model: "claude", Origin: foreignOrigin}},
		&dragoman.PartStart{Index: 0, Part: &dragoman.Reasoning{}, Header: &dragoman.Message{Role: dragoman.RoleAssistant}},
		&dragoman.PartDelta{Index: 0, Kind: codes.KindReasoning, Text: "hm"},
		&dragoman.PartEnd{Index: 0, Part: &dragoman.Reasoning{Text: "hm", Signature: "secret"}},
		&dragoman.PartStart{Index: 1, Part: &dragoman.ToolCall{ID: "toolu_1", Name: "f"}},
		&dragoman.PartDelta{Index: 1, Kind: codes.KindToolCall, Text: `{"a"`},
		&dragoman.PartDelta{Index: 1, Kind: codes.KindToolCall, Text: `:1}`},
		&dragoman.PartEnd{Index: 1, Part: k},
		&dragoman.ResponseEnd{Stop: dragoman.Stop{Reason: dragoman.StopToolCalls, Native: "tool_use"}, Usage: dragoman.Usage{Input: dragoman.Counted(1), Output: dragoman.Counted(2)}},
	}
	const id = `"modelVersion":"claude","responseId":"msg_1"`
	want := `data: {"candidates":[{"content":{"parts":[{"text":"hm","thought":true}],"role":"model"},"index":0}],` + id + "}\n\n" +
		`data: {"candidates":[{"content":{"parts":[{"functionCall":{"id":"toolu_1","name":"f","args":{"a":1}}}],"role":"model"},"index":0}],` + id + "}\n\n" +
		`data: {"candidates":[{"content":{"parts":[{"text":""}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":2,"totalTokenCount":3},` + id + "}\n\n"
	out, rep := encodeEvents(t, dialect.EncodeOptions{}, evs...)
	if out != want {
		t.Errorf("got  %s\nwant %s", out, want)
	}
	has(t, rep, dragoman.Dropped, "/output/0/parts/0/signature")
	if err := checkWire([]byte(out)); err != nil {
		t.Error(err)
	}
	// An unfinished stream ends with an error.
	out, _ = encodeEvents(t, dialect.EncodeOptions{}, evs[:4]...)
	if !strings.HasSuffix(out, `data: {"error":{"code":500,"message":"the stream ended before the response was complete","status":"INTERNAL"}}`+"\n\n") {
		t.Error(out)
	}
	k.Problem = &dragoman.CallProblem{Code: codes.ProblemStopped}
	out, _ = encodeEvents(t, dialect.EncodeOptions{}, evs...)
	if strings.Contains(out, `"STOP"`) {
		t.Errorf("a call that must not run ends with STOP: %s", out)
	}
}

// An error without a message is still the error that the native chunk
// contained.
func TestEmptyErrorIsWrittenOnce(t *testing.T) {
	for _, stream := range []string{`[{"error":{}}]`, `[{"error":{}},{"error":{}}]`, "data: {\"error\":{}}\n\n", `[{"error":{"message":"no"}}]`} {
		evs, err := drain(dialect.DecodeOptions{}, []byte(stream))
		if err != nil {
			t.Fatal(err)
		}
		out, _ := encodeEvents(t, dialect.EncodeOptions{}, evs...)
		if strings.Count(out, `"error"`) != 1 {
			t.Errorf("%s\nbecame %s", stream, out)
		}
	}
}
