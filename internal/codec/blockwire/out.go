package blockwire

import (
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/toolwire"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/go-json-experiment/json/jsontext"
)

// unfinished returns the value of a part that did not end.
func (p *Out) unfinished() dragoman.Part {
	text := p.Sent.String() + string(p.waiting)
	switch part := p.Skeleton.(type) {
	case *dragoman.Text:
		t := *part
		t.Text = text
		return &t
	case *dragoman.Refusal:
		return &dragoman.Refusal{Text: text, Extra: part.Extra}
	case *dragoman.Reasoning:
		r := *part
		r.Text = text
		return &r
	case *dragoman.ToolCall:
		c := *part
		c.Arguments = text
		return &c
	default:
		return part
	}
}

// written frees the memory of a part that was written, because a long response has
// many. Of a call that may run, only that fact is needed later.
func (p *Out) written() {
	p.Sent.Free()
	c, ok := p.Final.(*dragoman.ToolCall)
	if !ok || c.Problem != nil {
		return
	}
	if _, blocked := wirekit.BlockedReason(c); !blocked {
		slim := *c
		slim.Arguments = ""
		p.Final = &slim
	}
}

// WholeArguments returns the arguments of a call in the form in which fragments carry
// them.
func (p *Out) WholeArguments(c *dragoman.ToolCall) string {
	switch {
	case c.Payload == codes.PayloadText:
		obj, _ := c.Object()
		return string(obj)
	case p.Sent.Len() == 0: // a client must not get {} to run, nor two values
		object, _ := toolwire.ResponseObject(c)
		return string(object)
	default:
		return c.Arguments
	}
}

// differsFromSent reports whether the end of a part has a different call than its block on
// the wire. Such a block is not closed, because clients run calls whose blocks are
// closed.
func (p *Out) differsFromSent() bool {
	start, was := p.Skeleton.(*dragoman.ToolCall)
	if p.Final == nil {
		return false
	}
	c, is := p.Final.(*dragoman.ToolCall)
	switch {
	case !was || !is:
		return was != is
	case c.Name != start.Name || c.Namespace != start.Namespace || c.Hosted != start.Hosted:
		return true
	}
	sent, whole := p.Sent.String(), p.WholeArguments(c)
	return !strings.HasPrefix(whole, sent) && !sameArguments(sent, whole)
}

// sameArguments reports whether the arguments differ from those that were sent only in
// spelling: in white space, or in an additional level of quotes (quirk B3).
func sameArguments(sent, whole string) bool {
	if s := strings.TrimSpace(sent); strings.HasPrefix(s, `"`) {
		if inside := jsonwire.NewReader([]byte(s)).String(); inside != "" {
			sent = inside
		}
	}
	a, b := jsontext.Value(sent), jsontext.Value(whole)
	return a.Compact() == nil && b.Compact() == nil && string(a) == string(b)
}

// spliced ends the stream with an error, because the call on the wire can no longer
// become the final call.
func (e *Emitter) spliced(dst []byte, p *Out) []byte {
	const why = "the final value of a call differs from its streamed fragments"
	e.rep.Add(dragoman.Dropped, dragoman.Serious, p.At.String(), why+"; the stream ends with an error")
	return e.Wire.Fail(dst, &dragoman.APIError{Class: dragoman.ErrorServer, Message: why})
}
