package mcpserver_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/mcp/mcpserver"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/tool"
)

var ann = object{"to": "ann", "amount": 5}

func TestAModernClientApprovesACallWithTwoRequests(t *testing.T) {
	var paid counter
	_, url := serve(t, mcpserver.Options{Name: "bank", Tools: []tool.Tool{paid.tool(tool.NeedsApproval(), tool.Set(plain))}})
	c := newClient(t, url, modern, forms)
	ask := c.call("pay", ann)
	message := at[string](ask.result, "inputRequests", "approval", "params", "message")
	for _, want := range []string{"bank", "pay", `"amount":5`, "required by the tool"} {
		if !strings.Contains(message, want) {
			t.Errorf("the question %q lacks %q", message, want)
		}
	}
	if len(paid.ran()) > 0 {
		t.Fatal("the tool ran before the approval")
	}
	if r := c.call("pay", ann, retry(ask, yes("approval"))); r.texts() != "paid" || r.isError() {
		t.Errorf("%d %s %s", r.code, r.text, r.result)
	}
	if got := paid.ran(); !slices.Equal(got, []string{"ann 5"}) {
		t.Errorf("ran %v", got)
	}
}

func TestAClientOfAnOlderRevisionApprovesWhileItWaits(t *testing.T) {
	var paid counter
	_, url := serve(t, mcpserver.Options{Tools: []tool.Tool{paid.tool(tool.NeedsApproval(), tool.Set(plain))}})
	for _, tc := range []struct {
		answer object
		text   string
	}{
		{yes("x")["x"].(object), "paid"},
		{no("x", "too much")["x"].(object), "too much"},
		{object{"action": "decline"}, "did not run"},
		{object{"action": "cancel"}, "without an answer"},
	} {
		c := newClient(t, url, legacy, forms)
		c.answer = func(method string, _ json.RawMessage) any {
			if method != "elicitation/create" {
				t.Errorf("the server asks %s", method)
			}
			return tc.answer
		}
		if r := c.call("pay", ann); !strings.Contains(r.texts(), tc.text) {
			t.Errorf("%v: %s", tc.answer, r.result)
		}
	}
	if got := paid.ran(); len(got) != 1 {
		t.Errorf("ran %v", got)
	}
}

func TestARejectedCallDoesNotRun(t *testing.T) {
	var paid counter
	_, url := serve(t, mcpserver.Options{Tools: []tool.Tool{paid.tool(tool.NeedsApproval())}})
	c := newClient(t, url, modern, forms)
	for _, answer := range []object{no("approval", "not now"), {"approval": object{"action": "decline"}}, {"approval": object{"action": "cancel"}}} {
		r := c.call("pay", ann, retry(c.call("pay", ann), answer))
		if !r.isError() || !strings.Contains(r.texts(), "did not run") {
			t.Errorf("%v: %d %s", answer, r.code, r.result)
		}
	}
	if len(paid.ran()) > 0 {
		t.Error("it ran")
	}
}

func TestAnIncompleteAnswerIsAskedAgain(t *testing.T) {
	var paid counter
	_, url := serve(t, mcpserver.Options{Tools: []tool.Tool{paid.tool(tool.NeedsApproval(), tool.Set(plain))}})
	c := newClient(t, url, modern, forms)
	ask := c.call("pay", ann)
	for _, answer := range []object{
		{},
		{"other": object{"action": "accept"}},
		{"approval": object{"action": "accept", "content": object{}}},
		{"approval": 7},
		{"approval": object{"action": "accept", "content": object{"approve": "yes"}}},
	} {
		again := c.call("pay", ann, retry(ask, answer))
		if again.state() == "" || again.state() == ask.state() {
			t.Fatalf("%v: %d %s %s", answer, again.code, again.text, again.result)
		}
		ask = again
	}
	if r := c.call("pay", ann, retry(ask, yes("approval"))); r.texts() != "paid" {
		t.Errorf("%s", r.result)
	}
}

