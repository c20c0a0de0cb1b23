package history_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/history"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/codec/turnrules"
	"github.com/dragoman-go/dragoman/internal/oracle/rulecheck"
	"github.com/dragoman-go/dragoman/targets"
)

func TestQuirkD1_ResultsDirectlyFollowTheirTurn(t *testing.T) {
	loose := history.Options{Limits: targets.Limits{Dialect: "test", LooseResults: true}}
	late := []dragoman.Message{calls("a"), user("hurry"), message(dragoman.RoleAssistant, text("yes")), results(result("a", "1"))}
	check(t, []row{
		{
			name: "a late result moves to its call", in: late,
			want:   "assistant call:a\ntool result:a=\"1\"\nuser \"hurry\"\nassistant \"yes\"",
			report: "moved (info)",
		},
		{
			name: "it stays if any place is allowed", o: loose, in: late,
			want: "assistant call:a\nuser \"hurry\"\nassistant \"yes\"\ntool result:a=\"1\"",
		},
		{
			name: "results in place stay, in several messages", in: []dragoman.Message{calls("a", "b"), results(result("b", "2")), results(result("a", "1")), user("q")},
			want: "assistant call:a call:b\ntool result:b=\"2\"\ntool result:a=\"1\"\nuser \"q\"",
		},
	})
}

func TestQuirkD2_ResultsComeBeforeText(t *testing.T) {
	check(t, []row{
		{
			name: "in one message", in: []dragoman.Message{calls("a"), message(dragoman.RoleUser, text("by the way"), result("a", "1"))},
			want: "assistant call:a\ntool result:a=\"1\"\nuser \"by the way\"", report: "/messages/1: the results of a turn",
		},
		{
			name: "a reminder between results", in: []dragoman.Message{calls("a", "b"), results(result("a", "1")), dragoman.SystemText("mind"), results(result("b", "2"))},
			want: "assistant call:a call:b\ntool result:a=\"1\"\ntool result:b=\"2\"\nsystem \"mind\"", report: "moved",
		},
	})
}

func TestQuirkD3_AsManyResultsAsCalls(t *testing.T) {
	o := history.Options{Abandon: codes.AbandonAll}
	check(t, []row{{
		name: "one missing, one too many", o: o,
		in:     []dragoman.Message{calls("a", "b"), results(result("b", "2"), result("x", "3"))},
		want:   "assistant call:a call:b\ntool result:a=\"" + abandoned + "\"/f_a\ntool result:b=\"2\"",
		report: "a result of unknown call \"x\"",
	}})
}

func TestQuirkD4_ResultsFollowCallOrderIfRequired(t *testing.T) {
	ordered := history.Options{Limits: strict(func(l *targets.Limits) { l.OrderedResults = true })}
	in := []dragoman.Message{calls("a", "b", "c"), results(result("c", "3"), result("a", "1")), results(result("b", "2"))}
	for range 200 {
		check(t, []row{
			{
				name: "demanded", o: ordered, in: in, report: "moved",
				want: "assistant call:a call:b call:c\ntool result:a=\"1\"\ntool result:b=\"2\"\ntool result:c=\"3\"",
			},
			{name: "not required", in: in, want: "assistant call:a call:b call:c\ntool result:c=\"3\" result:a=\"1\"\ntool result:b=\"2\""},
		})
	}
}

