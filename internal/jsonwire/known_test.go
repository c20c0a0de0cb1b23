package jsonwire_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"
)

var conversation = jsonwire.Known{
	"model": nil, "messages": {"role": nil, "content": {"type": nil, "text": nil}}, "args": nil, "topK": nil, "ask": nil,
}

func TestSettleCutsTwins(t *testing.T) {
	literal := jsonwire.Literal{Fields: []string{"args"}, Known: conversation}
	proto := literal
	proto.Same = jsonwire.Camel
	for _, tt := range []struct {
		name, doc string
		literal   jsonwire.Literal
		want      string
		at        []string
	}{
		{"nothing", `{"model":"M","messages":[{"role":"user","content":"Role"}]}`, literal, `{"model":"M","messages":[{"role":"user","content":"Role"}]}`, nil},
		{"before it", `{"Model":"x","model":"m"}`, literal, `{"model":"m"}`, []string{"/Model"}},
		{"after it, as the last", `{"model":"m" , "MODEL":{"a":[1]} }`, literal, `{"model":"m" }`, []string{"/MODEL"}},
		{"without it", `{"Model":"x"}`, literal, `{}`, []string{"/Model"}},
		{"two as the last", `{"x":1,"Model":1,"mOdel":2}`, literal, `{"x":1}`, []string{"/Model", "/mOdel"}},
		{"two with one between", `{"Model":1,"x":1,"mOdel":2,"y":2}`, literal, `{"x":1,"y":2}`, []string{"/Model", "/mOdel"}},
		{"deep", `{"messages":[{"role":"u"},{"Role":"x","content":[[{"type":"t","Text":1}]]}]}`, literal, `{"messages":[{"role":"u"},{"content":[[{"type":"t"}]]}]}`, []string{"/messages/1/Role", "/messages/1/content/0/0/Text"}},
		{"after an element", `{"messages":[{"content":{"text":1}},{"Content":1}],"Model":1}`, literal, `{"messages":[{"content":{"text":1}},{}]}`, []string{"/messages/1/Content", "/Model"}},
		{"known in another object", `{"Role":1,"x":{"Model":1},"messages":{"Model":1}}`, literal, `{"Role":1,"x":{"Model":1},"messages":{"Model":1}}`, nil},
		{"in a literal value", `{"args":{"Model":1}}`, literal, `{"args":{"Model":1}}`, nil},
		{"written with an escape", `{"\u004dodel":1}`, literal, `{}`, []string{"/Model"}},
		{"the known one with an escape", `{"\u006dodel":1}`, literal, `{"\u006dodel":1}`, nil},
		{"in lower case", `{"topk":1,"topK":2}`, literal, `{"topK":2}`, []string{"/topk"}},
		{"in non-ASCII letters that fold", "{\"as\u212a\":1,\"a\u017fk\":2}", literal, `{}`, []string{"/as\u212a", "/a\u017fk"}},
		{"in another spelling and case", `{"Top_K":1,"top_k":2}`, proto, `{"top_k":2}`, []string{"/Top_K"}},
		{"with a duplicate field", `{"model":1,"Model":2,"model":3}`, literal, `{"model":3}`, []string{"/Model"}},
		{"no JSON", `{"Model":1`, literal, `{"Model":1`, nil},
		{"a list", `[{"Model":1},2,[{"model":"\\\"","Model":1}]]`, literal, `[{},2,[{"model":"\\\""}]]`, []string{"/0/Model", "/2/0/Model"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, at := jsonwire.Settle([]byte(tt.doc), tt.literal)
			if string(got) != tt.want || !slices.Equal(at.CaseVariants, tt.at) {
				t.Errorf("Settle(%s)\n got %s at %q\nwant %s at %q", tt.doc, got, at.CaseVariants, tt.want, tt.at)
			}
		})
	}
}

// A reader that ignores case, such as encoding/json, reads the same from the settled
// document as a reader that does not from the original one.
func TestSettledDocumentReadsTheSameIgnoringCase(t *testing.T) {
	type exact struct {
		Model    int
		Messages []struct{ Role int }
	}
	words := []string{"model", "Model", "MODEL", "messages", "Messages", "role", "Role", "x", `mo\u0064el`, `\u004dodel`}
	var draw func(t *rapid.T, depth int) string
	draw = func(t *rapid.T, depth int) string {
		var b bytes.Buffer
		b.WriteByte('{')
		for i, n := range rapid.Permutation(words).Draw(t, "names")[:rapid.IntRange(0, 6).Draw(t, "n")] {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(`"` + n + `": `)
			switch {
			case (n == "messages" || n == "Messages" || n == "x") && depth > 0:
				b.WriteString("[" + draw(t, depth-1) + " , " + draw(t, depth-1) + "]")
			case n == "messages" || n == "Messages":
				b.WriteString("[]")
			default:
				b.WriteString(rapid.SampledFrom([]string{"1", "2", "3"}).Draw(t, "value"))
			}
		}
		b.WriteByte('}')
		return b.String()
	}
	rapid.Check(t, func(t *rapid.T) {
		doc := draw(t, 2)
		got, at := jsonwire.Settle([]byte(doc), jsonwire.Literal{Known: conversation})
		if !jsontext.Value(got).IsValid() || at.None() != (string(got) == doc) {
			t.Fatalf("%s became %s, telling %v", doc, got, at)
		}
		var have exact
		if err := json.Unmarshal(got, &have); err != nil {
			t.Fatal(err)
		}
		var want exact
		r := jsonwire.NewReader([]byte(doc))
		for key := range r.Object() {
			switch string(key) {
			case "model":
				want.Model = int(r.Int())
			case "messages":
				want.Messages = nil
				for range r.Array() {
					var m struct{ Role int }
					for key := range r.Object() {
						if string(key) == "role" {
							m.Role = int(r.Int())
						} else {
							r.Skip()
						}
					}
					want.Messages = append(want.Messages, m)
				}
			default:
				r.Skip()
			}
		}
		if have.Model != want.Model || !slices.Equal(have.Messages, want.Messages) {
			t.Fatalf("%s became %s: read %+v, want %+v", doc, got, have, want)
		}
	})
}

func TestTwinSearchDoesNotAllocate(t *testing.T) {
	doc := []byte(`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"a \"B\" \\"},7,null]}],"x":{"Model":[1,{"a":"]"}]}}`)
	literal := jsonwire.Literal{Known: conversation}
	// The pools are emptied now and then, so take the best of a few runs.
	got, plain := 1e9, 0.0
	for range 5 {
		plain = max(plain, testing.AllocsPerRun(100, func() { jsonwire.Settle(doc, jsonwire.Literal{}) }))
		got = min(got, testing.AllocsPerRun(100, func() { jsonwire.Settle(doc, literal) }))
	}
	if got > plain {
		t.Errorf("%v allocations, %v without", got, plain)
	}
}
