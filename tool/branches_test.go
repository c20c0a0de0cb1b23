package tool_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/testkit/toolopt"
	"github.com/dragoman-go/dragoman/internal/text/toolname"
	"github.com/dragoman-go/dragoman/tool"
)

// The tests in this file check branches that mutation testing showed to be untested.

const leafFormat dragoman.Format = "leaf.tool"

// leaf reads definitions in a made-up format: the canonical JSON of one tool, or of several.
type leaf struct{}

func (leaf) Format() dragoman.Format { return leafFormat }

func (leaf) InspectSchema(obj json.RawMessage) ([]dragoman.ToolSpec, dragoman.Report, error) {
	var in struct {
		Name, Text string
		Needs      string
		Times      int
		Wrong      string
	}
	if err := json.Unmarshal(obj, &in); err != nil {
		return nil, dragoman.Report{}, err
	}
	if in.Wrong != "" {
		return nil, dragoman.Report{}, errors.New(in.Wrong)
	}
	yes := true
	spec := dragoman.ToolSpec{
		Name: in.Name, Description: in.Text, Namespace: "leaves", NamespaceDescription: "of the source",
		Parameters:   json.RawMessage(`{"type":"object","properties":{"` + in.Needs + `":{"type":"string"}}}`),
		OutputSchema: json.RawMessage(`{"title":"of the source"}`),
		Annotations:  dragoman.Annotations{ReadOnly: &yes}, Strict: codes.StrictAuto,
		Examples: []json.RawMessage{json.RawMessage(`{"of":"the source"}`)}, Cache: &dragoman.CacheHint{},
	}
	if in.Needs == "" {
		spec.Parameters = nil
	}
	out := []dragoman.ToolSpec{spec}
	for range in.Times {
		out = append(out, spec)
	}
	return out, dragoman.Report{}, nil
}

func withSource(spec dragoman.ToolSpec, source string) tool.Tool {
	spec.Source = &dragoman.ToolSource{Format: leafFormat, JSON: json.RawMessage(source)}
	return tool.Remote(spec, func(context.Context, tool.Input) (tool.Output, error) { return tool.Output{}, nil },
		tool.Contribute(dragoman.Contribution{Schemas: []dragoman.SchemaAccessor{leaf{}}}))
}

func TestR10_SourceFillsInUnsetFields(t *testing.T) {
	const source = `{"name":"tree","text":"of the source","needs":"water"}`
	get := func(spec dragoman.ToolSpec) *dragoman.ToolSpec {
		t.Helper()
		box := mustBox(t, withSource(spec, source))
		specs := box.Specs()
		if len(specs) != 1 {
			t.Fatalf("%d specs", len(specs))
		}
		return &specs[0]
	}
	bare := get(dragoman.ToolSpec{})
	if bare.Name != "tree" || bare.Description != "of the source" || bare.Namespace != "leaves" || bare.NamespaceDescription != "of the source" ||
		!strings.Contains(string(bare.Parameters), `"water"`) || bare.OutputSchema == nil || bare.Annotations.ReadOnly == nil || bare.Strict != codes.StrictAuto ||
		len(bare.Examples) != 1 || bare.Cache == nil || bare.Deferred {
		t.Errorf("%+v", bare)
	}
	no := false
	cache := &dragoman.CacheHint{}
	own := get(dragoman.ToolSpec{
		Name: "bush", Description: "own", Namespace: "bushes", NamespaceDescription: "own", OutputSchema: json.RawMessage(`{"title":"own"}`),
		Annotations: dragoman.Annotations{ReadOnly: &no}, Strict: codes.StrictOn, Deferred: true, Cache: cache,
		Examples: []json.RawMessage{json.RawMessage(`{"own":1}`)},
	})
	if own.Name != "bush" || own.Description != "own" || own.Namespace != "bushes" || own.NamespaceDescription != "own" ||
		!strings.Contains(string(own.Parameters), `"water"`) || string(own.OutputSchema) != `{"title":"own"}` || *own.Annotations.ReadOnly || own.Strict != codes.StrictOn ||
		len(own.Examples) != 2 || own.Cache != cache || !own.Deferred {
		t.Errorf("%+v", own)
	}
	whole := get(dragoman.ToolSpec{Name: "bush", Parameters: json.RawMessage(`{"type":"object"}`)})
	if whole.Description != "" || whole.Namespace != "" || string(whole.Parameters) != `{"type":"object"}` {
		t.Errorf("a spec that is whole was changed: %+v", whole)
	}
}

func TestR10_UnreadableSourceIsAnError(t *testing.T) {
	for source, want := range map[string]string{
		`{"wrong":"no leaf"}`:         "no leaf",
		`{"name":"tree","times":1}`:   "defines 2 tools",
		`{"name":"tree","text":"\n"}`: "",
	} {
		_, err := tool.NewBox(withSource(dragoman.ToolSpec{}, source))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", source, err, want)
		}
	}
}

func TestR10_EmptyContributionsAreNotListed(t *testing.T) {
	var none *tool.Box
	if got := none.Contributions(); got != nil {
		t.Errorf("no toolbox contributes %v", got)
	}
	named := tool.New("b", "", func(context.Context, struct{}) (string, error) { return "", nil },
		tool.Contribute(dragoman.Contribution{Source: "mine", Schemas: []dragoman.SchemaAccessor{leaf{}}}))
	got := mustBox(t, echo("a"), withSource(dragoman.ToolSpec{}, `{"name":"tree","needs":"x"}`), named).Contributions()
	if len(got) != 2 || got[0].Source != "tool leaves.tree" || got[1].Source != "mine" {
		t.Errorf("%d: %+v", len(got), got)
	}
}

func TestP3_PolicySeesHandoffsAsTheirOwnSubject(t *testing.T) {
	var asked []tool.Question
	r := &tool.Runner{Policy: policyFunc(func(_ context.Context, q *tool.Question) (tool.Decision, error) {
		asked = append(asked, *q)
		return tool.Decision{Effect: tool.Allow}, nil
	})}
	handoff := echo("transfer", tool.Set(func(s *tool.Settings) { s.Source, s.HandoffTo = codes.FromHandoff, "refunds" }))
	box := mustBox(t, echo("plain"), handoff)
	do(t, r, box, call("1", "plain", "{}"))
	do(t, r, box, call("2", "transfer", "{}"))
	if len(asked) != 2 || asked[0].Subject != codes.SubjectToolCall || asked[0].Target != "" || asked[1].Subject != codes.SubjectHandoff || asked[1].Target != "refunds" {
		t.Errorf("%+v", asked)
	}
}

