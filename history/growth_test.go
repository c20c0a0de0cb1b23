package history_test

import (
	"testing"

	"pgregory.net/rapid"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/history"
	"github.com/dragoman-go/dragoman/internal/testkit/gen"
)

// settledAt reports whether the first n messages may be sent, and no later message
// changes them: no call among them is open or gets another result later, and no
// turn is split.
func settledAt(ms []dragoman.Message, n int) bool {
	if n == 0 || n < len(ms) && ms[n].Role == dragoman.RoleAssistant && ms[n-1].Role == dragoman.RoleAssistant {
		return false
	}
	known, open := map[string]bool{}, map[string]bool{}
	for i := range ms {
		for _, p := range ms[i].Parts {
			switch p := p.(type) {
			case *dragoman.ToolCall:
				if p.ID == "" {
					return false
				}
				if i < n {
					known[p.ID], open[p.ID] = true, true
				} else if ms[i].Role == dragoman.RoleAssistant && !p.Hosted && p.Problem == nil && p.Status == "" {
					delete(known, p.ID) // from here on the id belongs to another call
				}
			case *dragoman.ToolResult:
				if p.CallID == "" || i >= n && known[p.CallID] {
					return false
				}
				delete(open, p.CallID)
			}
		}
	}
	return len(open) == 0
}

// Decision 126: when a settled conversation grows, the normalized form of its beginning stays the
// same.
func TestSettledConversationIsStableWhenItGrows(t *testing.T) {
	grew := 0
	rapid.Check(t, func(t *rapid.T) {
		req, o := anyRequest(t), anyTarget(t)
		// The documented exceptions.
		o.Target.Caps.NoPrefill, o.Target.Caps.NoOldReasoning = false, false
		req.PreviousResponseID, req.Extra = "", nil
		n := rapid.IntRange(0, len(req.Messages)).Draw(t, "length before")
		if !settledAt(req.Messages, n) {
			return
		}
		short := *req
		short.Messages = req.Messages[:n]
		before, _, err := history.Normalize(&short, o)
		if err != nil {
			return
		}
		after, _, err := history.Normalize(req, o)
		if err != nil {
			return
		}
		grew++
		k := len(before.Messages)
		if k > 0 && (o.Target.Caps.Alternate || o.Limits.UserFirst && before.Messages[k-1].Text() == "(conversation continues)") {
			k-- // the last may gain parts, and the added opening may be replaced
		}
		if len(after.Messages) < k {
			t.Fatalf("%d messages became %d", k, len(after.Messages))
		}
		if diff := gen.Diff(before.Messages[:k], after.Messages[:k]); diff != "" {
			t.Fatalf("%s\n\n%s\n\n%s", diff, script(before.Messages), script(after.Messages))
		}
	})
	if grew == 0 {
		t.Error("no conversation grew")
	}
}
