package jsonwire_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"
)

// walk reads a whole document with the reader's loops and returns what it saw.
func walk(r *jsonwire.Reader) string {
	switch k := r.Kind(); k {
	case '{':
		var b strings.Builder
		b.WriteByte('{')
		for key := range r.Object() {
			name := string(key) // valid only until the next read
			fmt.Fprintf(&b, "%q:%s;", name, walk(r))
		}
		return b.String() + "}"
	case '[':
		var b strings.Builder
		b.WriteByte('[')
		for i := range r.Array() {
			fmt.Fprintf(&b, "%d:%s;", i, walk(r))
		}
		return b.String() + "]"
	case '"':
		return fmt.Sprintf("%q", r.String())
	case 't', 'f':
		return fmt.Sprint(r.Bool())
	case '0':
		return r.Number()
	case 'n':
		r.Skip()
		return "null"
	default:
		return "?"
	}
}

func TestReaderWalksADocumentInOrder(t *testing.T) {
	r := jsonwire.NewReader([]byte(` {"b":[1.50,true,{"x":null}],"a":"é\n","":{}, "n":9007199254740993} `))
	got := walk(r)
	want := `{"b":[0:1.50;1:true;2:{"x":null;};];"a":"é\n";"":{};"n":9007199254740993;}`
	if err := r.End(); err != nil || got != want {
		t.Errorf("%s, %v\nwant %s", got, err, want)
	}
}

func TestReaderReadsNullAsZero(t *testing.T) {
	r := jsonwire.NewReader([]byte(`[null,null,null,null,null,null,null,null]`))
	for i := range r.Array() {
		switch i {
		case 0:
			if s := r.String(); s != "" {
				t.Errorf("string %q", s)
			}
		case 1:
			if r.Bool() {
				t.Error("true")
			}
		case 2:
			if n := r.Int(); n != 0 {
				t.Errorf("int %d", n)
			}
		case 3:
			if n := r.Number(); n != "" {
				t.Errorf("number %q", n)
			}
		case 4:
			for key := range r.Object() {
				t.Errorf("member %s", key)
			}
		case 5:
			for range r.Array() {
				t.Error("element")
			}
		case 6:
			if !r.Null() {
				t.Error("not null")
			}
		default:
			if b := r.AppendString([]byte("kept")); string(b) != "kept" {
				t.Errorf("appended %q", b)
			}
		}
	}
	if err := r.End(); err != nil {
		t.Error(err)
	}
}

func TestReaderLastDuplicateWins(t *testing.T) {
	r := jsonwire.NewReader([]byte(`{"a":1,"b":2,"a":3}`))
	var a, n int64
	for key := range r.Object() {
		if v := r.Int(); string(key) == "a" {
			a = v
		}
		n++
	}
	if r.End() != nil || a != 3 || n != 3 {
		t.Errorf("a=%d after %d members, %v", a, n, r.Err())
	}
}

func TestReaderMistypedValuePosition(t *testing.T) {
	for _, c := range []struct {
		doc, pointer, want string
		offset             int64
		read               func(*jsonwire.Reader)
	}{
		{`{"a": 5}`, "/a", "want a string, have a number", 6, func(r *jsonwire.Reader) { _ = r.String() }},
		{`{"a": "5x"}`, "/a", `want a number, have the string "5x"`, 6, func(r *jsonwire.Reader) { r.Int() }},
		{`{"a": ""}`, "/a", `want a number, have the string ""`, 6, func(r *jsonwire.Reader) { r.Int() }},
		{`{"a":[]}`, "/a", "want a number, have an array", 5, func(r *jsonwire.Reader) { r.Int() }},
		{`{"a":"true"}`, "/a", "want a boolean, have a string", 5, func(r *jsonwire.Reader) { r.Bool() }},
		{`{"a":true}`, "/a", "want an object, have a boolean", 5, func(r *jsonwire.Reader) {
			for range r.Object() {
				r.Skip()
			}
		}},
		{`{"a":{"b":1}}`, "/a", "want an array, have an object", 5, func(r *jsonwire.Reader) {
			for range r.Array() {
				r.Skip()
			}
		}},
	} {
		r := jsonwire.NewReader([]byte(c.doc))
		for range r.Object() {
			c.read(r)
		}
		var e *jsonwire.Error
		if !errors.As(r.End(), &e) || e.Pointer != c.pointer || e.Offset != c.offset || e.Err.Error() != c.want {
			t.Errorf("%s: %v, want at %s: %s (byte %d)", c.doc, r.Err(), c.pointer, c.want, c.offset)
		}
	}
}

