package schema_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/schema"
	"pgregory.net/rapid"
)

func TestT4_CompleteSetsDefaultsAndCoercesOnRequest(t *testing.T) {
	const src = `{"type":"object","properties":{
		"n":{"type":"integer","default":10},
		"deep":{"type":"object","properties":{"on":{"type":"boolean","default":true},"x":{"type":["number","null"]}}},
		"list":{"type":"array","items":{"$ref":"#/$defs/item"}},
		"pair":{"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}]},
		"s":{"type":"string"},
		"u":{"anyOf":[{"type":"object","properties":{"z":{"default":1}}},{"type":"string"}]}},
		"allOf":[{"properties":{"from_all":{"default":"x"}}}],
		"$defs":{"item":{"type":"object","properties":{"k":{"$ref":"#/$defs/k"}}},"k":{"type":"string","default":"d"}}}`
	v, err := schema.Compile(json.RawMessage(src))
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, args string
		coerce     bool
		want       string
		changes    int
	}{
		{"absent ones get their default", `{}`, false, `{"n":10,"from_all":"x"}`, 2},
		{"no text at all is an empty object", ``, false, `{"n":10,"from_all":"x"}`, 2},
		{"null is not absent", `{"n":null,"from_all":1}`, false, `{"n":null,"from_all":1}`, 0},
		{"objects inside, and through references", `{"n":1,"from_all":1,"deep":{},"list":[{},{"k":"v"}]}`, false, `{"n":1,"from_all":1,"deep":{"on":true},"list":[{"k":"d"},{"k":"v"}]}`, 2},
		{"an absent object stays absent", `{"n":1,"from_all":1}`, false, `{"n":1,"from_all":1}`, 0},
		{"a branch of a union does not count", `{"n":1,"from_all":1,"u":{}}`, true, `{"n":1,"from_all":1,"u":{}}`, 0},
		{"nothing is coerced unasked", `{"n":"5","from_all":1,"s":7}`, false, `{"n":"5","from_all":1,"s":7}`, 0},
		{"text to numbers, booleans, null, objects", `{"n":" 5 ","from_all":1,"deep":"{\"on\":false,\"x\":2.5}"}`, true, `{"n":5,"from_all":1,"deep":{"on":false,"x":2.5}}`, 2},
		{"null in text where null may be", `{"n":1,"from_all":1,"deep":{"on":"false","x":"null"}}`, true, `{"n":1,"from_all":1,"deep":{"on":false,"x":null}}`, 2},
		{"numbers to text", `{"n":1,"from_all":1,"s":7.50}`, true, `{"n":1,"from_all":1,"s":"7.50"}`, 1},
		{"a fraction is not an integer", `{"n":"5.5","from_all":1}`, true, `{"n":"5.5","from_all":1}`, 0},
		{"items by their place", `{"n":1,"from_all":1,"pair":["1",2,"3"]}`, true, `{"n":1,"from_all":1,"pair":[1,"2","3"]}`, 2},
		{"big numbers keep their digits", `{"n":"123456789012345678901234567890","from_all":1}`, true, `{"n":123456789012345678901234567890,"from_all":1}`, 1},
		{"a whole number is an integer", `{"n":5.0,"from_all":1.0,"deep":{"on":true,"x":2.0},"pair":[1e2,"2.0"]}`, false, `{"n":5,"from_all":1.0,"deep":{"on":true,"x":2.0},"pair":[100,"2.0"]}`, 2},
		{"zero has no sign as an integer", `{"n":-0.0,"from_all":1}`, false, `{"n":0,"from_all":1}`, 1},
		{"a huge exponent stays", `{"n":1e400,"from_all":1}`, false, `{"n":1e400,"from_all":1}`, 0},
		{"an object in text gets its defaults", `{"n":1,"from_all":1,"deep":"{\"x\":\"2\"}","list":"[{}]"}`, true, `{"n":1,"from_all":1,"deep":{"x":2,"on":true},"list":[{"k":"d"}]}`, 5},
		{"invalid JSON is unchanged", `{"n":`, true, `{"n":`, 0},
		{"a repeated key stays for Validate to refuse", `{"n":1,"n":2}`, true, `{"n":1,"n":2}`, 0},
	} {
		got, changes := v.Complete(json.RawMessage(tc.args), tc.coerce)
		if string(got) != tc.want || len(changes) != tc.changes {
			t.Errorf("%s: %s becomes %s %q, want %s with %d changes", tc.name, tc.args, got, changes, tc.want, tc.changes)
		}
	}
}

