package policy

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/textkit"
	"github.com/dragoman-go/dragoman/tool"
)

// The tests in this file check limits and branches that mutation testing showed to be
// untested.

func TestP5_LargeNumbersAreComparedExactlyOrRefused(t *testing.T) {
	p := mustNew(t, Config{Default: defaultAllow, Rules: []Rule{{ID: "large", Effect: tool.Deny, When: When{Expression: "args.n > 9007199254740992"}}}})
	zeros := func(n int) string { return "1." + strings.Repeat("0", n-len("1.")-len("e16")) + "e16" }
	for _, tc := range []struct {
		n    string
		want string // the rule that matched, or a substring of the error
	}{
		{"9007199254740992", ""},
		{"9007199254740993", "large"},
		{"9007199254740992.0", ""},
		{"9007199254740993.0", "has no exact double"},
		{"1e16", "large"},
		{"18446744073709551615", "large"},
		{"18446744073709551616", "has more than 64 bits"},
		{"1.8446744073709551616e19", "has more than 64 bits"},
		{"3.6893488147419103232e19", "large"},
		{"-9.223372036854775808e18", ""},
		{"-1.8446744073709551616e19", ""},
		{"0e5", ""},
		{"0.0", ""},
		{"0.00e123456789", ""},
		{"1e-999", "is too small for a double"},
		{"0." + strings.Repeat("0", 400) + "1", "is too small for a double"},
		{zeros(maxNumber), "large"},
		{zeros(maxNumber + 1), "has no exact double"},
		{strings.Repeat("1", 40), strings.Repeat("1", 40) + " has more than"},
		{strings.Repeat("1", 41), strings.Repeat("1", 40) + "… has more than"},
	} {
		d, err := p.Decide(context.Background(), about("t", `{"n":`+tc.n+`}`))
		got := d.Rule
		if err != nil {
			got = err.Error()
		}
		if err == nil && got != tc.want || err != nil && (tc.want == "" || tc.want == "large" || !strings.Contains(got, tc.want)) {
			t.Errorf("%s: %q, want %q", tc.n, got, tc.want)
		}
	}
}

func TestP5_DoublesThatRoundIntegersAreRefused(t *testing.T) {
	for _, tc := range []struct {
		number  string
		refused bool
	}{
		{"9007199254740991.0", false},
		{"9007199254740992.0", true},
		{"18446744073709551616.0", true},
		{"18446744073709555712.0", false}, // the next larger double
		{"-9007199254740991.0", false},
		{"-9007199254740992.0", true},
		{"-9223372036854775808.0", true},
		{"-9223372036854777856.0", false}, // the next larger double
	} {
		_, err := New(Config{Rules: []Rule{{ID: "a", Effect: tool.Deny, When: When{Expression: "args.n > " + tc.number}}}})
		if refused := err != nil; refused != tc.refused {
			t.Errorf("%s: %v", tc.number, err)
		}
	}
}

func TestP7_LongErrorsAreCutBetweenCharactersInTheLog(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{strings.Repeat("x", maxError), strings.Repeat("x", maxError)},
		{strings.Repeat("x", maxError+1), strings.Repeat("x", maxError) + "…"},
		{strings.Repeat("x", maxError-1) + "äb", strings.Repeat("x", maxError-1) + "…"},
		{strings.Repeat("x", maxError-2) + "äb", strings.Repeat("x", maxError-2) + "ä…"},
		{strings.Repeat("\x80", maxError+1), "…"},
	} {
		if got := clipText(tc.text); got != tc.want {
			t.Errorf("%d bytes: %d bytes that end with %q", len(tc.text), len(got), got[max(0, len(got)-8):])
		}
	}
}

func TestP7_FailedLineLeavesNoGap(t *testing.T) {
	w := &oneWrite{broken: func([]byte) (int, error) { return 0, errors.New("disk full") }}
	audit := NewAudit(w)
	audit.Observe(tool.CallStarted{})
	w.broken = nil
	audit.Observe(tool.CallStarted{})
	if got := w.buf.String(); strings.HasPrefix(got, "\n") || strings.Count(got, "\n") != 1 {
		t.Errorf("the log is %q, want one line", got)
	}
}

