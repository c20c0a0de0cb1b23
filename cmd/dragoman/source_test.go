package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// runArgs runs a command line without input.
func runArgs(args ...string) ran {
	var out, stderr bytes.Buffer
	code := run(args, strings.NewReader(`{"model":"gpt-5","messages":[{"role":"user","content":"hi"}]}`), &out, &stderr)
	return ran{code, out.String(), stderr.String()}
}

func TestFileErrorNamesFlagOrVariable(t *testing.T) {
	runs(t)
	t.Chdir(t.TempDir())
	for _, tc := range []struct {
		env  string
		want string
		args []string
	}{
		{"", "--policy: open nope.yaml", []string{"run", "--no-session", "--model", "sim/echo", "--policy", "nope.yaml", "hi"}},
		{"", "--policy: open nope.yaml", []string{"tools", "why", "shell", "--args", `{"command":"ls"}`, "--policy", "nope.yaml"}},
		{"", "--skills: skill: open ", []string{"run", "--no-session", "--model", "sim/echo", "--skills", "nope", "hi"}},
		{"", "--dir: ", []string{"run", "--no-session", "--model", "sim/echo", "--dir", "nope", "hi"}},
		{"", "--model-file: open nope.yaml", []string{"convert", "--from", "chat", "--to", "responses", "--model-file", "nope.yaml"}},
		{"DRAGOMAN_CONFIG", "DRAGOMAN_CONFIG: open nope.yaml", []string{"run", "--no-session", "hi"}},
		{"DRAGOMAN_CONFIG", "DRAGOMAN_CONFIG: open nope.yaml", []string{"run", "--no-session", "--model", "sim/echo", "hi"}},
		{"DRAGOMAN_MODELS", "DRAGOMAN_MODELS: open nope.yaml", []string{"run", "--no-session", "--model", "openai/gpt-5", "hi"}},
		{"DRAGOMAN_MODELS", "DRAGOMAN_MODELS: open nope.yaml", []string{"convert", "--from", "chat", "--to", "responses"}},
	} {
		t.Run(strings.Join(tc.args, " "), func(t *testing.T) {
			if tc.env != "" {
				t.Setenv(tc.env, "nope.yaml")
			}
			if r := runArgs(tc.args...); r.code != exitFailed || !strings.Contains(r.err, tc.want) {
				t.Errorf("%+v\nwant %s", r, tc.want)
			}
		})
	}
}

func TestModelFileErrorNamesItsOwnModel(t *testing.T) {
	runs(t)
	file := filepath.Join(t.TempDir(), "facts.yaml")
	if err := os.WriteFile(file, []byte("version: 1\nmodels:\n  - id: vllm/our-model\n    like: openai/gpt-4.1\n    contxt: 5\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DRAGOMAN_MODELS", file)
	r := runArgs("run", "--no-session", "--model", "openai/gpt-5", "hi")
	if r.code != exitFailed || !strings.Contains(r.err, `facts.yaml:5:5: model vllm/our-model: unknown field "contxt"`) {
		t.Errorf("%+v", r)
	}
}

func TestLongDescriptionsAreCutWithAnEllipsis(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tools.json")
	if err := os.WriteFile(file, []byte(`[{"name":"a","description":"`+strings.Repeat("word ", 30)+`","inputSchema":{"type":"object"}}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := runArgs("tools", "list", "--tools", file); r.code != exitOK || !strings.Contains(r.out, "…\n") {
		t.Errorf("%+v", r)
	}
}
