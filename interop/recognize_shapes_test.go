package interop_test

import (
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect/all"
	"github.com/dragoman-go/dragoman/internal/codec/toolformat"
	"github.com/dragoman-go/dragoman/interop"
)

// A call is recognized as the object of its dialect, within its outer object, and as its inner
// object.
func TestCallsAreRecognizedAroundAndInside(t *testing.T) {
	for _, tc := range []struct {
		name, obj string
		want      dragoman.Format
		id, sign  string
	}{
		{"Gemini call", `{"name":"f","args":{"a":1}}`, toolformat.GeminiFunctionCall, "", ""},
		{"Gemini part", `{"functionCall":{"id":"c1","name":"f","args":{"a":1}}}`, toolformat.GeminiFunctionCall, "c1", ""},
		{"Gemini part with a signature", `{"functionCall":{"name":"f","args":{"a":1}},"thoughtSignature":"c2ln"}`, toolformat.GeminiFunctionCall, "", "c2ln"},
		{"Gemini part in snake case", `{"function_call":{"name":"f","args":{"a":1}},"thought_signature":"c2ln"}`, toolformat.GeminiFunctionCall, "", "c2ln"},
		{"Bedrock block", `{"toolUse":{"toolUseId":"c1","name":"f","input":{"a":1}}}`, toolformat.BedrockToolUse, "c1", ""},
		{"Bedrock toolUse", `{"toolUseId":"c1","name":"f","input":{"a":1}}`, toolformat.BedrockToolUse, "c1", ""},
		{"Chat call", `{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}`, toolformat.ChatFunctionCall, "c1", ""},
		{"Chat function", `{"name":"f","arguments":"{\"a\":1}"}`, toolformat.ChatFunctionCall, "", ""},
		{"Ollama call", `{"function":{"name":"f","arguments":{"a":1}}}`, toolformat.OllamaToolCall, "", ""},
		{"Ollama function", `{"name":"f","arguments":{"a":1}}`, toolformat.OllamaToolCall, "", ""},
		{"Anthropic block", `{"type":"tool_use","id":"c1","name":"f","input":{"a":1}}`, toolformat.AnthropicToolUse, "c1", ""},
		{"Responses item", `{"type":"function_call","id":"fc_1","call_id":"c1","name":"f","arguments":"{\"a\":1}"}`, toolformat.ResponsesFunctionCall, "c1", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			reg := all.Registry(interop.Options{})
			c, _, err := reg.InspectCall(native("", tc.obj))
			if err != nil {
				t.Fatal(err)
			}
			if c.PayloadFormat != tc.want || c.Name != "f" || c.Arguments != `{"a":1}` || c.ID != tc.id || c.Signature != tc.sign || c.Problem != nil {
				t.Errorf("%s: %+v", c.PayloadFormat, c)
			}
			clean, rep := reg.SanitizeCall(native("", tc.obj))
			if clean.Format != tc.want || string(clean.JSON) != tc.obj || len(rep.Losses) > 0 {
				t.Errorf("sanitized: %s %s %v", clean.Format, clean.JSON, rep.Losses)
			}
			// The registry converts every format that SanitizeCall sets, also to that format
			// itself.
			for _, to := range []dragoman.Format{tc.want, toolformat.AnthropicToolUse} {
				for _, in := range []dragoman.Native{clean, native("", tc.obj)} {
					out, _, err := reg.ConvertCalls([]dragoman.Native{in}, to)
					if err != nil {
						t.Fatal(err)
					}
					again, _, err := reg.InspectCall(out[0])
					if err != nil || out[0].Format != to || again.Name != "f" || again.Arguments != `{"a":1}` {
						t.Errorf("%q as %s: %s %v", in.Format, to, out[0].JSON, err)
					}
				}
			}
		})
	}
}

func TestSanitizeCallInsideChatCall(t *testing.T) {
	clean, rep := all.Registry(interop.Options{}).SanitizeCall(native("", `{"name":"f","arguments":"{\"a\":"}`))
	if string(clean.JSON) != `{"name":"f","arguments":"{}"}` || len(rep.Losses) != 1 || rep.Losses[0].Path != "/arguments" {
		t.Errorf("%s %v", clean.JSON, rep.Losses)
	}
}

// An object that could be read as two different calls is not unwrapped.
func TestAmbiguousCallShapes(t *testing.T) {
	for _, obj := range []string{
		`{"functionCall":{"name":"f","args":{}},"function_call":{"name":"rm","args":{}}}`,
		`{"functionCall":{"name":"f","args":{}},"functioncall":{"name":"rm","args":{}}}`,
		`{"functionCall":{"name":"f","args":{}},"functionCall":{"name":"rm","args":{}}}`,
		`{"functionCall":{"name":"f","args":{}},"name":"rm","args":{}}`,
		`{"functionCall":{"name":"f","args":{}},"text":"hello"}`,
		`{"role":"assistant","function_call":{"name":"f","arguments":"{}"}}`,
	} {
		if c, _, err := all.Registry(interop.Options{}).InspectCall(native("", obj)); err == nil && c.Problem == nil {
			t.Errorf("%s: %s %s", obj, c.PayloadFormat, c.Name)
		}
	}
}

// An object without a format is refused with an error that says how to name it.
func TestUnrecognizedObjectsAreRefused(t *testing.T) {
	reg := all.Registry(interop.Options{})
	call := native(toolformat.ChatFunctionCall, `{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}`)
	in := []dragoman.Native{call, native("", `{"any":"thing"}`)}
	_, _, err := reg.ConvertCalls(in, toolformat.AnthropicToolUse)
	if err == nil || !strings.HasPrefix(err.Error(), "element 1: ") || !strings.Contains(err.Error(), "no known format of calls has this shape; name the format") {
		t.Errorf("calls: %v", err)
	}
	if in[1].Format != "" {
		t.Error("the input was changed")
	}
	result := native("", `{"role":"tool","tool_call_id":"c1","content":"x"}`)
	const want = "the result has no format; set Native.Format"
	if _, _, err := reg.ConvertResults([]dragoman.Native{result}, toolformat.AnthropicToolUse); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("results: %v", err)
	}
	if _, _, err := reg.InspectResult(result); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("result: %v", err)
	}
	if _, _, err := reg.ConvertCalls([]dragoman.Native{call}, ""); err == nil || !strings.Contains(err.Error(), "no target format") {
		t.Errorf("calls in no format: %v", err)
	}
}
