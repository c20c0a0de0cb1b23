package dragoman_test

import (
	"errors"
	"iter"
	"runtime"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/testkit/gen"
	"pgregory.net/rapid"
)

func collect(events ...dragoman.Event) (*dragoman.Response, error) {
	var c dragoman.Collector
	for _, ev := range events {
		c.Add(ev)
	}
	return c.Response()
}

// part is the three events of a whole text part.
func part(choice, index, message int, text string, header *dragoman.Message) []dragoman.Event {
	return []dragoman.Event{
		&dragoman.PartStart{Choice: choice, Index: index, Message: message, Part: &dragoman.Text{}, Header: header},
		&dragoman.PartDelta{Choice: choice, Index: index, Text: text},
		&dragoman.PartEnd{Choice: choice, Index: index, Part: &dragoman.Text{Text: text}},
	}
}

func TestCollectorRebuildsTheStreamedResponse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := gen.Options{}
		want := o.Response().Draw(t, "response")
		// The fields that a stream does not carry.
		want.Error, want.Native = nil, nil
		for i := range want.Alternatives {
			want.Alternatives[i].Extra = nil
		}
		got, err := collect(o.Stream(t, want)...)
		if err != nil {
			t.Fatal(err)
		}
		if d := gen.Diff(want, got); d != "" {
			t.Fatalf("(-want +got):\n%s", d)
		}
	})
}

func TestCollectorReportsBrokenStreams(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		evs := gen.Options{}.Events().Draw(t, "events")
		got, err := collect(evs...)
		if got == nil {
			t.Fatal("no response")
		}
		switch last := evs[len(evs)-1].(type) {
		case *dragoman.ResponseEnd:
			if err != nil {
				t.Fatalf("whole stream: %v", err)
			}
		case *dragoman.StreamError:
			if !errors.Is(err, last.Err) || got.Error != last.Err {
				t.Fatalf("failed stream: %v, want %v", err, last.Err)
			}
		default:
			if !errors.Is(err, dragoman.ErrIncompleteStream) {
				t.Fatalf("broken stream: %v", err)
			}
		}
	})
}

func TestCollectorOrdersPartsByTheirStart(t *testing.T) {
	a, b := part(0, 0, 0, "a", nil), part(0, 1, 0, "b", nil)
	got, err := collect(a[0], b[0], b[1], a[1], b[2], a[2], &dragoman.ResponseEnd{})
	if err != nil || got.Text() != "ab" || len(got.Output) != 1 {
		t.Errorf("%q in %d messages, %v", got.Text(), len(got.Output), err)
	}
}

