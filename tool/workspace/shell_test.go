package workspace

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"
	"pgregory.net/rapid"
)

func TestT15_ACommandIsTakenApartIntoWords(t *testing.T) {
	for text, want := range map[string][]string{
		`ls`:                             {"ls"},
		`  git   log -n 3  `:             {"git", "log", "-n", "3"},
		`echo 'a b' "c d" e\ f`:          {"echo", "a b", "c d", "e f"},
		`echo "a'b" 'c"d' x"y"'z'`:       {"echo", "a'b", `c"d`, "xyz"},
		`echo '$HOME' '*' "*.go" \$x \*`: {"echo", "$HOME", "*", "*.go", "$x", "*"},
		`echo "a\"b\\c\d\$e"`:            {"echo", `a"b\c\d$e`},
		"echo a \\\n b":                  {"echo", "a", "b"},
		"echo 'a\nb' \"c\\\nd\"":         {"echo", "a\nb", "cd"},
		`echo '' ""`:                     {"echo", "", ""},
		`grep -e 'a|b;c&d' x`:            {"grep", "-e", "a|b;c&d", "x"},
		`echo a=b --x=y é`:               {"echo", "a=b", "--x=y", "é"},
		`echo {} a{b} x # note`:          {"echo", "{}", "a{b}", "x"},
	} {
		if got, err := simpleCommand(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q is %q, %v; want %q", text, got, err, want)
		}
	}
}

func TestAttack_ShellOperators(t *testing.T) {
	p := newPlace(t, Options{Shell: &Shell{Allow: func(argv []string) error {
		return fmt.Errorf("asked about %q", argv)
	}}})
	for name, text := range map[string]string{
		"semicolon":                  "ls; rm x",
		"semicolon at the end":       "ls;",
		"pipe":                       "ls | sh",
		"pipe of both":               "ls |& sh",
		"and":                        "ls && rm x",
		"or":                         "ls || rm x",
		"background":                 "ls &",
		"line break":                 "ls\nrm x",
		"carriage return and break":  "ls\r\nrm x",
		"substitution":               "ls $(rm x)",
		"substitution in quotes":     `ls "$(rm x)"`,
		"backquotes":                 "ls `rm x`",
		"backquotes in quotes":       "ls \"`rm x`\"",
		"variable":                   "ls $HOME",
		"variable in braces":         "ls ${HOME}",
		"variable in quotes":         `ls "$HOME"`,
		"variable as the program":    "$SHELL x",
		"arithmetic":                 "ls $((1+1))",
		"redirection":                "ls > /etc/passwd",
		"appending redirection":      "ls >> x",
		"input":                      "cat < x",
		"here document":              "cat <<EOF\nx\nEOF",
		"here string":                "cat <<< x",
		"numbered redirection":       "ls 2>&1",
		"redirection of all":         "ls &> x",
		"process substitution":       "cat <(ls)",
		"assignment":                 "LD_PRELOAD=x ls",
		"assignment alone":           "X=1",
		"negation":                   "! ls",
		"group":                      "{ ls; }",
		"subshell":                   "(ls)",
		"if":                         "if ls; then rm x; fi",
		"loop":                       "for i in 1; do ls; done",
		"function":                   "f() { ls; }",
		"test":                       "[[ -f x ]]",
		"time":                       "time ls",
		"declare":                    "export X=1",
		"wildcard":                   "ls *",
		"question mark":              "ls ?",
		"set":                        "ls [ab]",
		"extended wildcard":          "ls @(a|b)",
		"list in braces":             "ls {a,b}",
		"range in braces":            "ls {1..3}",
		"home folder":                "ls ~/x",
		"other home folder":          "ls ~root",
		"escapes of a shell":         `ls $'\x2e\x2e'`,
		"translation":                `ls $"x"`,
		"NUL":                        "ls \x00",
		"nothing":                    " ",
		"a note alone":               "# ls",
		"empty program":              "'' x",
		"unclosed quote":             "ls 'x",
		"unclosed substitution":      "ls $(x",
		"operator hidden by a quote": `ls 'a'; rm "b"`,
		"coprocess":                  "coproc ls",
		"vertical tab and operator":  "ls \v; rm x",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := p.shell(t.Context(), shellInput{Command: text})
			if err == nil || strings.Contains(err.Error(), "asked about") {
				t.Errorf("%q came through: %v", text, err)
			}
		})
	}
}

// What is taken for words is what a shell would take for the same words.
func TestT15_WordsAreThoseOfAShell(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(rapid.StringOfN(rapid.RuneFrom([]rune("ab '\"\\$`*?[]{},;&|<>()!#~=\n\té-")), 0, 8, -1), 1, 5).Draw(t, "words")
		want[0] = "p" + want[0]
		var quoted []string
		for _, w := range want {
			q, err := syntax.Quote(w, syntax.LangPOSIX)
			if err != nil {
				t.Skip("a word that has no quoted form:", err)
			}
			quoted = append(quoted, q)
		}
		if got, err := simpleCommand(strings.Join(quoted, " ")); err != nil || !slices.Equal(got, want) {
			t.Fatalf("%q: %q, %v; want %q", strings.Join(quoted, " "), got, err, want)
		}
	})
}

