// Command dragoman lets a model work in a folder and keeps what was said, converts
// and checks what crosses between tools and models, explains what a policy decides,
// serves every client over any model, and a model that needs no network.
//
//	dragoman run "Which files are here?"
//	dragoman sessions list
//	dragoman convert --to anthropic request.json
//	dragoman lint --for gemini tools.json
//	dragoman tools why shell --policy policy.yaml --args '{"command":"rm -r build"}'
//	dragoman sim --listen 127.0.0.1:8080
//	dragoman serve --config gateway.yaml
//
// What was asked for goes to standard output: the result of convert, the verdicts
// of lint. What could not be kept by convert, and what went wrong, goes to
// standard error; with --report json that is one JSON document at most. The exit
// code is 0 when all went well, 1 when the input could not be read or converted,
// 2 for a command line that makes no sense, and 3 when the result lost more than
// --fail-on allows. docs/command.md has the fields of the reports.
package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"reflect"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/dialects"
	"github.com/dragoman-go/dragoman/internal/text/words"
	"github.com/dragoman-go/dragoman/tool/workspace"
)

func main() {
	sandbox, err := workspace.Main() // first: commands are started by starting this program again
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(126)
	}
	os.Exit(command{sandbox}.run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// command is the program without its process.
type command struct {
	sandbox *workspace.Sandbox
}

// The exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
	exitLossy  = 3
)

// run runs a command line on which commands of models are not confined.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return command{}.run(args, stdin, stdout, stderr)
}

// run returns the exit code.
func (c command) run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	cmd := newRoot(c.sandbox)
	cmd.SetArgs(args)
	cmd.SetIn(stdin)
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	err := cmd.Execute()
	if err == nil {
		return exitOK
	}
	var coded *exitError
	if !errors.As(err, &coded) { // cobra's own: an unknown flag or command
		coded = &exitError{exitUsage, err}
	}
	switch {
	case coded.err == nil:
	case wantsJSON(args):
		_ = writeJSON(stderr, struct {
			Error string `json:"error"`
		}{message(coded.err)})
	default:
		fmt.Fprintf(stderr, "dragoman: %s\n", shown(message(coded.err))) // servers and models have their words in it
		if coded.code == exitUsage {
			fmt.Fprintf(stderr, "Try \"%s --help\".\n", typed(cmd, args).CommandPath())
		}
	}
	return coded.code
}

// typed returns the innermost known command that a command line names.
func typed(root *cobra.Command, args []string) *cobra.Command {
	if cmd, _, err := root.Find(args); err == nil {
		return cmd
	}
	return root
}

// arguments checks the arguments of a command against its usage line, such as "show
// SESSION" or "branch SESSION [PROMPT]". The error names the missing argument.
func arguments(cmd *cobra.Command, args []string) error {
	var names []string
	optional, more := 0, false
	for _, word := range strings.Fields(cmd.Use)[1:] {
		switch {
		case strings.HasPrefix(word, "["):
			optional++
		default:
			names = append(names, strings.TrimSuffix(word, "..."))
			more = more || strings.HasSuffix(word, "...")
		}
	}
	switch {
	case len(args) < len(names):
		return misused("%s is missing: %s", names[len(args)], strings.TrimSuffix(cmd.UseLine(), " [flags]"))
	case !more && len(args) > len(names)+optional:
		return misused("unexpected argument %q: %s", args[len(names)+optional], strings.TrimSuffix(cmd.UseLine(), " [flags]"))
	}
	return nil
}

// message is an error in the words of a program that already said its name.
func message(err error) string { return plain(err.Error()) }

var (
	// quotes are words of the input or of the library's rules, between them the
	// library speaks.
	quotes = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	// packages are the names that errors of the library begin with, each for
	// itself.
	packages = regexp.MustCompile(`(^|: |\n)(?:(?:` + dialectPackages() + `dragoman|schema|interop|history|sim|sse|eventstream|policy|tool|workspace|agent|session|sqlite|provider): )+`)
)

