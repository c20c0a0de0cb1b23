package workspace

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/dragoman-go/dragoman/internal/text/lark"
	"github.com/dragoman-go/dragoman/internal/text/toolname"
)

func patchText(lines ...string) string {
	return beginPatch + "\n" + strings.Join(lines, "\n") + "\n" + endPatch + "\n"
}

func TestT15_PatchChangesSeveralFiles(t *testing.T) {
	p := newFixture(t, Options{})
	p.file("a.go", "package a\n\nfunc One() {\n\treturn\n}\n\nfunc Two() {\n\treturn\n}\n")
	p.file("old.txt", "bye\n")
	p.file("move.txt", "1\n2\n3\n")
	if err := os.Chmod(p.path("move.txt"), 0o700); err != nil {
		t.Fatal(err)
	}
	p.ok(toolname.ApplyPatch, patchText(
		"*** Update File: a.go",
		"@@ func Two() {",
		"-\treturn",
		"+\tpanic(2)",
		" }",
		"*** Add File: docs/new.md",
		"+# New",
		"+",
		"+text",
		"*** Delete File: old.txt",
		"*** Update File: move.txt",
		"*** Move to: sub/moved.txt",
		"@@",
		" 1",
		"-2",
		"+two",
	), "updated a.go", "added docs/new.md", "deleted old.txt", "moved move.txt to sub/moved.txt")
	p.wantFiles(map[string]string{
		"a.go":          "package a\n\nfunc One() {\n\treturn\n}\n\nfunc Two() {\n\tpanic(2)\n}\n",
		"docs/new.md":   "# New\n\ntext\n",
		"sub/moved.txt": "1\ntwo\n3\n",
	})
	if info, err := os.Stat(p.path("sub/moved.txt")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the mode of what was moved is %v, %v; want it kept", info.Mode(), err)
	}
}

