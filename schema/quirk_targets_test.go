package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
)

// prop returns an object schema with one property.
func prop(a string) string { return `{"type":"object","properties":{"a":` + a + `}}` }

// lowersTo runs lowerings of one property for one profile: source, result and losses.
func lowersTo(t *testing.T, p Profile, cases [][]string) {
	t.Helper()
	for _, c := range cases {
		want := ""
		if c[2] != "" {
			want = prop(c[2])
		}
		runLowerings(t, []lowering{{p.Name() + ": " + c[0], p, prop(c[1]), want, c[3:]}})
	}
}

func everyKeyword(below string) string {
	return `{"$schema":"https://json-schema.org/draft/2020-12/schema","$id":"urn:x","$anchor":"y","$comment":"c","$vocabulary":{},
	"$defs":{"d":{"type":"string"}},"definitions":{"e":{"type":"string"}},"title":"t","description":"d","default":1,"deprecated":true,
	"readOnly":true,"writeOnly":false,"examples":[1],"example":1,"type":["object","array","string","number","null"],"x-vendor":1,
	"enum":["a",1,null,{"b":1}],"const":"a","multipleOf":2,"maximum":9,"exclusiveMaximum":9,"minimum":1,"exclusiveMinimum":1,
	"maxLength":9,"minLength":1,"pattern":"^a","format":"uri","contentEncoding":"base64","contentMediaType":"a/b","contentSchema":{},
	"maxItems":9,"minItems":1,"uniqueItems":true,"maxContains":3,"minContains":1,"contains":{},"prefixItems":[{"const":1}],"items":` + below + `,
	"unevaluatedItems":false,"maxProperties":9,"minProperties":1,"required":["p","ghost"],"dependentRequired":{"p":["q"]},
	"properties":{"p":` + below + `},"patternProperties":{"^x":` + below + `},"additionalProperties":` + below + `,"propertyNames":{"pattern":"^a"},
	"unevaluatedProperties":false,"dependentSchemas":{"p":` + below + `},"allOf":[` + below + `],"anyOf":[` + below + `,{"type":"null"}],
	"oneOf":[` + below + `,{"type":"string"}],"not":{"const":0},"if":{"required":["p"]},"then":{"required":["q"]},"else":{"properties":{"z":{"exclusiveMinimum":0}}},
	"nullable":true,"discriminator":{"propertyName":"k"},"propertyOrdering":["p"]}`
}

func TestQuirkA1_GeminiGetsOnlyItsKeywords(t *testing.T) {
	known := strings.Fields(`anyOf default description enum example format items maxItems minItems maxLength minLength maxProperties
		minProperties maximum minimum nullable pattern properties propertyOrdering required title type`)
	leaf := `{"type":"number","exclusiveMinimum":0,"$comment":"x"}`
	src := prop(everyKeyword(everyKeyword(leaf)))
	for _, p := range []Profile{GeminiParameters(), GeminiResponseSchema()} {
		out, report, err := lowered([]byte(src), p)
		if err != nil {
			t.Fatal(err)
		}
		checkLowered(t, src, out, p, report)
		seen := 0
		var walk func(v any)
		walk = func(v any) {
			s, ok := v.(map[string]any)
			if !ok {
				t.Fatalf("a schema is %v", v)
			}
			seen++
			for k, v := range s {
				if !slices.Contains(known, k) {
					t.Errorf("%s: %s is left", p.Name(), k)
				}
				switch k {
				case "properties":
					for _, c := range v.(map[string]any) {
						walk(c)
					}
				case "items":
					walk(v)
				case "anyOf":
					for _, c := range v.([]any) {
						walk(c)
					}
				}
			}
		}
		var doc any
		if err := json.Unmarshal(out, &doc); err != nil {
			t.Fatal(err)
		}
		walk(doc)
		if seen < 10 {
			t.Errorf("%s: of so much only %d schemas are left: %s", p.Name(), seen, out)
		}
	}
}

func TestQuirkA2_GeminiJSONSchemaKeepsMore(t *testing.T) {
	src := `{"type":"object","properties":{"a":{"$ref":"#/$defs/A"},"m":{"type":"object","additionalProperties":{"type":"integer"}},"n":{"type":["string","null"]}},"$defs":{"A":{"type":"string"}}}`
	runLowerings(t, []lowering{
		{"parametersJsonSchema keeps references, maps and lists of types", GeminiJSONSchema(), src, "", nil},
		{
			"parameters keeps none of them", GeminiParameters(), src,
			`{"type":"object","properties":{"a":{"type":"string"},"m":{"type":"array","items":{"type":"object","properties":{"key":{"type":"string"},"value":{"type":"integer"}},"required":["key","value"]}},"n":{"type":"string","nullable":true}}}`,
			[]string{"lowered /properties/a/$ref", "dropped /$defs", "lowered /properties/m/additionalProperties", "lowered /properties/n/type"},
		},
	})
}

func TestQuirkA3_ReferencesAreInlinedIfUnsupported(t *testing.T) {
	runLowerings(t, []lowering{
		{
			"a reference to another property", GeminiParameters(),
			`{"type":"object","properties":{"a":{"type":"array","items":{"$ref":"#/properties/h"}},"h":{"type":"string"}}}`,
			`{"type":"object","properties":{"a":{"type":"array","items":{"type":"string"}},"h":{"type":"string"}}}`,
			[]string{"lowered /properties/a/items/$ref"},
		},
		{
			"through an escaped name, and from definition to definition", OllamaTool(),
			`{"type":"object","properties":{"a":{"$ref":"#/definitions/x~1y"}},"definitions":{"x/y":{"$ref":"#/definitions/z","description":"d"},"z":{"type":"integer"}}}`,
			`{"type":"object","properties":{"a":{"type":"integer","description":"d"}}}`,
			[]string{"dropped /definitions"},
		},
		{
			"what leads nowhere is described", CompatTool(),
			prop(`{"$ref":"#/nowhere"}`), prop(`{"description":"(see #/nowhere)"}`),
			[]string{"dropped /properties/a/$ref"},
		},
		{
			"Fireworks wants definitions under their new name", FireworksTool(),
			`{"type":"object","properties":{"a":{"$ref":"#/definitions/A"}},"definitions":{"A":{"type":"string"}}}`,
			`{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{"type":"string"}}}`, nil,
		},
	})
	for _, p := range Profiles() {
		if !p.inlineRefs {
			continue
		}
		for _, n := range []int{3, 30, 200} {
			out, report, err := lowered([]byte(doublingDefs(n, "")), p)
			if err != nil || len(out) > 1<<18 {
				t.Errorf("%s: %d levels that double: %d bytes, %v", p.Name(), n, len(out), err)
			}
			cut := hasLoss(report, "lowered", "/$defs/d6/properties/l/$ref")
			if n == 3 && strings.Contains(string(out), "nested further") {
				t.Errorf("%s: a small schema is cut: %s", p.Name(), out)
			}
			if n > 3 && (!cut || !strings.Contains(string(out), "nested further")) {
				t.Errorf("%s: %d levels are not cut", p.Name(), n)
			}
		}
	}
}

