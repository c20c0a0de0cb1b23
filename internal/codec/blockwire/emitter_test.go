package blockwire_test

import (
	"fmt"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/blockwire"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/testkit/gen"
	"pgregory.net/rapid"
)

// toyStream writes a stream as text: "0<call f" opens block 0, "0+abc" grows it, "0>"
// closes it, "fail" ends the stream with an error.
type toyStream struct {
	*blockwire.Emitter
	failed bool
	steps  []blockStep
}

// blockStep is one operation on a block: open <, grow +, close >.
type blockStep struct {
	index int64
	sign  rune
	text  string
}

func (w *toyStream) step(dst []byte, p *blockwire.Out, sign rune, text string) []byte {
	w.steps = append(w.steps, blockStep{p.Index, sign, text})
	return fmt.Appendf(dst, "%d%c%s ", p.Index, sign, text)
}

func (w *toyStream) OpenBlock(dst []byte, p *blockwire.Out, part dragoman.Part) ([]byte, error) {
	w.Number(p)
	what := part.Kind()
	if c, ok := part.(*dragoman.ToolCall); ok {
		what = "call " + c.Name
	}
	return w.step(dst, p, '<', what), nil
}

func (w *toyStream) Delta(dst []byte, p *blockwire.Out, text string, fields *dragoman.Extra) []byte {
	for _, f := range fields.For(toyDialect) {
		text += f.Path
	}
	return w.step(dst, p, '+', text)
}

func (w *toyStream) StopBlock(dst []byte, p *blockwire.Out) []byte {
	return w.step(w.Fields(dst, p), p, '>', "")
}

func (w *toyStream) Fail(dst []byte, _ *dragoman.APIError) []byte {
	w.failed = true
	return append(dst, "fail "...)
}

func (w *toyStream) Finish(dst []byte, p *blockwire.Out, final dragoman.Part) ([]byte, error) {
	whole := ""
	switch part := final.(type) {
	case *dragoman.Text:
		whole = part.Text
	case *dragoman.Refusal:
		whole = part.Text
	case *dragoman.Reasoning:
		whole = wirekit.VisibleReasoning(part)
	case *dragoman.ToolCall:
		whole = p.WholeArguments(part)
	default:
		return dst, nil // the toy has no such blocks
	}
	rest := w.Remainder(p, whole)
	dst, err := w.EnsureOpen(dst, p, final)
	if err == nil && rest != "" {
		dst = w.Delta(dst, p, rest, nil)
	}
	return w.StopBlock(dst, p), err
}

// emit plays events and, unless the stream failed, its end.
func emit(bareStart bool, evs ...dragoman.Event) (out string, w *toyStream, rep *dragoman.Report, err error) {
	rep = new(dragoman.Report)
	w = new(toyStream)
	e := blockwire.NewEmitter(toyDialect, w, rep)
	e.BareStart = bareStart
	w.Emitter = &e
	var dst []byte
	for _, ev := range evs {
		if w.failed || err != nil {
			break
		}
		switch ev := ev.(type) {
		case *dragoman.PartStart:
			dst, err = e.PartStart(dst, ev)
		case *dragoman.PartDelta:
			dst, err = e.PartDelta(dst, ev)
		case *dragoman.PartEnd:
			dst, err = e.PartEnd(dst, ev)
		}
	}
	if !w.failed && err == nil {
		dst, err = e.Advance(dst, true)
	}
	return strings.TrimSpace(string(dst)), w, rep, err
}

func start(i int, p dragoman.Part) *dragoman.PartStart { return &dragoman.PartStart{Index: i, Part: p} }

func grow(i int, s string) *dragoman.PartDelta { return &dragoman.PartDelta{Index: i, Text: s} }

func end(i int, p dragoman.Part) *dragoman.PartEnd { return &dragoman.PartEnd{Index: i, Part: p} }

func args(id, name, arguments string) *dragoman.ToolCall {
	return &dragoman.ToolCall{ID: id, Name: name, Payload: codes.PayloadObject, Arguments: arguments}
}

func cutOff(c *dragoman.ToolCall) *dragoman.ToolCall {
	c.Problem = &dragoman.CallProblem{Code: codes.ProblemTruncated, Offset: -1}
	return c
}

