package shell

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestP1_HiddenProgramsAreFound(t *testing.T) {
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

		// All names of a program are listed.
		{`/bin/rm a`, "/bin/rm rm"},
		{`./ls`, "./ls ls"},
		{`RM a`, "RM rm"},
		{`/bin/RM a`, "/bin/RM RM rm"},

		// Known only when the command runs.
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
		{"ls `ls <<E`\nrm a\nE\n", "ls ?"},
		{`printf -v 'a[$(rm x)]' y`, "printf ?"},
		{`[[ 'a[$(rm x)]' -eq 1 ]]`, "?"},
		{`[[ -v 'a[$(rm x)]' ]]`, "?"},
		{`(( 'a[$(rm x)]' ))`, "?"},
		{`let 'a[$(rm x)]=1'`, "?"},
		{`echo ${x@P}`, "echo ?"},
		{`echo ${!x}`, "echo ?"},
		{`echo ${x:=y}`, "echo ?"},
		{`echo ${a[x]}`, "echo ?"},
		{`echo ${a[1]} ${a[@]} ${#a[*]}`, "echo"},
		{`echo ${a:x}`, "echo ?"},
		{`((x))`, "?"},
		{`((1 + 2))`, ""},
		{`echo $((x))`, "echo ?"},
		{`echo $((1 + $(cat "a b" $x)))`, "echo cat"},
		{`for ((PATH=1;;)); do ls; done`, "? ls"},
		{`for PATH in a; do ls; done`, "? ls"},
		{`for http_proxy in a; do ls; done`, "? ls"},
		{`select PATH in a; do ls; done`, "? ls"},
		{`coproc PATH { ls; }`, "? ls"},
		{`{PATH}>a ls`, "ls ?"},

		// Bash does not treat single quotes in double quotes as quotes; our parser does.
		{`echo "${x:-'$(rm)'}"`, "echo ?"},
		{`echo "${x:-'}"; rm a; "'}"`, "echo ?"},
		{"cat <<E\n${x:-'$(rm)'}\nE", "cat ?"},
		{`echo "${x:-$(ls 'a b')}"`, "echo ls"},

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
		{`sh -c '[[ a || rm ]]'`, "sh [[ rm"},
		{`[ -f a ] && [ -v x ]`, "[ ?"},
		{`find . -name a`, "find"},
		{`find . -exec rm {} +`, "find ?"},
		{`find . -delete`, "find ?"},
		{`find . -xdev -name a`, "find"},
		{`gfind . -exec rm {} +`, "gfind ?"},
		{`fd -H a`, "fd"},
		{`fd a -x rm`, "fd ?"},
		{`fd a -Hx rm`, "fd ?"},
		{`fd a -HIX rm`, "fd ?"},
		{`fd a -xrm`, "fd ?"},
		{`fdfind a --exec rm`, "fdfind ?"},
		{`gxargs rm`, "gxargs rm"},
		{`choom -n 0 -- rm a`, "choom ?"},
		{`rbash -c 'rm a'`, "rbash rm"},
		{`jobs -x rm a`, "jobs ?"},
		{`find . $x`, "find ?"},
	} {
		s, err := Parse(tc.command)
		if got := strings.Join(s.Programs, " "); err != nil || got != tc.programs {
			t.Errorf("%s: %s, %v; want %s", tc.command, got, err, tc.programs)
		}
	}
}

func TestP1_SimpleCommandIsOneProgramWithFixedArguments(t *testing.T) {
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
		s, err := Parse(command)
		if err != nil || !s.Simple || !slices.Equal(s.Args, want) {
			t.Errorf("%s: %+v, %v; want simple with %q", command, s, err, want)
		}
	}
	for _, command := range []string{
		`ls;`, `ls; ls`, "ls\nls", `ls &`, `ls | cat`, `ls && ls`, `! ls`, `(ls)`, `{ ls; }`, `ls > a`, `ls 2>&1`, `cat < a`,
		"cat <<E\nE", `cat <<<a`, `x=1 ls`, `x=1`, `ls $x`, `ls "$x"`, `ls $(date)`, "ls `date`", `ls *`, `ls a?`, `ls [ab]`, `ls {a,b}`,
		`ls {1..3}`, `ls ~`, `ls --x=~`, `ls a:~`, `ls $'a'`, `ls $"a"`, `ls <(date)`, `$x`, `env ls`, `sh -c ls`, `eval ls`, `time ls`, `f() { ls; }`,
		`if ls; then ls; fi`, `[[ a ]]`, `((1))`, `export a`, `ls @(a|b)`, `ls $((1))`, `''`, `printf -v a b`,
	} {
		if s, err := Parse(command); err != nil || s.Simple || s.Args != nil {
			t.Errorf("%s: %+v, %v; want not simple", command, s, err)
		}
	}
}

func TestP1_RedirectsAreListed(t *testing.T) {
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
		s, err := Parse(tc.command)
		if err != nil || fmt.Sprint(s.Redirects) != tc.redirects || fmt.Sprint(s.Writes) != tc.writes {
			t.Errorf("%s: %v, %v, %v", tc.command, s.Redirects, s.Writes, err)
		}
	}
}

