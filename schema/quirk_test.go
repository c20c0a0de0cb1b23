package schema

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	dragoman "github.com/dragoman-go/dragoman"
)

// lowering is one case: a source, a profile, and the expected result. An empty want means the
// bytes of the source.
type lowering struct {
	name    string
	profile Profile
	src     string
	want    string
	// losses are the "kind pointer" pairs that the report must contain.
	losses []string
}

func runLowerings(t *testing.T, cases []lowering) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			src := []byte(c.src)
			got, report, err := lowered(src, c.profile)
			if err != nil {
				t.Fatalf("Lower(%s): %v", c.src, err)
			}
			if string(src) != c.src {
				t.Errorf("the source was changed to %s", src)
			}
			want := c.want
			if want == "" {
				want = c.src
				if len(report.Losses) > 0 {
					t.Errorf("losses without a change:\n%v", report)
				}
			}
			if diff := cmp.Diff(want, string(got)); diff != "" {
				t.Errorf("lowered (-want +got):\n%s", diff)
			}
			for _, l := range c.losses {
				kind, ptr, _ := strings.Cut(l, " ")
				if !hasLoss(report, kind, ptr) {
					t.Errorf("no loss %q in the report:\n%v", l, report)
				}
			}
			checkLowered(t, c.src, got, c.profile, report)
		})
	}
}

func hasLoss(r dragoman.Report, kind, ptr string) bool {
	for _, l := range r.Losses {
		if string(l.Kind) == kind && l.Path == ptr {
			return true
		}
	}
	return false
}

// checkLowered checks the properties that hold for every lowered schema.
func checkLowered(t testing.TB, src string, out json.RawMessage, p Profile, report dragoman.Report) {
	t.Helper()
	if v := Check(out, p); v != nil {
		t.Errorf("%s: Lower(%s) = %s breaks %v", p.Name(), src, out, v)
	}
	again, more, err := lowered(out, p)
	if err != nil || string(again) != string(out) || len(more.Losses) > 0 {
		t.Errorf("%s: lowering %s\nagain gave %s\n%v %v", p.Name(), out, again, more, err)
	}
	if (len(report.Losses) == 0) != (string(out) == src) {
		t.Errorf("%s: %d losses for %s -> %s", p.Name(), len(report.Losses), src, out)
	}
	if !p.Fits(out) {
		t.Errorf("%s: the result does not fit its own profile: %s", p.Name(), out)
	}
	for _, l := range report.Losses {
		if l.Detail == "" || l.Kind == "" || l.Path != "" && l.Path[0] != '/' {
			t.Errorf("a loss that says too little: %+v", l)
		}
	}
}

func all() []Profile {
	return []Profile{OpenAITool(), OpenAIOutput(), OpenAIStrict(), AnthropicTool(), AnthropicStrict()}
}

func refused(t *testing.T, kind error, p Profile, src string) {
	t.Helper()
	out, _, err := lowered([]byte(src), p)
	if !errors.Is(err, kind) {
		t.Errorf("%s: Lower(%s) = %s, %v; want %v", p.Name(), src, out, err, kind)
	}
	var e *Error
	if err != nil && (!errors.As(err, &e) || e.Reason == "") {
		t.Errorf("the error does not say why: %#v", err)
	}
	if p.Fits([]byte(src)) {
		t.Errorf("%s: %s fits the fast path", p.Name(), src)
	}
}

func TestQuirkA3_DefinitionsFollowTheTarget(t *testing.T) {
	src := `{"type":"object","properties":{"a":{"$ref":"#/definitions/A"}},"definitions":{"A":{"type":"string"}}}`
	runLowerings(t, []lowering{
		{"OpenAI accepts the old name", OpenAITool(), src, "", nil},
		{
			"Anthropic gets the new name and the reference follows", AnthropicTool(), src,
			`{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{"type":"string"}}}`,
			[]string{"renamed /definitions"},
		},
		{
			"a reference to another property gets a definition in strict", AnthropicStrict(),
			`{"type":"object","properties":{"a":{"type":"string"},"b":{"$ref":"#/properties/a"}},"additionalProperties":false}`,
			`{"type":"object","properties":{"a":{"type":"string"},"b":{"$ref":"#/$defs/a"}},"additionalProperties":false,"$defs":{"a":{"type":"string"}}}`,
			[]string{"moved /properties/a"},
		},
		{
			"a reference with an escaped slash is followed", AnthropicStrict(),
			`{"type":"object","properties":{"b":{"$ref":"#/$defs/x~1y"}},"additionalProperties":false,"$defs":{"x/y":{"type":"string"}}}`, "", nil,
		},
		{
			"a reference into an unknown keyword is followed", OpenAITool(),
			`{"type":"object","properties":{"b":{"$ref":"#/components/schemas/X"}},"components":{"schemas":{"X":{"type":"string"}}}}`, "", nil,
		},
		{
			"the same is gathered for strict", AnthropicStrict(),
			`{"type":"object","properties":{"b":{"$ref":"#/components/schemas/X"}},"components":{"schemas":{"X":{"type":"string"}}},"additionalProperties":false}`,
			`{"type":"object","properties":{"b":{"$ref":"#/$defs/X"}},"additionalProperties":false,"$defs":{"X":{"type":"string"}}}`,
			[]string{"dropped /components"},
		},
		{
			"a reference that leads nowhere is dropped and reported", OpenAITool(),
			`{"type":"object","properties":{"a":{"$ref":"#/nowhere","description":"an a"}}}`,
			`{"type":"object","properties":{"a":{"description":"an a (see #/nowhere)"}}}`,
			[]string{"dropped /properties/a/$ref"},
		},
		{
			"a reference to another document is never followed", AnthropicTool(),
			`{"type":"object","properties":{"a":{"$ref":"https://example.org/a.json"}}}`,
			`{"type":"object","properties":{"a":{"description":"(see https://example.org/a.json)"}}}`,
			[]string{"dropped /properties/a/$ref"},
		},
		{
			"a reference by anchor stays where it works", OpenAITool(),
			`{"type":"object","properties":{"a":{"$ref":"#x"}},"$defs":{"X":{"$anchor":"x","type":"string"}}}`, "", nil,
		},
	})
}

// doublingDefs is a schema with n definitions, each of which refers to the next one twice.
func doublingDefs(n int, ref string) string {
	var b strings.Builder
	b.WriteString(`{"type":"object","properties":{"a":{"$ref":"#/$defs/d0"` + ref + `}},"$defs":{`)
	for i := range n {
		next := `{"$ref":"#/$defs/d` + itoa(i+1) + `"` + ref + `}`
		b.WriteString(`"d` + itoa(i) + `":{"type":"object","properties":{"l":` + next + `,"r":` + next + `}},`)
	}
	b.WriteString(`"d` + itoa(n) + `":{"type":"object","properties":{"s":{"type":"string"}}}}}`)
	return b.String()
}

