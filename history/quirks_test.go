package history_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/history"
	"github.com/dragoman-go/dragoman/internal/rulecheck"
)

// say is a message in one line, script a conversation.
func say(role dragoman.Role, parts ...dragoman.Part) dragoman.Message {
	return dragoman.Message{Role: role, Parts: parts}
}

func user(text string) dragoman.Message { return dragoman.UserText(text) }

func asks(ids ...string) dragoman.Message {
	m := dragoman.Message{Role: dragoman.RoleAssistant}
	for _, id := range ids {
		m.Parts = append(m.Parts, call(id))
	}
	return m
}

func call(id string) *dragoman.ToolCall {
	return &dragoman.ToolCall{ID: id, Name: "f_" + id, Arguments: "{}"}
}

func gets(results ...*dragoman.ToolResult) dragoman.Message { return dragoman.ToolResults(results...) }

func result(id, text string) *dragoman.ToolResult {
	return &dragoman.ToolResult{CallID: id, Content: []dragoman.Part{&dragoman.Text{Text: text}}}
}

func text(s string) *dragoman.Text { return &dragoman.Text{Text: s} }

// by is a message of an origin.
func by(o dragoman.Origin, m dragoman.Message) dragoman.Message {
	m.Origin = &o
	return m
}

// script tells a conversation, one message a line.
func script(ms []dragoman.Message) string {
	var lines []string
	for i := range ms {
		line := string(ms[i].Role)
		for _, p := range ms[i].Parts {
			line += " " + tell(p)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func tell(p dragoman.Part) string {
	switch p := p.(type) {
	case *dragoman.Text:
		s := fmt.Sprintf("%q", p.Text)
		if p.Signature != "" {
			s += "+" + p.Signature
		}
		return s
	case *dragoman.ToolCall:
		s := "call:" + p.ID
		if p.Signature != "" {
			s += "+" + p.Signature
		}
		return s
	case *dragoman.ToolResult:
		s := fmt.Sprintf("result:%s=%q", p.CallID, p.Text())
		if p.Name != "" {
			s += "/" + p.Name
		}
		return s
	case *dragoman.Reasoning:
		return "thinks:" + p.Text
	case *dragoman.Media:
		return "media:" + string(p.Media)
	default:
		return string(p.Kind())
	}
}

// strict are the limits of a wire where results directly follow their turn.
func strict(more ...func(*dragoman.Limits)) dragoman.Limits {
	l := dragoman.Limits{Dialect: "test", GroupedResults: true, Replay: dragoman.ReplayRules{
		Messages: dragoman.MatchDialect, Reasoning: dragoman.MatchDialect | dragoman.MatchProvider,
	}}
	for _, f := range more {
		f(&l)
	}
	return l
}

func caps(c dragoman.Capabilities) dragoman.Target { return dragoman.Target{Caps: c} }

// row is one conversation and what becomes of it.
type row struct {
	name string
	o    history.Options
	in   []dragoman.Message
	want string
	// report is a part of the report; empty means that nothing is done.
	report string
}

func check(t *testing.T, rows []row) {
	t.Helper()
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			t.Helper()
			if r.o.Limits.Dialect == "" {
				r.o.Limits = strict()
			}
			req := &dragoman.Request{Model: "m", Messages: r.in}
			out, rep, err := history.Normalize(req, r.o)
			if err != nil {
				t.Fatal(err)
			}
			want := strings.ReplaceAll(r.want, "\t", "")
			if got := script(out.Messages); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			if r.report == "" && out != req {
				t.Errorf("a conversation that needs nothing was changed:\n%s", rep)
			}
			if !strings.Contains(rep.String(), r.report) {
				t.Errorf("the report does not say %q:\n%s", r.report, rep)
			}
		})
	}
}

func TestQuirkD1_ResultsDirectlyFollowTheirTurn(t *testing.T) {
	loose := history.Options{Limits: dragoman.Limits{Dialect: "test", LooseResults: true}}
	late := []dragoman.Message{asks("a"), user("hurry"), say(dragoman.RoleAssistant, text("yes")), gets(result("a", "1"))}
	check(t, []row{
		{
			name: "a late result goes back to its call", in: late,
			want:   "assistant call:a\ntool result:a=\"1\"\nuser \"hurry\"\nassistant \"yes\"",
			report: "moved (info)",
		},
		{
			name: "where any place will do it stays", o: loose, in: late,
			want: "assistant call:a\nuser \"hurry\"\nassistant \"yes\"\ntool result:a=\"1\"",
		},
		{
			name: "results that are in place stay, in several messages", in: []dragoman.Message{asks("a", "b"), gets(result("b", "2")), gets(result("a", "1")), user("q")},
			want: "assistant call:a call:b\ntool result:b=\"2\"\ntool result:a=\"1\"\nuser \"q\"",
		},
	})
}

func TestQuirkD2_ResultsComeBeforeWords(t *testing.T) {
	check(t, []row{
		{
			name: "in one message", in: []dragoman.Message{asks("a"), say(dragoman.RoleUser, text("by the way"), result("a", "1"))},
			want: "assistant call:a\ntool result:a=\"1\"\nuser \"by the way\"", report: "/messages/1: the results of a turn",
		},
		{
			name: "a reminder between results", in: []dragoman.Message{asks("a", "b"), gets(result("a", "1")), dragoman.SystemText("mind"), gets(result("b", "2"))},
			want: "assistant call:a call:b\ntool result:a=\"1\"\ntool result:b=\"2\"\nsystem \"mind\"", report: "moved",
		},
	})
}

func TestQuirkD3_ThereAreAsManyResultsAsCalls(t *testing.T) {
	o := history.Options{Abandon: history.AbandonAll}
	check(t, []row{{
		name: "one missing, one too many", o: o,
		in:     []dragoman.Message{asks("a", "b"), gets(result("b", "2"), result("x", "3"))},
		want:   "assistant call:a call:b\ntool result:a=\"" + abandoned + "\"/f_a\ntool result:b=\"2\"",
		report: "a result of call \"x\", which is not there",
	}})
}

const abandoned = "The call was abandoned: it has no result, and it is not known whether it ran."

func TestQuirkD4_ResultsStandInTheOrderOfTheirCallsWhereThatIsDemanded(t *testing.T) {
	ordered := history.Options{Limits: strict(func(l *dragoman.Limits) { l.OrderedResults = true })}
	in := []dragoman.Message{asks("a", "b", "c"), gets(result("c", "3"), result("a", "1")), gets(result("b", "2"))}
	for range 200 {
		check(t, []row{
			{
				name: "demanded", o: ordered, in: in, report: "moved",
				want: "assistant call:a call:b call:c\ntool result:a=\"1\"\ntool result:b=\"2\"\ntool result:c=\"3\"",
			},
			{name: "not demanded", in: in, want: "assistant call:a call:b call:c\ntool result:c=\"3\" result:a=\"1\"\ntool result:b=\"2\""},
		})
	}
}