func TestP6_FilesRulesAndExpressionsAreLimited(t *testing.T) {
	text := "version: 1\n"
	if _, err := Parse("f", []byte(text+strings.Repeat("#", maxFile-len(text)))); err != nil {
		t.Errorf("a file of %d bytes: %v", maxFile, err)
	}
	expression := func(n int) error {
		p, err := New(Config{Rules: []Rule{{ID: "a", Effect: tool.Deny, When: When{Expression: `args.a == "` + strings.Repeat("x", n-len(`args.a == ""`)) + `"`}}}})
		if err != nil {
			return err
		}
		if d, err := p.Decide(context.Background(), about("t", `{"a":"y"}`)); err != nil || d.Rule != "" {
			return fmt.Errorf("the expression was not evaluated: %+v, %w", d, err)
		}
		return nil
	}
	if err := expression(maxExpression); err != nil {
		t.Errorf("an expression of %d bytes: %v", maxExpression, err)
	}
	if err := expression(maxExpression + 1); err == nil || !strings.Contains(err.Error(), "longer than") {
		t.Errorf("an expression of %d bytes: %v", maxExpression+1, err)
	}
	rules := make([]Rule, maxRules+1)
	for i := range rules {
		rules[i] = Rule{ID: fmt.Sprint(i), Effect: tool.Deny}
	}
	if _, err := New(Config{Rules: rules[:maxRules]}); err != nil {
		t.Errorf("%d rules: %v", maxRules, err)
	}
	if _, err := New(Config{Rules: rules}); err == nil {
		t.Errorf("%d rules: taken", len(rules))
	}
}

func TestP6_ErrorWithoutLineHasNoPosition(t *testing.T) {
	e := &RuleError{File: "f", Rule: "a", Field: "effect", Reason: "missing"}
	if got := e.Error(); strings.Contains(got, "f:0") {
		t.Errorf("%s", got)
	}
	e.Line, e.Column = 1, 2
	if got := e.Error(); !strings.HasPrefix(got, "f:1:2: ") {
		t.Errorf("%s", got)
	}
}

// Errors about a file as a whole have no line. They are not repeated for each rule.
func TestP6_RuleErrorsAreReportedOnce(t *testing.T) {
	_, err := Parse("f", []byte("version: 1\ndefault: maybe\nextra: 1\nrules:\n  - id: a\n    effect: x\n"))
	if err == nil {
		t.Fatal("taken")
	}
	for _, want := range []string{`"maybe"`, "extra", `unknown effect "x"`} {
		if strings.Count(err.Error(), want) != 1 {
			t.Errorf("%s is not there once:\n%v", want, err)
		}
	}
}

// Matching rules are cached for a limited number of tools. Then the cache is cleared.
func TestP2_IndexCacheIsBounded(t *testing.T) {
	p := mustNew(t, Config{Rules: selecting(60)})
	decide := func(from, to int) {
		for i := from; i < to; i++ {
			if _, err := p.Decide(context.Background(), about(fmt.Sprint("t", i), `{}`)); err != nil {
				t.Fatal(err)
			}
		}
	}
	decide(0, maxCachedTools)
	if got := len(p.index.cache); got != maxCachedTools {
		t.Errorf("%d tools are kept, want %d", got, maxCachedTools)
	}
	decide(maxCachedTools, maxCachedTools+1)
	if got := len(p.index.cache); got != 1 {
		t.Errorf("%d tools are kept after one too many, want 1", got)
	}
}

func TestP2_ImmediatePoliciesHaveNoExpression(t *testing.T) {
	var none *Policy
	if none.Immediate() {
		t.Error("no policy is immediate")
	}
	if !mustNew(t, Config{}).Immediate() {
		t.Error("a policy without rules is not immediate")
	}
	if mustNew(t, Config{Rules: []Rule{{ID: "a", Effect: tool.Deny, When: When{Expression: "args.x == 1"}}}}).Immediate() {
		t.Error("a policy with an expression is immediate")
	}
}