func TestQuirkA3_ExponentialReferencesStaySmall(t *testing.T) {
	for _, ref := range []string{"", `,"type":"object"`, `,"required":["l"]`, `,"properties":{"x":{"type":"string"}}`} {
		src := doublingDefs(30, ref)
		for _, p := range all() {
			start := time.Now()
			out, _, err := lowered([]byte(src), p)
			took := time.Since(start)
			if err != nil && !errors.Is(err, dragoman.ErrTooLarge) && !errors.Is(err, dragoman.ErrUnsupported) {
				t.Errorf("%s %q: %v", p.Name(), ref, err)
			}
			if len(out) > maxSchemaBytes {
				t.Errorf("%s %q: %d bytes", p.Name(), ref, len(out))
			}
			// It takes 10 ms. The margin is for the race detector and a busy machine; without
			// the limit it would take days.
			if took > 2*time.Second {
				t.Errorf("%s %q took %v", p.Name(), ref, took)
			}
		}
	}
}

func TestQuirkA4_ReferencesHaveNoSiblings(t *testing.T) {
	defs := `"$defs":{"A":{"type":"object","properties":{"x":{"type":"string"}},"required":["x"],"additionalProperties":false}}`
	runLowerings(t, []lowering{
		{
			"a description moves outside of a union around it", OpenAIStrict(),
			`{"type":"object","properties":{"a":{"$ref":"#/$defs/A","description":"the a"}},"required":["a"],"additionalProperties":false,` + defs + `}`,
			`{"type":"object","properties":{"a":{"description":"the a","anyOf":[{"$ref":"#/$defs/A"}]}},"required":["a"],"additionalProperties":false,` + defs + `}`,
			[]string{"lowered /properties/a/$ref"},
		},
		{
			"a default is described in the description", OpenAIStrict(),
			`{"type":"object","properties":{"a":{"$ref":"#/$defs/A","default":{"x":"y"}}},"required":["a"],"additionalProperties":false,` + defs + `}`,
			`{"type":"object","properties":{"a":{"description":"(default: {\"x\":\"y\"})","anyOf":[{"$ref":"#/$defs/A"}]}},"required":["a"],"additionalProperties":false,` + defs + `}`,
			[]string{"moved /properties/a/default"},
		},
		{
			"a type that the reference has as well is dropped", OpenAIStrict(),
			`{"type":"object","properties":{"a":{"$ref":"#/$defs/A","type":"object"}},"required":["a"],"additionalProperties":false,` + defs + `}`,
			`{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}},"required":["a"],"additionalProperties":false,` + defs + `}`,
			[]string{"dropped /properties/a/type"},
		},
		{
			"constraints are merged with what the reference means", AnthropicStrict(),
			`{"type":"object","properties":{"a":{"$ref":"#/$defs/A","properties":{"y":{"type":"integer"}}}},"additionalProperties":false,"$defs":{"A":{"type":"object","properties":{"x":{"type":"string"}}}}}`,
			`{"type":"object","properties":{"a":{"type":"object","properties":{"x":{"type":"string"},"y":{"type":"integer"}},"additionalProperties":false}},"additionalProperties":false}`,
			[]string{"lowered /properties/a/$ref", "dropped /$defs/A"},
		},
		{
			"without strict the siblings stay", AnthropicTool(),
			`{"type":"object","properties":{"a":{"$ref":"#/$defs/A","description":"the a"}},` + defs + `}`, "", nil,
		},
	})
}

func TestQuirkA5_RootUnionIsMerged(t *testing.T) {
	runLowerings(t, []lowering{
		{
			"branches that only require names become a remark", OpenAITool(),
			`{"type":"object","properties":{"id":{"type":"string"},"name":{"type":"string"}},"anyOf":[{"required":["id"]},{"required":["name"]}]}`,
			`{"type":"object","properties":{"id":{"type":"string"},"name":{"type":"string"}},"description":"(one of: id | name)"}`,
			[]string{"lowered /anyOf"},
		},
		{
			"the remark follows the author's description", AnthropicTool(),
			`{"type":"object","description":"Finds a page.","properties":{"id":{"type":"string"}},"oneOf":[{"required":["id"]},{"required":["a","b"]}]}`,
			`{"type":"object","description":"Finds a page. (one of: id | a + b)","properties":{"id":{"type":"string"}}}`,
			[]string{"lowered /oneOf"},
		},
		{
			"shapes are united and only what all require is required", OpenAITool(),
			`{"oneOf":[{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"required":["a","b"]},{"type":"object","properties":{"a":{"type":"string"},"c":{"type":"integer"}},"required":["a"]}],"required":["z"]}`,
			`{"required":["z","a"],"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"},"c":{"type":"integer"}},"description":"(one of: a + b | a)"}`,
			[]string{"lowered /oneOf"},
		},
		{
			"a property with two types takes either", AnthropicTool(),
			`{"type":"object","anyOf":[{"properties":{"v":{"type":"string"}}},{"properties":{"v":{"type":"number"}}}]}`,
			`{"type":"object","properties":{"v":{"anyOf":[{"type":"string"},{"type":"number"}]}}}`,
			[]string{"lowered /anyOf/0/properties/v", "lowered /anyOf"},
		},
		{
			"closed stays closed when every branch is", OpenAITool(),
			`{"anyOf":[{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false},{"type":"object","properties":{"b":{"type":"string"}},"additionalProperties":false}]}`,
			`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"additionalProperties":false}`, nil,
		},
		{
			"branches by reference are looked up, and nested unions too", AnthropicTool(),
			`{"anyOf":[{"$ref":"#/$defs/A"},{"oneOf":[{"$ref":"#/$defs/B"}]}],"$defs":{"A":{"type":"object","properties":{"a":{"type":"string"}}},"B":{"type":"object","properties":{"b":{"$ref":"#/$defs/A"}}}}}`,
			`{"$defs":{"A":{"type":"object","properties":{"a":{"type":"string"}}},"B":{"type":"object","properties":{"b":{"$ref":"#/$defs/A"}}}},"type":"object","properties":{"a":{"type":"string"},"b":{"$ref":"#/$defs/A"}}}`, nil,
		},
		{
			"a branch that is not an object is dropped", OpenAITool(),
			`{"anyOf":[{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]},{"type":"null"}]}`,
			`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`,
			[]string{"dropped /anyOf/1"},
		},
		{
			"allOf at the root is merged, and both constraints kept", OpenAITool(),
			`{"allOf":[{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]},{"properties":{"a":{"minLength":2},"b":{"type":"string"}},"required":["b"]}]}`,
			`{"type":"object","properties":{"a":{"allOf":[{"type":"string"},{"minLength":2}]},"b":{"type":"string"}},"required":["a","b"]}`,
			[]string{"lowered /allOf"},
		},
		{
			"enum and not at the root become remarks", AnthropicTool(),
			`{"type":"object","properties":{"a":{"type":"string"}},"not":{"required":["b"]},"enum":[{"a":"x"}]}`,
			`{"type":"object","properties":{"a":{"type":"string"}},"description":"(enum: [{\"a\":\"x\"}]) (not: {\"required\":[\"b\"]})"}`,
			[]string{"moved /not", "moved /enum"},
		},
		{
			"a reference into a branch survives the merge", OpenAITool(),
			`{"anyOf":[{"type":"object","properties":{"a":{"type":"string","minLength":3}}},{"type":"object","properties":{"b":{"$ref":"#/anyOf/0/properties/a"}}}]}`,
			`{"type":"object","properties":{"a":{"type":"string","minLength":3},"b":{"$ref":"#/$defs/a"}},"$defs":{"a":{"type":"string","minLength":3}}}`, nil,
		},
	})
	for _, p := range all() {
		refused(t, ErrInvalid, p, `{"anyOf":[{"type":"string"},{"type":"null"}]}`)
	}
}

