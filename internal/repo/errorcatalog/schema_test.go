package errorcatalog

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/dialect/all"
	"github.com/dragoman-go/dragoman/schema"
)

func schemas() section {
	return section{
		title: "From a schema",
		intro: "Schemas come from Go types (`schema.For`, `tool.New`, `agent.Generate`) or from JSON (`tool.Raw`, MCP servers). What a model API does\nnot support is not an error: it is lowered, and reported as a loss.",
		entries: []entry{
			{
				title: "Type that JSON cannot have", from: "`schema.For` of a struct with a function", run: typed[callback],
				means: "The type cannot be read from JSON.", fix: "Leave the field out with `json:\"-\"`, or use another type.",
			},
			{
				title: "Map with unsupported keys", from: "`schema.For[map[bool]string]`", run: typed[map[bool]string],
				means: "The keys of a JSON object are strings.", fix: "Use a key that is a string or a number, or a list of structs.",
			},
			{
				title: "Unknown word in a tag", from: "a field with `jsonschema:\"minimun=1\"`", run: typed[trip],
				means: "The tag has an unknown key, or a key that this type does not support.", fix: "Correct it.",
			},
			{
				title: "Schema that is not JSON Schema", from: "`schema.Compile` of `{\"type\":\"text\"}`", run: compiled(`{"type":"text"}`),
				means: "The schema breaks the rules of JSON Schema at this place.", fix: "Correct it; JSON Schema calls a text `string`.",
			},
			{
				title: "Reference out of the schema", from: "`schema.Compile` of `{\"$ref\":\"https://example.com/city.json\"}`", run: compiled(`{"$ref":"https://example.com/city.json"}`),
				means: "Schemas are never loaded from the network or from a file.", fix: "Put the definition under `$defs` of the same schema.",
			},
			{
				title: "Value does not match the schema", from: "`Validator.Validate` of `{\"days\":30,\"town\":\"Oslo\"}`", run: invalidValue,
				means: "Each line names a place in the value, as a JSON pointer, and the rule that it breaks.", fix: "Correct the value.",
			},
			{
				title: "Keyword that an API does not support", from: "`dragoman lint --for anthropic.strict` of a tool with `maximum`", run: lowered,
				means: "The API would refuse the keyword, so it is moved to the description. The value is still validated when the call arrives.", fix: "You need not do anything. `--fail-on moved` makes it an error.",
			},
		},
	}
}

type callback struct {
	Done func() `json:"done"`
}

type trip struct {
	Days int `json:"days" jsonschema:"minimun=1"`
}

func typed[T any](t *testing.T) string {
	_, err := schema.For[T]()
	if err == nil {
		t.Fatal("no error")
	}
	return err.Error()
}

func compiled(text string) func(*testing.T) string {
	return func(t *testing.T) string {
		_, err := schema.Compile(json.RawMessage(text))
		if err == nil {
			t.Fatal("no error")
		}
		return err.Error()
	}
}

const daysSchema = `{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer","maximum":14}},"required":["city"],"additionalProperties":false}`

func invalidValue(t *testing.T) string {
	v, err := schema.Compile(json.RawMessage(daysSchema))
	if err != nil {
		t.Fatal(err)
	}
	if err = v.Validate([]byte(`{"days":30,"town":"Oslo"}`)); err == nil {
		t.Fatal("no error")
	}
	return err.Error()
}

func lowered(t *testing.T) string {
	p, _ := all.Profile("anthropic.strict")
	low, err := schema.Lower(json.RawMessage(daysSchema), p)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(low.Report.String())
}
