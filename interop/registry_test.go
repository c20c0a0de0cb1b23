package interop_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/all"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/codec/toolformat"
	"github.com/dragoman-go/dragoman/interop"
	"github.com/dragoman-go/dragoman/targets"
)

// acme is a tool plugin with its own format: {"acme":name,"does":text, "takes":[string
// arguments],"text":true for freeform}.
const acmeTool dragoman.Format = "acme.tool"

type acmeAccessor struct{ data string }

func (acmeAccessor) Format() dragoman.Format { return acmeTool }

func (a acmeAccessor) InspectSchema(obj json.RawMessage) ([]dragoman.ToolSpec, dragoman.Report, error) {
	var in []struct {
		Acme, Does string
		Takes      []string
		Text       bool
	}
	if len(obj) > 0 && obj[0] == '{' {
		obj = append(append([]byte{'['}, obj...), ']')
	}
	if err := json.Unmarshal(obj, &in); err != nil {
		return nil, dragoman.Report{}, fmt.Errorf("acme: %w", err)
	}
	var specs []dragoman.ToolSpec
	for _, t := range in {
		s := dragoman.ToolSpec{Name: t.Acme, Description: a.data + t.Does}
		if t.Text {
			s.Kind = codes.ToolFreeform
		} else {
			props := map[string]any{}
			for _, n := range t.Takes {
				props[n] = map[string]string{"type": "string"}
			}
			s.Parameters, _ = json.Marshal(map[string]any{"type": "object", "properties": props})
		}
		specs = append(specs, s)
	}
	var rep dragoman.Report
	rep.Add(dragoman.Dropped, dragoman.Info, "/acme", "read by acme")
	return specs, rep, nil
}

// adapter is an adapter made of a function.
type adapter struct {
	kind     string
	from, to dragoman.Format
	adapt    func(dragoman.AdapterInput) (json.RawMessage, dragoman.Report, error)
}

func (a adapter) Kind() string          { return a.kind }
func (a adapter) From() dragoman.Format { return a.from }
func (a adapter) To() dragoman.Format   { return a.to }
func (a adapter) Adapt(in dragoman.AdapterInput) (json.RawMessage, dragoman.Report, error) {
	return a.adapt(in)
}

func constant(kind string, from, to dragoman.Format, obj string) adapter {
	return adapter{kind, from, to, func(dragoman.AdapterInput) (json.RawMessage, dragoman.Report, error) {
		return json.RawMessage(obj), dragoman.Report{}, nil
	}}
}

type callAccessor struct {
	format dragoman.Format
	view   *dragoman.ToolCall
}

func (a callAccessor) Format() dragoman.Format { return a.format }
func (a callAccessor) InspectCall(json.RawMessage) (*dragoman.ToolCall, dragoman.Report, error) {
	return a.view, dragoman.Report{}, nil
}

type resultAccessor struct {
	format dragoman.Format
	view   *dragoman.ToolResult
}

func (a resultAccessor) Format() dragoman.Format { return a.format }
func (a resultAccessor) InspectResult(json.RawMessage) (*dragoman.ToolResult, dragoman.Report, error) {
	return a.view, dragoman.Report{}, nil
}