func TestAnswersWithoutAStateApproveNothing(t *testing.T) {
	var paid counter
	_, url := serve(t, mcpserver.Options{Tools: []tool.Tool{paid.tool(tool.NeedsApproval())}})
	if r := newClient(t, url, modern, forms).call("pay", ann, object{"inputResponses": yes("approval")}); r.state() == "" || len(paid.ran()) > 0 {
		t.Errorf("%s, ran %v", r.result, paid.ran())
	}
}

// Attacks on the state that a client holds.
func TestAStateWorksOnceForItsCallerCallAndTime(t *testing.T) {
	var paid counter
	now := time.Now()
	var mu sync.Mutex
	clock := func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now
	}
	rules := &judge{version: "1", decide: func(*tool.Question) tool.Decision { return tool.Decision{Effect: tool.Ask} }}
	options := mcpserver.Options{
		Now: clock, Runner: &tool.Runner{Policy: rules},
		Tools: []tool.Tool{paid.tool(tool.Set(plain)), tool.New("pay2", "Pays.", func(context.Context, transfer) (string, error) { return "", nil })},
		Auth:  &mcpserver.Auth{Keys: []mcpserver.Key{{Name: "ann", Hash: mcpserver.HashKey("ann-key")}, {Name: "eve", Hash: mcpserver.HashKey("eve-key")}}},
	}
	s, url := serve(t, options)
	_, otherURL := serve(t, options) // another process, or the same after a restart
	client := func(url, key string) *client {
		return &client{t: t, url: url, revision: modern, caps: forms, header: bearer(key)}
	}
	c := client(url, "ann-key")
	refused := func(what string, r *reply) {
		t.Helper()
		if r.code != -32602 || r.status != 400 || len(paid.ran()) > 0 {
			t.Errorf("%s: status %d, code %d %s %s, ran %v", what, r.status, r.code, r.text, r.result, paid.ran())
		}
	}
	ask := c.call("pay", ann)
	accept := retry(ask, yes("approval"))

	refused("other arguments", c.call("pay", object{"to": "eve", "amount": 5}, accept))
	refused("another tool", c.call("pay2", ann, accept))
	refused("another principal", client(url, "eve-key").call("pay", ann, accept))
	refused("another server", client(otherURL, "ann-key").call("pay", ann, accept))
	refused("a text", c.call("pay", ann, object{"inputResponses": yes("approval"), "requestState": "x"}))
	refused("an appended text", c.call("pay", ann, object{"inputResponses": yes("approval"), "requestState": ask.state() + "A"}))
	raw, err := base64.RawURLEncoding.DecodeString(ask.state())
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range []int{0, 13, len(raw) / 2, len(raw) - 1} {
		forged := slices.Clone(raw)
		forged[i] ^= 1
		refused("a changed bit", c.call("pay", ann, object{"inputResponses": yes("approval"), "requestState": base64.RawURLEncoding.EncodeToString(forged)}))
	}
	mu.Lock()
	now = now.Add(11 * time.Minute)
	mu.Unlock()
	refused("an expired state", c.call("pay", ann, accept))

	// A changed policy or tool voids the approval: the user is asked again.
	ask = c.call("pay", ann)
	rules.set("2")
	again := c.call("pay", ann, retry(ask, yes("approval")))
	if again.state() == "" || len(paid.ran()) > 0 {
		t.Fatalf("the policy changed: %d %s %s", again.code, again.text, again.result)
	}
	changed := tool.New("pay", "Pays a person twice.", func(_ context.Context, in transfer) (string, error) {
		paid.add(fmt.Sprintf("%s %d", in.To, in.Amount))
		return "paid", nil
	}, tool.Set(plain))
	if err := s.SetTools(changed); err != nil {
		t.Fatal(err)
	}
	final := c.call("pay", ann, retry(again, yes("approval")))
	if final.state() == "" || len(paid.ran()) > 0 || !strings.Contains(at[string](final.result, "inputRequests", "approval", "params", "message"), "changed") {
		t.Fatalf("the tool changed: %d %s %s", final.code, final.text, final.result)
	}

	// The same arguments in another notation are the same arguments.
	params := retry(final, yes("approval"))
	done := c.do("tools/call", object{"name": "pay", "arguments": json.RawMessage(`{ "amount": 5, "to": "ann" }`), "inputResponses": params["inputResponses"], "requestState": params["requestState"]})
	if done.texts() != "paid" {
		t.Fatalf("%d %s %s", done.code, done.text, done.result)
	}
	if r := c.call("pay", ann, params); r.code != -32602 || len(paid.ran()) != 1 {
		t.Errorf("a replay: %d %s, ran %v", r.code, r.result, paid.ran())
	}
}

