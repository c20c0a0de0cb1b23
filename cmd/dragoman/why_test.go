package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// callingModel serves OpenAI Chat. It answers a user message with one call, and a tool result
// with text. It refuses requests that OpenAI refuses.
func callingModel(t *testing.T, name, args string) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Stream   bool `json:"stream"`
			Messages []struct {
				Role string `json:"role"`
			} `json:"messages"`
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || len(body.Messages) == 0 || !body.Stream {
			http.Error(w, `{"error":{"message":"bad request"}}`, http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		delta, reason := `{"role":"assistant","content":"done"}`, "stop"
		if body.Messages[len(body.Messages)-1].Role != "tool" {
			call, _ := json.Marshal(map[string]any{"index": 0, "id": "call_1", "type": "function", "function": map[string]string{"name": name, "arguments": args}})
			delta, reason = `{"role":"assistant","tool_calls":[`+string(call)+`]}`, "tool_calls"
		}
		for _, choice := range []string{`{"index":0,"delta":` + delta + `}`, `{"index":0,"delta":{},"finish_reason":"` + reason + `"}`} {
			_, _ = fmt.Fprintf(w, "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[%s]}\n\n", choice)
		}
		_, _ = io.WriteString(w, "data: [DONE]\n\n")
	}))
	t.Cleanup(server.Close)
	return server
}

// "tools why" predicts what "run" does with a call.
func TestP6_WhyAndRunAgree(t *testing.T) {
	const (
		ls     = `{"command":"ls"}`
		touch  = `{"command":"touch made"}`
		create = `{"path":"made","content":"x"}`
	)
	for _, tc := range []struct {
		name   string
		policy string // empty means no policy
		allow  string
		tool   string
		args   string
		want   string
	}{
		{"a rule allows a command", "rules: [{id: ls, effect: allow, when: {tool: shell, expression: 'args.command == \"ls\"'}}]", "", "shell", ls, "run"},
		{"the rule does not match another command", "rules: [{id: ls, effect: allow, when: {tool: shell, expression: 'args.command == \"ls\"'}}]", "", "shell", touch, "ask"},
		{"a rule allows a command despite default deny", "default: deny\nrules: [{id: ls, effect: allow, when: {tool: shell, expression: 'args.command == \"ls\"'}}]", "", "shell", ls, "run"},
		{"default deny", "default: deny\nrules: [{id: ls, effect: allow, when: {tool: shell, expression: 'args.command == \"ls\"'}}]", "", "shell", touch, "deny"},
		{"default deny despite --allow", "default: deny", "shell", "shell", touch, "deny"},
		{"default ask despite --allow", "default: ask", "shell", "shell", touch, "ask"},
		{"no policy", "", "", "write_file", create, "ask"},
		{"no policy, and --allow", "", "write_file", "write_file", create, "run"},
		{"no policy, and a tool that reads", "", "", "list_files", `{}`, "run"},
		{"a policy without rules", "default: allow", "", "write_file", create, "ask"},
		{"a policy without rules, and --allow", "default: allow", "write_file", "write_file", create, "run"},
		{"a rule asks despite --allow", "rules: [{id: q, effect: ask, when: {tool: write_file}}]", "write_file", "write_file", create, "ask"},
		{"a rule denies despite --allow", "rules: [{id: no, effect: deny, when: {tool: write_file}}]", "write_file", "write_file", create, "deny"},
		{"a rule asks about a tool that reads", "rules: [{id: q, effect: ask, when: {tool: list_files}}]", "", "list_files", `{}`, "ask"},
		{"a rule that wants input", "rules: [{id: in, effect: input, input: {argument: path}, when: {tool: write_file}}]", "", "write_file", create, "ask"},
		{"an expression that fails", "rules: [{id: x, effect: allow, when: {tool: shell, expression: args.missing == 1}}]", "", "shell", touch, "deny"},
		{"a rule on the agent", "rules: [{id: me, effect: allow, when: {agent: dragoman, tool: write_file}}]", "", "write_file", create, "run"},
		{"a path that leads outside", "rules: [{id: yes, effect: allow, when: {tool: write_file}}]", "", "write_file", `{"path":"../made","content":"x"}`, "deny"},
		{"priority", "rules: [{id: a, effect: deny, when: {tool: shell}}, {id: b, effect: allow, priority: 9, when: {tool: shell}}]", "", "shell", ls, "run"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir, do := runs(t)
			t.Chdir(dir)
			server := callingModel(t, tc.tool, tc.args)
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
			if tc.allow != "" {
				flags = append(flags, "--allow", tc.allow)
			}
			var out, stderr bytes.Buffer
			if code := run(append([]string{"tools", "why", tc.tool, "--args", tc.args, "--report", "json"}, flags...), strings.NewReader(""), &out, &stderr); code != exitOK {
				t.Fatalf("why: exit code %d: %s", code, stderr.String())
			}
			var why struct {
				Outcome string `json:"outcome"`
			}
			if err := json.Unmarshal(out.Bytes(), &why); err != nil || why.Outcome != tc.want {
				t.Errorf("why: %q, %v; want %s\n%s", why.Outcome, err, tc.want, out.String())
			}
			r := do(nil, append([]string{"--no-session", "--json", "--model", "openai-chat/gpt-4.1"}, append(flags, "go")...)...)
			if got := callOutcome(r.out); got != tc.want {
				t.Errorf("run: %s, want %s\n%s%s", got, tc.want, r.out, r.err)
			}
		})
	}
}

