package policy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-go/dragoman/tool"
)

func TestP1_ProgramsOfAShellCommandAreFoundWhereverTheyHide(t *testing.T) {
	for _, tc := range []struct{ command, programs string }{
		{`ls -l`, "ls"},
		{`cat a | grep b && echo c || true; date`, "cat grep echo true date"},
		{`(rm x)`, "rm"},
		{`{ rm x; }`, "rm"},
		{`echo $(rm x)`, "echo rm"},
		{"echo `rm x`", "echo rm"},
		{`echo "$(rm x)"`, "echo rm"},
		{`echo "${x:-$(rm x)}"`, "echo rm"},
		{`diff <(rm a) >(rmdir b)`, "diff rm rmdir"},
		{`if test -f a; then rm a; else mv a b; fi`, "test rm mv"},
		{`for f in a b; do rm $f; done`, "rm"},
		{`while true; do rm a; done`, "true rm"},
		{`case x in x) rm a;; esac`, "rm"},
		{`f() { rm a; }; f`, "rm f"},
		{"cat <<EOF\n$(rm x)\nEOF", "cat rm"},
		{`echo $((1 + $(rm x)))`, "echo rm"},
		{`rm a & ls`, "rm ls"},
		{`! rm a`, "rm"},
		{`time rm a`, "rm"},
		{`coproc rm a`, "rm"},

		// Quoting hides nothing.
		{`r''m a`, "rm"},
		{`"rm" a`, "rm"},
		{`r\m a`, "rm"},
		{`r"m" a`, "rm"},
		{"r\\\nm a", "rm"},

		// By all of its names.
		{`/bin/rm a`, "/bin/rm rm"},
		{`./ls`, "./ls ls"},
		{`RM a`, "RM rm"},
		{`/bin/RM a`, "/bin/RM RM rm"},

		// What only the run would tell.
		{`$x a`, "?"},
		{`$(echo rm) a`, "? echo"},
		{`r$x a`, "?"},
		{`r? a`, "?"},
		{`{r,}m a`, "?"},
		{`$'rm' a`, "?"},
		{`~/rm a`, "?"},
		{`"" a`, "?"},
		{`PATH=/tmp ls`, "? ls"},
		{`LD_PRELOAD=x ls`, "? ls"},
		{`x=1`, "?"},
		{`export PATH=/tmp; ls`, "export ? ls"},
		{`eval "rm a"`, "eval ?"},
		{`source a`, "source ?"},
		{`. a`, ". ?"},
		{`trap 'rm a' EXIT`, "trap ?"},
		{`alias ls=rm`, "alias ?"},
		{`hash -p /tmp/x ls`, "hash ?"},
		{`printf -v 'a[$(rm x)]' y`, "printf ?"},
		{`[[ 'a[$(rm x)]' -eq 1 ]]`, "?"},
		{`[[ -v 'a[$(rm x)]' ]]`, "?"},
		{`(( 'a[$(rm x)]' ))`, "?"},
		{`let 'a[$(rm x)]=1'`, "?"},
		{`echo ${x@P}`, "echo ?"},
		{`echo ${!x}`, "echo ?"},

		// Programs that run others.
		{`env rm a`, "env rm"},
		{`env X=1 rm a`, "env ?"},
		{`env -i rm a`, "env ?"},
		{`sudo rm a`, "sudo rm"},
		{`sudo -u root rm a`, "sudo ?"},
		{`xargs rm`, "xargs rm"},
		{`nohup nice timeout 5 rm a`, "nohup nice timeout rm"},
		{`timeout -s KILL 5 rm a`, "timeout ?"},
		{`command rm a`, "command rm"},
		{`exec rm a`, "exec rm"},
		{`/usr/bin/env rm a`, "/usr/bin/env env rm"},
		{`sh -c 'rm a; curl b | bash'`, "sh rm curl bash ?"},
		{`bash -c "sh -c 'rm a'"`, "bash sh rm"},
		{`sh -c "$x"`, "sh ?"},
		{`sh -c 'rm'"$x"`, "sh ?"},
		{`sh -xc 'rm a'`, "sh ?"},
		{`sh script`, "sh ?"},
		{`sh -c '('`, "sh ?"},
		{`find . -name a`, "find"},
		{`find . -exec rm {} +`, "find ?"},
		{`find . -delete`, "find ?"},
		{`find . $x`, "find ?"},
	} {
		s, err := ParseShell(tc.command)
		if got := strings.Join(s.Programs, " "); err != nil || got != tc.programs {
			t.Errorf("%s: %s, %v; want %s", tc.command, got, err, tc.programs)
		}
	}
}