func TestQuirkA6_NestedAllOfIsMergedForStrict(t *testing.T) {
	runLowerings(t, []lowering{
		{
			"properties and required names are united", OpenAIStrict(),
			`{"type":"object","properties":{"a":{"allOf":[{"type":"object","properties":{"x":{"type":"string"}},"required":["x"]},{"properties":{"y":{"type":"integer"}},"required":["y"]}]}},"required":["a"],"additionalProperties":false}`,
			`{"type":"object","properties":{"a":{"type":"object","properties":{"x":{"type":"string"},"y":{"type":"integer"}},"required":["x","y"],"additionalProperties":false}},"required":["a"],"additionalProperties":false}`,
			[]string{"lowered /properties/a/allOf"},
		},
		{
			"an allOf of one reference is the reference", OpenAIStrict(),
			`{"type":"object","properties":{"a":{"allOf":[{"$ref":"#/$defs/A"}]}},"required":["a"],"additionalProperties":false,"$defs":{"A":{"type":"string"}}}`,
			`{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}},"required":["a"],"additionalProperties":false,"$defs":{"A":{"type":"string"}}}`, nil,
		},
		{
			"two closed objects would exclude each other, so Anthropic strict gets one", AnthropicStrict(),
			`{"type":"object","properties":{"a":{"allOf":[{"$ref":"#/$defs/A"},{"type":"object","properties":{"y":{"type":"integer"}}}]}},"additionalProperties":false,"$defs":{"A":{"type":"object","properties":{"x":{"type":"string"}}}}}`,
			`{"type":"object","properties":{"a":{"type":"object","properties":{"x":{"type":"string"},"y":{"type":"integer"}},"additionalProperties":false}},"additionalProperties":false}`, nil,
		},
		{
			"types are intersected and bounds kept", OpenAIStrict(),
			`{"type":"object","properties":{"n":{"allOf":[{"type":["number","null"]},{"type":"integer","minimum":1}]}},"required":["n"],"additionalProperties":false}`,
			`{"type":"object","properties":{"n":{"type":"integer","minimum":1}},"required":["n"],"additionalProperties":false}`, nil,
		},
		{
			"without strict it stays", OpenAITool(),
			`{"type":"object","properties":{"a":{"allOf":[{"type":"string"},{"minLength":2}]}}}`, "", nil,
		},
	})
}

func TestQuirkA7_OneOfBecomesAnyOf(t *testing.T) {
	runLowerings(t, []lowering{
		{
			"renamed, and the discriminator dropped", OpenAIStrict(),
			`{"type":"object","properties":{"a":{"oneOf":[{"type":"string"},{"type":"integer"}],"discriminator":{"propertyName":"k"}}},"required":["a"],"additionalProperties":false}`,
			`{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"integer"}]}},"required":["a"],"additionalProperties":false}`,
			[]string{"lowered /properties/a/oneOf", "dropped /properties/a/discriminator"},
		},
		{
			"combined with an anyOf next to it", AnthropicStrict(),
			`{"type":"object","properties":{"a":{"anyOf":[{"type":"string"}],"oneOf":[{"type":"integer"}]}},"additionalProperties":false}`,
			`{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"integer"}]}},"additionalProperties":false}`,
			[]string{"lowered /properties/a/oneOf"},
		},
		{
			"a type next to it goes into the branches", OpenAIStrict(),
			`{"type":"object","properties":{"a":{"type":"string","anyOf":[{"enum":["x"]},{"pattern":"^y"}]}},"required":["a"],"additionalProperties":false}`,
			`{"type":"object","properties":{"a":{"anyOf":[{"type":"string","enum":["x"]},{"type":"string","pattern":"^y"}]}},"required":["a"],"additionalProperties":false}`,
			[]string{"lowered /properties/a/anyOf"},
		},
		{
			"a type that every branch has is dropped", OpenAIStrict(),
			`{"type":"object","properties":{"a":{"type":["string","null"],"anyOf":[{"type":"string"},{"type":"null"}]}},"required":["a"],"additionalProperties":false}`,
			`{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}]}},"required":["a"],"additionalProperties":false}`,
			[]string{"dropped /properties/a/type"},
		},
		{
			"without strict it stays", AnthropicTool(),
			`{"type":"object","properties":{"a":{"oneOf":[{"type":"string"},{"type":"integer"}]}}}`, "", nil,
		},
	})
}

func TestQuirkA8_TypeListsStay(t *testing.T) {
	for _, p := range all() {
		src := `{"type":"object","properties":{"a":{"type":["string","null"]},"b":{"type":["boolean","string"]}},"required":["a","b"],"additionalProperties":false}`
		runLowerings(t, []lowering{{p.Name() + " takes a list of types", p, src, "", nil}})
	}
}

func TestQuirkA9_NullableIsWrittenAsNull(t *testing.T) {
	cases := [][3]string{
		{"a type gets null next to it", `{"type":"string","nullable":true}`, `{"type":["string","null"]}`},
		{"an enum lists null too", `{"type":"string","enum":["a"],"nullable":true}`, `{"type":["string","null"],"enum":["a",null]}`},
		{"a union gets a branch", `{"anyOf":[{"type":"string"}],"nullable":true}`, `{"anyOf":[{"type":"string"},{"type":"null"}]}`},
		{"a reference gets a union around it", `{"$ref":"#/$defs/A","description":"d","nullable":true}`, `{"description":"d","anyOf":[{"$ref":"#/$defs/A"},{"type":"null"}]}`},
		{"a constant keeps its value", `{"const":0,"nullable":true}`, `{"anyOf":[{"const":0},{"type":"null"}]}`},
		{"nullable false has no effect", `{"type":"string","nullable":false}`, `{"type":"string"}`},
		{"a string is taken for the boolean", `{"type":"string","nullable":"true"}`, `{"type":["string","null"]}`},
	}
	doc := func(s string) string {
		return `{"type":"object","properties":{"a":` + s + `},"$defs":{"A":{"type":"string"}}}`
	}
	for _, c := range cases {
		for _, p := range []Profile{OpenAITool(), AnthropicTool()} {
			runLowerings(t, []lowering{{p.Name() + ": " + c[0], p, doc(c[1]), doc(c[2]), nil}})
		}
	}
}

