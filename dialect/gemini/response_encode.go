package gemini

import (
	"strconv"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/toolwire"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/interop"
)

// EncodeResponse implements [dialect.Codec]. All output messages become the
// content of one candidate. A response of this dialect that was not changed is
// written byte for byte.
func (c Codec) EncodeResponse(resp *dragoman.Response, o dialect.EncodeOptions) (dialect.Encoded, error) {
	if err := resp.Validate(); err != nil {
		return dialect.Encoded{}, err
	}
	if err := wirekit.CheckEncode(name, o); err != nil {
		return dialect.Encoded{}, err
	}
	reg := wirekit.ResponseRegistry(resp, c.Limits(), toolCodecs, o)
	if body, ok := replayResponse(resp, o); ok {
		return dialect.Encoded{Body: body, Registry: reg}, nil
	}
	rep := new(dragoman.Report)
	if resp.Error != nil {
		_, body, lost := c.EncodeError(resp.Error)
		wirekit.ReportFailed(rep, resp, name)
		rep.Merge("/error", lost)
		return dialect.Encoded{Body: body, Report: *rep, Registry: reg}, nil //nolint:nilerr // resp.Error is the value to encode
	}
	e := responseEncoder{reg: reg, o: o, rep: rep}
	w := jsonwire.Writer{Buf: make([]byte, 0, wirekit.ResponseSize(resp))}
	w.BeginObject()
	if err := e.candidates(&w, resp); err != nil {
		return dialect.Encoded{Report: *rep, Registry: reg}, err
	}
	e.feedback(&w, resp.Stop)
	w.Key("usageMetadata")
	writeUsage(&w, resp.Usage, responseTiers().ResponseTier(resp.ServiceTier, resp.Origin, rep), rep)
	e.identity(&w, resp)
	extra.WriteBut(&w, resp.Extra, name, "", func(f dragoman.Field) bool { return responseFieldWritten(f, resp.Stop, &resp.Created) })
	w.EndObject()
	extra.ReportEcho(rep, resp.Extra, name, extra.At(""))
	return wirekit.Encoded(name, &w, rep, reg, nil)
}

// replayResponse returns the original body of an unchanged response. It only
// replaces the model.
func replayResponse(resp *dragoman.Response, o dialect.EncodeOptions) ([]byte, bool) {
	if o.Rebuild || !resp.Native.Current(name, resp.Fingerprint) || wirekit.MustRebuild(resp, wirekit.BlockedReason) {
		return nil, false
	}
	model := resp.Model
	if o.Model != "" {
		model = o.Model
	}
	out, err := jsonwire.ReplaceString(resp.Native.Raw, model, []string{"modelVersion"}, []string{"model_version"})
	return out, err == nil
}

// effectiveStop returns the stop to write for an output. If a call must not run, a
// stop after which calls run is replaced.
func effectiveStop(stop dragoman.Stop, out []dragoman.Message) dragoman.Stop {
	for i := range out {
		stop = wirekit.EffectiveStop(stop, out[i].ToolCalls(), wirekit.BlockedReason)
	}
	return stop
}

// responseEncoder writes the parts shared by responses and streams.
type responseEncoder struct {
	reg *interop.Registry
	o   dialect.EncodeOptions
	rep *dragoman.Report
	// recorded holds the records of the current message.
	recorded *wirekit.Records
}

// identity writes the model, the creation time and the response id.
func (e *responseEncoder) identity(w *jsonwire.Writer, resp *dragoman.Response) {
	id := resp.ID
	if id == "" {
		id = wirekit.SyntheticID("", e.o.Seed)
		wirekit.ReportNewID(e.rep, id)
	}
	model := resp.Model
	if e.o.Model != "" {
		model = e.o.Model
	}
	w.StringField("modelVersion", model)
	if !resp.Created.IsZero() {
		w.StringField("createTime", resp.Created.UTC().Format(time.RFC3339Nano))
	}
	w.StringField("responseId", id)
}

