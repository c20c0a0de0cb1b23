package shell

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// looker collects what a command does.
type looker struct {
	command *Command
	depth   int
	seen    map[string]bool
	// open are the nodes that are being walked, arithmetic how many of them
	// calculate, expansions how many expand a variable.
	open                   []syntax.Node
	arithmetic, expansions int
}

// visit looks at one node. Nil ends the node that was opened last.
func (l *looker) visit(n syntax.Node) bool {
	if n == nil {
		last := l.open[len(l.open)-1]
		l.open = l.open[:len(l.open)-1]
		l.count(last, -1)
		return true
	}
	l.open = append(l.open, n)
	l.count(n, 1)
	switch n := n.(type) {
	case *syntax.CallExpr:
		l.call(n)
	case *syntax.DeclClause: // export, declare and the like change what runs
		l.program(n.Variant.Value)
		l.hides(setting)
	case *syntax.LetClause:
		l.hides(calculation)
	case *syntax.Redirect:
		l.redirect(n)
	case *syntax.WordIter:
		l.loops(n.Name.Value)
	case *syntax.CoprocClause:
		if n.Name != nil {
			l.hides(setting)
		}
	case *syntax.Lit, *syntax.SglQuoted, *syntax.DblQuoted:
		l.text(n)
	case *syntax.ParamExp:
		l.expansion(n)
	case *syntax.BinaryTest:
		switch n.Op {
		case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
			l.hides(calculation)
		}
	case *syntax.UnaryTest:
		if n.Op == syntax.TsVarSet || n.Op == syntax.TsRefVar {
			l.hides(calculation)
		}
	}
	return true
}

// calculation is what hides commands where a shell calculates: it evaluates the
// values of names, subscripts included.
const calculation = "only plain numbers can be calculated with: names and texts may run commands"

// setting is what hides commands where a variable is set: PATH, LD_PRELOAD and
// many others say what runs.
const setting = "variables cannot be set: they change what programs do"

func (l *looker) count(n syntax.Node, by int) {
	switch n.(type) {
	case *syntax.ArithmExp, *syntax.ArithmCmd, *syntax.LetClause, *syntax.CStyleLoop:
		l.arithmetic += by
	case *syntax.ParamExp:
		l.expansions += by
	}
}

// text looks at text that is more than itself where it stands.
func (l *looker) text(n syntax.Node) {
	lit, plain := n.(*syntax.Lit)
	_, single := n.(*syntax.SglQuoted)
	calculates, expands := l.within()
	switch {
	case calculates && (!plain || !isNumber(lit.Value)):
		l.hides(calculation)
	case expands && single:
		// In double quotes and here documents these are no quotes, and what we take
		// for quoted text may be commands.
		l.hides("single quotes within ${…} are not allowed: shells read them differently")
	}
}

// within reports whether what is being looked at is part of a calculation, or of
// the expansion of a variable. A command within those is neither.
func (l *looker) within() (calculates, expands bool) {
	if l.arithmetic+l.expansions == 0 {
		return false, false
	}
	for _, n := range slices.Backward(l.open) {
		switch n.(type) {
		case *syntax.ArithmExp, *syntax.ArithmCmd, *syntax.LetClause, *syntax.CStyleLoop:
			return true, expands
		case *syntax.ParamExp:
			expands = true
		case *syntax.Stmt:
			return false, expands
		}
	}
	return false, expands
}

// expansion looks for values that are evaluated: in arithmetic, which subscripts
// and substrings are too, as a name after !, and as a prompt after @P; and for
// those that set a variable.
func (l *looker) expansion(n *syntax.ParamExp) {
	calculates, _ := l.within()
	op := syntax.ParExpOperator(0)
	if n.Exp != nil {
		op = n.Exp.Op
	}
	switch {
	case calculates, n.Slice != nil, n.Index != nil && !isPlainIndex(n.Index):
		l.hides(calculation)
	case n.Excl, op == syntax.OtherParamOps:
		l.hides("${!…} and ${…@…} are not allowed: they may run commands")
	case op == syntax.AssignUnset, op == syntax.AssignUnsetOrNull:
		l.hides(setting)
	}
}

// isPlainIndex reports whether a subscript is a number, or stands for all.
func isPlainIndex(x syntax.ArithmExpr) bool {
	w, ok := x.(*syntax.Word)
	if !ok {
		return false
	}
	s := w.Lit()
	return s == "@" || s == "*" || isNumber(s)
}

