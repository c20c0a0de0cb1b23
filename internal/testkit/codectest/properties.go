package codectest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/testkit/gen"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// Deterministic checks that a request is encoded to the same bytes and report
// each time, as sound JSON, and is not changed by it. Only one that chooses a
// tool may be refused, one without a message, or one with a native form that is not JSON.
func Deterministic(t *testing.T, c dialect.Codec, o dialect.EncodeOptions, draw func(*rapid.T) *dragoman.Request) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) {
		req := draw(t)
		before := req.Fingerprint()
		a, err := c.EncodeRequest(req, o)
		b, again := c.EncodeRequest(req, o)
		if (err == nil) != (again == nil) || string(a.Body) != string(b.Body) || a.Report.String() != b.Report.String() {
			t.Fatalf("%v, %v\n%s\n%s", err, again, a.Body, b.Body)
		}
		if req.Fingerprint() != before {
			t.Fatal("the request was changed")
		}
		if err != nil && !Empty(err) && req.ToolChoice == nil && (!errors.Is(err, dragoman.ErrInvalid) || !spoilt(req)) {
			t.Fatal(err)
		}
		if err != nil {
			return
		}
		if err := jsonwire.Check(gen.WithoutRepeatedKeys(req, a.Body)); err != nil {
			t.Fatalf("unsound JSON: %v\n%s", err, a.Body)
		}
	})
}

// spoilt reports whether a message has a native form that is no JSON, as one
// that was damaged where it was stored.
func spoilt(req *dragoman.Request) bool {
	return slices.ContainsFunc(req.Messages, func(m dragoman.Message) bool { return m.Native != nil && !json.Valid(m.Native.Raw) })
}

// Growth says how the encoded list of a conversation grows with it.
type Growth struct {
	// List is the member that holds the conversation.
	List string
	// Settled reports whether a conversation may be cut between messages of
	// these roles. The first of all has none before it.
	Settled func(before, next dragoman.Role) bool
	// Last reports whether the last element of a cut conversation may become
	// another. Nil means that it must stay.
	Last func(last dragoman.Role, was, is string) bool
}

// Grows checks decision 6, which prompt caches live on: what was sent once is
// sent again byte for byte. At every point where a conversation is settled, the
// elements of the encoded list are the first of the longer conversation's.
func Grows(t *testing.T, c dialect.Codec, o dialect.EncodeOptions, draw func(*rapid.T) *dragoman.Request, g Growth) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) {
		req := draw(t)
		whole := g.elements(t, c, o, req)
		before := dragoman.Role("")
		for n := range req.Messages {
			last := before
			before = req.Messages[n].Role
			if !g.Settled(last, before) {
				continue
			}
			part := *req
			part.Messages = req.Messages[:n]
			cut := g.elements(t, c, o, &part)
			for i, el := range cut {
				if el == whole[i] || i == len(cut)-1 && g.Last != nil && g.Last(last, el, whole[i]) {
					continue
				}
				t.Fatalf("after %d messages element %d was\n%s\nand became\n%s", n, i, el, whole[i])
			}
		}
	})
}

