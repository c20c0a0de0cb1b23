package interop_test

import (
	"encoding/json"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect/all"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/codec/toolformat"
	"github.com/dragoman-go/dragoman/interop"
	"github.com/dragoman-go/dragoman/targets"
)

func TestOllamaToolObjectsConvertBothWays(t *testing.T) {
	reg := all.Registry(interop.Options{})
	native := func(f dragoman.Format, s string) []dragoman.Native {
		return []dragoman.Native{{Format: f, JSON: json.RawMessage(s)}}
	}
	tool := `{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object","properties":{"a":{"type":"string"}}}}}`
	call := `{"id":"a","function":{"name":"f","arguments":{"b":1, "a":2}}}`
	for _, c := range []struct {
		convert  func([]dragoman.Native, dragoman.Format) ([]dragoman.Native, dragoman.Report, error)
		from, to dragoman.Format
		in, out  string
	}{
		{reg.ConvertSchemas, toolformat.OllamaFunction, toolformat.ChatFunction, tool, tool},
		{reg.ConvertSchemas, toolformat.ChatFunction, toolformat.OllamaFunction, tool, tool},
		{reg.ConvertCalls, toolformat.OllamaToolCall, toolformat.ChatFunctionCall, call, `{"id":"a","type":"function","function":{"name":"f","arguments":"{\"b\":1, \"a\":2}"}}`},
		{reg.ConvertCalls, toolformat.ChatFunctionCall, toolformat.OllamaToolCall, `{"id":"a","type":"function","function":{"name":"f","arguments":"{\"b\":1, \"a\":2}"}}`, call},
		{reg.ConvertResults, toolformat.OllamaResult, toolformat.ChatResult, `{"role":"tool","tool_call_id":"a","tool_name":"f","content":"4 C"}`, `{"role":"tool","tool_call_id":"a","content":"4 C"}`},
		{reg.ConvertResults, toolformat.AnthropicResult, toolformat.OllamaResult, `{"type":"tool_result","tool_use_id":"a","is_error":true,"content":"no"}`, `{"role":"tool","content":"ERROR: no","tool_call_id":"a"}`},
	} {
		got, rep, err := c.convert(native(c.from, c.in), c.to)
		if err != nil || len(got) != 1 || string(got[0].JSON) != c.out {
			t.Errorf("%s to %s: %v\ngot  %s\nwant %s\n%s", c.from, c.to, err, got, c.out, rep)
		}
	}
}

func TestOllamaFreeformToolIsAFunction(t *testing.T) {
	tools := []dragoman.ToolSpec{{Kind: codes.ToolFreeform, Name: "patch", Grammar: &dragoman.Grammar{Syntax: "lark", Definition: "x"}}}
	reg := all.Registry(interop.Options{Target: targets.Target{Dialect: dialectname.Ollama}, Tools: tools})
	var w interop.Writer
	var rep dragoman.Report
	w.BeginArray()
	if n, err := reg.WriteTools(&w, tools, &rep); n != 1 || err != nil || len(rep.Losses) == 0 {
		t.Fatalf("%d, %v, %s", n, err, rep)
	}
	c, err := reg.ReadCall(json.RawMessage(`{"function":{"name":"patch","arguments":{"input":"*** x"}}}`), interop.At(""), &rep)
	if err != nil || c.Payload != codes.PayloadText || c.Arguments != "*** x" || c.Problem != nil {
		t.Errorf("%+v, %v", c, err)
	}
}