// callOutcome returns the outcome of the only call in the events of a run: run, ask or deny.
func callOutcome(events string) string {
	for line := range strings.Lines(events) {
		var ev struct {
			Tool struct {
				Type   string `json:"type"`
				Record struct {
					Executed bool   `json:"executed"`
					Kind     string `json:"error_kind"`
				} `json:"record"`
			} `json:"tool"`
		}
		if json.Unmarshal([]byte(line), &ev) != nil || ev.Tool.Type != "ended" {
			continue
		}
		switch {
		case ev.Tool.Record.Executed:
			return "run"
		case ev.Tool.Record.Kind == "rejected": // no terminal
			return "ask"
		default:
			return "deny"
		}
	}
	return "no call"
}

func TestP6_UnusableRuleIsAnError(t *testing.T) {
	dir, do := runs(t)
	t.Chdir(dir)
	for text, want := range map[string]string{
		"rules:\n  - {id: a, effect: deny, when: {tool: write-file}}":                     `policy.yaml:3:40: rule "a": when.tool: the rule can never apply: "write-file" matches no tool of dragoman run`,
		"rules:\n  - {id: a, effect: deny, subjects: handoff}":                            `policy.yaml:3:37: rule "a": subjects: the rule can never apply: dragoman run decides on tool_call and model_call only`,
		"rules:\n  - {id: a, effect: deny, subjects: model_call, when: {tool: shell}}":    `rule "a": when.tool: a model_call has no tool`,
		"rules:\n  - {id: a, effect: deny, when: {agent: other}}":                         `rule "a": when.agent: the rule can never apply`,
		"rules:\n  - {id: a, effect: deny, when: {namespace: files}}":                     `rule "a": when.namespace: the rule can never apply: no tool of dragoman run is in the namespace "files"`,
		"rules:\n  - {id: a, effect: deny, when: {tool: shell, tags: [danger]}}":          `rule "a": when.tags: the rule can never apply: no tool of dragoman run is tagged "danger"`,
		"rules:\n  - {id: a, effect: ask, subjects: model_call, when: {model: openai/*}}": `rule "a": effect: a model_call cannot wait for a human`,
	} {
		write(t, dir, "policy.yaml", "version: 1\n"+text+"\n")
		if r := do(nil, "--policy", "policy.yaml", "--no-session", "--model", "sim/echo", "hi"); r.code != exitFailed || !strings.Contains(r.err, want) {
			t.Errorf("run: %d %s\nwant %s", r.code, r.err, want)
		}
		var out, stderr bytes.Buffer
		if code := run([]string{"tools", "why", "shell", "--policy", "policy.yaml", "--args", `{"command":"ls"}`}, strings.NewReader(""), &out, &stderr); code != exitFailed || !strings.Contains(stderr.String(), want) {
			t.Errorf("why: %d %s\nwant %s", code, stderr.String(), want)
		}
	}
}

func TestP1_RunDeniesModelCalls(t *testing.T) {
	dir, do := runs(t)
	t.Chdir(dir)
	write(t, dir, "policy.yaml", "version: 1\nrules:\n  - {id: no-sim, effect: deny, reason: Use a real model., when: {model: sim/*, metadata: {stage: prod}}}\n")
	args := []string{"--policy", "policy.yaml", "--no-session", "--model", "sim/echo", "hi"}
	if r := do(nil, append([]string{"--metadata", "stage=prod"}, args...)...); r.code != exitFailed || r.out != "" || !strings.Contains(r.err, `the policy denies calling the model "sim/echo", by rule "no-sim": Use a real model.`) {
		t.Errorf("%+v", r)
	}
	if r := do(nil, args...); r.code != exitOK || !strings.Contains(r.out, "hi") {
		t.Errorf("%+v", r)
	}
	for model, want := range map[string]string{"sim/echo": "deny", "openai/gpt-5": "run"} {
		var out, stderr bytes.Buffer
		code := run([]string{"tools", "why", "--subject", "model_call", "--model", model, "--metadata", "stage=prod", "--policy", "policy.yaml"}, strings.NewReader(""), &out, &stderr)
		if code != exitOK || !strings.HasPrefix(out.String(), "outcome: "+want+"\n") {
			t.Errorf("%s: %d %s%s", model, code, out.String(), stderr.String())
		}
	}
}

