package shell

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"
	"pgregory.net/rapid"
)

// wordsOf returns the words of a command that needs no shell.
func wordsOf(text string) ([]string, error) {
	c, _ := Parse(text) // the error is in it
	return c.Words()
}

func TestT15_CommandIsSplitIntoWords(t *testing.T) {
	for text, want := range map[string][]string{
		`ls`:                             {"ls"},
		`  git   log -n 3  `:             {"git", "log", "-n", "3"},
		`echo 'a b' "c d" e\ f`:          {"echo", "a b", "c d", "e f"},
		`echo "a'b" 'c"d' x"y"'z'`:       {"echo", "a'b", `c"d`, "xyz"},
		`echo '$HOME' '*' "*.go" \$x \*`: {"echo", "$HOME", "*", "*.go", "$x", "*"},
		`echo "a\"b\\c\d\$e"`:            {"echo", `a"b\c\d$e`},
		"echo 'a\nb' \"c\nd\"":           {"echo", "a\nb", "c\nd"},
		`echo '' ""`:                     {"echo", "", ""},
		`grep -e 'a|b;c&d' x`:            {"grep", "-e", "a|b;c&d", "x"},
		`echo a=b --x=y é`:               {"echo", "a=b", "--x=y", "é"},
		`echo {} a{b} x # note`:          {"echo", "{}", "a{b}", "x"},
	} {
		if got, err := wordsOf(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q is %q, %v; want %q", text, got, err, want)
		}
	}
}

// A shell splits the command into the same words.
func TestT15_WordsMatchTheShell(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(rapid.StringOfN(rapid.RuneFrom([]rune("ab '\"\\$`*?[]{},;&|<>()!#~=\n\té-")), 0, 8, -1), 1, 5).Draw(t, "words")
		want[0] = "p" + want[0]
		quoted := make([]string, len(want))
		for i, w := range want {
			q, err := syntax.Quote(w, syntax.LangPOSIX)
			if err != nil || rapid.Bool().Draw(t, "single quotes") {
				q = quoteForShell(w) // it cannot quote line ends and tabs
			}
			quoted[i] = q
		}
		text := strings.Join(quoted, " ")
		got, err := wordsOf(text)
		if strings.Contains(text, "\\\n") { // a line that ends in a backslash, even in quotes
			if !errors.Is(err, ErrUnreadable) {
				t.Fatalf("%q: %q, %v", text, got, err)
			}
			return
		}
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("%q: %q, %v; want %q", text, got, err, want)
		}
	})
}

func FuzzSimpleCommand(f *testing.F) {
	for _, s := range []string{"ls -l", "a 'b' \"c\"", "a $(b)", "a;b", "a \\\nb", "{a,b}", "a\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		argv, err := wordsOf(text)
		if err != nil {
			return
		}
		var quoted []string
		for _, a := range argv {
			q, err := syntax.Quote(a, syntax.LangBash)
			if err != nil || strings.HasPrefix(q, "$'") {
				return // no plain word has this value
			}
			quoted = append(quoted, q)
		}
		again, err := wordsOf(strings.Join(quoted, " "))
		if err != nil || !slices.Equal(argv, again) {
			t.Fatalf("%q is %q, and then %q, %v", text, argv, again, err)
		}
	})
}