func TestP3_ModelCallIsAllowedOrDenied(t *testing.T) {
	for _, tc := range []struct {
		decision tool.Decision
		err      error
		want     string // a substring of the error
	}{
		{tool.Decision{Effect: tool.Allow}, nil, ""},
		{tool.Decision{Effect: tool.Deny}, nil, `denies calling the model "m", by its default`},
		{tool.Decision{Effect: tool.Deny, Rule: "r", Reason: "why"}, nil, `by rule "r": why`},
		{tool.Decision{Effect: tool.Ask}, nil, "cannot wait"},
		{tool.Decision{Effect: tool.AskInput, Input: &tool.InputRequest{Argument: "a"}}, nil, "cannot wait"},
		{tool.Decision{Effect: tool.Allow, Edits: []tool.Edit{{Argument: "a", Value: json.RawMessage("1")}}}, nil, "has no arguments"},
		{tool.Decision{Effect: "maybe"}, nil, `"maybe"`},
		{tool.Decision{}, errors.New("broken"), "denies"},
	} {
		var events []tool.Event
		r := &tool.Runner{
			Policy: policyFunc(func(context.Context, *tool.Question) (tool.Decision, error) {
				return tc.decision, tc.err
			}),
			Observe: func(e tool.Event) { events = append(events, e) },
		}
		err := r.Start("run").DecideModel(t.Context(), 3, "m")
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%+v: %v, want %q", tc.decision, err, tc.want)
		}
		d, ok := events[0].(tool.PolicyDecided)
		if len(events) != 1 || !ok || d.Subject != codes.SubjectModelCall || d.Turn != 3 || (d.Failed != nil) != (tc.err != nil) {
			t.Errorf("%+v: events %+v", tc.decision, events)
		}
	}
	if err := (&tool.Runner{}).Start("run").DecideModel(t.Context(), 1, "m"); err != nil {
		t.Errorf("without a policy: %v", err)
	}
	if err := (&tool.DeniedError{}); strings.Contains(err.Error(), `""`) {
		t.Errorf("a model without a name: %v", err)
	}
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	r := &tool.Runner{Policy: policyFunc(func(context.Context, *tool.Question) (tool.Decision, error) {
		cancel(gone)
		return tool.Decision{}, ctx.Err()
	})}
	if err := r.Start("run").DecideModel(ctx, 1, "m"); !errors.Is(err, gone) {
		t.Errorf("a run that ended: %v", err)
	}
}

// If a model calls an unknown tool, it gets a list of at most twenty tools.
func TestI2_UnknownToolErrorListsTheTools(t *testing.T) {
	var tools []tool.Tool
	for i := range 21 {
		tools = append(tools, echo(fmt.Sprintf("t%02d", i)))
	}
	for n, want := range map[int]string{
		0:  `There is no tool named "zzzzzzzz". There are no tools.`,
		2:  `There is no tool named "zzzzzzzz". There are: t00, t01.`,
		20: " t18, t19.",
		21: ", t19 and 1 more.",
	} {
		res, rec := do(t, &tool.Runner{}, mustBox(t, tools[:n]...), call("1", "zzzzzzzz", "{}"))
		wantKind(t, res, rec, tool.ErrorUnknownTool)
		if !strings.HasSuffix(res.Text(), want) || strings.Contains(res.Text(), "Did you mean") {
			t.Errorf("%d tools: %s", n, res.Text())
		}
	}
}

// The schema in an error is compact, and truncated if it is long.
func TestT4_ArgumentErrorShowsTheSchema(t *testing.T) {
	long := func(n int) string {
		head, tail := `{"type":"object","required":["a"],"description":"`, `"}`
		return head + strings.Repeat("x", n-len(head)-len(tail)) + tail
	}
	for _, tc := range []struct {
		schema, want string
	}{
		{"{ \"type\" : \"object\",\n \"required\": [ \"a\" ] }", `matches this schema: {"type":"object","required":["a"]}` + "\n"},
		{long(1200), long(1200) + "\n"},
		{long(1201), long(1201)[:1200] + " …\n"},
	} {
		res, rec := do(t, &tool.Runner{}, mustBox(t, argumentsTool(tc.schema)), call("1", "f", "{}"))
		wantKind(t, res, rec, tool.ErrorArguments)
		if !strings.Contains(res.Text(), tc.want) {
			t.Errorf("%s\nlacks %s", res.Text(), tc.want)
		}
	}
}

func TestT8_ReadOutputReadsAPageByDefault(t *testing.T) {
	store := &tool.MemorySpill{}
	name, err := store.Put(t.Context(), tool.CallRef{Run: "run"}, 0, strings.Repeat("x", 30_000))
	if err != nil {
		t.Fatal(err)
	}
	box := mustBox(t, tool.ReadOutput(store))
	for args, want := range map[string]string{
		fmt.Sprintf(`{"name":%q}`, name):                            "[bytes 0 to 20000 of 30000; continue with offset 20000]",
		fmt.Sprintf(`{"name":%q,"bytes":10}`, name):                 "[bytes 0 to 10 of 30000; continue with offset 10]",
		fmt.Sprintf(`{"name":%q,"offset":29990,"bytes":10}`, name):  "[bytes 29990 to 30000 of 30000]",
		fmt.Sprintf(`{"name":%q,"offset":29990,"bytes":100}`, name): "[bytes 29990 to 30000 of 30000]",
	} {
		res, rec := do(t, &tool.Runner{}, box, call("1", toolname.ReadOutput, args))
		wantKind(t, res, rec, "")
		if !strings.Contains(res.Text(), want) {
			t.Errorf("%s: %.200s", args, res.Text())
		}
	}
	if !tool.ReadOutput(store).(interface{ Settings() tool.Settings }).Settings().ReadsOutput {
		t.Error("ReadsOutput is false")
	}
}

func TestT7_RefusalsOfHooksAreLoggedOnlyWithALog(t *testing.T) {
	var fallback bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&fallback, nil)))
	defer slog.SetDefault(before)
	hooked := func(err error) *tool.Box {
		return mustBox(t, echo("a", tool.Set(func(s *tool.Settings) {
			s.Hooks.Pre = []tool.PreHook{func(context.Context, tool.Input) (tool.Input, error) {
				if err == nil {
					panic("boom")
				}
				return tool.Input{}, err
			}}
		})))
	}
	_, rec := do(t, &tool.Runner{}, hooked(errors.New("not today")), call("1", "a", "{}"))
	if rec.ErrorKind != tool.ErrorDenied || fallback.Len() > 0 {
		t.Errorf("%q, logged %s", rec.ErrorKind, &fallback)
	}
	var own bytes.Buffer
	do(t, &tool.Runner{Log: slog.New(slog.NewTextHandler(&own, nil))}, hooked(errors.New("not today")), call("1", "a", "{}"))
	if !strings.Contains(own.String(), "a hook refused the call") {
		t.Errorf("the runner's log has %s", &own)
	}
	_, rec = do(t, &tool.Runner{}, hooked(nil), call("1", "a", "{}"))
	if rec.ErrorKind != tool.ErrorHook || !strings.Contains(fallback.String(), "a hook failed") {
		t.Errorf("%q, logged %s", rec.ErrorKind, &fallback)
	}
}

func TestA7_RequestHasAPreviewOnlyIfTheToolHasOne(t *testing.T) {
	var previews []string
	r := &tool.Runner{Approver: approverFunc(func(ctx context.Context, req *tool.ApprovalRequest) (tool.Answer, error) {
		text := "none"
		if req.Preview != nil {
			text, _ = req.Preview(ctx)
		}
		previews = append(previews, text)
		return tool.Answer{Verdict: tool.Approved}, nil
	})}
	with := toolopt.WithPreview(func(context.Context, tool.Input) (string, error) { return "a preview", nil })
	box := mustBox(t, echo("a", tool.NeedsApproval()), echo("b", tool.NeedsApproval(), with))
	do(t, r, box, call("1", "a", "{}"))
	do(t, r, box, call("2", "b", "{}"))
	if fmt.Sprint(previews) != "[none a preview]" {
		t.Errorf("%q", previews)
	}
}