func TestQuirkD5_AServerThatWantsEachCallAloneGetsIt(t *testing.T) {
	check(t, []row{{
		name: "two calls", o: history.Options{Target: caps(dragoman.Capabilities{SplitCalls: true})},
		in: []dragoman.Message{
			say(dragoman.RoleAssistant, text("look"), call("a"), call("b")), gets(result("b", "2"), result("a", "1")), user("q"),
		},
		want:   "assistant \"look\" call:a\ntool result:a=\"1\"\nassistant call:b\ntool result:b=\"2\"\nuser \"q\"",
		report: "a turn with 2 calls",
	}, {
		name: "whatever stands between, and wherever results may stand",
		o:    history.Options{Limits: dragoman.Limits{Dialect: "test", LooseResults: true}, Target: caps(dragoman.Capabilities{SplitCalls: true})},
		in:   []dragoman.Message{asks("a", "b"), say(dragoman.RoleSystem), user("q"), gets(result("a", "1"), result("b", "2"))},
		want: "assistant call:a\ntool result:a=\"1\"\nassistant call:b\ntool result:b=\"2\"\nsystem\nuser \"q\"", report: "moved",
	}, {
		name: "an empty message between", o: history.Options{Target: caps(dragoman.Capabilities{SplitCalls: true})},
		in:   []dragoman.Message{asks("a", "b"), say(dragoman.RoleSystem), gets(result("a", "1"), result("b", "2"))},
		want: "assistant call:a\ntool result:a=\"1\"\nassistant call:b\ntool result:b=\"2\"\nsystem", report: "moved",
	}})
}

func TestQuirkD6_OfTwoResultsTheLastCountsAtTheFirstPlace(t *testing.T) {
	made := result("a", "none")
	made.Synthetic = true
	cached := result("a", "2")
	cached.Cache = &dragoman.CacheHint{TTL: "1h"}
	req := &dragoman.Request{Messages: []dragoman.Message{asks("a"), gets(result("a", "1")), gets(cached)}}
	out, _, err := history.Normalize(req, history.Options{Limits: strict()})
	if err != nil {
		t.Fatal(err)
	}
	if got := out.Messages[1].Parts[0].(*dragoman.ToolResult); got.Text() != "2" || got.Cache == nil || got.Cache.TTL != "1h" {
		t.Errorf("the last result lost its cache hint: %+v", got)
	}
	check(t, []row{
		{
			name: "disputed", in: []dragoman.Message{asks("a"), gets(result("a", "1")), gets(cached)},
			want: "assistant call:a\ntool result:a=\"2\"", report: "dropped (warn) /messages/1/parts/0",
		},
		{
			name: "the same twice", in: []dragoman.Message{asks("a"), gets(result("a", "1"), result("a", "1"))},
			want: "assistant call:a\ntool result:a=\"1\"", report: "dropped (info) /messages/1/parts/0",
		},
		{
			name: "late", in: []dragoman.Message{asks("a"), gets(result("a", "1")), say(dragoman.RoleAssistant, text("ok")), gets(result("a", "2")), user("q")},
			want: "assistant call:a\ntool result:a=\"2\"\nassistant \"ok\"\nuser \"q\"", report: "says something else",
		},
		{
			name: "a made-up one gives way to a real one", in: []dragoman.Message{asks("a"), gets(made), user("q"), gets(result("a", "1"))},
			want: "assistant call:a\ntool result:a=\"1\"\nuser \"q\"", report: "what stood in for the result",
		},
		{
			name: "a real one stays", in: []dragoman.Message{asks("a"), gets(result("a", "1")), gets(made)},
			want: "assistant call:a\ntool result:a=\"1\"", report: "dropped (info) /messages/2/parts/0: what stood in",
		},
	})
}

func TestQuirkD7_AnAbandonedCallGetsAFixedErrorResult(t *testing.T) {
	passed := history.Options{Abandon: history.AbandonPassed}
	in := []dragoman.Message{asks("a"), user("never mind")}
	check(t, []row{{
		name: "passed", o: passed, in: in,
		want:   "assistant call:a\ntool result:a=\"" + abandoned + "\"/f_a\nuser \"never mind\"",
		report: "synthesised (warn) /messages/0/parts/0",
	}})
	out, _, err := history.Normalize(&dragoman.Request{Messages: in}, history.Options{Limits: strict(), Abandon: history.AbandonPassed})
	if err != nil {
		t.Fatal(err)
	}
	res := out.Messages[1].Parts[0].(*dragoman.ToolResult)
	if want := history.Abandoned(call("a")); !res.Synthetic || res.Outcome != dragoman.OutcomeError || res.Text() != want.Text() {
		t.Errorf("got %+v, want what a log would store: %+v", res, want)
	}
	problem := call("a")
	problem.Problem = &dragoman.CallProblem{Code: dragoman.ProblemInvalidJSON, Message: "no JSON"}
	later := call("a")
	later.Async = true
	check(t, []row{
		{
			name: "a call that can never run is abandoned by itself", in: []dragoman.Message{say(dragoman.RoleAssistant, problem)},
			want: "assistant call:a\ntool result:a=\"no JSON\"/f_a", report: "synthesised",
		},
		{
			name: "a call nobody waits for, where everybody waits", in: []dragoman.Message{say(dragoman.RoleAssistant, later)},
			want: "assistant call:a\ntool result:a=\"The call runs in the background; there is no result yet.\"/f_a", report: "a note stands in",
		},
		{
			name: "a call nobody waits for", o: history.Options{Limits: strict(func(l *dragoman.Limits) { l.AsyncCalls = true })},
			in: []dragoman.Message{say(dragoman.RoleAssistant, later)}, want: "assistant call:a",
		},
		{
			name: "a call that its provider runs is never answered", in: []dragoman.Message{
				by(dragoman.Origin{Dialect: "test"}, say(dragoman.RoleAssistant, &dragoman.ToolCall{ID: "s", Hosted: true})),
			},
			want: "assistant call:s",
		},
	})
}

func TestQuirkD39_PendingCallsAreAnErrorThatNamesThem(t *testing.T) {
	for name, tc := range map[string]struct {
		abandon history.Abandon
		in      []dragoman.Message
	}{
		"the last turn waits":            {history.AbandonPassed, []dragoman.Message{user("q"), asks("a", "b"), gets(result("a", "1"))}},
		"new input while calls are open": {history.AbandonNone, []dragoman.Message{user("q"), asks("a", "b"), gets(result("a", "1")), user("more")}},
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
				t.Errorf("the error does not say which: %v", err)
			}
		})
	}
	many := &history.UnsettledError{Calls: make([]history.UnsettledCall, 1000)}
	if s := many.Error(); len(s) > 1000 || !strings.Contains(s, "and 995 more") {
		t.Errorf("an error of %d bytes: %s", len(s), s)
	}
}

