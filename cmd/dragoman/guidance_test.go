package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// requests starts an OpenAI server that stores the bodies of requests, and makes it the model.
func requests(t *testing.T) *[]string {
	t.Helper()
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got = append(got, string(b))
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, `data: {"id":"1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"ok"},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(server.Close)
	config := filepath.Join(t.TempDir(), "dragoman.yaml")
	text := "version: 1\nproviders:\n  fake: {type: compatible, base_url: \"" + server.URL + "/v1\"}\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DRAGOMAN_CONFIG", config)
	t.Setenv("DRAGOMAN_MODEL", "fake/m")
	return &got
}

func writeAll(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, dir, name, text)
	}
}

const pdfSkill = "---\nname: pdf\ndescription: Fill in PDF forms.\n---\nUse fill.py.\n"

func TestRunUsesAgentsFileAndSkills(t *testing.T) {
	dir, do := runs(t)
	got := requests(t)
	writeAll(t, dir, map[string]string{"AGENTS.md": "Write tests first.", ".claude/skills/pdf/SKILL.md": pdfSkill})
	r := do(nil, "--no-session", "--system", "Be brief.", "Hello")
	if r.code != exitOK || !strings.Contains(r.err, "Using AGENTS.md, 1 skill. To use neither, pass --bare.") {
		t.Fatalf("%+v", r)
	}
	for _, want := range []string{"Be brief.", "Write tests first.", "- pdf: Fill in PDF forms.", `"load_skill"`, `"read_skill_file"`} {
		if !strings.Contains((*got)[0], want) {
			t.Errorf("the request lacks %q:\n%s", want, (*got)[0])
		}
	}
	r = do(nil, "--no-session", "--bare", "Hello")
	if r.code != exitOK || strings.Contains(r.err, "Using AGENTS.md") || strings.Contains((*got)[1], "Write tests first.") || strings.Contains((*got)[1], "load_skill") {
		t.Errorf("--bare: %+v\n%s", r, (*got)[1])
	}
	r = do(nil, "--no-session", "--bare", "--skills", filepath.Join(dir, ".claude/skills"), "Hello")
	if r.code != exitOK || !strings.Contains((*got)[2], "load_skill") {
		t.Errorf("--skills: %+v\n%s", r, (*got)[2])
	}
}

func TestRunReadsAgentsFilesOfTheRepository(t *testing.T) {
	dir, do := runs(t)
	got := requests(t)
	writeAll(t, dir, map[string]string{".git/HEAD": "x", "AGENTS.md": "Of the root.", "a/AGENTS.md": "Of a.", "a/b/x.txt": "x", "c/AGENTS.md": "Of c."})
	r := do(nil, "--no-session", "--dir", filepath.Join(dir, "a/b"), "Hello")
	if r.code != exitOK || !strings.Contains((*got)[0], "Of the root.") || !strings.Contains((*got)[0], "Of a.") || strings.Contains((*got)[0], "Of c.") {
		t.Fatalf("%+v\n%s", r, *got)
	}
	if strings.Index((*got)[0], "Of the root.") > strings.Index((*got)[0], "Of a.") {
		t.Error("the nearest file is not the last")
	}
}

func TestRunSaysWhyAnAgentsFileOrSkillIsNotUsed(t *testing.T) {
	dir, do := runs(t)
	requests(t)
	writeAll(t, dir, map[string]string{"AGENTS.md": strings.Repeat("x", maxGuidance+1), ".agents/skills/bad/SKILL.md": "# Bad"})
	r := do(nil, "--no-session", "Hello")
	if r.code != exitOK || !strings.Contains(r.err, "AGENTS.md is not used: the files AGENTS.md have more than 64 KiB") || !strings.Contains(r.err, "has no front matter") {
		t.Errorf("%+v", r)
	}
	write(t, dir, "AGENTS.md", "\xff\xfe")
	if r := do(nil, "--no-session", "Hello"); r.code != exitOK || !strings.Contains(r.err, "it is not UTF-8 text") {
		t.Errorf("%+v", r)
	}
	if r := do(nil, "--no-session", "--skills", filepath.Join(dir, "none"), "Hello"); r.code != exitFailed || !strings.Contains(r.err, "none") {
		t.Errorf("--skills of a folder that does not exist: %+v", r)
	}
}

func TestRunLoadsASkillOnDemand(t *testing.T) {
	dir, do := runs(t)
	writeAll(t, dir, map[string]string{".claude/skills/pdf/SKILL.md": pdfSkill})
	r := do(nil, "--no-session", "--model", "sim/planner", `Load the skill "pdf" with load_skill`)
	if r.code != exitOK || !strings.Contains(r.err, "load_skill") || !strings.Contains(r.out, "Use fill.py.") {
		t.Errorf("%+v", r)
	}
}