func TestQuirkA12_ConstBecomesEnumIfUnsupported(t *testing.T) {
	p := OpenAIStrict()
	p.allowed[kwConst/64] &^= 1 << (kwConst % 64)
	for _, v := range []string{`0`, `false`, `""`, `"a"`, `1.5`} {
		src := `{"type":"object","properties":{"a":{"const":` + v + `}},"required":["a"],"additionalProperties":false}`
		want := `{"type":"object","properties":{"a":{"type":"` + typeOfText([]byte(v)) + `","enum":[` + v + `]}},"required":["a"],"additionalProperties":false}`
		runLowerings(t, []lowering{{"the constant " + v + " is kept, with its type", p, src, want, []string{"lowered /properties/a/const"}}})
	}
	runLowerings(t, []lowering{{
		"where const is known it only gets a type", OpenAIStrict(),
		`{"type":"object","properties":{"a":{"const":true}},"required":["a"],"additionalProperties":false}`,
		`{"type":"object","properties":{"a":{"type":"boolean","const":true}},"required":["a"],"additionalProperties":false}`,
		[]string{"synthesized /properties/a"},
	}})
}

func TestQuirkA13_BooleanSchemas(t *testing.T) {
	src := `{"type":"object","properties":{"any":true,"none":false,"list":{"type":"array","items":true}}}`
	runLowerings(t, []lowering{
		{"OpenAI takes them", OpenAITool(), src, "", nil},
		{"Anthropic takes them", AnthropicTool(), src, "", nil},
		{
			"strict drops a property that can never be given", AnthropicStrict(),
			`{"type":"object","properties":{"a":{"type":"string"},"none":false},"required":["a"],"additionalProperties":false}`,
			`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`,
			[]string{"dropped /properties/none"},
		},
		{"true at the root is an object", OpenAITool(), `true`, `{"type":"object","properties":{}}`, nil},
	})
	for _, p := range all() {
		refused(t, ErrInvalid, p, `false`)
	}
	for _, p := range []Profile{OpenAIStrict(), AnthropicStrict()} {
		refused(t, dragoman.ErrUnsupported, p, `{"type":"object","properties":{"any":true},"required":["any"],"additionalProperties":false}`)
	}
}

func TestQuirkA14_ArraysGetItems(t *testing.T) {
	src := `{"type":"object","properties":{"a":{"type":"array"},"b":{"anyOf":[{"type":"array"},{"type":"null"}]},"c":{"type":["array","null"]}}}`
	runLowerings(t, []lowering{
		{
			"OpenAI demands them, also inside a union", OpenAITool(), src,
			`{"type":"object","properties":{"a":{"type":"array","items":{}},"b":{"anyOf":[{"type":"array","items":{}},{"type":"null"}]},"c":{"type":["array","null"],"items":{}}}}`,
			[]string{"synthesized /properties/a", "synthesized /properties/b/anyOf/0"},
		},
		{"Anthropic does not", AnthropicTool(), src, "", nil},
	})
}

func TestQuirkA15_Tuples(t *testing.T) {
	src := `{"type":"object","properties":{"p":{"type":"array","items":[{"type":"number"},{"type":"number"},{"type":"string"}],"additionalItems":false}},"required":["p"],"additionalProperties":false}`
	runLowerings(t, []lowering{
		{
			"a list of items is prefixItems now", AnthropicTool(), src,
			`{"type":"object","properties":{"p":{"type":"array","prefixItems":[{"type":"number"},{"type":"number"},{"type":"string"}],"items":false}},"required":["p"],"additionalProperties":false}`,
			[]string{"renamed /properties/p/items"},
		},
		{
			"strict gets an array of any position's form", OpenAIStrict(), src,
			`{"type":"object","properties":{"p":{"type":"array","items":{"anyOf":[{"type":"number"},{"type":"string"}]},"minItems":3,"maxItems":3}},"required":["p"],"additionalProperties":false}`,
			[]string{"lowered /properties/p/items"},
		},
		{
			"bounds that a target lacks are described", AnthropicStrict(), src,
			`{"type":"object","properties":{"p":{"type":"array","items":{"anyOf":[{"type":"number"},{"type":"string"}]},"description":"(minItems: 3) (maxItems: 3)"}},"required":["p"],"additionalProperties":false}`, nil,
		},
		{
			"a draft that no longer holds is not named", OpenAITool(),
			`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"p":{"type":"array","items":[{"type":"number"}]}}}`,
			`{"type":"object","properties":{"p":{"type":"array","prefixItems":[{"type":"number"}],"items":{}}}}`,
			[]string{"dropped /$schema"},
		},
	})
}

func TestQuirkA16_UnknownFormatsAreDescribed(t *testing.T) {
	doc := func(f, desc string) string {
		if desc != "" {
			return `{"type":"object","properties":{"a":{"type":"string","description":"` + desc + `"}},"required":["a"],"additionalProperties":false}`
		}
		return `{"type":"object","properties":{"a":{"type":"string","format":"` + f + `"}},"required":["a"],"additionalProperties":false}`
	}
	for _, f := range []string{"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"} {
		for _, p := range all() {
			runLowerings(t, []lowering{{p.Name() + " takes " + f, p, doc(f, ""), "", nil}})
		}
	}
	runLowerings(t, []lowering{
		{"OpenAI strict does not know uri", OpenAIStrict(), doc("uri", ""), doc("", "(format: uri)"), []string{"moved /properties/a/format"}},
		{"Anthropic strict does", AnthropicStrict(), doc("uri", ""), "", nil},
		{"no strict target knows an invented one", AnthropicStrict(), doc("zip", ""), doc("", "(format: zip)"), nil},
		{"without strict it stays", OpenAITool(), doc("zip", ""), "", nil},
	})
}

