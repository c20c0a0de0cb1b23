package recall_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/gateway/internal/recall"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/storage/memorynotes"
	"github.com/dragoman-go/dragoman/internal/testkit/codectest"
)

var (
	scope  = recall.Scope{Key: "team", Route: "fast"}
	origin = dragoman.Origin{Dialect: dialectname.Gemini, Provider: "google", Scope: "s", Model: "m"}
	chat   = &dragoman.Origin{Dialect: dialectname.OpenAIChat}
)

func ask(messages ...dragoman.Message) *dragoman.Request {
	return &dragoman.Request{Model: "m", Messages: messages}
}

// minted is an answer of the provider's, with a signature on its first call.
func minted(signature, text string, calls ...*dragoman.ToolCall) *dragoman.Response {
	m := dragoman.Message{Role: dragoman.RoleAssistant, Origin: &origin}
	if text != "" {
		m.Parts = append(m.Parts, &dragoman.Text{Text: text})
	}
	for i, c := range calls {
		c := *c
		if i == 0 {
			c.Signature = signature
		}
		m.Parts = append(m.Parts, &c)
	}
	if len(calls) == 0 {
		m.Parts = append(m.Parts, &dragoman.Text{Signature: signature})
	}
	return &dragoman.Response{Output: []dragoman.Message{m}, Origin: &origin}
}

func hashCall(id, where string) *dragoman.ToolCall {
	return &dragoman.ToolCall{ID: id, Name: "find", Arguments: `{"where":"` + where + `"}`}
}

// turn is an answer as a client of Chat returns it.
func turn(text string, calls ...*dragoman.ToolCall) dragoman.Message {
	m := dragoman.Message{Role: dragoman.RoleAssistant, Origin: chat}
	if text != "" {
		m.Parts = append(m.Parts, &dragoman.Text{Text: text})
	}
	for _, c := range calls {
		m.Parts = append(m.Parts, c)
	}
	return m
}

func keep(t testing.TB, r *recall.Recall, scope recall.Scope, req *dragoman.Request, resp *dragoman.Response) {
	t.Helper()
	if err := r.StoreState(t.Context(), scope, req, resp); err != nil {
		t.Fatal(err)
	}
}

// signatures are those of a request after it was restored.
func signatures(t testing.TB, r *recall.Recall, scope recall.Scope, req *dragoman.Request) (got []string, rep dragoman.Report) {
	t.Helper()
	rep, err := r.RestoreState(t.Context(), scope, req)
	if err != nil {
		t.Fatal(err)
	}
	for i := range req.Messages {
		for _, p := range req.Messages[i].Parts {
			s := ""
			switch p := p.(type) {
			case *dragoman.Text:
				s = p.Signature
			case *dragoman.ToolCall:
				s = p.Signature
			case *dragoman.Reasoning:
				s = p.Signature
			}
			if s != "" {
				got = append(got, s)
			}
		}
	}
	return got, rep
}

var hi = dragoman.UserText("hi")

func TestQuirkB17_KeysDoNotShareState(t *testing.T) {
	r, _ := newRecall(t)
	other := []recall.Scope{{Key: "team", Route: "slow"}, {Key: "other", Route: "fast"}, {Key: "teamf", Route: "ast"}, {}}
	keep(t, r, scope, ask(hi), minted(sigA, "", hashCall("call_1", "a")))
	keep(t, r, other[0], ask(hi), minted(sigB, "", hashCall("call_1", "a")))
	for i, want := range []string{sigB, "", "", ""} {
		got, rep := signatures(t, r, other[i], ask(hi, turn("", hashCall("call_1", "a"))))
		if strings.Join(got, " ") != want || len(rep.Losses) > 0 {
			t.Errorf("%v: %q %v", other[i], got, rep)
		}
	}
	if got, _ := signatures(t, r, scope, ask(hi, turn("", hashCall("call_1", "a")))); strings.Join(got, " ") != sigA {
		t.Errorf("%q", got)
	}
}

