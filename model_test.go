package dragoman_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/codec/turnrules"
	"github.com/dragoman-go/dragoman/internal/testkit/gen"
	"github.com/dragoman-go/dragoman/targets"
	"pgregory.net/rapid"
)

func TestQuirkB18_QuirkB19_StopReasonFromWireValueAndContent(t *testing.T) {
	for _, c := range []struct {
		name     string
		word     dragoman.StopReason
		calls    int
		terminal bool
		want     dragoman.StopReason
		runs     bool
	}{
		{"B18: stop, but there is a call", dragoman.StopEnd, 1, true, dragoman.StopToolCalls, true},
		{"B18: no word, but there are calls", dragoman.StopNone, 2, true, dragoman.StopToolCalls, true},
		{"tool_calls with a call", dragoman.StopToolCalls, 1, true, dragoman.StopToolCalls, true},
		{"B19: tool_calls without a call", dragoman.StopToolCalls, 0, true, dragoman.StopEnd, true},
		{"no word and no call", dragoman.StopNone, 0, true, dragoman.StopEnd, true},
		{"stop without a call", dragoman.StopEnd, 0, true, dragoman.StopEnd, true},
		{"decision 130: length", dragoman.StopLength, 1, true, dragoman.StopLength, false},
		{"decision 130: content filter", dragoman.StopContentFilter, 1, true, dragoman.StopContentFilter, false},
		{"decision 130: malformed call", dragoman.StopMalformedCall, 1, true, dragoman.StopMalformedCall, false},
		{"decision 130: error", dragoman.StopError, 1, true, dragoman.StopError, false},
		{"decision 130: a word in no table", dragoman.StopUnknown, 1, true, dragoman.StopUnknown, false},
		{"refusal", dragoman.StopRefusal, 1, true, dragoman.StopRefusal, false},
		{"cancelled", dragoman.StopCanceled, 1, true, dragoman.StopCanceled, false},
		{"compaction", dragoman.StopCompaction, 0, true, dragoman.StopCompaction, false},
		{"pause", dragoman.StopPause, 1, true, dragoman.StopPause, true},
		{"decision 130: stop without a terminal marker", dragoman.StopEnd, 1, false, dragoman.StopError, false},
		{"decision 130: no word, no terminal marker", dragoman.StopNone, 1, false, dragoman.StopError, false},
		{"decision 130: tool_calls without a terminal marker", dragoman.StopToolCalls, 1, false, dragoman.StopError, false},
		{"decision 130: pause without a terminal marker", dragoman.StopPause, 1, false, dragoman.StopError, false},
		{"length without a terminal marker", dragoman.StopLength, 1, false, dragoman.StopLength, false},
	} {
		got := turnrules.StopReason(c.word, c.calls, c.terminal)
		if got != c.want || got.Runs() != c.runs {
			t.Errorf("%s: %q (runs %v), want %q (runs %v)", c.name, got, got.Runs(), c.want, c.runs)
		}
	}
}

func TestDecision130_CallsOfAnUnfinishedStreamAreBlocked(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "stop", "tool_calls", "pause", "length"})).Draw(t, "word")
		if got := turnrules.StopReason(dragoman.StopReason(word), rapid.IntRange(0, 3).Draw(t, "calls"), false); got.Runs() {
			t.Fatalf("%q runs", got)
		}
	})
}