// responseFieldWritten reports whether the field f of the extra fields was already written.
func responseFieldWritten(f dragoman.Field, stop dragoman.Stop, created *time.Time) bool {
	return f.Path == "/promptFeedback" && feedback(stop) != nil || f.Path == "/createTime" && !created.IsZero()
}

// feedback returns the prompt feedback of a blocked prompt, or nil.
func feedback(s dragoman.Stop) []byte {
	if s.Details == nil || s.Details.Format != formatFeedback {
		return nil
	}
	return s.Details.JSON
}

func (e *responseEncoder) feedback(w *jsonwire.Writer, s dragoman.Stop) {
	if raw := feedback(s); raw != nil {
		w.RawField("promptFeedback", raw)
	} else {
		wirekit.ReportDetails(e.rep, s, "")
	}
}

// candidates writes the candidates. It writes nothing for a blocked prompt.
func (e *responseEncoder) candidates(w *jsonwire.Writer, resp *dragoman.Response) error {
	if feedback(resp.Stop) != nil && len(resp.Output) == 0 && len(resp.Alternatives) == 0 {
		return nil
	}
	w.Key("candidates")
	w.BeginArray()
	if err := e.candidate(w, resp, 0, resp.Output, resp.Stop); err != nil {
		return err
	}
	for i := range resp.Alternatives {
		a := &resp.Alternatives[i]
		extra.ReportEcho(e.rep, a.Extra, name, extra.At(extra.Choice(i+1)))
		wirekit.ReportDetails(e.rep, a.Stop, extra.Choice(i+1))
		if err := e.candidate(w, resp, i+1, a.Output, a.Stop); err != nil {
			return err
		}
	}
	w.EndArray()
	return nil
}

func (e *responseEncoder) candidate(w *jsonwire.Writer, resp *dragoman.Response, index int, out []dragoman.Message, stop dragoman.Stop) error {
	path := extra.Choice(index) + "/output"
	w.BeginObject()
	w.Key("content")
	w.BeginObject()
	w.Key("parts")
	w.BeginArray()
	empty := len(w.Buf)
	for i := range out {
		m := &out[i]
		at := extra.Elem(path, i)
		e.reportMessage(m, at)
		origin := m.Origin
		if origin == nil {
			origin = resp.Origin
		}
		e.recorded = wirekit.RecordsOf(m.Parts)
		for j, p := range m.Parts {
			if err := e.part(w, origin, p, at.Elem("parts", j)); err != nil {
				return err
			}
		}
	}
	if len(w.Buf) == empty { // clients read the first part without checking
		writeText(w, "", false, "", nil)
	}
	w.EndArray()
	w.StringField("role", wireModel)
	for i := range out {
		extra.WriteBut(w, out[i].Extra, name, "", func(f dragoman.Field) bool { return f.Path == "/role" || i > 0 })
	}
	w.EndObject()
	e.finish(w, index, stop, effectiveStop(stop, out), resp.Origin, countCalls(out))
	w.IntField("index", int64(index))
	extra.Write(w, resp.Extra, name, "/candidates/"+strconv.Itoa(index))
	w.EndObject()
	return nil
}

func countCalls(out []dragoman.Message) (n int) {
	for i := range out {
		n += len(out[i].ToolCalls())
	}
	return n
}

// finish writes the finish reason s. original is the stop before effectiveStop
// replaced it.
func (e *responseEncoder) finish(w *jsonwire.Writer, index int, original, s dragoman.Stop, origin *dragoman.Origin, calls int) {
	own := origin != nil && origin.Dialect == name
	reason, exact := encodeStop(s, own, calls)
	if !exact {
		e.rep.Addf(dragoman.Lowered, dragoman.Warn, extra.Choice(index)+"/stop", "stop reason %s written as %s", s.Reason, reason)
	} else {
		wirekit.ReportBlocked(e.rep, original, s, reason, extra.Choice(index))
	}
	if s.Sequence != "" {
		e.rep.Add(dragoman.Dropped, dragoman.Info, extra.Choice(index)+"/stop/sequence", "the API does not report which stop sequence matched")
	}
	writeEnum(w, "finishReason", reason)
}

