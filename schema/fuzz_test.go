package schema

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	dragoman "github.com/dragoman-go/dragoman"
)

// seeds are schemas that caused errors, or that are likely to.
var seeds = []string{
	``, `null`, `true`, `false`, `{}`, `[]`, `{"type":"object"}`, `{"type":"object","properties":null}`,
	`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`,
	`{"type":"dict","properties":{"a":{"type":"float","required":true},"b":"string"}}`,
	`{"anyOf":[{"type":"object","properties":{"a":{"type":"string"}}},{"$ref":"#/$defs/b"}],"$defs":{"b":{"type":"object","properties":{"a":{"$ref":"#"}}}}}`,
	`{"allOf":[{"$ref":"#/definitions/a"},{"required":["x"]}],"definitions":{"a":{"properties":{"x":{"allOf":[{"type":"string"},{"minLength":1}]}}}}}`,
	`{"$ref":"#"}`, `{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/a"}}}`, `{"$ref":"#/x/y","x":{"y":{"z":1}}}`,
	`{"type":"object","properties":{"a":{"items":[{"type":"string"},{}],"additionalItems":false},"b":{"nullable":true,"$ref":"#/properties/a"}}}`,
	`{"type":"object","properties":{"a":{"$id":"http://x/","$ref":"#/$defs/q","$defs":{"q":{"$anchor":"z"}}},"b":{"$ref":"http://x/#z"}}}`,
	`{"type":"object","properties":{"a":{"if":{"const":1},"then":{"properties":{"q":true}},"not":{}}},"patternProperties":{"^a":{}}}`,
	`{"0":{"":{"":{},"":{}}},"default":[{"a":1,"a":[{"b":1,"b":2}]}]}`,
	`{"type":"object","type":"array","properties":{"a":1,"a":null},"enum":[],"required":[1,"a","a"]}`,
	"{\"type\":\"object\",\"properties\":{\"\xff\":{\"description\":\"\\ud800\"}}}",
	`{"type":"object","properties":{"a":{"type":["array","null"],"minItems":"2","maximum":1e999,"exclusiveMinimum":true}}}`,
	`{"type":"object","properties":{"t":{"type":"array","prefixItems":[{"type":"string"},{"$ref":"#"}],"items":false}}}`,
	`{"type":"object","properties":{"u":{"type":"string","oneOf":[{"const":"a"},{"pattern":"(?=b)"}],"format":"x"}}}`,
}

func FuzzLower(f *testing.F) {
	for _, s := range seeds {
		for i := range Profiles() {
			f.Add([]byte(s), byte(i))
		}
	}
	profiles := Profiles()
	f.Fuzz(func(t *testing.T, src []byte, which byte) {
		p := profiles[int(which)%len(profiles)]
		before := string(src)
		out, report, err := lowered(src, p)
		if string(src) != before {
			t.Fatal("the source was changed")
		}
		if err != nil {
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("%T", err)
			}
			return
		}
		if len(report.Losses) > maxLosses {
			return
		}
		again, more, err := lowered(out, p)
		if errors.Is(err, dragoman.ErrTooLarge) {
			return // the result is at the limit
		}
		if err != nil || string(again) != string(out) || len(more.Losses) > 0 {
			t.Fatalf("%s: %q\nlowered to %q\nand again to %q\n%v %v", p.Name(), src, out, again, more, err)
		}
		if v := Check(out, p); v != nil {
			t.Fatalf("%s: %q\nlowered to %q\nbreaks %v", p.Name(), src, out, v)
		}
	})
}

func FuzzCompile(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		v, err := Compile(src)
		var e *Error
		if (v == nil) != (err != nil) || err != nil && !errors.As(err, &e) {
			t.Fatalf("%v %v", v, err)
		}
	})
}

func FuzzValidate(f *testing.F) {
	args := []string{`{}`, ``, `{"a":1}`, `{"a":{"a":{"a":[1,"x",null]}},"b":true}`, `[[[]]]`, `{"a":1e99}`, `{"a":1,"a":2}`, `"x"`, `{"t":["a",{}]}`}
	for i, s := range seeds {
		f.Add([]byte(s), []byte(args[i%len(args)]))
	}
	f.Fuzz(func(t *testing.T, src, args []byte) {
		v, err := Compile(src)
		if err != nil {
			return
		}
		err = v.Validate(args)
		var ve *ValidationError
		if err != nil && (!errors.As(err, &ve) || len(ve.Violations) == 0 || len(err.Error()) > 4000) {
			t.Fatalf("%v", err)
		}
		out := omitNulls(src, args)
		if string(omitNulls(src, out)) != string(out) {
			t.Fatalf("OmitNulls is not done after once: %q", out)
		}
	})
}

// FuzzAdapt checks that translated arguments can be translated back.
func FuzzAdapt(f *testing.F) {
	args := []string{`{}`, `{"a":1,"$filter":"x"}`, `{"m":{"k":1},"n":"1"}`, `{"n":1, "m":[{"key":"k","value":"1"}]}`, `[`, `{"foo-bar":{"@type":[{"x":1}]}}`}
	for i, s := range append(slices.Clone(seeds), mapKeysSorted(ourZoo)...) {
		f.Add([]byte(s), []byte(args[i%len(args)]), byte(i))
	}
	profiles := Profiles()
	f.Fuzz(func(t *testing.T, src, args []byte, which byte) {
		low, err := Lower(src, profiles[int(which)%len(profiles)])
		if err != nil {
			return
		}
		before := string(args)
		wire, err := low.ToWire(args)
		if string(args) != before {
			t.Fatal("the arguments were changed")
		}
		if err != nil {
			if !errors.Is(err, errAmbiguous) {
				t.Fatalf("%v", err)
			}
			return
		}
		back, err := low.FromWire(wire)
		if err != nil {
			t.Fatalf("%s became %s, which does not come back: %v", args, wire, err)
		}
		if string(wire) != before && !sameJSON(back, args) && !alreadyWire(low, args) {
			t.Fatalf("%s\nlowered to %s\n%s became %s and then %s", src, low.Schema, args, wire, back)
		}
	})
}

// alreadyWire reports arguments that used the wire form, in part, before they were translated.
// They are translated back into the author's form.
func alreadyWire(low *Lowered, args []byte) bool {
	once, err := low.FromWire(args)
	return err != nil || string(once) != string(args)
}

func mapKeysSorted(m map[string]string) []string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, m[k])
	}
	return out
}

// sameJSON reports whether two texts differ only in white space and escapes.
func sameJSON(a, b []byte) bool {
	x, y := jsontext.Value(slices.Clone(a)), jsontext.Value(slices.Clone(b))
	return x.Canonicalize() == nil && y.Canonicalize() == nil && string(x) == string(y)
}
