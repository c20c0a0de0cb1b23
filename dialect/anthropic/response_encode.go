package anthropic

import (
	"fmt"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/blockwire"
	"github.com/dragoman-go/dragoman/internal/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/toolwire"
	"github.com/dragoman-go/dragoman/internal/wirekit"
	"github.com/dragoman-go/dragoman/interop"
)

// EncodeResponse implements [dialect.Codec]. All messages of the output become
// the content of one; a response that came from this dialect and was not
// changed is written byte for byte.
func (c Codec) EncodeResponse(resp *dragoman.Response, o dialect.EncodeOptions) (dialect.Encoded, error) {
	if err := resp.Validate(); err != nil {
		return dialect.Encoded{}, err
	}
	if err := wirekit.CheckEncode(name, o); err != nil {
		return dialect.Encoded{}, err
	}
	reg := wirekit.AnswerRegistry(resp, c.Limits(), toolCodecs, o)
	if body, ok := wirekit.ReplayResponse(resp, name, o); ok && !wirekit.Overtaken(resp, wirekit.Barred) {
		return dialect.Encoded{Body: body, Registry: reg}, nil
	}
	rep := new(dragoman.Report)
	if resp.Error != nil {
		_, body, lost := c.EncodeError(resp.Error)
		wirekit.ReportFailed(rep, resp, name)
		rep.Merge("/error", lost)
		return dialect.Encoded{Body: body, Report: *rep, Registry: reg}, nil //nolint:nilerr // the error is what is encoded
	}
	e := answerEncoder{reg: reg, o: o, rep: rep}
	w := jsonwire.Writer{Buf: make([]byte, 0, wirekit.ResponseSize(resp))}
	w.BeginObject()
	e.header(&w, resp)
	w.Key("content")
	w.BeginArray()
	calls, refused := false, false
	for i := range resp.Output {
		m := &resp.Output[i]
		at := extra.Elem("/output", i)
		blockwire.ReportHeader(e.rep, m, name, at)
		for j, p := range m.Parts {
			calls = calls || p.Kind() == dragoman.KindToolCall
			refused = refused || p.Kind() == dragoman.KindRefusal
			origin := m.Origin
			if origin == nil {
				origin = resp.Origin
			}
			if err := e.block(&w, origin, p, at.Elem("parts", j)); err != nil {
				return dialect.Encoded{Report: *rep, Registry: reg}, err
			}
		}
	}
	standing := wirekit.Standing(resp.Stop, resp.ToolCalls(), wirekit.Barred)
	note, told := e.failure(standing, calls, resp.Extra)
	if note != "" {
		writeText(&w, &dragoman.Text{Text: note}, extra.At("/stop"), e.rep)
	}
	w.EndArray()
	e.stop(&w, resp.Stop, standing, resp.Origin, calls, refused)
	w.Key("usage")
	writeUsage(&w, resp.Usage, answerTiers().Answer(resp.ServiceTier, resp.Origin, rep), rep)
	writeExtras(&w, resp.Extra, func(path string) bool { return path == "/stop_details" && resp.Stop.Details != nil })
	w.EndObject()
	e.unsaidResponse(resp, told)
	return wirekit.Encoded(name, &w, rep, reg, nil)
}

// answerEncoder writes the pieces that a response and a stream share.
type answerEncoder struct {
	reg *interop.Registry
	o   dialect.EncodeOptions
	rep *dragoman.Report
}

// header writes the members every message starts with.
func (e *answerEncoder) header(w *jsonwire.Writer, resp *dragoman.Response) {
	id := resp.ID
	if id == "" {
		id = wirekit.SyntheticID("msg_", e.o.Seed)
		wirekit.ReportMinted(e.rep, id)
	}
	model := resp.Model
	if e.o.Model != "" {
		model = e.o.Model
	}
	w.StringField("id", id)
	w.StringField("type", "message")
	w.StringField("role", "assistant")
	w.StringField("model", model)
}

// failure is the text of an answer that failed at a call, which the API has no
// word for: without one the answer is an empty success (quirk B21). It is empty
// for any other stop, and beside calls, which have a word that lets none run.
// told are the members of the answer that it does not say.
func (e *answerEncoder) failure(s dragoman.Stop, calls bool, members *dragoman.Extra) (note string, told *dragoman.Extra) {
	if s.Reason != dragoman.StopMalformedCall || calls {
		return "", members
	}
	note, told = wirekit.Ended(s.Reason, members)
	e.rep.Add(dragoman.Synthesized, dragoman.Warn, "/output", "a text says that the response failed, because the API has no stop reason for that")
	return "[" + note + "]", told
}

