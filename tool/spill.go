package tool

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"unicode/utf8"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/text/toolname"
	"github.com/dragoman-go/dragoman/internal/textkit"
)

// pageBytes is the number of bytes of a page, unless the call asks for less.
const pageBytes = 20_000

type readOutput struct {
	Name   string `json:"name" doc:"the name that the cut output gave"`
	Offset int    `json:"offset,omitempty" doc:"the byte to begin at; 0 is the beginning" jsonschema:"minimum=0"`
	Bytes  int    `json:"bytes,omitempty" doc:"how many bytes to read, at most 20000" jsonschema:"minimum=1,maximum=20000"`
}

// ReadOutput returns a tool with which a model reads outputs that were too long, page by
// page. An agent whose tools can spill adds it to every request; add it to a [Box] of your
// own before the first request.
//
// Options change it, such as its name for a toolbox that has its own tool named
// "read_tool_output"; the note in a shortened output names it:
//
//	tool.ReadOutput(store, tool.Describe(func(s *dragoman.ToolSpec) { s.Name = "read_more" }))
func ReadOutput(store SpillStore, opts ...Option) Tool {
	if len(opts) > 0 {
		return newOutputReader(store, opts...)
	}
	model, err := outputReader()
	if err != nil {
		return &invalidTool{spec: dragoman.ToolSpec{Name: toolname.ReadOutput, Description: readOutputText}, err: err}
	}
	return &typedTool[readOutput, string]{
		definedTool: definedTool{spec: model.spec, settings: model.settings, validator: model.ready.validator},
		f:           pageReader(store), custom: model.custom,
	}
}

const readOutputText = "Reads a tool's output that was too long to show, page by page."

// outputReader returns the tool whose definition all output readers copy. Its schema is
// compiled only once, because every run of an agent has such a tool.
var outputReader = sync.OnceValues(func() (*typedTool[readOutput, string], error) {
	t := newOutputReader(nil)
	if _, err := newEntry(t); err != nil {
		return nil, err
	}
	return t.(*typedTool[readOutput, string]), nil
})

func newOutputReader(store SpillStore, opts ...Option) Tool {
	own := []Option{ReadOnly(), Idempotent(), Set(func(s *Settings) {
		s.Limits.Chars, s.Limits.Tokens, s.ReadsOutput = pageBytes+200, -1, true // pageReader counts tokens itself
	})}
	return New(toolname.ReadOutput, readOutputText, pageReader(store), append(own, opts...)...)
}

func pageReader(store SpillStore) func(context.Context, readOutput) (string, error) {
	return func(ctx context.Context, in readOutput) (string, error) {
		info, _ := InfoFrom(ctx)
		if in.Bytes == 0 {
			in.Bytes = pageBytes
		}
		text, total, err := store.Read(ctx, info.Run, in.Name, in.Offset, in.Bytes)
		if err != nil {
			return "", err
		}
		start, err := pageStart(ctx, store, info.Run, in, text, total)
		if err != nil {
			return "", err
		}
		text = withinTokens(ctx, text)
		end := start + len(text)
		head := fmt.Sprintf("[bytes %d to %d of %d", start, end, total)
		if end < total {
			head += "; continue with offset " + strconv.Itoa(end)
		}
		return head + "]\n" + text, nil
	}
}

// withinTokens returns the beginning of a page that respects the limit on tokens of the toolbox or
// runner, at least one character. A page that was cut in the middle and stored again could never
// be read to its end.
func withinTokens(ctx context.Context, page string) string {
	c := callFrom(ctx)
	if c == nil {
		return page
	}
	x := c.ref
	l := x.runner.Limits
	if x.box != nil {
		l = x.box.config.Limits.withWider(l)
	}
	if l.Tokens <= 0 {
		return page
	}
	b := bounder{limits: Limits{Chars: -1, Tokens: l.Tokens}, count: x.runner.Count}
	for n := 0; len(page) > utf8.UTFMax; n++ {
		tokens := b.tokens(page, 0, 0)
		if tokens <= l.Tokens {
			break
		}
		fewer := int(float64(len(page)) * float64(l.Tokens) / float64(tokens))
		if n >= 8 { // the tokens are spread unevenly
			fewer = min(fewer, len(page)/2)
		}
		page = cutAt(page, max(fewer, utf8.UTFMax))
	}
	return page
}

