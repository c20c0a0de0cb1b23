package history_test

import (
	"errors"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/history"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/targets"
)

func TestQuirkD17_UserMessageComesFirst(t *testing.T) {
	first := history.Options{Limits: strict(func(l *targets.Limits) { l.UserFirst = true })}
	check(t, []row{
		{
			name: "a sliced conversation", o: first, in: []dragoman.Message{dragoman.SystemText("s"), calls("a"), results(result("a", "1"))},
			want: "system \"s\"\nuser \"(conversation continues)\"\nassistant call:a\ntool result:a=\"1\"", report: "synthesized (warn) /messages",
		},
		{name: "no conversation at all (quirk D38)", o: first}, // the encoder refuses it
		{name: "a complete conversation", o: first, in: []dragoman.Message{user("q")}, want: `user "q"`},
	})
}

func TestQuirkD18_SameRoleMessagesAreMergedIfRolesMustAlternate(t *testing.T) {
	o := history.Options{Target: caps(targets.Capabilities{Alternate: true})}
	check(t, []row{
		{
			name: "words", o: o, in: []dragoman.Message{user("a"), user("b"), message(dragoman.RoleAssistant, text("c")), calls("d"), results(result("d", "1")), user("e"), user("f")},
			want: "user \"a\" \"b\"\nassistant \"c\" call:d\ntool result:d=\"1\"\nuser \"e\" \"f\"", report: "/messages/1: merged into the previous message",
		},
		{name: "nothing is added between", o: o, in: []dragoman.Message{user("a"), message(dragoman.RoleAssistant, text("b"))}, want: "user \"a\"\nassistant \"b\""},
	})
	reasoning := &dragoman.Reasoning{Text: "t"}
	a, b := dragoman.Origin{Dialect: "test", Provider: "p"}, dragoman.Origin{Dialect: "test"}
	out, _, err := history.Normalize(&dragoman.Request{Messages: []dragoman.Message{
		from(a, message(dragoman.RoleAssistant, text("x"))), from(b, message(dragoman.RoleAssistant, reasoning, text("y"))),
	}}, history.Options{Limits: strict(), Target: o.Target})
	if err != nil {
		t.Fatal(err)
	}
	if m := out.Messages[0]; m.Origin != nil || *m.Parts[1].(*dragoman.Reasoning).Origin != b || reasoning.Origin != nil {
		t.Errorf("reasoning must carry its own origin: %+v", m)
	}
}

func TestQuirkD19_AssistantMessageBetweenToolAndUser(t *testing.T) {
	o := history.Options{Target: caps(targets.Capabilities{AssistantAfterTools: true})}
	image := dragoman.Image("image/png", []byte("x"))
	shown := &dragoman.ToolResult{CallID: "a", Content: []dragoman.Part{image}}
	check(t, []row{
		{
			name: "words", o: o, in: []dragoman.Message{calls("a"), message(dragoman.RoleUser, result("a", "1"), text("and"))},
			want: "assistant call:a\ntool result:a=\"1\"\nassistant \"Done.\"\nuser \"and\"", report: `"Done." added`,
		},
		{
			name: "media of results", o: o, in: []dragoman.Message{calls("a"), results(shown)},
			want: "assistant call:a\ntool result:a=\"(see the attachment below)\"\nassistant \"Done.\"\nuser \"Attached to the result of call a:\" media:image", report: "moved (warn) /messages/1/parts/0",
		},
		{name: "an assistant message follows", o: o, in: []dragoman.Message{calls("a"), results(result("a", "1")), message(dragoman.RoleAssistant, text("so"))}, want: "assistant call:a\ntool result:a=\"1\"\nassistant \"so\""},
		{
			name: "a reasoning-only assistant message follows",
			o: history.Options{
				Limits: strict(func(l *targets.Limits) { l.NoBlankText = true }),
				Target: caps(targets.Capabilities{AssistantAfterTools: true, NoOldReasoning: true}),
			},
			in: []dragoman.Message{
				calls("a"), results(result("a", "1")),
				from(dragoman.Origin{Dialect: "test"}, message(dragoman.RoleAssistant, &dragoman.Reasoning{Text: "hm"}, text(" "))), message(dragoman.RoleUser, text("and")),
			},
			want: "assistant call:a\ntool result:a=\"1\"\nassistant \"Done.\"\nuser \"and\"", report: `"Done." added`,
		},
	})
}