func TestT10_FailedCallRecordHasItsCause(t *testing.T) {
	own := errors.New("own")
	box := mustBox(t, tool.New("f", "", func(context.Context, struct{}) (string, error) { return "", own }), echo("g"))
	_, rec := do(t, &tool.Runner{}, box, call("1", "f", "{}"))
	if !errors.Is(rec.Cause, own) {
		t.Errorf("the cause is %v", rec.Cause)
	}
	if _, rec = do(t, &tool.Runner{}, box, call("2", "g", "{}")); rec.Cause != nil {
		t.Errorf("a call that went well has the cause %v", rec.Cause)
	}
	with, without := &tool.CallError{Record: tool.Record{Cause: own}}, &tool.CallError{}
	if !errors.Is(with, own) || !errors.Is(with, tool.ErrFailed) || !errors.Is(without, tool.ErrFailed) || len(without.Unwrap()) != 1 {
		t.Errorf("%v wraps %v; %v wraps %v", with, with.Unwrap(), without, without.Unwrap())
	}
}

func TestL11_ObserverPanicIsLogged(t *testing.T) {
	var log bytes.Buffer
	r := &tool.Runner{Log: slog.New(slog.NewTextHandler(&log, nil)), Observe: func(tool.Event) {}}
	do(t, r, mustBox(t, echo("a")), call("1", "a", "{}"))
	if log.Len() > 0 {
		t.Errorf("a quiet observer is logged: %s", &log)
	}
	r.Observe = func(tool.Event) { panic("boom") }
	do(t, r, mustBox(t, echo("a")), call("1", "a", "{}"))
	if !strings.Contains(log.String(), "the observer of tools panicked") || !strings.Contains(log.String(), "boom") {
		t.Errorf("logged: %s", &log)
	}
}

func TestR9_OnlyToolsOfThisProgramReturnNativeResults(t *testing.T) {
	native := json.RawMessage(`{"type":"provider_native_tool_result","format":"anthropic","content":[{"type":"text","text":"native"}]}`)
	data := func(context.Context, tool.Input) (tool.Output, error) {
		return tool.Output{Content: []dragoman.Part{&dragoman.Data{JSON: native}}}, nil
	}
	set := func(f func(*tool.Settings)) tool.Option { return tool.Set(f) }
	spec := dragoman.ToolSpec{Name: "f", Parameters: json.RawMessage(`{"type":"object"}`)}
	local := tool.New("f", "", func(context.Context, struct{}) (tool.Output, error) { return data(nil, tool.Input{}) })
	for name, tc := range map[string]struct {
		tool tool.Tool
		want bool
	}{
		"a tool of this program":        {local, true},
		"a remote tool":                 {tool.Remote(spec, data), false},
		"a remote tool that is trusted": {tool.Remote(spec, data, set(func(s *tool.Settings) { s.Trusted = true })), true},
		"a tool of an MCP server": {tool.New("f", "", func(context.Context, struct{}) (tool.Output, error) { return data(nil, tool.Input{}) },
			set(func(s *tool.Settings) { s.Source = codes.FromMCP })), false},
	} {
		res, _ := do(t, &tool.Runner{Approver: answer(tool.Answer{Verdict: tool.Approved})}, mustBox(t, tc.tool), call("1", "f", "{}"))
		if got := res.Envelope != nil; got != tc.want {
			t.Errorf("%s: envelope %t, want %t: %s", name, got, tc.want, res.Text())
		}
	}
}

func TestT13_NoOutcomesWithoutAStore(t *testing.T) {
	for _, r := range []*tool.Runner{{}, {Tickets: &tool.Tickets{}}} {
		ms, _, err := r.Start("run").Outcomes(t.Context(), mustBox(t))
		if err != nil || len(ms) != 0 {
			t.Errorf("%v, %v", ms, err)
		}
		if ms, err := r.Start("run").Deliver(t.Context(), mustBox(t)); err != nil || len(ms) != 0 {
			t.Errorf("Deliver: %v, %v", ms, err)
		}
	}
}

func TestT13_OutcomeIsDeliveredWhenTaken(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	store := &tool.MemoryTickets{}
	tickets := &tool.Tickets{Store: store, Now: func() time.Time { return now }}
	var ticket *tool.Ticket
	work := tool.New("work", "", func(ctx context.Context, _ struct{}) (tool.Output, error) {
		var err error
		if _, err := tool.Background(ctx, 0); !errors.Is(err, tool.ErrNoTicket) {
			t.Errorf("a ticket without a time: %v", err)
		}
		ticket, err = tool.Background(ctx, time.Minute)
		return tool.Output{Ticket: ticket}, err
	})
	r := &tool.Runner{Tickets: tickets}
	box := mustBox(t, work)
	do(t, r, box, call("1", "work", "{}"))
	run := r.Start("run")
	if ms, _, err := run.Outcomes(t.Context(), box); err != nil || len(ms) != 0 {
		t.Fatalf("an open ticket: %v, %v", ms, err)
	}
	now = ticket.Expires
	if ms, _, err := run.Outcomes(t.Context(), box); err != nil || len(ms) != 0 {
		t.Fatalf("at the end of its time: %v, %v", ms, err)
	}
	now = ticket.Expires.Add(time.Nanosecond)
	for range 2 { // not delivered until taken is called
		ms, _, err := run.Outcomes(t.Context(), box)
		if err != nil || len(ms) != 1 || !strings.Contains(ms[0].Text(), "expired") {
			t.Fatalf("an expired ticket: %v, %v", ms, err)
		}
	}
	_, taken, err := run.Outcomes(t.Context(), box)
	if err == nil {
		err = taken(t.Context())
	}
	if ms, _, _ := run.Outcomes(t.Context(), box); err != nil || len(ms) != 0 {
		t.Errorf("a ticket that was taken: %v, %v", ms, err)
	}
}

func TestA7_RejectionWithoutApproverIsExplained(t *testing.T) {
	for message, want := range map[string]string{
		"":         "f did not run: it needs approval (required by the tool), and no approver is attached to this run",
		"use --ok": "f did not run: it needs approval, and no approver is attached: use --ok",
	} {
		box := mustBox(t, echo("f", tool.NeedsApproval()))
		res, _ := do(t, &tool.Runner{Approver: answer(tool.Answer{Verdict: tool.Rejected, NoApprover: true, Message: message})}, box, call("1", "f", "{}"))
		if res.Text() != want {
			t.Errorf("%q, want %q", res.Text(), want)
		}
	}
}

// Null values of optional arguments are dropped only if the schema is strict.
func TestT4_NullsAreOmittedOnlyForStrictSchemas(t *testing.T) {
	const schema = `{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`
	for strict, kind := range map[string]tool.ErrorKind{codes.StrictOff: tool.ErrorArguments, codes.StrictOn: "", codes.StrictAuto: ""} {
		box := mustBox(t, argumentsTool(schema, toolopt.Strict(strict)))
		res, rec := do(t, &tool.Runner{}, box, call("1", "f", `{"a":null}`))
		if rec.ErrorKind != kind {
			t.Errorf("strict %q: %q: %s", strict, rec.ErrorKind, res.Text())
		}
	}
}

// The schema of a server says that such an argument must be left out (SEP-2243 of MCP).
func TestT4_NullsOfOptionalArgumentsAreOmittedForRemoteTools(t *testing.T) {
	var got string
	spec := dragoman.ToolSpec{Name: "f", Parameters: []byte(`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":["string","null"]}},"required":["b"]}`)}
	box := mustBox(t, tool.Remote(spec, func(_ context.Context, in tool.Input) (tool.Output, error) {
		got = string(in.Arguments)
		return tool.Output{}, nil
	}))
	if res, _ := do(t, &tool.Runner{}, box, call("1", "f", `{"a":null,"b":null}`)); got != `{"b":null}` {
		t.Errorf("arguments %s: %s", got, res.Text())
	}
}

