package agent_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/dialect/all"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/schema"
	"github.com/dragoman-go/dragoman/targets"
	"github.com/dragoman-go/dragoman/tool"
)

type Forecast struct {
	City string   `json:"city"`
	High int      `json:"high" jsonschema:"minimum=-90,maximum=60"`
	Note string   `json:"note,omitempty"`
	Days []string `json:"days,omitempty"`
}

func TestL10_StructuredOutputIsValidatedAndDecoded(t *testing.T) {
	m := model(textResponse("Here it is:\n```json\n{\"city\":\"Oslo\",\"high\":4,\"note\":null,\"days\":null}\n```\nEnjoy."))
	f, res, err := agent.Generate[Forecast](t.Context(), agent.Agent{Model: m}, "forecast")
	if err != nil || !reflect.DeepEqual(f, Forecast{City: "Oslo", High: 4}) || res.Turns != 1 {
		t.Fatalf("%+v %v", f, err)
	}
	out := m.asked[0].Output
	if out == nil || out.Kind != codes.OutputSchema || out.Name != "Forecast" || out.Strict != codes.StrictOff {
		t.Fatalf("%+v", out)
	}
	for _, name := range []string{"openai.strict", "azure.strict", "anthropic.strict", "bedrock.strict"} {
		p, ok := all.Profile(name)
		if !ok {
			t.Fatal(name)
		}
		if bad := schema.Check(out.Schema, p); len(bad) > 0 || !p.Fits(out.Schema) {
			t.Errorf("%v: %v\n%s", p, bad, out.Schema)
		}
	}
}

func TestL10_CorrectionsAreLimited(t *testing.T) {
	m := model(textResponse("four degrees"), textResponse(`{"city":"Oslo","high":400}`), textResponse(`{"city":"Oslo","high":4}`))
	f, res, err := agent.Generate[Forecast](t.Context(), agent.Agent{Model: m}, "forecast")
	if err != nil || f.High != 4 || res.Turns != 3 {
		t.Fatalf("%+v %v", f, err)
	}
	if last := m.asked[2].Messages; !strings.Contains(last[4].Text(), "high") || last[4].Role != dragoman.RoleUser {
		t.Errorf("the model reads\n%s", script(last))
	}
	m = model(textResponse("a"), textResponse("b"), textResponse("c"), textResponse(`{"city":"Oslo","high":4}`))
	f, res, err = agent.Generate[Forecast](t.Context(), agent.Agent{Model: m}, "forecast")
	var invalid *agent.OutputError
	if err != nil && strings.Contains(err.Error(), "Answer with") {
		t.Errorf("the error repeats the requested format: %v", err)
	}
	if !errors.As(err, &invalid) || invalid.Output != "c" || len(m.asked) != 3 || res.Turns != 3 || !reflect.DeepEqual(f, Forecast{}) {
		t.Errorf("%v %+v %+v", err, res, f)
	}
	if _, _, err = agent.Generate[Forecast](t.Context(), agent.Agent{Model: model(textResponse("a")), Limits: agent.Limits{Corrections: -1}}, "x"); !errors.As(err, &invalid) {
		t.Error(err)
	}
}