func TestQuirkD5_SplitCalls(t *testing.T) {
	check(t, []row{{
		name: "two calls", o: history.Options{Target: caps(targets.Capabilities{SplitCalls: true})},
		in: []dragoman.Message{
			message(dragoman.RoleAssistant, text("look"), call("a"), call("b")), results(result("b", "2"), result("a", "1")), user("q"),
		},
		want:   "assistant \"look\" call:a\ntool result:a=\"1\"\nassistant call:b\ntool result:b=\"2\"\nuser \"q\"",
		report: "a turn with 2 calls",
	}, {
		name: "other messages between, results anywhere",
		o:    history.Options{Limits: targets.Limits{Dialect: "test", LooseResults: true}, Target: caps(targets.Capabilities{SplitCalls: true})},
		in:   []dragoman.Message{calls("a", "b"), message(dragoman.RoleSystem), user("q"), results(result("a", "1"), result("b", "2"))},
		want: "assistant call:a\ntool result:a=\"1\"\nassistant call:b\ntool result:b=\"2\"\nsystem\nuser \"q\"", report: "moved",
	}, {
		name: "an empty message between", o: history.Options{Target: caps(targets.Capabilities{SplitCalls: true})},
		in:   []dragoman.Message{calls("a", "b"), message(dragoman.RoleSystem), results(result("a", "1"), result("b", "2"))},
		want: "assistant call:a\ntool result:a=\"1\"\nassistant call:b\ntool result:b=\"2\"\nsystem", report: "moved",
	}})
}

// A file that was added for this target stays valid when its result replaces one from another
// provider.
func TestQuirkD6_ReplacingResultKeepsItsFile(t *testing.T) {
	foreign := results(result("a", "1"))
	foreign.Origin = &dragoman.Origin{Dialect: dialectname.Gemini, Provider: "google"}
	file := &dragoman.Media{Media: codes.MediaFile, FileID: "file-1"}
	late := result("a", "")
	late.Content = []dragoman.Part{file}
	req := &dragoman.Request{Messages: []dragoman.Message{calls("a"), foreign, results(late)}}
	limits := strict()
	limits.NoMediaFileID = false
	o := history.Options{Limits: limits}
	for range 2 {
		out, _, err := history.Normalize(req, o)
		if err != nil {
			t.Fatal(err)
		}
		got := out.Messages[1].Parts[0].(*dragoman.ToolResult).Content
		if m, ok := got[0].(*dragoman.Media); !ok || m.FileID != "file-1" {
			t.Fatalf("%+v", got[0])
		}
		req = out // the second run changes nothing
	}
}

func TestQuirkD6_LastResultCountsAtTheFirstPosition(t *testing.T) {
	made := result("a", "none")
	made.Synthetic = true
	cached := result("a", "2")
	cached.Cache = &dragoman.CacheHint{TTL: "1h"}
	req := &dragoman.Request{Messages: []dragoman.Message{calls("a"), results(result("a", "1")), results(cached)}}
	out, _, err := history.Normalize(req, history.Options{Limits: strict()})
	if err != nil {
		t.Fatal(err)
	}
	if got := out.Messages[1].Parts[0].(*dragoman.ToolResult); got.Text() != "2" || got.Cache == nil || got.Cache.TTL != "1h" {
		t.Errorf("the last result lost its cache hint: %+v", got)
	}
	check(t, []row{
		{
			name: "disputed", in: []dragoman.Message{calls("a"), results(result("a", "1")), results(cached)},
			want: "assistant call:a\ntool result:a=\"2\"", report: "dropped (warn) /messages/1/parts/0",
		},
		{
			name: "the same twice", in: []dragoman.Message{calls("a"), results(result("a", "1"), result("a", "1"))},
			want: "assistant call:a\ntool result:a=\"1\"", report: "dropped (info) /messages/1/parts/0",
		},
		{
			name: "late", in: []dragoman.Message{calls("a"), results(result("a", "1")), message(dragoman.RoleAssistant, text("ok")), results(result("a", "2")), user("q")},
			want: "assistant call:a\ntool result:a=\"2\"\nassistant \"ok\"\nuser \"q\"", report: "different result",
		},
		{
			name: "a real result replaces a placeholder", in: []dragoman.Message{calls("a"), results(made), user("q"), results(result("a", "1"))},
			want: "assistant call:a\ntool result:a=\"1\"\nuser \"q\"", report: "the placeholder result",
		},
		{
			name: "a real result stays", in: []dragoman.Message{calls("a"), results(result("a", "1")), results(made)},
			want: "assistant call:a\ntool result:a=\"1\"", report: "dropped (info) /messages/2/parts/0: the placeholder result",
		},
	})
}

