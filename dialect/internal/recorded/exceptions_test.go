package recorded_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/dragoman-go/dragoman/internal/testkit/traffic"
)

// Exchanges that cannot be decoded, and why.
var (
	undecodableRequests = map[string]map[string]string{
		"openai_chat": {
			"0xPlaygrounds/rig:tests/cassettes/llamacpp/error_matrix/malformed_request_field.yaml#0": `temperature is the string "hot"; the server returned 400`,
		},
	}
	undecodableResponses = map[string]map[string]string{
		"bedrock_converse": {
			"vercel/ai:packages/amazon-bedrock/src/reranking/__fixtures__/amazon-bedrock-reranking.1.json#0": "a response of another API, which ranks documents",
		},
	}
	undecodableStreams = map[string]map[string]string{
		"openai_responses": {
			"vercel/ai:packages/openai/src/responses/__fixtures__/parallel-tool-call-wrapper.1.chunks.txt#0": "a fixture written by hand: the JSON of its first event lacks the last brace",
		},
		"anthropic_messages": {
			"vercel/ai:packages/anthropic/src/__fixtures__/spliced-message-start.chunks.txt#0": "two responses spliced together on purpose: a second message with another id starts inside the first (quirk C37)",
		},
	}
	// incompleteResponses are not passed through unchanged: the server marks a
	// truncated call as complete, and a client would run it.
	incompleteResponses = map[string]map[string]string{
		"openai_chat": {
			"0xPlaygrounds/rig:tests/cassettes/openrouter/tool_truncation_contract_matrix/blocking_gpt41_low_agent.yaml#0": "OpenRouter marks arguments that the output limit truncated as complete; they are written as incomplete (quirk B9)",
			"0xPlaygrounds/rig:tests/cassettes/openrouter/tool_truncation_contract_matrix/blocking_gpt41_mid_agent.yaml#0": "OpenRouter marks arguments that the output limit truncated as complete; they are written as incomplete (quirk B9)",
			"0xPlaygrounds/rig:tests/cassettes/openrouter/tool_truncation_contract_matrix/blocking_gpt4o_low_agent.yaml#0": "OpenRouter marks arguments that the output limit truncated as complete; they are written as incomplete (quirk B9)",
			"0xPlaygrounds/rig:tests/cassettes/openrouter/tool_truncation_contract_matrix/blocking_gpt4o_mid_agent.yaml#0": "OpenRouter marks arguments that the output limit truncated as complete; they are written as incomplete (quirk B9)",
		},
	}
	// revisedStreams end a part with a text that differs from its deltas.
	revisedStreams = map[string]map[string]string{
		"openai_responses": {
			"vercel/ai:packages/openai/src/responses/__fixtures__/openai-shell-container.1.chunks.txt#0": "a fixture edited by hand: output_text.done has more text than the deltas; the done event counts",
		},
	}
)

