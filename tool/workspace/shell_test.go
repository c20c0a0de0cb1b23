package workspace

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/dragoman-go/dragoman/internal/text/shell"
	"github.com/dragoman-go/dragoman/internal/textkit"
)

func TestAttack_ShellOperators(t *testing.T) {
	p := newFixture(t, Options{Shell: &Shell{AllowAny: true}})
	p.options.Shell.judge = func(c *shell.Command) error {
		return fmt.Errorf("asked about %q", c.Text)
	}
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

func TestCountOfOneHiddenByteIsSingular(t *testing.T) {
	o := &boundedOutput{most: 2}
	if _, err := o.Write([]byte("abc")); err != nil {
		t.Fatal(err)
	}
	if got := o.String(); got != "a\n[1 byte not shown]\nc" {
		t.Errorf("%q", got)
	}
}

func TestT15_OutputKeepsItsBeginningAndItsEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(2, 40).Draw(t, "most")
		var reported strings.Builder
		o := &boundedOutput{most: most, report: func(s string) { reported.WriteString(s) }}
		var all []byte
		for _, chunk := range rapid.SliceOf(rapid.SliceOfN(rapid.ByteRange('a', 'z'), 0, 30)).Draw(t, "chunks") {
			if n, err := o.Write(chunk); n != len(chunk) || err != nil {
				t.Fatal(n, err)
			}
			all = append(all, chunk...)
		}
		o.end()
		want := string(all)
		if len(all) > most {
			want = fmt.Sprintf("%s\n[%s not shown]\n%s", all[:(most+1)/2], textkit.Count(len(all)-most, "byte"), all[len(all)-most/2:])
		}
		if got := o.String(); got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
		if want := string(all[:min(len(all), most)]); reported.String() != want {
			t.Fatalf("reported %q, want %q", reported.String(), want)
		}
	})
}

// Secrets are taken out of each piece that is reported: none must be the half of one.
func TestT12_OutputIsReportedInWholeLines(t *testing.T) {
	for _, tc := range []struct{ output, want string }{
		{"aé€\n😀\xff\nz", "aé€\n|😀\uFFFD\n|z"},
		{"10%\r20%\rdone", "10%\r|20%\r|done"},
		{"", ""},
	} {
		var reported []string
		o := &boundedOutput{most: 100, report: func(s string) { reported = append(reported, s) }}
		for _, b := range []byte(tc.output) {
			o.Write([]byte{b})
		}
		o.end()
		if got := strings.Join(reported, "|"); got != tc.want {
			t.Errorf("reported %q, want %q", got, tc.want)
		}
	}
	var reported []string
	o := &boundedOutput{most: 10_000, report: func(s string) { reported = append(reported, s) }}
	long := strings.Repeat("é", 6000)
	for i := range len(long) {
		o.Write([]byte{long[i]})
	}
	o.end()
	if got := strings.Join(reported, ""); got != long[:10_000] || len(reported) < 2 || !utf8.ValidString(reported[0]) || strings.ContainsRune(reported[0], utf8.RuneError) {
		t.Errorf("reported %d times, %d bytes", len(reported), len(got))
	}
}
