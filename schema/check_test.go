package schema

import (
	"strings"
	"testing"
)

func TestCheckFindsEachRule(t *testing.T) {
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
		{"a property that is no schema", doc(`"string"`), all(), "schema", "/properties/a"},
		{"a reference to nowhere", doc(`{"$ref":"#/$defs/x"}`), all(), "$ref", "/properties/a/$ref"},
		{"an empty enum", doc(`{"type":"string","enum":[]}`), all(), "enum", "/properties/a/enum"},
		{"a description that is no text", doc(`{"type":"string","description":1}`), all(), "description", "/properties/a/description"},
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
	if Check([]byte(optional), AnthropicStrict()) == nil || StrictFits([]byte(optional), AnthropicStrict()) {
		t.Error("30 optional properties pass")
	}
	required := `{"type":"object","properties":{` + props.String() + `},"required":[` + names.String() + `],"additionalProperties":false}`
	if Check([]byte(required), AnthropicStrict()) != nil || !StrictFits([]byte(required), AnthropicStrict()) {
		t.Error("30 required properties do not pass")
	}
	deep := `{"type":"string"}`
	for range 11 {
		deep = `{"type":"object","properties":{"a":` + deep + `},"required":["a"],"additionalProperties":false}`
	}
	if Check([]byte(deep), OpenAIStrict()) == nil || StrictFits([]byte(deep), OpenAIStrict()) {
		t.Error("eleven levels pass")
	}
	if !StrictFits([]byte(deep), AnthropicStrict()) {
		t.Error("eleven levels do not pass where there is no limit")
	}
}