// requestExplanations justifies the differences of a request that is rebuilt
// from the canonical model. The meaning is the same in every case.
var requestExplanations = map[string][]explanation{
	"openai_chat": {
		{"shorthand: a list of one text part is written as its string", func(d difference) bool {
			parts := traffic.List(d.was)
			if d.path != "/messages/*/content" || len(parts) != 1 {
				return false
			}
			p := traffic.Object(parts[0])
			return len(p) == 2 && p["type"] == "text" && p["text"] == d.is
		}},
		{"default written out: the absent content of a message with calls is null", func(d difference) bool {
			return d.path == "/messages/*/content" && d.was == absent && d.is == nil
		}},
		{"legacy lifted: functions are tools", func(d difference) bool {
			functions, ok1 := d.at("/functions")
			tools, ok2 := d.at("/tools")
			if !ok1 || !ok2 || d.path != "/functions" && d.path != "/tools" {
				return false
			}
			var lifted []any
			for _, f := range traffic.List(functions.was) {
				lifted = append(lifted, map[string]any{"type": "function", "function": f})
			}
			return functions.is == absent && tools.was == absent && traffic.JSONText(lifted) == traffic.JSONText(tools.is)
		}},
		{"legacy lifted: function_call is tool_choice", func(d difference) bool {
			return d.path == "/function_call" && d.was == "auto" && d.is == absent || d.path == "/tool_choice" && d.was == absent && d.is == "auto"
		}},
		{"invalid arguments are sanitized: history gets {} (decision 34)", func(d difference) bool {
			args := traffic.Text(d.was)
			return strings.HasSuffix(d.path, "/function/arguments") && d.is == "{}" && !blank(args) && !json.Valid([]byte(args))
		}},
		{"a null tool choice is omitted without tools, because the API refuses it there", func(d difference) bool {
			return d.path == "/tool_choice" && d.was == nil && d.is == absent
		}},
		{"empty arguments are written as {}", func(d difference) bool {
			return strings.HasSuffix(d.path, "/function/arguments") && blank(traffic.Text(d.was)) && d.is == "{}"
		}},
		{"moved: the image of a tool message follows in a user message, because the API takes only text there", imageMoved},
	},
	"openai_responses": {
		{"shorthand expanded: input text is a user message", func(d difference) bool {
			text, ok := d.was.(string)
			message := map[string]any{"type": "message", "role": "user", "content": textBlocks("input_text", text)}
			return ok && d.path == "/input" && same(d.is, []any{message})
		}},
		{"shorthand expanded: content text is a list of one part", func(d difference) bool {
			text, ok := d.was.(string)
			return ok && d.path == "/input/*/content" && (same(d.is, textBlocks("input_text", text)) || same(d.is, textBlocks("output_text", text)))
		}},
		{"default written out: the type of a message", func(d difference) bool {
			return d.path == "/input/*/type" && d.was == absent && d.is == "message"
		}},
		{"default written out: the detail of an image, which the official schema requires", func(d difference) bool {
			return (d.path == "/input/*/content/*/detail" || d.path == "/input/*/output/*/detail") && d.was == absent && d.is == "auto"
		}},
	},
	"anthropic_messages": {
		{"shorthand expanded: text is a list of one block", func(d difference) bool {
			text, ok := d.was.(string)
			return ok && (d.path == "/messages/*/content" || d.path == "/messages/*/content/*/content" || d.path == "/system") && same(d.is, textBlocks("text", text))
		}},
		{"joined: consecutive messages of one role are one turn, as in the API", func(d difference) bool {
			return d.path == "/messages" && same(d.is, joinedTurns(traffic.List(d.was)))
		}},
		{"moved: text after a call goes before it, because the API refuses anything after a call (it returned 400)", func(d difference) bool {
			return d.path == "/messages" && same(d.is, callsLast(joinedTurns(traffic.List(d.was))))
		}},
		{"legacy lifted: output_format is output_config.format", func(d difference) bool {
			old, ok1 := d.at("/output_format")
			now, ok2 := d.at("/output_config")
			return ok1 && ok2 && (d.path == "/output_format" || d.path == "/output_config") && same(traffic.Object(now.is)["format"], old.was) && len(traffic.Object(now.is)) == 1
		}},
	},
}

func textBlocks(typ, text string) []any {
	return []any{map[string]any{"type": typ, "text": text}}
}

func same(a, b any) bool { return traffic.JSONText(a) == traffic.JSONText(b) }

// callsLast moves the calls of each message after its other blocks.
func callsLast(ms []any) []any {
	for _, m := range ms {
		var calls, others []any
		for _, b := range traffic.List(traffic.Object(m)["content"]) {
			if traffic.Object(b)["type"] == "tool_use" {
				calls = append(calls, b)
			} else {
				others = append(others, b)
			}
		}
		traffic.Object(m)["content"] = append(others, calls...)
	}
	return ms
}

// joinedTurns joins consecutive messages of one role and expands the
// shorthands in them.
func joinedTurns(ms []any) []any {
	var out []any
	for _, v := range ms {
		m := traffic.Object(v)
		content, ok := m["content"].([]any)
		if text, plain := m["content"].(string); plain {
			content = textBlocks("text", text)
		} else if !ok {
			return nil
		}
		content = slices.Clone(content)
		for i, b := range content {
			if text, plain := traffic.Object(b)["content"].(string); plain {
				expanded := maps.Clone(traffic.Object(b))
				expanded["content"] = textBlocks("text", text)
				content[i] = expanded
			}
		}
		if n := len(out); n > 0 && traffic.Object(out[n-1])["role"] == m["role"] {
			last := traffic.Object(out[n-1])
			last["content"] = slices.Concat(traffic.List(last["content"]), content)
			continue
		}
		out = append(out, map[string]any{"role": m["role"], "content": content})
	}
	return out
}