func TestT15_HunksMatchExactlyOnePlace(t *testing.T) {
	for _, tc := range []struct {
		name, file string
		hunk       []string
		want       string // the content of the file afterwards
		err        string // or a substring of the error
	}{
		{"exact lines before lines with other ends", "x  \ny\nx\ny\n", []string{" x", "-y", "+z"}, "x  \ny\nx\nz\n", ""},
		{"other ends of lines if there is nothing exact", "x  \ny\t\n", []string{" x", "-y", "+z"}, "x  \nz\n", ""},
		{"another indentation is another line", "  x\n", []string{"-x", "+z"}, "", "line 3 of the patch: \"f\" has no line that equals \"x\", the first line of this hunk"},
		{"twice", "x\ny\nx\n", []string{"-x", "+z"}, "", "2 times, at lines 1, 3: add more"},
		{"twice with other ends", "x \nx\t\n", []string{"-x", "+z"}, "", "2 times"},
		{"the first after its anchor", "a\nx\nb\nx\nc\nx\n", []string{"@@ b", "-x", "+z"}, "a\nx\nb\nz\nc\nx\n", ""},
		{"an anchor that is repeated as context", "a\nx\nb\nx\n", []string{"@@ b", " b", "-x", "+z"}, "a\nx\nb\nz\n", ""},
		{"an anchor in another indentation", "\ta\nx\n\tb\nx\n", []string{"@@ b", "-x", "+z"}, "\ta\nx\n\tb\nz\n", ""},
		{"anchor after anchor", "class A\ndef f\nx\nclass B\ndef f\nx\n", []string{"@@ class B", "@@ def f", "-x", "+z"}, "class A\ndef f\nx\nclass B\ndef f\nz\n", ""},
		{"an anchor that is there twice", "b\nx\nb\nx\n", []string{"@@ b", "-x", "+z"}, "", "2 times, at lines 1, 3: use a line that occurs only once"},
		{"an anchor that is not there", "b\nx\n", []string{"@@ c", "-x", "+z"}, "", "no line that equals \"c\", the line after @@"},
		{"lines after an anchor", "a\nb\n", []string{"@@ a", "+z"}, "a\nz\nb\n", ""},
		{"lines at the end", "a\nb\n", []string{"+z", endOfFile}, "a\nb\nz\n", ""},
		{"lines at the end without a line end", "a\nb", []string{"+z", endOfFile}, "a\nb\nz\n", ""},
		{"lines from nowhere", "a\nb\n", []string{"+z"}, "", "nothing says where"},
		{"lines into an empty file", "", []string{"+z"}, "z\n", ""},
		{"the end makes it unique", "x\ny\nx\n", []string{"-x", "+z", endOfFile}, "x\ny\nz\n", ""},
		{"not at the end", "x\ny\n", []string{"-x", "+z", endOfFile}, "", "not at its end"},
		{"hunks in order", "a\nb\nc\nd\n", []string{"-a", "+1", "@@", "-c", "+3"}, "1\nb\n3\nd\n", ""},
		{"hunks out of order", "a\nb\nc\nd\n", []string{"-c", "+3", "@@", "-a", "+1"}, "", "no line after line 3 that equals \"a\""},
		{"the second of two the same", "a\nx\nb\nx\n", []string{" a", "-x", "+1", "@@", "-x", "+2"}, "a\n1\nb\n2\n", ""},
		{"Windows line ends", "a\r\nb\r\n", []string{" a", "-b", "+c"}, "a\r\nc\r\n", ""},
		{"mixed line ends", "a\r\nb\n", []string{" a", "-b", "+c"}, "a\r\nc\n", ""},
		{"no line end at the end, untouched", "a\nb", []string{"-a", "+c", " b"}, "c\nb", ""},
		{"an empty line for an empty line", "a\n\nb\n", []string{" a", "", "-b", "+c"}, "a\n\nc\n", ""},
		{"where they differ", "a\nb\nc\n", []string{" a", " b", "-d", "+e"}, "", `nearest is line 1, but in line 3, where the hunk has "d", it has "c"`},
		{"where the file ends", "a\n", []string{" a", "-b", "+e"}, "", "it ends there"},
		{"nothing changes", "a\n", []string{"-a", "+a"}, "", "change nothing"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := newFixture(t, Options{})
			p.file("f", tc.file)
			text := patchText(append([]string{"*** Update File: f"}, tc.hunk...)...)
			if tc.err != "" {
				p.fails(toolname.ApplyPatch, text, tc.err, "nothing was changed")
				p.wantFiles(map[string]string{"f": tc.file})
				return
			}
			p.ok(toolname.ApplyPatch, text)
			p.wantFiles(map[string]string{"f": tc.want})
		})
	}
}

func TestT15_PatchSyntaxErrorsHaveALine(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"nothing", "", `line 1 of the patch: expected "*** Begin Patch", but the patch ends`},
		{"a fence", "```\n*** Begin Patch", `line 1 of the patch: expected "*** Begin Patch", got "` + "```"},
		{"no end", "*** Begin Patch\n*** Delete File: a\n", `line 3 of the patch: expected "*** Add File: path"`},
		{"no change", "*** Begin Patch\n*** End Patch", "line 2 of the patch: the patch changes no file"},
		{"more after the end", patchText("*** Delete File: a") + "more", `line 4 of the patch: expected nothing after "*** End Patch"`},
		{"an unknown line", patchText("*** Rename File: a"), `got "*** Rename File: a"`},
		{"no path", patchText("*** Add File:  ", "+a"), "expected a path after"},
		{"no path to move to", patchText("*** Update File: a", "*** Move to: "), "line 3 of the patch: expected a path after"},
		{"a line of a new file without +", patchText("*** Add File: a", "+1", "2"), `line 4 of the patch: expected a line of the new file, which begins with +`},
		{"no hunk", patchText("*** Update File: a"), "line 3 of the patch: expected a hunk"},
		{"a hunk of context", patchText("*** Update File: a", " b"), "this hunk changes nothing"},
		{"a stray line", patchText("*** Update File: a", "-b", "c"), `line 4 of the patch: expected a line of a hunk, which begins with a space, - or +, got "c"`},
		{"line numbers", patchText("*** Update File: a", "@@ -1,2 +1,2 @@", "-b"), "line numbers are not used"},
		{"@@ without a space", patchText("*** Update File: a", "@@x", "-b"), `expected "@@" alone`},
		{"a hunk after the end", patchText("*** Update File: a", "-b", endOfFile, "-c"), "nothing follows"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, err := parsePatch(tc.text)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, %v; want %q", p, err, tc.want)
			}
		})
	}
}