func TestReaderErrorsAreSticky(t *testing.T) {
	r := jsonwire.NewReader([]byte(`{"a":1,"b":"x","c":[1],"d":true}`))
	n := 0
	for range r.Object() {
		n++
		_ = r.String()
		if r.String() != "" || r.Int() != 0 || r.Bool() || r.Raw() != nil || r.Number() != "" || r.Kind() != 0 || r.Null() {
			t.Error("a read after the error gave a value")
		}
		r.Skip()
		r.Fail(errors.New("a later error"))
	}
	if n != 1 || r.Err() == nil || !strings.Contains(r.End().Error(), "/a") {
		t.Errorf("%d members, %v", n, r.Err())
	}
	r.Reset([]byte(`"fine"`))
	if r.String() != "fine" || r.End() != nil {
		t.Errorf("after Reset: %v", r.Err())
	}
}

func TestReaderFailPosition(t *testing.T) {
	r := jsonwire.NewReader([]byte(`{"a":{"b":[0,1]}}`))
	own := errors.New("no good")
	for range r.Object() {
		for range r.Object() {
			for i := range r.Array() {
				r.Skip()
				if i == 1 {
					if r.Pointer() != "/a/b/1" {
						t.Errorf("pointer %s", r.Pointer())
					}
					r.Fail(own)
				}
			}
		}
	}
	if err := r.Err(); !errors.Is(err, own) || err.Error() != "at /a/b/1: no good (byte 14)" {
		t.Errorf("%v", err)
	}
}

func TestQuirkC17_ReaderReplacesInvalidUnicode(t *testing.T) {
	for doc, want := range map[string]string{
		`"a\ud800b"`:         "a\ufffdb",
		`"\udc00"`:           "\ufffd",
		`"\ud800\ud800"`:     "\ufffd\ufffd",
		`"\ud83d\ude00"`:     "😀",
		"\"a\xffb\"":         "a\ufffdb",
		"\"\xf0\x9f\x98\"":   "\ufffd\ufffd\ufffd",
		"\"\xed\xa0\x80\"":   "\ufffd\ufffd\ufffd",
		"\"plain \ufffd\"":   "plain \ufffd",
		`"\u0000"`:           "\x00",
		"\"caf\\u00e9\\/\\t": "",
	} {
		r := jsonwire.NewReader([]byte(doc))
		if got := r.String(); got != want {
			t.Errorf("%q: %q, want %q (%v)", doc, got, want, r.Err())
		}
	}
	r := jsonwire.NewReader([]byte("{\"k\xff\":1,\"\\ud800\":2}"))
	var keys []string
	for key := range r.Object() {
		keys = append(keys, string(key))
		r.Skip()
	}
	if !slices.Equal(keys, []string{"k\ufffd", "\ufffd"}) || r.End() != nil {
		t.Errorf("keys %q, %v", keys, r.Err())
	}
}

func TestReaderRawIsASliceOfTheDocument(t *testing.T) {
	doc := []byte("{\"a\": { \"x\" : [1.0 ,\n\"<\\u003c\xff\"] } ,\"b\":-0e1}")
	want := map[string]string{"a": "{ \"x\" : [1.0 ,\n\"<\\u003c\xff\"] }", "b": "-0e1"}
	r := jsonwire.NewReader(doc)
	for key := range r.Object() {
		name := string(key)
		raw := r.Raw()
		if string(raw) != want[name] {
			t.Errorf("%s is %q, want %q", name, raw, want[name])
		}
		if cap(raw) != len(raw) {
			t.Errorf("appending to %s would write into the document", name)
		}
		if i := bytes.Index(doc, raw); &doc[i] != &raw[0] {
			t.Errorf("%s is a copy", name)
		}
	}
	if err := r.End(); err != nil {
		t.Error(err)
	}
}

