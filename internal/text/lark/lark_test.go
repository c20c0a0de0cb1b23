package lark_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-go/dragoman/internal/text/lark"
)

// patch is a grammar like those of the editing tools of coding agents.
const patch = `
start: begin hunk+ end
begin: "*** Begin Patch" LF
end: "*** End Patch" LF?

hunk: add | delete | update
add: "*** Add File: " name LF line+
delete: "*** Delete File: " name LF
update: "*** Update File: " name LF move? change?
name: /(.+)/
line: "+" /(.*)/ LF -> added

move: "*** Move to: " name LF
change: (context | changed)+ last?
context: ("@@" | "@@ " /(.+)/) LF
changed: ("+" | "-" | " ") /(.*)/ LF
last: "*** End of File" LF

%import common.LF
`

func TestMatch(t *testing.T) {
	for _, tc := range []struct {
		name, grammar string
		yes, no       []string
	}{
		{"strings and alternatives", `start: "a" ("b" | "c"i)`, []string{"ab", "ac", "aC"}, []string{"", "a", "aB", "abc", "xab"}},
		{"repetition", `start: "a"? "b"* "c"+ "d"~2 "e"~1..3`, []string{"cdde", "abbccddeee"}, []string{"cdd", "cddeeee", "cde", "acdd"}},
		{"optional brackets", `start: "a" ["b"] "c"`, []string{"ac", "abc"}, []string{"abbc"}},
		{"expressions and flags", `start: /[a-z]+/i "/" /a\/b/`, []string{"Abc/a/b"}, []string{"abc/a\\/b", "1/a/b"}},
		{"ranges", `start: "a".."f" "0".."9"`, []string{"a0", "f9"}, []string{"g0", "aa"}},
		{"left and right recursion", `start: e
			e: e "+" t | t
			t: "(" e ")" | "x" t | "x"`, []string{"x", "x+x", "(x+xx)+x"}, []string{"", "x+", "(x", "+x"}},
		{"ambiguity", `start: e
			e: e e | "a"`, []string{"a", "aaaaaaaaaaaaaaa"}, []string{"", "ab"}},
		{"rules that may be empty", `start: a b a
			a: "x"?
			b: a a
			 | "y"`, []string{"", "x", "xxxx", "xyx"}, []string{"xxxxx", "yy"}},
		{"terminals made of terminals", `start: NUMBER_WITH_UNIT
			NUMBER_WITH_UNIT: DIGITS ("." DIGITS)? UNIT
			DIGITS: "0".."9"+
			UNIT: "cm" | "m"`, []string{"1cm", "12.5m"}, []string{"1", "1.m", ".5m", "1 m"}},
		{"imports and ignored text", `start: "let" NAME "=" INT ("," INT)*
			%import common.CNAME -> NAME
			%import common (INT, WS)
			%ignore WS
			%ignore /#[^\n]*/`, []string{"let x=1", " let  x =\n1 , 2 # done", "letx=1"}, []string{"let 1=x", "let x=1,", "let x"}},
		{"priorities, aliases, modifiers and comments", "?start.2: !rest -> all // the whole\n!rest: \"a\"\n | \"b\" -> bee\n// end", []string{"a", "b"}, []string{"c"}},
		{"a prefix that is shorter than the longest", `start: /a+/ "ab"`, []string{"aab", "aaaab"}, []string{"ab", "aa"}},
		{"letters beyond ASCII", `start: "ä" /[^x]+/ "ß"`, []string{"äöß", "ä→→ß"}, []string{"äß", "äxß"}},
		{"anchors and words", `start: /^a\b/ / ?b$/`, []string{"a b"}, []string{"ab", "a b "}},
		{"a patch", patch, []string{
			"*** Begin Patch\n*** Add File: a.txt\n+one\n+\n+*** End Patch\n*** End Patch",
			"*** Begin Patch\n*** Update File: a\n*** Move to: b\n@@ func f() {\n-x\n+y\n \n*** End of File\n*** Delete File: c\n*** End Patch\n",
		}, []string{
			"*** Begin Patch\n*** End Patch", "*** Begin Patch\n*** Add File: a.txt\n*** End Patch", "rm -rf /",
			"*** Begin Patch\n*** Delete File: a\n*** End Patch\nrm -rf /", "*** Begin Patch\n*** Update File: a\nx\n*** End Patch",
		}},
	} {
		g, err := lark.Compile(tc.grammar)
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		for _, text := range tc.yes {
			if err := g.Match(text); err != nil {
				t.Errorf("%s: %q: %v", tc.name, text, err)
			}
		}
		for _, text := range tc.no {
			if err := g.Match(text); !errors.Is(err, lark.ErrNoMatch) {
				t.Errorf("%s: %q matches: %v", tc.name, text, err)
			}
		}
	}
}

