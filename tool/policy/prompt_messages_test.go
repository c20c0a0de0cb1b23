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

func TestPromptExplainsInvalidAnswers(t *testing.T) {
	for _, tc := range []struct {
		name   string
		wanted *tool.InputRequest
		typed  string
		help   string
		want   tool.Verdict
	}{
		{"a value", &tool.InputRequest{Argument: "ticket"}, "hello\n=hello\n", "Type = and then the value (for example =my text), or n to reject", tool.Approved},
		{"yes or no", nil, "hello\ny\n", "y to run it, n to reject it", tool.Approved},
		{"no answer at all", nil, "hello\nhello\nhello\ny\n", "The call stays pending.", tool.Undecided},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out bytes.Buffer
			p := policy.NewPrompt(strings.NewReader(tc.typed), &out)
			req := &tool.ApprovalRequest{Wanted: tc.wanted, Input: tool.Input{Arguments: json.RawMessage(`{}`)}}
			a, err := p.Approve(context.Background(), req)
			if err != nil || a.Verdict != tc.want {
				t.Fatalf("%+v, %v", a, err)
			}
			_, after, said := strings.Cut(out.String(), `"hello" is not a valid answer.`+"\n")
			if !said || !strings.Contains(after, tc.help) {
				t.Errorf("%s", out.String())
			}
			if tc.want == tool.Undecided && strings.Count(out.String(), "> ") != 3 {
				t.Errorf("a prompt without a read: %s", out.String())
			}
		})
	}
}

func TestPromptQuotesTheBeginningOfALongAnswer(t *testing.T) {
	for n, cut := range map[int]bool{60: false, 61: true} {
		var out strings.Builder
		long := strings.Repeat("ä", n)
		_, _ = policy.NewPrompt(strings.NewReader(long+"\nn\n"), &out).Approve(context.Background(), &tool.ApprovalRequest{})
		want := `"` + strings.Repeat("ä", 60)
		if cut {
			want += "…"
		}
		if !strings.Contains(out.String(), want+`" is not a valid answer.`) {
			t.Errorf("%d characters: %s", n, out.String())
		}
	}
}