func TestQuirkB17_ChangedResponseIsNotRestored(t *testing.T) {
	r, _ := newRecall(t)
	keep(t, r, scope, ask(hi), minted(sigA, "I look.", hashCall("call_1", "a"), hashCall("call_2", "b")))
	for what, m := range map[string]dragoman.Message{
		"another text":       turn("I looked.", hashCall("call_1", "a"), hashCall("call_2", "b")),
		"no text":            turn("", hashCall("call_1", "a"), hashCall("call_2", "b")),
		"a call less":        turn("I look.", hashCall("call_1", "a")),
		"a call more":        turn("I look.", hashCall("call_1", "a"), hashCall("call_2", "b"), hashCall("call_3", "c")),
		"other arguments":    turn("I look.", hashCall("call_1", "a"), hashCall("call_2", "B")),
		"another order":      turn("I look.", hashCall("call_2", "b"), hashCall("call_1", "a")),
		"another id":         turn("I look.", hashCall("call_1", "a"), hashCall("call_9", "b")),
		"another tool":       turn("I look.", hashCall("call_1", "a"), &dragoman.ToolCall{ID: "call_2", Name: "seek", Arguments: `{"where":"b"}`}),
		"an image":           {Role: dragoman.RoleAssistant, Parts: append([]dragoman.Part{dragoman.Image("image/png", []byte("x"))}, turn("I look.", hashCall("call_1", "a"), hashCall("call_2", "b")).Parts...)},
		"a block of its own": {Role: dragoman.RoleAssistant, Parts: append([]dragoman.Part{&dragoman.Opaque{Dialect: dialectname.OpenAIChat, Type: "x", JSON: []byte(`{"type":"x"}`)}}, turn("I look.", hashCall("call_1", "a"), hashCall("call_2", "b")).Parts...)},
	} {
		req := ask(hi, m)
		got, rep := signatures(t, r, scope, req)
		if len(got) > 0 || !reflect.DeepEqual(req.Messages[1], m) {
			t.Errorf("%s: %q restored", what, got)
		}
		if len(rep.Losses) != 1 || rep.Losses[0].Path != "/messages/1" || rep.Losses[0].Kind != dragoman.Dropped || rep.Losses[0].Severity != dragoman.Warn {
			t.Errorf("%s: %v", what, rep)
		}
	}
	// Another conversation is another one, and nothing is known of it.
	got, rep := signatures(t, r, scope, ask(dragoman.UserText("Hi"), turn("I look.", hashCall("call_1", "a"), hashCall("call_2", "b"))))
	if len(got) > 0 || len(rep.Losses) > 0 {
		t.Errorf("%q %v", got, rep)
	}
}

func TestQuirkB17_EachResponseHasItsOwnState(t *testing.T) {
	r, _ := newRecall(t)
	keep(t, r, scope, ask(hi), minted(sigA, "one", hashCall("call_1", "a")))
	keep(t, r, scope, ask(hi), minted(sigB, "two", hashCall("call_1", "a")))
	keep(t, r, scope, ask(hi), minted(sigC, "two", hashCall("call_2", "a"))) // looks the same but for the id
	bare := hashCall("made_here", "a")
	bare.Synthetic = true
	for _, c := range []struct {
		m    dragoman.Message
		want string
	}{
		{turn("one", hashCall("call_1", "a")), sigA},
		{turn("two", hashCall("call_1", "a")), sigB},
		{turn("two", hashCall("call_2", "a")), sigC},
		{turn("two", bare), sigC}, // the newest, where no id tells
		{turn("one", hashCall("call_2", "a")), ""},
	} {
		if got, _ := signatures(t, r, scope, ask(hi, c.m)); strings.Join(got, " ") != c.want {
			t.Errorf("%s %s: %q, want %q", c.m.Text(), c.m.ToolCalls()[0].ID, got, c.want)
		}
	}
}

