package schema

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// jsonLines calls f for each line of a file.
func jsonLines(t testing.TB, file string, f func(line []byte)) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		f(lines.Bytes())
	}
}

// expectedCall is a function and the arguments that a model should write for it.
type expectedCall struct {
	name string
	src  json.RawMessage
	args json.RawMessage
}

// expectedCalls reads the functions and calls of the leaderboard. Its answers list the correct
// values of each argument; the first one is used.
func expectedCalls(t testing.TB) []expectedCall {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(toolzoo, "answer_BFCL*.json"))
	if len(files) == 0 {
		t.Skipf("no expected calls at %s", toolzoo)
	}
	var out []expectedCall
	for _, file := range files {
		functions := map[string]map[string]json.RawMessage{}
		jsonLines(t, filepath.Join(toolzoo, strings.TrimPrefix(filepath.Base(file), "answer_")), func(line []byte) {
			var q struct {
				ID       string
				Function []struct {
					Name       string
					Parameters json.RawMessage
				}
			}
			if err := json.Unmarshal(line, &q); err != nil {
				t.Fatal(err)
			}
			functions[q.ID] = map[string]json.RawMessage{}
			for _, f := range q.Function {
				functions[q.ID][f.Name] = f.Parameters
			}
		})
		jsonLines(t, file, func(line []byte) {
			var a struct {
				ID    string
				Truth []json.RawMessage `json:"ground_truth"`
			}
			if err := json.Unmarshal(line, &a); err != nil {
				t.Fatal(err)
			}
			for _, call := range a.Truth {
				r := jsonwire.NewReader(call)
				for key := range r.Object() {
					name := string(key)
					out = append(out, expectedCall{name, functions[a.ID][name], firstValues(r.Raw())})
				}
			}
		})
	}
	return out
}

// firstValues writes each argument with its first correct value.
func firstValues(raw []byte) json.RawMessage {
	var w jsonwire.Writer
	r := jsonwire.NewReader(raw)
	w.BeginObject()
	for key := range r.Object() {
		name := string(key)
		for i := range r.Array() {
			if v := r.Raw(); i == 0 {
				w.QuotedKey(name)
				var b bytes.Buffer
				if json.Compact(&b, v) == nil {
					w.Raw(b.Bytes())
				}
			}
		}
	}
	w.EndObject()
	return w.Buf
}

func TestExpectedCallsSurviveEveryTarget(t *testing.T) {
	calls := expectedCalls(t)
	if len(calls) < 800 {
		t.Errorf("only %d calls found", len(calls))
	}
	for _, p := range Profiles() {
		changed := 0
		for _, c := range calls {
			if c.src == nil {
				t.Fatalf("%s has no schema", c.name)
			}
			low, err := Lower(c.src, p)
			if err != nil {
				if !p.Strict() || !errors.Is(err, dragoman.ErrUnsupported) {
					t.Errorf("%s: %s: %v", p.Name(), c.name, err)
				}
				continue
			}
			wire, err := low.ToWire(c.args)
			if err != nil {
				t.Errorf("%s: %s: %v", p.Name(), c.name, err)
				continue
			}
			if string(wire) != string(c.args) {
				changed++
			}
			back, err := low.FromWire(wire)
			if err != nil || string(back) != string(c.args) {
				t.Errorf("%s: %s: %s\nbecame %s\nand then %s, %v", p.Name(), c.name, c.args, wire, back, err)
			}
		}
		if (p.Name() == "gemini.parameters") != (changed > 0) && p.names.max == 0 {
			t.Errorf("%s: %d calls were changed on the way", p.Name(), changed)
		}
		t.Logf("%-28s %d of %d calls look different on the wire", p.Name(), changed, len(calls))
	}
}

