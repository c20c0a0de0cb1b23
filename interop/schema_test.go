package interop_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect/all"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/toolformat"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/testkit/gen"
	"github.com/dragoman-go/dragoman/interop"
	"github.com/dragoman-go/dragoman/targets"
)

const (
	fitsStrict   = `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`
	missesStrict = `{"type":"object","properties":{"a":{"type":"string"}}}`
	neverStrict  = `{"type":"object","properties":{"m":{"type":"object","additionalProperties":{"type":"string"}}},"required":["m"],"additionalProperties":false}`
)

func TestQuirkA25_StrictOnlyIfTheAuthorSetIt(t *testing.T) {
	for _, tc := range []struct {
		name   string
		strict string
		schema string
		caps   targets.Capabilities
		want   bool
		loss   string
	}{
		{"off", codes.StrictOff, fitsStrict, targets.Capabilities{}, false, ""},
		{"on", codes.StrictOn, fitsStrict, targets.Capabilities{}, true, ""},
		{"on, and lowered to fit", codes.StrictOn, missesStrict, targets.Capabilities{}, true, "*"},
		{"on, but it cannot fit", codes.StrictOn, neverStrict, targets.Capabilities{}, false, "not strict"},
		{"on, but the server rejects the flag", codes.StrictOn, fitsStrict, targets.Capabilities{NoStrict: true}, false, "rejects a strict flag"},
		{"auto, fits as written", codes.StrictAuto, fitsStrict, targets.Capabilities{}, true, ""},
		{"auto, would have to be changed", codes.StrictAuto, missesStrict, targets.Capabilities{}, false, ""},
		{"auto, cannot fit", codes.StrictAuto, neverStrict, targets.Capabilities{}, false, ""},
	} {
		for _, d := range threeDialects {
			t.Run(tc.name+"/"+string(d), func(t *testing.T) {
				tools := []dragoman.ToolSpec{{Name: "f", Parameters: json.RawMessage(tc.schema), Strict: tc.strict}}
				out, rep := writeTools(t, registry(d, tools, withCaps(tc.caps)), tools)
				if got := strings.Contains(out, `"strict":true`); got != tc.want {
					t.Errorf("strict is %v: %s", got, out)
				}
				// OpenAI Responses treats an absent flag as a request for strict mode.
				if explicit := strings.Contains(out, `"strict":false`); explicit != (d == dialectname.OpenAIResponses && !tc.want && !tc.caps.NoStrict) {
					t.Errorf("an explicit false is %v: %s", explicit, out)
				}
				switch tc.loss {
				case "*":
				case "":
					lossless(t, rep)
				default:
					found := false
					for _, l := range rep.Losses {
						found = found || strings.Contains(l.Detail, tc.loss)
					}
					if !found {
						t.Errorf("no %q in\n%s", tc.loss, rep)
					}
				}
				if tc.strict == codes.StrictAuto && tc.want && !strings.Contains(out, tc.schema) {
					t.Errorf("auto changed the schema: %s", out)
				}
			})
		}
	}
}

func TestDecision8_AbsentStrictFlagStaysAbsent(t *testing.T) {
	specs, _, err := all.Registry(interop.Options{}).InspectSchema(native(toolformat.ResponsesFunction, `{"type":"function","name":"f","parameters":`+fitsStrict+`}`))
	if err != nil {
		t.Fatal(err)
	}
	specs[0].Description = "edited, so that it is re-encoded"
	out, _ := writeTools(t, registry(dialectname.OpenAIResponses, specs), specs)
	mustNotContain(t, out, "strict")
	out, _ = writeTools(t, registry(dialectname.OpenAIChat, specs), specs)
	mustNotContain(t, out, "strict")
	chat, _, err := all.Registry(interop.Options{}).InspectSchema(native(toolformat.ChatFunction, `{"type":"function","function":{"name":"f","parameters":`+fitsStrict+`}}`))
	if err != nil {
		t.Fatal(err)
	}
	out, _ = writeTools(t, registry(dialectname.OpenAIResponses, chat), chat)
	mustContain(t, out, `"strict":false`)
}