func TestEmitterStreamsPartsAsBlocks(t *testing.T) {
	for _, tc := range []struct {
		name   string
		events []dragoman.Event
		want   string
		lost   string // a text in the report; empty for no loss
	}{
		{
			name:   "deltas grow the block",
			events: []dragoman.Event{start(0, text("")), grow(0, "a"), grow(0, "b"), end(0, text("ab"))},
			want:   "0<text 0+a 0+b 0>",
		},
		{
			name:   "the end supplies text that the deltas lacked",
			events: []dragoman.Event{start(0, text("")), grow(0, "a"), end(0, text("abc")), start(1, text("")), end(1, text("whole"))},
			want:   "0<text 0+a 0+bc 0> 1<text 1+whole 1>",
		},
		{
			name: "parts that overlap are queued (quirk C21)",
			events: []dragoman.Event{
				start(0, args("x", "f", "")), start(1, args("y", "g", "")),
				grow(1, `{"b":`), grow(0, `{"a":1}`), grow(1, `2}`),
				end(1, args("y", "g", `{"b":2}`)), end(0, args("x", "f", `{"a":1}`)),
			},
			want: `0<call f 0+{"a":1} 0> 1<call g 1+{"b":2} 1>`,
		},
		{
			name:   "an empty delta is dropped",
			events: []dragoman.Event{start(0, text("")), grow(0, ""), grow(0, "a"), grow(0, ""), end(0, text("a"))},
			want:   "0<text 0+a 0>",
		},
		{
			name: "summaries are paragraphs of one block (quirk C22)",
			events: []dragoman.Event{
				start(0, &dragoman.Reasoning{}),
				&dragoman.PartDelta{Summary: 1, Text: "one"}, &dragoman.PartDelta{Summary: 2, Text: "two"},
				end(0, &dragoman.Reasoning{Summary: []string{"one", "two"}}),
			},
			want: "0<reasoning 0+one 0+\n\ntwo 0>",
		},
		{
			name:   "a call opens once it has a name",
			events: []dragoman.Event{start(0, args("x", "", "")), grow(0, `{"a"`), end(0, args("x", "f", `{"a":1}`))},
			want:   `0<call f 0+{"a":1} 0>`,
		},
		{
			name:   "freeform input is written at the end as an object",
			events: []dragoman.Event{start(0, &dragoman.ToolCall{ID: "x", Name: "f", Payload: codes.PayloadText}), grow(0, "raw"), end(0, &dragoman.ToolCall{ID: "x", Name: "f", Payload: codes.PayloadText, Arguments: "raw"})},
			want:   `0<call f 0+{"input":"raw"} 0>`,
		},
		{
			name:   "a call with different final arguments is not closed",
			events: []dragoman.Event{start(0, args("x", "f", "")), grow(0, `{"a":1}`), end(0, args("x", "f", `{"a":2}`))},
			want:   `0<call f 0+{"a":1} fail`,
			lost:   "differs",
		},
		{
			name:   "a call with a different final name is not closed",
			events: []dragoman.Event{start(0, args("x", "f", "")), grow(0, `{}`), end(0, args("x", "rm", `{}`))},
			want:   `0<call f 0+{} fail`,
			lost:   "differs",
		},
		{
			name:   "different JSON spelling is accepted (quirk B3)",
			events: []dragoman.Event{start(0, args("x", "f", "")), grow(0, `{ "a" : 1 }`), end(0, args("x", "f", `{"a":1}`))},
			want:   `0<call f 0+{ "a" : 1 } 0>`,
			lost:   "differs", // the client has the other spelling
		},
		{
			name:   "a truncated call is closed at the end of the response",
			events: []dragoman.Event{start(0, args("x", "f", "")), grow(0, `{"a":`), end(0, cutOff(args("x", "f", `{"a":`))), start(1, text("")), end(1, text("later"))},
			want:   `0<call f 0+{"a": 0> 1<text 1+later 1>`,
		},
		{
			name:   "a text with a different final value is not resent",
			events: []dragoman.Event{start(0, text("")), grow(0, "one"), end(0, text("two"))},
			want:   "0<text 0+one 0>",
			lost:   "differs",
		},
		{
			name:   "a part without an end is closed with its deltas",
			events: []dragoman.Event{start(0, text("")), grow(0, "half"), start(1, text("")), grow(1, "more")},
			want:   "0<text 0+half 0> 1<text 1+more 1>",
		},
		{
			name:   "only the first choice is written",
			events: []dragoman.Event{&dragoman.PartStart{Choice: 1, Part: text("")}, &dragoman.PartDelta{Choice: 1, Text: "no"}, start(0, text("")), grow(0, "yes"), end(0, text("yes"))},
			want:   "0<text 0+yes 0>",
			lost:   "further candidates",
		},
		{
			name:   "deltas and ends without a start are ignored",
			events: []dragoman.Event{grow(3, "x"), end(3, text("x"))},
			want:   "",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			out, _, rep, err := emit(false, tc.events...)
			if err != nil || out != tc.want {
				t.Errorf("got  %q, %v\nwant %q", out, err, tc.want)
			}
			if got := rep.String(); tc.lost == "" && got != "" || !strings.Contains(got, tc.lost) {
				t.Errorf("reported %q, want %q", got, tc.lost)
			}
		})
	}
}

