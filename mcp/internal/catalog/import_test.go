package catalog

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect/all"
	"github.com/dragoman-go/dragoman/interop"
	"github.com/dragoman-go/dragoman/schema"
	"github.com/dragoman-go/dragoman/tool"
)

func raws(objects ...string) (out []json.RawMessage) {
	for _, o := range objects {
		out = append(out, json.RawMessage(o))
	}
	return out
}

// importOne imports a tool with an input schema; "" means that the field is absent.
func importOne(t *testing.T, inputSchema string, o Options) Result {
	t.Helper()
	object := `{"name":"t"}`
	if inputSchema != "" {
		object = `{"name":"t","inputSchema":` + inputSchema + `}`
	}
	// A good tool next to it always survives.
	res := Import("srv", raws(object, `{"name":"good","inputSchema":{"type":"object"}}`), o)
	if n := len(res.Tools); n == 0 || res.Tools[n-1].Name != "good" {
		t.Fatalf("the good tool is lost: %+v", res)
	}
	return res
}

// usable checks a definition with all packages that get it: the toolbox, and every provider.
func usable(t *testing.T, spec dragoman.ToolSpec) {
	t.Helper()
	run := func(context.Context, tool.Input) (tool.Output, error) { return tool.Output{}, nil }
	if _, err := tool.NewBox(tool.Remote(spec, run)); err != nil {
		t.Errorf("the toolbox refuses it: %v", err)
	}
	for _, p := range all.Profiles() {
		if _, err := schema.Lower(spec.Parameters, p); err != nil && !p.Strict() {
			t.Errorf("%s: %v", p.Name(), err)
		}
	}
}