func TestQuirkA4_SiblingsOfAReferenceByTarget(t *testing.T) {
	src := `{"type":"object","properties":{"a":{"$ref":"#/$defs/A","description":"the a","default":"x"}},"$defs":{"A":{"type":"string"}}}`
	runLowerings(t, []lowering{
		{
			"Gemini", GeminiJSONSchema(), src,
			`{"type":"object","properties":{"a":{"description":"the a (default: x)","anyOf":[{"$ref":"#/$defs/A"}]}},"$defs":{"A":{"type":"string"}}}`,
			[]string{"moved /properties/a/default"},
		},
		{
			"Moonshot", MoonshotTool(), src,
			`{"type":"object","properties":{"a":{"description":"the a","default":"x","anyOf":[{"$ref":"#/$defs/A"}]}},"$defs":{"A":{"type":"string"}}}`,
			[]string{"lowered /properties/a/$ref"},
		},
		{
			"where references are written out, siblings outweigh", GeminiParameters(), src,
			prop(`{"type":"string","description":"the a","default":"x"}`), nil,
		},
	})
}

func TestQuirkA5_NoTargetGetsAUnionAtTheRoot(t *testing.T) {
	src := `{"oneOf":[{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]},{"type":"object","properties":{"b":{"type":"string"}},"required":["b"]}]}`
	for _, p := range Profiles() {
		out, report, err := lowered([]byte(src), p)
		if err != nil {
			t.Errorf("%s: %v", p.Name(), err)
			continue
		}
		checkLowered(t, src, out, p, report)
		if p.rootObject && (strings.Contains(string(out), "Of\"") || !strings.Contains(string(out), `"b"`)) {
			t.Errorf("%s: %s", p.Name(), out)
		}
	}
	if low, err := Lower([]byte(src), OllamaTool()); err != nil || low.Note != "(one of: a | b)" {
		t.Errorf("the choice is lost where the root has no description: %+v %v", low, err)
	}
}

func TestQuirkA6_AllOfIsMergedAndASecondUnionDescribed(t *testing.T) {
	lowersTo(t, GeminiParameters(), [][]string{
		{"members are one object", `{"allOf":[{"type":"object","properties":{"x":{"type":"string"}},"required":["x"]},{"properties":{"y":{"type":"integer"}},"required":["y"]}]}`, `{"type":"object","properties":{"x":{"type":"string"},"y":{"type":"integer"}},"required":["x","y"]}`, "lowered /properties/a/allOf"},
		{"two unions cannot be one", `{"allOf":[{"anyOf":[{"type":"string"},{"type":"integer"}]},{"anyOf":[{"minLength":1},{"minimum":1}]}]}`, `{"anyOf":[{"type":"string","description":"(and anyOf: [{\"minLength\":1},{\"minimum\":1}])"},{"type":"integer","description":"(and anyOf: [{\"minLength\":1},{\"minimum\":1}])"}]}`, "moved /properties/a/allOf/1/anyOf"},
	})
}

func TestQuirkA7_OneOfByTarget(t *testing.T) {
	src := `{"oneOf":[{"type":"string"},{"type":"integer"}],"discriminator":{"propertyName":"k"},"description":"d"}`
	lowersTo(t, GeminiParameters(), [][]string{{"anyOf without siblings", src, `{"anyOf":[{"type":"string","description":"d"},{"type":"integer","description":"d"}]}`, "lowered /properties/a/oneOf", "dropped /properties/a/discriminator", "moved /properties/a/description"}})
	lowersTo(t, GeminiJSONSchema(), [][]string{{"taken, as anyOf", src, `{"oneOf":[{"type":"string"},{"type":"integer"}],"description":"d"}`}})
	lowersTo(t, OllamaTool(), [][]string{{"anyOf", src, `{"description":"d","anyOf":[{"type":"string"},{"type":"integer"}]}`}})
}

func TestQuirkA8_TypeListsBecomeOneTypeOrAUnion(t *testing.T) {
	lowersTo(t, GeminiParameters(), [][]string{
		{"null is a flag", `{"type":["string","null"],"description":"d"}`, `{"type":"string","description":"d","nullable":true}`, "lowered /properties/a/type"},
		{"one type in a list", `{"type":["string"]}`, `{"type":"string"}`},
		{"keywords go to their branch", `{"type":["array","string"],"items":{"type":"integer"},"minItems":1,"maxLength":3}`, `{"anyOf":[{"type":"array","items":{"type":"integer"},"minItems":1},{"type":"string","maxLength":3}]}`},
		{"an array branch gets items", `{"type":["array","string","null"]}`, `{"anyOf":[{"type":"array","nullable":true,"items":{"type":"string"}},{"type":"string","nullable":true}]}`},
		{"values go to their branch", `{"type":["string","integer"],"enum":["a",1]}`, `{"anyOf":[{"type":"string","enum":["a"]},{"type":"string","enum":["1"]}]}`},
		{"a type without a value has no effect", `{"type":["string","object"],"enum":["a"]}`, `{"type":"string","enum":["a"]}`},
		{"every integer is a number", `{"type":["integer","number"]}`, `{"type":"number"}`},
	})
	lowersTo(t, CompatTool(), [][]string{{"null is a branch", `{"type":["string","null"],"minLength":1}`, `{"anyOf":[{"type":"string","minLength":1},{"type":"null"}]}`}})
	lowersTo(t, OllamaTool(), [][]string{{"Ollama takes a list", `{"type":["string","null"]}`, ""}})
	lowersTo(t, GeminiJSONSchema(), [][]string{{"so does Gemini's richer form", `{"type":["string","null"]}`, ""}})
}

func TestQuirkA9_NullIsAFlagForGeminiAndATypeElsewhere(t *testing.T) {
	lowersTo(t, GeminiParameters(), [][]string{
		{"a branch for null, and one that is left", `{"anyOf":[{"type":"string","enum":["x"],"description":"inner"},{"type":"null"}],"description":"outer"}`, `{"description":"outer inner","type":"string","enum":["x"],"nullable":true}`, "lowered /properties/a/anyOf"},
		{"several are left", `{"anyOf":[{"type":"string"},{"type":"integer"},{"type":"null"}]}`, `{"anyOf":[{"type":"string","nullable":true},{"type":"integer","nullable":true}]}`},
		{"null alone", `{"type":"null"}`, `{"type":"string","description":"(always null)","nullable":true}`, "lowered /properties/a/type"},
		{"null by reference", `{"anyOf":[{"const":null},{"enum":[null]}]}`, `{"type":"string","description":"(always null)","nullable":true}`},
		{"null among values", `{"type":["string","null"],"enum":["x",null]}`, `{"type":"string","enum":["x"],"nullable":true}`},
		{"the flag itself stays", `{"type":"string","nullable":true}`, ""},
		{"and is dropped nowhere", `{"type":"STRING","nullable":false}`, ""},
	})
	// Lowering the result again keeps nullable.
	there, _, err := lowered([]byte(prop(`{"type":["integer","null"],"minimum":1}`)), GeminiParameters())
	if err != nil {
		t.Fatal(err)
	}
	back, _, err := lowered(there, AnthropicTool())
	if want := prop(`{"type":["integer","null"],"minimum":1}`); string(back) != want || err != nil {
		t.Errorf("%s\n%s %v", there, back, err)
	}
}

