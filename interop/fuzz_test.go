package interop_test

import (
	"bytes"
	"encoding/json"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect/all"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/codec/toolformat"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/interop"
)

var (
	schemaFormats = []dragoman.Format{
		toolformat.ChatFunction, toolformat.ChatCustom, toolformat.ResponsesFunction, toolformat.ResponsesCustom,
		toolformat.ResponsesNamespace, toolformat.AnthropicTool, toolformat.MCPTool, "openai.responses.web_search",
	}
	callFormats = []dragoman.Format{
		toolformat.ChatFunctionCall, toolformat.ChatCustomCall, toolformat.ResponsesFunctionCall,
		toolformat.ResponsesCustomCall, toolformat.AnthropicToolUse,
	}
	resultFormats = []dragoman.Format{toolformat.ChatResult, toolformat.ResponsesResult, toolformat.AnthropicResult}
)

var seedSchemas = []string{
	`{"type":"function","function":{"name":"f","parameters":{"type":"object"},"strict":true}}`,
	`{"type":"custom","custom":{"name":"f","format":{"type":"grammar","grammar":{"syntax":"lark","definition":"x"}}}}`,
	`{"type":"namespace","name":"n","description":"d","tools":[{"type":"function","name":"f","parameters":{}}]}`,
	`{"name":"f","input_schema":{"type":"object","properties":{"a":{"$ref":"#"}}},"cache_control":{"type":"ephemeral","ttl":"1h"}}`,
	`{"name":"f","inputSchema":true,"annotations":{"readOnlyHint":true}}`,
	`{"function":{"name":null,"parameters":null}}`, `null`, `[]`, `{"type":"custom","custom":{"format":{"type":"grammar","grammar":[]}}}`,
}

var seedCalls = []string{
	`{"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}`,
	`{"id":"c","function":{"name":"f","arguments":"{\"a\":1,\"a\":2}"}}`,
	`{"id":5,"function":{"name":"f","arguments":{"a":[]}}}`,
	`{"type":"custom_tool_call","call_id":"c","name":"p","input":"x","status":"incomplete"}`,
	`{"type":"tool_use","id":"c","name":"f","input":{"a":1},"cache_control":null}`,
	`{"id":"c","function":{"name":"p","arguments":"{\"command\":[\"a\",\"b\"]}"}}`,
	`{"id":"c","function":{"name":"p","arguments":"\"{}\""}}`,
}

var seedResults = []string{
	`{"role":"tool","tool_call_id":"c","content":"ERROR: x"}`,
	`{"role":"tool","tool_call_id":"c","content":[{"type":"text","text":"x"},{"type":"image_url","image_url":"data:image/png;base64,AA=="}]}`,
	`{"type":"function_call_output","call_id":"c","output":[{"type":"input_image","image_url":"https://x","detail":"low"}]}`,
	`{"type":"tool_result","tool_use_id":"c","is_error":true,"content":[{"type":"document","source":{"type":"text","media_type":"text/plain","data":"x"}}]}`,
}

func fuzzTools() []dragoman.ToolSpec {
	return []dragoman.ToolSpec{{Name: "f"}, {Kind: codes.ToolFreeform, Name: "p", Grammar: &dragoman.Grammar{Syntax: "regex", Definition: "x"}}, {Namespace: "n", Name: "f"}}
}

// For any input: no panic, and a call that can be read can be written for every target, as
// valid JSON, twice the same.
func FuzzInspectSchema(f *testing.F) {
	for i, s := range seedSchemas {
		f.Add([]byte(s), uint8(i))
	}
	f.Fuzz(func(t *testing.T, obj []byte, which uint8) {
		in := dragoman.Native{Format: schemaFormats[int(which)%len(schemaFormats)], JSON: obj}
		before := bytes.Clone(obj)
		specs, _, err := registry(dialectname.OpenAIResponses, nil).InspectSchema(in)
		if !bytes.Equal(before, obj) {
			t.Fatal("the input was changed")
		}
		if err != nil {
			return
		}
		for _, d := range threeDialects {
			reg := registry(d, specs)
			out, _ := writeTools(t, reg, specs)
			if again, _ := writeTools(t, registry(d, specs), specs); again != out {
				t.Fatalf("two runs differ:\n%s\n%s", out, again)
			}
		}
	})
}

