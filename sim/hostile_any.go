package sim

import (
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/wire"
)

// noEnd removes the events that mark the end of the stream.
func noEnd(s *wireStream) {
	end := &s.wire.Stream.End
	switch {
	case end.Named():
		s.keep(func(f *frame) bool {
			return !slices.ContainsFunc(end.Names, func(name string) bool { return f.name == name || f.has(name) })
		})
	case end.Content: // the last chunk also has content
		for i := range s.frames {
			if o := objectAt(s.frames[i].data, end.Path...); o != nil {
				o.remove(end.Field.Name())
			}
		}
	default:
		s.frames = s.frames[:s.lastChunk()]
	}
}

// lastChunk returns the index of the chunk with the stop reason, or the number of frames if
// no chunk has one.
func (s *wireStream) lastChunk() int {
	end := &s.wire.Stream.End
	for i := range s.frames {
		switch v := at(s.frames[i].data, append(slices.Clip(end.Path), end.Field.Name())...).(type) {
		case string:
			if v != "" {
				return i
			}
		case bool:
			if v {
				return i
			}
		}
	}
	return len(s.frames)
}

// openEnd ends the stream within the last call, or the last text if there is no call: one
// event before its end.
func openEnd(s *wireStream) {
	noEnd(s)
	s.frames = s.frames[:max(1, len(s.frames)-2)]
}

// comments inserts keep-alive comments between all events.
func comments(s *wireStream) {
	for i := len(s.frames) - 1; i >= 0; i-- {
		s.insert(i, frame{raw: []byte(": PROCESSING\n\n")}, frame{raw: []byte(":\n")})
	}
}

// bytewise flushes each byte separately, so that characters are split.
func bytewise(s *wireStream) { s.bytewise = true }

// loneSurrogate ends the first text fragment with half of a surrogate pair.
func loneSurrogate(s *wireStream) {
	in := &s.wire.Simulator.Text
	for i := range s.frames {
		f := &s.frames[i]
		of := fragment(f, in)
		text, ok := at(of, in.Field).(string)
		if !ok || text == "" || at(of, "thought") == true {
			continue
		}
		quoted := string(appendTree(nil, text))
		of.set(in.Field, rawJSON(strings.TrimSuffix(quoted, `"`)+`\ud83d"`))
		return
	}
}

// fragment returns the object of an event that holds a fragment, or nil.
func fragment(f *frame, in *wire.Fragment) *object {
	if in.Type != "" && !f.has(in.Type) {
		return nil
	}
	return objectAt(f.data, in.Path...)
}

// oddLines ends lines with CR LF, sends a very long line, and leaves the last event
// unterminated.
func oddLines(s *wireStream) {
	s.crlf, s.open = true, true
	if s.isSSE() {
		s.insert(len(s.frames)/2, frame{raw: []byte(":" + strings.Repeat("x", 100_000) + "\r\n\r\n")})
	}
}

// callsInMessage reports whether events have calls in a list of the message, not in blocks.
func (s *wireStream) callsInMessage() bool { return s.wire.Simulator.Block == "" }

// blankTail adds white space after the arguments of each call.
func blankTail(s *wireStream) {
	if s.callsInMessage() {
		chatBlankTail(s)
		return
	}
	s.withInput(" \n")
}

// interleaved interleaves the fragments of calls.
func interleaved(s *wireStream) {
	if s.callsInMessage() {
		chatInterleaved(s)
		return
	}
	blocksInterleaved(s)
}

// wholeArguments sends the arguments of each call at once; in Chat as an object.
func wholeArguments(s *wireStream) {
	if s.callsInMessage() {
		chatBundled(s, true, true)
		return
	}
	wholeDeltas(s)
}

func together(s *wireStream) {
	if len(s.chatCalls()) > 0 {
		chatTogether(s)
		return
	}
	geminiTogether(s)
}

// failsMidway ends the response with a server error in the middle.
func failsMidway(events []dragoman.Event) []dragoman.Event {
	return append(events[:len(events)/2:len(events)/2], &dragoman.StreamError{Err: &dragoman.APIError{
		Class: dragoman.ErrorOverloaded, Message: "the simulator was asked to fail here",
	}})
}

// endsWithLength marks a complete response as ended by the output limit. The last call may
// then be incomplete in a way that the client cannot see.
func endsWithLength(events []dragoman.Event) []dragoman.Event {
	out := make([]dragoman.Event, len(events))
	for i, ev := range events {
		out[i] = ev
		if end, ok := ev.(*dragoman.ResponseEnd); ok {
			cut := *end
			cut.Stop = dragoman.Stop{Reason: dragoman.StopLength}
			out[i] = &cut
		}
	}
	return out
}

// singleCharacters sends everything one character at a time.
func singleCharacters(events []dragoman.Event) []dragoman.Event {
	var out []dragoman.Event
	for _, ev := range events {
		d, ok := ev.(*dragoman.PartDelta)
		if !ok {
			out = append(out, ev)
			continue
		}
		for _, r := range d.Text {
			one := *d
			one.Text = string(r)
			out = append(out, &one)
		}
	}
	return out
}

// twoChoices sends two candidates with interleaved events.
func twoChoices(events []dragoman.Event) []dragoman.Event {
	var out []dragoman.Event
	for _, ev := range events {
		switch ev := ev.(type) {
		case *dragoman.PartStart:
			other := *ev
			other.Choice++
			out = append(out, ev, &other)
		case *dragoman.PartDelta:
			other := *ev
			other.Choice++
			out = append(out, &other, ev)
		case *dragoman.PartEnd:
			other := *ev
			other.Choice++
			out = append(out, ev, &other)
		case *dragoman.ResponseEnd:
			end := *ev
			end.Stops = []dragoman.Stop{ev.Stop}
			out = append(out, &end)
		default:
			out = append(out, ev)
		}
	}
	return out
}
