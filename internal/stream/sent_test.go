package stream_test

import (
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/stream"
)

func TestWhatWasNotSentOfAPartIsFound(t *testing.T) {
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

func TestALongTextThatWasSentTakesNoMemory(t *testing.T) {
	s := stream.SentOf(&dragoman.Text{})
	piece := strings.Repeat("x", 1<<16)
	if n := testing.AllocsPerRun(100, func() { s.Add(piece) }); n > 0 {
		t.Errorf("%v allocations for a piece", n)
	}
}
