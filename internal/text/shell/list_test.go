package shell

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func mustAllow(t *testing.T, patterns ...string) *List {
	t.Helper()
	l, err := Allow(patterns...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestT15_AllowListMatchesArguments(t *testing.T) {
	l := mustAllow(t, "go build ./cmd/dragoman", "go vet *", "make test-*", "go test ...", "git log ... !--output !-o !--ext*", "cat *.txt", "find ... !-exec* !-delete")
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
		"go test '$(touch x)' '; rm -f'": true, // words that no shell interprets
	} {
		_, err := l.Check(text)
		if got := err == nil; got != want {
			t.Errorf("%q is allowed: %v (%v), want %v", text, got, err, want)
		}
	}
	if _, err := l.Check("go run"); err == nil || !strings.Contains(err.Error(), "go vet *") || strings.Contains(err.Error(), "find") {
		t.Errorf("what is allowed of go is not told: %v", err)
	}
	for _, bad := range []string{"", "  ", "... x", "* x", "ls !-x", "ls ... x", "ls ... !", "a* x", "./* x"} {
		if _, err := Allow(bad); !errors.Is(err, ErrPattern) {
			t.Errorf("the pattern %q: %v", bad, err)
		}
	}
	if _, err := mustAllow(t).Check("ls"); !errors.Is(err, ErrNotAllowed) {
		t.Errorf("an empty list allows: %v", err)
	}
	var none *List
	if _, err := none.Check("ls"); !errors.Is(err, ErrNotAllowed) {
		t.Error("no list allows everything")
	}
	if l.Allows(&Command{}) == nil || l.Allows(&Command{Programs: []string{"go"}, Simple: true, Args: []string{"test"}}) == nil {
		t.Error("a command that nobody parsed is allowed")
	}
}

// A refused flag is refused in every form that programs accept.
func TestT15_RefusedFlagIsRefusedInEveryForm(t *testing.T) {
	for _, tc := range []struct {
		refused      string
		hits, misses []string
	}{
		{
			"!-exec",
			[]string{"-exec", "--exec", "-exec=rm", "--exec=rm", "'-exec=a b'", "-exec=", "-exec:rm", "-exec,rm", "-exec/bin/rm", "--exe", "--exe=rm", "--e", "a -exec", "-- -exec"},
			[]string{"-execdir", "-exe", "-x", "exec", "-vexec", "--execute", "-", "--", "---exec", "-EXEC"},
		},
		{
			"!--output",
			[]string{"--output", "-output", "--output=x", "-output=x", "--out", "--o=x", "--outp:x"},
			[]string{"-o", "-out", "--outputs", "--output-format=x", "output", "--", "-"},
		},
		{
			"!-o",
			[]string{"-o", "-xo", "-ofile", "-o=file", "--o", "--o=file", "-ox"},
			[]string{"--output", "--no", "-x", "o", "--", "-O"},
		},
		{
			"!-exec*",
			[]string{"-exec", "-execdir", "--execdir", "--exec-path=x", "-exec=x", "--exe", "--e=x"},
			[]string{"-exe", "-x", "--x"},
		},
		{"!--x", []string{"--x", "-x", "--x=1", "-x=1"}, []string{"-ax", "-xa", "--xa", "x"}},
		{"!--*", []string{"--x", "--x=1"}, []string{"-x", "x"}},
		{"!-*", []string{"-x", "--x", "-", "--"}, []string{"x"}},
		{"!--format=a*", []string{"--format=a", "--format=abc", "-format=abc", "--form=ab", "--format a", "--format"}, []string{"--format=b", "--form=b", "-f=ab"}},
		{"!delete", []string{"delete"}, []string{"-delete", "deletes", "delete=x"}},
		{"!core.*=*", []string{"core.pager=x"}, []string{"core.pager", "x"}},
	} {
		l := mustAllow(t, "run ... "+tc.refused)
		for _, flag := range tc.hits {
			if _, err := l.Check("run a " + flag); !errors.Is(err, ErrNotAllowed) {
				t.Errorf("%s: %s is allowed", tc.refused, flag)
			}
		}
		for _, flag := range tc.misses {
			if _, err := l.Check("run a " + flag); err != nil {
				t.Errorf("%s: %s: %v", tc.refused, flag, err)
			}
		}
	}
}

// The ? of an address is not a wildcard.
func TestT15_QuestionMarkInAPatternIsLiteral(t *testing.T) {
	l := mustAllow(t, "get https://example.com/?q=*")
	if _, err := l.Check("get 'https://example.com/?q=a'"); err != nil {
		t.Error(err)
	}
	if _, err := l.Check("get https://example.com/xq=a"); err == nil {
		t.Error("a question mark stands for another character")
	}
}

func TestT15_AllowedCommandsMayHaveArguments(t *testing.T) {
	l := mustAllow(t, "ls ... -l -a", "git status", "git log * ... -n* --oneline", "go test ... -run=*", "/usr/bin/make all")
	for command, want := range map[string]string{
		`ls`: "[ls]", `ls -l a b`: "[ls -l a b]", `git status`: "[git status]", `git log main -n5 --oneline`: "[git log main -n5 --oneline]",
		`go test ./... -run='A B'`: "[go test ./... -run=A B]", `/usr/bin/make all`: "[/usr/bin/make all]", `l's' "-l"`: "[ls -l]",
	} {
		if argv, err := l.Check(command); err != nil || fmt.Sprint(argv) != want {
			t.Errorf("%s: %v, %v; want %s", command, argv, err, want)
		}
	}
	for _, command := range []string{
		``, `rm a`, `ls -R`, `ls --color=always`, `ls; rm a`, `ls | cat`, `ls > a`, `ls $x`, `ls *`, `git`, `git push`, `git status x`, `git log`,
		`git log a --output=/etc/passwd`, `git log --output=/etc/passwd`, `go test -exec=rm ./...`, `go run x`, `make all`, `/bin/ls`, `./ls`, `LS`, `env ls`,
		`x=1 ls`, "ls\nrm a", `ls & rm a`, `ls $(rm a)`, `ls -`, `ls -- -R`, `-l ls`, `git -c core.pager=rm log x`,
	} {
		if argv, err := l.Check(command); !errors.Is(err, ErrNotAllowed) || argv != nil {
			t.Errorf("%s is allowed: %v, %v", command, argv, err)
		}
	}
}

// A wrapper does not allow the programs that it runs.
func TestT15_WrapperAndWrappedProgramMustBeAllowed(t *testing.T) {
	l := mustAllow(t, "env ...", "timeout * ...", "xargs ...", "sh ...", "find ...", "ls ...", "cat * ... -n", "eval ls", "sh build.sh", "printf ...", "wait", "xargs du")
	for command, want := range map[string]bool{
		`env ls`: true, `env rm a`: false, `env X=1 ls`: false, `env -i ls`: false, `env`: true, `env env timeout 5 ls -l`: true,
		`timeout 5 ls`: true, `timeout 5 rm a`: false, `timeout -s KILL 5 ls`: false,
		`xargs ls`: true, `xargs rm`: false, `xargs du`: false, `xargs cat a`: false, `xargs -0 ls`: false,
		`sh -c 'ls | ls'`: true, `sh -c 'ls; rm a'`: false, `sh -c 'ls > a'`: false, `sh -c 'x=1 ls'`: false, `sh -c "'"`: false,
		`sh other.sh`: false, `sh build.sh`: true, `sh build.sh x`: false, `sh`: false, `bash build.sh`: false,
		`find . -name a`: true, `find . -delete`: false, `find . -exec ls {} +`: false,
		`eval ls`: true, `eval rm`: false, `eval ls a`: false, `printf a`: true, `printf -v PATH a`: false, `wait`: true, `wait 1`: false,
		strings.Repeat("env ", 5) + "ls": true, strings.Repeat("env ", 50) + "ls": false,
	} {
		if _, err := l.Check(command); (err == nil) != want {
			t.Errorf("%s: %v, want allowed: %t", command, err, want)
		}
	}
	for _, bad := range []string{"eval ...", "ssh host *", "/usr/bin/ssh ...", "sh", "bash -s x", "SH -x"} {
		if _, err := Allow(bad); !errors.Is(err, ErrPattern) {
			t.Errorf("the pattern %q: %v", bad, err)
		}
	}
}

func TestT15_EveryCommandOfAScriptMustBeAllowed(t *testing.T) {
	l := mustAllow(t, "ls ...", "cat *", "git log ... !-o", "head ... -n", "true", "xargs ...", "[ ...", "f")
	for command, want := range map[string]bool{
		`ls | cat a && true || ls`: true, `if [ -f a ]; then ls; fi`: true, `for x in a b; do ls $x; done`: true, `ls "$HOME" *`: true,
		`ls 2>&1 >/dev/null`: true, "cat a <<E\ntext\nE": true, `f() { ls "$@"; }; f`: true, `! ls &`: true, `ls $(git log a)`: true,
		`ls $((1 + 2))`: true, `git log | xargs ls`: true, `[ a ] && ls ${x:-y}`: true,

		`cat $x`: false, `cat *`: false, `git log $x`: false, `git log a{b,c}`: false, `head $x`: false, `ls | xargs git log`: false, `$x`: false,
		`ls > a`: false, `ls < a`: false, `ls >> $x`: false, `ls | tee a`: false, `ls() { rm a; }; ls`: false, `ls $(rm a)`: false,
		`x=1; ls`: false, `export x; ls`: false, `for PATH in a; do ls; done`: false, `for http_proxy in a; do ls; done`: false,
		`select IFS in a; do ls; done`: false, `((PATH=1)); ls`: false, `ls $((PATH=1))`: false, `for ((PATH=1;;)); do ls; done`: false,
		`for x in 'a[$(rm)]'; do ((x)); done`: false, `for x in 'a[$(rm)]'; do ls ${b[x]}; done`: false, `for x in 'a[$(rm)]'; do ls ${b:x}; done`: false,
		`ls ${GIT_PAGER:=rm}`: false, `{PATH}>/dev/null ls`: false, `coproc PATH { ls; }`: false,
		// Other shells run these as commands.
		`[[ a || rm ]]`: false, `[[ a =~ b|rm ]]`: false, `((rm))`: false, `ls "${x:-'$(rm)'}"`: false, `ls "${x:-'}"; rm a; "'}"`: false,
		"cat a <<E\n${x:-'$(rm)'}\nE": false,
		// Other shells may run the text of a here-document that begins within a substitution.
		"ls $(ls <<E)\nrm a\nE\n": false, "ls `ls <<E`\nrm a\nE\n": false, "ls \"$(ls <<-E)\"\nrm a\nE\n": false,
		"ls ${x:-$(ls <<E)}\nrm a\nE\n": false, "ls <<E $(ls <<F)\nrm a\nE\nrm a\nF\n": false,
		``: false, `ls "`: false, `[ -v 'a[$(rm)]' ]`: false,
	} {
		c, _ := ParseScript(command)
		if err := l.Allows(&c); (err == nil) != want || err != nil && !errors.Is(err, ErrNotAllowed) {
			t.Errorf("%s: %v, want allowed: %t", command, err, want)
		}
		if Any(&c) != nil {
			t.Errorf("%s is not any command", command)
		}
	}
}