func TestR1_RegistryConvertsSchemasCallsAndResults(t *testing.T) {
	reg := all.Registry(interop.Options{})
	schema := native(toolformat.AnthropicTool, `{"name":"f","description":"d","input_schema":{"type":"object","properties":{}}}`)
	call := native(toolformat.AnthropicToolUse, `{"type":"tool_use","id":"toolu_1","name":"f","input":{"a":1}}`)
	result := native(toolformat.AnthropicResult, `{"type":"tool_result","tool_use_id":"toolu_1","content":"ok"}`)

	specs, _, err := reg.InspectSchema(schema)
	if err != nil || len(specs) != 1 || specs[0].Name != "f" {
		t.Errorf("InspectSchema: %+v, %v", specs, err)
	}
	c, _, err := reg.InspectCall(call)
	if err != nil || c.Name != "f" || c.Arguments != `{"a":1}` {
		t.Errorf("InspectCall: %+v, %v", c, err)
	}
	r, _, err := reg.InspectResult(result)
	if err != nil || r.CallID != "toolu_1" || r.Text() != "ok" {
		t.Errorf("InspectResult: %+v, %v", r, err)
	}

	out, rep, err := reg.ConvertSchemas([]dragoman.Native{schema}, toolformat.ChatFunction)
	if err != nil {
		t.Fatal(err)
	}
	lossless(t, rep)
	sameJSON(t, string(out[0].JSON), `{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object","properties":{}}}}`)
	out, rep, err = reg.ConvertCalls([]dragoman.Native{call}, toolformat.ResponsesFunctionCall)
	if err != nil {
		t.Fatal(err)
	}
	lossless(t, rep)
	sameJSON(t, string(out[0].JSON), `{"type":"function_call","call_id":"toolu_1","name":"f","arguments":"{\"a\":1}"}`)
	out, rep, err = reg.ConvertResults([]dragoman.Native{result}, toolformat.ChatResult)
	if err != nil {
		t.Fatal(err)
	}
	lossless(t, rep)
	sameJSON(t, string(out[0].JSON), `{"role":"tool","tool_call_id":"toolu_1","content":"ok"}`)
}

func TestR1_UnknownFormatIsAnError(t *testing.T) {
	reg := all.Registry(interop.Options{})
	_, _, err := reg.InspectCall(native("acme.call", `{}`))
	if err == nil || !strings.Contains(err.Error(), "contribute one") {
		t.Errorf("InspectCall: %v", err)
	}
	_, _, err = reg.InspectResult(native("acme.result", `{}`))
	if err == nil || !strings.Contains(err.Error(), "contribute one") {
		t.Errorf("InspectResult: %v", err)
	}
	_, _, err = reg.ConvertCalls([]dragoman.Native{native(toolformat.AnthropicToolUse, `{"type":"tool_use","id":"a","name":"f","input":{}}`)}, "acme.call")
	if err == nil || !strings.Contains(err.Error(), "contribute one") {
		t.Errorf("ConvertCalls: %v", err)
	}
	_, _, err = reg.ConvertSchemas([]dragoman.Native{native(toolformat.AnthropicTool, `{"name":"f","input_schema":{}}`)}, "acme.tool")
	if err == nil || !strings.Contains(err.Error(), "contribute one") {
		t.Errorf("ConvertSchemas: %v", err)
	}
}