func TestQuirkD8_AResultWithoutACallIsDroppedOrTold(t *testing.T) {
	orphan := []dragoman.Message{user("q"), gets(result("x", "1"))}
	told := &dragoman.ToolResult{Name: "clock", Content: []dragoman.Part{text("noon")}}
	loose := dragoman.Limits{Dialect: "test", LooseResults: true}
	check(t, []row{
		{name: "of a call that is gone", in: orphan, want: `user "q"`, report: "dropped (serious) /messages/1/parts/0"},
		{name: "of no call at all", in: []dragoman.Message{user("q"), gets(told)}, want: "user \"q\"\nuser \"[result of clock: noon]\"", report: "lowered"},
		{
			name: "of no call, on a wire that knows such", o: history.Options{Limits: loose},
			in:   []dragoman.Message{by(dragoman.Origin{Dialect: "test"}, gets(told))},
			want: "tool result:=\"noon\"/clock",
		},
		{
			name: "inside the assistant's own message", in: []dragoman.Message{say(dragoman.RoleAssistant, call("a"), result("a", "1"), text("so"))},
			want: "assistant call:a \"so\"\ntool result:a=\"1\"", report: "taken out of a message of role assistant",
		},
		{
			name: "a call of the user's takes its result along", in: []dragoman.Message{say(dragoman.RoleUser, text("q"), call("a")), gets(result("a", "1"))},
			want: `user "q"`, report: "outside an assistant message",
		},
	})
}

func TestQuirkD29_AResultMayAnswerACallThatTheServerKeeps(t *testing.T) {
	l := strict(func(l *dragoman.Limits) { l.StoredBy = []string{"previous_response_id", "thread", "item_reference"} })
	orphan := gets(result("x", "1"))
	for name, req := range map[string]*dragoman.Request{
		"by id":        {PreviousResponseID: "r", Messages: []dragoman.Message{orphan}},
		"by a member":  {Extra: &dragoman.Extra{Dialect: "test", Fields: []dragoman.Field{{Path: "/thread", Value: []byte(`{}`)}}}, Messages: []dragoman.Message{orphan}},
		"by reference": {Messages: []dragoman.Message{say(dragoman.RoleAssistant, &dragoman.Opaque{Dialect: "test", Type: "item_reference", JSON: []byte(`{}`)}), orphan}},
	} {
		if out, rep, err := history.Normalize(req, history.Options{Limits: l}); err != nil || out != req {
			t.Errorf("%s: %v\n%s", name, err, rep)
		}
		if out, _, _ := history.Normalize(req, history.Options{Limits: strict()}); out == req {
			t.Errorf("%s: kept for a server that keeps nothing", name)
		}
	}
}

func TestQuirkD9_WhatWasCutOffIsNotReplayed(t *testing.T) {
	cut := call("a")
	cut.Status = dragoman.StatusIncomplete
	cancelled := say(dragoman.RoleAssistant, text("Let me"), call("a"))
	cancelled.Status = dragoman.StatusIncomplete
	own := dragoman.Origin{Dialect: "test"}
	check(t, []row{
		{
			name: "a cut call goes, and the thinking that led to it; visible text stays",
			in:   []dragoman.Message{user("q"), by(own, say(dragoman.RoleAssistant, text("Let me"), &dragoman.Reasoning{Text: "t"}, cut))},
			want: "user \"q\"\nassistant \"Let me\"", report: "cut off and never answered",
		},
		{
			name: "a cut call that was answered stays", in: []dragoman.Message{say(dragoman.RoleAssistant, cut), gets(result("a", "cut off"))},
			want: "assistant call:a\ntool result:a=\"cut off\"",
		},
		{
			name: "a whole call of a cancelled turn is answered", in: []dragoman.Message{cancelled, user("stop")},
			want: "assistant \"Let me\" call:a\ntool result:a=\"" + abandoned + "\"/f_a\nuser \"stop\"", report: "synthesised",
		},
		{
			name: "thinking that was cut off goes", in: []dragoman.Message{user("q"), by(own, say(dragoman.RoleAssistant, &dragoman.Reasoning{Text: "t", Status: dragoman.StatusIncomplete}, text("a")))},
			want: "user \"q\"\nassistant \"a\"", report: "reasoning that was cut off",
		},
	})
}

func TestQuirkD10_ConversationsAreCutBetweenCallsAndResultsNever(t *testing.T) {
	ms := []dragoman.Message{
		user("q"), asks("a"), gets(result("a", "1")), asks("b"), user("hurry"), gets(result("b", "2")),
		say(dragoman.RoleAssistant, text("x")), say(dragoman.RoleAssistant, text("y")), user("q"), asks("c"), gets(), user("r"),
	}
	if got, want := fmt.Sprint(history.CutPoints(ms)), "[0 1 3 6 8 9]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, at := range history.CutPoints(ms) {
		_, rep, err := history.Normalize(&dragoman.Request{Messages: ms[at:]}, history.Options{Limits: strict(), Abandon: history.AbandonAll})
		if err != nil || strings.Contains(rep.String(), "which is not there") {
			t.Errorf("cut at %d: %v\n%s", at, err, rep)
		}
	}
	if got := history.CutPoints([]dragoman.Message{{Parts: []dragoman.Part{nil}}, user("q")}); len(got) != 1 {
		t.Errorf("of a nil part: %v", got)
	}
	if got := history.CutPoints(nil); got != nil {
		t.Errorf("of nothing: %v", got)
	}
}

func TestQuirkD14_MediaThatATargetCannotTakeBecomesANote(t *testing.T) {
	image := dragoman.Image("image/png", []byte("x"))
	byURL := &dragoman.Media{Media: dragoman.MediaImage, URL: "http://x/y.png"}
	file := &dragoman.Media{Media: dragoman.MediaFile, FileID: "file-1"}
	film := &dragoman.Media{Media: dragoman.MediaVideo, Base64: "AA=="}
	doc := &dragoman.Media{Media: dragoman.MediaFile, Text: "plain"}
	shown := gets(&dragoman.ToolResult{CallID: "a", Content: []dragoman.Part{image, text("seen")}})
	check(t, []row{
		{
			name: "a model that cannot see, but can read", o: history.Options{Target: caps(dragoman.Capabilities{NoImages: true})},
			in: []dragoman.Message{say(dragoman.RoleUser, image, doc)}, want: `user "[image not shown]" media:file`, report: "dropped (serious) /messages/0/parts/0",
		},
		{
			name: "in a result", o: history.Options{Target: caps(dragoman.Capabilities{NoImages: true})},
			in: []dragoman.Message{asks("a"), shown}, want: "assistant call:a\ntool result:a=\"[image not shown]seen\"", report: "dropped (serious) /messages/1/parts/0",
		},
		{
			name: "a wire of few means",
			o: history.Options{Limits: strict(func(l *dragoman.Limits) {
				l.MediaKinds = []dragoman.MediaKind{dragoman.MediaImage, dragoman.MediaFile}
				l.NoMediaURL, l.NoMediaFileID = true, true
			})},
			in:   []dragoman.Message{say(dragoman.RoleUser, image, byURL, file, film)},
			want: `user media:image "[image http://x/y.png not shown]" "[file file-1 not shown]" "[video not shown]"`, report: "takes content, not URLs",
		},
		{
			name: "only the user may show things", o: history.Options{Limits: strict(func(l *dragoman.Limits) { l.MediaRoles = []dragoman.Role{dragoman.RoleUser} })},
			in:   []dragoman.Message{say(dragoman.RoleUser, image), say(dragoman.RoleAssistant, image)},
			want: "user media:image\nassistant \"[image not shown]\"", report: "/messages/1/parts/0",
		},
	})
}

