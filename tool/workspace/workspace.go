package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/dragoman-go/dragoman/internal/text/toolname"
	"github.com/dragoman-go/dragoman/tool"
)

// ErrOptions says that a workspace cannot be opened as asked.
var ErrOptions = errors.New("workspace: not usable as asked")

// Options say what the tools of a workspace may do. The zero value lists, reads
// and searches, and writes and patches with a human's approval.
type Options struct {
	// ReadOnly leaves out the tools that change files. Commands, if they are
	// allowed, change what they like.
	ReadOnly bool
	// Protected are names of files and folders that may not be written to, nor
	// anything in them, wherever in the workspace they are and in whatever case or
	// form some file system takes for the same name; they are not listed or
	// searched unless that is asked for. Nil means .git, .hg, .svn and .jj: who may
	// write there may have hooks run. An empty list protects nothing.
	Protected []string
	// MaxFile is the size in bytes of the largest file that is read as a whole,
	// searched, written or patched; zero means 16 MiB.
	MaxFile int64
	// NoApproval names tools whose calls run without a human's approval. By
	// default [WriteName], [PatchName] and [ShellName] need it.
	NoApproval []string
	// Shell allows commands; nil means that there is no tool for them.
	Shell *Shell
}

const defaultMaxFile = 16 << 20

// Workspace is a folder that a model works in. It is safe for concurrent use. Its
// changes are made one at a time; what other programs do meanwhile may make one
// fail, and never makes it reach outside.
type Workspace struct {
	root *os.Root
	// dir is the folder's path as it was given, made absolute; real the same
	// with its symlinks resolved.
	dir, real string
	options   Options
	protected protection
	// changing is held while files are changed.
	changing sync.Mutex
	// deviceCheck is the result of the search for device nodes before the first confined
	// command; maxDeviceWalk replaces its bound in tests.
	deviceCheck   deviceCheck
	maxDeviceWalk int
	// fault makes a step of a change fail, in tests.
	fault func(step string) error
}

// Open opens a folder as a workspace. It must be closed when its tools are no
// longer used.
func Open(dir string, options Options) (*Workspace, error) {
	if err := options.complete(); err != nil {
		return nil, err
	}
	protected, err := newProtection(options.Protected)
	if err != nil {
		return nil, err
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("workspace: %w", err)
	}
	real, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return nil, fmt.Errorf("workspace: %w", err)
	}
	root, err := os.OpenRoot(real)
	if err != nil {
		return nil, fmt.Errorf("workspace: %w", err)
	}
	return &Workspace{root: root, dir: abs, real: real, options: options, protected: protected}, nil
}

// complete fills in defaults and says what is wrong.
func (o *Options) complete() error {
	if o.Protected == nil {
		o.Protected = []string{".git", ".hg", ".svn", ".jj"}
	}
	o.Protected = slices.Clone(o.Protected)
	if o.MaxFile <= 0 {
		o.MaxFile = defaultMaxFile
	}
	for _, name := range o.NoApproval {
		if !slices.Contains([]string{toolname.ListFiles, toolname.ReadFile, toolname.SearchFiles, toolname.WriteFile, toolname.ApplyPatch, toolname.Shell}, name) {
			return fmt.Errorf("%w: NoApproval names %q, which is no tool of a workspace", ErrOptions, name)
		}
	}
	if o.Shell == nil {
		return nil
	}
	shell := *o.Shell
	o.Shell = &shell
	return shell.complete()
}

// Close ends the use of the folder.
func (w *Workspace) Close() error { return w.root.Close() }

// Dir is the folder's absolute path.
func (w *Workspace) Dir() string { return w.dir }

// Tools are all that the options allow, in an order that does not change.
func (w *Workspace) Tools() []tool.Tool {
	tools := []tool.Tool{w.List(), w.Read(), w.Search()}
	if !w.options.ReadOnly {
		tools = append(tools, w.Write(), w.Patch())
	}
	if w.options.Shell != nil {
		tools = append(tools, w.Shell())
	}
	return tools
}

// changes are the options of a tool that changes something. It runs alone, so that
// a turn's calls happen in the model's order. What check refuses is refused before
// a human is asked about it; the tool itself checks again. All calls of a turn are
// checked before the first of them runs, so a check must not look at files: "write
// a, then patch a" is one turn.
func (w *Workspace) changes(name string, check func(context.Context, tool.Input) error, preview func(context.Context, tool.Input) (string, error), more []tool.Option) []tool.Option {
	opts := []tool.Option{
		tool.Destructive(),
		tool.Set(func(s *tool.Settings) {
			s.Tags = append(s.Tags, "workspace")
			s.Exclusive = true
			s.Preview = preview
			s.Hooks.Pre = append(s.Hooks.Pre, func(ctx context.Context, in tool.Input) (tool.Input, error) { return in, check(ctx, in) })
		}),
	}
	if !slices.Contains(w.options.NoApproval, name) {
		opts = append(opts, tool.NeedsApproval())
	}
	return append(opts, more...)
}

// reads are the options of a tool that changes nothing.
func reads(more []tool.Option) []tool.Option {
	tag := tool.Set(func(s *tool.Settings) { s.Tags = append(s.Tags, "workspace") })
	return append([]tool.Option{tag, tool.ReadOnly(), tool.Idempotent()}, more...)
}
