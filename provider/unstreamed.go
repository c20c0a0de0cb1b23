package provider

import (
	"bytes"
	"context"
	"iter"

	dragoman "github.com/dragoman-go/dragoman"
)

// A server may ignore that a stream was asked for and answer at once: proxies
// that gather, models that cannot stream beside tools, gateways that forget the
// flag. What it says is the answer all the same, so it is told as a stream.

// maxPeek bounds what is read to see whether an answer is a stream.
const maxPeek = 512

// unstreamed reports whether the body is one JSON object where a stream was asked
// for. The content type is not believed: streams come under any. Ollama's whole
// answer is a stream of one line, and needs no help.
func (a *answer) unstreamed() bool {
	if a.x.limits.Dialect == dragoman.Ollama {
		return false
	}
	// No event begins with a brace, and no frame of Bedrock's is that long.
	return a.peek() == '{'
}

// peek is the first byte of the body that is no white space; 0 where there is
// none. What it reads is read again.
func (a *answer) peek() byte {
	head := make([]byte, 0, maxPeek)
	for a.after == nil && len(head) < cap(head) {
		n, err := a.read(head[len(head):cap(head)])
		head, a.after = head[:len(head)+n], err
		a.head = head
		if text := bytes.TrimLeft(head, " \t\r\n"); len(text) > 0 {
			return text[0]
		}
	}
	return 0
}

// tell reads the whole answer and hands it out as a stream would. One that is no
// answer is left to the decoder of streams, which knows what errors look like.
func (x *exchange) tell(ctx context.Context, a *answer, yield func(dragoman.Event) bool) error {
	body, err := a.body(x.client.maxResponse())
	if err != nil {
		return broken(err, nil)
	}
	resp, err := x.understand(ctx, a, body)
	switch {
	case resp == nil && ctx.Err() == nil && !isExtensionError(err):
		return x.decode(ctx, a, bytes.NewReader(body), yield)
	case resp == nil:
		return err
	}
	for ev := range told(resp, x.lost(dragoman.Report{})) {
		if !yield(ev) {
			return errLeft
		}
	}
	if resp.Error != nil && !yield(&dragoman.StreamError{Err: resp.Error, Usage: resp.Usage}) {
		return errLeft
	}
	return err
}

// told are the events of a stream that tells a response, up to its error where it
// has one. What was lost on the way there is known at its beginning.
func told(resp *dragoman.Response, there dragoman.Report) iter.Seq[dragoman.Event] {
	return func(yield func(dragoman.Event) bool) {
		head := *resp
		head.Output, head.Alternatives, head.Losses = nil, nil, dragoman.Report{}
		begun := head
		begun.Usage, begun.Error, begun.Losses = dragoman.Usage{}, nil, there
		if !yield(&dragoman.ResponseStart{Response: begun}) || !tellChoice(0, resp.Output, yield) {
			return
		}
		end := &dragoman.ResponseEnd{Stop: resp.Stop, Usage: resp.Usage, Response: head}
		end.Response.Losses = resp.Losses
		for _, c := range resp.Alternatives {
			end.Stops = append(end.Stops, c.Stop)
			if !tellChoice(c.Index, c.Output, yield) {
				return
			}
		}
		if resp.Error == nil {
			yield(end)
		}
	}
}

// tellChoice tells the messages of one candidate.
func tellChoice(choice int, output []dragoman.Message, yield func(dragoman.Event) bool) bool {
	index := 0
	for n := range output {
		for i, p := range output[n].Parts {
			start := &dragoman.PartStart{Choice: choice, Index: index, Message: n, Part: skeleton(p)}
			if i == 0 {
				header := output[n]
				header.Parts = nil
				start.Header = &header
			}
			if !yield(start) || !tellDeltas(choice, index, p, yield) || !yield(&dragoman.PartEnd{Choice: choice, Index: index, Part: p}) {
				return false
			}
			index++
		}
	}
	return true
}

// tellDeltas tells what of a part grows, each in one piece.
func tellDeltas(choice, index int, p dragoman.Part, yield func(dragoman.Event) bool) bool {
	delta := func(text string, summary int) bool {
		return text == "" || yield(&dragoman.PartDelta{Choice: choice, Index: index, Kind: p.Kind(), Text: text, Summary: summary})
	}
	switch p := p.(type) {
	case *dragoman.Text:
		return delta(p.Text, 0)
	case *dragoman.Refusal:
		return delta(p.Text, 0)
	case *dragoman.ToolCall:
		return delta(p.Arguments, 0)
	case *dragoman.Reasoning:
		if !delta(p.Text, 0) {
			return false
		}
		for i, s := range p.Summary {
			if !delta(s, i+1) {
				return false
			}
		}
	}
	return true
}

// skeleton is what the start of a part tells of it.
func skeleton(p dragoman.Part) dragoman.Part {
	switch p := p.(type) {
	case *dragoman.Text:
		return &dragoman.Text{}
	case *dragoman.Refusal:
		return &dragoman.Refusal{}
	case *dragoman.Reasoning:
		return &dragoman.Reasoning{ID: p.ID, Redacted: p.Redacted}
	case *dragoman.ToolCall:
		return &dragoman.ToolCall{ID: p.ID, Name: p.Name, Namespace: p.Namespace, Payload: p.Payload, Hosted: p.Hosted}
	default:
		return p
	}
}
