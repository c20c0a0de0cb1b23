package lark

import (
	"errors"
	"regexp"
	"testing"
)

func TestExample(t *testing.T) {
	for src, want := range map[string]string{
		"start: \"add \" INT (\",\" INT)*\n%import common.INT":                                   "add 0",
		"start: list\nlist: \"(\" list \")\" | \"x\"":                                            "x",
		"start: A B?\nA: /[b-d]{3}/\nB: \"!\"":                                                   "bbb",
		"start: \"*** Begin Patch\" NL hunk+ \"*** End\"\nhunk: \"+\" /[^\\n]+/ NL\nNL: \"\\n\"": "*** Begin Patch\n+a\n*** End",
		"start: item ~ 2..3\nitem: \"a\" | \"bb\"":                                               "aa",
	} {
		g, err := Compile(src)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := g.Example(); err != nil || got != want {
			t.Errorf("%s\ngives %q, %v, want %q", src, got, err, want)
		}
	}
}

func TestEmptyLanguageHasNoExample(t *testing.T) {
	g, err := Compile("start: start \"a\"")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := g.Example(); !errors.Is(err, ErrNoMatch) {
		t.Errorf("%q, %v", got, err)
	}
}

func TestExampleOf(t *testing.T) {
	for expr, want := range map[string]string{
		`^[A-Z]{2}-\d{4}$`:        "AA-0000",
		`^(foo|ba)$`:              "ba",
		`^\d{4}-\d{2}-\d{2}$`:     "0000-00-00",
		`^#[0-9a-fA-F]{6}$`:       "#aaaaaa",
		`x*`:                      "",
		`^[^a-zA-Z0-9 _./\-\n]+$`: "!",
	} {
		got, err := ExampleOf(expr)
		if err != nil || got != want || !regexp.MustCompile(expr).MatchString(got) {
			t.Errorf("%s gives %q, %v, want %q", expr, got, err, want)
		}
	}
	for _, expr := range []string{`(`, `(?=a)b`, `a\bb`} {
		if got, err := ExampleOf(expr); err == nil {
			t.Errorf("%s gives %q", expr, got)
		}
	}
}
