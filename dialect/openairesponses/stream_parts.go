package openairesponses

import (
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
)

// delta writes a fragment of a part.
func (e *streamEncoder) delta(p *outputPart, summary int, text string) {
	if p.item.kind == reasoningItem {
		if summary > 0 {
			e.summaryDelta(p, summary, text)
		} else {
			e.thinkingDelta(p, text)
		}
		return
	}
	p.sent = append(p.sent, text...)
	switch {
	case p.item.kind == messageItem && p.refusal():
		e.textEvent("response.refusal.delta", p, "delta", text)
	case p.item.kind == messageItem:
		e.textEvent("response.output_text.delta", p, "delta", text)
	case p.item.kind == callItem && p.item.freeform:
		e.callEvent("response.custom_tool_call_input.delta", p, "delta", text)
	case p.item.kind == callItem:
		e.callEvent("response.function_call_arguments.delta", p, "delta", text)
	}
}

// textEvent writes an event about the text of a content part. Clients require logprobs with
// output text.
func (e *streamEncoder) textEvent(typ string, p *outputPart, key, text string) {
	w := e.contentEvent(typ, p)
	w.StringField(key, text)
	if !e.fields.Has(fieldPrefix(typ)+"/logprobs") && strings.HasPrefix(typ, "response.output_text.") {
		w.RawField("logprobs", []byte("[]"))
	}
	e.send(typ)
}

func (e *streamEncoder) callEvent(typ string, p *outputPart, key, text string) {
	w := e.itemEvent(typ, p.item)
	w.StringField(key, text)
	e.send(typ)
}

// partEnd ends a part with its final value; nil means the text that was sent.
func (e *streamEncoder) partEnd(p *outputPart, final dragoman.Part) {
	p.ended = true
	switch p.item.kind {
	case messageItem:
		e.endContent(p, final)
	case callItem:
		e.endCall(p, final)
	case reasoningItem:
		e.endReasoning(p, final)
	default:
		if o, ok := final.(*dragoman.Opaque); ok && len(o.JSON) > 0 {
			p.item.parts = []dragoman.Part{o}
		} else if p.item.index < 0 {
			return // the item was never added
		}
		if p.item.index < 0 {
			e.add(p.item)
		}
		e.finish(p.item)
	}
}

func (e *streamEncoder) endContent(p *outputPart, final dragoman.Part) {
	text := ""
	switch f := final.(type) {
	case *dragoman.Text:
		text = f.Text
	case *dragoman.Refusal:
		text = f.Text
	case *dragoman.Data:
		text = string(f.JSON)
	}
	if text == "" {
		text = string(p.sent) // an empty value never overwrites
	}
	if missing := missingEnd(p.sent, text); missing != "" {
		e.delta(p, 0, missing)
	}
	// The part keeps the kind it started with.
	var part dragoman.Part
	if p.refusal() {
		f, ok := final.(*dragoman.Refusal)
		if !ok {
			f = &dragoman.Refusal{}
		}
		part = &dragoman.Refusal{Text: text, Extra: f.Extra}
		e.textEvent("response.refusal.done", p, "refusal", text)
	} else {
		f, ok := final.(*dragoman.Text)
		if !ok {
			f = &dragoman.Text{}
		}
		part = &dragoman.Text{Text: text, Signature: f.Signature, Extra: f.Extra}
		e.textEvent("response.output_text.done", p, "text", text)
	}
	it := p.item
	it.parts[p.index] = part
	w := e.contentEvent("response.content_part.done", p)
	w.Key("part")
	reports := e.rep
	e.rep = new(dragoman.Report) // the item reports
	e.writePart(w, part, it.places[p.index])
	e.rep = reports
	e.send("response.content_part.done")
	if it.open--; it.open == 0 && e.message != it {
		e.finish(it)
	}
}

func (e *streamEncoder) endCall(p *outputPart, final dragoman.Part) {
	it := p.item
	c, ok := final.(*dragoman.ToolCall)
	if !ok { // the call has no end
		part := *it.parts[0].(*dragoman.ToolCall)
		part.Arguments = string(p.sent)
		part.Status = codes.StatusIncomplete
		part.Problem = truncated("the stream ended inside the call")
		c = &part
	}
	it.parts = []dragoman.Part{c}
	it.status = callStatus(c)
	it.payload = payloadOf(c, it.freeform)
	text := it.payload.text
	if shown, ok := p.kind.(*dragoman.ToolCall); ok &&
		(shown.Name != "" && (shown.Name != c.Name || shown.Namespace != c.Namespace) || it.freeform && it.payload.ambiguousText || !continuesStream(string(p.sent), text)) {
		// The client may have a mix of both calls. The end has the final one, as in native
		// streams, and no call of the response may run.
		it.spliced, it.status = true, "incomplete"
		e.rep.Addf(dragoman.Lowered, dragoman.Serious, it.at.String(), "the final call %.60q differs from the streamed one; the response is written as incomplete", c.ID)
	}
	if missing := missingEnd(p.sent, text); missing != "" {
		e.delta(p, 0, missing)
	}
	if it.freeform {
		e.callEvent("response.custom_tool_call_input.done", p, "input", text)
	} else {
		e.callEvent("response.function_call_arguments.done", p, "arguments", text)
	}
	e.finish(it)
}

