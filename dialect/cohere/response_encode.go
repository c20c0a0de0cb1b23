package cohere

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/stopreason"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// EncodeResponse implements [dialect.Codec]. All messages of the output become one. A
// response of this dialect that was not changed is written byte for byte.
func (c Codec) EncodeResponse(resp *dragoman.Response, o dialect.EncodeOptions) (dialect.Encoded, error) {
	if err := resp.Validate(); err != nil {
		return dialect.Encoded{}, err
	}
	if err := wirekit.CheckEncode(name, o); err != nil {
		return dialect.Encoded{}, err
	}
	limits := c.Limits()
	reg := wirekit.AnswerRegistry(resp, limits, toolCodecs, o)
	if body, ok := wirekit.ReplayResponse(resp, name, o); ok && !unreadable(resp) && !wirekit.Overtaken(resp, wirekit.Barred) {
		return dialect.Encoded{Body: body, Registry: reg}, nil
	}
	e := messageEncoder{list: "/output", reg: reg, limits: limits, target: reg.Target(), o: o, rep: new(dragoman.Report)}
	if resp.Error != nil {
		wirekit.ReportFailed(e.rep, resp, name)
		_, body, lost := c.EncodeError(resp.Error)
		e.rep.Merge("/error", lost)
		return dialect.Encoded{Body: body, Report: *e.rep, Registry: reg}, nil //nolint:nilerr // the error is what is encoded
	}
	w := &e.w
	w.Buf = make([]byte, 0, wirekit.ResponseSize(resp))
	w.BeginObject()
	w.StringField("id", e.id(resp.ID))
	w.Key("message")
	if err := e.answerMessage(resp.Output); err != nil {
		return dialect.Encoded{Report: *e.rep, Registry: reg}, err
	}
	calls := resp.ToolCalls()
	e.finish(w, resp.Stop, wirekit.Standing(resp.Stop, calls, wirekit.BarredBy(reg)), ownResponse(resp), countCalls(calls), resp.Extra)
	if hasUsage(resp.Usage) {
		w.Key("usage")
		writeUsage(w, resp.Usage, e.rep)
	}
	extra.WriteBut(w, resp.Extra, name, "", func(f dragoman.Field) bool { return f.Path == "/finish_reason" })
	w.EndObject()
	e.unsaidOfResponse(resp)
	return wirekit.Encoded(name, w, e.rep, reg, nil)
}

func unreadable(resp *dragoman.Response) bool {
	for i := range resp.Output {
		if hasOpaqueCall(&resp.Output[i]) {
			return true
		}
	}
	return false
}

func ownResponse(resp *dragoman.Response) bool {
	return resp.Origin != nil && resp.Origin.Dialect == name
}

// id returns the id of a response; clients require one.
func (e *messageEncoder) id(id string) string {
	if id == "" {
		id = wirekit.SyntheticID("chat-", e.o.Seed)
		wirekit.ReportMinted(e.rep, id)
	}
	return id
}

func (e *messageEncoder) answerMessage(out []dragoman.Message) error {
	if len(out) == 1 && !e.o.Rebuild && !hasOpaqueCall(&out[0]) && out[0].Native.Current(name, out[0].Fingerprint) {
		e.w.Raw(out[0].Native.Raw)
		return nil
	}
	e.w.BeginObject()
	e.w.StringField("role", "assistant")
	if _, err := e.assistantBody(out, 0); err != nil {
		return err
	}
	e.w.EndObject()
	return nil
}

// finish writes why a response ended. standing is the stop to write for stop.
func (e *messageEncoder) finish(w *jsonwire.Writer, stop, standing dragoman.Stop, own bool, calls callCount, fields *dragoman.Extra) {
	wirekit.ReportDetails(e.rep, stop, "")
	if stop.Sequence != "" {
		e.rep.Add(dragoman.Dropped, dragoman.Info, "/stop/sequence", "Cohere does not say which stop sequence was written")
	}
	if none, ok := extra.Get(fields, name, "/finish_reason"); ok && standing.Native == "" && stopreason.Derive(dragoman.StopNone, calls.whole, true) == standing.Reason {
		w.RawField("finish_reason", none)
		return
	}
	word, exact := wordOf(standing, own, calls)
	if !exact {
		e.rep.Addf(dragoman.Lowered, dragoman.Warn, "/stop", "stop reason %s written as %q", standing.Reason, word)
	} else {
		wirekit.ReportBarred(e.rep, stop, standing, word, "")
	}
	w.StringField("finish_reason", word)
}

// unsaidOfResponse reports what a response says that Cohere has no field for.
func (e *messageEncoder) unsaidOfResponse(resp *dragoman.Response) {
	extra.ReportEcho(e.rep, resp.Extra, name, extra.At(""))
	if n := len(resp.Alternatives); n > 0 {
		e.rep.Addf(dragoman.Dropped, dragoman.Serious, "/alternatives", "%d further candidate(s); Cohere returns one response", n)
	}
	if resp.Model != "" {
		e.rep.Add(dragoman.Dropped, dragoman.Info, "/model", "responses of Cohere do not name their model")
	}
	if !resp.Created.IsZero() {
		e.rep.Add(dragoman.Dropped, dragoman.Info, "/created", "responses of Cohere have no time")
	}
	if resp.ServiceTier != "" {
		e.rep.Add(dragoman.Dropped, dragoman.Info, "/service_tier", "Cohere has no service tiers")
	}
}