func TestQuirkA17_ConstraintsMoveIntoTheDescription(t *testing.T) {
	doc := func(a string) string {
		return `{"type":"object","properties":{"a":` + a + `},"required":["a"],"additionalProperties":false}`
	}
	runLowerings(t, []lowering{
		{"zod's positive is described to Anthropic", AnthropicStrict(), doc(`{"type":"number","exclusiveMinimum":0}`), doc(`{"type":"number","description":"(exclusiveMinimum: 0)"}`), []string{"moved /properties/a/exclusiveMinimum"}},
		{"OpenAI strict enforces it", OpenAIStrict(), doc(`{"type":"number","exclusiveMinimum":0}`), "", nil},
		{"string lengths are described to both", OpenAIStrict(), doc(`{"type":"string","description":"A name.","minLength":1,"maxLength":20}`), doc(`{"type":"string","description":"A name. (minLength: 1) (maxLength: 20)"}`), nil},
		{"minItems of one is enforced by Anthropic", AnthropicStrict(), doc(`{"type":"array","items":{"type":"string"},"minItems":1}`), "", nil},
		{"more is described", AnthropicStrict(), doc(`{"type":"array","items":{"type":"string"},"minItems":2}`), doc(`{"type":"array","items":{"type":"string"},"description":"(minItems: 2)"}`), nil},
		{"uniqueItems is described", OpenAIStrict(), doc(`{"type":"array","items":{"type":"string"},"uniqueItems":true}`), doc(`{"type":"array","items":{"type":"string"},"description":"(uniqueItems: true)"}`), nil},
		{"keywords without effect are dropped silently", OpenAIStrict(), doc(`{"type":"string","minLength":0}`), doc(`{"type":"string"}`), []string{"dropped /properties/a/minLength"}},
		{"a number keeps its text", OpenAIStrict(), doc(`{"type":"number","minimum":1.50,"maximum":1e2,"default":3}`), doc(`{"type":"number","minimum":1.50,"maximum":1e2,"description":"(default: 3)"}`), nil},
		{"without strict all stays", AnthropicTool(), doc(`{"type":"string","minLength":1,"maxLength":20}`), "", nil},
	})
}

func TestQuirkA18_RequiredNamesExist(t *testing.T) {
	runLowerings(t, []lowering{
		{
			"strict drops unknown names", AnthropicStrict(),
			`{"type":"object","properties":{"a":{"type":"string"}},"required":["a","ghost"],"additionalProperties":false}`,
			`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`,
			[]string{"dropped /required"},
		},
		{
			"an empty list is left out", AnthropicStrict(),
			`{"type":"object","properties":{"a":{"type":"string"}},"required":["ghost"],"additionalProperties":false}`,
			`{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`, nil,
		},
		{"elsewhere it is legal JSON Schema", OpenAITool(), `{"type":"object","properties":{},"required":["ghost"]}`, "", nil},
		{"a name stands once", OpenAITool(), `{"type":"object","properties":{"a":{}},"required":["a","a"]}`, `{"type":"object","properties":{"a":{}},"required":["a"]}`, []string{"lowered /required"}},
		{
			"draft-03's flag moves to the object", OpenAITool(),
			`{"type":"object","properties":{"a":{"type":"string","required":true},"b":{"type":"string","required":false}}}`,
			`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"required":["a"]}`,
			[]string{"moved /properties/a/required"},
		},
	})
}

func TestQuirkA19_KeywordsOfAnotherTypeAreDropped(t *testing.T) {
	runLowerings(t, []lowering{
		{
			"a string has no properties", OpenAIStrict(),
			`{"type":"object","properties":{"a":{"type":"string","properties":{},"required":[],"minimum":1}},"required":["a"],"additionalProperties":false}`,
			`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`,
			[]string{"dropped /properties/a/properties", "dropped /properties/a/minimum"},
		},
	})
}

func TestQuirkA20_NoArguments(t *testing.T) {
	for _, src := range []string{``, `null`, ` `, `{}`, `{"type":"object"}`, `{"$schema":"https://json-schema.org/draft/2020-12/schema"}`, `{"type":"object","properties":null}`, `{"type":"object","properties":[]}`, `{"properties":{}}`} {
		for _, p := range all() {
			t.Run(p.Name()+" survives "+src, func(t *testing.T) {
				out, report, err := lowered([]byte(src), p)
				if err != nil {
					t.Fatal(err)
				}
				checkLowered(t, src, out, p, report)
				var s struct {
					Type       string
					Properties map[string]any
				}
				if err := json.Unmarshal(out, &s); err != nil || s.Type != "object" || s.Properties == nil || len(s.Properties) > 0 {
					t.Errorf("%s: %v", out, err)
				}
			})
		}
	}
	if out, r, err := lowered(nil, OpenAITool()); string(out) != `{"type":"object","properties":{}}` || len(r.Losses) != 1 || err != nil {
		t.Errorf("nil: %s %v %v", out, r, err)
	}
}

func TestQuirkA21_NumbersInStrings(t *testing.T) {
	runLowerings(t, []lowering{
		{
			"become numbers", OpenAITool(),
			`{"type":"object","properties":{"a":{"type":"array","items":{},"minItems":"1"},"b":{"type":"number","maximum":"1.50"}}}`,
			`{"type":"object","properties":{"a":{"type":"array","items":{},"minItems":1},"b":{"type":"number","maximum":1.50}}}`,
			[]string{"lowered /properties/a/minItems", "lowered /properties/b/maximum"},
		},
		{
			"a value that is not a number is dropped", AnthropicTool(),
			`{"type":"object","properties":{"a":{"type":"string","minLength":"many","maxLength":-1}}}`,
			`{"type":"object","properties":{"a":{"type":"string"}}}`,
			[]string{"dropped /properties/a/minLength", "dropped /properties/a/maxLength"},
		},
		{
			"draft-04's boolean bounds become numbers", OpenAITool(),
			`{"type":"object","properties":{"a":{"type":"number","minimum":0,"exclusiveMinimum":true}}}`,
			`{"type":"object","properties":{"a":{"type":"number","exclusiveMinimum":0}}}`, nil,
		},
	})
}

func TestQuirkA22_Metadata(t *testing.T) {
	src := `{"$schema":"http://json-schema.org/draft-07/schema#","$id":"urn:x","title":"T","type":"object","properties":{"a":{"type":"string","title":"A","examples":["x"],"x-order":1,"$comment":"c","deprecated":true}},"required":["a"],"additionalProperties":false}`
	runLowerings(t, []lowering{
		{"OpenAI takes it", OpenAITool(), src, "", nil},
		{"Anthropic takes it", AnthropicTool(), src, "", nil},
		{
			"strict keeps titles, tells examples and drops the rest", OpenAIStrict(), src,
			`{"title":"T","type":"object","properties":{"a":{"type":"string","title":"A","description":"(examples: [\"x\"]) (deprecated: true)"}},"required":["a"],"additionalProperties":false}`,
			[]string{"dropped /$schema", "dropped /$id", "moved /properties/a/examples", "dropped /properties/a/x-order"},
		},
	})
}

func TestQuirkA24_NamesAndDataAreNotKeywords(t *testing.T) {
	var props strings.Builder
	for k := kwSchema; k < kwCount; k++ {
		if props.Len() > 0 {
			props.WriteByte(',')
		}
		props.WriteString(`"` + keywords[k].name + `":{"type":"string"}`)
	}
	src := `{"type":"object","properties":{` + props.String() + `}}`
	runLowerings(t, []lowering{
		{"properties may be named like keywords", OpenAITool(), src, "", nil},
		{
			"data is never walked", OpenAITool(),
			`{"type":"object","properties":{"a":{"type":"dict","default":{"type":"dict","$ref":"#/x","nullable":true},"enum":[{"type":"float"}],"const":{"properties":null},"examples":[{"items":[]}]}}}`,
			`{"type":"object","properties":{"a":{"type":"object","default":{"type":"dict","$ref":"#/x","nullable":true},"enum":[{"type":"float"}],"const":{"properties":null},"examples":[{"items":[]}]}}}`, nil,
		},
	})
	out, _, err := lowered([]byte(src), OpenAIStrict())
	if err != nil {
		t.Fatal(err)
	}
	var got struct{ Required []string }
	if err := json.Unmarshal(out, &got); err != nil || len(got.Required) != int(kwCount)-1 {
		t.Errorf("%d of %d properties are left: %s", len(got.Required), kwCount-1, out)
	}
}

