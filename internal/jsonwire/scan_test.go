package jsonwire

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// awkward are valid and invalid documents to start with.
var awkward = []string{
	``, ` `, `null`, `nul`, `nulll`, `true`, `fals`, `0`, `-`, `-0`, `01`, `1.`, `1.5e`, `1.5e+`, `1.5E-07`, `-1e9`, `+1`, `.5`, `1 2`, `"`, `""`, `"\`, `"\"`, `"\u12"`,
	`"\u12g4"`, `"\uD83D\uDE00"`, `"\ud800"`, `"\ud800\u0041"`, `"\x"`, "\"\x1f\"", "\"\x7f\"", "\"\xff\"", "\"\xc3\"", "\"é\U0001f600\"", `"0123456`, `"01234567"`, `"0123456\n8"`,
	`{}`, `{`, `}`, `[`, `]`, `[]`, `[ ]`, `[1]`, `[1,]`, `[,1]`, `[1 2]`, `[1:2]`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{,}`, `{"a" 1}`, `{"a":1 "b":2}`, `{a:1}`, `{1:2}`, `[}`, `{]`, `{"a":1]`,
	`{"a":1,"a":2}`, `{"a":1,"\u0061":2}`, `{"a":{"b":[{"a":1,"c":null}]},"b":[[],{}]}`, `{"A":1}`, `{"tools":[{"Name":1}]}`, `{"tools":{"NAME":2,"x":{"a":1,"a":2}}}`, "{\"\u212aey\":1}",
	"{\"\xff\":1,\"\xfe\":2}", ` { "a" : [ 1 , "x" ] , "b/~" : { } } `, `{"a":1}{"b":2}`, `[1][`, `{"abcdefgh1":1,"abcdefgh2":2,"abcdefgh1":3}`, "\ufeff{}", `{"a":"x","key":tru}`,
	`{"a":[{"b":{"c":["\u00e9","\ud83d"]}}],"d":-1.25e-3}`, `[[[[[[[[[[[[[[1]]]]]]]]]]]]]]`,
}

// nested returns nested objects and lists.
func nested(n int) string {
	return strings.Repeat(`[`, n) + strings.Repeat(`]`, n)
}

// mutants returns the awkward documents, unchanged and mutated.
func mutants() [][]byte {
	all := [][]byte{[]byte(nested(maxDepth)), []byte(nested(maxDepth + 1)), []byte(strings.Repeat(`{"a":`, maxDepth) + "1" + strings.Repeat("}", maxDepth))}
	many := `{`
	for i := range 100 {
		many += fmt.Sprintf(`"name%d":%d,`, i, i)
		all = append(all, []byte(many+`"last":0}`), []byte(many+`"name7":0}`))
	}
	rnd := rand.New(rand.NewPCG(3, 4))
	for _, s := range awkward {
		all = append(all, []byte(s))
		for range 40 {
			b := []byte(s)
			for range 1 + rnd.IntN(3) {
				at := rnd.IntN(len(b) + 1)
				const bytes = "{}[]:,\"\\ \n0-1eaAu\x01\xc3\xa9\xff"
				switch c := bytes[rnd.IntN(len(bytes))]; rnd.IntN(3) {
				case 0:
					b = append(b[:at:at], append([]byte{c}, b[at:]...)...)
				case 1:
					b = append(b[:at:at], b[min(at+1, len(b)):]...)
				default:
					if at < len(b) {
						b[at] = c
					}
				}
			}
			all = append(all, b)
		}
	}
	return all
}

var someKnown = Known{"a": nil, "key": nil, "tools": {"name": nil, "x": nil}, "camelCase": nil}

// sameVerdicts compares the results of the scan with those of jsontext.
func sameVerdicts(t *testing.T, doc []byte) {
	t.Helper()
	loose := jsontext.AllowInvalidUTF8(true)
	if got, want := valid(doc), jsontext.Value(doc).IsValid(loose, jsontext.AllowDuplicateNames(true)); got != want {
		t.Fatalf("%.200q: valid %v, want %v", doc, got, want)
	}
	once := jsontext.Value(doc).IsValid(loose)
	if got := Unambiguous(doc); got != once {
		t.Fatalf("%.200q: reads one way %v, want %v", doc, got, once)
	}
	if got, want := readsOneWay(doc, someKnown), once && !anyCaseVariant(doc, someKnown); got != want {
		t.Fatalf("%.200q: without case variants %v, want %v", doc, got, want)
	}
	if got, text, want := Check(doc) == nil, CheckText(string(doc)) == nil, jsontext.Value(doc).IsValid(); got != want || text != want {
		t.Fatalf("%.200q: passes the check %v, as a string %v, want %v", doc, got, text, want)
	}
	// What the scan confirms by itself must be right; what it does not confirm may be
	// right.
	for _, s := range []scan[[]byte]{{doc: doc}, {doc: doc, once: true}, {doc: doc, note: true}} {
		if s.whole(nil) && !jsontext.Value(doc).IsValid(loose, jsontext.AllowDuplicateNames(!s.once)) {
			t.Fatalf("%.200q: the scan confirms it; no duplicates: %v", doc, s.once)
		}
	}
	if s := (scan[[]byte]{doc: doc}); s.clear(nil) && !s.half && utf8.Valid(doc) && !jsontext.Value(doc).IsValid() {
		t.Fatalf("%.200q: the scan finds it clear", doc)
	}
	if s := (scan[[]byte]{doc: doc}); !s.whole(nil) && valid(doc) {
		t.Fatalf("%.200q: the scan does not confirm it", doc)
	}
	if valid(doc) && bytes.HasPrefix(doc, []byte(`"`)) && bytes.HasSuffix(doc, []byte(`"`)) {
		want, _ := jsontext.AppendUnquote([]byte("before"), doc)
		if got := appendUnquote([]byte("before"), doc); !bytes.Equal(got, want) {
			t.Fatalf("%q says %q, want %q", doc, got, want)
		}
	}
}

// sameSteps performs the same steps with a cursor and a jsontext.Decoder, and compares
// the results after each step.
func sameSteps(t *testing.T, doc, steps []byte) {
	t.Helper()
	var c cursor
	c.reset([]byte("[{\"other\":[")) // an earlier document must not matter
	_, _ = c.PeekKind(), c.readBracket()
	c.reset(doc)
	d := jsontext.NewDecoder(bytes.NewBuffer(doc), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for i, step := range steps {
		var got, want error
		switch step % 8 {
		case 0:
			if a, b := c.PeekKind(), d.PeekKind(); a != b {
				t.Fatalf("%.200q, step %d: kind %v, want %v", doc, i, a, b)
			}
		case 1, 2, 3:
			got = c.readBracket()
			_, want = d.ReadToken()
		case 4, 5, 6:
			var a, b []byte
			a, got = c.ReadValue()
			b, want = d.ReadValue()
			if !bytes.Equal(a, b) {
				t.Fatalf("%.200q, step %d: %q, want %q", doc, i, a, b)
			}
		default:
			got, want = c.SkipValue(), d.SkipValue()
		}
		if fmt.Sprint(got) != fmt.Sprint(want) || c.InputOffset() != d.InputOffset() || c.StackPointer() != d.StackPointer() {
			t.Fatalf("%.200q, step %d of %v: %v at %s, byte %d; want %v at %s, byte %d",
				doc, i, steps, got, c.StackPointer(), c.InputOffset(), want, d.StackPointer(), d.InputOffset())
		}
		if want != nil {
			return // errors are sticky
		}
	}
}

func TestScanMatchesTheLibrary(t *testing.T) {
	for _, doc := range mutants() {
		sameVerdicts(t, doc)
	}
}

func TestCursorMatchesTheLibrary(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for _, doc := range mutants() {
		for range 4 {
			steps := make([]byte, 1+rnd.IntN(40))
			for i := range steps {
				steps[i] = byte(rnd.IntN(8))
			}
			sameSteps(t, doc, steps)
		}
	}
}

func TestValidDocumentIsReadWithoutTheLibrary(t *testing.T) {
	r := NewReader([]byte(`{"a":[1,{"b":"x\ud83d\ude00"},true,null],"c":-1.5e3,"d":{}}`))
	for range r.Object() {
		r.Skip()
	}
	if r.End() != nil || r.dec.slow != nil {
		t.Errorf("%v, used the library: %v", r.Err(), r.dec.slow != nil)
	}
	for _, doc := range []string{`{"a":1,"b":[{"a":"\n"}]}`, `{"é":{"a":1},"z":{"a":1}}`} {
		if s := (scan[[]byte]{doc: []byte(doc)}); !s.clear(nil) || s.half {
			t.Errorf("%s: the library is used", doc)
		}
	}
}

// dump writes a value. It reads nested objects and lists as separate values where
// deeper says so, and otherwise in place.
func dump(b *strings.Builder, v Value, deeper []byte) {
	way := byte(0)
	if len(deeper) > 0 {
		way, deeper = deeper[0], deeper[1:]
	}
	r := v.Reader()
	defer r.Return()
	switch r.Kind() {
	case '{':
		for key := range r.Object() {
			fmt.Fprintf(b, "%q:", key)
			dumpNext(b, r, way, deeper)
		}
	case '[':
		for i := range r.Array() {
			fmt.Fprintf(b, "%d:", i)
			dumpNext(b, r, way, deeper)
		}
	default:
		fmt.Fprintf(b, "%s", r.Raw())
	}
	fmt.Fprintf(b, "at %s %d %v\n", r.Pointer(), r.Offset(), r.End())
}

func dumpNext(b *strings.Builder, r *Reader, way byte, deeper []byte) {
	switch way % 3 {
	case 0:
		dump(b, r.Value(), deeper)
	case 1:
		fmt.Fprintf(b, "%s;", r.Raw())
	default:
		r.Skip()
	}
}

// sameKnowing compares the results of reading a document with and without the results
// of a scan.
func sameKnowing(t *testing.T, doc, deeper []byte) {
	t.Helper()
	s := scan[[]byte]{doc: doc, note: true}
	if !s.clear(nil) {
		return
	}
	var with, without strings.Builder
	dump(&with, Value{Raw: doc, long: s.long}, deeper)
	dump(&without, Value{Raw: doc}, deeper)
	if with.String() != without.String() {
		t.Fatalf("%.300q reads as\n%s\nwant\n%s", doc, with.String(), without.String())
	}
	v, at := SettleValue(doc, Literal{})
	if !at.None() || !bytes.Equal(v.Raw, doc) || v.Clear() && Check(doc) != nil {
		t.Fatalf("%.300q settles to %q, %v, clear %v: %v", doc, v.Raw, at, v.Clear(), Check(doc))
	}
}

// long returns a document of nested long and short values.
func long(rnd *rand.Rand, depth int) string {
	switch kind := rnd.IntN(5); {
	case kind == 0 || depth == 0:
		return `"` + strings.Repeat(`a\"é`, rnd.IntN(80)) + `"`
	case kind == 1:
		return "12"
	case kind < 4:
		out := "{"
		for i := range rnd.IntN(4) {
			if i > 0 {
				out += ", "
			}
			out += fmt.Sprintf(`"m%d%s": %s`, i, strings.Repeat("n", rnd.IntN(150)), long(rnd, depth-1))
		}
		return out + "}"
	default:
		out := "["
		for i := range rnd.IntN(4) {
			if i > 0 {
				out += " ,"
			}
			out += long(rnd, depth-1)
		}
		return out + "]"
	}
}

func TestScanResultsChangeNothing(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	for range 400 {
		deeper := make([]byte, 6)
		for i := range deeper {
			deeper[i] = byte(max(0, rnd.IntN(5)-2)) // mostly nested
		}
		sameKnowing(t, []byte(long(rnd, 5)), deeper)
	}
}

func TestLongValuesAreReadOnce(t *testing.T) {
	doc := []byte(`{"a":1,"content":[{"type":"tool_use","input":{"path":"p","text":"` + strings.Repeat("long ", 400) + `"}}],"b":2}`)
	v, _ := SettleValue(doc, Literal{})
	if !v.Clear() {
		t.Error("the document is not clear")
	}
	for i := range doc { // a second read would see the difference
		if bytes.HasPrefix(doc[i:], []byte("long ")) {
			doc[i] = '\n'
		}
	}
	r := v.Reader()
	for key := range r.Object() {
		if string(key) != "content" {
			r.Skip()
			continue
		}
		list := r.Value().Reader()
		for range list.Array() {
			block := list.Value().Reader()
			for range block.Object() {
				block.Skip()
			}
			if err := block.End(); err != nil {
				t.Error(err)
			}
		}
		if err := list.End(); err != nil {
			t.Error(err)
		}
	}
	if err := r.End(); err != nil {
		t.Error(err)
	}
}

func TestCheckDoesNotAllocate(t *testing.T) {
	doc := []byte(`{"model":"m","messages":[{"role":"user","content":"x\ny"}],"tools":[{"name":"a"},{"name":"b"}],"other":{"name":1}}`)
	text := string(doc)
	least := math.Inf(1)
	for range 200 { // the race detector and the garbage collector drop some of the pooled memory
		least = min(least, testing.AllocsPerRun(1, func() { _, _, _ = Check(doc), CheckText(text), readsOneWay(doc, someKnown) }))
	}
	if least != 0 {
		t.Errorf("%v allocations", least)
	}
}

func FuzzScan(f *testing.F) {
	for _, s := range awkward {
		f.Add([]byte(long(rand.New(rand.NewPCG(9, uint64(len(s)))), 3)), []byte{0, 0, 1, 0, 2})
		f.Add([]byte(s), []byte{0, 1, 4, 0, 7, 1, 4, 4, 7, 7, 1, 1})
	}
	f.Fuzz(func(t *testing.T, doc, steps []byte) {
		sameVerdicts(t, doc)
		sameSteps(t, doc, steps)
		sameKnowing(t, doc, steps)
	})
}