func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// loops looks at the variable of a loop. The environment's are in capitals, but
// for those of proxies.
func (l *looker) loops(name string) {
	if name != strings.ToLower(name) || strings.HasSuffix(name, "_proxy") {
		l.hides("the variable of a loop must be in lower case: others change what programs do")
	}
}

// hides notes that something may run that cannot be known, beside the calls.
func (l *looker) hides(why string) {
	l.add(unknown)
	l.command.hidden = first(l.command.hidden, why)
}

func (l *looker) add(name string) {
	if !l.seen[name] {
		l.seen[name] = true
		l.command.Programs = append(l.command.Programs, name)
	}
}

// program lists a program by all the names that a rule may know it by.
func (l *looker) program(name string) {
	l.add(name)
	base := path.Base(name)
	l.add(base)
	l.add(strings.ToLower(base))
}

// call looks at one command with its arguments.
func (l *looker) call(c *syntax.CallExpr) {
	if len(c.Assigns) > 0 { // PATH, LD_PRELOAD, BASH_ENV, GIT_SSH_COMMAND, …
		l.hides(setting)
	}
	if len(c.Args) == 0 {
		return
	}
	words := make([]word, len(c.Args))
	for i, w := range c.Args {
		text, err := literal(w)
		words[i] = word{text: text, static: err == nil}
	}
	l.command.calls = append(l.command.calls, l.run(words, false, 0))
}

// run lists the program that a list of words runs, and the ones that it runs in
// turn. More words may come from its input.
func (l *looker) run(words []word, more bool, depth int) call {
	c := call{words: words, more: more}
	name := words[0].text
	switch {
	case !words[0].static || name == "":
		return l.conceals(c, "the name of the program must be known before it runs")
	case depth > maxDepth:
		return l.conceals(c, "too many programs run other programs")
	}
	l.program(name)
	args := words[1:]
	base := strings.ToLower(path.Base(name))
	switch runners[base] {
	case runsText:
		l.command.indirect = true
		return l.conceals(c, runsUnseen(name))
	case runsRest:
		return l.wraps(c, args, 0, depth)
	case runsInput:
		c.more = true
		return l.wraps(c, args, 0, depth)
	case runsAfterOne:
		return l.wraps(c, args, 1, depth)
	case runsScript:
		return l.script(c, args)
	case runsFound, runsEach:
		acts := actsOnFound
		if runners[base] == runsEach {
			acts = actsOnEach
		}
		if slices.ContainsFunc(args, acts) {
			l.command.indirect = true
			return l.conceals(c, runsUnseen(name))
		}
	case runsVariable:
		if slices.ContainsFunc(args, func(a word) bool { return !a.static || strings.HasPrefix(a.text, "-v") || a.text == "-R" }) {
			return l.conceals(c, "variables cannot be set or read by "+name)
		}
	}
	return c
}

func runsUnseen(name string) string { return name + " runs commands that cannot be checked here" }

// conceals notes that a call may run what cannot be known.
func (l *looker) conceals(c call, why string) call {
	l.add(unknown)
	c.hidden = why
	return c
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
	// runsInput is like runsRest, with words of its input added.
	runsInput
	// runsScript is a shell.
	runsScript
	// runsFound has actions, for the files that it finds, that run or delete
	// something; runsEach has them as flags of one letter too.
	runsFound
	runsEach
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
	"fish": runsText, "csh": runsText, "tcsh": runsText, "pwsh": runsText, "powershell": runsText, "cmd": runsText, "jobs": runsText,
	"prlimit": runsText, "choom": runsText, "uclampset": runsText, "setarch": runsText, "linux32": runsText, "linux64": runsText,
	"numactl": runsText, "cgexec": runsText, "capsh": runsText, "fakeroot": runsText, "faketime": runsText, "firejail": runsText,
	"bwrap": runsText, "unbuffer": runsText, "rlwrap": runsText, "run-parts": runsText, "run-one": runsText, "start-stop-daemon": runsText,
	"dbus-run-session": runsText, "xvfb-run": runsText, "torsocks": runsText, "proxychains": runsText, "proxychains4": runsText,
	"perf": runsText, "valgrind": runsText, "screen": runsText, "tmux": runsText, "socat": runsText, "rsh": runsText, "mosh": runsText,
	"env": runsRest, "nohup": runsRest, "command": runsRest, "builtin": runsRest, "exec": runsRest, "sudo": runsRest,
	"doas": runsRest, "nice": runsRest, "ionice": runsRest, "setsid": runsRest, "stdbuf": runsRest, "xargs": runsInput,
	"genv": runsRest, "gnice": runsRest, "gnohup": runsRest, "gstdbuf": runsRest, "gxargs": runsInput,
	"time": runsRest, "gtime": runsRest, "chronic": runsRest, "caffeinate": runsRest,
	"find": runsFound, "gfind": runsFound, "fd": runsEach, "fdfind": runsEach,
	"timeout": runsAfterOne, "gtimeout": runsAfterOne, "chrt": runsAfterOne, "taskset": runsAfterOne,
	"sh": runsScript, "bash": runsScript, "dash": runsScript, "ash": runsScript, "zsh": runsScript, "ksh": runsScript, "mksh": runsScript,
	"rbash": runsScript, "rksh": runsScript, "ksh93": runsScript, "lksh": runsScript, "yash": runsScript, "posh": runsScript,
}