func TestParallelReplaysRunTheCallOnce(t *testing.T) {
	for _, journal := range []bool{false, true} {
		var paid counter
		o := mcpserver.Options{Tools: []tool.Tool{paid.tool(tool.NeedsApproval(), tool.Set(plain))}}
		if journal {
			j, err := session.Create(t.Context(), &session.Memory{}, session.Info{ID: "journal"})
			if err != nil {
				t.Fatal(err)
			}
			o.Runner, o.StateKey = &tool.Runner{Journal: j}, []byte(strings.Repeat("k", 32))
		}
		_, url := serve(t, o)
		accept := retry(newClient(t, url, modern, forms).call("pay", ann), yes("approval"))
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() { newClient(t, url, modern, forms).call("pay", ann, accept) })
		}
		wg.Wait()
		if got := paid.ran(); len(got) != 1 {
			t.Errorf("journal %v: ran %v", journal, got)
		}
		if journal { // the client that lost the response gets it
			if r := newClient(t, url, modern, forms).call("pay", ann, accept); r.texts() != "paid" {
				t.Errorf("repeated: %d %s %s", r.code, r.text, r.result)
			}
			if r := newClient(t, url, modern, forms).call("pay", ann, object{"requestState": accept["requestState"], "inputResponses": no("approval", "")}); r.code != -32602 {
				t.Errorf("the opposite answer: %d %s", r.code, r.result)
			}
		}
	}
}

func TestAnIdempotencyKeyRunsACallOnce(t *testing.T) {
	var paid counter
	j, err := session.Create(t.Context(), &session.Memory{}, session.Info{ID: "journal"})
	if err != nil {
		t.Fatal(err)
	}
	_, url := serve(t, mcpserver.Options{Tools: []tool.Tool{paid.tool(tool.Set(plain))}, Runner: &tool.Runner{Journal: j}})
	for _, revision := range []string{modern, legacy} {
		c := newClient(t, url, revision, nil)
		key := object{"_meta": object{mcpserver.MetaIdempotencyKey: "order-7 " + revision}}
		for range 3 {
			if r := c.call("pay", ann, key); r.texts() != "paid" {
				t.Errorf("%d %s %s", r.code, r.text, r.result)
			}
		}
		if r := c.call("pay", object{"to": "bob", "amount": 1}, key); r.code != -32602 {
			t.Errorf("other arguments: %d %s %s", r.code, r.text, r.result)
		}
	}
	if got := paid.ran(); len(got) != 2 {
		t.Errorf("ran %v", got)
	}
}

func TestAnErrorForAClientWithoutFormsNamesTheApprover(t *testing.T) {
	var paid counter
	for _, o := range []mcpserver.Options{{}, {NoClientApprovals: true}} {
		o.Tools = []tool.Tool{paid.tool(tool.NeedsApproval())}
		_, url := serve(t, o)
		for _, revision := range []string{modern, legacy} {
			var caps object
			if o.NoClientApprovals {
				caps = forms
			}
			r := newClient(t, url, revision, caps).call("pay", ann)
			if !r.isError() || !strings.Contains(r.texts(), "needs approval") || !strings.Contains(r.texts(), "operator of this server") {
				t.Errorf("%s: %d %s %s", revision, r.code, r.text, r.result)
			}
		}
	}
	if len(paid.ran()) > 0 {
		t.Error("it ran")
	}
}

type approver func(*tool.ApprovalRequest) tool.Answer

func (a approver) Approve(_ context.Context, r *tool.ApprovalRequest) (tool.Answer, error) {
	return a(r), nil
}

