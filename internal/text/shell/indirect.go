package shell

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// indirection describes how a program runs other programs through its arguments.
type indirection struct {
	// always is the reason why any use of the program may run others; empty if not.
	always string
	// flags run the program in their value, as patterns of [refusesArg].
	flags []string
	// variables is set if NAME=value arguments can run programs.
	variables bool
	// interpreter is set if the program runs a file, or code on its command line. A
	// pattern must name the file, or the module after -m, or the archive after -jar.
	interpreter bool
	// only are the subcommands that run no other program; all others may.
	only []string
	// subcommands maps subcommands that differ to their own rules.
	subcommands map[string]indirection
	// global are flags before the subcommand, valued those of them whose value may be
	// the next word.
	global, valued []string
	// inspect checks the arguments, and returns what would run, or "". It trusts those
	// that are fixed, because the pattern has them.
	inspect func(args []word, fixed func(int) bool) string
}

const (
	runsEditor  = "it can start a shell or an editor"
	runsPackage = "it runs scripts of packages"
)

var (
	editor      = indirection{always: runsEditor}
	runsCommand = indirection{always: "it runs a command"}
	interpreter = indirection{interpreter: true}
	containers  = indirection{only: strings.Fields("ps images logs inspect version info stats top port diff history events search")}
	npm         = indirection{
		flags: strings.Fields("--script-shell --node-options --call --shell"),
		only:  strings.Fields("ls list view info outdated audit why explain help"),
		subcommands: map[string]indirection{
			"run": interpreter, "run-script": interpreter, "test": {flags: strings.Fields("--script-shell --node-options")},
		},
	}
	runsTasks = indirection{subcommands: map[string]indirection{"run": interpreter, "exec": interpreter, "tool": interpreter, "shell": editor}}
	apt       = indirection{flags: strings.Fields("-o -c --option --config-file")}
	dnf       = indirection{flags: strings.Fields("-c --config --setopt")}
	playbook  = indirection{always: "it runs commands and modules"}
	forge     = map[string]indirection{
		"alias": {always: "it can define commands"}, "config": {always: "it can set programs that it runs"}, "extension": {always: "it runs extensions"},
		"extensions": {always: "it runs extensions"}, "ext": {always: "it runs extensions"}, "codespace": {always: "it runs other programs"}, "cs": {always: "it runs other programs"},
		"browse": {always: "it starts a browser"},
	}
	gcc        = indirection{flags: strings.Fields("-wrapper -B* -fplugin* -specs* -plugin* -Wl,*-plugin* -Wl,*@* -Wp,*@* -Wa,*@* @*")}
	clang      = indirection{flags: strings.Fields("-fplugin* -fpass-plugin* -Xclang -B* -fuse-ld* --ld-path --config -plugin* -Wl,*-plugin* -Wl,*@* -Wp,*@* -Wa,*@* @*")}
	linker     = indirection{flags: strings.Fields("--plugin @*")}
	gnuMake    = indirection{flags: strings.Fields("-f -C -I -E --file --makefile --directory --include-dir --eval"), variables: true}
	compiles   = indirection{always: "it runs the compiler that its arguments name"}
	remoteCopy = indirection{flags: strings.Fields("-S -o -F -D")}
)

