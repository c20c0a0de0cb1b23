package workspace

import (
	"context"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/dragoman-go/dragoman/internal/text/toolname"
)

// everyTool calls each tool that takes a path, without a runner, and returns all their texts.
// No call may block.
func (p *fixture) everyTool(ctx context.Context, name string) []string {
	var said []string
	tell := func(s string, err error) {
		if err != nil {
			s += err.Error()
		}
		said = append(said, s)
	}
	zero := int64(0)
	tell(p.list(ctx, listInput{Path: name, Depth: 3, All: true}))
	tell(p.read(ctx, readInput{Path: name}))
	tell(p.read(ctx, readInput{Path: name, Offset: &zero}))
	tell(p.search(ctx, searchInput{Pattern: ".", Path: name, All: true}))
	tell(p.write(ctx, writeInput{Path: name, Content: "overwritten", Parents: true}))
	tell(p.patch(ctx, patchText(string(deleteFile)+name)))
	tell(p.patch(ctx, patchText(string(addFile)+name, "+overwritten")))
	tell(p.patch(ctx, patchText(string(updateFile)+name, "-the canary sings", "+overwritten")))
	tell(p.patch(ctx, patchText("*** Add File: mine", "+overwritten")))
	tell(p.patch(ctx, patchText("*** Update File: mine", moveTo+name)))
	_ = os.Remove(p.path("mine"))
	return said
}

// refused passes a path to every tool. Each tool must refuse it and reveal nothing about files
// outside.
func (p *fixture) refused(name string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), 20*time.Second)
	defer cancel()
	for i, s := range p.everyTool(ctx, name) {
		if strings.Contains(s, canaryContent) {
			p.t.Errorf("%q, try %d: %q", name, i, s)
		}
		if (i < 3 || i == 4) && !strings.Contains(s, errPath.Error()) && !strings.Contains(s, "does not exist") && !strings.Contains(s, "too many levels") {
			p.t.Errorf("%q, try %d, was not refused: %q", name, i, s)
		}
	}
	if ctx.Err() != nil {
		p.t.Errorf("%q made a tool wait", name)
	}
	p.wantOutsideUntouched()
}

func TestAttack_DotDot(t *testing.T) {
	p := newFixture(t, Options{})
	p.file("sub/a", "x")
	for _, name := range []string{"..", "../outside/canary", "sub/../../outside/canary", "./../outside/canary", "sub/a/../../../outside/canary", "..//outside/canary", "../root/../outside/canary"} {
		p.refused(name)
	}
}

func TestAttack_AbsolutePath(t *testing.T) {
	p := newFixture(t, Options{})
	for _, name := range []string{"/etc/passwd", filepath.Join(p.outer, "outside", "canary"), p.path("../outside/canary"), p.Dir() + "/../outside/canary", p.Dir() + "2/x", "//etc/passwd", "/"} {
		p.refused(name)
	}
	p.file("in", "inside")
	p.ok(toolname.ReadFile, args{"path": p.Dir() + "/in"}, "inside")
	p.ok(toolname.WriteFile, args{"path": p.Dir() + "/out", "content": "x"}, "created out:")
}

func TestAttack_NULAndControlCharacters(t *testing.T) {
	p := newFixture(t, Options{})
	p.file("a", "x")
	for _, name := range []string{"a\x00", "a\x00/../../outside/canary", "../outside/canary\x00.txt", "a\nb", "a\x1b[2J", "\x7f", "a\u0085"} {
		p.refused(name)
	}
}

func TestAttack_NamesOfOtherSystems(t *testing.T) {
	p := newFixture(t, Options{})
	for _, name := range []string{`..\outside\canary`, `C:\Windows\win.ini`, `C:canary`, `\\server\share\x`, `\\?\C:\x`, `//server/share/x`, "~", "~/.ssh/id_rsa", "./~/x", `sub\..\..\outside`} {
		p.refused(name)
	}
	p.wantFiles(map[string]string{})
}

func TestAttack_CaseDoesNotEscape(t *testing.T) {
	p := newFixture(t, Options{})
	for _, name := range []string{"../OUTSIDE/canary", strings.ToUpper(p.outer) + "/outside/canary", "../Outside/../outside/canary"} {
		p.refused(name)
	}
}