// elements encodes a request and returns the elements of its conversation.
func (g Growth) elements(t *rapid.T, c dialect.Codec, o dialect.EncodeOptions, req *dragoman.Request) []string {
	enc, err := c.EncodeRequest(req, o)
	if Empty(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := jsonwire.Check(enc.Body); err != nil {
		t.Fatalf("unsound JSON: %v\n%s", err, enc.Body)
	}
	var members map[string]json.RawMessage
	var list []json.RawMessage
	if err := json.Unmarshal(enc.Body, &members); err != nil {
		t.Fatalf("%v\n%s", err, enc.Body)
	}
	if err := json.Unmarshal(members[g.List], &list); err != nil {
		t.Fatalf("%s: %v\n%s", g.List, err, enc.Body)
	}
	out := make([]string, len(list))
	for i, el := range list {
		out[i] = string(el)
	}
	return out
}

// AfterTurns cuts a conversation before what is not of an assistant's turn.
func AfterTurns(_, next dragoman.Role) bool {
	return next != dragoman.RoleAssistant && next != dragoman.RoleTool
}

// OutsideTurns cuts a conversation after a user's turn too, but not before its
// first message.
func OutsideTurns(before, next dragoman.Role) bool {
	within := next == dragoman.RoleTool || before == dragoman.RoleAssistant && next == dragoman.RoleAssistant
	return !within && before != dragoman.RoleSystem && before != ""
}

// Appended reports whether all that happened to an element is that its list of
// content grew.
func Appended(was, is string) bool { return strings.HasPrefix(is, strings.TrimSuffix(was, "]}")) }

// discardChoice leaves out a request that is refused for the tool it demands,
// which the wire has no form for. One that is refused without that demand too
// fails the test.
func discardChoice(t *rapid.T, c dialect.Codec, req *dragoman.Request, o dialect.EncodeOptions, refused error) {
	t.Helper()
	if Empty(refused) {
		t.Skip("no message can be sent")
	}
	free := *req
	free.ToolChoice = nil
	if _, err := c.EncodeRequest(&free, o); req.ToolChoice == nil || err != nil {
		t.Fatalf("EncodeRequest: %v", refused)
	}
	t.Skip("a choice of a tool that cannot be sent")
}

// KeepsMeaning checks that an encoded request is read again as one that says
// the same. also, which may be nil, is what more must hold.
func KeepsMeaning(t *testing.T, c dialect.Codec, draw func(*rapid.T) *dragoman.Request, says func(*dragoman.Request) []string, also func(t *rapid.T, req, back *dragoman.Request, enc dialect.Encoded)) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) {
		req := draw(t)
		enc, err := c.EncodeRequest(req, dialect.EncodeOptions{})
		if err != nil {
			discardChoice(t, c, req, dialect.EncodeOptions{}, err)
		}
		back, _, err := c.DecodeRequest(enc.Body, dialect.DecodeOptions{Registry: enc.Registry})
		if err != nil {
			t.Fatalf("%v\n%s", err, enc.Body)
		}
		if diff := cmp.Diff(says(req), says(back)); diff != "" {
			t.Fatalf("%s\n%s", diff, enc.Body)
		}
		if also != nil {
			also(t, req, back, enc)
		}
	})
}

// Says is what a conversation says, without how it is cut into messages and
// without the rules that it begins with.
func Says(req *dragoman.Request) []string {
	ms := req.Messages
	if len(ms) > 0 && ms[0].Role == dragoman.RoleSystem {
		ms = ms[1:]
	}
	var out []string
	for i := range ms {
		role := ms[i].Role
		if role == dragoman.RoleTool {
			role = dragoman.RoleUser
		}
		for _, p := range ms[i].Parts {
			switch p := p.(type) {
			case *dragoman.Text:
				out = append(out, fmt.Sprint(role, " text ", strings.TrimRight(p.Text, " \n")))
			case *dragoman.ToolCall:
				out = append(out, fmt.Sprint(role, " call ", p.ID, p.Name, p.Arguments))
			case *dragoman.ToolResult:
				out = append(out, fmt.Sprint(role, " result ", p.CallID, p.Text(), p.Outcome == codes.OutcomeError))
			}
		}
	}
	return out
}

// FixedPoint checks that what was decoded and is written anew is the same body,
// whatever it was: at once if the request was plain, and from the second time
// on if not.
func FixedPoint(t *testing.T, c dialect.Codec, options ...gen.Options) {
	t.Helper()
	rebuild := dialect.EncodeOptions{Rebuild: true}
	for _, o := range options {
		rapid.Check(t, func(t *rapid.T) {
			req := o.Request().Draw(t, "request")
			enc, err := c.EncodeRequest(req, rebuild)
			if err != nil {
				discardChoice(t, c, req, rebuild, err)
			}
			back, _, err := c.DecodeRequest(enc.Body, dialect.DecodeOptions{})
			if err != nil {
				t.Fatalf("what was written cannot be read: %v\n%s", err, enc.Body)
			}
			again, err := c.EncodeRequest(back, rebuild)
			if err != nil {
				discardChoice(t, c, back, rebuild, err)
			}
			if o.Plain && string(again.Body) != string(enc.Body) {
				t.Fatalf("first  %s\nsecond %s", enc.Body, again.Body)
			}
			twice, _, err := c.DecodeRequest(again.Body, dialect.DecodeOptions{})
			if err != nil {
				t.Fatalf("%v\n%s", err, again.Body)
			}
			third, err := c.EncodeRequest(twice, rebuild)
			if err != nil || string(third.Body) != string(again.Body) {
				t.Fatalf("%v\nsecond  %s\nthird   %s", err, again.Body, third.Body)
			}
		})
	}
}