func TestReaderTruncatedInput(t *testing.T) {
	doc := `{"a":[1,{"b":"x\u00e9y"},true],"c":null}`
	for i := range len(doc) {
		r := jsonwire.NewReader([]byte(doc[:i]))
		walk(r)
		if err := r.End(); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%q: %v, want an unexpected end", doc[:i], err)
		}
	}
}

func TestReaderTrailingData(t *testing.T) {
	for doc, ok := range map[string]bool{`{} `: true, "{}\r\n\t": true, `{}{}`: false, `{} x`: false, "{}\x00": false, `1 2`: false} {
		r := jsonwire.NewReader([]byte(doc))
		r.Skip()
		if err := r.End(); (err == nil) != ok || err != nil && !errors.Is(err, jsonwire.ErrTrailing) {
			t.Errorf("%q: %v", doc, err)
		}
	}
}

func TestReaderMalformedInput(t *testing.T) {
	for _, doc := range []string{"", " ", "nul", "{a:1}", `{"a" 1}`, `{"a":1,}`, "[1,]", "[1 2]", "01", "+1", "'a'", "\"\t\"", "]", `{"a":1]`, "\ufeff{}", "NaN"} {
		r := jsonwire.NewReader([]byte(doc))
		walk(r)
		var e *jsonwire.Error
		if err := r.End(); !errors.As(err, &e) || e.Offset < 0 || e.Offset > int64(len(doc)) {
			t.Errorf("%q: %v", doc, err)
		}
	}
}

func TestReaderBoundsDepthAndErrors(t *testing.T) {
	for name, doc := range map[string]string{
		"arrays":    strings.Repeat("[", 1_000_000),
		"objects":   strings.Repeat(`{"a":`, 1_000_000),
		"long key":  `{"` + strings.Repeat("é", 1<<20) + `":x}`,
		"deep keys": strings.Repeat(`{"`+strings.Repeat("k", 100)+`":`, 1000) + "x",
	} {
		r := jsonwire.NewReader([]byte(doc))
		r.Skip()
		if err := r.Err(); err == nil || len(err.Error()) > 1000 || strings.Contains(err.Error(), "\ufffd") {
			t.Errorf("%s: no error, or an endless one: %.300v", name, err)
		}
		if err := jsonwire.Check([]byte(doc)); err == nil || len(err.Error()) > 1000 {
			t.Errorf("%s: Check: no error, or an endless one: %.300v", name, err)
		}
	}
}

func TestReaderIntSaturatesAndTruncates(t *testing.T) {
	for doc, want := range map[string]int64{
		"0": 0, "-0": 0, "12": 12, "12.9": 12, "-12.9": -12, "1e3": 1000, "1.5e1": 15,
		"9223372036854775807": math.MaxInt64, "9223372036854775808": math.MaxInt64, "1e999": math.MaxInt64,
		"-9223372036854775808": math.MinInt64, "-1e40": math.MinInt64, "9007199254740993": 9007199254740993,
		`"42"`: 42, `"9007199254740993"`: 9007199254740993, `"1e999"`: math.MaxInt64, "1e-999": 0,
	} {
		r := jsonwire.NewReader([]byte(doc))
		if got := r.Int(); got != want || r.End() != nil {
			t.Errorf("%s: %d, want %d (%v)", doc, got, want, r.Err())
		}
	}
}

func TestQuirkB31_ReaderNumberKeepsText(t *testing.T) {
	for doc, want := range map[string]string{"1.0": "1.0", "9007199254740993": "9007199254740993", "1E+2": "1E+2", `"0.70"`: "0.70", "-0": "-0"} {
		r := jsonwire.NewReader([]byte(doc))
		if got := r.Number(); got != want || r.End() != nil {
			t.Errorf("%s: %q, want %q (%v)", doc, got, want, r.Err())
		}
	}
	// Go would parse these, but they are not JSON numbers and must not reach a wire.
	for _, doc := range []string{`"NaN"`, `"Inf"`, `"-infinity"`, `"0x10"`, `"1_000"`, `" 1"`, `"1 "`, `"+1"`, `".5"`, `"01"`, `"1,5"`, `"true"`, `"null"`} {
		r := jsonwire.NewReader([]byte(doc))
		if got := r.Number(); got != "" || r.Err() == nil {
			t.Errorf("%s is the number %q", doc, got)
		}
	}
}