func TestCollectorSplitsOverlappingMessages(t *testing.T) {
	first := &dragoman.Message{Role: dragoman.RoleAssistant, Phase: "commentary", Parts: []dragoman.Part{&dragoman.Text{Text: "not mine"}}}
	second := &dragoman.Message{Role: dragoman.RoleAssistant, Phase: "final_answer"}
	var evs []dragoman.Event
	evs = append(evs, part(0, 0, 0, "a", first)...)
	evs = append(evs, part(0, 1, 1, "b", second)...)
	evs = append(evs, part(0, 2, 0, "c", nil)...)
	got, err := collect(append(evs, &dragoman.ResponseEnd{})...)
	want := []dragoman.Message{
		{Role: dragoman.RoleAssistant, Phase: "commentary", Parts: []dragoman.Part{&dragoman.Text{Text: "a"}, &dragoman.Text{Text: "c"}}},
		{Role: dragoman.RoleAssistant, Phase: "final_answer", Parts: []dragoman.Part{&dragoman.Text{Text: "b"}}},
	}
	if d := gen.Diff(want, got.Output); err != nil || d != "" {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
}

func TestCollectorKeepsTheHeaderOfAnUnfinishedPart(t *testing.T) {
	header := &dragoman.Message{Role: dragoman.RoleAssistant, Phase: "commentary"}
	evs := append(part(0, 0, 0, "lost", header)[:2], part(0, 1, 0, "kept", nil)...)
	got, err := collect(evs...)
	want := []dragoman.Message{{Role: dragoman.RoleAssistant, Phase: "commentary", Parts: []dragoman.Part{&dragoman.Text{Text: "kept"}}}}
	if d := gen.Diff(want, got.Output); !errors.Is(err, dragoman.ErrIncompleteStream) || d != "" {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
}

func TestMessageEndCorrectsTheHeader(t *testing.T) {
	evs := part(0, 0, 0, "a", &dragoman.Message{Role: dragoman.RoleAssistant, Status: codes.StatusInProgress})
	evs[2].(*dragoman.PartEnd).Header = &dragoman.Message{Role: dragoman.RoleAssistant, Name: "ada"}
	got, err := collect(append(evs, &dragoman.ResponseEnd{})...)
	want := []dragoman.Message{{Role: dragoman.RoleAssistant, Name: "ada", Parts: []dragoman.Part{&dragoman.Text{Text: "a"}}}}
	if d := gen.Diff(want, got.Output); err != nil || d != "" {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
}

func TestCollectorSeparatesChoices(t *testing.T) {
	var evs []dragoman.Event
	for i, text := range []string{"zero", "one", "two"} {
		evs = append(evs, part(i, 0, 0, text, nil)...)
	}
	end := &dragoman.ResponseEnd{Stop: dragoman.Stop{Reason: dragoman.StopEnd}, Stops: []dragoman.Stop{{Reason: dragoman.StopLength}, {Reason: dragoman.StopRefusal}}}
	got, err := collect(append(evs, end)...)
	if err != nil || got.Text() != "zero" || got.Stop.Reason != dragoman.StopEnd || len(got.Alternatives) != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	for i, want := range []struct {
		text string
		stop dragoman.StopReason
	}{{"one", dragoman.StopLength}, {"two", dragoman.StopRefusal}} {
		if a := got.Alternatives[i]; a.Index != i+1 || a.Output[0].Text() != want.text || a.Stop.Reason != want.stop {
			t.Errorf("alternative %d: %+v", i, a)
		}
	}
}

func TestCollectorMergesUsage(t *testing.T) {
	origin := &dragoman.Origin{Dialect: dialectname.Anthropic}
	got, err := collect(
		&dragoman.ResponseStart{Response: dragoman.Response{ID: "1", Model: "m", Origin: origin, Usage: dragoman.Usage{Input: dragoman.Counted(9), Output: dragoman.Counted(1)}}},
		&dragoman.ResponseEnd{Usage: dragoman.Usage{Output: dragoman.Counted(5)}, Response: dragoman.Response{ServiceTier: "flex"}},
	)
	want := &dragoman.Response{ID: "1", Model: "m", Origin: origin, ServiceTier: "flex", Usage: dragoman.Usage{Input: dragoman.Counted(9), Output: dragoman.Counted(5)}}
	if d := gen.Diff(want, got); err != nil || d != "" {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
}

func TestCollectorAcceptsEventsOutOfOrder(t *testing.T) {
	text := &dragoman.Text{Text: "x"}
	for name, evs := range map[string][]dragoman.Event{
		"end without start":         {&dragoman.PartEnd{Part: text}},
		"end of a skipped index":    {&dragoman.PartStart{Index: 5}, &dragoman.PartEnd{Index: 3, Part: text}},
		"end of an unknown choice":  {&dragoman.PartEnd{Choice: 7, Part: text}},
		"end of a negative choice":  {&dragoman.PartEnd{Choice: -1, Part: text}},
		"negative index":            {&dragoman.PartStart{Index: -1}, &dragoman.PartEnd{Index: -1, Part: text}},
		"end without a part":        {&dragoman.PartStart{}, &dragoman.PartEnd{}},
		"deltas alone":              {&dragoman.PartDelta{Index: 1 << 40, Text: "x"}, &dragoman.Chunk{}},
		"nil event":                 {nil},
		"two ends":                  {&dragoman.ResponseEnd{}, &dragoman.ResponseEnd{}},
		"negative message position": {&dragoman.PartStart{Message: -5}, &dragoman.PartEnd{}},
	} {
		got, err := collect(evs...)
		if got == nil || got.Text() != "" || len(got.Alternatives) != 0 {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestStreamErrorWithoutErrorIsABrokenStream(t *testing.T) {
	_, err := collect(&dragoman.ResponseStart{}, &dragoman.StreamError{})
	if !errors.Is(err, dragoman.ErrIncompleteStream) {
		t.Errorf("%v, want ErrIncompleteStream", err)
	}
}

func TestQuirkC4_HugeIndexesDoNotAllocate(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var c dragoman.Collector
	for choice := range 2000 {
		c.Add(&dragoman.PartStart{Choice: choice, Index: 60_000})
	}
	for _, i := range []int{1 << 16, 1_000_000_000, 1<<63 - 1} {
		c.Add(&dragoman.PartStart{Index: i})
		c.Add(&dragoman.PartStart{Choice: i})
		c.Add(&dragoman.PartEnd{Choice: i, Index: i, Part: &dragoman.Text{}})
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 64<<20 {
		t.Errorf("%d MB for 2,006 events", n>>20)
	}
	// A valid part in the same stream is still collected.
	for _, ev := range part(0, 0, 0, "honest", nil) {
		c.Add(ev)
	}
	c.Add(&dragoman.ResponseEnd{})
	if r, err := c.Response(); err != nil || r.Text() != "honest" {
		t.Errorf("%q, %v", r.Text(), err)
	}
}

func TestCollectReturnsThePartialResponseWithAnError(t *testing.T) {
	broken := errors.New("connection reset")
	var seq iter.Seq2[dragoman.Event, error] = func(yield func(dragoman.Event, error) bool) {
		for _, ev := range part(0, 0, 0, "so far", nil) {
			if !yield(ev, nil) {
				return
			}
		}
		if yield(nil, broken) {
			t.Error("the stream went on after its error")
		}
	}
	r, err := dragoman.Collect(seq)
	if !errors.Is(err, broken) || r.Text() != "so far" {
		t.Errorf("%q, %v", r.Text(), err)
	}
}

func TestCollectorKeepsUsageAndStopWithAnError(t *testing.T) {
	failure := &dragoman.APIError{Class: dragoman.ErrorServer, Message: "boom"}
	evs := []dragoman.Event{&dragoman.ResponseStart{Response: dragoman.Response{ID: "1", Usage: dragoman.Usage{Input: dragoman.Counted(9), Output: dragoman.Counted(1)}}}}
	evs = append(evs, part(0, 0, 0, "a", nil)...)
	evs = append(evs, part(1, 0, 0, "b", nil)...)
	got, err := collect(append(evs, &dragoman.StreamError{Err: failure, Usage: dragoman.Usage{Output: dragoman.Counted(5)}})...)
	if !errors.Is(err, failure) || got.Error != failure || got.Text() != "a" {
		t.Errorf("%v %+v", err, got)
	}
	if got.Usage.Input.N != 9 || got.Usage.Output.N != 5 || got.Stop.Reason != dragoman.StopError || got.Alternatives[0].Stop.Reason != dragoman.StopError {
		t.Errorf("%+v %+v %+v", got.Usage, got.Stop, got.Alternatives)
	}
	// The same for a stream without content, and for an error without a reason.
	for _, last := range []*dragoman.StreamError{{Err: failure}, {}} {
		if got, err = collect(last); err == nil || got.Stop.Reason != dragoman.StopError {
			t.Errorf("%v %+v", err, got.Stop)
		}
	}
}