// A script has the effects of any shell.
func TestT15_ScriptsOfEveryShellAreParsed(t *testing.T) {
	if c, err := ParseScript(`cat <(ls)`); !errors.Is(err, ErrUnreadable) || fmt.Sprint(c.Programs) != "[?]" {
		t.Errorf("not every sh can read this: %+v, %v", c, err)
	}
	c, err := ParseScript(`[[ a > f || x=1 ]]`)
	if err != nil || fmt.Sprint(c.Programs, c.Redirects, c.Writes) != "[[[ ? ]]] [f] [f]" || c.hidden == "" || c.Simple {
		t.Errorf("%+v, %v", c, err)
	}
	c, err = ParseScript(`ls 'a b'`)
	if words, needs := c.Words(); err != nil || needs != nil || !c.Simple || fmt.Sprintf("%q", words) != `["ls" "a b"]` {
		t.Errorf("%+v, %v", c, err)
	}
	other := Command{read: true, needs: errors.New("it takes a shell")}
	c.join(&other)
	if words, needs := c.Words(); c.Simple || c.Args != nil || words != nil || needs == nil {
		t.Errorf("one shell needs more than words: %+v", c)
	}
}

func TestP1_UnparsableCommandIsUnknown(t *testing.T) {
	deep := strings.Repeat("$(", 20_000) + strings.Repeat(")", 20_000)
	inner := "ls"
	for range 12 {
		inner = "sh -c " + quoteForShell(inner)
	}
	for name, command := range map[string]string{
		"nothing": "", "a comment": "# ls", "an open quote": `ls "`, "no end": "if true; then ls", "NUL": "ls\x00rm",
		"a comment that goes on": "true; echo a # \\\nid -u", "a joined expansion": "echo \"$\\\n(id -u)\"; true", "a joined name": "r\\\nm a",
		"a carriage return": "echo a \\\r\nid -u; true", "a joined end": "cat <<E\n\\\nE\nid -u\nE\n", "an end with a carriage return": "cat <<E\r\nE\necho '\nE\r\nid -u\n: '",
		"too long": "echo " + strings.Repeat("x", MaxCommand), "too deep": deep, "brackets": strings.Repeat("(", 30_000),
	} {
		begun := time.Now()
		s, err := Parse(command)
		if !errors.Is(err, ErrUnreadable) || s.Simple || fmt.Sprint(s.Programs) != "[?]" || s.ParseError == "" {
			t.Errorf("%s: %v, %v", name, s.Programs, err)
		}
		if took := time.Since(begun); took > 5*time.Second {
			t.Errorf("%s: it took %v", name, took)
		}
	}
	if s, err := Parse(inner); err == nil && !slices.Contains(s.Programs, unknown) {
		t.Errorf("commands in commands: %v", s.Programs)
	}
}

// quoteForShell writes a text in single quotes.
func quoteForShell(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// Bash splits a simple command into the same words.
func TestP1_SimpleCommandsMatchBash(t *testing.T) {
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
		"'a\nb'", `a#b #c`, `"!" ^ %1 @ , .. a..b`, `"~" a~ ./~`, `"é" 'ü'`, `\a\b\n`, `"\a\n"`, `-- -`,
	} {
		s, err := Parse(show + " " + args)
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

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`ls -l 'a b'`, `r''m "$x" | tee > a`, "cat <<E\n$(rm)\nE", `sh -c 'sh -c "rm"'`, `a=(1 2) b[1]=2 c+=3`, `f() { rm; }; f`, `[[ -v a ]]`,
		`((a[1]++))`, `echo ${a:-${b/$(c)/d}} ${!x} ${x@P}`, `for ((i=0;i<3;i++)); do ls; done`, `case $x in (a|b) ls;; *) rm;; esac`,
		`coproc x { ls; }`, `{a,b}c`, `@(a|b)`, `"\`, "$'\\x41'", `x=1 env -i timeout 5 xargs -0 rm`, `find . -exec sh -c 'rm "$1"' _ {} \;`, "\x00", "ls;", "case 0 in 0)esac",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, command string) {
		s, err := Parse(command)
		switch {
		case err != nil && (s.Simple || !slices.Equal(s.Programs, []string{unknown}) || s.ParseError == ""):
			t.Fatalf("an error with %+v", s)
		case err == nil && len(s.Programs) == 0 && !strings.ContainsAny(command, "[(<>:=") && !strings.Contains(command, "time") && !strings.Contains(command, "case"):
			t.Fatalf("%q runs nothing", command)
		case slices.Contains(s.Programs, unknown) && s.Simple:
			t.Fatalf("%q is simple, and its program is unknown", command)
		}
		if !s.Simple {
			return
		}
		if len(s.Redirects)+len(s.Writes) > 0 {
			t.Fatalf("%q is simple, and redirects", command)
		}
		// With all words quoted, it is the same command.
		again := quoteForShell(s.Programs[0])
		for _, a := range s.Args {
			again += " " + quoteForShell(a)
		}
		if len(again) > MaxCommand {
			return
		}
		same, err := Parse(again)
		if err != nil || !same.Simple || same.Programs[0] != s.Programs[0] || !slices.Equal(same.Args, s.Args) {
			t.Fatalf("%q, written as %q, is %+v, %v", command, again, same, err)
		}
	})
}
