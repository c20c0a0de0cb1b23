package crosstest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"testing"
)

// geminiStreamOf writes events as the API sends them: each is a whole response with the
// next parts of its candidate. Text and thoughts come in fragments, a signature with
// the last of them; other parts come whole. Every event has the model and the id, the
// last has the finish reason.
func geminiStreamOf(t *testing.T, resp []byte) []byte {
	t.Helper()
	var r map[string]json.RawMessage
	var candidates []struct {
		Content      struct{ Parts []map[string]json.RawMessage }
		FinishReason string
	}
	Parse(t, resp, &r)
	Parse(t, r["candidates"], &candidates)
	var b bytes.Buffer
	event := func(candidate map[string]any, usage json.RawMessage) {
		candidate["index"] = 0
		fmt.Fprintf(&b, "data: %s\n\n", JSON(map[string]any{
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
		Parse(t, p["text"], &text)
		pieces := splitInTwo(text)
		for i, h := range pieces {
			piece := maps.Clone(p)
			piece["text"] = json.RawMessage(JSON(h))
			if i < len(pieces)-1 {
				delete(piece, "thoughtSignature")
			}
			part(piece)
		}
	}
	event(map[string]any{"content": map[string]any{"role": "model", "parts": []any{map[string]any{"text": ""}}}, "finishReason": candidates[0].FinishReason}, r["usageMetadata"])
	return b.Bytes()
}