func TestL10_GenerateSupportsTypesAndTools(t *testing.T) {
	list, _, err := agent.Generate[[]string](t.Context(), agent.Agent{Model: model(textResponse(`{"value":["a","b"]}`))}, "x")
	if err != nil || fmt.Sprint(list) != "[a b]" {
		t.Errorf("%v %v", list, err)
	}
	n, _, err := agent.Generate[int](t.Context(), agent.Agent{Model: model(textResponse(`{"value":7}`))}, "x")
	if err != nil || n != 7 {
		t.Errorf("%v %v", n, err)
	}
	n, _, err = agent.Generate[int](t.Context(), agent.Agent{Model: model(textResponse(`{"value":7.0}`))}, "x")
	if err != nil || n != 7 {
		t.Errorf("%v %v", n, err)
	}
	var did counted
	m := model(calls("a look"), textResponse(`{"city":"Oslo","high":4}`))
	p, _, err := agent.Generate[*Forecast](t.Context(), agent.Agent{Model: m, Tools: []tool.Tool{did.tool("look")}}, "x")
	if err != nil || p.City != "Oslo" || did.String() != "look:" || m.asked[1].Output.Name != "Forecast" {
		t.Errorf("%v %v", p, err)
	}
	if _, _, err := agent.Generate[map[string]int](t.Context(), agent.Agent{Model: model()}, "x"); err == nil || !strings.Contains(err.Error(), "use structs and slices instead of maps") {
		t.Errorf("a map: %v", err)
	}
	late, _, err := agent.Generate[struct {
		City string    `json:"city"`
		At   time.Time `json:"at"`
	}](t.Context(), agent.Agent{Model: model(textResponse(`{"city":"Oslo","at":"noon"}`)), Limits: agent.Limits{Corrections: -1}}, "x")
	if err == nil || late.City != "" {
		t.Errorf("a partial answer was returned: %+v, %v", late, err)
	}
	if _, _, err := agent.Generate[chan int](t.Context(), agent.Agent{Model: model()}, "x"); err == nil {
		t.Error("a channel type was accepted")
	}
	a := agent.Agent{Model: model(textResponse(`{"value":1}`))}
	a.Settings.Output = &dragoman.OutputFormat{Name: "number"}
	if _, _, err := agent.Generate[int](t.Context(), a, "x"); err != nil || a.Model.(*scripted).asked[0].Output.Name != "number" {
		t.Errorf("%v %+v", err, a.Model.(*scripted).asked[0].Output)
	}
}

// shade is a string type that refuses values that its schema allows.
type shade string

func (c *shade) UnmarshalText(b []byte) error {
	if *c = shade(b); *c != "grey" {
		return fmt.Errorf("%s is not a shade", b)
	}
	return nil
}

// An answer that matches its schema but cannot be decoded leaves nothing in the next answer.
func TestL10_FailedDecodeLeavesNothingInNextAnswer(t *testing.T) {
	type plan struct {
		Note  string   `json:"note,omitempty"`
		Days  []string `json:"days,omitempty"`
		Shade shade    `json:"shade"`
	}
	m := model(textResponse(`{"note":"old","days":["old"],"shade":"red"}`), textResponse(`{"note":null,"days":null,"shade":"grey"}`))
	got, _, err := agent.Generate[plan](t.Context(), agent.Agent{Model: m}, "x")
	if err != nil || !reflect.DeepEqual(got, plan{Shade: "grey"}) || len(m.asked) != 2 {
		t.Fatalf("%+v %v", got, err)
	}
	if told := m.asked[1].Messages[2].Text(); !strings.Contains(told, "red is not a shade") {
		t.Errorf("the model reads %q", told)
	}
}

func TestL10_ResumeGenerateContinuesInterruptedRun(t *testing.T) {
	var did counted
	a := agent.Agent{
		Model: model(calls(`a pay {"word":"x"}`), textResponse("all paid"), textResponse(`{"word":"paid"}`)),
		Tools: []tool.Tool{did.tool("pay", tool.NeedsApproval())},
	}
	_, res, err := agent.Generate[word](t.Context(), a, "go")
	if !errors.Is(err, agent.ErrInterrupted) {
		t.Fatal(err)
	}
	out, res, err := agent.ResumeGenerate[word](t.Context(), a, stored(t, res.State), agent.Approve(res.Pending[0]))
	if err != nil || out.Word != "paid" || did.String() != "pay:x" || a.Model.(*scripted).asked[1].Output == nil {
		t.Errorf("%+v %v, ran %q", out, err, did.String())
	}
	m := model()
	a.Model = m
	if out, _, err = agent.ResumeGenerate[word](t.Context(), a, stored(t, res.State)); err != nil || out.Word != "paid" || len(m.asked) != 0 {
		t.Errorf("a run that is over: %+v %v", out, err)
	}
	var bad *agent.OutputError
	if n, _, err := agent.ResumeGenerate[int](t.Context(), a, stored(t, res.State)); !errors.As(err, &bad) || n != 0 {
		t.Errorf("another type: %v %v", n, err)
	}
}