func TestQuirkB17_AlternativesAreStored(t *testing.T) {
	r, _ := newRecall(t)
	resp := minted(sigA, "one")
	resp.Alternatives = []dragoman.Candidate{{Index: 1, Output: minted(sigB, "two").Output}}
	keep(t, r, scope, ask(hi), resp)
	for text, want := range map[string]string{"one": sigA, "two": sigB} {
		if got, _ := signatures(t, r, scope, ask(hi, turn(text), hi)); strings.Join(got, " ") != want {
			t.Errorf("%s: %q", text, got)
		}
	}
}

func TestQuirkB17_NoSignatureIsSentTwice(t *testing.T) {
	signed := func(path, value string) *dragoman.ToolCall {
		c := hashCall("call_1", "a")
		c.Extra = &dragoman.Extra{Dialect: dialectname.OpenAIChat, Fields: []dragoman.Field{{Path: path, Value: []byte(value)}}}
		return c
	}
	own := hashCall("call_1", "a")
	own.Signature = sigA
	details := turn("", hashCall("call_1", "a"))
	details.Parts = append([]dragoman.Part{&dragoman.Reasoning{Details: []json.RawMessage{[]byte(`{"type":"reasoning.encrypted","format":"google-gemini-v1","id":"call_1","data":"` + sigA + `"}`)}}}, details.Parts...)
	r, _ := newRecall(t)
	keep(t, r, scope, ask(hi), minted(sigA, "", hashCall("call_1", "a")))
	for what, m := range map[string]dragoman.Message{
		"on the call":     turn("", own),
		"as Google does":  turn("", signed("/extra_content", `{"google":{"thought_signature":"`+sigA+`"}}`)),
		"as LiteLLM does": turn("", signed("/provider_specific_fields", `{"thought_signature":"`+sigA+`"}`)),
		"as others do":    turn("", signed("/function/thought_signature", `"`+sigA+`"`)),
		"in a record":     details,
	} {
		req := ask(hi, m)
		if _, rep := signatures(t, r, scope, req); !reflect.DeepEqual(req.Messages[1], m) || len(rep.Losses) > 0 {
			t.Errorf("%s: the message was changed: %v", what, rep)
		}
	}
	// One that stands for none, or is another's, is not it.
	other := hashCall("call_1", "a")
	other.Signature = "skip_thought_signature_validator"
	if got, _ := signatures(t, r, scope, ask(hi, turn("", other))); strings.Join(got, " ") != sigA {
		t.Errorf("%q", got)
	}
}

func TestRestoreDoesNotChangeSharedValues(t *testing.T) {
	r, _ := newRecall(t)
	bare := hashCall("made_here", "a")
	bare.Synthetic = true
	answer := minted(sigA, "I look.", hashCall("call_1", "a"))
	history := []dragoman.Message{hi, turn("I look.", bare), dragoman.ToolResults(bare.ResultText("x")), turn("done"), hi}
	before, err := json.Marshal([]any{history, answer})
	if err != nil {
		t.Fatal(err)
	}
	keep(t, r, scope, ask(hi), answer)
	req := ask(history...)
	if got, _ := signatures(t, r, scope, req); strings.Join(got, " ") != sigA {
		t.Fatalf("%q", got)
	}
	if id := req.Messages[2].Parts[0].(*dragoman.ToolResult).CallID; id != "call_1" {
		t.Errorf("the result answers %q", id)
	}
	if after, _ := json.Marshal([]any{history, answer}); string(before) != string(after) {
		t.Errorf("%s\n%s", before, after)
	}
	if req.Messages[1].Origin == nil || *req.Messages[1].Origin != origin {
		t.Errorf("its origin is %v", req.Messages[1].Origin)
	}
}

func TestResponsesWithoutStateAreNotStored(t *testing.T) {
	notes := &memorynotes.Notes{MaxEntries: 1}
	r, err := recall.New(recall.Options{Notes: notes})
	if err != nil {
		t.Fatal(err)
	}
	put := notes.Put(t.Context(), "canary", nil, time.Now().Add(time.Hour))
	keep(t, r, scope, ask(hi), minted("", "words", hashCall("call_1", "a")))
	failed := minted(sigA, "words")
	failed.Error = &dragoman.APIError{Class: dragoman.ErrorServer}
	keep(t, r, scope, ask(hi), failed)
	if _, found, err := notes.Get(t.Context(), "canary"); !found || err != nil || put != nil {
		t.Error("something was kept")
	}
}