func TestT15_PatchNamingAFileTwiceIsRefused(t *testing.T) {
	p := newFixture(t, Options{})
	p.file("a", "x\n")
	if err := os.Link(p.path("a"), p.path("b")); err != nil {
		t.Fatal(err)
	}
	for _, lines := range [][]string{
		{"*** Delete File: a", "*** Add File: a", "+1"},
		{"*** Delete File: a", "*** Add File: ./sub/../a", "+1"},
		{"*** Delete File: a", "*** Delete File: b"},
		{"*** Add File: n", "+1", "*** Add File: n/m", "+1"},
		{"*** Add File: n/m", "+1", "*** Add File: n", "+1"},
		{"*** Delete File: a", "*** Update File: b", "*** Move to: a"},
		{"*** Add File: a", "+1"},
		{"*** Delete File: none"},
		{"*** Update File: a", "*** Move to: b"},
	} {
		p.fails(toolname.ApplyPatch, patchText(lines...), "line ", "nothing was changed")
	}
	p.wantFiles(map[string]string{"a": "x\n", "b": "x\n"})
}

// Whichever step fails, no file has changed.
func TestAttack_PatchWithTooManyFiles(t *testing.T) {
	p := newFixture(t, Options{})
	var lines []string
	for i := range maxChanges {
		lines = append(lines, fmt.Sprintf("*** Add File: f%d", i))
	}
	p.fails(toolname.ApplyPatch, patchText(append(lines, "*** Add File: one/more")...), "at most 500 files", "nothing was changed")
	p.wantFiles(map[string]string{})
	p.ok(toolname.ApplyPatch, patchText(lines...))
}

// If both a file and a hunk repeat one line, they are compared again and again. Other calls
// must not wait for that.
func TestAttack_PatchSearchIsLimited(t *testing.T) {
	const n = 1 << 19
	h := hunk{lines: append(slices.Repeat([]hunkLine{{' ', "x"}}, 1<<15), hunkLine{'-', "y"})}
	for _, eof := range []bool{false, true} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		h.eof = eof
		began := time.Now()
		if _, err := applyHunks(ctx, "f", []byte(strings.Repeat("x\n", n)), []hunk{h, h}); err == nil || ctx.Err() == nil {
			t.Errorf("it ended in time: %v", err)
		}
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("it was looked for %s after its time", took)
		}
	}
}

func TestT15_FailedPatchIsRolledBack(t *testing.T) {
	text := patchText("*** Update File: a", "-1", "+one", "*** Add File: new/dir/b", "+2", "*** Delete File: c", "*** Update File: d", "*** Move to: e/d", "-4", "+four")
	before := map[string]string{"a": "1\n", "c": "3\n", "d": "4\n"}
	steps := 0
	for fail := 1; ; fail++ {
		p := newFixture(t, Options{})
		for name, content := range before {
			p.file(name, content)
		}
		n := 0
		p.fault = func(string) error {
			if n++; n == fail {
				return errors.New("the disk is full")
			}
			return nil
		}
		got, ok := p.call(toolname.ApplyPatch, text)
		if ok {
			steps = n
			p.wantFiles(map[string]string{"a": "one\n", "new/dir/b": "2\n", "e/d": "four\n"})
			break
		}
		p.has(got, []string{"the disk is full", "nothing was changed"})
		p.wantFiles(before)
		if _, err := os.Stat(p.path("new")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("step %d: a folder was left behind", fail)
		}
	}
	if steps < 8 {
		t.Errorf("only %d steps could fail", steps)
	}
}

