package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/text/shell"
	"github.com/dragoman-go/dragoman/internal/text/toolname"
	"github.com/dragoman-go/dragoman/tool"
)

// Shell configures which commands may run, and how. Its zero value allows none, and is refused.
//
// These always apply:
//   - A command runs in a directory of the workspace, without standard input.
//   - It gets few environment variables; the git variables make git ignore bare repositories in
//     the workspace.
//   - Its home and temporary directories are its own and are removed afterwards.
//   - Its time and its output are limited.
//   - When it ends or is stopped, so is every process of its process group, on Linux every
//     other process that has its environment, and with a [Sandbox] every process that it
//     started, however it hides.
//
// Without Landlock (see [Sandbox]) a command can read and write whatever the user of the
// program can, and use the network.
type Shell struct {
	// Allow lists patterns of the commands that may run; an empty list that is not nil
	// allows none. A command may run if one of them matches it, word by word:
	//
	//	go build ./cmd/dragoman    exactly this
	//	go vet *                   * is any one word that is not a flag
	//	make test-*                * within a word is any characters
	//	go test ...                ... is any further words, flags too
	//	go test ... -v -run=*      as before, but of flags only these
	//	git log ... !--output !-o  as before, but without these flags
	//
	// A word that begins with * matches no word that begins with -, so flags must be allowed by
	// name or by "...". Every word that begins with - counts as a flag, including - and --.
	//
	// A word after ! is refused anywhere after the pattern's own words, also after --:
	//
	//	!-o      a flag of one letter: -o, among others (-xo), with what follows it
	//	         (-ofile, -o=file), and --o with or without a value
	//	!-exec   any longer flag, with one dash or two whichever is written: -exec,
	//	!--exec  --exec; with a value (-exec=x, --exec=x, -exec:x, -exec,x); and with
	//	         two dashes shortened (--exe, --e=x)
	//	!-exec*  the same, and all that begins so: -execdir, --exec-path=x
	//	!--a=b*  these values of a flag: --a=bc, -a=bc; and without one (--a), which
	//	         may be the next word
	//	!-*      every flag, and !--* every one with two dashes
	//	!rm      a word that is not a flag: exactly this word; r* as above
	//
	// These are not refused: a shortened longer flag with one dash (-exe), a value that follows
	// without a separator (-execx; use !-exec*), another flag with the same meaning (-o for
	// --output), and flags in a file (@file). Programs have more ways to take flags than a list
	// can know: allow what is needed rather than refuse what is known.
	//
	// If a program runs another (env, timeout, xargs, sh -c, …), both must be allowed. If it is
	// unknown what it runs (eval, ssh, sh with a file, find with -exec, …), only a pattern
	// without * and ... allows it.
	//
	// Some programs run others through their arguments. If the known ways to do so (git -c and
	// -C, tar --to-command, sort --compress-program, rg --pre, awk with system, sed with e,
	// make SHELL=…) are not words of the pattern itself, such a call is refused. A pattern with
	// * or ... for a program that runs whatever it is given (python, perl, docker, npm run,
	// less, vim) is an error. Indirect permits both. The list of known ways is not complete.
	Allow []string
	// AllowAny allows every command in place of Allow.
	AllowAny bool
	// Indirect permits commands that run other programs through their arguments, such as
	// git -c core.pager=…, tar --to-command=…, sed with the command e, and patterns with *
	// or ... for programs that run whatever they are given, such as python, docker and vim.
	// Without it they are refused, unless a pattern has all words of the command.
	Indirect bool
	// Scripts also allows commands that need a shell: operators, redirections, variables. Such
	// a command is run by sh, and Allow is checked for every program in it. One program of a
	// script may read what another writes: a list with an interpreter of any language allows
	// whatever it is fed. A command that needs no shell still runs without one.
	Scripts bool

	// PassEnv names variables that commands get from this program's environment, in addition to
	// PATH, LANG, LC_ALL, LC_CTYPE and TZ. Env holds further variables, as NAME=value.
	PassEnv []string
	Env     []string

	// Timeout limits a command; zero means 60 s. A model may ask for less.
	Timeout time.Duration
	// MaxOutput limits the bytes of output, from its beginning and its end; zero means 256 KiB.
	MaxOutput int

	// Sandbox is the result of [Main]; nil runs commands without Landlock.
	Sandbox *Sandbox
	// RequireSandbox makes a command fail if it cannot be confined as configured.
	RequireSandbox bool
	// ReadPaths and WritePaths are files and directories outside the workspace that confined
	// commands may read, or read and write, in addition to those of [Sandbox].
	ReadPaths, WritePaths []string
	// DenyNetwork denies TCP to confined commands if the kernel can (from Landlock ABI 4), and
	// UDP (from ABI 10).
	DenyNetwork bool

	// judge decides whether a command may run; the text of its error is for the model.
	judge func(*shell.Command) error
}