// Completing never makes valid arguments invalid, and a second time it changes nothing.
func TestT4_CompleteIsIdempotent(t *testing.T) {
	v, err := schema.Compile(json.RawMessage(`{"type":"object","properties":{"a":{"type":"integer","default":1},"b":{"type":["boolean","string"]},"c":{"type":"array","items":{"type":"number"}},
		"d":{"type":"object","default":{},"properties":{"x":{"default":true},"y":{"type":"object","default":{"z":"5"},"properties":{"z":{"type":"integer"},"w":{"type":"integer","default":2.0}}}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	scalar := rapid.SampledFrom([]string{`1`, `"1"`, `"x"`, `true`, `"true"`, `null`, `"null"`, `1.5`, `"[1]"`, `"{}"`, `[1,"2"]`, `{}`})
	rapid.Check(t, func(t *rapid.T) {
		var members []string
		for _, k := range []string{"a", "b", "c", "d"} {
			if rapid.Bool().Draw(t, k) {
				members = append(members, `"`+k+`":`+scalar.Draw(t, "v"))
			}
		}
		args := json.RawMessage("{" + strings.Join(members, ",") + "}")
		once, _ := v.Complete(args, true)
		twice, changes := v.Complete(once, true)
		if string(once) != string(twice) || len(changes) > 0 {
			t.Fatalf("%s becomes %s and then %s (%q)", args, once, twice, changes)
		}
		if v.Validate(args) == nil && v.Validate(once) != nil {
			t.Fatalf("%s was valid, %s is not", args, once)
		}
	})
}

func TestCompleteKeepsCostlyArguments(t *testing.T) {
	src := `{"items":{"allOf":[` + strings.Join(slices.Repeat([]string{`{"type":"integer"}`}, 60), ",") + `]}}`
	v, err := schema.Compile(json.RawMessage(src))
	if err != nil {
		t.Fatal(err)
	}
	args := json.RawMessage(`["1"` + strings.Repeat(`,"1"`, 100_000) + `]`)
	if got, changes := v.Complete(args, true); changes != nil || len(got) != len(args) {
		t.Errorf("%d bytes of the %d, %d changes", len(got), len(args), len(changes))
	}
	if got, changes := v.Complete(json.RawMessage(`["1"]`), true); len(changes) != 1 || string(got) != `[1]` {
		t.Errorf("a small one: %s %q", got, changes)
	}
}

// A default is completed like a value that the model wrote, and a default that contains itself
// is filled in once.
func TestT4_DefaultsInsideDefaultsAreFilledIn(t *testing.T) {
	for src, want := range map[string]string{
		`{"properties":{"o":{"default":{"a":1},"properties":{"a":{"default":0},"b":{"default":2},"n":{"type":"integer","default":3.0}}}}}`: `{"o":{"a":1,"b":2,"n":3}}`,
		`{"properties":{"l":{"default":[{},{"k":1}],"items":{"properties":{"k":{"default":0}}}}}}`:                                         `{"l":[{"k":0},{"k":1}]}`,
		`{"properties":{"o":{"default":{}}},"allOf":[{"properties":{"o":{"properties":{"a":{"default":1}}}}}]}`:                            `{"o":{"a":1}}`,
		`{"properties":{"next":{"$ref":"#","default":{}}}}`:                                                                                `{"next":{}}`,
	} {
		v, err := schema.Compile(json.RawMessage(src))
		if err != nil {
			t.Fatal(err)
		}
		if got, changes := v.Complete(json.RawMessage(`{}`), false); string(got) != want || len(changes) == 0 {
			t.Errorf("%s: %s %q, want %s", src, got, changes, want)
		}
	}
}
