package bedrock

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
		w.Key("output")
		w.BeginObject()
		calls, refused, err := e.message(w, resp)
		if err != nil {
			return err
		}
		extra.WriteBut(w, resp.Extra, name, "/output", func(f dragoman.Field) bool { return f.Path == "/output/message" })
		w.EndObject()
		wirekit.ReportDetails(e.Rep, resp.Stop, "")
		w.StringField("stopReason", e.word(resp.Stop, wirekit.Standing(resp.Stop, resp.ToolCalls(), wirekit.Barred), resp.Origin, calls, refused))
		w.Key("usage")
		writeUsage(w, resp.Usage, e.Rep)
		e.trailer(w, resp)
		w.EndObject()
		e.unsaidResponse(resp)
		return nil
	})
}

// answerEncoder writes the pieces that a response and a stream share.
type answerEncoder struct{ blockwire.AnswerEncoder }

// message writes output.message.
func (e *answerEncoder) message(w *jsonwire.Writer, resp *dragoman.Response) (calls, refused bool, err error) {
	w.Key("message")
	w.BeginObject()
	w.StringField("role", "assistant")
	w.Key("content")
	w.BeginArray()
	if calls, refused, err = e.Blocks(w, resp); err != nil {
		return calls, refused, err
	}
	w.EndArray()
	written := map[string]bool{}
	for i := range resp.Output {
		x := resp.Output[i].Extra
		extra.WriteUnless(w, x, name, func(path string) bool { return written[path] })
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
	extra.WriteUnless(w, resp.Extra, name, func(path string) bool { return modelled(path) || path == "/serviceTier" && resp.ServiceTier != "" })
}

// modelled reports whether a member of a response is written from what we know,
// so that one of the same name that said nothing is not written beside it.
func modelled(path string) bool {
	return path == "/output" || path == "/stopReason" || path == "/usage"
}

func (e *answerEncoder) metrics(w *jsonwire.Writer) {
	e.Rep.Add(dragoman.Synthesized, dragoman.Info, "/metrics", "no latency was measured; 0 written, because clients demand it")
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
	if tier = tiers.Answer(tier, origin, e.Rep); tier != "" {
		w.Key("serviceTier")
		w.BeginObject()
		w.StringField("type", tier)
		w.EndObject()
	}
}

func (e *answerEncoder) unsaidResponse(resp *dragoman.Response) {
	e.ReportResponse(resp, resp.Extra)
	drop := func(set bool, path, detail string) {
		if set {
			e.Rep.Add(dragoman.Dropped, dragoman.Info, path, detail)
		}
	}
	drop(resp.ID != "", "/id", "an answer of this API has no id")
	drop(resp.Model != "" || e.Options.Model != "", "/model", "an answer of this API names no model; the URL of its request does")
	drop(!resp.Created.IsZero(), "/created", "the API tells no time")
}

// word is why the response ended, in this dialect's words: s, where that stands in
// place of what was told.
func (e *answerEncoder) word(told, s dragoman.Stop, origin *dragoman.Origin, calls, refused bool) string {
	s = e.RefusalStop(s, refused, dragoman.StopContentFilter, "content_filtered, because the answer is a refusal")
	own := origin != nil && origin.Dialect == name
	word, exact := e.WordOf(s, own, calls)
	switch {
	case !exact:
		e.Rep.Addf(dragoman.Lowered, dragoman.Warn, "/stop", "stop %s written as %s", s.Reason, word)
	case !refused:
		wirekit.ReportBarred(e.Rep, told, s, word, "")
	}
	return word
}
