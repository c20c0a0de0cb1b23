package interop_test

import (
	"slices"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect/all"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/codec/toolformat"
	"github.com/dragoman-go/dragoman/interop"
	"github.com/dragoman-go/dragoman/targets"
)

// A registry without a request, or for a request of another dialect, also reads the tools of a
// namespace.
func TestR2_NamespacesAreReadForEveryTarget(t *testing.T) {
	const namespace = `{"type":"namespace","name":"crm","description":"customers","tools":[{"type":"function","name":"list","parameters":{"type":"object"}},{"type":"custom","name":"note"}]}`
	for _, d := range []dragoman.Dialect{"", dialectname.OpenAIChat, dialectname.OpenAIResponses, dialectname.Anthropic, dialectname.Gemini, dialectname.Ollama, dialectname.Bedrock} {
		reg := all.Registry(interop.Options{Target: targets.Target{Dialect: d}})
		specs, _, err := reg.InspectSchema(native(toolformat.ResponsesNamespace, namespace))
		if err != nil || len(specs) != 2 || specs[0].Name != "list" || specs[0].Namespace != "crm" || specs[1].Kind != codes.ToolFreeform || specs[1].NamespaceDescription != "customers" {
			t.Errorf("%q: %+v, %v", d, specs, err)
		}
		out, _, err := reg.ConvertSchemas([]dragoman.Native{native(toolformat.ResponsesNamespace, namespace)}, toolformat.AnthropicTool)
		if err != nil || len(out) != 2 {
			t.Errorf("%q: converted to %s, %v", d, out, err)
		}
	}
}

func TestR2_NamespacedCallIsNotABareCall(t *testing.T) {
	bare := native(toolformat.ResponsesFunctionCall, `{"type":"function_call","call_id":"c0","name":"list","arguments":"{}"}`)
	call := native(toolformat.ResponsesFunctionCall, `{"type":"function_call","call_id":"c1","name":"list","namespace":"crm","arguments":"{}"}`)
	tools := []dragoman.ToolSpec{{Name: "list"}, {Name: "list", Namespace: "crm"}}
	for _, d := range []dragoman.Dialect{"", dialectname.OpenAIChat, dialectname.OpenAIResponses, dialectname.Anthropic, dialectname.Gemini} {
		for _, declared := range [][]dragoman.ToolSpec{nil, tools} {
			reg := all.Registry(interop.Options{Target: targets.Target{Dialect: d}, Tools: declared})
			out, rep, err := reg.ConvertCalls([]dragoman.Native{bare, call}, toolformat.AnthropicToolUse)
			if err != nil || len(out) != 2 || !strings.Contains(string(out[0].JSON), `"name":"list"`) || !strings.Contains(string(out[1].JSON), `"name":"crm__list"`) || len(rep.Losses) != 1 {
				t.Errorf("%q: converted to %s, %v, %v", d, out, rep, err)
			}
			view, rep, err := reg.InspectCall(call)
			if err != nil || view.Namespace != "crm" || view.Name != "list" || len(rep.Losses) > 0 {
				t.Errorf("%q: read as %s, %v, %v", d, view.QualifiedName(), rep, err)
			}
		}
	}
}

func TestR11_NamespaceBecomesPartOfTheName(t *testing.T) {
	namespace := native(toolformat.ResponsesNamespace, `{"type":"namespace","name":"crm","tools":[{"type":"function","name":"list","parameters":{"type":"object"}}]}`)
	reg := all.Registry(interop.Options{Target: targets.Target{Dialect: dialectname.OpenAIResponses}})
	for _, to := range []dragoman.Format{toolformat.AnthropicTool, toolformat.ChatFunction, toolformat.MCPTool} {
		out, rep, err := reg.ConvertSchemas([]dragoman.Native{namespace}, to)
		if err != nil || len(out) != 1 || !strings.Contains(string(out[0].JSON), `"name":"crm__list"`) || !slices.ContainsFunc(rep.Losses, func(l dragoman.Loss) bool { return l.Kind == dragoman.Renamed }) {
			t.Errorf("%s: %s, %v, %v", to, out, rep, err)
		}
	}
}

func TestR11_ArgumentsWrittenAsTextAreReported(t *testing.T) {
	call := native(toolformat.AnthropicToolUse, `{"type":"tool_use","id":"c1","name":"f","input":{"a":1}}`)
	for _, to := range []dragoman.Format{toolformat.ChatCustomCall, toolformat.ResponsesCustomCall} {
		out, rep, err := all.Registry(interop.Options{}).ConvertCalls([]dragoman.Native{call}, to)
		if err != nil || len(out) != 1 || len(rep.Losses) != 1 || rep.Losses[0].Kind != dragoman.Lowered {
			t.Errorf("%s: %s, %v, %v", to, out, rep, err)
		}
	}
}