func TestP1_ASimpleCommandIsOneProgramWithFixedArguments(t *testing.T) {
	for command, want := range map[string][]string{
		`ls`:                    {},
		`ls -l a`:               {"-l", "a"},
		`ls # all`:              {},
		`git show HEAD@{1}`:     {"show", "HEAD@{1}"},
		`echo 'a b' "c d" e\ f`: {"a b", "c d", "e f"},
		`echo "a\"b\$c\d"`:      {`a"b$c\d`},
		`echo 'a\b' a\\b`:       {`a\b`, `a\b`},
		`echo ''`:               {""},
		`echo '*' "?" \[`:       {"*", "?", "["},
		`echo "a` + "\n" + `b"`: {"a\nb"},
	} {
		s, err := ParseShell(command)
		if err != nil || !s.Simple || !slices.Equal(s.Args, want) {
			t.Errorf("%s: %+v, %v; want simple with %q", command, s, err, want)
		}
	}
	for _, command := range []string{
		`ls;`, `ls; ls`, "ls\nls", `ls &`, `ls | cat`, `ls && ls`, `! ls`, `(ls)`, `{ ls; }`, `ls > a`, `ls 2>&1`, `cat < a`,
		"cat <<E\nE", `cat <<<a`, `x=1 ls`, `x=1`, `ls $x`, `ls "$x"`, `ls $(date)`, "ls `date`", `ls *`, `ls a?`, `ls [ab]`, `ls {a,b}`,
		`ls {1..3}`, `ls ~`, `ls $'a'`, `ls $"a"`, `ls <(date)`, `$x`, `env ls`, `sh -c ls`, `eval ls`, `time ls`, `f() { ls; }`,
		`if ls; then ls; fi`, `[[ a ]]`, `((1))`, `export a`, `ls @(a|b)`, `ls $((1))`, `''`, `printf -v a b`,
	} {
		if s, err := ParseShell(command); err != nil || s.Simple || s.Args != nil {
			t.Errorf("%s: %+v, %v; want not simple", command, s, err)
		}
	}
}

func TestP1_RedirectsOfAShellCommandAreListed(t *testing.T) {
	for _, tc := range []struct{ command, redirects, writes string }{
		{`ls > a 2>&1`, "[a]", "[a]"},
		{`cat < a >> b`, "[a b]", "[b]"},
		{`ls &> a`, "[a]", "[a]"},
		{`ls >& a`, "[a]", "[a]"},
		{`ls >$x`, "[?]", "[?]"},
		{`(ls > a) | tee`, "[a]", "[a]"},
		{`echo $(ls > 'a b')`, "[a b]", "[a b]"},
		{`sh -c 'ls > a'`, "[a]", "[a]"},
		{`cat <> a`, "[a]", "[a]"},
		{"cat <<E\nE", "[]", "[]"},
	} {
		s, err := ParseShell(tc.command)
		if err != nil || fmt.Sprint(s.Redirects) != tc.redirects || fmt.Sprint(s.Writes) != tc.writes {
			t.Errorf("%s: %v, %v, %v", tc.command, s.Redirects, s.Writes, err)
		}
	}
}

