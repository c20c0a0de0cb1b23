package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	dragoman "github.com/dragoman-go/dragoman"
)

func compiled(t testing.TB, src string, opts ...Option) *Validator {
	t.Helper()
	v, err := Compile([]byte(src), opts...)
	if err != nil {
		t.Fatalf("Compile(%s): %v", src, err)
	}
	return v
}

func TestRequirementT4_AllViolationsAtOnce(t *testing.T) {
	v := compiled(t, `{"type":"object","properties":{
		"city":{"type":"string","minLength":2},"days":{"type":"integer","minimum":1,"maximum":14},
		"unit":{"enum":["c","f"]},"at":{"type":"array","items":{"type":"number"},"minItems":2},
		"id":{"type":"string","pattern":"^(?!0)[0-9]+$"},"who":{"anyOf":[{"type":"string"},{"type":"null"}]}},
		"required":["city","unit","when"],"additionalProperties":false}`)
	err := v.Validate([]byte(`{"city":"x","days":20,"unit":"k","at":[1,"b"],"id":"07","who":3,"extra":1,"a/b":2}`))
	var ve *ValidationError
	if !errors.As(err, &ve) {
		t.Fatalf("%T %v", err, err)
	}
	want := []Violation{
		{"", "additionalProperties", `unknown properties "a/b", "extra"`},
		{"", "required", `missing property "when"`},
		{"/at/1", "type", "must be number, is string"},
		{"/city", "minLength", "must have at least 2 characters, has 1"},
		{"/days", "maximum", "must be at most 14, is 20"},
		{"/id", "pattern", `must match the pattern ^(?!0)[0-9]+$, is "07"`},
		{"/unit", "enum", `must be one of "c", "f", is "k"`},
		{"/who", "type", "must be string or null, is number"},
	}
	if diff := cmp.Diff(want, ve.Violations); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := v.Validate([]byte(`{"city":"Oslo","unit":"c","when":1}`)); err == nil || !strings.Contains(err.Error(), "when") {
		t.Errorf("%v", err)
	}
}

func TestRequirementT4_TextIsShortEnoughForAModel(t *testing.T) {
	v := compiled(t, `{"type":"object","additionalProperties":{"type":"string","maxLength":1}}`)
	args := map[string]string{}
	for i := range 500 {
		args[fmt.Sprintf("%0500d", i)] = strings.Repeat("x", 500)
	}
	text, _ := json.Marshal(args)
	err := v.Validate(text)
	if err == nil || len(err.Error()) > 3000 || strings.Count(err.Error(), "\n") != maxLines || !strings.HasSuffix(err.Error(), "and 490 more") {
		t.Errorf("%d bytes: %.200s", len(err.Error()), err)
	}
}

func TestUnionErrorsDescribeTheClosestBranch(t *testing.T) {
	v := compiled(t, `{"oneOf":[
		{"type":"object","properties":{"kind":{"const":"circle"},"r":{"type":"number"}},"required":["kind","r"]},
		{"type":"object","properties":{"kind":{"const":"box"},"w":{"type":"number"},"h":{"type":"number"}},"required":["kind","w","h"]}]}`)
	err := v.Validate([]byte(`{"kind":"box","w":1}`))
	want := "(root): matches none of the 2 allowed forms; errors of the closest one follow\n(root): missing property \"h\""
	if err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
	both := compiled(t, `{"oneOf":[{"required":["a"]},{"required":["b"]}]}`)
	if err := both.Validate([]byte(`{"a":1,"b":2}`)); err == nil || !strings.Contains(err.Error(), "exactly one") {
		t.Errorf("%v", err)
	}
}