func TestMismatchError(t *testing.T) {
	g, err := lark.Compile(patch)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"*** Begin Patch\n*** Add File: ä.txt\n-x\n": `line 3, column 1, expected "+"`,
		"oops": `line 1, column 1, expected "*** Begin Patch"`,
	} {
		if err := g.Match(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestGrammarErrors(t *testing.T) {
	for grammar, want := range map[string]string{
		``:                                 "no rule named start",
		`begin: "a"`:                       "no rule named start",
		"start: \"a\"\nstart: \"b\"":       "line 2: start is defined twice",
		"start: other":                     "line 1: no rule named other",
		"start: OTHER":                     "no terminal named OTHER",
		"start: A\nA: \"x\" A":             "contains itself",
		"start: A\nA: b\nb: \"x\"":         "cannot contain the rule b",
		"start: /(?=a)b/":                  "line 1",
		"start: (\"a\"":                    `expected ")"`,
		"start: \"a\" ~ x":                 "a repetition must be",
		"start{x}: x":                      "template",
		"%import python.NAME\nstart: NAME": "only Lark's common terminals",
		"%import common.NOPE\nstart: NOPE": `common has no "NOPE"`,
		"%declare X\nstart: X":             "%declare is not supported",
		"start: \"a\" $":                   "unexpected",
		"start: /a b/x":                    "the flag x",
		"start: \"a\"..\"bc\"":             "a range must be from",
	} {
		if _, err := lark.Compile(grammar); !errors.Is(err, lark.ErrGrammar) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", grammar, err, want)
		}
	}
}

func TestHostileGrammarsAreBounded(t *testing.T) {
	for _, grammar := range []string{
		"start: " + strings.Repeat("(", 5000) + `"a"` + strings.Repeat(")", 5000),
		"start: " + strings.Repeat(`"a" `, 30_000),
		"start: A9\nA0: \"aaaaaaaaaa\"\n" + doubling(),
	} {
		if _, err := lark.Compile(grammar); err == nil {
			t.Errorf("%.60q… compiles", grammar)
		}
	}
	// Ignored white space costs no more than other text.
	blanks, err := lark.Compile("start: \"a\"+\n%ignore WS\n%ignore /#[^\\n]*/\n%import common.WS")
	if err != nil {
		t.Fatal(err)
	}
	if err := blanks.Match(strings.Repeat(" \n", 100_000) + "a" + strings.Repeat(" ", 10_000)); err != nil {
		t.Error(err)
	}
	g, err := lark.Compile(`start: e
		e: e e e | e e | /a*/ | "a"`)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	_ = g.Match(strings.Repeat("a", 20_000) + "b")
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("%v", took)
	}
	if err := g.Match(strings.Repeat("a", lark.MaxTextBytes+1)); !errors.Is(err, lark.ErrTooLarge) {
		t.Errorf("%v", err)
	}
}

func doubling() string {
	var b strings.Builder
	for i := range 9 {
		b.WriteString("A" + string(rune('1'+i)) + ": A" + string(rune('0'+i)) + strings.Repeat(" A"+string(rune('0'+i)), 9) + "\n")
	}
	return b.String()
}

func TestLongTextIsLinear(t *testing.T) {
	g, err := lark.Compile(patch)
	if err != nil {
		t.Fatal(err)
	}
	text := "*** Begin Patch\n*** Add File: a\n" + strings.Repeat("+a line of some length\n", 10_000) + "*** End Patch"
	if err := g.Match(text); err != nil {
		t.Error(err)
	}
}

func FuzzMatch(f *testing.F) {
	f.Add(`start: "a"*`, "aaa")
	f.Add(patch, "*** Begin Patch\n*** Delete File: a\n*** End Patch")
	f.Add("start: a\na: a | /x*/ a?\n%ignore /y/", "xyx")
	f.Add(`start: ("a"|"b"~2..3)+ ["c"]`, "abbc")
	f.Fuzz(func(t *testing.T, grammar, text string) {
		if len(grammar) > 200 || len(text) > 200 {
			return
		}
		g, err := lark.Compile(grammar)
		if err != nil {
			if !errors.Is(err, lark.ErrGrammar) && !errors.Is(err, lark.ErrTooLarge) {
				t.Fatalf("%v", err)
			}
			return
		}
		if err := g.Match(text); err != nil && !errors.Is(err, lark.ErrNoMatch) && !errors.Is(err, lark.ErrTooLarge) {
			t.Fatalf("%v", err)
		}
	})
}