func TestQuirkA37_ToolsAreWrittenDeterministically(t *testing.T) {
	var tools []dragoman.ToolSpec
	for i := range 30 {
		tools = append(tools, dragoman.ToolSpec{
			Name: fmt.Sprintf("tool.%d", i), Namespace: []string{"", "a", "b.c"}[i%3], Kind: []string{codes.ToolFunction, codes.ToolFreeform}[i%2],
			Parameters: json.RawMessage(`{"type":"object","properties":{"z":{"oneOf":[{"type":"string"},{"type":"null"}]},"a":{}},"required":["z"]}`),
			Strict:     []string{codes.StrictOff, codes.StrictOn, codes.StrictAuto}[i%3],
		})
	}
	for _, d := range threeDialects {
		first, firstRep := writeTools(t, registry(d, tools), tools)
		for range 50 {
			again, rep := writeTools(t, registry(d, tools), tools)
			if again != first {
				t.Fatalf("%s: two runs differ\n%s\n%s", d, first, again)
			}
			if rep.String() != firstRep.String() {
				t.Fatalf("%s: two reports differ\n%s\n%s", d, firstRep, rep)
			}
		}
	}
}

func TestQuirkA38_KeyOrderAndTextOfASchemaAreKept(t *testing.T) {
	const params = `{"type":"object","properties":{"z":{"type":"number","minimum":1.50,"description":"<b> & é"},"a":{"type":"string"}},"required":["z"]}`
	for _, d := range threeDialects {
		tools := []dragoman.ToolSpec{{Name: "f", Parameters: json.RawMessage(params)}}
		out, _ := writeTools(t, registry(d, tools), tools)
		mustContain(t, out, params)
	}
}

func TestQuirkA45_InvalidToolIsDroppedAlone(t *testing.T) {
	for name, bad := range map[string]dragoman.ToolSpec{
		"no name":                {Parameters: json.RawMessage(`{"type":"object"}`)},
		"not JSON":               {Name: "bad", Parameters: json.RawMessage(`{"type":`)},
		"not a schema":           {Name: "bad", Parameters: json.RawMessage(`5`)},
		"another provider's":     {Kind: codes.ToolHosted, Name: "bad", Source: &dragoman.ToolSource{Format: "gemini.generate_content.google_search", JSON: json.RawMessage(`{"google_search":{}}`)}},
		"hosted, with no source": {Kind: codes.ToolHosted, Name: "bad"},
	} {
		for _, d := range threeDialects {
			t.Run(name+"/"+string(d), func(t *testing.T) {
				tools := []dragoman.ToolSpec{fn("before"), bad, fn("after")}
				out, rep := writeTools(t, registry(d, tools), tools)
				mustContain(t, out, `"before"`)
				mustContain(t, out, `"after"`)
				mustNotContain(t, out, `"bad"`)
				found := false
				for _, l := range rep.Losses {
					found = found || l.Kind == dragoman.Dropped && l.Path == "/tools/1" && l.Detail != ""
				}
				if !found {
					t.Errorf("dropped without a reason:\n%s", rep)
				}
			})
		}
	}
}

func TestQuirkA45_InvalidToolOfANamespaceIsDroppedAlone(t *testing.T) {
	tools := []dragoman.ToolSpec{
		{Namespace: "n", Name: "bad", Parameters: json.RawMessage(`5`)},
		{Namespace: "n", Name: "good"},
		{Namespace: "m", Name: "worse", Parameters: json.RawMessage(`5`)},
	}
	out, rep := writeTools(t, registry(dialectname.OpenAIResponses, tools), tools)
	mustContain(t, out, `"good"`)
	mustNotContain(t, out, `"m"`) // no namespace without a tool
	if len(rep.Losses) < 2 {
		t.Errorf("report:\n%s", rep)
	}
}

func TestNamespace_ToolsOfANamespaceAreGrouped(t *testing.T) {
	tools := []dragoman.ToolSpec{
		{Namespace: "crm", NamespaceDescription: "customers", Name: "list"},
		{Namespace: "crm", NamespaceDescription: "customers", Name: "note", Kind: codes.ToolFreeform},
		{Name: "bare"},
	}
	out, rep := writeTools(t, registry(dialectname.OpenAIResponses, tools), tools)
	sameJSON(t, out, `[{"type":"namespace","name":"crm","description":"customers","tools":[
		{"type":"function","name":"list","parameters":{"type":"object","properties":{}},"strict":false},
		{"type":"custom","name":"note"}]},
		{"type":"function","name":"bare","parameters":{"type":"object","properties":{}},"strict":false}]`)
	lossless(t, rep)
	out, rep = writeTools(t, registry(dialectname.Anthropic, tools), tools)
	mustContain(t, out, `"crm__list"`)
	lost(t, rep, dragoman.Renamed, "crm.list")
	lost(t, rep, dragoman.Dropped, "description of namespace")
}