func TestQuirkA10_GeminiNumberEnumsAreStrings(t *testing.T) {
	lowersTo(t, GeminiParameters(), [][]string{
		{"integers", `{"type":"integer","enum":[1,2],"minimum":1,"format":"int32"}`, `{"type":"string","enum":["1","2"]}`, "lowered /properties/a/enum"},
		{"without a type", `{"enum":[1.5,2]}`, `{"type":"string","enum":["1.5","2"]}`},
		{"booleans", `{"type":"boolean","enum":[true]}`, `{"type":"string","enum":["true"]}`},
		{"values that are no scalars are described", `{"enum":[{"x":1}]}`, `{"type":"object","description":"(enum: [{\"x\":1}])"}`, "moved /properties/a/enum"},
	})
	lowersTo(t, GeminiResponseSchema(), [][]string{{"a response is not translated back", `{"type":"integer","enum":[1,2]}`, `{"type":"integer","description":"(enum: [1,2])"}`, "moved /properties/a/enum"}})
	lowersTo(t, GeminiJSONSchema(), [][]string{
		{"numbers are taken", `{"type":"integer","enum":[1,2]}`, ""},
		{"null is a branch", `{"type":["string","null"],"enum":["x",null]}`, `{"anyOf":[{"type":"string","enum":["x"]},{"type":"null"}]}`},
		{"other values are described", `{"type":"boolean","enum":[true]}`, `{"type":"boolean","description":"(enum: [true])"}`},
	})
	lowersTo(t, OllamaTool(), [][]string{{"Ollama takes any value", `{"type":"integer","enum":[1,2]}`, ""}})

	src := `{"type":"object","properties":{"n":{"type":"integer","enum":[1,2]},"l":{"type":"array","items":{"enum":[true,1.50,"x"]}},"s":{"type":"string"}}}`
	roundTrip(t, GeminiParameters(), src, [][2]string{
		{`{"n":1}`, `{"n":"1"}`},
		{`{"s":"1","n":2}`, `{"s":"1","n":"2"}`},
		{`{"l":[true,1.50,"x"], "n":3}`, `{"l":["true","1.50","x"],"n":3}`},
	})
	low, err := Lower([]byte(src), GeminiParameters())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := low.FromWire([]byte(`{"n":"1"}`)); string(got) != `{"n":1}` || err != nil {
		t.Errorf("%s %v", got, err)
	}
	v, err := Compile([]byte(src))
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Validate([]byte(`{"n":1}`)); err != nil {
		t.Error(err)
	}
	// A string that the schema accepts as such stays a string.
	both := prop(`{"anyOf":[{"type":"string"},{"type":"integer","enum":[1]}]}`)
	if low, err = Lower([]byte(both), GeminiParameters()); err != nil {
		t.Fatal(err)
	}
	if got, err := low.FromWire([]byte(`{"a":"1"}`)); string(got) != `{"a":"1"}` || err != nil {
		t.Errorf("%s %v", got, err)
	}
}

// roundTrip checks that arguments translate to the target's form and back.
func roundTrip(t *testing.T, p Profile, src string, pairs [][2]string) {
	t.Helper()
	low, err := Lower([]byte(src), p)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range pairs {
		wire, err := low.ToWire([]byte(c[0]))
		if string(wire) != c[1] || err != nil {
			t.Errorf("%s: ToWire(%s) = %s, %v; want %s", p.Name(), c[0], wire, err, c[1])
		}
		back, err := low.FromWire(wire)
		var want strings.Builder
		if c[0] != c[1] {
			writeCompact(&want, c[0])
		} else {
			want.WriteString(c[0])
		}
		if string(back) != want.String() || err != nil {
			t.Errorf("%s: FromWire(%s) = %s, %v; want %s", p.Name(), wire, back, err, want.String())
		}
	}
}

// writeCompact removes the white space between tokens.
func writeCompact(b *strings.Builder, s string) {
	b.WriteString(strings.ReplaceAll(s, ", ", ","))
}

func TestQuirkA11_TheEmptyStringIsNotListed(t *testing.T) {
	lowersTo(t, GeminiParameters(), [][]string{
		{"others stay", `{"type":"string","enum":["a",""],"description":"d"}`, `{"type":"string","description":"d (may be empty)","enum":["a"]}`, "lowered /properties/a/enum"},
		{"alone it is described", `{"type":"string","enum":[""]}`, `{"type":"string","description":"(may be empty)"}`},
		{"null does not crash", `{"enum":["",null,"b"]}`, `{"type":"string","nullable":true,"description":"(may be empty)","enum":["b"]}`},
	})
	lowersTo(t, GeminiJSONSchema(), [][]string{{"the richer form lists it", `{"type":"string","enum":["a",""]}`, ""}})
}

func TestQuirkA12_ConstBecomesEnumForGeminiAndOllama(t *testing.T) {
	for _, v := range []string{`"a"`, `0`, `1.5`} {
		lowersTo(t, GeminiJSONSchema(), [][]string{{v, `{"const":` + v + `}`, `{"enum":[` + v + `]}`, "lowered /properties/a/const"}})
	}
	for _, v := range []string{`"a"`, `0`, `false`, `""`} {
		lowersTo(t, OllamaTool(), [][]string{{v, `{"const":` + v + `}`, `{"type":"` + typeOfText([]byte(v)) + `","enum":[` + v + `]}`}})
	}
	lowersTo(t, GeminiParameters(), [][]string{
		{"zero", `{"const":0}`, `{"type":"string","enum":["0"]}`},
		{"false", `{"const":false}`, `{"type":"string","enum":["false"]}`},
		{"the empty string", `{"const":""}`, `{"type":"string","description":"(may be empty)"}`},
	})
}

