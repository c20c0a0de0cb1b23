package properties_test

import (
	"encoding/json"
	"reflect"
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/testkit/crosstest"
)

// geminiGrowth lists the exceptions of Gemini.
var geminiGrowth = []growthException{
	{
		starts: "the content synthesized to open an empty conversation",
		shows: func() (growth, dialect.EncodeOptions) {
			return growing(1, dragoman.SystemText("s"), dragoman.UserText("q")), dialect.EncodeOptions{}
		},
		forgive: func(s growthStep) growthStep {
			opening := map[string]any{"role": "user", "parts": []any{map[string]any{"text": "(conversation continues)"}}}
			if len(s.short) == 1 && reflect.DeepEqual(fields(s.short[0]), opening) {
				s.short = nil
			}
			return s
		},
	},
	{
		starts: "a late duplicate result",
		shows: func() (growth, dialect.EncodeOptions) {
			return growing(3, dragoman.UserText("q"), crosstest.Message(dragoman.RoleAssistant, callOf("1")), dragoman.ToolResults(resultOf("1", "r")), dragoman.ToolResults(resultOf("1", "late"))), dialect.EncodeOptions{}
		},
		forgive: func(s growthStep) growthStep {
			late := s.lateResults()
			s = s.withoutMediaOf(late)
			return s.forgiveBlocks(func(_ int, was, is json.RawMessage) bool {
				a, b := functionResponse(was), functionResponse(is)
				return late[a["id"]] && a["id"] == b["id"] && a["name"] == b["name"]
			})
		},
	},
}

// lateResults returns the ids of the results that this step added. The key nil means calls
// with synthesized ids, which are not on the wire (quirk B15).
func (s growthStep) lateResults() map[any]bool {
	made := map[string]bool{}
	late := map[any]bool{}
	for i, m := range s.req.Messages {
		for _, p := range m.Parts {
			switch p := p.(type) {
			case *dragoman.ToolCall:
				made[p.ID] = p.Synthetic
			case *dragoman.ToolResult:
				if i < s.n {
					continue
				}
				if late[p.CallID] = true; made[p.CallID] {
					late[nil] = true
				}
			}
		}
	}
	return late
}

// withoutMediaOf removes the media that follow tool results from the previously last
// element, if one of its results came late: a late result precedes the media, and
// the wire does not show which result they belong to.
func (s growthStep) withoutMediaOf(late map[any]bool) growthStep {
	n := len(s.short) - 1
	if n < 0 || n >= len(s.long) {
		return s
	}
	hasLate := slices.ContainsFunc(messageOf(s.long[n]).Content, func(b json.RawMessage) bool {
		res := functionResponse(b)
		return res != nil && late[res["id"]]
	})
	if !hasLate {
		return s
	}
	without := func(els []json.RawMessage) []json.RawMessage {
		var kept []json.RawMessage
		afterResult := false
		for _, b := range messageOf(els[n]).Content {
			if functionResponse(b) != nil {
				afterResult = true
			} else if m := fields(b); m["fileData"] == nil && m["inlineData"] == nil {
				afterResult = false
			} else if afterResult {
				continue
			}
			kept = append(kept, b)
		}
		els = slices.Clone(els)
		els[n] = withBlocks(els[n], kept)
		return els
	}
	s.short, s.long = without(s.short), without(s.long)
	return s
}

func functionResponse(part json.RawMessage) map[string]any {
	res, _ := fields(part)["functionResponse"].(map[string]any)
	return res
}
