package interop_test

import (
	"encoding/json"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/toolformat"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/interop"
	"github.com/dragoman-go/dragoman/schema"
	"github.com/dragoman-go/dragoman/targets"
)

// filter is a tool with a property whose name Anthropic refuses.
func filter() dragoman.ToolSpec {
	return dragoman.ToolSpec{
		Name:       "find",
		Parameters: json.RawMessage(`{"type":"object","properties":{"$filter":{"type":"string"}},"required":["$filter"]}`),
		Examples:   []json.RawMessage{json.RawMessage(`{"$filter":"a"}`)},
	}
}

// aliasOf returns the name that Anthropic gets for a property.
func aliasOf(t *testing.T, name string) string {
	t.Helper()
	low, err := schema.Lower(filter().Parameters, profile(t, "anthropic.tool"))
	if err != nil {
		t.Fatal(err)
	}
	for alias, public := range low.Aliases {
		if public == name {
			return alias
		}
	}
	t.Fatalf("%s has no alias", name)
	return ""
}

func writtenCall(t *testing.T, reg *interop.Registry, c *dragoman.ToolCall) string {
	t.Helper()
	var w jsonwire.Writer
	if err := reg.WriteCall(&w, c, extra.At(""), new(dragoman.Report)); err != nil {
		t.Fatal(err)
	}
	return string(w.Buf)
}

func TestQuirkA23_HistoryCallsUseTheAliases(t *testing.T) {
	alias := aliasOf(t, "$filter")
	tools := []dragoman.ToolSpec{filter()}
	want := `"input":{"` + alias + `":"x"}`
	call := &dragoman.ToolCall{ID: "c1", Name: "find", Arguments: `{"$filter":"x"}`}

	before := registry(dialectname.Anthropic, tools) // no tool is written yet
	if got := writtenCall(t, before, call); !strings.Contains(got, want) {
		t.Errorf("before its tool the call is %s", got)
	}
	after := registry(dialectname.Anthropic, tools)
	body, _ := writeTools(t, after, tools)
	if got := writtenCall(t, after, call); !strings.Contains(got, want) {
		t.Errorf("after its tool the call is %s", got)
	}
	if call.Arguments != `{"$filter":"x"}` {
		t.Errorf("the call itself was changed to %s", call.Arguments)
	}
	if !strings.Contains(body, `"input_examples":[{"`+alias+`":"a"}]`) {
		t.Errorf("the example does not fit its schema: %s", body)
	}
	if got := writtenCall(t, after.ForResponse(), call); !strings.Contains(got, `{"$filter":"x"}`) {
		t.Errorf("a client that declared the tool itself is answered %s", got)
	}
}

func TestQuirkA23_UnchangedDefinitionHasNoAliases(t *testing.T) {
	s := filter()
	s.Source = &dragoman.ToolSource{Format: toolformat.AnthropicTool, JSON: json.RawMessage(`{"name":"find","input_schema":` + string(s.Parameters) + `}`)}
	reg := registry(dialectname.Anthropic, []dragoman.ToolSpec{s})
	if reg.Translates("", "find") {
		t.Error("arguments would be translated")
	}
	if got := writtenCall(t, reg, &dragoman.ToolCall{ID: "c1", Name: "find", Arguments: `{"$filter":"x"}`}); !strings.Contains(got, `{"$filter":"x"}`) {
		t.Errorf("the call is %s", got)
	}
}

func TestQuirkA23_ResolveCallReversesAliases(t *testing.T) {
	alias := aliasOf(t, "$filter")
	reg := registry(dialectname.Anthropic, []dragoman.ToolSpec{filter()}, func(o *interop.Options) { o.Schemas = new(interop.SchemaCache) })
	for _, c := range []struct{ args, want string }{
		{`{"` + alias + `": "x"}`, `{"$filter":"x"}`},
		{`{"$filter": "x" }`, `{"$filter": "x" }`}, // the model used the original name; its bytes do not change
		{`{"` + alias + `":"x","$filter":"y"}`, ""},
		{`"{\"` + alias + `\":\"x\"}"`, `{"$filter":"x"}`}, // quirk B3
	} {
		call := &dragoman.ToolCall{ID: "c1", Name: "find", Arguments: c.args}
		reg.ResolveCall(call, extra.At(""), new(dragoman.Report))
		switch {
		case c.want == "" && (call.Problem == nil || call.Arguments != c.args):
			t.Errorf("%s would run as %s", c.args, call.Arguments)
		case c.want != "" && (call.Problem != nil || call.Arguments != c.want):
			t.Errorf("%s became %s, %v; want %s", c.args, call.Arguments, call.Problem, c.want)
		}
	}
}

