package dialect_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
)

// geminiStreamOf writes events as the API sends them: each is a whole response
// with the next pieces of its candidate. Texts and thoughts come in fragments,
// a signature with the last of them; every other part comes whole. The model
// and the id are told each time, the finish with the last.
func geminiStreamOf(t *testing.T, resp []byte) []byte {
	t.Helper()
	var r map[string]json.RawMessage
	var candidates []struct {
		Content      struct{ Parts []map[string]json.RawMessage }
		FinishReason string
	}
	parse(t, resp, &r)
	parse(t, r["candidates"], &candidates)
	var b bytes.Buffer
	event := func(candidate map[string]any, usage json.RawMessage) {
		candidate["index"] = 0
		fmt.Fprintf(&b, "data: %s\n\n", js(map[string]any{
			"candidates": []any{candidate}, "usageMetadata": usage, "modelVersion": r["modelVersion"], "responseId": r["responseId"],
		}))
	}
	part := func(p map[string]json.RawMessage) {
		event(map[string]any{"content": map[string]any{"role": "model", "parts": []any{p}}}, json.RawMessage(`{"promptTokenCount":30,"totalTokenCount":30}`))
	}
	for _, p := range candidates[0].Content.Parts {
		if p["text"] == nil {
			part(p)
			continue
		}
		var text string
		parse(t, p["text"], &text)
		pieces := halves(text)
		for i, h := range pieces {
			piece := maps.Clone(p)
			piece["text"] = json.RawMessage(js(h))
			if i < len(pieces)-1 {
				delete(piece, "thoughtSignature")
			}
			part(piece)
		}
	}
	event(map[string]any{"content": map[string]any{"role": "model", "parts": []any{map[string]any{"text": ""}}}, "finishReason": candidates[0].FinishReason}, r["usageMetadata"])
	return b.Bytes()
}

// geminiGrowth are the exceptions of Gemini.
var geminiGrowth = []growthException{
	{
		starts: "the content that opens a conversation without any",
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
			return talk(3, dragoman.UserText("q"), says(dragoman.RoleAssistant, callOf("1")), dragoman.ToolResults(resultOf("1", "r")), dragoman.ToolResults(resultOf("1", "late"))), dialect.EncodeOptions{}
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
