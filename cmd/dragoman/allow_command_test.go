package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Commands that match a pattern of --allow-command run without approval. Commands with other
// arguments, other programs or shell operators need approval.
func TestT15_AllowedCommandsNeedNoApproval(t *testing.T) {
	const ask, denyTouch = "default: ask", "rules: [{id: no, effect: deny, when: {tool: shell, expression: 'args.command.startsWith(\"touch\")'}}]"
	for _, tc := range []struct {
		name, command, policy, want string
		allow                       []string
		folder                      string
	}{
		{"nothing is allowed", "ls", "", "ask", nil, ""},
		{"a command on the list", "ls", "", "run", []string{"ls"}, ""},
		{"other arguments", "ls -l", "", "ask", []string{"ls"}, ""},
		{"any arguments", "ls -l .", "", "run", []string{"touch *", "ls ..."}, ""},
		{"a refused flag", "ls -l .", "", "ask", []string{"ls ... !-l"}, ""},
		{"another program", "touch made", "", "ask", []string{"ls ..."}, ""},
		{"an operator", "ls && touch made", "", "ask", []string{"ls ...", "touch ..."}, ""},
		{"a redirection", "ls > made", "", "ask", []string{"ls ..."}, ""},
		{"a substitution", "ls $(touch made)", "", "ask", []string{"ls ...", "touch ..."}, ""},
		{"a program that runs another", "find . -exec touch made ;", "", "ask", []string{"find ..."}, ""},
		{"the folder itself", "ls", "", "run", []string{"ls"}, "."},
		{"the same command in another folder", "./made.sh", "", "ask", []string{"./made.sh"}, "sub"},
		{"the policy asks", "ls", ask, "ask", []string{"ls"}, ""},
		{"the policy denies", "touch made", denyTouch, "deny", []string{"touch *"}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir, do := runs(t)
			t.Chdir(dir)
			if err := os.MkdirAll("sub", 0o700); err != nil {
				t.Fatal(err)
			}
			args, err := json.Marshal(struct {
				Command string `json:"command"`
				Folder  string `json:"folder,omitempty"`
			}{tc.command, tc.folder})
			if err != nil {
				t.Fatal(err)
			}
			server := callingModel(t, "shell", string(args))
			t.Setenv("OPENAI_API_KEY", "sk-test-0123456789abcdef")
			t.Setenv("OPENAI_BASE_URL", server.URL+"/v1")
			var flags []string
			if tc.policy != "" {
				file := filepath.Join(t.TempDir(), "policy.yaml")
				if err := os.WriteFile(file, []byte("version: 1\n"+tc.policy+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
				flags = append(flags, "--policy", file)
			}
			for _, pattern := range tc.allow {
				flags = append(flags, "--allow-command", pattern)
			}
			if r := whyFor(t, "", append([]string{"shell", "--args", string(args), "--report", "json"}, flags...)...); !strings.Contains(r.out, `"outcome":"`+tc.want+`"`) && !strings.Contains(r.out, `"outcome": "`+tc.want+`"`) {
				t.Errorf("why: want %s\n%s%s", tc.want, r.out, r.err)
			}
			r := do(nil, append([]string{"--no-session", "--json", "--model", "openai-chat/gpt-4.1"}, append(flags, "go")...)...)
			if got := callOutcome(r.out); got != tc.want {
				t.Errorf("run: %s, want %s\n%s%s", got, tc.want, r.out, r.err)
			}
			if _, err := os.Stat("made"); err == nil {
				t.Error("touch ran")
			}
		})
	}
	_, do := runs(t)
	if r := do(nil, "--allow-command", "!--x", "hi"); r.code != exitUsage || !strings.Contains(r.err, "--allow-command") {
		t.Errorf("a pattern without a program: %d %s", r.code, r.err)
	}
}
