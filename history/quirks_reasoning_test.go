package history_test

import (
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/history"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/targets"
)

func TestQuirkD23_D24_D26_D30_ReasoningReturnsToItsOriginOnly(t *testing.T) {
	here, there := dragoman.Origin{Dialect: "test", Provider: "p"}, dragoman.Origin{Dialect: "test", Provider: "q"}
	target := targets.Target{Provider: "p"}
	thinks := func(o dragoman.Origin, r dragoman.Reasoning) []dragoman.Message {
		return []dragoman.Message{user("q"), from(o, message(dragoman.RoleAssistant, &r, &dragoman.Text{Text: "a", Signature: "s"}))}
	}
	signed := strict(func(l *targets.Limits) { l.SignedReasoning = true })
	check(t, []row{
		{name: "to its origin", o: history.Options{Target: target}, in: thinks(here, dragoman.Reasoning{Text: "t"}), want: "user \"q\"\nassistant thinks:t \"a\"+s"},
		{name: "to another provider", o: history.Options{Target: target}, in: thinks(there, dragoman.Reasoning{Text: "t"}), want: "user \"q\"\nassistant \"a\"", report: "dropped (warn) /messages/1/parts/1/signature"},
		{name: "to another provider, as text", o: history.Options{Target: target, ReasoningAsText: true}, in: thinks(there, dragoman.Reasoning{Summary: []string{"s1", "s2"}}), want: "user \"q\"\nassistant \"s1\\n\\ns2\" \"a\"", report: "written as text"},
		{name: "without its signature", o: history.Options{Target: target, Limits: signed}, in: thinks(here, dragoman.Reasoning{Text: "t"}), want: "user \"q\"\nassistant \"a\"+s", report: "without a signature"},
		{name: "signature only (quirk G12)", o: history.Options{Target: target, Limits: signed}, in: thinks(here, dragoman.Reasoning{Signature: "s"}), want: "user \"q\"\nassistant thinks: \"a\"+s"},
		{name: "redacted", o: history.Options{Target: target, Limits: signed}, in: thinks(here, dragoman.Reasoning{Redacted: true, Encrypted: "e"}), want: "user \"q\"\nassistant thinks: \"a\"+s"},
	})
}

func TestQuirkD25_PartsKeepTheirOrderAroundReasoning(t *testing.T) {
	own := dragoman.Origin{Dialect: "test"}
	check(t, []row{{
		name: "interleaved",
		in: []dragoman.Message{
			from(own, message(dragoman.RoleAssistant, &dragoman.Reasoning{Text: "1"}, call("a"), &dragoman.Reasoning{Text: "2"}, text("x"), call("b"))), results(result("a", "1"), result("b", "2")),
		},
		want: "assistant thinks:1 call:a thinks:2 \"x\" call:b\ntool result:a=\"1\" result:b=\"2\"",
	}})
}

func TestQuirkD27_ReasoningIsDroppedWithItsContent(t *testing.T) {
	own := dragoman.Origin{Dialect: "test"}
	leads := history.Options{Limits: strict(func(l *targets.Limits) { l.ReasoningFirst = true })}
	cut := call("b")
	cut.Status = codes.StatusIncomplete
	check(t, []row{
		{
			name: "before a dropped call", in: []dragoman.Message{from(own, message(dragoman.RoleAssistant, &dragoman.Reasoning{Text: "1"}, cut, call("a"))), results(result("a", "1"))},
			want: "assistant call:a\ntool result:a=\"1\"", report: "the content after the reasoning is missing",
		},
		{
			name: "at the end of the turn", o: leads, in: []dragoman.Message{user("q"), from(own, message(dragoman.RoleAssistant, text("a"))), from(own, message(dragoman.RoleAssistant, &dragoman.Reasoning{Text: "1"}))},
			want: "user \"q\"\nassistant \"a\"", report: "/messages/2/parts/0: the content after the reasoning",
		},
		{
			name: "before an unknown part", o: leads,
			in:   []dragoman.Message{from(own, message(dragoman.RoleAssistant, text("a"), &dragoman.Reasoning{Text: "1"})), message(dragoman.RoleUser, &dragoman.Opaque{Dialect: "test", JSON: []byte("{}")})},
			want: "assistant \"a\" thinks:1\nuser opaque",
		},
		{
			name: "before a part of another provider", o: leads,
			in: []dragoman.Message{
				user("q"), from(own, message(dragoman.RoleAssistant, text("a"), &dragoman.Reasoning{Text: "1"})),
				from(dragoman.Origin{Dialect: "other"}, message(dragoman.RoleAssistant, &dragoman.Opaque{Dialect: "test", Type: "search", JSON: []byte("{}")})),
			},
			want: "user \"q\"\nassistant \"a\"", report: "dropped (serious) /messages/2/parts/0: a search of another provider",
		},
		{
			name: "before an unknown part after the results", o: history.Options{Limits: leads.Limits, Abandon: codes.AbandonAll},
			in: []dragoman.Message{
				user("q"), from(own, message(dragoman.RoleAssistant, call("a"))), from(own, message(dragoman.RoleAssistant, &dragoman.Reasoning{Text: "1"})),
				message(dragoman.RoleUser, &dragoman.Opaque{Dialect: "test", JSON: []byte("{}")}),
			},
			want: "user \"q\"\nassistant call:a\ntool result:a=\"The call was abandoned: it has no result, and it is not known whether it ran.\"/f_a\nuser opaque", report: "the content after the reasoning",
		},
	})
}