// What the client has anyway is not stored once more, nor are images.
func TestStoredStateIsSmall(t *testing.T) {
	notes := &counting{Notes: &memorynotes.Notes{}}
	r, err := recall.New(recall.Options{Notes: notes})
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("words ", 10_000)
	resp := minted(sigA, long, &dragoman.ToolCall{ID: "call_1", Name: "write", Arguments: `{"text":"` + long + `"}`})
	resp.Output[0].Parts = append(resp.Output[0].Parts, dragoman.Image("image/png", []byte(long)))
	resp.Output[0].Native = &dragoman.Sidecar{Dialect: dialectname.Gemini, Raw: []byte(`"` + long + `"`)}
	keep(t, r, scope, ask(hi), resp)
	if notes.bytes > 2000 || notes.bytes < len(sigA) {
		t.Errorf("%d bytes were stored", notes.bytes)
	}
}

func TestQuirkB17_ReturnedMediaGetsItsSignature(t *testing.T) {
	r, _ := newRecall(t)
	image := dragoman.Image("image/png", []byte("x"))
	resp := minted(sigA, "look")
	signed := *image
	signed.Extra = &dragoman.Extra{Dialect: dialectname.Gemini, Fields: []dragoman.Field{{Path: "/thoughtSignature", Value: []byte(`"` + sigB + `"`)}}}
	resp.Output[0].Parts = append(resp.Output[0].Parts, &signed)
	keep(t, r, scope, ask(hi), resp)
	with := turn("look")
	with.Parts = append(with.Parts, image)
	for _, m := range []dragoman.Message{with, turn("look")} {
		req := ask(hi, m, hi)
		if got, _ := signatures(t, r, scope, req); strings.Join(got, " ") != sigA {
			t.Fatalf("%q", got)
		}
		raw, err := json.Marshal(req.Messages[1])
		if err != nil || strings.Contains(string(raw), sigB) != (len(m.Parts) == 2) {
			t.Errorf("%v %s", err, raw)
		}
	}
}

func TestUseExtendsTheLifetimeOfState(t *testing.T) {
	r, clock := newRecall(t)
	keep(t, r, scope, ask(hi), minted(sigA, "one"))
	for range 5 { // an hour is all it has
		clock.Move(40 * time.Minute)
		if got, rep := signatures(t, r, scope, ask(hi, turn("one"), hi)); len(got) != 1 || len(rep.Losses) > 0 {
			t.Fatalf("%q %v", got, rep)
		}
	}
	clock.Move(time.Hour)
	if got, rep := signatures(t, r, scope, ask(hi, turn("one"), hi)); len(got) > 0 || len(rep.Losses) > 0 {
		t.Errorf("%q %v", got, rep)
	}
}

func TestTooLargeStateIsAnErrorAndALoss(t *testing.T) {
	r, err := recall.New(recall.Options{Notes: &memorynotes.Notes{}, MaxState: 1000})
	if err != nil {
		t.Fatal(err)
	}
	err = r.StoreState(t.Context(), scope, ask(hi), minted(strings.Repeat(sigA, 20), "one"))
	var large *recall.TooLargeError
	if !errors.Is(err, recall.ErrTooLarge) || !errors.As(err, &large) || large.Size < 1000 || large.Max != 1000 {
		t.Error(err)
	}
	if got, rep := signatures(t, r, scope, ask(hi, turn("one"), hi)); len(got) > 0 || len(rep.Losses) != 1 {
		t.Errorf("%q %v", got, rep)
	}
}

