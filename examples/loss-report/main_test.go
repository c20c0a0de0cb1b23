package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	var first, second bytes.Buffer
	if err := run(&first); err != nil {
		t.Fatal(err)
	}
	if err := run(&second); err != nil {
		t.Fatal(err)
	}
	if first.String() != second.String() {
		t.Error("two runs print different output")
	}

	// Each step with the text that it must print, in order.
	out := first.String()
	for _, want := range []string{
		"--- The request, as anthropic.messages", `"tool_use_id": "toolu_01"`, "Nothing was lost.",
		"--- The same request, as openai.chat_completions",
		`"tool_call_id": "toolu_01"`, "ERROR: no such city: Olso", "/sampling/top_k",
		"--- And as openai.responses",
		`"type": "function_call_output"`, "/sampling/top_k",
		"--- The response, streamed as anthropic.messages",
		"event: message_start", `"call_7Kd2"`, "input_json_delta", `"stop_reason":"tool_use"`, "event: message_stop",
		`Ready to run: get_weather({"city":"Oslo"}), call call_7Kd2, stop reason tool_calls.`,
	} {
		_, rest, ok := strings.Cut(out, want)
		if !ok {
			t.Fatalf("%q is missing from what follows in\n%s", want, first.String())
		}
		out = rest
	}
}