func TestQuirkA13_BooleanSchemasBecomeObjectsOfKeywords(t *testing.T) {
	src := `{"type":"object","properties":{"any":true,"none":false,"list":{"type":"array","items":true},"u":{"anyOf":[{"type":"string"},false]}},"required":["none"]}`
	for p, want := range map[string]string{
		"gemini.parameters":  `{"type":"object","properties":{"any":{},"list":{"type":"array","items":{"type":"string"}},"u":{"type":"string"}}}`,
		"gemini.json_schema": `{"type":"object","properties":{"any":{},"list":{"type":"array","items":{}},"u":{"anyOf":[{"type":"string"},{}]}}}`,
		"compat.tool":        `{"type":"object","properties":{"any":{},"list":{"type":"array","items":{}},"u":{"anyOf":[{"type":"string"}]}}}`,
		"bedrock.tool":       src,
	} {
		profile, ok := Named(p)
		out, report, err := lowered([]byte(src), profile)
		if string(out) != want || err != nil || !ok {
			t.Errorf("%s: %s %v", p, out, err)
		}
		checkLowered(t, src, out, profile, report)
	}
	for _, p := range Profiles() {
		if !p.rootObject && p.noBooleans {
			runLowerings(t, []lowering{{p.Name() + " true at the root", p, `true`, string(must(lowered([]byte(`{}`), p))), nil}})
			refused(t, ErrInvalid, p, `false`)
		}
	}
}

// lowered is [Lower] without the translation back.
func lowered(src json.RawMessage, p Profile) (json.RawMessage, dragoman.Report, error) {
	low, err := Lower(src, p)
	return low.Schema, low.Report, err
}

func must(out json.RawMessage, _ dragoman.Report, err error) json.RawMessage {
	if err != nil {
		return json.RawMessage(err.Error())
	}
	return out
}

func TestQuirkA14_GeminiGetsItemsWithAType(t *testing.T) {
	lowersTo(t, GeminiParameters(), [][]string{
		{"missing", `{"type":"array"}`, `{"type":"array","items":{"type":"string"}}`, "synthesized /properties/a"},
		{"empty", `{"type":"array","items":{}}`, `{"type":"array","items":{"type":"string"}}`, "lowered /properties/a/items"},
		{"described only", `{"type":"array","items":{"description":"d"}}`, `{"type":"array","items":{"type":"string","description":"d"}}`},
		{"in a branch", `{"anyOf":[{"type":"array"},{"type":"null"}]}`, `{"type":"array","nullable":true,"items":{"type":"string"}}`},
		{"a union of items stays", `{"type":"array","items":{"anyOf":[{"type":"string"},{"type":"integer"}]}}`, ""},
		{"a union without content does not", `{"type":"array","items":{"anyOf":[{}]}}`, `{"type":"array","items":{"type":"string"}}`},
	})
	lowersTo(t, GeminiJSONSchema(), [][]string{{"the richer form takes any", `{"type":"array"}`, `{"type":"array","items":{}}`}})
}

func TestQuirkA15_TuplesByTarget(t *testing.T) {
	src := `{"type":"array","prefixItems":[{"type":"number"},{"type":"string"}],"items":false,"unevaluatedItems":false}`
	widened := `{"type":"array","items":{"anyOf":[{"type":"number"},{"type":"string"}]},"minItems":2,"maxItems":2}`
	lowersTo(t, GeminiParameters(), [][]string{{"widened", src, widened, "lowered /properties/a/prefixItems", "dropped /properties/a/unevaluatedItems"}})
	lowersTo(t, MoonshotTool(), [][]string{{"widened", src, widened}})
	lowersTo(t, GeminiJSONSchema(), [][]string{
		{"kept", `{"type":"array","prefixItems":[{"type":"number"}],"items":{"type":"string"}}`, ""},
		{
			"its end is its length", src,
			`{"type":"array","prefixItems":[{"type":"number"},{"type":"string"}],"items":{},"minItems":2,"maxItems":2}`,
			"lowered /properties/a/items", "dropped /properties/a/unevaluatedItems",
		},
		{
			"a lesser length stays", `{"type":"array","prefixItems":[{"type":"number"},{"type":"string"}],"items":false,"minItems":0,"maxItems":1}`,
			`{"type":"array","prefixItems":[{"type":"number"},{"type":"string"}],"items":{},"minItems":0,"maxItems":1}`,
		},
		{
			"a greater one does not", `{"type":"array","prefixItems":[{"type":"number"}],"items":false,"minItems":1,"maxItems":9}`,
			`{"type":"array","prefixItems":[{"type":"number"}],"items":{},"minItems":1,"maxItems":1}`,
		},
		{
			"the older spelling", `{"type":"array","items":[{"type":"number"}],"additionalItems":false}`,
			`{"type":"array","prefixItems":[{"type":"number"}],"items":{},"minItems":1,"maxItems":1}`,
		},
	})
}

func TestQuirkA16_FormatsByTarget(t *testing.T) {
	lowersTo(t, GeminiParameters(), [][]string{
		{"a moment", `{"type":"string","format":"date-time"}`, ""},
		{"a wide integer", `{"type":"integer","format":"int64"}`, ""},
		{"a wide integer in a string", `{"type":"string","format":"int64"}`, `{"type":"string","description":"(format: int64)"}`, "moved /properties/a/format"},
		{"an address", `{"type":"string","format":"uri"}`, `{"type":"string","description":"(format: uri)"}`},
	})
	lowersTo(t, GeminiJSONSchema(), [][]string{{"any", `{"type":"string","format":"uri"}`, ""}})
	lowersTo(t, OllamaTool(), [][]string{{"none", `{"type":"string","format":"date-time"}`, `{"type":"string","description":"(format: date-time)"}`}})
	strict := `{"type":"object","properties":{"a":{"type":"string","format":"email","pattern":"^a$"}},"required":["a"],"additionalProperties":false}`
	runLowerings(t, []lowering{
		{"Azure takes none in strict", AzureStrict(), strict, `{"type":"object","properties":{"a":{"type":"string","description":"(format: email) (pattern: ^a$)"}},"required":["a"],"additionalProperties":false}`, nil},
		{"OpenAI does", OpenAIStrict(), strict, "", nil},
	})
}

func TestQuirkA17_BoundsByTarget(t *testing.T) {
	positive := `{"type":"number","exclusiveMinimum":0,"maximum":9}`
	lowersTo(t, GeminiParameters(), [][]string{
		{"zod's positive", positive, `{"type":"number","maximum":9,"description":"(exclusiveMinimum: 0)"}`, "moved /properties/a/exclusiveMinimum"},
		{"lengths are known", `{"type":"string","minLength":1,"maxLength":2,"pattern":"^a"}`, ""},
	})
	lowersTo(t, GeminiJSONSchema(), [][]string{{"lengths are not", `{"type":"string","minLength":1}`, `{"type":"string","description":"(minLength: 1)"}`}})
	lowersTo(t, OllamaTool(), [][]string{{"nothing is", positive, `{"type":"number","description":"(exclusiveMinimum: 0) (maximum: 9)"}`}})
	for _, p := range []Profile{BedrockTool(), BedrockNova(), CompatTool(), LlamaCPPTool(), XAITool()} {
		lowersTo(t, p, [][]string{{"all stays", positive, ""}})
	}
}