func TestQuirkA25_StrictFitsOnlyAsWritten(t *testing.T) {
	strict := `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":["integer","null"]},"c":{"type":"array","items":{"$ref":"#/$defs/C"}}},"required":["a","b","c"],"additionalProperties":false,"$defs":{"C":{"anyOf":[{"type":"string"},{"type":"null"}]}}}`
	cases := []struct {
		name, src         string
		openai, anthropic bool
	}{
		{"a strict schema", strict, true, true},
		{"no arguments, closed", `{"type":"object","properties":{},"additionalProperties":false}`, true, true},
		{"an optional property", `{"type":"object","properties":{"a":{"type":"string"}},"required":[],"additionalProperties":false}`, false, true},
		{"an open object", `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`, false, false},
		{"a default", `{"type":"object","properties":{"a":{"type":"string","default":"x"}},"required":["a"],"additionalProperties":false}`, false, false},
		{"a bound", `{"type":"object","properties":{"a":{"type":"integer","minimum":1}},"required":["a"],"additionalProperties":false}`, true, false},
		{"a recursive schema", `{"type":"object","properties":{"a":{"anyOf":[{"$ref":"#"},{"type":"null"}]}},"required":["a"],"additionalProperties":false}`, true, false},
		{"an untyped property", `{"type":"object","properties":{"a":{}},"required":["a"],"additionalProperties":false}`, false, false},
		{"nothing", ``, false, false},
		{"no JSON", `{`, false, false},
	}
	for _, c := range cases {
		if got := OpenAIStrict().Fits([]byte(c.src)); got != c.openai {
			t.Errorf("%s: OpenAI: %v", c.name, got)
		}
		if got := AnthropicStrict().Fits([]byte(c.src)); got != c.anthropic {
			t.Errorf("%s: Anthropic: %v", c.name, got)
		}
	}
}

func TestQuirkA26_OptionalBecomesNullableAndNullIsOmitted(t *testing.T) {
	src := `{"type":"object","properties":{"a":{"type":"string"},"b":{"enum":["x"]},"c":{"$ref":"#/$defs/C"},"d":{"type":["string","null"]},"e":{"const":1},"f":{"properties":{"g":{"type":"string"}}}},"required":["a"],"$defs":{"C":{"type":"integer"}}}`
	runLowerings(t, []lowering{{
		"each kind of schema learns null", OpenAIStrict(), src,
		`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":["string","null"],"enum":["x",null]},"c":{"anyOf":[{"$ref":"#/$defs/C"},{"type":"null"}]},"d":{"type":["string","null"]},"e":{"anyOf":[{"type":"integer","const":1},{"type":"null"}]},"f":{"type":["object","null"],"properties":{"g":{"type":["string","null"]}},"additionalProperties":false,"required":["g"]}},"required":["a","b","c","d","e","f"],"$defs":{"C":{"type":"integer"}},"additionalProperties":false}`,
		[]string{"lowered /properties/b", "lowered /properties/c", "lowered /properties/d"},
	}})

	args := `{"a":"x","b":null,"c":null,"d":null,"e":null,"f":{"g":null,"h":null}}`
	if got := string(omitNulls([]byte(src), []byte(args))); got != `{"a":"x","d":null,"f":{"h":null}}` {
		t.Errorf("OmitNulls: %s", got)
	}
	for _, same := range []string{`{"a":null}`, `{"a": "x"}`, `[null]`, `{`, ``, `{"z":null}`} {
		if got := string(omitNulls([]byte(src), []byte(same))); got != same {
			t.Errorf("OmitNulls(%s) = %s", same, got)
		}
	}
	list := `{"type":"object","properties":{"l":{"type":"array","items":{"type":"object","properties":{"a":{"type":"string"}}}}}}`
	if got := string(omitNulls([]byte(list), []byte(`{"l":[{"a":null},{"a":"b"}]}`))); got != `{"l":[{},{"a":"b"}]}` {
		t.Errorf("in a list: %s", got)
	}
}

func TestQuirkA27_LookAroundIsDescribed(t *testing.T) {
	doc := func(a string) string {
		return `{"type":"object","properties":{"a":{"type":"string",` + a + `}},"required":["a"],"additionalProperties":false}`
	}
	runLowerings(t, []lowering{
		{"look-ahead", OpenAIStrict(), doc(`"pattern":"^(?=.*x).+$"`), doc(`"description":"(pattern: ^(?=.*x).+$)"`), []string{"moved /properties/a/pattern"}},
		{"look-behind", AnthropicStrict(), doc(`"pattern":"(?<!a)b"`), doc(`"description":"(pattern: (?<!a)b)"`), nil},
		{"a back reference", OpenAIStrict(), doc(`"pattern":"(a)\\1"`), doc(`"description":"(pattern: (a)\\1)"`), nil},
		{"a plain pattern stays", OpenAIStrict(), doc(`"pattern":"^\\d{3}-(?:x|y)\\("`), "", nil},
		{"without strict all stay", OpenAITool(), doc(`"pattern":"^(?=.*x).+$"`), "", nil},
	})
}

func TestQuirkA28_UntypedItemsAreNotStrict(t *testing.T) {
	for _, p := range []Profile{OpenAIStrict(), AnthropicStrict()} {
		for _, items := range []string{`{}`, `true`, `{"description":"anything"}`} {
			refused(t, dragoman.ErrUnsupported, p, `{"type":"object","properties":{"a":{"type":"array","items":`+items+`}},"required":["a"],"additionalProperties":false}`)
		}
		refused(t, dragoman.ErrUnsupported, p, `{"type":"object","properties":{"a":{"type":"array"}},"required":["a"],"additionalProperties":false}`)
	}
}

