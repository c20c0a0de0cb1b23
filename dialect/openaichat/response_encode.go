package openaichat

import (
	"slices"
	"strconv"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/interop"
)

// EncodeResponse implements [dialect.Codec]. A response with an error is written as the error,
// and its content is reported as lost: clients would treat it as a normal response and run its
// calls. The exception is an error that this dialect itself sent inside a choice.
func (c Codec) EncodeResponse(resp *dragoman.Response, o dialect.EncodeOptions) (dialect.Encoded, error) {
	if err := resp.Validate(); err != nil {
		return dialect.Encoded{}, err
	}
	if err := wirekit.CheckEncode(name, o); err != nil {
		return dialect.Encoded{}, err
	}
	o = legacyOptions(o)
	limits := c.Limits()
	reg := wirekit.ResponseRegistry(resp, limits, toolCodecs, o)
	if body, ok := wirekit.ReplayResponse(resp, name, o); ok && !hasMalformedCall(resp) && !wirekit.MustRebuild(resp, wirekit.BlockedReason) {
		return dialect.Encoded{Body: body, Registry: reg}, nil
	}
	e := messageEncoder{list: "/output", reg: reg, limits: limits, target: reg.Target(), o: o, rep: new(dragoman.Report), legacy: o.LegacyFunctions}
	w := &e.w
	if resp.Error != nil && (len(resp.Output) == 0 || !hasError(resp)) {
		_, body, lost := c.EncodeError(resp.Error)
		wirekit.ReportFailed(e.rep, resp, name)
		e.rep.Merge("/error", lost)
		return dialect.Encoded{Body: body, Report: *e.rep, Registry: reg}, nil
	}
	w.Buf = make([]byte, 0, wirekit.ResponseSize(resp))
	w.BeginObject()
	head := *resp
	e.identify(&head)
	e.head(&head, "chat.completion")
	w.Key("choices")
	w.BeginArray()
	if err := e.candidate(0, resp.Output, resp.Stop, resp.Extra, resp.Origin); err != nil {
		return dialect.Encoded{Report: *e.rep, Registry: reg}, err
	}
	for i, a := range resp.Alternatives {
		e.candidatePath = extra.Choice(i + 1)
		e.list = e.candidatePath + "/output"
		if err := e.candidate(a.Index, a.Output, a.Stop, a.Extra, resp.Origin); err != nil {
			return dialect.Encoded{Report: *e.rep, Registry: reg}, err
		}
		extra.ReportEcho(e.rep, a.Extra, name, extra.At(e.candidatePath))
	}
	w.EndArray()
	if resp.Usage.Input.Known || resp.Usage.Output.Known || resp.Usage.Extra != nil {
		w.Key("usage")
		writeUsage(w, resp.Usage, e.rep)
	}
	w.StringFieldIf("service_tier", wirekit.OpenAITiers(name).ResponseTier(resp.ServiceTier, resp.Origin, e.rep))
	extra.Write(w, resp.Extra, name, "")
	w.EndObject()
	extra.ReportEcho(e.rep, resp.Extra, name, extra.At(""))
	return wirekit.Encoded(name, w, e.rep, reg, nil)
}

// hasError reports whether the error was sent inside the first choice.
func hasError(resp *dragoman.Response) bool {
	_, ok := extra.Get(resp.Extra, name, "/choices/0/error")
	return ok
}

// identify gives a response the id that clients require, and reports generated values.
func (e *messageEncoder) identify(resp *dragoman.Response) {
	if resp.ID == "" {
		resp.ID = wirekit.SyntheticID("chatcmpl-", e.o.Seed)
		wirekit.ReportNewID(e.rep, resp.ID)
	}
	if resp.Created.IsZero() {
		wirekit.ReportNoTime(e.rep)
	}
}

// head writes the first fields of a response or chunk.
func (e *messageEncoder) head(resp *dragoman.Response, object string) {
	model := resp.Model
	if e.o.Model != "" {
		model = e.o.Model
	}
	var created int64
	if !resp.Created.IsZero() {
		created = resp.Created.Unix()
	}
	e.w.StringField("id", resp.ID)
	e.w.StringField("object", object)
	e.w.IntField("created", created)
	e.w.StringField("model", model)
}

