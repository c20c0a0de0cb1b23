package interop_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect/all"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/codec/toolformat"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/interop"
	"github.com/dragoman-go/dragoman/targets"
)

func TestR7_AmbiguousCallDoesNotRun(t *testing.T) {
	chat, responses, anthropic := toolformat.ChatFunctionCall, toolformat.ResponsesFunctionCall, toolformat.AnthropicToolUse
	for name, tc := range map[string]struct {
		format dragoman.Format
		call   string
		field  string
	}{
		"arguments twice":            {chat, `{"id":"t","type":"function","function":{"name":"rm","arguments":"{\"a\":1}","arguments":"{\"a\":2}"}}`, "arguments"},
		"name twice":                 {chat, `{"id":"t","type":"function","function":{"name":"rm","name":"ls","arguments":"{}"}}`, "name"},
		"function twice":             {chat, `{"id":"t","type":"function","function":{"name":"rm","arguments":"{}"},"function":{"name":"ls"}}`, "function"},
		"function and custom":        {chat, `{"id":"t","type":"function","function":{"name":"rm","arguments":"{}"},"custom":{"name":"ls","input":"x"}}`, "function"},
		"custom and function":        {toolformat.ChatCustomCall, `{"id":"t","type":"custom","custom":{"name":"ls","input":"x"},"function":{"name":"rm","arguments":"{}"}}`, "function"},
		"input twice (custom)":       {toolformat.ChatCustomCall, `{"id":"t","type":"custom","custom":{"name":"ls","input":"x","input":"y"}}`, "input"},
		"type twice":                 {chat, `{"id":"t","type":"function","type":"custom","function":{"name":"rm","arguments":"{}"}}`, "type"},
		"id twice":                   {chat, `{"id":"t","id":"u","function":{"name":"rm","arguments":"{}"}}`, "id"},
		"arguments in other case":    {chat, `{"id":"t","function":{"name":"rm","arguments":"{\"a\":1}","Arguments":"{\"a\":2}"}}`, "arguments"},
		"only in other case":         {chat, `{"id":"t","function":{"name":"rm","ARGUMENTS":"{\"a\":2}"}}`, "arguments"},
		"function in other case":     {chat, `{"id":"t","function":{"name":"rm","arguments":"{}"},"Function":{"name":"ls"}}`, "function"},
		"case beyond ASCII":          {responses, `{"type":"function_call","call_id":"t","name":"rm","arguments":"{}","argumentſ":"{\"a\":2}"}`, "arguments"},
		"escaped":                    {chat, `{"id":"t","function":{"name":"rm","arguments":"{}","\u0061rguments":"{\"a\":2}"}}`, "arguments"},
		"arguments and input":        {responses, `{"type":"function_call","call_id":"t","name":"rm","arguments":"{\"a\":1}","input":"{\"a\":2}"}`, "input"},
		"namespace twice":            {responses, `{"type":"function_call","call_id":"t","namespace":"a","namespace":"b","name":"rm","arguments":"{}"}`, "namespace"},
		"name in other case":         {responses, `{"type":"function_call","call_id":"t","name":"rm","Name":"ls","arguments":"{}"}`, "name"},
		"input twice (tool_use)":     {anthropic, `{"type":"tool_use","id":"t","name":"rm","input":{"a":1},"input":{"a":2}}`, "input"},
		"an invalid name first":      {chat, `{"id":"t","function":{"name":1,"arguments":"{}","name":"rm"}}`, "name"},
		"an invalid name last":       {chat, `{"id":"t","function":{"name":"rm","arguments":"{}","name":1}}`, "name"},
		"an invalid function":        {chat, `{"id":"t","function":1,"function":{"name":"rm","arguments":"{}"}}`, "function"},
		"an invalid name (item)":     {responses, `{"type":"function_call","call_id":"t","name":1,"arguments":"{}","name":"rm"}`, "name"},
		"an invalid name (tool)":     {anthropic, `{"type":"tool_use","id":"t","name":[],"input":{},"name":"rm"}`, "name"},
		"another invalid field":      {anthropic, `{"type":1,"id":"t","name":"rm","input":{},"input":{"a":2}}`, "input"},
		"an invalid name (gemini)":   {toolformat.GeminiFunctionCall, `{"id":"t","name":1,"args":{},"name":"rm"}`, "name"},
		"half a call (gemini)":       {toolformat.GeminiFunctionCall, `{"id":"t","name":"ls","willContinue":true,"name":"rm"}`, "name"},
		"an invalid name (ollama)":   {toolformat.OllamaToolCall, `{"function":{"name":1,"arguments":{},"name":"rm"}}`, "name"},
		"an invalid name (bedrock)":  {toolformat.BedrockToolUse, `{"toolUse":{"toolUseId":"t","name":1,"input":{},"name":"rm"}}`, "name"},
		"input in other case (tool)": {anthropic, `{"type":"tool_use","id":"t","name":"rm","input":{"a":1},"INPUT":{"a":2}}`, "input"},
	} {
		t.Run(name, func(t *testing.T) {
			c, _, err := all.Registry(interop.Options{}).InspectCall(native(tc.format, tc.call))
			if err != nil {
				t.Fatal(err)
			}
			if c.Problem == nil || c.Problem.Code != codes.ProblemDuplicateKey {
				t.Fatalf("it may run: %+v", c)
			}
			mustContain(t, c.Problem.Message, "has a duplicate field \""+tc.field+"\"")
			for _, d := range threeDialects {
				out, rep := writeCall(t, registry(d, nil).ForResponse(), c)
				mustNotRun(t, d, out)
				if rep.Err(dragoman.Warn) == nil {
					t.Error("nothing is reported")
				}
			}
		})
	}
	// Duplicate keys inside the arguments of a call that is unreadable for another reason.
	c, _, err := all.Registry(interop.Options{}).InspectCall(native(chat, `{"id":"t","function":{"name":1,"arguments":"{\"a\":1,\"a\":2}"}}`))
	if err != nil || c.Problem == nil || c.Problem.Code != codes.ProblemDuplicateKey {
		t.Errorf("%+v, %v", c, err)
	}
	for name, n := range map[string]dragoman.Native{
		"null next to it (chat)":      native(chat, `{"id":"t","type":"function","function":{"name":"rm","arguments":"{}"},"custom":null}`),
		"null next to it (responses)": native(responses, `{"type":"function_call","call_id":"t","name":"rm","arguments":"{}","input":null}`),
		"keys inside the arguments":   chatCall(`{"a":1,"A":2}`),
	} {
		if c, _, err := all.Registry(interop.Options{}).InspectCall(n); err != nil || c.Problem != nil {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
}

// mustNotRun fails if a client of d would find arguments in the call that differ from the
// original text.
func mustNotRun(t *testing.T, d dragoman.Dialect, out string) {
	t.Helper()
	var call struct {
		Type, Arguments string
		Input           json.RawMessage
		Function        struct{ Arguments string }
		Custom          *struct{ Input string }
	}
	if err := json.Unmarshal([]byte(out), &call); err != nil {
		return // a client cannot read the call at all
	}
	var payload string
	switch d {
	case dialectname.OpenAIChat:
		payload = call.Function.Arguments
	case dialectname.OpenAIResponses:
		payload = call.Arguments
	default:
		payload = string(call.Input)
	}
	if call.Custom != nil || call.Type == "custom_tool_call" {
		t.Errorf("a freeform tool would run %s", out)
	}
	var args map[string]json.RawMessage
	if err := json.Unmarshal([]byte(payload), &args); err != nil {
		return
	}
	if _, ok := args["_raw"]; !ok || len(args) != 1 {
		t.Errorf("a client would run %s", out)
	}
}

func TestUnreadableCallDoesNotRun(t *testing.T) {
	for name, tc := range map[string]struct {
		format      dragoman.Format
		call, field string
	}{
		"type":                {toolformat.ChatFunctionCall, `{"id":"t","type":7,"function":{"name":"rm","arguments":"{\"a\":1}"}}`, "type"},
		"name":                {toolformat.ChatFunctionCall, `{"id":"t","type":"function","function":{"name":7,"arguments":"{\"a\":1}"}}`, "function/name"},
		"function":            {toolformat.ChatFunctionCall, `{"id":"t","type":"function","function":["rm"]}`, "function"},
		"custom":              {toolformat.ChatFunctionCall, `{"id":"t","type":"function","function":{"name":"rm","arguments":"{\"a\":1}"},"custom":7}`, "custom"},
		"custom name":         {toolformat.ChatCustomCall, `{"id":"t","type":"custom","custom":{"name":{},"input":"ls"}}`, "custom/name"},
		"responses name":      {toolformat.ResponsesFunctionCall, `{"type":"function_call","call_id":"t","name":true,"arguments":"{\"a\":1}"}`, "name"},
		"responses namespace": {toolformat.ResponsesFunctionCall, `{"type":"function_call","call_id":"t","name":"rm","namespace":7,"arguments":"{\"a\":1}"}`, "namespace"},
		"responses custom":    {toolformat.ResponsesCustomCall, `{"type":"custom_tool_call","call_id":"t","name":"sh","namespace":7,"input":"ls"}`, "namespace"},
		"tool_use name":       {toolformat.AnthropicToolUse, `{"type":"tool_use","id":"t","name":["rm"],"input":{"a":1}}`, "name"},
	} {
		t.Run(name, func(t *testing.T) {
			c, _, err := all.Registry(interop.Options{}).InspectCall(native(tc.format, tc.call))
			if err != nil {
				t.Fatalf("it is no longer a call: %v", err)
			}
			if c.ID != "t" || c.Problem == nil || c.Problem.Code != "unreadable" {
				t.Fatalf("it may run: %+v", c)
			}
			mustContain(t, c.Problem.Message, tc.field+" must be")
			d := dialectname.OpenAIChat
			switch tc.format {
			case toolformat.ResponsesFunctionCall, toolformat.ResponsesCustomCall:
				d = dialectname.OpenAIResponses
			case toolformat.AnthropicToolUse:
				d = dialectname.Anthropic
			}
			back, _ := writeCall(t, registry(d, nil), c)
			sameJSON(t, back, tc.call)
			for _, d := range threeDialects {
				out, _ := writeCall(t, registry(d, nil).ForResponse(), c)
				mustNotRun(t, d, out)
			}
		})
	}
	for _, obj := range []string{`[]`, `7`, `"x"`, `{"id":"t"`} {
		if c, _, err := all.Registry(interop.Options{}).InspectCall(native(toolformat.ChatFunctionCall, obj)); err == nil {
			t.Errorf("%s is the call %+v", obj, c)
		}
	}
	c, _, err := all.Registry(interop.Options{}).InspectCall(native(toolformat.AnthropicToolUse, `{"type":"tool_use","id":"t","name":"f","input":{},"cache_control":{"ttl":7}}`))
	if err != nil || c.Problem != nil {
		t.Fatalf("a cache marker decides what runs: %+v, %v", c, err)
	}
	out, _ := writeCall(t, registry(dialectname.Anthropic, nil), c)
	mustContain(t, out, `"cache_control":{"ttl":7}`)
}

func TestResponse_BlockedArgumentsStayBlocked(t *testing.T) {
	for _, args := range []string{
		`{"a":1,"a":2}`, `{"a":{"b":1,"b":2}}`, `{"a":`, `nonsense`, `{"a":1}{"b":2}`, `{"a":1} x`, "{\"a\":\"\xff\"}", `{"a":"\ud800"}`, `{"a":NaN}`, `{} {}`,
	} {
		// Whether or not they were validated before.
		for _, p := range []*dragoman.CallProblem{nil, dragoman.CheckArguments(args), {Code: codes.ProblemTruncated, Offset: -1}} {
			c := &dragoman.ToolCall{ID: "c", Name: "f", Arguments: args, Problem: p}
			for _, d := range threeDialects {
				reg := registry(d, nil)
				out, rep := writeCall(t, reg.ForResponse(), c)
				mustNotRun(t, d, out)
				if d == dialectname.Anthropic || strings.HasPrefix(args, `{"a":1,`) {
					mustContain(t, out, "_raw")
					if l := lost(t, rep, dragoman.Lowered, "_raw"); l.Severity != dragoman.Warn {
						t.Errorf("reported as %v", l)
					}
				}
				// Calls of a history are not run.
				out, _ = writeCall(t, reg, c)
				mustNotContain(t, out, "_raw")
				mustContain(t, out, "{}")
			}
		}
	}
	for _, d := range threeDialects { // valid ones pass
		out, rep := writeCall(t, registry(d, nil).ForResponse(), &dragoman.ToolCall{ID: "c", Name: "f", Arguments: `{"a":1}`})
		lossless(t, rep)
		mustNotContain(t, out, "_raw")
	}
}

func TestResponse_CaseVariantFieldsAreDropped(t *testing.T) {
	c, _, err := all.Registry(interop.Options{}).InspectCall(native(toolformat.ChatFunctionCall, `{"id":"t","x":1,"type":"function","function":{"name":"rm","arguments":"{}","Arguments":"{\"a\":2}"}}`))
	if err != nil {
		t.Fatal(err)
	}
	reg := registry(dialectname.OpenAIChat, nil)
	out, rep := writeCall(t, reg.ForResponse(), c)
	mustNotContain(t, out, "Arguments")
	mustContain(t, out, `"x":1`)
	lost(t, rep, dragoman.Dropped, "only in case")
	out, _ = writeCall(t, reg, c)
	mustContain(t, out, "Arguments")
}

func TestQuirkB13_IDEqualToAnAliasStaysDistinct(t *testing.T) {
	for name, rule := range idRules {
		t.Run(name, func(t *testing.T) {
			bad := "an id with spaces, too long for any rule " + strings.Repeat("0123456789", 8)
			fresh := func() *interop.Registry { return registry(dialectname.OpenAIChat, nil, withID(rule)) }
			// As many precomputed aliases as an attacker may try.
			var foreseen []string
			for range 12 {
				reg := fresh()
				for _, id := range foreseen {
					reg.AnnounceID(id)
				}
				foreseen = append(foreseen, reg.WireID(bad))
			}
			check := func(how string, reg *interop.Registry, order []string) {
				t.Helper()
				seen := map[string]string{}
				for _, id := range order {
					w := reg.WireID(id)
					if other, dup := seen[w]; dup {
						t.Fatalf("%s: %q and %q are both %q", how, id, other, w)
					}
					seen[w] = id
				}
				for w, id := range seen {
					if reg.PublicID(w) != id || reg.WireID(id) != w || !rule.Allows(w) {
						t.Fatalf("%s: %q came back from %q as %q", how, id, w, reg.PublicID(w))
					}
				}
			}
			check("the alias first", fresh(), append([]string{bad}, foreseen...))
			check("the alias last", fresh(), append(append([]string{}, foreseen...), bad))
			reg := fresh()
			for _, id := range foreseen {
				reg.AnnounceID(id)
			}
			check("announced", reg, append([]string{bad}, foreseen...))
			for _, id := range foreseen {
				if reg.WireID(id) != id {
					t.Errorf("%q was announced and is written as %q", id, reg.WireID(id))
				}
			}
		})
	}
	reg := registry(dialectname.Anthropic, nil)
	alias := reg.WireID("a b")
	_, rep := writeCall(t, reg, &dragoman.ToolCall{ID: alias, Name: "f", Arguments: "{}"})
	lost(t, rep, dragoman.Renamed, "call id")
}

func TestQuirkA35_PredictedAliasIsNotShared(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rule := rapid.SampledFrom([]targets.NameRule{
			{Rest: "a-zA-Z0-9_-", Max: 64}, {Rest: "a-zA-Z0-9_-", Max: 128}, {Rest: "a-zA-Z0-9_-"}, {Rest: "a-z0-9", Max: 30}, {First: "a-z", Rest: "a-z0-9_", Max: 16},
		}).Draw(t, "rule")
		victim := rapid.SampledFrom([]string{"fs.read", "a/b", "Ä", strings.Repeat("X.", 80)}).Draw(t, "victim")
		ofRule := func(o *interop.Options) { o.Limits.Name = rule }
		tools := []dragoman.ToolSpec{fn(victim)}
		for range rapid.IntRange(1, 24).Draw(t, "hostile") {
			tools = append(tools, fn(registry(dialectname.OpenAIChat, tools, ofRule).WireName("", victim)))
		}
		tools = rapid.Permutation(tools).Draw(t, "order")
		reg := registry(dialectname.OpenAIChat, tools, ofRule)
		seen := map[string]string{}
		for _, s := range tools {
			w := reg.WireName("", s.Name)
			if other, dup := seen[w]; dup {
				t.Fatalf("%q and %q are both %q", s.Name, other, w)
			}
			seen[w] = s.Name
			if !rule.Allows(w) {
				t.Fatalf("%q is %q, which the rule forbids", s.Name, w)
			}
			if s.Name != victim && w != s.Name {
				t.Fatalf("the legal name %q became %q", s.Name, w)
			}
			if _, back, spec := reg.PublicName("", w); back != s.Name || spec == nil || spec.Name != s.Name {
				t.Fatalf("%q comes back as %q", s.Name, back)
			}
		}
	})
}

