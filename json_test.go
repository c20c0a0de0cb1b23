package dragoman_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/testkit/gen"
	"pgregory.net/rapid"
)

// testingT is a *testing.T or a *rapid.T.
type testingT interface {
	Helper()
	Fatalf(format string, args ...any)
}

// roundTrip stores and loads v and checks that the value and the bytes are the same, also
// after the compaction and escaping of encoding/json.
func roundTrip[T any](t testingT, v T) {
	t.Helper()
	first, err := json.Marshal(v)
	if err != nil {
		t.Fatalf("storing: %v", err)
	}
	var got T
	if err := json.Unmarshal(first, &got); err != nil {
		t.Fatalf("loading: %v\n%s", err, first)
	}
	if d := gen.Diff(v, got); d != "" {
		t.Fatalf("changed by storing (-want +got):\n%s\n%s", d, first)
	}
	second, err := json.Marshal(got)
	if err != nil || !bytes.Equal(first, second) {
		t.Fatalf("stored twice, two forms (%v):\n%s\n%s", err, first, second)
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, first, "", "\t"); err != nil {
		t.Fatalf("indenting: %v", err)
	}
	var again T
	if err := json.Unmarshal(indented.Bytes(), &again); err != nil {
		t.Fatalf("loading the indented form: %v", err)
	}
	if third, err := json.Marshal(again); err != nil || !bytes.Equal(first, third) {
		t.Fatalf("indentation changed the value (%v):\n%s\n%s", err, first, third)
	}
}

func TestStoredValuesRoundTrip(t *testing.T) {
	o := gen.Options{}
	t.Run("messages", rapid.MakeCheck(func(t *rapid.T) { roundTrip(t, o.Message().Draw(t, "message")) }))
	t.Run("conversations", rapid.MakeCheck(func(t *rapid.T) { roundTrip(t, o.Messages().Draw(t, "messages")) }))
	t.Run("requests", rapid.MakeCheck(func(t *rapid.T) { roundTrip(t, *o.Request().Draw(t, "request")) }))
	t.Run("responses", rapid.MakeCheck(func(t *rapid.T) { roundTrip(t, *o.Response().Draw(t, "response")) }))
	t.Run("tools", rapid.MakeCheck(func(t *rapid.T) { roundTrip(t, o.Tools().Draw(t, "tools")) }))
	t.Run("usage", rapid.MakeCheck(func(t *rapid.T) { roundTrip(t, o.Usage().Draw(t, "usage")) }))
	t.Run("errors", rapid.MakeCheck(func(t *rapid.T) { roundTrip(t, o.APIError().Draw(t, "error")) }))
	t.Run("parts", rapid.MakeCheck(func(t *rapid.T) { roundTrip(t, partList{o.Part().Draw(t, "part")}) }))
	t.Run("events", rapid.MakeCheck(func(t *rapid.T) { roundTrip(t, eventList(o.Events().Draw(t, "events"))) }))
	t.Run("choices", rapid.MakeCheck(func(t *rapid.T) { roundTrip(t, o.ToolChoice(o.Tools().Draw(t, "tools")).Draw(t, "choice")) }))
}

// Each type is stored alone as it is inside other values.
func TestStoredTypesRoundTripAlone(t *testing.T) {
	v := richValue()
	for _, p := range v.Parts {
		switch p := p.(type) {
		case *dragoman.Text:
			roundTrip(t, *p)
		case *dragoman.Reasoning:
			roundTrip(t, *p)
		case *dragoman.Media:
			roundTrip(t, *p)
		case *dragoman.ToolCall:
			roundTrip(t, *p)
		case *dragoman.ToolResult:
			roundTrip(t, *p)
		case *dragoman.Refusal:
			roundTrip(t, *p)
		case *dragoman.Data:
			roundTrip(t, *p)
		case *dragoman.Opaque:
			roundTrip(t, *p)
		default:
			t.Errorf("%T is not covered", p)
		}
	}
	for _, e := range v.Events {
		switch e := e.(type) {
		case *dragoman.ResponseStart:
			roundTrip(t, *e)
		case *dragoman.PartStart:
			roundTrip(t, *e)
		case *dragoman.PartDelta:
			roundTrip(t, *e)
		case *dragoman.PartEnd:
			roundTrip(t, *e)
		case *dragoman.ResponseEnd:
			roundTrip(t, *e)
		case *dragoman.StreamError:
			roundTrip(t, *e)
		case *dragoman.Chunk:
			roundTrip(t, *e)
		default:
			t.Errorf("%T is not covered", e)
		}
	}
}

