package policy

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Shell is what a shell command would do, as far as that can be known without
// running it. Commands are parsed, never searched: quoting hides nothing, and
// what is only known when the command runs counts as unknown.
type Shell struct {
	// Programs are the names of all programs that the command runs, in order, each
	// once: those in pipelines, lists, subshells, substitutions, functions, and
	// those that env, xargs, sudo, sh -c and the like run.
	//
	// The list is made so that mistakes are safe on both sides. A program called
	// by a path stands there as written and by its base name, one in capitals
	// also in lower case: a rule that allows ls does not allow ./ls, and one that
	// denies rm denies /bin/rm. [UnknownProgram] stands for what cannot be known: a
	// name that is made by an expansion, a wrapper with options, eval, a command
	// that changes the environment, and a command that cannot be parsed.
	Programs []string `json:"programs"`
	// Simple is one program with fixed arguments and nothing else: no operator,
	// redirect, expansion, substitution, pattern or assignment, and no program
	// that runs others. Such a command needs no shell to run.
	Simple bool `json:"simple"`
	// Args are the arguments of a simple command, unquoted, without the program.
	Args []string `json:"args"`
	// Redirects are the files that the command reads or writes by operators, and
	// Writes those that it may write; [UnknownProgram] where only the run would tell.
	Redirects []string `json:"redirects"`
	Writes    []string `json:"writes"`
	// ParseError says why the command could not be parsed; empty: it could.
	ParseError string `json:"parse_error"`
}

// UnknownProgram is listed where it cannot be known which program runs.
const UnknownProgram = "?"

// MaxShell is how long a command may be to be looked at, in bytes.
const MaxShell = 64 << 10

// maxShellDepth bounds commands inside of commands, as in sh -c.
const maxShellDepth = 8

// ErrShell is wrapped by every error about a command that cannot be parsed.
var ErrShell = errors.New("policy: not a shell command that can be judged")

// ParseShell reads a command as Bash does. With an error comes what is safe to
// believe: an unknown program.
func ParseShell(command string) (Shell, error) { return parseShell(command, 0) }

func parseShell(command string, depth int) (s Shell, err error) {
	defer func() {
		// The parser gets text of models; what surprises it must not get further.
		if v := recover(); v != nil {
			err = fmt.Errorf("%w: the parser gave up", ErrShell)
		}
		if err != nil {
			s = Shell{Programs: []string{UnknownProgram}, ParseError: err.Error()}
		}
	}()
	switch {
	case len(command) > MaxShell:
		return s, fmt.Errorf("%w: it is longer than %d bytes", ErrShell, MaxShell)
	case depth > maxShellDepth:
		return s, fmt.Errorf("%w: there are commands in commands, more than %d deep", ErrShell, maxShellDepth)
	case strings.ContainsRune(command, 0):
		return s, fmt.Errorf("%w: it holds a NUL", ErrShell)
	case nesting(command) > maxNesting:
		return s, fmt.Errorf("%w: it is nested too deeply", ErrShell)
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(command), "")
	if err != nil {
		return s, fmt.Errorf("%w: %v", ErrShell, err)
	}
	if len(file.Stmts) == 0 {
		return s, fmt.Errorf("%w: it is empty", ErrShell)
	}
	l := &looker{shell: &s, depth: depth, seen: map[string]bool{}}
	syntax.Walk(file, l.visit)
	s.Simple, s.Args = l.simple(file)
	return s, nil
}

// maxNesting bounds the brackets of a command, whose parser recurses.
const maxNesting = 2000

// nesting is at least as deep as the command's brackets are.
func nesting(command string) int {
	deepest, depth := 0, 0
	for i := range len(command) {
		switch command[i] {
		case '(', '{', '[':
			depth++
			deepest = max(deepest, depth)
		case ')', '}', ']':
			depth = max(depth-1, 0)
		}
	}
	return deepest
}

