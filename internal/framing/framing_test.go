package framing_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/dragoman-go/dragoman/internal/framing"
)

func TestSplitReversesAppend(t *testing.T) {
	for name, f := range map[string]framing.Framing{
		"sse": framing.SSE, "ndjson": framing.NDJSON, "eventstream": framing.EventStream, "array": framing.JSONArray,
	} {
		var stream []byte
		want := []string{`{"a":1}`, `{"b":"\n\n"}`, `{}`}
		for i, data := range want {
			stream = f.Append(stream, i, "name", []byte(data))
		}
		stream = append(stream, f.Trailer()...)
		if !f.Begins(stream[0]) {
			t.Errorf("%s: a stream cannot begin with %q", name, stream[0])
		}
		var got []string
		err := f.Split(stream, func(e framing.Event) error {
			if e.Exception {
				t.Errorf("%s: %s is an exception", name, e.Data)
			}
			got = append(got, string(e.Data))
			return nil
		})
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestWholeAtEverySplit(t *testing.T) {
	for _, tc := range []struct {
		name   string
		f      framing.Lines
		events []string
	}{
		{"LF", framing.SSE, []string{"event: a\ndata: {}\n\n", ": ping\n\n", "data: [DONE]\n\n"}},
		{"CRLF", framing.SSE, []string{"event: a\r\ndata: {}\r\n\r\n", "data: {\"x\":1}\r\n\r\n"}},
		{"CR", framing.SSE, []string{"event: a\rdata: {}\r\r", "data: {\"x\":1}\r\r"}},
		{"lines", framing.NDJSON, []string{"{}\n", "{\"x\":1}\r\n", "\n"}},
	} {
		stream := []byte{}
		ends := []int{0}
		for _, e := range tc.events {
			stream = append(stream, e...)
			ends = append(ends, len(stream))
		}
		for n := range len(stream) + 1 {
			want := 0
			for _, end := range ends {
				if end <= n {
					want = end
				}
			}
			if got := tc.f.Whole(stream[:n]); got != want {
				t.Errorf("%s: of %q, %d bytes are whole, want %d", tc.name, stream[:n], got, want)
			}
		}
		eol := framing.LineEnd(stream)
		for rest, i := stream, 0; len(rest) > 0; i++ {
			n, whole := tc.f.Next(rest, eol)
			if !whole || string(rest[:n]) != tc.events[i] {
				t.Fatalf("%s: event %d is %q, whole %v", tc.name, i, rest[:n], whole)
			}
			if n, whole := tc.f.Next(rest[:n-1], eol); whole && bytes.Count(rest[:n], []byte{eol}) > 1 {
				t.Errorf("%s: %q is whole", tc.name, rest[:n-1])
			}
			rest = rest[n:]
		}
	}
}

func TestEventWithoutEndIsComplete(t *testing.T) {
	for _, tc := range []struct {
		f    framing.Lines
		rest string
		want bool
	}{
		{framing.SSE, "", true},
		{framing.SSE, "data: {\"a\":1}\n", true},
		{framing.SSE, "event: x\ndata: [DONE]", true},
		{framing.SSE, "data: {\"a\":", false},
		{framing.SSE, "event: x", false},
		{framing.NDJSON, "{\"a\":1}", true},
		{framing.NDJSON, "{\"a\":", false},
	} {
		if got := tc.f.Complete([]byte(tc.rest)); got != tc.want {
			t.Errorf("%q: complete is %v", tc.rest, got)
		}
	}
}

func TestParts(t *testing.T) {
	name, data := framing.SSE.Parts([]byte(": c\nevent: a\ndata: {}\n\n"), '\n')
	if string(name) != "a" || string(bytes.TrimSpace(data)) != "{}" {
		t.Errorf("%q, %q", name, data)
	}
	if name, data := framing.SSE.Parts([]byte(": ping\n\n"), '\n'); name != nil || data != nil {
		t.Errorf("a comment has %q, %q", name, data)
	}
}
