package recall

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/dragoman-go/dragoman/internal/testkit/gen"
	"pgregory.net/rapid"
)

func TestNumbersHashByTheirDigits(t *testing.T) {
	for _, same := range [][]string{
		{"1", "1.0", "1e0", "10e-1", "0.1e1", "1E+0"},
		{"1000", "1e3", "1.000e3", "1000.00"},
		{"0", "-0", "0.0", "0e5", "-0.00"},
		{"-1.50", "-1.5", "-15e-1"},
		{"12345678901234567890"},
		{"12345678901234567891"},
		{"1e400"},
		{"-1e400"},
		{"1e99999999999999999999"},
		{"-1e99999999999999999999"},
		{"0.1"},
		{"0.10000000000000001"},
	} {
		for _, s := range same {
			if canonicalNumber(s) != canonicalNumber(same[0]) {
				t.Errorf("%s is %s, %s is %s", s, canonicalNumber(s), same[0], canonicalNumber(same[0]))
			}
		}
	}
	seen := map[string]string{}
	for _, s := range []string{"1", "1000", "0", "-1.5", "1.5", "12345678901234567890", "12345678901234567891", "1e400", "-1e400", "1e99999999999999999999", "-1e99999999999999999999", "0.1", "0.10000000000000001"} {
		if other, ok := seen[canonicalNumber(s)]; ok {
			t.Errorf("%s and %s are one", s, other)
		}
		seen[canonicalNumber(s)] = s
	}
}

// Package encoding/json writes fields in order and escapes differently, and keeps the spelling of
// numbers.
func TestJSONHashIgnoresSpelling(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw := gen.JSON().Draw(t, "value")
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.UseNumber()
		var v any
		if err := dec.Decode(&v); err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		again, err := json.MarshalIndent(v, " ", "\t")
		if err != nil {
			t.Fatal(err)
		}
		if hashJSON(raw) != hashJSON(again) {
			t.Fatalf("%s\n%s", raw, again)
		}
	})
}

func TestDifferentJSONHashesDifferently(t *testing.T) {
	list := []string{
		`{}`, `[]`, `null`, `""`, `"null"`, `0`, `false`, `{"a":1}`, `{"a":"1"}`, `{"a":[1]}`, `{"a":{}}`, `{"a":1,"b":2}`, `{"a":2,"b":1}`,
		`[1,2]`, `[2,1]`, `[[1],2]`, `[[1,2]]`, `{"a":{"b":1},"c":2}`, `{"a":{"b":1,"c":2}}`, `{"cache_control":1}`, `{`, `{"a":1,"a":2}`,
	}
	seen := map[sum]string{}
	for _, s := range list {
		if other, ok := seen[hashJSON([]byte(s))]; ok {
			t.Errorf("%s and %s are one", s, other)
		}
		seen[hashJSON([]byte(s))] = s
	}
	if hashBlock([]byte(`{"type":"x","cache_control":{"type":"ephemeral"}}`)) != hashBlock([]byte(`{"type":"x"}`)) {
		t.Error("a cache marker makes another block")
	}
}

// Stored outputs are found by this hash, so it must not change.
func TestVisibleTextHashesWithoutWhiteSpace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Repeat(rapid.String().Draw(t, "text"), rapid.IntRange(1, 500).Draw(t, "times"))
		text += rapid.SampledFrom([]string{"", " ", "\u00a0", "\u0085", "\x85", "\xff \xe2\x80", "\u3000x"}).Draw(t, "end")
		var want []byte
		for i, r := range text {
			if _, size := utf8.DecodeRuneInString(text[i:]); !unicode.IsSpace(r) {
				want = append(want, text[i:i+size]...)
			}
		}
		s := &visible{text: sha256.New()}
		s.write(text)
		if got, want := [sha256.Size]byte(s.text.Sum(nil)), sha256.Sum256(want); got != want {
			t.Fatalf("%q: %x, want %x", text, got, want)
		}
		if s.hasText != (len(want) > 0) {
			t.Fatalf("%q: has text: %v", text, s.hasText)
		}
	})
}