func TestTheApproverOfTheHostDecidesFirst(t *testing.T) {
	var paid counter
	_, url := serve(t, mcpserver.Options{Tools: []tool.Tool{paid.tool(tool.NeedsApproval(), tool.Set(plain))}, Runner: &tool.Runner{
		Approver: approver(func(r *tool.ApprovalRequest) tool.Answer {
			if strings.Contains(string(r.Input.Arguments), `"amount":5`) {
				return tool.Answer{Verdict: tool.Approved}
			}
			return tool.Answer{}
		}),
	}})
	c := newClient(t, url, modern, forms)
	if r := c.call("pay", ann); r.texts() != "paid" {
		t.Errorf("%s", r.result)
	}
	if r := c.call("pay", object{"to": "ann", "amount": 6}); r.state() == "" {
		t.Errorf("%s", r.result)
	}
}

func TestEditedArgumentsAreValidatedAndJudgedAgain(t *testing.T) {
	var paid counter
	rules := &judge{decide: func(q *tool.Question) tool.Decision {
		if strings.Contains(string(q.Input.Arguments), "bob") {
			return tool.Decision{Effect: tool.Deny, Reason: "Bob is blocked"}
		}
		return tool.Decision{Effect: tool.Ask}
	}}
	_, url := serve(t, mcpserver.Options{EditArguments: true, Tools: []tool.Tool{paid.tool(tool.Set(plain))}, Runner: &tool.Runner{Policy: rules}})
	c := newClient(t, url, modern, forms)
	for args, want := range map[string]string{
		`{"to":"ann","amount":1}`: "paid",
		`{"to":"bob","amount":1}`: "Bob is blocked",
		``:                        "paid",
	} {
		r := c.call("pay", ann, retry(c.call("pay", ann), object{"approval": object{"action": "accept", "content": object{"approve": true, "arguments": args}}}))
		if !strings.Contains(r.texts(), want) {
			t.Errorf("%s: %d %s %s", args, r.code, r.text, r.result)
		}
	}
	got := paid.ran()
	slices.Sort(got)
	if !slices.Equal(got, []string{"ann 1", "ann 5"}) {
		t.Errorf("ran %v", got)
	}
	// Arguments that do not fit are asked for again, and the form says why.
	again := c.call("pay", ann, retry(c.call("pay", ann), object{"approval": object{"action": "accept", "content": object{"approve": true, "arguments": `{"to":"ann","amount":0}`}}}))
	if got := at[string](again.result, "inputRequests", "approval", "params", "message"); !strings.Contains(got, "The last answer could not be used: /amount") || len(paid.ran()) != 2 {
		t.Errorf("%d %s, ran %v", again.code, again.result, paid.ran())
	}
	if r := c.call("pay", ann, retry(again, object{"approval": object{"action": "accept", "content": object{"approve": true, "arguments": `{"to":"ann","amount":7}`}}})); r.texts() != "paid" || !slices.Contains(paid.ran(), "ann 7") {
		t.Errorf("%d %s %s", r.code, r.text, r.result)
	}
	// Without the option the field is ignored.
	_, url = serve(t, mcpserver.Options{Tools: []tool.Tool{paid.tool(tool.Set(plain))}, Runner: &tool.Runner{Policy: rules}})
	c = newClient(t, url, modern, forms)
	c.call("pay", ann, retry(c.call("pay", ann), object{"approval": object{"action": "accept", "content": object{"approve": true, "arguments": `{"to":"eve","amount":9}`}}}))
	if slices.Contains(paid.ran(), "eve 9") {
		t.Error("a client changed the arguments")
	}
}

func TestAPolicyCanAskForAValue(t *testing.T) {
	var paid counter
	rules := &judge{decide: func(q *tool.Question) tool.Decision {
		if strings.Contains(string(q.Input.Arguments), `"amount":42`) {
			return tool.Decision{Effect: tool.Allow}
		}
		return tool.Decision{Effect: tool.AskInput, Input: &tool.InputRequest{Argument: "amount", Prompt: "How much?"}}
	}}
	_, url := serve(t, mcpserver.Options{Tools: []tool.Tool{paid.tool(tool.Set(plain))}, Runner: &tool.Runner{Policy: rules}})
	c := newClient(t, url, modern, forms)
	ask := c.call("pay", ann)
	if got := at[string](ask.result, "inputRequests", "approval", "params", "requestedSchema", "properties", "value", "type"); got != "integer" {
		t.Errorf("the form asks for %q: %s", got, ask.result)
	}
	r := c.call("pay", ann, retry(ask, object{"approval": object{"action": "accept", "content": object{"approve": true, "value": 42}}}))
	if r.texts() != "paid" || !slices.Equal(paid.ran(), []string{"ann 42"}) {
		t.Errorf("%d %s %s, ran %v", r.code, r.text, r.result, paid.ran())
	}
}