// cancelingArgument is an argument whose decoder cancels the run.
type cancelingArgument struct{ Name string }

var cancelRun func()

func (l *cancelingArgument) UnmarshalJSON([]byte) error {
	cancelRun()
	return errors.New("it has ended")
}

func TestL12_CancelDuringDecodingIsACancellation(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancelRun = cancel
	box := mustBox(t, tool.New("f", "", func(context.Context, struct {
		L cancelingArgument `json:"l"`
	},
	) (string, error) {
		return "", nil
	}))
	b, err := (&tool.Runner{}).Start("run").Do(ctx, box, tool.Turn{Number: 1, Calls: []*dragoman.ToolCall{call("1", "f", `{"l":{"Name":"x"}}`)}})
	if len(b.Records) != 1 || b.Records[0].ErrorKind != tool.ErrorCanceled {
		t.Errorf("%+v, %v", b.Records, err)
	}
}

func TestT4_ArgumentErrorWithoutSchema(t *testing.T) {
	box := mustBox(t, tool.Remote(dragoman.ToolSpec{Name: "f"}, func(context.Context, tool.Input) (tool.Output, error) { return tool.Output{}, nil }))
	res, rec := do(t, &tool.Runner{}, box, call("1", "f", `[1]`))
	wantKind(t, res, rec, tool.ErrorArguments)
	if strings.Contains(res.Text(), "Expected") {
		t.Errorf("%s", res.Text())
	}
}

// A remote tool whose definition has no schema cannot be validated, so calls need approval.
func TestA1_RemoteToolWithoutSchemaNeedsApproval(t *testing.T) {
	for source, pending := range map[string]int{`{"name":"tree","needs":"water"}`: 0, `{"name":"tree"}`: 1} {
		box := mustBox(t, withSource(dragoman.ToolSpec{}, source))
		b, err := (&tool.Runner{}).Start("run").Do(t.Context(), box, tool.Turn{Number: 1, Calls: []*dragoman.ToolCall{{ID: "1", Namespace: "leaves", Name: "tree", Arguments: "{}"}}})
		if err != nil || len(b.Pending) != pending {
			t.Errorf("%s: %d pending, want %d: %+v, %v", source, len(b.Pending), pending, b.Records, err)
		}
	}
}

func TestT1_ErrorNamesTheBadProperty(t *testing.T) {
	_, err := tool.NewBox(argumentsTool(`{"type":"object","properties":{"good":{},"b\u0007d":{}}}`))
	if err == nil || !strings.Contains(err.Error(), "the name of a property") {
		t.Errorf("%v", err)
	}
}

// Middleware of the tool and of the toolbox adds its own time to the timeout of the tool.
func TestT6_MiddlewareExtendsTheToolTimeout(t *testing.T) {
	slow := func(d time.Duration) tool.Middleware {
		return func(next tool.Handler) tool.Handler {
			return func(ctx context.Context, in tool.Input) (tool.Output, error) {
				select {
				case <-time.After(d):
				case <-ctx.Done():
					return tool.Output{}, ctx.Err()
				}
				return next(ctx, in)
			}
		}
	}
	for _, tc := range []struct {
		name       string
		outer, own []time.Duration // duration of each middleware
		ok         bool
	}{
		{"of the toolbox", []time.Duration{2500 * time.Millisecond}, nil, true},
		{"of the toolbox, too slow", []time.Duration{4 * time.Second}, nil, false},
		{"two of the toolbox", []time.Duration{2 * time.Second, 2500 * time.Millisecond}, nil, true},
		{"of the tool", nil, []time.Duration{2500 * time.Millisecond}, true},
		{"of the tool, too slow", nil, []time.Duration{4 * time.Second}, false},
		{"of both", []time.Duration{2 * time.Second}, []time.Duration{2500 * time.Millisecond}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var outer, own tool.Hooks
				outer.Timeout, own.Timeout = 2*time.Second, 2*time.Second
				for _, d := range tc.outer {
					outer.Use = append(outer.Use, slow(d))
				}
				for _, d := range tc.own {
					own.Use = append(own.Use, slow(d))
				}
				box, err := tool.Config{Hooks: outer}.Box(echo("f", tool.Set(func(s *tool.Settings) { s.Timeout, s.Hooks = time.Second, own })))
				if err != nil {
					t.Fatal(err)
				}
				_, rec := do(t, &tool.Runner{}, box, call("1", "f", "{}"))
				if rec.OK != tc.ok {
					t.Errorf("ok %t, %q: %s", rec.OK, rec.ErrorKind, rec.Error)
				}
			})
		})
	}
}

func TestT8_TextAtTheLimitIsNotStored(t *testing.T) {
	store := &countingSpill{}
	box := mustBox(t, returnTool(strings.Repeat("ä", 10), limits(tool.Limits{Chars: 10})))
	res, _ := do(t, &tool.Runner{Spill: store}, box, call("1", "f", "{}"))
	if store.puts != 0 || !strings.Contains(res.Text(), strings.Repeat("ä", 10)) {
		t.Errorf("%d are stored: %s", store.puts, res.Text())
	}
}

type countingSpill struct {
	tool.MemorySpill
	puts int
}

func (s *countingSpill) Put(ctx context.Context, of tool.CallRef, part int, content string) (string, error) {
	s.puts++
	return s.MemorySpill.Put(ctx, of, part, content)
}

func TestT5_NilOutputIsEmpty(t *testing.T) {
	box := mustBox(t, tool.New("f", "", func(context.Context, struct{}) (*tool.Output, error) { return nil, nil }))
	res, rec := do(t, &tool.Runner{}, box, call("1", "f", "{}"))
	wantKind(t, res, rec, "")
}

// ownKind is a custom tool type whose definition is in a made-up format.
type ownKind struct {
	spec    dragoman.ToolSpec
	accepts []dragoman.Format
}

func (o ownKind) Spec() *dragoman.ToolSpec { return &o.spec }

func (o ownKind) Call(context.Context, tool.Input) (tool.Output, error) { return tool.Output{}, nil }

func (o ownKind) Contribution() dragoman.Contribution {
	return dragoman.Contribution{Schemas: []dragoman.SchemaAccessor{leaf{}}, Accepts: o.accepts}
}

func TestR10_CustomToolTypeIsReadFromItsSource(t *testing.T) {
	own := ownKind{spec: dragoman.ToolSpec{Source: &dragoman.ToolSource{Format: leafFormat, JSON: json.RawMessage(`{"name":"tree","needs":"water"}`)}}}
	specs := mustBox(t, own).Specs()
	if len(specs) != 1 || specs[0].Name != "tree" || !strings.Contains(string(specs[0].Parameters), "water") {
		t.Errorf("%+v", specs)
	}
	own.accepts = []dragoman.Format{leafFormat}
	if _, err := tool.NewBox(own); !errors.Is(err, tool.ErrDefinition) || !strings.Contains(err.Error(), "accepts the format") {
		t.Errorf("a tool that says what providers accept: %v", err)
	}
}

// hungStore is a store that returns only when its context ends.
type hungStore struct{ tool.MemorySpill }

func (*hungStore) Put(ctx context.Context, _ tool.CallRef, _ int, _ string) (string, error) {
	<-ctx.Done()
	return "", ctx.Err()
}

func TestT8_HungSpillStoreTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box := mustBox(t, returnTool(strings.Repeat("x", 100), limits(tool.Limits{Chars: 10})))
		began := time.Now()
		res, rec := do(t, &tool.Runner{Spill: &hungStore{}}, box, call("1", "f", "{}"))
		wantKind(t, res, rec, "")
		if took := time.Since(began); took != 30*time.Second {
			t.Errorf("it took %v, want 30 s", took)
		}
	})
}

