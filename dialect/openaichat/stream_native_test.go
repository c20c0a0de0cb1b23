package openaichat_test

import (
	"slices"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// parallel is a stream of all that comes in fragments.
var parallel = stream(`"tool_calls"`,
	`{"role":"assistant","content":""}`, `{"reasoning_content":"one, "}`, `{"reasoning_content":"two"}`, `{"content":"one "}`, `{"content":"[DONE]"}`,
	`{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}]}`,
	`{"tool_calls":[{"index":0,"function":{"arguments":"{\"x\": "}}]}`,
	`{"tool_calls":[{"index":1,"id":"b","type":"function","function":{"name":"g","arguments":"{\"y\":"}}]}`,
	`{"tool_calls":[{"index":0,"function":{"arguments":"\"one\"}"}},{"index":1,"function":{"arguments":"\"one\"}"}}]}`,
	`{"tool_calls":[{"index":2,"id":"c","type":"custom","custom":{"name":"sql","input":""}}]}`,
	`{"tool_calls":[{"index":2,"custom":{"input":"SELECT one"}}]}`,
	`{"tool_calls":[{"index":3,"id":"d","type":"function","function":{"name":"h","arguments":"{}"}}]}`,
)

// blanked replaces the chunk at or before an event with an empty one, as who
// changes the event must.
func blanked(evs []dragoman.Event, at int) []dragoman.Event {
	out := slices.Clone(evs)
	for ; at >= 0; at-- {
		if out[at].Type() == dragoman.EventChunk {
			out[at] = &dragoman.Chunk{}
			break
		}
	}
	return out
}

// redacted changes the word "one" of one fragment, and the end of its part with
// it; it is nil where there is nothing to change.
func redacted(evs []dragoman.Event, at int) []dragoman.Event {
	d, ok := evs[at].(*dragoman.PartDelta)
	if !ok || !strings.Contains(d.Text, "one") {
		return nil
	}
	out := slices.Clone(evs)
	changed := *d
	changed.Text, out[at] = strings.ReplaceAll(d.Text, "one", "******"), &changed
	whole := ""
	for i, ev := range out {
		switch ev := ev.(type) {
		case *dragoman.PartDelta:
			if ev.Index == d.Index {
				whole += ev.Text
			}
		case *dragoman.PartEnd:
			if ev.Index != d.Index {
				continue
			}
			end := *ev
			switch p := ev.Part.(type) {
			case *dragoman.Text:
				q := *p
				q.Text, end.Part = whole, &q
			case *dragoman.Reasoning:
				q := *p
				q.Text, end.Part = whole, &q
			case *dragoman.ToolCall:
				q := *p
				q.Arguments, end.Part = whole, &q
			}
			out[i] = &end
		}
	}
	return out
}

// shown reports whether native chunks have shown a call before its start: a name
// may come in pieces, so its start waits for the first argument (quirk C5).
func shown(evs []dragoman.Event, p dragoman.Part) bool {
	c, ok := p.(*dragoman.ToolCall)
	return ok && slices.ContainsFunc(evs, func(ev dragoman.Event) bool {
		chunk, ok := ev.(*dragoman.Chunk)
		return ok && strings.Contains(string(chunk.Raw), `"id":"`+c.ID+`"`)
	})
}

// faithful checks that events are written as a stream with one end that says
// what they say.
func faithful(t *testing.T, evs []dragoman.Event) {
	t.Helper()
	out, _ := encodeStream(t, dialect.EncodeOptions{}, evs)
	var want dragoman.Collector
	for _, ev := range evs {
		want.Add(ev)
	}
	a, _ := want.Response()
	d := decodeStream(t, dialect.DecodeOptions{}, out)
	if d.feed != nil || !strings.HasSuffix(out, "data: [DONE]\n\n") || strings.Count(out, "data: [DONE]\n") != 1 {
		t.Fatalf("%v\n%s", d.feed, out)
	}
	for _, c := range chunksOf(t, out) {
		if c != "[DONE]" {
			object(t, []byte(c))
		}
	}
	same := cmp.Options{cmpopts.IgnoreFields(dragoman.Response{}, "Native", "Usage", "Created"), cmpopts.IgnoreFields(dragoman.Message{}, "Native"), cmpopts.EquateEmpty()}
	if diff := cmp.Diff(a, d.resp, same); diff != "" {
		t.Fatalf("%s\n%s", diff, out)
	}
}

func TestStream_AfterABlankedChunkItGoesOnFromItsEvents(t *testing.T) {
	d := decodeStream(t, dialect.DecodeOptions{}, parallel)
	if d.feed != nil {
		t.Fatal(d.feed)
	}
	evs := d.events
	for at, ev := range evs {
		if ev.Type() == dragoman.EventChunk {
			faithful(t, blanked(evs, at))
		}
		for from := range at { // native mode ends before the changed event, or earlier
			if evs[from].Type() != dragoman.EventChunk {
				continue
			}
			if changed := redacted(evs, at); changed != nil {
				faithful(t, blanked(changed, from))
			}
			switch ev := ev.(type) {
			case *dragoman.PartStart:
				if shown(evs[:from], ev.Part) {
					continue
				}
				faithful(t, slices.DeleteFunc(blanked(evs, from), func(other dragoman.Event) bool {
					switch other := other.(type) {
					case *dragoman.PartStart:
						return other.Index == ev.Index
					case *dragoman.PartDelta:
						return other.Index == ev.Index
					case *dragoman.PartEnd:
						return other.Index == ev.Index
					default:
						return false
					}
				}))
			case *dragoman.ResponseEnd:
				changed := blanked(evs, from)
				end := *ev
				end.Stop = dragoman.Stop{Reason: dragoman.StopContentFilter}
				changed[at] = &end
				out, _ := encodeStream(t, dialect.EncodeOptions{}, changed)
				if got := streamed(t, out).Stop; got.Reason != dragoman.StopContentFilter {
					t.Errorf("blanked at %d: the stop is %+v\n%s", from, got, out)
				}
			}
		}
	}
}

func TestStream_AnyChunkThatIsNotOursEndsNativeModeForGood(t *testing.T) {
	d := decodeStream(t, dialect.DecodeOptions{}, parallel)
	for at, ev := range d.events {
		if ev.Type() != dragoman.EventChunk {
			continue
		}
		want, _ := encodeStream(t, dialect.EncodeOptions{}, blanked(d.events, at))
		for _, c := range []*dragoman.Chunk{{Dialect: codec.Dialect()}, {Dialect: dragoman.Anthropic, Raw: []byte("data: {}\n\n")}} {
			other := slices.Clone(d.events)
			other[at] = c
			if out, _ := encodeStream(t, dialect.EncodeOptions{}, other); out != want {
				t.Fatalf("%+v at %d:\n%s", c, at, out)
			}
		}
	}
}
