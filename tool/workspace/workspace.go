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

// ErrOptions is wrapped by errors about invalid options.
var ErrOptions = errors.New("workspace: invalid options")

// Options configure what the tools of a workspace may do. The zero value allows listing,
// reading and searching, and writing and patching with the approval of a human.
type Options struct {
	// ReadOnly leaves out the tools that change files. It does not restrict commands.
	ReadOnly bool
	// Protected lists names of files and directories that must not be written, including their
	// contents, anywhere in the workspace and in every spelling that some file system treats as
	// the same name. They are listed and searched only on request. Nil means .git, .hg, .svn
	// and .jj, because writing there may install hooks. An empty list protects nothing.
	Protected []string
	// MaxFile is the maximum size in bytes of a file that is read as a whole, searched, written
	// or patched; zero means 16 MiB.
	MaxFile int64
	// NoApproval lists tools whose calls run without the approval of a human. By default
	// [WriteName], [PatchName] and [ShellName] need it.
	NoApproval []string
	// Shell enables commands; nil means that there is no tool for them.
	Shell *Shell
}

const defaultMaxFile = 16 << 20

// Workspace is a directory that a model works in. It is safe for concurrent use. It makes one
// change at a time. Concurrent changes by other programs may make a change fail, but never make
// it reach outside.
type Workspace struct {
	root *os.Root
	// dir is the absolute path of the directory; real is the same with symlinks resolved.
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

// Open opens a directory as a workspace. Close it when its tools are no longer used.
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

// complete fills in defaults and returns errors.
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
			return fmt.Errorf("%w: NoApproval has %q, which is not a tool of a workspace", ErrOptions, name)
		}
	}
	if o.Shell == nil {
		return nil
	}
	shell := *o.Shell
	o.Shell = &shell
	return shell.complete()
}

// Close closes the directory.
func (w *Workspace) Close() error { return w.root.Close() }

// Dir returns the absolute path of the directory.
func (w *Workspace) Dir() string { return w.dir }

// Tools returns all tools that the options allow, in a stable order.
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

// changes returns the options of a tool that changes something. It runs alone, so that the
// calls of a turn happen in the model's order. A call that check refuses is refused before a
// human is asked; the tool itself checks again. All calls of a turn are checked before the
// first of them runs, so a check must not read files: "write a, then patch a" is one turn.
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

// reads returns the options of a tool that changes nothing.
func reads(more []tool.Option) []tool.Option {
	tag := tool.Set(func(s *tool.Settings) { s.Tags = append(s.Tags, "workspace") })
	return append([]tool.Option{tag, tool.ReadOnly(), tool.Idempotent()}, more...)
}