func TestT15_ConcurrentlyChangedFileIsNotPatched(t *testing.T) {
	p := newFixture(t, Options{})
	p.file("a", "1\n")
	p.file("b", "1\n")
	p.fault = func(step string) error {
		if step == "apply" {
			p.file("b", "someone else\n")
		}
		return nil
	}
	p.fails(toolname.ApplyPatch, patchText("*** Update File: a", "-1", "+2", "*** Update File: b", "-1", "+2"), "was changed meanwhile", "nothing was changed")
	p.wantFiles(map[string]string{"a": "1\n", "b": "someone else\n"})
}

// render formats a patch. Parsing it again returns the same patch.
func render(p *patch) string {
	var b strings.Builder
	b.WriteString(beginPatch + "\n")
	for _, c := range p.changes {
		b.WriteString(string(c.kind) + c.path + "\n")
		if c.moveTo != "" {
			b.WriteString(moveTo + c.moveTo + "\n")
		}
		for _, l := range c.content {
			b.WriteString("+" + l + "\n")
		}
		for _, h := range c.hunks {
			if len(h.anchors) == 0 {
				b.WriteString("@@\n")
			}
			for _, a := range h.anchors {
				b.WriteString("@@ " + a + "\n")
			}
			for _, l := range h.lines {
				b.WriteString(string(l.op) + l.text + "\n")
			}
			if h.eof {
				b.WriteString(endOfFile + "\n")
			}
		}
	}
	b.WriteString(endPatch)
	return b.String()
}

// withoutLines removes the line numbers of the patch.
func (p *patch) withoutLines() *patch {
	out := &patch{changes: slices.Clone(p.changes)}
	for i := range out.changes {
		c := &out.changes[i]
		c.line, c.hunks = 0, slices.Clone(c.hunks)
		for j := range c.hunks {
			c.hunks[j].line = 0
		}
	}
	return out
}

func FuzzParsePatch(f *testing.F) {
	f.Add(patchText("*** Update File: a.go", "*** Move to: b.go", "@@ func x", "@@", " a", "-b", "+c", "", endOfFile, "*** Add File: c", "+d", "*** Delete File: e"))
	f.Add("*** Begin Patch\r\n*** Add File: a\r\n+b\r\n*** End Patch\r\n")
	f.Add("*** Begin Patch\n*** Update File: a\n@@ -1 +1 @@\n")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := parsePatch(text)
		if err != nil {
			if e := (patchError{}); !errors.As(err, &e) || e.line < 1 || e.line > strings.Count(text, "\n")+2 {
				t.Fatalf("%v does not say where", err)
			}
			return
		}
		again, err := parsePatch(render(p))
		if err != nil {
			t.Fatalf("%v in %q", err, render(p))
		}
		if diff := cmp.Diff(p.withoutLines(), again.withoutLines(), cmp.AllowUnexported(patch{}, change{}, hunk{}, hunkLine{})); diff != "" {
			t.Fatal(diff)
		}
		for _, c := range p.changes {
			_, _ = applyHunks(t.Context(), "f", []byte(text), c.hunks)
		}
	})
}

// drawnFile is a file and a list of edits of its lines: an independent description of what a
// patch does.
type drawnFile struct {
	lines []string
	// remove lists the removed lines; insert holds the lines inserted before each line and at
	// the end.
	remove []bool
	insert [][]string
}

