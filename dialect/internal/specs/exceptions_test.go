package specs_test

import (
	"slices"
	"strings"

	"github.com/dragoman-go/dragoman/internal/testkit/traffic"
)

// specException is a place where an official document is wrong or outdated.
type specException struct {
	api   string
	field string // name of the exception
	// holds reports whether the exception covers a violation.
	holds    func(v violation) bool
	reason   string
	evidence string
}

// specExceptions is a checked list: a violation without an entry fails the
// test, as does an entry without a violation.
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
		reason:   "the August document has files only in beta; they are generally available since",
		evidence: "wire/anthropic_gemini_ollama_bedrock.md 1.3: source {type:\"file\",file_id} in SDK 1.8.0 (November)",
	},
	{
		api: "gemini_generateContent", field: "media of a function response that is a URL",
		holds: func(v violation) bool {
			return v.path == "/contents/*/parts/*/functionResponse/parts/*" && unknownFields(v, "fileData")
		},
		reason:   "the April document has only content; models since Gemini 3 accept both",
		evidence: "wire/anthropic_gemini_ollama_bedrock.md 2.3: functionResponse.parts (inlineData/fileData)",
	},
	{
		api: "ollama_chat", field: "id of a call",
		holds: func(v violation) bool {
			return v.path == "/messages/*/tool_calls/*" && unknownFields(v, "id")
		},
		reason:   "the document omits it; the server creates ids and reads them back",
		evidence: "wire/anthropic_gemini_ollama_bedrock.md 3.2 and 3.3; responses of a live server have it (recorded/live_ollama.jsonl)",
	},
	{
		api: "ollama_chat", field: "thinking of an assistant message",
		holds: func(v violation) bool {
			return v.path == "/messages/*" && traffic.Object(v.value)["role"] == "assistant" && unknownFields(v, "thinking")
		},
		reason:   "the document has it only in responses; the server reads it in requests too",
		evidence: "wire/anthropic_gemini_ollama_bedrock.md 3.2",
	},
	{
		api: "ollama_chat", field: "tool name and call id of a result",
		holds: func(v violation) bool {
			return v.path == "/messages/*" && traffic.Object(v.value)["role"] == "tool" && unknownFields(v, "tool_name", "tool_call_id")
		},
		reason:   "the document omits them; most templates use the name",
		evidence: "wire/anthropic_gemini_ollama_bedrock.md 3.2: send tool_name and tool_call_id",
	},
}

// unknownFields reports whether v objects to exactly these fields.
func unknownFields(v violation, names ...string) bool {
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

// invalidAtSource lists recorded requests that no conversion can make valid.
var invalidAtSource = map[string]string{
	"0xPlaygrounds/rig:tests/cassettes/doubleword/error_matrix/invalid_temperature_blocking.yaml#0":                          "temperature 100; the server returned 400",
	"0xPlaygrounds/rig:tests/cassettes/doubleword/error_matrix/invalid_temperature_streaming.yaml#0":                         "temperature 100; the server returned 400",
	"0xPlaygrounds/rig:tests/cassettes/openai/error_identity_edge/chat_completions_validation_error_carries_identity.yaml#0": "temperature 99; the server returned 400",
	"envoyproxy/ai-gateway:tests/internal/testopenai/cassettes/chat-bad-request.yaml#0":                                      "temperature -0.5; the server returned 400",
	"0xPlaygrounds/rig:tests/cassettes/anthropic/error_identity_edge/validation_error_carries_identity.yaml#0":               "temperature -5; the server returned 400",

	"0xPlaygrounds/rig:tests/cassettes/llamacpp/multimodal_matrix/malformed_data_uri.yaml#0": "an image that is not Base64; the server returned 400",
	"docker/docker-agent:e2e/testdata/cassettes/TestExec_Gemini_ToolCall.yaml#1":             "its result has the call id in place of the tool name",
}

func exceptionFor(api string, v violation) string {
	for _, e := range specExceptions {
		if e.api == api && e.holds(v) {
			return e.field
		}
	}
	return ""
}
