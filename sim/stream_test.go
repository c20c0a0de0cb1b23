package sim_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/serving"
	"github.com/dragoman-go/dragoman/sim"
)

// models returns all models by name.
func models(t *testing.T) map[string]dragoman.Model {
	out := map[string]dragoman.Model{}
	for _, name := range sim.Names() {
		m, err := sim.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		out[name] = m
	}
	return out
}

func richRequest() *dragoman.Request {
	req := ask("Do I need a coat in Oslo and Bergen? 🧥🧥", toolbox()...)
	req.Reasoning = &dragoman.ReasoningSettings{Effort: "low"}
	return req
}

func TestStreamCollectsToGenerate(t *testing.T) {
	for name, m := range models(t) {
		req := richRequest()
		whole := generate(t, m, req)
		collected, err := dragoman.Collect(m.Stream(context.Background(), req))
		if diff := cmp.Diff(whole, collected); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
}

func TestEventOrderAndFragmentSize(t *testing.T) {
	for name, m := range models(t) {
		var types []string
		texts := map[int]string{}
		for ev, err := range m.Stream(context.Background(), richRequest()) {
			if err != nil {
				t.Fatal(err)
			}
			types = append(types, ev.Type())
			switch ev := ev.(type) {
			case *dragoman.PartDelta:
				if len(ev.Text) > 8 || !utf8.ValidString(ev.Text) {
					t.Errorf("%s: a fragment %q", name, ev.Text)
				}
				texts[ev.Index] += ev.Text
			case *dragoman.PartEnd:
				if want := textOf(ev.Part); texts[ev.Index] != want || want == "" {
					t.Errorf("%s: %q was streamed as %q", name, want, texts[ev.Index])
				}
			}
		}
		if types[0] != "response_start" || types[len(types)-1] != "response_end" {
			t.Errorf("%s: %v", name, types)
		}
	}
}

// textOf returns the text that the deltas of a part add up to.
func textOf(p dragoman.Part) string {
	switch p := p.(type) {
	case *dragoman.Text:
		return p.Text
	case *dragoman.Reasoning:
		return p.Text
	case *dragoman.ToolCall:
		return p.Arguments
	default:
		return ""
	}
}

func TestUsageCountsFourBytesPerToken(t *testing.T) {
	req := &dragoman.Request{Messages: []dragoman.Message{dragoman.UserText("12345")}}
	resp := generate(t, sim.Echo{}, req)
	if resp.Usage.Input != dragoman.Counted(2) || resp.Usage.Output != dragoman.Counted(2) || resp.Text() != "12345" {
		t.Errorf("%+v", resp)
	}
	req.Tools = toolbox()
	n := 0
	for _, tool := range req.Tools {
		n += len(tool.Name) + len(tool.Description) + len(tool.Parameters)
	}
	if got := serving.CountTokens(req); got != int64(5+n+3)/4 {
		t.Errorf("%d", got)
	}
}

func TestPaceDelays(t *testing.T) {
	var waits []time.Duration
	pace := sim.Pace{FirstToken: 3 * time.Second, TokensPerSecond: 4, Wait: func(_ context.Context, d time.Duration) error {
		waits = append(waits, d)
		return nil
	}}
	generate(t, sim.Echo{Settings: sim.Settings{Pace: pace}}, ask("12345678"))
	if want := []time.Duration{3 * time.Second, time.Second / 4, time.Second / 4}; !reflect.DeepEqual(waits, want) {
		t.Errorf("%v, want %v", waits, want)
	}
}

func TestCanceledContextEndsResponse(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	pace := sim.Pace{TokensPerSecond: 0.001} // on the real clock; the context ends first
	seen := 0
	for ev, err := range (sim.Echo{Settings: sim.Settings{Pace: pace}}).Stream(ctx, ask("12345678")) {
		if err != nil {
			if !errors.Is(err, context.Canceled) || ev != nil {
				t.Errorf("%v %v", ev, err)
			}
			break
		}
		if seen++; ev.Type() == "part_start" {
			cancel()
		}
	}
	if seen != 2 || ctx.Err() == nil {
		t.Errorf("%d events", seen)
	}
	if _, err := (sim.Planner{}).Generate(ctx, ask("hi")); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestBreakEndsResponse(t *testing.T) {
	for range (sim.Echo{}).Stream(context.Background(), ask("a long text that comes in many fragments")) {
		break
	}
}

func TestResponseEndsAtLimitAndStopSequence(t *testing.T) {
	two := int64(2)
	req := ask("12345678901234567890")
	req.MaxOutputTokens = &two
	resp := generate(t, sim.Echo{}, req)
	if resp.Text() != "12345678" || resp.Stop.Reason != dragoman.StopLength || resp.Usage.Output != dragoman.Counted(2) {
		t.Errorf("%q %+v", resp.Text(), resp)
	}

	five := int64(5)
	req = ask("What's the weather in Oslo?", toolbox()...)
	req.MaxOutputTokens = &five
	resp = generate(t, sim.Planner{}, req)
	calls := resp.ToolCalls()
	if len(calls) != 1 || calls[0].Arguments != `{"city":"` || calls[0].Problem == nil || calls[0].Problem.Code != codes.ProblemTruncated || calls[0].Status != codes.StatusIncomplete || resp.Stop.Reason != dragoman.StopLength {
		t.Errorf("%+v", resp)
	}

	req = ask("one two three")
	req.Sampling.Stop = []string{"three", " two"}
	resp = generate(t, sim.Echo{}, req)
	if resp.Text() != "one" || resp.Stop.Reason != dragoman.StopSequence || resp.Stop.Sequence != " two" {
		t.Errorf("%q %+v", resp.Text(), resp.Stop)
	}
}

func TestCandidatesAreEqual(t *testing.T) {
	three := int64(3)
	req := ask("hi")
	req.Sampling.Candidates = &three
	resp := generate(t, sim.Echo{}, req)
	if len(resp.Alternatives) != 2 || resp.Alternatives[1].Output[0].Text() != "hi" || resp.Alternatives[1].Stop.Reason != dragoman.StopEnd {
		t.Errorf("%+v", resp)
	}
}

func TestInvalidRequestIsRefused(t *testing.T) {
	for name, m := range models(t) {
		req := &dragoman.Request{Messages: []dragoman.Message{{Role: dragoman.RoleUser, Parts: []dragoman.Part{nil}}}}
		_, err := m.Generate(context.Background(), req)
		var e *dragoman.APIError
		if !errors.As(err, &e) || e.Class != dragoman.ErrorBadRequest || !errors.Is(err, dragoman.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := m.Generate(context.Background(), nil); !errors.Is(err, dragoman.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOpenByName(t *testing.T) {
	for name, want := range map[string]string{
		"planner": "sim.Planner", "sim/planner": "sim.Planner", "sim/echo": "sim.Echo", "echo": "sim.Echo",
		"sim/scenario": "*sim.Scenario", "models/sim/echo": "sim.Echo", "echo?rate=5&first=1s&seed=x": "sim.Echo",
	} {
		m, err := sim.Open(name)
		if err != nil || reflect.TypeOf(m).String() != want {
			t.Errorf("%s: %T %v", name, m, err)
		}
	}
	m, _ := sim.Open("echo?rate=5&first=1s&seed=x")
	if e := m.(sim.Echo); e.Seed != "x" || e.Pace.FirstToken != time.Second || e.Pace.TokensPerSecond != 5 {
		t.Errorf("%+v", e)
	}
	for name, want := range map[string]dragoman.ErrorClass{
		"": dragoman.ErrorNotFound, "gpt-5": dragoman.ErrorNotFound, "sim/": dragoman.ErrorNotFound, "sim/sim/echo": dragoman.ErrorNotFound,
		"echo?rate=fast": dragoman.ErrorBadRequest, "echo?first=-1s": dragoman.ErrorBadRequest, "echo?x=y": dragoman.ErrorBadRequest, "echo?%": dragoman.ErrorBadRequest,
	} {
		_, err := sim.Open(name)
		var e *dragoman.APIError
		if !errors.As(err, &e) || e.Class != want {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestDemoScenario(t *testing.T) {
	m, err := sim.Open("sim/scenario")
	if err != nil {
		t.Fatal(err)
	}
	req := ask("Do I need a coat?", function("get_weather", "", cityOnly))
	resp := generate(t, m, req)
	req.Messages = append(req.Messages, resp.Output...)
	req.Messages = append(req.Messages, dragoman.ToolResults(resp.ToolCalls()[0].ResultText("4 °C")))
	if got := generate(t, m, req).Text(); got != "It is cold enough for a coat." {
		t.Error(got)
	}
	played, _ := sim.ParseScenario("own", "turn\nmatch any\nsay mine")
	m, err = sim.Config{Scenario: played}.Open("scenario")
	if err != nil || generate(t, m, req).Text() != "mine" {
		t.Error(err)
	}
}

func TestResponseMarshalsToJSONAndBack(t *testing.T) {
	resp := generate(t, sim.Planner{}, richRequest())
	raw, err := json.Marshal(resp)
	if err != nil {
		t.Fatal(err)
	}
	var back dragoman.Response
	err = json.Unmarshal(raw, &back)
	if diff := cmp.Diff(resp, &back); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}
