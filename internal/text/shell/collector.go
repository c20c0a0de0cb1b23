package shell

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// collector collects the effects of a command.
type collector struct {
	command *Command
	depth   int
	seen    map[string]bool
	// open are the nodes that are being walked; arithmetic is the number of arithmetic ones among
	// them, expansions the number of parameter expansions.
	open                   []syntax.Node
	arithmetic, expansions int
}

// visit handles one node. Nil ends the last opened node.
func (l *collector) visit(n syntax.Node) bool {
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
		l.noteUnknown(setting)
	case *syntax.LetClause:
		l.noteUnknown(calculation)
	case *syntax.Redirect:
		l.redirect(n)
	case *syntax.WordIter:
		l.loopVariable(n.Name.Value)
	case *syntax.CoprocClause:
		if n.Name != nil {
			l.noteUnknown(setting)
		}
	case *syntax.Lit, *syntax.SglQuoted, *syntax.DblQuoted:
		l.text(n)
	case *syntax.ParamExp:
		l.expansion(n)
	case *syntax.BinaryTest:
		switch n.Op {
		case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
			l.noteUnknown(calculation)
		}
	case *syntax.UnaryTest:
		if n.Op == syntax.TsVarSet || n.Op == syntax.TsRefVar {
			l.noteUnknown(calculation)
		}
	}
	return true
}

// calculation is the reason to refuse arithmetic: a shell evaluates the values of names,
// subscripts included, and may run commands in them.
const calculation = "only plain numbers can be calculated with: names and texts may run commands"

// setting is the reason to refuse assignments: PATH, LD_PRELOAD and many other variables change
// which programs run.
const setting = "variables cannot be set: they change what programs do"

func (l *collector) count(n syntax.Node, by int) {
	switch n.(type) {
	case *syntax.ArithmExp, *syntax.ArithmCmd, *syntax.LetClause, *syntax.CStyleLoop:
		l.arithmetic += by
	case *syntax.ParamExp:
		l.expansions += by
	}
}

// text checks text that shells may interpret where it occurs.
func (l *collector) text(n syntax.Node) {
	lit, plain := n.(*syntax.Lit)
	_, single := n.(*syntax.SglQuoted)
	calculates, expands := l.inside()
	switch {
	case calculates && (!plain || !isNumber(lit.Value)):
		l.noteUnknown(calculation)
	case expands && single:
		// In double quotes and here-documents these are not quotes, and text that our parser
		// treats as quoted may be commands.
		l.noteUnknown("single quotes within ${…} are not allowed: shells read them differently")
	}
}