// looker collects what a command does.
type looker struct {
	shell *Shell
	depth int
	seen  map[string]bool
	// open are the nodes that are being walked, arithmetic how many of them
	// calculate.
	open       []syntax.Node
	arithmetic int
	// indirect says that a program runs others.
	indirect bool
}

// visit looks at one node. Nil ends the node that was opened last.
func (l *looker) visit(n syntax.Node) bool {
	if n == nil {
		last := l.open[len(l.open)-1]
		l.open = l.open[:len(l.open)-1]
		if calculates(last) {
			l.arithmetic--
		}
		return true
	}
	l.open = append(l.open, n)
	if calculates(n) {
		l.arithmetic++
	}
	switch n := n.(type) {
	case *syntax.CallExpr:
		l.call(n)
	case *syntax.DeclClause: // export, declare and the like change what runs
		l.program(n.Variant.Value)
		l.unknown()
	case *syntax.LetClause:
		l.unknown()
	case *syntax.Redirect:
		l.redirect(n)
	case *syntax.SglQuoted, *syntax.DblQuoted:
		// Bash evaluates quoted text in arithmetic, subscripts included.
		if l.arithmetic > 0 {
			l.unknown()
		}
	case *syntax.ParamExp:
		// A value is evaluated in arithmetic, as a name after !, and as a prompt
		// after @P.
		if l.arithmetic > 0 || n.Excl || n.Exp != nil && n.Exp.Op == syntax.OtherParamOps {
			l.unknown()
		}
	case *syntax.BinaryTest:
		switch n.Op {
		case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
			l.unknown()
		}
	case *syntax.UnaryTest:
		if n.Op == syntax.TsVarSet || n.Op == syntax.TsRefVar {
			l.unknown()
		}
	}
	return true
}

func calculates(n syntax.Node) bool {
	switch n.(type) {
	case *syntax.ArithmExp, *syntax.ArithmCmd, *syntax.LetClause, *syntax.CStyleLoop:
		return true
	default:
		return false
	}
}

func (l *looker) unknown() { l.add(UnknownProgram) }

func (l *looker) add(name string) {
	if !l.seen[name] {
		l.seen[name] = true
		l.shell.Programs = append(l.shell.Programs, name)
	}
}

// program lists a program by all the names that a rule may know it by.
func (l *looker) program(name string) {
	if name == "" {
		l.unknown()
		return
	}
	l.add(name)
	base := path.Base(name)
	l.add(base)
	l.add(strings.ToLower(base))
}

// call looks at one command with its arguments.
func (l *looker) call(c *syntax.CallExpr) {
	if len(c.Assigns) > 0 { // PATH, LD_PRELOAD, BASH_ENV, GIT_SSH_COMMAND, …
		l.unknown()
	}
	if len(c.Args) == 0 {
		return
	}
	words := make([]word, len(c.Args))
	for i, w := range c.Args {
		words[i].text, words[i].static = staticText(w)
	}
	l.run(words)
}

// word is an argument; one that is not static is known only when it runs.
type word struct {
	text   string
	static bool
}

// run lists the program that a list of words runs, and the ones that it runs in
// turn.
func (l *looker) run(words []word) {
	if !words[0].static {
		l.unknown()
		return
	}
	name := words[0].text
	l.program(name)
	args := words[1:]
	base := strings.ToLower(path.Base(name))
	if base == "find" || base == "fd" {
		l.finds(args)
		return
	}
	switch runners[base] {
	case runsText:
		l.indirect = true
		l.unknown()
	case runsRest:
		l.wraps(args, 0)
	case runsAfterOne:
		l.wraps(args, 1)
	case runsScript:
		l.script(args)
	case runsVariable:
		if slices.ContainsFunc(args, func(a word) bool { return !a.static || strings.HasPrefix(a.text, "-v") || a.text == "-R" }) {
			l.unknown()
		}
	}
}

// runner says how a program runs others.
type runner int