func (e *responseEncoder) reportMessage(m *dragoman.Message, at extra.Path) {
	extra.Report(e.rep, m.Extra, name, at)
	wirekit.ReportName(e.rep, m, at)
	if m.Phase != "" {
		e.rep.Addf(dragoman.Dropped, dragoman.Info, at.String()+"/phase", "phase %q", m.Phase)
	}
}

// signature returns the signature that a client may see. A signature of another
// dialect would only be rejected when it comes back.
func (e *responseEncoder) signature(origin *dragoman.Origin, signature string, at extra.Path) string {
	if signature == "" || origin == nil || origin.Dialect == name {
		return signature
	}
	extra.ReportOpaque(e.rep, at.String()+"/signature")
	return ""
}

// part writes one part of a response, or reports that it has no form here.
func (e *responseEncoder) part(w *jsonwire.Writer, origin *dragoman.Origin, p dragoman.Part, at extra.Path) error {
	switch p := p.(type) {
	case *dragoman.Text:
		writeText(w, p.Text, false, e.signature(origin, p.Signature, at), p.Extra)
		extra.Report(e.rep, p.Extra, name, at)
	case *dragoman.Refusal:
		e.rep.Add(dragoman.Lowered, dragoman.Info, at.String(), "refusal written as text")
		writeText(w, p.Text, false, "", nil)
		extra.Report(e.rep, p.Extra, name, at)
	case *dragoman.Data:
		writeText(w, string(p.JSON), false, "", nil)
	case *dragoman.Reasoning:
		e.reasoning(w, origin, p, at)
	case *dragoman.ToolCall:
		return e.call(w, origin, p, at)
	case *dragoman.Media:
		if p.Base64 == "" && p.Text == "" && p.URL == "" {
			e.rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "%s that only its own provider can read; replaced by a note", p.Media)
			writeText(w, toolwire.Placeholder(p), false, "", nil)
			return nil
		}
		raw, _ := extra.Get(p.Extra, name, "/thoughtSignature")
		writeMedia(w, p, jsonwire.Unquote(raw), at, e.rep)
	case *dragoman.Opaque:
		if p.Dialect != name {
			e.rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "%s part of dialect %s cannot be expressed in Gemini", p.Type, p.Dialect)
			return nil
		}
		w.Raw(p.JSON)
	default:
		e.rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "%s part cannot be expressed in a response", p.Kind())
	}
	return nil
}

func (e *responseEncoder) reasoning(w *jsonwire.Writer, origin *dragoman.Origin, p *dragoman.Reasoning, at extra.Path) {
	if p.Origin != nil {
		origin = p.Origin
	}
	signature := e.signature(origin, p.Signature, at)
	e.reportReasoning(p, e.recorded.InCalls(p), at)
	if wirekit.VisibleReasoning(p) != "" || signature != "" {
		writeText(w, wirekit.VisibleReasoning(p), true, signature, p.Extra)
	}
}

// reportReasoning reports the fields of p that the API cannot express. carried
// reports that calls carry its records.
func (e *responseEncoder) reportReasoning(p *dragoman.Reasoning, carried bool, at extra.Path) {
	if (p.Encrypted != "" || len(p.Details) > 0) && !carried {
		extra.ReportOpaque(e.rep, at.String())
	}
	extra.ReportItem(e.rep, p.ID, at, "/id")
	extra.Report(e.rep, p.Extra, name, at)
}

// call writes a call for the client to run. It omits the id only if the API
// gave none.
func (e *responseEncoder) call(w *jsonwire.Writer, origin *dragoman.Origin, p *dragoman.ToolCall, at extra.Path) error {
	if p.Hosted {
		e.rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "call of %q was executed by its provider", p.Name)
		return nil
	}
	signature, bare := wirekit.ThroughChat(p, e.recorded)
	if signature == "" {
		signature = e.signature(origin, p.Signature, at)
	}
	call := *bare
	if call.Synthetic && origin != nil && origin.Dialect == name {
		call.ID = ""
	}
	call.Signature = ""
	return writeCallPart(w, e.reg, &call, signature, at, e.rep)
}