// An expression that fails after a rule has decided does not matter, unless the request has ended.
func TestP5_OnlyCancellationFailsADecidedCall(t *testing.T) {
	p := mustNew(t, Config{Rules: []Rule{
		{ID: "a", Effect: tool.Allow, Priority: 2},
		{ID: "b", Effect: tool.Deny, Priority: 1, When: When{Expression: "args.missing.field == 1"}},
	}})
	d, err := p.Decide(context.Background(), about("t", `{}`))
	if err != nil || d.Rule != "a" || len(d.Matches) != 1 {
		t.Errorf("%+v, %v", d, err)
	}
	looping := mustNew(t, Config{Rules: []Rule{
		{ID: "a", Effect: tool.Allow, Priority: 2},
		{ID: "b", Effect: tool.Deny, Priority: 1, When: When{Expression: "args.list.all(x, x == 1)"}},
	}})
	ended := errors.New("the client is gone")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(ended)
	if _, err := looping.Decide(ctx, about("t", numbers(4000))); !errors.Is(err, ended) {
		t.Errorf("a cancelled decision: %v, want %v", err, ended)
	}
}

// The target of a handoff is only compared if the rule has a target.
func TestP1_TargetConditionNeedsATarget(t *testing.T) {
	p := mustNew(t, Config{Rules: []Rule{{ID: "a", Effect: tool.Deny, Subjects: []string{codes.SubjectHandoff}, When: When{Targets: []string{"*"}}}}})
	for _, target := range []string{"", "refunds"} {
		q := with(about("transfer", `{}`), func(q *tool.Question) { q.Subject, q.Target = codes.SubjectHandoff, target })
		d, err := p.Decide(context.Background(), q)
		if err != nil || (d.Rule == "a") != (target != "") {
			t.Errorf("target %q: %+v, %v", target, d, err)
		}
	}
}