func TestQuirkD15_AResultCarriesTheNameOfItsTool(t *testing.T) {
	wrong := result("a", "1")
	wrong.Name = "other"
	nameless := call("n")
	nameless.Name = ""
	named := history.Options{Limits: strict(func(l *dragoman.Limits) { l.ResultNames = true })}
	check(t, []row{
		{name: "by the call", o: named, in: []dragoman.Message{asks("a", "b"), gets(wrong, result("b", "2"))}, want: "assistant call:a call:b\ntool result:a=\"1\"/f_a result:b=\"2\"/f_b", report: "named"},
		{
			name: "of a call without a name", o: named, in: []dragoman.Message{say(dragoman.RoleAssistant, nameless), gets(result("n", "1"))},
			want: "assistant call:n\ntool result:n=\"1\"/unknown_tool", report: "synthesised (warn) /messages/0/parts/0/name",
		},
		{name: "where nobody asks it stays away", in: []dragoman.Message{asks("b"), gets(result("b", "2"))}, want: "assistant call:b\ntool result:b=\"2\""},
	})
}

func TestQuirkD17_TheUserSpeaksFirst(t *testing.T) {
	first := history.Options{Limits: strict(func(l *dragoman.Limits) { l.UserFirst = true })}
	check(t, []row{
		{
			name: "a sliced conversation", o: first, in: []dragoman.Message{dragoman.SystemText("s"), asks("a"), gets(result("a", "1"))},
			want: "system \"s\"\nuser \"(conversation continues)\"\nassistant call:a\ntool result:a=\"1\"", report: "synthesised (warn) /messages",
		},
		{name: "no conversation at all (quirk D38)", o: first, want: `user "(conversation continues)"`, report: "open the conversation"},
		{name: "a whole one", o: first, in: []dragoman.Message{user("q")}, want: `user "q"`},
	})
}

func TestQuirkD18_NeighboursOfOneRoleAreJoinedWhereRolesMustAlternate(t *testing.T) {
	o := history.Options{Target: caps(dragoman.Capabilities{Alternate: true})}
	check(t, []row{
		{
			name: "words", o: o, in: []dragoman.Message{user("a"), user("b"), say(dragoman.RoleAssistant, text("c")), asks("d"), gets(result("d", "1")), user("e"), user("f")},
			want: "user \"a\" \"b\"\nassistant \"c\" call:d\ntool result:d=\"1\"\nuser \"e\" \"f\"", report: "/messages/1: written into the message before",
		},
		{name: "nothing is put between", o: o, in: []dragoman.Message{user("a"), say(dragoman.RoleAssistant, text("b"))}, want: "user \"a\"\nassistant \"b\""},
	})
	thought := &dragoman.Reasoning{Text: "t"}
	a, b := dragoman.Origin{Dialect: "test", Provider: "p"}, dragoman.Origin{Dialect: "test"}
	out, _, err := history.Normalize(&dragoman.Request{Messages: []dragoman.Message{
		by(a, say(dragoman.RoleAssistant, text("x"))), by(b, say(dragoman.RoleAssistant, thought, text("y"))),
	}}, history.Options{Limits: strict(), Target: o.Target})
	if err != nil {
		t.Fatal(err)
	}
	if m := out.Messages[0]; m.Origin != nil || *m.Parts[1].(*dragoman.Reasoning).Origin != b || thought.Origin != nil {
		t.Errorf("thinking must take its own origin along: %+v", m)
	}
}

func TestQuirkD19_TheAssistantSpeaksBetweenToolAndUser(t *testing.T) {
	o := history.Options{Target: caps(dragoman.Capabilities{AssistantAfterTools: true})}
	image := dragoman.Image("image/png", []byte("x"))
	shown := &dragoman.ToolResult{CallID: "a", Content: []dragoman.Part{image}}
	check(t, []row{
		{
			name: "words", o: o, in: []dragoman.Message{asks("a"), say(dragoman.RoleUser, result("a", "1"), text("and"))},
			want: "assistant call:a\ntool result:a=\"1\"\nassistant \"Done.\"\nuser \"and\"", report: `"Done." written`,
		},
		{
			name: "media of results", o: o, in: []dragoman.Message{asks("a"), gets(shown)},
			want: "assistant call:a\ntool result:a=\"(see the attachment below)\"\nassistant \"Done.\"\nuser \"Attached to the result of call a:\" media:image", report: "moved (warn) /messages/1/parts/0",
		},
		{name: "the assistant itself", o: o, in: []dragoman.Message{asks("a"), gets(result("a", "1")), say(dragoman.RoleAssistant, text("so"))}, want: "assistant call:a\ntool result:a=\"1\"\nassistant \"so\""},
		{
			name: "the assistant, who only thought",
			o: history.Options{
				Limits: strict(func(l *dragoman.Limits) { l.NoBlankText = true }),
				Target: caps(dragoman.Capabilities{AssistantAfterTools: true, NoOldReasoning: true}),
			},
			in: []dragoman.Message{
				asks("a"), gets(result("a", "1")),
				by(dragoman.Origin{Dialect: "test"}, say(dragoman.RoleAssistant, &dragoman.Reasoning{Text: "hm"}, text(" "))), say(dragoman.RoleUser, text("and")),
			},
			want: "assistant call:a\ntool result:a=\"1\"\nassistant \"Done.\"\nuser \"and\"", report: `"Done." written`,
		},
	})
}