func TestQuirkA29_RootReferenceIsHoisted(t *testing.T) {
	src := `{"$ref":"#/$defs/T","$defs":{"T":{"type":"object","properties":{"k":{"type":"array","items":{"$ref":"#/$defs/T"}},"u":{"$ref":"#/$defs/U"}},"required":["k","u"],"additionalProperties":false},"U":{"type":"string"}}}`
	want := `{"type":"object","properties":{"k":{"type":"array","items":{"$ref":"#"}},"u":{"$ref":"#/$defs/U"}},"required":["k","u"],"additionalProperties":false,"$defs":{"U":{"type":"string"}}}`
	for _, p := range []Profile{OpenAITool(), OpenAIStrict(), AnthropicTool()} {
		runLowerings(t, []lowering{{p.Name() + " gets the object at the root", p, src, want, []string{"lowered /$ref"}}})
	}
	refused(t, dragoman.ErrUnsupported, AnthropicStrict(), src)
	runLowerings(t, []lowering{
		{
			"keywords next to the reference override it", OpenAITool(),
			`{"$ref":"#/$defs/T","description":"mine","$defs":{"T":{"type":"object","description":"theirs","properties":{"t":{"$ref":"#/$defs/T"}}}}}`,
			`{"type":"object","description":"mine","properties":{"t":{"$ref":"#/$defs/T"}},"$defs":{"T":{"type":"object","description":"theirs","properties":{"t":{"$ref":"#/$defs/T"}}}}}`, nil,
		},
		{"a reference to itself has no effect", OpenAITool(), `{"$ref":"#","type":"object"}`, `{"type":"object","properties":{}}`, []string{"dropped /$ref"}},
		{
			"nor does one in a circle", AnthropicTool(),
			`{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{"anyOf":[{"$ref":"#/$defs/B"}]},"B":{"$ref":"#/$defs/A"}}}`,
			`{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{"anyOf":[{"$ref":"#/$defs/B"}]},"B":{}}}`,
			[]string{"dropped /$defs/B/$ref"},
		},
	})
}

func TestQuirkA30_MapsAreNotStrict(t *testing.T) {
	for _, p := range []Profile{OpenAIStrict(), AnthropicStrict()} {
		for _, m := range []string{
			`{"type":"object","additionalProperties":{"type":"string"}}`,
			`{"type":"object","additionalProperties":true}`,
			`{"type":"object"}`,
			`{"type":"object","properties":{"x":{"type":"string"}},"additionalProperties":{"type":"string"}}`,
			`{"type":"object","properties":{"x":{"type":"string"}},"patternProperties":{"^y":{"type":"string"}}}`,
		} {
			refused(t, dragoman.ErrUnsupported, p, `{"type":"object","properties":{"m":`+m+`},"required":["m"],"additionalProperties":false}`)
		}
	}
	runLowerings(t, []lowering{{
		"without strict a map is a map", AnthropicTool(),
		`{"type":"object","properties":{"m":{"type":"object","additionalProperties":{"type":"string"}}}}`, "", nil,
	}})
}

func TestQuirkA38_KeyOrderAndTextAreKept(t *testing.T) {
	src := `{"zeta":1,"type":"object","properties":{"z":{"type":"dict","default":{"b":1.0,"a":"<&>"}},"a":{"type":"string"}},"x-y":[1,  2]}`
	runLowerings(t, []lowering{{"only what is wrong changes", OpenAITool(), src, strings.Replace(src, "dict", "object", 1), nil}})
}

func TestQuirkA40_AnyJSONStaysAnyJSON(t *testing.T) {
	for _, p := range []Profile{OpenAITool(), AnthropicTool()} {
		runLowerings(t, []lowering{{p.Name() + " keeps an untyped property", p, `{"type":"object","properties":{"v":{},"w":{"description":"any JSON"}}}`, "", nil}})
	}
}

func TestQuirkA41_ConditionsAreHoistedAndDescribed(t *testing.T) {
	runLowerings(t, []lowering{
		{
			"a property of then is declared", AnthropicStrict(),
			`{"type":"object","properties":{"k":{"type":"string"}},"required":["k"],"additionalProperties":false,"if":{"required":["k"]},"then":{"properties":{"z":{"type":"integer"}},"required":["z"]}}`,
			`{"type":"object","properties":{"k":{"type":"string"},"z":{"type":"integer"}},"required":["k"],"additionalProperties":false,"description":"(if: {\"required\":[\"k\"]}) (then: {\"properties\":{\"z\":{\"type\":\"integer\"}},\"required\":[\"z\"]})"}`,
			[]string{"moved /then/properties/z", "moved /if", "moved /then"},
		},
		{
			"not is described", OpenAIStrict(),
			`{"type":"object","properties":{"k":{"type":"string","not":{"enum":["x"]}}},"required":["k"],"additionalProperties":false}`,
			`{"type":"object","properties":{"k":{"type":"string","description":"(not: {\"enum\":[\"x\"]})"}},"required":["k"],"additionalProperties":false}`,
			[]string{"moved /properties/k/not"},
		},
		{"without strict all stays", OpenAITool(), `{"type":"object","properties":{"k":{"type":"string"}},"if":{"required":["k"]},"then":{"required":["z"]}}`, "", nil},
	})
}

func TestQuirkA45_InvalidToolDoesNotAffectOthers(t *testing.T) {
	good := `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`
	for _, p := range all() {
		for _, bad := range []string{`{`, `[]`, `7`, `"object"`, `{"type":"string"}`, `{"type":"array","items":{}}`, `{"type":"object"}{}`, strings.Repeat(`{"items":`, 5000)} {
			if low, err := Lower(json.RawMessage(bad), p); err == nil || low.Schema != nil {
				t.Errorf("%s: %.40s: %s, %v", p.Name(), bad, low.Schema, err)
			}
			if low, err := Lower(json.RawMessage(good), p); err != nil || string(low.Schema) != good || len(low.Report.Losses) > 0 {
				t.Errorf("%s: the valid tool next to %.40s: %s, %v", p.Name(), bad, low.Schema, err)
			}
		}
		repaired, err := Lower(json.RawMessage(`{"type":"dict","properties":{}}`), p)
		if err != nil || len(repaired.Report.Losses) == 0 || repaired.Schema == nil {
			t.Errorf("%s: %v, %v", p.Name(), repaired, err)
		}
	}
}

func TestQuirkA46_TheSourceIsNeverChanged(t *testing.T) {
	src := doublingDefs(5, `,"nullable":true,"minLength":"3"`)
	in := []byte(src)
	for _, p := range all() {
		_, _, _ = lowered(in, p)
		_ = p.Fits(in)
		_ = Check(in, p)
		if string(in) != src {
			t.Fatalf("%s changed the source", p.Name())
		}
	}
}

func TestQuirkA48_TypesAreInferredForStrict(t *testing.T) {
	doc := func(a string) string {
		return `{"type":"object","properties":{"a":` + a + `},"required":["a"],"additionalProperties":false}`
	}
	runLowerings(t, []lowering{
		{"from all values of an enum", OpenAIStrict(), doc(`{"enum":["a",1,null]}`), doc(`{"type":["string","integer","null"],"enum":["a",1,null]}`), []string{"synthesized /properties/a"}},
		{"numbers of both kinds are numbers", OpenAIStrict(), doc(`{"enum":[1,2.5]}`), doc(`{"type":"number","enum":[1,2.5]}`), nil},
		{"from items", OpenAIStrict(), doc(`{"items":{"type":"string"}}`), doc(`{"type":"array","items":{"type":"string"}}`), nil},
		{"from properties", AnthropicStrict(), doc(`{"properties":{"x":{"type":"string"}}}`), doc(`{"type":"object","properties":{"x":{"type":"string"}},"additionalProperties":false}`), nil},
	})
}