// indirections are programs that run others through their arguments, by base name.
var indirections = map[string]indirection{
	"sed": {inspect: sedRuns}, "gsed": {inspect: sedRuns},
	"awk": {inspect: awkRuns}, "gawk": {inspect: awkRuns}, "mawk": {inspect: awkRuns}, "nawk": {inspect: awkRuns}, "original-awk": {inspect: awkRuns},
	"tar": {
		flags:   strings.Fields("-I -F --to-command --checkpoint-action --use-compress-program --rsh-command --rmt-command --info-script --new-volume-script"),
		inspect: tarRuns,
	},
	"bsdtar": {flags: []string{"--use-compress-program"}},
	"sort":   {flags: []string{"--compress-program"}},
	"gsort":  {flags: []string{"--compress-program"}},
	"split":  {flags: []string{"--filter"}},
	"cpio":   {flags: []string{"--rsh-command"}},
	"zip":    {flags: []string{"-TT", "--unzip-command"}},
	"rg":     {flags: []string{"--pre", "--hostname-bin"}},
	"ag":     {flags: []string{"--pager"}},
	"ack":    {flags: []string{"--pager"}},
	"man":    {flags: strings.Fields("-P -H -C --pager --html --config-file")},
	"wget":   {flags: strings.Fields("--use-askpass -e --execute --config")},
	"rsync":  {flags: strings.Fields("-e --rsh --rsync-path")}, "scp": remoteCopy, "sftp": remoteCopy,
	"nc": {flags: strings.Fields("-e -c --exec --sh-exec --lua-exec")}, "ncat": {flags: strings.Fields("-e -c --exec --sh-exec --lua-exec")},
	"tcpdump": {flags: []string{"-z"}},
	"nmap":    {flags: []string{"--script*"}},
	"gcc":     gcc, "g++": gcc, "cc": gcc, "c++": gcc, "gfortran": gcc, "clang": clang, "clang++": clang,
	"ld": linker, "ld.bfd": linker, "ld.gold": linker, "ld.lld": linker, "ar": linker, "nm": linker, "ranlib": linker, "gcc-ar": linker, "gcc-nm": linker,
	"rustc":  {flags: strings.Fields("linker=* link-arg* -Clinker=* -Clink-arg* --codegen=linker=* --codegen=link-arg* -Z")},
	"ccache": compiles, "distcc": compiles, "sccache": compiles,
	"rpm": {flags: strings.Fields("-E -D --eval --define --pipe --load --macros --rcfile")}, "rpmbuild": {always: "it runs the scripts of a package"}, "rpmspec": {always: "it runs macros of a package"},
	"apt": apt, "apt-get": apt, "apt-cache": apt, "aptitude": apt, "dnf": dnf, "yum": dnf,
	"dpkg":    {flags: strings.Fields("--pre-invoke --post-invoke")},
	"ansible": playbook, "ansible-playbook": playbook, "ansible-console": playbook, "ansible-pull": playbook,
	"gh": {subcommands: forge, valued: strings.Fields("-R --repo")}, "glab": {subcommands: forge, valued: strings.Fields("-R --repo")},
	"openssl": {flags: strings.Fields("-engine -provider -provider-path -config"), subcommands: map[string]indirection{"engine": {always: "it loads engines"}}},
	"svn":     {flags: strings.Fields("--config-option --config-dir --diff-cmd --diff3-cmd --editor-cmd")},
	"hg":      {flags: strings.Fields("--config --debugger")},
	"curl":    {flags: strings.Fields("-K --config --engine")},
	"gpg":     {flags: strings.Fields("--photo-viewer --agent-program --dirmngr-program --keyboxd-program --options")},
	"ip": {
		valued: strings.Fields("-n -f -l -rc -netns -family -loops -rcvbuf"), subcommands: map[string]indirection{"netns": {always: "it can run commands"}}, inspect: ipRuns,
	},
	"helm":   {flags: []string{"--post-renderer", "--kubeconfig"}, valued: strings.Fields("-n --namespace --kube-context --kubeconfig --registry-config"), subcommands: map[string]indirection{"plugin": {always: "it runs plugins"}}},
	"gradle": {flags: strings.Fields("-I -b -p --init-script --build-file --project-dir")},
	"cmake":  {flags: strings.Fields("-P -E")},
	"ninja":  {flags: strings.Fields("-f -C")},
	"make":   gnuMake, "gmake": gnuMake,
	"cargo": {flags: strings.Fields("--config -Z")},
	"go": {
		// The linker runs the program of its flag -extld, which -ldflags may have.
		flags:  strings.Fields("-exec -toolexec -vettool -fixtool -overlay -modfile *extld* -*extld*"),
		valued: []string{"-C"},
		subcommands: map[string]indirection{
			"env": {flags: []string{"-w"}},
			"run": interpreter, "generate": {always: "it runs commands in source files"}, "tool": {always: "it runs tools of modules"},
		},
	},
	"git": {
		// The config of another repository names commands, such as core.fsmonitor, and any
		// folder of files may be one, also without the name .git.
		global: strings.Fields("-c -C --config-env --exec-path=* --git-dir --bare"), valued: strings.Fields("-C --git-dir --work-tree --namespace --super-prefix --attr-source --shallow-file"),
		// --output can write .git/config, with lines from --format.
		flags: strings.Fields("--upload-pack --receive-pack --exec --ext-diff --extcmd --open-files-in-pager --output --unsafe-paths"),
		subcommands: map[string]indirection{
			"config": {always: "it can set commands that git runs"}, "rebase": {flags: strings.Fields("-x -i --exec --interactive --strategy")},
			"bisect": {always: "it can run commands"}, "submodule": {always: "it can run commands"}, "filter-branch": {always: "it runs commands"},
			"difftool": {always: "it runs other programs"}, "mergetool": {always: "it runs other programs"}, "hook": {always: "it runs hooks"},
			"grep": {flags: strings.Fields("-O --open-files-in-pager")}, "clone": {flags: strings.Fields("-u -c --upload-pack --config --template")},
			"init": {flags: []string{"--template"}}, "archive": {flags: []string{"--exec"}}, "help": {always: "it starts a viewer"},
			"credential": {always: "it runs helpers"}, "daemon": {always: "it serves others"}, "for-each-repo": {always: "it runs commands"}, "send-email": {always: "it runs other programs"},
			"merge-index": {always: "it runs other programs"}, "remote-ext": {always: "it runs commands"}, "instaweb": {always: "it starts servers"},
			"web--browse": {always: "it starts a browser"}, "shell": {always: "it runs commands"},
		},
	},
	"npm": npm, "pnpm": npm, "yarn": npm,
	"npx": {always: runsPackage}, "bunx": {always: runsPackage}, "pnpx": {always: runsPackage}, "uvx": {always: runsPackage}, "pipx": {always: runsPackage},
	"docker": containers, "podman": containers, "nerdctl": containers,
	"kubectl": {flags: []string{"--kubeconfig"}, only: strings.Fields("get describe logs top version explain api-resources api-versions cluster-info")},
	"less":    editor, "more": editor, "most": editor, "vi": editor, "vim": editor, "nvim": editor, "view": editor, "ex": editor, "ed": editor,
	"vimdiff": editor, "gvim": editor, "rvim": editor, "rview": editor, "vim.tiny": editor, "vim.basic": editor, "tig": editor,
	"nano": editor, "emacs": editor, "pico": editor, "ftp": editor, "telnet": editor, "sqlite3": editor, "psql": editor, "mysql": editor,
	"gdb": editor, "lldb": editor, "irb": editor, "ghci": editor, "mail": editor, "mutt": editor,
	"python": interpreter, "python2": interpreter, "python3": interpreter, "pypy": interpreter, "pypy3": interpreter, "perl": interpreter, "ruby": interpreter,
	"node": interpreter, "nodejs": interpreter, "deno": interpreter, "bun": interpreter, "php": interpreter, "lua": interpreter, "luajit": interpreter,
	"tclsh": interpreter, "wish": interpreter, "rscript": interpreter, "r": interpreter, "julia": interpreter, "osascript": interpreter, "guile": interpreter,
	"java":   {flags: strings.Fields("-javaagent* -agentlib* -agentpath* -XX:OnError* -XX:OnOutOfMemoryError*"), interpreter: true},
	"jshell": editor, "groovy": interpreter, "scala": interpreter, "kotlin": interpreter, "elixir": interpreter, "erl": editor, "escript": interpreter, "ocaml": interpreter,
	"runghc": interpreter, "sbcl": editor, "octave": interpreter, "raku": interpreter, "tsx": interpreter, "ts-node": interpreter, "dc": editor, "m4": interpreter, "gnuplot": interpreter,
	"install": {flags: []string{"--strip-program"}}, "ginstall": {flags: []string{"--strip-program"}},
	"pandoc": {flags: strings.Fields("-F -L -d --filter --lua-filter --defaults --pdf-engine")},
	"pip":    {only: strings.Fields("list show freeze check inspect help")},
	"bat":    {flags: []string{"--pager", "--config-file"}}, "batcat": {flags: []string{"--pager", "--config-file"}}, "delta": {flags: []string{"--pager"}},
	"fzf":    {flags: strings.Fields("--preview --bind --listen --listen-unsafe --with-shell")},
	"restic": {flags: strings.Fields("-o --option --password-command")}, "rclone": {flags: strings.Fields("--config --password-command")},
	"borg": {flags: strings.Fields("--rsh --remote-path")}, "bazel": {flags: strings.Fields("--bazelrc --run_under --workspace_status_command")},
	"mvn":    {flags: []string{"*:*", "-Dmaven.ext.class.path*"}},
	"dotnet": {only: strings.Fields("build clean format list new pack publish restore test")},
	"direnv": {subcommands: map[string]indirection{"exec": runsCommand}}, "rustup": {subcommands: map[string]indirection{"run": runsCommand}},
	"asdf":  {subcommands: map[string]indirection{"cmd": runsCommand, "exec": runsCommand}},
	"mise":  {valued: strings.Fields("-C -E --cd --env"), subcommands: map[string]indirection{"exec": runsCommand, "x": runsCommand, "run": interpreter, "r": interpreter, "watch": runsCommand}},
	"stack": {subcommands: map[string]indirection{"exec": runsCommand, "runghc": interpreter, "runhaskell": interpreter, "script": interpreter, "ghci": editor, "repl": editor}},
	"cabal": {subcommands: map[string]indirection{"exec": runsCommand, "run": interpreter, "repl": editor}},
	"mix":   {subcommands: map[string]indirection{"cmd": runsCommand, "do": runsCommand, "eval": runsCommand, "run": interpreter}},
	"nix":   {subcommands: map[string]indirection{"run": runsCommand, "shell": runsCommand, "develop": runsCommand, "repl": editor}}, "nix-shell": runsCommand,
	"aws": {valued: strings.Fields("--profile --region --output"), subcommands: map[string]indirection{"configure": {always: "it can set programs that it runs"}}},
	"sg":  runsCommand, "newgrp": runsCommand, "hyperfine": runsCommand, "xterm": runsCommand, "gnome-terminal": runsCommand, "konsole": runsCommand,
	"xdg-open": {always: "it starts other programs"}, "systemctl": {subcommands: map[string]indirection{"edit": editor}},
	"w3m": editor, "lynx": editor, "links": editor, "elinks": editor, "mc": editor, "ranger": editor, "nnn": editor,
	"uv": runsTasks, "poetry": runsTasks, "pipenv": runsTasks, "hatch": runsTasks, "pdm": runsTasks, "bundle": runsTasks, "conda": runsTasks,
}

