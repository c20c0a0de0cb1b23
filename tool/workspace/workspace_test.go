package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/text/toolname"
	"github.com/dragoman-go/dragoman/tool"
)

// fixture is a workspace in a directory that also holds files to protect.
type fixture struct {
	*Workspace
	t *testing.T
	// outer contains root, which is the workspace, and outside.
	outer string
}

// canary is a file that must be neither read nor changed; tune is its secret content.
const (
	canary        = "the canary sings\n" + canaryContent + "\n"
	canaryContent = "do re mi 7423"
)

func newFixture(t *testing.T, options Options) *fixture {
	t.Helper()
	outer := t.TempDir()
	for _, dir := range []string{"root", "outside"} {
		if err := os.Mkdir(filepath.Join(outer, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(outer, "outside", "canary"), []byte(canary), 0o644); err != nil {
		t.Fatal(err)
	}
	w, err := Open(filepath.Join(outer, "root"), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return &fixture{Workspace: w, t: t, outer: outer}
}

func (p *fixture) path(rel string) string {
	return filepath.Join(p.outer, "root", filepath.FromSlash(rel))
}

func (p *fixture) file(rel, content string) {
	p.t.Helper()
	if err := os.MkdirAll(filepath.Dir(p.path(rel)), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(p.path(rel), []byte(content), 0o644); err != nil {
		p.t.Fatal(err)
	}
}

func (p *fixture) link(target, rel string) {
	p.t.Helper()
	if err := os.Symlink(target, p.path(rel)); err != nil {
		p.t.Fatal(err)
	}
}

// files returns all regular files below a directory.
func files(t interface{ Fatal(...any) }, dir string) map[string]string {
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(name)
		rel, _ := filepath.Rel(dir, name)
		all[filepath.ToSlash(rel)] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// wantFiles checks all files of the workspace, and that the files outside did not change.
func (p *fixture) wantFiles(want map[string]string) {
	p.t.Helper()
	if diff := cmp.Diff(want, files(p.t, p.path("."))); diff != "" {
		p.t.Errorf("the workspace (-want +got):\n%s", diff)
	}
	p.wantOutsideUntouched()
}

func (p *fixture) wantOutsideUntouched() {
	p.t.Helper()
	if diff := cmp.Diff(map[string]string{"canary": canary}, files(p.t, filepath.Join(p.outer, "outside"))); diff != "" {
		p.t.Errorf("outside the workspace (-want +got):\n%s", diff)
	}
	names, err := filepath.Glob(filepath.Join(p.outer, "*"))
	if err != nil || len(names) != 2 {
		p.t.Errorf("outside the workspace: %v, %v", names, err)
	}
}

type approveAll struct{}

func (approveAll) Approve(context.Context, *tool.ApprovalRequest) (tool.Answer, error) {
	return tool.Answer{Verdict: tool.Approved}, nil
}

// call calls a tool through a runner, with every call approved.
func (p *fixture) call(name string, args any) (string, bool) {
	p.t.Helper()
	box, err := tool.NewBox(p.Tools()...)
	if err != nil {
		p.t.Fatal(err)
	}
	c := &dragoman.ToolCall{ID: "c", Name: name}
	if text, ok := args.(string); ok {
		c.Payload, c.Arguments = codes.PayloadText, text
	} else {
		raw, err := json.Marshal(args)
		if err != nil {
			p.t.Fatal(err)
		}
		c.Arguments = string(raw)
	}
	b, err := (&tool.Runner{Approver: approveAll{}}).Start("r").Do(p.t.Context(), box, tool.Turn{Calls: []*dragoman.ToolCall{c}})
	if err != nil || b.Results[0] == nil {
		p.t.Fatalf("%v, %+v", err, b)
	}
	return b.Results[0].Text(), b.Results[0].Outcome != codes.OutcomeError
}

type args map[string]any

// ok calls a tool that must succeed, and checks that its output contains the texts.
func (p *fixture) ok(name string, in any, want ...string) string {
	p.t.Helper()
	got, ok := p.call(name, in)
	if !ok {
		p.t.Errorf("%s failed: %s", name, got)
	}
	p.has(got, want)
	return got
}

// fails calls a tool that must fail.
func (p *fixture) fails(name string, in any, want ...string) string {
	p.t.Helper()
	got, ok := p.call(name, in)
	if ok {
		p.t.Errorf("%s succeeded: %s", name, got)
	}
	p.has(got, want)
	return got
}

func (p *fixture) has(got string, want []string) {
	p.t.Helper()
	for _, w := range want {
		if !strings.Contains(got, w) {
			p.t.Errorf("got %q, want %q in it", got, w)
		}
	}
}

func names(tools []tool.Tool) []string {
	var out []string
	for _, t := range tools {
		out = append(out, t.Spec().Name)
	}
	return out
}

func TestT15_ShellIsOffByDefault(t *testing.T) {
	p := newFixture(t, Options{})
	if got, want := names(p.Tools()), []string{toolname.ListFiles, toolname.ReadFile, toolname.SearchFiles, toolname.WriteFile, toolname.ApplyPatch}; !slices.Equal(got, want) {
		t.Errorf("tools %q, want %q", got, want)
	}
	if _, err := tool.NewBox(p.Shell()); err == nil {
		t.Error("a shell that is off was put into a toolbox")
	}
	if got, want := names(newFixture(t, Options{ReadOnly: true}).Tools()), []string{toolname.ListFiles, toolname.ReadFile, toolname.SearchFiles}; !slices.Equal(got, want) {
		t.Errorf("read-only tools %q, want %q", got, want)
	}
	on := newFixture(t, Options{Shell: &Shell{AllowAny: true}})
	if !slices.Contains(names(on.Tools()), toolname.Shell) {
		t.Error("a shell that is allowed is not there")
	}
	if _, err := Open(t.TempDir(), Options{Shell: &Shell{}}); !errors.Is(err, ErrOptions) {
		t.Errorf("a shell without Allow: %v", err)
	}
}

func TestT15_OnlyThePatchToolIsFreeform(t *testing.T) {
	for _, one := range newFixture(t, Options{Shell: &Shell{AllowAny: true}}).Tools() {
		spec := one.Spec()
		if spec.Name == toolname.ApplyPatch {
			if spec.Kind != codes.ToolFreeform || spec.Grammar == nil || spec.Grammar.Syntax != "lark" || spec.Grammar.Definition != patchGrammar {
				t.Errorf("%s: kind %q, grammar %+v", spec.Name, spec.Kind, spec.Grammar)
			}
			continue
		}
		if spec.Kind == codes.ToolFreeform || !json.Valid(spec.Parameters) {
			t.Errorf("%s: kind %q, parameters %s", spec.Name, spec.Kind, spec.Parameters)
		}
	}
}

// Each tool is confined by where a path leads, also through symlinks. The runner calls it.
func TestT15_ToolsAreConfinedToTheRoot(t *testing.T) {
	p := newFixture(t, Options{Shell: &Shell{AllowAny: true}})
	p.link("../outside", "away")
	for _, out := range []string{"../outside", "away", filepath.Join(p.outer, "outside")} {
		for _, c := range []struct {
			name string
			in   any
		}{
			{toolname.ListFiles, args{"path": out}},
			{toolname.ReadFile, args{"path": out + "/canary"}},
			{toolname.SearchFiles, args{"pattern": "canary", "path": out}},
			{toolname.WriteFile, args{"path": out + "/canary", "content": "x"}},
			{toolname.WriteFile, args{"path": out + "/new", "content": "x", "parents": true}},
			{toolname.ApplyPatch, patchText("*** Delete File: " + out + "/canary")},
			{toolname.ApplyPatch, patchText("*** Add File: "+out+"/new", "+x")},
			{toolname.Shell, args{"command": "ls", "folder": out}},
		} {
			if got, ok := p.call(c.name, c.in); ok || strings.Contains(got, canaryContent) {
				t.Errorf("%s %v: %s", c.name, c.in, got)
			}
		}
	}
	p.wantOutsideUntouched()
}

func TestT15_ChangesNeedApprovalByDefault(t *testing.T) {
	p := newFixture(t, Options{Shell: &Shell{AllowAny: true}})
	asks := map[string]bool{}
	box, err := tool.NewBox(p.Tools()...)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range box.List() {
		asks[l.Name] = l.Approval != ""
		changes := l.Annotations.Destructive != nil && *l.Annotations.Destructive
		readOnly := l.Annotations.ReadOnly != nil && *l.Annotations.ReadOnly
		if changes == readOnly || changes != asks[l.Name] || changes != l.Exclusive {
			t.Errorf("%s: destructive %v, read-only %v, asks %v, exclusive %v", l.Name, changes, readOnly, asks[l.Name], l.Exclusive)
		}
	}
	want := map[string]bool{toolname.ListFiles: false, toolname.ReadFile: false, toolname.SearchFiles: false, toolname.WriteFile: true, toolname.ApplyPatch: true, toolname.Shell: true}
	if !maps.Equal(asks, want) {
		t.Errorf("needs approval: %v, want %v", asks, want)
	}
	trusted := newFixture(t, Options{NoApproval: []string{toolname.WriteFile}})
	box, err = tool.NewBox(trusted.Tools()...)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range box.List() {
		if got, want := l.Approval != "", l.Name == toolname.ApplyPatch; got != want {
			t.Errorf("%s asks: %v, want %v", l.Name, got, want)
		}
	}
	if _, err := Open(t.TempDir(), Options{NoApproval: []string{"wrte"}}); !errors.Is(err, ErrOptions) {
		t.Errorf("a misspelt tool: %v", err)
	}
}

// A human is not asked about a call that would be refused anyway.
func TestT15_InvalidCallsNeedNoApproval(t *testing.T) {
	p := newFixture(t, Options{Shell: &Shell{Allow: []string{}}})
	box, err := tool.NewBox(p.Tools()...)
	if err != nil {
		t.Fatal(err)
	}
	b, err := (&tool.Runner{}).Start("r").Do(t.Context(), box, tool.Turn{Calls: []*dragoman.ToolCall{
		{ID: "1", Name: toolname.WriteFile, Arguments: `{"path":"../x","content":""}`},
		{ID: "2", Name: toolname.ApplyPatch, Payload: codes.PayloadText, Arguments: patchText("*** Delete File: .git/config")},
		{ID: "3", Name: toolname.Shell, Arguments: `{"command":"ls"}`},
		{ID: "4", Name: toolname.WriteFile, Arguments: `{"path":"x","content":""}`},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if len(b.Pending) != 1 || b.Pending[0].Binding.CallID != "4" {
		t.Errorf("pending: %+v", b.Pending)
	}
	for i, want := range []string{"outside the workspace", "write-protected", "not allowed"} {
		if r := b.Results[i]; r == nil || !strings.Contains(r.Text(), want) {
			t.Errorf("call %d: %+v, want %q", i+1, r, want)
		}
	}
	p.wantFiles(map[string]string{})
}

// All calls of a turn are checked before the first of them runs. A check that read the files
// would refuse calls that depend on earlier ones.
func TestT15_CallsOfOneTurnBuildOnEachOther(t *testing.T) {
	update := func(name, from, to string) string { return patchText("*** Update File: "+name, "-"+from, "+"+to) }
	calls := []*dragoman.ToolCall{
		{ID: "1", Name: toolname.WriteFile, Arguments: `{"path":"a","content":"one\n"}`},
		{ID: "2", Name: toolname.ApplyPatch, Payload: codes.PayloadText, Arguments: update("a", "one", "two")},
		{ID: "3", Name: toolname.ReadFile, Arguments: `{"path":"a"}`},
		{ID: "4", Name: toolname.ApplyPatch, Payload: codes.PayloadText, Arguments: update("a", "two", "three")},
		{ID: "5", Name: toolname.WriteFile, Arguments: `{"path":"b","content":"b","version":"` + versionNew + `"}`},
		{ID: "6", Name: toolname.WriteFile, Arguments: `{"path":"b","content":"c","version":"` + versionOf([]byte("b")) + `"}`},
		{ID: "7", Name: toolname.ApplyPatch, Payload: codes.PayloadText, Arguments: patchText("*** Delete File: b")},
		{ID: "8", Name: toolname.WriteFile, Arguments: `{"path":"b/deep","content":"d","parents":true}`},
		{ID: "9", Name: toolname.ApplyPatch, Payload: codes.PayloadText, Arguments: update("a", "one", "no longer there")},
	}
	for name, approver := range map[string]tool.Approver{"answered at once": approveAll{}, "answered later": nil} {
		t.Run(name, func(t *testing.T) {
			p := newFixture(t, Options{})
			box, err := tool.NewBox(p.Tools()...)
			if err != nil {
				t.Fatal(err)
			}
			turn := tool.Turn{Calls: calls}
			b, err := (&tool.Runner{Approver: approver}).Start("r").Do(t.Context(), box, turn)
			if err == nil && approver == nil {
				// The call that needs no approval has already run and found nothing.
				if len(b.Pending) != 8 || len(b.Settled()) != 1 {
					t.Fatalf("%d are pending, %d settled", len(b.Pending), len(b.Settled()))
				}
				turn.Resume = b.Pending
				b, err = (&tool.Runner{Approver: approveAll{}}).Start("r").Do(t.Context(), box, turn)
			}
			if err != nil {
				t.Fatal(err)
			}
			for i, want := range []string{"created a", "updated a", "two", "updated a", "created b", "replaced b", "deleted b", "created b/deep", `no line that equals "one"`} {
				switch r := b.Results[i]; {
				case r == nil:
					t.Errorf("call %d has no result", i+1)
				case !strings.Contains(r.Text(), want), (r.Outcome == codes.OutcomeError) != (i == 8):
					t.Errorf("call %d: %s, want %q", i+1, r.Text(), want)
				}
			}
			p.wantFiles(map[string]string{"a": "three\n", "b/deep": "d"})
		})
	}
}

func TestT15_ListShowsSizesAndLinks(t *testing.T) {
	p := newFixture(t, Options{})
	p.file("a.txt", "12345")
	p.file("sub/deep/b.txt", "1")
	p.file(".git/config", "secret")
	p.file("build/out.bin", "x")
	p.file(".gitignore", "build/\n*.log\n!keep.log\n")
	p.file("x.log", "")
	p.file("keep.log", "")
	p.link("../outside", "away")
	p.link("a.txt", "near")
	got := p.ok(toolname.ListFiles, args{})
	want := "[.: 6 entries; 3 ignored, not shown]\n.gitignore  23\na.txt  5\naway -> ../outside\nkeep.log  0\nnear -> a.txt\nsub/\n"
	if !strings.Contains(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	p.ok(toolname.ListFiles, args{"path": "sub", "depth": 2}, "[sub: 2 entries]\nsub/deep/\nsub/deep/b.txt  1\n")
	if got := p.ok(toolname.ListFiles, args{"depth": 9, "all": true}, ".git/config", "build/out.bin"); strings.Contains(got, "canary") {
		t.Errorf("a link was followed: %s", got)
	}
	p.ok(toolname.ListFiles, args{"limit": 2, "depth": 5}, "2 entries, and more")
	p.fails(toolname.ListFiles, args{"path": "a.txt"}, "not a folder")
	p.fails(toolname.ListFiles, args{"path": "none"}, "does not exist")
}

func TestT15_ReadShowsLinesOrBytes(t *testing.T) {
	p := newFixture(t, Options{})
	p.file("a.txt", "one\ntwo\nthree\nfour")
	p.ok(toolname.ReadFile, args{"path": "a.txt"}, "[a.txt: lines 1 to 4 of 4; version ", "]\none\ntwo\nthree\nfour")
	p.ok(toolname.ReadFile, args{"path": "a.txt", "start_line": 2, "end_line": 3, "line_numbers": true}, "lines 2 to 3 of 4; continue with start_line 4", "]\n2\ttwo\n3\tthree\n")
	p.ok(toolname.ReadFile, args{"path": "a.txt", "start_line": 9}, "start_line 9 is after the end: the file has 4 lines")
	p.ok(toolname.ReadFile, args{"path": "a.txt", "offset": 4, "bytes": 3}, "[a.txt: bytes 4 to 7 of 18; continue with offset 7]\ntwo")
	p.fails(toolname.ReadFile, args{"path": "a.txt", "offset": 99}, "offset 99 is after the end")
	p.fails(toolname.ReadFile, args{"path": "a.txt", "offset": 1, "start_line": 1}, "not both")
	p.fails(toolname.ReadFile, args{"path": "a.txt", "start_line": 3, "end_line": 2}, "before start_line")
	p.file("empty", "")
	p.ok(toolname.ReadFile, args{"path": "empty"}, "[empty: empty; version ")
	p.file("bin", "\x7fELF\x00\x01")
	p.ok(toolname.ReadFile, args{"path": "bin"}, "binary file of 6 bytes", "7f 45 4c 46")
	p.file("latin", "caf\xe9\nok\n")
	p.ok(toolname.ReadFile, args{"path": "latin"}, "not UTF-8", "caf\uFFFD\nok\n")
	p.file("wide", "ab\u00e9\u00e9")
	p.ok(toolname.ReadFile, args{"path": "wide", "offset": 0, "bytes": 5}, "bytes 0 to 4 of 6; continue with offset 4]\nab\u00e9")
	p.file("long", strings.Repeat("x", 100_000)+"\nend\n")
	p.ok(toolname.ReadFile, args{"path": "long"}, "lines 1 to 1 of 2; the line is too long")
	p.file("many", strings.Repeat("line\n", 5000))
	p.ok(toolname.ReadFile, args{"path": "many"}, "lines 1 to 2000 of 5000; continue with start_line 2001")
	small := newFixture(t, Options{MaxFile: 10})
	small.file("big", "0123456789ab")
	small.fails(toolname.ReadFile, args{"path": "big"}, "too large", "offset")
	small.ok(toolname.ReadFile, args{"path": "big", "offset": 10}, "ab")
}

func TestT15_SearchMatchesARegularExpression(t *testing.T) {
	p := newFixture(t, Options{})
	p.file("a.go", "package a\n\nfunc One() {}\nfunc Two() {}\n\n\n\n\nfunc Three() {}\r\n")
	p.file("sub/b.go", "func Four() {}\n")
	p.file("sub/c.txt", "func Five\n")
	p.file("bin", "func\x00")
	p.file("skip/d.go", "func Six() {}\n")
	p.file(".gitignore", "/skip\n")
	p.link("../outside/canary", "leak")
	p.ok(toolname.SearchFiles, args{"pattern": `^func \w+`, "globs": []string{"*.go"}},
		"[4 lines match in 2 files searched; 1 ignored, not shown]\na.go:3: func One() {}\na.go:4: func Two() {}\na.go:9: func Three() {}\nsub/b.go:1: func Four() {}\n")
	p.ok(toolname.SearchFiles, args{"pattern": "func", "globs": []string{"sub/**", "!*.go"}}, "sub/c.txt:1:", "1 line matches")
	p.ok(toolname.SearchFiles, args{"pattern": "TWO", "ignore_case": true, "context": 1}, "a.go-3- func One() {}\na.go:4: func Two() {}\na.go-5- \n")
	p.ok(toolname.SearchFiles, args{"pattern": "func", "limit": 1}, "1 line matches", "stopped there")
	p.ok(toolname.SearchFiles, args{"pattern": "func", "all": true}, "skip/d.go:1:", "1 binary file not searched")
	p.ok(toolname.SearchFiles, args{"pattern": "func", "path": "sub/b.go"}, "1 line matches in 1 file searched")
	p.ok(toolname.SearchFiles, args{"pattern": "canary", "all": true}, "0 lines match")
	p.fails(toolname.SearchFiles, args{"pattern": "(?=x)"}, "RE2")
	p.fails(toolname.SearchFiles, args{"pattern": "(a{1000}){1000}"}, "RE2")
}

func TestT15_WriteReplacesAFileAtomically(t *testing.T) {
	p := newFixture(t, Options{})
	p.ok(toolname.WriteFile, args{"path": "a.txt", "content": "one"}, "created a.txt: 3 bytes; version "+versionOf([]byte("one")))
	p.ok(toolname.WriteFile, args{"path": "a.txt", "content": "two"}, "replaced a.txt")
	p.ok(toolname.WriteFile, args{"path": "sub/deep/b.txt", "content": "x", "parents": true}, "created")
	p.fails(toolname.WriteFile, args{"path": "a.txt", "content": "three", "version": versionOf([]byte("one"))}, "has changed")
	p.ok(toolname.WriteFile, args{"path": "a.txt", "content": "three", "version": versionOf([]byte("two"))}, "replaced")
	p.fails(toolname.WriteFile, args{"path": "a.txt", "content": "four", "version": "new"}, "exists already")
	p.fails(toolname.WriteFile, args{"path": "none.txt", "content": "four", "version": "0123456789abcdef"}, "does not exist")
	p.fails(toolname.WriteFile, args{"path": "sub", "content": "x"}, "is a folder")
	p.fails(toolname.WriteFile, args{"path": "sub/", "content": "x"}, "is a folder")
	p.wantFiles(map[string]string{"a.txt": "three", "sub/deep/b.txt": "x"})
	if err := os.Chmod(p.path("a.txt"), 0o750); err != nil {
		t.Fatal(err)
	}
	p.ok(toolname.WriteFile, args{"path": "a.txt", "content": "four"})
	if info, err := os.Stat(p.path("a.txt")); err != nil || info.Mode().Perm() != 0o750 {
		t.Errorf("the mode is %v, %v; want it kept", info.Mode(), err)
	}
	small := newFixture(t, Options{MaxFile: 4})
	small.fails(toolname.WriteFile, args{"path": "a", "content": "12345"}, "too large")
	small.wantFiles(map[string]string{})
}

// An error must contain what the model needs to continue.
func TestT15_MissingFolderErrorNamesParents(t *testing.T) {
	p := newFixture(t, Options{})
	p.fails(toolname.WriteFile, args{"path": "sub/b.txt", "content": "x"}, `the folder "sub" does not exist; nothing was changed; with parents: true it is created`)
	p.fails(toolname.WriteFile, args{"path": "sub/b.txt", "content": "x", "parents": false}, "parents: true")
	p.wantFiles(map[string]string{})
	p.ok(toolname.WriteFile, args{"path": "sub/b.txt", "content": "x", "parents": true}, "created sub/b.txt")
}

func TestT15_GitDirectoryIsWriteProtected(t *testing.T) {
	p := newFixture(t, Options{})
	p.file(".git/config", "[core]")
	p.file("sub/.git", "gitdir: ../x")
	p.link(".git", "alias")
	before := files(t, p.path("."))
	for _, name := range []string{
		".git/hooks/pre-commit", ".git/config", "sub/.git", "sub/.git/config", ".GIT/config", ".Git/config", ".git./config", ".git /config",
		".g\u200cit/config", "git~1/config", ".git::$INDEX_ALLOCATION/config", "x/../.git/config", "alias/config", ".hg/hgrc",
	} {
		p.fails(toolname.WriteFile, args{"path": name, "content": "x", "parents": true}, "this path cannot be used")
		p.fails(toolname.ApplyPatch, "*** Begin Patch\n*** Add File: "+name+"1\n+x\n*** Delete File: "+name+"\n*** End Patch\n")
	}
	p.wantFiles(before)
	p.ok(toolname.ReadFile, args{"path": ".git/config"}, "[core]")
	p.ok(toolname.WriteFile, args{"path": ".gitignore", "content": "x"})
	open := newFixture(t, Options{Protected: []string{}})
	open.ok(toolname.WriteFile, args{"path": ".git/config", "content": "x", "parents": true})
	own := newFixture(t, Options{Protected: []string{"Makefile"}})
	own.fails(toolname.WriteFile, args{"path": "sub/makefile", "content": "x", "parents": true}, "write-protected")
}