func TestQuirkA18_GeminiRequiresOnlyExistingProperties(t *testing.T) {
	src := `{"type":"object","properties":{"a":{"type":"object","properties":{"b":{"type":"string"}},"required":["ghost"]}},"required":["a","ghost"]}`
	want := `{"type":"object","properties":{"a":{"type":"object","properties":{"b":{"type":"string"}}}},"required":["a"]}`
	for _, p := range []Profile{GeminiParameters(), GeminiJSONSchema(), CompatTool()} {
		runLowerings(t, []lowering{{p.Name(), p, src, want, []string{"dropped /required", "dropped /properties/a/required"}}})
	}
}

func TestQuirkA19_GeminiGetsNoKeywordOfAnotherType(t *testing.T) {
	lowersTo(t, GeminiParameters(), [][]string{
		{"a string has no properties", `{"type":"string","properties":{"x":{"type":"string"}},"required":["x"]}`, `{"type":"string"}`, "dropped /properties/a/properties"},
		{"what has properties is an object", `{"properties":{"x":{"type":"string"}}}`, `{"type":"object","properties":{"x":{"type":"string"}}}`},
	})
}

func TestQuirkA20_NoArgumentsForEveryTarget(t *testing.T) {
	for _, src := range []string{``, `null`, `{}`, `{"type":"object"}`, `{"$schema":"https://json-schema.org/draft/2020-12/schema"}`, `{"type":"object","properties":null}`, `{"type":"OBJECT","properties":{}}`} {
		for _, p := range Profiles() {
			out, report, err := lowered([]byte(src), p)
			if err != nil {
				t.Errorf("%s: %q: %v", p.Name(), src, err)
				continue
			}
			checkLowered(t, src, out, p, report)
			var s struct {
				Type       any
				Properties map[string]any
			}
			if err := json.Unmarshal(out, &s); err != nil || p.rootObject && (!strings.EqualFold(fmt.Sprint(s.Type), "object") || (s.Properties == nil) != p.noEmptyProps) {
				t.Errorf("%s: %q: %s", p.Name(), src, out)
			}
		}
	}
	for _, src := range []string{`{"type":"object","properties":{}}`, `{"type":"object"}`, `{}`, ``} {
		if out, _, err := lowered([]byte(src), GeminiParameters()); err != nil || string(out) != `{"type":"object"}` {
			t.Errorf("Gemini accepts only the type of an object without properties: %q became %s, %v", src, out, err)
		}
	}
	lowersTo(t, GeminiParameters(), [][]string{{"an object inside that names nothing", `{"type":"object","properties":{}}`, `{"type":"object"}`, "dropped /properties/a/properties"}})
}

func TestQuirkA21_GeminisNumbersInStrings(t *testing.T) {
	src := `{"type":"ARRAY","items":{"type":"STRING"},"minItems":"1"}`
	lowersTo(t, GeminiParameters(), [][]string{{"become numbers", src, `{"type":"array","items":{"type":"string"},"minItems":1}`, "lowered /properties/a/minItems"}})
	lowersTo(t, GeminiParameters(), [][]string{{"capitals alone are no reason to change", `{"type":"ARRAY","items":{"type":"STRING"},"minItems":1}`, ""}})
}

func TestQuirkA22_MetadataByTarget(t *testing.T) {
	src := `{"type":"string","title":"A","examples":["x"],"x-order":1,"$comment":"c","encrypted":true}`
	lowersTo(t, GeminiParameters(), [][]string{{"titles trip it", src, `{"type":"string","description":"(examples: [\"x\"])"}`, "dropped /properties/a/title", "dropped /properties/a/x-order", "dropped /properties/a/encrypted"}})
	lowersTo(t, GeminiJSONSchema(), [][]string{{"titles are taken", src, `{"type":"string","title":"A","description":"(examples: [\"x\"])"}`}})
	lowersTo(t, BedrockTool(), [][]string{{"all is taken", src, ""}})
}

func TestQuirkA23_ForbiddenNamesGetAnAlias(t *testing.T) {
	src := `{"type":"object","properties":{"$filter":{"type":"string"},"foo-bar":{"type":"object","properties":{"@type":{"type":"string"},"ok":{"type":"array","items":{"type":"object","properties":{"$filter":{"type":"integer"}}}}},"required":["@type"]}},"required":["$filter"],"propertyOrdering":["foo-bar","$filter"]}`
	runLowerings(t, []lowering{
		{
			"Gemini: letters, digits and underscores", GeminiParameters(), src,
			`{"type":"object","properties":{"filter_0c097d40":{"type":"string"},"foo_bar_7d89c4f5":{"type":"object","properties":{"type_e27d0036":{"type":"string"},"ok":{"type":"array","items":{"type":"object","properties":{"filter_0c097d40":{"type":"integer"}}}}},"required":["type_e27d0036"]}},"required":["filter_0c097d40"],"propertyOrdering":["foo_bar_7d89c4f5","filter_0c097d40"]}`,
			[]string{"renamed /properties/$filter", "renamed /properties/foo-bar", "renamed /properties/foo-bar/properties/@type"},
		},
		{
			"Anthropic: dots and dashes too", AnthropicTool(),
			`{"type":"object","properties":{"a.b-c":{"type":"string"},"@x":{"type":"string"},"y":{"$ref":"#/properties/@x"}},"required":["@x"],"dependentRequired":{"@x":["a.b-c"]},"dependentSchemas":{"@x":{"required":["@x"]}}}`,
			`{"type":"object","properties":{"a.b-c":{"type":"string"},"x_37f6276f":{"type":"string"},"y":{"$ref":"#/properties/x_37f6276f"}},"required":["x_37f6276f"],"dependentRequired":{"x_37f6276f":["a.b-c"]},"dependentSchemas":{"x_37f6276f":{"required":["x_37f6276f"]}}}`,
			nil,
		},
		{"Ollama has no rule", OllamaTool(), `{"type":"object","properties":{"$filter":{"type":"string"}}}`, "", nil},
	})
	roundTrip(t, GeminiParameters(), src, [][2]string{
		{`{"$filter":"$filter","foo-bar":{"ok":[{"$filter":1},{}],"@type":"x"}}`, `{"filter_0c097d40":"$filter","foo_bar_7d89c4f5":{"ok":[{"filter_0c097d40":1},{}],"type_e27d0036":"x"}}`},
		{`{"foo-bar":{"@type":"y"}, "$filter":"<&>\u00e9 1.0"}`, `{"foo_bar_7d89c4f5":{"type_e27d0036":"y"},"filter_0c097d40":"<&>\u00e9 1.0"}`},
		{`{ "other": {"$filter": 1.50} }`, `{ "other": {"$filter": 1.50} }`},
		{`[1]`, `[1]`},
		{`{`, `{`},
		{``, ``},
	})
	low, err := Lower([]byte(src), GeminiParameters())
	if err != nil {
		t.Fatal(err)
	}
	if low.Aliases["filter_0c097d40"] != "$filter" || len(low.Aliases) != 3 {
		t.Errorf("%v", low.Aliases)
	}
	for _, twice := range []string{`{"filter_0c097d40":"a","$filter":"b"}`, `{"$filter":"b","filter_0c097d40":"a"}`} {
		if out, err := low.FromWire([]byte(twice)); !errors.Is(err, errAmbiguous) || out != nil {
			t.Errorf("%s: %s %v", twice, out, err)
		}
		if out, err := low.ToWire([]byte(twice)); !errors.Is(err, errAmbiguous) || out != nil {
			t.Errorf("%s: %s %v", twice, out, err)
		}
	}
}