func TestP1_ForRefusesRulesThatNeverApply(t *testing.T) {
	rule := func(subjects []string, w When) Rule {
		return Rule{ID: "a", Effect: tool.Deny, Subjects: subjects, When: w}
	}
	calls, handoffs := []string{codes.SubjectToolCall}, []string{codes.SubjectHandoff}
	for _, tc := range []struct {
		name string
		rule Rule
		host Host
		want string // a substring of the error
	}{
		{"a rule on tool calls names a handoff", rule(calls, When{Tools: []string{"go"}}), Host{Name: "h", Handoffs: []string{"go"}}, "is a handoff"},
		{"a rule on all subjects names a handoff", rule(nil, When{Tools: []string{"go"}}), Host{Name: "h", Handoffs: []string{"go"}}, ""},
		{"an expression reads the agent of a host without", rule(calls, When{Expression: "agent == 'x'"}), Host{Name: "h", Agents: []string{}}, "has no agents"},
		{"an expression reads the agents of a host without", rule(calls, When{Expression: "'x' in agents"}), Host{Name: "h", Agents: []string{}}, "has no agents"},
		{"an expression reads no agent", rule(calls, When{Expression: "args.x == 1"}), Host{Name: "h", Agents: []string{}}, ""},
		{"a rule without agents in a host with some", rule(calls, When{}), Host{Name: "h", Agents: []string{"a"}}, ""},
		{"a rule for an agent of the host", rule(calls, When{Agents: []string{"a"}}), Host{Name: "h", Agents: []string{"a"}}, ""},
		{"a rule for another agent", rule(calls, When{Agents: []string{"b"}}), Host{Name: "h", Agents: []string{"a"}}, "when.agent"},
		{"a rule for an agent where the agents are unknown", rule(calls, When{Agents: []string{"b"}}), Host{Name: "h"}, ""},
		{"a rule without targets in a host with agents", rule(handoffs, When{}), Host{Name: "h", Agents: []string{"a"}}, ""},
		{"a rule for a target of the host", rule(handoffs, When{Targets: []string{"a"}}), Host{Name: "h", Agents: []string{"a"}}, ""},
		{"a rule for another target", rule(handoffs, When{Targets: []string{"b"}}), Host{Name: "h", Agents: []string{"a"}}, "when.target"},
		{"a rule for a target where the agents are unknown", rule(handoffs, When{Targets: []string{"b"}}), Host{Name: "h"}, ""},
		{"a rule for a handoff target of the host", rule(handoffs, When{Targets: []string{"b"}}), Host{Name: "h", Targets: []string{"b"}}, ""},
		{"a rule for another handoff target", rule(handoffs, When{Targets: []string{"b"}}), Host{Name: "h", Targets: []string{"a"}}, "the targets are a"},
		{"a rule for a target in a host without handoffs", rule(handoffs, When{Targets: []string{"b"}}), Host{Name: "h", Targets: []string{}}, "has no handoffs"},
		{"a rule without targets in a host without handoffs", rule(handoffs, When{}), Host{Name: "h", Targets: []string{}}, ""},
		{"a rule for a handoff of the host", rule(handoffs, When{Tools: []string{"go"}}), Host{Name: "h", Handoffs: []string{"go"}, Targets: []string{"a"}}, ""},
		{"a rule for another handoff", rule(handoffs, When{Tools: []string{"run"}}), Host{Name: "h", Handoffs: []string{"go"}, Targets: []string{"a"}}, "the handoffs are go"},
		{"a rule for another handoff, or for a tool", rule(nil, When{Tools: []string{"run"}}), Host{Name: "h", Handoffs: []string{"go"}, Targets: []string{"a"}}, ""},
		{"a rule for a handoff in a host without", rule(handoffs, When{Tools: []string{"run"}}), Host{Name: "h", Targets: []string{}}, "has no handoffs"},
		{"a rule for a handoff where the handoffs are unknown", rule(handoffs, When{Tools: []string{"run"}}), Host{Name: "h", Handoffs: []string{"go"}}, ""},
		{"a rule on handoffs without a name", rule(handoffs, When{}), Host{Name: "h", Handoffs: []string{"go"}, Targets: []string{"a"}}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := mustNew(t, Config{Rules: []Rule{tc.rule}}).For(tc.host)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %q", err, tc.want)
			}
		})
	}
}

func TestA5_ForgetRemovesOneRun(t *testing.T) {
	l := &Ledger{}
	if !l.IsZero() {
		t.Error("a new ledger is not zero")
	}
	first, second := binding(), binding()
	first.Run, second.Run = "first", "second"
	for _, b := range []tool.Binding{first, second} {
		if err := l.Decide(b, approved()); err != nil {
			t.Fatal(err)
		}
	}
	if l.IsZero() {
		t.Error("a ledger with decisions is zero")
	}
	l.Forget("first")
	if lookup(l, first) != tool.Undecided || lookup(l, second) != tool.Approved {
		t.Errorf("first %q, second %q", lookup(l, first), lookup(l, second))
	}
	l.Forget("second")
	if !l.IsZero() {
		t.Error("a ledger that forgot everything is not zero")
	}
	l.Always(first)
	if l.IsZero() {
		t.Error("a ledger with a sticky decision is zero")
	}
}