const (
	defaultShellTimeout = time.Minute
	defaultShellOutput  = 256 << 10
	// killedWithin limits how long a command may take to end after its timeout.
	killedWithin = 5 * time.Second
)

// complete fills in defaults and returns errors.
func (s *Shell) complete() error {
	switch {
	case s.AllowAny && s.Allow != nil:
		return fmt.Errorf("%w: Shell has both Allow and AllowAny: set one", ErrOptions)
	case s.AllowAny:
		s.judge = shell.Any
	case s.Allow == nil:
		return fmt.Errorf("%w: Shell.Allow must list the commands that may run; AllowAny allows all", ErrOptions)
	default:
		list, err := shell.Options{Indirect: s.Indirect}.Allow(s.Allow...)
		if err != nil {
			return fmt.Errorf("%w: Shell.Allow: %w", ErrOptions, err)
		}
		s.judge = list.Allows
	}
	for _, e := range s.Env {
		if i := strings.IndexByte(e, '='); i <= 0 {
			return fmt.Errorf("%w: Shell.Env has %q, want NAME=value", ErrOptions, e)
		}
	}
	for _, p := range slices.Concat(s.ReadPaths, s.WritePaths) {
		if !filepath.IsAbs(p) {
			return fmt.Errorf("%w: %q is not an absolute path", ErrOptions, p)
		}
	}
	if s.Timeout <= 0 {
		s.Timeout = defaultShellTimeout
	}
	if s.MaxOutput <= 0 {
		s.MaxOutput = defaultShellOutput
	}
	return nil
}

type shellInput struct {
	Command string `json:"command" doc:"the command" jsonschema:"minLength=1"`
	Folder  string `json:"folder,omitempty" doc:"the folder to run it in, relative to the workspace; the workspace itself if left out"`
	Seconds int    `json:"seconds,omitempty" doc:"end it after so many seconds" jsonschema:"minimum=1"`
}

// errShellOff reports that the options allow no commands.
var errShellOff = errors.New("workspace: commands are not allowed here")

// Shell returns the tool that runs commands. A command that ran to its end is a result without
// an error, whatever its exit code, which the result states first: a failed test, or a search
// without matches, is a normal answer, not a failure for a breaker or a failure policy. A
// command that is not allowed, cannot be started or is stopped is an error. If the options
// allow no commands, a toolbox refuses the tool.
func (w *Workspace) Shell(opts ...tool.Option) tool.Tool {
	s := w.options.Shell
	if s == nil {
		return tool.New[shellInput, tool.Output](toolname.Shell, errShellOff.Error(), nil)
	}
	description := "Runs a command in the workspace and returns its exit code and what it wrote; " +
		"a code other than 0 comes from the command, not from the tool. The command has no input, and ends with all its processes when its time limit is reached. "
	if s.Scripts {
		description += "Commands of sh are allowed, with pipes, redirections and variables."
	} else {
		description += "One program with its arguments; no shell runs it, so there are no pipes, redirections, variables, " +
			"wildcards or several commands. Quote arguments that have spaces or special characters."
	}
	all := append([]tool.Option{tool.Describe(func(s *dragoman.ToolSpec) { s.Annotations.OpenWorld = new(true) }), tool.Timeout(s.Timeout + 2*killedWithin)}, opts...)
	return tool.New(toolname.Shell, description, w.shell, w.changes(toolname.Shell, w.checkShell, w.previewShell, all)...)
}

func (w *Workspace) checkShell(_ context.Context, in tool.Input) error {
	var args shellInput
	if err := json.Unmarshal(in.Arguments, &args); err != nil {
		return err
	}
	_, err := w.command(args)
	return err
}

