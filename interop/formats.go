package interop

import (
	"encoding/json"
	"fmt"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// wire is what the registry needs to know of a dialect: the formats of its
// tool objects.
type wire struct {
	function, freeform, namespace dragoman.Format
	call, textCall                dragoman.Format
	result                        dragoman.Format
}

func wireOf(d dragoman.Dialect) (wire, error) {
	switch d {
	case dragoman.OpenAIChat:
		return wire{
			function: dragoman.FormatChatFunction, freeform: dragoman.FormatChatCustom,
			call: dragoman.FormatChatFunctionCall, textCall: dragoman.FormatChatCustomCall,
			result: dragoman.FormatChatResult,
		}, nil
	case dragoman.OpenAIResponses:
		return wire{
			function: dragoman.FormatResponsesFunction, freeform: dragoman.FormatResponsesCustom,
			namespace: dragoman.FormatResponsesNamespace,
			call:      dragoman.FormatResponsesFunctionCall, textCall: dragoman.FormatResponsesCustomCall,
			result: dragoman.FormatResponsesResult,
		}, nil
	case dragoman.Anthropic:
		return wire{
			function: dragoman.FormatAnthropicTool,
			call:     dragoman.FormatAnthropicToolUse,
			result:   dragoman.FormatAnthropicResult,
		}, nil
	case dragoman.Ollama:
		return wire{function: dragoman.FormatOllamaFunction, call: dragoman.FormatOllamaToolCall, result: dragoman.FormatOllamaResult}, nil
	case dragoman.Gemini:
		return wire{function: dragoman.FormatGeminiFunction, call: dragoman.FormatGeminiFunctionCall, result: dragoman.FormatGeminiResult}, nil
	case dragoman.Bedrock:
		return wire{function: dragoman.FormatBedrockTool, call: dragoman.FormatBedrockToolUse, result: dragoman.FormatBedrockResult}, nil
	default:
		return wire{}, fmt.Errorf("interop: no tool formats are known for dialect %q", d)
	}
}

// builtIns lists the built-in codecs for a registry's listing.
func builtIns() []Entry {
	var es []Entry
	for _, f := range []dragoman.Format{
		dragoman.FormatChatFunction, dragoman.FormatChatCustom, dragoman.FormatResponsesFunction,
		dragoman.FormatResponsesCustom, dragoman.FormatResponsesNamespace, dragoman.FormatAnthropicTool, dragoman.FormatGeminiFunction,
		dragoman.FormatOllamaFunction, dragoman.FormatBedrockTool, dragoman.FormatMCPTool,
	} {
		es = append(es, Entry{What: "schema", From: f}, Entry{What: "schema adapter", To: f})
	}
	for _, f := range []dragoman.Format{
		dragoman.FormatChatFunctionCall, dragoman.FormatChatCustomCall, dragoman.FormatResponsesFunctionCall,
		dragoman.FormatResponsesCustomCall, dragoman.FormatAnthropicToolUse, dragoman.FormatGeminiFunctionCall, dragoman.FormatOllamaToolCall,
		dragoman.FormatBedrockToolUse,
	} {
		es = append(es, Entry{What: "call", From: f}, Entry{What: "call adapter", To: f})
	}
	for _, f := range []dragoman.Format{dragoman.FormatChatResult, dragoman.FormatResponsesResult, dragoman.FormatAnthropicResult, dragoman.FormatGeminiResult, dragoman.FormatOllamaResult, dragoman.FormatBedrockResult} {
		es = append(es, Entry{What: "result", From: f}, Entry{What: "result adapter", To: f})
	}
	return es
}

// typeOf reads the "type" member of an object; empty where there is none.
func typeOf(obj []byte) string { return typeOfValue(jsonwire.Value{Raw: obj}) }

func typeOfValue(obj jsonwire.Value) string {
	r := obj.Reader()
	defer r.Return()
	typ := ""
	if r.Kind() != '{' {
		return ""
	}
	for key := range r.Object() {
		if string(key) == "type" && r.Kind() == '"' {
			typ = r.Among("function", "tool_use", "custom", "function_call")
		} else {
			r.Skip()
		}
	}
	return typ
}

// SchemaFormat names the format of a tool definition of dialect d. A type that
// is not built in is named after the dialect: such a tool is the provider's.
func SchemaFormat(d dragoman.Dialect, obj json.RawMessage) dragoman.Format {
	typ := typeOf(obj)
	switch {
	case d == dragoman.OpenAIChat && (typ == "function" || typ == ""):
		return dragoman.FormatChatFunction
	case d == dragoman.OpenAIChat && typ == "custom":
		return dragoman.FormatChatCustom
	case d == dragoman.OpenAIResponses && (typ == "function" || typ == ""):
		return dragoman.FormatResponsesFunction
	case d == dragoman.OpenAIResponses && typ == "custom":
		return dragoman.FormatResponsesCustom
	case d == dragoman.OpenAIResponses && typ == "namespace":
		return dragoman.FormatResponsesNamespace
	case d == dragoman.Anthropic && (typ == "" || typ == "custom"):
		return dragoman.FormatAnthropicTool
	case d == dragoman.Gemini:
		return geminiSchemaFormat(obj)
	case d == dragoman.Ollama:
		return ollamaSchemaFormat(typ)
	case d == dragoman.Bedrock:
		return bedrockSchemaFormat(obj)
	default:
		return dragoman.Format(string(d) + "." + typ)
	}
}

// CallFormat names the format of a call object of dialect d; a type that is
// not built in is named after the dialect.
func CallFormat(d dragoman.Dialect, obj json.RawMessage) dragoman.Format {
	return callFormat(d, jsonwire.Value{Raw: obj})
}

func callFormat(d dragoman.Dialect, obj jsonwire.Value) dragoman.Format {
	typ := typeOfValue(obj)
	switch {
	case d == dragoman.OpenAIChat && typ == "custom":
		return dragoman.FormatChatCustomCall
	case d == dragoman.OpenAIChat && (typ == "function" || typ == ""):
		return dragoman.FormatChatFunctionCall
	case d == dragoman.OpenAIResponses && typ == "function_call":
		return dragoman.FormatResponsesFunctionCall
	case d == dragoman.OpenAIResponses && typ == "custom_tool_call":
		return dragoman.FormatResponsesCustomCall
	case d == dragoman.Anthropic && typ == "tool_use":
		return dragoman.FormatAnthropicToolUse
	case d == dragoman.Gemini:
		return dragoman.FormatGeminiFunctionCall
	case d == dragoman.Ollama: // its calls have no type (quirk B35)
		return dragoman.FormatOllamaToolCall
	case d == dragoman.Bedrock:
		return bedrockCallFormat(obj.Raw)
	default:
		return dragoman.Format(string(d) + "." + typ)
	}
}

// fail says which format an object was read as.
func fail(f dragoman.Format, err error) error { return fmt.Errorf("interop: %s: %w", f, err) }
