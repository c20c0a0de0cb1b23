package dialect_test

import "strings"

// specException is a place in which an official document is wrong or behind.
type specException struct {
	api   string
	field string // names the exception
	// holds reports whether a violation is this exception.
	holds    func(v violation) bool
	reason   string
	evidence string
}

// specExceptions is the checked list: a violation without an entry fails the
// test, and so does an entry without a violation.
var specExceptions = []specException{
	{
		api: "openai_responses", field: "output_text in the easy form of an assistant message",
		holds: func(v violation) bool {
			return v.path == "/input/*/content/*/type" && (v.value == "output_text" || v.value == "refusal")
		},
		reason:   "the document lists only input parts for the easy form; the API rejects those in an assistant message and takes output_text and refusal",
		evidence: "wire/openai.md 4.3 and 4.4: error text \"Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'.\"; Codex CLI sends it (recorded/agents)",
	},
	{
		api: "openai_responses", field: "refusal in the easy form of an assistant message",
		holds: func(v violation) bool {
			return v.path == "/input/*/content/*" && obj(v.value)["type"] == "refusal" && obj(v.value)["refusal"] != nil
		},
		reason:   "as above: a refusal part has no text but a refusal",
		evidence: "wire/openai.md 4.3",
	},
	{
		api: "anthropic_messages", field: "file source of an image or document",
		holds: func(v violation) bool {
			source := obj(v.value)
			return strings.HasSuffix(v.path, "/source") && len(source) == 2 && source["type"] == "file" && source["file_id"] != nil ||
				strings.HasSuffix(v.path, "/source/type") && v.value == "file"
		},
		reason:   "the document of August knows files only in its beta; they are general since",
		evidence: "wire/anthropic_gemini_ollama_bedrock.md 1.3: source {type:\"file\",file_id} in SDK 1.8.0 of November",
	},
}

// invalidAtSource are recorded requests that no conversion makes valid.
var invalidAtSource = map[string]string{
	"0xPlaygrounds/rig:tests/cassettes/doubleword/error_matrix/invalid_temperature_blocking.yaml#0":                          "temperature 100; the server answered 400",
	"0xPlaygrounds/rig:tests/cassettes/doubleword/error_matrix/invalid_temperature_streaming.yaml#0":                         "temperature 100; the server answered 400",
	"0xPlaygrounds/rig:tests/cassettes/openai/error_identity_edge/chat_completions_validation_error_carries_identity.yaml#0": "temperature 99; the server answered 400",
	"envoyproxy/ai-gateway:tests/internal/testopenai/cassettes/chat-bad-request.yaml#0":                                      "temperature -0.5; the server answered 400",
	"0xPlaygrounds/rig:tests/cassettes/anthropic/error_identity_edge/validation_error_carries_identity.yaml#0":               "temperature -5; the server answered 400",
	"langchain-ai/langchain:libs/partners/openai/tests/cassettes/test_mcp_builtin.yaml.gz#1":                                 "its only input approves an MCP call, which no other API has",
}

func exceptionFor(api string, v violation) string {
	for _, e := range specExceptions {
		if e.api == api && e.holds(v) {
			return e.field
		}
	}
	return ""
}
