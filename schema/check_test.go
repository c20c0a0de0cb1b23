package schema

import (
	"strings"
	"testing"
)

func TestCheckReportsEachRule(t *testing.T) {
	ok := `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`
	for _, p := range all() {
		if v := Check([]byte(ok), p); v != nil {
			t.Errorf("%s: %v", p.Name(), v)
		}
	}
	doc := func(a string) string {
		return `{"type":"object","properties":{"a":` + a + `},"required":["a"],"additionalProperties":false,"$defs":{"d":{"type":"string"}}}`
	}
	cases := []struct {
		name, src string
		profiles  []Profile
		rule, at  string
	}{
		{"no JSON", `{`, all(), "json", ""},
		{"no object", `[]`, all(), "root", ""},
		{"no type", `{"properties":{}}`, all(), "root", ""},
		{"no properties", `{"type":"object"}`, all(), "root", ""},
		{"a union at the root", `{"type":"object","properties":{},"anyOf":[{}]}`, all(), "root", ""},
		{"an unknown type", doc(`{"type":"dict"}`), all(), "type", "/properties/a/type"},
		{"a type twice", doc(`{"type":["string","string"]}`), all(), "type", "/properties/a/type"},
		{"an array without items", doc(`{"type":"array"}`), []Profile{OpenAITool(), OpenAIStrict(), AnthropicStrict()}, "items", "/properties/a"},
		{"a number in a string", doc(`{"type":"integer","minimum":"1"}`), all(), "minimum", "/properties/a/minimum"},
		{"a property that is not a schema", doc(`"string"`), all(), "schema", "/properties/a"},
		{"a reference to nowhere", doc(`{"$ref":"#/$defs/x"}`), all(), "$ref", "/properties/a/$ref"},
		{"an empty enum", doc(`{"type":"string","enum":[]}`), all(), "enum", "/properties/a/enum"},
		{"a description that is not a string", doc(`{"type":"string","description":1}`), all(), "description", "/properties/a/description"},
		{"names that repeat", `{"type":"object","properties":{},"required":["a","a"]}`, all(), "required", "/required"},
		{"a list that is empty", doc(`{"anyOf":[]}`), all(), "anyOf", "/properties/a/anyOf"},
		{"an open object", `{"type":"object","properties":{}}`, []Profile{OpenAIStrict(), AnthropicStrict()}, "closed", ""},
		{"an optional property", `{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`, []Profile{OpenAIStrict()}, "required", "/required"},
		{"an unknown required name", `{"type":"object","properties":{},"required":["x"],"additionalProperties":false}`, []Profile{OpenAIStrict(), AnthropicStrict()}, "required", "/required"},
		{"an unknown keyword", doc(`{"type":"string","minLength":1}`), []Profile{OpenAIStrict(), AnthropicStrict()}, "keyword", "/properties/a/minLength"},
		{"an unknown format", doc(`{"type":"string","format":"zip"}`), []Profile{OpenAIStrict(), AnthropicStrict()}, "format", "/properties/a/format"},
		{"look-around", doc(`{"type":"string","pattern":"(?=a)"}`), []Profile{OpenAIStrict(), AnthropicStrict()}, "pattern", "/properties/a/pattern"},
		{"no type", doc(`{}`), []Profile{OpenAIStrict(), AnthropicStrict()}, "typed", "/properties/a"},
		{"a boolean schema", doc(`true`), []Profile{OpenAIStrict(), AnthropicStrict()}, "typed", "/properties/a"},
		{"a sibling of a reference", doc(`{"$ref":"#/$defs/d","description":"x"}`), []Profile{OpenAIStrict(), AnthropicStrict()}, "$ref", "/properties/a"},
		{"a reference elsewhere", doc(`{"$ref":"#/properties/a/x"}`), []Profile{OpenAIStrict(), AnthropicStrict()}, "$ref", "/properties/a/$ref"},
		{"recursion", doc(`{"$ref":"#"}`), []Profile{AnthropicStrict()}, "recursion", ""},
		{"large minItems", doc(`{"type":"array","items":{"type":"string"},"minItems":2}`), []Profile{AnthropicStrict()}, "minItems", "/properties/a/minItems"},
	}
	for _, c := range cases {
		for _, p := range c.profiles {
			found := false
			for _, v := range Check([]byte(c.src), p) {
				found = found || v.Rule == c.rule && v.Pointer == c.at
			}
			if !found {
				t.Errorf("%s: %s: no %s at %q in %v", p.Name(), c.name, c.rule, c.at, Check([]byte(c.src), p))
			}
		}
	}
}