func TestQuirkD7_AbandonedCallGetsAFixedErrorResult(t *testing.T) {
	passed := history.Options{Abandon: codes.AbandonPassed}
	in := []dragoman.Message{calls("a"), user("never mind")}
	check(t, []row{{
		name: "passed", o: passed, in: in,
		want:   "assistant call:a\ntool result:a=\"" + abandoned + "\"/f_a\nuser \"never mind\"",
		report: "synthesized (warn) /messages/0/parts/0",
	}})
	out, _, err := history.Normalize(&dragoman.Request{Messages: in}, history.Options{Limits: strict(), Abandon: codes.AbandonPassed})
	if err != nil {
		t.Fatal(err)
	}
	res := out.Messages[1].Parts[0].(*dragoman.ToolResult)
	if want := turnrules.Abandoned(call("a")); !res.Synthetic || res.Outcome != codes.OutcomeError || res.Text() != want.Text() {
		t.Errorf("got %+v, want the same as Abandoned: %+v", res, want)
	}
	problem := call("a")
	problem.Problem = &dragoman.CallProblem{Code: codes.ProblemInvalidJSON, Message: "no JSON"}
	later := call("a")
	later.Async = true
	check(t, []row{
		{
			name: "a call that can never run is abandoned automatically", in: []dragoman.Message{message(dragoman.RoleAssistant, problem)},
			want: "assistant call:a\ntool result:a=\"no JSON\"/f_a", report: "synthesized",
		},
		{
			name: "an async call without async support", in: []dragoman.Message{message(dragoman.RoleAssistant, later)},
			want: "assistant call:a\ntool result:a=\"The call runs in the background; there is no result yet.\"/f_a", report: "a note is sent",
		},
		{
			name: "an async call", o: history.Options{Limits: strict(func(l *targets.Limits) { l.AsyncCalls = true })},
			in: []dragoman.Message{message(dragoman.RoleAssistant, later)}, want: "assistant call:a",
		},
		{
			name: "a hosted call needs no result", in: []dragoman.Message{
				from(dragoman.Origin{Dialect: "test"}, message(dragoman.RoleAssistant, &dragoman.ToolCall{ID: "s", Hosted: true})),
			},
			want: "assistant call:s",
		},
	})
}

func TestQuirkI15_UnfinishedHostedCallIsDroppedAfterUserMessage(t *testing.T) {
	own := dragoman.Origin{Dialect: "test"}
	half := func(id, typ string) *dragoman.Opaque {
		return &dragoman.Opaque{Dialect: "test", Type: typ, CallID: id, Hosted: true, JSON: []byte(`{}`)}
	}
	open := from(own, message(dragoman.RoleAssistant, text("looking"), half("s", "use")))
	rest := from(own, message(dragoman.RoleAssistant, half("s", "result"), text("found")))
	noPrefill := history.Options{Target: caps(targets.Capabilities{NoPrefill: true})}
	stored := history.Options{Limits: strict(func(l *targets.Limits) { l.StoredBy = []string{"kept"} })}
	check(t, []row{
		{
			name: "a user message follows", in: []dragoman.Message{user("q"), open, user("more")},
			want: "user \"q\"\nassistant \"looking\"\nuser \"more\"", report: `dropped (warn) /messages/1/parts/1: a use "s" has no matching call or result`,
		},
		{
			name: "a turn with only the call", in: []dragoman.Message{user("q"), from(own, message(dragoman.RoleAssistant, half("s", "use"))), user("more")},
			want: "user \"q\"\nuser \"more\"", report: "dropped (warn) /messages/1/parts/0",
		},
		{
			name: "a modeled call", in: []dragoman.Message{user("q"), from(own, message(dragoman.RoleAssistant, text("a"), &dragoman.ToolCall{ID: "s", Name: "n", Hosted: true})), user("more")},
			want: "user \"q\"\nassistant \"a\"\nuser \"more\"", report: "dropped (warn) /messages/1/parts/1",
		},
		{name: "a pause is continued", in: []dragoman.Message{user("q"), open}, want: "user \"q\"\nassistant \"looking\" opaque"},
		{name: "also by a model that continues no assistant text", o: noPrefill, in: []dragoman.Message{user("q"), open}, want: "user \"q\"\nassistant \"looking\" opaque"},
		{
			name: "a continued pause", in: []dragoman.Message{user("q"), open, rest, user("more")},
			want: "user \"q\"\nassistant \"looking\" opaque\nassistant opaque \"found\"\nuser \"more\"",
		},
		{
			name: "results of other calls do not count",
			in:   []dragoman.Message{user("q"), from(own, message(dragoman.RoleAssistant, half("s", "use"), call("a"))), results(result("a", "1"))},
			want: "user \"q\"\nassistant opaque call:a\ntool result:a=\"1\"",
		},
		{
			name: "a server that stores the conversation", o: stored,
			in: []dragoman.Message{
				from(own, message(dragoman.RoleUser, &dragoman.Opaque{Dialect: "test", Type: "kept", JSON: []byte(`{}`)})), open, user("more"),
			},
			want: "user opaque\nassistant \"looking\" opaque\nuser \"more\"",
		},
	})
}

