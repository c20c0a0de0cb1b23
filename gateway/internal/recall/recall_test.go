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
	"github.com/dragoman-go/dragoman/internal/storage/storekit"
	"github.com/dragoman-go/dragoman/internal/testkit/codectest"
)

var (
	scope  = recall.Scope{Key: "team", Route: "fast"}
	origin = dragoman.Origin{Dialect: dialectname.Gemini, Provider: "google", Scope: "s", Model: "m"}
	chat   = &dragoman.Origin{Dialect: dialectname.OpenAIChat}
)

func newRequest(messages ...dragoman.Message) *dragoman.Request {
	return &dragoman.Request{Model: "m", Messages: messages}
}

// signedResponse returns a response with a signature on its first call.
func signedResponse(signature, text string, calls ...*dragoman.ToolCall) *dragoman.Response {
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

func newCall(id, where string) *dragoman.ToolCall {
	return &dragoman.ToolCall{ID: id, Name: "find", Arguments: `{"where":"` + where + `"}`}
}

// assistantTurn returns a response as a Chat client sends it back.
func assistantTurn(text string, calls ...*dragoman.ToolCall) dragoman.Message {
	m := dragoman.Message{Role: dragoman.RoleAssistant, Origin: chat}
	if text != "" {
		m.Parts = append(m.Parts, &dragoman.Text{Text: text})
	}
	for _, c := range calls {
		m.Parts = append(m.Parts, c)
	}
	return m
}

func storeState(t testing.TB, r *recall.Recall, scope recall.Scope, req *dragoman.Request, resp *dragoman.Response) {
	t.Helper()
	if err := r.StoreState(t.Context(), scope, req, resp); err != nil {
		t.Fatal(err)
	}
}

// signatures returns the signatures in a request after state is restored.
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
	storeState(t, r, scope, newRequest(hi), signedResponse(sigA, "", newCall("call_1", "a")))
	storeState(t, r, other[0], newRequest(hi), signedResponse(sigB, "", newCall("call_1", "a")))
	for i, want := range []string{sigB, "", "", ""} {
		got, rep := signatures(t, r, other[i], newRequest(hi, assistantTurn("", newCall("call_1", "a"))))
		if strings.Join(got, " ") != want || len(rep.Losses) > 0 {
			t.Errorf("%v: %q %v", other[i], got, rep)
		}
	}
	if got, _ := signatures(t, r, scope, newRequest(hi, assistantTurn("", newCall("call_1", "a")))); strings.Join(got, " ") != sigA {
		t.Errorf("%q", got)
	}
}

func TestQuirkB17_ChangedResponseIsNotRestored(t *testing.T) {
	r, _ := newRecall(t)
	storeState(t, r, scope, newRequest(hi), signedResponse(sigA, "I look.", newCall("call_1", "a"), newCall("call_2", "b")))
	for what, m := range map[string]dragoman.Message{
		"another text":       assistantTurn("I looked.", newCall("call_1", "a"), newCall("call_2", "b")),
		"no text":            assistantTurn("", newCall("call_1", "a"), newCall("call_2", "b")),
		"a call less":        assistantTurn("I look.", newCall("call_1", "a")),
		"a call more":        assistantTurn("I look.", newCall("call_1", "a"), newCall("call_2", "b"), newCall("call_3", "c")),
		"other arguments":    assistantTurn("I look.", newCall("call_1", "a"), newCall("call_2", "B")),
		"another order":      assistantTurn("I look.", newCall("call_2", "b"), newCall("call_1", "a")),
		"another id":         assistantTurn("I look.", newCall("call_1", "a"), newCall("call_9", "b")),
		"another tool":       assistantTurn("I look.", newCall("call_1", "a"), &dragoman.ToolCall{ID: "call_2", Name: "seek", Arguments: `{"where":"b"}`}),
		"an image":           {Role: dragoman.RoleAssistant, Parts: append([]dragoman.Part{dragoman.Image("image/png", []byte("x"))}, assistantTurn("I look.", newCall("call_1", "a"), newCall("call_2", "b")).Parts...)},
		"a block of its own": {Role: dragoman.RoleAssistant, Parts: append([]dragoman.Part{&dragoman.Opaque{Dialect: dialectname.OpenAIChat, Type: "x", JSON: []byte(`{"type":"x"}`)}}, assistantTurn("I look.", newCall("call_1", "a"), newCall("call_2", "b")).Parts...)},
	} {
		req := newRequest(hi, m)
		got, rep := signatures(t, r, scope, req)
		if len(got) > 0 || !reflect.DeepEqual(req.Messages[1], m) {
			t.Errorf("%s: %q restored", what, got)
		}
		if len(rep.Losses) != 1 || rep.Losses[0].Path != "/messages/1" || rep.Losses[0].Kind != dragoman.Dropped || rep.Losses[0].Severity != dragoman.Warn {
			t.Errorf("%s: %v", what, rep)
		}
	}
	// Another conversation has no stored state.
	got, rep := signatures(t, r, scope, newRequest(dragoman.UserText("Hi"), assistantTurn("I look.", newCall("call_1", "a"), newCall("call_2", "b"))))
	if len(got) > 0 || len(rep.Losses) > 0 {
		t.Errorf("%q %v", got, rep)
	}
}