func TestR7_ArgumentsAreCheckedAndSanitized(t *testing.T) {
	for _, c := range []struct {
		name, args string
		code       string // empty: no problem
		offset     int64
		object     string
	}{
		{"B2: nothing", "", "", 0, "{}"},
		{"B2: blanks", " \n\t", "", 0, "{}"},
		{"B2: null", "null", "", 0, "{}"},
		{"B2: null between blanks", " null ", "", 0, "{}"},
		{"B2: an empty string in quotes", `""`, "", 0, "{}"},
		{"B2: an empty object", "{}", "", 0, "{}"},
		{"an object, byte for byte", "{ \"b\" : 1.0,\n\"a\":\"<\\u003c>\" }", "", 0, "{ \"b\" : 1.0,\n\"a\":\"<\\u003c>\" }"},
		{"B31: a number beyond 2^53", `{"id":9007199254740993}`, "", 0, `{"id":9007199254740993}`},
		{"B31: a number beyond float64", `{"id":1e400}`, "", 0, `{"id":1e400}`},
		{"B5: an array", "[1, 2]", codes.ProblemNotObject, 0, `{"_raw":[1, 2]}`},
		{"B5: a number", " 9007199254740993\n", codes.ProblemNotObject, 0, `{"_raw":9007199254740993}`},
		{"B5: a string", `"text"`, codes.ProblemNotObject, 0, `{"_raw":"text"}`},
		{"B5: false", "false", codes.ProblemNotObject, 0, `{"_raw":false}`},
		{"B6: two objects in one string", `{"a":1}{"a":2}`, codes.ProblemInvalidJSON, 7, "{}"},
		{"B6: two objects with a space", `{"a":1} {"a":2}`, codes.ProblemInvalidJSON, 7, "{}"},
		{"B7: cut off in a string", `{"path":"/tmp`, codes.ProblemInvalidJSON, 13, "{}"},
		{"B7: cut off after a colon", `{"path":`, codes.ProblemInvalidJSON, 8, "{}"},
		{"B7: not JSON at all", "path=/tmp", codes.ProblemInvalidJSON, 0, "{}"},
		{"B7: a trailing comma", `{"a":1,}`, codes.ProblemInvalidJSON, 7, "{}"},
		{"B7: single quotes", `{'a':1}`, codes.ProblemInvalidJSON, 1, "{}"},
		{"R7: a repeated key", `{"a":1,"b":2,"a":3}`, codes.ProblemDuplicateKey, 13, "{}"},
		{"R7: a repeated key in another spelling", `{"a":1,"\u0061":2}`, codes.ProblemDuplicateKey, 7, "{}"},
		{"R7: a repeated key further down", `{"x":[{"a":1,"a":1}]}`, codes.ProblemDuplicateKey, 13, "{}"},
		{"C17: not UTF-8", "{\"a\":\"\xff\"}", codes.ProblemInvalidJSON, 6, "{}"},
		{"C17: a lone surrogate", `{"a":"\ud800"}`, codes.ProblemInvalidJSON, 6, "{}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := dragoman.CheckArguments(c.args)
			switch {
			case c.code == "" && p != nil:
				t.Errorf("problem %v", p)
			case c.code != "" && (p == nil || p.Code != c.code || p.Offset != c.offset):
				t.Errorf("problem %+v, want %s at byte %d", p, c.code, c.offset)
			}
			call := &dragoman.ToolCall{Arguments: c.args}
			obj, exact := call.Object()
			if string(obj) != c.object || exact != (c.code == "") {
				t.Errorf("object %s (exact %v), want %s", obj, exact, c.object)
			}
			if call.Arguments != c.args {
				t.Errorf("the call was changed to %q", call.Arguments)
			}
		})
	}
}

func TestR7_ProblemOfARepeatedObject(t *testing.T) {
	p := dragoman.CheckArguments(`{"a":1}{"a":2}`)
	if p == nil || !strings.Contains(p.Error(), "more than one JSON value") {
		t.Errorf("quirk B6: %v", p)
	}
	p = dragoman.CheckArguments(`{"a":1,"a":2}`)
	if p == nil || !strings.Contains(p.Message, "repeat an object key") || !strings.Contains(p.Message, "/a") {
		t.Errorf("%v", p)
	}
}

func TestProblemMessagesAreShort(t *testing.T) {
	long := strings.Repeat("k", 1<<20)
	for name, args := range map[string]string{
		"depth bomb": strings.Repeat("[", 200_000),
		"deep error": strings.Repeat(`{"a":`, 5000) + "x",
		"long key":   `{"` + long + `":x}`,
		"repeated":   `{"` + long + `":1,"` + long + `":2}`,
	} {
		if p := dragoman.CheckArguments(args); p == nil || len(p.Message) > 1000 {
			t.Errorf("%s: no problem, or one of endless words", name)
		}
	}
}

