package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"
)

func TestMain(m *testing.M) {
	// The sandbox starts commands through a supervisor, which is this program by another name.
	testscript.Main(m, map[string]func(){"dragoman": main, "dragoman-supervisor": main, "dragoman-command": main})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata/script", UpdateScripts: os.Getenv("UPDATE_SCRIPTS") != ""})
}

// The examples in help texts must work as printed.
func TestHelpExamplesRun(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the examples need a POSIX shell")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"request.json":   `{"model":"claude","max_tokens":9,"messages":[{"role":"user","content":"hi"}],"tools":[{"name":"f","input_schema":{"type":"object"}}]}`,
		"coats.scenario": "turn\nmatch any\nsay Yes.\n",
		"tools.json":     `[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{}}}},{"type":"function","function":{"name":"pay","parameters":{"type":"object","properties":{"amount":{"type":"number"}}}}}]`,
		".mcp.json":      `{"mcpServers": {"files": {"command": "dragoman", "args": ["mcp", "serve", "--bare"]}}}`,
		"gateway.yaml":   "version: 1\ngateway: {routes: {sim/echo: {to: sim/echo}}}\n",
		"policy.yaml":    "version: 1\nrules:\n  - {id: a, effect: ask, when: {tool: [pay, shell]}}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	bin := filepath.Join(dir, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	// The test binary acts as the program if it is called by the program's name.
	if err := os.Symlink(self, filepath.Join(bin, "dragoman")); err != nil {
		t.Fatal(err)
	}
	curl := "#!/bin/sh\nprintf 'data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\\n\\ndata: [DONE]\\n\\n'\n"
	if err := os.WriteFile(filepath.Join(bin, "curl"), []byte(curl), 0o700); err != nil {
		t.Fatal(err)
	}
	n := 0
	var each func(c *cobra.Command)
	each = func(c *cobra.Command) {
		for _, line := range strings.Split(c.Example, "\n") {
			if line = strings.TrimSpace(line); line == "" {
				continue
			}
			n++
			if strings.HasPrefix(line, "dragoman sim ") && !strings.Contains(line, "--faults") || strings.HasPrefix(line, "dragoman serve") && !strings.Contains(line, "--check") || strings.HasPrefix(line, "dragoman mcp serve") {
				servesUntilInterrupted(t, dir, filepath.Join(bin, "dragoman"), strings.Fields(line)[1:])
				continue
			}
			sh := exec.Command("sh", "-c", line)
			sh.Dir = dir
			sh.Env = append(os.Environ(), "DRAGOMAN_MODEL=sim/planner", "DRAGOMAN_SESSIONS="+filepath.Join(dir, "sessions.db"), "HOME="+dir, "XDG_CONFIG_HOME="+dir, "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
			var stderr strings.Builder
			sh.Stderr = &stderr
			out, err := sh.Output()
			if err != nil || len(out) == 0 {
				t.Errorf("%s\n%v\n%s%s", line, err, out, stderr.String())
			}
		}
		for _, sub := range c.Commands() {
			each(sub)
		}
	}
	each(newRoot(nil))
	if n == 0 {
		t.Error("no command has an example")
	}
}

func TestErrorNamesItsSourceOnce(t *testing.T) {
	var out, stderr bytes.Buffer
	cut := strings.NewReader("\x00\x00\x00\x64") // the beginning of a frame
	if code := run([]string{"convert", "--to", "chat", "--from", "bedrock", "--kind", "stream"}, cut, &out, &stderr); code != exitFailed {
		t.Fatal(code)
	}
	for _, who := range []string{"dragoman: ", "bedrock.converse stream: "} {
		if n := strings.Count(stderr.String(), who); n != 1 {
			t.Errorf("%q occurs %d times: %s", who, n, stderr.String())
		}
	}
	if s := out.String(); strings.Count(s, "bedrock.converse stream: ") != 1 {
		t.Errorf("the error in the stream: %s", s)
	}
}

func TestJSONErrorHasLineOfItsByte(t *testing.T) {
	for in, want := range map[string]string{
		`{"a":1`:             "at byte 6, line 1",
		"{\"a\":1\n":         "at byte 6, line 1", // the newline belongs to line 1
		"{\"a\":1\r\n\r\n":   "at byte 6, line 1",
		"{\"a\":\n1":         "at byte 7, line 2",
		"{\"a\":1}}\n":       "at byte 7, line 1",
		"{\"a\":1}\n}\n":     "at byte 8, line 2",
		"{\"a\": oh}\n":      "at byte 6, line 1",
		"{\"a\":\"b\nc\"}\n": "at byte 7, line 1", // the newline itself is invalid
	} {
		for _, command := range [][]string{{"convert", "--to", "chat"}, {"lint", "--for", "chat"}} {
			var out, stderr bytes.Buffer
			code := run(command, strings.NewReader(in), &out, &stderr)
			if code != exitFailed || !strings.HasSuffix(stderr.String(), want+"\n") {
				t.Errorf("%s of %q: %d, want %q\n%s", command[0], in, code, want, stderr.String())
			}
		}
	}
}

func TestErrorsContainNoGoPackageNames(t *testing.T) {
	for text, want := range map[string]string{
		`openaichat: tool choice "q" names a tool that is not sent: dragoman: not supported by the target`: `tool choice "q" names a tool that is not sent: not supported by the target`,
		"interop: mcp.tool: schema: invalid schema":                                                        "mcp.tool: invalid schema",
		"dragoman: dragoman: one\ndragoman: two":                                                           "one\ntwo",
		`tool "schema: \": history: " written as "a: gemini: b": interop: x`:                               `tool "schema: \": history: " written as "a: gemini: b": x`,
		"the gemini: it stays": "the gemini: it stays",
		"bedrock.converse stream: eventstream: a checksum does not match": "bedrock.converse stream: a checksum does not match",
		`an open " schema: is no quote`:                                   `an open " schema: is no quote`,
	} {
		if got := plain(text); got != want {
			t.Errorf("%s\nbecomes %s\nnot     %s", text, got, want)
		}
	}
	for _, args := range [][]string{{"convert", "--to", "anthropic"}, {"convert", "--to", "gemini", "--report", "json"}, {"lint", "--for", "anthropic"}, {"lint", "--for", "openai.strict", "--report", "json"}} {
		for _, in := range []string{
			`{"v":1,"messages":[],"tool_choice":{"mode":"tool","tools":[{"name":"q"}]},"tools":[{"name":"f","parameters":"{\"type\":\"array\"}"}]}`,
			`[{"name":"f","inputSchema":5},{"name":"g","inputSchema":{"type":"object","additionalProperties":{"type":"string"}}}]`,
		} {
			var out, stderr bytes.Buffer
			run(args, strings.NewReader(in), &out, &stderr)
			all := out.String() + strings.Replace("\n"+stderr.String(), "\ndragoman: ", "\n", 1)
			for _, pkg := range []string{"dragoman", "anthropic", "gemini", "schema", "interop", "history"} {
				if strings.Contains(all, ": "+pkg+": ") || strings.Contains(all, `"`+pkg+": ") || strings.Contains(all, "\n"+pkg+": ") {
					t.Errorf("%q: output contains %s\n%s", args, pkg, all)
				}
			}
		}
	}
}