// summaryDelta writes a fragment of summary n, counted from 1. One summary is open at a time;
// skipped positions are empty.
func (e *streamEncoder) summaryDelta(p *outputPart, n int, text string) {
	if n > maxSummaries || n < len(p.summaries) {
		return // already closed; the final item has the text
	}
	for len(p.summaries) < n {
		e.closeSummary(p)
		p.summaries = append(p.summaries, nil)
		p.summary = len(p.summaries)
		e.summaryPart("response.reasoning_summary_part.added", p, "")
	}
	if text == "" {
		return // an empty summary has no deltas
	}
	p.summaries[n-1] = append(p.summaries[n-1], text...)
	e.summaryEvent("response.reasoning_summary_text.delta", p, "delta", text)
}

// maxSummaries bounds the summaries of one item.
const maxSummaries = 4096

func (e *streamEncoder) closeSummary(p *outputPart) {
	if p.summary == 0 {
		return
	}
	text := string(p.summaries[p.summary-1])
	e.summaryEvent("response.reasoning_summary_text.done", p, "text", text)
	e.summaryPart("response.reasoning_summary_part.done", p, text)
	p.summary = 0
}

func (e *streamEncoder) summaryEvent(typ string, p *outputPart, key, text string) {
	w := e.itemEvent(typ, p.item)
	w.IntField("summary_index", int64(p.summary-1))
	w.StringField(key, text)
	e.send(typ)
}

func (e *streamEncoder) summaryPart(typ string, p *outputPart, text string) {
	w := e.itemEvent(typ, p.item)
	w.IntField("summary_index", int64(p.summary-1))
	w.Key("part")
	writeTyped(w, "summary_text", text)
	e.send(typ)
}

// thinkingDelta writes a fragment of the reasoning text, which is content of the reasoning item.
func (e *streamEncoder) thinkingDelta(p *outputPart, text string) {
	if !p.thinking {
		p.thinking = true
		e.thinkingPart("response.content_part.added", p, "")
	}
	p.sent = append(p.sent, text...)
	e.textEvent("response.reasoning_text.delta", p, "delta", text)
}

func (e *streamEncoder) thinkingPart(typ string, p *outputPart, text string) {
	w := e.contentEvent(typ, p)
	w.Key("part")
	writeTyped(w, "reasoning_text", text)
	e.send(typ)
}

func (e *streamEncoder) endReasoning(p *outputPart, final dragoman.Part) {
	r, ok := final.(*dragoman.Reasoning)
	if !ok {
		r = &dragoman.Reasoning{}
	}
	full := *r
	if full.Text == "" {
		full.Text = string(p.sent)
	}
	// Write text that the deltas did not contain, where that is still possible.
	for i, s := range full.Summary {
		switch {
		case i >= len(p.summaries):
			e.summaryDelta(p, i+1, s)
		case i == p.summary-1:
			if missing := missingEnd(p.summaries[i], s); missing != "" {
				e.summaryDelta(p, i+1, missing)
			}
		}
	}
	e.closeSummary(p)
	if full.Summary == nil {
		for _, s := range p.summaries {
			full.Summary = append(full.Summary, string(s))
		}
	}
	if missing := missingEnd(p.sent, full.Text); missing != "" {
		e.thinkingDelta(p, missing)
	}
	if p.thinking {
		e.textEvent("response.reasoning_text.done", p, "text", full.Text)
		e.thinkingPart("response.content_part.done", p, full.Text)
	}
	p.item.parts = []dragoman.Part{&full}
	e.finish(p.item)
}

// unended returns the open parts, in the order of their index.
func (e *streamEncoder) unended() []*outputPart {
	var indexes []int
	for i, p := range e.parts {
		if !p.ended {
			indexes = append(indexes, i)
		}
	}
	slices.Sort(indexes)
	out := make([]*outputPart, len(indexes))
	for i, n := range indexes {
		out[i] = e.parts[n]
	}
	return out
}
