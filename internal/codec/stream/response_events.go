package stream

import (
	"iter"

	dragoman "github.com/dragoman-go/dragoman"
)

// EventsOf returns the events of a stream that is equivalent to a response, up to its error
// if it has one. there holds the losses of the request; the first event carries them.
func EventsOf(resp *dragoman.Response, lost dragoman.Report) iter.Seq[dragoman.Event] {
	return func(yield func(dragoman.Event) bool) {
		head := *resp
		head.Output, head.Alternatives, head.Losses = nil, nil, dragoman.Report{}
		begun := head
		begun.Usage, begun.Error, begun.Losses = dragoman.Usage{}, nil, lost
		if !yield(&dragoman.ResponseStart{Response: begun}) || !yieldChoice(0, resp.Output, yield) {
			return
		}
		end := &dragoman.ResponseEnd{Stop: resp.Stop, Usage: resp.Usage, Response: head}
		end.Response.Losses = resp.Losses
		for _, c := range resp.Alternatives {
			end.Stops = append(end.Stops, c.Stop)
			if !yieldChoice(c.Index, c.Output, yield) {
				return
			}
		}
		if resp.Error == nil {
			yield(end)
		}
	}
}

// yieldChoice yields the events of one choice.
func yieldChoice(choice int, output []dragoman.Message, yield func(dragoman.Event) bool) bool {
	index := 0
	for n := range output {
		for i, p := range output[n].Parts {
			start := &dragoman.PartStart{Choice: choice, Index: index, Message: n, Part: skeleton(p)}
			if i == 0 {
				header := output[n]
				header.Parts = nil
				start.Header = &header
			}
			if !yield(start) || !yieldDeltas(choice, index, p, yield) || !yield(&dragoman.PartEnd{Choice: choice, Index: index, Part: p}) {
				return false
			}
			index++
		}
	}
	return true
}

// yieldDeltas yields one delta for each text of a part.
func yieldDeltas(choice, index int, p dragoman.Part, yield func(dragoman.Event) bool) bool {
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

// skeleton returns the value of a part in its start event.
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
