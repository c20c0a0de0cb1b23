package skill_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/skill"
	"github.com/dragoman-go/dragoman/tool"
)

// write writes files below a folder, by path.
func write(t *testing.T, dir string, files map[string]string) string {
	t.Helper()
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const refunds = "---\nname: refunds\ndescription: Process refunds. Use it when a customer wants money back.\nlicense: MIT\nallowed-tools: Bash(git add:*, git status) Read, Grep\nmetadata:\n  team: billing\n---\n\n# Refunds\n\nRead forms/mail.md.\n"

func open(t *testing.T, dir string) *skill.Set {
	t.Helper()
	s, err := skill.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestM6_SkillHasItsFrontMatterAndFiles(t *testing.T) {
	dir := write(t, t.TempDir(), map[string]string{
		"refunds/SKILL.md":      refunds,
		"refunds/forms/mail.md": "Dear customer",
		"refunds/.git/config":   "not a file of the skill",
		"notes/readme.txt":      "not a skill",
	})
	s := open(t, dir)
	if len(s.Problems()) > 0 || len(s.Skills()) != 1 {
		t.Fatalf("skills %v, problems %v", s.Skills(), s.Problems())
	}
	k := s.Skills()[0]
	if k.Name != "refunds" || k.License != "MIT" || !strings.HasPrefix(k.Description, "Process refunds.") {
		t.Errorf("skill = %+v", k)
	}
	if want := []string{"Bash(git add:*, git status)", "Read", "Grep"}; !slices.Equal(k.AllowedTools, want) {
		t.Errorf("AllowedTools = %q, want %q", k.AllowedTools, want)
	}
	var front struct{ Metadata map[string]string }
	if err := json.Unmarshal(k.FrontMatter, &front); err != nil || front.Metadata["team"] != "billing" {
		t.Errorf("FrontMatter = %s, %v", k.FrontMatter, err)
	}
	var paths []string
	for _, f := range k.Files {
		paths = append(paths, f.Path)
	}
	if want := []string{"SKILL.md", "forms/mail.md"}; !slices.Equal(paths, want) {
		t.Errorf("files = %q, want %q", paths, want)
	}
	if k.Files[1].Size != 13 || !strings.HasPrefix(k.Files[1].Digest, "sha256:") {
		t.Errorf("file = %+v", k.Files[1])
	}
}

func TestM6_UnusableSkillsAreProblemsAndTheOthersWork(t *testing.T) {
	many := map[string]string{"many/SKILL.md": strings.ReplaceAll(refunds, "refunds", "many")}
	for i := range 520 {
		many["many/f"+strings.Repeat("x", i%200)+string(rune('a'+i/200))+".txt"] = "x"
	}
	for name, tt := range map[string]struct {
		files map[string]string
		want  string
	}{
		"no front matter":        {map[string]string{"a/SKILL.md": "# Title"}, "has no front matter"},
		"front matter open":      {map[string]string{"a/SKILL.md": "---\nname: a\n"}, "has no front matter"},
		"no description":         {map[string]string{"a/SKILL.md": "---\nname: a\n---\n"}, "has no description"},
		"long description":       {map[string]string{"a/SKILL.md": "---\nname: a\ndescription: " + strings.Repeat("x", 1025) + "\n---\n"}, "more than 1024"},
		"invisible characters":   {map[string]string{"a/SKILL.md": "---\nname: a\ndescription: \"a\\u0001b\"\n---\n"}, "description is not valid"},
		"path as a name":         {map[string]string{"a/SKILL.md": "---\nname: ../a\ndescription: x\n---\n"}, "not valid"},
		"capital letters":        {map[string]string{"A/SKILL.md": "---\ndescription: x\n---\n"}, `"A" is not valid`},
		"name is a list":         {map[string]string{"a/SKILL.md": "---\nname: [a]\ndescription: x\n---\n"}, "line 2"},
		"description is missing": {map[string]string{"a/SKILL.md": "---\ndescription: {a: 1}\n---\n"}, "line 2"},
		"YAML is invalid":        {map[string]string{"a/SKILL.md": "---\nname: \"a\n---\n"}, "line"},
		"SKILL.md is large":      {map[string]string{"a/SKILL.md": refunds + strings.Repeat("x", 600<<10)}, "more than 512 KiB"},
		"too many files":         {many, "more than 512 files"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := write(t, t.TempDir(), tt.files)
			write(t, dir, map[string]string{"good/SKILL.md": strings.ReplaceAll(refunds, "refunds", "good")})
			s := open(t, dir)
			if len(s.Skills()) != 1 || s.Skills()[0].Name != "good" {
				t.Errorf("skills = %v", s.Skills())
			}
			if len(s.Problems()) != 1 || !strings.Contains(s.Problems()[0].Error(), tt.want) {
				t.Errorf("problems = %v, want one with %q", s.Problems(), tt.want)
			}
		})
	}
}

func TestM6_TheNearestSkillWithANameCounts(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	at := func(text string) string {
		return "---\nname: review\ndescription: " + text + "\n---\n"
	}
	write(t, home, map[string]string{".claude/skills/review/SKILL.md": at("home"), ".agents/skills/only-home/SKILL.md": strings.ReplaceAll(refunds, "name: refunds", "name: only-home")})
	repo := write(t, t.TempDir(), map[string]string{".git/HEAD": "x", ".claude/skills/review/SKILL.md": at("root"), "sub/.agents/skills/review/SKILL.md": at("sub")})
	s, err := skill.Find(filepath.Join(repo, "sub"))
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, k := range s.Skills() {
		found = append(found, k.Name+"="+k.Description[:3])
	}
	if want := []string{"review=sub", "only-home=Pro"}; !slices.Equal(found, want) {
		t.Errorf("found %q, want %q", found, want)
	}
	if len(s.Problems()) != 2 {
		t.Errorf("problems = %v, want the two hidden skills", s.Problems())
	}
	if _, err := skill.Find(repo, filepath.Join(repo, "none")); err == nil {
		t.Error("a configured folder that does not exist is no error")
	}
}

func TestM6_ReadsStayInTheFolder(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"secret.txt": "secret", "a/SKILL.md": strings.ReplaceAll(refunds, "name: refunds", "name: a"), "a/sub/b.txt": "b"})
	for link, to := range map[string]string{"a/link.txt": filepath.Join(dir, "secret.txt"), "a/up": dir} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Skip("this system has no symlinks:", err)
		}
	}
	k := open(t, filepath.Join(dir, "a")).Skills()[0]
	for _, name := range []string{"../secret.txt", "link.txt", "up/secret.txt", filepath.Join(dir, "secret.txt"), "/etc/passwd", "sub", "", ".", `..\secret.txt`, "sub/../../secret.txt"} {
		if b, err := k.Read(name); err == nil {
			t.Errorf("Read(%q) = %q", name, b)
		}
	}
	if b, err := k.Read("./sub/b.txt"); err != nil || string(b) != "b" {
		t.Errorf("Read = %q, %v", b, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a/sub/b.txt"), []byte("other"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Read("sub/b.txt"); err == nil || !strings.Contains(err.Error(), "has changed") {
		t.Errorf("reading a changed file: %v", err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "a", "sub")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dir, filepath.Join(dir, "a", "sub")); err != nil {
		t.Fatal(err)
	}
	write(t, dir, map[string]string{"b.txt": "b"}) // the content that was accepted, in another place
	if b, err := k.Read("sub/b.txt"); err == nil {
		t.Errorf("a folder that became a link is read: %q", b)
	}
}