func TestStoredSidecarsStayCurrent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		req := gen.Options{}.Request().Draw(t, "request")
		data, err := json.Marshal(req)
		if err != nil {
			t.Fatal(err)
		}
		var got dragoman.Request
		if err := json.Unmarshal(data, &got); err != nil {
			t.Fatal(err)
		}
		if req.Native != nil && !got.Native.Current(req.Native.Dialect, got.Fingerprint) {
			t.Fatal("the request's sidecar is stale")
		}
		for i := range got.Messages {
			if n := req.Messages[i].Native; n != nil && !got.Messages[i].Native.Current(n.Dialect, got.Messages[i].Fingerprint) {
				t.Fatalf("the sidecar of message %d is stale", i)
			}
		}
		for i := range got.Tools {
			if s := req.Tools[i].Source; s != nil && got.Tools[i].Source.Mirror != got.Tools[i].Fingerprint() {
				t.Fatalf("the source of tool %d is stale", i)
			}
		}
	})
}

// tops are the smallest values of each type that is stored by itself.
var tops = []struct {
	name string
	json string
	load func([]byte) error
}{
	{"message", `{"v":1}`, func(b []byte) error { return json.Unmarshal(b, new(dragoman.Message)) }},
	{"request", `{"v":1}`, func(b []byte) error { return json.Unmarshal(b, new(dragoman.Request)) }},
	{"response", `{"v":1}`, func(b []byte) error { return json.Unmarshal(b, new(dragoman.Response)) }},
	{"tool", `{"v":1}`, func(b []byte) error { return json.Unmarshal(b, new(dragoman.ToolSpec)) }},
	{"report", `{"v":1}`, func(b []byte) error { return json.Unmarshal(b, new(dragoman.Report)) }},
	{"event", `{"v":1,"type":"chunk"}`, func(b []byte) error { _, err := dragoman.UnmarshalEvent(b); return err }},
	{"chunk", `{"v":1,"type":"chunk"}`, func(b []byte) error { return json.Unmarshal(b, new(dragoman.Chunk)) }},
}

func TestStoredVersionIsChecked(t *testing.T) {
	for _, top := range tops {
		t.Run(top.name, func(t *testing.T) {
			if err := top.load([]byte(top.json)); err != nil {
				t.Errorf("the current version is refused: %v", err)
			}
			// In a newer version, a known field may have another meaning.
			highest := "version 1"
			if top.name == "report" {
				highest = "version 2"
			}
			err := top.load([]byte(`{"type":{},"parts":7,"model":[],"v":3}`))
			if !errors.Is(err, dragoman.ErrVersion) || !strings.Contains(err.Error(), "version 3") || !strings.Contains(err.Error(), highest) {
				t.Errorf("version 3: %v, want ErrVersion naming version 3 and %s", err, highest)
			}
			err = top.load([]byte(strings.Replace(top.json, `"v":1`, `"w":1`, 1)))
			if err == nil || errors.Is(err, dragoman.ErrVersion) || !strings.Contains(err.Error(), `no "v"`) {
				t.Errorf("no version: %v, want an error about the version", err)
			}
			for _, bad := range []string{`"1"`, "0", "-1", "1.5", "null", "{}", "99999999999999999999"} {
				err := top.load([]byte(strings.Replace(top.json, `"v":1`, `"v":`+bad, 1)))
				if err == nil || !strings.Contains(err.Error(), "not a version") {
					t.Errorf("version %s: %v, want an error about an invalid version", bad, err)
				}
			}
		})
	}
}

func TestStoredValuesInsideOthersHaveNoVersion(t *testing.T) {
	v := richValue()
	for _, top := range []any{v.Message, v.Request, v.Response, v.Tool, v.Report, v.Events[2]} {
		data, err := json.Marshal(top)
		if err != nil {
			t.Fatal(err)
		}
		version := `{"v":1,`
		if _, ok := top.(dragoman.Report); ok {
			version = `{"v":2,`
		}
		if n := bytes.Count(data, []byte(`"v":`)); n != 1 || !bytes.HasPrefix(data, []byte(version)) {
			t.Errorf("%T holds %d versions: %.60s", top, n, data)
		}
	}
	// Parts are always inside another value.
	data, _ := dragoman.MarshalPart(v.Parts[0])
	if !bytes.HasPrefix(data, []byte(`{"type":"text",`)) {
		t.Errorf("a part begins %.40s", data)
	}
}