// A name that some file system treats as .git must not be written to.
func TestAttack_CaseOfAProtectedName(t *testing.T) {
	p := newFixture(t, Options{Protected: []string{".git", ".svn", ".hg", ".jj", "Makefile", "straße", "ki"}})
	for _, name := range []string{
		".GIT", ".gIt", ".ſvn", ".\u017fVN", ".\u017fvn. ", ".g\u0130t", ".g\u0131t", "\u212ai", "ma\u212aefile", "make\ufb01le", "strasse", "STRA\u1e9eE",
		".g\u034fit", ".gi\ufe0ft", ".\u2060jj", ".h\u00adg", ".g\u115fit", ".git\u180b",
	} {
		p.fails(toolname.WriteFile, args{"path": name, "content": "x"}, "write-protected")
		p.fails(toolname.WriteFile, args{"path": "sub/" + name + "/hook", "content": "x", "parents": true}, "write-protected")
		p.fails(toolname.ApplyPatch, patchText("*** Add File: "+name+"/hook", "+x"), "write-protected")
	}
	p.wantFiles(map[string]string{})
	for _, name := range []string{".gitignore", ".gît", ".svm", "Makefile.am", "git", "k"} {
		p.ok(toolname.WriteFile, args{"path": name, "content": "x"})
	}
}

// All characters that Unicode folds, by any mapping.
func TestAttack_CaseFoldingCoversUnicode(t *testing.T) {
	for r := rune(1); r <= unicode.MaxRune; r++ {
		for _, other := range []rune{unicode.ToLower(r), unicode.ToUpper(r), unicode.ToTitle(r), unicode.SimpleFold(r)} {
			if a, b := foldName("x"+string(r)+"x"), foldName("x"+string(other)+"x"); a != b {
				t.Errorf("%U is %q, %U is %q", r, a, other, b)
			}
		}
	}
}

// A file system may treat names as equal that no table lists. The tool asks the file system
// itself; a hard link represents such a name here.
func TestAttack_AnotherNameOfAProtectedFile(t *testing.T) {
	p := newFixture(t, Options{Protected: []string{"Makefile"}})
	p.file("sub/Makefile", "all:")
	if err := os.Link(p.path("sub/Makefile"), p.path("sub/other")); err != nil {
		t.Skip("no hard links here:", err)
	}
	p.fails(toolname.WriteFile, args{"path": "sub/other", "content": "x"}, "is Makefile, which is write-protected")
	p.fails(toolname.ApplyPatch, patchText("*** Delete File: sub/other"), "write-protected")
	p.fails(toolname.ApplyPatch, patchText("*** Update File: sub/other", "-all:", "+x"), "write-protected")
	p.wantFiles(map[string]string{"sub/Makefile": "all:", "sub/other": "all:"})
}

func TestAttack_LongNames(t *testing.T) {
	p := newFixture(t, Options{})
	for _, name := range []string{strings.Repeat("a", 256), strings.Repeat("a/", 3000), strings.Repeat("../", 1000) + "etc/passwd", strings.Repeat("é", 128) + "/x"} {
		p.refused(name)
	}
	said := strings.Join(p.everyTool(t.Context(), strings.Repeat("a", 5000)), "")
	if len(said) > 10_000 {
		t.Errorf("a long name is repeated in full: %d bytes", len(said))
	}
}

func TestAttack_SymlinkToAFileOutside(t *testing.T) {
	p := newFixture(t, Options{})
	p.link("../outside/canary", "relative")
	p.link(filepath.Join(p.outer, "outside", "canary"), "absolute")
	p.link("relative", "chain")
	for _, name := range []string{"relative", "absolute", "chain"} {
		p.refused(name)
	}
}

func TestAttack_SymlinkToAFolderOutside(t *testing.T) {
	p := newFixture(t, Options{})
	p.file("sub/x", "x")
	p.link("../outside", "away")
	p.link("../../outside", "sub/away")
	for _, name := range []string{"away/canary", "sub/away/canary", "away/new", "sub/../away/canary"} {
		p.refused(name)
	}
}

func TestAttack_SymlinkToTemporaryFileOrItself(t *testing.T) {
	p := newFixture(t, Options{})
	p.link("loop", "loop")
	p.link("b", "a")
	p.link("a", "b")
	p.refused("loop")
	p.refused("a/x")
}

func TestAttack_DeleteThroughALinkIsRefused(t *testing.T) {
	p := newFixture(t, Options{})
	p.file("real", "x")
	p.link("real", "near")
	p.fails(toolname.ApplyPatch, patchText("*** Delete File: near"), "symlink")
	p.fails(toolname.WriteFile, args{"path": "near", "content": "y"}, "symlink")
	p.wantFiles(map[string]string{"real": "x"})
}

func TestAttack_HardLinkIsReplacedNotWrittenThrough(t *testing.T) {
	p := newFixture(t, Options{})
	if err := os.Link(filepath.Join(p.outer, "outside", "canary"), p.path("hard")); err != nil {
		t.Skip("no hard links here:", err)
	}
	p.ok(toolname.WriteFile, args{"path": "hard", "content": "mine"})
	p.wantFiles(map[string]string{"hard": "mine"})
}