func TestNamespace_RoundTripKeepsTheBytes(t *testing.T) {
	const obj = `{"type":"namespace","name":"crm","description":"d","tools":[{"strict":false,"type":"function","name":"list","parameters":{}}],"new":1}`
	reg := registry(dialectname.OpenAIResponses, nil)
	specs, _, err := reg.InspectSchema(native(toolformat.ResponsesNamespace, obj))
	if err != nil {
		t.Fatal(err)
	}
	out, rep := writeTools(t, registry(dialectname.OpenAIResponses, specs), specs)
	if out != "["+obj+"]" {
		t.Errorf("got  %s\nwant [%s]", out, obj)
	}
	lossless(t, rep)
}

func TestDeferred_UnsupportedFlagIsReported(t *testing.T) {
	tool := fn("f")
	tool.Deferred = true
	tools := []dragoman.ToolSpec{tool}
	for _, d := range []dragoman.Dialect{dialectname.OpenAIResponses, dialectname.Anthropic} {
		out, rep := writeTools(t, registry(d, tools), tools)
		mustContain(t, out, `"defer_loading":true`)
		lossless(t, rep)
		out, rep = writeTools(t, registry(d, tools, withCaps(targets.Capabilities{NoDeferred: true})), tools)
		mustNotContain(t, out, "defer_loading")
		lost(t, rep, dragoman.Lowered, "deferred")
	}
	out, rep := writeTools(t, registry(dialectname.OpenAIChat, tools), tools)
	mustNotContain(t, out, "defer")
	lost(t, rep, dragoman.Lowered, "deferred")
}

func TestQuirkD31_DeferredToolHasNoCacheMarker(t *testing.T) {
	tool := fn("f")
	tool.Deferred, tool.Cache = true, &dragoman.CacheHint{}
	out, rep := writeTools(t, registry(dialectname.Anthropic, nil), []dragoman.ToolSpec{tool})
	mustNotContain(t, out, "cache_control")
	lost(t, rep, dragoman.Dropped, "deferred tool")
}

func TestHosted_ProviderToolIsSentToItsOwnDialectOnly(t *testing.T) {
	for d, obj := range map[dragoman.Dialect]string{
		dialectname.OpenAIResponses: `{"type":"web_search","filters":{"allowed_domains":["x"]}}`,
		dialectname.Anthropic:       `{"type":"web_search_20250305","name":"web_search"}`,
		dialectname.OpenAIChat:      `{"type":"google_search"}`,
	} {
		specs, _, err := registry(d, nil).InspectSchema(dragoman.Native{Format: toolFormat(d, json.RawMessage(obj)), JSON: json.RawMessage(obj)})
		if err != nil || len(specs) != 1 || specs[0].Kind != codes.ToolHosted || specs[0].Name == "" {
			t.Fatalf("%s: %+v, %v", obj, specs, err)
		}
		why := "run by its own provider"
		if d == dialectname.OpenAIChat { // it defines no tools that it runs
			why = "has a type that its dialect does not define"
		}
		for _, to := range threeDialects {
			out, rep := writeTools(t, registry(to, specs), specs)
			if to == d {
				if out != "["+obj+"]" {
					t.Errorf("got %s, want [%s]", out, obj)
				}
				lossless(t, rep)
			} else if out != "[]" {
				t.Errorf("%s reached %s: %s", obj, to, out)
			} else if l := lost(t, rep, dragoman.Dropped, why); l.Severity != dragoman.Serious {
				t.Errorf("only %v", l)
			}
		}
	}
}