func TestQuirkA23_AliasesAreValidDistinctAndStable(t *testing.T) {
	rules := map[string]nameRule{"gemini": geminiNames(), "claude": claudeNames()}
	names := []string{"", "_", "$", "$$", "9", "9a", "-", "a b", "a  b", "a_b", "ü", "üü", strings.Repeat("x", 65), strings.Repeat("x", 66), strings.Repeat("é", 65), "a\x00", "日本"}
	for what, r := range rules {
		taken := map[string]bool{}
		for _, name := range names {
			if r.allows(name) {
				taken[name] = true
			}
		}
		for _, name := range names {
			if r.allows(name) {
				continue
			}
			alias := r.alias(name, taken)
			if !r.allows(alias) || taken[alias] {
				t.Errorf("%s: %q becomes %q", what, name, alias)
			}
			if again := r.alias(name, map[string]bool{}); again != alias {
				t.Errorf("%s: %q becomes %q and %q", what, name, alias, again)
			}
			taken[alias] = true
		}
	}
	// An attacker precomputed the alias.
	src := `{"type":"object","properties":{"$filter":{"type":"string"},"filter_0c097d40":{"type":"string"}}}`
	roundTrip(t, GeminiJSONSchema(), src, [][2]string{{`{"$filter":"a","filter_0c097d40":"b"}`, expectedWire(t, src)}})
}

// expectedWire holds the arguments of the test above as they are on the wire.
func expectedWire(t *testing.T, src string) string {
	t.Helper()
	low, err := Lower([]byte(src), GeminiJSONSchema())
	if err != nil || len(low.Aliases) != 1 {
		t.Fatal(low, err)
	}
	for alias := range low.Aliases {
		if alias == "filter_0c097d40" || !strings.HasPrefix(alias, "filter_0c097d40") {
			t.Errorf("the alias is %q", alias)
		}
		return `{"` + alias + `":"a","filter_0c097d40":"b"}`
	}
	return ""
}

func TestQuirkA24_NamesAndDataAreNotKeywordsForAnyTarget(t *testing.T) {
	var props []string
	for k := kwSchema; k < kwCount; k++ {
		props = append(props, `"`+keywords[k].name+`":{"type":"string","default":{"type":"dict","$ref":"#/x"}}`)
	}
	src := `{"type":"object","properties":{` + strings.Join(props, ",") + `}}`
	for _, p := range Profiles() {
		low, err := Lower([]byte(src), p)
		if err != nil {
			if !p.Strict() {
				t.Errorf("%s: %v", p.Name(), err)
			}
			continue
		}
		var got struct {
			Properties map[string]struct{ Type any }
		}
		if err := json.Unmarshal(low.Schema, &got); err != nil || len(got.Properties) != len(props) {
			t.Errorf("%s: %d of %d properties are left: %v", p.Name(), len(got.Properties), len(props), err)
		}
		if strings.Contains(string(low.Schema), `"object","$ref"`) {
			t.Errorf("%s: data was changed: %s", p.Name(), low.Schema)
		}
	}
}

func TestQuirkA27_PatternsByTarget(t *testing.T) {
	for _, p := range []Profile{LlamaCPPTool(), OllamaFormat()} {
		lowersTo(t, p, [][]string{
			{"anchored", `{"type":"string","pattern":"^[a-z]+(x|y)$"}`, ""},
			{"not anchored", `{"type":"string","pattern":"^a"}`, `{"type":"string","description":"(pattern: ^a)"}`, "moved /properties/a/pattern"},
			{"a group that does not capture", `{"type":"string","pattern":"^(?:a)$"}`, `{"type":"string","description":"(pattern: ^(?:a)$)"}`},
			{"look-ahead", `{"type":"string","pattern":"^(?=a)$"}`, `{"type":"string","description":"(pattern: ^(?=a)$)"}`},
		})
	}
}

func TestQuirkA29_RecursionIsCutOrOptional(t *testing.T) {
	src := `{"$ref":"#/$defs/T","$defs":{"T":{"type":"object","properties":{"v":{"type":"string"},"k":{"type":"array","items":{"$ref":"#/$defs/T"}}},"required":["v","k"]}}}`
	runLowerings(t, []lowering{
		{
			"cut where there are no references", GeminiParameters(), src,
			`{"type":"object","properties":{"v":{"type":"string"},"k":{"type":"array","items":{"type":"object","properties":{"v":{"type":"string"},"k":{"type":"array","items":{"type":"object","description":"(nested further in the same way)"}}},"required":["v","k"]}}},"required":["v","k"]}`,
			[]string{"lowered /$defs/T/properties/k/items/$ref"},
		},
		{
			"optional where Gemini unrolls it", GeminiJSONSchema(), src,
			`{"type":"object","properties":{"v":{"type":"string"},"k":{"type":"array","items":{"$ref":"#"}}},"required":["v"]}`,
			[]string{"lowered /$defs/T/properties/k"},
		},
		{
			"also through another definition, but not outside of the circle", GeminiJSONSchema(),
			`{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}},"required":["a"],"$defs":{"A":{"type":"object","properties":{"b":{"$ref":"#/$defs/B"}},"required":["b"]},"B":{"type":"array","items":{"$ref":"#/$defs/A"}}}}`,
			`{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}},"required":["a"],"$defs":{"A":{"type":"object","properties":{"b":{"$ref":"#/$defs/B"}}},"B":{"type":"array","items":{"$ref":"#/$defs/A"}}}}`,
			[]string{"lowered /$defs/A/properties/b"},
		},
		{
			"an optional one stays", GeminiJSONSchema(),
			`{"type":"object","properties":{"a":{"$ref":"#"},"b":{"type":"string"}},"required":["b"]}`, "", nil,
		},
		{
			"without a property there is nothing to leave out", GeminiJSONSchema(),
			`{"type":"object","properties":{},"additionalProperties":{"$ref":"#"}}`,
			`{"type":"object","properties":{},"additionalProperties":{"type":"object","description":"(nested further in the same way)"}}`,
			[]string{"lowered /additionalProperties/$ref"},
		},
	})
	for _, p := range Profiles() {
		out, report, err := lowered([]byte(src), p)
		if err != nil {
			if !errors.Is(err, dragoman.ErrUnsupported) || !p.noRecursion {
				t.Errorf("%s: %v", p.Name(), err)
			}
			continue
		}
		checkLowered(t, src, out, p, report)
	}
}