// ourZoo holds schemas that caused errors, or that are likely to.
var ourZoo = map[string]string{
	"a union at the root":            `{"oneOf":[{"type":"object","properties":{"page_id":{"type":"string"}},"required":["page_id"]},{"type":"object","properties":{"database_id":{"type":"string"},"page_id":{"type":"integer"}},"required":["database_id"]}]}`,
	"a choice of required names":     `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"anyOf":[{"required":["a"]},{"required":["b"]}]}`,
	"$schema only":                   `{"$schema":"http://json-schema.org/draft-07/schema#"}`,
	"a bare object":                  `{"type":"object"}`,
	"null properties":                `{"type":"object","properties":null,"required":null}`,
	"properties named like keywords": `{"type":"object","properties":{"type":{"type":"string"},"properties":{"type":"object","properties":{"items":{"type":"array"}}},"required":{"type":"boolean"},"$ref":{"type":"string"},"enum":{"type":"array","items":{"type":"string"}}},"required":["type","$ref","required"]}`,
	"a recursive tree":               `{"type":"object","properties":{"root":{"$ref":"#/definitions/node"}},"required":["root"],"definitions":{"node":{"type":"object","properties":{"value":{},"left":{"$ref":"#/definitions/node"},"right":{"anyOf":[{"$ref":"#/definitions/node"},{"type":"null"}]},"children":{"type":"array","items":{"$ref":"#/definitions/node"}}},"required":["value","left","children"]}}}`,
	"recursion through the root":     `{"type":"object","properties":{"and":{"type":"array","items":{"$ref":"#"}},"not":{"$ref":"#"}},"required":["and"],"additionalProperties":{"$ref":"#"}}`,
	"two that contain each other":    `{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{"type":"object","properties":{"b":{"$ref":"#/$defs/B"}},"required":["b"]},"B":{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}},"required":["a"]}}}`,
	"integer enums":                  `{"type":"object","properties":{"n":{"type":"integer","enum":[0,1,2]},"m":{"enum":[1,"1",null,true]},"c":{"const":0}}}`,
	"boolean schemas":                `{"type":"object","properties":{"any":true,"none":false,"list":{"type":"array","items":true},"never":{"type":"array","items":false},"u":{"anyOf":[true,false]}},"additionalProperties":false}`,
	"a tuple":                        `{"type":"object","properties":{"t":{"type":"array","items":[{"type":"number"},{"type":"number"}],"additionalItems":false},"u":{"type":"array","prefixItems":[{"type":"string"},{"const":1}],"unevaluatedItems":false}}}`,
	"zod's positive":                 `{"type":"object","properties":{"n":{"type":"number","exclusiveMinimum":0}},"$schema":"http://json-schema.org/draft-07/schema#","additionalProperties":false}`,
	"types of other languages":       `{"type":"dict","properties":{"a":{"type":"float"},"b":{"type":"tuple","items":{"type":"float"}},"c":{"type":"any"},"d":{"type":"dict","properties":{"e":{"type":"list"}}},"f":{"type":["str","None"]}},"required":["a"]}`,
	"names that no target allows":    `{"type":"object","properties":{"$filter":{"type":"string"},"@odata.type":{"type":"string"},"a b":{"type":"string"},"":{"type":"string"},"año":{"type":"integer"},"1st":{"type":"string"},"` + strings.Repeat("long", 20) + `":{"type":"string"}},"required":["$filter",""]}`,
	"OpenAPI":                        `{"type":"object","properties":{"a":{"type":"string","nullable":true,"example":"x"},"b":{"allOf":[{"$ref":"#/components/schemas/B"}],"nullable":true}},"components":{"schemas":{"B":{"type":"object","properties":{"c":{"type":"integer","format":"int32","exclusiveMinimum":true,"minimum":0}}}}}}`,
	"Gemini's own":                   `{"type":"OBJECT","properties":{"a":{"type":"ARRAY","minItems":"1","items":{"type":"STRING","format":"enum","enum":["X","Y"]}},"b":{"type":"INTEGER","nullable":true}},"required":["a"],"propertyOrdering":["b","a"]}`,
	"maps":                           `{"type":"object","properties":{"m":{"type":"object","additionalProperties":{"type":"array","items":{"type":"integer"}}},"n":{"type":"object","patternProperties":{"^x":{"type":"string"}}},"o":{"type":"object","additionalProperties":true},"p":{"additionalProperties":{}}}}`,
	"conditions":                     `{"type":"object","properties":{"k":{"enum":["a","b"]}},"if":{"properties":{"k":{"const":"a"}}},"then":{"properties":{"x":{"type":"string"}},"required":["x"]},"else":{"not":{"required":["x"]}},"dependentSchemas":{"k":{"properties":{"y":{"type":"string"}}}}}`,
	"unions of unions":               `{"type":"object","properties":{"u":{"anyOf":[{"oneOf":[{"type":"string"},{"type":"null"}]},{"allOf":[{"anyOf":[{"type":"integer"},{"type":"number"}]},{"anyOf":[{"minimum":1},{"maximum":-1}]}]},{"type":["array","object","null"]}],"description":"d","default":null}}}`,
	"a reference with siblings":      `{"type":"object","properties":{"a":{"$ref":"#/$defs/A","description":"mine","required":["y"],"properties":{"y":{"type":"string"}}},"b":{"$ref":"#/properties/a","nullable":true}},"$defs":{"A":{"type":"object","description":"theirs","properties":{"x":{"type":"string"}},"required":["x"]}}}`,
	"a reference to nowhere":         `{"type":"object","properties":{"a":{"$ref":"#/$defs/gone"},"b":{"$ref":"https://example.org/x.json"}}}`,
	"required by flag":               `{"type":"object","properties":{"a":{"type":"string","required":true},"b":{"type":"object","properties":{"c":{"type":"string"}},"required":["ghost","c"]}},"required":["ghost"]}`,
	"every keyword":                  prop(everyKeyword(`{"type":"string"}`)),
}

func TestOurZooLowersForEveryTarget(t *testing.T) {
	for what, src := range ourZoo {
		for _, p := range Profiles() {
			out, report, err := lowered([]byte(src), p)
			if err != nil {
				if !p.Strict() || !errors.Is(err, dragoman.ErrUnsupported) {
					t.Errorf("%s: %s: %v", p.Name(), what, err)
				}
				continue
			}
			checkLowered(t, src, out, p, report)
			again, _, _ := lowered([]byte(src), p)
			if string(again) != string(out) {
				t.Errorf("%s: %s: two answers:\n%s\n%s", p.Name(), what, out, again)
			}
			if _, err := Compile(out); err != nil && p.names.max == 0 {
				t.Errorf("%s: %s: lowered, it does not compile: %v\n%s", p.Name(), what, err, out)
			}
		}
	}
}