// imageMoved reports whether the lists of messages differ only in the images
// of tool messages, which moved to a user message after them.
func imageMoved(d difference) bool {
	if d.path != "/messages" {
		return false
	}
	images := func(ms []any, role string) (out []string) {
		for _, m := range ms {
			if traffic.Object(m)["role"] != role {
				continue
			}
			for _, p := range traffic.List(traffic.Object(m)["content"]) {
				if traffic.Object(p)["type"] == "image_url" {
					out = append(out, traffic.JSONText(p))
				}
			}
		}
		return out
	}
	was, is := traffic.List(d.was), traffic.List(d.is)
	moved := images(was, "tool")
	return len(moved) > 0 && images(is, "tool") == nil && len(is) == len(was)+1 &&
		slices.Equal(slices.Sorted(slices.Values(images(is, "user"))), slices.Sorted(slices.Values(append(moved, images(was, "user")...))))
}

// Explanations for the differences of a response that is rebuilt from the canonical model.
var (
	responseExplanations = map[string][]meaningExplanation{
		"openai_chat":      {legacyID, wholeUsage, cutArguments},
		"openai_responses": {zeroDetails},
	}
	streamExplanations = map[string][]meaningExplanation{
		"openai_chat":      {emptyArguments, missingStopReason, wholeUsage, cutArguments},
		"openai_responses": {rotatedID},

		"gemini_generateContent": {generatedID, emptyArguments},
		"bedrock_converse":       {zeroUsage, emptyArguments},
	}
	collectedExplanations = map[string][]meaningExplanation{
		"openai_chat": {emptyArguments, missingStopReason, wholeUsage, cutArguments},

		"gemini_generateContent": {generatedID, emptyArguments},
		"bedrock_converse":       {zeroUsage, emptyArguments},
	}
)

var (
	legacyID = meaningExplanation{"a call without an id gets one", func(c change) bool {
		return strings.HasPrefix(c.line, `call id: want "", got "call_`)
	}}
	emptyArguments = meaningExplanation{"empty arguments are written as {}", func(c change) bool {
		return c.line == `call arguments: want "", got "{}"` || c.line == `call arguments: want "null", got "{}"`
	}}
	rotatedID = meaningExplanation{"a proxy changed the id in the last event; the first id is written everywhere", func(c change) bool {
		return strings.HasPrefix(c.line, "id: ") && c.want.FirstID != "" && c.got.ID == c.want.FirstID
	}}
	zeroDetails = meaningExplanation{"unreported usage details are written as 0, because clients require them", func(c change) bool {
		if !strings.HasPrefix(c.line, "usage: ") || len(c.want.Usage) == 0 {
			return false
		}
		for name, n := range c.got.Usage {
			if w, known := c.want.Usage[name]; w != n || !known && (name == "input" || name == "output") {
				return false
			}
		}
		return true
	}}
	generatedID = meaningExplanation{"a response without an id gets one, because clients require it", func(c change) bool {
		return strings.HasPrefix(c.line, `id: want "", got `) && c.got.ID != ""
	}}
	zeroUsage = meaningExplanation{"unreported usage is written as 0, because clients require it", func(c change) bool {
		return c.line == `usage: want "map[]", got "map[input:0 output:0]"`
	}}
	wholeUsage = meaningExplanation{"reasoning tokens above the output count are written as the output count", func(c change) bool {
		want := maps.Clone(c.want.Usage)
		if !strings.HasPrefix(c.line, "usage: ") || want["reasoning"] <= want["output"] {
			return false
		}
		want["reasoning"] = want["output"]
		return maps.Equal(want, c.got.Usage)
	}}
	cutArguments = meaningExplanation{"arguments that are not JSON do not end as tool calls (quirk B9)", func(c change) bool {
		if c.line != `stop: want "tool_calls", got "content_filter"` && c.line != `stop word: want "tool_calls", got "content_filter"` {
			return false
		}
		for _, choice := range c.want.Choices {
			for _, call := range choice.Calls {
				if !json.Valid([]byte(call.Args)) {
					return true
				}
			}
		}
		return false
	}}
	missingStopReason = meaningExplanation{"a missing finish reason is written out", func(c change) bool {
		return c.line == `stop word: want "", got "tool_calls"`
	}}
)