func FuzzInspectCall(f *testing.F) {
	for i, s := range seedCalls {
		f.Add([]byte(s), uint8(i))
	}
	f.Fuzz(func(t *testing.T, obj []byte, which uint8) {
		in := dragoman.Native{Format: callFormats[int(which)%len(callFormats)], JSON: obj}
		reg := registry(dialectname.OpenAIResponses, fuzzTools())
		clean, _ := reg.SanitizeCall(in)
		c, _, err := reg.InspectCall(in)
		if err != nil {
			if !bytes.Equal(clean.JSON, obj) {
				t.Fatalf("an unreadable call was changed to %s", clean.JSON)
			}
			return
		}
		if c.Problem == nil && c.Payload == codes.PayloadObject && dragoman.CheckArguments(c.Arguments) != nil {
			t.Fatalf("may run with %q", c.Arguments)
		}
		for _, d := range threeDialects {
			var w jsonwire.Writer
			if err := registry(d, fuzzTools()).WriteCall(&w, c, root, new(dragoman.Report)); err != nil {
				t.Fatal(err)
			}
			distinctFields(t, w.Buf)
		}
	})
}

func FuzzInspectResult(f *testing.F) {
	for i, s := range seedResults {
		f.Add([]byte(s), uint8(i))
	}
	f.Fuzz(func(t *testing.T, obj []byte, which uint8) {
		in := dragoman.Native{Format: resultFormats[int(which)%len(resultFormats)], JSON: obj}
		r, _, err := registry(dialectname.OpenAIChat, fuzzTools()).InspectResult(in)
		if err != nil {
			return
		}
		for _, d := range threeDialects {
			out, spill, _ := writeResultRaw(t, registry(d, fuzzTools()), r)
			distinctFields(t, out)
			if d != dialectname.OpenAIChat && spill != nil {
				t.Fatalf("%s spilled %v", d, spill)
			}
		}
	})
}

// FuzzConvert converts every readable object to every format of its kind.
func FuzzConvert(f *testing.F) {
	for i, s := range seedSchemas {
		f.Add([]byte(s), uint8(0), uint8(i), uint8(i+1))
	}
	for i, s := range seedCalls {
		f.Add([]byte(s), uint8(1), uint8(i), uint8(i+1))
	}
	for i, s := range seedResults {
		f.Add([]byte(s), uint8(2), uint8(i), uint8(i+1))
	}
	f.Fuzz(func(t *testing.T, obj []byte, kind, from, to uint8) {
		reg := all.Registry(interop.Options{})
		pick := func(fs []dragoman.Format, n uint8) dragoman.Format { return fs[int(n)%len(fs)] }
		var out []dragoman.Native
		var err error
		in := []dragoman.Native{{JSON: obj}}
		switch kind % 3 {
		case 0:
			in[0].Format = pick(schemaFormats, from)
			out, _, err = reg.ConvertSchemas(in, pick(schemaFormats, to))
		case 1:
			in[0].Format = pick(callFormats, from)
			out, _, err = reg.ConvertCalls(in, pick(callFormats, to))
		default:
			in[0].Format = pick(resultFormats, from)
			out, _, err = reg.ConvertResults(in, pick(resultFormats, to))
		}
		if err != nil {
			return
		}
		for _, n := range out {
			if n.Format != in[0].Format && !json.Valid(n.JSON) {
				t.Fatalf("wrote no JSON as %s: %s", n.Format, n.JSON)
			}
		}
	})
}

// distinctFields fails unless b is an object whose own fields have distinct names. Nested
// duplicates come from the input.
func distinctFields(t *testing.T, b []byte) {
	t.Helper()
	r := jsonwire.NewReader(b)
	seen := map[string]bool{}
	for key := range r.Object() {
		if seen[string(key)] {
			t.Fatalf("%q is repeated in %s", key, b)
		}
		seen[string(key)] = true
		r.Skip()
	}
	if err := r.End(); err != nil {
		t.Fatalf("wrote no JSON object: %v\n%s", err, b)
	}
}

// writeResultRaw is writeResult for content that repeats keys: opaque blocks are written
// unchanged.
func writeResultRaw(t *testing.T, reg *interop.Registry, r *dragoman.ToolResult) ([]byte, []dragoman.Part, dragoman.Report) {
	t.Helper()
	var w jsonwire.Writer
	var rep dragoman.Report
	spill, err := reg.WriteResult(&w, r, root, &rep)
	if err != nil {
		t.Fatal(err)
	}
	return w.Buf, spill, rep
}