func TestR2_CanonicalSchemaHasEveryField(t *testing.T) {
	yes := true
	for _, tc := range []struct {
		name string
		in   dragoman.Native
		want dragoman.ToolSpec
	}{
		{
			"chat function",
			native(toolformat.ChatFunction, `{"type":"function","function":{"name":"f","description":"d","strict":true,"parameters":{"type":"object"}}}`),
			dragoman.ToolSpec{Name: "f", Description: "d", Strict: codes.StrictOn, Parameters: json.RawMessage(`{"type":"object"}`)},
		},
		{
			"chat custom with a grammar",
			native(toolformat.ChatCustom, `{"type":"custom","custom":{"name":"sql","description":"d","format":{"type":"grammar","grammar":{"syntax":"lark","definition":"start: /x/"}}}}`),
			dragoman.ToolSpec{Kind: codes.ToolFreeform, Name: "sql", Description: "d", Grammar: &dragoman.Grammar{Syntax: "lark", Definition: "start: /x/"}},
		},
		{
			"responses function",
			native(toolformat.ResponsesFunction, `{"type":"function","name":"f","strict":false,"defer_loading":true,"parameters":null,"output_schema":{"type":"string"}}`),
			dragoman.ToolSpec{Name: "f", Strict: codes.StrictOff, Deferred: true, OutputSchema: json.RawMessage(`{"type":"string"}`)},
		},
		{
			"responses function without a flag",
			native(toolformat.ResponsesFunction, `{"type":"function","name":"f","parameters":{}}`),
			dragoman.ToolSpec{Name: "f", Strict: codes.StrictUnset, Parameters: json.RawMessage(`{}`)},
		},
		{
			"responses custom",
			native(toolformat.ResponsesCustom, `{"type":"custom","name":"p","format":{"type":"grammar","syntax":"regex","definition":"a+"}}`),
			dragoman.ToolSpec{Kind: codes.ToolFreeform, Name: "p", Grammar: &dragoman.Grammar{Syntax: "regex", Definition: "a+"}},
		},
		{
			"anthropic tool",
			native(toolformat.AnthropicTool, `{"type":"custom","name":"f","description":"d","strict":true,"defer_loading":true,"input_schema":{"type":"object"},"input_examples":[{"a":1}],"cache_control":{"type":"ephemeral","ttl":"1h"}}`),
			dragoman.ToolSpec{
				Name: "f", Description: "d", Strict: codes.StrictOn, Deferred: true, Parameters: json.RawMessage(`{"type":"object"}`),
				Examples: []json.RawMessage{json.RawMessage(`{"a":1}`)}, Cache: &dragoman.CacheHint{TTL: "1h"},
			},
		},
		{
			"mcp tool",
			native(toolformat.MCPTool, `{"name":"f","title":"F","inputSchema":{"type":"object"},"outputSchema":{"type":"object"},"annotations":{"title":"ignored","readOnlyHint":true,"idempotentHint":null},"_meta":{"x":1}}`),
			dragoman.ToolSpec{
				Name: "f", Parameters: json.RawMessage(`{"type":"object"}`), OutputSchema: json.RawMessage(`{"type":"object"}`),
				Annotations: dragoman.Annotations{Title: "F", ReadOnly: &yes},
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			specs, _, err := all.Registry(interop.Options{}).InspectSchema(tc.in)
			if err != nil || len(specs) != 1 {
				t.Fatalf("%v, %v", specs, err)
			}
			if specs[0].Source == nil || !bytes.Equal(specs[0].Source.JSON, tc.in.JSON) || specs[0].Source.Format != tc.in.Format {
				t.Errorf("the source was not kept: %+v", specs[0].Source)
			}
			if specs[0].Fingerprint() != tc.want.Fingerprint() {
				t.Errorf("got  %+v\nwant %+v", specs[0], tc.want)
			}
		})
	}
}

func TestR2_NamespaceIsReadAsItsTools(t *testing.T) {
	specs, _, err := all.Registry(interop.Options{Target: targets.Target{Dialect: dialectname.OpenAIResponses}}).InspectSchema(native(toolformat.ResponsesNamespace,
		`{"type":"namespace","name":"crm","description":"customers","tools":[{"type":"function","name":"list","parameters":{}},{"type":"custom","name":"note"}]}`))
	if err != nil || len(specs) != 2 {
		t.Fatalf("%+v, %v", specs, err)
	}
	for i, want := range []struct {
		name string
		kind string
	}{{"list", codes.ToolFunction}, {"note", codes.ToolFreeform}} {
		s := specs[i]
		if s.Namespace != "crm" || s.NamespaceDescription != "customers" || s.Name != want.name || s.Kind != want.kind {
			t.Errorf("member %d is %+v", i, s)
		}
	}
}

func TestR3_EarlierContributionShadowsLaterOnes(t *testing.T) {
	reg := registry(dialectname.OpenAIChat, nil, contributed(
		dragoman.Contribution{Source: "config", Schemas: []dragoman.SchemaAccessor{acmeAccessor{"config says "}}},
		dragoman.Contribution{
			Source: "provider", Schemas: []dragoman.SchemaAccessor{acmeAccessor{"provider says "}},
			Adapters: []dragoman.Adapter{constant(codes.CallObject, "", toolformat.ChatFunctionCall, `{}`)},
		},
	))
	specs, _, err := reg.InspectSchema(native(acmeTool, `{"acme":"f","does":"x"}`))
	if err != nil || specs[0].Description != "config says x" {
		t.Fatalf("%+v, %v", specs, err)
	}
	var shown []string
	for _, e := range reg.Listing() {
		if e.Source != "built-in" || e.Shadowed != "" {
			shown = append(shown, e.String())
		}
	}
	want := []string{
		"config: schema acme.tool",
		"provider: schema acme.tool (shadowed by config)",
		"provider: call adapter to openai.chat_completions.function_call",
		"built-in: call adapter to openai.chat_completions.function_call (shadowed by provider)",
	}
	if !slices.Equal(shown, want) {
		t.Errorf("the listing shows\n%s\nwant\n%s", strings.Join(shown, "\n"), strings.Join(want, "\n"))
	}
}