func TestEveryKeywordHasAMessage(t *testing.T) {
	cases := []struct{ schema, value, want string }{
		{`{"const":"a"}`, `"b"`, `must be "a", is "b"`},
		{`{"maxLength":1}`, `"ab"`, `at most 1 characters`},
		{`{"minItems":1}`, `[]`, `at least 1 items`},
		{`{"maxItems":1}`, `[1,2]`, `at most 1 items`},
		{`{"uniqueItems":true}`, `[1,1]`, `items 0 and 1 are equal`},
		{`{"minProperties":1}`, `{}`, `at least 1 properties`},
		{`{"maxProperties":0}`, `{"a":1}`, `at most 0 properties`},
		{`{"exclusiveMinimum":1}`, `1`, `more than 1`},
		{`{"exclusiveMaximum":1.5}`, `1.5`, `less than 1.5, is 1.5`},
		{`{"minimum":0.1}`, `0`, `at least 0.1`},
		{`{"multipleOf":0.01}`, `0.015`, `a multiple of 0.01`},
		{`{"contains":{"type":"string"}}`, `[1]`, `no item of the required form`},
		{`{"contains":{"type":"string"},"minContains":2}`, `["a"]`, `at least 2 items of the required form`},
		{`{"contains":{"type":"string"},"maxContains":1}`, `["a","b"]`, `at most 1 items of the required form`},
		{`{"not":{"type":"string"}}`, `"a"`, `excludes`},
		{`{"properties":{"a":false}}`, `{"a":1}`, `must not be present`},
		{`{"dependentRequired":{"a":["b"]}}`, `{"a":1}`, `missing property "b", required with "a"`},
		{`{"propertyNames":{"maxLength":1}}`, `{"ab":1}`, `the property name "ab" is not allowed: must have at most 1`},
		{`{"prefixItems":[{}],"items":false}`, `[1,2]`, `must not be present`},
		{`{"unevaluatedProperties":false}`, `{"a":1}`, `must not be present`},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","items":[{}],"additionalItems":false}`, `[1,2]`, `1 items too many`},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{"a":["b"]}}`, `{"a":1}`, `missing property "b", required with "a"`},
		{`{"$ref":"#/$defs/a","$defs":{"a":{"type":"string"}}}`, `1`, `must be string, is number`},
	}
	for _, c := range cases {
		err := compiled(t, c.schema).Validate([]byte(c.value))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s on %s: %v; want %q", c.value, c.schema, err, c.want)
		}
	}
}

func TestNumbersAreExact(t *testing.T) {
	cases := []struct {
		schema, value string
		ok            bool
	}{
		{`{"const":9007199254740993}`, `9007199254740993`, true},
		{`{"const":9007199254740993}`, `9007199254740992`, false},
		{`{"maximum":9007199254740992}`, `9007199254740993`, false},
		{`{"multipleOf":0.01}`, `19.99`, true},
		{`{"type":"integer"}`, `1e400`, true},
		{`{"type":"integer"}`, `1.0`, true},
		{`{"type":"integer"}`, `1.5`, false},
		{`{"enum":[1]}`, `1.0`, true},
	}
	for _, c := range cases {
		if err := compiled(t, c.schema).Validate([]byte(c.value)); (err == nil) != c.ok {
			t.Errorf("%s on %s: %v", c.value, c.schema, err)
		}
	}
}

