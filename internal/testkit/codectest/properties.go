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

// Deterministic checks that encoding a request gives the same bytes and report each time,
// is valid JSON, and does not change the request. The codec may refuse only a request
// with a tool choice, without messages, or with a native form that is not JSON.
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
		if err != nil && !Empty(err) && req.ToolChoice == nil && (!errors.Is(err, dragoman.ErrInvalid) || !hasDamagedNative(req)) {
			t.Fatal(err)
		}
		if err != nil {
			return
		}
		if err := jsonwire.Check(gen.WithoutRepeatedKeys(req, a.Body)); err != nil {
			t.Fatalf("invalid JSON: %v\n%s", err, a.Body)
		}
	})
}

// hasDamagedNative reports whether a message has a native form that is not JSON, for example
// because its storage was damaged.
func hasDamagedNative(req *dragoman.Request) bool {
	return slices.ContainsFunc(req.Messages, func(m dragoman.Message) bool { return m.Native != nil && !json.Valid(m.Native.Raw) })
}

// Growth describes how the encoded list of a conversation grows.
type Growth struct {
	// List is the field that holds the conversation.
	List string
	// Settled reports whether a conversation may be cut between messages of
	// these roles. before is empty for the first message.
	Settled func(before, next dragoman.Role) bool
	// Last reports whether the last element of a cut conversation may change in
	// this way. Nil means that it must stay the same.
	Last func(last dragoman.Role, was, is string) bool
}

// CheckGrowth checks decision 126, on which prompt caches depend: bytes that were sent once are
// sent again unchanged. At every settled point, the elements of the encoded list are
// the first elements of the longer conversation's list.
func CheckGrowth(t *testing.T, c dialect.Codec, o dialect.EncodeOptions, draw func(*rapid.T) *dragoman.Request, g Growth) {
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
				t.Fatalf("after %d messages, element %d changed from\n%s\nto\n%s", n, i, el, whole[i])
			}
		}
	})
}

// elements encodes a request and returns the elements of its list.
func (g Growth) elements(t *rapid.T, c dialect.Codec, o dialect.EncodeOptions, req *dragoman.Request) []string {
	enc, err := c.EncodeRequest(req, o)
	if Empty(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := jsonwire.Check(enc.Body); err != nil {
		t.Fatalf("invalid JSON: %v\n%s", err, enc.Body)
	}
	var fields map[string]json.RawMessage
	var list []json.RawMessage
	if err := json.Unmarshal(enc.Body, &fields); err != nil {
		t.Fatalf("%v\n%s", err, enc.Body)
	}
	if err := json.Unmarshal(fields[g.List], &list); err != nil {
		t.Fatalf("%s: %v\n%s", g.List, err, enc.Body)
	}
	out := make([]string, len(list))
	for i, el := range list {
		out[i] = string(el)
	}
	return out
}

// AfterTurns is a Settled function that cuts before messages outside assistant turns.
func AfterTurns(_, next dragoman.Role) bool {
	return next != dragoman.RoleAssistant && next != dragoman.RoleTool
}

// OutsideTurns is a Settled function that also cuts after a user message, but not before
// the first message.
func OutsideTurns(before, next dragoman.Role) bool {
	within := next == dragoman.RoleTool || before == dragoman.RoleAssistant && next == dragoman.RoleAssistant
	return !within && before != dragoman.RoleSystem && before != ""
}

// Appended is a Last check: it reports whether the content list of an element only gained
// elements.
func Appended(was, is string) bool { return strings.HasPrefix(is, strings.TrimSuffix(was, "]}")) }

// discardChoice skips a request that is refused for a required tool that the wire cannot
// express. It fails the test if the request is refused without that requirement
// too.
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

// KeepsMeaning checks that the decoded encoding of a request has the same content. also, which
// may be nil, checks more.
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

// Texts returns the content of a conversation, independent of how it is split into
// messages, and without leading instructions.
func Texts(req *dragoman.Request) []string {
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

// FixedPoint checks that decoding and rebuilding a body gives the same body: immediately
// for plain requests, from the second time on for others.
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
				t.Fatalf("the encoded request cannot be decoded: %v\n%s", err, enc.Body)
			}
			again, err := c.EncodeRequest(back, rebuild)
			if err != nil {
				discardChoice(t, c, back, rebuild, err)
			}
			if o.Plain && string(again.Body) != string(enc.Body) {
				t.Fatalf("first  %s\nsecond %s", enc.Body, again.Body)
			}
			second, _, err := c.DecodeRequest(again.Body, dialect.DecodeOptions{})
			if err != nil {
				t.Fatalf("%v\n%s", err, again.Body)
			}
			third, err := c.EncodeRequest(second, rebuild)
			if err != nil || string(third.Body) != string(again.Body) {
				t.Fatalf("%v\nsecond  %s\nthird   %s", err, again.Body, third.Body)
			}
		})
	}
}

// ReChunked checks that a valid stream gives the same events however it is split: at
// every byte, between all bytes, and at random.
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

// AnyReChunked checks that any stream gives the same events, report and error however it
// is split.
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

// WritesAnyEvents checks that any events encode to a valid stream, and that every ended
// part decodes to its text, in order of start.
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
		for i, j := 0, 0; i < len(want); j++ { // notes replace media, data and empty responses
			if j == len(got) {
				rt.Fatalf("%q is lost\nwant %q\ngot %q", want[i], want, got)
			}
			if want[i] == got[j] {
				i++
			}
		}
	})
}

// partsOf returns the ended parts of a stream in order of their start, and whether all
// parts ended.
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