func TestR9_FailedResultMayBeNative(t *testing.T) {
	native := json.RawMessage(`{"type":"provider_native_tool_result","format":"anthropic","content":[{"type":"text","text":"native"}]}`)
	box := mustBox(t, tool.New("f", "", func(context.Context, struct{}) (tool.Output, error) {
		return tool.Output{Failed: true, Content: []dragoman.Part{&dragoman.Data{JSON: native}}}, nil
	}))
	res, rec := do(t, &tool.Runner{}, box, call("1", "f", "{}"))
	wantKind(t, res, rec, tool.ErrorFailed)
	if res.Envelope == nil {
		t.Errorf("no envelope: %s", res.Text())
	}
}

// middleware returns middleware that runs f in place of the tool.
func middleware(f func(ctx context.Context, in tool.Input, next tool.Handler) (tool.Output, error)) tool.Middleware {
	return func(next tool.Handler) tool.Handler {
		return func(ctx context.Context, in tool.Input) (tool.Output, error) { return f(ctx, in, next) }
	}
}

func TestT6_ImmediateMiddlewareRunsOnTheCallersGoroutine(t *testing.T) {
	for _, tc := range []struct {
		name          string
		outer, own    bool // whether there is middleware
		outerI, ownI  bool // whether it is immediate
		toolI, placed bool
	}{
		{"immediate middleware of the tool alone", false, true, false, true, true, true},
		{"immediate middleware of the toolbox alone", true, false, true, false, true, true},
		{"both, and the toolbox's is not immediate", true, true, false, true, true, false},
		{"both, and the tool's is not immediate", true, true, true, false, true, false},
		{"middleware of the toolbox alone, not immediate", true, false, false, true, true, false},
		{"middleware of the tool alone, not immediate", false, true, true, false, true, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			placed := false
			use := []tool.Middleware{middleware(func(ctx context.Context, in tool.Input, next tool.Handler) (tool.Output, error) {
				placed = onTestGoroutine()
				return next(ctx, in)
			})}
			outer, own := tool.Hooks{Immediate: tc.outerI}, tool.Hooks{Immediate: tc.ownI}
			if tc.outer {
				outer.Use = use
			}
			if tc.own {
				own.Use = use
			}
			box, err := tool.Config{Hooks: outer}.Box(echo("f", tool.Set(func(s *tool.Settings) { s.Immediate, s.Hooks = tc.toolI, own })))
			if err != nil {
				t.Fatal(err)
			}
			res, rec := do(t, &tool.Runner{}, box, call("1", "f", "{}"))
			if wantKind(t, res, rec, ""); placed != tc.placed {
				t.Errorf("in place: %t, want %t", placed, tc.placed)
			}
		})
	}
}

func TestT6_ToolWithoutMiddlewareUsesOneGoroutine(t *testing.T) {
	started := 0
	r := &tool.Runner{Go: func(task func()) { started++; go task() }}
	res, rec := do(t, r, mustBox(t, echo("f")), call("1", "f", "{}"))
	if wantKind(t, res, rec, ""); started != 1 {
		t.Errorf("%d goroutines, want 1", started)
	}
}

// hungJournal is a journal whose End returns only when its context ends.
type hungJournal struct{ onceJournal }

func (*hungJournal) End(ctx context.Context, _ tool.Intent, _ *dragoman.ToolResult) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestL14_HungJournalTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		b, err := (&tool.Runner{Journal: &hungJournal{}}).Start("r").Do(t.Context(), mustBox(t, echo("f")), turn(1, call("1", "f", `{"text":"x"}`)))
		if !errors.Is(err, tool.ErrJournal) || len(b.Results) != 1 || withoutFence(t, b.Results[0].Text()) != "x" {
			t.Errorf("%v: %+v", err, b)
		}
		if took := time.Since(began); took != 30*time.Second {
			t.Errorf("it took %v, want 30 s", took)
		}
	})
}

func TestT8_ToolWithoutLimitsUsesToolboxLimits(t *testing.T) {
	long := strings.Repeat("x", 100)
	for name, tc := range map[string]struct {
		own tool.Limits
		cut int
	}{
		"none":        {tool.Limits{}, 80},
		"of the tool": {tool.Limits{Chars: 50}, 50},
		"other ones":  {tool.Limits{Items: 3}, 80},
	} {
		box, err := tool.Config{Limits: tool.Limits{Chars: 20}}.Box(returnTool(long, limits(tc.own)))
		if err != nil {
			t.Fatal(err)
		}
		_, rec := do(t, &tool.Runner{Limits: tool.Limits{Chars: 10}}, box, call("1", "f", "{}"))
		if rec.Cut == nil || rec.Cut.Characters != tc.cut {
			t.Errorf("limits: %s: cut %+v, want %d characters", name, rec.Cut, tc.cut)
		}
	}
}

func TestT7_RecordHasTheInputHash(t *testing.T) {
	want := tool.Input{Arguments: json.RawMessage(`{"text":"x"}`)}.Hash()
	for name, r := range map[string]*tool.Runner{
		"ran": {},
		"denied": {Policy: policyFunc(func(context.Context, *tool.Question) (tool.Decision, error) {
			return tool.Decision{Effect: tool.Deny}, nil
		})},
	} {
		if _, rec := do(t, r, mustBox(t, echo("f")), call("1", "f", `{"text":"x"}`)); rec.Arguments != want {
			t.Errorf("%s: %x", name, rec.Arguments)
		}
	}
}

func TestT7_RecordHasTheErrorThatStoppedTheCall(t *testing.T) {
	own := errors.New("its own error")
	fails := policyFunc(func(context.Context, *tool.Question) (tool.Decision, error) { return tool.Decision{}, own })
	refuses := toolopt.Pre(func(context.Context, tool.Input) (tool.Input, error) { return tool.Input{}, own })
	var discard bytes.Buffer
	for name, tc := range map[string]struct {
		r    *tool.Runner
		opts []tool.Option
	}{
		"a policy that fails":             {&tool.Runner{Policy: fails}, nil},
		"a hook that refuses":             {&tool.Runner{}, []tool.Option{refuses}},
		"a hook that refuses, with a log": {&tool.Runner{Log: slog.New(slog.NewTextHandler(&discard, nil))}, []tool.Option{refuses}},
	} {
		res, rec := do(t, tc.r, mustBox(t, echo("f", tc.opts...)), call("1", "f", "{}"))
		if wantKind(t, res, rec, tool.ErrorDenied); !errors.Is(rec.Cause, own) {
			t.Errorf("%s: the cause is %v", name, rec.Cause)
		}
	}
}

// If the approval function of a tool fails, a human is asked. If the run is canceled then, the
// error of the function is the cause in the record.
func TestT7_CanceledCallKeepsItsInternalError(t *testing.T) {
	own := errors.New("its own error")
	ctx, cancel := context.WithCancel(t.Context())
	box := mustBox(t, echo("f", tool.Set(func(s *tool.Settings) {
		s.ApprovalFor = func(context.Context, tool.Input) (bool, error) { cancel(); return false, own }
	})))
	b, err := (&tool.Runner{Go: func(task func()) { task() }}).Start("r").Do(ctx, box, turn(1, call("1", "f", "{}")))
	if err != nil || b.Records[0].ErrorKind != tool.ErrorCanceled || !errors.Is(b.Records[0].Cause, own) {
		t.Errorf("%v: %+v", err, b.Records)
	}
}