// wraps follows a program that runs the one in its arguments, after so many of
// its own. Options are not followed: which of them take a value is each
// program's own.
func (l *looker) wraps(c call, args []word, own, depth int) call {
	l.command.indirect = true
	unseen := runsUnseen(c.words[0].text + " with options or variables")
	for _, a := range args[:min(own, len(args))] {
		if !a.static || strings.HasPrefix(a.text, "-") {
			return l.conceals(c, unseen)
		}
	}
	args = args[min(own, len(args)):]
	switch {
	case len(args) == 0:
		return c
	case !args[0].static, strings.HasPrefix(args[0].text, "-"), strings.Contains(args[0].text, "="):
		return l.conceals(c, unseen)
	}
	c.runs = []call{l.run(args, c.more, depth+1)}
	return c
}

// script follows a shell that is given its commands; any other use of one runs
// what cannot be seen.
func (l *looker) script(c call, args []word) call {
	l.command.indirect = true
	if len(args) < 2 || !args[0].static || args[0].text != "-c" || !args[1].static {
		return l.conceals(c, runsUnseen(c.words[0].text))
	}
	inner, err := parseScript(args[1].text, l.depth+1)
	for _, p := range inner.Programs {
		l.add(p)
	}
	l.command.Redirects = append(l.command.Redirects, inner.Redirects...)
	l.command.Writes = append(l.command.Writes, inner.Writes...)
	c.runs, c.hidden = inner.calls, inner.hidden
	if err != nil {
		c.hidden = err.Error()
	}
	return c
}

// actsOnFound reports whether a word of find is an action that runs or
// writes something, or may be.
func actsOnFound(a word) bool {
	switch {
	case !a.static, a.text == "-delete", a.text == "-fls":
		return true
	}
	return slices.ContainsFunc([]string{"-exec", "-ok", "--exec", "-fprint"}, func(p string) bool { return strings.HasPrefix(a.text, p) })
}

// actsOnEach is actsOnFound for fd, whose flags of one letter may stand together
// and have their value joined: -Hx rm, -xrm.
func actsOnEach(a word) bool {
	short := strings.HasPrefix(a.text, "-") && !strings.HasPrefix(a.text, "--")
	return actsOnFound(a) || short && strings.ContainsAny(a.text, "xX")
}

// redirect lists the file of an operator.
func (l *looker) redirect(r *syntax.Redirect) {
	if r.N != nil && strings.HasPrefix(r.N.Value, "{") {
		l.hides(setting)
	}
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		if slices.ContainsFunc(l.open, substitutes) {
			l.hides("here-documents within $(…) and backquotes are not allowed: shells end them at different places, and take the rest for commands")
		}
		return // text, not a file
	case syntax.WordHdoc:
		return
	}
	target, ok := unknown, false
	if r.Word != nil {
		if text, err := literal(r.Word); err == nil {
			target, ok = text, true
		}
	}
	if ok && (r.Op == syntax.DplIn || r.Op == syntax.DplOut) && isDescriptor(target) {
		return
	}
	l.command.Redirects = append(l.command.Redirects, target)
	if r.Op != syntax.RdrIn && r.Op != syntax.DplIn {
		l.command.Writes = append(l.command.Writes, target)
	}
}

// substitutes reports whether a node is a command in place of a word.
func substitutes(n syntax.Node) bool {
	switch n.(type) {
	case *syntax.CmdSubst, *syntax.ProcSubst:
		return true
	default:
		return false
	}
}

// isDescriptor reports whether the word after >& is a number, or closes one.
func isDescriptor(s string) bool {
	return s != "" && strings.Trim(strings.TrimSuffix(s, "-"), "0123456789") == ""
}