func TestQuirkA31_BedrockStrictIsAnthropicStrict(t *testing.T) {
	src := prop(`{"type":"string","minLength":1}`)
	a, _, _ := lowered([]byte(src), AnthropicStrict())
	b, _, err := lowered([]byte(src), BedrockStrict())
	if string(a) != string(b) || err != nil || !BedrockStrict().Strict() || BedrockTool().Strict() || BedrockNova().Strict() {
		t.Errorf("%s\n%s %v", a, b, err)
	}
}

func TestQuirkA39_LargeSchemasAreCompactedInStages(t *testing.T) {
	deep := `{"type":"string","description":"` + strings.Repeat("long ", 20) + `"}`
	for range 6 {
		deep = `{"type":"object","description":"` + strings.Repeat("inner ", 30) + `","properties":{"x":` + deep + `,"y":{"anyOf":[{"type":"string"},{"type":"array","items":` + deep + `}]}}}`
	}
	src := `{"type":"object","properties":{"first":` + deep + `,"second":{"$ref":"#/$defs/D"},"third":{"type":"integer","description":"kept"}},"required":["third"],"$defs":{"D":` + deep + `}}`
	for _, p := range []Profile{OpenAITool(), AnthropicTool(), GeminiParameters(), GeminiJSONSchema(), OllamaTool(), CompatTool(), XAITool()} {
		full, _, err := lowered([]byte(src), p.WithBudget(0))
		if err != nil {
			t.Fatal(err)
		}
		last := len(full)
		for _, budget := range []int{20_000, 6_000, 1_500, 400, 300, 250} {
			p := p.WithBudget(budget)
			out, report, err := lowered([]byte(src), p)
			if err != nil {
				t.Errorf("%s: %d bytes: %v", p.Name(), budget, err)
				continue
			}
			if len(out) > budget || len(out) > last {
				t.Errorf("%s: %d bytes for a budget of %d", p.Name(), len(out), budget)
			}
			last = len(out)
			checkLowered(t, src, out, p, report)
			var got struct {
				Properties map[string]json.RawMessage
				Required   []string
			}
			if err := json.Unmarshal(out, &got); err != nil || len(got.Properties) != 3 || !slices.Equal(got.Required, []string{"third"}) {
				t.Errorf("%s: %d bytes: arguments are lost: %s", p.Name(), budget, out)
			}
			if len(full) > budget && !slices.ContainsFunc(report.Losses, func(l dragoman.Loss) bool { return l.Severity == dragoman.Serious }) {
				t.Errorf("%s: %d bytes: not reported", p.Name(), budget)
			}
		}
		refused(t, dragoman.ErrTooLarge, p.WithBudget(20), src)
	}
	long := strings.Repeat("long ", 40)
	runLowerings(t, []lowering{{
		"descriptions inside go first, and nothing else where that is enough", OpenAITool().WithBudget(400),
		`{"type":"object","properties":{"a":{"type":"object","description":"the a","properties":{"x":{"type":"string","description":"` + long + `"},"y":{"type":"array","items":{"type":"integer","description":"` + long + `","minimum":1}}}}}}`,
		`{"type":"object","properties":{"a":{"type":"object","description":"the a","properties":{"x":{"type":"string"},"y":{"type":"array","items":{"type":"integer","minimum":1}}}}}}`,
		[]string{"lowered "},
	}})
	if _, report, err := lowered([]byte(doublingDefs(9, "")), XAITool()); err != nil || len(report.Losses) > 0 {
		t.Errorf("a schema within the budget is touched: %v %v", report, err)
	}
}

func TestQuirkA40_AnyJSONIsNotTurnedIntoAnObject(t *testing.T) {
	for _, p := range []Profile{GeminiParameters(), GeminiJSONSchema(), BedrockTool(), CompatTool(), MoonshotTool()} {
		lowersTo(t, p, [][]string{{"untyped", `{}`, ""}, {"described", `{"description":"any JSON"}`, ""}})
	}
	lowersTo(t, OllamaTool(), [][]string{{"every type where one must be named", `{}`, `{"type":["string","number","boolean","object","array","null"],"items":{"type":["string","number","boolean","object","null"]}}`}})
}

func TestQuirkA41_ConditionsAreDescribedForGemini(t *testing.T) {
	lowersTo(t, GeminiParameters(), [][]string{
		{"a property of a condition is declared", `{"type":"object","properties":{"k":{"type":"string"}},"if":{"required":["k"]},"then":{"properties":{"z":{"type":"integer"}},"required":["z"]}}`, `{"type":"object","properties":{"k":{"type":"string"},"z":{"type":"integer"}},"description":"(if: {\"required\":[\"k\"]}) (then: {\"properties\":{\"z\":{\"type\":\"integer\"}},\"required\":[\"z\"]})"}`, "moved /properties/a/then/properties/z", "moved /properties/a/if"},
		{"not", `{"type":"string","not":{"const":"x"}}`, `{"type":"string","description":"(not: {\"const\":\"x\"})"}`, "moved /properties/a/not"},
	})
}

