package properties_test

import (
	"encoding/json"
	"reflect"
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/testkit/crosstest"
)

// geminiGrowth are the exceptions of Gemini.
var geminiGrowth = []growthException{
	{
		starts: "the content synthesized to open an empty conversation",
		shows: func() (growth, dialect.EncodeOptions) {
			return talk(1, dragoman.SystemText("s"), dragoman.UserText("q")), dialect.EncodeOptions{}
		},
		forgive: func(s growthStep) growthStep {
			opening := map[string]any{"role": "user", "parts": []any{map[string]any{"text": "(conversation continues)"}}}
			if len(s.short) == 1 && reflect.DeepEqual(members(s.short[0]), opening) {
				s.short = nil
			}
			return s
		},
	},
	{
		starts: "a late duplicate result",
		shows: func() (growth, dialect.EncodeOptions) {
			return talk(3, dragoman.UserText("q"), crosstest.Says(dragoman.RoleAssistant, callOf("1")), dragoman.ToolResults(resultOf("1", "r")), dragoman.ToolResults(resultOf("1", "late"))), dialect.EncodeOptions{}
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

// lateResults are the ids of the results that came with this step; nil stands
// for those of calls whose ids we made, which are not on the wire (quirk B15).
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

// withoutMediaOf takes the media that stand behind results, of which they are a
// part, out of the element that was the last, where one of its results came late:
// it stands before them, and which media are whose is not on the wire.
func (s growthStep) withoutMediaOf(late map[any]bool) growthStep {
	n := len(s.short) - 1
	if n < 0 || n >= len(s.long) {
		return s
	}
	came := slices.ContainsFunc(messageOf(s.long[n]).Content, func(b json.RawMessage) bool {
		res := functionResponse(b)
		return res != nil && late[res["id"]]
	})
	if !came {
		return s
	}
	without := func(els []json.RawMessage) []json.RawMessage {
		var kept []json.RawMessage
		behind := false
		for _, b := range messageOf(els[n]).Content {
			if functionResponse(b) != nil {
				behind = true
			} else if m := members(b); m["fileData"] == nil && m["inlineData"] == nil {
				behind = false
			} else if behind {
				continue
			}
			kept = append(kept, b)
		}
		els = slices.Clone(els)
		els[n] = holding(els[n], kept)
		return els
	}
	s.short, s.long = without(s.short), without(s.long)
	return s
}

func functionResponse(part json.RawMessage) map[string]any {
	res, _ := members(part)["functionResponse"].(map[string]any)
	return res
}