func TestQuirkD21_ToolsOfTheHistoryAreDeclaredAndMayNotBeCalled(t *testing.T) {
	l := strict(func(l *dragoman.Limits) { l.ToolsForHistory = true })
	freeform := call("b")
	freeform.Payload = dragoman.PayloadText
	ms := []dragoman.Message{say(dragoman.RoleAssistant, freeform, call("a")), gets(result("b", "2"), result("a", "1")), asks("a"), gets(result("a", "1"))}
	out, rep, err := history.Normalize(&dragoman.Request{Messages: ms}, history.Options{Limits: l})
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Tools) != 2 || out.Tools[0].Name != "f_b" || out.Tools[0].Kind != dragoman.ToolFreeform || out.Tools[1].Name != "f_a" {
		t.Errorf("tools in the order of their use: %+v", out.Tools)
	}
	if out.ToolChoice == nil || out.ToolChoice.Mode != dragoman.ChoiceNone || !strings.Contains(rep.String(), "synthesised (warn) /tools") {
		t.Errorf("choice %+v, report:\n%s", out.ToolChoice, rep)
	}
	for name, req := range map[string]*dragoman.Request{
		"tools are there": {Messages: ms, Tools: []dragoman.ToolSpec{{Name: "g"}}},
		"no calls":        {Messages: []dragoman.Message{user("q")}},
	} {
		if out, rep, err := history.Normalize(req, history.Options{Limits: l}); err != nil || out != req {
			t.Errorf("%s: %v\n%s", name, err, rep)
		}
	}
	failed := result("a", "broke")
	failed.Outcome, failed.Name = dragoman.OutcomeError, "f"
	check(t, []row{{
		name: "a model without tools is told in words", o: history.Options{Limits: l, Target: caps(dragoman.Capabilities{NoTools: true})},
		in:   []dragoman.Message{asks("a"), gets(failed), user("q")},
		want: "assistant \"[called f_a: {}]\"\nuser \"[error of f: broke]\"\nuser \"q\"", report: "told in words",
	}})
}

func TestQuirkD22_BlankTextIsLeftOutButNotTheFactThatSomebodySpoke(t *testing.T) {
	o := history.Options{Limits: strict(func(l *dragoman.Limits) { l.NoBlankText = true })}
	own := dragoman.Origin{Dialect: "test"}
	check(t, []row{
		{name: "beside words", o: o, in: []dragoman.Message{say(dragoman.RoleUser, text(" \n"), text("q"))}, want: `user "q"`, report: "dropped (info) /messages/0/parts/0"},
		{
			name: "a user who says nothing", o: o, in: []dragoman.Message{user("q"), say(dragoman.RoleAssistant, text("a")), user(" ")},
			want: "user \"q\"\nassistant \"a\"\nuser \"(no text)\"", report: "synthesised (info) /messages/2",
		},
		{name: "an assistant who says nothing", o: o, in: []dragoman.Message{user("q"), say(dragoman.RoleAssistant, text("")), say(dragoman.RoleAssistant)}, want: `user "q"`, report: "/messages/2: a message without content"},
		{
			name: "beside thinking it stays", o: o,
			in:   []dragoman.Message{user("q"), by(own, say(dragoman.RoleAssistant, &dragoman.Reasoning{Text: "t"}, text(""), &dragoman.Reasoning{Text: "u"}, text("a")))},
			want: "user \"q\"\nassistant thinks:t \"\" thinks:u \"a\"",
		},
		{name: "where it is allowed it stays", in: []dragoman.Message{user(" ")}, want: `user " "`},
	})
}

func TestQuirkD23_D24_D26_D30_ReasoningGoesToItsOriginOnly(t *testing.T) {
	here, there := dragoman.Origin{Dialect: "test", Provider: "p"}, dragoman.Origin{Dialect: "test", Provider: "q"}
	target := dragoman.Target{Provider: "p"}
	thinks := func(o dragoman.Origin, r dragoman.Reasoning) []dragoman.Message {
		return []dragoman.Message{user("q"), by(o, say(dragoman.RoleAssistant, &r, &dragoman.Text{Text: "a", Signature: "s"}))}
	}
	signed := strict(func(l *dragoman.Limits) { l.SignedReasoning = true })
	check(t, []row{
		{name: "to its origin", o: history.Options{Target: target}, in: thinks(here, dragoman.Reasoning{Text: "t"}), want: "user \"q\"\nassistant thinks:t \"a\"+s"},
		{name: "to another provider", o: history.Options{Target: target}, in: thinks(there, dragoman.Reasoning{Text: "t"}), want: "user \"q\"\nassistant \"a\"", report: "dropped (warn) /messages/1/parts/1/signature"},
		{name: "to another provider, in words", o: history.Options{Target: target, ReasoningAsText: true}, in: thinks(there, dragoman.Reasoning{Summary: []string{"s1", "s2"}}), want: "user \"q\"\nassistant \"s1\\n\\ns2\" \"a\"", report: "written as text"},
		{name: "without its signature", o: history.Options{Target: target, Limits: signed}, in: thinks(here, dragoman.Reasoning{Text: "t"}), want: "user \"q\"\nassistant \"a\"+s", report: "without its signature"},
		{name: "with its signature alone (quirk G12)", o: history.Options{Target: target, Limits: signed}, in: thinks(here, dragoman.Reasoning{Signature: "s"}), want: "user \"q\"\nassistant thinks: \"a\"+s"},
		{name: "withheld, unread", o: history.Options{Target: target, Limits: signed}, in: thinks(here, dragoman.Reasoning{Redacted: true, Encrypted: "e"}), want: "user \"q\"\nassistant thinks: \"a\"+s"},
	})
}

func TestQuirkD25_PartsKeepTheirOrderAroundThinking(t *testing.T) {
	own := dragoman.Origin{Dialect: "test"}
	check(t, []row{{
		name: "interleaved",
		in: []dragoman.Message{
			by(own, say(dragoman.RoleAssistant, &dragoman.Reasoning{Text: "1"}, call("a"), &dragoman.Reasoning{Text: "2"}, text("x"), call("b"))), gets(result("a", "1"), result("b", "2")),
		},
		want: "assistant thinks:1 call:a thinks:2 \"x\" call:b\ntool result:a=\"1\" result:b=\"2\"",
	}})
}