func TestAToolThatNeedsApprovalAndAsksDoesBoth(t *testing.T) {
	runs := 0
	both := tool.New("both", "Asks.", func(ctx context.Context, _ struct{}) (string, error) {
		a, err := mcpserver.Ask(ctx, map[string]mcpserver.Question{"n": mcpserver.Form("Name?", json.RawMessage(`{"type":"object","properties":{"n":{"type":"string"}},"required":["n"]}`))})
		if err != nil {
			return "", err
		}
		b, err := mcpserver.Ask(ctx, map[string]mcpserver.Question{"n": mcpserver.Form("Again?", json.RawMessage(`{"type":"object","properties":{"n":{"type":"string"}},"required":["n"]}`))})
		if err != nil {
			return "", err
		}
		runs++
		return at[string](a["n"], "content", "n") + at[string](b["n"], "content", "n"), nil
	}, tool.Set(plain))
	rules := &judge{decide: func(*tool.Question) tool.Decision { return tool.Decision{Effect: tool.Ask} }}
	_, url := serve(t, mcpserver.Options{Tools: []tool.Tool{both}, Runner: &tool.Runner{Policy: rules}})
	say := func(s string) object { return object{"n": object{"action": "accept", "content": object{"n": s}}} }

	c := newClient(t, url, modern, forms)
	first := c.call("both", nil)
	// An answer to a question that was not asked yet belongs to nothing.
	answers := yes("approval")
	answers["n"] = say("too early")["n"]
	second := c.call("both", nil, retry(first, answers))
	third := c.call("both", nil, retry(second, say("a")))
	if r := c.call("both", nil, retry(third, say("b"))); r.texts() != "ab" || runs != 1 {
		t.Errorf("%d %s %s after %s %s %s", r.code, r.text, r.result, first.result, second.result, third.result)
	}

	old := newClient(t, url, legacy, forms)
	script := []object{yes("x")["x"].(object), say("c")["n"].(object), say("d")["n"].(object)}
	old.answer = func(string, json.RawMessage) any {
		next := script[0]
		script = script[1:]
		return next
	}
	if r := old.call("both", nil); r.texts() != "cd" || runs != 2 {
		t.Errorf("%d %s %s", r.code, r.text, r.result)
	}
}

func TestAQuestionThatTheClientCannotAnswerIsAnError(t *testing.T) {
	askTool := tool.New("ask", "Asks.", func(ctx context.Context, _ struct{}) (string, error) {
		_, err := mcpserver.Ask(ctx, map[string]mcpserver.Question{"s": mcpserver.Sample(json.RawMessage(`{"messages":[],"maxTokens":1}`))})
		return "", err
	})
	_, url := serve(t, mcpserver.Options{Tools: []tool.Tool{askTool}})
	r := newClient(t, url, modern, forms).call("ask", nil)
	if r.code != -32021 || r.status != 400 || at[map[string]any](r.result, "requiredCapabilities")["sampling"] == nil {
		t.Errorf("%d %d %s %s", r.status, r.code, r.text, r.result)
	}
	if r := newClient(t, url, legacy, forms).call("ask", nil); !r.isError() || !strings.Contains(r.texts(), "sampling") {
		t.Errorf("%d %s", r.code, r.result)
	}
}

func TestAFormHidesNothing(t *testing.T) {
	var paid counter
	_, url := serve(t, mcpserver.Options{Tools: []tool.Tool{paid.tool(tool.NeedsApproval())}})
	c := newClient(t, url, modern, forms)
	message := at[string](c.call("pay", object{"to": "ann\u202e\u200b\U000E0041", "amount": 1}).result, "inputRequests", "approval", "params", "message")
	if strings.ContainsAny(message, "\u202e\u200b\U000E0041") {
		t.Errorf("%q has invisible characters", message)
	}
}