func (e *messageEncoder) candidate(index int, out []dragoman.Message, stop dragoman.Stop, ex *dragoman.Extra, origin *dragoman.Origin) error {
	w := &e.w
	place := "/choices/" + strconv.Itoa(index)
	w.BeginObject()
	w.IntField("index", int64(index))
	w.Key("message")
	if len(out) == 1 && e.replayResponse(&out[0]) {
		// its native bytes were written
	} else {
		w.BeginObject()
		w.StringField("role", "assistant")
		if _, err := e.assistantBody(out, 0); err != nil {
			return err
		}
		if !slices.ContainsFunc(out, hasRefusalField) {
			w.Key("refusal")
			w.Null()
		}
		w.EndObject()
		for i := range out {
			wirekit.ReportName(e.rep, &out[i], extra.Elem(e.list, i))
		}
	}
	calls := countCalls(out)
	wirekit.ReportDetails(e.rep, stop, e.candidatePath)
	original := stop
	stop = allowedStop(e.reg, stop, out)
	if _, none := extra.Get(ex, name, place+"/finish_reason"); !none || stop.Native != "" || !matchesStop(stop, "", calls) {
		ex = withoutField(ex, place+"/finish_reason")
		own := origin != nil && origin.Dialect == name
		word, exact := finishReasonOf(stop, own, calls)
		if !exact {
			e.rep.Addf(dragoman.Lowered, dragoman.Warn, e.candidatePath+"/stop", "stop reason %s is written as %q", stop.Reason, word)
		} else {
			wirekit.ReportBlocked(e.rep, original, stop, word, e.candidatePath)
		}
		w.StringField("finish_reason", e.finish(word))
	}
	if _, ok := extra.Get(ex, name, place+"/logprobs"); !ok {
		w.Key("logprobs")
		w.Null()
	}
	extra.Write(w, ex, name, place)
	w.EndObject()
	return nil
}

// hasRefusalField reports whether the refusal field of a message is written. Clients require it
// in every response, like logprobs.
func hasRefusalField(m dragoman.Message) bool {
	_, ok := extra.Get(m.Extra, name, "/refusal")
	return ok || slices.ContainsFunc(m.Parts, func(p dragoman.Part) bool { return p.Kind() == codes.KindRefusal })
}

// withoutField returns the extras without the field at path.
func withoutField(e *dragoman.Extra, path string) *dragoman.Extra {
	if _, ok := extra.Get(e, name, path); !ok {
		return e
	}
	fields := slices.DeleteFunc(slices.Clone(e.Fields), func(f dragoman.Field) bool { return f.Path == path })
	return &dragoman.Extra{Dialect: e.Dialect, Fields: fields}
}

// allowedStop returns the stop to write for an output. If the output has a blocked call, it is
// never a stop after which clients run calls.
func allowedStop(reg *interop.Registry, stop dragoman.Stop, out []dragoman.Message) dragoman.Stop {
	for i := range out {
		stop = wirekit.EffectiveStop(stop, out[i].ToolCalls(), wirekit.BlockedWith(reg))
	}
	return stop
}

// hasMalformedCall reports whether a response has a call that could not be decoded.
func hasMalformedCall(resp *dragoman.Response) bool {
	opaque := func(m dragoman.Message) bool { return hasOpaqueCall(&m) }
	return slices.ContainsFunc(resp.Output, opaque) || slices.ContainsFunc(resp.Alternatives, func(c dragoman.Candidate) bool {
		return slices.ContainsFunc(c.Output, opaque)
	})
}

// replayResponse writes the native bytes of a message. A client of this dialect gets them,
// whichever model produced them.
func (e *messageEncoder) replayResponse(m *dragoman.Message) bool {
	if e.o.Rebuild || hasOpaqueCall(m) || !m.Native.Current(name, m.Fingerprint) {
		return false
	}
	e.w.Raw(m.Native.Raw)
	return true
}