// indirectionOf finds the entry of a program. Versions, as in python3.12, count as the
// program.
func indirectionOf(program string) (indirection, bool) {
	base := strings.TrimSuffix(strings.ToLower(path.Base(program)), ".exe")
	in, ok := indirections[base]
	if !ok {
		in, ok = indirections[strings.TrimRight(base, "0123456789.-")]
	}
	return in, ok
}

// patternRuns returns why a pattern with wildcards would let a program run any other, or
// "" if it does not.
func (r *rule) patternRuns() string {
	in, ok := indirectionOf(r.words[0])
	if !ok || r.exact() {
		return ""
	}
	literal := func(i int) string {
		if i < len(r.words) && !strings.Contains(r.words[i], "*") {
			return r.words[i]
		}
		return ""
	}
	at := 1
	if len(in.subcommands)+len(in.only) > 0 {
		for len(in.only) == 0 && at < len(r.words) && strings.HasPrefix(r.words[at], "-") {
			if slices.Contains(in.valued, r.words[at]) {
				at++
			}
			at++
		}
		sub := literal(at)
		switch own, known := in.subcommands[sub]; {
		case known:
			in, at = own, at+1
		case len(in.only) > 0 && !slices.Contains(in.only, sub):
			return "its subcommand must be one of " + strings.Join(in.only, ", ")
		}
	}
	switch name := literal(at); {
	case in.always != "":
		return in.always
	case in.interpreter && (name == "-m" || name == "-jar") && literal(at+1) != "":
	case in.interpreter && (name == "" || strings.HasPrefix(name, "-")):
		return "it runs any script: name the script as the next word"
	}
	for i, w := range r.words[1:] { // such as tar --to-command=*
		if strings.Contains(w, "*") && slices.ContainsFunc(in.flags, func(f string) bool { return refusesArg(f, strings.TrimRight(w, "*")) }) {
			return fmt.Sprintf("%s runs a program", r.words[i+1])
		}
	}
	return ""
}