func TestA4_MaximumKeyAndTokenLengths(t *testing.T) {
	secret := bytes.Repeat([]byte{1}, minSecret)
	if _, err := NewSigner(SigningKey{ID: strings.Repeat("k", maxField), Secret: secret}); err != nil {
		t.Errorf("an id of %d bytes: %v", maxField, err)
	}
	if _, err := NewSigner(SigningKey{ID: strings.Repeat("k", maxField+1), Secret: secret}); err == nil {
		t.Errorf("an id of %d bytes: taken", maxField+1)
	}

	clock := time.Unix(1_800_000_000, 0)
	s := signerAt(t, &clock)
	rejected := func(n int) Grant {
		return Grant{Binding: binding(), Answer: tool.Answer{Verdict: tool.Rejected, Message: strings.Repeat("x", n)}}
	}
	const some = maxToken / 4
	body := tokenBody{Grant: rejected(some), expires: clock.Add(defaultTTL).UnixMilli()}
	longest := some + maxToken/2 - len(body.encode("k1"))
	token := mustSign(t, s, rejected(longest))
	if _, err := s.Redeem(context.Background(), token, binding(), nil); err != nil {
		t.Errorf("the longest token: %v", err)
	}
	if _, err := s.Sign(rejected(longest + 1)); !errors.Is(err, ErrDecision) {
		t.Errorf("a longer token: %v", err)
	}

	_, mac, _ := strings.Cut(token, ".")
	_, mac, _ = strings.Cut(mac, ".")
	for n, want := range map[int]error{maxToken: errTokenForged, maxToken + 4: errTokenMalformed} {
		forged := tokenPrefix + strings.Repeat("A", n-len(tokenPrefix)-1-len(mac)) + "." + mac
		if _, err := s.Redeem(context.Background(), forged, binding(), nil); !errors.Is(err, want) {
			t.Errorf("%d unsigned bytes: %v, want %v", n, err, want)
		}
	}
}

func TestA4_TruncatedTokenIsMalformed(t *testing.T) {
	clock := time.Unix(1_800_000_000, 0)
	s := signerAt(t, &clock)
	body := tokenBody{Grant: Grant{Binding: binding(), Answer: approved()}, expires: clock.Add(time.Hour).UnixMilli()}
	raw := body.encode("k1")
	enc := base64.RawURLEncoding.EncodeToString
	for n := range raw {
		_, err := s.Redeem(context.Background(), tokenPrefix+enc(raw[:n])+"."+enc(sign(s.keys["k1"], raw[:n])), binding(), nil)
		if !errors.Is(err, errTokenMalformed) && !errors.Is(err, errTokenForged) {
			t.Errorf("%d of %d bytes: %v", n, len(raw), err)
		}
	}
	d := decoder{}
	if n := d.num(); n != 0 || !d.bad {
		t.Errorf("a number of no bytes: %d, bad %t", n, d.bad)
	}
}

// shownFor returns what a prompt shows for a request.
func shownFor(t *testing.T, p func(*Prompt), req *tool.ApprovalRequest) string {
	t.Helper()
	var out bytes.Buffer
	prompt := NewPrompt(strings.NewReader("n\n"), &out)
	if p != nil {
		p(prompt)
	}
	if _, err := prompt.Approve(context.Background(), req); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestA7_PromptShowsOnlyKnownFields(t *testing.T) {
	bare := func() *tool.ApprovalRequest {
		return &tool.ApprovalRequest{Binding: binding(), Input: tool.Input{Arguments: []byte(`{"a":"b"}`)}}
	}
	text := shownFor(t, nil, bare())
	for _, absent := range []string{"(agent", "Why you are asked", "Wanted", "always", "after =", "  | \n"} {
		if strings.Contains(text, absent) {
			t.Errorf("%q is shown:\n%s", absent, text)
		}
	}
	if !strings.Contains(text, "y to run it") {
		t.Errorf("the choices are not shown:\n%s", text)
	}

	full := bare()
	full.Agent, full.Reason = []string{"outer", "inner"}, "it costs money"
	full.Wanted = &tool.InputRequest{Argument: "reason", Prompt: "say why"}
	text = shownFor(t, nil, full)
	for _, want := range []string{"(agent outer/inner)", "Why you are asked: it costs money\n", "Wanted: reason (say why)\n", "="} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not shown:\n%s", want, text)
		}
	}
	full.Wanted.Prompt = ""
	if text = shownFor(t, nil, full); !strings.Contains(text, "Wanted: reason\n") {
		t.Errorf("an input without a prompt:\n%s", text)
	}

	if text = shownFor(t, func(p *Prompt) { p.Ledger = &Ledger{} }, bare()); !strings.Contains(text, "always") {
		t.Errorf("always is not offered:\n%s", text)
	}

	words := &tool.ApprovalRequest{Binding: binding(), Input: tool.Input{Text: "a text"}}
	if text = shownFor(t, nil, words); !strings.Contains(text, "  | a text\n") {
		t.Errorf("the text of a call is not shown:\n%s", text)
	}
	if text = shownFor(t, nil, &tool.ApprovalRequest{Binding: binding()}); !strings.Contains(text, "  | \n") {
		t.Errorf("an empty text is not shown as a line:\n%s", text)
	}
}