func TestQuirkB7_ObjectIsAlwaysValid(t *testing.T) {
	problems := []string{
		codes.ProblemInvalidJSON, codes.ProblemDuplicateKey, codes.ProblemNotObject, codes.ProblemTruncated,
		codes.ProblemNoName, codes.ProblemStopped, "added_later",
	}
	rapid.Check(t, func(t *rapid.T) {
		c := &dragoman.ToolCall{
			Payload:   rapid.SampledFrom([]string{codes.PayloadObject, codes.PayloadText}).Draw(t, "payload"),
			Arguments: rapid.OneOf(gen.Options{}.Arguments(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })).Draw(t, "arguments"),
		}
		// A problem may be outdated: the arguments were edited, or it was loaded.
		if rapid.Bool().Draw(t, "has a problem") {
			c.Problem = &dragoman.CallProblem{Code: rapid.SampledFrom(problems).Draw(t, "code")}
		}
		obj, exact := c.Object()
		if !json.Valid(obj) || !strings.HasPrefix(strings.TrimSpace(string(obj)), "{") {
			t.Fatalf("%q became %s", c.Arguments, obj)
		}
		if exact && string(obj) != c.Arguments && string(obj) != "{}" {
			t.Fatalf("%q became %s, reported as exact", c.Arguments, obj)
		}
	})
}

func TestObjectWrapsATextPayload(t *testing.T) {
	c := &dragoman.ToolCall{Payload: codes.PayloadText, Arguments: "*** Begin <Patch>\n\"\xff"}
	obj, exact := c.Object()
	if want := "{\"input\":\"*** Begin <Patch>\\n\\\"\ufffd\"}"; string(obj) != want || exact {
		t.Errorf("%s (exact %v), want %s", obj, exact, want)
	}
}

func TestObjectOfNoArgumentsIsACopy(t *testing.T) {
	obj, _ := (&dragoman.ToolCall{}).Object()
	_ = append(obj, " spoiled"...)
	obj[0] = 'X'
	if again, _ := (&dragoman.ToolCall{}).Object(); string(again) != "{}" {
		t.Errorf("the next call got %s", again)
	}
}