func TestQuirkB17_EachResponseHasItsOwnState(t *testing.T) {
	r, _ := newRecall(t)
	storeState(t, r, scope, newRequest(hi), signedResponse(sigA, "one", newCall("call_1", "a")))
	storeState(t, r, scope, newRequest(hi), signedResponse(sigB, "two", newCall("call_1", "a")))
	storeState(t, r, scope, newRequest(hi), signedResponse(sigC, "two", newCall("call_2", "a"))) // differs only in the id
	bare := newCall("made_here", "a")
	bare.Synthetic = true
	for _, c := range []struct {
		m    dragoman.Message
		want string
	}{
		{assistantTurn("one", newCall("call_1", "a")), sigA},
		{assistantTurn("two", newCall("call_1", "a")), sigB},
		{assistantTurn("two", newCall("call_2", "a")), sigC},
		{assistantTurn("two", bare), sigC}, // the newest, where no id tells
		{assistantTurn("one", newCall("call_2", "a")), ""},
	} {
		if got, _ := signatures(t, r, scope, newRequest(hi, c.m)); strings.Join(got, " ") != c.want {
			t.Errorf("%s %s: %q, want %q", c.m.Text(), c.m.ToolCalls()[0].ID, got, c.want)
		}
	}
}

func TestQuirkB17_AlternativesAreStored(t *testing.T) {
	r, _ := newRecall(t)
	resp := signedResponse(sigA, "one")
	resp.Alternatives = []dragoman.Candidate{{Index: 1, Output: signedResponse(sigB, "two").Output}}
	storeState(t, r, scope, newRequest(hi), resp)
	for text, want := range map[string]string{"one": sigA, "two": sigB} {
		if got, _ := signatures(t, r, scope, newRequest(hi, assistantTurn(text), hi)); strings.Join(got, " ") != want {
			t.Errorf("%s: %q", text, got)
		}
	}
}

func TestQuirkB17_NoSignatureIsSentTwice(t *testing.T) {
	signed := func(path, value string) *dragoman.ToolCall {
		c := newCall("call_1", "a")
		c.Extra = &dragoman.Extra{Dialect: dialectname.OpenAIChat, Fields: []dragoman.Field{{Path: path, Value: []byte(value)}}}
		return c
	}
	own := newCall("call_1", "a")
	own.Signature = sigA
	details := assistantTurn("", newCall("call_1", "a"))
	details.Parts = append([]dragoman.Part{&dragoman.Reasoning{Details: []json.RawMessage{[]byte(`{"type":"reasoning.encrypted","format":"google-gemini-v1","id":"call_1","data":"` + sigA + `"}`)}}}, details.Parts...)
	r, _ := newRecall(t)
	storeState(t, r, scope, newRequest(hi), signedResponse(sigA, "", newCall("call_1", "a")))
	for what, m := range map[string]dragoman.Message{
		"on the call":     assistantTurn("", own),
		"as Google does":  assistantTurn("", signed("/extra_content", `{"google":{"thought_signature":"`+sigA+`"}}`)),
		"as LiteLLM does": assistantTurn("", signed("/provider_specific_fields", `{"thought_signature":"`+sigA+`"}`)),
		"as others do":    assistantTurn("", signed("/function/thought_signature", `"`+sigA+`"`)),
		"in a record":     details,
	} {
		req := newRequest(hi, m)
		if _, rep := signatures(t, r, scope, req); !reflect.DeepEqual(req.Messages[1], m) || len(rep.Losses) > 0 {
			t.Errorf("%s: the message was changed: %v", what, rep)
		}
	}
	// A call that is missing, or of another response, does not match.
	other := newCall("call_1", "a")
	other.Signature = "skip_thought_signature_validator"
	if got, _ := signatures(t, r, scope, newRequest(hi, assistantTurn("", other))); strings.Join(got, " ") != sigA {
		t.Errorf("%q", got)
	}
}

