package jsonwire

import (
	"math/rand/v2"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

func TestQuoteMatchesTheLibrary(t *testing.T) {
	cases := []string{"", "a", "\x00\x1f\x7f\"\\/\b\f\n\r\t", "é\u2028\u2029<&>", "\xff", "a\xc3", "ok\xed\xa0\x80", "\U0001f600\n"}
	rnd := rand.New(rand.NewPCG(1, 2))
	alphabet := []string{"a", "bc", "\"", "\\", "\n", "\x01", "\x1f", "\x7f", "é", "\u2028", "\xff", "\xf0\x9f", "\U0001f600"}
	for range 2000 {
		s := ""
		for range rnd.IntN(12) {
			s += alphabet[rnd.IntN(len(alphabet))]
		}
		cases = append(cases, s)
	}
	for _, s := range cases {
		want, _ := jsontext.AppendQuote(nil, s)
		var w Writer
		w.String(s)
		if string(w.Buf) != string(want) {
			t.Errorf("%q is written as %s, want %s", s, w.Buf, want)
		}
	}
}

func TestStringLikeReadsLikeString(t *testing.T) {
	for _, doc := range []string{`"abc"`, `"a\u0062c"`, `""`, `null`, `"abd"`, `"\ud83d\ude00"`} {
		want := NewReader([]byte(doc)).String()
		for _, have := range []string{"", "abc", "other"} {
			if got := NewReader([]byte(doc)).StringLike(have); got != want {
				t.Errorf("%s after %q reads as %q, want %q", doc, have, got, want)
			}
		}
	}
	r := NewReader([]byte(`7`))
	if r.StringLike("x"); r.Err() == nil {
		t.Error("a number is accepted as a string")
	}
}

func TestIntegersOfEverySpelling(t *testing.T) {
	for doc, want := range map[string]int64{
		"0": 0, "-0": 0, "12": 12, "-7": -7, "1.9": 1, "1e3": 1000, `"42"`: 42, "null": 0,
		"999999999999999999": 999999999999999999, "9223372036854775807": 1<<63 - 1, "9223372036854775808": 1<<63 - 1, "-1e40": -1 << 63,
	} {
		r := NewReader([]byte(doc))
		if got := r.Int(); got != want || r.Err() != nil {
			t.Errorf("%s reads as %d (%v), want %d", doc, got, r.Err(), want)
		}
	}
}