func TestNamespace_NestedNamespaceIsRefused(t *testing.T) {
	const depth = 3000
	obj := strings.Repeat(`{"type":"namespace","name":"n","tools":[`, depth) + `{"type":"function","name":"f"}` + strings.Repeat(`]}`, depth)
	start := time.Now()
	_, _, err := all.Registry(interop.Options{}).InspectSchema(native(toolformat.ResponsesNamespace, obj))
	if err == nil || !strings.Contains(err.Error(), "contains a namespace") {
		t.Errorf("%v", err)
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestR11_LossesBeyondAThousandAreCounted(t *testing.T) {
	const n = 5000
	tools := make([]dragoman.ToolSpec, n)
	for i := range tools {
		tools[i] = dragoman.ToolSpec{Kind: codes.ToolHosted, Name: fmt.Sprint("h", i)}
	}
	var w jsonwire.Writer
	var rep dragoman.Report
	rep.Add(dragoman.Dropped, dragoman.Info, "/before", "kept")
	w.BeginArray()
	if _, err := registry(dialectname.OpenAIChat, nil).WriteTools(&w, tools, &rep); err != nil {
		t.Fatal(err)
	}
	if len(rep.Losses) != 1002 || rep.Losses[0].Path != "/before" {
		t.Fatalf("%d losses, the first is %v", len(rep.Losses), rep.Losses[0])
	}
	last := rep.Losses[1001]
	if last.Kind != dragoman.Dropped || last.Severity != dragoman.Serious || !strings.HasPrefix(last.Detail, "4000 more") {
		t.Errorf("the last is %v", last)
	}
}

func TestR10_UnreadableFormatErrorNamesTheMissingAccessor(t *testing.T) {
	const want = `no schema accessor for the format "acme.tool"`
	for _, s := range []dragoman.ToolSpec{
		{Source: &dragoman.ToolSource{Format: "acme.tool", JSON: []byte(`{}`)}},
		{Kind: codes.ToolHosted, Name: "x", Source: &dragoman.ToolSource{Format: "acme.tool", JSON: []byte(`{}`)}},
	} {
		_, rep := writeTools(t, registry(dialectname.OpenAIChat, []dragoman.ToolSpec{s}), []dragoman.ToolSpec{s})
		lost(t, rep, dragoman.Dropped, want)
	}
	_, rep, err := all.Registry(interop.Options{}).ConvertSchemas([]dragoman.Native{native("acme.tool", `{"name":"x"}`)}, toolformat.ChatFunction)
	if err != nil {
		t.Fatal(err)
	}
	lost(t, rep, dragoman.Dropped, want)
}