func TestI5_DuplicateCallIDsAreFoundInShortAndLongTurns(t *testing.T) {
	for _, n := range []int{2, 8, 9, 20} {
		calls := make([]*dragoman.ToolCall, n)
		for i := range calls {
			calls[i] = call(fmt.Sprint("c", i), "f", "{}")
		}
		last := calls[n-1]
		given := last.ResultText("from before")
		b, err := (&tool.Runner{}).Start("r").Do(t.Context(), mustBox(t, echo("f")), tool.Turn{Number: 1, Calls: calls, Results: []*dragoman.ToolResult{given}})
		if err != nil || b.Results[n-1] != given || !b.Records[n-1].Replayed || b.Records[0].Replayed {
			t.Errorf("%d calls, and a result of the last: %v: %+v", n, err, b)
		}
		last.ID = "c0"
		if _, err := (&tool.Runner{}).Start("r").Do(t.Context(), mustBox(t, echo("f")), turn(1, calls...)); !errors.Is(err, tool.ErrConflict) {
			t.Errorf("%d calls, two of them with one id: %v", n, err)
		}
	}
}

func TestP3_FailedModelPolicyIsLogged(t *testing.T) {
	var log bytes.Buffer
	fails := policyFunc(func(context.Context, *tool.Question) (tool.Decision, error) {
		return tool.Decision{}, errors.New("no rules")
	})
	for _, r := range []*tool.Runner{{Policy: fails}, {Policy: fails, Log: slog.New(slog.NewTextHandler(&log, nil))}} {
		var denied *tool.DeniedError
		if err := r.Start("r").DecideModel(t.Context(), 1, "m"); !errors.As(err, &denied) {
			t.Errorf("%v", err)
		}
	}
	if !strings.Contains(log.String(), "no rules") {
		t.Errorf("the log is %q", log.String())
	}
}

// ticketStore fails to update tickets once it is full.
type ticketStore struct {
	tool.MemoryTickets
	full bool
}

func (s *ticketStore) Update(ctx context.Context, id string, change func(*tool.StoredTicket) error) error {
	if s.full {
		return errors.New("disk full")
	}
	return s.MemoryTickets.Update(ctx, id, change)
}

