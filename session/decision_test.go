package session_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/internal/testkit/toolopt"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/tool"
)

func ruling(call, args string, v tool.Verdict) tool.Ruling {
	in := tool.Input{Arguments: json.RawMessage(args)}
	return tool.Ruling{
		Binding: tool.Binding{Run: "r", Turn: 2, CallID: call, Key: toolopt.Bare("pay"), Arguments: in.Hash(), Policy: "p1"},
		Input:   in, Answer: tool.Answer{Verdict: v, Message: "because"},
	}
}

func TestS1_DecisionAppliesToExactlyOneCall(t *testing.T) {
	ctx := t.Context()
	var store session.Memory
	s, err := session.Create(ctx, &store, session.Info{ID: "s"})
	if err != nil {
		t.Fatal(err)
	}
	yes, no := ruling("a", `{"n": 1}`, tool.Approved), ruling("a", `{"n": 1}`, tool.Rejected)
	edited := ruling("b", `{}`, tool.Approved)
	edited.Answer.Edited, edited.Sticky = &tool.Input{Arguments: json.RawMessage("{ }")}, true
	if err := s.Decide(ctx, no, edited); err != nil {
		t.Fatal(err)
	}
	before := s.Head()
	if err := s.Decide(ctx, yes); err != nil {
		t.Fatal(err)
	}
	again, err := session.Open(ctx, &store, "s")
	if err != nil {
		t.Fatal(err)
	}
	last := func(r tool.Ruling) string {
		got, err := again.Decided(ctx, r.Binding)
		if err != nil {
			t.Fatal(err)
		}
		if got == nil {
			return ""
		}
		b, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	text := func(r tool.Ruling) string { b, _ := json.Marshal(r); return string(b) }
	if got := last(yes); got != text(yes) {
		t.Errorf("the last decision is %s", got)
	}
	if got := last(edited); got != text(edited) || !strings.Contains(got, `"{ }"`) {
		t.Errorf("the edit is %s", got)
	}
	other := yes
	other.Binding.Policy = "p2"
	if got := last(other) + last(ruling("a", `{"n":1}`, tool.Approved)) + last(ruling("c", `{}`, tool.Approved)); got != "" {
		t.Errorf("another policy, other arguments or another call have %s", got)
	}
	if err := again.Rewind(ctx, before); err != nil {
		t.Fatal(err)
	}
	if got := last(yes); got != text(no) {
		t.Errorf("after the rewind, the last decision is %s", got)
	}
}

// The log keeps all decisions, also those that a rewind removed.
func TestS1_LogHasAllDecisionsWithTimes(t *testing.T) {
	ctx := t.Context()
	s, err := session.Create(ctx, &session.Memory{}, session.Info{})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []tool.Verdict{tool.Rejected, tool.Approved} {
		if err := s.Decide(ctx, ruling("a", `{}`, v)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Rewind(ctx, 0); err != nil {
		t.Fatal(err)
	}
	var said []string
	for e, err := range s.Entries(ctx, session.Query{Kinds: []string{"decision"}}) {
		if err != nil {
			t.Fatal(err)
		}
		r, err := e.Decision()
		if err != nil || e.Time.IsZero() {
			t.Fatal(err, e.Time)
		}
		said = append(said, string(r.Answer.Verdict)+" "+r.Binding.CallID+" "+string(r.Input.Arguments))
	}
	if got := strings.Join(said, ", "); got != "rejected a {}, approved a {}" {
		t.Error(got)
	}
	if _, err := (session.Entry{Kind: "intent", Body: []byte(`{"v":1}`)}).Decision(); !errors.Is(err, session.ErrInvalid) {
		t.Error(err)
	}
	if _, err := (session.Entry{Kind: "decision", Body: []byte(`{"v":2}`)}).Decision(); !errors.Is(err, session.ErrNewer) {
		t.Error(err)
	}
	if err := s.Append(ctx, session.Entry{Kind: "decision", Body: []byte(`{}`)}); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("appending a decision directly: %v", err)
	}
}
