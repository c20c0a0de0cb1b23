// Command dragoman is the command line of the Dragoman library. It
//
//   - runs a model on the files of a folder and stores the conversation in a session,
//   - converts requests, responses, streams and tools between the dialects of
//     model APIs,
//   - checks which tools a model API would reject or change,
//   - explains what a policy decides about a tool call,
//   - serves any model to clients of any dialect (the gateway), and
//   - serves a simulated model that needs no network.
//
// Examples:
//
//	dragoman run "Which files are here?"
//	dragoman sessions list
//	dragoman convert --to anthropic request.json
//	dragoman lint --for gemini tools.json
//	dragoman tools why shell --policy policy.yaml --args '{"command":"rm -r build"}'
//	dragoman sim --listen 127.0.0.1:8080
//	dragoman serve --config gateway.yaml
//
// Results go to standard output: the converted document, the verdicts of lint. The losses
// of convert and all errors go to standard error; with --report json that is at most one
// JSON document. The exit code is 0 for success, 1 if the input could not be read or
// converted, 2 for an invalid command line, and 3 if a loss is one that --fail-on forbids.
// The command run has further codes. docs/command.md describes the fields of the reports.
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
	"github.com/dragoman-go/dragoman/internal/textkit"
	"github.com/dragoman-go/dragoman/tool/workspace"
)

func main() {
	sandbox, err := workspace.Main() // must be first: the sandbox starts each command by executing this program again
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(126)
	}
	os.Exit(command{sandbox}.run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// command is the program without its process: arguments and streams are parameters.
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

// run runs a command line without a sandbox for the commands of models.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return command{}.run(args, stdin, stdout, stderr)
}

// run runs a command line and returns the exit code.
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
	if !errors.As(err, &coded) { // an error of cobra, such as an unknown command
		coded = &exitError{exitUsage, err}
	}
	switch {
	case coded.err == nil:
	case wantsJSON(args):
		_ = writeJSON(stderr, struct {
			Error string `json:"error"`
		}{message(coded.err)})
	default:
		fmt.Fprintf(stderr, "dragoman: %s\n", printable(message(coded.err))) // the text may come from a server or a model
		if coded.code == exitUsage {
			fmt.Fprintf(stderr, "Try \"%s --help\".\n", typedCommand(cmd, args).CommandPath())
		}
	}
	return coded.code
}

// typedCommand returns the innermost known command that a command line names.
func typedCommand(root *cobra.Command, args []string) *cobra.Command {
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
		return usageError("%s is missing: %s", names[len(args)], strings.TrimSuffix(cmd.UseLine(), " [flags]"))
	case !more && len(args) > len(names)+optional:
		return atMost(len(names)+optional)(cmd, args)
	}
	return nil
}

// atMost checks that a command has at most n arguments. The error shows its usage line.
func atMost(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) <= n {
			return nil
		}
		return usageError("unexpected argument %q: %s", args[n], strings.TrimSuffix(cmd.UseLine(), " [flags]"))
	}
}

// message returns the text of an error without package names. "gateway: " is one only at
// the beginning: elsewhere it is the section of the config file.
func message(err error) string { return plain(strings.TrimPrefix(err.Error(), "gateway: ")) }

var (
	// quotes matches quoted text. It comes from the input, so plain does not change it.
	quotes = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	// packages matches the package names that errors of the library begin with.
	packages = regexp.MustCompile(`(^|: |\n)(?:(?:` + dialectPackages() + `dragoman|schema|interop|history|sim|sse|eventstream|policy|tool|workspace|agent|session|sqlite|provider): )+`)
)

// dialectPackages returns the package names of the dialects, each followed by a bar.
func dialectPackages() (names string) {
	for _, codec := range dialects.All() {
		names += path.Base(reflect.TypeOf(codec).PkgPath()) + "|"
	}
	return names
}

// plain removes the names of Go packages from a text of the library. They mean nothing
// to a user of the command line.
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

// plainLosses removes the names of Go packages from the details of losses, in place.
func plainLosses(losses []dragoman.Loss) []dragoman.Loss {
	for i := range losses {
		losses[i].Detail = plain(losses[i].Detail)
	}
	return losses
}

// wantsJSON reports whether a command line asks for JSON reports. It works on the raw
// arguments, because errors are also reported for command lines that cannot be parsed.
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

// exitError ends the program with a code. err is nil if the error was already reported.
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

func usageError(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

// unknownValue returns the error for a flag whose value is not one of the known ones.
func unknownValue(flag, value string, known ...string) error {
	return usageError("unknown %s %q: known values are %s%s", flag, value, strings.Join(known, ", "), textkit.Suggest(value, known))
}

// nameSource adds source, the flag or variable that names a file or folder, to the error of
// opening that file or folder. It returns other errors unchanged.
func nameSource(source string, err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return fmt.Errorf("%s: %w", source, err)
	}
	return err
}

func newRoot(sandbox *workspace.Sandbox) *cobra.Command {
	root := &cobra.Command{
		Use:   "dragoman",
		Short: "Run, convert, check and serve models of any API",
		Long: `dragoman connects tools and clients to the APIs of model vendors. It runs a model on
the files of a folder, converts requests and responses between APIs, checks tool
definitions, and serves any model to any client.

You need no API key to try it. As long as no model is configured, a built-in
simulator answers:

  dragoman run "Which files are here?"

A "dialect" is the JSON format of a model API, such as OpenAI Chat or Anthropic
Messages. "dragoman convert --help" lists all of them.

Exit codes:

  0    success
  1    any other error: the input could not be read or converted, or a run has no
       response; of a broken stream, "dragoman convert" writes the part before the error
  2    the command line is invalid
  3    a loss occurred that --fail-on forbids
  4    "dragoman run" refused calls because no approver was attached, or the session
       has calls that wait for approval
  130  "dragoman run" was interrupted`,
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

// noSuchCommand returns an error for an unknown subcommand of cmd. The error suggests a
// similar name.
func noSuchCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, c := range cmd.Commands() {
		names = append(names, c.Name())
	}
	return usageError("unknown command %q for %q%s", args[0], cmd.CommandPath(), textkit.Suggest(args[0], names))
}

// wantedValues says what the flags of each type accept.
var wantedValues = map[string]string{
	"int": "a whole number", "int64": "a whole number", "float64": "a number", "duration": "a duration, such as 30s", "bool": "true or false",
	"stringToString": "name=value",
}

// flagError adds the name of a similar flag to the error of an unknown one, and says which
// values a flag accepts.
func flagError(cmd *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		if want := wantedValues[invalid.GetFlag().Value.Type()]; want != "" {
			return usageError("invalid --%s %q: want %s", invalid.GetFlag().Name, invalid.GetValue(), want)
		}
	}
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return err
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	name := unknown.GetSpecifiedName()
	if short := unknown.GetSpecifiedShortnames(); len(short) > 1 { // "-model" is read as short flags
		name = short
	}
	if near := textkit.Near(name, names); near != "" {
		return usageError("%w; did you mean --%s?", err, near)
	}
	return usageError("%w", err)
}

// version returns the module version that the build recorded.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(unknown)"
}

// input opens the file that the arguments name, or standard input if they name none.
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
