package recall_test

import (
	"fmt"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/history"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/testkit/gen"
	"pgregory.net/rapid"
)

// A client may change the form of a conversation: split, join and trim texts, leave out empty
// parts, move cache markers, change instructions, reorder fields, and synthesize missing call ids.
// The conversation stays the same.
func TestQuirkB17_ConversationHashIgnoresSpelling(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r, _ := newRecall(t)
		var messages []dragoman.Message
		var want []string
		turns := rapid.IntRange(1, 4).Draw(rt, "turns")
		for n := range turns {
			messages = append(messages, dragoman.UserText(rapid.SampledFrom([]string{"hi", "and now?", "a b"}).Draw(rt, "user")))
			signature := fmt.Sprint("signature ", n)
			text := rapid.SampledFrom([]string{"", "one two", " three\n\n four "}).Draw(rt, "text")
			var calls []*dragoman.ToolCall
			for i := range rapid.IntRange(0, 2).Draw(rt, "calls") {
				calls = append(calls, &dragoman.ToolCall{ID: fmt.Sprint("call_", n, "_", i), Name: "find", Arguments: `{"a":1.0,"b":{"c":["x",2]}}`})
			}
			if text == "" && len(calls) == 0 {
				text = "nothing"
			}
			storeState(t, r, scope, newRequest(rewriteMessages(rt, messages, n)...), signedResponse(signature, text, calls...))
			messages = append(messages, assistantTurn(text, calls...))
			want = append(want, signature)
			if len(calls) > 0 {
				var results []*dragoman.ToolResult
				for _, c := range calls {
					results = append(results, c.ResultText("found it"))
				}
				messages = append(messages, dragoman.ToolResults(results...))
			}
		}
		req := newRequest(rewriteMessages(rt, messages, turns)...)
		got, rep := signatures(t, r, scope, req)
		if strings.Join(got, ",") != strings.Join(want, ",") || len(rep.Losses) > 0 {
			rt.Fatalf("%q, want %q; %v", got, want, rep)
		}
		// What is restored is not restored once more.
		again, _ := signatures(t, r, scope, req)
		if strings.Join(again, ",") != strings.Join(want, ",") {
			rt.Fatalf("the second time %q", again)
		}
	})
}

// rewriteMessages returns a conversation in another form with the same meaning.
func rewriteMessages(t *rapid.T, messages []dragoman.Message, seed int) []dragoman.Message {
	flip := func(what string) bool { return rapid.Bool().Draw(t, what) }
	bare := flip("no ids")
	name := func(id string) string {
		if bare {
			return fmt.Sprint("made_", seed, "_", id)
		}
		return id
	}
	var out []dragoman.Message
	if flip("system") {
		out = append(out, dragoman.SystemText(fmt.Sprint("be kind ", seed)))
	}
	for _, m := range messages {
		var parts []dragoman.Part
		if flip("empty") {
			parts = append(parts, &dragoman.Text{})
		}
		for _, p := range m.Parts {
			switch p := p.(type) {
			case *dragoman.Text:
				text := p.Text
				if m.Role == dragoman.RoleAssistant && flip("trim") {
					text = strings.TrimSpace(text)
				}
				cut := rapid.IntRange(0, len(text)).Draw(t, "cut")
				parts = append(parts, &dragoman.Text{Text: text[:cut]}, &dragoman.Text{Text: text[cut:], Cache: &dragoman.CacheHint{}})
			case *dragoman.ToolCall:
				c := *p
				c.ID, c.Synthetic = name(p.ID), bare
				if flip("members") {
					c.Arguments = "{ \"b\": {\"c\":[\"\\u0078\", 2.0]},\n\"a\":1}"
				}
				parts = append(parts, &c)
			case *dragoman.ToolResult:
				res := *p
				res.CallID, res.Name = name(p.CallID), ""
				res.Content = append([]dragoman.Part{&dragoman.Text{Text: "found"}}, &dragoman.Text{Text: " it"})
				parts = append(parts, &res)
			}
		}
		m.Parts = parts
		if m.Role == dragoman.RoleAssistant && flip("thinks") {
			m.Parts = append([]dragoman.Part{&dragoman.Reasoning{Text: "hm"}}, m.Parts...)
		}
		out = append(out, m)
	}
	return out
}

// For any conversation: nothing breaks, and a request that could be sent can still be sent after
// state is restored.
func TestAnyConversationIsStoredAndRestored(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r, _ := newRecall(t)
		req := gen.Options{}.Request().Draw(rt, "request")
		for i := range req.Messages {
			if req.Messages[i].Role == dragoman.RoleAssistant {
				first := i
				for first > 0 && req.Messages[first-1].Role == dragoman.RoleAssistant {
					first--
				}
				before := *req
				before.Messages = req.Messages[:first]
				resp := &dragoman.Response{Output: req.Messages[first : i+1]}
				if err := r.StoreState(t.Context(), scope, &before, resp); err != nil {
					rt.Fatal(err)
				}
			}
		}
		up := rapid.SampledFrom(upstreams).Draw(rt, "upstream")
		encode := func() error {
			out, _, err := history.Normalize(req, history.Options{Limits: up.codec.Limits(), Abandon: codes.AbandonAll})
			if err != nil {
				return err
			}
			_, err = up.codec.EncodeRequest(out, dialect.EncodeOptions{})
			return err
		}
		encodeErr := encode() // some requests cannot be encoded
		if _, err := r.RestoreState(t.Context(), scope, req); err != nil {
			rt.Fatal(err)
		}
		if err := encode(); err != nil && encodeErr == nil {
			rt.Fatal(err)
		}
	})
}

func FuzzRestoringBreaksNothing(f *testing.F) {
	f.Add(`{"model":"m","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"a","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\":1e5}"}}]},{"role":"tool","tool_call_id":"c","content":"x"}]}`, 0)
	f.Add(`{"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]},{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"QUFB"},{"type":"text","text":"a"}]}]}`, 2)
	f.Fuzz(func(t *testing.T, body string, which int) {
		client := clients[uint(which)%uint(len(clients))]
		req, _, err := client.DecodeRequest([]byte(body), dialect.DecodeOptions{})
		if err != nil || req.Validate() != nil {
			return
		}
		r, _ := newRecall(t)
		n := len(req.Messages)
		first := n
		for i := range req.Messages {
			if req.Messages[i].Role == dragoman.RoleAssistant {
				first = i
				break
			}
		}
		if first == n {
			return
		}
		last := first
		for last < n && req.Messages[last].Role == dragoman.RoleAssistant {
			last++
		}
		before := *req
		before.Messages = req.Messages[:first]
		resp := &dragoman.Response{Output: req.Messages[first:last], Origin: &origin}
		if err := r.StoreState(t.Context(), scope, &before, resp); err != nil {
			return
		}
		if rep, err := r.RestoreState(t.Context(), scope, req); err != nil || len(rep.Losses) > 0 {
			t.Fatalf("%v %v", rep, err)
		}
	})
}
