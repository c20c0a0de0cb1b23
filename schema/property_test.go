package schema

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	dragoman "github.com/dragoman-go/dragoman"
)

// anySchema draws the text of a schema: mostly sensible, sometimes not, with keywords in any
// order and references to anywhere.
func anySchema(t *rapid.T, depth int) string {
	if depth <= 0 || rapid.IntRange(0, 12).Draw(t, "leaf") == 0 {
		return rapid.SampledFrom([]string{
			`{}`, `true`, `false`, `{"type":"string"}`, `{"type":"integer","minimum":1}`, `{"type":"null"}`, `{"const":0}`,
			`{"enum":["a","b",1]}`, `{"$ref":"#"}`, `{"$ref":"#/$defs/a"}`, `{"$ref":"#/$defs/b","description":"d"}`,
			`{"$ref":"#/properties/a"}`, `{"$ref":"#/definitions/a","type":"object"}`, `{"$ref":"#anchor"}`, `{"$ref":"http://x/y"}`,
			`{"type":"dict"}`, `{"type":["string","null"]}`, `"string"`, `null`, `3`, `{"type":"array"}`, `{"type":"object"}`,
			`{"type":"string","nullable":true}`, `{"required":["a"]}`, `{"type":"string","format":"uri","pattern":"(?=x)"}`,
		}).Draw(t, "schema")
	}
	var b strings.Builder
	b.WriteByte('{')
	for i := range rapid.IntRange(0, 5).Draw(t, "members") {
		if i > 0 {
			b.WriteByte(',')
		}
		kw := keyword(rapid.IntRange(0, int(kwCount)-1).Draw(t, "keyword"))
		if rapid.Bool().Draw(t, "common") {
			kw = rapid.SampledFrom([]keyword{kwType, kwProperties, kwItems, kwAnyOf, kwOneOf, kwAllOf, kwRequired, kwDefs, kwAdditionalProperties, kwRef}).Draw(t, "keyword")
		}
		name := keywords[kw].name
		if kw == kwOther {
			name = "x-other"
		}
		b.WriteString(strconv.Quote(name) + ":" + anyValue(t, kw, depth-1))
	}
	b.WriteByte('}')
	return b.String()
}

var names4 = []string{"a", "b", "type", "$ref"}

func anyValue(t *rapid.T, kw keyword, depth int) string {
	if rapid.IntRange(0, 15).Draw(t, "odd") == 0 {
		return rapid.SampledFrom([]string{`null`, `true`, `false`, `"x"`, `"3"`, `-1`, `[]`, `{}`, `[1,1]`, `["a","a",2]`, `1e400`, `{"type":"string"}`}).Draw(t, "value")
	}
	list := func() string {
		var parts []string
		for range rapid.IntRange(1, 3).Draw(t, "length") {
			parts = append(parts, anySchema(t, depth))
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	switch keywords[kw].shape {
	case shapeString:
		if kw == kwRef {
			return rapid.SampledFrom([]string{`"#"`, `"#/$defs/a"`, `"#/$defs/b"`, `"#/properties/a"`, `"#/anyOf/0"`, `"#/x-other"`, `"#x"`, `"%"`}).Draw(t, "ref")
		}
		return rapid.SampledFrom([]string{`"x"`, `"email"`, `"^(?!a)b"`, `"a\nb"`, `"\u00e9<&>"`}).Draw(t, "text")
	case shapeBool:
		return rapid.SampledFrom([]string{`true`, `false`}).Draw(t, "bool")
	case shapeNumber, shapeCount:
		return rapid.SampledFrom([]string{`0`, `1`, `2`, `3.0`, `"4"`, `1.5`}).Draw(t, "number")
	case shapeType:
		return rapid.SampledFrom([]string{`"object"`, `"object"`, `"array"`, `"string"`, `"number"`, `"float"`, `["string","null"]`, `["object","null"]`, `["array","x"]`, `"any"`}).Draw(t, "type")
	case shapeEnum:
		return rapid.SampledFrom([]string{`["a"]`, `[1,null]`, `["a","b"]`, `[{"type":"dict"}]`}).Draw(t, "enum")
	case shapeStrings:
		return rapid.SampledFrom([]string{`["a"]`, `["a","b"]`, `[]`, `["ghost"]`, `"a"`, `true`}).Draw(t, "required")
	case shapeSchema:
		return anySchema(t, depth)
	case shapeItems:
		if rapid.IntRange(0, 3).Draw(t, "tuple") == 0 {
			return list()
		}
		return anySchema(t, depth)
	case shapeList:
		return list()
	case shapeMap, shapeDeps:
		var parts []string
		for _, n := range names4[:rapid.IntRange(0, 4).Draw(t, "size")] {
			parts = append(parts, strconv.Quote(n)+":"+anySchema(t, depth))
		}
		return "{" + strings.Join(parts, ",") + "}"
	default:
		return rapid.SampledFrom([]string{`1`, `{"type":"dict","$ref":"#"}`, `["x"]`, `"y"`}).Draw(t, "data")
	}
}

func anyRoot(t *rapid.T) string {
	if rapid.Bool().Draw(t, "plain root") {
		return `{"type":"object","properties":{"a":` + anySchema(t, 3) + `,"b":` + anySchema(t, 2) + `},"$defs":{"a":` + anySchema(t, 2) + `,"b":` + anySchema(t, 2) + `}}`
	}
	return anySchema(t, 4)
}

func anyProfile(t *rapid.T) Profile { return rapid.SampledFrom(Profiles()).Draw(t, "profile") }

func TestLowerIsPureTotalAndIdempotent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src, p := anyRoot(t), anyProfile(t)
		in := []byte(src)
		out, report, err := lowered(in, p)
		if string(in) != src {
			t.Fatalf("the source was changed")
		}
		again, _, err2 := lowered([]byte(src), p)
		if string(again) != string(out) || (err == nil) != (err2 == nil) {
			t.Fatalf("two answers for %s:\n%s\n%s", src, out, again)
		}
		if err != nil {
			if !errors.Is(err, ErrInvalid) && !errors.Is(err, dragoman.ErrUnsupported) && !errors.Is(err, dragoman.ErrTooLarge) {
				t.Fatalf("an error of no kind: %v", err)
			}
			if errors.Is(err, dragoman.ErrUnsupported) && !p.Strict() {
				t.Fatalf("%s refused %s: %v", p.Name(), src, err)
			}
			return
		}
		checkDrawn(t, src, out, p, report)
	})
}