// callRuns returns the arguments that would run another program and that the pattern does
// not contain, or "".
func (r *rule) callRuns(c *call) string {
	in, ok := indirectionOf(c.words[0].text)
	if !ok {
		return ""
	}
	args := slices.Clone(c.words[1:])
	fixed := func(i int) bool { // the pattern has exactly this word
		return i+1 < len(r.words) && !strings.Contains(r.words[i+1], "*")
	}
	named := func(i int) bool {
		return fixed(i) || slices.ContainsFunc(r.flags, func(f string) bool { return f == args[i].text })
	}
	at, unsure := 0, false
	if len(in.subcommands)+len(in.only)+len(in.global) > 0 {
		for at < len(args) && strings.HasPrefix(args[at].text, "-") {
			if !named(at) && slices.ContainsFunc(in.global, func(f string) bool { return refusesArg(f, args[at].text) }) {
				return args[at].text
			}
			unsure = false
			switch {
			case slices.Contains(in.valued, args[at].text):
				at++
			case len(in.global) == 0 && !named(at): // some programs list all flags before a subcommand
				unsure = !strings.Contains(args[at].text, "=")
			}
			at++
		}
		if unsure && at+1 < len(args) { // the next word may be the value of a flag
			if own, known := in.subcommands[args[at+1].text]; known && (own.always != "" || own.interpreter) {
				return args[at+1].text
			}
		}
		if at < len(args) {
			sub := args[at]
			own, known := in.subcommands[sub.text]
			switch {
			case !sub.static:
				return "a word that is not known in advance"
			case len(in.only) > 0 && !known && !slices.Contains(in.only, sub.text) && !fixed(at):
				return sub.text
			case known && own.always != "" && !fixed(at):
				return sub.text + ": " + own.always
			case known && own.interpreter && at+1 < len(args) && !fixed(at+1):
				return sub.text + " " + args[at+1].text
			}
			in.flags = append(slices.Clone(in.flags), own.flags...)
		}
	}
	for i, a := range args {
		switch {
		case named(i):
		case !a.static:
			return "a word that is not known in advance"
		case in.variables && !strings.HasPrefix(a.text, "-") && strings.Contains(a.text, "="):
			return a.text
		case slices.ContainsFunc(in.flags, func(f string) bool { return refusesArg(f, a.text) }):
			return a.text
		}
	}
	if c.more {
		return "words from its input"
	}
	if in.inspect != nil {
		return in.inspect(args, fixed)
	}
	return ""
}