func TestQuirkC17_InvalidUnicodeIsReplaced(t *testing.T) {
	for _, src := range []string{"{\"type\":\"object\",\"properties\":{\"a\":{\"description\":\"x\xff\"}}}", `{"type":"object","properties":{"a":{"description":"x\ud800"}}}`} {
		out, report, err := lowered([]byte(src), OpenAITool())
		want := "{\"type\":\"object\",\"properties\":{\"a\":{\"description\":\"x\uFFFD\"}}}"
		if err != nil || string(out) != want || len(report.Losses) != 1 {
			t.Errorf("%q: %q %v %v", src, out, report, err)
		}
	}
}

func TestQuirkF3_EachSurfaceHasItsOwnProfile(t *testing.T) {
	src := `{"type":"object","properties":{"u":{"type":"string","format":"uri"},"n":{"type":"integer","minimum":1},"o":{"type":"string"}},"required":["u","n"],"additionalProperties":false}`
	want := map[string]string{
		"openai.tool":      src,
		"openai.output":    src,
		"anthropic.tool":   src,
		"openai.strict":    `{"type":"object","properties":{"u":{"type":"string","description":"(format: uri)"},"n":{"type":"integer","minimum":1},"o":{"type":["string","null"]}},"required":["u","n","o"],"additionalProperties":false}`,
		"anthropic.strict": `{"type":"object","properties":{"u":{"type":"string","format":"uri"},"n":{"type":"integer","description":"(minimum: 1)"},"o":{"type":"string"}},"required":["u","n"],"additionalProperties":false}`,
	}
	for _, p := range all() {
		out, _, err := lowered([]byte(src), p)
		if diff := cmp.Diff(want[p.Name()], string(out)); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", p.Name(), err, diff)
		}
		if p.Strict() != strings.HasSuffix(p.Name(), "strict") {
			t.Errorf("%s: Strict() = %v", p.Name(), p.Strict())
		}
	}
	if out, r, err := lowered([]byte(src), Profile{}); string(out) != src || len(r.Losses) > 0 || err != nil {
		t.Errorf("the zero profile changes a schema: %s %v %v", out, r, err)
	}
}

func TestQuirkF6_NonObjectRootsAreWrapped(t *testing.T) {
	cases := []struct{ name, src, want string }{
		{
			"an array", `{"type":"array","items":{"$ref":"#/$defs/I"},"$defs":{"I":{"type":"object","properties":{"l":{"$ref":"#"}}}}}`,
			`{"type":"object","properties":{"value":{"type":"array","items":{"$ref":"#/$defs/I"}}},"required":["value"],"additionalProperties":false,"$defs":{"I":{"type":"object","properties":{"l":{"$ref":"#/properties/value"}}}}}`,
		},
		{"an enum", `{"enum":["a","b"]}`, `{"type":"object","properties":{"value":{"enum":["a","b"]}},"required":["value"],"additionalProperties":false}`},
		{"a union", `{"anyOf":[{"type":"object"},{"type":"null"}]}`, `{"type":"object","properties":{"value":{"anyOf":[{"type":"object"},{"type":"null"}]}},"required":["value"],"additionalProperties":false}`},
		{"an object", `{"type":"object","properties":{}}`, ""},
		{"an object by reference", `{"$ref":"#/$defs/A","$defs":{"A":{"type":"object"}}}`, ""},
	}
	for _, c := range cases {
		got, did, err := Wrap([]byte(c.src))
		want := c.want
		if want == "" {
			want = c.src
		}
		if err != nil || did != (c.want != "") || string(got) != want {
			t.Errorf("%s: %s %v %v", c.name, got, did, err)
		}
		if _, _, err := lowered(got, OpenAIOutput()); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if v, err := Unwrap([]byte(`{"value":[1, 2]}`)); string(v) != `[1, 2]` || err != nil {
		t.Errorf("Unwrap: %s %v", v, err)
	}
	for _, bad := range []string{`{}`, `[]`, `{"value":`, ``} {
		if v, err := Unwrap([]byte(bad)); err == nil {
			t.Errorf("Unwrap(%s) = %s", bad, v)
		}
	}
}

func TestQuirkH1_BrokenRootsBecomeObjects(t *testing.T) {
	runLowerings(t, []lowering{
		{"a missing type", AnthropicTool(), `{"properties":{"a":{"type":"string"}}}`, `{"type":"object","properties":{"a":{"type":"string"}}}`, []string{"synthesized "}},
		{"missing properties", OpenAITool(), `{"type":"object","additionalProperties":{}}`, `{"type":"object","additionalProperties":{},"properties":{}}`, nil},
		{"a type list with object in it", OpenAITool(), `{"type":["object","null"],"properties":{}}`, `{"type":"object","properties":{}}`, []string{"lowered /type"}},
		{"a type in capitals", OpenAITool(), `{"type":"OBJECT","properties":{"a":{"type":"STRING"}}}`, `{"type":"object","properties":{"a":{"type":"string"}}}`, nil},
		{"a property that is only a type's name", AnthropicTool(), `{"type":"object","properties":{"a":"string","b":null}}`, `{"type":"object","properties":{"a":{"type":"string"},"b":{}}}`, nil},
		{
			"names of other languages' types", OpenAITool(),
			`{"type":"dict","properties":{"a":{"type":"float"},"b":{"type":"tuple","items":{"type":"int"}},"c":{"type":"any"},"d":{"type":"bool"},"e":{"type":"gadget"}}}`,
			`{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"array","items":{"type":"integer"}},"c":{},"d":{"type":"boolean"},"e":{}}}`,
			[]string{"lowered /type", "lowered /properties/a/type", "dropped /properties/e/type"},
		},
		{"a duplicate name", OpenAITool(), `{"type":"string","type":"object","properties":{"a":{"type":"string"},"a":{"type":"integer"}}}`, `{"type":"object","properties":{"a":{"type":"integer"}}}`, []string{"dropped /type"}},
		{
			"keywords of the wrong shape", AnthropicTool(),
			`{"type":"object","properties":{"a":{"enum":"x","items":null,"anyOf":[],"description":5,"required":"b"},"b":{"enum":[],"oneOf":{"type":"string"}}}}`,
			`{"type":"object","properties":{"a":{"enum":["x"],"required":["b"]},"b":{"oneOf":[{"type":"string"}]}}}`, nil,
		},
	})
	for _, p := range all() {
		refused(t, ErrInvalid, p, `{"type":"string"}`)
		refused(t, ErrInvalid, p, `{"items":{"type":"string"}}`)
	}
}
