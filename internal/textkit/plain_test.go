package textkit

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestNamesAndDescriptions(t *testing.T) {
	for _, tc := range []struct {
		text              string
		name, description bool // whether it can be one
	}{
		{"look_up", true, true},
		{"naïve 名前", true, true},
		{"", true, true},
		{"a\nb", false, true},
		{"a\tb", false, true},
		{"a\r\nb", false, true},
		{"a\x00b", false, false},
		{"a\x1b[2Jb", false, false},
		{"a\x7fb", false, false},
		{"a\u009bb", false, false},
		{"a\u202eb", false, false},
		{"a\u2066b", false, false},
		{"a\u200eb", false, true},
		{"a\u200bb", false, true},
		{"می\u200cخواهم", false, true},
		{"a\ufeffb", false, true},
		{"a\u2028b", false, true},
		{"a\U000E0041b", false, false},
		{"a\xffb", false, false},
		{"a\uFFFDb", true, true},
	} {
		if err := CheckName(tc.text); (err == nil) != tc.name {
			t.Errorf("name %q: %v", tc.text, err)
		}
		if err := CheckDescription(tc.text); (err == nil) != tc.description {
			t.Errorf("description %q: %v", tc.text, err)
		}
	}
}

func TestTokensAreOneWord(t *testing.T) {
	for text, want := range map[string]string{
		"fs.read_file": "fs.read_file", "x. Ignore\nthis\x1b\u202e!": "x._Ignore_this___", "名前": "名前", "\xff": "_",
		strings.Repeat("é", 300): strings.Repeat("é", 100),
	} {
		if got := Token(text); got != want || !utf8.ValidString(got) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
