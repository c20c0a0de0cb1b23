package cohere

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/turnrules"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/textkit"
)

// EncodeResponse implements [dialect.Codec]. All output messages become one
// message. A response of this dialect that was not changed is written byte for
// byte.
func (c Codec) EncodeResponse(resp *dragoman.Response, o dialect.EncodeOptions) (dialect.Encoded, error) {
	if err := resp.Validate(); err != nil {
		return dialect.Encoded{}, err
	}
	if err := wirekit.CheckEncode(name, o); err != nil {
		return dialect.Encoded{}, err
	}
	limits := c.Limits()
	reg := wirekit.ResponseRegistry(resp, limits, toolCodecs, o)
	if body, ok := wirekit.ReplayResponse(resp, name, o); ok && !unreadable(resp) && !wirekit.MustRebuild(resp, wirekit.BlockedReason) {
		return dialect.Encoded{Body: body, Registry: reg}, nil
	}
	e := messageEncoder{list: "/output", reg: reg, limits: limits, target: reg.Target(), o: o, rep: new(dragoman.Report)}
	if resp.Error != nil {
		wirekit.ReportFailed(e.rep, resp, name)
		_, body, lost := c.EncodeError(resp.Error)
		e.rep.Merge("/error", lost)
		return dialect.Encoded{Body: body, Report: *e.rep, Registry: reg}, nil //nolint:nilerr // resp.Error is the value to encode
	}
	w := &e.w
	w.Buf = make([]byte, 0, wirekit.ResponseSize(resp))
	w.BeginObject()
	w.StringField("id", e.id(resp.ID))
	w.Key("message")
	if err := e.responseMessage(resp.Output); err != nil {
		return dialect.Encoded{Report: *e.rep, Registry: reg}, err
	}
	calls := resp.ToolCalls()
	e.finish(w, resp.Stop, wirekit.EffectiveStop(resp.Stop, calls, wirekit.BlockedWith(reg)), ownResponse(resp), countCalls(calls), resp.Extra)
	if hasUsage(resp.Usage) {
		w.Key("usage")
		writeUsage(w, resp.Usage, e.rep)
	}
	extra.WriteBut(w, resp.Extra, name, "", func(f dragoman.Field) bool { return f.Path == "/finish_reason" })
	w.EndObject()
	e.reportResponse(resp)
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

// id returns the id of a response, or a synthetic one, because clients require
// it.
func (e *messageEncoder) id(id string) string {
	if id == "" {
		id = wirekit.SyntheticID("chat-", e.o.Seed)
		wirekit.ReportNewID(e.rep, id)
	}
	return id
}

func (e *messageEncoder) responseMessage(out []dragoman.Message) error {
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

// finish writes the finish reason for effective. stop is the stop before it was
// replaced because of a blocked call.
func (e *messageEncoder) finish(w *jsonwire.Writer, stop, effective dragoman.Stop, own bool, calls callCount, fields *dragoman.Extra) {
	wirekit.ReportDetails(e.rep, stop, "")
	if stop.Sequence != "" {
		e.rep.Add(dragoman.Dropped, dragoman.Info, "/stop/sequence", "Cohere does not report which stop sequence matched")
	}
	if none, ok := extra.Get(fields, name, "/finish_reason"); ok && effective.Native == "" && turnrules.StopReason(dragoman.StopNone, calls.whole, true) == effective.Reason {
		w.RawField("finish_reason", none)
		return
	}
	reason, exact := encodeStop(effective, own, calls)
	if !exact {
		e.rep.Addf(dragoman.Lowered, dragoman.Warn, "/stop", "stop reason %s written as %q", effective.Reason, reason)
	} else {
		wirekit.ReportBlocked(e.rep, stop, effective, reason, "")
	}
	w.StringField("finish_reason", reason)
}

// reportResponse reports the fields of a response that Cohere does not have.
func (e *messageEncoder) reportResponse(resp *dragoman.Response) {
	extra.ReportEcho(e.rep, resp.Extra, name, extra.At(""))
	if n := len(resp.Alternatives); n > 0 {
		e.rep.Addf(dragoman.Dropped, dragoman.Serious, "/alternatives", "%s; Cohere returns only one", textkit.Count(n, "further candidate"))
	}
	if resp.Model != "" {
		e.rep.Add(dragoman.Dropped, dragoman.Info, "/model", "Cohere responses do not name their model")
	}
	if !resp.Created.IsZero() {
		e.rep.Add(dragoman.Dropped, dragoman.Info, "/created", "Cohere responses have no creation time")
	}
	if resp.ServiceTier != "" {
		e.rep.Add(dragoman.Dropped, dragoman.Info, "/service_tier", "Cohere has no service tiers")
	}
}