func TestQuirkD39_PendingCallsAreAnErrorWithTheirNames(t *testing.T) {
	for name, tc := range map[string]struct {
		abandon string
		in      []dragoman.Message
	}{
		"the last turn is pending":       {codes.AbandonPassed, []dragoman.Message{user("q"), calls("a", "b"), results(result("a", "1"))}},
		"new input while calls are open": {codes.AbandonNone, []dragoman.Message{user("q"), calls("a", "b"), results(result("a", "1")), user("more")}},
	} {
		t.Run(name, func(t *testing.T) {
			out, _, err := history.Normalize(&dragoman.Request{Messages: tc.in}, history.Options{Limits: strict(), Abandon: tc.abandon})
			var unsettled *history.UnsettledError
			if out != nil || !errors.Is(err, dragoman.ErrUnsettledCalls) || !errors.As(err, &unsettled) {
				t.Fatalf("got %v, %v", out, err)
			}
			want := history.UnsettledCall{ID: "b", Name: "f_b", Path: "/messages/1/parts/1"}
			if len(unsettled.Calls) != 1 || unsettled.Calls[0] != want {
				t.Errorf("got %+v, want %+v", unsettled.Calls, want)
			}
			if !strings.Contains(err.Error(), `"b" of f_b at /messages/1/parts/1`) {
				t.Errorf("the error does not name the call: %v", err)
			}
		})
	}
	many := &history.UnsettledError{Calls: make([]history.UnsettledCall, 1000)}
	if s := many.Error(); len(s) > 1000 || !strings.Contains(s, "and 995 more") {
		t.Errorf("an error of %d bytes: %s", len(s), s)
	}
}

func TestQuirkD8_ResultWithoutCallIsDroppedOrWrittenAsText(t *testing.T) {
	orphan := []dragoman.Message{user("q"), results(result("x", "1"))}
	unmatched := &dragoman.ToolResult{Name: "clock", Content: []dragoman.Part{text("noon")}}
	loose := targets.Limits{Dialect: "test", LooseResults: true}
	check(t, []row{
		{name: "of an unknown call", in: orphan, want: `user "q"`, report: "dropped (serious) /messages/1/parts/0"},
		{name: "without a call id", in: []dragoman.Message{user("q"), results(unmatched)}, want: "user \"q\"\nuser \"[result of clock: noon]\"", report: "lowered"},
		{
			name: "without a call id, if the dialect allows it", o: history.Options{Limits: loose},
			in:   []dragoman.Message{from(dragoman.Origin{Dialect: "test"}, results(unmatched))},
			want: "tool result:=\"noon\"/clock",
		},
		{
			name: "inside an assistant message", in: []dragoman.Message{message(dragoman.RoleAssistant, call("a"), result("a", "1"), text("so"))},
			want: "assistant call:a \"so\"\ntool result:a=\"1\"", report: "moved out of a message with role assistant",
		},
		{
			name: "a call in a user message, with its result", in: []dragoman.Message{message(dragoman.RoleUser, text("q"), call("a")), results(result("a", "1"))},
			want: `user "q"`, report: "outside an assistant message",
		},
	})
}