// call runs one call of a tool in the pipeline.
func call(t *testing.T, tools []tool.Tool, name, args string) *dragoman.ToolResult {
	t.Helper()
	box, err := tool.NewBox(tools...)
	if err != nil {
		t.Fatal(err)
	}
	batch, err := (&tool.Runner{}).Start("run").Do(t.Context(), box, tool.Turn{Number: 1, Calls: []*dragoman.ToolCall{{ID: "c1", Name: name, Arguments: args}}})
	if err != nil {
		t.Fatal(err)
	}
	return batch.Results[0]
}

func TestM6_AModelLoadsASkillAndReadsItsFiles(t *testing.T) {
	png := "\x89PNG\r\n\x1a\n0000"
	dir := write(t, t.TempDir(), map[string]string{
		"refunds/SKILL.md": refunds, "refunds/forms/mail.md": "Dear customer", "refunds/logo.png": png, "refunds/data.bin": "\x00\x01",
		"internal/SKILL.md": "---\nname: internal\ndescription: x\ndisable-model-invocation: true\n---\n",
	})
	s := open(t, dir)
	if text := s.Instructions(); !strings.Contains(text, "- refunds: Process refunds.") || strings.Contains(text, "internal") {
		t.Errorf("Instructions = %q", text)
	}
	tools := s.Tools()
	loaded := call(t, tools, skill.LoadName, `{"name":"refunds"}`)
	if text := loaded.Text(); loaded.Outcome != "ok" || !strings.Contains(text, "# Refunds") || !strings.Contains(text, "forms/mail.md (13 bytes)") || strings.Contains(text, "license") {
		t.Errorf("load_skill: %s %q", loaded.Outcome, text)
	}
	if got := call(t, tools, skill.ReadName, `{"skill":"refunds","path":"forms/mail.md"}`); got.Text() != "Dear customer" {
		t.Errorf("read_skill_file: %q", got.Text())
	}
	if got := call(t, tools, skill.ReadName, `{"skill":"refunds","path":"data.bin"}`); !strings.Contains(got.Text(), "is not a text") {
		t.Errorf("a binary file: %q", got.Text())
	}
	got := call(t, tools, skill.ReadName, `{"skill":"refunds","path":"logo.png"}`)
	if m, ok := got.Content[0].(*dragoman.Media); !ok || m.MIME != "image/png" {
		t.Errorf("an image: %v", got.Content)
	}
	for name, args := range map[string]string{skill.LoadName: `{"name":"internal"}`, skill.ReadName: `{"skill":"refunds","path":"../internal/SKILL.md"}`} {
		if got := call(t, tools, name, args); got.Outcome != "error" || !strings.Contains(got.Text(), "refunds") {
			t.Errorf("%s %s: %s %q", name, args, got.Outcome, got.Text())
		}
	}
}

