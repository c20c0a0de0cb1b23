package bedrock

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
		w.Key("output")
		w.BeginObject()
		calls, refused, err := e.message(w, resp)
		if err != nil {
			return err
		}
		extra.WriteBut(w, resp.Extra, name, "/output", func(f dragoman.Field) bool { return f.Path == "/output/message" })
		w.EndObject()
		wirekit.ReportDetails(e.Rep, resp.Stop, "")
		w.StringField("stopReason", e.stopReason(resp.Stop, wirekit.EffectiveStop(resp.Stop, resp.ToolCalls(), wirekit.BlockedReason), resp.Origin, calls, refused))
		w.Key("usage")
		writeUsage(w, resp.Usage, e.Rep)
		e.trailer(w, resp)
		w.EndObject()
		e.reportResponse(resp)
		return nil
	})
}

// responseEncoder writes the parts shared by responses and streams.
type responseEncoder struct{ blockwire.ResponseEncoder }

// message writes output.message.
func (e *responseEncoder) message(w *jsonwire.Writer, resp *dragoman.Response) (calls, refused bool, err error) {
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

// trailer writes the fields of a response after its message. Clients require
// metrics, but no latency is known.
func (e *responseEncoder) trailer(w *jsonwire.Writer, resp *dragoman.Response) {
	if _, ok := extra.Get(resp.Extra, name, "/metrics"); !ok {
		e.metrics(w)
	}
	e.sequence(w, resp.Stop, resp.Extra)
	e.tier(w, resp.ServiceTier, resp.Origin)
	extra.WriteUnless(w, resp.Extra, name, func(path string) bool { return isModeled(path) || path == "/serviceTier" && resp.ServiceTier != "" })
}

// isModeled reports whether a field of a response is written from canonical
// data, so that an empty one of the same name is not written again.
func isModeled(path string) bool {
	return path == "/output" || path == "/stopReason" || path == "/usage"
}

func (e *responseEncoder) metrics(w *jsonwire.Writer) {
	e.Rep.Add(dragoman.Synthesized, dragoman.Info, "/metrics", "latency is unknown; 0 written because clients require it")
	w.Key("metrics")
	w.BeginObject()
	w.IntField("latencyMs", 0)
	w.EndObject()
}

// sequence writes the stop sequence in the field where the API returns it.
func (e *responseEncoder) sequence(w *jsonwire.Writer, s dragoman.Stop, x *dragoman.Extra) {
	const member = "additionalModelResponseFields"
	if _, ok := extra.Get(x, name, "/"+member); ok || s.Sequence == "" {
		return
	}
	w.Key(member)
	w.BeginObject()
	w.StringField("stop_sequence", s.Sequence)
	w.EndObject()
}

func (e *responseEncoder) tier(w *jsonwire.Writer, tier string, origin *dragoman.Origin) {
	tiers := wirekit.Tiers{Dialect: name, Ordinary: "default", Known: knownTier}
	if tier = tiers.ResponseTier(tier, origin, e.Rep); tier != "" {
		w.Key("serviceTier")
		w.BeginObject()
		w.StringField("type", tier)
		w.EndObject()
	}
}

func (e *responseEncoder) reportResponse(resp *dragoman.Response) {
	e.ReportResponse(resp, resp.Extra)
	drop := func(set bool, path, detail string) {
		if set {
			e.Rep.Add(dragoman.Dropped, dragoman.Info, path, detail)
		}
	}
	drop(resp.ID != "", "/id", "responses of this API have no id")
	drop(resp.Model != "" || e.Options.Model != "", "/model", "responses of this API name no model; the request URL does")
	drop(!resp.Created.IsZero(), "/created", "the API does not report a creation time")
}

// stopReason returns the stop reason to write for s. original is the stop before it
// was replaced because of a blocked call.
func (e *responseEncoder) stopReason(original, s dragoman.Stop, origin *dragoman.Origin, calls, refused bool) string {
	s = e.RefusalStop(s, refused, dragoman.StopContentFilter, "content_filtered, because the response is a refusal")
	own := origin != nil && origin.Dialect == name
	reason, exact := e.StopValue(s, own, calls)
	switch {
	case !exact:
		e.Rep.Addf(dragoman.Lowered, dragoman.Warn, "/stop", "stop reason %s written as %s", s.Reason, reason)
	case !refused:
		wirekit.ReportBlocked(e.Rep, original, s, reason, "")
	}
	return reason
}
