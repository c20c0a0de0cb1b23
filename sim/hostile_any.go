package sim

import (
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
)

// noEnd leaves out what says that the stream reached its end.
func noEnd(s *wireStream) {
	switch s.dialect {
	case dragoman.OpenAIChat:
		s.frames = s.frames[:s.lastChunk()]
	case dragoman.OpenAIResponses:
		s.keep(func(f *frame) bool {
			return !f.has("response.completed") && !f.has("response.incomplete") && !f.has("response.failed")
		})
	case dragoman.Anthropic:
		s.keep(func(f *frame) bool { return !f.has("message_delta") && !f.has("message_stop") })
	case dragoman.Gemini:
		for i := range s.frames {
			if c := objectAt(s.frames[i].data, "candidates", 0); c != nil {
				c.remove("finishReason")
			}
		}
	case dragoman.Ollama:
		s.keep(func(f *frame) bool { return at(f.data, "done") != true })
	case dragoman.Bedrock:
		s.keep(func(f *frame) bool { return f.name != "messageStop" && f.name != "metadata" })
	}
}

// openEnd ends the stream within the last call, or the last text, there is: one
// event before what ends it.
func openEnd(s *wireStream) {
	noEnd(s)
	s.frames = s.frames[:max(1, len(s.frames)-2)]
}

// comments puts keep-alives between all events.
func comments(s *wireStream) {
	for i := len(s.frames) - 1; i >= 0; i-- {
		s.insert(i, frame{raw: []byte(": PROCESSING\n\n")}, frame{raw: []byte(":\n")})
	}
}

// bytewise flushes each byte by itself, so that characters are cut in two.
func bytewise(s *wireStream) { s.bytewise = true }

// loneSurrogate ends the first fragment of text with half a character.
func loneSurrogate(s *wireStream) {
	paths := map[dragoman.Dialect][]any{
		dragoman.OpenAIChat:      {"choices", 0, "delta", "content"},
		dragoman.OpenAIResponses: {"delta"},
		dragoman.Anthropic:       {"delta", "text"},
		dragoman.Gemini:          {"candidates", 0, "content", "parts", 0, "text"},
		dragoman.Ollama:          {"message", "content"},
		dragoman.Bedrock:         {"delta", "text"},
	}
	path := paths[s.dialect]
	for i := range s.frames {
		f := &s.frames[i]
		text, ok := at(f.data, path...).(string)
		thought := at(f.data, "candidates", 0, "content", "parts", 0, "thought") == true
		if !ok || text == "" || thought || s.dialect == dragoman.OpenAIResponses && !f.has("response.output_text.delta") {
			continue
		}
		of := objectAt(f.data, path[:len(path)-1]...)
		quoted := string(appendTree(nil, text))
		of.set(path[len(path)-1].(string), rawJSON(strings.TrimSuffix(quoted, `"`)+`\ud83d"`))
		return
	}
}

// oddLines ends lines with CR LF, sends a very long one, and leaves the last event
// without its end.
func oddLines(s *wireStream) {
	s.crlf, s.open = true, true
	if s.isSSE() {
		s.insert(len(s.frames)/2, frame{raw: []byte(":" + strings.Repeat("x", 100_000) + "\r\n\r\n")})
	}
}

// blankTail adds white space behind the arguments of each call.
func blankTail(s *wireStream) {
	if s.dialect == dragoman.OpenAIChat {
		chatBlankTail(s)
		return
	}
	s.withInput(" \n")
}

// interleaved lets the fragments of calls take turns.
func interleaved(s *wireStream) {
	if s.dialect == dragoman.OpenAIChat {
		chatInterleaved(s)
		return
	}
	blocksInterleaved(s)
}

// wholeArguments tells the arguments of each call at once; in Chat as an object.
func wholeArguments(s *wireStream) {
	if s.dialect == dragoman.OpenAIChat {
		chatBundled(s, true, true)
		return
	}
	wholeDeltas(s)
}

func together(s *wireStream) {
	if s.dialect == dragoman.OpenAIChat {
		chatTogether(s)
		return
	}
	geminiTogether(s)
}

// failsMidway ends the answer with an error of the server, in the middle.
func failsMidway(events []dragoman.Event) []dragoman.Event {
	return append(events[:len(events)/2:len(events)/2], &dragoman.StreamError{Err: &dragoman.APIError{
		Class: dragoman.ErrorOverloaded, Message: "the simulator was asked to fail here",
	}})
}

// endsWithLength says of a whole answer that the output limit ended it, so that
// its last call may lack what nobody sees is missing.
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

// singleCharacters tells everything one character at a time.
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

// twoChoices answers twice at once, the events of both taking turns.
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