// Values that are nested deeper than 16 levels are shown as JSON in one line.
func TestA7_DeepArgumentsAreShownOnOneLine(t *testing.T) {
	nested := func(depth int) string {
		return readable([]byte(strings.Repeat(`{"k":`, depth) + `{"a":1}` + strings.Repeat("}", depth)))
	}
	if got := nested(maxIndent/2 - 1); strings.Contains(got, "{") {
		t.Errorf("%d levels:\n%s", maxIndent/2-1, got)
	}
	if got := nested(maxIndent / 2); !strings.Contains(got, `{"a":1}`) {
		t.Errorf("%d levels:\n%s", maxIndent/2, got)
	}
}

func TestA7_LongLinesAreFoldedAt72Columns(t *testing.T) {
	for _, tc := range []struct {
		line string
		rows int
	}{
		{strings.Repeat("x", 72), 1},
		{strings.Repeat("x", 73), 2},
		{strings.Repeat("\u10ff", 72), 1}, // the last character of one column
		{strings.Repeat("\u1100", 36), 1}, // the first character of two columns
		{strings.Repeat("\u1100", 37), 2},
	} {
		var b strings.Builder
		show(&b, tc.line)
		if rows := strings.Count(b.String(), "\n"); rows != tc.rows {
			t.Errorf("%d of %q: %d rows, want %d", len([]rune(tc.line)), tc.line[:4], rows, tc.rows)
		}
	}
}

func TestA7_InvalidUTF8IsEscaped(t *testing.T) {
	if got := textkit.Visible("\x1b\xff"); got != `\x1b\xff` {
		t.Errorf("%q", got)
	}
	if got := textkit.Visible("\x1b\uFFFD"); got != "\\x1b\uFFFD" {
		t.Errorf("%q", got)
	}
}

func TestA7_EditedTextMustNotBeEmpty(t *testing.T) {
	req := func() *tool.ApprovalRequest {
		return &tool.ApprovalRequest{Binding: binding(), Input: tool.Input{Text: "old"}}
	}
	for typed, want := range map[string]tool.Verdict{"e new\n": tool.Approved, "e\n": tool.Undecided} {
		a, err := NewPrompt(strings.NewReader(typed), &bytes.Buffer{}).Approve(context.Background(), req())
		if err != nil || a.Verdict != want || want == tool.Approved && a.Edited.Text != "new" {
			t.Errorf("%q: %+v, %v", typed, a, err)
		}
	}
}

func TestA7_AnswerIsLimitedToOneMebibyte(t *testing.T) {
	edited := func(n int) tool.Answer {
		t.Helper()
		in := iotest.DataErrReader(strings.NewReader("e " + strings.Repeat("x", n) + "\n"))
		a, err := NewPrompt(in, &bytes.Buffer{}).Approve(context.Background(), &tool.ApprovalRequest{Binding: binding(), Input: tool.Input{Text: "old"}})
		if err != nil || a.Edited == nil {
			t.Fatalf("%+v, %v", a, err)
		}
		return a
	}
	whole := maxLine - len("e ")
	for _, n := range []int{whole, whole + 1} {
		if got := len(edited(n).Edited.Text); got != whole {
			t.Errorf("%d bytes: %d are read, want %d", n, got, whole)
		}
	}
}

func TestP5_BashOnlySyntaxIsParsedAsBash(t *testing.T) {
	bash := readCommand("diff <(ls) <(pwd)")
	if bash.ParseError != "" || !slices.Contains(bash.Programs, "diff") || !slices.Contains(bash.Programs, unknownProgram) {
		t.Errorf("%+v", bash)
	}
	if c := readCommand("ls 'unclosed"); c.ParseError == "" || !slices.Contains(c.Programs, unknownProgram) {
		t.Errorf("%+v", c)
	}
}