func TestT13_EveryOutcomeIsDeliveredOnce(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	store := &ticketStore{}
	tickets := &tool.Tickets{Store: store, Now: func() time.Time { return now }}
	var ids []string
	box := mustBox(t, tool.New("work", "", func(ctx context.Context, _ struct{}) (*tool.Ticket, error) {
		ticket, err := tool.Background(ctx, time.Minute)
		if err == nil {
			ids = append(ids, ticket.ID)
		}
		return ticket, err
	}))
	run := (&tool.Runner{Tickets: tickets}).Start("run")
	for i := range 3 {
		if _, err := run.Do(t.Context(), box, turn(i, call("1", "work", "{}"))); err != nil {
			t.Fatal(err)
		}
	}
	if err := tickets.Resolve(t.Context(), ids[0], tool.Output{Content: []dragoman.Part{&dragoman.Text{Text: "done"}}}); err != nil {
		t.Fatal(err)
	}
	if err := tickets.Fail(t.Context(), ids[1], "no luck"); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Hour) // the last one expires
	ms, taken, err := run.Outcomes(t.Context(), box)
	if err != nil || len(ms) != 3 {
		t.Fatalf("%d outcomes: %v", len(ms), err)
	}
	store.full = true
	if err := taken(t.Context()); err == nil || !strings.Contains(err.Error(), "disk full") {
		t.Errorf("a store that fails: %v", err)
	}
	store.full = false
	if err := taken(t.Context()); err != nil {
		t.Error(err)
	}
	if ms, _, err := run.Outcomes(t.Context(), box); err != nil || len(ms) != 0 {
		t.Errorf("%d outcomes were delivered twice: %v", len(ms), err)
	}
	for i, want := range []string{"resolved", "failed", "expired"} {
		err := store.Update(t.Context(), ids[i], func(s *tool.StoredTicket) error {
			if s.State != want || !s.Delivered {
				t.Errorf("ticket %d is %s, delivered %t, want %s", i, s.State, s.Delivered, want)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// An outcome has the fence and the limits of other outputs of its tool. If the tool is no longer
// in the toolbox, its outcome is fenced.
func TestT13_OutcomesHaveTheFenceAndLimitsOfTheirTool(t *testing.T) {
	for name, tc := range map[string]struct {
		opts          []tool.Option
		gone          bool
		fenced, short bool
	}{
		"a tool":                     {nil, false, true, false},
		"a trusted tool":             {[]tool.Option{trusted}, false, false, false},
		"a trusted tool with limits": {[]tool.Option{trusted, limits(tool.Limits{Chars: 10})}, false, false, true},
		"a tool that is gone":        {[]tool.Option{trusted, limits(tool.Limits{Chars: 10})}, true, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			tickets := &tool.Tickets{Store: &tool.MemoryTickets{}}
			long := strings.Repeat("x", 100)
			box := mustBox(t, tool.New("work", "", func(ctx context.Context, _ struct{}) (*tool.Ticket, error) {
				ticket, err := tool.Background(ctx, time.Minute)
				if err == nil {
					err = tickets.Resolve(ctx, ticket.ID, tool.Output{Content: []dragoman.Part{&dragoman.Text{Text: long}}})
				}
				return ticket, err
			}, tc.opts...))
			run := (&tool.Runner{Tickets: tickets}).Start("run")
			if _, err := run.Do(t.Context(), box, turn(1, call("1", "work", "{}"))); err != nil {
				t.Fatal(err)
			}
			if tc.gone {
				box = mustBox(t)
			}
			ms, err := run.Deliver(t.Context(), box)
			if err != nil || len(ms) != 1 {
				t.Fatalf("%d outcomes: %v", len(ms), err)
			}
			text := ms[0].Text()
			if fenced := strings.Contains(text, "<<<"); fenced != tc.fenced {
				t.Errorf("fenced: %t, want %t: %s", fenced, tc.fenced, text)
			}
			if short := !strings.Contains(text, long); short != tc.short {
				t.Errorf("cut: %t, want %t: %s", short, tc.short, text)
			}
		})
	}
}

// An outcome can be delivered before there is a toolbox.
func TestT13_OutcomesNeedNoToolbox(t *testing.T) {
	tickets := &tool.Tickets{Store: &tool.MemoryTickets{}}
	box := mustBox(t, tool.New("work", "", func(ctx context.Context, _ struct{}) (*tool.Ticket, error) {
		ticket, err := tool.Background(ctx, time.Minute)
		if err == nil {
			err = tickets.Fail(ctx, ticket.ID, "no luck")
		}
		return ticket, err
	}))
	run := (&tool.Runner{Tickets: tickets}).Start("run")
	if _, err := run.Do(t.Context(), box, turn(1, call("1", "work", "{}"))); err != nil {
		t.Fatal(err)
	}
	if ms, err := run.Deliver(t.Context(), nil); err != nil || len(ms) != 1 || !strings.Contains(ms[0].Text(), "no luck") {
		t.Errorf("%v: %v", err, ms)
	}
}

// In a turn that is handed in again, a human may have changed the arguments of a call that was
// begun. Without an approval, other arguments are a conflict.
func TestL14_ApprovedCallMayHaveOtherArguments(t *testing.T) {
	edited := tool.Input{Arguments: json.RawMessage(`{"text":"by the user"}`)}
	done := call("1", "f", "{}").ResultText("from before")
	for _, tc := range []struct {
		name            string
		again, approved bool
		result          *dragoman.ToolResult
		kind            tool.ErrorKind
		err             error
	}{
		{"approved, and the result is known", true, true, done, "", nil},
		{"approved, and the result is not known", true, true, nil, tool.ErrorUncertain, nil},
		{"not approved", true, false, done, tool.ErrorUncertain, tool.ErrConflict},
		{"not handed in again", false, true, done, tool.ErrorUncertain, tool.ErrConflict},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var opts []tool.Option
			if tc.approved {
				opts = append(opts, tool.NeedsApproval())
			}
			r := &tool.Runner{
				Journal:  &onceJournal{prior: tool.Prior{Attempts: 1, Arguments: tool.Input{Arguments: json.RawMessage(`{"text":"of the model"}`)}.Hash(), Result: tc.result}},
				Approver: answer(tool.Answer{Verdict: tool.Approved, Edited: &edited}),
			}
			in := turn(1, call("1", "f", `{"text":"other"}`))
			in.MayHaveRun = tc.again
			b, err := r.Start("r").Do(t.Context(), mustBox(t, echo("f", opts...)), in)
			if !errors.Is(err, tc.err) || len(b.Records) != 1 || b.Records[0].ErrorKind != tc.kind || b.Records[0].Executed {
				t.Fatalf("%v: %+v", err, b.Records)
			}
			if tc.kind == "" && b.Results[0] != done {
				t.Errorf("%s", b.Results[0].Text())
			}
		})
	}
}

func TestA6_MiddlewareCannotEndASuspendedCall(t *testing.T) {
	ran := 0
	waits := tool.New("wait", "", func(context.Context, struct{}) (string, error) {
		ran++
		return "", &tool.Suspended{State: json.RawMessage(`1`)}
	}, toolopt.Use(middleware(func(ctx context.Context, in tool.Input, next tool.Handler) (tool.Output, error) {
		for range 3 {
			if out, err := next(ctx, in); err == nil {
				return out, nil
			}
		}
		return tool.Output{Content: []dragoman.Part{&dragoman.Text{Text: "given up"}}}, nil
	})))
	b, err := (&tool.Runner{}).Start("r").Do(t.Context(), mustBox(t, waits), turn(1, call("1", "wait", "{}")))
	if err != nil || len(b.Pending) != 1 || string(b.Pending[0].State) != "1" || b.Results[0] != nil || ran != 1 {
		t.Errorf("%v, ran %d times: %+v", err, ran, b)
	}
}

// Post-hooks see the output of a call once, when the call has one.
func TestA6_PostHooksDoNotSeeASuspendedCall(t *testing.T) {
	seen := 0
	waits := tool.New("wait", "", func(ctx context.Context, _ struct{}) (string, error) {
		if _, again := tool.Resumed(ctx); again {
			return "done", nil
		}
		return "", &tool.Suspended{State: json.RawMessage(`1`)}
	}, toolopt.Post(func(_ context.Context, _ tool.Input, out tool.Output) (tool.Output, error) {
		seen++
		return out, nil
	}))
	box, in := mustBox(t, waits), turn(1, call("1", "wait", "{}"))
	b, err := (&tool.Runner{}).Start("r").Do(t.Context(), box, in)
	if err != nil || len(b.Pending) != 1 || seen != 0 {
		t.Fatalf("%v, %d pending, seen %d times", err, len(b.Pending), seen)
	}
	in.Resume = b.Pending
	if b, err = (&tool.Runner{}).Start("r").Do(t.Context(), box, in); err != nil || len(b.Pending) != 0 || seen != 1 {
		t.Errorf("%v: %+v, seen %d times", err, b.Records, seen)
	}
}

// A call that suspends without a state cannot be resumed. Its error is like any other, and
// middleware may retry it.
func TestA6_SuspendingWithoutAStateIsAnError(t *testing.T) {
	ran := 0
	waits := tool.New("wait", "", func(context.Context, struct{}) (string, error) {
		if ran++; ran == 1 {
			return "", &tool.Suspended{}
		}
		return "done", nil
	}, toolopt.Use(middleware(func(ctx context.Context, in tool.Input, next tool.Handler) (tool.Output, error) {
		if out, err := next(ctx, in); err == nil {
			return out, nil
		}
		return next(ctx, in)
	})))
	res, rec := do(t, &tool.Runner{}, mustBox(t, waits), call("1", "wait", "{}"))
	if wantKind(t, res, rec, ""); ran != 2 || withoutFence(t, res.Text()) != "done" {
		t.Errorf("ran %d times: %s", ran, res.Text())
	}
}

func TestT12_RaisedErrorWrapsTheErrorOfTheTool(t *testing.T) {
	own := errors.New("its own error")
	fails := tool.New("fails", "", func(context.Context, struct{}) (string, error) { return "", own })
	post := toolopt.Post(func(context.Context, tool.Input, tool.Output) (tool.Output, error) { return tool.Output{}, own })
	box := mustBox(t, echo("works"), echo("hook", post), fails)
	for name, raised := range map[string]bool{"works": false, "unknown": false, "fails": true, "hook": true} {
		b, err := (&tool.Runner{RaiseOnError: true}).Start("r").Do(t.Context(), box, turn(1, call("1", name, "{}")))
		var call *tool.CallError
		if got := errors.As(err, &call) && errors.Is(err, own); got != raised || len(b.Results) != 1 || b.Results[0] == nil {
			t.Errorf("%s: %v: %+v", name, err, b)
		}
	}
}

func TestT14_RunsMayShareSecretsToHide(t *testing.T) {
	secrets := map[string]string{"a": "hunter2-correct", "b": "battery-staple9"}
	r := &tool.Runner{Secrets: func(_ context.Context, name string) (string, error) { return secrets[name], nil }}
	box := mustBox(t,
		tool.New("get", "", func(ctx context.Context, in city) (string, error) {
			_, err := tool.Secret(ctx, in.Name)
			return "", err
		}),
		tool.New("tell", "", func(context.Context, struct{}) (string, error) { return secrets["a"] + " " + secrets["b"], nil }))
	first, second := r.Start("1"), r.Start("2")
	get := func(run *tool.Run, name string) {
		t.Helper()
		if _, err := run.Do(t.Context(), box, turn(1, call("1", "get", `{"name":"`+name+`"}`))); err != nil {
			t.Fatal(err)
		}
	}
	tell := func(run *tool.Run, number int) string {
		t.Helper()
		b, err := run.Do(t.Context(), box, turn(number, call("1", "tell", "{}")))
		if err != nil {
			t.Fatal(err)
		}
		return withoutFence(t, b.Results[0].Text())
	}
	get(first, "a")
	if got := tell(second, 2); got != "hunter2-correct battery-staple9" {
		t.Errorf("a run that shares no secrets: %s", got)
	}
	first.HideSecretsOf(second)
	first.HideSecretsOf(second) // the second time changes nothing
	get(second, "b")
	for _, run := range []*tool.Run{first, second} {
		if got := tell(run, 3); got != "[redacted]"+" "+"[redacted]" {
			t.Errorf("run %s: %s", run.ID, got)
		}
	}
}

// An approval request describes how its tool changed while the call was pending, and the next
// request describes it again.
func TestA4_ApprovalRequestDescribesChangeOfItsTool(t *testing.T) {
	define := func(description string) *tool.Box {
		return mustBox(t, tool.New("pay", description, func(context.Context, struct{}) (string, error) { return "paid", nil }, tool.NeedsApproval()))
	}
	resume := func(box *tool.Box, p tool.Pending) tool.Pending {
		t.Helper()
		in := turn(1, call("1", "pay", "{}"))
		if p.Binding.CallID != "" {
			in.Resume = []tool.Pending{p}
		}
		b, err := (&tool.Runner{}).Start("r").Do(t.Context(), box, in)
		if err != nil || len(b.Pending) != 1 {
			t.Fatalf("%v: %+v", err, b)
		}
		return b.Pending[0]
	}
	before, after := define("Pays once."), define("Pays twice.")
	asked := resume(before, tool.Pending{})
	if same := resume(before, asked); same.Changed != nil {
		t.Errorf("the tool did not change: %+v", same.Changed)
	}
	changed := resume(after, asked)
	c := changed.Changed
	if c == nil || c.Kind != codes.ChangedWhilePending || c.Tool != "pay" || len(c.Fields) != 1 || c.Fields[0].Field != "description" ||
		string(c.Fields[0].Old) != `"Pays once."` || string(c.Fields[0].New) != `"Pays twice."` {
		t.Fatalf("%+v", c)
	}
	if want := "pay changed since approval was requested: description"; c.String() != want || !strings.HasPrefix(changed.Reason, want+"; ") {
		t.Errorf("%q, %q", c, changed.Reason)
	}
	again := resume(after, changed)
	if again.Changed == nil || len(again.Changed.Fields) != 1 || again.Reason != changed.Reason {
		t.Errorf("asked again: %+v, %q", again.Changed, again.Reason)
	}
	asked.Definition = nil // from an earlier version
	if c := resume(after, asked).Changed; c == nil || c.Fields != nil || c.String() != "pay changed since approval was requested" {
		t.Errorf("a definition that is not known: %+v", c)
	}
	pinned := asked
	pinned.Changed = &tool.PinChange{Tool: "pay", Kind: "new"}
	if c := resume(before, pinned).Changed; c != nil {
		t.Errorf("a change from a pin that is not checked any more: %+v", c)
	}
}

// wrapper is an error with a text of its own.
type wrapper struct {
	text string
	in   []error
}

func (w wrapper) Error() string   { return w.text }
func (w wrapper) Unwrap() []error { return w.in }

// wrapsNothing has an Unwrap method that returns nil.
type wrapsNothing struct{ error }

func (wrapsNothing) Unwrap() error { return nil }

func TestT7_ModelTextHasNoCause(t *testing.T) {
	failed := func(name string) error {
		return &tool.CallError{Record: tool.Record{Tool: name, Error: "an internal error", Cause: errors.New("value of " + name)}}
	}
	safe := tool.ErrFailed.Error() + ": a: an internal error"
	public := &tool.CallError{Record: tool.Record{Tool: "a", Error: "value of a", Cause: errors.New("value of a")}}
	quotes := &tool.CallError{Record: tool.Record{Tool: "a", Error: "an internal error", Cause: errors.New(`value "of" a`)}}
	nested := &tool.CallError{Record: tool.Record{Tool: "b", Error: "an internal error", Cause: fmt.Errorf("agent: %w", failed("a"))}}
	for _, tc := range []struct {
		name string
		err  error
		want string
	}{
		{"no error", nil, ""},
		{"another error", errors.New("x"), "x"},
		{"a call", failed("a"), safe},
		{"a call that is wrapped", fmt.Errorf("run: %w!", fmt.Errorf("turn: %w", failed("a"))), "run: turn: " + safe + "!"},
		{"two calls", errors.Join(failed("a"), failed("b")), safe + "\n" + strings.Replace(safe, ": a:", ": b:", 1)},
		{"a wrapper with a text of its own", wrapper{"it had value of a", []error{nil, failed("a")}}, "it had an internal error"},
		{"a wrapper that repeats the cause", wrapper{"value of a: " + failed("a").Error(), []error{failed("a")}}, "an internal error: " + safe},
		{"a wrapper that quotes a call", fmt.Errorf("%q: %w", quotes, quotes), fmt.Sprintf("%q: %s", safe+" (cause: an internal error)", safe)},
		{"a wrapper that shows the cause of a cause", wrapper{"it had value of a", []error{nested}}, "it had an internal error"},
		{"a call, and another that it caused", errors.Join(failed("a"), nested), safe + "\n" + strings.Replace(safe, ": a:", ": b:", 1)},
		{"a cause that the message contains", fmt.Errorf("run: %w", public), "run: " + tool.ErrFailed.Error() + ": a: value of a"},
		{"an error that wraps nil", wrapsNothing{errors.New("x")}, "x"},
		{"a wrapper around a nil call error", wrapper{"x", []error{(*tool.CallError)(nil)}}, "x"},
	} {
		if got := tool.ModelText(tc.err); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

// Errors that may contain text of the tool are fenced. Errors of the runner are not.
func TestT9_ErrorsWithTextOfAToolAreFenced(t *testing.T) {
	for name, tc := range map[string]struct {
		f      func() (tool.Output, error)
		kind   tool.ErrorKind
		fenced bool
	}{
		"an error":       {func() (tool.Output, error) { return tool.Output{}, errors.New("words") }, tool.ErrorFailed, true},
		"a wrong output": {func() (tool.Output, error) { return tool.Output{Content: []dragoman.Part{&dragoman.Refusal{}}}, nil }, tool.ErrorOutput, true},
		"a panic":        {func() (tool.Output, error) { panic("words") }, tool.ErrorPanic, false},
	} {
		box := mustBox(t, tool.New("f", "", func(context.Context, struct{}) (tool.Output, error) { return tc.f() }))
		res, rec := do(t, &tool.Runner{}, box, call("1", "f", "{}"))
		if wantKind(t, res, rec, tc.kind); strings.Contains(res.Text(), "<<<") != tc.fenced {
			t.Errorf("%s: %s", name, res.Text())
		}
		if strings.Contains(rec.Plain, "<<<") || rec.Plain == "" {
			t.Errorf("%s: the plain text is %q", name, rec.Plain)
		}
	}
}

func TestT7_RecordOfABlockedCallHasPlainText(t *testing.T) {
	res, rec := do(t, &tool.Runner{}, mustBox(t), call("1", "unknown", "{}"))
	if wantKind(t, res, rec, tool.ErrorUnknownTool); rec.Plain != res.Text() || rec.Plain == "" {
		t.Errorf("the plain text is %q", rec.Plain)
	}
}

// A misspelled setting must not mean the default.
func TestT16_UnknownFailurePolicyIsAnError(t *testing.T) {
	const word = "contniue"
	_, err := tool.NewBox(echo("a", tool.Set(func(s *tool.Settings) { s.Failure = word })))
	if !errors.Is(err, tool.ErrDefinition) || !strings.Contains(err.Error(), word) {
		t.Errorf("tool: %v", err)
	}
	_, err = (&tool.Runner{Failure: word}).Start("r").Do(t.Context(), mustBox(t, echo("a")), tool.Turn{Number: 1, Calls: []*dragoman.ToolCall{call("1", "a", "")}})
	if !errors.Is(err, tool.ErrDefinition) || !strings.Contains(err.Error(), word) {
		t.Errorf("runner: %v", err)
	}
	_, err = tool.Config{Collisions: "wins"}.Box(echo("a"))
	if !errors.Is(err, tool.ErrDefinition) || !strings.Contains(err.Error(), "wins") {
		t.Errorf("toolbox: %v", err)
	}
}
