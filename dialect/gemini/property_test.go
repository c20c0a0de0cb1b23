package gemini_test

import (
	"fmt"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/rulecheck"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var (
	words    = rapid.SampledFrom([]string{"a", "hello world", "<é>", "日本\n", "🙂", `q"\`, "x y z"})
	toolName = rapid.SampledFrom([]string{"f", "get_weather", "a.b", "näme"})
	argText  = rapid.SampledFrom([]string{"{}", `{"a":1}`, `{"s":"<é>\n","n":9007199254740993}`, `{"nested":{"x":[1,2,{}]}}`})
)

// drawConversation draws a settled conversation: every call answered, the
// answers in any order and cut into any number of messages.
func drawConversation(t *rapid.T) []dragoman.Message {
	var ms []dragoman.Message
	if rapid.Bool().Draw(t, "system") {
		ms = append(ms, dragoman.SystemText(words.Draw(t, "rule")))
	}
	ids := 0
	for turn := range rapid.IntRange(1, 4).Draw(t, "turns") {
		ms = append(ms, dragoman.UserText(words.Draw(t, "question")))
		origin := rapid.SampledFrom([]*dragoman.Origin{nil, own, foreign}).Draw(t, "origin")
		var parts []dragoman.Part
		if rapid.Bool().Draw(t, "thinks") {
			parts = append(parts, &dragoman.Reasoning{Text: words.Draw(t, "thought"), Signature: "sig"})
		}
		if rapid.Bool().Draw(t, "speaks") {
			parts = append(parts, &dragoman.Text{Text: words.Draw(t, "answer")})
		}
		var results []*dragoman.ToolResult
		for range rapid.IntRange(0, 3).Draw(t, "calls") {
			ids++
			c := call(fmt.Sprintf("call_%d.%d", turn, ids), toolName.Draw(t, "name"), argText.Draw(t, "args"))
			c.Synthetic = origin == own && rapid.Bool().Draw(t, "synthetic")
			parts = append(parts, c)
			res := result(c.ID, words.Draw(t, "result"))
			res.Outcome = dragoman.OutcomeOK
			if rapid.Bool().Draw(t, "failed") {
				res.Outcome = dragoman.OutcomeError
			}
			results = append(results, res)
		}
		if len(parts) == 0 {
			parts = append(parts, &dragoman.Text{Text: "ok"})
		}
		// Some dialects write one turn as several items.
		for len(parts) > 0 {
			n := rapid.IntRange(1, len(parts)).Draw(t, "item")
			ms = append(ms, from(origin, said(dragoman.RoleAssistant, parts[:n]...)))
			parts = parts[n:]
		}
		for len(results) > 0 {
			n := rapid.IntRange(1, len(results)).Draw(t, "batch")
			ms = append(ms, dragoman.ToolResults(results[:n]...))
			results = results[n:]
		}
	}
	return ms
}

func drawRequest(t *rapid.T) *dragoman.Request {
	req := ask(drawConversation(t)...)
	for _, n := range []string{"f", "get_weather", "a.b", "näme"} {
		req.Tools = append(req.Tools, tool(n))
	}
	return req
}

func TestEncodingIsDeterministic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		req := drawRequest(t)
		a, err := codec.EncodeRequest(req, dialect.EncodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		b, _ := codec.EncodeRequest(req, dialect.EncodeOptions{})
		if string(a.Body) != string(b.Body) || a.Report.String() != b.Report.String() {
			t.Fatalf("%s\n%s", a.Body, b.Body)
		}
	})
}

// drawContents encodes a request and returns the elements of its conversation.
func drawContents(t *rapid.T, req *dragoman.Request) []string {
	enc, err := codec.EncodeRequest(req, dialect.EncodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return contentsOf(t, string(enc.Body))
}

// Prompt caches live on it: what was sent once is sent again byte for byte.
func TestAppendingToAConversationLeavesItsElementsAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		req := drawRequest(t)
		whole := drawContents(t, req)
		for n := 1; n < len(req.Messages); n++ {
			// A conversation is settled where the next message is not of the
			// same turn.
			if a, b := req.Messages[n-1].Role, req.Messages[n].Role; b == dragoman.RoleTool || a == b || a == dragoman.RoleSystem {
				continue
			}
			prefix := *req
			prefix.Messages = req.Messages[:n]
			part := drawContents(t, &prefix)
			for i, m := range part {
				last := i == len(part)-1
				if m != whole[i] && (!last || !strings.HasPrefix(whole[i], strings.TrimSuffix(m, "]}"))) {
					t.Fatalf("after %d messages element %d was\n%s\nand became\n%s", n, i, m, whole[i])
				}
			}
		}
	})
}

// Every turn of calls is answered in the next content, once for each call and
// in order, and no two contents of one role follow each other.
func TestAnyConversationIsValidForTheWire(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		req := drawRequest(t)
		enc, err := codec.EncodeRequest(req, dialect.EncodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if bad := rulecheck.Request(dragoman.Gemini, enc.Body, rulecheck.Options{NoSignatures: true}); len(bad) > 0 {
			t.Fatalf("%v\n%s", bad, enc.Body)
		}
		again, _, err := codec.DecodeRequest(enc.Body, dialect.DecodeOptions{Registry: enc.Registry})
		if err != nil {
			t.Fatal(err)
		}
		var asked []*dragoman.ToolCall
		before := dragoman.Role("")
		for i, m := range again.Messages {
			role := m.Role
			if role == dragoman.RoleTool {
				role = dragoman.RoleUser
			}
			if role == before || i == 0 && role != dragoman.RoleUser {
				t.Fatalf("content %d has role %s behind %s\n%s", i, role, before, enc.Body)
			}
			before = role
			for j, c := range asked {
				res, ok := m.Parts[j].(*dragoman.ToolResult)
				if !ok || res.CallID != c.ID || res.Name != c.Name {
					t.Fatalf("call %+v is answered by %+v\n%s", c, m.Parts[j], enc.Body)
				}
			}
			if asked = m.ToolCalls(); len(asked) > 0 && asked[0].Signature == "" && !originated(req, asked[0]) {
				t.Fatalf("the first call has no signature\n%s", enc.Body)
			}
		}
	})
}

// originated reports whether this dialect made a call of these arguments.
func originated(req *dragoman.Request, c *dragoman.ToolCall) bool {
	for i := range req.Messages {
		if m := &req.Messages[i]; m.Origin == own {
			for _, k := range m.ToolCalls() {
				if k.Name == c.Name && k.Arguments == c.Arguments {
					return true
				}
			}
		}
	}
	return false
}

func TestARoundTripKeepsEveryCallAndResult(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		req := drawRequest(t)
		enc, err := codec.EncodeRequest(req, dialect.EncodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		again, _, err := codec.DecodeRequest(enc.Body, dialect.DecodeOptions{Registry: enc.Registry})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(calls(req), calls(again)); diff != "" {
			t.Fatal(diff)
		}
	})
}

// calls lists the calls of a conversation with their results.
func calls(req *dragoman.Request) (out []string) {
	answers := map[string]string{}
	for i := range req.Messages {
		for _, p := range req.Messages[i].Parts {
			if r, ok := p.(*dragoman.ToolResult); ok {
				answers[r.CallID] = string(r.Outcome) + " " + r.Text()
			}
		}
	}
	for i := range req.Messages {
		for _, c := range req.Messages[i].ToolCalls() {
			id := c.ID
			if c.Synthetic {
				id = "" // goes without one
			}
			out = append(out, fmt.Sprintf("%s %s %s: %s", id, c.Name, c.Arguments, answers[c.ID]))
		}
	}
	return out
}

func TestStreamsMeanTheSameHoweverTheyAreCut(t *testing.T) {
	want, err := drain(dialect.DecodeOptions{}, richStream)
	if err != nil {
		t.Fatal(err)
	}
	array := asArray(richStream)
	list, err := drain(dialect.DecodeOptions{}, array)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfN(rapid.IntRange(0, 200), 0, 60).Draw(t, "sizes")
		got, err := drain(dialect.DecodeOptions{}, richStream, sizes...)
		if diff := cmp.Diff(want, got, ignoreSidecars); diff != "" || err != nil {
			t.Fatal(err, diff)
		}
		got, err = drain(dialect.DecodeOptions{}, array, sizes...)
		if diff := cmp.Diff(list, got, ignoreSidecars); diff != "" || err != nil {
			t.Fatal(err, diff)
		}
	})
}