func TestStoredUnknownFieldsAreIgnored(t *testing.T) {
	var m dragoman.Message
	err := json.Unmarshal([]byte(`{"later":{"a":[1]},"v":1,"role":"user","parts":[{"text":"hi","new":[[]],"type":"text"}]}`), &m)
	if d := gen.Diff(dragoman.UserText("hi"), m); err != nil || d != "" {
		t.Errorf("unknown members: %v\n%s", err, d)
	}
	before := m
	for _, bad := range []struct{ json, want string }{
		{`{"v":1,"parts":[{"type":"hologram"}]}`, `"hologram"`},
		{`{"v":1,"parts":[{"text":"x"}]}`, `no "type"`},
		{`{"v":1,"parts":[null]}`, "null"},
		{`{"v":1,"parts":[{"type":"tool_result","content":[{"type":"text","text":5}]}]}`, "/parts/0/content/0/text"},
		{`{"v":1,"role":{}}`, "/role"},
		{`{"v":1,"native":{"mirror":"abc"}}`, "/native/mirror"},
		{`{"v":1,"native":{"raw":{"base64":"%"}}}`, "/native/raw/base64"},
		{`{"v":1,"native":{"raw":{}}}`, "/native/raw"},
		{`{"v":1,"native":{"raw":[]}}`, "/native/raw"},
		{`[]`, "want an object"},
	} {
		err := json.Unmarshal([]byte(bad.json), &m)
		if err == nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("%s: %v, want an error that names %s", bad.json, err, bad.want)
		}
		if d := gen.Diff(before, m); d != "" {
			t.Errorf("%s: the failed read changed the value:\n%s", bad.json, d)
		}
	}
	if err := json.Unmarshal([]byte("null"), &m); err != nil || gen.Diff(before, m) != "" {
		t.Errorf("null changed the value (%v)", err)
	}
	for data, want := range map[string]string{
		`{"v":1,"type":"hiccup"}`:   `"hiccup"`,
		`{"v":1}`:                   `no "type"`,
		`null`:                      "null",
		`{"v":1,"type":"chunk"} {}`: "after the JSON value",
		`{"v":1,"type":"part_end","part":{"type":"hologram"}}`:          `"hologram"`,
		`{"v":1,"type":"stream_error","error":{"retry_after":"later"}}`: "/error/retry_after",
	} {
		if ev, err := dragoman.UnmarshalEvent([]byte(data)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v, want an error that names %s", data, ev, err, want)
		}
	}
	if p, err := dragoman.UnmarshalPart([]byte("null")); err == nil {
		t.Errorf("null is the part %v", p)
	}
	var text dragoman.Text
	if err := json.Unmarshal([]byte(`{"type":"refusal","text":"no"}`), &text); err == nil || !strings.Contains(err.Error(), `"refusal"`) {
		t.Errorf("a refusal read as text: %v", err)
	}
	var chunk dragoman.Chunk
	if err := json.Unmarshal([]byte(`{"v":1,"type":"part_end"}`), &chunk); err == nil || !strings.Contains(err.Error(), `"part_end"`) {
		t.Errorf("a part's end read as a chunk: %v", err)
	}
}

func TestStoredNilPartsAndEventsAreErrors(t *testing.T) {
	for name, err := range map[string]error{
		"nil part":             second(dragoman.MarshalPart(nil)),
		"nil pointer part":     second(dragoman.MarshalPart((*dragoman.Text)(nil))),
		"nil event":            second(dragoman.MarshalEvent(nil)),
		"nil pointer event":    second(dragoman.MarshalEvent((*dragoman.Chunk)(nil))),
		"message of nil parts": second(json.Marshal(dragoman.Message{Parts: []dragoman.Part{nil}})),
		"event of a nil text":  second(dragoman.MarshalEvent(&dragoman.PartEnd{Part: (*dragoman.Text)(nil)})),
	} {
		if err == nil || !strings.Contains(err.Error(), "nil") {
			t.Errorf("%s: %v, want an error that says nil", name, err)
		}
	}
	// An event without a part is valid. Only a hostile peer sends one, and it is harmless.
	roundTrip(t, dragoman.PartStart{Index: 3})
}

func second[T any](_ T, err error) error { return err }