func TestTextBlockStartsEarlyWithBareStart(t *testing.T) {
	for bare, want := range map[bool]string{true: "0<text", false: ""} {
		rep := new(dragoman.Report)
		w := new(toyStream)
		e := blockwire.NewEmitter(toyDialect, w, rep)
		e.BareStart, w.Emitter = bare, &e
		dst, err := e.PartStart(nil, start(0, text("")))
		if got := strings.TrimSpace(string(dst)); got != want || err != nil {
			t.Errorf("bare %v: %q, %v", bare, got, err)
		}
	}
}

func TestUnknownDeltaFieldsAreWrittenInTheirBlock(t *testing.T) {
	field := func(path string) *dragoman.Extra {
		return &dragoman.Extra{Dialect: toyDialect, Fields: []dragoman.Field{{Path: path, Value: []byte("1")}}}
	}
	with := func(i int, text, path string) *dragoman.PartDelta {
		return &dragoman.PartDelta{Index: i, Text: text, Extra: field(path)}
	}
	out, _, _, err := emit(true, start(0, text("")), start(1, text("")), with(0, "a", "/x"), with(1, "b", "/y"), with(1, "", "/z"), with(0, "", "/w"),
		end(0, text("a")), end(1, text("b")))
	if want := "0<text 0+a/x 0+/w 0> 1<text 1+b/y 1+/z 1>"; out != want || err != nil {
		t.Errorf("got %q, %v, want %q", out, err, want)
	}
}

// For any events, blocks open in order with dense indexes, one after another; no delta
// is empty; and no block is left open unless the stream failed.
func TestProperty_BlocksDoNotOverlap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		evs := gen.Options{Tidy: true}.Events().Draw(t, "events")
		_, w, _, err := emit(rapid.Bool().Draw(t, "bare"), evs...)
		if err != nil {
			t.Fatal(err)
		}
		open, next := int64(-1), int64(0)
		for i, s := range w.steps {
			switch {
			case s.sign == '<' && open < 0 && s.index == next:
				open, next = s.index, next+1
			case s.sign == '+' && s.index == open && s.text != "":
			case s.sign == '>' && s.index == open:
				open = -1
			default:
				t.Fatalf("step %d is %+v while block %d is open and %d is next: %+v", i, s, open, next, w.steps)
			}
		}
		if open >= 0 && !w.failed {
			t.Fatalf("block %d is left open: %+v", open, w.steps)
		}
	})
}

// A stream may break instead of ending, and clients run calls whose blocks are closed.
func TestTruncatedCallClosesWithResponse(t *testing.T) {
	w := new(toyStream)
	e := blockwire.NewEmitter(toyDialect, w, new(dragoman.Report))
	w.Emitter = &e
	dst, err := e.PartStart(nil, start(0, args("x", "f", "")))
	if err == nil {
		dst, err = e.PartDelta(dst, grow(0, `{}`))
	}
	if err == nil {
		dst, err = e.PartEnd(dst, end(0, cutOff(args("x", "f", `{}`))))
	}
	if got := strings.TrimSpace(string(dst)); got != "0<call f 0+{}" || err != nil {
		t.Fatalf("before the end: %q, %v", got, err)
	}
	if dst, err = e.Advance(nil, true); string(dst) != "0> " || err != nil {
		t.Errorf("at the end: %q, %v", dst, err)
	}
}