func TestLimitsOfStrictSubsets(t *testing.T) {
	var props, names strings.Builder
	for i := range 30 {
		if i > 0 {
			props.WriteByte(',')
			names.WriteByte(',')
		}
		props.WriteString(`"p` + itoa(i) + `":{"type":"string"}`)
		names.WriteString(`"p` + itoa(i) + `"`)
	}
	optional := `{"type":"object","properties":{` + props.String() + `},"additionalProperties":false}`
	if Check([]byte(optional), AnthropicStrict()) == nil || AnthropicStrict().Fits([]byte(optional)) {
		t.Error("30 optional properties pass")
	}
	required := `{"type":"object","properties":{` + props.String() + `},"required":[` + names.String() + `],"additionalProperties":false}`
	if Check([]byte(required), AnthropicStrict()) != nil || !AnthropicStrict().Fits([]byte(required)) {
		t.Error("30 required properties do not pass")
	}
	deep := `{"type":"string"}`
	for range 11 {
		deep = `{"type":"object","properties":{"a":` + deep + `},"required":["a"],"additionalProperties":false}`
	}
	if Check([]byte(deep), OpenAIStrict()) == nil || OpenAIStrict().Fits([]byte(deep)) {
		t.Error("eleven levels pass")
	}
	if !AnthropicStrict().Fits([]byte(deep)) {
		t.Error("eleven levels do not pass where there is no limit")
	}
}