func TestOriginsMatch(t *testing.T) {
	full := dragoman.Origin{Dialect: dialectname.Anthropic, Provider: "anthropic", Scope: "s", Model: "m"}
	with := func(edit func(*dragoman.Origin)) dragoman.Origin { o := full; edit(&o); return o }
	all := targets.MatchDialect | targets.MatchProvider | targets.MatchScope | targets.MatchModel
	for _, c := range []struct {
		name   string
		origin *dragoman.Origin
		target dragoman.Origin
		match  targets.Match
		want   bool
	}{
		{"the same", &full, full, all, true},
		{"nothing must agree", &full, dragoman.Origin{}, 0, true},
		{"authored here", nil, full, 0, false},
		{"another dialect", &full, with(func(o *dragoman.Origin) { o.Dialect = dialectname.OpenAIChat }), all, false},
		{"another dialect, not asked", &full, with(func(o *dragoman.Origin) { o.Dialect = dialectname.OpenAIChat }), targets.MatchModel, true},
		{"an unknown dialect", &dragoman.Origin{}, full, targets.MatchDialect, false},
		{"another provider", &full, with(func(o *dragoman.Origin) { o.Provider = "bedrock" }), targets.MatchProvider, false},
		{"another provider, not asked", &full, with(func(o *dragoman.Origin) { o.Provider = "bedrock" }), targets.MatchScope, true},
		{"an unknown provider", &full, with(func(o *dragoman.Origin) { o.Provider = "" }), all, true},
		{"another scope", &full, with(func(o *dragoman.Origin) { o.Scope = "t" }), targets.MatchScope, false},
		{"an unknown scope", &dragoman.Origin{Dialect: dialectname.Anthropic}, full, all, true},
		{"another model", &full, with(func(o *dragoman.Origin) { o.Model = "n" }), targets.MatchModel, false},
		{"another model, not asked", &full, with(func(o *dragoman.Origin) { o.Model = "n" }), targets.MatchDialect, true},
	} {
		if got := c.match.Allows(c.origin, c.target); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestR11_ReportErrorDependsOnSeverity(t *testing.T) {
	var r dragoman.Report
	if err := r.Err(dragoman.Info); err != nil {
		t.Errorf("an empty report is the error %v", err)
	}
	r.Add(dragoman.Renamed, dragoman.Info, "/tools/0/name", "a.b became a_b")
	r.Addf(dragoman.Lowered, dragoman.Warn, "/tools/1", "%d keywords", 2)
	var inner dragoman.Report
	inner.Add(dragoman.Dropped, dragoman.Serious, "/content/0", "no images")
	r.Merge("/messages/3", inner)
	for limit, want := range map[dragoman.Severity][]string{
		dragoman.Info:        {"/tools/0/name", "/tools/1", "/messages/3/content/0"},
		dragoman.Warn:        {"/tools/1", "/messages/3/content/0"},
		dragoman.Serious:     {"/messages/3/content/0"},
		dragoman.Serious + 1: nil,
	} {
		err := r.Err(limit)
		var loss *dragoman.LossError
		if !errors.As(err, &loss) {
			if want != nil || err != nil {
				t.Errorf("limit %v: %v, want %v", limit, err, want)
			}
			continue
		}
		var paths []string
		for _, l := range loss.Losses {
			paths = append(paths, l.Path)
		}
		if !slices.Equal(paths, want) || !strings.Contains(err.Error(), want[0]) {
			t.Errorf("limit %v: %v at %v, want %v", limit, err, paths, want)
		}
	}
	want := "renamed (info) /tools/0/name: a.b became a_b\nlowered (warn) /tools/1: 2 keywords\ndropped (serious) /messages/3/content/0: no images"
	if r.String() != want {
		t.Errorf("report reads\n%s\nwant\n%s", r, want)
	}
}

func TestR11_SeveritiesAreWrittenByName(t *testing.T) {
	for sev, name := range map[dragoman.Severity]string{dragoman.Info: "info", dragoman.Warn: "warn", dragoman.Serious: "serious"} {
		text, err := sev.MarshalText()
		var back dragoman.Severity = -7
		if err != nil || string(text) != name || back.UnmarshalText(text) != nil || back != sev {
			t.Errorf("%s: %s, %v, back as %v", name, text, err, back)
		}
	}
	for _, odd := range []dragoman.Severity{-1, 3} {
		if text, err := odd.MarshalText(); err == nil {
			t.Errorf("severity %d is written as %s, which cannot be read back", int(odd), text)
		}
		if odd.String() != fmt.Sprintf("severity(%d)", int(odd)) {
			t.Errorf("severity %d prints as %s", int(odd), odd)
		}
	}
	sev := dragoman.Warn
	if err := sev.UnmarshalText([]byte("fatal")); err == nil || !strings.Contains(err.Error(), `"fatal"`) || sev != dragoman.Warn {
		t.Errorf("an unknown name: %v, %v", sev, err)
	}
}

func TestErrorTexts(t *testing.T) {
	for want, err := range map[string]error{
		"openai.responses request: at /input/0: want a string (byte 7)": &dragoman.DecodeError{Dialect: dialectname.OpenAIResponses, What: "request", Pointer: "/input/0", Offset: 7, Err: errors.New("want a string")},
		"openai.responses stream: cut":                                  &dragoman.DecodeError{Dialect: dialectname.OpenAIResponses, What: "stream", Offset: -1, Err: errors.New("cut")},
		"529 overloaded_error: busy":                                    &dragoman.APIError{Status: 529, Type: "overloaded_error", Message: "busy"},
		"rate_limit":                                                    &dragoman.APIError{Class: dragoman.ErrorRateLimit},
	} {
		if err.Error() != want {
			t.Errorf("%T reads %q, want %q", err, err, want)
		}
	}
	cause := errors.New("cause")
	if !errors.Is(&dragoman.DecodeError{Err: cause}, cause) || !errors.Is(&dragoman.APIError{Err: cause}, cause) {
		t.Error("a cause is not unwrapped")
	}
	for class, want := range map[dragoman.ErrorClass]bool{
		dragoman.ErrorRateLimit: true, dragoman.ErrorOverloaded: true, dragoman.ErrorTimeout: true, dragoman.ErrorServer: true, dragoman.ErrorConflict: true,
		dragoman.ErrorBadRequest: false, dragoman.ErrorAuth: false, dragoman.ErrorQuota: false, dragoman.ErrorContextLength: false, dragoman.ErrorUnknown: false,
	} {
		if got := (&dragoman.APIError{Class: class}).Retryable(); got != want {
			t.Errorf("%s: retryable %v, want %v", class, got, want)
		}
	}
	if !(&dragoman.APIError{Class: dragoman.ErrorUnknown, Err: dragoman.ErrIncompleteStream}).Retryable() {
		t.Error("a broken stream is not retryable")
	}
}

func TestMessagesAndResultsJoinTheirText(t *testing.T) {
	m := dragoman.Message{Parts: []dragoman.Part{&dragoman.Text{Text: "a"}, &dragoman.Reasoning{Text: "hidden"}, &dragoman.ToolCall{ID: "1"}, &dragoman.Text{Text: "b"}, &dragoman.ToolCall{ID: "2", Hosted: true}}}
	if m.Text() != "ab" || len(m.ToolCalls()) != 2 || m.ToolCalls()[1].ID != "2" {
		t.Errorf("%q, %v", m.Text(), m.ToolCalls())
	}
	r := dragoman.ToolResult{Content: []dragoman.Part{&dragoman.Text{Text: "n="}, &dragoman.Data{JSON: json.RawMessage("9007199254740993")}, &dragoman.Media{}}}
	if r.Text() != "n=9007199254740993" {
		t.Errorf("quirk B31: %q", r.Text())
	}
	if (&dragoman.ToolSpec{Name: "a"}).QualifiedName() != "a" || (&dragoman.ToolCall{Name: "a", Namespace: "n"}).QualifiedName() != "n.a" {
		t.Error("qualified names")
	}
	if dragoman.Counted(3).Or(7) != 3 || (dragoman.Count{N: 3}).Or(7) != 7 {
		t.Error("an unknown count is not zero, nor any other number")
	}
}

func FuzzCheckArguments(f *testing.F) {
	for _, s := range []string{
		"", "null", `""`, "{}", `{"a":1}`, `{"a":1}{"a":2}`, `{"a":1,"a":2}`, "[1]", `"x"`, "5", `{"a":"\ud800"}`, "{\"a\":\"\xff\"}", "{'a':1}", `{"n":9007199254740993}`, "\u00a0", "[[[[",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, args string) {
		p := dragoman.CheckArguments(args)
		call := &dragoman.ToolCall{Arguments: args, Problem: p}
		obj, exact := call.Object()
		if exact != (p == nil) || !json.Valid(obj) {
			t.Fatalf("%q: %v, %s (exact %v)", args, p, obj, exact)
		}
		var m map[string]json.RawMessage
		if err := json.Unmarshal(obj, &m); err != nil {
			t.Fatalf("%q became %s: %v", args, obj, err)
		}
		if p != nil && (p.Offset < -1 || p.Offset > int64(len(args)) || p.Message == "" || len(p.Message) > 1000) {
			t.Fatalf("%q: %+v", args, p)
		}
	})
}

func TestR11_RenameHasBothNames(t *testing.T) {
	var rep dragoman.Report
	rep.AddRename(dragoman.Info, "/tools/0", "tool", "a.b", "a_b")
	want := dragoman.Loss{Kind: dragoman.Renamed, Severity: dragoman.Info, Path: "/tools/0", Detail: `tool "a.b" written as "a_b"`, From: "a.b", To: "a_b"}
	if len(rep.Losses) != 1 || rep.Losses[0] != want {
		t.Fatalf("%+v", rep.Losses)
	}
	stored, err := json.Marshal(rep)
	var back dragoman.Report
	if err != nil || json.Unmarshal(stored, &back) != nil || len(back.Losses) != 1 || back.Losses[0] != want {
		t.Errorf("%s (%v) is read as %+v", stored, err, back)
	}
	rep = dragoman.Report{}
	rep.Add(dragoman.Dropped, dragoman.Info, "", "gone")
	if stored, err := json.Marshal(rep); err != nil || strings.Contains(string(stored), `"from"`) {
		t.Errorf("%s, %v", stored, err)
	}
	(*dragoman.Report)(nil).AddRename(dragoman.Info, "", "", "", "") // takes none
}
