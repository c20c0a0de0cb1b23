package jsonwire_test

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"pgregory.net/rapid"
)

func TestWriterCommas(t *testing.T) {
	var w jsonwire.Writer
	w.BeginObject()
	w.Key("empty")
	w.BeginObject()
	w.EndObject()
	w.Key("list")
	w.BeginArray()
	w.BeginArray()
	w.EndArray()
	w.Int(-1)
	w.Bool(false)
	w.Null()
	w.String(",:[{")
	w.Raw([]byte(`{"raw": 1}`))
	w.BeginObject()
	w.StringField("s", "v")
	w.StringFieldIf("no", "")
	w.StringFieldIf("yes", "y")
	w.IntField("i", math.MinInt64)
	w.BoolField("b", true)
	w.RawField("r", []byte("[ ]"))
	w.NullField("n")
	w.QuotedKey("a\"<\n")
	w.Int(1)
	w.EndObject()
	w.EndArray()
	w.EndObject()
	want := `{"empty":{},"list":[[],-1,false,null,",:[{",{"raw": 1},{"s":"v","yes":"y","i":-9223372036854775808,"b":true,"r":[ ],"n":null,"a\"<\n":1}]}`
	if string(w.Buf) != want {
		t.Errorf("wrote %s\nwant  %s", w.Buf, want)
	}
}

func TestQuirkB33_WriterEscapesOnlyWhatJSONRequires(t *testing.T) {
	var w jsonwire.Writer
	w.String("<a href='x'>&é世😀\u2028/\x7f")
	if want := "\"<a href='x'>&é世😀\u2028/\x7f\""; string(w.Buf) != want {
		t.Errorf("wrote %q, want %q", w.Buf, want)
	}
}

func TestQuirkC17_WriterReplacesInvalidUTF8(t *testing.T) {
	var w jsonwire.Writer
	w.BeginObject()
	w.QuotedKey("k\xff")
	w.String("a\xffb\xed\xa0\x80")
	w.EndObject()
	if want := "{\"k\ufffd\":\"a\ufffdb\ufffd\ufffd\ufffd\"}"; string(w.Buf) != want {
		t.Errorf("wrote %q, want %q", w.Buf, want)
	}
}

func TestWriterStringsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "s")
		var w jsonwire.Writer
		w.String(s)
		r := jsonwire.NewReader(w.Buf)
		if got := r.String(); got != s || r.End() != nil {
			t.Fatalf("%q came back as %q, %v", s, got, r.Err())
		}
		var std string
		if err := json.Unmarshal(w.Buf, &std); err != nil || std != s {
			t.Fatalf("encoding/json reads %q, %v", std, err)
		}
	})
}

func TestSpliceChangesOnlyItsEdits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := rapid.SliceOfN(rapid.Byte(), 0, 60).Draw(t, "data")
		cuts := rapid.SliceOfN(rapid.IntRange(0, len(data)), 0, 8).Draw(t, "cuts")
		slices.Sort(cuts)
		var edits []jsonwire.Edit
		var want []byte
		at := 0
		for i := 0; i+1 < len(cuts); i += 2 {
			// Two insertions at one position have no defined order.
			if i > 0 && cuts[i] == cuts[i-1] {
				continue
			}
			text := rapid.SliceOfN(rapid.Byte(), 0, 5).Draw(t, "new")
			edits = append(edits, jsonwire.Edit{Start: int64(cuts[i]), End: int64(cuts[i+1]), New: text})
			want = append(append(want, data[at:cuts[i]]...), text...)
			at = cuts[i+1]
		}
		want = append(want, data[at:]...)
		before := bytes.Clone(data)
		edits = rapid.Permutation(edits).Draw(t, "order")
		if got := jsonwire.Splice(data, edits...); !bytes.Equal(got, want) {
			t.Fatalf("%q, want %q", got, want)
		}
		if !bytes.Equal(data, before) {
			t.Fatal("the document itself was changed")
		}
	})
}