func TestQuirkB16_FirstCallOfEachTurnIsSigned(t *testing.T) {
	signs := history.Options{Limits: strict(func(l *targets.Limits) { l.DummySignature = "skip" })}
	mine := call("b")
	mine.Signature = "mine"
	own := dragoman.Origin{Dialect: "test"}
	in := []dragoman.Message{
		from(dragoman.Origin{Dialect: "other"}, message(dragoman.RoleAssistant, mine, call("c"))), results(result("b", "1"), result("c", "2")),
		from(own, message(dragoman.RoleAssistant, mine, call("c"))), results(result("b", "1"), result("c", "2")),
		calls("d"), results(result("d", "3")),
	}
	check(t, []row{
		{
			name: "a dummy replaces a foreign signature, an own one stays", o: signs, in: in,
			want:   "assistant call:b+skip call:c\ntool result:b=\"1\" result:c=\"2\"\nassistant call:b+mine call:c\ntool result:b=\"1\" result:c=\"2\"\nassistant call:d+skip\ntool result:d=\"3\"",
			report: "synthesized (info) /messages/0/parts/0",
		},
		{
			name: "older models need none", o: history.Options{Limits: signs.Limits, Target: caps(targets.Capabilities{NoDummySignature: true})}, in: in[2:4],
			want: "assistant call:b+mine call:c\ntool result:b=\"1\" result:c=\"2\"",
		},
	})
}

func TestQuirkB26_HostedCallIsKeptOrDroppedWhole(t *testing.T) {
	hosted := &dragoman.ToolCall{ID: "s", Name: "search", Hosted: true}
	in := func(o dragoman.Origin) []dragoman.Message {
		return []dragoman.Message{user("q"), from(o, message(dragoman.RoleAssistant, hosted, text("a"))), from(o, results(result("s", "found")))}
	}
	check(t, []row{
		{name: "to its provider", in: in(dragoman.Origin{Dialect: "test"}), want: "user \"q\"\nassistant call:s \"a\"\ntool result:s=\"found\""},
		{name: "to another provider", in: in(dragoman.Origin{Dialect: "other"}), want: "user \"q\"\nassistant \"a\"", report: "dropped (serious) /messages/1/parts/0"},
	})
}

// A text that only carries a signature is dropped with it.
func TestQuirkD18_BlankSignedTextIsDroppedWhenMerged(t *testing.T) {
	own, other := dragoman.Origin{Dialect: "test"}, dragoman.Origin{Dialect: "test", Model: "m2"}
	o := history.Options{
		Limits: strict(func(l *targets.Limits) { l.NoBlankText = true }), Target: caps(targets.Capabilities{Alternate: true}),
	}
	signed := &dragoman.Text{Signature: "s"}
	check(t, []row{{
		name: "two models", o: o, in: []dragoman.Message{user("q"), from(own, message(dragoman.RoleAssistant, signed, text("a"))), from(other, message(dragoman.RoleAssistant, text("b")))},
		want: "user \"q\"\nassistant \"a\" \"b\"", report: "/messages/1/parts/0/signature",
	}})
}

