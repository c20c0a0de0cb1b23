package openaichat

import (
	"fmt"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// Responses for clients that declared their tools as functions, the older form: a message has one
// function_call, which has no id and is never freeform.

// legacyOptions returns the options for such a client. Native messages are rebuilt, because they
// have calls in the form of the upstream.
func legacyOptions(o dialect.EncodeOptions) dialect.EncodeOptions {
	if o.LegacyFunctions {
		o.Rebuild = true
		o.Target.Caps.NoCustomTools = true
	}
	return o
}

// functionCall writes the first readable call of a message as its function_call.
func (e *messageEncoder) functionCall(calls []placed) error {
	written := false
	for _, c := range calls {
		call, ok := c.part.(*dragoman.ToolCall)
		if !ok {
			e.rep.Add(dragoman.Dropped, dragoman.Serious, c.at.String(), "a malformed call cannot be written as a function_call")
			continue
		}
		if written {
			e.reportExtraCall(call, c.at)
			continue
		}
		written = true
		var whole jsonwire.Writer
		if err := e.reg.WriteCall(&whole, call, c.at, e.rep); err != nil {
			return fmt.Errorf("openaichat: %s: %w", c.at, err)
		}
		e.reportDroppedID(call, c.at)
		e.reportDroppedFields(call, c.at, false)
		e.w.RawField("function_call", fieldValue(whole.Buf, "function"))
	}
	return nil
}

// reportExtraCall reports a call that is not sent, because the message already has one.
func (e *messageEncoder) reportExtraCall(c *dragoman.ToolCall, at extra.Path) {
	e.rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "call of %.80q: clients that declare functions accept one call per message, and another is sent", c.Name)
}

// reportDroppedID reports that a function_call has no id.
func (e *messageEncoder) reportDroppedID(c *dragoman.ToolCall, at extra.Path) {
	if c.ID != "" && !c.Synthetic {
		e.rep.Add(dragoman.Dropped, dragoman.Info, at.String()+"/id", "a function_call has no id; its result is matched by name")
	}
}

// reportDroppedFields reports the unknown fields of a call that a function_call cannot have: all
// but those of the function itself, and in a stream these as well.
func (e *messageEncoder) reportDroppedFields(c *dragoman.ToolCall, at extra.Path, streamed bool) {
	for _, f := range c.Extra.For(name) {
		if streamed || !strings.HasPrefix(f.Path, "/function/") {
			e.rep.Add(dragoman.Dropped, dragoman.Warn, at.String()+f.Path, "a function_call has only a name and arguments")
		}
	}
}

func fieldValue(object []byte, want string) (value []byte) {
	r := jsonwire.NewReader(object)
	for key := range r.Object() {
		if raw := r.Raw(); string(key) == want {
			value = raw
		}
	}
	return value
}

// finish returns the finish reason in the form that the client knows.
func (e *messageEncoder) finish(word string) string {
	if e.legacy && word == "tool_calls" {
		return "function_call"
	}
	return word
}

// functionStart starts a call of a stream, if it is the first of its choice. Further calls are
// suppressed and reported.
func (e *streamEncoder) functionStart(dst []byte, choice int, p *sentPart, c *dragoman.ToolCall) []byte {
	if e.calls[choice] > 0 {
		p.suppressed = true
		e.reportExtraCall(c, p.at)
		return dst
	}
	inc(&e.calls, choice)
	p.legacy = true
	e.reportDroppedID(c, p.at)
	return e.write(dst, choice, "", func(w *jsonwire.Writer) {
		w.Key("function_call")
		w.BeginObject()
		w.StringField("name", e.reg.WireName(c.Namespace, c.Name))
		w.StringField("arguments", "")
		w.EndObject()
	})
}

// legacyDelta writes one field of the older function_call.
func legacyDelta(w *jsonwire.Writer, field, text string) {
	w.Key("function_call")
	w.BeginObject()
	w.StringField(field, text)
	w.EndObject()
}
