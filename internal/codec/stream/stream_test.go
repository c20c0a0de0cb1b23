package stream_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/stream"
	"github.com/dragoman-go/dragoman/internal/testkit/gen"
	"pgregory.net/rapid"
)

// record keeps events in order.
type record []dragoman.Event

func (r *record) add(ev dragoman.Event) error { *r = append(*r, ev); return nil }

func TestPartsStartGrowAndEndInOrder(t *testing.T) {
	var got record
	p := stream.Parts{Choice: 2}
	p.Use(got.add)
	header := &dragoman.Message{Role: dragoman.RoleAssistant}
	think := p.Start(0, header, &dragoman.Reasoning{}, &dragoman.Reasoning{ID: "rs_1"})
	text := p.Start(1, nil, &dragoman.Text{}, &dragoman.Text{})
	text.Append("a")
	think.AppendSummary(1, "s")
	text.Append("") // not an event
	think.Append("hm")
	text.Hold("(held)")
	text.Append("b")
	text.Header = &dragoman.Message{Name: "n"}
	text.End()
	text.End()
	text.Append("late")
	text.Hold("late")
	p.Whole(1, nil, &dragoman.Refusal{Text: "no"})
	p.EndAll()
	p.EndAll()
	want := record{
		&dragoman.PartStart{Choice: 2, Index: 0, Message: 0, Part: &dragoman.Reasoning{}, Header: header},
		&dragoman.PartStart{Choice: 2, Index: 1, Message: 1, Part: &dragoman.Text{}},
		&dragoman.PartDelta{Choice: 2, Index: 1, Kind: codes.KindText, Text: "a"},
		&dragoman.PartDelta{Choice: 2, Index: 0, Kind: codes.KindReasoning, Text: "s", Summary: 2},
		&dragoman.PartDelta{Choice: 2, Index: 0, Kind: codes.KindReasoning, Text: "hm"},
		&dragoman.PartDelta{Choice: 2, Index: 1, Kind: codes.KindText, Text: "b"},
		&dragoman.PartEnd{Choice: 2, Index: 1, Part: &dragoman.Text{Text: "a(held)b"}, Header: &dragoman.Message{Name: "n"}},
		&dragoman.PartStart{Choice: 2, Index: 2, Message: 1, Part: &dragoman.Refusal{Text: "no"}},
		&dragoman.PartEnd{Choice: 2, Index: 2, Part: &dragoman.Refusal{Text: "no"}},
		&dragoman.PartEnd{Choice: 2, Index: 0, Part: &dragoman.Reasoning{ID: "rs_1", Text: "hm", Summary: []string{"", "s"}}},
	}
	if d := gen.Diff(want, got); d != "" || p.Err() != nil || p.Count() != 3 || !text.Ended() {
		t.Errorf("%v (-want +got):\n%s", p.Err(), d)
	}
}

func TestQuirkB2_ArgumentsAreEmittedOnceTheyBeginAnObject(t *testing.T) {
	for _, tc := range []struct {
		payload   string
		fragments []string
		emitted   string
	}{
		{codes.PayloadObject, []string{`{"a"`, `:1}`}, `{"a"|:1}`},
		{codes.PayloadObject, []string{" ", "\n", ` {"a"`, `:1}`}, " \n {\"a\"|:1}"},
		{codes.PayloadObject, []string{"nu", "ll"}, ""},
		{codes.PayloadObject, []string{`"{\"a`, `\":1}"`}, ""},
		{codes.PayloadObject, []string{`"`, `{`}, ""}, // the arguments began with a quote
		{codes.PayloadObject, []string{" ", " "}, ""},
		{codes.PayloadText, []string{"nu", "ll"}, "nu|ll"},
	} {
		var got record
		var p stream.Parts
		p.Use(got.add)
		call := p.Start(0, nil, &dragoman.ToolCall{Name: "f"}, &dragoman.ToolCall{Name: "f", Payload: tc.payload})
		for _, f := range tc.fragments {
			call.Append(f)
		}
		var emitted []string
		for _, ev := range got {
			if d, ok := ev.(*dragoman.PartDelta); ok {
				emitted = append(emitted, d.Text)
			}
		}
		if s := strings.Join(emitted, "|"); s != tc.emitted || string(call.Text) != strings.Join(tc.fragments, "") {
			t.Errorf("%q: emitted %q, stored %q", tc.fragments, s, call.Text)
		}
	}
}

func TestFinalTextReplacesFragments(t *testing.T) {
	for _, v := range []dragoman.Part{&dragoman.Text{Text: "final"}, &dragoman.Refusal{Text: "final"}, &dragoman.Reasoning{Text: "final", Summary: []string{"s"}}} {
		var p stream.Parts
		var got record
		p.Use(got.add)
		part := p.Start(0, nil, &dragoman.Text{}, v)
		part.Append("frag")
		part.AppendSummary(0, "frag")
		part.End()
		end := got[len(got)-1].(*dragoman.PartEnd)
		if d := gen.Diff(v, end.Part); d != "" || strings.Contains(fmt.Sprintf("%+v", end.Part), "frag") {
			t.Errorf("%+v: %s", end.Part, d)
		}
	}
}

