package bedrock

import (
	"fmt"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/blockwire"
	"github.com/dragoman-go/dragoman/internal/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
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
	if !o.Rebuild && resp.Native.Current(name, resp.Fingerprint) && !wirekit.Overtaken(resp, wirekit.Barred) {
		return dialect.Encoded{Body: resp.Native.Raw, Registry: reg}, nil
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
	w.Key("output")
	w.BeginObject()
	calls, refused, err := e.message(&w, resp)
	if err != nil {
		return dialect.Encoded{Report: *rep, Registry: reg}, err
	}
	extra.WriteBut(&w, resp.Extra, name, "/output", func(f dragoman.Field) bool { return f.Path == "/output/message" })
	w.EndObject()
	wirekit.ReportDetails(rep, resp.Stop, "")
	w.StringField("stopReason", e.word(resp.Stop, wirekit.Standing(resp.Stop, resp.ToolCalls(), wirekit.Barred), resp.Origin, calls, refused))
	w.Key("usage")
	writeUsage(&w, resp.Usage, rep)
	e.trailer(&w, resp)
	w.EndObject()
	e.unsaidResponse(resp)
	return wirekit.Encoded(name, &w, rep, reg, nil)
}

// answerEncoder writes the pieces that a response and a stream share.
type answerEncoder struct {
	reg *interop.Registry
	o   dialect.EncodeOptions
	rep *dragoman.Report
}

// message writes output.message.
func (e *answerEncoder) message(w *jsonwire.Writer, resp *dragoman.Response) (calls, refused bool, err error) {
	w.Key("message")
	w.BeginObject()
	w.StringField("role", "assistant")
	w.Key("content")
	w.BeginArray()
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
			if err := e.block(w, origin, p, at.Elem("parts", j)); err != nil {
				return calls, refused, err
			}
		}
	}
	w.EndArray()
	written := map[string]bool{}
	for i := range resp.Output {
		x := resp.Output[i].Extra
		writeExtras(w, x, func(path string) bool { return written[path] })
		for _, f := range x.For(name) {
			written[f.Path] = true
		}
	}
	w.EndObject()
	return calls, refused, nil
}

// trailer writes what is said of a response beside its message. Clients demand
// metrics; nobody here measured any.
func (e *answerEncoder) trailer(w *jsonwire.Writer, resp *dragoman.Response) {
	if _, ok := extra.Get(resp.Extra, name, "/metrics"); !ok {
		e.metrics(w)
	}
	e.sequence(w, resp.Stop, resp.Extra)
	e.tier(w, resp.ServiceTier, resp.Origin)
	writeExtras(w, resp.Extra, func(path string) bool { return modelled(path) || path == "/serviceTier" && resp.ServiceTier != "" })
}

// modelled reports whether a member of a response is written from what we know,
// so that one of the same name that said nothing is not written beside it.
func modelled(path string) bool {
	return path == "/output" || path == "/stopReason" || path == "/usage"
}

func (e *answerEncoder) metrics(w *jsonwire.Writer) {
	e.rep.Add(dragoman.Synthesized, dragoman.Info, "/metrics", "no latency was measured; 0 written, because clients demand it")
	w.Key("metrics")
	w.BeginObject()
	w.IntField("latencyMs", 0)
	w.EndObject()
}

// sequence writes the stop sequence where the API has it.
func (e *answerEncoder) sequence(w *jsonwire.Writer, s dragoman.Stop, x *dragoman.Extra) {
	const member = "additionalModelResponseFields"
	if _, ok := extra.Get(x, name, "/"+member); ok || s.Sequence == "" {
		return
	}
	w.Key(member)
	w.BeginObject()
	w.StringField("stop_sequence", s.Sequence)
	w.EndObject()
}

func (e *answerEncoder) tier(w *jsonwire.Writer, tier string, origin *dragoman.Origin) {
	tiers := wirekit.Tiers{Dialect: name, Ordinary: "default", Known: knownTier}
	if tier = tiers.Answer(tier, origin, e.rep); tier != "" {
		w.Key("serviceTier")
		w.BeginObject()
		w.StringField("type", tier)
		w.EndObject()
	}
}

func (e *answerEncoder) unsaidResponse(resp *dragoman.Response) {
	extra.ReportEcho(e.rep, resp.Extra, name, extra.At(""))
	if n := len(resp.Alternatives); n > 0 {
		e.rep.Addf(dragoman.Dropped, dragoman.Serious, "/alternatives", "%d further candidate(s); the API answers with one", n)
	}
	drop := func(set bool, path, detail string) {
		if set {
			e.rep.Add(dragoman.Dropped, dragoman.Info, path, detail)
		}
	}
	drop(resp.ID != "", "/id", "an answer of this API has no id")
	drop(resp.Model != "" || e.o.Model != "", "/model", "an answer of this API names no model; the URL of its request does")
	drop(!resp.Created.IsZero(), "/created", "the API tells no time")
}

// word is why the response ended, in this dialect's words: s, where that stands in
// place of what was told.
func (e *answerEncoder) word(told, s dragoman.Stop, origin *dragoman.Origin, calls, refused bool) string {
	if refused && (s.Reason == dragoman.StopEnd || s.Reason == dragoman.StopNone) {
		e.rep.Addf(dragoman.Lowered, dragoman.Info, "/stop", "stop %s written as content_filtered, because the answer is a refusal", s.Reason)
		s = dragoman.Stop{Reason: dragoman.StopContentFilter}
	}
	own := origin != nil && origin.Dialect == name
	word, exact := wordOf(s, own, calls)
	switch {
	case !exact:
		e.rep.Addf(dragoman.Lowered, dragoman.Warn, "/stop", "stop %s written as %s", s.Reason, word)
	case !refused:
		wirekit.ReportBarred(e.rep, told, s, word, "")
	}
	return word
}

// block writes one part of an answer; what has no block is reported.
func (e *answerEncoder) block(w *jsonwire.Writer, origin *dragoman.Origin, p dragoman.Part, at extra.Path) error {
	switch p := p.(type) {
	case *dragoman.Text:
		writeText(e.reg.View(), w, p, at, e.rep)
	case *dragoman.Refusal:
		e.rep.Add(dragoman.Lowered, dragoman.Info, at.String(), "a refusal written as text")
		writeText(e.reg.View(), w, &dragoman.Text{Text: p.Text}, at, e.rep)
		extra.Report(e.rep, p.Extra, name, at)
	case *dragoman.Data:
		writeText(e.reg.View(), w, &dragoman.Text{Text: string(p.JSON)}, at, e.rep)
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
			return fmt.Errorf("bedrock: %s: %w", at, err)
		}
	case *dragoman.Opaque:
		if p.Dialect != name {
			e.rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "%s of %s has no place here", extra.A(p.Type), p.Dialect)
			return nil
		}
		w.Raw(p.JSON)
	case *dragoman.Media:
		writeMedia(e.reg.View(), w, p, at, e.rep)
	default:
		e.rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "%s has no place in an answer", extra.A(string(p.Kind())))
	}
	return nil
}

// identified returns a call with an id, which the wire demands, and without the
// cache hint, which no answer has.
func (e *answerEncoder) identified(c *dragoman.ToolCall, at extra.Path) *dragoman.ToolCall {
	call := *c
	call.Cache = nil
	if call.ID == "" {
		call.ID = wirekit.SyntheticID(idPrefix, e.o.Seed+at.String())
		e.rep.Addf(dragoman.Synthesized, dragoman.Info, at.String(), "call id %q", call.ID)
	}
	return &call
}