func FuzzSimpleCommand(f *testing.F) {
	for _, s := range []string{"ls -l", "a 'b' \"c\"", "a $(b)", "a;b", "a \\\nb", "{a,b}", "a\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		argv, err := simpleCommand(text)
		if err != nil {
			return
		}
		var quoted []string
		for _, a := range argv {
			q, err := syntax.Quote(a, syntax.LangBash)
			if err != nil || strings.HasPrefix(q, "$'") {
				return // no word of a shell says it plainly
			}
			quoted = append(quoted, q)
		}
		again, err := simpleCommand(strings.Join(quoted, " "))
		if err != nil || !slices.Equal(argv, again) {
			t.Fatalf("%q is %q, and then %q, %v", text, argv, again, err)
		}
	})
}

func TestT15_TheAllowListKnowsArguments(t *testing.T) {
	allow, err := Commands("go build ./cmd/dragoman", "go vet *", "make test-*", "go test ...", "git log ... !--output !-o !--ext*", "cat *.txt", "find ... !-exec* !-delete")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		"go build ./cmd/dragoman":        true,
		"go build ./cmd/dragoman -o /x":  false,
		"go build":                       false,
		"go":                             false,
		"Go vet x":                       false,
		"/usr/bin/go vet x":              false,
		"go vet ./...":                   true,
		"go vet -vettool=/tmp/x":         false,
		"go vet a b":                     false,
		"make test-race":                 true,
		"make tests":                     false,
		"go test -run X ./...":           true,
		"go test":                        true,
		"git log":                        true,
		"git log -n 3 --stat":            true,
		"git log --output=/etc/x":        false,
		"git log --output /etc/x":        false,
		"git log --outp=/etc/x":          false,
		"git log -o x":                   false,
		"git log -po":                    false,
		"git log --ext-diff":             false,
		"git log --oneline":              true,
		"git push":                       false,
		"cat a.txt":                      true,
		"cat --x.txt":                    false,
		"cat a.txt b":                    false,
		"find . -name x":                 true,
		"find . -exec sh":                false,
		"find . -execdir sh":             false,
		"find . -delete":                 false,
		"git -c core.pager=x log":        false,
		"git log -- --output":            false,
		"bash -c ls":                     false,
		"sudo go test":                   false,
		"go test; ls":                    false,
		"'go' \"test\"":                  true,
		"go test '$(touch x)' '; rm -f'": true, // words, and no shell that reads them
	} {
		argv, err := simpleCommand(text)
		if err == nil {
			err = allow(argv)
		}
		if got := err == nil; got != want {
			t.Errorf("%q is allowed: %v (%v), want %v", text, got, err, want)
		}
	}
	if err := allow([]string{"go", "run"}); err == nil || !strings.Contains(err.Error(), "go vet *") || strings.Contains(err.Error(), "find") {
		t.Errorf("what is allowed of go is not told: %v", err)
	}
	for _, bad := range []string{"", "  ", "... x", "* x", "ls !-x", "ls ... x", "ls ... !"} {
		if _, err := Commands(bad); !errors.Is(err, ErrOptions) {
			t.Errorf("the pattern %q: %v", bad, err)
		}
	}
	none, err := Commands()
	if err != nil || none([]string{"ls"}) == nil {
		t.Errorf("an empty list allows: %v", err)
	}
}

func TestT15_OutputKeepsItsBeginningAndItsEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(2, 40).Draw(t, "most")
		var told strings.Builder
		o := &boundedOutput{most: most, tell: func(s string) { told.WriteString(s) }}
		var all []byte
		for _, chunk := range rapid.SliceOf(rapid.SliceOfN(rapid.ByteRange('a', 'z'), 0, 30)).Draw(t, "chunks") {
			if n, err := o.Write(chunk); n != len(chunk) || err != nil {
				t.Fatal(n, err)
			}
			all = append(all, chunk...)
		}
		want := string(all)
		if len(all) > most {
			want = fmt.Sprintf("%s\n[%d bytes are not shown]\n%s", all[:(most+1)/2], len(all)-most, all[len(all)-most/2:])
		}
		if got := o.String(); got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
		if want := string(all[:min(len(all), most)]); told.String() != want {
			t.Fatalf("told %q, want %q", told.String(), want)
		}
	})
}

func TestT12_OutputIsToldInWholeCharacters(t *testing.T) {
	var told []string
	o := &boundedOutput{most: 100, tell: func(s string) { told = append(told, s) }}
	for _, b := range []byte("aé€😀\xffz") {
		o.Write([]byte{b})
	}
	if got, want := strings.Join(told, "|"), "a|é|€|😀|\uFFFD|z"; got != want {
		t.Errorf("told %q, want %q", got, want)
	}
}