func TestR3_ContributionsAreAdditive(t *testing.T) {
	plain, rich := registry(dialectname.OpenAIChat, nil), registry(dialectname.OpenAIChat, nil, contributed(
		dragoman.Contribution{Source: "x", Schemas: []dragoman.SchemaAccessor{acmeAccessor{}}, Accepts: []dragoman.Format{acmeTool}},
	))
	for _, e := range plain.Listing() {
		if !slices.Contains(rich.Listing(), e) {
			t.Errorf("lost %v", e)
		}
	}
	for _, f := range plain.Accepts() {
		if !slices.Contains(rich.Accepts(), f) {
			t.Errorf("no longer accepts %s", f)
		}
	}
	if !slices.Contains(rich.Accepts(), acmeTool) {
		t.Error("what an extension accepts is not accepted")
	}
}

func TestR4_AcceptedFormatPassesThroughUnchanged(t *testing.T) {
	for _, tc := range []struct {
		d   dragoman.Dialect
		obj string
	}{
		{dialectname.OpenAIChat, `{ "function" : {"parameters":{"type":"object","x-odd":[1.0,1e3]},"name":"f","strict":null,"new":1}, "type":"function" }`},
		{dialectname.OpenAIChat, `{"type":"custom","custom":{"format":{"type":"text"},"name":"note"}}`},
		{dialectname.OpenAIResponses, `{"name":"f","type":"function","parameters":{"$defs":{}},"strict":null}`},
		{dialectname.Anthropic, `{"input_schema":{"type":"object","properties":{"z":{},"a":{}}},"name":"f","cache_control":{"type":"ephemeral"},"eager_input_streaming":true}`},
		{dialectname.Anthropic, `{"type":"web_search_20260209","name":"web_search","max_uses":5}`},
	} {
		t.Run(tc.obj, func(t *testing.T) {
			reg := registry(tc.d, nil)
			specs, _, err := reg.InspectSchema(dragoman.Native{Format: toolFormat(tc.d, json.RawMessage(tc.obj)), JSON: json.RawMessage(tc.obj)})
			if err != nil {
				t.Fatal(err)
			}
			out, rep := writeTools(t, registry(tc.d, specs), specs)
			if out != "["+tc.obj+"]" {
				t.Errorf("got  %s\nwant [%s]", out, tc.obj)
			}
			lossless(t, rep)
		})
	}
}

func TestR4_EditedSpecIsReencoded(t *testing.T) {
	specs, _, err := all.Registry(interop.Options{}).InspectSchema(native(toolformat.ChatFunction, `{"type":"function","function":{"name":"f","description":"old","x":1}}`))
	if err != nil {
		t.Fatal(err)
	}
	specs[0].Description = "new"
	out, _ := writeTools(t, registry(dialectname.OpenAIChat, specs), specs)
	sameJSON(t, out, `[{"type":"function","function":{"name":"f","description":"new","x":1}}]`)
}

func TestR4_DirectAdapterTakesPrecedence(t *testing.T) {
	tools := []dragoman.ToolSpec{{Source: &dragoman.ToolSource{Format: acmeTool, JSON: json.RawMessage(`{"acme":"f"}`)}}}
	c := dragoman.Contribution{
		Source: "acme", Schemas: []dragoman.SchemaAccessor{acmeAccessor{}},
		Adapters: []dragoman.Adapter{adapter{codes.SchemaObject, acmeTool, toolformat.AnthropicTool, func(in dragoman.AdapterInput) (json.RawMessage, dragoman.Report, error) {
			if string(in.Native) != `{"acme":"f"}` || in.Schema != nil {
				t.Errorf("the adapter got %+v", in)
			}
			var rep dragoman.Report
			rep.Add(dragoman.Lowered, dragoman.Info, "/x", "by acme itself")
			return json.RawMessage(`{"name":"direct"}`), rep, nil
		}}},
	}
	out, rep := writeTools(t, registry(dialectname.Anthropic, tools, contributed(c)), tools)
	sameJSON(t, out, `[{"name":"direct"}]`)
	if l := lost(t, rep, dragoman.Lowered, "by acme itself"); l.Path != "/tools/0/x" {
		t.Errorf("its report is placed at %q", l.Path)
	}
	// The canonical form is available even if the adapter does not lead to this wire.
	out, _ = writeTools(t, registry(dialectname.OpenAIChat, tools, contributed(c)), tools)
	mustContain(t, out, `"name":"f"`)

	conv, _, err := registry(dialectname.Anthropic, nil, contributed(c)).ConvertSchemas([]dragoman.Native{native(acmeTool, `{"acme":"f"}`)}, toolformat.AnthropicTool)
	if err != nil || string(conv[0].JSON) != `{"name":"direct"}` {
		t.Errorf("ConvertSchemas: %s, %v", conv, err)
	}
}