func TestInvalidSchemasAreErrors(t *testing.T) {
	deep := strings.Repeat(`{"items":`, 300) + `{}` + strings.Repeat(`}`, 300)
	allOf := `{"type":"string"}`
	for range 16 {
		allOf = `{"allOf":[` + allOf + `,` + allOf + `]}`
	}
	many := func(n int, f func(i int) string) string {
		parts := make([]string, n)
		for i := range parts {
			parts[i] = fmt.Sprintf(`"d%d":%s`, i, f(i))
		}
		return `{"$ref":"#/$defs/d0","$defs":{` + strings.Join(parts, ",") + `}}`
	}
	cases := []struct {
		name, src string
		kind      error
	}{
		{"no JSON", `{`, ErrInvalid},
		{"two values", `{} {}`, ErrInvalid},
		{"no schema", `[]`, ErrInvalid},
		{"a repeated name", `{"type":"string","type":"object"}`, ErrInvalid},
		{"an unknown type", `{"type":"objec"}`, ErrInvalid},
		{"an invalid pattern", `{"pattern":"("}`, ErrInvalid},
		{"a reference to the network", `{"$ref":"https://example.org/x"}`, ErrInvalid},
		{"a reference to the disk", `{"$ref":"file:///etc/hostname"}`, ErrInvalid},
		{"a reference to a neighbour", `{"$ref":"other.json"}`, ErrInvalid},
		{"a metaschema from elsewhere", `{"$schema":"https://example.org/meta"}`, ErrInvalid},
		{"a reference to nothing", `{"$ref":"#/$defs/x"}`, ErrInvalid},
		{"a reference to itself", `{"$ref":"#"}`, ErrInvalid},
		{"itself in allOf", `{"allOf":[{"$ref":"#"}]}`, ErrInvalid},
		{"a circle", `{"properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/b"}]},"b":{"not":{"$ref":"#/$defs/a"}}}}`, ErrInvalid},
		{"a circle in an unknown place", `{"$ref":"#/x/a","x":{"a":{"properties":{"p":{"$ref":"#/x/b"}}},"b":{"$ref":"#/x/b"}}}`, ErrInvalid},
		{"a deep schema", deep, dragoman.ErrTooLarge},
		{"a large schema", `{"description":"` + strings.Repeat("x", maxSchemaBytes) + `"}`, dragoman.ErrTooLarge},
		{"a doubling allOf", allOf, dragoman.ErrTooLarge},
		{"a doubling by reference", many(30, func(i int) string {
			if i == 29 {
				return `{"type":"string"}`
			}
			return fmt.Sprintf(`{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`, i+1, i+1)
		}), dragoman.ErrTooLarge},
		{"a long chain of allOf by reference", many(1900, func(i int) string {
			if i == 1899 {
				return `{"type":"string"}`
			}
			return fmt.Sprintf(`{"allOf":[{"$ref":"#/$defs/d%d"}]}`, i+1)
		}), dragoman.ErrTooLarge},
		{"too many references", many(maxRefs+1, func(int) string { return `{"properties":{"a":{"$ref":"#/$defs/d0"}}}` }), dragoman.ErrTooLarge},
		{"a number that fills the memory", `{"minimum":1e999999999}`, dragoman.ErrTooLarge},
	}
	for _, c := range cases {
		start := time.Now()
		v, err := Compile([]byte(c.src))
		if v != nil || !errors.Is(err, c.kind) {
			t.Errorf("%s: %v; want %v", c.name, err, c.kind)
		}
		if took := time.Since(start); took > 20*time.Second {
			t.Errorf("%s took %v", c.name, took)
		}
	}
}

func TestHostileArgumentsAreBounded(t *testing.T) {
	// Both branches validate the same property, so each level of the arguments doubles the
	// work of a naive validator.
	recursive := compiled(t, `{"anyOf":[{"properties":{"a":{"$ref":"#"},"k":{"const":1}},"required":["k"]},{"properties":{"a":{"$ref":"#"},"k":{"const":2}},"required":["k"]}]}`)
	nest := func(n int) string { return strings.Repeat(`{"k":3,"a":`, n) + `{"k":1}` + strings.Repeat(`}`, n) }
	if err := recursive.Validate([]byte(strings.Repeat(`{"k":1,"a":`, 5) + `{"k":2}` + strings.Repeat(`}`, 5))); err != nil {
		t.Errorf("a modest tree: %v", err)
	}
	slow := compiled(t, `{"properties":{"s":{"items":{"pattern":"^(a+)+$"}}}}`)
	anything := compiled(t, ``)
	small := compiled(t, `{}`)
	small.maxBytes = 10
	cases := []struct {
		name string
		v    *Validator
		args string
		want string
	}{
		{"work that doubles with depth", recursive, nest(60), "too deeply"},
		{"a pattern that backtracks", slow, `{"s":["` + strings.Repeat("a", 40) + `b","` + strings.Repeat("a", 41) + `b"]}`, "took too long"},
		{"deep arguments", anything, strings.Repeat(`[`, 1000) + strings.Repeat(`]`, 1000), "nested deeper than"},
		{"a number that fills the memory", compiled(t, `{"properties":{"n":{"minimum":1}}}`), `{"n":1e999999999}`, "digits"},
		{"many bytes", small, `"` + strings.Repeat("x", 20) + `"`, "at most 10"},
		{"a repeated name", anything, `{"a":1,"a":2}`, "duplicate"},
		{"no JSON", anything, `{"a":`, "unexpected"},
		{"something after the end", anything, `{} x`, "after"},
	}
	for _, c := range cases {
		start := time.Now()
		err := c.v.Validate([]byte(c.args))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", c.name, err, c.want)
		}
		if took := time.Since(start); took > 20*time.Second {
			t.Errorf("%s took %v", c.name, took)
		}
	}
	if err := slow.Validate([]byte(`{"s":["aaa"]}`)); err != nil {
		t.Errorf("after a slow match the validator is spoilt: %v", err)
	}
}