const (
	_ runner = iota
	// runsText evaluates text, changes what names mean, or runs programs in a way
	// that is not followed.
	runsText
	// runsRest runs the program that its arguments name, runsAfterOne the one
	// after its first.
	runsRest
	runsAfterOne
	// runsScript is a shell.
	runsScript
	// runsVariable evaluates the name of a variable, subscript included, with the
	// option -v or -R.
	runsVariable
)

// runners are the programs and builtins that run others.
var runners = map[string]runner{
	"eval": runsText, "source": runsText, ".": runsText, "trap": runsText, "alias": runsText, "unalias": runsText,
	"let": runsText, "read": runsText, "unset": runsText, "mapfile": runsText, "readarray": runsText, "hash": runsText,
	"enable": runsText, "export": runsText, "declare": runsText, "typeset": runsText, "local": runsText,
	"readonly": runsText, "getopts": runsText, "complete": runsText, "compgen": runsText, "bind": runsText,
	"fc": runsText, "shopt": runsText, "wait": runsText, "printf": runsVariable, "test": runsVariable, "[": runsVariable,
	"ssh": runsText, "su": runsText, "parallel": runsText, "watch": runsText, "script": runsText, "chroot": runsText,
	"unshare": runsText, "nsenter": runsText, "flock": runsText, "strace": runsText, "ltrace": runsText, "gdb": runsText,
	"busybox": runsText, "toybox": runsText, "entr": runsText, "at": runsText, "batch": runsText, "crontab": runsText,
	"systemd-run": runsText, "pkexec": runsText, "runuser": runsText, "setpriv": runsText, "expect": runsText,
	"fish": runsText, "csh": runsText, "tcsh": runsText, "pwsh": runsText, "cmd": runsText,
	"env": runsRest, "nohup": runsRest, "command": runsRest, "builtin": runsRest, "exec": runsRest, "sudo": runsRest,
	"doas": runsRest, "nice": runsRest, "ionice": runsRest, "setsid": runsRest, "stdbuf": runsRest, "xargs": runsRest,
	"time": runsRest, "chronic": runsRest, "caffeinate": runsRest,
	"timeout": runsAfterOne, "gtimeout": runsAfterOne, "chrt": runsAfterOne, "taskset": runsAfterOne,
	"sh": runsScript, "bash": runsScript, "dash": runsScript, "ash": runsScript, "zsh": runsScript, "ksh": runsScript, "mksh": runsScript,
}

// wraps follows a program that runs the one in its arguments, after so many of
// its own. Options are not followed: which of them take a value is each
// program's own.
func (l *looker) wraps(args []word, own int) {
	l.indirect = true
	for _, a := range args[:min(own, len(args))] {
		if !a.static || strings.HasPrefix(a.text, "-") {
			l.unknown()
			return
		}
	}
	args = args[min(own, len(args)):]
	switch {
	case len(args) == 0:
	case !args[0].static, strings.HasPrefix(args[0].text, "-"), strings.Contains(args[0].text, "="):
		l.unknown()
	default:
		l.run(args)
	}
}

// script follows a shell that is given its commands; any other use of one runs
// what cannot be seen.
func (l *looker) script(args []word) {
	l.indirect = true
	if len(args) < 2 || !args[0].static || args[0].text != "-c" || !args[1].static {
		l.unknown()
		return
	}
	inner, _ := parseShell(args[1].text, l.depth+1)
	for _, p := range inner.Programs {
		l.add(p)
	}
	l.shell.Redirects = append(l.shell.Redirects, inner.Redirects...)
	l.shell.Writes = append(l.shell.Writes, inner.Writes...)
}

// finds looks for the actions of find that run or delete something.
func (l *looker) finds(args []word) {
	for _, a := range args {
		switch {
		case !a.static, strings.HasPrefix(a.text, "-exec"), strings.HasPrefix(a.text, "-ok"),
			strings.HasPrefix(a.text, "--exec"), a.text == "-x", a.text == "-X", a.text == "-delete", strings.HasPrefix(a.text, "-fprint"), a.text == "-fls":
			l.indirect = true
			l.unknown()
			return
		}
	}
}

