package interop_test

import (
	"encoding/json"
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

func chatCall(args string) dragoman.Native {
	b, _ := json.Marshal(args)
	return native(toolformat.ChatFunctionCall, `{"id":"c","type":"function","function":{"name":"f","arguments":`+string(b)+`}}`)
}

func responsesCall(args string) dragoman.Native {
	b, _ := json.Marshal(args)
	return native(toolformat.ResponsesFunctionCall, `{"type":"function_call","call_id":"c","name":"f","arguments":`+string(b)+`}`)
}

func TestR7_SanitizeReplacesOnlyInvalidJSON(t *testing.T) {
	for _, tc := range []struct {
		name, args string
		clean      bool
	}{
		{"an object", `{"a":1}`, false},
		{"an object with odd spacing", ` { "a" : 1.0 } `, false},
		{"an array", `[1]`, false},
		{"a number", `5`, false},
		{"a string", `"x"`, false},
		{"null", `null`, false},
		{"an empty string in quotes", `""`, false},
		{"a duplicate key, which is returned to its origin unchanged", `{"a":1,"a":2}`, false},
		{"cut off", `{"a":`, true},
		{"two values", `{"a":1}{"a":2}`, true},
		{"a word", `nope`, true},
		{"nothing", ``, true},
		{"blanks", " \n", true},
		{"single quotes", `{'a':1}`, true},
	} {
		for _, in := range []dragoman.Native{chatCall(tc.args), responsesCall(tc.args)} {
			t.Run(tc.name+"/"+string(in.Format), func(t *testing.T) {
				before := string(in.JSON)
				out, rep := all.Registry(interop.Options{}).SanitizeCall(in)
				if string(in.JSON) != before {
					t.Fatalf("the input was changed to %s", in.JSON)
				}
				want := before
				if tc.clean {
					quoted, _ := json.Marshal(tc.args)
					want = strings.Replace(before, string(quoted), `"{}"`, 1)
					if l := lost(t, rep, dragoman.Lowered, "written as {}"); !strings.HasSuffix(l.Path, "/arguments") {
						t.Errorf("reported at %q", l.Path)
					}
				} else {
					lossless(t, rep)
				}
				if string(out.JSON) != want || out.Format != in.Format {
					t.Errorf("got  %s\nwant %s", out.JSON, want)
				}
				if len(out.JSON) > 0 && len(in.JSON) > 0 && &out.JSON[0] == &in.JSON[0] {
					t.Error("the copy shares the input's bytes")
				}
			})
		}
	}
}

func TestR7_SanitizeKeepsTextAndUnknownShapes(t *testing.T) {
	for _, in := range []dragoman.Native{
		native(toolformat.ChatCustomCall, `{"id":"c","type":"custom","custom":{"name":"f","input":"{not json"}}`),
		native(toolformat.ResponsesCustomCall, `{"type":"custom_tool_call","call_id":"c","name":"f","input":"{not json"}`),
		native(toolformat.AnthropicToolUse, `{"type":"tool_use","id":"c","name":"f","input":{"a":1,"a":2}}`),
		native(toolformat.AnthropicToolUse, `{"type":"tool_use","id":"c","name":"f","input":"{not json"}`),
		native(toolformat.ChatFunctionCall, `{"id":"c","type":"function","function":{"name":"f","arguments":{"a":1}}}`),
		native(toolformat.ChatFunctionCall, `{"id":"c","function":{"name":"f"}}`),
		native(toolformat.ChatFunctionCall, `["not","a","call"]`),
		native(toolformat.ChatFunctionCall, `{broken`),
		native("acme.call", `{"arguments":"{bad"}`),
		native(toolformat.ChatFunctionCall, ``),
	} {
		out, rep := all.Registry(interop.Options{}).SanitizeCall(in)
		if string(out.JSON) != string(in.JSON) {
			t.Errorf("%s became %s", in.JSON, out.JSON)
		}
		lossless(t, rep)
	}
}

func TestR7_SanitizeChecksTheWireObject(t *testing.T) {
	// A freeform tool would accept this text, but the wire would not.
	reg := registry(dialectname.OpenAIChat, []dragoman.ToolSpec{{Kind: codes.ToolFreeform, Name: "f"}})
	out, _ := reg.SanitizeCall(chatCall(`*** Begin Patch`))
	mustContain(t, string(out.JSON), `"{}"`)
}

func TestR7_DuplicateKeyIsAProblemAndWrittenAsEmptyObject(t *testing.T) {
	in := chatCall(`{"path":"/tmp","path":"/"}`)
	c, _, err := all.Registry(interop.Options{}).InspectCall(in)
	if err != nil || c.Problem == nil || c.Problem.Code != codes.ProblemDuplicateKey {
		t.Fatalf("%+v, %v", c, err)
	}
	if c.Arguments != `{"path":"/tmp","path":"/"}` {
		t.Errorf("the raw text is gone: %q", c.Arguments)
	}
	mustContain(t, c.Problem.Message, "repeat")
	for _, to := range []dragoman.Format{toolformat.AnthropicToolUse, toolformat.ResponsesFunctionCall} {
		out, rep, err := all.Registry(interop.Options{}).ConvertCalls([]dragoman.Native{in}, to)
		if err != nil {
			t.Fatal(err)
		}
		mustNotContain(t, string(out[0].JSON), "tmp")
		mustContain(t, string(out[0].JSON), "{}")
		lost(t, rep, dragoman.Lowered, "written as {}")
	}
	// Of the duplicate field in the object around it the last is kept, and the call does not
	// run.
	c, _, err = all.Registry(interop.Options{}).InspectCall(native(toolformat.ChatFunctionCall, `{"id":"a","id":"b","function":{"name":"f","name":"g","arguments":"{}"}}`))
	if err != nil || c.ID != "b" || c.Name != "g" || c.Problem == nil {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestQuirkB2_NoArgumentsAreAnEmptyObject(t *testing.T) {
	in := map[string]dragoman.Native{
		"empty string":   chatCall(``),
		"blanks":         chatCall("  "),
		"null in quotes": chatCall(`null`),
		"empty object":   chatCall(`{}`),
		"quoted empty":   chatCall(`""`),
		"null":           native(toolformat.ChatFunctionCall, `{"id":"c","function":{"name":"f","arguments":null}}`),
		"missing":        native(toolformat.ChatFunctionCall, `{"id":"c","function":{"name":"f"}}`),
		"an object":      native(toolformat.ChatFunctionCall, `{"id":"c","function":{"name":"f","arguments":{}}}`),
		"no input":       native(toolformat.AnthropicToolUse, `{"type":"tool_use","id":"c","name":"f"}`),
	}
	want := map[dragoman.Format]string{
		toolformat.ChatFunctionCall:      `{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}`,
		toolformat.ResponsesFunctionCall: `{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}`,
		toolformat.AnthropicToolUse:      `{"type":"tool_use","id":"c","name":"f","input":{}}`,
	}
	for name, n := range in {
		t.Run(name, func(t *testing.T) {
			c, rep, err := all.Registry(interop.Options{}).InspectCall(n)
			if err != nil || c.Problem != nil {
				t.Fatalf("%+v, %v", c, err)
			}
			lossless(t, rep)
			for f, obj := range want {
				if f == n.Format {
					continue // unchanged
				}
				out, _, err := all.Registry(interop.Options{}).ConvertCalls([]dragoman.Native{n}, f)
				if err != nil {
					t.Fatal(err)
				}
				sameJSON(t, string(out[0].JSON), obj)
			}
		})
	}
}

func TestQuirkB3_DoubleEncodedArgumentsAreUnwrappedOnce(t *testing.T) {
	c, rep, err := all.Registry(interop.Options{}).InspectCall(chatCall(`"{\"a\":1}"`))
	if err != nil || c.Arguments != `{"a":1}` || c.Problem != nil {
		t.Fatalf("%+v, %v", c, err)
	}
	lost(t, rep, dragoman.Lowered, "unwrapped once")
	for name, args := range map[string]string{
		"twice":           `"\"{\\\"a\\\":1}\""`,
		"a plain string":  `"hello"`,
		"a list":          `"[1]"`,
		"a broken object": `"{\"a\":"`,
		"a repeated key":  `"{\"a\":1,\"a\":2}"`,
	} {
		t.Run(name, func(t *testing.T) {
			c, rep, err := all.Registry(interop.Options{}).InspectCall(chatCall(args))
			if err != nil || c.Problem == nil || c.Arguments != args {
				t.Errorf("%+v, %v", c, err)
			}
			lossless(t, rep)
		})
	}
}

func TestQuirkB4_ArgumentsMayBeTheObjectItself(t *testing.T) {
	for _, n := range []dragoman.Native{
		native(toolformat.ChatFunctionCall, `{"id":"c","function":{"name":"f","arguments":{ "n" : 9007199254740993, "s":"<é>" }}}`),
		native(toolformat.ResponsesFunctionCall, `{"type":"function_call","call_id":"c","name":"f","arguments":{ "n" : 9007199254740993, "s":"<é>" }}`),
	} {
		c, rep, err := all.Registry(interop.Options{}).InspectCall(n)
		if err != nil || c.Problem != nil || c.Arguments != `{ "n" : 9007199254740993, "s":"<é>" }` {
			t.Errorf("%+v, %v", c, err)
		}
		lossless(t, rep)
	}
}

func TestQuirkB5_NonObjectArgumentsAreWrappedForObjectWires(t *testing.T) {
	out, rep, err := all.Registry(interop.Options{}).ConvertCalls([]dragoman.Native{chatCall(`[1,2]`)}, toolformat.AnthropicToolUse)
	if err != nil {
		t.Fatal(err)
	}
	sameJSON(t, string(out[0].JSON), `{"type":"tool_use","id":"c","name":"f","input":{"_raw":[1,2]}}`)
	lost(t, rep, dragoman.Lowered, "arguments written as")
	out, _, err = all.Registry(interop.Options{}).ConvertCalls([]dragoman.Native{chatCall(`[1,2]`)}, toolformat.ResponsesFunctionCall)
	if err != nil {
		t.Fatal(err)
	}
	mustContain(t, string(out[0].JSON), `"arguments":"[1,2]"`)
}

func TestQuirkB31_NumbersAndKeyOrderSurviveEveryHop(t *testing.T) {
	const args = `{"z":9007199254740993,"a":1.0,"m":{"y":1e400,"b":-0}}`
	at := chatCall(args)
	for _, f := range []dragoman.Format{
		toolformat.AnthropicToolUse, toolformat.ResponsesFunctionCall, toolformat.ChatFunctionCall, toolformat.AnthropicToolUse,
	} {
		out, rep, err := all.Registry(interop.Options{}).ConvertCalls([]dragoman.Native{at}, f)
		if err != nil {
			t.Fatal(err)
		}
		lossless(t, rep)
		at = out[0]
	}
	mustContain(t, string(at.JSON), `"input":`+args)
}

func TestQuirkB33_NoHTMLEscaping(t *testing.T) {
	out, _ := writeCall(t, registry(dialectname.OpenAIChat, nil), &dragoman.ToolCall{ID: "c", Name: "f", Arguments: `{"a":"<b> & \u003c é"}`})
	mustContain(t, out, `"{\"a\":\"<b> & \\u003c é\"}"`)
}

func TestQuirkB35_CallWithoutTypeIsAFunctionCall(t *testing.T) {
	for _, typ := range []string{``, `"type":null,`} {
		c, _, err := all.Registry(interop.Options{}).InspectCall(native(toolformat.ChatFunctionCall, `{"id":"c",`+typ+`"function":{"name":"f","arguments":"{}"}}`))
		if err != nil || c.Payload != codes.PayloadObject || c.Name != "f" {
			t.Errorf("%+v, %v", c, err)
		}
	}
	for _, tc := range []struct {
		d    dragoman.Dialect
		obj  string
		want dragoman.Format
	}{
		{dialectname.OpenAIChat, `{}`, toolformat.ChatFunctionCall},
		{dialectname.OpenAIChat, `{"type":"custom"}`, toolformat.ChatCustomCall},
		{dialectname.OpenAIResponses, `{"type":"custom_tool_call"}`, toolformat.ResponsesCustomCall},
		{dialectname.Anthropic, `{"type":"tool_use"}`, toolformat.AnthropicToolUse},
		{dialectname.Anthropic, `{"type":"server_tool_use"}`, "anthropic.messages.server_tool_use"},
	} {
		if got := callFormat(tc.d, json.RawMessage(tc.obj)); got != tc.want {
			t.Errorf("callFormat(%s, %s) = %s", tc.d, tc.obj, got)
		}
	}
}

func TestCallWithoutNameHasAProblem(t *testing.T) {
	c, _, err := all.Registry(interop.Options{}).InspectCall(native(toolformat.ChatFunctionCall, `{"id":"c","function":{"name":"","arguments":"{}"}}`))
	if err != nil || c.Problem == nil || c.Problem.Code != codes.ProblemNoName {
		t.Errorf("%+v, %v", c, err)
	}
}

// patch is a freeform tool with a grammar, like the one of Codex.
var patch = dragoman.ToolSpec{
	Kind: codes.ToolFreeform, Name: "apply_patch", Description: "edits files",
	Grammar: &dragoman.Grammar{Syntax: "lark", Definition: "start: \"*** Begin Patch\""},
}

func TestQuirkA43_FreeformToolIsNativeIfSupported(t *testing.T) {
	tools := []dragoman.ToolSpec{patch}
	out, rep := writeTools(t, registry(dialectname.OpenAIChat, tools), tools)
	sameJSON(t, out, `[{"type":"custom","custom":{"name":"apply_patch","description":"edits files","format":{"type":"grammar","grammar":{"syntax":"lark","definition":"start: \"*** Begin Patch\""}}}}]`)
	lossless(t, rep)
	out, rep = writeTools(t, registry(dialectname.OpenAIResponses, tools), tools)
	sameJSON(t, out, `[{"type":"custom","name":"apply_patch","description":"edits files","format":{"type":"grammar","syntax":"lark","definition":"start: \"*** Begin Patch\""}}]`)
	lossless(t, rep)
}

func TestQuirkA43_FreeformToolFallsBackToAFunction(t *testing.T) {
	tools := []dragoman.ToolSpec{patch}
	for name, reg := range map[string]*interop.Registry{
		"anthropic":                      registry(dialectname.Anthropic, tools),
		"chat without custom tools":      registry(dialectname.OpenAIChat, tools, withCaps(targets.Capabilities{NoCustomTools: true})),
		"responses without custom tools": registry(dialectname.OpenAIResponses, tools, withCaps(targets.Capabilities{NoCustomTools: true})),
	} {
		t.Run(name, func(t *testing.T) {
			out, rep := writeTools(t, reg, tools)
			mustContain(t, out, `"required":["input"]`)
			mustContain(t, out, "lark grammar")
			mustContain(t, out, "*** Begin Patch")
			mustContain(t, out, "edits files")
			mustNotContain(t, out, `"custom"`)
			lost(t, rep, dragoman.Lowered, "freeform tool written as a function")
		})
	}
	// Its copy in a namespace has another name on the wire. The kind of the tool decides, not
	// its alias.
	ns := patch
	ns.Namespace = "codex"
	out, _ := writeTools(t, registry(dialectname.Anthropic, []dragoman.ToolSpec{ns}), []dragoman.ToolSpec{ns})
	mustContain(t, out, `"codex__apply_patch"`)
	mustContain(t, out, "*** Begin Patch")
}

func TestQuirkA43_FreeformCallsMatchTheWireForm(t *testing.T) {
	tools := []dragoman.ToolSpec{patch}
	c := &dragoman.ToolCall{ID: "c", Name: "apply_patch", Payload: codes.PayloadText, Arguments: "*** \"x\"\n"}
	out, rep := writeCall(t, registry(dialectname.OpenAIChat, tools), c)
	sameJSON(t, out, `{"id":"c","type":"custom","custom":{"name":"apply_patch","input":"*** \"x\"\n"}}`)
	lossless(t, rep)
	out, rep = writeCall(t, registry(dialectname.Anthropic, tools), c)
	sameJSON(t, out, `{"type":"tool_use","id":"c","name":"apply_patch","input":{"input":"*** \"x\"\n"}}`)
	lost(t, rep, dragoman.Lowered, "freeform input written as")
	out, _ = writeCall(t, registry(dialectname.OpenAIChat, tools, withCaps(targets.Capabilities{NoCustomTools: true})), c)
	sameJSON(t, out, `{"id":"c","type":"function","function":{"name":"apply_patch","arguments":"{\"input\":\"*** \\\"x\\\"\\n\"}"}}`)
}

func TestQuirkB30_FreeformTextIsExtracted(t *testing.T) {
	const body = "*** Begin Patch\n*** End Patch"
	for _, tc := range []struct {
		name, args, want string
		loss             string // a substring of the report; empty means an empty report
	}{
		{"as asked", `{"input":"*** Begin Patch\n*** End Patch"}`, body, ""},
		{"under another name", `{"patch":"*** Begin Patch\n*** End Patch"}`, body, "only string argument"},
		{"as a command line", `{"command":["apply_patch","*** Begin Patch\n*** End Patch"]}`, body, "command"},
		{"as a bare JSON string", `"*** Begin Patch\n*** End Patch"`, body, "bare JSON string"},
		{"as bare text", body, body, "bare text"},
		{"with another field", `{"input":"*** Begin Patch\n*** End Patch","note":"x"}`, body, "other arguments"},
		{"in a fence", "{\"input\":\"```diff\\n*** Begin Patch\\n*** End Patch```\"}", body, "fence"},
		{"empty", `{"input":""}`, "", ""},
		{"nothing", ``, "", ""},
		{"an empty object", `{}`, "", ""},
		{"null", `null`, "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			reg := registry(dialectname.OpenAIChat, []dragoman.ToolSpec{patch}, withCaps(targets.Capabilities{NoCustomTools: true}))
			b, _ := json.Marshal(tc.args)
			c, rep, err := reg.InspectCall(native(toolformat.ChatFunctionCall, `{"id":"c","function":{"name":"apply_patch","arguments":`+string(b)+`}}`))
			if err != nil {
				t.Fatal(err)
			}
			if c.Payload != codes.PayloadText || c.Arguments != tc.want || c.Problem != nil {
				t.Errorf("got %q (%s), problem %v", c.Arguments, c.Payload, c.Problem)
			}
			if tc.loss == "" {
				lossless(t, rep)
			} else {
				lost(t, rep, dragoman.Lowered, tc.loss)
			}
		})
	}
}

func TestQuirkB30_FenceIsTextWithoutAGrammar(t *testing.T) {
	reg := registry(dialectname.Anthropic, []dragoman.ToolSpec{{Kind: codes.ToolFreeform, Name: "note"}})
	c, _, err := reg.InspectCall(native(toolformat.AnthropicToolUse, "{\"type\":\"tool_use\",\"id\":\"c\",\"name\":\"note\",\"input\":{\"input\":\"```\\nx\\n```\"}}"))
	if err != nil || c.Arguments != "```\nx\n```" {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestQuirkB30_CallWithoutTextHasAProblem(t *testing.T) {
	for name, tc := range map[string]struct {
		args string
		code string
	}{
		"no input":                      {`{"a":"x","b":"y"}`, "no_input"},
		"an input that is not a string": {`{"input":5}`, "no_input"},
		"cut off":                       {`{"input":"abc`, codes.ProblemInvalidJSON},
		"a repeated input":              {`{"input":"a","input":"b"}`, codes.ProblemDuplicateKey},
		"a broken string":               {`"abc`, codes.ProblemInvalidJSON},
	} {
		t.Run(name, func(t *testing.T) {
			reg := registry(dialectname.OpenAIChat, []dragoman.ToolSpec{patch}, withCaps(targets.Capabilities{NoCustomTools: true}))
			b, _ := json.Marshal(tc.args)
			c, _, err := reg.InspectCall(native(toolformat.ChatFunctionCall, `{"id":"c","function":{"name":"apply_patch","arguments":`+string(b)+`}}`))
			if err != nil || c.Problem == nil || c.Problem.Code != tc.code || c.Arguments != tc.args {
				t.Fatalf("%+v, %v", c, err)
			}
			for _, d := range threeDialects {
				out, _ := writeCall(t, registry(d, []dragoman.ToolSpec{patch}), c)
				if tc.code == "no_input" {
					// Valid arguments stay in the history as the model wrote them.
					if d == dialectname.Anthropic {
						mustContain(t, out, `"input":`+tc.args)
					} else {
						mustContain(t, out, strings.ReplaceAll(tc.args, `"`, `\"`))
					}
				}
			}
		})
	}
}

func TestCalls_FieldsOfAnotherDialectAreReportedAsDropped(t *testing.T) {
	in := native(toolformat.ResponsesFunctionCall, `{"type":"function_call","id":"fc_1","call_id":"c","name":"f","arguments":"{}","async":true,"caller":{"type":"program"},"new":1}`)
	_, rep, err := all.Registry(interop.Options{}).ConvertCalls([]dragoman.Native{in}, toolformat.ChatFunctionCall)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/0/caller", "/0/new", "/0/async"} {
		found := false
		for _, l := range rep.Losses {
			found = found || l.Path == path
		}
		if !found {
			t.Errorf("%s is lost without a word:\n%s", path, rep)
		}
	}
	_, rep, err = all.Registry(interop.Options{}).ConvertCalls([]dragoman.Native{
		native(toolformat.AnthropicToolUse, `{"type":"tool_use","id":"c","name":"f","input":{},"cache_control":{"type":"ephemeral"}}`),
	}, toolformat.ChatFunctionCall)
	if err != nil {
		t.Fatal(err)
	}
	lost(t, rep, dragoman.Dropped, "cache breakpoint")
}

func TestCalls_UnknownFieldsAreWrittenToTheirOwnDialect(t *testing.T) {
	for _, obj := range []dragoman.Native{
		native(toolformat.ChatFunctionCall, `{"id":"c","type":"function","function":{"name":"f","arguments":"{}","x":1},"extra_content":{"google":{"thought_signature":"s"}}}`),
		native(toolformat.ChatCustomCall, `{"id":"c","type":"custom","custom":{"name":"f","input":"i","x":1},"y":2}`),
		native(toolformat.ResponsesFunctionCall, `{"type":"function_call","id":"fc","call_id":"c","name":"f","namespace":"n","arguments":"{}","status":"completed","z":[]}`),
		native(toolformat.AnthropicToolUse, `{"type":"tool_use","id":"c","name":"f","input":{},"caller":{"type":"direct"},"w":0}`),
	} {
		d := map[bool]dragoman.Dialect{true: dialectname.OpenAIChat}[strings.HasPrefix(string(obj.Format), "openai.chat")]
		if strings.HasPrefix(string(obj.Format), "openai.responses") {
			d = dialectname.OpenAIResponses
		} else if d == "" {
			d = dialectname.Anthropic
		}
		reg := registry(d, nil)
		c, _, err := reg.InspectCall(obj)
		if err != nil {
			t.Fatal(err)
		}
		out, rep := writeCall(t, reg, c)
		sameJSON(t, out, string(obj.JSON))
		lossless(t, rep)
	}
}

func TestResponse_InvalidArgumentsReachTheClientUnchanged(t *testing.T) {
	reg := registry(dialectname.OpenAIChat, nil).ForResponse()
	c := &dragoman.ToolCall{ID: "c", Name: "f", Arguments: `{"a":`, Problem: dragoman.CheckArguments(`{"a":`)}
	out, _ := writeCall(t, reg, c)
	mustContain(t, out, `"{\"a\":"`)
	long := strings.Repeat("x", 60)
	out, _ = writeCall(t, reg, &dragoman.ToolCall{ID: long, Name: "f"})
	mustContain(t, out, long)
}
