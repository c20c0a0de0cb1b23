package policy_test

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/tool"
	"github.com/dragoman-go/dragoman/tool/policy"
)

func TestPromptAsksQuestionsOfRunningTools(t *testing.T) {
	form := &tool.InputRequest{Name: "q", From: "MCP server \"git\"", Prompt: "Which branch?\x1b[2J", Schema: json.RawMessage(`{"type":"object"}`), Secrets: []string{"password"}}
	page := &tool.InputRequest{Name: "q", From: "MCP server \"git\"", Prompt: "Log in.", URL: "https://login.example/x?y=1"}
	for _, tc := range []struct {
		name    string
		wanted  *tool.InputRequest
		typed   string
		verdict tool.Verdict
		value   string
	}{
		{"a value", form, "={\"b\":\"main\"}\n", tool.Approved, `{"b":"main"}`},
		{"the defaults", form, "y\n", tool.Approved, ""},
		{"declined", form, "n\n", tool.Rejected, ""},
		{"not JSON, three times", form, "=main\n=main\n=main\n", tool.Undecided, ""},
		{"a page", page, "y\n", tool.Approved, ""},
		{"a value for a page", page, "=1\n=1\n=1\n", tool.Undecided, ""},
		{"always is not offered", page, "always\nalways\nalways\n", tool.Undecided, ""},
	} {
		var out bytes.Buffer
		p := policy.NewPrompt(strings.NewReader(tc.typed), &out)
		p.Ledger = &policy.Ledger{}
		got, err := p.Approve(context.Background(), &tool.ApprovalRequest{Wanted: tc.wanted, Binding: tool.Binding{CallID: "c1", Key: tool.Key{Name: "push"}}, Input: tool.Input{Arguments: json.RawMessage("{}")}})
		if err != nil || got.Verdict != tc.verdict || string(got.Value) != tc.value {
			t.Errorf("%s: %+v, %v", tc.name, got, err)
		}
		text := out.String()
		if !strings.Contains(text, `MCP server "git"`) || strings.Contains(text, "\x1b") || !strings.Contains(text, "c1") {
			t.Errorf("%s: shown\n%s", tc.name, text)
		}
		if tc.wanted == form && !strings.Contains(text, "secret: password") || tc.wanted == page && (!strings.Contains(text, page.URL) || !strings.Contains(text, "host login.example")) {
			t.Errorf("%s: shown\n%s", tc.name, text)
		}
	}
}