func TestQuirkC39_EveryStartGetsOneEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var got record
		var p stream.Parts
		p.Use(got.add)
		var open []*stream.Part
		for range rapid.IntRange(0, 30).Draw(t, "steps") {
			switch k := rapid.IntRange(0, 3).Draw(t, "step"); {
			case k == 0 || len(open) == 0:
				open = append(open, p.Start(0, nil, &dragoman.Text{}, &dragoman.Text{}))
			case k == 1:
				open[rapid.IntRange(0, len(open)-1).Draw(t, "which")].End()
			default:
				open[rapid.IntRange(0, len(open)-1).Draw(t, "which")].Append(rapid.StringN(0, 4, -1).Draw(t, "text"))
			}
		}
		p.EndAll()
		// The guarantees of dragoman.Event, checked from the events alone.
		state, text := map[int]string{}, map[int]string{}
		next := 0
		for _, ev := range got {
			switch ev := ev.(type) {
			case *dragoman.PartStart:
				if ev.Index != next {
					t.Fatalf("part %d started after part %d", ev.Index, next-1)
				}
				next++
				state[ev.Index] = "open"
			case *dragoman.PartDelta:
				if state[ev.Index] != "open" || ev.Text == "" {
					t.Fatalf("delta %+v of a part that is %q", ev, state[ev.Index])
				}
				text[ev.Index] += ev.Text
			case *dragoman.PartEnd:
				if state[ev.Index] != "open" || ev.Part.(*dragoman.Text).Text != text[ev.Index] {
					t.Fatalf("end %+v of a part that is %q with %q", ev.Part, state[ev.Index], text[ev.Index])
				}
				state[ev.Index] = "ended"
			}
		}
		for i := range next {
			if state[i] != "ended" {
				t.Fatalf("part %d is %s", i, state[i])
			}
		}
	})
}

func TestFirstEmitErrorStopsTheEvents(t *testing.T) {
	stop := errors.New("stop")
	n := 0
	var p stream.Parts
	p.Use(func(dragoman.Event) error { n++; return stop })
	part := p.Start(0, nil, &dragoman.Text{}, &dragoman.Text{})
	part.Append("kept")
	if n != 1 || !errors.Is(p.Err(), stop) {
		t.Fatalf("%d events, %v", n, p.Err())
	}
	// The next Feed sets another emit function; nothing that arrived is lost.
	var got record
	p.Use(got.add)
	p.EndAll()
	if d := gen.Diff(record{&dragoman.PartEnd{Part: &dragoman.Text{Text: "kept"}}}, got); d != "" || p.Err() != nil {
		t.Errorf("%v (-want +got):\n%s", p.Err(), d)
	}
}

func TestNilPartDoesNothing(t *testing.T) {
	var p *stream.Part
	p.Append("x")
	p.Hold("x")
	p.AppendSummary(0, "x")
	p.End()
	if !p.Ended() {
		t.Error("a nil part is open")
	}
}

func TestQuirkC4_SummaryPositionsAreBounded(t *testing.T) {
	var p stream.Parts
	p.Use(func(dragoman.Event) error { return nil })
	slots := 0
	for range 50 {
		part := p.Start(0, nil, &dragoman.Reasoning{}, &dragoman.Reasoning{})
		for _, n := range []int{-1, stream.MaxParts - 1, stream.MaxParts, 1_000_000_000, 1<<63 - 1} {
			part.AppendSummary(n, "x")
		}
		slots += len(part.Summary)
	}
	if slots > stream.MaxParts {
		t.Errorf("%d summaries for 50 parts", slots)
	}
	// Summaries in order still fit next to a few hostile ones.
	var q stream.Parts
	q.Use(func(dragoman.Event) error { return nil })
	part := q.Start(0, nil, &dragoman.Reasoning{}, &dragoman.Reasoning{})
	part.AppendSummary(1_000_000_000, "x")
	for i := range 100 {
		part.AppendSummary(i, "y")
	}
	if len(part.Summary) != 100 || string(part.Summary[99]) != "y" {
		t.Errorf("%d summaries", len(part.Summary))
	}
}

func TestAppendIsLinear(t *testing.T) {
	total := func(n int) float64 {
		return testing.AllocsPerRun(1, func() {
			var p stream.Parts
			p.Use(func(dragoman.Event) error { return nil })
			part := p.Start(0, nil, &dragoman.Text{}, &dragoman.Text{})
			for range n {
				part.Append("12345678")
			}
			part.End()
		})
	}
	// One event for each fragment, and a buffer that doubles.
	if n := total(100_000); n > 100_000+100 {
		t.Errorf("%v allocations for 100,000 fragments", n)
	}
}