func TestQuirkD29_ResultMayBelongToAStoredCall(t *testing.T) {
	l := strict(func(l *targets.Limits) { l.StoredBy = []string{"previous_response_id", "thread", "item_reference"} })
	orphan := results(result("x", "1"))
	for name, req := range map[string]*dragoman.Request{
		"by id":        {PreviousResponseID: "r", Messages: []dragoman.Message{orphan}},
		"by a field":   {Extra: &dragoman.Extra{Dialect: "test", Fields: []dragoman.Field{{Path: "/thread", Value: []byte(`{}`)}}}, Messages: []dragoman.Message{orphan}},
		"by reference": {Messages: []dragoman.Message{message(dragoman.RoleAssistant, &dragoman.Opaque{Dialect: "test", Type: "item_reference", JSON: []byte(`{}`)}), orphan}},
	} {
		if out, rep, err := history.Normalize(req, history.Options{Limits: l}); err != nil || out != req {
			t.Errorf("%s: %v\n%s", name, err, rep)
		}
		if out, _, _ := history.Normalize(req, history.Options{Limits: strict()}); out == req {
			t.Errorf("%s: the result is kept for a server without storage", name)
		}
	}
}

func TestQuirkD9_TruncatedPartsAreNotReplayed(t *testing.T) {
	cut := call("a")
	cut.Status = codes.StatusIncomplete
	canceled := message(dragoman.RoleAssistant, text("Let me"), call("a"))
	canceled.Status = codes.StatusIncomplete
	own := dragoman.Origin{Dialect: "test"}
	check(t, []row{
		{
			name: "a truncated call and its reasoning are dropped; visible text stays",
			in:   []dragoman.Message{user("q"), from(own, message(dragoman.RoleAssistant, text("Let me"), &dragoman.Reasoning{Text: "t"}, cut))},
			want: "user \"q\"\nassistant \"Let me\"", report: "was truncated and has no result",
		},
		{
			name: "a truncated call with a result stays", in: []dragoman.Message{message(dragoman.RoleAssistant, cut), results(result("a", "cut off"))},
			want: "assistant call:a\ntool result:a=\"cut off\"",
		},
		{
			name: "a complete call of a canceled turn gets a result", in: []dragoman.Message{canceled, user("stop")},
			want: "assistant \"Let me\" call:a\ntool result:a=\"" + abandoned + "\"/f_a\nuser \"stop\"", report: "synthesized",
		},
		{
			name: "truncated reasoning is dropped", in: []dragoman.Message{user("q"), from(own, message(dragoman.RoleAssistant, &dragoman.Reasoning{Text: "t", Status: codes.StatusIncomplete}, text("a")))},
			want: "user \"q\"\nassistant \"a\"", report: "truncated reasoning",
		},
	})
}