// dialectPackages returns the package names of the dialects, each with a bar behind it.
func dialectPackages() (names string) {
	for _, codec := range dialects.All() {
		names += path.Base(reflect.TypeOf(codec).PkgPath()) + "|"
	}
	return names
}

// plain is a text of the library without the names of Go packages, which tell
// nothing to who writes none.
func plain(text string) string {
	var b strings.Builder
	end := 0
	for _, quote := range quotes.FindAllStringIndex(text, -1) {
		b.WriteString(packages.ReplaceAllString(text[end:quote[0]], "$1"))
		b.WriteString(text[quote[0]:quote[1]])
		end = quote[1]
	}
	b.WriteString(packages.ReplaceAllString(text[end:], "$1"))
	return b.String()
}

// plainly are losses whose details are plain.
func plainly(losses []dragoman.Loss) []dragoman.Loss {
	for i := range losses {
		losses[i].Detail = plain(losses[i].Detail)
	}
	return losses
}

// wantsJSON reports whether a command line asks for a report as JSON, also where
// the rest of it makes no sense.
func wantsJSON(args []string) bool {
	if len(args) > 0 && args[0] == "sessions" && slices.Contains(args, "--json") {
		return true
	}
	for i, a := range args {
		if a == "--report=json" || a == "--report" && i+1 < len(args) && args[i+1] == "json" {
			return true
		}
	}
	return false
}

// exitError ends the program with a code; err is nil where all was said.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

func failed(format string, args ...any) error {
	return &exitError{exitFailed, fmt.Errorf(format, args...)}
}

func misused(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

// unknownValue returns the error for a flag that takes one of some words.
func unknownValue(flag, value string, known ...string) error {
	return misused("unknown %s %q: known values are %s%s", flag, value, strings.Join(known, ", "), words.Meant(value, known))
}

// unopened adds source, the flag or variable that names a file or folder, to the error of
// opening it.
func unopened(source string, err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return fmt.Errorf("%s: %w", source, err)
	}
	return err
}

func newRoot(sandbox *workspace.Sandbox) *cobra.Command {
	root := &cobra.Command{
		Use:   "dragoman",
		Short: "Tools and models, in every wire language",
		Long: `dragoman stands between tools and models: it reads and writes the wire
languages of model APIs, and says what a conversion could not keep. "dragoman convert
--help" lists the languages.

Exit codes: 0 when all went well, 1 when the input could not be read or
converted (a stream that broke is written up to there) or a run has no answer, 2
for a command line that makes no sense, 3 when something was lost that --fail-on
forbids, 4 when a run refused calls because no approver was attached, 130 when a
run was interrupted.`,
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noSuchCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(newConvert(), newLint(), newTools(), newSim(), newServe(), newRun(sandbox), newSessions())
	return root
}

// noSuchCommand refuses words that should be a command of cmd, and says which may
// have been meant.
func noSuchCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, c := range cmd.Commands() {
		names = append(names, c.Name())
	}
	return misused("unknown command %q for %q%s", args[0], cmd.CommandPath(), words.Meant(args[0], names))
}

// flagError adds the name of a similar flag to the error of an unknown one.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return err
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
	name := "--" + unknown.GetSpecifiedName()
	if short := unknown.GetSpecifiedShortnames(); len(short) > 1 { // "-model" is read as short flags
		name = "-" + short
	}
	return misused("%w%s", err, words.Meant(name, names))
}

// version is the module's, as the build recorded it.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(unknown)"
}

// input opens the file that a command was given, or standard input.
func input(cmd *cobra.Command, args []string) (io.Reader, func(), error) {
	if len(args) == 0 || args[0] == "-" {
		return cmd.InOrStdin(), func() {}, nil
	}
	f, err := os.Open(args[0])
	if err != nil {
		return nil, nil, failed("%w", err)
	}
	return f, func() { _ = f.Close() }, nil
}