func TestReplaceString(t *testing.T) {
	for _, c := range []struct{ name, doc, want string }{
		{"top level", `{ "model" : "old" ,"x":1}`, `{ "model" : "new" ,"x":1}`},
		{"one level down", `{"response":{"id":1,"model":"old"}}`, `{"response":{"id":1,"model":"new"}}`},
		{"both", `{"model":"old","response":{"model":"old"}}`, `{"model":"new","response":{"model":"new"}}`},
		{"not elsewhere", `{"x":{"model":"old"},"y":["model"],"modelx":"old"}`, `{"x":{"model":"old"},"y":["model"],"modelx":"old"}`},
		{"absent", `{}`, `{}`},
		{"not a string", `{"model":null,"response":{"model":{"model":"old"}}}`, `{"model":null,"response":{"model":{"model":"old"}}}`},
		{"a list on the path", `{"response":["model"]}`, `{"response":["model"]}`},
		{"repeated", `{"model":"a","model":"b"}`, `{"model":"new","model":"new"}`},
		{"name in another spelling", `{"m\u006fdel":"old"}`, `{"m\u006fdel":"new"}`},
		{"value in another spelling", `{"model":"n\u0065w"}`, `{"model":"n\u0065w"}`},
		{"next to invalid UTF-8", "{\"a\":\"\xff\",\"model\":\"old\"}", "{\"a\":\"\xff\",\"model\":\"new\"}"},
	} {
		got, err := jsonwire.ReplaceString([]byte(c.doc), "new", []string{"model"}, []string{"response", "model"})
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %s, %v\nwant %s", c.name, got, err, c.want)
		}
	}
	for _, bad := range []string{``, `[]`, `{"model":`, `{"a":nope,"model":"old"}`} {
		if got, err := jsonwire.ReplaceString([]byte(bad), "new", []string{"model"}); err == nil {
			t.Errorf("%s became %s", bad, got)
		}
	}
}

func TestReplaceStringKeepsEqualValue(t *testing.T) {
	// PHP escapes slashes this way, and Python everything except ASCII.
	for doc, model := range map[string]string{`{"model":"openai\/gpt-5.1"}`: "openai/gpt-5.1", `{"model":"mod\u00e8le"}`: "modèle", "{\"model\":\"\xff\"}": "\ufffd"} {
		got, err := jsonwire.ReplaceString([]byte(doc), model, []string{"model"})
		if err != nil || string(got) != doc {
			t.Errorf("%q became %q, %v", doc, got, err)
		}
	}
}

func TestReplaceStringKeepsOtherBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		space := rapid.SampledFrom([]string{"", " ", "\n\t"})
		other := rapid.SampledFrom([]string{`"x":1.0`, `"y":["<\u003c"]`, `"z":{"model":"inner"}`, `"é":null`, `"w":{ }`})
		member := func(label string) string {
			return space.Draw(t, label) + other.Draw(t, label) + space.Draw(t, label) + ","
		}
		var before, after strings.Builder
		for range rapid.IntRange(0, 3).Draw(t, "before") {
			before.WriteString(member("m"))
		}
		for range rapid.IntRange(0, 3).Draw(t, "after") {
			after.WriteString("," + strings.TrimSuffix(member("m"), ","))
		}
		head := "{" + before.String() + space.Draw(t, "s") + `"model"` + space.Draw(t, "s") + ":" + space.Draw(t, "s")
		tail := space.Draw(t, "s") + after.String() + "}" + space.Draw(t, "s")
		model := rapid.StringN(1, 20, -1).Draw(t, "model")
		got, err := jsonwire.ReplaceString([]byte(head+`"old model"`+tail), model, []string{"model"})
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(got), head) || !strings.HasSuffix(string(got), tail) {
			t.Fatalf("%q lost bytes of %q … %q", got, head, tail)
		}
		r := jsonwire.NewReader(got[len(head) : len(got)-len(tail)])
		if s := r.String(); s != model || r.End() != nil {
			t.Fatalf("the model is %q, %v; want %q", s, r.Err(), model)
		}
	})
}

func FuzzReplaceString(f *testing.F) {
	f.Add([]byte(`{"model":"a","response":{"model":"b"}}`), "new")
	f.Add([]byte(`{"model":"a\/b","model":1}`), "a/b")
	f.Add([]byte(`{"model`), "")
	f.Add([]byte("{\"model\":\"\xff\",\"x\":[{}]}"), "é\xff")
	f.Fuzz(func(t *testing.T, doc []byte, value string) {
		out, err := jsonwire.ReplaceString(doc, value, []string{"model"}, []string{"response", "model"})
		if err != nil {
			return
		}
		again, err := jsonwire.ReplaceString(out, value, []string{"model"}, []string{"response", "model"})
		if err != nil || !bytes.Equal(again, out) {
			t.Fatalf("replacing twice: %q, then %q, %v", out, again, err)
		}
		if json.Valid(doc) && !json.Valid(out) {
			t.Fatalf("%q became %q", doc, out)
		}
	})
}