func TestRestoreDoesNotChangeSharedValues(t *testing.T) {
	r, _ := newRecall(t)
	bare := newCall("made_here", "a")
	bare.Synthetic = true
	answer := signedResponse(sigA, "I look.", newCall("call_1", "a"))
	history := []dragoman.Message{hi, assistantTurn("I look.", bare), dragoman.ToolResults(bare.ResultText("x")), assistantTurn("done"), hi}
	before, err := json.Marshal([]any{history, answer})
	if err != nil {
		t.Fatal(err)
	}
	storeState(t, r, scope, newRequest(hi), answer)
	req := newRequest(history...)
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
	notes := &storekit.Notes{MaxEntries: 1}
	r, err := recall.New(recall.Options{Notes: notes})
	if err != nil {
		t.Fatal(err)
	}
	put := notes.Put(t.Context(), "canary", nil, time.Now().Add(time.Hour))
	storeState(t, r, scope, newRequest(hi), signedResponse("", "words", newCall("call_1", "a")))
	failed := signedResponse(sigA, "words")
	failed.Error = &dragoman.APIError{Class: dragoman.ErrorServer}
	storeState(t, r, scope, newRequest(hi), failed)
	if _, found, err := notes.Get(t.Context(), "canary"); !found || err != nil || put != nil {
		t.Error("something was kept")
	}
}

// Content that the client has is not stored, nor are images.
func TestStoredStateIsSmall(t *testing.T) {
	notes := &countingNotes{Notes: &storekit.Notes{}}
	r, err := recall.New(recall.Options{Notes: notes})
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("words ", 10_000)
	resp := signedResponse(sigA, long, &dragoman.ToolCall{ID: "call_1", Name: "write", Arguments: `{"text":"` + long + `"}`})
	resp.Output[0].Parts = append(resp.Output[0].Parts, dragoman.Image("image/png", []byte(long)))
	resp.Output[0].Native = &dragoman.Sidecar{Dialect: dialectname.Gemini, Raw: []byte(`"` + long + `"`)}
	storeState(t, r, scope, newRequest(hi), resp)
	if notes.bytes > 2000 || notes.bytes < len(sigA) {
		t.Errorf("%d bytes were stored", notes.bytes)
	}
}