func TestQuirkC17_StoredBytesSurviveAndStoredTextIsUTF8(t *testing.T) {
	raw := "{\"a\":\"\xff\",\"b\":\"\xed\xa0\x80\"}\n"
	m := dragoman.Message{
		Role:   dragoman.RoleUser,
		Parts:  []dragoman.Part{&dragoman.Text{Text: "a\xffb"}, &dragoman.ToolCall{Arguments: "{\"x\":\"\xc3\"}"}, &dragoman.Data{JSON: json.RawMessage(raw)}},
		Native: &dragoman.Sidecar{Raw: json.RawMessage(raw)},
		Extra:  &dragoman.Extra{Fields: []dragoman.Field{{Path: "/x", Value: json.RawMessage(raw)}}},
	}
	data, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var got dragoman.Message
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	m.Parts[0] = &dragoman.Text{Text: "a\ufffdb"}
	m.Parts[1] = &dragoman.ToolCall{Arguments: "{\"x\":\"\ufffd\"}"}
	if d := gen.Diff(m, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestQuirkB33_StoredNativeJSONKeepsEveryByte(t *testing.T) {
	raw := "{ \"b\" : 1.0,\r\n\t\"a\":\"<&>\\u003c\u2028\\/\", \"b\":9007199254740993e0 }"
	var got dragoman.ToolSpec
	data, err := json.Marshal(dragoman.ToolSpec{Parameters: json.RawMessage(raw)})
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &got); err != nil || string(got.Parameters) != raw {
		t.Errorf("%v: got %q, want %q", err, got.Parameters, raw)
	}
}

func TestStoredUnknownCountsAreAbsentNotZero(t *testing.T) {
	data, err := json.Marshal(dragoman.Usage{Input: dragoman.Counted(0)})
	if err != nil || string(data) != `{"input":0}` {
		t.Errorf("stored %s (%v)", data, err)
	}
	var u dragoman.Usage
	if err := json.Unmarshal([]byte(`{"input":null,"output":3}`), &u); err != nil || u != (dragoman.Usage{Output: dragoman.Counted(3)}) {
		t.Errorf("loaded %+v (%v)", u, err)
	}
	c := dragoman.Counted(5)
	if err := json.Unmarshal([]byte(" null "), &c); err != nil || c.Known {
		t.Errorf("null is the count %+v (%v)", c, err)
	}
	if data, err := json.Marshal(dragoman.Count{}); err != nil || string(data) != "null" {
		t.Errorf("an unknown count is stored as %s (%v)", data, err)
	}
	c = dragoman.Counted(5)
	if err := json.Unmarshal([]byte(`"x"`), &c); err == nil || c != dragoman.Counted(5) {
		t.Errorf("a string is the count %+v (%v)", c, err)
	}
}

func TestStoredResponsesOmitLosses(t *testing.T) {
	with := dragoman.Response{Model: "m"}
	with.Losses.Add(dragoman.Dropped, dragoman.Warn, "/x", "secret")
	stored, err := json.Marshal(with)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(stored), "secret") {
		t.Errorf("stored: %s", stored)
	}
}

func TestStoredRequestsOmitContributions(t *testing.T) {
	with := dragoman.Request{Model: "m", Contributions: []dragoman.Contribution{{Source: "secret"}}}
	data, err := json.Marshal(with)
	if err != nil || string(data) != `{"v":1,"model":"m"}` {
		t.Errorf("stored %s (%v)", data, err)
	}
}

func TestStoredDatesMayBeAnyTime(t *testing.T) {
	for _, sec := range []int64{0, -1, 1735689600, 1 << 50, 1<<63 - 1, -1 << 63} {
		want := dragoman.Response{Created: time.Unix(sec, 999999999)}
		data, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got dragoman.Response
		if err := json.Unmarshal(data, &got); err != nil || !got.Created.Equal(want.Created) {
			t.Errorf("%d seconds came back as %d (%v)", sec, got.Created.Unix(), err)
		}
	}
	var none dragoman.Response
	if err := json.Unmarshal([]byte(`{"v":1,"created":null}`), &none); err != nil || !none.Created.IsZero() {
		t.Errorf("no date is %v (%v)", none.Created, err)
	}
}

func TestStoredNestingIsLimited(t *testing.T) {
	nest := func(n int) string {
		return `{"v":1,"parts":` + strings.Repeat(`[{"content":`, n) + "[]" + strings.Repeat(`,"type":"tool_result"}]`, n) + "}"
	}
	var m dragoman.Message
	if err := m.UnmarshalJSON([]byte(nest(1000))); err != nil {
		t.Errorf("1000 levels: %v", err)
	}
	if err := m.UnmarshalJSON([]byte(nest(100_000))); err == nil || len(err.Error()) > 1000 {
		t.Errorf("100,000 levels: no error, or an endless one: %.200v", err)
	}
}