// whyFor runs "tools why" with a policy and text output.
func whyFor(t *testing.T, rules string, args ...string) ran {
	t.Helper()
	if rules != "" {
		file := filepath.Join(t.TempDir(), "policy.yaml")
		if err := os.WriteFile(file, []byte("version: 1\n"+rules+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--policy", file)
	}
	var out, stderr bytes.Buffer
	code := run(append([]string{"tools", "why"}, args...), strings.NewReader(""), &out, &stderr)
	return ran{code, out.String(), stderr.String()}
}

func TestP2_WhyNotesOutrankedDenial(t *testing.T) {
	const rules = "rules: [{id: a-allow-ls, effect: %s, priority: %d, when: {tool: shell}}, {id: z-deny-shell, effect: deny, when: {tool: shell}}]"
	const note = "note: rule z-deny-shell denies this call too; give it a higher priority to make it win\n"
	for _, tc := range []struct {
		effect   string
		priority int
		want     bool
	}{{"allow", 0, true}, {"ask", 0, true}, {"allow", 5, false}, {"deny", 0, false}} {
		r := whyFor(t, fmt.Sprintf(rules, tc.effect, tc.priority), "shell", "--args", `{"command":"ls"}`)
		if r.code != exitOK || strings.Contains(r.out, note) != tc.want {
			t.Errorf("%+v: %+v", tc, r)
		}
	}
	r := whyFor(t, fmt.Sprintf(rules, "allow", 0), "shell", "--args", `{"command":"ls"}`, "--report", "json")
	if !strings.Contains(r.out, `"notes"`) {
		t.Errorf("%+v", r)
	}
}

func TestP2_HelpExplainsRuleOrder(t *testing.T) {
	for _, args := range [][]string{{"run", "--help"}, {"tools", "why", "--help"}} {
		var out bytes.Buffer
		run(args, strings.NewReader(""), &out, &out)
		text := strings.Join(strings.Fields(out.String()), " ")
		if !strings.Contains(text, "Rules are tried by priority, highest first, then by id. The first rule that matches decides") || strings.Contains(text, "always wins") {
			t.Errorf("%q: %s", args, out.String())
		}
	}
}

func TestWhyNeedsModelOrTarget(t *testing.T) {
	runs(t) // no model and no config
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"--subject", "model_call"}, "--model PROVIDER/MODEL"},
		{[]string{"--subject", "handoff"}, "--target AGENT"},
		{[]string{"--subject", "model_call", "--model", "gpt-5"}, `"gpt-5"`},
		{[]string{"--subject", "model_call", "--model", "gpt-5", "--agent", "shop"}, `"gpt-5" has no provider`},
		{[]string{"--subject", "model_call", "--model", "antropic/x"}, "did you mean anthropic"},
		{[]string{"--subject", "model_call", "--model", "sim/echo,sim/planner"}, "one at a time: sim/echo, sim/planner"},
	} {
		if r := whyFor(t, "", tc.args...); r.code != exitUsage || !strings.Contains(r.err, tc.want) || r.out != "" {
			t.Errorf("%q: %+v", tc.args, r)
		}
	}
	if r := whyFor(t, "", "--subject", "model_call", "--model", "acme/large", "--agent", "shop"); r.code != exitOK {
		t.Errorf("%+v", r)
	}
}

func TestWhyNotesThatRunHasNoHandoffs(t *testing.T) {
	r := whyFor(t, "rules: [{id: a, effect: deny, subjects: handoff}]", "--subject", "handoff", "--target", "refunds")
	if r.code != exitOK || !strings.HasPrefix(r.out, "outcome: deny\n") || !strings.Contains(r.out, "note: dragoman run has no handoffs; this result is for an agent in a program\n") {
		t.Errorf("%+v", r)
	}
}

func TestWhySuggestsTool(t *testing.T) {
	if r := whyFor(t, "", "shel", "--args", "{}"); r.code != exitFailed || !strings.Contains(r.err, "did you mean shell?") {
		t.Errorf("%+v", r)
	}
}