func TestQuirkA42_GeminiMapsAreLists(t *testing.T) {
	entries := func(value string) string {
		return `{"type":"array","items":{"type":"object","properties":{"key":{"type":"string"},"value":` + value + `},"required":["key","value"]}}`
	}
	lowersTo(t, GeminiParameters(), [][]string{
		{"a typed map", `{"type":"object","additionalProperties":{"type":"integer"}}`, entries(`{"type":"integer"}`), "lowered /properties/a/additionalProperties"},
		{"a map of maps", `{"type":"object","additionalProperties":{"type":"object","additionalProperties":{"type":"string"}}}`, entries(entries(`{"type":"string"}`))},
		{"its size is the list's", `{"type":"object","minProperties":1,"maxProperties":2,"additionalProperties":{"type":"string"},"description":"d"}`, `{"type":"array","minItems":1,"maxItems":2,"description":"d","items":{"type":"object","properties":{"key":{"type":"string"},"value":{"type":"string"}},"required":["key","value"]}}`},
		{"next to properties it is described", `{"type":"object","properties":{"x":{"type":"string"}},"additionalProperties":{"type":"string"}}`, `{"type":"object","properties":{"x":{"type":"string"}},"description":"(additionalProperties: {\"type\":\"string\"})"}`, "moved /properties/a/additionalProperties"},
		{"one of anything is reported", `{"type":"object","additionalProperties":true}`, `{"type":"object"}`, "lowered /properties/a/additionalProperties"},
	})
	lowersTo(t, GeminiJSONSchema(), [][]string{{"the richer form has maps", `{"type":"object","additionalProperties":{"type":"integer"}}`, ""}})
	lowersTo(t, GeminiResponseSchema(), [][]string{{"a response is not translated back", `{"type":"object","additionalProperties":{"type":"integer"}}`, `{"type":"object","description":"(additionalProperties: {\"type\":\"integer\"})"}`}})

	src := `{"type":"object","properties":{"m":{"type":"object","additionalProperties":{"enum":[1,2]}},"n":{"type":"object","additionalProperties":{"type":"object","additionalProperties":{"type":"object","properties":{"@x":{"type":"string"}}}}}}}`
	low, err := Lower([]byte(src), GeminiParameters())
	if err != nil {
		t.Fatal(err)
	}
	roundTrip(t, GeminiParameters(), src, [][2]string{
		{`{"m":{"b":2,"a":1}}`, `{"m":[{"key":"b","value":"2"},{"key":"a","value":"1"}]}`},
		{`{"m":{}}`, `{"m":[]}`},
		{`{"n":{"o":{"i":{"@x":"y"}}}}`, `{"n":[{"key":"o","value":[{"key":"i","value":{"x_37f6276f":"y"}}]}]}`},
	})
	for in, want := range map[string]string{
		`{"m":{"a":"1"}}`:                        `{"m":{"a":"1"}}`, // the model wrote a map anyway
		`{"m":[{"value":"1","key":"a"}]}`:        `{"m":{"a":1}}`,
		`{"m":[{"key":"a","value":1,"x":2}]}`:    `{"m":[{"key":"a","value":1,"x":2}]}`,
		`{"m":[{"key":"a"}]}`:                    `{"m":[{"key":"a"}]}`,
		`{"m":["a"]}`:                            `{"m":["a"]}`,
		`{"m":null,"x":[{"key":"a","value":1}]}`: `{"m":null,"x":[{"key":"a","value":1}]}`,
	} {
		if got, err := low.FromWire([]byte(in)); string(got) != want || err != nil {
			t.Errorf("FromWire(%s) = %s, %v", in, got, err)
		}
	}
	if got, err := low.FromWire([]byte(`{"m":[{"key":"a","value":1},{"key":"a","value":2}]}`)); !errors.Is(err, errAmbiguous) {
		t.Errorf("a key twice: %s %v", got, err)
	}
}

func TestQuirkA46_NoTargetChangesTheSource(t *testing.T) {
	src := prop(everyKeyword(`{"$ref":"#","enum":[1,""],"@x":1,"properties":{"@y":true}}`))
	in := []byte(src)
	for _, p := range Profiles() {
		low, _ := Lower(in, p)
		_, _ = low.FromWire(in)
		_ = p.Fits(in)
		_ = Check(in, p)
		if string(in) != src {
			t.Fatalf("%s changed the source", p.Name())
		}
	}
}

func TestQuirkA47_OllamaGetsTheWholeNestedStructure(t *testing.T) {
	src := `{"type":"object","description":"Plans a trip.","properties":{"legs":{"type":"array","description":"The legs.","items":{"type":"object","properties":{"from":{"type":"string","description":"A city."},"via":{"type":"array","items":{"$ref":"#/$defs/City"}},"fare":{"anyOf":[{"type":"number"},{"type":"object","properties":{"amount":{"type":"number","minimum":0},"currency":{"enum":["EUR","USD"]}},"required":["amount"]}]}},"required":["from"]}}},"required":["legs"],"$defs":{"City":{"type":"object","properties":{"name":{"type":"string"}}}}}`
	want := `{"type":"object","properties":{"legs":{"type":"array","description":"The legs.","items":{"type":"object","properties":{"from":{"type":"string","description":"A city."},"via":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"}}}},"fare":{"anyOf":[{"type":"number"},{"type":"object","properties":{"amount":{"type":"number","description":"(minimum: 0)"},"currency":{"type":"string","enum":["EUR","USD"]}},"required":["amount"]}]}},"required":["from"]}}},"required":["legs"]}`
	runLowerings(t, []lowering{{"an array of objects", OllamaTool(), src, want, []string{"moved /description", "moved /properties/legs/items/properties/fare/anyOf/1/properties/amount/minimum"}}})
	if low, err := Lower([]byte(src), OllamaTool()); err != nil || low.Note != "Plans a trip." {
		t.Errorf("the root's description is lost: %v %v", low, err)
	}
}

func TestQuirkA48_GrammarTargetsGetTypesEverywhere(t *testing.T) {
	for _, p := range []Profile{OllamaTool(), LlamaCPPTool(), OllamaFormat()} {
		lowersTo(t, p, [][]string{
			{"from properties", `{"properties":{"x":{"type":"string"}}}`, `{"type":"object","properties":{"x":{"type":"string"}}}`, "synthesized /properties/a"},
			{"from items", `{"items":{"type":"string"}}`, `{"type":"array","items":{"type":"string"}}`},
			{"from all values of an enum", `{"enum":["a",1,null]}`, `{"type":["string","integer","null"],"enum":["a",1,null]}`},
			{"a blank type", `{"type":"","enum":["a"]}`, `{"type":"string","enum":["a"]}`},
			{"a union needs none", `{"anyOf":[{"type":"string"},{"type":"null"}]}`, ""},
		})
	}
	lowersTo(t, LlamaCPPTool(), [][]string{{"nor does a reference", `{"$ref":"#"}`, ""}})
}

func TestBedrockRootByTarget(t *testing.T) {
	src := `{"$schema":"x","title":"T","type":"object","description":"d","properties":{"a":{"$ref":"#/$defs/A","description":"e"}},"additionalProperties":false,"$defs":{"A":{"type":"string","title":"t"}}}`
	runLowerings(t, []lowering{
		{"Claude takes all of JSON Schema", BedrockTool(), src, "", nil},
		{"Nova takes three keywords at the root", BedrockNova(), src, prop(`{"type":"string","title":"t","description":"e"}`), []string{"dropped /title", "moved /description", "dropped /additionalProperties"}},
	})
}

func TestEveryProfileIsFoundByItsName(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range Profiles() {
		got, ok := Named(p.Name())
		if !ok || got.Name() != p.Name() || seen[p.Name()] {
			t.Errorf("%s: %v %v", p.Name(), got.Name(), ok)
		}
		seen[p.Name()] = true
		vendor, surface, ok := strings.Cut(p.Name(), ".")
		if !ok || vendor == "" || surface == "" {
			t.Errorf("%q is not a name", p.Name())
		}
		if rules := p.reference; rules.rootObject != p.rootObject || rules.strict != p.Strict() || !rules.items && !strings.HasPrefix(p.Name(), "anthropic.tool") {
			t.Errorf("%s has no rules in the checker", p.Name())
		}
	}
	if _, ok := Named("nobody.tool"); ok {
		t.Error("an unknown name is found")
	}
}