func TestFailedStoreDoesNotChangeTheRequest(t *testing.T) {
	r, err := recall.New(recall.Options{Notes: &counting{Notes: &memorynotes.Notes{}, err: errors.New("down")}})
	if err != nil {
		t.Fatal(err)
	}
	req := ask(hi, turn("one"), hi)
	if _, err := r.RestoreState(t.Context(), scope, req); err == nil || len(req.Messages) != 3 {
		t.Error(err)
	}
	if err := r.StoreState(t.Context(), scope, ask(hi), minted(sigA, "one")); err == nil {
		t.Error("no error")
	}
	if _, err := recall.New(recall.Options{}); err == nil {
		t.Error("no notes")
	}
}

func TestNewConversationReadsNothing(t *testing.T) {
	notes := &counting{Notes: &memorynotes.Notes{}}
	r, err := recall.New(recall.Options{Notes: notes})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.RestoreState(t.Context(), scope, ask(hi, hi)); err != nil || notes.reads > 0 {
		t.Errorf("%d %v", notes.reads, err)
	}
	var long []dragoman.Message
	for range 100 {
		long = append(long, hi, turn("one"))
	}
	if _, err := r.RestoreState(t.Context(), scope, ask(long...)); err != nil || notes.reads != 1 {
		t.Errorf("%d reads for a hundred turns, %v", notes.reads, err)
	}
}

func TestRestoreIsLinear(t *testing.T) {
	r, _ := newRecall(t)
	codectest.Linear(t, "turns", 8000, func(n int) error {
		var messages []dragoman.Message
		for i := range n {
			c := hashCall(fmt.Sprint("call_", i), fmt.Sprint(i))
			messages = append(messages, hi, turn("words", c), dragoman.ToolResults(c.ResultText("found")))
		}
		_, err := r.RestoreState(t.Context(), scope, ask(messages...))
		return err
	})
	codectest.Linear(t, "parts", 200_000, func(n int) error {
		var m dragoman.Message
		m.Role = dragoman.RoleUser
		for range n {
			m.Parts = append(m.Parts, &dragoman.Text{Text: "x"})
		}
		_, err := r.RestoreState(t.Context(), scope, ask(m, turn("one"), hi))
		return err
	})
	codectest.Linear(t, "arguments", 200_000, func(n int) error {
		c := &dragoman.ToolCall{ID: "c", Name: "f", Arguments: `{"a":[` + strings.Repeat("1,", n) + `1]}`}
		_, err := r.RestoreState(t.Context(), scope, ask(hi, turn("one", c), dragoman.ToolResults(c.ResultText("x"))))
		return err
	})
}

func TestQuirkD26_PlainReasoningIsRestored(t *testing.T) {
	r, _ := newRecall(t)
	think := &dragoman.Reasoning{Text: "hm", Field: "reasoning_content"}
	from := dragoman.Origin{Dialect: dialectname.OpenAIChat, Provider: "deepseek", Model: "m"}
	keep(t, r, scope, ask(hi), &dragoman.Response{Output: []dragoman.Message{{Role: dragoman.RoleAssistant, Origin: &from, Parts: []dragoman.Part{think, &dragoman.Text{Text: "one"}}}}})
	req := ask(hi, turn("one"), hi)
	if _, rep := signatures(t, r, scope, req); len(rep.Losses) > 0 || len(req.Messages[1].Parts) != 2 || *req.Messages[1].Origin != from {
		t.Errorf("%v %v", req.Messages[1], rep)
	}
	returned := turn("one")
	returned.Parts = append([]dragoman.Part{&dragoman.Reasoning{Text: "hm", Field: "reasoning_content"}}, returned.Parts...)
	req = ask(hi, returned, hi)
	if _, rep := signatures(t, r, scope, req); !reflect.DeepEqual(req.Messages[1], returned) || len(rep.Losses) > 0 {
		t.Errorf("%v %v", req.Messages[1], rep)
	}
	if _, rep := signatures(t, r, scope, ask(hi, turn("two"), hi)); len(rep.Losses) != 1 || rep.Losses[0].Severity != dragoman.Info {
		t.Error(rep)
	}
}