func TestR5_SourceSchemasNeverChange(t *testing.T) {
	sources := []string{
		`{"type":"object","properties":{"b":{"oneOf":[{"type":"string","format":"x"},{"const":9007199254740993}]},"a":{"type":["string","null"],"default":null}},"required":["b"]}`,
		`{"anyOf":[{"type":"object"},{"type":"object","additionalProperties":true}]}`,
		`{"$defs":{"T":{"type":"object","properties":{"n":{"$ref":"#/$defs/T"}}}},"$ref":"#/$defs/T"}`,
		`true`,
	}
	var tools []dragoman.ToolSpec
	for i, s := range sources {
		for _, strict := range []string{codes.StrictOff, codes.StrictOn, codes.StrictAuto} {
			tools = append(tools, dragoman.ToolSpec{Name: fmt.Sprintf("t%d_%s", i, strict), Parameters: json.RawMessage(s), Strict: strict})
		}
	}
	before := make([]dragoman.Fingerprint, len(tools))
	for i := range tools {
		before[i] = tools[i].Fingerprint()
	}
	for range 20 {
		for _, d := range threeDialects {
			writeTools(t, registry(d, tools), tools)
		}
	}
	for i := range tools {
		if tools[i].Fingerprint() != before[i] {
			t.Errorf("%s was changed: %s", tools[i].Name, tools[i].Parameters)
		}
		if string(tools[i].Parameters) != sources[i/3] {
			t.Errorf("%s is now %s", tools[i].Name, tools[i].Parameters)
		}
	}
}

