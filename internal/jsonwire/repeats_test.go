package jsonwire_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"
)

func TestR7_SettleKeepsLastDuplicate(t *testing.T) {
	literal := jsonwire.Literal{Fields: []string{"args"}}
	proto := jsonwire.Literal{Fields: []string{"args"}, Same: jsonwire.Camel, Maps: []string{"ownKeys"}}
	for _, tt := range []struct {
		name, doc string
		literal   jsonwire.Literal
		want      string
		at        []string
	}{
		{"no duplicates", `{"a":1,"b":[{"a":2}]}`, literal, `{"a":1,"b":[{"a":2}]}`, nil},
		{"adjacent", `{"a":1, "a":2}`, literal, `{"a":2}`, []string{"/a"}},
		{"with others between", `{"a":1, "b":{} , "a":2,"c":3}`, literal, `{"b":{} , "a":2,"c":3}`, []string{"/a"}},
		{"three times", `{"a":1,"a":2,"a":3}`, literal, `{"a":3}`, []string{"/a", "/a"}},
		{"deep", `[{"b":[{"x":1,"x":[2]}]}]`, literal, `[{"b":[{"x":[2]}]}]`, []string{"/0/b/0/x"}},
		{"inside a removed field", `{"a":{"x":1,"x":2},"a":3}`, literal, `{"a":3}`, []string{"/a/x", "/a"}},
		{"in a literal value", `{"args":{"x":1,"x":2}}`, literal, `{"args":{"x":1,"x":2}}`, nil},
		{"the literal field itself", `{"args":{"x":1,"x":2},"args":{}}`, literal, `{"args":{}}`, []string{"/args"}},
		{"written with an escape", `{"a":1,"\u0061":2}`, literal, `{"\u0061":2}`, []string{"/a"}},
		{"another case is another name", `{"a":1,"A":2}`, literal, `{"a":1,"A":2}`, nil},
		{"a name with a slash", `{"a/b":1,"a/b":2}`, literal, `{"a/b":2}`, []string{"/a~1b"}},
		{"with text that is not UTF-8", "{\"a\":\"\xff\",\"a\":2}", literal, `{"a":2}`, []string{"/a"}},
		{"two spellings of one", `{"topK":1,"top_k":2}`, proto, `{"top_k":2}`, []string{"/top_k"}},
		{"two spellings that differ", `{"topK":1,"top_k":2}`, literal, `{"topK":1,"top_k":2}`, nil},
		{"two spellings in a literal value", `{"args":{"topK":1,"top_k":2}}`, proto, `{"args":{"topK":1,"top_k":2}}`, nil},
		{"two spellings of map keys", `{"own_keys":[{"a_b":1,"aB":{"c_d":1,"cD":2}}]}`, proto, `{"own_keys":[{"a_b":1,"aB":{"c_d":1,"cD":2}}]}`, nil},
		{"duplicate map key", `{"ownKeys":{"a_b":1,"aB":2,"a_b":3}}`, proto, `{"ownKeys":{"aB":2,"a_b":3}}`, []string{"/ownKeys/a_b"}},
		{"two spellings after a map", `{"ownKeys":{"a":[]},"x":{"topK":1,"top_k":2}}`, proto, `{"ownKeys":{"a":[]},"x":{"top_k":2}}`, []string{"/x/top_k"}},
		{"no JSON", `{"a":1,"a":2`, literal, `{"a":1,"a":2`, nil},
		{"nothing", ``, literal, ``, nil},
		{"not an object", `"a"`, proto, `"a"`, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, at := jsonwire.Settle([]byte(tt.doc), tt.literal)
			if string(got) != tt.want || !slices.Equal(at.Repeats, tt.at) {
				t.Errorf("Settle(%s)\n got %s at %v\nwant %s at %v", tt.doc, got, at, tt.want, tt.at)
			}
		})
	}
}

func TestSettleBoundsThePaths(t *testing.T) {
	doc := "{" + strings.Repeat(`"a":0,`, 1000) + `"a":1}`
	got, at := jsonwire.Settle([]byte(doc), jsonwire.Literal{})
	if string(got) != `{"a":1}` || len(at.Repeats) != 16 {
		t.Errorf("got %s and %d places", got, len(at.Repeats))
	}
}

// Go's JSON reader, for which the last duplicate counts, reads the same from the
// settled document as from the original one.
func TestSettledDocumentReadsTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		doc := drawRepeating(t, 4)
		got, at := jsonwire.Settle([]byte(doc), jsonwire.Literal{})
		if !jsontext.Value(got).IsValid() {
			t.Fatalf("%s became %s, which has duplicates or is not JSON", doc, got)
		}
		if at.None() != (string(got) == doc) {
			t.Fatalf("%s became %s, telling %v", doc, got, at)
		}
		var have, want any
		if err := json.Unmarshal(got, &have); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(lastOnly(t, doc)), &want); err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(have) != fmt.Sprint(want) {
			t.Fatalf("%s\n got %v\nwant %v", doc, have, want)
		}
	})
}

func drawRepeating(t *rapid.T, depth int) string {
	if depth == 0 || rapid.IntRange(0, 3).Draw(t, "leaf") == 0 {
		return rapid.SampledFrom([]string{"1", `"x"`, "null", "[]", "{}", `"a\"b"`}).Draw(t, "value")
	}
	list := rapid.Bool().Draw(t, "list")
	var elems []string
	for range rapid.IntRange(0, 4).Draw(t, "n") {
		v := drawRepeating(t, depth-1)
		if !list {
			v = rapid.SampledFrom([]string{`"a"`, `"b"`, `"\u0061"`, `"c d"`}).Draw(t, "name") + ": " + v
		}
		elems = append(elems, v)
	}
	if list {
		return "[" + strings.Join(elems, " , ") + "]"
	}
	return "{ " + strings.Join(elems, ",\n") + " }"
}

// lastOnly is another implementation of Settle: value by value, into maps.
func lastOnly(t *rapid.T, doc string) string {
	dec := jsontext.NewDecoder(strings.NewReader(doc), jsontext.AllowDuplicateNames(true))
	var value func() any
	value = func() any {
		tok, err := dec.ReadToken()
		if err != nil {
			t.Fatal(err)
		}
		switch tok.Kind() {
		case '{':
			m := map[string]any{}
			for dec.PeekKind() != '}' {
				name, err := dec.ReadToken()
				if err != nil {
					t.Fatal(err)
				}
				key := name.String()
				m[key] = value()
			}
			_, _ = dec.ReadToken()
			return m
		case '[':
			l := []any{}
			for dec.PeekKind() != ']' {
				l = append(l, value())
			}
			_, _ = dec.ReadToken()
			return l
		case '"':
			return tok.String()
		case '0':
			return jsontext.Value(tok.String())
		default:
			return nil
		}
	}
	out, err := json.Marshal(value())
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