func TestR2_ResultsAreReadInEveryShape(t *testing.T) {
	for _, tc := range []struct {
		format      dragoman.Format
		bare, whole string
		own         string // the format of the conversion
	}{
		{
			toolformat.GeminiResult,
			`{"id":"c1","name":"f","response":{"error":"no such city"}}`, `{"functionResponse":{"id":"c1","name":"f","response":{"error":"no such city"}}}`,
			`{"id":"c1","name":"f","response":{"error":"no such city"}}`,
		},
		{
			toolformat.BedrockResult,
			`{"toolUseId":"c1","content":[{"text":"no such city"}],"status":"error"}`, `{"toolResult":{"toolUseId":"c1","content":[{"text":"no such city"}],"status":"error"}}`,
			`{"toolResult":{"toolUseId":"c1","content":[{"text":"no such city"}],"status":"error"}}`,
		},
	} {
		for _, obj := range []string{tc.bare, tc.whole} {
			in := native(tc.format, obj)
			res, rep, err := all.Registry(interop.Options{}).InspectResult(in)
			if err != nil || len(rep.Losses) > 0 || res.CallID != "c1" || res.Outcome != codes.OutcomeError || len(res.Content) != 1 || res.Extra != nil {
				t.Errorf("%s: %+v, %v, %v", obj, res, rep, err)
			}
			for to, want := range map[dragoman.Format]string{
				tc.format:                  tc.own,
				toolformat.AnthropicResult: `{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"no such city"}],"is_error":true}`,
			} {
				out, rep, err := all.Registry(interop.Options{}).ConvertResults([]dragoman.Native{in}, to)
				if err != nil || len(rep.Losses) > 0 || len(out) != 1 {
					t.Errorf("%s as %s: %s, %v, %v", obj, to, out, rep, err)
					continue
				}
				sameJSON(t, string(out[0].JSON), want)
			}
			if string(in.JSON) != obj {
				t.Errorf("the input became %s", in.JSON)
			}
		}
	}
	// The other fields of a part are kept in the canonical result, and reported if they are
	// not written.
	in := native(toolformat.GeminiResult, `{"functionResponse":{"name":"f","response":{"output":"x"}},"thoughtSignature":"s"}`)
	if res, _, err := all.Registry(interop.Options{}).InspectResult(in); err != nil || res.Name != "f" || len(res.Extra.For(dialectname.Gemini)) != 1 {
		t.Errorf("%+v, %v", res, err)
	}
	if _, rep, err := all.Registry(interop.Options{}).ConvertResults([]dragoman.Native{in}, toolformat.GeminiResult); err != nil || len(rep.Losses) != 1 || rep.Losses[0].Path != "/0/thoughtSignature" {
		t.Errorf("%v, %v", rep, err)
	}
}

// A result that contains an explicit envelope has the envelope and its text.
func TestR2_CanonicalResultHasItsEnvelope(t *testing.T) {
	const envelope = `{"type":"provider_native_tool_result","format":"anthropic.messages","content":[{"type":"text","text":"native"}],"_metadata":{"k":1},"text":"plain"}`
	for format, obj := range map[dragoman.Format]string{
		toolformat.GeminiResult:  `{"id":"c1","name":"f","response":` + envelope + `}`,
		toolformat.BedrockResult: `{"toolResult":{"toolUseId":"c1","content":[{"json":` + envelope + `}]}}`,
	} {
		res, _, err := all.Registry(interop.Options{}).InspectResult(native(format, obj))
		if err != nil || res.Envelope == nil || res.Envelope.Format != toolformat.AnthropicResult || string(res.Envelope.JSON) != `[{"type":"text","text":"native"}]` || res.Text() != "plain" {
			t.Errorf("%s: %+v, %v", format, res, err)
		}
	}
	// Text is not an envelope, and neither is other data.
	for format, obj := range map[dragoman.Format]string{
		toolformat.AnthropicResult: `{"type":"tool_result","tool_use_id":"c1","content":"{\"type\":\"provider_native_tool_result\",\"format\":\"anthropic.messages\",\"content\":[]}"}`,
		toolformat.GeminiResult:    `{"name":"f","response":{"type":"provider_native_tool_result"}}`,
	} {
		res, _, err := all.Registry(interop.Options{}).InspectResult(native(format, obj))
		if err != nil || res.Envelope != nil || len(res.Content) != 1 {
			t.Errorf("%s: %+v, %v", format, res, err)
		}
	}
}