// redirect lists the file of an operator.
func (l *looker) redirect(r *syntax.Redirect) {
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc: // text, not a file
		return
	}
	target, ok := UnknownProgram, false
	if r.Word != nil {
		var text string
		if text, ok = staticText(r.Word); ok {
			target = text
		}
	}
	if ok && (r.Op == syntax.DplIn || r.Op == syntax.DplOut) && isDescriptor(target) {
		return
	}
	l.shell.Redirects = append(l.shell.Redirects, target)
	if r.Op != syntax.RdrIn && r.Op != syntax.DplIn {
		l.shell.Writes = append(l.shell.Writes, target)
	}
}

// isDescriptor reports whether the word after >& is a number, or closes one.
func isDescriptor(s string) bool {
	return s != "" && strings.Trim(strings.TrimSuffix(s, "-"), "0123456789") == ""
}

// simple reports whether a file is one program with fixed arguments.
func (l *looker) simple(f *syntax.File) (bool, []string) {
	if len(f.Stmts) != 1 || l.indirect || l.seen[UnknownProgram] {
		return false, nil
	}
	st := f.Stmts[0]
	call, ok := st.Cmd.(*syntax.CallExpr)
	if !ok || st.Semicolon.IsValid() || st.Negated || st.Background || st.Coprocess || st.Disown || len(st.Redirs) > 0 || len(call.Assigns) > 0 || len(call.Args) == 0 {
		return false, nil
	}
	argv := make([]string, len(call.Args))
	for i, w := range call.Args {
		if argv[i], ok = staticText(w); !ok {
			return false, nil
		}
	}
	if argv[0] == "" {
		return false, nil
	}
	return true, argv[1:]
}

// staticText is what a word is whenever it runs; false where that depends on
// anything.
func staticText(w *syntax.Word) (string, bool) {
	var b strings.Builder
	for i, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			if !unquoted(&b, p.Value, i == 0) {
				return "", false
			}
		case *syntax.SglQuoted:
			if p.Dollar {
				return "", false
			}
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			if p.Dollar || !quoted(&b, p.Parts) {
				return "", false
			}
		default:
			return "", false
		}
	}
	if braced(w) {
		return "", false
	}
	return b.String(), true
}

// unquoted writes a literal outside of quotes, without its escapes.
func unquoted(b *strings.Builder, s string, first bool) bool {
	if first && strings.HasPrefix(s, "~") {
		return false
	}
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '*', '?', '[':
			return false
		case '\\':
			if i++; i == len(s) {
				return false
			}
		}
		b.WriteByte(s[i])
	}
	return true
}

// quoted writes what stands in double quotes.
func quoted(b *strings.Builder, parts []syntax.WordPart) bool {
	for _, part := range parts {
		lit, ok := part.(*syntax.Lit)
		if !ok {
			return false
		}
		s := lit.Value
		for i := 0; i < len(s); i++ {
			if s[i] == '\\' && i+1 < len(s) && strings.IndexByte("$`\"\\\n", s[i+1]) >= 0 {
				i++
				if s[i] == '\n' {
					continue
				}
			}
			b.WriteByte(s[i])
		}
	}
	return true
}

// braced reports whether a word may be one of several, as a{b,c} and {1..3} are.
func braced(w *syntax.Word) bool {
	open := slices.ContainsFunc(w.Parts, func(p syntax.WordPart) bool {
		lit, ok := p.(*syntax.Lit)
		return ok && strings.Contains(lit.Value, "{")
	})
	if !open {
		return false
	}
	return slices.ContainsFunc(w.Parts, func(p syntax.WordPart) bool {
		lit, ok := p.(*syntax.Lit)
		return ok && (strings.Contains(lit.Value, ",") || strings.Contains(lit.Value, ".."))
	})
}