func TestUnknown_FieldsOfADefinitionAreKeptOrReported(t *testing.T) {
	for d, obj := range map[dragoman.Dialect]string{
		dialectname.OpenAIChat:      `{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{}},"x":1},"y":{"z":2}}`,
		dialectname.OpenAIResponses: `{"type":"function","name":"f","parameters":{"type":"object","properties":{}},"strict":false,"y":{"z":2},"x":1}`,
		dialectname.Anthropic:       `{"name":"f","input_schema":{"type":"object","properties":{}},"y":{"z":2},"x":1}`,
	} {
		reg := registry(d, nil)
		specs, _, err := reg.InspectSchema(native(functionFormat(d), obj))
		if err != nil {
			t.Fatal(err)
		}
		specs[0].Source = nil
		out, rep := writeTools(t, registry(d, specs), specs)
		sameJSON(t, out, "["+obj+"]")
		lossless(t, rep)
		for _, other := range threeDialects {
			if other != d {
				_, rep := writeTools(t, registry(other, specs), specs)
				if err := rep.Err(dragoman.Warn); err == nil || len(rep.Losses) < 2 {
					t.Errorf("%s to %s lost two members, but says\n%s", d, other, rep)
				}
			}
		}
	}
}

func TestUnknown_GrammarKeepsUnknownFields(t *testing.T) {
	for d, objs := range map[dragoman.Dialect][]string{
		dialectname.OpenAIChat: {
			`{"type":"custom","custom":{"name":"f","format":{"type":"grammar","grammar":{"syntax":"lark","definition":"x","new":1},"newer":2}}}`,
			`{"type":"custom","custom":{"name":"f","format":{"type":"jsonata","program":"$"}}}`,
		},
		dialectname.OpenAIResponses: {
			`{"type":"custom","name":"f","format":{"type":"grammar","syntax":"lark","definition":"x","new":1}}`,
			`{"type":"custom","name":"f","format":{"type":"jsonata","program":"$"}}`,
		},
	} {
		for _, obj := range objs {
			specs, _, err := registry(d, nil).InspectSchema(dragoman.Native{Format: toolFormat(d, json.RawMessage(obj)), JSON: json.RawMessage(obj)})
			if err != nil {
				t.Fatal(err)
			}
			specs[0].Source = nil
			out, rep := writeTools(t, registry(d, specs), specs)
			sameJSON(t, out, "["+obj+"]")
			lossless(t, rep)
		}
	}
	_, _, err := all.Registry(interop.Options{}).InspectSchema(native(toolformat.ChatCustom, `{"type":"custom","custom":{"name":"f","format":{"type":"grammar","grammar":5}}}`))
	if err == nil {
		t.Error("a grammar that is a number was read")
	}
}

func TestMCP_ToolRoundTrips(t *testing.T) {
	yes, no := true, false
	in := dragoman.ToolSpec{
		Name: "f.g", Description: "d", Parameters: json.RawMessage(`{"type":"object","properties":{"a":{}}}`), OutputSchema: json.RawMessage(`{"type":"object"}`),
		Annotations: dragoman.Annotations{Title: "F", ReadOnly: &yes, Destructive: &no},
	}
	reg := all.Registry(interop.Options{})
	chat, rep, err := reg.ConvertSchemas([]dragoman.Native{native(toolformat.MCPTool,
		`{"name":"f.g","description":"d","inputSchema":{"type":"object","properties":{"a":{}}},"outputSchema":{"type":"object"},"annotations":{"title":"F","readOnlyHint":true,"destructiveHint":false}}`)}, toolformat.ChatFunction)
	if err != nil || len(chat) != 1 {
		t.Fatal(chat, err)
	}
	lost(t, rep, dragoman.Dropped, "annotations")
	lost(t, rep, dragoman.Dropped, "output schema")
	specs, _, err := reg.InspectSchema(native(toolformat.MCPTool, `{"name":"f.g","description":"d","inputSchema":{"type":"object","properties":{"a":{}}},"outputSchema":{"type":"object"},"annotations":{"title":"F","readOnlyHint":true,"destructiveHint":false}}`))
	if err != nil || specs[0].Fingerprint() != in.Fingerprint() {
		t.Errorf("%+v, %v", specs, err)
	}
	back, _, err := reg.ConvertSchemas(chat, toolformat.MCPTool)
	if err != nil {
		t.Fatal(err)
	}
	sameJSON(t, string(back[0].JSON), `{"name":"f.g","description":"d","inputSchema":{"type":"object","properties":{"a":{}}}}`)
}

