package stream_test

import (
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/stream"
)

func TestRestOfPart(t *testing.T) {
	for _, part := range []dragoman.Part{&dragoman.Text{}, &dragoman.Reasoning{}, &dragoman.ToolCall{}} {
		s := stream.SentOf(part)
		s.Add("hello ")
		s.Add("wor")
		_, call := part.(*dragoman.ToolCall)
		for _, tc := range []struct {
			final, rest string
			ok          bool
		}{
			{"hello world", "ld", true},
			{"hello wor", "", true},
			{"hello", "", false},
			{"hellO world", "", false},
			{"", "", !call},
		} {
			rest, ok := s.Rest(tc.final)
			if ok != tc.ok || ok && rest != tc.rest {
				t.Errorf("%T: of %q there is %q left, %v", part, tc.final, rest, ok)
			}
		}
		if s.Len() != 9 || call != (s.String() == "hello wor") {
			t.Errorf("%T: %d bytes, %q", part, s.Len(), s.String())
		}
	}
}

func TestSentTextTakesNoMemory(t *testing.T) {
	s := stream.SentOf(&dragoman.Text{})
	piece := strings.Repeat("x", 1<<16)
	if n := testing.AllocsPerRun(100, func() { s.Add(piece) }); n > 0 {
		t.Errorf("%v allocations for a piece", n)
	}
}

func TestRestOfCallByDigest(t *testing.T) {
	for _, sent := range [][]string{{"{\"a\":", "1"}, {" ", "\"{", "}"}, {" ", "\n", "{", "}"}, {" \n", " "}, {"\"{\\\"a", "\\\":1}"}} {
		s := stream.DigestOf(&dragoman.ToolCall{})
		for _, piece := range sent {
			s.Add(piece)
		}
		all := strings.Join(sent, "")
		if rest, ok := s.Rest(all + "rest"); !ok || rest != "rest" {
			t.Errorf("%q: %q is left, %v", all, rest, ok)
		}
		for _, other := range []string{"", all[1:], "x" + all[1:] + "rest"} {
			if rest, ok := s.Rest(other); ok {
				t.Errorf("%q continues %q with %q", other, all, rest)
			}
		}
		if s.Len() != len(all) {
			t.Errorf("%d bytes of %q", s.Len(), all)
		}
	}
	// Arguments that begin with a quote are kept (quirk B3), however they are split.
	for _, sent := range [][]string{{` "{}`, `"`}, {` `, `"{}"`}, {``, ` `, `"`, `{}"`}} {
		s := stream.DigestOf(&dragoman.ToolCall{})
		for _, piece := range sent {
			s.Add(piece)
		}
		if s.String() != ` "{}"` {
			t.Errorf("quoted arguments: %q", s.String())
		}
	}
}

func TestSentArgumentsTakeNoMemory(t *testing.T) {
	s := stream.DigestOf(&dragoman.ToolCall{})
	s.Add("{")
	piece := strings.Repeat("x", 1<<16)
	if n := testing.AllocsPerRun(100, func() { s.Add(piece) }); n > 0 {
		t.Errorf("%v allocations for a piece", n)
	}
}