func TestQuirkD10_CutPointsNeverSplitCallsAndResults(t *testing.T) {
	ms := []dragoman.Message{
		user("q"), calls("a"), results(result("a", "1")), calls("b"), user("hurry"), results(result("b", "2")),
		message(dragoman.RoleAssistant, text("x")), message(dragoman.RoleAssistant, text("y")), user("q"), calls("c"), results(), user("r"),
	}
	if got, want := fmt.Sprint(history.CutPoints(ms)), "[0 1 3 6 8 9]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, at := range history.CutPoints(ms) {
		_, rep, err := history.Normalize(&dragoman.Request{Messages: ms[at:]}, history.Options{Limits: strict(), Abandon: codes.AbandonAll})
		if err != nil || strings.Contains(rep.String(), "unknown call") {
			t.Errorf("cut at %d: %v\n%s", at, err, rep)
		}
	}
	if got := history.CutPoints([]dragoman.Message{{Parts: []dragoman.Part{nil}}, user("q")}); len(got) != 1 {
		t.Errorf("for a nil part: %v", got)
	}
	if got := history.CutPoints(nil); got != nil {
		t.Errorf("for no messages: %v", got)
	}
}

func TestQuirkD15_ResultCarriesTheNameOfItsTool(t *testing.T) {
	wrong := result("a", "1")
	wrong.Name = "other"
	nameless := call("n")
	nameless.Name = ""
	named := history.Options{Limits: strict(func(l *targets.Limits) { l.ResultNames = true })}
	check(t, []row{
		{name: "by the call", o: named, in: []dragoman.Message{calls("a", "b"), results(wrong, result("b", "2"))}, want: "assistant call:a call:b\ntool result:a=\"1\"/f_a result:b=\"2\"/f_b", report: "the name of its tool"},
		{
			name: "of a call without a name", o: named, in: []dragoman.Message{message(dragoman.RoleAssistant, nameless), results(result("n", "1"))},
			want: "assistant call:n\ntool result:n=\"1\"/unknown_tool", report: "synthesized (warn) /messages/0/parts/0/name",
		},
		{name: "no name if not required", in: []dragoman.Message{calls("b"), results(result("b", "2"))}, want: "assistant call:b\ntool result:b=\"2\""},
	})
}

func TestQuirkB11_CallsWithTheSameIDArePairedInOrder(t *testing.T) {
	other := call("a")
	other.Arguments = `{"n":2}`
	req := &dragoman.Request{Messages: []dragoman.Message{message(dragoman.RoleAssistant, call("a"), other, call("a")), results(result("a", "1"), result("a", "2"))}}
	out, rep, err := history.Normalize(req, history.Options{Limits: strict()})
	if err != nil {
		t.Fatal(err)
	}
	calls, results := out.Messages[0].ToolCalls(), out.Messages[1].Parts
	if len(calls) != 2 || calls[0].ID != "a" || calls[1].ID == "a" || calls[1].Arguments != other.Arguments {
		t.Fatalf("%s\n%s", script(out.Messages), rep)
	}
	for i, want := range []string{"1", "2"} {
		if res := results[i].(*dragoman.ToolResult); res.CallID != calls[i].ID || res.Text() != want {
			t.Errorf("%s", script(out.Messages))
		}
	}
}

func TestQuirkB12_IDMayBeReusedUnlessForbidden(t *testing.T) {
	in := []dragoman.Message{calls("0"), results(result("0", "1")), calls("0"), results(result("0", "2"))}
	check(t, []row{{name: "allowed", in: in, want: "assistant call:0\ntool result:0=\"1\"\nassistant call:0\ntool result:0=\"2\""}})
	o := history.Options{Limits: strict(func(l *targets.Limits) { l.UniqueIDs = true })}
	out, _, err := history.Normalize(&dragoman.Request{Messages: in}, o)
	if err != nil {
		t.Fatal(err)
	}
	first, second := out.Messages[0].ToolCalls()[0], out.Messages[2].ToolCalls()[0]
	if first.ID != "0" || second.ID == "0" || out.Messages[3].Parts[0].(*dragoman.ToolResult).CallID != second.ID {
		t.Error(script(out.Messages))
	}
	grown, _, err := history.Normalize(&dragoman.Request{Messages: append(in, calls("0"), results(result("0", "3")))}, o)
	if err != nil || script(grown.Messages[:4]) != script(out.Messages) {
		t.Errorf("the ids changed when the conversation grew: %v\n%s", err, script(grown.Messages))
	}
}