// unsaidResponse reports what of a response has no place; members are its own
// without those that were told.
func (e *answerEncoder) unsaidResponse(resp *dragoman.Response, members *dragoman.Extra) {
	extra.ReportEcho(e.rep, members, name, extra.At(""))
	if n := len(resp.Alternatives); n > 0 {
		e.rep.Addf(dragoman.Dropped, dragoman.Serious, "/alternatives", "%d further candidate(s); the API answers with one", n)
	}
	if !resp.Created.IsZero() {
		e.rep.Add(dragoman.Dropped, dragoman.Info, "/created", "the API tells no time")
	}
}

// stop writes why the message ended: what stands of what was told.
func (e *answerEncoder) stop(w *jsonwire.Writer, told, s dragoman.Stop, origin *dragoman.Origin, calls, refused bool) {
	if refused && (s.Reason == dragoman.StopEnd || s.Reason == dragoman.StopNone) {
		e.rep.Addf(dragoman.Lowered, dragoman.Info, "/stop", "stop %s written as refusal, because the answer is one", s.Reason)
		s = dragoman.Stop{Reason: dragoman.StopRefusal}
	}
	own := origin != nil && origin.Dialect == name
	if !own && s.Reason == dragoman.StopSequence && s.Sequence == "" { // a word that clients look for the sequence by
		e.rep.Add(dragoman.Lowered, dragoman.Info, "/stop", "nobody says which sequence stopped it")
		if s = (dragoman.Stop{Reason: dragoman.StopEnd}); calls { // which do not run
			s.Reason = dragoman.StopUnknown
		}
	}
	word, exact := wordOf(s, own, calls)
	if !exact {
		severity := dragoman.Warn
		if word == "end_turn" { // a failure that looks like a success (quirk B21)
			severity = dragoman.Serious
		}
		e.rep.Addf(dragoman.Lowered, severity, "/stop", "stop %s written as %s", s.Reason, word)
	} else if !refused {
		wirekit.ReportBarred(e.rep, told, s, word, "")
	}
	w.StringField("stop_reason", word)
	w.StringFieldOrNull("stop_sequence", s.Sequence)
	if s.Details != nil && s.Details.Format == formatDetails {
		w.RawField("stop_details", s.Details.JSON)
		return
	}
	wirekit.ReportDetails(e.rep, told, "")
	if word == "refusal" && !own { // which is told with why; nobody has said
		w.RawField("stop_details", []byte(`{"type":"refusal","category":null,"explanation":null}`))
	}
}

// block writes one part of an answer; what has no block is reported.
func (e *answerEncoder) block(w *jsonwire.Writer, origin *dragoman.Origin, p dragoman.Part, at extra.Path) error {
	switch p := p.(type) {
	case *dragoman.Text:
		t := *p
		t.Cache = nil
		writeText(w, &t, at, e.rep)
	case *dragoman.Refusal:
		e.rep.Add(dragoman.Lowered, dragoman.Info, at.String(), "a refusal written as text")
		writeText(w, &dragoman.Text{Text: p.Text}, at, e.rep)
		extra.Report(e.rep, p.Extra, name, at)
	case *dragoman.Data:
		writeText(w, &dragoman.Text{Text: string(p.JSON)}, at, e.rep)
	case *dragoman.Reasoning:
		signature := blockwire.Signature(p, origin, name, at, e.rep)
		if blockwire.Shows(p, origin, name) {
			writeReasoning(w, p, signature)
		}
		extra.Report(e.rep, p.Extra, name, at)
	case *dragoman.ToolCall:
		if p.Hosted {
			e.rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "call of %q was run by its provider", p.Name)
			return nil
		}
		call := e.identified(p, at)
		if err := e.reg.WriteCall(w, call, at, e.rep); err != nil {
			return fmt.Errorf("anthropic: %s: %w", at, err)
		}
	case *dragoman.Opaque:
		if p.Dialect != name {
			e.rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "%s of %s has no place here", extra.A(p.Type), p.Dialect)
			return nil
		}
		w.Raw(p.JSON)
	case *dragoman.Media:
		e.rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "an answer takes no %s; a note stands in for it", p.Media)
		writeText(w, &dragoman.Text{Text: toolwire.Placeholder(p)}, at, e.rep)
	default:
		e.rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "%s has no place in an answer", extra.A(string(p.Kind())))
	}
	return nil
}

// identified returns a call with an id, which the wire demands.
func (e *answerEncoder) identified(c *dragoman.ToolCall, at extra.Path) *dragoman.ToolCall {
	if c.ID != "" {
		return c
	}
	call := *c
	call.ID = wirekit.SyntheticID(idPrefix, e.o.Seed+at.String())
	e.rep.Addf(dragoman.Synthesized, dragoman.Info, at.String(), "call id %q", call.ID)
	return &call
}
