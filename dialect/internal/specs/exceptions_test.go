package specs_test

import (
	"slices"
	"strings"

	"github.com/dragoman-go/dragoman/internal/testkit/traffic"
)

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
			return v.path == "/input/*/content/*" && traffic.Object(v.value)["type"] == "refusal" && traffic.Object(v.value)["refusal"] != nil
		},
		reason:   "as above: a refusal part has no text but a refusal",
		evidence: "wire/openai.md 4.3",
	},
	{
		api: "anthropic_messages", field: "file source of an image or document",
		holds: func(v violation) bool {
			source := traffic.Object(v.value)
			return strings.HasSuffix(v.path, "/source") && len(source) == 2 && source["type"] == "file" && source["file_id"] != nil ||
				strings.HasSuffix(v.path, "/source/type") && v.value == "file"
		},
		reason:   "the document of August knows files only in its beta; they are general since",
		evidence: "wire/anthropic_gemini_ollama_bedrock.md 1.3: source {type:\"file\",file_id} in SDK 1.8.0 of November",
	},
	{
		api: "gemini_generateContent", field: "media of a function response that is a URL",
		holds: func(v violation) bool {
			return v.path == "/contents/*/parts/*/functionResponse/parts/*" && unknownMembers(v, "fileData")
		},
		reason:   "the document of April knows content only; models since Gemini 3 take either",
		evidence: "wire/anthropic_gemini_ollama_bedrock.md 2.3: functionResponse.parts (inlineData/fileData)",
	},
	{
		api: "ollama_chat", field: "id of a call",
		holds: func(v violation) bool {
			return v.path == "/messages/*/tool_calls/*" && unknownMembers(v, "id")
		},
		reason:   "the document forgets it; the server makes ids and reads them back",
		evidence: "wire/anthropic_gemini_ollama_bedrock.md 3.2 and 3.3; answers of a live server have it (recorded/live_ollama.jsonl)",
	},
	{
		api: "ollama_chat", field: "thinking of an assistant message",
		holds: func(v violation) bool {
			return v.path == "/messages/*" && traffic.Object(v.value)["role"] == "assistant" && unknownMembers(v, "thinking")
		},
		reason:   "the document has it in answers only; the server reads it in requests too",
		evidence: "wire/anthropic_gemini_ollama_bedrock.md 3.2",
	},
	{
		api: "ollama_chat", field: "tool name and call id of a result",
		holds: func(v violation) bool {
			return v.path == "/messages/*" && traffic.Object(v.value)["role"] == "tool" && unknownMembers(v, "tool_name", "tool_call_id")
		},
		reason:   "the document forgets them; most templates use the name",
		evidence: "wire/anthropic_gemini_ollama_bedrock.md 3.2: send tool_name and tool_call_id",
	},
}

// unknownMembers reports whether a schema objects to these members and to no
// others.
func unknownMembers(v violation, names ...string) bool {
	rest, ok := strings.CutPrefix(v.rule, "additional properties ")
	if !ok {
		return false
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(rest, " not allowed"), ", ") {
		if !slices.Contains(names, strings.Trim(name, "'")) {
			return false
		}
	}
	return true
}

// invalidAtSource are recorded requests that no conversion makes valid.
var invalidAtSource = map[string]string{
	"0xPlaygrounds/rig:tests/cassettes/doubleword/error_matrix/invalid_temperature_blocking.yaml#0":                          "temperature 100; the server answered 400",
	"0xPlaygrounds/rig:tests/cassettes/doubleword/error_matrix/invalid_temperature_streaming.yaml#0":                         "temperature 100; the server answered 400",
	"0xPlaygrounds/rig:tests/cassettes/openai/error_identity_edge/chat_completions_validation_error_carries_identity.yaml#0": "temperature 99; the server answered 400",
	"envoyproxy/ai-gateway:tests/internal/testopenai/cassettes/chat-bad-request.yaml#0":                                      "temperature -0.5; the server answered 400",
	"0xPlaygrounds/rig:tests/cassettes/anthropic/error_identity_edge/validation_error_carries_identity.yaml#0":               "temperature -5; the server answered 400",

	"0xPlaygrounds/rig:tests/cassettes/llamacpp/multimodal_matrix/malformed_data_uri.yaml#0": "an image that is not Base64; the server answered 400",
	"docker/docker-agent:e2e/testdata/cassettes/TestExec_Gemini_ToolCall.yaml#1":             "its result gives the id of a call for the name of the tool",
}

func exceptionFor(api string, v violation) string {
	for _, e := range specExceptions {
		if e.api == api && e.holds(v) {
			return e.field
		}
	}
	return ""
}