// A model without structured output gets instructions.
func TestL10_ModelWithoutStructuredOutputGetsInstructions(t *testing.T) {
	m := &recording{
		Client: &provider.Client{Codec: openaichat.Codec{}, Model: "m", Capabilities: func(string) targets.Capabilities { return targets.Capabilities{NoStructuredOutput: true} }},
		answer: textResponse(`{"city":"Oslo","high":4}`),
	}
	f, _, err := agent.Generate[Forecast](t.Context(), agent.Agent{Model: m, Instructions: "be kind"}, "x")
	if err != nil || f.City != "Oslo" || m.asked.Output != nil || len(m.asked.Instructions) != 2 {
		t.Fatalf("%v %+v %+v", err, f, m.asked)
	}
	if words := m.asked.Instructions[1].(*dragoman.Text).Text; !strings.Contains(words, `"city"`) || !strings.Contains(words, "JSON") {
		t.Error(words)
	}
}

func TestQuirkF7_JSONIsFoundInFencesTextAndReasoning(t *testing.T) {
	const good = `{"city":"Oslo","high":4}`
	thought := &dragoman.Response{Stop: dragoman.Stop{Reason: dragoman.StopEnd}, Output: []dragoman.Message{{
		Role: dragoman.RoleAssistant, Parts: []dragoman.Part{&dragoman.Reasoning{Text: good}},
	}}}
	for name, answer := range map[string]*dragoman.Response{
		"alone":             textResponse(good),
		"in a fence":        textResponse("```json\n" + good + "\n```"),
		"within text":       textResponse("I think {so} [yes]: " + good + " as you {asked"),
		"said twice":        textResponse(good + "\n" + `{"city":"Rome","high":30}`),
		"after a citation":  textResponse("As [1] and [2, 3] say: " + good),
		"only in reasoning": thought,
	} {
		f, res, err := agent.Generate[Forecast](t.Context(), agent.Agent{Model: model(answer)}, "x")
		if err != nil || f.City != "Oslo" || res.Turns != 1 {
			t.Errorf("%s: %+v %v", name, f, err)
		}
	}
}

func TestL10_SimulatorGeneratesFormats(t *testing.T) {
	type meeting struct {
		When  time.Time  `json:"when"`
		Until *time.Time `json:"until,omitempty"`
		With  []string   `json:"with" jsonschema:"format=email"`
		ID    string     `json:"id" jsonschema:"format=uuid"`
		Day   string     `json:"day" jsonschema:"format=date"`
		Blob  []byte     `json:"blob"`
	}
	for _, prompt := range []string{"Plan a meeting", "Plan a meeting with Ann on 2026-03-04T10:00:00Z", `Plan "lunch" with bob@example.com`} {
		m, res, err := agent.Generate[meeting](t.Context(), agent.Agent{Model: provider.MustOpen("sim/planner")}, prompt)
		if err != nil || res.Turns != 1 || m.When.IsZero() || !strings.Contains(strings.Join(m.With, ""), "@") {
			t.Errorf("%s: %+v %d %v", prompt, m, res.Turns, err)
		}
	}
}

// A type that is a struct in Go and a string in JSON is requested like other scalars.
func TestL10_StructEncodedAsStringIsScalar(t *testing.T) {
	m := model(textResponse(`{"value":"2026-03-01T12:00:00Z"}`))
	at, _, err := agent.Generate[time.Time](t.Context(), agent.Agent{Model: m}, "when")
	if want := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC); err != nil || !at.Equal(want) {
		t.Fatalf("%v %v, want %v", at, err, want)
	}
	p, _, err := agent.Generate[*time.Time](t.Context(), agent.Agent{Model: model(textResponse(`{"value":"2026-03-01T12:00:00Z"}`))}, "when")
	if err != nil || p == nil || !p.Equal(at) {
		t.Errorf("a pointer: %v %v", p, err)
	}
}

func TestErrorNamesTypeWithoutSchema(t *testing.T) {
	_, _, err := agent.Generate[chan int](t.Context(), agent.Agent{Model: model(textResponse("{}"))}, "go")
	if err == nil || !strings.Contains(err.Error(), "the output type chan int") || strings.Contains(err.Error(), "arguments are") {
		t.Errorf("error %v", err)
	}
}