// inside reports whether the current node is part of arithmetic, or of a parameter expansion. A
// command within those is not.
func (l *collector) inside() (calculates, expands bool) {
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

// expansion checks a parameter expansion for values that a shell evaluates (arithmetic, subscripts
// and substrings, a name after !, a prompt after @P) and for assignments.
func (l *collector) expansion(n *syntax.ParamExp) {
	calculates, _ := l.inside()
	op := syntax.ParExpOperator(0)
	if n.Exp != nil {
		op = n.Exp.Op
	}
	switch {
	case calculates, n.Slice != nil, n.Index != nil && !isPlainIndex(n.Index):
		l.noteUnknown(calculation)
	case n.Excl, op == syntax.OtherParamOps:
		l.noteUnknown("${!…} and ${…@…} are not allowed: they may run commands")
	case op == syntax.AssignUnset, op == syntax.AssignUnsetOrNull:
		l.noteUnknown(setting)
	}
}

// isPlainIndex reports whether a subscript is a number, * or @.
func isPlainIndex(x syntax.ArithmExpr) bool {
	w, ok := x.(*syntax.Word)
	if !ok {
		return false
	}
	s := w.Lit()
	return s == "@" || s == "*" || isNumber(s)
}

func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// loopVariable checks the variable of a loop. Environment variables are in capitals, except for
// those of proxies.
func (l *collector) loopVariable(name string) {
	if name != strings.ToLower(name) || strings.HasSuffix(name, "_proxy") {
		l.noteUnknown("the variable of a loop must be in lower case: others change what programs do")
	}
}

// noteUnknown records that the command may run something unknown, in addition to the calls.
func (l *collector) noteUnknown(why string) {
	l.add(unknown)
	l.command.hidden = first(l.command.hidden, why)
}

func (l *collector) add(name string) {
	if !l.seen[name] {
		l.seen[name] = true
		l.command.Programs = append(l.command.Programs, name)
	}
}

// program lists a program under every name that a rule may use.
func (l *collector) program(name string) {
	l.add(name)
	base := path.Base(name)
	l.add(base)
	l.add(strings.ToLower(base))
}

// call handles one command with its arguments.
func (l *collector) call(c *syntax.CallExpr) {
	if len(c.Assigns) > 0 { // PATH, LD_PRELOAD, BASH_ENV, GIT_SSH_COMMAND, …
		l.noteUnknown(setting)
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

// run lists the program that words run, and the programs that it runs in turn. more reports that
// the input may add words.
func (l *collector) run(words []word, more bool, depth int) call {
	c := call{words: words, more: more}
	name := words[0].text
	switch {
	case !words[0].static || name == "":
		return l.noteUnknownIn(c, "the name of the program must be known before it runs")
	case depth > maxDepth:
		return l.noteUnknownIn(c, "too many programs run other programs")
	}
	l.program(name)
	args := words[1:]
	base := strings.ToLower(path.Base(name))
	switch runners[base] {
	case runsText:
		l.command.indirect = true
		return l.noteUnknownIn(c, runsUnknown(name))
	case runsRest:
		return l.wrapper(c, args, 0, depth)
	case runsInput:
		c.more = true
		return l.wrapper(c, args, 0, depth)
	case runsAfterOne:
		return l.wrapper(c, args, 1, depth)
	case runsScript:
		return l.script(c, args)
	case runsFound, runsEach:
		acts := actsOnFound
		if runners[base] == runsEach {
			acts = actsOnEach
		}
		if slices.ContainsFunc(args, acts) {
			l.command.indirect = true
			return l.noteUnknownIn(c, runsUnknown(name))
		}
	case runsVariable:
		if slices.ContainsFunc(args, func(a word) bool { return !a.static || strings.HasPrefix(a.text, "-v") || a.text == "-R" }) {
			return l.noteUnknownIn(c, "variables cannot be set or read by "+name)
		}
	}
	return c
}

func runsUnknown(name string) string { return name + " runs commands that cannot be checked here" }

// noteUnknownIn records that a call may run something unknown.
func (l *collector) noteUnknownIn(c call, why string) call {
	l.add(unknown)
	c.hidden = why
	return c
}

// runner is the way in which a program runs others.
type runner int

const (
	_ runner = iota
	// runsText evaluates text, changes the meaning of names, or runs programs in a way that is not
	// analyzed.
	runsText
	// runsRest runs the program in its arguments, runsAfterOne the program after its first
	// argument.
	runsRest
	runsAfterOne
	// runsInput is like runsRest, with words of its input added.
	runsInput
	// runsScript is a shell.
	runsScript
	// runsFound has actions that run or delete something for the files that it finds; runsEach has
	// them as one-letter flags too.
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

// wrapper handles a program that runs the program after its own first arguments; own is their
// number. Options are not analyzed, because each program has different ones with values.
func (l *collector) wrapper(c call, args []word, own, depth int) call {
	l.command.indirect = true
	unseen := runsUnknown(c.words[0].text + " with options or variables")
	for _, a := range args[:min(own, len(args))] {
		if !a.static || strings.HasPrefix(a.text, "-") {
			return l.noteUnknownIn(c, unseen)
		}
	}
	args = args[min(own, len(args)):]
	switch {
	case len(args) == 0:
		return c
	case !args[0].static, strings.HasPrefix(args[0].text, "-"), strings.Contains(args[0].text, "="):
		return l.noteUnknownIn(c, unseen)
	}
	c.runs = []call{l.run(args, c.more, depth+1)}
	return c
}

// script handles a shell that gets its commands as an argument; any other use of a shell is
// unknown.
func (l *collector) script(c call, args []word) call {
	l.command.indirect = true
	if len(args) < 2 || !args[0].static || args[0].text != "-c" || !args[1].static {
		return l.noteUnknownIn(c, runsUnknown(c.words[0].text))
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
func (l *collector) redirect(r *syntax.Redirect) {
	if r.N != nil && strings.HasPrefix(r.N.Value, "{") {
		l.noteUnknown(setting)
	}
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		if slices.ContainsFunc(l.open, substitutes) {
			l.noteUnknown("here-documents within $(…) and backquotes are not allowed: shells end them at different places, and take the rest for commands")
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

// substitutes reports whether a node is a command substitution.
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
