package quirks_test

import (
	"encoding/json"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/testkit/crosstest"
	"github.com/dragoman-go/dragoman/targets"
)

// Claude models before 4.6 support neither effort nor adaptive thinking.
func TestQuirkG10_EffortBecomesBudgetForOlderClaude(t *testing.T) {
	number := func(n int64) *int64 { return &n }
	for what, c := range map[string]struct {
		settings dragoman.ReasoningSettings
		thinking string // {} if thinking is not set
		lossAt   string // pointer of the loss
	}{
		"effort":              {dragoman.ReasoningSettings{Effort: "high"}, `{"type":"enabled","budget_tokens":24576}`, "/reasoning/effort"},
		"minimal effort":      {dragoman.ReasoningSettings{Effort: "minimal"}, `{"type":"enabled","budget_tokens":1024}`, "/reasoning/effort"},
		"effort and adaptive": {dragoman.ReasoningSettings{Effort: "low", Mode: codes.ReasoningAdaptive}, `{"type":"enabled","budget_tokens":1024}`, "/reasoning/effort"},
		"adaptive":            {dragoman.ReasoningSettings{Mode: codes.ReasoningAdaptive}, `{"type":"enabled","budget_tokens":8192}`, "/reasoning/mode"},
		"a budget and effort": {dragoman.ReasoningSettings{Effort: "high", BudgetTokens: number(2000)}, `{"type":"enabled","budget_tokens":2000}`, "/reasoning/effort"},
		"a budget":            {dragoman.ReasoningSettings{BudgetTokens: number(2000)}, `{"type":"enabled","budget_tokens":2000}`, ""},
		"no effort":           {dragoman.ReasoningSettings{Effort: "none"}, `{"type":"disabled"}`, "/reasoning/effort"},
		"off, with effort":    {dragoman.ReasoningSettings{Effort: "high", Mode: codes.ReasoningOff}, `{"type":"disabled"}`, "/reasoning/effort"},
		"an unknown effort":   {dragoman.ReasoningSettings{Effort: "heroic"}, `{}`, "/reasoning/effort"},
		"summary only":        {dragoman.ReasoningSettings{Summary: "auto"}, `{}`, "/reasoning/summary"},
	} {
		for _, d := range []dragoman.Dialect{dialectname.Anthropic, dialectname.Bedrock} {
			req := &dragoman.Request{Model: "m", Messages: []dragoman.Message{dragoman.UserText("go")}, Reasoning: &c.settings}
			enc, err := crosstest.CodecOf(d).EncodeRequest(req, dialect.EncodeOptions{Target: targets.Target{Caps: targets.Capabilities{ThinkingBudgets: true}}})
			if err != nil {
				t.Fatal(err)
			}
			var body struct {
				Thinking json.RawMessage `json:"thinking"`
				Fields   struct {
					Thinking json.RawMessage `json:"thinking"`
				} `json:"additionalModelRequestFields"`
				Max int64 `json:"max_tokens"`
			}
			if err := json.Unmarshal(enc.Body, &body); err != nil {
				t.Fatal(err)
			}
			got := string(body.Thinking) + string(body.Fields.Thinking)
			if got == "" {
				got = "{}"
			}
			if got != c.thinking || strings.Contains(string(enc.Body), "effort") {
				t.Errorf("%s for %s: %s", what, d, enc.Body)
			}
			lossAt := ""
			for _, l := range enc.Report.Losses {
				if strings.HasPrefix(l.Path, "/reasoning/e") || strings.HasPrefix(l.Path, "/reasoning/m") || strings.HasPrefix(l.Path, "/reasoning/s") {
					lossAt = l.Path
				}
			}
			if lossAt != c.lossAt {
				t.Errorf("%s for %s: loss at %q, want %q\n%s", what, d, lossAt, c.lossAt, enc.Report)
			}
			if d == dialectname.Anthropic && strings.Contains(got, "24576") && body.Max <= 24576 {
				t.Errorf("%s: the budget exceeds max_tokens: %s", what, enc.Body)
			}
		}
	}
}