func TestQuirkD21_HistoryToolsAreDeclaredButForbidden(t *testing.T) {
	l := strict(func(l *targets.Limits) { l.ToolsForHistory = true })
	freeform := call("b")
	freeform.Payload = codes.PayloadText
	ms := []dragoman.Message{message(dragoman.RoleAssistant, freeform, call("a")), results(result("b", "2"), result("a", "1")), calls("a"), results(result("a", "1"))}
	out, rep, err := history.Normalize(&dragoman.Request{Messages: ms}, history.Options{Limits: l})
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Tools) != 2 || out.Tools[0].Name != "f_b" || out.Tools[0].Kind != codes.ToolFreeform || out.Tools[1].Name != "f_a" {
		t.Errorf("tools not in order of use: %+v", out.Tools)
	}
	if out.ToolChoice == nil || out.ToolChoice.Mode != dragoman.ChoiceNone || !strings.Contains(rep.String(), "synthesized (warn) /tools") {
		t.Errorf("choice %+v, report:\n%s", out.ToolChoice, rep)
	}
	for name, req := range map[string]*dragoman.Request{
		"declared tools": {Messages: ms, Tools: []dragoman.ToolSpec{{Name: "g"}}},
		"no calls":       {Messages: []dragoman.Message{user("q")}},
	} {
		if out, rep, err := history.Normalize(req, history.Options{Limits: l}); err != nil || out != req {
			t.Errorf("%s: %v\n%s", name, err, rep)
		}
	}
	failed := result("a", "broke")
	failed.Outcome, failed.Name = codes.OutcomeError, "f"
	check(t, []row{{
		name: "a model without tool support gets text", o: history.Options{Limits: l, Target: caps(targets.Capabilities{NoTools: true})},
		in:   []dragoman.Message{calls("a"), results(failed), user("q")},
		want: "assistant \"[called f_a: {}]\"\nuser \"[error of f: broke]\"\nuser \"q\"", report: "is written as text",
	}})
}

func TestQuirkD22_BlankTextIsDroppedButNotTheMessage(t *testing.T) {
	o := history.Options{Limits: strict(func(l *targets.Limits) { l.NoBlankText = true })}
	own := dragoman.Origin{Dialect: "test"}
	check(t, []row{
		{name: "next to text", o: o, in: []dragoman.Message{message(dragoman.RoleUser, text(" \n"), text("q"))}, want: `user "q"`, report: "dropped (info) /messages/0/parts/0"},
		{
			name: "a blank user message", o: o, in: []dragoman.Message{user("q"), message(dragoman.RoleAssistant, text("a")), user(" ")},
			want: "user \"q\"\nassistant \"a\"\nuser \"(no text)\"", report: "synthesized (info) /messages/2",
		},
		{name: "a blank assistant message", o: o, in: []dragoman.Message{user("q"), message(dragoman.RoleAssistant, text("")), message(dragoman.RoleAssistant)}, want: `user "q"`, report: "/messages/2: a message without content"},
		{
			name: "kept next to reasoning", o: o,
			in:   []dragoman.Message{user("q"), from(own, message(dragoman.RoleAssistant, &dragoman.Reasoning{Text: "t"}, text(""), &dragoman.Reasoning{Text: "u"}, text("a")))},
			want: "user \"q\"\nassistant thinks:t \"\" thinks:u \"a\"",
		},
		{name: "kept where allowed", in: []dragoman.Message{user(" ")}, want: `user " "`},
	})
}

func TestRolesFitTheTarget(t *testing.T) {
	mid := history.Options{Limits: strict(func(l *targets.Limits) { l.NoMidSystem = true })}
	in := []dragoman.Message{dragoman.SystemText("s"), user("q"), dragoman.SystemText("mind")}
	check(t, []row{
		{name: "a system message inside", o: mid, in: in, want: "system \"s\"\nuser \"q\"\nuser \"mind\"", report: "lowered (warn) /messages/2"},
		{name: "a model that accepts it", o: history.Options{Limits: mid.Limits, Target: caps(targets.Capabilities{MidSystem: true})}, in: in, want: script(in)},
		{name: "an unknown role", in: []dragoman.Message{message("critic", text("bah"))}, want: `user "bah"`, report: "role \"critic\" written as user"},
		{name: "an unknown role of the target's dialect", in: []dragoman.Message{from(dragoman.Origin{Dialect: "test"}, message("critic", text("bah")))}, want: `critic "bah"`},
		{
			name: "no final assistant message", o: history.Options{Target: caps(targets.Capabilities{NoPrefill: true})},
			in: []dragoman.Message{user("q"), message(dragoman.RoleAssistant, text("a"))}, want: "user \"q\"\nassistant \"a\"\nuser \"(continue)\"", report: "synthesized (warn) /messages/1",
		},
		{name: "a refusal in a user message", in: []dragoman.Message{message(dragoman.RoleUser, &dragoman.Refusal{Text: "no"})}, want: `user "no"`, report: "written as text"},
		{name: "foreign blocks", in: []dragoman.Message{user("q"), message(dragoman.RoleAssistant, &dragoman.Opaque{Dialect: "other", Type: "x"}, text("a"))}, want: "user \"q\"\nassistant \"a\"", report: "a x of other is not supported by the target"},
	})
}

func TestInvalidRequestIsAnError(t *testing.T) {
	for _, req := range []*dragoman.Request{nil, {Messages: []dragoman.Message{{Parts: []dragoman.Part{nil}}}}} {
		if _, _, err := history.Normalize(req, history.Options{Limits: strict()}); !errors.Is(err, dragoman.ErrInvalid) {
			t.Errorf("%v", err)
		}
	}
}