func TestQuirkB15_WithoutIDsResultsPairByNameAndOrder(t *testing.T) {
	f1, f2, g := &dragoman.ToolCall{Name: "f"}, &dragoman.ToolCall{Name: "f"}, &dragoman.ToolCall{Name: "g"}
	res := func(name, text string) *dragoman.ToolResult {
		r := result("", text)
		r.Name = name
		return r
	}
	req := &dragoman.Request{Messages: []dragoman.Message{message(dragoman.RoleAssistant, f1, f2, g), results(res("g", "3"), res("f", "1"), res("f", "2"))}}
	out, _, err := history.Normalize(req, history.Options{Limits: strict(func(l *targets.Limits) { l.OrderedResults = true })})
	if err != nil {
		t.Fatal(err)
	}
	calls := out.Messages[0].ToolCalls()
	var got []string
	for i := 1; i < len(out.Messages); i++ {
		for _, p := range out.Messages[i].Parts {
			got = append(got, p.(*dragoman.ToolResult).CallID+p.(*dragoman.ToolResult).Text())
		}
	}
	if want := []string{calls[0].ID + "1", calls[1].ID + "2", calls[2].ID + "3"}; fmt.Sprint(got) != fmt.Sprint(want) || calls[0].ID == "" {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestResultHasTheKindOfItsCall(t *testing.T) {
	res := result("a", "1")
	res.Payload = codes.PayloadText
	out, _, err := history.Normalize(&dragoman.Request{Messages: []dragoman.Message{calls("a"), results(res)}}, history.Options{Limits: strict()})
	if err != nil || out.Messages[1].Parts[0].(*dragoman.ToolResult).Payload != codes.PayloadObject || res.Payload != codes.PayloadText {
		t.Errorf("%v %+v", err, out.Messages[1].Parts[0])
	}
}

// If the wire keeps consecutive messages separate, results follow the message with their calls, not
// the whole run.
func TestResultsFollowTheirSeparateMessage(t *testing.T) {
	own := dragoman.Origin{Dialect: "test"}
	in := []dragoman.Message{from(own, calls("a")), from(own, message(dragoman.RoleAssistant, text("so"))), results(result("a", "1"))}
	check(t, []row{
		{
			name: "alone", o: history.Options{Limits: strict(func(l *targets.Limits) { l.SeparateMessages = true })}, in: in,
			want: "assistant call:a\ntool result:a=\"1\"\nassistant \"so\"", report: "moved",
		},
		{name: "joined", in: in, want: script(in)},
	})
}

// A call without a name gets the same name in the definition, the call and the result.
func TestQuirkD15_NamelessCallHasOneNameEverywhere(t *testing.T) {
	nameless := call("n")
	nameless.Name = ""
	for _, c := range codecs {
		req := &dragoman.Request{Model: "m", Messages: []dragoman.Message{user("q"), message(dragoman.RoleAssistant, nameless), results(result("n", "1"))}}
		req.Tools = []dragoman.ToolSpec{{Parameters: []byte(`{"type":"object"}`)}} // this tool cannot be sent
		out, _, err := history.Normalize(req, history.Options{Limits: c.Limits()})
		if err != nil {
			t.Fatal(err)
		}
		enc, err := c.EncodeRequest(out, dialect.EncodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range rulecheck.Request(c.Dialect(), enc.Body, rulecheck.Options{}) {
			t.Errorf("%s: %s\n%s", c.Dialect(), v, enc.Body)
		}
		want := 1
		if c.Limits().ToolsForHistory || c.Limits().ResultNames {
			want = 2
		}
		if n := strings.Count(string(enc.Body), `"unknown_tool"`); n != want {
			t.Errorf("%s: the name occurs %d times, want %d: %s", c.Dialect(), n, want, enc.Body)
		}
	}
}