func TestFormatsAreHintsByDefault(t *testing.T) {
	for _, draft := range []string{"", `"$schema":"http://json-schema.org/draft-07/schema#",`} {
		src := `{` + draft + `"type":"string","format":"email"}`
		if err := compiled(t, src).Validate([]byte(`"x"`)); err != nil {
			t.Errorf("%s: %v", src, err)
		}
		if err := compiled(t, src, AssertFormats()).Validate([]byte(`"x"`)); err == nil {
			t.Errorf("%s: accepted", src)
		}
	}
}

func TestEmptyTextIsAnEmptyObject(t *testing.T) {
	if err := compiled(t, ``).Validate(nil); err != nil {
		t.Error(err)
	}
	if err := compiled(t, `{"required":["a"]}`).Validate(nil); err == nil {
		t.Error("a required argument was not missed")
	}
	if err := compiled(t, ``).Validate([]byte(`3`)); err == nil {
		t.Error("no schema means an object")
	}
}

func TestPatternsAreECMA(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		ok            bool
	}{
		{`^(?=.*[A-Z]).+$`, "aB", true},
		{`^(?=.*[A-Z]).+$`, "ab", false},
		{`^\\d+$`, "٣", false},
		{`^\\p{L}+$`, "é", true},
		{`a`, "xax", true},
	} {
		err := compiled(t, `{"pattern":"`+c.pattern+`"}`).Validate([]byte(`"` + c.text + `"`))
		if (err == nil) != c.ok {
			t.Errorf("%s on %s: %v", c.pattern, c.text, err)
		}
	}
}

func TestValidatorIsSafeForConcurrentUse(t *testing.T) {
	v := compiled(t, `{"type":"object","properties":{"a":{"type":"string","pattern":"^x"},"t":{"type":"array","items":{"$ref":"#"}}}}`)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 50 {
				if err := v.Validate([]byte(`{"a":"xy","t":[{"a":"x"}]}`)); err != nil {
					t.Errorf("%d: %v", i, err)
				}
				if err := v.Validate([]byte(`{"a":"y"}`)); err == nil {
					t.Errorf("%d: accepted", i)
				}
			}
		})
	}
	wg.Wait()
}

func TestLargeArgumentsAreValidated(t *testing.T) {
	var props, args strings.Builder
	for i := range 3000 {
		if i > 0 {
			props.WriteByte(',')
			args.WriteByte(',')
		}
		fmt.Fprintf(&props, `"p%d":{"type":"integer"}`, i)
		fmt.Fprintf(&args, `"p%d":%d`, i, i)
	}
	v := compiled(t, `{"type":"object","properties":{`+props.String()+`},"additionalProperties":false}`)
	if err := v.Validate([]byte(`{` + args.String() + `}`)); err != nil {
		t.Error(err)
	}
}