func TestQuirkB17_ReturnedMediaGetsItsSignature(t *testing.T) {
	r, _ := newRecall(t)
	image := dragoman.Image("image/png", []byte("x"))
	resp := signedResponse(sigA, "look")
	signed := *image
	signed.Extra = &dragoman.Extra{Dialect: dialectname.Gemini, Fields: []dragoman.Field{{Path: "/thoughtSignature", Value: []byte(`"` + sigB + `"`)}}}
	resp.Output[0].Parts = append(resp.Output[0].Parts, &signed)
	storeState(t, r, scope, newRequest(hi), resp)
	with := assistantTurn("look")
	with.Parts = append(with.Parts, image)
	for _, m := range []dragoman.Message{with, assistantTurn("look")} {
		req := newRequest(hi, m, hi)
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
	storeState(t, r, scope, newRequest(hi), signedResponse(sigA, "one"))
	for range 5 { // its TTL is an hour
		clock.Move(40 * time.Minute)
		if got, rep := signatures(t, r, scope, newRequest(hi, assistantTurn("one"), hi)); len(got) != 1 || len(rep.Losses) > 0 {
			t.Fatalf("%q %v", got, rep)
		}
	}
	clock.Move(time.Hour)
	if got, rep := signatures(t, r, scope, newRequest(hi, assistantTurn("one"), hi)); len(got) > 0 || len(rep.Losses) > 0 {
		t.Errorf("%q %v", got, rep)
	}
}

func TestTooLargeStateIsAnErrorAndALoss(t *testing.T) {
	r, err := recall.New(recall.Options{Notes: &storekit.Notes{}, MaxState: 1000})
	if err != nil {
		t.Fatal(err)
	}
	err = r.StoreState(t.Context(), scope, newRequest(hi), signedResponse(strings.Repeat(sigA, 20), "one"))
	var large *recall.TooLargeError
	if !errors.Is(err, recall.ErrTooLarge) || !errors.As(err, &large) || large.Size < 1000 || large.Max != 1000 {
		t.Error(err)
	}
	if got, rep := signatures(t, r, scope, newRequest(hi, assistantTurn("one"), hi)); len(got) > 0 || len(rep.Losses) != 1 {
		t.Errorf("%q %v", got, rep)
	}
}

func TestFailedStoreDoesNotChangeTheRequest(t *testing.T) {
	r, err := recall.New(recall.Options{Notes: &countingNotes{Notes: &storekit.Notes{}, err: errors.New("down")}})
	if err != nil {
		t.Fatal(err)
	}
	req := newRequest(hi, assistantTurn("one"), hi)
	if _, err := r.RestoreState(t.Context(), scope, req); err == nil || len(req.Messages) != 3 {
		t.Error(err)
	}
	if err := r.StoreState(t.Context(), scope, newRequest(hi), signedResponse(sigA, "one")); err == nil {
		t.Error("no error")
	}
	if _, err := recall.New(recall.Options{}); err == nil {
		t.Error("no notes")
	}
}

func TestNewConversationReadsNothing(t *testing.T) {
	notes := &countingNotes{Notes: &storekit.Notes{}}
	r, err := recall.New(recall.Options{Notes: notes})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.RestoreState(t.Context(), scope, newRequest(hi, hi)); err != nil || notes.reads > 0 {
		t.Errorf("%d %v", notes.reads, err)
	}
	var long []dragoman.Message
	for range 100 {
		long = append(long, hi, assistantTurn("one"))
	}
	if _, err := r.RestoreState(t.Context(), scope, newRequest(long...)); err != nil || notes.reads != 1 {
		t.Errorf("%d reads for a hundred turns, %v", notes.reads, err)
	}
}

func TestRestoreIsLinear(t *testing.T) {
	r, _ := newRecall(t)
	codectest.Linear(t, "turns", 8000, func(n int) error {
		var messages []dragoman.Message
		for i := range n {
			c := newCall(fmt.Sprint("call_", i), fmt.Sprint(i))
			messages = append(messages, hi, assistantTurn("words", c), dragoman.ToolResults(c.ResultText("found")))
		}
		_, err := r.RestoreState(t.Context(), scope, newRequest(messages...))
		return err
	})
	codectest.Linear(t, "parts", 200_000, func(n int) error {
		var m dragoman.Message
		m.Role = dragoman.RoleUser
		for range n {
			m.Parts = append(m.Parts, &dragoman.Text{Text: "x"})
		}
		_, err := r.RestoreState(t.Context(), scope, newRequest(m, assistantTurn("one"), hi))
		return err
	})
	codectest.Linear(t, "arguments", 200_000, func(n int) error {
		c := &dragoman.ToolCall{ID: "c", Name: "f", Arguments: `{"a":[` + strings.Repeat("1,", n) + `1]}`}
		_, err := r.RestoreState(t.Context(), scope, newRequest(hi, assistantTurn("one", c), dragoman.ToolResults(c.ResultText("x"))))
		return err
	})
}

func TestQuirkD26_PlainReasoningIsRestored(t *testing.T) {
	r, _ := newRecall(t)
	think := &dragoman.Reasoning{Text: "hm", Field: "reasoning_content"}
	from := dragoman.Origin{Dialect: dialectname.OpenAIChat, Provider: "deepseek", Model: "m"}
	storeState(t, r, scope, newRequest(hi), &dragoman.Response{Output: []dragoman.Message{{Role: dragoman.RoleAssistant, Origin: &from, Parts: []dragoman.Part{think, &dragoman.Text{Text: "one"}}}}})
	req := newRequest(hi, assistantTurn("one"), hi)
	if _, rep := signatures(t, r, scope, req); len(rep.Losses) > 0 || len(req.Messages[1].Parts) != 2 || *req.Messages[1].Origin != from {
		t.Errorf("%v %v", req.Messages[1], rep)
	}
	returned := assistantTurn("one")
	returned.Parts = append([]dragoman.Part{&dragoman.Reasoning{Text: "hm", Field: "reasoning_content"}}, returned.Parts...)
	req = newRequest(hi, returned, hi)
	if _, rep := signatures(t, r, scope, req); !reflect.DeepEqual(req.Messages[1], returned) || len(rep.Losses) > 0 {
		t.Errorf("%v %v", req.Messages[1], rep)
	}
	if _, rep := signatures(t, r, scope, newRequest(hi, assistantTurn("two"), hi)); len(rep.Losses) != 1 || rep.Losses[0].Severity != dragoman.Info {
		t.Error(rep)
	}
}