func (w *Workspace) shell(ctx context.Context, in shellInput) (tool.Output, error) {
	c, err := w.command(in)
	if err != nil {
		return tool.Output{}, err
	}
	return c.run(ctx)
}

// command returns the requested command, if it is allowed.
func (w *Workspace) command(in shellInput) (*command, error) {
	s := w.options.Shell
	c := &command{w: w, shell: s, timeout: s.Timeout}
	if in.Seconds > 0 && in.Seconds <= int(c.timeout/time.Second) { // larger values could overflow a duration
		c.timeout = time.Duration(in.Seconds) * time.Second
	}
	if in.Folder == "" {
		in.Folder = "."
	}
	var err error
	if c.folder, err = w.resolve(in.Folder); err != nil {
		return nil, err
	}
	parsed, err := c.read(in.Command)
	if err != nil {
		return nil, err
	}
	err = s.judge(parsed)
	switch {
	case err == nil:
		return c, nil
	case errors.Is(err, shell.ErrNotAllowed):
		return nil, err
	}
	return nil, fmt.Errorf("%w: %w", shell.ErrNotAllowed, err)
}

// read parses the words of the command as they are run. A command that needs a shell is a
// script, and an unknown program may be a shell builtin.
func (c *command) read(text string) (*shell.Command, error) {
	parsed, unreadable := shell.Parse(text)
	argv, err := parsed.Words()
	if c.shell.Scripts && err == nil {
		_, err = c.program(argv[0])
	}
	switch {
	case err == nil:
		c.argv = argv
		return &parsed, nil
	case !c.shell.Scripts:
		return nil, err
	case len(text) > shell.MaxCommand, strings.ContainsRune(text, 0):
		return nil, unreadable
	}
	c.argv = []string{"sh", "-c", text}
	script, _ := shell.ParseScript(text) // the command holds the error, and Allow decides
	return &script, nil
}

// environment returns the variables of a command.
func (c *command) environment(private string) []string {
	env := []string{
		"HOME=" + private, "TMPDIR=" + private, "TERM=dumb", commandMark + "=" + c.id,
		// git treats any directory with a few certain files as a repository, even if it is not
		// named .git, and the settings of a repository can name programs.
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.bareRepository", "GIT_CONFIG_VALUE_0=explicit",
	}
	for _, name := range slices.Concat([]string{"PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ"}, c.shell.PassEnv) {
		if v, ok := os.LookupEnv(name); ok {
			if name == "PATH" {
				v = strings.Join(c.searchPath(), string(filepath.ListSeparator))
			}
			env = append(env, name+"="+v)
		}
	}
	return append(env, c.shell.Env...)
}

// searchPath returns the directories to search for programs: none of the workspace, where a
// model could put a program with a familiar name.
func (c *command) searchPath() []string {
	var dirs []string
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if !filepath.IsAbs(dir) {
			continue
		}
		if _, ours := c.w.inside(dir); ours {
			continue
		}
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			if _, ours := c.w.inside(real); ours {
				continue
			}
		}
		dirs = append(dirs, dir)
	}
	return dirs
}

// program returns the file of a command's first word.
func (c *command) program(name string) (string, error) {
	if strings.ContainsRune(name, '/') || strings.ContainsRune(name, filepath.Separator) {
		if filepath.IsAbs(name) {
			return name, nil
		}
		rel, err := c.w.resolve(c.folder + "/" + name)
		if err != nil {
			return "", err
		}
		return filepath.Join(c.w.real, filepath.FromSlash(rel)), nil
	}
	for _, dir := range c.searchPath() {
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && (info.Mode().Perm()&0o111 != 0 || runtime.GOOS == "windows") {
			return file, nil
		}
	}
	switch name {
	case "cd", "pushd", "popd":
		return "", fmt.Errorf("%s is not a program: pass the folder of a command as the argument folder", name)
	}
	return "", fmt.Errorf("no program is named %s", quoteShort(name))
}

// result returns the outcome of a command for the model.
func (c *command) result(out *boundedOutput, took time.Duration) tool.Output {
	var b strings.Builder
	fmt.Fprintf(&b, "[%s after %.1f s%s]\n", c.ending, took.Seconds(), c.confinement)
	b.WriteString(plain(out.String()))
	return tool.Output{Content: []dragoman.Part{&dragoman.Text{Text: b.String()}}, Failed: c.ended}
}