func TestQuirkG3_G9_OldReasoningIsSentOnlyWhereAccepted(t *testing.T) {
	own := dragoman.Origin{Dialect: "test"}
	thinks := func(s string) dragoman.Message {
		return from(own, message(dragoman.RoleAssistant, &dragoman.Reasoning{Text: s}, text("a"), call(s)))
	}
	in := []dragoman.Message{user("q"), thinks("1"), results(result("1", "x")), user("r"), thinks("2"), results(result("2", "y"))}
	check(t, []row{
		{name: "all of it", in: in, want: script(in)},
		{
			name: "not of older turns", o: history.Options{Target: caps(targets.Capabilities{NoOldReasoning: true})}, in: in,
			want: strings.Replace(script(in), "thinks:1 ", "", 1), report: "dropped (warn) /messages/1/parts/0",
		},
		{
			name: "none", o: history.Options{Target: caps(targets.Capabilities{NoReasoning: true})}, in: in,
			want: strings.NewReplacer("thinks:1 ", "", "thinks:2 ", "").Replace(script(in)), report: "does not accept reasoning in the history",
		},
	})
}

func TestQuirkG11_ReasoningOnlyTurnIsDropped(t *testing.T) {
	check(t, []row{{
		name: "skipped", in: []dragoman.Message{user("q"), from(dragoman.Origin{Dialect: "test"}, message(dragoman.RoleAssistant, &dragoman.Reasoning{Text: "t"}, text(" "))), user("r")},
		want: "user \"q\"\nuser \"r\"", report: "a turn with only reasoning",
	}})
}

func TestBudgetIsDroppedWhileCallsHaveNoReasoning(t *testing.T) {
	thinks := func(id string) dragoman.Message {
		return from(dragoman.Origin{Dialect: "test"}, message(dragoman.RoleAssistant, &dragoman.Reasoning{Text: "t"}, call(id)))
	}
	limits := strict(func(l *targets.Limits) { l.ReasoningInLoop, l.NoBlankText = true, true })
	signed := from(dragoman.Origin{Dialect: "test"}, message(dragoman.RoleAssistant, &dragoman.Text{Text: " ", Signature: "s"}))
	for name, tc := range map[string]struct {
		in    []dragoman.Message
		calls bool
	}{
		"no calls":                        {[]dragoman.Message{user("q"), message(dragoman.RoleAssistant, text("a")), user("r")}, true},
		"calls with reasoning":            {[]dragoman.Message{user("q"), thinks("a"), results(result("a", "1"))}, true},
		"calls without reasoning":         {[]dragoman.Message{user("q"), calls("a"), results(result("a", "1"))}, false},
		"calls without, text after":       {[]dragoman.Message{user("q"), calls("a"), results(result("a", "1")), user("hurry")}, false},
		"calls without, blank text after": {[]dragoman.Message{user("q"), calls("a"), results(result("a", "1")), signed}, false},
		"reasoning at the start":          {[]dragoman.Message{user("q"), thinks("a"), results(result("a", "1")), calls("b"), results(result("b", "1"))}, true},
		"reasoning in another exchange":   {[]dragoman.Message{user("q"), thinks("a"), results(result("a", "1")), user("r"), calls("b"), results(result("b", "1"))}, false},
		"reasoning in the last turn":      {[]dragoman.Message{user("q"), calls("a"), results(result("a", "1")), thinks("b"), results(result("b", "1"))}, true},
		"calls of an earlier exchange":    {[]dragoman.Message{user("q"), calls("a"), results(result("a", "1")), message(dragoman.RoleAssistant, text("a")), user("r")}, true},
	} {
		budget := int64(2048)
		for _, mode := range []string{codes.ReasoningBudget, codes.ReasoningDefault} {
			req := &dragoman.Request{Messages: tc.in, Reasoning: &dragoman.ReasoningSettings{Mode: mode, BudgetTokens: &budget, Effort: "low"}}
			out, rep, err := history.Normalize(req, history.Options{Limits: limits})
			if err != nil {
				t.Fatal(err)
			}
			reported := strings.Contains(rep.String(), "dropped (warn) /reasoning/budget_tokens")
			if asked := out.Reasoning.BudgetTokens != nil; asked != tc.calls || reported == tc.calls || out.Reasoning.Effort != "low" || req.Reasoning.BudgetTokens == nil {
				t.Errorf("%s: budget requested: %v\n%s", name, asked, rep)
			}
		}
	}
}