// The tool runs calls of its own, as an agent does.
func TestTheClientApprovesTheCallsOfAnAgent(t *testing.T) {
	var paid counter
	inner, err := tool.NewBox(paid.tool(tool.NeedsApproval()))
	if err != nil {
		t.Fatal(err)
	}
	runner := &tool.Runner{Approver: mcpserver.ClientApprover{}}
	agent := tool.New("agent", "Works.", func(ctx context.Context, _ struct{}) (string, error) {
		turn := tool.Turn{Number: 1, Calls: []*dragoman.ToolCall{{ID: "a", Name: "pay", Arguments: `{"to":"ann","amount":1}`}, {ID: "b", Name: "pay", Arguments: `{"to":"bob","amount":2}`}}}
		if state, ok := tool.Resumed(ctx); ok {
			if err := json.Unmarshal(state, &turn.Resume); err != nil {
				return "", err
			}
		}
		batch, err := runner.Start("inner").Do(ctx, inner, turn)
		if err != nil {
			return "", err
		}
		if len(batch.Pending) > 0 {
			state, err := json.Marshal(batch.Pending)
			if err != nil {
				return "", err
			}
			return "", &tool.Suspended{Inner: batch.Pending, State: state}
		}
		return fmt.Sprint(len(batch.Results), " done"), nil
	}, tool.Set(plain))
	_, url := serve(t, mcpserver.Options{Tools: []tool.Tool{agent}})
	c := newClient(t, url, modern, forms)
	ask := c.call("agent", nil)
	answers := yes("approval_1")
	answers["approval_2"] = no("x", "not Bob")["x"]
	message := at[string](ask.result, "inputRequests", "approval_2", "params", "message")
	if r := c.call("agent", nil, retry(ask, answers)); r.texts() != "2 done" || !slices.Equal(paid.ran(), []string{"ann 1"}) || !strings.Contains(message, "bob") {
		t.Errorf("%d %s %s, ran %v after %s", r.code, r.text, r.result, paid.ran(), ask.result)
	}
}

func TestQuestionsOfAToolReachTheClientAsTheirOwnForms(t *testing.T) {
	form := json.RawMessage(`{"type":"object","properties":{"b":{"type":"string"}},"required":["b"]}`)
	asker := tool.New("push", "Pushes.", func(ctx context.Context, _ struct{}) (string, error) {
		answers, asked := tool.Answers(ctx)
		if !asked {
			return "", &tool.Suspended{State: json.RawMessage(`{"at":1}`), Asks: []tool.InputRequest{
				{Name: "branch", From: "MCP server \"git\"", Prompt: "Which branch?", Schema: form},
				{Name: "sure", Prompt: "Sure?"},
			}}
		}
		return string(answers["branch"].Verdict) + " " + string(answers["branch"].Value) + " " + string(answers["sure"].Verdict), nil
	}, tool.Set(plain))
	_, url := serve(t, mcpserver.Options{Tools: []tool.Tool{asker}})
	c := newClient(t, url, modern, forms)
	ask := c.call("push", nil)
	if got := at[string](ask.result, "inputRequests", "approval_1", "params", "requestedSchema", "properties", "b", "type"); got != "string" {
		t.Fatalf("the form of the tool is not passed on: %s", ask.result)
	}
	if message := at[string](ask.result, "inputRequests", "approval_1", "params", "message"); !strings.Contains(message, `MCP server "git"`) || !strings.Contains(message, "Which branch?") {
		t.Errorf("message %q", message)
	}
	answers := yes("approval_2")
	answers["approval_1"] = object{"action": "accept", "content": object{"b": "main"}}
	if r := c.call("push", nil, retry(ask, answers)); r.texts() != `approved {"b":"main"} approved` {
		t.Errorf("%d %s %s", r.code, r.text, r.result)
	}
	answers = no("approval_2", "")
	answers["approval_1"] = object{"action": "decline"}
	if r := c.call("push", nil, retry(c.call("push", nil), answers)); r.texts() != `rejected  rejected` {
		t.Errorf("%d %s %s", r.code, r.text, r.result)
	}
}