func drawFile(t *rapid.T) drawnFile {
	text := rapid.StringOfN(rapid.RuneFrom([]rune("ab \t*@+-é")), 0, 6, -1)
	n := rapid.IntRange(0, 30).Draw(t, "lines")
	d := drawnFile{insert: make([][]string, n+1), remove: make([]bool, n)}
	for i := range n {
		d.lines = append(d.lines, fmt.Sprintf("%s%d", text.Draw(t, "line"), i)) // each line is unique
		d.remove[i] = rapid.IntRange(0, 5).Draw(t, "remove") == 0
	}
	for i := range d.insert {
		if rapid.IntRange(0, 5).Draw(t, "insert") == 0 {
			d.insert[i] = rapid.SliceOfN(text, 1, 3).Draw(t, "inserted")
		}
	}
	return d
}

func (d drawnFile) after() []string {
	var out []string
	for i, l := range d.lines {
		out = append(out, d.insert[i]...)
		if !d.remove[i] {
			out = append(out, l)
		}
	}
	return append(out, d.insert[len(d.lines)]...)
}

// hunks returns the edits as hunks with some lines of context.
func (d drawnFile) hunks(context int) []string {
	touched := func(i int) bool { return i < len(d.lines) && d.remove[i] || len(d.insert[i]) > 0 }
	var out []string
	for i := 0; i <= len(d.lines); {
		if !touched(i) {
			i++
			continue
		}
		out = append(out, "@@")
		from := i
		for k := 0; k < context && from > 0 && !touched(from-1) && !slices.Contains(out, " "+d.lines[from-1]); k++ {
			from--
		}
		for ; from < i; from++ {
			out = append(out, " "+d.lines[from])
		}
		last := i
		for ; i <= len(d.lines) && (touched(i) || i-last <= context); i++ {
			for _, l := range d.insert[i] {
				out = append(out, "+"+l)
			}
			if i == len(d.lines) {
				out = append(out, endOfFile)
				return out
			}
			if touched(i) {
				last = i
			}
			op := " "
			if d.remove[i] {
				op = "-"
			}
			out = append(out, op+d.lines[i])
		}
	}
	return out
}

func joinLines(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return strings.Join(lines, "\n") + "\n"
}

func TestT15_PatchesAgreeWithTheirEdits(t *testing.T) {
	p := newFixture(t, Options{})
	grammar, err := lark.Compile(patchGrammar)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		before, after := map[string]string{}, map[string]string{}
		var lines []string
		for i := range rapid.IntRange(1, 4).Draw(t, "files") {
			name := fmt.Sprintf("dir%d/f%d", i%2, i)
			switch d := drawFile(t); rapid.IntRange(0, 4).Draw(t, "kind") {
			case 0:
				lines = append(lines, string(addFile)+name)
				for _, l := range d.lines {
					lines = append(lines, "+"+l)
				}
				after[name] = joinLines(d.lines)
			case 1:
				lines = append(lines, string(deleteFile)+name)
				before[name] = joinLines(d.lines)
			default:
				hunks := d.hunks(rapid.IntRange(1, 4).Draw(t, "context"))
				before[name], after[name] = joinLines(d.lines), joinLines(d.lines)
				if len(hunks) == 0 || before[name] == joinLines(d.after()) {
					continue
				}
				lines = append(append(lines, string(updateFile)+name), hunks...)
				after[name] = joinLines(d.after())
			}
		}
		if len(lines) == 0 {
			t.Skip("nothing changes")
		}
		if err := os.RemoveAll(p.path("dir0")); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(p.path("dir1")); err != nil {
			t.Fatal(err)
		}
		for name, content := range before {
			p.file(name, content)
		}
		if err := grammar.Match(patchText(lines...)); err != nil {
			t.Fatalf("%v\n%s", err, patchText(lines...))
		}
		if _, err := p.patch(t.Context(), patchText(lines...)); err != nil {
			t.Fatalf("%v\n%s", err, patchText(lines...))
		}
		if got := files(t, p.path(".")); !maps.Equal(got, after) {
			t.Fatalf("%s\n%s", patchText(lines...), cmp.Diff(after, got))
		}
	})
	p.wantOutsideUntouched()
}