// ReChunked checks that a sound stream gives the same events however it is cut:
// at every byte, between all bytes, and at random.
func ReChunked(t *testing.T, c dialect.Codec, stream []byte) {
	t.Helper()
	want, _, err := DecodeStream(c, dialect.DecodeOptions{}, stream)
	if err != nil {
		t.Fatal(err)
	}
	if err := Order(want); err != nil {
		t.Fatal(err)
	}
	check := func(what any, pieces [][]byte) {
		t.Helper()
		got, _, err := DecodeStream(c, dialect.DecodeOptions{}, pieces...)
		if diff := DiffEvents(t, want, got); err != nil || diff != "" {
			t.Fatalf("cut at %v: %v %s", what, err, diff)
		}
	}
	for at := range stream {
		check(at, Cut(stream, at))
	}
	check("every byte", Pieces(stream, 1))
	rapid.Check(t, func(rt *rapid.T) {
		sizes := rapid.SliceOfN(rapid.IntRange(0, 100), 0, 100).Draw(rt, "sizes")
		check(sizes, Cut(stream, sizes...))
	})
}

// AnyReChunked checks that any stream gives the same events, report and error
// however it is cut.
func AnyReChunked(t *testing.T, c dialect.Codec, draw func(*rapid.T) []byte) {
	t.Helper()
	rapid.Check(t, func(rt *rapid.T) {
		stream := draw(rt)
		sizes := rapid.SliceOfN(rapid.IntRange(0, max(len(stream)/3, 40)), 0, 12).Draw(rt, "sizes")
		n := rapid.IntRange(1, 40).Draw(rt, "size")
		o := dialect.DecodeOptions{Seed: "s"}
		want, rep, err := DecodeStream(c, o, stream)
		if err := Order(want); err != nil {
			rt.Fatal(err)
		}
		for _, pieces := range [][][]byte{Cut(stream, sizes...), Pieces(stream, n)} {
			got, rep2, err2 := DecodeStream(c, o, pieces...)
			if diff := DiffEvents(t, want, got); diff != "" {
				rt.Fatal(diff)
			}
			if fmt.Sprint(err) != fmt.Sprint(err2) || rep.String() != rep2.String() {
				rt.Fatalf("%v and %v\n%s\n%s", err, err2, rep, rep2)
			}
		}
	})
}

// WritesAnyEvents checks that whatever the events, the stream that is written
// is valid, and that every part that ended comes back with its text, in order
// of start.
func WritesAnyEvents(t *testing.T, c dialect.Codec, d Draw, valid func(stream []byte) error) {
	t.Helper()
	rapid.Check(t, func(rt *rapid.T) {
		evs := d.Events(rt)
		out, _ := EncodeStream(t, c, dialect.EncodeOptions{}, evs)
		if err := valid(out); err != nil {
			rt.Fatalf("%v\n%q", err, out)
		}
		back, _, err := DecodeStream(c, dialect.DecodeOptions{NoNative: true}, out)
		if err != nil {
			rt.Fatalf("%v\n%q", err, out)
		}
		if evs[len(evs)-1].Type() != "response_end" {
			return
		}
		parts, ended := partsOf(evs)
		if !ended {
			return
		}
		var want, got []string
		for _, p := range parts {
			switch p := p.(type) {
			case *dragoman.Text:
				want = append(want, p.Text)
			case *dragoman.Refusal:
				want = append(want, p.Text)
			case *dragoman.ToolCall:
				if !p.Hosted {
					obj, _ := p.Object()
					want = append(want, p.ID+string(obj))
				}
			}
		}
		parts, _ = partsOf(back)
		for _, p := range parts {
			switch p := p.(type) {
			case *dragoman.Text:
				got = append(got, p.Text)
			case *dragoman.ToolCall:
				got = append(got, p.ID+p.Arguments)
			}
		}
		for i, j := 0, 0; i < len(want); j++ { // notes stand in for media, data and empty answers
			if j == len(got) {
				rt.Fatalf("%q is lost\nwant %q\ngot %q", want[i], want, got)
			}
			if want[i] == got[j] {
				i++
			}
		}
	})
}

// partsOf are the parts of a stream that ended, in order of their start, and
// whether all did.
func partsOf(evs []dragoman.Event) (out []dragoman.Part, all bool) {
	ended := map[int]dragoman.Part{}
	for _, ev := range evs {
		if end, ok := ev.(*dragoman.PartEnd); ok {
			ended[end.Index] = end.Part
		}
	}
	all = true
	for _, ev := range evs {
		start, ok := ev.(*dragoman.PartStart)
		if !ok {
			continue
		}
		if p, ok := ended[start.Index]; ok {
			out = append(out, p)
		} else {
			all = false
		}
	}
	return out, all
}