func TestM6_WithoutSkillsNothingIsAdded(t *testing.T) {
	for name, s := range map[string]*skill.Set{"nil": nil, "empty": open(t, t.TempDir())} {
		if s.Instructions() != "" || s.Tools() != nil || s.Only(func(*skill.Skill) bool { return true }).Skills() != nil {
			t.Errorf("%s: %q, %v", name, s.Instructions(), s.Tools())
		}
	}
}

func TestM6_AChangedFileIsFoundByItsPin(t *testing.T) {
	dir := write(t, t.TempDir(), map[string]string{"SKILL.md": refunds, "a.txt": "a", "b.txt": "b"})
	var pins skill.Pins
	first := open(t, dir).Skills()[0]
	if c := pins.Check(first); c == nil || !c.New {
		t.Errorf("a skill without a pin: %v", c)
	}
	pins.Accept(first)
	stored, err := json.Marshal(&pins)
	if err != nil {
		t.Fatal(err)
	}
	var read skill.Pins
	if err := json.Unmarshal(stored, &read); err != nil {
		t.Fatal(err)
	}
	if c := read.Check(open(t, dir).Skills()[0]); c != nil {
		t.Errorf("an unchanged skill: %v", c)
	}
	write(t, dir, map[string]string{"a.txt": "other", "c.txt": "c"})
	if err := os.Remove(filepath.Join(dir, "b.txt")); err != nil {
		t.Fatal(err)
	}
	second := open(t, dir)
	c := read.Check(second.Skills()[0])
	if c == nil || c.String() != "the skill refunds changed: added c.txt; changed a.txt; removed b.txt" {
		t.Errorf("a changed skill: %v", c)
	}
	if second.Skills()[0].Digest == first.Digest {
		t.Error("the digest did not change")
	}
	if kept := second.Only(func(k *skill.Skill) bool { return read.Check(k) == nil }); kept.Tools() != nil {
		t.Error("a changed skill can be loaded")
	}
	if !read.Remove("refunds") || read.Remove("refunds") {
		t.Error("Remove does not report whether there was a pin")
	}
	for _, bad := range []string{`{"version":2,"skills":{}}`, `{"version":1,"skills":{},"more":1}`, `{"version":1,"skills":{"a":{}}}`, `[]`} {
		if err := json.Unmarshal([]byte(bad), &read); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}

func FuzzOpen(f *testing.F) {
	f.Add(refunds)
	f.Add("---\n---\n")
	f.Add("\ufeff---\r\nname: a\r\ndescription: b\r\n---\r\nbody")
	f.Fuzz(func(t *testing.T, manifest string) {
		dir := write(t, t.TempDir(), map[string]string{"SKILL.md": manifest})
		s := open(t, dir)
		if len(s.Skills())+len(s.Problems()) == 0 {
			t.Fatal("the skill is neither usable nor a problem")
		}
		for _, k := range s.Skills() {
			if !json.Valid(k.FrontMatter) || k.Name == "" || k.Description == "" {
				t.Fatalf("skill = %+v", k)
			}
			for _, tl := range s.Tools() {
				if _, err := tool.NewBox(tl); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}