// Replacing a directory with a symlink during a call must not allow reading or writing outside.
func TestAttack_SymlinkSwappedDuringACall(t *testing.T) {
	p := newFixture(t, Options{})
	p.file("real/canary", "inside")
	p.link("../outside", "bad")
	var stop atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !stop.Load() {
			_ = os.Rename(p.path("real"), p.path("swap"))
			_ = os.Rename(p.path("bad"), p.path("real"))
			_ = os.Rename(p.path("real"), p.path("bad"))
			_ = os.Rename(p.path("swap"), p.path("real"))
		}
	}()
	inside := 0
	for range 40 {
		for _, s := range p.everyTool(t.Context(), "swap/canary") {
			if strings.Contains(s, canaryContent) {
				t.Fatal(s)
			}
		}
		for _, s := range p.everyTool(t.Context(), "real/canary") {
			if strings.Contains(s, canaryContent) {
				t.Fatal(s)
			}
			if strings.Contains(s, "created real/canary") || strings.Contains(s, "replaced real/canary") {
				inside++
			}
		}
	}
	stop.Store(true)
	<-done
	p.wantOutsideUntouched()
	if inside == 0 {
		t.Error("nothing was ever written: the race was not run")
	}
}

func TestAttack_EndlessAndSpecialFilesThroughLinks(t *testing.T) {
	p := newFixture(t, Options{})
	for name, target := range map[string]string{"zero": "/dev/zero", "proc": "/proc/self", "environ": "/proc/self/environ", "root": "/proc/self/root", "tty": "/dev/tty"} {
		p.link(target, name)
		p.refused(name)
	}
	p.refused("root/" + strings.TrimPrefix(p.outer, "/") + "/outside/canary")
	p.refused("proc/environ")
}

// escapeElements returns path elements that an attacker might use to escape.
func escapeElements(p *fixture) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		part := rapid.SampledFrom([]string{
			"..", ".", "", "a", "sub", "away", "near", "up", "canary", "outside", "root", ".git", "~", "C:", `\`, `..\..`, "\x00", "...", ".. ", "..;", "%2e%2e",
			"\u2025", "\uff0e\uff0e", "/", p.outer, p.outer + "/outside/canary", p.Dir(), "proc/self/root", "fd", strings.Repeat("x", 300), "\xff", "é",
		})
		parts := rapid.SliceOfN(part, 1, 8).Draw(t, "parts")
		return strings.Join(parts, rapid.SampledFrom([]string{"/", "/", "/", "//", `\`}).Draw(t, "by"))
	})
}

func TestAttack_NoPathReachesOutside(t *testing.T) {
	p := newFixture(t, Options{})
	set := func() {
		for _, name := range []string{"a", "sub", "away", "near", "up"} {
			if err := os.RemoveAll(p.path(name)); err != nil {
				t.Fatal(err)
			}
		}
		p.file("sub/a", "x")
		p.link("../outside", "away")
		p.link("sub", "near")
		p.link("..", "sub/up")
		p.link("..", "up")
	}
	set()
	paths := escapeElements(p)
	rapid.Check(t, func(t *rapid.T) {
		name := paths.Draw(t, "path")
		for i, s := range p.everyTool(t.Context(), name) {
			if strings.Contains(s, canaryContent) {
				t.Fatalf("%q, try %d: %s", name, i, s)
			}
		}
		outside := files(t, filepath.Join(p.outer, "outside"))
		if len(outside) != 1 || outside["canary"] != canary {
			t.Fatalf("%q changed %v", name, outside)
		}
		if names, _ := filepath.Glob(filepath.Join(p.outer, "*")); len(names) != 2 {
			t.Fatalf("%q made %v", name, names)
		}
		set()
	})
}

func FuzzResolve(f *testing.F) {
	outer := f.TempDir()
	w, err := Open(outer, Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { w.Close() })
	for _, s := range []string{"a/b", "../a", "/etc", "a/../../b", "~/x", `a\b`, "C:x", ".git/x", "a\x00", outer + "/x", outer + "/../x", ".GIT. /x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		rel, err := w.resolve(name)
		if err != nil {
			return
		}
		switch {
		case !filepath.IsLocal(rel), path.Clean(rel) != rel, strings.ContainsFunc(rel, unicode.IsControl), !utf8.ValidString(rel):
			t.Fatalf("%q became %q", name, rel)
		}
		if again, err := w.resolve(rel); err != nil || again != rel {
			t.Fatalf("%q became %q and then %q, %v", name, rel, again, err)
		}
		if ch, err := w.resolveChange(name); err == nil && (ch != rel || strings.Contains(strings.ToLower("/"+rel+"/"), "/.git/")) {
			t.Fatalf("%q may be written as %q", name, ch)
		}
	})
}