func fuzzStored[T any](f *testing.F, seeds ...string) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	for _, s := range []string{``, `null`, `{}`, `{"v":1}`, `{"v":2}`, `{"v":1`, `[]`, `{"v":1,"v":2}`, `{"v":1,"native":{"raw":{"base64":"/w=="},"mirror":"00112233445566778899aabbccddeeff"}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var v T
		if json.Unmarshal(data, &v) == nil {
			roundTrip(t, v)
		}
	})
}

func FuzzUnmarshalMessage(f *testing.F) {
	fuzzStored[dragoman.Message](f,
		`{"v":1,"role":"assistant","parts":[{"type":"text","text":"hi"},{"type":"tool_call","id":"1","arguments":"{","problem":{"offset":-1}}]}`,
		`{"v":1,"role":"tool","parts":[{"type":"tool_result","content":[{"type":"media","base64":"aGk="},{"json":"[]","type":"data"}]}],"cache":{}}`,
		`{"v":1,"parts":[{"type":"reasoning","details":["{}",null,""],"summary":[]},{"type":"opaque","native_type":"x","json":"{}"},{"type":"refusal"}]}`,
		`{"v":1,"extra":{"fields":[{"path":"/a","value":{"base64":"/w=="}}]},"origin":{"dialect":"x"}}`)
}

func FuzzUnmarshalRequest(f *testing.F) {
	fuzzStored[dragoman.Request](f,
		`{"v":1,"model":"m","messages":[{"role":"user"}],"tools":[{"name":"a","annotations":{"read_only":false}}],"tool_choice":{"mode":"auto","tools":[]}}`,
		`{"v":1,"sampling":{"temperature":"1.0","stop":[]},"metadata":[{"key":"a"}],"output":{"schema":"{}"},"reasoning":{"budget_tokens":9223372036854775807}}`)
}

func FuzzUnmarshalResponse(f *testing.F) {
	fuzzStored[dragoman.Response](f,
		`{"v":1,"created":-62135596800,"usage":{"input":0,"output":null},"stop":{"reason":"stop"},"alternatives":[{"index":1}]}`,
		`{"v":1,"error":{"retry_after":"1.5s","cause":{"text":"x","is":["incomplete_stream","?"]}}}`)
}

func FuzzUnmarshalTool(f *testing.F) {
	fuzzStored[dragoman.ToolSpec](f,
		`{"v":1,"kind":"hosted","name":"a","source":{"format":"x","json":"{}","mirror":"00112233445566778899aabbccddeeff"}}`,
		`{"v":1,"grammar":{"syntax":"lark"},"examples":["{}",null],"parameters":"{\"type\":\"object\"}"}`)
}

func FuzzUnmarshalEvent(f *testing.F) {
	for _, s := range []string{
		`{"v":1,"type":"response_start","response":{}}`, `{"v":1,"type":"part_start","index":-1,"part":{"type":"text"},"header":{"role":"x"}}`,
		`{"v":1,"type":"part_delta","text":"\ud800","summary":1e999}`, `{"type":"part_end","v":1,"part":null}`,
		`{"v":1,"type":"response_end","stops":[{}],"usage":{}}`, `{"v":1,"type":"stream_error"}`, `{"v":1,"type":"chunk","raw":{"base64":""}}`, `{"v":1,"type":"x"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		ev, err := dragoman.UnmarshalEvent(data)
		if err != nil {
			return
		}
		roundTrip(t, eventList{ev})
		// Collecting any stored value must not panic.
		var c dragoman.Collector
		c.Add(ev)
		c.Add(&dragoman.PartEnd{Part: &dragoman.Text{}})
		_, _ = c.Response()
	})
}

// Version 1 of a report used the British spelling of one kind of loss.
func TestReportsOfVersion1CanBeRead(t *testing.T) {
	var rep dragoman.Report
	err := json.Unmarshal([]byte(`{"v":1,"losses":[{"kind":"synthesised","severity":"info","path":"/id","detail":"made up"}]}`), &rep)
	if err != nil || len(rep.Losses) != 1 || rep.Losses[0].Kind != dragoman.Synthesized {
		t.Errorf("%v, %v", rep, err)
	}
	data, err := json.Marshal(rep)
	if want := `{"v":2,"losses":[{"kind":"synthesized","severity":"info","path":"/id","detail":"made up"}]}`; err != nil || string(data) != want {
		t.Errorf("%s, %v", data, err)
	}
}