func TestCheckReportsTheRulesOfEachTarget(t *testing.T) {
	closedGemini := []Profile{GeminiParameters(), GeminiResponseSchema()}
	richGemini := []Profile{GeminiJSONSchema(), GeminiResponseJSONSchema()}
	grammars := []Profile{LlamaCPPTool(), OllamaFormat()}
	named := []Profile{AnthropicTool(), AnthropicStrict(), BedrockTool(), BedrockNova(), GeminiParameters(), GeminiJSONSchema()}
	at := "/properties/a"
	cases := []struct {
		name, src string
		profiles  []Profile
		rule, at  string
	}{
		{"an unknown keyword", prop(`{"type":"number","exclusiveMinimum":0}`), append(closedGemini, append(richGemini, OllamaTool())...), "keyword", at + "/exclusiveMinimum"},
		{"a reference", prop(`{"$ref":"#"}`), append(closedGemini, OllamaTool(), BedrockNova(), CompatTool()), "keyword", at + "/$ref"},
		{"const", prop(`{"const":1}`), append(closedGemini, append(richGemini, OllamaTool(), CompatTool())...), "keyword", at + "/const"},
		{"a list of types", prop(`{"type":["string","null"]}`), append(closedGemini, CompatTool()), "type", at + "/type"},
		{"null as a type", prop(`{"type":"null"}`), closedGemini, "type", at + "/type"},
		{"nullable where it is unknown", prop(`{"type":"string","nullable":true}`), append(richGemini, OllamaTool(), BedrockTool()), "nullable", at + "/nullable"},
		{"nullable that is not a flag", prop(`{"type":"string","nullable":"yes"}`), closedGemini, "nullable", at + "/nullable"},
		{"a number in an enum", prop(`{"type":"string","enum":["a",1]}`), closedGemini, "enum", at + "/enum/1"},
		{"an empty string in an enum", prop(`{"type":"string","enum":["a",""]}`), closedGemini, "enum", at + "/enum/1"},
		{"an enum of integers", prop(`{"type":"integer","enum":["1"]}`), closedGemini, "enum", at + "/enum"},
		{"a boolean in an enum", prop(`{"type":"boolean","enum":[true]}`), append(closedGemini, richGemini...), "enum", at + "/enum/0"},
		{"a keyword next to anyOf", prop(`{"description":"d","anyOf":[{"type":"string"}]}`), closedGemini, "anyOf", at},
		{"a format", prop(`{"type":"string","format":"uri"}`), closedGemini, "format", at + "/format"},
		{"a format of another type", prop(`{"type":"string","format":"int32"}`), closedGemini, "format", at + "/format"},
		{"items without a type", prop(`{"type":"array","items":{}}`), closedGemini, "typed", at + "/items"},
		{"properties of a string", prop(`{"type":"string","properties":{"x":{"type":"string"}}}`), closedGemini, "properties", at + "/properties"},
		{"empty properties", prop(`{"type":"object","properties":{}}`), closedGemini, "properties", at + "/properties"},
		{"a required name that is not a property", `{"type":"object","properties":{"a":{"type":"string"}},"required":["x"]}`, append(closedGemini, append(richGemini, CompatTool())...), "required", "/required"},
		{"a boolean schema", prop(`true`), append(closedGemini, append(richGemini, OllamaTool(), MoonshotTool(), CompatTool(), LlamaCPPTool())...), "typed", at},
		{"a name", `{"type":"object","properties":{"$x":{"type":"string"}}}`, named, "name", "/properties/$x"},
		{"a dash", `{"type":"object","properties":{"a-x":{"type":"string"}}}`, []Profile{GeminiParameters(), GeminiJSONSchema()}, "name", "/properties/a-x"},
		{"a sibling of a reference", `{"type":"object","properties":{"a":{"$ref":"#/$defs/d","description":"x"}},"$defs":{"d":{"type":"string"}}}`, append(richGemini, MoonshotTool()), "$ref", at},
		{"a required circle", `{"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]}`, richGemini, "recursion", at},
		{"a required circle through a list", `{"type":"object","properties":{"a":{"$ref":"#/$defs/L"}},"required":["a"],"$defs":{"L":{"type":"array","items":{"$ref":"#/$defs/L"}}}}`, richGemini, "recursion", "/$defs/L/items"},
		{"a circle outside of any property", `{"type":"object","properties":{},"additionalProperties":{"$ref":"#"}}`, richGemini, "recursion", "/additionalProperties"},
		{"a keyword at the root", `{"type":"object","properties":{},"description":"d"}`, []Profile{OllamaTool(), BedrockNova()}, "root", "/description"},
		{"no type", prop(`{"description":"d"}`), append(grammars, OllamaTool()), "typed", at},
		{"a pattern that is open", prop(`{"type":"string","pattern":"a"}`), grammars, "pattern", at + "/pattern"},
		{"a pattern with a plain group", prop(`{"type":"string","pattern":"^(?:a)$"}`), grammars, "pattern", at + "/pattern"},
		{"old definitions", `{"type":"object","properties":{},"definitions":{}}`, []Profile{FireworksTool(), MoonshotTool(), BedrockNova(), CompatTool()}, "keyword", "/definitions"},
		{"a tuple", prop(`{"type":"array","prefixItems":[{"type":"string"}],"items":{}}`), []Profile{MoonshotTool(), CompatTool(), GeminiParameters()}, "keyword", at + "/prefixItems"},
		{"bounds in Azure's strict", prop(`{"type":"integer","minimum":1}`), []Profile{AzureStrict()}, "keyword", at + "/minimum"},
		{"an object that names nothing", `{"type":"object","properties":{}}`, []Profile{GeminiParameters(), GeminiResponseSchema()}, "properties", "/properties"},
		{"too long", prop(`{"description":"` + strings.Repeat("x", 40_000) + `"}`), []Profile{XAITool()}, "limit", ""},
	}
	for _, c := range cases {
		for _, p := range c.profiles {
			found := false
			for _, v := range Check([]byte(c.src), p) {
				found = found || v.Rule == c.rule && v.Pointer == c.at
			}
			if !found {
				t.Errorf("%s: %s: no %s at %q in %v", p.Name(), c.name, c.rule, c.at, Check([]byte(c.src), p))
			}
		}
	}
	for _, fine := range []string{
		`{"type":"OBJECT","properties":{"a":{"type":"ARRAY","items":{"type":"STRING","enum":["x"]}},"b":{"anyOf":[{"type":"INTEGER","nullable":true},{"type":"STRING"}]}},"required":["a"]}`,
		`{"type":"object"}`,
	} {
		if v := Check([]byte(fine), GeminiParameters()); v != nil {
			t.Errorf("%s: %v", fine, v)
		}
	}
	fine := `{"type":"object","properties":{"a":{"$ref":"#/$defs/N"},"m":{"type":"object","additionalProperties":{"type":"string"}}},"required":["a"],"$defs":{"N":{"type":"object","properties":{"v":{"type":["string","null"]},"n":{"$ref":"#/$defs/N"}},"required":["v"]}}}`
	if v := Check([]byte(fine), GeminiJSONSchema()); v != nil {
		t.Errorf("%s: %v", fine, v)
	}
}
