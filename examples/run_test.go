// Package examples_test runs the programs of this folder.
package examples_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-go/dragoman/internal/repo/doctest"

	// The packages that the programs use: go test must not take a stored result of this test when
	// one of them has changed.
	_ "github.com/dragoman-go/dragoman/agent"
	_ "github.com/dragoman-go/dragoman/gateway"
	_ "github.com/dragoman-go/dragoman/mcp"
	_ "github.com/dragoman-go/dragoman/mcp/mcpserver"
	_ "github.com/dragoman-go/dragoman/session/sqlite"
)

// maxLines limits a program, with its header.
const maxLines = 79

// command is a command of a header and the output that the header shows.
type command struct {
	args []string
	want string
}

// header returns the commands in the comment that a program begins with: a line "$ go run
// ./examples/NAME ARGS" and the lines of its output.
func header(source string) []command {
	var list []command
	for line := range strings.Lines(source) {
		text, ok := strings.CutPrefix(line, "//")
		if !ok {
			break
		}
		indented, ok := strings.CutPrefix(text, "\t")
		switch run, isCommand := strings.CutPrefix(indented, "$ "); {
		case isCommand:
			list = append(list, command{args: strings.Fields(run)})
		case ok && len(list) > 0:
			list[len(list)-1].want += indented
		case len(list) > 0:
			return list // the paragraph after the output
		}
	}
	return list
}

// programs returns the folders of the programs, in order.
func programs(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("*/*") // all files, for the same reason
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range files {
		if filepath.Base(file) == "main.go" {
			names = append(names, filepath.Dir(file))
		}
	}
	if len(names) < 15 {
		t.Fatalf("only %d programs", len(names))
	}
	return names
}

// TestProgramsPrintWhatTheirHeadersShow runs the commands in the header of each program,
// without keys.
func TestProgramsPrintWhatTheirHeadersShow(t *testing.T) {
	bin := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", bin+string(filepath.Separator), "./...")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range programs(t) {
		t.Run(name, func(t *testing.T) {
			source, err := os.ReadFile(filepath.Join(name, "main.go"))
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(source), "\n"); n > maxLines {
				t.Errorf("%d lines, want at most %d", n, maxLines)
			}
			commands := header(string(source))
			if len(commands) == 0 {
				t.Fatalf("the header has no line %q", "$ go run ./examples/"+name)
			}
			dir := t.TempDir() // the commands share files
			for _, c := range commands {
				if len(c.args) < 3 || !slices.Equal(c.args[:3], []string{"go", "run", "./examples/" + name}) {
					t.Fatalf("the header runs %q, not this program", c.args)
				}
				if strings.Trim(c.want, "…\n") == "" {
					t.Fatalf("the header shows no output of %q", c.args)
				}
				got, err := run(t, dir, filepath.Join(bin, name), c.args[3:])
				if err != nil {
					t.Fatalf("%q: %v\n%s", c.args, err, got)
				}
				if err := doctest.Compare(c.want, got); err != nil {
					t.Errorf("%q: %v", c.args, err)
				}
			}
		})
	}
}

// run runs a program in an empty folder that is also its folder for temporary files.
func run(t *testing.T, dir, program string, args []string) (string, error) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if runtime.GOOS == "windows" {
		program += ".exe"
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		if !strings.HasSuffix(name, "_API_KEY") && !strings.HasPrefix(name, "DRAGOMAN_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "TMPDIR="+dir, "TMP="+dir, "TEMP="+dir)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestREADMEListsEveryProgram checks the rows of the table: the folder, with a link, and the
// commands of its header.
func TestREADMEListsEveryProgram(t *testing.T) {
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for line := range strings.Lines(string(page)) {
		if strings.HasPrefix(line, "| [") {
			rows = append(rows, line)
		}
	}
	names := programs(t)
	if len(rows) != len(names) {
		t.Errorf("%d rows for %d programs", len(rows), len(names))
	}
	for _, name := range names {
		source, err := os.ReadFile(filepath.Join(name, "main.go"))
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(rows, func(row string) bool { return strings.HasPrefix(row, "| ["+name+"]("+name+"/main.go) |") })
		if i < 0 {
			t.Errorf("no row begins with a link to %s/main.go", name)
			continue
		}
		for _, c := range header(string(source)) {
			if want := "`" + strings.Join(c.args, " ") + "`"; !strings.Contains(rows[i], want) {
				t.Errorf("the row of %s has no %s", name, want)
			}
		}
	}
}

func TestHeaderReadsCommandsAndOutput(t *testing.T) {
	got := header(`// Name does it.
//
//	$ go run ./examples/name
//	one
//	  two
//	$ go run ./examples/name -x
//	three
//
// To use a key:
//
//	KEY=… go run ./examples/name
package main
`)
	want := []command{
		{[]string{"go", "run", "./examples/name"}, "one\n  two\n"},
		{[]string{"go", "run", "./examples/name", "-x"}, "three\n"},
	}
	if !slices.EqualFunc(got, want, func(a, b command) bool { return slices.Equal(a.args, b.args) && a.want == b.want }) {
		t.Errorf("got %q, want %q", got, want)
	}
}