func TestQuirkD27_ReasoningGoesWithWhatItLedTo(t *testing.T) {
	own := dragoman.Origin{Dialect: "test"}
	leads := history.Options{Limits: strict(func(l *dragoman.Limits) { l.ReasoningLeads = true })}
	cut := call("b")
	cut.Status = dragoman.StatusIncomplete
	check(t, []row{
		{
			name: "a call that is gone", in: []dragoman.Message{by(own, say(dragoman.RoleAssistant, &dragoman.Reasoning{Text: "1"}, cut, call("a"))), gets(result("a", "1"))},
			want: "assistant call:a\ntool result:a=\"1\"", report: "what the reasoning led to is not there",
		},
		{
			name: "the end of the turn", o: leads, in: []dragoman.Message{user("q"), by(own, say(dragoman.RoleAssistant, text("a"))), by(own, say(dragoman.RoleAssistant, &dragoman.Reasoning{Text: "1"}))},
			want: "user \"q\"\nassistant \"a\"", report: "/messages/2/parts/0: what the reasoning led to",
		},
		{
			name: "something we do not know", o: leads,
			in:   []dragoman.Message{by(own, say(dragoman.RoleAssistant, text("a"), &dragoman.Reasoning{Text: "1"})), say(dragoman.RoleUser, &dragoman.Opaque{Dialect: "test", JSON: []byte("{}")})},
			want: "assistant \"a\" thinks:1\nuser opaque",
		},
		{
			name: "something we do not know, behind the results", o: history.Options{Limits: leads.Limits, Abandon: history.AbandonAll},
			in: []dragoman.Message{
				user("q"), by(own, say(dragoman.RoleAssistant, call("a"))), by(own, say(dragoman.RoleAssistant, &dragoman.Reasoning{Text: "1"})),
				say(dragoman.RoleUser, &dragoman.Opaque{Dialect: "test", JSON: []byte("{}")}),
			},
			want: "user \"q\"\nassistant call:a\ntool result:a=\"The call was abandoned: it has no result, and it is not known whether it ran.\"/f_a\nuser opaque", report: "what the reasoning led to",
		},
	})
}

func TestQuirkD38_AFileIsNotSentAlone(t *testing.T) {
	o := history.Options{Limits: strict(func(l *dragoman.Limits) { l.TextBesideFiles = true })}
	file := &dragoman.Media{Media: dragoman.MediaFile, MIME: "application/pdf", Base64: "AA=="}
	check(t, []row{
		{name: "alone", o: o, in: []dragoman.Message{say(dragoman.RoleUser, file)}, want: `user media:file "(see the attached file)"`, report: "synthesised (info) /messages/0"},
		{name: "with words", o: o, in: []dragoman.Message{say(dragoman.RoleUser, text("read"), file)}, want: `user "read" media:file`},
	})
}