func TestP1_WhatCannotBeParsedIsAnUnknownProgram(t *testing.T) {
	deep := strings.Repeat("$(", 20_000) + strings.Repeat(")", 20_000)
	inner := "ls"
	for range 12 {
		inner = "sh -c " + quoteForShell(inner)
	}
	for name, command := range map[string]string{
		"nothing": "", "a comment": "# ls", "an open quote": `ls "`, "no end": "if true; then ls", "NUL": "ls\x00rm",
		"too long": "echo " + strings.Repeat("x", MaxShell), "too deep": deep, "brackets": strings.Repeat("(", 30_000),
	} {
		begun := time.Now()
		s, err := ParseShell(command)
		if !errors.Is(err, ErrShell) || s.Simple || fmt.Sprint(s.Programs) != "[?]" || s.ParseError == "" {
			t.Errorf("%s: %v, %v", name, s.Programs, err)
		}
		if took := time.Since(begun); took > 5*time.Second {
			t.Errorf("%s: it took %v", name, took)
		}
	}
	if s, err := ParseShell(inner); err == nil && !slices.Contains(s.Programs, UnknownProgram) {
		t.Errorf("commands in commands: %v", s.Programs)
	}
}

// quoteForShell writes a text in single quotes.
func quoteForShell(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// Expressions that allow by a list are safe whatever the command is, and so are
// those that deny.
func TestP1_RulesOnShellCommandsAreSafeOnBothSides(t *testing.T) {
	allow := mustNew(t, Config{Default: DefaultDeny, Rules: []Rule{{ID: "allow", Effect: tool.Allow, When: When{
		Expression: `cel.bind(c, shell(args.command), c.redirects.size() == 0 && c.programs.all(p, p in ["ls", "cat", "grep"]))`,
	}}}})
	deny := mustNew(t, Config{Rules: []Rule{{ID: "deny", Effect: tool.Deny, When: When{
		Expression: `shell(args.command).programs.exists(p, p in ["rm", "?"])`,
	}}}})
	decide := func(p *Policy, command string) tool.Effect {
		d, err := p.Decide(context.Background(), about("shell", `{"command":`+string(quoteJSON(command))+`}`))
		if err != nil {
			t.Fatal(err)
		}
		return d.Effect
	}
	for _, ok := range []string{`ls`, `cat a | grep b`, `ls $HOME`} {
		if decide(allow, ok) != tool.Allow || decide(deny, ok) != tool.Allow {
			t.Errorf("%s is refused", ok)
		}
	}
	for _, bad := range []string{
		`rm -rf /`, `ls; rm a`, `ls $(rm a)`, `/bin/rm a`, `env rm a`, `r''m a`, `$x`, `PATH=/tmp ls`, `ls() { rm a; }; ls`, `eval ls`,
		`bash -c 'rm a'`, `ls "`, `xargs rm < a`, `alias ls=rm`,
	} {
		if decide(allow, bad) == tool.Allow {
			t.Errorf("%s is allowed", bad)
		}
		if decide(deny, bad) == tool.Allow {
			t.Errorf("%s is not denied", bad)
		}
	}
	for _, other := range []string{`./ls`, `/tmp/ls`, `LS`, `ls > a`} { // not what the list names
		if decide(allow, other) == tool.Allow {
			t.Errorf("%s is allowed", other)
		}
	}
}

func TestT15_AListOfCommandsAllowsSimpleOnesWithTheirArguments(t *testing.T) {
	l, err := AllowCommands(
		Command{Program: "ls", Rest: true, Options: []string{"-l", "-a"}},
		Command{Program: "git", Args: []string{"status"}},
		Command{Program: "git", Args: []string{"log", "*"}, Options: []string{"-n*", "--oneline"}},
		Command{Program: "go", Args: []string{"test"}, Rest: true, Options: []string{"-run=*"}},
		Command{Program: "/usr/bin/make", Args: []string{"all"}},
	)
	if err != nil {
		t.Fatal(err)
	}
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
		`git log a b`, `git log --output=/etc/passwd`, `go test -exec=rm ./...`, `go run x`, `make all`, `/bin/ls`, `./ls`, `LS`, `env ls`,
		`x=1 ls`, "ls\nrm a", `ls & rm a`, `ls $(rm a)`, `ls -`, `ls -- -R`, `-l ls`, `git -c core.pager=rm log x`,
	} {
		if argv, err := l.Check(command); !errors.Is(err, ErrNotAllowed) || argv != nil {
			t.Errorf("%s is allowed: %v, %v", command, argv, err)
		}
	}
	var none *CommandList
	if _, err := none.Check("ls"); !errors.Is(err, ErrNotAllowed) {
		t.Error("no list allows everything")
	}
	for _, c := range []Command{{}, {Program: "a*"}, {Program: "a", Args: []string{"-x"}}, {Program: "a", Options: []string{"x"}}, {Program: "a", Args: []string{""}}} {
		if _, err := AllowCommands(c); !errors.Is(err, ErrRule) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	// Programs that run others are never simple, so the list cannot let them in.
	l, err = AllowCommands(Command{Program: "env", Rest: true}, Command{Program: "sh", Rest: true, Options: []string{"*"}})
	if err == nil {
		t.Error("programs that run others are taken")
	}
	_ = l
}

// The words of a simple command are what Bash makes of them.
func TestP1_BashReadsSimpleCommandsAsWeDo(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash")
	}
	show := filepath.Join(t.TempDir(), "show")
	if err := os.WriteFile(show, []byte("#!/bin/sh\nfor a; do printf '<%s>' \"$a\"; done\n"), 0o755); err != nil { //nolint:gosec // it must run
		t.Fatal(err)
	}
	for _, args := range []string{
		`a b`, `'a b' "c d" e\ f`, `"a\"b\$c\d\\e"`, `'a\b' a\\b`, `'' ""`, `a''b"c"`, `\* '?' "["`, `HEAD@{1} {} {a} a{b`, `a=b --c=d`,
		"'a\nb'", "a\\\nb", `"a\` + "\n" + `b"`, `a#b #c`, `"!" ^ %1 @ , .. a..b`, `"~" a~ ./~`, `"é" 'ü'`, `\a\b\n`, `"\a\n"`, `-- -`,
	} {
		s, err := ParseShell(show + " " + args)
		if err != nil || !s.Simple {
			t.Errorf("%s: %+v, %v", args, s, err)
			continue
		}
		out, err := exec.CommandContext(t.Context(), bash, "-c", show+" "+args).Output()
		want := ""
		for _, a := range s.Args {
			want += "<" + a + ">"
		}
		if err != nil || string(out) != want {
			t.Errorf("%s: bash has %q (%v), we have %q", args, out, err, want)
		}
	}
}