// tarRuns looks at flags without a dash, as in tar xIf.
func tarRuns(args []word, fixed func(int) bool) string {
	if len(args) > 0 && !fixed(0) && !strings.HasPrefix(args[0].text, "-") && strings.ContainsAny(args[0].text, "IF") {
		return args[0].text
	}
	return ""
}

// ipRuns looks for the flag -batch and its abbreviations, which run commands from a file.
func ipRuns(args []word, fixed func(int) bool) string {
	for i, a := range args {
		if dashes, name := flagName(a.text); dashes > 0 && strings.HasPrefix("batch", name) && !fixed(i) {
			return a.text
		}
	}
	return ""
}

// awkRuns searches an awk program for words that run other programs. A program of the
// pattern itself may run what it likes, but no flag may add another one.
func awkRuns(args []word, fixed func(int) bool) string {
	programs := []string{"-f", "-e", "-E", "-i", "-l", "-L", "-W", "--file", "--source", "--exec", "--include", "--load"}
	fromFile, afterFlag := false, false
	for i := 0; i < len(args); i++ {
		text, isValue := args[i].text, afterFlag
		afterFlag = false
		switch {
		case slices.ContainsFunc(programs, func(flag string) bool { return strings.HasPrefix(text, "-") && refusesArg(flag, text) }):
			switch {
			case !fixed(i):
				return text
			case text == "-f" || text == "--file": // the file is the next word
				if i++; i >= len(args) || !fixed(i) {
					return text
				}
				fromFile = true
			case strings.HasPrefix(text, "-f") || strings.HasPrefix(text, "--file="):
				fromFile = true
			default:
				return text
			}
		case strings.HasPrefix(text, "-"):
			afterFlag = takesValue(text)
		case fixed(i) && isValue:
		case fixed(i) || fromFile:
			return "" // awk takes no flags after its program, or after the first file
		default:
			for _, part := range []string{"system", "|", "getline", "@", "print >", ">"} {
				if strings.Contains(text, part) {
					return part
				}
			}
		}
	}
	return ""
}

// takesValue reports whether the word after a flag of awk may be its value.
func takesValue(flag string) bool {
	if name, long := strings.CutPrefix(flag, "--"); long {
		return name != "" && (strings.HasPrefix("field-separator", name) || strings.HasPrefix("assign", name))
	}
	return strings.HasSuffix(flag, "F") || strings.HasSuffix(flag, "v")
}

