package gemini_test

import (
	"fmt"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/oracle/rulecheck"
	"github.com/dragoman-go/dragoman/internal/testkit/codectest"
	"pgregory.net/rapid"
)

func drawRequest(t *rapid.T) *dragoman.Request {
	return codectest.Draw{Own: ownOrigin, Foreign: foreignOrigin, Done: codes.OutcomeOK, Synthetic: true}.Request(t, *requestOf())
}

func TestEncodingIsDeterministic(t *testing.T) {
	codectest.Deterministic(t, codec, dialect.EncodeOptions{}, drawRequest)
}

// Prompt caches depend on it: content that was sent once is sent again byte for
// byte.
func TestAppendingKeepsEarlierContents(t *testing.T) {
	codectest.CheckGrowth(t, codec, dialect.EncodeOptions{}, drawRequest, codectest.Growth{
		List: "contents", Settled: codectest.OutsideTurns,
		Last: func(_ dragoman.Role, was, is string) bool { return codectest.Appended(was, is) },
	})
}

// Every turn of calls is answered in the next content, once per call and in
// order. Consecutive contents never have the same role.
func TestAnyConversationEncodesToValidRequest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		req := drawRequest(t)
		enc, err := codec.EncodeRequest(req, dialect.EncodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if bad := rulecheck.Request(dialectname.Gemini, enc.Body, rulecheck.Options{NoSignatures: true}); len(bad) > 0 {
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
				t.Fatalf("content %d has role %s after %s\n%s", i, role, before, enc.Body)
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

// originated reports whether this dialect made a call with the same name and
// arguments.
func originated(req *dragoman.Request, c *dragoman.ToolCall) bool {
	for i := range req.Messages {
		if m := &req.Messages[i]; m.Origin == ownOrigin {
			for _, k := range m.ToolCalls() {
				if k.Name == c.Name && k.Arguments == c.Arguments {
					return true
				}
			}
		}
	}
	return false
}

func TestRoundTripKeepsCallsAndResults(t *testing.T) {
	codectest.KeepsMeaning(t, codec, drawRequest, calls, nil)
}

// calls lists the calls of a conversation with their results.
func calls(req *dragoman.Request) (out []string) {
	results := map[string]string{}
	for i := range req.Messages {
		for _, p := range req.Messages[i].Parts {
			if r, ok := p.(*dragoman.ToolResult); ok {
				results[r.CallID] = r.Outcome + " " + r.Text()
			}
		}
	}
	for i := range req.Messages {
		for _, c := range req.Messages[i].ToolCalls() {
			id := c.ID
			if c.Synthetic {
				id = "" // written without an id
			}
			out = append(out, fmt.Sprintf("%s %s %s: %s", id, c.Name, c.Arguments, results[c.ID]))
		}
	}
	return out
}

func TestStreamChunkingDoesNotMatter(t *testing.T) {
	codectest.ReChunked(t, codec, richStream)
	codectest.ReChunked(t, codec, asArray(richStream))
}