func TestConversionDoesNotChangeTheRegistry(t *testing.T) {
	reg := registry(dialectname.OpenAIChat, []dragoman.ToolSpec{filter()})
	var w jsonwire.Writer
	w.BeginArray()
	if _, err := reg.WriteTools(&w, []dragoman.ToolSpec{filter()}, new(dragoman.Report)); err != nil {
		t.Fatal(err)
	}
	w.EndArray()
	tool := dragoman.Native{Format: toolformat.MCPTool, JSON: json.RawMessage(`{"name":"find","inputSchema":` + string(filter().Parameters) + `}`)}
	if _, _, err := reg.ConvertSchemas([]dragoman.Native{tool}, toolformat.AnthropicTool); err != nil {
		t.Fatal(err)
	}
	if reg.Translates("", "find") {
		t.Error("Chat has no need to translate arguments")
	}
}

func TestFreeformToolSentAsAFunctionIsTranslated(t *testing.T) {
	tools := []dragoman.ToolSpec{{Kind: codes.ToolFreeform, Name: "patch", Namespace: "fs"}, {Name: "plain"}}
	reg := registry(dialectname.Anthropic, tools)
	if !reg.Translates("fs", "patch") || reg.Translates("", "plain") || reg.Translates("", "unknown") {
		t.Error("patch, and patch alone, carries its text in an argument")
	}
}

func TestResolveCallDoesNotAllocate(t *testing.T) {
	tools := []dragoman.ToolSpec{{Name: "weather", Parameters: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}}}`)}}
	reg := registry(dialectname.Anthropic, tools)
	writeTools(t, reg, tools)
	call := &dragoman.ToolCall{ID: "c1", Name: "weather", Arguments: `{"city":"Oslo"}`}
	rep := new(dragoman.Report)
	// The runtime empties the pools of the check now and then, so the best of a few runs
	// counts.
	with, check := 1e9, 0.0
	for range 5 {
		with = min(with, testing.AllocsPerRun(100, func() { reg.ResolveCall(call, extra.At(""), rep) }))
		check = max(check, testing.AllocsPerRun(100, func() { dragoman.CheckArguments(call.Arguments) }))
	}
	if with > check {
		t.Errorf("%v allocations, of which %v check the arguments", with, check)
	}
}

func TestQuirkA5_RootConstraintsMoveIntoTheDescription(t *testing.T) {
	tools := []dragoman.ToolSpec{{
		Name: "open", Description: "Opens a thing.",
		Parameters: json.RawMessage(`{"type":"object","description":"By id or by name.","properties":{"id":{"type":"string"},"name":{"type":"string"}}}`),
	}}
	closed := withCaps(targets.Capabilities{ClosedSchemas: true})
	for what, reg := range map[string]*interop.Registry{
		"Ollama": registry(dialectname.Ollama, tools),
		"Nova":   registry(dialectname.Bedrock, tools, closed),
	} {
		body, _ := writeTools(t, reg, tools)
		if !strings.Contains(body, `"description":"Opens a thing.\n\nBy id or by name."`) || strings.Count(body, "By id") != 1 {
			t.Errorf("%s gets %s", what, body)
		}
	}
	body, _ := writeTools(t, registry(dialectname.Bedrock, tools), tools)
	if !strings.Contains(body, `"description":"Opens a thing."`) || !strings.Contains(body, `{"type":"object","description":"By id or by name."`) {
		t.Errorf("Claude on Bedrock gets %s", body)
	}
}