func TestQuirkH1_BrokenInputSchemasAreRepaired(t *testing.T) {
	for _, c := range []struct {
		name, in, want, accepts, refuses string
	}{
		{"missing", "", `{"type":"object","properties":{}}`, `{"x":1}`, ""},
		{"null", "null", `{"type":"object","properties":{}}`, `{}`, ""},
		{"true", "true", `{"type":"object","properties":{}}`, `{}`, ""},
		{"empty", "{}", `{"type":"object"}`, `{"x":1}`, ""},
		{"only $schema", `{"$schema":"http://json-schema.org/draft-07/schema#"}`, `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object"}`, `{}`, ""},
		{"bare object", `{"type":"object"}`, `{"type":"object"}`, `{"x":1}`, `[]`},
		{"no type", `{"properties":{"a":{"type":"string"}},"required":["a"]}`, `{"properties":{"a":{"type":"string"}},"required":["a"],"type":"object"}`, `{"a":"x"}`, `{"a":1}`},
		{"properties null", `{"type":"object","properties":null}`, `{"type":"object"}`, `{}`, ""},
		{"properties of PHP", `{"type":"object","properties":[]}`, `{"type":"object"}`, `{}`, ""},
		{"required null", `{"type":"object","properties":{"a":{}},"required":null}`, `{"type":"object","properties":{"a":{}}}`, `{}`, ""},
		{"type null", `{"type":null,"properties":{}}`, `{"properties":{},"type":"object"}`, `{}`, ""},
		{"nullable object", `{"type":["object","null"],"properties":{}}`, `{"type":"object","properties":{}}`, `{}`, ""},
		{"additionalProperties {}", `{"type":"object","additionalProperties":{}}`, `{"type":"object","additionalProperties":{}}`, `{"x":[1]}`, ""},
		{"types of other languages", `{"type":"dict","properties":{"a":{"type":"float"}}}`, `{"type":"object","properties":{"a":{"type":"number"}}}`, `{"a":1.5}`, `{"a":"x"}`},
		{"union of objects", `{"anyOf":[{"type":"object","properties":{"a":{}}},{"type":"object","properties":{"b":{}}}]}`, `{"anyOf":[{"type":"object","properties":{"a":{}}},{"type":"object","properties":{"b":{}}}],"type":"object"}`, `{"a":1}`, ""},
		{"root reference", `{"$ref":"#/$defs/A","$defs":{"A":{"type":"object","properties":{"a":{"type":"string"}}}}}`, `{"$ref":"#/$defs/A","$defs":{"A":{"type":"object","properties":{"a":{"type":"string"}}}},"type":"object"}`, `{"a":"x"}`, `{"a":1}`},
		{"recursion", `{"type":"object","properties":{"next":{"$ref":"#"}}}`, `{"type":"object","properties":{"next":{"$ref":"#"}}}`, `{"next":{"next":{}}}`, `{"next":1}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			res := importOne(t, c.in, Options{})
			if len(res.Tools) != 2 {
				t.Fatalf("dropped: %+v", res.Diagnostics)
			}
			got := res.Tools[0]
			if string(got.Spec.Parameters) != c.want {
				t.Errorf("parameters %s\nwant       %s", got.Spec.Parameters, c.want)
			}
			repaired := slices.ContainsFunc(res.Diagnostics, func(d Diagnostic) bool { return d.Kind == Repaired && d.Tool == "t" })
			if repaired != (c.in != c.want) {
				t.Errorf("repair reported: %v, %+v", repaired, res.Diagnostics)
			}
			usable(t, got.Spec)
			v, err := schema.Compile(got.InputSchema)
			if err != nil {
				t.Fatal(err)
			}
			if err := v.Validate(json.RawMessage(c.accepts)); err != nil {
				t.Errorf("refuses %s: %v", c.accepts, err)
			}
			if c.refuses != "" && v.Validate(json.RawMessage(c.refuses)) == nil {
				t.Errorf("accepts %s", c.refuses)
			}
		})
	}
}

func TestQuirkH1_ScalarRootsAreWrapped(t *testing.T) {
	for in, args := range map[string][3]string{
		`{"type":"string","minLength":2}`:               {`{"value":"abc"}`, `"abc"`, `"a"`},
		`{"type":"array","items":{"type":"integer"}}`:   {`{"value":[1]}`, `[1]`, `["a"]`},
		`{"enum":["a","b"]}`:                            {`{"value":"a"}`, `"a"`, `"c"`},
		`{"anyOf":[{"type":"string"},{"type":"null"}]}`: {`{"value":null}`, `null`, `1`},
	} {
		res := importOne(t, in, Options{})
		if len(res.Tools) != 2 {
			t.Fatalf("%s: %+v", in, res.Diagnostics)
		}
		got := res.Tools[0]
		usable(t, got.Spec)
		if !got.Wrapped || string(got.InputSchema) != in {
			t.Errorf("%s: wrapped %v, validated by %s", in, got.Wrapped, got.InputSchema)
		}
		sent, err := got.Arguments(json.RawMessage(args[0]))
		if err != nil || string(sent) != args[1] {
			t.Errorf("%s: sent %s, %v", in, sent, err)
		}
		outer, err := schema.Compile(got.Spec.Parameters)
		if err != nil || outer.Validate(json.RawMessage(args[0])) != nil || outer.Validate(json.RawMessage(args[1])) == nil {
			t.Errorf("%s: parameters %s, %v", in, got.Spec.Parameters, err)
		}
		inner, err := schema.Compile(got.InputSchema)
		if err != nil || inner.Validate(json.RawMessage(args[1])) != nil || inner.Validate(json.RawMessage(args[2])) == nil {
			t.Errorf("%s: original %s, %v", in, got.InputSchema, err)
		}
	}
}

func TestUnusableToolsAreDroppedAlone(t *testing.T) {
	deep := strings.Repeat(`{"type":"object","properties":{"a":`, 70) + `{}` + strings.Repeat(`}}`, 70)
	var wide strings.Builder
	for i := range 10_001 {
		fmt.Fprintf(&wide, `%s"p%d":{}`, strings.Repeat(",", min(i, 1)), i)
	}
	for name, c := range map[string][2]string{
		"text for a schema":  {`"object"`, "want an object, have a text"},
		"list for a schema":  {`[]`, "want an object, have a list"},
		"false":              {`false`, "want an object, have a boolean"},
		"network reference":  {`{"type":"object","properties":{"a":{"$ref":"https://evil.example/s.json"}}}`, "references to other documents are not followed"},
		"file reference":     {`{"type":"object","properties":{"a":{"$ref":"file:///etc/passwd"}}}`, "references to other documents are not followed"},
		"network and $id":    {`{"$id":"https://x.example/s","type":"object","properties":{"a":{"$ref":"https://evil.example/s.json"}}}`, "not followed"},
		"missing definition": {`{"type":"object","properties":{"a":{"$ref":"#/definitions/Gone"}}}`, "which does not exist"},
		"missing anchor":     {`{"type":"object","properties":{"a":{"$ref":"#gone"}}}`, "which does not exist"},
		"reference to self":  {`{"type":"object","properties":{"a":{"$ref":"#/properties/a"}}}`, "leads back to itself"},
		"circle":             {`{"$ref":"#/$defs/A","$defs":{"A":{"$ref":"#/$defs/B"},"B":{"allOf":[{"$ref":"#/$defs/A"}]}}}`, "leads back to itself"},
		"too deep":           {deep, "nested more than 64 deep"},
		"too many":           {`{"type":"object","properties":{` + wide.String() + `}}`, "more than 10000 subschemas"},
		"unknown dialect":    {`{"$schema":"https://example.com/dialect","type":"object"}`, `unknown $schema "https://example.com/dialect"`},
		"hidden name":        {`{"type":"object","properties":{"a\u202eb":{}}}`, "hidden or control characters"},
	} {
		t.Run(name, func(t *testing.T) {
			res := importOne(t, c[0], Options{})
			if len(res.Tools) != 1 || len(res.Diagnostics) == 0 {
				t.Fatalf("not dropped: %+v", res)
			}
			d := res.Diagnostics[len(res.Diagnostics)-1]
			if d.Kind != Dropped || d.Tool != "t" || d.Index != 0 || d.Field != "inputSchema" || !strings.Contains(d.Reason, c[1]) {
				t.Errorf("diagnostic %+v", d)
			}
		})
	}
	for name, object := range map[string]string{
		"not JSON": `{"name":`, "not an object": `[]`, "null": `null`, "no name": `{"inputSchema":{}}`, "empty name": `{"name":""}`, "number as name": `{"name":1}`,
		"long name": `{"name":"` + strings.Repeat("a", 2000) + `"}`, "duplicate key": `{"name":"a","name":"b"}`, "bad text": "{\"name\":\"a\xff\"}",
		"large": `{"name":"a","description":"` + strings.Repeat("a", 300<<10) + `"}`,
	} {
		res := Import("srv", raws(object, `{"name":"good"}`), Options{})
		if len(res.Tools) != 1 || res.Tools[0].Name != "good" || len(res.Diagnostics) == 0 || res.Diagnostics[0].Kind != Dropped || res.Diagnostics[0].Index != 0 {
			t.Errorf("%s: %+v", name, res.Diagnostics)
		}
	}
}

func TestKnownDialectsStay(t *testing.T) {
	for _, uri := range []string{"https://json-schema.org/draft/2020-12/schema", "https://json-schema.org/draft/2019-09/schema", "http://json-schema.org/draft-07/schema#", "http://json-schema.org/draft-06/schema", "http://json-schema.org/draft-04/schema#"} {
		in := `{"$schema":"` + uri + `","type":"object","properties":{"a":{"type":"string"}}}`
		res := importOne(t, in, Options{})
		if len(res.Tools) != 2 || len(res.Diagnostics) > 0 || string(res.Tools[0].Spec.Parameters) != in {
			t.Errorf("%s: %+v", uri, res.Diagnostics)
		}
	}
}

func TestLimitsBoundHostileServers(t *testing.T) {
	var many []json.RawMessage
	for i := range 10_500 {
		many = append(many, json.RawMessage(fmt.Sprintf(`{"name":"t%d"}`, i)))
	}
	res := Import("srv", many, Options{})
	if len(res.Tools) != 10_000 || !strings.Contains(res.Diagnostics[0].Reason, "10500 tools, more than 10000; the last 500 are not used") || len(res.Diagnostics) > maxDiagnostics+1 {
		t.Errorf("%d tools, %d diagnostics, first %+v", len(res.Tools), len(res.Diagnostics), res.Diagnostics[0])
	}
	big := json.RawMessage(`{"name":"big","description":"` + strings.Repeat("a", 1000) + `"}`)
	res = Import("srv", []json.RawMessage{big, []byte(`{"name":"b"}`), []byte(`{"name":"c"}`)}, Options{MaxTotalBytes: len(big) + 12})
	if len(res.Tools) != 2 || !strings.Contains(res.Diagnostics[0].Reason, "tools from number 3 on are not used") {
		t.Errorf("%d tools, %+v", len(res.Tools), res.Diagnostics)
	}
}

func TestQuirkH2_NamesAreLegalAndCallsUseTheOriginal(t *testing.T) {
	for _, c := range []struct {
		label, name string
		prefix      bool
		want        string
	}{
		{"files", "read_file", false, "read_file"},
		{"files", "read-file", false, "read-file"},
		{"files", "read_file", true, "mcp_files__read_file"},
		{"my-server", "list", true, "mcp_my-server__list"},
		{"files", "read.file", false, "read_file_97875296"},
		{"files", "fs/read", false, "fs_read_1ffe6f77"},
		{"files", "read file", false, "read_file_d8793cb6"},
		{"mcp.example.com", "list", true, "mcp_mcp_example_com__list_129d048c"},
		{"files", "2fa", false, ""},
		{"files", "日本", false, ""},
		{"files", strings.Repeat("a", 65), false, ""},
		{"files", strings.Repeat("a", 64), false, strings.Repeat("a", 64)},
		{strings.Repeat("s", 80), "t", true, ""},
		{"a__b", "c", true, ""},
		{"a", "b__c", true, "mcp_a__b__c"},
	} {
		got := PublicName(c.label, c.name, c.prefix)
		if c.want != "" && got != c.want {
			t.Errorf("%s %s: %s, want %s", c.label, c.name, got, c.want)
		}
		if !legalName(got) {
			t.Errorf("%s %s: %q is not legal", c.label, c.name, got)
		}
		res := Import(c.label, raws(`{"name":`+quoteJSON(c.name)+`}`), Options{Prefix: c.prefix})
		if tool := res.Tools[0]; tool.Name != c.name || tool.Public != got || tool.Spec.Name != got {
			t.Errorf("%+v", tool)
		}
	}
	if PublicName("a", "b__c", true) == PublicName("a__b", "c", true) {
		t.Error("two tools have one name")
	}
}

func quoteJSON(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

func TestPitfallK21_EveryProviderAcceptsTheNames(t *testing.T) {
	names, servers := zooServers(t)
	servers["awkward"] = raws(`{"name":"a.b"}`, `{"name":"a/b"}`, `{"name":"`+strings.Repeat("x", 128)+`"}`, `{"name":"Ünï"}`, `{"name":"9"}`, `{"name":"-"}`, `{"name":"_x"}`)
	for _, label := range append(names, "awkward", strings.Repeat("long-server-", 8)) {
		list := servers[label]
		if list == nil {
			list = servers["awkward"]
		}
		for _, prefix := range []bool{false, true} {
			res := Import(label, list, Options{Prefix: prefix})
			if len(res.Tools) != len(list) {
				t.Errorf("%s: %d of %d tools", label, len(res.Tools), len(list))
			}
			seen := map[string]bool{}
			for _, tool := range res.Tools {
				if !legalName(tool.Public) || seen[tool.Public] {
					t.Errorf("%s: %q is not legal or not unique", label, tool.Public)
				}
				seen[tool.Public] = true
			}
		}
	}
}

// Pitfall K22: an app calls bare names, so the original name of a tool stays findable.
func TestPitfallK22_OriginalNamesStayWithPrefixes(t *testing.T) {
	object := `{"name":"show","_meta":{"ui":{"resourceUri":"ui://srv/view"}}}`
	res := Import("srv", raws(object), Options{Prefix: true})
	got := res.Tools[0]
	if got.Name != "show" || got.Public != "mcp_srv__show" || string(got.Meta) != `{"ui":{"resourceUri":"ui://srv/view"}}` {
		t.Errorf("%+v", got)
	}
}

func TestPropertyNamesDoNotDependOnOrder(t *testing.T) {
	objects := raws(`{"name":"a b"}`, `{"name":"a_b"}`, `{"name":"a.b"}`, `{"name":"`+PublicName("s", "a b", false)+`"}`, `{"name":"`+strings.Repeat("x", 70)+`1"}`, `{"name":"`+strings.Repeat("x", 70)+`2"}`, `{"name":"日"}`, `{"name":"本"}`)
	names := func(list []json.RawMessage) map[string]string {
		out := map[string]string{}
		for _, tool := range Import("s", list, Options{}).Tools {
			out[tool.Name] = tool.Public
		}
		return out
	}
	want := names(objects)
	if len(want) != len(objects) {
		t.Fatalf("%d names for %d tools: %v", len(want), len(objects), want)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		r.Shuffle(len(objects), func(i, j int) { objects[i], objects[j] = objects[j], objects[i] })
		if got := names(objects); !reflect.DeepEqual(got, want) {
			t.Fatalf("%v\n%v", got, want)
		}
	}
}

func TestSameNameTwice(t *testing.T) {
	res := Import("s", raws(`{"name":"a","description":"x"}`, `{"description":"x", "name":"a"}`, `{"name":"b","description":"x"}`, `{"name":"b","description":"y"}`, `{"name":"c"}`), Options{})
	var names []string
	for _, tool := range res.Tools {
		names = append(names, tool.Name)
	}
	if !slices.Equal(names, []string{"a", "c"}) {
		t.Errorf("tools %v, %+v", names, res.Diagnostics)
	}
}

func TestCollisionsNameBothServers(t *testing.T) {
	a := Import("one", raws(`{"name":"list"}`, `{"name":"x"}`), Options{})
	b := Import("two", raws(`{"name":"list"}`), Options{})
	got := Collisions(&a, &b)
	if len(got) != 1 || got[0].Error() != `servers "one" and "two" both have a tool named "list": set a prefix or a namespace for one of them, or exclude the tool` {
		t.Errorf("%v", got)
	}
	c := Import("two", raws(`{"name":"list"}`), Options{Prefix: true})
	d := Import("two", raws(`{"name":"list"}`), Options{Namespace: "n"})
	if got := slices.Concat(Collisions(&a, &c), Collisions(&a, &d)); len(got) != 0 {
		t.Errorf("%v", got)
	}
}

func TestFiltersAndApproval(t *testing.T) {
	objects := raws(`{"name":"read_a","annotations":{"readOnlyHint":true}}`, `{"name":"read_b"}`, `{"name":"write_a"}`, `{"name":"read_secret"}`)
	res := Import("s", objects, Options{Include: []string{"read_*", "gone*"}, Exclude: []string{"*secret*"}, Approval: map[string]string{"*": "always", "read_*": "never", "read_b": "always"}})
	got := map[string]bool{}
	for _, tool := range res.Tools {
		got[tool.Name] = tool.NeedsApproval
	}
	if !reflect.DeepEqual(got, map[string]bool{"read_a": false, "read_b": true}) {
		t.Errorf("%v", got)
	}
	if len(res.Diagnostics) == 0 || res.Diagnostics[0].Reason != `the pattern "gone*" matches no tool` {
		t.Errorf("%+v", res.Diagnostics)
	}
	for trusted, want := range map[bool][]bool{false: {true, true}, true: {false, true}} {
		res := Import("s", objects[:2], Options{Trusted: trusted})
		if got := []bool{res.Tools[0].NeedsApproval, res.Tools[1].NeedsApproval}; !slices.Equal(got, want) {
			t.Errorf("trusted %v: %v", trusted, got)
		}
	}
	tie := Options{Approval: map[string]string{"a*": "never", "*a": "always"}}
	for range 20 {
		if !tie.needsApproval("aa", nil) {
			t.Fatal("of two patterns of the same length, never won")
		}
	}
}

func TestPitfallK32_AbsentHintsAreUnknown(t *testing.T) {
	res := Import("s", raws(`{"name":"a"}`, `{"name":"b","annotations":{}}`, `{"name":"c","annotations":{"readOnlyHint":false,"destructiveHint":null,"idempotentHint":true}}`, `{"name":"d","annotations":{"readOnlyHint":"true"}}`), Options{Trusted: true})
	for _, i := range []int{0, 1, 3} {
		if a := res.Tools[i].Spec.Annotations; a != (dragoman.Annotations{}) {
			t.Errorf("%s: %+v", res.Tools[i].Name, a)
		}
		if !res.Tools[i].NeedsApproval {
			t.Errorf("%s needs no approval", res.Tools[i].Name)
		}
	}
	a := res.Tools[2].Spec.Annotations
	if a.ReadOnly == nil || *a.ReadOnly || a.Destructive != nil || a.Idempotent == nil || !*a.Idempotent || a.OpenWorld != nil {
		t.Errorf("%+v", a)
	}
	if d := res.Diagnostics[slices.IndexFunc(res.Diagnostics, func(d Diagnostic) bool { return d.Kind == Dropped })]; d.Tool != "d" || d.Reason != "readOnlyHint: want true or false, have a text" {
		t.Errorf("%+v", d)
	}
}

func TestQuirkH14_MetaAndIconsStayRawAndHiddenFromModels(t *testing.T) {
	object := `{"name":"a","title":"A","icons":[{"src":"data:x", "n": 9007199254740993}],"_meta":{"x":{"n":9007199254740993}},"execution":{"taskSupport":"optional"},"outputSchema":{"type":"object","properties":{"n":{"const":9007199254740993}}},"vendor":1}`
	got := Import("s", raws(object), Options{}).Tools[0]
	if string(got.Icons) != `[{"src":"data:x", "n": 9007199254740993}]` || string(got.Meta) != `{"x":{"n":9007199254740993}}` || string(got.Execution) != `{"taskSupport":"optional"}` {
		t.Errorf("%s %s %s", got.Icons, got.Meta, got.Execution)
	}
	if string(got.Spec.Source.JSON) != object || got.Spec.Source.Format != "mcp.tool" || got.Title != "A" {
		t.Errorf("%+v", got.Spec.Source)
	}
	if !bytes.Contains(got.OutputSchema, []byte("9007199254740993")) {
		t.Errorf("%s", got.OutputSchema)
	}
}

// The source is sent unchanged to MCP targets exactly if nothing was repaired or renamed.
func TestSourceIsValidForUnchangedToolsOnly(t *testing.T) {
	for object, want := range map[string]bool{
		`{"name":"a","description":"d","inputSchema":{"type":"object"}}`:                               true,
		`{"name":"a","title":"A","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`: true,
		`{"name":"a b","inputSchema":{"type":"object"}}`:                                               false,
		`{"name":"a","inputSchema":{}}`:                                                                false,
	} {
		spec := Import("s", raws(object), Options{}).Tools[0].Spec
		if got := spec.Source.Mirror == spec.Fingerprint(); got != want {
			t.Errorf("%s: %v", object, got)
		}
		decoded, _, err := interop.New(interop.Options{}).InspectSchema(dragoman.Native{Format: "mcp.tool", JSON: json.RawMessage(object)})
		if err != nil || len(decoded) != 1 || decoded[0].Source == nil {
			t.Fatalf("%v, %+v", err, decoded)
		}
		if decoded[0].Source.Mirror != spec.Source.Mirror {
			t.Errorf("%s: the mirror differs from that of interop", object)
		}
	}
}

func TestQuirkH15_LongDescriptionsAreCutAtACharacter(t *testing.T) {
	long := strings.Repeat("é", 3000)
	res := Import("s", raws(`{"name":"a","description":"`+long+`","title":"`+long+`"}`), Options{})
	got := res.Tools[0]
	if n := len(got.Spec.Description); n > 4096 || n < 4090 || !strings.HasSuffix(got.Spec.Description, "é…") || len(got.Title) > 256 {
		t.Errorf("%d bytes, title %d", n, len(got.Title))
	}
	if got.Description() != long {
		t.Error("the definition does not have the full description")
	}
	if len(res.Diagnostics) != 3 || res.Diagnostics[0].Kind != Lowered || res.Diagnostics[0].Reason != "shortened from 6000 to 4096 bytes" {
		t.Errorf("%+v", res.Diagnostics)
	}
	usable(t, got.Spec)
}

func TestHiddenCharactersDoNotReachModels(t *testing.T) {
	res := Import("s", raws(`{"name":"a\u202eb","title":"T\u200b","description":"one\u200b \ud83d\udc69\u200d\ud83d\udcbb \u001b[31mtwo\udb40\udc41","inputSchema":{"type":"object","properties":{"p":{"type":"string","description":"x\u202ey","default":"\u202e"}}}}`), Options{})
	got := res.Tools[0]
	if got.Spec.Description != "one \U0001F469\u200d\U0001F4BB [31mtwo" || got.Spec.Annotations.Title != "T" || strings.Contains(string(got.Spec.Parameters), `x\u202ey`) || !strings.Contains(string(got.Spec.Parameters), "xy") {
		t.Errorf("%q %q %s", got.Spec.Description, got.Spec.Annotations.Title, got.Spec.Parameters)
	}
	if !got.Blocked() || len(res.Diagnostics) < 3 {
		t.Errorf("%+v", res)
	}
	usable(t, got.Spec)
}

func TestAppOnlyToolsAreHiddenFromModels(t *testing.T) {
	for visibility, want := range map[string]bool{`["app"]`: true, `["model","app"]`: false, `["model"]`: false, `[]`: true, `"app"`: false, `null`: false} {
		res := Import("s", raws(`{"name":"a","_meta":{"ui":{"visibility":`+visibility+`}}}`), Options{})
		if got := res.Tools[0].AppOnly; got != want || want != slices.ContainsFunc(res.Diagnostics, func(d Diagnostic) bool { return d.Kind == Hidden }) {
			t.Errorf("%s: %v", visibility, got)
		}
	}
}

func TestQuirkH16_InvalidHeaderAnnotationsDropTheToolOverHTTP(t *testing.T) {
	for name, c := range map[string]struct {
		in   string
		want []HeaderParam
		bad  string
	}{
		"valid": {
			in:   `{"type":"object","properties":{"b":{"type":"string","x-mcp-header":"Path"},"a":{"type":"object","properties":{"n/x":{"type":"integer","x-mcp-header":"Num"}}},"f":{"type":"boolean","x-mcp-header":"flag"}}}`,
			want: []HeaderParam{{[]string{"a", "n/x"}, "Num", "integer"}, {[]string{"b"}, "Path", "string"}, {[]string{"f"}, "flag", "boolean"}},
		},
		"a parameter of that name": {in: `{"type":"object","properties":{"x-mcp-header":{"type":"string"}},"default":{"x-mcp-header":1}}`},
		"empty":                    {in: `{"type":"object","properties":{"a":{"type":"string","x-mcp-header":""}}}`, bad: "is not the name of a header"},
		"not a text":               {in: `{"type":"object","properties":{"a":{"type":"string","x-mcp-header":1}}}`, bad: "is not the name of a header"},
		"not a token":              {in: `{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"a b"}}}`, bad: "is not the name of a header"},
		"line break":               {in: `{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"a\r\nX: y"}}}`, bad: "is not the name of a header"},
		"number":                   {in: `{"type":"object","properties":{"a":{"type":"number","x-mcp-header":"A"}}}`, bad: "needs the type string, integer or boolean"},
		"object":                   {in: `{"type":"object","properties":{"a":{"type":"object","x-mcp-header":"A"}}}`, bad: "needs the type"},
		"no type":                  {in: `{"type":"object","properties":{"a":{"x-mcp-header":"A"}}}`, bad: "needs the type"},
		"twice":                    {in: `{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}}`, bad: "two parameters have"},
		"in items":                 {in: `{"type":"object","properties":{"l":{"type":"array","items":{"type":"string","x-mcp-header":"A"}}}}`, bad: "not reached through properties only"},
		"in anyOf":                 {in: `{"type":"object","anyOf":[{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}]}`, bad: "not reached through properties only"},
		"in definition":            {in: `{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{"type":"string","x-mcp-header":"A"}}}`, bad: "not reached through properties only"},
		"at the root":              {in: `{"type":"object","x-mcp-header":"A"}`, bad: "not reached through properties only"},
	} {
		t.Run(name, func(t *testing.T) {
			overHTTP, overStdio := importOne(t, c.in, Options{HTTP: true}), importOne(t, c.in, Options{})
			if len(overStdio.Tools) != 2 {
				t.Errorf("dropped over stdio: %+v", overStdio.Diagnostics)
			}
			if c.bad != "" {
				if len(overHTTP.Tools) != 1 || !strings.Contains(overHTTP.Diagnostics[0].Reason, c.bad) {
					t.Errorf("%+v", overHTTP.Diagnostics)
				}
				return
			}
			if len(overHTTP.Tools) != 2 || !reflect.DeepEqual(overHTTP.Tools[0].Headers, c.want) {
				t.Errorf("%+v, %+v", overHTTP.Tools[0].Headers, overHTTP.Diagnostics)
			}
		})
	}
}

func TestUnusableOutputSchemasAreDroppedWithoutTheTool(t *testing.T) {
	for _, out := range []string{`"x"`, `{"type":"nonsense"}`, `{"$ref":"https://x.example/s"}`, `{"$ref":"#/gone"}`} {
		res := Import("s", raws(`{"name":"a","outputSchema":`+out+`}`), Options{})
		if len(res.Tools) != 1 || res.Tools[0].OutputSchema != nil || res.Tools[0].Spec.OutputSchema != nil || !slices.ContainsFunc(res.Diagnostics, func(d Diagnostic) bool { return d.Field == "outputSchema" && d.Kind == Dropped }) {
			t.Errorf("%s: %+v", out, res)
		}
		usable(t, res.Tools[0].Spec)
	}
	res := Import("s", raws(`{"name":"a","outputSchema":{"type":"array"}}`), Options{})
	if string(res.Tools[0].OutputSchema) != `{"type":"array"}` {
		t.Errorf("%+v", res)
	}
}

// Every real tool can be in a toolbox and lowered for every target.
func TestRealToolsLowerForEveryTarget(t *testing.T) {
	names, servers := zooServers(t)
	for _, name := range names {
		for _, tool := range Import(name, servers[name], Options{}).Tools {
			usable(t, tool.Spec)
			for _, p := range all.Profiles() {
				if low, err := schema.Lower(tool.Spec.Parameters, p); err == nil {
					if v := schema.Check(low.Schema, p); len(v) > 0 {
						t.Errorf("%s %s %s: %v", name, tool.Name, p.Name(), v)
					}
				} else if !p.Strict() {
					t.Errorf("%s %s %s: %v", name, tool.Name, p.Name(), err)
				}
			}
		}
	}
}

func TestImportIsDeterministic(t *testing.T) {
	names, servers := zooServers(t)
	for _, name := range names {
		a, b := Import(name, servers[name], Options{Prefix: true}), Import(name, servers[name], Options{Prefix: true})
		if !reflect.DeepEqual(a, b) {
			t.Errorf("%s differs", name)
		}
	}
}