// sedRuns checks a sed script: it may print, delete and substitute, but not run commands
// or read or write files. Scripts of the pattern itself are not checked.
func sedRuns(args []word, fixed func(int) bool) string {
	type script struct {
		text  string
		fixed bool
	}
	var scripts, others []script
	flags := true
	for i := 0; i < len(args); i++ {
		text, own := args[i].text, fixed(i)
		value := func(rest string) {
			if rest == "" && i+1 < len(args) {
				i++
				rest, own = args[i].text, fixed(i)
			}
			scripts = append(scripts, script{rest, own})
		}
		file := func(rest string) bool { // reports whether the pattern has the file
			if rest == "" && i+1 < len(args) {
				i++
				own = own && fixed(i)
			}
			scripts = append(scripts, script{"", true})
			return own
		}
		switch {
		case !flags || text == "-" || !strings.HasPrefix(text, "-"):
			others = append(others, script{text, own})
		case text == "--":
			flags = false
		case strings.HasPrefix(text, "--"):
			name, rest, joined := strings.Cut(text[2:], "=")
			switch {
			case strings.HasPrefix("expression", name) && joined:
				scripts = append(scripts, script{rest, own})
			case strings.HasPrefix("expression", name):
				value("")
			case strings.HasPrefix("file", name):
				if !file(rest) {
					return text
				}
			case strings.HasPrefix("line-length", name) && !joined:
				i++
			}
		default:
			letters := text[1:]
			for k := 0; k < len(letters); k++ {
				switch letters[k] {
				case 'e':
					value(letters[k+1:])
					k = len(letters)
				case 'f':
					if !file(letters[k+1:]) {
						return text
					}
					k = len(letters)
				case 'i':
					k = len(letters) // the rest is a suffix
				case 'l':
					if k == len(letters)-1 {
						i++
					}
					k = len(letters)
				}
			}
		}
	}
	if len(scripts) == 0 && len(others) > 0 {
		scripts = others[:1]
	}
	for _, s := range scripts {
		if !s.fixed && !harmlessSed(s.text) {
			return s.text
		}
	}
	return ""
}

// harmlessSed reports whether a script of sed consists of commands that are known to
// stay within their input and output.
func harmlessSed(s string) bool {
	for s != "" {
		if strings.ContainsRune(" \t\n;{}0123456789$,~+!", rune(s[0])) {
			s = s[1:]
			continue
		}
		command := s[0]
		s = s[1:]
		switch command {
		case '/', '\\': // an address
			end := command
			if command == '\\' {
				if s == "" {
					return false
				}
				end, s = s[0], s[1:]
			}
			var ok bool
			if s, ok = pastDelimiter(s, end); !ok {
				return false
			}
			s = strings.TrimLeft(s, "IM")
		case 's', 'y':
			if s == "" || s[0] == '\\' || s[0] == '\n' {
				return false
			}
			end := s[0]
			s = s[1:]
			for range 2 {
				var ok bool
				if s, ok = pastDelimiter(s, end); !ok {
					return false
				}
			}
			if command == 's' {
				s = strings.TrimLeft(s, "gpiImM0123456789")
			}
			if s != "" && !strings.ContainsRune(" \t\n;}", rune(s[0])) {
				return false // such as the flags e and w
			}
		case 'p', 'P', 'd', 'D', 'q', 'Q', '=', 'n', 'N', 'g', 'G', 'h', 'H', 'x', 'l', 'z':
		default:
			return false
		}
	}
	return true
}

// pastDelimiter returns what follows the next delimiter that is not escaped. Versions of
// sed disagree whether a bracket expression hides a delimiter and where it ends, so it
// refuses all but plain ones.
func pastDelimiter(s string, end byte) (string, bool) {
	if end == '[' || end == ']' {
		return "", false
	}
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\':
			i++
		case s[i] == '\n':
			return "", false
		case s[i] == '[':
			size := plainBracket(s[i:])
			if size == 0 || strings.IndexByte(s[i:i+size], end) >= 0 {
				return "", false
			}
			i += size - 1
		case s[i] == end:
			return s[i+1:], true
		}
	}
	return "", false
}

// bracket is a bracket expression that all versions of sed read alike.
var bracket = regexp.MustCompile(`^\[\^?(\[:[a-z]+:\]|[^]^[\\\n])+\]`)

// plainBracket returns the length of the bracket expression that s begins with; 0 if it is
// not a plain one.
func plainBracket(s string) int { return len(bracket.FindString(s)) }
