package anthropic

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/blockwire"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// EncodeResponse implements [dialect.Codec]. All messages of the output become
// the content of one; a response that came from this dialect and was not
// changed is written byte for byte.
func (c Codec) EncodeResponse(resp *dragoman.Response, o dialect.EncodeOptions) (dialect.Encoded, error) {
	return format.EncodeResponse(resp, o, func(answer blockwire.AnswerEncoder, w *jsonwire.Writer) error {
		e := answerEncoder{answer}
		w.BeginObject()
		e.header(w, resp)
		w.Key("content")
		w.BeginArray()
		calls, refused, err := e.Blocks(w, resp)
		if err != nil {
			return err
		}
		standing := wirekit.Standing(resp.Stop, resp.ToolCalls(), wirekit.Barred)
		note, told := e.failure(standing, calls, resp.Extra)
		if note != "" {
			writeText(w, &dragoman.Text{Text: note}, extra.At("/stop"), e.Rep)
		}
		w.EndArray()
		e.stop(w, resp.Stop, standing, resp.Origin, calls, refused)
		w.Key("usage")
		writeUsage(w, resp.Usage, answerTiers().Answer(resp.ServiceTier, resp.Origin, e.Rep), e.Rep)
		extra.WriteUnless(w, resp.Extra, name, func(path string) bool { return path == "/stop_details" && resp.Stop.Details != nil })
		w.EndObject()
		e.unsaidResponse(resp, told)
		return nil
	})
}

// answerEncoder writes the pieces that a response and a stream share.
type answerEncoder struct{ blockwire.AnswerEncoder }

// header writes the members every message starts with.
func (e *answerEncoder) header(w *jsonwire.Writer, resp *dragoman.Response) {
	id := resp.ID
	if id == "" {
		id = wirekit.SyntheticID("msg_", e.Options.Seed)
		wirekit.ReportMinted(e.Rep, id)
	}
	model := resp.Model
	if e.Options.Model != "" {
		model = e.Options.Model
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
	e.Rep.Add(dragoman.Synthesized, dragoman.Warn, "/output", "a text says that the response failed, because the API has no stop reason for that")
	return "[" + note + "]", told
}

// unsaidResponse reports what of a response has no place; members are its own
// without those that were told.
func (e *answerEncoder) unsaidResponse(resp *dragoman.Response, members *dragoman.Extra) {
	e.ReportResponse(resp, members)
	if !resp.Created.IsZero() {
		e.Rep.Add(dragoman.Dropped, dragoman.Info, "/created", "the API tells no time")
	}
}

// stop writes why the message ended: what stands of what was told.
func (e *answerEncoder) stop(w *jsonwire.Writer, told, s dragoman.Stop, origin *dragoman.Origin, calls, refused bool) {
	s = e.RefusalStop(s, refused, dragoman.StopRefusal, "refusal, because the answer is one")
	own := origin != nil && origin.Dialect == name
	if !own && s.Reason == dragoman.StopSequence && s.Sequence == "" { // a word that clients look for the sequence by
		e.Rep.Add(dragoman.Lowered, dragoman.Info, "/stop", "nobody says which sequence stopped it")
		if s = (dragoman.Stop{Reason: dragoman.StopEnd}); calls { // which do not run
			s.Reason = dragoman.StopUnknown
		}
	}
	word, exact := e.WordOf(s, own, calls)
	if !exact {
		severity := dragoman.Warn
		if word == "end_turn" { // a failure that looks like a success (quirk B21)
			severity = dragoman.Serious
		}
		e.Rep.Addf(dragoman.Lowered, severity, "/stop", "stop %s written as %s", s.Reason, word)
	} else if !refused {
		wirekit.ReportBarred(e.Rep, told, s, word, "")
	}
	w.StringField("stop_reason", word)
	w.StringFieldOrNull("stop_sequence", s.Sequence)
	if s.Details != nil && s.Details.Format == formatDetails {
		w.RawField("stop_details", s.Details.JSON)
		return
	}
	wirekit.ReportDetails(e.Rep, told, "")
	if word == "refusal" && !own { // which is told with why; nobody has said
		w.RawField("stop_details", []byte(`{"type":"refusal","category":null,"explanation":null}`))
	}
}
