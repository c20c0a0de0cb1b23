package openaichat

import (
	"fmt"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// What answers are for clients that declared their tools as functions, the older form:
// a message has one function_call, which has no id and is never freeform.

// forFunctions are the options for such a client, whoever it is: what came natively has
// calls in the form of the server that was asked.
func forFunctions(o dialect.EncodeOptions) dialect.EncodeOptions {
	if o.LegacyFunctions {
		o.Rebuild = true
		o.Target.Caps.NoCustomTools = true
	}
	return o
}

// functionCall writes the first call of a message that is one.
func (e *messageEncoder) functionCall(calls []placed) error {
	written := false
	for _, c := range calls {
		call, ok := c.part.(*dragoman.ToolCall)
		if !ok {
			e.rep.Add(dragoman.Dropped, dragoman.Serious, c.at.String(), "a call that cannot be read has no place in a function_call")
			continue
		}
		if written {
			e.leaveOut(call, c.at)
			continue
		}
		written = true
		var whole jsonwire.Writer
		if err := e.reg.WriteCall(&whole, call, c.at, e.rep); err != nil {
			return fmt.Errorf("openaichat: %s: %w", c.at, err)
		}
		e.withoutID(call, c.at)
		e.withoutMembers(call, c.at, false)
		e.w.RawField("function_call", member(whole.Buf, "function"))
	}
	return nil
}

// leaveOut reports a call that its client is not told of.
func (e *messageEncoder) leaveOut(c *dragoman.ToolCall, at extra.Path) {
	e.rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "call of %.80q: a client of functions is told of one call at a time, and another is", c.Name)
}

// withoutID reports that a function_call does not say which call it is.
func (e *messageEncoder) withoutID(c *dragoman.ToolCall, at extra.Path) {
	if c.ID != "" && !c.Synthetic {
		e.rep.Add(dragoman.Dropped, dragoman.Info, at.String()+"/id", "a function_call has no id; its result is known by the name")
	}
}

// withoutMembers reports the members of a call that a function_call has no place for: all
// but those of the function itself, and in a stream these as well.
func (e *messageEncoder) withoutMembers(c *dragoman.ToolCall, at extra.Path, streamed bool) {
	for _, f := range c.Extra.For(name) {
		if streamed || !strings.HasPrefix(f.Path, "/function/") {
			e.rep.Add(dragoman.Dropped, dragoman.Warn, at.String()+f.Path, "a function_call has a name and arguments")
		}
	}
}

// member is a member of an object.
func member(object []byte, want string) (value []byte) {
	r := jsonwire.NewReader(object)
	for key := range r.Object() {
		if raw := r.Raw(); string(key) == want {
			value = raw
		}
	}
	return value
}

// finish is a finish reason as the client knows it.
func (e *messageEncoder) finish(word string) string {
	if e.legacy && word == "tool_calls" {
		return "function_call"
	}
	return word
}

// functionStart tells of a call of a stream, if it is the first of its choice.
func (e *streamEncoder) functionStart(dst []byte, choice int, p *sentPart, c *dragoman.ToolCall) []byte {
	if e.calls[choice] > 0 {
		p.mute = true
		e.leaveOut(c, p.at)
		return dst
	}
	inc(&e.calls, choice)
	p.legacy = true
	e.withoutID(c, p.at)
	return e.write(dst, choice, "", func(w *jsonwire.Writer) {
		w.Key("function_call")
		w.BeginObject()
		w.StringField("name", e.reg.WireName(c.Namespace, c.Name))
		w.StringField("arguments", "")
		w.EndObject()
	})
}

// legacyDelta writes one member of the older function_call.
func legacyDelta(w *jsonwire.Writer, member, text string) {
	w.Key("function_call")
	w.BeginObject()
	w.StringField(member, text)
	w.EndObject()
}