func TestQuirkB11_CallsOfOneTurnThatShareAnIDArePairedInOrder(t *testing.T) {
	other := call("a")
	other.Arguments = `{"n":2}`
	req := &dragoman.Request{Messages: []dragoman.Message{say(dragoman.RoleAssistant, call("a"), other, call("a")), gets(result("a", "1"), result("a", "2"))}}
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

func TestQuirkB12_AnIDMayComeBackUnlessTheTargetForbidsIt(t *testing.T) {
	in := []dragoman.Message{asks("0"), gets(result("0", "1")), asks("0"), gets(result("0", "2"))}
	check(t, []row{{name: "allowed", in: in, want: "assistant call:0\ntool result:0=\"1\"\nassistant call:0\ntool result:0=\"2\""}})
	o := history.Options{Limits: strict(func(l *dragoman.Limits) { l.UniqueIDs = true })}
	out, _, err := history.Normalize(&dragoman.Request{Messages: in}, o)
	if err != nil {
		t.Fatal(err)
	}
	first, second := out.Messages[0].ToolCalls()[0], out.Messages[2].ToolCalls()[0]
	if first.ID != "0" || second.ID == "0" || out.Messages[3].Parts[0].(*dragoman.ToolResult).CallID != second.ID {
		t.Error(script(out.Messages))
	}
	grown, _, err := history.Normalize(&dragoman.Request{Messages: append(in, asks("0"), gets(result("0", "3")))}, o)
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
	req := &dragoman.Request{Messages: []dragoman.Message{say(dragoman.RoleAssistant, f1, f2, g), gets(res("g", "3"), res("f", "1"), res("f", "2"))}}
	out, _, err := history.Normalize(req, history.Options{Limits: strict(func(l *dragoman.Limits) { l.OrderedResults = true })})
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

func TestQuirkB16_TheFirstCallOfEachTurnIsSignedWhereSignaturesAreDemanded(t *testing.T) {
	signs := history.Options{Limits: strict(func(l *dragoman.Limits) { l.DummySignature = "skip" })}
	mine := call("b")
	mine.Signature = "mine"
	own := dragoman.Origin{Dialect: "test"}
	in := []dragoman.Message{
		by(dragoman.Origin{Dialect: "other"}, say(dragoman.RoleAssistant, mine, call("c"))), gets(result("b", "1"), result("c", "2")),
		by(own, say(dragoman.RoleAssistant, mine, call("c"))), gets(result("b", "1"), result("c", "2")),
		asks("d"), gets(result("d", "3")),
	}
	check(t, []row{
		{
			name: "a foreign signature gives way to the dummy, one's own stays", o: signs, in: in,
			want:   "assistant call:b+skip call:c\ntool result:b=\"1\" result:c=\"2\"\nassistant call:b+mine call:c\ntool result:b=\"1\" result:c=\"2\"\nassistant call:d+skip\ntool result:d=\"3\"",
			report: "synthesised (info) /messages/0/parts/0",
		},
		{
			name: "older models need none", o: history.Options{Limits: signs.Limits, Target: caps(dragoman.Capabilities{NoDummySignature: true})}, in: in[2:4],
			want: "assistant call:b+mine call:c\ntool result:b=\"1\" result:c=\"2\"",
		},
	})
}

func TestAResultIsOfTheKindOfItsCall(t *testing.T) {
	res := result("a", "1")
	res.Payload = dragoman.PayloadText
	out, _, err := history.Normalize(&dragoman.Request{Messages: []dragoman.Message{asks("a"), gets(res)}}, history.Options{Limits: strict()})
	if err != nil || out.Messages[1].Parts[0].(*dragoman.ToolResult).Payload != dragoman.PayloadObject || res.Payload != dragoman.PayloadText {
		t.Errorf("%v %+v", err, out.Messages[1].Parts[0])
	}
}

func TestQuirkB26_WhatAProviderRanIsKeptOrDroppedWhole(t *testing.T) {
	hosted := &dragoman.ToolCall{ID: "s", Name: "search", Hosted: true}
	in := func(o dragoman.Origin) []dragoman.Message {
		return []dragoman.Message{user("q"), by(o, say(dragoman.RoleAssistant, hosted, text("a"))), by(o, gets(result("s", "found")))}
	}
	check(t, []row{
		{name: "to its provider", in: in(dragoman.Origin{Dialect: "test"}), want: "user \"q\"\nassistant call:s \"a\"\ntool result:s=\"found\""},
		{name: "elsewhere", in: in(dragoman.Origin{Dialect: "other"}), want: "user \"q\"\nassistant \"a\"", report: "dropped (serious) /messages/1/parts/0"},
	})
}

// A text that is there for its signature alone goes with it.
func TestQuirkD18_ASignedTextThatSaysNothingIsNotLeftBlankWhenItIsJoined(t *testing.T) {
	own, other := dragoman.Origin{Dialect: "test"}, dragoman.Origin{Dialect: "test", Model: "m2"}
	o := history.Options{
		Limits: strict(func(l *dragoman.Limits) { l.NoBlankText = true }), Target: caps(dragoman.Capabilities{Alternate: true}),
	}
	signed := &dragoman.Text{Signature: "s"}
	check(t, []row{{
		name: "two models", o: o, in: []dragoman.Message{user("q"), by(own, say(dragoman.RoleAssistant, signed, text("a"))), by(other, say(dragoman.RoleAssistant, text("b")))},
		want: "user \"q\"\nassistant \"a\" \"b\"", report: "/messages/1/parts/0/signature",
	}})
}

func TestQuirkG3_G9_ReasoningOfOlderTurnsGoesOnlyWhereItIsTaken(t *testing.T) {
	own := dragoman.Origin{Dialect: "test"}
	thinks := func(s string) dragoman.Message {
		return by(own, say(dragoman.RoleAssistant, &dragoman.Reasoning{Text: s}, text("a"), call(s)))
	}
	in := []dragoman.Message{user("q"), thinks("1"), gets(result("1", "x")), user("r"), thinks("2"), gets(result("2", "y"))}
	check(t, []row{
		{name: "all of it", in: in, want: script(in)},
		{
			name: "not of older turns", o: history.Options{Target: caps(dragoman.Capabilities{NoOldReasoning: true})}, in: in,
			want: strings.Replace(script(in), "thinks:1 ", "", 1), report: "dropped (warn) /messages/1/parts/0",
		},
		{
			name: "none", o: history.Options{Target: caps(dragoman.Capabilities{NoReasoning: true})}, in: in,
			want: strings.NewReplacer("thinks:1 ", "", "thinks:2 ", "").Replace(script(in)), report: "takes no reasoning back",
		},
	})
}

func TestQuirkG11_ATurnOfNothingButThinkingIsSkipped(t *testing.T) {
	check(t, []row{{
		name: "skipped", in: []dragoman.Message{user("q"), by(dragoman.Origin{Dialect: "test"}, say(dragoman.RoleAssistant, &dragoman.Reasoning{Text: "t"}, text(" "))), user("r")},
		want: "user \"q\"\nuser \"r\"", report: "a turn of nothing but reasoning",
	}})
}

func TestRolesFitTheTarget(t *testing.T) {
	mid := history.Options{Limits: strict(func(l *dragoman.Limits) { l.NoMidSystem = true })}
	in := []dragoman.Message{dragoman.SystemText("s"), user("q"), dragoman.SystemText("mind")}
	check(t, []row{
		{name: "a system message inside", o: mid, in: in, want: "system \"s\"\nuser \"q\"\nuser \"mind\"", report: "lowered (warn) /messages/2"},
		{name: "a model that takes it", o: history.Options{Limits: mid.Limits, Target: caps(dragoman.Capabilities{MidSystem: true})}, in: in, want: script(in)},
		{name: "a role nobody knows", in: []dragoman.Message{say("critic", text("bah"))}, want: `user "bah"`, report: "role \"critic\" written as user"},
		{name: "a role that the target may know", in: []dragoman.Message{by(dragoman.Origin{Dialect: "test"}, say("critic", text("bah")))}, want: `critic "bah"`},
		{
			name: "no words put into the assistant's mouth", o: history.Options{Target: caps(dragoman.Capabilities{NoPrefill: true})},
			in: []dragoman.Message{user("q"), say(dragoman.RoleAssistant, text("a"))}, want: "user \"q\"\nassistant \"a\"\nuser \"(continue)\"", report: "synthesised (warn) /messages/1",
		},
		{name: "a refusal of the user's", in: []dragoman.Message{say(dragoman.RoleUser, &dragoman.Refusal{Text: "no"})}, want: `user "no"`, report: "written as text"},
		{name: "foreign blocks", in: []dragoman.Message{user("q"), say(dragoman.RoleAssistant, &dragoman.Opaque{Dialect: "other", Type: "x"}, text("a"))}, want: "user \"q\"\nassistant \"a\"", report: "a x of other has no place here"},
	})
}

// On a wire that never joins its own messages, results follow the message with
// their calls, not the run around it.
func TestResultsFollowTheMessageThatStandsAlone(t *testing.T) {
	own := dragoman.Origin{Dialect: "test"}
	in := []dragoman.Message{by(own, asks("a")), by(own, say(dragoman.RoleAssistant, text("so"))), gets(result("a", "1"))}
	check(t, []row{
		{
			name: "alone", o: history.Options{Limits: strict(func(l *dragoman.Limits) { l.SeparateMessages = true })}, in: in,
			want: "assistant call:a\ntool result:a=\"1\"\nassistant \"so\"", report: "moved",
		},
		{name: "joined", in: in, want: script(in)},
	})
}

func TestAnInvalidRequestIsAnError(t *testing.T) {
	for _, req := range []*dragoman.Request{nil, {Messages: []dragoman.Message{{Parts: []dragoman.Part{nil}}}}} {
		if _, _, err := history.Normalize(req, history.Options{Limits: strict()}); !errors.Is(err, dragoman.ErrInvalid) {
			t.Errorf("%v", err)
		}
	}
}

// A call without a name has one name wherever its tool is named.
func TestQuirkD15_ACallWithoutANameHasOneNameEverywhere(t *testing.T) {
	nameless := call("n")
	nameless.Name = ""
	for _, c := range codecs {
		req := &dragoman.Request{Model: "m", Messages: []dragoman.Message{user("q"), say(dragoman.RoleAssistant, nameless), gets(result("n", "1"))}}
		req.Tools = []dragoman.ToolSpec{{Parameters: []byte(`{"type":"object"}`)}} // of which none can be sent
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
			t.Errorf("%s: the name stands %d times, want %d: %s", c.Dialect(), n, want, enc.Body)
		}
	}
}

func TestMediaOfAnotherProvidersStorageBecomesANote(t *testing.T) {
	at := func(url string) *dragoman.Media {
		return &dragoman.Media{Media: dragoman.MediaImage, MIME: "image/png", URL: url}
	}
	file := &dragoman.Media{Media: dragoman.MediaFile, FileID: "file-1"}
	const s3, gs, gemini, web = "s3://b/k.png", "gs://b/k.png", "https://generativelanguage.googleapis.com/v1beta/files/a", "https://e/a.png"
	origin := func(d dragoman.Dialect, provider string) *dragoman.Origin {
		return &dragoman.Origin{Dialect: d, Provider: provider}
	}
	for _, tc := range []struct {
		to     dragoman.Dialect
		origin *dragoman.Origin
		media  *dragoman.Media
		stays  bool
	}{
		{dragoman.Bedrock, origin(dragoman.Bedrock, ""), at(s3), true},
		{dragoman.Bedrock, origin(dragoman.Anthropic, ""), at(s3), true},
		{dragoman.Bedrock, origin(dragoman.Bedrock, ""), at(web), false},
		{dragoman.Anthropic, origin(dragoman.Bedrock, ""), at(s3), false},
		{dragoman.OpenAIChat, origin(dragoman.Bedrock, ""), at(s3), false},
		{dragoman.OpenAIResponses, origin(dragoman.Gemini, ""), at(gs), false},
		{dragoman.Gemini, origin(dragoman.Bedrock, ""), at(s3), false},
		{dragoman.Gemini, origin(dragoman.Gemini, ""), at(gs), true},
		{dragoman.Gemini, origin(dragoman.Anthropic, ""), at(gemini), true},
		{dragoman.Anthropic, origin(dragoman.Gemini, ""), at(gemini), false},
		{dragoman.Anthropic, origin(dragoman.Gemini, ""), at(web), true},
		{dragoman.Anthropic, origin(dragoman.OpenAIChat, ""), file, false},
		{dragoman.OpenAIResponses, origin(dragoman.Anthropic, ""), file, false},
		{dragoman.OpenAIResponses, origin(dragoman.OpenAIChat, ""), file, true}, // one store
		{dragoman.OpenAIResponses, origin(dragoman.OpenAIResponses, "azure"), file, false},
		{dragoman.Anthropic, origin(dragoman.Anthropic, ""), file, true},
		{dragoman.Anthropic, nil, file, true},
	} {
		for _, c := range codecs {
			if c.Dialect() != tc.to {
				continue
			}
			m := say(dragoman.RoleUser, text("q"), tc.media)
			m.Origin = tc.origin
			res := gets(&dragoman.ToolResult{CallID: "a", Name: "f_a", Content: []dragoman.Part{tc.media}})
			res.Origin = tc.origin
			req := &dragoman.Request{Messages: []dragoman.Message{m, asks("a"), res}, Tools: []dragoman.ToolSpec{{Name: "f_a"}}}
			out, rep, err := history.Normalize(req, history.Options{Limits: c.Limits(), Target: dragoman.Target{Provider: "openai"}})
			if err != nil {
				t.Fatal(err)
			}
			stays := out.Messages[0].Parts[1] == dragoman.Part(tc.media)
			inside := out.Messages[2].Parts[0].(*dragoman.ToolResult).Content[0] == dragoman.Part(tc.media)
			serious := rep.Err(dragoman.Serious) != nil
			if stays != tc.stays || inside != tc.stays || serious == tc.stays {
				t.Errorf("%+v of %+v to %s: stays %v, in a result %v\n%s", tc.media, tc.origin, tc.to, stays, inside, rep)
			}
		}
	}
}

func TestAMessageHoldsNoMoreImagesAndFilesThanItMay(t *testing.T) {
	image, file := &dragoman.Media{Media: dragoman.MediaImage, Base64: "AAAA", MIME: "image/png"}, &dragoman.Media{Media: dragoman.MediaFile, Text: "x"}
	shows := &dragoman.ToolResult{CallID: "a", Content: []dragoman.Part{image, image}}
	o := history.Options{Limits: strict(func(l *dragoman.Limits) { l.MaxImages, l.MaxDocuments = 2, 1 })}
	check(t, []row{
		{
			name: "the first ones stay", o: o, in: []dragoman.Message{say(dragoman.RoleUser, image, file, image, file, image)},
			want: "user media:image media:file media:image \"[file not shown]\" \"[image not shown]\"", report: "dropped (serious) /messages/0/parts/3",
		},
		{
			name: "those of results count", o: o, in: []dragoman.Message{asks("a"), gets(shows), say(dragoman.RoleUser, image), say(dragoman.RoleAssistant, text("ok")), say(dragoman.RoleUser, image)},
			want:   "assistant call:a\ntool result:a=\"\"\nuser \"[image not shown]\"\nassistant \"ok\"\nuser media:image",
			report: "dropped (serious) /messages/2/parts/0",
		},
		{
			name: "the target's own client knows", o: o, in: []dragoman.Message{by(dragoman.Origin{Dialect: "test"}, say(dragoman.RoleUser, image, image, image))},
			want: "user media:image media:image media:image",
		},
	})
}

func TestABudgetWaitsWhileTheCallsHaveNoReasoning(t *testing.T) {
	thinks := func(id string) dragoman.Message {
		return by(dragoman.Origin{Dialect: "test"}, say(dragoman.RoleAssistant, &dragoman.Reasoning{Text: "t"}, call(id)))
	}
	limits := strict(func(l *dragoman.Limits) { l.ReasoningInLoop = true })
	for name, tc := range map[string]struct {
		in   []dragoman.Message
		asks bool
	}{
		"no calls":                     {[]dragoman.Message{user("q"), say(dragoman.RoleAssistant, text("a")), user("r")}, true},
		"calls with reasoning":         {[]dragoman.Message{user("q"), thinks("a"), gets(result("a", "1"))}, true},
		"calls without":                {[]dragoman.Message{user("q"), asks("a"), gets(result("a", "1"))}, false},
		"calls without, words behind":  {[]dragoman.Message{user("q"), asks("a"), gets(result("a", "1")), user("hurry")}, false},
		"thought at the start of it":   {[]dragoman.Message{user("q"), thinks("a"), gets(result("a", "1")), asks("b"), gets(result("b", "1"))}, true},
		"thought in another exchange":  {[]dragoman.Message{user("q"), thinks("a"), gets(result("a", "1")), user("r"), asks("b"), gets(result("b", "1"))}, false},
		"thought by the last":          {[]dragoman.Message{user("q"), asks("a"), gets(result("a", "1")), thinks("b"), gets(result("b", "1"))}, true},
		"calls of an earlier exchange": {[]dragoman.Message{user("q"), asks("a"), gets(result("a", "1")), say(dragoman.RoleAssistant, text("a")), user("r")}, true},
	} {
		budget := int64(2048)
		for _, mode := range []dragoman.ReasoningMode{dragoman.ReasoningBudget, dragoman.ReasoningDefault} {
			req := &dragoman.Request{Messages: tc.in, Reasoning: &dragoman.ReasoningSettings{Mode: mode, BudgetTokens: &budget, Effort: "low"}}
			out, rep, err := history.Normalize(req, history.Options{Limits: limits})
			if err != nil {
				t.Fatal(err)
			}
			told := strings.Contains(rep.String(), "dropped (warn) /reasoning/budget_tokens")
			if asked := out.Reasoning.BudgetTokens != nil; asked != tc.asks || told == tc.asks || out.Reasoning.Effort != "low" || req.Reasoning.BudgetTokens == nil {
				t.Errorf("%s: a budget is asked for: %v\n%s", name, asked, rep)
			}
		}
	}
}