func TestReaderAppendString(t *testing.T) {
	r := jsonwire.NewReader([]byte(`["a\"","","é"]`))
	var b []byte
	for range r.Array() {
		b = r.AppendString(b)
	}
	if string(b) != `a"é` || r.End() != nil {
		t.Errorf("%q, %v", b, r.Err())
	}
}

func TestReaderStringLike(t *testing.T) {
	have := "gpt-5.1"
	for doc, want := range map[string]string{`"gpt-5.1"`: have, `"gpt\u002d5.1"`: have, `"other"`: "other", `""`: "", "null": ""} {
		r := jsonwire.NewReader([]byte(doc))
		if got := r.StringLike(have); got != want || r.End() != nil {
			t.Errorf("%s: %q, %v", doc, got, r.Err())
		}
	}
	doc := []byte(`"gpt-5.1"`)
	r := jsonwire.NewReader(doc)
	if n := testing.AllocsPerRun(10, func() { r.Reset(doc); have = r.StringLike(have) }); n != 0 {
		t.Errorf("%v allocations to read it again", n)
	}
	r.Reset([]byte("5"))
	if r.StringLike(have) != "" || r.Err() == nil {
		t.Error("a number is read as a string")
	}
}

func TestReaderStringOneOf(t *testing.T) {
	for doc, want := range map[string]string{`"user"`: "user", `"us\u0065r"`: "user", `"tool"`: "tool", `"other"`: "other", `""`: "", "null": ""} {
		r := jsonwire.NewReader([]byte(doc))
		if got := r.StringOneOf("user", "tool"); got != want || r.End() != nil {
			t.Errorf("%s: %q, %v", doc, got, r.Err())
		}
	}
	doc := []byte(`"tool"`)
	r := jsonwire.NewReader(doc)
	if n := testing.AllocsPerRun(10, func() { r.Reset(doc); _ = r.StringOneOf("user", "tool") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if r.Reset([]byte("5")); r.StringOneOf("user") != "" || r.Err() == nil {
		t.Error("a number is read as a string")
	}
}

func TestReaderRest(t *testing.T) {
	r := jsonwire.NewReader([]byte(`{"a": [1, 2]}`))
	for range r.Object() {
		if string(r.Rest()) != "[1, 2]}" || r.Offset() != 4 {
			t.Errorf("ahead %q, offset %d", r.Rest(), r.Offset())
		}
		for i := range r.Array() {
			if i == 1 && string(r.Rest()) != "2]}" {
				t.Errorf("ahead %q", r.Rest())
			}
			r.Skip()
		}
	}
	if err := r.End(); err != nil {
		t.Error(err)
	}
}

func TestReaderLoopsMayBeLeftEarly(t *testing.T) {
	r := jsonwire.NewReader([]byte(`{"v":1,"rest":[}`))
	for key := range r.Object() {
		if string(key) == "v" {
			break
		}
	}
	for range jsonwire.NewReader([]byte(`[1,2`)).Array() {
		break
	}
	if r.Err() != nil {
		t.Errorf("%v, although the reader did not get there", r.Err())
	}
}

// A decoder that handles only the kinds it knows must not loop forever on others.
func TestReaderLoopsEnd(t *testing.T) {
	for doc, ok := range map[string]bool{
		`[1,"x",{}]`: true, `{"a":["\ud800"}`: false, `[1}`: false, `{"a":[}`: false, `[1,`: false, `[[]`: false, `{"a":}`: false,
	} {
		r := jsonwire.NewReader([]byte(doc))
		if doc[0] == '{' {
			for range r.Object() {
				for range r.Array() {
					r.Kind()
				}
			}
		} else {
			for range r.Array() {
				r.Kind()
			}
		}
		if err := r.End(); (err == nil) != ok {
			t.Errorf("%s: %v", doc, err)
		}
	}
}

func TestReaderKindIsNeverAClosingBracket(t *testing.T) {
	for _, doc := range []string{"]", "}", `{"a":]`} {
		r := jsonwire.NewReader([]byte(doc))
		if doc[0] == '{' {
			for range r.Object() {
				if k := r.Kind(); k != 0 || r.Err() == nil {
					t.Errorf("%s: kind %v, %v", doc, k, r.Err())
				}
			}
			continue
		}
		if k := r.Kind(); k != 0 || r.Err() == nil {
			t.Errorf("%s: kind %v, %v", doc, k, r.Err())
		}
	}
	r := jsonwire.NewReader([]byte("[1]"))
	for range r.Array() {
		r.Skip()
		if k := r.Kind(); k != 0 || r.Err() == nil { // a body that reads one value too many
			t.Errorf("kind %v, %v", k, r.Err())
		}
	}
}

func TestReaderAgreesWithTheStandardLibrary(t *testing.T) {
	docs := rapid.OneOf(
		rapid.SampledFrom([]string{`{"a":[1,2,{"b":null}]}`, `[true,false,"x"]`, `"\ud83d\ude00"`, `{"a":1`, `{}`, `[[[[]]]]`, "1e5"}),
		rapid.StringMatching(`[\[\]{}:,"a0-9e.\- ntrufalsx\\]{0,25}`),
	)
	rapid.Check(t, func(t *rapid.T) {
		doc := docs.Draw(t, "doc")
		r := jsonwire.NewReader([]byte(doc))
		walk(r)
		if ok := r.End() == nil; ok != json.Valid([]byte(doc)) {
			t.Fatalf("%q: %v, encoding/json says %v", doc, r.Err(), json.Valid([]byte(doc)))
		}
	})
}

func TestCheck(t *testing.T) {
	for doc, want := range map[string]error{
		`{}`: nil, " [1, 2]\n": nil, `{"a":{"a":1},"b":{"a":1}}`: nil, `"é"`: nil,
		`{"a":1,"a":1}`: jsontext.ErrDuplicateName, `[{"x":1,"\u0078":2}]`: jsontext.ErrDuplicateName,
		`{}{}`: jsonwire.ErrTrailing, `1 1`: jsonwire.ErrTrailing, "": io.ErrUnexpectedEOF, "{": io.ErrUnexpectedEOF,
	} {
		if err := jsonwire.Check([]byte(doc)); !errors.Is(err, want) || (err == nil) != (want == nil) {
			t.Errorf("%q: %v, want %v", doc, err, want)
		}
	}
	for _, doc := range []string{"\"\xff\"", `"\ud800"`, `{"a":01}`} {
		if jsonwire.Check([]byte(doc)) == nil {
			t.Errorf("%q passes", doc)
		}
	}
}

func FuzzReader(f *testing.F) {
	for _, s := range []string{
		"", "null", `{"a":[1,{"b":"\ud800"}],"a":2}`, `{"id":"chatcmpl-1","choices":[{"index":0,"delta":{"content":"hi"}}]}`,
		`[1e999,"9223372036854775808",-0.0]`, "{\"\xff\":\"\xfe\"}", `{"a":`, "[[[[[[[[", `"\u00"`, `{} {}`, `{"":["\ud800"}`, "[1}",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		whole := jsonwire.NewReader(doc)
		walk(whole)
		err := whole.End()
		skip := jsonwire.NewReader(doc)
		raw := skip.Raw()
		if (err == nil) != (skip.End() == nil) {
			t.Fatalf("walking says %v, skipping says %v", err, skip.Err())
		}
		if err == nil && !bytes.Contains(doc, raw) {
			t.Fatalf("%q is not part of the document", raw)
		}
		if err == nil != json.Valid(doc) {
			t.Fatalf("%v, but encoding/json says valid %v", err, json.Valid(doc))
		}
		if jsonwire.Check(doc) == nil && err != nil {
			t.Fatalf("Check passes what the reader refuses: %v", err)
		}
		for _, read := range []func(*jsonwire.Reader){
			func(r *jsonwire.Reader) { _ = r.String() }, func(r *jsonwire.Reader) { r.Int() }, func(r *jsonwire.Reader) { r.Bool() },
			func(r *jsonwire.Reader) { r.Null() }, func(r *jsonwire.Reader) { r.AppendString(nil) },
		} {
			read(jsonwire.NewReader(doc))
		}
	})
}

// chatChunk is a typical chunk of a chat stream, written for this test.
var chatChunk = []byte(`{"id":"chatcmpl-0aF","object":"chat.completion.chunk","created":1735689600,"model":"gpt-5.1","service_tier":"default",` +
	`"system_fingerprint":"fp_1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"get_weather","arguments":"{\"city\":\""}}]},` +
	`"logprobs":null,"finish_reason":null}],"usage":null}`)

// chunkReader reads the fields of a chunk that a chat decoder needs, with a function
// for each level, like decoders: the compiler keeps such loops on the stack.
type chunkReader struct {
	jsonwire.Reader
	args    []byte
	created int64
}

func (c *chunkReader) chunk() {
	for key := range c.Object() {
		switch string(key) {
		case "created":
			c.created = c.Int()
		case "choices":
			for range c.Array() {
				c.choice()
			}
		default:
			c.Skip()
		}
	}
}

func (c *chunkReader) choice() {
	for key := range c.Object() {
		if string(key) == "delta" {
			c.delta()
		} else {
			c.Skip()
		}
	}
}

func (c *chunkReader) delta() {
	for key := range c.Object() {
		if string(key) == "tool_calls" {
			for range c.Array() {
				c.call()
			}
		} else {
			c.Skip()
		}
	}
}

func (c *chunkReader) call() {
	for key := range c.Object() {
		switch string(key) {
		case "function":
			c.call()
		case "arguments":
			c.args = c.AppendString(c.args)
		default:
			c.Skip()
		}
	}
}

func (c *chunkReader) read(doc []byte) error {
	c.Reset(doc)
	c.args = c.args[:0]
	c.chunk()
	return c.End()
}

func TestReaderDoesNotAllocate(t *testing.T) {
	var c chunkReader
	var err error
	n := testing.AllocsPerRun(100, func() { err = c.read(chatChunk) })
	if string(c.args) != `{"city":"` || c.created != 1735689600 || err != nil {
		t.Fatalf("%q, %d, %v", c.args, c.created, err)
	}
	if n != 0 {
		t.Errorf("%v allocations for a chunk", n)
	}
}

func BenchmarkReaderChatChunk(b *testing.B) {
	var c chunkReader
	b.SetBytes(int64(len(chatChunk)))
	b.ReportAllocs()
	for b.Loop() {
		if err := c.read(chatChunk); err != nil {
			b.Fatal(err)
		}
	}
}

func TestReaderInteger(t *testing.T) {
	for in, want := range map[string]string{
		"0": "0", "-0": "0", "0.0": "0", "0e99999999999999999999": "0", "7": "7", "7.0": "7", "70e-1": "7", "0.7e1": "7", "7E+0": "7", `"7"`: "7",
		"-7.00": "-7", "9007199254740993.0": "9007199254740993", "9223372036854775807.0": "9223372036854775807",
		"-9223372036854775808": "-9223372036854775808", "9223372036854775808": "", "1e19": "", "1e18": "1000000000000000000",
		"1.5": "", "40.00000000000000000001": "", "1e-400": "", "1e400": "", "1e99999999999999999999": "", "-1e19": "", "null": "0",
	} {
		r := jsonwire.NewReader([]byte(in))
		got := r.Integer()
		switch err := r.End(); {
		case want == "" && err == nil:
			t.Errorf("%s was read as %d", in, got)
		case want != "" && (err != nil || strconv.FormatInt(got, 10) != want):
			t.Errorf("%s was read as %d, %v; want %s", in, got, err, want)
		}
	}
}
