package ollama

import (
	"cmp"
	"slices"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/turnrules"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/textkit"
)

// EncodeResponse implements [dialect.Codec]. All messages of the output become one. An unchanged
// response from this dialect keeps its bytes.
func (c Codec) EncodeResponse(resp *dragoman.Response, o dialect.EncodeOptions) (dialect.Encoded, error) {
	if err := resp.Validate(); err != nil {
		return dialect.Encoded{}, err
	}
	if err := wirekit.CheckEncode(name, o); err != nil {
		return dialect.Encoded{}, err
	}
	limits := c.Limits()
	reg := wirekit.ResponseRegistry(resp, limits, toolCodecs, o)
	if body, ok := wirekit.ReplayResponse(resp, name, o); ok && !hasUnsafeCall(resp) {
		return dialect.Encoded{Body: body, Registry: reg}, nil
	}
	e := messageEncoder{
		list: "/output", reg: reg, limits: limits, target: reg.Target(), o: o, rep: new(dragoman.Report), callsBlocked: blocksCalls(resp.Stop),
	}
	if resp.Error != nil {
		wirekit.ReportFailed(e.rep, resp, name)
		_, body, lost := c.EncodeError(resp.Error)
		e.rep.Merge("/error", lost)
		return dialect.Encoded{Body: body, Report: *e.rep, Registry: reg}, nil //nolint:nilerr // the error is the encoded value
	}
	w := &e.w
	w.BeginObject()
	e.head(resp)
	w.Key("message")
	if err := e.responseMessage(resp); err != nil {
		return dialect.Encoded{Report: *e.rep, Registry: reg}, err
	}
	e.tail(resp.Stop, ownResponse(resp), countCalls(resp.Output), resp.Usage, resp)
	w.EndObject()
	oneLine(w.Buf)
	e.reportResponseLosses(resp)
	return wirekit.Encoded(name, w, e.rep, reg, nil)
}

// oneLine replaces the line breaks between tokens with spaces. Ollama clients read whole
// responses as they read streams, line by line, and the arguments of a call may have
// come with line breaks.
func oneLine(body []byte) {
	for i, c := range body {
		if c == '\n' || c == '\r' {
			body[i] = ' '
		}
	}
}

// hasUnsafeCall reports whether a call was blocked after decoding, so that a client would run it
// if it got the original bytes.
func hasUnsafeCall(resp *dragoman.Response) bool {
	for _, c := range resp.ToolCalls() {
		if unsafeToReplay(c) && resp.Stop.Reason.Runs() {
			return true
		}
	}
	return false
}

func ownResponse(resp *dragoman.Response) bool {
	return resp.Origin != nil && resp.Origin.Dialect == name
}

func countCalls(out []dragoman.Message) (n int) {
	for i := range out {
		for _, c := range out[i].ToolCalls() {
			if !wirekit.IsTruncated(c) {
				n++
			}
		}
	}
	return n
}

// head writes the first fields of a response or a stream line.
func (e *messageEncoder) head(resp *dragoman.Response) {
	e.w.StringField("model", cmp.Or(e.o.Model, resp.Model))
	if raw, ok := extra.Get(resp.Extra, name, "/created_at"); ok && resp.Created.Equal(readTime(raw)) {
		e.w.RawField("created_at", raw)
	} else {
		e.w.StringField("created_at", timestamp(resp.Created))
	}
}

func (e *messageEncoder) responseMessage(resp *dragoman.Response) error {
	out := resp.Output
	if len(out) == 1 && !e.o.Rebuild && !hasOpaqueCall(&out[0]) && !e.hasBlockedCall(&out[0]) &&
		out[0].Native.Current(name, out[0].Fingerprint) {
		e.w.Raw(out[0].Native.Raw)
		return nil
	}
	var t assistantContent
	for i := range out {
		m := out[i]
		if m.Origin == nil {
			m.Origin = resp.Origin
		}
		t.add(e, &m, extra.Elem(e.list, i), i)
	}
	e.w.BeginObject()
	e.w.StringField("role", "assistant")
	if err := t.write(e, out, 0); err != nil {
		return err
	}
	e.w.EndObject()
	return nil
}

// hasBlockedCall reports whether a message has a call that clients must not get.
func (e *messageEncoder) hasBlockedCall(m *dragoman.Message) bool {
	calls := m.ToolCalls()
	return e.callsBlocked && len(calls) > 0 || slices.ContainsFunc(calls, unsafeToReplay)
}

// tail writes the stop reason and the usage.
func (e *messageEncoder) tail(stop dragoman.Stop, own bool, calls int, usage dragoman.Usage, resp *dragoman.Response) {
	w := &e.w
	w.BoolField("done", true)
	// If the server sent no reason, none is written.
	none := own && stop.Native == "" && turnrules.StopReason(dragoman.StopNone, calls, true) == stop.Reason
	if !none {
		word, exact := doneReasonOf(stop, own, calls)
		if !exact {
			e.rep.Addf(dragoman.Lowered, dragoman.Warn, "/stop", "stop reason %s is written as %q", stop.Reason, word)
		}
		w.StringField("done_reason", word)
	}
	writeUsage(w, usage, e.rep)
	extra.WriteBut(w, resp.Extra, name, "", func(f dragoman.Field) bool {
		_, counted := extra.Get(usage.Extra, name, f.Path)
		return counted || f.Path == "/created_at" || f.Path == "/done_reason" && !none
	})
}

func (e *messageEncoder) reportResponseLosses(resp *dragoman.Response) {
	extra.ReportEcho(e.rep, resp.Extra, name, extra.At(""))
	if n := len(resp.Alternatives); n > 0 {
		e.rep.Addf(dragoman.Dropped, dragoman.Serious, "/alternatives", "%s; Ollama returns only one", textkit.Count(n, "further candidate"))
	}
	if resp.ID != "" {
		e.rep.Add(dragoman.Dropped, dragoman.Info, "/id", "Ollama responses have no id")
	}
	if resp.ServiceTier != "" {
		e.rep.Add(dragoman.Dropped, dragoman.Info, "/service_tier", "Ollama has no service tiers")
	}
	wirekit.ReportDetails(e.rep, resp.Stop, "")
	if resp.Created.IsZero() && !ownResponse(resp) { // the Ollama server sent no time itself
		wirekit.ReportNoTime(e.rep)
	}
	if t := resp.Created; !t.IsZero() && timestamp(t) == timestamp(time.Time{}) {
		e.rep.Add(dragoman.Dropped, dragoman.Info, "/created", "the time is outside the years 1 to 9999")
	}
}