func TestR6_DroppedToolHasNoFlags(t *testing.T) {
	no := false
	base := dragoman.Request{Model: "m", Messages: []dragoman.Message{dragoman.UserText("hi")}}
	encode := func(t *testing.T, edit func(*dragoman.Request)) map[string]json.RawMessage {
		t.Helper()
		req := base
		edit(&req)
		enc, err := openaichat.Codec{}.EncodeRequest(&req, dialect.EncodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		valid(t, enc.Body)
		var m map[string]json.RawMessage
		if err := json.Unmarshal(enc.Body, &m); err != nil {
			t.Fatal(err)
		}
		return m
	}
	t.Run("tools appear once", func(t *testing.T) {
		m := encode(t, func(r *dragoman.Request) { r.Tools = []dragoman.ToolSpec{fn("f"), fn("g")} })
		var tools []any
		if json.Unmarshal(m["tools"], &tools) != nil || len(tools) != 2 {
			t.Errorf("tools: %s", m["tools"])
		}
	})
	t.Run("the caller's choice stands", func(t *testing.T) {
		m := encode(t, func(r *dragoman.Request) {
			r.Tools, r.ToolChoice = []dragoman.ToolSpec{fn("f")}, &dragoman.ToolChoice{Mode: dragoman.ChoiceRequired}
		})
		if string(m["tool_choice"]) != `"required"` {
			t.Errorf("tool_choice: %s", m["tool_choice"])
		}
	})
	t.Run("no tools, no flags", func(t *testing.T) {
		for _, tools := range [][]dragoman.ToolSpec{
			nil,
			{{Kind: codes.ToolHosted, Name: "web_search", Source: &dragoman.ToolSource{Format: "anthropic.messages.web_search_20260209", JSON: json.RawMessage(`{"type":"web_search_20260209"}`)}}},
		} {
			m := encode(t, func(r *dragoman.Request) {
				r.Tools, r.ParallelToolCalls = tools, &no
				r.ToolChoice = &dragoman.ToolChoice{Mode: dragoman.ChoiceAuto, Tools: []dragoman.ToolRef{{Name: "f"}}}
			})
			for _, key := range []string{"tools", "tool_choice", "parallel_tool_calls"} {
				if v, ok := m[key]; ok {
					t.Errorf("%s: %s is sent without a tool", key, v)
				}
			}
		}
	})
}

func TestR8_CallKeepsItsShape(t *testing.T) {
	for _, n := range []dragoman.Native{
		native(toolformat.ChatFunctionCall, `{ "function":{"arguments":"{\"b\":1, \"a\":1.0}","name":"f"}, "id":"x","type":"function","new":[] }`),
		native(toolformat.ResponsesCustomCall, `{"type":"custom_tool_call","id":"ctc_1","call_id":"c","name":"p","input":"*** Begin","status":"completed"}`),
		native(toolformat.AnthropicToolUse, `{"type":"tool_use","id":"t","name":"f","input":{ "a" : 1 },"caller":{"type":"direct"}}`),
	} {
		out, rep, err := all.Registry(interop.Options{}).ConvertCalls([]dragoman.Native{n}, n.Format)
		if err != nil || len(out) != 1 || string(out[0].JSON) != string(n.JSON) {
			t.Errorf("%s: got %s, %v", n.Format, out, err)
		}
		lossless(t, rep)
	}
}

// acmeSpecs are two tools of which only the source is known.
func acmeSpecs() []dragoman.ToolSpec {
	return []dragoman.ToolSpec{
		{Source: &dragoman.ToolSource{Format: acmeTool, JSON: json.RawMessage(`{"acme":"find.it","does":"finds","takes":["what"]}`)}},
		{Source: &dragoman.ToolSource{Format: acmeTool, JSON: json.RawMessage(`{"acme":"patch","does":"patches","text":true}`)}},
	}
}

func TestR10_PluginFormatReachesEveryDialect(t *testing.T) {
	for _, d := range threeDialects {
		t.Run(string(d), func(t *testing.T) {
			tools := acmeSpecs()
			reg := registry(d, tools, contributed(dragoman.Contribution{Source: "acme", Schemas: []dragoman.SchemaAccessor{acmeAccessor{}}}))
			out, rep := writeTools(t, reg, tools)
			mustContain(t, out, `"finds"`)
			mustContain(t, out, `"what"`)
			mustContain(t, out, `"patches"`)
			mustNotContain(t, out, "acme")
			lost(t, rep, dragoman.Dropped, "read by acme")
			wire := reg.WireName("", "find.it")
			mustContain(t, out, `"`+wire+`"`)
			lost(t, rep, dragoman.Renamed, "find.it")
			if string(tools[0].Source.JSON) != `{"acme":"find.it","does":"finds","takes":["what"]}` {
				t.Errorf("the source was changed: %s", tools[0].Source.JSON)
			}
		})
	}
}

func TestR10_PluginToolCallsHaveItsNameAndKind(t *testing.T) {
	reg := registry(dialectname.Anthropic, acmeSpecs(), contributed(dragoman.Contribution{Source: "acme", Schemas: []dragoman.SchemaAccessor{acmeAccessor{}}}))
	c, _, err := reg.InspectCall(native(toolformat.AnthropicToolUse, `{"type":"tool_use","id":"t","name":"`+reg.WireName("", "find.it")+`","input":{"what":"x"}}`))
	if err != nil || c.Name != "find.it" {
		t.Errorf("%+v, %v", c, err)
	}
	c, _, err = reg.InspectCall(native(toolformat.AnthropicToolUse, `{"type":"tool_use","id":"t","name":"patch","input":{"input":"*** x"}}`))
	if err != nil || c.Payload != codes.PayloadText || c.Arguments != "*** x" {
		t.Errorf("a freeform plugin tool was called as %+v, %v", c, err)
	}
}

func TestR10_OneSourceMayDefineSeveralTools(t *testing.T) {
	tools := []dragoman.ToolSpec{
		{Source: &dragoman.ToolSource{Format: acmeTool, JSON: json.RawMessage(`[{"acme":"a"},{"acme":"b"}]`)}},
		fn("c"),
	}
	reg := registry(dialectname.Anthropic, tools, contributed(dragoman.Contribution{Source: "acme", Schemas: []dragoman.SchemaAccessor{acmeAccessor{}}}))
	out, _ := writeTools(t, reg, tools)
	for _, n := range []string{"a", "b", "c"} {
		mustContain(t, out, `"name":"`+n+`"`)
	}
}

func TestR10_AcceptedPluginFormatPassesThrough(t *testing.T) {
	tools := acmeSpecs()
	reg := registry(dialectname.OpenAIChat, tools, contributed(dragoman.Contribution{
		Source: "acme", Schemas: []dragoman.SchemaAccessor{acmeAccessor{}}, Accepts: []dragoman.Format{acmeTool},
	}))
	out, rep := writeTools(t, reg, tools)
	if want := "[" + string(tools[0].Source.JSON) + "," + string(tools[1].Source.JSON) + "]"; out != want {
		t.Errorf("got  %s\nwant %s", out, want)
	}
	lossless(t, rep)
}

func TestR10_AdapterWritesAPluginFormat(t *testing.T) {
	reg := registry(dialectname.OpenAIChat, nil, contributed(dragoman.Contribution{
		Source: "acme",
		Adapters: []dragoman.Adapter{adapter{codes.SchemaObject, "", acmeTool, func(in dragoman.AdapterInput) (json.RawMessage, dragoman.Report, error) {
			obj, err := json.Marshal(map[string]string{"acme": in.Schema.Name, "does": in.Schema.Description})
			return obj, dragoman.Report{}, err
		}}},
	}))
	out, _, err := reg.ConvertSchemas([]dragoman.Native{
		native(toolformat.AnthropicTool, `{"name":"f","description":"d","input_schema":{}}`),
		native(toolformat.MCPTool, `{"name":"g","inputSchema":{}}`),
	}, acmeTool)
	if err != nil || len(out) != 2 {
		t.Fatalf("%s, %v", out, err)
	}
	sameJSON(t, string(out[0].JSON), `{"acme":"f","does":"d"}`)
	sameJSON(t, string(out[1].JSON), `{"acme":"g","does":""}`)
}

func TestR10_UnreadableSourceDropsOnlyItsTool(t *testing.T) {
	tools := []dragoman.ToolSpec{{Source: &dragoman.ToolSource{Format: acmeTool, JSON: json.RawMessage(`{"acme":5}`)}}, fn("good")}
	reg := registry(dialectname.OpenAIChat, tools, contributed(dragoman.Contribution{Source: "acme", Schemas: []dragoman.SchemaAccessor{acmeAccessor{}}}))
	out, rep := writeTools(t, reg, tools)
	mustContain(t, out, "good")
	if l := lost(t, rep, dragoman.Dropped, "could not be read"); l.Severity != dragoman.Serious || l.Path != "/tools/0" {
		t.Errorf("reported as %v", l)
	}
}

func TestR10_ContributedCallsAndResultsAreReadAndWritten(t *testing.T) {
	reg := registry(dialectname.OpenAIChat, []dragoman.ToolSpec{fn("a.b")}, contributed(dragoman.Contribution{
		Source:  "acme",
		Calls:   []dragoman.CallAccessor{callAccessor{"acme.call", &dragoman.ToolCall{ID: "c", Name: "f", Arguments: `{"a":1,"a":2}`}}},
		Results: []dragoman.ResultAccessor{resultAccessor{"acme.result", &dragoman.ToolResult{CallID: "c", Content: []dragoman.Part{text("ok")}}}},
		Adapters: []dragoman.Adapter{
			constant(codes.CallObject, "", "acme.call2", `{"written":"call"}`),
			constant(codes.ResultObject, "", "acme.result2", `{"written":"result"}`),
		},
	}))
	c, _, err := reg.InspectCall(native("acme.call", `{}`))
	if err != nil || c.Problem == nil || c.Problem.Code != codes.ProblemDuplicateKey {
		t.Errorf("a contributed call is not judged like any other: %+v, %v", c, err)
	}
	r, _, err := reg.InspectResult(native("acme.result", `{}`))
	if err != nil || r.Text() != "ok" {
		t.Errorf("%+v, %v", r, err)
	}
	calls, _, err := reg.ConvertCalls([]dragoman.Native{native("acme.call", `{}`)}, "acme.call2")
	if err != nil || string(calls[0].JSON) != `{"written":"call"}` {
		t.Errorf("%s, %v", calls, err)
	}
	results, _, err := reg.ConvertResults([]dragoman.Native{native("acme.result", `{}`)}, "acme.result2")
	if err != nil || string(results[0].JSON) != `{"written":"result"}` {
		t.Errorf("%s, %v", results, err)
	}
}

func TestR10_EmptyAccessorResultIsAnError(t *testing.T) {
	reg := registry(dialectname.OpenAIChat, nil, contributed(dragoman.Contribution{
		Source: "acme", Calls: []dragoman.CallAccessor{callAccessor{"acme.call", nil}}, Results: []dragoman.ResultAccessor{resultAccessor{"acme.result", nil}},
	}))
	if _, _, err := reg.InspectCall(native("acme.call", `{}`)); err == nil {
		t.Error("a call out of nothing")
	}
	if _, _, err := reg.InspectResult(native("acme.result", `{}`)); err == nil {
		t.Error("a result out of nothing")
	}
}

func TestR11_StrictModeMakesLossesAnError(t *testing.T) {
	_, rep, err := all.Registry(interop.Options{}).ConvertSchemas([]dragoman.Native{
		native(toolformat.ResponsesFunction, `{"type":"function","name":"f","parameters":{},"defer_loading":true,"output_schema":{}}`),
		native("anthropic.messages.web_search_20260209", `{"type":"web_search_20260209","name":"web_search"}`),
	}, toolformat.ChatFunction)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		limit dragoman.Severity
		least int
	}{{dragoman.Info, 3}, {dragoman.Warn, 2}, {dragoman.Serious, 1}} {
		var le *dragoman.LossError
		if err := rep.Err(tc.limit); !errors.As(err, &le) || len(le.Losses) < tc.least {
			t.Errorf("at %v: %v", tc.limit, err)
		}
		for _, l := range le.Losses {
			if l.Severity < tc.limit || l.Kind == "" || l.Detail == "" || !strings.HasPrefix(l.Path, "/") {
				t.Errorf("at %v: a loss without kind, place or words: %+v", tc.limit, l)
			}
		}
	}
	if err := (dragoman.Report{}).Err(dragoman.Info); err != nil {
		t.Errorf("an empty report is an error: %v", err)
	}
}

