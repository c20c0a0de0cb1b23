package anthropic

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/blockwire"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// EncodeResponse implements [dialect.Codec]. All output messages become the
// content of one message. A response of this dialect that was not changed is
// written byte for byte.
func (c Codec) EncodeResponse(resp *dragoman.Response, o dialect.EncodeOptions) (dialect.Encoded, error) {
	return format.EncodeResponse(resp, o, func(base blockwire.ResponseEncoder, w *jsonwire.Writer) error {
		e := responseEncoder{base}
		w.BeginObject()
		e.header(w, resp)
		w.Key("content")
		w.BeginArray()
		calls, refused, err := e.Blocks(w, resp)
		if err != nil {
			return err
		}
		effective := wirekit.EffectiveStop(resp.Stop, resp.ToolCalls(), wirekit.BlockedReason)
		note, rest := e.failure(effective, calls, resp.Extra)
		if note != "" {
			writeText(w, &dragoman.Text{Text: note}, extra.At("/stop"), e.Rep)
		}
		w.EndArray()
		e.stop(w, resp.Stop, effective, resp.Origin, calls, refused)
		w.Key("usage")
		writeUsage(w, resp.Usage, responseTiers().ResponseTier(resp.ServiceTier, resp.Origin, e.Rep), e.Rep)
		extra.WriteUnless(w, resp.Extra, name, func(path string) bool { return path == "/stop_details" && resp.Stop.Details != nil })
		w.EndObject()
		e.reportResponse(resp, rest)
		return nil
	})
}

// responseEncoder writes the parts shared by responses and streams.
type responseEncoder struct{ blockwire.ResponseEncoder }

// header writes the fields that every message starts with.
func (e *responseEncoder) header(w *jsonwire.Writer, resp *dragoman.Response) {
	id := resp.ID
	if id == "" {
		id = wirekit.SyntheticID("msg_", e.Options.Seed)
		wirekit.ReportNewID(e.Rep, id)
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

// failure returns the text of a response that failed at a call. The API has no
// stop reason for that, so without the text the response would be an empty
// success (quirk B21). The text is empty for any other stop, and if there are
// calls, because then a stop reason exists that keeps them from running. rest
// holds the extra fields that the text does not include.
func (e *responseEncoder) failure(s dragoman.Stop, calls bool, fields *dragoman.Extra) (note string, rest *dragoman.Extra) {
	if s.Reason != dragoman.StopMalformedCall || calls {
		return "", fields
	}
	note, rest = wirekit.Ended(s.Reason, fields)
	e.Rep.Add(dragoman.Synthesized, dragoman.Warn, "/output", "text added to report that the response failed: the API has no stop reason for it")
	return "[" + note + "]", rest
}

// reportResponse reports the fields of a response that cannot be written.
// fields are its extra fields except those already written.
func (e *responseEncoder) reportResponse(resp *dragoman.Response, fields *dragoman.Extra) {
	e.ReportResponse(resp, fields)
	if !resp.Created.IsZero() {
		e.Rep.Add(dragoman.Dropped, dragoman.Info, "/created", "the API does not report a creation time")
	}
}

// stop writes the stop s. original is the stop before it was replaced because
// of a blocked call.
func (e *responseEncoder) stop(w *jsonwire.Writer, original, s dragoman.Stop, origin *dragoman.Origin, calls, refused bool) {
	s = e.RefusalStop(s, refused, dragoman.StopRefusal, "refusal, because the response is one")
	own := origin != nil && origin.Dialect == name
	if !own && s.Reason == dragoman.StopSequence && s.Sequence == "" { // clients expect a sequence with this stop reason
		e.Rep.Add(dragoman.Lowered, dragoman.Info, "/stop", "the stop sequence that matched is unknown")
		if s = (dragoman.Stop{Reason: dragoman.StopEnd}); calls { // calls do not run after a stop sequence
			s.Reason = dragoman.StopUnknown
		}
	}
	reason, exact := e.StopValue(s, own, calls)
	if !exact {
		severity := dragoman.Warn
		if reason == "end_turn" { // a failure that looks like a success (quirk B21)
			severity = dragoman.Serious
		}
		e.Rep.Addf(dragoman.Lowered, severity, "/stop", "stop reason %s written as %s", s.Reason, reason)
	} else if !refused {
		wirekit.ReportBlocked(e.Rep, original, s, reason, "")
	}
	w.StringField("stop_reason", reason)
	w.StringFieldOrNull("stop_sequence", s.Sequence)
	if s.Details != nil && s.Details.Format == formatDetails {
		w.RawField("stop_details", s.Details.JSON)
		return
	}
	wirekit.ReportDetails(e.Rep, original, "")
	if reason == "refusal" && !own { // clients expect details with a refusal; none are known
		w.RawField("stop_details", []byte(`{"type":"refusal","category":null,"explanation":null}`))
	}
}