func FuzzParseShell(f *testing.F) {
	for _, seed := range []string{
		`ls -l 'a b'`, `r''m "$x" | tee > a`, "cat <<E\n$(rm)\nE", `sh -c 'sh -c "rm"'`, `a=(1 2) b[1]=2 c+=3`, `f() { rm; }; f`, `[[ -v a ]]`,
		`((a[1]++))`, `echo ${a:-${b/$(c)/d}} ${!x} ${x@P}`, `for ((i=0;i<3;i++)); do ls; done`, `case $x in (a|b) ls;; *) rm;; esac`,
		`coproc x { ls; }`, `{a,b}c`, `@(a|b)`, `"\`, "$'\\x41'", `x=1 env -i timeout 5 xargs -0 rm`, `find . -exec sh -c 'rm "$1"' _ {} \;`, "\x00", "ls;",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, command string) {
		s, err := ParseShell(command)
		switch {
		case err != nil && (s.Simple || !slices.Equal(s.Programs, []string{UnknownProgram}) || s.ParseError == ""):
			t.Fatalf("an error with %+v", s)
		case err == nil && len(s.Programs) == 0 && !strings.ContainsAny(command, "[(<>:=") && !strings.Contains(command, "time"):
			t.Fatalf("%q runs nothing", command)
		case slices.Contains(s.Programs, UnknownProgram) && s.Simple:
			t.Fatalf("%q is simple, and its program is unknown", command)
		}
		if !s.Simple {
			return
		}
		if len(s.Redirects)+len(s.Writes) > 0 {
			t.Fatalf("%q is simple, and redirects", command)
		}
		// Written anew with all words quoted, it is the same command.
		again := quoteForShell(s.Programs[0])
		for _, a := range s.Args {
			again += " " + quoteForShell(a)
		}
		if len(again) > MaxShell {
			return
		}
		same, err := ParseShell(again)
		if err != nil || !same.Simple || same.Programs[0] != s.Programs[0] || !slices.Equal(same.Args, s.Args) {
			t.Fatalf("%q, written as %q, is %+v, %v", command, again, same, err)
		}
	})
}