func TestR11_MissingCallIDIsReported(t *testing.T) {
	call := dragoman.Native{Format: toolformat.OllamaToolCall, JSON: json.RawMessage(`{"function":{"name":"f","arguments":{}}}`)}
	result := dragoman.Native{Format: toolformat.OllamaResult, JSON: json.RawMessage(`{"role":"tool","tool_name":"f","content":"out"}`)}
	for to, want := range map[dragoman.Format]int{
		toolformat.ChatFunctionCall: 1, toolformat.ResponsesFunctionCall: 1, toolformat.AnthropicToolUse: 1, toolformat.BedrockToolUse: 1,
		toolformat.GeminiFunctionCall: 0, toolformat.OllamaToolCall: 0,
	} {
		if _, rep, err := all.Registry(interop.Options{}).ConvertCalls([]dragoman.Native{call}, to); err != nil || len(rep.Losses) != want || (rep.Err(dragoman.Warn) != nil) != (want == 1) {
			t.Errorf("a call as %s: %v, %v", to, rep, err)
		}
	}
	for to, want := range map[dragoman.Format]int{
		toolformat.ChatResult: 1, toolformat.ResponsesResult: 1, toolformat.AnthropicResult: 1, toolformat.BedrockResult: 1,
		toolformat.GeminiResult: 0, toolformat.OllamaResult: 0,
	} {
		if _, rep, err := all.Registry(interop.Options{}).ConvertResults([]dragoman.Native{result}, to); err != nil || len(rep.Losses) != want || (rep.Err(dragoman.Warn) != nil) != (want == 1) {
			t.Errorf("a result as %s: %v, %v", to, rep, err)
		}
	}
}