// checkDrawn is checkLowered for a drawn schema.
func checkDrawn(t *rapid.T, src string, out json.RawMessage, p Profile, report dragoman.Report) {
	if v := Check(out, p); v != nil {
		t.Fatalf("%s: Lower(%s) = %s breaks %v", p.Name(), src, out, v)
	}
	again, more, err := lowered(out, p)
	if err != nil || string(again) != string(out) || len(more.Losses) > 0 {
		t.Fatalf("%s: %s\nlowered to %s\nand again to %s\n%v %v", p.Name(), src, out, again, more, err)
	}
	if (len(report.Losses) == 0) != (string(out) == src) {
		t.Fatalf("%s: %d losses for %s -> %s", p.Name(), len(report.Losses), src, out)
	}
}

// The fast path is an optimization: if it accepts a schema, the full lowering must agree.
func TestFastPathAgreesWithTheEngine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := anyProfile(t)
		src := []byte(anyRoot(t))
		if out, _, err := lowered(src, p); err == nil && rapid.Bool().Draw(t, "lowered") {
			src = out
		}
		if !readsOneWay(src) || !fits(src, &p) { // it is only called for valid schemas
			return
		}
		l := newLowerer(&p)
		if _, err := l.run(src); err != nil || len(l.report.Losses) > 0 {
			t.Fatalf("%s: %s fits the fast path: %v %v", p.Name(), src, err, l.report)
		}
	})
}

// The lowered schema for a surface without strict is valid JSON Schema, by the metaschema of
// the validator.
func TestLoweredSchemasCompile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src, p := anyRoot(t), anyProfile(t)
		out, _, err := lowered([]byte(src), p)
		if err != nil {
			return
		}
		for _, core := range []string{"$schema", "$id", "nchor", "$dynamic", "$recursive", "$vocabulary"} {
			if strings.Contains(string(out), core) {
				return // draws invalid values for these, which a validator rightly refuses
			}
		}
		if _, err := Compile(out); err != nil && !errors.Is(err, dragoman.ErrTooLarge) {
			t.Fatalf("%s: %s\nlowered to %s\n%v", p.Name(), src, out, err)
		}
	})
}

func TestValidateIsTotal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := anyRoot(t)
		v, err := Compile([]byte(src))
		if err != nil {
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("%s: %T", src, err)
			}
			return
		}
		args := rapid.SampledFrom([]string{`{}`, `{"a":1,"b":"x"}`, `{"a":{"a":{"a":null}},"b":[1,[2,{}]]}`, `[]`, `null`, `{"a":`, `{"a":1,"a":2}`}).Draw(t, "args")
		first := v.Validate([]byte(args))
		second := v.Validate([]byte(args))
		if (first == nil) != (second == nil) || first != nil && first.Error() != second.Error() {
			t.Fatalf("%s on %s: two answers:\n%v\n%v", args, src, first, second)
		}
		var ve *ValidationError
		if first != nil && (!errors.As(first, &ve) || len(ve.Violations) == 0 || len(first.Error()) > 3000) {
			t.Fatalf("%s on %s: %v", args, src, first)
		}
	})
}