// Whatever the tools are, the output is JSON without duplicate keys, every element has a valid
// name, and every missing tool is in the report.
func TestTools_AnyToolsGiveAValidListForEveryTarget(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		tools := rapid.SliceOfN(gen.Options{}.ToolSpec(), 0, 6).Draw(rt, "tools")
		for _, d := range threeDialects {
			out, rep := writeTools(t, registry(d, tools), tools)
			valid(t, []byte(out))
			var elems []map[string]json.RawMessage
			if err := json.Unmarshal([]byte(out), &elems); err != nil {
				rt.Fatal(err)
			}
			if len(elems) < len(tools) && d != dialectname.OpenAIResponses && len(rep.Losses) == 0 {
				// An exact repetition is not a loss.
				seen := map[string]bool{}
				for i := range tools {
					seen[tools[i].QualifiedName()] = true
				}
				if len(seen) > len(elems) {
					rt.Fatalf("%d tools, %d written, and no word of the rest\n%s", len(tools), len(elems), out)
				}
			}
		}
	})
}

func TestHosted_LossNamesWhoRunsTheTool(t *testing.T) {
	for d, objs := range map[dragoman.Dialect][]string{
		dialectname.Anthropic: {
			`{"type":"bash_20250124","name":"bash"}`, `{"type":"text_editor_20250728","name":"str_replace_based_edit_tool"}`,
			`{"type":"memory_20250818","name":"memory"}`, `{"type":"computer_toolset_20260801","configs":{}}`,
		},
		dialectname.OpenAIResponses: {`{"type":"local_shell"}`, `{"type":"apply_patch"}`},
	} {
		for _, obj := range objs {
			specs, _, err := registry(d, nil).InspectSchema(dragoman.Native{Format: toolFormat(d, json.RawMessage(obj)), JSON: json.RawMessage(obj)})
			if err != nil {
				t.Fatal(err)
			}
			_, rep := writeTools(t, registry(dialectname.Gemini, specs), specs)
			if l := lost(t, rep, dragoman.Dropped, "run by the client"); l.Severity != dragoman.Serious {
				t.Errorf("only %v", l)
			}
		}
	}
}

func TestQuirkB31_NumbersThatGeminiChangesAreReported(t *testing.T) {
	const at = "/messages/0/parts/0"
	for args, want := range map[string]int{`{"n":9007199254740993}`: 1, `{"n":9007199254740992,"s":"9007199254740993"}`: 0} {
		rep := new(dragoman.Report)
		var w jsonwire.Writer
		c := &dragoman.ToolCall{ID: "c", Name: "f", Arguments: args}
		if err := registry(dialectname.Gemini, nil).WriteCall(&w, c, extra.At(at), rep); err != nil {
			t.Fatal(err)
		}
		if len(rep.Losses) != want {
			t.Errorf("%s: %v", args, rep.Losses)
		}
		if want > 0 {
			if l := lost(t, *rep, dragoman.Lowered, "9007199254740993 is beyond 2^53"); l.Severity != dragoman.Warn || l.Path != at+"/arguments" {
				t.Error(l)
			}
		}
	}
}

func TestServerSubsetOfJSONSchemaIsUsed(t *testing.T) {
	// A reference, which OpenAI accepts and an unknown server may not.
	tool := dragoman.ToolSpec{Name: "f", Parameters: json.RawMessage(`{"type":"object","properties":{"p":{"$ref":"#/$defs/p"}},"$defs":{"p":{"type":"string"}}}`)}
	authored := tool
	authored.Source = &dragoman.ToolSource{
		Format: toolformat.ChatFunction, JSON: json.RawMessage(`{"type":"function","function":{"name":"f","parameters":` + string(tool.Parameters) + `}}`),
	}
	with := func(name string) func(*interop.Options) {
		return func(o *interop.Options) { o.Target.Caps.ToolSchema = name }
	}
	for what, spec := range map[string]dragoman.ToolSpec{"made": tool, "as it came": authored} {
		specs := []dragoman.ToolSpec{spec}
		own, _ := writeTools(t, registry(dialectname.OpenAIChat, specs), specs)
		if !strings.Contains(own, "$ref") {
			t.Errorf("%s: the dialect's own subset: %s", what, own)
		}
		out, rep := writeTools(t, registry(dialectname.OpenAIChat, specs, with("compat.tool")), specs)
		if strings.Contains(out, "$ref") || !strings.Contains(out, `"p":{"type":"string"}`) {
			t.Errorf("%s: %s\n%s", what, out, rep)
		}
		out, rep = writeTools(t, registry(dialectname.OpenAIChat, specs, with("none.such")), specs)
		if out != own || !strings.Contains(rep.String(), `"none.such"`) {
			t.Errorf("%s: %s\n%s", what, out, rep)
		}
	}
}