// pageStart returns the offset of the first byte of a page. It is less than in.Offset if
// that is inside a character, as stores return whole characters.
func pageStart(ctx context.Context, store SpillStore, run string, in readOutput, page string, total int) (int, error) {
	if in.Offset == 0 || page == "" || page[0] < utf8.RuneSelf {
		return in.Offset, nil
	}
	before, _, err := store.Read(ctx, run, in.Name, in.Offset-1, in.Bytes)
	if err != nil || before != page {
		return in.Offset, err // the byte before is of another character
	}
	rest, _, err := store.Read(ctx, run, in.Name, in.Offset, total)
	return total - len(rest), err
}

// NoSpill is a [SpillStore] that stores nothing: the rest of a cut output is lost. An agent
// whose Runner has it does not offer the tool "read_tool_output".
var NoSpill SpillStore = noSpill{}

type noSpill struct{}

func (noSpill) Put(context.Context, CallRef, int, string) (string, error) {
	return "", fmt.Errorf("%w: outputs are not stored", ErrNoSpill)
}

func (noSpill) Read(_ context.Context, _, name string, _, _ int) (string, int, error) {
	return "", 0, fmt.Errorf("%w: %q: outputs are not stored", ErrNoSpill, name)
}

// MemorySpill stores outputs in memory and discards the oldest if they exceed MaxBytes. The
// zero value is ready to use. It is safe for concurrent use.
type MemorySpill struct {
	// MaxBytes limits all outputs together; zero means 256 MiB.
	MaxBytes int

	mu     sync.Mutex
	size   int
	order  []string
	byName map[string]spilled
}

type spilled struct{ run, content string }

const defaultSpillBytes = 256 << 20

// Put implements [SpillStore].
func (m *MemorySpill) Put(_ context.Context, of CallRef, part int, content string) (string, error) {
	most := m.MaxBytes
	if most <= 0 {
		most = defaultSpillBytes
	}
	if len(content) > most {
		return "", fmt.Errorf("tool: an output of %s is longer than the maximum of %s: %w", textkit.Count(len(content), "byte"), textkit.Count(most, "byte"), dragoman.ErrTooLarge)
	}
	name := toolname.Spilled(of.Run, of.Turn, of.CallID, part)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.byName == nil {
		m.byName = map[string]spilled{}
	}
	if old, again := m.byName[name]; again {
		m.size -= len(old.content)
	} else {
		m.order = append(m.order, name)
	}
	m.byName[name] = spilled{of.Run, content}
	m.size += len(content)
	for m.size > most {
		oldest := m.order[0]
		m.order = m.order[1:]
		m.size -= len(m.byName[oldest].content)
		delete(m.byName, oldest)
	}
	return name, nil
}

// Read implements [SpillStore].
func (m *MemorySpill) Read(_ context.Context, run, name string, offset, n int) (string, int, error) {
	m.mu.Lock()
	s, ok := m.byName[name]
	m.mu.Unlock()
	if !ok || s.run != run {
		return "", 0, fmt.Errorf("%w: %q is not in memory any more, because the process that stored it has ended, or later outputs replaced it; call the tool again if you need it", ErrNoSpill, name)
	}
	if offset < 0 || offset > len(s.content) {
		return "", len(s.content), fmt.Errorf("tool: offset %[3]d is outside of output %[1]q, which has %[2]s", name, textkit.Count(len(s.content), "byte"), offset)
	}
	for offset > 0 && offset < len(s.content) && !utf8.RuneStart(s.content[offset]) {
		offset--
	}
	return cutAt(s.content[offset:], max(n, utf8.UTFMax)), len(s.content), nil
}
